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
# # Assay, stage 2 of 5: how do models answer when a text is altered?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb) · this study: [README](README.md)
#
# An explanation is about a model. So before we use any explainer, we train the models and compute their scores for each
# text and for its altered versions. These scores give the right answers for the truths about models.
#
# ## What we found
#
# At run size `cpu`, with five training runs of each model; the cells below show `small`.
#
# - **A text without any word can look like one of the two classes.** Our model *gender* decides whether a text is about a woman or
#   a man. In all five training runs it scores a blank text more like a text about a man.
#   [See the table](../../outputs/reference/assay/cpu/02_training/padding.csv)
# - **Two training runs of one model agree on the effects of swapped words, and less on those of edits.** The rank
#   correlations of the effects are
#   .83<!-- assay/cpu/02_training/two_trainings[truth=swap].rank_correlation --> and .60<!-- assay/cpu/02_training/two_trainings[truth=edit].rank_correlation -->. [See the figure](../../outputs/reference/assay/cpu/02_training/two_trainings.png)
# - **Not every model learns every planted rule.** A network with one attention layer ignores the order of words, and
#   learns two of the four rules. [See the table](../../outputs/reference/assay/cpu/02_training/rules.csv)
#
# ## You will see
#
# - seven small models, each trained twice from different random starts;
# - which planted rules each model follows, and for which sentences the predicted verb depends on the right noun;
# - how a model scores a text in which every word is blank;
# - whether two training runs of one model use the same words.
#
# **You can then** turn probabilities into log-odds, and test whether a predicted verb depends on the right noun. **You
# need** [stage 1](01_data_generation.ipynb). **Time:** 10 minutes to read, 2 minutes to run, [15 minutes for the
# exercises](../../docs/course/exercises/assay.md#02-training).
#
# | in (from 01) | out (in this stage's folder) | holds |
# |---|---|---|
# | `train`, `corpus`, `planted` (`.parquet`) | `models/` | the trained weights |
# | `items`, `altered`, `forms` (`.parquet`) | `truths`, `second_models` (`.parquet`) | the items, with the right answer for each word |
# | | `accuracy`, `rules`, `told`, `padding`, `two_trainings` (`.csv`), two figures | summaries |
# | | `asked.csv` | the items as text, for [explainers from outside](../../CONTRIBUTING.md#a-submission-to-the-board) |
#
# Every word that is not explained here is in the [glossary](../../docs/glossary.md).

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
from lib.studies.assay import answers, models, number_model
from lib.studies.assay.figures import MODEL_NAMES, SHORT_NAMES
from lib.studies.assay.stage_figures import plot_steps, plot_two_trainings
from lib.studies.assay.trainings import Trainings
from lib.studies.assay.truths import items_to_answer

# %% [markdown]
# ## Settings
#
# The models are small, so the whole study runs in minutes. They are the two lowest layers of an encoder that comes with
# this repository, a network with one attention layer, and a recurrent network (LSTM).

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
encoder = "all-MiniLM-L6-v2"  # pretrained: the packaged one, a folder, or a hub id
encoder_revision = ""  # the commit of a hub id
n_layers = 2  # of the encoder, the lowest
n_seeds = 2  # runs of each model, with other random starts
epochs = {
    "gender": 2,
    "planted": 4,
    "planted-ola": 40,
    "reviews": 4,
    "pronoun": 3,
}  # passes over the texts
lstm_epochs = {"gender": 8}  # tasks that an LSTM learns, too, and its passes
lr = {
    "classifier": 0.0005,
    "pronoun": 0.0005,
    "one layer": 0.01,
    "recurrent": 0.005,
}  # highest learning rate, by kind of model
batch_size = 16  # texts per step
language_model = ""  # a causal model, folder or hub id; empty: an LSTM trained here
language_model_revision = ""  # the commit of a hub id
lm_epochs = 4  # passes of the LSTM over its corpus
lm_lr = 0.01  # its highest learning rate
lm_width = 64  # size of its embeddings and states
lm_batch = 96  # words in a step of the LSTM
probe_epochs = 4  # passes of a probe over its examples
reuse_units = False  # read answers that are committed, and publish new ones

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $f(x)$ | log-odds of the item's class, $\log p(c \mid x) - \log p(\bar c \mid x)$ | `f` |
# | $x'$ | the altered text: words removed, swapped or exchanged | `altered` |
# | $d$ | by how much the altered words changed the log-odds, $f(x) - f(x')$ | `change` for an edit as a whole, `key` for a single word |

# %%
stage = open_stage("assay", scale, "02_training")
set_up(seed, n_threads)
study = Trainings(stage, Units("assay", scale, "02_training", reuse_units), globals())
items, altered = study.tables["items"], study.tables["altered"]
print(f"{len(items)} items, {len(altered)} altered texts")

# %% [markdown] tags=["slide"]
# ## 1 · One answer by hand
#
# Every model here has two classes. Say that it gives the long review of stage 1 a probability of .55 for *good*, and the
# short review .18. Near 0 and 1 a probability can hardly move, so we use log-odds, which are unbounded:
#
# $$f(\text{long}) = \log\tfrac{.55}{.45} = 0.20, \qquad f(\text{short}) = \log\tfrac{.18}{.82} = -1.52$$
#
# **Stop and guess.** Another model gives .9982 and .99. Did the removed words change its answer by more, or by less?

# %% tags=["slide"]
p = np.array([[0.55, 0.18], [0.9982, 0.99]])
by_hand = np.log(p / (1 - p))
assert np.allclose(by_hand[:, 0] - by_hand[:, 1], 1.72, atol=0.02)
figure = plot_steps(by_hand, "The removed words moved both models equally far")
stage.figure("by_hand", figure)
plt.show()

# %% [markdown]
# They changed both answers by the same amount: 1.72 log-odds. Each arrow leads from the score of the short text to that of
# the long one, and both arrows have the same length.
#
# ## 2 · Training
#
# | model | task | truths |
# |---|---|---|
# | gender | was this sentence written about a woman or about a man? | altered words (`mask`), swap |
# | planted | the label that the planted words decide | planted |
# | planted, one layer (`planted-ola`) | the same, by one attention layer | planted |
# | reviews | good or bad? | edit |
# | pronoun | is the masked pronoun *she* or *he*? | noun |
# | number | is the next verb singular or plural? | cue |
#
# Each model is trained twice, each time with a different random start and a different order of the texts. Each of the
# two is a *run* of the model. A tenth of the texts is set aside: it chooses the best pass, and measures the accuracy.

# %%
show_source(models.train)

# %% [markdown]
# The model for *cue* is made in two steps. First a language model learns to predict the next word. Then we freeze it. A
# *probe*, a small classifier, learns to read the number of the next verb from its hidden states.

# %%
show_source(number_model.fit_number_probe)

# %% [markdown]
# Now we train all models. How accurate is each on the texts that were set aside?

# %%
trainings = list(study.models())
accuracy = pd.DataFrame(trainings, columns=["model", "training"])
accuracy["accuracy"] = [study.accuracy(*one) for one in progress(trainings, "models")]

# %% [markdown]
# The accuracy of each run:

# %% tags=["nbval-ignore-output"]
accuracy = stage.table("accuracy", accuracy)
wide = accuracy.pivot(index="model", columns="training", values="accuracy")
columns = {"model": "model"} | {i: f"run {i + 1}" for i in range(n_seeds)}
show_table(wide.reset_index().replace(MODEL_NAMES), columns)

# %% [markdown] tags=["slide"]
# Half is chance. All models but *reviews*, measured on some twenty texts, are well above it. (*Pronoun* cannot be right everywhere: in some of its sentences *he* or *she* was
# drawn.) We could explain even a model near chance: an explanation is about
# what a model does, whether or not its predictions are correct. For planted words this is not enough. They are the
# right answer only if the model uses them.
#
# ## 3 · Which planted rules does a model use?
#
# We say that a model has learnt a rule if it gives the right label to at least nine of ten test texts. We leave out the
# other rules for this model.

# %%
show_source(answers.rules_followed)
planted = [one for one in trainings if one[0].startswith("planted")]
rules = pd.concat([study.rules(*one) for one in planted], ignore_index=True)

# %% [markdown]
# The share of right labels, for each rule:

# %% tags=["nbval-ignore-output", "slide"]
shown = stage.table("rules", rules)
keys = ["model", "training"]
shown = shown.pivot(index=keys, columns="rule", values="right").reset_index()
shown["training"] += 1
names = ["single", "and", "or", "order"]
shown[names] = shown[names].map("{:.3f}".format)
shown = shown.replace(MODEL_NAMES)
show_table(shown, {"model": "model", "training": "run"} | dict(zip(names, names)))

# %% [markdown] tags=["slide"]
# The encoder (*planted*) has learnt all four rules. The single attention layer (*planted, one layer*) has not learnt *order*,
# and it cannot: it has no positions, so *tulip ... radar* and *radar ... tulip* are the same text to it. It also misses
# *and*. For these two rules we explain the encoder only.
#
# ## 4 · The right answer for every item
#
# Now we compute each model's scores for its items and for their altered texts. Two truths need a definition.
#
# ![The words 'the author that the taxi drivers like', then an empty place for is or are. An arrow leads from the place to the cue, author, with which the verb agrees. A dashed arrow leads to the attractor, drivers, which would ask for are.](../../docs/schematics/cue_and_attractor.svg)
#
# **Cue.** Say that a beginning has log-odds of 1.0 for a singular verb. With the *cue* in the plural they are -2.0.
# With the *attractor* in its other number they are still .5. Then the verb depends on the cue, and the cue is *verified*. The
# cue is not verified if exchanging it keeps the sign, or if exchanging the attractor changes the sign or moves the log-odds as
# far. It may still be *plausible*: people would point at it, but the model does not depend on it.
#
# ![Four mixtures of two forms: They love their cat 0.1; She loves their cat 0.6; They love her cat 0.5; She loves her cat 0.9. Two ways lead from the first to the last: She loves first, or her first. The mean of each player's contributions is its Shapley value: She loves 0.45, her 0.35.](../../docs/schematics/shapley.svg)
#
# **Swap.** We swap words to the other form of their sentence, one after the other, in every order. The effect of a word
# is the change that it makes, averaged over the orders: its Shapley value. In the figure *She loves* adds .5 if it is
# swapped first and .4 if it is swapped second, so its effect is .45.

# %%
both = ["cue exchanged", "attractor exchanged"]
assert answers.is_verified(1.0, both, np.array([-2.0, 0.5]))
assert not answers.is_verified(1.0, both, np.array([-2.0, -0.5]))
truths = pd.concat([study.answers(*one) for one in trainings], ignore_index=True)
truths["size"] = [np.nanmean(np.abs(key)) for key in truths["key"]]
truths["size"] = truths["change"].abs().fillna(truths["size"])
tested = truths[truths["part"] == "test"]

# %% [markdown]
# How many items can be used, and how large are the effects?

# %% tags=["nbval-ignore-output"]
told = tested.groupby(["truth", "model", "training"], sort=False, as_index=False).agg(
    items=("tells", "size"), that_tell=("tells", "sum"), mean_size=("size", "mean")
)
told = stage.table("told", told, digits=2)
both = told[told["training"] == 0].merge(
    told[told["training"] == 1], on=["truth", "model", "items"]
)
columns = {"truth": "truth", "model": "model", "items": "items"}
for run, end in (("run 1", "_x"), ("run 2", "_y")):
    columns |= {f"that_tell{end}": f"usable, {run}"}
    columns |= {f"mean_size{end}": f"mean size, {run}"}
named = both.replace(MODEL_NAMES | {"mask": SHORT_NAMES["mask"]})
show_table(named, columns)

# %% [markdown]
# Nearly all items can be used. The exceptions are the two rules that the single attention layer has not learnt.
#
# The columns *mean size* show how large the right answer is on average. For *swap*, *noun* and *edit* it is an effect in
# log-odds. For the other truths the right answer only marks words, and the size is the mean of the marks without their
# signs. (A word without a mark counts as 0. Under *planted* the marks are shares.)
#
# ### How does a model score a blank text?
#
# Many explainers replace words by *padding*, the token that means *no word here*. *Swap* replaces them by the words of
# the other form. Do the two kinds of replacement agree? We *blank* a text: we replace all its words by padding. Then we
# compare the model's score for the blank text with two others. We report a position: 1 is the score of the text itself,
# and 0 is the score of its other form.

# %%
swaps = truths[truths["truth"] == "swap"]
padding = swaps.assign(position=swaps["padding"], written_about=swaps["target"])
padding["written_about"] = padding["written_about"].map({0: "women", 1: "men"})
padding = padding.groupby(["training", "written_about"])["position"].mean()

# %% [markdown]
# The mean position of the blank text:

# %% tags=["nbval-ignore-output"]
padding = stage.table("padding", padding.reset_index())
padding["training"] += 1
columns = {"written_about": "text about", "training": "run"}
show_table(padding, columns | {"position": "where padding stands"})

# %% [markdown] tags=["slide"]
# A text about men keeps its score when we blank it: its position is about 1. A blanked text about women gets the score
# of a text about men: its position is about 0. So this model predicts *men* for a text without any words.
#
# That may matter for explainers. An explainer that compares a text about men with padding sees no difference, so it has
# nothing to explain. Swapping the words does change the score.
#
# ## 5 · Do two runs of a model use the same words?
#
# Two runs of one model mostly predict the same labels. If they do not use the same words, an explanation of one run is
# wrong for the other. In the next figure each point is a word or an edit.

# %% tags=["slide"]
show_source(answers.two_trainings)
pairs = answers.two_trainings(tested[tested["truth"].isin(["swap", "noun", "edit"])])
figure, plotted = plot_two_trainings(pairs)
stage.figure("two_trainings", figure)
plt.show()

# %% [markdown]
# The same as numbers:

# %% tags=["nbval-ignore-output"]
plotted = stage.table("two_trainings", plotted, digits=2)
columns = {"truth": "truth", "n": "words or edits"}
columns |= {"rank_correlation": "rank correlation"}
show_table(plotted.replace(SHORT_NAMES), columns)

# %% [markdown] tags=["slide"]
# For swapped words (the truth *swap*) the two runs agree: the points rise together. For exchanged words (*noun*) they agree
# less. For one of these, far below the others, the runs even have different signs. Six edits are too few to tell.
#
# Both runs begin with the same pretrained weights, so other models may agree less than these.
#
# ## 6 · The same task, another kind of model
#
# Stage 4 asks whether explainers change their order more with the truth than with the model. Two runs of one encoder are
# too much alike for that. So an LSTM that reads forwards and backwards learns the same task from the same texts. It takes
# only the table of word vectors from the encoder.

# %%
second = [study.answers(*one) for one in study.second_models()]
second = pd.concat([truths.head(0), *second], ignore_index=True)
for name, run in study.second_models():
    named = MODEL_NAMES.get(name, name)
    print(f"{named}, run {run + 1}: accuracy {study.accuracy(name, run):.2f}")

# %% [markdown] tags=["slide"]
# ## 7 · Controls
#
# Three facts are known in advance. Shapley values sum to the whole change, so the effects of all swapped words sum to
# the difference between the scores of the two forms. A model without positions does not learn *order*. A model that is
# loaded from its file gives the same scores as before.

# %%
for row in swaps.query("training == 0").itertuples():
    change = row.f - row.other  # from the other form of the sentence to this one
    assert np.isclose(np.nansum(row.key), change, atol=1e-3), row.item_id
blind = rules.query("model == 'planted-ola' and rule == 'order'")
assert not blind["is_followed"].any(), "one layer without positions knows an order"
files = study.files("reviews", 0)
asked = truths.query("model == 'reviews' and training == 0")
if has_weights := all(file.is_file() for file in files):  # not with published answers
    f = models.log_odds(models.read_model(*files), asked["sentence"], asked["target"])
    # to 1e-4: a GPU, which may have answered, adds up in another order
    assert np.allclose(f, asked["f"], atol=1e-4), "read back, it answers otherwise"
n_sums = len(swaps) // n_seeds
print(f"checked: sums of effects of {n_sums} swapped texts, that {len(blind)} models")
print(f"without positions learn no order, {has_weights:d} model read from its file")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **The models are small and were trained for seconds.** They show how a right answer is made, and not how a large model
#   reads.
# - **Both runs begin with the same pretrained weights.** They are more alike than two models that were trained apart.
# - **A swapped sentence can be odd**, with *she* and *his* for one person. The model scores it, though nobody would write
#   it.
# - **Shapley values divide a joint effect equally.** If two words only work together, each gets half. That is a convention.
# - **Changing a noun's number can break another agreement.** We use only beginnings without a verb between the nouns.
#
# ## Try it
#
# - Set `epochs` of *reviews* to 1. Do the effects of the edits get smaller, or only noisier?
# - Which planted rule needs the most texts? Halve `n_planted` in stage 1.
# - Set `n_layers = 1`. Which rule is no longer learnt, and why?
#
# Exercises with checks: [page](../../docs/course/exercises/assay.md#02-training).

# %%
kept = truths.drop(columns=["size", "other"])
save_parquet(kept, stage.path("truths.parquet"))
save_parquet(second[kept.columns], stage.path("second_models.parquet"))
_ = stage.table("asked", items_to_answer(truths))
_ = stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [03_attribution](03_attribution.ipynb) runs the explainers on the items. It gives them neither the right answers nor the
# altered texts.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import check_choice, check_function, check_number
from lib.studies.assay import answers

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A model says .8 for *good* to a long review, and .5 to the short one. By how much did the removed words raise the answer, in log-odds (natural logarithm)?

# %% tags=["hole"]
change = ...

# %% tags=["solution"]
change = np.log(0.8 / 0.2) - np.log(0.5 / 0.5)

# %% tags=["check"]
p = np.array([0.8, 0.5])
log_odds = np.log(p / (1 - p))
check_number(
    change,
    log_odds[0] - log_odds[1],
    {
        "that is the change of the probability.": p[0] - p[1],
        "that is the change of log p; odds divide by 1 - p.": np.log(p[0] / p[1]),
        "long minus short, for the words were removed.": log_odds[1] - log_odds[0],
        "that is with base 10.": (log_odds[0] - log_odds[1]) / np.log(10),
    },
    "The log-odds of .5 are a number that you know.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# A *cue* is verified if the model's answer hangs on it, and not on the attractor: with the cue exchanged the log-odds change their sign; with the attractor exchanged they keep it; and exchanging the cue moves them further. Write the test for one line.


# %% tags=["hole"]
def is_verified(line, cue_exchanged, attractor_exchanged):
    """Three log-odds in, True or False out."""
    return ...


# %% tags=["solution"]
def is_verified(line, cue_exchanged, attractor_exchanged):
    """Three log-odds in, True or False out."""
    turned = line * cue_exchanged < 0 < line * attractor_exchanged
    return turned and abs(line - cue_exchanged) > abs(line - attractor_exchanged)


# %% tags=["check"]
def expected(line, cue, attractor):
    """By the library."""
    names = ["cue exchanged", "attractor exchanged"]
    return answers.is_verified(line, names, np.array([cue, attractor]))


check_function(
    is_verified,
    expected,
    {
        "The cue turns the sign, and the attractor does not.": [1.0, -2.0, 0.5],
        "Here the attractor turns the sign, too.": [1.0, -2.0, -0.5],
        "Here nothing turns the sign.": [1.0, 0.5, 0.8],
        "The sign is kept, but the attractor moves the answer further.": [
            1.0,
            -0.5,
            4.0,
        ],
        "A line may begin below zero.": [-1.0, 2.0, -0.5],
        "What counts is how far the answer moves.": [1.0, -0.5, 1.5],
        "As far is too far.": [1.0, -1.0, 3.0],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Predict
#
# One layer of attention without positions reads the words as a bag. Which of the four planted rules can it not learn, however long it is trained?
#
# - `"a"` single
# - `"b"` and
# - `"c"` or
# - `"d"` order

# %% tags=["hole"]
cannot_learn = ...  # "a", "b", "c" or "d"

# %% tags=["solution"]
cannot_learn = "d"

# %% tags=["check"]
seen = "Which words are there is all that it sees. Is that enough for this rule?"
check_choice(cannot_learn, "d", dict.fromkeys("abc", seen))
