"""Resolvers: rules on parsed sentences, clusters from a file, and the scores on gold coreference."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from lib.core import paths
from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.coreference import antecedent, file_resolver, head_of, phrase, rule_resolver
from lib.language.gum import gold_links, read_gum, score_resolver
from lib.language.lexicon import PRONOUNS
from lib.language.parse import annotate_tokens, load_pipeline, read_docs

OWN = material("implicit_bias")
DOCS = {doc.text.strip(): doc for doc in read_docs(OWN / "annotation_1.conllu").values()}


def said(sentence: str, version: str = "full") -> str:
    doc = DOCS[sentence]
    found = antecedent(next(t for t in doc if t.lower_ in PRONOUNS), version)
    return found.lower_ if found is not None else ""


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("The nurse puts her coat over the chair before the night shift begins .", "nurse"),
        ("The scientist blamed himself for the error .", "scientist"),
        ("The surgeon explains that he will operate at noon .", "surgeon"),
        ("When the plumber arrived , he asked for the water meter .", "plumber"),
        ("After her long shift , the guard slept until noon .", "guard"),
        ("He jumps off the platform and swims to the edge .", ""),
        ("The dog brings her the ball .", ""),
        ("The players lifted him into the air .", ""),
        ("Someone puts the letter in his pocket .", "someone"),
    ],
)
def test_rules_by_kind_of_pronoun(sentence: str, wanted: str) -> None:
    assert said(sentence) == wanted


def test_a_cluster_holds_the_pronoun_and_the_phrase() -> None:
    doc = DOCS["The tennis player throws his racket on the ground ."]
    assert rule_resolver()(doc) == [[(0, 2), (4, 4)]]
    assert head_of(doc, (0, 2)).text == "player" == head_of(doc, phrase(doc[2])).text
    with pytest.raises(TouchstoneError, match="no version 'best'"):
        rule_resolver("best")


def test_clusters_from_a_file(tmp_path: Path) -> None:
    doc = DOCS["The tennis player throws his racket on the ground ."]
    file = tmp_path / "clusters.jsonl"
    file.write_text(
        json.dumps({"words": [t.text for t in doc], "clusters": [[[0, 2], [4, 4]]]}) + "\n"
    )
    assert file_resolver(file)(doc) == rule_resolver()(doc)
    with pytest.raises(TouchstoneError, match="holds no clusters for the sentence 'He jumps off"):
        file_resolver(file)(DOCS["He jumps off the platform and swims to the edge ."])
    for line, message in (
        ("{}", "line 1: not"),
        (
            '{"words": ["a"], "clusters": [[[0, 1]]]}',
            "line 1: the mention .0, 1. lies outside the 1 words",
        ),
    ):
        file.write_text(line + "\n")
        with pytest.raises(TouchstoneError, match=message):
            file_resolver(file)
    file.write_bytes(b'\n{"words": ["caf\xe9"]}\n')
    with pytest.raises(TouchstoneError, match="clusters.jsonl, line 2: the bytes are not UTF-8"):
        file_resolver(file)


def test_a_file_of_clusters_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match='resolver is "file", and clusters_file names none'):
        file_resolver("")
    with pytest.raises(
        TouchstoneError, match="none.jsonl cannot be read .No such file.*; correct clusters_file"
    ):
        file_resolver(tmp_path / "none.jsonl")
    with pytest.raises(TouchstoneError, match="cannot be read .Is a directory"):
        file_resolver(tmp_path)


def test_scores_by_hand() -> None:
    doc = DOCS["The tennis player throws his racket on the ground ."]
    scores = score_resolver([doc[2], doc[5], None, doc[2]], [{2}, {2}, {2}, set()])
    assert (scores.n, scores.n_gold) == (4, 3)
    assert scores.detect_p == pytest.approx(2 / 3) and scores.detect_r == pytest.approx(2 / 3)
    assert scores.link_p == pytest.approx(1 / 3) and scores.link_r == pytest.approx(1 / 3)


def test_gum_brackets_by_hand(tmp_path: Path) -> None:
    rows = [
        ("The", "DET", 2, "det", "Entity=(5-person-new-1-coref"),
        ("cook", "NOUN", 3, "nsubj", "Entity=5)"),
        ("lost", "VERB", 0, "root", "_"),
        ("his", "PRON", 5, "nmod:poss", "Entity=(6-object-new-1-sgl(5-person-giv-1-ana)"),
        ("hat", "NOUN", 3, "obj", "Entity=6)"),
    ]
    lines = [
        f"{i}\t{w}\t{w.lower()}\t{pos}\tX\t_\t{head}\t{dep}\t_\t{misc}"
        for i, (w, pos, head, dep, misc) in enumerate(rows, 1)
    ]
    file = tmp_path / "g.conllu"
    file.write_text("# newdoc id = x\n# meta::genre = bio\n" + "\n".join(lines) + "\n\n")
    (one,) = read_gum(file)
    assert one.genre == "bio" and sorted(one.mentions) == [
        ("5", (0, 1)),
        ("5", (3, 3)),
        ("6", (3, 4)),
    ]
    assert gold_links(one) == (3, {1})
    file.write_text("1\ttoo\tfew\n")
    with pytest.raises(TouchstoneError, match="line 1: 3 columns"):
        read_gum(file)


def test_resolver_scores_are_those_of_the_material(spacy_pipeline: str) -> None:
    root = paths.data_root()
    if root is None or not (root / "treebanks" / "en_gum-open-dev.conllu").is_file():
        pytest.skip(
            "needs the open GUM files: set TOUCHSTONE_DATA to a folder that holds treebanks/"
        )
    pipeline = load_pipeline("environment")
    if pipeline.path.name != "en_ud_sm":
        pytest.skip("the stored scores are those of en_ud_sm")
    files = [root / "treebanks" / f"en_gum-open-{split}.conllu" for split in ("dev", "test")]
    gold = [(s, links) for file in files for s in read_gum(file) if (links := gold_links(s))]
    parsed = annotate_tokens([[t.text for t in s.doc] for s, _ in gold], pipeline)
    for row in pd.read_csv(OWN / "resolver_scores.csv").itertuples():
        docs = [s.doc for s, _ in gold] if row.parse == "gold" else parsed
        found = [
            antecedent(doc[at], row.rules, row.any_subject) for doc, (_, (at, _)) in zip(docs, gold)
        ]
        scores = score_resolver(found, [heads for _, (_, heads) in gold])
        assert (scores.n, scores.n_gold) == (row.n, row.n_gold)
        assert (scores.detect_f1, scores.link_f1) == (
            pytest.approx(row.detect_f1, abs=6e-4),
            pytest.approx(row.link_f1, abs=6e-4),
        )


def test_stored_annotation_is_what_the_pipeline_says(spacy_pipeline: str) -> None:
    pipeline = load_pipeline("environment")
    if pipeline.path.name != "en_ud_sm":
        pytest.skip("the stored annotation is that of en_ud_sm")
    some = list(DOCS.values())[:60]
    for stored, fresh in zip(
        some, annotate_tokens([[t.text for t in doc] for doc in some], pipeline)
    ):
        assert [(t.dep_, t.head.i, t.tag_) for t in fresh] == [
            (t.dep_, t.head.i, t.tag_) for t in stored
        ]
