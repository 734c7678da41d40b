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
# previous: [04_metrics](04_metrics.ipynb) · the study: [README](README.md) · [Start here](../00_start_here.ipynb)
#
# Ding and Koehn print tables and figures on the plausibility of explanations of language models. This stage prints them
# beside ours. It computes nothing new: it arranges the tables of stage 4.
#
# ## What we found
#
# - **In EWT, parsed web text, Integrated Gradients is far ahead of a simple rule.** An explanation passes a line if its
#   highest-scored noun agrees with the model's answer. There Integrated Gradients passes
#   85 %<!-- lm_saliency/cpu/04_metrics/plausibility[dataset=EWT, scheme=Transformer, size=full, method=IG].all --> of the
#   Transformer's lines, and the rule *nearest noun*
#   62 %<!-- lm_saliency/cpu/04_metrics/floors[dataset=EWT, scheme=Transformer].nearest -->.
#   [See the figure](../../outputs/reference/lm_saliency/cpu/05_figures/table_3.png).
# - **SmoothGrad and Integrated Gradients beat the plain gradient, each in seven of the ten cases of LSTM, QRNN and Transformer that can be judged.** The paper's claims about
#   them hold partly (SmoothGrad: partly<!-- lm_saliency/cpu/04_metrics/claims[id=sg_beats_v].verdict -->,
#   Integrated Gradients: partly<!-- lm_saliency/cpu/04_metrics/claims[id=ig_beats_v].verdict -->).
# - **With SmoothGrad, gradient times input beats the gradient's size.** This claim of the paper
#   holds<!-- lm_saliency/cpu/04_metrics/claims[id=vector_norm_worse].verdict -->.
#   [See all verdicts](../../outputs/reference/lm_saliency/cpu/05_figures/verdict_all.csv).
#
# All this is from the `cpu` run: published sets, and six training runs of QRNN and Transformer and nine of the LSTM, on 32 million tokens. Its tables and verdicts are on
# [the results page](../../outputs/reference/lm_saliency/cpu/05_figures.ipynb).

# %% [markdown] tags=["slide"]
# ## You will see
#
# - lines in colour, as in the paper's Tables 1 and 5;
# - Table 3 (plausibility) and Table 8 (the size of the gradient);
# - Tables 4a and 4b (consistency), Table 6 (students) and Table 7 (a right answer, and the wrong noun);
# - Figures 1 and 2 (depth, width, heads), and the verdict on each claim.
#
# **You can then** say when an explanation has nothing to explain. **You need** [stage 4](04_metrics.ipynb). **Time:**
# 15 minutes to read, under a minute to run, [10 minutes for the exercises](../../docs/course/exercises/lm_saliency.md#05-figures).
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `plausibility`, `floors`, `input_consistency`, `model_consistency`, `sweep`, `astray`, `examples`, `claims` (`.csv`) of stage 4 | `table_3`, `table_8`, `table_4a`, `table_4b`, `table_6`, `figure_1`, `figure_2`, `verdict_all` (`.csv`), seven figures |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import numpy as np
import pandas as pd

from lib.core.files import read_table
from lib.core.notebooks import in_words, show_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.plots import plot_words
from lib.stats import tell_verdicts
from lib.studies.lm_saliency import figures, naming

# %% [markdown]
# ## Settings

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# The paper has four sets. Syneval and Winobias have the same names here, and Syneval is the same line by line. The
# paper's natural sets, the Penn Treebank (PTB) and CoNLL-2012, are licensed. At scale `cpu` the treebank EWT and the
# documents of OntoGUM take their place; at scale `small`, held-out sentences of our grammar do.
#
# In our files the column `scheme` holds the architecture; LSTM and QRNN are [recurrent networks](../../docs/glossary.md).
# The methods are the plain gradient (V), SmoothGrad (SG) and Integrated Gradients (IG). A model has *learnt* a set if it
# tells the two classes apart there better than chance (stage 4, section 2, which has the exceptions).

# %%
stage = open_stage("lm_saliency", scale, "05_figures")
pd.set_option("display.max_colwidth", None)
tables = {
    name: pd.read_csv(stage.input("04_metrics", f"{name}.csv"))
    for name in (
        "plausibility",
        "floors",
        "input_consistency",
        "model_consistency",
        "sweep",
        "astray",
        "examples",
        "claims",
    )
}
numbers = read_table(material("lm_saliency") / "paper_numbers.csv")
ours = tables["plausibility"].query("size == 'full'")
print("rows:", ", ".join(f"{name} {len(table)}" for name, table in tables.items()))

# %% [markdown] tags=["slide"]
# ## 1 · Lines in colour
#
# ![The words 'the author that the taxi drivers like', then an empty place for is or are. An arrow leads from the place to the cue, author, with which the verb agrees. A dashed arrow leads to the attractor, drivers, which would ask for are.](../../docs/schematics/cue_and_attractor.svg)
#
# Which words are evidence for the model's answer? Above each line stand the expected answer and the model's answer. If
# they agree, an explanation passes when a cue has the highest score of all marked nouns. If they differ, it passes when
# an attractor has the highest score. The picture shows one line of each set that has an example. In grey stand the two
# scores that decide: the largest one of a cue, and the largest one of an attractor.

# %% tags=["slide"]
by_word = tables["examples"].fillna({"role": ""})
about = ["dataset", "line", "scheme", "size", "expected", "says", "method", "passed"]
examples = by_word.groupby(about, sort=False).agg(
    words=("word", list), scores=("score", list), marks=("role", list)
)
largest = by_word.groupby([*about, "role"])["score"].max().unstack()
examples = examples.join(largest[["cue", "attractor"]]).reset_index()
examples["method"] = examples["method"].map(naming.METHODS).str.partition(" (")[0]
verdict = examples["passed"].astype(bool).map({True: "passes", False: "fails"})
grey = [
    f"cue {r.cue:+.4f}, attractor {r.attractor:+.4f}".replace("-", "\N{MINUS SIGN}")
    for r in examples.itertuples()
]
examples["label"] = examples["method"] + ": " + verdict + "\n" + grey
looks = {
    "marks": {
        "cue": "cue: agrees with the expected answer",
        "attractor": "attractor: could mislead",
    },
    "toward": "speaks for what the model says",
    "digits": None,
}

full = examples.query("size == 'full'")
best = full.groupby("dataset")["scheme"].transform("first")  # by its probe
lines = full[full["scheme"] == best]
is_last = lines["line"] == lines.groupby("dataset")["line"].transform("last")
lines = lines[is_last].reset_index(drop=True)
lines["heading"] = [
    f"{r.dataset}, line {r.line}: expected {r.expected}, the model says {r.says}"
    for r in lines.itertuples()
]
figure, _ = plot_words(
    lines,
    title="A row passes or fails by its marked nouns, however dark other words are.",
    **looks,
)
stage.figure("examples", figure, formats)
print(f"{len(lines)} of {len(examples)} explanations are shown")

# %% [markdown] tags=["slide"]
# The plausibility test uses only the marked (underlined) nouns, even where another word is the darkest of its row.
# Shades are relative to the largest score of a row, so marked nouns can be nearly white. [examples.csv](../../outputs/reference/lm_saliency/cpu/04_metrics/examples.csv) has the examples of scale `cpu`
# with the scores of all their words.
#
# ## 2 · Table 3: plausibility
#
# Claim of the paper: SG and IG are more plausible than V on every set and architecture (its own table has one exception). Where a set has the same name as the paper's,
# the figure also shows the paper's numbers, in grey below ours.

# %%
columns = ["dataset", "scheme", "learnt", "method", "share_exp"]
columns += ["all", "low", "high", "exp", "alt", "paper"]
of_paper = numbers[numbers["quantity"].eq("plausibility") & numbers["class"].eq("all")]
keys = ["dataset", "scheme", "method"]
theirs = of_paper.drop_duplicates(keys).set_index(keys)["value"]
places = zip(*(ours[name] for name in keys))
ours = ours.assign(paper=[theirs.get(place, np.nan) for place in places])
is_named = ours["method"].isin(naming.METHODS)
table_3 = ours.loc[is_named, columns].reset_index(drop=True)

# %% [markdown] tags=["slide"]
# The figure also shows two rules: *random scores*, and *nearest noun*, which scores the last marked noun highest. They
# never use the words of a line. How often they pass depends only on the places of the nouns and on the model's answers.

# %% tags=["slide"]
title = figures.plausibility_title(table_3, tables["floors"])
figure = figures.plot_plausibility(table_3, tables["floors"], title)
stage.figure("table_3", figure, formats)

# %% [markdown]
# The same numbers, each beside the paper's. Where a set of ours takes the place of one of the paper's, the
# paper's set stands in brackets:


# %% tags=["nbval-ignore-output"]
method_names = naming.METHODS | naming.NORMS


def beside(ours, value, table, quantity, scenario):
    """Show this run and the paper: a row for each set and architecture."""
    is_meant = numbers["source"].eq(f"Ding & Koehn 2021, {table}")
    is_meant &= numbers["quantity"].eq(quantity) & numbers["class"].eq(scenario)
    printed, rows = numbers[is_meant].set_index(keys)["value"], {}
    for r in ours.itertuples():
        theirs = naming.IN_THE_PAPER.get(r.dataset, r.dataset)
        told = r.dataset if theirs == r.dataset else f"{r.dataset} ({theirs})"
        row = rows.setdefault((told, r.scheme), {"set": told, "architecture": r.scheme})
        row[method_names[r.method]] = getattr(r, value)
        place = (theirs, r.scheme, r.method)
        row[f"{r.method} in the paper"] = printed.get(place, np.nan)
    both = pd.DataFrame(rows.values()).round(3)
    show_table(both, naming.columns(*both))


stage.table("table_3", table_3)
beside(table_3, "all", "Table 3", "plausibility", "all")

# %% [markdown]
# *Reading it.* Only models that have learnt their set (filled marks above) are evidence for or against the claim. The
# paper does not report which of its models have learnt their sets; its columns are copied as printed.
#
# ## 3 · Table 8: the size of the gradient
#
# Claim of the paper: with gradient times input, SmoothGrad is better than V (section 2). With the *size* of the gradient
# instead (*vector norm*, +VN), it loses this advantage. A size has no sign, so it cannot give an attractor a negative
# score. Here too, only models that have learnt their set are evidence.

# %% tags=["nbval-ignore-output"]
is_size = ours["method"].isin(["V+VN", "SG+VN"])
table_8 = ours.loc[is_size, columns].reset_index(drop=True)
stage.table("table_8", table_8)
beside(table_8, "all", "Table 8", "plausibility", "all")

# %% [markdown] tags=["slide"]
# *Reading it.* The claim that we judge is narrower: by the size of the gradient, SG passes fewer lines than with gradient
# times input. At scale `cpu` this holds<!-- lm_saliency/cpu/04_metrics/claims[id=vector_norm_worse].verdict -->. Whether SG then loses its
# advantage over V is not judged: in some rows SG+VN passes more lines than V+VN, in others fewer.
#
# ## 4 · Tables 4a and 4b: the same reason
#
# Claims of the paper: when two lines differ in a noun, the most consistent method is IG for the LSTM and SG for the
# Transformer (4a). And consistency is lower between a model and its student than between two such lines in one model
# (4b). Only Syneval and Winobias have templates, lines that differ in nouns alone. So 4a does not compare other sets.

# %% tags=["slide"]
is_learnt = {(r.dataset, r.scheme): r.learnt for r in ours.itertuples()}
inputs, models = tables["input_consistency"], tables["model_consistency"]
panels = {
    "two lines of one template (4a)": inputs[inputs["size"] == "full"],
    "a model and its student (4b)": models,
}
panels = {name: part[part["side"] == "verum"] for name, part in panels.items()}
of_students = panels["a model and its student (4b)"].query("method in @naming.METHODS")
means = of_students.groupby("scheme")["estimate"].mean()
title = (
    f"A model and its student are explained most alike in the {means.idxmax()} "
    f"(mean correlation {means.max():.2f})"
)
figure = figures.plot_consistency(panels, is_learnt, title)
stage.figure("table_4", figure, formats)

# %% [markdown]
# The tables hold correlations of the scores for the expected class. The paper calls this column *exp.*, our files call it
# `verum`. Table 4a:

# %% tags=["nbval-ignore-output"]
both = ["dataset", "scheme", "size", "method", "side", "estimate", "low", "high"]
of_tables = inputs["method"].isin(naming.METHODS)
of_tables &= inputs["size"].isin(["full", "student"])
stage.table("table_4a", inputs.loc[of_tables, both].reset_index(drop=True))
of_full = inputs[of_tables].query("size == 'full' and side == 'verum'")
beside(of_full, "estimate", "Table 4a", "input_consistency", "exp")

# %% [markdown]
# Table 4b:

# %% tags=["nbval-ignore-output"]
stage.table("table_4b", models[both].reset_index(drop=True))
beside(of_students, "estimate", "Table 4b", "model_consistency", "exp")

# %% [markdown]
# *Reading it.* Explanations can also correlate strongly for a model that has not learnt the set. Such a correlation is no
# evidence about the method. At scale `cpu` two of three claims about 4a are decided (LSTM: undecided<!-- lm_saliency/cpu/04_metrics/claims[id=lstm_ig_more_consistent].verdict -->,
# Transformer: partly<!-- lm_saliency/cpu/04_metrics/claims[id=transformer_sg_more_consistent].verdict -->, the LSTM that was taught: holds<!-- lm_saliency/cpu/04_metrics/claims[id=taught_lstm_ig_more_consistent].verdict -->). *4b is lower than 4a*, which the paper finds throughout, holds
# partly<!-- lm_saliency/cpu/04_metrics/claims[id=model_below_input_consistency].verdict -->: for LSTM and QRNN on Winobias with every method. (On Syneval, for models taught grammar, partly<!-- lm_saliency/cpu/04_metrics/claims[id=taught_model_below_input_consistency].verdict -->.) For the Transformer it is the
# reverse, with every method: on Winobias SG has .98<!-- lm_saliency/cpu/04_metrics/model_consistency[dataset=Winobias, scheme=Transformer, method=SG, side=verum].estimate --> in
# 4b and .92<!-- lm_saliency/cpu/04_metrics/input_consistency[dataset=Winobias, scheme=Transformer, size=full, method=SG, side=verum].estimate --> in 4a.
#
# ## 5 · Table 6: the students
#
# Claim of the paper: the explanations of a distilled QRNN are far more plausible than those of the QRNN itself. On
# Syneval with IG the paper has
# 0.981<!-- lm_saliency/material/paper_numbers[id=table6_plausibility_student_Syneval_QRNN_IG_all].value --> for the
# student and 0.797<!-- lm_saliency/material/paper_numbers[id=table3_plausibility_Syneval_QRNN_IG_all].value --> for its
# teacher. For each student and test the paper prints one method only, nearly always its teacher's best. The table compares
# shares of all lines (the paper's column *all*); `table_6.csv` has the other columns, and input consistency.

# %% tags=["nbval-ignore-output"]
of_student = tables["plausibility"].query("size == 'student'")
test_of = {
    "plausibility_student": of_student.set_index(["dataset", "scheme", "method"]),
    "input_consistency_student": inputs.query("size == 'student'").set_index(
        ["dataset", "scheme", "method", "side"]
    ),
}
sides = {"exp": "verum", "alt": "malum"}


def ours_at(row, scheme):
    """Our number for a cell of the paper's table, in a student of this architecture."""
    key, column = (row.dataset, scheme, row.method), row.scenario
    if row.quantity.startswith("input"):
        key, column = (*key, sides[row.scenario]), "estimate"
    frame = test_of[row.quantity]
    return frame.loc[key, column] if key in frame.index else np.nan


of_paper = numbers[numbers["source"].str.endswith("Table 6")]
table_6 = pd.DataFrame(
    {
        "test": row.quantity.removesuffix("_student"),
        **{name: getattr(row, name) for name in ("dataset", "scheme", "method")},
        "column": row.scenario,
        "paper": row.value,
        "ours": ours_at(row, row.scheme),
        "taught": ours_at(row, row.scheme + naming.GRAMMAR),
    }
    for row in of_paper.rename(columns={"class": "scenario"}).itertuples()
)
table_6 = stage.table("table_6", table_6)
of_all = table_6.query("test == 'plausibility' and column == 'all'")
human = naming.columns("scheme", "method", "dataset", "paper", "ours")
if table_6["taught"].notna().any():
    human |= {"taught": "this run, with the grammar"}
in_words(of_all.replace({"method": naming.METHODS}), human)

# %% [markdown] tags=["slide"]
# *Reading it.* At scale `cpu`, with IG, the student of the QRNN passes fewer lines than the QRNN
# on every set. The claim
# fails<!-- lm_saliency/cpu/04_metrics/claims[id=qrnn_student_more_plausible].verdict -->: on Winobias, where alone it could be judged, a gain of five points is ruled out (student minus full: -.05<!-- lm_saliency/cpu/04_metrics/contrasts[id=qrnn_student_more_plausible, comparison=Winobias, QRNN, IG: student - full].estimate -->
# [-.08<!-- lm_saliency/cpu/04_metrics/contrasts[id=qrnn_student_more_plausible, comparison=Winobias, QRNN, IG: student - full].low -->, -.01<!-- lm_saliency/cpu/04_metrics/contrasts[id=qrnn_student_more_plausible, comparison=Winobias, QRNN, IG: student - full].high -->]). On Syneval, students of a QRNN taught grammar (column *taught*) pass all; their gain is .03<!-- lm_saliency/cpu/04_metrics/contrasts[id=taught_qrnn_student_more_plausible, comparison=Syneval, QRNN+grammar, IG: student - full].estimate --> [.00<!-- lm_saliency/cpu/04_metrics/contrasts[id=taught_qrnn_student_more_plausible, comparison=Syneval, QRNN+grammar, IG: student - full].low -->, .16<!-- lm_saliency/cpu/04_metrics/contrasts[id=taught_qrnn_student_more_plausible, comparison=Syneval, QRNN+grammar, IG: student - full].high -->]: undecided<!-- lm_saliency/cpu/04_metrics/claims[id=taught_qrnn_student_more_plausible].verdict -->.
#
# ## 6 · Table 7: a right answer, and the wrong noun
#
# In the paper's Table 7 a distilled Transformer answers correctly, and all three methods point at a noun that has the right
# number and is not the subject. Such an explanation passes our test, and our lines do not mark the subject. So we count a
# worse case: of the lines that a model answers as expected, in how many do all three methods put an attractor, a noun of
# the other number or gender, first?

# %% tags=["slide"]
astray = tables["astray"].merge(
    tables["plausibility"].drop_duplicates(["dataset", "scheme", "size"])[
        ["dataset", "scheme", "size", "learnt"]
    ]
)
share = 100 * astray.loc[astray["learnt"], "estimate"]
ends = dict.fromkeys(f"{value:.0f}" for value in (share.min(), share.max()))
title = (
    f"Right answers for which no method finds a cue: {' to '.join(ends)} % "
    "where a model or student has learnt its set"
    if len(share)
    else "No model has learnt a set, so nothing is said about its right answers"
)
figure = figures.plot_astray(astray, title)
stage.figure("table_7", figure, formats)

# %% [markdown]
# A filled mark means that the model has learnt this *set*. Its probe may still fail on the validation text of the *task*
# (stage 2, section 4).
#
# The next picture shows one line of a model and its student, which give the same answer. If possible both have learnt
# the set, the answer is right, and a method passes in only one of the two; these wishes come in this order.

# %%
place = ["dataset", "line", "scheme", "says", "expected"]
two = examples.assign(passed=examples["passed"].astype(bool)).pivot_table(
    index=[*place, "method"], columns="size", values="passed", sort=False
)
two = two.dropna().reset_index()  # both give this answer
has_learnt = (
    tables["plausibility"].groupby(["dataset", "scheme", "size"])["learnt"].first()
)
two["know"] = [
    all(has_learnt[r.dataset, r.scheme, size] for size in ("full", "student"))
    for r in two.itertuples()
]
two["right"] = two["says"] == two["expected"]
two["differ"] = two["full"] != two["student"]
wishes = ["know", "right", "differ"]
found = two.sort_values(wishes, ascending=False, kind="stable").iloc[0]
pair = examples[(examples[place] == found[place].to_list()).all(axis=1)]
pair = pair.assign(
    heading=[
        f"{r.dataset}, line {r.line}, {r.scheme}: "
        f"the {'model' if r.size == 'full' else 'student'} says {r.says}, "
        f"expected is {r.expected}"
        for r in pair.itertuples()
    ]
)
knowing = two.loc[two["know"], "differ"]
said = f"{two['differ'].sum()} of {len(two)} explanations pass in only one of the two"
title = f"Same answer: {said}"
title += f", {knowing.sum()} of {len(knowing)} where both have learnt the set."
figure, _ = plot_words(pair, title=title, **looks)
stage.figure("table_7_line", figure, formats)

# %% [markdown] tags=["slide"]
# ## 7 · Figures 1 and 2: depth, width, heads
#
# Claim of the paper: IG is better on deeper models, SG on shallower ones; the other settings show no clear pattern. The
# paper prints no numbers for these figures. Each mark is one small Transformer. Figure 1 shows the natural sets (at
# scale `small` the held-out sentences), Figure 2 Syneval. At scale `small` there are three models, at
# `cpu` twenty-one, probed for number only: Figure 1 then shows EWT alone.

# %% tags=["nbval-ignore-output"]
sweep = tables["sweep"][tables["sweep"]["method"].isin(["SG", "IG"])]
natural = [
    name for name in ours["dataset"].unique() if name not in ("Syneval", "Winobias")
]
# the paper's own sets where they are at hand
natural = [name for name in natural if name in ("PTB", "CoNLL")] or natural
columns = ["dataset", "size", "layers", "parameters", "method", "learnt"]
columns += ["all", "low", "high"]
of_figure_1 = sweep[sweep["dataset"].isin(natural)].reset_index(drop=True)
of_figure_2 = sweep[sweep["dataset"] == "Syneval"].reset_index(drop=True)
stage.table("figure_1", of_figure_1[columns])
stage.table("figure_2", of_figure_2[[*columns, "input_consistency"]])
place = ["dataset", "size", "method"]
ends = inputs.loc[inputs["side"] == "verum", [*place, "low", "high"]]
of_inputs = of_figure_2.drop(columns=["low", "high"]).merge(ends, on=place, how="left")
print(sweep["size"].nunique(), "small Transformers")

# %% [markdown]
# Figure 1:


# %% tags=["slide"]
def sweep_title(rows):
    """How many of the models have learnt what they are asked about."""
    learnt = rows.groupby("size")["learnt"].any()
    is_enough = learnt.mean() >= 0.5
    told = "read the filled marks" if is_enough else "depth cannot be judged"
    models = f"{learnt.sum()} of {len(learnt)} small Transformers"
    return f"{models} have learnt {' or '.join(rows['dataset'].unique())}: {told}"


panels = [
    (
        f"{name}\n{naming.METHODS[method]}",
        sweep[(sweep["dataset"] == name) & (sweep["method"] == method)],
        "all",
    )
    for name in natural[:2]
    for method in ("SG", "IG")
]
shown = of_figure_1[of_figure_1["dataset"].isin(natural[:2])]
if len(sweep):
    figure = figures.plot_sweep(panels, sweep_title(shown))
    stage.figure("figure_1", figure, formats)
else:
    print("This run left the sweep out: there is no figure.")

# %% [markdown]
# Figure 2, plausibility and input consistency (two lines of one template):

# %% tags=["slide"]
panels = [
    (f"{name}\n{naming.METHODS[method]}", rows[rows["method"] == method], column)
    for name, rows, column in (
        ("plausibility", of_figure_2, "all"),
        ("input consistency", of_inputs, "input_consistency"),
    )
    for method in ("SG", "IG")
]
if len(sweep):
    figure = figures.plot_sweep(panels, sweep_title(of_figure_2))
    stage.figure("figure_2", figure, formats)
else:
    print("There is no Figure 2 either.")

# %% [markdown]
# *Reading it.* Hollow marks belong to models that have not learnt the set, so they are no evidence about the claim. At scale
# `small` all marks are hollow. At `cpu` the models also read sentences of a grammar, and all twenty-one have learnt Syneval.
# There SG passes more lines in the shallow models, as the paper says: eight layers minus two is
# -.047<!-- lm_saliency/cpu/04_metrics/contrasts[id=sg_better_on_shallow_models, comparison=Syneval, SG: 8 - 2].estimate -->
# [-.076<!-- lm_saliency/cpu/04_metrics/contrasts[id=sg_better_on_shallow_models, comparison=Syneval, SG: 8 - 2].low -->,
# -.019<!-- lm_saliency/cpu/04_metrics/contrasts[id=sg_better_on_shallow_models, comparison=Syneval, SG: 8 - 2].high -->]. For IG depth shows no clear
# difference. On EWT a comparison needs all seven models of a depth, and some have not learnt it. So the verdicts are
# partly<!-- lm_saliency/cpu/04_metrics/claims[id=sg_better_on_shallow_models].verdict --> (SG) and
# undecided<!-- lm_saliency/cpu/04_metrics/claims[id=ig_better_on_deep_models].verdict --> (IG).
#
# ## 8 · Verdicts
#
# At scale `small` the next cell only counts. At scale `cpu` it shows twelve of the registered claims, decided ones first
# ([the results page](../../outputs/reference/lm_saliency/cpu/05_figures.ipynb)). *It says* gives the claim's
# quantity and threshold, *found here* our result. A claim can rest on several comparisons, such as one for each set and model;
# then *found here* holds their median and range, and *why* counts them.
#
# A claim **holds** if all comparisons that were run show the effect, and **partly** if only some do, or if half or less could be run. It **fails** if none does
# and one shows the effect absent or reversed. (With *most* registered in place of *all*, more than half decide.) It is
# **undecided** if the data cannot tell, and **not run** if it lacks rows, or its model has not learnt the set.
#
# One line counts the numbers that the paper prints.
# [The table](../../outputs/reference/lm_saliency/cpu/05_figures/verdict_all.csv) has all claims and numbers. In its column
# `ours` stands our value; for registered claims, minus the claim's threshold.
#
# Of the fifteen claims that were registered at first, 12<!-- lm_saliency/cpu/decided[claims=registered at first, state=after].decided --> are decided at scale `cpu`; before books joined the training text, 1<!-- lm_saliency/cpu/decided[claims=registered at first, state=before].decided -->
# was. 2<!-- lm_saliency/cpu/decided[claims=registered at first, state=after].undecided --> are undecided, for their intervals are too wide, and
# 1<!-- lm_saliency/cpu/decided[claims=registered at first, state=after].not run --> was not run: it needs an LSTM and a Transformer that have learnt Syneval. Most of the printed numbers belong to models or sets that were not run.

# %%
registered = material("lm_saliency") / "claims.yaml"
verdicts = partial(tell_verdicts, stage, tables["claims"], registered)
verdicts("all")

# %% [markdown]
# *Reading it.* At scale `small` there is one training run of each model. Then no claim about trained models can be
# decided, because the spread between training runs is not known. So scale `small` shows that every step works, and what
# each test means.

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

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
from lib.core.notebooks import in_words
from lib.studies.lm_saliency import naming

answers = read_committed("lm_saliency", "cpu", "04_metrics", "answers")
answers = answers.query("dataset == 'Syneval' and size == 'full'")
human = naming.columns("scheme", right_1="right, plural", right_0="right, singular")
human |= {"says_1": "says plural", "balanced": "balanced accuracy"}
in_words(answers.round(2), human)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# `answers` says how often each model is right on the lines of Syneval: on those with a plural verb and on those with a singular one. Half of the lines are of each kind. What is the balanced accuracy of a model that always answers *singular*?

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
# Suppose that a model answers *singular* on every line of Syneval. Its explanations still get a share of passed lines. What is that share worth?
#
# - `"a"` It shows that the explanation finds the cue.
# - `"b"` Nothing about grammar: a constant answer rests on no noun, so there is no reason to find.
# - `"c"` It shows that the explanation is wrong.

# %% tags=["hole"]
what_it_is_worth = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_is_worth = "b"

# %% tags=["check"]
check_choice(
    what_it_is_worth,
    "b",
    {
        "a": "Would the model's answer change if the cue were another noun?",
        "c": "Wrong about what? There is no right answer to compare with here.",
    },
)
