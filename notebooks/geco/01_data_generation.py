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
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb)
#
# An explanation of a text classifier says which words made it decide. To check such a claim we need text
# where the right answer is known before any model is trained. GECOBench (arXiv 2406.11547) gets it with a
# trick: take a sentence about one person, write it in a female, a male and a non-binary form, and let a
# classifier tell the forms apart. The words that changed carry all the evidence. Every other word is the
# same in all three, so it cannot help.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how plain text becomes candidate sentences, filter by filter, with a count after each;
# - how one label per sentence gives three aligned forms and a *mask*: a 0/1 list over the words, 1 where
#   the forms differ;
# - what the data are like: how many words are masked, which words go with which class, whether one form is
#   favoured.
#
# **You can then** write the mask of a sentence, and say what a filter keeps out. **You need**
# [Start here](../00_start_here.ipynb). **Time:** 35 minutes to read, under a minute to run, 15 minutes for the
# exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | 48 plot summaries of ours, 810 sentences, with their stored parse and our labels | four data sets, `train.jsonl` and `test.jsonl` each; one form of one sentence per line |
# | or the published GECO, 1610 base sentences | `counts`, `agreement`, `faults`, `bias`, `correlation`, `statistics`, `figure`, `annotator`, `annotator_own`, `annotator_bounds` (`.csv`), one figure |
# | | `dataset_card.md` for people, `croissant.json` for programs |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import random

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from sklearn.feature_extraction.text import TfidfVectorizer
from tokenizers import Tokenizer

from lib.core.cards import dataset_card, read_card
from lib.core.files import read_table, read_yaml, save_json, write_atomic
from lib.core.notebooks import show_source
from lib.core.paths import material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language import parse
from lib.language.annotator import annotate_sentence
from lib.language.dependencies import subject_of
from lib.language.labels import Label, differing_positions, gender_variants
from lib.language.lexicon import PRONOUN_FORMS, PRONOUNS, load_lexicon
from lib.language.names import names_of_text
from lib.language.word_lists import read_word_list
from lib.models.weights import load_encoder_path
from lib.plots import COLOURS, STYLE
from lib.studies.geco import corpus, metadata
from lib.studies.geco.corrections import CORRECTIONS, read_gold
from lib.studies.geco.faults import fault_table
from lib.studies.geco.filters import (
    apply_filters,
    is_human,
    is_neuter,
    is_third_singular,
)
from lib.studies.geco.labels import (
    CONTENTS,
    bound_table,
    label_agreement,
    labelled_rows,
    read_labels,
)

# %% [markdown]
# ## Settings
#
# The values below are those of the small scale and need no download. `data_source` chooses what is handed
# to the next stage: `bundled` is the text that this notebook works through, `geco` is the published data
# set (downloaded once, checked against its SHA-256), and a path is what `make dataset` made of your text.
# With both, sections 1 to 6 still tell the story on
# the bundled text, and sections 7 to 13 describe the other data.
#
# `on_fault` says what becomes of rows of the published files that are malformed, and `gold` whether their
# neutral forms stay as published or are corrected (section 7). `spacy_pipeline` is `stored` (the parse that
# lies beside the text), `environment` (the pipeline that `TOUCHSTONE_SPACY` names) or the name of a pipeline, `en_core_web_sm` for instance.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for the shuffled masks of section 8
n_threads = 1  # CPU threads
data_source = "bundled"  # bundled (our text), geco (published), or a folder of yours
on_fault = "repair"  # faults of form in published rows: repair, keep, or drop the base sentence
gold = "published"  # neutral forms of the published data: published, or corrected (their grammar mended)
spacy_pipeline = "stored"  # stored, environment, or a spaCy pipeline's name or path
test_share = 0.2  # share of the base sentences that is kept for testing (bundled)
split_seed = 1234  # for the choice of the test sentences, as in the original (bundled)

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $\mathbf{x}$ | a sentence, a list of words | `sentence` |
# | $\mathcal{D}_S$, $\mathcal{D}_A$ | sets with the subject's words altered, with all gendered words altered | `D_S`, `D_A` |
# | $F, M, NB$ | the three forms, which are also the classes | `target` 0, 1, 2 |
# | base sentence | what the forms of a sentence have in common | `sentence_idx` |
# | ground truth $g$, or mask | 1 where a word differs between any two forms of the base sentence | `ground_truth` |
#
# A *word* or *token* here is a word or a punctuation mark, as a person would split them. Models split words
# further, into *word pieces*; that matters once, in section 11.
#
# The text is split into sentences at full stops, by rules that know that the dot of *Mr.* ends nothing. A
# trained parser can split text too, but a small one errs in about one sentence out of five on text that it
# does not know, while our text has ordinary punctuation.

# %%
stage = open_stage("geco", scale, "01_data_generation")
corpus.check_choices(data_source, on_fault, gold)
set_up(seed, n_threads)
folder = material("geco")
summaries = parse.read_summaries(folder / "plots.md")
print(
    f"{summaries['title'].nunique()} summaries, {len(summaries)} sentences; data source: {data_source}"
)
summaries[["sentence_id", "sentence"]].head(3)

# %% [markdown] tags=["slide"]
# ## 1 · One sentence by hand
#
# > Bingley leaves for London without a word, and Jane suffers quietly.
#
# The subject of the main clause is *Bingley*. Before we run anything, what do we expect?
#
# - **D_S** alters what belongs to the subject. A name alone becomes a pronoun: *She / He / They*. With
#   *They* the verb must follow: *leaves* becomes *leave*. *Jane* is somebody else and stays. So the mask
#   should be 1 at *Bingley* and *leaves*.
# - **D_A** alters everybody. *Jane suffers* becomes *she suffers*, *he suffers*, *they suffer*, so the mask
#   gains two words.
#
# A label writes exactly this down, by position: the female, the male and the neutral word.

# %%
leaves, suffers = (
    {0: ("She", "He", "They"), 1: ("leaves", "leaves", "leave")},
    ("suffers", "suffers", "suffer"),
)
example = Label(
    "by hand",
    tuple(
        "Bingley leaves for London without a word , and Jane suffers quietly .".split()
    ),
    subject=0,
    names={0: "name", 9: "name"},
    subj=leaves,
    all=leaves | {9: ("she", "he", "they"), 10: suffers},
)
forms, subject_forms = gender_variants(example, "all"), gender_variants(example, "subj")
assert differing_positions(list(subject_forms.values())) == [1, 1] + [0] * 11
assert differing_positions(list(forms.values())) == [1, 1] + [0] * 7 + [1, 1, 0, 0]
assert differing_positions([forms["F"], forms["M"]]) == [1] + [0] * 8 + [1, 0, 0, 0]
pd.DataFrame(
    [*forms.values(), differing_positions(list(forms.values()))],
    index=[*corpus.CLASSES, "mask"],
)

# %% [markdown]
# The masks are what we predicted: the asserts compare both sets with the lists written by hand. The third
# assert is about something that is easy to overlook. Between the female and the male form alone, *leaves*
# does not change, so in a set with two classes the verb is no evidence and must not be in the mask.
#
# ## 2 · Who does what: the parse
#
# The filters need syntax: which word is the main verb, which its subject? spaCy answers with a *dependency
# parse*, in which every word hangs from another one by a named relation, and one word, the root, hangs from
# none. Pipelines come with two naming schemes. In *Universal Dependencies* (UD) the root of "she is a nun"
# is *nun*; in the scheme of spaCy's own English pipelines (CLEAR) it is *is*. All our filters understand
# both.

# %%
if spacy_pipeline == parse.STORED:
    annotation = sorted(folder.glob("annotation_*.conllu"))
    docs, pipeline_name = (
        parse.stored_annotation(summaries["sentence"], annotation),
        parse.stored_pipeline(annotation[0]),
    )
else:
    pipeline = parse.load_pipeline(spacy_pipeline)
    docs, pipeline_name = (
        parse.annotate(summaries["sentence"], pipeline),
        pipeline.path.name,
    )
print(f"{len(docs)} parsed sentences; pipeline: {pipeline_name}")

# %% [markdown]
# Below is the parse of the beginning of a sentence. The root *shipped* carries no person or number itself;
# its auxiliary *is* does. A filter that asked the root alone would lose the sentence.

# %%
shown = docs[list(summaries["sentence_id"]).index("the_secret_garden-04")]
pd.DataFrame(
    [
        (
            word.text,
            word.pos_,
            word.dep_,
            word.head.text,
            *word.morph.get("Person", "-"),
            *word.morph.get("Number", "-"),
        )
        for word in shown[:6]
    ],
    columns=["word", "part of speech", "relation", "hangs from", "person", "number"],
)

# %% [markdown]
# ## 3 · The filters
#
# The paper (appendix A.1.2) keeps sentences in which one person is the grammatical subject. Its filters, in
# order:
#
# | filter | asks |
# |---|---|
# | third person singular | is the main verb *walks*, *is*, *has*, and not *walk* or *are*? |
# | subject | has the main verb a subject, active (nsubj) or passive? |
# | fewer than 30 tokens | "fewer" as in the released code; the text of the paper allows 30 |
# | full stop | is the last token a full stop? |
# | not neuter | is the subject something other than *it*? |
# | human | is the subject a proper noun, *he* or *she*, or a noun for a gendered person from a list (`human_nouns.txt`)? |
# | no duplicate | is the sentence the first of its wording? |
#
# We differ in one point: the paper looks at the root only, we look at the root with its copula and
# auxiliaries, since otherwise UD would lose "she is a nun", and both schemes would lose "she has gone".

# %%
show_source(is_third_singular)
show_source(subject_of)

# %% [markdown]
# The filters run one after the other, and each row of the table counts what is left. A proper noun need not
# be a person (*Norland Park* is a house), so what comes out is a list of candidates, each of which is read
# before it is labelled. (The paper also dropped names that occur only once; where every candidate is read,
# that is not needed.)

# %%
human_nouns = read_word_list(folder / "human_nouns.txt")
filters = {
    "third person singular": is_third_singular,
    "subject": lambda doc: subject_of(doc) is not None,
    "fewer than 30 tokens": lambda doc: len(doc) < 30,
    "full stop": lambda doc: doc[-1].text == ".",
    "not neuter": lambda doc: not is_neuter(subject_of(doc)),
    "human": lambda doc: is_human(subject_of(doc), human_nouns),
}
candidates, lost, counts = apply_filters(
    dict(zip(summaries["sentence_id"], docs, strict=True)), filters
)
counts

# %% [markdown]
# Nearly three sentences in ten have another kind of main clause; length takes the next large share. To see
# whether a filter does what its name says, read the first sentence that it took away. (The parser errs at
# times. It may take a name for a common noun, and the sentence is lost. That costs text, not correctness.)

# %%
texts = summaries.set_index("sentence_id")["sentence"]
for name in filters:
    key = next((key for key in lost if lost[key] == name), None)
    print(f"{name:>22}: {texts[key][:88] if key else '(none)'}")

# %% [markdown]
# ## 4 · Names first, then pronouns
#
# Names give gender away, so in the end they have to go: a name that stands alone becomes a pronoun. But the
# order matters. In
#
# > Thornton thinks Margaret haughty and can not keep his eyes off her.
#
# *his* is Thornton's and *her* is Margaret's, which anybody can see while the names stand. After the
# replacement nobody can. So a label says first which tokens are names and who is who, and only then what
# becomes of each word. This is one entry of `labels.yaml`, position by position, with the female, male and
# neutral word.

# %%
labels = read_labels(folder / "labels.yaml")
entry = labels["north_and_south-06"]
print("names", {entry.words[i]: kind for i, kind in entry.names.items()})
for scope in ("subj", "all"):
    print(
        f"{scope:<5}",
        {entry.words[i]: change for i, change in entry.replacements(scope).items()},
    )

# %% [markdown]
# Reading the file checks it: every position lies in its sentence, no replacement is empty, the original
# word is one of the three unless it is a name, and what D_S alters D_A alters in the same way. Rules that
# the labels follow: a title keeps its name and changes itself (*Mr.*, *Mrs.*, *Mx.*); a surname after a
# first name is deleted in all forms; with *they* every verb agrees, next to it or not.
#
# Candidates and labels are then brought together. A candidate can be rejected by hand, with a reason (the
# subject is a house, a feeling, a city), or have no label, with another parser say.

# %%
rejected = read_yaml(folder / "rejected.yaml")
base = [label for key, label in labels.items() if key in candidates]
unlabelled = [key for key in candidates if key not in labels and key not in rejected]
corrected = sum(subject_of(candidates[label.name]).i != label.subject for label in base)
counts.loc[len(counts)] = [
    "not rejected by hand",
    len(candidates) - sum(key in rejected for key in candidates),
]
counts.loc[len(counts)] = ["labelled: base sentences", len(base)]
print(
    f"without a label: {len(unlabelled)}; labels whose sentence is no candidate: {len(labels) - len(base)};",
    f"subjects that the parser got wrong: {corrected}",
)
stage.table("counts", counts).tail(3)

# %% [markdown]
# ## 5 · Three forms and a mask
#
# ![One sentence in 3 forms, word below word. she: She loves to spend time with her favorite cat .; he: He loves to spend time with his favorite cat .; they: They love to spend time with their favorite cat .. A row of ones and zeros below, the mask, has a 1 at the words that differ: She, loves, her.](../../docs/schematics/three_forms.svg)
#
# Let $\mathbf{x}^{F}, \mathbf{x}^{M}, \mathbf{x}^{NB}$ be the forms of a base sentence. They have the same
# length, for a deleted word is deleted in all of them. The ground truth of the base sentence is, for every
# position $i$,
#
# $$g_i = 1 \text{ if } x_i^{c} \neq x_i^{c'} \text{ for some } c, c' \in \{F, M, NB\}, \text{ else } 0.$$
#
# There is one mask per base sentence and data set, and all its forms share it. The code is hardly longer
# than the definition.

# %%
show_source(gender_variants)
show_source(differing_positions)

# %% [markdown]
# Here is the sentence of section 4 in both data sets. In D_S only Thornton changes, so a model has to find
# out who the subject is before the other words mislead it: *her* stays female in all three forms. In D_A
# all people change, and the sentence says the same thing several times over.

# %%
for scope, name in (("subj", "D_S"), ("all", "D_A")):
    for gender, words in gender_variants(entry, scope).items():
        print(f"{name} {gender:>2}  {' '.join(words)}")

# %% [markdown]
# Two checks over all labels. First, a second route to the masks: a position is masked exactly if an altered
# position of the label arrives there, found by walking over the original sentence. Second, no *he* or *she*
# survives in a non-binary form of D_A.

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
    assert not PRONOUNS.keys() & neutral
print(len(base), "labels checked")

# %% [markdown]
# ## 6 · Would somebody else have written the same labels?
#
# Some of the sentences were labelled a second time, blind, that is without sight of the first labels but
# with the same written guide. We compare whole sentences (are all three forms the same, word by word?) and
# single words (altered or not?). *Cohen's kappa* is agreement beyond what chance would give: 0 is chance, 1
# is perfect.

# %%
second = read_labels(folder / "labels_second.yaml")
agreement = pd.DataFrame(
    [
        {"dataset": name} | label_agreement(labels, second, scope)
        for name, scope in (("D_S", "subj"), ("D_A", "all"))
    ]
)
stage.table("agreement", agreement)

# %% [markdown]
# *Reading it.* The paper did not measure agreement, for its replacements leave little freedom. Ours leave
# little as well: which words change is settled almost completely by the guide, and the rare differences are
# about *how* (is a gossiping *youth* a *girl*?). High agreement here speaks for care. It does not say that
# the guide itself is right.
#
# ## 7 · Four data sets, split by base sentence
#
# Each labelling gives a set with three classes and one with two, the *binary* set of the paper's first
# version, whose masks hold no agreeing verbs. All forms of a base sentence fall on the same side of the
# split; if they did not, a model could meet a test sentence in training. The published data come with their
# own split, which we keep.


# %%
def split_by_base(rows, test_share, split_seed):
    """The train and the test rows: a random share of the base sentences is for testing, with all their forms."""
    indices = sorted(set(rows["sentence_idx"]))
    chosen = random.Random(split_seed).sample(indices, round(test_share * len(indices)))
    is_test = rows["sentence_idx"].isin(chosen)
    return {"train": rows[~is_test], "test": rows[is_test]}


# %% [markdown]
# The next cell is the fork in the road: our labels, or the published files. The table counts rows: three
# for each base sentence, or two in the binary sets.

# %%
if data_source == "bundled":
    data = {
        name: split_by_base(labelled_rows(base, *content), test_share, split_seed)
        for name, content in CONTENTS.items()
    }
    corrections = pd.DataFrame(columns=CORRECTIONS)
else:
    source = corpus.source_folder(data_source, stage)
    read = {
        name: {
            split: read_gold(name, split, gold, on_fault, source)
            for split in corpus.SPLITS
        }
        for name in corpus.DATASETS
    }
    data = {
        name: {split: rows for split, (rows, _) in splits.items()}
        for name, splits in read.items()
    }
    corrections = pd.concat(
        {
            (name, split): done
            for name, splits in read.items()
            for split, (_, done) in splits.items()
        },
        names=["dataset", "split"],
    ).reset_index(["dataset", "split"])
pd.DataFrame(
    {
        name: {split: len(rows) for split, rows in splits.items()}
        for name, splits in data.items()
    }
)

# %% [markdown]
# The published neutral forms were made by a program, and its grammar fails at known places: *them* for
# *their*, verbs that agree with *they* only beside it, non-words such as *trie*. With `gold = "corrected"`
# they are mended in your copy (`lib.studies.geco.corrections`, which shares no code with the annotator of section 14),
# and the next cell counts the corrections by kind and shows some to read. Otherwise there are none.

# %%
print(f"gold: {gold}; {len(corrections)} corrections")
if len(corrections):
    counted = (
        corrections.groupby(["dataset", "kind"])["position"]
        .size()
        .rename("n")
        .reset_index()
    )
    print(stage.table("corrections", counted).to_string(index=False))
corrections.sample(min(5, len(corrections)), random_state=seed)[
    ["kind", "published", "corrected"]
]

# %% [markdown]
# Sixty corrections of the train and the test part, drawn at random, were read (`neutral_verdicts.csv`).
#
# The published files have faults. Those of *form* (a mask that does not fit its sentence, words of blanks,
# blanks at the edges of words, a mask entry where all forms are equal) are treated as `on_fault` says.
# Those of *wording* (*them* where *their* is meant, verbs that lost a letter, a pronoun of another class)
# are listed and never changed: they are what the data are. Our own data go through the same search.

# %%
faults = fault_table(data)
_ = stage.table("faults", faults)
faults.groupby(["fault", "what_was_done", "dataset"])["row"].size().unstack(
    fill_value=0
)

# %% [markdown]
# *Reading it.* A cell counts rows; what compares the forms of a sentence is listed once, at its non-binary
# row. Wording is searched in the sets with three classes, since the binary ones hold the same female and
# male sentences. *Masked word same in female and male* counts sentences whose mask holds verbs such as *is
# / is / are*: evidence for NB against the others, and none between F and M. *Pronoun of another class* is
# what makes D_S hard. `faults.csv` lists the row ids.
#
# ## 8 · Control: is the evidence really inside the mask?
#
# If the mask is right, the forms of a sentence are equal once the masked words are taken out. If it were
# arbitrary, they would not be. We count base sentences whose forms still differ outside the mask: 0 is
# expected for the true masks, and nearly all for masks with the same number of ones at random places.


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
    """As many ones as the row's mask has, at places that depend on the base sentence and the seed only."""
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
control

# %% [markdown]
# With the true masks nothing is left outside (next to nothing in the published files as they are). With
# shuffled masks most sentences leak their class. The mask holds the evidence.
#
# ## 9 · Does the data set favour a form? bias_C
#
# The paper counts, for a set of sentences $\mathcal{D}$, pairs of a gender term $a$ from a list $A$ and
# another word $w$ that stand in the same sentence:
#
# $$C(\mathcal{D})=\sum_{\mathbf{x}\in\mathcal{D}}\sum_{w\in V}\sum_{a\in A}\mathbf{1}_{\mathbf{x}}(a,w) \quad (1) \qquad \operatorname{bias}_{C}(\mathcal{D}^{F})=\frac{C(\mathcal{D}^{F})}{C(\mathcal{D}^{F})+C(\mathcal{D}^{M})+C(\mathcal{D}^{NB})} \quad (2)$$
#
# A perfect balance is 1/3 each (1/2 with two classes). The indicator asks whether a pair is there, not how
# often, so we count distinct words. $V$ is every word that is not in $A$, without comma and full stop. The
# paper's list $A$ ends in dots, so we state ours. **A1** is the forms of three pronouns: she, her, hers,
# herself; he, him, his, himself; they, them, their, theirs, themself, themselves. **A2** is A1 and every
# word that stands at a position where F and M differ.
#
# The hand value for our example: in the female form of D_A, *she* stands twice and counts once, beside nine
# other words (*leaves, for, London, without, a, word, and, suffers, quietly*). In D_S *Jane* is a tenth.


# %%
def co_occurrences(sentences, terms):
    """C(D), equation 1: pairs of a gender term and another word that stand in the same sentence."""
    total = 0
    for words in sentences:
        distinct = {word.strip().lower() for word in words} - {",", "."}
        total += len(distinct & terms) * len(distinct - terms)
    return total


A1 = frozenset().union(*PRONOUN_FORMS.values())
assert (
    co_occurrences([forms["F"]], A1) == 9
    and co_occurrences([subject_forms["F"]], A1) == 10
)

# %% [markdown]
# Now equation 2, for each data set and both lists, over train and test together.

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
wide = bias.pivot(
    index=["dataset", "term_list", "terms"], columns="class", values="bias"
)
wide.round(3).astype(object).fillna("-")

# %% [markdown]
# *Reading it.* The values lie near 1/3 (or 1/2), yet not on it, and that is no fault of the data. *Her*
# does the work of both *him* and *his*, so a female sentence holds fewer distinct gender terms than its
# male form. The paper prints .33 for each form of D_A; equation 1 read literally gives something else, on
# the published data too (.315, .355, .329 with A1).
#
# ## 10 · Which words go with which class?
#
# *tf-idf* weighs a word in a sentence by how often it is there and how rare it is elsewhere. The *Pearson
# correlation* of that weight with "is this row of the class?" says how much a word by itself gives the
# class away: 1 would be a word that stands in all rows of the class and in no other (paper, Figure 3). A
# check: where *she* and *he* are all there is, each is perfectly correlated with its own class, and
# perfectly against the other.


# %%
def tfidf_correlation(rows):
    """Pearson's r between the tf-idf weight of each word and membership of each class (word x class)."""
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
# The ten most correlated words of every class (the saved table holds the binary sets as well):

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
pd.DataFrame(
    {
        key: [f"{word} {value:.2f}" for word, value in r.items()]
        for key, r in best.items()
        if key[0] in ("D_A", "D_S")
    },
    index=range(1, 11),
)

# %% [markdown]
# *Reading it.* Pronouns lead in every column, as in the paper's Figure 3. In D_S they are weaker, since the
# pronouns of other people stand in all forms. For the non-binary class, verbs such as *are* and *have*
# follow the pronouns: agreement is evidence as well.
#
# ## 11 · How long, and how much is masked?
#
# The share of masked words is also a floor: an explanation that spreads its mass evenly puts exactly this
# share on the mask. Models work on *word pieces* (a rare word such as *nibling* is split into several), and
# a mass that is even over pieces gives slightly different shares. Both stand in the table, as means over
# rows. The pieces are those of the model that the next stage trains.

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
stage.table("statistics", statistics)

# %% [markdown] tags=["slide"]
# *Reading it.* D_A masks clearly more words than D_S, and the sets with three classes more than those with
# two, since verbs join in. So raw scores of explanations must not be compared between these sets: an
# explainer that knows nothing scores higher where more is masked. Stage 4 corrects for it.
#
# ## 12 · The figure
#
# Left: how many words of a base sentence are masked. Right: bias_C with the pronoun list A1; the dashed
# line is perfect balance. The table holds the numbers that are plotted.

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
with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
    figure, (left_ax, right_ax) = plt.subplots(
        1, 2, figsize=(9, 3.2), width_ratios=[3, 2], layout="constrained"
    )
    for ax, part in ((left_ax, left), (right_ax, right)):
        sns.barplot(
            part,
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
        xlabel="masked words in a base sentence (9: nine or more)",
        ylabel="base sentences",
    )
    left_ax.legend(title=None, frameon=False)
    right_ax.axhline(1 / 3, color="0.2", linestyle="--", linewidth=1)
    right_ax.set(xlabel="form", ylabel="bias_C (term list A1)")
    right_ax.get_legend().remove()
stage.figure("data", figure)
plotted.pivot(index=["panel", "x"], columns="dataset", values="value").round(3).astype(
    object
).fillna("-")

# %% [markdown]
# D_S crowds at two and three masked words, most often a pronoun and its verb. D_A has a long tail, the
# sentences with several people. On the right the female bar of D_A is the lowest of its three, for the
# reason given in section 9: *her* does the work of two words.
#
# ## 13 · Writing the data sets
#
# One JSON object per line, in GECO's own format. Reading back what was written must give the same rows.

# %%
for name, splits in data.items():
    for split, rows in splits.items():
        path = stage.path(f"{corpus.DATASETS[name]}/{split}.jsonl")
        corpus.write_geco(rows, path)
        again = corpus.read_geco(path, on_fault="keep")
        assert all(list(again[column]) == list(rows[column]) for column in rows.columns)

# %% [markdown]
# Beside them lie a card for people (what the data are for, their limits, what not to do with them) and
# metadata in *Croissant*, a format that data-set search engines and loaders read; there each file's masks
# form a record set of their own. The numbers in the card are those of this run.

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
    "faults": int((faults["what_was_done"] != "reported").sum()),
}
kind = "folder" if "/" in data_source else data_source
card = read_card(folder / "card.yaml", kind, numbers)
write_atomic(stage.path("dataset_card.md"), dataset_card(card))
files = {
    f"{name}_{split}": f"{corpus.DATASETS[name]}/{split}.jsonl"
    for name in data
    for split in corpus.SPLITS
}
save_json(metadata.croissant(card, stage.folder, files), stage.path("croissant.json"))
print(card["title"], "|", *card["sections"]["Uses"]["Misuse"].splitlines())

# %% [markdown]
# ## 14 · The same labels by program
#
# GECO's authors labelled by hand, since labelling by program failed. Does it still? `lib.language.annotator` makes a
# label from a parse (UD or CLEAR), a lexicon of pairs of words for people with their neutral forms, names,
# rules and weights for *her* and *his*, weights that say who is meant (for D_S), and full agreement with *they*.
# `make dataset TEXT=folder` applies it to a text of yours, and gives you a page to review what it did.
#
# Of the sentence of section 4 we expect that in D_S *Thornton*, its verb and *his* change, and that *Margaret*
# and *her* do not. And since every bundled sentence has a label by hand, we ask of all of them what section 6
# asked of two labellers. Half of the texts were read while the rules for names were written, the others not.

# %%
lexicon = load_lexicon()
known = names_of_text(docs, lexicon)
made = {
    label.name: annotate_sentence(candidates[label.name], label.name, known_names=known)
    for label in base
}
titles = sorted({key.rsplit("-", 1)[0] for key in made})
own = []
for part, chosen in (("read", titles[::2]), ("not read", titles[1::2])):
    mine = {
        key: label for key, label in made.items() if key.rsplit("-", 1)[0] in chosen
    }
    own += [
        {"texts": part, "dataset": name} | label_agreement(labels, mine, scope)
        for name, scope in (("D_S", "subj"), ("D_A", "all"))
    ]
assert spacy_pipeline != parse.STORED or sorted(made[entry.name].subj) == sorted(
    entry.subj
)
two = np.mean(
    [
        gender_variants(made[key], "all")[form]
        == gender_variants(labels[key], "all")[form]
        for key in made
        for form in "FM"
    ]
)
print(
    "D_S by program:",
    {entry.words[i]: change for i, change in made[entry.name].subj.items()},
)
print(
    len(lexicon.kinds),
    "pairs in the lexicon;",
    f"D_A, female and male forms as by hand: {two:.3f}",
)
stage.table("annotator_own", pd.DataFrame(own))

# %% [markdown]
# *Reading it.* Which words are about gender (D_A), the program finds nearly as a person does (kappa). Whole sentences
# are the same in all three forms in half the cases; in the female and the male form far more often, for much
# of the difference is a choice of ours: *pibling* (our guide) or *parent's sibling* (GECO's list, which the
# lexicon follows)? Who is meant (D_S) is harder. What a program labelled wants a reader.
#
# The second yardstick is GECO's own test split, which nothing was fitted on: the rules and weights were
# written on its training part, and the split was scored four times in all (the prototype is an earlier set
# of rules of ours). This is the fourth scoring. Between the third and the fourth, *her* got weights that
# were learnt from persons in which English has two words (*him* and *his*, *them* and *their*), in open corpora and in
# the training part, and verbs in -s got a list; nothing that these figures depend on was changed after it. The figures are stored per
# pipeline in `annotator_scores.csv`; a test makes them anew. A fifth version, with *her* fitted on two parses and a
# dictionary of verbs, was a little better on the training part and no better here (.9913, .9803, .9472, .9286 in the order
# of the table; .8851 against a second version of the corrected gold), so the simpler one stays. *Adjacent* follows the published rule for verbs, and everything
# that we ship uses full agreement. `met` is about the first pipeline.

# %%
aims = read_table(folder / "annotator_aims.csv")
scores = read_table(folder / "annotator_scores.csv")
long = scores.melt(
    ["pipeline", "dataset", "input", "quantity"],
    ["F1", "sentences_right"],
    "figure",
    "value",
)
wide = long.pivot_table(
    index=list(aims.columns[:4]), columns="pipeline", values="value"
).reset_index()
aims = aims.merge(wide)
aims["met"] = [
    "-" if pd.isna(row.aim) else "yes" if row.en_ud_sm >= row.aim else "no"
    for row in aims.itertuples()
]
stage.table("annotator", aims).astype(object).fillna("-")

# %% [markdown]
# What keeps it from the aims? The errors on D_A were read after the scoring and stored by index. An error is
# the gold's fault where it leaves out a gendered word, lost one, missed a verb, or chose another form that is
# as right; it is the text's where no reader could tell after the names were taken out. `highest` is the score
# of an annotator that makes these errors and no others. The errors were read twice, each time by somebody who had
# written rules; `agreed` are those that both readings lay at the gold's door, and `mended` is our score if the gold had
# only these corrected: an upper bound, for where the annotator shares a fault of the gold nobody looked. For D_S,
# forty errors were read. No outside annotator took part.

# %%
of_read = scores[(scores["pipeline"] == "en_ud_sm") & (scores["dataset"] == "D_A")]
bounds = bound_table(of_read, read_table(folder / "annotator_errors.csv"))
read_errors = read_table(folder / "reference_errors.csv")
print(read_errors.groupby("verdict")["input"].value_counts().unstack().to_string())
stage.table("annotator_bounds", bounds)

# %% [markdown] tags=["slide"]
# *Reading it.* Against the gold as it is, most aims are missed; `met` says which. For the mask without verbs the aim lies above what
# this gold allows, and for male to female it lies at its edge: most of what is left there is words that the gold
# forgot, or *Mrs* with and without its dot. Female to male misses its aim of .94 by two sentences, and to neutral by more; with the
# agreed faults of the gold corrected (`mended`) both lie above their aims, .94 and .93. Of the neutral form's errors many are in the
# *corrected* gold: its corrections are right where they were made, and it misses verbs after a comma or "and". What is missing on our
# side is mostly *her* before a noun: in "she gives her money" only the sense says that money is given and not owned.
#
# ## What could be wrong
#
# - **The parser.** It decides which sentences become candidates. Its errors cost sentences and hardly let a
#   wrong one through, since every candidate is read before it is labelled.
# - **The labels.** They were written after one guide. Two labellers who share a guide agree easily. Whether
#   *survivor* is the neutral form of *widow* is a choice.
# - **Three forms are not gender.** *She*, *he* and singular *they* are a device to place evidence in a
#   sentence. Do not read results on it as results about people.
# - **Evidence has company.** A classifier can use a verb such as *walk* or a rare word such as *pibling* in
#   place of a pronoun. All of them are in the mask, so an explanation that names them is right; but it then
#   says little about how a model treats pronouns.
# - **Small numbers.** The bundled test set has a few dozen base sentences. It shows how things work and
#   cannot rank methods.
#
# ## Try it
#
# - Write a label for one of the sentences that were filtered out for their length, and relax the filter.
# - Set `spacy_pipeline` to a pipeline of yours and compare the counts.
# - Set `data_source = "geco"` and look at the table of faults in section 7: which would you repair, and
#   which not?
#
# Last, the list of all files. The manifest beside them holds their checksums, which the next stages verify.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# Four data sets now lie in this stage's folder. [02_training](02_training.ipynb) trains classifiers on
# them, from a frozen network with a new head to a tiny one trained from scratch, and asks which of them
# have learnt more than "read the first pronoun".

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_function, check_list, check_number, read_committed
from lib.language.labels import differing_positions

counts = read_committed("geco", "cpu", "01_data_generation", "counts")
counts

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# Here is a sentence of eight tokens in three forms, with all gendered words altered (D_A):
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
forms = [
    "She thanks her sister and she smiles .".split(),
    "He thanks his brother and he smiles .".split(),
    "They thank their sibling and they smile .".split(),
]
marked = "A word is marked if any two of the forms that are compared differ there."
check_list(three_classes, differing_positions(forms), marked, name="three_classes")
check_list(
    two_classes,
    differing_positions(forms[:2]),
    f"{marked} NB is not compared.",
    name="two_classes",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write the rule of exercise 1 as code. It is given the forms, lists of words of equal length, and returns the mask.


# %% tags=["hole"]
def mask_of(forms):
    """0 or 1 for each position."""
    return ...


# %% tags=["solution"]
def mask_of(forms):
    """0 or 1 for each position."""
    return [int(len(set(words)) > 1) for words in zip(*forms)]


# %% tags=["check"]
check_function(
    mask_of,
    differing_positions,
    {
        "The first words differ, the second ones do not.": [
            [["She", "sang"], ["He", "sang"]]
        ],
        "The first and the second form agree on the verb, and the third does not.": [
            [["She", "sings"], ["He", "sings"], ["They", "sing"]]
        ],
        "Equal forms mark nothing.": [[["It", "rains"], ["It", "rains"]]],
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
