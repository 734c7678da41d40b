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
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) and [its appendix](appendix_what_models_use.ipynb) · the study: [README](README.md) ·
# [glossary](../../docs/glossary.md)
#
# ## What we found
#
# - **Integrated Gradients points at the changed words. So does a rule that never looks at the model.** Integrated Gradients puts
#   .87<!-- geco/cpu/04_metrics/figure[dataset=D_A, scheme=CEf, method=Integrated Gradients].MA --> of its attribution on them, in a BERT whose head
#   and embeddings were fine-tuned. The rule *First pronoun* puts
#   .98<!-- geco/cpu/04_metrics/figure[dataset=D_A, method=First pronoun].MA --> there.
#   [Figure](../../outputs/reference/geco/cpu/05_figures/figure_2b.png)
# - **Deleting words separates the two.** We delete the words in the order of an explanation, and see how far the model's
#   answer falls. The worst possible order scores 0, the best 1. The rule scores
#   .44<!-- geco/cpu/appendix_what_models_use/faithfulness[model=CEf, method=First pronoun, measure=NAOPC].estimate --> and Integrated Gradients
#   .94<!-- geco/cpu/appendix_what_models_use/faithfulness[model=CEf, method=Integrated Gradients, measure=NAOPC].estimate -->. The rule names one word only. (Ninety base sentences, three fine-tuning
#   runs. *Pattern Variant*, which sees no model, has .94<!-- geco/cpu/appendix_what_models_use/faithfulness[model=CEf, method=Pattern Variant, measure=NAOPC].estimate -->, too.) [Table](../../outputs/reference/geco/cpu/appendix_what_models_use/faithfulness.csv)
# - **Is Integrated Gradients the best method, as the paper says? Nearly, with the released code's numbers of samples**: the claim holds
#   partly<!-- geco/cpu/04_metrics/claims[id=integrated_gradients_best].verdict -->. In three fine-tuning runs of each BERT that classifies better than the rule, it is above
#   every method but Gradient SHAP. [With more samples](03_attribution.ipynb), LIME and Kernel SHAP come close to it. [Claims](../../outputs/reference/geco/cpu/04_metrics/claims.csv)
#
# This is scale `cpu`: the published GECO, and a small BERT in place of bert-base. Its figures and verdicts are on
# [the results page](../../outputs/reference/geco/cpu/05_figures.ipynb).

# %% [markdown] tags=["slide"]
# ## You will see
#
# - figures of GECOBench and two of its first version (v1);
# - two of ours on the models;
# - verdicts on the claims.
#
# **You can then** tell *undecided* from *no effect*, and count verdicts. **You need** [stage 4](04_metrics.ipynb).
# **Time:** 18 minutes to read, under a minute to run,
# [10 minutes for the exercises](../../docs/course/exercises/geco.md#05-figures).
#
# | in | used for |
# |---|---|
# | stage 4: `figure`, `ranking`; `relative_mass_accuracy` | figure 2b; figure 2a |
# | `correlation`, `bias` | figure 3 |
# | `accuracy_vs_floors` | figure 4 |
# | `example_sentence` | figure 5 |
# | `attribution_difference` | figures 7 and 8 of v1 |
# | `claims` | the verdicts |
# | the appendix: `yardsticks`, `randomisation` | the two figures of ours |
#
# Out: each figure as picture and table; the verdicts as `verdict_*`.

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import pandas as pd

from lib import plots
from lib.core.notebooks import show_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots.panels import DATASET_NAMES
from lib.stats import show_verdicts, tell_verdicts

# %% [markdown]
# ## Settings

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# The tables:

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
    "claims",
)
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in files}
for name in ("yardsticks", "randomisation"):
    file = stage.input("appendix_what_models_use", f"{name}.csv")
    tables[name] = pd.read_csv(file)
registered = material("geco") / "claims.yaml"
verdicts, judge = (
    partial(show, stage, tables["claims"], registered)
    for show in (show_verdicts, tell_verdicts)
)
pd.set_option("display.max_colwidth", None)
print(len(tables), "tables,", len(tables["claims"]), "claims and printed numbers")

# %% [markdown] tags=["slide"]
# A claim **holds** if all comparisons that were run show the effect (interval and corrected test). It holds **partly** if only
# some do, or if half the comparisons could not be run. It **fails** if none does and one shows the effect absent or reversed.
# (With *most* registered in place of *all*, more than half decide.) It is **undecided** if the data cannot tell. A comparison
# is **not run** if it lacks rows, or its model is below the first-pronoun rule.
#
# All verdicts are of scale `cpu`. At scale small, a cell for verdicts prints one line; the link above it leads to
# the verdicts. *Found here* is our value, or the median of several comparisons. (For comparisons, `ours` in the CSV is our
# value minus the number that the claim names.) Empty panels and rows: not run at scale small.
#
# ## Figure 2b · Which method finds the changed words?
#
# ![One sentence in 3 forms, word below word. she: She loves to spend time with her favorite cat .; he: He loves to spend time with his favorite cat .; they: They love to spend time with their favorite cat .. A row of ones and zeros below, the mask, has a 1 at the words that differ: She, loves, her.](../../docs/schematics/three_forms.svg)
#
# Words with a 1 are *changed words*.
#
# **Claims** (section 4 of the paper, first question). Integrated Gradients beats all other methods on every BERT model
# and both data sets. With LIME and Gradient SHAP it forms the top three. No method reaches the Pattern Variant, a rule
# made of word counts. On one attention layer (OLA), scores are higher overall than on BERT, and Input x Gradient comes close
# to the Pattern Variant.
#
# **How to read the figure.** A mark is the share of attribution on changed words, with its 95 % interval over base sentences and
# fine-tuning runs. Upright lines are **floors**: the scores of rules that never look at a model. On *all gendered words* three
# nearly coincide. In a grey panel (†) the model classifies worse than the first-pronoun rule.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_mass_accuracy(tables["figure"])
stage.figure("figure_2b", figure, formats)
_ = stage.table("figure_2b", plotted)

# %% [markdown]
# The best and the worst possible place of each method on *subject only*:

# %% tags=["nbval-ignore-output"]
places = stage.table("figure_2b_places", tables["ranking"])
best, worst = places["best_place"].astype(str), places["worst_place"].astype(str)
place = best.where(best == worst, best + " to " + worst)
below = tables["figure"].query("dataset == 'D_S' and below_first_pronoun")["scheme"]
daggers = {name: f"{name} †" for name in below.map(plots.SCHEME_NAMES)}
grid = plots.method_grid(places.assign(place=place), "place", "D_S")
grid.rename(columns=daggers)

# %% [markdown]
# Places, unlike verdicts, count only differences above the smallest detectable one ([stage 4](04_metrics.ipynb), section 5). [The verdicts](../../outputs/reference/geco/cpu/05_figures/verdict_figure_2b.csv):

# %%
judge(
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
# **Why.** *Integrated Gradients is best* holds partly<!-- geco/cpu/04_metrics/claims[id=integrated_gradients_best].verdict -->: most comparisons with Gradient SHAP are undecided. The top three hold
# partly<!-- geco/cpu/04_metrics/claims[id=three_best].verdict -->, too: LIME is not always above the other five. *None reaches the Pattern Variant* holds partly<!-- geco/cpu/04_metrics/claims[id=pattern_variant_unreached].verdict -->, as does *OLA beats BERT*.
# *Mass accuracy is higher on all gendered words (D_A) than on subject only (D_S)* holds<!-- geco/cpu/04_metrics/claims[id=datasets_differ].verdict --> for five of eight methods, not for LIME and Kernel SHAP.
# *A method finds more than First pronoun* (ours) fails<!-- geco/cpu/04_metrics/claims[id=beyond_the_first_pronoun].verdict -->. *D_A
# stays ahead after a correction for chance* holds partly<!-- geco/cpu/04_metrics/claims[id=datasets_differ_beyond_base_rate].verdict -->, in ten of twenty-four.
#
# ## Figure 2a · Does training the embeddings improve explanations?
#
# **Claim** (section 4, second question). Compared with the zero-shot model, explanations improve most where the embeddings are trained: *head + new embeddings* (CE), *head + embeddings* (CEf).
#
# **How to read the figure.** *Relative mass accuracy* divides by the mass accuracy of the zero-shot model on the same
# row. A mark is the median over rows. At 1, training changed nothing. The short strokes are floors: the same ratio for a
# rule.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_relative_mass_accuracy(tables["relative_mass_accuracy"])
stage.figure("figure_2a", figure, formats)
_ = stage.table("figure_2a", plotted)

# %% [markdown]
# [The verdicts](../../outputs/reference/geco/cpu/05_figures/verdict_figure_2a.csv):

# %%
judge("figure_2a", "trained_embeddings_improve", "embeddings_matter_most")

# %% [markdown] tags=["slide"]
# **Why.** *Trained embeddings improve explanations* holds<!-- geco/cpu/04_metrics/claims[id=trained_embeddings_improve].verdict -->. *They matter most* holds
# partly<!-- geco/cpu/04_metrics/claims[id=embeddings_matter_most].verdict -->. The released code
# plots log(relative mass accuracy - 1), which does not exist for rows that became worse. We keep them.
#
# ## Figure 3 · Which words go with a class?
#
# **Claim** (section 4 and appendix). Pronouns correlate most with the class, in both data sets.
#
# **How to read the figure.** The bars are Pearson correlations between the tf-idf weight of a word (its frequency in the row, lower for words in many rows) and "this
# row is of the class". The ten largest are shown. At scale small, *pibling* means aunt or uncle. At scale `cpu`, *trie* is an error for *try*, and *dona* comes from *Dona Quixote*.

# %% tags=["slide"]
figure, plotted = plots.plot_correlation(
    tables["correlation"][tables["correlation"]["dataset"].isin(["D_A", "D_S"])]
)
stage.figure("figure_3", figure, formats)
_ = stage.table("figure_3", plotted)

# %% [markdown]
# [The verdict](../../outputs/reference/geco/cpu/05_figures/verdict_figure_3.csv), where *found here* is the share of top words that are pronouns:

# %%
judge("figure_3", "tfidf_top_words")

# %% [markdown]
# It holds<!-- geco/cpu/04_metrics/claims[id=tfidf_top_words].verdict -->. Next is the paper's bias ([stage 1](01_data_generation.ipynb), equation 2). A *pair* is a pronoun and another word of its sentence. Of all pairs, we show the share in each class; even is a third (two classes: a half).

# %%
shares = stage.table("figure_3_bias", tables["bias"]).pivot(
    index="dataset", columns="class", values="bias"
)
show_table(
    shares.reset_index().replace(DATASET_NAMES),
    {"dataset": "words that change"} | plots.FORM_NAMES,
)

# %% [markdown] tags=["slide"]
# **Why.** The correlations follow from how the texts were made: they check labels, not models.
#
# ## Figure 4 · How well do the models classify?
#
# **Claim** (section 3.3.5, Table 3). All models reach at least 80 %, or nearly (tested: more than 75 %).
#
# **How to read the figure.** A dot is the accuracy on test rows, with its interval. A hollow square is the accuracy on *hard* rows, whose first pronoun is
# somebody else's (if few, without an interval). The lines are two classifiers without a language model.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_performance(tables["accuracy_vs_floors"])
stage.figure("figure_4", figure, formats)
_ = stage.table("figure_4", plotted)

# %% [markdown]
# Left of the dashed line: less accurate than a rule without training. [The verdicts](../../outputs/reference/geco/cpu/05_figures/verdict_figure_4.csv):

# %%
judge(
    "figure_4",
    "accuracy_above_80",
    "learnt_more_than_the_first_pronoun",
    "rates_comparable",
    "prediction_gap_shrinks",
)

# %% [markdown] tags=["slide"]
# **Why.** The paper's claim holds partly<!-- geco/cpu/04_metrics/claims[id=accuracy_above_80].verdict -->, and so does ours, that models learn more than the first pronoun. At scale `cpu`, the class of the first pronoun is right in
# 98.8 %<!-- geco/cpu/04_metrics/accuracy_vs_floors[dataset=D_A, scheme=First pronoun rule].accuracy --> of the rows of D_A and in
# 94.0 %<!-- geco/cpu/04_metrics/accuracy_vs_floors[dataset=D_S, scheme=First pronoun rule].accuracy --> of D_S. Of the trained models in the paper's Table 3, two are
# below that on D_S: BERT with a trained head
# (90.2<!-- geco/material/paper_numbers[id=latest_accuracy_D_S_C].value -->) and OLA
# (85.1<!-- geco/material/paper_numbers[id=latest_accuracy_D_S_OLA-CEA].value -->).
#
# ## Figure 5 · One sentence in full
#
# **Claim** (section 4). In the paper's example many methods put most of the importance on *she*, and every word gets some.
#
# **How to read the figure.** Ours is another sentence. Each row of panels is a method, each column a model. The last column has the floors, named on the right. A bar is the share of a word.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_example(tables["example_sentence"])
stage.figure("figure_5", figure, formats)
_ = stage.table("figure_5", plotted)

# %% [markdown]
# [The verdict](../../outputs/reference/geco/cpu/05_figures/verdict_figure_5.csv), where *found here* is the share of the panels whose highest bar is the pronoun:

# %%
judge("figure_5", "pronoun_stands_out")

# %% [markdown] tags=["slide"]
# Undecided<!-- geco/cpu/04_metrics/claims[id=pronoun_stands_out].verdict -->: one sentence illustrates a claim, and cannot decide it.
#
# ## Figure 7 of the first version · Is a word explained differently in the two forms?
#
# **Claims** (v1, section 3.1). Changed words have different attributions in the female and the male form. Methods whose mass accuracy varies more between rows also
# differ more between the forms.
#
# **How to read the figure.** A mark is the attribution per word in the female form, minus that in the male form.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_form_difference(tables["attribution_difference"])
stage.figure("figure_v1_7", figure, formats)
_ = stage.table("figure_v1_7", plotted)

# %% [markdown]
# The title counts intervals that exclude zero, in grey panels too. The verdict leaves
# those panels out, corrects for the number of tests, and asks for a difference that matters (figure 8). [The verdicts](../../outputs/reference/geco/cpu/05_figures/verdict_figure_v1_7.csv):

# %%
judge("figure_v1_7", "forms_explained_differently", "spread_goes_with_difference")

# %% [markdown] tags=["slide"]
# **Why.** *The forms differ* holds partly<!-- geco/cpu/04_metrics/claims[id=forms_explained_differently].verdict --> (most comparisons are undecided); *spread goes with difference* holds<!-- geco/cpu/04_metrics/claims[id=spread_goes_with_difference].verdict -->. A difference need not be a bias of the model. *Her* stands for both *his* and *him*, and a noun can have more word pieces
# in one form.
#
# ## Figure 8 of the first version · Which of these differences are significant?
#
# v1 shows p values alone, tests row by row, and does not correct for their number. We show sizes, average over the rows and runs of a base sentence, and
# correct (Holm).
#
# **How to read the figure.** Filled diamonds are significant after this correction. The interval adds the spread
# between fine-tuning runs, so it can cross zero beside a filled diamond. In the grey band a difference is too small to
# matter: one hundredth of the attribution, per word. *Surely larger* in the title: the interval lies outside the band.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_significance(
    tables["attribution_difference"].query("words == 'truth'")
)
stage.figure("figure_v1_8", figure, formats)
_ = stage.table("figure_v1_8", plotted)

# %% [markdown] tags=["slide"]
# ## A figure of ours · Do the yardsticks agree?
#
# **Claim** (section 2). Being right about the data and being faithful to the model are different things.
#
# **How to read the figure.** A *yardstick* is a score for explanations; each line is a pair. Mass accuracy uses GECO's mask. *Word swaps*:
# how well scores agree with what swapping changed words does to the answer. Three others delete words
# ([the appendix](appendix_what_models_use.ipynb)); *fidelity* is how well scores predict the fall of the answer. A dot is a rank correlation over the mean scores of the methods. A
# hollow square is the mean of the rank correlations within each row. At 1 they order the methods alike.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_yardsticks(tables["yardsticks"])
stage.figure("figure_yardsticks", figure, formats)
_ = stage.table("figure_yardsticks", plotted)

# %% [markdown] tags=["slide"]
# We did not write this claim down before the run. Two deletion measures, comprehensiveness and the deletion score, agree more closely with each
# other than with mass accuracy.
#
# ## Another of ours · Which methods look at the model?
#
# **Claim** (Adebayo et al. 2018). An explanation of the model must change when its weights do.
#
# **How to read the figure.** From left to right one more part of the model is random. A line is the correlation of an
# explanation with that of the trained model: left panels keep the signs of the scores, right panels drop them. The title
# names the methods whose scores in the left panels are still similar when only the head is random.

# %% tags=["nbval-ignore-output", "slide"]
figure, plotted = plots.plot_randomisation(tables["randomisation"])
stage.figure("figure_randomisation", figure, formats)
_ = stage.table("figure_randomisation", plotted)

# %% [markdown]
# **Why.** The head decides for which class a word counts. So with a random head, scores with signs should order the words anew. This
# holds<!-- geco/cpu/appendix_what_models_use/claims[id=signed_methods_forget_a_random_head].verdict -->; on the attention layer most comparisons are undecided. Saliency and Guided Backprop have no signs. They show
# where the model is sensitive. *They keep their order* holds<!-- geco/cpu/appendix_what_models_use/claims[id=unsigned_methods_survive_a_random_head].verdict -->, too.
#
# ## All claims
#
# [The verdicts](../../outputs/reference/geco/cpu/05_figures/verdict_all.csv) of stage 4:

# %%
found = verdicts("all")
if found is not None:
    counts = found["verdict"].value_counts().rename_axis("verdict")
    show_table(
        counts.reset_index(name="n"), {"verdict": "verdict", "n": "registered claims"}
    )

# %% [markdown]
# The [README](README.md#the-claims) counts them. [The appendix](appendix_what_models_use.ipynb) judges eight more.

# %%
_ = stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The comparisons behind each verdict are in [comparisons.csv](../../outputs/reference/geco/cpu/04_metrics/comparisons.csv). `make geco SCALE=paper` uses BERT itself, on a GPU.

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
# `claims` above has the papers' claims, ours, and printed numbers, with their verdicts at scale `cpu`. We call all of them claims. A claim is *decided* where the verdict is *holds*, *partly* or *fails*. Of the decided claims, which share holds?

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
# A colleague reads the table and says: "Some claims are *undecided*. So the papers are wrong about them." What do you answer?
#
# - `"a"` Undecided means that our interval contains both a clear effect and no effect. It says how much we know, and nothing about the paper.
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
