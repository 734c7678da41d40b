"""From a parsed sentence to its gender label: which words change with the gender of its people.

GECO (arXiv 2406.11547, appendix A.1.3) was labelled by hand. Here the same labels follow from a
lexicon, a dependency parse (UD or CLEAR labels) and rules: every gendered pronoun and noun (D_A),
those of the grammatical subject and of the pronouns that refer to it (D_S,
`lib.language.subject_reference`), and the verbs that must agree once a subject becomes "they".
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal

from spacy.tokens import Doc

from .labels import Label, Replacement
from .lexicon import (
    PRONOUNS,
    Gender,
    Lexicon,
    Triple,
    like,
    load_lexicon,
    pronoun_forms,
)
from .names import name_replacements
from .possessives import is_possessive
from .subject_reference import subject_chain, subject_head
from .verbs import Agreement, agreeing_verbs

Names = Literal["replace", "keep"]
# Nouns of the lexicon that are verbs as well, or exclamations.
_ALSO_VERBS = frozenset(
    "miss master mother father lord lady host guy groom dame nurse king queen man".split()
)


def gendered_words(doc: Doc, lexicon: Lexicon) -> dict[int, tuple[Gender, Triple]]:
    """The gendered pronouns, nouns, adjectives and titles: gender and three forms, by position."""
    words: dict[int, tuple[Gender, Triple]] = {}
    for token in doc:
        word = token.text.strip()
        is_verb = word.islower() and word in _ALSO_VERBS and token.tag_.startswith(("VB", "UH"))
        if forms := pronoun_forms(word, word.lower() in ("her", "his") and is_possessive(token)):
            words[token.i] = PRONOUNS[word.lower()], forms
        elif not is_verb and (entry := lexicon.find(word)):
            words[token.i] = entry
    return words


def articles(doc: Doc, changes: Mapping[int, Replacement]) -> dict[int, Replacement]:
    """The "a" or "an" before words whose forms ask for different ones (an uncle, a parent)."""
    replacements: dict[int, Replacement] = {}
    for i, forms in changes.items():
        if not i or forms is None or doc[i - 1].lower_ not in ("a", "an"):
            continue
        female, male, neutral = (like(doc[i - 1].text[0], _article(word)) for word in forms)
        if len({female, male, neutral}) == 2:
            replacements[i - 1] = (female, male, neutral)
    return replacements


def annotate_sentence(
    doc: Doc,
    name: str = "",
    agreement: Agreement = "full",
    names: Names = "replace",
    known_names: Collection[str] = (),
) -> Label:
    """The label of one parsed sentence: D_A ("all"), D_S ("subj"), its names and its subject.

    Args:
        name: the id of the sentence, for the label.
        agreement: how verbs follow "they" (`agreeing_verbs`).
        names: whether names become pronouns, or stay (the published GECO has no first names left).
        known_names: further words that are names of people in this text.

    Returns:
        A label whose scopes are empty for a sentence with nobody in it.

    >>> import spacy
    >>> vocab = spacy.blank("en").vocab
    >>> parse = {"tags": ["PRP", "VBZ"], "heads": [1, 1], "deps": ["nsubj", "ROOT"]}
    >>> doc = Doc(vocab, words=["He", "leaves"], **parse)
    >>> annotate_sentence(doc).all
    {0: ('She', 'He', 'They'), 1: ('leaves', 'leaves', 'leave')}
    """
    lexicon = load_lexicon()
    words = gendered_words(doc, lexicon)
    named = name_replacements(doc, lexicon, known_names, words) if names == "replace" else {}
    subject = subject_head(doc, words.keys() | named.keys())
    genders = {i: gender for i, (gender, _) in words.items()}
    chain = subject_chain(doc, subject, genders, named.keys())
    people: dict[int, Replacement] = {
        **{i: forms for i, (_, forms) in words.items()},
        **named,
    }
    of_subject = {i: forms for i, forms in people.items() if i in chain}
    return Label(
        name,
        tuple(token.text.strip() for token in doc),
        subject,
        dict.fromkeys(named, "name"),
        _with_agreement(doc, of_subject, agreement),
        _with_agreement(doc, people, agreement),
    )


def _with_agreement(
    doc: Doc, changes: Mapping[int, Replacement], agreement: Agreement
) -> dict[int, Replacement]:
    """The changes together with the verbs and articles that follow from them, by position."""
    neutral = {i: forms[2].lower() for i, forms in changes.items() if forms is not None}
    # A deleted word stands for its name, whose first word became the pronoun.
    they = {i for i in changes if neutral.get(_start_of_name(i, changes)) == "they"}
    others = {i for i, form in neutral.items() if form in ("them", "their", "theirs")}
    follow = agreeing_verbs(doc, they, agreement, others)
    if agreement == "full":
        follow |= articles(doc, changes)
    # A word that changes of its own accord is not asked to agree.
    return dict(sorted((follow | dict(changes)).items()))


def _start_of_name(i: int, changes: Mapping[int, Replacement]) -> int:
    """The first word of a deleted word's name: in "Ann Lee reads", the verb hangs from Lee."""
    while i in changes and changes[i] is None:
        i -= 1
    return i


def _article(word: str) -> str:
    return "an" if re.match(r"(?!us|uni|eu|one)[aeiou]|heir|hono", word.lower()) else "a"
