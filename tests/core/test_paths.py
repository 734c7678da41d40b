"""Three variables of the environment say where things are; without them: defaults, or None."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.core import paths


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOUCHSTONE_DATA", "TOUCHSTONE_SPACY", "TOUCHSTONE_OUTPUTS"):
        monkeypatch.setenv(name, "")
    assert paths.data_root() is None and paths.spacy_pipeline() is None
    assert paths.outputs_root() == paths.ROOT / "outputs"
    assert (paths.ROOT / "lib" / "core" / "paths.py").is_file()


def test_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOUCHSTONE_DATA", "data")
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "out"))
    monkeypatch.setenv("TOUCHSTONE_SPACY", "en_core_web_sm")
    assert paths.data_root() == tmp_path / "data", "absolute: a kernel may start in another folder"
    assert paths.outputs_root() == tmp_path / "out" and paths.spacy_pipeline() == "en_core_web_sm"
    assert (
        paths.reference_dir("geco", "cpu") == paths.ROOT / "outputs" / "reference" / "geco" / "cpu"
    )
