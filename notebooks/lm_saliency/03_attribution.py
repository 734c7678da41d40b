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
# previous: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb)
#
# Three methods give every word of a prefix a score: the plain gradient (V), SmoothGrad (SG) and Integrated
# Gradients (IG). This stage computes them for all probes, for both classes, and shows where their released
# code and their description part.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - why one backward pass serves both classes, and what that means for the plain gradient;
# - how far Integrated Gradients is from adding up, in the standard form and in the released one;
# - why *is*, and why *is* rather than *are*, for any next word of any language model;
# - the same sentence through many pairs of eyes.
#
# **You can then** say why two classes share one gradient, write Integrated Gradients, and check that it adds up.
# **You need** [stage 2](02_training.ipynb), and what a gradient is. **Time:** 15 minutes to read, half a minute to
# run, 15 minutes for the exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `sets.parquet` of stage 1; models and probes of stage 2 | `lines.parquet`, `pairs.parquet`, `agreement.parquet`: for each set, model and method what stage 4 needs of each line |
# | | `shown.parquet`: scores of a few lines |
# | | `chosen`, `completeness`, `identity`, `next_word`, `side_by_side` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.attribution.next_word import explain_next_word, next_word_batch
from lib.core.files import save_parquet
from lib.core.notebooks import show_source
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.plots import STYLE
from lib.studies.lm_saliency.explanations import NAMED, Explanations, choose
from lib.studies.lm_saliency.items import check_saliency
from lib.studies.lm_saliency.lines import span_tokens
from lib.studies.lm_saliency.probe_saliency import (
    BASELINES,
    SaliencySettings,
    baseline_saliency,
    margin_gradient,
    probe_saliency,
)

# %% [markdown]
# ## Settings
#
# `methods` are explained for the full models, `student_methods` for the students. The names: *V*, *SG*, *IG*
# are the paper's, composed as gradient times input; *+VN* composes by the size of the gradient; *IG
# released* is the code's variant and *SG norm* the noise that the paper's text describes. *Contrastive*, *Erasure*
# and *LIME* are for comparison and come from the methods that all studies share.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for all draws of this stage
n_threads = 1  # CPU threads
device = "auto"  # auto, cpu or cuda
reuse_units = False  # take finished models from, and publish them to, outputs/reference; scores stay with the run
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
student_methods = ["V", "SG", "IG"]  # for the students and for the models of the sweep
# words of a set that are explained, about; spread over its templates (0: all)
n_words = 400
n_samples = 12  # SmoothGrad: N, noisy copies of a line
noise = 0.15  # SmoothGrad: sigma, noise in units of the embeddings' range
n_steps = 20  # Integrated Gradients: points on the path
n_lime = 30  # LIME: altered copies of a line
sweep_tasks = ["number", "gender"]  # what the models of the sweep are probed for
sweep_samples = 12  # SmoothGrad: N for a model of the sweep
sweep_steps = 20  # Integrated Gradients: points on the path for a model of the sweep

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $\psi(w)$ | the score of a word | an entry of `scores` |
# | $z_0, z_1$ | what the probe says of singular and plural (male and female) | `logits` |
# | $d = z_1 - z_0$ | the margin | `margin` |
# | $p = \sigma(d)$ | the probability of class 1 | `probability` |
# | $\mathbf{x}, \mathbf{x}'$ | word embeddings, and the zero embeddings where the path of IG begins | `points` |
# | $N, \sigma$ | samples and noise of SG | `n_samples`, `noise` |

# %%
stage = open_stage("lm_saliency", scale, "03_attribution")
set_up(seed, n_threads)
explanations = Explanations(stage, globals())
sets, trained = explanations.sets, explanations.models
architectures_here = list(trained["architecture"].unique())
print(
    len(trained), "probes;", {name: len(rows) for name, rows in sets.items()}, "lines"
)

# %% [markdown]
# ## 1 · One line by hand: two classes, one gradient
#
# The paper explains the *log-probability* of a class. With two classes everything depends on the margin $d$:
#
# $$\log p(1) = -\log(1 + e^{-d}), \qquad \nabla \log p(1) = (1-p)\,\nabla d, \qquad \nabla \log p(0) = -p\,\nabla d .$$
#
# So the plain gradients of the two classes differ by a negative factor and nothing else. For the line *the
# author that the taxi drivers like* we expect, for V, scores of class 0 that are $-p/(1-p)$ times those of
# class 1, exactly.

# %%
probe = explanations.probe("Transformer", "full", "number")
line = "the author that the taxi drivers like".split()
v = probe_saliency(probe, [line], SaliencySettings("V"))[0]
factor = v.probability / (1 - v.probability)
assert np.allclose(v.scores[0], -factor * v.scores[1], rtol=1e-3, atol=1e-6)
by_hand = pd.DataFrame({"word": line, "singular": v.scores[0], "plural": v.scores[1]})
print(len(line), "words, two classes, one gradient")

# %% [markdown]
# The assert has compared the two columns of this table.

# %% tags=["nbval-ignore-output"]
stage.table("identity", by_hand, 4)

# %% [markdown]
# This decides how the paper's tables can look: under V the *alternative* scenario repeats the *expected* one.
# Only methods that average over points of different confidence can say something else.
#
# ## 2 · Three methods
#
# With $\psi$ summed over the embedding (gradient times input):
#
# $$\psi_V = \mathbf{x}\cdot\nabla f(\mathbf{x}), \qquad \psi_{SG} = \mathbf{x}\cdot\frac1N\sum_{n}\nabla f(\mathbf{x}+\varepsilon_n), \qquad \psi_{IG} = (\mathbf{x}-\mathbf{x}')\cdot\frac1n\sum_{k=1}^{n}\nabla f(\tfrac{k}{n}\mathbf{x}) .$$
#
# SG takes the gradient at noisy points and multiplies it with the clean embedding. The code below is all of
# it: which points, which weights, one backward pass, two classes.

# %%
show_source(margin_gradient)
show_source(SaliencySettings)

# %% [markdown]
# The names of this study's tables, as settings. *V*, *V+VN* and the like need the same gradients, so those are
# computed once for all of them.

# %%
show_source(Explanations.settings_of)
settings_of = explanations.settings_of
assert (
    settings_of("V+VN").method == "V" and settings_of("IG released").path == "released"
)
NAMED

# %% [markdown]
# Three more, for comparison. *Contrastive* explains the margin itself: why this class rather than the other? For two
# classes that is V without the factor of section 1. *Erasure* takes one word out (its embedding becomes zero) and
# watches the log-probability; *LIME* takes out several at a time and fits a line. On the example, contrastive scores
# must be V's up to one factor.

# %%
contrast = baseline_saliency(probe, [line], "Contrastive")[0]
assert np.allclose(v.scores[1], contrast.scores[1] / (1 + factor), rtol=1e-3, atol=1e-6)
print(", ".join(f"{name} is {method}" for name, (method, _) in BASELINES.items()))

# %% [markdown]
# ## 3 · Does IG add up?
#
# ![The score on the way from an empty sentence to the real one rises by 1.00. The slopes at the middle of 3 equal steps, laid end to end, reach 1.34. The gap is +0.34; more steps make it smaller.](../../docs/schematics/integrated_gradients.svg)
#
# The scores of Integrated Gradients should sum to $f(\mathbf{x}) - f(\mathbf{x}')$. The released code
# differentiates with respect to a gate that shares its place with the path factor $\alpha$, so every term
# carries an extra $\alpha$, and the sum is another number. The gap is the mean over 25 lines of |sum of
# scores - difference|.


# %%
def gap(path, steps):
    """Mean absolute gap of completeness over every 260th line of Syneval, for class 1."""
    found = probe_saliency(probe, few, SaliencySettings("IG", n_steps=steps, path=path))
    return np.mean(
        [
            abs(one.scores[1].sum() - true.scores[1].sum())
            for one, true in zip(found, fine)
        ]
    )


few = sets["Syneval"]["prefix"].tolist()[::260]
fine = probe_saliency(probe, few, SaliencySettings("IG", n_steps=500))
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
    f"the gaps are {gaps['gap'].round(4).tolist()}; train the model longer in 02 (lm_share)"
)

# %% [markdown]
# The difference itself is taken from a path of 500 points; the tests compare it with the model's own
# values.

# %% tags=["nbval-ignore-output"]
stage.table("completeness", gaps, 4)

# %% [markdown]
# *Reading it.* More points close the gap of the standard form. The gap of the released form stays: it is
# another quantity, not a coarser estimate of the same one.
#
# ## 4 · Any next word, not only a class
#
# `explain_next_word` does the same for a chosen next word of a language model, ours or one of Hugging Face: *after
# "the author that the guards like", why "is"?* With a *foil* the question is contrastive (Yin and Neubig 2022): why
# *is* rather than *are*? What speaks for both words alike cancels.

# %%
show_source(explain_next_word)
words = "the author that the guards like".split()
answers = {
    name: explain_next_word(
        probe.lm,
        probe.vocabulary,
        words,
        "is",
        foil,
        settings={"n_steps": 10 * n_steps},
    )
    for name, foil in (("is", None), ("is, not are", "are"))
}
table = pd.DataFrame(
    {"word": words} | {name: found["score"] for name, found in answers.items()}
)
batch = next_word_batch(probe.lm, probe.vocabulary, words, "is")
change = float(
    batch.score(batch.embeddings, batch.mask) - batch.score(batch.baselines, batch.mask)
)
assert abs(table["is"].sum() - change) < 0.05 * max(1, abs(change))

# %% [markdown]
# The assert: scores of Integrated Gradients add up to what the prefix changes in the log-probability of *is*. A
# positive score speaks for *is*, in the last column for *is* and against *are*.

# %% tags=["nbval-ignore-output"]
stage.table("next_word", table, 3)

# %% [markdown]
# ## 5 · The lines that are explained
#
# The same share of every template, but at least two lines of each (input consistency compares lines of one
# template); where that is too much, fewer templates. Drawn once and the same for all models.

# %%
show_source(choose)

# %% [markdown]
# A cue that the vocabulary does not know carries no number and no gender.


# %%
def unknown(rows):
    """The share of cue and attractor words that the vocabulary does not know: they carry no number and no gender."""
    words = [
        row["prefix"][i]
        for row in rows.to_dict("records")
        for i in span_tokens([*row["cues"], *row["attractors"]])
    ]
    return np.mean([word.lower() not in probe.vocabulary.ids for word in words])


# %% [markdown]
# The last column warns where a test asks little:

# %%
lines = explanations.lines
table = pd.DataFrame(
    [
        (
            name,
            len(rows),
            rows["pattern"].nunique(),
            rows["cluster"].nunique(),
            unknown(rows),
        )
        for name, rows in lines.items()
    ],
    columns=["set", "lines", "templates", "clusters", "unknown"],
)
stage.table("chosen", table, 3)

# %% [markdown]
# ## 6 · The full run
#
# Every probe, every method, both classes. The first scores are those of class 0 (singular, male), the second
# those of class 1. Each set and model is a unit, kept when it is finished; units can also be made apart
# (`touchstone unit`), and this notebook reads what is there. The paper's sweep leaves out Winobias, and so does ours.

# %%
show_source(Explanations.explained)

# %% [markdown]
# The scores of all words fill many megabytes. Stage 4 needs numbers of lines and of pairs of lines only, so these are
# made here, unit by unit: does a line pass its test (and would it with the other answer), how alike are two lines of one
# template, a line in a model and in its student. Of a few lines, chosen by their words alone, the scores are handed on.
# *IG shuffled* is a control: IG's scores in another order.

# %%
show_source(Explanations.numbers)
found = explanations.collected()
for name, table in found.items():
    save_parquet(table, stage.path(f"{name}.parquet"))
print(
    len(explanations.units),
    "units,",
    len(found["lines"]),
    "explanations of",
    sum(map(len, lines.values())),
    "lines,",
    len(found["pairs"]),
    "pairs",
)

# %% [markdown]
# Every score is a number, and the clean probability of a line is the same under every method: no method
# decides its own scenario. A unit for which this does not hold is refused.

# %%
show_source(check_saliency)

# %% [markdown]
# ## 7 · Control: are scores about the words at all?
#
# If scores were noise, a line explained twice with fresh draws would disagree with itself. SmoothGrad draws;
# two seeds must agree better than two different lines of the same length do. How well they agree with the number of
# samples that the tables use is an error that no interval of stage 4 contains: `changed` is the share of lines where
# the other draw puts the other noun on top.

# %%
some = [row for row in sets["Syneval"].iloc[::40].itertuples() if len(row.prefix) == 6][
    :40
]


def two_draws(architecture):
    """How two draws of SmoothGrad agree: on the same line, on other lines, and in how many lines the other noun wins."""
    scores = [
        [
            one.scores[1]
            for one in probe_saliency(
                explanations.probe(architecture, "full", "number"),
                [row.prefix for row in some],
                SaliencySettings("SG", n_samples=n_samples, noise=noise, seed=s),
            )
        ]
        for s in (1, 2)
    ]
    wins = [
        [
            one[row.cues[0][0]] > one[row.attractors[0][0]]
            for one, row in zip(part, some)
        ]
        for part in scores
    ]
    same = [np.corrcoef(a, b)[0, 1] for a, b in zip(*scores)]
    other = [
        np.corrcoef(a, b)[0, 1]
        for a, b in zip(scores[0], scores[1][1:] + scores[1][:1])
    ]
    return {
        "architecture": architecture,
        "samples": n_samples,
        "same_line": np.mean(same),
        "other_line": np.mean(other),
        "changed": np.mean(np.array(wins[0]) != wins[1]),
    }


# %% [markdown]
# One row for each full model:

# %% tags=["nbval-ignore-output"]
draws = pd.DataFrame([two_draws(architecture) for architecture in architectures_here])
assert draws["same_line"].mean() > draws["other_line"].mean(), (
    f"two draws agree no more than two lines do: {draws.to_dict('records')}; raise n_samples"
)
stage.table("draws", draws).round(3)

# %% [markdown]
# ## 8 · The figure: one line through many pairs of eyes
#
# Red speaks for *singular*, blue against it; each row is scaled to its largest score. The cue is *author*,
# the attractor *drivers*.

# %% tags=["nbval-ignore-output"]
shown = []
for architecture in architectures_here:
    model = explanations.probe(architecture, "full", "number")
    for method in ("V", "SG", "IG", "Erasure"):
        one = (
            baseline_saliency(model, [line], method)
            if method in BASELINES
            else probe_saliency(model, [line], settings_of(method))
        )[0]
        scores = one.scores[0]
        shown.append([f"{architecture} {method}", *(scores / np.abs(scores).max())])
side_by_side = pd.DataFrame(
    shown, columns=["explanation", *[f"{i} {word}" for i, word in enumerate(line)]]
)
stage.table("side_by_side", side_by_side, 2)

# %% [markdown]
# The figure shows this table.

# %%
values = side_by_side.iloc[:, 1:].to_numpy(float)
with plt.rc_context(STYLE | {"axes.grid": False}):
    figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        ax.text(
            column,
            row,
            f"{value:.1f}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if abs(value) > 0.6 else "black",
        )
    ax.set(
        xticks=range(len(line)),
        yticks=range(len(values)),
        yticklabels=side_by_side["explanation"],
    )
    ax.set_xticklabels(
        [f"[{w}]" if w == "author" else f"({w})" if w == "drivers" else w for w in line]
    )
    figure.colorbar(image, label="score / largest of the row")
stage.figure("side_by_side", figure)

# %% [markdown]
# [word] is the cue and (word) the attractor. A plausible explanation of *singular* is red at the first and
# blue at the second.
#
# ## What could be wrong
#
# - **The begin word.** Our sequences begin with the end-of-sentence word, which every prefix shares. It keeps
#   its embedding on the path of IG, so the scores of the words add up to what the words contribute.
# - **The zero embedding** is no neutral word. A model may read something into it, and IG explains the way from
#   there to the sentence.
# - **Few samples.** N and n are smaller here than in the paper (30 and 100); section 7 says what that costs.
# - **Where the noise goes.** With adaptive inputs the released code draws SmoothGrad's noise for each frequency band
#   before the projection; here it is added to the projected embeddings.
# - **Unknown words** among cues and attractors (`unknown`, section 5) are noise in the tests of stage 4.
# - **Models that have not learnt the task** are explained as well. Stage 4 leaves them out of rankings.
#
# ## Try it
#
# - Set `n_samples = 60`: how many verdicts does another draw change then (section 7)?
# - Explain another next word in section 4, or another method: `explain_next_word(..., method="Erasure")` says what is
#   wrong, and *Occlusion* is what it is called there.
# - Replace the line of section 1 by one of yours, made of words that the model knows.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The tables of lines and pairs hold what is needed of all scores. [04_metrics](04_metrics.ipynb) asks whether they are plausible, whether
# they stay the same where the model's reason stays the same, and how much of a difference is noise.

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

gaps = read_committed("lm_saliency", "cpu", "03_attribution", "completeness")
gaps.round(3)

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
# ### 3 · Change a parameter, and explain
#
# `gaps` says how far the scores of Integrated Gradients are from adding up, for two ways to compute them and three numbers of steps. Which way closes the gap with more steps, and what does it mean that the other one does not?
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
