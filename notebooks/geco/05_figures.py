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
# # GECO, stage 5 of 5: what do the papers' figures look like here, and do their claims hold?
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **Integrated Gradients points at the altered words. So does a rule that never looks at the model.** It puts
#   .90<!-- geco/cpu/04_metrics/figure[dataset=D_A, scheme=CEf, method=Integrated Gradients].MA --> of its attribution on them where head and embeddings learn (CEf);
#   *all on the first pronoun* puts .98<!-- geco/cpu/04_metrics/figure[dataset=D_A, method=First pronoun].MA --> there.
# - **That rule names one word and orders the others badly.** When words are deleted in the order of an explanation, it scores
#   .40<!-- geco/cpu/04_metrics/faithfulness[model=CEf, method=First pronoun, measure=NAOPC].estimate --> and Integrated Gradients
#   .94<!-- geco/cpu/04_metrics/faithfulness[model=CEf, method=Integrated Gradients, measure=NAOPC].estimate -->, where 1 is the best order that a search finds
#   (eight base sentences; not a registered claim).
# - **Is Integrated Gradients the best method, as the paper says?** In the means it leads on BERT together with Gradient SHAP, but costly methods have one
#   fine-tuning run: undecided<!-- geco/cpu/04_metrics/claims[id=integrated_gradients_best].verdict -->.
#
# This is the run at scale `cpu`: the published GECO, and a small BERT in the place of bert-base. Its figures and verdicts are on
# [the results page](../../outputs/reference/geco/cpu/05_figures.ipynb).
#
# This notebook computes nothing. It draws tables of stage 4, one section per figure, and always in the same order: what the paper
# claims, the figure, what is plotted, the verdict of stage 4, and why.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the figures of GECOBench and two of its first version (v1), with what simple rules reach drawn beside the models;
# - two figures of ours: is being right about the data one thing with being faithful to the model, and which methods look at the model;
# - for each claim a verdict and its reason, disagreement as plainly as agreement;
# - at the end, all claims and all printed numbers in two tables.
#
# **You can then** tell *undecided* from *no effect*, and count verdicts. **You need** [stage 4](04_metrics.ipynb).
# **Time:** 20 minutes to read, under a minute to run, 10 minutes for the exercises.
#
# | in (all from stage 4) | used for |
# |---|---|
# | `figure` (mass accuracy), `relative_mass_accuracy`, `ranking` | figures 2b and 2a |
# | `correlation`, `bias` (handed on from stage 1) | figure 3 |
# | `accuracy_vs_floors` | figure 4 |
# | `example_sentence` | figure 5 |
# | `attribution_difference` | figures 7 and 8 of the first version |
# | `yardsticks`, `randomisation` | two figures of ours |
# | `claims` | the verdicts |
#
# | out | holds |
# |---|---|
# | `figure_2a`, `figure_2b`, `figure_3`, `figure_4`, `figure_5`, `figure_v1_7`, `figure_v1_8`, `figure_yardsticks`, `figure_randomisation` | each as a picture and as the table that it plots |
# | `verdict_*` | the verdicts as they are shown (not at scale small) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib import plots
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.stats import show_verdicts

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. Which rows, which ground truth and which tests: that was decided in stage 4.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# All the tables are read here, at once. If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("geco", scale, "05_figures")
files = (
    "figure",
    "relative_mass_accuracy",
    "ranking",
    "correlation",
    "bias",
    "accuracy_vs_floors",
    "example_sentence",
    "attribution_difference",
    "yardsticks",
    "randomisation",
    "claims",
)
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in files}
pd.set_option("display.max_colwidth", None)
verdicts = partial(
    show_verdicts, stage, tables["claims"], material("geco") / "claims.yaml"
)

print(", ".join(f"{name} {len(table)}" for name, table in tables.items()))

# %% [markdown] tags=["slide"]
# The numbers are rows. How to read the verdicts: **holds**, **partly** (some of the comparisons that a claim is made of), **fails** (the
# effect is shown to be absent or reversed), **undecided** (the data cannot tell), **not run** (no such rows, or they belong to a
# model that does not beat the rule "class of the first pronoun"). A claim about most comparisons holds where more than half of
# those that were run do. `paper` is a number or a direction, `ours` the median over the
# comparisons, `low` and `high` the smallest and the largest, `n` base sentences.
#
# Scale small judges nothing: its figures show how things are done, on a few sentences of our own. Places stay empty there: not
# every model is trained on both data sets, nor explained with every method.
#
# ## Figure 2b · Which method finds the changed words?
#
# **Claims** (section 4, RQ1). Integrated Gradients beats all other methods on every BERT model and both data sets; with LIME and
# Gradient SHAP it forms the top three. No method reaches the Pattern Variant. On OLA, a small model trained from scratch,
# everything is better, and InputXGradient comes close to the Pattern Variant.
#
# **How to read the figure.** A panel per data set and model. A mark is the mean share of attribution on changed words, its line the 95 %
# interval over base sentences (and seeds). Vertical lines are floors: what one gets without looking at a model. In a grey panel
# with a dagger the model classifies worse than the first-pronoun rule.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_mass_accuracy(tables["figure"])
stage.figure("figure_2b", figure, formats)
plots.method_grid(stage.table("figure_2b", plotted), "MA").astype(object).fillna("")

# %% [markdown]
# Below the figure stand the points that are plotted (the file also has the limits of the intervals).
#
# **May we read an order from it?** The best and the worst place that each method can have, as far as this run can tell:

# %% tags=["nbval-ignore-output"]
places = stage.table("figure_2b_places", tables["ranking"])
places["place"] = (
    places["best_place"].astype(str) + " to " + places["worst_place"].astype(str)
)
plots.method_grid(places, "place").astype(object).fillna("")

# %% [markdown]
# Where a place reads "1 to" the number of methods, nothing is ranked. **The verdicts:**

# %%
verdicts(
    "figure_2b",
    "integrated_gradients_best",
    "three_best",
    "pattern_variant_unreached",
    "beyond_the_first_pronoun",
    "ola_beats_bert",
    "ola_above_random",
    "ola_same_on_both_sets",
    "ola_input_x_gradient_best",
    "ola_input_x_gradient_near_pattern",
    "datasets_differ",
    "datasets_differ_beyond_base_rate",
    "level_on_D_S",
    "level_on_D_A",
    "three_on_par_on_D_S",
    "others_near_random_on_D_S",
    "right_rows_explained_better",
)

# %% [markdown] tags=["slide"]
# **Why.** Two lines are ours and not the papers'. `beyond_the_first_pronoun` asks what the papers did not: does a method find more than a
# rule that points at the first pronoun? And `datasets_differ_beyond_base_rate` repeats the comparison of D_A and D_S after the share that
# noise reaches has been taken out, for D_A simply has more to hit. Where a result differs from the paper's figure, the known
# reasons are: in the released code five methods explain a BERT model whose embedding layer is applied twice; LIME explains the male class
# whatever the row; LIME has 100 samples and Kernel SHAP 25 samples; the Pattern Variant is fitted to class *numbers* on the test rows,
# so that the class in the middle has no pattern of its own.
#
# ## Figure 2a · Does training the embeddings improve explanations?
#
# **Claim** (section 4, RQ2). Relative to the zero-shot model, explanations improve where the embeddings are trained (CE, CEf), more than for
# C and CEfAf. The paper concludes that embeddings hold much of the bias.
#
# **How to read the figure.** The median over rows of MA divided by the zero-shot model's MA. At 1, nothing changed. The small strokes show
# what the floors reach over the same zero-shot values.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_relative_mass_accuracy(tables["relative_mass_accuracy"])
stage.figure("figure_2a", figure, formats)
plots.method_grid(stage.table("figure_2a", plotted), "RMA").astype(object).fillna("")

# %% [markdown]
# A ratio has the weakness of its denominator: what the zero-shot model is depends on the encoder, and where it finds next to nothing, any
# explanation looks like a great step. **The verdicts:**

# %%
verdicts("figure_2a", "trained_embeddings_improve", "embeddings_matter_most")

# %% [markdown] tags=["slide"]
# **Why.** The released code plots the logarithm of RMA - 1, which is not defined for rows that became worse; they fall out, and what is left
# has improved by construction. Here every row with a baseline above zero counts.
#
# ## Figure 3 · Which words go with a class?
#
# **Claim** (section 4 and appendix). Pronouns correlate most with the class, in both data sets: the labelling put the dependence there.
#
# **How to read the figure.** Pearson correlation between the tf-idf weight of a word and "this row is of the class", the ten largest.

# %% tags=["slide"]
figure, plotted = plots.plot_correlation(
    tables["correlation"][tables["correlation"]["dataset"].isin(["D_A", "D_S"])]
)
stage.figure("figure_3", figure, formats)
ranked = stage.table("figure_3", plotted).assign(
    rank=lambda t: t.groupby(["dataset", "class"]).cumcount() + 1
)
ranked.pivot(index="rank", columns=["dataset", "class"], values="word")

# %% [markdown]
# **The verdict:**

# %%
verdicts("figure_3", "tfidf_top_words")

# %% [markdown]
# Beside it the balance of the data sets (bias_C, equations 1 and 2; one third each would be perfect):

# %%
shares = stage.table("figure_3_bias", tables["bias"]).pivot(
    index="dataset", columns="class", values="bias"
)
shares.astype(object).fillna("")

# %% [markdown] tags=["slide"]
# **Why.** The correlations follow from the construction, and no model takes part in them, so the agreement says that the labelling
# worked. bias_C is not exactly a third, since the female form has one word (*her*) where the male form has two (*him*, *his*).
#
# ## Figure 4 · How well do the models classify?
#
# **Claim** (section 3.3.5, Table 3). All models reach at least 80 % or nearly so, so they have generalised to the task.
#
# **How to read the figure.** A dot is the test accuracy with its interval. Hollow squares are the *hard* rows, whose first pronoun is
# somebody else's. The lines are two classifiers that see no language model.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_performance(tables["accuracy_vs_floors"])
stage.figure("figure_4", figure, formats)
stage.table("figure_4", plotted).drop(
    columns=["n", "n_sentences", "low_hard", "high_hard"]
)

# %% [markdown]
# A dot to the left of the dashed line is a model that has learnt less than a rule without training. **The verdicts:**

# %%
verdicts(
    "figure_4",
    "accuracy_above_80",
    "learnt_more_than_the_first_pronoun",
    "rates_comparable",
    "prediction_gap_shrinks",
)

# %% [markdown] tags=["slide"]
# **Why.** That is a low bar here: on the published data, the class of the first pronoun is right in
# 98.8 %<!-- geco/cpu/04_metrics/accuracy_vs_floors[dataset=D_A, scheme=First pronoun rule].accuracy --> of the rows of D_A and in
# 94.0 %<!-- geco/cpu/04_metrics/accuracy_vs_floors[dataset=D_S, scheme=First pronoun rule].accuracy --> of D_S. In the paper's Table 3 BERT-C
# (90.2<!-- geco/material/paper_numbers[id=latest_accuracy_D_S_C].value -->) and OLA
# (85.1<!-- geco/material/paper_numbers[id=latest_accuracy_D_S_OLA-CEA].value -->) lie below that on D_S.
#
# ## Figure 5 · One sentence in full
#
# **Claim** (section 4). In the paper's example many methods put most of the importance on *she*, and yet no word is left without any.
#
# **How to read the figure.** A row of panels per method, a column per model; the bars are the shares of the words. Green and hatched:
# words that change with the form. The last column holds the floors.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_example(tables["example_sentence"])
stage.figure("figure_5", figure, formats)
stage.table("figure_5", plotted).head(10)

# %% [markdown]
# **The verdict:**

# %%
verdicts("figure_5", "pronoun_stands_out")

# %% [markdown] tags=["slide"]
# **Why.** `ours` is the share of the panels whose highest bar is the pronoun. One sentence illustrates and decides nothing, at any scale.
#
# ## Figure 7 of the first version · Is a word explained differently in the two forms?
#
# **Claims** (v1, section 3.1). Ground-truth words get different attributions in the female and the male form, and methods that vary more
# differ more.
#
# **How to read the figure.** Attribution of a word in the female form minus that in the male form, mean over a sentence's words. Right
# of zero: more in the female form. Diamonds are ground truth, the last column holds the floors.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_form_difference(tables["attribution_difference"])
stage.figure("figure_v1_7", figure, formats)
truth = stage.table("figure_v1_7", plotted).query("words == 'truth'")
plots.method_grid(truth, "difference").astype(object).fillna("")

# %% [markdown]
# The table has the ground-truth words; the others mirror them, for the attributions of a sentence sum to one. **The verdicts:**

# %%
verdicts("figure_v1_7", "forms_explained_differently", "spread_goes_with_difference")

# %% [markdown] tags=["slide"]
# **Why.** A difference between the forms need not be a bias of the model: *her* is one word for two male ones, and pieces differ too.
#
# ## Figure 8 of the first version · Which of these differences are significant?
#
# **How to read the figure.** p values of a signed-rank test on the ground-truth words of Figure 7, averaged within base sentences first, and
# corrected for the number of tests (Holm). Dark: significant. v1 tests row by row, repetition by repetition, and corrects nothing.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_significance(
    tables["attribution_difference"].query("words == 'truth'")
)
stage.figure("figure_v1_8", figure, formats)
plots.method_grid(stage.table("figure_v1_8", plotted), "p_holm").astype(object).fillna(
    ""
)

# %% [markdown] tags=["slide"]
# The verdict on Figure 7 asks for more: t tests over base sentences against a smallest effect of interest, one hundredth of the attribution
# per word, since a difference can be significant and too small to matter. A cell of a single training speaks of its sentences only.
#
# **Why.** Look at the last column. On the published D_A the Pattern Variant is significant too, and
# it sees no model: *her* and *his* are simply not equally frequent. Significance alone tells nothing about the bias of a model.
#
# ## A figure of ours · Do the yardsticks agree?
#
# **Claim** (section 2). Being right about the data and being faithful to the model are different things; a faithful explanation need not point
# at the words that were changed.
#
# **How to read the figure.** A panel per model of D_A, a line per pair of yardsticks: mass accuracy on GECO's mask, agreement with word swaps
# (`rank_signed` in the table), and three measures of deletion (stage 4, section 14). A dot is their rank correlation over the methods, a hollow
# square the one within a row, with 95 % intervals over base sentences. At 1 two yardsticks order the methods alike; at 0, the line, they are unrelated.

# %%
NAMES = {"MA": "mass accuracy", "rank_signed": "word swaps"}


def plot_yardsticks(table: pd.DataFrame) -> Figure:
    """Rank correlations of pairs of yardsticks with their intervals, a panel per model."""
    named = table.assign(
        pair=table["left"].replace(NAMES) + ", " + table["right"].replace(NAMES)
    )
    schemes, pairs = list(named["scheme"].unique()), list(named["pair"].unique())
    looks = {
        "methods": ("o", plots.COLOURS[0], plots.COLOURS[0], -0.13),
        "rows": ("s", "0.45", "white", 0.13),
    }
    with plt.rc_context(plots.STYLE):
        figure, axes = plt.subplots(
            1,
            len(schemes),
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(2.8 + 2.2 * len(schemes), 1.2 + 0.27 * len(pairs)),
        )
        for ax, scheme in zip(axes[0], schemes):
            for over, (marker, colour, face, shift) in looks.items():
                part = named[(named["scheme"] == scheme) & (named["over"] == over)]
                y = [pairs.index(pair) + shift for pair in part["pair"]]
                ax.hlines(y, part["low"], part["high"], color=colour)
                ax.plot(
                    part["estimate"],
                    y,
                    marker,
                    color=colour,
                    markerfacecolor=face,
                    markersize=5,
                    label=f"over {over}",
                )
            ax.axvline(0, color="0.3", linewidth=1)
            ax.set(
                title=scheme,
                xlim=(-1.05, 1.05),
                xticks=(-1, 0, 1),
                yticks=range(len(pairs)),
                yticklabels=pairs,
                ylim=(len(pairs) - 0.5, -0.5),
            )
        n_methods, n_sentences = named["n_methods"].max(), named["n_sentences"].max()
        figure.supxlabel(
            f"rank correlation of two yardsticks ({n_methods:.0f} methods, {n_sentences} base sentences)",
            fontsize=10,
        )
        figure.legend(
            *axes[0][0].get_legend_handles_labels(),
            loc="outside upper center",
            ncol=2,
            frameon=False,
        )
    return figure


# %% [markdown]
# Its points:

# %% tags=["nbval-ignore-output", "slide"]
stage.figure("figure_yardsticks", plot_yardsticks(tables["yardsticks"]), formats)
found = stage.table("figure_yardsticks", tables["yardsticks"])
found.pivot(
    index=["left", "right"], columns=["scheme", "over"], values="estimate"
).round(2)

# %% [markdown] tags=["slide"]
# **Why.** This claim is not registered, so it gets no verdict; the intervals are the answer, and they speak of other sentences, not of other
# methods or trainings. Mass accuracy and the swaps look at the same words, but the mask only says which of them *may* matter: where a model
# uses some of them and not others, the two part. Deletion asks about words that the mask leaves out, on sentences with holes.
#
# ## Another of ours · Which methods look at the model?
#
# **Claim** (Adebayo et al. 2018; not registered). An explanation of the model must change when its parameters do.
#
# **How to read the figure.** A line per method, a column per step of the randomisation, from the trained model to one that is random through
# and through. In a cell stands the rank correlation over the words with the explanation of the trained model: on the left with the signs of the
# scores, on the right by size. Bold: the 95 % interval, over random models and base sentences, excludes zero.


# %%
def plot_randomisation(table: pd.DataFrame) -> Figure:
    """Likeness to the first explanation, method by step, with and without signs; two panels per model."""
    kinds = {"rank_signed": "with signs", "rank_size": "by size"}
    models, methods = list(table["model"].unique()), list(table["method"].unique())
    with plt.rc_context(plots.STYLE):
        figure, axes = plt.subplots(
            len(models),
            2,
            sharey=True,
            squeeze=False,
            layout="constrained",
            figsize=(7.6, (1.0 + 0.21 * len(methods)) * len(models)),
        )
        for (model, measure), ax in zip(product(models, kinds), axes.flat):
            part = table[(table["model"] == model) & (table["measure"] == measure)]
            cells = part.pivot(index="method", columns="step", values="estimate").loc[
                methods
            ]
            _ = ax.imshow(cells, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
            for one in part.dropna(subset=["estimate"]).itertuples():
                ax.text(
                    one.step,
                    methods.index(one.method),
                    f"{one.estimate:.2f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if abs(one.estimate) > 0.75 else "0.1",
                    weight="bold" if one.low * one.high > 0 else "normal",
                )
            ax.set(
                title=f"{model}, {kinds[measure]}",
                xticks=cells.columns,
                yticks=range(len(methods)),
                yticklabels=methods,
            )
            ax.grid(False)
            _ = ax.set_xticklabels(
                part.drop_duplicates("step")["part"], rotation=35, ha="right"
            )
    return figure


# %% [markdown]
# The last column with its intervals (the file has all):

# %% tags=["nbval-ignore-output", "slide"]
redrawn = tables["randomisation"]
stage.figure("figure_randomisation", plot_randomisation(redrawn), formats)
_ = stage.table("figure_randomisation", redrawn)
last = redrawn[
    redrawn["step"] == redrawn.groupby("model")["step"].transform("max")
].round(2)
last["shown"] = (
    last["estimate"].astype(str)
    + " ["
    + last["low"].astype(str)
    + ", "
    + last["high"].astype(str)
    + "]"
)
last.pivot(index="method", columns=["model", "measure"], values="shown")

# %% [markdown]
# **Why.** A head decides which way a word counts, so the signs must go with it, and go. A method without signs (Saliency, Guided Backprop) answers
# which words the model is sensitive at, and that is decided below the head: a random head, and in a BERT (scale `cpu`) even random upper layers, leave
# its order nearly as it was. A cell that is not bold says that this run, with few random models, saw no likeness, not that there is none.
#
# ## All claims
#
# Every claim that was registered in `material/claims.yaml`, decided ones first:

# %%
verdicts("all")

# %% [markdown]
# The file `verdict_all.csv` holds the numbers that the papers print as well, each beside ours, with the reason of its verdict.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder; those that we vouch for are under `outputs/reference/geco/`. What a verdict rests
# on is in [comparisons.csv](../../outputs/reference/geco/cpu/04_metrics/comparisons.csv). The results are this notebook at scale `cpu`
# (`make geco SCALE=cpu`: the published data, a small encoder in BERT's place); `SCALE=paper` takes BERT itself, on a GPU.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed

claims = read_committed("geco", "cpu", "04_metrics", "claims")
claims["verdict"].value_counts()

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `claims` above holds every claim of the papers with a verdict of the run at scale `cpu`. A claim is *decided* where the verdict is *holds*, *partly* or *fails*. Of the decided claims, which share holds?

# %% tags=["hole"]
share_that_holds = ...

# %% tags=["solution"]
n = claims["verdict"].value_counts()
share_that_holds = n["holds"] / (n["holds"] + n["partly"] + n["fails"])

# %% tags=["check"]
verdicts = claims["verdict"]
decided = verdicts.isin(["holds", "partly", "fails"])
check_number(
    share_that_holds,
    (verdicts[decided] == "holds").mean(),
    {
        "you divide by all claims, also those that nothing was decided about.": (
            verdicts == "holds"
        ).mean(),
        "a claim that holds partly does not hold.": (
            verdicts[decided] != "fails"
        ).mean(),
    },
    "Count the three decided verdicts first.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# A colleague reads the table and says: "Most of the rest is *undecided*, so the papers are wrong." What do you answer?
#
# - `"a"` Undecided means that our interval holds both a clear effect and none. It says how much we know, and nothing about the paper.
# - `"b"` Undecided means that we found no effect.
# - `"c"` Undecided claims were never looked at.

# %% tags=["hole"]
answer = ...  # "a", "b" or "c"

# %% tags=["solution"]
answer = "a"

# %% tags=["check"]
check_choice(
    answer,
    "a",
    {
        "b": "Having found nothing and having found that there is nothing are different.",
        "c": "Those have a verdict of their own; read the list above.",
    },
)
