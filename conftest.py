"""The notebooks run in order into one output root; then their tables are compared.

`make test` (tools/suite.py) runs the studies side by side; a plain `pytest` runs everything in one
process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from lib.core.arithmetic import in_force, processor
from lib.core.notebooks import find_sources
from lib.core.warm import WarmKernels, can_fork, kernel_manager

_temporary = pytest.StashKey[str]()
_kernels = pytest.StashKey[WarmKernels]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--outputs",
        metavar="FOLDER",
        help="keep what the notebooks write there; without notebooks, compare what is there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """No progress bars, and outputs that never touch the user's own.

    The arithmetic was asked for before, by `-p lib.same_numbers`.
    """
    os.environ.pop("TOUCHSTONE_PROGRESS", None)
    kept = config.getoption("--outputs")
    root = str(Path(kept).resolve()) if kept else tempfile.mkdtemp(prefix="touchstone-test-")
    config.stash[_temporary] = "" if kept else root
    os.environ["TOUCHSTONE_OUTPUTS"] = root


def pytest_unconfigure(config: pytest.Config) -> None:
    if _kernels in config.stash:
        config.stash[_kernels].close()
    if config.stash.get(_temporary, ""):
        shutil.rmtree(config.stash[_temporary])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The notebooks in their order, then the comparison of what they wrote; results pages get
    their tables.

    Several notebooks get kernels that are forked with the large libraries loaded.
    """
    if len({item.path for item in items if item.path.suffix == ".ipynb"}) > 1 and can_fork():
        import nbval.kernel

        config.stash[_kernels] = WarmKernels()
        manager = kernel_manager(config.stash[_kernels], nbval.kernel.KernelManager)
        nbval.kernel.KernelManager = manager
    place = {path.with_suffix(".ipynb"): i for i, path in enumerate(find_sources(), 1)}
    items.sort(key=lambda item: (item.path.name == "test_reference.py", place.get(item.path, 0)))
    pages = {item.path for item in items if "reference" in item.path.parts}
    for page in sorted(pages):  # outputs/reference/<study>/cpu/05_figures.ipynb
        from results import prepare  # tools/results.py; here, so that other tests do not load it

        prepare(Path(os.environ["TOUCHSTONE_OUTPUTS"]), page.parent.parent.name)


def pytest_terminal_summary(terminalreporter) -> None:
    """The skips in a line for each reason, and which arithmetic all of this holds for."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    terminalreporter.write_line(f"on {processor()}, arithmetic: {in_force()}")
