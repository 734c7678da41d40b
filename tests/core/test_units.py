"""Finished units are found again, by their key and by nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.core import units
from lib.core.errors import TouchstoneError
from lib.core.units import Units

SCORES = np.array([1 / 3, -2e-9, 12345.678], dtype=np.float32)
FRAME = pd.DataFrame(
    {
        "row_id": ["1-F", "2-NB"],
        "target": [0, 2],
        "scores": [SCORES, SCORES[:1]],
        "delta": [0.1, None],
    }
)


@pytest.fixture
def published(small_outputs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for outputs/reference, which no test may write."""
    monkeypatch.setattr(
        units, "reference_dir", lambda study, scale: tmp_path / "reference" / study / scale
    )
    return tmp_path / "reference" / "toy" / "cpu" / "units" / "03_attribution"


def test_a_unit_comes_back_as_it_was(small_outputs: Path) -> None:
    store = Units("toy", "small", "03_attribution")
    key = store.key(method="LIME", samples=100)
    assert store.load("LIME", key) is None
    store.save("LIME", key, FRAME)
    back = store.load("LIME", key)
    assert back is not None and back[["row_id", "target"]].equals(FRAME[["row_id", "target"]])
    assert np.array_equal(np.array(back.scores[0], dtype=np.float32), SCORES), (
        "to the last bit of a float32"
    )
    assert back.delta[0] == 0.1 and np.isnan(back.delta[1])
    path = small_outputs / "toy" / "small" / "03_attribution" / "units" / "LIME.csv"
    assert path.read_text().startswith(f"# key={key}\nrow_id,")


def test_a_unit_with_another_key_is_not_reused(small_outputs: Path) -> None:
    store = Units("toy", "small", "03_attribution")
    store.save("LIME", store.key(samples=100), FRAME)
    assert store.load("LIME", store.key(samples=1000)) is None
    published = Units("toy", "small", "03_attribution", reuse=True)
    assert store.key(samples=100) != published.key(samples=100), "without reuse the code counts"
    assert store.key(a=1, b=2) == store.key(b=2, a=1)


def test_units_are_published_and_found_in_a_fresh_clone(
    published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    key = store.key(method="LIME")
    store.save("D_A/LIME", key, FRAME)
    assert (published / "D_A" / "LIME.csv").is_file()
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "elsewhere"))
    assert store.load("D_A/LIME", key) is not None
    assert store.load("D_A/LIME", "0" * 16) is None
    assert Units("toy", "cpu", "03_attribution").load("D_A/LIME", key) is None


def test_nothing_is_published_that_should_not_be(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    with pytest.raises(TouchstoneError, match="column 'words'.*ids and numbers only"):
        store.save("LIME", "k", FRAME.assign(words="she"))
    monkeypatch.setattr(units, "LIMIT", 50)
    with pytest.raises(TouchstoneError, match="50 may be published; make it smaller"):
        store.save("LIME", "k", FRAME)
    assert not published.exists()


def test_reused_units_that_are_not_published_stay_where_the_run_is(
    small_outputs, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr("lib.core.units.reference_dir", lambda study, scale: tmp_path / "reference")
    units = Units("lm_saliency", "cpu", "03_attribution", reuse=True, publish=False)
    units.save("a", units.key(x=1), pd.DataFrame({"line": [1]}))
    assert units.load("a", units.key(x=1)) is not None and not (tmp_path / "reference").exists()
    assert units.key(x=1) == Units("lm_saliency", "cpu", "03_attribution", reuse=True).key(x=1)


def test_digits_are_kept_as_asked_and_a_finished_unit_is_not_made_again(
    small_outputs: Path,
) -> None:
    units = Units("geco", "small", "04_metrics", digits=4)
    frame = pd.DataFrame({"row_id": ["1-F"], "p": [0.1234567], "scores": [[1.23456, 2.0]]})
    first = units.finished("one", "key", lambda: frame)
    assert first["p"].tolist() == [0.1235] and first["scores"].tolist() == [[1.235, 2.0]]
    again = units.finished("one", "key", lambda: pytest.fail("made again"))
    pd.testing.assert_frame_equal(first, again)
    assert units.finished("one", "other key", lambda: frame.assign(p=1.0))["p"].tolist() == [1.0]


def test_the_key_by_hand(small_outputs: Path) -> None:
    """Published units are found by it: sixteen digits of the SHA-256 of the sorted settings."""
    key = Units("toy", "cpu", "03_attribution", reuse=True).key(b="x", a=1)
    assert key == hashlib.sha256(b'[{"a": 1, "b": "x"}, ""]').hexdigest()[:16] and len(key) == 16


def test_nine_digits_are_kept_unless_one_says_otherwise(small_outputs: Path) -> None:
    frame = pd.DataFrame({"p": [1 / 3], "scores": [[1 / 3, 7]]})
    back = Units("toy", "small", "s").finished("one", "key", lambda: frame)
    assert back["p"].tolist() == [0.333333333] and back["scores"].tolist() == [[0.333333333, 7]]
    assert isinstance(back["scores"][0][1], int)


def test_a_unit_of_the_largest_size_may_be_published(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    assert units.LIMIT == 500_000
    monkeypatch.setattr(units, "LIMIT", len("# key=k\np\n1\n"))
    store.save("LIME", "k", pd.DataFrame({"p": [1]}))
    assert (published / "LIME.csv").read_text() == "# key=k\np\n1\n"


def test_a_run_without_reuse_publishes_nothing(published: Path, small_outputs: Path) -> None:
    Units("toy", "cpu", "03_attribution").save("LIME", "k", FRAME)
    assert (small_outputs / "toy/cpu/03_attribution/units/LIME.csv").is_file()
    assert not published.exists()
