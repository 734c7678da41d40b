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
# # Assay, stage 5 of 5: is any explainer better than a rule without a model?
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · this study: [README](README.md)
#
# ## What we found
#
# At run size `cpu`: published texts, five fine-tuning runs of each model, fifteen explainers, at most 40 texts for each
# truth. [All figures and verdicts](../../outputs/reference/assay/cpu/05_figures.ipynb).
#
# - **Explainers know what a word does in a model, and no rule does.** Under *noun*, AttnLRP has
#   .53<!-- assay/cpu/04_metrics/cells[truth=noun, explainer=AttnLRP].raw --> and the best rule
#   .12<!-- assay/cpu/04_metrics/cells[truth=noun, explainer=Nearest].raw -->.
#   [See the figure](../../outputs/reference/assay/cpu/05_figures/whole.png)
# - **Under *swap* and *deletion*, counting words is nearly enough.** A ratio of word counts has
#   .91<!-- assay/cpu/04_metrics/cells[truth=swap, explainer=Log count ratio].raw --> under *swap*, the best explainer
#   .89<!-- assay/cpu/04_metrics/cells[truth=swap, explainer=AttnLRP].raw -->.
#   [See the floors](../../outputs/reference/assay/cpu/04_metrics/floors.csv)
# - **Different truths rank explainers differently**: seven of eleven pairs, each about one model (the three kinds of
#   *deletion* count as truths).
#   [See the figure](../../outputs/reference/assay/cpu/05_figures/agreement.png)
# - **Different kinds of models do so even more.** Under *altered words*, the orders of explainers for an encoder and for an
#   LSTM agree by -.06<!-- assay/cpu/04_metrics/agreement[left=mask, encoder, right=mask, LSTM].tau -->.
#   We had expected them to differ less. [See the table](../../outputs/reference/assay/cpu/04_metrics/beyond.csv)
# - **Saliency shows why one truth is not enough.** It has
#   .93<!-- assay/cpu/04_metrics/cells[truth=mask, explainer=Saliency].raw --> under *altered words*, where
#   .5 is chance, and .04<!-- assay/cpu/04_metrics/cells[truth=cue, explainer=Saliency].raw --> under *cue*, where .5 is
#   chance, too.
#
# This notebook computes nothing. It draws tables of stage 4.
#
# ## You will see
#
# - every explainer under every truth, compared with rules that never look at the model;
# - whether different truths put the explainers in the same order;
# - which explainers we can recommend for which question.
#
# **You can then** say what a recommendation would need. **You need** [stage 4](04_metrics.ipynb). **Time:** 5 minutes
# to read, under a minute to run, [10 minutes for the exercises](../../docs/course/exercises/assay.md#05-figures). The
# cells below show run size `small`: six items for each truth, models trained for seconds. It decides nothing.
#
# | in (all from stage 4) | used for |
# |---|---|
# | `cells` | the first figure |
# | `agreement` | the second figure |
# | `gate` | the test with random weights |
# | `recommended`, `claims` | the advice |
#
# | out | holds |
# |---|---|
# | `whole`, `agreement` | tables and pictures |
# | `advice`, `verdict_all` | the advice; the verdicts (not at run size small) |
#
# Every word that is not explained here is in the [glossary](../../docs/glossary.md).

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import matplotlib.pyplot as plt
import pandas as pd

from lib.core.notebooks import show_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.stats import tell_verdicts
from lib.studies.assay import standing
from lib.studies.assay.figures import (
    PANELS,
    SHORT_NAMES,
    is_one_truth,
    name_pair,
    plot_agreement,
    plot_whole,
)

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. All other settings are those of stage 4.

# %% tags=["parameters"]
scale = "small"  # the run size: small, cpu or hub; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("assay", scale, "05_figures")
names = ("cells", "agreement", "gate", "recommended", "claims")
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in names}
verdicts = partial(
    tell_verdicts, stage, tables["claims"], material("assay") / "claims.yaml"
)
truths = [truth for truth in PANELS if truth in set(tables["cells"]["truth"])]
n_truths = len({truth.partition(",")[0] for truth in truths})
print(f"{len(tables['cells'])} cells, {n_truths} truths in {len(truths)} columns")

# %% [markdown] tags=["slide"]
# ## Every explainer under every truth
#
# ![The truths of the assay. altered words: these words differ between the forms. planted: these words alone decide the label. cue: the verb agrees with this noun. swap: what a swap to another form does to the answer. edit: what becomes of the answer without these words. noun: what other nouns here do to the answer. deletion: how fast the answer falls when words go.](../../docs/schematics/assay_truths.svg)
#
# **How to read the figure.** Each row is an explainer. Each column is a truth; *deletion* has three, one for each thing that
# is put in the place of a deleted word. Further right is better, and the black line is the best possible score.
#
# The grey band ends at the score of a rule that never looks at the model; the rule's name stands in brackets. A dot is
# filled if the explainer is clearly better: its whole interval lies above the score of this rule. Otherwise it is empty.
# It is empty, too, if the interval has no width, which happens when a few texts have equal scores. We chose the rule
# before the run. A dotted line marks the best rule of the run, if it is another.

# %% tags=["nbval-ignore-output", "slide"]
note = f"Run size {scale}: at most {tables['cells']['n_clusters'].max()} texts a truth"
note += ", too few to decide anything." if stage.is_practice else "."
figure, plotted = plot_whole(tables["cells"], note)
stage.figure("whole", figure, formats)
plt.show()
_ = stage.table("whole", plotted)

# %% [markdown] tags=["slide"]
# The title counts the filled dots. At run size `small` there are few, and none under *altered words*: there the rule, word
# counts, has the best possible score. In our `cpu` run most explainers are clearly better under *planted*, *noun* and one
# *deletion*, few
# under *altered words*, *swap* and *cue*, and none under *edit*, where the intervals are wide.
#
# Often another rule beats the one we chose beforehand (dotted). Compared with it, fewer explainers lead: in our `cpu` run
# none under *swap* and under any *deletion*.
#
# The last rows are *cheaters*, made from a part of the right answer. The cheater made only from the marks is perfect
# under *altered words*, *planted* and *cue*. It is not perfect under *swap*, *edit* and *noun*, because these truths ask what
# the words do in the model.
#
# Here are the same scores as numbers, with the best under *altered words* at the top. We leave out *deletion*:

# %% tags=["nbval-ignore-output"]
scores = plotted[plotted["role"] == "explainer"]
grid = scores.pivot(index="explainer", columns="truth", values="raw")[truths]
grid = stage.table("scores", grid.reset_index(), digits=2)
shown = {name: name for name in ["explainer", *truths[:6]]}
best_first = grid.sort_values("mask", ascending=False, kind="stable")
show_table(best_first, shown | {"mask": "altered words"})

# %% [markdown] tags=["slide"]
# Saliency and Gradient norm lead under *altered words*, and are last under *cue*. With six items for each truth, as at run
# size `small`, the order of the explainers can be chance.
#
# ## Do the truths rank explainers alike?
#
# **How to read the figure.** Each dot compares two truths, or two kinds of *deletion*. At 1 they put the explainers in the same order; at 0 the
# orders have nothing in common. The blue line is the interval for these explainers, the wide grey one for any explainers
# of their kind. The triangle shows how well a truth agrees with itself, if we split its items into halves. For two truths
# we draw the lower of their two triangles. The truths differ clearly if their blue line ends left of it. The
# lower part compares two models under one truth: an encoder and a single attention layer, the models of gender and of
# reviews, an encoder and an LSTM.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plot_agreement(tables["agreement"])
stage.figure("agreement", figure, formats)
plt.show()
plotted = stage.table("agreement", plotted, digits=2)
columns = {"truths": "two truths", "tau": "rank correlation", "low": "from"}
columns |= {"high": "to", "ceiling": "triangle"}
two = [pair.split(" / ") for pair in plotted["truths"]]
named = plotted.assign(truths=[name_pair(*pair) for pair in two])
is_one = pd.Series([is_one_truth(*pair) for pair in two], index=named.index)
show_table(named[~is_one], columns)
show_table(named[is_one], columns | {"truths": "one truth, two models"})

# %% [markdown] tags=["slide"]
# The title counts the pairs in the upper part that differ. At run size `small` the triangles are low, because a half has at most
# three texts; most dots even lie right of their triangles by chance. In our `cpu` run the deletions with padding and with the mask token
# agree, and so do edits and deletion in reviews; *altered words* agrees less with each of the others than with itself.
#
# The lower part warns of too simple a lesson: in our `cpu` run the places of explainers vary more between an encoder and an
# LSTM than between truths. So an explainer that suits one kind of model need not suit another.
#
# ## Does each explanation depend on the model?
#
# In the test of stage 4 all weights of the model become random. An explainer passes if the rank correlation between its
# explanations before and after is below .5.

# %% tags=["nbval-ignore-output"]
columns = {"explainer": "explainer", "likeness": "rank correlation, before and after"}
gate = stage.table("gate", tables["gate"], digits=2)
show_table(gate, columns | {"passes": "passes"})

# %% [markdown] tags=["slide"]
# Every explainer passes. So each explanation depends on the weights, though it may still be wrong.
#
# ## What can we recommend?
#
# Each row of the table has a question about a model or its data, and the truth that tests it. We would name a family of
# explainers for it if the test of stage 4 supported one, which is not possible at run size `small`.
# In our `cpu` run no family passes: under some truth each may be worse than the best other one.
#
# Two columns name the rule that never looks at the model and gets furthest. **If an explainer does not beat this
# rule, its good score is no sign that it knows the model.**

# %% tags=["slide"]
questions = {
    "mask": "which words of the data carry the class",
    "planted": "whether a model uses a shortcut that I suspect",
    "cue": "which noun a verb agrees with",
    "swap": "what a word does against the word that could stand there",
    "edit": "what a phrase did to an answer",
    "noun": "how a word differs from others of its kind",
    "deletion, pad": "in which order words can be spared (padding)",
    "deletion, mask": "in which order words can be spared (mask token)",
    "deletion, swap": "in which order words can be changed to the other form",
}
good = tables["recommended"].query("recommended and not @stage.is_practice")
use = dict.fromkeys(truths, "undecided")
for row in good.itertuples():
    use |= dict.fromkeys(row.better_on.split("; "), row.family)
rule = standing.leaders(tables["cells"].query("role == 'floor'"))
explainer = standing.leaders(tables["cells"].query("role == 'explainer'"))
advice = pd.DataFrame(
    {
        "to know": [questions[truth] for truth in truths],
        "ask the truth": truths,
        "use": [use[truth] for truth in truths],
        "compare it with": rule.loc[truths, "explainer"].to_numpy(),
        "which has": rule.loc[truths, "raw"].to_numpy(),
        "the best explainer": explainer.loc[truths, "explainer"].to_numpy(),
        "has": explainer.loc[truths, "raw"].to_numpy(),
    }
)
advice = stage.table("advice", advice, digits=2)
kept = ("swap", "edit", "noun")  # whose own names are short
words = {name: word for name, word in SHORT_NAMES.items() if name not in kept}
shown = advice.replace({"ask the truth": words})
columns = {name: name for name in advice}
if advice["use"].nunique() == 1:
    del columns["use"]
show_table(shown, columns)

# %% [markdown]
# So we recommend no family for any question. To trust an explainer, test it on a model like yours, under the truth that
# asks your question, and compare it with the rule in its row.
#
# ## All claims
#
# The claims are worded as we registered them. *Mask* is the truth *altered words*.

# %%
verdicts("all")

# %% [markdown]
# The comparisons behind each verdict are in `contrasts.csv` of stage 4.

# %%
_ = stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder. To test an explainer of your own, add it to `explainers` in
# [stage 3](03_attribution.ipynb).

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
