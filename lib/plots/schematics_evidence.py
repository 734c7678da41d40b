"""Schematics of what counts as evidence: what a probe reads, which explanations are compared, which
sentences get a score, and what an interval resamples.

Every function takes plain arguments, draws them and says in words what it drew.
"""

from collections.abc import Collection, Mapping, Sequence

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
    Drawing,
    Sheet,
    minus,
    word_widths,
)

Guess = tuple[str, float | None, str, float | None, str]  # words, p, why discarded


def draw_probe(
    words: Sequence[str], classes: Sequence[str], verbs: Sequence[Sequence[str]]
) -> Drawing:
    """A language model that stays as it is, and two ways to ask its last state.

    Args:
        words: a prefix, whose next word is a verb.
        classes: of the probe.
        verbs: for each class the verb's forms, in the same order.
    """
    sheet = Sheet(250)
    middles = sheet.words(4, 6, words)
    for x in middles:
        sheet.arrow((x, 26), (x, 42), linewidth=0.8)
    right = middles[-1] + 30
    sheet.box(4, 43, right, 26, "language model, as it was trained", linestyle=DASHED)
    sheet.arrow((middles[-1], 69), (middles[-1], 87))
    sheet.box(middles[-1] - 68, 88, 136, 24, "state after the last word", facecolor=PALE)
    columns = (
        ("the probe", f"{' or '.join(classes)}?", {"facecolor": LEARNS}),
        ("output layer", "a probability for every word", {"linestyle": DASHED}),
    )
    for k, (name, does, looks) in enumerate(columns):
        x = 4 + 204.0 * k
        sheet.arrow((middles[-1] - 30 + 60 * k, 113), (x + 94, 139))
        sheet.box(x, 140, 188, 40, f"{name}\n{does}", head=True, **looks)
        sheet.arrow((x + 94, 181), (x + 94, 197))
    sheet.text(98, 211, f"probability of {classes[1]}", ha="center", weight="bold")
    sheet.notes(98, 226, "it learns from examples,", "the model does not change", ha="center")
    sheet.text(302, 211, "direct preference", ha="center", weight="bold")
    sums = [" + ".join(f"p({verb})" for verb in forms) for forms in verbs]
    said = f"log ({sums[1]})", f"\N{MINUS SIGN} log ({sums[0]})"
    sheet.notes(302, 226, *said, ha="center", color=INK)
    return Drawing(
        sheet.figure,
        f"A language model that stays as it is reads {' '.join(words)!r}, and its last state is "
        f"asked twice: a probe, which learns, says {' or '.join(classes)}, and the model's own "
        f"output layer compares {' and '.join(verbs[1])} with {' and '.join(verbs[0])}.",
    )


def draw_consistency(
    lines: Mapping[str, tuple[Sequence[str], Sequence[float]]], cue: int, attractor: int
) -> Drawing:
    """One line with its scores, between one with other nouns and the same line in a student.

    Args:
        lines: by the model's name the words and their scores: other nouns first, then the line,
            then the line in the student.
        cue: where the noun is that decides.
        attractor: where the other noun is.
    """
    widths = word_widths([words for words, _ in lines.values()])
    left, end = 74.0, 74 + sum(widths) + 2 * len(widths)
    sheet = Sheet(212)
    for k, (name, (words, scores)) in enumerate(lines.items()):
        y = 8.0 + 62 * k
        sheet.text(4, y + 13, name, weight="bold" if k == 1 else "normal")
        fills = {i: FOR if s > 0 else AGAINST for i, s in enumerate(scores) if abs(s) > 0.15}
        middles = sheet.words(left, y, words, {cue}, fills, widths=widths)
        for x, score in zip(middles, scores, strict=True):
            text = minus(f"{score:+.1f}") if score else "0"
            sheet.text(x, y + 33, text, SMALL, ha="center")
    (_, other), (_, first), (_, student) = lines.values()
    found = [float(np.corrcoef(first, scores)[0, 1]) for scores in (other, student)]
    for y, name, r in zip((38.0, 100.0), ("input", "model"), found, strict=True):
        sheet.line([end + 4, end + 12, end + 12, end + 4], [y - 18, y - 18, y + 38, y + 38])
        sheet.text(end + 18, y + 4, f"{name} consistency", SMALL, weight="bold")
        sheet.text(end + 18, y + 19, f"correlation {r:.2f}", SMALL)
    sheet.notes(4, 35, "other nouns")
    sheet.notes(4, 159, "same line")
    at = (first[cue], first[attractor])
    shown = minus(f"{at[0]:.1f} > {at[1]:.1f}")
    sheet.notes(
        4,
        188,
        f"Plausible: for the answer plural the cue leads the attractor, {shown}.",
        "Faithful: where the model's reason stays, so do the scores.",
    )
    return Drawing(
        sheet.figure,
        f"The scores of {' '.join(list(lines.values())[1][0])!r} are plausible, since the cue has "
        f"{at[0]:.1f} and the attractor {at[1]:.1f}; they are compared with those of a line with "
        f"other nouns (input consistency, correlation {found[0]:.2f}) and with those of the same "
        f"line in a student (model consistency, {found[1]:.2f}).",
    )


def draw_scores(guesses: Sequence[Guess], threshold: float) -> Drawing:
    """Pairs of probabilities, and what becomes of each: a place on the bias scale, or nothing.

    Args:
        guesses: male word, its probability, female word, its probability (None: not among the
            likeliest words), and why the sentence is discarded (empty: it is not).
        threshold: what both probabilities must reach.
    """
    sheet, left, wide = Sheet(46.0 * len(guesses) + 84), 200.0, 180.0
    bottom = 40 + 46.0 * len(guesses)
    for share, name in ((0.0, "female"), (0.5, "even"), (1.0, "male")):
        x = left + wide * share
        sheet.line([x, x], [36, bottom], color=PALE, linewidth=1.6, zorder=0)
        sheet.text(x, 14, name, ha="center", weight="bold")
        sheet.text(x, 29, f"{share:g}", SMALL, ha="center", color=SOFT)
    sheet.notes(4, 29, "probabilities at the mask")
    told = []
    for k, (one, p, other, q, why) in enumerate(guesses):
        y = 42 + 46.0 * k
        sheet.text(4, y + 21, f"{k + 1}", weight="bold")
        for row, (word, chance) in enumerate(((one, p), (other, q))):
            _bar(sheet, 20, y + 18 * row, word, chance, row == 0)
        if why:
            sheet.box(left + 4, y + 6, wide - 8, 22, f"discarded: {why}", linestyle=DASHED)
            told.append(f"{k + 1} is discarded ({why})")
            continue
        assert p is not None and q is not None
        bias = p / (p + q)
        sheet.line([left, left + wide], [y + 17, y + 17], color=SOFT, linewidth=0.8)
        sheet.dot(left + wide * bias, y + 17, FOR)
        sheet.text(left + wide * bias, y + 8, f"{bias:.2f}", ha="center", weight="bold")
        told.append(f"{k + 1} gets {bias:.2f}")
    sheet.notes(
        4,
        bottom + 18,
        "score = p(male) / (p(male) + p(female))",
        f"Dotted: {threshold:g}. Both must reach it, and be among the ten likeliest words.",
    )
    return Drawing(
        sheet.figure,
        "Pairs of probabilities and a scale of bias scores from 0 (female) over .5 (even) to 1 "
        f"(male): of {len(guesses)} sentences {', '.join(told)}; both probabilities must reach "
        f"{threshold:g}.",
    )


def _bar(sheet: Sheet, x: float, y: float, word: str, chance: float | None, is_male: bool) -> None:
    """One word's probability, with a dotted line at 5 %."""
    sheet.text(x, y + 12, word)
    if chance is None:
        sheet.text(x + 30, y + 12, "not among the ten", SMALL, color=SOFT)
        return
    fill = FOR if is_male else PALE
    sheet.box(x + 30, y + 1, max(200 * chance, 2), 14, facecolor=fill)
    sheet.line([x + 40, x + 40], [y - 1, y + 17], linestyle=":", linewidth=1.2)
    sheet.text(x + 36 + max(200 * chance, 8), y + 12, f"{chance:g}", SMALL)


def draw_resample(right: np.ndarray, drawn: Sequence[int]) -> Drawing:
    """Answers to the forms of base sentences in several runs, and one resample of sentences.

    Args:
        right: 1 where a run is right, (run, sentence, form).
        drawn: the sentences of the resample.
    """
    runs, sentences, _ = right.shape
    sheet = Sheet(2 * 24.0 * runs + 178)
    resample = right[:, list(drawn)]
    means = []
    for k, (said, shown, columns) in enumerate(
        (
            ("What was measured", right, range(sentences)),
            ("One resample: whole sentences, with all their forms and runs", resample, drawn),
        )
    ):
        y = 14.0 + k * (24 * runs + 58)
        sheet.text(4, y, said, weight="bold")
        _answers(sheet, y + 8, shown, ["ABCDEFGH"[i] for i in columns])
        means.append(float(shown.mean()))
    y = 2 * 24.0 * runs + 138
    sheet.dot(10, y - 4, LEARNS, "s", 9)
    sheet.text(20, y, "right", SMALL)
    sheet.dot(60, y - 4, "white", "s", 9)
    sheet.text(70, y, "wrong", SMALL)
    sheet.notes(116, y, "A box is a base sentence, with its three forms.")
    sheet.notes(
        4,
        y + 18,
        "The means of many resamples give an interval over sentences.",
        "The spread of the runs widens it.",
    )
    return Drawing(
        sheet.figure,
        f"Right and wrong answers to {sentences} base sentences in three forms, by {runs} "
        f"fine-tuning runs, with a mean of {means[0]:.2f}; a resample draws whole sentences, with "
        f"all their forms and runs, and has a mean of {means[1]:.2f}.",
    )


def _answers(sheet: Sheet, y: float, right: np.ndarray, names: Sequence[str]) -> None:
    """A grid of answers: runs below each other, sentences side by side, each with its forms."""
    runs, sentences, forms = right.shape
    for k, name in enumerate(names):
        x = 62 + 62.0 * k
        sheet.box(x, y, 54, 24.0 * runs + 18, facecolor="#f7f9fb")
        sheet.text(x + 27, y + 13, name, ha="center", weight="bold")
        for value, fill in ((1, LEARNS), (0, "white")):
            at = np.argwhere(right[:, k] == value)
            looks = {"markerfacecolor": fill, "markeredgecolor": INK, "markersize": 9}
            xs, ys = x + 11 + 16 * at[:, 1], y + 28 + 24 * at[:, 0]
            sheet.line(xs.tolist(), ys.tolist(), linestyle="", marker="s", **looks)
    x = 62 + 62.0 * sentences
    sheet.text(x + 6, y + 13, "mean", SMALL, color=SOFT)
    for run in range(runs):
        sheet.text(4, y + 32 + 24 * run, f"run {run + 1}")
        sheet.text(x + 6, y + 32 + 24 * run, f"{right[run].mean():.2f}")


def draw_layer_norm(values: Sequence[float], constant: float) -> Drawing:
    """A token's numbers, the same plus a constant, and what LayerNorm makes of both.

    Args:
        values: the numbers of a token, one a dimension.
        constant: what is added to all of them.
    """
    sheet = Sheet(206)
    before = np.array(values, float)
    for k, (said, given) in enumerate(
        (("a token's numbers", before), (f"the same, plus {constant:g}", before + constant))
    ):
        y = 8.0 + 76 * k
        normed = (given - given.mean()) / given.std()
        sheet.text(4, y + 36, said)
        _bars(sheet, 116, y, given, 10)
        sheet.arrow((196, y + 34), (218, y + 34))
        sheet.box(219, y + 20, 70, 28, "LayerNorm")
        sheet.arrow((290, y + 34), (312, y + 34))
        _bars(sheet, 320, y, normed, 16)
    sheet.notes(
        4,
        172,
        "LayerNorm takes the mean away: behind it nothing has changed. So the",
        "score f does not change, and its gradient sums to 0 over the dimensions.",
    )
    shown = ", ".join(f"{v:g}" for v in before), ", ".join(f"{v:g}" for v in before + constant)
    return Drawing(
        sheet.figure,
        f"The numbers {shown[0]} of a token, and the same plus {constant:g} ({shown[1]}), come out "
        "of LayerNorm alike, so the score does not change and its gradient sums to 0 over the "
        "dimensions.",
    )


def _bars(sheet: Sheet, x: float, y: float, values: np.ndarray, unit: float) -> None:
    """Bars beside each other with their numbers, below the line where they are negative."""
    base = y + (60 if values.min() >= 0 else 36)
    sheet.line([x - 2, x + 24 * len(values)], [base, base], color=SOFT, linewidth=0.8)
    for k, value in enumerate(values):
        tall = unit * float(value)
        top = base - max(tall, 0.0)
        if abs(tall) > 1:
            sheet.box(x + 24 * k + 3, top, 16, abs(tall), facecolor=PALE)
        text = minus(f"{round(float(value), 1) + 0.0:g}")
        at = base - max(tall, 0.0) - 4 if tall >= 0 else base - tall + 12
        sheet.text(x + 24 * k + 11, at, text, SMALL, ha="center")


def draw_hidden(n_words: int, n_padding: int) -> Drawing:
    """Attention between the tokens of a padded sentence, with keys hidden and with queries hidden.

    Args:
        n_words: tokens of the sentence.
        n_padding: tokens of padding after them.
    """
    n, size = n_words + n_padding, 21.0
    sheet = Sheet(222)
    for k, hidden in enumerate(("keys", "queries")):
        x, y = 50 + 200.0 * k, 40.0
        whole, part = size * n, size * n_words
        sheet.text(x + whole / 2, 14, f"{hidden} of padding hidden", ha="center", weight="bold")
        sheet.text(x + part / 2, 34, "words", SMALL, ha="center")
        sheet.text(x + (whole + part) / 2, 34, "padding", SMALL, ha="center")
        sheet.text(x - 5, y + part / 2 + 4, "words", SMALL, ha="right")
        sheet.text(x - 5, y + (whole + part) / 2 + 4, "padding", SMALL, ha="right")
        sheet.box(x, y, whole, whole, facecolor=LEARNS)
        start, wide, tall = (
            ((x + part, y), whole - part, whole)
            if hidden == "keys"
            else ((x, y + part), whole, whole - part)
        )
        sheet.box(*start, wide, tall, facecolor=PALE, hatch="////", hatchcolor="white")
        for i in range(1, n):
            for xs, ys in (
                ([x, x + whole], [y + size * i] * 2),
                ([x + size * i] * 2, [y, y + whole]),
            ):
                sheet.line(xs, ys, color="white", linewidth=1.0)
        sheet.box(x, y, whole, size, facecolor="none", edgecolor=SECOND, linewidth=2.4, zorder=5)
    sheet.notes(
        4,
        190,
        "Rows are queries, columns are keys. Blue: attended. Hatched: hidden.",
        "The model reads only the framed row, the output of the first token.",
    )
    return Drawing(
        sheet.figure,
        f"Two grids of attention for {n_words} words and {n_padding} tokens of padding, with "
        "queries as rows and keys as columns: with the keys of padding hidden the first row, the "
        "only one that the model reads, attends to words alone, and with the queries hidden it "
        "attends to padding, too.",
    )


def draw_removed(adds: Mapping[str, float], removed: Collection[int]) -> Drawing:
    """A model that adds a number for each word: its score with all words, and without some.

    Args:
        adds: the numbers, by word, in the order of the text.
        removed: positions of the words that are taken out.
    """
    sheet, left = Sheet(172), 84.0
    words, numbers = list(adds), list(adds.values())
    widths = [width + 16 for width in word_widths([words])]
    end = left + sum(widths) + 2 * len(widths)
    whole, gone = sum(numbers), sum(numbers[i] for i in removed)
    fills = {i: FOR if n > 0 else AGAINST for i, n in enumerate(numbers) if n}
    rows = (("all words", (), whole), ("the edit", removed, whole - gone))
    for k, (name, without, score) in enumerate(rows):
        y = 8.0 + 62 * k
        sheet.text(4, y + 13, name)
        middles = sheet.words(left, y, words, (), fills, without, widths)
        for i, (x, number) in enumerate(zip(middles, numbers, strict=True)):
            if i not in without:
                sheet.text(x, y + 33, minus(f"{number:g}"), ha="center")
        sheet.arrow((end + 6, y + 10), (end + 30, y + 10))
        sheet.text(end + 38, y + 14, f"score {minus(f'{score:g}')}", weight="bold")
    names = " ".join(words[i] for i in sorted(removed))
    parts = minus(f"{whole:g} - {whole - gone:g} = {gone:g}")
    sheet.notes(4, 148, f"Effect of {names!r}: {parts}.", color=INK)
    sheet.notes(4, 163, "The right explanation gives these words the same sum.")
    return Drawing(
        sheet.figure,
        f"A model adds a number for each word of {' '.join(words)!r}, in sum {whole:g}; without "
        f"{names!r} the sum is {whole - gone:g}, so the effect of these words is {gone:g}, which "
        "is also what the right explanation gives them in sum.",
    )


def draw_references(
    words: Sequence[str],
    second: int,
    forms: Mapping[int, Sequence[str]],
    pronouns: Mapping[int, int],
    others: Collection[int],
) -> Drawing:
    """Which words of a sentence change with its subject, and to whom its pronouns refer.

    Args:
        words: the sentence.
        second: where its second line begins.
        forms: the female, male and neutral form of each word that changes, by position.
        pronouns: where, in the first line, the noun is to which the pronoun at a position refers.
        others: positions of people and pronouns that stay.
    """
    sheet, left = Sheet(258), 58.0
    middles: list[float] = []
    for row, top, first in (
        (range(second), 66.0, 18.0),
        (range(second, len(words)), 136.0, 171.0),
    ):
        marked = {i - row.start for i in forms if i in row}
        said = [words[i] for i in row]
        middles += sheet.words(left, top, said, marked, dict.fromkeys(marked, FOR))
        for k, name in enumerate(("female", "male", "neutral")):
            sheet.text(4, first + 17 * k, name, SMALL, color=SOFT)
            for i in forms.keys() & set(row):
                sheet.text(middles[i], first + 17 * k, forms[i][k], ha="center")
    for pronoun, noun in pronouns.items():
        stays = pronoun in others
        looks = {"linestyle": DASHED} if stays else {"linewidth": 1.8, "color": INK}
        sheet.arrow((middles[pronoun], 134), (middles[noun], 87), **looks)
    sheet.notes(
        4,
        236,
        "Orange, bold and underlined: it changes with the subject. Arrows: whom a",
        "pronoun means. Dashed: not the subject, so nothing changes.",
    )
    kept = " and ".join(words[i] for i in sorted(others))
    told = "; ".join(f"{words[i]}: {', '.join(said)}" for i, said in forms.items())
    return Drawing(
        sheet.figure,
        f"In {' '.join(words)!r} {len(forms)} words change with the subject, in a female, a male "
        f"and a neutral form ({told}), while {kept} stay.",
    )
