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
# # CEBaB, stage 1 of 5: how do you get texts that differ in one concept and in nothing else?
#
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **Our counts of CEBaB's labels agree with its paper's Table 3a** ([table](../../outputs/reference/cebab/cpu/01_data_generation/table_3a.csv)).
# - **We could not reproduce its Tables 3c and 3d, which are about pairs of texts** ([table](../../outputs/reference/cebab/cpu/01_data_generation/readings.csv)). With our closest definition of "edit pair" the counts differ by 12 %<!-- min cebab/cpu/01_data_generation/readings.gap -->.
# - **If we compare mean stars, an aspect also gets credit for other aspects that go with it.** In a simulated world with known true effects, *noise* (how loud the place is) looks 3.0<!-- cebab/cpu/01_data_generation/average_effects[world=confounded, aspect=noise, old=Negative, new=Positive].ratio --> times as important as it is ([figure](../../outputs/reference/cebab/cpu/01_data_generation/confounding.png)).
#
# The first two are from the run at scale `cpu`; the cells below show `small`.
#
# "Would the model have given fewer stars if the food had been bad?" To answer this, we need a second review that differs in the food and in nothing else. CEBaB (arXiv 2205.14140) asked people to write such texts. With them the effect of a concept on a model is *measured*.
# So we can check an explanation, which only estimates it.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how edits become pairs of texts;
# - a world of our own, in which the true effects are known;
# - the paper's Table 3 beside our counts.
#
# **You can then** count edit pairs, and say why a difference of means is wrong if good food usually comes with good
# service. **You need** to know what a mean and a correlation are. **Time:** 20 minutes to read, under a minute to run, [15 minutes for the exercises](../../docs/course/exercises/cebab.md#01-data-generation).
#
# | in | out |
# |---|---|
# | the clauses of `material/wordings.yaml`, or the published CEBaB v1.1 | `texts.parquet`, `pairs.parquet` (dev and test), `dataset_card.md` |
# | | the tables shown below (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.cards import dataset_card, read_card
from lib.core.errors import TouchstoneError
from lib.core.files import read_table, save_parquet, write_atomic
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.plots import COLOURS, STYLE
from lib.studies.cebab import reviews
from lib.studies.cebab.hub import fetch_hub, read_hub
from lib.studies.cebab.pairs import edit_pairs, pairs_by_loop, repeated_edits
from lib.studies.cebab.words import in_words
from lib.studies.cebab.worlds import (
    World,
    average_effects,
    generate_reviews,
    read_wordings,
    wordings_by_split,
)

# %% [markdown]
# ## Settings
#
# Scale small needs no download. We write two sets of reviews ourselves, `confounded` and `independent` (section 3).
# `data_source = "cebab"` takes the published data, and `"hub"` the same data from the Hugging Face hub.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # who the reviewers are and what they write
n_threads = 1  # CPU threads
data_source = "bundled"  # bundled (our worlds), cebab (the published files) or hub
confounding = 0.8  # how much the quality decides each aspect, 0 to below 1 (bundled)
n_originals = {
    "train": 480,
    "dev": 40,
    "test": 80,
}  # reviews before they are edited (bundled)
n_edits = 4  # different edits of each review; one of them is written twice (bundled)

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $u$ | a visit to a restaurant | `group` |
# | $C$, $c$, $c'$ | a concept, its value in a text, the value after a change | `aspect`, `old`, `new` |
# | $x_u^{C=c}$ | the text about $u$ with $C = c$ | `base_id` |
# | $x_u^{C=c'}$ | the same text with the other value, its counterfactual | `counterfactual_id` |
# | $f(x)$ | the stars that readers gave | `rating`, 1 to 5 |
#
# The four concepts are food, service, ambiance and noise. Each is *Negative*, *Positive* or *unknown*. Unknown means that readers cannot tell from the text.

# %%
stage = open_stage("cebab", scale, "01_data_generation")
set_up(seed, n_threads)
if data_source not in ("bundled", "cebab", "hub"):
    raise TouchstoneError(
        f"data_source is {data_source!r}; choose bundled, cebab or hub"
    )
wordings = read_wordings(material("cebab") / "wordings.yaml")
printed = read_table(material("cebab") / "paper_numbers.csv")
print(
    f"data source: {data_source}; {len(printed)} numbers of the paper to compare with"
)

# %% [markdown] tags=["slide"]
# ## 1 · One review by hand
#
# This follows the paper's Table 1, in our words:
#
# - *original*, 4 stars: Great soup, lovely room, rude waiter.
# - *food -*, 2 stars: Cold soup, lovely room, rude waiter.
# - *food ?*, 3 stars: Lovely room, rude waiter.
# - *service +*, 5 stars: Great soup, lovely room, kind waiter.
#
# **Stop and guess.** Each edit makes a pair with the original, and the two food edits make one with each other. How many is that in both directions?

# %% tags=["slide"]
toy = pd.DataFrame(
    [
        ("original", None, "Positive", "Negative", 4),
        ("food -", "food", "Negative", "Negative", 2),
        ("food ?", "food", "unknown", "Negative", 3),
        ("service +", "service", "Positive", "Positive", 5),
    ],
    columns=["text_id", "edit_type", "food", "service", "rating"],
)
toy = toy.assign(
    group="u", ambiance="Positive", noise="unknown", is_original=toy["edit_type"].isna()
)
pairs = edit_pairs(toy)
assert len(pairs) == 8
in_words(
    pairs,
    {"base_id": "text", "counterfactual_id": "its counterfactual", "aspect": "aspect"}
    | {"old": "from", "new": "to", "kind": "kind"},
)

# %% [markdown]
# There are eight: four pairs in two directions. *From* and *to* are the labels that *readers* gave, not what the editor was asked for. *Kind* is `original` from an original to its edit, `reverse` for the way back, and `edits` between two edits.
#
# ## 2 · Three definitions
#
# ### Majority
# Five people read each text. A text has the label that at least three of the five chose; otherwise it has *no majority* (the paper's section 5).

# %%
show_source(reviews.majority)
assert (
    reviews.majority({"4": 3, "2": 2}) == "4"
    and reviews.majority({"4": 2, "2": 2, "1": 1}) == reviews.NO_MAJORITY
)

# %% [markdown]
# An aspect that nobody was asked about is *not annotated*. That is not *unknown*, which is an answer.
#
# ### Three tasks
# The stars are grouped into five, three or two classes. A class of -1 means that the text has no class and is left out.

# %%
stars = [1, 2, 3, 4, 5]
classes = {f"{n} classes": reviews.rating_labels(stars, n) for n in reviews.RATING_MAPS}
shown = pd.DataFrame({"stars": stars} | classes)
in_words(shown, {name: name for name in shown})

# %% [markdown]
# ### Edit pairs
# A *group* is a review with its edits. The original and an edit make a pair, and so do two edits of the same aspect. Their labels of this aspect must differ.

# %%
show_source(edit_pairs)

# %% [markdown] tags=["slide"]
# Only the edited aspect was labelled again; the other three labels are copies. Every pair is there in both directions, so the mean effect over all pairs is zero.
#
# ## 3 · A world whose effects are known
#
# ![A causal graph from left to right. The state of the world, U, decides the concepts food, service, ambiance, noise. The concepts and a second source, V, decide the text X. Its features, phi of X, go to the model N, which gives scores. Concepts reach the model through the text alone.](../../docs/schematics/causal_graph.svg)
#
# Nobody can tell what a person *would* have written. So we built a world of our own. A restaurant has a quality $q$. An aspect $a$ is good if a mix of quality and chance $\epsilon_a$ exceeds a threshold $-b_a$:
#
# $$q, \epsilon_a \sim \mathcal{N}(0, 1) \qquad \text{Positive}_a \Leftrightarrow \gamma q + \sqrt{1 - \gamma^2}\, \epsilon_a > -b_a$$
#
# Each aspect adds $w_a$ stars, and the reviewer's mood $\epsilon \sim \mathcal{N}(0, 1)$ adds a little. Stars are cut off at 1 and 5:
#
# $$\text{stars} = \mathrm{round}\Big(3.1 + \sum_a w_a(C_a) + 0.4\, \epsilon\Big)$$
#
# | $w_a$ | food | service | ambiance | noise |
# |---|---|---|---|---|
# | Positive | .9 | .6 | .5 | .3 |
# | Negative | −1.1 | −.9 | −.6 | −.5 |
#
# Chance decides which aspects are mentioned; the others are *unknown* and add nothing. The number $\gamma$ is the **confounding**. With $\gamma = 0$ the aspects are independent; with a large $\gamma$ good food comes with good service. The shares of the values, here of *service*, do not depend on $\gamma$:

# %%
worlds = {"confounded": World(confounding), "independent": World(0.0)}
shares = {
    name: world.joint().groupby("service")["probability"].sum()
    for name, world in worlds.items()
}
shown = pd.DataFrame(
    {name: share.reindex(reviews.VALUES) for name, share in shares.items()}
).reset_index()
in_words(shown.round(3), {name: name for name in shown})

# %% [markdown]
# In this world we need not estimate the effect of a change. It follows from the equations, as a vector of five numbers that sum to zero:
#
# $$P(\text{stars} \mid C_a = c', C_{-a}) - P(\text{stars} \mid C_a = c, C_{-a})$$
#
# Here $C_{-a}$ are the other three aspects of the text, which stay as they are. This is **the world's effect**.

# %%
show_source(World.true_effect)

# %% [markdown] tags=["slide"]
# ### What confounding does
# A simple estimate is a *difference of means*: the mean stars of reviews that praise the food, minus those of reviews that criticise it.
#
# **Stop and guess.** In the confounded world praise of the food comes with praise of the service. Is the difference of means too large or too small?

# %% tags=["slide"]
effects = pd.concat(
    [average_effects(world).assign(world=name) for name, world in worlds.items()],
    ignore_index=True,
)
effects["ratio"] = effects["conexp"] / effects["true"]
opposite = effects[(effects["old"] == "Negative") & (effects["new"] == "Positive")]
_ = stage.table("average_effects", effects)
in_words(
    opposite.round(3),
    {"world": "world", "aspect": "aspect", "true": "true effect"}
    | {"conexp": "difference of means", "ratio": "ratio"},
)

# %% [markdown]
# The difference is too large, most of all for noise, which matters least and gets credit for food and service. In the independent world both agree. We check this. The true effects differ between the worlds because stars are cut off at 1 and 5.

# %%
gap = (opposite["conexp"] - opposite["true"]).abs().groupby(opposite["world"]).max()
assert gap["independent"] < 1e-9
assert confounding < 0.5 or gap["confounded"] > 0.2, (
    f"the gap is {gap['confounded']:.3f} at confounding {confounding}; raise it"
)

# %% [markdown]
# ## 4 · Reviews from this world
#
# A review has one clause for each aspect that it mentions: a subject and a predicate. Each value of an aspect has 32 predicates; those of the test split do not occur in training. About an *unknown* aspect the review says nothing, or passes no judgement. An edit replaces, adds or removes the clause of one aspect. The other clauses stay, but may be joined in another way.

# %%
generated = {
    name: generate_reviews(world, wordings, n_originals, n_edits, seed)
    for name, world in worlds.items()
}
first = generated["confounded"].query("split == 'test'").head(4)
for row in first.itertuples():
    print(
        "original" if row.is_original else f"{row.edit_type}: {row.edit_goal}",
        f"({row.rating} stars): {row.text}",
    )

# %% [markdown]
# We check the split of predicates, and the pairs with a plain loop.

# %%
parts = wordings_by_split(wordings)
assert not set(parts["train"]) & set(parts["test"]) and all(
    len(wordings[a][v]) >= 30 for a in reviews.ASPECTS for v in reviews.VALUES
)
some = generated["confounded"].query("split == 'dev'")
in_order = {
    build.__name__: build(some).sort_values(
        ["base_id", "counterfactual_id"], ignore_index=True
    )
    for build in (edit_pairs, pairs_by_loop)
}
assert (in_order["edit_pairs"].to_numpy() == in_order["pairs_by_loop"].to_numpy()).all()
words = generated["confounded"]["text"].str.split().map(len)
print(
    f"{len(in_order['edit_pairs'])} pairs by both routes; "
    f"{words.min()} to {words.max()} words per text, mean {words.mean():.1f}"
)

# %% [markdown]
# Now we estimate the effects from a sample of reviews, by differences of mean stars.


# %%
def conditional_means(texts):
    """Mean rating of Positive minus Negative for each aspect, train originals."""
    originals = reviews.train_set(texts, "observational")
    means = pd.DataFrame(
        {
            aspect: originals.groupby(aspect)["rating"].mean()
            for aspect in reviews.ASPECTS
        }
    )
    return means.loc["Positive"] - means.loc["Negative"]


truth = opposite.set_index(["world", "aspect"])["true"]
sampled = pd.concat(
    {name: conditional_means(texts) for name, texts in generated.items()},
    names=["world", "aspect"],
)
sample = pd.DataFrame({"true": truth, "sample": sampled.reindex(truth.index)}).assign(
    error=lambda t: t["sample"] - t["true"]
)
errors = sample["error"]
assert confounding < 0.5 or (errors["confounded"] > 0.3).all(), (
    f"an aspect is off by {errors['confounded'].min():.2f} only; raise n_originals"
)
largest = errors["independent"].abs().max()
assert sum(n_originals.values()) < 400 or largest < 0.35, (
    f"an aspect is off by {largest:.2f} where nothing confounds; raise n_originals"
)
means = stage.table("conditional_means", sample.reset_index())
print(f"off by up to {errors.abs().max():.2f} stars")

# %% [markdown] tags=["slide"]
# The figure has the true effect of a change from Negative to Positive, and two differences of means: from the equations, and from the sample.

# %% tags=["slide"]
with plt.rc_context(STYLE):
    figure, axes = plt.subplots(
        1, 2, sharex=True, sharey=True, figsize=(7.5, 2.6), layout="constrained"
    )
    for ax, name in zip(axes, worlds):
        part = (
            opposite[opposite["world"] == name]
            .set_index("aspect")
            .loc[list(reviews.ASPECTS)]
        )
        ax.plot(
            part["true"], range(4), "o", color=COLOURS[0], label="the world's effect"
        )
        ax.plot(
            part["conexp"],
            range(4),
            "D",
            markerfacecolor="none",
            color=COLOURS[3],
            label="difference of means",
        )
        ax.plot(
            sample.loc[name].loc[list(reviews.ASPECTS), "sample"],
            range(4),
            "|",
            markersize=12,
            color=COLOURS[3],
            label="the same, sampled",
        )
        ax.set(
            yticks=range(4),
            yticklabels=reviews.ASPECTS,
            title=f"{name} ($\\gamma$ = {worlds[name].confounding:g})",
            xlim=(0, None),
            xlabel="effect of Negative to Positive, in stars",
        )
    axes[0].set_ylim(3.5, -0.5)
    figure.suptitle("Where aspects go together, a difference of means is too large")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncol=3,
        frameon=False,
    )
stage.figure("confounding", figure)

# %% [markdown]
# The table has the numbers, and the error of the sample.

# %%
in_words(
    means,
    {"world": "world", "aspect": "aspect", "true": "true effect"}
    | {"sample": "difference of means, sampled", "error": "error"},
)

# %% [markdown]
# In the independent world the sample errs by chance. In the confounded world it errs in one direction for every aspect.
# More reviews would not help.
#
# ## 5 · The data for the next stages
#
# From here on we use our two worlds or the published data. Every text is checked.

# %%
if data_source == "bundled":
    data = generated
else:
    data = {
        "cebab": reviews.read_cebab(reviews.fetch_cebab())
        if data_source == "cebab"
        else read_hub(fetch_hub())
    }
for name, table in data.items():
    reviews.check_texts(table, name)
counts = {
    (name, split): {
        "texts": len(part),
        "originals": int(part["is_original"].sum()),
        "groups": part["group"].nunique(),
    }
    for name, table in data.items()
    for split, part in table.groupby("split")
}
counted = pd.DataFrame(counts).T.reindex(reviews.SPLITS, level=1)
counted = counted.rename_axis(["data set", "split"]).reset_index()
in_words(counted, dict(zip(counted, counted)))

# %% [markdown]
# There are three train sets: *inclusive* (all texts), *exclusive* (one text per group, the paper's choice) and *observational* (originals only). In an edited text the edited aspect has another value than the restaurant gave it. So sets with edits are less
# confounded. The next table counts the pairs.

# %%
pairs = {
    (name, split): edit_pairs(table[table["split"] == split])
    for name, table in data.items()
    for split in ("dev", "test")
}
inclusive = {
    name: edit_pairs(reviews.train_set(table, "inclusive"))
    for name, table in data.items()
}
if data_source != "bundled":
    assert len(pairs["cebab", "test"]) == 3958 and len(inclusive["cebab"]) == 19684
sizes = [
    {
        "data set": name,
        "dev": len(pairs[name, "dev"]),
        "test": len(pairs[name, "test"]),
        "train (inclusive)": len(inclusive[name]),
    }
    for name in data
]
in_words(pd.DataFrame(sizes), {name: name for name in sizes[0]})

# %% [markdown]
# On the published data an assert requires 3,958 test pairs and 19,684 train pairs, as in the code of later studies of CEBaB.
#
# ## 6 · The paper's Table 3, beside ours
#
# At scale small these tables only show the steps: our own reviews have nothing to do with the column *paper*. First come the labels, Table 3a (the rows for noise are in the file); [here](../../outputs/reference/cebab/cpu/01_data_generation/table_3a.csv) is the real comparison.


# %%
def beside_paper(ours, source, keys):
    """Our numbers, by keys, with those that the paper prints."""
    paper = (
        printed[printed["source"] == source].set_index(keys)["value"].rename("paper")
    )
    return ours.join(paper, on=keys)


known = [value for value in reviews.CELLS if value]
cells = [
    {
        "dataset": name,
        "aspect": aspect,
        "new": value,
        "ours": int((table[aspect] == value).sum()),
    }
    for name, table in data.items()
    for aspect in reviews.ASPECTS
    for value in known
]
table_3a = stage.table(
    "table_3a", beside_paper(pd.DataFrame(cells), "CEBaB, Table 3a", ["aspect", "new"])
)
assert data_source == "bundled" or (table_3a["ours"] == table_3a["paper"]).all()
first = next(iter(data))
in_words(
    table_3a[table_3a["dataset"] == first].assign(
        paper=lambda t: t["paper"].astype(int)
    ),
    {"aspect": "aspect", "new": "label", "ours": first, "paper": "paper"},
)

# %% [markdown]
# On the published data an assert requires that all cells agree. Table 3b counts the stars.

# %%
stars = {**{str(k): k for k in range(1, 6)}, reviews.NO_MAJORITY: 0}
cells = [
    {"dataset": name, "new": label, "ours": int((table["rating"] == k).sum())}
    for name, table in data.items()
    for label, k in stars.items()
]
table_3b = stage.table(
    "table_3b", beside_paper(pd.DataFrame(cells), "CEBaB, Table 3b", ["new"])
)
in_words(
    table_3b[table_3b["dataset"] == first],
    {"new": "stars", "ours": first, "paper": "paper"},
)

# %% [markdown]
# Tables 3c and 3d are about pairs. The *individual treatment effect* (**ITE**, equation 5) of a change on readers is the difference of two ratings. The *average treatment effect* (**ATE**) is its mean over the pairs of an aspect and a direction:
#
# $$\widehat{\mathrm{ITE}} = f(x_u^{C=c'}) - f(x_u^{C=c}) \quad (5)$$
#
# In section 1 the stars go from 4 to 2 when the food turns Negative: the ITE is −2.


# %%
def treatment_effects(pairs, texts):
    """Each pair with its ITE in stars; undefined where a side has no majority."""
    rating = texts.set_index("text_id")["rating"].astype(float).where(lambda r: r > 0)
    ite = (
        rating[pairs["counterfactual_id"]].to_numpy()
        - rating[pairs["base_id"]].to_numpy()
    )
    return pairs.assign(ITE=ite)


by_hand = treatment_effects(edit_pairs(toy), toy).set_index(
    ["base_id", "counterfactual_id"]
)["ITE"]
assert (
    by_hand["original", "food -"] == -2
    and by_hand["food -", "original"] == 2
    and by_hand["original", "service +"] == 1
)
in_words(
    by_hand.unstack().loc[["original"]].reset_index(),
    {"base_id": "ITE from", "food -": "to food -", "food ?": "to food ?"}
    | {"service +": "to service +"},
)

# %% [markdown]
# As in the paper, we take all splits together. The assert checks that the two directions have opposite signs.


# %%
def all_effects(name):
    """Pairs, pairs with two ratings, and ATE, for each aspect and direction."""
    found = treatment_effects(edit_pairs(data[name]), data[name])
    table = (
        found.groupby(["aspect", "old", "new"])["ITE"]
        .agg(pairs="size", rated="count", ATE="mean")
        .reset_index()
    )
    both = table.merge(
        table, left_on=["aspect", "old", "new"], right_on=["aspect", "new", "old"]
    )
    assert (
        np.allclose(both["ATE_x"], -both["ATE_y"], equal_nan=True)
        and (both["pairs_x"] == both["pairs_y"]).all()
    )
    return table.assign(dataset=name)


keys = ["aspect", "old", "new"]
measured = pd.concat([all_effects(name) for name in data], ignore_index=True)
named = measured[
    measured["old"].isin(reviews.VALUES) & measured["new"].isin(reviews.VALUES)
]
table_3c = stage.table(
    "table_3c",
    beside_paper(named, "CEBaB, Table 3c", keys).dropna(subset=["paper"])[
        ["dataset", *keys, "pairs", "rated", "paper"]
    ],
)
table_3d = stage.table(
    "table_3d",
    beside_paper(named, "CEBaB, Table 3d", keys).dropna(subset=["paper"])[
        ["dataset", *keys, "ATE", "paper"]
    ],
)
shown = table_3c.merge(table_3d, on=["dataset", *keys], suffixes=("_3c", "_3d"))
in_words(
    shown[shown["dataset"] == first],
    {"aspect": "aspect", "old": "from", "new": "to", "pairs": "pairs"}
    | {"paper_3c": "pairs, paper", "ATE": "ATE", "paper_3d": "ATE, paper"},
)

# %% [markdown]
# How many pairs, each counted once?

# %%
in_all = (
    table_3c.groupby("dataset", sort=False)[["pairs", "rated", "paper"]]
    .sum()
    .astype(int)
)
assert data_source == "bundled" or in_all.loc["cebab", ["pairs", "paper"]].tolist() == [
    17408,
    9768,
]
in_words(
    in_all.reset_index(),
    {"dataset": "data set", "pairs": "pairs", "rated": "with stars", "paper": "paper"},
)

# %% [markdown]
# Does another interpretation of "edit pair" give the paper's counts in Table 3c? We count the readers' labels, or the
# editors' goals instead. We also vary which kinds of pairs count. And we count each pair as one half, one or two,
# because the paper may count the two directions of a pair differently. *Gap* adds up the absolute differences from the
# twelve counts in Table 3c, as a share of their total.


# %%
def as_intended(texts):
    """The texts with the editor's goal in place of the readers' label."""
    return texts.assign(
        **{
            aspect: texts[aspect].where(
                texts["edit_type"] != aspect, texts["edit_goal"]
            )
            for aspect in reviews.ASPECTS
        }
    )


def readings_of(name):
    """How far the counts of each reading are from the paper's Table 3c."""
    paper, rows = (
        printed[printed["source"] == "CEBaB, Table 3c"].set_index(keys)["value"],
        [],
    )
    for label, texts in {
        "readers": data[name],
        "editors": as_intended(data[name]),
    }.items():
        found = treatment_effects(edit_pairs(texts), texts)
        for kinds, rated in product(
            (("original", "reverse"), ("edits",), ("original", "reverse", "edits")),
            (False, True),
        ):
            n = (
                found[found["kind"].isin(kinds) & (found["ITE"].notna() | (not rated))]
                .groupby(keys)
                .size()
                .reindex(paper.index, fill_value=0)
            )
            rows += [
                (
                    label,
                    " ".join(kinds),
                    rated,
                    times,
                    n.sum() * times,
                    (n * times - paper).abs().sum() / paper.sum(),
                )
                for times in (0.5, 1, 2)
            ]
    return pd.DataFrame(
        rows, columns=["label", "kinds", "rated", "times", "pairs", "gap"]
    ).assign(dataset=name)


readings = pd.concat(
    [readings_of(name) for name in data], ignore_index=True
).sort_values("gap", kind="stable", ignore_index=True)
in_words(
    stage.table("readings", readings).assign(
        kinds=lambda t: t["kinds"].str.replace(" ", ", ")
    ),
    {"label": "labels of", "kinds": "kinds", "rated": "both have stars"}
    | {"times": "times counted", "pairs": "pairs", "gap": "gap", "dataset": "data set"},
    rows=5,
)

# %% [markdown]
# At scale small these gaps mean nothing. On the published data no interpretation gives Table 3c, and Table 3d is not reproduced either ([table](../../outputs/reference/cebab/cpu/01_data_generation/table_3d.csv)).
#
# ## 7 · The same question, answered twice
#
# Sometimes two editors made the same change to the same review. An explainer can give only one answer for both, so stage 4 derives a bound from such pairs. "The same" can mean that both editors had one *goal*, or that readers gave both texts one *label*.


# %%
def count_repeated(name, split, same):
    """Pairs of edits that are the same, and how many of them reached one label."""
    part = data[name][(data[name]["split"] == split)]
    found = repeated_edits(part, same)
    return {
        "dataset": name,
        "split": split,
        "same": same,
        "pairs": len(found),
        "one_label": int((found["new"] == found["new_second"]).sum()),
    }


repeated = pd.DataFrame(
    [
        count_repeated(name, split, same)
        for name in data
        for split in reviews.SPLITS
        for same in ("goal", "label")
    ]
)
assert data_source == "bundled" or repeated["pairs"].tolist() == [
    141,
    219,
    16,
    29,
    15,
    20,
]
in_words(
    stage.table("repeated_edits", repeated),
    {"dataset": "data set", "split": "split", "same": "same", "pairs": "pairs"}
    | {"one_label": "with one label"},
)

# %% [markdown]
# In our worlds every edit reaches its goal, so both definitions give the same pairs. In the published data most pairs
# of edits with the same goal have different labels
# ([table](../../outputs/reference/cebab/cpu/01_data_generation/repeated_edits.csv)). So stage 4 uses pairs of edits
# with the same label.
#
# ## 8 · Control
#
# If the stars have nothing to do with the aspects, differences of means must find nothing. We shuffle the stars among the texts, twenty times.

# %%
generator = np.random.default_rng(seed)
shuffled = [
    conditional_means(
        texts.assign(rating=generator.permutation(texts["rating"]))
    ).rename(name)
    for name, texts in generated.items()
    for _ in range(20)
]
control = pd.concat(shuffled, axis=1).T.groupby(level=0).agg(["mean", "std"])
largest = control.xs("mean", axis=1, level=1).abs().max().max()
assert sum(n_originals.values()) < 400 or largest < 0.15, (
    f"shuffled ratings leave an effect of {largest:.2f}; raise n_originals"
)
control = control.round(2).T.unstack().rename_axis("aspect").reset_index()
control.columns = [" ".join(name).strip() for name in control]
in_words(control, {n: n.replace("std", "standard deviation") for n in control})

# %% [markdown]
# The means are near zero in both worlds. So the errors of section 4 come from the data, not from the arithmetic.
#
# We save texts and pairs, with the world's effect if known.


# %%
def with_world(name, split):
    """The pairs of a split; in our worlds with the true effect on each rating."""
    table = pairs[name, split].assign(dataset=name, split=split)
    if data_source != "bundled":
        return table
    values = (
        data[name]
        .set_index("text_id")
        .loc[table["base_id"], list(reviews.ASPECTS)]
        .reset_index(drop=True)
    )
    effect = np.zeros((len(table), 5))
    for (aspect, new), rows in table.groupby(["aspect", "new"]).indices.items():
        effect[rows] = worlds[name].true_effect(values.iloc[rows], aspect, new)
    return table.assign(**{f"world_{k + 1}": effect[:, k] for k in range(5)})


texts = pd.concat(
    [table.assign(dataset=name) for name, table in data.items()], ignore_index=True
)
save_parquet(texts, stage.path("texts.parquet"))
save_parquet(
    pd.concat([with_world(*key) for key in pairs], ignore_index=True),
    stage.path("pairs.parquet"),
)
print(f"{len(texts)} texts, {sum(map(len, pairs.values()))} pairs")

# %% [markdown]
# Our own reviews also get a dataset card.

# %%
if data_source == "bundled":
    counts = generated["confounded"]["split"].value_counts()
    numbers = {
        "texts": len(generated["confounded"]),
        "originals": int(generated["confounded"]["is_original"].sum()),
        "pairs": len(pairs["confounded", "test"]),
        "groups": generated["confounded"]["group"].nunique(),
        "confounding": confounding,
        **{name: int(n) for name, n in counts.items()},
        "wordings": sum(
            len(wordings[a][v]) for a in reviews.ASPECTS for v in reviews.VALUES
        ),
    }
    card = read_card(material("cebab") / "card.yaml", data_source, numbers)
    write_atomic(stage.path("dataset_card.md"), dataset_card(card))
    print(card["description"])

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Our reviews are simpler than people's.** An explainer that fails here may still work on real text.
# - **A published edit may change more than it should.** Nobody labelled the other aspects again.
# - **"No majority" counts as a value** in the inclusive train set, as in the released code. So a pair may differ only in whether the readers agreed.
#
# ## Try it
#
# - Set `confounding` to 0.3 and to 0.95, and look at the figure.
# - Give `World` an `effect` in which noise matters more than food. Does the difference of means notice?
#
# Exercises with checks: [page](../../docs/course/exercises/cebab.md#01-data-generation).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# The texts go to [02_training](02_training.ipynb), the pairs to [03_attribution](03_attribution.ipynb).

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# You can do them without running the notebook: start with the next cell. Replace the three dots by your answer. If it is wrong, the check below it gives a hint, but not the solution.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words
from lib.studies.cebab.reviews import majority

averages = read_committed("cebab", "cpu", "01_data_generation", "conditional_means")
averages = averages.query("world == 'confounded'")[["aspect", "true", "sample"]]
human = {"true": "true effect", "sample": "difference of means"}
in_words(averages.round(2), {"aspect": "aspect"} | human)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A review has two edits that aim at *food* and two that aim at *noise*. In each edit the label of its aspect differs from the original's, and the two edits of one aspect have different labels. The original makes a pair with each edit. Two edits make a pair if they aim at the same aspect. How many ordered pairs are there, counted in both directions?

# %% tags=["hole"]
n_pairs = ...

# %% tags=["solution"]
n_pairs = 2 * (4 + 1 + 1)

# %% tags=["check"]
with_original, between_edits = 4, 2
check_number(
    n_pairs,
    2 * (with_original + between_edits),
    {
        "each pair can be read in both directions.": with_original + between_edits,
        "edits of one aspect also make a pair with each other.": 2 * with_original,
        "an edit of food and one of noise make no pair.": 5 * 4,
    },
    "First the pairs with the original, then those of edits with edits.",
    tolerance=0,
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Five people judge an aspect. Write the rule of section 2: the label that at least three of them chose, or `"no majority"`. It is given the votes, a list of labels.


# %% tags=["hole"]
def label_of(votes):
    """A label."""
    return ...


# %% tags=["solution"]
def label_of(votes):
    """A label."""
    best = max(set(votes), key=votes.count)
    return best if votes.count(best) >= 3 else "no majority"


# %% tags=["check"]
def expected(votes):
    """By the library, which is given counts."""
    return majority({label: votes.count(label) for label in votes})


check_function(
    label_of,
    expected,
    {
        "Three of five are enough.": [["Negative"] * 2 + ["Positive"] * 3],
        "Two, two and one are no majority.": [["1", "1", "2", "2", "3"]],
        "All five agree.": [["unknown"] * 5],
        "Two of five are the most here, and too few.": [["1", "1", "2", "3", "4"]],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `averages` has two values for each aspect of the confounded world, in stars: the *true effect* of praise instead of blame, and the *difference of means* of the ratings in a sample of reviews. This difference is too large for every aspect. Would ten times as many reviews help?
#
# - `"a"` Yes, the difference comes from chance.
# - `"b"` No. Good food comes with good service here, so the difference of means counts the effect of both.
# - `"c"` No, because the model is biased.

# %% tags=["hole"]
more_reviews = ...  # "a", "b" or "c"

# %% tags=["solution"]
more_reviews = "b"

# %% tags=["check"]
assert (averages["sample"] > averages["true"]).all()
check_choice(
    more_reviews,
    "b",
    {
        "a": "Chance would miss in both directions. Do all aspects err in one?",
        "c": "No model is asked in this table, only ratings.",
    },
)
