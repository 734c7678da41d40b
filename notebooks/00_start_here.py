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
# # Start here: which words made the model say that, and how would we know?
#
# Somebody hands a sentence to a language model, and the model says: this is about a woman. Which words told it so?
# Tools that explain models answer with a number for every word. Orange words speak for the answer, violet ones against
# it.
#
# ![One sentence in three rows: "She leaves it to her daughter to tell her mother." First row, the words that we changed: She, leaves, her, daughter, her, mother. Second row, what Integrated Gradients says: most on the first "her" (+0.37), then the second "her" (+0.24) and "daughter" (+0.11); 91 % on changed words. Third row, what a rule says that sees no model: all on "She", the first pronoun; 100 % on changed words.](../outputs/reference/start_here/sentence.png)
#
# The first row shows the only words that can carry evidence. We know them, because we made them: we wrote the same sentence about a man and about a
# non-binary person, and six words had to change. The second row is a popular method, and it does well. The third is a
# rule that anybody can follow with the computer switched off: point at the first pronoun. By our simplest score it does better.
#
# So an explanation can point at the right words and still tell us nothing about the model. How would we notice? In
# the next minute you make this picture yourself, step by step. Once installed, that needs no download, no GPU, and no idea yet of what
# an *attribution* is.
#
# Next: [GECO, stage 1](geco/01_data_generation.ipynb)

# %% [markdown] tags=["slide"]
# ## You will see
#
# - **one sentence**, written in three ways, so that we know which of its words carry the evidence;
# - **one model**, trained in front of you, that tells the three ways apart;
# - **one attribution**: a number for every word of the sentence, which says how much the word moved the model;
# - **one metric**: a single number for how well the attribution points at the words that we know to matter;
# - **one floor**: what the same number is for a rule that never looks at the model.
#
# That is the whole idea of this repository. The rest is doing it carefully, for four published studies.
#
# **You can then** compute mass accuracy by hand, and say why a number needs a floor beside it. **You need** to know
# what a probability is. **Time:** 15 minutes to read, under a minute to run, 20 minutes for the exercises.
#
# | In | Out |
# |---|---|
# | `geco/material/labels.yaml`: labelled sentences about characters of novels, written for this repository | `accuracy.csv`, `probabilities.csv`, `attribution.csv`, `completeness.csv`, `mass_accuracy.csv`, `your_own.csv`, the picture `sentence.png` |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.attribution import explain
from lib.core.paths import material
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.doors import explain_texts, word_list, wrap
from lib.metrics import mass_accuracy, truth_share
from lib.plots import plot_words
from lib.studies.geco.corpus import CLASSES
from lib.studies.geco.labels import labelled_rows, read_labels
from lib.training.classifier import Settings
from lib.training.transfer import Trainer

# %% [markdown]
# ## Settings
#
# Every notebook here has one cell like the next one. It holds all the numbers that you may want to change.

# %% tags=["parameters"]
seed = 0  # of every random choice
n_threads = 1  # CPU threads
n_train = 40  # sentences to learn from, each in three forms
n_test = 20  # sentences to test on, each in three forms
n_steps = 50  # points on the path of the attribution method

# %% [markdown]
# ## One sentence
#
# We have some labelled sentences from plot summaries of novels. Each one is about a person, and a label says what
# becomes of each word in a female (F), a male (M) and a non-binary (NB) form. This is ours for today. We keep it away
# from the training.

# %%
set_up(seed, n_threads)
stage = open_stage("start_here", "", "")
labels = read_labels(material("geco") / "labels.yaml")
rows = labelled_rows(list(labels.values()), "all")
ours = rows[
    rows["sentence_idx"] == list(labels).index("north_and_south-02")
].reset_index(drop=True)
print(f"{len(labels)} labelled sentences, {len(rows)} rows")
pd.DataFrame([*ours["sentence"], ours["ground_truth"][0]], index=[*CLASSES, "changes"])

# %% [markdown]
# Look at the last line. A 1 marks a word that differs between the forms, a 0 a word that is the same in all three.
#
# Now comes the trick that everything rests on. If a model can tell the forms apart, **it can only do so by the words
# marked 1**. *to*, *it* and *tell* are there in every form, so they cannot help. For once we know the right answer
# before we ask for an explanation. The marks are called the **ground truth**.

# %% [markdown]
# ## One model
#
# The model is a *transformer*, a small one: all-MiniLM-L6-v2, which somebody else has trained on a billion pairs of
# sentences. It turns a sentence into a list of numbers. On top of it we put a *head*, one small layer that turns
# these numbers into three probabilities: F, M, NB. Only the head is new, and only the head learns.
#
# We give it a few dozen sentences to learn from, and test it on others.

# %%
names = np.random.default_rng(seed).permutation(
    [i for i in rows["sentence_idx"].unique() if i != ours["sentence_idx"][0]]
)
train = rows[rows["sentence_idx"].isin(names[:n_train])].reset_index(drop=True)
test = rows[rows["sentence_idx"].isin(names[n_train : n_train + n_test])].reset_index(
    drop=True
)
print(
    f"{len(train)} rows to learn from, {len(test)} to test on, classes {', '.join(CLASSES)}"
)

# %% [markdown]
# Three classes of equal size: somebody who guesses is right one time in three. What share of the test rows does our
# model get right, after forty passes over the training rows?

# %% tags=["nbval-ignore-output"]
trainer = Trainer("all-MiniLM-L6-v2", "", pick_device("cpu"))
found = trainer.train(
    "C",
    seed,
    train,
    pd.concat([test, ours], ignore_index=True),
    CLASSES,
    Settings(epochs=40, lr=0.01, batch_size=32),
)
model, tested = found.model, found.predictions
is_ours = tested["sentence_idx"] == ours["sentence_idx"][0]
accuracy = (tested["predicted"] == tested["target"])[~is_ours].mean()
stage.table(
    "accuracy",
    pd.DataFrame({"who": ["guessing", "the model"], "accuracy": [1 / 3, accuracy]}),
)

# %% [markdown]
# It has learnt something. And our own sentence? Here is what the model says of its three forms.

# %% tags=["nbval-ignore-output"]
probabilities = tested[is_ours][[f"p_{name}" for name in CLASSES]].reset_index(
    drop=True
)
stage.table("probabilities", probabilities.assign(form=list(CLASSES)), digits=2)

# %% [markdown]
# Each line is one form, each number a probability. The model takes the female form for female, with some confidence.
# **Why?** It cannot tell us. It is six layers of sums and products over twenty million learnt numbers. So people have
# invented methods that ask from outside.
#
# ## One attribution
#
# An **attribution method** gives every word a number: how much did this word move the model towards its answer?
# Positive means *towards*, negative means *away from*, zero means *made no difference*.
#
# The method that we use is called **Integrated Gradients**. It starts from the empty sentence, in which every word is
# blank, walks in small steps to the real one, and at every step asks: if I go on a little, how much does the
# probability of F rise, and through which word? It adds up what each word contributed on the way. One line is enough
# to call it. **Before you look:** the picture at the top shows the scores of all eleven words. What should they add up
# to?

# %% tags=["nbval-ignore-output"]
explained = explain(model, ours, "Integrated Gradients", {"n_steps": n_steps}).iloc[0]
words, scores, truth = (
    explained["words"],
    np.array(explained["scores"]),
    np.array(ours["ground_truth"][0]),
)
table = pd.DataFrame({"word": words, "ground_truth": truth, "score": scores})
stage.table("attribution", table)

# %% [markdown]
# The two *her* stand out, and *daughter* follows. *mother* gets nothing at all, although it says the same: the model
# has made up its mind by other words. *leaves* is marked 1 as well and gets next to nothing, and that is fair:
# *leaves* tells NB from the others (*they leave*), but F and M share it, so it is no sign of a female form.
#
# Can we trust these numbers at all? There is one check that needs no opinion, and it answers the question above. The
# walk began at the empty sentence and ended at the real one. So **the scores have to add up to the rise of the probability between the two**. This
# property is called completeness, and the difference that is left is called *delta*.

# %% tags=["nbval-ignore-output"]
rise = scores.sum() - explained["delta"]
check = pd.DataFrame(
    {
        "what": ["sum of the scores", "rise of the probability", "delta"],
        "value": [scores.sum(), rise, explained["delta"]],
    }
)
assert abs(explained["delta"]) < 0.01, (
    f"the scores miss the rise by {explained['delta']:.3f}; raise n_steps"
)
stage.table("completeness", check)

# %% [markdown]
# They agree.
#
# ## One metric
#
# Words in colour convince too easily. We want a number that can be compared. The studies use many; here is the simplest,
# **mass accuracy**. By hand:
#
# 1. Drop the signs. A word with -0.03 has drawn as much attention as one with 0.03.
# 2. Divide by the sum, so that all words together have one unit of attention, the *mass*.
# 3. Add up the mass on the words of the ground truth.
#
# 1 means that all attention lies on words that matter, 0 means that none does.

# %% tags=["nbval-ignore-output"]
mass = np.abs(scores) / np.abs(scores).sum()
by_hand = mass[truth == 1].sum()
assert np.isclose(
    by_hand, mass_accuracy(scores, truth)
)  # the library's function agrees
result = pd.DataFrame(
    {
        "explanation": ["Integrated Gradients", "noise, on average"],
        "mass_accuracy": [by_hand, truth_share(truth)],
    }
)
stage.table("mass_accuracy", result)

# %% [markdown]
# The second line is the important one. An "explanation" that gives all words the same, or that rolls dice, also
# reaches a mass accuracy: the share of marked words in the sentence, here 6 of 11. We call such things **floors**. A
# number without its floor beside it says little. Ours is well above: the explanation beats noise, and the model has
# beaten guessing.

# %%
assert by_hand > truth_share(truth), (
    f"the mass accuracy is {by_hand:.2f}, and noise has {truth_share(truth):.2f}; raise n_train"
)
assert accuracy > 1 / 3, (
    f"the accuracy is {accuracy:.2f}, that of a guess; raise n_train"
)

# %% [markdown] tags=["slide"]
# ## One floor
#
# Noise is easy to beat. Here is a floor that is not: give everything to the first pronoun of the sentence. This rule
# sees no model at all; in its place we hand in `None`. With its row, the picture from the top is complete.

# %% tags=["slide"]
rule = explain(None, ours, "First pronoun").iloc[0]["scores"]
rows_shown = {
    "The words that we changed": None,
    f"Integrated Gradients\n{mass_accuracy(scores, truth):.0%} on changed words": scores,
    f"A rule: the first pronoun\n{mass_accuracy(rule, truth):.0%}, and sees no model": rule,
}
sentence = pd.DataFrame(
    {"label": list(rows_shown), "scores": list(rows_shown.values())}
)
marks = ["changed" if is_truth else "" for is_truth in truth]
figure, _ = plot_words(
    sentence.assign(words=[words] * 3, marks=[marks] * 3),
    marks={"changed": "a word that we changed"},
    toward="speaks for the female form",
    title="An explanation points at the words that we changed. "
    "So does a rule without a model.",
)
stage.figure("sentence", figure)
plt.show()

# %% [markdown] tags=["slide"]
# The rule points at *She* and at nothing else. *She* is marked 1, so its mass accuracy is 1, more than Integrated
# Gradients reach. Yet it cannot tell us anything about the model, for it has never seen it. **A method that only does
# as well as such a rule has not shown that it explains the model.** This is why floors stand beside every number in
# this repository.
#
# ## Your own model
#
# All of this works for any classifier of Hugging Face `transformers`, in five lines:
#
# ```python
# from transformers import AutoModelForSequenceClassification, AutoTokenizer
# from lib.doors import explain_texts, wrap
# module = AutoModelForSequenceClassification.from_pretrained("path/or/name")
# model = wrap(module, AutoTokenizer.from_pretrained("path/or/name"))
# scores = explain_texts(model, ["She sings ."], "Integrated Gradients")  # or "LIME", "Kernel SHAP", "Occlusion", ...
# ```
#
# `wrap` checks what it is given: without word embeddings, class scores, or a tokenizer that knows its words, it says so. It
# also tries two texts: what explanations see must be what your model says of the plain text. The walk takes as many steps as it
# needs for a delta of at most 1 %. We pretend that the model above is yours. The scores stand below the words, and again as plain
# data in the table.

# %% tags=["nbval-ignore-output", "slide"]
mine = wrap(model.module, model.tokenizer, CLASSES)
own = explain_texts(
    mine,
    ["She leaves it to her brother .", "He leaves it to his sister ."],
    "Integrated Gradients",
)
labels = [f"{one.method}\nexplains {CLASSES[one.target]}" for one in own.itertuples()]
figure, _ = plot_words(own.assign(label=labels))
plt.show()
plain = word_list(own, CLASSES)
assert all(
    abs(one["delta"]) < 0.02 * abs(sum(score for _, score in one["words"])) + 1e-5
    for one in plain
)
lines = [
    (one["class"], one["method"], word, score)
    for one in plain
    for word, score in one["words"]
]
stage.table(
    "your_own", pd.DataFrame(lines, columns=["class", "method", "word", "score"])
)

# %% [markdown] tags=["slide"]
# It explains the class that the model predicts; name another one with `classes="F"`. Read the violet words, too: a *sister* speaks
# against M. Mind the floors all the same: on your texts nobody knows the right words. `explanations_to_html(own, CLASSES,
# page=True)` of `lib.plots` makes a page that you can save and send.
#
# ## What could be wrong
#
# Nearly everything, and that is what the studies are about:
#
# - It was one sentence, one model and one method. With another sentence the result may be worse. Do methods differ at
#   all, or do we see the luck of a sentence?
# - The rule scores 1 with a single word and leaves out five. Mass accuracy does not count what is left out.
# - We know what the *data* contain. What the *model* uses is another question: it may use half of it.
# - *Integrated Gradients* is one of about ten common methods. They disagree.
#
# ## Try it
#
# - Set `n_train = 5`. The model gets worse. Does the explanation?
# - In the explanation cell, write `"LIME"` or `"Saliency"` in place of `"Integrated Gradients"` (without the
#   settings).
# - Explain the NB form: `.iloc[2]`. Is *leave* still ignored?

# %% [markdown]
# ## Where to go from here
#
# Four published studies ask the same question, *can an explanation of a language model be trusted?*, each with
# another kind of ground truth. Each is told in the same five notebooks. Rows are what you read; columns are what they
# share.
#
# | | 01 data generation | 02 training | 03 attribution | 04 metrics | 05 figures |
# |---|---|---|---|---|---|
# | **geco** - which words were altered ([GECOBench](https://arxiv.org/abs/2406.11547)) | [text to three forms](geco/01_data_generation.ipynb) | [six ways to train](geco/02_training.ipynb) | [ten methods](geco/03_attribution.ipynb) | [scores, floors, claims](geco/04_metrics.ipynb) | [the paper's figures](geco/05_figures.ipynb) |
# | **lm_saliency** - which noun a verb agrees with ([Ding and Koehn](https://arxiv.org/abs/2104.05824)) | [four sets of agreement lines](lm_saliency/01_data_generation.ipynb) | [LSTM, QRNN, Transformer, probes](lm_saliency/02_training.ipynb) | [saliency of a prediction](lm_saliency/03_attribution.ipynb) | [plausibility, faithfulness](lm_saliency/04_metrics.ipynb) | [the paper's tables](lm_saliency/05_figures.ipynb) |
# | **cebab** - what people's edits do to a model ([CEBaB](https://arxiv.org/abs/2205.14140)) | [reviews, edits, a known world](cebab/01_data_generation.ipynb) | [star and aspect classifiers](cebab/02_training.ipynb) | [30 explainers of effects](cebab/03_attribution.ipynb) | [errors, floors, ceiling](cebab/04_metrics.ipynb) | [the paper's figures](cebab/05_figures.ipynb) |
# | **implicit_bias** - a pronoun that should be even ([Ye et al.](https://arxiv.org/abs/2110.01094)) | [a four-step filter](implicit_bias/01_data_generation.ipynb) | [a masked LM, swapped pronouns, a placebo](implicit_bias/02_training.ipynb) | [the pronoun's place, the words that drive it](implicit_bias/03_attribution.ipynb) | [bias(s), WEAT, claims](implicit_bias/04_metrics.ipynb) | [figures and verdicts](implicit_bias/05_figures.ipynb) |
#
# What this notebook made lies in `outputs/start_here/`:

# %%
stage.close(
    {
        "seed": seed,
        "n_threads": n_threads,
        "n_train": n_train,
        "n_test": n_test,
        "n_steps": n_steps,
    }
)

# %% [markdown]
# ## Hand-over
#
# No other notebook reads these files; each study begins with its own text. Begin with [GECO, stage
# 1](geco/01_data_generation.ipynb): where do sentences come from in which one knows the words that matter?

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np
import pandas as pd

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.metrics import mass_accuracy, truth_share

sentence = read_committed("start_here", "", "", "attribution")
sentence.round(2)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# An explanation of *She sings her song* gives the four words the scores .6, -.2, .3 and .4. *She* and *her* are ground truth. What is its mass accuracy?

# %% tags=["hole"]
by_hand = ...  # a number between 0 and 1

# %% tags=["solution"]
by_hand = (0.6 + 0.3) / (0.6 + 0.2 + 0.3 + 0.4)

# %% tags=["check"]
scores, truth = np.array([0.6, -0.2, 0.3, 0.4]), np.array([1, 0, 1, 0])
on_truth = scores[truth == 1].sum()
check_number(
    by_hand,
    mass_accuracy(scores, truth),
    {
        "the first step drops the signs, also of the words that are not marked.": on_truth
        / scores.sum(),
        "the second step divides, so that all words together have one unit.": on_truth,
        "that is the share of marked words, which is what noise reaches.": truth_share(
            truth
        ),
    },
    "Write down the four sizes, then the two that lie on marked words.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Predict
#
# The table above holds the scores of our sentence. We change them in two ways. What becomes of the mass accuracy: does it rise (`"a"`), fall (`"b"`) or stay as it was (`"c"`)? Decide before you compute.
#
# - We double the score of *it*, which is not marked.
# - We multiply all scores by -3.

# %% tags=["hole"]
it_is_doubled = ...  # "a", "b" or "c"
all_times_minus_3 = ...  # "a", "b" or "c"

# %% tags=["solution"]
it_is_doubled, all_times_minus_3 = "b", "c"

# %% [markdown] tags=["solution"]
# The first step drops the signs. The score of *it* is negative, and doubling it takes a larger part of the mass all the same. Multiplying everything by one number changes all sizes by one factor, and the second step divides it away.

# %% tags=["check"]
scores, truth = sentence["score"].to_numpy(), sentence["ground_truth"].to_numpy()
before = mass_accuracy(scores, truth)


def letter(changed):
    """How the mass accuracy moves with other scores."""
    move = mass_accuracy(changed, truth) - before
    return "c" if abs(move) < 1e-9 else "a" if move > 0 else "b"


sizes = "Is it the sign of a score that counts, or its size?"
whole = "Which of the two sums changes: that over marked words, or that over all?"
doubled = np.where(sentence["word"] == "it", 2 * scores, scores)
check_choice(
    it_is_doubled,
    letter(doubled),
    {"a": sizes, "b": whole, "c": whole},
    name="it_is_doubled",
)
check_choice(
    all_times_minus_3,
    letter(-3 * scores),
    dict.fromkeys("abc", sizes),
    name="all_times_minus_3",
)

# %% [markdown] tags=["exercise"]
# ### 3 · Write a function
#
# A floor never looks at the model. Write one that points at the longest word: 1 for the longest word of a sentence, 0 for every other. Where several are longest, take the first.


# %% tags=["hole"]
def longest_word(words):
    """One score a word."""
    return ...


# %% tags=["solution"]
def longest_word(words):
    """One score a word."""
    lengths = [len(word) for word in words]
    return [float(i == lengths.index(max(lengths))) for i in range(len(words))]


# %% tags=["check"]
def expected(words):
    """The first of the longest words."""
    first = max(range(len(words)), key=lambda i: (len(words[i]), -i))
    return [float(i == first) for i in range(len(words))]


check_function(
    longest_word,
    expected,
    {
        "Give every word a score, in the order of the words.": [["She", "sings", "."]],
        "Two words are longest here, and only the first gets 1.": [
            ["my", "cat", "sat"]
        ],
        "A sentence of one word has one score.": [["Go"]],
    },
)
words = sentence["word"].tolist()
reached = mass_accuracy(longest_word(words), sentence["ground_truth"])
print(
    f"On our sentence it reaches {reached:.2f}, and noise {truth_share(sentence['ground_truth']):.2f}."
)

# %% [markdown] tags=["exercise"]
# ### 4 · Change a parameter, and explain
#
# Integrated Gradients walks in `n_steps` steps, and its scores should add up to the rise of the answer. Here is a model of one number, for which we can say how far they miss it. Call `gap` with other numbers of steps. From which number on does it stay within .01 of zero? And why does a small number of steps miss?
#
# - `"a"` With few steps the model is trained less well.
# - `"b"` The answer rises on a short stretch of the path, and few steps hardly look there.
# - `"c"` Every step has a rounding error, and fewer steps have larger ones.


# %% tags=["exercise"]
def gap(n_steps):
    """The sum of the scores minus the rise of the answer, on a path from 0 to 1."""
    middles = (np.arange(n_steps) + 0.5) / n_steps

    def answer(x):
        return 1 / (1 + np.exp(-30 * (x - 0.4)))

    slopes = 30 * answer(middles) * (1 - answer(middles))
    return slopes.mean() - (answer(1.0) - answer(0.0))


pd.Series({n_steps: gap(n_steps) for n_steps in (1, 2, 4)}, name="gap").round(2)

# %% tags=["hole"]
n_steps_needed = ...  # a whole number
because = ...  # "a", "b" or "c"

# %% tags=["solution"]
gaps = np.array([abs(gap(n)) for n in range(1, 100)])
n_steps_needed = int(np.flatnonzero(gaps > 0.01).max()) + 2
because = "b"

# %% tags=["check"]
misses = [n for n in range(1, 100) if abs(gap(n)) > 0.01]
check_number(
    n_steps_needed,
    max(misses) + 1,
    {
        "a larger number misses again; look at those after it.": min(
            set(range(1, 100)) - set(misses)
        )
    },
    "Call gap for every number up to 30, and look where it leaves .01 for the last time.",
    tolerance=0,
    name="n_steps_needed",
)
check_choice(
    because,
    "b",
    {
        "a": "The model is fixed before the walk begins: nothing is trained here.",
        "c": "Rounding errors are far smaller than .01; print gap(1000).",
    },
    name="because",
)
