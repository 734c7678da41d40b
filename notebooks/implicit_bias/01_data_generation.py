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
# [Start here](../00_start_here.ipynb) · next: [02_training](02_training.ipynb) · the study: [README](README.md)
#
# "The nurse puts her coat over the chair." Nothing in this sentence says that the nurse is a woman, but for *her*. Mask the pronoun, and a language
# model has to guess. Ye et al. (arXiv 2110.01094) collect such sentences from SWAG with a four-step filter. This stage is that filter, on any file
# with a column of sentences, with every point that the paper leaves open as a parameter whose effect is shown.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how many sentences are left after each step;
# - what a rule-based resolver of pronouns is worth, on gold coreference and on labels of our own;
# - that the open points of the paper move the yield more than one would like.
#
# **You can then** apply the filter to a sentence, and say what its steps select. **You need** to know what a pronoun
# is. **Time:** 20 minutes to read, under a minute to run, 20 minutes for the exercises.
#
# | in | out (in this stage's output folder) |
# |---|---|
# | `material/sentences.csv`, 313 sentences of ours with labels, or any CSV with a column of sentences | `sentences.parquet`: a row a sentence that passed, with words, masked words, slot, gender, antecedent |
# | a spaCy parse (stored for our sentences) | `candidates.jsonl`: the words of what step 3 is asked about, for another resolver |
# | text for the masked LM of stage 2 | `text.parquet`: a row a sentence to train or to measure on |
# | | `steps`, `options`, `label_check`, `agreement`, `read`, `resolvers`, `antecedents` (`.csv`), one figure |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import json
from collections import Counter

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from lib.core.errors import TouchstoneError
from lib.core.files import read_table, read_text, read_yaml, save_parquet, write_atomic
from lib.core.notebooks import show_source
from lib.core.paths import ROOT, data_root, material
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language.lexicon import PRONOUNS
from lib.language.parse import annotate_tokens, load_pipeline, stored_annotation
from lib.language.possessives import is_possessive
from lib.plots import COLOURS, STYLE
from lib.studies.implicit_bias.coreference import head_of, is_person, rule_resolver
from lib.studies.implicit_bias.relabelling import agreement as agreement_of
from lib.studies.implicit_bias.relabelling import judge_filter, read_readings
from lib.studies.implicit_bias.sentences import (
    file_resolver,
    gendered_identities,
    gendered_pronouns,
    masked_words,
    may_have_pronoun,
    read_sentences,
    slot_of_word,
    split_words,
    sure_identities,
    with_gender,
)
from lib.studies.implicit_bias.text import (
    bundled_text,
    draw,
    gender_frames,
    published_text,
)

# %% [markdown]
# ## Settings
#
# `sentence_file` may name any CSV or TSV file (SWAG's `train.csv` as it is); left empty, the data source decides. What the paper leaves open is
# the second half of the list.

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # what is drawn for training
n_threads = 1  # CPU threads
data_source = "bundled"  # bundled (sentences and texts of ours) or published (the captions and corpora below TOUCHSTONE_DATA)
sentence_file = ""  # a CSV or TSV file of sentences in place of the data source's
sentence_column = "sent1"  # its column of sentences
spacy_pipeline = "stored"  # stored (our sentences only), environment (TOUCHSTONE_SPACY), or the name of a pipeline
resolver = "full"  # who finds antecedents: full or plain (rules), or file (clusters made elsewhere)
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
# whether a subject may be an antecedent whatever it is (rules only)
any_subject = False
n_text = 400  # natural sentences for training, per source; 0 for all
n_frames = 1000  # sentences for training whose noun fixes the pronoun

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $s$ | a sentence that passed, its pronoun masked | `masked` |
# | sex indicator | a gendered pronoun or identity | `gendered_pronouns`, `gendered_identities` |
# | bag | a cluster of expressions for one person | a list of (first word, last word) |
# | - | what the pronoun does in the sentence | `slot` |

# %%
stage = open_stage("implicit_bias", scale, "01_data_generation")
set_up(seed, n_threads)
if data_source not in ("bundled", "published") or (
    data_source == "published" and data_root() is None
):
    raise TouchstoneError(
        f"data_source is {data_source!r}; write bundled, or published with TOUCHSTONE_DATA set to the folder of downloads"
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
sentences = read_sentences(source, sentence_column)
print(f"{len(sentences)} distinct sentences")

# %% [markdown] tags=["slide"]
# ## 1 · One sentence by hand
#
# ![A filter with steps (1 a gendered pronoun; 2 no other sign of gender; 3 the pronoun speaks of the subject). 'The belly dancer dances on stage shaking her hips and body .' passes 3 of 3: her is masked; the rest tells no gender. 'A girl will always want to play with her Barbie doll .' passes 1 of 3: girl gives it away.](../../docs/schematics/sentence_filter.svg)
#
# Two sentences of the paper. The first should pass: one pronoun, no other sign of gender, and the pronoun speaks of the dancer. The second must
# not: *girl* gives the answer away.

# %%
yes = split_words("The belly dancer dances on stage shaking her hips and body.")
no = split_words("A girl will always want to play with her Barbie doll.")
assert gendered_pronouns(yes) == [7] and gendered_identities(yes) == []
assert [no[i] for i in gendered_identities(no)] == ["girl"]
print(
    " ".join(masked_words(yes, 7)),
    "|",
    " ".join(with_gender(yes, 7, "possessive", "M")),
)

# %% [markdown]
# The second line of the swap shows why the slot must be known: *her* becomes *his* before a noun and *him* elsewhere.
#
# ## 2 · Steps 1 and 2: one pronoun, and nothing else
#
# > "we selected sentences that contain only one of the gendered pronouns and no other sex indicators" (section 3.2)
#
# The paper names three gendered identities and no list. Ours is the lexicon of the geco study (387 lines: kin, titles, occupations, with their plurals).
# A quick look for the letters spares us splitting sentences that cannot pass. A list goes by letters: the verb *counts* is no nobleman. So words that need not be nouns
# wait for the parse.


# %%
def one_sign(words):
    """Steps 1 and 2 for one sentence: which of them it reaches."""
    pronouns = gendered_pronouns(words)
    return (0 if not pronouns else 1) + (
        len(pronouns) == 1 and not sure_identities(words)
    )


sentences["words"] = [
    split_words(text) if may_have_pronoun(text) else None
    for text in sentences["sentence"]
]
sentences["step"] = [one_sign(words) if words else 0 for words in sentences["words"]]
one = sentences[sentences["step"] == 2].reset_index(drop=True)
one["at"] = [gendered_pronouns(words)[0] for words in one["words"]]
steps = [
    ("sentences", len(sentences)),
    ("1: a gendered pronoun", int((sentences["step"] >= 1).sum())),
]
pd.DataFrame(
    [*steps, ("2, but for words that need not be nouns", len(one))],
    columns=["step", "sentences"],
)

# %% [markdown]
# ## 3 · Step 3: whom does the pronoun speak of?
#
# > "the number of expressions in the bag is 2, one expression is a gendered pronoun and the other is a word other than *someone*"
#
# The paper used a neural resolver. Here a resolver is any function from a parsed sentence to clusters. By default it is a set of rules;
# `resolver = "file"` reads the clusters that another system made of `candidates.jsonl`, which this cell writes.

# %%
lines = (json.dumps({"words": words}, ensure_ascii=False) for words in one["words"])
write_atomic(stage.path("candidates.jsonl"), "\n".join(lines) + "\n")

# %% [markdown]
# The rules want a parse. That of our own sentences is stored beside them; for others a spaCy pipeline is needed.


# %%
def parse(sentences_of_words):
    """The parse of sentences that are split into words: the stored one, or that of a pipeline."""
    if spacy_pipeline == "stored":
        return stored_annotation(
            [" ".join(words) for words in sentences_of_words],
            sorted(own.glob("annotation_*.conllu")),
        )
    return annotate_tokens(sentences_of_words, load_pipeline(spacy_pipeline))


def is_second_sign(doc):
    """Whether a word that need not be a noun is one here, and so tells the gender: the master, but not: who masters."""
    return any(
        doc[i].pos_ in ("NOUN", "PROPN")
        for i in gendered_identities([token.text for token in doc])
    )


docs = parse(list(one["words"]))
tells = [is_second_sign(doc) for doc in docs]
one, docs = (
    one[[not t for t in tells]].reset_index(drop=True),
    [doc for doc, t in zip(docs, tells) if not t],
)
steps.append(("2: only one, no other indicator", len(one)))
one["slot"] = [
    slot_of_word(token.text, is_possessive(token))
    for token in (doc[at] for doc, at in zip(docs, one["at"]))
]
print(
    f"{len(docs)} sentences are left; {sum(tells)} hold a noun that tells the gender after all"
)
one["slot"].value_counts().to_frame("sentences")

# %% [markdown]
# The rules go by what the pronoun is: a reflexive speaks of the subject of its clause; a possessive too, unless that is no person; a subject pronoun
# speaks of the subject of another clause; an object pronoun of neither subject nor object of its own verb, unless a preposition of place
# stands before it. A candidate is a noun for one person: a word of a list (`person_nouns.txt`), or one with the ending of an agent.

# %%
show_source(is_person)

# %% [markdown]
# The third step in full, with its open points as arguments: which antecedents do not count, whether names do, how large the bag may be.


# %%
def antecedent_of(doc, at, resolve, exclude, names, size):
    """Step 3: the head of what the pronoun speaks of, or the reason why the sentence is dropped."""
    bag = next((cluster for cluster in resolve(doc) if (at, at) in cluster), None)
    others = [span for span in bag or [] if doc[span[0]].lower_ not in PRONOUNS]
    if not others:
        return None, "no antecedent"
    head = head_of(doc, others[0])
    if size and len(bag) != size:
        return head, "another number of expressions"
    if head.lower_ in exclude:
        return head, "indefinite"
    return head, "name" if head.pos_ == "PROPN" and not is_person_word(
        head
    ) and not names else "passes"


def is_person_word(token):
    """Whether a capitalised word is a noun of the list nevertheless (Secretary, Judge)."""
    return token.lower_ in PEOPLE


PEOPLE = set(read_text(own / "person_nouns.txt").split())
resolve = (
    file_resolver(clusters_file)
    if resolver == "file"
    else rule_resolver(resolver, any_subject)
)
found = [
    antecedent_of(doc, at, resolve, exclude_antecedents, keep_names, cluster_size)
    for doc, at in zip(docs, one["at"])
]
one["reason"] = [reason for _, reason in found]
one["antecedent"] = [head.lower_ if head is not None else "" for head, _ in found]
one["antecedent_at"] = [head.i if head is not None else -1 for head, _ in found]
one["reason"].value_counts().to_frame("sentences")

# %% [markdown]
# ## 4 · Step 4: the mask, and what is left
#
# *How to read the table.* `share` is the share of all distinct sentences. The paper keeps 663 of 73,547 (0.90 %).

# %%
passed = one[one["reason"] == "passes"].reset_index(drop=True)
passed["masked"] = [
    masked_words(words, at) for words, at in zip(passed["words"], passed["at"])
]
passed["gender"] = [
    PRONOUNS[words[at].lower()] for words, at in zip(passed["words"], passed["at"])
]
passed["sentence_id"] = [f"r{row}" for row in passed["row"]]
steps = pd.DataFrame(
    [
        *steps,
        ("3: an antecedent that counts", len(passed)),
        ("4: masked", passed["masked"].map(tuple).nunique()),
    ],
    columns=["step", "sentences"],
)
steps["share"] = steps["sentences"] / len(sentences)
stage.table("steps", steps, digits=4)

# %% [markdown]
# Step 4 can make two sentences one, if they differ in nothing but the pronoun. The filter is deterministic: what it kept is written to a file, read, split, parsed
# and filtered anew, and all of it must pass again.

# %%
kept = stage.path("kept.tsv")
passed[["sentence"]].rename(columns={"sentence": sentence_column}).to_csv(
    kept, sep="\t", index=False
)
words_again = [
    split_words(text) for text in read_sentences(kept, sentence_column)["sentence"]
]
again = [
    one_sign(words) == 2
    and not is_second_sign(doc)
    and antecedent_of(
        doc,
        gendered_pronouns(words)[0],
        resolve,
        exclude_antecedents,
        keep_names,
        cluster_size,
    )[1]
    == "passes"
    for words, doc in zip(words_again, parse(words_again))
]
assert all(again) and len(again) == len(passed)
clusters = (
    passed["antecedent"]
    .value_counts()
    .rename_axis("antecedent")
    .to_frame("sentences")
    .reset_index()
)
_ = stage.table("antecedents", clusters)
print(
    f"{len(clusters)} antecedents; the most frequent: "
    + ", ".join(f"{a} {n}" for a, n in clusters.head(6).itertuples(index=False))
)
print(f"male pronouns: {(passed['gender'] == 'M').mean():.2f}")

# %% [markdown]
# The antecedents matter for the statistics: sentences about the same noun are no independent observations, so stage 4 resamples antecedents.
#
# ## 5 · Is the resolver any good?
#
# ### Against gold coreference
# GUM (the open genres, dev and test) has 92 sentences with exactly one gendered pronoun; in 46 of them a noun of the same sentence is its
# antecedent. `resolvers.csv` was measured there (a test measures it again where the data and a pipeline are at hand). *detect*: is there an antecedent at all;
# *link*: and is it the right one.

# %%
measured = read_table(own / "resolver_scores.csv")
stage.table("resolvers", measured)

# %% [markdown]
# *Reading it.* A first attempt by binding and role (`plain`) reached over more genres a detection F1 of 0.78 and a link F1 of 0.61. Asking what a proper noun is the name of, and looking further afield, gives `full`. Both lie above those figures, but over other genres; and on a parse `full` finds no more links than `plain`
# (the same 30 of 46), it only makes fewer false ones. The rules were written with these sentences in view, and 92 are few: expect less elsewhere.
#
# ### Against labels of our own
# Each bundled sentence has a label, by the guide in `material/labels_guide.md`. Another reader labelled all of them a second time, shuffled, from the guide alone.

# %%
labels = read_table(own / "labels.csv", keep_default_na=False).set_index("id")
second = (
    read_table(own / "labels_second.csv", keep_default_na=False)
    .set_index("id")
    .loc[labels.index]
)
both = (labels["label"] == "passes") & (second["label"] == "passes")
nouns = (
    labels["antecedent"].str.split().str[-1].str.lower()
    == second["antecedent"].str.lower()
)[both]
agreement = pd.DataFrame(
    [
        {
            "sentences": len(second),
            "same_label": (labels["label"] == second["label"]).mean(),
            "kappa": cohen_kappa_score(labels["label"], second["label"]),
            "both_pass": int(both.sum()),
            "same_antecedent": nouns.mean(),
        }
    ]
)
print(
    f"{len(labels)} labelled sentences: "
    + ", ".join(f"{n} {name}" for name, n in Counter(labels["label"]).most_common())
)
stage.table("agreement", agreement)

# %% [markdown]
# *Reading it.* The two differ in one label and in one antecedent, both of them slips of the first look (a *waiter* who was not seen as gendered; *him* tied to the one who lifts). Nothing was changed
# afterwards. The sentences were written with their labels in mind, so this says that the guide can be followed, and not that running text is as clear. Now the filter against the labels.


# %%
def against_labels(passes):
    """How the passing rows agree with the labels: precision, recall, and the right antecedent among the right ones."""
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
check = (
    pd.DataFrame(
        [against_labels(passed[["row", "antecedent"]].itertuples(index=False))]
    )
    if is_ours
    else pd.DataFrame({"passed": [len(passed)]})
)
assert not is_ours or (
    check["precision"].item() > 0.9 and check["recall"].item() > 0.85
), (
    f"against our labels: {check.to_dict('records')}; set resolver, spacy_pipeline and the "
    "filter's parameters to those of small, or hand in a sentence_file of your own"
)
stage.table("label_check", check)

# %% [markdown]
# What is missed is missed by the parser more often than by the rules: it reads "The opponent shakes" as an adjective and a plural, and so no
# antecedent is left. In three sentences it takes the verb *counts* for a noun, a nobleman's title. A larger pipeline would find these. On running text the filter makes more errors.
#
# ### On captions
# Of the captions that pass at scale cpu, 60 were drawn and read by one reader; the verdicts are stored by line (`filter_verdicts.csv`). The paper's readers accepted 602 of 663.

# %%
read = read_table(own / "filter_verdicts.csv", comment="#")["verdict"]
accepted = int((read == "right").sum())
low, high = proportion_confint(accepted, len(read), method="wilson")
print(", ".join(f"{n} {verdict}" for verdict, n in read.value_counts().items()))
stage.table(
    "read",
    pd.DataFrame(
        [
            {
                "read": len(read),
                "right": accepted,
                "share": accepted / len(read),
                "low": low,
                "high": high,
                "paper": 602 / 663,
            }
        ]
    ),
)

# %% [markdown]
# *Reading it.* The captions were read as they passed then. Twice *the audience* was taken for one person (the word has left the list since), and once a guest has a name behind the verb; in the doubtful ones a *manicurist* and a *piercing artist* may work on
# somebody else. One reader is no four, and our question was narrower than the paper's ("truly biased").
#
# For the filter as it is now 100 captions were drawn anew, 50 that pass and 50 that reach step 3 and fail there. A reader labelled them by points 1 to 7 of the guide, shuffled and without
# the filter's answer, and a second one did the same without seeing the first one's labels. They are stored by line (`captions_first.csv`, `captions_second.csv`), never a caption.

# %%
readings = read_readings(own)
stage.table("agreement_captions", agreement_of(readings))
stage.table("relabelled", judge_filter(readings))

# %% [markdown]
# *Reading it.* `right` and `missed` are captions that a reader lets pass, of those that passed the filter and of those that did not. The recall is among captions with one pronoun and no other
# sign of gender: what the first two steps drop was not read. With no or one caption missed its interval is wide, for one in fifty would stand for 150.
#
# ## 6 · What the open points do
#
# One at a time, the others as they are above.

# %%
OPTIONS = {
    "as set": {},
    "paper: only someone is excluded": {"exclude": {"someone"}},
    "nobody is excluded": {"exclude": set()},
    "names count": {"names": True},
    "any number of expressions": {"size": 0},
    "plain rules": {"resolve": rule_resolver("plain")},
    "any subject is an antecedent": {
        "resolve": rule_resolver("full", any_subject=True)
    },
}
settings = {
    "resolve": resolve,
    "exclude": set(exclude_antecedents),
    "names": keep_names,
    "size": cluster_size,
}
rows = []
for name, change in OPTIONS.items():
    heads = [
        antecedent_of(doc, at, **settings | change) for doc, at in zip(docs, one["at"])
    ]
    kept = [
        (row, head.lower_, words[at])
        for (head, reason), row, words, at in zip(
            heads, one["row"], one["words"], one["at"]
        )
        if reason == "passes"
    ]
    male = sum(PRONOUNS[word.lower()] == "M" for *_, word in kept) / max(1, len(kept))
    rows.append(
        {
            "option": name,
            "sentences": len(kept),
            "share": len(kept) / len(sentences),
            "male": male,
            **(
                {
                    k: v
                    for k, v in against_labels([r[:2] for r in kept]).items()
                    if k in ("precision", "recall")
                }
                if is_ours
                else {}
            ),
        }
    )
male = sum(
    PRONOUNS[words[at].lower()] == "M" for words, at in zip(one["words"], one["at"])
) / max(1, len(one))
no_step_3 = {
    "option": "without step 3",
    "sentences": len(one),
    "share": len(one) / len(sentences),
    "male": male,
}
options = stage.table("options", pd.DataFrame([*rows, no_step_3]))
options.astype(object).fillna("")

# %% [markdown]
# *Reading it.* Step 3 is what costs sentences, and the paper calls it optional. It is not our list of persons that costs them: of what *any subject* adds at scale cpu we read the nouns, and they are people in
# the plural, dogs, cameras and crowds; two nouns for one person were missing (*goer*, *juvenile*) and are listed now. The step's exclusion of *someone* contradicts its own example, "Someone winds
# up his right arm", which passes only where nobody is excluded, or if *his* was tied to *the fighter*.

# %%
flagship = split_words(
    "Someone winds up his right arm and knocks the fighter down with a haymaker."
)
assert one_sign(flagship) == 2
print(
    'steps 1 and 2 keep the paper\'s example; step 3 with exclude_antecedents = ["someone"] drops it when *his* is tied to *Someone*'
)

# %% [markdown] tags=["slide"]
# ## 7 · The figure
#
# The funnel: one dot a step on a logarithmic scale (dots, since a bar has no length there), from all sentences at the top to what is masked.

# %% tags=["slide"]
with plt.rc_context(STYLE):
    figure, ax = plt.subplots(figsize=(6.5, 2.2), layout="constrained")
    ax.plot(steps["sentences"], steps["step"], "o-", color=COLOURS[0])
    ax.set(
        xscale="log",
        xlabel="sentences (logarithmic)",
        xlim=(steps["sentences"].min() / 2, steps["sentences"].max() * 8),
        ylim=(len(steps) - 0.5, -0.5),
    )
    for y, (n, share) in enumerate(zip(steps["sentences"], steps["share"])):
        ax.text(n * 1.25, y, f"{n:,} ({share:.1%})", va="center")
stage.figure("steps", figure)
steps[["step", "sentences"]]

# %% [markdown]
# ## 8 · Text for the masked LM
#
# Stage 2 trains a masked-LM head. It must not read what its bias is measured on, nor any sentence with a noun of the gate (`material/gate.yaml`).
# It reads natural text (at scale small plot summaries of ours) and, at every scale, sentences from frames ("N opened their umbrella") whose noun fixes the pronoun; stage 2 also shows
# a model that has not read the frames.

# %%
gate_nouns = [noun for noun, *_ in read_yaml(own / "gate.yaml", list)]
sources = (
    {"plots": bundled_text()}
    if data_source == "bundled"
    else published_text(list(sentences["sentence"]) if not sentence_file else [])
)
natural = {name: draw(part, n_text, seed, gate_nouns) for name, part in sources.items()}
frames = gender_frames(own / "frames.yaml", n_frames, seed)

# %% [markdown]
# Of the natural sentences every 25th is kept for measuring. No sentence that passed is among them.

# %%
text = pd.DataFrame(
    [(name, words) for name, part in natural.items() for words in part],
    columns=["source", "words"],
)
text["part"] = ["valid" if i % 25 == 0 else "train" for i in range(len(text))]
text = pd.concat(
    [text, pd.DataFrame({"source": "frames", "words": frames, "part": "train"})],
    ignore_index=True,
)
assert not {" ".join(words) for words in text["words"]} & {
    " ".join(words) for words in passed["words"]
}

# %% [markdown]
# The share of male pronouns in what a model reads is one source of its bias. The frames are even.

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
stage.table("text", about.join(shares).reset_index())

# %% [markdown]
# Saved: what passed, and the text.

# %%
columns = [
    "sentence_id",
    "words",
    "masked",
    "at",
    "slot",
    "gender",
    "antecedent",
    "antecedent_at",
]
save_parquet(passed[columns], stage.path("sentences.parquet"))
save_parquet(text, stage.path("text.parquet"))
print(f"{len(passed)} sentences, {len(text)} sentences of text")

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **The resolver is a set of rules.** It finds what syntax decides. Where knowledge of the world is needed it takes the subject.
# - **Our list of identities is not the paper's**, which was not published. A longer list removes more.
# - **The captions are one of SWAG's two sources.** The other half, film descriptions with *someone* in the place of names, was not at hand, so that the
#   criterion on *someone* hardly bites.
# - **A sentence that passes is not a biased sentence.** The paper had four readers for that; we had one.
#
# ## Try it
#
# - Set `sentence_file` to a file of your own. Which antecedents are the most frequent?
# - Set `keep_names = True`. Which sentences come in, and would a model know the gender?
# - Run a neural resolver on `candidates.jsonl` and read it in with `resolver = "file"`.

# %%
stage.close(globals())

# %% [markdown]
# ## Hand-over
#
# [02_training](02_training.ipynb) trains a masked LM on `text.parquet` and asks whether training on such sentences with swapped pronouns makes it
# less biased. [03_attribution](03_attribution.ipynb) fills the masks.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import (
    check_choice,
    check_function,
    check_list,
    check_number,
    read_committed,
)
from lib.studies.implicit_bias.sentences import gendered_pronouns

steps = read_committed("implicit_bias", "cpu", "01_data_generation", "steps")
options = read_committed("implicit_bias", "cpu", "01_data_generation", "options")
steps.round(3)

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
        "*they* shows no gender.": ["They see the others".split()],
        "Only whole words count.": ["Theo hears a hissing".split()],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · By hand, from a table
#
# `steps` counts the sentences that are left after each step at scale `cpu`. Of the sentences that have passed step 2, which share has an antecedent that counts?

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
# `options` repeats the filter with other rules; `male` is the share of male pronouns among the sentences that are kept. Without step 3 the share is smaller. Is step 3 to blame for the surplus of *he*?
#
# - `"a"` Yes, so it should be left out.
# - `"b"` No. It selects sentences about persons whose gender the text leaves open, and in these captions they are more often called *he*.
# - `"c"` No, it does not change which sentences are kept.

# %% tags=["hole"]
is_it_to_blame = ...  # "a", "b" or "c"

# %% tags=["solution"]
is_it_to_blame = "b"

# %% tags=["check"]
male = options.set_index("option")["male"]
assert male["without step 3"] < male["as set"]
check_choice(
    is_it_to_blame,
    "b",
    {
        "a": "What would a masked pronoun tell about a sentence without an antecedent?",
        "c": "Compare the column sentences in the two rows.",
    },
)
