"""One pytest for everything: the notebooks run in order into a temporary output root, then their tables are compared."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is imported: one thread, no progress bars, and outputs that never touch the user's own."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.pop("TOUCHSTONE_PROGRESS", None)
    config.stash[_root] = tempfile.mkdtemp(prefix="touchstone-test-")
    os.environ["TOUCHSTONE_OUTPUTS"] = config.stash[_root]


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(_root, None):
        shutil.rmtree(config.stash[_root])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The comparison of what the notebooks wrote comes last."""
    items.sort(key=lambda item: item.path.name == "test_reference.py")


_root = pytest.StashKey[str]()
