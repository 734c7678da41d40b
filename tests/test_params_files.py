"""The parameter files and the notebooks say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from lib.attribution import METHODS
from lib.core.files import read_yaml
from lib.core.notebooks import find_notebooks, find_studies
from lib.core.parameters import (
    RANGES,
    check_params,
    read_params,
    read_ranges,
    study_parameters,
)
from lib.core.paths import ROOT
from lib.studies.cebab.registry import EXPLAINERS

_OF_GECO = ("Pattern Variant", "First pronoun", "Pronoun list")  # floors that read its rows
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
    ranges = read_ranges(file.parent.name, ROOT)
    assert check_params(read_params(file), declared, file, ranges)["scale"] == file.stem


@pytest.mark.parametrize("study", [*find_studies(), "start_here"])
def test_every_parameter_has_a_range_in_which_its_default_lies(study: str) -> None:
    files = find_notebooks(study) or [ROOT / "notebooks" / "00_start_here.py"]
    declared, ranges = study_parameters(files), read_ranges(study, ROOT)
    assert not set(declared) - set(ranges)
    check_params(declared, declared, "the notebooks", ranges)
    own = read_yaml(ROOT / "params" / RANGES)[study]
    assert not set(own) - set(declared), "rules of parameters that there are no longer"


def test_the_choices_of_methods_are_those_that_are_registered() -> None:
    for study in ("geco", "implicit_bias"):
        of_bert = set(METHODS) if study == "geco" else set(METHODS) - set(_OF_GECO)
        assert set(read_ranges(study, ROOT)["methods"]["each"]) == of_bert | {"*:*"}
    assert set(read_ranges("cebab", ROOT)["explainers"]["each"]) == set(EXPLAINERS) | {"*:*"}
