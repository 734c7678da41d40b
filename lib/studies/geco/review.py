"""Reviewing labels that a program made: a page to read them on, the reader's decisions, and a
report of counts, doubts and what is still open.
"""

import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ...core.errors import TouchstoneError
from ...core.files import read_json
from ...language.labels import Label, Replacement, Scope
from ...language.lexicon import PRONOUNS
from ...language.visible import is_visible
from .doubts import Doubts, reason_of
from .metadata import unsaid

DECISIONS = "decisions.json"  # saved by a reader on the review page
CARD = "card.yaml"  # written by the owner, beside the texts

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
    # No word of a text may end the page's script, or begin a comment in it.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    filled = {"{{title}}": html.escape(title), "{{data}}": text}
    page = _PAGE.read_text(encoding="utf-8")
    # At once, for a title may hold the mark of the data.
    return re.sub(r"\{\{(title|data)\}\}", lambda mark: filled[mark[0]], page)


def read_decisions(path: Path) -> dict[str, Decision]:
    """The decisions that the review page saved, by sentence id; none where there is no file.

    Raises:
        TouchstoneError: naming file and sentence, for a file that the page cannot have written.
    """
    if not path.exists():
        return {}
    remedy = "save it again from the review page, or delete it"
    content = read_json(path, remedy)
    entries = content.get("sentences") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise TouchstoneError(f"{path} does not hold decisions by sentence (sentences); {remedy}")
    decisions = {}
    for key, entry in entries.items():
        try:
            decisions[key] = _decision(entry)
        except ValueError as error:
            raise TouchstoneError(f"{path}, sentence {key}: {error}; {remedy}") from None
    return decisions


def match_decisions(
    labels: Mapping[str, Label], decisions: Mapping[str, Decision]
) -> tuple[dict[str, Decision], dict[str, Decision]]:
    """The decisions whose sentence the text holds, by its id, and the others ("gone-...").

    A sentence is known by its words, wherever it stands by now.
    """
    # ids count sentences, so they move when text is put in front; words do not
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


def report(
    text: Path,
    counts: pd.DataFrame,
    labels: Mapping[str, Label],
    data: Mapping[str, Mapping[str, pd.DataFrame]],
    against: Mapping[str, Doubts],
    n_decisions: int,
    pipeline: str,
) -> str:
    """The report on a data set in Markdown: counts by step, doubts by kind, what to do next."""
    kinds = Counter(reason_of(doubt) for key in labels for doubt in against[key].of("subj"))
    numbers = Counter(sum(map(len, against[key])) for key in labels)
    sizes = [
        (
            name,
            split,
            len(rows),
            rows["sentence_idx"].nunique(),
            rows["ground_truth"].map(sum).mean(),
        )
        for name, splits in data.items()
        for split, rows in splits.items()
    ]
    tables = {
        "Sentences": counts,
        "Altered positions": count_changes(labels),
        "Data sets": pd.DataFrame(
            sizes, columns=["dataset", "split", "rows", "base sentences", "masked words (mean)"]
        ).round(2),
        "Doubts": pd.DataFrame(kinds.most_common(), columns=["reason", "sentences"]),
        "Sentences by number of doubts": pd.DataFrame(
            sorted(numbers.items()), columns=["doubts", "sentences"]
        ),
    }
    head = (
        f"# Report: {text.resolve().name}\n\nLabelled by program with the spaCy pipeline "
        f"{pipeline}; {n_decisions} decisions of a "
        "reader were applied. Labels of this kind have errors: read `review.html`.\n"
    )
    return head + "".join(f"\n## {name}\n\n{_markdown(table)}" for name, table in tables.items())


def count_changes(labels: Mapping[str, Label]) -> pd.DataFrame:
    """How many positions the labels alter, by scope and kind.

    The kinds: pronoun, noun or title, name, verb, article, deleted.
    """
    counts = Counter(
        (scope, _kind(label, i, scope))
        for label in labels.values()
        for scope in _SCOPES
        for i in label.replacements(scope)
    )
    rows = [(scope, kind, n) for (scope, kind), n in sorted(counts.items())]
    return pd.DataFrame(rows, columns=["scope", "kind", "positions"])


def decisions_left(out: Path, stale: Mapping[str, Decision]) -> str:
    """What became of no decision: about sentences that have gone, and in other files."""
    listed = [
        f"- {'rejected' if decision.rejected else 'edited'}: {decision.text or decision.text_id}\n"
        for decision in stale.values()
    ]
    others = [
        f"- {file.name}\n" for file in sorted(out.glob("decisions*.json")) if file.name != DECISIONS
    ]
    sections = {
        "\n## Decisions about sentences that are not in the text\n\nThey were not applied. The "
        "review page lists and keeps them; they apply again where the sentence comes back.": listed,
        f"\n## Not read\n\nOnly `{DECISIONS}` is read; rename the file that is to count.": others,
    }
    return "".join(f"{about}\n\n{''.join(lines)}" for about, lines in sections.items() if lines)


def to_be_said(text: Path, card: Mapping[str, object]) -> str:
    """The parts of the card that only the owner can write, as a section; empty if all are there."""
    if not (open_parts := unsaid(card)):
        return ""
    written = yaml.safe_dump(open_parts, allow_unicode=True, sort_keys=False, width=120)
    return (
        f"\n## Still to be said\n\nOnly you can say this. Write it into "
        f"`{text.resolve().name}/{CARD}` in place of these words, "
        f"and build again; until then the card and the Croissant metadata are not fit to be "
        f"published.\n\n```yaml\n{written}```\n"
    )


def _edited(label: Label, scope: Scope, decision: Decision) -> dict[int, Replacement]:
    merged = dict(label.replacements(scope)) | dict(decision.edits[scope])
    return {
        i: forms
        for i, forms in sorted(merged.items())
        if forms is None or set(forms) != {label.words[i]}
    }


def _decision(entry: Any) -> Decision:
    """A decision as the page saves it; a ValueError says what it is not."""
    if not isinstance(entry, dict) or not isinstance(entry.get("rejected"), bool):
        raise ValueError("rejected is neither true nor false")
    if not isinstance(entry.get("text_id"), str):
        raise ValueError("text_id is no text")
    given = entry.get("edits", {})
    if not isinstance(given, dict) or not all(isinstance(part, dict) for part in given.values()):
        raise ValueError("edits are not three words by position")
    if unknown := set(given) - set(_SCOPES):
        raise ValueError(f"edits of {min(unknown)}, which is neither all nor subj")
    edits: dict[Scope, dict[int, Replacement]] = {scope: {} for scope in _SCOPES}
    for scope in _SCOPES:
        for position, forms in given.get(scope, {}).items():
            if not re.fullmatch("-?[0-9]+", position):
                raise ValueError(f"position {position!r} is no whole number")
            edits[scope][int(position)] = _forms(position, forms)
    return Decision(entry["rejected"], edits, entry["text_id"], str(entry.get("text", "")))


def _forms(position: str, forms: Any) -> Replacement:
    """The three words of a position; a blank within one would make one word of two."""
    if forms is None:
        return None
    are_words = isinstance(forms, list) and all(
        isinstance(word, str) and len(word.split()) == 1 and is_visible(word) for word in forms
    )
    if not are_words or len(forms) != 3:
        raise ValueError(f"position {position} does not have three words, without blanks: {forms}")
    return forms[0].strip(), forms[1].strip(), forms[2].strip()


def _kind(label: Label, i: int, scope: Scope) -> str:
    word, forms = label.words[i].lower(), label.replacements(scope)[i]
    if forms is None:
        return "deleted"
    if i in label.names:
        return "name"
    if word in ("a", "an"):
        return "article"
    return "pronoun" if word in PRONOUNS else "verb" if forms[0] == forms[1] else "noun or title"


def _markdown(table: pd.DataFrame) -> str:
    lines = [
        list(table.columns),
        ["---"] * len(table.columns),
        *table.astype(str).to_numpy().tolist(),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
