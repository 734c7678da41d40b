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
# # Assay, stage 3 of 5: how do explainers score the words of one text?
#
# [Start here](../00_start_here.ipynb) · before: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb) · this study: [README](README.md)
#
# The right answers are stored now. The explainers do not get them: each gets one text and one model at a time.
#
# ## What we found
#
# At run size `cpu`; the cells below show `small`.
#
# - **Explainers come in families.** Saliency and Gradient norm both score a word by the size of a gradient. They put
#   the words of a text in almost the same order. Other pairs agree less, or not at all.
#   [See the figure](../../outputs/reference/assay/cpu/03_attribution/agreement.png)
# - **Some explainers never give negative scores**, so they cannot show that a word lowered the model's score. Attention
#   rollout is one of them. [See one review](../../outputs/reference/assay/cpu/03_attribution/one_review.png)
# - **Not every explainer works for every model.** Attention rollout, AttnLRP and DeepLift
#   (rescale rule) raise an error for some models.
#   [See the messages](../../outputs/reference/assay/cpu/03_attribution/refused.csv)

# %% [markdown] tags=["slide"]
# ## You will see
#
# - ten explainers and eight simple rules, applied to every item;
# - an explanation that marks the right words without using the model, and the truths that it satisfies;
# - which explainers fail for a model, and which give the same numbers as another explainer;
# - which explainers put the words of a text in the same order.
#
# **You can then** tell which truths an explanation can satisfy without the model, and write a simple rule to compare
# explainers with. **You need** [stage 2](02_training.ipynb). **Time:** 10 minutes to read, 2 minutes to run, [20 minutes
# for the exercises](../../docs/course/exercises/assay.md#03-attribution).
#
# | in | out (in this stage's folder) | holds |
# |---|---|---|
# | `truths`, `second_models` (`.parquet`), `models/` (02) | `explanations.parquet` | a number for each word, by explainer, model, run and text |
# | `train.parquet` (01) | `redrawn.parquet` | the same for a model with random weights |
# | | `budgets.parquet` | the same with few and with many forward passes |
# | | `second_models.parquet` | the explanations of the LSTM |
# | | `refused`, `copies`, `cost`, `agreement`, `one_review` (`.csv`), two figures | summaries |
#
# Every explainer is described in the [glossary](../../docs/glossary.md).

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.progress import progress
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.metrics.agreement import rank_correlation
from lib.plots import plot_words
from lib.studies.assay import explainers as who
from lib.studies.assay.asking import Asking
from lib.studies.assay.edits import estimated_change
from lib.studies.assay.figures import MODEL_NAMES
from lib.studies.assay.stage_figures import plot_likeness

# %% [markdown]
# ## Settings
#
# You can change the explainers and their settings in `explainers`, and add a function of your own as `module:function`.
# All explainers but Attention rollout explain the log-odds of the item's class.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
n_seeds = 2  # runs of each model
explainers = {
    "Saliency": {},
    "Gradient norm": {},
    "InputXGradient": {},
    "Integrated Gradients": {"n_steps": 20},
    "DeepLift": {},
    "AttnLRP": {},
    "Attention rollout": {},
    "Occlusion": {},
    "LIME": {"n_samples": 50},
    "Kernel SHAP": {"n_samples": 50},
}  # who is asked, with settings
budgets = [10, 100]  # numbers of forward passes to compare (section 5, and stage 4)
budget_trainings = 1  # runs of the model gender for which they are compared
reuse_units = False  # read explanations that are committed, and publish new ones

# %% [markdown]
# | word | meaning | here |
# |---|---|---|
# | floor | a rule that never looks at the model | `FLOORS` |
# | cheater | an explanation that is made from a part of the right answer | section 1 |
# | score | one number for each word: how much it raises the log-odds | `scores` |

# %%
stage = open_stage("assay", scale, "03_attribution")
set_up(seed, n_threads)
study = Asking(stage, Units("assay", scale, "03_attribution", reuse_units), globals())
truths, asked = study.truths, study.asked
names = [*explainers, *who.FLOORS]
n_models = asked["model"].nunique()
print(f"{len(asked)} texts of {n_models} models, {len(names)} asked about each")

# %% [markdown] tags=["slide"]
# ## 1 · By hand: a model that adds
#
# ![A model adds a number for each word of 'good and cold food', in sum 1; without 'and cold' the sum is 2.5, so the effect of these words is -1.5, which is also what the right explanation gives them in sum.](../../docs/schematics/removed_words.svg)
#
# Suppose that a model gives each word a fixed number and adds the numbers up:
#
# | good | food | cold | any other word |
# |---|---|---|---|
# | 2 | .5 | -1.5 | 0 |
#
# The right explanation gives each word its number. Does it satisfy the truths of stage 1?
#
# - **edit.** Remove *and cold* from *good and cold food*. The score rises from 1 to 2.5, so the effect of the removed words
#   is -1.5. The explanation's sum for them is -1.5.
# - **noun.** Exchange *good* for other adjectives. On average the score falls by 2 minus the mean value of these
#   adjectives. If the same mean is subtracted for every adjective, the explanation puts the adjectives in the right
#   order.
# - **deletion.** Delete the words from the largest number to the smallest. No other order makes the score fall faster.
#
# **Stop and guess.** A *cheater* knows which words are marked, but not their effect. It gives each of them 1. Under
# which truths is this enough?

# %%
adds = {"good": 2.0, "and": 0.0, "cold": -1.5, "food": 0.5}
honest, cheater = list(adds.values()), [0.0, 1.0, 1.0, 0.0]
before, after = sum(adds.values()), adds["good"] + adds["food"]
assert estimated_change(honest, [1, 2]) == before - after == -1.5
assert estimated_change(cheater, [1, 2]) == 2.0
assert adds["good"] - np.mean([1.0, 0.0]) == 1.5
print(sorted(adds, key=adds.get, reverse=True))

# %% [markdown] tags=["slide"]
# Under *edit* it is not enough: the cheater's sum is 2, which has the wrong sign. Under *altered words*, *planted* and *cue* it
# is enough. These truths only ask *where* the right words are: the words that differ between two forms, the planted
# words, or the noun with which the verb agrees. **If a cheater satisfies a truth, that truth cannot tell an explanation
# of the model from a good guess about the data.** Stage 4 scores cheaters beside the explainers.
#
# ## 2 · One text at a time
#
# An explainer gets a list of words and a model. It gets no identifier, and never two texts together. So it cannot use a
# second text, such as the other form of the sentence. A floor gets no model. Here is the function that calls
# explainers and floors, and one floor:

# %%
show_source(who.ask)
show_source(who.nearest)

# %% [markdown]
# The eight floors are:
#
# | floor | gives a high score to |
# |---|---|
# | Random, Even | words at random; all words the same |
# | Nearest | the last words of the text |
# | First pronoun, Pronoun list | the first pronoun; all pronouns |
# | Rare words | words that are rare in the training texts |
# | Word counts, Log count ratio | words that occur more often with the item's class in the training texts |
#
# The last two know the most: of the texts that the model was trained on, they also use the classes.
#
# ## 3 · The full run
#
# We apply every explainer and every floor to every item. This takes a minute or two.

# %%
show_source(who.ask_each)
places = [*study.models(), *study.second_models()]
found = [study.explained(*model) for model in progress(places, "models")]
found = pd.concat(found, ignore_index=True)
refused = found[found["why"] != ""]
answered = found[found["why"] == ""].drop(columns="why")
is_second = answered["model"].isin({name for name, _ in study.second_models()})
explanations = answered[~is_second].reset_index(drop=True)
second = answered[is_second]
print(f"{len(explanations)} explanations, {len(refused)} refusals")

# %% [markdown]
# Which explainers failed, and with which message?

# %%
refusals = refused[["explainer", "model", "why"]].drop_duplicates()
assert len(refusals) < 0.2 * len(names) * asked["model"].nunique(), (
    "a fifth of all questions was refused: read the column why, and correct a setting"
)
pd.set_option("display.max_colwidth", 150)
heads = {"explainer": "explainer", "model": "model", "why": "message"}
refusals = stage.table("refused", refusals)
show_table(refusals.replace(MODEL_NAMES), heads)

# %% [markdown]
# Two explainers can give the same numbers for every text. Then we keep one of them.

# %%
show_source(who.merge_identical)
merged, copies = who.merge_identical(explanations)
copied = pd.DataFrame(copies.items(), columns=["explainer", "is the same as"])
_ = stage.table("copies", copied)
print(f"{len(copied)} explainers are copies of another")

# %% [markdown]
# In this run no explainer is a copy of another.
#
# How many *forward passes* does each explainer need for one text? In a forward pass the model computes its score once. We
# count the texts that the last layer reads for one text of eleven words. The model reads it as fourteen *pieces*, for it cuts
# rare words such as *bridegroom*. Occlusion leaves out one piece at a time, and runs the whole text once.

# %%
show_source(who.count_passes)
price = study.passes()
explained = explanations.groupby("explainer").size()
price["explained"] = price["explainer"].map(explained)
price = price.astype({"passes": int, "explained": int})
heads = {"explainer": "explainer", "passes": "forward passes"}
show_table(stage.table("cost", price), heads | {"explained": "texts explained"})

# %% [markdown] tags=["slide"]
# LIME and Kernel SHAP use about fifty forward passes for each text, which is few for these methods. Section 5 tries
# other numbers.
#
# ## 4 · One review, five explanations
#
# The underlined words are those of the edit: the other text of the pair lacks them. By how much do they change the score, according to each explanation? Sum
# the numbers below them. The table below the figure has these
# sums, and by how much the words really change the model's score.

# %% tags=["nbval-ignore-output", "slide"]
one = truths[(truths["truth"] == "edit") & (truths["training"] == 0)].iloc[0]
shown = ["Integrated Gradients", "LIME", "Attention rollout", "Word counts", "Even"]
mine = explanations.query("model == 'reviews' and training == 0 and text == @one.text")
mine = (
    mine[mine["explainer"].isin(shown)].set_index("explainer").reindex(shown).dropna()
)
picture = pd.DataFrame(
    {
        "words": [list(one.sentence)] * len(mine),
        "scores": list(mine["scores"]),
        "marks": [["edit" if m else "" for m in one.mark]] * len(mine),
        "label": list(mine.index),
    }
)
title = f"{len(mine)} answers to one review: rollout and Even are never negative"
legend = {"edit": "words of the edit"}
figure, plotted = plot_words(picture, legend, "speaks for the class", title, digits=3)
stage.figure("one_review", figure)
plt.show()
_ = stage.table("one_review", plotted[["label", "word", "score", "mark"]])

sums = [np.dot(scores, one.mark) for scores in mine["scores"]] + [one.change]
sums = pd.DataFrame({"who": [*mine.index, "the model itself"], "sum": sums})
show_table(sums, {"who": "according to", "sum": "change by the words of the edit"})

# %% [markdown] tags=["slide"]
# These words lowered the model's score. Integrated Gradients and LIME have the sign right, but less than half of the
# size. The other three are not in log-odds, so their size means nothing here.
#
# *Attention rollout* and *Even* never give negative scores, so they cannot show that words lowered the model's score.
# *Word counts* gives signed scores, but the signs come from the training texts and not from the model.
#
# ## 5 · Random weights, and more forward passes
#
# Stage 4 asks two more questions, and each needs explanations of its own. Does an explanation change if we replace all
# weights of the model by random ones? How good is an explanation from only ten forward passes?

# %%
by_budget = study.bought()
redrawn = study.explained("gender", 0, "redrawn")
budgeted, redrawn = (
    table[table["why"] == ""].drop(columns="why") for table in (by_budget, redrawn)
)
print(f"{len(budgeted)} explanations by budget, {len(redrawn)} of the redrawn model")

# %% [markdown] tags=["slide"]
# ## 6 · Do the explainers agree with each other?
#
# For each pair of explainers we compute the rank correlation of their scores over the words of a text, and average it
# over all texts. The correlation is 1 if both explainers put the words in the same order.

# %% tags=["nbval-ignore-output", "slide"]
by_name = {
    name: part.set_index(who.ABOUT_TEXT)["scores"]
    for name, part in merged.groupby("explainer", sort=False)
}


def likeness(left, right):
    """The mean Spearman correlation over texts that both explain, without NaN."""
    both = by_name[left].index.intersection(by_name[right].index)
    each = [
        rank_correlation(by_name[left][text], by_name[right][text]) for text in both
    ]
    return np.nanmean(each) if np.isfinite(each).any() else np.nan


kept = [name for name in [*explainers, "Word counts", "Nearest"] if name in by_name]
agreement = pd.DataFrame(
    [[likeness(a, b) for b in kept] for a in kept], index=kept, columns=kept
)
figure = plot_likeness(agreement)
stage.figure("agreement", figure)
plt.show()
_ = stage.table("agreement", agreement.rename_axis("explainer").reset_index())

# %% [markdown]
# Saliency and Gradient norm agree almost completely, and Attention rollout agrees with both. Input x Gradient agrees with
# DeepLift. Five others agree in part: Integrated Gradients, AttnLRP (which passes the score back through the model,
# layer by layer), Occlusion, LIME and Kernel SHAP. Agreement does not show that either explainer is right.
#
# ### Controls
#
# An explainer gives the same numbers when it is called a second time. A floor gives the same numbers for both training
# runs of a model, because it does not use the model.

# %%
everybody = explainers | dict.fromkeys(who.FLOORS, {})
fitted = who.fit_floors(study.train.query("model == 'reviews'"))
twice = [{}, {}]
if study.has_weights(("reviews", 0)):  # not with published answers alone
    asked_again = study.loaded(("reviews", 0)), fitted, one.sentence, one.target
    twice = [who.ask(*asked_again, everybody)[0] for _ in range(2)]
# to 1e-5: a GPU adds up in another order each time
same = [np.allclose(twice[0][name], twice[1][name], atol=1e-5) for name in twice[0]]
assert all(same), "an answer depends on when it is asked: seed the draws by the text"
blind = explanations[explanations["explainer"].isin(list(who.FLOORS))]
spread = blind.groupby(["explainer", "model", "text"])["scores"].agg(
    lambda part: np.ptp(np.stack([np.asarray(x) for x in part]), axis=0).max()
)
assert spread.max() == 0, "a floor changes with the training, so it looks at the model"
print(f"{len(twice[0])} asked twice, {len(spread)} answers of floors compared")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Fifty samples are few** for LIME and Kernel SHAP.
# - **Padding stands for a missing word.** Integrated Gradients and DeepLift compare with a text of padding,
#   and Occlusion and Kernel SHAP replace words by padding. A different replacement gives different numbers.
# - **An explainer could learn from many texts.** We give it one at a time on purpose, because a reader also has one text.
# - **An explainer that fails need not be bad.** It may be defined for some models only. Its result is then missing in stage 4.
# - **The cheater is simple.** A cheater made from more of the right answer could satisfy more truths.
#
# ## Try it
#
# - Add `"Exact Shapley": {}` to `explainers`. For which texts does it fail?
# - Write a floor that gives high scores to long words. Which truth does it satisfy?
# - Set `budgets = [10, 100, 1000]`, and watch the time.
#
# Exercises with checks: [page](../../docs/course/exercises/assay.md#03-attribution).

# %%
for name, table in (
    ("explanations", merged),
    ("second_models", second[~second["explainer"].isin(list(copies))]),
    ("budgets", budgeted),
    ("redrawn", redrawn[~redrawn["explainer"].isin(list(copies))]),
):
    save_parquet(table.reset_index(drop=True), stage.path(f"{name}.parquet"))
_ = stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) compares the explanations with the right answers. It does the same for the floors, the
# cheaters and the *oracle*, which is the right answer itself.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.studies.assay.edits import estimated_change

weights = {"good": 2.0, "cold": -1.5, "food": 0.5, "and": 0.0}
likeness = read_committed("assay", "small", "03_attribution", "agreement")
likeness = likeness.set_index("explainer")

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# The model of section 1 adds the numbers in `weights`. The text is *good and cold food*, and a person removed *and cold*. An explainer halves all numbers: *good* 1, *and* 0, *cold* -.75, *food* .25. What does it say that the removed words did, and what did they do?

# %% tags=["hole"]
explainer_says = ...
truth = ...

# %% tags=["solution"]
explainer_says = 0 - 0.75
truth = (2 + 0 - 1.5 + 0.5) - (2 + 0.5)

# %% tags=["check"]
text = "good and cold food".split()
did = estimated_change([weights[word] for word in text], [1, 2])
said = estimated_change([weights[word] / 2 for word in text], [1, 2])
check_number(
    explainer_says,
    said,
    {"the explainer gives them a negative number.": -said},
    "Add up what it gives them.",
    name="explainer_says",
)
check_number(
    truth,
    did,
    {"long minus short: the removed words were there.": -did},
    "The model's answer to the long text, minus that to the short one.",
    name="truth",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# Which of these scores would become worse because the explainer of exercise 1 halves all numbers? (The *mass accuracy* is the share of an explanation, without signs, that lies on the marked words.)
#
# - `"a"` The rank correlation over the words of a text.
# - `"b"` The mass accuracy.
# - `"c"` Neither; only the size of its error against the model's change would.

# %% tags=["hole"]
punishes = ...  # "a", "b" or "c"

# %% tags=["solution"]
punishes = "c"

# %% tags=["check"]
check_choice(
    punishes,
    "c",
    {
        "a": "Does the order of the words change when all numbers are halved?",
        "b": "Mass accuracy divides by the sum. What does it do with a common factor?",
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Write a function
#
# In this study an explainer gets one text and one model. A floor gets no model. Write the floor *later words*: the last word gets 1, the first 1/n, and the others stand between them in equal steps.


# %% tags=["hole"]
def later_words(words):
    """One score a word."""
    return ...


# %% tags=["solution"]
def later_words(words):
    """One score a word."""
    return [(i + 1) / len(words) for i in range(len(words))]


# %% tags=["check"]
check_function(
    later_words,
    lambda words: np.linspace(1 / len(words), 1, len(words)),
    {
        "Four words have the steps of a quarter.": [["a", "b", "c", "d"]],
        "In a text of one word, this word gets 1.": [["a"]],
        "Two words have the steps of a half.": [["a", "b"]],
    },
)

# %% [markdown] tags=["exercise"]
# ### 4 · Predict
#
# `likeness` holds the mean rank correlation between the scores of any two explainers, over all texts. Before you look: which pair is more alike, *Saliency* and *Gradient norm*, or *Saliency* and *Input x Gradient*? Write the larger of the two correlations. All three look at one and the same gradient; Input x Gradient (in the table `InputXGradient`) multiplies it by the word's embedding.

# %% tags=["hole"]
more_alike = ...  # "Gradient norm" or "InputXGradient"
their_correlation = ...

# %% tags=["solution"]
more_alike = likeness.loc["Saliency", ["Gradient norm", "InputXGradient"]].idxmax()
their_correlation = likeness.loc["Saliency", more_alike]

# %% tags=["check"]
pair = likeness.loc["Saliency", ["Gradient norm", "InputXGradient"]]
check_choice(
    more_alike,
    pair.idxmax(),
    {pair.idxmin(): "Which two have no sign, and do not look at the word?"},
    name="more_alike",
)
check_number(
    their_correlation,
    pair.max(),
    {"that is the other pair.": pair.min()},
    "Read it from likeness.loc.",
    name="their_correlation",
)
