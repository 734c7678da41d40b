"""Run a notebook's cells on the pretend device, and name those that a GPU would refuse.

    python tools/on_device.py geco/03_attribution ...

The cells run in this process, one after the other, also after one that fails; `device: auto` is the
pretend device (`tests/models_for_tests/pretend_device.py`). A notebook reads what the stages before
it left in your output root; what it writes goes to a copy, which is deleted. It is slower than the
notebook by half: for a change of cells that hold tensors, not for every test.
"""

from __future__ import annotations

import lib.same_numbers  # first: the same instructions on every processor

import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch

from lib.core import seeds
from lib.core.notebooks import find_sources, read_notebook
from lib.core.paths import ROOT, outputs_root

sys.path.insert(0, str(ROOT / "tests" / "models_for_tests"))
from pretend_device import PretendDevice, pretend_device


def refused(source: Path) -> list[str]:
    """What a GPU would refuse in a notebook: each failing cell with its error and its last line."""
    found: list[str] = []
    space: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in read_notebook(source).cells if cell.cell_type == "code"]
    with ExitStack() as stack:
        device = stack.enter_context(pretend_device())
        for module, pick in _picking(device):
            stack.enter_context(patch.object(module, "pick_device", pick))
        for number, cell in enumerate(cells, 1):
            try:
                exec(compile(cell.source, f"cell {number}", "exec"), space)
            except Exception as error:  # named below; the next cells may have faults of their own
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(last.filename).name}:{last.lineno}"
                found.append(f"cell {number}: {type(error).__name__}: {error} ({where})")
    return found


def _picking(device: PretendDevice) -> list[tuple[ModuleType, Callable[[str], torch.device]]]:
    """The modules that have `pick_device`, and what gives the pretend device in its place."""
    pick = seeds.pick_device

    def there(name: str) -> torch.device:
        return device.torch if name == "auto" else pick(name)

    modules = [m for m in list(sys.modules.values()) if getattr(m, "pick_device", None) is pick]
    return [(module, there) for module in modules]


def main(names: list[str]) -> int:
    """Check the notebooks with these names; the exit status is 1 where a cell was refused."""
    sources = {f"{path.parent.name}/{path.stem}": path for path in find_sources()}
    if not names or (unknown := [name for name in names if name not in sources]):
        raise SystemExit(f"name notebooks that there are: {unknown if names else [*sources][1:]}")
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            study, _, stage = name.partition("/")
            root = Path(folder) / name.replace("/", "-")
            if (earlier := outputs_root() / study / "small").is_dir():
                own = shutil.ignore_patterns(stage)  # its units, too, are made on the device
                shutil.copytree(earlier, root / study / "small", ignore=own)
            with patch.dict(os.environ, TOUCHSTONE_OUTPUTS=str(root), MPLBACKEND="agg"):
                lines = refused(sources[name])
            print("\n".join([f"{name}: {len(lines)} cells refused", *lines]), flush=True)
            bad |= bool(lines)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
