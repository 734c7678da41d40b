"""What a notebook of scale small needs to start alone, small enough for git.

python tools/handover.py geco
    after a run of any study at scale small: writes outputs/reference/geco/small/handover/,
    from which `touchstone start geco 04` fills an output root
"""

from __future__ import annotations

import sys

from lib.core import handover
from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT, outputs_root


def main(study: str) -> None:
    """Pack a study's run at scale small."""
    for path in handover.pack(study, outputs_root() / study / handover.SCALE):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except TouchstoneError as error:
        sys.exit(f"error: {error}")
