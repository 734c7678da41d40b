"""What opens the repository elsewhere: links that are up to date, files that say what is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import launch
import pytest

from lib.core.notebooks import find_sources
from lib.core.paths import ROOT


@pytest.mark.parametrize("path", launch.pages(), ids=lambda path: path.name)
def test_the_links_of_a_page_are_those_of_the_notebooks_there_are(path: Path) -> None:
    assert launch.pages()[path] == path.read_text(), "run: python tools/launch.py"


def test_a_page_without_its_marks_is_refused() -> None:
    marked = "a\n<!-- launch: by -->\nold\n<!-- end of launch -->\nb\n"
    assert "old" not in (new := launch.renewed(marked, "new")) and new.count("\nnew\n") == 1
    with pytest.raises(AssertionError, match="lost its marks"):
        launch.renewed("a\nb\n", "new")


def test_one_address_stands_everywhere() -> None:
    owner = launch.address()
    for name in ("README.md", "docs/notebooks.md"):
        text = (ROOT / name).read_text()
        found = re.findall(
            r"(?:github\.com|codespaces\.new|/gh|\.com/github)/([\w.-]+/[\w.-]+)", text
        )
        own = {address for address in found if address.endswith(f"/{owner.split('/')[1]}")}
        # the README has no badges while nobody knows the address
        is_plain = name == "README.md" and owner == launch._UNKNOWN
        assert own == (set() if is_plain else {owner}), name


def test_the_copies_for_colab_begin_with_their_cell_and_hold_no_outputs(tmp_path: Path) -> None:
    written = launch.write_copies(tmp_path)
    assert len(written) == len(find_sources()) > 20
    for source, path in zip(find_sources(), written):
        notebook = json.loads(path.read_text())
        first, *others = notebook["cells"]
        compile(first["source"], str(path), "exec")
        assert ('"start"' in first["source"]) == (source.stem[:2] not in ("00", "01"))
        original = json.loads(source.with_suffix(".ipynb").read_text())["cells"]
        assert [c["source"] for c in others] == [c["source"] for c in original]
        assert not [c for c in notebook["cells"] if c.get("outputs")]


@pytest.mark.slow
def test_what_binder_runs_last_works(tmp_path: Path) -> None:
    environment = os.environ | {
        "TOUCHSTONE_PREFIX": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "postBuild"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "01_data_generation" in done.stdout and os.access(ROOT / "postBuild", os.X_OK)
    assert (tmp_path / "etc" / "ipython" / "ipython_kernel_config.py").is_file()


def test_the_container_is_made_by_a_target_of_the_makefile() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    target = container["postCreateCommand"].removeprefix("make ")
    assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), flags=re.M)
    assert container["image"].rpartition("/")[2].startswith("python:3.11")
    settings = container["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")


def test_without_an_address_no_link_leads_nowhere() -> None:
    if launch.address() == "OWNER/touchstone":
        assert "OWNER" not in launch.table() + launch.badges()
