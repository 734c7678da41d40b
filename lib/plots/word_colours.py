"""A sentence's word scores to look at: as a self-contained piece of HTML."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from jinja2 import Environment

from ..core.errors import TouchstoneError

_LARGE_GAP = 0.05  # of the change that is explained
# scores that say how much and not in which direction, whatever the settings
_UNSIGNED = (
    "Attention rollout",
    "Uniform random",
    "Pattern Variant",
    "First pronoun",
    "Pronoun list",
)
_TEMPLATES = Environment(autoescape=True, keep_trailing_newline=True)
# Styles stand on the elements: sites that show notebooks strip style sheets. Orange and violet are
# told apart without red and green.
_BOX = _TEMPLATES.from_string(
    "{% macro colour(strength) %}background:rgba("
    '{{ "224,130,20" if strength >= 0 else "128,115,172" }},'
    '{{ "%.2f" | format(strength | abs) }}){% endmacro %}'
    '<div id="words-{{ mark }}" style="font-family:sans-serif;line-height:2;color:#222;'
    "background:#fff;padding:.6em .8em;border:1px solid #ccc;border-radius:4px;"
    'max-width:60em">{% if title %}<div><b>{{ title }}</b></div>{% endif %}'
    "<div>{% for word, score in scored %}"
    '<span title="{{ "%.3g" | format(score) }}" style="{{ colour(score / largest) }}">'
    '{{ word }}</span>{{ "" if loop.last else " " }}{% endfor %}</div>'
    '<div style="font-size:.8em;color:#555;line-height:1.4">'
    '<span style="{{ colour(1) }}">&nbsp;orange&nbsp;</span>'
    "{% if signed %} toward {{ toward }}, "
    '<span style="{{ colour(-1) }}">&nbsp;violet&nbsp;</span> away from it'
    "{% else %} how much, whether for or against; this method gives no sign{% endif %}"
    '; largest score {{ "%.3g" | format(largest) }}'
    "{% if remark %}; {{ remark }}{% endif %}</div></div>"
)
_PAGE = _TEMPLATES.from_string(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    "<title>Word scores</title></head>\n<body>\n{{ text | safe }}\n</body></html>\n"
)


def words_to_html(
    words: Sequence[str],
    scores: Sequence[float],
    title: str = "",
    toward: str = "the class",
    signed: bool = True,
    remark: str = "",
    number: int = 1,
) -> str:
    """One sentence as HTML: words coloured by their scores, each score in the tooltip of its word.

    Orange moves the model toward the class, violet away from it; the strongest colour is the
    largest size in the sentence. No script, no style sheet, nothing loaded; the id is made from the
    content, so the same scores give the same text.

    Args:
        words: the words of the sentence.
        scores: one finite number a word, in any unit.
        title: a line above the words.
        toward: what a positive score speaks for, in words.
        signed: False where scores have no sign; then there is one colour, and the note says what it
            means.
        remark: the end of the note.
        number: which one of several equal boxes on a page this is; their ids must differ.

    Raises:
        TouchstoneError: there is not one finite score a word.

    >>> ">She</span>" in words_to_html(["She", "sings"], [0.5, -0.1])
    True
    """
    values = np.asarray(scores, float)
    if values.shape != (len(words),) or not np.isfinite(values).all():
        raise TouchstoneError(
            f"there are {len(words)} words and {values.size} scores; give one finite score a word"
        )
    values = values if signed else np.abs(values)
    content = [list(words), values.tolist(), title, toward, signed, remark]
    mark = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    return _BOX.render(
        scored=list(zip(words, values)),
        largest=np.abs(values).max(initial=0.0) or 1.0,
        title=title,
        toward=toward,
        signed=signed,
        remark=remark,
        mark=mark if number == 1 else f"{mark}-{number}",
    )


def explanations_to_html(
    explanations: pd.DataFrame,
    classes: Sequence[str] = (),
    page: bool = False,
    unsigned: Collection[str] = _UNSIGNED,
) -> str:
    """Lines of a table of explanations as HTML, one box below the other, each with an id of its
    own.

    Where a method has a completeness gap, the note under the words says how large it is. Scores
    have no sign where the settings of the line make sizes of them (`aggregation` l1 or l2,
    `normalise_special`), and for `unsigned` methods.

    Args:
        explanations: words, scores, target, method, settings (JSON), delta (or null) and explained,
            one line a row.
        classes: the names of the classes, by `target`; without them they are numbered.
        page: True gives a whole document, to be saved as a file; otherwise a piece for a notebook.
        unsigned: names of methods whose scores say how much and not in which direction, whatever
            their settings; by default attention rollout and the rules that see no model.
    """
    boxes: list[str] = []
    seen: Counter[str] = Counter()
    for row in explanations.itertuples():
        name = classes[row.target] if classes else f"class {row.target}"
        settings = json.loads(row.settings)
        is_size = settings.get("aggregation") in ("l1", "l2") or settings.get("normalise_special")
        signed = row.method not in unsigned and not is_size
        seen[str(row[1:])] += 1
        boxes.append(
            words_to_html(
                row.words,
                row.scores,
                f"{row.method}: {name}",
                name,
                signed,
                _gap(row.scores, row.delta, row.explained),
                seen[str(row[1:])],
            )
        )
    text = "\n".join(boxes)
    return _PAGE.render(text=text) if page else text


def _gap(scores: Sequence[float], delta: float | None, explained: str) -> str:
    """What to say about a completeness gap: nothing where a method has none."""
    if delta is None or np.isnan(delta):
        return ""
    # the scores add up to the change and the gap
    share = abs(delta) / max(abs(float(np.sum(scores)) - delta), 1e-12)
    warning = ": more than 5 %, read them with care" if share > _LARGE_GAP else ""
    return (
        f"the scores miss the change of the {explained.replace('_', ' ')} by {abs(delta):.2g} "
        f"({share:.1%}){warning}"
    )
