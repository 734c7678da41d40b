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
# # CEBaB, stage 3 of 5: what would a change of a concept do to the model, according to explainers?
#
# [Start here](../00_start_here.ipynb) · before: [02_training](02_training.ipynb) · next: [04_metrics](04_metrics.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **Explainers disagree widely about one and the same text** ([figure](../../outputs/reference/cebab/cpu/03_attribution/one_text.png)).
# - **Four methods of the paper give the same answer to "what if the food were good?" and "what if it were bad?"** ([table](../../outputs/reference/cebab/cpu/03_attribution/blindness.csv)). They are TCAV (concept activation vectors), ConceptSHAP, INLP (iterative null-space projection) and CausaLM.
# - **The released ConceptSHAP returns numbers that cannot be an effect**. The changes of all class probabilities sum to 0. The sum of its numbers is off by
#   1.5<!-- cebab/cpu/03_attribution/overview[explainer=ConceptSHAP (as released)].sum -->.
#
# These results are from the run at scale `cpu`; the cells below show `small`.
#
# "Here is a review. Suppose the food had been bad." An explainer has to say how the model's answer would change. It has seen train texts with their labels and the model's answers.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - simple explainers by hand: averages, matching and regression;
# - three methods that use the model's vectors;
# - which explainers give the same answer to different questions.
#
# **You can then** estimate an effect by hand, and say why a method with one direction for each concept cannot tell *better* from *worse*. **You need**
# [stage 1](01_data_generation.ipynb), [stage 2](02_training.ipynb). **Time:** 20 minutes to read, a minute to run, [15 minutes for the exercises](../../docs/course/exercises/cebab.md#03-attribution).
#
# | in | from | out |
# |---|---|---|
# | `texts.parquet`, `pairs.parquet` | 01 | `estimates.parquet`: `e_1` ... `e_K` for each model, explainer and pair |
# | `predictions.parquet`, `aspects.parquet`, `vectors/*.npz` | 02 | `outside.parquet`: the answers of an outside model |
# | | | two tables, one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.errors import TouchstoneError
from lib.core.files import read_table, save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.progress import progress
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.metrics.concept_effects import in_stars
from lib.plots import COLOURS, STYLE
from lib.studies.cebab.asking import Asking
from lib.studies.cebab.directions import fit_leace, shapley_values, subsets
from lib.studies.cebab.encoders import CausalProxy, with_wish
from lib.studies.cebab.from_labels import CONEXP, Approx, SLearner
from lib.studies.cebab.outside import (
    NAME,
    answers_to_score,
    given_of,
    names_by_seed,
    read_outside_model,
    refuse_equal,
)
from lib.studies.cebab.own_explainer import ABOUT, read_estimates, refuse_known_names
from lib.studies.cebab.questions import Head, Texts, ask
from lib.studies.cebab.reading import load_reading
from lib.studies.cebab.registry import can_explain, explainer_named, family_of
from lib.studies.cebab.reviewers import file_of
from lib.studies.cebab.reviews import ASPECTS
from lib.studies.cebab.words import in_words

# %% [markdown]
# ## Settings
#
# Sections 2 and 3 say what each explainer does. A variant *(as released)* has the main [fault of the released
# code](README.md#where-the-released-code-differs-from-the-definition). *(towards c')* is our variant that uses the
# direction of the change; c' is the new value of the concept.
#
# A model trained elsewhere can join through files, and so can an explainer of your own. The [README](README.md#a-model-of-your-own) has examples.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # random seed; stage 1 uses the same one to write the reviews
n_threads = 1  # CPU threads
explainers = [
    "Random",
    "Zero",
    "No concept",
    "CONEXP",
    "Approx",
    "Approx (originals)",
    "Approx (mean)",
    "Approx (top k)",
    "Approx (asked aspect only)",
    "S-Learner",
    "S-Learner (soft)",
    "S-Learner (soft, from the text)",
    "S-Learner (as released)",
    "Concept LIME",
    "TCAV",
    "TCAV (towards c')",
    "TCAV (scaled)",
    "TCAV (as released)",
    "ConceptSHAP",
    "ConceptSHAP (towards c')",
    "ConceptSHAP (as released)",
    "INLP",
    "INLP (towards c')",
    "INLP (as released)",
    "CausaLM",
    "CausaLM (nothing unlearnt)",
    "CausaLM (as released)",
    "LEACE",
    "LEACE (towards c')",
    "Causal Proxy Model",
]  # all explainers
proxy = {
    "layers": 1,
    "epochs": 1,
    "batch_size": 16,
    "questions": 1,
}  # the Causal Proxy Model (section 3); questions: changes asked of each train text
proxy_lr = 0.0003  # its highest learning rate
device = "auto"  # auto, cpu or cuda
outside_predictions = ""  # a table of predictions made elsewhere: text_id, p_1 ... p_K
outside_aspects = ""  # a table of predicted aspects made elsewhere
outside_vectors = ""  # an .npz made elsewhere: text_id, vectors, weight, bias
outside_head = ""  # module:function, from these vectors to probabilities
outside_seeds = [0]  # fine-tuning runs of that model, for {seed} in a file's name
n_dev_pairs = 100  # at most so many dev pairs, to fit a factor for L2 (stage 4)
reuse_units = False  # read estimates that are committed, and publish new ones
estimate_files = []  # tables of effects estimated elsewhere

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $x_u^{C=c}$ | the text that the explainer sees | `base_id` |
# | $c \to c'$ | the change that it is asked about | `old`, `new` of `aspect` |
# | $\mathcal{E}_{\mathcal{N}_\phi}(x_u^{C=c}, c')$ | its answer: a change of $K$ probabilities, summing to zero | `e_1` ... `e_5` |
# | $\phi(x)$ | the vector that the model's last layer reads | `embeddings` |
#
# The next cell counts the test pairs of each aspect.

# %%
stage = open_stage("cebab", scale, "03_attribution")
set_up(seed, n_threads)
units = Units("cebab", scale, "03_attribution", reuse_units)
study = Asking(stage, units, globals())
texts, pairs = study.texts, study.pairs
predictions, n_classes = study.predictions, study.n_classes
models = study.models[["dataset", "model", "seed"]]
in_reach = models[study.models["has_vectors"].astype(bool)]  # others: answers alone
if models.empty and not outside_predictions:
    raise TouchstoneError(
        "there is no model to explain: name a table in outside_predictions, "
        "or models in stage 2"
    )
print(f"{len(models)} models, {len(explainers)} explainers")
n_pairs = (
    pairs.groupby(["dataset", "aspect"], sort=False).size().unstack().reset_index()
)
in_words(n_pairs, dict(zip(n_pairs, n_pairs)) | {"dataset": "data set"})

# %% [markdown] tags=["slide"]
# ## 1 · One question by hand
#
# There are four train texts about food and service. A model gives the class *good* these probabilities:
#
# | food | service | answer |
# |---|---|---|
# | Positive | Positive | .9 |
# | Positive | Negative | .6 |
# | Negative | Positive | .5 |
# | Negative | Negative | .1 |
#
# A test text has bad food and bad service, and the model gives it .1. **What if the food had been good?** Stop and guess.
#
# - *CONEXP* (conditional expectation) compares averages: (.9 + .6) / 2 − (.5 + .1) / 2 = **.45**. It does not look at the text.
# - *Approx* (approximate counterfactual) takes a text with good food that agrees in all other aspects. The difference of the model's two answers is .6 − .1 = **.5**.
# - *S-Learner* fits a logistic regression of the answers on the values, and changes one value. *Soft* means that it is fitted to probabilities and not to classes.

# %% tags=["slide"]
values = np.array(
    [
        [f, s, "unknown", "unknown"]
        for f in ("Positive", "Negative")
        for s in ("Positive", "Negative")
    ],
    dtype=object,
)
second = np.array([0.9, 0.6, 0.5, 0.1])
train = Texts(
    np.array(list("abcd"), object),
    values,
    values.copy(),
    np.column_stack([1 - second, second]),
)
question = ask(
    pd.DataFrame(
        {"base_id": ["d"], "aspect": ["food"], "old": ["Negative"], "new": ["Positive"]}
    ),
    train,
)
answers = {
    name: explainer.fit(train, None, 0).effects(question)[0, 1]
    for name, explainer in {
        "CONEXP": CONEXP(),
        "Approx": Approx("sample"),
        "S-Learner (soft)": SLearner("soft"),
    }.items()
}
assert np.isclose(answers["CONEXP"], 0.45) and np.isclose(answers["Approx"], 0.5)
shown = pd.DataFrame(answers.items(), columns=["explainer", "effect"])
in_words(shown, {"explainer": "explainer", "effect": "effect on the class good"})

# %% [markdown]
# With four texts the regularisation of the regression has much weight, so S-Learner's effect is smallest.
#
# For a test pair explainers receive only a `Questions` object. It holds the text, the aspect that the question is about,
# its present value and its new value. The readers' labels of the other aspects are blanked out. The second text of the
# pair is not in it.

# %%
assert (question.texts.gold == "").all() and question.values()[0].tolist() == [
    "Negative",
    "Negative",
    "unknown",
    "unknown",
]
show_source(ask)

# %% [markdown] tags=["slide"]
# ## 2 · Three explainers in full
#
# ![Four ways to say what becomes of the answer 0.1 if the food were good: compare average answers to train texts (+0.45), match a text with good food and the same service (+0.5), follow the direction of the concept among the model's vectors, or remove the concept from them.](../../docs/schematics/four_ways.svg)
#
# ### S-Learner
# A regression $g$ predicts the answer from the values of the four aspects (eq. 8, where $g$ is called $\mathcal{E}$). Then one value is changed:
#
# $$\text{S-Learner}(C, c, c'; x) = g(x_u^{C=c'}) - g(x_u^{C=c})$$
#
# For a test text the values are predicted, except that of the *asked* aspect: the question contains it. The released code replaces this value, too, by a prediction. If the prediction happens to be $c'$, it answers that nothing changes.

# %%
show_source(SLearner.effects)
forgetful = ask(
    pd.DataFrame(
        {"base_id": ["d"], "aspect": ["food"], "old": ["Negative"], "new": ["Positive"]}
    ),
    train,
)
forgetful.texts.predicted[0, 0] = "Positive"  # a classifier that has the food wrong
assert (
    not SLearner("soft", known_old=False).fit(train, None, 0).effects(forgetful).any()
)
assert SLearner("soft").fit(train, None, 0).effects(forgetful)[0, 1] > 0.1

# %% [markdown] tags=["slide"]
# ### TCAV
# TCAV finds the direction of a concept among the vectors, and takes the slope of each probability along it (eq. 9):
#
# $$\text{TCAV}_{\mathcal{N}_\phi}(C; x) = (\nabla \mathcal{N}_k(\phi(x)) \cdot v_C)_{k=1}^K$$
#
# In the paper each concept has one direction $v_C$, which we take from texts without it to texts with it. So TCAV gives the same answer for a change towards Negative and towards Positive. Our variant *(towards c')* points from texts with $c$ to texts with $c'$.
#
# In the next cell the last layer is linear, and the direction is the first coordinate. With two classes the slope must be $p(1 - p)$.

# %%
slope = explainer_named("TCAV (towards c')").make()
weights = Head(np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros(2))
vectors = np.column_stack(
    [np.where(values[:, 0] == "Positive", 1.0, -1.0), np.zeros(4)]
)
seen = Texts(train.ids, values, values.copy(), weights.probabilities(vectors), vectors)
asked = ask(
    pd.DataFrame(
        {"base_id": ["d"], "aspect": ["food"], "old": ["Negative"], "new": ["Positive"]}
    ),
    seen,
)
p = weights.probabilities(vectors)[3]
assert np.allclose(
    slope.fit(seen, weights, 0).effects(asked)[0], [p[0] * p[1], -p[0] * p[1]]
)

# %% [markdown]
# The released code does not clear its gradients between classes, so on a CPU every class gets the same number. An effect sums to zero, and a vector of equal numbers is at a right angle to it. So the *cosine error*, 1 minus the cosine of this angle (stage 4), is exactly 1 on every pair.
#
# ### LEACE
# INLP and LEACE (least-squares concept erasure) remove from the vector what shows linear classifiers a concept, and apply the last layer again (eq. 10). Ten times, INLP fits a classifier and removes the directions that it uses. LEACE (Belrose et al. 2023) has a closed form. Of all affine maps after which the vectors are
# uncorrelated with the concept, it changes the vectors least.
#
# In the example only the first coordinate depends on the concept, and LEACE sets it to zero.

# %%
show_source(fit_leace)
square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
assert np.allclose(
    fit_leace(square, np.array([[1.0], [1], [0], [0]])).erase(square), square * [0, 1]
)

# %% [markdown]
# Removing a concept answers only "what if it were unknown?". The benchmark also asks "what if it were Positive?" and
# "what if it were Negative?". In their variants *(towards c')*, the removed part is replaced by its mean over the train
# texts with the new value.
#
# ## 3 · The other explainers
#
# | name | in one sentence |
# |---|---|
# | Random, Zero | a random vector; nothing changes |
# | No concept | the mean of all answers, minus the model's answer to this text |
# | Approx (originals) | Approx that matches with unedited texts only, as the paper says |
# | Approx (mean) | the mean of all texts that match |
# | Approx (top k) | of the texts that match, the mean of the k whose vectors are most similar |
# | Approx (asked aspect only) | the mean of all texts with the new value, whatever their other aspects |
# | S-Learner (soft, from the text) | it subtracts the model's answer to the text, and not the regression's |
# | Concept LIME | one regression per text, in which similar texts count more |
# | TCAV (scaled) | TCAV *(towards c')* times the distance between the two groups of texts |
# | ConceptSHAP | a Shapley value: what the direction of a concept adds to a linear prediction of the model's answer; the estimate is minus this value |
# | CausaLM | the answer from an encoder that was trained to forget the concept (stage 2), minus the model's; in *nothing unlearnt*, its control, the encoder forgot nothing |
# | Causal Proxy Model | a copy of the model that is told what to imagine (Wu et al. 2022; see below) |
#
# The paper's Table 2 lists [what each method needs](material/table_2.csv).

# %%
table_2 = read_table(material("cebab") / "table_2.csv").fillna("None")
needs = {
    "None": {""},
    "Weights": {"weights", "layers"},
    "Training Regime": {"encoders"},
}
for row in table_2.itertuples():
    assert explainer_named(row.explainer).needs in needs[row.access]
in_words(
    table_2,
    {"explainer": "explainer", "method": "model that it trains"}
    | {"access": "access to the model", "labels": "labels of the test text"},
)

# %% [markdown]
# We compute a Shapley value by hand. Two concepts are worth 1 and 2 alone, and 5 together. If the first one comes first, it adds 1, otherwise 3. Its Shapley value is 2, the mean. The other one's is 3, the mean of 2 and 4.

# %%
worth = np.array([0.0, 1.0, 2.0, 5.0]).reshape(4, 1, 1)
assert subsets(2) == [(), (0,), (1,), (0, 1)] and shapley_values(worth, 2)[
    0, :, 0
].tolist() == [2.0, 3.0]
show_source(shapley_values)

# %% [markdown]
# The Causal Proxy Model starts as a copy of the explained model, and learns the model's answers to the train texts. It also reads train texts that end in a *wish*, such as "| food positive". For these it learns the mean answer to the train texts in which the food is positive and the other aspects are the same.

# %%
assert with_wish("Cold soup.", "food", "Positive") == [
    "Cold",
    "soup.",
    "|",
    "food",
    "positive",
]
show_source(CausalProxy._wishes)

# %% [markdown]
# ## 4 · The full run
#
# An explainer is fitted to train texts with their labels and predicted labels, and the model's answers and vectors.

# %%
show_source(Asking.gathered)

# %% [markdown]
# Estimates are stored, and computed again only after a change.

# %%
for name in explainers:
    explainer_named(name)  # refuses an unknown name before anything is fitted
show_source(Asking.answers)

# %% [markdown]
# The Causal Proxy Model explains only encoders; all others explain all models.


# %%
explained = []  # the pairs of each model


def ask_everybody(dataset, model, number, given=None):
    """All explainers that can be asked, on one model; `given` of one from outside."""
    asked = given[3] if given else study.asked(dataset, model, number)
    explained.append(asked[ABOUT].assign(dataset=dataset, model=model, seed=number))
    able = [n for n in explainers if not given or can_explain(n, given[0], given[2])]
    found = [
        study.answers(name, dataset, model, number, given)
        for name in progress(able, f"{dataset} {model}")
    ]
    return [table for table in found if table is not None]


# %% [markdown]
# We run them.

# %%
n, each = proxy["epochs"], proxy["questions"]
print(
    f"Causal Proxy Model: {n} epoch{'s' * (n != 1)}, "
    f"{each} change{'s' * (each != 1)} of each train text"
)
found = [
    table for row in models.itertuples(index=False) for table in ask_everybody(*row)
]
print(f"{sum(map(len, found))} estimates")

# %% [markdown]
# ### A model from outside
#
# We test this route with one of our models. We save its predictions, aspects and vectors to files, in reverse order,
# and read them as if they came from outside. The estimates must be the same.


# %%
def from_outside(predictions_file, aspects_file="", vectors_file="", head=""):
    """One training of a model that was trained elsewhere, from its files."""
    return read_outside_model(
        stage.external(predictions_file),
        stage.external(aspects_file) if aspects_file else study.aspects_of(dataset),
        stage.external(vectors_file) if vectors_file else None,
        head,
    )


def given_from_outside(model):
    """Train texts, test questions, the head (or None) and the pairs of such a model."""
    mine, asked = (table[table["dataset"] == dataset] for table in (texts, pairs))
    return given_of(model, mine, asked, n_classes)


dataset = texts["dataset"].iloc[0]

# %% [markdown]
# First we write the files.

# %%
files = {
    name: stage.path(f"example/{name}")
    for name in ("predictions.parquet", "aspects.parquet", "vectors.npz")
}
for first in in_reach.head(1).itertuples(index=False):
    ids, reading = load_reading(
        stage.input("02_training", f"vectors/{file_of(*first)}.npz")
    )
    save_parquet(
        predictions.merge(in_reach.head(1)).iloc[::-1][
            ["text_id", *(c for c in predictions if c.startswith("p_"))]
        ],
        files["predictions.parquet"],
    )
    save_parquet(
        study.aspects_of(dataset).iloc[::-1][["text_id", *ASPECTS]],
        files["aspects.parquet"],
    )
    np.savez(
        files["vectors.npz"],
        text_id=ids[::-1].astype(str),
        vectors=reading.vectors[::-1],
        weight=reading.head.weight,
        bias=reading.head.bias,
    )

# %% [markdown]
# Then we read them and compare three explainers.

# %%
for first in in_reach.head(1).itertuples(index=False):
    inside, outside = (
        study.gathered(*first),
        given_from_outside(from_outside(*files.values())),
    )
    for name in ("CONEXP", "S-Learner", "LEACE"):
        both = [
            explainer_named(name).make().fit(train, head, 0).effects(questions)
            for train, questions, head, _ in (inside, outside)
        ]
        assert np.allclose(*both, atol=1e-5)
    print(f"{len(outside[1])} questions, equal answers")

# %% [markdown]
# If the settings name a model from outside, all explainers that can explain it do so, run by run.

# %%
handed_in = {
    "outside_predictions": outside_predictions,
    "outside_aspects": outside_aspects,
    "outside_vectors": outside_vectors,
    "outside_head": outside_head,
}
trainings = {
    number: from_outside(*names.values())
    for number, names in names_by_seed(handed_in, outside_seeds).items()
    if outside_predictions
}
refuse_equal(trainings)
given = {number: given_from_outside(model) for number, model in trainings.items()}
for number, parts in given.items():
    found += ask_everybody(dataset, NAME, number, parts)
    unable = [n for n in explainers if not can_explain(n, parts[0], parts[2])]
    print(f"{NAME}, seed {number}; cannot be asked: {', '.join(unable) or 'nobody'}")
theirs = predictions.head(0)
if trainings:
    theirs = answers_to_score(
        trainings, texts[texts["dataset"] == dataset], predictions
    )
save_parquet(theirs, stage.path("outside.parquet"))

# %% [markdown]
# Estimates that were made elsewhere are read from tables.

# %%
for file in estimate_files:
    table = read_estimates(stage.external(file), pd.concat(explained), n_classes)
    known = [
        *explainers,
        *(name for part in found for name in part["explainer"].unique()),
    ]
    refuse_known_names(table["explainer"].unique(), known, file)
    found.append(table)
if not found:
    raise TouchstoneError("no explainer can be asked; name one that needs no weights")
estimates = pd.concat(found, ignore_index=True)
save_parquet(estimates, stage.path("estimates.parquet"))
print(f"models explained: {', '.join(estimates['model'].unique())}")

# %% [markdown] tags=["slide"]
# ## 5 · What they say
#
# An estimate is a vector. We describe it by its length, and by the change of the expected stars.

# %%
columns = [name for name in estimates if name.startswith("e_")]
vectors = estimates[columns].to_numpy()
told = estimates.assign(
    size=np.linalg.norm(vectors, axis=1),
    stars=in_stars(vectors),
    sum=np.abs(vectors.sum(1)),
)
better = (
    told[(told["old"] == "Negative") & (told["new"] == "Positive")]
    .groupby("explainer")["stars"]
    .mean()
)
overview = (
    told.groupby("explainer", sort=False)[["size", "sum"]]
    .mean()
    .join(better)
    .reset_index()
)
overview.insert(1, "family", [family_of(name) for name in overview["explainer"]])
print(f"{len(estimates)} estimates of {len(overview)} explainers")

# %% [markdown] tags=["slide"]
# The figure is about one text and one change. Each mark is an explainer's answer. The line is what the model really does when it reads the other text; here this is almost nothing.

# %% tags=["nbval-ignore-output", "slide"]
first = estimates[["dataset", "model", "seed"]].iloc[0]
one_model = first.to_frame().T
mine = told.merge(one_model)
shown = mine[
    (mine["aspect"] == "food")
    & (mine["old"] == "Negative")
    & (mine["new"] == "Positive")
]
answers = theirs if first["model"] == NAME else predictions
chosen = answers.merge(one_model).query("split == 'test'")
shown = shown[shown["base_id"] == shown["base_id"].iloc[0]].drop_duplicates(
    "explainer"
)[["explainer", "base_id", "counterfactual_id", "stars"]]
both = (
    chosen.set_index("text_id")[[f"p_{k + 1}" for k in range(len(columns))]]
    .loc[shown.iloc[0][["base_id", "counterfactual_id"]]]
    .to_numpy()
)
actual = in_stars(both[1:] - both[:1])[0]
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(
        figsize=(4.8, 0.17 * len(shown) + 0.8), layout="constrained"
    )
    ax.axvline(actual, color=COLOURS[2], label="what the model does")
    looks = {"color": COLOURS[0], "label": "what an explainer says"}
    ax.plot(shown["stars"], range(len(shown)), "o", **looks)
    ax.set(
        yticks=range(len(shown)),
        yticklabels=shown["explainer"],
        xlabel="food from Negative to Positive, in stars",
    )
    ax.invert_yaxis()
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, -0.12))
    near = (shown["stars"] - actual).abs().lt(0.5).sum()
    ax.set_title(f"{near} of {len(shown)} answers within half a star", loc="right")
stage.figure("one_text", figure)
_ = stage.table("figure", shown.assign(model=actual))

# %% [markdown]
# The table has means over all questions; those in stars are about changes from Negative to Positive.

# %% tags=["nbval-ignore-output"]
overview = stage.table("overview", overview)
well_known = ["Zero", "No concept", "CONEXP", "Approx", "Approx (mean)", "S-Learner"]
well_known += ["TCAV", "ConceptSHAP", "INLP", "CausaLM", "LEACE", "Causal Proxy Model"]
in_words(
    overview[overview["explainer"].isin(well_known)],
    {"explainer": "explainer", "size": "mean length", "stars": "mean change in stars"},
)

# %% [markdown] tags=["slide"]
# On average CONEXP, Approx, S-Learner and the Causal Proxy Model say that a better value adds more than half a star. The explainers that cannot use the direction of the change say less, and TCAV stays near zero.
#
# ## 6 · Control: does the answer depend on the question?
#
# We can ask about one text with two different new values. The table has the share of such cases in which both answers are equal, for six of the explainers where that happens (`blindness.csv` has all).

# %% tags=["nbval-ignore-output", "slide"]
keys = ["dataset", "model", "seed", "explainer", "base_id", "aspect"]
rounded = told[[*keys, "new"]].assign(answer=[tuple(row) for row in vectors.round(9)])
distinct = (
    rounded.drop_duplicates([*keys, "new"])
    .groupby(keys, sort=False)
    .agg(changes=("new", "nunique"), answers=("answer", "nunique"))
)
twice = distinct[distinct["changes"] > 1].reset_index()
deaf = (
    twice.assign(same=twice["answers"] == 1)
    .groupby("explainer", sort=False)["same"]
    .mean()
    .reset_index()
)
same = stage.table("blindness", deaf[deaf["same"] > 0])
named = same["explainer"].isin(
    ["Zero", "TCAV", "ConceptSHAP", "INLP", "CausaLM", "LEACE"]
)
in_words(same[named], {"explainer": "explainer", "same": "share of equal answers"})

# %% [markdown] tags=["slide"]
# *Zero* ignores the question. TCAV, ConceptSHAP, INLP, CausaLM and LEACE ignore the direction of the change. If a text doesn't mention food, such a method cannot be right about both good and bad food.
#
# **No** explainer may use the counterfactual text. For fifty pairs we replace by nonsense all that is
# known about texts that explainers do not see. Questions and six explainers' answers must stay equal.


# %%
def nonsense(values, filler, other):
    """What is known of the texts, with nonsense for those that are not asked about."""
    rows = other if np.ndim(values) == 1 else other[:, None]
    return None if values is None else np.where(rows, filler, values)


fillers = {
    "gold": "Positive",
    "predicted": "Negative",
    "probabilities": np.eye(n_classes)[0],
    "embeddings": -9.0,
    "words": "nonsense",
    "without": -9.0,
}


def hears_no_other_text(train, questions, head, asked):
    """Asserts that fifty questions, and answers to them, stay as they are."""
    few, whole = asked.head(50), questions.texts
    other = ~np.isin(whole.ids.astype(str), few["base_id"].to_numpy(str))
    parts = {
        name: nonsense(getattr(whole, name), f, other) for name, f in fillers.items()
    }
    blind = []
    for seen in (whole, Texts(whole.ids, **parts)):
        rows = np.unique(seen.ids.astype(str), return_index=True)[1]
        blind.append(ask(few, seen.take(rows)))
    for part in ("ids", *fillers):
        assert np.array_equal(*(getattr(one.texts, part) for one in blind))
    for name in ("CONEXP", "Approx (mean)", "S-Learner", "TCAV", "LEACE", "CausaLM"):
        if can_explain(name, train, head):
            fitted = explainer_named(name).make().fit(train, head, 0)
            assert np.array_equal(*(fitted.effects(questions) for questions in blind))
    return (
        f"{len(few)} questions, {other.sum()} of {len(other)} rows spoiled, all equal"
    )


# %% [markdown]
# We run the check for the first model.

# %%
within = [study.gathered(*row) for row in in_reach.head(1).itertuples(index=False)]
for parts in [*within, *given.values()][:1]:
    print(hears_no_other_text(*parts))

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Train texts have the readers' labels, test texts predicted ones.** *Approx* compares predictions with predictions.
# - **TCAV has no scale.** It is a slope, not the effect of a real change. So only its cosine error means something.
# - **TCAV and ConceptSHAP were adapted by the paper** to single texts.
# - **CausaLM is small here.** Stage 2 shows how much of a concept is left in its encoder.
# - **INLP's last layer is fitted again** with a penalty (not in *(towards c')*). The released code hardly changes it.
#
# ## Try it
#
# - Try `Approx("top_k", k=1).fit(inside[0], None, 0).effects(inside[1])`, then `k=30`.
# - Write [an explainer of your own](README.md#an-explainer-of-your-own), and add it to `explainers`.
# - Set `train_on` in stage 2 to `exclusive`. Which explainers benefit?
#
# Exercises with checks: [page](../../docs/course/exercises/cebab.md#03-attribution).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [04_metrics](04_metrics.ipynb) compares each estimate with what the model really does.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# You can do them without running the notebook: start with the next cell. Replace the three dots by your answer. If it is wrong, the check below it gives a hint, but not the solution.

# %% tags=["exercise"]
import numpy as np

from lib.core.exercises import check_choice, check_function, check_number

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# Four train texts, and the probability that a model gives to *good*:
#
# | food | noise | answer |
# |---|---|---|
# | Positive | Positive | .8 |
# | Positive | Negative | .7 |
# | Negative | Positive | .4 |
# | Negative | Negative | .2 |
#
# A test text has bad food and good noise, and the model gives it .25. *What if the food had been good?* What do CONEXP and Approx answer?

# %% tags=["hole"]
conexp = ...
approx = ...

# %% tags=["solution"]
conexp = (0.8 + 0.7) / 2 - (0.4 + 0.2) / 2
approx = 0.8 - 0.25

# %% tags=["check"]
good, bad = np.array([0.8, 0.7]), np.array([0.4, 0.2])
check_number(
    conexp,
    good.mean() - bad.mean(),
    {"a mean divides by the number of texts.": good.sum() - bad.sum()},
    "It does not look at the test text at all.",
    name="conexp",
)
check_number(
    approx,
    good[0] - 0.25,
    {
        "subtract the model's answer to the test text itself.": good[0] - bad[0],
        "the matching text has the same noise.": good[1] - 0.25,
        "one matching text is taken, not the mean.": good.mean() - 0.25,
    },
    "Which train text is like the test text in all but the food?",
    name="approx",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write CONEXP. It is given the values of the asked concept in the train texts, the model's answers to them, and the change: from `old` to `new`.


# %% tags=["hole"]
def conexp_of(values, answers, old, new):
    """The difference of two means."""
    return ...


# %% tags=["solution"]
def conexp_of(values, answers, old, new):
    """The difference of two means."""
    values, answers = np.asarray(values), np.asarray(answers)
    return answers[values == new].mean() - answers[values == old].mean()


# %% tags=["check"]
def expected(values, answers, old, new):
    """The mean of the one, minus the mean of the other."""
    chosen = {
        wanted: [a for v, a in zip(values, answers) if v == wanted]
        for wanted in (old, new)
    }
    return np.mean(chosen[new]) - np.mean(chosen[old])


three = ["Positive", "Negative", "unknown", "Positive"]
check_function(
    conexp_of,
    expected,
    {
        "Means of new minus old.": [
            ["N", "P", "N", "P", "P"],
            [0.2, 0.9, 0.4, 0.7, 0.2],
            "N",
            "P",
        ],
        "Other values have no part in it.": [
            three,
            [0.9, 0.1, 0.5, 0.7],
            "Negative",
            "Positive",
        ],
        "The other direction has the other sign.": [["N", "P"], [0.2, 0.9], "P", "N"],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Predict
#
# The paper's TCAV has one direction for each concept, here from texts without it to texts with it. It is asked *what if Negative* and *what if Positive* about the same review without any word on food. What can it answer?
#
# - `"a"` Two opposite effects.
# - `"b"` The same effect twice.
# - `"c"` Nothing, since the food is not mentioned.

# %% tags=["hole"]
two_answers = ...  # "a", "b" or "c"

# %% tags=["solution"]
two_answers = "b"

# %% tags=["check"]
check_choice(
    two_answers,
    "b",
    {
        "a": "For that it would need a direction for Negative and one for Positive.",
        "c": "A slope exists at every vector, whatever the text mentions.",
    },
)
