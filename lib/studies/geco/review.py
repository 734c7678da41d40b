"""Reviewing labels that a program made: a page to read them on, and the reader's decisions."""

import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...core.errors import TouchstoneError
from ...language.labels import Label, Replacement, Scope
from .doubts import Doubts

_PAGE = files(__package__) / "review_page.html"  # package data: an installed copy has it too
_SCOPES: tuple[Scope, Scope] = ("all", "subj")


@dataclass(frozen=True)
class Decision:
    """What a reader decided about one sentence.

    Args:
        rejected: whether the sentence is left out.
        edits: what some positions become instead, by scope.
        text_id: the `text_fingerprint` of the sentence.
        text: its words, so that a reader knows it again.
    """

    rejected: bool
    edits: Mapping[Scope, Mapping[int, Replacement]]
    text_id: str
    text: str = ""  # the words of the sentence, so that a reader knows it again


def text_fingerprint(words: Sequence[str]) -> str:
    """Twelve letters that stand for the words of a sentence.

    By them a decision is not applied to another text.
    """
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def review_page(
    title: str,
    labels: Mapping[str, Label],
    against: Mapping[str, Doubts],
    decisions: Mapping[str, Decision],
    stale: Mapping[str, Decision],
) -> str:
    """A self-contained HTML page: the three forms of every sentence side by side.

    The most doubtful of each data set come first, sentences in which nothing is altered last.

    Args:
        title: of the page.
        labels: by sentence id.
        against: the doubts about each label.
        decisions: what a reader decided before, by sentence id.
        stale: decisions about sentences that are not in the text; the page lists them and saves
            them again with the others.
    """
    rows = [
        {
            "id": key,
            "words": label.words,
            "text_id": text_fingerprint(label.words),
            "labelled": bool(label.all),
            "doubts": {scope: against[key].of(scope) for scope in _SCOPES},
            "rank": {scope: against[key].rank(scope) for scope in _SCOPES},
            "rejected": key in decisions and decisions[key].rejected,
            "edits": {scope: dict(decisions[key].edits[scope]) for scope in _SCOPES}
            if key in decisions
            else {},
            "changes": {scope: label.replacements(scope) for scope in _SCOPES},
        }
        for key, label in labels.items()
    ]
    data = {"rows": rows, "stale": {key: asdict(decision) for key, decision in stale.items()}}
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    page = _PAGE.read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(title)).replace("{{data}}", text)


def read_decisions(path: Path) -> dict[str, Decision]:
    """The decisions that the review page saved, by sentence id; none where there is no file.

    Raises:
        TouchstoneError: naming file and sentence, for a file that the page cannot have written.
    """
    if not path.is_file():
        return {}
    remedy = "save it again from the review page, or delete it"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["sentences"]
        return {key: _decision(entry) for key, entry in entries.items()}
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise TouchstoneError(f"{path} is not valid JSON ({error}); {remedy}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TouchstoneError(f"{path} does not hold decisions ({error!r}); {remedy}") from None


def match_decisions(
    labels: Mapping[str, Label], decisions: Mapping[str, Decision]
) -> tuple[dict[str, Decision], dict[str, Decision]]:
    """The decisions whose sentence the text holds, by its id, and the others ("gone-...").

    A sentence is known by its words, wherever it stands by now.
    """
    now = {text_fingerprint(label.words): key for key, label in labels.items()}
    matched = {
        now[decision.text_id]: decision
        for decision in decisions.values()
        if decision.text_id in now
    }
    return matched, {
        f"gone-{decision.text_id}": decision
        for decision in decisions.values()
        if decision.text_id not in now
    }


def apply_decisions(
    labels: Mapping[str, Label], decisions: Mapping[str, Decision], source: str
) -> dict[str, Label]:
    """The labels that were not rejected and alter something, with the reader's words in them.

    Args:
        decisions: by the ids of the labels (`match_decisions`).
        source: the file of decisions, for messages.

    Raises:
        TouchstoneError: a position lies outside its sentence.
    """
    edited = dict(labels)
    for key, decision in decisions.items():
        label = labels[key]
        if outside := [
            i for edits in decision.edits.values() for i in edits if not 0 <= i < len(label.words)
        ]:
            raise TouchstoneError(
                f"{source}, sentence {key}: there is no word {outside[0]}; remove the entry"
            )
        edited[key] = replace(
            label, subj=_edited(label, "subj", decision), all=_edited(label, "all", decision)
        )
    return {
        key: label
        for key, label in edited.items()
        if label.all and not (key in decisions and decisions[key].rejected)
    }


def _edited(label: Label, scope: Scope, decision: Decision) -> dict[int, Replacement]:
    merged = dict(label.replacements(scope)) | dict(decision.edits[scope])
    return {
        i: forms
        for i, forms in sorted(merged.items())
        if forms is None or set(forms) != {label.words[i]}
    }


def _decision(entry: Any) -> Decision:
    edits: dict[Scope, dict[int, Replacement]] = {scope: {} for scope in _SCOPES}
    for scope in _SCOPES:
        for position, forms in entry.get("edits", {}).get(scope, {}).items():
            if forms is not None and (
                len(forms) != 3 or not all(isinstance(word, str) and word.strip() for word in forms)
            ):
                raise ValueError(f"position {position} does not have three words: {forms}")
            edits[scope][int(position)] = (
                None if forms is None else (forms[0].strip(), forms[1].strip(), forms[2].strip())
            )
    if not isinstance(entry["rejected"], bool):
        raise ValueError("rejected is neither true nor false")
    return Decision(entry["rejected"], edits, str(entry["text_id"]), str(entry.get("text", "")))
