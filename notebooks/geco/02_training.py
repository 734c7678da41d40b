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
# # GECO, stage 2 of 5: which parts of a language model must learn the task?
#
# Before: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **A rule that reads one pronoun is hard to beat.** It takes the class of the first pronoun and never sees a model. It is right in
#   98.8 %<!-- geco/cpu/02_training/accuracy[dataset=D_A, scheme=First pronoun rule].accuracy --> of the rows where all gendered words change. Where only
#   the words about the subject change, it is right in 94.0 %<!-- geco/cpu/02_training/accuracy[dataset=D_S, scheme=First pronoun rule].accuracy -->.
# - **Training the head alone is not enough.** Where only the words about the subject change, *head only* is right in
#   77.4 %<!-- geco/cpu/02_training/accuracy[dataset=D_S, scheme=C].accuracy --> and *head + embeddings* in 98.2 %<!-- geco/cpu/02_training/accuracy[dataset=D_S, scheme=CEf].accuracy -->.
# - **Where only the words about the subject change, one attention layer trained from scratch stays below the rule**, at
#   92.4 %<!-- geco/cpu/02_training/accuracy[dataset=D_S, scheme=OLA-CEA].accuracy -->. No claim about explanations there rests on it.
#
# This is the run at scale `cpu`: the published GECO and a small BERT ([table](../../outputs/reference/geco/cpu/02_training/accuracy.csv)).
#
# GECOBench (arXiv 2406.11547) suspects that explanations depend on *what was trained*. A pretrained model brings habits from the text
# that it was trained on. If only its last layer learns the task, all of them stay. So the paper trains one task in several
# ways, from "change nothing" to "train everything from scratch", and explains every model.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how a language model reads a sentence, and how its parts are frozen, fine-tuned or started anew;
# - an attention model that fits on a page;
# - the accuracy of every model beside the paper's, and beside two rules that use no language model.
#
# **You can then** say which parameters a scheme changes, and judge a classifier beside two rules. **You need**
# [stage 1](01_data_generation.ipynb), and to have trained a classifier before. **Time:** 20 minutes to read, 4 minutes to
# run, [15 minutes for the exercises](../../docs/course/exercises/geco.md#02-training).
#
# | in | out |
# |---|---|
# | the data sets of stage 1 | `models/`: each trained model |
# | | `predictions.parquet`: class probabilities of every test row |
# | | `accuracy`, `floors`, `curves`, `kept_epochs` and small tables; two figures |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.ticker import MaxNLocator

from lib.core.files import read_table, save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.progress import progress
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.models.load import build_model
from lib.models.ola import OneLayerNet
from lib.models.schemes import SCHEMES
from lib.models.zero_shot import DESCRIPTIONS
from lib.plots import BELOW, COLOURS, FORM_NAMES, SCHEME_NAMES, STYLE
from lib.stats import estimates
from lib.studies.geco import floors as rules
from lib.studies.geco import model_units
from lib.studies.geco.corpus import CLASSES, load_dataset
from lib.training.classifier import CURVE, Settings
from lib.training.loop import take_step
from lib.training.transfer import Trainer

# %% [markdown]
# ## Settings
#
# A *scheme* says which parts of a model learn (section 3). A setting that differs between schemes is a dictionary with one value for each.
# Schemes named in `one_dataset_schemes` are trained on *subject only* (D_S) alone, the others on every data set. The
# paper's settings (its Table 5) are in `params/geco/paper.yaml`. We train fewer steps, because we have fewer sentences and one processor core.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the controls; the models have the seeds 0, 1, ...
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
# take finished models' numbers from, and publish them to, outputs/reference
reuse_units = False
# train a model again if only its numbers were published, so that it can be explained
need_weights = False
encoder = "all-MiniLM-L6-v2"  # the packaged model, a folder, or a hub id
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
}  # this factor times the weight is added to the gradient
dropout = 0.0  # share of activations dropped in the parts that learn
validation_share = 0.2  # share of train that chooses the epoch
ola = "corrected"  # corrected or as_released (see the appendix)

# %% [markdown]
# | symbol | meaning | variable | shape |
# |---|---|---|---|
# | $\mathbf{x}$ | a sentence as the model reads it | `ids` | batch, token |
# | $\mathbf{e}$ | its word embeddings | `embeddings` | batch, token, hidden |
# | $m$ | 1 for tokens, 0 for padding | `mask` | batch, token |
# | $f(\mathbf{x})$ | class scores, before softmax | `logits` | batch, class |
#
# A *token* is what the model reads: a word, a piece of a rare word, or a special mark. An *embedding* is the list of numbers that
# stands for a token. The *encoder* is the stack of layers in which embeddings influence each other. The *head* turns its output
# into one score per class.

# %%
set_up(seed, n_threads)
stage = open_stage("geco", scale, "02_training")
binary = [f"{name}_binary" for name in datasets] if binary_schemes else []
data = {
    name: {split: load_dataset(stage, name, split) for split in ("train", "test")}
    for name in datasets + binary
}
classes = {name: CLASSES[:2] if name in binary else CLASSES for name in data}
PLAIN = {
    "D_A": "all gendered words",
    "D_S": "subject only",
    "ZS": "zero-shot",
    "C": "head only",
    "CE": "head + new embeddings",
    "CEf": "head + embeddings",
    "CEfAf": "everything",
    "OLA-CEA": "one attention layer",
}
PLAIN |= {f"{name}_binary": f"{PLAIN[name]}, two classes" for name in ("D_A", "D_S")}
sizes = pd.DataFrame(
    {name: {split: len(rows) for split, rows in data[name].items()} for name in data}
).T.rename_axis("dataset")
show_table(
    sizes.reset_index().replace(PLAIN),
    {"dataset": "words that change", "train": "train rows", "test": "test rows"},
)

# %% [markdown] tags=["slide"]
# Every base sentence is there once in each form. So a guess is right one time in three (two classes: one in two).
#
# ## 1 · One sentence by hand
#
# > When he calls, she answers wholeheartedly.
#
# The subject of the main clause is *she*, so the class is *female* (F). **Stop and guess:**
#
# 1. What does a model read? We expect a mark in front and one at the end (`[CLS]` and `[SEP]`, in the [glossary](../../docs/glossary.md)), one token for each common word, and
#    several for *wholeheartedly*.
# 2. What would a rule that sees only the first pronoun answer? *He*, so *male* (M), which is wrong.

# %%
trainer = Trainer(encoder, encoder_revision, pick_device(device), validation_share, ola)
example = "When he calls , she answers wholeheartedly .".split()
reader, _ = build_model(trainer.recipe("C", CLASSES, seed))
encoded = reader.encode([example])[0]
words = ["" if i is None else example[i] for i in encoded.word_ids]
for token, word in zip(reader.tokenizer.convert_ids_to_tokens(encoded.ids), words):
    print(f"{token:<12}{word}")

# %% [markdown]
# As expected. Explanations ask how the score changes with the *word embeddings*. So the model must give the same class
# scores for the embeddings as for the text:

# %%
assert set(words) - {""} == set(example)
assert rules.first_pronoun(example) == (1, CLASSES.index("M"))
ids = torch.tensor([encoded.ids])
with torch.no_grad():
    from_embeddings = reader.logits(reader.embed(ids), torch.ones_like(ids))
    ordinary = reader.module(input_ids=ids).logits
assert torch.allclose(from_embeddings, ordinary, atol=1e-5)

# %% [markdown] tags=["slide"]
# ## 2 · What a model has to beat
#
# A *floor* is the score of a rule that never looks at the model. We use two rules:
#
# - **First pronoun** gives the class of the first *she*, *he* or *they*, in any case form. Without a pronoun it says *female*.
# - **Bag of words** is a logistic regression on word counts. It knows the words but not their order.
#
# We call a row *hard* if its first pronoun belongs to somebody else. Then the pronoun is the same in all forms, the rule gives all
# three the same answer, and one of three is right. On hard rows a model can show that it reads more than the first pronoun.


# %% tags=["nbval-ignore-output"]
def floor_accuracy(name: str) -> pd.DataFrame:
    """Accuracy of the floors of one data set, on all rows and on hard rows."""
    test, known = data[name]["test"], classes[name]
    target, hard = test["target"].to_numpy(), rules.first_pronoun_is_other(test, known)
    guesses = {
        "First pronoun rule": rules.first_pronoun_class(test, known),
        "Bag of words": rules.bag_of_words(data[name]["train"], test),
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
show_table(
    stage.table("floors", floors).replace(PLAIN),
    {
        "dataset": "words that change",
        "scheme": "rule",
        "accuracy": "accuracy",
        "n_hard": "hard rows",
        "accuracy_hard": "accuracy on hard rows",
    },
)

# %% [markdown] tags=["slide"]
# *First pronoun* is nearly always right where all gendered words change, and still good for *subject only*. On hard rows it falls to
# chance exactly. *Bag of words* does not, though it knows no order. So a good score on hard rows does not yet show that a model has found the subject.
# A model that does as well as *First pronoun* may have learnt nothing but pronouns. From here on a model below this
# rule is marked, and no claim about explanations rests on it.
#
# ## 3 · Which parts does each scheme train?
#
# ![A stack of parts for each transfer scheme. ZS (zero-shot): embeddings stays as it is, encoder stays as it is, head stays as it is; C (head only): embeddings stays as it is, encoder stays as it is, head starts anew and learns; CE (head + new embeddings): embeddings starts anew and learns, encoder stays as it is, head starts anew and learns; CEf (head + embeddings): embeddings goes on learning, encoder stays as it is, head starts anew and learns; CEfAf (everything): embeddings goes on learning, encoder goes on learning, head starts anew and learns; OLA-CEA (one attention layer): embeddings starts anew and learns, encoder starts anew and learns, head starts anew and learns.](../../docs/schematics/schemes.svg)
#
# The paper (section 3.3.5) divides BERT into embeddings, attention and classification. For each scheme it says whether a part
# stays fixed, is fine-tuned, or is trained from scratch. So a scheme is three words, one each for embeddings, encoder and head: `fixed`, `fine-tuned` or
# `re-initialised`. *Head + embeddings*, for example, is `fine-tuned`, `fixed`, `re-initialised`.


# %% tags=["slide"]
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
show_table(
    learning.reset_index()
    .replace(PLAIN)
    .map(lambda cell: cell if isinstance(cell, str) else f"{cell:,}"),
    {"scheme": "scheme"}
    | {f"{part} learns": part for part in ("embeddings", "encoder", "head")},
)

# %% [markdown]
# The table counts the parameters that are trained. *Head only* (C in the paper) trains a single layer with three outputs. *Head + new
# embeddings* (CE) and *head + embeddings* (CEf) also train the embeddings; CE first re-initialises them. *Everything* (CEfAf) trains all.
# The attention layer has 64 numbers for each word, here for 1,000 words.
#
# The next cell checks two counts by hand. An embedding has 384 coordinates. There is one for each of 30,522 tokens and 512 positions, and two for sentence types.
# The layer normalisation after them adds two such vectors.

# %%
if encoder == "all-MiniLM-L6-v2":
    assert learning.loc["C", "head learns"] == 3 * 384 + 3
    assert learning.loc["CE", "embeddings learns"] == (30522 + 512 + 2) * 384 + 2 * 384
assert SCHEMES["CEf"].trained() == ("embeddings", "head")

# %% [markdown]
# *Zero-shot* (ZS) trains nothing. Our encoder compares: each class has a description, and the sentence gets the class whose
# description is most similar. (The paper's BERT predicts a masked token instead.)

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
print(*DESCRIPTIONS.values(), sep="\n")
show_table(
    stage.table("zero_shot_example", shown),
    {"sentence": "sentence"} | {f"p_{form}": name for form, name in FORM_NAMES.items()},
)

# %% [markdown] tags=["slide"]
# The model leans the right way without having seen the task, but not firmly.
#
# ## 4 · An attention model on one page
#
# The smallest model, *one attention layer* (OLA-CEA in the paper), is trained on GECO alone, so it has no inherited habits. Only the output of the first token, with the embedding $\mathbf{e}_0$, is read. The query of this token,
# $\mathbf{q} = W_q \mathbf{e}_0 + \mathbf{b}_q$, decides how much to take from each token:
#
# $$a_i = \operatorname{softmax}_i\!\left(\frac{\mathbf{q} \cdot (W_k \mathbf{e}_i + \mathbf{b}_k)}{\sqrt{64}}\right),\qquad
# \mathbf{v} = \sum_i a_i\,(W_v \mathbf{e}_i + \mathbf{b}_v),$$
#
# $$f = W_c \tanh(W_p \mathbf{v} + \mathbf{b}_p) + \mathbf{b}_c$$
#
# $W_k$ and $W_v$ make keys and values, $W_p$ is the pooler and $W_c$ the classifier; each has a bias $\mathbf{b}$.
# There are no positions: to this model, a sentence is a bag of words with weights.

# %%
show_source(OneLayerNet.attention)

# %% [markdown]
# The next cell computes the equation term by term, and compares.

# %%
torch.manual_seed(0)
net, e = OneLayerNet(10, 3), torch.randn(2, 6, 64)
mask = torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
scores = net.query(e) @ net.key(e).transpose(1, 2) / 8
a = scores.masked_fill((mask == 0).unsqueeze(1), -1e6).softmax(-1)[:, 0]
v = (a.unsqueeze(-1) * net.value(e)).sum(1)
f = net.classifier(torch.tanh(net.pooler(v)))
assert torch.allclose(a, net.attention(e, mask), atol=1e-6)
assert torch.allclose(f, net(e, mask), atol=1e-5)
print(f"attention to padding: {a[1, 3:].sum():.2f}")

# %% [markdown]
# Both agree. The released code differs; [an appendix](appendix_released_ola.ipynb) shows two lines, and what they do.
#
# ## 5 · Training
#
# All schemes are trained alike: cross-entropy, Adam, a learning rate that rises over the first tenth of the steps and
# then falls to zero. Of all epochs we keep the one with the lowest loss on validation sentences. These are whole base
# sentences, so no form of them is seen in training. The code below is one training step. Our models use its first
# branch; the second one is that of the released attention layer:

# %%
show_source(take_step)

# %% [markdown]
# The next cell collects the settings, and lists the models: one for each data set, scheme and seed.

# %%
settings = model_units.settings_by_scheme(
    [*schemes, *binary_schemes, "C", "OLA-CEA"],
    dropout,
    epochs=epochs,
    lr=lr,
    batch_size=batch_size,
    weight_decay=weight_decay,
)
first = datasets[0]
jobs = [
    model_units.Job(
        name, scheme, k, *data[name].values(), classes[name], settings[scheme]
    )
    for name, scheme, k in model_units.models_of(globals()).itertuples(index=False)
]
print(f"{len(jobs)} models")
units = Units(
    "geco", scale, "02_training", reuse_units, digits=4 if reuse_units else None
)

# %% [markdown]
# A finished model is never trained again, so a long run can be stopped and resumed. At larger scales the next cell says how long
# the rest will take.

# %%
left = (
    []
    if stage.is_practice
    else [
        (job.dataset, job.scheme)
        for job in jobs
        if job.settings
        and (need_weights or not model_units.is_finished(units, trainer, job))
    ]
)
for name, scheme in dict.fromkeys(left):
    one = trainer.predicted_seconds(
        scheme, *data[name].values(), classes[name], settings[scheme]
    )
    print(
        f"{name} {scheme}: about {one / 60:.1f} minutes each,",
        f"{left.count((name, scheme))} seeds",
    )

# %% [markdown]
# Now the training.

# %%
finished = [
    found
    for group in progress(model_units.trained_together(jobs), "models")
    for found in model_units.run_group(stage, units, trainer, group, need_weights)
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
print(len(finished), "models trained;", len(predictions), "predictions of test rows")

# %% [markdown] tags=["slide"]
# How did they learn? The next cell draws one panel for each model of the first seed. The loss of a guess is $\ln 3$. Where the training loss keeps falling and the validation loss does not, the model learns sentences by heart. Two panels are empty at this scale:
# their models are trained on *subject only* alone.

# %% tags=["nbval-ignore-output", "slide"]
drawn = curves[(curves["seed"] == 0) & curves["dataset"].isin(datasets)]
kept = drawn.loc[
    drawn.groupby(["dataset", "scheme"], sort=False)["validation_loss"].idxmin()
]
lines = drawn.rename(
    columns={"train_loss": "training", "validation_loss": "validation"}
)
short = PLAIN | {"D_A": "all\ngendered", "D_S": "subject\nonly"}  # beside a panel
lines = lines.melt(
    ["dataset", "scheme", "epoch"], ["training", "validation"], "rows", "loss"
).replace(short)
named = kept.replace(short)
in_order = [name for name in SCHEME_NAMES.values() if name in set(lines["scheme"])]
with plt.rc_context(STYLE):
    grid = sns.relplot(
        lines,
        x="epoch",
        y="loss",
        hue="rows",
        style="rows",
        row="dataset",
        col="scheme",
        col_order=[*dict.fromkeys([*in_order, *lines["scheme"]])],
        kind="line",
        palette=COLOURS[:2],
        height=1.5,
        aspect=1.33,
        facet_kws={"sharex": "col", "margin_titles": True},
    )
    for (name, scheme), ax in grid.axes_dict.items():
        at = named[(named["dataset"] == name) & (named["scheme"] == scheme)]
        (dot,) = ax.plot(at["epoch"], at["validation_loss"], "o", color=COLOURS[1])
        guess = ax.axhline(np.log(3), color="0.6", linestyle=":")
        ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    grid.set_titles(col_template="{col_name}", row_template="{row_name}").set(
        ylim=(0, None)
    )
    handles = [*grid.legend.legend_handles, dot, guess]
    labels = "training", "validation", "kept epoch", "a guess"
    grid.legend.remove()
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "ncol": 4}
    grid.figure.legend(handles, labels, frameon=False, **below)
    who, where = kept.loc[kept["validation_loss"].idxmax(), ["scheme", "dataset"]]
    title = f"Highest validation loss: {PLAIN[who]}, {PLAIN[where]}"
    grid.figure.suptitle(title, y=1.05)
stage.figure("learning_curves", grid.figure)
plt.show()
_ = stage.table("curves", curves[curves["seed"] < 5].round(5))  # five show enough
show_table(
    stage.table(
        "kept_epochs", kept[["dataset", "scheme", *CURVE]].reset_index(drop=True)
    ).replace(PLAIN),
    {
        "dataset": "words that change",
        "scheme": "scheme",
        "epoch": "kept epoch",
        "train_loss": "training loss",
        "validation_loss": "validation loss",
    },
)

# %% [markdown] tags=["slide"]
# Where all gendered words change, both losses fall to nearly nothing. For *subject only*, the loss of *head only* stays high: a single layer on a frozen encoder cannot get
# further.
#
# ## 6 · Accuracy, beside the rules and the paper
#
# ![Right and wrong answers to 4 base sentences in three forms, by 3 fine-tuning runs, with a mean of 0.72; a resample draws whole sentences, with all their forms and runs, and has a mean of 0.50.](../../docs/schematics/resample.svg)
#
# Below, a dot is the accuracy on the test part. Its line is the 95 % interval over base sentences and seeds. Three forms of one sentence are not three independent rows, so whole base sentences are
# resampled. The two vertical lines are the two rules. Grey crosses are the paper's values.


# %%
def accuracy_table() -> pd.DataFrame:
    """Accuracy of each scheme on all and on hard rows, beside the paper's."""
    tests = [
        d["test"].assign(
            dataset=name, hard=rules.first_pronoun_is_other(d["test"], classes[name])
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
columns = ["dataset", "scheme", "n_seeds", "accuracy", "low", "high"]
columns += ["train_accuracy", "accuracy_hard", "n_hard", "paper", "paper_sd", "mark"]
accuracy = accuracy[columns].reset_index(drop=True)

# %% [markdown]
# The models are ordered from *zero-shot*, where nothing is trained, to the attention layer:

# %% tags=["nbval-ignore-output", "slide"]
shown = accuracy[accuracy["dataset"].isin(datasets)]
below = shown[(shown["mark"] != "") & shown["scheme"].isin(SCHEMES)]
with plt.rc_context(STYLE):
    figure, panels = plt.subplots(
        1,
        len(datasets),
        figsize=(9, 3.2),
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for name, ax in zip(datasets, panels[0]):
        part = shown[shown["dataset"] == name].set_index("scheme")
        for rule_name, line, colour in zip(part.index[:2], ("-", "--"), ("0.2", "0.5")):
            at = part.loc[rule_name, "accuracy"]
            ax.axvline(at, linestyle=line, color=colour, label=rule_name.lower())
        models = part.reindex([s for s in schemes if s in set(shown["scheme"])])
        y = np.arange(len(models))
        ax.hlines(y, models["low"], models["high"], color=COLOURS[0], linewidth=2)
        ax.plot(models["accuracy"], y, "o", color=COLOURS[0], label="our models")
        ax.plot(models["paper"], y, "x", color="0.4", label="the paper")
        ax.set(yticks=y, yticklabels=[PLAIN[s] for s in models.index])
        n_below = sum(below["dataset"] == name)
        ax.set_title(f"{PLAIN[name]}: {n_below} below the rule", loc="left")
        ax.set_xlabel("accuracy")
    panels[0][0].invert_yaxis()
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
stage.figure("accuracy", figure)
plt.show()
show_table(
    stage.table("accuracy", accuracy).query("dataset == @datasets[-1]").replace(PLAIN),
    {
        "scheme": "scheme",
        "n_seeds": "seeds",
        "accuracy": "accuracy",
        "low": "from",
        "high": "to",
        "accuracy_hard": "on hard rows",
        "paper": "the paper",
        "mark": "mark",
    },
)

# %% [markdown] tags=["slide"]
# The table is about *subject only*. Where all gendered words change, every trained model is nearly always right, and so is the rule. So accuracy cannot show whether a model reads more than pronouns.
# For *subject only* it can. *Zero-shot* and *head only* are below the rule. Training the embeddings lifts a model far above *head only*. *Everything* is best, above all on hard rows.
#
# With few base sentences, neighbours such as *head + new embeddings* and *head + embeddings* cannot be told apart. The paper's *head only* is far above ours, with a
# larger encoder and other sentences.
#
# ## 7 · Controls
#
# Two models *must* fail: *head only* trained on shuffled labels, and the
# attention layer with a learning rate of zero. Both should be near one in three.

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
show_table(
    stage.table("controls", control).replace(
        {
            "C, shuffled labels": "head only, shuffled labels",
            "OLA, learning rate 0": "one attention layer, learning rate 0",
        }
    ),
    {"control": "control", "accuracy": "accuracy"},
)

# %% [markdown]
# Near chance, as they should be. Every trained model must be far above them:

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
# ## What could be wrong
#
# - **One seed says little.** At this scale each BERT scheme has one, and the attention layer three. Another seed gives other numbers
#   ([the spread at scale `cpu`](../../outputs/reference/geco/cpu/04_metrics/seeds.csv)).
# - **MiniLM is not bert-base.** It has half the layers and was trained to compare sentences.
# - **Head only sees little.** It reads the first token through a layer (the *pooler*) that was never trained for this and stays frozen, as in the released code. Its low accuracy says as much about
#   the pooler as about the encoder.
# - **Validation chose the epoch** on few sentences. So the kept validation loss is slightly optimistic; the test accuracy is not.
#
# ## Try it
#
# - Give `dropout` 0.1. Only the parts that learn drop activations.
# - Set `encoder` to the folder of a RoBERTa, XLNet or GPT-2 that you have.
# - Add a scheme to `SCHEMES`: encoder `re-initialised`, embeddings `fixed`. Is a random encoder of any use?

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# The models and their predictions are in this stage's folder. [03_attribution](03_attribution.ipynb) asks eight methods which words made
# each model decide.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.codes import SCHEMES
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words
from lib.language.lexicon import first_pronoun

accuracy = read_committed("geco", "cpu", "02_training", "accuracy")
accuracy = accuracy.query("dataset == 'D_S'")[["scheme", "accuracy", "accuracy_hard"]]
human = {"scheme": "model", "accuracy": "accuracy", "accuracy_hard": "on hard rows"}
in_words(accuracy.replace({"scheme": SCHEMES}), human)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# The scheme *head only* (C) trains one linear layer: 384 numbers go in, one score for each of three classes comes out, and each class has a bias. How many parameters learn?

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
        "The sentence has one pronoun; return its class as a number.": [
            "the dog sees his bone .".split()
        ],
        "Only whole words are pronouns.": ["other women see them".split()],
        "A capital letter changes no pronoun.": ["They sing .".split()],
        "Two pronouns stand here, and the first decides.": ["she calls him .".split()],
        "*Their* is a pronoun, too.": ["their dog sees her .".split()],
        "Without a pronoun the rule says F.": ["the dog sleeps .".split()],
        "*Her* decides here.": ["her dog sees him .".split()],
        "*He* decides here.": ["he sees their dog .".split()],
        "*Him* decides here.": ["the dog sees him .".split()],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# The table at the top is of the data set *subject only* (D_S), at scale `cpu`. *Hard rows* are those whose first pronoun is somebody else's. *Head only* (C) is below the first-pronoun rule. What follows?
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
