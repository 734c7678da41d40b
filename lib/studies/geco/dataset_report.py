"""The report on a data set that was made of somebody's text: counts, doubts, what is still open."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml

from ...language.labels import Label, Scope
from ...language.lexicon import PRONOUNS
from .doubts import Doubts, reason_of
from .metadata import unsaid
from .review import Decision

DECISIONS = "decisions.json"  # saved by a reader on the review page
CARD = "card.yaml"  # written by the owner, beside the texts


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
        for scope in ("all", "subj")
        for i in label.replacements(scope)
    )  # type: ignore[arg-type]
    rows = [(scope, kind, n) for (scope, kind), n in sorted(counts.items())]
    return pd.DataFrame(rows, columns=["scope", "kind", "positions"])


def _kind(label: Label, i: int, scope: Scope) -> str:
    word, forms = label.words[i].lower(), label.replacements(scope)[i]
    if forms is None:
        return "deleted"
    if i in label.names:
        return "name"
    if word in ("a", "an"):
        return "article"
    return "pronoun" if word in PRONOUNS else "verb" if forms[0] == forms[1] else "noun or title"


def decisions_left(out: Path, stale: Mapping[str, Decision]) -> str:
    """What became of no decision: about sentences that have gone, and in other files."""
    listed = [
        f"- {'rejected' if decision.rejected else 'edited'}: {decision.text or decision.text_id}\n"
        for decision in stale.values()
    ]
    gone = (
        (
            "\n## Decisions about sentences that are not in the text\n\nThey were not applied. "
            "The review page lists and keeps "
            f"them; they apply again where the sentence comes back.\n\n{''.join(listed)}"
        )
        if listed
        else ""
    )
    others = [
        f"- {file.name}\n" for file in sorted(out.glob("decisions*.json")) if file.name != DECISIONS
    ]
    return gone + (
        f"\n## Not read\n\nOnly `{DECISIONS}` is read; rename the file that is to "
        f"count.\n\n{''.join(others)}"
        if others
        else ""
    )


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


def _markdown(table: pd.DataFrame) -> str:
    lines = [
        list(table.columns),
        ["---"] * len(table.columns),
        *table.astype(str).to_numpy().tolist(),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
