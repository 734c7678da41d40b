"""GUM's gold coreference (CoNLL-U with an Entity column), and how well a resolver finds it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, Token

from lib.language.conllu import Row, read_conllu
from lib.language.lexicon import PRONOUNS
from lib.language.parse import doc_of
from lib.studies.implicit_bias.coreference import Span, head_of


class GoldSentence(NamedTuple):
    """A sentence with its gold parse, its genre, and its mentions by entity."""

    genre: str
    doc: Doc
    mentions: list[tuple[str, Span]]


def read_gum(path: Path | str) -> list[GoldSentence]:
    """The sentences of a GUM file. Raises TouchstoneError as `lib.language.conllu` does."""
    gold, genre = [], ""
    for tree in read_conllu(path):
        genre = tree.comments.get("meta::genre", genre)  # stands above a document's first sentence
        gold.append(GoldSentence(genre, doc_of(tree), _mentions(tree.rows)))
    return gold


def gold_links(sentence: GoldSentence) -> tuple[int, set[int]] | None:
    """The position of a sentence's gendered pronoun, and the heads of its nominal antecedents.

    None where there is not exactly one gendered pronoun, or the pronoun is in no entity.
    """
    doc = sentence.doc
    pronouns = [t.i for t in doc if t.lower_ in PRONOUNS]
    if len(pronouns) != 1:
        return None
    at = pronouns[0]
    entities = {entity for entity, span in sentence.mentions if span == (at, at)}
    same = [span for entity, span in sentence.mentions if entity in entities and span != (at, at)]
    heads = {head_of(doc, span).i for span in same}
    return at, {
        i
        for i in heads
        if doc[i].pos_ in ("NOUN", "PROPN") or doc[i].lower_ in ("someone", "one", "somebody")
    }


def _mentions(rows: Sequence[Row]) -> list[tuple[str, Span]]:
    """The mentions that begin and end in the sentence, read from the Entity entries."""
    mentions: list[tuple[str, Span]] = []
    open_at: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        entry = next((part[7:] for part in row.misc.split("|") if part.startswith("Entity=")), "")
        for entity, is_single, closed in _brackets(entry):
            if closed and open_at.get(closed):
                mentions.append((closed, (open_at[closed].pop(), at)))
            elif entity and is_single:
                mentions.append((entity, (at, at)))
            elif entity:
                open_at.setdefault(entity, []).append(at)
    return mentions


def _brackets(entry: str) -> Iterator[tuple[str, bool, str]]:
    """(entity, closes here, "") for an opening bracket, ("", False, entity) for a closing one."""
    for opened, single, closed in re.findall(r"\(([^()-]+)[^()]*(\)?)|([^()]+)\)", entry):
        yield opened, bool(single), closed.split("-")[0]


class Scores(NamedTuple):
    """How well a resolver does.

    Is there an antecedent (`detect`: precision, recall, F1), and is it the right one (`link`)?
    """

    n: int
    n_gold: int
    detect_p: float
    detect_r: float
    detect_f1: float
    link_p: float
    link_r: float
    link_f1: float


def score_resolver(antecedents: Sequence[Token | None], gold: Sequence[Collection[int]]) -> Scores:
    """Compare antecedents with gold.

    Args:
        antecedents: the antecedent in each sentence, or None.
        gold: the positions that are right in each sentence; none where there is no antecedent.
    """
    said, is_there = sum(t is not None for t in antecedents), sum(bool(g) for g in gold)
    both = sum(t is not None and bool(g) for t, g in zip(antecedents, gold, strict=True))
    right = sum(t is not None and t.i in g for t, g in zip(antecedents, gold, strict=True))
    return Scores(len(gold), is_there, *_prf(both, said, is_there), *_prf(right, said, is_there))


def _prf(hits: int, said: int, true: int) -> tuple[float, float, float]:
    p, r = hits / said if said else 0.0, hits / true if true else 0.0
    return p, r, 2 * p * r / (p + r) if p + r else 0.0
