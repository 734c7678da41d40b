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
# # lm_saliency, stage 5 of 5: the paper's tables, with ours beside them
#
# previous: [04_metrics](04_metrics.ipynb) · [Start here](../00_start_here.ipynb)
#
# What Ding and Koehn printed, what this run gives in the same place, and how far the two may be compared. This
# stage computes nothing: it lays out the tables of stage 4.

# %% [markdown]
# ## You will see
#
# - Table 3 (plausibility) and Table 8 (composition by vector norm), the paper's numbers in grey;
# - Tables 4a and 4b (consistency over inputs and models) and Table 6 (students);
# - Figures 1 and 2 (the sweep), and lines in colour as in Tables 1, 5 and 7;
# - the verdict on each claim, and why most are open at this scale.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `plausibility`, `input_consistency`, `model_consistency`, `sweep`, `examples`, `claims` (`.csv`) of stage 4 | `table_3`, `table_8`, `table_4a`, `table_4b`, `table_6`, `figure_1`, `figure_2`, `verdicts` (`.csv`), five figures, `examples.html` |

# %%
import html

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from lib.paths import material
from lib.plots import COLOURS, STYLE
from lib.stage import open_stage
from lib.store import write_atomic

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
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv"))
          for name in ("plausibility", "input_consistency", "model_consistency", "sweep", "examples", "claims")}
numbers = pd.read_csv(material("lm_saliency") / "paper_numbers.csv")
ours = tables["plausibility"].query("size == 'full'")
print({name: len(table) for name, table in tables.items()})

# %% [markdown]
# ## 1 · Table 3: plausibility
#
# Claim: SG and IG are more plausible than V nearly everywhere. First the paper's numbers.

# %%
def printed(source, quantity):
    """A table of the paper: one row per architecture and method, one column per set and scenario."""
    part = numbers[(numbers["source"] == f"Ding & Koehn 2021, {source}") & (numbers["quantity"] == quantity)]
    return part.pivot_table(index=["scheme", "method"], columns=["dataset", "class"], values="value", sort=False)


printed("Table 3", "plausibility")

# %% [markdown]
# And ours, in the same layout. `share_exp` is the number in brackets: how often the model's answer is the
# expected one. A row with `learnt` False belongs to a probe that does not know its task.

# %% tags=["nbval-ignore-output"]
columns = ["dataset", "scheme", "learnt", "method", "share_exp", "all", "low", "high", "exp", "alt"]
stage.table("table_3", ours[ours["method"].isin(["V", "SG", "IG"])][columns].reset_index(drop=True))

# %% [markdown]
# The figure puts the paper's *all* (grey) and ours (colour, with intervals) side by side where the set has the
# same name.

# %%
looks = dict(zip(("V", "SG", "IG"), zip("osD", COLOURS)))
theirs = numbers[(numbers["source"] == "Ding & Koehn 2021, Table 3") & (numbers["class"] == "all")]
theirs = theirs.set_index(["dataset", "scheme", "method"])["value"]
schemes, names = list(ours["scheme"].unique()), list(ours["dataset"].unique())
with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
    figure, axes = plt.subplots(1, len(names), figsize=(3 * len(names), 3.2), sharey=True, layout="constrained")
    for ax, name in zip(axes, names):
        for r in ours[(ours["dataset"] == name) & ours["method"].isin(looks)].to_dict("records"):
            marker, colour = looks[r["method"]]
            x = schemes.index(r["scheme"]) + 0.25 * (list(looks).index(r["method"]) - 1)
            ax.plot([x, x], [r["low"], r["high"]], color=colour)
            ax.plot(x, r["all"], marker=marker, color=colour, markerfacecolor=colour if r["learnt"] else "white",
                    linestyle="", label=r["method"] if r["scheme"] == schemes[0] else None)
            if (name, r["scheme"], r["method"]) in theirs.index:
                ax.plot(x + 0.08, theirs[name, r["scheme"], r["method"]], marker=marker, color="0.6", linestyle="")
        ax.set(title=name, xticks=range(len(schemes)), xticklabels=schemes, ylim=(-0.03, 1.03))
    axes[0].set_ylabel("lines that pass (all)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
stage.figure("table_3", figure, formats)

# %% [markdown]
# Hollow marks have not learnt their task. The plotted numbers are those of the two tables above.
#
# ## 2 · Table 8: the size of the gradient
#
# Claim: composed by vector norm, SmoothGrad loses what it gains with gradient times input. The mean size of a
# gradient has no sign, so it cannot put an attractor below zero.

# %% tags=["nbval-ignore-output"]
stage.table("table_8", ours[ours["method"].isin(["V+VN", "SG+VN"])][columns].reset_index(drop=True))

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
# Ours; `verum` is the paper's column exp., `malum` its column alt.

# %% tags=["nbval-ignore-output"]
both = ["dataset", "scheme", "size", "method", "side", "estimate", "low", "high"]
inputs = tables["input_consistency"]
both_sizes = ["full", "student"]
of_tables = inputs["method"].isin(["V", "SG", "IG"]) & inputs["size"].isin(both_sizes)
stage.table("table_4a", inputs[of_tables][both].reset_index(drop=True))

# %% [markdown]
# ## 4 · Table 4b: the same line, another model
#
# Claim: a model and its student agree less than two inputs of one model do. The paper's numbers:

# %%
printed("Table 4b", "model_consistency")

# %% [markdown]
# Ours:

# %% tags=["nbval-ignore-output"]
stage.table("table_4b", tables["model_consistency"][both].reset_index(drop=True))

# %% [markdown]
# Both consistencies of the full models, verum, with intervals. The marks are those of the first figure.

# %%
is_learnt = {(r.dataset, r.scheme): r.learnt for r in ours.itertuples()}
panels = {"input consistency": inputs[inputs["size"] == "full"], "model consistency": tables["model_consistency"]}
with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True, layout="constrained", width_ratios=[1, 2])
    for ax, (title, part) in zip(axes, panels.items()):
        part = part[(part["side"] == "verum") & part["method"].isin(looks)]
        places = list(dict.fromkeys(zip(part["dataset"], part["scheme"])))
        for r in part.itertuples():
            marker, colour = looks[r.method]
            x = places.index((r.dataset, r.scheme)) + 0.25 * (list(looks).index(r.method) - 1)
            ax.plot([x, x], [r.low, r.high], color=colour)
            ax.plot(x, r.estimate, marker=marker, color=colour, linestyle="",
                    markerfacecolor=colour if is_learnt[r.dataset, r.scheme] else "white",
                    label=r.method if (r.dataset, r.scheme) == places[0] else None)
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set(title=title, xticks=range(len(places)))
        ax.set_xticklabels([f"{name}\n{scheme}" for name, scheme in places], fontsize=7, rotation=60)
    axes[0].set_ylabel("Pearson's r, verum")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
stage.figure("table_4", figure, formats)

# %% [markdown]
# ## 5 · Table 6: the students
#
# Claim: a distilled QRNN is far more plausible than the QRNN itself (Syneval, IG: 0.981 against 0.797). For each
# student the paper prints the method that was best for its teacher. Grey columns are the paper's.

# %% tags=["nbval-ignore-output"]
scenario = {"exp": "verum", "alt": "malum"}
test_of = {"plausibility_student": tables["plausibility"].query("size == 'student'").set_index(["dataset", "scheme", "method"]),
           "input_consistency_student": inputs.query("size == 'student'").set_index(["dataset", "scheme", "method", "side"])}
rows = []
for r in numbers[numbers["source"].str.endswith("Table 6")].rename(columns={"class": "scenario"}).itertuples():
    key = (r.dataset, r.scheme, r.method)
    frame, column = test_of[r.quantity], r.scenario
    if r.quantity.startswith("input"):
        key, column = (*key, scenario[r.scenario]), "estimate"
    rows.append((r.quantity.removesuffix("_student"), *key[:3], r.scenario, r.value,
                 frame.loc[key, column] if key in frame.index else np.nan))
table_6 = pd.DataFrame(rows, columns=["test", "dataset", "scheme", "method", "column", "paper", "ours"])
stage.table("table_6", table_6).pivot_table(index=["test", "scheme", "method"], columns=["dataset", "column"],
                                            values=["paper", "ours"], sort=False).round(3)

# %% [markdown]
# ## 6 · Figures 1 and 2: depth, width, heads
#
# Claim: IG is better on deeper models, SG on shallower ones; all else is noise. The paper draws one circle for each of
# 21 small Transformers, its size the number of parameters: in Figure 1 the plausibility on the natural sets, in Figure
# 2 plausibility and input consistency on Syneval. It prints no numbers for them. At scale small there are three models
# that have learnt next to nothing (hollow circles: nothing): the figure shows its form and no finding. Scale `cpu`
# trains none of the 21 unless `sweep_share` is set, half a minute each.

# %% tags=["nbval-ignore-output"]
sweep = tables["sweep"][tables["sweep"]["method"].isin(["SG", "IG"])]
natural = [name for name in ours["dataset"].unique() if name not in ("Syneval", "Winobias")]
columns = ["dataset", "size", "layers", "parameters", "method", "learnt", "all", "low", "high"]
stage.table("figure_1", sweep[sweep["dataset"].isin(natural)][columns].reset_index(drop=True))
stage.table("figure_2", sweep[sweep["dataset"] == "Syneval"][[*columns, "input_consistency"]].reset_index(drop=True))

# %% [markdown]
# The plotted values are those of the two tables.

# %%
def circles(ax, part, value):
    """One circle per model: layers on the axis, settings side by side, area by parameters."""
    depths = sorted(part["layers"].unique())
    for depth in depths:
        of_depth = part[part["layers"] == depth].reset_index(drop=True)
        x = depths.index(depth) + np.linspace(-0.3, 0.3, len(of_depth)) if len(of_depth) > 1 else [depths.index(depth)]
        area = 600 * of_depth["parameters"] / part["parameters"].max()
        colour = ["#0072B2" if learnt else "white" for learnt in of_depth["learnt"]]
        ax.scatter(x, of_depth[value], s=area, c=colour, edgecolors="#0072B2", alpha=0.8)
    ax.set(xticks=range(len(depths)), xticklabels=depths, xlim=(-0.6, max(len(depths), 1) - 0.4), ylim=(-0.05, 1.05))


def sweep_figure(panels, name):
    """A row of panels: (title, rows, column)."""
    with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
        figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), layout="constrained")
        for ax, (title, part, value) in zip(axes, panels):
            circles(ax, part, value)
            ax.set(title=f"{title}\n{'lines that pass' if value == 'all' else 'Pearson of pairs'}", xlabel="layers")
            if part.empty:
                ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center")
        stage.figure(name, figure, formats)

# %% [markdown]
# Figure 1, the two sets that are not synthetic (at scale small: the held-out sentences):

# %%
sweep_figure([(f"{name}, {method}", sweep[(sweep["dataset"] == name) & (sweep["method"] == method)], "all")
              for name in natural[:2] for method in ("SG", "IG")], "figure_1")

# %% [markdown]
# Figure 2, Syneval:

# %%
syneval = sweep[sweep["dataset"] == "Syneval"]
sweep_figure([(f"{title}, {method}", syneval[syneval["method"] == method], value) for title, value in
              (("plausibility", "all"), ("input consistency", "input_consistency")) for method in ("SG", "IG")], "figure_2")

# %% [markdown]
# ## 7 · Lines in colour
#
# As in the paper's Tables 1, 5 and 7: green for words that speak for the predicted class, yellow for words that speak
# against it, by the size of the score. The cue is underlined, the attractor dotted. The file `examples.html` needs
# nothing but a browser.

# %%
def tint(score):
    """White for 0, green up to 1, yellow down to -1."""
    colour = np.array([0.35, 0.75, 0.35]) if score > 0 else np.array([1.0, 0.85, 0.1])
    return to_hex(1 - abs(score) * (1 - colour))


lines, examples = [], tables["examples"].fillna({"role": ""})
underline = {"cue": "underline", "attractor": "underline dotted", "": "none"}
for (name, scheme, method), part in examples.groupby(["dataset", "scheme", "method"], sort=False):
    words = [f'<span style="background:{tint(r.score / part["score"].abs().max())};text-decoration:{underline[r.role]};'
             f'padding:1px 4px">{html.escape(r.word)}</span>' for r in part.itertuples()]
    lines.append(f"<tr><td>{html.escape(f'{name}, {scheme}')}</td><td>{method}</td><td>{' '.join(words)}</td></tr>")
page = f'<table style="font-family:sans-serif;color:black;background:white">{"".join(lines)}</table>'
write_atomic(stage.path("examples.html"), f"<!doctype html><meta charset='utf-8'><title>Saliency</title>{page}\n")
print(len(lines), "rows,", examples["word"].map(str).size, "words")

# %% [markdown]
# The same as a figure, for those who print:

# %%
blocks = list(examples.groupby(["dataset", "method"], sort=False))
with plt.rc_context(STYLE | {"axes.grid": False}):
    longest = max(part["word"].map(len).sum() + len(part) + 4 for _, part in blocks)
    figure, ax = plt.subplots(figsize=(2.5 + 0.09 * longest, 0.42 * len(blocks)), layout="constrained")
    for y, ((name, method), part) in enumerate(blocks):
        x, size = 0.0, part["score"].abs().max()
        for r in part.itertuples():
            style = {"cue": "[{}]", "attractor": "({})"}.get(r.role, "{}").format(r.word)
            ax.text(x, y, style, va="center", fontsize=9, family="monospace",
                    bbox={"facecolor": tint(r.score / size), "edgecolor": "none", "pad": 2})
            x += len(style) + 1
    ax.set(xlim=(-1, longest), ylim=(len(blocks) - 0.5, -0.5),
           xticks=[], yticks=range(len(blocks)), yticklabels=[f"{name}, {method}" for (name, method), _ in blocks])
    ax.spines[:].set_visible(False)
stage.figure("examples", figure, formats)

# %% [markdown]
# [word] is the cue, (word) the attractor. What is plausible here is a green cue and an attractor that is yellow, or
# less green, if the model predicts what is expected.
#
# ## 8 · Verdicts
#
# One row per registered claim; `ours` is the median over its comparisons, `low` and `high` their range.

# %% tags=["nbval-ignore-output"]
claims = tables["claims"]
registered = claims[~claims["id"].isin(numbers["id"])]
stage.table("verdicts", registered[["id", "quantity", "paper", "ours", "low", "high", "verdict", "why"]])
registered[["id", "paper", "ours", "verdict"]].round(3)

# %% [markdown]
# *Reading it.* At scale small no claim is decided, by rule. What the small run shows is that every step works
# and what each test means. The claims need scale `cpu`, more than one seed, and models that have learnt their
# task.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# This is the last stage. To run the study on published sets and natural text, see `params/lm_saliency/cpu.yaml`.
