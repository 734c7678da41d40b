"""Schematics of effects of a concept: how an estimate errs, how methods answer, what is forgotten.

Every function takes plain arguments, draws them and says in words what it drew.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from .drawing import DASHED, FOR, INK, LEARNS, PALE, SECOND, SMALL, SOFT, Drawing, Sheet

Point = tuple[float, float]


def draw_errors(effect: Sequence[float], estimate: Sequence[float]) -> Drawing:
    """Two effects on three classes as arrows in their plane, and three errors between them.

    Args:
        effect: the changes of three probabilities, which sum to zero.
        estimate: an explainer's answer, which sums to zero, too.
    """
    true, said = np.array(effect), np.array(estimate)
    lengths = np.linalg.norm(true), np.linalg.norm(said)
    cosine = true @ said / np.prod(lengths)
    sheet, x, y, unit = Sheet(172), 40.0, 104.0, 480.0
    turn = np.arccos(cosine)
    end = (x + unit * lengths[0], y)
    tip = (x + unit * lengths[1] * cosine, y - unit * lengths[1] * np.sin(turn))
    sheet.line([end[0], tip[0]], [end[1], tip[1]], color=SECOND, linestyle=DASHED)
    sheet.arrow((x, y), end, color=INK, linewidth=2.0)
    sheet.arrow((x, y), tip, color=INK, linewidth=2.0)
    for radius, looks in ((44, {"color": SECOND}), (unit * lengths[1], {"color": SOFT})):
        along = np.linspace(0, turn, 30)
        style = {"linewidth": 1.2 if radius == 44 else 0.8, "linestyle": "-"}
        sheet.line(x + radius * np.cos(along), y - radius * np.sin(along), **(style | looks))
    sheet.dot(x, y)
    errors = np.linalg.norm(true - said), 1 - cosine, abs(lengths[0] - lengths[1])
    _label_errors(sheet, (x, y), end, tip, x + unit * lengths[1], errors)
    return Drawing(
        sheet.figure,
        "Two arrows from one point, the true effect and an estimate, and three "
        f"errors: L2 {errors[0]:.2f} is the distance of their tips, the cosine error "
        f"{errors[1]:.2f} looks at the angle alone, and Normdiff {errors[2]:.2f} at the lengths.",
    )


def _label_errors(
    sheet: Sheet, start: Point, end: Point, tip: Point, swung: float, errors: Sequence[float]
) -> None:
    """What the lines of `draw_errors` are: `swung` is where the estimate ends on the effect."""
    (x, y), (l2, cosine, normdiff) = start, errors
    sheet.text(end[0] + 6, y + 4, "true effect", weight="bold")
    sheet.text(tip[0] - 4, tip[1] - 8, "estimate", ha="center", weight="bold")
    middle = (end[0] + tip[0]) / 2
    sheet.text(middle + 4, (y + tip[1]) / 2 - 8, f"L2 {l2:.2f}: from tip to tip", color=SECOND)
    sheet.text(x + 50, y - 5, "angle", SMALL, color=SECOND)
    sheet.line([swung, swung, end[0], end[0]], [y + 6, y + 12, y + 12, y + 6], color=SECOND)
    said = f"Normdiff {normdiff:.2f}: the lengths differ"
    sheet.text((swung + end[0]) / 2, y + 26, said, ha="center", color=SECOND)
    sheet.text(4, y - 76, f"cosine error {cosine:.2f}:", color=SECOND)
    sheet.text(4, y - 62, "the angle alone", color=SECOND)
    sheet.notes(4, y + 58, "The dot is the answer that nothing changes: an arrow without length.")


def draw_two_answers(apart: float, answers: Sequence[Point]) -> Drawing:
    """Two effects and one answer to both: how large the mean of its two errors is.

    Args:
        apart: the distance of the two effects.
        answers: where an answer is: along the line from one effect to the other, from its middle,
            and across it.
    """
    sheet, unit = Sheet(186), 140 / apart
    told = []
    for k, (along, across) in enumerate(answers):
        left, y = 26 + 200.0 * k, 98.0
        a, b = (left, y), (left + unit * apart, y)
        e = (left + unit * (apart / 2 + along), y - unit * across)
        far = float(np.hypot(along + apart / 2, across)), float(np.hypot(along - apart / 2, across))
        sheet.line([a[0], b[0]], [y, y], color=SOFT, linestyle=DASHED)
        for name, (x, _), side, error in zip("ab", (a, b), (-1, 1), far, strict=True):
            sheet.line([x, e[0]], [y, e[1]], color=SECOND, linewidth=1.6)
            sheet.dot(x, y)
            sheet.text(x + 9 * side, y + 4, name, ha="center" if side else "", weight="bold")
            at = (
                (x + e[0]) / 2 + (14 * side if across else 0),
                (y + e[1]) / 2 - (6 if across else 8),
            )
            sheet.text(*at, f"{error:.2f}", ha="center", color=SECOND)
        sheet.dot(*e, fill=FOR, marker="D")
        sheet.text(e[0], e[1] - (10 if across else 20), "e", ha="center", weight="bold")
        sheet.text((a[0] + b[0]) / 2, y + 16, f"{apart:.2f} apart", SMALL, ha="center", color=SOFT)
        mean = sum(far) / 2
        said = f"mean error {mean:.2f}"
        sheet.text((a[0] + b[0]) / 2, y + 38, said, ha="center", weight="bold")
        told.append(f"{far[0]:.2f} and {far[1]:.2f}, in the mean {mean:.2f}")
    sheet.notes(4, 14, "a and b are the effects of two editors' texts, e is an explainer's answer.")
    said = f"No answer has a smaller mean error than half of {apart:.2f}."
    sheet.notes(4, 164, said, "On the line between a and b the mean is exactly that.")
    return Drawing(
        sheet.figure,
        f"Two effects, a and b, are {apart:.2f} apart; an answer beside their line has the errors "
        f"{told[0]}, and one on the line {told[1]}, which is half the distance and the least "
        "possible.",
    )


def draw_ways(texts: Sequence[tuple[str, str, float]], asked: int) -> Drawing:
    """Four ways to answer what a model would say if the food were good.

    Args:
        texts: train texts: value of the food, value of the service, the model's answer.
        asked: the one that has the values and the answer of the text in question.
    """
    good, bad = ([t[2] for t in texts if t[0] == value] for value in ("good", "bad"))
    (_, service, answer) = texts[asked]
    match = next(t[2] for t in texts if t[0] == "good" and t[1] == service)
    sheet = Sheet(298)
    sheet.box(4, 4, 392, 36, facecolor=PALE, edgecolor=PALE)
    said = f"bad food, {service} service: the model answers {answer:.1f}."
    sheet.text(200, 19, said, ha="center")
    sheet.text(200, 34, "What if the food had been good?", ha="center", weight="bold")
    titles = {
        "compare averages": "CONEXP; circles are texts",
        "match another text": "Approx",
        "follow a direction": "TCAV (towards c')",
        "remove the concept": "INLP, LEACE, CausaLM",
    }
    for k, (title, names) in enumerate(titles.items()):
        x, y = 4 + 200 * (k % 2), 50.0 + 124 * (k // 2)
        sheet.box(x, y, 192, 118)
        sheet.text(x + 8, y + 16, title, weight="bold")
        sheet.text(x + 8, y + 30, names, SMALL, color=SOFT)
    means = _averages(sheet, 4, 50, {"good food": good, "bad food": bad})
    _matched(sheet, 204, 50, service, answer, match)
    _direction(sheet, 4, 174)
    _removed(sheet, 204, 174)
    return Drawing(
        sheet.figure,
        f"Four ways to say what becomes of the answer {answer:.1f} if the food were good: compare "
        f"average answers to train texts ({means:+.2f}), match a text with good food and the same "
        f"service ({match - answer:+.1f}), follow the direction of the concept among the model's "
        "vectors, or remove the concept from them.",
    )


def _averages(sheet: Sheet, x: float, y: float, groups: Mapping[str, Sequence[float]]) -> float:
    """Answers of two groups of texts on a scale, with their means; the difference of these."""
    means = [float(np.mean(values)) for values in groups.values()]
    left, wide = x + 70, 104.0
    for k, (name, values) in enumerate(groups.items()):
        row = y + 52 + 26 * k
        sheet.text(left - 8, row + 4, name, SMALL, ha="right")
        sheet.line([left, left + wide], [row, row], color=PALE, linewidth=2)
        for value in values:
            sheet.dot(left + wide * value, row, "white", size=6)
        at = left + wide * means[k]
        sheet.line([at, at], [row - 9, row + 9], color=SECOND, linewidth=2)
    gap = means[0] - means[1]
    sheet.notes(x + 8, y + 110, f"means {means[0]:.2f} and {means[1]:.2f}: {gap:+.2f}", color=INK)
    return gap


def _matched(sheet: Sheet, x: float, y: float, service: str, answer: float, match: float) -> None:
    """The text that is asked about, and another with good food and the same service."""
    for k, (food, value) in enumerate((("bad", answer), ("good", match))):
        left = x + 8 + 96 * k
        sheet.box(left, y + 40, 80, 46, f"{food} food\n{service} service\n{value:.1f}",
                  facecolor=FOR if k else PALE)  # fmt: skip
    sheet.arrow((x + 89, y + 63), (x + 103, y + 63))
    said = f"{match:.1f} \N{MINUS SIGN} {answer:.1f}: {match - answer:+.1f}"
    sheet.notes(x + 8, y + 110, said, color=INK)


def _direction(sheet: Sheet, x: float, y: float) -> None:
    """A vector among lines of equal answers, and the direction of a concept."""
    for k in range(4):
        left = x + 40 + 30 * k
        sheet.line([left, left + 22], [y + 94, y + 38], color=PALE, linewidth=2)
    sheet.dot(x + 50, y + 76)
    sheet.arrow((x + 54, y + 75), (x + 134, y + 50), color=SECOND, linewidth=2)
    sheet.text(x + 172, y + 52, "good", SMALL, ha="center", color=SECOND)
    sheet.notes(x + 8, y + 110, "Grey: equal answers. How steep?", color=INK)


def _removed(sheet: Sheet, x: float, y: float) -> None:
    """Vectors of two groups of texts that fall together when a direction is removed."""
    for k, shift in enumerate((0, 14, 28, 42)):
        row = y + 44 + shift
        for side, fill in ((-1, PALE), (1, FOR)):
            at = x + 96 + side * (44 + 9 * (k % 2))
            sheet.arrow((at - 6 * side, row), (x + 96 + 5 * side, row), linewidth=0.8)
            sheet.dot(at, row, fill, "s" if side > 0 else "o", 6)
        sheet.dot(x + 96, row, "white", size=6)
    sheet.text(x + 24, y + 68, "bad", SMALL, ha="center")
    sheet.text(x + 172, y + 68, "good", SMALL, ha="center")
    sheet.notes(x + 8, y + 110, "As if the food were unknown.", color=INK)


def draw_forgetting(strength: float) -> Drawing:
    """Three heads on one encoder, and a gradient that is reversed on its way back.

    Args:
        strength: what the reversed gradient is multiplied by, without its sign.
    """
    sheet = Sheet(264)
    sheet.box(4, 86, 44, 36, "text")
    sheet.box(70, 86, 58, 36, "encoder", facecolor=LEARNS)
    sheet.box(148, 8, 48, 192, "states")
    sheet.arrow((49, 104), (69, 104))
    sheet.arrow((129, 104), (147, 104))
    heads = (
        ("fills in words", "and goes on doing it", "gradient", False),
        ("control concept", "is to be kept", "gradient", False),
        ("adversary", "reads the concept that\nis to be forgotten", "", True),
    )
    reversed_by = f"\N{MULTIPLICATION SIGN} \N{MINUS SIGN}{strength:g}"
    for k, (name, does, said, is_reversed) in enumerate(heads):
        y = 8 + 68.0 * k
        sheet.box(266, y, 130, 56, f"{name}\n{does}", head=True, facecolor=LEARNS)
        sheet.arrow((197, y + 14), (265, y + 14))
        looks = {"color": SECOND, "linestyle": DASHED, "linewidth": 2.0} if is_reversed else {}
        sheet.arrow((265, y + 44), (197, y + 44), **({"color": INK} | looks))
        weight, text = ("bold", reversed_by) if is_reversed else ("normal", said)
        sheet.text(231, y + 38, text, SMALL, ha="center", weight=weight)
    sheet.notes(
        4,
        222,
        "Solid arrows to the left: the states change so that a head improves.",
        "Dashed: reversed. The adversary itself improves, and the states change",
        "so that it gets worse.",
    )
    return Drawing(
        sheet.figure,
        "A text goes through an encoder to its states, which three heads read: one fills in words, "
        "one reads a control concept, and an adversary reads the concept that is to be forgotten; "
        f"its gradient is multiplied by -{strength:g} before it reaches the states.",
    )
