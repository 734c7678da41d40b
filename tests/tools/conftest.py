"""The tools are scripts: their folder is put on the path, as it is when one of them runs."""

import sys

from lib.core.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
