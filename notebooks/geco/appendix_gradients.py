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
# # GECO, an appendix to stage 3: what do gradient methods compute in BERT?
#
# [Start here](../00_start_here.ipynb) · it follows [03_attribution](03_attribution.ipynb) · next: [04_metrics](04_metrics.ipynb) ·
# [glossary](../../docs/glossary.md)
#
# ## What we found
#
# - **As released, two of the paper's methods return rounding errors for BERT.** For each word, the released code of
#   Guided Backprop and DeepLift sums a gradient over all dimensions. In BERT this sum is exactly zero. What the computer returns
#   is rounding: in double precision the sums are a billion times smaller than in single precision.
#   [Table](../../outputs/reference/geco/cpu/appendix_gradients/vanishing.csv)
# - **Guided Backprop is the plain gradient in every architecture without ReLU.** The two agree to the last digit.
#   [Table](../../outputs/reference/geco/cpu/appendix_gradients/identities.csv)
# - **In BERT, DeepLift as captum computes it is nearly the gradient times (input - baseline).** The correlation is
#   1.00<!-- geco/cpu/appendix_gradients/identities[left=DeepLift (captum), right=gradient x (input - reference), architecture=BERT, GELU].r -->. Its scores should add up to the change of the logit, but do not.
#   [Table](../../outputs/reference/geco/cpu/appendix_gradients/deeplift.csv)
#
# The numbers are from one sentence at scale `cpu`, and a BERT of which the head alone has learnt, from a hundred base
# sentences. The first two findings follow from the architecture and hold for any weights.
#
# ## You will see
#
# - why a sum over the dimensions of a gradient vanishes in BERT;
# - which methods are one method under two names;
# - in which architectures these methods agree.
#
# **You can then** recognise rounding noise that looks like an explanation. **You need** [stage 3](03_attribution.ipynb).
# **Time:** 10 minutes to read, under a minute to run, no exercises.
#
# | in | out |
# |---|---|
# | 02: `models/`, `predictions` | `vanishing`: the sums; `deeplift`: its gap; `identities`: pairs of methods by architecture |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import copy
import re

import numpy as np
import pandas as pd
import torch
import transformers
from torch import nn

from lib import attribution, plots
from lib.attribution import captum_route
from lib.attribution.explain import token_batch
from lib.core import files, notebooks, seeds
from lib.core.stage import open_stage
from lib.models.hf import HFClassifier
from lib.models.load import build_model
from lib.models.schemes import scheme_named
from lib.plots.panels import DATASET_NAMES
from lib.studies.geco import corpus, grid, units, variants

# %% [markdown]
# ## Settings

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # of the random models
n_threads = 1  # threads of PyTorch
encoder = "all-MiniLM-L6-v2"  # the pre-trained language model, as in 02
encoder_revision = ""  # the commit of a hub id

# %% [markdown]
# We use the model of stage 3, in which everything was fine-tuned.

# %%
seeds.set_up(seed, n_threads)
stage = open_stage("geco", scale, "appendix_gradients")
predictions = files.load_parquet(
    stage.input("02_training", "predictions.parquet")
).query("split == 'test'")
schemes = predictions.query("dataset == 'D_A'")["scheme"].unique()
encoders = [name for name in schemes if not scheme_named(name).is_one_layer]
unit = grid.Unit("D_A", [*(encoders or schemes)][-1], 0, "Saliency", {}, 1)
sources = units.StageSources(stage, predictions, seed, torch.device("cpu"))

# %% [markdown]
# The sentence is the paper's example:

# %%
model, _, what = sources.model_to_show(unit, encoder, encoder_revision)
words = "She loves to spend time with her favorite cat .".split()
row = attribution.Row("example", -1, 0, words, seed)
config = getattr(model.module, "config", None)
is_bert = getattr(config, "model_type", "") == "bert"  # what follows is about BERT
codes = plots.SCHEME_NAMES | DATASET_NAMES
print(re.sub(r"[\w-]+", lambda word: codes.get(word[0], word[0]), what))

# %% [markdown] tags=["slide"]
# ## 1 · A sum that vanishes
#
# ![The numbers 1, 3, 2 of a token, and the same plus 2 (3, 5, 4), come out of LayerNorm alike, so the score does not change and its gradient sums to 0 over the dimensions.](../../docs/schematics/layer_norm.svg)
#
# BERT adds positions to the word embeddings and then applies **LayerNorm**. LayerNorm subtracts the mean over the dimensions
# of a token, and divides by the standard deviation. If we add the same constant to all dimensions of a token, LayerNorm removes it
# again, and nothing in the model changes. So the gradient in this direction is zero:
#
# $$\sum_h \frac{\partial f}{\partial x_{th}} = 0 \quad\text{for every token, exactly.}$$
#
# The released code aggregates Guided Backprop and DeepLift by *exactly this sum*. So it returns rounding errors. We can
# check this by computing with more digits: a real value stays the same, and a rounding error shrinks.


# %%
def gradients(kind: object) -> torch.Tensor:
    """The gradient of the logit in each number of each token, (token, hidden)."""
    one = token_batch(kind, [row], kind.encode([words]), "logit")
    x = one.embeddings.clone().requires_grad_()
    return torch.autograd.grad(one.score(x, one.mask).sum(), x)[0][0]


double = copy.copy(model)
double.module = copy.deepcopy(model.module).double()
found = {"7_digits": gradients(model), "16_digits": gradients(double)}
sums = {name: values.sum(-1).numpy() for name, values in found.items()}
sizes = found["16_digits"].abs().sum(-1).numpy()
assert not is_bert or np.abs(sums["16_digits"]).max() < 1e-14 * sizes.max()
for name, values in found.items():
    print(f"{name.replace('_', ' ')}: {values.element_size() * 8} bits a number")

# %% [markdown]
# For each token the table has the sum in both precisions, and the sum of the absolute values. The last two columns are the "explanation" that the released code makes
# of these sums: absolute values, divided by their total.

# %% tags=["nbval-ignore-output", "slide"]
ids = model.encode([words])[0].ids
shares = {
    f"share_{name}": np.abs(values) / np.abs(values).sum()
    for name, values in sums.items()
}
vanishing = pd.DataFrame(
    {
        "token": model.tokenizer.convert_ids_to_tokens(ids),
        **{f"sum_{name}": values for name, values in sums.items()},
        "sum_of_sizes": sizes,
        **shares,
    }
)
table = stage.table("vanishing", vanishing, digits=20)
for name in ("sum_7_digits", "sum_16_digits"):
    table[name] = [f"{x:.0e}" if x else "0" for x in table[name]]
notebooks.show_table(
    table.round({"sum_of_sizes": 3, "share_7_digits": 2, "share_16_digits": 2}),
    {
        "token": "token",
        "sum_7_digits": "sum, 7 digits",
        "sum_16_digits": "sum, 16 digits",
        "sum_of_sizes": "sum of absolute values",
        "share_7_digits": "share, 7 digits",
        "share_16_digits": "share, 16 digits",
    },
)

# %% [markdown] tags=["slide"]
# With twice as many digits the sums are a billion times smaller, so there is no signal in them. Yet the shares look
# like an explanation, and they differ between the two precisions. According to the released code, the paper's figures
# show such shares for Guided Backprop and DeepLift in BERT. So we do not compare our results with theirs.
#
# ## 2 · What do we compute instead?
#
# **Guided Backprop** changes the gradient at ReLU activations only. How many ReLU activations does this model have?

# %%
n_relu = sum(type(module) is nn.ReLU for module in model.module.modules())
one = token_batch(model, [row], model.encode([words]), "logit")
vectors = found["7_digits"][None]
guided = captum_route.guided_backprop(one).scores
assert n_relu or torch.equal(guided, vectors.norm(dim=-1))  # equal to the last digit
print(f"ReLU modules: {n_relu}")

# %% [markdown] tags=["slide"]
# The model has none. So Guided Backprop is the plain gradient, and only the aggregation can differ from Saliency. We
# take the **length** of the vector, where Saliency takes the sum of absolute values.
#
# **DeepLift** replaces the gradient of an activation by the slope of the straight line from baseline to input. The
# package captum has a rule for a few activations, and treats every other module as linear. For which modules of our
# model does it have a rule?

# %% tags=["nbval-ignore-output", "slide"]
known = captum_route.seen_by_deep_lift(model.module)
deep = captum_route.deep_lift(one)
plain = ((one.embeddings - one.baselines) * vectors).sum(-1)
with torch.no_grad():
    at_end = one.score(one.embeddings, one.mask)
    change = (at_end - one.score(one.baselines, one.mask)).item()
assert not is_bert or known == ["bert.pooler.activation"]
quantities = {
    "modules that captum's DeepLift knows": len(known),
    "correlation with gradient x (x - reference)": np.corrcoef(
        deep.scores[0], plain[0]
    )[0, 1],
    "sum of all scores": deep.scores.sum().item(),
    "change of the logit": change,
    "gap between the two": deep.delta.item(),
}
table = pd.DataFrame({"quantity": quantities.keys(), "value": quantities.values()})
table = stage.table("deeplift", table)
table["value"] = [f"{x:g}" for x in table["value"]]
from_baseline = "times (input - baseline)"
table["quantity"] = table["quantity"].str.replace(
    "x (x - reference)", from_baseline, regex=False
)
notebooks.show_table(table, {"quantity": "quantity", "value": "value"})

# %% [markdown] tags=["slide"]
# captum has a rule for one module, the tanh behind the last layer. So here DeepLift is nearly the gradient times
# (input - baseline). DeepLift scores should add up to the change of the logit, but they miss it by the gap in the last row. We
# multiply by the difference before we sum, so the result does not vanish.
#
# ## 3 · Input x Gradient in BERT is about positions
#
# LayerNorm also divides by the standard deviation. So nothing changes if the sum of word embedding $\mathbf{e}$, position $\mathbf{p}$ and sentence type $\mathbf{t}$ is *stretched*, that is, multiplied by a number. The gradient
# $\mathbf{g}$ along this sum is zero as well: $(\mathbf{e} + \mathbf{p} + \mathbf{t})\cdot\mathbf{g} = 0$ at every token. It follows that
#
# $$\mathbf{e}\cdot\mathbf{g} = -(\mathbf{p}+\mathbf{t})\cdot\mathbf{g}.$$
#
# The left side is Input x Gradient. The right side measures how the score would change if the *position and type* of
# the token were made smaller. That tells little about the word. Methods with a baseline multiply by the difference of
# two word embeddings, so they do not have this problem.
#
# ## 4 · Which methods are one method under two names?
#
# We compare pairs of methods in BERT, and in small random models of other architectures. An identity holds for any
# weights, so random models are enough. OLA is the model with one attention layer. Two methods are new. *AttnLRP* passes relevance back layer by
# layer, with rules for attention. *DeepLift rescale* is our DeepLift, with a rule for every layer. (*Occlusion* is the fall of the score when one word
# is left out. *Exact Shapley* values use all sets of words.)


# %%
def small_random(
    module: str, config: str, reads_first: bool = False, **more: object
) -> HFClassifier:
    """A tiny random classifier, with weights large enough for words to interact."""
    torch.manual_seed(seed)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        **more,
    }
    special = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    size = {"vocab_size": len(model.tokenizer), "num_labels": 3}
    settings = getattr(transformers, config)(
        **size, initializer_range=0.3, **special, **shape
    )
    made = getattr(transformers, module)(settings)
    # padding too, which starts as zero
    _ = nn.init.normal_(made.get_input_embeddings().weight, std=0.3)
    small = HFClassifier(made, model.tokenizer, corpus.CLASSES)
    small.reads_first = reads_first
    return small


short = ["She", "loves", "her", "cat", "."]
recipe = {
    "encoder": encoder,
    "revision": encoder_revision,
    "classes": corpus.CLASSES,
    "scheme": "OLA-CEA",
    "seed": seed,
    "variant": "corrected",
}
bert, gpt = "BertForSequenceClassification", "GPT2ForSequenceClassification"
architectures = {
    "BERT, GELU": model,
    "BERT, ReLU": small_random(bert, "BertConfig", True, hidden_act="relu"),
    "GPT-2": small_random(gpt, "GPT2Config"),
    "Llama": small_random("LlamaForSequenceClassification", "LlamaConfig"),
    "OLA": build_model(recipe, model.encode([short])[0].ids)[0],
}

# %% [markdown]
# *Same* means that the largest difference over the words is below a ten-thousandth of the largest score. Otherwise the
# table shows the correlation over the words. A cell is empty if the architecture has no positions to add.

# %% tags=["nbval-ignore-output", "slide"]
pairs = [
    variants.identities(m, short, architecture=n) for n, m in architectures.items()
]
same = pd.concat(pairs, ignore_index=True)
_ = stage.table("identities", same)
r = same["r"].map("{:.2f}".format).replace("nan", "")
same["shown"] = np.where(same["same"], "same", r)
of_bert = same.query("architecture == 'BERT, GELU'")
by_pair = of_bert.set_index(["left", "right"])["same"]
positions = "InputXGradient", "minus gradient along position and type"
assert not is_bert or by_pair["Guided Backprop"].all() and by_pair[positions]
by_pair = same.pivot(index=["left", "right"], columns="architecture", values="shown")
by_pair = by_pair.rename(index=plots.method_label, level="left").reset_index()
by_pair["right"] = by_pair["right"].str.replace(
    "x (input - reference)", from_baseline, regex=False
)
notebooks.show_table(
    by_pair,
    {"left": "method", "right": "compared with"}
    | {name: name for name in architectures},
)

# %% [markdown] tags=["slide"]
# Guided Backprop is the length of the gradient wherever there is no ReLU. captum's DeepLift is the gradient times
# (input - baseline) in GPT-2 and Llama, where captum has no rule for any module. In the trained BERT the
# scores of *DeepLift rescale* are very different from those of captum's. Input x
# Gradient is minus the gradient along position and type in BERT, and in no other architecture of the table. AttnLRP,
# Occlusion and exact Shapley values are there for comparison. AttnLRP correlates closely with Input x Gradient only in OLA,
# and Occlusion with exact Shapley values only in OLA and GPT-2.
#
# In OLA, which has no positions and no LayerNorm, all pairs correlate strongly. This explains why Input x Gradient
# can have a low mass accuracy in BERT and a high one in OLA ([stage 4](04_metrics.ipynb), section 4).
#
# ## What could be wrong
#
# - **One sentence.** The identities are proved and hold for all sentences. The correlations are those of this sentence.
# - **Random models.** Large random weights make words interact, but they are not trained models.
# - **Versions.** A later captum may have rules for more modules. Then the assert above fails.

# %%
notebooks.show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# No stage reads these tables. Because of them, [03_attribution](03_attribution.ipynb) takes the length of the gradient for
# Guided Backprop, and multiplies by the difference from the baseline before it sums for DeepLift.
