"""Scores on gold coreference: by hand, the brackets of GUM, and as they are stored."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from coreference_scores import gold_links, read_gum, score_resolver

from lib.core import paths
from lib.core.errors import TouchstoneError
from lib.core.paths import material
from lib.language.parse import annotate_tokens, load_pipeline, read_docs
from lib.studies.implicit_bias.coreference import antecedent

OWN = material("implicit_bias")
DOCS = {doc.text.strip(): doc for doc in read_docs(OWN / "annotation_1.conllu").values()}


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
