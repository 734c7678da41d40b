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
# At run size `cpu`: texts published or ours, five trainings of each model, fifteen explainers,
# 80<!-- assay/cpu/01_data_generation/counts[truth=edit].items --> edits and at most 40 texts for each other truth. [All figures and verdicts](../../outputs/reference/assay/cpu/05_figures.ipynb).
#
# - **Under *edit*, where a person removed or added words, some explainers follow what this did to the model better than
#   any rule.** There
#   7<!-- count assay/cpu/05_figures/whole[truth=edit, role=explainer, beats_every_rule=True] --> of
#   15<!-- count assay/cpu/05_figures/whole[truth=edit, role=explainer] --> explainers are clearly better than every rule:
#   on the same edits, the 95 % interval of the difference lies above 0. AttnLRP has
#   .82<!-- assay/cpu/04_metrics/cells[truth=edit, explainer=AttnLRP].raw -->, the best
#   rule .62<!-- assay/cpu/04_metrics/cells[truth=edit, explainer=Goal of the edit].raw -->.
#   [See the figure](../../outputs/reference/assay/cpu/05_figures/whole.png)
# - **Under *altered words*, *swap* and *deletion*, a good score needs no explainer.** AttnLRP has
#   .86<!-- assay/cpu/04_metrics/cells[truth=swap, explainer=AttnLRP].raw --> under *swap*, and a ratio of word counts
#   .85<!-- assay/cpu/04_metrics/cells[truth=swap, explainer=Log count ratio].raw -->. No explainer is clearly better than
#   the best rule under these three, nor under *noun*.
#   [See the floors](../../outputs/reference/assay/cpu/04_metrics/floors.csv)
# - **Within one model, different truths rank explainers differently**: eight of eleven pairs do for these explainers, all in the model
#   of gender (the three kinds of *deletion* count as truths).
#   [See the figure](../../outputs/reference/assay/cpu/05_figures/agreement.png)
# - **Explainers change rank more between kinds of model** (an encoder and an LSTM, a recurrent network) **than between
#   truths.** Over three truths, the variance of ranks due to truths, minus that due to kinds of model, is
#   -.033<!-- assay/cpu/04_metrics/beyond[models=an encoder and an LSTM].difference -->. Under *altered words*, the two
#   models' rankings correlate by
#   .03<!-- assay/cpu/04_metrics/agreement[left=mask, encoder, right=mask, LSTM].tau -->. We had expected the opposite.
#   [See the table](../../outputs/reference/assay/cpu/04_metrics/beyond.csv)
# - **Saliency shows why one truth is not enough.** It has
#   .95<!-- assay/cpu/04_metrics/cells[truth=mask, explainer=Saliency].raw --> under *altered words*, where
#   .5 is chance, and -.34<!-- assay/cpu/04_metrics/cells[truth=edit, explainer=Saliency].raw --> under *edit*, where equal
#   scores have -.26<!-- assay/cpu/04_metrics/cells[truth=edit, explainer=Even].raw -->; both in an encoder.
# - **No family of explainers is recommended.** Each of the seven is, under some truth, worse than another one by more
#   than a tenth; for four of them this is clear.
#   [See the comparisons](../../outputs/reference/assay/cpu/04_metrics/recommended.csv)
#
# This notebook computes nothing. It draws tables of stage 4.
#
# ## You will see
#
# - every explainer under every truth, compared with rules that never look at the model;
# - whether different truths put the explainers in the same order;
# - for which question which explainers are better than every rule, and which only look good.
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
# ![The truths of the assay. altered words: these words differ between the forms. planted: these words alone decide the label. cue: the verb agrees with this noun. swap: what a swap to another form does to the answer. edit: what becomes of the answer without these words. noun: what other nouns here do to the answer. deletion: what is left of the answer when its top words go.](../../docs/schematics/assay_truths.svg)
#
# **How to read the figure.** Each row is an explainer, a rule or a cheater. Each column is a truth; *deletion* has three, one for each thing that
# is put in the place of a deleted word. Further right is better, and the black line is the best possible score.
#
# The grey band ends at the score of a rule that never looks at the model. We chose this rule before the run; its name
# stands below the column. A dotted line marks the best rule of the run, if it is another.
#
# An explainer is *clearly* better than a rule if the interval of the difference of their scores, text by text, lies above 0. (The
# lines in the figure are intervals of the scores.) Its dot is blue if it is
# clearly better than every rule, and half blue if it is clearly better only than the rule chosen before the run. All other
# dots are empty. *Refuses* means that the explainer cannot be computed for this model.
# (An interval without width shows nothing. It occurs when a few texts have equal scores.)

# %% tags=["nbval-ignore-output", "slide"]
note = f"Run size {scale}: at most {tables['cells']['n_clusters'].max()} texts a truth"
note += ", too few to decide anything." if stage.is_practice else "."
figure, plotted = plot_whole(tables["cells"], note)
stage.figure("whole", figure, formats)
plt.show()
_ = stage.table("whole", plotted)

# %% [markdown] tags=["slide"]
# The title counts the blue dots, whole and half. Only the whole ones are explainers that no rule equals. *Cannot be beaten*
# (at run size small) stands where the rule has the best possible score.
#
# The last rows are *cheaters*, made from a part of the right answer. The cheater that *knows which words* is perfect
# under *altered words*, *planted* and *cue*. It is not perfect under *swap*, *edit* and *noun*, because these truths ask what
# the words do in the model.
#
# Here are the same scores as numbers, with the best under *altered words* at the top. The second table goes on where the
# first one ends. We leave out *deletion*:

# %% tags=["nbval-ignore-output"]
scores = plotted[plotted["role"] == "explainer"]
grid = scores.pivot(index="explainer", columns="truth", values="raw")[truths]
grid = stage.table("scores", grid.reset_index(), digits=2)
shown = {name: name for name in ["explainer", *truths[:6]]}
shown |= {"mask": "altered words"}
best_first = grid.sort_values("mask", ascending=False, kind="stable")
half = (len(best_first) + 1) // 2
show_table(best_first[:half], shown)
show_table(best_first[half:], shown)

# %% [markdown] tags=["slide"]
# Saliency and Gradient norm lead under *altered words*, and are last under *cue*. With six items for each truth, as at run
# size `small`, the order of the explainers can be chance.
#
# ## Do the truths rank explainers alike?
#
# **How to read the figure.** Each dot compares two truths, or two kinds of *deletion*. At 1 they put the explainers in the same order; at 0 the
# orders have nothing in common. The blue line is the interval for these explainers, the wide grey one for other
# explainers like them. The triangle shows how well a truth agrees with itself, if we split its items into halves. For two truths
# we draw the lower of their two triangles. The truths differ clearly if their blue line ends left of it. The
# lower part compares two models under one truth: encoder / one attention layer; gender / reviews; encoder / LSTM.

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
# The title counts the pairs in the upper part that differ. At run size `small` a half has at most three texts: the
# triangles are low, and most dots lie right of them by chance.
#
# The lower part asks whether an explainer that suits one kind of model suits another. Not always: see *What we found*.
#
# ## Does each explanation depend on the model?
#
# In the test of stage 4 all weights of the model become random. An explainer passes if the rank correlation between its
# explanations before and after is below .5. The highest comes first:

# %% tags=["nbval-ignore-output"]
columns = {"explainer": "explainer", "likeness": "rank correlation, before and after"}
gate = stage.table("gate", tables["gate"], digits=2)
gate = gate.sort_values("likeness", ascending=False, kind="stable")
show_table(gate, columns | {"passes": "passes"})

# %% [markdown] tags=["slide"]
# Even the highest is below .5, so every explainer passes. Random explanations would pass, too: the test rules out none.
#
# ## What can we recommend?
#
# We would recommend a *family* of explainers that has nowhere a lower score than another family by over a tenth, and
# under some truth a clearly higher one than all others (stage 4). None does: here and at run size `cpu`, each family is under some truth
# worse than another one by more than a tenth.
#
# So the table names no winner. For each question it says which truth tests it, and which rule without a model gets
# furthest. **An explainer that does not beat this rule may know nothing of the model, however good its score looks.**

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
advised = standing.advise(tables["cells"]).loc[truths]
advice = pd.DataFrame(
    {
        "to know": [questions[truth] for truth in truths],
        "ask the truth": truths,
        "use": [use[truth] for truth in truths],
        "compare it with": rule.loc[truths, "explainer"].to_numpy(),
        "which has": rule.loc[truths, "raw"].to_numpy(),
        "the best explainer": explainer.loc[truths, "explainer"].to_numpy(),
        "has": explainer.loc[truths, "raw"].to_numpy(),
        **standing.as_text(advised).to_dict("list"),
    }
)
advice = stage.table("advice", advice, digits=2)

# %% [markdown]
# The last three columns sort the explainers, with their scores. *Use* has those that are clearly better than every
# rule. *Open* has those with a higher score than the best rule, but not clearly. *Only looks good* has those that are clearly
# better than equal scores for all words, but no better than the rule. Names whose scores agree in two
# digits share a cell. `advice.csv` has all names.

# %%
kept = ("swap", "edit", "noun")  # whose own names are short
words = {name: word for name, word in SHORT_NAMES.items() if name not in kept}
told = standing.with_scores(advised, tables["cells"]).to_dict("list")
shown = advice.assign(**told).replace({"ask the truth": words})
columns = {"to know": "to know", "ask the truth": "ask the truth"}
columns |= {"compare it with": "best rule", "which has": "its score"}
columns |= {"clearly better": "use", "open": "open", "no better": "only looks good"}
if advice["use"].nunique() > 1:
    columns["use"] = "recommended family"
show_table(shown, columns)

# %% [markdown]
# These lists are candidates for *your* test, on a model like yours: no correction is made for the many comparisons. At run
# size `small` they rest on six texts, and mean nothing.
#
# ## All claims
#
# The claims are worded as we registered them. *Mask* is the truth *altered words*. *Spearman over nested pairs* is the score
# under *edit*. A comparison holds if its interval lies above 0, its difference reaches the registered margin, and Holm's test,
# where used, agrees. The margins are five hundredths (edits, LIME), two (*this model*), one (places), and two tenths (*mask
# and deletion*, antecedents). For several comparisons, *found here* gives median and range.

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
