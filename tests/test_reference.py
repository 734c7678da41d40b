"""The tables that the notebooks just wrote are those in outputs/reference, as far as the arithmetic
lets them (tools/compare.py).

The notebooks ran before this file, in the same session into a temporary output root, or earlier
into `--outputs FOLDER`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from compare import EXACT, FACTOR, NOTHING, ROWS, Move, compare, key_columns, read_moves, tables

from lib.core.notebooks import find_studies
from lib.core.paths import ROOT, outputs_root

REFERENCE = ROOT / "outputs" / "reference"
MOVES = read_moves(ROOT / "tests" / "arithmetic.csv")
WRITTEN = find_studies()


def of_study(root: Path, study: str) -> Path:
    return root / study if study == "start_here" else root / study / "small"


def run_folder(study: str, request: pytest.FixtureRequest) -> Path:
    """Where this session's notebooks wrote; it must exist if they were part of the session."""
    folder = of_study(outputs_root(), study)
    ran = any(item.path.suffix == ".ipynb" for item in request.session.items)
    if not folder.is_dir() and not ran:
        pytest.skip("the notebooks are not part of this session: run the whole suite (make test)")
    return folder


@pytest.mark.parametrize("study", ["start_here", *WRITTEN])
def test_tables_of_this_run_are_the_reference(study: str, request: pytest.FixtureRequest) -> None:
    ours, reference = tables(run_folder(study, request)), tables(of_study(REFERENCE, study))
    assert reference and set(ours) == set(reference), "run `make execute` and `make reference`"
    wrong = []
    for name, path in reference.items():
        relative = of_study(Path(), study) / name
        wrong += compare(relative.as_posix(), pd.read_csv(ours[name]), pd.read_csv(path), MOVES)
    assert not wrong, "\n".join(wrong)


def columns_of_small() -> set[tuple[str, str]]:
    return {
        (path.relative_to(REFERENCE).as_posix(), column)
        for study in ("start_here", *WRITTEN)
        for path in tables(of_study(REFERENCE, study)).values()
        for column in [ROWS, NOTHING, *pd.read_csv(path, nrows=1)]
    }


def test_every_measured_move_belongs_to_a_column() -> None:
    assert set(MOVES) <= columns_of_small()


def test_of_every_table_it_was_measured_whether_it_moves() -> None:
    unmeasured = {name for name, _ in columns_of_small()} - {name for name, _ in MOVES}
    assert not unmeasured, (
        "run the suite on another kind of processor, or under TOUCHSTONE_ARITHMETIC=native, and "
        f"`python tools/spread.py --add FOLDER`: {sorted(unmeasured)}"
    )


def test_rows_are_matched_by_what_names_them_and_not_by_their_place() -> None:
    reference = pd.DataFrame({"word": ["she", "he"], "r": [0.5, 0.4]})
    assert key_columns(reference) == ["word"]
    assert not compare("x.csv", reference[::-1], reference, {})
    assert compare("x.csv", reference[:1], reference, {}) == ["x.csv: row ('he', 0) is gone"]
    counted = pd.DataFrame({"scheme": ["C", "C"], "seed": [0, 1], "n": [9, 8], "MA": [0.1, 0.2]})
    assert key_columns(counted) == ["seed"], "a column that tells no rows apart names none"
    repeated = pd.DataFrame({"word": ["to", "to"], "score": [0.1, 0.2]})
    assert compare("x.csv", repeated[::-1], repeated, {}), "equal names keep their order"
    unnamed = repeated.assign(word=["to", "be"], mark=[None, "removed"]).loc[[0, 0, 1]]
    unnamed = unnamed.reset_index(drop=True)
    assert not compare("x.csv", unnamed, unnamed, {}), "an empty name is a name, too"


def test_a_number_may_move_as_far_as_the_arithmetic_moved_it_and_no_further() -> None:
    reference = pd.DataFrame({"scheme": ["C", "CE"], "MA": [0.5, 0.9], "n": [10, 12]})
    moves = {("x.csv", "MA"): Move(0.01, 0.4, False)}
    assert not compare("x.csv", reference.assign(MA=[0.5 + FACTOR * 0.01, 0.9]), reference, moves)
    assert compare("x.csv", reference.assign(MA=[0.5 + FACTOR * 0.011, 0.9]), reference, moves)
    assert compare("x.csv", reference.assign(n=[10, 13]), reference, moves), "n never moved"
    assert compare("x.csv", reference.assign(MA=[0.5, np.nan]), reference, moves)
    assert compare("x.csv", reference.assign(MA=[0.5, 0.9 + 3 * EXACT]), reference, {})


def test_what_moves_as_much_as_it_holds_is_compared_by_form_and_range() -> None:
    reference = pd.DataFrame({"scheme": ["C", "CE"], "p": [0.5, 0.9]})
    moves = {("x.csv", "p"): Move(0.3, 0.4, False)}
    assert not compare("x.csv", reference.assign(p=[0.01, 0.2]), reference, moves)
    assert compare("x.csv", reference.assign(p=[1.2, 0.2]), reference, moves)
    assert compare("x.csv", reference.assign(p=["high", "low"]), reference, moves)


def test_the_reference_is_small_and_of_the_promised_kinds() -> None:
    files = [path for path in REFERENCE.rglob("*") if path.is_file()]
    # numbers alone, in the place of megabytes of text
    handed_over = [path for path in files if path.parent.name == "handover"]
    assert {path.suffix for path in handed_over} <= {".npz", ".json"}
    packed = {path for path in files if path.suffixes[-2:-1] == [".xz"]}  # see lib/core/handover.py
    assert {path.relative_to(REFERENCE).parts[1:3] for path in packed} == {("small", "handover")}
    published = {path.parents[1].name for path in REFERENCE.glob("*/cpu/04_metrics")}
    assert published >= {"geco", "lm_saliency", "cebab", "implicit_bias"}
    pages = {REFERENCE / study / "cpu" / "05_figures.ipynb" for study in published}
    assert pages <= set(files)
    cards = set(REFERENCE.glob("assay/cards/*/card.*"))  # a page and its numbers
    assert {path.suffix for path in cards} == {".json", ".html"}
    units = {path for path in files if "units" in path.parts}  # compressed tables of numbers
    assert {path.suffix for path in units} <= {".csv", ".parquet"}
    assert {
        path.suffix for path in set(files) - set(handed_over) - packed - pages - cards - units
    } <= {
        ".csv",
        ".json",
        ".png",
        ".md",
    }
    for path in (path for path in handed_over if path.suffix == ".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            assert all(array.dtype.kind in "iufbU" for array in arrays.values())
    too_big = [path.name for path in files if path.stat().st_size > 500_000]
    assert not too_big and sum(path.stat().st_size for path in files) < 60_000_000
