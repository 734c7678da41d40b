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
# # CEBaB, stage 4 of 5: how far are the explainers off, and what is a good error?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb) · the study: [README](README.md) · paper: [sections 3 and 6](https://arxiv.org/abs/2205.14140)
#
# ## What we found
#
# - **Approx, the paper's best explainer, has a larger L2 error than the answer "nothing changes"**: .725<!-- cebab/cpu/04_metrics/errors[explainer=Approx, model=encoder, metric=L2].error --> against
#   .652<!-- cebab/cpu/04_metrics/errors[explainer=Zero, model=encoder, metric=L2].error --> ([figure](../../outputs/reference/cebab/cpu/05_figures/figure_2.png)). It holds for both models, the encoder and the BiLSTM (a recurrent network that reads both ways).
# - **Smaller estimates would be nearer.** Multiplied by one number a run, on average .45<!-- cebab/cpu/04_metrics/scaled[explainer=Approx, model=encoder].scale -->, the error is
#   .601<!-- cebab/cpu/04_metrics/scaled[explainer=Approx, model=encoder].L2_scaled --> ([table](../../outputs/reference/cebab/cpu/04_metrics/scaled.csv)).
# - **If two editors make the same change, the effects of their edits differ by** .402<!-- cebab/cpu/04_metrics/ceiling[same=label, model=encoder, metric=L2].error --> (L2)
#   ([table](../../outputs/reference/cebab/cpu/04_metrics/ceiling.csv)). We have only twenty such pairs.
#
# These results are from the run at scale `cpu`; the cells below show `small`.
#
# The changed texts exist, so we know what a change really does to the model. This stage compares the estimates of stage 3 with it.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how well rules without concepts do;
# - what human edits change besides their goal.
#
# **You can then** compute three errors of an effect, and say what each does not notice. **You need**
# [stage 3](03_attribution.ipynb), and what the length of a vector is. **Time:** 20 minutes to read, under a minute to
# run, [20 minutes for the exercises](../../docs/course/exercises/cebab.md#04-metrics).
#
# | in | from |
# |---|---|
# | `texts`, `pairs` | 01 |
# | `predictions`, `aspects`, `trainings` | 02 |
# | `estimates`, `outside` (all `.parquet`) | 03 |
#
# Out: this page's tables (`.csv`) and two figures.

# %%
import lib.same_numbers  # first: the same instructions on every processor

import numpy as np
import pandas as pd

from lib import stats
from lib.core.files import load_parquet, read_table
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.metrics import concept_effects
from lib.plots import plot_errors, plot_three_effects
from lib.studies.cebab.outside import ABOUT_IT, NAME, caution, claims_about_it
from lib.studies.cebab.pairs import goals_reached, repeated_edits, spill_over
from lib.studies.cebab.registry import family_of
from lib.studies.cebab.reviews import ASPECTS, in_classes, rating_labels
from lib.studies.cebab.words import in_words

# %% [markdown]
# ## Settings

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the resamples and the shuffled estimates
n_threads = 1  # CPU threads
n_bootstrap = 500  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha
compared = [
    "Zero",
    "No concept",
    "CONEXP",
    "Approx",
    "Approx (mean)",
    "S-Learner",
    "TCAV",
    "INLP",
    "CausaLM",
    "Causal Proxy Model",
]  # explainers that are compared in pairs

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | ICaCE, *individual causal concept effect* | the effect of one change on the model (eq. 2) | `icace` |
# | ICaCE-Error, *error of the estimated effect* | mean distance from ICaCE to the estimate (eq. 3) | `L2`, `cosine`, `normdiff` |
# | CaCE, *causal concept effect* | the mean ICaCE of an aspect and a direction (eq. 4) | `CaCE` |
# | ATE, *average treatment effect* | the mean change of the readers' stars (eq. 5) | `ATE` |
#
# *In stars* means the change of the expected class.

# %%
stage = open_stage("cebab", scale, "04_metrics")
set_up(seed, n_threads)
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
texts = load_parquet(stage.input("01_data_generation", "texts.parquet"))
pairs = load_parquet(stage.input("01_data_generation", "pairs.parquet")).query(
    "split == 'test'"
)
predictions, aspects, trainings = (
    load_parquet(stage.input("02_training", f"{name}.parquet"))
    for name in ("predictions", "aspects", "trainings")
)
outside = load_parquet(stage.input("03_attribution", "outside.parquet"))
n_classes = sum(name.startswith("p_") for name in predictions)
told = [table for table in (predictions, outside) if len(table)]
predictions = pd.concat(told, ignore_index=True)
answers = load_parquet(stage.input("03_attribution", "estimates.parquet"))
answers["family"] = answers["explainer"].map(family_of)
answers = answers if "scale" in answers else answers.assign(scale=np.nan)
order = list(dict.fromkeys(answers["explainer"]))
# Tables show these explainers; the files have all.
well_known = ["Zero", "No concept", "CONEXP", "Approx", "Approx (mean)", "S-Learner"]
well_known += ["TCAV", "ConceptSHAP", "INLP", "CausaLM", "LEACE", "Causal Proxy Model"]
print(f"{len(answers)} estimates of {len(order)} explainers")

# %% [markdown] tags=["slide"]
# ## 1 · One effect by hand
#
# ![Two texts that differ in one concept. original: The soup was wonderful but the waiter was rude . edit: The soup was awful but the waiter was rude . Below, for the classes bad, fair, good: answer to the original (0.1, 0.3, 0.6); answer to the edit (0.5, 0.3, 0.2); effect (0.4, 0.0, -0.4). The effect is the second answer minus the first.](../../docs/schematics/edit.svg)
#
# Take three classes. A model answers (.1, .3, .6) to a text with good food and (.5, .3, .2) to the same text
# with bad food. The effect is the difference, (.4, 0, -.4). Three explainers estimate it:
#
# | explainer | estimate |
# |---|---|
# | timid | (.1, 0, -.1) |
# | reversed | (-.4, 0, .4) |
# | silent | (0, 0, 0) |
#
# ![Two arrows from one point, the true effect and an estimate, and three errors: L2 0.37 is the distance of their tips, the cosine error 0.13 looks at the angle alone, and Normdiff 0.32 at the lengths.](../../docs/schematics/errors_of_an_effect.svg)
#
# **L2** is the length of the difference. The **cosine error** is 1 minus the cosine of the angle between the two. Equal directions have 0, opposite ones 2. An
# estimate of zero has 1. **Normdiff** is the difference of the two lengths.
#
# **Stop and guess.** Which of the three explainers has the smallest L2?

# %% tags=["slide"]
effect = np.array([[0.5, 0.3, 0.2]]) - np.array([[0.1, 0.3, 0.6]])
said = {
    "timid": [[0.1, 0, -0.1]],
    "reversed": [[-0.4, 0, 0.4]],
    "silent": [[0.0, 0, 0]],
}
table = pd.DataFrame(
    {
        name: {
            "L2": concept_effects.l2(effect, np.array(v))[0],
            "cosine": concept_effects.cosine(effect, np.array(v))[0],
            "normdiff": concept_effects.normdiff(effect, np.array(v))[0],
        }
        for name, v in said.items()
    }
).T
assert np.allclose(table["L2"], [0.424, 1.131, 0.566], atol=0.001) and np.allclose(
    table["cosine"], [0, 2, 1]
)
assert np.isclose(table.loc["reversed", "normdiff"], 0)
shown = table.reset_index(names="explainer")
in_words(shown, {name: name for name in shown})

# %% [markdown] tags=["slide"]
# The timid one. The cosine error does not notice that its estimate is too small, and Normdiff does not notice the wrong direction of *reversed*. The L2 error of *silent* is exactly the length of the
# effect.
#
# ## 2 · What the model really does
#
# In a text $x$ a concept has the value $c$; $x_{c \to c'}$ is its edit. A model's answer $N(\cdot)$ has a probability for each class. The effect is the difference of two answers (equation 2):
#
# $$\mathrm{ICaCE}_N(x, x_{c \to c'}) = N(x_{c \to c'}) - N(x)$$

# %%
show_source(concept_effects.icace)
show_source(concept_effects.cosine)
assert np.allclose(concept_effects.in_stars(effect), -0.8)

# %% [markdown]
# If a change is reversed, its CaCE only changes its sign. So we keep three of the six changes of an aspect.


# %%
def cace_of(dataset, model, number):
    """CaCE of a model, in stars, for the test pairs that it has read both sides of."""
    said = predictions.query(
        "dataset == @dataset and model == @model and seed == @number"
    )
    mine = pairs[
        (pairs["dataset"] == dataset)
        & pairs["base_id"].isin(said["text_id"])
        & pairs["counterfactual_id"].isin(said["text_id"])
    ]
    means = concept_effects.mean_effects(mine, concept_effects.icace(mine, said))
    both = means.merge(
        means, left_on=concept_effects.DIRECTION, right_on=["aspect", "new", "old"]
    )
    assert np.allclose(both["stars_x"], -both["stars_y"])
    classes = [name for name in said if name.startswith("p_")]
    sure = said.assign(
        **dict(zip(classes, np.eye(len(classes))[said[classes].to_numpy().argmax(1)].T))
    )
    means["argmax"] = concept_effects.mean_effects(
        mine, concept_effects.icace(mine, sure)
    )["stars"]
    return means.assign(dataset=dataset, model=model, seed=number)[
        [
            "dataset",
            "model",
            "seed",
            *concept_effects.DIRECTION,
            "stars",
            "argmax",
            "pairs",
        ]
    ]


runs = predictions[["dataset", "model", "seed"]].drop_duplicates()
cace = pd.concat(
    [cace_of(*run) for run in runs.itertuples(index=False)], ignore_index=True
)
forward = [("Negative", "Positive"), ("Negative", "unknown"), ("Positive", "unknown")]
cace = cace[[change in forward for change in zip(cace["old"], cace["new"])]]
print(f"{len(cace)} mean effects")

# %% [markdown]
# The table compares these means, from Negative to Positive, with the change of the readers' stars and, in our worlds,
# with the true effect.

# %% tags=["nbval-ignore-output", "slide"]
label = rating_labels(texts["rating"], n_classes)
rating = texts.assign(label=np.where(label < 0, np.nan, label + 1.0)).set_index(
    ["dataset", "text_id"]
)["label"]
stars = {
    side: rating[list(zip(pairs["dataset"], pairs[f"{side}_id"]))].to_numpy()
    for side in ("base", "counterfactual")
}
facts = pairs.assign(ATE=stars["counterfactual"] - stars["base"])
world = [name for name in pairs if name.startswith("world_")] if n_classes > 2 else []
truth = (
    in_classes(pairs[world].to_numpy(), n_classes)
    if world
    else np.full((len(pairs), n_classes), np.nan)
)
facts["world"] = concept_effects.in_stars(truth)
facts = (
    facts.groupby(["dataset", *concept_effects.DIRECTION], sort=False)[["ATE", "world"]]
    .mean()
    .reset_index()
)
means = (
    cace.groupby(["dataset", "model", *concept_effects.DIRECTION], sort=False)[
        ["stars", "argmax", "pairs"]
    ]
    .mean()
    .reset_index()
)
means = (
    means.sort_values(["old", "new"])
    .sort_values("aspect", key=lambda names: names.map(ASPECTS.index), kind="stable")
    .sort_values(["dataset", "model"], kind="stable")
)
both = stage.table(
    "cace",
    means.rename(columns={"stars": "CaCE", "argmax": "CaCE_argmax"}).merge(
        facts, on=["dataset", *concept_effects.DIRECTION]
    ),
)
model = predictions["model"].iloc[0]  # tables here show one
in_words(
    both.query("model == @model and old == 'Negative' and new == 'Positive'"),
    {"dataset": "data set", "aspect": "aspect", "CaCE": "model, in stars"}
    | {"ATE": "readers", "world": "true effect", "pairs": "pairs"},
)

# %% [markdown] tags=["slide"]
# The readers' stars follow the true effect. Most of the model's effects are smaller, probably because many test words are new.
#
# ## 3 · What two editors agree on
#
# ![Two effects, a and b, are 0.40 apart; an answer beside their line has the errors 0.25 and 0.25, in the mean 0.25, and one on the line 0.15 and 0.25, in the mean 0.20, which is half the distance and the least possible.](../../docs/schematics/two_editors.svg)
#
# Sometimes two editors made the same change to one review. The model does not react to both texts alike, but an explainer gives only one answer. For the effects $a$ and $b$ of the two texts and any answer $e$, the triangle inequality says
#
# $$\tfrac{1}{2}\big(\lVert a - e \rVert + \lVert b - e \rVert\big) \ge \tfrac{1}{2} \lVert a - b \rVert$$
#
# So no explainer can have an L2 error below half the distance of the two effects, the `bound`. The whole distance is
# the *human error*: the L2 error if the effect of the second text is taken as the estimate of the first.
#
# Two edits count as the same change if readers gave both one *label*, or if both editors had one *goal*. Figures use
# the label, because published edits with one goal often differ in it (stage 1). In our worlds every edit reaches its
# goal, so the rows for *goal* repeat those for *label*.


# %% tags=["nbval-ignore-output"]
def ceiling_of(dataset, model, number, same):
    """The distance of two editors' effects on a model."""
    said = predictions.query(
        "dataset == @dataset and model == @model and seed == @number"
    ).query("split == 'test'")
    mine = texts[(texts["dataset"] == dataset) & texts["text_id"].isin(said["text_id"])]
    found = concept_effects.same_question(repeated_edits(mine, same), said)
    return found.assign(
        same=same,
        dataset=dataset,
        model=model,
        seed=number,
        sentence_idx=found["group"],
    )


apart = pd.concat(
    [
        ceiling_of(*run, same)
        for same in ("label", "goal")
        for run in runs.itertuples(index=False)
    ],
    ignore_index=True,
)
by = ["same", "dataset", "model"]
ceiling = pd.concat(
    [
        stats.estimates(apart, by, metric, **how).assign(metric=metric)
        for metric in ("bound", "above_zero", *concept_effects.DISTANCES)
    ],
    ignore_index=True,
)
ceiling = ceiling.rename(columns={"estimate": "error", "n_sentences": "groups"})[
    [*by, "metric", "error", "low", "high", "n", "groups"]
]
shown = stage.table("ceiling", ceiling).query("metric in ['L2', 'bound']")
shown = shown.round(2)
in_words(
    shown[shown["model"] == model],
    {"dataset": "data set", "same": "same", "metric": "measure", "error": "distance"}
    | {"low": "from", "high": "to", "groups": "pairs of editors"},
)

# %% [markdown]
# ## 4 · What else does an edit change?
#
# Whatever else an edit changes is counted as its effect. **Does the edit reach its goal?** The paper says that readers confirm the goal of 99 % of the edits.


# %% tags=["nbval-ignore-output"]
def intervals(table, by, value):
    """`stats.estimates`, and no lines where there are no rows."""
    empty = table[by].assign(estimate=0.0, low=0.0, high=0.0, n=0)
    return stats.estimates(table, by, value, **how) if len(table) else empty


reached = goals_reached(texts)
goals = intervals(reached, ["dataset"], "reached")
majority = reached.groupby("dataset", sort=False)["has_majority"].mean()
goals = goals.rename(columns={"estimate": "reached"}).join(majority, on="dataset")
printed = read_table(material("cebab") / "paper_numbers.csv")
paper = printed.set_index("id")["value"]["text_goals"]
columns = ["dataset", "paper", "reached", "low", "high", "has_majority", "n"]
in_words(
    stage.table("goals", goals.assign(paper=paper)[columns]),
    {"dataset": "data set", "reached": "reach the goal", "low": "from", "high": "to"}
    | {"paper": "paper", "has_majority": "have a majority", "n": "edits"},
)

# %% [markdown]
# **Does the edit leave the other aspects alone?** Nobody labelled them again, so the aspect classifiers of stage 2 read both texts. *Others change* is the share of predictions about the other three aspects that change. The rows *nothing*
# compare two editors' texts with the same label: these change by the classifiers' mistakes, and by what else each editor changed.

# %% tags=["nbval-ignore-output"]
spilt = spill_over(texts, pairs, aspects)
spill = intervals(spilt, ["dataset", "edited"], "changed")
heard = spilt.groupby(["dataset", "edited"], sort=False)["heard"].mean()
spill = spill.rename(columns={"estimate": "share"}).join(
    heard, on=["dataset", "edited"]
)
columns = ["dataset", "edited", "share", "low", "high", "heard", "n"]
in_words(
    stage.table("spill_over", spill[columns]),
    {"dataset": "data set", "edited": "edited aspect", "share": "others change"}
    | {"low": "from", "high": "to", "heard": "edited one changes", "n": "values"},
)

# %% [markdown] tags=["slide"]
# About 20 % of the other aspects' values change, and 16 % where nothing was edited. So the classifiers' mistakes can explain most of these changes.
#
# ## 5 · The errors
#
# The error of an explainer $\mathcal{E}$ is its mean distance from the effect on the model over all pairs, $D$ (equation 3). Dist is one of the three distances of section 1:
#
# $$\text{ICaCE-Error}_N(\mathcal{E}) = \frac{1}{|D|} \sum_{D} \mathrm{Dist}\big(\mathrm{ICaCE}_N(x, x_{c \to c'}),\; \mathcal{E}(x, c')\big)$$

# %%
show_source(concept_effects.score_estimates)
scored = concept_effects.score_estimates(answers, predictions)
print(f"{len(scored)} rows; one for each explainer, model and pair")

# %% [markdown] tags=["slide"]
# The figure has the mean errors of ten explainers, with 95 % intervals over groups of texts; `errors.csv` has all.
# Vertical lines are **floors**, the errors of rules without concepts; pink lines are the distances of section 3. *Zero*
# answers that nothing changes. *No concept* is the model's mean answer to the train texts, minus its answer to this
# text. *Random* draws a vector.

# %% tags=["nbval-ignore-output", "slide"]
by = ["dataset", "model", "explainer", "family"]
errors = pd.concat(
    [
        stats.estimates(scored, by, metric, **how).assign(metric=metric)
        for metric in concept_effects.DISTANCES
    ],
    ignore_index=True,
)
errors = errors.rename(columns={"estimate": "error", "n_sentences": "groups"})[
    [*by, "metric", "error", "low", "high", "n", "groups", "n_seeds"]
]
_ = stage.table("errors", errors)
of_model = errors[errors["model"] == model]
# Ten explainers are enough to look at, and floors and what comes from outside.
drawn = of_model["explainer"].isin([*well_known, "Random"])
drawn |= of_model["family"] == "outside"
figure, plotted = plot_errors(of_model[drawn], ceiling[ceiling["same"] == "label"])
stage.figure("errors", figure)
_ = stage.table("figure", of_model[list(plotted)])

# %% [markdown] tags=["slide"]
# An explainer with a larger L2 error than *Zero* is worse than none. *No concept* does not know which aspect is asked about. Still, its cosine error is smaller than that of several methods.
#
# ### Direction and size apart
# L2 measures direction and size together. So in each run we multiply an explainer's estimates by one number fitted on dev; `scale` is the mean. If it is below
# 1, smaller estimates would be nearer: they are too long, or often point elsewhere. The table is about
# the encoder in the confounded world.

# %% tags=["nbval-ignore-output"]
numbers = [name for name in answers if name.startswith("e_")]
sized = answers.assign(**answers[numbers].mul(answers["scale"], axis=0))
scored["L2_scaled"] = concept_effects.score_estimates(sized, predictions)["L2"]
by = ["dataset", "model", "explainer"]
scaled = intervals(scored.dropna(subset="L2_scaled"), by, "L2_scaled")
per_run = answers.groupby([*by, "seed"], sort=False)["scale"].mean()
sizes = per_run.groupby(by, sort=False).agg(["mean", "min", "max"])
sizes.columns = ["scale", "scale_lowest", "scale_highest"]
scaled = scaled.rename(columns={"estimate": "L2_scaled"}).join(sizes, on=by)
plain = errors[errors["metric"] == "L2"].set_index(by)["error"].rename("L2")
scaled = stage.table(
    "scaled", scaled.join(plain, on=by)[[*by, *sizes, "L2", "L2_scaled", "low", "high"]]
)
first = errors[["dataset", "model"]].iloc[0]


def of_first(table):
    """The rows of the well-known explainers, about the first data set and model."""
    here = table[["dataset", "model"]].eq(first).all(axis=1)
    return table[here & table["explainer"].isin(well_known)]


in_words(
    of_first(scaled).sort_values("L2_scaled"),
    {"explainer": "explainer", "L2": "L2", "scale": "scale"}
    | {"L2_scaled": "L2 with the scale", "low": "from", "high": "to"},
)

# %% [markdown]
# After scaling, Approx has a smaller error than *Zero*. CausaLM, ConceptSHAP and *No concept* stay worse: a factor makes the mean *squared* error on dev smallest.
#
# ### What the cosine is about
# Does *No concept* know whether a change is good or bad? The table says how often a change in *stars* has the right
# sign. It also has the cosine error from original to edit, back, and between edits.

# %% tags=["nbval-ignore-output"]
sides = ["dataset", "base_id", "counterfactual_id"]
kinds = scored.merge(pairs[[*sides, "kind"]], on=sides)
kinds["right_sign"] = (
    (np.sign(kinds["estimate"]) == np.sign(kinds["effect"]))
    .astype(float)
    .where(kinds["effect"] != 0)
)
found = ["estimate", "low", "high"]
signs = intervals(kinds, by, "right_sign").set_index(by)[found]
by_kind = (
    kinds.pivot_table(index=by, columns="kind", values="cosine", sort=False)[
        ["original", "reverse", "edits"]
    ]
    .join(signs.rename(columns={"estimate": "right_sign"}))
    .reset_index()
)
by_kind = stage.table("by_kind", by_kind)
in_words(
    of_first(by_kind),
    {"explainer": "explainer", "right_sign": "right sign", "low": "from", "high": "to"}
    | {"original": "to an edit", "reverse": "back", "edits": "between edits"},
)

# %% [markdown]
# **A small cosine error alone does not show that an explainer knows concepts.** *No concept* has the right sign less
# often than CONEXP (conditional expectation) and S-Learner. A model gives most probability to one class. Most changes
# take some of it away. *No concept* predicts just that, whatever the change is.
#
# *Zero* says nothing about the sign. TCAV (concept activation vectors) uses one direction for a change and its reverse, so its sign can be right in about half of the pairs.
#
# ### Where two editors made the same change
# The next table is about the questions of section 3, where the human error is .14 (L2). The smallest L2 of an
# explainer is .217.

# %% tags=["nbval-ignore-output"]
tested = texts[texts["split"] == "test"]
twice = pd.concat(
    [
        repeated_edits(part)
        .melt("original_id", ["first_id", "second_id"], value_name="counterfactual_id")
        .assign(dataset=name)
        for name, part in tested.groupby("dataset", sort=False)
    ]
).rename(columns={"original_id": "base_id"})
few = scored.merge(twice[sides].drop_duplicates(), on=sides)
few = (
    few.groupby(by, sort=False)[list(concept_effects.DISTANCES)]
    .mean()
    .join(few.groupby(by, sort=False)["row_id"].nunique().rename("questions"))
    .reset_index()
)
few = stage.table("asked_twice", few)
names = ["explainer", *concept_effects.DISTANCES, "questions"]
in_words(of_first(few), dict(zip(names, names)))

# %% [markdown]
# The errors above are means over pairs. Means over aspects (*macro*) hardly differ:

# %% tags=["nbval-ignore-output"]
counted = concept_effects.macro(scored, ["dataset", "model", "explainer"]).melt(
    ["dataset", "model", "explainer"], var_name="metric", value_name="macro"
)
both = counted.merge(
    errors[["dataset", "model", "explainer", "metric", "error"]],
    on=["dataset", "model", "explainer", "metric"],
)
both = stage.table("macro", both.rename(columns={"error": "micro"}))
change = (both["macro"] - both["micro"]).groupby(both["metric"])
change = change.agg(["mean", "min", "max"]).round(3).reset_index()
names = {"metric": "macro minus micro", "mean": "mean"}
in_words(change, names | {"min": "smallest", "max": "largest"})

# %% [markdown]
# Stage 5 draws errors by direction.

# %% tags=["nbval-ignore-output"]
directions = (
    scored.groupby(
        ["dataset", "model", "explainer", *concept_effects.DIRECTION], sort=False
    )[list(concept_effects.DISTANCES)]
    .mean()
    .reset_index()
)
saved = stage.table("by_direction", directions)
print(f"{len(saved)} means of an explainer, an aspect and a direction")

# %% [markdown]
# Below 0 in `approx_by_direction`, *Approx* is nearer than *Zero*.

# %% tags=["nbval-ignore-output"]
places = ["dataset", "model", *concept_effects.DIRECTION]
leads = {
    key: stats.paired_differences(
        *(part[part["explainer"] == name] for name in ("Approx", "Zero")), "L2"
    )
    for key, part in scored.groupby(places, sort=False)
}
minus_zero = pd.concat(leads, names=places).reset_index(places)
against = intervals(minus_zero, places, "difference")[[*places, *found, "n"]]
_ = stage.table("approx_by_direction", against.rename(columns={found[0]: "difference"}))

# %% [markdown]
# ### Does the order hold?
# After which of two changes of one text does the model give more stars? The table has the share of pairs that an explainer
# puts in the right order. Guessing gives .5; a tie counts as .5 (after LIBERTy, arXiv 2601.10700).


# %% tags=["nbval-ignore-output"]
def agreement(part):
    """Order-faithfulness of one explainer on one model, a row a text."""
    found = concept_effects.order_faithfulness(
        part, part[["effect"]].to_numpy(), part[["estimate"]].to_numpy()
    )
    group = part.drop_duplicates("base_id").set_index("base_id")["group"]
    return found.assign(sentence_idx=group[found["base_id"]].to_numpy())


agreed = pd.concat(
    [
        agreement(part).assign(
            **dict(zip(["dataset", "model", "explainer", "seed"], key))
        )
        for key, part in scored.groupby(
            ["dataset", "model", "explainer", "seed"], sort=False
        )
    ]
)
ordered = stats.estimates(
    agreed, ["dataset", "model", "explainer"], "agree", **how
).rename(columns={"estimate": "agree"})
ordered = stage.table(
    "order", ordered[["dataset", "model", "explainer", "agree", "low", "high"]]
)
in_words(
    of_first(ordered).sort_values("agree", ascending=False),
    {"explainer": "explainer", "agree": "ordered correctly"}
    | {"low": "from", "high": "to"},
)

# %% [markdown] tags=["slide"]
# CONEXP does not read the text, but orders changes about as well as methods that do. It only has to know that praise
# adds more stars than no mention. *Zero* and *No concept* give one estimate for all changes of a text, so every pair is
# a tie.
#
# ## 6 · The world, the model, the estimate
#
# In our worlds a change has an effect on the *world* (by the equations) and on the *model*; an explainer
# *estimates* the latter. An estimate closer to the world than to the model would tell us about restaurants, and not
# about the model.

# %%
known, columns = bool(world), [f"world_{k + 1}" for k in range(n_classes)]
far = ["model_to_world", "estimate_to_model", "estimate_to_world"]
three = (
    concept_effects.three_distances(
        answers, predictions, pairs[sides].assign(**dict(zip(columns, truth.T)))
    )
    if known
    else pd.DataFrame(columns=["dataset", "model", "explainer", *far])
)
print(f"{len(three)} estimates of a change whose effect on the world is known")

# %% [markdown]
# What does confounding do to explainers? The figure shows the change from Negative to Positive.


# %% tags=["nbval-ignore-output", "slide"]
def who_says_what(
    named=(
        "CONEXP",
        "Approx (mean)",
        "S-Learner",
        "S-Learner (soft, from the text)",
        "LEACE (towards c')",
    ),
):
    """The world, the first model and some explainers of it, in stars, by aspect."""
    better = three[
        (three["model"] == three["model"].iloc[0])
        & (three["old"] == "Negative")
        & (three["new"] == "Positive")
    ]
    keys = ["dataset", "aspect"]
    parts = {
        "the world": better.groupby(keys)["world"].mean(),
        "the model": better.groupby(keys)["model_effect"].mean(),
    }
    parts |= {
        name: better[better["explainer"] == name].groupby(keys)["estimate"].mean()
        for name in named
        if name in order
    }
    table = pd.concat(parts, names=["who"]).rename("stars").reset_index()
    return table.assign(at=table["aspect"].map(ASPECTS.index)).sort_values(
        "at", kind="stable"
    )[["dataset", "aspect", "who", "stars"]]


told = (
    who_says_what()
    if known
    else pd.DataFrame(columns=["dataset", "aspect", "who", "stars"])
)
told = stage.table("three_effects", told.reset_index(drop=True))
if known:
    figure, plotted = plot_three_effects(
        told,
        "Negative to Positive, in stars",
        "CONEXP overstates every effect on the model, "
        "most where aspects go together (left)",
    )
    stage.figure("three_effects", figure)

# %% [markdown] tags=["slide"]
# On the left CONEXP gives each aspect credit for others that go with it. The next table's last column is its estimate
# divided by the model's effect. It exceeds 1 in the independent world, too, but less.

# %% tags=["nbval-ignore-output"]
inflated = told.pivot_table(index=["dataset", "aspect"], columns="who", values="stars")
shown = inflated
if "CONEXP" in inflated:
    shown = (
        inflated.assign(ratio=inflated["CONEXP"] / inflated["the model"])
        .rename_axis(columns=None)
        .reset_index()
    )
shown = stage.table("inflation", shown, digits=2)
names = ["aspect", "the world", "the model", "CONEXP", "S-Learner", "ratio"]
in_words(
    shown, {"dataset": "data set"} | dict(zip(names, names))
) if "ratio" in shown else None

# %% [markdown]
# We check this order.

# %%
both_worlds = {"confounded", "independent"} <= set(told["dataset"])
if scale == "small" and "CONEXP" in inflated and both_worlds:
    middle = (inflated["CONEXP"] / inflated["the model"]).groupby("dataset").median()
    assert middle["confounded"] > middle["independent"], (
        f"CONEXP overstates by {middle.to_dict()}; raise confounding or n_originals"
    )
    print("CONEXP overstates more where something confounds")

# %% [markdown]
# How far apart are world, model and estimate (mean L2)?

# %% tags=["nbval-ignore-output"]
means = (
    three.groupby(["dataset", "model", "explainer"], sort=False)[far]
    .mean()
    .reset_index()
)
in_words(
    of_first(stage.table("three_distances", means)),
    {"explainer": "explainer", "model_to_world": "model to world"}
    | {"estimate_to_model": "estimate to model"}
    | {"estimate_to_world": "estimate to world"},
)

# %% [markdown]
# No estimate is closer to the world than to the model. But those of S-Learner are closer
# to the world than the model is. Is the model closer to the world than *Zero*, the answer that nothing changes?

# %% tags=["nbval-ignore-output"]
if known:
    one = three[three["explainer"] == order[0]].assign(
        sentence_idx=lambda t: t["group"]
    )
    both = pd.concat(
        [
            stats.estimates(one, ["dataset", "model"], value, **how).assign(
                distance=value
            )
            for value in ("model_to_world", "zero_to_world")
        ]
    )
    both = both.rename(columns={"estimate": "L2"})[
        ["dataset", "model", "distance", "L2", "low", "high"]
    ].sort_values(["dataset", "model"], kind="stable")
else:
    both = pd.DataFrame(columns=["dataset", "model", "distance", "L2", "low", "high"])
in_words(
    stage.table("classifiers", both.reset_index(drop=True)).replace(
        {
            "model_to_world": "model to world",
            "zero_to_world": "nothing changes to world",
        }
    ),
    {"dataset": "data set", "model": "model", "distance": "distance"}
    | {"L2": "L2", "low": "from", "high": "to"},
)

# %% [markdown]
# Yes, a little.
#
# ## 7 · Control
#
# If we shuffle an explainer's estimates among the pairs, its cosine error must be near 1, as for a random direction.

# %% tags=["nbval-ignore-output"]
generator = np.random.default_rng(seed)
numbers = [name for name in answers if name.startswith("e_")]
first = answers[["dataset", "model"]].iloc[0]


def shuffled(model):
    """The cosine error of a model's explainers: own estimates, those of other pairs."""
    here = [
        t["dataset"].eq(first["dataset"]) & t["model"].eq(model)
        for t in (answers, scored)
    ]
    mixed = [
        part.assign(
            **dict(
                zip(
                    numbers,
                    part[numbers].to_numpy()[generator.permutation(len(part))].T,
                )
            )
        )
        for _, part in answers[here[0]].groupby("explainer", sort=False)
    ]
    others = concept_effects.score_estimates(pd.concat(mixed), predictions)
    cosines = {"own": scored[here[1]], "shuffled": others}
    table = pd.DataFrame(
        {name: t.groupby("explainer")["cosine"].mean() for name, t in cosines.items()}
    )
    return table.loc[[n for n in order if n in table.index]].reset_index(
        names="explainer"
    )


control = stage.table("controls", shuffled(first["model"]))
for model in {NAME} & set(answers["model"]) - {first["model"]}:
    stage.table(f"controls_{model}", shuffled(model))
far = control.loc[(control["shuffled"] - 1).abs() >= 0.15, "explainer"].tolist()
assert not far or scale not in ("small", "cpu"), (
    f"not near 1, which is chance, when shuffled: {far}; raise n_originals"
)
shown = control[control["explainer"].isin(well_known)].round(2)
in_words(
    shown, {"explainer": "explainer", "own": "cosine error", "shuffled": "shuffled"}
)

# %% [markdown]
# ## 8 · Comparisons and claims
#
# Is one explainer better than another? All answer the same questions, so we compare L2 errors question by question. A comparison is *ranked* if its interval excludes zero, the corrected test agrees, and the texts are enough
# to show such a difference. The Causal Proxy Model explains encoders only, so the BiLSTM has fewer comparisons.

# %% tags=["nbval-ignore-output"]
is_chosen = scored["explainer"].isin(compared) | scored["family"].eq("outside")
chosen = scored[is_chosen]
two = [
    stats.compare_all(part, "explainer", "L2", **how).assign(
        dataset=dataset, model=model
    )
    for (dataset, model), part in chosen.groupby(["dataset", "model"], sort=False)
    if part["explainer"].nunique() > 1
]
columns = [
    *("dataset", "model", "left", "right", "difference"),
    *("low", "high", "p_holm", "smallest_detectable", "is_ranked"),
]
nobody = pd.DataFrame(columns=columns)
two = stage.table("comparisons", pd.concat(two or [nobody], ignore_index=True)[columns])
in_words(
    two.groupby(["dataset", "model"], sort=False)["is_ranked"]
    .agg(["sum", "size"])
    .reset_index(),
    {"dataset": "data set", "model": "model", "sum": "ranked", "size": "comparisons"},
)

# %% [markdown]
# The claims, the paper's and ours, stood in `material/claims.yaml` before the run that decides them, with a *smallest effect of interest*: a
# smaller difference counts as none. They are about the published data, so at scale small all are *not run*. One
# fine-tuning run leaves a claim *undecided*.

# %%
registered = stats.read_claims(material("cebab") / "claims.yaml")
stands_in = {"google-bert/bert-base-uncased"}.isdisjoint(trainings["encoder"])
claims = [caution(claim) if stands_in else claim for claim in registered]
claims += claims_about_it(claims) if len(outside) else []
parts = [
    stats.judge_contrasts(
        claim,
        {"errors": scored, "goals": reached, "spill_over": spilt},
        not stage.is_practice,
        n_bootstrap=n_bootstrap,
        alpha=alpha,
        seed=seed,
    )
    for claim in claims
]
for claim, part in zip(claims, parts, strict=True):
    alone = (
        (not claim.exact)
        & (part["n_seeds"] == 1)
        & part["verdict"].isin(["holds", "fails"])
    )
    part.loc[alone, ["verdict", "why"]] = [
        "undecided",
        "one seed: the spread between trainings is not known",
    ]
rows = [
    stats.summarise(claim, part, scale)
    for claim, part in zip(claims, parts, strict=True)
]
_ = stage.table("contrasts", pd.concat(parts, ignore_index=True))
print(f"{len(claims)} claims, {sum(map(len, parts))} comparisons")

# %% [markdown]
# The paper's Table 4 has twelve numbers about BERT, which get no verdict.

# %%
table_4 = printed[printed["source"] == "CEBaB, Table 4"]


def beside(number, model):
    """One printed CaCE beside that of a model on the published data."""
    direction = tuple(number[k] for k in concept_effects.DIRECTION)
    mine = means_of.get((model, *direction), np.nan)
    other = "the model from outside" if model == NAME else "another encoder"
    why = (
        f"the number belongs to BERT; {other} stands in for it"
        if np.isfinite(mine)
        else "the number belongs to CEBaB"
    )
    quantity = f"CaCE {number['aspect']} {number['old']} to {number['new']}"
    return stats.claim_row(
        registered[0],
        stats.Verdict("not run", why),
        scale,
        number["value"],
        mine,
        quantity=quantity,
    ) | {
        "source": number["source"],
        "id": number["id"] + (ABOUT_IT if model == NAME else ""),
    }


means_of = (
    cace[(cace["dataset"] == "cebab") & (n_classes == 5)]
    .groupby(["model", *concept_effects.DIRECTION])["argmax"]
    .mean()
    .to_dict()
)
for model in ("encoder", NAME) if len(outside) else ("encoder",):
    rows += [beside(number, model) for number in table_4.to_dict("records")]
table = stage.table("claims", pd.DataFrame(rows))
assert set(table["verdict"]) <= set(stats.VERDICTS) and (
    not stage.is_practice or not table["verdict"].isin(["holds", "fails"]).any()
)
print(f"{len(table)} rows in the table of claims")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **One fine-tuning run per model** at scale small: the intervals are over texts only.
# - **Explainers are fitted on train texts**, where a model is surer than on test texts. So S-Learner and CONEXP overstate effects here.
# - **CausaLM and the Causal Proxy Model are trained briefly here.** A poor rank says little about them at full size.
#
# ## Try it
#
# - Keep only pairs with `kind == "original"` in stage 1. What happens to *No concept*?
# - Judge the explainers by `estimate_to_world`. Which would win, and why would that be wrong?
#
# Exercises with checks: [page](../../docs/course/exercises/cebab.md#04-metrics).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [05_figures](05_figures.ipynb) draws these tables, each with its claim and verdict.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# You can do them without running the notebook: start with the next cell. Replace the three dots by your answer. If it is wrong, the check below it gives a hint, but not the solution.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words
from lib.metrics import concept_effects

errors = read_committed("cebab", "cpu", "04_metrics", "errors")
errors = errors[errors["model"] == "encoder"]
errors = errors.query("explainer in ['Zero', 'Approx', 'Approx (mean)']")
errors = errors.pivot(index="explainer", columns="metric", values="error")
human = {"explainer": "explainer", "L2": "L2 error", "cosine": "cosine error"}
in_words(errors.reset_index(), human | {"normdiff": "NormDiff error"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A change moves a model's two probabilities by (.3, -.3). An explainer says (.6, -.6). Compute the three errors of section 1: L2, cosine, and NormDiff, the difference of the two lengths without its sign.

# %% tags=["hole"]
l2 = ...
cosine = ...
normdiff = ...

# %% tags=["solution"]
l2 = np.sqrt(0.3**2 + 0.3**2)
cosine = 0.0
normdiff = np.sqrt(2) * 0.6 - np.sqrt(2) * 0.3

# %% tags=["check"]
effect, estimate = np.array([[0.3, -0.3]]), np.array([[0.6, -0.6]])
check_number(
    l2,
    concept_effects.l2(effect, estimate)[0],
    {"that is the square; take its root.": 0.18},
    "The length of the difference of the two vectors.",
    name="l2",
)
check_number(
    cosine,
    concept_effects.cosine(effect, estimate)[0],
    {"an error: equal directions have 0.": 1.0},
    "Do the two vectors point the same way?",
    name="cosine",
)
check_number(
    normdiff,
    concept_effects.normdiff(effect, estimate)[0],
    {"an error has no sign.": concept_effects.l2(effect, 0 * effect)[0] * -1},
    "Compute both lengths first.",
    name="normdiff",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Predict
#
# An explainer's estimates have the right direction, and are twice as long as they should be. We halve all of them. Which of the three errors stays the same?
#
# - `"a"` L2
# - `"b"` cosine
# - `"c"` NormDiff

# %% tags=["hole"]
stays = ...  # "a", "b" or "c"

# %% tags=["solution"]
stays = "b"

# %% tags=["check"]
length = "Halving changes the length. Does this error look at lengths?"
check_choice(stays, "b", {"a": length, "c": length})

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `errors` is about the encoder in the run at scale `cpu`. *Zero* answers that nothing changes. *Approx* takes another text that has the new value and agrees in the other aspects, and answers with what the model says there, minus what it says here. By L2, *Approx* is worse than *Zero*. *Approx (mean)*, which averages over all matches, is better than both. What does that say about *Approx*?
#
# - `"a"` It looks in the wrong direction.
# - `"b"` It answers with one randomly chosen text. What is peculiar to that text adds more error than its knowledge of the concept removes.
# - `"c"` L2 is wrong, since an explainer that always gives the same answer cannot be good.

# %% tags=["hole"]
what_it_says = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_says = "b"

# %% tags=["check"]
by_l2, direction = errors["L2"], errors["cosine"]
assert by_l2["Approx (mean)"] < by_l2["Zero"] < by_l2["Approx"]
assert direction["Approx"] < direction["Zero"]
check_choice(
    what_it_says,
    "b",
    {
        "a": "Compare the column cosine, which looks at directions.",
        "c": "An answer far off can be worse than none. What does the mean change?",
    },
)

# %% [markdown] tags=["exercise"]
# ### 4 · Write a function
#
# Write the mean L2 error of an explainer over many pairs. Both arguments are lists of lists, one row a pair.


# %% tags=["hole"]
def mean_l2(effects, estimates):
    """One number."""
    return ...


# %% tags=["solution"]
def mean_l2(effects, estimates):
    """One number."""
    difference = np.asarray(effects) - np.asarray(estimates)
    return np.sqrt((difference**2).sum(axis=1)).mean()


# %% tags=["check"]
def expected(effects, estimates):
    """By the library."""
    return concept_effects.l2(np.asarray(effects), np.asarray(estimates)).mean()


check_function(
    mean_l2,
    expected,
    {
        "One pair has the length of one difference.": [[[0.3, -0.3]], [[0.0, 0.0]]],
        "First a length for each pair, then the mean.": [
            [[0.4, -0.4], [0.0, 0.0]],
            [[0.0, 0.0], [0.1, -0.1]],
        ],
    },
)
