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
# # lm_saliency, stage 4 of 5: are the explanations plausible, and are they faithful?
#
# previous: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb)
#
# *Plausible*: does the explanation name the words that grammar names? *Faithful*: does it stay the same where
# the model's reason should stay the same, when a noun is replaced by another of its kind, or the model by its
# student?

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the plausibility test, in both of its scenarios, beside rules that look at no model;
# - why it does not matter which pronoun is called expected, and what to look at instead;
# - two consistencies, and why one of them cannot tell the scenarios apart under V, the plain gradient (SG: SmoothGrad, IG: Integrated Gradients);
# - the paper's claims with a verdict each, and three cells of its Table 3 that contradict their own parts.
#
# **You can then** compute plausibility in both scenarios, and judge it beside a rule of positions. **You need**
# [stage 3](03_attribution.ipynb), and what a correlation is. **Time:** 25 minutes to read, under a minute to run, 15
# minutes for the exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `sets.parquet` (1), `probes`, `knowledge`, `sweep` (2), `lines`, `pairs`, `agreement`, `shown` (3) | `plausibility`, `input_consistency`, `model_consistency` (`.csv`): one row per set, model and method, with intervals |
# | `material/paper_numbers.csv`, `material/claims.yaml` | `pronouns`, `groupings`, `sweep`, `examples`, `comparisons`, `integrity`, `claims` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import load_parquet, read_table
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.metrics.plausibility import is_plausible, pearson, plausibility
from lib.plots import COLOURS, STYLE
from lib.stats import compare_all, estimates, judge_contrasts, read_claims, summarise
from lib.studies.lm_saliency.items import SHUFFLED, lines_to_show, with_lines
from lib.studies.lm_saliency.knowledge import right_answers
from lib.studies.lm_saliency.lines import (
    load_sets,
    nearest_baseline,
    random_baseline,
    span_tokens,
)
from lib.studies.lm_saliency.released import template_groups
from lib.studies.lm_saliency.text import CLASSES

# %% [markdown]
# ## Settings
#
# `unequal` says what becomes of two lines of one template that differ in length (*taxi driver* has two
# words): `slots` compares them noun by noun and part by part, `skip` leaves the pair out, as the released
# code does. `grouping` says what a template is: as in the paper, or as in the released scripts (section 4).

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for all draws of this stage
n_threads = 1  # CPU threads
unequal = "slots"  # lines of one template but of unequal length: slots or skip
grouping = "paper"  # templates of the input consistency: paper (24 and 254) or released (12 and the first 147)
rarest = 0.1  # a model that gives one of its two answers to a smaller share of a set explains a constant there
n_bootstrap = 1000  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $\psi$ | the saliency of a word | `class_0`, `class_1` |
# | verum, malum | saliency for the class that the set expects, and for the other one | `verum`, `malum` |
# | expected, alternative | the clean prediction is the expected class, or the other | `is_expected` |
# | cluster | lines that share a template and the cue's noun (Syneval), a frame (Winobias), a sentence, a document | `sentence_idx` |
# | learnt | the probe knows its task, and its answers on *this set* are no constant (section 2) | `learnt` |
#
# The unit of all statistics is the cluster: 6280 lines of Syneval rest on ten nouns a slot. Pairs of lines (section 4)
# are drawn by template.

# %%
stage = open_stage("lm_saliency", scale, "04_metrics")
set_up(seed, n_threads)
sets = load_sets(stage.input("01_data_generation", "sets.parquet"))
probes = pd.read_csv(stage.input("02_training", "probes.csv"))
knowledge = pd.read_csv(stage.input("02_training", "knowledge.csv"))
explained = {
    name: load_parquet(stage.input("03_attribution", f"{name}.parquet"))
    for name in ("lines", "pairs", "agreement", "shown")
}
saliency = explained["lines"][explained["lines"]["method"] != SHUFFLED]
numbers = read_table(material("lm_saliency") / "paper_numbers.csv")
print(f"{len(saliency)} explanations, {len(numbers)} numbers of the paper")

# %% [markdown]
# ## 1 · One line by hand
#
# *The keys to the cabinet*, expected class plural; scores (0, 0.5, 0, 0, -0.2) for plural. The cue *keys* is
# at 1, the attractor *cabinet* at 4. If the model answers *plural*, the line is in the expected scenario and
# passes, for 0.5 > -0.2. If it answers *singular*, we look at the scores for singular, say (0, -0.5, 0, 0,
# 0.2): the attractor should lead, and it does. With equal scores nothing passes.

# %%
plural, singular = [0, 0.5, 0, 0, -0.2], [0, -0.5, 0, 0, 0.2]
assert is_plausible(plural, singular, [(1, 1)], [(4, 4)], is_expected=True)
assert is_plausible(plural, singular, [(1, 1)], [(4, 4)], is_expected=False)
assert not is_plausible([0] * 5, [0] * 5, [(1, 1)], [(4, 4)], is_expected=True)
print("three cases as expected")

# %% [markdown]
# ## 2 · Plausibility
#
# > Expected: the interpretation passes if $\max_{w \in \mathcal{C}} \psi(w) > \max_{w \in \mathcal{A}} \psi(w)$.
# > Alternative: it passes if $\max_{w \in \mathcal{C}} \psi(w) < \max_{w \in \mathcal{A}} \psi(w)$. (section 3.1)

# %%
show_source(is_plausible)

# %% [markdown]
# Stage 3 has asked this of every explanation (`plausibility`). The statistics ask for a row, its cluster, its training seed and its model.


# %%
def with_ids(table):
    """The columns that the statistics ask for."""
    ids = pd.factorize(table["dataset"] + " " + table["cluster"])[0]
    return table.assign(
        row_id=table["dataset"] + " " + table["line"].astype(str),
        sentence_idx=ids,
        seed=table["training"],
        scheme=table["architecture"],
    )


def judged(table):
    """Explanations with cluster and scenario of their lines."""
    table = with_lines(table, sets)
    says_1 = table["probability"] > 0.5
    return with_ids(table.assign(is_expected=says_1 == (table["tag"] == 1)))


passes = judged(saliency)
print(len(passes), "explanations judged;", passes["sentence_idx"].nunique(), "clusters")

# %% [markdown]
# Before any explanation: does the model's answer depend on the line at all? A probe that always says *singular* is
# right on half of Syneval, and its explanations explain a constant. So `says_1` is the share of lines where it says
# plural (female), `right_0` and `right_1` the shares of each class where it says what is expected, and `balanced` their
# mean, with an interval over clusters. A wrong answer is no reason to leave a model out: the alternative scenario was
# made for it. A constant is: `constant` marks a model that gives one of its answers to less than a tenth of the lines
# (`rarest`). A model has *learnt* a set where the interval of its AUC, on all lines, lies above one half (stage 2).
# Where there is no AUC, `balanced` must lie above one half, and in a set of one class the probe must have learnt the task.
# Explanations are ranked, and claims judged, where a model has learnt the set and is no constant.

# %%
of_model, both_sizes = (
    ["dataset", "scheme", "size"],
    ["full", "student"],
)  # all other sizes belong to the sweep
task_of = saliency.drop_duplicates("dataset").set_index("dataset")["task"]
answers = passes.drop_duplicates([*of_model, "training", "line"]).reset_index(drop=True)
answers["says_1"] = answers["is_expected"] == (answers["tag"] == 1)
n_model, n_class = (
    answers.groupby(by)["line"].transform("size")
    for by in (of_model, [*of_model, "tag"])
)
answers["balanced"] = (
    answers["is_expected"]
    * n_model
    / n_class
    / answers.groupby(of_model)["tag"].transform("nunique")
)
found = estimates(
    answers, of_model, "balanced", n_bootstrap=n_bootstrap, alpha=alpha, seed=seed
)
known = answers.pivot_table(
    index=of_model, columns="tag", values="is_expected", sort=False
).add_prefix("right_")
known["says_1"] = answers.groupby(of_model, sort=False)["says_1"].mean()
known = known.join(
    found.set_index(of_model)[["estimate", "low", "high"]].rename(
        columns={"estimate": "balanced"}
    )
).reset_index()

# %% [markdown]
# In Winobias every line has class 1, so `right_0` is empty there.

# %%
probe_learnt = (
    probes[probes["kind"] == probes["task"]]
    .groupby(["architecture", "size", "task"])["learnt"]
    .all()
)
area = knowledge.query("section == 'all' and score == 'probe'").rename(
    columns={"architecture": "scheme"}
)
known = known.merge(
    area[[*of_model, "auc", "auc_low", "auc_high"]], on=of_model, how="left"
)
in_general = np.array(
    [probe_learnt[r.scheme, r.size, task_of[r.dataset]] for r in known.itertuples()]
)
has_both = known[["right_0", "right_1"]].notna().all(axis=1)
known["learnt"] = np.where(
    known["auc"].notna(),
    known["auc_low"] > 0.5,
    np.where(has_both, known["low"] > 0.5, in_general),
)
known["constant"] = ~known["says_1"].between(rarest, 1 - rarest)
takes_part = known["learnt"] & ~known["constant"]
is_learnt = known.assign(learnt=takes_part).set_index(of_model)["learnt"].to_dict()

# %% [markdown]
# One row for each set and model; the students and the sweep are in the file.

# %% tags=["nbval-ignore-output"]
stage.table("answers", known)
known[known["size"] == "full"].round(3)

# %% [markdown]
# *Reading it.* Where `says_1` is near 0 or 1 a model gives one answer, whatever the line says. Its probe can know number
# on ordinary text all the same, where the verb mostly follows its subject.
#
# The control that stands beside every number: the chance of random scores, and the rule *the last span is a cue*, on
# the same lines. In an alternative line the attractor should lead, so there a rule passes where it fails otherwise:
# the floor of *all* depends on what the model answers, line by line.

# %% tags=["nbval-ignore-output"]
lines = {
    name: sets[name].loc[sorted(part["line"].unique())]
    for name, part in passes.groupby("dataset", sort=False)
}
for rule, baseline in (("random", random_baseline), ("nearest", nearest_baseline)):
    values = {
        (name, i): value
        for name, rows in lines.items()
        for i, value in zip(rows.index, baseline(rows))
    }
    answers[f"{rule}_exp"] = [values[r.dataset, r.line] for r in answers.itertuples()]
    answers[rule] = np.where(
        answers["is_expected"], answers[f"{rule}_exp"], 1 - answers[f"{rule}_exp"]
    )
floors = (
    answers[answers["size"] == "full"]
    .groupby(["dataset", "scheme"], sort=False)
    .agg(
        lines=("line", "nunique"),
        random_exp=("random_exp", "mean"),
        nearest_exp=("nearest_exp", "mean"),
        random=("random", "mean"),
        nearest=("nearest", "mean"),
    )
    .reset_index()
)
stage.table("floors", floors).round(3)

# %% [markdown]
# Now the full table. What is not learnt is shown, and ranked nowhere.

# %%
keys = ["dataset", "scheme", "size", "method"]
overall = estimates(
    passes, keys, "passed", n_bootstrap=n_bootstrap, alpha=alpha, seed=seed
)
shares = (
    passes.groupby(keys, sort=False)
    .apply(
        lambda part: pd.Series(
            {
                "share_exp": part["is_expected"].mean(),
                "exp": part.loc[part["is_expected"], "passed"].mean(),
                "alt": part.loc[~part["is_expected"], "passed"].mean(),
            }
        ),
        include_groups=False,
    )
    .reset_index()
)
table = overall[[*keys, "estimate", "low", "high", "n", "n_sentences"]].merge(
    shares, on=keys
)
table["learnt"] = [is_learnt[r.dataset, r.scheme, r.size] for r in table.itertuples()]
assert np.allclose(
    table["estimate"],
    table["share_exp"] * table["exp"].fillna(0)
    + (1 - table["share_exp"]) * table["alt"].fillna(0),
)

# %% [markdown]
# The assert is the identity that the paper's Table 3 should obey as well: *all* is the mean of *exp.* and
# *alt.*, weighted by how often each occurs. The full table is saved; here is *all* for the full models.

# %% tags=["nbval-ignore-output"]
stage.table("plausibility", table.rename(columns={"estimate": "all"}))
full = table[table["size"] == "full"]
full.pivot_table(
    index=["dataset", "scheme", "learnt"],
    columns="method",
    values="estimate",
    sort=False,
).round(3)

# %% [markdown]
# *Reading it.* Compare with `random` and `nearest` of the same set and model first. A high number of a model that has
# not learnt the set is no achievement.
#
# In Winobias the female pronoun counts as expected by decree. What if it were the male one? Then the man is the cue,
# class 0 is verum, and every line changes its scenario. But the question that the line must answer stays the same,
# word for word: *he was predicted; does the man score higher?* So `all` cannot change, and `exp` and `alt` trade
# places. The asserts check it on the lines whose scores stage 3 handed on.

# %%
she = {"Winobias": sets["Winobias"]}
he = {
    "Winobias": she["Winobias"]
    .assign(tag=0)
    .rename(columns={"cues": "attractors", "attractors": "cues"})
}
few = explained["shown"][explained["shown"]["dataset"] == "Winobias"]
ours, theirs = (plausibility(few, which) for which in (she, he))
assert (ours["passed"] == theirs["passed"]).all() and len(few)
assert (ours["is_expected"] != theirs["is_expected"]).all()
known = passes[
    (passes["dataset"] == "Winobias") & passes["size"].isin(both_sizes)
].reset_index(drop=True)
turned = known.assign(is_expected=~known["is_expected"])

# %% [markdown]
# What does depend on the pronoun is how much each scenario counts in `all`: a probe that always says *he* is judged by
# one scenario only. The mean of `exp` and `alt` counts both the same (`balanced`); where a scenario has fewer than
# twenty lines (`n_exp`, `n_alt`) it is not known.

# %% tags=["nbval-ignore-output"]
pronouns = pd.concat(
    [
        frame[frame["size"] == "full"]
        .groupby(["scheme", "method"], sort=False)
        .apply(
            lambda part: pd.Series(
                {
                    "expected": name,
                    "n_exp": part["is_expected"].sum(),
                    "n_alt": (~part["is_expected"]).sum(),
                    "all": part["passed"].mean(),
                    "exp": part.loc[part["is_expected"], "passed"].mean(),
                    "alt": part.loc[~part["is_expected"], "passed"].mean(),
                }
            ),
            include_groups=False,
        )
        .reset_index()
        for name, frame in (("she", known), ("he", turned))
    ],
    ignore_index=True,
)
pronouns["balanced"] = (
    pronouns[["exp", "alt"]]
    .mean(axis=1)
    .where(pronouns[["n_exp", "n_alt"]].min(axis=1) >= 20)
)
stage.table("pronouns", pronouns)
pronouns[pronouns["method"].isin(["V", "SG", "IG"])].round(3)

# %% [markdown]
# ## 3 · What the plain gradient cannot say
#
# Stage 3 showed that V's two classes differ by a negative factor per line. Two things follow, and they must
# hold exactly: with one cue and one attractor a line passes in both scenarios or in none; and correlations
# of V are the same for verum and malum. The contrastive gradient is V without that factor, so it passes the same lines
# (but for ties within rounding).

# %%
single = saliency[
    (saliency["method"] == "V") & saliency["dataset"].isin(["Syneval", "Winobias"])
]
assert (single["passed"] == single["passed_other"]).all()
of_full = passes[passes["size"] == "full"].set_index(["row_id", "scheme", "seed"])
of_v, of_contrast = (
    of_full.loc[of_full["method"] == name, "passed"] for name in ("V", "Contrastive")
)
assert of_contrast.empty or (of_v == of_contrast.reindex(of_v.index)).mean() > 0.99
print(len(single), "lines: the same in both scenarios")

# %% [markdown]
# ## 4 · Input consistency
#
# Lines of one template differ in their nouns alone; the model's reason should be the same. Each later line
# of a template is compared with its first line: Pearson's correlation of the scores, position by position,
# averaged over pairs (section 3.2). As in the released code, what is below one per cent of a line's largest
# score counts as zero.

# %%
show_source(pearson)


def compared(kind, how):
    """The pairs of a grouping, with the templates that they belong to; unequal ones go under skip."""
    table = explained["pairs"]
    table = table[table["grouping"] == kind]
    groups = pd.concat(
        {name: template_groups(sets[name], kind) for name in table["dataset"].unique()}
    )
    places = pd.MultiIndex.from_frame(table[["dataset", "line"]])
    table = table.assign(cluster=groups.reindex(places).to_numpy())
    return table[table["same_length"].astype(bool) | (how == "slots")]


every_pair = with_ids(compared(grouping, unequal))
pairs = every_pair[every_pair["method"] != SHUFFLED]
print(
    f"{len(pairs)} pairs, {1 - pairs['same_length'].mean():.3f} of them of unequal length"
)

# %% [markdown]
# *verum* is the paper's column *exp.*, *malum* its column *alt.*, each over all lines.


# %% tags=["nbval-ignore-output"]
def both_sides(frame):
    """Estimate and interval for verum and malum."""
    found = [
        estimates(
            frame, keys, side, n_bootstrap=n_bootstrap, alpha=alpha, seed=seed
        ).assign(side=side)
        for side in ("verum", "malum")
    ]
    return pd.concat(found)[
        [*keys, "side", "estimate", "low", "high", "n", "n_sentences"]
    ].reset_index(drop=True)


consistency = both_sides(pairs)
stage.table("input_consistency", consistency)
shown = consistency[
    (consistency["size"] == "full") & consistency["method"].isin(["V", "SG", "IG"])
]
shown.pivot_table(
    index=["dataset", "scheme", "method"], columns="side", values="estimate", sort=False
).round(3)

# %% [markdown]
# *Reading it.* The two columns of V agree to all digits. Consistency is no virtue by itself: scores that look
# at positions and not at words are perfectly consistent and say nothing.
#
# The paper speaks of 24 and 254 templates. Its scripts do something else: of Syneval they merge animate and inanimate
# nouns and drop the prepositions (12 groups), of Winobias they read the first 147 groups, and pairs of unequal length
# are left out without a word. The counts are of the whole sets; `V`, `SG`, `IG` are the means over the explained lines
# and the models (verum).


# %%
def group_counts(name, kind, how):
    """How many templates (with two lines or more) and pairs a grouping has, and how many pairs differ in length."""
    lengths, groups = sets[name]["prefix"].map(len), template_groups(sets[name], kind)
    parts = [part for _, part in lengths.groupby(groups, sort=False) if len(part) > 1]
    differ = sum(int((part.iloc[1:] != part.iloc[0]).sum()) for part in parts)
    frame = compared(kind, how).query("dataset == @name and size == 'full'")
    means = frame.groupby("method")["verum"].mean()
    return {
        "dataset": name,
        "grouping": kind,
        "unequal": how,
        "templates": len(parts),
        "pairs": sum(map(len, parts)) - len(parts),
        "unequal_pairs": differ,
    } | {method: means.get(method, np.nan) for method in ("V", "SG", "IG")}


# %% [markdown]
# The pairs that a rule leaves out are other pairs, so its means may differ as well:

# %% tags=["nbval-ignore-output"]
groupings = pd.DataFrame(
    [
        group_counts(name, kind, how)
        for name in ("Syneval", "Winobias")
        for kind, how in (("paper", "slots"), ("paper", "skip"), ("released", "skip"))
    ]
)
assert groupings.loc[:2, ["templates", "pairs", "unequal_pairs"]].values.tolist() == [
    [24, 6256, 1296],
    [24, 6256, 1296],
    [12, 4708, 460],
]
stage.table("groupings", groupings)

# %% [markdown]
# ## 5 · Model consistency
#
# The same line, explained in the model and in its student.

# %%
agreement = with_lines(explained["agreement"].assign(size="full"), sets)
agreement = with_ids(agreement)
agreement["difference"] = agreement["verum"] - agreement["malum"]
plain = agreement.loc[agreement["method"] == "V", "difference"].abs().max()
assert plain < 1e-3
print(len(agreement), "lines explained twice; under V verum and malum agree")

# %% [markdown]
# One row per set, architecture and method:

# %% tags=["nbval-ignore-output"]
models = both_sides(agreement)
stage.table("model_consistency", models)
models.pivot_table(
    index=["dataset", "scheme", "method"], columns="side", values="estimate", sort=False
).round(3)

# %% [markdown]
# ## 6 · The sweep
#
# The same two tests for the small Transformers of stage 2. Where a model has not learnt the set the row says so.

# %% tags=["nbval-ignore-output"]
configurations = pd.read_csv(stage.input("02_training", "sweep.csv"))
of_sweep = (
    table[~table["size"].isin(both_sizes)]
    .drop(columns=["n", "scheme", "share_exp"])
    .rename(columns={"estimate": "all"})
)
steady = consistency[consistency["side"] == "verum"].rename(
    columns={"estimate": "input_consistency"}
)
sweep = of_sweep.merge(
    steady[["dataset", "size", "method", "input_consistency"]],
    on=["dataset", "size", "method"],
    how="left",
)
sweep = sweep.merge(
    configurations[["size", "layers", "parameters", "perplexity"]], on="size"
)
stage.table("sweep", sweep).head(9)

# %% [markdown]
# ## 7 · Controls
#
# Shuffle every line's scores among its words. Plausibility must fall to the chance of random scores (`random` of
# section 2, mean over the models), and input consistency to about zero. If it did not, the tests would reward
# something other than the words.

# %%
shuffled = judged(explained["lines"][explained["lines"]["method"] == SHUFFLED])
noise_pass = shuffled.groupby("dataset")["passed"].mean()
of_noise = (every_pair["method"] == SHUFFLED) & (every_pair["dataset"] == "Syneval")
noise_pairs = every_pair.loc[of_noise, "verum"].mean()
chance = floors.groupby("dataset")["random"].mean().loc[noise_pass.index]
assert (noise_pass - chance).abs().max() < 0.1 and abs(noise_pairs) < 0.2, (
    f"noise passes {noise_pass.round(2).to_dict()}, chance is {chance.round(2).to_dict()}, its "
    f"pairs agree by {noise_pairs:.2f}; raise n_words, for so few lines leave it to chance"
)
controls = pd.DataFrame(
    {
        "control": [f"shuffled IG, {name}" for name in noise_pass.index]
        + ["shuffled pairs, Syneval"],
        "value": [*noise_pass, noise_pairs],
        "expected": [*chance, 0],
    }
)

# %% [markdown]
# Beside each value what it should be:

# %% tags=["nbval-ignore-output"]
stage.table("controls", controls)

# %% [markdown]
# ## 8 · Which differences are more than noise?
#
# Methods are compared on the same lines, cluster by cluster, with Holm's correction within a set and
# architecture. `is_ranked` is true only where the model has learnt the set and the interval, the corrected test and the
# smallest difference that so many clusters can show all say so.

# %% tags=["nbval-ignore-output"]
parts = []
for (dataset, scheme), part in passes[passes["size"] == "full"].groupby(
    ["dataset", "scheme"], sort=False
):
    three = part[part["method"].isin(["V", "SG", "IG"])]
    parts.append(
        compare_all(three, "method", "passed", n_bootstrap, alpha, seed).assign(
            dataset=dataset, scheme=scheme
        )
    )
comparisons = pd.concat(parts, ignore_index=True)
comparisons["is_ranked"] &= np.array(
    [is_learnt[r.dataset, r.scheme, "full"] for r in comparisons.itertuples()]
)
shown = [
    "dataset",
    "scheme",
    "left",
    "right",
    "difference",
    "low",
    "high",
    "p_holm",
    "is_ranked",
]
stage.table("comparisons", comparisons)[shown]

# %% [markdown]
# ## 9 · Does the paper's Table 3 add up?
#
# *all* should be *share of exp.* x *exp.* + *share of alt.* x *alt.*, up to rounding. We ask this of all cells
# of Tables 3 and 8. Three printed digits allow for 0.0005 in *all*, as much in its parts, and 0.0005 of the share times
# the difference of the parts (`allowed`).

# %%
printed = (
    numbers[numbers["quantity"] == "plausibility"]
    .pivot_table(
        index=["source", "dataset", "scheme", "method"], columns="class", values="value"
    )
    .dropna()
    .reset_index()
)
share = (
    numbers[numbers["quantity"] == "scenario_share"]
    .pivot_table(index=["dataset", "scheme"], columns="class", values="value")
    .add_prefix("share_")
    .reset_index()
)
integrity = printed.merge(share, on=["dataset", "scheme"])
integrity["from_parts"] = (
    integrity["share_exp"] * integrity["exp"]
    + integrity["share_alt"] * integrity["alt"]
)
integrity["allowed"] = 0.001 + 0.0005 * (integrity["exp"] - integrity["alt"]).abs()
gap = (integrity["all"] - integrity["from_parts"]).abs()
integrity["adds_up"] = gap <= integrity["allowed"]
print(
    integrity["adds_up"].sum(),
    "of",
    len(integrity),
    "cells add up;",
    (gap > 0.005).sum(),
    "are off by more than 0.005",
)
stage.table("integrity", integrity)[~integrity["adds_up"]][
    ["dataset", "scheme", "method", "all", "from_parts", "allowed"]
].round(4)

# %% [markdown]
# ## 10 · Claims
#
# The claims were written down before this run (`material/claims.yaml`), each with the smallest effect that
# would matter; those that were added later say when, and what had been seen by then. At scale small nothing is decided.
# With one training of each model nothing is decided about trained models either: the spread between trainings is not
# known. What can be decided then are counts, baselines, and the identity of section 3. A model that has not learnt a
# set, or answers it with a constant, takes no part in claims on its explanations.

# %%
below = {
    (name, scheme)
    for name in sets
    for scheme in probes["architecture"].unique()
    if not is_learnt.get((name, scheme, "full"), False)
}
of_ids = ["dataset", "scheme", "method", "row_id", "sentence_idx", "seed"]
of_tables = {
    name: frame[frame["size"] == "full"]
    for name, frame in (("plausibility", passes), ("input_consistency", pairs))
}
depths = passes[
    [is_learnt[key] for key in zip(*(passes[name] for name in of_model))]
].merge(configurations[["size", "layers"]], on="size")
preferred, cuts = (
    stage.input("02_training", name) for name in ("answers.parquet", "thresholds.csv")
)
answered = right_answers(load_parquet(preferred), pd.read_csv(cuts), sets)
rules = answers[answers["size"] == "full"].assign(method="Nearest")
rules = rules.assign(passed=rules["nearest"].astype(float))
with_rules = pd.concat([of_tables["plausibility"], rules], ignore_index=True)
frames = of_tables | {
    "answers": answered,
    "with_rules": with_rules[[*of_ids, "passed"]],
    "model_consistency": agreement,
    "both_sizes": passes[passes["size"].isin(both_sizes)],
    "both_consistencies": pd.concat(
        [
            agreement.assign(kind="model"),
            of_tables["input_consistency"].assign(kind="input"),
        ]
    ),
    "sweep": depths.groupby(
        ["dataset", "layers", "method", "row_id", "sentence_idx", "seed"],
        as_index=False,
    )["passed"].mean(),
}
claims = read_claims(material("lm_saliency") / "claims.yaml")
judged = {
    claim.id: judge_contrasts(
        claim,
        frames,
        scale != "small",
        below,
        n_bootstrap,
        alpha,
        seed,
        below_what="a model that has not learnt the set",
    )
    for claim in claims
}
rows = [summarise(claim, judged[claim.id], scale) for claim in claims]
print(len(rows), "claims,", sum(map(len, judged.values())), "comparisons")

# %% [markdown]
# Below the claims stand the printed numbers, ours beside them. Counts and baselines of Syneval can be judged
# at every scale, since that set is the published one; all others belong to models of 96 to 247 million
# parameters, and are shown and not judged.

# %%
mine = {}
for size, ending in (("full", ""), ("student", "_student")):
    mine |= {
        (f"plausibility{ending}", r.dataset, r.scheme, r.method, c): v
        for r in table[table["size"] == size].itertuples()
        for c, v in (("all", r.estimate), ("exp", r.exp), ("alt", r.alt))
    }
    mine |= {
        (
            f"{name}{ending}",
            r.dataset,
            r.scheme,
            r.method,
            {"verum": "exp", "malum": "alt"}[r.side],
        ): r.estimate
        for name, frame in (
            ("input_consistency", consistency),
            ("model_consistency", models),
        )
        for r in frame[frame["size"] == size].itertuples()
    }
for r in table[(table["size"] == "full") & (table["method"] == "V")].itertuples():
    mine |= {
        ("scenario_share", r.dataset, r.scheme, "", c): v
        for c, v in (("exp", r.share_exp), ("alt", 1 - r.share_exp))
    }
is_published = "EWT" in sets  # then Winobias is the published set as well
as_printed = {"Syneval", "PTB", "CoNLL"} | ({"Winobias"} if is_published else set())
whole = {name: rows for name, rows in sets.items() if name in as_printed}
draws = {}  # what one draw of random scores may differ from its expectation
for name, entire in whole.items():
    mine |= {
        ("n_lines", name, "-", "", ""): len(entire),
        ("n_templates", name, "-", "", ""): (
            entire["pattern"].value_counts() > 1
        ).sum(),
    }
    for rule, values in (
        ("Random", random_baseline(entire)),
        ("Nearest", nearest_baseline(entire, "listed")),
    ):
        mine |= {
            ("plausibility", name, "-", rule, c): x
            for c, x in (("exp", values.mean()), ("alt", 1 - values.mean()))
        }
        if rule == "Random":
            draws[name] = 1.96 * np.sqrt((values * (1 - values)).sum()) / len(values)

# %% [markdown]
# A count or a baseline holds where it is the printed number after rounding. The paper's *Random* is one draw, ours its
# expectation: it holds where the draw is within 1.96 standard errors.

# %%
for number in (
    numbers.astype(object).fillna("").rename(columns={"class": "scenario"}).itertuples()
):
    ours = mine.get(
        (
            number.quantity,
            number.dataset,
            number.scheme,
            number.method,
            number.scenario,
        ),
        np.nan,
    )
    exact = number.scheme == "-" and not np.isnan(ours)
    is_drawn = number.method == "Random"
    allowed = draws.get(number.dataset, 0.0005) if is_drawn else 0.0005
    verdict = (
        ("holds" if abs(ours - number.value) <= allowed else "fails")
        if exact
        else "not run"
    )
    why = "; ".join(
        part
        for part in (
            "" if exact else "the number belongs to another model or set",
            number.note,
        )
        if part
    )
    quantity = " ".join(
        str(p)
        for p in (
            number.quantity,
            number.dataset,
            number.scheme,
            number.method,
            number.scenario,
        )
        if p
    )
    rows.append(
        {
            "source": number.source,
            "quantity": quantity,
            "paper": number.value,
            "ours": ours,
            "low": np.nan,
            "high": np.nan,
            "n": 0,
            "scale": scale,
            "verdict": verdict,
            "why": why,
            "id": number.id,
        }
    )
found = pd.DataFrame(rows)
assert not (found["verdict"] == "fails").any() or scale != "small"

# %% [markdown]
# All rows are in `claims.csv`.

# %% tags=["nbval-ignore-output"]
stage.table("claims", found)
print(f"{len(found)} claims are judged; stage 5 shows them")

# %% [markdown]
# ## 11 · Lines to look at
#
# Of each of three sets two lines of middle length, one of each class (in Winobias: the woman first, and second), as the
# best probe's model sees them. They are chosen by their words alone. Stage 5 shows them in colour.

# %%
best = {
    task: part.loc[part["accuracy"].idxmax(), "architecture"]
    for task, part in probes[
        (probes["size"] == "full") & (probes["kind"] == probes["task"])
    ].groupby("task")
}
names = [name for name in sets if name not in ("OntoGUM", "CoNLL")][:3]
chosen = [
    (name, best[task_of[name]], "full", method, at)
    for name, ats in lines_to_show(lines, names).items()
    for at in ats
    for method in ("V", "SG", "IG")
]

# %% [markdown]
# One row for each word and method, with what grammar expects, what the model says, and whether the line passes.

# %%
by_line = ["dataset", "architecture", "size", "method", "line"]
scores_of, passed = (
    explained["shown"].set_index(by_line).sort_index(),
    passes[passes["training"] == 0].set_index(by_line)["passed"].sort_index(),
)
shown = []
for key in chosen:
    (name, scheme, _, method, at), one, line = (
        key,
        scores_of.loc[key],
        sets[key[0]].loc[key[-1]],
    )
    roles = {
        i: role for role in ("cue", "attractor") for i in span_tokens(line[f"{role}s"])
    }
    names, predicted = CLASSES[task_of[name]], int(one["probability"] > 0.5)
    about = (
        name,
        at + 1,
        scheme,
        method,
        names[line["tag"]],
        names[predicted],
        passed.loc[key],
    )
    shown += [
        (*about, i, word, roles.get(i, ""), score)
        for i, (word, score) in enumerate(
            zip(line["prefix"], one[f"class_{predicted}"])
        )
    ]
examples = pd.DataFrame(
    shown,
    columns=[
        "dataset",
        "line",
        "scheme",
        "method",
        "expected",
        "says",
        "passed",
        "place",
        "word",
        "role",
        "score",
    ],
)

# %% [markdown]
# The scores are those of the predicted class.

# %% tags=["nbval-ignore-output"]
stage.table("examples", examples).head(8)

# %% [markdown]
# ## 12 · The figure
#
# Plausibility, *all*, of each set and model with its interval. Dotted: the chance of random scores; dashed: the rule
# *nearest*; both for what this model answers. Hollow marks: the model has not learnt the set.

# %%
looks = dict(zip(("V", "SG", "IG"), zip("osD", COLOURS)))
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1, len(sets), figsize=(3.2 * len(sets), 3), sharey=True, layout="constrained"
    )
    for ax, name in zip(axes, sets):
        part = full[(full["dataset"] == name) & full["method"].isin(looks)]
        order = list(part["scheme"].unique())
        for r in part.itertuples():
            marker, colour = looks[r.method]
            y = order.index(r.scheme) + 0.2 * (list(looks).index(r.method) - 1)
            ax.plot([r.low, r.high], [y, y], color=colour)
            ax.plot(
                r.estimate,
                y,
                marker=marker,
                color=colour,
                markerfacecolor=colour if r.learnt else "white",
                label=r.method if r.scheme == order[0] else None,
            )
        for r in floors[floors["dataset"] == name].itertuples():
            for value, style in ((r.random, ":"), (r.nearest, "--")):
                y = order.index(r.scheme)
                ax.plot(
                    [value, value], [y - 0.4, y + 0.4], color="0.3", linestyle=style
                )
        ax.set(
            title=name,
            xlim=(-0.03, 1.03),
            xlabel="lines that pass",
            yticks=range(len(order)),
            yticklabels=order,
        )
    axes[0].invert_yaxis()
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
stage.figure("plausibility", figure)

# %% [markdown]
# The plotted numbers are those of section 2.
#
# ## What could be wrong
#
# - **Plausible is not right.** A model may rest its answer on something else than the cue, and an explanation
#   that says so is faithful and fails this test.
# - **Few trainings.** With one training of each model intervals speak of lines, not of trainings; never of SmoothGrad's
#   draws (stage 3 counts how many verdicts another draw changes).
# - **Few clusters.** At scale small a set has some dozens of clusters that are explained.
# - **Alignment.** Slots add up words; two lines can agree by slot and differ within.
# - **The processor.** With other instructions some numbers of scale small move by as much as they hold: p values, shares of
#   pronoun lines with one expected answer, and which lines are shown as examples (`tests/arithmetic.csv`).
#
# ## Try it
#
# - Set `unequal = "skip"` and see how many pairs the released code would lose.
# - Score files of your own: `read_outputs` in `lib/studies/lm_saliency/released.py` reads tarsius' `out.verum`, `out.malum`
#   and `out.pos.idx`.
# - Which rule that never looks at the model's words would pass most lines? Begin with `floors`, and let the rule see
#   what the model answers.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# All tables lie in this stage's folder; `claims.csv` holds what was claimed, what came out, and why no more can
# be said. [05_figures](05_figures.ipynb) lays the tables out as the paper does.

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
from lib.metrics.plausibility import pearson

table = read_committed("lm_saliency", "cpu", "04_metrics", "plausibility")
floors = read_committed("lm_saliency", "cpu", "04_metrics", "floors")
ours = table.query("dataset == 'EWT' and scheme == 'Transformer' and size == 'full'")
ours[["method", "all", "low", "high", "n"]].head(3).round(2)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A set has 200 lines. On 140 the model answers as the set expects, and the explanation passes on 105 of these. On the other 60 lines it passes on 15. What are the shares of passed lines: in the expected scenario, in the alternative one, and in all?

# %% tags=["hole"]
expected_scenario = ...
alternative_scenario = ...
all_lines = ...

# %% tags=["solution"]
expected_scenario = 105 / 140
alternative_scenario = 15 / 60
all_lines = 120 / 200

# %% tags=["check"]
of_expected, of_alternative = np.array([105, 140]), np.array([15, 60])
first, second = (passed / n for passed, n in (of_expected, of_alternative))
check_number(
    expected_scenario,
    first,
    hint="Passed lines over lines, of this scenario.",
    name="expected_scenario",
)
check_number(
    alternative_scenario,
    second,
    hint="Passed lines over lines.",
    name="alternative_scenario",
)
check_number(
    all_lines,
    np.divide(*(of_expected + of_alternative)),
    {"the two scenarios have different numbers of lines.": (first + second) / 2},
    "Add up the lines first.",
    name="all_lines",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# `ours` is of scale `cpu`, natural sentences (EWT). Integrated Gradients passes more lines than the rule *the nearest noun*, and its interval holds the rule's share. What may we say?
#
# - `"a"` It is better than the rule.
# - `"b"` It is ahead in this sample; whether it is better than the rule is open.
# - `"c"` It is as good as the rule.

# %% tags=["hole"]
what_we_may_say = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_we_may_say = "b"

# %% tags=["check"]
ig = ours.set_index("method").loc["IG"]
rule = floors.query("dataset == 'EWT' and scheme == 'Transformer'")["nearest"].item()
assert ig["low"] < rule < ig["all"]
check_choice(
    what_we_may_say,
    "b",
    {
        "a": "Which values would another sample of lines also allow?",
        "c": "The interval also allows a clear difference. Is equality shown?",
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Write a function
#
# Input consistency compares two lines that differ in a noun: the correlation of their scores. Write Pearson's correlation of two lists.


# %% tags=["hole"]
def correlation(left, right):
    """A number from -1 to 1."""
    return ...


# %% tags=["solution"]
def correlation(left, right):
    """A number from -1 to 1."""
    a, b = np.asarray(left, float), np.asarray(right, float)
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())


# %% tags=["check"]
check_function(
    correlation,
    pearson,
    {
        "A line with a positive slope has 1.": [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]],
        "Subtract the means first.": [[1.0, 2.0, 3.0], [11.0, 10.0, 9.0]],
        "Divide by both lengths.": [[1.0, 0.0, 0.0, 2.0], [0.5, 0.1, 0.0, 0.4]],
    },
)
