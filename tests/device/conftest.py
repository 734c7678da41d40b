"""The pretend accelerator as a fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pretend_device import PretendDevice, pretend_device


@pytest.fixture
def device() -> Iterator[PretendDevice]:
    """A device that refuses and counts what a GPU does (`pretend_device`)."""
    with pretend_device() as made:
        yield made
