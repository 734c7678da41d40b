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
# # implicit_bias, stage 2 of 5: can a masked language model be made less biased by the sentences that show its bias?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb) · words: [glossary](../../docs/glossary.md)
#
# The paper reports the bias of two published models. It ends with a question: would its sentences help to *reduce* that bias? To find out, we train masked language models, the *base
# models*. Then we fine-tune each of them on the sentences, with and without swapped pronouns.

# %% [markdown] tags=["slide"]
# ## What we found
#
# - **Our models know who is *she*, and who is *he*.** 5<!-- count implicit_bias/cpu/02_training/gate[model=base, passes=True] --> of
#   5<!-- count implicit_bias/cpu/02_training/gate[model=base] --> base models put the right pronoun first in at least 90 % of sentences where the noun decides.
#   The best is right in 98 %<!-- max implicit_bias/cpu/02_training/gate[model=base].right_first --> ([table](../../outputs/reference/implicit_bias/cpu/02_training/gate.csv)).
# - **Made-up sentences teach part of it.** Without those, a model is right in
#   76 %<!-- implicit_bias/cpu/02_training/gate[model=without frames].right_first --> of the cases. Guessing would give half.
# - **Fine-tuning hardly changes how well the models fill masks.** Their perplexity (lower is better) is
#   72<!-- implicit_bias/cpu/04_metrics/price[model=base].perplexity --> before it and 72<!-- implicit_bias/cpu/04_metrics/price[model=augmented].perplexity --> after it, with swapped pronouns ([figure](../../outputs/reference/implicit_bias/cpu/02_training/perplexity.png)).
#
# These results come from our ninth run at scale `cpu`, with five base models that read old books first, and learn only in the upper half of their layers.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - a small encoder that learns to fill gaps;
# - a test that tells whether its bias score means anything;
# - three ways to fine-tune it, of which two are controls, and what each costs.
#
# **You can then** compute a perplexity, swap pronouns, and say what a gate and a placebo are for. **You need**
# [stage 1](01_data_generation.ipynb). **Time:** 20 minutes to read, 5 minutes to run, [15 minutes for the exercises](../../docs/course/exercises/implicit_bias.md#02-training).
#
# | in | from | holds |
# |---|---|---|
# | `text.parquet` | 01 | sentences to learn from, and to measure perplexity on |
# | `sentences.parquet` | 01 | the sentences that passed the filter |
#
# | out | holds |
# |---|---|
# | `models/base<b>`, `models/<arm>/base<b>_seed<k>` | trained weights and their recipes |
# | `trainings.parquet` | one row per trained model: its key, and the checksum of its weights |
# | `split.parquet` | which nouns were fine-tuned on and which were held out |
# | `reached`, `curves`, `gate`, `mixture`, `wrong`, `perplexity`, `arms` (`.csv`) | how the training went, and how good the models are |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import math

import pandas as pd
import torch

from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.models.masked_lm import new_masked_lm, pretrained_masked_lm
from lib.plots import FORM_NAMES
from lib.studies.implicit_bias import arms
from lib.studies.implicit_bias.figures import plot_costs
from lib.studies.implicit_bias.gate import right_answers, share_right
from lib.studies.implicit_bias.kept_models import passes_gate
from lib.studies.implicit_bias.naming import MODELS, in_words
from lib.studies.implicit_bias.trainings import Trainings
from lib.training import masked_lm

# %% [markdown]
# ## Settings
#
# We start from all-MiniLM-L6-v2, a sentence encoder that comes with this repository. It was never meant to fill gaps, so it gets a new head for that, drawn at random.
# You will meet three words below:
#
# - a *frame* is a sentence pattern in which the noun fixes the pronoun, as in "The waitress opened her umbrella";
# - an *arm* is one way to fine-tune, as in a medical trial;
# - to *rehearse* is to mix sentences of the base model's training into the fine-tuning, so that less is forgotten.
#
# `gate` is the share of right answers that a model needs in the test of section 3: .85 here, .9 at scale `cpu`. Each entry of `mixtures` is a pair: the highest learning rate of an arm, and how many
# sentences are rehearsed for each sentence of the arm.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # what is drawn for training
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
# the encoder that gets a head: the packaged one, a folder, or a hub id
encoder = "all-MiniLM-L6-v2"
encoder_revision = ""  # the commit of a hub id
# published masked LMs that are measured too, as {name on the hub: commit}
hub_models = {}
epochs = 2  # passes over the text
lr = 0.0005  # highest learning rate
batch_tokens = 512  # tokens per step
masked = 0.15  # share of tokens to predict
base_masked = 0.15  # the same while a base model is trained
base_tuned = "encoder"  # layers that a base model trains: encoder (all), upper (half)
watched_share = 0.5  # share of pronouns to predict
# share of unambiguous sentences that a model must answer rightly
gate = 0.85
held_out = 0.5  # share of nouns that no arm is fine-tuned on
n_bases = 2  # base models; each is fine-tuned in every arm
# models of `touchstone pretrain` to start from, one per base model; empty: the encoder
pretrained = []
checks = 1  # how often per epoch held-out text is measured, for base models
reuse_units = False  # read and publish finished trainings, without weights
n_seeds = 1  # fine-tuning runs of each arm from each base model
arm_epochs = 1  # passes over an arm's sentences
# highest learning rate of an arm, and rehearsed sentences for each of its own
mixtures = [[0.0001, 3.0]]
rehearsed_frames = 0.75  # share of frames among the rehearsed sentences

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $P(w \mid s)$ | the probability of a word at the mask | `log_prob` |
# | PPL | exp of the mean negative log-probability of masked words | `perplexity` |
# | base | the encoder with its trained head | `bases` |
# | arms | *placebo*, *even placebo* and *augmented*, explained in section 4 | `arms.ARMS` |

# %%
stage = open_stage("implicit_bias", scale, "02_training")
set_up(seed, n_threads)
target = pick_device(device)
if not encoder:
    raise TouchstoneError(
        "encoder is empty; name the encoder that is trained "
        "(hub_models come in addition)"
    )
trainings = Trainings(stage, globals())
train, valid, sentences = trainings.train, trainings.valid, trainings.sentences
print(f"{len(train)} sentences to learn from, {len(valid)} to measure on")
print(f"{len(sentences)} sentences passed the filter")

# %% [markdown] tags=["slide"]
# ## 1 · Masked tokens by hand
#
# A masked language model learns by predicting tokens that it cannot see (Devlin et al. 2019). Of every sentence 15 % of the tokens are chosen. Most of these are masked;
# one in ten is replaced by another token, and one in ten stays.
#
# **Stop and guess.** A sentence has 20 tokens. How many will be chosen, on average? And how often will the special tokens at its beginning and end be chosen?

# %%
ids = torch.tensor([[101, *range(2000, 2020), 102]])  # 101 and 102 are the marks
inputs, targets = masked_lm.mask_tokens(
    ids, [0, 101, 102, 103], 103, 30522, masked, torch.Generator().manual_seed(1)
)
chosen = (targets != -100)[0]
assert not chosen[0] and not chosen[-1]
assert torch.equal(inputs[0][~chosen], ids[0][~chosen])
became = [
    "masked" if new == 103 else "kept" if new == old else "replaced"
    for new, old in zip(inputs[0][chosen], ids[0][chosen])
]
print(f"chosen: {int(chosen.sum())} of 20 ({', '.join(became)})")

# %% [markdown]
# Three tokens are chosen on average, and the special tokens never. In this draw there are fewer. This is the function:

# %%
show_source(masked_lm.mask_tokens)

# %% [markdown]
# ## 2 · The base models
#
# The head is BERT's: a dense layer, an activation, a LayerNorm and the transposed matrix of token embeddings. Pronouns are chosen more often than other tokens, because they are what we study.
#
# A single model cannot show how much models of the same kind differ, so we train several. They differ in the random head, in the order of the text, and in the tokens that are masked.

# %%
bases = [trainings.base(b) for b in range(n_bases)]
fresh = new_masked_lm(encoder, seed, encoder_revision)
learning = sum(p.numel() for p in fresh.trained_parameters(base_tuned).values())
print(f"{n_bases} base models; {learning / 1e6:.1f} million parameters are trained")

# %% [markdown]
# The perplexity is that of masked tokens in sentences that were not trained on. The vocabulary has 30,522 entries, so blind guessing would have a perplexity of 30,522.

# %% tags=["nbval-ignore-output"]
curves = [training.curve.assign(base=b) for b, training in enumerate(bases)]
in_words(
    stage.table("curves", pd.concat(curves, ignore_index=True), digits=2),
    {"base": "base model", "epoch": "epoch"}
    | {"train_loss": "training loss", "perplexity": "perplexity, held-out text"},
)

# %% [markdown]
# Have the base models been trained long enough? Before the sixth run at scale `cpu` we fixed two ways to say yes. Either the perplexity is at most 80, or it fell by less than 2 % (.02 in the column
# *gain*) over the last half of the steps.

# %% tags=["nbval-ignore-output"]
reached = pd.DataFrame(
    [
        {
            "base": t.base,
            "start": pretrained[t.base] if pretrained else encoder,
            "perplexity": t.perplexity,
            **{f"on_{source}": value for source, value in t.on_sources().items()},
            "gain": t.gain(),
        }
        for t in bases
    ]
)
reached["reached"] = (reached["perplexity"] <= 80) | (reached["gain"] < 0.02)
in_words(
    stage.table("reached", reached, digits=2),
    {"base": "base model", "start": "starts from", "perplexity": "perplexity"}
    | {"gain": "gain, last half", "reached": "far enough"},
)

# %% [markdown] tags=["slide"]
# A model that falls short is reported and kept. None gets there here; at scale `cpu` all do.
#
# ## 3 · The gate
#
# If a model does not connect *duchess* with *she*, an even score for *nurse* means nothing: the model is ignorant, not fair. So every model takes a test, the *gate*, and we say who fails.
# It has to put the right gender first in most unambiguous sentences. And its perplexity must be lower than that of a *unigram* model, which knows only how frequent each word is. The text of
# stage 1 does not contain the nouns of the gate.

# %%
unambiguous = trainings.questions["gate"]
learnt = {word.lower() for words in train for word in words}
known = set(unambiguous["noun"]) & learnt
assert len(unambiguous) >= 200 and not known, (
    f"{len(unambiguous)} sentences, nouns that are trained on: {sorted(known)}; "
    "the gate needs 200 or more, and other nouns than the training: correct gate.yaml"
)
genders = unambiguous["gender"].map(FORM_NAMES).value_counts()
print(
    f"{len(unambiguous)} sentences: {genders['female']} female, {genders['male']} male"
)

# %% [markdown]
# This function decides, for any model, which answers are right:

# %%
show_source(right_answers)

# %% [markdown]
# We compare each base model with two others: a model whose head is untrained, and a model that read no frames. Those of `hub_models` join, if any are named.


# %% tags=["nbval-ignore-output", "slide"]
def at_gate(model):
    """The share of right answers, with its interval over nouns."""
    return share_right(right_answers(model, unambiguous), unambiguous["noun"])


def line(name, base, right, perplexity, unigram):
    """A row of the table."""
    return {"model": name, "base": base, **right} | {
        "perplexity": perplexity,
        "unigram": unigram,
    }


untrained = at_gate(fresh)
encoded = fresh.encode(valid)
unigram = masked_lm.unigram_perplexity(fresh, fresh.encode(train), encoded)
rows = [line("untrained head", -1, untrained, math.nan, unigram)]
own_models = [("base", b, training) for b, training in enumerate(bases)]
for name, b, t in [*own_models, ("without frames", -1, trainings.without_frames())]:
    right = share_right(t.right(), unambiguous["noun"])
    rows.append(line(name, b, right, t.perplexity, unigram))
for name, revision in hub_models.items():
    other = pretrained_masked_lm(name, revision)
    other.module.to(target)
    own, read = other.encode(valid), other.encode(train)
    perplexity = masked_lm.masked_perplexity(other, own)
    frequencies = masked_lm.unigram_perplexity(other, read, own)
    rows.append(line(name, -1, at_gate(other), perplexity, frequencies))
gates = pd.DataFrame(rows)
gates["passes"] = passes_gate(gates, gate)
in_words(
    stage.table("gate", gates),
    {"model": "model", "base": "base model", "right_first": "right gender first"}
    | {"right_low": "from", "right_high": "to", "perplexity": "perplexity"}
    | {"unigram": "unigram perplexity", "passes": "passes"},
)

# %% [markdown] tags=["slide"]
# Both base models pass, and the untrained head guesses. The model without frames fails: the frames teach what the gate tests, with other nouns. It serves for comparison only.
#
# One more check before we go on. `[MASK]` is the masked token. In "The duchess opened [MASK] letter." a pronoun must be among the five words that the model finds
# likeliest for the mask.

# %%
rank = bases[0].number("rank")
assert rank <= 5 and untrained["right_first"] < gate, (
    f"the likeliest pronoun has rank {rank:.0f}, and the untrained model has "
    f"{untrained['right_first']:.2f}; raise epochs or n_frames, and set gate ({gate}) "
    "above the untrained model"
)
print("a pronoun is among the five likeliest words")

# %% [markdown] tags=["slide"]
# ## 4 · Three arms
#
# > "we should evaluate the efficacy of our generated examples on reducing gender bias" (section 6, left open)
#
# ![Of 3 sentences (player: his, rider: his, nurse: her) each arm makes 6 for fine-tuning. placebo: player: his, player: his, rider: his, rider: his, nurse: her, nurse: her; even placebo: nurse: her, nurse: her, nurse: her, player: his, rider: his, rider: his; augmented: player: his, player: her, rider: his, rider: her, nurse: her, nurse: his. Swapped pronouns are bold and underlined.](../../docs/schematics/arms.svg)
#
# *Augmented* is the treatment: the model reads each sentence in both genders. Suppose that its scores come closer to even. There would be three explanations, and two further arms separate them.
#
# - Reading more of such sentences may be enough. The *placebo* reads each sentence twice, as it is.
# - Reading *he* and *she* equally often may be enough. In the *even placebo* nothing is swapped, but sentences are repeated so that half of them have a male pronoun.
# - Otherwise it is the swap itself: the same sentence with *he* and with *she*.

# %%
show_source(arms.arm_text)
show_source(arms.evenly)

# %% [markdown]
# We check the definitions on our sentences. All arms read the same number of sentences.


# %%
def male_share(texts):
    """The share of male pronouns in sentences that hold one gendered pronoun each."""
    words = [word.lower() for text in texts for word in text]
    genders = [PRONOUNS[word] for word in words if word in PRONOUNS]
    return genders.count("M") / len(genders)


own = {arm: arms.arm_text(sentences, arm, 0, seed) for arm in arms.ARMS}
assert len({len(text) for text in own.values()}) == 1
assert own["placebo"][0] == own["placebo"][1]
assert male_share(own["augmented"]) == male_share(own["even placebo"]) == 0.5
print(f"{len(own['placebo'])} sentences per arm")
print(f"share of male pronouns in the placebo: {male_share(own['placebo']):.2f}")

# %% [markdown]
# Where do we measure? If we measured a model on the sentences that it was fine-tuned on, the answer would be circular. So we divide the *nouns*: the arms are fine-tuned on sentences
# about one half of them, and the other half is *held out*.

# %%
show_source(arms.is_held_out)
save_parquet(
    sentences[["sentence_id", "antecedent", "part"]], stage.path("split.parquet")
)
about = sentences.groupby("part").agg(
    sentences=("part", "size"),
    antecedents=("antecedent", "nunique"),
    male=("gender", lambda g: (g == "M").mean()),
)
assert (about["antecedents"] >= 5).all(), (
    f"antecedents by part: {about['antecedents'].to_dict()}; each needs 5: hand in "
    "more sentences, or set held_out nearer to 0.5"
)
in_words(
    about.round(2).reset_index(),
    {"part": "nouns", "sentences": "sentences", "antecedents": "different nouns"}
    | {"male": "share of male pronouns"},
)

# %% [markdown]
# ## 5 · Rehearsing, so that less is forgotten
#
# A model that reads only a few hundred such sentences may forget what the frames taught it. So all arms rehearse: they also read some sentences of the base model's training, mostly frames.


# %%
show_source(arms.rehearsed)
n_read = len(trainings.arm_text("augmented", 0, mixtures[0][1]))
print(f"{n_read} sentences per arm, with those rehearsed")

# %% [markdown]
# How many sentences are rehearsed, and how high is the learning rate? Where several settings are listed, the first *safe* one is taken. A setting is safe if a *placebo* model and
# an *augmented* model meet two conditions. First, each still gets enough of 40 other unambiguous sentences right. Second, its perplexity on held-out text is not higher than that of the base model.
# If no earlier setting is safe, the last one is taken. No bias score enters this choice, and the runs tried for it are not used again.

# %%
show_source(trainings.is_safe)
choice = trainings.chosen_mixture()
mixture = pd.DataFrame(mixtures, columns=["rate", "rehearsal"])
mixture["chosen"] = [i == choice for i in range(len(mixtures))]
in_words(
    stage.table("mixture", mixture, digits=6),
    {"rate": "highest learning rate", "rehearsal": "rehearsed per sentence"}
    | {"chosen": "chosen"},
)

# %% [markdown]
# Now every arm starts from every base model. Augmented and placebo share masks and order; the even placebo reads other copies.

# %%
started = [trainings.arm(*place, choice) for place in trainings.arms()]
kept = [(training.name, training.key, training.sha256) for training in bases + started]
save_parquet(
    pd.DataFrame(kept, columns=["name", "key", "sha256"]),
    stage.path("trainings.parquet"),
)
print(f"{len(started)} fine-tuning runs")

# %% [markdown] tags=["slide"]
# ## 6 · What does it cost?
#
# A model that has forgotten that a duchess is *she* would not be less biased, but worse. So each fine-tuning run goes through the gate as well.

# %% tags=["nbval-ignore-output", "slide"]
names = ["model", "base", "seed", "perplexity", "right_first", "choice"]
before = [
    ("base", t.base, -1, t.perplexity, t.share_right(), t.share_right("gate_choice"))
    for t in bases
]
after = [
    (t.model, t.base, t.seed, t.perplexity, t.share_right())
    + (t.share_right("gate_choice"),)
    for t in started
]
costs = pd.DataFrame(before + after, columns=names).assign(unigram=unigram)
costs = costs.sort_values(["base", "seed"], kind="stable", ignore_index=True)
costs["passes"] = passes_gate(costs, gate)
columns = ["model", "base", "perplexity", "right_first", "seed", "choice"]
columns += ["unigram", "passes"]
costs = costs[columns]
stage.figure("perplexity", plot_costs(costs, gate))
_ = stage.table("perplexity", costs[[*names[:4], "unigram", "passes"]], digits=1)

# %% [markdown]
# The table has the numbers of the figure. *Right* is the share of right answers at the gate.

# %% tags=["nbval-ignore-output"]
in_words(
    stage.table("arms", costs).assign(model=costs["model"].map(MODELS)),
    {"model": "model", "base": "base model", "perplexity": "perplexity"}
    | {"right_first": "right", "passes": "passes the gate"},
)

# %% [markdown] tags=["slide"]
# Every fine-tuning run lowers the perplexity, whatever it reads, and every run passes. A run that fails is reported and not replaced. Stage 4 computes its results twice: over all runs that
# were started, and over those that passed.
#
# Which nouns do the base models get wrong? The column *of* counts the answers: four sentences per noun and base model.

# %% tags=["nbval-ignore-output"]
answers = pd.concat([unambiguous.assign(right=training.right()) for training in bases])
wrong = (
    answers.groupby(["noun", "gender"], sort=False)["right"]
    .agg(models="size", wrong=lambda r: int((~r).sum()))
    .reset_index()
)
wrong = stage.table("wrong", wrong).query("wrong > 0").replace({"gender": FORM_NAMES})
in_words(wrong, {"noun": "noun", "gender": "gender", "wrong": "wrong", "models": "of"})

# %% [markdown] tags=["slide"]
# The errors concentrate on a few nouns. Whether the bias fell is a question for stages 3 and 4.
#
# ## What could be wrong
#
# - **The base model is not BERT.** It is a sentence encoder whose head has seen little text. Its bias comes from that text and from the encoder, and the paper's numbers belong to other models.
# - **The frames teach gender directly.** They are built like the sentences of the gate, with other nouns of the same kind. So the gate shows only that a model generalises to new nouns.
#   Base models that read old books first, as at scale `cpu`, may have met the nouns of the gate there.
# - **The placebos repeat sentences**, so they may overfit where the augmented arm does not. The even placebo repeats those of the rarer gender most.
# - **The rehearsed frames are even.** They pull every arm towards even, and so stage 4 compares arms with each other.
# - **Nouns are divided, contexts are not.** Two sentences about different nouns may have the same verb.
#
# ## Try it
#
# - Set `held_out` to 0.9. Does fine-tuning on so few nouns still bring the scores closer to even?
# - Set `watched_share` to 0.15, so that pronouns are treated like other words. Does the model still pass the gate?
# - Set `mixtures = [[0.0001, 0.0]]`. What becomes of the perplexity, and which runs still pass the gate?
#
# Exercises with checks: [page](../../docs/course/exercises/implicit_bias.md#02-training).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# The models go to [03_attribution](03_attribution.ipynb), which fills the masks.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# The exercises stand alone: run the next cell, and none of the cells above it. Replace the three dots by your answer. The check below tells you what is wrong with an answer, and
# does not reveal the right one.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.studies.implicit_bias.naming import in_words

gate = read_committed("implicit_bias", "cpu", "02_training", "gate")
human = {"model": "model", "base": "base model", "right_first": "right gender first"}
in_words(gate, human | {"perplexity": "perplexity", "passes": "passes"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A masked model gives the right words of three masks the probabilities .5, .25 and .125. What is its perplexity?

# %% tags=["hole"]
perplexity = ...

# %% tags=["solution"]
perplexity = np.exp(-np.mean(np.log([0.5, 0.25, 0.125])))

# %% tags=["check"]
p = np.array([0.5, 0.25, 0.125])
check_number(
    perplexity,
    np.exp(-np.log(p).mean()),
    {
        "take the mean of the logarithms, not the logarithm of the mean.": 1 / p.mean(),
        "that is the mean loss; perplexity is its exponential.": -np.log(p).mean(),
    },
    "Each probability is a power of one half.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# The arm *augmented* reads every sentence with its pronoun swapped as well. Write the swap for a list of words with one pronoun.
#
# - *He* and *she* are exchanged, and so are *himself* and *herself*.
# - *Him* and possessive *his*: *her*.
# - *Her* becomes *his* where `before_noun` is true, and *him* elsewhere.
# - A capital letter stays.


# %% tags=["hole"]
def swapped(words, before_noun):
    """The words with the other pronoun."""
    return ...


# %% tags=["solution"]
def swapped(words, before_noun):
    """The words with the other pronoun."""
    other = {"he": "she", "she": "he", "himself": "herself", "herself": "himself"}
    other |= {"his": "her", "him": "her", "her": "his" if before_noun else "him"}

    def swap(word):
        new = other.get(word.lower(), word)
        return new.capitalize() if word[0].isupper() else new

    return [swap(word) for word in words]


# %% tags=["check"]
def expected(words, before_noun):
    """By a table of pairs."""
    pairs = ["he she", "himself herself", "his her" if before_noun else "him her"]
    table = {a: b for x in pairs for a, b in (x.split(), x.split()[::-1])}
    table |= {"his": "her", "him": "her"}
    new = [table.get(word.lower(), word) for word in words]
    return [n.capitalize() if w[0].isupper() else n for n, w in zip(new, words)]


check_function(
    swapped,
    expected,
    {
        "A subject.": ["the nurse says she sings".split(), False],
        "Before a noun *her* becomes *his*.": [
            "the nurse takes her coat".split(),
            True,
        ],
        "As an object *her* becomes *him*.": ["the dog sees her".split(), False],
        "*His* becomes *her*.": ["the nurse takes his coat".split(), True],
        "*Herself* becomes *himself*.": ["the dancer sees herself".split(), False],
        "*Himself* becomes *herself*.": ["the dancer sees himself".split(), False],
        "A capital letter stays.": ["He sings".split(), False],
        "Other words stay.": ["the heron hears him".split(), False],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `gate` comes from the run at scale `cpu`. A model passes if it gets enough unambiguous sentences right, such as *the duchess takes [MASK] coat*. All five base models pass there. Why would the bias of a model that fails tell little?
#
# - `"a"` Its bias is too large.
# - `"b"` A model that does not know that a duchess is *she* gives even scores because it does not know, not because it is fair.
# - `"c"` Its perplexity is too low.

# %% tags=["hole"]
why = ...  # "a", "b" or "c"

# %% tags=["solution"]
why = "b"

# %% tags=["check"]
check_choice(
    why,
    "b",
    {
        "a": "What would the scores of a model be that has learnt nothing?",
        "c": "Is a low perplexity good or bad?",
    },
)
