"""Data, labels, claims, trees, tables: the formats of files that a study reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from malformed import Format, text_file

from lib.attribution import load_explanations
from lib.language.parse import read_docs
from lib.stats.claims import read_claims
from lib.studies.geco.corpus import read_geco
from lib.studies.geco.faults import faults_of
from lib.studies.geco.labels import read_labels
from lib.studies.lm_saliency.extraction import read_conll2012, read_trees
from lib.studies.lm_saliency.lines import read_agreement
from lib.studies.lm_saliency.released import read_outputs

_WORDS = [["She", "sings", "."], ["He", "sings", "."]]


def plain(value: Any) -> Any:
    """Tuples as lists and positions as text, as JSON has them."""
    return json.loads(json.dumps(value))


# ------------------------------------------------------------------------------------------- GECO
def _geco() -> list[dict[str, Any]]:
    return [
        {
            "sentence": words,
            "ground_truth": [1, 0, 0],
            "gender": gender,
            "target": target,
            "sentence_idx": 5,
        }
        for target, (gender, words) in enumerate(zip(("female", "male"), _WORDS, strict=True))
    ]


def write_lines(folder: Path, content: list[Any], name: str = "rows.jsonl") -> None:
    """Write objects as JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(entry, ensure_ascii=False, allow_nan=True) for entry in content]
    text = "".join(f"{line}\n" for line in lines)
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def _read_geco(folder: Path) -> Any:
    rows = read_geco(folder / "rows.jsonl")
    return {
        "faults": faults_of(rows)["fault"].tolist(),
        "rows": plain(rows.drop(columns="gender").to_dict("records")),
    }


_LABELS = """\
emma-01:
  tokens: Emma loves her old father .
  subject: 0
  names: {0: name}
  subj:
    0: [she, he, they]
    1: [loves, loves, love]
  all:
    0: [she, he, they]
    1: [loves, loves, love]
    2: [her, his, their]
    4: [mother, father, parent]
"""


def _read_labels(path: Path) -> Any:
    return plain({key: asdict(label) for key, label in read_labels(path).items()})


_CLAIMS = """\
- id: length
  source: the paper
  statement: Long beats short.
  quantity: MA
  computed: the mean
  direction: greater
  smallest_effect: 0.02
  test: an interval
  left: [{kind: long}]
  right: [{kind: short}]
  over: {scale: [a, b]}
"""


def _read_claims(path: Path) -> Any:
    return plain([asdict(claim) for claim in read_claims(path)])


# ----------------------------------------------------------------------------------- explanations
def _rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row_id": ["5-F", "5-M"],
            "dataset": "D_A",
            "sentence_idx": 5,
            "target": [0, 1],
            "sentence": _WORDS,
        }
    )


def _explanations() -> dict[str, list[Any]]:
    return {
        "dataset": ["D_A", "D_A"],
        "scheme": ["C", "C"],
        "seed": [0, 0],
        "method": ["mine", "mine"],
        "row_id": ["5-F", "5-M"],
        "sentence_idx": [5, 5],
        "target": [0, 1],
        "words": _WORDS,
        "scores": [[0.5, 0.25, -1.0], [1.0, 0.0, 2.0]],
        "explained": ["logit", "logit"],
        "settings": ["{}", '{"n": 1}'],
    }


def write_parquet(name: str) -> Any:
    """What writes columns as a Parquet file; `rows` says how many lines are left of it."""

    def write(folder: Path, content: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        table = pd.DataFrame(content)
        if "rows" in content:  # how many of them are left
            table = table.drop(columns="rows").iloc[: content["rows"][0]]
        table.to_parquet(folder / name, index=False)

    return write


def _read_explanations(folder: Path) -> Any:
    frame = load_explanations(folder / "mine.parquet", _rows())
    return plain(frame.drop(columns="delta").to_dict("list"))


# ------------------------------------------------------------------------------ agreement lines
_AGREEMENT = {
    "all.prefx.txt": "the boys near the girl\nthe dog of the men\n",
    "all.tag.txt": "1\n0\n",
    "all.subjs.txt": "[(1, 1)] ||| [(4, 4)]\n[(0, 1)] ||| [(3, 4)]\n",
}
_OUTPUTS = {
    "out.verum": "[0.5, 1.5, 0.25, 0, 0]\n[1, 2, 3, 4, 5]\n",
    "out.malum": "[0.5, 0.5, 0.25, 0, 0]\n[5, 4, 3, 2, 1]\n",
    "out.pos.idx": "0\n",
}


def _write_texts(folder: Path, content: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def _read_agreement(folder: Path) -> Any:
    lines = read_agreement(folder)
    return plain(lines[["prefix", "tag", "cues", "attractors"]].to_dict("list"))


def _read_outputs(folder: Path) -> Any:
    rows = pd.DataFrame({"prefix": [list("abcde"), list("fghij")], "tag": [1, 0]})
    found = read_outputs(folder, rows)
    return plain(found[["probability", "class_0", "class_1"]].to_dict("list"))


# ---------------------------------------------------------------------------------------- CoNLL
_CONLLU = """\
# sent_id = a-1
# text = She sings songs.
1\tShe\tshe\tPRON\tPRP\tNumber=Sing\t2\tnsubj\t_\t_
2\tsings\tsing\tVERB\tVBZ\tNumber=Sing\t0\troot\t_\t_
3\tsongs\tsong\tNOUN\tNNS\tNumber=Plur\t2\tobj\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# sent_id = a-2
1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

"""
_CONLL2012 = """\
# begin document (a); part 000
0\tAnn\t(1)
1\tmet\t_
2\ther\t(1)|(2
3\tson\t2)
# end document
"""


def _read_trees(path: Path) -> Any:
    return plain(read_trees(path))


def _read_docs(path: Path) -> Any:
    return {
        key: [[token.text, token.pos_, token.dep_, token.head.i] for token in doc]
        for key, doc in read_docs(path).items()
    }


def _read_conll2012(path: Path) -> Any:
    documents = read_conll2012(path)
    return plain([[words, [asdict(m) for m in mentions]] for words, mentions in documents])


FORMATS = {
    "GECO JSON lines": Format(_geco, write_lines, _read_geco, "rows.jsonl"),
    "labels": text_file("labels.yaml", _LABELS, _read_labels),
    "claims": text_file("claims.yaml", _CLAIMS, _read_claims),
    "explanations": Format(
        _explanations, write_parquet("mine.parquet"), _read_explanations, "mine.parquet"
    ),
    "agreement lines": Format(
        lambda: dict(_AGREEMENT), _write_texts, _read_agreement, "all.prefx.txt"
    ),
    "saliency files": Format(lambda: dict(_OUTPUTS), _write_texts, _read_outputs, "out.verum"),
    "CoNLL-U": text_file("a.conllu", _CONLLU, _read_trees),
    "CoNLL-U, annotation": text_file("a.conllu", _CONLLU, _read_docs),
    "CoNLL-2012": text_file("a.conll", _CONLL2012, _read_conll2012),
}
