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
# # GECO, an appendix to stage 2: what does a forgotten line of code do to a training run?
#
# [Start here](../00_start_here.ipynb) · it follows [02_training](02_training.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **The smallest model of the paper was trained without setting its gradients to zero.** It learns nevertheless, and predicts the right class for
#   99.3 %<!-- geco/cpu/appendix_released_ola/weight_decay[ola=as_released].accuracy --> of the test rows.
# - **But its weight decay works only with the released faults.** With them corrected, the published decay pulls all weights towards zero:
#   the training loss ends at 1.10<!-- geco/cpu/appendix_released_ola/weight_decay[ola=corrected, weight_decay=0.1].train_loss -->, the loss of a guess.
# - **So we train it with a decay a hundred times smaller.** This differs from the paper, and this page shows why.
#
# These are the numbers of scale `cpu`, on the published data set in which all gendered words change
# ([table](../../outputs/reference/geco/cpu/appendix_released_ola/weight_decay.csv)).
#
# ## You will see
#
# - two lines of the released code of *one attention layer* (OLA-CEA) that differ from its description;
# - what they do to attention and to training.
#
# **You can then** explain how gradient clipping and weight decay interact when gradients are never set to zero. **You
# need** [stage 2](02_training.ipynb). **Time:** 6 minutes to read, under a minute to run, no exercises.
#
# | in | out |
# |---|---|
# | a data set of stage 1 | `weight_decay`: four training runs, a table and a figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from lib.core.notebooks import show_source, show_table
from lib.core.seeds import pick_device, set_up
from lib.core.stage import open_stage
from lib.models.ola import OneLayerNet
from lib.models.schemes import SCHEMES
from lib.plots import COLOURS, STYLE
from lib.studies.geco.corpus import CLASSES, load_dataset
from lib.training.classifier import Settings
from lib.training.loop import take_step
from lib.training.transfer import Trainer

# %% [markdown]
# ## Settings
#
# These settings are those of stage 2; of the models, only OLA-CEA is used here.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # of the trainings
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
encoder = "all-MiniLM-L6-v2"  # whose tokenizer is used
encoder_revision = ""  # the commit of a hub id
datasets = ["D_A", "D_S"]  # the first one is used
lr = {
    "C": 0.03,
    "CE": 0.005,
    "CEf": 0.004,
    "CEfAf": 0.0002,
    "OLA-CEA": 0.01,
}  # highest learning rate
batch_size = {"C": 32, "CE": 8, "CEf": 8, "CEfAf": 16, "OLA-CEA": 64}  # rows per step
validation_share = 0.2  # share of train that chooses the epoch

# %% [markdown]
# We train on the data set in which all gendered words change (D_A).

# %%
set_up(seed, n_threads)
stage = open_stage("geco", scale, "appendix_released_ola")
stage.note("01_data_generation", "counts.csv")
train, test = (load_dataset(stage, datasets[0], split) for split in ("train", "test"))
trainer = Trainer(encoder, encoder_revision, pick_device(device), validation_share)
print(len(train), "rows to learn from,", len(test), "to test on")

# %% [markdown] tags=["slide"]
# ## 1 · A mask that hides the wrong side
#
# Sentences of a batch are filled up with padding to one length. No attention should go to padding. Attention compares
# the *query* of each token with the *keys* of all tokens. To exclude padding, its keys must be hidden. The released
# code hides its queries.
#
# **Stop and guess.** The model reads only the output of the first token. What does hiding the queries of padding change?
#
# The next cell computes the attention of the first token in two sentences. The second sentence has three tokens of
# padding.

# %%
torch.manual_seed(0)
net, e = OneLayerNet(10, 3), torch.randn(2, 6, 64)
mask = torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
scores = net.query(e) @ net.key(e).transpose(1, 2) / 8
print("scores of", *scores.shape, "(sentence, query, key)")

# %% [markdown]
# Now we apply both masks. The last axis holds keys, and the axis before it holds queries.
#
# ![Two grids of attention for 3 words and 3 tokens of padding, with queries as rows and keys as columns: with the keys of padding hidden the first row, the only one that the model reads, attends to words alone, and with the queries hidden it attends to padding, too.](../../docs/schematics/hidden_side.svg)

# %%
by_keys, by_queries = (
    scores.masked_fill((mask == 0).unsqueeze(axis), -1e6).softmax(-1)[:, 0]
    for axis in (1, 2)
)
assert torch.allclose(by_keys, net.attention(e, mask), atol=1e-6)
assert torch.allclose(by_queries, net.attention(e, None), atol=1e-6)
print(f"attention to padding, keys hidden: {by_keys[1, 3:].sum():.2f}")
print("with queries hidden it is above 0.1:", bool(by_queries[1, 3:].sum() > 0.1))

# %% [markdown] tags=["slide"]
# Hiding queries changes nothing: it is like having no mask (the second assert). The queries of padding only affect
# outputs that the model does not use. So the first token attends to padding as it does to words, and the score of a
# sentence depends on how much padding its batch needs.
#
# ## 2 · A line that was forgotten
#
# One training step sets old gradients to zero, computes new ones, shortens them if they are too long (*clipping*), and
# updates the weights. The second branch below follows the released code.

# %%
show_source(take_step)

# %% [markdown] tags=["slide"]
# In the released code, gradients are never set to zero. So each step adds its gradient to what earlier steps left. Clipping
# comes after the step. It shortens this sum to a length of at most one, and the next step adds to it again. The model still
# learns, because the sum acts like a very slow momentum.
#
# *Weight decay* adds to each gradient a small multiple of the weight, which pulls the weight towards zero. The
# released multiple is 0.1. Our explanation is that the sum is long enough to resist this pull, and the gradient of a single
# step is not. We do not show the lengths; the four training runs below fit this explanation.
#
# **Stop and guess.** What happens if we correct the code and keep 0.1? We train four times.


# %%
def with_decay(variant: str, decay: float) -> dict[str, object]:
    """Twenty epochs: the last training loss, the kept epoch, its test accuracy."""
    eps = SCHEMES["OLA-CEA"].adam_eps
    short = Settings(20, lr["OLA-CEA"], batch_size["OLA-CEA"], decay, eps=eps)
    one = Trainer(encoder, encoder_revision, trainer.device, validation_share, variant)
    result = one.train("OLA-CEA", seed, train, test, CLASSES, short)
    right = result.predictions["predicted"] == result.predictions["target"]
    return {
        "ola": variant,
        "weight_decay": decay,
        "train_loss": result.curve["train_loss"].iloc[-1],
        "kept_epoch": result.curve["validation_loss"].idxmin() + 1,
        "accuracy": right.mean(),
    }


# %% [markdown]
# We correct the code and train with three values of the decay. Then we train once as released:

# %%
trainings = [("corrected", decay) for decay in (0.0, 0.001, 0.1)]
trainings += [("as_released", 0.1)]
decays = pd.DataFrame(with_decay(*training) for training in trainings)

# %% [markdown] tags=["slide"]
# In the figure each circle is the training loss at the end. A guess among three classes has a loss of $\ln 3$:

# %% tags=["nbval-ignore-output", "slide"]
_ = stage.table("weight_decay", decays)
labels = [f"{name.replace('_', ' ')}, decay {decay:g}" for name, decay in trainings]
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(8, 2.2), layout="constrained")
    ax.plot(decays["train_loss"], labels, "o", color=COLOURS[0], label="the model")
    ax.axvline(np.log(3), color="0.3", linestyle=":", label="a guess")
    ax.margins(y=0.2)
    ax.invert_yaxis()
    ax.set(xlabel="training loss of the last epoch", xlim=(0, 1.2))
    ax.set_title("Corrected, a decay of 0.1 undoes the training", loc="left")
    figure.legend(loc="outside right upper", frameon=False)
stage.figure("weight_decay", figure)
plt.show()
show_table(
    decays.round(3).replace({"as_released": "as released"}),
    {
        "ola": "variant",
        "weight_decay": "weight decay",
        "train_loss": "last training loss",
        "kept_epoch": "kept epoch",
        "accuracy": "test accuracy",
    },
)

# %% [markdown] tags=["slide"]
# *Reading it.* The corrected model with a decay of 0.1 ends at $\ln 3 = 1.099$, the loss of a guess. Its test accuracy
# is that of the first epoch, which has the lowest validation loss. In later epochs the decay pulls the weights to zero.
# With 0.001 the corrected model has nearly the test accuracy of the released one with 0.1.
#
# Without any decay the model learns, too. But then a word that occurs only in the test part keeps the random embedding it
# started with, and the model reacts to it. With a decay, this embedding shrinks to zero. That is why we use 0.001.

# %%
told = f"found {decays[['train_loss', 'kept_epoch']].to_dict('records')}"
assert abs(decays["train_loss"][2] - np.log(3)) < 0.02, told
assert decays["train_loss"].drop(2).max() < 0.5, told
assert decays["kept_epoch"][2] < decays["kept_epoch"].drop(2).min(), told

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **One seed, one data set.** This page shows how training ends, not how much the accuracy differs between seeds.
# - **Several changes at once.** *As released* and *corrected* differ in mask, zeroing, clipping, batches, padding and decay.
#   None of our four training runs separates the mask from the zeroing.
#
# [The README](README.md#compared-with-the-released-code) compares explanations of both variants. The last cell lists all files.

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# No stage reads these tables. [02_training](02_training.ipynb) trains this model with the decay that was chosen here.
