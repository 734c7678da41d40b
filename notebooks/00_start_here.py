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
# # Start here: which words made a model decide, and how would we know?
#
# Somebody hands a sentence to a language model, and the model says: this is about a woman. Which words told it so?
# Tools that explain models answer with a number for every word. Orange words speak for the answer, violet ones against
# it.
#
# ![One sentence in three rows: "She leaves it to her daughter to tell her mother." First row, the words that we changed: She, leaves, her, daughter, her, mother. Second row, what Integrated Gradients says: most on the first "her" (+0.37), then the second "her" (+0.24) and "daughter" (+0.11); 91 % on changed words. Third row, what a rule says that sees no model: all on "She", the first pronoun; 100 % on changed words.](../outputs/reference/start_here/sentence.png)
#
# The first row shows the only words that can carry evidence. We know them, because we made them. We wrote the same
# sentence about a man and about a non-binary person, and six words had to change.
#
# The second row is a popular method, and it does well. The third is a rule that anybody can follow with the computer
# switched off: point at the first pronoun. All of its weight lies on a changed word. So if we count the share of weight
# on changed words, the rule does better than the method.
#
# So an explanation can point at the right words and still tell us nothing about the model. How would we notice? Below
# you make this picture yourself, without a download or a GPU.
#
# ## What we found
#
# This notebook is about one sentence, the studies behind it about many. Three findings:
#
# - **Good methods point at the right words. So does a rule that never looks at the model.**
#   [See the figure](../outputs/reference/geco/cpu/05_figures.ipynb)
# - **A published winner can do worse than saying that nothing changes.** The CEBaB study asks how an edit of a review
#   changes a model's answer. By one of three measures, the best method of its paper has a larger error than the rule
#   *no edit changes anything*. [See which](../outputs/reference/cebab/cpu/05_figures.ipynb)
# - **A model that is fine-tuned on sentences with swapped pronouns treats *he* and *she* more equally.** About
#   half of that comes from reading both equally often. [See by how much](../outputs/reference/implicit_bias/cpu/05_figures.ipynb)
#
# Each page says how sure we are. Next: [GECO, stage 1](geco/01_data_generation.ipynb)

# %% [markdown] tags=["slide"]
# ## You will see
#
# - **one sentence**, written in three ways, so that we know which of its words carry the evidence;
# - **one model**, trained in front of you, that tells the three ways apart;
# - **one attribution**: a number for every word, which is meant to say how much the word moved the model;
# - **one metric**: a single number for how well the attribution points at the words that we changed;
# - **one floor**: the same number for a rule that never looks at the model.
#
# That is the idea of this repository.
#
# **You can then** compute mass accuracy by hand, and say why a number needs a floor beside it. **You need** to know
# what a probability is. **Time:** 15 minutes to read, under a minute to run, [20 minutes for
# the exercises](../docs/course/exercises/start_here.md#00-start-here).
#
# | In | Out |
# |---|---|
# | `geco/material/labels.yaml`: labelled sentences about characters of novels, written for this repository | `accuracy.csv`, `probabilities.csv`, `attribution.csv`, `completeness.csv`, `mass_accuracy.csv`, `your_own.csv`, the picture `sentence.png` |
#
# A word that you do not know is in the [glossary](../docs/glossary.md).

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.attribution import explain
from lib.core.notebooks import show_table
from lib.core.paths import material
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.doors import explain_texts, word_list, wrap
from lib.metrics import mass_accuracy, truth_share
from lib.plots import FORM_NAMES, plot_words
from lib.studies.geco.corpus import CLASSES
from lib.studies.geco.labels import labelled_rows, read_labels
from lib.training.classifier import Settings
from lib.training.transfer import Trainer

# %% [markdown]
# ## Settings
#
# Every notebook has a cell like the one below. It holds the settings that you can change. Others, such as `epochs`
# and `lr` (the learning rate), stand where the head is trained.

# %% tags=["parameters"]
seed = 0  # of every random choice
n_threads = 1  # CPU threads
n_train = 40  # sentences to learn from, each in three forms
n_test = 20  # sentences to test on, each in three forms
n_steps = 50  # points on the path of the attribution method

# %% [markdown] tags=["slide"]
# ## One sentence
#
# We have sentences from plot summaries of novels, each about a person. For each we wrote down how every word reads in a
# female (F), a male (M) and a non-binary (NB) form. The sentence below is our example; the model never trains on it.

# %% tags=["slide"]
set_up(seed, n_threads)
stage = open_stage("start_here", "", "")
labels = read_labels(material("geco") / "labels.yaml")
rows = labelled_rows(list(labels.values()), "all")
number = list(labels).index("north_and_south-02")
ours = rows[rows["sentence_idx"] == number].reset_index(drop=True)
print(f"{len(labels)} labelled sentences, {len(rows)} rows")
table = pd.DataFrame(
    zip(*ours["sentence"], ours["ground_truth"][0]), columns=[*CLASSES, "changes"]
)
show_table(table, FORM_NAMES | {"changes": "changes"})

# %% [markdown] tags=["slide"]
# In the last column a 1 marks a word that differs between the forms.
#
# Now the trick that everything rests on. If a model can tell the forms apart, **it can only do so by the words marked
# 1**. *to*, *it* and *tell* are there in every form, so they cannot help. For once we know the right answer before we
# ask for an explanation. The marks are called the **ground truth**.

# %% [markdown] tags=["slide"]
# ## One model
#
# The model is a *transformer*, a small one: all-MiniLM-L6-v2, which somebody else has trained on a billion pairs of
# sentences. It turns a sentence into a list of numbers. On top of it we put a *head*, one small layer that turns
# these numbers into three probabilities, one for each form. Only the head is new, and only the head learns.
#
# We give it a few dozen sentences to learn from, and test it on others.

# %%
others = [i for i in rows["sentence_idx"].unique() if i != number]
names = np.random.default_rng(seed).permutation(others)
train = rows[rows["sentence_idx"].isin(names[:n_train])].reset_index(drop=True)
test = rows[rows["sentence_idx"].isin(names[n_train : n_train + n_test])]
test = test.reset_index(drop=True)
print(f"{len(train)} rows to learn from, {len(test)} to test on")

# %% [markdown]
# The three classes have equal size, so a guess is right one time in three. Of forty passes over the training rows we
# keep the best. What share of the test rows does it get right?

# %% tags=["nbval-ignore-output"]
trainer = Trainer("all-MiniLM-L6-v2", "", pick_device("cpu"))
asked = pd.concat([test, ours], ignore_index=True)
settings = Settings(epochs=40, lr=0.01, batch_size=32)
trained = trainer.train("C", seed, train, asked, CLASSES, settings)
model, tested = trained.model, trained.predictions
is_ours = tested["sentence_idx"] == number
accuracy = (tested["predicted"] == tested["target"])[~is_ours].mean()
right = pd.DataFrame({"who": ["guessing", "the model"], "accuracy": [1 / 3, accuracy]})
show_table(stage.table("accuracy", right), {"who": "who", "accuracy": "share right"})

# %% [markdown]
# It has learnt something. And our own sentence, in its three forms?

# %% tags=["nbval-ignore-output", "slide"]
columns = {f"p_{form}": f"probability of {name}" for form, name in FORM_NAMES.items()}
probabilities = tested.loc[is_ours, list(columns)].reset_index(drop=True)
probabilities = stage.table(
    "probabilities", probabilities.assign(form=list(CLASSES)), 2
)
show_table(probabilities.replace({"form": FORM_NAMES}), {"form": "form"} | columns)

# %% [markdown] tags=["slide"]
# For each form the model gives the right class the highest probability. **Why?** It cannot tell us. It is six layers of
# sums and products over twenty million learnt numbers. So people have invented methods that explain it from outside.
#
# ## One attribution
#
# An **attribution method** gives every word a number: how much did this word move the model towards its answer?
# Positive means *towards*, negative means *away from*, zero means *made no difference*.
#
# Ours is called **Integrated Gradients**. To the model every word is a list of numbers. So we can start from an empty
# sentence, in which every word is blank, and change the numbers in small steps into those of the real one. At each step
# we measure how much the probability of *female* rises, and through which word. The score of a word is the sum of its parts.
# We take fifty steps.
#
# **Before you look:** what should the scores of all eleven words add up to?

# %% tags=["nbval-ignore-output", "slide"]
method, truth = "Integrated Gradients", np.array(ours["ground_truth"][0])
explained = explain(model, ours, method, {"n_steps": n_steps}).iloc[0]
words, scores = explained["words"], np.array(explained["scores"])
marks = ["changed" if is_truth else "" for is_truth in truth]
row = {"words": words, "scores": scores, "marks": marks, "label": method}
legend = {"changed": "a word that we changed"}
figure, _ = plot_words(pd.DataFrame([row]), legend, "speaks for the female form")
plt.show()
table = pd.DataFrame({"word": words, "ground_truth": truth, "score": scores})
_ = stage.table("attribution", table)

# %% [markdown] tags=["slide"]
# Both *her* have large scores, and *daughter* follows. The word *mother* gets nothing, although it shows the form as
# well. The word *leaves* was changed, too, and gets next to nothing. That is fair: the female and the male form both have
# *leaves*, so it cannot tell them apart.
#
# ## Do the scores add up?
#
# One check needs no opinion, and it answers the question above. We began at the empty sentence and ended at the real
# one. So **the scores have to add up to the rise of the probability between the two**. This property is called
# completeness, and the gap is called *delta*.
#
# ![The score on the way from an empty sentence to the real one rises by 1.00. The slopes at the middle of 3 equal steps, laid end to end, reach 1.34. The gap is +0.34; more steps make it smaller.](../docs/schematics/integrated_gradients.svg)
#
# In this drawing three steps are too few: their sum is too large by a third. Are fifty enough?

# %% tags=["nbval-ignore-output"]
delta = explained["delta"]
values = [scores.sum(), scores.sum() - delta, delta]
names = ["sum of the scores", "rise of the probability", "delta"]
check = pd.DataFrame({"what": names, "value": values})
assert abs(delta) < 0.01, f"the scores miss the rise by {delta:.3f}; raise n_steps"
show_table(stage.table("completeness", check), {"what": "what", "value": "value"})

# %% [markdown] tags=["slide"]
# They agree, so fifty steps are enough here.
#
# ## One metric
#
# Words in colour convince too easily. We want a number to compare. The studies use many; here is the simplest, **mass
# accuracy**. By hand:
#
# 1. Drop the signs. A word with -0.03 counts as much as one with 0.03.
# 2. Divide by the sum, so that all words together have one unit of *mass*.
# 3. Add up the mass on the words of the ground truth.
#
# 1 means that all mass lies on changed words, 0 that none does.

# %% tags=["nbval-ignore-output", "slide"]
mass = np.abs(scores) / np.abs(scores).sum()
by_hand = mass[truth == 1].sum()
assert np.isclose(by_hand, mass_accuracy(scores, truth))  # the library agrees
values = {method: by_hand, "noise, on average": truth_share(truth)}
result = pd.DataFrame(values.items(), columns=["explanation", "mass_accuracy"])
columns = {"explanation": "explanation", "mass_accuracy": "mass accuracy"}
show_table(stage.table("mass_accuracy", result), columns)

# %% [markdown] tags=["slide"]
# The second line matters most. Random numbers have a mass accuracy, too: on average the share of marked words, here 6
# of 11. Such a number is called a **floor**: what is reached without looking at the model. A result without its floor
# tells us little.
#
# Integrated Gradients is well above it, and the model is better than guessing.

# %%
noise = truth_share(truth)
assert by_hand > noise, f"mass accuracy {by_hand:.2f}, noise {noise:.2f}; raise n_train"
assert accuracy > 1 / 3, f"accuracy {accuracy:.2f}, that of a guess; raise n_train"

# %% [markdown] tags=["slide"]
# ## One floor
#
# Noise is easy to beat. The next floor is not: give everything to the first pronoun of the sentence. This rule uses no
# model at all, so we pass `None` instead of one. Now we can draw the picture from the top.

# %% tags=["slide"]
rule = explain(None, ours, "First pronoun").iloc[0]["scores"]
ours_says, rule_says = (mass_accuracy(part, truth) for part in (scores, rule))
rows_shown = {
    "The words that we changed": None,
    f"Integrated Gradients\n{ours_says:.0%} on changed words": scores,
    f"A rule: the first pronoun\n{rule_says:.0%}, and sees no model": rule,
}
sentence = pd.DataFrame(rows_shown.items(), columns=["label", "scores"])
figure, _ = plot_words(
    sentence.assign(words=[words] * 3, marks=[marks] * 3),
    marks=legend,
    toward="speaks for the female form",
    title="An explanation points at the words that we changed. "
    "So does a rule without a model.",
)
stage.figure("sentence", figure)
plt.show()

# %% [markdown] tags=["slide"]
# The rule points at *She* alone. *She* was changed, so the rule has a mass accuracy of 1, more than Integrated
# Gradients. Yet it tells us nothing about the model, because it never used it.
#
# **A method that only does as well as such a rule has not shown that it explains the model.** One sentence may be
# luck. Over many published sentences, methods and rules score like this:
#
# ![mass accuracy on a scale from 0 to 1: first pronoun 0.98, Integrated Gradients 0.87, LIME 0.57, Saliency 0.44, random 0.23. first pronoun, random never look at the model. The best of them, 0.98, is the floor: a method below it has not shown that it explains the model.](../docs/schematics/floor.svg)
#
# ## Your own model
#
# This works for any classifier of Hugging Face `transformers`, in five lines:
#
# ```python
# from transformers import AutoModelForSequenceClassification, AutoTokenizer
# from lib.doors import explain_texts, wrap
# module = AutoModelForSequenceClassification.from_pretrained("path/or/name")
# model = wrap(module, AutoTokenizer.from_pretrained("path/or/name"))
# scores = explain_texts(model, ["She sings ."], "Integrated Gradients")  # or "LIME"
# ```
#
# `wrap` checks your model first. The model must give the same answer to a text and to the word vectors of that text.
# Integrated Gradients takes as many steps as it needs for a delta of at most 1 %. Here we pretend that the model above
# is yours.

# %% tags=["nbval-ignore-output", "slide"]
mine = wrap(model.module, model.tokenizer, CLASSES)
texts = ["She leaves it to her brother .", "He leaves it to his sister ."]
own = explain_texts(mine, texts, "Integrated Gradients")
names = [FORM_NAMES[CLASSES[target]] for target in own["target"]]
headings = [f"{row}\nexplains: {name}" for row, name in zip(own["method"], names)]
figure, _ = plot_words(own.assign(label=headings))
plt.show()
lines = []
for text in word_list(own, CLASSES):
    rise = abs(sum(score for _, score in text["words"]))
    assert abs(text["delta"]) < 0.02 * rise + 1e-5
    lines += [(text["class"], text["method"], *word) for word in text["words"]]
plain = pd.DataFrame(lines, columns=["class", "method", "word", "score"])
_ = stage.table("your_own", plain)

# %% [markdown] tags=["slide"]
# We explain the class that the model predicts; choose another one with `classes="F"`. Violet words speak against it: in
# the first text *brother*, in the second *sister*. For your texts nobody knows the right words, so compare with floors.
# `explanations_to_html(own, CLASSES, page=True)` of `lib.plots` makes a page that you can save and send.
#
# ## What could be wrong
#
# Nearly everything. The studies are about that:
#
# - It was one sentence, one model and one method. With another sentence the result may be worse.
# - The rule finds one of six changed words, and nothing punishes the five it misses.
# - We know what the *data* contain. What the *model* uses is another question. Perhaps it uses only half of the changed
#   words.
# - *Integrated Gradients* is one of about ten common methods, and they disagree.
#
# ## Try it
#
# - Set `n_train = 5`. The model gets worse. Does the explanation?
# - For the attribution, write `"LIME"` or `"Saliency"`; drop `{"n_steps": n_steps}` and the check of `delta`.
# - Explain the non-binary form: `.iloc[2]`. Is *leave* still ignored?
#
# Exercises with checks: [page](../docs/course/exercises/start_here.md#00-start-here).

# %% [markdown]
# ## Where to go from here
#
# Four published studies ask: *can an explanation of a language model be trusted?* Each has another kind of ground
# truth. A fifth part, the *assay*, tests one explainer on all these kinds. All five parts have the same five notebooks.
#
# ![Five stages in a row: 01_data_generation, 02_training, 03_attribution, 04_metrics, 05_figures. Each reads what earlier ones left. Inside 03_attribution: units such as one model · LIME, one model · Saliency, finished one by one and kept; then the manifest, which lists explanations.parquet, overview.csv with their checksums. With the manifest the stage is complete.](../docs/schematics/stages.svg)
#
# | | 01 data generation | 02 training | 03 attribution | 04 metrics | 05 figures |
# |---|---|---|---|---|---|
# | **geco**: the words that were altered ([GECOBench](https://arxiv.org/abs/2406.11547)) | [text to three forms](geco/01_data_generation.ipynb) | [six ways to train](geco/02_training.ipynb) | [eight methods](geco/03_attribution.ipynb) | [scores, floors, claims](geco/04_metrics.ipynb) | [the paper's figures](geco/05_figures.ipynb) |
# | **lm_saliency**: the noun that a verb agrees with ([Ding and Koehn](https://arxiv.org/abs/2104.05824)) | [agreement lines](lm_saliency/01_data_generation.ipynb) | [language models, probes](lm_saliency/02_training.ipynb) | [saliency of a prediction](lm_saliency/03_attribution.ipynb) | [plausible? faithful?](lm_saliency/04_metrics.ipynb) | [the paper's tables](lm_saliency/05_figures.ipynb) |
# | **cebab**: what people's edits do to a model ([CEBaB](https://arxiv.org/abs/2205.14140)) | [reviews, edits, a known world](cebab/01_data_generation.ipynb) | [star and aspect classifiers](cebab/02_training.ipynb) | [27 explainers of effects](cebab/03_attribution.ipynb) | [errors, floors, ceiling](cebab/04_metrics.ipynb) | [the paper's figures](cebab/05_figures.ipynb) |
# | **implicit_bias**: *he* and *she* where both fit ([Ye et al.](https://arxiv.org/abs/2110.01094)) | [a four-step filter](implicit_bias/01_data_generation.ipynb) | [a masked model, swapped pronouns](implicit_bias/02_training.ipynb) | [the words that drive the pronoun](implicit_bias/03_attribution.ipynb) | [bias, word lists, claims](implicit_bias/04_metrics.ipynb) | [figures and verdicts](implicit_bias/05_figures.ipynb) |
# | **assay**: one explainer, every truth ([more](assay/README.md)) | [items](assay/01_data_generation.ipynb) | [what the models say](assay/02_training.ipynb) | [explainers](assay/03_attribution.ipynb) | [one scale](assay/04_metrics.ipynb) | [one figure](assay/05_figures.ipynb) |
#
# What this notebook made lies in `outputs/start_here/`.

# %%
_ = stage.close(
    {
        "seed": seed,
        "n_threads": n_threads,
        "n_train": n_train,
        "n_test": n_test,
        "n_steps": n_steps,
    }
)

# %% [markdown]
# No other notebook reads these files. Begin with [GECO, stage 1](geco/01_data_generation.ipynb): how do you get
# sentences in which you know the words that matter?

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
from lib.core.notebooks import in_words
from lib.metrics import mass_accuracy, truth_share

sentence = read_committed("start_here", "", "", "attribution")
human = {"word": "word", "ground_truth": "ground truth", "score": "score"}
in_words(sentence.round(2), human)

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
# The first step drops the signs. The word *it* has a negative score, but only its size counts. If we double this score, a larger part of the mass lies on an unmarked word. Multiplying everything by one number changes all sizes by one factor, and the second step divides it away.

# %% tags=["check"]
scores, truth = sentence["score"].to_numpy(), sentence["ground_truth"].to_numpy()
before = mass_accuracy(scores, truth)


def letter(changed):
    """How the mass accuracy moves with other scores."""
    move = mass_accuracy(changed, truth) - before
    return "c" if abs(move) < 1e-9 else "a" if move > 0 else "b"


sizes = "Is it the sign of a score that counts, or its size?"
factor = "Every size changes by the same factor. What does the division by their sum do to it?"
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
    {"a": factor, "b": factor},
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
        "The longest word comes twice, and only its first place gets 1.": [
            ["has", "her", "cats", "cats"]
        ],
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
# Integrated Gradients walks in `n_steps` steps, and its scores should add up to the rise of the answer. Below is a model whose input is a single number. The function `gap` says by how much the sum of its scores misses the rise. Call `gap` with other numbers of steps. From which number on does it stay within .01 of zero? And why does a small number of steps miss?
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


gaps_of = pd.Series({n_steps: gap(n_steps) for n_steps in (1, 2, 4)}, name="gap")
gaps_of.rename_axis("steps").round(2)

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
    hint="Call gap for every number up to 30 in a loop: which is the last that misses by more than .01?",
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
