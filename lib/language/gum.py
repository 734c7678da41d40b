"""GUM's gold coreference (CoNLL-U with an Entity column), and how well a resolver finds it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from lib.core.errors import TouchstoneError
from lib.language.coreference import Span, head_of
from lib.language.lexicon import PRONOUNS


class GoldSentence(NamedTuple):
    """A sentence with its gold parse, its genre, and its mentions by entity."""

    genre: str
    doc: Doc
    mentions: list[tuple[str, Span]]


def read_gum(path: Path | str) -> list[GoldSentence]:
    """The sentences of a GUM file. Raises TouchstoneError, naming file and line, where a row has not ten columns."""
    found, rows, genre, vocab, open_at = [], [], "", spacy.blank("en").vocab, {}
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("# newdoc id"):
            open_at = {}
        if line.startswith("# meta::genre"):
            genre = line.partition("= ")[2]
        elif line and not line.startswith("#"):
            if len(fields := line.split("\t")) != 10:
                raise TouchstoneError(
                    f"{path}, line {number}: {len(fields)} columns; CoNLL-U has ten, split by tabs"
                )
            rows += [fields] if fields[0].isdigit() else []
        elif not line and rows:
            found.append(GoldSentence(genre, _doc(rows, vocab), _mentions(rows, open_at)))
            rows = []
    return found


def gold_links(sentence: GoldSentence) -> tuple[int, set[int]] | None:
    """For a sentence with exactly one gendered pronoun: its position, and the heads of its nominal antecedents.

    None where there is another number of gendered pronouns, or the pronoun is in no entity.
    """
    doc = sentence.doc
    pronouns = [t.i for t in doc if t.lower_ in PRONOUNS]
    if len(pronouns) != 1:
        return None
    at = pronouns[0]
    own = {entity for entity, span in sentence.mentions if span == (at, at)}
    same = [span for entity, span in sentence.mentions if entity in own and span != (at, at)]
    heads = {head_of(doc, span).i for span in same}
    return at, {
        i
        for i in heads
        if doc[i].pos_ in ("NOUN", "PROPN") or doc[i].lower_ in ("someone", "one", "somebody")
    }


def _mentions(rows: list[list[str]], open_at: dict[str, list[int]]) -> list[tuple[str, Span]]:
    """The mentions that begin and end in the sentence, read from the brackets of the Entity entries."""
    found: list[tuple[str, Span]] = []
    open_at.clear()
    for at, row in enumerate(rows):
        entry = next((part[7:] for part in row[9].split("|") if part.startswith("Entity=")), "")
        for entity, is_single, closed in _brackets(entry):
            if closed and open_at.get(closed):
                found.append((closed, (open_at[closed].pop(), at)))
            elif entity and is_single:
                found.append((entity, (at, at)))
            elif entity:
                open_at.setdefault(entity, []).append(at)
    return found


def _brackets(entry: str) -> Iterator[tuple[str, bool, str]]:
    """(entity, opens and closes here, "") for an opening bracket, ("", False, entity) for a closing one."""
    for opened, single, closed in re.findall(r"\(([^()-]+)[^()]*(\)?)|([^()]+)\)", entry):
        yield opened, bool(single), closed.split("-")[0]


def _doc(rows: list[list[str]], vocab: Vocab) -> Doc:
    index = {row[0]: i for i, row in enumerate(rows)}
    heads = [index.get(row[6], i) for i, row in enumerate(rows)]
    return Doc(
        vocab,
        words=[row[1] for row in rows],
        lemmas=[row[2] for row in rows],
        pos=[row[3] for row in rows],
        tags=[row[4] for row in rows],
        morphs=["" if row[5] == "_" else row[5] for row in rows],
        heads=heads,
        deps=["ROOT" if row[6] == "0" else row[7] for row in rows],
        spaces=["SpaceAfter=No" not in row[9] for row in rows],
    )


class Scores(NamedTuple):
    """How well a resolver does: is there an antecedent (precision, recall, F1), and is it the right one (the same)."""

    n: int
    n_gold: int
    detect_p: float
    detect_r: float
    detect_f1: float
    link_p: float
    link_r: float
    link_f1: float


def score_resolver(found: Sequence[Token | None], gold: Sequence[Collection[int]]) -> Scores:
    """Compare antecedents with gold: for each sentence the positions that are right (none: no antecedent in it)."""
    said, is_there = sum(t is not None for t in found), sum(bool(g) for g in gold)
    both = sum(t is not None and bool(g) for t, g in zip(found, gold, strict=True))
    right = sum(t is not None and t.i in g for t, g in zip(found, gold, strict=True))
    return Scores(len(gold), is_there, *_prf(both, said, is_there), *_prf(right, said, is_there))


def _prf(hits: int, said: int, true: int) -> tuple[float, float, float]:
    p, r = hits / said if said else 0.0, hits / true if true else 0.0
    return p, r, 2 * p * r / (p + r) if p + r else 0.0
