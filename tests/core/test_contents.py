"""Local models, a user's modules, pipelines and others' material are known by content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lib.core import contents
from lib.core.contents import by_content, find_again, fingerprint, locate, named_contents
from lib.core.paths import ROOT, material
from lib.core.stage import open_stage
from lib.language.word_lists import word_list


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"old weights")
    return folder


def test_a_local_model_is_its_files_and_a_name_is_a_name(model: Path) -> None:
    assert by_content("all-MiniLM-L6-v2") == by_content("LIME") == by_content("") == {}
    assert by_content("google/bert") == by_content("a: b") == by_content("x" * 5000) == {}
    before = by_content(str(model))
    (model / "model.safetensors").write_bytes(b"new weights")
    assert before != by_content(str(model)) == {"content": fingerprint(model)}


def test_a_module_is_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_explainer.py").write_text("def by_length(text): return 3\n")
    before = by_content("own_explainer:by_length")
    assert locate("own_explainer:by_length") == tmp_path / "own_explainer.py"
    (tmp_path / "own_explainer.py").write_text("def by_length(text): return -300\n")
    assert before and before != by_content("own_explainer:by_length")
    assert by_content("own_explainer") == by_content("not_there:f") == by_content("a.b:f") == {}


def test_a_manifest_lists_what_parameters_name(
    model: Path, small_outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_SPACY", str(tmp_path / "pipeline"))
    monkeypatch.setattr(contents, "_read", set())
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "meta.json").write_text("{}")
    (tmp_path / "clusters.jsonl").write_text("{}\n")
    parameters = {
        "encoder": "all-MiniLM-L6-v2",
        "hub_models": {str(model): ""},
        "clusters_file": str(tmp_path / "clusters.jsonl"),
        "spacy_pipeline": "environment",
        "methods": ["LIME", "json:loads"],
        "formats": ["png"],
    }
    stage = open_stage("toy", "small", "01_make")
    (stage.folder / "mine.csv").write_text("x\n")
    stage.close(parameters | {"own": str(stage.folder / "mine.csv")})
    externals = json.loads((stage.folder / "manifest.json").read_text())["externals"]
    assert externals.keys() >= {str(model), parameters["clusters_file"], "$TOUCHSTONE_SPACY"}
    assert len(externals) == 4 and externals[str(model)] == fingerprint(model)
    assert all(fingerprint(find_again(name)) == sha256 for name, sha256 in externals.items())


def test_a_stored_pipeline_is_none_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_SPACY", "some_pipeline")
    assert named_contents({"spacy_pipeline": "stored", "scale": "small", "lr": {"C": 0.1}}) == {}


def test_a_manifest_lists_what_was_read_of_another_study(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "_read", set())
    word_list.cache_clear()
    word_list("first_names")
    found = {}
    for study in ("implicit_bias", "geco"):
        stage = open_stage(study, "toy", "06_none")  # there is no such notebook
        stage.close({})
        found[study] = json.loads((stage.folder / "manifest.json").read_text())["externals"]
    path = material("geco") / "first_names.txt"
    assert found["implicit_bias"] == {path.relative_to(ROOT).as_posix(): fingerprint(path)}
    assert found["geco"] == {}, "the own material counts as a whole"
