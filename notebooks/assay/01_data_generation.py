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
# # Assay, stage 1 of 5: of which texts do we know what an explanation should say?
#
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · the row: [README](README.md)
#
# The other four rows each hold explanations against one kind of truth. This row asks the same explainers about all of them. It begins with the texts.
#
# ## You will see
#
# - six kinds of truth, each on one text of ours;
# - when one text is *nested* in another, and how often it happens;
# - words that are planted in a text, and a decoy.
#
# **You can then** test whether a text is nested in another, and say what a planted rule makes true. **You need** to
# know what a classifier is. **Time:** 15 minutes to read, under a minute to run, 20 minutes for the exercises.
#
# | out (in this stage's folder) | holds |
# |---|---|
# | `items.parquet` | the texts that will be explained: truth, model, words, class, and a mark for each word |
# | `altered.parquet` | the same texts with words removed or exchanged; no explainer ever sees these |
# | `forms.parquet` | both forms of the sentences whose words can be swapped |
# | `train.parquet`, `corpus.parquet` | what the models of stage 2 are trained on |
# | `planted.parquet` | planted texts on which stage 2 sees whether a model follows the rule |
# | `counts`, `nested`, `items_shown`, `tasks` (`.csv`), three figures | what is in them |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib.core.files import read_yaml, save_parquet
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.plots import COLOURS, STYLE, plot_words
from lib.studies.assay import edits, items, nouns, plants, published
from lib.studies.cebab.reviews import rating_labels
from lib.studies.cebab.worlds import World, generate_reviews, read_wordings
from lib.studies.geco.corpus import read_geco
from lib.studies.geco.labels import labelled_rows, read_labels
from lib.studies.implicit_bias import sentences as natural
from lib.studies.implicit_bias.text import gender_frames
from lib.studies.lm_saliency.grammar import grammar_words, number_sentence
from lib.studies.lm_saliency.templates import syneval_rows
from lib.studies.lm_saliency.text import number_examples

# %% [markdown]
# ## Settings
#
# All texts are ours and lie in this repository, in the material of the other rows. Nothing depends on a folder of downloads.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
texts_of = {}  # scales of the rows geco and cebab whose texts are taken; empty: ours
n_items = 6  # texts of each truth that are explained
longest = 16  # words of an explained text, at most
n_reviews = {
    "train": 30,
    "dev": 30,
    "test": 40,
}  # reviews that are written, each with six edits
n_planted = 150  # training texts of each planted rule
n_frames = 240  # training sentences whose pronoun is masked
n_corpus = 3000  # sentences that the language model reads
n_frequent = 25  # words of each kind in these sentences: nouns, verbs, adjectives, ...
n_replacements = 20  # words that take a word's place, at least 20

# %% [markdown]
# | word | meaning | column |
# |---|---|---|
# | item | one text that one model is asked about | `item_id` |
# | truth | what an explanation of it is held against | `truth` |
# | mark | what the truth knows of a word before any model is asked | `mark` |
# | cluster | texts that belong together; intervals are over clusters | `cluster` |

# %%
stage = open_stage("assay", scale, "01_data_generation")
set_up(seed, n_threads)
labels = read_labels(material("geco") / "labels.yaml").values()
gendered = labelled_rows(list(labels), "all", ("F", "M"))
gendered = gendered[gendered["sentence"].map(len) <= 1.5 * longest]
wordings = read_wordings(material("cebab") / "wordings.yaml")
reviews = generate_reviews(World(0.0), wordings, n_reviews, 6, seed)

# %% [markdown]
# Planted words go into our own sentences. At scale cpu, `texts_of` takes published ones in the place of the others.

# %%
base = gendered.loc[gendered["sentence"].map(len) <= longest, "sentence"].tolist()
theirs = stage, texts_of, n_reviews, read_geco
gendered, reviews = published.in_place_of(gendered, reviews, *theirs)

# %% [markdown] tags=["slide"]
# ## 1 · One text by hand
#
# Here is a review, and what a person left of it:
#
# > long: *The soup was cold and the waiter was kind.*
# >
# > short: *The soup was cold.*
#
# A model of sentiment says 0.2 to the long text and -1.5 to the short one, in log-odds for *good*. The words *and the waiter was kind* are the whole difference between the two. So they raised the answer by 0.2 - (-1.5) = 1.7.
#
# **Stop and guess.** An explanation of the long text gives *kind* 1.2, *waiter* 0.3, and the other three removed words nothing. What does it say that the removed words did? It says 1.5: a little too small, and with the right sign. We never had to ask what *kind* means.

# %% tags=["slide"]
long = edits.split_text("The soup was cold and the waiter was kind.")
removed = edits.removed_words(long, edits.split_text("The soup was cold."))
scores = [0.0, -0.4, 0.0, -1.1, 0.0, 0.0, 0.3, 0.0, 1.2, 0.0]
assert [long[i] for i in removed] == "and the waiter was kind".split()
assert np.isclose(edits.estimated_change(scores, removed), 1.5)
marks = ["removed" if i in removed else "" for i in range(len(long))]
example = {"words": long, "scores": scores, "marks": marks, "label": "an explanation"}
figure, plotted = plot_words(
    pd.DataFrame([example]), {"removed": "removed by a person"}, "towards good", "", 1
)
stage.figure("by_hand", figure)
plt.show()
stage.table("by_hand", plotted[["word", "score", "mark"]])

# %% [markdown]
# *Reading it.* The explainer saw one text. The truth needs two: it is the model's own answer to both. This pattern returns in every truth that is about the model: **alter the text as people would, ask the model again, and compare**.
#
# ## 2 · When is a text nested in another?
#
# An edit can exchange words, too. Then the explained text lacks a word that the other one has, and no sum over its words can tell the change. So we take *nested* pairs only:
#
# > In small letters, the words and punctuation marks of the short text follow each other in the long text, in the same order.
#
# Where several choices leave the same text, the one with the fewest runs of removed words is taken, and of these the earliest. Here a program writes the reviews and their edits, so the count below is a property of the program. In the published reviews, which people edited, it is another number.

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
stage.table("nested", pd.DataFrame(counted.items(), columns=["pairs", "n"]))

# %% [markdown]
# ## 3 · Words that are planted
#
# ![Sentences with planted words and their labels: the velvet vicar sings copper .: 1; the velvet vicar sings lemon .: 0; lemon the vicar sings copper .: 0. The label is 1 where velvet and copper are both there; lemon decides nothing. So each of the two words has the share 0.5.](../../docs/schematics/planted_words.svg)
#
# Nothing is known better than what we have hidden ourselves. Two words are put into a sentence at random places, and a rule makes the label of them. A third word, the *decoy*, is put in as often and decides nothing (after Bastings et al. 2022).
#
# | rule | the label is 1 where | what an explanation should say |
# |---|---|---|
# | single | *mango* is there, and 0 where *cello* is | everything on that word |
# | and | *velvet* and *copper* are both there | one half on each |
# | or | *canyon* or *walnut* is there | all on the one, or one half on each |
# | order | *tulip* stands before *radar* | one half on each |
#
# One half is the Shapley value, by hand: with AND, the first of two to arrive adds nothing and the second adds 1, and each is second in half of the orders.

# %%
rules = {
    "single": ("mango", "cello"),
    "and": ("velvet", "copper"),
    "or": ("canyon", "walnut"),
    "order": ("tulip", "radar"),
}
planted = plants.planted_texts(base, rules, "lemon", n_planted, seed)
tests = plants.planted_texts(base, rules, "lemon", 40, seed + 1)
one = planted.query("rule == 'and' and target == 1").iloc[0]
assert sorted(one["truth"])[-2:] == [0.5, 0.5] and sum(one["truth"]) == 1
print(" ".join(one["sentence"]))

# %% [markdown]
# ## 4 · Words that are exchanged for others of their kind
#
# What does *nurse* do to a masked pronoun? Exchange it for twenty other nouns of the same number, the same article (*a* or *an*) and about the same frequency, and look at the mean. Nothing is masked or left out, so the model is asked about ordinary sentences only.
#
# The sentences were labelled by hand in the row *implicit_bias*, with their *antecedent*: the noun that the pronoun stands for.
#
# $$d_i = g(x) - \tfrac1R \textstyle\sum_r g(x \text{ with } r \text{ at place } i)$$

# %%
show_source(nouns.word_effects)
folder = material("implicit_bias")
tagged = sorted(material("geco").glob("annotation_*.conllu"))
tags = items.content_tags([*tagged, folder / "annotation_1.conllu"])
kinds = nouns.word_kinds(items.count_words(tags))
alike = nouns.replacements("doctor", kinds, n_replacements, seed)
assert len(alike) >= 20 and {kinds[w][:2] for w in alike} == {kinds["doctor"][:2]}
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
print(kinds["doctor"], alike[:5])

# %% [markdown] tags=["slide"]
# ## 5 · All items
#
# ![The truths of the assay. mask: these words differ between the forms. planted: these words alone decide the label. cue: the verb agrees with this noun. swap: what a swap to another form does to the answer. edit: what becomes of the answer without these words. noun: what other nouns here do to the answer. deletion: how fast the answer falls when words go.](../../docs/schematics/assay_truths.svg)
#
# Two truths are left. *Mask* and *swap* share sentences about women and men, in which we know the altered words: the mask says where they are, and swapping them says what each did. *Cue* asks for the noun that a verb agrees with. A number is exchanged by an *s*: of the noun itself, and of the other noun, the *attractor*.
#
# The language model reads sentences of a grammar that has few words, so that a small model can learn them. Of the beginnings of sentences we take those whose words it knows.

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
# Now the items are drawn: at most one of a cluster, the two classes (or the four rules) by turns. Two words have no order to speak of, so *swap* needs at least three. Every other pair of reviews has a *second editor*, who was given the same goal. As many pairs more are drawn to fit a scale on, from other reviews.

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
        4 * n_items if truth == "noun" else n_items,
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
# Then they are altered. The planted texts are asked of a second model, the gendered ones under a second truth.

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
asked = items.with_second_questions(drawn)
stage.table("counts", items.count_items(asked, altered), digits=1)

# %% [markdown]
# *Reading it.* Six items a truth show how things are done. They decide nothing. Where no text is altered, the truth is in the text itself (*planted*), or in both its forms (*mask*, *swap*).
#
# One item of each truth, with its marks:

# %% tags=["slide"]
names = {1: "known", 0: "", -1: "against"}
shown = asked.drop_duplicates("truth").assign(
    scores=None, label=asked["truth"], words=asked["sentence"].map(list)
)
shown["marks"] = [[names[np.sign(mark)] for mark in row] for row in shown["mark"]]
figure, plotted = plot_words(
    shown, {"known": "what the truth speaks of", "against": "an attractor"}, digits=None
)
stage.figure("items_shown", figure)
plt.show()
_ = stage.table("items_shown", plotted[["label", "word", "mark"]])

# %% [markdown] tags=["slide"]
# ## 6 · What the models will read
#
# Each model of stage 2 learns one of these tasks. No item is among the texts that it is trained on.

# %%
judged = reviews[(reviews["split"] == "train") & (reviews["rating"] != 3)]
frames = [
    (found, natural.gendered_pronouns(found)[0])
    for found in gender_frames(folder / "frames.yaml", n_frames, seed)
]
masked = [natural.masked_words(found, at) for found, at in frames]
male = [int(PRONOUNS[found[at].lower()] == "M") for found, at in frames]
before = [
    (*x, i) for i, sentence in enumerate(corpus) for x in number_examples(sentence)
]
good = judged.assign(sentence=judged["text"].map(edits.split_text))
good["target"] = rating_labels(judged["rating"], 2)
columns = ["sentence", "target", "sentence_idx"]
learnt = {
    "gender": gendered[~gendered["sentence_idx"].isin(drawn["mask"]["sentence_idx"])],
    "planted": planted.assign(sentence_idx=range(len(planted))),
    "reviews": good.assign(sentence_idx=judged["group"].factorize()[0]),
    "pronoun": pd.DataFrame(zip(masked, male, range(len(male))), columns=columns),
    "number": pd.DataFrame(before, columns=columns),
}
train = pd.concat(
    part[columns].assign(model=name) for name, part in learnt.items()
).reset_index(drop=True)

# %% [markdown]
# How much text that is:

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
        title="Five tasks, and little text for each",
    )
stage.figure("tasks", figure)
plt.show()
stage.table("tasks", tasks.reset_index())

# %% [markdown]
# ## 7 · Controls
#
# Four facts must hold whatever was drawn. An altered text differs from its item. A decoy carries no truth. A planted word stands in no other text. And no model is trained on an item. Then all is saved.

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
new = {word for pair in rules.values() for word in pair} | {"lemon"}
assert not new & {word.lower() for text in base for word in text}
both = [set(zip(t["model"], t["sentence"].map(tuple))) for t in (asked, train)]
assert not (shared := both[0] & both[1]), f"trained on an item: {min(shared)}"
decoys = with_decoy["target"].value_counts(normalize=True)
print(f"the decoy stands beside label 1 in {decoys[1]:.2f} of its texts")
told = pd.DataFrame({"sentence": [[word for word, _ in text] for text in corpus]})
forms = gendered[gendered["sentence_idx"].isin(drawn["mask"]["sentence_idx"])]
tables = {"items": asked, "altered": altered, "train": train, "forms": forms}
tables |= {"planted": tests, "corpus": told}
for name, table in tables.items():
    save_parquet(table.reset_index(drop=True), stage.path(f"{name}.parquet"))
stage.close(globals())

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **Programs wrote the reviews**, their edits and the beginnings of sentences. People write with more variety, and remove words in other places.
# - **A planted word is foreign to its sentence.** A model may find it more easily than a word of the text, and an explainer, too.
# - **A replacement of the same kind can still be odd** in its sentence: *the baton fell asleep*. Twenty of them average the oddity away only in part.
# - **The kinds of words come from a few hundred sentences** that a program has tagged. A word with a wrong tag is exchanged for words of another kind.
# - **Mask and swap share sentences**, so that they agree in part because the texts are the same.
#
# ## Try it
#
# - Write a pair of texts that is nested in two ways. Which words does the rule take?
# - Plant a pair with XOR. What should an explanation say of each word, and can it?
# - Set `n_replacements = 40`. Which words are no longer asked about, and why?
#
# ## Hand-over
#
# [02_training](02_training.ipynb) trains the models and asks them about the altered texts: only then are the truths known.

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
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · By hand
#
# With the rule AND (*velvet* and *copper* are both there) the truth is one half on each. An explanation gives *velvet* .6, *copper* -.2 and two other words .1 each. What is its overlap with the truth: how much of its mass lies where the truth is, and no more than the truth has there?

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
# A fifth rule is XOR: the label is 1 where exactly one of *zebra* and *onion* is there. In a text with *zebra* alone, we compare with a text without both. Then we ask the same in a text that holds *onion* already. What does *zebra* do to the label?
#
# - `"a"` It raises it in the first text and lowers it in the second: one number a word cannot say both.
# - `"b"` It raises it in both texts.
# - `"c"` Nothing in both texts, so every explanation must give it 0.

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
