"""Warm kernels: each a process of its own, with the libraries loaded and nothing else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from lib.core import warm
from lib.core.paths import ROOT
from lib.core.warm import WarmKernels, can_fork, kernel_manager, warm_kernels

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_fork(), reason="kernels are forked on Linux without a GPU only"),
]
ASK = """
import os, sys
state = [name for name in ("lib", "left_behind") if name in sys.modules or name in globals()]
left_behind = 1
sys.modules["left_behind"] = sys
print("torch" in sys.modules, "ipykernel_launcher" in sys.argv[0], state, os.getcwd(), os.getpid())
"""


@pytest.fixture(scope="module")
def kernels() -> Iterator[WarmKernels]:
    made = WarmKernels()
    yield made
    made.close()


def run(kernels: WarmKernels, cells: list[str], folder: Path = ROOT) -> list[str]:
    """What the cells of a notebook print, each run in one warm kernel."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=kernel_manager(kernels),
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
    )
    client.execute()
    return ["".join(o.get("text", "") for o in cell.outputs) for cell in notebook.cells]


def test_a_kernel_has_the_libraries_and_nothing_of_the_one_before(
    kernels: WarmKernels, tmp_path: Path
) -> None:
    found = [run(kernels, [ASK], folder)[0].split() for folder in (ROOT, tmp_path)]
    assert [one[:4] for one in found] == [
        ["True", "True", "[]", str(ROOT)],
        ["True", "True", "[]", str(tmp_path)],
    ]
    assert len({one[4] for one in found} | {str(os.getpid())}) == 3


def test_a_kernel_computes_as_a_new_one_does(kernels: WarmKernels) -> None:
    """The environment is that of the call, and the instructions are those asked for."""
    cell = """
import lib.same_numbers
import numpy as np, torch
from lib.core.arithmetic import in_force
torch.manual_seed(0)
print(in_force(), torch.randn(64, 64).matmul(torch.randn(64, 64)).sum().item().hex())
"""
    printed = run(kernels, [cell])[0].split()
    import torch

    torch.manual_seed(0)
    here = torch.randn(64, 64).matmul(torch.randn(64, 64)).sum().item().hex()
    assert printed[1] == here


def test_figures_are_shown(kernels: WarmKernels) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(
                "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])\nplt.show()"
            )
        ]
    )
    NotebookClient(
        notebook, kernel_name="python3", kernel_manager_class=kernel_manager(kernels)
    ).execute()
    assert "image/png" in notebook.cells[0].outputs[-1].data


def test_tables_are_as_wide_as_in_a_kernel(kernels: WarmKernels) -> None:
    """pandas looks for a terminal when it is imported, and cuts its tables to one."""
    found = run(kernels, ["import pandas\nprint(pandas.get_option('display.max_columns'))"])
    assert found == ["20\n"]


def test_a_kernel_that_dies_is_noticed_and_the_next_one_lives(kernels: WarmKernels) -> None:
    with pytest.raises(DeadKernelError):
        run(kernels, ["import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
    assert run(kernels, ["print(1)"]) == ["1\n"]


def test_no_kernel_outlives_its_server() -> None:
    kernels = WarmKernels(["ipykernel.kernelapp"])
    try:
        process = kernels.start(["-f", "/nonexistent/x.json"], dict(os.environ), str(ROOT))
        assert kernels._server is not None
        os.kill(kernels._server.pid, signal.SIGKILL)
        kernels._server.wait()
        for _ in range(100):
            if kernels.status(process) is not None:
                break
            time.sleep(0.1)
        assert kernels.status(process) == 1
    finally:
        kernels.close()


def test_none_are_made_where_none_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    with warm_kernels(False) as kernels:
        assert kernels is None
    with warm_kernels(True) as kernels:  # nothing has been asked of it, so there is no server yet
        assert kernels is not None and kernels._server is None
    monkeypatch.setattr(warm, "can_fork", lambda: False)
    with warm_kernels(True) as kernels:
        assert kernels is None


def test_a_kernel_is_reached_while_every_port_is_taken(
    kernels: WarmKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*args: object) -> int:
        raise OSError("no port is free")

    cache = "jupyter_client.provisioning.local_provisioner.LocalPortCache.find_available_port"
    monkeypatch.setattr(cache, none_left)
    assert run(kernels, ["print(1 + 1)"]) == ["2\n"]


def test_ports_where_the_path_of_a_socket_would_be_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(warm.tempfile, "tempdir", str(deep))
    made = WarmKernels()
    assert made.sockets() == {}
    made.close()
    assert not list(deep.iterdir())
