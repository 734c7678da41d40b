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
# - **By L2, the paper's best explainer does worse than the answer "nothing changes"; by direction alone or size alone it does better.** The explainer *Approx* takes one train review that has the new value and agrees in the other aspects. Its estimate is the model's answer to that
#   review, minus the answer to the text. Its L2 error is .725<!-- cebab/cpu/04_metrics/errors[explainer=Approx, model=encoder, metric=L2].error -->; the error of "nothing changes" is
#   .652<!-- cebab/cpu/04_metrics/errors[explainer=Zero, model=encoder, metric=L2].error -->. This holds for both models that we explained ([figure 2](../../outputs/reference/cebab/cpu/05_figures/figure_2.png)).
# - **The mean of many matching reviews, or smaller estimates, do better than Approx.** The mean over all matching reviews has an error of
#   .578<!-- cebab/cpu/04_metrics/errors[explainer=Approx (mean), model=encoder, metric=L2].error -->. Multiplying all estimates by one number, fitted on the dev split, helps, too ([table](../../outputs/reference/cebab/cpu/04_metrics/scaled.csv)).
# - **Most explainers beat "nothing changes" where a change matters a lot, and lose where it matters little**
#   ([heat map](../../outputs/reference/cebab/cpu/05_figures/heat_map.png)).
#
# A small encoder and a recurrent network that reads both ways (BiLSTM) stand in for BERT, with five fine-tuning runs each. These results are from the run at scale `cpu`, on the published reviews. Its figures and verdicts
# are on [the results page](../../outputs/reference/cebab/cpu/05_figures.ipynb).

# %% [markdown] tags=["slide"]
# ## You will see
#
# - which explainers come closest to the model's effects, with intervals and floors;
# - where they err;
# - for each claim of the paper a verdict and its reason.
#
# **You can then** compare an error with that of the answer *nothing changes*. **You need**
# [stage 4](04_metrics.ipynb). **Time:** 10 minutes to read, under a minute to run, [10 minutes for the exercises](../../docs/course/exercises/cebab.md#05-figures).
#
# | in (all from stage 4) | used for |
# |---|---|
# | `errors`, `ceiling` | Figure 2, the leaderboard |
# | `by_direction` | the heat map |
# | `cace` | Table 4 |
# | `three_effects` | the world, the model and the estimate |
# | `claims` | the verdicts |
#
# | out | holds |
# |---|---|
# | `figure_2`, `heat_map` | figures, with their tables |
# | `leaderboard`, `table_4`, `three_effects` | tables |
# | `verdict_figure_2`, `verdict_leaderboard`, `verdict_all` | the verdicts as they are shown (not at scale small) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import pandas as pd

from lib.core.files import read_table
from lib.core.notebooks import show_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots import plot_directions, plot_errors
from lib.stats import tell_verdicts
from lib.studies.cebab.outside import NAME, split_verdicts
from lib.studies.cebab.reviews import ASPECTS, VALUES
from lib.studies.cebab.words import in_words

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. This notebook computes nothing; it draws the tables of stage 4.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# The next cell reads all tables. If stage 4 has not run yet, it says which command to type.

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
first = tables["errors"][["dataset", "model"]].iloc[0]
verdicts = partial(tell_verdicts, stage, ours, registered)
print(", ".join(f"{name} {len(table)}" for name, table in tables.items()))

# %% [markdown] tags=["slide"]
# Lower errors are better everywhere. The verdicts call an explainer's mean error *ICaCE-Error*; ICaCE, the *individual causal concept effect*, is the effect of one change on the model. There are three measures ([stage 4](04_metrics.ipynb) defines them). **L2** compares the whole effect on the class probabilities, the **cosine** only
# its direction, and **normdiff** only its size.
#
# ![Two arrows from one point, the true effect and an estimate, and three errors: L2 is the distance of their tips, the cosine error looks at the angle alone, and Normdiff at the lengths.](../../docs/schematics/errors_of_an_effect.svg)
#
# A **floor** is the error of a simple rule that uses no concepts. There are three. *Zero* answers that nothing changes. *No concept* takes the mean of the model's answers to all train texts and subtracts its answer to this text. *Random* draws a vector.
#
# ## Figure 2 · Which explainer is nearest to the model?
#
# The paper says in its section 6 that approximate counterfactuals (*Approx*) are best at direction and size. It also says that INLP (iterative null-space projection), which erases a concept from the model's vectors, has the same cosine error as Approx.
#
# A mark is the mean error over all pairs. The floors are vertical lines. The pink dotted line is the human error: a second editor's text is used as the explanation. No explainer can have an L2 error below half of it (stage 4), which is the
# solid pink line. Both pink lines are about the few questions for which two editors made the same change. So compare them with the marks only roughly. The figure shows ten explainers on the first data set. The Causal Proxy Model explains encoders only, so it is *not run* for the BiLSTM.

# %% tags=["nbval-ignore-output", "slide"]
ceilings = tables["ceiling"][tables["ceiling"]["same"] == "label"]
errors = tables["errors"]
# Ten explainers are enough to look at, and floors and what comes from outside.
well_known = ["Random", "Zero", "No concept", "CONEXP", "Approx", "Approx (mean)"]
well_known += ["S-Learner", "TCAV", "ConceptSHAP", "INLP", "CausaLM", "LEACE"]
well_known += ["Causal Proxy Model"]
is_drawn = errors["explainer"].isin(well_known) | errors["family"].eq("outside")
here = errors[is_drawn & errors["dataset"].eq(first["dataset"])]
figure, plotted = plot_errors(here, ceilings)
stage.figure("figure_2", figure, formats)
_ = stage.table("figure_2", errors[list(plotted)])

# %% [markdown]
# [The table](../../outputs/reference/cebab/cpu/05_figures/figure_2.csv) has every error with its interval.
#
# Next come the verdicts on the paper's claims. At scale small the cell only counts the claims, because one fine-tuning run decides nothing. At scale `cpu` ([table](../../outputs/reference/cebab/cpu/05_figures/verdict_figure_2.csv)):
#
# | claim of the paper | L2 | cosine | normdiff |
# |---|---|---|---|
# | Approx is the best method | fails<!-- cebab/cpu/04_metrics/claims[id=approx_best_L2].verdict --> | partly<!-- cebab/cpu/04_metrics/claims[id=approx_best_cosine].verdict --> | partly<!-- cebab/cpu/04_metrics/claims[id=approx_best_normdiff].verdict --> |
# | most methods cannot beat Approx | fails<!-- cebab/cpu/04_metrics/claims[id=most_methods_cannot_beat_the_baseline].verdict --> | partly<!-- cebab/cpu/04_metrics/claims[id=most_methods_cannot_beat_the_baseline_cosine].verdict --> | holds<!-- cebab/cpu/04_metrics/claims[id=most_methods_cannot_beat_the_baseline_normdiff].verdict --> |
# | INLP ties with Approx | | fails<!-- cebab/cpu/04_metrics/claims[id=inlp_ties_on_cosine].verdict --> | |
# | S-Learner, which knows the labels, beats CONEXP (conditional expectation) | partly<!-- cebab/cpu/04_metrics/claims[id=labels_help_beyond_direction].verdict --> | | |

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

# %% [markdown] tags=["slide"]
# A verdict is *holds*, *partly*, *fails*, *undecided* or *not run*. A comparison *fails* if the effect is shown to be absent or reversed. If a claim rests on several comparisons, *partly* means that some of them hold, and it fails if none holds and one fails (INLP's fails on the encoder, and is open on the BiLSTM).
# A claim about *most* comparisons holds if more than half of them do. It stands once for each measure. A claim that two errors are equal (*= 0*) holds if they are shown to differ by less than the three hundredths that we registered.
#
# The cell shows its table at scale `cpu`. There *it says* names the measure. *Found here* is our value with its interval, or the median of several comparisons with their range. A *difference* is the error of the explainer that the claim names first, minus that of the other.
#
# Approx answers with one randomly chosen text. The text's peculiarities add more error than its matching concept removes. The mean over all matching texts has less of this problem: on the encoder it is better than *Zero*, on the BiLSTM that is open. The paper's own code contains no Approx,
# and the leaderboard in its repository has S-Learner ahead of Approx by L2.
#
# ## The leaderboard, with floors
#
# The best explainer by L2 stands first. One that stands below *Zero* is worse than the answer that nothing changes.

# %% tags=["nbval-ignore-output", "slide"]
known = printed[printed["quantity"].eq("ICaCE-Error") & printed["model"].eq("BERT")]
known = known.pivot(index="explainer", columns="metric", values="value").add_prefix(
    "paper_"
)


def leaderboard(model):
    """The errors of all explainers of a model on the first data set, best first."""
    here = errors[errors["dataset"].eq(first["dataset"]) & errors["model"].eq(model)]
    board = here.pivot(index=["explainer", "family"], columns="metric", values="error")
    return board.sort_values("L2").reset_index().join(known, on="explainer")


others = {NAME} & set(tables["errors"]["model"]) - {first["model"]}
for model in others:
    stage.table(f"leaderboard_{model}", leaderboard(model))
board = stage.table("leaderboard", leaderboard(first["model"]))
well_known = ["Causal Proxy Model", "Approx (mean)", "Approx", "Zero", "No concept"]
well_known += ["S-Learner", "CONEXP", "ConceptSHAP", "CausaLM", "INLP", "TCAV"]
in_words(
    board[board["explainer"].isin(well_known)],
    {"explainer": "explainer", "L2": "L2", "cosine": "cosine", "normdiff": "normdiff"},
)

# %% [markdown]
# [The table](../../outputs/reference/cebab/cpu/05_figures/leaderboard.csv) has all explainers. The leaderboard of the paper's repository has three of these methods, for BERT on real reviews:
#
# | paper, BERT | L2 | cosine | normdiff |
# |---|---|---|---|
# | S-Learner | .74<!-- cebab/material/paper_numbers[id=leaderboard_BERT_L2_S-Learner].value --> | .63<!-- cebab/material/paper_numbers[id=leaderboard_BERT_COS_S-Learner].value --> | .54<!-- cebab/material/paper_numbers[id=leaderboard_BERT_NormDiff_S-Learner].value --> |
# | INLP | .80<!-- cebab/material/paper_numbers[id=leaderboard_BERT_L2_INLP].value --> | .59<!-- cebab/material/paper_numbers[id=leaderboard_BERT_COS_INLP].value --> | .73<!-- cebab/material/paper_numbers[id=leaderboard_BERT_NormDiff_INLP].value --> |
# | Approx | .81<!-- cebab/material/paper_numbers[id=leaderboard_BERT_L2_Approx].value --> | .61<!-- cebab/material/paper_numbers[id=leaderboard_BERT_COS_Approx].value --> | .44<!-- cebab/material/paper_numbers[id=leaderboard_BERT_NormDiff_Approx].value --> |
#
# Our numbers are about a small encoder, and at scale `small` about simulated reviews. So compare only the order within a column.
#
# Next come the verdicts on questions that the paper did not ask, two of them about floors. At scale `cpu` ([table](../../outputs/reference/cebab/cpu/05_figures/verdict_leaderboard.csv)):
#
# - *Approx beats the answer that nothing changes* fails<!-- cebab/cpu/04_metrics/claims[id=baseline_beats_doing_nothing].verdict -->;
# - *by the cosine, the paper's methods beat the floor No concept* holds partly<!-- cebab/cpu/04_metrics/claims[id=methods_beat_the_no_concept_floor].verdict -->: of 14<!-- count cebab/cpu/04_metrics/contrasts[id=methods_beat_the_no_concept_floor] --> comparisons 1<!-- count cebab/cpu/04_metrics/contrasts[id=methods_beat_the_no_concept_floor, verdict=holds] --> holds, and 11<!-- count cebab/cpu/04_metrics/contrasts[id=methods_beat_the_no_concept_floor, verdict=fails] --> fail;
# - *the mean of all matches is better than one match* holds<!-- cebab/cpu/04_metrics/claims[id=averaging_matches_helps].verdict -->;
# - *an S-Learner that keeps the value given in the question is better by the cosine than one that predicts it* holds<!-- cebab/cpu/04_metrics/claims[id=known_value_helps].verdict -->;
# - *the Causal Proxy Model beats Approx, S-Learner and INLP* (encoder, L2) holds<!-- cebab/cpu/04_metrics/claims[id=proxy_beats_the_baselines].verdict -->;
# - *the Causal Proxy Model beats Approx (mean), the mean answer to matching texts, which it was trained to predict* holds<!-- cebab/cpu/04_metrics/claims[id=proxy_beats_its_own_matches].verdict -->.

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

# %% [markdown] tags=["slide"]
# By the cosine, *No concept* does better than several methods of the paper. Most changes take probability from the
# class that the model gives now. *No concept* predicts just that, whatever the change is. Methods that subtract the
# model's answer to the text also predict it in part. But *No concept* predicts poorly whether the stars rise or fall
# (stage 4).
#
# ## Heat map · Where are the errors?
#
# Each row is an explainer ([stage 3](03_attribution.ipynb) says what it does), each column an aspect and a direction: − is Negative, ? unknown, + Positive. The largest effects stand on the left. Blue cells have a smaller error than *Zero*, red cells with a dot a larger one. The figure shows the first data set.

# %% tags=["nbval-ignore-output", "slide"]
signs = dict(zip(VALUES, "−?+"))  # Negative, unknown, Positive


def heat_map(model):
    """The errors of a model by aspect and direction: the first data set, and all."""
    rows = tables["by_direction"][tables["by_direction"]["model"] == model]
    shown = rows[rows["dataset"] == first["dataset"]]
    figure, plotted = plot_directions(shown, "L2", ASPECTS, signs)
    return figure, rows[list(plotted)]


for model in others:
    figure, plotted = heat_map(model)
    stage.figure(f"heat_map_{model}", figure, formats)
    stage.table(f"heat_map_{model}", plotted)
figure, plotted = heat_map(first["model"])
stage.figure("heat_map", figure, formats)
_ = stage.table("heat_map", plotted)

# %% [markdown] tags=["slide"]
# Explainers with large estimates, such as Approx, are red where the model's answer hardly changes. Explainers with estimates near zero, such as TCAV (concept activation vectors), are pale everywhere: their error is about that of *Zero*.
#
# ## Table 4 · What does the model itself do?
#
# The paper says (section 6) that the mean effects on the model follow those on readers. We registered no test of this,
# so there is no verdict. As in the paper's Table 4, the effect on the model is here the change of the most likely
# rating, and not of the expected stars.

# %% tags=["nbval-ignore-output"]
keys = ["aspect", "old", "new"]
theirs = (
    printed[printed["source"] == "CEBaB, Table 4"]
    .set_index(keys)["value"]
    .rename("paper")
)
table_4 = stage.table("table_4", tables["cace"].join(theirs, on=keys), digits=2)
mine = table_4[["dataset", "model"]].eq(first).all(axis=1)
in_words(
    table_4[mine],
    {"aspect": "aspect", "old": "from", "new": "to", "CaCE_argmax": "model"}
    | {"ATE": "readers", "paper": "paper, BERT", "pairs": "pairs"},
)

# %% [markdown] tags=["slide"]
# At scale `small` the readers are simulated, and *paper, BERT* is about real reviews, so compare only signs. At least
# eleven of the twelve effects on the model (at `cpu` all) have the sign of the effects on readers and on the paper's BERT.
#
# ## The world, the model, the estimate
#
# In a world whose equations we wrote, we can distinguish three effects. These are what a change does to the readers, what it does to the model, and what an explainer says. This is possible only at scale `small`.
# [Stage 4, section 6](04_metrics.ipynb) has the figure. The next cell saves its table with the others; for the published reviews the table is empty, and the cell shows nothing.

# %%
effects = stage.table("three_effects", tables["three_effects"])
if len(effects):
    n_explainers = effects["who"].nunique() - 2  # without the world and the model
    print(f"{len(effects)} means: the world, the model and {n_explainers} explainers")

# %% [markdown]
# [The table of scale `small`](../../outputs/reference/cebab/small/05_figures/three_effects.csv) has all of them in stars. CONEXP compares reviews that praise an aspect with reviews that criticise it. Where aspects go together, it gives one of them credit for all.
# An explanation that agrees with what we know about restaurants can still be wrong about the model.
#
# ## All claims
#
# Decided claims come first. At scale small the cell only counts them. At scale `cpu` ([table](../../outputs/reference/cebab/cpu/05_figures/verdict_all.csv)) 9<!-- count cebab/cpu/05_figures/verdict_all[verdict=holds] --> hold, 6<!-- count cebab/cpu/05_figures/verdict_all[verdict=partly] --> hold partly and
# 7<!-- count cebab/cpu/05_figures/verdict_all[verdict=fails] --> fail. The other 12<!-- count cebab/cpu/05_figures/verdict_all[verdict=not run] --> are the paper's numbers about BERT, which was not run.
# There the cell shows the claims that hold, and three of those that fail; the table has all.

# %%
if len(about_outside):
    tell_verdicts(stage, about_outside, registered, NAME)
verdicts("all")

# %% [markdown]
# The comparisons behind each verdict are in [contrasts.csv](../../outputs/reference/cebab/cpu/04_metrics/contrasts.csv) of stage 4. If a model from outside was explained, its own verdicts are in `verdict_outside.csv`.

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder. `make cebab SCALE=cpu` makes the results on the published data.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# You can do them without running the notebook: start with the next cell. Replace the three dots by your answer. If it is wrong, the check below it gives a hint, but not the solution.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed
from lib.core.notebooks import in_words

errors = read_committed("cebab", "cpu", "04_metrics", "errors")
errors = errors[errors["model"] == "encoder"]
errors = errors.pivot(index="explainer", columns="metric", values="error")
errors = errors.loc[["Zero", "No concept", "CONEXP", "Approx", "S-Learner"]]
human = {"explainer": "explainer", "L2": "L2 error", "cosine": "cosine error"}
in_words(errors.reset_index(), human | {"normdiff": "NormDiff error"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `errors` holds the mean error of five explainers of the encoder at scale `cpu`, by three measures. How many explainers have a larger L2 error than *Zero*, which always answers that nothing changes?

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
# Of these five, the best explainer by L2 is not the best one by the cosine. Which of the two should a person use?
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
        "a": "The measures ask different things; how many are won depends on the list.",
        "c": "What would you do with the answer: rank changes, or predict stars?",
    },
)
