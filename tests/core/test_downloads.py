"""Where downloads lie, and files that are not the published ones (fetching: see the studies)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lib.core.downloads import check_files, download, download_folder
from lib.core.errors import TouchstoneError


def test_downloads_lie_in_the_data_folder_or_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA", str(tmp_path))
    assert download_folder("geco") == tmp_path / "geco"
    monkeypatch.delenv("TOUCHSTONE_DATA")
    assert download_folder("geco").parts[-2:] == ("touchstone", "geco")


def test_the_first_file_that_differs_is_named_with_the_remedy(tmp_path: Path) -> None:
    known = {name: hashlib.sha256(b"right").hexdigest() for name in ("a.txt", "b.txt")}
    for name in known:
        (tmp_path / name).write_bytes(b"right")
    check_files(tmp_path, known, "abc123", "make data")
    (tmp_path / "b.txt").write_bytes(b"wrong")
    with pytest.raises(TouchstoneError, match=r"b\.txt is not .*commit abc123.*run `make data`"):
        check_files(tmp_path, known, "abc123", "make data")
    assert (tmp_path / "b.txt").read_bytes() == b"wrong"


def test_a_file_that_fits_its_checksum_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"right")
    sha256 = hashlib.sha256(b"right").hexdigest()
    download("http://localhost:1/nothing", sha256, tmp_path / "a.txt")
    with pytest.raises(TouchstoneError, match=r"could not fetch .*b\.txt: http://localhost:1"):
        download("http://localhost:1/nothing", sha256, tmp_path / "b.txt")


def test_what_a_killed_download_left_goes_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / ".a.txt.fetching"
    left.mkdir()
    (left / "tmpabc").write_bytes(b"half")
    with pytest.raises(TouchstoneError, match="could not fetch"):
        download("http://localhost:1/nothing", hashlib.sha256(b"x").hexdigest(), tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())
