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
# # GECO, stage 3 of 5: which words made the model decide, according to eight methods?
#
# [Start here](../00_start_here.ipynb) · before: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb) ·
# [glossary](../../docs/glossary.md)
#
# ## What we found
#
# - **LIME and Kernel SHAP need far more samples than the released code draws.** *Mass accuracy* is the share of an explanation that lies on the changed words. With
#   the released 100 samples (LIME) and 25 samples (Kernel SHAP) it is
#   .58<!-- geco/cpu/03_attribution/converged[dataset=D_A, scheme=CEf, method=LIME].MA_usual --> and
#   .43<!-- geco/cpu/03_attribution/converged[dataset=D_A, scheme=CEf, method=Kernel SHAP].MA_usual -->. With samples until the error of a word's
#   share is below one hundredth, they reach
#   .90<!-- geco/cpu/03_attribution/converged[dataset=D_A, scheme=CEf, method=LIME].MA --> and
#   .93<!-- geco/cpu/03_attribution/converged[dataset=D_A, scheme=CEf, method=Kernel SHAP].MA -->. The median is
#   8,192<!-- geco/cpu/03_attribution/converged[dataset=D_A, scheme=CEf, method=LIME].samples --> samples for LIME (thirty sentences, one BERT whose
#   head and embeddings were fine-tuned). So here their low scores largely come from few samples.
#   [Table](../../outputs/reference/geco/cpu/03_attribution/converged.csv)
# - **The baseline can decide the explanation.** It is the input that stands for "no word", usually padding. With mask tokens in its place, the order of the
#   words by Integrated Gradients correlates only
#   .41<!-- geco/cpu/03_attribution/choices[method=Integrated Gradients, choice=baseline, value=mask].rank --> with the order that padding gives (twelve rows of *subject only*). [Table](../../outputs/reference/geco/cpu/03_attribution/choices.csv)
# - **Training moves attribution onto the changed words.** The mass accuracy of Integrated Gradients rises from
#   .20<!-- geco/cpu/03_attribution/controls[model=before training].MA --> before training to
#   .50<!-- geco/cpu/03_attribution/controls[model=trained].MA --> after it; random scores have
#   .21<!-- geco/cpu/03_attribution/controls[model=noise].MA -->. [Table](../../outputs/reference/geco/cpu/03_attribution/controls.csv)
#
# The last two are about a BERT whose head alone learnt, from 100 base sentences. Scale `cpu`: the published GECO, and a small BERT. The cells
# below show scale `small`.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - one sentence explained by eight methods and four rules;
# - three methods in full, each checked by a second computation;
# - how much depends on other choices.
#
# **You can then** compute four attributions of a small model by hand, find Shapley values, and check that scores add
# up. **You need** [stage 1](01_data_generation.ipynb), [stage 2](02_training.ipynb), and what a gradient is.
# **Time:** 20 minutes to read, 4 minutes to run,
# [20 minutes for the exercises](../../docs/course/exercises/geco.md#03-attribution).
#
# | in | out |
# |---|---|
# | 01: sentences and ground truth | `explanations.parquet`: one number per word, for each model, method and row |
# | 02: `models/`, `predictions` | about the example: `side_by_side`, `completeness`, `shapley`, `lime` |
# | | about more rows: `overview`, `sample_sizes`, `converged`, `choices`, `controls` |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import re
from itertools import permutations, product

import numpy as np
import pandas as pd
import torch
from lime.lime_text import LimeTextExplainer

from lib import attribution, metrics, plots
from lib.attribution import captum_route
from lib.attribution.explain import token_batch
from lib.core import files, notebooks, seeds, units
from lib.core.stage import open_stage
from lib.models.schemes import scheme_named
from lib.plots.panels import DATASET_NAMES
from lib.studies.geco import as_released, convergence, corpus, grid, variants
from lib.studies.geco import units as explaining

# %% [markdown]
# ## Settings
#
# `schemes` says how the models were trained: zero-shot (ZS), head only (C), head + new embeddings (CE), head + embeddings (CEf), everything (CEfAf), one attention layer (OLA-CEA).
# `methods` has eight methods, and four rules that see no model. What a rule reaches is a *floor*.
#
# `explained` names the number that a method explains: the *logit* of a class (before the softmax) or its
# *probability*. Most methods return a vector per word piece; `aggregation` says how one number is made of it.

# %% tags=["parameters"]
scale = "small"  # which run: small | cpu | paper
seed = 0  # of the choice of the explained base sentences
n_threads = 1  # threads of PyTorch
device = "auto"  # auto | cpu | cuda
reuse_units = False  # take finished parts from, and publish them to, outputs/reference
encoder = "all-MiniLM-L6-v2"  # the pre-trained language model, as in 02
encoder_revision = ""  # the commit of a hub id
datasets = ["D_A", "D_S"]  # the data sets with three classes
schemes = [
    "ZS",
    "C",
    "CE",
    "CEf",
    "CEfAf",
    "OLA-CEA",
]  # how the explained models were trained
methods = [
    "Saliency",
    "InputXGradient",
    "Guided Backprop",
    "DeepLift",
    "Gradient SHAP",
    "Integrated Gradients",
    "Kernel SHAP",
    "LIME",
    "Uniform random",
    "Pattern Variant",
    "First pronoun",
    "Pronoun list",
]  # then floors
n_base = 6  # base sentences of the test part that are explained, in all forms (0: all)
n_base_ola = 6  # the same for OLA, which is cheap
n_base_of = {}  # the same for some schemes, in the place of the two numbers
every_seed_methods = []  # OLA: the methods for its sixth and later seeds ([]: all)
one_pass_schemes = [
    "C",
    "CE",
    "CEf",
]  # explained with the methods that need a single pass only ([]: none)
one_seed_methods = []  # costly methods: first seed of each scheme only (OLA: all seeds)
ig_steps = 20  # Integrated Gradients: points on the path
# Integrated Gradients: where the points lie: riemann_middle | gausslegendre
ig_rule = "riemann_middle"
lime_samples = 50  # LIME: altered texts per sentence
kernel_shap_samples = 25  # Kernel SHAP: coalitions per sentence
gradient_shap_samples = 5  # Gradient SHAP: points per sentence
explained = {
    "Saliency": "logit",
    "InputXGradient": "logit",
    "Guided Backprop": "logit",
    "DeepLift": "logit",
    "Gradient SHAP": "logit",  # per method:
    "Integrated Gradients": "probability",
    "Kernel SHAP": "probability",
    "LIME": "probability",
}  # what is explained: logit | probability
aggregation = {
    "Saliency": "l1",
    "InputXGradient": "sum",
    "Guided Backprop": "l2",
    "DeepLift": "sum",  # per method:
    "Gradient SHAP": "sum",
    "Integrated Gradients": "sum",
}  # vector to number: sum | l1 (sizes) | l2 (length)
normalise_special = False  # True (as released): divided by the sum with CLS and SEP
method_variants = "corrected"  # corrected | as_released: methods of the released code
method_settings = {}  # settings of your own methods, by method name
sample_sizes = []  # LIME and Kernel SHAP once more, with these numbers of samples
sample_base = 6  # base sentences for sample_sizes
converged_seeds = {"OLA-CEA": 1}  # LIME, Kernel SHAP until converged: seeds per scheme
converged_datasets = ["D_A"]  # the same: explained on these data sets
converged_base = 2  # the same: base sentences, one form of each
tolerance = 0.02  # the same: largest error estimate of a word's share
most_samples = 8192  # the same: samples at the most
choice_base = 1  # base sentences for the choices of section 8
explanation_files = []  # explanations made elsewhere, Parquet (section 7)

# %% [markdown]
# In equations $\mathbf{x}$ are the word embeddings of a sentence, and $\mathbf{x}'$ the **baseline**: the same with every word piece replaced by padding. $f$ is the number that is
# explained, and $s_t$ the score of a token: a word, a *piece* of a rare word, or a special token
# ([CLS in front, SEP at the end](../../docs/glossary.md)).

# %%
seeds.set_up(seed, n_threads)
stage = open_stage("geco", scale, "03_attribution")
predictions = files.load_parquet(
    stage.input("02_training", "predictions.parquet")
).query("split == 'test'")
wanted = predictions.query("dataset in @datasets and scheme in @schemes")
trained = wanted[["dataset", "scheme", "seed"]].drop_duplicates()
device_used = seeds.pick_device(device)
sources = explaining.StageSources(stage, predictions, seed, device_used)

# %% [markdown]
# What is there to explain?

# %%
for name in datasets:
    test = corpus.load_dataset(stage, name, "test")
    n_models = (trained["dataset"] == name).sum()
    n_sentences = test["sentence_idx"].nunique()
    print(
        f"{DATASET_NAMES.get(name, name)}: {len(test)} rows of {n_sentences} base",
        f"sentences, {n_models} models",
    )

# %% [markdown] tags=["slide"]
# ## 1 · By hand, with a model of four inputs
#
# This model reads two words of two numbers each:
#
# $$f = \sum_{\text{words}} (x_1 - x_2), \qquad \textit{she} = (2, 1),\quad \textit{sings} = (0, 3),\quad \text{padding} = (1, 0)$$
#
# *She* adds $2 - 1 = 1$ and *sings* adds $0 - 3 = -3$. What should an explanation say?
#
# - **Input x Gradient** multiplies each number by its effect: $1$ and $-3$.
# - **Integrated Gradients** and **Kernel SHAP** ask what changed *since the baseline*. Padding adds $1$ itself. So *she* has
#   $0$, and *sings* has $-4$.
# - **Saliency** asks how sensitive the model is. That is $|1| + |-1| = 2$ for both words, whatever the word is.
#
# All are right: they answer different questions.

# %%
word_vectors = torch.tensor([[[2.0, 1.0], [0.0, 3.0]]])
padding = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
two_words = attribution.TokenBatch(
    score=lambda x, mask: (x[..., 0] - x[..., 1]).sum(1),
    embeddings=word_vectors,
    baselines=padding,
    mask=torch.ones(1, 2),
    is_word=torch.ones(1, 2) > 0,
    seeds=(seed,),
)

# %% [markdown]
# The library must agree:

# %%
by_hand = {
    captum_route.input_x_gradient: [1, -3],
    captum_route.integrated_gradients: [0, -4],
    captum_route.kernel_shap: [0, -4],
    captum_route.saliency: [2, 2],
}
for method, expected in by_hand.items():
    found = method(two_words).scores[0]
    print(f"{method.__name__:>22}: she {expected[0]:2}, sings {expected[1]:2}")
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float), atol=1e-4)

# %% [markdown] tags=["slide"]
# ## 2 · One sentence, eight methods
#
# The next cell plans the *parts* of the run, one method on one model each.

# %%
numbers = {
    "Integrated Gradients": {"n_steps": ig_steps, "rule": ig_rule},
    "LIME": {"n_samples": lime_samples},
    "Kernel SHAP": {"n_samples": kernel_shap_samples},
    "Gradient SHAP": {"n_samples": gradient_shap_samples},
}
settings = explaining.settings_by_method(
    explained, aggregation, normalise_special, numbers, method_settings
)
if method_variants == "as_released":
    settings |= as_released.released_settings(method_settings)
seeds_of = one_seed_methods, every_seed_methods, one_pass_schemes, n_base_of
plan = explaining.plan_units(trained, methods, settings, n_base, n_base_ola, *seeds_of)

# %% [markdown]
# We show the model with everything fine-tuned.

# %%
encoders = [name for name in schemes if not scheme_named(name).is_one_layer]
shown_scheme = (encoders or schemes)[-1]
of_path = explaining.plan_units(
    trained, ["Integrated Gradients"], settings, n_base, n_base_ola
)
shown = next(
    unit
    for unit in of_path
    if (unit.dataset, unit.scheme) == (datasets[0], shown_scheme)
)
model, untrained, what = sources.model_to_show(shown, encoder, encoder_revision)
codes = plots.SCHEME_NAMES | DATASET_NAMES
print(
    f"{len(methods)} methods, {len(trained)} models, {len(plan)} parts; shown:",
    re.sub(r"[\w-]+", lambda word: codes.get(word[0], word[0]), what),
)

# %% [markdown]
# The sentence is the paper's example. Its ground truth is *She*, *loves* and *her*. **Prediction:** a good method puts nearly everything on *She* and *her*. *Loves*
# says only that the form is not *They*.

# %%
words = "She loves to spend time with her favorite cat .".split()
truth = [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]
about = {"row_id": ["example"], "sentence_idx": [-1], "target": [0]}
example = pd.DataFrame({**about, "sentence": [words]})
of_example = [
    unit
    for unit in plan
    if unit.dataset == datasets[0]
    and (unit.scheme, unit.seed) in ((shown_scheme, shown.seed), ("-", -1))
]

# %% [markdown]
# Each method explains the female form:

# %%
columns = {}
for unit in of_example:
    is_floor = unit.scheme == "-" and unit.method != "Uniform random"
    sees = sources.model_of(unit) if is_floor else model
    scores = attribution.explain(
        sees, example, unit.explainer, unit.settings, seed=unit.seed
    )["scores"][0]
    columns[unit.method] = np.array(scores) / np.abs(scores).sum()
columns = {name: columns[name] for name in methods}

# %% [markdown] tags=["slide"]
# The scores of a method are divided by the sum of their absolute values. Orange speaks for the female form, violet against it.

# %% tags=["nbval-ignore-output", "slide"]
table = pd.DataFrame({"word": words, "ground_truth": truth, **columns})
_ = stage.table("side_by_side", table)
known = attribution.METHODS
sees_model = [name not in known or known[name].family != "floor" for name in columns]
marks = ["changed" if is_truth else "" for is_truth in truth]
sentences = pd.DataFrame(
    {
        "label": [plots.method_label(name) for name in columns],
        "scores": [list(scores) for scores in columns.values()],
        "words": [words] * len(columns),
        "marks": [marks] * len(columns),
        "heading": np.where(
            sees_model, "They look at the model", "They look at no model"
        ),
    }
)
figure, _ = plots.plot_words(
    sentences,
    marks={"changed": "a word that we changed"},
    toward="speaks for the female form (Saliency, Guided Backprop: size only)",
)
stage.figure("side_by_side", figure)

# %% [markdown] tags=["slide"]
# The prediction holds for Integrated Gradients and Gradient SHAP. LIME also rewards *spend*, and Kernel SHAP gives it most. Input x Gradient gives *loves* most.
# By DeepLift, *She* and *her* speak against the female form ([why](appendix_gradients.ipynb)).
#
# ## Three methods in full
#
# One uses the gradient of the score, one a path, one samples.
#
# ### 3 · Input x Gradient
#
# Multiply every number of the input by the gradient, and add up what belongs to one token (Shrikumar et al. 2017):
#
# $$s_t = \sum_h x_{th}\, \frac{\partial f}{\partial x_{th}}(\mathbf{x})$$
#
# Our definition calls the library captum:

# %%
notebooks.show_source(captum_route.input_x_gradient)

# %% [markdown]
# We check it with PyTorch, and with the faster implementation of the full run (the last assert).

# %%
row = attribution.Row("example", -1, 0, words, seed)
batch = token_batch(model, [row], model.encode([words]), "logit")
x = batch.embeddings.clone().requires_grad_()
gradient = torch.autograd.grad(batch.score(x, batch.mask).sum(), x)[0]
by_captum = captum_route.input_x_gradient(batch).scores
assert torch.allclose(by_captum, (x * gradient).sum(-1), rtol=1e-4, atol=1e-6)
by_engine = attribution.explain(model, example, "InputXGradient")["scores"][0]
assert np.allclose(by_engine, by_captum[0, 1:-1].tolist(), 1e-4, 1e-6)
print(
    f"{len(words)} words, {by_captum.shape[1]} tokens, {x.shape[2]} numbers per token"
)

# %% [markdown] tags=["slide"]
# The scores of the two special tokens are dropped. A word of several pieces gets the sum of its pieces.
#
# ### 4 · Integrated Gradients
#
# ![The score on the way from an empty sentence to the real one rises by 1.00. The slopes at the middle of 3 equal steps, laid end to end, reach 1.34. The gap is +0.34; more steps make it smaller.](../../docs/schematics/integrated_gradients.svg)
#
# One gradient says little about a curve. So walk straight from the baseline $\mathbf{x}'$ to $\mathbf{x}$, and
# take the mean of the gradients on the way (Sundararajan et al. 2017):
#
# $$s_t = \sum_h (x_{th} - x'_{th}) \int_0^1 \frac{\partial f}{\partial x_{th}}\big(\mathbf{x}' + \alpha(\mathbf{x} - \mathbf{x}')\big)\, d\alpha$$
#
# The method promises **completeness**: the scores of all tokens add up to $f(\mathbf{x}) - f(\mathbf{x}')$.

# %%
notebooks.show_source(captum_route.integrated_gradients)

# %% [markdown]
# We check it with a loop, and see how nearly the scores add up to `rise`.

# %% tags=["nbval-ignore-output", "slide"]
batch = token_batch(model, [row], model.encode([words]), "probability")
step, total = batch.embeddings - batch.baselines, torch.zeros_like(batch.embeddings)
for k in range(ig_steps):
    x = (batch.baselines + (k + 0.5) / ig_steps * step).requires_grad_()
    total += torch.autograd.grad(batch.score(x, batch.mask).sum(), x)[0]
by_loop = (step * total / ig_steps).sum(-1)
by_captum = captum_route.integrated_gradients(batch, n_steps=ig_steps).scores
assert torch.allclose(by_captum, by_loop, rtol=1e-3, atol=1e-5)
with torch.no_grad():
    at_end = batch.score(batch.embeddings, batch.mask)
    rise = (at_end - batch.score(batch.baselines, batch.mask)).item()
gaps = {
    n: captum_route.integrated_gradients(batch, n_steps=n).delta.item()
    for n in (4, 20, 64, 128)
}
assert abs(gaps[128]) < 0.01
added = {"n_steps": gaps.keys(), "rise": rise, "delta": gaps.values()}
notebooks.show_table(
    stage.table("completeness", pd.DataFrame(added)) + 0,  # no "-0.000"
    {"n_steps": "points on the path", "rise": "rise", "delta": "gap (delta)"},
)

# %% [markdown] tags=["slide"]
# With 20 points, the `ig_steps` of this page, the gap is still a quarter of the rise: the probability jumps from almost 0 to
# almost 1 on a small part of the path. So we store the gap (`delta`) with every explanation.
#
# ### 5 · Kernel SHAP
#
# The third idea needs no gradient: take words away, and share out the change of the answer. The **Shapley value** of a token is its contribution to $f$, averaged over
# all orders in which the tokens can arrive. Kernel SHAP (Lundberg and Lee 2017) draws some sets of present tokens, replaces the
# others by padding, and fits a weighted linear model. Its coefficients approach the Shapley values.

# %%
notebooks.show_source(captum_route.kernel_shap)

# %% [markdown]
# Five words have only 120 orders, so we can compute the definition itself:

# %% tags=["nbval-ignore-output"]
short = ["She", "loves", "her", "cat", "."]
short_row = attribution.Row("short", -1, 0, short, seed)
batch = token_batch(model, [short_row], model.encode([short]), "probability")
players, worth = batch.is_word[0].nonzero()[:, 0].tolist(), {}
for present in product([False, True], repeat=len(players)):
    keep = ~batch.is_word[0]
    keep[players] = torch.tensor(present, device=keep.device)
    mixed = torch.where(keep[:, None], batch.embeddings, batch.baselines)
    with torch.no_grad():
        worth[present] = batch.score(mixed, batch.mask).item()
exact, orders = np.zeros(len(players)), list(permutations(range(len(players))))
for order in orders:
    present = [False] * len(players)
    for i in order:
        before = worth[tuple(present)]
        present[i] = True
        exact[i] += (worth[tuple(present)] - before) / len(orders)
sampled = {
    n: captum_route.kernel_shap(batch, n_samples=n).scores[0, players].cpu().numpy()
    for n in (25, 100, 1000)
}
assert np.abs(sampled[1000] - exact).max() < 0.15 * np.abs(exact).max() + 1e-4
ids = model.encode([short])[0].ids
pieces = np.array(model.tokenizer.convert_ids_to_tokens(ids))[players]
by_samples = {f"{n} samples": scores for n, scores in sampled.items()}
compared = pd.DataFrame({"token": pieces, "exact": exact, **by_samples})
compared = stage.table("shapley", compared)
compared[compared.columns[1:]] += 0  # no "-0.000"
notebooks.show_table(compared, dict(zip(compared, compared)))

# %% [markdown]
# With 25 samples, as in the released code, the two pronouns have the largest scores, but the values are off. With a thousand they are close. An average sentence has over
# twenty tokens, so 25 samples hardly exceed the coefficients to be fitted.
#
# ## 6 · The other methods
#
# ![LIME: copies of a sentence with words taken out, and the model's answers: She loves her cat: 0.9; She her: 0.9; loves her cat: 0.3; She loves: 0.7; loves cat: 0.1; She cat: 0.7. Below, the weights of the words in a sum that fits, with a constant of 0.1: She +0.6, loves 0, her +0.2, cat 0.](../../docs/schematics/lime.svg)
#
# | method | what it computes for a token | source |
# |---|---|---|
# | Saliency | the sum of the absolute gradients | [Simonyan et al. 2013](https://arxiv.org/abs/1312.6034) |
# | Guided Backprop | the length of the gradient, cut at ReLUs (BERT has none) | [Springenberg et al. 2015](https://arxiv.org/abs/1412.6806) |
# | DeepLift | slopes from baseline to input, layer by layer, times the difference | [Shrikumar et al. 2017](https://arxiv.org/abs/1704.02685) |
# | Gradient SHAP | Integrated Gradients at a few random points of the path | [Lundberg and Lee 2017](https://arxiv.org/abs/1705.07874) |
# | LIME | the weight of a word's presence in a linear model | [Ribeiro et al. 2016](https://arxiv.org/abs/1602.04938) |
# | Occlusion (section 8) | the fall of the score without it | [Li et al. 2016](https://arxiv.org/abs/1612.08220) |
# | Uniform random | a random number | floor |
# | Pattern Variant | how closely the word goes with the class in the training texts | floor, GECOBench 3.3.2; [Haufe et al. 2014](https://doi.org/10.1016/j.neuroimage.2013.10.067) |
# | First pronoun, Pronoun list | everything on the first pronoun, or on all pronouns | floors of ours |
#
# [`paper.yaml`](../../params/geco/paper.yaml) lists where we differ from the released code. The
# released LIME finds words by their letters: *he* is part of *the*, so it can get the weight of *the*. It explains
# the male class in every row. Ours works on positions, and explains the row's class. So does this call of the
# authors' package lime, one text at a time, as the released attention also reads padding:


# %%
def answers(texts: list[str]) -> np.ndarray:
    """Class probabilities of texts of places ("0 1 4": "She loves ."), one by one."""
    read = ([short[int(i)] for i in text.split()] for text in texts)
    return np.concatenate([model.predict([words], 1) for words in read])


explainer = LimeTextExplainer(
    split_expression=str.split,
    feature_selection="none",
    random_state=seeds.seed_for("LIME", "short", seed),
)
fitted = explainer.explain_instance(
    "0 1 2 3 4", answers, labels=(0,), num_samples=lime_samples
)
by_lime = [weight for _, weight in sorted(fitted.local_exp[0])]

# %% [markdown]
# Our implementation draws the same texts, and finds the same weights:

# %% tags=["nbval-ignore-output"]
short_example = example.assign(row_id="short", sentence=[short])
few = {"explained": "probability", "n_samples": lime_samples}
found = attribution.explain(model, short_example, "LIME", few, seed=seed)
assert np.allclose(found["scores"][0], by_lime, 1e-4, 1e-5)
both = pd.DataFrame({"word": short, "lime": by_lime, "ours": found["scores"][0]})
both = stage.table("lime", both).replace(0.0, 0.0)  # no "-0.000"
notebooks.show_table(
    both, {"word": "word", "lime": "the package lime", "ours": "our LIME"}
)

# %% [markdown]
# ## 7 · The full run
#
# Every model is explained on the same base sentences of the test part, in all forms, and for the class that the row
# has. To save time, some models get fewer methods.

# %%
theirs = explaining.read_foreign(stage, explanation_files, plan)
store = units.Units("geco", scale, "03_attribution", reuse_units)
if not stage.is_practice:
    forecast = grid.predicted_seconds(plan, sources, store)
    print(forecast.round(1).to_string(index=False))
    print(f"{forecast['seconds'].sum() / 60:.0f} minutes in all")
ours = grid.run_units(plan, sources, store)
explanations = pd.concat([ours, *theirs], ignore_index=True)
attribution.save_explanations(stage.path("explanations.parquet"), explanations)
counts = explanations[["dataset", "scheme", "method", "row_id"]].nunique()
print(f"{len(explanations)} explanations, {sum(map(len, theirs))} made elsewhere")
notebooks.show_table(
    counts.to_frame().T,
    {
        "dataset": "data sets",
        "scheme": "schemes, or no model",
        "method": "methods and floors",
        "row_id": "rows",
    },
)

# %% [markdown]
# Explanations *made elsewhere* can be added (`explanation_files`: Parquet, with the columns of `attribution.SCHEMA`). How concentrated are the explanations, and do they add up?

# %% tags=["nbval-ignore-output"]
sizes = explanations["scores"].map(
    lambda scores: np.abs(scores).max() / max(np.abs(scores).sum(), 1e-30)
)
explained_sum = explanations["scores"].map(sum) - explanations["delta"]
gaps = (explanations["delta"] / explained_sum).abs()
by_method = explanations.assign(largest=sizes, gap=gaps).groupby(
    ["dataset", "method"], sort=False
)
overview = by_method.agg(
    explanations=("row_id", "size"),
    largest_word=("largest", "median"),
    gap=("gap", "median"),
    gap_of_the_worst_tenth=("gap", lambda gaps: gaps.quantile(0.9)),
)
_ = stage.table("overview", overview.reset_index())
notebooks.show_table(
    overview.loc[datasets[0]].round(2).rename(index=plots.method_label).reset_index(),
    {
        "method": "method",
        "explanations": "explanations",
        "largest_word": "largest word",
        "gap": "gap",
        "gap_of_the_worst_tenth": "gap of the worst tenth",
    },
)

# %% [markdown] tags=["slide"]
# *Largest word* is the median share of the word with the largest score.
# *Gap* is the median size of delta, divided by the rise. One explanation in ten
# exceeds the value in the last column. Dashes: no delta.
#
# ## 8 · How much is a matter of choice?
#
# We change one choice and keep method, model and row. The model is *head only* on *subject only*. It is below the
# first-pronoun rule, so this is about methods, not the task. The *function* can be the probability, its logarithm,
# or the margin to the next class, in place of the logit. The *baseline* can be mask tokens or zeros. In rows the
# model gets wrong (none here), the *class* can be the predicted one. The table has the rank correlation of the new
# scores with the usual ones:

# %% tags=["nbval-ignore-output", "slide"]
first_trained = next(name for name in schemes if name != "ZS")
unit = grid.Unit(datasets[-1], first_trained, 0, "Saliency", {}, choice_base)
asked, _, what = sources.model_to_show(unit, encoder, encoder_revision)
own = {
    "Integrated Gradients": {"n_steps": ig_steps, "rule": ig_rule},
    "Kernel SHAP": {"n_samples": kernel_shap_samples},
}
names = ["Saliency", "InputXGradient", "DeepLift", *own, "Occlusion"]
changed = [(name, own.get(name, {})) for name in names]
moved = variants.summarise_moves(
    variants.ranking_moves(asked, sources.rows_of(unit), changed)
)
print(re.sub(r"[\w-]+", lambda word: codes.get(word[0], word[0]), what))
moved = stage.table("choices", moved, digits=2)
by_value = moved.pivot(index="method", columns="value", values="rank")
by_value = (by_value + 0).rename(index=plots.method_label).reset_index()
headings = {
    "probability": "function: probability",
    "log_probability": "function: its logarithm",
    "margin": "function: margin",
    "predicted": "class: predicted",
    "mask": "baseline: mask tokens",
    "zero": "baseline: zeros",
}
headings = {value: name for value, name in headings.items() if value in by_value}
notebooks.show_table(by_value, {"method": "method"} | headings)

# %% [markdown]
# A baseline changes nothing for Saliency and Input x Gradient. For the others it changes the order of the words more than the function does.
#
# The number of samples is a choice, too: `sample_sizes` names other numbers for LIME and Kernel SHAP, none at scale `small` ([those of `cpu`](../../outputs/reference/geco/cpu/03_attribution/sample_sizes.csv)).

# %% tags=["nbval-ignore-output"]
sampling = [name for name in ("LIME", "Kernel SHAP") if name in methods]
first = trained.groupby(["dataset", "scheme"], sort=False)["seed"].min().reset_index()
lines = []
for m, name, n in product(first.itertuples(), sampling, sample_sizes):
    chosen = settings[name] | {"n_samples": n}
    chosen = as_released.method_of(name, chosen).settings(chosen)
    place = m.dataset, m.scheme, int(m.seed)
    unit = grid.Unit(*place, name, chosen, sample_base, note=f"_{n}")
    scored = metrics.score_explanations(
        grid.explain_unit(unit, sources, store),
        corpus.load_dataset(stage, unit.dataset, "test"),
    )
    line = unit.dataset, unit.scheme, unit.method, n, len(scored), scored["MA"].mean()
    lines.append(line)
columns = ["dataset", "scheme", "method", "n_samples", "rows", "MA"]
table = stage.table("sample_sizes", pd.DataFrame(lines, columns=columns))
print(f"{len(table)} runs with other numbers of samples")

# %% [markdown]
# How many samples are enough? Leave out an eighth of the draws at a time (a *jackknife*): how far the shares then move
# estimates their error. We draw until this error is below `tolerance`, or `most_samples` is reached. Draws come in
# pairs: the second keeps what the first leaves out. If `most_samples` allows, all subsets of words are used. We explain
# one form of each base sentence:

# %% tags=["nbval-ignore-output"]
there = trained.query("dataset in @converged_datasets")
how_far = converged_seeds, converged_base, tolerance, most_samples
long_runs = convergence.plan_converged(there, methods, settings, *how_far)
one_form = convergence.OneForm(sources)
if not stage.is_practice:
    print(grid.predicted_seconds(long_runs, one_form, store).round(1).to_string())
settled = [grid.explain_unit(unit, one_form, store) for unit in long_runs]
rows = [corpus.load_dataset(stage, n, "test").assign(dataset=n) for n in datasets]
beside = convergence.beside_usual(
    settled, explanations, pd.concat(rows, ignore_index=True), tolerance
)
_ = stage.table("converged_rows", beside)
summary = convergence.summarise_converged(beside, seed=seed)
summary = stage.table("converged", summary)
summary = summary.astype({"samples": int, "most_samples": int})
notebooks.show_table(
    summary.replace(codes),
    {
        "dataset": "words that change",
        "scheme": "scheme",
        "method": "method",
        "samples": "samples",
        "most_samples": "most samples",
        "reached": "reached",
        "MA_usual": "usual mass accuracy",
        "MA": "mass accuracy",
    },
)

# %% [markdown]
# *Samples* is the median over rows, and *reached* the share of rows whose error is small enough. *Mass accuracy* is
# measured with these samples, *usual mass accuracy* with the usual number. Mass accuracy roughly
# doubles: with few samples, much of what LIME and Kernel SHAP say is noise.

# %% [markdown] tags=["slide"]
# ## 9 · Controls
#
# Two explanations must be worse than a good one: **noise**, and **the same method before training**, when the head is random:

# %% tags=["nbval-ignore-output", "slide"]
test = corpus.load_dataset(stage, shown.dataset, "test")
n_rows = min(4, test["sentence_idx"].nunique())
rows = explaining.choose_rows(test, n_rows, seed)
found = {
    name: attribution.explain(
        one, rows, shown.explainer, shown.settings, seed=shown.seed
    )
    for name, one in {"trained": model, "before training": untrained}.items()
}
found["noise"] = attribution.explain(model, rows, "Uniform random", seed=shown.seed)
mass = {
    name: metrics.score_explanations(table, rows)["MA"].mean()
    for name, table in found.items()
}
accuracy = (model.predict(test["sentence"], 64).argmax(1) == test["target"]).mean()
if accuracy > 0.8:  # a model that has learnt nothing has nothing to be explained
    assert mass["trained"] > max(mass["before training"], mass["noise"]), (
        f"mass accuracy is {mass}; raise n_base, or train the model longer in 02"
    )
controls = pd.DataFrame({"model": mass.keys(), "rows": len(rows), "MA": mass.values()})
controls["method"] = [shown.method, shown.method, "Uniform random"]
notebooks.show_table(
    stage.table("controls", controls),
    {"model": "model", "method": "method", "rows": "rows", "MA": "mass accuracy"},
)

# %% [markdown] tags=["slide"]
# Before training the explanation is no better than noise.
#
# ## What could be wrong
#
# - **The baseline.** Padding stands for "no word", but the model has never read a sentence of padding.
# - **The function.** Near 1 a probability hardly rises, and a logit does. The paper mixes both, and so do we. So two methods can differ by this choice alone.
#
# ## Try it
#
# - Set `ig_rule = "gausslegendre"`. Compare the gaps of section 7.
# - Write `def by_length(model, rows): return [[len(word) for word in row.words] for row in rows]` into a file
#   `mine.py` on your `PYTHONPATH`, add `"mine:by_length"` to `methods`, and look at stage 4.

# %%
_ = stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) asks which explanations point at the changed words.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np
import torch

from lib.attribution.regression import all_masks, shapley_values
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words

added_up = read_committed("geco", "cpu", "03_attribution", "completeness")
in_words(added_up, {"n_steps": "steps", "rise": "rise", "delta": "gap"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# Take the model of section 1: $f = \sum (x_1 - x_2)$ over the words, and padding is $(1, 0)$. A third word joins, *her* $= (4, 1)$. What do the methods say of it?

# %% tags=["hole"]
input_times_gradient = ...
integrated_gradients = ...
saliency = ...

# %% tags=["solution"]
input_times_gradient = 4 * 1 + 1 * (-1)
integrated_gradients = (4 - 1) * 1 + (1 - 0) * (-1)
saliency = abs(1) + abs(-1)

# %% tags=["check"]
word, padding, slope = np.array([4, 1]), np.array([1, 0]), np.array([1, -1])
first, second = (word * slope).sum(), ((word - padding) * slope).sum()
hint = "Write the two products apart, and mind the sign of the second."
since = "Subtract the padding from both numbers, then multiply each by its slope."
check_number(
    input_times_gradient,
    first,
    {"the slope of the second number is negative.": (word * abs(slope)).sum()},
    hint,
    name="input_times_gradient",
)
check_number(
    integrated_gradients,
    second,
    {"that is Input x Gradient; what has changed since padding?": first},
    since,
    name="integrated_gradients",
)
check_number(
    saliency,
    abs(slope).sum(),
    {"Saliency takes sizes before it adds.": slope.sum()},
    "Saliency does not look at the word.",
    name="saliency",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# The Shapley value of a word is its mean contribution over all orders in which the words can arrive. Write it for a sentence of a few words. `n` is the number of words. `worth` is a function: it takes the positions that are present, as a Python set such as `{0, 2}`, and returns a number. `itertools.permutations` may help.


# %% tags=["hole"]
def shapley(worth, n):
    """One value for each of the n words."""
    return ...


# %% tags=["solution"]
def shapley(worth, n):
    """One value for each of the n words."""
    from itertools import permutations

    orders = list(permutations(range(n)))
    values = np.zeros(n)
    for order in orders:
        for k, word in enumerate(order):
            values[word] += worth({*order[: k + 1]}) - worth({*order[:k]})
    return values / len(orders)


# %% tags=["check"]
def expected(worth, n):
    """By the library: from the worth of every coalition."""
    masks = all_masks(n)
    present = [set(mask.nonzero().flatten().tolist()) for mask in masks]
    worths = torch.tensor([float(worth(words)) for words in present])
    return shapley_values(worths, masks).numpy()


def of_set(function):
    """The same worth, which refuses what is no set of positions."""

    def worth(present):
        if not isinstance(present, set):
            raise TypeError(f"worth wants a set of positions, not {present!r}")
        return float(function(present))

    worth.__name__ = function.__name__
    return worth


@of_set
def count(present):
    """The number of words."""
    return len(present)


@of_set
def both(present):
    """1 where the words 0 and 1 are both present."""
    return {0, 1} <= present


@of_set
def all_three(present):
    """1 where three words are present."""
    return len(present) == 3


@of_set
def some(present):
    """Each word adds, and two of them add less together."""
    return 2 * (0 in present) + 3 * (1 in present) - (2 in present) * (0 in present)


@of_set
def from_one(present):
    """1 without any word, and 1 more for each."""
    return 1 + len(present)


check_function(
    shapley,
    expected,
    {
        "Worth is the number of present words: each adds 1.": [count, 2],
        "Two words count only together: each is second in half of the orders.": [
            both,
            2,
        ],
        "A word that adds nothing in any order has 0.": [both, 3],
        "Take the mean over all orders, not over some.": [some, 3],
        "All three are needed: each is last in a third of the orders.": [all_three, 3],
        "What is the worth before the first word arrives?": [from_one, 2],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Change a parameter, and explain
#
# `added_up` above is from the run at scale `cpu`. It shows for some numbers of steps the *gap*, by which the scores of Integrated Gradients miss the rise of the probability. Which is the smallest number of steps in the table that misses by at most one percent of the rise? And what do more steps change?
#
# - `"a"` The model: it becomes more certain.
# - `"b"` The baseline: it moves nearer to the sentence.
# - `"c"` The sum that stands for an integral: its strips become narrower.

# %% tags=["hole"]
n_steps_needed = ...
more_steps_change = ...  # "a", "b" or "c"

# %% tags=["solution"]
n_steps_needed = 64
more_steps_change = "c"

# %% tags=["check"]
close = added_up[added_up["delta"].abs() <= 0.01 * added_up["rise"]]
check_number(
    n_steps_needed,
    close["n_steps"].min(),
    {
        "it misses by less, but so does a smaller number of the table.": close[
            "n_steps"
        ].max()
    },
    hint="Divide the gap by the rise in every row, and drop the sign.",
    tolerance=0,
    name="n_steps_needed",
)
no = "Neither model nor baseline depends on n_steps: the rise is the same in all rows."
check_choice(more_steps_change, "c", {"a": no, "b": no}, name="more_steps_change")
