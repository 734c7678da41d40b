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
# # CEBaB, stage 5 of 5: what do the paper's figures look like here, and do its claims hold?
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **By L2, the paper's best explainer is worse than silence.** One sampled match (*Approx*) errs by
#   .716<!-- cebab/cpu/04_metrics/errors[explainer=Approx, metric=L2].error -->; saying that nothing ever changes errs by
#   .652<!-- cebab/cpu/04_metrics/errors[explainer=Zero, metric=L2].error -->. By direction and size it is far better, and
#   the mean over all matches is better by all three measures.
# - **A rule without concepts beats all but one of the paper's methods by the cosine.** The exception is CausaLM.
#   Which explainer is best depends on the measure that one asks for.
# - **By L2 and cosine the best explainer came after the paper**: the Causal Proxy Model, with
#   .547<!-- cebab/cpu/04_metrics/errors[explainer=Causal Proxy Model, metric=L2].error --> by L2.
#
# This is the run at scale `cpu`: the published reviews, and a small encoder in the place of BERT, trained three times. Its figures and verdicts
# are on [the results page](../../outputs/reference/cebab/cpu/05_figures.ipynb).
#
# This notebook computes nothing. It draws tables of stage 4, one section per figure: what the paper claims, the figure, what is plotted, the
# verdict of stage 4 where the claim was registered, and why.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the paper's Figure 2 and Table 4, with intervals in the place of stars, and floors and a ceiling drawn in;
# - a heat map per aspect and direction, and the leaderboard with its floors;
# - for each claim a verdict and its reason.
#
# **You can then** read an error beside that of the answer *nothing changes*. **You need**
# [stage 4](04_metrics.ipynb). **Time:** 10 minutes to read, under a minute to run, 10 minutes for the exercises.
#
# | in (all from stage 4) | used for |
# |---|---|
# | `errors`, `ceiling` | Figure 2, the leaderboard |
# | `cace` | Table 4 |
# | `by_direction` | the heat map |
# | `three_effects` | the world, the model and the estimate |
# | `claims` | the verdicts |
#
# | out | holds |
# |---|---|
# | `figure_2`, `table_4`, `leaderboard`, `heat_map`, `three_effects` | as tables, and where they are drawn as pictures |
# | `verdict_figure_2`, `verdict_leaderboard`, `verdict_all` | the verdicts as they are shown (not at scale small) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import pandas as pd

from lib.core.files import read_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots import plot_directions, plot_errors, plot_three_effects
from lib.stats import show_verdicts
from lib.studies.cebab.outside import NAME, split_verdicts
from lib.studies.cebab.reviews import ASPECTS, VALUES

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. Everything else was decided in stage 4.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# All the tables are read here. If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("cebab", scale, "05_figures")
files = ("errors", "ceiling", "cace", "by_direction", "three_effects", "claims")
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in files}
printed = read_table(material("cebab") / "paper_numbers.csv")
if scale.endswith("way"):  # the printed numbers are of five stars
    printed = printed.head(0)
pd.set_option("display.max_colwidth", None)
registered = material("cebab") / "claims.yaml"
ours, about_outside = split_verdicts(tables["claims"])
verdicts = partial(show_verdicts, stage, ours, registered)
print(", ".join(f"{name} {len(table)}" for name, table in tables.items()))

# %% [markdown] tags=["slide"]
# The numbers are rows. Where a verdict rests on several comparisons, `ours` is their median, and `low` and `high` are the smallest and the largest of them, not an
# interval. A claim about most comparisons holds where more than half of those that were run do. A verdict is **holds**, **partly**, **fails** (the effect is shown to be absent or reversed), **undecided** (the data
# cannot tell) or **not run** (this run has no such rows).
#
# The claims are about the published data. Scale small has reviews of its own and judges none of them.
#
# ## Figure 2 · Which explainer is nearest to the model?
#
# **Claims** (section 6). Approximate counterfactuals are best at direction and size; INLP ties with them by the cosine.
#
# **How to read the figure.** A mark is the mean error over all pairs, its line the 95 % interval over groups of texts. To the left is better.
# Upright lines are floors. The dotted one, with its band, is a second human editor's error on the few questions that two editors answered; half of it, the thin
# line in L2, is the bound that no explainer can go below on these. (Stage 4 has everybody's error on the same few questions, in `asked_twice`.) The Causal Proxy Model
# explains encoders alone.

# %% tags=["nbval-ignore-output", "slide"]
ceilings = tables["ceiling"][tables["ceiling"]["same"] == "label"]
figure, plotted = plot_errors(tables["errors"], ceilings)
stage.figure("figure_2", figure, formats)
shown = stage.table("figure_2", plotted)
shown.pivot_table(
    index=["explainer"],
    columns=["dataset", "model", "metric"],
    values="error",
    sort=False,
).T.groupby("metric").mean().T.round(3)

# %% [markdown]
# The table shows the mean over the models; the file has each of them with its interval. **The verdicts:**

# %%
verdicts(
    "figure_2",
    "approx_best_L2",
    "approx_best_cosine",
    "approx_best_normdiff",
    "inlp_ties_on_cosine",
    "labels_help_beyond_direction",
    "most_methods_cannot_beat_the_baseline",
    "most_methods_cannot_beat_the_baseline_cosine",
    "most_methods_cannot_beat_the_baseline_normdiff",
)

# %% [markdown]
# **Why.** The paper's code holds no implementation of its winning baseline, and its own leaderboard has S-Learner ahead of it by L2 for all four
# models. One sampled match brings the noise of one text along; averaging takes it away. By which measure one asks decides: by the size of
# effects (normdiff) no method of the paper that was tested beats it for sure, by L2 all six do.
#
# ## The leaderboard, with floors
#
# **How to read the table.** Lower is better, and the best by L2 stands first. The columns `paper_...` hold the leaderboard of the paper's repository for
# BERT on the published data, where it has a row. What stands below *Zero* does no better than to say that nothing changes, and what has a cosine above that of
# *No concept* does no better than somebody without concepts (Figure 2 has the intervals).

# %% tags=["nbval-ignore-output"]
first = tables["errors"][["dataset", "model"]].iloc[0]
known = printed[printed["quantity"].eq("ICaCE-Error") & printed["model"].eq("BERT")]
known = known.pivot(index="explainer", columns="metric", values="value").add_prefix(
    "paper_"
)


def leaderboard(model):
    """The errors on the first data set of all explainers of a model, the best by L2 first."""
    errors = tables["errors"]
    here = errors[errors["dataset"].eq(first["dataset"]) & errors["model"].eq(model)]
    board = here.pivot(index=["explainer", "family"], columns="metric", values="error")
    return board.sort_values("L2").reset_index().join(known, on="explainer")


others = {NAME} & set(tables["errors"]["model"]) - {first["model"]}
for model in others:
    stage.table(f"leaderboard_{model}", leaderboard(model))
board = stage.table("leaderboard", leaderboard(first["model"]))
board.astype(object).fillna("")

# %% [markdown]
# The first data set and the first model; a model from outside beside it has a table of its own, `leaderboard_outside`. **The verdicts** on the floors, questions that the paper did not ask:

# %%
verdicts(
    "leaderboard",
    "baseline_beats_doing_nothing",
    "methods_beat_the_no_concept_floor",
    "averaging_matches_helps",
    "known_value_helps",
    "proxy_beats_the_baselines",
    "proxy_beats_its_own_matches",
)

# %% [markdown]
# **Why.** The cosine of all probabilities is mostly about the class that probability leaves, and that is where the text now is: every method that subtracts the text's
# own answer is given a good part of it for nothing. It is not the sign of the effect, which CONEXP and S-Learner know better (stage 4, *What the cosine is about*).
#
# ## Table 4 · What does the model itself do?
#
# The paper says (section 6) that the mean effects of the model are well aligned with those on readers. No test of this was registered: it is shown, without a verdict.
#
# **How to read the table.** In stars. `CaCE` is the model's mean effect, `CaCE_argmax` the same by the most likely class, which is what the paper's Table 4 shows
# (`paper`: BERT's). `ATE` is that of the readers, `world` the true one where it is known.

# %% tags=["nbval-ignore-output"]
keys = ["aspect", "old", "new"]
theirs = (
    printed[printed["source"] == "CEBaB, Table 4"]
    .set_index(keys)["value"]
    .rename("paper")
)
table_4 = stage.table("table_4", tables["cace"].join(theirs, on=keys), digits=2)
table_4.astype(object).fillna("")

# %% [markdown] tags=["slide"]
# With reviews of our own the paper's column is there for its size alone.
#
# ## Heat map · Where are the errors?
#
# **How to read the figure.** A row per explainer, a column per aspect and direction (− Negative, ? unknown, + Positive); the darker, the larger the mean L2 error of the
# first model.

# %% tags=["nbval-ignore-output", "slide"]
signs = dict(zip(VALUES, "−?+"))  # Negative, unknown, Positive


def heat_map(model):
    """The errors of a model by aspect and direction."""
    rows = tables["by_direction"][tables["by_direction"]["model"] == model]
    return plot_directions(rows, "L2", "ICaCE-Error, L2", ASPECTS, signs)


for model in others:
    figure, plotted = heat_map(model)
    stage.figure(f"heat_map_{model}", figure, formats)
    stage.table(f"heat_map_{model}", plotted)
figure, plotted = heat_map(first["model"])
stage.figure("heat_map", figure, formats)
stage.table("heat_map", plotted).groupby(["dataset", "aspect"], sort=False)[
    "L2"
].mean().unstack().round(2)

# %% [markdown] tags=["slide"]
# Mostly errors are largest where effects are. On the published data that is a change of the food, between Negative and Positive.
#
# ## The world, the model, the estimate
#
# *Ours,* at scale small alone; on the published reviews the table is empty. In a world whose structure is known, three effects can be told apart. An explainer is to say what the *model* does.

# %% tags=["nbval-ignore-output", "slide"]
effects = stage.table("three_effects", tables["three_effects"])
if len(effects):
    figure, plotted = plot_three_effects(effects, "Negative to Positive, in stars")
    stage.figure("three_effects", figure, formats)
effects.pivot(index=["dataset", "aspect"], columns="who", values="stars").round(2)

# %% [markdown]
# **Why it matters.** No benchmark of human texts has the first of the three, and an explanation that agrees with one's knowledge of restaurants is easily
# taken for a true one.
#
# ## All claims
#
# Decided claims come first.

# %%
if len(about_outside):
    show_verdicts(stage, about_outside, registered, NAME)
verdicts("all")

# %% [markdown]
# The claims about a model from outside are in `verdict_outside`, each with its own verdict. The comparisons that a verdict rests on are in `contrasts.csv` of stage 4.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder. The results are this notebook at scale `cpu` (`make cebab SCALE=cpu`): the published data, with a
# small encoder in BERT's place.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed

errors = read_committed("cebab", "cpu", "04_metrics", "errors")
errors = errors.pivot(index="explainer", columns="metric", values="error")
errors.loc[["Zero", "No concept", "CONEXP", "Approx", "S-Learner"]].round(3)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `errors` holds the mean error of every explainer at scale `cpu`, by three measures. How many explainers have a larger L2 error than *Zero*, which says that nothing ever changes?

# %% tags=["hole"]
n_worse_than_zero = ...

# %% tags=["solution"]
n_worse_than_zero = int((errors["L2"] > errors.loc["Zero", "L2"]).sum())

# %% tags=["check"]
check_number(
    n_worse_than_zero,
    (errors["L2"] > errors.loc["Zero", "L2"]).sum(),
    hint="Compare the column L2 with one of its cells, and count.",
    tolerance=0,
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# The best explainer by L2 is not the best one by the cosine. Which of the two should a person use?
#
# - `"a"` The one that wins more measures.
# - `"b"` It depends on the use: the cosine asks only for the direction of the change, L2 also for its size.
# - `"c"` The one by L2, since the paper used it first.

# %% tags=["hole"]
which_to_use = ...  # "a", "b" or "c"

# %% tags=["solution"]
which_to_use = "b"

# %% tags=["check"]
check_choice(
    which_to_use,
    "b",
    {
        "a": "The measures are different questions; how many are won depends on the list.",
        "c": "What would you do with the answer: rank changes, or predict stars?",
    },
)
