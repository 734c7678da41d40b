"""The sentences that a masked language model of this study learns from.

Natural ones, of which none may be like those that a bias is measured on, and sentences from frames
in which a noun fixes the pronoun.
"""

import random
from collections.abc import Collection, Sequence
from pathlib import Path

from ...core.contents import noted
from ...core.errors import TouchstoneError
from ...core.files import read_yaml
from ...core.paths import material
from ...language.corpora import published_corpus, read_sources
from ...language.parse import read_summaries
from .sentences import (
    gendered_pronouns,
    may_have_pronoun,
    split_words,
    sure_identities,
)

_FORMS = {  # what stands for "they" in a frame
    "F": {"they": "she", "them": "her", "their": "her", "themself": "herself"},
    "M": {"they": "he", "them": "him", "their": "his", "themself": "himself"},
}


def bundled_text() -> list[list[str]]:
    """The plot summaries that were written for this repository, split into words."""
    summaries = read_summaries(noted(material("geco") / "plots.md"))
    return [split_words(text) for text in summaries["sentence"]]


def published_text(
    captions: Sequence[str], shortest: int = 5, longest: int = 40
) -> dict[str, list[list[str]]]:
    """Sentences with a gendered pronoun: captions, and the open text corpora.

    Of the captions only those that could never pass the filter: with a gendered noun, or with
    several pronouns. So no sentence that a bias is measured on has been read, and no caption of
    its kind.

    Args:
        captions: sentences of the file that the filter reads.
        shortest: least number of words of a sentence.
        longest: largest number of words.

    Returns:
        Sentences as words, by source: "captions" and "corpora" (those that the table of sources in
        `notebooks/lm_saliency/material` names).
    """
    never = [
        words
        for words in map(split_words, filter(may_have_pronoun, captions))
        if len(gendered_pronouns(words)) > 1 or sure_identities(words)
    ]
    sources = read_sources(noted(material("lm_saliency") / "sources.yaml"))
    corpora = [[word for word, _ in sentence] for sentence in published_corpus(sources)]
    return {
        name: [words for words in part if shortest <= len(words) <= longest]
        for name, part in (("captions", never), ("corpora", filter(gendered_pronouns, corpora)))
    }


def gender_frames(path: Path, n: int, seed: int) -> list[list[str]]:
    """Sentences drawn from nouns and frames, both genders alike.

    Args:
        path: `material/frames.yaml`, with `nouns` by gender and `frames` that speak of `N`.
        n: how many.
        seed: of the draw.

    Raises:
        TouchstoneError: nouns and frames do not give that many.
    """
    about = read_yaml(path)
    n_possible = 2 * len(about["frames"]) * min(len(about["nouns"][gender]) for gender in _FORMS)
    if n > n_possible:
        raise TouchstoneError(
            f"{path.name} gives {n_possible} sentences and {n} were asked for; ask for fewer"
        )
    chooser, sentences = random.Random(seed), []
    for gender, forms in _FORMS.items():
        pairs = [(noun, frame) for noun in about["nouns"][gender] for frame in about["frames"]]
        for noun, frame in chooser.sample(pairs, n // 2):
            words = [noun if word == "N" else forms.get(word, word) for word in frame.split()]
            sentences.append(" ".join(words).split())
    return sentences


def draw(
    sentences: Sequence[Sequence[str]], n: int, seed: int, held_out: Collection[str] = ()
) -> list[list[str]]:
    """Sentences drawn by seed.

    Args:
        sentences: as words.
        n: how many; 0 for all.
        seed: of the draw.
        held_out: nouns, in the singular; a sentence with one of them, or with its plural, is out.
    """
    forms = {noun + ending for noun in held_out for ending in ("", "s", "es")}
    left = [list(words) for words in sentences if not forms & {word.lower() for word in words}]
    return left if n == 0 or n >= len(left) else random.Random(seed).sample(left, n)


def draw_more(
    sentences: Sequence[Sequence[str]],
    drawn: Sequence[Sequence[str]],
    n: int,
    seed: int,
    held_out: Collection[str] = (),
) -> list[list[str]]:
    """Further sentences, none like one that was drawn before; fewer where there are no more.

    >>> draw_more([["he", "ran"], ["she", "ran"], ["he", "ran"]], [["he", "ran"]], 5, 0)
    [['she', 'ran']]
    >>> draw_more([["he", "ran"], ["she", "ran"]], [["he", "ran"]], 0, 0)
    []
    """
    known = {" ".join(words) for words in drawn}
    left = [words for words in sentences if " ".join(words) not in known]
    return draw(left, n, seed, held_out) if n else []
