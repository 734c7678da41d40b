"""Gender labels: which words of a sentence change with the gender of its people, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

_CLASSES = ("F", "M", "NB")  # in the order of a replacement
Scope = Literal["subj", "all"]
# The word in its female, male and neutral form; None deletes the word in every variant.
Replacement = tuple[str, str, str] | None


@dataclass(frozen=True)
class Label:
    """One labelled sentence.

    Args:
        name: the id of the sentence.
        words: its words.
        subject: the position of the subject's head.
        names: what the words of names are ("name", "surname"), by position.
        subj: what becomes of the words of the grammatical subject (D_S), by position.
        all: what becomes of all gendered words (D_A), by position.
    """

    name: str
    words: tuple[str, ...]
    subject: int
    names: Mapping[int, str]
    subj: Mapping[int, Replacement]
    all: Mapping[int, Replacement]

    def replacements(self, scope: Scope) -> Mapping[int, Replacement]:
        """The altered positions of a scope and what they become."""
        return self.subj if scope == "subj" else self.all


def gender_variants(label: Label, scope: Scope) -> dict[str, list[str]]:
    """The sentence in its female, male and non-binary form (F, M, NB), aligned word by word.

    (GECOBench, arXiv 2406.11547, table 1.)

    >>> label = Label("x", ("Ann", "Lee", "reads"), 0, {0: "name", 1: "surname"},
    ...               {0: ("She", "He", "They"), 1: None, 2: ("reads", "reads", "read")}, {})
    >>> gender_variants(label, "subj")["NB"]
    ['They', 'read']
    """
    changes = label.replacements(scope)
    triples = [changes.get(i, (word, word, word)) for i, word in enumerate(label.words)]
    kept = [forms for forms in triples if forms is not None]
    return {name: [forms[k] for forms in kept] for k, name in enumerate(_CLASSES)}


def differing_positions(variants: Sequence[Sequence[str]]) -> list[int]:
    """The ground truth of aligned variants: 1 where a word differs between any two of them, else 0.

    >>> differing_positions([["She", "reads"], ["He", "reads"], ["They", "read"]])
    [1, 1]
    """
    return [int(len(set(words)) > 1) for words in zip(*variants, strict=True)]
