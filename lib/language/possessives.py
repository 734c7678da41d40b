"""Whether "her" is *him* or *his*, learnt from the persons in which English tells the two apart (him/his, them/their, me/my, us/our).

Every such word of an open corpus becomes "her" and leaves its own form behind as the answer. A logistic regression on the words
and tags around it, and on what the rules of `lib.language.possessive_rules` say, learns the rest. GECO's training part joins in with the answers of
its male sentences, without the rules, which were written there. `python -m lib.language.possessives en_core_web_sm` fits the weights anew.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from spacy.tokens import Token

from lib.core.errors import TouchstoneError
from lib.core.paths import material

WEIGHTS = "possessive_weights.json"
ANSWERS = {
    "him": False,
    "them": False,
    "me": False,
    "us": False,
    "his": True,
    "their": True,
    "my": True,
    "our": True,
}
ALONE = frozenset(
    "and or but nor to of in on at for with by from as is was were are than that who which when because if so too alone".split()
)
LONGEST = 40


def asked_of_her(words: Sequence[str]) -> tuple[list[str], dict[int, bool]]:
    """A sentence with "her" in the place of such words, and at each of them whether it stands before what is possessed.

    "His" that stands alone ("a friend of his") would be *hers* and is left as it is.

    >>> asked_of_her("Give me my hat".split())
    (['Give', 'her', 'her', 'hat'], {1: False, 2: True})
    """
    found, answers = list(words), {}
    for i, word in enumerate(words):
        answer = ANSWERS.get(word.lower())
        right = words[i + 1].lower() if i + 1 < len(words) else "."
        if answer is None or (
            word.lower() == "his" and (right in ALONE or not re.match(r"[\w\"'`(]", right))
        ):
            continue
        found[i], answers[i] = "Her" if word[0].isupper() else "her", answer
    return found, answers


def describe(token: Token, rule: bool | None = None) -> list[str]:
    """What stands around a "her", as names of features, and what the rules say of it (`rule`; None where they are not asked)."""
    doc, i = token.doc, token.i
    word = {k: doc[i + k].lower_ if 0 <= i + k < len(doc) else "" for k in (-1, 1, 2)}
    tag = {k: doc[i + k].tag_ if 0 <= i + k < len(doc) else "" for k in (-2, -1, 1, 2, 3)}
    end, right = word[1][-3:], f"{tag[1]} {tag[2]}"
    base = [
        f"own {token.tag_}",
        f"word {word[1]}",
        f"end {end}",
        f"end {word[1][-2:]}",
        f"then {word[2]}",
        f"left {word[-1]}",
        f"tags {tag[1]}",
        f"then tags {tag[2]}",
        f"tags {right}",
        f"tags {right} {tag[3]}",
        f"left tags {tag[-1]}",
        f"left tags {tag[-2]} {tag[-1]}",
    ]
    pairs = [
        f"{tag[-1]}_{tag[1]}",
        f"{tag[-1]}_{right}",
        f"{word[-1]}_{tag[1]}",
        f"{word[-1]}_{word[1]}",
        f"{end}_{tag[2]}",
        f"{word[1]}_{tag[2]}",
        f"own {token.tag_}_{tag[1]}",
    ]
    said = (
        []
        if rule is None
        else [
            f"rule {rule}",
            f"rule {rule}_{tag[1]}",
            f"rule {rule}_{right}",
            f"rule {rule}_{tag[-1]}_{tag[1]}",
        ]
    )
    return ["bias", *base, *pairs, *said]


def fit_weights(
    rows: Sequence[Sequence[str]],
    answers: Sequence[bool],
    strength: float = 0.3,
    least: float = 0.04,
) -> dict[str, float]:
    """Logistic regression of "stands before what is possessed" on descriptions; rounded, weights below `least` left out."""
    vectorizer = DictVectorizer()
    table = vectorizer.fit_transform(dict.fromkeys(row, 1) for row in rows)
    model = LogisticRegression(C=strength, max_iter=500, fit_intercept=False).fit(table, answers)
    pairs = zip(vectorizer.get_feature_names_out(), model.coef_[0], strict=True)
    return {name: round(float(weight), 2) for name, weight in pairs if abs(weight) >= least}


@cache
def load_weights(path: Path | None = None) -> Mapping[str, float]:
    """The fitted weights by name of feature. Raises TouchstoneError where the file is not such a table."""
    path = path or material("geco") / WEIGHTS
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["weights"])
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise TouchstoneError(
            f"{path} holds no weights ({error!r}); restore the file of the repository"
        ) from error


def stands_before_possessed(token: Token, rule: bool) -> bool:
    """The decision for one "her"."""
    weights = load_weights()
    return sum(weights.get(name, 0.0) for name in describe(token, rule)) > 0


def corpus_questions() -> Iterator[tuple[list[str], dict[int, bool]]]:
    """The distinct sentences of the open corpora (`lib.language.corpora`) that ask such a question, rewritten, with the answers."""
    from lib.language.corpora import published_corpus, read_sources  # here: only fitting needs them

    seen = set()
    for sentence in published_corpus(read_sources(material("lm_saliency") / "sources.yaml")):
        words = [word for word, _ in sentence if word.strip()]
        if 4 <= len(words) <= LONGEST and tuple(words) not in seen:
            seen.add(tuple(words))
            asked, answers = asked_of_her(words)
            if answers:
                yield asked, answers


def main(pipeline: str) -> str:
    """Fit on the corpora and on GECO's training part, parsed by one pipeline; the file's text."""
    from lib.language.parse import annotate_tokens, load_pipeline
    from lib.language.possessive_rules import by_rules
    from lib.studies.geco.corpus import fetch_geco
    from lib.studies.geco.gold import pipeline_label, read_bases

    nlp, rows, labels = load_pipeline(pipeline), [], []
    asked = list(corpus_questions())
    for doc, (_, answers) in zip(
        annotate_tokens([words for words, _ in asked], nlp), asked, strict=True
    ):
        rows += [describe(doc[i], by_rules(doc[i])) for i in answers]
        labels += answers.values()
    bases = list(read_bases("D_A", "train", fetch_geco()).values())
    for doc, base in zip(
        annotate_tokens([[word or "_" for word in base.forms[0]] for base in bases], nlp),
        bases,
        strict=True,
    ):
        answers = {
            i: ANSWERS.get(base.forms[1][i].lower())
            for i, token in enumerate(doc)
            if token.lower_ == "her"
        }
        for i in (i for i, answer in answers.items() if answer is not None):
            rows += [describe(doc[i])] * 3  # so few that each counts for three
            labels += [answers[i]] * 3
    about = (
        "Fitted by lib.language.possessives on the open corpora of notebooks/lm_saliency/material/sources.yaml and on the training part of GECO "
        f"(braindatalab/gecobench, BSD-3-Clause), parsed by {pipeline_label(nlp)}; {len(rows)} questions"
    )
    lines = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}: {weight}"
        for name, weight in sorted(fit_weights(rows, labels).items())
    )
    return f'{{\n"about": "{about}",\n"weights": {{\n{lines}\n}}\n}}\n'


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]))
