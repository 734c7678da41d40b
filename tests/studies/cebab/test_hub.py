from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from cebab_records import record

from lib.core.errors import TouchstoneError
from lib.core.paths import data_root
from lib.studies.cebab import hub
from lib.studies.cebab.hub import HUB, HUB_REVISION, fetch_hub, read_hub, rows_sha256
from lib.studies.cebab.reviews import CEBAB_SHA256, RATINGS, VALUES, read_cebab


def as_on_the_hub(record: dict, form: str) -> dict:
    """A record as a hub might keep it: votes with a cell for every label, as JSON, or as Python
    writes a dictionary.
    """
    write = {
        "cells": lambda votes, labels: {label: (votes or {}).get(label) for label in labels},
        "json": lambda votes, labels: json.dumps(votes) if votes else None,
        "python": lambda votes, labels: str(votes),
    }[form]
    votes = {
        name: write(cell, RATINGS if name.startswith("review") else VALUES)
        for name, cell in record.items()
        if name.endswith("label_distribution")
    }
    return (
        record
        | {
            name: str(cell)
            for name, cell in record.items()
            if name.endswith("workers") or name == "opentable_metadata"
        }
        | votes
    )


def hub_folder(folder: Path, files: dict[str, list[dict]], form: str) -> Path:
    """Parquet files as the hub lays them out, of the published files' records."""
    for name, records in files.items():
        split = "validation" if name == "dev.json" else name.removesuffix(".json")
        path = folder / (
            f"data/{split}-00000-of-00001-ab.parquet"
            if form == "json"
            else f"default/{split}/0000.parquet"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([as_on_the_hub(record, form) for record in records]).to_parquet(path)
    return folder


@pytest.mark.parametrize("form", ["cells", "json", "python"])
def test_the_hub_holds_the_same_as_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    files = {
        name: [record(f"{i}_000000"), record(f"{i}_000001")] for i, name in enumerate(CEBAB_SHA256)
    }
    files["train_inclusive.json"] = [
        one for i in (2, 3, 4) for one in (record(f"{i}_000000"), record(f"{i}_000001"))
    ]
    for name, records in files.items():
        (tmp_path / name).write_text(json.dumps(records))
    released, folder = read_cebab(tmp_path), hub_folder(tmp_path / "hub", files, form)
    with pytest.raises(TouchstoneError, match="holds other texts or labels than CEBaB v1.1"):
        read_hub(folder)
    monkeypatch.setattr(hub, "CEBAB_ROWS", rows_sha256(released.iloc[::-1]))
    pd.testing.assert_frame_equal(read_hub(folder), released)


@pytest.mark.slow
def test_the_published_data_by_way_of_the_hub(tmp_path: Path, cebab: pd.DataFrame) -> None:
    files = {name: json.loads((data_root() / "cebab" / name).read_text()) for name in CEBAB_SHA256}
    assert read_hub(hub_folder(tmp_path, files, "cells")).equals(cebab)


def test_a_hub_folder_that_lacks_a_split_or_has_bad_votes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="holds no Parquet file of validation"):
        read_hub(tmp_path)
    hub_folder(tmp_path, {"dev.json": [record()]}, "json")
    path = tmp_path / "data/validation-00000-of-00001-ab.parquet"
    pd.read_parquet(path).assign(food_aspect_label_distribution="many").to_parquet(path)
    with pytest.raises(
        TouchstoneError, match="validation, record 0: food_aspect_label_distribution is 'many'"
    ):
        read_hub(tmp_path)


def test_the_hub_is_asked_for_parquet_and_complaints_are_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict = {}
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda name, **how: asked.update(how, name=name) or str(tmp_path),
    )
    assert fetch_hub() == tmp_path and asked == {
        "name": HUB,
        "repo_type": "dataset",
        "revision": HUB_REVISION,
        "allow_patterns": "*.parquet",
    }

    def refuse(*_: object, **__: object) -> str:
        raise OSError("no connection")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(
        TouchstoneError,
        match="could not fetch CEBaB/CEBaB from the Hugging Face hub .OSError.; try again",
    ):
        fetch_hub()
