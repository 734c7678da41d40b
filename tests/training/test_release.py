"""Archives of pretrained models: the same bytes each time, checked, and sums that a shell reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lib.core.errors import TouchstoneError
from lib.training.pretrain import main
from lib.training.release import SUMS, check, pack


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "pretrained" / "small-lm"
    folder.mkdir(parents=True)
    for name, content in (("config.json", b"{}"), ("model.safetensors", bytes(range(256)))):
        (folder / name).write_bytes(content)
    return folder


def test_the_same_model_gives_the_same_archive(model: Path, tmp_path: Path) -> None:
    (first,) = pack([model], tmp_path / "a")
    (model / "config.json").touch()
    (second,) = pack([model], tmp_path / "b")
    assert first.name == "small-lm.tar.gz" and first.read_bytes() == second.read_bytes()


def test_an_archive_unpacks_to_the_folder(model: Path, tmp_path: Path) -> None:
    (archive,) = pack([model], tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path / "elsewhere"], check=True)
    for path in model.iterdir():
        assert (tmp_path / "elsewhere" / "small-lm" / path.name).read_bytes() == path.read_bytes()


def test_the_sums_are_those_that_sha256sum_reads(model: Path, tmp_path: Path) -> None:
    pack([model], tmp_path)
    checked = subprocess.run(["sha256sum", "--check", SUMS], cwd=tmp_path, capture_output=True)
    assert checked.returncode == 0


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json is not that of"),
        (lambda folder: (folder / "more.txt").write_text(""), "differ in small-lm/more.txt"),
        (lambda folder: (folder / "config.json").unlink(), "differ in small-lm/config.json"),
    ],
)
def test_what_differs_is_named(damage, told: str, model: Path, tmp_path: Path) -> None:
    (archive,) = pack([model], tmp_path / "out")
    damage(model)
    with pytest.raises(TouchstoneError, match=told):
        check(archive, model)


def test_there_must_be_something_to_pack(small_outputs: Path, tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no model to pack; train one"):
        main(["--pack", str(tmp_path / "out")])
