"""One pytest for everything: the notebooks run in order, each study in a process of its own, then
their tables are compared.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from lib.core.arithmetic import in_force, processor

LONGEST_FIRST = ("geco", "cebab", "implicit_bias", "lm_saliency", "notebooks")
_temporary = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--outputs",
        metavar="FOLDER",
        help="keep what the notebooks write there; without notebooks, compare what is there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """No progress bars, and outputs that never touch the user's own (`-p lib.same_numbers` has
    asked for the arithmetic).
    """
    os.environ.pop("TOUCHSTONE_PROGRESS", None)
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist writes where its controller said
    kept = config.getoption("--outputs")
    root = str(Path(kept).resolve()) if kept else tempfile.mkdtemp(prefix="touchstone-test-")
    config.stash[_temporary] = "" if kept else root
    os.environ["TOUCHSTONE_OUTPUTS"] = root


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(_temporary, ""):
        shutil.rmtree(config.stash[_temporary])


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The notebooks of a study stay together and come first, the longest study before the others;
    their tables come last.
    """
    items.sort(key=_place)
    for item in items:
        path = item.path
        item.add_marker(
            pytest.mark.xdist_group(path.parent.name if path.suffix == ".ipynb" else str(path))
        )


def pytest_terminal_summary(terminalreporter) -> None:
    """The skips in a line for each reason, and which arithmetic all of this holds for."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    terminalreporter.write_line(f"on {processor()}, arithmetic: {in_force()}")


def _place(item: pytest.Item) -> int:
    if item.path.suffix == ".ipynb":
        study = item.path.parent.name
        return LONGEST_FIRST.index(study) if study in LONGEST_FIRST else len(LONGEST_FIRST)
    return len(LONGEST_FIRST) + (2 if item.path.name == "test_reference.py" else 1)
