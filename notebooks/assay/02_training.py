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

# %% [markdown]
# # Assay, stage 2 of 5: what do the models themselves say when a text is altered?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb) · the row: [README](README.md)
#
# An explanation is about a model. So before any explainer is asked, the model is: about each text, and about the same text altered. Its answers are the truth.

# %% [markdown]
# ## You will see
#
# - six small models, each trained twice, and what they have learnt;
# - which planted rules a model follows, and which cues decide: the others are no truth;
# - how far two trainings of one model disagree about the same words.
#
# You need [01](01_data_generation.ipynb).
#
# | in (from 01) | out (in this stage's folder) | holds |
# |---|---|---|
# | `train`, `corpus`, `planted` (`.parquet`) | `models/` | the trained weights |
# | `items`, `altered`, `forms` (`.parquet`) | `truths.parquet` | each item with the model's own answer for each word |
# | | `accuracy`, `rules`, `told`, `two_trainings` (`.csv`), two figures | what was learnt, and what is known |

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
from lib.models.language_model import LMConfig, build_lm, build_vocabulary, save_lm
from lib.models.probe import load_probe, save_probe
from lib.models.shortcuts import ids_in_use
from lib.models.text_model import encode_words
from lib.models.weights import load_tokenizer
from lib.plots import COLOURS, STYLE
from lib.studies.assay import answers, models
from lib.training.classifier import Settings
from lib.training.language_model import LMSettings, fit_lm, pieces
from lib.training.probe import ProbeSettings, fit_probe

# %% [markdown]
# ## Settings
#
# The models are small, so that the whole row runs in minutes: the lowest layers of the packaged encoder, one attention layer, and an LSTM. `params/assay/hub.yaml` names a whole encoder and a published language model in their place.

# %% tags=["parameters"]
scale = "small"  # which settings: small or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
encoder = "all-MiniLM-L6-v2"  # the pre-trained encoder: the packaged one, a folder, or a hub id
encoder_revision = ""  # the commit of a hub id
n_layers = 2  # of the encoder, the lowest
n_seeds = 2  # trainings of each model
epochs = {
    "gender": 2,
    "planted": 4,
    "planted-ola": 20,
    "reviews": 3,
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
lm_epochs = 1  # passes of the LSTM over its corpus
lm_lr = 0.01  # its highest learning rate
lm_width = 64  # size of its embeddings and states
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
tables = {
    name: load_parquet(stage.input("01_data_generation", f"{name}.parquet"))
    for name in ("items", "altered", "forms", "train", "corpus", "planted")
}
items, train = tables["items"], tables["train"]
print({name: len(table) for name, table in tables.items()})

# %% [markdown]
# ## 1 · One answer by hand
#
# Every model of this row answers with one of two classes. Say it gives the long review of stage 1 a probability of .55 for *good*, and the short one .18. Probabilities are squeezed at their ends, so we take log-odds:
#
# $$f(\text{long}) = \log\tfrac{.55}{.45} = 0.20, \qquad f(\text{short}) = \log\tfrac{.18}{.82} = -1.52$$
#
# **Stop and guess.** Another model gives .9982 and .99. Did the removed words do more, or less? In log-odds the change is 1.72 again.

# %%
p = np.array([[0.55, 0.18], [0.9982, 0.99]])
by_hand = np.log(p / (1 - p))
change = by_hand[:, 0] - by_hand[:, 1]
assert np.allclose(change, 1.72, atol=0.02)
show_source(models.log_odds)
pd.DataFrame(
    {"f(long)": by_hand[:, 0], "f(short)": by_hand[:, 1], "change": change}
).round(2)

# %% [markdown]
# The two changes as steps on the same axis:

# %%
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
    for y, (after, before) in enumerate(by_hand):
        ax.annotate(
            "", (after, y), (before, y), arrowprops={"arrowstyle": "->", "lw": 2}
        )
    ax.set(
        xlim=(-2, 7),
        ylim=(-0.5, 1.5),
        yticks=[0, 1],
        yticklabels=["model 1", "model 2"],
        xlabel="log-odds of good",
        title="The same step, at another place",
    )
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
# Each is trained twice, with another start and another order of the texts.

# %%
show_source(models.train)
kind_of = {"pronoun": "pronoun", "planted-ola": "one layer"}
classes_of = {"gender": ["F", "M"], "pronoun": ["female", "male"]}
tokenizer = load_tokenizer(encoder, encoder_revision)


def recipe_of(name, number):
    """All that determines the untrained model."""
    kind, ids = kind_of.get(name, "classifier"), []
    if kind == "one layer":
        texts = train.loc[train["model"] == "planted", "sentence"].map(list)
        ids = ids_in_use(
            encode_words(tokenizer, list(texts), tokenizer.model_max_length)
        )
    return {
        "kind": kind,
        "encoder": encoder,
        "revision": encoder_revision,
        "n_layers": n_layers,
        "classes": classes_of.get(name, ["0", "1"]),
        "seed": seed_for(name, number, seed),
        "ids": ids,
    }


# %% [markdown]
# The run. A tenth of the texts of each model is kept for the accuracy.


# %%
def trained(name, number):
    """A model, trained now; its weights are kept in this stage's folder."""
    recipe, learnt = recipe_of(name, number), name.partition("-")[0]
    rows = train[train["model"] == learnt]
    size = 64 if recipe["kind"] == "one layer" else batch_size
    settings = Settings(epochs[name], lr[recipe["kind"]], size)
    model, parameters, accuracy = models.train(recipe, rows, settings)
    models.save_model(stage.path("models"), f"{name}-{number}", recipe, parameters)
    return model, {"model": name, "training": number, "accuracy": accuracy}


trainings = {
    (name, number): trained(name, number)
    for name in progress(list(epochs), "models")
    for number in range(n_seeds)
}

# %% [markdown]
# The language model learns to predict words, and a probe reads the number of the next verb from its states, which no longer move.


# %%
def trained_probe(number):
    """A probe of a language model: an LSTM that is trained now, or a published one."""
    path, start = (
        stage.path(f"models/number-{number}.safetensors"),
        seed_for("lm", number, seed),
    )
    if language_model:
        lm, words = load_hf_lm(language_model, language_model_revision)
        save_hf_lm(language_model, language_model_revision, path.with_suffix(".json"))
    else:
        texts = [list(words) for words in tables["corpus"]["sentence"]]
        asked = pd.concat([items, tables["altered"]])["sentence"]
        words = build_vocabulary(texts, 0, {word for text in asked for word in text})
        lm = build_lm(LMConfig("LSTM", 1, lm_width, lm_width), len(words), start)
        read = pieces(texts, words, 64)
        fit_lm(
            lm, read, read[:100], words, LMSettings(lm_epochs, lm_lr, 384, 64), start
        )
        save_lm(lm, words, path)
    return fitted(lm, words, number, path)


def fitted(lm, words, number, path):
    """The probe, and its accuracy on sentences that it did not learn from."""
    rows = train[train["model"] == "number"].rename(columns={"target": "tag"})
    is_kept = rows["sentence_idx"] % 10 == 0
    rows = rows.assign(prefix=rows["sentence"].map(" ".join))
    rows["split"] = np.where(is_kept, "valid", "train")
    plan = ProbeSettings(probe_epochs, 0.003, 32)
    probe, curve = fit_probe(lm, words, ("singular", "plural"), rows, plan, number)
    save_probe(probe, layer := stage.path(f"models/number-{number}-probe.safetensors"))
    best = curve["validation_accuracy"][curve["validation_loss"].idxmin()]
    about = {"model": "number", "training": number, "accuracy": best}
    return load_probe(path, layer, ("singular", "plural")), about


trainings |= {("number", number): trained_probe(number) for number in range(n_seeds)}

# %% [markdown]
# How well they do, on texts that they have not learnt from:

# %% tags=["nbval-ignore-output"]
stage.table("accuracy", pd.DataFrame([about for _, about in trainings.values()]))

# %% [markdown]
# *Reading it.* Half is chance. A model near chance has learnt nothing; what explainers say of it is still scored, for the truth is what the model does, be it clever or not. But a planted word is only a truth where the model uses it.
#
# ## 3 · Which planted rules does a model follow?
#
# A rule counts as followed where the model gives the right label to at least nine of ten new texts.

# %% tags=["nbval-ignore-output"]
rules = pd.concat(
    [
        answers.rules_followed(model, tables["planted"]).assign(
            model=name, training=number
        )
        for (name, number), (model, _) in trainings.items()
        if name.startswith("planted")
    ],
    ignore_index=True,
)
stage.table("rules", rules)

# %% [markdown]
# *Reading it.* A single attention layer has no positions: *tulip ... radar* and *radar ... tulip* are one and the same to it, so it must be at chance with *order*. A row that is not followed is left out of the truth, and named.
#
# ## 4 · The truth of every item
#
# Now each model is asked about its items and their altered texts. Nothing is explained yet.

# %%
show_source(answers.true_answers)

# %% [markdown]
# By hand for *cue*: a line with log-odds 1.0 for *singular*. With the cue in the plural the model says -2.0, with the attractor in the plural still 0.5. Then the cue decides. Had the attractor turned the sign, too, the line would be no truth.

# %%
both = ["cue exchanged", "attractor exchanged"]
assert answers.is_verified(1.0, both, np.array([-2.0, 0.5]))
assert not answers.is_verified(1.0, both, np.array([-2.0, -0.5]))
truths = []
for (name, number), (model, _) in trainings.items():
    of_model = rules[(rules["model"] == name) & (rules["training"] == number)]
    followed = of_model.loc[of_model["is_followed"], "rule"].tolist()
    asked = items[items["model"] == name].reset_index(drop=True)
    told = answers.true_answers(
        model, asked, tables["altered"], tables["forms"], followed
    )
    truths.append(told.assign(training=number))
truths = pd.concat(truths, ignore_index=True)

# %% [markdown]
# How many items tell something, and how large the changes are:

# %% tags=["nbval-ignore-output"]
truths["size"] = [np.nanmean(np.abs(key)) for key in truths["key"]]
told = truths.groupby(["truth", "model", "training"], sort=False, as_index=False).agg(
    items=("tells", "size"), that_tell=("tells", "sum"), mean_size=("size", "mean")
)
stage.table("told", told)

# %% [markdown]
# *Reading it.* `mean_size` is in log-odds where the truth is about the model (*swap*, *noun*), and a share of marked words elsewhere. Cues that are not verified are what other studies call *plausible*: people find them right, and the model need not.
#
# ## 5 · Is the truth that of one model alone?
#
# Two trainings of one model give the same labels, mostly. Do they use the same words? If not, an explanation of the one must not fit the other.

# %% tags=["nbval-ignore-output"]
wide = truths[truths["truth"].isin(["swap", "noun", "edit"])]
long = pd.concat(
    pd.DataFrame(
        {
            "truth": row.truth,
            "training": row.training,
            "item_id": row.item_id,
            "at": range(len(row.key)) if row.truth != "edit" else [-1],
            "d": row.key if row.truth != "edit" else [row.change],
        }
    )
    for row in wide.itertuples()
).dropna()
pairs = long.pivot(index=["truth", "item_id", "at"], columns="training", values="d")
pairs = pairs.iloc[:, :2].set_axis(["first", "second"], axis=1).dropna()
agreement = pairs.groupby("truth", sort=False).apply(
    lambda part: pd.Series(
        {"n": len(part), "rho": part["first"].corr(part["second"], method="spearman")}
    )
)
stage.table("two_trainings", agreement.reset_index())

# %% [markdown]
# The same as a picture: each mark is a word, or an edit.

# %%
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(4.6, 4), layout="constrained")
    for colour, marker, (truth, part) in zip(COLOURS, "os^", pairs.groupby("truth")):
        ax.plot(
            part["first"], part["second"], marker, color=colour, alpha=0.7, label=truth
        )
    ax.axline((0, 0), slope=1, color="0.5", linewidth=1)
    ax.set(xlabel="change in the first training", ylabel="change in the second")
    ax.legend()
    ax.set_title("Two trainings, the same words")
stage.figure("two_trainings", figure)
plt.show()
_ = stage.table("two_trainings_points", pairs.reset_index())

# %% [markdown]
# *Reading it.* On the line both trainings agree. Two encoders that begin at the same pre-trained weights may do so more than others; that is why five trainings and a second family of models belong to a verdict.
#
# ## 6 · Controls
#
# Three things are known in advance. The values of swapped words sum to the change from one form of the sentence to the other. A rule without positions is at chance. And a model that is read back answers as before.

# %%
swaps = truths[(truths["truth"] == "swap") & (truths["training"] == 0)]
for row in swaps.itertuples():
    others = tables["forms"].query(
        "sentence_idx == @row.sentence_idx and target != @row.target"
    )
    other = models.log_odds(
        trainings["gender", 0][0], others["sentence"], [row.target]
    )[0]
    assert np.isclose(np.nansum(row.key), row.f - other, atol=1e-3), (
        f"the values of {row.item_id} do not sum to its change: was another model read?"
    )
blind = rules.query("model == 'planted-ola' and rule == 'order'")
assert not blind["is_followed"].any(), (
    "one layer without positions cannot know an order"
)
folder = stage.folder / "models"
again = models.read_model(folder / "reviews-0.json", folder / "reviews-0.safetensors")
edits = truths.query("model == 'reviews' and training == 0")
assert np.allclose(
    models.log_odds(again, edits["sentence"], edits["target"]), edits["f"]
)
print(
    f"{len(swaps)} sums, {len(blind)} models without positions, and a model read back"
)

# %% [markdown]
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
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [03_attribution](03_attribution.ipynb) asks the explainers about the texts, and shows them neither the truths nor the altered texts.
