"""Build the site: the repository's pages and notebooks as one folder of HTML (make site).

    python tools/build_site.py [--out outputs/site]

Executed notebooks are shown as they are committed; nothing runs. The course has the student's
edition beside it, as one file, and the slides. Sphinx reads a copy of what git
tracks, in the same folders, in which a link to a file that is no page leads to a copy of that file.
Only npm's package of MathJax is fetched, once, by the checksum of docs/package-lock.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import editions
import pooch
import slides

from lib.core.errors import TouchstoneError
from lib.core.files import read_table, write_atomic
from lib.core.notebooks import APPENDIX, find_notebooks, find_studies
from lib.core.paths import ROOT, outputs_root, reference_dir
from lib.doors.board import render_board

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "lib/README.md",
    "tools/benchmarks/README.md",
    "docs/**/*.md",
    "notebooks/*.ipynb",
    "notebooks/*/*.ipynb",
    "notebooks/*/README.md",
    "outputs/reference/*/cpu/*.md",
    "outputs/reference/*/cpu/*.ipynb",
)
STATIC = ("outputs/reference/assay/cards/**/*",)
HOME = {"README.md": "index.md", "docs/index.md": "index.md"}  # where a page stands elsewhere
NOT_PAGES = ("note.md",)  # part of other pages
BOARD = "docs/board.html"
PLAYER = ROOT / "tools" / "player.py"  # makes the page to play with
PLAY = """\
# Play against eight explainers

Mark words and compare. <a href="player.html">The page by itself</a> is one file.

<iframe src="player.html" title="The page to play with" class="player"></iframe>
"""
COURSE, START = "docs/course", "start_here"
# What only the site has, by the page that says so: <!-- on the site: FILE -->.
_ON_THE_SITE = re.compile(r"<!-- on the site: (\S+) -->")
PICTURES = (".png", ".svg")
# The address of a Markdown link or picture, or of an HTML one; what comes before and after stays.
_MARKDOWN = re.compile(r"(!?)\[((?:[^\[\]]|!?\[[^\[\]]*\]\([^()]*\))*)\]\(([^()\s]+)\)")
_HTML = re.compile(r'((?:src|href)=")([^"]+)(")')
_FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.M | re.S)
_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|#|//")


def main(arguments: list[str] | None = None) -> int:
    """Copy, rewrite, build; the exit status of Sphinx, for which a warning is an error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=outputs_root() / "site")
    out = parser.parse_args(arguments).out.resolve()
    work = out.with_name(f"{out.name}_work")
    mathjax = npm_packages() / "mathjax" / "es5" / "tex-svg-full.js"
    shutil.rmtree(out, ignore_errors=True)
    files = stage(work / "source")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    command += ["--jobs", "2", "--builder", "html", "--conf-dir", str(ROOT / "docs")]
    command += ["--doctree-dir", str(work / "doctrees"), str(work / "source"), str(out)]
    status = subprocess.run(command, cwd=ROOT).returncode
    shutil.copy(mathjax, out / "_static")
    for name in sorted(files):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, out / name)
    (out / "_static" / "webpack-macros.html").unlink(missing_ok=True)  # a template of the theme
    write_atomic(out / BOARD, board_page())
    editions.pack(out / COURSE / "student.zip")
    slides.build(out / COURSE / "slides")
    if PLAYER.is_file():
        import_module("player").build(out / "docs" / "player.html")
    write_atomic(out / ".nojekyll", "")  # GitHub would leave out folders that begin with _
    print(f"the site: {out / 'index.html'}")
    return status


def npm_packages() -> Path:
    """The folder of the packages of docs/package-lock.json, fetched into the user's cache once.

    Raises:
        TouchstoneError: npm is not installed, or could not fetch them.
    """
    lock = (ROOT / "docs" / "package-lock.json").read_bytes()
    folder = Path(pooch.os_cache("touchstone")) / "npm" / hashlib.sha256(lock).hexdigest()[:16]
    mark = folder / "done"
    if not mark.is_file():
        if shutil.which("npm") is None:
            raise TouchstoneError("the site's formulas need npm once; install Node.js, then again")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(ROOT / "docs" / name, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise TouchstoneError(f"npm could not fetch docs/package-lock.json: {done.stderr}")
        mark.touch()
    return folder / "node_modules"


def stage(folder: Path) -> set[str]:
    """Write Sphinx's sources; returns the files that pages link to and that are no pages."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    pages = {name for name in _found(PAGES) & tracked if Path(name).name not in NOT_PAGES}
    files = _found(STATIC) & tracked
    shutil.rmtree(folder, ignore_errors=True)
    for name in sorted(pages):
        links = Links(name, pages, tracked)
        text = (ROOT / name).read_text()
        text = notebook_page(text, links) if name.endswith(".ipynb") else links.rewrite(text)
        text = _ON_THE_SITE.sub(r' (here: <a href="\1">\1</a>)', text)
        target = folder / (name if name == "README.md" else HOME.get(name, name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if name == "docs/index.md":
            text = "\n".join(line for line in text.split("\n") if _is_there(line, pages))
        target.write_text(text + contents(name))
        files |= links.files
        for picture in links.pictures:
            (folder / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / picture, folder / picture)
    if PLAYER.is_file():
        (folder / "docs" / "play.md").write_text(PLAY)
    return files


class Links:
    """The links of one page: those to pages stay, those to other files become plain HTML.

    Args:
        name: of the page, from the root of the repository.
        pages: the names of all pages.
        tracked: the names of all files.
    """

    def __init__(self, name: str, pages: set[str], tracked: set[str]) -> None:
        self.folder = posixpath.dirname(name)
        self.home = posixpath.dirname(HOME.get(name, name))
        self.pages, self.tracked = pages, tracked
        self.files: set[str] = set()
        self.pictures: set[str] = set()

    def rewrite(self, text: str) -> str:
        """A page's Markdown with links that lead on from where it stands on the site."""
        parts = _FENCED.split(text)  # every other part is a block of code
        parts[::2] = [_HTML.sub(self._html, _MARKDOWN.sub(self._link, p)) for p in parts[::2]]
        return "".join(parts)

    def _link(self, match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        text = _MARKDOWN.sub(self._link, text)
        kind, address = self._resolve(target)
        if picture and _ELSEWHERE.match(target):
            return text  # a badge is a picture from the network
        if kind == "file" and not picture:
            return f'<a href="{address}">{text}</a>'
        return text if kind == "nothing" else f"{picture}[{text}]({address})"

    def _html(self, match: re.Match[str]) -> str:
        before, target, after = match.groups()
        return f"{before}{self._resolve(target)[1]}{after}"

    def _resolve(self, target: str) -> tuple[str, str]:
        """What an address leads to ("page", "file", "nothing"), and the address on the site."""
        path, hash_, anchor = target.partition("#")
        if _ELSEWHERE.match(target):
            return "page", target
        name = posixpath.normpath(posixpath.join(self.folder, path))
        if f"{name}/README.md" in self.pages:
            name = f"{name}/README.md"
        address = posixpath.relpath(HOME.get(name, name), self.home or ".")
        if name in self.pages:
            return "page", address + hash_ + anchor
        if name not in self.tracked:
            return "nothing", target
        self.files.add(name)
        if name.endswith(PICTURES):
            self.pictures.add(name)
        return "file", address


def notebook_page(text: str, links: Links) -> str:
    """A notebook as JSON, with links that lead on and words in the place of its pictures."""
    notebook = json.loads(text)
    heading = "the notebook"
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = links.rewrite(source)
            heading = ([heading] + re.findall(r"^#+ (.*)$", source, flags=re.M))[-1]
        else:
            alt = f"Figure of the section: {heading}"
            cell["metadata"]["mystnb"] = {"image": {"alt": alt}}
    return json.dumps(notebook)


def contents(name: str) -> str:
    """What Sphinx needs to know of a page's place: the pages below it."""
    folder, _, page = name.rpartition("/")
    if name == "docs/results.md":
        return '\n<a href="board.html">The board</a> has everybody under every truth.\n'
    below = []
    if name == f"{COURSE}/README.md":
        found = sorted(_found([f"{COURSE}/exercises/*.md"]), key=lambda p: (START not in p, p))
        below = [f"exercises/{Path(path).stem}" for path in found]
    elif page == "README.md" and (study := folder.removeprefix("notebooks/")) in find_studies():
        # A reader goes through the stages; the runner has an appendix where its tables are ready.
        found = sorted(find_notebooks(study), key=lambda path: path.stem.startswith(APPENDIX))
        below = [f"{path.stem.replace('_', ' ')} <{path.stem}>" for path in found]
    return "\n```{toctree}\n:hidden:\n" + "\n".join(below) + "\n```\n" if below else ""


def board_page() -> str:
    """The board of the committed run of the assay: everybody under every truth."""
    cells = read_table(reference_dir("assay", "small") / "04_metrics" / "cells.csv")
    table = cells[cells["role"].isin(["explainer", "floor"])]
    table = table.assign(author="Touchstone", settings="{}", code="", remarks="")
    return render_board(
        table, "The committed run at scale small: a few texts a truth, nothing is decided."
    )


def _is_there(line: str, pages: set[str]) -> bool:
    """Whether a line of the contents names a page that exists; any other line stays."""
    named = re.fullmatch(r"[^<>]+ <([\w/]+)>", line)
    is_play = named is not None and named[1] == "docs/play" and PLAYER.is_file()
    return named is None or is_play or f"{named[1]}.md" in pages


def _found(patterns: Sequence[str]) -> set[str]:
    paths = (path for pattern in patterns for path in ROOT.glob(pattern))
    return {path.relative_to(ROOT).as_posix() for path in paths}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TouchstoneError as error:
        sys.exit(f"error: {error}")
