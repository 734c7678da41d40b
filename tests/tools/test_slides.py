"""Slides: one idea each, a picture first, nothing cut off on a screen of 1280 by 720."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
import slides

from lib.core.notebooks import APPENDIX, find_sources
from lib.core.paths import ROOT

SOURCES = find_sources()
every_notebook = pytest.mark.parametrize(
    "source", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "notebooks"))
)
SCREEN, SMALLEST = (1280, 720), 0.7
# Of every slide: how far it was made smaller, by how much it is too high and too wide, whether
# something is cut off inside, and the pictures that are not there.
LOOK = """JSON.stringify(slides.map((slide, i) => {
  show(i);
  const main = document.documentElement;
  return [parseFloat(slide.style.getPropertyValue("--fit")), main.scrollHeight - innerHeight,
    main.scrollWidth - innerWidth, overflows(slide),
    [...slide.querySelectorAll("img")].filter((image) => !image.naturalWidth).length];
}))"""


@pytest.mark.parametrize(
    "text, most, shown",
    [
        ("One is here. Two is here. Three.", 6, "One is here. Two is here."),
        ("A long first sentence is always kept. Next.", 2, "A long first sentence is always kept."),
        ("See Feder et al. 2021. Then *this*.", 99, "See Feder et al. 2021. Then *this*."),
        ("Kept. The next cell prints it. It is cut.", 99, "Kept."),
        ("The next cell prints it. Kept.", 99, "Kept."),
        ("If\n\n- one two\n- three four", 5, "If\n\n- one two\n- three four"),
        ("Kept. Three things:\n\n```\na\n```", 99, "Kept."),
        ("As said:\n\n| a |\n|---|\n| b |", 99, "As said:\n\n| a |\n|---|\n| b |"),
        ("Kept.\n\n| in | out |\n|---|---|", 99, "Kept."),
        ("A. B.\n\n**Stop and guess.** Is it? No.", 1, "A.\n\n**Stop and guess.** Is it?"),
        ("Kept.\n\n**What else?** Cut here.", 4, "Kept."),
        ("Kept. For each we compute\n\n- one two three four", 5, "Kept."),
        ("Kept:\n\n$$a = b$$", 9, "Kept:\n\n$$a = b$$"),
        ("Two things:\n\n- one\n- two", 99, "Two things:\n\n- one\n- two"),
        ("- one two\n- three four\n- five six", 4, "- one two\n- three four"),
        ("Above.\n\n$$a\\,b\\,c\\,d = e + f + g$$\n\nBelow.", 3, None),
    ],
)  # fmt: skip
def test_a_text_is_cut_between_sentences(text: str, most: int, shown: str | None) -> None:
    assert slides._short(text, most) == (text if shown is None else shown)


def test_a_finding_is_divided_into_its_heading_and_the_rest() -> None:
    assert slides._divided("**It holds.** By .1. Mostly.") == ("It holds.", "By .1. Mostly.")
    assert slides._divided("**It holds**: by .1. Mostly.") == ("It holds: by .1.", "Mostly.")
    assert slides._divided("**It holds. So does that.**") == ("It holds. So does that.", "")
    assert slides._divided("**Is it? Not yet**: we wait.") == ("Is it? Not yet", "We wait.")


@pytest.mark.slow
@every_notebook
def test_slides_tell_the_story_of_a_notebook(source: Path) -> None:
    found = slides.slides_of(source)
    told, tasks = [s for s in found if not s.is_task], [s for s in found if s.is_task]
    assert 6 <= len(told) <= 16, [slide.heading for slide in told]
    assert told[0].heading.startswith("# ")
    is_appendix = source.stem.startswith(APPENDIX)
    seen = [slide.seen.content for slide in told if slide.seen is not None]
    assert seen and (is_appendix or any("<img" in content for content in seen))
    assert bool(tasks) != is_appendix
    assert all(s.seen.shape >= slides.TALLEST for s in told if s.seen), "nobody could read it"
    for slide in found[1:]:
        assert slide.seen is not None or len(slide.said().split()) >= 12 or slide.is_task, (
            slide.heading
        )
        code = re.findall(r"<pre>(.*?)</pre>", slide.seen.content if slide.seen else "", re.S)
        assert all(len(text.splitlines()) <= slides.MOST_LINES for text in code)


@pytest.mark.more
def test_slides_need_no_network_and_keys_lead_through_them(tmp_path: Path, browser) -> None:
    found = slides.slides_of(ROOT / "notebooks" / "geco" / "04_metrics.py")
    whole = slides.page("Title", [slide.html() for slide in found])
    assert not re.search(r"""(src|href)=["']https?://|<link|@import""", whole)
    assert "<img alt='figure of the notebook'" in whole and not re.search(r"KEPT\dEND", whole)
    file = tmp_path / "slides.html"
    file.write_text(whole)
    browser.go(file.as_uri())
    at = "document.getElementById('at').textContent"
    browser.wait(f"document.getElementById('at') && {at} === '1 / {len(found)}'")
    browser.press("ArrowRight")
    assert browser.run(at) == f"2 / {len(found)}"
    shown = "[...document.querySelectorAll('section')].filter(s => s.offsetHeight).length"
    assert browser.run(shown) == 1


@pytest.mark.more
@pytest.mark.slow
def test_every_slide_fits_on_a_screen(tmp_path: Path, browser) -> None:
    """`TOUCHSTONE_PICTURES` may name a folder for what was seen."""
    slides.build(tmp_path)
    faults, sizes = [], []
    for file in sorted(tmp_path.rglob("*.html")):
        if file.name == "index.html":
            continue
        name = file.relative_to(tmp_path).with_suffix("").as_posix()
        browser.go(file.as_uri(), *SCREEN)
        browser.wait(f"document.readyState === 'complete' && location.href.includes('{name}')")
        for i, (size, *wrong) in enumerate(json.loads(browser.run(LOOK)), start=1):
            sizes.append((size, name, i))
            if size < SMALLEST or max(wrong) > 0:
                faults.append((name, i, size, *wrong))
        if folder := os.environ.get("TOUCHSTONE_PICTURES"):
            for i in range(browser.run("slides.length")):
                browser.run(f"show({i})")
                time.sleep(0.1)
                picture = Path(folder) / f"{name.replace('/', '_')}_{i + 1:02}.png"
                browser.picture(picture)
    print("the smallest:", sorted(sizes)[:8])
    assert not faults
