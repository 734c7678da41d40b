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
# # implicit_bias, stage 1 of 5: which sentences leave a person's gender to one pronoun alone?
#
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · the study: [README](README.md) · words: [glossary](../../docs/glossary.md)
#
# "The nurse puts her coat over the chair." Only *her* says that the nurse is a woman. Mask that pronoun, and a language model has to guess.
# Ye et al. (arXiv 2110.01094) collect such sentences with a filter: three steps select, and a fourth masks the pronoun. Here we build it.

# %% [markdown] tags=["slide"]
# ## What we found
#
# - **Sentences that leave the gender to one pronoun are rare.** Of 70,924<!-- implicit_bias/cpu/04_metrics/claims[id=n_original].ours --> captions
#   774<!-- implicit_bias/cpu/04_metrics/claims[id=n_filtered].ours --> pass the filter ([figure](../../outputs/reference/implicit_bias/cpu/01_data_generation/steps.png)).
# - **Almost all that pass are right.** We gave captions to two readers who did not know the filter's answer. Of fifty that pass, the first reader judged
#   96 %<!-- implicit_bias/small/01_data_generation/relabelled[reading=first].precision --> right. How many the filter misses is less certain
#   ([table](../../outputs/reference/implicit_bias/small/01_data_generation/relabelled.csv)).
# - **The third step is the strictest.** It asks to whom the pronoun refers. Without it
#   8,375<!-- implicit_bias/cpu/01_data_generation/options[option=without step 3].sentences --> captions would be left
#   ([table](../../outputs/reference/implicit_bias/cpu/01_data_generation/options.csv)).
#
# The video captions belong to scale `cpu`. On this page we build the filter with sentences of our own, at scale `small`.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - the filter, step by step, and how many sentences each step leaves;
# - three checks of the step that rests on rules;
# - what happens where the paper does not say what it did.
#
# **You can then** apply the filter to a sentence, and say what its steps select. **You need** to know what a pronoun
# is. **Time:** 20 minutes to read, under a minute to run, [20 minutes for the exercises](../../docs/course/exercises/implicit_bias.md#01-data-generation).
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `material/sentences.csv`, 313 sentences of ours with labels, or any CSV with a column of sentences | `sentences.parquet`: one row per sentence that passed |
# | a spaCy parse (stored for our sentences) | `candidates.jsonl`: input for your own coreference tool |
# | text for the masked language model of stage 2 | `text.parquet`: one row per sentence to train or to measure on |
# | | `steps`, `options`, `antecedents` (`.csv`); checks: `label_check`, `agreement`, `read`, `resolvers`, `agreement_captions`, `relabelled`; one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import json

import pandas as pd
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from lib.core import files
from lib.core.errors import TouchstoneError
from lib.core.notebooks import show_source, show_table
from lib.core.paths import ROOT, data_root, material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language import parse as parsing
from lib.language.lexicon import PRONOUNS
from lib.language.possessives import is_possessive
from lib.studies.implicit_bias import coreference, relabelling
from lib.studies.implicit_bias import sentences as steps_of
from lib.studies.implicit_bias import text as reading
from lib.studies.implicit_bias.figures import plot_steps
from lib.studies.implicit_bias.naming import in_words

# %% [markdown]
# ## Settings
#
# `sentence_file` may name any CSV or TSV file, such as `train.csv` of SWAG, the paper's data set. The settings from `resolver` to `any_subject` shape the filter's third step, of
# which the paper leaves parts open. Section 3 explains the terms; `plain` knows fewer rules.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # what is drawn for training
n_threads = 1  # CPU threads
# bundled (ours), or published (captions and corpora below TOUCHSTONE_DATA)
data_source = "bundled"
sentence_file = ""  # a CSV or TSV file in place of the data source's sentences
sentence_column = "sent1"  # its column of sentences
# stored (our sentences only), environment (TOUCHSTONE_SPACY), or a pipeline's name
spacy_pipeline = "stored"
# who finds antecedents: full or plain (rules), or file (clusters made elsewhere)
resolver = "full"
clusters_file = ""  # the file of clusters, JSON lines
exclude_antecedents = [
    "someone",
    "somebody",
    "anyone",
    "anybody",
    "everyone",
    "everybody",
]  # antecedents that do not count
keep_names = False  # whether a personal name counts as an antecedent
cluster_size = 2  # expressions in the pronoun's cluster; 0 for any number
# whether a subject noun may be an antecedent even if it is no person (rules only)
any_subject = False
n_text = 400  # natural sentences, per source; 0 for all
n_more = 0  # further ones, for training alone, per source
n_frames = 1000  # sentences for training whose noun fixes the pronoun

# %% [markdown]
# | term | meaning | here |
# |---|---|---|
# | $s$ | a sentence that passed, its pronoun masked | `masked` |
# | sex indicator | a gendered pronoun, or another word that reveals the gender | `gendered_pronouns`, `gendered_identities` |
# | antecedent | the noun that the pronoun refers to | `antecedent` |
# | bag | a coreference cluster: all expressions that refer to one person | a list of (first word, last word) |
# | slot | the pronoun's grammatical role: subject, object, possessive (*her coat*), independent (*hers*) or reflexive (*herself*) | `slot` |
#
# The next cell reads the sentences, and refuses a wrong source.

# %%
stage = open_stage("implicit_bias", scale, "01_data_generation")
set_up(seed, n_threads)
needs_data = data_source == "published" and data_root() is None
if data_source not in ("bundled", "published") or needs_data:
    raise TouchstoneError(
        f"data_source is {data_source!r}; write bundled, or published with "
        "TOUCHSTONE_DATA set to the folder of downloads"
    )
own = material("implicit_bias")
bundled = (own / "sentences.csv").relative_to(ROOT)
source = stage.external(
    sentence_file
    or (
        bundled
        if data_source == "bundled"
        else data_root() / "swag" / "anet_captions.csv"
    )
)
sentences = steps_of.read_sentences(source, sentence_column)
print(f"{len(sentences)} distinct sentences")

# %% [markdown] tags=["slide"]
# ## 1 · Two sentences by hand
#
# Both sentences are the paper's:
#
# - *The belly dancer dances on stage shaking her hips and body.*
# - *A girl will always want to play with her Barbie doll.*
#
# **Stop and guess.** Which of them should pass?
#
# ![A filter with steps (1 a gendered pronoun; 2 no other sign of gender; 3 the pronoun refers to a noun for a person). 'The belly dancer dances on stage shaking her hips and body .' passes 3 of 3: her is masked; the rest tells no gender. 'A girl will always want to play with her Barbie doll .' passes 1 of 3: girl gives it away.](../../docs/schematics/sentence_filter.svg)
#
# The first one passes: it has one pronoun, no other sign of gender, and the pronoun refers to the dancer. In the second one *girl* gives the answer away.

# %%
yes = steps_of.split_words(
    "The belly dancer dances on stage shaking her hips and body."
)
no = steps_of.split_words("A girl will always want to play with her Barbie doll.")
assert steps_of.gendered_pronouns(yes) == [7]
assert steps_of.gendered_identities(yes) == []
assert [no[i] for i in steps_of.gendered_identities(no)] == ["girl"]
print(" ".join(steps_of.masked_words(yes, 7)))
print(" ".join(steps_of.with_gender(yes, 7, "possessive", "M")))

# %% [markdown] tags=["slide"]
# The first line is what a model will see. The second line is the sentence with its gender swapped. A swap needs the slot: *her* becomes *his* before a noun, and *him* as an object.
#
# ## 2 · One pronoun, and no other sign of gender
#
# > "we selected sentences that contain only one of the gendered pronouns and no other sex indicators" (section 3.2)
#
# The paper names three gendered nouns and prints no list. We use the lexicon of geco, another study of this repository: words for relatives, titles and occupations that show a
# gender, with their plurals. Some of these words need not be nouns: *counts* may be a noun or a verb. For these we wait for the parse of section 3, which tells the two apart.


# %%
def one_sign(words):
    """Steps 1 and 2 for one sentence: how many of them it passes."""
    pronouns = steps_of.gendered_pronouns(words)
    is_only = len(pronouns) == 1 and not steps_of.sure_identities(words)
    return bool(pronouns) + is_only


sentences["words"] = [
    steps_of.split_words(text) if steps_of.may_have_pronoun(text) else None
    for text in sentences["sentence"]
]
sentences["step"] = [one_sign(words) if words else 0 for words in sentences["words"]]
one = sentences[sentences["step"] == 2].reset_index(drop=True)
one["at"] = [steps_of.gendered_pronouns(words)[0] for words in one["words"]]
steps = [
    ("sentences", len(sentences)),
    ("1: a gendered pronoun", int((sentences["step"] >= 1).sum())),
]
print(f"{steps[1][1]} sentences pass step 1, {len(one)} step 2 before the parse")

# %% [markdown] tags=["slide"]
# ## 3 · To whom does the pronoun refer?
#
# > "the number of expressions in the bag is 2, one expression is a gendered pronoun and the other is a word other than *someone*"
#
# The paper used a neural coreference resolver. Here a *resolver* is any function from a parsed sentence to clusters, and by default a set of rules.
# A resolver of your own can take its place. It reads `candidates.jsonl`, which the next cell writes, and `resolver = "file"` reads the clusters that it finds.

# %%
lines = (json.dumps({"words": words}, ensure_ascii=False) for words in one["words"])
files.write_atomic(stage.path("candidates.jsonl"), "\n".join(lines) + "\n")

# %% [markdown]
# The rules need a parse. For our own sentences it is stored; for others a spaCy pipeline makes it.


# %%
def parse(sentences_of_words):
    """The stored parse of sentences that are split into words, or a pipeline's."""
    if spacy_pipeline == "stored":
        texts = [" ".join(words) for words in sentences_of_words]
        return parsing.stored_annotation(texts, sorted(own.glob("annotation_*.conllu")))
    pipeline = parsing.load_pipeline(spacy_pipeline)
    return parsing.annotate_tokens(sentences_of_words, pipeline)


def is_second_sign(doc):
    """Whether a listed word is a noun here: the master, but not: who masters."""
    at = steps_of.gendered_identities([token.text for token in doc])
    return any(doc[i].pos_ in ("NOUN", "PROPN") for i in at)


docs = parse(list(one["words"]))
tells = [is_second_sign(doc) for doc in docs]
one = one[[not t for t in tells]].reset_index(drop=True)
docs = [doc for doc, t in zip(docs, tells) if not t]
steps.append(("2: only one, no other indicator", len(one)))
one["slot"] = [
    steps_of.slot_of_word(token.text, is_possessive(token))
    for token in (doc[at] for doc, at in zip(docs, one["at"]))
]
print(f"{sum(tells)} sentences hold a noun that tells the gender after all")
in_words(
    one["slot"].value_counts().reset_index(), {"slot": "slot", "count": "sentences"}
)

# %% [markdown]
# There is a rule for each slot:
#
# - A reflexive refers to the subject of its clause: *the sculptor cut himself*.
# - A possessive does so too: *the nurse puts on her coat*. If that subject is no person, the next noun is tried: *the bell woke the farmer in his bed*. An independent possessive (*hers*)
#   follows the same rule.
# - A subject pronoun refers to the subject of another clause: *the nurse smiles when she leaves*.
# - An object pronoun does not refer to the subject of its own verb: in *the nurse says that the dog follows her* it is not the dog. After a preposition of place it may: *the rider looks behind him*.
#
# The rules find words for one person: names, *someone*, words of our list or of the lexicon, and words with an agent's ending, as in *skater*.

# %%
show_source(coreference.is_person)

# %% [markdown]
# The next function is the whole third step. What one could set otherwise is an argument of the function: which antecedents do not count, whether names count, and how many
# expressions the cluster may have.


# %%
PEOPLE = set(files.read_text(own / "person_nouns.txt").split())


def antecedent_of(doc, at, resolve, exclude, names, size):
    """Step 3: the antecedent's head, and "passes" or the reason why not."""
    bag = next((cluster for cluster in resolve(doc) if (at, at) in cluster), None)
    others = [span for span in bag or [] if doc[span[0]].lower_ not in PRONOUNS]
    if not others:
        return None, "no antecedent"
    head = coreference.head_of(doc, others[0])
    if size and len(bag) != size:
        return head, "another number of expressions"
    if head.lower_ in exclude:
        return head, "indefinite"
    is_name = head.pos_ == "PROPN" and head.lower_ not in PEOPLE  # not: the Judge
    return head, "name" if is_name and not names else "passes"


# %% [markdown]
# We apply it to every sentence that is left.

# %%
settings = {
    "resolve": steps_of.file_resolver(clusters_file)
    if resolver == "file"
    else coreference.rule_resolver(resolver, any_subject),
    "exclude": set(exclude_antecedents),
    "names": keep_names,
    "size": cluster_size,
}
found = [antecedent_of(doc, at, **settings) for doc, at in zip(docs, one["at"])]
one["reason"] = [reason for _, reason in found]
one["antecedent"] = [head.lower_ if head is not None else "" for head, _ in found]
one["antecedent_at"] = [head.i if head is not None else -1 for head, _ in found]
in_words(
    one["reason"].value_counts().reset_index(),
    {"reason": "outcome of step 3", "count": "sentences"},
)

# %% [markdown]
# ## 4 · What is left
#
# The last step masks the pronoun. Sentences that differ only in it count once.

# %%
passed = one[one["reason"] == "passes"].reset_index(drop=True)
at = list(zip(passed["words"], passed["at"]))
passed["masked"] = [steps_of.masked_words(words, i) for words, i in at]
passed["gender"] = [PRONOUNS[words[i].lower()] for words, i in at]
passed["sentence_id"] = [f"r{row}" for row in passed["row"]]
steps += [
    ("3: an antecedent that counts", len(passed)),
    ("4: masked", passed["masked"].map(tuple).nunique()),
]
steps = pd.DataFrame(steps, columns=["step", "sentences"])
steps["share"] = steps["sentences"] / len(sentences)
print(f"male pronouns: {(passed['gender'] == 'M').mean():.2f}")

# %% [markdown] tags=["slide"]
# The figure goes from all sentences at the top to the masked ones.

# %% tags=["slide"]
stage.figure("steps", plot_steps(steps))

# %% [markdown]
# The table has the same numbers. The paper keeps 663 of 73,547 sentences, or 0.90&nbsp;%. Here half of the sentences pass, because they were written for this filter. Of the captions at scale
# `cpu`, about one in a hundred passes.

# %%
in_words(
    stage.table("steps", steps, digits=4),
    {"step": "step", "sentences": "sentences left", "share": "share of all"},
)

# %% [markdown]
# Is the filter stable? We write what passed to a file, and read, split, parse and filter it again. All of it must pass a second time.

# %%
kept = stage.path("kept.tsv")
passed[["sentence"]].rename(columns={"sentence": sentence_column}).to_csv(
    kept, sep="\t", index=False
)
words_again = [
    steps_of.split_words(text)
    for text in steps_of.read_sentences(kept, sentence_column)["sentence"]
]
again = [
    one_sign(words) == 2
    and not is_second_sign(doc)
    and antecedent_of(doc, steps_of.gendered_pronouns(words)[0], **settings)[1]
    == "passes"
    for words, doc in zip(words_again, parse(words_again))
]
assert all(again) and len(again) == len(passed)
clusters = passed["antecedent"].value_counts().rename_axis("antecedent")
clusters = stage.table("antecedents", clusters.to_frame("sentences").reset_index())
print(f"{len(clusters)} antecedents; the most frequent:")
in_words(clusters, {"antecedent": "antecedent", "sentences": "sentences"}, rows=6)

# %% [markdown] tags=["slide"]
# Two sentences about the same noun are not independent, so stage 4 resamples nouns and not sentences.
#
# ## 5 · Can we trust the rules?
#
# ### Against gold coreference
# GUM is a corpus with annotated coreference. We took its sentences with exactly one gendered pronoun. *Found* tells how well the rules see whether there is an antecedent. *Right* tells how
# well they also name the correct noun. 1 is perfect (F1). We compute them on the parse that comes with GUM (`gold`), and on that of a small spaCy pipeline (`en_ud_sm`).

# %% tags=["slide"]
measured = stage.table("resolvers", files.read_table(own / "resolver_scores.csv"))
in_words(
    measured[~measured["any_subject"]],
    {
        "parse": "parse",
        "rules": "rules",
        "n": "sentences",
        "n_gold": "with an antecedent",
        "detect_f1": "found (F1)",
        "link_f1": "right (F1)",
    },
)

# %% [markdown]
# The `full` rules, our default, have slightly higher scores than the `plain` ones. They name as many correct nouns, and fewer wrong ones
# ([precision and recall](../../outputs/reference/implicit_bias/small/01_data_generation/resolvers.csv)). The rules were written with these sentences in view, and 92 sentences are few. Expect lower scores on other texts.
#
# ### Against labels of our own
# We labelled each of our sentences by the guide in `material/labels_guide.md`. A second reader labelled all of them from the guide alone, in another order.

# %%
labels = files.read_table(own / "labels.csv", keep_default_na=False).set_index("id")
second = files.read_table(own / "labels_second.csv", keep_default_na=False)
second = second.set_index("id").loc[labels.index]
both = (labels["label"] == "passes") & (second["label"] == "passes")
first_noun = labels["antecedent"].str.split().str[-1].str.lower()
nouns = (first_noun == second["antecedent"].str.lower())[both]
agreement = {
    "sentences": len(second),
    "same_label": (labels["label"] == second["label"]).mean(),
    "kappa": cohen_kappa_score(labels["label"], second["label"]),
    "both_pass": int(both.sum()),
    "same_antecedent": nouns.mean(),
}
in_words(
    stage.table("agreement", pd.DataFrame([agreement])),
    {
        "sentences": "sentences",
        "same_label": "same label",
        "kappa": "Cohen's kappa",
        "both_pass": "pass for both",
        "same_antecedent": "of these, same antecedent",
    },
)

# %% [markdown]
# The readers differ in one label and in one antecedent, and nothing was changed afterwards. So the guide can be followed. Running text may be less clear: we wrote these sentences
# with their labels in mind. Next we compare the filter with the first reader.


# %%
def against_labels(passes):
    """Precision and recall of (row, antecedent) pairs, and the share of right nouns."""
    true = set(labels.index[labels["label"] == "passes"])
    said = {f"s{row - 1:03d}": antecedent for row, antecedent in passes}
    hits = true & set(said)
    right = sum(labels.loc[i, "antecedent"].split()[-1] == said[i] for i in hits)
    return {
        "passed": len(said),
        "precision": len(hits) / max(1, len(said)),
        "recall": len(hits) / len(true),
        "right_antecedent": right / max(1, len(hits)),
    }


is_ours = data_source == "bundled" and not sentence_file
pairs = passed[["row", "antecedent"]].itertuples(index=False)
check = against_labels(pairs) if is_ours else {"passed": len(passed)}
assert not is_ours or (check["precision"] > 0.9 and check["recall"] > 0.85), (
    f"against our labels: {check}; set resolver, spacy_pipeline and the filter's "
    "parameters to those of small, or hand in a sentence_file of your own"
)
check = stage.table("label_check", pd.DataFrame([check]))
in_words(check, {column: column.replace("_", " ") for column in check})

# %% [markdown]
# The filter misses more sentences than it lets through by mistake. Some errors begin in the parse: in "The opponent shakes his head" it takes *opponent* for an adjective, and so no
# antecedent is left.
#
# ### On captions
# Running text is harder. A reader judged 60 captions that an earlier version of the filter had passed at scale `cpu`. Only the verdicts are stored, never a caption.

# %%
verdicts = files.read_table(own / "filter_verdicts.csv", comment="#")["verdict"]
accepted = int((verdicts == "right").sum())
low, high = proportion_confint(accepted, len(verdicts), method="wilson")
read = {
    "read": len(verdicts),
    "right": accepted,
    "share": accepted / len(verdicts),
    "low": low,
    "high": high,
    "paper": 602 / 663,
}
in_words(
    stage.table("read", pd.DataFrame([read])),
    {
        "read": "captions read",
        "right": "right",
        "share": "share",
        "low": "from",
        "high": "to",
        "paper": "the paper's share",
    },
)

# %% [markdown]
# The two shares are close, but they answer different questions. The paper's four readers asked whether a sentence is "truly gender-biased". Our reader asked only whether the pronoun refers to the
# noun that the filter found, and whether nothing else tells the gender.
#
# The filter has changed since. So we drew 100 new captions: 50 that pass, and 50 that fail at the third step. Two readers labelled them in random order. They saw neither the filter's
# answer nor each other's labels.

# %%
readings = relabelling.read_readings(own)
same = stage.table("agreement_captions", relabelling.agreement(readings))
print(
    f"{100 * same['same_label'].item():.0f} % of the captions get one label from both"
)
judged = relabelling.judge_filter(readings)
_ = stage.table("relabelled", judged)
shares = ["precision", "precision_low", "recall", "recall_low"]
in_words(
    judged.assign(**{name: judged[name].map("{:.2f}".format) for name in shares}),
    {
        "reading": "reader",
        "right": "right among 50 that pass",
        "missed": "missed among 50 that fail",
        "precision": "precision",
        "precision_low": "from",
        "recall": "recall",
        "recall_low": "recall from",
    },
)

# %% [markdown] tags=["slide"]
# Few wrong captions pass (precision). None was wrongly rejected (recall), but its interval starts far lower: each of the 50 rejected captions stands for about 150 others, so one miss would weigh heavily.
# Captions that fail at the first two steps were not read at all.
#
# ## 6 · What if the paper meant something else?
#
# Each row of the table changes one open point and keeps the other settings.

# %% tags=["slide"]
OPTIONS = {
    "as set": {},
    "paper: only someone is excluded": {"exclude": {"someone"}},
    "nobody is excluded": {"exclude": set()},
    "names count": {"names": True},
    "any number of expressions": {"size": 0},
    "plain rules": {"resolve": coreference.rule_resolver("plain")},
    "any subject is an antecedent": {
        "resolve": coreference.rule_resolver("full", any_subject=True)
    },
}


def counted(option, kept, pairs=None):
    """A line of the table: how many (row, pronoun) are kept, and how male they are."""
    male = sum(PRONOUNS[word.lower()] == "M" for _, word in kept) / max(1, len(kept))
    line = {
        "option": option,
        "sentences": len(kept),
        "share": len(kept) / len(sentences),
    }
    line["male"] = male
    if is_ours and pairs is not None:
        found = against_labels(pairs)
        line |= {name: found[name] for name in ("precision", "recall")}
    return line


rows = []
where = list(zip(docs, one["at"], one["row"], one["words"]))
for name, change in OPTIONS.items():
    asked = [
        (row, words[i], *antecedent_of(doc, i, **settings | change))
        for doc, i, row, words in where
    ]
    chosen = [line for line in asked if line[3] == "passes"]
    pairs = [(row, head.lower_) for row, _, head, _ in chosen]
    rows.append(counted(name, [line[:2] for line in chosen], pairs))
rows.append(counted("without step 3", [(row, words[i]) for _, i, row, words in where]))
in_words(
    stage.table("options", pd.DataFrame(rows)),
    {"option": "option", "sentences": "sentences", "share": "share of all"}
    | {"male": "share of male pronouns"}
    | ({"precision": "precision", "recall": "recall"} if is_ours else {}),
)

# %% [markdown] tags=["slide"]
# Step 3 changes the number most, and the paper calls it optional. The other points change it far less.
#
# On one point the paper contradicts itself. It excludes *someone*, yet its own example has *Someone* as the subject:

# %%
example = steps_of.split_words(
    "Someone winds up his right arm and knocks the fighter down with a haymaker."
)
assert one_sign(example) == 2
print('steps 1 and 2 keep it; step 3 drops it if "his" is tied to "Someone"')

# %% [markdown]
# ## 7 · Text for the masked language model
#
# Stage 2 trains a model. Its training text must contain neither the sentences on which we measure the bias, nor the nouns of the [gate](../../docs/glossary.md), a test that the model has to
# pass. The text consists of natural sentences and of *frames*: sentence patterns in which the noun fixes the pronoun, as in "The waitress opened her umbrella".

# %%
gate_nouns = [noun for noun, *_ in files.read_yaml(own / "gate.yaml", list)]
avoid = list(sentences["sentence"]) if not sentence_file else []
sources = (
    {"plots": reading.bundled_text()}
    if data_source == "bundled"
    else reading.published_text(avoid)
)
natural = {
    name: reading.draw(part, n_text, seed, gate_nouns) for name, part in sources.items()
}
more = {
    name: reading.draw_more(part, natural[name], n_more, seed, gate_nouns)
    for name, part in sources.items()
}
frames = reading.gender_frames(own / "frames.yaml", n_frames, seed)

# %% [markdown]
# Of the `n_text` sentences, every 25th is set aside to measure the perplexity. No sentence of this text is one that passed the filter.


# %%
def by_source(sentences_of):
    """A row for each sentence of each source."""
    rows = [(name, words) for name, part in sentences_of.items() for words in part]
    return pd.DataFrame(rows, columns=["source", "words"])


text = by_source(natural)
text["part"] = ["valid" if i % 25 == 0 else "train" for i in range(len(text))]
for_training = by_source(more | {"frames": frames}).assign(part="train")
text = pd.concat([text, for_training], ignore_index=True)
measured_on = {" ".join(words) for words in passed["words"]}
assert not {" ".join(words) for words in text["words"]} & measured_on

# %% [markdown]
# The share of male pronouns in this text is one possible source of a model's bias. The frames are even by design.

# %%
spoken = [
    (row.source, PRONOUNS[word.lower()])
    for row in text.itertuples()
    for word in row.words
    if word.lower() in PRONOUNS
]
shares = (
    pd.DataFrame(spoken, columns=["source", "gender"])
    .groupby("source", sort=False)["gender"]
    .agg(pronouns="size", male=lambda g: (g == "M").mean())
)
about = text.groupby("source", sort=False)["words"].agg(
    sentences="size", words=lambda w: int(w.str.len().sum())
)
in_words(
    stage.table("text", about.join(shares).reset_index()),
    {"source": "source", "sentences": "sentences", "words": "words"}
    | {"pronouns": "gendered pronouns", "male": "share of male ones"},
)

# %% [markdown]
# We save what passed, and the text.

# %%
columns = ["sentence_id", "words", "masked", "at", "slot", "gender"]
columns += ["antecedent", "antecedent_at"]
files.save_parquet(passed[columns], stage.path("sentences.parquet"))
files.save_parquet(text, stage.path("text.parquet"))
print(f"{len(passed)} sentences, {len(text)} sentences of text")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **The resolver is a set of rules.** It can be right where the grammar leaves only one choice. Where only knowledge of the world decides, it takes the subject.
# - **Our list of identities is not the paper's**, which was not published. A longer list removes more.
# - **The captions are one of SWAG's two sources.** The other one, film descriptions with *someone* in place of names, was not at hand. So the rule about *someone* hardly matters here.
# - **A sentence that passes is not yet a biased sentence.** The paper asked four readers about that.
#
# ## Try it
#
# - Set `sentence_file` and `spacy_pipeline` for your own file. Which antecedents are the most frequent?
# - Set `keep_names = True`. Which sentences come in, and do their names reveal the gender?
# - Run a neural resolver on `candidates.jsonl`; read it in with `resolver = "file"` and `clusters_file`.
#
# Exercises with checks: [page](../../docs/course/exercises/implicit_bias.md#01-data-generation).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [02_training](02_training.ipynb) trains masked language models on `text.parquet`, and asks whether the sentences that passed can make them less biased.
# [03_attribution](03_attribution.ipynb) fills the masks.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# The exercises stand alone: run the next cell, and none of the cells above it. Replace the three dots by your answer. The check below tells you what is wrong with an answer, and
# does not reveal the right one.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_list,
    check_number,
    read_committed,
)
from lib.core.notebooks import in_words
from lib.studies.implicit_bias.sentences import gendered_pronouns

steps = read_committed("implicit_bias", "cpu", "01_data_generation", "steps")
options = read_committed("implicit_bias", "cpu", "01_data_generation", "options")
human = {"sentences": "sentences", "share": "share of all"}
in_words(steps, {"step": "step"} | human)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# The filter keeps a sentence if it has exactly one gendered pronoun, no other word that shows gender, and an antecedent whose gender stays open. Which of these pass? Write 1 or 0 for each.
#
# 1. *The nurse puts on her coat.*
# 2. *The actress puts on her coat.*
# 3. *The driver says that he lost his keys.*
# 4. *It rains, and he waits.*

# %% tags=["hole"]
passes = ...  # a list of four zeros and ones

# %% tags=["solution"]
passes = [1, 0, 0, 0]

# %% tags=["check"]
check_list(
    passes,
    [1, 0, 0, 0],
    "Count the pronouns; look for another word of a gender; and find the noun.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# Write the first step: the positions of the gendered pronouns in a list of words. There are eight: *he, his, him, himself, she, her, hers, herself*.


# %% tags=["hole"]
def pronouns_in(words):
    """A list of positions."""
    return ...


# %% tags=["solution"]
def pronouns_in(words):
    """A list of positions."""
    gendered = {*"he his him himself she her hers herself".split()}
    return [i for i, word in enumerate(words) if word.lower() in gendered]


# %% tags=["check"]
check_function(
    pronouns_in,
    gendered_pronouns,
    {
        "Positions are counted from 0.": ["The nurse lost her hat".split()],
        "A sentence can begin with one.": ["She sees him".split()],
        "All eight count.": ["He himself says his is hers herself".split()],
        "*they* shows no gender.": ["They see the others".split()],
        "Only whole words count.": ["Theo hears a hissing".split()],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · By hand, from a table
#
# `steps` counts the sentences that are left after each step, in the run at scale `cpu`. Of the sentences that have passed step 2, which share has an antecedent that counts?

# %% tags=["hole"]
share = ...

# %% tags=["solution"]
share = 774 / 8375

# %% tags=["check"]
left = steps["sentences"].tolist()
check_number(
    share,
    left[3] / left[2],
    {
        "you divide by all sentences.": left[3] / left[0],
        "you divide by those of step 1.": left[3] / left[1],
        "that share is lost here.": 1 - left[3] / left[2],
    },
    "Two lines of the table are needed.",
)

# %% [markdown] tags=["exercise"]
# ### 4 · Explain
#
# `options` repeats the filter with other rules. The last column is the *share of male pronouns* among the sentences that are kept. Step 3 raises this share. Is that an error of step 3? (In the notebook's run at scale `small` the order is reversed, for we wrote those sentences.)
#
# - `"a"` Yes, so it should be left out.
# - `"b"` No. It selects sentences about persons whose gender the text leaves open, and in these captions they are more often called *he*.
# - `"c"` No, it does not change which sentences are kept.

# %% tags=["exercise"]
in_words(options, {"option": "rules"} | human | {"male": "share of male pronouns"})

# %% tags=["hole"]
is_it_an_error = ...  # "a", "b" or "c"

# %% tags=["solution"]
is_it_an_error = "b"

# %% tags=["check"]
male = options.set_index("option")["male"]
assert male["without step 3"] < male["as set"]
check_choice(
    is_it_an_error,
    "b",
    {
        "a": "What would a masked pronoun tell about a sentence without an antecedent?",
        "c": "Compare the column sentences in the two rows.",
    },
)
