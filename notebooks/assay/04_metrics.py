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
# # Assay, stage 4 of 5: which explainer may one trust, and about what?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb) · the row: [README](README.md)
#
# Every truth has one score, fixed beforehand. A rule that never looks at the model gets 0 and one who knows the answer gets 1. On this scale explainers can be compared across truths.
#
# ## You will see
#
# - each explainer under each truth, between floor and oracle, with intervals;
# - which cells hold by identity and are not ranked;
# - whether an explainer notices that it looks at another model;
# - whether truths rank explainers alike, and how one would know.
#
# **You can then** place a score between floor and oracle, and say what a truth asks of the model. **You need**
# [stage 3](03_attribution.ipynb). **Time:** 15 minutes to read, half a minute to run, 15 minutes for the exercises.
#
# | in | out (in this stage's folder) | holds |
# |---|---|---|
# | `truths.parquet`, `models/` (02) | `cells`, `wide` (`.csv`) | explainer by truth: raw score, value on the scale, intervals |
# | `explanations`, `redrawn`, `budgets` (`.parquet`, 03) | `floors`, `mass`, `gate`, `budgets`, `own_other` (`.csv`) | what stands beside them |
# | `forms`, `train` (`.parquet`, 01) | `edits`, `antecedents` (`.csv`) | the second score of *edit*, and of *noun* |
# | | `agreement`, `beyond`, `recommended`, `family_contrasts` (`.csv`) | the synthesis |
# | | `contrasts`, `claims` (`.csv`), two figures | the verdicts |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib import stats
from lib.core.files import load_parquet
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.studies.assay import checks, models, standing, synthesis
from lib.studies.assay import edit_scores as by_edit
from lib.studies.assay import explainers as who
from lib.studies.assay import truths as by_truth
from lib.studies.assay.figures import plot_budgets, plot_scale
from lib.studies.assay.swapped import score_swaps

# %% [markdown]
# ## Settings
#
# `floor_of` names the floor that is 0 under each truth. It was chosen before the run, as the strongest rule that we know of; all other floors are shown beside it.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
floor_of = {
    "mask": "Word counts",
    "swap": "Word counts",
    "planted": "Word counts",
    "cue": "Even",
    "edit": "Goal of the edit",
    "noun": "Word counts",
    "deletion, pad": "Word counts",
    "deletion, mask": "Word counts",
    "deletion, swap": "Word counts",
}  # the rule that gets 0
families = {
    "Saliency": "gradient",
    "Gradient norm": "gradient",
    "InputXGradient": "gradient",
    "Integrated Gradients": "path",
    "DeepLift": "propagation",
    "AttnLRP": "propagation",
    "Attention rollout": "attention",
    "Occlusion": "leave one out",
    "LIME": "local regression",
    "Kernel SHAP": "Shapley",
}  # of explainers; what is recommended is a family
pads = [
    "Occlusion",
    "Kernel SHAP",
    "Integrated Gradients",
    "DeepLift",
]  # explainers that pad words themselves
n_deleted = 3  # texts whose words are deleted, of each training
gate = 0.5  # likeness to itself on redrawn weights below which it passes
margin = 0.1  # on the scale: what counts as inferior
n_bootstrap = 200  # resamples per interval
alpha = 0.05  # the intervals have 1 - alpha

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $s$ | the truth's primary score | `raw` |
# | $s_0, s_1$ | that of the strongest floor, and of the oracle | `floor`, `oracle` |
# | $v$ | $(s - s_0) / (s_1 - s_0)$ | `value` |
# | $\tau_b$ | rank correlation that allows ties | `tau` |

# %%
stage = open_stage("assay", scale, "04_metrics")
set_up(seed, n_threads)
truths = load_parquet(stage.input("02_training", "truths.parquet"))
names = ("explanations", "redrawn", "budgets")
said = {
    name: load_parquet(stage.input("03_attribution", f"{name}.parquet"))
    for name in names
}
telling = by_truth.telling_items(truths)
spare = by_truth.telling_items(truths, "dev")  # pairs on which scales are fitted
forms, train = (
    load_parquet(stage.input("01_data_generation", f"{name}.parquet"))
    for name in ("forms", "train")
)
keys = ["model", "training", "text"]
columns = ["item_id", "explainer", "scores"]
n_items = (truths["part"] == "test").sum()
print(
    f"{len(telling)} of {n_items} items tell, {len(said['explanations'])} explanations"
)

# %% [markdown] tags=["slide"]
# ## 1 · By hand: from a score to the scale
#
# On some truth word counts reach .60, the oracle 1, and an explainer .80. So it is half way: $(.80 - .60) / (1 - .60) = .5$.
#
# **Stop and guess.** Another explainer reaches .50. Is it worth half of that? No: it is at -.25, worse than a rule that never looked at the model.

# %% tags=["slide"]
show_source(synthesis.between)
assert np.isclose(synthesis.between(0.8, floor=0.6, oracle=1.0), 0.5)
assert np.isclose(synthesis.between(0.5, floor=0.6, oracle=1.0), -0.25)
figure = plot_scale(0.6, 1.0, {"an explainer": 0.8, "another": 0.5})
stage.figure("by_hand", figure)
plt.show()

# %% [markdown]
# ## 2 · One score a truth
#
# | truth | primary score of an item | 0.5 or 0 without information |
# |---|---|---|
# | mask | area under the ROC curve: do altered words come first? | .5 |
# | swap, noun | Spearman's correlation with the model's own values, within a sentence | 0 |
# | planted | overlap of the shares with the true shares | 0 |
# | cue | is the largest cue above the largest attractor? | .5 |
# | edit | the item's part in Spearman's correlation over all pairs | 0 |
# | deletion | how fast the answer falls, between the worst and the best order (NAOPC) | - |
#
# Each explanation meets the truth of its own model and training. The oracle knows the key. Three cheaters know less: which words are marked, how much each word did without its sign, or both texts of an edit. A new floor is the *goal of the edit*: what the person who edited meant to do.
#
# **Deletion** puts something in a deleted word's place. That is a choice, so there are three: padding, the mask token, and the word of the sentence's other form (*swap*), which leaves no hole. Explainers that pad words themselves have met the first one before, so that cell holds by identity.

# %%
show_source(by_truth.cheaters)
answers = telling[["item_id", *keys]].merge(said["explanations"], on=keys)[columns]
known = [by_truth.oracle(telling), by_truth.cheaters(telling)]
scored = [
    by_truth.score_items(telling, pd.concat([answers, *known], ignore_index=True))
]
texts = telling.query("truth == 'mask'").groupby("training").head(n_deleted)
for number, part in texts.groupby("training"):
    files = [
        stage.input("02_training", f"models/gender-{number}.{end}")
        for end in ("json", "safetensors")
    ]
    asked = models.read_model(*files), part, said["explanations"]
    scored += [
        by_truth.score_deletion(*asked, operator, seed) for operator in ("pad", "mask")
    ]
    scored += [score_swaps(asked[0], part, said["explanations"], forms)]
scored = pd.concat(scored, ignore_index=True)
print(f"{len(scored)} scores of {scored['explainer'].nunique()} names")

# %% [markdown]
# ## 3 · Explainer by truth
#
# The scale is set by the means of floor and oracle. Where the two are closer than .02 the truth tells nothing apart in this run, and its cells stay empty. The values, 0 for the floor and 1 for the oracle:

# %% tags=["nbval-ignore-output"]
show_source(standing.holds_by_identity)
scores = synthesis.on_one_scale(scored, floor_of)
cells = standing.cells(scores, pads, n_bootstrap, alpha, seed)
_ = stage.table("cells", cells)
wide = cells[cells["role"] == "explainer"].pivot(
    index="explainer", columns="truth", values="value"
)
stage.table("wide", wide[[*floor_of]].reset_index(), digits=2)

# %% [markdown]
# And those who do not look at the model, by the primary score. *Word counts* knows how often a word stood beside the class in the training text. The last column is the usual score of *mask*, the share of the attribution that lies on altered words. It is shown and not ranked: who points at the first pronoun, and at nothing else, has (nearly) all there.

# %% tags=["nbval-ignore-output"]
blind = cells[cells["role"].isin(["floor", "cheater", "oracle"])]
floors = blind.pivot(index="explainer", columns="truth", values="raw")[[*floor_of]]
mass = checks.mass_on_marks(telling, said["explanations"])
_ = stage.table("mass", mass.reset_index())
floors["mass accuracy"] = mass
stage.table("floors", floors.reset_index(), digits=2)

# %% [markdown]
# *Reading it.* A column whose floors are near 1 can hardly praise an explainer. The cheater that knows the marks has 1 wherever the truth asks *where*. On *swap*, *edit* and *noun*, which ask *what it did to this model*, knowing where is not enough. Knowing how much without the sign is not enough for *edit* and *noun*; it is for *swap*, as long as every swapped word speaks for its class.
#
# ## 4 · Does it look at the model?
#
# Two questions that need no truth about words. First the **gate**: draw all weights anew. An explanation that stays as it was did not look at them (Adebayo et al. 2018). Fresh noise would pass, so it is a gate and no score. The likeness of explanations to themselves, before and after:

# %% tags=["nbval-ignore-output"]
first = said["explanations"].query("model == 'gender' and training == 0")
gates = checks.likeness_when_redrawn(first, said["redrawn"])
gates["passes"] = gates["likeness"] < gate
passing = set(gates.loc[gates["passes"], "explainer"])
assert not passing & set(who.FLOORS), "a floor passes, so it changes with the weights"
stage.table("gate", gates[~gates["explainer"].isin(list(who.FLOORS))], digits=2)

# %% [markdown]
# Second: hold the explanation of this model against the truth of the *other training*. What is left of the score was never about this model. All explainers together:

# %% tags=["nbval-ignore-output"]
show_source(by_truth.score_on_other)
about_model = ["swap", "edit", "noun"]
asked = telling[telling["truth"].isin(about_model)]
compared = checks.own_and_other(asked, scored, said["explanations"], families)
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
own_other = stats.estimates(compared, ["truth", "explained"], "value", **how)
stage.table("own_other", own_other.iloc[:, :5], digits=2)

# %% [markdown]
# ### Edits: how large, and not the order alone
#
# A second score for *edit*. Each explainer gets one scale, fitted on other pairs. Its **skill** is $1 - \sum (a e - d)^2 / \sum (a_0 e_0 - d)^2$: 1 is exact, 0 as good as the best rule without a model. `of_another_model` is the rank correlation of the same explainer, asked about the other training. The *second editor* is a person who had the same goal: how well does the change by that person's text foretell this one?

# %% tags=["nbval-ignore-output"]
show_source(by_edit.fitted_scale)
tested, spared = (
    by_edit.estimated_changes(part, said["explanations"]) for part in (telling, spare)
)
other = by_truth.score_on_other(asked, said["explanations"])
skills = by_edit.skill(tested, spared)
edits = stage.table("edits", by_edit.edit_table(skills, other, **how), digits=2)
edits.head(12)

# %% [markdown]
# ### Nouns: beyond the stereotype
#
# Across sentences, does an explainer order the *antecedents* as the model does? And is anything left once the stereotype of the noun, log count(he) / count(she) in the training text, is taken out (`partial`)?

# %% tags=["nbval-ignore-output"]
counts = who.Counts(train[train["model"] == "pronoun"])
found = telling.query("truth == 'noun'").merge(said["explanations"], on=keys)
nouns = checks.antecedents(found, counts)
stage.table("antecedents", nouns[~nouns["explainer"].isin(list(who.FLOORS))], digits=2)

# %% [markdown]
# *Reading it.* A scale that was fitted on six other pairs can be far off, so that a skill is easily negative. Six antecedents order little.

# %% [markdown] tags=["slide"]
# ### What does it cost?
#
# Quality on *mask* after so many passes of the model, beside word counts, which need none:

# %% tags=["nbval-ignore-output", "slide"]
first = telling.query("truth == 'mask' and training == 0").reset_index(drop=True)
bought = checks.scores_by_budget(first, said["budgets"])
figure = plot_budgets(
    bought, floors.loc["Word counts", "mask"], "area under the ROC curve"
)
stage.figure("budgets", figure)
plt.show()
_ = stage.table("budgets", bought)

# %% [markdown]
# ## 5 · Do the truths rank explainers alike?
#
# First **within one model**, so that nothing but the truth differs: *gender* has mask, swap and both deletions. $\tau_b$ compares the order of explainers under two truths. Where a truth meets itself its items are split in halves. That is its ceiling: another truth can hardly agree with it more. Halves of six items are small, so that the ceiling itself is low here. A verdict could stand on a half-width of .15 or less.

# %% tags=["nbval-ignore-output"]
show_source(synthesis.rank_agreement)
one_model = scores[
    (scores["model"] == "gender") & scores["explainer"].isin(list(families))
]
one_model = one_model.assign(value=one_model["raw"])  # ranks need no common scale
agreement = synthesis.rank_agreement(one_model, n_bootstrap, alpha, seed)
agreement["half_width"] = (agreement["high"] - agreement["low"]) / 2
stage.table("agreement", agreement, digits=2)

# %% [markdown]
# Then the question behind it: do explainers change places with the truth *more than with the model*? In $y$ = explainer + explainer × truth + explainer × model + rest, with $y$ the place of an explainer, we compare the two middle terms. Only where the first exceeds the second, with its interval, do truths disagree. Two trainings give no interval: a resample that holds one training twice says nothing.
#
# A family would be recommended where it is nowhere inferior by `margin`, and somewhere better than the best other family, by intervals that are corrected for the number of families:

# %% tags=["nbval-ignore-output"]
show_source(synthesis.recommended)
beyond = pd.DataFrame(
    [synthesis.truths_beyond_models(one_model, n_bootstrap, alpha, seed)]
)
_ = stage.table("beyond", beyond)
ranked = scores[~scores["truth"].eq("deletion, pad") | ~scores["explainer"].isin(pads)]
contrasts = synthesis.family_contrasts(ranked, families, alpha, n_bootstrap)
_ = stage.table("family_contrasts", contrasts)
stage.table("recommended", synthesis.recommended(contrasts, margin))

# %% [markdown]
# ## 6 · Claims
#
# They were written down in `material/claims.yaml` before any run that can decide. Two are judged from the tables of sections 4 and 5. Scale small decides nothing.

# %%
claims = stats.read_claims(material("assay") / "claims.yaml")
tables = {"scores": standing.as_rows(scores), "models": compared}
decides = scale in ("cpu", "hub")
gaps = {
    "mask_and_deletion_disagree": synthesis.below_ceiling(
        agreement, "mask", "deletion, mask"
    ),
    "lime_budget_moves_more_than_the_truth": synthesis.budget_against_truth(
        bought, cells, "LIME", "mask", "swap"
    ),
}
parts, rows = [], []
for claim in claims:
    if claim.table:
        parts.append(stats.judge_contrasts(claim, tables, decides, **how))
        rows.append(stats.summarise(claim, parts[-1], scale))
    else:
        n, gap = int(one_model["cluster"].nunique()), gaps[claim.id]
        verdict = stats.judge(claim, *gap, n, decides)
        rows.append(stats.claim_row(claim, verdict, scale, "", *gap, n))
table = stage.table("claims", pd.DataFrame(rows))
of_claims = pd.concat(parts, ignore_index=True)
_ = stage.table("contrasts", of_claims.drop(columns="models", errors="ignore"))
assert decides or not table["verdict"].isin(["holds", "fails"]).any()
print(table["verdict"].value_counts().to_string())

# %% [markdown]
# ## 7 · Controls
#
# The order is known at the ends: the oracle is 1 and above everybody, and the cheater with both texts is the oracle. The cheater that knows the marks is below the oracle where the truth is about the model; the one that knows the sizes is so for *edit* and *noun*.

# %%
means = scores.groupby(["truth", "explainer"])["raw"].mean()
for truth in means.index.unique("truth"):
    assert np.isclose(means[truth]["oracle"], 1), f"the oracle of {truth} is not 1"
    assert means[truth].max() <= 1 + 1e-9, f"somebody is above the oracle of {truth}"
assert np.isclose(means["edit", "Cheater: both texts"], 1)
knows = [(truth, "Cheater: marks") for truth in about_model]
for truth, cheater in [*knows, ("edit", "Cheater: sizes"), ("noun", "Cheater: sizes")]:
    assert means[truth, cheater] < 0.95, f"{cheater} is enough for {truth}"
print("the oracle is above them all, and two cheaters are below it")
stage.close(globals())

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Six items a truth, two trainings.** Every interval is wide, and the scale itself (its floor) is estimated on the same items.
# - **An interval over equal scores has no width.** Under *cue*, twelve right answers of twelve do not mean that all will be.
# - **The scale hides the room.** Where the floor is near the oracle a small difference becomes a large value; the raw scores stand beside it.
# - **A rank needs a fixed set of explainers.** Another set gives another rank correlation.
# - **Mask and swap share texts**, and deletion shares them, too. Their agreement is in part that of the texts.
# - **Padding is the model's word for one class** (stage 2). Explainers that pad, and the deletion that pads, say little of texts of that class.
# - **The gate takes one redrawn model**, which likes some words better than others by chance.
#
# ## Try it
#
# - Set `floor_of["edit"]` to *Even*. Who is suddenly good?
# - Leave *Attention rollout* out of `families`. Does the agreement of the truths rise?
# - Which cell would you need to see to recommend LIME?
#
# ## Hand-over
#
# [05_figures](05_figures.ipynb) draws the figure of the whole repository from `cells.csv`, and writes the page of advice as far as the verdicts allow.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.studies.assay import synthesis

floors = read_committed("assay", "small", "04_metrics", "floors").set_index("explainer")
truths = ["mask", "swap", "planted", "cue", "edit", "noun"]
floors.loc[["Cheater: marks", "Even", "Word counts"], truths].round(2)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# Under some truth word counts reach .75, the oracle reaches 1, and an explainer .70. Where is the explainer on the scale from floor to oracle?

# %% tags=["hole"]
value = ...

# %% tags=["solution"]
value = (0.70 - 0.75) / (1 - 0.75)

# %% tags=["check"]
check_number(
    value,
    synthesis.between(0.70, floor=0.75, oracle=1.0),
    {
        "that is the distance from the floor, not yet divided by the room.": -0.05,
        "the explainer is below the floor, so the value has another sign.": 0.2,
        "that divides by the floor.": 0.70 / 0.75,
    },
    "The floor has 0 and the oracle 1.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# `floors` above is a table of the run at scale small. *Cheater: marks* knows which words the truth speaks of, and nothing of the model. Under *mask* it has 1, under *swap* 0. What does this tell about the two truths?
#
# - `"a"` *Swap* is noise.
# - `"b"` *Mask* asks where the words are, and can be won without a model; *swap* asks what they did to this model.
# - `"c"` *Mask* is the better truth, since it can be reached.

# %% tags=["hole"]
what_it_tells = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_tells = "b"

# %% tags=["check"]
cheater = floors.loc["Cheater: marks"]
assert cheater["mask"] == 1 and abs(cheater["swap"]) < 0.1
check_choice(
    what_it_tells,
    "b",
    {
        "a": "An oracle reaches 1 under swap as well. So what does the cheater lack?",
        "c": "Who reaches it here has never seen the model that is explained.",
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Write a function
#
# Two truths rank explainers alike if most pairs stand in the same order. Write Kendall's correlation for two lists without ties: the pairs in the same order, minus those in another, divided by all pairs.


# %% tags=["hole"]
def kendall(left, right):
    """A number from -1 to 1."""
    return ...


# %% tags=["solution"]
def kendall(left, right):
    """A number from -1 to 1."""
    from itertools import combinations

    same = [
        1 if (left[i] - left[j]) * (right[i] - right[j]) > 0 else -1
        for i, j in combinations(range(len(left)), 2)
    ]
    return sum(same) / len(same)


# %% tags=["check"]
def expected(left, right):
    """By SciPy."""
    from scipy.stats import kendalltau

    return kendalltau(left, right).statistic


check_function(
    kendall,
    expected,
    {
        "All pairs stand alike.": [[1, 2, 3], [10, 20, 30]],
        "All pairs stand the other way round.": [[1, 2, 3], [3, 2, 1]],
        "Four explainers make six pairs.": [[1, 2, 3, 4], [2, 1, 4, 3]],
        "Only the order counts, not the distance.": [[1, 2, 9], [5, 1, 6]],
    },
)
