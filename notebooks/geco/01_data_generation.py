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
# # GECO, stage 1 of 5: how do you build text in which you know the words that matter?
#
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · the study: [README](README.md)
#
# ## What we found
#
# - **Few words carry all the evidence.** Where all gendered words change, they are .23<!-- geco/cpu/01_data_generation/statistics[dataset=D_A, split=test].share_of_words --> of all words. Where only the words about the subject change, they are
#   .14<!-- geco/cpu/01_data_generation/statistics[dataset=D_S, split=test].share_of_words --> ([table](../../outputs/reference/geco/cpu/01_data_generation/statistics.csv)).
# - **A second labeller with the same guide writes nearly the same labels.** Of 52<!-- geco/cpu/01_data_generation/agreement[dataset=D_A].sentences --> sentences of our own text,
#   50<!-- geco/cpu/01_data_generation/agreement[dataset=D_A].identical --> came out the same ([table](../../outputs/reference/geco/cpu/01_data_generation/agreement.csv)).
# - **No form is favoured by much.** Pair each pronoun with its sentence's other words. If all gendered words change, .315<!-- geco/cpu/01_data_generation/bias[dataset=D_A, term_list=A1, class=F].bias --> of these pairs are in female forms and
#   .355<!-- geco/cpu/01_data_generation/bias[dataset=D_A, term_list=A1, class=M].bias --> in male forms. Equal shares would be a third ([figure](../../outputs/reference/geco/cpu/01_data_generation/data.png)).
#
# The first and the third are about the published GECO (scale `cpu`). Below we work on a smaller text of ours.
#
# GECOBench (arXiv 2406.11547) writes a sentence about one person in a female, a male and a non-binary form, and lets a
# classifier tell the forms apart. Only the words that changed can help it.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - which sentences can be rewritten;
# - how one label gives three forms and a mask;
# - how we check that the evidence is nowhere else.
#
# **You can then** write the mask of a sentence, and say what a filter keeps out. **You need** [Start here](../00_start_here.ipynb).
# **Time:** 20 minutes to read, under a minute to run,
# [15 minutes for the exercises](../../docs/course/exercises/geco.md#01-data-generation).
#
# | in | out |
# |---|---|
# | 48 plot summaries of ours with labels, or the published GECO | four data sets: each sentence in its forms, with its mask |
# | | tables about them, one figure, a description (*card*) |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import random

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from sklearn.feature_extraction.text import TfidfVectorizer
from tokenizers import Tokenizer

from lib.core.files import read_yaml
from lib.core.notebooks import show_source, show_table
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language import dependencies, lexicon, parse, word_lists
from lib.language.labels import Label, differing_positions, gender_variants
from lib.models.weights import load_encoder_path
from lib.plots import COLOURS, FORM_NAMES, STYLE
from lib.studies.geco import corpus, corrections, faults, filters, labels, metadata

# %% [markdown]
# ## Settings
#
# `data_source` chooses the data of the next stages: our own text, the published data, or a folder that `make dataset` made from yours.
# Sections 1 to 4 are always about our own text.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the shuffled masks of section 6
n_threads = 1  # CPU threads
data_source = "bundled"  # bundled (our text), geco (published), or a folder of yours
on_fault = "repair"  # format errors in published rows: repair, keep, or drop
gold = "published"  # neutral forms: as published, or corrected (their grammar)
spacy_pipeline = "stored"  # stored, environment, or a spaCy pipeline's name or path
test_share = 0.2  # share of the base sentences that is kept for testing (bundled)
split_seed = 1234  # for the choice of the test sentences, as in the original (bundled)

# %% [markdown]
# Punctuation marks count as words.

# %%
stage = open_stage("geco", scale, "01_data_generation")
corpus.check_choices(data_source, on_fault, gold)
set_up(seed, n_threads)
folder = material("geco")
summaries = parse.read_summaries(folder / "plots.md")
PLAIN = {"D_A": "all gendered words", "D_S": "subject only"}
PLAIN |= {f"{name}_binary": f"{plain}, two classes" for name, plain in PLAIN.items()}
print(f"data source: {data_source}")
print(f"{summaries['title'].nunique()} summaries, {len(summaries)} sentences, such as:")
for sentence in summaries["sentence"].head(3):
    print("-", sentence)

# %% [markdown] tags=["slide"]
# ## 1 · One sentence by hand
#
# ![One sentence in 3 forms, word below word. she: She loves to spend time with her favorite cat .; he: He loves to spend time with his favorite cat .; they: They love to spend time with their favorite cat .. A row of ones and zeros below, the mask, has a 1 at the words that differ: She, loves, her.](../../docs/schematics/three_forms.svg)
#
# Let $\mathbf{x}^{F}, \mathbf{x}^{M}, \mathbf{x}^{NB}$ be the female, the male and the non-binary form of a sentence. What
# they share is the *base sentence*. Its *mask* $g$, the ground truth, has a 1 wherever two forms differ:
#
# $$g_i = 1 \text{ if } x_i^{c} \neq x_i^{c'} \text{ for some } c, c' \in \{F, M, NB\}, \text{ else } 0.$$
#
# The paper builds two data sets. In $\mathcal{D}_S$ (*subject only*, in code `D_S`) only words about the subject of the main clause
# change: the subject, pronouns that refer to it, verbs that agree with it. In $\mathcal{D}_A$ (*all gendered words*, `D_A`)
# the words about everybody change.
#
# > Bingley leaves for London without a word, and Jane suffers quietly.
#
# **Stop and guess** the two masks. The subject is *Bingley*, and a name that stands alone becomes a pronoun.
#
# - *Subject only*: *Bingley leaves* becomes *she leaves*, *he leaves*, *they leave*. So we expect a 1
#   at *Bingley* and at *leaves*.
# - *All gendered words*: *Jane suffers* changes as well, so we expect two more.
#
# A *label* gives the three words for each position that changes. The [glossary](../../docs/glossary.md) has all terms.

# %%
leaves = {0: ("She", "He", "They"), 1: ("leaves", "leaves", "leave")}
suffers = {9: ("she", "he", "they"), 10: ("suffers", "suffers", "suffer")}
sentence = "Bingley leaves for London without a word , and Jane suffers quietly ."
example = Label(
    "by hand",
    tuple(sentence.split()),
    subject=0,
    names={0: "name", 9: "name"},
    subj=leaves,
    all=leaves | suffers,
)
forms = gender_variants(example, "all")
subject_forms = gender_variants(example, "subj")
assert differing_positions(list(subject_forms.values())) == [1, 1] + [0] * 11
assert differing_positions(list(forms.values())) == [1, 1] + [0] * 7 + [1, 1, 0, 0]
assert differing_positions([forms["F"], forms["M"]]) == [1] + [0] * 8 + [1, 0, 0, 0]
mask = differing_positions(list(forms.values()))
printed = forms | {"mask": [str(bit) for bit in mask]}
widths = [max(map(len, column)) for column in zip(*printed.values())]
for name, words in printed.items():
    print(f"{name:<5}", *(f"{word:<{n}}" for word, n in zip(words, widths)))

# %% [markdown]
# As expected. *Leaves* is the same in the female and the male form. With two classes it is no evidence, and
# not in the mask.
#
# Two functions do this. A label can also delete a word. Then it is deleted in all forms, so lengths stay equal.

# %%
show_source(gender_variants)
show_source(differing_positions)

# %% [markdown] tags=["slide"]
# ## 2 · Which sentences can be rewritten?
#
# We need sentences about one person. A *dependency parse* gives their main verb and its subject. Every word depends on another word
# by a named relation, but the *root* depends on none.

# %%
annotation = sorted(folder.glob("annotation_*.conllu"))
docs, pipeline_name = parse.parse_by(spacy_pipeline, summaries["sentence"], annotation)
print(f"{len(docs)} parsed sentences; pipeline: {pipeline_name}")

# %% [markdown]
# In the next table the root *shipped* has itself as its head (*hangs from*). This word says nothing about person or
# number, but its auxiliary *is* does.

# %%
shown = docs[list(summaries["sentence_id"]).index("the_secret_garden-04")]
parsed = pd.DataFrame(
    {
        "word": [word.text for word in shown[:6]],
        "relation": [word.dep_ for word in shown[:6]],
        "head": [word.head.text for word in shown[:6]],
        "number": ["".join(word.morph.get("Number")) or "-" for word in shown[:6]],
    }
)
meaning = {"nsubj:pass": "passive subject", "aux:pass": "passive auxiliary"}
meaning |= {"ROOT": "root", "case": "preposition", "obl": "adverbial"}
meaning |= {"punct": "punctuation", "Sing": "singular"}
human = {"word": "word", "relation": "relation", "head": "hangs from"}
show_table(parsed.replace(meaning), human | {"number": "number"})

# %% [markdown]
# The paper's filters (appendix A.1.2) ask two questions. Is the main verb in the third person singular, like *walks* or *is*? Is the
# subject *human*: a name, *he*, *she*, or a noun for a person, and not *neuter* like *it*? Two more ask for under 30 tokens, as in the released code,
# and a full stop at the end. Duplicates are dropped.
#
# The paper checks only the root; we also check its auxiliaries. (UD and CLEAR, in the code below, are two sets of
# relations.)

# %%
show_source(filters.is_third_singular)
show_source(dependencies.subject_of)

# %% [markdown]
# The filters:

# %% tags=["slide"]
human_nouns = word_lists.read_word_list(folder / "human_nouns.txt")
asked = {
    "third person singular": filters.is_third_singular,
    "subject": lambda doc: dependencies.subject_of(doc) is not None,
    "fewer than 30 tokens": lambda doc: len(doc) < 30,
    "full stop": lambda doc: doc[-1].text == ".",
    "not neuter": lambda doc: not filters.is_neuter(dependencies.subject_of(doc)),
    "human": lambda doc: filters.is_human(dependencies.subject_of(doc), human_nouns),
}
candidates, lost, counts = filters.apply_filters(
    dict(zip(summaries["sentence_id"], docs, strict=True)), asked
)
show_table(
    counts.replace({"sentences": "(all sentences)"}),
    {"step": "filter", "sentences": "sentences left"},
)

# %% [markdown]
# *Third person singular* and *fewer than 30 tokens* remove most. The first sentence that each filter removed:

# %%
texts = summaries.set_index("sentence_id")["sentence"]
removed = {name: [key for key in lost if lost[key] == name] for name in asked}
removed = pd.DataFrame(
    [
        {"filter": name, "sentence": texts[keys[0]] if keys else "(none)"}
        for name, keys in removed.items()
    ]
)
show_table(removed, {"filter": "filter", "sentence": "first sentence removed"})

# %% [markdown] tags=["slide"]
# *Bertha has died* does have a subject, but the parser takes a later verb for the root. Such errors lose a sentence. A wrong sentence
# rarely gets in: a person reads what is left.
#
# ## 3 · Names first, then pronouns
#
# A name gives the gender away, so it has to go. But the order matters:
#
# > Thornton thinks Margaret haughty and can not keep his eyes off her.
#
# *His* means Thornton and *her* means Margaret. Once the names are pronouns, nobody can tell. So a label first says which words
# are names, then what becomes of each word:

# %%
written = labels.read_labels(folder / "labels.yaml")
entry = written["north_and_south-06"]
for scope, name in (("subj", "D_S"), ("all", "D_A")):
    print(PLAIN[name])
    for i, change in entry.replacements(scope).items():
        print(f"   {entry.words[i]:<10}", *change)

# %% [markdown]
# With *subject only*, *her* stays female in all forms, and could mislead a model. Three rules hold for all labels. A title changes
# (*Mr.*, *Mrs.*, *Mx.*) and the name after it stays. A surname after a first name is deleted. With *they* every verb agrees.
#
# Some candidates were rejected after reading: their subject is a city, say.

# %%
rejected = read_yaml(folder / "rejected.yaml")
base = [label for key, label in written.items() if key in candidates]
unlabelled = [key for key in candidates if key not in written and key not in rejected]
corrected = sum(
    dependencies.subject_of(candidates[label.name]).i != label.subject for label in base
)
counts.loc[len(counts)] = [
    "not rejected by hand",
    len(candidates) - sum(key in rejected for key in candidates),
]
counts.loc[len(counts)] = ["labelled: base sentences", len(base)]
used = pd.DataFrame({"sentence_id": [label.name for label in base]})
_ = stage.table("base_sentences", used.rename_axis("sentence_idx").reset_index())
print(
    f"candidates without a label: {len(unlabelled)};",
    f"subjects that the parser got wrong: {corrected}",
)
_ = stage.table("counts", counts)
show_table(counts.tail(3), {"step": "step", "sentences": "sentences left"})

# %% [markdown]
# For all labels we check that the mask has its ones exactly where the label changes a word. No *he* or *she* may be left in the
# non-binary form of *all gendered words*.

# %%
for label in base:
    for scope in ("subj", "all"):
        changes = label.replacements(scope)
        walked = [
            int(i in changes)
            for i in range(len(label.words))
            if changes.get(i, "kept") is not None
        ]
        assert (
            differing_positions(list(gender_variants(label, scope).values())) == walked
        )
    neutral = {word.lower() for word in gender_variants(label, "all")["NB"]}
    assert not lexicon.PRONOUNS.keys() & neutral
print(len(base), "labels checked")

# %% [markdown] tags=["slide"]
# ## 4 · Would somebody else have written the same labels?
#
# Some sentences were labelled again, blind, with the same guide. *The same* means
# every word of all three forms. *Cohen's kappa* is the agreement on which words change: 0 is chance, 1 is perfect.

# %% tags=["slide"]
second = labels.read_labels(folder / "labels_second.yaml")
agreement = pd.DataFrame(
    [
        {"dataset": name} | labels.label_agreement(written, second, scope)
        for name, scope in (("D_S", "subj"), ("D_A", "all"))
    ]
)
agreement = stage.table("agreement", agreement)
show_table(
    agreement.replace(PLAIN),
    {
        "dataset": "words that change",
        "sentences": "labelled twice",
        "identical": "the same",
        "kappa": "kappa",
    },
)

# %% [markdown]
# Two sentences differ. In one, only one labeller changed *youth* to *girl*. In the other the neutral form of a *seamstress* is a
# *stitcher* or a *sewer*. This changes no mask, so kappa is 1 for *subject only*.
#
# [An appendix](appendix_annotator.ipynb) asks whether a program can write the labels.
#
# ## 5 · Four data sets, split by base sentence
#
# The paper's two sets have three classes. A *binary* copy has two classes, as in the paper's first version. All forms
# of a base sentence are on the same side of the split, so no test sentence is seen in training.


# %%
def split_by_base(rows, test_share, split_seed):
    """The train and the test rows; base sentences stay whole."""
    indices = sorted(set(rows["sentence_idx"]))
    chosen = random.Random(split_seed).sample(indices, round(test_share * len(indices)))
    is_test = rows["sentence_idx"].isin(chosen)
    return {"train": rows[~is_test], "test": rows[is_test]}


# %% [markdown]
# The next cell takes our labels, or published files with their own split. A *row* is one form of a base sentence.

# %%
if data_source == "bundled":
    data = {
        name: split_by_base(
            labels.labelled_rows(base, *content), test_share, split_seed
        )
        for name, content in labels.CONTENTS.items()
    }
    corrected_words = pd.DataFrame(columns=corrections.CORRECTIONS)
else:
    source = corpus.source_folder(data_source, stage)
    read = {
        name: {
            split: corrections.read_gold(name, split, gold, on_fault, source)
            for split in corpus.SPLITS
        }
        for name in corpus.DATASETS
    }
    data = {
        name: {split: rows for split, (rows, _) in splits.items()}
        for name, splits in read.items()
    }
    corrected_words = pd.concat(
        {
            (name, split): done
            for name, splits in read.items()
            for split, (_, done) in splits.items()
        },
        names=["dataset", "split"],
    ).reset_index(["dataset", "split"])
sizes = pd.DataFrame(
    {name: {split: len(rows) for split, rows in data[name].items()} for name in data}
).T.rename_axis("dataset")
show_table(
    sizes.reset_index().replace(PLAIN),
    {"dataset": "words that change", "train": "train rows", "test": "test rows"},
)

# %% [markdown]
# Published files can have errors. *Format* errors, such as a mask longer than its sentence, are treated as `on_fault` says. Those of
# *wording*, such as *them* for *their*, stay, unless `gold = "corrected"`. In our own text the search finds:

# %%
print(f"{len(corrected_words)} words corrected (gold = {gold!r})")
if len(corrected_words):
    counted = (
        corrected_words.groupby(["dataset", "kind"])["position"]
        .size()
        .rename("n")
        .reset_index()
    )
    stage.table("corrections", counted)
    show_table(counted, {"dataset": "data set", "kind": "correction", "n": "words"})
    examples = corrected_words.sample(min(5, len(corrected_words)), random_state=seed)
    show_table(examples, {"published": "published", "corrected": "corrected"})
found = faults.fault_table(data)
_ = stage.table("faults", found)
listed = found.groupby(["fault", "dataset"])["row"].size().unstack(fill_value=0)
show_table(
    listed.reset_index(),
    {"fault": "found in the text"} | {name: PLAIN[name] for name in listed},
)

# %% [markdown]
# Not every line is an error. A word that is the same in female and male can be a verb. One that is the same in male and
# neutral can be a noun (*hostess*, *host*, *host*). A row without a pronoun of its class can show its class by a noun.
# A pronoun of another class can be somebody else's, which makes *subject only* hard.
#
# ## 6 · Is the evidence really inside the mask?
#
# If the mask is right, the forms of a base sentence are equal without the masked words. We count those that differ. As a control we
# shuffle every mask.


# %%
def differ_outside(rows, mask_of):
    """How many base sentences have forms that differ outside the mask."""
    unmasked = [
        tuple(
            word
            for word, masked in zip(row.sentence, mask_of(row), strict=False)
            if not masked
        )
        for row in rows.itertuples()
    ]
    return int(
        (pd.Series(unmasked).groupby(list(rows["sentence_idx"])).nunique() > 1).sum()
    )


def shuffled_mask(row):
    """As many ones as the row's mask has, at random positions of the base sentence."""
    return random.Random(f"{seed}-{row.sentence_idx}").sample(
        row.ground_truth, len(row.ground_truth)
    )


whole = {
    name: pd.concat(splits.values()).sort_values(["sentence_idx", "target"])
    for name, splits in data.items()
}
control = pd.DataFrame(
    [
        (
            name,
            rows["sentence_idx"].nunique(),
            differ_outside(rows, lambda row: row.ground_truth),
            differ_outside(rows, shuffled_mask),
        )
        for name, rows in whole.items()
    ],
    columns=["dataset", "base sentences", "true mask", "shuffled mask"],
)
show_table(
    control.replace(PLAIN),
    {
        "dataset": "words that change",
        "base sentences": "base sentences",
        "true mask": "differ outside the true mask",
        "shuffled mask": "differ outside a shuffled mask",
    },
)

# %% [markdown]
# No forms differ outside the true masks, and nearly all do outside shuffled ones. The next cell asserts this.

# %%
right, wrong = (
    control[f"{kind} mask"] / control["base sentences"] for kind in ("true", "shuffled")
)
assert (right < 0.01).all(), (
    f"forms differ outside the mask in {right.max():.1%} of a set's base sentences; "
    "set on_fault to repair, or correct the data set"
)
assert (wrong > 0.5).all(), (
    f"shuffled masks are noticed in {wrong.min():.1%} of a set's base sentences only; "
    "most words are masked, so correct the data set"
)

# %% [markdown]
# ## 7 · Does the data set favour a form?
#
# The paper counts pairs of a gender term $a$ from a list $A$ and any word $w$ outside it (the set $V$). The indicator $\mathbf{1}_{\mathbf{x}}$ is 1 if both
# are in the sentence, and $\mathcal{D}^{F}$ are the female forms:
#
# $$C(\mathcal{D})=\sum_{\mathbf{x}\in\mathcal{D}}\sum_{w\in V}\sum_{a\in A}\mathbf{1}_{\mathbf{x}}(a,w) \tag{1}$$
#
# $$\operatorname{bias}_{C}(\mathcal{D}^{F})=\frac{C(\mathcal{D}^{F})}{C(\mathcal{D}^{F})+C(\mathcal{D}^{M})+C(\mathcal{D}^{NB})} \tag{2}$$
#
# A pair counts once per sentence; commas and full stops do not count. The paper gives only the beginning of its list $A$, so we
# have two. **A1** holds all forms of *she*, *he* and *they*. **A2** adds every word, such as *aunt*, that differs between a
# female and a male form.
#
# By hand: in the female form of our example (*all gendered words*), *she* counts once, with nine other words. $C$ is 9.


# %%
def co_occurrences(sentences, terms):
    """C(D), equation 1: pairs of a gender term and another word of a sentence."""
    total = 0
    for words in sentences:
        distinct = {word.strip().lower() for word in words} - {",", "."}
        total += len(distinct & terms) * len(distinct - terms)
    return total


A1 = frozenset().union(*lexicon.PRONOUN_FORMS.values())
assert (
    co_occurrences([forms["F"]], A1) == 9
    and co_occurrences([subject_forms["F"]], A1) == 10
)

# %% [markdown]
# Now equation 2 for each data set and both lists.

# %%
rows = []
for name, table in whole.items():
    for term_list, terms in {"A1": A1, "A2": A1 | corpus.altered_terms(table)}.items():
        counted = table.groupby("target")["sentence"].apply(
            lambda sentences: co_occurrences(sentences, terms)
        )
        rows += [
            (name, term_list, len(terms), corpus.CLASSES[k], n, n / counted.sum())
            for k, n in counted.items()
        ]
bias = pd.DataFrame(
    rows, columns=["dataset", "term_list", "terms", "class", "C", "bias"]
)
_ = stage.table("bias", bias)

# %% [markdown]
# The share of masked words is a *floor*: the mass accuracy if all words get the same number, without any model. Models
# read *word pieces*, so we also count pieces.

# %%
tokenizer = Tokenizer.from_file(
    f"{load_encoder_path('all-MiniLM-L6-v2')}/tokenizer.json"
)
tokenizer.no_padding()  # the file asks for sentences of one length
words = sorted(
    {
        word
        for rows in whole.values()
        for sentence in rows["sentence"]
        for word in sentence
    }
)
pieces = {
    word: len(tokenizer.encode(word, add_special_tokens=False).tokens) for word in words
}
statistics = pd.DataFrame(
    [
        {"dataset": name, "split": split} | corpus.mask_statistics(rows, pieces.get)
        for name, splits in data.items()
        for split, rows in splits.items()
    ]
)
statistics = stage.table("statistics", statistics)

# %% [markdown] tags=["slide"]
# The left panel counts masked words. The right panel shows equation 2 with list A1. Its title says how far from one third
# (the dashed line) a form is at most, in percentage points, rounded up.

# %% tags=["slide"]
bases = {
    name: whole[name].drop_duplicates("sentence_idx")["ground_truth"].map(sum)
    for name in ("D_A", "D_S")
}
masked = {
    name: n.clip(upper=9).value_counts().sort_index() for name, n in bases.items()
}
left = (
    pd.concat(masked, names=["dataset", "x"])
    .rename("value")
    .reset_index()
    .assign(panel="masked words")
)
right = bias[(bias["term_list"] == "A1") & bias["dataset"].isin(bases)].rename(
    columns={"class": "x", "bias": "value"}
)
plotted = pd.concat([left, right.assign(panel="bias_C")])[
    ["panel", "dataset", "x", "value"]
].reset_index(drop=True)
_ = stage.table("figure", plotted)
far = 100 * (right["value"] - 1 / 3).abs().max()
with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
    figure, (left_ax, right_ax) = plt.subplots(
        1, 2, figsize=(9, 3.2), width_ratios=[3, 2], layout="constrained"
    )
    for ax, part in ((left_ax, left), (right_ax, right)):
        sns.barplot(
            part.replace(PLAIN | FORM_NAMES),
            x="x",
            y="value",
            hue="dataset",
            palette=COLOURS[:2],
            edgecolor="0.2",
            ax=ax,
        )
        for bar in ax.containers[1]:
            bar.set_hatch("//")
    left_ax.set(
        title="More words change where everybody's do",
        xlabel="masked words in a base sentence (9: nine or more)",
        ylabel="base sentences",
    )
    left_ax.legend(title=None, frameon=False)
    right_ax.axhline(1 / 3, color="0.2", linestyle="--", linewidth=1)
    right_ax.set(
        title=f"No form is over {np.ceil(far):.0f} points from a third",
        xlabel="form",
        ylabel="share of pairs",
    )
    right_ax.get_legend().remove()
stage.figure("data", figure)

# %% [markdown]
# In numbers, for both lists and the test rows:

# %%
wide = bias.pivot(index=["dataset", "term_list"], columns="class", values="bias")
show_table(
    wide.round(3).reset_index().replace(PLAIN),
    {"dataset": "words that change", "term_list": "list"} | FORM_NAMES,
)
of_test = statistics[statistics["split"] == "test"].replace(PLAIN)
show_table(
    of_test.round({"words_mean": 1, "masked_mean": 1}),
    {
        "dataset": "words that change",
        "words_mean": "words",
        "masked_mean": "masked words",
        "share_of_words": "share of words",
        "share_of_pieces": "share of pieces",
    },
)

# %% [markdown] tags=["slide"]
# The female form has the smallest share. The reason is English: *her* is the female form of both *him* and *his*, so a
# female sentence has fewer distinct gender terms.
#
# Where everybody's words change, more words are masked and the floor is higher. So raw scores of two data sets cannot
# be compared.

# %% [markdown]
# ## 8 · Which words go with which class?
#
# *tf-idf* weighs a word in a sentence by how often it is there, and how rare it is elsewhere. The correlation of this
# weight with the class tells how much the word alone reveals the class (the paper's Figure 3). By hand: if every
# sentence is just *she* or *he*, the correlation with the female class is 1 for *she* and -1 for *he*.


# %%
def tfidf_correlation(rows):
    """Pearson's r of each word's tf-idf weight with each class (word x class)."""
    vectorizer = TfidfVectorizer(
        analyzer=lambda words: [word.strip().lower() for word in words]
    )
    weights = vectorizer.fit_transform(rows["sentence"])
    member = pd.get_dummies(rows["target"]).to_numpy(float)
    covariance = weights.T @ (member - member.mean(axis=0)) / len(rows)
    variance = weights.power(2).mean(axis=0).A1 - weights.mean(axis=0).A1 ** 2
    r = covariance / np.sqrt(variance.clip(1e-12))[:, None] / member.std(axis=0)
    return pd.DataFrame(
        r,
        index=vectorizer.get_feature_names_out(),
        columns=list(corpus.CLASSES[: member.shape[1]]),
    )


by_hand = tfidf_correlation(
    pd.DataFrame(
        {"sentence": [["she"], ["he"], ["she"], ["he"]], "target": [0, 1, 0, 1]}
    )
)
assert np.allclose(by_hand.loc[["she", "he"]], [[1, -1], [-1, 1]])

# %% [markdown]
# The ten most correlated words of every class:

# %%
tables = {name: tfidf_correlation(rows) for name, rows in whole.items()}
best = {
    (name, gender): table[gender].round(9).sort_index().nlargest(10)
    for name, table in tables.items()
    for gender in table
}
correlation = (
    pd.concat(best, names=["dataset", "class", "word"]).rename("r").reset_index()
)
_ = stage.table("correlation", correlation)
ranked = pd.DataFrame(
    {
        f"{FORM_NAMES[gender]}, {PLAIN[name]}": [
            f"{word} {value:.2f}" for word, value in r.items()
        ]
        for (name, gender), r in best.items()
        if name in ("D_A", "D_S")
    }
)
show_table(ranked, dict(zip(ranked, ranked)))

# %% [markdown]
# Pronouns lead in every column, as in the paper. With *subject only* they are weaker, because other people's pronouns stand in all
# forms. In the non-binary form, verbs follow: agreement is evidence as well. (*Pibling* means aunt or uncle.)
#
# Last, we write the data sets in GECO's format, and read them back.

# %%
for name, splits in data.items():
    for split, rows in splits.items():
        path = stage.path(f"{corpus.DATASETS[name]}/{split}.jsonl")
        corpus.write_geco(rows, path)
        again = corpus.read_geco(path, on_fault="keep")
        assert all(list(again[column]) == list(rows[column]) for column in rows.columns)

# %% [markdown]
# We also save a description for people (a *data set card*) and one for programs (*Croissant*). The card's title and warning:

# %%
n_base = {
    split: data["D_A"][split]["sentence_idx"].nunique() for split in corpus.SPLITS
}
numbers = {
    "base_sentences": sum(n_base.values()),
    "train_base": n_base["train"],
    "test_base": n_base["test"],
    "novels": summaries["title"].nunique(),
    "sentences": len(summaries),
    "candidates": len(candidates),
    "rejected": sum(key in rejected for key in candidates),
    "unlabelled": len(unlabelled),
    "pipeline": pipeline_name,
    "second": len(second),
    "on_fault": on_fault,
    "gold": gold,
    "same_subj": int(agreement["identical"][0]),
    "same_all": int(agreement["identical"][1]),
    "faults": int((found["what_was_done"] != "reported").sum()),
}
kind = "folder" if "/" in data_source else data_source
files = {
    f"{name}_{split}": f"{corpus.DATASETS[name]}/{split}.jsonl"
    for name in data
    for split in corpus.SPLITS
}
card = metadata.write_card(stage, folder / "card.yaml", kind, numbers, files)
print(card["title"])
print(card["sections"]["Uses"]["Misuse"])

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **The labels.** Both labellers followed one guide, so they agree easily.
# - **Three word forms are not gender.** The data show how a model treats words, not how it treats people.
# - **Small numbers.** Our test part is too small to rank methods.
#
# ## Try it
#
# - Set `spacy_pipeline` to a pipeline of yours, and compare the counts.
# - Set `data_source = "geco"` and look at the table of section 5. Which errors would you repair?
#
# Exercises with checks: [page](../../docs/course/exercises/geco.md#01-data-generation).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"}, rows=12)

# %% [markdown]
# ## Hand-over
#
# [02_training](02_training.ipynb) trains classifiers on the four data sets, and asks which have learnt more than
# "read the first pronoun".

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_function, check_list, check_number, read_committed

counts = read_committed("geco", "cpu", "01_data_generation", "counts")
counts

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# Here is a sentence of eight tokens in three forms, with all gendered words altered:
#
# > F: She thanks her sister and she smiles .
# >
# > M: He thanks his brother and he smiles .
# >
# > NB: They thank their sibling and they smile .
#
# Write its mask. Then write the mask of a set with the two classes F and M alone.

# %% tags=["hole"]
three_classes = ...  # a list of eight zeros and ones
two_classes = ...  # the same

# %% tags=["solution"]
three_classes = [1, 1, 1, 1, 0, 1, 1, 0]
two_classes = [1, 0, 1, 1, 0, 1, 0, 0]

# %% tags=["check"]
from lib.language.labels import differing_positions as right_mask

forms = [
    "She thanks her sister and she smiles .".split(),
    "He thanks his brother and he smiles .".split(),
    "They thank their sibling and they smile .".split(),
]
marked = "A word is marked if any two of the forms that are compared differ there."
check_list(three_classes, right_mask(forms), marked, name="three_classes")
check_list(
    two_classes,
    right_mask(forms[:2]),
    f"{marked} NB is not compared.",
    name="two_classes",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write the rule of exercise 1 as code, without the function of section 1. It is given a list of forms, two or more, each a list of words of equal length, and returns the mask.


# %% tags=["hole"]
def mask_of(forms):
    """0 or 1 for each position."""
    return ...


# %% tags=["solution"]
def mask_of(forms):
    """0 or 1 for each position."""
    return [int(len(set(words)) > 1) for words in zip(*forms)]


# %% tags=["check"]
from lib.language.labels import differing_positions as right_mask

check_function(
    mask_of,
    right_mask,
    {
        "The first words differ, the second ones do not.": [
            [["She", "sang"], ["He", "sang"]]
        ],
        "The first and the second form agree on the verb, and the third does not.": [
            [["She", "sings"], ["He", "sings"], ["They", "sing"]]
        ],
        "Equal forms mark nothing.": [[["It", "rains"], ["It", "rains"]]],
        "The first and the third form agree, and the second does not.": [
            [["She", "hurt"], ["He", "hurt"], ["She", "hurt"]]
        ],
        "The second and the third form agree, and the first does not.": [
            [["Hostess", "hurt"], ["Host", "hurt"], ["Host", "hurt"]]
        ],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · By hand, from a table
#
# `counts` above says how many sentences are left after each filter. Of the sentences that reach the filter *fewer than 30 tokens*, which share does it remove?

# %% tags=["hole"]
share_removed = ...  # a number between 0 and 1

# %% tags=["solution"]
share_removed = 1 - 386 / 547

# %% tags=["check"]
left = counts.set_index("step")["sentences"]
reached, kept = left["subject"], left["fewer than 30 tokens"]
check_number(
    share_removed,
    1 - kept / reached,
    {
        "you divide by all sentences; many were gone before.": (reached - kept)
        / left["sentences"],
        "that is the share that the filter keeps.": kept / reached,
    },
    "Two lines of the table are needed: that of this filter and the one above it.",
)
