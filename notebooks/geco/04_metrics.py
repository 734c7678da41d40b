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
# # GECO, stage 4 of 5: do the explanations point at the words that were changed?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb)
#
# Stage 1 knows which words make a sentence female, male or non-binary. Stage 3 has asked every method which words it holds
# responsible. Now the two are compared (GECOBench, sections 3.3.3 to 4), and then we ask what the comparison is worth.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how an explanation is measured against the words that matter, and what the measure forgives;
# - how well simple rules do that look at no model at all: every number has to be read beside them;
# - which claims of the papers this run can judge, which it cannot, and why.
#
# **You can then** compute mass accuracy and recall, read them beside floors, and choose what a bootstrap resamples.
# **You need** [stage 3](03_attribution.ipynb), and what an interval is. **Time:** 40 minutes to read, a minute to
# run, 25 minutes for the exercises.
#
# | in | from | holds |
# |---|---|---|
# | `<data set>/train.jsonl`, `test.jsonl` | 01 | sentences (lists of words), ground truth (one 0 or 1 per word) |
# | `bias.csv`, `correlation.csv` | 01 | what the data by themselves say about gender |
# | `predictions.parquet` | 02 | class probabilities, per model and test row |
# | `explanations.parquet` | 03 | one number per word, per method, model and explained row |
#
# | out | holds |
# |---|---|
# | `accuracy_vs_floors`, `tpr_tnr`, `prediction_difference`, `confusion`, `roc` | the models |
# | `mass_accuracy`, `relative_mass_accuracy`, `truths_compared`, `row_sets`, `controls` | the explanations |
# | `method_pairs`, `ranking`, `variance`, `seeds`, `wilcoxon` | what the differences are worth |
# | `mixtures`, `swap_agreement`, `faithfulness`, `sensitivity`, `randomisation`, `shortcut`, `yardsticks` | what the models use (section 14) |
# | `attribution_difference`, `example_sentence` | two forms of a sentence; one sentence in full |
# | `claims`, `comparisons`, `single_numbers` | the papers' claims, each with a verdict and a reason, and what it rests on |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import numpy as np
import pandas as pd
import torch
from IPython.display import display
from scipy.stats import pearsonr

from lib import metrics, stats
from lib.attribution import load_explanations
from lib.attribution.regression import all_masks, shapley_values
from lib.attribution.swaps import mixture_shares, players_between
from lib.core.files import load_parquet, read_table
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.metrics.planting import planted_mass
from lib.models.weights import load_tokenizer
from lib.plots import method_grid, plot_mass_accuracy
from lib.studies.geco import floors, summaries
from lib.studies.geco.corpus import CLASSES, load_dataset
from lib.studies.geco.forms import (
    form_differences,
    pair_forms,
    summarise_forms,
    without_verbs,
)
from lib.studies.geco.model_tables import ModelTables
from lib.studies.geco.paper_numbers import compare_numbers

# %% [markdown]
# ## Settings
#
# The small scale explains the forms of a few base sentences, with one or a few trainings of each model. That is enough to show
# every step and too little to conclude from: at scale `small` no claim gets a verdict. `rows` chooses which explained rows
# the tables and claims are about (section 4); the papers use `correct_by_all`.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the resamples and the shuffled masks
n_threads = 1  # CPU threads
encoder = "all-MiniLM-L6-v2"  # whose word pieces are counted (section 3)
encoder_revision = ""  # the commit of a hub id
rows = "correct_by_model"  # rows that count: all, correct_by_model or correct_by_all (the papers')
n_bootstrap = 1000  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha
reuse_units = False  # section 14: take finished tables from, and publish them to, outputs/reference
truth_schemes = [
    "OLA-CEA"
]  # models of D_A that are asked what they use (section 14); first seed only
truth_base = 0  # of how many explained base sentences they are asked (0: all)
deletion = "remove"  # what stands in place of a deleted word: pad, mask or remove
n_beam = 3  # orders kept in the search for the limits of AOPC; 0 leaves NAOPC out
n_draws = {
    "OLA-CEA": 5
}  # parameter randomisation: how many random models, by the scheme that they replace
random_base = {}  # parameter randomisation: on one form of how many base sentences, by scheme ({}: all forms of all)
shortcut_epochs = 40  # passes over the train rows with a planted token

# %% [markdown]
# | symbol | here | meaning |
# |---|---|---|
# | $\mathbf{s}$ | `scores` | an explanation: one signed number per word |
# | $\mathbf{h}$ | `ground_truth` | 1 for a word that changes with the form, otherwise 0 |
# | MA | `MA` | mass accuracy, equation 3 |
# | RMA | `RMA` | mass accuracy relative to the zero-shot model, equation 4 |
# | - | `share` | the part of a sentence that is ground truth |
# | - | `sentence_idx` | the base sentence that a row is a form of; its forms are not independent of each other |
#
# Some words. A *method* makes explanations (stage 3). A *scheme* is a way of training a model (stage 2); `ZS` is the zero-shot
# model, which is not trained. A *floor* is an explanation or a classifier that sees no model: what a real one has to beat.

# %%
stage = open_stage("geco", scale, "04_metrics")
set_up(seed, n_threads)
how = {"n_bootstrap": n_bootstrap, "alpha": alpha, "seed": seed}
explanations = load_explanations(stage.input("03_attribution", "explanations.parquet"))
predictions = load_parquet(stage.input("02_training", "predictions.parquet")).query(
    "split == 'test'"
)
names = sorted(set(explanations["dataset"]) | set(predictions["dataset"]))
data = {
    (name, split): load_dataset(stage, name, split)
    for name in names
    for split in ("train", "test")
}

print(
    f"{len(explanations)} explanations by {explanations['method'].nunique()} methods and floors"
)
n_explained = explanations.groupby("dataset")["row_id"].nunique()
n_rows = {name: len(data[name, "test"]) for name in names}
pd.DataFrame({"test_rows": n_rows, "explained": n_explained}).fillna(0).astype(int)

# %% [markdown] tags=["slide"]
# The forms of the explained base sentences are test rows: no model was trained on them.
#
# ## 1 · One example by hand
#
# ![mass accuracy on a scale from 0 to 1: first pronoun 0.98, Integrated Gradients 0.90, LIME 0.57, Saliency 0.44, random 0.23. first pronoun, random never look at the model. The best of them, 0.98, is the floor: a method below it has not shown that it explains the model.](../../docs/schematics/floor.svg)
#
# The paper's own sentence (section 1), with an explanation that we make up. Its forms begin *She loves*, *He loves*, *They love*
# and go on with *her*, *his*, *their*. So *She*, *loves* and *her* are ground truth.
#
# Before you look: without their signs the scores sum to 10, and 8 of these 10 lie on ground truth, so mass accuracy should
# be .8. The word *spend* has a negative score. Does that help or hurt?

# %%
words = ["She", "loves", "to", "spend", "time", "with", "her", "favorite", "cat", "."]
mask = [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]
scores = [5, 1, 0, -1, 0, 0, 2, 0, 1, 0]
pd.DataFrame(
    {
        "word": words,
        "ground_truth": mask,
        "score": scores,
        "share_of_mass": np.abs(scores) / 10,
    }
)

# %% [markdown] tags=["slide"]
# It hurts. The sign is dropped, so *spend* has taken a tenth of the attention, whatever its direction.
#
# ## 2 · Three definitions
#
# ### Mass accuracy
# The paper (section 3.3.3, equation 3) makes the attributions positive, lets them sum to one, and adds up what lies on ground
# truth. A model may need only some of the changed words, so the measure forgives words that are missed; it punishes
# attention that goes elsewhere.
#
# $$\mathrm{MA}(\mathbf{h}, \mathbf{s}) = \sum_j s_j h_j, \qquad s_j \ge 0,\quad \sum_j s_j = 1 \qquad (3)$$
#
# Below is the code, and a check against the hand value, against the example that the paper gives (attributions .9, 0, 0, .1, ground
# truth on the first two words, mass accuracy .9), and of the claim that neither sign nor scale matter.

# %%
show_source(metrics.mass_accuracy)
assert np.isclose(metrics.mass_accuracy(scores, mask), 0.8)
assert np.isclose(metrics.mass_accuracy([0.9, 0, 0, 0.1], [1, 1, 0, 0]), 0.9)
assert np.isclose(metrics.mass_accuracy([-7 * s for s in scores], mask), 0.8)

# %% [markdown]
# ### What mass accuracy does not see
# *Ours, not the paper's.* All mass on *She* would give 1, with two of three words missed. So a recall stands beside it: **the
# share of ground-truth words that get more than the sentence's average attribution**. The average is 1 here; *She* and *her*
# exceed it and *loves* does not, which makes 2 of 3.
#
# Mass accuracy also depends on how much there is to hit. Noise reaches the share of ground truth, here 3 of 10 words, and D_A
# has more changed words than D_S. Values from the two must not be compared as they are. Hence a second scale, on which noise
# has 0 and perfection 1:
#
# $$\mathrm{MA}_{\mathrm{chance\ normalised}} = \frac{\mathrm{MA} - \mathrm{share}}{1 - \mathrm{share}}$$
#
# The check: recall 2/3, (.8 - .3) / (1 - .3) = 5/7, and a simulation in which noise has a chance-normalised mass accuracy of 0 on average.

# %%
show_source(metrics.mask_recall)
assert np.isclose(metrics.mask_recall(scores, mask), 2 / 3)
assert np.isclose(
    metrics.chance_normalised_mass_accuracy(
        metrics.mass_accuracy(scores, mask), metrics.truth_share(mask)
    ),
    5 / 7,
)
noise = metrics.mass_accuracy(
    np.random.default_rng(seed).random((20000, 10)), np.tile(mask, (20000, 1))
)
assert abs(metrics.chance_normalised_mass_accuracy(noise, 0.3).mean()) < 0.01

# %% [markdown]
# ### The others in one table
# **Relative mass accuracy** (equation 4) divides by the mass accuracy of a baseline, the zero-shot model, and reads the change as
# a change of bias: $\mathrm{RMA} = \mathrm{MA} / \mathrm{MA}_{\mathrm{ZS}}$. Above 1, the explanation found more of the changed
# words than before any training. *Our reading:* one ratio per row and the median over rows, because a mean of ratios is ruled by
# the rows with a tiny denominator. (The released code takes the logarithm of the ratio minus 1, and so loses every row that became
# worse.) The released code computes four more measures, which the papers do not show. They rank the words by the size of their
# attribution and ask whether ground truth comes first.
#
# | name | in words | checked in `tests/metrics/test_mass_accuracy.py` against |
# |---|---|---|
# | `RMA` | MA over that of the zero-shot model; not defined where the baseline found nothing | hand values, in the next cell |
# | `roc_auc` | chance that a changed word outranks another word; ties count one half | scikit-learn |
# | `average_precision` | precision, averaged over the steps of recall | scikit-learn |
# | `top_k_precision` | ground truth among the top k words, k = number of changed words; for ties the expected value | simulated picks |
# | `precision_at_specificity` | precision at the lowest threshold that leaves more than half of the other words alone | scikit-learn's curves |

# %%
ratios = metrics.relative_mass_accuracy(
    np.array([0.8, 0.4, 0.2, 0.4]), np.array([0.4, 0.4, 0.4, 0.0])
)
assert ratios[:3].tolist() == [2.0, 1.0, 0.5] and np.isnan(ratios[3])
pd.DataFrame(
    {
        name: [round(float(metric(scores, mask)), 3)]
        for name, metric in metrics.METRICS.items()
    },
    index=["example"],
).T

# %% [markdown]
# *Reading it.* *She* and *her* come first, then *loves*, *spend* and *cat* tie for the third place: top-k precision is
# (1 + 1 + 1/3) / 3. Rankings do not see how much mass the words have, only their order.
#
# ## 3 · Which words are true?
#
# GECO has one mask for all forms of a sentence: a word is marked if it differs between *any* two of them. So the verb of *She
# loves / He loves / They love* is ground truth in the first two forms as well, where it tells nothing. We compute
# everything twice, with GECO's mask (`union`) and without the positions that read the same in F and M (`no_verbs`).
#
# The `share` that noise reaches is counted in *word pieces*, which is what the models read, without the special tokens at the ends:
# noise falls on pieces, and a word of two pieces catches twice as much.

# %%
explained = explanations["dataset"].unique()
truth = pd.concat(
    [data[name, "test"].assign(dataset=name) for name in explained], ignore_index=True
)
truth["token_counts"] = metrics.piece_counts(
    truth["sentence"], load_tokenizer(encoder, encoder_revision)
)
verbless = [mask for name in explained for mask in without_verbs(data[name, "test"])]
truths = {"union": truth, "no_verbs": truth.assign(ground_truth=verbless)}
marked = {
    name: table["ground_truth"].map(sum).groupby(table["dataset"]).sum()
    for name, table in truths.items()
}
pd.DataFrame(marked).assign(
    same_in_F_and_M=lambda t: (1 - t["no_verbs"] / t["union"]).round(3)
)

# %% [markdown]
# A good part of what the mask calls true is the same word in two forms out of three. A method that ignores the verb in F and M
# rows is right to do so, and loses points under `union`.
#
# ## 4 · Which rows count?
#
# The explanation of a wrong decision cannot be expected to show reasons for the right one. `correct_by_model` keeps the rows that
# the explained model itself gets right. `correct_by_all` is the papers' choice: the base sentences that every model, with
# every seed, gets right in every form. `all` keeps everything. Floors decide nothing, so the first choice keeps all their rows.

# %% tags=["nbval-ignore-output"]
scored = {
    name: metrics.add_relative(metrics.score_explanations(explanations, table))
    for name, table in truths.items()
}
chosen, by = (
    metrics.select_rows(scored["union"], predictions, rows),
    ["dataset", "scheme", "method"],
)
everyone = explanations[by].drop_duplicates()
models = everyone[by[:2]].drop_duplicates().set_index(by[:2])
for which in metrics.ROW_SETS:
    models[which] = (
        metrics.select_rows(scored["union"], predictions, which)
        .groupby(by[:2])["row_id"]
        .nunique()
    )
for model in metrics.without_predictions(explanations, predictions).itertuples():
    print(
        f"{model.dataset} {model.scheme}, seed {model.seed}: of {model.rows} rows nobody said whether "
        "it gets them right, so correct_by_model keeps them"
    )
stage.table("row_sets", models.fillna(0).astype(int).reset_index())

# %% [markdown]
# *Reading it.* The zero-shot model is often wrong, and the papers' choice keeps only sentences that it gets right as well. What is left
# are few sentences, and easy ones. This is why it is not our default.
#
# ## 5 · Have the models learnt the task?
#
# Explaining a model makes sense if it has learnt something. Chance is one in three. But *the class of the first pronoun*, a rule that
# needs no training, is nearly always right. So we ask for more than chance: a model should beat this rule and a logistic regression
# on word counts (*bag of words*), which both know nothing of the order of the words.
#
# A row is *hard* when its first pronoun is somebody else's: no form changes it, and the rule can only guess. There a model must show that it
# has found the subject. The intervals resample base sentences, never rows, since the forms of a sentence are nearly copies of
# each other; section 6 says how seeds enter. A model whose accuracy is below the rule's is marked, and **no claim about its
# explanations will rest on it**.


# %% tags=["nbval-ignore-output"]
def floor_predictions(name: str) -> pd.DataFrame:
    """The two classifiers that see no language model, in the form of predictions."""
    train, test = data[name, "train"], data[name, "test"]
    guesses = {
        "First pronoun rule": floors.first_pronoun_class(test, classes[name]),
        "Bag of words": floors.bag_of_words(train, test),
    }
    about = test[["row_id", "sentence_idx", "target"]].assign(dataset=name, seed=-1)
    return pd.concat(
        [about.assign(scheme=rule, predicted=guess) for rule, guess in guesses.items()]
    )


classes = {name: CLASSES[: data[name, "test"]["target"].nunique()] for name in names}
judged = pd.concat(
    [predictions, *[floor_predictions(name) for name in names]], ignore_index=True
)
judged["is_correct"] = (judged["target"] == judged["predicted"]).astype(float)
hard = {
    (name, row_id)
    for name in names
    for row_id in data[name, "test"]["row_id"][
        floors.first_pronoun_is_other(data[name, "test"], classes[name])
    ]
}
judged["is_hard"] = [key in hard for key in zip(judged["dataset"], judged["row_id"])]
accuracy = summaries.summarise_accuracy(judged, **how)
below = set(
    accuracy.loc[accuracy["below_first_pronoun"], ["dataset", "scheme"]].itertuples(
        index=False, name=None
    )
)
stage.table("accuracy_vs_floors", accuracy).drop(
    columns=["n", "n_sentences", "low_hard", "high_hard"]
)

# %% [markdown]
# *Reading it.* Find `First pronoun rule` of a data set first, then compare. On hard rows the rule falls to chance and the bag of words does
# not know whom the pronoun belongs to; a model that stays up there has learnt more than pronouns. The zero-shot model is expected
# to be below the rule. That is no fault: it serves as the baseline of equation 4 and is not asked to classify. A model marked
# `below_bag_of_words` has shown nothing that counting words does not; where the counts alone are nearly always right (D_A), few can be above.
#
# ## 6 · The full run
#
# For each data set, scheme and method: the mean over rows, averaged over trainings (seeds), with an interval. Base sentences are
# resampled a thousand times. Where a model was trained with several seeds, their spread is added by the t interval of the seeds'
# mean; resampling three seeds would promise too much. With one seed, the interval speaks about sentences only.
#
# How to read the file: `n` rows of `n_sentences` base sentences, `n_seeds` trainings; `MA` from `low` to `high`; the chance-normalised
# value with its own limits; `share` (counted in `share_of`); recall and the ranking measures. It holds every row set with both
# ground truths. Below is `MA` for the chosen rows and GECO's mask.

# %% tags=["nbval-ignore-output"]
parts = [
    summaries.summarise_mass(
        metrics.select_rows(scored[name], predictions, which), everyone, **how
    ).assign(rows=which, truth=name)
    for which in metrics.ROW_SETS
    for name in truths
]
mass = summaries.mark_below(
    pd.concat(parts, ignore_index=True).assign(share_of="tokens"), below
)
main = mass.query("rows == @rows and truth == 'union'").reset_index(drop=True)
stage.table("mass_accuracy", mass)
method_grid(main, "MA").astype(float).round(3).astype(object).fillna("")

# %% [markdown]
# *Reading it.* Start in the column `-`. *First pronoun* puts all mass on the first pronoun of the sentence, and few methods reach it.
# The *Pattern Variant* knows only how words and classes go together in the training rows. The paper takes it for an upper bound;
# it is none. An explanation that stays below the pronoun rule finds fewer of the changed words than a rule that never saw the
# model. Then read along a row: do explanations improve as more of the model is trained? (At scale small the schemes between
# ZS and CEfAf are explained with four methods only, so cells are empty.)
#
# The same without the verbs, for one method and one floor, with recall beside it:

# %% tags=["nbval-ignore-output"]
two = mass.query(
    "rows == @rows and method in ['First pronoun', 'Integrated Gradients']"
)
both = stage.table(
    "truths_compared",
    two[[*by, "truth", "share", "MA", "MA_chance_normalised", "recall"]],
)
both.pivot(
    index=["dataset", "method", "scheme"], columns="truth", values=["MA", "recall"]
)

# %% [markdown] tags=["slide"]
# Without the verbs there is less to hit: a method that spreads its mass loses, the rule that points at one pronoun does not, and its
# recall rises, for there is less to miss. Which mask is right depends on the question; that both are printed is what matters.
#
# ## 7 · Relative mass accuracy
#
# `RMA` is the median of the row-wise ratios; `undefined` is the share of rows without one. So that this table has floors too,
# `RMA_first_pronoun` and `RMA_uniform_random` say what these floors reach over the same zero-shot values.
#
# Above 1: more mass on ground truth than before training. Is it more than luck? Wilcoxon's signed-rank test asks whether the typical base
# sentence gained. It takes MA - MA_ZS, a difference, so that rows with a baseline of zero count as well, and it averages the
# forms and seeds of a base sentence first: fed with rows, it would count every sentence three times and find too much. The p
# values are corrected for their number by *Holm's* method (the smallest times the number of tests, the next times one less, ...).
# A star marks those below `alpha`.

# %% tags=["nbval-ignore-output"]
trained, of_models = summaries.trained_only(chosen), summaries.trained_only(everyone)
relative = summaries.mark_below(
    summaries.summarise_relative(trained, scored["union"], of_models, **how), below
)
gains = stage.table("wilcoxon", summaries.gain_tests(trained, of_models))
stars = stage.table("relative_mass_accuracy", relative).merge(
    gains[[*by, "p_holm"]], on=by
)
stars["shown"] = stars["RMA"].map("{:.2f}".format).replace("nan", "") + np.where(
    stars["p_holm"] < alpha, " *", ""
)
method_grid(stars, "shown").fillna("")

# %% [markdown]
# *Reading it.* With n base sentences the smallest p value that this test can give is 2 / 2^n, .03 for the six of the small scale, and that is
# before the correction: no effect, however large, can be significant there. The file has effect sizes beside it: `rank_biserial`,
# how one-sided the gains are (-1 to 1), and `dz`, the mean gain over its spread.
#
# ## 8 · May we rank the methods?
#
# Every pair of methods is compared on the same rows and seeds. Beside each difference stands the **smallest detectable difference**: what
# a run of this size would find four times out of five, given that so many pairs are compared. We call a pair ranked if the difference is at
# least that large, its interval excludes zero, and the corrected test agrees.
#
# From the pairs follow the best and the worst place that each method can have.

# %% tags=["nbval-ignore-output"]
pairs = summaries.compare_methods(trained, **how)
display(
    stage.table("method_pairs", pairs)
    .groupby(["dataset", "scheme"], sort=False)
    .agg(
        pairs=("is_ranked", "size"),
        ranked=("is_ranked", "sum"),
        typical_difference=("difference", lambda d: d.abs().median()),
        smallest_detectable=("smallest_detectable", "median"),
    )
    .round(3)
)
places = stage.table(
    "ranking", summaries.possible_places(pairs, summaries.trained_only(main))
)
places["place"] = (
    places["best_place"].astype(str) + " to " + places["worst_place"].astype(str)
)
method_grid(places, "place")

# %% [markdown]
# *Reading it.* Where `smallest_detectable` is larger than `typical_difference`, most of the order that we see is an order of noise.
# Where every method reads "1 to" the number of methods, nothing is ranked, and we claim nothing of the order in the tables above.
#
# ## 9 · Where the spread comes from
#
# How much of the variance of mass accuracy lies between trainings (`seed`), base sentences, classes (`target`) and methods? `share` is
# a share of the total sum of squares. `sd` is a standard deviation in units of mass accuracy: that of `seed:method` says how far
# a method moves, beside the others, when the same model is trained again. All rows are used, and the methods that were run for
# every seed, so that the table is balanced. The file also splits being right (0 or 1, every test row). `seeds` asks whether one
# training may simply fail: the paper has 85.1 ± 14.6 percent for OLA on D_S, which one failed training among five would explain.

# %% tags=["nbval-ignore-output"]
right = summaries.trained_only(
    predictions.assign(
        is_correct=(predictions["target"] == predictions["predicted"]).astype(float),
        method="-",
    )
)
parts = {
    "MA": summaries.split_variance(summaries.trained_only(scored["union"])),
    "accuracy": summaries.split_variance(right, "is_correct").query(
        "not term.str.contains('method')"
    ),
}
variance = stage.table(
    "variance",
    pd.concat(
        [t.assign(quantity=name) for name, t in parts.items()], ignore_index=True
    ),
)
per_seed = (
    right.groupby(["dataset", "scheme", "seed"])["is_correct"]
    .mean()
    .groupby(["dataset", "scheme"])
)
seeds = per_seed.agg(
    n_seeds="size", accuracy="mean", sd="std", lowest="min", highest="max"
).reset_index()
seeds["failed"] = per_seed.apply(
    lambda found: (found < found.median() - 0.1).sum()
).to_numpy()
display(stage.table("seeds", seeds))
shares = variance.query("quantity == 'MA'").pivot(
    index=["dataset", "scheme"], columns="term", values="share"
)
shares[variance["term"].unique()].astype(object).fillna("")

# %% [markdown]
# *Reading it.* One seed shows no spread between seeds; those cells stay empty. Where `seed:method` is not small beside `method`, another
# training of the same model would reorder the list. This is why one training decides no claim about a trained model here. `failed`
# counts trainings that end more than ten points below the median training.
#
# ## 10 · The first version's questions
#
# The first version of the paper (v1) had two classes, F and M, and asked whether the models treat them alike. *True positive rate*: male rows
# that are called male (the released code counts male as positive). *True negative rate*: female rows that are called female. *Average
# prediction difference*: the probability of F on a female row minus that of M on the male row of the same sentence; above zero, the model
# is surer about female forms, and sets with three classes can answer that too. In percent, as in v1's Table 4 (intervals in the files):

# %% tags=["nbval-ignore-output"]
binary = judged[judged["dataset"].str.endswith("_binary")].assign(
    percent=lambda t: 100 * t["is_correct"]
)
rates = stats.estimates(binary, ["dataset", "scheme", "target"], "percent", **how)
rates = rates.assign(quantity=rates["target"].map({0: "TNR", 1: "TPR"})).drop(
    columns=["target", "standard_error", "df"]
)
forms = pair_forms(predictions)
gap = stats.estimates(forms, ["dataset", "scheme"], "percent", **how).drop(
    columns=["standard_error", "df"]
)
stage.table("tpr_tnr", rates)
stage.table("prediction_difference", gap)
stage.table(
    "roc",
    summaries.roc_points(predictions[predictions["dataset"].str.endswith("_binary")]),
)
confusion = stage.table("confusion", summaries.confusion_shares(predictions, CLASSES))
display(
    confusion.pivot(
        index=["dataset", "scheme", "target"], columns="predicted", values="share"
    )
    .astype(object)
    .fillna("")
)
both = pd.concat([rates, gap.assign(quantity="difference")])
both = both.pivot(
    index=["dataset", "scheme"], columns="quantity", values="estimate"
).reindex(columns=["TPR", "TNR", "difference"])
both.round(2).astype(object).fillna("")

# %% [markdown]
# A small difference whose interval holds zero favours no form, as far as this run can tell.
#
# ### Is the same word explained differently in the two forms?
# v1 takes the attribution of a word in the F form minus that in the M form, over all words, over ground truth and over the rest.
# Attributions sum to 1 in both forms, so over *all* words the mean is zero by construction (v1 prints it all the same): what
# ground truth gains, the rest loses. `absolute` is the mean size of the difference on ground-truth words.

# %% tags=["nbval-ignore-output"]
others = explanations[explanations["scheme"] != "ZS"]
aligned = form_differences(metrics.select_rows(others, predictions, rows), truth)
difference = summaries.mark_below(
    summarise_forms(aligned, everyone[everyone["scheme"] != "ZS"], **how), below
)
shown = stage.table("attribution_difference", difference)
shown.pivot_table(
    index=["dataset", "scheme"], columns="words", values="difference", sort=False
).round(3)

# %% [markdown]
# Shown is the mean over methods; the file has each of them. A small signed and a large absolute difference says that the forms are explained
# differently, and neither is favoured.
#
# ## 11 · Controls
#
# Four things must be true before we believe any of this, whatever the models did. Noise must reach the share of ground truth and no more.
# Pointing at the first pronoun must beat noise by far. With the **masks shuffled** within each sentence, every advantage must
# be gone. And the **untrained** model must not be explained better than the pronoun rule. The margins are wide enough for a small run.

# %%
rng = np.random.default_rng(seed)
shuffled = truth.assign(
    ground_truth=[rng.permutation(m).tolist() for m in truth["ground_truth"]]
)
lost = metrics.score_explanations(
    explanations[explanations["method"].isin(metrics.FLOORS)], shuffled
)
kept = scored["union"][scored["union"]["method"].isin(metrics.FLOORS)]
controls = kept.groupby(["dataset", "method"], sort=False)[["share", "MA"]].mean()
zero_shot = scored["union"].query("scheme == 'ZS'")
controls["MA_shuffled_masks"] = lost.groupby(["dataset", "method"], sort=False)[
    "MA"
].mean()
for name, part in controls.droplevel("dataset").groupby(
    controls.index.get_level_values("dataset")
):
    noise, rule = part.loc["Uniform random"], part.loc["First pronoun", "MA"]
    told = f"{name}: found {part.round(2).to_dict('index')}; raise n_base"
    assert abs(noise["MA"] - noise["share"]) < 0.06, told
    assert rule > noise["MA"] + 0.3, told
    assert (part["MA_shuffled_masks"] < part["share"] + 0.25).all(), told
    assert (
        zero_shot.query("dataset == @name").groupby("method")["MA"].mean() < rule
    ).all(), told
stage.table("controls", controls.reset_index())

# %% [markdown]
# So the measure answers to where the mass lies, and to nothing else that these rules have.
#
# ## 12 · Claims and verdicts
#
# The claims of both papers stand in `material/claims.yaml`, written before anything was run: what is compared, in which direction, the
# smallest effect that would be of interest, and the test. The verdicts:
#
# - **holds**: interval and corrected test show the effect; **partly**: some of the comparisons that a claim is made of do;
# - **fails**: they show that the effect is absent (smaller than what is of interest) or reversed. Not finding it is not enough;
# - **undecided**: the data cannot tell. Scale small never gets further, nor does a trained model with one seed;
# - **not run**: there are no such rows here, or they belong to a model below the first-pronoun rule.
#
# Other claims are numbers that the papers print (`material/paper_numbers.csv`); each is set beside ours: the sizes of the data sets, bias_C
# of stage 1 with the pronoun list A1, and what was measured above, in percent. A number that belongs to GECO or to BERT is shown
# but not judged where this run has other sentences or another encoder.

# %%
claims = {
    claim.id: claim for claim in stats.read_claims(material("geco") / "claims.yaml")
}


def sizes(name: str) -> dict[str, int]:
    """The numbers of the papers' tables of data sets."""
    train, test = data[name, "train"], data[name, "test"]
    n_base = len(set(train["sentence_idx"]) | set(test["sentence_idx"]))
    kind = "n_rows" if name.endswith("_binary") else "n_sentences"
    return {
        "n_base_sentences": n_base,
        "n_sentences": len(train) + len(test),
        f"{kind}_train": len(train),
        f"{kind}_test": len(test),
    }


bias = pd.read_csv(stage.input("01_data_generation", "bias.csv")).query(
    "term_list == 'A1' and dataset in @names"
)
exact = pd.DataFrame(
    [(name, quantity, n) for name in names for quantity, n in sizes(name).items()],
    columns=["dataset", "quantity", "estimate"],
)
exact = pd.concat(
    [exact, bias.rename(columns={"bias": "estimate"}).assign(quantity="bias_C")]
)
n_base = [sizes(name)["n_base_sentences"] for name in exact["dataset"]]
exact = exact.assign(low=exact["estimate"], high=exact["estimate"], n_sentences=n_base)
percent = (
    accuracy[["accuracy", "low", "high"]]
    .mul(100)
    .rename(columns={"accuracy": "estimate"})
)
percent = percent.join(accuracy[["dataset", "scheme", "n_sentences"]]).assign(
    quantity="accuracy"
)
ours = pd.concat(
    [exact, percent, rates, gap.assign(quantity="average_prediction_difference")]
)
ours = ours.assign(
    n=ours["n_sentences"],
    scheme=ours["scheme"].fillna(""),
    **{"class": ours["class"].fillna("")},
)
paper_numbers = read_table(material("geco") / "paper_numbers.csv")
is_geco = scale != "small" and sizes(names[0])["n_base_sentences"] == 1610
is_bert = "bert-base-uncased" in encoder
numbers = [
    line
    for claim in claims.values()
    if claim.numbers
    for line in compare_numbers(claim, paper_numbers, ours, scale, is_geco, is_bert)
]
print(f"{len(numbers)} printed numbers have a quantity that is computed here")

# %% [markdown]
# Three claims need a number of their own. Are pronouns on top among the words that correlate with a class? Is the largest attribution on the
# pronoun, in one sentence that figure 5 shows in full (the shortest female form in which the pronoun is ground truth)? And do methods
# that vary more also differ more between the forms?

# %% tags=["nbval-ignore-output"]
female = truth.merge(explanations[["dataset", "row_id"]].drop_duplicates()).query(
    "target == 0"
)
spots = [floors.first_pronoun(words) for words in female["sentence"]]
is_fit = [
    spot is not None and mask[spot[0]] == 1 and len(mask) >= 7
    for spot, mask in zip(spots, female["ground_truth"])
]
shortest = (
    female[is_fit]
    .assign(length=lambda t: t["sentence"].map(len))
    .sort_values(["dataset", "length", "sentence_idx"])
)
example = shortest.iloc[0]
is_example = (explanations["dataset"] == example["dataset"]) & (
    explanations["row_id"] == example["row_id"]
)
sentence = summaries.word_shares(explanations[is_example], example["ground_truth"])
correlation = pd.read_csv(stage.input("01_data_generation", "correlation.csv"))
leading = correlation.query(
    "dataset in ['D_A', 'D_S'] and `class` in ['F', 'M']"
).sort_values("r", ascending=False)
leading = (
    leading.groupby(["dataset", "class"])
    .head(2)["word"]
    .isin(["she", "her", "he", "his", "him"])
    .mean()
)
seen = sentence[sentence["scheme"] != "-"]
largest = seen.loc[seen.groupby(["scheme", "method"])["share"].idxmax(), "position"]
on_pronoun = (largest == floors.first_pronoun(example["sentence"])[0]).mean()
counts_here = [
    scheme != "-" and (name, scheme) not in below
    for name, scheme in zip(aligned["dataset"], aligned["scheme"])
]
several = chosen.groupby(by)["seed"].nunique() > 1  # one training decides no claim
varies = chosen.groupby([*by, "seed"])["MA"].std().groupby(by).mean()[several]
spread = varies.to_frame().join(
    aligned[counts_here].groupby(by)["absolute"].mean(), how="inner"
)
ranks = spread.dropna().rank()
related = pearsonr(ranks["MA"], ranks["absolute"]) if len(ranks) > 3 else None
single = {
    "tfidf_top_words": (leading, leading, leading, sizes(names[0])["n_base_sentences"]),
    "pronoun_stands_out": (on_pronoun, np.nan, np.nan, 1),
    "spread_goes_with_difference": (np.nan, np.nan, np.nan, 0),
}
if related:
    single["spread_goes_with_difference"] = (
        related.statistic,
        *related.confidence_interval(),
        len(ranks),
    )
stage.table("example_sentence", sentence)
stage.table(
    "single_numbers",
    pd.DataFrame(single, index=["ours", "low", "high", "n"])
    .T.rename_axis("claim")
    .reset_index(),
)

# %% [markdown]
# Everything together: a line per claim or printed number. `paper` is what the paper says, a number or a direction; `ours` is what we
# found (for a claim of many comparisons their median, with the smallest and the largest in `low` and `high`); `n` counts base
# sentences. Shown are the claims; the printed numbers are in the file.

# %% tags=["nbval-ignore-output"]
tables = {
    "explanations": chosen,
    "predictions": judged,
    "pairs": forms,
    "forms": aligned,
    "correctness": metrics.by_correctness(scored["union"], predictions),
}
decides, rule = scale != "small", "a model below the first-pronoun rule"
comparisons = {
    name: stats.judge_contrasts(
        claim,
        tables,
        decides,
        below,
        below_what=rule,
        untrained=summaries.UNTRAINED,
        **how,
    )
    for name, claim in claims.items()
    if claim.table
}
singles = []
for name, found in single.items():
    relative_to_claim = [x - claims[name].target for x in found[:3]]
    singles.append(
        stats.claim_row(
            claims[name],
            stats.judge(claims[name], *relative_to_claim, found[3], decides),
            scale,
            "",
            *found,
        )
    )
written = [
    stats.summarise(claims[name], parts, scale) for name, parts in comparisons.items()
]
verdicts = pd.DataFrame([*numbers, *written, *singles])
allowed = stats.VERDICTS if decides else ("undecided", "not run")
assert set(verdicts["verdict"]) <= set(allowed)
assert (verdicts["why"] != "")[verdicts["verdict"].isin(["undecided", "not run"])].all()
stage.table("comparisons", pd.concat(comparisons.values(), ignore_index=True))
stage.table("claims", verdicts)
print(f"{len(verdicts)} claims are judged; stage 5 shows them")

# %% [markdown] tags=["slide"]
# *Reading it.* The reason of each verdict is in the column `why` of `claims.csv`, and stage 5 prints it beside the figures; `comparisons.csv`
# has what each verdict rests on, comparison by comparison.
#
# ## 13 · The figure
#
# Mass accuracy by scheme and method, with intervals, and the floors as lines. A grey panel is a model below the first-pronoun rule.

# %% tags=["nbval-ignore-output", "slide"]
figure, table = plot_mass_accuracy(main)
stage.figure("mass_accuracy", figure)
stage.table("figure", table)
stage.table("bias", bias)
stage.table("correlation", correlation)
table.head(10).round(3)

# %% [markdown]
# Intervals that cross each other and the floors: that is what an undecided ranking looks like. What stage 5 needs of stage 1, bias_C and the
# correlations, is handed on from here, so that it reads one folder only.
#
# ## 14 · What the models really use
#
# Everything so far held explanations against GECO's mask. The mask says what the data contain, not what a model uses: a model may be
# right without some of the changed words. So we now ask the models, in four ways, and then ask whether the answers agree with the mask.
#
# ### Swapping words instead of deleting them
#
# ![Four mixtures of two forms: They love their cat 0.1; She loves their cat 0.6; They love her cat 0.5; She loves her cat 0.9. Two ways lead from the first to the last: She loves first, or her first. The mean of each player's contributions is its Shapley value: She loves 0.45, her 0.35.](../../docs/schematics/shapley.svg)
# A sentence with holes is not one that the model has been trained on. But GECO has a form of the same sentence in which only the
# altered words differ. Swap a few of them, and the sentence is still one that the model knows: *They love her cat*. The altered words
# are players; the worth of a set of players is the model's probability of the row's class when their words stay and the others come
# from the other form. A player's Shapley value (Shapley 1953, eq. 12) is its mean contribution over all orders of arrival:
#
# $$\phi_i = \sum_{S \subseteq N \setminus \{i\}} \frac{|S|!\,(|N|-|S|-1)!}{|N|!}\,\bigl(v(S \cup \{i\}) - v(S)\bigr), \qquad
# \sum_i \phi_i = v(N) - v(\emptyset)$$
#
# By hand, with two players: let the other form have .1, the pronoun alone give .6, the possessive alone .5, and both .9. The pronoun
# contributes .5 when it comes first and .4 when it comes second: .45. The possessive: .4 and .3, so .35. They sum to .9 - .1.
#
# Which words belong together? A pronoun and the verb that agrees with it must be swapped together, or the mixture would read *They
# loves*. A position where F and M read the same and NB does not is taken for a verb. It joins the nearest "they" before it.

# %%
show_source(shapley_values)
assert np.allclose(
    shapley_values(torch.tensor([0.1, 0.6, 0.5, 0.9]), all_masks(2)), [0.45, 0.35]
)
pairs_of_words = (("She loves", "her"), ("He loves", "his"), ("They love", "their"))
sentences = {
    k: f"{subject} to spend time with {whose} cat .".split()
    for k, (subject, whose) in enumerate(pairs_of_words)
}
assert [players_between(sentences, own=0, other=k) for k in (1, 2)] == [
    ((0,), (6,)),
    ((0, 1), (6,)),
]
toy = metrics.player_agreement(
    [1.0, 0.0, -5.0, 2.0, 2.0], players=[[0, 1], [2], [3]], values=[0.6, 0.1, 0.3]
)
assert np.allclose(
    [toy["rank_size"], toy["rank_signed"], toy["mass"], toy["sign"]],
    [-1, 0.5, 0.8, 0.9],
)

# %% [markdown]
# The last lines are an explanation by hand. Per row and direction we compare what a method gives to each player (the sum over its words)
# with the player's value: `rank_signed` is Spearman's correlation over the players, `rank_size` the same without signs, `mass` the share
# of attribution on words that are swapped at all, `sign` the share of players with the right sign, weighted by the size of the value.
#
# We ask the models of `truth_schemes` (D_A, first seed) about `truth_base` of the explained base sentences. All mixtures of all rows are
# scored, each text once. Sentences that mix words of two forms are not in the data, so the first table looks at them apart: `outside` are
# mixtures whose probability lies outside of that of both their forms, by more than .01, `undecided` those between .1 and .9. Every
# finished table is kept, so that a run without weights finds it.

# %% tags=["nbval-ignore-output"]
asked = ModelTables(
    stage,
    predictions,
    "D_A",
    truth_schemes,
    explanations,
    data["D_A", "test"],
    truth_base,
    reuse_units,
    seed,
)
mixtures = asked.tables(
    "mixtures", lambda name: mixture_shares(asked.swaps(name).mixtures)
)
display(
    stage.table(
        "mixtures", mixtures[["model", "forms", "mixtures", "outside", "undecided"]]
    )
)
agreement = asked.tables(
    "agreement",
    lambda name: metrics.agreement_with_swaps(
        asked.of(name), asked.swaps(name), CLASSES
    ),
)
agreed = stats.estimates_of(
    agreement, ["model", "method"], ["rank_signed", "rank_size", "mass", "sign"], **how
)
stage.table("swap_agreement", agreed)
agreed.pivot(index="method", columns=["model", "measure"], values="estimate").round(
    3
).astype(object).fillna("")

# %% [markdown]
# *Reading it.* Begin with *Uniform random*. A player of two words (a pronoun with its verb) gets more of any noise, so noise does not
# have 0 here; and where nearly all values are positive, a method without signs has every sign right. A method has to beat that line,
# not zero. Rows with one player have no rank and count in `mass` and `sign` only.
#
# ### Deleting words
# The usual measures of faithfulness delete words, and what stands in their place (`deletion`) is part of the definition. $x \setminus r$ is
# the sentence without the words that the explanation ranks first, $r$ those words alone:
#
# $$\mathrm{comprehensiveness} = m(x) - m(x \setminus r), \qquad \mathrm{sufficiency} = m(x) - m(r)$$
#
# (DeYoung et al. 2020, eq. 1 and 2; averaged over the top 1, 5, 10, 20 and 50 percent, eq. 3). AOPC is the mean fall over the deletion of 1,
# 2, ..., all words (Samek et al. 2017, eq. 12). How large it can be depends on model and row, so `NAOPC` puts it between the worst order of
# deletion, 0, and the best, 1 (Edin et al. 2024); both are searched for, exactly in rows of up to eight words, otherwise among the orders that
# begin like one of the `n_beam` best so far, and no explanation tried lies outside of them. Infidelity (Yeh et al. 2019, def. 2.1) deletes random sets of words and compares the
# fall with the sum of their scores; scaled, 0 is perfect and 1 no better than an explanation of zeros.
#
# By hand: a score that falls 1, .4, .3, .2, .1 as the words go loses .6 with the first word and .7 with the first half; its AOPC is
# the mean of .6, .7, .8 and .9.

# %% tags=["nbval-ignore-output"]
by_hand = np.array([1.0, 0.4, 0.3, 0.2, 0.1])
assert np.isclose(metrics.comprehensiveness(by_hand, [0.01, 0.5]), 0.65) and np.isclose(
    metrics.aopc(by_hand), 0.75
)
assert np.isclose(metrics.sufficiency(np.array([1.0, 1.0, 0.9, 0.8, 0.1]), [0.5]), 0.1)
faith = asked.tables(
    "faithfulness",
    lambda name: metrics.faithfulness(
        asked.model(name), asked.of(name), deletion, n_beam=n_beam, seed=seed
    ),
    deletion=deletion,
    n_beam=n_beam,
)
shown = stats.estimates_of(
    faith,
    ["model", "method"],
    ["comprehensiveness", "sufficiency", "AOPC", "NAOPC", "infidelity_scaled"],
    **how,
)
stage.table("faithfulness", shown)
shown.pivot(index="method", columns=["model", "measure"], values="estimate").round(
    3
).astype(object).fillna("")

# %% [markdown]
# *Reading it.* The line *Random order* is what random scores reach on the same rows; a method below it is worse than nothing. High is good for
# comprehensiveness, AOPC and NAOPC, low for sufficiency and infidelity. Set `deletion` to `pad` and see who moves: the same
# explanation of the same model can be faithful to one way of deleting and not to another.
#
# ### Is it firm, and does it look at the model at all?
#
# ![A model of head, layer 2, layer 1, embeddings, 5 times. From left to right one more part, from the head down, is filled with random numbers, and the sentence is explained again. An explanation that does not change does not look at the model.](../../docs/schematics/randomisation.svg)
# | name | in words | checked in `tests/lib` against |
# |---|---|---|
# | `sensitivity_max` (Yeh et al. 2019, def. 3.1) | the largest change of the word scores, as a share of their length, when the word embeddings get noise of at most a tenth of their spread; 0 is firm, 1.41 as far away as an unrelated explanation | a linear model by hand |
# | randomisation (Adebayo et al. 2018) | make the parameters random, step by step from the head down to the embeddings, and explain again: rank correlation over the words with the first answer | a model that ignores what is random |
#
# A constant explanation is perfectly firm, so the first says nothing about being right. LIME reads words, to which no noise can be added.

# %% tags=["nbval-ignore-output"]
token_methods = ["Saliency", "InputXGradient", "Gradient SHAP", "Occlusion"]
firm = asked.tables(
    "sensitivity",
    lambda name: pd.concat(
        [
            metrics.sensitivity(asked.model(name), asked.rows, method, seed=seed)
            for method in token_methods
        ]
    ).assign(seed=0),
)
display(
    stage.table(
        "sensitivity",
        stats.estimates(firm, ["model", "method"], "sensitivity_max", **how).drop(
            columns=["standard_error", "df"]
        ),
    )
)

# %% [markdown]
# Small numbers are firm, and a word that moves the score abruptly makes any method that follows it less so.
#
# In the second, a method that explains the model loses all likeness to its first answer; what is left at the last step, it owes to the sentence.
# It is asked of every method of stage 3 that sees a model, with the settings that it had there, and of Occlusion. `n_draws` models are made
# random, each in its own cascade (the keys name the schemes), since one random model likes some words better than others in all sentences at once:
# the interval is one over draws and base sentences. `rank_signed` compares the scores as they are, `rank_size` without their signs.


# %% tags=["nbval-ignore-output"]
def randomised(name: str) -> pd.DataFrame:
    """How much each method's answers are still like the first ones, step by step: means over the forms of a sentence."""
    found = metrics.cascading_randomisation(
        asked.model(name),
        asked.one_form_each(random_base.get(name, 0)),
        [*asked.methods(name), ("Occlusion", {})],
        n_draws[name],
        seed,
    )
    return found.groupby(
        ["step", "part", "draw", "method", "sentence_idx"], sort=False, as_index=False
    )[["rank_signed", "rank_size"]].mean()


redrawn = pd.concat(
    [
        asked.table(
            "randomisation",
            name,
            lambda: randomised(name),
            n_draws=n_draws[name],
            n_base=random_base.get(name, 0),
        )
        for name in n_draws
    ]
).rename(columns={"draw": "seed"})
likeness = stats.estimates_of(
    redrawn, ["model", "step", "part", "method"], ["rank_signed", "rank_size"], **how
)
assert (likeness.query("step == 0")["estimate"] > 1 - 1e-9).all()
stage.table("randomisation", likeness.drop(columns=["standard_error", "df"]))
steps = likeness.pivot(
    index=["model", "step", "part"], columns=["measure", "method"], values="estimate"
).round(2)
display(steps["rank_signed"], steps["rank_size"])

# %% [markdown]
# *Reading it.* Down a column. For every method with signs the first step is enough: with a random head its answer is a stranger's, for the
# head decides which way a word counts. What is left of it by size (second table) is which words the rest of the model looks at, and at which
# step that goes differs from model to model.
#
# *Saliency* and *Guided Backprop* have no signs, so size is all they say, and they can hardly tell a trained head from a random one. On the
# real data (scale `cpu`, with a BERT whose embeddings and head were trained) they still put the words in much the same order when head, pooler
# and the upper four of six layers are random, where nothing is left of what the other methods said with signs. That is not wrong in itself, for the
# lower layers and the embeddings are still there; but such an answer says little about the decision. What remains of a method when all is random
# (last line) is owed to the sentence: a word of two pieces, say, has the gradients of two. `randomisation.csv` has the intervals, stage 5 a picture.
#
# ### A truth that we planted
# Last, a model that we know. Each class gets a word of its own that stands nowhere in the data; it is inserted at a random place, and the
# classes are dealt out at random among the forms of a sentence, so the sentence itself says nothing. Then it is *verified*: swap the word
# for that of another class, and at least 95 percent of the predictions must follow (`follows`; the run stops otherwise). From here on no
# method can say that the model was odd.

# %% tags=["nbval-ignore-output"]
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
recipe = {"encoder": encoder, "revision": encoder_revision, "classes": CLASSES}
on_word = asked.table(
    "shortcut",
    "OLA-CEA",
    lambda: planted_mass(
        recipe,
        data["D_A", "train"],
        data["D_A", "test"],
        asked.rows["row_id"],
        names,
        shortcut_epochs,
        seed,
    ),
    epochs=shortcut_epochs,
    methods=names,
)
shares = (
    on_word.groupby("method", sort=False)[["is_first", "even", "follows"]]
    .mean()
    .reset_index()
)
stage.table(
    "shortcut",
    stats.estimates(on_word, ["method"], "mass", **how).merge(shares, on="method"),
)[["method", "estimate", "low", "high", "is_first", "even", "follows", "n_sentences"]]

# %% [markdown]
# *Reading it.* Here a low share cannot be the model's fault. It is the method's, or that of its settings: Kernel SHAP takes 25 samples and
# LIME 100 unless the line says otherwise. `is_first` says how often the word has the largest attribution, `even` what equal scores on all
# words would give. *Uniform random* is the floor again. More samples help both, and do not take them to the top: they ask what the word is
# worth in sentences of which most words are gone as well. The model is OLA, one layer of attention; a deeper one was not planted.
#
# ### Do the yardsticks agree?
# The same explanations, five yardsticks: mass accuracy on GECO's mask (`MA`), agreement with the swaps (`rank_signed`), and three measures of
# faithfulness (`comprehensiveness`, `NAOPC`, and `fidelity`, 1 minus the scaled infidelity). The paper holds that being right about the data and being
# faithful to the model are different things, and that the second can mislead (its section 2). `methods`: do two yardsticks put the methods in the
# same order on average? `rows`: do they, on a single row? The intervals resample base sentences.

# %% tags=["nbval-ignore-output"]
keys = ["model", "method", "row_id", "sentence_idx"]
on_mask = (
    scored["union"]
    .query("dataset == 'D_A' and seed == 0")
    .assign(model=lambda t: t["scheme"])
)
on_swaps = agreement.groupby(keys, as_index=False)["rank_signed"].mean()
table = on_mask[["dataset", "seed", *keys, "MA"]].merge(on_swaps, on=keys)
table = table.merge(
    faith[[*keys, "comprehensiveness", "NAOPC", "infidelity_scaled"]], on=keys
)
table = table.rename(columns={"model": "scheme"}).assign(
    fidelity=lambda t: 1 - t["infidelity_scaled"]
)
yardsticks = ["MA", "rank_signed", "comprehensiveness", "NAOPC", "fidelity"]
related = pd.concat(
    [
        correlate(part, yardsticks, **how).assign(scheme=scheme, over=over)
        for scheme, part in table.groupby("scheme", sort=False)
        for over, correlate in (
            ("methods", metrics.correlate_methods),
            ("rows", metrics.correlate_rows),
        )
    ]
)
stage.table(
    "yardsticks",
    related[
        [
            "scheme",
            "over",
            "left",
            "right",
            "estimate",
            "low",
            "high",
            "n_sentences",
            "n_methods",
        ]
    ],
)

# %% [markdown] tags=["slide"]
# *Reading it.* 1: the two yardsticks put the methods in the same order. An interval that holds zero: this run cannot tell whether they have
# anything to do with each other. An interval far below 1: they do not measure the same thing, and a ranking by one is no
# ranking by the other. The intervals speak of other sentences, with these `n_methods` methods given (some of which are nearly one method);
# at scale small they are too wide to decide anything.
#
# ## What could be wrong
#
# - **The ground truth is a definition.** A changed word is what *may* inform. A model can be right without it, and its honest explanation
#   then scores low.
# - **The chance level depends on the tokenizer.** It is counted with that of the first model; explanations from elsewhere may have been made
#   with another one.
# - **Few seeds.** Three trainings describe a spread badly. The t distribution with two degrees of freedom is honest about it, and very wide.
# - **Another baseline than the paper's.** What the zero-shot model is depends on the encoder (stage 2), and RMA inherits it.
# - **The processor.** With other instructions a kept epoch moves, and a test row turns from wrong to right. At scale small some
#   numbers then move by as much as they hold: p values of comparisons that nearly tie, the smallest detectable difference,
#   the paper's single numbers. They are compared by form, and decide nothing (`tests/arithmetic.csv`).
#
# ## Try it
#
# - Set `rows = "all"`. Which methods lose most, and is that what v1 reports about misclassified sentences?
# - Set `rows = "correct_by_all"`. How many sentences are left? Are they longer or shorter than the others?
# - In stage 3, add a method that puts all mass on the full stop (`module:function`). Guess its mass accuracy before you run it.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [05_figures](05_figures.ipynb) computes nothing. It reads the tables above and puts figure, claim and verdict side by side.
#
# Further reading: Arras et al. 2022, where mass accuracy comes from; Hesterberg 2015, *What teachers should know about the bootstrap*, on why few
# sentences need wider percentiles; Lakens 2017, *Equivalence tests*, on how a claim can fail.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
import numpy as np
import pandas as pd

from lib import metrics
from lib.core.exercises import (
    check_choice,
    check_function,
    check_number,
    read_committed,
)

table = read_committed("geco", "cpu", "04_metrics", "mass_accuracy")
table = table.query("dataset == 'D_A' and rows == 'all' and truth == 'union'")
rules = table.query("scheme == '-'")[["method", "MA", "recall", "share"]]
rules.round(3)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# A sentence of eight words has two changed words. The scores are 3, -1, 0, 0, 2, 0, 0, 4, and the changed words are the first and the fifth. Compute the mass accuracy, the share that noise reaches, and the chance-normalised mass accuracy.

# %% tags=["hole"]
MA = ...
share = ...
MA_chance_normalised = ...

# %% tags=["solution"]
MA = (3 + 2) / (3 + 1 + 2 + 4)
share = 2 / 8
MA_chance_normalised = (MA - share) / (1 - share)

# %% tags=["check"]
scores, mask = [3, -1, 0, 0, 2, 0, 0, 4], [1, 0, 0, 0, 1, 0, 0, 0]
mass, noise = metrics.mass_accuracy(scores, mask), metrics.truth_share(mask)
check_number(
    MA,
    mass,
    {"a negative score counts by its size.": 5 / 8},
    "Sizes first, then a share.",
    name="MA",
)
check_number(
    share, noise, hint="Noise gives every word the same on average.", name="share"
)
check_number(
    MA_chance_normalised,
    metrics.chance_normalised_mass_accuracy(mass, noise),
    {
        "that is how far it is above noise; perfection is not at 1 yet.": mass - noise,
        "that is a ratio to noise; noise must have 0.": mass / noise,
    },
    "Two facts fix the scale: noise has 0, and 1 stays 1.",
    name="MA_chance_normalised",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Mass accuracy forgives words that are missed. Write the recall of section 2: the share of changed words whose size exceeds the sentence's average size.


# %% tags=["hole"]
def recall(scores, mask):
    """A number between 0 and 1."""
    return ...


# %% tags=["solution"]
def recall(scores, mask):
    """A number between 0 and 1."""
    sizes, truth = np.abs(scores), np.asarray(mask) == 1
    return np.mean(sizes[truth] > sizes.mean())


# %% tags=["check"]
check_function(
    recall,
    metrics.mask_recall,
    {
        "One of the two changed words is above the average.": [
            [4, 0, 1, 1],
            [1, 1, 0, 0],
        ],
        "Signs are dropped first.": [[-4, 3, 1, 0], [1, 1, 0, 0]],
        "Divide by the number of changed words, not of all.": [
            [5, 0, 0, 0],
            [1, 0, 0, 0],
        ],
        "A word with exactly the average is not above it.": [
            [1, 1, 1, 1],
            [1, 1, 0, 0],
        ],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `rules` above is of the run at scale `cpu`, on all rows of D_A. *First pronoun* has a very high mass accuracy and a low recall. Why?
#
# - `"a"` It looks at the model, but only at the first layer.
# - `"b"` It puts everything on one word, which nearly always is a changed word, and leaves all other changed words out.
# - `"c"` Sentences of D_A have only one changed word.

# %% tags=["hole"]
why = ...  # "a", "b" or "c"

# %% tags=["solution"]
why = "b"

# %% tags=["check"]
pronoun = rules.set_index("method").loc["First pronoun"]
assert pronoun["MA"] > 0.9 and pronoun["recall"] < 0.5
check_choice(
    why,
    "b",
    {
        "a": "A floor sees no model at all: the table has the scheme '-' for it.",
        "c": "If a sentence had only one changed word, what would the recall be?",
    },
)

# %% [markdown] tags=["exercise"]
# ### 4 · Change a parameter, and explain
#
# A bootstrap says how far a mean would move on other data. Our rows are three forms of each base sentence, and the forms resemble each other. Below are made-up scores of 30 base sentences in three forms. Run the bootstrap with `by = "row"` and with `by = "sentence"`. How many times as wide is the second interval, and which is the honest one?
#
# - `"a"` That over rows: it has more data, so it is better.
# - `"b"` That over sentences: a new sample would bring new sentences, with all of their forms.
# - `"c"` Both: they estimate the same mean.

# %% tags=["exercise"]
draw = np.random.default_rng(0)
of_sentence = draw.normal(0.7, 0.15, 30).repeat(3)
made_up = pd.DataFrame(
    {
        "sentence": np.arange(30).repeat(3),
        "value": of_sentence + draw.normal(0, 0.02, 90),
    }
)


def width(by):
    """How wide the 95 % interval of the mean is, over 2,000 resamples."""
    rng = np.random.default_rng(1)
    values = made_up["value"].to_numpy()
    units = values[:, None] if by == "row" else values.reshape(30, 3)
    picks = rng.integers(len(units), size=(2000, len(units)))
    low, high = np.percentile(units[picks].mean(axis=(1, 2)), [2.5, 97.5])
    return high - low


print(f"over rows: {width('row'):.3f}")

# %% tags=["hole"]
times_as_wide = ...
the_honest_one = ...  # "a", "b" or "c"

# %% tags=["solution"]
times_as_wide = width("sentence") / width("row")
the_honest_one = "b"

# %% tags=["check"]
check_number(
    times_as_wide,
    width("sentence") / width("row"),
    {"that is the other way round.": width("row") / width("sentence")},
    "Call width twice, and divide.",
    tolerance=0.05,
    name="times_as_wide",
)
check_choice(
    the_honest_one,
    "b",
    {
        "a": "Three nearly equal rows are not three times the evidence.",
        "c": "The mean is the same; is the question how sure we are of it?",
    },
    name="the_honest_one",
)
