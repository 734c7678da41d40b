"""Fixtures of the unit tests; what needs a download is skipped, with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from chromium import Browser, find_program
from small_models import FAMILIES, SENTENCES, LinearText, as_rows, build

from lib.core import paths
from lib.core.parameters import read_params
from lib.models.hf import HFClassifier
from lib.models.text_model import RunsFromEmbeddings

os.environ["HF_HUB_OFFLINE"] = "1"  # before anybody imports transformers: no way to a model hub


@pytest.fixture
def geco_data() -> Path:
    """The published GECO files."""
    root = paths.data_root()
    if root is None or not (root / "geco").is_dir():
        pytest.skip(
            "needs the published GECO: set TOUCHSTONE_DATA to a folder that holds geco/ "
            "(`make data` fills it)"
        )
    return root / "geco"


@pytest.fixture(scope="session")
def cebab() -> pd.DataFrame:
    """The published CEBaB as one table; copy before you change it."""
    from lib.studies.cebab.reviews import read_cebab

    root = paths.data_root()
    if root is None or not (root / "cebab").is_dir():
        pytest.skip(
            "needs the published CEBaB: set TOUCHSTONE_DATA to a folder that holds cebab/ "
            "(`make data` fills it)"
        )
    return read_cebab(root / "cebab")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A headless Chromium that saves into `tmp_path/out`."""
    program = find_program()
    if program is None:
        pytest.skip("needs a browser: install Debian's chromium, or set TOUCHSTONE_CHROMIUM to one")
    (tmp_path / "out").mkdir()
    made = Browser(program, tmp_path / "out", tmp_path / "profile")
    yield made
    made.close()


@pytest.fixture
def spacy_pipeline() -> str:
    """A spaCy pipeline that parses for real."""
    pipeline = paths.spacy_pipeline()
    if pipeline is None:
        pytest.skip("needs a spaCy pipeline: set TOUCHSTONE_SPACY to its name or path")
    return pipeline


@pytest.fixture
def small_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty output root of the test's own."""
    folder = tmp_path / "outputs"
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(folder))
    monkeypatch.delenv("TOUCHSTONE_RUNNER", raising=False)
    return folder


@pytest.fixture
def paper_repository(tmp_path: Path) -> Callable[..., Path]:
    """Makes a repository with some values of a study's `paper.yaml` changed, by (study, values)."""

    def build(study: str, values: dict[str, Any]) -> Path:
        root = tmp_path / "repository"
        (root / "params" / study).mkdir(parents=True)
        for folder in ("notebooks", "lib"):
            (root / folder).symlink_to(paths.ROOT / folder)
        changed = read_params(paths.ROOT / "params" / study / "paper.yaml") | values
        (root / "params" / study / "paper.yaml").write_text(yaml.safe_dump(changed))
        return root

    return build


@pytest.fixture
def linear() -> LinearText:
    return LinearText()


@pytest.fixture(scope="session", params=["BERT", "RoBERTa", "GPT-2", "OLA"])
def model(request: pytest.FixtureRequest) -> RunsFromEmbeddings:
    return build(request.param)


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> RunsFromEmbeddings:
    return build(request.param)


@pytest.fixture(params=["masked LM", "causal LM", "similarity"])
def zero_shot(request: pytest.FixtureRequest) -> RunsFromEmbeddings:
    return build(request.param)


@pytest.fixture
def bert() -> HFClassifier:
    return build("BERT")


@pytest.fixture
def rows() -> pd.DataFrame:
    return as_rows(SENTENCES)
