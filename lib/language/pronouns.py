"""The third-person pronouns of English by the gender they tell, and the first one in a sentence."""

from collections.abc import Sequence

from .lexicon import PRONOUN_FORMS


def as_counted(words: Sequence[str]) -> list[str]:
    """Words as an uncased model reads them: in lower case, without spaces at the edges.

    Nothing is split or dropped.

    >>> as_counted(["Mx. ", "She"])
    ['mx.', 'she']
    """
    return [word.strip().lower() for word in words]


def first_pronoun(
    words: Sequence[str], classes: Sequence[str] = tuple(PRONOUN_FORMS)
) -> tuple[int, int] | None:
    """Position and class index of the first third-person pronoun of these classes, or None.

    >>> first_pronoun("Here she meets him".split())
    (1, 0)
    """
    class_of = {form: k for k, name in enumerate(classes) for form in PRONOUN_FORMS[name]}
    return next(
        ((i, class_of[word]) for i, word in enumerate(as_counted(words)) if word in class_of), None
    )
