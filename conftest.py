"""One pytest for everything: the notebooks run in order into a temporary output root, then their tables are compared.

Under pytest-xdist each study's notebooks and the comparison that follows them are one group, so that they share a
worker and keep their order; the unit tests use the other core.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is imported: one thread, no progress bars, and outputs that never touch the user's own."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.pop("TOUCHSTONE_PROGRESS", None)
    if hasattr(config, "workerinput"):
        return  # a worker inherits the root that the controlling process made
    config.stash[_root] = tempfile.mkdtemp(prefix="touchstone-test-")
    os.environ["TOUCHSTONE_OUTPUTS"] = config.stash[_root]


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(_root, None):
        shutil.rmtree(config.stash[_root])


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Notebooks in their order, then the comparison of what they wrote; the rest is free to run beside them."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: item.path.name == "test_reference.py")


def _group(item: pytest.Item) -> str:
    if item.path.suffix == ".ipynb":
        folder = item.path.parent
        return folder.name if folder.name != "notebooks" else "start_here"
    if item.path.name == "test_reference.py":
        return item.callspec.params["study"] if hasattr(item, "callspec") else "start_here"
    return str(item.path.relative_to(ROOT))


_root = pytest.StashKey[str]()
