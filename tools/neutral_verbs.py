"""Which verbs of GECO's neutral forms should agree with "they", by part-of-speech tags alone.

The rules use no parse and no code of `lib.language.annotator`, so that the corrected gold does not
lean to the annotator that is scored against it. Only positions are kept (`neutral_verbs.csv`),
never words; `fit_annotator.py positions` writes that table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from spacy.language import Language

from lib.language.parse import annotate_tokens
from lib.studies.geco.corpus import DATASETS, SPLITS, read_geco
from lib.studies.geco.corrections import IRREGULAR

ADVERBS = frozenset({"RB", "RBR", "RBS", "EX"})
FINITE = frozenset({"VBZ", "VBD", "VBP", "MD"})
NOMINAL = frozenset({"NN", "NNS", "NNP", "NNPS", "PRP", "WP", "WDT", "EX", "DT", "CD"})
CLAUSE = frozenset({"WP", "WDT", "WRB", "WP$"})
JOINING = frozenset({"and", "but", "or", "nor", "yet", "then"})
BRACKETS = frozenset({",", "-", "--", "(", ")"})
BESIDE = frozenset({"himself", "herself", "both", "alone", "then"})
PHRASE = frozenset({"IN", "DT", "PRP$", "JJ", "JJS", "NN", "NNS", "NNP", "RB", "CD"})
SUBORDINATORS = frozenset(
    "that if whether because as while after before until since although though so than".split()
)


def find_verbs(neutral: Sequence[str], male: Sequence[str], tags: Sequence[str]) -> list[int]:
    """The positions of verbs that should agree with a subject "they", next to it or not.

    From each nominative "they" the words to its right are walked through: adverbs and parentheses
    to the first finite verb, then what is coordinated with it; a clause with a subject of its own
    is passed over, and one that follows "and" with a subject of its own ends the walk.

    Args:
        neutral, male: the words of the two forms.
        tags: Penn tags of the male form.
    """
    verbs: set[int] = set()
    for i, word in enumerate(neutral):
        if word.lower() == "they" and male[i].lower() in ("he", "she", "they"):
            verbs |= _inverted(i, male, tags)
            first = _first_finite(i + 1, male, tags)
            if first is not None:
                verbs |= {first, *_coordinated(first, male, tags)}
    return sorted(j for j in verbs if _inflected(male[j], tags[j]))


def _inflected(word: str, tag: str) -> bool:
    return word.lower() in IRREGULAR or (
        tag in ("VBZ", "NNS", "NNPS") and word.lower().endswith("s")
    )


def _inverted(i: int, words: Sequence[str], tags: Sequence[str]) -> set[int]:
    """The verb of "does he know" and "nor is he": a helper before the pronoun without a subject."""
    if i == 0 or words[i - 1].lower() not in ("is", "was", "has", "does"):
        return set()
    return set() if i > 1 and tags[i - 2] in NOMINAL else {i - 1}


def _first_finite(j: int, words: Sequence[str], tags: Sequence[str]) -> int | None:
    inside = False  # between two commas: "he , however , goes"
    for k in range(j, len(words)):
        word = words[k].lower()
        if word == "who" and k <= j + 1:
            return _first_finite(k + 1, words, tags)
        if word in BRACKETS:
            inside = not inside
        elif inside and tags[k] == "VBZ" and words[k - 1].lower() in JOINING:
            return None
        elif not inside and (
            tags[k] in FINITE or (tags[k] in ("NNS", "NNPS") and word.endswith("s"))
        ):
            return k
        elif not inside and tags[k] not in ADVERBS and word not in BESIDE:
            return None
    return None


def _coordinated(first: int, words: Sequence[str], tags: Sequence[str]) -> set[int]:
    """The finite verbs after the first that share its subject.

    `embedded` is the tag of an inner clause's verb.
    """
    verbs: set[int] = set()
    last, embedded, after_who = first, "", words[first - 1].lower() == "who"
    for t in range(first + 1, len(words)):
        if words[t] in (";", ":"):
            break
        if tags[t] not in FINITE:
            continue
        p = _joint(last, t, words, tags)
        if p is None:
            if _is_new_clause(last, t, words, tags):
                break
            embedded = tags[t]
        elif _shares_subject(p, last, embedded if embedded == tags[t] else "", words, tags) or (
            after_who and words[p] == ","
        ):
            verbs.add(t)
            last, embedded = t, ""
    return verbs


def _joint(last: int, t: int, words: Sequence[str], tags: Sequence[str]) -> int | None:
    """The "and" or comma that ties the verb at t to what stands before.

    At most adverbs or one phrase stand between.
    """
    p = t - 1
    while p > last and tags[p] in ADVERBS:
        p -= 1
    if words[p].lower() in JOINING or words[p] == ",":
        return p
    while (
        p > last
        and tags[p] in PHRASE
        and not (tags[p] in ("DT", "PRP$") and tags[p - 1] in NOMINAL)
    ):
        p -= 1
    starts = p + 1 < t and tags[p + 1] == "IN" and words[p + 1].lower() not in SUBORDINATORS
    return p if starts and words[p].lower() in JOINING else None


def _shares_subject(
    p: int, last: int, embedded: str, words: Sequence[str], tags: Sequence[str]
) -> bool:
    if words[p] == ",":
        opening = next(
            (k for k in range(p - 1, last, -1) if words[k] == "," or tags[k] in FINITE), last
        )
        if (
            words[opening] == "," and words[opening - 1].lower() in JOINING
        ):  # "and , after a while , leaves"
            return True
        return not embedded and not any(
            tags[k] in CLAUSE or words[k].lower() in SUBORDINATORS for k in range(last, p)
        )
    return not embedded or words[p - 1] == "," or words[p].lower() == "but"


def _is_new_clause(last: int, t: int, words: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether the verb at t belongs to a further main clause ("..., and his wife dies")."""
    for k in range(t - 1, last, -1):
        if tags[k] in CLAUSE or (tags[k] == "IN" and words[k].lower() in SUBORDINATORS):
            return False
        if tags[k] == "CC" and k + 1 < t and tags[k + 1] in NOMINAL | {"PRP$", "JJ"}:
            between = {tags[q] for q in range(k + 1, t)}
            return not (between & CLAUSE)
    return False


def propose_positions(pipeline: Language, folder: Path) -> pd.DataFrame:
    """The positions that `find_verbs` names in the published files, tagged by a pipeline.

    Returns:
        dataset, sentence_idx, positions ("1 8"): the table that `read_positions` reads.
    """
    proposed = []
    for dataset in ("D_A", "D_S"):
        for split in SPLITS:
            rows = read_geco(folder / DATASETS[dataset] / f"{split}.jsonl", on_fault="keep")
            bases = {
                idx: list(base.sort_values("target")["sentence"])
                for idx, base in rows.groupby("sentence_idx")
            }
            bases = {
                idx: forms
                for idx, forms in bases.items()
                if len({len(form) for form in forms}) == 1
            }
            words = [
                [[word.strip() or "_" for word in form] for form in forms]
                for forms in bases.values()
            ]
            docs = annotate_tokens([forms[1] for forms in words], pipeline)
            for idx, forms, doc in zip(bases, words, docs, strict=True):
                if positions := find_verbs(forms[2], forms[1], [token.tag_ for token in doc]):
                    proposed.append((dataset, idx, " ".join(map(str, positions))))
    return pd.DataFrame(proposed, columns=["dataset", "sentence_idx", "positions"]).sort_values(
        ["dataset", "sentence_idx"]
    )
