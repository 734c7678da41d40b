"""The tables that the notebooks just wrote are those in outputs/reference, within the tolerances of tolerances.yaml.

The notebooks ran before this file, in the same session, into a temporary output root (see the root conftest.py).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from lib.core.notebooks import find_studies
from lib.core.paths import ROOT, outputs_root

REFERENCE = ROOT / "outputs" / "reference"
TOLERANCES = yaml.safe_load((ROOT / "tests" / "tolerances.yaml").read_text())
WRITTEN = find_studies()


def run_folder(study: str, request: pytest.FixtureRequest) -> Path:
    """Where this session's notebooks wrote; it must exist if they were part of the session."""
    folder = outputs_root() / study if study == "start_here" else outputs_root() / study / "small"
    ran = any(item.path.suffix == ".ipynb" for item in request.session.items)
    if not folder.is_dir() and not ran:
        pytest.skip("the notebooks are not part of this session: run the whole suite (make test)")
    return folder


def tables(folder: Path) -> dict[str, Path]:
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.csv"))}
    return {name: path for name, path in found.items() if "units" not in Path(name).parts}


def tolerance(table: str, column: str) -> float:
    """Absolute tolerance of a column: 1e-6 unless the table holds what was trained (see tolerances.yaml)."""
    if table not in TOLERANCES["tables"]:
        return 1e-6
    by_column = TOLERANCES["columns"] | TOLERANCES["tables"][table]
    return float(by_column.get(column, TOLERANCES["default"]))


def no_model(table: pd.DataFrame, column: str) -> np.ndarray:
    """Rows that no trained model has a say in: floors, but for corrections over the whole table and rows chosen by models."""
    if "scheme" not in table or column in TOLERANCES["of_the_whole_table"]:
        return np.zeros(len(table), dtype=bool)
    chosen = table["rows"] == "correct_by_all" if "rows" in table else False
    return ((table["scheme"] == "-") & ~np.asarray(chosen)).to_numpy()


def differences(name: str, ours: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """What differs between two tables beyond the tolerances, a line each."""
    if list(ours.columns) != list(reference.columns) or len(ours) != len(reference):
        return [
            f"{name}: {ours.shape} {list(ours.columns)} against {reference.shape} {list(reference.columns)}"
        ]
    found = []
    for column in reference:
        allowed = tolerance(name, column)
        if np.isinf(allowed):
            continue  # text or numbers that restate what a trained model says
        if pd.api.types.is_numeric_dtype(reference[column]) and pd.api.types.is_numeric_dtype(
            ours[column]
        ):
            limit = np.where(no_model(reference, column), 1e-6, allowed)
            left, right = ours[column].astype(float), reference[column].astype(float)
            far = ~(
                ((left - right).abs() <= limit + 1e-6 * right.abs()) | (left.isna() & right.isna())
            )
        else:
            far = ours[column].fillna("").astype(str) != reference[column].fillna("").astype(str)
        for row in np.flatnonzero(far)[:5]:
            found.append(
                f"{name}, row {row}, {column}: {ours[column][row]!r} against {reference[column][row]!r} (+-{allowed})"
            )
    return found


@pytest.mark.parametrize("study", ["start_here", *WRITTEN])
def test_tables_of_this_run_are_the_reference(study: str, request: pytest.FixtureRequest) -> None:
    ours = tables(run_folder(study, request))
    reference = tables(REFERENCE / study if study == "start_here" else REFERENCE / study / "small")
    assert reference and set(ours) == set(reference), "run `make execute` and `make reference`"
    wrong = [
        line
        for name in reference
        for line in differences(
            f"{study}/{name}", pd.read_csv(ours[name]), pd.read_csv(reference[name])
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_every_tolerance_belongs_to_a_table() -> None:
    known = {f"start_here/{name}" for name in tables(REFERENCE / "start_here")}
    known |= {
        f"{study}/{name}" for study in WRITTEN for name in tables(REFERENCE / study / "small")
    }
    assert set(TOLERANCES["tables"]) <= known


def test_the_comparison_sees_a_changed_number() -> None:
    reference = pd.DataFrame({"word": ["she"], "r": [0.5]})
    assert not differences("x.csv", reference, reference)
    assert differences("x.csv", reference.assign(r=0.51), reference)
    assert differences("x.csv", reference.assign(word="he"), reference)
    trained = pd.DataFrame(
        {"scheme": ["-", "C"], "MA": [0.5, 0.5]}
    )  # a floor is exact where a trained model may move
    assert not differences("geco/05_figures/figure_2b.csv", trained.assign(MA=[0.5, 0.51]), trained)
    assert differences("geco/05_figures/figure_2b.csv", trained.assign(MA=[0.51, 0.5]), trained)


def test_the_reference_is_small_and_of_the_promised_kinds() -> None:
    files = [path for path in REFERENCE.rglob("*") if path.is_file()]
    handed_over = [
        path for path in files if path.parent.name == "handover"
    ]  # numbers alone, in the place of megabytes of text
    assert {path.suffix for path in handed_over} <= {".npz"}
    assert {path.suffix for path in set(files) - set(handed_over)} <= {
        ".csv",
        ".json",
        ".png",
        ".md",
    }
    for path in handed_over:
        with np.load(path, allow_pickle=False) as arrays:
            assert all(array.dtype.kind in "iufbU" for array in arrays.values())
    too_big = [path.name for path in files if path.stat().st_size > 500_000]
    assert not too_big and sum(path.stat().st_size for path in files) < 25_000_000
