"""Reviews, tables of predictions, texts and cards: further formats of files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cebab_records import record
from formats_of_files import plain, write_lines, write_parquet
from malformed import Format, text_file

from lib.core.cards import dataset_card, read_card
from lib.language.corpora import read_plain, read_tagged
from lib.language.labels import Label
from lib.language.lexicon import read_lexicon
from lib.language.parse import read_summaries
from lib.language.word_lists import read_weights, read_word_list
from lib.studies.cebab.reading import gather_texts, read_outside, read_vectors
from lib.studies.cebab.reviews import ASPECTS, VALUES, read_reviews
from lib.studies.cebab.worlds import read_wordings
from lib.studies.geco.dataset import read_texts
from lib.studies.geco.metadata import with_own_parts
from lib.studies.geco.review import apply_decisions, read_decisions
from lib.studies.implicit_bias.sentences import file_resolver, read_sentences


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
    return plain(resolve(Doc(spacy.blank("en").vocab, words=["Ann", "lost", "her", "hat"])))


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
    return plain({key: asdict(label) for key, label in applied.items()})


FORMATS = {
    "CEBaB": Format(_reviews, _write_json("dev.json"), _read_reviews, "dev.json"),
    "predictions, CSV": Format(
        _predictions, _write_csv("p.csv"), _read_predictions("p.csv"), "p.csv"
    ),
    "predictions, Parquet": Format(
        _predictions, write_parquet("p.parquet"), _read_predictions("p.parquet"), "p.parquet"
    ),
    "aspects": Format(_aspects, _write_csv("a.csv"), _read_aspects, "a.csv"),
    "vectors": Format(_vectors, _write_npz, _read_vectors, "v.npz"),
    "sentences": text_file("s.csv", _SENTENCES, lambda path: read_sentences(path).to_dict("list")),
    "clusters": Format(
        _clusters,
        lambda folder, content: write_lines(folder, content, "clusters.jsonl"),
        _read_clusters,
        "clusters.jsonl",
    ),
    "wordings": text_file("wordings.yaml", _wordings, lambda path: read_wordings(path)),
    "tagged corpus": text_file(
        "t.txt", "She_PRP sings_VBZ\n\nGo_VB\n", lambda path: plain(read_tagged(path))
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
        lambda path: plain(read_lexicon(path).folded),
    ),
    "word list": text_file(
        "words.txt", "a b # two\nc\n", lambda path: sorted(read_word_list(path))
    ),
    "fitted weights": text_file(
        "w.json", '{"weights": {"bias": -1.0, "word": 2}}', lambda path: dict(read_weights(path))
    ),
}
