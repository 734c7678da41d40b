"""Make anew what the annotator and its checks read: stored parses, weights, tables of scores.

    python tools/fit_annotator.py annotation notebooks/geco/material/plots.md 2026-11-21
    python tools/fit_annotator.py possessives > notebooks/geco/material/possessive_weights.json
    python tools/fit_annotator.py reference > notebooks/geco/material/reference_weights.json
    python tools/fit_annotator.py doubts notebooks/geco/material
    python tools/fit_annotator.py positions > notebooks/geco/material/neutral_verbs.csv
    python tools/fit_annotator.py scores train > scores.csv

`--spacy` names the pipeline (default: that of TOUCHSTONE_SPACY; `reference` takes several). GECO
and the open corpora are read from TOUCHSTONE_DATA.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import spacy
from annotator_scores import Base, differing, pipeline_label, read_bases, score_annotator
from neutral_verbs import propose_positions
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from spacy.language import Language
from spacy.tokens import Doc
from write_conllu import write_conllu

from lib.core.files import save_csv
from lib.core.paths import material
from lib.language.annotator import annotate_sentence, gendered_words
from lib.language.corpora import published_corpus, read_sources
from lib.language.labels import Label, Scope, gender_variants
from lib.language.lexicon import Gender, load_lexicon
from lib.language.parse import (
    ENVIRONMENT,
    annotate,
    annotate_tokens,
    load_pipeline,
    read_summaries,
)
from lib.language.possessives import by_rules
from lib.language.possessives import describe as describe_possessive
from lib.language.subject_reference import candidates, seed_chain, subject_head
from lib.language.subject_reference import describe as describe_reference
from lib.studies.geco.corpus import fetch_geco
from lib.studies.geco.doubts import doubts, reason_of

SENTENCES_A_FILE = 280  # keeps a file of stored annotation below 500 kB
# The persons in which English tells an object from a possessive: whether the word is a possessive.
ANSWERS = {
    **dict.fromkeys(("him", "them", "me", "us"), False),
    **dict.fromkeys(("his", "their", "my", "our"), True),
}
ALONE = frozenset(
    "and or but nor to of in on at for with by from as is was are were than that who which when "
    "because "
    "if so too alone".split()
)
LONGEST = 40  # words of a sentence that is asked
WEIGHT_OF_GECO = 3  # so few that each counts for three


def fit_weights(
    rows: Sequence[Collection[str]],
    answers: Sequence[bool],
    strength: float,
    max_iter: int,
    digits: int,
    least: float,
) -> dict[str, float]:
    """Logistic regression of yes / no answers on the names of the features that hold.

    Args:
        strength: the inverse of the L2 penalty (`C` of scikit-learn).
        digits: weights are rounded to so many decimals.
        least: smaller weights are left out.
    """
    vectorizer = DictVectorizer()
    table = vectorizer.fit_transform(dict.fromkeys(row, 1) for row in rows)
    model = LogisticRegression(C=strength, max_iter=max_iter, fit_intercept=False)
    model.fit(table, answers)
    pairs = zip(vectorizer.get_feature_names_out(), model.coef_[0], strict=True)
    return {name: round(float(weight), digits) for name, weight in pairs if abs(weight) >= least}


def fit_possessives(rows: Sequence[Sequence[str]], answers: Sequence[bool]) -> dict[str, float]:
    """The weights of `lib.language.possessives`."""
    return fit_weights(rows, answers, strength=0.3, max_iter=500, digits=2, least=0.04)


def fit_reference(
    docs: Sequence[Doc],
    genders: Sequence[Mapping[int, Gender]],
    gold: Sequence[Collection[int]],
    strength: float = 0.1,
) -> dict[str, float]:
    """The weights of `lib.language.subject_reference`.

    Args:
        genders: the gendered words of each sentence by position.
        gold: the positions of each sentence that speak of its subject.
    """
    rows, answers = [], []
    for doc, words, wanted in zip(docs, genders, gold, strict=True):
        subject = subject_head(doc, words.keys())
        chain = seed_chain(doc, subject, words, ())
        gender = next((words[i] for i in sorted(chain)), None)
        for i in candidates(words, chain, gender):
            rows.append(describe_reference(doc, i, subject, chain, words))
            answers.append(i in wanted)
            chain |= {i} & set(wanted)
    return fit_weights(rows, answers, strength, max_iter=2000, digits=3, least=0.001)


def as_questions(words: Sequence[str]) -> tuple[list[str], dict[int, bool]]:
    """A sentence with "her" in the place of words that tell object from possessive.

    "His" that stands alone ("a friend of his") would be *hers* and is left as it is.

    Returns:
        The words, and by position whether the word stands before what is possessed.

    >>> as_questions("Give me my hat".split())
    (['Give', 'her', 'her', 'hat'], {1: False, 2: True})
    """
    rewritten, answers = list(words), {}
    for i, word in enumerate(words):
        answer = ANSWERS.get(word.lower())
        right = words[i + 1].lower() if i + 1 < len(words) else "."
        is_alone = right in ALONE or not re.match(r"[\w\"'`(]", right)
        if answer is None or (word.lower() == "his" and is_alone):
            continue
        rewritten[i], answers[i] = "Her" if word[0].isupper() else "her", answer
    return rewritten, answers


def corpus_questions() -> Iterator[tuple[list[str], dict[int, bool]]]:
    """The distinct sentences of the open corpora that hold such a word, as questions."""
    seen = set()
    for sentence in published_corpus(read_sources(material("lm_saliency") / "sources.yaml")):
        words = [word for word, _ in sentence if word.strip()]
        if 4 <= len(words) <= LONGEST and tuple(words) not in seen:
            seen.add(tuple(words))
            rewritten, answers = as_questions(words)
            if answers:
                yield rewritten, answers


def possessives_file(pipeline: Language) -> str:
    """Fit on the open corpora and on GECO's training part; the text of the file of weights.

    GECO joins in with the answers of its male sentences, without the rules, which were written
    there.
    """
    rows, answers = [], []
    questions = list(corpus_questions())
    docs = annotate_tokens([words for words, _ in questions], pipeline)
    for doc, (_, asked) in zip(docs, questions, strict=True):
        rows += [describe_possessive(doc[i], by_rules(doc[i])) for i in asked]
        answers += asked.values()
    bases = list(read_bases("D_A", "train", fetch_geco()).values())
    for doc, base in zip(parsed_forms(bases, 0, pipeline), bases, strict=True):
        for i in [token.i for token in doc if token.lower_ == "her"]:
            answer = ANSWERS.get(base.forms[1][i].lower())
            if answer is not None:
                rows += [describe_possessive(doc[i])] * WEIGHT_OF_GECO
                answers += [answer] * WEIGHT_OF_GECO
    about = (
        "Fitted by tools/fit_annotator.py on the open corpora of "
        "notebooks/lm_saliency/material/sources.yaml and on the training part of GECO "
        f"(braindatalab/gecobench, BSD-3-Clause), parsed by {pipeline_label(pipeline)}; "
        f"{len(rows)} questions"
    )
    return weights_file(about, fit_possessives(rows, answers))


def reference_file(pipelines: Sequence[Language]) -> str:
    """Fit on D_S of GECO's training part, female and male forms; the text of the file."""
    docs: list[Doc] = []
    wanted: list[list[int]] = []
    bases = list(read_bases("D_S", "train", fetch_geco()).values())
    for pipeline in pipelines:
        for side in (0, 1):
            docs += parsed_forms(bases, side, pipeline)
            wanted += [differing(base.forms[0], base.forms[1]) for base in bases]
    lexicon = load_lexicon()
    genders = [
        {i: gender for i, (gender, _) in gendered_words(doc, lexicon).items()} for doc in docs
    ]
    about = (
        "Fitted by tools/fit_annotator.py on D_S of the training part of GECO "
        "(braindatalab/gecobench, BSD-3-Clause), parsed by "
        f"{' and '.join(map(pipeline_label, pipelines))}"
    )
    return weights_file(about, fit_reference(docs, genders, wanted))


def parsed_forms(bases: Sequence[Base], side: int, pipeline: Language) -> list[Doc]:
    """One form of GECO's base sentences, parsed; blank words become "_".

    Args:
        side: 0 female, 1 male.
    """
    return annotate_tokens([[word or "_" for word in base.forms[side]] for base in bases], pipeline)


def weights_file(about: str, weights: Mapping[str, float]) -> str:
    """Weights as JSON with a line each, after what they were fitted on."""
    lines = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}: {weight}"
        for name, weight in sorted(weights.items())
    )
    return f'{{\n"about": {json.dumps(about)},\n"weights": {{\n{lines}\n}}\n}}\n'


def store_annotation(text: Path, pipeline: Language, date: str) -> list[Path]:
    """Parse a file of texts and keep the result beside it as `annotation_1.conllu` ...

    Returns:
        The files.
    """
    sentences = read_summaries(text)
    docs = annotate(list(sentences["sentence"]), pipeline)
    named = list(zip(sentences["sentence_id"], docs, strict=True))
    header = [
        f"annotation of {text.name} by the spaCy pipeline {pipeline.path.name} "
        f"with spaCy {spacy.__version__}, {date}",
        "one sentence at a time, split by punctuation rules",
        "made by a program and not corrected; licence of the text: CC BY 4.0",
    ]
    files: list[Path] = []
    for start in range(0, len(named), SENTENCES_A_FILE):
        files.append(text.with_name(f"annotation_{len(files) + 1}.conllu"))
        write_conllu(dict(named[start : start + SENTENCES_A_FILE]), files[-1], header)
    return files


def measure_doubts(pipeline: Language, folder: Path, every: int = 1) -> pd.DataFrame:
    """GECO's training part, labelled by the annotator, with what speaks against each label.

    Args:
        folder: where the published files lie.
        every: take only each k-th base sentence.

    Returns:
        A row for the female and one for the male form of each base sentence: dataset, wrong (the
        other form or the neutral one differs from the corrected gold), rank, doubts.
    """
    rows = []
    scopes: dict[str, Scope] = {"D_A": "all", "D_S": "subj"}
    for dataset, scope in scopes.items():
        bases = list(read_bases(dataset, "train", folder).values())[::every]
        for side in (0, 1):
            for doc, base in zip(parsed_forms(bases, side, pipeline), bases, strict=True):
                label = annotate_sentence(doc, names="keep")
                against = doubts(doc, label)
                reasons = against.form if scope == "all" else against.reference
                is_wrong = _is_wrong(label, base, side, scope)
                rows.append((dataset, is_wrong, against.rank(scope), reasons))
    return pd.DataFrame(rows, columns=["dataset", "wrong", "rank", "doubts"])


def doubt_table(measured: pd.DataFrame) -> pd.DataFrame:
    """How often labels are wrong with each reason and without.

    Returns:
        dataset, reason, sentences, wrong_with, wrong_without.
    """
    rows = []
    for dataset, part in measured.groupby("dataset"):
        reasons = part["doubts"].map(lambda listed: {reason_of(doubt) for doubt in listed})
        counts = Counter(reason for listed in reasons for reason in listed)
        for reason, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            has = reasons.map(lambda listed, reason=reason: reason in listed)
            rows.append((dataset, reason, n, part["wrong"][has].mean(), part["wrong"][~has].mean()))
    columns = ["dataset", "reason", "sentences", "wrong_with", "wrong_without"]
    return pd.DataFrame(rows, columns=columns)


def rank_table(measured: pd.DataFrame) -> pd.DataFrame:
    """How often labels are wrong by their number of doubts.

    Returns:
        dataset, doubts, sentences, wrong, AUC (that a wrong label ranks before a right one, chance
        .5).
    """
    rows = []
    for dataset, part in measured.groupby("dataset"):
        auc = roc_auc_score(part["wrong"], part["rank"])
        for number, some in part.groupby(part["rank"].astype(int).clip(upper=5)):
            name = f"{number} or more" if number == 5 else str(number)
            rows.append((dataset, name, len(some), some["wrong"].mean(), auc))
    return pd.DataFrame(rows, columns=["dataset", "doubts", "sentences", "wrong", "AUC"])


def _is_wrong(label: Label, base: Base, side: int, scope: Scope) -> bool:
    forms = gender_variants(label, scope)
    neutral = [word for word in forms["NB"] if word != "_"]
    other = forms["M" if side == 0 else "F"]
    return other != list(base.forms[1 - side]) or neutral != list(base.corrected)


def save_doubts(pipeline: Language, folder: Path) -> None:
    """Measure the doubts and write `doubts.csv` and `doubt_ranks.csv` into a folder."""
    measured = measure_doubts(pipeline, fetch_geco())
    for name, table in (("doubts", doubt_table(measured)), ("doubt_ranks", rank_table(measured))):
        table.insert(0, "pipeline", pipeline_label(pipeline))
        save_csv(table.round(3), folder / f"{name}.csv")
        print(table.round(3).to_string(index=False))


def scores_file(split: str, pipeline: Language) -> str:
    """The annotator's scores on a split of GECO as CSV; test is for the final figures only."""
    table = score_annotator(split, pipeline, fetch_geco()).round(4)
    table.insert(0, "pipeline", pipeline_label(pipeline))
    table.insert(1, "split", split)
    return table.to_csv(index=False)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    parameters: dict[str, tuple[str, ...]] = {
        "annotation": ("text", "date"),
        "possessives": (),
        "reference": (),
        "doubts": ("folder",),
        "positions": (),
        "scores": ("split",),
    }
    for name, positional in parameters.items():
        command = commands.add_parser(name)
        for parameter in positional:
            command.add_argument(parameter)
        command.add_argument("--spacy", nargs="+", default=[ENVIRONMENT])
    given = parser.parse_args(arguments)
    pipelines = [load_pipeline(name) for name in given.spacy]
    if given.what == "annotation":
        print(*store_annotation(Path(given.text), pipelines[0], given.date), sep="\n")
    elif given.what == "possessives":
        sys.stdout.write(possessives_file(pipelines[0]))
    elif given.what == "reference":
        sys.stdout.write(reference_file(pipelines))
    elif given.what == "doubts":
        save_doubts(pipelines[0], Path(given.folder))
    elif given.what == "positions":
        sys.stdout.write(propose_positions(pipelines[0], fetch_geco()).to_csv(index=False))
    else:
        sys.stdout.write(scores_file(given.split, pipelines[0]))


if __name__ == "__main__":
    main()
