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
# The paper measures three models of the hub and ends with a question: do such sentences help to *reduce* the bias? This stage trains a masked LM, says
# plainly what it is worth, and then trains it on with pronouns swapped, beside a placebo: the same sentences, nothing swapped.

# %% [markdown]
# ## You will see
#
# - a small encoder that gets a masked-LM head, and a gate that it must pass before any bias of it is shown;
# - training on with swapped pronouns and with the placebo, several times each;
# - what that costs in perplexity.
#
# | in | from | holds |
# |---|---|---|
# | `text.parquet` | 01 | sentences to learn from and to measure perplexity on |
# | `sentences.parquet` | 01 | the sentences that passed the filter |
#
# | out | holds |
# |---|---|
# | `models/base`, `models/<arm>/seed<k>` | trained weights and their recipes |
# | `split.parquet` | which antecedents were trained on and which were held out |
# | `curves`, `gate`, `perplexity`, `arms` (`.csv`) | how the training went, and what the models are worth |

# %%
import json
import math
import random

import matplotlib.pyplot as plt
import pandas as pd
import torch
import yaml

from lib.errors import TouchstoneError
from lib.lexicon import PRONOUNS
from lib.masked_training import MaskedSettings, fit_or_read, mask_tokens, masked_perplexity, unigram_perplexity
from lib.metrics.pronouns import gender_ids, passes_gate, right_gender_first, top_words
from lib.models.masked_lm import new_masked_lm, pretrained_masked_lm, read_masked_lm
from lib.paths import material
from lib.plots import COLOURS, STYLE
from lib.pronoun_sentences import with_gender
from lib.seeds import pick_device, seed_for, set_up
from lib.show import show_source
from lib.stage import open_stage
from lib.store import load_parquet, save_parquet

# %% [markdown]
# ## Settings
#
# The packaged encoder is all-MiniLM-L6-v2, a sentence encoder of 23 million parameters. It was never meant to fill gaps, and its masked-LM head is drawn at
# random here. `hub_models` are the paper's models and newer ones; they are measured as they are, and need a download.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # what is drawn for training
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
encoder = "all-MiniLM-L6-v2"  # the encoder that gets a masked-LM head: the packaged one, a folder, or a hub id; empty for none
encoder_revision = ""  # the commit of a hub id
hub_models = {}  # masked LMs of the hub that are measured beside it, by name: the commit
epochs = 3  # passes over the text
lr = 0.0005  # highest learning rate
batch_tokens = 512  # tokens per step
masked = 0.15  # share of tokens to predict
watched_share = 0.5  # share of pronouns to predict
gate = 0.9  # share of unambiguous sentences with the right gender first that a model must reach
held_out = 0.5  # share of antecedents that no arm is trained on
n_seeds = 3  # trainings of each arm
arm_epochs = 1  # passes over an arm's sentences
arm_lr = 0.0001  # highest learning rate of an arm
rehearsal = 3.0  # sentences of the base model's text in an arm, for each of its own

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $P(w \mid s)$ | the probability of a word at the mask | `log_prob` |
# | PPL | exp of the mean negative log-probability of masked words | `perplexity` |
# | base | the encoder with its trained head | `base` |
# | augmented | trained on with each sentence in both genders | `augmented` |
# | placebo | trained on with each sentence twice, as it is | `placebo` |

# %%
stage = open_stage("implicit_bias", scale, "02_training")
set_up(seed, n_threads)
target = pick_device(device)
if not encoder:
    raise TouchstoneError("encoder is empty; name the encoder that is trained (hub_models come in addition)")
text = load_parquet(stage.input("01_data_generation", "text.parquet"))
sentences = load_parquet(stage.input("01_data_generation", "sentences.parquet"))
train, valid = (list(text.loc[text["part"] == part, "words"]) for part in ("train", "valid"))
print(f"{len(train)} sentences to learn from, {len(valid)} to measure on, {len(sentences)} that passed the filter")

# %% [markdown]
# ## 1 · One sentence by hand
#
# In training, 15 % of the tokens are asked about. Of these 80 % are masked, 10 % are replaced by another word and 10 % stay (Devlin et al. 2019). With 20 tokens we
# expect three to be asked about on average, and the special tokens never. Pronouns are asked about more often here, since they are what is studied.

# %%
ids = torch.tensor([[101, *range(2000, 2020), 102]])
inputs, targets = mask_tokens(ids, [0, 101, 102, 103], 103, 30522, masked, torch.Generator().manual_seed(1))
asked = (targets != -100)[0]
assert not asked[0] and not asked[-1] and torch.equal(inputs[0][~asked], ids[0][~asked])
print(f"asked about {int(asked.sum())} of 20: " + ", ".join("masked" if new == 103 else "kept" if new == old else "replaced" for new, old in zip(inputs[0][asked], ids[0][asked])))

# %% [markdown]
# ## 2 · The base model
#
# BERT's head: a dense layer, an activation, a LayerNorm, then the transposed word table, and a bias for each entry, which begins at the log of the entry's frequency.

# %%
show_source(mask_tokens)

# %% [markdown]
# A model that is trained is kept with its recipe and read again; a changed recipe is a new training.

# %%
start = new_masked_lm(encoder, seed, encoder_revision)
watched = tuple(sorted({start.tokenizer.convert_tokens_to_ids(word) for word in PRONOUNS} - {start.tokenizer.unk_token_id}))
settings = MaskedSettings(epochs, lr, batch_tokens, masked, "encoder", watched, watched_share)
recipe = {"encoder": encoder, "revision": encoder_revision, "seed": seed}

# %% [markdown]
# The training itself, about a minute of one core at this scale:

# %%
base, curve = fit_or_read(stage.path("models/base.json").with_suffix(""), recipe, lambda: start, train, valid, settings)
base.module.to(target)
_ = stage.path("models/base.safetensors")
print(f"{sum(p.numel() for p in base.trained_parameters('encoder').values()) / 1e6:.1f} million parameters trained")

# %% [markdown]
# The curve, a row an epoch:

# %% tags=["nbval-ignore-output"]
stage.table("curves", curve, digits=2)

# %% [markdown]
# *Reading it.* The perplexity is over the whole vocabulary of 30,522 entries, at masked tokens of sentences that were not trained on.
#
# ## 3 · The gate
#
# A model that does not know that a duchess is *she* cannot be asked what it thinks of nurses. Before any bias is shown, a model must put the right gender first in
# 90 % of unambiguous sentences with nouns that it never met in training, and beat the perplexity of word frequencies. The rule is that for every model: each
# training of each arm (section 4) goes through the same gate.

# %%
unambiguous = pd.DataFrame(yaml.safe_load((material("implicit_bias") / "gate.yaml").read_text()), columns=["noun", "gender", "sentence"])
assert len(unambiguous) >= 40 and not set(unambiguous["noun"]) & {word.lower() for words in train for word in words}

# %% [markdown]
# The share of right answers, for any model:

# %%
def at_gate(model):
    """The share of unambiguous sentences in which the right gender comes first."""
    words = [[model.tokenizer.mask_token if word == "_" else word for word in text.split()] for text in unambiguous["sentence"]]
    right = right_gender_first(model.log_prob(model.encode(words)), gender_ids(model.tokenizer), unambiguous["gender"])
    return sum(right) / len(right)

# %% [markdown]
# Before training it can only guess.

# %%
untrained = at_gate(new_masked_lm(encoder, seed, encoder_revision))
print(f"{len(unambiguous)} sentences, {unambiguous['gender'].value_counts().to_dict()}")

# %% [markdown]
# Beside the trained model its own beginning, the head as it was drawn, and any model of the hub.

# %% tags=["nbval-ignore-output"]
encoded = base.encode(valid)
unigram = unigram_perplexity(base, base.encode(train), encoded, masked)
rows = [{"model": "untrained head", "right_first": untrained, "perplexity": math.nan, "unigram": unigram},
        {"model": "base", "right_first": at_gate(base), "perplexity": masked_perplexity(base, encoded, masked), "unigram": unigram}]
for name, revision in hub_models.items():
    other = pretrained_masked_lm(name, revision)
    other.module.to(target)
    own, read = other.encode(valid), other.encode(train)
    rows.append({"model": name, "right_first": at_gate(other), "perplexity": masked_perplexity(other, own, masked),
                 "unigram": unigram_perplexity(other, read, own, masked)})
gates = pd.DataFrame(rows)
gates["passes"] = passes_gate(gates, gate)
stage.table("gate", gates)

# %% [markdown]
# *Reading it.* `passes` decides what stages 3 to 5 may show. With 50 sentences a share of 0.92 has a 95 % interval from 0.81 to 0.97, so this is a gate
# and no measurement. The frames of stage 1, of which the model read 1,000 at either scale, teach what is asked here; the nouns are others.

# %%
top = top_words(base.log_prob(base.encode([["The", "duchess", "opened", base.tokenizer.mask_token, "letter", "."]]))[0], base.tokenizer, 5)
assert set(top["word"]) & set(PRONOUNS) and untrained < gate
print("a pronoun is among the five likeliest words for: The duchess opened [MASK] letter.")

# %% [markdown]
# ## 4 · Swapping, and a placebo
#
# > "we should evaluate the efficacy of our generated examples on reducing gender bias" (section 6, left open)
#
# If sentences were trained on and measured on, the answer would be circular. So the *antecedents* are divided: a model is trained on sentences about one half of the nouns
# and measured on the other half.

# %%
def is_held_out(antecedent):
    """Whether a noun is kept for measuring, by its letters and the seed alone."""
    return seed_for("held out", antecedent, seed) / 2**31 < held_out

# %% [markdown]
# Both halves must hold some nouns, or there is nothing to compare.

# %%
sentences["part"] = ["held out" if is_held_out(a) else "trained on" for a in sentences["antecedent"]]
save_parquet(sentences[["sentence_id", "antecedent", "part"]], stage.path("split.parquet"))
about = sentences.groupby("part").agg(sentences=("part", "size"), antecedents=("antecedent", "nunique"), male=("gender", lambda g: (g == "M").mean()))
assert (about["antecedents"] >= 5).all()
about.round(2)

# %% [markdown]
# Each sentence in both genders is *augmented*; each sentence twice is the *placebo*, which has as many steps, the same topics, and the same share of pronouns to predict.
# (The placebo keeps the text's surplus of *his*, so the arms differ in two things: how frequent male pronouns are, and that each sentence comes in pairs. Stage 4 tells
# them apart by the spread of the scores, which a shift of all of them leaves as it is.)

# %%
def arm_text(arm):
    """The sentences that an arm is trained on."""
    part = sentences[sentences["part"] == "trained on"]
    other = {"F": "M", "M": "F"}
    found = []
    for row in part.itertuples():
        gender = row.gender if arm == "placebo" else other[row.gender]
        found += [row.words, with_gender(row.words, row.at, row.slot, gender)]
    return found

# %% [markdown]
# Half of the augmented sentences are of each gender; those of the placebo come in pairs.

# %%
both = arm_text("augmented")
genders = [PRONOUNS[words[at].lower()] for words, at in zip(both, sentences.loc[sentences["part"] == "trained on", "at"].repeat(2))]
assert genders.count("F") == genders.count("M") and arm_text("placebo")[0] == arm_text("placebo")[1]
print(f"{len(both)} sentences an arm; augmented: {genders.count('F')} female and {genders.count('M')} male pronouns")

# %% [markdown]
# A model that reads nothing but a few hundred such sentences forgets who a duchess is. So both arms *rehearse*: for each sentence of their own they read some of the text
# that the base model was made with, drawn by the seed. How many, and at which rate, was chosen by perplexity and by 40 other unambiguous sentences (`material/gate_choice.yaml`)
# at scale small; the sentences of the gate had no part in it.

# %%
def rehearsed(arm, number):
    """The sentences of an arm, and those of the base model's text among them."""
    own = arm_text(arm)
    return own + random.Random(seed_for("rehearsal", number, seed)).sample(train, min(len(train), round(rehearsal * len(own))))


print(f"{len(rehearsed('augmented', 0))} sentences with those rehearsed")

# %% [markdown]
# Every arm starts from the base model; masks, order and what is rehearsed differ between seeds, and are the same in both arms.

# %%
base_files = [stage.folder / "models" / f"base.{kind}" for kind in ("json", "safetensors")]
arm_settings = MaskedSettings(arm_epochs, arm_lr, batch_tokens, masked, "encoder", watched, watched_share)

# %% [markdown]
# One training takes some seconds at this scale.

# %%
def train_arm(arm, number):
    """One training of one arm, from the base model."""
    path = stage.path(f"models/{arm}/seed{number}.json").with_suffix("")
    stage.path(f"models/{arm}/seed{number}.safetensors")
    mine = recipe | {"seed": number, "from": json.loads(base_files[0].read_text())["sha256"]}
    return fit_or_read(path, mine, lambda: read_masked_lm(*base_files), rehearsed(arm, number), valid, arm_settings)


arms = {(arm, number): train_arm(arm, number) for arm in ("placebo", "augmented") for number in range(n_seeds)}
print(f"{len(arms)} trainings")

# %% [markdown]
# ## 5 · What it costs
#
# *How to read the table.* Perplexity on the held-out text, before and after; and the gate, for a model that has forgotten that a duchess is *she* is not less biased but worse.
# The bias scores of a training with `passes` = False are not shown from here on.

# %% tags=["nbval-ignore-output"]
rows = [{"model": "base", "seed": seed, "perplexity": gates.set_index("model").loc["base", "perplexity"], "right_first": gates.set_index("model").loc["base", "right_first"]}]
rows += [{"model": arm, "seed": number, "perplexity": curve["perplexity"].iloc[-1], "right_first": at_gate(model)} for (arm, number), (model, curve) in arms.items()]
costs = pd.DataFrame(rows).assign(unigram=unigram)
costs["passes"] = passes_gate(costs, gate)
stage.table("arms", costs)

# %% [markdown]
# Whether the bias fell is a question for stages 3 and 4, which ask on sentences with other nouns.
#
# ## 6 · The figure
#
# Perplexity on held-out text by model, one dot a training; filled where it passes the gate.

# %% tags=["nbval-ignore-output"]
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(5, 1.9), layout="constrained")
    for y, (name, part) in enumerate(costs.groupby("model", sort=False)):
        for i, row in enumerate(part.itertuples()):
            ax.plot(row.perplexity, y + 0.18 * (i - (len(part) - 1) / 2), "o", color=COLOURS[y], fillstyle="full" if row.passes else "none")
    ax.set(yticks=range(costs["model"].nunique()), yticklabels=costs["model"].unique(), ylim=(2.5, -0.5),
           xlabel=f"perplexity at masked tokens (word frequencies: {unigram:.0f})")
stage.figure("perplexity", figure)
stage.table("perplexity", costs[["model", "seed", "perplexity", "unigram", "passes"]], digits=1)

# %% [markdown]
# ## What could be wrong
#
# - **The base model is not BERT.** It is a sentence encoder whose masked-LM head has seen some thousand sentences (small) or some ten thousand (cpu). Its bias is that of this
#   text, of the encoder and of one training, and the paper's numbers belong to other models.
# - **The frames teach gender directly**: nouns like those of the gate stand in sentences like those of the gate. The gate tells whether a model generalises to new nouns, and no more.
# - **The placebo is trained on twice the same sentence**, so it may overfit where the swapped text does not.
# - **Antecedents are divided, contexts are not**: two sentences about different nouns may share their verbs.
#
# ## Try it
#
# - Set `held_out` to 0.9. How few nouns are enough?
# - Set `watched_share` to 0.15, so that pronouns are words like others. Does the model still pass the gate?
# - Set `rehearsal = 0`. What becomes of the perplexity, and which trainings still pass the gate?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The models go to [03_attribution](03_attribution.ipynb), which fills the masks.
