"""The site in a real browser, from files: no error, formulas, pictures, links, search, both modes.

axe-core (npm, docs/package-lock.json) looks for what keeps people out. `TOUCHSTONE_PICTURES` may
name a folder for what was seen, `TOUCHSTONE_SITE` a finished site, so that none is built.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site  # tools/build_site.py
import pytest
from chromium import Browser, find_program

from lib.core.paths import ROOT

pytestmark = [pytest.mark.more, pytest.mark.slow]
pytest.importorskip("myst_nb", reason="needs Sphinx: make test-more")
if shutil.which("npm") is None:
    pytest.skip("needs npm, for MathJax and axe-core", allow_module_level=True)

SPHINX = [
    "index.html",
    "docs/notebooks.html",
    "docs/results.html",
    "docs/api.html",
    "docs/glossary.html",
    "docs/doors.html",
    "docs/course/README.html",
    "docs/course/exercises/geco.html",
    "notebooks/00_start_here.html",
    "notebooks/geco/README.html",
    "notebooks/geco/03_attribution.html",
    "notebooks/cebab/04_metrics.html",
    "outputs/reference/geco/cpu/05_figures.html",
    "outputs/reference/lm_saliency/cpu/04_metrics.html",
]
PLAIN = [
    "docs/board.html",
    "outputs/reference/assay/cards/LIME/card.html",
    "docs/course/slides/geco/04_metrics.html",
]
WIDTHS = {1280: 900, 390: 844}
PICTURES = """[...document.querySelectorAll('img')].filter(i => !i.complete || !i.naturalWidth
  || !i.alt || /\\.(png|svg)$/.test(i.alt)).map(i => i.src)"""
FORMULAS = """[document.querySelectorAll('.math').length,
  document.querySelectorAll('mjx-container').length,
  document.querySelectorAll('[data-mjx-error], mjx-merror').length]"""
GROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


class Page(HTMLParser):
    """The links, the ids and the loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        elif tag in ("img", "script", "iframe", "source") and "src" in values:
            self.loaded.append(values["src"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in less than three minutes."""
    if finished := os.environ.get("TOUCHSTONE_SITE"):
        return Path(finished)
    out = tmp_path_factory.mktemp("site") / "site"
    started = time.monotonic()
    assert build_site.main(["--out", str(out)]) == 0
    assert time.monotonic() - started < 180
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page, parsed."""
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all pages; its axe is in `AXE`."""
    program = find_program()
    if program is None:
        pytest.skip("needs a browser: install Debian's chromium, or set TOUCHSTONE_CHROMIUM to one")
    folder = tmp_path_factory.mktemp("browser")
    made = Browser(program, folder, folder / "profile")
    made.listen()
    yield made
    made.close()


@pytest.fixture(scope="module")
def axe() -> str:
    return (build_site.npm_packages() / "axe-core" / "axe.min.js").read_text()


def read(reader: Browser, page: Path, width: int, scheme: str) -> None:
    """Open a page as a reader does, and wait for its formulas."""
    reader.prefer(scheme)
    reader.go(page.as_uri(), width, WIDTHS[width])
    reader.wait("document.readyState === 'complete' && location.protocol === 'file:'")
    reader.wait(
        "typeof MathJax === 'undefined' || (MathJax.startup.promise.then(() => window.set = 1), "
        "window.set === 1)"
    )
    if folder := os.environ.get("TOUCHSTONE_PICTURES"):
        time.sleep(0.5)
        name = "_".join(page.with_suffix("").parts[-3:])
        reader.picture(Path(folder) / f"{name}_{width}_{scheme}.png")


def barriers(reader: Browser, axe: str) -> list[str]:
    """What axe calls serious or critical on the page: rule and element."""
    reader.run(
        axe + "; axe.run(document, {preload: false}).then(found => { window.found = found; }); 1"
    )
    found = json.loads(reader.wait("window.found && JSON.stringify(window.found.violations)"))
    return [
        f"{rule['impact']} {rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def test_every_link_of_every_page_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    n_checked, broken = 0, []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            n_checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].ids if target in pages else {""}
            anchor = unquote(parts.fragment)
            if not target.is_file() or (target in pages and anchor and anchor not in known):
                broken.append(f"{path.relative_to(site)}: {link}")
    print(f"{len(pages)} pages, {n_checked} links")
    assert n_checked > 2000 and not broken


def test_nothing_is_loaded_from_the_network(site: Path, pages: dict[Path, Page]) -> None:
    loaded = {link for page in pages.values() for link in page.loaded}
    assert loaded and not [link for link in loaded if re.match(r"(https?:)?//", link)]
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", styles)


def test_every_notebook_and_result_is_there(site: Path) -> None:
    sources = [*ROOT.glob("notebooks/**/*.ipynb"), *ROOT.glob("outputs/reference/*/cpu/*.ipynb")]
    expected = {path.relative_to(ROOT).with_suffix(".html") for path in sources}
    assert len(expected) > 20
    assert not [name for name in expected if not (site / name).is_file()]


def test_a_teacher_needs_no_installation(site: Path, pages: dict[Path, Page]) -> None:
    """From the start, two clicks lead to the exercises, the slides and the student's edition."""
    course = site / "docs" / "course"
    assert "docs/course/README.html" in pages[site / "index.html"].links
    links = {link.partition("#")[0] for link in pages[course / "README.html"].links}
    exercises = sorted(path.name for path in course.glob("exercises/*.html"))
    assert len(exercises) == 6
    wanted = {"student.zip", "slides/index.html", *(f"exercises/{name}" for name in exercises)}
    assert wanted <= links
    text = (course / "exercises" / "geco.html").read_text()
    assert text.count("<summary>The check</summary>") > 10
    assert (course / "student.zip").stat().st_size < 15e6


@pytest.mark.parametrize("name", SPHINX)
def test_a_page_reads_well(reader: Browser, axe: str, site: Path, name: str) -> None:
    reader.complaints.clear()
    found: list[str] = []
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light")):
        read(reader, site / name, width, scheme)
        assert reader.run("document.documentElement.scrollWidth") <= width
        dark = sum(reader.run(GROUND)) < 3 * 128
        assert dark == (scheme == "dark")
        n_formulas, n_set, n_wrong = reader.run(FORMULAS)
        assert n_formulas == n_set and not n_wrong
        reader.run("document.querySelectorAll('img').forEach(i => { i.loading = 'eager'; })")
        reader.wait("[...document.querySelectorAll('img')].every(i => i.complete)")
        assert reader.run(PICTURES) == []
        outside = (
            "performance.getEntriesByType('resource').filter(r => !/^(file|data):/.test(r.name))"
        )
        assert reader.run(f"{outside}.map(r => r.name)") == []
        found += [f"{width} {scheme} {line}" for line in barriers(reader, axe)]
    assert found == []
    assert reader.complaints == []


@pytest.mark.parametrize("name", PLAIN)
def test_a_card_and_the_board_read_well(reader: Browser, axe: str, site: Path, name: str) -> None:
    reader.complaints.clear()
    for width in WIDTHS:
        read(reader, site / name, width, "light")
        assert reader.run("document.documentElement.scrollWidth") <= width
        assert barriers(reader, axe) == []
    assert reader.complaints == []


def test_formulas_are_on_the_pages_that_have_them(reader: Browser, site: Path) -> None:
    read(reader, site / "notebooks/geco/03_attribution.html", 1280, "light")
    assert reader.run(FORMULAS)[0] > 5


def test_the_search_finds_a_term(reader: Browser, site: Path) -> None:
    reader.complaints.clear()
    read(reader, site / "index.html", 1280, "light")
    button = "[...document.querySelectorAll('.search-button-field')].find(b => b.checkVisibility())"
    reader.click(button)
    reader.wait("document.activeElement?.type === 'search'")
    reader.type("attractor")
    reader.press("Enter")
    reader.wait("location.pathname.endsWith('/search.html')")
    reader.wait("document.querySelectorAll('#search-results li a').length > 2")
    links = reader.run("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
    assert any("glossary" in link or "lm_saliency" in link for link in links)
    assert reader.complaints == []


def test_a_reader_chooses_the_dark_mode(reader: Browser, site: Path) -> None:
    read(reader, site / "index.html", 1280, "light")
    shown = "[...document.querySelectorAll('{}')].find(b => b.checkVisibility())"
    reader.click(shown.format(".theme-switch-button"))
    dark = shown.format(".theme-change-button[data-mode=dark]")
    reader.wait(f"!!{dark}")
    reader.click(dark)
    reader.wait("document.documentElement.dataset.theme === 'dark'")
    assert sum(reader.run(GROUND)) < 3 * 128
