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
# # implicit_bias, stage 2 of 5: can a masked LM be made less biased by the sentences that show its bias?
#
# [Start here](../00_start_here.ipynb) · before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb)
#
# The paper measures three models of the hub and ends with a question: do such sentences help to *reduce* the bias? This stage trains a masked LM (several times,
# for one training decides nothing), says plainly what it is worth, and then trains each on with pronouns swapped, beside two placebos in which nothing is swapped.

# %% [markdown]
# ## You will see
#
# - a small encoder that gets a masked-LM head, and a gate that it must pass before any bias of it is shown;
# - training on with swapped pronouns and with two placebos, from every base model;
# - what that costs in perplexity.
#
# | in | from | holds |
# |---|---|---|
# | `text.parquet` | 01 | sentences to learn from and to measure perplexity on |
# | `sentences.parquet` | 01 | the sentences that passed the filter |
#
# | out | holds |
# |---|---|
# | `models/base<b>`, `models/<arm>/base<b>_seed<k>` | trained weights and their recipes |
# | `trainings.parquet` | the key of each training, and the SHA-256 of its weights |
# | `split.parquet` | which antecedents were trained on and which were held out |
# | `curves`, `gate`, `mixture`, `wrong`, `perplexity`, `arms` (`.csv`) | how the training went, and what the models are worth |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import math

import matplotlib.pyplot as plt
import pandas as pd
import torch

from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.core.notebooks import show_source
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.metrics.masked_pronoun import top_words
from lib.models.masked_lm import new_masked_lm, pretrained_masked_lm, read_masked_lm
from lib.plots import COLOURS, STYLE
from lib.studies.implicit_bias import arms
from lib.studies.implicit_bias.kept_models import passes_gate
from lib.studies.implicit_bias.trainings import Trainings, right_answers
from lib.training import masked_lm

# %% [markdown]
# ## Settings
#
# The packaged encoder is all-MiniLM-L6-v2, a sentence encoder of 23 million parameters. It was never meant to fill gaps, and its masked-LM head is drawn at
# random here. `hub_models` are the paper's models and newer ones; they are measured as they are, and need a download.
# *Frames* are the sentence patterns of stage 1 in which the noun fixes the pronoun; an *arm* is one way of training on, and to *rehearse* is to read some of the base
# model's own text again meanwhile, so that little is forgotten (section 4).

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # what is drawn for training
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
encoder = "all-MiniLM-L6-v2"  # the encoder that gets a masked-LM head: the packaged one, a folder, or a hub id; empty for none
encoder_revision = ""  # the commit of a hub id
hub_models = {}  # masked LMs of the hub that are measured beside it, by name: the commit
epochs = 2  # passes over the text
lr = 0.0005  # highest learning rate
batch_tokens = 512  # tokens per step
masked = 0.15  # share of tokens to predict
watched_share = 0.5  # share of pronouns to predict
gate = 0.9  # share of unambiguous sentences with the right gender first that a model must reach
held_out = 0.5  # share of antecedents that no arm is trained on
n_bases = 2  # trainings of the base model; each is trained on in every arm
n_seeds = 1  # trainings of each arm from each base model
arm_epochs = 1  # passes over an arm's sentences
mixtures = [
    [0.0001, 3.0]
]  # highest learning rate of an arm, and sentences of the base model's text for each of its own; of several the first that is safe
rehearsed_frames = 0.75  # share of sentences from frames among them

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $P(w \mid s)$ | the probability of a word at the mask | `log_prob` |
# | PPL | exp of the mean negative log-probability of masked words | `perplexity` |
# | base | the encoder with its trained head | `bases` |
# | augmented | trained on with each sentence in both genders | `augmented` |
# | placebo | trained on with each sentence twice, as it is | `placebo` |
# | even placebo | trained on with as many sentences as they are, drawn so that half hold a male pronoun | `even placebo` |

# %%
stage = open_stage("implicit_bias", scale, "02_training")
set_up(seed, n_threads)
target = pick_device(device)
if not encoder:
    raise TouchstoneError(
        "encoder is empty; name the encoder that is trained (hub_models come in addition)"
    )
trainings = Trainings(stage, globals())
train, valid, sentences = trainings.train, trainings.valid, trainings.sentences
print(
    f"{len(train)} sentences to learn from, {len(valid)} to measure on, {len(sentences)} that passed the filter"
)

# %% [markdown]
# ## 1 · One sentence by hand
#
# In training, 15 % of the tokens are asked about. Of these 80 % are masked, 10 % are replaced by another word and 10 % stay (Devlin et al. 2019). With 20 tokens we
# expect three to be asked about on average, and the special tokens never. Pronouns are asked about more often here, since they are what is studied.

# %%
ids = torch.tensor([[101, *range(2000, 2020), 102]])
inputs, targets = masked_lm.mask_tokens(
    ids, [0, 101, 102, 103], 103, 30522, masked, torch.Generator().manual_seed(1)
)
asked = (targets != -100)[0]
assert not asked[0] and not asked[-1] and torch.equal(inputs[0][~asked], ids[0][~asked])
print(
    f"asked about {int(asked.sum())} of 20: "
    + ", ".join(
        "masked" if new == 103 else "kept" if new == old else "replaced"
        for new, old in zip(inputs[0][asked], ids[0][asked])
    )
)

# %% [markdown]
# ## 2 · The base model
#
# BERT's head: a dense layer, an activation, a LayerNorm, then the transposed word table, and a bias for each entry, which begins at the log of the entry's frequency.

# %%
show_source(masked_lm.mask_tokens)

# %% [markdown]
# The trainings of the base model differ in the head that is drawn, in the order of the text and in what is masked. Each is a unit: it is kept with what is asked of it here, and found
# again by whoever asks for it next. So several processes or machines can share the work (`touchstone unit`), and a changed setting is a new training.

# %%
show_source(trainings.base)

# %% [markdown]
# The trainings themselves, less than a minute of one core each at this scale:

# %%
bases = [trainings.base(b) for b in range(n_bases)]


def model_of(training):
    """A trained model, read from its weights."""
    files = (
        stage.folder / f"models/{training.name}.{kind}"
        for kind in ("json", "safetensors")
    )
    model = read_masked_lm(*files)
    model.module.to(target)
    return model


base = model_of(bases[0])
print(
    f"{n_bases} trainings; {sum(p.numel() for p in base.trained_parameters('encoder').values()) / 1e6:.1f} million parameters trained"
)

# %% [markdown]
# The curves, a row an epoch:

# %% tags=["nbval-ignore-output"]
stage.table(
    "curves",
    pd.concat(
        [training.curve.assign(base=b) for b, training in enumerate(bases)],
        ignore_index=True,
    ),
    digits=2,
)

# %% [markdown]
# *Reading it.* The perplexity is over the whole vocabulary of 30,522 entries, at masked tokens of sentences that were not trained on.
#
# ## 3 · The gate
#
# A model that does not know that a duchess is *she* cannot be asked what it thinks of nurses. Before any bias is shown, a model must put the right gender first in
# 90 % of unambiguous sentences with nouns that it never met in training, and beat the perplexity of word frequencies. The rule is that for every model: each
# training of each arm (section 4) goes through the same gate.

# %%
unambiguous = trainings.questions["gate"]
learnt = {word.lower() for words in train for word in words}
known = set(unambiguous["noun"]) & learnt
assert len(unambiguous) >= 40 and not known, (
    f"{len(unambiguous)} sentences, nouns that are trained on: {sorted(known)}; the gate needs "
    "40 or more, and other nouns than the training: correct gate.yaml"
)

# %% [markdown]
# The right answers, for any model:

# %%
show_source(right_answers)

# %% [markdown]
# Before training it can only guess.


# %%
def at_gate(model):
    """The share of right answers."""
    return sum(right_answers(model, unambiguous)) / len(unambiguous)


untrained = at_gate(new_masked_lm(encoder, seed, encoder_revision))
print(f"{len(unambiguous)} sentences, {unambiguous['gender'].value_counts().to_dict()}")

# %% [markdown]
# Beside the trained models the head as it was drawn, a model that read the same text without the frames of stage 1 (which teach what is asked here, with other nouns), and any
# model of the hub.

# %% tags=["nbval-ignore-output"]
encoded = base.encode(valid)
unigram = masked_lm.unigram_perplexity(base, base.encode(train), encoded, masked)
own_models = [("base", b, training) for b, training in enumerate(bases)] + [
    ("without frames", -1, trainings.without_frames())
]
rows = [
    {
        "model": "untrained head",
        "base": -1,
        "right_first": untrained,
        "perplexity": math.nan,
        "unigram": unigram,
    }
]
rows += [
    {
        "model": name,
        "base": b,
        "right_first": training.share_right(),
        "perplexity": training.perplexity,
        "unigram": unigram,
    }
    for name, b, training in own_models
]
for name, revision in hub_models.items():
    other = pretrained_masked_lm(name, revision)
    other.module.to(target)
    own, read = other.encode(valid), other.encode(train)
    rows.append(
        {
            "model": name,
            "base": -1,
            "right_first": at_gate(other),
            "perplexity": masked_lm.masked_perplexity(other, own, masked),
            "unigram": masked_lm.unigram_perplexity(other, read, own, masked),
        }
    )
gates = pd.DataFrame(rows)
gates["passes"] = passes_gate(gates, gate)
stage.table("gate", gates)

# %% [markdown]
# *Reading it.* `passes` decides what stages 3 to 5 may show. With 50 sentences a share of 0.92 has a 95 % interval from 0.81 to 0.97, so this is a gate
# and no measurement. The row *without frames* says how much of it the frames teach. It is there for comparison; its bias is shown nowhere.

# %%
top = top_words(
    base.log_prob(
        base.encode(
            [["The", "duchess", "opened", base.tokenizer.mask_token, "letter", "."]]
        )
    )[0],
    base.tokenizer,
    5,
)
assert set(top["word"]) & set(PRONOUNS) and untrained < gate, (
    f"likeliest are {list(top['word'])}, and the untrained model has {untrained:.2f}; raise "
    f"epochs or n_frames, and set gate ({gate}) above the untrained model"
)
print(
    "a pronoun is among the five likeliest words for: The duchess opened [MASK] letter."
)

# %% [markdown]
# ## 4 · Swapping, and a placebo
#
# > "we should evaluate the efficacy of our generated examples on reducing gender bias" (section 6, left open)
#
# If sentences were trained on and measured on, the answer would be circular. So the *antecedents* are divided: a model is trained on sentences about one half of the nouns
# and measured on the other half.

# %%
show_source(arms.is_held_out)

# %% [markdown]
# Both halves must hold some nouns, or there is nothing to compare.

# %%
save_parquet(
    sentences[["sentence_id", "antecedent", "part"]], stage.path("split.parquet")
)
about = sentences.groupby("part").agg(
    sentences=("part", "size"),
    antecedents=("antecedent", "nunique"),
    male=("gender", lambda g: (g == "M").mean()),
)
assert (about["antecedents"] >= 5).all(), (
    f"antecedents by part: {about['antecedents'].to_dict()}; each needs 5: hand in more "
    "sentences, or set held_out nearer to 0.5"
)
about.round(2)

# %% [markdown]
# Each sentence in both genders is *augmented*; each sentence twice is the *placebo*, which has as many steps, the same topics, and the same share of pronouns to predict.
# But it keeps the sentences' surplus of *his*, so that it differs from *augmented* in two things: how frequent male pronouns are, and that each sentence comes in pairs. The
# *even placebo* tells them apart: nothing is swapped, and the sentences are drawn so that half of them hold a male pronoun.

# %%
show_source(arms.arm_text)
show_source(arms.evenly)

# %% [markdown]
# The arms have as many sentences; half of the augmented ones and of the even placebo are of each gender, and those of the placebo come in pairs.


# %%
def male_share(arm):
    """The share of male pronouns in an arm's sentences, which hold one gendered pronoun each."""
    genders = [
        PRONOUNS[word.lower()]
        for words in arms.arm_text(sentences, arm, 0, seed)
        for word in words
        if word.lower() in PRONOUNS
    ]
    return genders.count("M") / len(genders)


own = {arm: arms.arm_text(sentences, arm, 0, seed) for arm in arms.ARMS}
assert len({len(text) for text in own.values()}) == 1
assert own["placebo"][0] == own["placebo"][1]
assert male_share("augmented") == male_share("even placebo") == 0.5
print(
    f"{len(own['placebo'])} sentences an arm; share of male pronouns in the placebo: {male_share('placebo'):.2f}"
)

# %% [markdown]
# A model that reads nothing but a few hundred such sentences forgets who a duchess is. In an earlier run at scale cpu three of five trainings of each arm fell below the gate, though perplexity fell, too: the
# base model itself had passed narrowly (46 of 50), and two or three rare nouns (*heiress*, *priestess*, *stepfather*) changed sides. Since then the frames have more nouns, and all arms
# *rehearse*: for each sentence of their own they read some of the text
# that the base model was made with, drawn by the seed, and part of it from the frames, where the noun fixes the pronoun.


# %%
show_source(arms.rehearsed)
print(
    f"{len(trainings.arm_text('augmented', 0, mixtures[0][1]))} sentences with those rehearsed"
)

# %% [markdown]
# Every arm starts from every base model; masks, order and what is rehearsed differ between trainings, and are the same in all arms. One training takes some seconds at this scale.


# %%
show_source(trainings.arm)

# %% [markdown]
# Which mixture? The rule was written down before the run (`material/gate_choice.yaml`) and looks at no bias: 40 other unambiguous sentences and perplexity decide. The trainings that
# it looks at (number 99) have no part in any answer, and the mixture is the same for all arms. One thing was settled later: that three quarters of what is rehearsed are frames, and how much there
# is of it, after small trainings had failed the gate itself. No score of bias was asked then either.


# %%
show_source(trainings.is_safe)
chosen = trainings.chosen_mixture()
stage.table(
    "mixture",
    pd.DataFrame(mixtures, columns=["rate", "rehearsal"]).assign(
        chosen=[i == chosen for i in range(len(mixtures))]
    ),
    digits=6,
)

# %% [markdown]
# All trainings:

# %%
started = [trainings.arm(*place, chosen) for place in trainings.arms()]
kept = [(training.name, training.key, training.sha256) for training in bases + started]
save_parquet(
    pd.DataFrame(kept, columns=["name", "key", "sha256"]),
    stage.path("trainings.parquet"),
)
print(f"{len(started)} trainings")

# %% [markdown]
# ## 5 · What it costs
#
# *How to read the table.* Perplexity on the held-out text, before and after; and the gate, for a model that has forgotten that a duchess is *she* is not less biased but worse.
# `choice` is the share on the sentences by which the mixture was chosen. The bias scores of a training with `passes` = False are not shown from here on.

# %% tags=["nbval-ignore-output"]
before = gates.loc[
    gates["model"] == "base", ["model", "base", "perplexity", "right_first"]
].assign(seed=-1, choice=[training.share_right("gate_choice") for training in bases])
costs = pd.concat(
    [
        before,
        pd.DataFrame(
            [
                (
                    t.model,
                    t.base,
                    t.seed,
                    t.perplexity,
                    t.share_right(),
                    t.share_right("gate_choice"),
                )
                for t in started
            ],
            columns=["model", "base", "seed", "perplexity", "right_first", "choice"],
        ),
    ],
    ignore_index=True,
).assign(unigram=unigram)
costs = costs.sort_values(["base", "seed"], kind="stable", ignore_index=True)
costs["passes"] = passes_gate(costs, gate)
stage.table("arms", costs)

# %% [markdown]
# Which sentences of the gate does a base model get wrong? That tells what the gate asks.

# %% tags=["nbval-ignore-output"]
answers = pd.concat([unambiguous.assign(right=training.right()) for training in bases])
wrong = (
    answers.groupby(["noun", "gender"], sort=False)["right"]
    .agg(models="size", wrong=lambda r: int((~r).sum()))
    .reset_index()
)
stage.table("wrong", wrong).query("wrong > 0")

# %% [markdown]
# Whether the bias fell is a question for stages 3 and 4, which ask on sentences with other nouns.
#
# ## 6 · The figure
#
# Perplexity on held-out text by model, one dot a training; filled where it passes the gate.

# %% tags=["nbval-ignore-output"]
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(5, 2.3), layout="constrained")
    for y, (name, part) in enumerate(costs.groupby("model", sort=False)):
        for i, row in enumerate(part.itertuples()):
            ax.plot(
                row.perplexity,
                y + 0.6 * ((i + 0.5) / len(part) - 0.5),
                "o",
                color=COLOURS[y],
                fillstyle="full" if row.passes else "none",
            )
    ax.set(
        yticks=range(costs["model"].nunique()),
        yticklabels=costs["model"].unique(),
        ylim=(costs["model"].nunique() - 0.5, -0.5),
        xlabel=f"perplexity at masked tokens (word frequencies: {unigram:.0f})",
    )
stage.figure("perplexity", figure)
stage.table(
    "perplexity",
    costs[["model", "base", "seed", "perplexity", "unigram", "passes"]],
    digits=1,
)

# %% [markdown]
# ## What could be wrong
#
# - **The base model is not BERT.** It is a sentence encoder whose masked-LM head has seen some thousand sentences (small) or some ten thousand (cpu). Its bias is that of this
#   text and of the encoder, and the paper's numbers belong to other models.
# - **The frames teach gender directly**: nouns like those of the gate stand in sentences like those of the gate. The gate tells whether a model generalises to new nouns, and no more.
# - **The placebo is trained on twice the same sentence**, so it may overfit where the swapped text does not; the even placebo repeats the sentences of the rarer gender more often still.
# - **The frames that are rehearsed are even**, so a part of what the arms read pulls towards 0.5 in all of them alike; stage 4 compares arms, not only before and after.
# - **Antecedents are divided, contexts are not**: two sentences about different nouns may share their verbs.
#
# ## Try it
#
# - Set `held_out` to 0.9. How few nouns are enough?
# - Set `watched_share` to 0.15, so that pronouns are words like others. Does the model still pass the gate?
# - Set `mixtures = [[0.0001, 0.0]]`. What becomes of the perplexity, and which trainings still pass the gate?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The models go to [03_attribution](03_attribution.ipynb), which fills the masks.
