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
# # GECO, an appendix to stage 4: what do the models really use?
#
# [Start here](../00_start_here.ipynb) · it follows [04_metrics](04_metrics.ipynb) · next: [05_figures](05_figures.ipynb) ·
# [glossary](../../docs/glossary.md)
#
# ## What we found
#
# - **A rule that names one pronoun scores badly when words are deleted.** We delete the words in the order of an
#   explanation, and see how far the model's answer falls. The worst possible order scores 0, the best 1. *First pronoun* has
#   .44<!-- geco/cpu/appendix_what_models_use/faithfulness[model=CEf, method=First pronoun, measure=NAOPC].estimate -->. Integrated Gradients has
#   .94<!-- geco/cpu/appendix_what_models_use/faithfulness[model=CEf, method=Integrated Gradients, measure=NAOPC].estimate -->.
#   But *Pattern Variant*, which sees no model either, has .94<!-- geco/cpu/appendix_what_models_use/faithfulness[model=CEf, method=Pattern Variant, measure=NAOPC].estimate -->, too.
#   [Table](../../outputs/reference/geco/cpu/appendix_what_models_use/faithfulness.csv)
# - **Saliency hardly changes when the head of a model becomes random.** Its order of the words has a correlation of
#   .92<!-- geco/cpu/appendix_what_models_use/randomisation[model=CEf, part=head, method=Saliency, measure=rank_signed].estimate -->
#   with the order for the trained model. For methods with signed scores every such interval contains zero. [Figure](../../outputs/reference/geco/cpu/05_figures/figure_randomisation.png)
# - **In one attention layer LIME gives too little to a planted word that alone decides the class.** It puts
#   .54<!-- geco/cpu/appendix_what_models_use/shortcut[method=LIME].estimate --> of its attribution on it with 100 samples, as in the released code, and
#   .69<!-- geco/cpu/appendix_what_models_use/shortcut[method=LIME, n_samples 1000].estimate --> with ten times as many (one training). In a BERT it is
#   .79<!-- geco/cpu/appendix_what_models_use/planted[model=CEfAf, method=LIME].estimate --> and
#   .96<!-- geco/cpu/appendix_what_models_use/planted[model=CEfAf, method=LIME, n_samples 1000].estimate --> (Integrated Gradients:
#   .79<!-- geco/cpu/appendix_what_models_use/planted[model=CEfAf, method=Integrated Gradients].estimate -->).
#   [Table](../../outputs/reference/geco/cpu/appendix_what_models_use/planted.csv)
#
# Scale `cpu`, *all gendered words* (D_A); the first two findings are about ninety base sentences and
# three runs of a BERT whose head and embeddings were fine-tuned. Section 8 judges eight claims that we registered
# after an earlier, smaller run at this scale. The outputs below are from scale `small`.
#
# Stage 4 compares explanations with GECO's mask. The mask marks the words that *can* carry information about the class.
# A model need not use them. Here we test the models themselves.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - what a word is worth to a model, measured on sentences that stay grammatical;
# - how an explanation is tested by deleting words, and by random weights;
# - whether such tests order the methods as mass accuracy does.
#
# **You can then** compute a Shapley value over word swaps, and say what a deletion score measures. **You need** [stage 4](04_metrics.ipynb).
# **Time:** 18 minutes to read, a minute to run, no exercises.
#
# | in | out |
# |---|---|
# | 01: test and train sentences; 02: models, `predictions` | `mixtures`, `swap_agreement`: word swaps |
# | 03: `explanations` | `faithfulness`: deletion; `sensitivity`, `randomisation`: noise and random weights |
# | 04: `accuracy_vs_floors` | `shortcut`, `planted`: the planted word; `yardsticks`: all compared |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import numpy as np
import pandas as pd
import torch

from lib import attribution, metrics, plots, stats
from lib.attribution import regression, swaps
from lib.core import files, notebooks, paths, seeds
from lib.core.stage import open_stage
from lib.metrics.planting import planted_mass
from lib.studies.geco import corpus, model_tables

# %% [markdown]
# ## Settings

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the resamples and the random models
n_threads = 1  # CPU threads
encoder = "all-MiniLM-L6-v2"  # whose word pieces the planted model reads
encoder_revision = ""  # the commit of a hub id
n_bootstrap = 1000  # resamples per interval
alpha = 0.05  # the intervals have 1 - alpha
reuse_units = False  # take finished tables from, and publish them to, outputs/reference
truth_schemes = ["OLA-CEA"]  # models of D_A that are tested
truth_seeds = 1  # trainings of each, from the first on
truth_base = 0  # on how many explained base sentences (0: all)
truth_forms = "all"  # forms of a base sentence that are tested: all, or one in turn
deletion = "remove"  # what stands in place of a deleted word: pad, mask or remove
n_beam = 3  # orders kept in the search for the best and worst; 0: no search
n_draws = {"OLA-CEA": 5}  # random models, by the scheme that they replace
random_base = {}  # base sentences for the random models, by scheme ({}: all)
random_rows = "all"  # all: each random model explains all rows; shared: a part of them
random_parts = {}  # explain only when these have become random, by scheme ({}: each)
shortcut_epochs = 40  # passes over the train rows with a planted word
planted_epochs = {}  # the same for BERT models, by scheme ({}: no BERT)
planted_lr = 0.0002  # their highest learning rate
planted_seeds = 1  # trainings of each
planted_base = 0  # base sentences that they explain, one form of each (0: all rows)

# %% [markdown]
# OLA-CEA is *one attention layer*, trained from scratch.

# %%
stage = open_stage("geco", scale, "appendix_what_models_use")
seeds.set_up(seed, n_threads)
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
explanations = attribution.load_explanations(
    stage.input("03_attribution", "explanations.parquet")
)
predictions = files.load_parquet(
    stage.input("02_training", "predictions.parquet")
).query("split == 'test'")
train, test = (corpus.load_dataset(stage, "D_A", split) for split in ("train", "test"))
asked = model_tables.ModelTables(
    stage,
    predictions,
    "D_A",
    truth_schemes,
    explanations,
    test,
    truth_base,
    reuse_units,
    seed,
    truth_seeds,
    truth_forms == "one",
)
accuracy = pd.read_csv(stage.input("04_metrics", "accuracy_vs_floors.csv"))
accuracy = accuracy.query("dataset == 'D_A' and scheme in @truth_schemes")
n_base = asked.rows["sentence_idx"].nunique()
print(f"{len(asked.rows)} rows of {n_base} base sentences")
PLAIN = plots.SCHEME_NAMES | {"InputXGradient": plots.method_label("InputXGradient")}
below = accuracy["below_first_pronoun"].map({True: "yes", False: "no"})
notebooks.show_table(
    accuracy.assign(below=below).round(3).replace(PLAIN),
    {
        "scheme": "model",
        "accuracy": "accuracy",
        "below": "below the first-pronoun rule",
    },
)

# %% [markdown] tags=["slide"]
# A model that is less accurate than the first-pronoun rule has learnt too little. Then it matters little which
# words it uses.
#
# ## 1 · Swap words instead of deleting them
#
# ![Four mixtures of two forms: They love their cat 0.1; She loves their cat 0.6; They love her cat 0.5; She loves her cat 0.9. Two ways lead from the first to the last: She loves first, or her first. The mean of each player's contributions is its Shapley value: She loves 0.45, her 0.35.](../../docs/schematics/shapley.svg)
#
# A sentence with holes is unlike anything that the model was trained on. But GECO has a second form of each sentence, in which only the
# altered words differ. If we swap some, the sentence stays close to what the model knows: *They love her cat*.
#
# The altered words are *players*. The worth $v(S)$ of a set $S$ of players is the probability of the row's class when their words stay and all
# other altered words come from the second form. With $N$ for all players, a player's **Shapley value** is its mean contribution over all orders of arrival:
#
# $$\phi_i = \sum_{S \subseteq N \setminus \{i\}} \frac{|S|!\,(|N|-|S|-1)!}{|N|!}\,\bigl(v(S \cup \{i\}) - v(S)\bigr)$$
#
# The picture has two players. *She loves* contributes .5 when it arrives first, and .4 when it arrives second, so its value is .45. The value
# of *her* is .35. Together they sum to .9 - .1.

# %%
notebooks.show_source(regression.shapley_values)
worth = torch.tensor([0.1, 0.6, 0.5, 0.9])  # of nobody, She loves, her, and both
values = regression.shapley_values(worth, regression.all_masks(2))
assert np.allclose(values, [0.45, 0.35])

# %% [markdown]
# A pronoun and its verb are one player, because the mixture would otherwise read *They loves*. We treat a changed word
# as a verb if it is the same in the female and the male form. It is swapped together with the *they* before it:

# %%
starts = (("She loves", "her"), ("He loves", "his"), ("They love", "their"))
sentences = {
    k: f"{subject} to spend time with {whose} cat .".split()
    for k, (subject, whose) in enumerate(starts)
}
she_and_he, she_and_they = (
    swaps.players_between(sentences, own=0, other=k) for k in (1, 2)
)
assert she_and_he == ((0,), (6,))
assert she_and_they == ((0, 1), (6,))
print("She against He:", she_and_he, " She against They:", she_and_they)

# %% [markdown]
# The numbers are positions in the sentence. Does the model treat the mixtures like ordinary sentences? We mix the female with the
# male form, or one of them with the non-binary form (`forms`).
# `outside` is the share of mixtures whose probability lies over .01 outside those of the two forms, and `undecided`
# (no verdict here) the share with a probability between .1 and .9.

# %% tags=["nbval-ignore-output"]
mixtures = asked.tables(
    "mixtures", lambda name, k: swaps.mixture_shares(asked.swaps(name, k).mixtures)
)
columns = ["model", "forms", "mixtures", "outside", "undecided"]
mixtures = mixtures.groupby(columns[:2], sort=False)[columns[2:]].mean()
mixtures = mixtures.astype({"mixtures": int}).reset_index()
of_forms = {"F and M": "female and male", "with NB": "one of them and non-binary"}
notebooks.show_table(
    stage.table("mixtures", mixtures[columns], digits=2).replace(PLAIN | of_forms),
    dict(zip(columns, columns)),
)

# %% [markdown] tags=["slide"]
# No mixture lies outside.
#
# ## 2 · Do explanations agree with the swaps?
#
# The score of a player is the sum of the scores of its words. We compare it with the player's Shapley value in two
# ways. The **rank correlation** is 1 if both put the players in the same order (*of sizes*: without the
# signs). The **mass** is the share of the attribution on words that are swapped at all. By hand, for three
# players:

# %%
toy = metrics.player_agreement(
    [1.0, 0.0, -5.0, 2.0, 2.0], players=[[0, 1], [2], [3]], values=[0.6, 0.1, 0.3]
)
assert np.allclose([toy["rank_signed"], toy["rank_size"]], [0.5, -1])
assert np.allclose([toy["mass"], toy["sign"]], [0.8, 0.9])
MEASURES = {
    "rank_signed": "rank correlation",
    "rank_size": "rank correlation of sizes",
    "mass": "mass",
    "sign": "sign",
    "top": "top",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
    "AOPC": "area over the curve (AOPC)",
    "NAOPC": "deletion score (NAOPC)",
    "infidelity_scaled": "infidelity, scaled",
}
by_hand = pd.DataFrame(toy, index=["by hand"]).astype(float).round(2)
notebooks.show_table(
    by_hand, {name: MEASURES[name] for name in MEASURES if name in toy}
)

# %% [markdown]
# The explanation gives the players 1, -5 and 2. Their Shapley values are .6, .1 and .3. With the signs the order is
# nearly right, and without them it is reversed. The column `sign` is the share of right signs, weighted by the size of
# the Shapley value. `top` is 1 if the largest score, without its sign, is on the player with the largest value. For all rows:

# %% tags=["nbval-ignore-output"]
agreement = asked.tables(
    "agreement",
    lambda name, k: metrics.agreement_with_swaps(
        asked.of(name, k), asked.swaps(name, k), corpus.CLASSES
    ),
)
ways = ["rank_signed", "rank_size", "mass", "sign"]
agreed = stats.estimates_of(agreement, ["model", "method"], ways, **how)
_ = stage.table("swap_agreement", agreed)
shown = agreed[agreed["model"] == truth_schemes[-1]]
shown = shown.pivot(index="method", columns="measure", values="estimate")[ways]
notebooks.show_table(
    (shown.round(2) + 0).reset_index().replace(PLAIN),  # no "-0.00"
    {"method": "method"} | {name: MEASURES[name] for name in ways},
)

# %% [markdown] tags=["slide"]
# Compare with *Uniform random*, not with zero. A player of two words gets more of any noise than a player of one word,
# so even random scores can correlate. Four methods have 1.00 under `sign` because all their scores are positive: it means nothing.
#
# ## 3 · Delete words
#
# The usual tests delete words in the order of an explanation, and measure how the model's answer $m(x)$ changes. Here $r$
# are the words ranked first, and $m(r)$ is the answer to them alone:
#
# $$\mathrm{comprehensiveness} = m(x) - m(x \setminus r), \qquad \mathrm{sufficiency} = m(x) - m(r)$$
#
# Both are means over the top 1, 5, 10, 20 and 50 percent (DeYoung et al. 2020). Three other measures:
#
# - **AOPC**, the area over the deletion curve (Samek et al. 2017): delete the words one after the other, and average how far the answer falls.
# - **Deletion score** (NAOPC, Edin et al. 2024): AOPC on a scale where 0 is the worst order of deletion and 1 the best. We search for both orders in each row.
# - **Infidelity**, scaled (Yeh et al. 2019): delete random sets of words, and compare the fall with the sum of their scores. 0 is perfect, and 1 is what scores of
#   zero would have.

# %%
answers = np.array([1.0, 0.4, 0.3, 0.2, 0.1])  # after 0, 1, ... 4 deleted words
assert np.isclose(metrics.comprehensiveness(answers, [0.01, 0.5]), (0.6 + 0.7) / 2)
assert np.isclose(metrics.aopc(answers), (0.6 + 0.7 + 0.8 + 0.9) / 4)
of_the_top = np.array([1.0, 1.0, 0.9, 0.8, 0.1])
assert np.isclose(metrics.sufficiency(of_the_top, [0.5]), 0.1)

# %% [markdown]
# Deleting one word lowers this answer by .6, deleting half by .7. On all rows:

# %% tags=["nbval-ignore-output"]
faith = asked.tables(
    "faithfulness",
    lambda name, k: metrics.faithfulness(
        asked.model(name, k), asked.of(name, k), deletion, n_beam=n_beam, seed=seed
    ),
    deletion=deletion,
    n_beam=n_beam,
)
measures = ["comprehensiveness", "sufficiency", "AOPC", "NAOPC", "infidelity_scaled"]
faithful = stats.estimates_of(faith, ["model", "method"], measures, **how)
_ = stage.table("faithfulness", faithful)
shown = faithful[faithful["model"] == truth_schemes[-1]]
shown = shown.pivot(index="method", columns="measure", values="estimate")[measures]
notebooks.show_table(
    (shown.sort_values("NAOPC", ascending=False).head(12).round(2) + 0)
    .reset_index()
    .replace(PLAIN),
    {"method": "method"} | {name: MEASURES[name] for name in measures},
)

# %% [markdown]
# Low values are good for sufficiency and infidelity, high values for the others. *Uniform random*, *First
# pronoun*, *Pronoun list* and *Pattern Variant* see no model. A method shows something about the model only where it is better than all four.
# All scores depend on what replaces a deleted word (`deletion`).
#
# ## 4 · Does a little noise change the explanation?
#
# We add noise to the word embeddings, at most a tenth of their spread. **Sensitivity** (Yeh et al. 2019) is the largest change of the scores that this causes,
# relative to their norm. 0 means no change. An unrelated explanation of the same norm would give about 1.4.

# %% tags=["nbval-ignore-output"]
methods = ["Saliency", "InputXGradient", "Gradient SHAP", "Occlusion"]


def noisy(name: str) -> pd.DataFrame:
    """The sensitivity of each method to noise in the embeddings of a model."""
    parts = [
        metrics.sensitivity(asked.model(name), asked.rows, method, seed=seed)
        for method in methods
    ]
    return pd.concat(parts).assign(seed=0)


noise = [
    asked.table("sensitivity", name, partial(noisy, name)) for name in truth_schemes
]
change = stats.estimates(
    pd.concat(noise), ["model", "method"], "sensitivity_max", **how
)
change = change.drop(columns=["standard_error", "df"])
notebooks.show_table(
    stage.table("sensitivity", change).replace(PLAIN),
    {
        "model": "model",
        "method": "method",
        "estimate": "sensitivity",
        "low": "from",
        "high": "to",
        "n_sentences": "base sentences",
    },
)

# %% [markdown] tags=["slide"]
# The first three methods are stable. Occlusion (leave out one word) has a wide interval (not at `cpu`). Stable does not mean right: a constant explanation would have 0.
#
# ## 5 · Does the explanation look at the model?
#
# ![A model of head, layer 2, layer 1, embeddings, 5 times. From left to right one more part, from the head down, is filled with random numbers, and the sentence is explained again. An explanation that does not change does not look at the model.](../../docs/schematics/randomisation.svg)
#
# **Randomisation** (Adebayo et al. 2018) fills the model with random weights, part by part from the head down, and
# explains each sentence again. We report the rank correlation over the words with the explanation of the trained model.
# If a method explains the model, this correlation should fall. We draw several random models, because a single one may
# resemble the trained one.


# %% tags=["nbval-ignore-output", "slide"]
def randomised(name: str, k: int) -> pd.DataFrame:
    """Likeness to the first explanation by step: means over the forms of a sentence."""
    found = metrics.cascading_randomisation(
        asked.model(name, k),
        asked.one_form_each(random_base.get(name, 0)),
        [*asked.methods(name), ("Occlusion", {})],
        n_draws[name],
        seed + k,
        random_parts.get(name, ()),
        random_rows == "shared",
    )
    by = ["step", "part", "draw", "method", "sentence_idx"]
    return found.groupby(by, sort=False, as_index=False)[kinds].mean()


kinds = ["rank_signed", "rank_size"]
redrawn = [
    asked.table(
        "randomisation",
        name,
        partial(randomised, name, k),
        k,
        n_draws=n_draws[name],
        n_base=random_base.get(name, 0),
        parts=list(random_parts.get(name, ())),
        rows=random_rows,
    ).assign(training=k)
    for name in n_draws
    for k in asked.trainings(name)
]
redrawn = pd.concat(redrawn)
n_of_model = redrawn["model"].map(n_draws)
redrawn["seed"] = redrawn["draw"] + n_of_model * redrawn["training"]
of_step = ["model", "step", "part", "method"]
likeness = stats.estimates_of(redrawn, of_step, kinds, **how)
likeness = likeness.drop(columns=["standard_error", "df"])
assert (likeness.query("step == 0")["estimate"] > 1 - 1e-9).all()
_ = stage.table("randomisation", likeness)
_ = plots.plot_randomisation(likeness)

# %% [markdown]
# Correlations with signs (*value*, *key*, *query*: matrices of the attention layer):

# %% tags=["nbval-ignore-output"]
_ = stage.table("randomisation", likeness)
signed = likeness.query(
    "measure == 'rank_signed' and model == @redrawn['model'].iloc[-1]"
)
steps = list(signed["part"].unique())
signed = signed.pivot(index="method", columns="part", values="estimate")[steps]
notebooks.show_table(
    (signed.round(2) + 0).reset_index().replace(PLAIN),
    {"method": "method"} | {step: step for step in steps},
)

# %% [markdown] tags=["slide"]
# Every method with signed scores changes at the first step, because the head decides for which class a word counts.
# *Saliency* and *Guided Backprop* give no signs, and hardly change when only the head is random. That is not wrong:
# the lower parts are still trained. But such an explanation shows little about the decision.
# When everything is random, no correlation remains here. A remaining one would come from the sentence (words of
# several pieces, say), not from the model.
#
# ## 6 · A truth that we planted
#
# Now we train a model for which we know the word that it uses. Each class gets a word that occurs nowhere else in the
# data. We insert it at a random position, and give each row a random class, so that no other word tells
# the class. The notebook stops unless the model uses the word: if we swap it for that of another class, at least 95
# percent of the predictions must follow. The figure shows which share of its attribution each method puts on this word.

# %% tags=["nbval-ignore-output", "slide"]
names = [
    "Saliency",
    "InputXGradient",
    "Integrated Gradients",
    "Gradient SHAP",
    "Kernel SHAP",
    "LIME",
    "Occlusion",
    "Uniform random",
    ("Kernel SHAP", {"n_samples": 1000}),
    ("LIME", {"n_samples": 1000}),
]
recipe = {"encoder": encoder, "revision": encoder_revision, "classes": corpus.CLASSES}
ids = asked.rows["row_id"]
on_word = asked.table(
    "shortcut",
    "OLA-CEA",
    lambda: planted_mass(recipe, train, test, ids, names, shortcut_epochs, seed),
    epochs=shortcut_epochs,
    methods=names,
)
shares = on_word.groupby("method", sort=False)[["is_first", "even", "follows"]].mean()
planted = stats.estimates(on_word, ["method"], "mass", **how)
planted = planted.merge(shares.reset_index(), on="method")
_ = stage.table("shortcut", planted)
figure, _ = plots.plot_planted(planted)
stage.figure("shortcut", figure)
on_words = [on_word.assign(model="OLA-CEA", seed=0)]

# %% [markdown] tags=["slide"]
# Saliency, Input x Gradient and Occlusion put all of their attribution on the planted word, LIME and Kernel SHAP
# clearly less. Kernel SHAP takes 25 samples and LIME 100, unless the label has a different number. More samples help,
# but not up to 1. One reason may be that both methods ask about sentences without most of their words, where the
# planted word can have another effect.
#
# Is it the same in a deeper model? With `planted_epochs` the words are planted for a BERT, too; at scale small there is none.


# %% tags=["nbval-ignore-output"]
def planted_for(name: str, k: int) -> pd.DataFrame:
    """The mass of each method on the planted word, in a BERT of a scheme."""
    few, epochs = asked.one_form_each(planted_base)["row_id"], planted_epochs[name]
    learn = {"scheme": name, "lr": planted_lr, "batch_size": 32}
    return planted_mass(recipe, train, test, few, names, epochs, seed + k, **learn)


for name, epochs in planted_epochs.items():
    for k in range(planted_seeds):
        made = partial(planted_for, name, k)
        about = {"epochs": epochs, "lr": planted_lr, "methods": names}
        found = asked.table("planted", name, made, k, n_base=planted_base, **about)
        on_words.append(found.assign(seed=k))
on_words = pd.concat(on_words, ignore_index=True)
by_model = stats.estimates(on_words, ["model", "method"], "mass", **how)
by_model = by_model.drop(columns=["standard_error", "df"])
shown = stage.table("planted", by_model)
shown = shown.pivot(index="method", columns="model", values="estimate").round(2)
of_models = {name: PLAIN.get(name, name) for name in shown}
shown = shown.reset_index().replace(PLAIN)
shown["method"] = shown["method"].str.replace("n_samples 1000", "1000 samples")
notebooks.show_table(shown, {"method": "method"} | of_models)

# %% [markdown] tags=["slide"]
# ## 7 · Do the yardsticks agree?
#
# The paper argues (in its section 2) that being right about the data and being faithful to the model are different things.
# We have five yardsticks: mass accuracy, the agreement with swaps, and three measures of
# deletion (`fidelity` is 1 minus the scaled infidelity). Do two of them put the methods in the same order on
# average (*over methods*), and for a single row (*within a row*)?

# %% tags=["nbval-ignore-output", "slide"]
keys = ["model", "seed", "method", "row_id", "sentence_idx"]
on_mask = metrics.score_explanations(
    asked.explanations.query("dataset == 'D_A'"), test.assign(dataset="D_A")
).assign(model=lambda table: table["scheme"])
on_swaps = agreement.groupby(keys, as_index=False)["rank_signed"].mean()
deleted = faith[[*keys, "comprehensiveness", "NAOPC", "infidelity_scaled"]]
table = on_mask.query("scheme != '-'")[["dataset", *keys, "MA"]]
table = table.merge(on_swaps, on=keys).merge(deleted, on=keys)
table = table.rename(columns={"model": "scheme"})
table["fidelity"] = 1 - table["infidelity_scaled"]
yardsticks = ["MA", "rank_signed", "comprehensiveness", "NAOPC", "fidelity"]
correlate = {"methods": metrics.correlate_methods, "rows": metrics.correlate_rows}
related = [
    by(part, yardsticks, **how).assign(scheme=scheme, over=over)
    for scheme, part in table.groupby("scheme", sort=False)
    for over, by in correlate.items()
]
columns = ["scheme", "over", "left", "right", "estimate", "low", "high"]
related = pd.concat(related)[[*columns, "n_sentences", "n_methods"]]
_ = stage.table("yardsticks", related)
_ = plots.plot_yardsticks(related)

# %% [markdown] tags=["slide"]
# At 1 they agree. If the interval contains 0, it stays open whether they are
# related at all. Far below 1, they differ, or are noisy. The intervals generalise to other
# sentences, and not to other methods. At scale small the deletion measures are related; within rows, mass accuracy opposes NAOPC.
#
# ## 8 · How sure is this, and what does it decide?
#
# The table gives the half-width of this run's intervals (median and largest over methods), with the number of base
# sentences:

# %% tags=["nbval-ignore-output", "slide"]
estimated = {
    "swap_agreement": agreed,
    "faithfulness": faithful,
    "randomisation": likeness.query("step > 0"),
    "planted": by_model.assign(measure="mass"),
}
reached = [
    stats.half_widths(table, ["model", "measure"]).assign(table=name)
    for name, table in estimated.items()
]
widths = stage.table("half_widths", pd.concat(reached, ignore_index=True))
of_tables = {
    "swap_agreement": "swaps",
    "faithfulness": "deletion",
    "randomisation": "random weights",
    "planted": "planted word",
}
widths["measure"] = [
    f"{of_tables[name]}: {MEASURES[measure]}"
    for name, measure in zip(widths["table"], widths["measure"])
]
notebooks.show_table(
    widths.replace(PLAIN),
    {
        "model": "model",
        "measure": "measure",
        "n_sentences": "base sentences",
        "half_width": "median",
        "largest": "largest",
    },
)

# %% [markdown]
# We registered claims about these tables in `material/claims.yaml` after seeing the results of an earlier, smaller run at scale
# `cpu`. Later runs judge them here; stage 4 judges all others.

# %% tags=["nbval-ignore-output"]
judged = {
    "swapped": on_swaps.assign(scheme=on_swaps["model"]),
    "deleted": faith.assign(scheme=faith["model"]),
    "randomised": redrawn.assign(
        scheme=redrawn["model"], row_id=redrawn["sentence_idx"]
    ),
    "planted": on_words.assign(scheme=on_words["model"]),
}
judged = {name: table.assign(dataset="D_A") for name, table in judged.items()}
below = accuracy[accuracy["below_first_pronoun"]]
below = set(zip(below["dataset"], below["scheme"]))
about = {"below_what": "a model below the first-pronoun rule", **how}
registered = stats.read_claims(paths.material("geco") / "claims.yaml")
parts = [
    (claim, stats.judge_contrasts(claim, judged, not stage.is_practice, below, **about))
    for claim in registered
    if claim.table in judged
]
_ = stage.table("comparisons", pd.concat([part for _, part in parts]))
verdicts = [stats.summarise(claim, part, scale) for claim, part in parts]
verdicts = stage.table("claims", pd.DataFrame(verdicts))
counts = verdicts["verdict"].value_counts().rename_axis("verdict")
notebooks.show_table(
    counts.reset_index(name="n"), {"verdict": "verdict", "n": "claims"}
)

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Few sentences.** The swaps need the model's answer to all mixtures of a sentence, and the random models need many
#   explanations. So we could afford few.
# - **One fine-tuning run.** At this scale only the first seed is tested.
# - **The second form.** A Shapley value over swaps depends on which form the words are swapped with.
# - **The search.** The best order of deletion is exact for up to eight words. For longer rows it is the best that
#   our search finds.

# %%
notebooks.show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [05_figures](05_figures.ipynb) draws `yardsticks` and `randomisation` of this run. The [study's README](README.md) has its tables.
