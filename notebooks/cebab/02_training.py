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
# # CEBaB, stage 2 of 5: do classifiers learn the stars, and which values do they see in a text?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb)
#
# The models that will be explained predict how many stars a review gives. Beside them stand *aspect classifiers*, which say for a text
# whether food, service, ambiance and noise are praised, blamed or passed over: explainers that need these values must not be
# given what people said about a test text, only what can be predicted from it.

# %% [markdown]
# ## You will see
#
# - classifiers between a floor, which reads nothing, and a ceiling: in our worlds we know what the best possible reader would answer;
# - that words which training never saw cost accuracy, and how much;
# - what the explainers of stage 3 will be handed: answers, predicted aspects, vectors and a last layer.
#
# | in (from 01) | out |
# |---|---|
# | `texts.parquet`: texts with rating, aspects, split | `predictions.parquet`: per data set, model, seed and text the probabilities `p_1` ... `p_K` |
# | | `aspects.parquet`: predicted values of the four aspects |
# | | `vectors/<data set>-<model>-seed<k>.npz`: the vectors in front of the last layer, and that layer |
# | | `vectors/<data set>-without.npz`: vectors of encoders that have unlearnt a concept |
# | | `models/`: the encoders' tensors |
# | | `accuracy`, `aspect_accuracy`, `unlearnt`, `controls` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from lib.core.files import save_parquet
from lib.core.notebooks import show_source
from lib.core.progress import progress
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.models.weights import load_classifier
from lib.plots import COLOURS, STYLE
from lib.stats import estimates
from lib.studies.cebab import encoders, reviewers, reviews
from lib.studies.cebab.questions import fit_head
from lib.studies.cebab.reading import Reading
from lib.studies.cebab.trainings import Trainings
from lib.studies.cebab.upper_layers import layer_stack
from lib.studies.cebab.worlds import World

# %% [markdown]
# ## Settings
#
# `models` are kinds: `frozen encoder` learns a linear head on the mean over the encoder's tokens, `encoder` learns everything above its `n_frozen` lowest layers, and
# `BiLSTM` is trained from scratch over the encoder's word vectors. With `models = []` none is trained, for a model of yours that joins in stage 3
# (the aspect classifiers and the floors are still fitted). `train_on` chooses the train set of stage 1. The paper uses
# `exclusive`. At small scale it is `observational`, the originals alone: with edits among them, part of the confounding that we want to
# watch would already be broken.
#
# `encoder` is any encoder of the Hugging Face hub, or a decoder such as GPT-2, which is read at its last token (`masked_encoder` then names a masked
# language model for section 4): `python -m lib.core.runner cebab --scale paper -p encoder openai-community/gpt2 -p encoder_revision ... -p masked_encoder ...`.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # who the reviewers are and what they write
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
n_classes = 5  # stars as 5, 3 or 2 classes, K
train_on = "observational"  # the train set: inclusive, exclusive or observational
encoder = "all-MiniLM-L6-v2"  # the pre-trained language model: the packaged one, a folder, or a hub id
encoder_revision = ""  # the commit of a hub id
masked_encoder = ""  # the masked language model of section 4, where the encoder is none (GPT-2); empty: the encoder itself
masked_encoder_revision = ""  # the commit of its hub id
models = ["encoder", "BiLSTM"]  # kinds of models: frozen encoder, encoder, BiLSTM
n_seeds = 1  # trainings of each model
n_frozen = 4  # lowest layers of the encoder that stay as they are, with its word table
kept_epoch = "best"  # best (the lowest loss on dev) or last (a fixed number of epochs, as in the paper)
epochs = {"encoder": 3, "BiLSTM": 8}  # passes over the train texts
lr = {
    "encoder": 0.0002,
    "BiLSTM": 0.005,
    "masked LM": 0.001,
    "unlearning": 0.0005,
}  # highest learning rate
batch_size = {"encoder": 16, "BiLSTM": 16}  # texts per step
masked_lm = {
    "layers": 1,
    "epochs": 1,
    "batch_tokens": 512,
}  # the masked LM from which concepts are unlearnt
unlearning = {"epochs": 1, "batch_tokens": 512}  # the same, once for each aspect
adversary = 0.5  # how strongly the adversary's gradient is reversed, lambda

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $\mathcal{N}_\phi(x)$ | a model's answer to a text: probabilities of $K$ classes | `p_1` ... `p_5` |
# | $\phi(x)$ | the vector that its last, linear layer reads | `vectors` |
# | $f(x)$ | the stars that readers gave | `rating` |

# %%
stage = open_stage("cebab", scale, "02_training")
set_up(seed, n_threads)
units = Units("cebab", scale, "02_training")  # each is claimed while it is made
study = Trainings(stage, units, globals())
texts, data = study.texts, study.data
pd.DataFrame(
    {
        name: {split: len(rows) for split, rows in parts.items()}
        for name, parts in data.items()
    }
)

# %% [markdown]
# The originals of dev choose the epoch, where there are epochs. All texts of test are predicted, originals and edits: stage 3 needs both
# sides of each pair.
#
# ## 1 · The best possible reader, by hand
#
# In a world of our own we know what could be predicted at all. Take a review that praises the food, complains about the service, and
# says nothing else. In stars: 3.1, plus 0.9, minus 0.9. The reviewer's mood moves this by 0.4 stars up or down, so three stars are
# most likely, and 2 and 4 are not out of the question. By the normal distribution,
# $P(3) = \Phi\big(\tfrac{3.5 - 3.1}{0.4}\big) - \Phi\big(\tfrac{2.5 - 3.1}{0.4}\big) = .841 - .067 = .774$.

# %%
example = pd.DataFrame(
    {
        "food": ["Positive"],
        "service": ["Negative"],
        "ambiance": ["unknown"],
        "noise": ["unknown"],
    }
)
answer = World(0.0).rating_probabilities(example)[0]
assert np.isclose(answer[2], 0.7745, atol=0.001) and np.isclose(answer.sum(), 1)
pd.DataFrame([answer], columns=[f"p_{k}" for k in range(1, 6)]).round(3)

# %% [markdown]
# So even a reader who knows the world, and reads every word right, is wrong in more than one case out of five. That is the ceiling in the table
# below.
#
# ## 2 · What the aspect classifiers see
#
# One classifier per aspect: a logistic regression on TF-IDF and on the frozen encoder's vectors, fitted on the labels of the
# train texts. The encoder reads each different text once.

# %%
show_source(reviewers.predict_aspects)

# %% [markdown]
# `share` is the floor: what one gets by always naming the most frequent value. Macro-F1 weighs the three values alike.

# %%
vectors = {key: found for name in data for key, found in study.frozen(name).items()}
print(f"{sum(map(len, vectors.values()))} vectors")

# %% [markdown]
# Both splits get predicted values: test for the questions, train for the explainers that look for similar train texts.

# %%
aspects = {
    (name, split): reviewers.predict_aspects(
        parts["train"], vectors[name, "train"], parts[split], vectors[name, split]
    )
    for name, parts in data.items()
    for split in ("train", "test")
}
truth = {name: parts["test"].reset_index(drop=True) for name, parts in data.items()}

# %% [markdown]
# How good are they? Cells of a published text that nobody annotated do not count.


# %% tags=["nbval-ignore-output"]
def aspect_scores(name, aspect):
    """Accuracy and macro-F1 of an aspect classifier, and the share of the most frequent value."""
    known = truth[name][aspect].isin(reviews.VALUES)
    said, right = aspects[name, "test"][aspect][known], truth[name][aspect][known]
    return {
        "dataset": name,
        "aspect": aspect,
        "accuracy": (said == right).mean(),
        "macro_F1": f1_score(right, said, average="macro"),
        "share": right.value_counts(normalize=True).max(),
    }


stage.table(
    "aspect_accuracy",
    pd.DataFrame(
        [aspect_scores(name, aspect) for name in data for aspect in reviews.ASPECTS]
    ),
)

# %% [markdown]
# *Reading it.* In our worlds no predicate of the test texts was seen in training: the classifiers have to carry over from *delicious* to
# *scrumptious*. Where they fail, explainers that lean on predicted aspects fail with them. (The values that are predicted for
# the train texts come from the same classifiers and are better than they would be on new texts.)
#
# ## 3 · Training
#
# Every data set, kind and seed is one unit; a unit that is finished is never trained again. All kinds end in one linear layer, and
# what this layer reads is kept, for the explainers that need it. The check in `read_texts` demands that the layer makes the
# model's very answers from it.

# %%
show_source(Reading)
show_source(fit_head)

# %% [markdown]
# The full run: train, then read train and test texts. A unit that is there is read.

# %%
show_source(Trainings.reading)

# %% [markdown]
# A frozen encoder has nothing that chance decides, so it is trained once. The others get `n_seeds` trainings.


# %%
def predicted_minutes(name):
    """How long an encoder of a data set will take, from the time of 64 texts: a step of training costs three readings of what learns."""
    reader, some = (
        load_classifier(encoder, encoder_revision, ["1", "2"]),
        list(texts["text"].head(64)),
    )
    start = time.process_time()
    reviewers.sentence_vectors(reader, some)
    sizes, lower = (
        {split: len(rows) for split, rows in data[name].items()},
        n_frozen / len(layer_stack(reader.module)),
    )
    readings = lower * sum(sizes.values()) + (1 - lower) * (
        3 * epochs["encoder"] * sizes["train"] + sizes["train"] + sizes["test"]
    )
    return (time.process_time() - start) / 64 * readings / 60


todo = list(study.models())
for name in data if models and scale != "small" else []:
    print(
        f"{name}: about {predicted_minutes(name):.1f} minutes of one processor for each encoder"
    )

# %% [markdown]
# The run:

# %%
readings = {unit: study.reading(*unit) for unit in progress(todo, "models")}
sizes = [str(reading.vectors.shape[1]) for _, reading in readings.values()]
print(f"{len(readings)} models; vectors of {', '.join(sizes) or 'no'} numbers")

# %% [markdown]
# ## 4 · Encoders that have unlearnt a concept
#
# CausaLM, one of the paper's explainers, asks what the model would say if its encoder knew nothing of a concept. Such encoders have to be
# trained (Feder et al. 2021): a *masked language model*, which fills in hidden words, goes on learning, and an adversary tries to read the concept from
# its states. Between the two lies a **gradient reversal**: the adversary learns to read, and what would help it is taken from the
# states. A second head keeps a *control concept* readable.
#
# $$\mathcal{L} = \mathcal{L}_{\text{words}} + \mathcal{L}_{\text{control}} + \mathcal{L}_{\text{treated}}, \qquad
# \frac{\partial \mathcal{L}_{\text{treated}}}{\partial\, \text{states}} \leftarrow -\lambda\, \frac{\partial \mathcal{L}_{\text{treated}}}{\partial\, \text{states}}$$
#
# By hand: the sum of two numbers has the gradient (1, 1). Behind a reversal with $\lambda = .5$ it must be (-.5, -.5), and the sum the same.
# (The released code has no reversal: it subtracts the adversary's loss, so the adversary itself learns to be wrong.)

# %%
x = torch.ones(2, requires_grad=True)
total = encoders.reverse_gradient(x, 0.5).sum()
total.backward()
assert total.item() == 2 and x.grad.tolist() == [-0.5, -0.5]
show_source(encoders.concept_losses)

# %% [markdown]
# First the masked language model: the lowest layers of the encoder with a new head, trained on the train texts. `perplexity` is the number of
# words among which it wavers, on originals of dev; `unigram` is the floor, word frequencies alone.

# %%
show_source(Trainings._masked_lm)

# %% [markdown]
# Then, for each aspect, a copy of it that unlearns the aspect. Like a model, this is done once and kept.

# %%
show_source(encoders.vectors_without)

# %% [markdown]
# The paper trains for three epochs; how many it is here stands below.

# %%
print(
    f"masked LM: {masked_lm['epochs']} epochs; each of {len(reviews.ASPECTS)} concepts is unlearnt in {unlearning['epochs']}"
)
without = {
    name: study.without(name)
    for name in progress(data if models else [], "encoders without a concept")
}

# %% [markdown]
# Has the adversary won? A new linear probe is fitted to the vectors of each encoder, and asked for the treated aspect of the test texts. `before` is
# the accuracy with the encoder that has unlearnt nothing, `without` with the one that has unlearnt this aspect, `share` what naming the most
# frequent value would give.


# %% tags=["nbval-ignore-output"]
def probe(name, aspect, layer):
    """The accuracy, on test texts, of a linear probe for an aspect."""
    n_train = len(data[name]["train"])
    x, y = (
        without[name][1][layer],
        np.concatenate([data[name][split][aspect] for split in ("train", "test")]),
    )
    known = np.isin(y.astype(str), reviews.VALUES)
    labels, train = (
        np.array([reviews.VALUES.index(v) if v in reviews.VALUES else -1 for v in y]),
        np.arange(len(y)) < n_train,
    )
    head = fit_head(x[train & known], labels[train & known], len(reviews.VALUES))
    return (
        head.probabilities(x[~train & known]).argmax(1) == labels[~train & known]
    ).mean()


rows = [
    {
        "dataset": name,
        "aspect": aspect,
        "before": probe(name, aspect, len(reviews.ASPECTS)),
        "without": probe(name, aspect, at),
        "share": truth[name][aspect][truth[name][aspect].isin(reviews.VALUES)]
        .value_counts(normalize=True)
        .max(),
        **without[name][2],
    }
    for name in without
    for at, aspect in enumerate(reviews.ASPECTS)
]
measured = ["dataset", "aspect", "before", "without", "share", "unigram", "perplexity"]
stage.table("unlearnt", pd.DataFrame(rows, columns=measured))

# %% [markdown]
# *Reading it.* Where `without` is no nearer to `share` than `before`, the concept is still there for a new reader: the adversary in the training was
# fooled, and a second one is not. That is a known weakness of adversarial removal (Elazar and Goldberg 2018), and the reason why INLP and LEACE, in stage 3,
# remove linearly and for certain.
#
# ## 5 · The predictions
#
# They go into one table, with which texts they are of.

# %%
columns = [f"p_{k + 1}" for k in range(n_classes)]
answers = [
    pd.DataFrame(reading.probabilities, columns=columns).assign(
        text_id=ids, dataset=name, model=kind, seed=number
    )
    for (name, kind, number), (ids, reading) in readings.items()
]
nobody = pd.DataFrame(columns=[*columns, "text_id", "dataset", "model", "seed"])
predictions = pd.concat(answers or [nobody], ignore_index=True).merge(
    texts[["dataset", "text_id", "group", "split", "label"]], on=["dataset", "text_id"]
)
said = [
    table.assign(dataset=name, split=split) for (name, split), table in aspects.items()
]
save_parquet(
    predictions[
        ["dataset", "model", "seed", "split", "text_id", "group", "label", *columns]
    ],
    stage.path("predictions.parquet"),
)
save_parquet(pd.concat(said, ignore_index=True), stage.path("aspects.parquet"))

# %% [markdown]
# How many texts each model has read:

# %%
predictions.groupby(["dataset", "model", "split"], sort=False).size().unstack()

# %% [markdown]
# ## 6 · Accuracy, between floor and ceiling
#
# - `accuracy` on the test texts, with a 95 % interval over *groups*: the edits of one review are no independent texts. `low`, `high`.
# - `macro_F1`, and `off_by`, the mean distance of the predicted class from the right one.
# - The floors: the most frequent class, and a logistic regression on word counts.
# - The ceiling, in our worlds alone: the most likely rating by the structural equations.


# %%
def guesses(name):
    """Test predictions that come from no trained network: floors, and in our worlds the ceiling."""
    train, test = data[name]["train"], data[name]["test"]
    words = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=2000)).fit(
        train["text"], train["label"]
    )
    found = {
        "Most frequent": DummyClassifier()
        .fit(train["text"], train["label"])
        .predict(test["text"]),
        "Bag of words": words.predict(test["text"]),
    }
    if name in ("confounded", "independent") and n_classes > 2:
        found["The world's reader"] = reviews.in_classes(
            World(0.0).rating_probabilities(test), n_classes
        ).argmax(1)
    rows = test[["dataset", "text_id", "group", "label"]]
    return pd.concat(
        [
            rows.assign(model=rule, seed=-1, predicted=guess)
            for rule, guess in found.items()
        ]
    )


# %% [markdown]
# Every prediction of a test text becomes a row with what is right, and the intervals come from `lib.stats.estimates`.

# %% tags=["nbval-ignore-output"]
test = predictions[predictions["split"] == "test"]
test = test.assign(predicted=test[columns].to_numpy().argmax(1))
rules = [guesses(name) for name in data]
judged = pd.concat([*rules, *([test] if models else [])], ignore_index=True)
judged = judged.assign(
    right=(judged["predicted"] == judged["label"]).astype(float),
    off_by=(judged["predicted"] - judged["label"]).abs(),
    sentence_idx=judged["group"],
)
by = ["dataset", "model"]
accuracy = estimates(judged, by, "right").rename(
    columns={"estimate": "accuracy", "n_sentences": "groups"}
)
more = judged.groupby(by).apply(
    lambda t: pd.Series(
        {
            "macro_F1": f1_score(t["label"], t["predicted"], average="macro"),
            "off_by": t["off_by"].mean(),
        }
    ),
    include_groups=False,
)
accuracy = accuracy.join(more, on=by).sort_values(
    "dataset", kind="stable", ignore_index=True
)
stage.table(
    "accuracy",
    accuracy[
        [*by, "accuracy", "low", "high", "macro_F1", "off_by", "groups", "n_seeds"]
    ],
)

# %% [markdown]
# *Reading it.* Between the most frequent class and the world's reader lies all that there is to learn. What our models lack is mostly the meaning of
# unseen predicates. For the study this is no harm: an explanation is judged by what *this* model does, right or wrong, and stage 4
# asks separately how far the model's effects are from the world's.
#
# ## 7 · Control
#
# Labels that have nothing to do with their texts should teach nothing. A head on the same vectors, with shuffled labels, must fall back to
# the floor.


# %% tags=["nbval-ignore-output"]
def shuffled(name):
    """The accuracy of a head that was fitted to shuffled labels."""
    labels = np.random.default_rng(seed).permutation(
        data[name]["train"]["label"].to_numpy()
    )
    head = fit_head(vectors[name, "train"], labels, n_classes)
    return (
        head.probabilities(vectors[name, "test"]).argmax(1)
        == data[name]["test"]["label"].to_numpy()
    ).mean()


control = pd.DataFrame([{"dataset": name, "accuracy": shuffled(name)} for name in data])
stage.table("controls", control)

# %% [markdown]
# And the orders that must hold, for the scales that we ran:

# %%
score = accuracy.set_index(by)["accuracy"]
for name in data if scale in ("small", "cpu") else []:
    floor = score[name, "Most frequent"]
    noise = control.set_index("dataset")["accuracy"][name]
    assert noise < floor + 0.1, (
        f"{name}: after learning shuffled labels {noise:.2f}, above the most frequent "
        f"class ({floor:.2f}); hand in more test texts (n_originals)"
    )
    for best in [max(score[name, kind] for kind in models)] if models else []:
        assert best > floor + 0.05, (
            f"{name}: the best model reaches {best:.2f}, the most frequent class {floor:.2f}; "
            "raise epochs or lr, or name a further model"
        )
        if (name, "The world's reader") in score.index:
            reader = score[name, "The world's reader"]
            assert reader > best, (
                f"{name}: a model reaches {best:.2f}, the world's own reader {reader:.2f}; "
                "raise n_originals, for so few test texts leave it to chance"
            )

# %% [markdown]
# ## 8 · The figure
#
# Accuracy with its interval; hollow marks are floors, the triangle is the ceiling. The table holds what is drawn.

# %% tags=["nbval-ignore-output"]
looks = {
    "Most frequent": ("o", "none"),
    "Bag of words": ("s", "none"),
    "The world's reader": ("^", COLOURS[2]),
}
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1,
        len(data),
        sharex=True,
        sharey=True,
        squeeze=False,
        figsize=(3.9 * len(data), 2.6),
        layout="constrained",
    )
    for ax, name in zip(axes.flat, data):
        part = accuracy[accuracy["dataset"] == name].reset_index(drop=True)
        for i, row in part.iterrows():
            mark, face = looks.get(row["model"], ("o", COLOURS[0]))
            ax.plot([row["low"], row["high"]], [i, i], color="0.4", linewidth=1)
            ax.plot(row["accuracy"], i, mark, markerfacecolor=face, color="0.2")
        ax.set(
            yticks=range(len(part)),
            yticklabels=part["model"],
            title=name,
            xlabel="accuracy on test texts",
            xlim=(0, 1),
        )
    axes[0, 0].invert_yaxis()
stage.figure("accuracy", figure)
stage.table("figure", accuracy[[*by, "accuracy", "low", "high"]])

# %% [markdown]
# ## What could be wrong
#
# - **One training of each network says little** about the kind: at this scale the interval speaks of reviews only.
# - **480 reviews are few.** The encoder learns four judgements and their weights from them.
# - **The predicted aspects of the train texts** come from classifiers that were fitted on these texts.
# - **The word vectors of our BiLSTM** are the encoder's word table, not fastText's as in the paper.
#
# ## Try it
#
# - Add `"frozen encoder"` to `models`. One vector, made to compare sentences, has to hold four judgements: how far does it come?
# - Set `train_on = "exclusive"`. Do the models get better where edits are among the train texts?
# - Set `n_classes = 2`. What becomes of texts with three stars? (Stages 3 to 5 follow by themselves; effects are then counted in classes, not stars.)

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [03_attribution](03_attribution.ipynb) hands the train texts with these answers to its explainers, shows them one side of every test pair, and asks what
# the other side would be.
