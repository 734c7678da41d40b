"""Reference within a sentence: the grammatical subject, and the words that speak of the same person (D_S).

A candidate is every later (or earlier) pronoun or noun of the subject's gender. Each is described by what a reader would
look at: its form, who is the subject of its clause, which clause that is, who else of the same gender is about. A linear
score over these descriptions decides, from left to right, so that an earlier decision counts in a later one. The weights
were fitted by logistic regression on the training split of GECO alone (`fit_weights`); they hold no word of its text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from spacy.tokens import Doc, Token

from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.lexicon import PRONOUNS, Gender
from lib.language.parse import SUBJECTS, root_of, subject_of

WEIGHTS = "reference_weights.json"
FORMS = {
    "he": "nom",
    "she": "nom",
    "him": "acc",
    "his": "poss",
    "hers": "poss",
    "himself": "refl",
    "herself": "refl",
}
CLAUSES = {
    "advcl": "advcl",
    "acl:relcl": "relcl",
    "relcl": "relcl",
    "ccomp": "ccomp",
    "conj": "conj",
    "ROOT": "root",
    "root": "root",
    "xcomp": "xcomp",
    "acl": "acl",
    "csubj": "csubj",
    "parataxis": "parataxis",
    "pcomp": "advcl",
    "dep": "parataxis",
}
SAME = {
    "dobj": "obj",
    "pobj": "obl",
    "poss": "nmod:poss",
    "nsubjpass": "nsubj",
    "nsubj:pass": "nsubj",
    "dative": "iobj",
    "attr": "pred",
    "oprd": "xcomp",
    "npadvmod": "obl",
    "nmod": "obl",
    "obl:agent": "obl",
    "obl:unmarked": "obl",
}
NAMELIKE = frozenset({"flat", "compound", "appos", "nmod", "flat:name", "nmod:desc"})


def subject_head(doc: Doc, people: Collection[int]) -> int:
    """The position of the main subject's head word; where the parse has none, of the first person that is a subject."""
    subject = subject_of(doc)
    if subject is not None and (subject.i in people or _near(subject, people)):
        return subject.i
    subjects = [
        i for i in sorted(people) if doc[i].dep_ in SUBJECTS or doc[i].lower_ in ("he", "she")
    ]
    return subjects[0] if subjects else subject.i if subject is not None else min(people, default=0)


def subject_chain(
    doc: Doc,
    subject: int,
    genders: Mapping[int, Gender],
    names: Collection[int],
    weights: Mapping[str, float] | None = None,
) -> set[int]:
    """The gendered words (`genders` by position) and names that speak of the subject, itself included if it is one."""
    weights = load_weights() if weights is None else weights
    chain = seed_chain(doc, subject, genders, names)
    gender = next((genders[i] for i in sorted(chain) if i in genders), None)
    for i in candidates(doc, genders, chain, None):
        if (
            gender in (None, genders[i])
            and sum(weights.get(name, 0.0) for name in describe(doc, i, subject, chain, genders))
            > 0
        ):
            chain.add(i)
            gender = gender or genders[i]
    return chain


def seed_chain(
    doc: Doc, subject: int, genders: Mapping[int, Gender], names: Collection[int]
) -> set[int]:
    """The subject's own words: its head if that carries gender or is a name, else the title before it."""
    known = set(genders) | set(names)
    own = {subject} & known
    for step in (-1, 1):  # the other words of a name
        i = subject + step
        while subject in names and i in names:
            own.add(i)
            i += step
    return own or _near(doc[subject], known)


def candidates(
    doc: Doc, genders: Mapping[int, Gender], chain: Collection[int], gender: Gender | None
) -> Iterator[int]:
    """The positions to decide on: words of the subject's gender (of any, where a name leaves it open), left to right."""
    for i in sorted(genders):
        if i not in chain and (gender is None or genders[i] == gender):
            yield i


def describe(
    doc: Doc, i: int, subject: int, chain: Collection[int], genders: Mapping[int, Gender]
) -> list[str]:
    """What is known of a candidate, as names of features; "a*b" says that both hold."""
    token, gender = doc[i], genders[i]
    form = (
        FORMS.get(token.lower_, "poss" if token.tag_ == "PRP$" else "acc")
        if token.lower_ in PRONOUNS
        else "noun"
    )
    verb, clause = _clause(token)
    owner = _owner(verb, token, chain, genders, gender)
    others = [j for j in genders if j < i and j not in chain and genders[j] == gender]
    last = max((j for j in genders if j < i and genders[j] == gender), default=-1)
    role = SAME.get(token.dep_, token.dep_)
    held = SAME.get(token.head.dep_, token.head.dep_) if form == "poss" else "-"
    rivals = "no rival" if not others else "one rival" if len(others) == 1 else "rivals"
    recent = "none" if last < 0 else "chain" if last in chain else "other"
    side = "before" if i < subject else "after"
    nominal = _nominal(token, subject) if form == "noun" else "-"
    kin = "kin" if form == "poss" and token.head.i in genders else "-"
    first = "first" if not any(doc[j].lower_ == token.lower_ for j in genders if j < i) else "again"
    base = [
        owner,
        clause,
        role,
        held,
        rivals,
        recent,
        side,
        nominal,
        kin,
        first,
        f"left {_left(token)}",
    ]
    pairs = [f"{form}*{name}" for name in base]
    triples = [
        f"{form}*{owner}*{clause}",
        f"{form}*{owner}*{rivals}",
        f"{form}*{recent}*{rivals}",
        f"{form}*{clause}*{rivals}",
        f"{form}*{held}*{owner}",
        f"{form}*{side}*{held}",
        f"{form}*{owner}*{recent}",
        f"{form}*{role}*{owner}",
        f"{form}*{side}*{clause}",
        f"{form}*{kin}*{rivals}",
    ]
    return ["bias", form, *pairs, *triples]


def fit_weights(
    docs: Sequence[Doc],
    genders: Sequence[Mapping[int, Gender]],
    gold: Sequence[Collection[int]],
    strength: float = 0.1,
) -> dict[str, float]:
    """Logistic regression of "speaks of the subject" (`gold`: positions by sentence) on the descriptions; rounded."""
    rows, labels = [], []
    for doc, words, wanted in zip(docs, genders, gold, strict=True):
        subject = subject_head(doc, words.keys())
        chain = seed_chain(doc, subject, words, ())
        gender = next((words[i] for i in sorted(chain)), None)
        for i in candidates(doc, words, chain, gender):
            rows.append(dict.fromkeys(describe(doc, i, subject, chain, words), 1))
            labels.append(int(i in wanted))
            chain |= {i} & set(wanted)
    vectorizer = DictVectorizer()
    model = LogisticRegression(C=strength, max_iter=2000, fit_intercept=False).fit(
        vectorizer.fit_transform(rows), labels
    )
    pairs = zip(vectorizer.get_feature_names_out(), model.coef_[0], strict=True)
    return {name: round(float(weight), 3) for name, weight in pairs if abs(weight) >= 0.001}


@cache
def load_weights(path: Path | None = None) -> Mapping[str, float]:
    """The fitted weights by name of feature. Raises TouchstoneError where the file is not such a table."""
    path = path or material("geco") / WEIGHTS
    try:
        weights = json.loads(path.read_text(encoding="utf-8"))["weights"]
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise TouchstoneError(
            f"{path} holds no weights ({error!r}); restore the file of the repository"
        ) from error
    return dict(weights)


def _near(subject: Token, known: Collection[int]) -> set[int]:
    """The title of a subject that is a name: "Mr." before "Darcy"."""
    doc = subject.doc
    spans = [
        i
        for i in range(max(0, subject.i - 2), min(len(doc), subject.i + 2))
        if i in known and doc[i].lower_ not in PRONOUNS
    ]
    return {
        i
        for i in spans
        if doc[i].text[:1].isupper() or doc[i].head.i == subject.i and doc[i].dep_ in NAMELIKE
    }


def _clause(token: Token) -> tuple[Token, str]:
    """The head of the clause that a word is in, and the kind of the clause."""
    for ancestor in (token, *token.ancestors):
        if ancestor.dep_ in CLAUSES and (ancestor.i != token.i or token.dep_ in ("ROOT", "root")):
            return ancestor, CLAUSES[ancestor.dep_]
    return root_of(token.doc), "root"


def _owner(
    verb: Token, token: Token, chain: Collection[int], genders: Mapping[int, Gender], gender: Gender
) -> str:
    """Whose clause it is: the word's own, that of somebody in the chain, of a rival, of somebody else; "none" if unsaid."""
    head: Token | None = verb
    while head is not None:
        subject = next((child for child in head.children if child.dep_ in SUBJECTS), None)
        if subject is not None:
            if subject.i == token.i:
                return "own"
            if subject.i in chain:
                return "chain"
            if subject.lower_ in ("who", "which", "that"):
                return "relative"
            return (
                "rival"
                if genders.get(subject.i) == gender
                else "other gender"
                if subject.i in genders
                else "thing"
            )
        head = (
            head.head
            if head.head.i != head.i and head.dep_ in ("conj", "xcomp", "advcl", "acl", "pcomp")
            else None
        )
    return "none"


def _nominal(token: Token, subject: int) -> str:
    """How a noun is tied to the subject: its predicate, an apposition or part of it, or not at all."""
    if any(child.dep_ == "cop" for child in token.children) or token.dep_ == "attr":
        owner = token if token.dep_ != "attr" else token.head
        return (
            "predicate"
            if any(child.i == subject for child in owner.children)
            else "predicate elsewhere"
        )
    if token.head.i == subject:
        return f"part {token.dep_}"
    return "predicate" if token.dep_ in ("ROOT", "root") else "elsewhere"


def _left(token: Token) -> str:
    return token.nbor(-1).tag_ if token.i else "start"
