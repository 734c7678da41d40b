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
# # Assay, stage 1 of 5: for which texts do we know the right explanation?
#
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · this study: [README](README.md)
#
# Each of the other four studies compares explanations with one kind of right answer. We call such a right answer a
# *truth*. The assay collects these truths and adds others: seven in all. Each tests the same *explainers*,
# which score the words of a text. This stage makes the texts.
#
# ## What we found
#
# At run size `cpu`, partly on published texts; the cells below show `small`.
#
# - **More than half of the edited reviews can be used.** The truth *edit* needs edits that only remove words, or only add words:
#   839<!-- assay/cpu/01_data_generation/nested[pairs=of these nested].n --> of 1,417<!-- assay/cpu/01_data_generation/nested[pairs=an original and its edit].n -->.
#   [See the table](../../outputs/reference/assay/cpu/01_data_generation/nested.csv)
# - **Six truths fit into one format**: a text, a model, and a mark for each word. A seventh truth, *deletion*, uses the
#   same texts. [See one text for each](../../outputs/reference/assay/cpu/01_data_generation/items_shown.png) (it still marks *decides*, which only *they* changes).
# - **One truth, *noun*, needs most of the altered texts.** Each word is exchanged for twenty others.
#   [See the counts](../../outputs/reference/assay/cpu/01_data_generation/counts.csv)
#
# ## You will see
#
# ![The truths of the assay. altered words: these words differ between the forms. planted: these words alone decide the label. cue: the verb agrees with this noun. swap: what a swap to another form does to the answer. edit: what becomes of the answer without these words. noun: what other nouns here do to the answer. deletion: what is left of the answer when its top words go.](../../docs/schematics/assay_truths.svg)
#
# - one text for each truth except *deletion*;
# - a review from which a person removed words, and how often a program's edits only remove or add words;
# - words that we plant in a text, so that they alone decide its label.
#
# **You can then** test whether one text is made from another by removing words, and compute the right score of a
# planted word. **You need** to know what a classifier is. **Time:** 15 minutes to read, under a minute to run,
# [20 minutes for the exercises](../../docs/course/exercises/assay.md#01-data-generation).
#
# | out (in this stage's folder) | holds |
# |---|---|
# | `items.parquet` | the texts that will be explained, with truth, model, words, class and marks |
# | `altered.parquet` | the same texts with words removed or exchanged; no explainer ever gets these |
# | `mixed.parquet` | other edits of the reviews, which remove words and write new ones |
# | `forms.parquet` | the female and the male form of each sentence |
# | `train.parquet`, `corpus.parquet` | what the models of stage 2 are trained on |
# | `planted.parquet` | texts with planted words, to test whether a model uses them |
# | `by_hand`, `counts`, `nested`, `items_shown`, `tasks` (`.csv`), three figures | summaries |
#
# Every word that is not explained here is in the [glossary](../../docs/glossary.md).

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import read_yaml, save_parquet
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.plots import COLOURS, STYLE, plot_words
from lib.studies.assay import edits, items, nouns, plants, published
from lib.studies.cebab import reviews as review_texts
from lib.studies.cebab import worlds
from lib.studies.geco import corpus as geco_corpus
from lib.studies.geco import labels as geco_labels
from lib.studies.implicit_bias import sentences as natural
from lib.studies.implicit_bias.text import gender_frames
from lib.studies.lm_saliency.grammar import grammar_words, number_sentence
from lib.studies.lm_saliency.templates import syneval_rows
from lib.studies.lm_saliency.text import number_examples

# %% [markdown]
# ## Settings
#
# All texts but the published beginnings of *cue* are ours, and nothing has to be downloaded.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
# texts of the studies geco and cebab in place of ours, as {study: scale of its run}:
# for geco also a folder that make dataset made
texts_of = {}
n_items = 6  # texts of each truth that are explained
n_edits = 6  # the same for edits
longest = 16  # words of a sentence before planting, at most; of a review: twice as many
n_reviews = {
    "train": 30,
    "dev": 30,
    "test": 40,
}  # reviews that are written, each with six edits, one of them made twice
n_planted = 150  # training texts of each planted rule
n_frames = 240  # training sentences whose pronoun is masked
n_skewed = 10  # more of them for each antecedent, with its own share of he
n_corpus = 3000  # sentences that the language model reads
n_frequent = 25  # words of each kind in these sentences: nouns, verbs, adjectives, ...
n_replacements = 20  # words that take a word's place, at least 20

# %% [markdown]
# | word | meaning | column |
# |---|---|---|
# | item | one text that one model classifies | `item_id` |
# | truth | the kind of right answer that its explanation is compared with | `truth` |
# | mark | which words the right answer is about; known before any model is trained | `mark` |
# | cluster | items that are not independent, such as forms of one sentence | `cluster` |

# %%
stage = open_stage("assay", scale, "01_data_generation")
set_up(seed, n_threads)
labels = list(geco_labels.read_labels(material("geco") / "labels.yaml").values())
gendered = geco_labels.labelled_rows(labels, "all", ("F", "M"))
gendered = gendered[gendered["sentence"].map(len) <= 1.5 * longest]
wordings = worlds.read_wordings(material("cebab") / "wordings.yaml")
reviews = worlds.generate_reviews(worlds.World(0.0), wordings, n_reviews, 6, seed)

# %% [markdown]
# Run size `small` uses these sentences and reviews. Run size `cpu` takes published ones,
# except the sentences into which we plant words.

# %%
base = gendered.loc[gendered["sentence"].map(len) <= longest, "sentence"].tolist()
theirs = stage, texts_of, n_reviews, geco_corpus.read_geco
gendered, reviews = published.in_place_of(gendered, reviews, *theirs)

# %% [markdown] tags=["slide"]
# ## 1 · One text by hand
#
# Here is a review, and what was left after a person edited it:
#
# > long: *The soup was cold and the waiter was kind.*
# >
# > short: *The soup was cold.*
#
# A sentiment model gives the long text a score of .2 and the short text a score of -1.5. (The scores are log-odds,
# which stage 2 explains. Above 0 the model predicts *good*.) The two texts differ only in the words *and the waiter was
# kind*. So these words raised the score by 1.7.
#
# **Stop and guess.** An explanation of the long text gives *kind* 1.2 and *waiter* .3. The other removed words get 0. By
# how much did the removed words raise the score, according to this explanation?

# %% tags=["slide"]
long = edits.split_text("The soup was cold and the waiter was kind.")
removed = edits.removed_words(long, edits.split_text("The soup was cold."))
scores = [0.0, -0.4, 0.0, -1.1, 0.0, 0.0, 0.3, 0.0, 1.2, 0.0]
assert [long[i] for i in removed] == "and the waiter was kind".split()
assert np.isclose(edits.estimated_change(scores, removed), 1.5)
marks = ["removed" if i in removed else "" for i in range(len(long))]
example = {"words": long, "scores": scores, "marks": marks, "label": "an explanation"}
title = "By this explanation, the removed words raised the score by 1.5"
legend = {"removed": "removed by a person"}
toward = "speaks for good"
figure, plotted = plot_words(pd.DataFrame([example]), legend, toward, title, 1)
stage.figure("by_hand", figure)
plt.show()
_ = stage.table("by_hand", plotted[["word", "score", "mark"]])

# %% [markdown] tags=["slide"]
# By 1.5. This estimate has the right sign and is a little too small. To judge it we needed only the model's two scores.
# Nobody had to decide what *kind* means.
#
# The explainer was given one text. The right answer comes from the model's scores for two texts. Every truth about a
# model is made in this way: **alter words of the text, compute the model's score again, and compare the
# scores**.
#
# ## 2 · Which edits can we use?
#
# An edit can also exchange words. Then the short text has a word that the long text lacks, and the explanation of the
# long text has no number for it. So we use *nested* pairs only:
#
# > If we ignore upper and lower case, the words and punctuation marks of the short text appear in the long text in the same order.
#
# Sometimes several choices of removed words leave the same short text. From *so cold and so very sweet* we get *so
# sweet* if we remove *cold and so very*, or *so cold and* and *very*. We take the choice in the fewest pieces, here the
# first one. How many edits are nested?

# %%
assert edits.removed_words("bad food".split(), "good food".split()) is None
assert edits.removed_words("a b a b".split(), "a b".split()) == [0, 1]
tested = reviews[reviews["split"] == "test"]
pairs = edits.nested_pairs(tested)
counted = {
    "an original and its edit": int((~tested["is_original"]).sum()),
    "of these nested": len(pairs),
    "of these: the edit is longer": int(pairs["was_inserted"].sum()),
}
counted = stage.table("nested", pd.DataFrame(counted.items(), columns=["pairs", "n"]))
show_table(counted, {"pairs": "pairs of texts", "n": "how many"})

# %% [markdown] tags=["slide"]
# Fewer than half of the edits are nested: the others exchange a word. A program wrote these reviews and their edits.
# The share will be different for edits by people.
#
# ## 3 · Words that we plant
#
# ![Sentences with planted words and their labels: the velvet vicar sings copper .: 1; the velvet vicar sings lemon .: 0; lemon the vicar sings copper .: 0. The label is 1 where velvet and copper are both there; lemon decides nothing. So each of the two words has the share 0.5.](../../docs/schematics/planted_words.svg)
#
# The surest right answer is one that we made ourselves. We insert words into a sentence at random places, and a rule
# computes the label from these words alone. Another word, the *decoy*, is inserted into half of the texts and does not change the
# label (after Bastings et al. 2022).
#
# | rule | the label is 1 where | what the explanation should give |
# |---|---|---|
# | single | *mango* is in the text, and 0 where *cello* is | everything to that word |
# | and | *velvet* and *copper* are both in the text | one half to each |
# | or | *canyon* or *walnut* is in the text | all to the one that is there; one half each if both are |
# | order | *tulip* stands before *radar* | one half to each |
#
# Why one half? For the rule *and*, insert its two words one by one. The first word changes nothing, and the
# second word changes the label from 0 to 1. Each word is second in half of the orders, so on average it contributes one
# half. This average is called the *Shapley value*.

# %%
rules = {
    "single": ("mango", "cello"),
    "and": ("velvet", "copper"),
    "or": ("canyon", "walnut"),
    "order": ("tulip", "radar"),
}
planted = plants.planted_texts(base, rules, plants.DECOY, n_planted, seed)
tests = plants.planted_texts(base, rules, plants.DECOY, 40, seed + 1)
one = planted.query("rule == 'and' and target == 1").iloc[0]
assert sorted(one["truth"])[-2:] == [0.5, 0.5] and sum(one["truth"]) == 1
print(" ".join(one["sentence"]))

# %% [markdown] tags=["slide"]
# ## 4 · Words that we exchange for others of their kind
#
# Take *The barber sharpens ___ razor*. By how much does *barber* raise the model's score for *his*? We exchange
# *barber* for twenty other nouns and compare. The other nouns have the same number, the same article (*a* or *an*) and
# about the same frequency. So no word is left out or replaced by padding.
#
# In symbols: $x$ is the text, $g(x)$ is a model's score (stage 2 uses log-odds, written $f$), and $R$ is the number of
# other words $r$. The effect of the word at place $i$ is
#
# $$d_i = g(x) - \tfrac1R \textstyle\sum_r g(x \text{ with } r \text{ at place } i)$$

# %%
show_source(nouns.word_effects)

# %% [markdown]
# Which words are of the same kind? We take the kinds from sentences whose words are tagged as nouns, verbs and so on.

# %%
folder = material("implicit_bias")
tagged = sorted(material("geco").glob("annotation_*.conllu"))
tags = items.content_tags([*tagged, folder / "annotation_1.conllu"])
kinds = nouns.word_kinds(items.count_words(tags))
alike = nouns.replacements("doctor", kinds, n_replacements, seed)
assert len(alike) >= 20 and {kinds[w][:2] for w in alike} == {kinds["doctor"][:2]}
print("in place of doctor:", ", ".join(alike[:5]), "...")

# %% [markdown]
# The sentences come from the study [implicit_bias](../implicit_bias/README.md). There the noun that the pronoun stands for,
# its *antecedent*, was labelled by hand.

# %%
known = pd.read_csv(folder / "sentences.csv").merge(
    pd.read_csv(folder / "labels.csv").query("label == 'passes'"), on="id"
)
known = known.assign(target=1, words=known["sent1"].map(natural.split_words))
known["tags"] = [tags.get(tuple(found)) for found in known["words"]]
known = known[known["words"].map(len) <= longest].dropna(subset="tags")
known["cluster"] = known["antecedent"]
known["sentence"] = [
    natural.masked_words(found, natural.gendered_pronouns(found)[0])
    for found in known["words"]
]
known["mark"] = [
    [word.lower() == row.antecedent for word in row.sentence]
    for row in known.itertuples()
]
print(f"{len(known)} sentences, {known['antecedent'].nunique()} antecedents")

# %% [markdown] tags=["slide"]
# ## 5 · All items
#
# Three truths still need texts: *altered words* (`mask` in settings and files), *swap* and *cue*. The first two share sentences that have a female and a male
# form. *Altered words* marks the words that differ between the forms. (Where published labels are for three forms, stage 2 leaves out what only the
# third one changes.) *Swap* measures how much each of these words changes a model's score, which stage 2 computes.
#
# *Cue* uses beginnings of sentences such as *the farmers behind the assistant*. The next verb must agree with *farmers*,
# the *cue*, and not with *assistant*, the *attractor*. To test this we change one noun from singular to plural, or back.
#
# A small model cannot learn all of English. So its training text comes from a small grammar, and we explain only
# beginnings that use the words of this grammar.

# %%
words = [
    read_yaml(material("lm_saliency") / f"{name}.yaml")
    for name in ("grammar", "syneval", "winobias")
]
frequent = {
    kind: part[:n_frequent] for kind, part in grammar_words(*words, seed).items()
}
rng = np.random.default_rng(seed)
corpus = [
    number_sentence(frequent, kind, rng, held_out=False).tokens
    for kind in rng.choice(["plain", "prep", "prep"], n_corpus)
]
lines = syneval_rows(words[1]).query("pattern.str.startswith('prep_')")
heard = {word for sentence in corpus for word, _ in sentence}

# %% [markdown]
# Now we draw the items. Each cluster gives at most one item. For *planted* the four rules are drawn in turn, for
# *altered words* and *cue* the two classes. Up to half of the items of *edit* have a second edit: another text that was made
# to change the review in the same way.

# %%
short = gendered[gendered["sentence"].map(len) <= longest]
sources = {
    "mask": ("gender", items.swapped_rows(short)),
    "planted": ("planted", items.planted_rows(tests, len(base))),
    "cue": ("number", items.agreement_rows(lines, heard)),
    "edit": ("reviews", items.nested_rows(pairs, tested, 2 * longest)),
    "noun": ("pronoun", known),
}
drawn = {
    truth: items.draw_items(
        rows,
        truth,
        model,
        {"noun": 4 * n_items, "edit": n_edits}.get(truth, n_items),
        seed,
        by={"planted": "rule", "edit": "has_second"}.get(truth, "target"),
    )
    for truth, (model, rows) in sources.items()
}
dev = reviews[reviews["split"] == "dev"]
spare = items.nested_rows(edits.nested_pairs(dev), dev, 2 * longest)
spare = items.draw_items(spare, "edit", "reviews", n_items, seed, part="dev")
drawn["edit"] = pd.concat([drawn["edit"], spare], ignore_index=True)

# %% [markdown]
# Then we alter the texts of the items. Each item of *planted* appears twice, because we explain two models for it. Each
# item of *altered words* appears again under *swap*. *Mixed* edits of the same reviews, which also write new words, are
# kept for a second score.

# %%
exchanged = items.with_replacements(drawn["noun"], kinds, n_replacements, seed)
n_words = drawn["noun"]["item_id"].map(exchanged.groupby("item_id")["at"].nunique())
drawn["noun"] = drawn["noun"][n_words >= 3].head(n_items)  # fewer have no order
altered = [
    items.with_short_texts(drawn["edit"]),
    items.with_other_numbers(drawn["cue"]),
    exchanged[exchanged["item_id"].isin(drawn["noun"]["item_id"])],
]
altered = pd.concat(altered, ignore_index=True)
mixed = items.mixed_edits(drawn["edit"].query("part == 'test'"), tested)
asked = items.with_second_questions(drawn)
print(f"{len(asked)} items, {len(altered)} altered texts, {len(mixed)} mixed edits")

# %% [markdown]
# Here is one item for each truth. *Noun* also asks about words that are not marked.

# %% tags=["slide"]
names = {1: "known", 0: "", -1: "against"}
shown = asked.drop_duplicates("truth").assign(
    scores=None, label=asked["truth"], words=asked["sentence"].map(list)
)
shown["marks"] = [[names[np.sign(mark)] for mark in row] for row in shown["mark"]]
legend = {"known": "the right answer is about these", "against": "an attractor"}
title = "Six truths, and the words that each of them is about"
in_words = shown.replace({"label": {"mask": "altered words"}})
figure, plotted = plot_words(in_words, legend, title=title, digits=None)
stage.figure("items_shown", figure)
plt.show()
plotted = plotted.replace({"label": {"altered words": "mask"}})  # its name in files
_ = stage.table("items_shown", plotted[["label", "word", "mark"]])

# %% [markdown]
# How many items and altered texts are there?

# %%
columns = ["truth", "items", "clusters", "words", "altered texts"]
counts = stage.table("counts", items.count_items(asked, altered), digits=1)
spoken = {"mask": "altered words", "edit, to fit a scale": "edit, to fit a factor"}
named = counts.replace(spoken)
show_table(named, dict(zip(columns, columns)) | {"words": "words a text"})

# %% [markdown]
# Nearly all altered texts belong to *noun*. *Planted* needs no altered texts, because the rule gives the right answer.
# (The edits *to fit a factor* are used in stage 4.) *Altered words* and *swap* need none either, because each sentence already has both forms. Six items for each truth are enough
# to show the steps, and too few to decide anything.

# %% [markdown] tags=["slide"]
# ## 6 · What the models are trained on
#
# Stage 2 trains seven models on five tasks, because *planted* and *gender* have two models each. No item is among the texts that
# its model is trained on.

# %%
judged = reviews[(reviews["split"] == "train") & (reviews["rating"] != 3)]
frames = [
    (found, natural.gendered_pronouns(found)[0])
    for found in gender_frames(folder / "frames.yaml", n_frames, seed)
]
masked = [natural.masked_words(found, at) for found, at in frames]
male = [int(PRONOUNS[found[at].lower()] == "M") for found, at in frames]
patterns = read_yaml(folder / "frames.yaml")["frames"]
skewed = nouns.skewed_sentences(drawn["noun"]["antecedent"], patterns, n_skewed, seed)
masked, male = [*masked, *skewed["sentence"]], [*male, *skewed["target"]]
before = [
    (*x, i) for i, sentence in enumerate(corpus) for x in number_examples(sentence)
]
good = judged.assign(sentence=judged["text"].map(edits.split_text))
good["target"] = review_texts.rating_labels(judged["rating"], 2)
columns = ["sentence", "target", "sentence_idx"]
learnt = {
    "gender": gendered[~gendered["sentence_idx"].isin(drawn["mask"]["sentence_idx"])],
    "planted": planted.assign(sentence_idx=range(len(planted))),
    "reviews": good.assign(sentence_idx=judged["group"].factorize()[0]),
    "pronoun": pd.DataFrame(zip(masked, male, range(len(male))), columns=columns),
    "number": pd.DataFrame(before, columns=columns),
}
train = pd.concat(part[columns].assign(model=name) for name, part in learnt.items())
train = items.without_items(train, asked)

# %% [markdown]
# The task *pronoun* also has `n_skewed` sentences about each antecedent. How many of them are about *he* is drawn for each
# noun, from a tenth to nine tenths. So we know each antecedent's *stereotype*, and stage 4 can remove its influence.
#
# How much text does each task have?

# %% tags=["slide"]
tasks = train.groupby("model", sort=False).agg(
    texts=("sentence", "size"), share_of_1=("target", "mean")
)
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
    _ = tasks["texts"].plot.barh(
        ax=ax,
        color=COLOURS[0],
        xlabel="training texts",
        ylabel="",
        title=f"Five tasks, at most {tasks['texts'].max():,} texts for each",
    )
stage.figure("tasks", figure)
plt.show()
tasks = stage.table("tasks", tasks.reset_index())
columns = {"model": "model", "texts": "texts", "share_of_1": "share of class 1"}
show_table(tasks, columns)

# %% [markdown]
# ### Controls
#
# Four facts must hold for every seed. Each altered text differs from its item. The right score of a decoy is 0. No
# sentence contains a planted word before we insert it. No model is trained on an item.

# %%
of_item = asked.set_index("item_id")["sentence"].map(tuple)
same = [
    row.item_id
    for row in altered.itertuples()
    if tuple(row.sentence) == of_item[row.item_id]
]
assert not same, f"an alteration of {same[0]} changed nothing: look at altered.parquet"
with_decoy = tests.query("decoy_at >= 0")
assert all(row.truth[row.decoy_at] == 0 for row in with_decoy.itertuples())
new = {word for pair in rules.values() for word in pair} | {plants.DECOY}
assert not new & {word.lower() for text in base for word in text}
both = [set(zip(t["model"], t["sentence"].map(tuple))) for t in (asked, train)]
assert not (shared := both[0] & both[1]), f"trained on an item: {min(shared)}"
decoys = with_decoy["target"].value_counts(normalize=True)
print(f"the decoy stands beside label 1 in {decoys[1]:.2f} of its texts")

# %% [markdown]
# The decoy occurs about equally often with both labels, as it should. Now we save everything for the next stages.

# %%
told = pd.DataFrame({"sentence": [[word for word, _ in text] for text in corpus]})
forms = gendered[gendered["sentence_idx"].isin(drawn["mask"]["sentence_idx"])]
tables = {"items": asked, "altered": altered, "train": train, "forms": forms}
tables |= {"planted": tests, "corpus": told, "mixed": mixed}
for name, table in tables.items():
    save_parquet(table.reset_index(drop=True), stage.path(f"{name}.parquet"))
_ = stage.close(globals())

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **A program wrote the reviews**, their edits and the beginnings of sentences. People write with more variety, and they
#   remove words in other places.
# - **A planted word does not fit its sentence.** A model or an explainer may find it more easily than an ordinary word.
# - **An exchanged word can be odd** in its sentence: *the baton fell asleep*. The average over twenty words removes
#   this oddity only in part.
# - **A program tagged the words.** A word with a wrong tag is exchanged for words of another kind.
# - **Altered words and swap share sentences.** This alone makes their results more alike.
#
# ## Try it
#
# - Write a pair of texts that is nested in two ways. Which words does the rule choose?
# - Plant a pair with XOR: the label is 1 where exactly one of the two words is there. What should an explanation give each
#   word, and can it?
# - Set `n_replacements = 40`. Which words get fewer, and why?
#
# Exercises with checks: [page](../../docs/course/exercises/assay.md#01-data-generation).
#
# ## Hand-over
#
# [02_training](02_training.ipynb) trains the models and runs them on the altered texts. This gives the truths about
# models.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_function, check_list, check_number
from lib.studies.assay import edits, plants

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# The long text is *not very very good food*, the short one *very good*. Which places of the long text were removed, counted from 0? Several choices leave the same text. Take the one that the rule of section 2 takes.

# %% tags=["hole"]
removed = ...  # a list of places

# %% tags=["solution"]
removed = [0, 1, 4]

# %% tags=["check"]
long, short = "not very very good food".split(), "very good".split()
check_list(
    removed,
    edits.removed_words(long, short),
    "Count the runs of neighbouring words that each choice removes.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# A text is nested in another if its words follow each other in the longer text, in the same order. Capital letters do not count. Write the test; you need not say which words were removed.


# %% tags=["hole"]
def is_nested(short, long):
    """Whether the short list of words is nested in the long one."""
    return ...


# %% tags=["solution"]
def is_nested(short, long):
    """Whether the short list of words is nested in the long one."""
    rest = iter(word.lower() for word in long)
    return all(word.lower() in rest for word in short)


# %% tags=["check"]
check_function(
    is_nested,
    lambda short, long: edits.removed_words(long, short) is not None,
    {
        "Words may be missing between two that stay.": [["a", "c"], ["a", "b", "c"]],
        "The order counts.": [["b", "a"], ["a", "b"]],
        "A word must be there as often as it is needed.": [["a", "a"], ["a", "b"]],
        "Capital letters do not count.": [["good", "food"], ["Good", "hot", "food"]],
        "An exchanged word is not there at all.": [["bad", "food"], ["good", "food"]],
        "A longer text is in no shorter one.": [["a", "b", "c"], ["a", "b"]],
        "A word may occur twice.": [["a", "a"], ["a", "b", "a"]],
        "Capitals do not count in the shorter text, either.": [
            ["Good"],
            ["good", "food"],
        ],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · By hand
#
# With the rule AND (*velvet* and *copper* are both there) the truth is one half on each. An explanation gives *velvet* .6, *copper* -.2 and two other words .1 each. What is its overlap with the truth? Drop the signs and divide by the sum, so that each word has a share. Of each word count this share, but at most the word's truth, and add up.

# %% tags=["hole"]
overlap = ...

# %% tags=["solution"]
overlap = min(0.6, 0.5) + min(0.2, 0.5)

# %% tags=["check"]
scores, truth = [0.6, -0.2, 0.1, 0.1], [0.5, 0.5, 0.0, 0.0]
check_number(
    overlap,
    plants.overlap(scores, truth),
    {
        "that is the mass accuracy; a word cannot have more overlap than truth.": 0.8,
        "signs are dropped first.": 0.3,
    },
    "Take the smaller of share and truth for each word, and add.",
)

# %% [markdown] tags=["exercise"]
# ### 4 · Explain
#
# A fifth rule is XOR: the label is 1 where exactly one of *zebra* and *onion* is there. We compare a text that has *zebra* with the same text without it: first where *onion* is missing, then where *onion* is there. What does *zebra* do to the label?
#
# - `"a"` It raises the label in the first case and lowers it in the second. One number per word cannot express both.
# - `"b"` It raises the label in both cases.
# - `"c"` Nothing in either case, so every explanation must give it 0.

# %% tags=["hole"]
what_zebra_does = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_zebra_does = "a"

# %% tags=["check"]
check_choice(
    what_zebra_does,
    "a",
    {
        "b": "Write down the label of the four texts: none, zebra, onion, both.",
        "c": "Is the label of the empty text that of zebra alone?",
    },
)
