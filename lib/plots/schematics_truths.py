"""Schematics of where a truth comes from: what is altered in a text, and what is known by that.

Every function takes plain arguments, draws them and says in words what it drew.
"""

from collections.abc import Collection, Mapping, Sequence

from .drawing import (
    AGAINST,
    CHIP,
    DASHED,
    FOR,
    LEARNS,
    PALE,
    SMALL,
    SOFT,
    STAYS,
    WIDTH,
    Drawing,
    Sheet,
    text_width,
    word_widths,
)


def draw_forms(forms: Mapping[str, Sequence[str]], mask: Sequence[int]) -> Drawing:
    """One sentence in several forms, and the mask of the words in which they differ.

    Args:
        forms: the words of each form, by its name; all have the same length.
        mask: 1 where the forms differ, else 0.
    """
    rows = list(forms.values())
    widths = word_widths(rows)
    left = max(text_width(name) for name in forms) + 14
    sheet = Sheet(26 * len(rows) + 66, max(WIDTH, left + sum(widths) + 2 * len(widths) + 4))
    marked = {i for i, flag in enumerate(mask) if flag}
    middles: list[float] = []
    for k, (name, words) in enumerate(forms.items()):
        sheet.text(2, 19 + 26 * k, name, color=SOFT)
        fills = dict.fromkeys(marked, PALE)
        middles = sheet.words(left, 5 + 26 * k, words, marked, fills, widths=widths)
    y = 26 * len(rows) + 22
    sheet.line([2, left + sum(widths) + 2 * len(widths)], [y - 16, y - 16], linewidth=0.8)
    sheet.text(2, y, "mask", color=SOFT)
    for middle, flag in zip(middles, mask):
        sheet.text(middle, y, str(flag), ha="center", weight="bold" if flag else "normal")
    said = "Where the mask is 1, the forms differ. Only these words"
    sheet.text(2, y + 22, said, SMALL, color=SOFT)
    sheet.text(2, y + 36, "can tell a model which form it reads.", SMALL, color=SOFT)
    altered = ", ".join(rows[0][i] for i in sorted(marked))
    texts = "; ".join(f"{name}: {' '.join(words)}" for name, words in forms.items())
    return Drawing(
        sheet.figure,
        f"One sentence in {len(rows)} forms, word below word. {texts}. A row of ones and zeros "
        f"below, the mask, has a 1 at the words that differ: {altered}.",
    )


def draw_edit(
    texts: Mapping[str, Sequence[str]],
    changed: Collection[int],
    answers: Mapping[str, Sequence[float]],
    classes: Sequence[str],
) -> Drawing:
    """A text and its counterfactual, the model's answer to both, and the effect: their difference.

    Args:
        texts: the words of the original and of the edited text, by name.
        changed: positions that differ.
        answers: the model's probabilities of the classes, by the same names.
        classes: their names.
    """
    (first, second), widths = texts, word_widths(list(texts.values()))
    sheet = Sheet(196, max(WIDTH, sum(widths) + 2 * len(widths) + 8))
    tops = {first: 18.0, second: 78.0}
    middles: list[float] = []
    for name, words in texts.items():
        sheet.text(4, tops[name] - 5, name, SMALL, color=SOFT)
        middles = sheet.words(
            4, tops[name], words, changed, dict.fromkeys(changed, PALE), widths=widths
        )
    for i in changed:
        sheet.arrow((middles[i], tops[first] + CHIP + 2), (middles[i], tops[second] - 2))
        sheet.text(middles[i] + 6, tops[first] + 40, "one concept edited", SMALL, color=SOFT)
    effect = [b - a for a, b in zip(answers[first], answers[second])]
    rows = {"answer to the " + name: answers[name] for name in texts} | {"effect": effect}
    lefts = [190 + 68 * k for k in range(len(classes))]
    for left, name in zip(lefts, classes):
        sheet.text(left + 26, 124, name, SMALL, ha="center", color=SOFT)
    for k, (name, values) in enumerate(rows.items()):
        y = 142 + 20 * k
        last = name == "effect"
        sheet.text(4, y, name, weight="bold" if last else "normal")
        for left, value in zip(lefts, values):
            text = f"{value:+.1f}" if last else f"{value:.1f}"
            text = text.replace("-", "\N{MINUS SIGN}") if abs(value) > 1e-9 else "0"
            sheet.text(left + 26, y, text, ha="center", weight="bold" if last else "normal")
    sheet.line([4, lefts[-1] + 56], [167, 167], linewidth=0.8)
    shown = "; ".join(f"{name} {[round(v, 2) for v in row]}" for name, row in rows.items())
    return Drawing(
        sheet.figure,
        f"Two texts that differ in one concept. {first}: {' '.join(texts[first])} {second}: "
        f"{' '.join(texts[second])} Below, for the classes {', '.join(classes)}: {shown}. The "
        "effect is the second answer minus the first.",
    )


def draw_causal_graph(concepts: Sequence[str]) -> Drawing:
    """How a review comes about and is read (CEBaB, Figure 1 and section 3).

    What the world is like decides the concepts, the concepts decide the text, and only the text is
    given to the model.

    Args:
        concepts: the mediating concepts, from top to bottom.
    """
    step = 34.0
    height = step * len(concepts) + 58
    sheet = Sheet(height)
    middle = 12 + step * len(concepts) / 2
    tops = {name: 14 + step * k for k, name in enumerate(concepts)}
    nodes = {"U": (14, 30), "X": (202, 30), "φ(X)": (264, 44), "N": (340, 30)}
    sheet.box(90, 8, 76, step * len(concepts) + 4, linestyle=DASHED)
    for name, top in tops.items():
        sheet.box(96, top, 64, 24, name, facecolor=PALE)
        sheet.arrow((44, middle), (95, top + 12))
        sheet.arrow((160, top + 12), (201, middle))
    for name, (left, width) in nodes.items():
        sheet.box(left, middle - 14, width, 28, name, head=True)
    sheet.box(202, middle - 66, 30, 28, "V", head=True)
    sheet.text(240, middle - 52, "all else")
    sheet.arrow((217, middle - 38), (217, middle - 15))
    for start, end in ((232, 263), (308, 339), (370, 396)):
        sheet.arrow((start, middle), (end, middle))
    y = height - 24
    for x, lines in (
        (29, ("the world",)),
        (128, ("concepts", "C\N{SUBSCRIPT ONE} \N{HORIZONTAL ELLIPSIS} C\u2096")),
        (217, ("the text",)),
        (286, ("its features",)),
        (355, ("the model,", "its scores")),
    ):
        for k, line in enumerate(lines):
            sheet.text(x, y + 13 * k, line, SMALL, ha="center", color=SOFT)
    return Drawing(
        sheet.figure,
        "A causal graph from left to right. The state of the world, U, decides the concepts "
        f"{', '.join(concepts)}. The concepts and a second source, V, decide the text X. "
        "Its features, phi of X, go to the model N, which gives scores. Concepts reach the model "
        "through the text alone.",
    )


def draw_agreement(
    words: Sequence[str], cue: int, attractors: Collection[int], expected: str, other: str
) -> Drawing:
    """A verb that is still to come, the noun that it agrees with, and one that would mislead it.

    Args:
        words: the words before the verb.
        cue: the position of the noun that decides.
        attractors: positions of nouns of the other number.
        expected: the verb's right form.
        other: its wrong form.
    """
    widths = [*word_widths([words]), text_width(f"{expected} / {other}", bold=True) + 14]
    sheet = Sheet(150, max(WIDTH, sum(widths) + 2 * len(widths) + 8))
    fills = {cue: FOR} | dict.fromkeys(attractors, AGAINST)
    middles = sheet.words(4, 62, words, {cue}, fills, widths=widths[:-1])
    left = 4 + sum(widths[:-1]) + 2 * len(words)
    sheet.box(left, 62, widths[-1], CHIP, linestyle=DASHED)
    sheet.text(left + widths[-1] / 2, 75.5, f"{expected} / {other}", ha="center", weight="bold")
    end = left + widths[-1] / 2
    sheet.arrow((end, 60), (middles[cue], 60), bend=0.28, linewidth=1.6)
    sheet.text(
        (end + middles[cue]) / 2,
        12,
        f"agrees: \N{LEFT DOUBLE QUOTATION MARK}{expected}\N{RIGHT DOUBLE QUOTATION MARK}",
        ha="center",
    )
    sheet.text(middles[cue], 98, "cue", ha="center", weight="bold")
    for place in attractors:
        sheet.arrow((end, 83), (middles[place], 83), bend=-0.3, linestyle=(0, (4, 2)))
        sheet.text(middles[place] - 7, 98, "attractor", ha="right", weight="bold")
        said = f"would ask for \N{LEFT DOUBLE QUOTATION MARK}{other}\N{RIGHT DOUBLE QUOTATION MARK}"
        sheet.text((end + middles[place]) / 2, 120, said, SMALL, ha="center")
    said = "A plausible explanation puts more weight on the cue than on the attractor."
    sheet.text(4, 142, said, SMALL, color=SOFT)
    near = ", ".join(words[i] for i in attractors)
    return Drawing(
        sheet.figure,
        f"The words {' '.join(words)!r}, then an empty place for {expected} or {other}. An arrow "
        f"leads from the place to the cue, {words[cue]}, with which the verb agrees. A dashed "
        f"arrow leads to the attractor, {near}, which would ask for {other}.",
    )


def draw_filter(
    sentences: Sequence[tuple[Sequence[str], Collection[int], int, str]], steps: Sequence[str]
) -> Drawing:
    """Sentences that meet the steps of a filter: how far each comes, and why.

    Args:
        sentences: each with its words, the positions of signs of gender, the number of steps that
            it passes, and why it stops or what becomes of it.
        steps: what each step asks.
    """
    sheet = Sheet(30 + 16 * len(steps) + 66 * len(sentences))
    for k, step in enumerate(steps):
        sheet.text(4, 14 + 16 * k, f"{k + 1}", weight="bold")
        sheet.text(18, 14 + 16 * k, step)
    top = 24.0 + 16 * len(steps)
    told = []
    for words, signs, passed, why in sentences:
        for row in _lines(words):
            marked = {i - row.start for i in signs if i in row}
            sheet.words(4, top, [words[i] for i in row], marked, dict.fromkeys(marked, PALE))
            top += 22
        for k in range(len(steps)):
            done = k < passed
            fill = LEARNS if done else STAYS
            mark = "\N{CHECK MARK}" if done else "\N{MULTIPLICATION SIGN}"
            sheet.box(4 + 34 * k, top, 30, 16, f"{k + 1} {mark}", facecolor=fill)
            if not done:
                break
        sheet.text(10 + 34 * len(steps), top + 12, why, SMALL, color=SOFT)
        top += 34
        told.append(f"{' '.join(words)!r} passes {passed} of {len(steps)}: {why}")
    sheet.figure.set_size_inches(WIDTH / 72, top / 72)
    sheet.ax.set_ylim(top, 0)
    listed = "; ".join(f"{k + 1} {step}" for k, step in enumerate(steps))
    return Drawing(sheet.figure, f"A filter with steps ({listed}). {'. '.join(told)}.")


def _lines(words: Sequence[str]) -> list[range]:
    """The places of the words of each line, as many as the sheet is wide."""
    lines, start, used = [], 0, 8.0
    for i, width in enumerate(word_widths([words])):
        if used + width + 2 > WIDTH:
            lines.append(range(start, i))
            start, used = i, 8.0
        used += width + 2
    return [*lines, range(start, len(words))]


def draw_masked_pronoun(words: Sequence[str], masked: int, chances: Mapping[str, float]) -> Drawing:
    """A sentence whose pronoun is masked, and what a model puts in its place.

    Args:
        words: the words, the mask among them.
        masked: where it is.
        chances: the probability of the word of each gender; the bias is the first one's share.
    """
    sheet = Sheet(150)
    middles = sheet.words(4, 8, words, {masked}, {masked: FOR})
    (one, p), (other, q) = chances.items()
    top = 56.0
    sheet.arrow((middles[masked], 29), (middles[masked], top - 4))
    for k, (word, chance) in enumerate(chances.items()):
        y = top + 24 * k
        sheet.text(4, y + 14, word, weight="bold")
        sheet.box(40, y, 300 * chance, 18, facecolor=FOR if k == 0 else PALE)
        sheet.text(46 + 300 * chance, y + 14, f"{chance:.3f}")
    bias = p / (p + q)
    sheet.text(4, 128, f"bias = {p:.3f} / ({p:.3f} + {q:.3f}) = {bias:.2f}", weight="bold")
    said = f"0.5 is even; the sentence itself gives no reason for {one} or {other}."
    sheet.text(4, 145, said, SMALL, color=SOFT)
    return Drawing(
        sheet.figure,
        f"The sentence {' '.join(words)!r}. For the masked place a model gives {one} {p:.3f} and "
        f"{other} {q:.3f}. The bias is the first divided by both: {bias:.2f}.",
    )


def draw_planted(
    texts: Sequence[tuple[Sequence[str], int]], rule: Collection[str], decoy: str, share: float
) -> Drawing:
    """Words that were hidden in sentences, the label that a rule makes of them, and the truth.

    Args:
        texts: words of a sentence, and its label.
        rule: the planted words that decide together.
        decoy: a planted word that decides nothing.
        share: what an explanation should give to each word of the rule.
    """
    sheet = Sheet(28 * len(texts) + 80)
    end = 8 + max(sum(word_widths([words])) + 2 * len(words) for words, _ in texts)
    sheet.text(end + 52, 14, "label", SMALL, ha="center", color=SOFT)
    for k, (words, label) in enumerate(texts):
        y = 20 + 28 * k
        marked = {i for i, word in enumerate(words) if word in rule}
        fills = {i: PALE for i, word in enumerate(words) if word == decoy}
        sheet.words(4, y, words, marked, fills | dict.fromkeys(marked, FOR))
        sheet.arrow((end + 4, y + 10), (end + 34, y + 10))
        sheet.box(end + 40, y, 24, CHIP, str(label), head=True)
    y = 28 * len(texts) + 36
    both = " and ".join(rule)
    for k, line in enumerate(
        (
            f"The label is 1 where {both} both stand.",
            f"There the truth is {share:g} on each of them, and 0 elsewhere.",
            f"The decoy, {decoy}, decides nothing.",
        )
    ):
        sheet.text(4, y + 16 * k, line, SMALL)
    told = "; ".join(f"{' '.join(words)}: {label}" for words, label in texts)
    return Drawing(
        sheet.figure,
        f"Sentences with planted words and their labels: {told}. The label is 1 where {both} are "
        f"both there; {decoy} decides nothing. So each of the two words has the share {share:g}.",
    )


def draw_truths(
    groups: Mapping[
        str, Sequence[tuple[str, Sequence[str], Collection[int], Collection[int], str]]
    ],
) -> Drawing:
    """The truths of the assay, each with a small example.

    Args:
        groups: truths by what they ask; each with its name, example words, positions of the words
            that matter, positions of words taken out, and what is known.
    """
    n = sum(map(len, groups.values()))
    sheet = Sheet(40.0 * n + 24 * len(groups) + 2)
    y, told = 4.0, []
    for title, truths in groups.items():
        sheet.text(4, y + 13, title, weight="bold")
        y += 22
        for name, words, marked, gone, known in truths:
            for i, line in enumerate(name.split()):
                sheet.text(12, y + 13.5 + 11 * i, line, weight="bold", color=SOFT)
            kept = dict.fromkeys(set(marked) - set(gone), PALE)
            sheet.words(78, y, words, set(marked) - set(gone), kept, gone)
            sheet.text(78, y + 31, known, SMALL, color=SOFT)
            y += 40
            told.append(f"{name}: {known}")
        y += 2
    return Drawing(sheet.figure, f"The truths of the assay. {'. '.join(told)}.")
