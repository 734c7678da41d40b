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
# "Would the model have given fewer stars if the food had been bad?" That is a question about a cause, and it can only be
# answered with a second text that is the same in all but the food. CEBaB (arXiv 2205.14140) asked people to write such texts:
# 2,299 restaurant reviews, each edited several times, each edit aiming at one aspect. With them, the effect of a concept
# on a model is *measured*, and explanations that merely estimate it can be marked.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how reviews, votes and edits become *edit pairs*, and that the rule gives the numbers that it should;
# - the paper's tables 3a to 3d beside ours, two of which cannot be reproduced;
# - a small world of our own in which the true effect of every concept is known, with and without a confounder, and what the
#   confounder does to an honest average.
#
# **You can then** count edit pairs, and say why an average of confounded reviews errs. **You need** to know what a
# mean and a correlation are. **Time:** 25 minutes to read, under a minute to run, 15 minutes for the exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | the clauses of `material/wordings.yaml`, from which a causal model writes reviews | `texts.parquet`: one row a text, with data set, split, rating, four aspects |
# | or the published CEBaB v1.1, five files, 15,090 texts | `pairs.parquet`: one row an ordered edit pair of dev and test |
# | | `dataset_card.md`: what our reviews are for, and what not |
# | | `table_3a` to `table_3d`, `readings`, `average_effects`, `conditional_means`, `repeated_edits` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.cards import dataset_card, read_card
from lib.core.errors import TouchstoneError
from lib.core.files import read_table, save_parquet, write_atomic
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.plots import COLOURS, STYLE
from lib.studies.cebab import reviews
from lib.studies.cebab.hub import fetch_hub, read_hub
from lib.studies.cebab.pairs import edit_pairs, pairs_by_loop, repeated_edits
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
# The small scale needs no download: a structural causal model writes two sets of reviews, `confounded` and `independent`, which
# differ in one number. `data_source = "cebab"` takes the published data instead: from the folder of downloads, or fetched once, each file
# checked against its SHA-256. `"hub"` takes them from the Hugging Face hub and checks that text by text they are the same.
# Sections 1 to 5 tell the story on the texts of our own in any case.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # who the reviewers are and what they write
n_threads = 1  # CPU threads
data_source = "bundled"  # bundled (our worlds), cebab (the published files) or hub (the same from the Hugging Face hub)
confounding = 0.8  # how much the quality of a restaurant decides each aspect, 0 to below 1 (bundled)
n_originals = {
    "train": 480,
    "dev": 40,
    "test": 80,
}  # reviews before they are edited (bundled)
n_edits = 4  # different edits of each review; one of them is written twice (bundled)

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $u$ | a state of affairs: who visited which restaurant, and how it was | `group` |
# | $C$, $c$, $c'$ | a concept, its value in a text, the value after a change | `aspect`, `old`, `new` |
# | $x_u^{C=c}$ | the text that $u$ gives with $C = c$ | `base_id` |
# | $x_u^{C=c'}$ | its counterfactual | `counterfactual_id` |
# | $f(x)$ | the stars that readers gave | `rating`, 1 to 5 |
#
# The four concepts are food, service, ambiance and noise. Each is *Negative*, *Positive* or *unknown*, which means that readers
# cannot tell from the text.

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
    f"data source: {data_source}; {len(printed)} numbers of the paper to lay beside ours"
)

# %% [markdown] tags=["slide"]
# ## 1 · One review by hand
#
# The toy example of the paper's Table 1, cut short. The original praises food and decor and complains about the waiter.
#
# Before we run anything: which pairs do we expect? The original makes a pair with each of its three edits. The two food edits
# make a pair with each other, Negative and unknown. The service edit has no partner of its own kind. That is four pairs, and
# eight, because each can be read in both directions.

# %%
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
pairs[["base_id", "counterfactual_id", "aspect", "old", "new", "kind"]]

# %% [markdown]
# Eight, as expected. `old` and `new` are what *readers* said of the two texts, not what the editor was asked for: an edit that
# missed its goal counts for what it is, and only pairs without any difference are dropped.
#
# ## 2 · Three definitions
#
# ### Majority
# Five people read each text. The paper (section 5): "an example has label y if at least 3 of the 5 labelers chose y, otherwise it is
# in the 'no majority' category". (Two dozen cells of the published file have ten votes; the rule below also fits those.)

# %%
show_source(reviews.majority)
assert (
    reviews.majority({"4": 3, "2": 2}) == "4"
    and reviews.majority({"4": 2, "2": 2, "1": 1}) == reviews.NO_MAJORITY
)

# %% [markdown]
# An aspect for which nobody was asked is *not annotated*, an empty cell. It is not *unknown*, which is an answer.
#
# ### Three tasks
# Stars become classes in three ways. In the 2-way task a text with three stars has no class and drops out.

# %%
pd.DataFrame(
    {
        f"{n}-way": reviews.rating_labels([1, 2, 3, 4, 5], n)
        for n in reviews.RATING_MAPS
    },
    index=[1, 2, 3, 4, 5],
).rename_axis("stars").T

# %% [markdown]
# A class of -1 means none. A review without a majority has none in any task.
#
# ### Edit pairs
# The released code walks over the groups one by one. Two joins do the same: edits with their original, and edits with each other.

# %%
show_source(edit_pairs)

# %% [markdown]
# Two things to know about this rule. It does not look at the other three aspects, and it need not: only the aspect at which an
# edit aimed was judged again, the labels of the others are copies. And every pair is there in both directions, which will
# matter in stage 4: an average over all pairs cannot lean to one side.
#
# ## 3 · A world whose effects are known
#
# ![A causal graph from left to right. The state of the world, U, decides the concepts food, service, ambiance, noise. The concepts and a second source, V, decide the text X. Its features, phi of X, go to the model N, which gives scores. Concepts reach the model through the text alone.](../../docs/schematics/causal_graph.svg)
#
# No human text tells what its writer *would* have written. So beside the published data we keep a world of our own:
#
# $$q \sim \mathcal{N}(0, 1) \qquad \text{Positive}_a \Leftrightarrow \gamma q + \sqrt{1 - \gamma^2}\, \epsilon_a > -b_a \qquad \text{stars} = \mathrm{round}\Big(3.1 + \sum_a w_a(C_a) + 0.4\, \epsilon\Big)$$
#
# (from 1 to 5: what lies beyond is cut off)
#
# $q$ is the quality of the restaurant, $\epsilon$ the mood of the reviewer. Whether an aspect is mentioned is left to chance. With
# $\gamma = 0$ the aspects have nothing to do with each other. With a larger $\gamma$ a good kitchen comes with good service. The share of
# each value is the same for every $\gamma$, so that two worlds differ in *confounding* and in nothing else.

# %%
worlds = {"confounded": World(confounding), "independent": World(0.0)}
shares = {
    name: world.joint().groupby("service")["probability"].sum()
    for name, world in worlds.items()
}
pd.DataFrame(
    {name: share.reindex(reviews.VALUES) for name, share in shares.items()}
).round(3)

# %% [markdown]
# In such a world the effect of a change is no estimate. For a text with aspects $C$, whatever its words are,
#
# $$P(\text{stars} \mid do(C_a = c')) - P(\text{stars} \mid C_a = c)$$
#
# follows from the equations (a vector of five numbers, summing to zero). This is **the world's effect**. What a *model* does when it
# reads the two texts is another thing, and what an *explainer* says about the model is a third. They are kept apart by name in
# all that follows.

# %%
show_source(World.true_effect)

# %% [markdown]
# ### What confounding does
# A simple estimate of an effect is the difference of two averages: the mean rating of reviews that praise the food, minus the mean
# rating of those that blame it. (The paper's CONEXP, stage 3, does the same with the answers of a model.) Before you look: praise of the food comes with praise of the
# service in the confounded world. Will the difference be too large or too small?
#
# Both numbers are exact here, integrated over $q$, in stars.

# %%
effects = pd.concat(
    [average_effects(world).assign(world=name) for name, world in worlds.items()],
    ignore_index=True,
)
effects["ratio"] = effects["conexp"] / effects["true"]
opposite = effects[(effects["old"] == "Negative") & (effects["new"] == "Positive")]
_ = stage.table("average_effects", effects)
opposite[["world", "aspect", "true", "conexp", "ratio"]].round(3)

# %% [markdown]
# Too large, and most for the aspect that matters least: noise is credited with what food and service did. Without confounding the
# two agree. The assert holds this fast for any run.

# %%
gap = (opposite["conexp"] - opposite["true"]).abs().groupby(opposite["world"]).max()
assert gap["independent"] < 1e-9
assert confounding < 0.5 or gap["confounded"] > 0.2, (
    f"the gap is {gap['confounded']:.3f} at confounding {confounding}; raise confounding"
)

# %% [markdown]
# ## 4 · The world writes
#
# Every clause is a subject and a predicate; there are 32 predicates per aspect and value, and no predicate of the test split occurs in
# training. Length, order, fillers and ends of sentences are drawn. An edit keeps all of them and replaces one clause. The
# same people visit the same restaurants in both worlds; only $\gamma$ differs.

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
# Several checks, before anybody is trained on this: the two worlds together are large enough, the split is by wording as well as by
# review, and the loop of the comparison finds the same pairs as the joins.

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
    f"{len(in_order['edit_pairs'])} pairs by both routes; words a text: {words.min()} to {words.max()}, mean {words.mean():.1f}"
)

# %% [markdown]
# The published texts have 20.6 words on average. Now the same comparison as in section 3, with what a finite sample of originals
# holds: the difference of mean *ratings* between reviews that praise and that blame, beside the true effect.


# %%
def conditional_means(texts):
    """The difference of mean ratings, Positive minus Negative, of the originals of train, for each aspect."""
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
stage.table("conditional_means", sample.reset_index())

# %% [markdown]
# *Reading it.* In the independent world the sample is off by what chance allows. In the confounded one every aspect is off, always in the same
# direction, and a larger sample would not help.
#
# ## 5 · The data that are handed on
#
# The fork in the road: our two worlds, or the published data. Every table is checked: values and ratings that are known, no id twice,
# and no group in two splits, since a model must not be tested on an edit of what it has read.

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
pd.DataFrame(counts).T.reindex(reviews.SPLITS, level=1)

# %% [markdown]
# Train comes in three sets: *inclusive* (all texts), *exclusive* (one text a group, the paper's choice) and *observational* (the originals
# alone). Editing is an intervention: in an edited text the edited aspect no longer follows the quality of the restaurant. So the
# exclusive set is less confounded than the observational one. The pairs:

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
pd.DataFrame(sizes)

# %% [markdown]
# With the published data these are 3,958 ordered pairs for testing and 19,684 in the inclusive train set, the numbers that the code of a
# follow-up study has as constants; an assert demands them.
#
# ## 6 · The paper's Table 3, beside ours
#
# ### 3a and 3b: labels
# `paper` counts the published texts. With our own texts, the two columns have nothing to do with each other.


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
table_3a.assign(paper=table_3a["paper"].astype(int)).pivot(
    index=["aspect", "new"], columns="dataset", values="ours"
).join(table_3a.groupby(["aspect", "new"])["paper"].first()).loc[list(reviews.ASPECTS)]

# %% [markdown]
# On the published data all of 3a agrees, which the assert demands. (The percentages in the paper are shares of a column, over the four
# aspects.) Next the stars:

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
table_3b.pivot(index="new", columns="dataset", values="ours").join(
    table_3b.groupby("new")["paper"].first()
)

# %% [markdown]
# The published file has one more text without a majority than the paper counts, 1,880 and 1,879, and so 15,090 texts instead of 15,089.
#
# ### 3c and 3d: edit pairs and their effects
# The individual effect of a change on readers (equation 5) is the difference of two ratings, and the **ATE** is its mean over the pairs
# with the same aspect and direction:
#
# $$\widehat{\mathrm{ITE}} = f(x_u^{C=c'}) - f(x_u^{C=c}) \quad (5) \qquad \widehat{\mathrm{ATE}} = \text{mean of } \widehat{\mathrm{ITE}}$$
#
# By hand, for the toy above: Positive to Negative food takes the stars from 4 to 2.


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
by_hand.unstack().astype(object).fillna("")

# %% [markdown]
# All splits together, as in the paper. One direction of each pair is enough: the other has the opposite sign, and the assert says so.


# %%
def all_effects(name):
    """Pairs, pairs whose two sides have a rating, and ATE, for each aspect and direction of a data set."""
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
table_3c.merge(table_3d, on=["dataset", *keys], suffixes=("_3c", "_3d"))

# %% [markdown]
# How many pairs are these in all?

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
in_all

# %% [markdown]
# Is there another reading of "edit pair" that gives the paper's counts? We try the labels of readers and the goals of editors, pairs with the
# original, pairs of edits, or both, with or without a rating on both sides, each counted once, twice or as a half. `gap` is how many
# counts of the twelve cells are then wrong, as a share of the paper's 9,768.


# %%
def as_intended(texts):
    """The texts with the editor's goal in the place of the label that readers gave to the edited aspect."""
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
stage.table("readings", readings).head(5)

# %% [markdown]
# *Reading it.* **On the published data neither 3c nor 3d is reproduced.** The rule of the released code, whose test pairs every later study uses,
# gives 17,408 unordered pairs over all splits, and the paper's table sums to 9,768. The best of our readings counts the pairs of edits alone, and
# still has more than a tenth of the counts wrong. The effects of 3d have the same sign and another size. We show both and fit no rule to the
# paper.
#
# ## 7 · The same question, answered twice
#
# Sometimes two different editors wrote the same change of the same review. An explainer is asked the same question for both and can give one answer only,
# so the distance of the two is an error that nobody can avoid. Stage 4 makes a *noise ceiling* of it. Which edits are "the same"?
# By the editor's **goal**, or by the **label** that readers gave?


# %%
def count_repeated(name, split, same):
    """Pairs of edits that are the same by goal or by label, and how many of them reached one label."""
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
stage.table("repeated_edits", repeated)

# %% [markdown]
# *Reading it.* In our worlds an edit always reaches its goal, so both ways give the same pairs. In the published data they do not: of
# 141 / 16 / 15 pairs with one goal (train / dev / test), **only 11 / 1 / 2 reached one label**; in the others one text is what the goal
# says and the other is mostly its opposite, so the recorded goal of one of them seems to be wrong. A ceiling made of these would call an
# error what is a difference of labels. Stage 4 therefore uses pairs of one *label*, of which there are 219 / 29 / 20, and shows the other beside it.
#
# ## 8 · Control
#
# If the ratings have nothing to do with the aspects, conditional means must find nothing, in either world. We shuffle the ratings among the
# texts, twenty times.

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
control.round(2)

# %% [markdown] tags=["slide"]
# The means are near zero, and a single shuffle is off by about as much as `std` says, with either sign. What section 4 found is in the data and not in the
# arithmetic.
#
# ## 9 · The figure
#
# For each aspect the true effect of Negative to Positive, and what conditional means converge to. The dashes are the sample of section 4.

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
            title=f"{name}, $\\gamma$ = {worlds[name].confounding:g}",
            xlim=(0, None),
            xlabel="effect of Negative to Positive, in stars",
        )
    axes[0].invert_yaxis()
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncol=3,
        frameon=False,
    )
stage.figure("confounding", figure)
opposite.pivot(index="aspect", columns="world", values=["true", "conexp"]).loc[
    list(reviews.ASPECTS)
].round(2)

# %% [markdown]
# *Reading it.* On the right a diamond stands on every dot. On the left the diamonds are pulled to one another: with a strong confounder every aspect
# seems to matter alike.
#
# Now the tables for the next stages: the texts, and the pairs of dev and test, for our worlds with the world's effect (`world_1` to
# `world_5`).


# %%
def with_world(name, split):
    """The pairs of a split; in our worlds with the true effect on the probability of each rating."""
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
# Our own reviews also get a dataset card: what they are for, how they were made, and what not to do with them.

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
# - **Our reviews are simpler than people's.** A clause says one thing about one aspect. What an estimator cannot do here it will hardly do
#   on real text; the reverse does not follow.
# - **The mood of a reviewer is the same in all edits** of a review, as the definition asks, and no text betrays it. Real editors
#   are other people than the reviewer.
# - **In the published data an edit may change more than it should.** Nobody judged the other aspects again, so the labels
#   cannot show it.
# - **"No majority" counts as a value** in the pairs of the inclusive train set, as in the released code.
#
# ## Try it
#
# - Set `confounding` to 0.3 and to 0.95, and look at the figure.
# - Give `World` an `effect` in which noise matters more than food. Does the difference of means notice, with $\gamma = 0.8$?
# - Write five predicates of your own into `wordings.yaml`. Which checks complain if one of them stands in two splits?

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# The texts go to [02_training](02_training.ipynb), where classifiers learn to predict the stars, and the aspects, from the words. The pairs go to
# [03_attribution](03_attribution.ipynb), whose explainers see one side of each pair and have to foretell the other.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)
from lib.studies.cebab.reviews import majority

averages = read_committed("cebab", "cpu", "01_data_generation", "conditional_means")
averages = averages.query("world == 'confounded'")[["aspect", "true", "sample"]]
averages.round(2)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A review has two edits that aim at *food* and two that aim at *noise*. All four differ in the label of their aspect from the original, and the two edits of one aspect differ from each other. How many ordered pairs are there, counted in both directions?

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
        "Three of five are enough.": [["Positive"] * 3 + ["Negative"] * 2],
        "Two, two and one are no majority.": [["1", "1", "2", "2", "3"]],
        "All five agree.": [["unknown"] * 5],
        "Two of five are the most here, and too few.": [["1", "1", "2", "3", "4"]],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `averages` is of the confounded world: the true effect of praise instead of blame, in stars, and the difference of mean ratings in a sample. The sample is too large for every aspect. Would ten times as many reviews help?
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
