"""The sentences that a masked LM of this repository learns from."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from lib.core.paths import material
from lib.language.corpora import published_corpus, read_sources
from lib.language.parse import read_summaries
from lib.studies.implicit_bias.sentences import (
    gendered_pronouns,
    may_have_pronoun,
    split_words,
    sure_identities,
    without_nouns,
)


def bundled_text() -> list[list[str]]:
    """The plot summaries of the geco study (written for this repository), split into words."""
    return [split_words(text) for text in read_summaries(material("geco") / "plots.md")["sentence"]]


def published_text(
    captions: Sequence[str], shortest: int = 5, longest: int = 40
) -> dict[str, list[list[str]]]:
    """Sentences with a gendered pronoun: captions, and the corpora that lm_saliency's sources name.

    Of the captions only those that could never pass the filter: with a gendered noun, or with several pronouns. So no
    sentence that a bias is measured on has been read, and no caption of its kind.
    """
    found = [split_words(text) for text in captions if may_have_pronoun(text)]
    never = [
        words for words in found if len(gendered_pronouns(words)) > 1 or sure_identities(words)
    ]
    corpora = [[word for word, _ in sentence] for sentence in published_corpus(read_sources(material("lm_saliency") / "sources.yaml"))]
    spoken = [words for words in corpora if gendered_pronouns(words)]
    return {
        name: [words for words in part if shortest <= len(words) <= longest]
        for name, part in (("captions", never), ("corpora", spoken))
    }


def draw(
    sentences: Sequence[Sequence[str]], n: int, seed: int, held_out: Collection[str] = ()
) -> list[list[str]]:
    """`n` sentences (0: all) without the nouns that are held out, drawn by seed."""
    left = without_nouns(sentences, held_out)
    return left if n == 0 or n >= len(left) else random.Random(seed).sample(left, n)
