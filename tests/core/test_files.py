"""A file is there whole or not at all, also when its writer is killed."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib.core.errors import TouchstoneError
from lib.core.files import (
    atomic_path,
    csv_rows,
    load_parquet,
    parse_json,
    read_arrays,
    read_json,
    read_table,
    read_text,
    read_utf8,
    read_yaml,
    save_csv,
    save_json,
    save_parquet,
    sha256_of,
    sha256_of_tree,
    strict_json,
    write_atomic,
)
from lib.core.paths import ROOT

# Writes half of a new file, says so, and waits to be killed.
HALF = """
import sys, time
from lib.core.files import atomic_path
with atomic_path(sys.argv[1]) as part:
    file = part.open("w")
    file.write("half of the new"); file.flush()
    print("half", flush=True)
    time.sleep(60)
"""


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def break_off(path: Path) -> None:
        with atomic_path(path) as part:
            part.write_text("half of the new")
            raise RuntimeError

    write_atomic(tmp_path / "a.txt", "old")
    with pytest.raises(RuntimeError):
        break_off(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_kill_leaves_the_old_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.txt", "old")
    writer = subprocess.Popen(
        [sys.executable, "-c", HALF, tmp_path / "a.txt"], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None and writer.stdout.readline() == b"half\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert (tmp_path / "a.txt").read_text() == "old"
    left_over = [p.name for p in tmp_path.iterdir() if p.name != "a.txt"]
    assert len(left_over) == 1 and left_over[0].endswith(".part"), (
        "what is left is under a name that nobody reads"
    )


def test_sha256_is_that_of_the_bytes(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"abc")
    assert (
        sha256_of(tmp_path / "a")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()


def test_the_hash_of_a_tree_sees_names_contents_and_nothing_compiled(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.py", "1")
    first = sha256_of_tree(tmp_path, "**/*.py")
    write_atomic(tmp_path / "notes.md", "1")
    write_atomic(tmp_path / "__pycache__" / "a.py", "1")
    assert sha256_of_tree(tmp_path, "**/*.py") == first
    write_atomic(tmp_path / "sub" / "b.py", "1")
    second = sha256_of_tree(tmp_path, "**/*.py")
    (tmp_path / "sub" / "b.py").rename(tmp_path / "sub" / "c.py")
    assert len({first, second, sha256_of_tree(tmp_path, "**/*.py")}) == 3
    assert sha256_of_tree(tmp_path / "no such folder") == hashlib.sha256(b"").hexdigest()


def test_csv_has_six_digits_and_the_index_only_where_it_has_a_name(tmp_path: Path) -> None:
    frame = pd.DataFrame({"word": ["she", "é"], "r": [2 / 3, 1234567.0]})
    save_csv(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == "word,r\nshe,0.666667\né,1.23457e+06\n".encode()
    save_csv(frame.set_index("word"), tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_json_has_no_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        save_json({"r": float("nan")}, tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


def test_parquet_gives_lists_back_as_lists(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"row_id": ["1-F"], "words": [["she", "is"]], "scores": [np.array([0.1, -2.0])]}
    )
    save_parquet(frame, tmp_path / "a.parquet")
    back = load_parquet(tmp_path / "a.parquet")
    assert back.to_dict("records") == [
        {"row_id": "1-F", "words": ["she", "is"], "scores": [0.1, -2.0]}
    ]


def test_decimals_of_other_programs_are_read_as_floats(tmp_path: Path) -> None:
    numbers = pa.array([Decimal("0.1"), None, Decimal("-123456.789")], pa.decimal128(12, 3))
    pq.write_table(pa.table({"row": [1, 2, 3], "number": numbers}), tmp_path / "a.parquet")
    number = load_parquet(tmp_path / "a.parquet")["number"]
    assert number.dtype == float and number.dropna().tolist() == [0.1, -123456.789]


def test_a_text_is_read_without_its_byte_order_mark_and_other_bytes_are_named_by_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert read_utf8(tmp_path / "a.txt") == "one\r\ntwo\n"
    (tmp_path / "a.txt").write_bytes(b"one\ntw\xff\n")
    with pytest.raises(TouchstoneError, match=r"a\.txt, line 2: the bytes are not UTF-8"):
        read_utf8(tmp_path / "a.txt")


def test_json_with_a_key_twice_or_too_deep_is_refused() -> None:
    assert strict_json(b'\xef\xbb\xbf{"a": {"b": 1}, "b": [2]}') == {"a": {"b": 1}, "b": [2]}
    for text, said in (
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' is written twice"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
        (b"\xff", "codec can't decode|invalid start byte"),
    ):
        with pytest.raises(ValueError, match=said):
            strict_json(text)


def test_rows_of_a_table_are_text_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfid,n\r\nNA,007\r\n\r\n"a\nb",1\r\n')
    rows = [(1, ["id", "n"]), (2, ["NA", "007"]), (4, ["a\nb", "1"])]
    assert csv_rows(tmp_path / "a.csv") == rows
    for content, said in (
        (b"", "a.csv is empty"),
        (b"id,n\na\n", "a.csv, line 2: 1 fields, and the head has 2"),
        (b'id,n\n"a,1\n', "a.csv, line 2: the row that begins here cannot be read"),
        (b"id,n\n\xe9,1\n", "a.csv, line 2: the bytes are not UTF-8"),
    ):
        (tmp_path / "a.csv").write_bytes(content)
        with pytest.raises(TouchstoneError, match=said):
            csv_rows(tmp_path / "a.csv")
    with pytest.raises(TouchstoneError, match="there is no file"):
        csv_rows(tmp_path / "b.csv")


READERS = {
    "text": read_text,
    "yaml": read_yaml,
    "json": lambda path: read_json(path, "save it again"),
    "csv": read_table,
    "parquet": read_table,
    "npz": read_arrays,
}
LATIN_1 = "name: caf\xe9\n".encode("latin-1")


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("content", [None, LATIN_1], ids=["missing", "latin-1"])
def test_every_reader_names_a_file_that_it_cannot_read(
    tmp_path: Path, kind: str, content: bytes | None
) -> None:
    path = tmp_path / f"x.{kind}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TouchstoneError, match=rf"^{path}.*(;|: )"):
        READERS[kind](path)


@pytest.mark.parametrize(
    "kind, content, says",
    [
        ("yaml", b"", "must hold lines of the form"),
        ("yaml", b"a: [1", "not readable as YAML"),
        ("yaml", b"a: !!python/name:os.system", "not readable as YAML"),
        ("yaml", b"a: 1\na: 2", "'a' is set twice"),
        ("yaml", b"a: 2026-13-45", "not readable as YAML"),
        ("json", b'{"a": 1, "a": 2}', "the key 'a' is written twice.*; save it again"),
        ("json", b"[" * 100_000, "is not valid JSON"),
        ("csv", b"", "not readable as CSV"),
        ("csv", b"a,b\n1,2,3\n1,2,3,4\n", "not readable as CSV"),
        ("parquet", b"a,b\n1,2\n", "not readable as Parquet"),
        ("npz", b"", "not readable as .npz"),
        ("npz", b"PK\x03\x04 no zip", "not readable as .npz"),
    ],
)
def test_a_malformed_file_is_named_with_what_to_do(
    tmp_path: Path, kind: str, content: bytes, says: str
) -> None:
    path = tmp_path / f"x.{kind}"
    path.write_bytes(content)
    with pytest.raises(TouchstoneError, match=rf"^{path}.*{says}"):
        READERS[kind](path)


def test_what_is_right_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffid,n\r\n007,1\r\n".encode())
    assert read_table(tmp_path / "a.csv", dtype={"id": str}).to_dict("list") == {
        "id": ["007"],
        "n": [1],
    }
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\rthree\n")
    assert read_text(tmp_path / "a.txt") == "one\ntwo\nthree\n"
    np.savez(tmp_path / "a.npz", x=np.arange(2), y=np.array(["a"]))
    assert read_arrays(tmp_path / "a.npz")["x"].tolist() == [0, 1]
    assert parse_json('{"a": [1]}', "x", "mend it") == {"a": [1]}


def test_arrays_of_objects_and_of_other_formats_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    with (tmp_path / "single.npz").open("wb") as file:
        np.save(file, np.arange(2))
    for name in ("objects", "single"):
        with pytest.raises(TouchstoneError, match="write numbers and text with numpy.savez"):
            read_arrays(tmp_path / f"{name}.npz")
