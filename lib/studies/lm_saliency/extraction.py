"""Agreement lines from annotated text: number from CoNLL-U dependency trees, gender from CoNLL-2012 coreference.

The filters are those of Ding & Koehn (2021), appendices A.1 and A.3.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from lib.core.errors import TouchstoneError
from lib.studies.lm_saliency.lines import Span

NOUNS = ({"NN", "NNP"}, {"NNS", "NNPS"})  # Penn tags of singular and of plural nouns
SUBJECTS = {"nsubj", "nsubj:pass", "nsubj:outer"}
CARRIED = {"aux", "aux:pass", "cop"}  # verbs whose subject hangs from their head
WINDOW = 10  # words before the subject in which an attractor must stand
PRONOUNS = {
    **dict.fromkeys(("he", "him", "himself", "his"), 0),
    **dict.fromkeys(("she", "her", "herself", "hers"), 1),
}
TITLES = {"Mr.": 0, "Ms.": 1, "Mrs.": 1}
BLANK = "_"  # what an empty word is read as: a prefix must keep its length when it is written with spaces
LONGEST = 512  # words of a document's prefix


class Word(NamedTuple):
    """A word of a tree: form, Penn tag, index of its head in the sentence (-1: root), relation."""

    form: str
    tag: str
    head: int
    relation: str


@dataclass(frozen=True)
class Mention:
    """A mention of a coreference cluster: first and last token, both included."""

    start: int
    end: int
    cluster: str


def read_conllu(path: Path | str) -> list[list[Word]]:
    """The sentences of a CoNLL-U file (words only: ranges and empty nodes are passed over).

    Raises TouchstoneError, naming file and line, for a line without ten columns and for a head that is no word.
    """
    sentences: list[list[Word]] = []
    block: list[tuple[int, list[str]]] = []
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    for number, line in enumerate([*lines, ""], start=1):
        if line and not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 10:
                raise TouchstoneError(
                    f"{path}, line {number}: {len(columns)} columns; CoNLL-U has ten, split by tabs"
                )
            if columns[0].isdigit():
                block.append((number, columns))
        elif not line and block:
            sentences.append(_sentence(block, path))
            block = []
    return sentences


def _sentence(block: list[tuple[int, list[str]]], path: Path | str) -> list[Word]:
    index = {columns[0]: i for i, (_, columns) in enumerate(block)} | {"0": -1}
    for number, columns in block:
        if columns[6] not in index:
            raise TouchstoneError(
                f"{path}, line {number}: the head {columns[6]!r} is no word of the sentence; "
                "correct the tree"
            )
    return [Word(columns[1], columns[4], index[columns[6]], columns[7]) for _, columns in block]


def number_of_verb(form: str, tag: str) -> int | None:
    """The number that a word predicts: 0 for VBZ and was, 1 for VBP and were, None for all other words."""
    if tag in ("VBZ", "VBP"):
        return int(tag == "VBP")
    return {"was": 0, "were": 1}.get(form.lower())


def subject_of_verb(sentence: Sequence[Word], verb: int) -> int | None:
    """The nearest subject before a verb; an auxiliary or copula takes the subject of the word that it belongs to."""
    owner = sentence[verb].head if sentence[verb].relation in CARRIED else verb
    found = [
        i for i in range(verb) if sentence[i].head == owner and sentence[i].relation in SUBJECTS
    ]
    return found[-1] if found else None


def number_lines(sentences: Iterable[Sequence[Word]]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Number-agreement lines of gold trees, and how many candidates each filter left (appendix A.1).

    Filters: the subject is a noun of the verb's number and a noun of the other number stands before the verb; the verb
    does not directly follow its subject; not all attractors stand more than ten words before the subject. Cues are all
    nouns of the verb's number in the prefix, attractors all others.
    """
    counts = dict.fromkeys(
        ("candidates", "subject and attractor", "not adjacent", "attractor within ten words"), 0
    )
    rows = []
    for place, sentence in enumerate(sentences):
        for verb, word in enumerate(sentence):
            tag = number_of_verb(word.form, word.tag)
            if tag is not None:
                passed, row = _number_line(sentence, verb, tag)
                for name in list(counts)[:passed]:
                    counts[name] += 1
                rows += [{**row, "cluster": f"sentence {place}"}] if passed == len(counts) else []
    return pd.DataFrame(
        rows, columns=["prefix", "tag", "cues", "attractors", "pattern", "cluster"]
    ), counts


def _number_line(sentence: Sequence[Word], verb: int, tag: int) -> tuple[int, dict[str, Any]]:
    """How many filters a candidate passes, and its line."""
    subject = subject_of_verb(sentence, verb)
    places: dict[int, list[int]] = {
        number: [i for i in range(verb) if sentence[i].tag in NOUNS[number]] for number in (0, 1)
    }
    if subject is None or sentence[subject].tag not in NOUNS[tag] or not places[1 - tag]:
        return 1, {}
    if subject == verb - 1:
        return 2, {}
    if all(subject - i > WINDOW for i in places[1 - tag]):
        return 3, {}
    return 4, {
        "prefix": [word.form for word in sentence[:verb]],
        "tag": tag,
        "cues": [(i, i) for i in places[tag]],
        "attractors": [(i, i) for i in places[1 - tag]],
        "pattern": "treebank",
    }


def tagged_line(sentence: Iterable[Word]) -> str:
    """A sentence as word_TAG, the form of the tagged corpora."""
    return " ".join(f"{word.form}_{word.tag}" for word in sentence)


def read_conll2012(path: Path | str) -> list[tuple[list[str], list[Mention]]]:
    """The documents of a file in the CoNLL-2012 style: their words, and the mentions in order of their ends.

    Three columns split by tabs (position, word, clusters such as `(1(2)`), one document between `# begin document` and `# end document`. Raises
    TouchstoneError, naming file and line, for a line of another form and for a mention that is not closed, or not opened.
    """
    documents: list[tuple[list[str], list[Mention]]] = []
    words: list[str] = []
    open_at: dict[str, list[int]] = defaultdict(list)
    mentions: list[Mention] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        where = f"{path}, line {number}"
        if line.startswith(("# end document", "#end document")):
            if left := [name for name, starts in open_at.items() if starts]:
                raise TouchstoneError(
                    f"{where}: cluster {left[0]} has a mention that is never closed; add the bracket"
                )
            documents.append((words, mentions))
            words, mentions = [], []
        elif line.strip() and not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) < 3:
                raise TouchstoneError(
                    f"{where}: {len(columns)} columns; write position, word and clusters, split by tabs"
                )
            words.append("".join(columns[1].split()) or BLANK)
            mentions += _mentions(columns[-1], len(words) - 1, open_at, where)
    return documents


def _mentions(text: str, at: int, open_at: dict[str, list[int]], where: str) -> Iterator[Mention]:
    """The mentions that end at a token; those that only begin are put into `open_at`."""
    marks = re.findall(r"\((\w+)|(\w+)\)|(\))", text)
    latest = ""
    for opened, closed, bare in marks:
        if opened:
            open_at[opened].append(at)
            latest = opened
        elif not open_at[closed or latest]:
            raise TouchstoneError(
                f"{where}: {text!r} closes cluster {closed or latest}, which is not open; "
                "correct the brackets"
            )
        else:
            yield Mention(open_at[closed or latest].pop(), at, closed or latest)


def cluster_genders(
    words: Sequence[str], mentions: Sequence[Mention], names: Mapping[str, int]
) -> dict[str, int]:
    """The gender of each cluster (0 male, 1 female), where it is known: from pronouns, else titles, else first names.

    `names`: first names and their gender. A cluster whose mentions disagree gets none (appendix A.3).
    """
    votes: dict[str, list[set[int]]] = defaultdict(lambda: [set(), set(), set()])
    for mention in mentions:
        text = words[mention.start : mention.end + 1]
        evidence = (
            PRONOUNS.get(text[0].lower()) if len(text) == 1 else None,
            TITLES.get(text[0]),
            names.get(text[0].lower()) if len(text) <= 2 and text[0][:1].isupper() else None,
        )
        for votes_of_kind, gender in zip(votes[mention.cluster], evidence, strict=True):
            votes_of_kind |= set() if gender is None else {gender}
    decided = {
        cluster: next((kind for kind in kinds if kind), set()) for cluster, kinds in votes.items()
    }
    return {cluster: next(iter(found)) for cluster, found in decided.items() if len(found) == 1}


def token_owners(mentions: Sequence[Mention], n_words: int) -> list[Mention | None]:
    """To which mention a token belongs: of nested ones to the inner; where two cross, the shared tokens to none."""
    covering: list[list[Mention]] = [[] for _ in range(n_words)]
    for mention in mentions:
        for i in range(mention.start, mention.end + 1):
            covering[i].append(mention)
    owners: list[Mention | None] = []
    for over in covering:
        inner = min(over, key=lambda m: m.end - m.start, default=None)
        nested = inner is not None and all(
            m.start <= inner.start and inner.end <= m.end for m in over
        )
        owners.append(inner if nested else None)
    return owners


def gender_lines(
    words: Sequence[str],
    mentions: Sequence[Mention],
    names: Mapping[str, int],
    document: str,
    cue_rule: str = "gender",
) -> list[dict[str, Any]]:
    """Gender-agreement lines of one document: one for each pronoun that passes the filters of appendix A.3.

    A candidate is a pronoun that is a mention by itself. Cues are the mentions of its gender (`cue_rule` "gender", as in
    the paper) or those of its own cluster alone ("cluster", as in the released code); attractors those of the other
    gender. Both must occur, and the nearest mention before the pronoun must not have its gender.
    """
    if cue_rule not in ("gender", "cluster"):
        raise TouchstoneError(f"cue_rule is {cue_rule!r}; write gender or cluster")
    genders, lines = cluster_genders(words, mentions, names), []
    for pronoun in mentions:
        tag = PRONOUNS.get(words[pronoun.start].lower()) if pronoun.start == pronoun.end else None
        if tag is None:
            continue
        start = _prefix_start(words, pronoun.start)
        before = [m for m in mentions if start <= m.start and m.end < pronoun.start]
        nearest = max(before, key=lambda m: (m.end, m.start), default=None)
        if nearest is None or genders.get(nearest.cluster) == tag:
            continue
        sides = _sides(
            before,
            genders,
            tag,
            pronoun.cluster if cue_rule == "cluster" else None,
            start,
            pronoun.start,
        )
        if sides[0] and sides[1]:
            lines.append(
                {
                    "prefix": list(words[start : pronoun.start]),
                    "tag": tag,
                    "cues": sides[0],
                    "attractors": sides[1],
                    "pattern": "coreference",
                    "cluster": document,
                }
            )
    return lines


def _prefix_start(words: Sequence[str], end: int) -> int:
    """Where a prefix of at most 512 words begins: at the document's start, or after the end of a sentence."""
    if end <= LONGEST:
        return 0
    starts = [i + 1 for i in range(end - LONGEST - 1, end - 1) if words[i] in (".", "!", "?")]
    return starts[0] if starts else end - LONGEST


def _sides(
    before: Sequence[Mention],
    genders: Mapping[str, int],
    tag: int,
    own: str | None,
    start: int,
    end: int,
) -> tuple[list[Span], list[Span]]:
    owners = token_owners(before, end)[start:]
    spans: tuple[list[Span], list[Span]] = ([], [])
    for i, owner in enumerate(owners):
        gender = None if owner is None else genders.get(owner.cluster)
        if (
            owner is None
            or gender is None
            or (own is not None and gender == tag and owner.cluster != own)
        ):
            continue
        side = spans[0] if gender == tag else spans[1]
        if side and side[-1][1] == i - 1 and owners[i - 1] == owner:
            side[-1] = (side[-1][0], i)
        else:
            side.append((i, i))
    return spans
