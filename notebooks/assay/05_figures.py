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
# # Assay, stage 5 of 5: one figure for the whole repository
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · the row: [README](README.md)
#
# ## What we found
#
# - **Nothing yet.** Only scale `small` has been run: six items a truth, and models that are trained for seconds. It shows how the assay works, and decides nothing.
# - What holds without statistics is in the figure: who knows *where* the words are wins *mask*, *planted* and *cue* without a model. These truths are about the data. *Swap*, *edit* and *noun* are about the model.
# - The claims are registered. A run that decides them will stand here.
#
# This notebook computes nothing. It draws tables of stage 4.
#
# ## You will see
#
# - every explainer under every truth, beside the rules that never look at the model;
# - whether the truths rank explainers alike;
# - the page of advice, as far as verdicts allow.
#
# **You can then** say what a recommendation would need. **You need** [stage 4](04_metrics.ipynb). **Time:** 5 minutes
# to read, under a minute to run, 10 minutes for the exercises.
#
# | in (all from stage 4) | used for |
# |---|---|
# | `cells` | the figure of the whole repository |
# | `agreement` | the second figure |
# | `gate` | who looks at the model |
# | `recommended`, `claims` | the page of advice |
#
# | out | holds |
# |---|---|
# | `whole`, `agreement` | as tables and as pictures |
# | `advice`, `verdict_all` | the advice; the verdicts (not at scale small) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import matplotlib.pyplot as plt
import pandas as pd

from lib.core.paths import material
from lib.core.stage import open_stage
from lib.stats import show_verdicts
from lib.studies.assay.figures import PANELS, plot_agreement, plot_whole

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. Everything else was decided in stage 4.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("assay", scale, "05_figures")
names = ("cells", "agreement", "gate", "recommended", "claims")
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in names}
verdicts = partial(
    show_verdicts, stage, tables["claims"], material("assay") / "claims.yaml"
)
truths = [truth for truth in PANELS if truth in set(tables["cells"]["truth"])]
print(f"{len(tables['cells'])} cells, {len(truths)} truths")

# %% [markdown] tags=["slide"]
# ## Every explainer under every truth
#
# **How to read the figure.** A row is an explainer, a column a truth; further right is better, and the black line at the right is the whole answer. The grey band ends where the rule in brackets ends, which never looks at the model. A filled dot lies right of the band with its whole interval; where a few texts all say the same, the interval has no width and shows nothing. A rule that reaches 1 cannot be beaten, and its column does not count. The first three truths ask *where* the words are in the data, the next three *what* they do in this model, the last three how fast the answer falls when words go.

# %% tags=["nbval-ignore-output", "slide"]
note = f"Scale {scale}: at most {tables['cells']['n_clusters'].max()} texts a truth"
note += ", too few to decide anything." if scale == "small" else "."
figure, plotted = plot_whole(tables["cells"], note)
stage.figure("whole", figure, formats)
plt.show()
_ = stage.table("whole", plotted)

# %% [markdown]
# The explainers' scores as numbers:

# %% tags=["nbval-ignore-output"]
scores = plotted[plotted["role"] == "explainer"]
grid = scores.pivot(index="explainer", columns="truth", values="raw")[truths]
stage.table("scores", grid.reset_index(), digits=2)

# %% [markdown] tags=["slide"]
# *Reading it.* The cheater that knows the marks is perfect in the first three columns, by identity, and not in the next three. The one that knows the sizes and not the signs is right only where all words speak for their class, as under *swap*. Where the band reaches the black line, as word counts do under *mask*, no explainer can be better than the rule. With six items a truth the order of the explainers is chance.
#
# ## Do the truths rank explainers alike?
#
# **How to read the figure.** A dot is the rank correlation of two truths over the same explainers, asked about one model, with its interval. The triangle is the lower of the two truths' own ceilings: how well each agrees with itself when its items are split in halves.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plot_agreement(tables["agreement"])
stage.figure("agreement", figure, formats)
plt.show()
stage.table("agreement", plotted, digits=2)

# %% [markdown]
# *Reading it.* An interval that ends left of its triangle would say that two truths disagree. Here the halves are of three texts, so the ceilings are low, and dots can lie right of them.
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
    "planted": "whether a model uses a shortcut that I suspect",
    "cue": "which noun a verb agrees with",
    "swap": "what a word does against the word that could stand there",
    "edit": "what a phrase did to an answer",
    "noun": "how a word differs from others of its kind",
    "deletion, pad": "in which order words can be spared (padding)",
    "deletion, mask": "in which order words can be spared (mask token)",
    "deletion, swap": "in which order words can be exchanged for the other form's",
}
good = tables["recommended"].query("recommended and @scale != 'small'")
use = dict.fromkeys(truths, "undecided")
for row in good.itertuples():
    use |= dict.fromkeys(row.better_on.split("; "), row.family)
advice = pd.DataFrame(
    [(questions[truth], truth, use[truth]) for truth in truths],
    columns=["to know", "ask the truth", "use"],
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

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed

cells = read_committed("assay", "small", "04_metrics", "cells")
ours = cells.query("role == 'explainer' and truth == 'planted'")
ours = ours[["explainer", "value", "low", "high", "n_clusters"]].round(2)
ours

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `ours` holds the explainers under the truth *planted*, on the scale from floor (0) to oracle (1), at scale small. For how many of them does the interval lie above the floor as a whole?

# %% tags=["hole"]
n_above = ...

# %% tags=["solution"]
n_above = int((ours["low"] > 0).sum())

# %% tags=["check"]
check_number(
    n_above,
    (ours["low"] > 0).sum(),
    {"those are the estimates; look at the intervals.": (ours["value"] > 0).sum()}
    if (ours["value"] > 0).sum() != (ours["low"] > 0).sum()
    else {},
    "Which end of an interval has to be above 0?",
    tolerance=0,
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# Somebody wants to recommend the explainer with the largest value of this table. What is missing?
#
# - `"a"` More digits.
# - `"b"` Nothing: the largest value is the best explainer.
# - `"c"` A comparison of the best two, text by text, on more than these few texts, and the other truths.

# %% tags=["hole"]
missing = ...  # "a", "b" or "c"

# %% tags=["solution"]
missing = "c"

# %% tags=["check"]
check_choice(
    missing,
    "c",
    {
        "a": "Look at the width of the intervals: which digit is still sure?",
        "b": "Do the intervals of the best two overlap, and on how many texts?",
    },
)
