"""What speaks against a label that a program made: reasons to read it before it is trusted.

Reasons of form hold for all data sets (is "her" *him* or *his*? was a verb missed?), those of
reference for D_S alone (does "her" speak of the subject?). They were chosen by what they tell on
GECO's training part, where `tools/fit_annotator.py doubts` measures them. What GECO cannot tell,
whose first names are gone, is in `UNMEASURED`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from spacy.tokens import Doc, Token

from ...language.annotator import gendered_words
from ...language.dependencies import EMBEDDED_CLAUSES, RELATIVE_CLAUSES, ROOTS, SUBJECTS
from ...language.labels import Label, Scope
from ...language.lexicon import PRONOUN_FORMS, PRONOUNS, load_lexicon
from ...language.possessives import by_rules, possessive_score
from ...language.subject_reference import candidates, describe, seed_chain
from ...language.word_lists import load_weights, weighted_sum, word_list

THEY = frozenset(PRONOUN_FORMS["NB"])
UNMEASURED = (
    "a name or not",
    "a title before a first name",
    "all capitals",
    "a quotation that does not close",
)
_ENDINGS = frozenset("'s 'd 've 'll 're ’s ’d ’ve ’ll ’re".split())
_PREDICATES = ROOTS | EMBEDDED_CLAUSES | {"conj"}
_MARKS = frozenset('"“”«»')
_CLOSE, _CLOSEST = 1.0, 0.25  # sums of weights that a little more evidence would turn
_LONG = 22  # words of a long sentence
_WHOLE = (-1,)  # the sentence as such, instead of positions


class Doubts(NamedTuple):
    """Reasons to doubt the form of a sentence, and of whom its words speak.

    A reason stands as "reason: words" where words can be named.
    """

    form: list[str]
    reference: list[str]

    def of(self, scope: Scope) -> list[str]:
        """The reasons that count in a data set: D_A ("all") or D_S ("subj")."""
        return self.form if scope == "all" else self.reference + self.form

    def rank(self, scope: Scope) -> float:
        """How doubtful a sentence is: its reasons; in D_S those of form only break ties."""
        return len(self.form) if scope == "all" else len(self.reference) + len(self.form) / 100


def doubts(doc: Doc, label: Label) -> Doubts:
    """Why a label should be read before it is trusted."""
    form = _form(doc, label, gendered_words(doc, load_lexicon()).keys())
    return Doubts(_said(doc, form | _form_of_text(doc, label)), _said(doc, _reference(doc, label)))


def reason_of(doubt: str) -> str:
    """A doubt without the words that it names."""
    return doubt.split(": ")[0]


def close_calls(doc: Doc, label: Label, margin: float) -> list[int]:
    """The words whose reference to the subject was decided by a sum of weights below a margin."""
    genders = {i: gender for i, (gender, _) in gendered_words(doc, load_lexicon()).items()}
    seed = seed_chain(doc, label.subject, genders, label.names.keys())
    weights = load_weights("reference_weights")
    gender = next((genders[i] for i in sorted(seed | set(label.subj)) if i in genders), None)
    close = []
    for i in candidates(genders, seed, gender):
        chain = seed | {j for j in label.subj if j < i}
        if abs(weighted_sum(weights, describe(doc, i, label.subject, chain, genders))) < margin:
            close.append(i)
    return close


def _form(doc: Doc, label: Label, people: Collection[int]) -> dict[str, Sequence[int]]:
    """Reasons of form that the annotator's own decisions give, with the words concerned."""
    neutral = {i: forms[2].lower() for i, forms in label.all.items() if forms is not None}
    stays = [token for token in doc if "they" in neutral.values() and token.i not in label.all]
    joined = [i for i in people if i + 2 in people and doc[i + 1].tag_ == "CC"]
    nouns = [doc[i] for i in people if doc[i].lower_ not in PRONOUNS]
    in_s = [one for one in stays if one.tag_ in ("NN", "NNS") and one.lower_.endswith("s")]
    return {
        "him or his?": [token.i for token in doc if _is_close_her(token)],
        'a verb that stays beside "they"': [token.i for token in stays if token.tag_ == "VBZ"],
        "perhaps a verb": [noun.i for noun in in_s if noun.dep_ in _PREDICATES],
        "a title": [i for i in people if load_lexicon().is_title(doc[i].text)],
        "a gendered word before a noun": [noun.i for noun in nouns if noun.dep_ == "compound"],
        "a gendered word as verb or adjective": [
            noun.i for noun in nouns if noun.tag_.startswith(("VB", "JJ"))
        ],
        "a gendered plural": [i for i in people if doc[i].tag_ in ("NNS", "NNPS")],
        "two people joined": [j for i in joined for j in (i, i + 1, i + 2)],
    }


def _form_of_text(doc: Doc, label: Label) -> dict[str, Sequence[int]]:
    """Reasons of form that the text itself gives."""
    lexicon, text = load_lexicon(), "".join(label.words)
    marks = [token.i for token in doc if set(token.text) & _MARKS]
    is_odd = text.count('"') % 2 or text.count("“") != text.count("”")
    titled = {token.i for token in doc if token.i and lexicon.is_title(token.nbor(-1).text)}
    named = [i for i in sorted(titled) if doc[i].text in word_list("first_names")]
    unknown = [
        token.i
        for token in doc
        if token.pos_ == "PROPN"
        and token.dep_ in SUBJECTS
        and token.i not in titled | set(label.all)
    ]
    return {
        '"they" stands in the text already': [token.i for token in doc if token.lower_ in THEY],
        "a contraction": [token.i for token in doc if token.lower_ in _ENDINGS],
        "a relative clause": [token.i for token in doc if token.dep_ in RELATIVE_CLAUSES],
        "a quotation": _WHOLE if marks and not is_odd else [],
        "a quotation that does not close": marks if is_odd else [],
        f"{_LONG} words or more": _WHOLE if len(doc) >= _LONG else [],
        "a title before a first name": [j for i in named for j in (i - 1, i)],
        "a name or not": unknown,
        "all capitals": [i for i in label.all if len(doc[i].text) > 1 and doc[i].text.isupper()],
    }


def _reference(doc: Doc, label: Label) -> dict[str, Sequence[int]]:
    """Reasons to doubt of whom the words of D_S speak."""
    people = gendered_words(doc, load_lexicon())
    pronouns = [i for i in people if doc[i].lower_ in PRONOUNS]
    gender = next((people[i][0] for i in label.subj if i in people), None)
    several = [i for i in pronouns if sum(people[j][0] == people[i][0] for j in pronouns) > 1]
    subjects = [i for i in people.keys() | label.names.keys() if doc[i].dep_ in SUBJECTS]
    return {
        "speaks of the subject or not?": close_calls(doc, label, _CLOSE),
        "nearly a toss-up": close_calls(doc, label, _CLOSEST),
        "another subject of that gender": [
            i for i in subjects if i in people and i not in label.subj and people[i][0] == gender
        ],
        "several pronouns of one gender": several if len(label.subj) < len(label.all) else [],
        "four gendered words or more": _WHOLE if len(people) + len(label.names) >= 4 else [],
        "a subject of several": [
            i for i in subjects if any(child.dep_ == "conj" for child in doc[i].children)
        ],
        "nothing to alter for the subject": [] if label.subj else _WHOLE,
    }


def _said(doc: Doc, reasons: Mapping[str, Sequence[int]]) -> list[str]:
    """The reasons that hold, with their words after a colon where words can be named."""
    return [
        reason if at is _WHOLE else f"{reason}: {', '.join(doc[i].text for i in sorted(set(at)))}"
        for reason, at in reasons.items()
        if at
    ]


def _is_close_her(token: Token) -> bool:
    is_her = token.lower_ == "her" and token.i + 1 < len(token.doc)
    return is_her and abs(possessive_score(token, by_rules(token))) < _CLOSE
