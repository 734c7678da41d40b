"""Agreement lines from annotated text: number from dependency trees, gender from coreference.

The filters are those of Ding & Koehn (2021), appendix A.1 (number) and A.3 (gender).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ...core.errors import TouchstoneError, check_choice
from ...core.files import read_text
from ...language import dependencies, lexicon
from ...language.conllu import read_conllu
from .lines import COLUMNS, Span

_NOUNS = ({"NN", "NNP"}, {"NNS", "NNPS"})  # Penn tags of singular and of plural nouns
_SUBJECTS = dependencies.SUBJECTS | {"nsubj:outer"}  # the last one: of a clause that is a predicate
_WINDOW = 10  # words before the subject in which an attractor must stand
PRONOUNS = {form: int(gender == "F") for form, gender in lexicon.PRONOUNS.items()}
_TITLES = {"Mr.": 0, "Ms.": 1, "Mrs.": 1}
_BLANK = "_"  # what an empty word is read as: written with spaces a prefix must keep its length
_LONGEST = 512  # words of a document's prefix
_FILTERS = ("candidates", "subject and attractor", "not adjacent", "attractor within ten words")


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


def read_trees(path: Path | str) -> list[list[Word]]:
    """The trees of a CoNLL-U file. Raises TouchstoneError as `lib.language.conllu` does."""
    return [
        [Word(row.form, row.xpos, row.head, row.deprel) for row in tree.rows]
        for tree in read_conllu(path)
    ]


def number_of_verb(form: str, tag: str) -> int | None:
    """The number that a verb form shows: 0 for VBZ and was, 1 for VBP and were, else None.

    >>> number_of_verb("keeps", "VBZ"), number_of_verb("Were", "VBD"), number_of_verb("kept", "VBD")
    (0, 1, None)
    """
    if tag in ("VBZ", "VBP"):
        return int(tag == "VBP")
    return {"was": 0, "were": 1}.get(form.lower())


def subject_of_verb(sentence: Sequence[Word], verb: int) -> int | None:
    """The position of the nearest subject before a verb, or None.

    In Universal Dependencies the subject of an auxiliary or a copula hangs from its head.
    """
    head = sentence[verb].head if sentence[verb].relation in dependencies.FINITE_HELPERS else verb
    subjects = [
        i for i in range(verb) if sentence[i].head == head and sentence[i].relation in _SUBJECTS
    ]
    return subjects[-1] if subjects else None


def number_lines(sentences: Iterable[Sequence[Word]]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Number-agreement lines of trees (appendix A.1): prefixes of verbs that show a number.

    Filters: the subject is a noun of the verb's number and a noun of the other number stands
    before the verb; the verb does not directly follow its subject; not all attractors stand more
    than ten words before the subject. Cues are all nouns of the verb's number in the prefix,
    attractors all nouns of the other number.

    Returns:
        The lines, with the columns of `lib.studies.lm_saliency.lines.COLUMNS`, and how many
        candidates each filter left.
    """
    rows, n_passed = [], []
    for place, sentence in enumerate(sentences):
        for verb, word in enumerate(sentence):
            tag = number_of_verb(word.form, word.tag)
            if tag is not None:
                passed, line = _number_line(sentence, verb, tag)
                n_passed.append(passed)
                rows += [{**line, "cluster": f"sentence {place}"}] if line else []
    counts = {name: sum(n > i for n in n_passed) for i, name in enumerate(_FILTERS)}
    return pd.DataFrame(rows, columns=COLUMNS), counts


def _number_line(sentence: Sequence[Word], verb: int, tag: int) -> tuple[int, dict[str, Any]]:
    """How many of _FILTERS a candidate passes, and its line where it passes all."""
    subject = subject_of_verb(sentence, verb)
    cues, attractors = (
        [i for i in range(verb) if sentence[i].tag in _NOUNS[number]] for number in (tag, 1 - tag)
    )
    if subject is None or sentence[subject].tag not in _NOUNS[tag] or not attractors:
        return 1, {}
    if subject == verb - 1:
        return 2, {}
    if all(subject - i > _WINDOW for i in attractors):
        return 3, {}
    return 4, {
        "prefix": [word.form for word in sentence[:verb]],
        "tag": tag,
        "cues": [(i, i) for i in cues],
        "attractors": [(i, i) for i in attractors],
        "pattern": "treebank",
    }


def read_conll2012(path: Path | str) -> list[tuple[list[str], list[Mention]]]:
    """The documents of a file in the style of CoNLL-2012: words, and mentions by their ends.

    Three columns split by tabs: position, word, clusters such as `(1(2)`. A document stands
    between `# begin document` and `# end document`.

    Raises:
        TouchstoneError: with file and line, for a line of another form or outside a document, and
            for a mention that is not closed, or not opened.
    """
    documents: list[tuple[list[str], list[Mention]]] = []
    words: list[str] = []
    mentions: list[Mention] = []
    open_at: dict[str, list[int]] = defaultdict(list)
    is_inside = False
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        where = f"{path}, line {number}"
        is_inside |= line.startswith(("# begin document", "#begin document"))
        if line.startswith(("# end document", "#end document")):
            if unclosed := [cluster for cluster, starts in open_at.items() if starts]:
                raise TouchstoneError(
                    f"{where}: cluster {unclosed[0]} has a mention that is never closed; "
                    "add the bracket"
                )
            documents.append((words, mentions))
            words, mentions, is_inside = [], [], False
        elif line.strip() and not line.startswith("#"):
            if not is_inside:
                raise TouchstoneError(
                    f"{where}: a word before `# begin document`; write that line above it"
                )
            columns = line.split("\t")
            if len(columns) < 3:
                raise TouchstoneError(
                    f"{where}: {len(columns)} columns; write position, word and clusters, split "
                    "by tabs"
                )
            words.append("".join(columns[1].split()) or _BLANK)
            mentions += _mentions(columns[-1], len(words) - 1, open_at, where)
    if is_inside or not documents:
        missing = "no `# end document`" if is_inside else "holds no document"
        raise TouchstoneError(f"{path}: {missing}; write it between `# begin document` and its end")
    return documents


def _mentions(text: str, at: int, open_at: dict[str, list[int]], where: str) -> Iterator[Mention]:
    """The mentions that end at a token; those that only begin are put into `open_at`."""
    if re.search(r"\((?!\w)", text):
        raise TouchstoneError(f"{where}: {text!r} opens no cluster; write its name, as in (1")
    latest = ""  # cluster of the last bracket that opened: a bare ")" closes that one
    for opened, closed, _ in re.findall(r"\((\w+)|(\w+)\)|(\))", text):
        cluster = opened or closed or latest
        if opened:
            open_at[cluster].append(at)
            latest = cluster
        elif not open_at[cluster]:
            raise TouchstoneError(
                f"{where}: {text!r} closes cluster {cluster}, which is not open; "
                "correct the brackets"
            )
        else:
            yield Mention(open_at[cluster].pop(), at, cluster)


def cluster_genders(
    words: Sequence[str], mentions: Sequence[Mention], names: Mapping[str, int]
) -> dict[str, int]:
    """The gender of clusters (0 male, 1 female): from pronouns, else titles, else first names.

    Args:
        words: the document.
        mentions: its mentions.
        names: the gender of first names, in small letters.

    Returns:
        Gender by cluster; a cluster without evidence, or whose best kind of evidence disagrees,
        is not in it (appendix A.3).
    """
    votes: dict[str, list[set[int]]] = defaultdict(lambda: [set(), set(), set()])
    for mention in mentions:
        text = words[mention.start : mention.end + 1]
        evidence = (
            PRONOUNS.get(text[0].lower()) if len(text) == 1 else None,
            _TITLES.get(text[0]),
            names.get(text[0].lower()) if len(text) <= 2 and text[0][:1].isupper() else None,
        )
        for genders, gender in zip(votes[mention.cluster], evidence, strict=True):
            genders |= set() if gender is None else {gender}
    best = {cluster: next(filter(None, kinds), set()) for cluster, kinds in votes.items()}
    return {cluster: min(genders) for cluster, genders in best.items() if len(genders) == 1}


def token_owners(mentions: Sequence[Mention], n_words: int) -> list[Mention | None]:
    """The mention that each token belongs to.

    Of nested mentions it is the inner one; where two cross, the shared tokens belong to none.
    """
    covering: list[list[Mention]] = [[] for _ in range(n_words)]
    for mention in mentions:
        for i in range(mention.start, mention.end + 1):
            covering[i].append(mention)
    owners: list[Mention | None] = []
    for over in covering:
        inner = min(over, key=lambda m: m.end - m.start, default=None)
        is_nested = inner is not None and all(
            m.start <= inner.start and inner.end <= m.end for m in over
        )
        owners.append(inner if is_nested else None)
    return owners


def gender_lines(
    words: Sequence[str],
    mentions: Sequence[Mention],
    names: Mapping[str, int],
    document: str,
    cue_rule: str = "gender",
) -> list[dict[str, Any]]:
    """Gender-agreement lines of one document: one for each pronoun that passes (appendix A.3).

    A candidate is a pronoun that is a mention by itself. Attractors are the mentions of the other
    gender. Cues and attractors must occur, and the nearest mention before the pronoun must not
    have its gender.

    Args:
        words, mentions, names: as in `cluster_genders`.
        document: its name, which becomes the `cluster` of its lines.
        cue_rule: cues are all mentions of the pronoun's gender ("gender", as in the paper), or
            those of its own cluster alone ("cluster", as in the released code).

    Returns:
        Lines as dicts with the columns of `lib.studies.lm_saliency.lines.COLUMNS`.
    """
    check_choice("cue_rule", cue_rule, ("gender", "cluster"))
    genders, lines = cluster_genders(words, mentions, names), []
    for pronoun in mentions:
        tag = PRONOUNS.get(words[pronoun.start].lower()) if pronoun.start == pronoun.end else None
        if tag is None:
            continue
        start = _prefix_start(words, pronoun.start)
        before = [m for m in mentions if start <= m.start and m.end < pronoun.start]
        nearest = max(before, key=lambda m: (m.end, m.start), default=None)
        # Whoever looks at the nearest mention alone would pass such a line.
        if nearest is None or genders.get(nearest.cluster) == tag:
            continue
        runs = _runs(token_owners(before, pronoun.start)[start:], genders)
        line = {
            "prefix": list(words[start : pronoun.start]),
            "tag": tag,
            "cues": [
                span
                for span, cluster, gender in runs
                if gender == tag and (cue_rule == "gender" or cluster == pronoun.cluster)
            ],
            "attractors": [span for span, _, gender in runs if gender == 1 - tag],
            "pattern": "coreference",
            "cluster": document,
        }
        lines += [line] if line["cues"] and line["attractors"] else []
    return lines


def _prefix_start(words: Sequence[str], end: int) -> int:
    """Where a prefix of at most 512 words begins: with the document, or after a sentence's end."""
    if end <= _LONGEST:
        return 0
    ends = (i for i in range(end - _LONGEST - 1, end - 1) if words[i] in (".", "!", "?"))
    return next((i + 1 for i in ends), end - _LONGEST)


def _runs(
    owners: Sequence[Mention | None], genders: Mapping[str, int]
) -> list[tuple[Span, str, int]]:
    """Span, cluster and gender of each run of tokens with one owner of known gender."""
    runs, end = [], -1
    for owner, tokens in groupby(owners):  # an inner mention cuts the outer one into two runs
        start, end = end + 1, end + len(list(tokens))
        if owner is not None and owner.cluster in genders:
            runs.append(((start, end), owner.cluster, genders[owner.cluster]))
    return runs
