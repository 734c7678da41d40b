"""The data set of explanations: every line whole, and metadata that a program reads."""

from __future__ import annotations

import json
from pathlib import Path

import mlcroissant
import numpy as np
import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.files import save_json, save_parquet
from lib.studies.assay.data_set import FIELDS, FILE, export

WORDS = ["she", "sings", "well"]


def finished(folder: Path, **parameters: object) -> Path:
    about = {"truth": "noun", "model": "m", "part": "test", "tells": True, "target": 1}
    rows = [about | {"item_id": f"i{n}", "training": n, "sentence": WORDS} for n in (0, 1)]
    truths = pd.DataFrame(rows).assign(key=[[np.nan, 0.5, -1.0]] * 2, change=np.nan)
    truths.loc[1, "truth"] = "edit"
    truths.loc[1, "change"] = -2.5
    unknown = truths.iloc[:1].assign(item_id="untold", tells=False)
    save_parquet(pd.concat([truths, unknown]), folder / "02_training" / "truths.parquet")
    said = [
        {"explainer": name, "model": "m", "training": n, "text": "she sings well"}
        for name in ("LIME", "Even")
        for n in (0, 1)
    ]
    said = pd.DataFrame(said).assign(scores=[[1.0, 2.0, 0.1]] * 4)
    save_parquet(said, folder / "03_attribution" / "explanations.parquet")
    chosen = {"scale": "small", "texts_of": {}} | parameters
    for stage in ("01_data_generation", "03_attribution"):
        about = {"parameters": chosen, "inputs": {}, "externals": {}, "files": {}}
        save_json(about, folder / stage / "manifest.json")
    return folder


def test_every_explanation_of_an_item_that_tells_is_a_line(tmp_path: Path) -> None:
    numbers = export(finished(tmp_path / "run"), tmp_path / "out")
    assert numbers == {"explanations": 4, "items": 2, "explainers": 1, "truths": 2}
    lines = [json.loads(line) for line in (tmp_path / "out" / FILE).read_text().splitlines()]
    assert len(lines) == 4 and all(list(line) == list(FIELDS) for line in lines)
    first = lines[0]
    assert (first["item_id"], first["explainer"], first["role"]) == ("i0@0", "Even", "floor")
    assert first["words"] == WORDS and first["scores"] == [1.0, 2.0, 0.1]
    assert first["key"] == [None, 0.5, -1.0] and first["change"] is None
    assert lines[3]["change"] == -2.5 and lines[3]["role"] == "explainer"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "4 explanations of 2 items" in card and "Scale: small" in card


def test_mlcroissant_reads_what_the_metadata_describe(tmp_path: Path) -> None:
    export(finished(tmp_path / "run"), tmp_path / "out")
    data_set = mlcroissant.Dataset(tmp_path / "out" / "croissant.json")
    assert not data_set.metadata.ctx.issues.errors
    records = list(data_set.records("records"))
    assert len(records) == 4 and records[0]["records/explainer"] in (b"Even", "Even")
    assert len(records[0]["records/words"]) == 3


def test_texts_that_are_not_ours_are_not_given_away(tmp_path: Path) -> None:
    run = finished(tmp_path / "run", texts_of={"cebab": "cpu"})
    numbers = export(run, tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / FILE).read_text().splitlines()]
    assert {line["truth"] for line in lines} == {"noun"} and len(lines) == 2
    assert numbers["truths"] == 1 and numbers["items"] == 1
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Left out, for their texts are not ours: edit." in " ".join(card.split())


def test_a_run_that_is_not_finished_is_named(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no finished stage in .*01_data_generation"):
        export(tmp_path / "none", tmp_path / "out")
