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
# # lm_saliency, stage 5 of 5: the paper's tables, with ours beside them
#
# previous: [04_metrics](04_metrics.ipynb) · [Start here](../00_start_here.ipynb)
#
# ## What we found
#
# - **In real sentences the explanations are ahead of a rule of positions, but not by enough to be sure.** Integrated Gradients of the Transformer puts the noun that agrees with the
#   answer on top in 74 %<!-- lm_saliency/cpu/04_metrics/plausibility[dataset=EWT, scheme=Transformer, size=full, method=IG].all --> of the lines of EWT; *the nearest noun* does in
#   68 %<!-- lm_saliency/cpu/04_metrics/floors[dataset=EWT, scheme=Transformer].nearest -->, random scores in 59 %<!-- lm_saliency/cpu/04_metrics/floors[dataset=EWT, scheme=Transformer].random -->.
#   The interval of the first holds the second.
# - **On the paper's templates nothing can be explained yet.** Our models, small and trained once, answer *singular* nearly always; what is explained
#   there is a constant.
# - **So the paper's claims about architectures stay open.** Of those registered, one is decided, an identity.
#
# This is the run at scale `cpu`: published sets, and language models trained on 2.2 million tokens. Its tables and verdicts are on
# [the results page](../../outputs/reference/lm_saliency/cpu/05_figures.ipynb).
#
# What Ding and Koehn printed, what this run gives in the same place, and how far the two may be compared. This
# stage computes nothing: it lays out the tables of stage 4.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - Table 3 (plausibility) and Table 8 (composition by vector norm), the paper's and ours in one layout;
# - Tables 4a and 4b (consistency over inputs and models) and Table 6 (students);
# - Figures 1 and 2 (the sweep), and lines in colour as in Tables 1, 5 and 7;
# - the verdict on each claim, and why most stay open.
#
# **You can then** say when an explanation has nothing to explain. **You need** [stage 4](04_metrics.ipynb). **Time:**
# 15 minutes to read, under a minute to run, 10 minutes for the exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `plausibility`, `floors`, `input_consistency`, `model_consistency`, `sweep`, `examples`, `claims` (`.csv`) of stage 4 | `table_3`, `table_8`, `table_4a`, `table_4b`, `table_6`, `figure_1`, `figure_2`, `verdict_all` (`.csv`), five figures |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import read_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots import COLOURS, STYLE, plot_words
from lib.stats import show_verdicts

# %% [markdown]
# ## Settings

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# The paper's sets and ours share two names, Syneval and Winobias; Syneval is the same line by line. Its natural
# sets are licensed. In their place stand EWT and OntoGUM at scale `cpu`, and held-out sentences of our grammar
# at scale `small`.

# %%
stage = open_stage("lm_saliency", scale, "05_figures")
tables = {
    name: pd.read_csv(stage.input("04_metrics", f"{name}.csv"))
    for name in (
        "plausibility",
        "floors",
        "input_consistency",
        "model_consistency",
        "sweep",
        "examples",
        "claims",
    )
}
numbers = read_table(material("lm_saliency") / "paper_numbers.csv")
ours = tables["plausibility"].query("size == 'full'")
print({name: len(table) for name, table in tables.items()})

# %% [markdown] tags=["slide"]
# ## 1 · Table 3: plausibility
#
# Claim: SG and IG are more plausible than V nearly everywhere. First the paper's numbers.


# %%
def printed(source, quantity):
    """A table of the paper: one row per architecture and method, one column per set and scenario."""
    part = numbers[
        (numbers["source"] == f"Ding & Koehn 2021, {source}")
        & (numbers["quantity"] == quantity)
    ]
    return part.pivot_table(
        index=["scheme", "method"],
        columns=["dataset", "class"],
        values="value",
        sort=False,
    )


printed("Table 3", "plausibility")

# %% [markdown]
# And ours, in the same layout. The file has more columns: intervals, the paper's *all* where the set has the same name
# (`paper`), how often the model's answer is the expected one (`share_exp`, the paper's number in brackets), and `learnt`:
# whether the probe knows its task, and answers with more than a constant here.


# %%
def same_layout(frame, values, name="dataset"):
    """Ours as the paper prints it: one row per architecture and method, one column per set and scenario."""
    long = frame.melt(["scheme", "method", name], values, var_name="class")
    return long.pivot_table(
        index=["scheme", "method"], columns=[name, "class"], values="value", sort=False
    ).round(3)


columns = [
    "dataset",
    "scheme",
    "learnt",
    "method",
    "share_exp",
    "all",
    "low",
    "high",
    "exp",
    "alt",
    "paper",
]
theirs = numbers[numbers["quantity"].eq("plausibility") & numbers["class"].eq("all")]
theirs = theirs.drop_duplicates(["dataset", "scheme", "method"]).set_index(
    ["dataset", "scheme", "method"]
)["value"]
ours = ours.assign(
    paper=[
        theirs.get(key, np.nan)
        for key in zip(ours["dataset"], ours["scheme"], ours["method"])
    ]
)

# %% [markdown]
# Rows and columns as above:

# %% tags=["nbval-ignore-output"]
table_3 = stage.table(
    "table_3",
    ours[ours["method"].isin(["V", "SG", "IG"])][columns].reset_index(drop=True),
)
same_layout(table_3, ["all", "exp", "alt"])

# %% [markdown]
# The figure puts the paper's *all* (grey) and ours (colour, with intervals) side by side where the set has the
# same name. The dotted line is what random scores pass, given what this model answers.

# %% tags=["slide"]
looks = dict(zip(("V", "SG", "IG"), zip("osD", COLOURS)))
schemes, names = list(ours["scheme"].unique()), list(ours["dataset"].unique())
with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
    figure, axes = plt.subplots(
        1, len(names), figsize=(3 * len(names), 3.2), sharey=True, layout="constrained"
    )
    for ax, name in zip(axes, names):
        for r in ours[(ours["dataset"] == name) & ours["method"].isin(looks)].to_dict(
            "records"
        ):
            marker, colour = looks[r["method"]]
            x = schemes.index(r["scheme"]) + 0.25 * (list(looks).index(r["method"]) - 1)
            ax.plot([x, x], [r["low"], r["high"]], color=colour)
            ax.plot(
                x,
                r["all"],
                marker=marker,
                color=colour,
                markerfacecolor=colour if r["learnt"] else "white",
                linestyle="",
                label=r["method"] if r["scheme"] == schemes[0] else None,
            )
            ax.plot(
                x + 0.1,
                r["paper"],
                marker=marker,
                color="0.6",
                linestyle="",
                markersize=4,
                label=f"{r['method']}, paper" if r["scheme"] == schemes[0] else None,
            )
        for r in tables["floors"].query("dataset == @name").itertuples():
            x = schemes.index(r.scheme)
            ax.plot([x - 0.4, x + 0.4], [r.random] * 2, color="0.3", linestyle=":")
        ax.set(
            title=name,
            xticks=range(len(schemes)),
            xticklabels=schemes,
            ylim=(-0.03, 1.03),
        )
    axes[0].set_ylabel("lines that pass (all)")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        frameon=False,
    )
stage.figure("table_3", figure, formats)

# %% [markdown]
# Hollow marks have not learnt the set. The plotted numbers are those of `table_3` and of stage 4's `floors`.
#
# ## 2 · Table 8: the size of the gradient
#
# Claim: composed by vector norm, SmoothGrad loses what it gains with gradient times input. The mean size of a
# gradient has no sign, so it cannot put an attractor below zero.

# %% tags=["nbval-ignore-output"]
table_8 = stage.table(
    "table_8",
    ours[ours["method"].isin(["V+VN", "SG+VN"])][columns].reset_index(drop=True),
)
same_layout(table_8, ["all", "exp", "alt"])

# %% [markdown]
# The paper's Table 8:

# %%
printed("Table 8", "plausibility")

# %% [markdown]
# ## 3 · Table 4a: the same reason, other nouns
#
# Claim: the LSTM is most consistent under IG, the Transformer under SG. The paper's numbers:

# %%
printed("Table 4a", "input_consistency")

# %% [markdown]
# Ours; exp. is `verum`, alt. is `malum`. The file holds the students and the intervals as well.

# %% tags=["nbval-ignore-output"]
both = ["dataset", "scheme", "size", "method", "side", "estimate", "low", "high"]
inputs, both_sizes = tables["input_consistency"], ["full", "student"]
of_tables = inputs["method"].isin(["V", "SG", "IG"]) & inputs["size"].isin(both_sizes)


def by_side(frame):
    """Full models in the paper's layout."""
    part = frame[(frame["size"] == "full") & frame["method"].isin(["V", "SG", "IG"])]
    part = part.pivot(
        index=["scheme", "method", "dataset"], columns="side", values="estimate"
    ).reset_index()
    return same_layout(
        part.rename(columns={"verum": "exp", "malum": "alt"}), ["exp", "alt"]
    )


by_side(stage.table("table_4a", inputs[of_tables][both].reset_index(drop=True)))

# %% [markdown] tags=["slide"]
# ## 4 · Table 4b: the same line, another model
#
# Claim: a model and its student agree less than two inputs of one model do. The paper's numbers:

# %%
printed("Table 4b", "model_consistency")

# %% [markdown]
# Ours:

# %% tags=["nbval-ignore-output"]
by_side(
    stage.table("table_4b", tables["model_consistency"][both].reset_index(drop=True))
)

# %% [markdown]
# Both consistencies of the full models, verum, with intervals. The marks are those of the first figure.

# %% tags=["slide"]
is_learnt = {(r.dataset, r.scheme): r.learnt for r in ours.itertuples()}
panels = {
    "input consistency": inputs[inputs["size"] == "full"],
    "model consistency": tables["model_consistency"],
}
with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 3.2), sharey=True, layout="constrained", width_ratios=[1, 2]
    )
    for ax, (title, part) in zip(axes, panels.items()):
        part = part[(part["side"] == "verum") & part["method"].isin(looks)]
        places = list(dict.fromkeys(zip(part["dataset"], part["scheme"])))
        for r in part.itertuples():
            marker, colour = looks[r.method]
            x = places.index((r.dataset, r.scheme)) + 0.25 * (
                list(looks).index(r.method) - 1
            )
            ax.plot([x, x], [r.low, r.high], color=colour)
            ax.plot(
                x,
                r.estimate,
                marker=marker,
                color=colour,
                linestyle="",
                markerfacecolor=colour if is_learnt[r.dataset, r.scheme] else "white",
                label=r.method if (r.dataset, r.scheme) == places[0] else None,
            )
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set(title=title, xticks=range(len(places)))
        ax.set_xticklabels(
            [f"{name}\n{scheme}" for name, scheme in places], fontsize=7, rotation=60
        )
    axes[0].set_ylabel("Pearson's r, verum")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
stage.figure("table_4", figure, formats)

# %% [markdown]
# ## 5 · Table 6: the students
#
# Claim: a distilled QRNN is far more plausible than the QRNN itself (Syneval, IG:
# 0.981<!-- lm_saliency/material/paper_numbers[id=table6_plausibility_student_Syneval_QRNN_IG_all].value --> against
# 0.797<!-- lm_saliency/material/paper_numbers[id=table3_plausibility_Syneval_QRNN_IG_all].value -->). For each
# student the paper prints the method that was best for its teacher.

# %% tags=["nbval-ignore-output"]
scenario = {"exp": "verum", "alt": "malum"}
test_of = {
    "plausibility_student": tables["plausibility"]
    .query("size == 'student'")
    .set_index(["dataset", "scheme", "method"]),
    "input_consistency_student": inputs.query("size == 'student'").set_index(
        ["dataset", "scheme", "method", "side"]
    ),
}
rows = []
for r in (
    numbers[numbers["source"].str.endswith("Table 6")]
    .rename(columns={"class": "scenario"})
    .itertuples()
):
    key = (r.dataset, r.scheme, r.method)
    frame, column = test_of[r.quantity], r.scenario
    if r.quantity.startswith("input"):
        key, column = (*key, scenario[r.scenario]), "estimate"
    rows.append(
        (
            r.quantity.removesuffix("_student"),
            *key[:3],
            r.scenario,
            r.value,
            frame.loc[key, column] if key in frame.index else np.nan,
        )
    )
table_6 = pd.DataFrame(
    rows, columns=["test", "dataset", "scheme", "method", "column", "paper", "ours"]
)
stage.table("table_6", table_6).pivot_table(
    index=["test", "scheme", "method"],
    columns=["dataset", "column"],
    values=["paper", "ours"],
    sort=False,
).round(3)

# %% [markdown] tags=["slide"]
# ## 6 · Figures 1 and 2: depth, width, heads
#
# Claim: IG is better on deeper models, SG on shallower ones; all else is noise. The paper draws one circle for each of
# its small Transformers, its size the number of parameters, its colour the setting: in Figure 1 the plausibility on the
# natural sets, in Figure 2 plausibility and input consistency on Syneval. It prints no numbers for them. Hollow circles
# have not learnt the set. At scale small there are three models: the figure shows its form and no finding. At scale
# `cpu` each of them has read a tenth of the corpus, a minute a model, and is probed for number only.

# %% tags=["nbval-ignore-output"]
sweep = tables["sweep"][tables["sweep"]["method"].isin(["SG", "IG"])]
natural = [
    name for name in ours["dataset"].unique() if name not in ("Syneval", "Winobias")
]
natural = [
    name for name in natural if name in ("PTB", "CoNLL")
] or natural  # the paper's own sets where they are at hand
columns = [
    "dataset",
    "size",
    "layers",
    "parameters",
    "method",
    "learnt",
    "all",
    "low",
    "high",
]
stage.table(
    "figure_1", sweep[sweep["dataset"].isin(natural)][columns].reset_index(drop=True)
)
stage.table(
    "figure_2",
    sweep[sweep["dataset"] == "Syneval"][[*columns, "input_consistency"]].reset_index(
        drop=True
    ),
)

# %% [markdown]
# The plotted values are those of the two tables.


# %%
def circles(ax, part, value):
    """One circle per model: layers on the axis, settings side by side in their colours, area by parameters."""
    depths = sorted(part["layers"].unique())
    for i, name in enumerate(settings):
        of_setting = part[part["setting"] == name]
        x = [
            depths.index(depth) + 0.11 * (i - (len(settings) - 1) / 2)
            for depth in of_setting["layers"]
        ]
        colour = plt.get_cmap("tab10")(i)
        ax.scatter(
            x,
            of_setting[value],
            s=300 * of_setting["parameters"] / sweep["parameters"].max(),
            edgecolors=[colour],
            c=[colour if learnt else "white" for learnt in of_setting["learnt"]],
            alpha=0.8,
        )
        ax.scatter([], [], color=colour, label=name)
    ax.set(
        xticks=range(len(depths)),
        xticklabels=depths,
        xlim=(-0.6, max(len(depths), 1) - 0.4),
        ylim=(-0.05, 1.05),
    )


# %% [markdown]
# Four panels make a figure; below it stands how long each model was trained.

# %%
sweep = sweep.assign(setting=sweep["size"].str.partition("_")[2])
settings = sorted(sweep["setting"].unique())
trained_for = {
    "cpu": "a minute of training for each model",
    "small": "a few seconds of training for each model",
}.get(scale, "")


def sweep_figure(panels, name):
    """A row of panels: (title, rows, column)."""
    with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
        figure, axes = plt.subplots(1, 4, figsize=(11, 3.4), layout="constrained")
        for ax, (title, part, value) in zip(axes, panels):
            circles(ax, part, value)
            ax.set(
                title=f"{title}\n{'lines that pass' if value == 'all' else 'Pearson of pairs'}",
                xlabel="layers",
            )
            if part.empty:
                ax.text(0.5, 0.5, "not probed", transform=ax.transAxes, ha="center")
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=7,
            frameon=False,
            fontsize=8,
            title=trained_for,
        )
        stage.figure(name, figure, formats)


# %% [markdown]
# Figure 1, the two sets that are not synthetic (at scale small: the held-out sentences):

# %% tags=["slide"]
sweep_figure(
    [
        (
            f"{name}, {method}",
            sweep[(sweep["dataset"] == name) & (sweep["method"] == method)],
            "all",
        )
        for name in natural[:2]
        for method in ("SG", "IG")
    ],
    "figure_1",
)

# %% [markdown]
# Figure 2, Syneval:

# %% tags=["slide"]
syneval = sweep[sweep["dataset"] == "Syneval"]
sweep_figure(
    [
        (f"{title}, {method}", syneval[syneval["method"] == method], value)
        for title, value in (
            ("plausibility", "all"),
            ("input consistency", "input_consistency"),
        )
        for method in ("SG", "IG")
    ],
    "figure_2",
)

# %% [markdown] tags=["slide"]
# ## 7 · Lines in colour
#
# As in the paper's Tables 1, 5 and 7, with other colours: orange speaks for the class that the model says, violet
# against it. Read the model's answer first. Where it says what is expected, a row passes if a cue has the highest score
# of all marked nouns; where it says the other class, if an attractor has. The picture shows one line of each set;
# `examples.csv` of stage 4 has all of them, with their scores.

# %% tags=["slide"]
examples = tables["examples"].fillna({"role": ""})
last = examples.groupby("dataset")["line"].transform("last")
about = ["dataset", "line", "scheme", "expected", "says", "method", "passed"]
shown = examples[examples["line"] == last].groupby(about, sort=False)
lines = shown.agg(words=("word", list), scores=("score", list), marks=("role", list))
lines = lines.reset_index()
methods = {"V": "plain gradient", "SG": "SmoothGrad", "IG": "Integrated Gradients"}
lines["heading"] = [
    f"{one.dataset}, line {one.line}: expected {one.expected}, the model says {one.says}"
    for one in lines.itertuples()
]
lines["label"] = [
    f"{methods[one.method]}: {'passes' if one.passed else 'fails'}"
    for one in lines.itertuples()
]
figure, _ = plot_words(
    lines,
    marks={"cue": "cue: decides the answer", "attractor": "attractor: could mislead"},
    toward="speaks for what the model says",
    title="A row passes or fails by its marked nouns, however dark other words are.",
    digits=None,
)
stage.figure("examples", figure, formats)
print(len(lines), "rows of", examples.groupby(about).ngroups)

# %% [markdown]
# Look at the words that are not underlined: some are the darkest of their row. Plausibility does not see them.
#
# ## 8 · Verdicts
#
# One row for each registered claim, decided ones first. `ours` is the median over its comparisons.

# %%
show_verdicts(stage, tables["claims"], material("lm_saliency") / "claims.yaml", "all")

# %% [markdown]
# *Reading it.* With one training of each model no claim about trained models is decided at any scale: the spread between trainings is not known.
# What the runs show is that every step works, what each test means, and which effects are large enough to be worth three trainings.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# This is the last stage. To run the study on published sets and natural text, see `params/lm_saliency/cpu.yaml`.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed

claims = read_committed("lm_saliency", "cpu", "04_metrics", "claims")
answers = read_committed("lm_saliency", "cpu", "04_metrics", "answers")
answers = answers.query("dataset == 'Syneval' and size == 'full'")
answers[["scheme", "right_1", "right_0", "says_1", "balanced"]].round(2)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# `answers` says how often each model is right on the lines of Syneval: on those with a plural verb (`right_1`) and on those with a singular one (`right_0`). Half of the lines are of each kind. What is the balanced accuracy of a model that always answers *singular*?

# %% tags=["hole"]
balanced = ...

# %% tags=["solution"]
balanced = (0 + 1) / 2

# %% tags=["check"]
always_singular = {"right_1": 0.0, "right_0": 1.0}
check_number(
    balanced,
    sum(always_singular.values()) / 2,
    {"it is right on the singular lines only.": 1.0},
    "The mean of the two columns.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# The LSTM answers *singular* on every line of Syneval. Its explanations still get a share of passed lines. What is that share worth?
#
# - `"a"` It shows that the explanation finds the cue.
# - `"b"` Nothing about grammar: a constant answer rests on no noun, so there is no reason to find.
# - `"c"` It shows that the explanation is wrong.

# %% tags=["hole"]
what_it_is_worth = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_is_worth = "b"

# %% tags=["check"]
lstm = answers.set_index("scheme").loc["LSTM"]
assert lstm["says_1"] == 0
check_choice(
    what_it_is_worth,
    "b",
    {
        "a": "Would the model's answer change if the cue were another noun?",
        "c": "Wrong about what? There is no right answer to compare with here.",
    },
)
