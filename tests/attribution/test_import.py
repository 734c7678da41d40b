"""What `import lib.attribution` loads: a user waits for no library that is not needed."""

from __future__ import annotations

import subprocess
import sys

from lib.core.paths import ROOT

LATER = ("transformers", "captum", "lime", "sklearn", "scipy.stats", "matplotlib", "spacy")


def test_large_libraries_are_loaded_by_what_needs_them() -> None:
    code = f"import sys, lib.attribution; print([m for m in {LATER} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
