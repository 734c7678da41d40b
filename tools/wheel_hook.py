"""What the wheel takes along from the root of the repository (pyproject.toml names this file)."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):
    """`sources` renames folders only, so the citation, a file, is placed here."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the citation to a wheel; an editable install reads the checkout's own."""
        if version == "standard":
            build_data["force_include"]["CITATION.cff"] = "touchstone/_data/CITATION.cff"
