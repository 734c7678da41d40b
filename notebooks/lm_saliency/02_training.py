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
# # lm_saliency, stage 2 of 5: which language models know number and gender?
#
# previous: [01_data_generation](01_data_generation.ipynb) · next: [03_attribution](03_attribution.ipynb)
#
# An explanation is worth testing only where there is something to explain. This stage trains language models
# of three architectures, distils a shallower student from each, and asks with a *probe* whether the model
# can tell *is* from *are* and *he* from *she*.

# %% [markdown]
# ## You will see
#
# - an LSTM with dropped weights, a QRNN in plain PyTorch, and a Transformer, all trained by one loop;
# - what a student learns from its teacher, and what from the text;
# - probes with intervals beside the share of the larger class, and which of them have learnt nothing.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `corpus/*.txt`, `number.parquet`, `gender.parquet` of stage 1 | `models/*.safetensors`: three models and three students, with their words |
# | | `probes/*.safetensors`: a two-class layer for each model and task |
# | `material/sweep.csv` | small Transformers of different depth, width and heads, and their probes |
# | | `perplexity`, `curves`, `probes`, `sweep`, `controls` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import pandas as pd
import torch

from lib.core.notebooks import show_source
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.models import language_model
from lib.models.language_model_layers import QRNNLayer, WeightDropLSTM, pooled
from lib.plots import COLOURS, STYLE
from lib.studies.lm_saliency.probing import Probing
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
show_source(Trainings.trained)

# %% [markdown]
# The full models first, then the students. Where a run is long, it says for each model how long it will take.

# %%
models, curves = {}, {}
for name in architectures:
    for size in ("full", "student"):
        plan = training.plans[name, size]
        models[plan.key], curves[plan.key] = training.trained(plan)
print(len(models), "models trained, or read where they were finished before")

# %% [markdown]
# The paper also trains 21 small Transformers (appendix B.2): three depths, and seven settings of width, embedding
# and heads. `material/sweep.csv` lists them, and the same design around an embedding of 192 for scale `cpu`, where each
# model has about a minute. At scale small there are three depths only. A label such as 8l_1024w_512e_2h is the paper's
# name of a configuration.

# %%
swept = [plan for plan in training.plans.values() if plan.is_swept]
for plan in swept:
    models[plan.key], curves[plan.key] = training.trained(plan)
print(len(swept), "models of the sweep")

# %% [markdown]
# A fourth family are published models, read by their own tokenizers. `hf_models = {"gpt2": "607a30d7..."}` adds one;
# none is added here, for that needs a download. The tests do it with a tiny random GPT-2.

# %%
words_of = dict.fromkeys(models, vocabulary)
for plan in [plan for plan in training.plans.values() if not plan.config]:
    models[plan.key], words_of[plan.key] = training.model(plan)
print(len(hf_models), "published models")

# %% [markdown]
# ## 4 · Perplexity
#
# How many words is the model in doubt between, on the average? A model that knows nothing is in doubt between
# all of them, so its perplexity is the size of the vocabulary or more. Our corpus draws most words at random,
# so even a perfect model keeps a perplexity far above one.


# %%
def described(key):
    """Layers, parameters and perplexity of a model: ours after the last pass, others per word, its pieces together."""
    model, words = models[key], words_of[key]
    if words is vocabulary:
        found = curves[key]["perplexity"].iloc[-1]
    else:
        read = language_models.pieces(text["valid"], words, longest_piece)
        found = language_models.perplexity(model, read, words) ** (
            sum(len(one.ids) - 1 for one in read)
            / sum(len(line) + 1 for line in text["valid"])
        )
    return {
        "architecture": key[0],
        "size": key[1],
        "layers": model.config.n_layers,
        "parameters": sum(p.numel() for p in model.parameters()),
        "perplexity": found,
    }


# %% [markdown]
# All of them, those of the sweep included:

# %%
every = pd.DataFrame([described(key) for key in models])
in_sweep = every["size"].isin([plan.size for plan in swept])

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
accuracy = pd.concat(
    [
        probing.probe(plan, task)
        for plan in training.plans.values()
        for task in probing.tasks_of(plan)
    ],
    ignore_index=True,
)
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
    of_sweep & (accuracy["task"] == "number"),
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
last = architectures[-1]
rows = {}
for name in architectures:
    trained = accuracy.query(
        "architecture == @name and size == 'full' and task == 'number'"
    )
    rows[f"{name}, trained"] = trained.iloc[0]
    for kind in probing.controls_of(training.plans[name, "full"]):
        rows[f"{name}, {kind}"] = probing.control(name, kind).iloc[0]
controls = pd.DataFrame(
    [
        {"probe": name} | {key: float(row[key]) for key in ("accuracy", "low", "high")}
        for name, row in rows.items()
    ]
)

# %% [markdown]
# The order of the three must be as it should be, or the cell stops.

# %%
best, before, chance = (
    rows[f"{last}, {state}"] for state in ("trained", "untrained", "shuffled classes")
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
}
print({task: round(float(found.mean()), 3) for task, found in seen.items()})

# %% [markdown]
# ## 7 · The figure
#
# Left: perplexity after each pass. Right: the accuracy of each probe with its interval; the bar across is the
# share of the larger class. Hollow marks have not learnt the task.

# %% tags=["nbval-ignore-output"]
long = pd.concat(
    {key: curves[key] for key in curves if key[1] in ("full", "student")},
    names=["architecture", "size", "step"],
).reset_index(["architecture", "size"])
stage.table(
    "curves", long[["architecture", "size", "epoch", "train_loss", "perplexity"]], 2
)

# %% [markdown]
# The plotted numbers are those of this table and of the table of probes.

# %%
looks = dict(zip(language_model.ARCHITECTURES, zip("osD", COLOURS)))
with plt.rc_context(STYLE):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    for (name, size), curve in long.groupby(["architecture", "size"], sort=False):
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
        xticks=range(1, lm_epochs + 1),
    )
    left.legend(frameon=False, fontsize=8)
    names = [
        f"{r.architecture}, {r.size}: {r.task}"
        for r in accuracy[~of_sweep].itertuples()
    ]
    for i, r in enumerate(accuracy[~of_sweep].itertuples()):
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
#   probe that knows nothing of constructions. Stage 4 asks again on every set, for each class by itself.
# - **The best pass** of a probe is chosen on the examples that its accuracy is measured on.
# - **One seed.** Another seed is another model. Stage 4 does not call a difference between architectures a
#   finding at this scale.
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
