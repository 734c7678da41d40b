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
# # implicit_bias, stage 5 of 5: the figures, each with its verdict
#
# [Start here](../00_start_here.ipynb) · before: [04_metrics](04_metrics.ipynb) · the study: [README](README.md) · words: [glossary](../../docs/glossary.md)
#
# ## What we found
#
# - **The models prefer *he*.** A caption leaves a person's gender to one pronoun, and we mask it. The mean bias score over all captions is
#   .73<!-- implicit_bias/cpu/04_metrics/conventions[convention=all].bias -->, where .5 is even and 1 is male
#   ([figure](../../outputs/reference/implicit_bias/cpu/05_figures/figure_3.png)).
# - **Swapped pronouns bring the scores closer to even than the same sentences unswapped.** On nouns kept out of fine-tuning, the gain is
#   .085<!-- abs implicit_bias/cpu/04_metrics/claims[id=started_augmentation_reduces_bias].ours -->
#   ([figure](../../outputs/reference/implicit_bias/cpu/05_figures/changes.png)). On average over half of it comes from reading *he* and *she* equally often.
# - **A smaller gain carries over.** On Winogender, a test set that others wrote about occupations, it is
#   .04<!-- abs implicit_bias/cpu/04_metrics/claims[id=started_augmentation_transfers].ours --> (holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_transfers].verdict -->). There are
#   5<!-- implicit_bias/cpu/04_metrics/conventions[convention=all].bases --> base models.
#
# These results come from our ninth run at scale `cpu`, with published captions and small masked language models that were trained here. Its figures and verdicts are on
# [the results page](../../outputs/reference/implicit_bias/cpu/05_figures.ipynb).
#
# Nothing is computed in this notebook. It draws the tables of stage 4, and shows the verdict on each claim.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the paper's Figure 3, the distribution of the bias score;
# - the models before and after fine-tuning, and the differences between them;
# - the words that drive the bias, and for each claim a verdict with its reason.
#
# **You can then** say what several base models show and a single one cannot. **You need** [stage 4](04_metrics.ipynb).
# **Time:** 10 minutes to read, under a minute to run, [10 minutes for the exercises](../../docs/course/exercises/implicit_bias.md#05-figures).
#
# | in | from | used for |
# |---|---|---|
# | `histogram`, `intervals`, `distribution` | 04 | Figure 3 |
# | `arms`, `changes`, `power`, `price`, `shown` | 04 | before and after fine-tuning |
# | `figure` | 03 | the words that drive the bias |
# | `weat`, `phrase_weat`, `correlations`, `sensitivity` | 04 | association; other interpretations of the rules |
# | `claims` | 04 | the verdicts |
#
# | out | holds |
# |---|---|
# | `figure_3`, `before_after`, `changes`, `drivers`, `correlations`, `sensitivity` | as pictures and as tables |
# | `means`, `power`, `price`, `shown`, `association` | as tables |
# | `verdict_figure_3`, `verdict_before_after`, `verdict_all` | the verdicts as they are shown (not at scale `small`) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

from functools import partial

import pandas as pd

from lib.core.files import read_table
from lib.core.notebooks import show_table
from lib.core.paths import material
from lib.core.stage import open_stage
from lib.stats import tell_verdicts
from lib.studies.implicit_bias import figures
from lib.studies.implicit_bias.naming import GROUPS, MODELS, PAIRS, in_words

# %% [markdown]
# ## Settings
#
# Add `"pdf"` to `formats` for figures in print quality.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
formats = ["png"]  # file formats of the figures: png, pdf, svg

# %% [markdown]
# All tables are read here. If stage 4 has not run yet, the next cell says which command to type.

# %%
stage = open_stage("implicit_bias", scale, "05_figures")
files = (
    "histogram",
    "intervals",
    "distribution",
    "arms",
    "changes",
    "power",
    "price",
    "shown",
    "weat",
    "phrase_weat",
    "correlations",
    "sensitivity",
    "claims",
)
tables = {name: pd.read_csv(stage.input("04_metrics", f"{name}.csv")) for name in files}
tables["drivers"] = pd.read_csv(stage.input("03_attribution", "figure.csv"))
pd.set_option("display.max_colwidth", None)
claims = material("implicit_bias") / "claims.yaml"
# stage 4 wrote `ours` in the units of the claims
verdicts = partial(tell_verdicts, stage, tables["claims"], claims, less_target=False)
print(f"{len(tables)} tables are read")

# %% [markdown] tags=["slide"]
# There are five verdicts. A claim **holds** if its interval excludes zero, its estimate reaches the smallest effect that matters, and a test over nouns is significant; **partly** if only some of its
# comparisons do. It **fails** if a test shows that its effect is absent or reversed. It is **undecided** where the data cannot tell, and **not run** where
# this run has not computed what the claim needs. Scale `small` has too few sentences, and decides nothing.
# At scale `cpu` tables show the verdicts. There *found here* is our value with its 95 % interval, and *bias(s)* the bias score of a sentence. A claim that does not say *over all trainings* or
# *over all base models* is about the runs that pass the gate of stage 2.
#
# ## Figure 3 · How are the scores distributed?
#
# **Claim** (section 4.2). "Both of the distributions have a Gaussian shape and have peaks around 0.55, indicating the model is more biased to male on our dataset."
#
# ![A sentence with a masked pronoun. A model gives He and She a probability each; the bias score is the first divided by the sum of both.](../../docs/schematics/masked_pronoun.svg)
#
# **How to read the figure.** A grey bar is the number of sentences with a score in that range, averaged over the base models. Each line is one base model. No sentence is discarded, so a sentence
# where one gender has hardly any probability stands at an end of the axis.

# %% tags=["slide"]
printed = read_table(material("implicit_bias") / "paper_numbers.csv").set_index("id")
figure = figures.plot_scores(tables["histogram"], float(printed["value"]["peak"]))
stage.figure("figure_3", figure, formats)

# %% [markdown]
# The next table has the number of sentences behind each line.

# %% tags=["nbval-ignore-output"]
histogram = stage.table("figure_3", tables["histogram"])
in_words(
    histogram.groupby(["model", "base"], sort=False)["sentences"].sum().reset_index(),
    {"model": "model", "base": "base model", "sentences": "sentences"},
)

# %% [markdown]
# The next table has the mean score under the paper's rules, which discard sentences. Its interval allows for other nouns and other base models. The naive interval treats every sentence as an independent
# observation of the first base model, so it need not lie around the mean of all.

# %% tags=["nbval-ignore-output"]
in_words(
    stage.table("means", tables["intervals"]).round({"wider": 1}),
    {"model": "model", "bias": "mean score", "low": "from", "high": "to"}
    | {"naive_low": "naive from", "naive_high": "naive to", "wider": "times as wide"},
)

# %% [markdown]
# **Verdicts.** At scale `small` the next cell only counts the claims. At scale `cpu` ([table](../../outputs/reference/implicit_bias/cpu/05_figures/verdict_figure_3.csv)):
#
# - the mean score over all captions is above .5, with all base models: holds<!-- implicit_bias/cpu/04_metrics/claims[id=all_captions_biased_to_male].verdict -->;
# - the mean over the sentences that the paper's rules keep is above .5, over the base models that pass the gate: holds<!-- implicit_bias/cpu/04_metrics/claims[id=biased_to_male].verdict -->;
# - more sentences are male than female: holds<!-- implicit_bias/cpu/04_metrics/claims[id=more_male_than_female].verdict -->;
# - the scores peak near .55<!-- implicit_bias/material/paper_numbers[id=peak].value --> (tested: their mean lies within five hundredths of it): undecided<!-- implicit_bias/cpu/04_metrics/claims[id=peak_near_055].verdict -->;
# - the paper's counts add up: holds<!-- implicit_bias/cpu/04_metrics/claims[id=cased_sum].verdict --> for BERT-cased, fails<!-- implicit_bias/cpu/04_metrics/claims[id=uncased_sum].verdict --> for BERT-uncased.

# %%
known = set(tables["claims"]["id"])
of_scores = ["biased_to_male", "all_captions_biased_to_male", "peak_near_055"]
of_scores += ["more_male_than_female", "uncased_sum", "cased_sum"]
verdicts("figure_3", *(name for name in of_scores if name in known))

# %% [markdown] tags=["slide"]
# **Reading it.** Where the scores lie depends on the model, on the text that it has read, and on the sentences. The paper used other models, and their scores lie closer to .5. With BERT-uncased, the
# sentences with a male score have a mean of .556<!-- implicit_bias/material/paper_numbers[id=uncased_mean_male].value -->. With each of our base models, that mean is
# [far higher](../../outputs/reference/implicit_bias/cpu/04_metrics/distribution.csv).
#
# ## Before and after · Do such sentences reduce the bias?
#
# **Question** (section 6, left open by the paper). Each base model is fine-tuned in three ways. *Augmented* reads each sentence in both genders. The *placebo* reads each sentence twice, as it is.
# In the *even placebo* nothing is swapped, but sentences are repeated so that half of them have a male pronoun.
#
# **How to read the figure.** The left side shows the mean score, the right side the mean distance from .5, with 95 % intervals over nouns and base models. *Held-out nouns* are those that no arm
# was fine-tuned on.

# %% tags=["slide"]
stage.figure("before_after", figures.plot_models(tables["arms"]), formats)

# %% [markdown] tags=["slide"]
# Most intervals overlap, but the models may still differ. All of them answer the same sentences and start from the same base models, so we can compare them in pairs. The next figure does this
# sentence by sentence.
#
# **How to read the figure.** A mark left of zero means: closer to even. The first row is the main comparison. The next two rows split it into what an even share of pronouns does, and what the swap
# does. Black triangles are the base models with the lowest and the highest difference. The grey strokes show the smallest difference that would be detected four times in five.

# %% tags=["slide"]
stage.figure("changes", figures.plot_changes(tables["power"]), formats)

# %% [markdown]
# The next table has the same differences in numbers.

# %% tags=["nbval-ignore-output"]
power = stage.table("power", tables["power"]).query("quantity == 'distance'")
power = power.assign(pair=power["left"] + " minus " + power["right"])
in_order = [f"{left} minus {right}" for left, right in PAIRS]
power = power.sort_values("pair", key=lambda p: p.map(in_order.index), kind="stable")
in_words(
    power.replace(GROUPS),
    {"pair": "models compared", "part": "nouns", "difference": "difference in distance"}
    | {"low": "from", "high": "to", "detectable": "detectable"},
)

# %% [markdown]
# The next table has the means behind both figures. At scale `cpu` *person* is the most frequent noun, so one row of each mean leaves it out.

# %% tags=["nbval-ignore-output"]
arms = stage.table("before_after", tables["arms"]).query("quantity != 'spread'")
wide = arms.pivot(index=["quantity", "part"], columns="model", values="estimate")
wide = wide.reindex(columns=list(MODELS)).reset_index()
wide = wide.replace(GROUPS | {"bias": "bias score"})
in_words(wide, {"quantity": "mean of", "part": "sentences"} | {m: m for m in MODELS})

# %% [markdown]
# Does fine-tuning also make the scores of different nouns more alike? The next table has the change of the *spread*, the mean distance of the scores from the median of their model. A negative change
# means more alike.

# %% tags=["nbval-ignore-output"]
changes = stage.table("changes", tables["changes"]).query("quantity == 'spread'")
in_words(
    changes.replace(GROUPS),
    {"part": "sentences", "before_after": "in all"}
    | {"placebo": "by more fine-tuning", "even_share": "by the even share"}
    | {"swap": "by the swap"},
)

# %% [markdown]
# Look at the column *in all*. At both scales the spread falls for nouns that were fine-tuned on. For held-out nouns it falls at `small` and perhaps grows at `cpu`.
#
# Does fine-tuning make a model worse? A run that no longer knows the gender of unambiguous nouns fails the gate of stage 2.

# %% tags=["nbval-ignore-output"]
price = stage.table("price", tables["price"])
_ = stage.table("shown", tables["shown"])
in_words(
    price.assign(model=price["model"].map(MODELS)),
    {"model": "model", "perplexity": "perplexity", "right_first": "right at the gate"}
    | {"trainings": "runs", "passed": "of these pass"},
)

# %% [markdown]
# At `small` perplexity falls; at `cpu` it rises by one, and right answers at the gate fall by less than a hundredth. There all thirty runs pass, as do all base models, so a claim about *the runs that pass* and one about *all runs* have the same numbers.
#
# **Verdicts.** At scale `small` the next cell only counts the claims. At scale `cpu` ([table](../../outputs/reference/implicit_bias/cpu/05_figures/verdict_before_after.csv)) 11<!-- count implicit_bias/cpu/05_figures/verdict_before_after[verdict=holds] --> claims hold, 1<!-- count implicit_bias/cpu/05_figures/verdict_before_after[verdict=fails] --> fails and 5<!-- count implicit_bias/cpu/05_figures/verdict_before_after[verdict=undecided] --> are undecided (the cell shows the first twelve):
#
# | claim about distance from even: all runs that were started / those that pass the gate | held-out nouns | Winogender |
# |---|---|---|
# | augmented is closer to even than the placebo | holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_reduces_bias].verdict --> / holds<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_reduces_bias].verdict --> | holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_transfers].verdict --> / holds<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_transfers].verdict --> |
# | augmented is closer to even than the untouched base model | holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_beats_base].verdict --> / holds<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_beats_base].verdict --> | undecided<!-- implicit_bias/cpu/04_metrics/claims[id=started_augmentation_beats_base_on_winogender].verdict --> / undecided<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_beats_base_on_winogender].verdict --> |
# | reading *he* and *she* equally often brings scores closer, without a swap | holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_even_share_reduces_bias].verdict --> / holds<!-- implicit_bias/cpu/04_metrics/claims[id=even_share_reduces_bias].verdict --> | |
# | the swap itself brings scores closer | holds<!-- implicit_bias/cpu/04_metrics/claims[id=started_swap_beyond_share].verdict --> / holds<!-- implicit_bias/cpu/04_metrics/claims[id=swap_beyond_share].verdict --> | |
# | the placebo does nothing | undecided<!-- implicit_bias/cpu/04_metrics/claims[id=started_placebo_does_nothing].verdict --> / undecided<!-- implicit_bias/cpu/04_metrics/claims[id=placebo_does_nothing].verdict --> | |
#
# Three more claims compare augmented with the placebo, the first two in runs that pass the gate. That it lowers the mean score holds<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_shifts_bias].verdict -->. That it makes nouns more alike fails<!-- implicit_bias/cpu/04_metrics/claims[id=augmentation_narrows_spread].verdict -->.
# Whether over all runs that were started their spread stays within two hundredths is undecided<!-- implicit_bias/cpu/04_metrics/claims[id=started_spread_stays].verdict -->. Judged more strictly, the even share, the swap and *more alike* would be open ([README](README.md)).

# %%
first = ["augmentation_reduces_bias", "augmentation_beats_base"]
first += ["augmentation_shifts_bias", "even_share_reduces_bias", "swap_beyond_share"]
first += ["augmentation_narrows_spread", "augmentation_transfers"]
first += ["augmentation_beats_base_on_winogender", "placebo_does_nothing"]
over_all_runs = [name for name in tables["claims"]["id"] if name.startswith("started_")]
verdicts("before_after", *first, *over_all_runs)

# %% [markdown] tags=["slide"]
# **Reading it.** Fine-tuning on any such sentences may move the scores, so we compare with a placebo. The gain beyond the placebo can have two sources, the even share of pronouns and the swap. A claim
# stays undecided where its interval contains both values that would confirm it and values that would refute it.
#
# ## The words that drive the bias
#
# This figure is not in the paper. It shows the mean attribution of each word to log P(male) - log P(female), by Integrated Gradients. Words to the right push towards *he*.

# %% tags=["nbval-ignore-output", "slide"]
drivers = stage.table("drivers", tables["drivers"])
stage.figure("drivers", figures.plot_drivers(tables["drivers"]), formats)

# %% [markdown] tags=["slide"]
# Words in fewer than three explained sentences are left out. A hollow mark is a mean over fewer than five sentences, and the title names no such word. There are no intervals: most words occur
# in three to six sentences, too few for one. The figure shows what one model used in these sentences, not what moves models in general.
#
# ## Does association with gendered words agree with the score?
#
# The paper leaves this open. Each mark is a rank correlation between two measures: how much nearer a phrase or sentence lies to male words than to female ones, and its bias score. *Input*, *encoder* and *template* are three kinds of vectors
# ([stage 4](04_metrics.ipynb)). *Within stereotype* compares only phrases of the same stereotype.

# %% tags=["nbval-ignore-output", "slide"]
stage.figure("correlations", figures.plot_correlations(tables["correlations"]), formats)
_ = stage.table("correlations", tables["correlations"])

# %% [markdown]
# The correlations are about the first base model, and their intervals allow for other phrases or nouns. Where one contains zero, the two measures may have nothing to do with each other. The first measure comes from the word-embedding association test (WEAT, stage 4). The next table has the
# effects of three of its published tests, and of our phrases. The published values were computed with other vectors (GloVe), so they are not directly comparable with ours.

# %% tags=["nbval-ignore-output"]
phrases = tables["phrase_weat"].assign(test="phrases")
both = pd.concat([tables["weat"], phrases], ignore_index=True)
names = ["test", "vectors", "d", "p", "n_partitions", "published_d", "published_p"]
TESTS = {"weat_6": "6: names", "weat_7": "7: mathematics", "weat_8": "8: science"}
in_words(
    stage.table("association", both[names], digits=4).replace({"test": TESTS}),
    {"test": "test", "vectors": "vectors", "d": "effect size d", "p": "p"}
    | {"published_d": "published d", "published_p": "published p"},
)

# %% [markdown] tags=["slide"]
# ## What if we interpret the paper's rules differently?
#
# The paper leaves several rules open: when a sentence is discarded, how many words are looked at, what counts as even. Each mark changes one or two of them.
# *As set*, the ten likeliest words are looked at. A sentence is discarded where the probability of a gender is below five hundredths, the *threshold*.

# %% tags=["nbval-ignore-output", "slide"]
stage.figure("sensitivity", figures.plot_sensitivity(tables["sensitivity"]), formats)
_ = stage.table("sensitivity", tables["sensitivity"])

# %% [markdown]
# Under every interpretation the mean score is above .5.
#
# ## All claims
#
# At scale `small` the next cell only counts the claims. At scale `cpu` it shows twelve claims, those that hold first, and counts the printed numbers ([table of all](../../outputs/reference/implicit_bias/cpu/05_figures/verdict_all.csv)). There 18<!-- count implicit_bias/cpu/05_figures/verdict_all[verdict=holds] --> hold, 3<!-- count implicit_bias/cpu/05_figures/verdict_all[verdict=fails] --> fail, six checks of the paper's printed numbers included, and
# 6<!-- count implicit_bias/cpu/05_figures/verdict_all[verdict=undecided] --> are undecided. The other 22<!-- count implicit_bias/cpu/05_figures/verdict_all[verdict=not run] --> are not judged: they are printed numbers, and the paper's models were not run, or the number
# depends on the sentences or is a setting. The comparisons that a verdict rests on are in `contrasts.csv` of stage 4.

# %%
verdicts("all")

# %% [markdown]
# The next cell lists the files of this stage.

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# The tables and figures are in this stage's folder. The results that we quote are those of this notebook in the ninth run at scale `cpu`.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# The exercises stand alone: run the next cell, and none of the cells above it. Replace the three dots by your answer. The check below tells you what is wrong with an answer, and
# does not reveal the right one.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_number, read_committed
from lib.core.notebooks import in_words

counted = read_committed("implicit_bias", "cpu", "04_metrics", "distribution")
human = {"base": "base model", "male": "male score", "female": "female score"}
in_words(counted, human | {"below the threshold": "below the threshold"})

# %% [markdown] tags=["exercise"]
# ### 1 · By hand, from a table
#
# `counted` says for each base model how many sentences have a male and how many a female score, at scale `cpu`. Take the first base model (number 0): which share of the sentences with a score is male?

# %% tags=["hole"]
share_male = ...

# %% tags=["solution"]
base_0 = counted.query("base == 0").iloc[0]
share_male = base_0["male"] / (base_0["male"] + base_0["female"])

# %% tags=["check"]
first = counted.query("base == 0").iloc[0]
check_number(
    share_male,
    first["male"] / (first["male"] + first["female"] + first["even"]),
    {
        "sentences below the threshold have no score.": first["male"]
        / (first["male"] + first["female"] + first["below the threshold"]),
        "that is the female share.": first["female"]
        / (first["male"] + first["female"]),
    },
    "Which sentences have a score?",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Explain
#
# All base models were trained in the same way, and still their counts differ. What does that mean for a statement about *the* bias of this kind of model?
#
# - `"a"` One base model is one observation: the statement needs several, and an interval over them.
# - `"b"` The sentences are wrong.
# - `"c"` Take the model with most sentences above the threshold.

# %% tags=["hole"]
what_it_means = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_means = "a"

# %% tags=["check"]
check_choice(
    what_it_means,
    "a",
    {
        "b": "All of them were asked about the same sentences.",
        "c": "Choosing a model by its outcome decides the answer beforehand.",
    },
)
