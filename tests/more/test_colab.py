"""*Run all* of the copies for Colab, in an environment that has libraries and nothing of ours.

GitHub's archive is one of the files here, in the form of GitHub's, at a file's address. Nothing is
downloaded: the environment sees the packages of this one.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tarfile
import venv
from pathlib import Path

import launch
import nbformat
import pytest

from lib.core.paths import ROOT

pytestmark = [pytest.mark.more, pytest.mark.slow]
pytest.importorskip("hatchling", reason="needs hatchling, which builds the wheel: make test-more")
RUN = {  # a notebook, and a file that it leaves
    "00_start_here": "start_here/sentence.png",
    "geco/01_data_generation": "geco/small/01_data_generation/manifest.json",
    "geco/05_figures": "geco/small/05_figures/manifest.json",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that sees the packages of this one, and no checkout."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    seen = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # The .pth files in there, one of which may lead to this checkout, are not read.
    (site / "packages.pth").write_text("".join(f"{path}\n" for path in sorted(seen)))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This repository as GitHub packs a branch: one folder, named after it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    path = tmp_path_factory.mktemp("github") / "main.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and "/cpu/" not in name:  # large, and read by none of these
                packed.add(ROOT / name, f"touchstone-main/{name}")
    return path


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which Colab's notebooks start, one for all as in a session."""
    return tmp_path_factory.mktemp("content")


@pytest.mark.parametrize("name", RUN)
def test_run_all_in_a_bare_environment(
    python: Path, archive: Path, runtime: Path, tmp_path: Path, name: str
) -> None:
    launch.write_copies(tmp_path)
    own = {k: v for k, v in os.environ.items() if not k.startswith(("TOUCHSTONE_", "PYTHON"))}
    own |= {
        "TOUCHSTONE_SOURCE": archive.as_uri(),
        "HF_HUB_OFFLINE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # so pip spells it: hatchling is taken from here
    }
    copy, done = tmp_path / "notebooks" / f"{name}.ipynb", tmp_path / "done.ipynb"
    command = [python, "-m", "papermill", "--no-progress-bar", "--log-level", "ERROR", copy, done]
    ran = subprocess.run(command, cwd=runtime, env=own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    cells = [cell for cell in nbformat.read(done, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert (runtime / "touchstone" / "outputs" / RUN[name]).is_file()
    found = "import touchstone; print(touchstone.__file__)"
    where = subprocess.run(
        [python, "-c", found], cwd=tmp_path, env=own, capture_output=True, text=True
    )
    assert str(python.parents[1]) in where.stdout, "the wheel is installed"
