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
# # lm_saliency, stage 2 of 5: which language models know number and gender?
#
# previous: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb)
#
# An explanation is worth testing only where there is something to explain. This stage trains language models
# of three architectures, distils a shallower student from each, and asks with a *probe* whether the model
# can tell *is* from *are* and *he* from *she*.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - an LSTM with dropped weights, a QRNN in plain PyTorch, and a Transformer, all trained by one loop;
# - what a student learns from its teacher, and what from the text;
# - probes with intervals beside the share of the larger class, and which of them have learnt nothing.
#
# **You can then** compute the states of a QRNN, and tell a probe that has learnt from one that has not. **You need**
# [stage 1](01_data_generation.ipynb), and what a language model is. **Time:** 20 minutes to read, 2 minutes to run,
# 15 minutes for the exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `corpus/*.txt`, `number.parquet`, `gender.parquet` of stage 1 | `models/*.safetensors`: three models and three students, with their words |
# | | `probes/*.safetensors`: a two-class layer for each model and task |
# | `material/sweep.csv` | small Transformers of different depth, width and heads, and their probes |
# | | `answers.parquet`: what models and probes say of every line; `models.parquet`: checksums |
# | | `perplexity`, `curves`, `probes`, `sweep`, `controls`, `knowledge`, `thresholds` (`.csv`), one figure |

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
from lib.models import language_model
from lib.models.language_model_layers import QRNNLayer, WeightDropLSTM, pooled
from lib.plots import COLOURS, STYLE
from lib.studies.lm_saliency.jobs import train_and_ask
from lib.studies.lm_saliency.knowledge import (
    fit_threshold,
    knowledge_table,
    number_preference,
)
from lib.studies.lm_saliency.probing import CONTROLS, Probing
from lib.studies.lm_saliency.text import TASKS
from lib.studies.lm_saliency.trainings import Trainings
from lib.training import language_model as language_models

# %% [markdown]
# ## Settings
#
# `n_layers`, `embedding`, `width` and `student_layers` hold one entry for each architecture. `width` is the size of the
# recurrent layers, and for the Transformer that of the feed-forward layers. `cutoffs` are the bands of the
# adaptive input and softmax: words after the first cut-off get narrower vectors. With none, input and output
# share one table.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for all draws of this stage
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
reuse_units = False  # take finished models from, and publish them to, outputs/reference; scores stay with the run
architectures = ["LSTM", "QRNN", "Transformer"]  # families of language models
trainings = 1  # of each model and student, from weights of its own
hf_models = {}  # published causal models beside them: hub id or folder, and the commit (40 digits; "" for a folder)
n_layers = {"LSTM": 2, "QRNN": 2, "Transformer": 3}  # layers of the full models
student_layers = {
    "LSTM": [0],
    "QRNN": [0],
    "Transformer": [0, 2],
}  # the teacher's layers that a student starts from
embedding = {
    "LSTM": 64,
    "QRNN": 64,
    "Transformer": 64,
}  # size of the word embeddings and of the last hidden state
width = {"LSTM": 64, "QRNN": 64, "Transformer": 128}  # size of the layers
n_heads = 4  # attention heads
dropout = 0.05  # share of components dropped between layers
weight_drop = 0.1  # share of recurrent weights dropped (LSTM)
vocabulary_size = 0  # most frequent words kept (0: all)
cutoffs = []  # bands of the adaptive input and softmax (none: plain)
lm_epochs = 2  # passes over the corpus
lm_checks = 1  # measures of a pass; with more than one the best check is kept
lm_bar = 0  # perplexity that asks for no second pass (0: never a second one)
lm_gain = 0.02  # share that the last check must still gain for a second pass
lm_share = 1.0  # share of the corpus that a full model reads
student_epochs = 1  # the same for students
student_share = 0.3  # share of the corpus that a student reads
sweep_share = 0.1  # share of the corpus that a model of the sweep reads (0: no sweep)
sweep_tasks = ["number", "gender"]  # what the models of the sweep are probed for
soft_every = 4  # a student compares its next-word probabilities with its teacher's at every such word
lm_lr = {"LSTM": 0.008, "QRNN": 0.008, "Transformer": 0.003}  # highest learning rate
batch_words = 384  # words in a step
longest_piece = 64  # words of a training piece; longer lines are cut
probe_epochs = 4  # passes over a probe's examples
probe_lr = 0.003  # learning rate of a probe
probe_batch = 32  # examples in a step of a probe
n_probe_examples = 4000  # examples a probe learns from, at most
n_bootstrap = 1000  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $M$, $M'$ | a language model and its distilled student | `full`, `student` |
# | $\mathbf{h}_t$ | the last hidden state after word $t$ | `hidden` |
# | $p(w \mid F)$ | the model's probability of the next word | `log_prob` |
# | perplexity | $\exp$ of the mean of $-\log p$ over the words of the validation text | `perplexity` |
# | probe | two classes in place of the vocabulary, the model frozen | `probe` |

# %%
stage = open_stage("lm_saliency", scale, "02_training")
set_up(seed, n_threads)
training = Trainings(stage, globals())
probing = Probing(training)
text, examples = training.text, probing.examples
vocabulary, data = training.vocabulary, training.data
print(
    f"{len(vocabulary)} words; unknown in the validation text: {vocabulary.share_unknown(text['valid']):.3f};",
    {part: sum(len(piece.ids) - 1 for piece in found) for part, found in data.items()},
    "words to predict",
)

# %% [markdown]
# ## 1 · One step by hand: a QRNN
#
# An LSTM multiplies its state with a matrix at every word. A *quasi-recurrent* network (Bradbury et al.
# 2017) keeps of all that one line, component by component:
#
# $$c_t = f_t\, c_{t-1} + (1 - f_t)\, z_t \qquad h_t = o_t\, c_t \quad (\text{eq. } 4)$$
#
# The gates $z, f, o$ come from the words alone, all at once. With $z = (1, 0, 0)$ and a forget gate of one
# half throughout, we expect $c = (\tfrac12, \tfrac14, \tfrac18)$: the first word fades by half with every
# word.

# %%
found = pooled(torch.tensor([[[1.0], [0.0], [0.0]]]), torch.full((1, 3, 1), 0.5))
assert found.flatten().tolist() == [0.5, 0.25, 0.125]
found.flatten().tolist()

# %% [markdown]
# ## 2 · Three architectures
#
# The published QRNN needs kernels that run on a GPU only and no longer compile. This one is plain PyTorch
# and runs anywhere; the tests compare it with its equations, step by step.

# %%
show_source(QRNNLayer)
show_source(WeightDropLSTM)

# %% [markdown]
# The LSTM drops recurrent weights once per sequence (AWD-LSTM, Merity et al. 2018). The Transformer puts a
# LayerNorm before attention and feed-forward layers, as Baevski and Auli (2019) do. All three are causal:
# changing later words must change nothing before them. The assert changes the last word.

# %%
untrained = {name: training.untrained(name) for name in architectures}
ids = torch.tensor(
    [vocabulary.encode("the author that the guards like".split())],
    device=training.device,
)
other = torch.cat([ids[:, :-1], ids[:, :1]], dim=1)
for name, model in untrained.items():
    hidden, changed = model.run(model.embed(ids)), model.run(model.embed(other))
    assert torch.allclose(
        hidden[:, :-1], changed[:, :-1], atol=1e-5
    ) and not torch.allclose(hidden[:, -1], changed[:, -1])
print(
    {
        name: sum(p.numel() for p in model.parameters())
        for name, model in untrained.items()
    },
    "parameters",
)

# %% [markdown]
# ## 3 · The loss, for a model and for its student
#
# A model alone minimises the negative log-probability of each next word. A student (DistilBERT's recipe)
# minimises three terms: the cross-entropy to the teacher's probabilities, the same loss as before, and three
# times the cosine distance of the hidden states. It starts from some of the teacher's layers.

# %%
show_source(language_models.batch_loss)

# %% [markdown]
# Training saves every model as it is finished, so a run that is stopped goes on where it was. The key of a
# model names everything that it depends on. Models can also be trained apart, in several processes or on several
# machines (`touchstone unit`): they call the same function, and this notebook reads what is there.

# %%
show_source(Trainings.key_of)
show_source(train_and_ask)

# %% [markdown]
# `trainings` says how often each model and its student are trained. Weights are not published. So where units are, what
# stage 3 asks of a model is computed right after its training and published as numbers: a clone without weights goes
# on with the models that are missing. Where a run is long, it says for each model how long it will take.
#
# The paper also trains 21 small Transformers (appendix B.2): three depths, and seven settings of width, embedding
# and heads. `material/sweep.csv` lists them, and the same design around an embedding of 192 for scale `cpu`, where each
# model has about a minute. At scale small there are three depths only. A label such as 8l_1024w_512e_2h is the paper's
# name of a configuration.
#
# A fourth family are published models, read by their own tokenizers. `hf_models = {"gpt2": "607a30d7..."}` adds one;
# none is added here, for that needs a download. The tests do it with a tiny random GPT-2.

# %%
plans = list(training.plans.values())
for plan in plans:
    train_and_ask(probing, plan)
print(
    f"{sum(plan.layers != () for plan in plans)} models and their students,",
    f"{sum(plan.is_swept for plan in plans)} models of the sweep,",
    f"{len(hf_models)} published models: trained, or read where they were finished",
)

# %% [markdown]
# ## 4 · Perplexity
#
# How many words is the model in doubt between, on the average? A model that knows nothing is in doubt between
# all of them, so its perplexity is the size of the vocabulary or more. Our corpus draws most words at random,
# so even a perfect model keeps a perplexity far above one. Of a published model the pieces of a word count together.

# %%
every = pd.concat([training.about(plan) for plan in plans], ignore_index=True)
every = every.drop(columns="sha256")
in_sweep = np.array([plan.is_swept for plan in plans])

# %% [markdown]
# First the models of the study, with their students:

# %% tags=["nbval-ignore-output"]
stage.table("perplexity", every[~in_sweep], 1)

# %% [markdown]
# *Reading it.* Students start from their teacher, so a short pass brings them near it. The paper's models
# have 96 to 247 million parameters and perplexities of 18 to 42 on another corpus; nothing here can be
# compared with them.
#
# ## 5 · Probes
#
# The probe replaces the output layer by two classes and learns from prefixes of the corpus; the model stays
# as it is (paper, section 3.1). So its gradient speaks of number, or gender, and of nothing else that makes
# a word likely. Its accuracy is measured on the validation part, with a 95 % interval (Wilson), beside the
# share of the larger class. Where the interval reaches down to that share, the probe has *not learnt* the
# task: an explanation of it explains nothing, and it is left out of every ranking later.

# %%
show_source(Probing.fit)

# %% [markdown]
# One probe for each model and task; a student gets its own. A finished probe is kept, as a finished model is.

# %% [markdown]
# All models, both tasks:

# %%
rows = pd.concat(
    [probing.row(plan, kind) for plan in plans for kind in probing.kinds_of(plan)],
    ignore_index=True,
)
save_parquet(training.with_checksums(rows), stage.path("models.parquet"))
rows = rows.drop(columns="sha256")
is_control = rows["kind"].isin(CONTROLS)
accuracy = rows[~is_control].reset_index(drop=True)
of_sweep = accuracy["size"].isin(every.loc[in_sweep, "size"])

# %% [markdown]
# The table names every probe, learnt or not.

# %% tags=["nbval-ignore-output"]
stage.table("probes", accuracy)
accuracy[~of_sweep].round(3)

# %% [markdown]
# And the sweep, models that have read little:

# %% tags=["nbval-ignore-output"]
numbers = accuracy.loc[
    of_sweep & (accuracy["kind"] == "number"),
    ["size", "accuracy", "low", "high", "learnt"],
]
stage.table("sweep", every[in_sweep].merge(numbers, on="size"))

# %% [markdown]
# *Reading it.* Read `learnt` before anything else. A minute of training teaches the Transformer number; the QRNN has
# begun, the LSTM hardly. Gender is learnt by none: it rests on fewer sentences, and no interval leaves the share of
# the larger class behind. A student can do better than its teacher here, since it goes on training from where the
# teacher stopped. The paper's models are thousands of times larger and know both.
#
# ## 6 · Controls
#
# A probe can learn something from any network, even an untrained one, for its states still depend on the
# words. What it learns there is no knowledge of the language model. So the same probe on the untrained
# Transformer must do worse than on the trained one, and a probe with shuffled classes must be at chance.

# %%
full = rows[(rows["size"] == "full") & rows["architecture"].isin(architectures)]
of_kind = full["kind"].replace({"number": "trained"})
controls = full.assign(probe=full["architecture"] + ", " + of_kind)
controls = controls[full["kind"].isin(["number", *CONTROLS])]
controls = controls[["probe", "training", "accuracy", "low", "high"]]

# %% [markdown]
# The order of the three must be as it should be, or the cell stops.

# %%
last = controls[controls["training"] == 0].set_index("probe")
best, before, chance = (
    last.loc[f"{architectures[-1]}, {state}"] for state in ("trained", *CONTROLS)
)
assert best["low"] > chance["high"] and best["accuracy"] > before["accuracy"], (
    f"accuracy is {best['accuracy']:.2f}, untrained {before['accuracy']:.2f}, with shuffled "
    f"classes {chance['accuracy']:.2f}; raise lm_share, lm_epochs or n_probe_examples"
)

# %% [markdown]
# How much of a probe's accuracy is knowledge of the language model is the distance between trained and untrained, not
# the distance to the larger class.

# %% tags=["nbval-ignore-output"]
stage.table("controls", controls).round(3)

# %% [markdown]
# A second limit: text repeats itself. This share of the validation prefixes also stands, word by word, among the
# examples that the probes learnt from (short ones mostly: *it*, *there*).

# %%
seen = {
    task: table.loc[table["split"] == "valid", "prefix"].isin(
        table[table["split"] == "train"].head(n_probe_examples)["prefix"]
    )
    for task, table in examples.items()
    if task in TASKS
}
print({task: round(float(found.mean()), 3) for task, found in seen.items()})

# %% [markdown]
# ## 7 · What they know, by construction
#
# A probe is one witness. The model itself is another: its *direct preference* after a prefix is
#
# $$\log\,(p(\mathit{are}) + p(\mathit{were})) - \log\,(p(\mathit{is}) + p(\mathit{was})),$$
#
# and no probe comes between. Both are asked about every line of every set. The area under the ROC curve (AUC) is the
# chance that a plural line scores higher than a singular one. It does not depend on a threshold; one half is chance. The
# balanced accuracy does: its threshold is the best one on the examples that probes learn from, for old prose
# prefers *is* and *was*. `matched` is a probe that cannot rely on the nearest noun (stage 1, section 11), `untrained`
# one on the first weights. Intervals are over clusters of lines and over trainings.

# %%
show_source(number_preference)
show_source(fit_threshold)
asked = [plan for plan in plans if not plan.is_swept]
thresholds = pd.concat([probing.thresholds(plan) for plan in asked], ignore_index=True)
answers = pd.concat(
    [probing.answers(plan, name) for plan in asked for name in probing.sets],
    ignore_index=True,
)
save_parquet(answers, stage.path("answers.parquet"))
knowledge = knowledge_table(answers, thresholds, probing.sets, n_bootstrap, alpha, seed)

# %% [markdown]
# All of it is in the file, by construction too. Here the whole sets, full models:

# %% tags=["nbval-ignore-output"]
stage.table("thresholds", thresholds)
stage.table("knowledge", knowledge)
shown = knowledge.query("section == 'all' and size == 'full' and score != 'untrained'")
shown[
    ["dataset", "architecture", "score", "auc", "auc_low", "auc_high", "balanced"]
].round(3).head(12)

# %% [markdown]
# A model *knows* a set where the interval of its AUC lies above one half. An AUC below one half is knowledge of another
# kind: the model follows a noun that does not agree with the verb, mostly the nearest one.
#
# ## 8 · The figure
#
# Left: perplexity after each pass. Right: the accuracy of each probe with its interval; the bar across is the
# share of the larger class. Hollow marks have not learnt the task.

# %% tags=["nbval-ignore-output"]
long = pd.concat(
    [
        training.curve(plan).assign(
            architecture=plan.architecture, size=plan.size, training=plan.training
        )
        for plan in asked
        if plan.config
    ],
    ignore_index=True,
)
names = ["architecture", "size", "training", "epoch", "train_loss", "perplexity"]
stage.table("curves", long[names], 2).head(12)

# %% [markdown]
# The plotted numbers are those of this table and of the table of probes.

# %%
looks = dict(zip(language_model.ARCHITECTURES, zip("osD", COLOURS)))
with plt.rc_context(STYLE):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    first = long[long["training"] == 0]
    for (name, size), curve in first.groupby(["architecture", "size"], sort=False):
        marker, colour = looks[name]
        left.plot(
            curve["epoch"],
            curve["perplexity"],
            marker=marker,
            color=colour,
            label=f"{name}, {size}",
            linestyle="-" if size == "full" else "--",
            markerfacecolor=colour if size == "full" else "white",
        )
    left.set(
        xlabel="pass over the corpus",
        ylabel="perplexity",
        xticks=range(lm_checks == 1, lm_epochs + 1),
    )
    left.legend(frameon=False, fontsize=8)
    plotted = accuracy[~of_sweep & (accuracy["training"] == 0)]
    names = [f"{r.architecture}, {r.size}: {r.kind}" for r in plotted.itertuples()]
    for i, r in enumerate(plotted.itertuples()):
        marker, colour = looks.get(r.architecture, ("^", "0.5"))
        right.plot([r.low, r.high], [i, i], color=colour)
        right.plot(
            r.accuracy,
            i,
            marker=marker,
            color=colour,
            markerfacecolor=colour if r.learnt else "white",
        )
        right.plot([r.majority] * 2, [i - 0.35, i + 0.35], color="0.2")
    right.set(
        xlabel="accuracy of the probe",
        yticks=range(len(names)),
        yticklabels=names,
        xlim=(0.4, 1),
    )
    right.invert_yaxis()
    right.tick_params(axis="y", labelsize=8)
stage.figure("training", figure)

# %% [markdown]
# ## What could be wrong
#
# - **Sentences, not streams.** The original recurrent code carries its state over a whole corpus. Here every
#   line begins anew, with the end-of-sentence word, so that a prefix is read in training as in the test.
# - **Less is dropped.** AWD-LSTM also drops embeddings and regularises activations; for models of this size
#   none of that is needed.
# - **The probe's input.** The released Transformer script leaves dropout on while the probe learns. Ours is
#   off: the states are computed once.
# - **Learnt is a low bar.** An untrained network may pass it, and verbs that directly follow their subject help a
#   probe that knows nothing of constructions. Section 7 asks again on every set, and stage 4 goes by that.
# - **The best pass** of a probe is chosen on the examples that its accuracy is measured on.
# - **Few trainings.** Another seed is another model. With one training stage 4 decides nothing about trained models.
#
# ## Try it
#
# - Set `lm_epochs = 6`, or `n_sentences = 30000` in stage 1, and watch which model finds out about number first.
# - Give the student other layers: does the last layer matter more than the first?
# - Set `cutoffs = [500]` and compare perplexity and parameters.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The models and their probes lie in this stage's folder. [03_attribution](03_attribution.ipynb) asks of each
# prefix which words the probe's answer rests on.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import torch

from lib.core.exercises import check_choice, check_function, check_list, read_committed
from lib.models.language_model_layers import pooled

probes = read_committed("lm_saliency", "cpu", "02_training", "probes")
probes = probes.query("size == 'full'").drop(columns=["size", "n"])
probes.round(2)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A QRNN keeps of all recurrence one line: $c_t = f_t\,c_{t-1} + (1 - f_t)\,z_t$. With $z = (1, 1, 0)$, a forget gate of one half throughout and $c_0 = 0$, what are the three states?

# %% tags=["hole"]
states = ...  # a list of three numbers

# %% tags=["solution"]
states = [0.5, 0.75, 0.375]

# %% tags=["check"]
half = torch.full((1, 3, 1), 0.5)
right = pooled(torch.tensor([1.0, 1.0, 0.0]).view(1, 3, 1), half).flatten().tolist()
check_list(
    states, right, "Each state is the mean of the state before it and the new z."
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write the recurrence for any gates. `z` and `f` are lists of equal length, and the state before the first word is 0.


# %% tags=["hole"]
def states_of(z, f):
    """A state for each word."""
    return ...


# %% tags=["solution"]
def states_of(z, f):
    """A state for each word."""
    states, state = [], 0.0
    for new, forget in zip(z, f):
        state = forget * state + (1 - forget) * new
        states.append(state)
    return states


# %% tags=["check"]
def expected(z, f):
    """By the library."""
    both = (torch.tensor(x, dtype=torch.float64).view(1, -1, 1) for x in (z, f))
    return pooled(*both).flatten().numpy()


check_function(
    states_of,
    expected,
    {
        "A gate of 0 forgets everything before.": [[1.0, 2.0], [0.0, 0.0]],
        "A gate of 1 takes in nothing new.": [[1.0, 2.0], [0.0, 1.0]],
        "The gate of a word weighs the state before it.": [
            [1.0, 0.0, 2.0],
            [0.5, 0.9, 0.2],
        ],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `probes` is of scale `cpu`: the accuracy of each probe with its interval, beside the share of the larger class (`majority`). Which explanations may not be ranked?
#
# - `"a"` Those of the LSTM, which is the oldest.
# - `"b"` Those of probes whose interval reaches down to `majority`: there is nothing to explain.
# - `"c"` Those of probes below .8.

# %% tags=["hole"]
not_ranked = ...  # "a", "b" or "c"

# %% tags=["solution"]
not_ranked = "b"

# %% tags=["check"]
assert ((probes["low"] > probes["majority"]) == probes["learnt"]).all()
check_choice(
    not_ranked,
    "b",
    {
        "a": "Look at its row for number, and at the column learnt.",
        "c": "An accuracy of .75 can be knowledge. Compared with what?",
    },
)
