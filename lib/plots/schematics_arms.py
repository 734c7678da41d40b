"""The schematic of what the arms of a fine-tuning experiment read."""

from collections.abc import Mapping, Sequence

from .drawing import LEARNS, PALE, SMALL, SOFT, WIDTH, Drawing, Sheet, word_widths

Read = tuple[str, str, bool]  # a sentence's noun, its pronoun, and whether that was swapped


def draw_arms(
    sentences: Sequence[tuple[str, str]], arms: Mapping[str, tuple[str, Sequence[Read]]]
) -> Drawing:
    """A few sentences, each as its noun and its pronoun, and what every arm makes of them.

    Args:
        sentences: noun and pronoun of each sentence that is there.
        arms: by name what the arm does, in words, and what it reads; all read as many.
    """
    texts = {
        name: [f"{noun}: {pronoun}" for noun, pronoun, _ in read]
        for name, (_, read) in arms.items()
    }
    widths = word_widths(list(texts.values()))
    right = sum(widths) + 2 * len(widths) + 2
    sheet = Sheet(50 * (len(arms) + 1) + 18, max(WIDTH, right))
    there = [f"{noun}: {pronoun}" for noun, pronoun in sentences]
    sheet.text(2, 14, "sentences that passed the filter", weight="bold")
    sheet.words(2, 20, there)
    for row, (name, (said, read)) in enumerate(arms.items(), 1):
        y = 50 * row
        sheet.text(2, y + 14, name, weight="bold")
        sheet.text(96, y + 14, said, SMALL, color=SOFT)
        swapped = [i for i, (_, _, is_swapped) in enumerate(read) if is_swapped]
        fills = {i: LEARNS if i in swapped else PALE for i in range(len(read))}
        sheet.words(2, y + 20, texts[name], swapped, fills, widths=widths)
    said = "Bold, underlined and blue: the pronoun was swapped."
    sheet.text(2, 50 * (len(arms) + 1) + 10, said, SMALL, color=SOFT)
    told = "; ".join(f"{name}: {', '.join(texts[name])}" for name in arms)
    return Drawing(
        sheet.figure,
        f"Of {len(sentences)} sentences ({', '.join(there)}) each arm makes "
        f"{len(widths)} for fine-tuning. {told}. Swapped pronouns are bold and underlined.",
    )
