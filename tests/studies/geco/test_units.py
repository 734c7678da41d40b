"""What a grid reads from the earlier stages, with and without the weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import as_rows, build

from lib.attribution import explain
from lib.attribution.model_blind import Pattern
from lib.core.errors import TouchstoneError
from lib.core.files import save_parquet
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT
from lib.core.stage import Stage, open_stage
from lib.models.load import save_trained
from lib.studies.geco import units
from lib.studies.geco.as_released import Covariances, fit_covariances
from lib.studies.geco.corpus import CLASSES, DATASETS, GENDERS, write_geco
from lib.studies.geco.grid import Unit
from lib.studies.geco.units import StageSources, read_foreign
from lib.training.classifier import Settings
from lib.training.transfer import Trainer, predictions

FORMS = ["she sings a song .", "he sings a song .", "they sing a song ."]


def corpus(n_base: int) -> pd.DataFrame:
    rows = pd.concat(
        [as_rows(FORMS).assign(sentence_idx=i) for i in range(n_base)], ignore_index=True
    )
    return rows.assign(
        gender=[GENDERS[t] for t in rows.target],
        ground_truth=[[1, 1, 0, 0, 0]] * len(rows),
        row_id=[f"{i}-{CLASSES[t]}" for i, t in zip(rows.sentence_idx, rows.target, strict=True)],
    )


def close(stage: Stage) -> None:
    stage.close(notebook_parameters(ROOT / "notebooks" / "geco" / f"{stage.stage}.py"))


@pytest.fixture
def encoder(tmp_path: Path) -> str:
    """A tiny random BERT in a folder, as a user's own encoder would lie there."""
    model = build("BERT")
    model.module.save_pretrained(tmp_path / "encoder")
    model.tokenizer.save_pretrained(tmp_path / "encoder")
    return str(tmp_path / "encoder")


@pytest.fixture
def sources(encoder: str, small_outputs: Path, monkeypatch: pytest.MonkeyPatch) -> StageSources:
    monkeypatch.setattr("lib.studies.geco.units.N_SHOWN", 6)
    stage, train, test = open_stage("geco", "small", "01_data_generation"), corpus(8), corpus(4)
    write_geco(train, stage.path(f"{DATASETS['D_A']}/train.jsonl"))
    write_geco(test, stage.path(f"{DATASETS['D_A']}/test.jsonl"))
    close(stage)
    stage = open_stage("geco", "small", "02_training")
    trainer = Trainer(encoder, "", torch.device("cpu"))
    found = trainer.train("C", 0, train, test, CLASSES, Settings(epochs=1, lr=0.01, batch_size=8))
    save_trained(
        stage.path("models") / "D_A" / "C",
        "seed0",
        found.recipe,
        found.model,
        found.trained,
        found.rows,
    )
    about = predictions(test, found.model.predict(test.sentence, 8), CLASSES).assign(
        dataset="D_A", scheme="C", seed=0
    )
    published = about.assign(
        seed=1
    )  # a model whose numbers are known and whose weights are not here
    save_parquet(
        pd.concat([about, published], ignore_index=True), stage.path("predictions.parquet")
    )
    close(stage)
    stage = open_stage("geco", "small", "03_attribution")
    read = pd.read_parquet(stage.input("02_training", "predictions.parquet"))
    return StageSources(stage, read, 0, torch.device("cpu"))


def unit(method: str = "Saliency", scheme: str = "C", seed: int = 0, n_base: int = 2) -> Unit:
    return Unit("D_A", scheme, seed, method, {}, n_base)


def test_rows_come_from_the_test_split(sources: StageSources) -> None:
    assert len(sources.rows_of(unit())) == 6 and len(sources.rows_of(unit(n_base=0))) == 12


def test_floors_get_what_they_are_fitted_to(sources: StageSources) -> None:
    assert isinstance(sources.model_of(unit("Pattern Variant", "-", -1)), Pattern)
    assert sources.model_of(unit("First pronoun", "-", -1)) is None
    assert sources.model_of(unit("Uniform random", "-", -1)).encode([["he"]])


def test_the_released_pattern_is_fitted_to_the_test_split(sources: StageSources) -> None:
    released = Unit("D_A", "-", -1, "Pattern Variant", {"variant": "as_released"}, 2)
    known = sources.model_of(released)
    assert isinstance(known, Covariances) and known.of_piece["they"] > 0 > known.of_piece["she"]
    assert sources.mark_of(released) != sources.mark_of(unit("Pattern Variant", "-", -1))
    of_test = fit_covariances(sources.rows_of(unit(n_base=0)))  # the whole test split
    assert known.of_piece == of_test.of_piece


def test_a_model_is_marked_by_its_predictions(sources: StageSources) -> None:
    before = sources.mark_of(unit())
    assert (
        before == sources.mark_of(unit("LIME")) == sources.mark_of(unit(seed=1))
    )  # the same predictions
    sources.predictions.loc[0, "p_F"] += 0.01
    assert sources.mark_of(unit()) != before == sources.mark_of(unit(seed=1))


def test_a_unit_depends_on_its_models_files_also_where_nothing_is_loaded(
    sources: StageSources,
) -> None:
    sources.mark_of(unit(seed=1))  # its weights are not here
    assert not [name for name in sources.stage.inputs if name.startswith("02_training/models")]
    sources.mark_of(unit())
    assert {name for name in sources.stage.inputs if name.startswith("02_training/models")} == {
        f"02_training/models/D_A/C/seed0.{kind}" for kind in ("json", "safetensors")
    }


def test_the_model_to_show_is_stage_02s(sources: StageSources, encoder: str) -> None:
    model, before, what = sources.model_to_show(unit(), encoder, "")
    assert what == "C on D_A, training seed 0"
    rows = sources.rows_of(unit())
    expected = (
        sources.predictions.query("seed == 0")
        .set_index("row_id")
        .loc[rows.row_id, ["p_F", "p_M", "p_NB"]]
    )
    np.testing.assert_allclose(model.predict(rows.sentence, 8), expected, atol=1e-5)
    assert np.abs(before.predict(rows.sentence, 8) - expected.to_numpy()).max() > 1e-4


def test_without_weights_a_head_is_trained_and_said_so(sources: StageSources, encoder: str) -> None:
    model, before, what = sources.model_to_show(unit(seed=1), encoder, "")
    assert what.startswith("C on 6 base sentences of D_A, trained here")
    rows = sources.rows_of(unit())
    assert np.abs(model.predict(rows.sentence, 8) - before.predict(rows.sentence, 8)).max() > 1e-4


def test_files_made_elsewhere_are_compared_with_the_test_rows(tmp_path, monkeypatch) -> None:
    rows = as_rows(["he sings", "she"])
    monkeypatch.setattr(units, "load_dataset", lambda stage, dataset, split: rows)
    stage = cast(Any, SimpleNamespace(external=Path))
    mine = explain(None, rows, "Pronoun list", study="geco", dataset="D_A", scheme="C", seed=0)
    file, other = (str(tmp_path / name) for name in ("mine.parquet", "other.parquet"))
    mine.to_parquet(file)
    mine.to_parquet(other)
    assert read_foreign(stage, [], []) == []
    assert len(read_foreign(stage, [file], [])[0]) == 2
    with pytest.raises(TouchstoneError, match="mine.parquet and other.parquet explains .* twice"):
        read_foreign(stage, [file, other], [])
    planned = [Unit("D_A", "C", 0, "Pronoun list", {}, 0)]
    with pytest.raises(TouchstoneError, match="this run makes Pronoun list of C, seed 0, on D_A"):
        read_foreign(stage, [file], planned)
    for changes, said in (
        ({"study": "cebab"}, "is of the study 'cebab'"),
        ({"words": [["sings", "he"], ["she"]]}, "has the word 'sings'"),
        ({"dataset": "D_B"}, "belongs to no row"),
    ):
        mine.assign(**changes).to_parquet(file)
        with pytest.raises(TouchstoneError, match=said):
            read_foreign(stage, [file], [])
