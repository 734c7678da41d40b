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
# # implicit_bias, stage 5 of 5: the figures, each with its verdict
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **The model takes *he* for granted.** Where a caption leaves a person's gender to one masked pronoun, its mean score is
#   .74<!-- implicit_bias/cpu/04_metrics/intervals[model=base].bias --> towards the male form, and .5 would be even.
# - **Fine-tuning on swapped sentences brings scores closer to even than a placebo does.** On nouns that were held out they come
#   .12<!-- abs implicit_bias/cpu/04_metrics/claims[id=augmentation_reduces_bias].ours --> closer than with the same sentences unswapped.
#   Whether the swap does it, or the even share of *he* and *she*, is open.
# - **Whether that carries over is open.** On Winogender the same comparison is
#   undecided<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_transfers].verdict -->: three base models are too few.
#
# This is the run at scale `cpu`: published captions, and a small masked language model that was trained here. Its figures and verdicts are on
# [the results page](../../outputs/reference/implicit_bias/cpu/05_figures.ipynb).
#
# Nothing is computed here. Each figure comes with the claim that it is about, the table that is plotted, and the verdict of stage 4.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the paper's Figure 3, the distribution of bias(s);
# - the training arms before and after, beside two placebos;
# - the words that drive the bias, and for each claim a verdict and its reason.
#
# **You can then** say what several trainings tell that one does not. **You need** [stage 4](04_metrics.ipynb).
# **Time:** 10 minutes to read, under a minute to run, 10 minutes for the exercises.
#
# | in | from | used for |
# |---|---|---|
# | `histogram`, `intervals`, `distribution` | 04 | Figure 3 |
# | `arms`, `changes`, `power`, `price`, `shown` | 04 | before and after; what passed the gate; what could be found |
# | `figure` | 03 | the words that drive bias |
# | `weat`, `phrase_weat`, `correlations`, `sensitivity` | 04 | association, the open points |
# | `claims` | 04 | the verdicts |
#
# | out | holds |
# |---|---|
# | `figure_3`, `before_after`, `changes`, `drivers`, `association`, `sensitivity` | as tables and, where they are drawn, as pictures |
# | `verdict_figure_3`, `verdict_before_after`, `verdict_all` | the verdicts as they are shown (not at scale small) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import matplotlib.pyplot as plt
import pandas as pd

from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots import COLOURS, STYLE
from lib.stats import show_verdicts

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality. Everything else was decided in stage 4.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# All the tables are read here. If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("implicit_bias", scale, "05_figures")
files = (
    "histogram",
    "intervals",
    "distribution",
    "arms",
    "changes",
    "power",
    "price",
    "shown",
    "weat",
    "phrase_weat",
    "correlations",
    "sensitivity",
    "claims",
)
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in files}
tables["drivers"] = pd.read_csv(stage.input("03_attribution", "figure.csv"))
pd.set_option("display.max_colwidth", None)
verdicts = partial(
    show_verdicts, stage, tables["claims"], material("implicit_bias") / "claims.yaml"
)
print(", ".join(files))

# %% [markdown] tags=["slide"]
# A verdict is **holds**, **partly**, **fails** (the effect is shown to be absent or reversed), **undecided** (the data cannot tell) or **not run** (this run has no such rows).
# Scale small has too few sentences and judges nothing.
#
# ## Figure 3 · How are the scores distributed?
#
# **Claim** (section 4.2). "Both of the distributions have a Gaussian shape and have peaks around 0.55, indicating the model is more biased to male on our dataset."
#
# **How to read the figure.** A bar is the number of sentences with such a score, averaged over the trainings of a model; a thin line is one training. No sentence is discarded here: a sentence in which one gender is hardly predicted stands at the end of the axis.

# %% tags=["nbval-ignore-output", "slide"]
shown = tables["histogram"]
models = sorted(shown["model"].unique(), key=lambda name: (name != "base", name)) or [
    "base"
]
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1,
        len(models),
        figsize=(2.6 * len(models) + 0.8, 2.4),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for ax, name in zip(axes[0], models):
        mine = (
            shown[shown["model"] == name]
            .pivot(index="bias_from", columns="base", values="sentences")
            .astype(float)
        )
        ax.bar(mine.index + 0.025, mine.mean(axis=1), width=0.045, color=COLOURS[0])
        ax.plot(mine.index + 0.025, mine, color="black", linewidth=0.6)
        ax.axvline(0.5, color="grey", linestyle=":")
        ax.axvline(0.55, color=COLOURS[3], linestyle="--")
        ax.set(title=name, xlabel="bias(s)", xlim=(0, 1))
    axes[0][0].set_ylabel("sentences")
stage.figure("figure_3", figure, formats)
stage.table("figure_3", shown).groupby(["model", "base"], sort=False)[
    "sentences"
].sum().to_frame()

# %% [markdown]
# The dashed line is the paper's peak (0.55<!-- implicit_bias/material/paper_numbers[id=peak].value -->), the dotted one is even. The mean scores, with the rules of the paper (discards included), and intervals over antecedents and trainings:

# %% tags=["nbval-ignore-output"]
stage.table("means", tables["intervals"])

# %% [markdown]
# **The verdicts:**

# %%
verdicts(
    "figure_3",
    "biased_to_male",
    "peak_near_055",
    "more_male_than_female",
    "uncased_sum",
    "cased_sum",
)

# %% [markdown] tags=["slide"]
# **Why.** Where a score lies depends on the model, on the text that it has read, and on the sentences. The paper's distribution is far narrower than ours, and no rule that we tried (k, the threshold, delta,
# what is missing) makes ours so.
#
# ## Before and after · Do such sentences reduce the bias?
#
# **Question** (section 6, left open by the paper). Which trainings passed the gate of stage 2:

# %% tags=["nbval-ignore-output"]
stage.table("shown", tables["shown"])

# %% [markdown]
# **How to read the figure.** Left the mean score, right the mean distance from 0.5, with 95 % intervals over antecedents and over trainings of the base model. All models share sentences and base models, so
# that their intervals overlap where their differences (the next figure) may be clear. `held out` are sentences about nouns that no arm was trained on.

# %% tags=["nbval-ignore-output", "slide"]
arms = stage.table("before_after", tables["arms"])
parts = [
    part
    for part in ("trained on", "held out", "winogender")
    if part in set(arms["part"])
] or ["held out"]
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1, 2, figsize=(7.5, 3.0), sharey=True, layout="constrained"
    )
    for ax, (quantity, label) in zip(
        axes, (("bias", "mean bias(s)"), ("distance", "mean distance from 0.5"))
    ):
        for j, name in enumerate(("base", "placebo", "even placebo", "augmented")):
            mine = (
                tables["arms"]
                .query("quantity == @quantity and model == @name")
                .set_index("part")
                .reindex(parts)
            )
            y = [i + 0.18 * (j - 1.5) for i in range(len(parts))]
            ax.errorbar(
                mine["estimate"],
                y,
                xerr=[mine["estimate"] - mine["low"], mine["high"] - mine["estimate"]],
                fmt="os^D"[j],
                color=COLOURS[j],
                label=name,
            )
        ax.set(yticks=range(len(parts)), yticklabels=parts, xlabel=label)
    axes[0].axvline(0.5, color="grey", linestyle=":")
    axes[0].set_ylim(len(parts) - 0.4, -0.6)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncol=4,
        frameon=False,
    )
stage.figure("before_after", figure, formats)
arms.pivot_table(
    index=["quantity", "part"], columns="model", values="estimate", sort=False
)

# %% [markdown]
# The change of the distance from 0.5 and its parts. **How to read the figure.** A bar is the 95 % interval of a difference of two models, over antecedents and base models; a large dot its mean, the small ones
# mark the base models with the smallest and the largest; the grey lines are what this design would find four times in five.

# %% tags=["nbval-ignore-output", "slide"]
drawn = tables["power"].query("quantity == 'distance'").dropna(subset="difference")
rows = [(part, mine) for part, mine in drawn.groupby("part", sort=False)] or [
    ("held out", drawn)
]
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1,
        len(rows),
        figsize=(3.6 * len(rows) + 1.2, 2.3),
        sharey=True,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for ax, (part, mine) in zip(axes[0], rows):
        y, names = (
            range(len(mine)),
            [f"{a} - {b}" for a, b in zip(mine["left"], mine["right"])],
        )
        ax.errorbar(
            mine["difference"],
            y,
            xerr=[mine["difference"] - mine["low"], mine["high"] - mine["difference"]],
            fmt="o",
            color=COLOURS[0],
        )
        for name in ("smallest", "largest"):
            ax.plot(mine[name], y, ".", color=COLOURS[3], markersize=4)
        for sign in (-1, 1):
            ax.plot(sign * mine["detectable"], y, "|", color="grey", markersize=12)
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set(
            yticks=y,
            yticklabels=names,
            xlabel="difference of the distance from 0.5",
            title=part,
            ylim=(max(1, len(mine)) - 0.5, -0.5),
        )
stage.figure("changes", figure, formats)
stage.table("power", tables["power"])

# %% [markdown]
# In one table, for the distance from 0.5 and for the spread about the model's own median:

# %% tags=["nbval-ignore-output"]
stage.table("changes", tables["changes"])

# %% [markdown]
# And the price, a perplexity and the share of unambiguous sentences with the right gender first:

# %% tags=["nbval-ignore-output"]
stage.table("price", tables["price"])

# %% [markdown]
# **The verdicts:**

# %%
verdicts(
    "before_after",
    "augmentation_reduces_bias",
    "augmentation_beats_base",
    "augmentation_shifts_bias",
    "even_share_reduces_bias",
    "swap_beyond_share",
    "augmentation_narrows_spread",
    "augmentation_transfers",
    "augmentation_beats_base_on_winogender",
    "placebo_does_nothing",
)

# %% [markdown] tags=["slide"]
# ## The words that drive the bias
#
# *Ours.* Mean scores of words in the explanation of log P(male) - log P(female), by Integrated Gradients. **How to read the figure.** Words to the right push towards the male form.

# %% tags=["nbval-ignore-output", "slide"]
drivers = stage.table("drivers", tables["drivers"])
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(5.5, 4.0), layout="constrained")
    labels = [f"{word} ({n})" for word, n in zip(drivers["word"], drivers["sentences"])]
    ax.barh(
        labels,
        drivers["mean"],
        color=[COLOURS[0] if x > 0 else COLOURS[3] for x in drivers["mean"]],
    )
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set(xlabel="mean score: towards female < 0 < towards male")
stage.figure("drivers", figure, formats)
pd.concat([drivers.head(3), drivers.tail(3)])

# %% [markdown]
# The table shows the ends. In brackets the number of explained sentences with the word; words in fewer than three are left out.
#
# ## Association tests
#
# **How to read the tables.** `d` is the effect size; the published values belong to GloVe. `rho` is the rank correlation of association and bias(s), which the paper left open.

# %% tags=["nbval-ignore-output"]
both = pd.concat(
    [tables["weat"], tables["phrase_weat"].assign(test="phrases")], ignore_index=True
)
stage.table(
    "association",
    both[["test", "vectors", "d", "p", "n_partitions", "published_d", "published_p"]],
    digits=5,
).astype(object).fillna("")

# %% [markdown]
# The correlations:

# %% tags=["nbval-ignore-output"]
stage.table("correlations", tables["correlations"])

# %% [markdown]
# ## The open points of the paper
#
# What each reading of a rule does to the base model's score, the others as set.

# %% tags=["nbval-ignore-output"]
stage.table("sensitivity", tables["sensitivity"])

# %% [markdown]
# ## All claims
#
# Decided claims come first.

# %%
verdicts("all")

# %% [markdown]
# The comparisons that a verdict rests on are in `contrasts.csv` of stage 4.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder. The results are this notebook at scale `cpu` (`make implicit_bias SCALE=cpu`): 70,924<!-- implicit_bias/cpu/04_metrics/claims[id=n_original].ours --> captions, and a small masked LM trained on captions and corpora.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed

counted = read_committed("implicit_bias", "cpu", "04_metrics", "distribution")
counted[["base", "male", "female", "below the threshold"]]

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `counted` says for each of three base models how many sentences have a male and how many a female score, at scale `cpu`. For the first one (`base` 0): which share of the sentences with a score is male?

# %% tags=["hole"]
share_male = ...

# %% tags=["solution"]
share_male = 645 / (645 + 81)

# %% tags=["check"]
first = counted.query("base == 0").iloc[0]
check_number(
    share_male,
    first["male"] / (first["male"] + first["female"] + first["even"]),
    {
        "sentences below the threshold have no score.": first["male"]
        / (first["male"] + first["female"] + first["below the threshold"]),
        "that is the female share.": first["female"]
        / (first["male"] + first["female"]),
    },
    "Which sentences have a score?",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# The three base models differ only in the seed of their training, and still their counts differ widely. What does that mean for a statement about *the* bias of this kind of model?
#
# - `"a"` One training is one observation: the statement needs several, and an interval over them.
# - `"b"` The sentences are wrong.
# - `"c"` Take the model with most sentences above the threshold.

# %% tags=["hole"]
what_it_means = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_means = "a"

# %% tags=["check"]
check_choice(
    what_it_means,
    "a",
    {
        "b": "All three were asked about the same sentences.",
        "c": "Choosing a model by its outcome decides the answer beforehand.",
    },
)
