"""Finished units are found again, by their key and by nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
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
    first, second, record, header = path.read_text().splitlines()[:4]
    assert first == f"# key={key}" and second.startswith("# sha256=") and record.startswith("# {")
    assert header.startswith("row_id,")


def test_ids_are_kept_once_and_anew_when_they_change(small_outputs: Path) -> None:
    store = Units("geco", "small", "03_attribution", reuse=False)
    ids = pd.DataFrame({"base_id": [7, 9], "text": ["a", "b"]}, index=[4, 2])
    store.keep_ids("rows", ids)
    path = next(small_outputs.rglob("rows.parquet"))
    first = path.stat().st_mtime_ns
    assert pd.read_parquet(path).to_numpy().tolist() == [[7, "a"], [9, "b"]]
    store.keep_ids("rows", ids)
    assert path.stat().st_mtime_ns == first
    store.keep_ids("rows", ids[::-1])
    assert pd.read_parquet(path)["base_id"].tolist() == [9, 7]


def test_a_unit_with_another_key_is_not_reused(small_outputs: Path) -> None:
    store = Units("toy", "small", "03_attribution")
    store.save("LIME", store.key(samples=100), FRAME)
    assert store.load("LIME", store.key(samples=1000)) is None
    published = Units("toy", "small", "03_attribution", reuse=True)
    assert store.key(samples=100) == published.key(samples=100), "one question, one key"
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


def test_what_a_killed_run_left_of_a_unit_goes_when_it_is_made(published: Path) -> None:
    (published / "D_A").mkdir(parents=True)
    parts = [published / "D_A" / f".{name}.csv.17.part" for name in ("LIME", "LIMES")]
    for part in parts:
        part.write_text("# key=")
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    store.save("D_A/LIME", store.key(method="LIME"), FRAME)
    assert [part.exists() for part in parts] == [False, True], "another unit may be on its way"


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


def test_a_published_unit_that_names_no_weights_vouches_for_none(
    published: Path, small_outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, store = tmp_path / "LSTM.safetensors", Units("toy", "cpu", "03_attribution", True)
    weights.write_bytes(b"weights")
    published.mkdir(parents=True)
    (published / "LSTM.csv").write_text("# key=k\nepoch\n1\n")
    assert store.load("LSTM", "k") is not None
    assert store.load("LSTM", "k", [weights]) is None
    assert "is not known to be what unit LSTM was made with" in capsys.readouterr().out
    store.save("LSTM", "k", FRAME, [weights])
    assert store.load("LSTM", "k", [weights]) is not None


def test_a_unit_with_other_digits_is_another(published: Path, small_outputs: Path) -> None:
    Units("toy", "cpu", "03_attribution").save("a", "k", FRAME)
    assert Units("toy", "cpu", "03_attribution", reuse=True).load("a", "k") is None
    assert Units("toy", "cpu", "03_attribution", digits=4).load("a", "k") is None
    assert Units("toy", "cpu", "03_attribution").load("a", "k") is not None


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


def test_what_is_published_has_nine_digits_and_a_run_of_ones_own_all(
    published: Path, small_outputs: Path
) -> None:
    frame = pd.DataFrame({"p": [1 / 3], "scores": [[1 / 3, 7]]})
    back = Units("toy", "small", "s").finished("one", "key", lambda: frame)
    assert back["p"].tolist() == [1 / 3] and back["scores"].tolist() == [[1 / 3, 7]]
    assert isinstance(back["scores"][0][1], int)
    back = Units("toy", "cpu", "03_attribution", reuse=True).finished("one", "key", lambda: frame)
    assert back["p"].tolist() == [0.333333333] and back["scores"].tolist() == [[0.333333333, 7]]


def test_a_unit_of_the_largest_size_may_be_published(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, frame = Units("toy", "cpu", "03_attribution", reuse=True), pd.DataFrame({"p": [1]})
    assert units.LIMIT == 500_000
    store.save("LIME", "k", frame)
    content = (published / "LIME.csv").read_bytes()
    monkeypatch.setattr(units, "LIMIT", len(content))
    store.save("LIME", "k", frame)
    assert content.startswith(b"# key=k\n# sha256=") and content.endswith(b"\np\n1\n")
    monkeypatch.setattr(units, "LIMIT", len(content) - 1)
    with pytest.raises(TouchstoneError, match="may be published"):
        store.save("LIME", "k", frame)


def test_a_run_without_reuse_publishes_nothing(published: Path, small_outputs: Path) -> None:
    Units("toy", "cpu", "03_attribution").save("LIME", "k", FRAME)
    assert (small_outputs / "toy/cpu/03_attribution/units/LIME.csv").is_file()
    assert not published.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: content.index(b"2-NB")],  # cut between two rows
        lambda content: content.replace(b",0.1\n", b",0.7\n"),
        lambda content: content.partition(b"\n")[0] + b"\n",  # the key alone
        lambda content: content.partition(b"\n")[0],
        lambda content: content.replace(b"1-F", b"1-\xff"),
        lambda content: content.replace(b"# sha256=", b"# sha265="),
        lambda content: content.replace(b"# sha256=", b"# sha256=0"),
        lambda content: (
            content.partition(b"\n# ")[0] + b"\n" + content[content.index(b"row_id,") :]
        ),
    ],
    ids="cut digit empty key byte mark checksum none".split(),
)
def test_a_damaged_unit_is_named_and_made_anew(
    small_outputs: Path, capsys: pytest.CaptureFixture[str], damage
) -> None:
    store = Units("toy", "small", "03_attribution")
    store.save("LIME", "k", FRAME)
    path = small_outputs / "toy" / "small" / "03_attribution" / "units" / "LIME.csv"
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole and capsys.readouterr().out == ""
    assert store.load("LIME", "k") is None and store.load("LIME", "k") is None
    said = capsys.readouterr().out
    assert said.startswith(f"{path} is damaged (") and said.endswith("; it is made anew\n")
    assert said.count("\n") == 1, "once"
    store.finished("LIME", "k", lambda: FRAME)
    assert path.read_bytes() == whole


def test_a_published_unit_of_before_there_were_checksums_is_read(
    published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    published.mkdir(parents=True)
    (published / "LIME.csv").write_text('# key=k\nrow_id,scores\n1-F,"[999,0]"\n')
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "elsewhere"))
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    found = store.load("LIME", "k")
    assert found is not None and found["scores"].tolist() == [[999, 0]]
    (published / "LIME.csv").write_text("# key=k\n")
    assert store.load("LIME", "k") is None, "an empty one is damaged"


def test_what_is_saved_and_what_is_loaded_are_one_to_the_last_bit(small_outputs: Path) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "text_id": ["007", "NA", ""],
            "p": random.normal(size=3),
            "p32": random.normal(size=3).astype(np.float32),
            "n": [1, 2, 3],
            "holds": [True, False, True],
            "scores": [random.normal(size=2).tolist() for _ in range(3)],
        }
    )
    store = Units("toy", "small", "03_attribution")
    pd.testing.assert_frame_equal(store.save("a", "k", frame), frame, check_exact=True)
    loaded = store.load("a", "k")
    assert loaded is not None
    pd.testing.assert_frame_equal(loaded, frame, check_exact=True)


@pytest.mark.parametrize("reuse", [False, True])
def test_a_run_that_makes_a_unit_goes_on_with_what_a_resumed_one_reads(
    published: Path, reuse: bool
) -> None:
    store = Units("toy", "cpu", "03_attribution", reuse, digits=4 if reuse else None)
    made = store.save("a", "k", pd.DataFrame({"p": np.array([1 / 3, 2 / 3], dtype=np.float32)}))
    pd.testing.assert_frame_equal(made, store.load("a", "k"), check_exact=True)
    assert made["p"].dtype == np.float32 and (made["p"][0] == np.float32(1 / 3)) == (not reuse)


def test_a_unit_is_found_only_with_the_files_that_belong_to_it(
    small_outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, store = tmp_path / "LSTM.safetensors", Units("toy", "small", "02_training")
    weights.write_bytes(b"weights")
    store.save("LSTM", "k", FRAME, [weights])
    assert store.load("LSTM", "k", [weights]) is not None
    weights.write_bytes(b"\0\0\0\0\0\0\0")
    assert store.load("LSTM", "k", [weights]) is None
    assert capsys.readouterr().out == (
        f"{weights} is not known to be what unit LSTM was made with; it is made anew\n"
    )
    weights.unlink()
    assert store.load("LSTM", "k", [weights]) is None and capsys.readouterr().out == ""
    assert store.load("LSTM", "k") is not None, "its numbers need no weights"


@pytest.mark.parametrize(
    ("kind", "bytes_a_number"), [("counts", 2.0), ("few", 1.0), ("rounded", 2.1)]
)
def test_an_exact_unit_is_small(published: Path, kind: str, bytes_a_number: float) -> None:
    random, n = np.random.default_rng(0), 4000
    numbers = {
        "counts": random.integers(0, 5000, n),
        "few": random.choice(random.normal(size=8), n),  # eight numbers, which come back
        "rounded": random.normal(size=n).astype(np.float32).round(3),
    }[kind]
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    store.save("a", "k", pd.DataFrame({"number": numbers}), exact=True)
    assert (published / "a.parquet").stat().st_size < bytes_a_number * n


def test_an_exact_unit_comes_back_to_the_last_bit(published: Path) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "row_id": ["007", "NA", ""],
            "delta": [1 / 3, None, -0.0],
            "steps": np.array([27, 9, 81], dtype=np.float32),
            "n": [1, 2, 3],
            "scores": [random.normal(size=n).astype(np.float32) for n in (4, 0, 2)],
            "worths": [random.normal(size=n) for n in (1, 3, 2)],
        }
    )
    store = Units("toy", "cpu", "03_attribution", reuse=True, digits=4)
    saved = store.save("a", "k", frame, exact=True)
    assert saved["scores"].tolist() == [row.tolist() for row in frame["scores"]]
    assert saved["worths"].tolist() == [row.tolist() for row in frame["worths"]]
    rest = [name for name in frame if name not in ("scores", "worths")]
    pd.testing.assert_frame_equal(saved[rest], frame[rest], check_exact=True)
    loaded = store.load("a", "k")
    assert loaded is not None and store.load("a", "other") is None
    pd.testing.assert_frame_equal(loaded, saved, check_exact=True)
    first = (published / "a.parquet").read_bytes()
    store.save("a", "k", frame, exact=True)
    assert (published / "a.parquet").read_bytes() == first, "the same bytes again"
    assert pd.read_parquet(published / "a.parquet")["row_id"].tolist() == ["007", "NA", ""]


def test_numbers_that_come_back_take_less_room_and_keep_every_bit(published: Path) -> None:
    random = np.random.default_rng(0)
    few = random.normal(size=300)
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    sizes = {}
    for name, numbers in (("few", random.choice(few, 6000)), ("all", random.normal(size=6000))):
        frame = pd.DataFrame({"p": numbers, "row": [numbers[:2]] * 6000})
        saved = store.save(name, "k", frame, exact=True)
        pd.testing.assert_series_equal(saved["p"], frame["p"], check_exact=True)
        sizes[name] = (published / f"{name}.parquet").stat().st_size
    assert sizes["all"] > 6000 * 7 > 3 * sizes["few"]


def test_rounded_numbers_are_kept_as_decimals_and_come_back(published: Path) -> None:
    random = np.random.default_rng(0)
    rounded = {d: random.uniform(-1, 1, 5000).round(d).astype(np.float32) for d in (3, 4, 5)}
    frame = pd.DataFrame(
        {
            "three": np.append(rounded[3], np.float32([np.nan, -0.0])),
            "four": np.append(rounded[4], np.float32([0, 99999.5])),
            "five": np.append(rounded[5], np.float32([0, 1])),
            "large": np.append(rounded[3], np.float32([0, 1e6])),
            "endless": np.append(rounded[3], np.float32([0, np.inf])),
            "wide": np.append(rounded[3], np.float32([0, 1])).astype(float),
        }
    )
    saved = Units("toy", "cpu", "03_attribution", reuse=True).save("a", "k", frame, exact=True)
    pd.testing.assert_frame_equal(saved, frame, check_exact=True)
    columns = map(pq.ParquetFile(published / "a.parquet").schema.column, range(6))
    kinds = {c.name: (c.physical_type, c.scale) for c in columns if c.scale >= 0}
    assert kinds == {"three": ("INT32", 3), "four": ("INT32", 4)}


def test_an_exact_unit_takes_the_place_of_a_table_of_before(published: Path) -> None:
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    for exact, form in ((False, "csv"), (True, "parquet"), (False, "csv")):
        store.save("a", "k", pd.DataFrame({"p": [1 / 3]}), exact=exact)
        assert [path.name for path in published.iterdir()] == [f"a.{form}"]
    with pytest.raises(TouchstoneError, match="column 'words'.*ids and numbers only"):
        store.save("b", "k", FRAME.assign(words="she"), exact=True)
    assert not (published / "b.parquet").exists()


@pytest.mark.parametrize("place", [4, 0.3, 0.6, 0.9, -3])
@pytest.mark.parametrize("cut", [False, True])
def test_a_damaged_exact_unit_is_named_and_made_anew(
    small_outputs: Path, capsys: pytest.CaptureFixture[str], place: float, cut: bool
) -> None:
    store = Units("toy", "small", "03_attribution")
    store.save("LIME", "k", FRAME, exact=True)
    path = small_outputs / "toy" / "small" / "03_attribution" / "units" / "LIME.parquet"
    whole = path.read_bytes()
    at = place if isinstance(place, int) else int(place * len(whole))
    path.write_bytes(whole[:at] if cut else whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert store.load("LIME", "k") is None
    said = capsys.readouterr().out
    assert said.startswith(f"{path} is damaged (") and said.endswith("; it is made anew\n")
    store.save("LIME", "k", FRAME, exact=True)
    assert path.read_bytes() == whole and store.load("LIME", "k") is not None


def test_an_exact_unit_knows_the_files_that_belong_to_it(
    small_outputs: Path, tmp_path: Path
) -> None:
    weights, store = tmp_path / "LSTM.safetensors", Units("toy", "small", "02_training")
    weights.write_bytes(b"weights")
    store.save("LSTM", "k", FRAME, [weights], exact=True)
    assert store.load("LSTM", "k", [weights]) is not None
    weights.write_bytes(b"others")
    assert store.load("LSTM", "k", [weights]) is None


@pytest.mark.parametrize(
    "cells", [["x", None], [[1, 2], None], [None, [0.5]], ["NA", ""], [None, None]]
)
def test_cells_that_are_missing_are_missing_again(small_outputs: Path, cells: list) -> None:
    store = Units("toy", "small", "03_attribution")
    back = store.save("a", "k", pd.DataFrame({"id": [1, 2], "cell": cells}))
    for cell, was in zip(back["cell"], cells, strict=True):
        assert pd.isna(cell) if was is None else cell == was


@pytest.mark.parametrize("exact", [False, True])
def test_what_may_not_be_published_stays_where_the_run_is(
    published: Path, small_outputs: Path, exact: bool
) -> None:
    """Its numbers were made; an index is none of them."""
    store = Units("toy", "cpu", "03_attribution", reuse=True)
    frame = pd.DataFrame({"words": ["she"], "p": [0.5]}, index=["row"])
    with pytest.raises(TouchstoneError, match="column 'words'"):
        store.save("LIME", "k", frame, exact=exact)
    assert not published.exists()
    own = store.load("LIME", "k")
    assert own is not None and list(own) == ["words", "p"] and own.index.tolist() == [0]
