"""GECO's format: what is read is what was written; what cannot be read is named."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from lib.core.errors import TouchstoneError
from lib.core.files import sha256_of
from lib.core.stage import open_stage
from lib.studies.geco import corpus as corpora
from lib.studies.geco.corpus import (
    DATASETS,
    GECO_SHA256,
    fetch_geco,
    load_dataset,
    read_geco,
    write_geco,
)
from lib.studies.geco.faults import faults_of

ROWS = [
    {
        "sentence": ["She", "reads", "."],
        "ground_truth": [1, 1, 0],
        "gender": "female",
        "target": 0,
        "sentence_idx": 7,
    },
    {
        "sentence": ["He", "reads", "."],
        "ground_truth": [1, 1, 0],
        "gender": "male",
        "target": 1,
        "sentence_idx": 7,
    },
    {
        "sentence": ["They", "read", "."],
        "ground_truth": [1, 1, 0],
        "gender": "neutral",
        "target": 2,
        "sentence_idx": 7,
    },
]


def write(path: Path, rows: list) -> Path:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    )
    return path


def test_rows_have_ids_classes_and_no_faults(tmp_path: Path) -> None:
    rows = read_geco(write(tmp_path / "a.jsonl", ROWS))
    assert list(rows["row_id"]) == ["7-F", "7-M", "7-NB"]
    assert list(rows["target"]) == [0, 1, 2]
    assert rows["sentence"][2] == ["They", "read", "."]
    assert faults_of(rows).empty


def test_two_sets_can_be_put_one_below_the_other(tmp_path: Path) -> None:
    faulty = [row | {"sentence": [f"{row['sentence'][0]} ", *row["sentence"][1:]]} for row in ROWS]
    first = read_geco(write(tmp_path / "a.jsonl", faulty))
    second = read_geco(write(tmp_path / "b.jsonl", ROWS))
    assert len(faults_of(first)) == 3 and len(pd.concat([first, second])) == 6
    both = pd.concat([first, first], ignore_index=True)
    assert len(both) == 6 and faults_of(both).equals(faults_of(first))
    first.to_parquet(tmp_path / "a.parquet")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", ROWS)
    write_geco(read_geco(first), tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_text() == first.read_text()


def test_the_papers_own_listing_is_read_too(tmp_path: Path) -> None:
    """Appendix A.1.3 prints float masks and no gender; the files have ints and a gender."""
    row = {
        "sentence": ["He", "loves", "his", "dog"],
        "ground_truth": [1.0, 0.0, 1.0, 0.0],
        "target": 1,
        "sentence_idx": 0,
    }
    rows = read_geco(write(tmp_path / "a.jsonl", [row]))
    assert rows["ground_truth"][0] == [1, 0, 1, 0] and rows["gender"][0] == "male"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('{"sentence": ["She"', "not valid JSON"),
        ("[1, 2]", "lacks a field"),
        ({"sentence": ["She"], "target": 0, "sentence_idx": 1}, "lacks a field"),
        (ROWS[0] | {"target": 3, "sentence_idx": 8}, "unknown target 3"),
        (ROWS[0] | {"target": True, "sentence_idx": 8}, "unknown target True"),
        (ROWS[0] | {"gender": "male", "sentence_idx": 8}, "make the two agree"),
        (ROWS[0] | {"sentence": "She reads .", "sentence_idx": 8}, "not a list of words"),
        (ROWS[0] | {"ground_truth": [2, 0, 0], "sentence_idx": 8}, "other than 0 and 1"),
        (ROWS[0] | {"sentence_idx": "8"}, "not a whole number"),
        (ROWS[0] | {"sentence_idx": True}, "sentence_idx True is not a whole number"),
        (ROWS[0] | {"sentence": ["She", "\ud83d", "."], "sentence_idx": 8}, "half a character"),
        (json.dumps(ROWS[0])[:-1] + ', "target": 1}', "the key 'target' is written twice"),
        ("[" * 100_000, "nested too deeply"),
        (ROWS[0], "already has a female variant in line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: object, message: str) -> None:
    path = write(tmp_path / "bad.jsonl", [*ROWS, bad])
    with pytest.raises(TouchstoneError, match=rf"bad\.jsonl, line 4.*{message}"):
        read_geco(path)


def test_missing_and_empty_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match=r"none\.jsonl does not exist"):
        read_geco(tmp_path / "none.jsonl")
    with pytest.raises(TouchstoneError, match=r"empty\.jsonl holds no sentences"):
        read_geco(write(tmp_path / "empty.jsonl", []))


def test_an_unknown_way_to_treat_faults_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="choose one of repair, keep, drop"):
        read_geco(write(tmp_path / "a.jsonl", ROWS), on_fault="mend")  # type: ignore[arg-type]


def test_an_unknown_data_source_is_refused() -> None:
    corpora.check_choices("geco")
    with pytest.raises(
        TouchstoneError, match="data_source is 'gecko'; choose one of bundled, geco"
    ):
        corpora.check_choices("gecko")


def test_a_folder_of_a_users_own_is_a_data_source(tmp_path: Path, small_outputs: Path) -> None:
    own = tmp_path / "own"
    corpora.check_choices(str(own))
    stage = open_stage("geco", "small", "01_data_generation")
    with pytest.raises(TouchstoneError, match=r"has no non_binary_gender_all/train\.jsonl; name"):
        corpora.source_folder(str(own), stage)
    for part in DATASETS.values():
        (own / part).mkdir(parents=True)
        for split in ("train", "test"):
            write(own / part / f"{split}.jsonl", ROWS)
    assert corpora.source_folder(str(own), stage) == own and len(stage.externals) == 8
    with pytest.raises(TouchstoneError, match="gold: corrected mends the published data"):
        corpora.check_choices(str(own), gold="corrected")


def test_later_stages_load_what_stage_one_left(small_outputs: Path) -> None:
    first = open_stage("geco", "small", "01_data_generation")
    misfit = ROWS[0] | {"ground_truth": [1, 1, 0, 0], "sentence_idx": 8}
    write(first.path(f"{DATASETS['D_S']}/test.jsonl"), [*ROWS, misfit])
    first.close(
        {"data_source": "bundled"}
        | dict.fromkeys(
            (
                "scale",
                "seed",
                "n_threads",
                "on_fault",
                "gold",
                "spacy_pipeline",
                "test_share",
                "split_seed",
            )
        )
    )
    second = open_stage("geco", "small", "02_training")
    rows = load_dataset(second, "D_S", "test")
    assert list(rows["row_id"]) == ["7-F", "7-M", "7-NB"], (
        "a row whose mask does not fit cannot be scored"
    )
    assert not rows.attrs
    assert "01_data_generation/non_binary_gender_subj/test.jsonl" in second.inputs
    with pytest.raises(TouchstoneError, match="D_X"):
        load_dataset(second, "D_X", "test")
    with pytest.raises(TouchstoneError, match="validation"):
        load_dataset(second, "D_S", "validation")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """A local HTTP server: its address, the folder that it serves, the paths asked for."""
    folder, asked = tmp_path / "served", []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            asked.append(self.path)

    folder.mkdir()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", folder, asked
    http.shutdown()
    http.server_close()


@pytest.fixture
def small_release(
    server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path, list[str]]:
    """A release of two files on the local server, and an empty data folder to fetch it into."""
    address, folder, asked = server
    sums = {}
    for name in ("binary_gender_all/test.jsonl", "binary_gender_all/train.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n")
        sums[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    monkeypatch.setattr(corpora, "GECO_SHA256", sums)
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path / "data"))
    return address, folder, asked


def test_files_are_fetched_once(small_release, tmp_path: Path) -> None:
    address, _, asked = small_release
    assert fetch_geco(address) == tmp_path / "data" / "geco"
    assert (
        tmp_path / "data/geco/binary_gender_all/test.jsonl"
    ).read_text() == "binary_gender_all/test.jsonl\n"
    n = len(asked)
    assert n == 2 and fetch_geco(address) and len(asked) == n


def test_a_download_that_is_not_what_its_sha_says_is_refused(small_release, tmp_path: Path) -> None:
    address, folder, _ = small_release
    (folder / "binary_gender_all/train.jsonl").write_text("something else\n")
    with pytest.raises(TouchstoneError, match=r"train\.jsonl.* is not what its SHA-256 says"):
        fetch_geco(address)
    assert not (tmp_path / "data/geco/binary_gender_all/train.jsonl").exists()


def test_a_download_that_fails_is_named(small_release) -> None:
    address, folder, _ = small_release
    (folder / "binary_gender_all/test.jsonl").unlink()
    with pytest.raises(TouchstoneError, match=r"could not fetch .*test\.jsonl.*404"):
        fetch_geco(address)


def test_a_changed_file_in_the_data_folder_is_named_and_left_alone(
    small_release, tmp_path: Path
) -> None:
    address, _, _ = small_release
    fetch_geco(address)
    changed = tmp_path / "data/geco/binary_gender_all/test.jsonl"
    changed.write_text("edited\n")
    with pytest.raises(TouchstoneError, match=r"test\.jsonl is not the published file.*make data"):
        fetch_geco(address)
    assert changed.read_text() == "edited\n"


def test_the_known_sums_are_those_of_the_published_files(geco_data: Path) -> None:
    assert {name: sha256_of(geco_data / name) for name in GECO_SHA256} == GECO_SHA256


def test_the_published_sizes(geco_data: Path) -> None:
    for name, (train, test) in {
        "D_A": (3864, 966),
        "D_S": (3864, 966),
        "D_A_binary": (2576, 644),
        "D_S_binary": (2576, 644),
    }.items():
        rows = {
            split: read_geco(geco_data / DATASETS[name] / f"{split}.jsonl")
            for split in ("train", "test")
        }
        assert (len(rows["train"]), len(rows["test"])) == (train, test)
        assert not set(rows["train"]["sentence_idx"]) & set(rows["test"]["sentence_idx"])
        assert rows["test"]["target"].value_counts().nunique() == 1
