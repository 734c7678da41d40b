"""The parameter files and the notebooks say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.core.notebooks import find_notebooks, find_studies
from lib.core.parameters import check_params, read_params, study_parameters
from lib.core.paths import ROOT

FILES = sorted((ROOT / "params").glob("*/*.yaml"))


@pytest.mark.parametrize("study", find_studies())
def test_small_repeats_the_defaults_of_all_notebooks(study: str) -> None:
    file = ROOT / "params" / study / "small.yaml"
    declared = study_parameters(find_notebooks(study))  # refuses a name with two meanings
    values = check_params(read_params(file), declared, file)
    assert values == declared


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_holds_known_names_and_its_own_scale(file: Path) -> None:
    declared = study_parameters(find_notebooks(file.parent.name))
    assert check_params(read_params(file), declared, file)["scale"] == file.stem
