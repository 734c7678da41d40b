"""Draw lib as a house, from its own imports: rooms as boxes on their floors, an arrow where one
room imports another.

    python tools/house.py            # writes lib/house.svg
    python tools/house.py --check    # says what is out of date (a test calls this)

The floors are those of the law in pyproject.toml ([tool.importlinter]), the sentence in a room is
the first line of its docstring, the arrows are counted by grimp, which reads the imports without
running anything.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "lib" / "house.svg"
WIDTH, MARGIN, FLOOR, BOX = 1000, 24, 104, 70  # pixels
PER_LETTER = 6.7  # pixels of a letter at 12 points


def floors() -> list[list[str]]:
    """The rooms of each floor from the roof down, as the law names them."""
    law = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in law if contract["type"] == "layers")["layers"]
    return [[room.strip(" ()") for room in re.split(r"[|:]", layer)] for layer in layers]


def sentence(room: str) -> str:
    """The first line of a room's docstring."""
    path = ROOT / "lib" / room
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    first = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]
    return first.replace("`", "")


def arrows() -> Counter[tuple[str, str]]:
    """How many imports lead from one room to another."""
    graph = grimp.build_graph("lib", cache_dir=None)
    counted: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            ends = tuple((name.split(".") + ["lib"])[1] for name in (module, imported))
            if ends[0] != ends[1] and "lib" not in ends:
                counted[ends[0], ends[1]] += 1
    return counted


def draw() -> str:
    """The picture as SVG text."""
    rows = [[room for room in floor if _exists(room)] for floor in floors()]
    rows = [row for row in rows if row]
    boxes = {}
    for y, row in enumerate(rows):
        wide = (WIDTH - 2 * MARGIN - 12 * (len(row) - 1)) / len(row)
        for x, room in enumerate(row):
            boxes[room] = (MARGIN + x * (wide + 12), MARGIN + y * FLOOR, wide)
    height = 2 * MARGIN + FLOOR * (len(rows) - 1) + BOX
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" role="img">',
        "<title>The rooms of lib and who imports whom</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    lines = sorted((ends, n) for ends, n in arrows().items() if "core" not in ends)
    for i, ((upper, lower), n) in enumerate(lines):
        if upper in boxes and lower in boxes:
            parts.append(_arrow(boxes[upper], boxes[lower], n, i / max(1, len(lines) - 1)))
    parts += [_box(room, *place) for room, place in boxes.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _exists(room: str) -> bool:
    return (ROOT / "lib" / room).is_dir() or (ROOT / "lib" / f"{room}.py").is_file()


def _arrow(upper: tuple, lower: tuple, n: int, place: float) -> str:
    """A line from the floor of a box to the ceiling of another, each with a place of its own."""
    x1 = upper[0] + upper[2] * (0.08 + 0.84 * place)
    x2 = lower[0] + lower[2] * (0.08 + 0.84 * place)
    y1, y2 = upper[1] + BOX, lower[1]
    return (
        f'<path d="M{x1:.0f} {y1} L{x2:.0f} {y2 - 5}" stroke="#8a8a8a" fill="none" '
        f'stroke-width="{1 + min(n, 20) / 8:.1f}"/>'
        f'<path d="M{x2 - 4:.0f} {y2 - 7} L{x2:.0f} {y2} L{x2 + 4:.0f} {y2 - 7} Z" fill="#8a8a8a"/>'
    )


def _box(room: str, x: float, y: float, wide: float) -> str:
    fill = {"core": "#e9e3d3", "studies": "#d8e6f2"}.get(room, "#f6f3ea")
    words = _wrapped(sentence(room), int((wide - 20) / PER_LETTER))[:2]
    text = "".join(
        f'<text x="{x + 10:.0f}" y="{y + 42 + 16 * i:.0f}" font-size="12" fill="#333">'
        f"{escape(line)}</text>"
        for i, line in enumerate(words)
    )
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{BOX}" rx="4" '
        f'fill="{fill}" stroke="#555"/>'
        f'<text x="{x + 10:.0f}" y="{y + 23:.0f}" font-size="15" font-weight="bold">{room}</text>'
        f"{text}"
    )


def _wrapped(text: str, letters: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > letters:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def main(arguments: list[str]) -> int:
    """Write the picture, or check it."""
    picture = draw()
    if "--check" in arguments:
        is_fresh = PICTURE.is_file() and PICTURE.read_text() == picture
        print("" if is_fresh else "lib/house.svg is out of date: run python tools/house.py")
        return 0 if is_fresh else 1
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
