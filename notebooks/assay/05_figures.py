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
# # Assay, stage 5 of 5: one figure for the whole repository
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · the row: [README](README.md)
#
# ## What we found
#
# - **Nothing yet.** Only scale `small` has been run: six items a truth, and models that are trained for seconds. It shows how the assay works, and decides nothing.
# - What holds without statistics is in the table: who knows *where* the words are wins *mask*, *planted* and *cue* without a model. These truths are about the data. *Swap*, *edit* and *noun* are about the model.
# - The claims are registered. A run that decides them will stand here.
#
# This notebook computes nothing. It draws tables of stage 4.

# %% [markdown]
# ## You will see
#
# - every explainer under every truth, beside the floors;
# - the price of the scale: what a rule reaches that never looks at the model;
# - the page of advice, as far as verdicts allow.
#
# | in (all from stage 4) | used for |
# |---|---|
# | `cells` | the figure of the whole repository, and the floors |
# | `gate` | who looks at the model |
# | `recommended`, `claims` | the page of advice |
#
# | out | holds |
# |---|---|
# | `whole`, `floors` | as tables and as pictures |
# | `advice`, `verdict_all` | the advice; the verdicts (not at scale small) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots import COLOURS, STYLE
from lib.stats import show_verdicts

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. Everything else was decided in stage 4.

# %% tags=["parameters"]
scale = "small"  # which settings: small or hub; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("assay", scale, "05_figures")
tables = {
    name: pd.read_csv(stage.input("04_metrics", f"{name}.csv"))
    for name in ("cells", "gate", "recommended", "claims")
}
verdicts = partial(
    show_verdicts, stage, tables["claims"], material("assay") / "claims.yaml"
)
cells = tables["cells"]
truths = [
    "mask",
    "planted",
    "cue",
    "swap",
    "edit",
    "noun",
    "deletion, pad",
    "deletion, mask",
]
truths = [truth for truth in truths if truth in set(cells["truth"])]
of_data = [truth for truth in truths if truth in ("mask", "planted", "cue")]
print(f"{len(cells)} cells, {len(truths)} truths")

# %% [markdown]
# ## Every explainer under every truth
#
# **How to read the figure.** A cell is a mean on the scale from the truth's strongest floor (0, white) to its oracle (1). Orange is better than the floor, violet is worse. Hatched cells hold by identity and are not ranked. Empty cells: the explainer refuses the model, or the truth tells nothing apart in this run. The first three truths ask where the words are in the *data*, the others what they do in the *model*.


# %% tags=["nbval-ignore-output"]
def grid_of(role, column):
    """A row an explainer, a column a truth."""
    part = cells[cells["role"].isin(role)]
    grid = part.pivot(index="explainer", columns="truth", values=column)
    return grid.reindex(columns=truths)


whole = grid_of(["explainer", "cheater"], "value")
whole = whole.loc[
    whole.drop(columns=of_data).mean(axis=1).sort_values(ascending=False).index
]
same = grid_of(["explainer", "cheater"], "by_identity").reindex(whole.index) == True  # noqa: E712
with plt.rc_context(STYLE | {"axes.grid": False}):
    figure, ax = plt.subplots(figsize=(9, 0.42 * len(whole) + 2), layout="constrained")
    drawn = ax.imshow(whole.clip(-1, 1), cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
    for (y, x), value in np.ndenumerate(whole.to_numpy()):
        if np.isfinite(value):
            ax.text(x, y, f"{value:.1f}", ha="center", va="center", fontsize=9)
        if same.iat[y, x]:
            box = plt.Rectangle(
                (x - 0.5, y - 0.5), 1, 1, fill=False, hatch="///", edgecolor="0.4"
            )
            ax.add_patch(box)
    ax.axvline(len(of_data) - 0.5, color="0.2", linewidth=1.5)
    ax.set_xticks(range(len(truths)), truths, rotation=30, ha="right")
    ax.set_yticks(range(len(whole)), whole.index)
    ax.set_title("where in the data   |   what in the model", fontsize=11)
    figure.colorbar(drawn, label="0: strongest floor, 1: oracle")
stage.figure("whole", figure, formats)
plt.show()
stage.table("whole", whole.reset_index(), digits=2)

# %% [markdown]
# **What it shows.** The cheater that knows the marks is perfect left of the line, by identity, and not right of it. The one that holds both texts is asked on *edit* alone. With six items a truth the order of the explainers is chance.
#
# ## What a rule reaches that never looks at the model
#
# The same truths by their own scores. A tall floor leaves little room for praise.

# %% tags=["nbval-ignore-output"]
floors = grid_of(["floor"], "raw")
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for colour, marker, (name, row) in zip(COLOURS, "osD^vP", floors.iterrows()):
        ax.plot(range(len(truths)), row, marker, color=colour, label=name, alpha=0.8)
    best = grid_of(["explainer"], "raw").max()
    ax.plot(
        range(len(truths)),
        best,
        "_",
        color="black",
        markersize=22,
        label="best explainer",
    )
    ax.set_xticks(range(len(truths)), truths, rotation=20, ha="right")
    ax.set(ylabel="primary score", title="Floors, and the best explainer")
    ax.legend(ncols=2, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
stage.figure("floors", figure, formats)
plt.show()
stage.table("floors", floors.reset_index(), digits=2)

# %% [markdown]
# **What it shows.** Where a coloured mark stands near the black line, the best explainer tells little more than a rule. The best of many is also the luckiest of many.
#
# ## Who looks at the model?
#
# The gate of stage 4: an explainer passes if its answer changes when all weights are drawn anew. Floors cannot pass.

# %% tags=["nbval-ignore-output"]
stage.table("gate", tables["gate"], digits=2)

# %% [markdown]
# ## The page of advice
#
# *To know X, use Y. Z looks good only because of W.* A line is written where a verdict allows it, and nowhere else. At scale small that is nowhere.

# %%
questions = {
    "mask": "which words of the data carry the class",
    "planted": "whether a model uses a shortcut that one suspects",
    "cue": "which noun a verb agrees with",
    "swap": "what a word does against the word that could stand there",
    "edit": "what a phrase did to an answer",
    "noun": "how a word differs from others of its kind",
    "deletion, pad": "in which order words can be spared (padding)",
    "deletion, mask": "in which order words can be spared (mask token)",
}
good = (
    tables["recommended"].query("recommended")
    if scale != "small"
    else tables["recommended"].head(0)
)
use = {
    truth: ", ".join(
        good.loc[
            good["better_on"].fillna("").str.contains(truth, regex=False), "family"
        ]
    )
    for truth in truths
}
advice = pd.DataFrame(
    {
        "to know": [questions[truth] for truth in truths],
        "ask the truth": truths,
        "use": [use[truth] or "undecided" for truth in truths],
    }
)
stage.table("advice", advice)

# %% [markdown]
# ## All claims

# %%
verdicts("all")

# %% [markdown]
# The comparisons behind each verdict are in `contrasts.csv` of stage 4.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder. To ask about an explainer of your own, name it in `explainers` of [stage 3](03_attribution.ipynb).
