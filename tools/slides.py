"""Slides of the notebooks, one self-contained HTML file each: no network, no library.

A cell with the tag `slide` is shown: of text its heading, its first paragraphs and formulas, of
code its pictures and small tables. The tasks of the exercises follow. Formulas are drawn by
matplotlib; what it cannot draw stands as LaTeX.
"""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path

from editions import NOTEBOOKS, sources
from matplotlib.mathtext import math_to_image
from mistune import html as as_html
from nbformat import NotebookNode

from lib.core.files import write_atomic
from lib.core.notebooks import add_outputs, read_notebook

MOST_WORDS, MOST_ROWS = 90, 12
_TEMPLATE = Path(__file__).with_name("slides.html")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\w)", re.S)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]+\)")
_DRAWN_AS = {  # what mathtext knows under another name, or needs not
    r"\textstyle": "",
    r"\ge": r"\geq",
    r"\le": r"\leq",
    r"\tfrac": r"\frac",
    r"\textit": r"\mathit",
    r"\text": r"\mathrm",
    r"\Big": "",
    r"\big": "",
    r"\quad": r"\;\;",
    r"\qquad": r"\;\;\;\;",
    r"\|": r"\Vert ",
}


def slides_of(source: Path) -> list[str]:
    """The slides of a notebook, as HTML."""
    notebook = read_notebook(source, "student")
    add_outputs(notebook, source.with_suffix(".ipynb"))
    found: list[str] = []
    for cell in notebook.cells:
        tags = set(cell.metadata.get("tags", []))
        is_task = "exercise" in tags and cell.cell_type == "markdown" and "###" in cell.source
        if "slide" in tags and cell.cell_type == "code":
            shown = _outputs(cell)
            if shown and found:  # below the text before it
                found[-1] += shown
        elif "slide" in tags or is_task:
            found += _text(cell.source, source, whole=is_task)
    return found


def build(folder: Path) -> None:
    """Write the slides of all notebooks, and a page that lists them."""
    lines = []
    for source in sources():
        name = source.relative_to(NOTEBOOKS).with_suffix(".html")
        slides = slides_of(source)
        title = re.sub(r"<[^>]+>", "", slides[0].partition("</h")[0])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / name, page(html.unescape(title).strip(), slides))
        lines.append(f"<li><a href='{name.as_posix()}'>{title}</a>, {len(slides)} slides</li>")
    write_atomic(
        folder / "index.html", page("Slides", [f"<h1>Slides</h1><ul>{''.join(lines)}</ul>"])
    )
    print(f"{folder}: {len(lines)} files of slides")


def page(title: str, slides: list[str]) -> str:
    """A file that shows slides one by one."""
    sections = "\n".join(f"<section>{slide}</section>" for slide in slides)
    whole = _TEMPLATE.read_text().replace("{{title}}", html.escape(title))
    return whole.replace("{{slides}}", sections)


def _text(text: str, source: Path, whole: bool) -> list[str]:
    """A text cell as slides, one for each of its headings: all of it, or how each begins."""
    parts = [part.strip() for part in re.split(r"^(?=#{1,3} )", text, flags=re.M)]
    parts = [part for part in parts if part.startswith("#")]
    # A heading alone is no slide, unless a figure follows below the cell.
    shown = [part for part in parts if "\n" in part or part is parts[-1]]
    return [_slide(part, source, whole) for part in shown]


def _slide(text: str, source: Path, whole: bool) -> str:
    blocks, shown, n_words = re.split(r"\n\s*\n", text.strip()), [], 0
    for block in blocks:
        is_links = block.startswith(("[Start here]", "Previous:", "previous:", "Next:"))
        if is_links or (not whole and block.startswith(("|", "```"))):
            continue
        n_words += len(_PICTURE.sub("", block).split())
        if shown and not whole and n_words > MOST_WORDS and "$$" not in block:
            break
        shown.append(block)
    text = _LINK.sub(r"\1", "\n\n".join(shown))
    kept: list[str] = []  # formulas and pictures, out of the way of Markdown

    def keep(content: str) -> str:
        kept.append(content)
        return f"KEPT{len(kept) - 1}END"

    text = _PICTURE.sub(lambda m: keep(_picture(source.parent / m[2], m[1])), text)
    text = _FORMULA.sub(lambda m: keep(_formula(m[1] or m[2], bool(m[1]))), text)
    rendered = str(as_html(text))
    for i, content in enumerate(kept):
        rendered = rendered.replace(f"KEPT{i}END", content)
    return rendered


def _formula(latex: str, is_display: bool) -> str:
    drawn = " ".join(latex.split())
    for name, other in sorted(_DRAWN_AS.items(), key=lambda pair: -len(pair[0])):
        drawn = re.sub(re.escape(name) + r"(?![A-Za-z])", lambda m, o=other: o, drawn)
    file = io.BytesIO()
    try:
        math_to_image(f"${drawn}$", file, dpi=220, format="png")
    except ValueError:  # mathtext does not know all of LaTeX
        return f"<code>{html.escape(latex)}</code>"
    data = base64.b64encode(file.getvalue()).decode()
    kind = "display" if is_display else "inline"
    return (
        f"<img class='{kind}' alt='{html.escape(latex, True)}' src='data:image/png;base64,{data}'>"
    )


def _picture(file: Path, alt: str) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    return f"<img alt='{html.escape(alt, True)}' src='data:image/png;base64,{data}'>"


def _outputs(cell: NotebookNode) -> str:
    """The pictures of a code cell, or its table if that is small."""
    data = [output.data for output in cell.get("outputs", []) if "data" in output]
    pictures = [d["image/png"].replace("\n", "") for d in data if "image/png" in d]
    if pictures:
        return "".join(
            f"<img alt='figure of the notebook' src='data:image/png;base64,{p}'>" for p in pictures
        )
    tables = [
        d["text/html"]
        for d in data
        if d.get("text/html", "").count("<tr") in range(1, MOST_ROWS + 2)
    ]
    return "".join(re.sub(r"<style.*?</style>", "", table, flags=re.S) for table in tables[:1])
