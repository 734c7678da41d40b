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
# # CEBaB, stage 2 of 5: how well do classifiers predict the stars, and the values of the four aspects?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **The encoder predicts the stars of 68 %<!-- cebab/cpu/02_training/accuracy[model=encoder].accuracy --> of the test reviews correctly, the BiLSTM of 57 %<!-- cebab/cpu/02_training/accuracy[model=BiLSTM].accuracy -->**
#   ([figure](../../outputs/reference/cebab/cpu/02_training/accuracy.png)). The BiLSTM is a recurrent network that reads both ways. The most frequent answer is right for 27 %<!-- cebab/cpu/02_training/accuracy[model=Most frequent].accuracy -->.
# - **Aspect classifiers agree with the readers in** 66 %<!-- cebab/cpu/02_training/aspect_accuracy[aspect=ambiance].accuracy --> to 81 %<!-- cebab/cpu/02_training/aspect_accuracy[aspect=noise].accuracy --> of the cases
#   ([table](../../outputs/reference/cebab/cpu/02_training/aspect_accuracy.csv)). Explainers that rely on them inherit these errors.
# - **An encoder that was trained to forget a concept still holds much of it** ([table](../../outputs/reference/cebab/cpu/02_training/unlearnt.csv)). A newly fitted linear classifier, a *probe*, reads the concept's value from its vectors. It is right more often than a rule that always names the most frequent value.
#
# These results are from the run at scale `cpu`; the cells below show `small`.
#
# This stage trains the models that will be explained. They predict how many stars a review gives. It also trains *aspect classifiers*, which predict whether a text praises, criticises or does not judge food, service,
# ambiance and noise. Some explainers need these values, and they may use only what can be predicted from a text.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - classifiers beside simple rules (floors) and the best possible reader of our own worlds (ceiling);
# - how an encoder is trained to forget a concept;
# - what the explainers of stage 3 receive.
#
# **You can then** compute the best accuracy that anybody could reach, and say when a concept has been removed.
# **You need** [stage 1](01_data_generation.ipynb). **Time:** 15 minutes to read, 3 minutes to run, [10 minutes for the exercises](../../docs/course/exercises/cebab.md#02-training).
#
# | in (from 01) | out |
# |---|---|
# | `texts.parquet`: texts with rating, aspects, split | `predictions.parquet`: class probabilities for each model and text |
# | | `aspects.parquet`: predicted values of the four aspects |
# | | `vectors/`, `models/`, `trainings.parquet`: what stage 3 needs of each model |
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
from lib.core.notebooks import show_source, show_table
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
from lib.studies.cebab.unlearning import masked_lm_of
from lib.studies.cebab.upper_layers import layer_stack
from lib.studies.cebab.words import in_words
from lib.studies.cebab.worlds import World

# %% [markdown]
# ## Settings
#
# There are three kinds of models. `encoder` freezes its `n_frozen` lowest layers and fine-tunes the rest. `BiLSTM` is trained from scratch on the encoder's word vectors. `frozen encoder` freezes all of it and trains only a linear head.
# `train_on` chooses the train set of stage 1. The paper uses `exclusive`. Scale small uses only the originals (`observational`), because edits would break the confounding that we want to study.
#
# Any encoder on the Hugging Face hub can be used, and models of your own can join in stage 3 ([README](README.md#a-model-of-your-own)).

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # random seed; stage 1 uses the same one to write the reviews
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
n_classes = 5  # stars as 5, 3 or 2 classes, K
train_on = "observational"  # the train set: inclusive, exclusive or observational
encoder = "all-MiniLM-L6-v2"  # pre-trained: the packaged one, a folder, or a hub id
encoder_revision = ""  # the commit of a hub id
masked_encoder = ""  # the masked language model of section 4; empty: the encoder itself
masked_encoder_revision = ""  # the commit of its hub id
models = ["encoder", "BiLSTM"]  # kinds of models; also: frozen encoder
n_seeds = 1  # fine-tuning runs of each model
n_frozen = 4  # lowest layers of the encoder that are kept, with its word embeddings
kept_epoch = "best"  # best (the lowest loss on dev) or last (as in the paper)
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
resample_aspects = False  # fit other aspect classifiers for each fine-tuning run
reuse_units = False  # read answers that are committed, and publish new ones
need_vectors = False  # train again where answers are published and vectors are missing

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $\mathcal{N}_\phi(x)$ | a model's answer to a text: probabilities of $K$ classes | `p_1` ... `p_5` |
# | $\phi(x)$ | the vector that its last, linear layer reads | `vectors` |
# | $f(x)$ | the stars that readers gave | `rating` |

# %%
stage = open_stage("cebab", scale, "02_training")
set_up(seed, n_threads)
units = Units("cebab", scale, "02_training", reuse_units)
study = Trainings(stage, units, globals())
texts, data = study.texts, study.data
sizes = [
    {"data set": name} | {split: len(rows) for split, rows in parts.items()}
    for name, parts in data.items()
]
in_words(pd.DataFrame(sizes), {name: name for name in sizes[0]})

# %% [markdown] tags=["slide"]
# The originals of dev are used to choose the epoch. The models rate all test texts, originals and edits.
#
# ## 1 · The best possible reader, by hand
#
# In our own world we know how well the stars can be predicted at all. Take a review that praises the food, complains about the service and
# says nothing else. In stage 1 the food adds 0.9 stars and the service takes 0.9 away, so the mean stays at 3.1. The reviewer's mood adds a normal error with a standard deviation of 0.4.
#
# **Stop and guess.** How often does such a reviewer give three stars? The next cell has the probabilities of all five ratings.

# %% tags=["slide"]
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
shown = pd.DataFrame({"stars": range(1, 6), "probability": answer.round(3)})
in_words(shown, {name: name for name in shown})

# %% [markdown] tags=["slide"]
# We can check the middle one by hand. Values from 2.5 to 3.5 are rounded to three. With $\Phi$, the distribution function of the standard normal distribution:
#
# $$P(3) = \Phi\big(\tfrac{3.5 - 3.1}{0.4}\big) - \Phi\big(\tfrac{2.5 - 3.1}{0.4}\big) = .841 - .067 = .774$$
#
# The table has .775; the equation rounds its two terms first. Even a reader who knows the equations and understands every word is wrong about this review in more than one case out of five.
# The accuracy of such a reader on all test texts is the ceiling for the models below (section 5).
#
# ## 2 · What the aspect classifiers see
#
# There is one logistic regression for each aspect. It reads TF-IDF features and the vectors of the untouched encoder, and is fitted to the labels of the train texts.

# %%
show_source(reviewers.predict_aspects)

# %% [markdown]
# The encoder reads each text once:

# %%
vectors = {
    (name, split): found for name in data for split, found in study.frozen(name).items()
}
print(f"{sum(map(len, vectors.values()))} vectors")

# %% [markdown]
# For every text that a model classifies, we predict the value of each of the four aspects. With `resample_aspects` each
# fine-tuning run has its own aspect classifiers. They are fitted to the train reviews with a random weight for each
# review. So the intervals reflect their variation, too.

# %%
aspects = pd.concat([study.aspects(name) for name in data], ignore_index=True)
on_test = dict(tuple(aspects[aspects["split"] == "test"].groupby("dataset")))
truth = {name: parts["test"].reset_index(drop=True) for name, parts in data.items()}

# %% [markdown]
# How good are they? Intervals allow for other groups of texts and other fits. The floor is the share of the most frequent value. Macro-F1 gives the three values equal weight.


# %% tags=["nbval-ignore-output", "slide"]
def aspect_answers(name, aspect):
    """What the classifiers of an aspect say of the test texts whose value is known."""
    known = truth[name][aspect].isin(reviews.VALUES).to_numpy()
    texts = (
        truth[name]
        .loc[known, ["group", aspect]]
        .set_axis(["sentence_idx", "value"], axis=1)
    )
    return pd.concat(
        texts.assign(
            dataset=name, aspect=aspect, seed=seed, said=said[known].to_numpy()
        )
        for seed, said in on_test[name].groupby("seed")[aspect]
    )


said = pd.concat(aspect_answers(name, a) for name in data for a in reviews.ASPECTS)
said["right"] = (said["said"] == said["value"]).astype(float)
of_aspect = ["dataset", "aspect"]
scores = estimates(said, of_aspect, "right").rename(columns={"estimate": "accuracy"})
scores["macro_F1"] = [
    rows.groupby("seed")[["value", "said"]]
    .apply(lambda t: f1_score(t["value"], t["said"], average="macro"))
    .mean()
    for _, rows in said.groupby(of_aspect, sort=False)
]
scores["share"] = [
    rows["value"].value_counts(normalize=True).max()
    for _, rows in said.groupby(of_aspect, sort=False)
]
named = ["accuracy", "low", "high", "macro_F1", "share", "n_seeds"]
in_words(
    stage.table("aspect_accuracy", scores[[*of_aspect, *named]]),
    {"dataset": "data set", "aspect": "aspect", "accuracy": "accuracy"}
    | {"low": "from", "high": "to", "macro_F1": "macro-F1"}
    | {"share": "most frequent value"},
)

# %% [markdown]
# In our worlds no predicate of the test texts occurs in training. The classifiers have to generalise from *delicious* to *scrumptious*. Where they fail, explainers that use predicted aspects fail, too.
#
# ## 3 · Training
#
# All models end in one linear layer. We keep the vectors that this layer reads, for the explainers.

# %%
show_source(Reading)
show_source(fit_head)

# %% [markdown]
# One model is trained for each seed. If its files exist already, they are loaded.

# %%
show_source(Trainings.reading)

# %% [markdown]
# At larger scales the notebook first predicts how long training takes.


# %%
def predicted_minutes(name):
    """How long an encoder of a data set will take, from the time of 64 texts."""
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
for name in data if models and not stage.is_practice else []:
    print(
        f"{name}: about {predicted_minutes(name):.1f} minutes on one core per encoder"
    )

# %% [markdown]
# Now all models are trained.

# %%
answers = {unit: study.answers(*unit) for unit in progress(todo, "models")}
print(f"{len(answers)} models; {sum(map(len, answers.values()))} answers")

# %% [markdown] tags=["slide"]
# ## 4 · Encoders that forget a concept
#
# ![A text goes through an encoder to its states, which three heads read: one fills in words, one reads a control concept, and an adversary reads the concept that is to be forgotten; its gradient is multiplied by -0.5 before it reaches the states.](../../docs/schematics/forgetting.svg)
#
# CausaLM, one of the paper's explainers, asks what a model would say if its encoder knew nothing about a concept. Such encoders have to be trained (Feder et al. 2021). We start from a *masked language model*, which fills in hidden words, and train it with three losses:
#
# - $\mathcal{L}_{\text{words}}$: it goes on filling in words.
# - $\mathcal{L}_{\text{treated}}$: a linear head, the *adversary*, learns to read the concept that is to be forgotten. It reads the mean *state* (states are the model's output vectors).
# - $\mathcal{L}_{\text{control}}$: a second head learns to read another concept, the *control concept*, which is to be kept.
#
# The adversary improves at reading the concept. A **gradient reversal** between it and the states makes the states change in the direction that is worst for the adversary. The number $\lambda$ (`adversary` in the settings) says how strongly they change:
#
# $$\mathcal{L} = \mathcal{L}_{\text{words}} + \mathcal{L}_{\text{control}} + \mathcal{L}_{\text{treated}}, \qquad
# \frac{\partial \mathcal{L}_{\text{treated}}}{\partial\, \text{states}} \leftarrow -\lambda\, \frac{\partial \mathcal{L}_{\text{treated}}}{\partial\, \text{states}}$$
#
# We check the reversal by hand. The sum of two numbers has the gradient (1, 1). Through a reversal with $\lambda = .5$ the gradient must be (-.5, -.5), and the sum must stay the same.

# %%
x = torch.ones(2, requires_grad=True)
total = encoders.reverse_gradient(x, 0.5).sum()
total.backward()
assert total.item() == 2 and x.grad.tolist() == [-0.5, -0.5]
show_source(encoders.concept_losses)

# %% [markdown]
# First comes the masked language model: the lowest layers of the encoder with a new head, trained on the train texts.

# %%
show_source(masked_lm_of)

# %% [markdown]
# Then we train one copy of it for each aspect, to forget this aspect. Every fine-tuning run has its own copies (encoder and BiLSTM share them).

# %%
show_source(encoders.vectors_without)

# %% [markdown]
# The paper trains for three epochs. The next cell says for how many we train.

# %%
n, each = masked_lm["epochs"], unlearning["epochs"]
print(
    f"masked LM: {n} epoch{'s' * (n != 1)}; "
    f"each of {len(reviews.ASPECTS)} concepts: {each}"
)
lost = list(study.unlearnings())

# %% [markdown]
# Is the concept gone? We fit a new linear probe to the vectors of the train texts and let it predict the aspect of the test texts. The probe's floor is the accuracy of always naming the *most frequent value*. *Perplexity* says how well the masked language model predicts words before it forgets anything, so it is the same for all aspects; lower is better. The last column is the perplexity of a rule that knows only how frequent each word is.

# %% tags=["nbval-ignore-output", "slide"]
rows = [study.unlearnt(*unit) for unit in progress(lost, "encoders without a concept")]
measured = ["dataset", "aspect", "before", "without", "share", "unigram", "perplexity"]
unlearnt = pd.concat(rows or [pd.DataFrame(columns=[*measured, "seed"])])
shown = stage.table("unlearnt", unlearnt[[*measured, "seed"]])
means = shown.groupby(["dataset", "aspect"], sort=False).mean(numeric_only=True)
in_words(
    means.reset_index().reindex(columns=list(shown)).round(3),
    {"dataset": "data set", "aspect": "aspect", "before": "probe before"}
    | {"without": "probe after", "share": "most frequent value"}
    | {"perplexity": "perplexity", "unigram": "its floor"},
)

# %% [markdown] tags=["slide"]
# The concept is gone only where the *probe after* falls to the *most frequent value*. Here it comes close for noise, and in the independent world for food. Elsewhere it stays clearly above. There a newly fitted classifier still finds the concept: the encoder may only deceive its own adversary. This is a known weakness of adversarial removal (Elazar and Goldberg 2018). Stage 3 therefore
# also has methods that remove a concept by linear algebra.
#
# ## 5 · Accuracy, between floor and ceiling
#
# All predictions go into one table.

# %%
columns = [f"p_{k + 1}" for k in range(n_classes)]
told = [
    table.assign(dataset=name, model=kind, seed=number)
    for (name, kind, number), table in answers.items()
]
nobody = pd.DataFrame(columns=[*columns, "text_id", "dataset", "model", "seed"])
predictions = pd.concat(told or [nobody], ignore_index=True).merge(
    texts[["dataset", "text_id", "group", "split", "label"]], on=["dataset", "text_id"]
)
save_parquet(
    predictions[
        ["dataset", "model", "seed", "split", "text_id", "group", "label", *columns]
    ],
    stage.path("predictions.parquet"),
)
save_parquet(aspects, stage.path("aspects.parquet"))
record = study.record(predictions, unlearnt)  # what stage 3 is to know of each model
save_parquet(record, stage.path("trainings.parquet"))

# %% [markdown]
# There are two floors: the most frequent class, and a logistic regression on word counts. Only our own worlds have a ceiling: *the world's reader*, who always answers with the most likely rating by the equations.


# %%
def guesses(name):
    """Test predictions without a trained network: floors, and the ceiling."""
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
# We compare each prediction of a test text with the readers' stars.

# %%
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
print(f"{len(judged)} predictions of test texts")

# %% [markdown] tags=["slide"]
# In the figure, hollow marks are floors and the triangle is the ceiling. The intervals are over *groups*, because the edits of one review are not independent texts.

# %% tags=["nbval-ignore-output", "slide"]
looks = {
    "Most frequent": ("o", "none"),
    "Bag of words": ("s", "none"),
    "The world's reader": ("^", COLOURS[2]),
}
roles = {name: f"{name} (floor)" for name in ("Most frequent", "Bag of words")}
roles["The world's reader"] = "The world's reader (ceiling)"


def best_of(part):
    """How good the best trained model of a data set is, in words."""
    trained = part.loc[part["model"].isin(models), "accuracy"]
    return f"best model {trained.max():.0%} right" if len(trained) else "floors"


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
            yticklabels=part["model"].replace(roles),
            title=(
                f"{name}: {best_of(part)}"
                if len(data) > 1
                else best_of(part).capitalize()
            ),
            xlabel="test accuracy, 95 % interval",
            xlim=(0, 1),
        )
    axes[0, 0].set_ylim(len(part) - 0.5, -0.5)
stage.figure("accuracy", figure)
_ = stage.table("figure", accuracy[[*by, "accuracy", "low", "high"]])

# %% [markdown]
# The table adds macro-F1, and by how many stars a prediction is off on average.

# %% tags=["nbval-ignore-output"]
shown = [*by, "accuracy", "low", "high", "macro_F1", "off_by", "groups", "n_seeds"]
in_words(
    stage.table("accuracy", accuracy[shown]),
    {"dataset": "data set", "model": "model", "accuracy": "accuracy", "low": "from"}
    | {"high": "to", "macro_F1": "macro-F1", "off_by": "stars off"},
)

# %% [markdown] tags=["slide"]
# Both models are above the floors and far below the ceiling; their intervals nearly coincide. An explanation is compared with what *this* model does, right or wrong. But a weak model may react less, which favours the answer *nothing changes*.
#
# The next table counts the texts that each model has answered. Of dev these are originals and edits; only the originals were used to choose the epoch.

# %%
n_read = predictions.groupby(["dataset", "model", "split"], sort=False).size()
n_read = n_read.unstack().rename_axis(columns=None).reset_index()
in_words(n_read, dict(zip(n_read, n_read)) | {"dataset": "data set"})

# %% [markdown] tags=["slide"]
# ## 6 · Control
#
# Shuffled labels should teach nothing. A head that is fitted to them must fall back to the floor.


# %% tags=["nbval-ignore-output", "slide"]
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
in_words(
    stage.table("controls", control),
    {"dataset": "data set", "accuracy": "accuracy after shuffled labels"},
)

# %% [markdown]
# Neither accuracy is clearly above that of the most frequent class (section 5). The next cell checks this. The best model must be above that floor, and the world's reader above the best model.

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
            f"{name}: the best model reaches {best:.2f}, "
            f"the most frequent class {floor:.2f}; "
            "raise epochs or lr, or name a further model"
        )
        if (name, "The world's reader") in score.index:
            reader = score[name, "The world's reader"]
            assert reader > best, (
                f"{name}: a model reaches {best:.2f}, the world's reader {reader:.2f}; "
                "raise n_originals, for so few test texts leave it to chance"
            )

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **One fine-tuning run says little** about a kind of model. At scale small the intervals reflect only the choice of reviews.
# - **480 reviews are few.** From them a model has to learn how each aspect is praised or faulted, and how much it matters.
# - **The aspects of the train texts** are predicted by classifiers that were fitted to these same texts. So these
#   predictions are right more often than those for new texts.
# - **The word vectors of our BiLSTM** are the encoder's, not fastText's as in the paper.
#
# ## Try it
#
# - Add `"frozen encoder"` to `models`. How accurate is a linear head on one fixed vector per text?
# - Set `train_on = "exclusive"`. Do the models get better with edits among the train texts?
# - Set `n_classes = 2`. What happens to texts with three stars?
#
# Exercises with checks: [page](../../docs/course/exercises/cebab.md#02-training).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [03_attribution](03_attribution.ipynb) gives its explainers the train texts with these predictions. It shows them one text of every test pair, and asks what
# the model would predict for the other.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# You can do them without running the notebook: start with the next cell. Replace the three dots by your answer. If it is wrong, the check below it gives a hint, but not the solution.

# %% tags=["exercise"]
from statistics import NormalDist

from lib.core.exercises import check_choice, check_number, read_committed
from lib.core.notebooks import in_words

unlearnt = read_committed("cebab", "cpu", "02_training", "unlearnt")
unlearnt = unlearnt.groupby("aspect", sort=False)[["before", "without", "share"]].mean()
human = {"aspect": "aspect", "before": "probe before", "without": "new probe"}
in_words(unlearnt.reset_index(), human | {"share": "most frequent value"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# In our world a review has 3.1 stars, plus what its aspects add, plus the reviewer's mood, which has mean 0 and standard deviation 0.4. A review praises the food (0.9) and says nothing else, so its mean is 4.0. Ratings are rounded. With what probability does the reviewer give four stars? `NormalDist().cdf` is the distribution function of the normal distribution.

# %% tags=["hole"]
p_four = ...

# %% tags=["solution"]
p_four = NormalDist(4.0, 0.4).cdf(4.5) - NormalDist(4.0, 0.4).cdf(3.5)

# %% tags=["check"]
mood = NormalDist(0, 0.4)
check_number(
    p_four,
    mood.cdf(0.5) - mood.cdf(-0.5),
    {
        "four stars also have a lower end.": mood.cdf(0.5),
        "the standard deviation is 0.4.": NormalDist().cdf(0.5)
        - NormalDist().cdf(-0.5),
    },
    "Which values are rounded to four?",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# An encoder was trained against an adversary, to forget an aspect. The table has means over five fine-tuning runs. The *new probe* reads the aspect from this encoder; its accuracy is shown. The *probe before* is one on the encoder before that training. The last column is the accuracy of always naming the *most frequent value*. Is the aspect gone?
#
# - `"a"` Yes, the new probe is below the probe before everywhere.
# - `"b"` No, the new probe is still far above the most frequent value.
# - `"c"` We cannot say: a probe says nothing about an encoder.

# %% tags=["hole"]
is_it_gone = ...  # "a", "b" or "c"

# %% tags=["solution"]
is_it_gone = "b"

# %% tags=["check"]
assert (unlearnt["without"] - unlearnt["share"] > 0.05).all()
check_choice(
    is_it_gone,
    "b",
    {
        "a": "Lower is not gone. What would the probe reach if nothing were left?",
        "c": "A probe that finds the aspect has found it; a failing one says less.",
    },
)
