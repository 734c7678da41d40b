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
# # Assay, stage 3 of 5: what does an explainer say that sees one text, and nothing else?
#
# [Start here](../00_start_here.ipynb) · before: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb) · the row: [README](README.md)
#
# The truths are known now. The explainers do not know them: each is handed one text and one model at a time.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - ten explainers and eight rules that never look at the model, asked about every text;
# - what somebody would say who knows the yardstick and not the model;
# - which explainers are one under two names, and which refuse a model.
#
# **You can then** say which truth a halved or a blind explanation fools, and write a floor. **You need**
# [stage 2](02_training.ipynb). **Time:** 10 minutes to read, 2 minutes to run, 20 minutes for the exercises.
#
# | in | out (in this stage's folder) | holds |
# |---|---|---|
# | `truths.parquet`, `models/` (02) | `explanations.parquet` | a number for each word, by explainer, model, training and text |
# | `train.parquet` (01) | `redrawn.parquet` | the same of a model whose weights were drawn anew |
# | | `budgets.parquet` | the same with 10, 100, ... passes of the model |
# | | `refused`, `copies`, `cost`, `agreement` (`.csv`), two figures | who answered what, and at what price |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import load_parquet, save_parquet
from lib.core.notebooks import show_source
from lib.core.progress import progress
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.metrics.agreement import rank_correlation
from lib.metrics.randomisation import randomise
from lib.models.probe import load_probe
from lib.plots import STYLE, plot_words
from lib.studies.assay import explainers as who
from lib.studies.assay import models
from lib.studies.assay.edits import estimated_change
from lib.studies.assay.number_model import CLASSES

# %% [markdown]
# ## Settings
#
# `explainers` names who is asked, with settings. A function of yours joins as `module:function`. Whatever an explainer's usual choice is, here it explains the log-odds.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
n_seeds = 2  # trainings of each model
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
budgets = [10, 100]  # passes of the model, for the axis of cost

# %% [markdown]
# | word | meaning | here |
# |---|---|---|
# | floor | a rule that never looks at the model | `FLOORS` |
# | cheater | one who knows a part of the truth; asked in stage 4 | section 1 |
# | score | a number a word: how much it speaks for the class | `scores` |

# %%
stage = open_stage("assay", scale, "03_attribution")
set_up(seed, n_threads)
truths = load_parquet(stage.input("02_training", "truths.parquet"))
train = load_parquet(stage.input("01_data_generation", "train.parquet"))
truths["text"] = truths["sentence"].map(" ".join)


def model_of(name, number):
    """A model of stage 2, and what the floors know of its training text."""
    note = stage.input("02_training", f"models/{name}-{number}.json")
    if note.with_suffix(
        ".safetensors"
    ).is_file():  # a published model has no weights here
        stage.input("02_training", f"models/{name}-{number}.safetensors")
    if name == "number":
        probe = stage.input("02_training", f"models/{name}-{number}-probe.safetensors")
        model = load_probe(note.with_suffix(".safetensors"), probe, CLASSES)
    else:
        model = models.read_model(note, note.with_suffix(".safetensors"))
    return model, who.fit_floors(train[train["model"] == name.partition("-")[0]])


asked = truths.drop_duplicates(["model", "training", "text", "target"])
names = [*explainers, *who.FLOORS]
print(
    f"{len(asked)} texts of {truths['model'].nunique()} models, {len(names)} asked about each"
)

# %% [markdown] tags=["slide"]
# ## 1 · By hand: a model that adds
#
# A model gives each word a fixed number and adds them up: *good* 2, *cold* -1.5, *food* 0.5, all other words 0. An explanation should give each word its number. Is that what the truths ask for?
#
# - **edit.** Remove *and cold* from *good and cold food*: the answer rises from 1 to 2.5. The removed words did -1.5, and the explanation says 0 - 1.5.
# - **noun.** Exchange *good* for words with 1 and 0: the mean loss is 2 - .5 = 1.5. That is not 2, but shifted for all words of a kind by what the kind does on average.
# - **deletion.** Words fall in the order 2, .5, 0, -1.5. No other order makes the answer fall faster.
#
# **Stop and guess.** A cheater knows *which* words were removed, and not what they did. It gives each of them 1. Where does this pay?

# %%
adds = {"good": 2.0, "and": 0.0, "cold": -1.5, "food": 0.5}
honest, cheater = list(adds.values()), [0.0, 1.0, 1.0, 0.0]
before, after = sum(adds.values()), adds["good"] + adds["food"]
assert estimated_change(honest, [1, 2]) == before - after == -1.5
assert estimated_change(cheater, [1, 2]) == 2.0
assert adds["good"] - np.mean([1.0, 0.0]) == 1.5
print(sorted(adds, key=adds.get, reverse=True))

# %% [markdown]
# The cheater says 2, which is wrong and has the wrong sign. But where a truth asks only *where* the words are (*mask*, *planted*, *cue*), it would be perfect. So it stands in every table: **a truth that it wins cannot tell an explanation from a good guess about the data.**
#
# ## 2 · One text at a time
#
# An explainer gets a list of words and a model. It gets no id, and it never sees two texts together, so it cannot know which texts are a pair.

# %%
show_source(who.ask)
show_source(who.nearest)

# %% [markdown]
# *Word counts* is the floor that is 0 under most truths: how often a word stood beside the class in the training text (the Pattern Variant of GECOBench). It knows the data, and no model. *Log count ratio* knows the same by another formula; for a pronoun model it is a noun's stereotype, log count(he) / count(she).
#
# ## 3 · The full run


# %%
def explained(model, fitted, rows, settings):
    """What everybody says of some texts, and who refuses, and why."""
    found, refused = [], []
    for row in rows.itertuples():
        for name, chosen in settings.items():
            scores, why = who.ask(
                model, fitted, row.sentence, row.target, {name: chosen}
            )
            about = (name, row.model, row.training, row.text)
            found += [(*about, scores[name])] if scores else []
            refused += [(*about[:2], why[name])] if why else []
    return found, refused


everybody = explainers | dict.fromkeys(who.FLOORS, {})
found, refused = [], []
for (name, number), rows in progress(
    list(asked.groupby(["model", "training"])), "models"
):
    parts = explained(*model_of(name, number), rows, everybody)
    for whole, part in zip((found, refused), parts, strict=True):
        whole += part
columns = ["explainer", *who.ABOUT_TEXT, "scores"]
explanations = pd.DataFrame(found, columns=columns)
print(f"{len(explanations)} explanations, {len(refused)} refusals")

# %% [markdown]
# Who refuses which model, and why:

# %%
refusals = pd.DataFrame(
    refused, columns=["explainer", "model", "why"]
).drop_duplicates()
assert len(refusals) < 0.2 * len(everybody) * asked["model"].nunique(), (
    "a fifth of all questions was refused: read the column why, and correct a setting"
)
pd.set_option("display.max_colwidth", 90)
stage.table("refused", refusals)

# %% [markdown]
# Explainers whose numbers agree on every text are one, and are counted once. For a model of one layer, or a linear one, that can be more than one expects.

# %%
show_source(who.merge_identical)
merged, copies = who.merge_identical(explanations)
copied = pd.DataFrame(copies.items(), columns=["explainer", "is the same as"])
stage.table("copies", copied)

# %% [markdown]
# What an explanation costs:

# %%
passes = {
    "Integrated Gradients": "n_steps",
    "LIME": "n_samples",
    "Kernel SHAP": "n_samples",
}
price = pd.DataFrame(
    {
        "explainer": list(explainers),
        "passes": [explainers[name].get(passes.get(name), 1) for name in explainers],
        "explained": [(explanations["explainer"] == name).sum() for name in explainers],
    }
)
stage.table("cost", price)

# %% [markdown] tags=["slide"]
# *Reading it.* `passes` is how often the model is run for one text, where a setting says so; 1 stands for a few.
#
# ## 4 · One review, five answers
#
# The removed words are marked. A good explanation of the *edit* gives them, together, what they did.

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
        "marks": [["removed" if m else "" for m in one.mark]] * len(mine),
        "label": list(mine.index),
    }
)
figure, plotted = plot_words(
    picture, {"removed": "removed in the edit"}, "towards good"
)
stage.figure("one_review", figure)
plt.show()
_ = stage.table("one_review", plotted[["label", "word", "score", "mark"]])

# %% [markdown]
# *Reading it.* *Attention rollout* and *Even* have no sign: they cannot say that words spoke against the class. *Word counts* has one, and it comes from the training text.
#
# ## 5 · The same, with other weights and at other prices
#
# Two further questions need explanations of their own. Does an explainer notice when all weights of the model are drawn anew? And what is an explanation worth after 10 passes of the model?

# %%
model, fitted = model_of("gender", 0)
rows = asked.query("model == 'gender' and training == 0")
budgeted = []
for n in budgets:
    settings = {name: {by: n} for name, by in passes.items()}
    part, _ = explained(model, fitted, rows, settings)
    budgeted.append(pd.DataFrame(part, columns=columns).assign(passes=n))
budgeted = pd.concat(budgeted, ignore_index=True)
randomise(model.module, dict(model.module.named_parameters()), seed)
part, _ = explained(model, fitted, rows, everybody)
redrawn = pd.DataFrame(part, columns=columns)
print(f"{len(budgeted)} explanations by budget, {len(redrawn)} of the redrawn model")

# %% [markdown] tags=["slide"]
# ## 6 · Do they agree with each other?
#
# Before any truth is asked: the mean rank correlation over words between each two of them, on all texts.

# %% tags=["nbval-ignore-output", "slide"]
by_name = {
    name: part.set_index(who.ABOUT_TEXT)["scores"]
    for name, part in merged.groupby("explainer", sort=False)
}


def likeness(left, right):
    """The mean Spearman correlation over the texts that both explain; NaN is left out."""
    both = by_name[left].index.intersection(by_name[right].index)
    each = [
        rank_correlation(by_name[left][text], by_name[right][text]) for text in both
    ]
    return np.nanmean(each) if np.isfinite(each).any() else np.nan


kept = [name for name in [*explainers, "Word counts", "Nearest"] if name in by_name]
agreement = pd.DataFrame(
    [[likeness(a, b) for b in kept] for a in kept], index=kept, columns=kept
)
with plt.rc_context(STYLE | {"axes.grid": False}):
    figure, ax = plt.subplots(figsize=(6.5, 5.2), layout="constrained")
    drawn = ax.imshow(agreement, cmap="PuOr_r", vmin=-1, vmax=1)
    ax.set_xticks(range(len(kept)), kept, rotation=60, ha="right")
    ax.set_yticks(range(len(kept)), kept)
    figure.colorbar(drawn, label="rank correlation over words")
stage.figure("agreement", figure)
plt.show()
_ = stage.table("agreement", agreement.rename_axis("explainer").reset_index())

# %% [markdown]
# *Reading it.* Blocks of one colour are families. That two explainers agree says nothing about whether they are right.
#
# ## 7 · Controls
#
# An explainer that is asked twice says the same. A floor says the same of both trainings, since it looks at neither.

# %%
model, fitted = model_of("reviews", 0)
twice = [
    who.ask(model, fitted, one.sentence, one.target, everybody)[0] for _ in range(2)
]
assert twice[0] == twice[1], (
    "an answer depends on when it is asked: seed the draws by the text"
)
blind = explanations[explanations["explainer"].isin(list(who.FLOORS))]
spread = blind.groupby(["explainer", "model", "text"])["scores"].agg(
    lambda part: np.ptp(np.stack([np.asarray(x) for x in part]), axis=0).max()
)
assert spread.max() == 0, "a floor changes with the training, so it looks at the model"
print(f"{len(twice[0])} asked twice, {len(spread)} answers of floors compared")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Settings.** Fifty samples are few for LIME and Kernel SHAP; the axis of cost says how few.
# - **Padding is the baseline** of the path methods, and what Occlusion and Kernel SHAP put in a word's place. Another baseline would give other numbers.
# - **One text at a time** hides what an explainer could learn from many texts. That is on purpose: a reader has one.
# - **A refusal is not a fault.** An explainer may be defined for some models only; then its cell is empty, and the comparison of truths leaves it out.
# - **The cheaters are simple.** One that knows more could win more truths.
#
# ## Try it
#
# - Add `"Exact Shapley": {}` to `explainers`. For which texts is it refused?
# - Write a floor that scores long words. Which truth does it fool?
# - Ask with `budgets = [10, 100, 1000]`, and watch the seconds.

# %%
for name, table in (
    ("explanations", merged),
    ("budgets", budgeted),
    ("redrawn", redrawn[~redrawn["explainer"].isin(list(copies))]),
):
    save_parquet(table.reset_index(drop=True), stage.path(f"{name}.parquet"))
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) holds the explanations against the truths, with floors, an oracle and cheaters.

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
# Which score of section 1 would punish this explainer for halving everything?
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
# An explainer of this row is given one text and one model. Write the floor *later words*: the last word gets 1, the first 1/n, and the others stand between them in equal steps.


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
        "A text of one word has its last word first.": [["a"]],
    },
)

# %% [markdown] tags=["exercise"]
# ### 4 · Predict
#
# `likeness` holds the mean rank correlation between the scores of any two explainers, over all texts. Before you look: which pair is more alike, *Saliency* and *Gradient norm*, or *Saliency* and *InputXGradient*? Write the larger of the two correlations. All three look at one and the same gradient.

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
    pair.idxmax().lower(),
    {pair.idxmin().lower(): "Which two have no sign, and do not look at the word?"},
    name="more_alike",
)
check_number(
    their_correlation,
    pair.max(),
    hint="Read it from likeness.loc.",
    name="their_correlation",
)
