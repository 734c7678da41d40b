"""Tiny language models over words, and what they read."""

from __future__ import annotations

from lib.models.language_model import LMConfig, build_lm, build_vocabulary

SENTENCES = [
    line.split()
    for line in (
        "the dog barks .",
        "the dogs bark .",
        "a cat sleeps now .",
        "cats sleep now .",
        "the old man reads a book .",
        "old men read books .",
        "she sees the cat .",
        "they see a dog .",
        "nobody knows the answer .",
        "ten birds sing .",
    )
]
VOCABULARY = build_vocabulary(SENTENCES)


def tiny_lm(
    architecture: str, n_layers: int = 2, cutoffs: tuple[int, ...] = (), seed: int = 0, **more
):
    return build_lm(
        LMConfig(architecture, n_layers, 16, 24, cutoffs=list(cutoffs), **more),
        len(VOCABULARY),
        seed,
    ).eval()
