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
# # implicit_bias, stage 3 of 5: what does the model put in the pronoun's place, and which words make it do so?
#
# [Start here](../00_start_here.ipynb) · before: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb)
#
# Every sentence that passed the filter is given to every model with its pronoun masked. The paper looks at the ten likeliest words and takes the best of each
# gender. Then the engine of the other studies asks a question that the paper did not: which words of the sentence decide between *he* and *she*?

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the probabilities of both genders, and what is counted as a word of a gender;
# - an explanation of log P(male) - log P(female), and a check that it adds up;
# - vectors of words, phrases and sentences for the association test of stage 4.
#
# **You can then** compute a bias score from a model's words, and read an attribution beside its even share.
# **You need** [stage 2](02_training.ipynb). **Time:** 15 minutes to read, half a minute to run, 15 minutes for the
# exercises.
#
# | in | from | holds |
# |---|---|---|
# | `sentences.parquet` | 01 | the sentences that passed, with masked words and slots |
# | `split.parquet`, `trainings.parquet`, `models/`, `gate.csv` | 02 | which antecedents were held out; the models; whether they may be measured |
#
# | out | holds |
# |---|---|
# | `probabilities.parquet` | for each model, sentence and choice of words: p and rank of the best word of each gender |
# | `words.parquet` | for each explained sentence and method the score of every word |
# | `vectors.parquet` | vectors of words, phrases and sentences of the base model |
# | `occupations` (with `transfer`) | how often each occupation stands in what the models read |
# | `example`, `completeness`, `drivers`, `by_role` (`.csv`), one figure | the example, the check, the words that drive the answers |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from lib.core.files import save_parquet
from lib.core.notebooks import show_source
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import MASK
from lib.metrics.masked_pronoun import bias_score, gender_probabilities
from lib.models.masked_gender import GenderAtMask
from lib.plots import COLOURS, STYLE
from lib.studies.implicit_bias.answers import Answers, fill
from lib.studies.implicit_bias.asked import (
    explained_base,
    filled_sentences,
    models_of,
    winogender,
)
from lib.studies.implicit_bias.sentences import gendered_pronouns

# %% [markdown]
# ## Settings
#
# `transfer` names a second set of sentences on which training is judged: Winogender, whose sentences were written by others for another purpose.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # which sentences are explained
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
hub_models = {}  # masked LMs of the hub that are measured beside it, by name: the commit
n_bases = 2  # trainings of the base model; each is trained on in every arm
n_seeds = 1  # trainings of each arm from each base model
pretrained = []  # models of `touchstone pretrain` that the base models start from, one each; empty: the encoder with a new head
reuse_units = False  # read and publish finished answers, ids and numbers
k = 10  # likeliest words that are looked at
# a further set of sentences: winogender (below TOUCHSTONE_DATA), or nothing
transfer = ""
methods = ["Integrated Gradients", "InputXGradient", "Occlusion"]  # who explains
tolerance = 0.02  # gap, as a share of what is explained, at which Integrated Gradients takes no more points
n_explained = 40  # sentences that are explained; 0 for all

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $P(s \mid m)$, $P(s \mid f)$ | the largest probability of a word of that gender at the mask | `p_M`, `p_F` |
# | $k$ | how many of the likeliest words are looked at | `k`, `rank_M`, `rank_F` |
# | $g(s)$ | log P(s\|m) - log P(s\|f), what is explained | the score of class male |
# | slot | what the pronoun does: subject, object, possessive, independent, reflexive | `slot` |

# %%
stage = open_stage("implicit_bias", scale, "03_attribution")
set_up(seed, n_threads)
sentences = filled_sentences(stage)
asking = Answers(stage, globals(), sentences)
models = models_of(stage, globals())
gates = pd.read_csv(stage.input("02_training", "gate.csv"))
may_show = bool((gates["passes"] & (gates["model"] == "base")).any())
base = models[explained_base(gates)]
print(f"{len(sentences)} sentences")

# %% [markdown]
# All that a model is asked here is a unit: computed once, by this notebook or by `touchstone unit`, and read again. The next cell says which base models passed the gate. The first of them is explained in what follows; what explains one that did not pass is not shown.

# %% tags=["nbval-ignore-output"]
stage.table("gate", gates)

# %% [markdown]
# ## 1 · One sentence by hand
#
# ![The sentence '(MASK) stands up next to someone .'. For the masked place a model gives He 0.435 and She 0.195. The bias is the first divided by both: 0.69.](../../docs/schematics/masked_pronoun.svg)
#
# The paper's own arithmetic first. BERT gives *He* 43.5 % and *She* 19.5 % in "[MASK] stands up next to someone.", so the bias is .435 / (.435 + .195). What do we
# expect for a possessive, where *his* has 14.2 % and *her* 11.3 %? A little over one half.

# %%
assert (
    round(bias_score(0.435, 0.195), 2) == 0.69
    and round(bias_score(0.142, 0.113), 3) == 0.557
    and round(bias_score(0.542, 0.0305), 3) == 0.947
)
print(round(bias_score(0.142, 0.113), 3), round(bias_score(0.542, 0.0305), 3))

# %% [markdown]
# The third is DistilBERT on the same sentence. Now a sentence of ours, and the ten likeliest words.

# %% tags=["nbval-ignore-output"]
top = asking.example(base)
stage.table("example", top, digits=4) if may_show else stage.table(
    "example", top.head(0)
)

# %% [markdown]
# *Reading it.* P is a *maximum* over the words of a gender, no sum, as the paper has it: a second form does not add to the first.
#
# ## 2 · What is a word of a gender?
#
# The paper says "the word that refers to a female gender identity", which may mean pronouns or also *girl* and *queen*. And in a possessive slot *her* competes with *his*, in
# an object slot with *him*, so one may compare forms of one slot alone. We keep all three: `pronouns` (the headline), `identities`, `slot`. Upper and lower case are folded.

# %%
show_source(gender_probabilities)

# %% [markdown]
# By hand, with a vocabulary of four words: she .1, he .6, her .2, something else .1. The best male word is first, the best female one second.

# %%
toy = gender_probabilities(
    torch.tensor([[0.1, 0.6, 0.2, 0.1]]).log(), {"F": [0, 2], "M": [1]}
)
assert toy.round(3).to_numpy().tolist() == [[0.2, 0.6, 2.0, 1.0]]
toy.round(3)

# %% [markdown]
# ## 3 · All sentences, all models
#
# Winogender's sentences join them where `transfer` says so: the male ones whose pronoun is the occupation's, masked, without nouns that an arm was trained on.

# %%
show_source(winogender)
asked = asking.asked
asked.groupby("part", sort=False).agg(
    sentences=("part", "size"), nouns=("antecedent", "nunique")
)

# %% [markdown]
# How often does each occupation stand in what the base models read? A model that never met a noun can say little of it.

# %%
if transfer:
    occupations = stage.table("occupations", asking.occupations(pretrained))
    counts = occupations.drop(columns="occupation").sum(axis=1)
    print(
        f"{len(counts)} occupations, the rarest {counts.min()} times, the most frequent {counts.max()} times"
    )
else:
    print("no further set of sentences at this scale")

# %% [markdown]
# A model fills all masks at once; for each of the three choices of words the best of each gender is kept, with its rank over the whole vocabulary, so that any $k$ can be
# chosen later.


# %%
show_source(fill)
tables = [asking.probabilities(model) for model in models]
probabilities = pd.concat(tables, ignore_index=True)
save_parquet(probabilities, stage.path("probabilities.parquet"))
print(f"{len(probabilities)} rows")

# %% [markdown]
# Two facts that hold whatever the model says: the best of a longer list is at least as likely, and a sentence with its pronoun masked does not know which pronoun it had.

# %%
wide = probabilities.pivot(
    index=["model", "base", "seed", "sentence_id"],
    columns="forms",
    values=["p_F", "p_M"],
)
assert all(
    (wide[p]["identities"] >= wide[p]["pronouns"] - 1e-9).all()
    and (wide[p]["pronouns"] >= wide[p]["slot"] - 1e-9).all()
    for p in ("p_F", "p_M")
)
assert not sentences["masked"].map(lambda words: bool(gendered_pronouns(words))).any()
print("a slot's forms <= all pronouns <= all identities, in every row")

# %% [markdown]
# ## 4 · Which words decide?
#
# The engine explains any function of the embeddings. Here it is $g(s)$ = log P(s|m) - log P(s|f), the score of class *male*. The mask stays where it is, like the other special tokens.

# %%
show_source(GenderAtMask.logits)

# %% [markdown]
# The scores of Integrated Gradients should sum to $g(s)$ minus $g$ of the sentence without its words, its change. Do they? The engine is told how closely (`tolerance`), and puts more points
# on the path where the score bends, until what is missed on its parts sums to no more than that share of the change. We explain a fixed draw of sentences.

# %%
show_source(asking.explanations)
explained, found = asking.explained(), asking.explanations(base)
print(f"{len(explained)} sentences, {len(methods)} methods, {len(found)} explanations")

# %% [markdown]
# The gap of each explanation, and how many points its path took:

# %%
if "steps" not in found:
    found["steps"] = np.nan
summed, gap = found["scores"].map(sum), found["delta"].astype(float)
checked = found.assign(gap=gap.abs(), share=(gap / (summed - gap)).abs())

# %% [markdown]
# *How to read the table.* `gap` is how far the sum of the scores is from what it should be, in units of $g(s)$, a difference of logarithms; `share` is the gap as a share of the change that is
# explained, `steps` how many points that took. Each with its median and maximum over sentences. Integrated Gradients alone promises a small gap.

# %% tags=["nbval-ignore-output"]
checks = checked.groupby("method", sort=False)[["gap", "share", "steps"]].agg(
    ["median", "max"]
)
checks.columns = ["_".join(names) for names in checks.columns]
if "Integrated Gradients" in methods:
    assert (
        checks.loc["Integrated Gradients", "share_max"] <= 1.01 * tolerance
        or checks.loc["Integrated Gradients", "steps_max"] >= 1999
    )
stage.table("completeness", checks.reset_index())

# %% [markdown]
# *Reading it.* Now it adds up. P is a maximum and the path from a sentence of padding bends, so points must stand where it does: 24 even ones, our first choice, left a median gap of .37 at scale cpu.
#
# What has word scores has roles: the antecedent, its neighbours, the rest. Integrated Gradients gives nothing to the mask, which its path leaves as it is; the mask is left out of what follows.


# %%
def with_roles(line, sentence):
    """A row a word: its score, and whether it is the antecedent, the mask, or another word."""
    roles = [
        "mask"
        if w == MASK
        else "antecedent"
        if i == sentence["antecedent_at"]
        else "other"
        for i, w in enumerate(line["words"])
    ]
    total = sum(map(abs, line["scores"])) or 1.0
    return pd.DataFrame(
        {
            "row_id": line["row_id"],
            "method": line["method"],
            "antecedent": sentence["antecedent"],
            "word": [w.lower() for w in line["words"]],
            "role": roles,
            "score": line["scores"],
            "share": [abs(x) / total for x in line["scores"]],
        }
    )


by_id = explained.set_index("sentence_id")
scores = pd.concat(
    [with_roles(line, by_id.loc[line["row_id"]]) for line in found.to_dict("records")],
    ignore_index=True,
)
save_parquet(scores, stage.path("words.parquet"))
along = scores[
    (scores["method"] == "Integrated Gradients") & (scores["role"] == "mask")
]
assert (along["score"].abs() < 1e-6).all()

# %% [markdown]
# *How to read the table.* `share` is the part of the absolute scores that falls on the antecedent, averaged over sentences; `even` is what it would get if all words were alike.

# %% tags=["nbval-ignore-output"]
part = scores[scores["role"] != "mask"]
sizes = part.groupby(["method", "row_id"])["word"].size()
share = part[part["role"] == "antecedent"].groupby(["method", "row_id"])["share"].sum()
roles = (
    pd.DataFrame({"share": share, "even": 1 / sizes})
    .dropna()
    .groupby("method")
    .mean()
    .reset_index()
)
stage.table("by_role", roles)

# %% [markdown]
# *Reading it.* A model that judged by the noun alone would give it everything. It gets more than its even share and most lies elsewhere, in whatever other words there are.
#
# Which words drive the answer? Positive scores push towards the male form. A word is listed if at least three explained sentences hold it; `sentences` says how many.

# %% tags=["nbval-ignore-output"]
first = scores[
    (scores["method"] == methods[0])
    & scores["word"].str.isalpha()
    & (scores["role"] != "mask")
]
drivers = (
    first.groupby("word")
    .agg(mean=("score", "mean"), sentences=("row_id", "nunique"))
    .reset_index()
    .sort_values("mean")
)
drivers = drivers[drivers["sentences"] >= 3]
extremes = (
    pd.concat([drivers.head(12), drivers.tail(12)]).drop_duplicates("word")
    if may_show
    else drivers.head(0)
)
stage.table("drivers", extremes.reset_index(drop=True))

# %% [markdown]
# ## 5 · Controls
#
# Do the methods agree, and do they agree more than with a shuffled copy of themselves?


# %% tags=["nbval-ignore-output"]
def agreement(first_method, second_method, shuffle):
    """Mean rank correlation of two methods over sentences; with one of them shuffled within each sentence, for comparison."""
    generator = np.random.default_rng(seed)
    both = [
        scores[(scores["method"] == m)].groupby("row_id")["score"].apply(list)
        for m in (first_method, second_method)
    ]
    return np.mean(
        [
            pd.Series(generator.permutation(a) if shuffle else a).corr(
                pd.Series(both[1][i]), method="spearman"
            )
            for i, a in both[0].items()
        ]
    )


pairs = [(a, b) for i, a in enumerate(methods) for b in methods[i + 1 :]]
control = pd.DataFrame(
    [
        {
            "left": a,
            "right": b,
            "agreement": agreement(a, b, False),
            "shuffled": agreement(a, b, True),
        }
        for a, b in pairs
    ],
    columns=[
        "left",
        "right",
        "agreement",
        "shuffled",
    ],  # also of a single method, which has no pair
)
stage.table("controls", control)

# %% [markdown]
# *Reading it.* A method whose agreement is hardly above its shuffled copy says something else than the others. Where that is InputXGradient, read Integrated Gradients and Occlusion.
# %% [markdown]
# ## 6 · Vectors for stage 4
#
# The association test compares vectors of words, phrases and sentences. For each text there are three: the mean of its rows in the word table (`input`), the mean over the encoder's
# last states (`encoder`), and the same in sentence templates (`template`). A sentence is taken without its pronoun.

# %%
texts, table = asking.texts(), asking.vectors(base)
save_parquet(table, stage.path("vectors.parquet"))
n_words = sum(kind == "word" for kind, _ in texts)
print(f"{n_words} words, {len(texts) - n_words} phrases, {len(sentences)} sentences")

# %% [markdown]
# For the phrases, too, the masked LM is asked: "The person [phrase] and then [MASK] went home."

# %%
asked_phrases = asking.phrases(base)
save_parquet(asked_phrases, stage.path("phrases.parquet"))
print(f"{len(asked_phrases)} phrases")

# %% [markdown]
# ## 7 · The figure
#
# The words with the largest mean scores, towards the female form on the left and towards the male form on the right.

# %% tags=["nbval-ignore-output"]
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    labels = [
        f"{word} ({n})" for word, n in zip(extremes["word"], extremes["sentences"])
    ]
    ax.barh(
        labels,
        extremes["mean"],
        color=[COLOURS[0] if x > 0 else COLOURS[3] for x in extremes["mean"]],
    )
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set(xlabel="mean score: towards female < 0 < towards male")
stage.figure("drivers", figure)
stage.table("figure", extremes.reset_index(drop=True))

# %% [markdown]
# In brackets the number of explained sentences with the word. So few sentences single out frequent words and no causes.
#
# ## What could be wrong
#
# - **The best word of a gender may change along the path** of Integrated Gradients, since P is a maximum; completeness still holds, and the table shows gap and steps.
# - **One model is explained**, the first base model that passed.
# - **Padding is no neutral word.** The score of a sentence without its words is the model's prior for the slot, and all scores are relative to it.
# - **An explanation says what the model used**, not where the model got it from.
# - **The processor.** The median gap of a method that adds up is rounding: other instructions move it by as much as it holds
#   (`tests/arithmetic.csv`).
#
# ## Try it
#
# - Set `methods` to another list of the engine (LIME, Gradient SHAP). Which words stay?
# - Explain a sentence of your own with two nouns for persons. Which of them decides?
# - Set `k = 3`. In how many sentences is one gender no longer among the likeliest words (stage 4 counts them)?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) makes bias scores of `probabilities.parquet`, judges the training arms, and runs the association tests on `vectors.parquet`.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.metrics.masked_pronoun import bias_score

roles = read_committed("implicit_bias", "cpu", "03_attribution", "by_role")
roles.round(3)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# At a mask a model gives *he* .42, *his* .06, *she* .14 and *her* .10. What is the bias score, with P the best word of a gender?

# %% tags=["hole"]
bias = ...

# %% tags=["solution"]
bias = 0.42 / (0.42 + 0.14)

# %% tags=["check"]
check_number(
    bias,
    bias_score(0.42, 0.14),
    {
        "P is the best word of a gender, not the sum.": bias_score(0.48, 0.24),
        "that is the female share.": bias_score(0.14, 0.42),
        "divide by the two probabilities that are compared.": 0.42,
    },
    "Two of the four numbers are needed.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write the score of a sentence from the model's words: `words` maps each word to its probability. Use *he, his, him* and *she, her, hers*. Without a word of one gender, its probability is 0; without any, the score is .5.


# %% tags=["hole"]
def bias_of(words):
    """A number from 0 (female) to 1 (male)."""
    return ...


# %% tags=["solution"]
def bias_of(words):
    """A number from 0 (female) to 1 (male)."""
    male = max(words.get(word, 0) for word in ("he", "his", "him"))
    female = max(words.get(word, 0) for word in ("she", "her", "hers"))
    return male / (male + female) if male + female else 0.5


# %% tags=["check"]
def expected(words):
    """By the library."""
    male, female = (
        max([words[word] for word in names if word in words], default=0)
        for names in (("he", "his", "him"), ("she", "her", "hers"))
    )
    return bias_score(male, female) if male or female else 0.5


check_function(
    bias_of,
    expected,
    {
        "Two words, one of each gender.": [{"he": 0.3, "she": 0.1}],
        "The best word counts, not the sum.": [{"he": 0.2, "his": 0.2, "her": 0.1}],
        "A gender may be missing.": [{"she": 0.2, "it": 0.5}],
        "Both may be missing.": [{"it": 0.9}],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `roles` is of the run at scale `cpu`: the part of the absolute scores that falls on the antecedent, the noun that the pronoun stands for, and what it would get if all words were alike (`even`). What follows?
#
# - `"a"` The model decides by the noun alone.
# - `"b"` The noun gets more than its even share, and most lies on other words.
# - `"c"` The noun has no part in it.

# %% tags=["hole"]
what_follows = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_follows = "b"

# %% tags=["check"]
assert (roles["share"] > roles["even"]).all() and (roles["share"] < 0.5).all()
check_choice(
    what_follows,
    "b",
    {
        "a": "What would the column share be then?",
        "c": "Compare share with even in every row.",
    },
)
