"""Sphinx's settings for the site. `python tools/build_site.py` (make site) calls it.

Its sources are a copy of the repository's pages and notebooks in the same folders, so that links
lead on; that tool makes the copy. Nothing is executed, and nothing is loaded from the network.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from sphinx.addnodes import toctree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import lib.same_numbers  # noqa: E402

from lib import __version__  # noqa: E402

project = "Touchstone"
author = "The Touchstone maintainers"
project_copyright = "The Touchstone maintainers; code MIT, texts CC BY 4.0"
version = release = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
root_doc = "index"
exclude_patterns = ["README.md"]  # index.md includes it

# Notebooks are shown with the outputs that are committed.
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "html_image"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a notebook's section may begin one level down

# Formulas as SVG, from one file that stands beside the pages.
mathjax_path = "tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}}

default_role = "literal"  # of a docstring's backticks
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_use_ivar = True
napoleon_use_rtype = False  # "Returns: a line for each pair: ..." names no type

html_theme = "pydata_sphinx_theme"
html_title = "Touchstone"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_scaled_image_link = False  # a thumbnail leads where its own link leads
html_copy_source = False
html_show_search_summary = False  # a page that was opened as a file may not fetch others
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
_ALONE = (
    "index",
    "docs/doors",
    "docs/api",
    "docs/glossary",
    "docs/scale",
    "docs/play",
    "docs/release",
)
html_sidebars = {name: [] for name in (*_ALONE, "lib/README", "CONTRIBUTING", "CHANGELOG")}
html_theme_options = {
    "logo": {"text": "Touchstone"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search",
}


def _named_as_in_the_contents(app, page, template, context, doctree):
    """Call the previous and the next page of results by their names in the contents of results.

    The titles of these pages say "stage 4 of 5", where "geco: tables" says what follows.
    """
    contents = app.env.tocs.get("docs/results")
    if contents is None or page not in app.builder.relations:
        return
    entries = [pair for tree in contents.findall(toctree) for pair in tree["entries"]]
    names = {name: title for title, name in entries if title}
    for side, name in zip(("prev", "next"), app.builder.relations[page][1:]):
        if context.get(side) and name in names:
            context[side] = context[side] | {"title": escape(names[name])}


def setup(app):
    """Fields of a named tuple stand in its signature; "alias for field 0" says nothing more."""
    app.connect(
        "autodoc-skip-member",
        lambda app, what, name, obj, skip, options: skip or type(obj).__name__ == "_tuplegetter",
    )
    app.connect("html-page-context", _named_as_in_the_contents)
