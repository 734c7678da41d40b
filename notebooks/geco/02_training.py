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
# # GECO, stage 2 of 5: which parts of a language model have to learn for the task?
#
# Previous: [01_data_generation](01_data_generation.ipynb) · Next: [03_attribution](03_attribution.ipynb)
#
# GECOBench (arXiv 2406.11547) suspects that explanations of a classifier depend on *what was trained*: a language model
# brings habits from the text that it grew up on, and whoever trains only its last layer keeps them all. So the paper trains
# one and the same task in several ways, from "change nothing" to "start from nothing", and explains every model. This
# notebook trains those models. Whether they have *learnt* the task is judged against rules that need no language model,
# because such rules are surprisingly good here.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how a language model reads a sentence, and how its parts are frozen, fine-tuned or started anew;
# - a one-layer attention model that fits on a page, and what a forgotten line does to its training;
# - the accuracy of every model beside the paper's Table 3, and beside two rules that see no language model.
#
# **You can then** say which parameters each scheme changes, and judge a classifier beside two rules. **You need**
# [stage 1](01_data_generation.ipynb), and to have trained some classifier before. **Time:** 25 minutes to read, 4
# minutes to run, 15 minutes for the exercises.
#
# | in (from stage 1) | out (in this stage's output folder) |
# |---|---|
# | `train.jsonl`, `test.jsonl` of each data set: one form of one sentence per line | `models/<data set>/<scheme>/seed<k>`: the trained tensors, with a recipe to build the rest |
# | | `predictions.parquet`: one class probability per model, test row and class |
# | | `accuracy.csv`, `floors.csv`, `curves.csv`, `kept_epochs.csv` and some small tables, one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.ticker import MaxNLocator

from lib.core.files import read_table, save_parquet
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.progress import progress
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.models.load import build_model
from lib.models.ola import OneLayerNet
from lib.models.schemes import SCHEMES
from lib.models.zero_shot import DESCRIPTIONS
from lib.plots import BELOW, COLOURS, STYLE
from lib.stats import estimates
from lib.studies.geco.corpus import CLASSES, load_dataset
from lib.studies.geco.floors import (
    bag_of_words,
    first_pronoun,
    first_pronoun_class,
    first_pronoun_is_other,
)
from lib.studies.geco.model_units import (
    Job,
    is_finished,
    models_of,
    run_group,
    settings_by_scheme,
    trained_together,
)
from lib.training.classifier import CURVE, Settings
from lib.training.loop import take_step
from lib.training.transfer import Trainer

# %% [markdown]
# ## Settings
#
# The values below are those of the small scale. A `scheme` is a way to train (section 3). Everything that differs between
# schemes is a small table with one value per scheme. At scale small `CE` and `CEf` are trained on D_S alone: on D_A all that
# is trained is as good as perfect. The published settings (Table 5 of the paper) are in
# `params/geco/paper.yaml`; ours are shorter, because there are fewer sentences and one CPU core.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the controls of section 8; the models have the seeds 0, 1, ...
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
# take finished models' numbers from, and publish them to, outputs/reference
reuse_units = False
# train again what was published as numbers only, to explain it anew
need_weights = False
encoder = "all-MiniLM-L6-v2"  # the pre-trained language model: the packaged one, a folder, or a hub id
encoder_revision = ""  # the commit of a hub id
datasets = ["D_A", "D_S"]  # the data sets with three classes
schemes = ["ZS", "C", "CE", "CEf", "CEfAf", "OLA-CEA"]  # how models are trained
one_dataset_schemes = [
    "CE",
    "CEf",
]  # trained on the last data set only ([]: all on all)
binary_schemes = ["OLA-CEA"]  # also trained with two classes (F, M)
n_seeds = 1  # models per data set and scheme
n_seeds_ola = 3  # the same for OLA, which is cheap
epochs = {
    "C": 60,
    "CE": 2,
    "CEf": 2,
    "CEfAf": 2,
    "OLA-CEA": 60,
}  # passes over the training rows
lr = {
    "C": 0.03,
    "CE": 0.005,
    "CEf": 0.004,
    "CEfAf": 0.0002,
    "OLA-CEA": 0.01,
}  # highest learning rate
batch_size = {"C": 32, "CE": 8, "CEf": 8, "CEfAf": 16, "OLA-CEA": 64}  # rows per step
weight_decay = {
    "C": 0.0,
    "CE": 0.0,
    "CEf": 0.0,
    "CEfAf": 0.0,
    "OLA-CEA": 0.001,
}  # added to the gradient, times the weight
dropout = 0.0  # share of activations dropped in the parts that learn; the released code trained without
validation_share = 0.2  # share of the base sentences of train that choose the epoch
ola = "corrected"  # corrected or as_released (section 4)

# %% [markdown]
# | symbol | meaning | variable | shape |
# |---|---|---|---|
# | $\mathbf{x}$ | a sentence as the model reads it | `ids` | batch, token |
# | $\mathbf{e}$ | its word embeddings | `embeddings` | batch, token, hidden |
# | $m$ | 1 for tokens, 0 for padding | `mask` | batch, token |
# | $f(\mathbf{x})$ | class scores, before softmax | `logits` | batch, class |
# | $\mathcal{D}_A$, $\mathcal{D}_S$ | all gendered words altered; only the subject's words altered | `D_A`, `D_S` | |
#
# Words for newcomers. A *token* is what the model reads: a word, a piece of a rare word, or a special mark. An *embedding*
# is the list of numbers that stands for a token. The *encoder* is the stack of attention layers that lets embeddings
# influence each other. The *head* turns its output into one score per class. An *epoch* is one pass over the training rows.

# %%
set_up(seed, n_threads)
stage = open_stage("geco", scale, "02_training")
binary = [f"{name}_binary" for name in datasets] if binary_schemes else []
data = {
    name: {split: load_dataset(stage, name, split) for split in ("train", "test")}
    for name in datasets + binary
}
classes = {name: CLASSES[:2] if name in binary else CLASSES for name in data}
pd.DataFrame(
    [
        {
            "dataset": name,
            "classes": " ".join(classes[name]),
            **{f"rows {s}": len(rows) for s, rows in d.items()},
            **{
                f"base sentences {s}": rows["sentence_idx"].nunique()
                for s, rows in d.items()
            },
        }
        for name, d in data.items()
    ]
)

# %% [markdown] tags=["slide"]
# Every base sentence stands there once in each form, so the classes are balanced, and guessing is right one time in three
# (in two for the binary sets).
#
# ## 1 · One sentence by hand
#
# > When he calls, she answers wholeheartedly.
#
# The class of this sentence is F, for the subject of its main clause is *she*. Two questions before we run anything:
#
# 1. What does a model read? We expect a mark in front (`[CLS]`), one at the end (`[SEP]`), one token for each common word,
#    and *wholeheartedly*, which is rare, in pieces.
# 2. What would a lazy reader say who looks at the first pronoun only? *he*, so M: wrong. This sentence is *hard*; most are
#    not.

# %%
trainer = Trainer(encoder, encoder_revision, pick_device(device), validation_share, ola)
example = "When he calls , she answers wholeheartedly .".split()
reader, _ = build_model(trainer.recipe("C", CLASSES, seed))
encoded = reader.encode([example])[0]
words = ["" if i is None else example[i] for i in encoded.word_ids]
pd.DataFrame(
    [reader.tokenizer.convert_ids_to_tokens(encoded.ids), words],
    index=["token", "word"],
)

# %% [markdown]
# As expected. The tokenizer itself tells which word a token belongs to, by position; stage 3 needs that to add pieces up
# into words. The next cell checks both answers, and one thing that everything later rests on: that the model can be run from
# its *word embeddings*. Explanations ask how the score changes with the embeddings, so this second way in must give the same
# scores as the ordinary one.

# %%
assert set(words) - {""} == set(example)
assert first_pronoun(example) == (1, CLASSES.index("M"))
ids = torch.tensor([encoded.ids])
with torch.no_grad():
    from_embeddings = reader.logits(reader.embed(ids), torch.ones_like(ids))
    ordinary = reader.module(input_ids=ids).logits
assert torch.allclose(from_embeddings, ordinary, atol=1e-5)

# %% [markdown]
# ## 2 · What a model has to beat
#
# Two rules that see no language model:
#
# - **First pronoun rule.** The class is that of the first *she*, *he* or *they* (in any case form). Nothing is fitted.
#   Without a pronoun it says F, which is right as often as any guess.
# - **Bag of words.** Logistic regression on word counts: it knows all the words and none of their order.
#
# `accuracy_hard` is the accuracy on *hard* rows: their first pronoun is outside the ground truth, so it belongs to somebody
# else and is the same in all forms. A reader of pronouns must fail there, and only there can a model show that it has found
# the subject.


# %% tags=["nbval-ignore-output"]
def floor_accuracy(name: str) -> pd.DataFrame:
    """Accuracy of the floors of one data set, on all rows and on hard rows."""
    test, known = data[name]["test"], classes[name]
    target, hard = test["target"].to_numpy(), first_pronoun_is_other(test, known)
    guesses = {
        "First pronoun rule": first_pronoun_class(test, known),
        "Bag of words": bag_of_words(data[name]["train"], test),
    }
    return pd.DataFrame(
        [
            {
                "dataset": name,
                "scheme": rule,
                "accuracy": (guess == target).mean(),
                "n_hard": hard.sum(),
                "accuracy_hard": (guess == target)[hard].mean()
                if hard.any()
                else np.nan,
            }
            for rule, guess in guesses.items()
        ]
    )


floors = pd.concat([floor_accuracy(name) for name in data], ignore_index=True)
stage.table("floors", floors)

# %% [markdown]
# *Reading it.* The rule is nearly always right where all words were altered (D_A) and still good where only the subject's
# were (D_S). On hard rows it falls to chance exactly: it gives all forms of a sentence the same answer, and one of them is
# right. So a model that does as well as the rule on D_S may have learnt nothing but pronouns. From here on, a model below the rule is marked,
# and no claim will rest on it.
#
# ## 3 · A transfer scheme is a row of a table
#
# ![A stack of parts for each transfer scheme. ZS (zero-shot): embeddings stays as it is, encoder stays as it is, head stays as it is; C (head only): embeddings stays as it is, encoder stays as it is, head starts anew and learns; CE (head + new embeddings): embeddings starts anew and learns, encoder stays as it is, head starts anew and learns; CEf (head + embeddings): embeddings goes on learning, encoder stays as it is, head starts anew and learns; CEfAf (everything): embeddings goes on learning, encoder goes on learning, head starts anew and learns; OLA-CEA (one attention layer): embeddings starts anew and learns, encoder starts anew and learns, head starts anew and learns.](../../docs/schematics/schemes.svg)
#
# *The paper (section 3.3.5 and Table 3) divides BERT into Embedding, Attention and Classification, and says for each scheme
# whether a part stays fixed, is fine-tuned from its pre-trained values, or is trained from scratch.*
#
# We take this literally. A scheme is data, three words, and one function (`apply_scheme`) applies it to any model; no scheme
# has code of its own. The function finds the parts of a model instead of listing names, and refuses a scheme whose part
# turns out to be empty. This matters: in the released code the names for CEf's head match nothing, so its head stays at its
# random start.


# %%
def parameters_that_learn(scheme: str) -> dict[str, int]:
    """How many numbers of each part a scheme trains."""
    model, trained = build_model(
        trainer.recipe(scheme, CLASSES, seed), used_ids=range(1000)
    )
    return {
        f"{part} learns": sum(p.numel() for name, p in found.items() if name in trained)
        for part, found in model.parts().items()
    }


learning = pd.DataFrame(
    [
        {
            "scheme": s.name,
            "embeddings": s.embeddings,
            "encoder": s.encoder,
            "head": s.head,
            **parameters_that_learn(s.name),
        }
        for s in SCHEMES.values()
        if s.name != "ZS"
    ]
).set_index("scheme")
learning

# %% [markdown]
# *Reading it.* C trains 1155 numbers, a single layer with three outputs. CE and CEf train the embedding tables as well: of
# words, of positions, of sentence types, and the scaling behind them (LayerNorm). CE first draws the tables anew, from a
# uniform distribution whose width suits their size (Xavier); the scaling is kept, as in the released code. CEfAf trains
# everything. OLA is another, tiny model; its table has as many rows as there are words in use (here: a thousand, as an
# example). A check by hand, for MiniLM, whose vectors have 384 numbers, with 30 522 words, 512 positions and 2 types:

# %%
if encoder == "all-MiniLM-L6-v2":
    assert learning.loc["C", "head learns"] == 3 * 384 + 3
    assert learning.loc["CE", "embeddings learns"] == (30522 + 512 + 2) * 384 + 2 * 384
assert SCHEMES["CEf"].trained() == ("embeddings", "head")

# %% [markdown]
# **Zero-shot (ZS)** trains nothing at all, so it must find its answer in what it has. A masked language model fills a gap
# ("Female, male or neutral: [MASK]. ..."), a causal one continues a text, and an encoder that has no such output, as MiniLM,
# compares: each class has a description, and the sentence gets the class whose description is most similar. The paper's ZS
# is of the first kind.

# %% tags=["nbval-ignore-output"]
zero_shot, _ = build_model(trainer.recipe("ZS", CLASSES, seed))
forms = [
    f"{pronoun} {verb} the captain .".split()
    for pronoun, verb in (("She", "thanks"), ("He", "thanks"), ("They", "thank"))
]
shown = pd.DataFrame(
    zero_shot.predict(forms, 1), columns=[f"p_{name}" for name in CLASSES]
)
shown.insert(0, "sentence", [" ".join(form) for form in forms])
print(list(DESCRIPTIONS.values()))
stage.table("zero_shot_example", shown)

# %% [markdown]
# The model leans the right way without having seen the task, but not firmly. The descriptions name no pronouns; with
# pronouns in them the similarity would be little more than a word search.
#
# ## 4 · OLA: an attention model on one page
#
# *The paper (section 3.3.5, Table 5): a one-layer attention model with embeddings of dimension 64, trained on GECO alone. It
# has no past, so it can have no inherited habits.*
#
# Only the first token's output is read. It asks with its query $\mathbf{q} = W_q \mathbf{e}_0 + \mathbf{b}_q$ how much to
# take from each token:
#
# $$a_i = \operatorname{softmax}_i\!\left(\frac{\mathbf{q} \cdot (W_k \mathbf{e}_i + \mathbf{b}_k)}{\sqrt{64}}\right),\qquad
# \mathbf{v} = \sum_i a_i\,(W_v \mathbf{e}_i + \mathbf{b}_v),\qquad f = W_c \tanh(W_p \mathbf{v} + \mathbf{b}_p) + \mathbf{b}_c$$
#
# There are no positions: to this model, a sentence is a bag of words with weights.

# %%
show_source(OneLayerNet.attention)

# %% [markdown]
# The code multiplies in another order than the equation, which saves most of the work. The next cell computes the equation
# word for word, for all tokens as the released code does, and compares. It also shows the first fault of that code: its mask
# hides the *queries* of padding instead of the *keys*. Queries of padding are read by nobody, so nothing is hidden, and the
# first token takes from padding as well.

# %%
torch.manual_seed(0)
net, e, mask = (
    OneLayerNet(10, 3),
    torch.randn(2, 6, 64),
    torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]]),
)
scores = net.query(e) @ net.key(e).transpose(1, 2) / 8
by_keys, by_queries = (
    scores.masked_fill((mask == 0).unsqueeze(axis), -1e6).softmax(-1)[:, 0]
    for axis in (1, 2)
)
assert torch.allclose(by_keys, net.attention(e, mask), atol=1e-6)
assert torch.allclose(by_queries, net.attention(e, None), atol=1e-6)
v = (by_keys.unsqueeze(-1) * net.value(e)).sum(1)
assert torch.allclose(
    net.classifier(torch.tanh(net.pooler(v))), net(e, mask), atol=1e-5
)
print(
    f"mass on padding: {by_keys[1, 3:].sum():.2f} with keys hidden, more than 0.1 with queries hidden: {by_queries[1, 3:].sum() > 0.1}"
)

# %% [markdown]
# ## 5 · One training step, and the line that was forgotten
#
# All schemes are trained alike: cross-entropy, Adam, a learning rate that rises over the first tenth of the steps and then
# falls to zero, and of all epochs the one with the lowest loss on validation sentences is kept. Validation takes whole base
# sentences, so that no form of a sentence is learnt while another one judges (in the released code, forms fall on both
# sides). The step itself:

# %%
show_source(take_step)

# %% [markdown]
# The second branch is the released code of OLA. A setting switches off `zero_grad` for good, so each step uses the sum of
# *all* gradients so far, and clipping comes after the step: it caps what is carried over. That still learns, as a very slow
# kind of momentum. But it has a consequence for **weight decay**, a term that pulls each weight towards zero. The released
# value is 0.1. The clip keeps the carried sum at a length of about one, so it can hold its own against the decay; the
# gradient of a single step is far shorter, and the decay wins. First, the settings of each scheme in one place:

# %%
settings = settings_by_scheme(
    [*schemes, *binary_schemes, "C", "OLA-CEA"],
    dropout,
    epochs=epochs,
    lr=lr,
    batch_size=batch_size,
    weight_decay=weight_decay,
)
first = datasets[0]
settings["OLA-CEA"]

# %% [markdown]
# Now OLA with several values of the decay, with gradients zeroed as they should be, and once as released.


# %% tags=["nbval-ignore-output"]
def ola_with_decay(variant: str, decay: float) -> dict[str, object]:
    """Train OLA for 20 epochs: the loss of the last epoch, which epoch was kept, and the test accuracy of that one."""
    short = Settings(
        20, lr["OLA-CEA"], batch_size["OLA-CEA"], decay, eps=settings["OLA-CEA"].eps
    )
    one = Trainer(encoder, encoder_revision, trainer.device, validation_share, variant)
    result = one.train(
        "OLA-CEA", seed, data[first]["train"], data[first]["test"], CLASSES, short
    )
    right = result.predictions["predicted"] == result.predictions["target"]
    last, kept = result.curve.iloc[-1], result.curve["validation_loss"].idxmin() + 1
    return {
        "ola": variant,
        "weight_decay": decay,
        "train_loss": last["train_loss"],
        "kept_epoch": kept,
        "accuracy": right.mean(),
    }


decays = pd.DataFrame(
    [
        ola_with_decay("corrected", 0.0),
        ola_with_decay("corrected", 0.001),
        ola_with_decay("corrected", 0.1),
        ola_with_decay("as_released", 0.1),
    ]
)
stage.table("weight_decay", decays)

# %% [markdown]
# *Reading it.* With 0.1 the corrected model ends at $\ln 3 = 1.099$, the loss of a guess: the decay has pulled it back to
# zero. What accuracy it has is that of a very early epoch, before this was done. So the corrected OLA cannot keep the
# published value. We use **0.001, a named difference from the paper's settings**; without any decay OLA learns as well, but
# words that occur only in the test split then keep their random start instead of fading to zero.

# %%
told = f"found {decays[['train_loss', 'kept_epoch']].to_dict('records')}; raise epochs.OLA-CEA"
assert abs(decays["train_loss"][2] - np.log(3)) < 0.02, told
assert decays["train_loss"].drop(2).max() < 0.5, told
assert decays["kept_epoch"][2] < decays["kept_epoch"].drop(2).min(), told

# %% [markdown]
# ## 6 · The full run
#
# Every data set, scheme and seed is one unit. A unit that is finished is never trained again; at the larger scales the run
# can therefore be stopped and resumed, and it prints first how long the rest will take. A frozen encoder (scheme C) reads each
# sentence of a data set once, for all epochs and seeds: since nothing in it changes, this gives the same numbers as reading it
# again each time (a test compares them).


# %%
jobs = [
    Job(name, scheme, k, *data[name].values(), classes[name], settings[scheme])
    for name, scheme, k in models_of(globals()).itertuples(index=False)
]
print(f"{len(jobs)} models")
units = Units(
    "geco", scale, "02_training", reuse_units, digits=4 if reuse_units else None
)
left = (
    []
    if scale == "small"
    else [
        (job.dataset, job.scheme)
        for job in jobs
        if job.settings and (need_weights or not is_finished(units, trainer, job))
    ]
)
for name, scheme in dict.fromkeys(left):
    one = trainer.predicted_seconds(
        scheme, *data[name].values(), classes[name], settings[scheme]
    )
    print(
        f"{name} {scheme}: about {one / 60:.1f} minutes each, {left.count((name, scheme))} seeds"
    )

# %% [markdown]
# A unit leaves its trained tensors (and no others) in `models/`, its predictions of the test rows, and its learning curve.

# %%
finished = [
    found
    for group in progress(trained_together(jobs), "models")
    for found in run_group(stage, units, trainer, group, need_weights)
]
predictions = pd.concat([found for found, _ in finished], ignore_index=True)
curves = pd.concat([curve for _, curve in finished if len(curve)], ignore_index=True)
columns = [
    "dataset",
    "scheme",
    "seed",
    "split",
    "row_id",
    "sentence_idx",
    "target",
    "predicted",
    "p_F",
    "p_M",
    "p_NB",
]
save_parquet(predictions[columns], stage.path("predictions.parquet"))
predictions.groupby(["dataset", "scheme"], sort=False).agg(
    models=("seed", "nunique"), rows=("row_id", "nunique")
)

# %% [markdown]
# ## 7 · Accuracy, beside the paper and beside the floors
#
# How to read the table:
#
# - `accuracy` is on the test split, with a 95 % interval (`low`, `high`) over base sentences: three forms of one sentence
#   are not three independent rows, so whole base sentences are resampled. Where a scheme has several seeds (`n_seeds`), the
#   interval includes their spread.
# - `train_accuracy` is on rows that the model has learnt from; a gap to `accuracy` is overfitting.
# - `accuracy_hard` is on the hard rows of section 2 (`n_hard` of them).
# - `paper`, `paper_sd` come from Table 3 (for the binary sets, from Table 2 of the paper's first version), with BERT, five
#   seeds and all of GECO.
# - `mark` says which models are below the first pronoun rule.
#
# Floors stand first in each data set; the models follow, from "nothing trained" to "everything from scratch".


# %% tags=["nbval-ignore-output"]
def accuracy_table() -> pd.DataFrame:
    """Accuracy of each scheme with its interval, on all and on hard rows, beside the paper's."""
    tests = [
        d["test"].assign(
            dataset=name, hard=first_pronoun_is_other(d["test"], classes[name])
        )
        for name, d in data.items()
    ]
    rows = predictions.merge(
        pd.concat(tests)[["dataset", "row_id", "hard"]], on=["dataset", "row_id"]
    )
    rows["right"] = (rows["predicted"] == rows["target"]).astype(float)
    by, hard = ["dataset", "scheme"], rows[rows["hard"]].groupby(["dataset", "scheme"])
    found = estimates(rows, by, "right").rename(columns={"estimate": "accuracy"})[
        [*by, "n_seeds", "accuracy", "low", "high"]
    ]
    more = [
        curves.groupby(by)["train_accuracy"].mean(),
        hard["right"].mean().rename("accuracy_hard"),
        hard["row_id"].nunique().rename("n_hard"),
    ]
    table = pd.concat(
        [floors, found.join(pd.concat(more, axis=1), on=by)], ignore_index=True
    )
    printed = (
        read_table(material("geco") / "paper_numbers.csv")
        .query("quantity == 'accuracy'")
        .set_index(by)
    )
    table = table.join(
        printed[["value", "spread"]].div(100).set_axis(["paper", "paper_sd"], axis=1),
        on=by,
    )
    return table.fillna({"n_hard": 0, "n_seeds": 0}).astype(
        {"n_hard": int, "n_seeds": int}
    )


accuracy = accuracy_table().sort_values(
    "dataset", key=lambda names: names.map(list(data).index), kind="stable"
)
rule = floors[floors["scheme"] == "First pronoun rule"].set_index("dataset")["accuracy"]
accuracy["mark"] = np.where(
    accuracy["accuracy"] < accuracy["dataset"].map(rule), BELOW, ""
)
stage.table(
    "accuracy",
    accuracy[
        [
            "dataset",
            "scheme",
            "n_seeds",
            "accuracy",
            "low",
            "high",
            "train_accuracy",
            "accuracy_hard",
            "n_hard",
            "paper",
            "paper_sd",
            "mark",
        ]
    ].reset_index(drop=True),
)

# %% [markdown]
# *Reading it.* On D_A everything works, and so does the rule: there, accuracy cannot tell a reader of pronouns from a reader
# of sentences. D_S can. Going down its block, ZS and C are below the rule: what a frozen encoder writes into its first token
# does not say whose pronoun is whose. Training the embeddings lifts a model far above C, and training everything is best; on
# the hard rows the steps between schemes are largest. That is the paper's order, too. C, CE, CEf and CEfAf on D_S are below the
# paper's: they have a sixth of its sentences to learn from. OLA, which knows no word order, is not far from the bag of
# words, as it should be.
#
# Mind the intervals: with so few base sentences they are some five points wide to each side, so neighbours such as CE and
# CEf cannot be told apart here. A *marked* model has not shown that it learnt more than pronouns; stage 3 explains it all
# the same, and stage 4 keeps it out of every claim.
#
# ## 8 · Controls
#
# Could a mistake in our code make any model look good? Two models that *must* fail: C trained on shuffled labels, and OLA
# before its training. Both should be near chance, one in three. And the schemes that train the embeddings should be far
# above them.

# %% tags=["nbval-ignore-output"]
generator = np.random.default_rng(seed)
shuffled = data[first]["train"].assign(
    target=generator.permutation(data[first]["train"]["target"])
)
controls = {
    "C, shuffled labels": trainer.train(
        "C", seed, shuffled, data[first]["test"], CLASSES, settings["C"]
    ).predictions
}
untrained = Settings(1, 0.0, batch_size["OLA-CEA"])
controls["OLA, learning rate 0"] = trainer.train(
    "OLA-CEA", seed, *data[first].values(), CLASSES, untrained
).predictions
control = pd.DataFrame(
    [
        {"control": name, "accuracy": (p["predicted"] == p["target"]).mean()}
        for name, p in controls.items()
    ]
)
stage.table("controls", control)

# %% [markdown]
# Near chance, as they should be. The next cell asserts the order for the scales that we ran, with room for small test sets.

# %%
ours, best = (
    accuracy.set_index(["dataset", "scheme"])["accuracy"],
    control["accuracy"].max(),
)
if scale in ("small", "cpu"):
    told = f"found {ours.round(2).to_dict()}, shuffled labels {best:.2f}; raise"
    assert best < 0.5, f"{told} the number of test rows (test_share)"
    known = [s for s in schemes if s != "ZS" and (first, s) in ours]
    assert all(ours[first, s] > best + 0.2 for s in known), (
        f"{told} epochs or lr of the scheme below {best + 0.2:.2f}"
    )
    assert (
        not {"C", "CEfAf"} <= set(schemes)
        or ours[datasets[-1], "CEfAf"] > ours[datasets[-1], "C"]
    ), f"{told} epochs.CEfAf"

# %% [markdown] tags=["slide"]
# ## 9 · Learning curves
#
# One panel per data set and scheme, first seed. The dot marks the epoch that was kept. Watch the distance between the two
# lines: where the training loss falls on while the validation loss does not, the model learns sentences by heart. The dotted
# line is the loss of a guess, $\ln 3$. The table below the figure holds the epochs that were kept; all curves are in
# `curves.csv`.

# %% tags=["nbval-ignore-output", "slide"]
drawn = curves[(curves["seed"] == 0) & curves["dataset"].isin(datasets)]
kept = drawn.loc[
    drawn.groupby(["dataset", "scheme"], sort=False)["validation_loss"].idxmin()
]
lines = drawn.rename(
    columns={"train_loss": "training", "validation_loss": "validation"}
)
lines = lines.melt(
    ["dataset", "scheme", "epoch"], ["training", "validation"], "rows", "loss"
)
with plt.rc_context(STYLE):
    grid = sns.relplot(
        lines,
        x="epoch",
        y="loss",
        hue="rows",
        style="rows",
        row="dataset",
        col="scheme",
        kind="line",
        palette=COLOURS[:2],
        height=1.9,
        aspect=1.05,
        facet_kws={"sharex": "col", "margin_titles": True},
    )
    for (name, scheme), ax in grid.axes_dict.items():
        at = kept[(kept["dataset"] == name) & (kept["scheme"] == scheme)]
        ax.plot(at["epoch"], at["validation_loss"], "o", color=COLOURS[1])
        ax.axhline(np.log(3), color="0.6", linestyle=":")
        ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    grid.set_titles(col_template="{col_name}", row_template="{row_name}").set(
        ylim=(0, None)
    )
    sns.move_legend(grid, "upper center", bbox_to_anchor=(0.45, 0), ncol=2, title=None)
stage.figure("learning_curves", grid.figure)
_ = stage.table(
    "curves", curves[curves["seed"] < 5].round(5)
)  # of twenty seeds five show enough
stage.table("kept_epochs", kept[["dataset", "scheme", *CURVE]].reset_index(drop=True))

# %% [markdown] tags=["slide"]
# *Reading it.* On D_A both losses fall to nearly nothing. On D_S the frozen encoder (C) flattens out high: there is nothing
# left in its output for a single layer to learn from. OLA's lines part early: it begins to learn training sentences by
# heart, and the kept epoch lies before the end. (The training loss of an epoch is measured while learning, so in the first
# epoch it is above the validation loss, which is measured after it.)
#
# ## What could be wrong
#
# - **One seed says little.** At this scale each BERT-like scheme has one. The interval then speaks about sentences only, and
#   training again would move the numbers: re-drawn embeddings (CE) by several points.
# - **MiniLM is not BERT.** It has 6 layers instead of 12 and was trained to compare sentences. Its zero-shot answer is of
#   another kind than the paper's.
# - **C sees little.** It reads BERT's pooled first token through a layer that was never trained for this (the pooler stays
#   frozen, as in the released code). Its low accuracy on D_S says as much about the pooler as about the encoder.
# - **Validation chose the epoch** on few sentences; the loss of the kept epoch is therefore a little too good, the test
#   accuracy is not.
# - **A named difference**: OLA's weight decay is 0.001 with corrected gradients, not 0.1 (section 5). And our validation
#   keeps base sentences together.
#
# ## Try it
#
# - Set `ola = "as_released"` and `weight_decay["OLA-CEA"] = 0.1`: OLA as it was published. Does its accuracy differ?
# - Give `dropout` 0.1. Only the parts that learn drop activations; frozen parts never do.
# - Set `encoder` to the folder of a RoBERTa, XLNet or GPT-2 that you have. Nothing else changes.
# - Add a scheme to `SCHEMES`: encoder `re-initialised`, embeddings `fixed`. Is a random encoder any use?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The models and their predictions are in this stage's folder. [03_attribution](03_attribution.ipynb) loads each model from
# its recipe and its trained tensors, and asks ten methods which words made it decide. [04_metrics](04_metrics.ipynb)
# compares the answers with the words that were altered, and repeats the comparison with the floors row by row.

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
from lib.language.lexicon import first_pronoun

accuracy = read_committed("geco", "cpu", "02_training", "accuracy")
accuracy = accuracy.query("dataset == 'D_S'")[["scheme", "accuracy", "accuracy_hard"]]
accuracy.round(3)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# The scheme *head only* (C) fine-tunes one linear layer: 384 numbers go in, one score for each of three classes comes out, and each class has a bias. How many parameters learn?

# %% tags=["hole"]
n_parameters = ...

# %% tags=["solution"]
n_parameters = 384 * 3 + 3

# %% tags=["check"]
hidden, classes = 384, 3
check_number(
    n_parameters,
    (hidden + 1) * classes,
    {
        "each class also has a bias.": hidden * classes,
        "each class has a bias of its own.": hidden * classes + 1,
    },
    "Count the weights of one class first.",
    tolerance=0,
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write the floor *first pronoun* for the three classes F, M and NB, with *she, her, he, him, his, they, them, their* only. It is given a list of words and returns the class of the first pronoun, 0 for F, 1 for M and 2 for NB. Without a pronoun it says 0.


# %% tags=["hole"]
def first_pronoun_rule(words):
    """0, 1 or 2."""
    return ...


# %% tags=["solution"]
def first_pronoun_rule(words):
    """0, 1 or 2."""
    classes = {"she": 0, "her": 0, "he": 1, "him": 1, "his": 1}
    classes |= {"they": 2, "them": 2, "their": 2}
    return next((classes[w.lower()] for w in words if w.lower() in classes), 0)


# %% tags=["check"]
check_function(
    first_pronoun_rule,
    lambda words: (first_pronoun(words, ("F", "M", "NB")) or (0, 0))[1],
    {
        "The sentence has one pronoun.": ["the dog sees him .".split()],
        "A capital letter changes no pronoun.": ["They sing .".split()],
        "Two pronouns stand here, and the first decides.": ["he calls her .".split()],
        "Without a pronoun the rule says F.": ["the dog sleeps .".split()],
        "Only whole words are pronouns.": ["other women see them".split()],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# The table at the top is of D_S, at scale `cpu`. `accuracy_hard` is the accuracy on rows whose first pronoun is somebody else's. *Head only* (C) is below the first-pronoun rule. What follows?
#
# - `"a"` C has learnt the rule, a little less well.
# - `"b"` C has learnt something else than the rule, and too little for its explanations to tell us much about the task.
# - `"c"` C must be right more often on hard rows than on all rows.

# %% tags=["hole"]
what_follows = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_follows = "b"

# %% tags=["check"]
by = accuracy.set_index("scheme")
rule, head_only = by.loc["First pronoun rule"], by.loc["C"]
assert head_only["accuracy"] < rule["accuracy"]
assert rule["accuracy_hard"] < head_only["accuracy_hard"] < head_only["accuracy"]
check_choice(
    what_follows,
    "b",
    {
        "a": "Compare the two on hard rows: would a copy of the rule do better there?",
        "c": "Read both columns of its row.",
    },
)
