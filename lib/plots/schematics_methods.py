"""Schematics of methods and machinery: what learns, how methods ask, what a floor is, what a run
leaves.

Every function takes plain arguments, draws them and says in words what it drew.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .drawing import (
    AGAINST,
    DASHED,
    FOR,
    INK,
    LEARNS,
    PALE,
    SECOND,
    SMALL,
    SOFT,
    STAYS,
    WIDTH,
    Drawing,
    Sheet,
    text_width,
    word_widths,
)

_TREATED = {  # fill, hatch, in words
    "fixed": (STAYS, "", "stays as it is"),
    "fine-tuned": (LEARNS, "", "goes on learning"),
    "re-initialised": (LEARNS, "////", "starts anew and learns"),
}


def draw_schemes(schemes: Mapping[str, tuple[str, Mapping[str, str]]]) -> Drawing:
    """Which parts of a model stay, go on learning or start anew, one stack a scheme.

    Args:
        schemes: by the paper's symbol, the scheme's name (lines broken by a newline) and the
            treatment of each part, from the input up: fixed, fine-tuned or re-initialised.
    """
    parts = list(next(iter(schemes.values()))[1])
    width = 74.0 * len(schemes) + 8
    sheet = Sheet(32 * len(parts) + 78, max(WIDTH, width))
    wide = (width - 8) / len(schemes)
    for k, (symbol, (name, treated)) in enumerate(schemes.items()):
        x = 4 + k * wide
        for step, part in enumerate(reversed(parts)):
            fill, hatch, _ = _TREATED[treated[part]]
            looks: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "hatchcolor": "white"}
            looks |= {"linestyle": DASHED} if treated[part] == "fixed" else {}
            sheet.box(x + 2, 6 + 32 * step, wide - 6, 28, **looks)
            sheet.text(x + wide / 2 - 1, 24 + 32 * step, part, 9, ha="center")
        y = 32 * len(parts) + 18
        sheet.text(x + wide / 2 - 1, y, symbol, SMALL, ha="center", weight="bold")
        for i, line in enumerate(name.split("\n")):
            sheet.text(x + wide / 2 - 1, y + 13 * (i + 1), line, 9, ha="center", color=SOFT)
    x, y = 6.0, 32 * len(parts) + 58
    for treatment, (fill, hatch, meaning) in _TREATED.items():
        edge: dict[str, Any] = {"linestyle": DASHED} if treatment == "fixed" else {}
        sheet.box(x, y, 18, 13, facecolor=fill, hatch=hatch, hatchcolor="white", **edge)
        sheet.text(x + 23, y + 10, meaning, SMALL)
        x += 40 + text_width(meaning, SMALL)
    told = "; ".join(
        f"{symbol} ({name.replace(chr(10), ' ')}): "
        + ", ".join(f"{part} {_TREATED[how][2]}" for part, how in treated.items())
        for symbol, (name, treated) in schemes.items()
    )
    return Drawing(sheet.figure, f"A stack of parts for each transfer scheme. {told}.")


def draw_path(curve: Sequence[tuple[float, float]], slopes: Sequence[float]) -> Drawing:
    """The walk of Integrated Gradients: slopes at a few points, laid end to end, and the gap.

    Args:
        curve: (share of the way, score) from the empty sentence to the real one.
        slopes: the slope of the score in the middle of each of as many equal steps.
    """
    along, scores = np.array(curve).T
    sheet = Sheet(224)
    left, right, top, bottom = 56, 292, 14, 164
    ends = np.linspace(0, 1, len(slopes) + 1)
    walked = scores[0] + np.concatenate([[0.0], np.cumsum(np.array(slopes) / len(slopes))])
    low, high = min(0.0, scores.min()), max(scores.max(), walked.max())

    def at(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return left + (right - left) * x, bottom - (bottom - top) * (y - low) / (high - low)

    middles = (ends[1:] + ends[:-1]) / 2
    sheet.line([left, left, right], [top, bottom, bottom], color=SOFT, linewidth=0.8)
    sheet.line(*at(along, scores), linewidth=2.0)
    sheet.line(*at(ends, walked), color=SECOND, marker="o", markersize=4, linestyle=DASHED)
    on_curve = np.interp(middles, along, scores)
    sheet.line(*at(middles, on_curve), linestyle="", marker="|", markersize=9, color=INK)
    rise, total = scores[-1] - scores[0], walked[-1] - scores[0]
    (x,), (y_curve,) = at(np.array([1.0]), scores[-1:])
    _, (y_walk,) = at(np.array([1.0]), walked[-1:])
    sheet.line([x + 6, x + 11, x + 11, x + 6], [y_curve, y_curve, y_walk, y_walk], linewidth=1.0)
    sheet.text(x + 16, (y_curve + y_walk) / 2 + 4, f"gap {_signed(total - rise, 2)}", weight="bold")
    for y, text in ((0.0, "0"), (1.0, "1")):
        sheet.text(left - 6, at(np.array([0.0]), np.array([y]))[1][0] + 4, text, SMALL, ha="right")
    sheet.text(4, top - 3, "score", SMALL, color=SOFT)
    sheet.text(left - 20, bottom + 16, "empty sentence", SMALL, color=SOFT)
    sheet.text(right + 20, bottom + 16, "the real one", SMALL, ha="right", color=SOFT)
    sheet.line([4, 26], [bottom + 32, bottom + 32], linewidth=2.0)
    sheet.text(32, bottom + 36, f"the model's score: it rises by {rise:.2f}", SMALL)
    sheet.line([4, 26], [bottom + 48, bottom + 48], color=SECOND, marker="o", markersize=4,
               linestyle=DASHED)  # fmt: skip
    said = f"the slope at {len(slopes)} points (|), laid end to end: {total:.2f}"
    sheet.text(32, bottom + 52, said, SMALL)
    return Drawing(
        sheet.figure,
        f"The score on the way from an empty sentence to the real one rises by {rise:.2f}. The "
        f"slopes at the middle of {len(slopes)} equal steps, laid end to end, reach {total:.2f}. "
        f"The gap is {total - rise:+.2f}; more steps make it smaller.",
    )


def draw_torn(
    words: Sequence[str],
    copies: Sequence[Sequence[int]],
    answers: Sequence[float],
    weights: Sequence[float],
) -> Drawing:
    """How LIME asks: copies of a sentence with words taken out, the answers, and a sum that fits
    them, with its constant.

    Args:
        words: the sentence.
        copies: for each copy, 1 where a word stays.
        answers: the model's answer to each copy.
        weights: of the words, in the weighted sum that fits the answers.
    """
    widths = word_widths([words])
    end = 4 + sum(widths) + 2 * len(words)
    sheet = Sheet(25 * len(copies) + 86)
    sheet.text(4, 12, "LIME: copies with words taken out", SMALL, color=SOFT)
    sheet.text(end + 62, 12, "answer", SMALL, ha="center", color=SOFT)
    for k, (kept, answer) in enumerate(zip(copies, answers, strict=True)):
        y = 18 + 25 * k
        gone = [i for i, stays in enumerate(kept) if not stays]
        sheet.words(4, y, words, gone=gone, widths=widths)
        sheet.arrow((end + 6, y + 10), (end + 36, y + 10))
        sheet.text(end + 62, y + 14, f"{answer:.1f}", ha="center")
    constant = float(np.mean(np.subtract(answers, np.dot(copies, weights))))
    y = 18 + 25 * len(copies) + 8
    sheet.line([4, end + 80], [y, y], linewidth=0.8)
    sheet.text(
        4,
        y + 17,
        f"A sum of the words that fits these answers, with a constant of {constant:.1f}:",
        SMALL,
        color=SOFT,
    )
    largest = max(map(abs, weights)) or 1.0
    fills = {i: FOR if w > 0 else AGAINST for i, w in enumerate(weights) if abs(w) > 0.1 * largest}
    middles = sheet.words(4, y + 25, words, fills=fills, widths=widths)
    for middle, weight in zip(middles, weights):
        sheet.text(middle, y + 57, _signed(weight, 1), SMALL, ha="center")
    told = "; ".join(
        f"{' '.join(w for w, stays in zip(words, kept) if stays)}: {answer:.1f}"
        for kept, answer in zip(copies, answers)
    )
    given = ", ".join(f"{word} {_signed(weight, 1)}" for word, weight in zip(words, weights))
    return Drawing(
        sheet.figure,
        f"LIME: copies of a sentence with words taken out, and the model's answers: {told}. Below, "
        f"the weights of the words in a sum that fits, with a constant of {constant:.1f}: {given}.",
    )


def draw_swaps(players: Sequence[str], corners: Sequence[str], values: Sequence[float]) -> Drawing:
    """Shapley values over swaps of two players: four mixtures of two forms, and two ways through.

    Args:
        players: the two players.
        corners: the mixtures: no player of the form that is explained, the first, the second, both.
        values: the model's answer to each.
    """
    none, first, second, both = values
    sheet = Sheet(226)
    places = [(120, 150), (4, 78), (236, 78), (120, 6)]
    for (x, y), text, value in zip(places, corners, values):
        sheet.box(x, y, 160, 36, f"{text}\n{value:.1f}")
    steps = (
        (0, 1, f"{players[0]} {first - none:+.1f}", (96, 141), "right"),
        (1, 3, f"{players[1]} {both - first:+.1f}", (96, 64), "right"),
        (0, 2, f"{players[1]} {second - none:+.1f}", (304, 141), "left"),
        (2, 3, f"{players[0]} {both - second:+.1f}", (304, 64), "left"),
    )
    for start, end, text, (x, y), side in steps:
        (x1, y1), (x2, y2) = places[start], places[end]
        shift = 0.35 * (x2 - x1)
        looks: dict[str, Any] = {"linestyle": "solid" if side == "right" else DASHED}
        sheet.arrow((x1 + 80 + shift, y1 - 1), (x2 + 80 - shift, y2 + 38), **looks)
        sheet.text(x, y, text, SMALL, ha=side)
    shares = (first - none + both - second) / 2, (second - none + both - first) / 2
    said = ", ".join(f"{player} {share:.2f}" for player, share in zip(players, shares))
    mixtures = "; ".join(f"{text} {value:.1f}" for text, value in zip(corners, values))
    sheet.text(4, 204, f"Mean over both orders: {said}.", weight="bold")
    sheet.text(4, 220, f"They sum to {sum(shares):.1f}, the whole change.", SMALL, color=SOFT)
    return Drawing(
        sheet.figure,
        f"Four mixtures of two forms: {mixtures}. "
        f"Two ways lead from the first to the last: {players[0]} first, or {players[1]} first. The "
        f"mean of each player's contributions is its Shapley value: {said}.",
    )


def draw_randomised(parts: Sequence[str]) -> Drawing:
    """Randomisation from the head down: part after part loses what it learnt.

    Args:
        parts: from the head to the embeddings.
    """
    sheet = Sheet(27 * len(parts) + 82)
    wide = (WIDTH - 8) / (len(parts) + 1)
    for step in range(len(parts) + 1):
        x = 4 + step * wide
        for k, part in enumerate(parts):
            random = k < step
            looks = {"facecolor": PALE, "hatch": "xxxx", "hatchcolor": "white"} if random else {
                "facecolor": LEARNS
            }  # fmt: skip
            sheet.box(x + 2, 6 + 27 * k, wide - 8, 23, **looks)
            sheet.text(x + wide / 2 - 2, 21 + 27 * k, part, SMALL, ha="center")
        y = 27 * len(parts) + 14
        sheet.arrow((x + wide / 2 - 2, y - 6), (x + wide / 2 - 2, y + 12))
        name = "explanation" if not step else f"again ({step})"
        sheet.text(x + wide / 2 - 2, y + 25, name, SMALL, ha="center", weight="bold")
    y = 27 * len(parts) + 62
    x = 6.0
    for looks, meaning in (
        ({"facecolor": LEARNS}, "as it was trained"),
        ({"facecolor": PALE, "hatch": "xxxx", "hatchcolor": "white"}, "random numbers"),
    ):
        sheet.box(x, y - 11, 18, 13, **looks)
        sheet.text(x + 23, y, meaning, SMALL)
        x += 46 + text_width(meaning, SMALL)
    said = "Does the explanation change? If not, it does not look at the model."
    sheet.text(6, y + 16, said, SMALL, color=SOFT)
    return Drawing(
        sheet.figure,
        f"A model of {', '.join(parts)}, {len(parts) + 1} times. From left to right one more part, "
        "from the head down, is filled with random numbers, and the sentence is explained again. "
        "An explanation that does not change does not look at the model.",
    )


def draw_floor(values: Mapping[str, float], floors: Sequence[str], quantity: str) -> Drawing:
    """Methods on a scale, and how far rules reach that never look at the model.

    Args:
        values: by name, between 0 and 1.
        floors: the names of the rules; the highest is the floor.
        quantity: what is measured.
    """
    order = sorted(values, key=lambda name: -values[name])
    left = max(text_width(name, bold=True) for name in values) + 16
    right = WIDTH - 24
    floor = max(values[name] for name in floors)
    sheet = Sheet(24 * len(order) + 80)
    edge = left + (right - left) * floor
    bottom = 24 * len(order) + 24
    sheet.ax.fill_between([left, edge], 18, bottom, color="#f3f1ea", linewidth=0)
    sheet.line([edge, edge], [18, bottom], linestyle=DASHED)
    sheet.text(edge, 12, "floor", SMALL, ha="center", weight="bold")
    for k, name in enumerate(order):
        y, x = 34 + 24 * k, left + (right - left) * values[name]
        is_rule = name in floors
        sheet.text(left - 10, y + 4, name, ha="right", weight="normal" if is_rule else "bold")
        looks = {"marker": "o", "markersize": 8, "markeredgecolor": INK}
        sheet.line([x], [y], markerfacecolor="white" if is_rule else INK, **looks)
        side, shift = ("right", -9) if values[name] > 0.5 else ("left", 9)
        sheet.text(x + shift, y + 4, f"{values[name]:.2f}", SMALL, ha=side)
    sheet.line([left, right], [bottom, bottom], color=SOFT, linewidth=0.8)
    for share in (0.0, 0.5, 1.0):
        x = left + (right - left) * share
        sheet.text(x, bottom + 14, f"{share:g}", SMALL, ha="center", color=SOFT)
    sheet.text((left + right) / 2, bottom + 28, quantity, SMALL, ha="center", color=SOFT)
    said = "\N{WHITE CIRCLE} rules that never look at the model; the best of them is the floor"
    sheet.text(4, bottom + 48, said, SMALL)
    told = ", ".join(f"{name} {values[name]:.2f}" for name in order)
    return Drawing(
        sheet.figure,
        f"{quantity} on a scale from 0 to 1: {told}. {', '.join(floors)} never look at the model. "
        f"The best of them, {floor:.2f}, is the floor: a method below it has not shown "
        "that it explains the model.",
    )


def draw_stages(stages: Sequence[str], units: Sequence[str], files: Sequence[str]) -> Drawing:
    """What a stage, a unit and a manifest are.

    Args:
        stages: the folders of a study, in order.
        units: names of some units of one stage.
        files: some files that its manifest lists.
    """
    sheet = Sheet(242)
    wide = (WIDTH - 4) / len(stages)
    chosen = len(stages) // 2
    sheet.text(4, 13, "A stage reads what earlier ones left, and writes its own folder.", SMALL)
    for k, stage in enumerate(stages):
        looks = {"facecolor": LEARNS} if k == chosen else {}
        sheet.box(4 + k * wide, 22, wide - 12, 52, stage.replace("_", "\n"), **looks)
        if k:
            sheet.arrow((k * wide - 7, 48), (3 + k * wide, 48))
    dashes: dict[str, Any] = {"color": SOFT, "linewidth": 0.8, "linestyle": DASHED}
    sheet.line([4 + chosen * wide, 8], [75, 96], **dashes)
    sheet.line([(chosen + 1) * wide - 8, 392], [75, 96], **dashes)
    sheet.box(4, 96, 392, 140, edgecolor=SOFT, facecolor="#f7f9fb")
    sheet.text(14, 114, stages[chosen], weight="bold")
    for k, unit in enumerate(units):
        sheet.box(14, 124 + 25 * k, 178, 21, unit)
    y = 124 + 25 * len(units) + 14
    for k, line in enumerate(
        ("Units: finished one by one, kept,", "and found again by their key.")
    ):
        sheet.text(14, y + 13 * k, line, SMALL, color=SOFT)
    sheet.arrow((196, 158), (220, 158))
    sheet.box(224, 106, 162, 28 + 15 * len(files))
    sheet.text(234, 123, "manifest.json", weight="bold")
    for k, file in enumerate(files):
        sheet.text(234, 139 + 15 * k, f"\N{CHECK MARK} {file}", SMALL)
    y = 134 + 15 * len(files) + 17
    lines = (
        "Manifest: what was read and",
        "written, with checksums. It is",
        "written last: then the stage",
    )
    for k, line in enumerate((*lines, "is complete.")):
        sheet.text(224, y + 13 * k, line, SMALL, color=SOFT)
    return Drawing(
        sheet.figure,
        f"Five stages in a row: {', '.join(stages)}. Each reads what earlier ones left. Inside "
        f"{stages[chosen]}: units such as {', '.join(units)}, finished one by one and kept; then "
        f"the manifest, which lists {', '.join(files)} with their checksums. With the manifest the "
        "stage is complete.",
    )


def _signed(value: float, digits: int) -> str:
    """
    >>> _signed(0.25, 2), _signed(-0.001, 1)
    ('+0.25', '0')
    """
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if round(value, digits) else "0"
