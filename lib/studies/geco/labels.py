"""Hand labels in GECO's way: reading and checking them, the rows that follow, how two agree, and
what is behind the errors of a program's.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score

from ...core.errors import TouchstoneError, check_choice
from ...core.files import parse_yaml, read_utf8
from ...language.labels import Label, Replacement, Scope, differing_positions, gender_variants
from ...language.visible import is_visible
from .corpus import CLASSES, COLUMNS, GENDERS, refuse

# which words a data set alters, and its classes
CONTENTS: dict[str, tuple[Scope, Sequence[str]]] = {
    "D_A": ("all", CLASSES),
    "D_S": ("subj", CLASSES),
    "D_A_binary": ("all", CLASSES[:2]),
    "D_S_binary": ("subj", CLASSES[:2]),
}
_FIELDS = ("all", "names", "subj", "subject", "tokens")
_OPTIONAL = ("reasons",)


def read_labels(path: Path | str) -> dict[str, Label]:
    """Read and check a file of labels by sentence id (YAML; its head describes the format).

    Raises:
        TouchstoneError: naming file, sentence and position, for the first label that is not usable.
    """
    entries = parse_yaml(read_utf8(path), str(path))
    if not isinstance(entries, dict):
        raise TouchstoneError(
            f"{path} does not map sentence ids to labels; write `id: {{tokens: ..., subject: ...}}`"
        )
    return {
        str(name): _checked(str(name), entry, f"{path}, sentence {name}")
        for name, entry in entries.items()
    }


def labelled_rows(
    labels: Sequence[Label], scope: Scope, classes: Sequence[str] = CLASSES
) -> pd.DataFrame:
    """The rows of a data set in GECO's columns: every label in each class.

    The k-th label is base sentence k. There is one mask per base sentence and data set; with the
    classes F and M only, it holds no verb that follows "they".
    """
    rows = []
    for idx, label in enumerate(labels):
        variants = gender_variants(label, scope)
        mask = differing_positions([variants[name] for name in classes])
        rows += [
            (f"{idx}-{name}", idx, target, GENDERS[target], variants[name], list(mask))
            for target, name in enumerate(CLASSES)
            if name in classes
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def altered_words(label: Label, scope: Scope) -> list[int]:
    """For each word of the original sentence, 1 where the label alters or deletes it, else 0."""
    return [int(i in label.replacements(scope)) for i in range(len(label.words))]


def label_agreement(
    first: Mapping[str, Label], second: Mapping[str, Label], scope: Scope
) -> dict[str, float]:
    """How far two labellings of the same sentences agree, over the sentences of the second.

    Returns:
        sentences, identical (all three forms the same, word by word), share_identical; words,
        words_agree (share of the original words that both alter or both leave), and kappa (Cohen's,
        of altered or not: 0 chance, 1 perfect).
    """
    same = [
        gender_variants(first[key], scope) == gender_variants(label, scope)
        for key, label in second.items()
    ]
    flags = [flag for key in second for flag in altered_words(first[key], scope)]
    flags_of_second = [flag for label in second.values() for flag in altered_words(label, scope)]
    return {
        "sentences": len(same),
        "identical": sum(same),
        "share_identical": sum(same) / len(same),
        "words": len(flags),
        "words_agree": float(np.mean(np.equal(flags, flags_of_second))),
        "kappa": float(cohen_kappa_score(flags, flags_of_second)),
    }


def bound_table(scores: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """What is behind the annotator's errors that were read, and the best score that this gold
    allows.

    Args:
        scores: rows of `annotator_scores.csv` for one pipeline and D_A.
        errors: the wrong sentences by comparison (input, quantity, words) with a `verdict`: one
            that begins with "gold" is a fault of the gold, "text" a sentence that does not tell,
            the rest are ours; and the verdict of a `second` reading.

    Returns:
        Per comparison the score and the counts of errors; `highest`: the score of an annotator
        that makes only the errors laid at the gold's door, and those of the text; `agreed`: errors
        that both readings call a fault of the gold; `mended`: our score were only these corrected.
    """
    rows = []
    for (side, quantity), part in errors.groupby(["input", "quantity"], sort=False):
        score = scores[(scores["input"] == side) & (scores["quantity"] == quantity)].iloc[0]
        by_words = quantity.startswith("mask")
        value = score["F1" if by_words else "sentences_right"]
        words = part["words"] if by_words else part["words"].clip(upper=1)
        counts = words.groupby(part["verdict"].str.split().str[0]).sum()
        gold, text, ours = counts.reindex(["gold", "text", "annotator"], fill_value=0)
        twice = part["verdict"].str.startswith("gold") & part["second"].str.startswith("gold")
        n, agreed = counts.sum(), words[twice].sum()
        highest, mended = (1 - (1 - value) * (n - right) / n for right in (ours, agreed))
        rows.append((side, quantity, value, n, gold, text, ours, highest, agreed, mended))
    columns = ["input", "quantity", "score", "errors", "gold_at_fault", "text_does_not_tell"]
    columns += ["ours", "highest", "agreed", "mended"]
    return pd.DataFrame(rows, columns=columns)


def _checked(name: str, entry: Any, where: str) -> Label:
    missing = [field for field in _FIELDS if not isinstance(entry, dict) or field not in entry]
    if missing:
        raise TouchstoneError(
            f"{where} lacks {', '.join(missing)}; write all of {', '.join(_FIELDS)}"
        )
    for field in entry:
        check_choice(f"a field of {where}", field, (*_FIELDS, *_OPTIONAL))
    for part in ("names", "subj", "all", "reasons"):
        if not isinstance(entry.get(part) or {}, dict):
            raise TouchstoneError(
                f"{where}, {part} is {entry[part]!r}; write {{position: ...}}, or {{}} for none"
            )
    if not isinstance(entry["tokens"], str) or entry["tokens"].split() != entry["tokens"].split(
        " "
    ):
        raise TouchstoneError(f"{where}, tokens: write words with one blank between two")
    words = tuple(entry["tokens"].split(" "))
    if unseen := [i for i, word in enumerate(words) if not is_visible(word)]:
        raise TouchstoneError(
            f"{where}, tokens: word {unseen[0]} has no width; remove it, and count again"
        )
    names, reasons = dict(entry["names"] or {}), dict(entry.get("reasons") or {})
    for part in ("names", "subj", "all"):
        for position in entry[part] or {}:
            _check_position(position, words, f"{where}, {part}")
    _check_position(entry["subject"], words, f"{where}, subject")
    scopes = {
        part: {
            i: _replacement(i, change, words, i in names, f"{where}, {part}, position {i}")
            for i, change in (entry[part] or {}).items()
        }
        for part in ("subj", "all")
    }
    if not scopes["subj"]:
        raise TouchstoneError(
            f"{where} alters nothing for its subject, so the variants of D_S would be the same "
            "sentence; label the subject's words or reject the sentence"
        )
    for position, change in scopes["subj"].items():
        # a word of the subject is a gendered word, so D_A alters it as D_S does
        if scopes["all"].get(position, ()) != change and position not in reasons:
            raise TouchstoneError(
                f"{where}, position {position} ({words[position]}) is altered in subj, but not in "
                "the same way in all; make them agree, or give a reason under `reasons`"
            )
    return Label(name, words, entry["subject"], names, scopes["subj"], scopes["all"])


def _check_position(position: Any, words: Sequence[str], where: str) -> None:
    if (
        not isinstance(position, int)
        or isinstance(position, bool)
        or not 0 <= position < len(words)
    ):
        raise TouchstoneError(
            f"{where}, position {position} is not in the sentence of {len(words)} words; "
            f"use 0 to {len(words) - 1}"
        )


def _replacement(
    position: int, change: Any, words: Sequence[str], is_name: bool, where: str
) -> Replacement:
    if change is None:
        return None
    is_triple = (
        isinstance(change, list)
        and len(change) == 3
        and all(isinstance(word, str) for word in change)
    )
    female, male, neutral = forms = change if is_triple else ("", "", "")
    problems = {
        "is not [female, male, neutral] words; write three words, or null to delete the word in "
        "every variant": not is_triple,
        f"has an empty replacement or one with a blank in it: {change}; write single words, or "
        "null to delete the word in every variant": any(
            not is_visible(word) or word != "".join(word.split()) for word in forms
        ),
        f"becomes {female!r} in every variant, so nothing tells them apart; remove the "
        "position": female == male == neutral,
        f"is none of its own variants {change}; keep the original word in one of them, or mark it "
        "as a name": words[position] not in forms and not is_name,
    }
    refuse(f"{where} ({words[position]})", problems)
    return female, male, neutral
