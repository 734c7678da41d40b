"""Data, labels, claims, trees, tables: the formats of files that a study reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cebab_records import record
from malformed import Format, text_file

from lib.attribution import load_explanations
from lib.core.cards import dataset_card, read_card
from lib.language.corpora import read_plain, read_tagged
from lib.language.labels import Label
from lib.language.lexicon import read_lexicon
from lib.language.parse import read_docs, read_summaries
from lib.language.word_lists import read_weights, read_word_list
from lib.stats.claims import read_claims
from lib.studies.cebab.reading import gather_texts, read_outside, read_vectors
from lib.studies.cebab.reviews import ASPECTS, VALUES, read_reviews
from lib.studies.cebab.worlds import read_wordings
from lib.studies.geco.corpus import read_geco
from lib.studies.geco.dataset import read_texts
from lib.studies.geco.faults import faults_of
from lib.studies.geco.labels import read_labels
from lib.studies.geco.metadata import with_own_parts
from lib.studies.geco.review import apply_decisions, read_decisions
from lib.studies.implicit_bias.sentences import file_resolver, read_sentences
from lib.studies.lm_saliency.extraction import read_conll2012, read_trees
from lib.studies.lm_saliency.lines import read_agreement
from lib.studies.lm_saliency.released import read_outputs

_WORDS = [["She", "sings", "."], ["He", "sings", "."]]


def _plain(value: Any) -> Any:
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


def _write_lines(folder: Path, content: list[Any], name: str = "rows.jsonl") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(entry, ensure_ascii=False, allow_nan=True) for entry in content]
    text = "".join(f"{line}\n" for line in lines)
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def _read_geco(folder: Path) -> Any:
    rows = read_geco(folder / "rows.jsonl")
    return {
        "faults": faults_of(rows)["fault"].tolist(),
        "rows": _plain(rows.drop(columns="gender").to_dict("records")),
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
    return _plain({key: asdict(label) for key, label in read_labels(path).items()})


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
    return _plain([asdict(claim) for claim in read_claims(path)])


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


def _write_parquet(name: str) -> Any:
    def write(folder: Path, content: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        table = pd.DataFrame(content)
        if "rows" in content:  # how many of them are left
            table = table.drop(columns="rows").iloc[: content["rows"][0]]
        table.to_parquet(folder / name, index=False)

    return write


def _read_explanations(folder: Path) -> Any:
    frame = load_explanations(folder / "mine.parquet", _rows())
    return _plain(frame.drop(columns="delta").to_dict("list"))


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
    return _plain(lines[["prefix", "tag", "cues", "attractors"]].to_dict("list"))


def _read_outputs(folder: Path) -> Any:
    rows = pd.DataFrame({"prefix": [list("abcde"), list("fghij")], "tag": [1, 0]})
    found = read_outputs(folder, rows)
    return _plain(found[["probability", "class_0", "class_1"]].to_dict("list"))


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
    return _plain(read_trees(path))


def _read_docs(path: Path) -> Any:
    return {
        key: [[token.text, token.pos_, token.dep_, token.head.i] for token in doc]
        for key, doc in read_docs(path).items()
    }


def _read_conll2012(path: Path) -> Any:
    documents = read_conll2012(path)
    return _plain([[words, [asdict(m) for m in mentions]] for words, mentions in documents])


# ---------------------------------------------------------------------------------------- CEBaB
def _reviews() -> list[dict[str, Any]]:
    return [record(), record("7_000001", description="Bad soup.")]


def _write_json(name: str) -> Any:
    def write(folder: Path, content: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))

    return write


def _read_reviews(folder: Path) -> Any:
    texts = read_reviews(folder / "dev.json").astype(object)
    return texts.where(texts.notna(), None).to_dict("list")


def _texts() -> pd.DataFrame:
    gold = {aspect: ["Positive", "unknown"] for aspect in ASPECTS}
    return pd.DataFrame({"text_id": ["007", "NA"], **gold})


def _aspects() -> dict[str, list[Any]]:
    return {"text_id": ["007", "NA"]} | {aspect: [VALUES[0], VALUES[1]] for aspect in ASPECTS}


def _predictions() -> dict[str, list[Any]]:
    return {"text_id": ["007", "NA"], "p_1": [0.25, 0.5], "p_2": [0.75, 0.5]}


def _write_csv(name: str) -> Any:
    def write(folder: Path, content: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(pd.DataFrame(content).to_csv(index=False))

    return write


def _read_predictions(name: str) -> Any:
    def read(folder: Path) -> Any:
        aspects = pd.DataFrame(_aspects())
        return gather_texts(_texts(), read_outside(folder / name), aspects).probabilities.tolist()

    return read


def _read_aspects(folder: Path) -> Any:
    predictions = pd.DataFrame(_predictions())
    return gather_texts(_texts(), predictions, read_outside(folder / "a.csv")).predicted.tolist()


def _vectors() -> dict[str, list[Any]]:
    return {
        "text_id": ["007", "NA"],
        "vectors": [[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]],
        "weight": [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]],
        "bias": [0.0, 0.5],
    }


def _write_npz(folder: Path, content: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name, values in content.items():
        if isinstance(values, dict):  # {dtype: values}: what JSON and YAML have no word for
            ((kind, values),) = values.items()
            arrays[name] = np.array(values, dtype=kind)
        else:
            arrays[name] = np.array(values)
    np.savez(folder / "v.npz", **arrays)


def _read_vectors(folder: Path) -> Any:
    (ids, vectors), head = read_vectors(folder / "v.npz")
    read = {"vectors": vectors, "weight": head.weight, "bias": head.bias}
    return {"text_id": ids.tolist()} | {name: array.tolist() for name, array in read.items()}


# -------------------------------------------------------------------------------- implicit bias
_SENTENCES = 'id,sent1,sent2\n1,She sings.,x\n2,"He, too.",y\n'


def _clusters() -> list[dict[str, Any]]:
    return [{"words": ["Ann", "lost", "her", "hat"], "clusters": [[[0, 0], [2, 2]]]}]


def _read_clusters(folder: Path) -> Any:
    import spacy
    from spacy.tokens import Doc

    resolve = file_resolver(folder / "clusters.jsonl")
    return _plain(resolve(Doc(spacy.blank("en").vocab, words=["Ann", "lost", "her", "hat"])))


# ------------------------------------------------------------------------------- texts and cards
def _wordings() -> str:
    blocks = []
    for aspect in ASPECTS:
        values = "".join(
            f"  {value}:\n" + "".join(f"    - {aspect} {value} {i}\n" for i in range(32))
            for value in VALUES
        )
        blocks.append(f"{aspect}:\n  subjects: [the {aspect}]\n{values}")
    return "".join(blocks)


_CARD = """\
own:
  name: own
  title: Our data
  version: "1.0"
  licence: https://creativecommons.org/licenses/by/4.0/
  url: https://example.org
  cite: nobody
  creator: we
  published: "2026-01-31"
  description: "{n} sentences."
  keywords: [gender]
  sections: {Uses: {"For what?": for tests}}
  rai: {collection: by hand}
"""
_OWN_CARD = "creator: me\nlicence: https://example.org/licence\n"
_CARD_OF_OURS = {"creator": "we", "licence": "ours", "version": "1", "keywords": ["a"], "rai": {}}


def _decisions() -> dict[str, Any]:
    edits = {"all": {"2": ["her", "his", "their"]}, "subj": {}}
    one = {"rejected": False, "edits": edits, "text_id": "abc", "text": "Ann lost her hat ."}
    return {"sentences": {"a-1": one}}


def _read_decisions(folder: Path) -> Any:
    words = tuple("Ann lost her hat .".split())
    old = {2: ("her", "him", "their")}
    labels = {"a-1": Label("a-1", words, 0, {}, {}, old)}
    found = read_decisions(folder / "decisions.json")
    applied = apply_decisions(labels, found, str(folder / "decisions.json"))
    return _plain({key: asdict(label) for key, label in applied.items()})


FORMATS = {
    "GECO JSON lines": Format(_geco, _write_lines, _read_geco, "rows.jsonl"),
    "labels": text_file("labels.yaml", _LABELS, _read_labels),
    "claims": text_file("claims.yaml", _CLAIMS, _read_claims),
    "explanations": Format(
        _explanations, _write_parquet("mine.parquet"), _read_explanations, "mine.parquet"
    ),
    "agreement lines": Format(
        lambda: dict(_AGREEMENT), _write_texts, _read_agreement, "all.prefx.txt"
    ),
    "saliency files": Format(lambda: dict(_OUTPUTS), _write_texts, _read_outputs, "out.verum"),
    "CoNLL-U": text_file("a.conllu", _CONLLU, _read_trees),
    "CoNLL-U, annotation": text_file("a.conllu", _CONLLU, _read_docs),
    "CoNLL-2012": text_file("a.conll", _CONLL2012, _read_conll2012),
    "CEBaB": Format(_reviews, _write_json("dev.json"), _read_reviews, "dev.json"),
    "predictions, CSV": Format(
        _predictions, _write_csv("p.csv"), _read_predictions("p.csv"), "p.csv"
    ),
    "predictions, Parquet": Format(
        _predictions, _write_parquet("p.parquet"), _read_predictions("p.parquet"), "p.parquet"
    ),
    "aspects": Format(_aspects, _write_csv("a.csv"), _read_aspects, "a.csv"),
    "vectors": Format(_vectors, _write_npz, _read_vectors, "v.npz"),
    "sentences": text_file("s.csv", _SENTENCES, lambda path: read_sentences(path).to_dict("list")),
    "clusters": Format(
        _clusters,
        lambda folder, content: _write_lines(folder, content, "clusters.jsonl"),
        _read_clusters,
        "clusters.jsonl",
    ),
    "wordings": text_file("wordings.yaml", _wordings, lambda path: read_wordings(path)),
    "tagged corpus": text_file(
        "t.txt", "She_PRP sings_VBZ\n\nGo_VB\n", lambda path: _plain(read_tagged(path))
    ),
    "plain corpus": text_file("t.txt", "= Title =\nShe sings\n\nGo\n", read_plain),
    "card": text_file(
        "card.yaml", _CARD, lambda path: dataset_card(read_card(path, "own", {"n": 3}))
    ),
    "own card": text_file(
        "card.yaml", _OWN_CARD, lambda path: with_own_parts(dict(_CARD_OF_OURS), path)
    ),
    "decisions": Format(
        _decisions, _write_json("decisions.json"), _read_decisions, "decisions.json"
    ),
    "own texts": text_file(
        "emma.txt", "She sings. He sings.\n\nThey sing.\n", lambda path: read_texts(path.parent)
    ),
    "summaries": text_file(
        "plots.md",
        "## Emma\n\nShe sings. He sings.\n",
        lambda path: read_summaries(path).to_dict("list"),
    ),
    "lexicon": text_file(
        "lexicon.csv",
        "# ours\nfemale,male,neutral,kind,source\naunt,uncle,relative,kin,ours\n",
        lambda path: _plain(read_lexicon(path).folded),
    ),
    "word list": text_file(
        "words.txt", "a b # two\nc\n", lambda path: sorted(read_word_list(path))
    ),
    "fitted weights": text_file(
        "w.json", '{"weights": {"bias": -1.0, "word": 2}}', lambda path: dict(read_weights(path))
    ),
}
