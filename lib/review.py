"""Reviewing labels that a program made: what is doubtful about a sentence, a page to read it on, the reader's decisions."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from lib.errors import TouchstoneError
from lib.labels import Label, Replacement, Scope
from lib.lexicon import PRONOUNS, load_lexicon
from lib.text import SUBJECTS, subject_of

PAGE = files("lib") / "review_page.html"  # package data, so that an installed copy has it too
SCOPES: tuple[Scope, Scope] = ("all", "subj")


@dataclass(frozen=True)
class Decision:
    """What a reader decided about one sentence: keep or reject it, and what some positions become instead."""

    rejected: bool
    edits: Mapping[Scope, Mapping[int, Replacement]]
    text_id: str


def text_fingerprint(words: Sequence[str]) -> str:
    """Twelve letters that stand for the words of a sentence, so that a decision is not applied to another text."""
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def doubts(doc: Doc, label: Label) -> list[str]:
    """Why a label should be read before it is trusted, in words; an empty list where nothing is known against it."""
    genders = [word.lower() for word in label.words if word.lower() in PRONOUNS]
    by_gender = [sum(PRONOUNS[word] == gender for word in genders) for gender in ("F", "M")]
    same = max(by_gender) >= 2 and len(label.subj) < len(label.all)
    unsure = [i for i, word in enumerate(label.words) if word.lower() == "her" and i + 1 < len(label.words)
              and (doc[i].tag_ == "PRP$") != (label.all.get(i, ("", "", ""))[1] in ("his", "His"))]  # type: ignore[index]
    unknown = [token.text for token in doc if token.pos_ == "PROPN" and token.dep_ in SUBJECTS and token.i not in label.all
               and not (token.i and load_lexicon().is_title(doc[token.i - 1].text))]
    reasons = {"several pronouns of one gender: who is who?": same,
               "no subject found": subject_of(doc) is None,
               f"\"her\" could be him or his (word {', '.join(str(i + 1) for i in unsure)})": bool(unsure),
               f"a name or not: {', '.join(unknown)}": bool(unknown),
               "a name was found": bool(label.names),
               "nothing to alter for the subject": not label.subj,
               "30 words or more": len(label.words) >= 30}
    return [reason for reason, holds in reasons.items() if holds]


def review_page(title: str, labels: Mapping[str, Label], reasons: Mapping[str, Sequence[str]],
                decisions: Mapping[str, Decision]) -> str:
    """A self-contained HTML page: the three forms of every sentence side by side, the most doubtful sentences first."""
    order = sorted(labels, key=lambda key: -len(reasons[key]))
    rows = [{"id": key, "words": labels[key].words, "text_id": text_fingerprint(labels[key].words),
             "doubts": list(reasons[key]), "rejected": key in decisions and decisions[key].rejected,
             "edits": {scope: dict(decisions[key].edits[scope]) for scope in SCOPES} if key in decisions else {},
             "changes": {scope: labels[key].replacements(scope) for scope in SCOPES}} for key in order]
    data = json.dumps(rows, ensure_ascii=False).replace("</", "<\\/")
    page = PAGE.read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(title)).replace("{{data}}", data)


def read_decisions(path: Path) -> dict[str, Decision]:
    """The decisions that the review page saved, by sentence id; none where there is no file.

    Raises TouchstoneError naming file and sentence for a file that the page cannot have written.
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


def apply_decisions(labels: Mapping[str, Label], decisions: Mapping[str, Decision], source: str) -> dict[str, Label]:
    """The labels that were not rejected, with the reader's words in place of the program's.

    Raises TouchstoneError where a decision is about a sentence that is not there or has changed, or a position outside it.
    """
    kept = dict(labels)
    for key, decision in decisions.items():
        if key not in labels or text_fingerprint(labels[key].words) != decision.text_id:
            raise TouchstoneError(f"{source}, sentence {key}: the text no longer holds this sentence; remove the entry, "
                                  "or read and save the new review page")
        if decision.rejected:
            del kept[key]
            continue
        label = labels[key]
        if outside := [i for edits in decision.edits.values() for i in edits if not 0 <= i < len(label.words)]:
            raise TouchstoneError(f"{source}, sentence {key}: there is no word {outside[0]}; remove the entry")
        kept[key] = replace(label, subj=_edited(label, "subj", decision), all=_edited(label, "all", decision))
    return kept


def _edited(label: Label, scope: Scope, decision: Decision) -> dict[int, Replacement]:
    merged = dict(label.replacements(scope)) | dict(decision.edits[scope])
    return {i: forms for i, forms in sorted(merged.items()) if forms is None or set(forms) != {label.words[i]}}


def _decision(entry: Any) -> Decision:
    edits: dict[Scope, dict[int, Replacement]] = {scope: {} for scope in SCOPES}
    for scope in SCOPES:
        for position, forms in entry.get("edits", {}).get(scope, {}).items():
            if forms is not None and (len(forms) != 3 or not all(isinstance(word, str) and word.strip() for word in forms)):
                raise ValueError(f"position {position} does not have three words: {forms}")
            edits[scope][int(position)] = None if forms is None else (forms[0].strip(), forms[1].strip(), forms[2].strip())
    if not isinstance(entry["rejected"], bool):
        raise ValueError("rejected is neither true nor false")
    return Decision(entry["rejected"], edits, entry["text_id"])
