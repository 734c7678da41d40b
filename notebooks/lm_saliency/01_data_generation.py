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
# # lm_saliency, stage 1 of 5: where do we know which words should matter to a language model?
#
# [Start here](../00_start_here.ipynb) · the study: [README](README.md) · next: [02_training](02_training.ipynb)
#
# A language model reads *the keys to the cabinet* and predicts *are*. Which words should an explanation name? Ding
# and Koehn (NAACL 2021) answer with grammar. The verb agrees with *keys*, the *cue*. *Cabinet* has the wrong number; it
# is an *attractor*. We call such a beginning of a sentence a *line*. An explanation of the right verb *passes* if a cue outscores
# every attractor.
#
# ## What we found
#
# - **In the paper's templates the nearest noun is the wrong one in six lines of seven.** The rule *point at the nearest noun*
#   passes only 14 %<!-- lm_saliency/cpu/01_data_generation/statistics[set=Syneval].nearest --> of the lines of Syneval, a
#   set of template sentences. Random scores pass half.
#   [See the figure](../../outputs/reference/lm_saliency/cpu/01_data_generation/sets.png).
# - **Real sentences are less one-sided.** In EWT, parsed English web text, the same rule passes
#   46 %<!-- lm_saliency/cpu/01_data_generation/statistics[set=EWT].nearest --> if the expected verb is the answer;
#   62 %<!-- lm_saliency/cpu/04_metrics/floors[dataset=EWT, scheme=Transformer].nearest --> for the Transformer's own
#   answers (stage 4).
#   [See the table](../../outputs/reference/lm_saliency/cpu/01_data_generation/statistics.csv).
# - **Real lines that can be used are rare.** EWT has
#   14,583<!-- lm_saliency/cpu/01_data_generation/funnel[filter=candidates].left --> candidate verbs. The filters of section 3 keep
#   431<!-- lm_saliency/cpu/01_data_generation/funnel[filter=attractor within ten words].left -->.
#   [See the filters](../../outputs/reference/lm_saliency/cpu/01_data_generation/funnel.csv).
#
# Scale `cpu`, published data. The page below shows the same steps at scale `small`.

# %% [markdown] tags=["slide"]
# ## You will see
#
# - how two synthetic sets are written from templates, one of them exactly as it was published;
# - how two natural sets are filtered from real text, and what each filter removes;
# - how many lines of each set two simple rules pass without a model;
# - the examples for *probes*, small classifiers on a model's states (stage 2).
#
# **You can then** mark cues and attractors in a sentence, and say which rule fails on a set. **You need** to know subject
# and verb of a sentence. **Time:** 20 minutes to read, under a minute to run, [15 minutes for the exercises](../../docs/course/exercises/lm_saliency.md#01-data-generation).
#
# | in | out (in this stage's output folder) |
# |---|---|
# | word lists and frames of ours, the words of Syneval | `sets.parquet`: the lines of each set, with marked nouns; `whole.parquet`: uncut |
# | or, at `cpu`, published sets, treebanks and corpora | `sets/<name>/all.*.txt`: the same in the format of the authors' code (*tarsius*) |
# | | `corpus/train.txt`, `corpus/valid.txt`, `number`, `number_matched`, `gender` (`.parquet`): what models and probes learn from |

# %%
import lib.same_numbers  # first: the same instructions on every processor

import numpy as np
import pandas as pd

from lib.core import files, paths
from lib.core.errors import TouchstoneError
from lib.core.notebooks import show_source, show_table
from lib.core.seeds import set_up
from lib.core.stage import open_stage
from lib.language import corpora
from lib.studies.lm_saliency import extraction, figures, grammar, recipes, templates
from lib.studies.lm_saliency import lines as agreement_lines
from lib.studies.lm_saliency import text as texts
from lib.studies.lm_saliency.naming import CONSTRUCTIONS, PROBES, SECTIONS, columns

# %% [markdown]
# ## Settings
#
# The values below need no download. With `data_source = "published"` this stage reads the published sets and corpora from
# the folder `TOUCHSTONE_DATA`, and checks every file against its SHA-256 (`material/sources.yaml`).

# %% tags=["parameters"]
scale = "small"  # which settings: small, cpu or paper; names the output folder
seed = 0  # for all draws of this stage
n_threads = 1  # CPU threads
data_source = "bundled"  # bundled (our sentences) or published
n_sentences = 20000  # sentences of the bundled corpus
n_gender_lines = 1000  # lines of the synthetic gender set of ours
n_held_out = 600  # lines of each held-out set of the bundled grammar
# share of the corpus that measures perplexity and chooses a probe's epoch
valid_share = 0.05
longest_prefix = 40  # words of a probe's example; longer ones keep their end
longest_line = 512  # words of a test line; longer ones keep their end
wikitext = ""  # also read wikitext-2 or wikitext-103 (a download), or nothing
books_words = 0  # words of books that models also read, about (0: none)
book_valid_words = 60000  # words of other authors that join the validation part
book_parts = 20  # groups of authors; the first one is used for validation only
n_grammar = 0  # sentences of the grammar beside a published corpus, for `with_grammar`
# whether number probes are trained only on tagged text, with balanced classes
tagged_probes = False
# cues of the sets from coreference: all mentions of the pronoun's gender (gender, as in
# the paper), or those of its own cluster (cluster, as in the authors' code)
cue_rule = "gender"

# %% [markdown]
# | symbol | meaning | here |
# |---|---|---|
# | $F$ | the *prefix*: the words before the predicted one | `prefix` |
# | $y$ | the class of the predicted word: 0 singular or male, 1 plural or female | `tag` |
# | $\mathcal{C}$, [cues](../../docs/glossary.md) | nouns of the class of the predicted word | `cues`, spans of positions |
# | $\mathcal{A}$, [attractors](../../docs/glossary.md) | nouns of the other class | `attractors` |
# | [template](../../docs/glossary.md) | lines that differ in slots alone | `pattern` |
#
# A *span* is a pair (first, last) of positions, counted from 0, both included.

# %%
if data_source not in ("bundled", "published"):
    raise TouchstoneError(f"data_source is {data_source!r}; write bundled or published")
is_published = data_source == "published"
stage = open_stage("lm_saliency", scale, "01_data_generation")
set_up(seed, n_threads)
pd.set_option("display.max_colwidth", None)
folder = paths.material("lm_saliency")
sources = corpora.read_sources(folder / "sources.yaml")
syneval, winobias, word_lists = (
    files.read_yaml(folder / f"{name}.yaml")
    for name in ("syneval", "winobias", "grammar")
)
print(len(syneval["sections"]), "sections,", len(winobias["frames"]), "frames,")
print(len(" ".join(map(str, word_lists.values())).split()), "words of the grammar")

# %% [markdown] tags=["slide"]
# ## 1 · One line by hand
#
# ![The words 'the author that the taxi drivers like', then an empty place for is or are. An arrow leads from the place to the cue, author, with which the verb agrees. A dashed arrow leads to the attractor, drivers, which would ask for are.](../../docs/schematics/cue_and_attractor.svg)
#
# > the author that the taxi drivers like ...
#
# **Stop and guess.** Which verb comes next, *is* or *are*? Which word decides, and which could mislead?
#
# The verb is *is*, because it agrees with *author*. So *author*, at position 1, is the cue, and the class is 0, singular.
# *Drivers*, at position 5, has the other number and is the attractor. *Taxi* is not marked. The asserts compare this
# answer with our code's. *Person first*: the first noun names a person.

# %%
rows = templates.syneval_rows(syneval)
joined = rows["prefix"].map(" ".join)
example = rows[joined == "the author that the taxi drivers like"].iloc[0]
assert example["tag"] == 0
assert (example["cues"], example["attractors"]) == ([(1, 1)], [(5, 5)])
section, _, number = example["pattern"].rpartition("_")
print(f"the verb stands {SECTIONS[section]}; the cue is {number}")

# %% [markdown] tags=["slide"]
# ## 2 · Two sets from templates
#
# **Number: Syneval.** Marvin and Linzen (2018) wrote sentences from templates, patterns with slots for words. The paper
# keeps twelve sections with a singular and a plural noun each, and cuts every sentence before its verb. Twelve patterns
# and 52 words produce all lines.

# %%
show_source(templates.syneval_rows)
sections = rows.groupby("pattern", sort=False).agg(
    lines=("tag", "size"), first=("prefix", "first")
)
assert (len(rows), len(sections)) == (6280, 24)
parts = sections.index.str.rpartition("_")
shown = sections.assign(
    place=parts.get_level_values(0).map(SECTIONS),
    number=parts.get_level_values(2),
    first=sections["first"].map(" ".join),
)
human = {"place": "the verb stands", "number": "cue", "first": "first line"}
show_table(shown.iloc[[0, 1, 8, 16, 18, 20, 22]], human | columns("lines"))

# %% [markdown]
# Our tests compare all 6280 lines with the published files. So does this cell if they are there.

# %%
if is_published:
    theirs = agreement_lines.read_agreement(
        corpora.source_path("tarsius/Syneval", sources)
    )
    same = [
        list(theirs[column]) == list(rows[column])
        for column in ("prefix", "tag", "cues", "attractors")
    ]
    assert all(same)
what = "compared with the published files"
print(what if is_published else f"not {what} here: data_source is bundled")

# %% [markdown]
# **Gender: Winobias.** Each line names one woman and one man, and a pronoun of either gender could follow. By the paper's
# convention the female pronoun is expected. So the woman is always the cue; half of the lines name her first. The
# published set has 148 sentence frames. Ours has 25 others, and the same nouns.

# %%
gender_rows = templates.winobias_rows(winobias, n_gender_lines, seed)
if is_published:
    gender_rows = agreement_lines.read_agreement(
        corpora.source_path("tarsius/Winobias", sources)
    )
    gender_rows["pattern"] = gender_rows["cluster"] = [
        " ".join(
            "{}" if (i, i) in row.cues + row.attractors else word
            for i, word in enumerate(row.prefix)
        )
        + f" {row.cues[0] < row.attractors[0]}"
        for row in gender_rows.itertuples()
    ]
sizes = gender_rows["pattern"].value_counts()
print(f"{len(gender_rows)} lines, {len(sizes)} templates,", end=" ")
print(f"{(sizes > 1).sum()} of them with two lines or more")
print(*gender_rows["prefix"].map(" ".join)[[0, len(gender_rows) - 1]], sep="\n")

# %% [markdown] tags=["slide"]
# In Winobias a template is a frame together with an order: the woman is named first, or the man.
#
# ## 3 · Number in real sentences: filters on trees
#
# Every present-tense verb is a candidate; so are *was* and *were*. We keep it (paper: appendix A.1) if
#
# 1. its subject is an agreeing noun (our addition), and an attractor stands before the verb;
# 2. the verb does not directly follow its subject;
# 3. at least one attractor stands after the subject, or at most ten words before it.
#
# The syntax trees follow Universal Dependencies: every word points to its *head*. In *the keys are old*, *old* is the
# head of both *keys* and *are*. So the subject of *are* is found through *old*. Each of the small trees below shows one
# outcome. A word is (form, part of speech, index of its head or -1, relation).

# %% tags=["slide"]
keys = [
    extraction.Word("keys", "NNS", 3, "nsubj"),
    extraction.Word("to", "IN", 2, "case"),
    extraction.Word("cabinets", "NNS", 0, "nmod"),
    extraction.Word("are", "VBP", -1, "root"),
]
no_attractor, line = (
    keys,
    [*keys[:2], extraction.Word("cabinet", "NN", 0, "nmod"), keys[3]],
)
adjacent = [
    extraction.Word("cabinet", "NN", 2, "obl"),
    extraction.Word("keys", "NNS", 2, "nsubj"),
    extraction.Word("are", "VBP", -1, "root"),
]
far = [
    extraction.Word("cabinet", "NN", 13, "obl"),
    *[extraction.Word("very", "RB", 13, "advmod")] * 10,
    extraction.Word("keys", "NNS", 13, "nsubj"),
    extraction.Word("now", "RB", 13, "advmod"),
    extraction.Word("are", "VBP", -1, "root"),
]
by_hand = {
    "all nouns plural": no_attractor,
    "verb after its subject": adjacent,
    "attractor far away": far,
    "kept": line,
}
assert extraction.subject_of_verb(line, 3) == 0
show_table(
    pd.DataFrame(
        [
            {"tree": name} | extraction.number_lines([tree])[1]
            for name, tree in by_hand.items()
        ]
    ),
    columns("tree", *extraction.number_lines([line])[1]),
)

# %% [markdown]
# Each tree stops at its filter, and the last one passes all. With the published data the same
# function reads the treebank EWT.

# %%
trees = list(by_hand.values())
if is_published:
    parts = [f"treebanks/en_ewt-ud-{part}.conllu" for part in ("train", "dev", "test")]
    trees = [
        tree
        for part in parts
        for tree in extraction.read_trees(corpora.source_path(part, sources))
    ]
ewt, funnel = extraction.number_lines(trees)
kept_by = pd.DataFrame({"filter": list(funnel), "left": list(funnel.values())})
show_table(stage.table("funnel", kept_by), {"filter": "filter", "left": "verbs left"})

# %% [markdown] tags=["slide"]
# ## 4 · Gender in real documents: coreference
#
# A *mention* is a phrase for a person or thing, and a *coreference cluster* holds all mentions of the same one.
# Candidates are mentions that are nothing but a form of *he* or *she*. Who is a woman, and who a man? The first kind of
# evidence in a cluster decides:
#
# 1. its pronouns;
# 2. a title, *Mr., Ms., Mrs.*, at the start of a mention;
# 3. first names.
#
# If a mention lies inside another, its words belong to it alone. If two mentions overlap in part, the shared words
# belong to neither. A line needs a cue and an attractor, and the nearest mention must not have the pronoun's gender.
#
# **Stop and guess.** *Ann met the boss of Mr. Lee. She saw Mr. Lee before her trip.* For *her*, which words are
# cues, which are attractors, and what is *boss*?

# %%
words = "Ann met the boss of Mr. Lee . She saw Mr. Lee before".split()
Mention = extraction.Mention
lee = [Mention(5, 6, "lee"), Mention(10, 11, "lee")]
ann = [Mention(0, 0, "ann"), Mention(8, 8, "ann")]
mentions = [*ann, *lee, Mention(2, 6, "boss"), Mention(13, 13, "ann")]
lines = extraction.gender_lines(
    words + ["her", "trip"], mentions, {"ann": 1}, "by hand"
)
assert len(lines) == 2 and lines[1]["prefix"] == words  # one for She, one for her
assert lines[1]["cues"] == [(0, 0), (8, 8)]
assert lines[1]["attractors"] == [(5, 6), (10, 11)]
for side in ("cues", "attractors"):
    print(side, [" ".join(words[a : b + 1]) for a, b in lines[1][side]])

# %% [markdown]
# *The boss of* belongs to the mention *the boss of Mr. Lee*, which begins with no title. So its gender is unknown, and
# these words are neither cues nor attractors. The published documents are those of OntoGUM, whose gold coreference has
# the style of CoNLL-2012, the paper's set.

# %%
names = {
    name: gender
    for gender, key in enumerate(("male_names", "female_names"))
    for name in word_lists[key].split()
}
conll = (
    sorted(corpora.source_path("treebanks/ontogum", sources).glob("*.conll"))
    if is_published
    else []
)
documents = [(f.stem, *found) for f in conll for found in extraction.read_conll2012(f)]
ontogum = pd.DataFrame(
    [
        line
        for name, *found in documents
        for line in extraction.gender_lines(*found, names, name, cue_rule)
    ]
)
told = "" if is_published else ": OntoGUM is read at scale cpu"
print(f"{len(documents)} documents, {len(ontogum)} lines{told}")

# %% [markdown] tags=["slide"]
# ## 5 · A corpus to learn from
#
# A small model learns nothing from natural text in a minute. So at scale `small` models are trained on a grammar of ours. More than half of its sentences put something between a noun and its verb.

# %%
lexicon, shown = grammar.grammar_words(word_lists, syneval, winobias, seed), []
for kind in grammar.KINDS:
    rng = np.random.default_rng(seed + 8)
    one = grammar.number_sentence(lexicon, kind, rng, held_out=False)
    words, verb = [word for word, _ in one.tokens], one.tokens[one.place][0]
    shown.append((CONSTRUCTIONS[kind], " ".join(words), verb))
show_table(pd.DataFrame(shown), {0: "the verb stands", 1: "sentence", 2: "verb"})

# %% [markdown]
# The last two constructions occur only in the held-out set. One tenth of all pairs of subject and main verb is kept from models, too.
#
# With the published data the text is natural: six files from four public sources. This is how one is converted.

# %%
show_source(recipes.masc_lines)
used = {n: about for n, about in sources.items() if about["use"].endswith("corpus")}
for name in used if is_published else []:
    recipes.build_corpus(name, sources)
origins = pd.DataFrame(
    [{"corpus": n.rpartition("/")[2], **about} for n, about in used.items()]
)
fields = ["corpus", "source", "commit", "licence", "recipe", "lines_sha256"]
show_table(
    stage.table("corpora", origins[fields]),
    columns(corpus="file") | columns("recipe", "commit", "licence"),
)

# %% [markdown]
# At `cpu`, sentences that begin like EWT's lines are left out. `wikitext` adds the paper's corpus, WikiText-103, by download
# (we never fetched it). `books_words` adds public-domain books; no author is in both training and validation text.
# `n_grammar` also writes sentences of the grammar, for models that read both; none begins like a line of Syneval.

# %%
natural_test = list(ewt["prefix"]) if is_published else []
sentences = (
    corpora.published_corpus(sources)
    if is_published
    else grammar.corpus_sentences(lexicon, n_sentences, seed)
)
if wikitext:
    plain = corpora.read_plain(recipes.fetch_wikitext(wikitext))
    sentences += [[(word, "") for word in words] for words in plain]
kept = texts.without_prefixes(sentences, natural_test)
order = np.random.default_rng(seed).permutation(len(kept))
n_valid = round(valid_share * len(kept))
corpus = {
    "valid": [kept[i] for i in order[:n_valid]],
    "train": [kept[i] for i in order[n_valid:]],
}
read = texts.with_books(
    corpus, natural_test, books_words, book_valid_words, book_parts, seed
)
if n_grammar:
    taught = grammar.corpus_sentences(lexicon, n_grammar, seed)
    read["grammar"] = texts.without_prefixes(taught, list(rows["prefix"]))

# %% [markdown]
# How much is that?

# %%
types = {word.lower() for sentence in kept for word, _ in sentence}
assert len(types) >= 2000, (
    f"the corpus has {len(types)} different words and needs 2000; raise n_sentences"
)
for name, part in read.items():
    print(name, len(part), "lines,", sum(map(len, part)), "tokens")
print(len(types), "word types;", len(sentences) - len(kept), "lines left out")

# %% [markdown] tags=["slide"]
# ## 6 · Which rules fail on which set?
#
# At scale `small`, *Held-out number* and *Held-out gender* are held-out sentences of the grammar. Of a line longer than
# `longest_line` only the last words are kept. The line is left out if no cue or attractor remains.

# %%
if is_published:
    sets = {"Syneval": rows, "EWT": ewt, "Winobias": gender_rows, "OntoGUM": ontogum}
    for name in ("PTB", "CoNLL"):
        if (where := paths.data_root() / "tarsius" / name).is_dir():
            licensed = agreement_lines.read_agreement(where)
            clusters = [f"line {i}" for i in range(len(licensed))]
            sets[name] = licensed.assign(pattern=name, cluster=clusters)
else:
    sets = {
        "Syneval": rows,
        "Held-out number": grammar.held_out_rows(lexicon, "number", n_held_out, seed),
        "Winobias": gender_rows,
        "Held-out gender": grammar.held_out_rows(lexicon, "gender", n_held_out, seed),
    }
n_before = {name: len(lines) for name, lines in sets.items()}
sets, whole = agreement_lines.shortened(sets, longest_line)
for name, lines in sets.items():
    for i, row in enumerate(lines.itertuples(), start=1):
        at = f"set {name}, line {i}"
        agreement_lines.check_line(row.prefix, row.cues, row.attractors, at)

# %% [markdown]
# How many lines pass without a model? *Random scores* pass with a chance that can be computed exactly. The rule *nearest
# noun* scores the last marked noun highest. Such a rule is a [floor](../../docs/glossary.md): a method that stays below
# it has shown nothing about the model.


# %%
def distances(lines):
    """Words between the last span of each side and the predicted word, capped at 9."""
    return pd.DataFrame(
        {
            side: [
                min(9, len(row.prefix) - 1 - max(end for _, end in getattr(row, side)))
                for row in lines.itertuples()
            ]
            for side in ("cues", "attractors")
        }
    )


statistics = pd.DataFrame(
    [
        {"set": name, "left_out": n_before[name] - len(lines)}
        | agreement_lines.agreement_statistics(lines)
        for name, lines in sets.items()
    ]
)
far = {name: distances(part) for name, part in sets.items()}
far = pd.concat(far, names=["set", "line"])
shares = far.melt(ignore_index=False, var_name="side", value_name="words").groupby(
    ["set", "side"], sort=False
)["words"]
plotted = shares.value_counts(normalize=True).sort_index().rename("share").reset_index()
assert len(stage.table("figure", plotted)) == len(plotted)

# %% [markdown] tags=["slide"]
# Left: the share of lines that each rule passes. Right: the number of words from the last cue, and from the last
# attractor, to the predicted word.

# %% tags=["slide"]
hardest = statistics.loc[statistics["nearest"].idxmin()]
title = (
    f"{hardest['set']}: the nearest noun is a cue in {hardest['nearest']:.0%} of lines"
)
stage.figure("sets", figures.plot_sets(statistics, plotted, title))

# %% [markdown]
# The table has the numbers on the left
# ([figure.csv](../../outputs/reference/lm_saliency/small/01_data_generation/figure.csv) has those on the right):

# %%
human = {"tag_0": "singular or male", "tag_1": "plural or female"}
human = columns("set", "lines") | human | {"words_mean": "words, mean"}
human |= {"random": "random scores pass", "nearest": "nearest noun passes"}
show_table(stage.table("statistics", statistics, 3), human)

# %% [markdown] tags=["slide"]
# *Reading it.* In Syneval at most one word usually separates the attractor from the predicted verb. So an explanation
# that simply favours late words fails there. In Winobias the order of the two nouns is balanced, and the rule passes half.
#
# **Two checks.** First, in sets of under 2,000 lines, the share that random scores pass in 200 draws agrees with the exact
# chance.


# %%
def drawn(lines, n_draws=200):
    """The share of lines that random scores pass, over several draws."""
    rng, passed = np.random.default_rng(seed), []
    for row in lines.itertuples():
        scores = rng.random((n_draws, len(row.prefix)))
        cue, attractor = (
            scores[:, agreement_lines.span_tokens(spans)].max(axis=1)
            for spans in (row.cues, row.attractors)
        )
        passed.append(cue > attractor)
    return np.mean(passed)


check = [
    (name, drawn(lines), agreement_lines.random_baseline(lines).mean())
    for name, lines in sets.items()
    if len(lines) < 2000
]
check = pd.DataFrame(check, columns=["set", "drawn", "exact"])
assert np.allclose(check["drawn"], check["exact"], atol=0.01), (
    f"drawn and exact differ: {check.round(3).to_dict('records')}; raise the lines of "
    "a set (n_gender_lines, n_held_out), for so few leave it to chance"
)
human = columns("set", drawn="pass in 200 draws", exact="pass, exact")
show_table(check.round(3), human)

# %% [markdown]
# Second, we exchange cues and attractors. The rule *nearest noun* must then pass exactly the lines that it failed,
# because one of the two spans is always last. The output counts the pairs that section 5 keeps from the models.

# %%
swapped = {
    name: lines.rename(columns={"cues": "attractors", "attractors": "cues"})
    for name, lines in sets.items()
}
for name in sets:
    after = agreement_lines.nearest_baseline(swapped[name]).mean()
    assert np.isclose(after, 1 - agreement_lines.nearest_baseline(sets[name]).mean())
pairs = [(noun, verb) for noun in lexicon["people"] for verb in lexicon["verbs"]]
share = np.mean([grammar.is_held_out(*pair) for pair in pairs])
print(f"held out: {share:.3f} of {len(pairs)} pairs of a person and a verb")

# %% [markdown]
# ## 7 · What the probes learn from
#
# A number [probe](../../docs/glossary.md) learns from verbs of the corpus that show a number, with the words
# before them. A gender probe learns from pronouns in lower case, hence from none that begins a sentence. In a second
# set of number examples, *number, matched*, the nearest noun is no clue: in each class it is as often singular as plural.
# Books have no tags, and are not used for probes.

# %%
examples = {
    "number": {
        name: [e for s in part for e in texts.number_examples(s)]
        for name, part in corpus.items()
    },
    "gender": {
        name: [e for s in part for e in texts.gender_examples([w for w, _ in s])]
        for name, part in corpus.items()
    },
}
probes = {
    task: texts.probe_table(parts, longest_prefix) for task, parts in examples.items()
}
if tagged_probes:
    probes["number"] = texts.tagged_table(corpus, longest_prefix, seed)
probes["number_matched"] = texts.matched_table(corpus, longest_prefix, seed)
sizes = {
    task: t.groupby("split")["tag"].agg(["size", "mean"]) for task, t in probes.items()
}
summary = pd.concat(sizes, names=["task"]).reset_index()
summary = summary.rename(columns={"size": "examples", "mean": "share_of_1"})
human = {"task": PROBES, "split": {"train": "training", "valid": "validation"}}
shown = stage.table("probe_examples", summary).replace(human)
human = columns("examples", share_of_1="share of plural or female")
show_table(shown, columns("task", split="part") | human)

# %% [markdown]
# A probe has to beat a rule that always answers the more frequent class. Its accuracy is the last column or, if that is
# below one half, 1 minus it.
#
# The next cell writes everything. Read back, each set has the same rows.

# %%
agreement_lines.save_sets(sets, stage.path("sets.parquet"))
agreement_lines.save_sets(whole, stage.path("whole.parquet"))
again = agreement_lines.load_sets(stage.path("sets.parquet"))
for name, lines in sets.items():
    agreement_lines.write_agreement(lines, stage.path(f"sets/{name}"))
    released = agreement_lines.read_agreement(stage.path(f"sets/{name}"))
    for column in ("prefix", "tag", "cues", "attractors"):
        for copy in (again[name], released):
            assert list(copy[column]) == list(lines[column])
for name, part in read.items():
    plain = "".join(" ".join(w for w, _ in s) + "\n" for s in part)
    files.write_atomic(stage.path(f"corpus/{name}.txt"), plain)
for task, table in probes.items():
    files.save_parquet(table, stage.path(f"{task}.parquet"))

# %% [markdown] tags=["slide"]
# ## What could be wrong
#
# - **A prediction rests on more than agreement.** *The author that the guards like* makes *writes* more likely than *melts*.
#   The paper removes this with a probe that knows only two classes (stage 2).
# - **"Expected" is a convention in the gender set.** Nothing in *The bride met the groom because* makes *she* right. A model
#   with a strong prior for one gender is scored on it.
# - **Gender from names and titles** is a crude rule, and two genders are a simplification of the data sets. The boss in
#   *Mr. Lee 's boss* would be a man, because that mention begins with *Mr.* We keep the paper's rule as it is.
# - **Templates repeat words.** The 6280 lines of Syneval use few nouns per slot, so they are not independent.
# - **The bundled corpus is easy.** Its nouns are regular. But our models read whole words and cannot use the plural *s*.
#
# ## Try it
#
# - Add a frame to `material/winobias.yaml` and count the templates again.
# - Move another construction from `_SHARES` to `HELD_OUT_KINDS` (`lib/studies/lm_saliency/grammar.py`).
# - The Penn Treebank (PTB) and CoNLL-2012 are licensed. If you have them in tarsius' format, put them into
#   `tarsius/PTB` and `tarsius/CoNLL` of the data folder.
#
# Exercises with checks: [page](../../docs/course/exercises/lm_saliency.md#01-data-generation).

# %%
show_table(stage.close(globals()), {"file": "file", "rows": "rows"})

# %% [markdown]
# ## Hand-over
#
# [02_training](02_training.ipynb) trains language models of three architectures on the corpus, distils smaller ones from
# them, and tests which of them have learnt number and gender.

# %% [markdown] tags=["exercise"]
# ## Exercises
#
# They stand alone: run the next cell, and none of the cells above. Put your answer in the place of the three dots. The check below it says what is wrong, and not what is right.

# %% tags=["exercise"]
from lib.core.exercises import check_choice, check_function, check_list, read_committed
from lib.core.notebooks import in_words

sets = read_committed("lm_saliency", "cpu", "01_data_generation", "statistics")
human = {"set": "set", "lines": "lines", "words_mean": "words in a line"}
human |= {"random": "random scores", "nearest": "nearest noun"}
in_words(sets.round(2), human)

# %% [markdown] tags=["exercise"]
# ### 1 · By hand
#
# > the pilots that the teacher near the lakes admires ...
#
# The next verb agrees with *pilots*. Write a role for each of the nine words before it: 1 for a cue, -1 for an attractor, 0 for every other word.

# %% tags=["hole"]
roles = ...  # a list of nine numbers

# %% tags=["solution"]
roles = [0, 1, 0, 0, -1, 0, 0, 1, 0]

# %% tags=["check"]
words = "the pilots that the teacher near the lakes admires".split()
plural, singular = {"pilots", "lakes"}, {"teacher"}
check_list(
    roles,
    [(word in plural) - (word in singular) for word in words],
    "Every noun has a role: cues have the number of the predicted verb.",
)

# %% [markdown] tags=["exercise"]
# ### 2 · Write a function
#
# An explanation passes the test if the largest score of a cue is larger than the largest score of an attractor. Write the test for one line, with the roles of exercise 1. A tie fails.


# %% tags=["hole"]
def passes(scores, roles):
    """True or False."""
    return ...


# %% tags=["solution"]
def passes(scores, roles):
    """True or False."""
    cues = [s for s, role in zip(scores, roles) if role == 1]
    attractors = [s for s, role in zip(scores, roles) if role == -1]
    return max(cues) > max(attractors)


# %% tags=["check"]
def expected(scores, roles):
    """By the library, with spans of one word."""
    from lib.metrics.plausibility import is_plausible

    cues, attractors = (
        [(i, i) for i, role in enumerate(roles) if role == wanted] for wanted in (1, -1)
    )
    return is_plausible(scores, scores, cues, attractors, is_expected=True)


check_function(
    passes,
    expected,
    {
        "One cue, one attractor.": [[0.1, 0.9, 0.3], [0, 1, -1]],
        "Words without a role do not count.": [[0.9, 0.2, 0.3], [0, 1, -1]],
        "A tie fails.": [[0.5, 0.5], [1, -1]],
        "Signs are kept here.": [[-0.9, 0.1], [1, -1]],
        "One good cue is enough.": [[0.1, 0.8, 0.5], [1, 1, -1]],
        "Every attractor counts.": [[0.5, 0.1, 0.7, 0.2], [1, -1, -1, -1]],
        "The largest counts, not the sum.": [[0.4, 0.4, 0.5], [1, 1, -1]],
        "Attractors are not added up, either.": [[0.5, 0.3, 0.3], [1, -1, -1]],
    },
)

# %% [markdown] tags=["exercise"]
# ### 3 · Explain
#
# `sets` is of scale `cpu`. The column *random scores* is the share of lines that such scores pass, *nearest noun* that of the rule *the noun nearest to the verb*. What does the row *Syneval* tell a designer of explanations?
#
# - `"a"` The nearest noun nearly always is a cue.
# - `"b"` There at most one word usually separates attractor and verb, so whoever favours late words fails.
# - `"c"` Random scores are better than any rule.

# %% tags=["hole"]
what_it_tells = ...  # "a", "b" or "c"

# %% tags=["solution"]
what_it_tells = "b"

# %% tags=["check"]
row = sets.set_index("set").loc["Syneval"]
assert row["nearest"] < 0.5 * row["random"]
check_choice(
    what_it_tells,
    "b",
    {
        "a": "Is the share of lines that the rule passes large or small?",
        "c": "A rule that does the opposite of this one would pass how many lines?",
    },
)
