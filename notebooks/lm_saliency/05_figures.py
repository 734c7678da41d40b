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
# - Tables 4a and 4b (consistency over inputs and models);
# - the verdict on each claim, and why most are open at this scale.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `plausibility`, `input_consistency`, `model_consistency`, `floors`, `claims` (`.csv`) of stage 4 | `table_3`, `table_8`, `table_4a`, `table_4b`, `verdicts` (`.csv`), two figures |

# %%
import matplotlib.pyplot as plt
import pandas as pd

from lib.paths import material
from lib.plots import COLOURS, STYLE
from lib.stage import open_stage

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
          for name in ("plausibility", "input_consistency", "model_consistency", "floors", "claims")}
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
stage.table("table_4a", inputs[inputs["method"].isin(["V", "SG", "IG"])][both].reset_index(drop=True))

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
# ## 5 · Verdicts
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
