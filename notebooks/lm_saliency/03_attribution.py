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
# # lm_saliency, stage 3 of 5: which words does the prediction rest on?
#
# previous: [02_training](02_training.ipynb) · the study: [README](README.md) · next: [04_metrics](04_metrics.ipynb)
#
# Three methods give every word of a prefix (the words before the predicted one) a score: the plain gradient (V),
# SmoothGrad (SG) and Integrated Gradients (IG). A score says how much the word contributes to an answer of the probe,
# such as *singular*. This stage computes them for every model, and shows where the authors' code differs from the
# paper's text.
#
# ## What we found
#
# - **Integrated Gradients adds up; the variant in the authors' code does not.** Scores should sum to the rise of the
#   log-probability from an empty line to the real one. With 100 steps the standard form misses that sum by
#   .001<!-- lm_saliency/cpu/03_attribution/completeness[path=standard, steps=100].gap -->, the variant by
#   .196<!-- lm_saliency/cpu/03_attribution/completeness[path=released, steps=100].gap -->. More steps do not close the
#   second gap. [See the table](../../outputs/reference/lm_saliency/cpu/03_attribution/completeness.csv).
# - **SmoothGrad draws random numbers, and in some lines they matter.** A second draw changes the order of the cue
#   and the attractor in at most 12.5 %<!-- max lm_saliency/cpu/03_attribution/draws.changed --> of forty lines.
#   With 12 samples, other models (`small`): up to 17.5 %<!-- max lm_saliency/small/03_attribution/draws.changed -->.
#   [See the table](../../outputs/reference/lm_saliency/cpu/03_attribution/draws.csv).
# - **The plain gradient explains both answers of a probe at once.** Its scores for *singular* are those for *plural*
#   times a negative factor. This is an identity and holds for every model (section 1).
#   [See one line](../../outputs/reference/lm_saliency/cpu/03_attribution/identity.csv).
#
# Except where it says `small`, numbers are from scale `cpu`; the plain models here read a fiftieth of its text. The page below
# shows scale `small`.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - why one backward pass serves both classes, and what that means for the plain gradient;
# - the methods as captum defines them, then ours;
# - whether the scores of Integrated Gradients add up;
# - the question "why *is*, rather than *are*?" for any next word of any language model.
#
# **You can then** say why two classes share one gradient, write Integrated Gradients, and check that it adds up.
# **You need** [stage 2](02_training.ipynb), and what a gradient is. **Time:** 15 minutes to read, half a minute to
# run, [15 minutes for the exercises](../../docs/course/exercises/lm_saliency.md#03-attribution).
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `sets`, `whole` of stage 1; models and probes of stage 2 | `lines`, `whole`, `balanced`, `pairs`, `agreement` (`.parquet`): what stage 4 needs of each line |
# | | `shown.parquet`: scores of a few lines |
# | | `chosen`, `completeness`, `draws`, `identity`, `next_word`, `side_by_side` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import captum.attr
import numpy as np
import pandas as pd
import torch

from lib.attribution.next_word import explain_next_word, next_word_batch
from lib.core.files import save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.plots import plot_words
from lib.studies.lm_saliency import examples, items, lines, naming
from lib.studies.lm_saliency import explanations as explained
from lib.studies.lm_saliency import probe_saliency as saliency

# %% [markdown]
# ## Settings
#
# What is explained is a [probe](../../docs/glossary.md): the two-class layer on each language model. A *student* is a
# smaller model that imitates it. The methods have short names:
#
# | name | method |
# |---|---|
# | V, SG, IG | plain gradient, SmoothGrad, Integrated Gradients, each times the input, as in the paper |
# | V+VN, SG+VN | the mean absolute gradient (the paper: *vector norm*), without the input |
# | IG released | IG as the authors' code computes it |
# | SG norm | SG with the noise of the paper's text; SG itself has that of the authors' code |
# | Contrastive, Erasure, LIME | for comparison, from the methods that all studies share |

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for all draws of this stage
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
reuse_units = False  # read finished numbers from outputs/reference, publish new ones
methods = [
    "V",
    "SG",
    "IG",
    "V+VN",
    "SG+VN",
    "IG released",
    "SG norm",
    "Contrastive",
    "Erasure",
    "LIME",
]  # for the full models
consistency_methods = [
    "V",
    "SG",
    "IG",
    "V+VN",
    "SG+VN",
    "IG released",
    "SG norm",
    "Contrastive",
    "Erasure",
    "LIME",
]  # methods whose explanations of two lines of a template are compared
# for the students and for the models of the sweep
student_methods = ["V", "SG", "IG"]
# about how many words the drawn lines of a set have, over its templates (0: all lines)
n_words = 400
n_samples = 12  # SmoothGrad: N, noisy copies of a line
noise = 0.15  # SmoothGrad: sigma, noise in units of the embeddings' range
n_steps = 20  # Integrated Gradients: points on the path
n_lime = 30  # LIME: altered copies of a line
# what the models of the sweep are probed for
sweep_tasks = ["number", "gender"]
sweep_samples = 12  # SmoothGrad: N for a model of the sweep
# Integrated Gradients: points on the path for a model of the sweep
sweep_steps = 20
# trainings also asked for whole lines where stage 1 cut; one of hf_models always is
whole_trainings = [0]

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $\psi(w)$ | the score of a word | an entry of `scores` |
# | $z_0, z_1$ | the probe's output for singular and plural (male and female) | `logits` |
# | $d = z_1 - z_0$ | the margin | `margin` |
# | $p = \sigma(d)$ | the probability of class 1 | `probability` |
# | $\mathbf{x}, \mathbf{x}'$ | word embeddings, and the zero embeddings where the path of IG begins | `points` |
# | $N, \sigma$ | samples and noise of SG | `n_samples`, `noise` |

# %%
stage = open_stage("lm_saliency", scale, "03_attribution")
set_up(seed, n_threads)
explanations = explained.Explanations(stage, globals())
sets, trained = explanations.sets, explanations.models
architectures_here = examples.architectures_to_show(explanations)
print(len(trained), "probes")
print(", ".join(f"{name} {len(rows)}" for name, rows in sets.items()), "lines")

# %% [markdown] tags=["slide"]
# ## 1 · One line by hand: two classes, one gradient
#
# The authors' code explains a class's *log-probability*. With two classes everything depends on the margin $d$:
#
# $$\log p(1) = -\log(1 + e^{-d}), \qquad \nabla \log p(1) = (1-p)\,\nabla d, \qquad \nabla \log p(0) = -p\,\nabla d .$$
#
# So the gradients of the two classes differ by a negative factor alone.
#
# **Stop and guess.** For *plural*, the plain gradient gives *drivers* a positive score. Can it give *drivers* a positive
# score for *singular* too?

# %%
probe = examples.probe_to_show(explanations, "Transformer")
line = "the author that the taxi drivers like".split()
v = saliency.probe_saliency(probe, [line], saliency.SaliencySettings("V"))[0]
factor = v.probability / (1 - v.probability)
assert np.allclose(v.scores[0], -factor * v.scores[1], rtol=1e-3, atol=1e-6)
by_hand = pd.DataFrame({"word": line, "singular": v.scores[0], "plural": v.scores[1]})
print(len(line), "words, two classes, one gradient")

# %% [markdown]
# The two columns:

# %% tags=["nbval-ignore-output", "slide"]
human = naming.columns("word", singular="for singular", plural="for plural")
show_table(stage.table("identity", by_hand, 4), human)

# %% [markdown] tags=["slide"]
# No: the scores for class 0 (singular) are those for class 1 times $-p/(1-p)$, a negative number. So V gives, up to
# this factor, the same scores whichever answer is explained. The next two methods average the gradient over several
# points. There $p$ differs from point to point, and so does the factor: no single factor links the two answers.
#
# ## 2 · Three methods
#
# The score of a word is *gradient times input*, summed over the coordinates of its embedding $\mathbf{x}$. Here $f$ is
# $\log p$:
#
# $$\begin{aligned}
# \psi_V &= \mathbf{x}\cdot\nabla f(\mathbf{x}), \\
# \psi_{SG} &= \mathbf{x}\cdot\frac1N\sum_{n}\nabla f(\mathbf{x}+\varepsilon_n), \\
# \psi_{IG} &= (\mathbf{x}-\mathbf{x}')\cdot\frac1n\sum_{k=1}^{n}\nabla f(\mathbf{x}' + \tfrac{k}{n}(\mathbf{x}-\mathbf{x}')) .
# \end{aligned}$$
#
# SG averages the gradient at noisy copies of the line. IG averages it along a straight path from an empty line
# $\mathbf{x}'$, whose embeddings are zero. The library captum defines V and IG; our code must give the same numbers. SG is the
# input times captum's `NoiseTunnel` of a signed `Saliency`, for the same noise; this cell does not compare it.


# %%
def log_p(embeddings):
    """The log-probabilities of both classes, from embeddings."""
    mask = torch.ones(embeddings.shape[:2], dtype=torch.long, device=x.device)
    return probe.logits(embeddings, mask).log_softmax(-1)


ids = torch.tensor([probe.encode([line])[0].ids], device=explanations.device)
x = probe.embed(ids).detach().requires_grad_()
empty = probe.embed(probe.reference_ids(ids)).detach()
by_captum = {
    "V": captum.attr.InputXGradient(log_p).attribute(x, target=1),
    "IG": captum.attr.IntegratedGradients(log_p).attribute(
        x, empty, target=1, n_steps=n_steps, method="riemann_right"
    ),
}
for name, theirs in by_captum.items():
    chosen = explanations.settings_of(name)
    ours = saliency.probe_saliency(probe, [line], chosen)[0].scores[1]
    words_only = theirs.sum(-1)[0, 1:].detach().cpu()  # the first is the begin word
    assert np.allclose(words_only, ours, rtol=1e-3, atol=1e-5)
print("captum and ours agree for", *by_captum)

# %% [markdown]
# Our code gets both classes from one backward pass at each noisy copy (SG) or point of the path (IG). The last output
# lists what differs from the default settings.

# %%
show_source(saliency.margin_gradient)
show_source(saliency.SaliencySettings)
released = explanations.settings_of("IG released")
assert (explanations.settings_of("V+VN").method, released.path) == ("V", "released")
for name, changed in explained.NAMED.items():
    print(f"{name}:", *[f"{k} = {v}" for k, v in changed.items()] or ["defaults"])

# %% [markdown]
# Three more methods, for comparison. *Contrastive* explains the margin: why this class rather than the other? With two
# classes its scores are those of V times a positive factor, as the assert checks. *Erasure* sets one word's embedding to
# zero and measures the change of the log-probability. *LIME* removes several words at a time and fits a linear model; our
# tests compare it with the package lime.

# %%
contrast = saliency.baseline_saliency(probe, [line], "Contrastive")[0]
assert np.allclose(v.scores[1], contrast.scores[1] / (1 + factor), rtol=1e-3, atol=1e-6)
print("Contrastive is V times a positive factor")

# %% [markdown] tags=["slide"]
# ## 3 · One line, many explanations
#
# Does *author* get a positive score for *singular*, and *drivers* a negative one? We explain the line of section 1 in
# each full model by four methods. Each explanation is divided by its largest absolute score.

# %% tags=["nbval-ignore-output"]
shown = []
for architecture in architectures_here:
    model = examples.probe_to_show(explanations, architecture)
    for method in ("V", "SG", "IG", "Erasure"):
        one = (
            saliency.baseline_saliency(model, [line], method)
            if method in saliency.BASELINES
            else saliency.probe_saliency(
                model, [line], explanations.settings_of(method)
            )
        )[0]
        scores = one.scores[0]
        shown.append([f"{architecture} {method}", *(scores / np.abs(scores).max())])
columns = ["explanation", *[f"{i} {word}" for i, word in enumerate(line)]]
side_by_side = pd.DataFrame(shown, columns=columns)
assert len(stage.table("side_by_side", side_by_side, 2)) == len(shown)

# %% [markdown]
# LSTM and QRNN are [recurrent networks](../../docs/glossary.md).

# %% tags=["slide"]
roles = {"author": "cue", "drivers": "attractor"}
names = side_by_side["explanation"].str.rpartition(" ")
labels = names[2].map(lambda name: naming.METHODS.get(name, name))
rows = pd.DataFrame(
    {
        "heading": names[0],
        "label": labels.str.partition(" (")[0],
        "words": [line] * len(side_by_side),
        "scores": side_by_side.iloc[:, 1:].to_numpy(float).tolist(),
        "marks": [[roles.get(word, "") for word in line]] * len(side_by_side),
    }
)
n_ahead = int((side_by_side["1 author"] > side_by_side["5 drivers"]).sum())
figure, _ = plot_words(
    rows,
    marks={"cue": "cue: asks for is", "attractor": "attractor: asks for are"},
    toward="speaks for singular",
    title=f"The cue is ahead of the attractor in {n_ahead} of {len(rows)} explanations",
    digits=1,
)
stage.figure("side_by_side", figure)

# %% [markdown] tags=["slide"]
# *Reading it.* In the LSTM *author* is never clearly positive; in the Transformer it is for three of four methods. Often
# the darkest word is neither of the two nouns. One line proves nothing.
#
# ## 4 · Does Integrated Gradients add up?
#
# ![The score on the way from an empty sentence to the real one rises by 1.00. The slopes at the middle of 3 equal steps, laid end to end, reach 1.34. The gap is +0.34; more steps make it smaller.](../../docs/schematics/integrated_gradients.svg)
#
# The picture takes slopes at the middle of each step; our formula and code take the right end. With more steps both
# come to the same sum.
#
# The scores should sum to $f(\mathbf{x}) - f(\mathbf{x}')$, the rise of the log-probability from the empty line to the
# real one. The authors' code also multiplies every gradient by its place $\tfrac{k}{n}$ on the path. So gradients
# near the empty line count less, and the sum changes.
#
# **Stop and guess.** The *gap* is how far the sum of the scores is from this rise. Does it close with more steps, in
# the standard form and in that of the authors' code (`released`)?


# %%
def gap(path, steps):
    """Mean |sum of scores - rise| over every 260th line of Syneval, for class 1."""
    chosen = saliency.SaliencySettings("IG", n_steps=steps, path=path)
    found = saliency.probe_saliency(probe, few, chosen)
    sums = np.array([one.scores[1].sum() for one in found])
    return np.abs(sums - rises).mean()


few = sets["Syneval"]["prefix"].tolist()[::260]
finest = saliency.SaliencySettings("IG", n_steps=500)
rises = np.array(
    [one.scores[1].sum() for one in saliency.probe_saliency(probe, few, finest)]
)
gaps = pd.DataFrame(
    [
        (path, steps, gap(path, steps))
        for path in ("standard", "released")
        for steps in (5, 20, 100)
    ],
    columns=["path", "steps", "gap"],
)
standard = gaps[gaps["path"] == "standard"]["gap"].to_numpy()
assert standard[-1] < standard[0] and standard[-1] < gaps["gap"].iloc[-1], (
    f"the gaps are {gaps['gap'].round(4).tolist()}; "
    "train the model longer in 02 (lm_share)"
)

# %% [markdown]
# Here the rise is IG's own sum with 500 steps, not an independent number. Our tests compare that sum with the
# difference of the model's log-probabilities.

# %% tags=["nbval-ignore-output", "slide"]
of_gaps = stage.table("completeness", gaps, 4)
of_gaps = of_gaps.pivot(index="path", columns="steps", values="gap").reset_index()
of_gaps["path"] = of_gaps["path"].replace({"released": "released (authors' code)"})
show_table(of_gaps, {"path": "form"} | {n: f"gap, {n} steps" for n in (5, 20, 100)})

# %% [markdown] tags=["slide"]
# *Reading it.* More steps close the gap of the standard form. That of the released form stays, because its sum
# approximates a different integral.
#
# ## 5 · Why *is*, rather than *are*?
#
# So far we explained a probe. `explain_next_word` explains the probability of any next word in any language model, ours
# or one of Hugging Face. With a *foil*, a second word, the question is contrastive (Yin and Neubig 2022): why *is* rather
# than *are*? Equal contributions to both words cancel.

# %%
show_source(explain_next_word)
words = "the author that the guards like".split()
table = pd.DataFrame({"word": words})
for name, foil in (("is", None), ("is, not are", "are")):
    more = {"n_steps": 10 * n_steps}
    asked = probe.lm, probe.vocabulary, words, "is", foil
    table[name] = explain_next_word(*asked, settings=more)["score"]
batch = next_word_batch(probe.lm, probe.vocabulary, words, "is")
before, after = (
    float(batch.score(embeddings, batch.mask))
    for embeddings in (batch.baselines, batch.embeddings)
)
assert abs(table["is"].sum() - (after - before)) < 0.05 * max(1, abs(after - before))

# %% [markdown]
# The first column adds up to the rise of the log-probability of *is* from the empty prefix to this one. In the second, a
# positive score is evidence for *is* and against *are*.

# %% tags=["nbval-ignore-output", "slide"]
human = {"is": 'why "is"?', "is, not are": 'why "is", not "are"?'}
show_table(stage.table("next_word", table, 3), {"word": "word"} | human)

# %% [markdown]
# *Reading the table.* In the first column the word *that* has a larger score than all words together. But *that* makes
# *is* and *are* more likely to almost the same degree. So in the second column its score is about that of *author*.
#
# ## 6 · All models, all methods, many lines
#
# From each set we draw lines with about `n_words` words in total, once for all models. Every [template](../../docs/glossary.md)
# contributes the same share of its lines, and at least two, because stage 4 compares lines of one template. Where that
# would exceed `n_words`, some templates are left out. *Clusters* are lines that belong together, such as those of one
# document. The bootstrap draws clusters and not lines.


# %%
def unknown(rows):
    """The share of cues and attractors that the vocabulary does not know."""
    nouns = [
        row["prefix"][i]
        for row in rows.to_dict("records")
        for i in lines.span_tokens([*row["cues"], *row["attractors"]])
    ]
    return np.mean([word.lower() not in probe.vocabulary.ids for word in nouns])


show_source(explained.choose)
of_sets = explanations.lines
table = pd.DataFrame(
    [
        {
            "set": name,
            "lines": len(rows),
            "templates": rows["pattern"].nunique(),
            "clusters": rows["cluster"].nunique(),
            "unknown": unknown(rows),
        }
        for name, rows in of_sets.items()
    ]
)
human = naming.columns("set", "lines", templates="templates or constructions")
human |= {"clusters": "clusters", "unknown": "unknown nouns (share)"}
show_table(stage.table("chosen", table, 3), human)

# %% [markdown]
# A noun outside the vocabulary carries no number and no gender. The larger the last column, the less a set can test.
#
# We explain all drawn lines, for both classes; smaller models by three methods only. Stage 4 needs only a few numbers of each
# explanation:
#
# - whether it passes its line, and whether it would if the model had given the other answer;
# - the correlation of the scores of two lines of a template;
# - the correlation of the scores of a line in a model and in its student.
#
# In the output, *sets in models* are the pairs of a set and a model with a probe for its task.
#
# Scores are kept for a few lines only. *IG shuffled* is a control: IG's scores in a random order.

# %%
show_source(explained.Explanations.explained)
show_source(items.check_saliency)
found = explanations.collected()
for name, table in found.items():
    save_parquet(table, stage.path(f"{name}.parquet"))
n_lines = sum(map(len, of_sets.values()))
asked = [unit for unit in explanations.units if not explanations.is_check(unit)]
print(len(asked), "sets in models,", n_lines, "lines,", end=" ")
print(len(found["lines"]), "explanations,", len(found["pairs"]), "pairs")

# %% [markdown] tags=["slide"]
# ## 7 · Would another draw say the same?
#
# SmoothGrad adds random noise. We explain the same lines twice, with different noise, and correlate the scores. For
# comparison, we correlate the scores of two equally long lines. A line is *changed* if the second
# draw reverses the order of cue and attractor in the scores for *plural*.

# %%
syneval = sets["Syneval"].iloc[::40]
some = [row for row in syneval.itertuples() if len(row.prefix) == 6][:40]


def two_draws(architecture):
    """How two draws of SmoothGrad agree, on the same line and on other lines."""
    model = examples.probe_to_show(explanations, architecture)
    prefixes = [row.prefix for row in some]
    first, second = (
        [
            one.scores[1]
            for one in saliency.probe_saliency(
                model,
                prefixes,
                saliency.SaliencySettings(
                    "SG", n_samples=n_samples, noise=noise, seed=draw
                ),
            )
        ]
        for draw in (1, 2)
    )
    wins = np.array(
        [
            [one[row.cues[0][0]] > one[row.attractors[0][0]] for one in pair]
            for pair, row in zip(zip(first, second), some)
        ]
    )
    other = second[1:] + second[:1]
    return {
        "architecture": architecture,
        "samples": n_samples,
        "same_line": np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(first, second)]),
        "other_line": np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(first, other)]),
        "changed": np.mean(wins[:, 0] != wins[:, 1]),
    }


# %% [markdown]
# A row for each full model:

# %% tags=["nbval-ignore-output", "slide"]
draws = pd.DataFrame([two_draws(architecture) for architecture in architectures_here])
assert draws["same_line"].mean() > draws["other_line"].mean(), (
    f"two draws agree no more than two lines do: {draws.to_dict('records')}; "
    "raise n_samples"
)
human = naming.columns("architecture", "samples", same_line="correlation, same line")
human |= {"other_line": "correlation, other line", "changed": "changed lines (share)"}
show_table(stage.table("draws", draws), human)

# %% [markdown] tags=["slide"]
# *Reading it.* Two draws for one line correlate more strongly than two lines do. But different lines of one length
# correlate strongly too: in most pairs five of the six words are the same.
#
# ## What could be wrong
#
# - **The begin word.** Our sequences begin with the end-of-sentence word, which every prefix shares. The path of IG
#   never sets its embedding to zero. So it gets no score, and the words of the line share the whole rise.
# - **The zero embedding** is not a neutral word.
# - **Few samples.** The paper takes 30 noisy copies and 100 steps; `cpu` takes 30 and 50, `small` fewer (sections 4 and 7).
# - **Where the noise goes.** Models with shorter vectors for rare words (`cutoffs`) project them to one size. The authors' code
#   adds noise before that projection, ours after it.
# - **Models that have not learnt a set** are explained, too. Stage 4 leaves them out of its rankings.
#
# ## Try it
#
# - Set `n_samples = 60`: how many lines does another draw change then (section 7)?
# - Explain another next word in section 5, or, without `settings`, by `method="Occlusion"`.
# - Replace the line of section 1, and section 3's two nouns, by words that the model knows.
#
# Exercises with checks: [page](../../docs/course/exercises/lm_saliency.md#03-attribution).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) measures whether the explanations are plausible, and whether they stay the same where the
# model's reason does.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words

gaps = read_committed("lm_saliency", "cpu", "03_attribution", "completeness")
in_words(gaps, {"path": "way", "steps": "steps", "gap": "gap"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# With two classes, $\nabla \log p(1) = (1 - p)\,\nabla d$ and $\nabla \log p(0) = -p\,\nabla d$, where $p$ is the probability of class 1. For a line with $p = .8$ the plain gradient gives *author* the score .05 for class 1. What does it give it for class 0?

# %% tags=["hole"]
for_class_0 = ...

# %% tags=["solution"]
for_class_0 = 0.05 * (-0.8) / (1 - 0.8)

# %% tags=["check"]
p = 0.8
check_number(
    for_class_0,
    -0.05 * p / (1 - p),
    {
        "the sign turns.": 0.05 * p / (1 - p),
        "that is the other way round.": -0.05 * (1 - p) / p,
        "only with p = .5 it is the same number with another sign.": -0.05,
    },
    "Divide the second equation by the first.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Integrated Gradients with $n$ points: the mean of the gradients at $\tfrac{k}{n}\,x$ for $k = 1, \dots, n$, times $x$. Write it for a function of several numbers whose gradient is given; the path begins at zero.


# %% tags=["hole"]
def integrated_gradients(gradient, x, n):
    """One score for each number in x."""
    return ...


# %% tags=["solution"]
def integrated_gradients(gradient, x, n):
    """One score for each number in x."""
    x = np.asarray(x, float)
    return x * np.mean([gradient(k / n * x) for k in range(1, n + 1)], axis=0)


# %% tags=["check"]
def expected(gradient, x, n):
    """The mean over the points, times x."""
    points = np.linspace(1 / n, 1, n)[:, None] * np.asarray(x, float)
    return np.stack([gradient(point) for point in points]).mean(0) * np.asarray(x)


def line(x):
    """The gradient of 2 x1 + 3 x2."""
    return np.array([2.0, 3.0])


def product(x):
    """The gradient of x1 x2."""
    return np.array([x[1], x[0]])


check_function(
    integrated_gradients,
    expected,
    {
        "A constant gradient is its own mean.": [line, [1.0, 1.0], 3],
        "Multiply by x at the end.": [line, [2.0, 0.5], 3],
        "The points stand at 1/n, 2/n, ..., 1.": [product, [1.0, 2.0], 2],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Read a table, and explain
#
# `gaps` says how far the scores of Integrated Gradients are from adding up, for two ways to compute them (*released* is that of the authors' code) and three numbers of steps. Which way closes the gap with more steps, and what does it mean that the other one does not?
#
# - `"a"` The other one needs more steps still.
# - `"b"` The other one is the value of another integral: more steps bring it nearer to that.
# - `"c"` The other one has larger rounding errors.

# %% tags=["hole"]
closes = ...  # "standard" or "released"
meaning = ...  # "a", "b" or "c"

# %% tags=["solution"]
closes, meaning = "standard", "b"

# %% tags=["check"]
last = gaps.groupby("path")["gap"].last()
check_choice(
    closes,
    last.idxmin(),
    {last.idxmax(): "Read its gaps from top to bottom."},
    name="closes",
)
check_choice(
    meaning,
    "b",
    {
        "a": "From 20 to 100 steps, in which direction does its gap move?",
        "c": "Rounding errors are far smaller than these gaps.",
    },
    name="meaning",
)
