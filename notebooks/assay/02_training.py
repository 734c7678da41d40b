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
# # Assay, stage 2 of 5: what do the models themselves say when a text is altered?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb) · the row: [README](README.md)
#
# An explanation is about a model. So before any explainer is asked, the model is: about each text, and about the same text altered. Its answers are the truth.
#
# ## You will see
#
# - six small models, each trained twice, and what they have learnt;
# - which planted rules a model follows, and which cues decide: the others are no truth;
# - what padding alone makes a model say, and how far two trainings disagree about the same words.
#
# **You can then** turn probabilities into log-odds, and tell a verified cue from a plausible one. **You need**
# [stage 1](01_data_generation.ipynb). **Time:** 10 minutes to read, 2 minutes to run, 15 minutes for the exercises.
#
# | in (from 01) | out (in this stage's folder) | holds |
# |---|---|---|
# | `train`, `corpus`, `planted` (`.parquet`) | `models/` | the trained weights |
# | `items`, `altered`, `forms` (`.parquet`) | `truths.parquet` | each item with the model's own answer for each word |
# | | `accuracy`, `rules`, `told`, `padding`, `two_trainings` (`.csv`), two figures | what was learnt, and what is known |
# | | `asked.csv` | the texts that a submission to the board answers |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import load_parquet, save_parquet
from lib.core.notebooks import show_source
from lib.core.progress import progress
from lib.core.seeds import seed_for, set_up
from lib.core.stage import open_stage
from lib.models.hf_lm import load_hf_lm, save_hf_lm
from lib.models.language_model import save_lm
from lib.models.probe import load_probe, save_probe
from lib.studies.assay import answers, models
from lib.studies.assay import number_model as number
from lib.studies.assay.figures import plot_steps, plot_two_trainings
from lib.studies.assay.truths import items_to_answer
from lib.training.classifier import Settings

# %% [markdown]
# ## Settings
#
# The models are small, so that the whole row runs in minutes: the lowest layers of the packaged encoder, one attention layer, and an LSTM. `params/assay/hub.yaml` names a whole encoder and a published language model in their place.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
encoder = "all-MiniLM-L6-v2"  # the pre-trained encoder: the packaged one, a folder, or a hub id
encoder_revision = ""  # the commit of a hub id
n_layers = 2  # of the encoder, the lowest
n_seeds = 2  # trainings of each model
epochs = {
    "gender": 2,
    "planted": 4,
    "planted-ola": 40,
    "reviews": 4,
    "pronoun": 3,
}  # passes over the texts
lr = {
    "classifier": 0.0005,
    "pronoun": 0.0005,
    "one layer": 0.01,
}  # highest learning rate, by kind of model
batch_size = 16  # texts per step
language_model = ""  # a published causal model, folder or hub id; empty: an LSTM that is trained here
language_model_revision = ""  # the commit of a hub id
lm_epochs = 4  # passes of the LSTM over its corpus
lm_lr = 0.01  # its highest learning rate
lm_width = 64  # size of its embeddings and states
lm_batch = 96  # words in a step of the LSTM
probe_epochs = 4  # passes of a probe over its examples

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $f(x)$ | log-odds of the item's class, $\log p(c \mid x) - \log p(\bar c \mid x)$ | `f` |
# | $x'$ | the text altered: words removed, swapped or exchanged | `altered` |
# | $d$ | what the altered words did, $f(x) - f(x')$ | `change`, `key` |

# %%
stage = open_stage("assay", scale, "02_training")
set_up(seed, n_threads)
names = ("items", "altered", "forms", "train", "corpus", "planted")
tables = {
    name: load_parquet(stage.input("01_data_generation", f"{name}.parquet"))
    for name in names
}
items, train = tables["items"], tables["train"]
print({name: len(table) for name, table in tables.items()})

# %% [markdown] tags=["slide"]
# ## 1 · One answer by hand
#
# Every model of this row answers with one of two classes. Say it gives the long review of stage 1 a probability of .55 for *good*, and the short one .18. Probabilities are squeezed at their ends, so we take log-odds:
#
# $$f(\text{long}) = \log\tfrac{.55}{.45} = 0.20, \qquad f(\text{short}) = \log\tfrac{.18}{.82} = -1.52$$
#
# **Stop and guess.** Another model gives .9982 and .99. Did the removed words do more, or less? In log-odds the change is 1.72 again: the two arrows have one length.

# %% tags=["slide"]
p = np.array([[0.55, 0.18], [0.9982, 0.99]])
by_hand = np.log(p / (1 - p))
assert np.allclose(by_hand[:, 0] - by_hand[:, 1], 1.72, atol=0.02)
figure = plot_steps(by_hand, "The removed words moved both models equally far")
stage.figure("by_hand", figure)
plt.show()

# %% [markdown]
# ## 2 · Training
#
# | model | task | asked about |
# |---|---|---|
# | gender | was this sentence written about women or about men? | mask, swap |
# | planted, planted-ola | the label that the planted words decide | planted |
# | reviews | good or bad? | edit |
# | pronoun | is the masked pronoun *she* or *he*? | noun |
# | number | is the next verb singular or plural? | cue |
#
# Each is trained twice, with another start and another order of the texts. A tenth of the texts is kept for the accuracy.

# %%
show_source(models.train)
kinds = {"pronoun": "pronoun", "planted-ola": "one layer"}
classes = {"gender": ["F", "M"], "pronoun": ["female", "male"]}


def trained(name, training):
    """A model, trained now; its weights are kept in this stage's folder."""
    rows = train[train["model"] == name.partition("-")[0]]
    recipe = {
        "kind": kinds.get(name, "classifier"),
        "encoder": encoder,
        "revision": encoder_revision,
        "n_layers": n_layers,
        "classes": classes.get(name, ["0", "1"]),
        "seed": seed_for(name, training, seed),
    }
    recipe["ids"] = models.ids_to_learn(recipe, rows["sentence"])
    size = 4 * batch_size if recipe["kind"] == "one layer" else batch_size
    settings = Settings(epochs[name], lr[recipe["kind"]], size)
    model, parameters, accuracy = models.train(recipe, rows, settings)
    models.save_model(stage.path("models"), f"{name}-{training}", recipe, parameters)
    return model, accuracy


# %% [markdown]
# For *cue* a language model learns to predict words, and a probe reads the number of the next verb from its states, which no longer move.


# %%
def trained_probe(training):
    """A probe of a language model: an LSTM that is trained now, or a published one."""
    path = stage.path(f"models/number-{training}.safetensors")
    if language_model:
        lm, words = load_hf_lm(language_model, language_model_revision)
        save_hf_lm(language_model, language_model_revision, path.with_suffix(".json"))
    else:
        texts = [list(words) for words in tables["corpus"]["sentence"]]
        cues = items[items["model"] == "number"]
        altered = tables["altered"].merge(cues[["item_id"]])
        asked = pd.concat([cues, altered])["sentence"]
        plan = number.LanguagePlan(lm_epochs, lm_lr, lm_width, lm_batch)
        start = seed_for("lm", training, seed)
        lm, words = number.fit_language_model(texts, asked, plan, start)
        save_lm(lm, words, path)
    rows = train[train["model"] == "number"]
    fitted = number.fit_number_probe(lm, words, rows, probe_epochs, training)
    save_probe(
        fitted[0], layer := path.with_name(f"number-{training}-probe.safetensors")
    )
    return load_probe(path, layer, number.CLASSES), fitted[1]


# %% [markdown]
# The run, and how well the models do on texts that they have not learnt from:

# %% tags=["nbval-ignore-output"]
trainings, accuracy = {}, []
for name in progress([*epochs, "number"], "models"):
    for training in range(n_seeds):
        made = trained_probe(training) if name == "number" else trained(name, training)
        trainings[name, training] = made[0]
        accuracy.append({"model": name, "training": training, "accuracy": made[1]})
stage.table("accuracy", pd.DataFrame(accuracy))

# %% [markdown]
# *Reading it.* Half is chance. A model near chance has learnt nothing; what explainers say of it is still scored, for the truth is what the model does, be it clever or not. But a planted word is only a truth where the model uses it.
#
# ## 3 · Which planted rules does a model follow?
#
# A rule counts as followed where the model gives the right label to at least nine of ten new texts. Others are left out.

# %% tags=["nbval-ignore-output"]
rules = [
    answers.rules_followed(model, tables["planted"]).assign(model=name, training=i)
    for (name, i), model in trainings.items()
    if name.startswith("planted")
]
rules = pd.concat(rules, ignore_index=True)
stage.table("rules", rules)

# %% [markdown]
# *Reading it.* A single attention layer has no positions: *tulip ... radar* and *radar ... tulip* are one and the same to it, so it must be at chance with *order*. It does not learn *and* either, nor with three times the epochs, so that rule is a truth of the other model only.
#
# ## 4 · The truth of every item
#
# Now each model is asked about its items and their altered texts. Nothing is explained yet. By hand for *cue*: a line has log-odds 1.0 for *singular*. With the cue in the plural the model says -2.0, with the attractor in the plural still 0.5. Then the cue decides. Had the attractor turned the sign, too, or moved the answer as far, the line would be no truth.

# %% tags=["nbval-ignore-output"]
both = ["cue exchanged", "attractor exchanged"]
assert answers.is_verified(1.0, both, np.array([-2.0, 0.5]))
assert not answers.is_verified(1.0, both, np.array([-2.0, -0.5]))
truths = []
for (name, training), model in trainings.items():
    of_model = rules[(rules["model"] == name) & (rules["training"] == training)]
    followed = of_model.loc[of_model["is_followed"], "rule"].tolist()
    asked = items[items["model"] == name].reset_index(drop=True)
    about = (asked, tables["altered"], tables["forms"], followed)
    truths.append(answers.true_answers(model, *about).assign(training=training))
truths = pd.concat(truths, ignore_index=True)
truths["size"] = [np.nanmean(np.abs(key)) for key in truths["key"]]
truths["size"] = truths["change"].abs().fillna(truths["size"])
tested = truths[truths["part"] == "test"]
told = tested.groupby(["truth", "model", "training"], sort=False, as_index=False).agg(
    items=("tells", "size"), that_tell=("tells", "sum"), mean_size=("size", "mean")
)
stage.table("told", told)

# %% [markdown]
# *Reading it.* `mean_size` is in log-odds where the truth is about the model: of a word (*swap*, *noun*) or of a whole *edit*. Elsewhere it is the share of marked words. Cues that are not verified are what other studies call *plausible*: people find them right, and the model need not.
#
# ### What does padding say?
#
# Many explainers compare a text with padding. *Swap* compares it with its other form. Where does padding stand between the two, on the model's own scale? At 0 it answers as the other form does, at 1 as the text itself.

# %% tags=["nbval-ignore-output"]
swaps = truths[truths["truth"] == "swap"]
between = [
    answers.padding_position(trainings["gender", row.training], row, tables["forms"])
    for row in swaps.itertuples()
]
padding = swaps.assign(position=between, written_about=swaps["target"])
padding["written_about"] = padding["written_about"].map({0: "women", 1: "men"})
padding = padding.groupby(["training", "written_about"])["position"].mean()
stage.table("padding", padding.reset_index())

# %% [markdown] tags=["slide"]
# *Reading it.* A model of two classes needs to know only one of them: it can look for women's words, and say *men* where there are none. Then padding already says *men*, an explainer that pads finds nothing to explain there, and the swap does.
#
# ## 5 · Is the truth that of one model alone?
#
# Two trainings of one model give the same labels, mostly. Do they use the same words? If not, an explanation of one does not fit the other.

# %% tags=["nbval-ignore-output", "slide"]
show_source(answers.two_trainings)
pairs = answers.two_trainings(tested[tested["truth"].isin(["swap", "noun", "edit"])])
figure, plotted = plot_two_trainings(
    pairs, "What a word, or an edit, did to two trainings"
)
stage.figure("two_trainings", figure)
plt.show()
stage.table("two_trainings", plotted, digits=2)

# %% [markdown]
# *Reading it.* On the line both trainings agree. Two encoders that begin at the same pre-trained weights may do so more than others; that is why five trainings and a second family of models belong to a verdict.
#
# ## 6 · Controls
#
# Three things are known in advance. The values of swapped words sum to the change from one form of the sentence to the other. A model without positions is at chance with *order*. And a model that is read back answers as before.

# %%
for row in swaps.query("training == 0").itertuples():
    of_sentence = tables["forms"]["sentence_idx"] == row.sentence_idx
    other = tables["forms"][of_sentence & (tables["forms"]["target"] != row.target)]
    f = models.log_odds(trainings["gender", 0], other["sentence"], [row.target])[0]
    assert np.isclose(np.nansum(row.key), row.f - f, atol=1e-3), row.item_id
blind = rules.query("model == 'planted-ola' and rule == 'order'")
assert not blind["is_followed"].any(), "one layer without positions knows an order"
notes = [
    stage.folder / "models" / f"reviews-0.{end}" for end in ("json", "safetensors")
]
asked = truths.query("model == 'reviews' and training == 0")
f = models.log_odds(models.read_model(*notes), asked["sentence"], asked["target"])
assert np.allclose(f, asked["f"]), "a model that is read back answers otherwise"
print(
    f"sums of {len(swaps) // n_seeds} swaps, {len(blind)} blind models, one read back"
)

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Small models, trained for seconds.** They show how a truth is made, and not how a large model reads.
# - **Two trainings share their pre-trained weights.** They are closer to each other than two models that began apart.
# - **A swapped sentence can be odd**, with *she* and *his* for one person. The model answers it, though no person would write it.
# - **Shapley values share what words do together.** Two words that only count together get a half each, which is a convention.
# - **An exchanged number can break another agreement** in the line. We ask only lines in which no verb stands between.
#
# ## Try it
#
# - Set `epochs` of *reviews* to 1. Does the truth of *edit* get smaller, or only noisier?
# - Which planted rule needs the most texts? Halve `n_planted` in stage 1.
# - Set `n_layers = 1`. Which rule is no longer followed, and why?

# %%
save_parquet(truths.drop(columns="size"), stage.path("truths.parquet"))
_ = stage.table("asked", items_to_answer(truths))
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [03_attribution](03_attribution.ipynb) asks the explainers about the texts, and shows them neither the truths nor the altered texts.

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
