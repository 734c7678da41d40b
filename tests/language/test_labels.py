"""Variants and their ground truth."""

from __future__ import annotations

import pytest

from lib.language.labels import differing_positions


def test_forms_of_different_lengths_have_no_positional_mask() -> None:
    with pytest.raises(ValueError, match="zip"):
        differing_positions([["She"], ["He", "reads"]])
