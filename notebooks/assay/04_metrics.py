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

# %% [markdown]
# # Assay, stage 4 of 5: which explainer may one trust, and about what?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb) · the row: [README](README.md)
#
# Every truth has one score, fixed beforehand. A rule that never looks at the model gets 0 and one who knows the answer gets 1. On this scale explainers can be compared across truths.

# %% [markdown]
# ## You will see
#
# - each explainer under each truth, between floor and oracle, with intervals;
# - which cells hold by identity and are not ranked;
# - whether an explainer notices that it looks at another model;
# - whether truths rank explainers alike, and how one would know.
#
# You need [03](03_attribution.ipynb).
#
# | in | out (in this stage's folder) | holds |
# |---|---|---|
# | `truths.parquet`, `models/` (02) | `cells.csv` | explainer by truth: raw score, value on the scale, interval |
# | `explanations`, `redrawn`, `budgets` (`.parquet`, 03) | `floors`, `gate`, `budgets`, `own_other` (`.csv`) | what stands beside them |
# | | `agreement`, `beyond`, `recommended` (`.csv`) | the synthesis |
# | | `contrasts`, `claims` (`.csv`), three figures | the verdicts |

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
from lib.metrics.agreement import rank_correlation
from lib.plots import COLOURS, STYLE
from lib.studies.assay import models, synthesis
from lib.studies.assay.explainers import FLOORS
from lib.studies.assay.truths import (
    TRUTHS,
    oracle,
    order_of_known,
    score_deletion,
    score_items,
    score_on_other,
)

# %% [markdown]
# ## Settings
#
# `floor_of` names the floor that is 0 under each truth. It was chosen before the run, as the strongest rule that we know of; all other floors are shown beside it.

# %% tags=["parameters"]
scale = "small"  # which settings: small or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
floor_of = {
    "mask": "Word counts",
    "swap": "Word counts",
    "planted": "Word counts",
    "cue": "Nearest",
    "edit": "Word counts",
    "noun": "Word counts",
    "deletion, pad": "Word counts",
    "deletion, mask": "Word counts",
}  # the rule that gets 0
families = {
    "Saliency": "gradient",
    "Gradient norm": "gradient",
    "InputXGradient": "gradient",
    "Integrated Gradients": "path",
    "DeepLift": "propagation",
    "AttnLRP": "propagation",
    "Attention rollout": "attention",
    "Occlusion": "perturbation",
    "LIME": "perturbation",
    "Kernel SHAP": "perturbation",
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
said = {
    name: load_parquet(stage.input("03_attribution", f"{name}.parquet"))
    for name in ("explanations", "redrawn", "budgets")
}
for table in said.values():
    table["training"] = table["training"].astype(int)
truths["text"] = truths["sentence"].map(" ".join)
truths["base_id"] = truths["item_id"]
truths["item_id"] += "@" + truths["training"].astype(str)
telling = truths[truths["tells"]].reset_index(drop=True)
print(f"{len(truths)} items, {len(said['explanations'])} explanations")

# %% [markdown]
# ## 1 · By hand: from a score to the scale
#
# On some truth word counts reach .60, the oracle 1, and an explainer .80. So it is half way: $(.80 - .60) / (1 - .60) = .5$.
#
# **Stop and guess.** Another explainer reaches .50. Is it worth half of that? No: it is at -.25, worse than a rule that never looked at the model.

# %%
assert np.isclose(synthesis.between(0.8, floor=0.6, oracle=1.0), 0.5)
assert np.isclose(synthesis.between(0.5, floor=0.6, oracle=1.0), -0.25)
show_source(synthesis.between)

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
#
# Each explanation meets the truth of its own model and training. The oracle knows the key. Two cheaters know less: one holds both texts of an edit, the other knows which words are marked, and nothing of the model.

# %%
show_source(order_of_known)
keys = ["model", "training", "text"]
answers = telling[["item_id", *keys]].merge(said["explanations"], on=keys)
marks = telling[["item_id"]].assign(explainer="Cheater: marks", scores=telling["mark"])
edits = telling[telling["truth"] == "edit"].reset_index(drop=True)
both = oracle(edits).assign(explainer="Cheater: both texts")
columns = ["item_id", "explainer", "scores"]
answers = pd.concat([answers[columns], oracle(telling), marks, both], ignore_index=True)
scored = score_items(telling, answers)
print(", ".join(sorted(set(answers["explainer"]))))

# %% [markdown]
# ### Deletion, by two operators
#
# Delete words in the order of an explanation, and see how fast the answer falls: 0 for the worst order, 1 for the best (NAOPC). What stands in a deleted word's place is a choice, so there are two: padding, and the mask token. Explainers that pad words themselves have met the first operator before, so their cell is hatched.

# %%
texts = telling.query("truth == 'mask'").groupby("training").head(n_deleted)
deleted = []
for number, part in texts.groupby("training"):
    files = [
        stage.input("02_training", f"models/gender-{number}.{end}")
        for end in ("json", "safetensors")
    ]
    asked = models.read_model(*files), part, said["explanations"]
    deleted += [score_deletion(*asked, operator, seed) for operator in ("pad", "mask")]
scored = pd.concat([scored, *deleted], ignore_index=True)

# %% [markdown]
# ## 3 · Explainer by truth
#
# The scale is set by the means of floor and oracle. Where the two are closer than .02 the truth tells nothing apart in this run, and its cells stay empty.


# %%
scores = synthesis.on_one_scale(scored, floor_of)
scores = scores.assign(
    seed=scores["training"], sentence_idx=scores["cluster"], row_id=scores["item_id"]
)
scores["role"] = [
    "floor"
    if name in FLOORS
    else "cheater"
    if name.startswith("Cheater")
    else "oracle"
    if name == "oracle"
    else "explainer"
    for name in scores["explainer"]
]
by_cell = ["truth", "explainer", "role"]
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
raw = stats.estimates(scores, by_cell, "raw", **how)
cells = stats.estimates(scores, by_cell, "value", **how).merge(
    raw[[*by_cell, "estimate"]], on=by_cell, suffixes=("", "_raw")
)
cells = cells.rename(columns={"estimate": "value", "estimate_raw": "raw"})

# %% [markdown]
# Some cells hold by identity: the oracle everywhere, who holds both texts on *edit*, who knows the marks where the truth *is* the marks, and who pads where the operator pads.

# %%
given = {("Cheater: both texts", "edit")}
given |= {("Cheater: marks", truth) for truth in ("mask", "planted", "cue")}
given |= {(name, "deletion, pad") for name in pads}
cells["by_identity"] = [
    row.role == "oracle" or (row.explainer, row.truth) in given
    for row in cells.itertuples()
]
order = [
    "truth",
    "explainer",
    "role",
    "raw",
    "value",
    "low",
    "high",
    "n_sentences",
    "by_identity",
]
_ = stage.table("cells", cells[order])
wide = cells[cells["role"] == "explainer"].pivot(
    index="explainer", columns="truth", values="value"
)
print(", ".join(floor_of))

# %% [markdown]
# The values, 0 for the strongest floor and 1 for the oracle:

# %% tags=["nbval-ignore-output"]
stage.table("wide", wide.reset_index(), digits=2)

# %% [markdown]
# And the floors themselves, by the primary score. Each truth has a rule that comes far without looking at a model.

# %% tags=["nbval-ignore-output"]
floors = cells[cells["role"].isin(["floor", "cheater"])]
stage.table(
    "floors",
    floors.pivot(index="explainer", columns="truth", values="raw").reset_index(),
    digits=2,
)

# %% [markdown]
# *Reading it.* A column whose floors are near 1 can hardly praise an explainer. The cheater that knows the marks has 1 wherever the truth asks *where*; on *swap*, *edit* and *noun*, which ask *what it did to this model*, knowing where is not enough.

# %% tags=["nbval-ignore-output"]
shown = cells[(cells["role"] == "explainer") & cells["value"].notna()]
names, places = list(wide.index), list(dict.fromkeys(shown["truth"]))
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1, len(places), figsize=(11, 3.6), sharey=True, layout="constrained"
    )
    for ax, truth in zip(np.atleast_1d(axes), places):
        part = shown[shown["truth"] == truth].set_index("explainer").reindex(names)
        for y, row in enumerate(part.itertuples()):
            marker = "x" if row.by_identity == 1 else "o"
            ax.plot([row.low, row.high], [y, y], color="0.6")
            ax.plot(row.value, y, marker, color=COLOURS[0])
        ax.axvline(0, color=COLOURS[3], linestyle="--")
        ax.axvline(1, color="0.2")
        ax.set(title=truth, xlim=(-1.5, 1.2))
    np.atleast_1d(axes)[0].set_yticks(range(len(names)), names)
    figure.supxlabel("0: strongest floor (dashed), 1: oracle; crosses hold by identity")
stage.figure("cells", figure)
plt.show()
_ = stage.table("figure", shown[order])

# %% [markdown]
# *Reading it.* The lines are intervals over items and trainings. With six items they reach across most of the scale, so nothing can be ranked here.
#
# ## 4 · Does it look at the model?
#
# Two questions that need no truth about words. First the **gate**: draw all weights anew. An explanation that stays as it was did not look at them (Adebayo et al. 2018). Fresh noise would pass, so it is a gate and no score.

# %%
pair = said["redrawn"].merge(
    said["explanations"].query("model == 'gender' and training == 0"),
    on=["explainer", *keys],
    suffixes=("_redrawn", ""),
)
pair["likeness"] = [
    abs(rank_correlation(row.scores, row.scores_redrawn)) for row in pair.itertuples()
]
gates = (
    pair.groupby("explainer", sort=False)["likeness"].mean().fillna(1.0).reset_index()
)
gates["passes"] = gates["likeness"] < gate
blind = gates[gates["explainer"].isin(list(FLOORS))]
assert not blind["passes"].any(), (
    "a floor passes the gate: it must not change with the weights"
)

# %% [markdown]
# Their likeness to themselves, before and after:

# %% tags=["nbval-ignore-output"]
stage.table("gate", gates, digits=2)

# %% [markdown]
# Second: hold the explanation of this model against the truth of the *other training*. What is left of the score was never about this model.


# %%
show_source(score_on_other)
about_model = ["swap", "edit", "noun"]
asked = telling[telling["truth"].isin(about_model)]
other = score_on_other(asked, said["explanations"])
own = scored[scored["truth"].isin(about_model)]
compared = pd.concat([own.assign(explained="own"), other.assign(explained="other")])
compared = compared[compared["explainer"].isin(list(families))].dropna(subset="value")
compared = compared.assign(seed=compared["training"], sentence_idx=compared["cluster"])
compared["row_id"] = compared["item_id"] + compared["explainer"]
own_other = stats.estimates(compared, ["truth", "explained"], "value", **how)

# %% [markdown]
# All explainers together:

# %% tags=["nbval-ignore-output"]
stage.table(
    "own_other",
    own_other[["truth", "explained", "estimate", "low", "high", "n_sentences"]],
)

# %% [markdown]
# ### What does it cost?
#
# Quality on *mask* after so many passes of the model.

# %% tags=["nbval-ignore-output"]
first = telling.query("truth == 'mask' and training == 0").reset_index(drop=True)
bought = []
for n, part in said["budgets"].groupby("passes"):
    found = first[["item_id", *keys]].merge(part, on=keys)
    bought.append(score_items(first, found[columns]).assign(passes=n))
bought = (
    pd.concat(bought).groupby(["explainer", "passes"], as_index=False)["value"].mean()
)
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    for marker, (name, part) in zip("os^", bought.groupby("explainer")):
        ax.plot(part["passes"], part["value"], marker=marker, label=name)
    ax.axhline(
        raw.query("truth == 'mask' and explainer == 'Word counts'")["estimate"].iloc[0],
        color="0.4",
        linestyle="--",
        label="word counts, 0 passes",
    )
    ax.set(
        xscale="log", xlabel="passes of the model", ylabel="area under the ROC curve"
    )
    ax.legend()
stage.figure("budgets", figure)
plt.show()
stage.table("budgets", bought)

# %% [markdown]
# ## 5 · Do the truths rank explainers alike?
#
# First **within one model**, so that nothing but the truth differs: *gender* has mask, swap and both deletions. $\tau_b$ compares the order of explainers under two truths. On the diagonal stands a truth's agreement with itself, its items split in halves: more than that no other truth can reach.

# %%
show_source(synthesis.rank_agreement)
one_model = scores[(scores["model"] == "gender") & (scores["role"] == "explainer")]
one_model = one_model.dropna(subset="value")
agreement = synthesis.rank_agreement(one_model, n_bootstrap, alpha, seed)

# %% [markdown]
# With the half-width of its interval; at .15 or below a verdict could stand on it:

# %% tags=["nbval-ignore-output"]
agreement["half_width"] = (agreement["high"] - agreement["low"]) / 2
stage.table("agreement", agreement, digits=2)

# %% [markdown]
# Then the question behind it: do explainers change places with the truth *more than with the model*? In $y$ = explainer + explainer × truth + explainer × model + rest we compare the two middle terms. Only where the first exceeds the second, with its interval, do truths disagree.

# %% tags=["nbval-ignore-output"]
beyond = synthesis.truths_beyond_models(one_model, n_bootstrap, alpha, seed)
stage.table("beyond", pd.DataFrame([beyond]))

# %% [markdown]
# *Reading it.* Two trainings leave the interval open by construction: a resample that holds one training twice says nothing.
#
# A family would be recommended where it is nowhere inferior by `margin`, and somewhere better than the best other family:


# %%
show_source(synthesis.recommended)
honest = scores[scores["role"] == "explainer"]
contrasts = synthesis.family_contrasts(honest, families, alpha, n_bootstrap)
advice = synthesis.recommended(contrasts, margin)
_ = stage.table("family_contrasts", contrasts)

# %% [markdown]
# Intervals are corrected for the number of families.

# %% tags=["nbval-ignore-output"]
stage.table("recommended", advice)

# %% [markdown]
# ## 6 · Claims
#
# They were written down in `material/claims.yaml` before any run that can decide. Two are judged from the tables of sections 4 and 5.

# %%
claims = stats.read_claims(material("assay") / "claims.yaml")
tables = {"scores": scores.dropna(subset="raw"), "models": compared}
decides = scale != "small"
parts = {
    claim.id: stats.judge_contrasts(claim, tables, decides, **how)
    for claim in claims
    if claim.table
}
gaps = {claim.id: (np.nan,) * 3 for claim in claims}
tau = agreement.set_index(["left", "right"])
names = ("mask", "deletion, mask")
if all((name, name) in tau.index for name in names):
    ceiling = min(tau.loc[(name, name), "tau"] for name in names)
    both = next(tau.loc[pair] for pair in tau.index if set(pair) == set(names))
    gaps["mask_and_deletion_disagree"] = tuple(ceiling - both[["tau", "high", "low"]])
lime = bought[bought["explainer"] == "LIME"].set_index("passes")["value"]
by_truth = wide.loc["LIME", ["mask", "swap"]]
size = abs(lime.iloc[-1] - lime.iloc[0]) - abs(by_truth["mask"] - by_truth["swap"])
gaps["lime_budget_moves_more_than_the_truth"] = (size, np.nan, np.nan)

# %% [markdown]
# The verdicts. Scale small decides nothing.

# %%
rows = []
for claim in claims:
    if claim.table:
        rows.append(stats.summarise(claim, parts[claim.id], scale))
    else:
        n = int(one_model["cluster"].nunique())
        verdict = stats.judge(claim, *gaps[claim.id], n, decides)
        rows.append(stats.claim_row(claim, verdict, scale, "", *gaps[claim.id], n))
table = pd.DataFrame(rows)
_ = stage.table("claims", table)
_ = stage.table(
    "contrasts",
    pd.concat(parts.values(), ignore_index=True).drop(
        columns="models", errors="ignore"
    ),
)
assert decides or not table["verdict"].isin(["holds", "fails"]).any()
print(table["verdict"].value_counts().to_string())

# %% [markdown]
# ## 7 · Controls
#
# The order is known at the ends: the oracle is above everybody, and the cheater with both texts is the oracle. The cheater that knows the marks is below the oracle where the truth is about the model.

# %%
means = scores.groupby(["truth", "explainer"])["raw"].mean()
for truth in TRUTHS:
    if truth in means.index.get_level_values("truth"):
        assert means[truth].max() <= means[truth]["oracle"] + 1e-9, (
            f"somebody is above the oracle of {truth}: is its key that of another model?"
        )
assert np.isclose(means["edit", "Cheater: both texts"], means["edit", "oracle"])
for truth in ("swap", "edit", "noun"):
    assert means[truth, "Cheater: marks"] < means[truth, "oracle"] - 0.1, (
        f"knowing the marks is enough for {truth}: it does not ask about the model"
    )
print("the oracle is above them all, and the cheater that knows the marks below it")

# %% [markdown]
# ## What could be wrong
#
# - **Six items a truth, two trainings.** Every interval is wide, and the scale itself (its floor) is estimated on the same items.
# - **The scale hides the room.** Where the floor is near the oracle a small difference becomes a large value; the raw scores stand beside it.
# - **A rank needs a fixed set of explainers.** Another set gives another rank correlation.
# - **Mask and swap share texts**, and deletion shares them, too. Their agreement is in part that of the texts.
# - **Deletion and the explainers that pad** ask the model the same odd texts; hatching tells, and does not correct.
# - **The gate takes one redrawn model**, which likes some words better than others by chance.
#
# ## Try it
#
# - Set `floor_of["edit"]` to *Even*. Who is suddenly good?
# - Leave *Attention rollout* out of `families`. Does the agreement of the truths rise?
# - Which cell would you need to see to recommend LIME?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [05_figures](05_figures.ipynb) draws the figure of the whole repository from `cells.csv`, and writes the page of advice as far as the verdicts allow.
