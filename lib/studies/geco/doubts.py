"""What speaks against a label that a program made: reasons to read it, and how well they tell wrong labels from right ones.

Reasons of form hold for all data sets (is "her" *him* or *his*? was a verb missed?), those of reference for D_S alone
(does "her" speak of the subject?). They were chosen by what they tell on GECO's training part: `python -m lib.studies.geco.doubts
en_core_web_sm FOLDER` measures them there again and writes the tables. What GECO cannot tell, whose first
names are gone, is in `UNMEASURED`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from sklearn.metrics import roc_auc_score
from spacy.language import Language
from spacy.tokens import Doc, Token

from lib.core.files import save_csv
from lib.language.annotator import annotate_sentence, gendered_words
from lib.language.labels import Label, Scope, gender_variants
from lib.language.lexicon import PRONOUNS, load_lexicon
from lib.language.names import first_names
from lib.language.parse import SUBJECTS, annotate_tokens, load_pipeline
from lib.language.possessive_rules import by_rules
from lib.language.possessives import describe as describe_her
from lib.language.possessives import load_weights as her_weights
from lib.language.subject_reference import candidates, load_weights, seed_chain
from lib.language.subject_reference import describe as describe_reference
from lib.studies.geco.corpus import fetch_geco
from lib.studies.geco.gold import Base, pipeline_label, read_bases

THEY = frozenset("they them their theirs themselves themself".split())
ENDINGS = frozenset("'s 'd 've 'll 're ’s ’d ’ve ’ll ’re".split())
PREDICATES = frozenset({"ROOT", "root", "conj", "advcl", "ccomp"})
RELATIVES = frozenset({"acl:relcl", "relcl"})
MARKS = frozenset('"“”«»')
CLOSE, CLOSEST, LONG = (
    1.0,
    0.25,
    22,
)  # sums of weights that a little more evidence would turn; words of a long sentence
UNMEASURED = (
    "a name or not",
    "a title before a first name",
    "all capitals",
    "a quotation that does not close",
)


class Doubts(NamedTuple):
    """Reasons to doubt the form of a sentence, and whom its words speak of; "reason: words" where words can be named."""

    form: list[str]
    reference: list[str]

    def of(self, scope: Scope) -> list[str]:
        """The reasons that count in a data set: D_A ("all") or D_S ("subj")."""
        return self.form if scope == "all" else self.reference + self.form

    def rank(self, scope: Scope) -> float:
        """How doubtful a sentence is among others: the number of reasons; in D_S those of form only break ties."""
        return len(self.form) if scope == "all" else len(self.reference) + len(self.form) / 100


def doubts(doc: Doc, label: Label) -> Doubts:
    """Why a label should be read before it is trusted; nothing where nothing is known against it."""
    form = _form(doc, label, gendered_words(doc, load_lexicon()).keys())
    return Doubts(_said(doc, form | _form_of_text(doc, label)), _said(doc, _reference(doc, label)))


def reason_of(doubt: str) -> str:
    """A doubt without the words that it names."""
    return doubt.split(": ")[0]


def close_calls(doc: Doc, label: Label, margin: float) -> list[int]:
    """The words whose reference to the subject was decided by a sum of weights smaller than `margin`."""
    genders = {i: gender for i, (gender, _) in gendered_words(doc, load_lexicon()).items()}
    seed, weights, found = (
        seed_chain(doc, label.subject, genders, label.names.keys()),
        load_weights(),
        [],
    )
    gender = next((genders[i] for i in sorted(seed | set(label.subj)) if i in genders), None)
    for i in candidates(doc, genders, seed, gender):
        chain = seed | {j for j in label.subj if j < i}
        if (
            abs(
                sum(
                    weights.get(name, 0.0)
                    for name in describe_reference(doc, i, label.subject, chain, genders)
                )
            )
            < margin
        ):
            found.append(i)
    return found


def measure_doubts(pipeline: Language, folder: Path, every: int = 1) -> pd.DataFrame:
    """GECO's training part, labelled: dataset, wrong (the other form or the neutral one differs from the corrected gold), rank, doubts.

    Each base sentence comes in twice, from its female and from its male form; `every`: take only each k-th of them.
    """
    rows = []
    for dataset, scope in (("D_A", "all"), ("D_S", "subj")):
        bases = list(read_bases(dataset, "train", folder).values())[::every]
        for side in (0, 1):
            docs = annotate_tokens(
                [[word or "_" for word in base.forms[side]] for base in bases], pipeline
            )
            for doc, base in zip(docs, bases, strict=True):
                label = annotate_sentence(doc, names="keep")
                found = doubts(doc, label)
                rows.append(
                    (
                        dataset,
                        _is_wrong(label, base, side, scope),
                        found.rank(scope),  # type: ignore[arg-type]
                        found.form if scope == "all" else found.reference,
                    )
                )
    return pd.DataFrame(rows, columns=["dataset", "wrong", "rank", "doubts"])


def doubt_table(measured: pd.DataFrame) -> pd.DataFrame:
    """How often labels are wrong with and without each reason: dataset, reason, sentences, wrong_with, wrong_without."""
    rows = []
    for dataset, mine in measured.groupby("dataset"):
        reasons = mine["doubts"].map(lambda found: {reason_of(doubt) for doubt in found})
        counts = Counter(reason for found in reasons for reason in found)
        for reason, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            has = reasons.map(lambda found, reason=reason: reason in found)
            rows.append((dataset, reason, n, mine["wrong"][has].mean(), mine["wrong"][~has].mean()))
    return pd.DataFrame(
        rows, columns=["dataset", "reason", "sentences", "wrong_with", "wrong_without"]
    )


def rank_table(measured: pd.DataFrame) -> pd.DataFrame:
    """How often labels are wrong by their number of doubts, and AUC: that a wrong one stands before a right one (chance .5)."""
    rows = []
    for dataset, mine in measured.groupby("dataset"):
        for number, some in mine.groupby(mine["rank"].astype(int).clip(upper=5)):
            rows.append(
                (
                    dataset,
                    f"{number} or more" if number == 5 else str(number),
                    len(some),
                    some["wrong"].mean(),
                    roc_auc_score(mine["wrong"], mine["rank"]),
                )
            )
    return pd.DataFrame(rows, columns=["dataset", "doubts", "sentences", "wrong", "AUC"])


def _form(doc: Doc, label: Label, people: Sequence[int]) -> dict[str, list[int]]:
    changes, lexicon = label.all, load_lexicon()
    they = [i for i, forms in changes.items() if forms is not None and forms[2].lower() == "they"]
    stays = [token for token in doc if they and token.i not in changes]
    beside = [i for i in people if i + 2 in people and doc[i + 1].tag_ == "CC"]
    return {
        "him or his?": [token.i for token in doc if _is_close_her(token)],
        'a verb that stays beside "they"': [token.i for token in stays if token.tag_ == "VBZ"],
        "perhaps a verb": [
            token.i
            for token in stays
            if token.tag_ in ("NN", "NNS")
            and token.lower_.endswith("s")
            and token.dep_ in PREDICATES
        ],
        "a title": [i for i in people if lexicon.is_title(doc[i].text)],
        "a gendered word before a noun": [
            i for i in people if doc[i].dep_ == "compound" and doc[i].lower_ not in PRONOUNS
        ],
        "a gendered word as verb or adjective": [
            i for i in people if doc[i].tag_[:2] in ("VB", "JJ") and doc[i].lower_ not in PRONOUNS
        ],
        "a gendered plural": [i for i in people if doc[i].tag_ in ("NNS", "NNPS")],
        "two people joined": [j for i in beside for j in (i, i + 1, i + 2)],
    }


def _form_of_text(doc: Doc, label: Label) -> dict[str, list[int]]:
    text = "".join(label.words)
    marks, odd = (
        [token.i for token in doc if set(token.text) & MARKS],
        text.count('"') % 2 or text.count("“") != text.count("”"),
    )
    named = [
        token.i
        for token in doc
        if token.i and token.text in first_names() and load_lexicon().is_title(token.nbor(-1).text)
    ]
    unknown = [
        token.i
        for token in doc
        if token.pos_ == "PROPN"
        and token.dep_ in SUBJECTS
        and token.i not in label.all
        and not (token.i and load_lexicon().is_title(token.nbor(-1).text))
    ]
    return {
        '"they" stands in the text already': [token.i for token in doc if token.lower_ in THEY],
        "a contraction": [token.i for token in doc if token.lower_ in ENDINGS],
        "a relative clause": [token.i for token in doc if token.dep_ in RELATIVES],
        "a quotation": [-1] if marks and not odd else [],
        "a quotation that does not close": marks if odd else [],
        f"{LONG} words or more": [-1] if len(doc) >= LONG else [],
        "a title before a first name": [j for i in named for j in (i - 1, i)],
        "a name or not": unknown,
        "all capitals": [i for i in label.all if len(doc[i].text) > 1 and doc[i].text.isupper()],
    }


def _reference(doc: Doc, label: Label) -> dict[str, list[int]]:
    people = gendered_words(doc, load_lexicon())
    close, pronouns = (
        close_calls(doc, label, CLOSE),
        [i for i in people if doc[i].lower_ in PRONOUNS],
    )
    gender = next((people[i][0] for i in label.subj if i in people), None)
    several = [i for i in pronouns if sum(people[j][0] == people[i][0] for j in pronouns) > 1]
    subjects = [i for i in people.keys() | label.names.keys() if doc[i].dep_ in SUBJECTS]
    return {
        "speaks of the subject or not?": close,
        "nearly a toss-up": close_calls(doc, label, CLOSEST),
        "another subject of that gender": [
            i for i in subjects if i in people and i not in label.subj and people[i][0] == gender
        ],
        "several pronouns of one gender": several if len(label.subj) < len(label.all) else [],
        "four gendered words or more": [-1] if len(people) + len(label.names) >= 4 else [],
        "a subject of several": [
            i for i in subjects if any(child.dep_ == "conj" for child in doc[i].children)
        ],
        "nothing to alter for the subject": [] if label.subj else [-1],
    }


def _said(doc: Doc, found: Mapping[str, Sequence[int]]) -> list[str]:
    return [
        reason
        if set(at) == {-1}
        else f"{reason}: {', '.join(doc[i].text for i in sorted(set(at)))}"
        for reason, at in found.items()
        if at
    ]


def _is_close_her(token: Token) -> bool:
    if token.lower_ != "her" or token.i + 1 == len(token.doc):
        return False
    return (
        abs(sum(her_weights().get(name, 0.0) for name in describe_her(token, by_rules(token))))
        < CLOSE
    )


def _is_wrong(label: Label, base: Base, side: int, scope: Scope) -> bool:
    forms = gender_variants(label, scope)
    neutral = [word for word in forms["NB"] if word != "_"]
    return forms["M" if side == 0 else "F"] != list(base.forms[1 - side]) or neutral != list(
        base.corrected
    )


def _tables(pipeline: str) -> Iterator[tuple[str, pd.DataFrame]]:
    nlp = load_pipeline(pipeline)
    measured = measure_doubts(nlp, fetch_geco())
    for name, table in (("doubts", doubt_table(measured)), ("doubt_ranks", rank_table(measured))):
        table.insert(0, "pipeline", pipeline_label(nlp))
        yield name, table


if __name__ == "__main__":
    for name, table in _tables(sys.argv[1]):
        save_csv(table.round(3), Path(sys.argv[2]) / f"{name}.csv")
        print(table.round(3).to_string(index=False))
