"""Slides of the notebooks, one self-contained HTML file each: no network, no library.

A cell with the tag `slide` is shown, and a slide has one idea. Every heading of a text cell begins
one, with the first sentences below it. A code cell adds what it shows: a picture, a small table,
or short code; a second picture goes on a slide of its own. A text without a heading is added to
the slide before it. Each finding of *What we found* has a slide with its picture. The tasks of the
exercises follow. Formulas are drawn by matplotlib; what it cannot draw stands as LaTeX.
"""

from __future__ import annotations

import base64
import html
import io
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from editions import NOTEBOOKS
from markdown_it import MarkdownIt
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from nbformat import NotebookNode

from lib.core.files import write_atomic
from lib.core.notebooks import add_outputs, find_sources, read_notebook

MOST_ROWS, MOST_LINES = 12, 15  # of a table, of code
MOST_WORDS = {"alone": 80, "beside": 50, "each": 32}  # of a text; beside a picture; two texts there
# Width over height of what stands above its text, and of what fills the height of the slide.
# Taller than a page of print, and nobody in the room reads it.
WIDE, TALL, TALLEST = 1.7, 0.9, 0.7
MOST_LETTERS = 44  # in a row of a table that stands beside its text
_LETTERS = FontProperties(size=10)  # points, and so a formula knows its height in letters
_TEMPLATE = Path(__file__).with_name("slides.html")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\w)", re.S)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]+\)")
# What only a page needs: hidden notes, and links to a figure, a table or another page.
_OF_PAGES = re.compile(
    r"<!--.*?-->|\s*\(\[[^\]]*\]\([^)]*\)\)"
    r"|\[(?:See [^\]]*|Figure|Table|Claims)\]\([^)]*\)\.?"
    r"|^(?:\[Start here\]|[Pp]revious:|[Bb]efore:|[Nn]ext:).*?(?=\n\s*\n|\Z)",
    re.S | re.M,
)
_HEADINGS = re.compile(r"^#{1,3} .*$", re.M)
_SENTENCES = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][*)])|(?<=[.!?]\*\*))\s+(?=[A-Z*\"`$\[])")
_ITEMS = re.compile(r"\n(?=(?:-|\d+\.) )")
_OF_CELLS = re.compile(
    r"\b(?:next|this) cell\b|\bthe cell\b|\bassert|\b(?:page|cells) below\b|\blast cell\b|^Next: ",
    re.I,
)
# The end of a text that has no full stop, or is a heading of what follows it.
_ANNOUNCES = re.compile(r"^(?![->|]|\d+\.|.*\$\$)(?:.*[\w:,]|\*\*[^*]+\*\*)$", re.S)
_GUESS = "**Stop and guess"  # what follows its questions is the answer
_DRAWN_AS = {  # what mathtext knows under another name, or needs not
    r"\textstyle": "",
    r"\ge": r"\geq",
    r"\le": r"\leq",
    r"\tfrac": r"\frac",
    r"\textit": r"\mathit",
    r"\Big": "",
    r"\big": "",
    r"\quad": r"\;\;",
    r"\qquad": r"\;\;\;\;",
    r"\|": r"\Vert ",
    r"\lVert": r"\Vert",
    r"\rVert": r"\Vert",
}


@dataclass
class Seen:
    """What a slide shows: HTML, and its width over its height."""

    content: str
    shape: float


@dataclass
class Slide:
    """One idea.

    Attributes:
        heading: Markdown, with its # in front.
        texts: what cells say of it, uncut.
        seen: what there is to look at, if anything.
        is_task: a task of the exercises, of which nothing is cut.
    """

    heading: str
    texts: list[str] = field(default_factory=list)
    seen: Seen | None = None
    is_task: bool = False

    def said(self) -> str:
        """Its first sentences, as Markdown."""
        texts = [text for text in self.texts if text.strip()]
        most = "alone" if self.seen is None else "beside" if len(texts) < 2 else "each"
        texts = texts if self.is_task else [_short(text, MOST_WORDS[most]) for text in texts]
        return "\n\n".join(texts).strip()

    def html(self) -> str:
        """The slide: its heading, what there is to look at, and its first sentences."""
        heading, said = _rendered(self.heading), _rendered(self.said())
        if self.seen is None:
            return f"<section>{heading}<div class='said'>{said}</div></section>"
        if self.seen.shape < TALL:
            layout, said, heading = "tall", heading + said, ""
        else:
            layout = "above" if self.seen.shape >= WIDE or not said else "beside"
        both = [f"<div class='seen'>{self.seen.content}</div>", f"<div class='said'>{said}</div>"]
        inside = "".join(reversed(both) if self.is_task else both)
        return f"<section class='{layout}'>{heading}<div class='both'>{inside}</div></section>"


def slides_of(source: Path) -> list[Slide]:
    """The slides of a notebook."""
    notebook = read_notebook(source, "student")
    add_outputs(notebook, source.with_suffix(".ipynb"))
    found: list[Slide] = []
    section = ""  # the heading above a cell, whether its text is shown or not
    is_shown = True  # the code cell before
    for cell in notebook.cells:
        tags = set(cell.metadata.get("tags", []))
        is_text = cell.cell_type == "markdown"
        if "exercise" in tags and is_text and (task := re.search(r"^### .*", cell.source, re.M)):
            title = task[0].replace("### ", "### Exercise ")
            found.append(Slide(title, [cell.source[task.end() :]], is_task=True))
            section = title
        elif "hole" in tags:
            _see(found, section, _code(cell.source))
        elif "slide" in tags and is_text:
            _read(found, section, cell.source, source.parent, is_shown)
        elif "slide" in tags:
            for seen in _shown(cell):
                _see(found, section, seen, is_answer=True)
        is_shown = is_shown if is_text else "slide" in tags
        if is_text and "exercise" not in tags:
            section = ([section] + _HEADINGS.findall(cell.source))[-1]
    # A heading alone is no slide; the first one is the title.
    return [slide for i, slide in enumerate(found) if i == 0 or slide.seen or slide.said()]


def build(folder: Path) -> None:
    """Write the slides of all notebooks, and a page that lists them."""
    lines = []
    for source in find_sources():
        name = source.relative_to(NOTEBOOKS).with_suffix(".html")
        slides = slides_of(source)
        title = re.sub(r"<[^>]+>", "", _rendered(slides[0].heading)).strip()
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / name, page(html.unescape(title), [s.html() for s in slides]))
        lines.append(f"<li><a href='{name.as_posix()}'>{title}</a>, {len(slides)} slides</li>")
    listed = f"<section><h1>Slides</h1><ul>{''.join(lines)}</ul></section>"
    write_atomic(folder / "index.html", page("Slides", [listed]))
    print(f"{folder}: {len(lines)} files of slides")


def page(title: str, sections: list[str]) -> str:
    """A file that shows slides one by one."""
    whole = _TEMPLATE.read_text().replace("{{title}}", html.escape(title))
    return whole.replace("{{slides}}", "\n".join(sections))


def _read(found: list[Slide], section: str, text: str, folder: Path, is_shown: bool) -> None:
    """Add a text cell: a slide for each of its headings.

    What stands before the first heading mostly speaks of the code cell before; so it is added to
    the last slide if that cell is shown.
    """
    lead, *parts = re.split(r"^(?=#{1,3} )", text, flags=re.M)
    lead = re.sub(r"^\*Reading it\.\*\s*", "", lead)
    is_said = not parts or (is_shown and found and found[-1].heading == section)
    if len(lead.split()) > 3 and is_said:
        if not found or found[-1].heading != section:
            found.append(Slide(section))
        found[-1].texts.append(_OF_PAGES.sub("", lead))
    for part in parts:
        heading, _, body = part.partition("\n")
        if heading.endswith("What we found"):
            found += _findings(heading, body, folder, found[-1])
        elif not heading.endswith("Hand-over"):
            found.append(Slide(heading, [_PICTURE.sub("", _OF_PAGES.sub("", body))]))
            for picture in _PICTURE.finditer(body):
                _see(found, heading, _file(folder / picture[2], picture[1]))


def _findings(heading: str, text: str, folder: Path, title: Slide) -> Iterator[Slide]:
    """A slide for each finding that links its picture, and one for the others.

    What follows the list says what the notebook is about, and belongs to its title, or at which
    scale was found what is listed.
    """
    before, *items = re.split(r"^- ", text, flags=re.M)
    items[-1], _, after = items[-1].partition("\n\n")
    rest = re.split(r"\n\s*\n", _OF_PAGES.sub("", after).strip())
    title.texts.append("\n\n".join(text for text in rest if "scale `cpu`" not in text))
    notes = [_SENTENCES.split(text)[0] for text in rest if re.match(r"Th(?:is|ese)\b", text)]
    note = next((text for text in notes if "scale `cpu`" in text), "")
    others = []
    for item in items:
        finding, more = _divided(" ".join(_OF_PAGES.sub("", item).split()))
        if link := re.search(r"\]\(([^)\s]+\.png)\)", item):
            alt = f"The figure behind it: {Path(link[1]).stem.replace('_', ' ')}"
            picture = _file(folder / link[1], alt)
            small = (folder / link[1]).parents[1] / "thumbnail.png"  # of the study's results
            if picture.shape < TALLEST and small.is_file():
                picture = _file(small, alt)
            yield Slide(f"## {finding}", [text for text in (more, note) if text], picture)
            note = ""
        else:
            others.append((finding, more))
    if others:
        n_words = sum(len(f"{finding} {more}".split()) for finding, more in others)
        is_short = n_words <= MOST_WORDS["alone"]
        ended = [(f if f.endswith((".", "?", "!")) else f"{f}.", more) for f, more in others]
        lines = [f"- **{finding}** {more if is_short else ''}" for finding, more in ended]
        yield Slide(heading, [f"{before.strip()}\n\n" + "\n".join(lines), note])


def _divided(item: str) -> tuple[str, str]:
    """A finding in one line, and what else is said of it."""
    bold = re.match(r"\*\*(.+?)\*\*(?:$|\W*\s(.*))", item)
    first, *others = _SENTENCES.split(item, maxsplit=1)
    if bold and (bold[1].endswith((".", "!", "?")) or first.count("**") % 2):
        more = bold[2] or ""
        first, others = bold[1], [more[:1].upper() + more[1:]]
    return first.replace("**", ""), "".join(others)


def _see(found: list[Slide], section: str, seen: Seen, is_answer: bool = False) -> None:
    """Show something on the section's slide, or on one more under the same heading."""
    is_full = not found or found[-1].heading != section or found[-1].seen is not None
    if is_full or (is_answer and _GUESS in "".join(found[-1].texts)):
        found.append(Slide(section, is_task=bool(found) and found[-1].is_task))
    found[-1].seen = seen


def _short(text: str, most: int) -> str:
    """The beginning of a text: whole sentences, items or formulas, about `most` words in all.

    A table stays if it is announced and small. A question to the reader stays, and ends the text.
    """
    blocks, _, guess = text.strip().partition(_GUESS)
    kept: list[str] = []
    n_words = 0
    for block in re.split(r"\n\s*\n", blocks):
        is_announced = bool(kept) and _ANNOUNCES.search(kept[-1].rstrip()) is not None
        is_small = block.count("\n") < 7
        if block.startswith("```") or (block.startswith("|") and not (is_announced and is_small)):
            continue
        is_list = re.match(r"(?:-|\d+\.) ", block) is not None
        # Half a list of conditions would say something else.
        is_listed = is_list and (is_announced or block[0].isdigit())
        is_whole = is_listed or "$$" in block or block.startswith((">", "|"))
        parts = [block] if is_whole else (_ITEMS if is_list else _SENTENCES).split(block)
        taken: list[str] = []
        for part in parts:
            if not part or (_OF_CELLS.search(part) and not taken):
                continue
            n_words += len(re.sub(r"\$\$.*?\$\$|\|", "", part, flags=re.S).split())
            is_enough = n_words > most * (1.5 if is_listed else 1) and (kept or taken)
            if _OF_CELLS.search(part) or (is_enough and not (is_list and len(taken) == 1)):
                break
            taken.append(part)
        if taken:
            kept.append(("\n" if is_list else " ").join(taken))
        if n_words > most:
            break
    if kept and _ANNOUNCES.search(kept[-1].rstrip()):  # what is cut
        *before, _ = _SENTENCES.split(kept[-1])
        kept[-1:] = [" ".join(before)] if before or len(kept) == 1 else []
    if guess:
        whole = (_GUESS + guess).split("\n\n")[0]
        asked = _SENTENCES.split(_GUESS + guess)
        last = max((i for i, part in enumerate(asked) if part.endswith("?")), default=None)
        kept.append(" ".join(asked[: last + 1]) if last is not None else whole)
    return "\n\n".join(kept)


def _rendered(text: str) -> str:
    """Markdown as HTML, with formulas as pictures and without links."""
    kept: list[str] = []  # formulas, out of the way of Markdown

    def keep(match: re.Match[str]) -> str:
        kept.append(_formula(match[1] or match[2], bool(match[1])))
        return f"KEPT{len(kept) - 1}END"

    text = _FORMULA.sub(keep, _LINK.sub(r"\1", text))
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for i, content in enumerate(kept):
        rendered = rendered.replace(f"KEPT{i}END", content)
    return rendered


def _formula(latex: str, is_display: bool) -> str:
    drawn = " ".join(latex.split())
    for name, other in sorted(_DRAWN_AS.items(), key=lambda pair: -len(pair[0])):
        drawn = re.sub(re.escape(name) + r"(?![A-Za-z])", lambda m, o=other: o, drawn)
    drawn = re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", drawn)
    file = io.BytesIO()
    try:
        depth = math_to_image(f"${drawn}$", file, prop=_LETTERS, dpi=220, format="png")
    except ValueError:  # mathtext does not know all of LaTeX
        return f"<code>{html.escape(latex)}</code>"
    _, height = _size(file.getvalue())
    style = f"height: {height / 220 * 72 / 10:.2f}em; vertical-align: {-depth / 10:.2f}em"
    data = base64.b64encode(file.getvalue()).decode()
    kind = "display" if is_display else "inline"
    return (
        f"<img class='{kind}' style='{style}' alt='{html.escape(latex, True)}' "
        f"src='data:image/png;base64,{data}'>"
    )


def _file(path: Path, alt: str) -> Seen:
    """A picture from a file."""
    data = path.read_bytes()
    if path.suffix != ".svg":
        return _png(data, alt)
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', data.decode())
    assert box, f"{path} has no viewBox"
    return _picture(data, "svg+xml", alt, float(box[1]) / float(box[2]))


def _size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels."""
    return struct.unpack(">II", png[16:24])


def _png(data: bytes, alt: str) -> Seen:
    width, height = _size(data)
    return _picture(data, "png", alt, width / height)


def _picture(data: bytes, kind: str, alt: str, shape: float) -> Seen:
    address = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return Seen(f"<img alt='{html.escape(alt, True)}' src='{address}'>", shape)


def _code(text: str) -> Seen:
    """Code, which stands above its text."""
    return Seen(f"<pre>{html.escape(text)}</pre>", WIDE)


def _shown(cell: NotebookNode) -> list[Seen]:
    """What a code cell shows, if a room can read it: its pictures, or its table, or code."""
    data = [output.data for output in cell.get("outputs", []) if "data" in output]
    pictures = [base64.b64decode(d["image/png"]) for d in data if "image/png" in d]
    if pictures:
        drawn = [_png(picture, "figure of the notebook") for picture in pictures]
        return [seen for seen in drawn if seen.shape >= TALLEST]
    for table in (d["text/html"] for d in data if "text/html" in d):
        if table.count("<tr") <= MOST_ROWS + 1:
            content = re.sub(r"<style.*?</style>", "", table, flags=re.S)
            rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in content.split("</tr>")]
            n_letters = max(sum(2 + len(word) for word in row) for row in rows)
            return [Seen(content, WIDE if n_letters > MOST_LETTERS else 1.0)]
    sources = [d["text/markdown"] for d in data if "text/markdown" in d]
    code = [re.sub(r"```(?:python)?\n?", "", source).strip() for source in sources]
    return [_code(text) for text in code if len(text.splitlines()) <= MOST_LINES]
