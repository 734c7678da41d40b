"""What the site is made of: links lead on, pictures have words, absent pages are left out."""

from __future__ import annotations

import json

import build_site
import pytest

PAGES = {"README.md", "docs/doors.md", "notebooks/geco/README.md", "notebooks/geco/01_a.ipynb"}
NOTEBOOK, IMAGE = "../notebooks/geco/01_a.ipynb", '<img src="picture.png" alt="b">'
TRACKED = PAGES | {"docs/table.csv", "docs/picture.png", "lib/cli.py"}


def links(page: str) -> build_site.Links:
    return build_site.Links(page, PAGES, TRACKED)


@pytest.mark.parametrize(
    "page, written, on_the_site",
    [
        ("docs/doors.md", f"[a]({NOTEBOOK}#b)", f"[a]({NOTEBOOK}#b)"),
        ("docs/doors.md", "[a](../README.md#b)", "[a](../index.md#b)"),
        ("docs/doors.md", "[a](../notebooks/geco)", "[a](../notebooks/geco/README.md)"),
        ("docs/doors.md", "[a](table.csv)", '<a href="table.csv">a</a>'),
        ("README.md", "[`a`](lib/cli.py)", '<a href="lib/cli.py">`a`</a>'),
        ("docs/doors.md", "[a](absent/)", "a"),
        ("docs/doors.md", "[a](https://x.org/y) [b](#c)", "[a](https://x.org/y) [b](#c)"),
        ("docs/doors.md", "![alt](picture.png)", "![alt](picture.png)"),
        ("docs/doors.md", f"[{IMAGE}]({NOTEBOOK})", f"[{IMAGE}]({NOTEBOOK})"),
        ("README.md", "[![Open](https://x.org/y.svg)](https://x.org)", "[Open](https://x.org)"),
        ("docs/doors.md", "```\n[a](table.csv)\n```\n", "```\n[a](table.csv)\n```\n"),
    ],
)  # fmt: skip
def test_a_link_leads_on(page: str, written: str, on_the_site: str) -> None:
    assert links(page).rewrite(written) == on_the_site


def test_files_and_pictures_come_along() -> None:
    page = links("docs/doors.md")
    page.rewrite("[a](table.csv) ![b](picture.png) [c](../notebooks/geco)")
    assert page.files == {"docs/table.csv", "docs/picture.png"}
    assert page.pictures == {"docs/picture.png"}


def test_a_picture_of_a_notebook_is_named_after_its_section() -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A\n", "## The errors\n", "text"]},
        {"cell_type": "code", "metadata": {}, "source": ["# not a heading"], "outputs": []},
    ]
    page = json.loads(
        build_site.notebook_page(json.dumps({"cells": cells}), links("docs/doors.md"))
    )
    alt = page["cells"][1]["metadata"]["mystnb"]["image"]["alt"]
    assert alt == "Figure of the section: The errors"


def test_only_pages_that_exist_are_in_the_contents() -> None:
    lines = ["```{toctree}", "Doors <docs/doors>", "None <docs/absent>"]
    assert [build_site._is_there(line, PAGES) for line in lines] == [True, True, False]


def test_a_study_has_its_notebooks_below_it() -> None:
    below = build_site.contents("notebooks/geco/README.md")
    assert "01 data generation <01_data_generation>\n" in below
    assert below.index("05 figures <05_figures>\nappendix ") > below.index("04 metrics")
    assert build_site.contents("lib/README.md") == ""


def test_the_board_is_that_of_the_committed_run() -> None:
    page = build_site.board_page()
    assert "Integrated Gradients" in page and "nothing is decided" in page
    assert ">cheater" not in page.lower()
