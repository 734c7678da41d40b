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
# # GECO, stage 4 of 5: do the explanations point at the words that were changed?
#
# [Start here](../00_start_here.ipynb) · before: [03_attribution](03_attribution.ipynb) · next: [05_figures](05_figures.ipynb)
#
# Stage 1 knows which words make a sentence female, male or non-binary. Stage 3 has asked every method which words it holds
# responsible. Now the two are compared (GECOBench, sections 3.3.3 to 4), and then we ask what the comparison is worth.

# %% [markdown]
# ## You will see
#
# - how an explanation is measured against the words that matter, and what the measure forgives;
# - how well simple rules do that look at no model at all: every number has to be read beside them;
# - which claims of the papers this run can judge, which it cannot, and why.
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
# | `method_pairs`, `ranking`, `variance`, `wilcoxon` | what the differences are worth |
# | `attribution_difference`, `example_sentence` | two forms of a sentence; one sentence in full |
# | `claims`, `comparisons`, `single_numbers` | the papers' claims, each with a verdict and a reason, and what it rests on |

# %%
import json

import numpy as np
import pandas as pd
from scipy.stats import pearsonr
from sklearn.metrics import roc_auc_score, roc_curve

from lib import floors
from lib.attribution.table import load_explanations
from lib.claims import VERDICTS, claim_row, compare_numbers, judge, judge_contrasts, read_claims, summarise
from lib.corpora import CLASSES, load_dataset
from lib.metrics import (FLOORS, METRICS, ROW_SETS, add_relative, by_correctness, chance_normalised_mass_accuracy,
                         form_differences, mask_recall, mass_accuracy, piece_counts, relative_floors,
                         relative_mass_accuracy, score_explanations, select_rows, truth_share, without_verbs)
from lib.models.sources import load_tokenizer
from lib.paths import material
from lib.plots import method_grid, plot_mass_accuracy
from lib.seeds import set_up
from lib.show import show_source
from lib.stage import open_stage
from lib.stats import clustered_wilcoxon, compare_all, estimates, holm, variance_split
from lib.store import load_parquet

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
rows = "correct_by_model"  # rows that count: all, correct_by_model or correct_by_all (the papers')
n_bootstrap = 1000  # resamples per interval
alpha = 0.05  # level of the tests; the intervals have 1 - alpha

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
explanations = load_explanations(stage.input("03_attribution", "explanations.parquet"))
predictions = load_parquet(stage.input("02_training", "predictions.parquet")).query("split == 'test'")
names = sorted(set(explanations["dataset"]) | set(predictions["dataset"]))
data = {(name, split): load_dataset(stage, name, split) for name in names for split in ("train", "test")}
for frame in data.values():
    frame.attrs.clear()  # the list of faults that comes along keeps pandas from putting tables together
print(f"{len(explanations)} explanations by {explanations['method'].nunique()} methods and floors")
n_explained = explanations.groupby("dataset")["row_id"].nunique()
n_rows = {name: len(data[name, "test"]) for name in names}
pd.DataFrame({"test_rows": n_rows, "explained": n_explained}).fillna(0).astype(int)

# %% [markdown]
# The forms of the explained base sentences are test rows: no model was trained on them.
#
# ## 1 · One example by hand
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
pd.DataFrame({"word": words, "ground_truth": mask, "score": scores, "share_of_mass": np.abs(scores) / 10})

# %% [markdown]
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

# %%
show_source(mass_accuracy)

# %% [markdown]
# We check the hand value, the example that the paper gives (attributions .9, 0, 0, .1, ground truth on the first two words, mass
# accuracy .9), and that neither sign nor scale matter.

# %%
assert np.isclose(mass_accuracy(scores, mask), 0.8)
assert np.isclose(mass_accuracy([0.9, 0, 0, 0.1], [1, 1, 0, 0]), 0.9)
assert np.isclose(mass_accuracy([-7 * s for s in scores], mask), 0.8)

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

# %%
show_source(mask_recall)

# %% [markdown]
# By hand: recall 2/3, and (.8 - .3) / (1 - .3) = 5/7. Then a simulation: noise on the ten words must have a chance-normalised
# mass accuracy of 0 on average.

# %%
assert np.isclose(mask_recall(scores, mask), 2 / 3)
assert np.isclose(chance_normalised_mass_accuracy(mass_accuracy(scores, mask), truth_share(mask)), 5 / 7)
noise = mass_accuracy(np.random.default_rng(seed).random((20000, 10)), np.tile(mask, (20000, 1)))
assert abs(chance_normalised_mass_accuracy(noise, 0.3).mean()) < 0.01

# %% [markdown]
# ### Relative mass accuracy
# The paper (equation 4) divides by the mass accuracy of a baseline, the zero-shot model, and reads the change as a change of bias:
#
# $$\mathrm{RMA} = \frac{\mathrm{MA}}{\mathrm{MA}_{\mathrm{ZS}}} \qquad (4)$$
#
# Above 1, the explanation found more of the changed words than before any training. *Our reading:* one ratio per row and the
# median over rows, because a mean of ratios is ruled by the rows with a tiny denominator; not defined where the baseline
# found nothing. (The released code takes the logarithm of the ratio minus 1, and so loses every row that became worse.)

# %%
show_source(relative_mass_accuracy)

# %% [markdown]
# Twice as good, as good, half as good, and a baseline of zero:

# %%
ratios = relative_mass_accuracy(np.array([0.8, 0.4, 0.2, 0.4]), np.array([0.4, 0.4, 0.4, 0.0]))
assert ratios[:3].tolist() == [2.0, 1.0, 0.5] and np.isnan(ratios[3])

# %% [markdown]
# ### The others in one table
# The released code computes four more measures, which the papers do not show. They rank the words by the size of their
# attribution and ask whether ground truth comes first.
#
# | name | in words | checked in `tests/lib/test_metrics.py` against |
# |---|---|---|
# | `roc_auc` | chance that a changed word outranks another word; ties count one half | scikit-learn |
# | `average_precision` | precision, averaged over the steps of recall | scikit-learn |
# | `top_k_precision` | ground truth among the top k words, k = number of changed words; for ties the expected value | simulated picks |
# | `precision_at_specificity` | precision at the lowest threshold that leaves more than half of the other words alone | scikit-learn's curves |

# %%
pd.DataFrame({name: [round(float(metric(scores, mask)), 3)] for name, metric in METRICS.items()}, index=["example"]).T

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
about = predictions.iloc[0]
recipe = stage.input("02_training", f"models/{about['dataset']}/{about['scheme']}/seed{about['seed']}.json")
recipe = json.loads(recipe.read_text())
explained = explanations["dataset"].unique()
truth = pd.concat([data[name, "test"].assign(dataset=name) for name in explained], ignore_index=True)
truth["token_counts"] = piece_counts(truth["sentence"], load_tokenizer(recipe["encoder"], recipe["revision"]))
verbless = [mask for name in explained for mask in without_verbs(data[name, "test"])]
truths = {"union": truth, "no_verbs": truth.assign(ground_truth=verbless)}
marked = {name: table["ground_truth"].map(sum).groupby(table["dataset"]).sum() for name, table in truths.items()}
pd.DataFrame(marked).assign(same_in_F_and_M=lambda t: (1 - t["no_verbs"] / t["union"]).round(3))

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
scored = {name: add_relative(score_explanations(explanations, table)) for name, table in truths.items()}
chosen = select_rows(scored["union"], predictions, rows)
by = ["dataset", "scheme", "method"]
everyone = explanations[by].drop_duplicates()
models = everyone[["dataset", "scheme"]].drop_duplicates(ignore_index=True)
for which in ROW_SETS:
    kept = select_rows(scored["union"], predictions, which).groupby(["dataset", "scheme"])["row_id"].nunique()
    models[which] = [kept.get(key, 0) for key in zip(models["dataset"], models["scheme"])]
stage.table("row_sets", models)

# %% [markdown]
# *Reading it.* The zero-shot model is often wrong, and the papers' choice keeps only sentences that it gets right as well. What is left
# are few sentences, and easy ones. This is why it is not our default.
#
# ## 5 · Have the models learnt the task?
#
# Explaining a model makes sense if it has learnt something. Chance is one in three. But *the class of the first pronoun*, a rule that
# needs no training, is nearly always right. So we ask for more than chance: a model should beat this rule and a logistic regression
# on word counts (*bag of words*), which both know nothing of the order of the words.

# %%
def floor_predictions(name: str) -> pd.DataFrame:
    """The two classifiers that see no language model, in the form of predictions."""
    train, test = data[name, "train"], data[name, "test"]
    classes = CLASSES[:test["target"].nunique()]
    guesses = {"First pronoun rule": floors.first_pronoun_class(test, classes),
               "Bag of words": floors.bag_of_words(train, test)}
    about = test[["row_id", "sentence_idx", "target"]].assign(dataset=name, seed=-1)
    return pd.concat([about.assign(scheme=rule, predicted=guess) for rule, guess in guesses.items()])


judged = pd.concat([predictions, *[floor_predictions(name) for name in names]], ignore_index=True)
judged["is_correct"] = (judged["target"] == judged["predicted"]).astype(float)
hard = {(name, row_id) for name in names
        for row_id in data[name, "test"]["row_id"][floors.first_pronoun_is_other(data[name, "test"])]}
judged["is_hard"] = [key in hard for key in zip(judged["dataset"], judged["row_id"])]

# %% [markdown]
# A row is *hard* when its first pronoun is somebody else's: no form changes it, and the rule can only guess. There a model must show that it
# has found the subject. The intervals resample base sentences, never rows, since the forms of a sentence are nearly copies of
# each other; section 6 says how seeds enter. A model whose accuracy is below the rule's is marked, and **no claim about its
# explanations will rest on it**.

# %% tags=["nbval-ignore-output"]
def accuracies(frame: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every model with an interval over base sentences and seeds."""
    table = estimates(frame, ["dataset", "scheme"], "is_correct", "mean", n_bootstrap, alpha, seed)
    return table.rename(columns={"estimate": "accuracy"}).drop(columns=["standard_error", "df"])


on_hard = accuracies(judged[judged["is_hard"]]).drop(columns=["n_seeds", "n_sentences"])
accuracy = accuracies(judged).merge(on_hard, on=["dataset", "scheme"], how="left", suffixes=("", "_hard"))
accuracy["n_hard"] = accuracy["n_hard"].fillna(0).astype(int)
rule = accuracy[accuracy["scheme"] == "First pronoun rule"].set_index("dataset")["accuracy"]
accuracy["below_first_pronoun"] = accuracy["accuracy"] < accuracy["dataset"].map(rule)
below = set(zip(*accuracy.loc[accuracy["below_first_pronoun"], ["dataset", "scheme"]].to_numpy().T))
stage.table("accuracy_vs_floors", accuracy).drop(columns=["n", "n_sentences", "low_hard", "high_hard"])

# %% [markdown]
# *Reading it.* Find `First pronoun rule` of a data set first, then compare. On hard rows the rule falls to chance and the bag of words does
# not know whom the pronoun belongs to; a model that stays up there has learnt more than pronouns. The zero-shot model is below the
# rule everywhere. That is no fault: it serves as the baseline of equation 4 and is not asked to classify.
#
# ## 6 · The full run
#
# For each data set, scheme and method: the mean over rows, averaged over trainings (seeds), with an interval. Base sentences are
# resampled a thousand times. Where a model was trained with several seeds, their spread is added by the t interval of the seeds'
# mean; resampling three seeds would promise too much. With one seed, the interval speaks about sentences only.

# %%
def summarise_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Mass accuracy on both scales with intervals, and the means of the other measures; no rows give no values."""
    mass = estimates(frame, by, "MA", "mean", n_bootstrap, alpha, seed).rename(columns={"estimate": "MA"})
    above = estimates(frame, by, "MA_chance_normalised", "mean", n_bootstrap, alpha, seed)
    above = above[[*by, "estimate", "low", "high"]]
    above.columns = [*by, "MA_chance_normalised", "low_normalised", "high_normalised"]
    others = frame.groupby(by)[["share", *list(METRICS)[1:]]].mean().reset_index()
    joined = mass.drop(columns=["standard_error", "df"]).merge(above, on=by).merge(others, on=by)
    return everyone.merge(joined, on=by, how="left").fillna({"n": 0, "n_sentences": 0, "n_seeds": 0})

# %% [markdown]
# How to read the file: `n` rows of `n_sentences` base sentences, `n_seeds` trainings; `MA` from `low` to `high`; the chance-normalised
# value with its own limits; `share` (counted in `share_of`); recall and the ranking measures. It holds every row set with both
# ground truths. Below is `MA` for the chosen rows and GECO's mask.

# %% tags=["nbval-ignore-output"]
parts = [summarise_rows(select_rows(scored[name], predictions, which)).assign(rows=which, truth=name, share_of="tokens")
         for which in ROW_SETS for name in truths]
mass_table = pd.concat(parts, ignore_index=True).astype({"n": int, "n_sentences": int, "n_seeds": int})
mass_table["below_first_pronoun"] = [key in below for key in zip(mass_table["dataset"], mass_table["scheme"])]
first = [*by, "rows", "truth", "n", "n_sentences", "n_seeds", "share", "share_of"]
mass_table = mass_table[[*first, *[c for c in mass_table if c not in first]]]
shown = stage.table("mass_accuracy", mass_table).query("rows == @rows and truth == 'union'")
method_grid(shown, "MA").astype(object).fillna("")

# %% [markdown]
# *Reading it.* Start in the column `-`. *First pronoun* puts all mass on the first pronoun of the sentence, and few methods reach it.
# The *Pattern Variant* knows only how words and classes go together in the training rows. The paper takes it for an upper bound;
# it is none, and staying below a pronoun rule means that an explanation has not yet told us anything about a model. Then
# read along a row: do explanations improve as more of the model is trained?
#
# The same without the verbs, for one method and one floor, with recall beside it:

# %% tags=["nbval-ignore-output"]
two = mass_table.query("rows == @rows and method in ['First pronoun', 'Integrated Gradients']")
both = stage.table("truths_compared", two[[*by, "truth", "share", "MA", "MA_chance_normalised", "recall"]])
both.pivot(index=["dataset", "method", "scheme"], columns="truth", values=["MA", "recall"])

# %% [markdown]
# Without the verbs there is less to hit: a method that spreads its mass loses, the rule that points at one pronoun does not, and its
# recall rises, for there is less to miss. Which mask is right depends on the question; that both are printed is what matters.
#
# ## 7 · Relative mass accuracy
#
# `RMA` is the median of the row-wise ratios; `undefined` is the share of rows without one. So that this table has floors too,
# `RMA_first_pronoun` and `RMA_uniform_random` say what these floors reach over the same zero-shot values.

# %% tags=["nbval-ignore-output"]
trained = chosen[~chosen["scheme"].isin(["-", "ZS"])]
of_models = everyone[~everyone["scheme"].isin(["-", "ZS"])]
relative = estimates(trained, by, "RMA", "median", n_bootstrap, alpha, seed).rename(columns={"estimate": "RMA"})
undefined = trained.assign(undefined=trained["RMA"].isna()).groupby(by, as_index=False)["undefined"].mean()
relative = of_models.merge(relative.drop(columns=["standard_error", "df"]), on=by, how="left").merge(undefined, on=by, how="left")
for floor in ("First pronoun", "Uniform random"):
    name = "RMA_" + floor.lower().replace(" ", "_")
    reached = relative_floors(scored["union"], floor).rename(columns={"RMA": name})
    relative = relative.merge(reached, on=["dataset", "method"], how="left")
relative["below_first_pronoun"] = [key in below for key in zip(relative["dataset"], relative["scheme"])]
method_grid(stage.table("relative_mass_accuracy", relative), "RMA").astype(object).fillna("")

# %% [markdown]
# Above 1: more mass on ground truth than before training. Is it more than luck? Wilcoxon's signed-rank test asks whether the typical base
# sentence gained. It takes MA - MA_ZS, a difference, so that rows with a baseline of zero count as well, and it averages the
# forms and seeds of a base sentence first: fed with rows, it would count every sentence three times and find too much. The p
# values are corrected for their number by *Holm's* method (the smallest times the number of tests, the next times one less, ...).

# %% tags=["nbval-ignore-output"]
gains = trained.assign(gain=trained["MA"] - trained["MA_ZS"])
found = [(*key, part["gain"].mean(), *clustered_wilcoxon(part, "gain")) for key, part in gains.groupby(by, sort=False)]
found = pd.DataFrame(found, columns=[*by, "gain", "p", "rank_biserial", "dz", "n_sentences"])
wilcoxon = of_models.merge(found, on=by, how="left")
wilcoxon["p_holm"] = holm(wilcoxon["p"])
method_grid(stage.table("wilcoxon", wilcoxon), "p_holm").astype(object).fillna("")

# %% [markdown]
# *Reading it.* With the eight base sentences of the small scale, the smallest p value that this test can give is 2 / 2^8 = .008, before the
# correction: no effect, however large, can be significant here. The file has effect sizes beside it: `rank_biserial`, how
# one-sided the gains are (-1 to 1), and `dz`, the mean gain over its spread.
#
# ## 8 · May we rank the methods?
#
# Every pair of methods is compared on the same rows and seeds. Beside each difference stands the **smallest detectable difference**: what
# a run of this size would find four times out of five, given that so many pairs are compared. We call a pair ranked if the difference is at
# least that large, its interval excludes zero, and the corrected test agrees.

# %% tags=["nbval-ignore-output"]
groups = trained.groupby(["dataset", "scheme"], sort=False)
pairs = pd.concat([compare_all(part, "method", "MA", n_bootstrap, alpha, seed).assign(dataset=key[0], scheme=key[1])
                   for key, part in groups if part["method"].nunique() > 1], ignore_index=True)
pairs = pairs[["dataset", "scheme", *[c for c in pairs if c not in ("dataset", "scheme")]]]
stage.table("method_pairs", pairs).groupby(["dataset", "scheme"], sort=False).agg(
    pairs=("is_ranked", "size"), ranked=("is_ranked", "sum"), typical_difference=("difference", lambda d: d.abs().median()),
    smallest_detectable=("smallest_detectable", "median")).round(3)

# %% [markdown]
# *Reading it.* Where the last column is larger than the one before it, most of the order that we see is an order of noise. From the
# pairs follow the best and the worst place that each method can have:

# %% tags=["nbval-ignore-output"]
ranked = pairs[pairs["is_ranked"]]
is_left = ranked["difference"] > 0
places = {"winner": ranked["left"].where(is_left, ranked["right"]), "loser": ranked["right"].where(is_left, ranked["left"])}
n_pairs = {role: ranked.assign(method=method).groupby(by).size().rename(role) for role, method in places.items()}
ranking = of_models.merge(mass_table.query("rows == @rows and truth == 'union'")[[*by, "MA"]], on=by)
ranking = ranking.join(n_pairs["winner"], on=by).join(n_pairs["loser"], on=by).fillna({"winner": 0, "loser": 0})
n_methods = ranking.groupby(["dataset", "scheme"])["method"].transform("size")
ranking = ranking.assign(best_place=1 + ranking["loser"].astype(int), worst_place=n_methods - ranking["winner"].astype(int))
limit = pairs.groupby(["dataset", "scheme"])["smallest_detectable"].median()
shown = stage.table("ranking", ranking.drop(columns=["winner", "loser"]).join(limit, on=["dataset", "scheme"]))
shown["place"] = shown["best_place"].astype(str) + " to " + shown["worst_place"].astype(str)
method_grid(shown, "place")

# %% [markdown]
# Where every method reads "1 to" the number of methods, nothing is ranked, and we claim nothing of the order in the tables above.
#
# ## 9 · Where the spread comes from
#
# How much of the variance of mass accuracy lies between trainings (`seed`), base sentences, classes (`target`) and methods? `share` is
# a share of the total sum of squares. `sd` is a standard deviation in units of mass accuracy: that of `seed:method` says how far
# a method moves, beside the others, when the same model is trained again. All rows are used, and the methods that were run for
# every seed, so that the table is balanced.

# %% tags=["nbval-ignore-output"]
everything = scored["union"][~scored["union"]["scheme"].isin(["-", "ZS"])]
factors, interactions = ["seed", "sentence_idx", "target", "method"], [("seed", "method"), ("sentence_idx", "method")]
n_seeds = everything.groupby(by)["seed"].transform("nunique")
everything = everything[n_seeds == n_seeds.groupby([everything["dataset"], everything["scheme"]]).transform("max")]
split = [variance_split(part, "MA", factors, interactions).assign(dataset=key[0], scheme=key[1])
         for key, part in everything.groupby(["dataset", "scheme"], sort=False)]
variance = pd.concat(split, ignore_index=True)[["dataset", "scheme", "term", "levels", "share", "sd"]]
shown = stage.table("variance", variance)
shown.pivot(index=["dataset", "scheme"], columns="term", values="share")[shown["term"].unique()].astype(object).fillna("")

# %% [markdown]
# *Reading it.* One seed shows no spread between seeds; those cells stay empty. Where `seed:method` is not small beside `method`, another
# training of the same model would reorder the list. This is why one training decides no claim about a trained model here.
#
# ## 10 · The first version's questions
#
# The first version of the paper (v1) had two classes, F and M, and asked whether the models treat them alike. *True positive rate*: male rows
# that are called male (the released code counts male as positive). *True negative rate*: female rows that are called female. In percent:

# %% tags=["nbval-ignore-output"]
binary = judged[judged["dataset"].str.endswith("_binary")].assign(percent=lambda frame: 100 * frame["is_correct"])
rates = estimates(binary, ["dataset", "scheme", "target"], "percent", "mean", n_bootstrap, alpha, seed)
rates["quantity"] = rates["target"].map({0: "TNR", 1: "TPR"})
rates = rates[["quantity", "dataset", "scheme", "estimate", "low", "high", "n", "n_sentences", "n_seeds"]]
stage.table("tpr_tnr", rates)

# %% [markdown]
# The floors are in the table as well. The *average prediction difference* is the probability of F on a female row minus that of M on the male
# row of the same sentence: above zero, the model is surer about female forms. Sets with three classes can answer it too.

# %% tags=["nbval-ignore-output"]
two = predictions[predictions["target"] < 2]
two = two.assign(p_own=np.where(two["target"] == 0, two["p_F"], two["p_M"]), is_correct=(two["target"] == two["predicted"]) * 1.0)
key = ["dataset", "scheme", "seed", "sentence_idx"]
female, male = (two.loc[two["target"] == target, [*key, "p_own", "is_correct"]] for target in (0, 1))
forms = female.merge(male, on=key, suffixes=("_F", "_M")).assign(row_id=lambda t: t["sentence_idx"].astype(str))
forms["percent"] = 100 * (forms["p_own_F"] - forms["p_own_M"])
forms["absolute_difference"] = forms["percent"].abs() / 100
forms["male_minus_female"] = forms["is_correct_M"] - forms["is_correct_F"]
gap = estimates(forms, ["dataset", "scheme"], "percent", "mean", n_bootstrap, alpha, seed).drop(columns=["standard_error", "df"])
stage.table("prediction_difference", gap)

# %% [markdown]
# An interval that holds zero: no form is favoured as far as this run can tell. What a model takes for what is in its confusion matrix
# (a row per true class, averaged over seeds):

# %% tags=["nbval-ignore-output"]
kinds = predictions[["dataset", "scheme", "target"]].drop_duplicates()
shares = predictions.groupby(list(kinds))["predicted"].value_counts(normalize=True).rename("share")
confusion = kinds.merge(pd.Series(range(3), name="predicted"), how="cross").join(shares, on=[*kinds, "predicted"])
confusion = confusion[(confusion["predicted"] < 2) | ~confusion["dataset"].str.endswith("_binary")].fillna({"share": 0})
confusion = confusion.replace({"target": dict(enumerate(CLASSES)), "predicted": dict(enumerate(CLASSES))})
shown = stage.table("confusion", confusion)
shown.pivot(index=list(kinds), columns="predicted", values="share").astype(object).fillna("")

# %% [markdown]
# An *ROC curve* asks, for every threshold on P(M): how many male rows pass, and how many female rows pass by mistake? The curves of the
# binary sets, read off at fixed false positive rates and averaged over seeds, are in `roc.csv`; here is the area under each.

# %% tags=["nbval-ignore-output"]
grid, curves = np.linspace(0, 1, 21), []
is_binary = predictions["dataset"].str.endswith("_binary")
for (name, scheme), part in predictions[is_binary].groupby(["dataset", "scheme"], sort=False):
    runs = [(run["target"], run["p_M"]) for _, run in part.groupby("seed")]
    passed = np.mean([np.interp(grid, *roc_curve(*run)[:2]) for run in runs], axis=0)
    area = np.mean([roc_auc_score(*run) for run in runs])
    curves.append(pd.DataFrame({"dataset": name, "scheme": scheme, "auc": area, "false_positive_rate": grid,
                                "true_positive_rate": passed}))
roc = pd.concat(curves, ignore_index=True) if curves else pd.DataFrame(columns=["dataset", "scheme", "auc"])
stage.table("roc", roc)[["dataset", "scheme", "auc"]].drop_duplicates(ignore_index=True)

# %% [markdown]
# ### Is the same word explained differently in the two forms?
# v1 takes the attribution of a word in the F form minus that in the M form, over all words, over ground truth and over the rest.
# Attributions sum to 1 in both forms, so over *all* words the mean is zero by construction (v1 prints it all the same): what
# ground truth gains, the rest loses. `absolute` is the mean size of the difference on ground-truth words.

# %% tags=["nbval-ignore-output"]
without_zero_shot = explanations[explanations["scheme"] != "ZS"]
aligned = form_differences(select_rows(without_zero_shot, predictions, rows), truth)
columns = {"all": "all_words", "truth": "truth_words", "other": "other_words", "absolute": "absolute"}
found = [estimates(aligned, by, column, "mean", n_bootstrap, alpha, seed).assign(words=words)
         for words, column in columns.items()]
tests = [(*key, clustered_wilcoxon(part, "truth_words").p) for key, part in aligned.groupby(by, sort=False)]
tests = pd.DataFrame(tests, columns=[*by, "p"]).assign(p_holm=lambda t: holm(t["p"]))
found = pd.concat(found).rename(columns={"estimate": "difference"}).drop(columns=["standard_error", "df"])
cells = without_zero_shot[by].drop_duplicates().merge(pd.Series(list(columns), name="words"), how="cross")
difference = cells.merge(found, on=[*by, "words"], how="left").merge(tests, on=by, how="left")
difference["below_first_pronoun"] = [key in below for key in zip(difference["dataset"], difference["scheme"])]
shown = stage.table("attribution_difference", difference)
shown.pivot(index=by, columns="words", values="difference")[list(columns)].groupby(level=[0, 1]).mean().round(3)

# %% [markdown]
# Shown is the mean over methods; the file has each of them. A small signed and a large absolute difference says that the forms are explained
# differently, and neither is favoured.
#
# ## 11 · Controls
#
# Four things must be true before we believe any of this, whatever the models did. Noise must reach the share of ground truth and no more.
# Pointing at the first pronoun must beat noise by far. With the **masks shuffled** within each sentence, every advantage must
# be gone. And the **untrained** model must not be explained better than the pronoun rule.

# %%
rng = np.random.default_rng(seed)
shuffled = truth.assign(ground_truth=[rng.permutation(m).tolist() for m in truth["ground_truth"]])
lost = score_explanations(explanations[explanations["method"].isin(FLOORS)], shuffled)
kept = scored["union"][scored["union"]["method"].isin(FLOORS)]
controls = kept.groupby(["dataset", "method"], sort=False)[["share", "MA"]].mean()
zero_shot = scored["union"].query("scheme == 'ZS'")
controls["MA_shuffled_masks"] = lost.groupby(["dataset", "method"], sort=False)["MA"].mean()
stage.table("controls", controls.reset_index())

# %% [markdown]
# The order, with margins that are wide enough for a small run:

# %%
for name, part in controls.droplevel("dataset").groupby(controls.index.get_level_values("dataset")):
    assert abs(part.loc["Uniform random", "MA"] - part.loc["Uniform random", "share"]) < 0.06
    assert part.loc["First pronoun", "MA"] > part.loc["Uniform random", "MA"] + 0.3
    assert (part["MA_shuffled_masks"] < part["share"] + 0.25).all()
    assert (zero_shot.query("dataset == @name").groupby("method")["MA"].mean() < part.loc["First pronoun", "MA"]).all()

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

# %%
claims = {claim.id: claim for claim in read_claims(material("geco") / "claims.yaml")}
tables = {"explanations": chosen, "predictions": judged, "pairs": forms, "forms": aligned,
          "correctness": by_correctness(scored["union"], predictions)}
comparisons = {name: judge_contrasts(claim, tables, scale, below, n_bootstrap, alpha, seed)
               for name, claim in claims.items() if claim.table}
print(f"{len(claims)} claims, {sum(map(len, comparisons.values()))} comparisons")

# %% [markdown]
# Other claims are numbers that the papers print (`material/paper_numbers.csv`); each is set beside ours. First what can be counted exactly:
# the size of the data sets, and bias_C of stage 1 with the pronoun list A1.

# %%
def counted(name: str) -> dict[str, int]:
    """The counts of the papers' tables of data sets."""
    train, test = data[name, "train"], data[name, "test"]
    n_base = len(set(train["sentence_idx"]) | set(test["sentence_idx"]))
    kind = "n_rows" if name.endswith("_binary") else "n_sentences"
    return {"n_base_sentences": n_base, "n_sentences": len(train) + len(test), f"{kind}_train": len(train),
            f"{kind}_test": len(test)}


bias = pd.read_csv(stage.input("01_data_generation", "bias.csv")).query("term_list == 'A1'")
exact = [(quantity, name, "", "", n, n) for name in names for quantity, n in counted(name).items()]
exact += [("bias_C", name, "", form, value, counted(name)["n_base_sentences"])
          for name, form, value in bias[["dataset", "class", "bias"]].itertuples(index=False) if name in names]
exact = pd.DataFrame(exact, columns=["quantity", "dataset", "scheme", "class", "estimate", "n_sentences"])

# %% [markdown]
# Then what was measured, in percent as in the papers. A number that belongs to GECO or to BERT is shown but not judged where this run has
# other sentences or another encoder.

# %%
percent = accuracy[["dataset", "scheme", "n_sentences"]].assign(quantity="accuracy", estimate=100 * accuracy["accuracy"],
                                                               low=100 * accuracy["low"], high=100 * accuracy["high"])
gaps = gap.assign(quantity="average_prediction_difference")
ours = pd.concat([exact.assign(low=exact["estimate"], high=exact["estimate"]), percent, rates, gaps])
ours = ours.assign(n=ours["n_sentences"]).fillna({"class": ""})
paper_numbers = pd.read_csv(material("geco") / "paper_numbers.csv")
is_geco = scale != "small" and counted(names[0])["n_base_sentences"] == 1610
is_bert = "bert-base-uncased" in recipe["encoder"]
numbers = [line for claim in claims.values() if claim.numbers
           for line in compare_numbers(claim, paper_numbers, ours, scale, is_geco, is_bert)]
print(f"{len(numbers)} printed numbers have a quantity that is computed here")

# %% [markdown]
# Three claims need a number of their own. Are pronouns on top among the words that correlate with a class? Is the largest attribution on the
# pronoun, in one sentence that figure 5 shows in full (the shortest female form in which the pronoun is ground truth)? And do methods
# that vary more also differ more between the forms?

# %% tags=["nbval-ignore-output"]
shown_rows = truth.merge(explanations[["dataset", "row_id"]].drop_duplicates()).query("target == 0")
spots = [floors.first_pronoun(words) for words in shown_rows["sentence"]]
is_fit = [spot is not None and mask[spot[0]] == 1 and len(mask) >= 7 for spot, mask in zip(spots, shown_rows["ground_truth"])]
shortest = shown_rows[is_fit].assign(length=lambda t: t["sentence"].map(len)).sort_values(["dataset", "length", "sentence_idx"])
example = shortest.iloc[0]
one = explanations[(explanations["dataset"] == example["dataset"]) & (explanations["row_id"] == example["row_id"])]
lines = [(example["dataset"], example["row_id"], row.scheme, row.method, i, word, share, example["ground_truth"][i])
         for row in one.drop_duplicates(["scheme", "method"]).itertuples()
         for i, (word, share) in enumerate(zip(row.words, np.abs(row.scores) / max(np.abs(row.scores).sum(), 1e-12)))]
sentence = pd.DataFrame(lines, columns=["dataset", "row_id", "scheme", "method", "position", "word", "share", "is_truth"])
stage.table("example_sentence", sentence).drop_duplicates("position")[["dataset", "row_id", "position", "word", "is_truth"]]

# %% [markdown]
# The three numbers:

# %% tags=["nbval-ignore-output"]
correlation = pd.read_csv(stage.input("01_data_generation", "correlation.csv"))
leading = correlation.query("dataset in ['D_A', 'D_S'] and `class` in ['F', 'M']").sort_values("r", ascending=False)
leading = leading.groupby(["dataset", "class"]).head(2)["word"].isin(["she", "her", "he", "his", "him"]).mean()
seen = sentence[sentence["scheme"] != "-"]
largest = seen.loc[seen.groupby(["scheme", "method"])["share"].idxmax(), "position"]
on_pronoun = (largest == floors.first_pronoun(example["sentence"])[0]).mean()
counts_here = [scheme != "-" and (name, scheme) not in below for name, scheme in zip(aligned["dataset"], aligned["scheme"])]
spread = chosen.groupby(by)["MA"].std().to_frame().join(aligned[counts_here].groupby(by)["absolute"].mean(), how="inner")
ranks = spread.dropna().rank()
related = pearsonr(ranks["MA"], ranks["absolute"]) if len(ranks) > 3 else None
single = {"tfidf_top_words": (leading, leading, leading, counted(names[0])["n_base_sentences"]),
          "pronoun_stands_out": (on_pronoun, np.nan, np.nan, 1), "spread_goes_with_difference": (np.nan, np.nan, np.nan, 0)}
if related:
    single["spread_goes_with_difference"] = (related.statistic, *related.confidence_interval(), len(ranks))
stage.table("single_numbers", pd.DataFrame(single, index=["ours", "low", "high", "n"]).T.rename_axis("claim").reset_index())

# %% [markdown]
# Everything together: a line per claim or printed number. `paper` is what the paper says, a number or a direction; `ours` is what we
# found (for a claim of many comparisons their median, with the smallest and the largest in `low` and `high`); `n` counts base
# sentences. Shown are the claims; the printed numbers are in the file.

# %% tags=["nbval-ignore-output"]
singles = []
for name, found in single.items():
    relative_to_claim = [x - claims[name].target for x in found[:3]]
    singles.append(claim_row(claims[name], judge(claims[name], *relative_to_claim, found[3], scale), scale, "", *found))
written = [summarise(claims[name], parts, scale) for name, parts in comparisons.items()]
verdicts = pd.DataFrame([*numbers, *written, *singles])
assert set(verdicts["verdict"]) <= set(VERDICTS if scale != "small" else ("undecided", "not run"))
assert (verdicts["why"] != "")[verdicts["verdict"].isin(["undecided", "not run"])].all()
stage.table("comparisons", pd.concat(comparisons.values(), ignore_index=True))
stage.table("claims", verdicts)[["id", "paper", "ours", "n", "verdict"]].iloc[len(numbers):].reset_index(drop=True)

# %% [markdown]
# *Reading it.* The reason of each verdict is in the column `why` of `claims.csv`, and stage 5 prints it beside the figures; `comparisons.csv`
# has what each verdict rests on, comparison by comparison.
#
# ## 13 · The figure
#
# Mass accuracy by scheme and method, with intervals, and the floors as lines. A grey panel is a model below the first-pronoun rule.

# %% tags=["nbval-ignore-output"]
plotted = mass_table.query("rows == @rows and truth == 'union'").reset_index(drop=True)
figure, table = plot_mass_accuracy(plotted)
stage.figure("mass_accuracy", figure)
stage.table("figure", table).head(10)

# %% [markdown]
# Intervals that cross each other and the floors: that is what an undecided ranking looks like. What stage 5 needs of stage 1 is handed on
# from here, so that it reads one folder only.

# %%
stage.table("bias", bias)
_ = stage.table("correlation", correlation)

# %% [markdown]
# ## What could be wrong
#
# - **The ground truth is a definition.** A changed word is what *may* inform. A model can be right without it, and its honest explanation
#   then scores low.
# - **The chance level depends on the tokenizer.** It is counted with that of the first model; explanations from elsewhere may have been made
#   with another one.
# - **Few seeds.** Three trainings describe a spread badly. The t distribution with two degrees of freedom is honest about it, and very wide.
# - **Another baseline than the paper's.** What the zero-shot model is depends on the encoder (stage 2), and RMA inherits it.
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
