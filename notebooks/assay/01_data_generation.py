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
# # Assay, stage 1 of 5: of which texts do we know what an explanation should say?
#
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · the row: [README](README.md)
#
# The other four rows each hold explanations against one kind of truth. This row asks the same explainers about all of them. It begins with the texts.

# %% [markdown]
# ## You will see
#
# - six kinds of truth, each on one text of ours;
# - when one text is *nested* in another, and how often it happens;
# - words that are planted in a text, and a decoy.
#
# You need to know what a classifier is. The notebook takes about ten seconds.
#
# | out (in this stage's folder) | holds |
# |---|---|
# | `items.parquet` | the texts that will be explained: truth, model, words, class, and a mark for each word |
# | `altered.parquet` | the same texts with words removed or exchanged; no explainer ever sees these |
# | `forms.parquet` | both forms of the sentences whose words can be swapped |
# | `train.parquet`, `corpus.parquet` | what the models of stage 2 are trained on |
# | `planted.parquet` | planted texts on which stage 2 sees whether a model follows the rule |
# | `counts`, `nested`, `items_shown` (`.csv`), two figures | what is in them |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import matplotlib.pyplot as plt
import pandas as pd

from lib.core.files import read_yaml, save_parquet
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.plots import COLOURS, STYLE, plot_words
from lib.studies.assay import edits, items, nouns, plants
from lib.studies.cebab.reviews import rating_labels
from lib.studies.cebab.worlds import World, generate_reviews, read_wordings
from lib.studies.geco.labels import labelled_rows, read_labels
from lib.studies.implicit_bias.sentences import (
    gendered_pronouns,
    masked_words,
    split_words,
)
from lib.studies.implicit_bias.text import gender_frames
from lib.studies.lm_saliency.grammar import corpus_sentences, grammar_words
from lib.studies.lm_saliency.templates import syneval_rows
from lib.studies.lm_saliency.text import number_examples

# %% [markdown]
# ## Settings
#
# All texts are ours and lie in this repository, in the material of the other rows. Nothing depends on a folder of downloads.

# %% tags=["parameters"]
scale = "small"  # which settings: small or hub; names the output folder
seed = 0  # of all draws of this stage
n_threads = 1  # CPU threads
n_items = 6  # texts of each truth that are explained
longest = 16  # words of an explained text, at most
n_reviews = {
    "train": 30,
    "dev": 1,
    "test": 40,
}  # reviews that are written, each with six edits
n_planted = 150  # training texts of each planted rule
n_frames = 240  # training sentences whose pronoun is masked
n_corpus = 3000  # sentences that the language model reads
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
labels = read_labels(material("geco") / "labels.yaml")
gendered = labelled_rows(list(labels.values()), "all", ("F", "M"))
gendered = gendered[gendered["sentence"].map(len) <= 1.5 * longest]
wordings = read_wordings(material("cebab") / "wordings.yaml")
reviews = generate_reviews(World(0.0), wordings, n_reviews, 6, seed)
words = {
    name: read_yaml(material("lm_saliency") / f"{name}.yaml")
    for name in ("grammar", "syneval", "winobias")
}
lines = syneval_rows(words["syneval"]).query("pattern.str.startswith('prep_')")
print(
    f"{len(gendered)} gendered sentences, {len(reviews)} reviews and edits,",
    f"{len(lines)} beginnings of sentences",
)

# %% [markdown]
# Sentences whose one pronoun can be masked were labelled by hand in the row *implicit_bias*: with their *antecedent*, the noun that the pronoun stands for.

# %%
folder = material("implicit_bias")
labelled = pd.read_csv(folder / "sentences.csv").merge(
    pd.read_csv(folder / "labels.csv"), on="id"
)
masked = labelled.query("label == 'passes'").assign(
    words=lambda table: table["sent1"].map(split_words)
)
masked["sentence"] = [
    masked_words(found, gendered_pronouns(found)[0]) for found in masked["words"]
]
tagged = [
    *sorted(material("geco").glob("annotation_*.conllu")),
    folder / "annotation_1.conllu",
]
kinds = nouns.word_kinds(items.count_words(tagged))
print(f"{len(masked)} sentences with a masked pronoun, {len(kinds)} words with a kind")

# %% [markdown]
# ## 1 · One text by hand
#
# Here is a review, and what a person left of it:
#
# > long: *The soup was cold and the waiter was kind.*
# >
# > short: *The soup was cold.*
#
# A model of sentiment says 0.2 to the long text and -1.5 to the short one, in log-odds for *good*. The words *and the waiter was kind* are the whole
# difference between the two. So they raised the answer by 0.2 - (-1.5) = 1.7.
#
# **Stop and guess.** An explanation of the long text gives *kind* 1.2, *waiter* 0.3, and the other three removed words nothing. What does it say that the removed
# words did? It says 1.5. It is a little too small, and has the right sign. We never had to ask what *kind* means.

# %%
long = edits.split_text("The soup was cold and the waiter was kind.")
short = edits.split_text("The soup was cold.")
removed = edits.removed_words(long, short)
scores = [0.0, -0.4, 0.0, -1.1, 0.0, 0.0, 0.3, 0.0, 1.2, 0.0]
said = edits.estimated_change(scores, removed)
assert [long[i] for i in removed] == "and the waiter was kind".split()
assert round(said, 2) == 1.5 and round(0.2 - -1.5, 2) == 1.7

# %% [markdown]
# The same as a picture. The removed words are marked.

# %%
marks = ["removed" if i in removed else "" for i in range(len(long))]
example = pd.DataFrame(
    {"words": [long], "scores": [scores], "marks": [marks], "label": "an explanation"}
)
figure, plotted = plot_words(
    example, {"removed": "removed by a person"}, "towards good", digits=1
)
stage.figure("by_hand", figure)
plt.show()
stage.table("by_hand", plotted[["word", "score", "mark"]])

# %% [markdown]
# *Reading it.* The explainer saw one text. The truth needs two: it is the model's own answer to both. That pattern returns in every truth of this row that is about
# the model: **alter the text as people would, ask the model again, and compare**.
#
# ## 2 · When is a text nested in another?
#
# An edit can exchange words, too. Then the explained text lacks a word that the other one has, and no sum over its words can tell the change. So we
# take *nested* pairs only:
#
# > In small letters, the words and punctuation marks of the short text follow each other in the long text, in the same order.
#
# Where several choices leave the same text, the one with the fewest runs of removed words is taken, and of these the earliest.

# %%
show_source(edits.nested_pairs)
assert edits.removed_words("bad food".split(), "good food".split()) is None
assert edits.removed_words("a b a b".split(), "a b".split()) == [0, 1]

# %% [markdown]
# How many pairs are nested? Here a program writes the reviews and their edits, so this is a property of the program. In the published reviews, which people edited, it is another number.

# %%
pairs = edits.nested_pairs(reviews[reviews["split"] == "test"])
n_edits = int((~reviews["is_original"] & (reviews["split"] == "test")).sum())
nested = pd.DataFrame(
    {
        "pairs": ["original and edit", "nested", "of these: the edit is longer"],
        "n": [n_edits, len(pairs), int(pairs["was_inserted"].sum())],
    }
)
stage.table("nested", nested)

# %% [markdown]
# ## 3 · Words that are planted
#
# Nothing is known better than what one has hidden oneself. Two words are put into a sentence at random places, and a rule makes the label of them. A third word, the *decoy*, is put in as often and
# decides nothing (after Bastings et al. 2022).
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
is_short = gendered["sentence"].map(len) <= longest
base = gendered.loc[is_short, "sentence"].tolist()
planted = {
    part: pd.concat(
        plants.plant_words(
            (base * 9)[:n], rule, words, "lemon", seed + (part == "test")
        ).assign(rule=rule)
        for rule, words in rules.items()
    )
    for part, n in (("train", n_planted), ("test", 40))
}
one = (
    plants.plant_words([["we", "sat"]] * 9, "and", rules["and"], "lemon")
    .query("target == 1")
    .iloc[0]
)
assert sorted(one["truth"])[-2:] == [0.5, 0.5] and sum(one["truth"]) == 1
print(" ".join(one["sentence"]), [round(x, 1) for x in one["truth"]])

# %% [markdown]
# ## 4 · Words that are exchanged for others of their kind
#
# What does *nurse* do to a masked pronoun? Exchange it for twenty other nouns of the same number, the same article (*a* or *an*) and about the same frequency, and look at the mean. Nothing is
# masked or left out, so the model is asked about ordinary sentences only.

# %%
show_source(nouns.word_effects)
alike = nouns.replacements("doctor", kinds, n_replacements, seed)
assert len(alike) >= 20 and all(
    kinds[word][:2] == kinds["doctor"][:2] for word in alike
)
print(kinds["doctor"], alike[:5])

# %% [markdown]
# ## 5 · All items
#
# Two truths are left. *Mask* and *swap* share sentences about women and men, in which we know the altered words: the mask says where they are, and swapping them says what each did. *Cue*
# asks for the noun that a verb agrees with. A number is exchanged by an *s*: of the noun itself, and of the other noun, the *attractor*.

# %%
show_source(items.exchange_number)
is_swapped = (
    gendered["ground_truth"].map(sum) >= 3
)  # two words have no order to speak of
by_row = gendered[is_short & is_swapped].assign(
    mark=gendered["ground_truth"],
    cluster="gendered-" + gendered["sentence_idx"].astype(str),
)
by_plant = planted["test"][planted["test"]["truth"].map(any)]
by_plant = by_plant.assign(mark=by_plant["truth"], cluster=by_plant["row_id"])
a_few = by_plant.groupby("rule").head(max(1, n_items // len(rules) + 1))
by_pair = pairs[pairs["long"].map(len) <= 2 * longest].assign(
    sentence=pairs["long"], target=1, cluster=pairs["group"]
)
by_pair["mark"] = [
    [i in row.edited for i in range(len(row.long))] for row in by_pair.itertuples()
]

# %% [markdown]
# In the beginnings of sentences a cue is marked 1 and an attractor -1.

# %%
by_line = lines.assign(sentence=lines["prefix"], target=lines["tag"])
by_line["mark"] = [
    [((i, i) in row.cues) - ((i, i) in row.attractors) for i in range(len(row.prefix))]
    for row in by_line.itertuples()
]
by_noun = masked[masked["sentence"].map(len) <= longest]
by_noun = by_noun.assign(target=1, cluster=by_noun["antecedent"])
by_noun["mark"] = [
    [word.lower() == row.antecedent for word in row.sentence]
    for row in by_noun.itertuples()
]
drawn = {
    "mask": items.draw_items(by_row, "mask", "gender", n_items, seed),
    "planted": items.draw_items(a_few, "planted", "planted", n_items, seed),
    "cue": items.draw_items(by_line, "cue", "number", n_items, seed),
    "edit": items.draw_items(by_pair, "edit", "reviews", n_items, seed),
    "noun": items.draw_items(by_noun, "noun", "pronoun", 4 * n_items, seed),
}
# the same texts under a second truth, and asked of a second model
twice = drawn["planted"].assign(model="planted-ola")
twice["item_id"] += "-ola"
drawn["swap"] = drawn["mask"].assign(truth="swap")
drawn["swap"]["item_id"] = drawn["swap"]["item_id"].str.replace("mask", "swap")

# %% [markdown]
# And the altered texts:

# %%
exchanged = items.with_replacements(drawn["noun"], kinds, n_replacements, seed)
n_words = drawn["noun"]["item_id"].map(exchanged.groupby("item_id")["at"].nunique())
drawn["noun"] = drawn["noun"][n_words >= 3].head(n_items)  # fewer have no order
altered = pd.concat(
    [
        items.with_short_texts(drawn["edit"]),
        items.with_other_numbers(drawn["cue"]),
        exchanged[exchanged["item_id"].isin(drawn["noun"]["item_id"])],
    ],
    ignore_index=True,
)
asked = pd.concat([*drawn.values(), twice], ignore_index=True)
asked = asked[[*items.ITEM, "rule", "sentence_idx"]]
of_truth = altered.merge(asked[["item_id", "truth"]], on="item_id")
counts = asked.groupby("truth", sort=False).agg(
    items=("item_id", "size"),
    clusters=("cluster", "nunique"),
    words=("sentence", lambda part: part.map(len).mean()),
)
counts["altered texts"] = of_truth["truth"].value_counts().reindex(counts.index)
stage.table("counts", counts.fillna(0).reset_index(), digits=1)

# %% [markdown]
# *Reading it.* Six items a truth show how things are done. They decide nothing. Where no text is altered, the truth is in the text itself (*planted*), or in both its forms (*mask*, *swap*).
#
# One item of each truth, with its marks:

# %%
shown = asked.drop_duplicates("truth").copy()
shown["marks"] = [
    ["known" if mark > 0 else "against" if mark < 0 else "" for mark in row]
    for row in shown["mark"]
]
shown["scores"], shown["label"] = None, shown["truth"]
shown["words"] = shown["sentence"].map(list)
figure, plotted = plot_words(
    shown[["words", "scores", "marks", "label"]],
    {"known": "what the truth speaks of", "against": "an attractor"},
    digits=None,
)
stage.figure("items_shown", figure)
plt.show()
_ = stage.table("items_shown", plotted[["label", "word", "mark"]])
print(f"{len(plotted)} words, {(plotted['mark'] != '').sum()} of them marked")

# %% [markdown]
# ## 6 · Controls
#
# Three facts must hold whatever was drawn. An altered text differs from its item. A decoy carries no truth. And a word that is planted stands in no other text.

# %%
of_item = asked.set_index("item_id")["sentence"].map(tuple)
assert all(
    tuple(row.sentence) != of_item[row.item_id] for row in altered.itertuples()
), "an alteration changed nothing: look at the item that is named in altered.parquet"
with_decoy = planted["test"].query("decoy_at >= 0")
assert all(row.truth[row.decoy_at] == 0 for row in with_decoy.itertuples())
new = {word for pair in rules.values() for word in pair} | {"lemon"}
assert not new & {word.lower() for words in base for word in words}
decoys = with_decoy["target"].value_counts(normalize=True)
print(f"the decoy stands beside label 1 in {decoys[1]:.2f} of its texts")

# %% [markdown]
# ## 7 · What the models will read
#
# Each model of stage 2 learns one of these tasks. No item is among the texts that it is trained on.
#
# The language model reads sentences of a grammar that knows the words of the items. A probe of its states learns from them which number the next verb has.

# %%
lists = grammar_words(words["grammar"], words["syneval"], words["winobias"], seed)
corpus = corpus_sentences(lists, n_corpus, seed)
examples = [
    (prefix, number, i)
    for i, sentence in enumerate(corpus)
    for prefix, number in number_examples(sentence)
]
print(" ".join(word for word, _ in corpus[0]))

# %% [markdown]
# The other tasks:

# %%
is_asked = gendered["sentence_idx"].isin(drawn["mask"]["sentence_idx"])
judged = reviews[(reviews["split"] == "train") & (reviews["rating"] != 3)]
frames = [
    (found, gendered_pronouns(found)[0])
    for found in gender_frames(folder / "frames.yaml", n_frames, seed)
]
learnt = {
    "gender": gendered[~is_asked],
    "planted": planted["train"].assign(sentence_idx=range(len(planted["train"]))),
    "reviews": pd.DataFrame(
        {
            "sentence": judged["text"].map(edits.split_text),
            "target": rating_labels(judged["rating"], 2),
            "sentence_idx": judged["group"].factorize()[0],
        }
    ),
    "pronoun": pd.DataFrame(
        {
            "sentence": [masked_words(found, at) for found, at in frames],
            "target": [int(PRONOUNS[found[at].lower()] == "M") for found, at in frames],
            "sentence_idx": range(len(frames)),
        }
    ),
    "number": pd.DataFrame(examples, columns=["sentence", "target", "sentence_idx"]),
}
columns = ["sentence", "target", "sentence_idx", "model"]
train = pd.concat(part.assign(model=name)[columns] for name, part in learnt.items())

# %% [markdown]
# How much text that is:

# %%
tasks = train.groupby("model", sort=False).agg(
    texts=("sentence", "size"), share_of_1=("target", "mean")
)
texts = [
    set(zip(table["model"], table["sentence"].map(tuple))) for table in (asked, train)
]
assert not (shared := texts[0] & texts[1]), f"trained on an item: {min(shared)}"
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
    _ = ax.barh(tasks.index, tasks["texts"], color=COLOURS[0])
    _ = ax.set(xlabel="training texts", title="Five tasks, and little text for each")
stage.figure("tasks", figure)
plt.show()
stage.table("tasks", tasks.reset_index())

# %% [markdown]
# ## What could be wrong
#
# - **Programs wrote the reviews**, their edits and the beginnings of sentences. People write with more variety, and remove words in other places.
# - **A planted word is foreign to its sentence.** A model may find it more easily than a word of the text, and an explainer, too.
# - **A replacement of the same kind can still be odd** in its sentence. Twenty of them average the oddity away only in part.
# - **The kinds of words come from a few hundred sentences** that a program has tagged. A word with a wrong tag is exchanged for words of another kind.
# - **Mask and swap share sentences**, so that they agree in part because the texts are the same.
#
# ## Try it
#
# - Write a pair of texts that is nested in two ways. Which words does the rule take?
# - Plant a pair with XOR. What should an explanation say of each word, and can it?
# - Set `n_replacements = 40`. Which words are no longer asked about, and why?

# %%
forms = gendered[gendered["sentence_idx"].isin(drawn["mask"]["sentence_idx"])]
tables = {"items": asked, "altered": altered, "train": train, "forms": forms}
tables["planted"] = planted["test"]
tables["corpus"] = pd.DataFrame(
    {"sentence": [[word for word, _ in sentence] for sentence in corpus]}
)
for name, table in tables.items():
    save_parquet(table.reset_index(drop=True), stage.path(f"{name}.parquet"))
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [02_training](02_training.ipynb) trains the models and asks them about the altered texts: only then are the truths known.
