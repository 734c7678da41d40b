"""A notebook's cells on the pretend device: those that a GPU would refuse are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from on_device import main, refused

NOTEBOOK = """# %%
import torch
from lib.core.seeds import pick_device

x = torch.ones(2, device=pick_device("auto"))
# %%
x.numpy()
# %%
y = x.cpu().numpy()
# %%
x + torch.ones(2)
# %%
assert (x * 2).sum().item() == 4
"""


def test_cells_that_a_gpu_would_refuse_are_named_and_the_next_ones_run(tmp_path: Path) -> None:
    source = tmp_path / "01_cells.py"
    source.write_text(NOTEBOOK)

    found = refused(source)

    assert [line.partition(":")[0] for line in found] == ["cell 2", "cell 4"]
    assert "RuntimeError" in found[1]


def test_a_notebook_that_there_is_not_is_refused() -> None:
    with pytest.raises(SystemExit, match="geco/99"):
        main(["geco/99_nothing"])
