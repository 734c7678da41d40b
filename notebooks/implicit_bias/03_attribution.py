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
# [Start here](../00_start_here.ipynb) · before: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb) · words: [glossary](../../docs/glossary.md)
#
# We give every sentence that passed the filter to every model, with its pronoun masked. The paper compares the likeliest male word with the likeliest female one, and stops there.
# We add a question: which words of the sentence decide between *he* and *she*?

# %% [markdown] tags=["slide"]
# ## What we found
#
# - **The noun matters, but it does not decide alone.** By Integrated Gradients, the noun that the pronoun refers to gets
#   .20<!-- implicit_bias/cpu/03_attribution/by_role[method=Integrated Gradients].share --> of the attribution. If all words counted the same, it would get
#   .07<!-- implicit_bias/cpu/03_attribution/by_role[method=Integrated Gradients].even --> ([table](../../outputs/reference/implicit_bias/cpu/03_attribution/by_role.csv)).
# - **Some words push towards *he*, others towards *she*.** Of the words in at least five sentences, *kid*, *player* and *athlete* lead on the male side, and *hair* on the female one. Each of these
#   four occurs in fewer than ten sentences, so other texts may give other words ([figure](../../outputs/reference/implicit_bias/cpu/05_figures/drivers.png)).
# - **Two of our three methods agree somewhat; the third, Input x Gradient, agrees with neither.** Integrated Gradients and Occlusion have a rank correlation of
#   .48<!-- implicit_bias/cpu/03_attribution/controls[left=Integrated Gradients, right=Occlusion].agreement -->
#   ([table](../../outputs/reference/implicit_bias/cpu/03_attribution/controls.csv)).
#
# These results come from our ninth run at scale `cpu`, and are about its first base model.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how the probabilities at the mask become a bias score;
# - an explanation of the choice between *he* and *she*, with the words coloured;
# - checks that the explanation adds up, and whether methods agree beyond chance.
#
# **You can then** compute a bias score from a model's words, and compare an attribution with an even share.
# **You need** [stage 2](02_training.ipynb). **Time:** 15 minutes to read, half a minute to run, [15 minutes for the exercises](../../docs/course/exercises/implicit_bias.md#03-attribution).
#
# | in | from | holds |
# |---|---|---|
# | `sentences.parquet` | 01 | the sentences that passed, with masked words and slots |
# | `split.parquet`, `trainings.parquet`, `models/`, `gate.csv` | 02 | which nouns were held out; the models; which passed the gate |
#
# | out | holds |
# |---|---|
# | `probabilities.parquet` | for each model and sentence: probability and rank of the likeliest word of each gender |
# | `words.parquet` | the score of every word, for each explained sentence and method |
# | `vectors.parquet`, `phrases.parquet` | vectors and probabilities for the association test of stage 4 |
# | `example`, `completeness`, `by_role`, `drivers`, `figure`, `controls`, `gate`; with `transfer`, `occupations` (`.csv`) | what is shown below, and one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import numpy as np
import pandas as pd
import torch

from lib.attribution import captum_route
from lib.core.files import save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import MASK
from lib.metrics.masked_pronoun import bias_score, gender_probabilities
from lib.models.masked_gender import GenderAtMask
from lib.plots import FORM_NAMES, method_label, plot_words
from lib.stats import estimates
from lib.studies.implicit_bias import asked as questions
from lib.studies.implicit_bias.answers import Answers
from lib.studies.implicit_bias.figures import plot_drivers
from lib.studies.implicit_bias.naming import in_words
from lib.studies.implicit_bias.sentences import gendered_pronouns

# %% [markdown]
# ## Settings
#
# `transfer` names a second set of sentences. Winogender was written by others to test pronouns and occupations, so it shows whether a result carries over.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # which sentences are explained
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
# published masked LMs that are measured too, as {name on the hub: commit}
hub_models = {}
n_bases = 2  # base models; each is fine-tuned in every arm
n_seeds = 1  # fine-tuning runs of each arm from each base model
# models of `touchstone pretrain` to start from, one per base model; empty: the encoder
pretrained = []
reuse_units = False  # read and publish finished answers, ids and numbers
k = 10  # likeliest words that are looked at
# a further set of sentences: winogender (below TOUCHSTONE_DATA), or nothing
transfer = ""
methods = ["Integrated Gradients", "InputXGradient", "Occlusion"]  # who explains
tolerance = 0.02  # gap of Integrated Gradients, as a share of what is explained
n_explained = 40  # sentences that are explained; 0 for all

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $P(s \mid m)$, $P(s \mid f)$ | the probability of the likeliest male and of the likeliest female word at the mask (the paper's notation; it is not the probability of a sentence) | `p_M`, `p_F` |
# | $k$ | how many of the likeliest words are looked at | `k`, `rank_M`, `rank_F` |
# | $g(s)$ | $\log P(s \mid m) - \log P(s \mid f)$, which we explain | the score of class male |
# | slot | the pronoun's grammatical role: subject, object, possessive, independent (*hers*) or reflexive | `slot` |

# %%
stage = open_stage("implicit_bias", scale, "03_attribution")
set_up(seed, n_threads)
sentences = questions.filled_sentences(stage)
asking = Answers(stage, globals(), sentences)
models = questions.models_of(stage, globals())
gates = pd.read_csv(stage.input("02_training", "gate.csv"))
may_show = bool((gates["passes"] & (gates["model"] == "base")).any())
base = models[questions.explained_base(gates)]
print(f"{len(sentences)} sentences, {len(models)} models")

# %% [markdown]
# We explain the first base model that passed the gate of stage 2. If none passed, it is the first, and its words are not shown.

# %% tags=["nbval-ignore-output"]
in_words(
    stage.table("gate", gates),
    {"model": "model", "base": "base model", "right_first": "right gender first"}
    | {"passes": "passes the gate"},
)

# %% [markdown] tags=["slide"]
# ## 1 · One sentence by hand
#
# ![The sentence '(MASK) stands up next to someone .'. For the masked place a model gives He 0.435 and She 0.195. The bias is the first divided by both: 0.69.](../../docs/schematics/masked_pronoun.svg)
#
# The paper's example: BERT gives *He* a probability of .435 and *She* one of .195. The bias score is the first divided by the sum of both.
#
# **Stop and guess.** Now the masked token stands in "Someone winds up [MASK] right arm". Which of these two models is nearer to even?
#
# | model | *his* | *her* |
# |---|---|---|
# | BERT-uncased | .142 | .113 |
# | DistilBERT | .542 | .0305 |

# %%
uncased, distil = bias_score(0.142, 0.113), bias_score(0.542, 0.0305)
assert round(bias_score(0.435, 0.195), 2) == 0.69
assert round(uncased, 3) == 0.557 and round(distil, 3) == 0.947
print(f"BERT-uncased {uncased:.3f}, DistilBERT {distil:.3f}")

# %% [markdown]
# The next table shows the ten likeliest words that our model gives for a sentence of ours: *The runner checks [MASK] watch and speeds up.*

# %% tags=["nbval-ignore-output"]
top = asking.example(base)
top = stage.table("example", top if may_show else top.head(0), digits=4)
in_words(
    top.fillna("").replace({"gender": FORM_NAMES}),
    {"word": "word", "probability": "probability", "gender": "gender"},
)

# %% [markdown]
# Several words may be of one gender. The paper takes the largest probability, not the sum.
#
# ## 2 · What is a word of a gender?
#
# The paper takes "the word that refer to a female gender identity". That may be understood in three ways, and we compute all of them:
#
# - `pronouns`, which we report: all pronouns of a gender.
# - `identities`: nouns such as *girl* and *queen* as well.
# - `slot`: only the two pronouns that fit the place. Before a noun *her* competes with *his*, and as an object with *him*.

# %%
show_source(gender_probabilities)

# %% [markdown]
# We check it by hand with four words: *she* .1, *he* .6, *her* .2, and another one .1. The likeliest male word has rank 1, and *her*, the likeliest female word, has rank 2.

# %%
toy = gender_probabilities(
    torch.tensor([[0.1, 0.6, 0.2, 0.1]]).log(), {"F": [0, 2], "M": [1]}
)
assert toy.round(3).to_numpy().tolist() == [[0.2, 0.6, 2.0, 1.0]]
in_words(
    toy.round(3),
    {"p_F": "p, female", "p_M": "p, male"}
    | {"rank_F": "rank, female", "rank_M": "rank, male"},
)

# %% [markdown]
# ## 3 · All sentences, all models
#
# From here on *trained on* and *held out* say whether the fine-tuning of stage 2 has read sentences about the same noun.

# %%
in_words(
    asking.asked.groupby("part", sort=False)
    .agg(sentences=("part", "size"), nouns=("antecedent", "nunique"))
    .reset_index(),
    {"part": "part", "sentences": "sentences", "nouns": "different nouns"},
)

# %% [markdown]
# With Winogender we also count how often each occupation occurs in the models' training text.

# %%
if transfer:
    occupations = stage.table("occupations", asking.occupations(pretrained))
    counts = occupations.drop(columns="occupation").sum(axis=1)
    print(
        f"{len(counts)} occupations, in the text {counts.min()} to {counts.max()} times"
    )
else:
    print("no further set of sentences at this scale")

# %% [markdown]
# Each model fills all masks. We keep the probability of the likeliest word of each gender, and its rank among all words. So $k$ can be chosen later.

# %%
tables = [asking.probabilities(model) for model in models]
probabilities = pd.concat(tables, ignore_index=True)
save_parquet(probabilities, stage.path("probabilities.parquet"))
print(f"{len(probabilities)} rows")

# %% [markdown]
# Two facts must hold for any model. A longer list of words cannot have a smaller maximum. And no masked sentence may contain a gendered pronoun any more.

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
print("forms of the slot <= all pronouns <= all identities, in every row")

# %% [markdown] tags=["slide"]
# ## 4 · Which words decide?
#
# We explain $g(s) = \log P(s \mid m) - \log P(s \mid f)$. It is positive where the model prefers the male form.

# %%
show_source(GenderAtMask.logits)

# %% [markdown]
# Integrated Gradients walks from a sentence of padding to the real one and adds up the gradients on the way. This is how captum computes it:

# %%
show_source(captum_route.integrated_gradients)

# %% [markdown]
# Our version approximates the same integral, but it also chooses the points of the path at which the gradient is taken. It adds points where the gradient changes fast, until the attributions add up
# to the right sum. The remaining gap must be smaller than `tolerance`.

# %%
explained, found = asking.explained(), asking.explanations(base)
method_names = {name: method_label(name) for name in methods}
print(f"{len(explained)} sentences, {len(methods)} methods, {len(found)} explanations")

# %% [markdown] tags=["slide"]
# Here are three sentences. Orange words push towards *he*, striped violet ones towards *she*.

# %% tags=["slide"]
if may_show:
    shown = found[found["method"] == methods[0]].head(3)
    figure, _ = plot_words(
        shown.assign(label=[f"sentence {i}" for i in range(1, 1 + len(shown))]),
        toward="pushes towards he",
        title=f"Which words decide between he and she? {methods[0]}",
    )

# %% [markdown]
# Do the scores add up? They should sum to $g(s)$ minus $g$ of the padding. The *gap* is what is missing.

# %% tags=["nbval-ignore-output"]
if "steps" not in found:
    found["steps"] = np.nan
summed, gap = found["scores"].map(sum), found["delta"].astype(float)
checked = found.assign(gap=gap.abs(), share=(gap / (summed - gap)).abs())
checks = checked.groupby("method", sort=False)[["gap", "share", "steps"]].agg(
    ["median", "max"]
)
checks.columns = ["_".join(names) for names in checks.columns]
if "Integrated Gradients" in methods:
    largest = checks.loc["Integrated Gradients"]
    assert largest["share_max"] <= 1.01 * tolerance or largest["steps_max"] >= 1999
in_words(
    stage.table("completeness", checks.reset_index())
    .dropna(subset="gap_max")
    .replace(method_names),
    {"method": "method", "gap_median": "gap, median", "gap_max": "gap, largest"}
    | {"share_max": "largest, as a share", "steps_max": "points, at most"},
)

# %% [markdown]
# For Integrated Gradients, yes: no gap exceeds two percent. The other two methods make no such promise, so they have no row.
#
# How much of the attribution falls on the noun that the pronoun refers to? We give each word its share of the absolute scores. The mask counts in the total, but not as a word.


# %%
def with_roles(line, sentence):
    """One row per word: its score, its share, and whether it is the antecedent."""
    at = sentence["antecedent_at"]
    roles = [
        "mask" if w == MASK else "antecedent" if i == at else "other"
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
is_path = scores["method"] == "Integrated Gradients"
at_mask = scores[is_path & (scores["role"] == "mask")]
assert (at_mask["score"].abs() < 1e-6).all()

# %% [markdown]
# *Even share* is what the noun would get if all words counted the same. The interval is over nouns, in one model.

# %% tags=["nbval-ignore-output", "slide"]
part = scores[scores["role"] != "mask"]
sizes = part.groupby(["method", "row_id"])["word"].size()
share = part[part["role"] == "antecedent"].groupby(["method", "row_id"])["share"].sum()
roles = pd.DataFrame({"share": share, "even": 1 / sizes}).dropna().reset_index()
roles["sentence_idx"] = by_id.loc[roles["row_id"], "antecedent"].to_numpy()
of_noun = estimates(roles.assign(seed=0), ["method"], "share")
roles = roles.groupby("method")[["share", "even"]].mean().reset_index()
roles = roles.merge(of_noun[["method", "low", "high"]], on="method")
in_words(
    stage.table("by_role", roles).replace(method_names),
    {"method": "method", "share": "share of the noun", "low": "from"}
    | {"high": "to", "even": "even share"},
)

# %% [markdown] tags=["slide"]
# By every method the noun gets more than its even share. By every method the other words together get more than the noun.
#
# ## 5 · The words that push
#
# We average the scores of each word over the explained sentences. Words in fewer than three of them are left out, and the title names only words in at least five. As in the coloured
# sentences, orange points towards *he* and violet towards *she*. There are no intervals: most words occur in three to six sentences, too few for one.

# %% tags=["nbval-ignore-output", "slide"]
is_first = (scores["method"] == methods[0]) & (scores["role"] != "mask")
first = scores[is_first & scores["word"].str.isalpha()]
drivers = (
    first.groupby("word")
    .agg(mean=("score", "mean"), sentences=("row_id", "nunique"))
    .reset_index()
    .sort_values("mean")
)
drivers = drivers[drivers["sentences"] >= 3]
extremes = pd.concat([drivers.head(12), drivers.tail(12)]).drop_duplicates("word")
extremes = extremes.head(len(extremes) if may_show else 0).reset_index(drop=True)
stage.figure("drivers", plot_drivers(extremes))
_ = stage.table("figure", extremes)

# %% [markdown]
# This figure tells little about gender. No noun for a person stands in three of these 40 sentences, so most words that are left are function words such as *a* and *on*. The run at scale
# `cpu` explains more sentences, and there nouns such as *player* appear ([figure](../../outputs/reference/implicit_bias/cpu/05_figures/drivers.png)). And a mean score shows no cause. The table
# has the strongest words on either side.

# %% tags=["nbval-ignore-output"]
table = stage.table("drivers", extremes)
ends = pd.concat([table.head(3), table.tail(3)]).drop_duplicates("word")
in_words(ends, {"word": "word", "mean": "mean score", "sentences": "sentences"})

# %% [markdown] tags=["slide"]
# ## 6 · Do the methods agree?
#
# For every pair of methods we take the rank correlation within each sentence, mask included, and average it. The last column is a floor: what a shuffled copy of the first method reaches.


# %% tags=["nbval-ignore-output", "slide"]
def agreement(left, right, shuffle):
    """The mean rank correlation of two methods; with `shuffle`, of a shuffled one."""
    generator = np.random.default_rng(seed)
    of = {name: scores[scores["method"] == name] for name in (left, right)}
    a, b = (of[name].groupby("row_id")["score"].apply(list) for name in (left, right))
    return np.mean(
        [
            pd.Series(generator.permutation(x) if shuffle else x).corr(
                pd.Series(b[i]), method="spearman"
            )
            for i, x in a.items()
        ]
    )


pairs = [(a, b) for i, a in enumerate(methods) for b in methods[i + 1 :]]
columns = ["left", "right", "agreement", "shuffled"]
control = pd.DataFrame(
    [(a, b, agreement(a, b, False), agreement(a, b, True)) for a, b in pairs],
    columns=columns,
)
in_words(
    stage.table("controls", control).replace(method_names),
    {"left": "method", "right": "with", "agreement": "rank correlation"}
    | {"shuffled": "shuffled"},
)

# %% [markdown]
# Integrated Gradients and Occlusion agree clearly beyond chance. Input x Gradient agrees little with either (at `cpu` not at all): it uses only the slope at the sentence itself. The other two compare the sentence with
# one in which a word (Occlusion) or every word (Integrated Gradients) is padding.
#
# ## 7 · Vectors for stage 4
#
# Stage 4 asks whether a text lies nearer to male or to female words. For that, each word and each phrase gets three kinds of vectors:
#
# - `input`: the mean of its token embeddings.
# - `encoder`: the mean over its tokens in the encoder's last layer.
# - `template`: we put a word into "This is ...", a phrase into "The person ...", and take the mean over all tokens, as for `encoder`. Then we average over three such sentences.
#
# Each sentence gets one vector of the kind `encoder`, computed without its pronoun.

# %%
texts, table = asking.texts(), asking.vectors(base)
save_parquet(table, stage.path("vectors.parquet"))
n_words = sum(kind == "word" for kind, _ in texts)
print(f"{n_words} words, {len(texts) - n_words} phrases, {len(sentences)} sentences")

# %% [markdown]
# The phrases also get a bias score, from the mask in "The person [phrase] and then [MASK] went home."

# %%
asked_phrases = asking.phrases(base)
save_parquet(asked_phrases, stage.path("phrases.parquet"))
print(f"{len(asked_phrases)} phrases")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **P is a maximum.** The likeliest word of a gender may change on the path of Integrated Gradients. The scores still add up, as the table of gaps shows.
# - **One model is explained**, the first base model that passed the gate; where none did, the first, and its words are not shown.
# - **Padding is not a neutral word.** All scores are relative to what the model prefers at the mask when all other words are padding.
# - **An explanation shows what the model used**, not where the model learned it.
#
# ## Try it
#
# - Set `methods` to another list (LIME, Gradient SHAP). Which words stay?
# - Find a sentence with two nouns for persons. Which of them decides?
# - Set `k = 3` in stage 4. In how many sentences is one gender no longer among the likeliest words?
#
# Exercises with checks: [page](../../docs/course/exercises/implicit_bias.md#03-attribution).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) turns `probabilities.parquet` into bias scores, compares the arms of the fine-tuning, and runs the association tests on `vectors.parquet`.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# The exercises stand alone: run the next cell, and none of the cells above it. Replace the three dots by your answer. The check below tells you what is wrong with an answer, and
# does not reveal the right one.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words
from lib.metrics.masked_pronoun import bias_score

roles = read_committed("implicit_bias", "cpu", "03_attribution", "by_role")
human = {"method": "method", "share": "share of the noun", "even": "even share"}
in_words(roles.replace("InputXGradient", "Input x Gradient"), human)

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
# Write the bias score of a sentence from the model's words: `words` maps each word to its probability. Use *he, his, him* and *she, her, hers*. If the model gives no word of a gender, the
# probability of this gender is 0. If it gives no word of either gender, the score is .5.


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
        "The best word counts, not the sum.": [{"he": 0.1, "his": 0.3, "her": 0.1}],
        "*Him* and *hers* are words of a gender.": [{"him": 0.3, "hers": 0.2}],
        "A gender may be missing.": [{"she": 0.2, "it": 0.5}],
        "Either gender may be missing.": [{"he": 0.3}],
        "Both may be missing.": [{"it": 0.9}],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `roles` comes from the run at scale `cpu`. The *share of the noun* is the part of the absolute scores that falls on the antecedent, the noun that the pronoun refers to. The *even share* is what this noun would get if all words counted the same. What follows?
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
