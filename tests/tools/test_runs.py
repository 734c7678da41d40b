"""Every run is told: the last one of runs.csv is the one whose tables are committed."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import runs

from lib.core.errors import TouchstoneError
from lib.core.paths import material, reference_dir
from lib.stats.claims import VERDICTS

STUDIES = runs.told()


def claims_of(study: str) -> Path:
    return reference_dir(study, "cpu") / "04_metrics" / "claims.csv"


@pytest.mark.parametrize("study", STUDIES)
def test_the_last_run_is_the_one_that_is_committed(study: str) -> None:
    told, verdicts = runs.read_runs(study)
    last = verdicts[verdicts["run"] == told["run"].max()].drop(columns="run")
    committed = runs.registered_verdicts(
        pd.read_csv(claims_of(study)), material(study) / "claims.yaml"
    )
    pd.testing.assert_frame_equal(
        last.reset_index(drop=True), committed.reset_index(drop=True), check_dtype=False
    )


@pytest.mark.parametrize("study", STUDIES)
def test_the_counts_of_a_run_are_those_of_its_verdicts(study: str) -> None:
    told, verdicts = runs.read_runs(study)
    assert told["run"].tolist() == list(range(1, len(told) + 1))
    assert told["date"].is_monotonic_increasing
    counts = pd.crosstab(verdicts["run"], verdicts["verdict"])
    counts = counts.reindex(columns=list(VERDICTS), fill_value=0)
    assert counts.to_numpy().tolist() == told[list(VERDICTS)].to_numpy().tolist()


def test_a_run_is_added_and_none_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = "implicit_bias"
    for name in (runs.RUNS, runs.VERDICTS_OF_RUNS, "claims.yaml"):
        shutil.copy(material(study) / name, tmp_path)
    monkeypatch.setattr(runs, "material", lambda _: tmp_path)
    before = [(tmp_path / name).read_bytes() for name in (runs.RUNS, runs.VERDICTS_OF_RUNS)]
    with pytest.raises(TouchstoneError, match="what changed"):
        runs.append(study, claims_of(study), " ")
    old, _ = runs.read_runs(study)
    runs.append(study, claims_of(study), 'other seeds, "nothing else"')
    after = [(tmp_path / name).read_bytes() for name in (runs.RUNS, runs.VERDICTS_OF_RUNS)]
    assert all(b.startswith(a) and b != a for a, b in zip(before, after, strict=True))
    told, verdicts = runs.read_runs(study)
    assert told["what"].iloc[-1] == 'other seeds, "nothing else"'
    assert told.iloc[-1][list(VERDICTS)].tolist() == old.iloc[-1][list(VERDICTS)].tolist()
    assert runs.moves(verdicts).loc["augmentation_reduces_bias"].tolist()[:5] == [
        "holds",
        "undecided",
        "undecided",
        "holds",
        "holds",
    ]
