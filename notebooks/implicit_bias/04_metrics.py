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
# # implicit_bias, stage 4 of 5: how biased is it, how sure are we, and did training help?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb)
#
# The masks are filled. This stage makes bias scores of the probabilities, with every rule that the paper leaves open as a parameter, puts intervals on the means, judges the training
# arms, and computes what the paper defines and does not compute: the association test with phrases, and whether it agrees with the scores.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - bias(s), the discard rules, and what they do to the result;
# - why 700 sentences are fewer observations than one would think;
# - whether swapped pronouns reduce the bias on sentences about other nouns, beside two placebos, and what this design could find at all;
# - word, phrase and sentence association, and its correlation with bias(s).
#
# **You can then** compare an honest with a naive interval, split a change by placebos, and compute an association.
# **You need** [stage 3](03_attribution.ipynb), and what an interval is. **Time:** 25 minutes to read, under a minute
# to run, 15 minutes for the exercises.
#
# | in | from | holds |
# |---|---|---|
# | `sentences.parquet`, `steps.csv` | 01 | the sentences that passed, the counts of the filter |
# | `gate.csv`, `arms.csv` | 02 | whether a model may be shown; perplexities |
# | `probabilities.parquet`, `vectors.parquet`, `phrases.parquet` | 03 | p and rank by gender; vectors |
#
# | out | holds |
# |---|---|
# | `scores.parquet`, `distribution`, `intervals`, `slots` | bias(s), and its summary with intervals |
# | `sensitivity`, `conventions` | what the open points do; the mean score by two conventions |
# | `arms`, `changes`, `power`, `power_gated`, `contrasts`, `claims` | the training arms; comparisons, and what they could find; claims with verdict and reason |
# | `weat`, `phrases`, `correlations` | the association tests |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib import stats
from lib.core.files import load_parquet, read_table, read_yaml, save_parquet
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.metrics.masked_pronoun import apply_rule, bias_score, judge_sentences
from lib.plots import COLOURS, STYLE
from lib.studies.implicit_bias.kept_models import may_be_shown
from lib.studies.implicit_bias.sentences import masked_words, with_gender
from lib.studies.implicit_bias.weat import association, check_lists, weat

# %% [markdown]
# ## Settings
#
# The paper gives no value of delta; its counts have no neutral class, which fits delta = 0.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # resamples and sampled partitions
n_threads = 1  # CPU threads
k = 10  # likeliest words that are looked at
delta = 0.0  # scores within 0.5 +- delta are even
threshold = 0.05  # a probability below this leads to a discard
missing = "discard"  # one gender alone among the k words: discard, zero or full_vocab
# what must reach the threshold: each gender, the larger one, or their sum
compared = "each"
forms = "pronouns"  # words of a gender: pronouns, identities, or slot (the two forms that fit)
ddof = 1  # the standard deviation in the effect size: 1 sample, 0 population
n_bootstrap = 500  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha
judged_model = "base"  # the model on which the paper's claims are judged: base, or the name of a hub model

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | bias(s) | P(s\|m) / (P(s\|m) + P(s\|f)), eq. 1 | `bias` |
# | $\delta$ | half the width of the even zone | `delta` |
# | $s(w, A, B)$ | mean cosine of $w$ with A minus that with B | `association` |
# | $s(X, Y, A, B)$, $d$, $p$ | the test's statistic, effect size, one-sided p | `weat` |

# %%
stage = open_stage("implicit_bias", scale, "04_metrics")
set_up(seed, n_threads)
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
sentences = load_parquet(stage.input("01_data_generation", "sentences.parquet"))
steps = pd.read_csv(stage.input("01_data_generation", "steps.csv"))
gates = pd.read_csv(stage.input("02_training", "gate.csv"))
costs = pd.read_csv(stage.input("02_training", "arms.csv"))
probabilities = load_parquet(stage.input("03_attribution", "probabilities.parquet"))
ARMS = ["placebo", "even placebo", "augmented"]
print(
    f"{probabilities['sentence_id'].nunique()} sentences, {probabilities['antecedent'].nunique()} antecedents, "
    f"{probabilities['model'].nunique()} models"
)

# %% [markdown]
# Every model and every training of an arm was put through the gate of stage 2. The results are first those of *all* trainings that were started, for whoever leaves out the ones that went wrong
# compares what is left; what passed the gate stands beside them (`power_gated`). A model of the hub that fails is left out, and `scores` says what becomes of each.

# %% tags=["nbval-ignore-output"]
whole = gates[~gates["model"].isin(["untrained head", "without frames"])].assign(
    seed=-1
)
tested = pd.concat([whole, costs[costs["model"].isin(ARMS)]], ignore_index=True)[
    ["model", "base", "seed", "right_first", "perplexity", "unigram", "passes"]
]
passed = may_be_shown(probabilities, tested)
is_started = probabilities["model"].isin(["base", *ARMS])
shown = probabilities[is_started | probabilities.index.isin(passed.index)]
passing = tested.loc[(tested["model"] == "base") & tested["passes"], "base"]
base_passes, explained_base = (
    len(passing) > 0,
    int(passing.min()) if len(passing) else 0,
)
tested["scores"] = [
    "shown"
    if row.passes
    else f"not shown: gate {row.right_first:.2f}"
    if row.model not in ("base", *ARMS)
    else f"among all trainings alone: gate {row.right_first:.2f}"
    for row in tested.itertuples()
]
stage.table("shown", tested)

# %% [markdown]
# ## 1 · Four sentences by hand
#
# With k = 10 and 5 %: he .435, she .195 is male with .69. His .142 and her .113 is male with .557. His .542 and her .0305: *her* is below 5 %, so the paper's rule would discard it, although
# it is the paper's own example (with 0.95). And a sentence with *she* alone among the ten has no second probability to compare with.

# %%
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
assert (
    judge_sentences(toy, 10, 0.05, compared="larger")["bias"].round(3).iloc[2] == 0.947
)
judged.round(3).astype(object).fillna("")

# %% [markdown]
# *Reading it.* The paper's case study for DistilBERT contradicts "a gender identity possibility less than 5 %" if each gender must reach it; it fits if the larger one
# must. Both readings are kept, and section 4 shows what they do.
#
# ## 2 · The scores
#
# The rules in one function:

# %%
show_source(apply_rule)

# %% [markdown]
# All models, with the rules as set. *How to read the table:* sentences by verdict, and the mean score of the male and of the female ones. The arms have a section of their own (5), for they were trained on
# some of these sentences.


# %% tags=["nbval-ignore-output"]
def scored(rules=None, kind=forms, of=shown):
    """bias(s) and verdict for every sentence and model; `rules` replace single settings."""
    chosen = {
        "k": k,
        "threshold": threshold,
        "missing": missing,
        "compared": compared,
        "delta": delta,
    } | (rules or {})
    part = of[of["forms"] == kind].reset_index(drop=True)
    return part.join(judge_sentences(part, **chosen))


scores = scored()
save_parquet(scores, stage.path("scores.parquet"))


def of_filter(frame):
    """The filtered sentences, and the models that were trained on none of them."""
    return frame[(frame["part"] != "winogender") & ~frame["model"].isin(ARMS)]


own = of_filter(scores)
VERDICTS_OF = [
    "male",
    "female",
    "even",
    "no gendered word",
    "one gender alone",
    "below the threshold",
]
counts = (
    own.groupby(["model", "base", "verdict"], sort=False)
    .size()
    .unstack(fill_value=0)
    .reindex(columns=VERDICTS_OF, fill_value=0)
)
means = (
    own.groupby(["model", "base", "verdict"])["bias"]
    .mean()
    .unstack()
    .reindex(columns=["male", "female"])
    .add_prefix("mean_")
)
distribution = stage.table("distribution", counts.join(means).reset_index())
distribution.astype(object).fillna("")

# %% [markdown]
# The paper's numbers are of this kind, and they contradict each other: 542 + 65 + 33 = 640 for BERT-uncased, with 663 sentences; for BERT-cased the sum is right.

# %%
printed = read_table(material("implicit_bias") / "paper_numbers.csv").set_index("id")[
    "value"
]
sums = {
    name: int(
        sum(printed[f"{name}_{verdict}"] for verdict in ("male", "female", "discarded"))
    )
    for name in ("uncased", "cased")
}
assert sums == {"uncased": 640, "cased": 663} and round(602 / 663, 4) == 0.908
sums

# %% [markdown]
# ### How sure?
# Sentences about one noun are no independent observations: a model that thinks of a *person* as male thinks so in all of them. So antecedents are resampled, not sentences.
# And another training of the model would have other scores. So a row of what follows is a sentence, an antecedent and a training of the base model:

# %%
codes = {name: i for i, name in enumerate(sorted(scores["antecedent"].unique()))}


def by_base(frame, values):
    """One row a model, base training and sentence (the mean over trainings from that base), as lib.stats.estimates wants it: `seed` is the base."""
    key = ["model", "base", "part", "sentence_id", "antecedent", "slot"]
    rows = (
        frame.groupby(key, sort=False, observed=True)[values]
        .mean()
        .reset_index()
        .rename(columns={"base": "seed", "sentence_id": "row_id"})
    )
    return rows.assign(sentence_idx=rows["antecedent"].map(codes))


# %% [markdown]
# The honest interval is over antecedents and over trainings; the naive one takes every sentence of the first training for an observation. `wider` is how much wider the honest one is.

# %% tags=["nbval-ignore-output"]
own = by_base(of_filter(scores), ["bias"]).dropna(subset="bias")
honest = stats.estimates(own, ["model"], "bias", **how)
first = own[own["seed"] == own.groupby("model")["seed"].transform("min")]
naive = stats.estimates(
    first.assign(sentence_idx=first["row_id"]), ["model"], "bias", **how
)
intervals = honest[
    ["model", "estimate", "low", "high", "n", "n_sentences", "n_seeds"]
].rename(
    columns={"estimate": "bias", "n_sentences": "antecedents", "n_seeds": "trainings"}
)
intervals["naive_low"], intervals["naive_high"] = naive["low"], naive["high"]
intervals["wider"] = (intervals["high"] - intervals["low"]) / (
    intervals["naive_high"] - intervals["naive_low"]
)
stage.table("intervals", intervals)

# %% [markdown]
# *Reading it.* Where a handful of nouns makes up most of the sentences (*person* in the captions), and where trainings differ, the honest interval is several times as wide.
#
# ### By slot
# Is *he* preferred as a subject and not as a possessive? A mean over slots hides it.

# %% tags=["nbval-ignore-output"]
of_base = own[own["model"] == "base"]
by_slot = (
    stats.estimates(of_base, ["slot"], "bias", **how)
    if len(of_base)
    else pd.DataFrame(columns=["slot", "estimate", "low", "high", "n"])
)
stage.table(
    "slots",
    by_slot[["slot", "estimate", "low", "high", "n"]].rename(
        columns={"estimate": "bias"}
    ),
)

# %% [markdown]
# ## 3 · A control: which pronoun was it?
#
# A masked sentence does not know which pronoun it had. So swapping the pronoun in the input must leave the masked sentence, and with it the score, as they are. That is so by construction; the check
# is on the code.

# %%
other = {"F": "M", "M": "F"}
swapped = [
    with_gender(s.words, s.at, s.slot, other[s.gender]) for s in sentences.itertuples()
]
assert all(
    masked_words(words, s.at) == list(s.masked)
    for words, s in zip(swapped, sentences.itertuples())
)
assert all(words != list(s.words) for words, s in zip(swapped, sentences.itertuples()))
print(f"{len(swapped)} sentences swapped, {len(swapped)} masked sentences unchanged")

# %% [markdown]
# And a second one: if the genders of the probabilities are exchanged, a score becomes one minus itself.

# %%
mirrored = toy.rename(
    columns={"p_M": "p_F", "p_F": "p_M", "rank_M": "rank_F", "rank_F": "rank_M"}
)
assert np.allclose(
    judge_sentences(mirrored, 10, 0.0, "full_vocab")["bias"],
    1 - judge_sentences(toy, 10, 0.0, "full_vocab")["bias"],
)
assert bias_score(0.2, 0.2) == 0.5
print("mirrored")

# %% [markdown]
# ## 4 · What the open points do
#
# One at a time, the base models alone (means over their trainings); what is about single genders (`k`, `missing`) is varied without the threshold, which would hide it: a word with 5 % is among the first twenty. *How to read the
# table:* `kept` sentences have a score; `male` is the share of male-biased ones among them, `even` that of sentences within delta.

# %% tags=["nbval-ignore-output"]
CHANGES = [
    ("as set", {}, forms),
    *((f"threshold {t}", {"threshold": t}, forms) for t in (0.0, 0.01, 0.1)),
    *(
        (f"threshold 0, k = {n}", {"k": n, "threshold": 0.0}, forms)
        for n in (3, 5, 20, 100)
    ),
    *(
        (f"threshold 0, missing: {m}", {"missing": m, "threshold": 0.0}, forms)
        for m in ("zero", "full_vocab")
    ),
    *((f"compared: {c}", {"compared": c}, forms) for c in ("larger", "sum")),
    *((f"delta {d}", {"delta": d}, forms) for d in (0.02, 0.05, 0.1)),
    *((f"words: {kind}", {}, kind) for kind in ("pronouns", "identities", "slot")),
]
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
stage.table("sensitivity", pd.DataFrame(rows))

# %% [markdown]
# *Reading it.* The discard rules choose which sentences are counted, and so pull the mean towards 0.5: where both genders need 5 %, a score near 0 or 1 cannot survive. *identities* changes nothing:
# where a score survives, the likeliest word of either gender is a pronoun. None of the rules makes our scores as narrow as the paper's (means of .556 and .47 on either side of 0.5,
# with 5 to 7 % discarded): that narrowness is not explained by any rule tried here.
#
# So the mean score of the base models is given by two conventions: over the sentences that the discard rules keep, each model its own, and over all of them, with probabilities from the full
# vocabulary. *How to read the table:* `fewest` and `most` are the numbers of sentences over base models.

# %% tags=["nbval-ignore-output"]
NO_DISCARDS = {"missing": "full_vocab", "threshold": 0.0, "k": 10**6}
rows = []
for name, rules in (("kept by the discard rules", {}), ("all", NO_DISCARDS)):
    found = of_filter(scored(rules))
    found = by_base(found[found["model"] == "base"], ["bias"]).dropna(subset="bias")
    sizes = found.groupby("seed").size()
    mean = stats.estimate(found, "bias", **how)
    rows.append(
        {
            "convention": name,
            "bias": mean.estimate,
            "low": mean.low,
            "high": mean.high,
            "fewest": sizes.min(),
            "most": sizes.max(),
            "bases": len(sizes),
        }
    )
conventions = pd.DataFrame(rows)
stage.table("conventions", conventions)

# %% [markdown]
# ## 5 · Did training help?
#
# The arms of stage 2 on sentences about nouns that they were not trained on, and on Winogender where it is at hand. Here no sentence is discarded: probabilities are taken from the full vocabulary, for
# a rule that discards may discard other sentences after training.


# %% tags=["nbval-ignore-output"]
def without_discards(of):
    """Scores of all sentences, with the distance from 0.5 and from the training's median."""
    every = scored(NO_DISCARDS, of=of)
    every["distance"] = (every["bias"] - 0.5).abs()
    of_training = every.groupby(["model", "base", "seed", "part"])["bias"]
    every["spread"] = (every["bias"] - of_training.transform("median")).abs()
    return every


every = without_discards(shown)
full = by_base(every, ["bias", "distance", "spread"])
gated = by_base(without_discards(passed), ["bias", "distance", "spread"])
without = full[(full["part"] == "held out") & (full["antecedent"] != "person")].assign(
    part="held out, not person"
)
measured = pd.concat([full, without], ignore_index=True)
arms = pd.concat(
    [
        stats.estimates(measured, ["part", "model"], value, **how).assign(
            quantity=value
        )
        for value in ("bias", "distance", "spread")
    ],
    ignore_index=True,
)
cells = pd.MultiIndex.from_product(
    [["bias", "distance", "spread"], measured["part"].unique(), ["base", *ARMS]],
    names=["quantity", "part", "model"],
)
arms = (
    arms.set_index(cells.names)[
        ["estimate", "low", "high", "n", "n_sentences", "n_seeds"]
    ]
    .reindex(cells)
    .reset_index()
    .rename(columns={"n_seeds": "n_bases"})
)
stage.table("arms", arms).pivot(
    index=["quantity", "part"], columns="model", values="estimate"
)

# %% [markdown]
# *How to read the table.* `bias` is the mean score; `distance` is how far the scores are from 0.5, whatever the direction; `spread` how far from the model's own median. If `distance` falls and `spread` does
# not, a general preference for male forms is gone, and the differences between nouns and contexts are as they were. *augmented* beside *base* is what somebody gains who does this. It has three parts:
# what more training on such sentences does (*placebo* beside *base*), what an even share of pronouns adds (*even placebo* beside *placebo*), and what the swap adds to that. They are claims in section 8.
# Winogender is counted without sentences that hold a noun an arm was trained on, and only where the pronoun is the occupation's; its clusters are occupations. (A first count took the sentences about the
# other person, too: augmented minus placebo was -.054 [-.099, -.008] then, and the claim held.) The trainings of an arm from one base model are averaged, and the intervals are over
# antecedents and base models.
#
# In numbers:

# %% tags=["nbval-ignore-output"]
table = (
    arms[arms["quantity"] != "bias"]
    .pivot(index=["quantity", "part"], columns="model", values="estimate")
    .reindex(columns=["base", *ARMS])
)
changes = pd.DataFrame(
    {
        "before_after": table["augmented"] - table["base"],
        "placebo": table["placebo"] - table["base"],
        "even_share": table["even placebo"] - table["placebo"],
        "swap": table["augmented"] - table["even placebo"],
    }
)
stage.table("changes", changes.reset_index())

# %% [markdown]
# *An earlier run.* At scale cpu it had one base model, and of five trainings of each arm two passed the gate: augmented minus placebo was -.089 [-.295, .115] on held-out nouns and -.022 on Winogender, which
# left the question open.
#
# ### What could this design find?
# Each difference with its interval, its range over base models, and the true difference that this design would find four times in five. A difference is found if the interval excludes zero; so the
# true one must be half an interval away from zero, and by the 80 % point of the normal distribution (.84 standard errors) more.


# %%
def difference(quantity, part, left, right, of=full):
    """One difference of two models with its interval, its range over base models, and what could be detected."""
    pairs = stats.paired_differences(
        *(of[(of["model"] == name) & (of["part"] == part)] for name in (left, right)),
        quantity,
    )
    found, single = (
        stats.estimate(pairs, "difference", **how),
        pairs.groupby("seed")["difference"].mean(),
    )
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
# *How to read the table.* `smallest` and `largest` are the differences base model by base model. A difference below `detectable` may be real, and an interval that holds zero then decides nothing.

# %% tags=["nbval-ignore-output"]
PAIRS = [
    ("augmented", "base"),
    ("placebo", "base"),
    ("augmented", "placebo"),
    ("even placebo", "placebo"),
    ("augmented", "even placebo"),
]
parts_of = [
    part for part in ("held out", "winogender") if part in set(full["part"])
] or ["held out"]


def differences(of):
    """All of them, for the trainings in a table."""
    return pd.DataFrame(
        [
            difference(quantity, part, *pair, of)
            for quantity in ("distance", "spread")
            for part in parts_of
            for pair in PAIRS
        ]
    )


stage.table("power", differences(full))

# %% [markdown]
# The same for the trainings that passed the gate alone; where all passed, it is the same table.

# %% tags=["nbval-ignore-output"]
stage.table("power_gated", differences(gated))

# %% [markdown]
# And the price, from stage 2:

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
stage.table("price", price)

# %% [markdown]
# A training whose `right_first` falls below the gate has unlearnt gender where the noun fixes it, which is no gain; `passed` counts those that have not.
#
# ## 6 · Association tests
#
# $$s(w, A, B) = \mathrm{mean}_{a \in A} \cos(w, a) - \mathrm{mean}_{b \in B} \cos(w, b) \qquad s(X, Y, A, B) = \sum_{x \in X} s(x, A, B) - \sum_{y \in Y} s(y, A, B)$$
#
# By hand, in two dimensions: A points right, B up; X points right, Y up. Each x has association 1, each y has -1, and no partition has a larger statistic than the one that we see.

# %%
right, up = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
test = weat(np.repeat(right, 3, 0), np.repeat(up, 3, 0), right, up, ddof=0)
assert test.s == 6 and test.d == 2 and test.p == 0 and test.n_partitions == 20
assert association(right, right, up).item() == 1
test._asdict()

# %% [markdown]
# With lists of eight there are 12,870 partitions, and all of them are tried.

# %%
show_source(weat)

# %% [markdown]
# The word lists are those of the publication, written down in `material/weat.yaml` and not compared with the original files; the published values belong to GloVe. `input` are the mean rows of the word
# table, `encoder` the encoder's last states, `template` the same in sentence templates.

# %% tags=["nbval-ignore-output"]
lists = read_yaml(material("implicit_bias") / "weat.yaml")
vectors = load_parquet(stage.input("03_attribution", "vectors.parquet"))
lookup = {
    key: np.stack(part["vector"].to_list())
    for key, part in vectors.groupby(["vectors", "kind"])
}
names = {
    key: {text: i for i, text in enumerate(part["text"])}
    for key, part in vectors.groupby(["vectors", "kind"])
}


def of_words(kind, words):
    """The vectors of some words, one kind of them."""
    return lookup[kind, "word"][[names[kind, "word"][word] for word in words]]


rows = []
for name, lists_of in lists.items():
    check_lists({part: lists_of[part] for part in "XYAB"}, [("X", "Y"), ("A", "B")])
    for kind in ("input", "encoder", "template"):
        found = weat(
            *(of_words(kind, lists_of[part]) for part in "XYAB"), ddof=ddof, seed=seed
        )
        rows.append(
            {
                "test": name,
                "vectors": kind,
                "d": found.d,
                "p": found.p,
                "n_partitions": found.n_partitions,
                "published_d": lists_of["d"],
                "published_p": lists_of["p"],
            }
        )
weats = pd.DataFrame(rows)
assert (weats["n_partitions"] == 12870).all()
stage.table("weat", weats, digits=4)

# %% [markdown]
# Swapping A and B must turn the sign of d, and shuffled targets must give nothing:

# %%
parts = [of_words("input", lists["weat_7"][part]) for part in "XYAB"]
there, back = weat(*parts), weat(parts[0], parts[1], parts[3], parts[2])
assert np.isclose(there.d, -back.d) and np.isclose(there.s, -back.s)
generator = np.random.default_rng(seed)
mixed = [
    weat(both[:8], both[8:], *parts[2:]).d
    for both in (generator.permutation(np.concatenate(parts[:2])) for _ in range(20))
]
assert abs(np.mean(mixed)) < 0.5
print("d turns its sign with A and B; over 20 shuffles it is near zero on average")

# %% [markdown]
# ### Phrases
# > "we extend the target word sets by adding a kind of phrase sets" (section 2.1; defined, not computed)
#
# Behaviour that is usually depicted of men against behaviour that is usually depicted of women, 18 phrases each, ours but for the first of each list. There are nine billion partitions, so 20,000 are drawn.
# A and B are the terms of test 7 without its pronouns, for the probability of pronouns is what bias(s) is made of.

# %% tags=["nbval-ignore-output"]
asked = load_parquet(stage.input("03_attribution", "phrases.parquet"))
asked["bias"] = bias_score(asked["p_M"], asked["p_F"])
gendered = {
    part: [word for word in lists["weat_7"][part] if word not in PRONOUNS]
    for part in "AB"
}
check_lists(gendered, [("A", "B")])
rows = []
for kind in ("input", "encoder", "template"):
    of_phrase = lookup[kind, "phrase"][
        [names[kind, "phrase"][p] for p in asked["phrase"]]
    ]
    a, b = of_words(kind, gendered["A"]), of_words(kind, gendered["B"])
    asked[f"s_{kind}"] = association(of_phrase, a, b)
    is_male = (asked["stereotype"] == "male").to_numpy()
    found = weat(of_phrase[is_male], of_phrase[~is_male], a, b, ddof=ddof, seed=seed)
    rows.append(
        {
            "vectors": kind,
            "d": found.d,
            "p": found.p,
            "n_partitions": found.n_partitions,
            "phrases": len(asked),
        }
    )
_ = stage.table(
    "phrases",
    asked[["phrase", "stereotype", "bias", "s_input", "s_encoder", "s_template"]].head(
        len(asked) if base_passes else 0
    ),
)
stage.table("phrase_weat", pd.DataFrame(rows), digits=4)

# %% [markdown]
# ### Does association agree with bias(s)?
# The paper leaves it open "to see if it is correlated with the results computed by our method". Rank correlations, for phrases (bias in "The person ... and then [MASK] went home.") and for the filtered
# sentences (association of the sentence without its pronoun), with intervals from resampling phrases or antecedents. For phrases also *within* the two stereotypes, each centred on its mean rank: two
# groups made by hand differ in both measures, and that alone gives a correlation.


# %% tags=["nbval-ignore-output"]
def correlation(frame, first, second, cluster):
    """Spearman's rho with a cluster-bootstrap interval."""
    rng, groups = (
        np.random.default_rng(seed),
        [part[[first, second]] for _, part in frame.groupby(cluster)],
    )
    draws = [
        pd.concat([groups[i] for i in rng.integers(len(groups), size=len(groups))])
        .corr(method="spearman")
        .iloc[0, 1]
        for _ in range(n_bootstrap)
    ]
    low, high = np.nanquantile(draws, [alpha / 2, 1 - alpha / 2])
    return {
        "rho": frame[[first, second]].corr(method="spearman").iloc[0, 1],
        "low": low,
        "high": high,
        "n": len(frame),
        "clusters": len(groups),
    }


columns = ["bias", "s_input", "s_encoder", "s_template"]
ranks = asked[columns].rank()
within = asked[["phrase"]].join(
    ranks - ranks.groupby(asked["stereotype"]).transform("mean")
)
units = {"phrase": asked, "phrase, within stereotype": within} if base_passes else {}
rows = [
    {"unit": unit, "vectors": kind, **correlation(part, "bias", f"s_{kind}", "phrase")}
    for unit, part in units.items()
    for kind in ("input", "encoder", "template")
]
on_sentences = full[
    (full["model"] == "base")
    & (full["seed"] == explained_base)
    & (full["part"] != "winogender")
].copy()
bare = lookup["encoder", "sentence"][
    [names["encoder", "sentence"][i] for i in on_sentences["row_id"]]
]
on_sentences["s"] = (
    association(
        bare, of_words("encoder", gendered["A"]), of_words("encoder", gendered["B"])
    )
    if len(bare)
    else []
)
rows += (
    [
        {
            "unit": "sentence",
            "vectors": "encoder",
            **correlation(on_sentences, "bias", "s", "antecedent"),
        }
    ]
    if len(on_sentences)
    else []
)
stage.table(
    "correlations",
    pd.DataFrame(
        rows, columns=["unit", "vectors", "rho", "low", "high", "n", "clusters"]
    ),
)

# %% [markdown]
# *Reading it.* An interval that holds zero says that the two measures may have nothing to do with each other. They are taken from the same model: a correlation of this kind is the least that one should expect.
#
# ## 7 · The figure
#
# The distribution of bias(s) for the base models, without discards: bars are the mean over trainings, each line is one of them.

# %% tags=["nbval-ignore-output"]
bins = np.linspace(0, 1, 21)
drawn = (
    of_filter(every)
    .groupby(["model", "base"])["bias"]
    .apply(lambda b: pd.Series(np.histogram(b, bins)[0], index=bins[:-1].round(2)))
)
histogram = (
    drawn.rename("sentences").rename_axis(["model", "base", "bias_from"]).reset_index()
    if len(every)
    else pd.DataFrame(columns=["model", "base", "bias_from", "sentences"])
)
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(5.5, 2.4), layout="constrained")
    mine = (
        histogram[histogram["model"] == "base"]
        .pivot(index="bias_from", columns="base", values="sentences")
        .astype(float)
    )
    ax.bar(mine.index + 0.025, mine.mean(axis=1), width=0.045, color=COLOURS[0])
    ax.plot(mine.index + 0.025, mine, color="black", linewidth=0.6)
    ax.axvline(0.5, color="grey", linestyle=":")
    ax.set(xlabel="bias(s): 0 female, 1 male", ylabel="sentences", xlim=(0, 1))
stage.figure("distribution", figure)
stage.table("histogram", histogram)

# %% [markdown]
# The paper's histograms are narrow and peak near 0.55.
#
# ## 8 · Claims
#
# They were written down in `material/claims.yaml` before the run, each with its test and the smallest effect of interest. Those that were registered first rest on the trainings that passed the
# gate, as they always did; those of 2026-11-23 on all that were started. The paper's own are judged on `judged_model`. One training decides nothing:
# where a comparison rests on one base model alone, its verdict is *undecided*; a model of the hub is a fixed object and exempt.


# %%
def of_paper(claim):
    """A claim of the paper, about the model that is judged."""
    return (
        replace(claim, left=[{**left, "model": judged_model} for left in claim.left])
        if claim.source.startswith("Ye et al., ")
        else claim
    )


def need_trainings(claim, parts):
    """One base model decides nothing."""
    lonely = (
        (parts["n_seeds"] == 1)
        & parts["verdict"].isin(["holds", "fails"])
        & any(left["model"] in ("base", *ARMS) for left in claim.left)
    )
    return parts.assign(
        verdict=parts["verdict"].mask(lonely, "undecided"),
        why=parts["why"].mask(
            lonely, "one training: the spread between trainings is not known"
        ),
    )


def is_kept(side, of):
    """Whether rows of a model are shown at all; if not, its claims are not run."""
    return (of["model"] == side["model"]).any() or not (
        probabilities["model"] == side["model"]
    ).any()


claims = [
    of_paper(claim)
    for claim in stats.read_claims(material("implicit_bias") / "claims.yaml")
]
kept = by_base(of_filter(scored(of=passed)), ["bias"]).dropna(subset="bias")
tables = {
    "bias": kept.assign(part="filtered", is_male=(kept["bias"] > 0.5).astype(float)),
    "full": gated,
    "started": full,
    "started, filtered": of_filter(full).assign(part="filtered"),
}
parts = [
    stats.judge_contrasts(
        claim, tables, scale != "small", n_bootstrap=n_bootstrap, alpha=alpha, seed=seed
    )
    for claim in claims
]
parts = [need_trainings(claim, part) for claim, part in zip(claims, parts, strict=True)]
rows = [
    stats.summarise(claim, part, scale)
    for claim, part in zip(claims, parts, strict=True)
]
for claim, row in zip(claims, rows, strict=True):
    row.update(
        {name: row[name] + claim.target for name in ("ours", "low", "high")}
    )  # what is claimed and what was found in the same units
    gone = sorted(
        {
            side["model"]
            for side in (*claim.left, *claim.right)
            if not is_kept(side, passed if claim.table in ("bias", "full") else shown)
        }
    )
    row["why"] += (
        f"; not shown: {', '.join(gone)} did not pass the gate" if gone else ""
    )
_ = stage.table("contrasts", pd.concat(parts, ignore_index=True))
print(f"{len(claims)} claims, {sum(map(len, parts))} comparisons")

# %% [markdown]
# Beside them the numbers that the paper prints. They belong to SWAG and to models of the hub, so `ours` is filled only where that model was run. The arithmetic of the paper is judged, since it needs no data.

# %%
numbers = read_table(
    material("implicit_bias") / "paper_numbers.csv", keep_default_na=False
)
HUB = {
    "uncased": "google-bert/bert-base-uncased",
    "cased": "google-bert/bert-base-cased",
}
filtered = steps["sentences"].iloc[-2]
OURS = {
    "n_original": steps["sentences"].iloc[0],
    "n_filtered": filtered,
    "yield": filtered / steps["sentences"].iloc[0],
    "demo_bias": bias_score(0.435, 0.195),
    "case_uncased_bias": bias_score(0.142, 0.113),
    "case_distil_bias": bias_score(0.542, 0.0305),
    "accuracy": 602 / 663,
}
for name, model in HUB.items():
    for row in distribution[distribution["model"] == model].to_dict("records"):
        row["discarded"] = sum(row[reason] for reason in VERDICTS_OF[3:])
        OURS |= {
            f"{name}_{quantity}": row[quantity]
            for quantity in ("male", "female", "discarded", "mean_male", "mean_female")
        }
ARITHMETIC = {
    "demo_bias": 0.005,
    "case_uncased_bias": 0.005,
    "case_distil_bias": 0.005,
    "accuracy": 0.00005,
}


def beside(number):
    """One printed number beside ours; arithmetic is judged by the last printed digit."""
    mine, name = float(OURS.get(number["id"], np.nan)), number["id"]
    holds = (
        name in ARITHMETIC and abs(mine - float(number["value"])) <= ARITHMETIC[name]
    )
    absent = (
        stats.Verdict("not run", "the paper's model was not run")
        if np.isnan(mine)
        else stats.Verdict(
            "not run", "shown beside and not judged: it depends on the sentences"
        )
    )
    verdict = (
        stats.Verdict(
            "holds" if holds else "fails", "arithmetic on the paper's own numbers"
        )
        if name in ARITHMETIC
        else absent
    )
    row = stats.claim_row(
        claims[0],
        verdict,
        scale,
        number["value"],
        mine,
        quantity=f"{number['quantity']} {number['model']}".strip(),
    )
    return row | {
        "source": number["source"],
        "id": name,
        "why": "; ".join(part for part in (verdict.why, number["note"]) if part),
    }


print(f"{len(numbers)} printed numbers, {len(OURS)} with a number of ours beside them")

# %% [markdown]
# The sum of the printed counts is a row of its own.

# %% tags=["nbval-ignore-output"]
contradiction = stats.claim_row(
    claims[0],
    stats.Verdict("fails", "542 + 65 + 33 = 640: 23 sentences are missing"),
    scale,
    663,
    sums["uncased"],
    quantity="sum of the counts for BERT-uncased",
)
agrees = stats.claim_row(
    claims[0],
    stats.Verdict("holds", "575 + 43 + 45 = 663"),
    scale,
    663,
    sums["cased"],
    quantity="sum of the counts for BERT-cased",
)
rows += [
    contradiction
    | {"id": "uncased_sum", "why": "542 + 65 + 33 = 640: 23 sentences are missing"},
    agrees | {"id": "cased_sum", "why": "575 + 43 + 45 = 663"},
    *(beside(number) for number in numbers.to_dict("records")),
]
table = stage.table("claims", pd.DataFrame(rows))
assert set(table["verdict"]) <= set(stats.VERDICTS)
print(f"{len(table)} claims are judged; stage 5 shows them")

# %% [markdown]
# ## What could be wrong
#
# - **Few base models.** The intervals are over their trainings, too, and with few of them the t distribution has few degrees of freedom. They share one encoder and one text.
# - **Where the base model's bias comes from is not known.** Its text is one source (stage 1, section 8); at scale small that text is even and the model is not, so the encoder and a short
#   training make the rest. It says nothing of BERT.
# - **Scores near 0.5 may mean ignorance.** A model that cannot tell genders apart would be the least biased of all, hence the gate.
# - **The phrase lists are ours.** Another hand would write other phrases, and the effect size is about these.
# - **WEAT's p speaks of these words**, as if they were all there are.
#
# ## Try it
#
# - Set `missing = "zero"` and `threshold = 0`. Which sentences come in, and what becomes of the mean?
# - Set `forms = "slot"`. Is *her* weaker where it competes with *him* alone?
# - Take out `person` from the sentences. How does the honest interval change?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [05_figures](05_figures.ipynb) draws the figures from these tables, each with its claim, its verdict, and the reason.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.studies.implicit_bias.weat import association

interval = read_committed("implicit_bias", "cpu", "04_metrics", "intervals")
changes = read_committed("implicit_bias", "cpu", "04_metrics", "changes")
changes = changes.query("quantity == 'distance' and part == 'held out'")
interval.round(3)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `interval` holds the mean bias score at scale `cpu` with two intervals: the honest one over antecedents and trainings (`low`, `high`), and the naive one, which takes every sentence for an observation of its own. How many times as wide is the honest one?

# %% tags=["hole"]
times_as_wide = ...

# %% tags=["solution"]
times_as_wide = (0.851394 - 0.614446) / (0.716505 - 0.693836)

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
# Fine-tuning on swapped sentences brings the scores nearer to even. `changes` splits this into three parts: what more training does (`placebo`), what an even share of pronouns adds (`even_share`), what the swap adds (`swap`). Why is a comparison with the untouched model alone not enough?
#
# - `"a"` Because the untouched model was not measured.
# - `"b"` Because any further training on such sentences moves the scores, with or without a swap.
# - `"c"` Because the placebo makes the scores worse.

# %% tags=["hole"]
why = ...  # "a", "b" or "c"

# %% tags=["solution"]
why = "b"

# %% tags=["check"]
parts = changes.iloc[0]
assert parts["placebo"] < 0
check_choice(
    why,
    "b",
    {
        "a": "The column before_after is that comparison.",
        "c": "Look at the sign of placebo: nearer to even is negative.",
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Write a function
#
# Write the association of one word with two lists: the mean cosine with the vectors in `A`, minus the mean cosine with those in `B`.


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
        "Means are over the words of each list.": [[1, 1], [[1, 0], [0, 1]], [[-1, 0]]],
    },
)
