"""A sentence's word scores to look at: as a self-contained piece of HTML, and as a plot."""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.attribution import METHODS
from lib.core.errors import TouchstoneError
from lib.plots.attributions import STYLE

FOR, AGAINST = (
    (224, 130, 20),
    (128, 115, 172),
)  # orange and violet, told apart without red and green
BOX = (
    "font-family:sans-serif;line-height:2;color:#222;background:#fff;padding:.6em .8em;border:1px solid #ccc;"
    "border-radius:4px;max-width:60em"
)
LARGE_GAP = 0.05  # of the change that is explained
NOTE = "font-size:.8em;color:#555;line-height:1.4"


def words_to_html(
    words: Sequence[str],
    scores: Sequence[float],
    title: str = "",
    toward: str = "the class",
    signed: bool = True,
    remark: str = "",
) -> str:
    """One sentence as HTML: words coloured by their scores, each score in the tooltip of its word.

    Orange moves the model toward the class, violet away from it; the strongest colour is the largest size in the sentence.
    Scores without a sign (`signed` False) have one colour, and the note says what they are; a `remark` ends the note.
    No script, no style sheet, nothing loaded; the id is made from the content, so the same scores give the same text.
    Raises TouchstoneError where there is not one finite score a word.
    """
    values = _checked(words, scores)
    values = values if signed else np.abs(values)
    largest = np.abs(values).max(initial=0.0) or 1.0
    spans = " ".join(
        _word(word, value, value / largest) for word, value in zip(words, values, strict=True)
    )
    head = f"<div><b>{html.escape(title)}</b></div>" if title else ""
    orange, violet = (
        f'<span style="{_colour(s)}">&nbsp;{name}&nbsp;</span>'
        for s, name in ((1.0, "orange"), (-1.0, "violet"))
    )
    meaning = (
        f"{orange} toward {html.escape(toward)}, {violet} away from it"
        if signed
        else f"{orange} how much, whether for or against; this method gives no sign"
    )
    note = f'<div style="{NOTE}">{meaning}; largest score {largest:.3g}{html.escape(remark and f"; {remark}")}</div>'
    body = f"{head}<div>{spans}</div>{note}"
    mark = hashlib.sha256(body.encode()).hexdigest()[:12]
    return f'<div id="words-{mark}" style="{BOX}">{body}</div>'


def explanations_to_html(
    explanations: pd.DataFrame, classes: Sequence[str] = (), page: bool = False
) -> str:
    """Lines of a table of explanations as HTML, one box below the other, each with an id of its own.

    With `page` a whole document, to be saved as a file; without, a piece for a notebook. Where a method has a completeness
    gap, the note under the words says how large it is.
    """
    boxes: list[str] = []
    seen: Counter[str] = Counter()
    for row in explanations.itertuples():
        name = classes[row.target] if classes else f"class {row.target}"
        known, settings = METHODS.get(row.method), json.loads(row.settings)
        box = words_to_html(
            row.words,
            row.scores,
            f"{row.method}: {name}",
            name,
            known is None or known.has_sign(settings),
            _gap(row.scores, row.delta, row.explained),
        )
        seen[box] += 1
        boxes.append(box if seen[box] == 1 else box.replace('" style=', f'-{seen[box]}" style=', 1))
    text = "\n".join(boxes)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Word scores</title></head>\n<body>\n{text}\n</body></html>\n'
        if page
        else text
    )


def _gap(scores: Sequence[float], delta: float | None, explained: str) -> str:
    """What to say about a completeness gap: nothing where a method has none."""
    if delta is None or np.isnan(delta):
        return ""
    share = abs(delta) / max(abs(float(np.sum(scores)) - delta), 1e-12)
    return (
        f"the scores miss the change of the {explained.replace('_', ' ')} by {abs(delta):.2g} ({share:.1%})"
        + (": more than 5 %, read them with care" if share > LARGE_GAP else "")
    )


def plot_words(
    words: Sequence[str], scores: Sequence[float], label: str = "score"
) -> tuple[Figure, pd.DataFrame]:
    """The scores as bars, a bar a word in the order of the sentence, and the table that is plotted."""
    table = pd.DataFrame({"word": list(words), "score": _checked(words, scores)})
    with plt.rc_context(STYLE | {"axes.grid.axis": "y"}):
        figure, ax = plt.subplots(figsize=(max(3.0, 0.62 * len(table)), 2.6), layout="constrained")
        ax.bar(
            range(len(table)),
            table["score"],
            color=[tuple(c / 255 for c in (FOR if s >= 0 else AGAINST)) for s in table["score"]],
        )
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set_xticks(
            range(len(table)),
            table["word"],
            rotation=30 if len(table) > 8 else 0,
            ha="right" if len(table) > 8 else "center",
        )
        ax.set_ylabel(label)
    return figure, table


def _checked(words: Sequence[str], scores: Sequence[float]) -> np.ndarray:
    values = np.asarray(scores, float)
    if values.shape != (len(words),) or not np.isfinite(values).all():
        raise TouchstoneError(
            f"there are {len(words)} words and {values.size} scores; give one finite score a word"
        )
    return values


def _word(word: str, value: float, strength: float) -> str:
    shown = html.escape(word)
    return f'<span title="{value:.3g}" style="{_colour(strength)}">{shown}</span>'


def _colour(strength: float) -> str:
    red, green, blue = FOR if strength >= 0 else AGAINST
    return f"background:rgba({red},{green},{blue},{abs(strength):.2f})"
