# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] tags=["slide"]
# # implicit_bias, stage 4 of 5: how biased is it, how sure are we, and did fine-tuning help?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb) · words: [glossary](../../docs/glossary.md)
#
# We turn probabilities into bias scores, put intervals around the means, and compare the *arms*, the three ways to fine-tune. Last comes an association test that the paper
# defines but does not run.

# %% [markdown] tags=["slide"]
# ## What we found
#
# - **The models prefer *he*.** Over all captions their mean bias score is .73<!-- implicit_bias/cpu/04_metrics/conventions[convention=all].bias -->, where .5 is even
#   ([figure](../../outputs/reference/implicit_bias/cpu/05_figures/figure_3.png)). Our interval, under the paper's rules, is
#   6<!-- implicit_bias/cpu/04_metrics/intervals[model=base].wider --> times as wide as one that treats every sentence as independent
#   ([table](../../outputs/reference/implicit_bias/cpu/04_metrics/intervals.csv)).
# - **Swapped pronouns bring scores closer to even than the same sentences unswapped.** On nouns that no arm was fine-tuned on, the claim
#   holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_reduces_bias].verdict -->. On Winogender, about occupations, it
#   holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_transfers].verdict -->, too
#   ([figure](../../outputs/reference/implicit_bias/cpu/05_figures/changes.png)).
# - **A second measure agrees with the bias score only in part.** It asks whether a sentence's vector lies nearer to male or to female words. The rank correlation is
#   .53<!-- implicit_bias/cpu/04_metrics/correlations[unit=sentence, vectors=encoder].rho -->, for one base model
#   ([table](../../outputs/reference/implicit_bias/cpu/04_metrics/correlations.csv)).
#
# These results come from our ninth run at scale `cpu`. All fine-tuning runs that were started count, whether or not they pass the gate of stage 2.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the bias score, and the paper's rules for discarding sentences;
# - why many sentences can be few observations;
# - whether swapped pronouns reduce the bias.
#
# **You can then** say why an interval over sentences is too narrow, use placebos to separate causes, and compute an association.
# **You need** [stage 3](03_attribution.ipynb), and what an interval is. **Time:** 25 minutes to read, under a minute
# to run, [15 minutes for the exercises](../../docs/course/exercises/implicit_bias.md#04-metrics).
#
# | in | from | holds |
# |---|---|---|
# | `sentences.parquet`, `steps.csv` | 01 | what passed the filter |
# | `gate.csv`, `arms.csv` | 02 | who passed the gate; perplexities |
# | `probabilities`, `vectors`, `phrases` (`.parquet`) | 03 | probability and rank by gender; vectors |
#
# | out | holds |
# |---|---|
# | `scores.parquet`, `histogram`, `distribution`, `intervals`, `slots` | bias scores, and their summary |
# | `sensitivity`, `conventions` | the mean under other interpretations of the rules |
# | `shown`, `arms`, `changes`, `power`, `power_gated`, `power_without_person`, `price` | the arms, their differences and costs |
# | `weat`, `phrases`, `phrase_weat`, `correlations` | association tests |
# | `contrasts`, `claims` | the verdicts on the claims |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from dataclasses import replace

import numpy as np
import pandas as pd

from lib import stats
from lib.core.files import load_parquet, read_table, read_yaml, save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.metrics.masked_pronoun import apply_rule, bias_score, judge_sentences
from lib.studies.implicit_bias import figures
from lib.studies.implicit_bias.kept_models import may_be_shown
from lib.studies.implicit_bias.naming import GROUPS, MODELS, in_words
from lib.studies.implicit_bias.sentences import masked_words, with_gender
from lib.studies.implicit_bias.weat import association, check_lists, weat

# %% [markdown]
# ## Settings
#
# The *bias score* of a sentence s is P(s|m) / (P(s|m) + P(s|f)), the paper's equation 1. P(s|m) is the probability of the likeliest male word at the mask,
# P(s|f) that of the likeliest female word.
#
# In the paper a sentence is "even" when its score lies within .5 ± delta. No delta is given; the printed counts fit 0.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # resamples and sampled partitions
n_threads = 1  # CPU threads
k = 10  # likeliest words that are looked at
delta = 0.0  # scores within 0.5 +- delta are even
threshold = 0.05  # a probability below this leads to a discard
# one gender alone among the k words: discard the sentence, or take the probability
# of the other gender as 0 (zero) or from the whole vocabulary (full_vocab)
missing = "discard"
# what must reach the threshold: each gender, the larger one, or their sum
compared = "each"
# words of a gender: pronouns, identities, or slot (the two forms that fit)
forms = "pronouns"
ddof = 1  # the standard deviation in the effect size: 1 sample, 0 population
n_bootstrap = 500  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha
# the model on which the paper's claims are judged: base, or a hub model's name
judged_model = "base"

# %% [markdown]
# Open the stage:

# %%
stage = open_stage("implicit_bias", scale, "04_metrics")
set_up(seed, n_threads)
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
own_material = material("implicit_bias")
ARMS = ["placebo", "even placebo", "augmented"]

# %% [markdown]
# The tables of the earlier stages:

# %%
sentences = load_parquet(stage.input("01_data_generation", "sentences.parquet"))
steps = pd.read_csv(stage.input("01_data_generation", "steps.csv"))
gates = pd.read_csv(stage.input("02_training", "gate.csv"))
costs = pd.read_csv(stage.input("02_training", "arms.csv"))
probabilities = load_parquet(stage.input("03_attribution", "probabilities.parquet"))
print(f"{probabilities['sentence_id'].nunique()} sentences")
print(f"{probabilities['antecedent'].nunique()} nouns")

# %% [markdown]
# Which models enter? All base models and all fine-tuning runs that were started: the analysis *as assigned*. Leaving runs out would bias the comparison. We repeat it for those that
# passed the *gate*: right gender first in at least 85 % of unambiguous sentences, and 90 % at scale `cpu`. Hub models that fail it are left out. A *shown* run enters all results.

# %% tags=["nbval-ignore-output"]
is_other = gates["model"].isin(["untrained head", "without frames"])
tested = pd.concat(
    [gates[~is_other].assign(seed=-1), costs[costs["model"].isin(ARMS)]],
    ignore_index=True,
)[["model", "base", "seed", "right_first", "perplexity", "unigram", "passes"]]
passed = may_be_shown(probabilities, tested)
is_started = probabilities["model"].isin(["base", *ARMS])
shown = probabilities[is_started | probabilities.index.isin(passed.index)]
passing = tested.loc[(tested["model"] == "base") & tested["passes"], "base"]
base_passes = len(passing) > 0
explained_base = int(passing.min()) if base_passes else 0
tested["scores"] = [
    "shown"
    if row.passes
    else f"not shown: gate {row.right_first:.3f}"
    if row.model not in ("base", *ARMS)
    else f"only in the results over all runs: gate {row.right_first:.3f}"
    for row in tested.itertuples()
]
in_words(
    stage.table("shown", tested),
    {"model": "model", "base": "base model", "seed": "run"}
    | {"right_first": "right at the gate", "passes": "passes", "scores": "scores"},
)

# %% [markdown] tags=["slide"]
# ## 1 · Four sentences by hand
#
# The paper looks at the ten likeliest words. It discards a sentence if a gender has a probability below 5 %. Take four:
#
# 1. *he* .435, *she* .195;
# 2. *his* .142, *her* .113;
# 3. *his* .542, *her* .0305;
# 4. *she* .4, and no male word among the ten.
#
# **Stop and guess.** Which of them get a score?

# %% tags=["slide"]
toy = pd.DataFrame(
    {
        "p_M": [0.435, 0.142, 0.542, 0.01],
        "p_F": [0.195, 0.113, 0.0305, 0.4],
        "rank_M": [1, 1, 1, 14],
        "rank_F": [2, 2, 4, 1],
    }
)
judged = toy.join(judge_sentences(toy, 10, 0.05))
assert judged["bias"].round(3).fillna(0).tolist() == [0.69, 0.557, 0, 0]
larger = judge_sentences(toy, 10, 0.05, compared="larger")
assert larger["bias"].round(3).iloc[2] == 0.947
in_words(
    judged.round(3),
    {"p_M": "p, male", "p_F": "p, female", "bias": "bias score", "verdict": "verdict"},
)

# %% [markdown]
# The first two do. But the third is the paper's own example, printed with a score of .95! It survives only if just the *larger* probability must reach 5 %. Section 4 compares both. This is the rule:
#
# ![Pairs of probabilities and a scale of bias scores from 0 (female) over .5 (even) to 1 (male): of 4 sentences 1 gets 0.69, 2 gets 0.56, 3 is discarded (below the threshold), 4 is discarded (one gender alone); both probabilities must reach 0.05.](../../docs/schematics/scores.svg)

# %%
show_source(apply_rule)

# %% [markdown] tags=["slide"]
# ## 2 · The scores
#
# We begin without discards: each sentence gets a score from the whole vocabulary.


# %% tags=["nbval-ignore-output", "slide"]
def scored(rules=None, kind=forms, of=shown):
    """Scores and verdicts of every sentence and model; `rules` replace settings."""
    chosen = {
        "k": k,
        "threshold": threshold,
        "missing": missing,
        "compared": compared,
        "delta": delta,
    } | (rules or {})
    part = of[of["forms"] == kind].reset_index(drop=True)
    return part.join(judge_sentences(part, **chosen))


def of_filter(frame):
    """The filtered sentences, and the models that were fine-tuned on none of them."""
    return frame[(frame["part"] != "winogender") & ~frame["model"].isin(ARMS)]


NO_DISCARDS = {"missing": "full_vocab", "threshold": 0.0, "k": 10**6}
bins = np.linspace(0, 1, 21)
drawn = (
    of_filter(scored(NO_DISCARDS))
    .groupby(["model", "base"])["bias"]
    .apply(lambda b: pd.Series(np.histogram(b, bins)[0], index=bins[:-1].round(2)))
)
names = ["model", "base", "bias_from"]
histogram = (
    drawn.rename("sentences").rename_axis(names).reset_index()
    if len(drawn)
    else pd.DataFrame(columns=[*names, "sentences"])
)
stage.figure("distribution", figures.plot_scores(histogram))
_ = stage.table("histogram", histogram)

# %% [markdown] tags=["slide"]
# Most scores lie on the male side, and the base models differ. The next table counts the verdicts under the paper's rules: above .5 is *male*, below is *female*.

# %% tags=["nbval-ignore-output"]
scores = scored()
save_parquet(scores, stage.path("scores.parquet"))
own = of_filter(scores)
VERDICTS_OF = ["male", "female", "even", "no gendered word", "one gender alone"]
VERDICTS_OF += ["below the threshold"]
by_verdict = own.groupby(["model", "base", "verdict"], sort=False)
counts = by_verdict.size().unstack(fill_value=0)
counts = counts.reindex(columns=VERDICTS_OF, fill_value=0)
means = own.groupby(["model", "base", "verdict"])["bias"].mean().unstack()
means = means.reindex(columns=["male", "female"]).add_prefix("mean_")
distribution = stage.table("distribution", counts.join(means).reset_index())
in_words(
    distribution,
    {name: name for name in ("model", "base", "male", "female", "below the threshold")}
    | {"no gendered word": "no gendered word", "base": "base model"}
    | {"mean_male": "mean, male", "mean_female": "mean, female"},
)

# %% [markdown]
# Each row adds up to all 156 sentences. Do the paper's counts for BERT?

# %%
printed = read_table(own_material / "paper_numbers.csv").set_index("id")["value"]
of_verdicts = ("male", "female", "discarded")
sums = {
    name: int(sum(printed[f"{name}_{verdict}"] for verdict in of_verdicts))
    for name in ("uncased", "cased")
}
assert sums == {"uncased": 640, "cased": 663} and round(602 / 663, 4) == 0.908
print(f"BERT-uncased {sums['uncased']}, BERT-cased {sums['cased']}, of 663")

# %% [markdown] tags=["slide"]
# For BERT-uncased, 23 sentences are missing.
#
# ### How sure are we?
# A model that takes a *person* for a man does so in all sentences about a person. Such sentences are not independent, so we resample nouns. Base models differ, too, and are
# too few to resample: their mean gets a t interval. Both together give the *honest* interval. First we average runs of the same base model.

# %%
codes = {name: i for i, name in enumerate(sorted(scores["antecedent"].unique()))}


def by_base(frame, values):
    """Means over the runs from one base model: a row per model, base and sentence."""
    key = ["model", "base", "part", "sentence_id", "antecedent", "slot"]
    rows = frame.groupby(key, sort=False, observed=True)[values].mean().reset_index()
    rows = rows.rename(columns={"base": "seed", "sentence_id": "row_id"})
    return rows.assign(sentence_idx=rows["antecedent"].map(codes))


# %% [markdown]
# A *naive* interval uses one base model, and takes every sentence as independent.

# %% tags=["nbval-ignore-output", "slide"]
own = by_base(of_filter(scores), ["bias"]).dropna(subset="bias")
honest = stats.estimates(own, ["model"], "bias", **how)
first = own[own["seed"] == own.groupby("model")["seed"].transform("min")]
first = first.assign(sentence_idx=first["row_id"])
naive = stats.estimates(first, ["model"], "bias", **how)
intervals = honest[
    ["model", "estimate", "low", "high", "n", "n_sentences", "n_seeds"]
].rename(
    columns={"estimate": "bias", "n_sentences": "antecedents", "n_seeds": "trainings"}
)
intervals["naive_low"], intervals["naive_high"] = naive["low"], naive["high"]
widths = [intervals[f"{kind}high"] - intervals[f"{kind}low"] for kind in ("", "naive_")]
intervals["wider"] = widths[0] / widths[1]
in_words(
    stage.table("intervals", intervals).round({"wider": 1}),
    {"model": "model", "bias": "mean score", "low": "from", "high": "to"}
    | {"naive_low": "naive from", "naive_high": "naive to", "wider": "times as wide"},
)

# %% [markdown] tags=["slide"]
# The honest interval is several times as wide. Does the mean hide a difference between slots, as between *he* and *his*?

# %% tags=["nbval-ignore-output"]
of_base = own[own["model"] == "base"]
columns = ["slot", "estimate", "low", "high", "n"]
by_slot = (
    stats.estimates(of_base, ["slot"], "bias", **how)
    if len(of_base)
    else pd.DataFrame(columns=columns)
)
in_words(
    stage.table("slots", by_slot[columns].rename(columns={"estimate": "bias"})),
    {"slot": "slot", "bias": "mean score", "low": "from", "high": "to"}
    | {"n": "sentence × base model"},
)

# %% [markdown]
# The means differ, but the intervals overlap widely.
#
# ## 3 · Two checks of the code
#
# Swapping the pronoun before it is masked must not change the masked sentence.

# %%
other = {"F": "M", "M": "F"}
swapped = [
    (with_gender(s.words, s.at, s.slot, other[s.gender]), s)
    for s in sentences.itertuples()
]
assert all(masked_words(words, s.at) == list(s.masked) for words, s in swapped)
assert all(words != list(s.words) for words, s in swapped)
print(f"{len(swapped)} sentences swapped, {len(swapped)} masked sentences unchanged")

# %% [markdown]
# And if the two genders exchange their probabilities, a score of .7 must become .3.

# %%
sides = {"p_M": "p_F", "p_F": "p_M", "rank_M": "rank_F", "rank_F": "rank_M"}
there, back = (
    judge_sentences(table, 10, 0.0, "full_vocab")["bias"]
    for table in (toy, toy.rename(columns=sides))
)
assert np.allclose(back, 1 - there) and bias_score(0.2, 0.2) == 0.5
print("mirrored")

# %% [markdown] tags=["slide"]
# ## 4 · What if we interpret the paper's rules differently?
#
# Each row changes one setting. `k` and `missing` matter only for sentences in which a gender is missing among the `k` likeliest words. The threshold discards most of these anyway, so it is 0 in the
# rows that change `k` or `missing`.

# %% tags=["nbval-ignore-output", "slide"]
NO_THRESHOLD = {"threshold": 0.0}
CHANGES = [("as set", {}, forms)]
CHANGES += [(f"threshold {t}", {"threshold": t}, forms) for t in (0.0, 0.01, 0.1)]
CHANGES += [
    (f"threshold 0, k = {n}", {"k": n} | NO_THRESHOLD, forms) for n in (3, 5, 20, 100)
]
CHANGES += [
    (f"threshold 0, missing: {m}", {"missing": m} | NO_THRESHOLD, forms)
    for m in ("zero", "full_vocab")
]
CHANGES += [(f"compared: {c}", {"compared": c}, forms) for c in ("larger", "sum")]
CHANGES += [(f"delta {d}", {"delta": d}, forms) for d in (0.02, 0.05, 0.1)]
CHANGES += [(f"words: {kind}", {}, kind) for kind in ("pronouns", "identities", "slot")]
rows = []
for name, rules, kind in CHANGES:
    found = scored(rules, kind).query("model == 'base' and part != 'winogender'")
    kept, n = found[found["bias"].notna()], max(1, found["base"].nunique())
    rows.append(
        {
            "option": name,
            "kept": len(kept) / n,
            "discarded": (len(found) - len(kept)) / n,
            "bias": kept["bias"].mean(),
            "male": (kept["verdict"] == "male").mean(),
            "even": (kept["verdict"] == "even").mean(),
        }
    )
sensitivity = pd.DataFrame(rows)
stage.figure("sensitivity", figures.plot_sensitivity(sensitivity))
_ = stage.table("sensitivity", sensitivity)

# %% [markdown] tags=["slide"]
# The mean score is always above .5. The threshold matters most: a high one discards scores near 0 and 1, and so pulls the mean towards .5.
#
# So we report two means: over the kept sentences, and over all.

# %% tags=["nbval-ignore-output"]
rows = []
for name, rules in (("kept by the discard rules", {}), ("all", NO_DISCARDS)):
    found = of_filter(scored(rules))
    found = by_base(found[found["model"] == "base"], ["bias"]).dropna(subset="bias")
    sizes = found.groupby("seed").size()
    mean = stats.estimate(found, "bias", **how)
    rows.append(
        {"convention": name, "bias": mean.estimate, "low": mean.low, "high": mean.high}
        | {"fewest": sizes.min(), "most": sizes.max(), "bases": len(sizes)}
    )
in_words(
    stage.table("conventions", pd.DataFrame(rows)),
    {"convention": "mean over", "bias": "mean score", "low": "from", "high": "to"}
    | {"fewest": "fewest sentences", "most": "most sentences", "bases": "base models"},
)

# %% [markdown] tags=["slide"]
# With two base models these intervals are very wide, and both contain .5 (at `cpu`, with five, neither does).
#
# ## 5 · Did fine-tuning help?
#
# From here on no sentence is discarded: a rule might discard others after fine-tuning than before. For every sentence we compute
#
# - its *distance*: how far its score is from .5, on either side;
# - its *spread*: how far its score is from the median of its model.
#
# If only the distance falls, a general preference for *he* is weaker, but nouns differ as before.


# %%
def without_discards(of):
    """Scores of all sentences, with the distance and the spread."""
    every = scored(NO_DISCARDS, of=of)
    every["distance"] = (every["bias"] - 0.5).abs()
    of_training = every.groupby(["model", "base", "seed", "part"])["bias"]
    every["spread"] = (every["bias"] - of_training.transform("median")).abs()
    return by_base(every, ["bias", "distance", "spread"])


def difference(quantity, part, left, right, of):
    """One comparison: the difference, its interval, its range, what is detectable."""
    sides = [of[(of["model"] == name) & (of["part"] == part)] for name in (left, right)]
    pairs = stats.paired_differences(*sides, quantity)
    found = stats.estimate(pairs, "difference", **how)
    single = pairs.groupby("seed")["difference"].mean()
    return {
        "quantity": quantity,
        "part": part,
        "left": left,
        "right": right,
        "difference": found.estimate,
        "low": found.low,
        "high": found.high,
        "smallest": single.min(),
        "largest": single.max(),
        "n_bases": found.n_seeds,
        "detectable": (found.high - found.low) / 2 + 0.84 * found.standard_error,
    }


# %% [markdown]
# The last entry that `difference` returns is the *detectable* difference: a true difference that we would find with a power of 80 %. To exclude zero, an estimate must exceed half the width of its
# interval. If the true difference is .84 standard errors larger than this half width, 80 % of the estimates exceed it.
#
# We compare on held-out nouns, and on Winogender if available.

# %%
full, gated = without_discards(shown), without_discards(passed)
PAIRS = [
    ("augmented", "base"),
    ("placebo", "base"),
    ("augmented", "placebo"),
    ("even placebo", "placebo"),
    ("augmented", "even placebo"),
]
measured_on = [p for p in ("held out", "winogender") if p in set(full["part"])]


def differences(of, parts=measured_on):
    """All comparisons, for the runs in a table."""
    return pd.DataFrame(
        [
            difference(quantity, part, *pair, of)
            for quantity in ("distance", "spread")
            for part in parts or ["held out"]
            for pair in PAIRS
        ]
    )


# %% [markdown] tags=["slide"]
# The figure shows the differences in distance, for all runs that were started.

# %% tags=["nbval-ignore-output", "slide"]
power = differences(full)
stage.figure("power", figures.plot_changes(power))
_ = stage.table("power", power)

# %% [markdown] tags=["slide"]
# A mark left of zero means: closer to even. Here every interval contains zero, so nothing is decided. We save the same for the runs that passed the gate.

# %% tags=["nbval-ignore-output"]
_ = stage.table("power_gated", differences(gated))

# %% [markdown]
# Every run passed here, so the numbers are the same. The means of each arm:

# %% tags=["nbval-ignore-output"]
is_other = (full["part"] == "held out") & (full["antecedent"] != "person")
measured = pd.concat(
    [full, full[is_other].assign(part="held out, not person")], ignore_index=True
)
quantities = ("bias", "distance", "spread")
arms = pd.concat(
    [
        stats.estimates(measured, ["part", "model"], value, **how).assign(
            quantity=value
        )
        for value in quantities
    ],
    ignore_index=True,
)
cells = pd.MultiIndex.from_product(
    [quantities, measured["part"].unique(), ["base", *ARMS]],
    names=["quantity", "part", "model"],
)
columns = ["estimate", "low", "high", "n", "n_sentences", "n_seeds"]
arms = arms.set_index(cells.names)[columns].reindex(cells).reset_index()
arms = arms.rename(columns={"n_seeds": "n_bases"})
wide = stage.table("arms", arms).pivot(
    index=["quantity", "part"], columns="model", values="estimate"
)
wide = wide[["base", *ARMS]].reset_index()
wide = wide.replace(GROUPS | {"bias": "bias score"})
in_words(
    wide, {"quantity": "mean of", "part": "nouns"} | {m: m for m in ["base", *ARMS]}
)

# %% [markdown]
# In the captions of scale `cpu`, *person* is the most frequent noun, so one row of each mean leaves it out. We save such differences:

# %%
without = differences(measured, ["held out, not person"])
_ = stage.table("power_without_person", without)

# %% [markdown]
# Next we split the change from *base* to *augmented* into three
# steps: to *placebo* (more fine-tuning), on to *even placebo* (the even share of pronouns), and on to *augmented* (the swap).

# %% tags=["nbval-ignore-output"]
table = arms[arms["quantity"] != "bias"].pivot(
    index=["quantity", "part"], columns="model", values="estimate"
)
table = table.reindex(columns=["base", *ARMS])
changes = pd.DataFrame(
    {
        "before_after": table["augmented"] - table["base"],
        "placebo": table["placebo"] - table["base"],
        "even_share": table["even placebo"] - table["placebo"],
        "swap": table["augmented"] - table["even placebo"],
    }
)
in_words(
    stage.table("changes", changes.reset_index()).replace(GROUPS),
    {"quantity": "change of", "part": "nouns", "before_after": "in all"}
    | {"placebo": "by more fine-tuning", "even_share": "by the even share"}
    | {"swap": "by the swap"},
)

# %% [markdown]
# What does fine-tuning cost?

# %% tags=["nbval-ignore-output"]
price = (
    costs.groupby("model", sort=False)
    .agg(
        perplexity=("perplexity", "mean"),
        right_first=("right_first", "mean"),
        trainings=("passes", "size"),
        passed=("passes", "sum"),
    )
    .reset_index()
)
price = stage.table("price", price)
in_words(
    price.assign(model=price["model"].map(MODELS)),
    {"model": "model", "perplexity": "perplexity", "right_first": "right at the gate"}
    | {"trainings": "runs", "passed": "of these pass"},
)

# %% [markdown]
# Right answers at the gate fall by about .015 (at `cpu` by less). Perplexity falls (at `cpu` it rises by one).
#
# ## 6 · Association tests
#
# The word-embedding association test (WEAT, Caliskan et al. 2017) has four lists. In its test 7 they are words such as *algebra* (X) and *poetry* (Y), male words (A) and female words (B). A word's
# association is its mean similarity to A minus that to B:
#
# $$s(w, A, B) = \mathrm{mean}_{a \in A} \cos(w, a) - \mathrm{mean}_{b \in B} \cos(w, b)$$
#
# $$s(X, Y, A, B) = \sum_{x \in X} s(x, A, B) - \sum_{y \in Y} s(y, A, B)$$
#
# The effect size $d$ is the difference of the mean associations of X and Y, divided by the standard deviation over all their words. The p value is the share of all ways to halve these words, the
# *partitions*, that have a larger s. By hand: A and X point right, B and Y point up. No partition has a larger s, so p is 0.

# %%
right, up = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
test = weat(np.repeat(right, 3, 0), np.repeat(up, 3, 0), right, up, ddof=0)
assert test.s == 6 and test.d == 2 and test.p == 0 and test.n_partitions == 20
assert association(right, right, up).item() == 1
print(f"s = {test.s:.0f}, d = {test.d:.0f}, p = {test.p:.0f}")

# %% [markdown]
# This is the test:

# %%
show_source(weat)

# %% [markdown]
# Stage 3 kept three kinds of vectors: `input` (token embeddings), `encoder` (the encoder's last layer) and `template` (the same layer, for a sentence around the text). We use the lists of WEAT tests 6,
# 7 and 8 in `material/weat.yaml`, not compared with the original files.

# %%
lists = read_yaml(own_material / "weat.yaml")
vectors = load_parquet(stage.input("03_attribution", "vectors.parquet"))
groups = list(vectors.groupby(["vectors", "kind"]))
lookup = {key: np.stack(part["vector"].to_list()) for key, part in groups}
place = {key: {text: i for i, text in enumerate(part["text"])} for key, part in groups}


def vectors_of(kind, what, texts):
    """The vectors of some words, phrases or sentences."""
    return lookup[kind, what][[place[kind, what][text] for text in texts]]


KINDS = ("input", "encoder", "template")
rows = []
for name, lists_of in lists.items():
    check_lists({part: lists_of[part] for part in "XYAB"}, [("X", "Y"), ("A", "B")])
    for kind in KINDS:
        parts = [vectors_of(kind, "word", lists_of[part]) for part in "XYAB"]
        found = weat(*parts, ddof=ddof, seed=seed)
        rows.append(
            {"test": name, "vectors": kind, "d": found.d, "p": found.p}
            | {"n_partitions": found.n_partitions}
            | {f"published_{x}": lists_of[x] for x in "dp"}
        )
weats = pd.DataFrame(rows)
assert (weats["n_partitions"] == 12870).all()
print(f"{len(lists)} tests, {len(KINDS)} kinds of vectors")

# %% [markdown]
# Swapping A and B must change the sign; shuffled lists must give about zero on average.

# %%
parts = [vectors_of("input", "word", lists["weat_7"][part]) for part in "XYAB"]
there, back = weat(*parts), weat(parts[0], parts[1], parts[3], parts[2])
assert np.isclose(there.d, -back.d) and np.isclose(there.s, -back.s)
generator = np.random.default_rng(seed)
mixed = [
    weat(both[:8], both[8:], *parts[2:]).d
    for both in (generator.permutation(np.concatenate(parts[:2])) for _ in range(20))
]
assert abs(np.mean(mixed)) < 0.5
print("d changes its sign; over 20 shuffles it is near zero on average")

# %% [markdown]
# ### Phrases
# > "we extend the target word sets by adding a kind of phrase sets" (section 2.1)
#
# Half of the 36 phrases are usually said of men, such as *knocks the fighter down*, half of women, such as *wears a revealing dress*. These two are the paper's, the others ours. A and B are those of
# test 7 without pronouns, because the bias score is made of pronouns.

# %%
asked = load_parquet(stage.input("03_attribution", "phrases.parquet"))
asked["bias"] = bias_score(asked["p_M"], asked["p_F"])
gendered = {
    part: [word for word in lists["weat_7"][part] if word not in PRONOUNS]
    for part in "AB"
}
check_lists(gendered, [("A", "B")])
is_male = (asked["stereotype"] == "male").to_numpy()
on_phrases = []
for kind in KINDS:
    of_phrase = vectors_of(kind, "phrase", asked["phrase"])
    a, b = (vectors_of(kind, "word", gendered[part]) for part in "AB")
    asked[f"s_{kind}"] = association(of_phrase, a, b)
    found = weat(of_phrase[is_male], of_phrase[~is_male], a, b, ddof=ddof, seed=seed)
    on_phrases.append(
        {"vectors": kind, "d": found.d, "p": found.p}
        | {"n_partitions": found.n_partitions, "phrases": len(asked)}
    )
columns = ["phrase", "stereotype", "bias", "s_input", "s_encoder", "s_template"]
_ = stage.table("phrases", asked[columns].head(len(asked) if base_passes else 0))
print(f"{len(asked)} phrases")

# %% [markdown] tags=["slide"]
# ### Does association agree with the bias score?
# We compute rank correlations over phrases and over the filtered sentences. We chose the two groups of phrases to differ, and this alone can produce a correlation. So we
# also look within each group (*within stereotype*).


# %% tags=["nbval-ignore-output", "slide"]
def correlation(frame, first, second, cluster):
    """Spearman's rho with a cluster-bootstrap interval."""
    rng = np.random.default_rng(seed)
    groups = [part[[first, second]] for _, part in frame.groupby(cluster)]
    draws = [
        pd.concat([groups[i] for i in rng.integers(len(groups), size=len(groups))])
        .corr(method="spearman")
        .iloc[0, 1]
        for _ in range(n_bootstrap)
    ]
    low, high = np.nanquantile(draws, [alpha / 2, 1 - alpha / 2])
    rho = frame[[first, second]].corr(method="spearman").iloc[0, 1]
    found = {"rho": rho, "low": low, "high": high}
    return found | {"n": len(frame), "clusters": len(groups)}


columns = ["bias", *(f"s_{kind}" for kind in KINDS)]
ranks = asked[columns].rank()
centred = ranks - ranks.groupby(asked["stereotype"]).transform("mean")
within = asked[["phrase"]].join(centred)
units = {"phrase": asked, "phrase, within stereotype": within} if base_passes else {}
rows = [
    {"unit": unit, "vectors": kind, **correlation(part, "bias", f"s_{kind}", "phrase")}
    for unit, part in units.items()
    for kind in KINDS
]
is_explained = (full["model"] == "base") & (full["seed"] == explained_base)
on_sentences = full[is_explained & (full["part"] != "winogender")].copy()
if len(on_sentences):
    bare = vectors_of("encoder", "sentence", on_sentences["row_id"])
    a, b = (vectors_of("encoder", "word", gendered[part]) for part in "AB")
    on_sentences["s"] = association(bare, a, b)
    found = correlation(on_sentences, "bias", "s", "antecedent")
    rows.append({"unit": "sentence", "vectors": "encoder", **found})
columns = ["unit", "vectors", "rho", "low", "high", "n", "clusters"]
correlations = pd.DataFrame(rows, columns=columns)
stage.figure("correlations", figures.plot_correlations(correlations))
_ = stage.table("correlations", correlations)

# %% [markdown]
# Over sentences the two are clearly correlated. Over phrases most intervals include zero (at `cpu` none).
#
# ### The effects
# The published values of the three tests were computed with other vectors (GloVe).

# %% tags=["nbval-ignore-output"]
TESTS = {"weat_6": "6: names", "weat_7": "7: mathematics", "weat_8": "8: science"}
in_words(
    stage.table("weat", weats, digits=4).replace({"test": TESTS}),
    {"test": "test", "vectors": "vectors", "d": "effect size d", "p": "p"}
    | {"published_d": "published d", "published_p": "published p"},
)

# %% [markdown]
# With token embeddings all three effects are positive; with the other vectors some are negative. For the phrases:

# %% tags=["nbval-ignore-output"]
in_words(
    stage.table("phrase_weat", pd.DataFrame(on_phrases), digits=4),
    {"vectors": "vectors", "d": "effect size d", "p": "p"}
    | {"phrases": "phrases", "n_partitions": "partitions drawn"},
)

# %% [markdown]
# ## 7 · Claims
#
# Each claim stood in `material/claims.yaml` before the run that judges it, with its test and the smallest effect that matters. The twelve older claims are judged on the runs that passed the gate. The
# nine later ones (`started_...` and `all_captions_biased_to_male`) are judged on all runs that were started. With a single base model a claim stays undecided.


# %%
def of_paper(claim):
    """A claim of the paper, about the model that is judged."""
    if not claim.source.startswith("Ye et al., "):
        return claim
    return replace(claim, left=[{**x, "model": judged_model} for x in claim.left])


def need_trainings(claim, parts):
    """One base model decides nothing."""
    is_ours = any(left["model"] in ("base", *ARMS) for left in claim.left)
    decided = parts["verdict"].isin(["holds", "fails"])
    lonely = (parts["n_seeds"] == 1) & decided & is_ours
    why = "one training: the spread between trainings is not known"
    return parts.assign(
        verdict=parts["verdict"].mask(lonely, "undecided"),
        why=parts["why"].mask(lonely, why),
    )


def is_kept(side, of):
    """Whether rows of a model are shown at all; if not, its claims are not run."""
    is_there = (of["model"] == side["model"]).any()
    return is_there or not (probabilities["model"] == side["model"]).any()


# %% [markdown]
# We test the claims.

# %%
claims = [of_paper(c) for c in stats.read_claims(own_material / "claims.yaml")]
kept = by_base(of_filter(scored(of=passed)), ["bias"]).dropna(subset="bias")
tables = {
    "bias": kept.assign(part="filtered", is_male=(kept["bias"] > 0.5).astype(float)),
    "full": gated,
    "started": full,
    "started, filtered": of_filter(full).assign(part="filtered"),
}
parts = [
    need_trainings(c, stats.judge_contrasts(c, tables, not stage.is_practice, **how))
    for c in claims
]
rows = [stats.summarise(c, part, scale) for c, part in zip(claims, parts, strict=True)]
for claim, row in zip(claims, rows, strict=True):
    for name in ("ours", "low", "high"):
        row[name] += claim.target  # in the units of the claim
    of = passed if claim.table in ("bias", "full") else shown
    sides = (*claim.left, *claim.right)
    gone = sorted({side["model"] for side in sides if not is_kept(side, of)})
    if gone:
        row["why"] += f"; not shown: {', '.join(gone)} did not pass the gate"
_ = stage.table("contrasts", pd.concat(parts, ignore_index=True))
print(f"{len(claims)} claims, {sum(map(len, parts))} comparisons")

# %% [markdown]
# We add the numbers that the paper prints. Only the paper's arithmetic is judged; the other numbers belong to other data and models.

# %%
numbers = read_table(own_material / "paper_numbers.csv", keep_default_na=False)
HUB = {
    "uncased": "google-bert/bert-base-uncased",
    "cased": "google-bert/bert-base-cased",
}
n_all, n_filtered = steps["sentences"].iloc[[0, -2]]
OURS = {
    "n_original": n_all,
    "n_filtered": n_filtered,
    "yield": n_filtered / n_all,
    "demo_bias": bias_score(0.435, 0.195),
    "case_uncased_bias": bias_score(0.142, 0.113),
    "case_distil_bias": bias_score(0.542, 0.0305),
    "accuracy": 602 / 663,
}
COUNTED = ("male", "female", "discarded", "mean_male", "mean_female")
for name, model in HUB.items():
    for row in distribution[distribution["model"] == model].to_dict("records"):
        row["discarded"] = sum(row[reason] for reason in VERDICTS_OF[3:])
        OURS |= {f"{name}_{quantity}": row[quantity] for quantity in COUNTED}
ARITHMETIC = dict.fromkeys(
    ("demo_bias", "case_uncased_bias", "case_distil_bias"), 0.005
) | {"accuracy": 0.00005}


def beside(number):
    """One printed number and ours; arithmetic is judged by the last printed digit."""
    mine, name = float(OURS.get(number["id"], np.nan)), number["id"]
    if name in ARITHMETIC:
        holds = abs(mine - float(number["value"])) <= ARITHMETIC[name]
        why = "arithmetic on the paper's own numbers"
        verdict = stats.Verdict("holds" if holds else "fails", why)
    elif np.isnan(mine):
        verdict = stats.Verdict("not run", "the paper's model was not run")
    else:
        why = "shown beside and not judged: it depends on the sentences"
        verdict = stats.Verdict("not run", why)
    quantity = f"{number['quantity']} {number['model']}".strip()
    row = stats.claim_row(
        claims[0], verdict, scale, number["value"], mine, quantity=quantity
    )
    why = "; ".join(part for part in (verdict.why, number["note"]) if part)
    return row | {"source": number["source"], "id": name, "why": why}


print(f"{len(numbers)} printed numbers, {len(OURS)} with a number of ours beside them")

# %% [markdown]
# The sums of section 2:

# %%
for name, total in sums.items():
    counts = [f"{printed[f'{name}_{verdict}']:.0f}" for verdict in of_verdicts]
    why, n_lost = f"{' + '.join(counts)} = {total}", 663 - total
    why += f": {n_lost} sentences are missing" if n_lost else ""
    verdict = stats.Verdict("fails" if n_lost else "holds", why)
    quantity = f"sum of the counts for BERT-{name}"
    row = stats.claim_row(claims[0], verdict, scale, 663, total, quantity=quantity)
    rows.append(row | {"id": f"{name}_sum", "why": why})
# %% [markdown]
# All rows together:

# %% tags=["nbval-ignore-output"]
rows += [beside(number) for number in numbers.to_dict("records")]
table = stage.table("claims", pd.DataFrame(rows))
assert set(table["verdict"]) <= set(stats.VERDICTS)
print(f"{len(table)} rows; stage 5 shows them")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **There are few base models**, and they share one encoder. The spread between them is itself uncertain.
# - **We do not know where the bias comes from.** At scale `small` *he* and *she* are about equally frequent in the training text, yet the mean score is above .5. Part of it may come from the
#   pretrained encoder. At `cpu` most pronouns in the text are male.
# - **A score near .5 may be ignorance.** A model that cannot tell genders apart would look least biased; hence the gate. At `cpu` every model passes it.
# - **The p value of WEAT is about these words only.**
#
# ## Try it
#
# - Set `missing = "zero"` and `threshold = 0`. Which sentences come in, and what becomes of the mean?
# - Set `forms = "slot"`. Does the score of object pronouns change if *her* competes only with *him*?
#
# Exercises with checks: [page](../../docs/course/exercises/implicit_bias.md#04-metrics).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [05_figures](05_figures.ipynb) draws the figures, each with its verdict and the reason.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# The exercises stand alone: run the next cell, and none of the cells above it. Replace the three dots by your answer. The check below tells you what is wrong with an answer, and
# does not reveal the right one.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words
from lib.studies.implicit_bias.weat import association

interval = read_committed("implicit_bias", "cpu", "04_metrics", "intervals")
changes = read_committed("implicit_bias", "cpu", "04_metrics", "changes")
changes = changes.query("quantity == 'distance' and part == 'held out'")
changes = changes.replace({"held out": "held-out nouns"})
human = {"model": "model", "bias": "mean score", "low": "from", "high": "to"}
human |= {"naive_low": "naive from", "naive_high": "naive to"}
in_words(interval, human)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `interval` holds the mean bias score at scale `cpu` with two intervals. The honest one (*from*, *to*) is over antecedents and base models. The naive one (*naive from*, *naive to*) takes every sentence for an independent
# observation. How many times as wide is the honest one?

# %% tags=["hole"]
times_as_wide = ...

# %% tags=["solution"]
one = interval.iloc[0]
times_as_wide = (one["high"] - one["low"]) / (one["naive_high"] - one["naive_low"])

# %% tags=["check"]
row = interval.iloc[0]
honest, naive = row["high"] - row["low"], row["naive_high"] - row["naive_low"]
check_number(
    times_as_wide,
    honest / naive,
    {"that is the other way round.": naive / honest},
    "Two differences, and a quotient.",
    tolerance=0.2,
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# Fine-tuning on swapped sentences brings the scores closer to even. The table below has the change of the distance from even, at scale `cpu`; a negative one means closer. *In all* compares with the untouched model.
# The other columns split this change into three parts: what more fine-tuning does (the placebo), what an even share of pronouns adds, and what the swap adds. Why is it not enough to compare with the untouched model?
#
# - `"a"` Because the untouched model was not measured.
# - `"b"` Because further fine-tuning on such sentences may move the scores, with or without a swap.
# - `"c"` Because the placebo makes the scores worse.

# %% tags=["exercise"]
in_words(
    changes,
    {"part": "change of the distance", "before_after": "in all"}
    | {"placebo": "by more fine-tuning (placebo)"}
    | {"even_share": "by the even share", "swap": "by the swap"},
)

# %% tags=["hole"]
why = ...  # "a", "b" or "c"

# %% tags=["solution"]
why = "b"

# %% tags=["check"]
parts = changes.iloc[0]
assert abs(parts["placebo"]) < 0.01
check_choice(
    why,
    "b",
    {
        "a": "The column in all is that comparison.",
        "c": "Next to nothing stands below placebo; only measuring it told us.",
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Write a function
#
# Write the association of one word with two lists: the mean cosine with the vectors in `A`, minus the mean cosine with those in `B`. `w` is a list of numbers, `A` and `B` are lists of such lists.


# %% tags=["hole"]
def association_of(w, A, B):
    """A number from -2 to 2."""
    return ...


# %% tags=["solution"]
def association_of(w, A, B):
    """A number from -2 to 2."""

    def cosine(u, v):
        return np.dot(u, v) / np.linalg.norm(u) / np.linalg.norm(v)

    return np.mean([cosine(w, a) for a in A]) - np.mean([cosine(w, b) for b in B])


# %% tags=["check"]
def expected(w, A, B):
    """By the library."""
    return association(np.array([w], float), np.array(A, float), np.array(B, float))[0]


check_function(
    association_of,
    expected,
    {
        "The word lies on A and at a right angle to B.": [[1, 0], [[1, 0]], [[0, 1]]],
        "Length does not count, only direction.": [[5, 0], [[2, 0]], [[0, 3]]],
        "First a cosine with each word, then the mean of the cosines.": [
            [1, 1],
            [[1, 0], [0, 1]],
            [[-1, 0]],
        ],
    },
)
