"""`touchstone` is `lib`: in whatever order the two names are used, each module is loaded once."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import lib
from lib.core.paths import PACKAGE, ROOT

NAMES = [module.name for module in pkgutil.walk_packages(lib.__path__, "lib.")]


def run(code: str, folder: str) -> str:
    """What a program prints that starts in a folder of its own, with the checkout on its path."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", start + code],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_module_is_the_same_under_both_names() -> None:
    assert importlib.import_module("touchstone") is lib
    assert len(NAMES) > 50
    for name in NAMES:
        again = importlib.import_module("touchstone" + name.removeprefix("lib"))
        first = importlib.import_module(name)
        assert again is first and first.__name__ == first.__spec__.name == name
        assert sys.modules["touchstone" + name.removeprefix("lib")] is first


def test_the_second_name_may_come_first(tmp_path) -> None:
    code = """
from touchstone.core.errors import TouchstoneError
import touchstone.core.paths
from lib.core import errors, paths
print(errors.TouchstoneError is TouchstoneError, touchstone.core.paths is paths, touchstone.core)
"""
    assert run(code, tmp_path) == f"True True <module 'lib.core' from '{PACKAGE}/core/__init__.py'>"


def test_a_function_keeps_its_name_beside_a_file_of_that_name(tmp_path) -> None:
    code = """
import lib.core, lib.core.errors
lib.core.errors = "a function"
import touchstone.core.errors
print(lib.core.errors, sys.modules["touchstone.core.errors"].__name__)
"""
    assert run(code, tmp_path) == "a function lib.core.errors"


def test_an_unknown_module_is_refused_under_the_name_that_was_used() -> None:
    with pytest.raises(ModuleNotFoundError, match="touchstone.nosuch"):
        importlib.import_module("touchstone.nosuch")


def test_the_name_of_the_wheel_does_what_the_first_name_does_with_m() -> None:
    commands = [
        [sys.executable, "-m", f"{name}.cli", "--version"] for name in ("lib", "touchstone")
    ]
    done = [subprocess.run(c, cwd=ROOT, capture_output=True, text=True) for c in commands]
    assert [process.stdout.strip() for process in done] == [lib.__version__] * 2
