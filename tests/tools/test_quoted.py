"""Numbers in prose are those of their cells, and a result without a cell is seen."""

from __future__ import annotations

import pandas as pd
import pytest
import quoted

from lib.core.errors import TouchstoneError


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame(
        {
            "method": ["LIME", "Saliency", "Saliency"],
            "data, set": ["A", "A", "B"],
            "seed": [0, 0, 1],
            "MA": [0.554, -0.121, 2041.4],
            "low": [0.5, -0.2, 2000.0],
            "high": [0.6, 0.0, 2100.0],
            "verdict": ["holds", "fails", "fails"],
        }
    )
    monkeypatch.setattr(quoted, "_table", lambda path: rows)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("x/t[method=LIME].MA", 0.554),
        ("x/t[method=Saliency, seed=1].MA", 2041.4),
        ("x/t[method=LIME].verdict", "holds"),
        ("count x/t[verdict=fails]", 2),
        ("min x/t.MA", -0.121),
        ("max x/t[seed=0].MA", 0.554),
        ("abs x/t[method=Saliency, seed=0].MA", 0.121),
    ],
)
@pytest.mark.usefixtures("table")
def test_what_a_cell_stands_for(cell: str, value: float | str) -> None:
    assert quoted.value_of(cell) == value


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x/t[method=Saliency].MA", "names 2 rows"),
        ("x/t[method=SHAP].MA", "names 0 rows"),
        ("x/t[methods=LIME].MA", "no column 'methods'"),
        ("x/t[method=LIME].mass", "no column 'mass'"),
        ("what is this?", "cannot read"),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_cell_that_is_not_one_is_named(cell: str, message: str) -> None:
    with pytest.raises(TouchstoneError, match=message):
        quoted.value_of(cell)


def test_a_table_that_is_not_there_is_named() -> None:
    with pytest.raises(TouchstoneError, match="there is no table outputs/reference/geco/none.csv"):
        quoted.value_of("geco/none[a=b].c")


@pytest.mark.parametrize(
    ("value", "text", "unit", "written"),
    [
        (0.554, ".98", "", ".55"),
        (0.554, "0.9", "", "0.6"),
        (0.554, "9", " %", "55"),
        (0.554, "97.1", " %", "55.4"),
        (2041.4, "1,000", "", "2,041"),
        (-0.121, ".12", "", "-.12"),
        (-0.001, ".12", "", ".00"),
        ("holds", "fails", "", "holds"),
    ],
)
def test_a_number_stays_written_as_it_was(value, text: str, unit: str, written: str) -> None:
    assert quoted.written_like(value, text, unit) == written


@pytest.mark.usefixtures("table")
def test_old_values_are_replaced_where_they_stand() -> None:
    old = "LIME has **.99**<!-- x/t[method=LIME].MA -->, 12 %<!-- x/t[method=LIME].MA -->."
    new = "LIME has **.55**<!-- x/t[method=LIME].MA -->, 55 %<!-- x/t[method=LIME].MA -->."
    assert quoted.renewed(old) == new == quoted.renewed(new)


@pytest.mark.usefixtures("table")
def test_a_table_is_made_by_its_recipe() -> None:
    recipe = (
        "from: x/t\nwhere: seed=0\nrows: method\nvalues: MA\norder: {Saliency: plain, LIME: x}\n"
    )
    page = f"<!-- table\n{recipe}-->\n| old |\n<!-- end -->"
    assert "| plain | -.12 |\n| x | .55 |\n" in quoted.renewed(page)
    wide = "from: x/t\nrows: method\ncolumns: seed\nvalues: MA\ninterval: true\ndigits: 1\n"
    assert "| LIME | .6 [.5,&nbsp;.6] |  |" in quoted.table_of(wide)


@pytest.mark.usefixtures("table")
def test_a_table_of_several_tables_has_one_column_of_each() -> None:
    recipe = (
        "from:\n"
        "  mean: {from: x/t, values: MA}\n"
        "  of one seed: {from: x/t, where: seed=0, values: low}\n"
        "rows: [method, seed]\n"
        "order: {'Saliency, 0': plain, 'Saliency, 1': again}\n"
        "notes: {'Saliency, 1': a note}\n"
    )
    assert quoted.table_of(recipe) == (
        "|  | mean | of one seed |  |\n| --- | --- | --- | --- |\n"
        "| plain | -.12 | -.20 |  |\n| again | 2041.40 |  | a note |\n"
    )


@pytest.mark.usefixtures("table")
def test_each_value_of_a_table_can_have_its_own_digits() -> None:
    recipe = "from: x/t\nwhere: seed=1\nrows: method\nvalues: [MA, low]\ndigits: {MA: 0, low: 1}\n"
    assert "| Saliency | 2041 | 2000.0 |" in quoted.table_of(recipe)


def test_results_without_a_cell_are_seen_and_other_numbers_are_not() -> None:
    told = ".98<!-- x/t[method=LIME].MA --> of Table 3, 100 samples, 95 % intervals, `0.7`, 2021"
    assert quoted.untold(told) == []
    assert len(quoted.untold("It has .98, others 77 % or 2,041.")) == 3


PAGES = quoted.pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(quoted.ROOT)))
def test_every_quoted_result_is_its_cell(path) -> None:
    assert quoted.untold(PAGES[path]) == []
    text = path.read_text()
    assert quoted.renewed(text) == text, "run `make numbers`"


def test_a_line_of_the_readme_links_to_the_run_that_it_quotes() -> None:
    lines = (quoted.ROOT / "README.md").read_text().splitlines()
    quoting = [line for line in lines if quoted.QUOTE.search(line)]
    assert len(quoting) >= 3
    for line in quoting:
        cells = [quoted.CELL.fullmatch(m["cell"]) for m in quoted.QUOTE.finditer(line)]
        runs = {"/".join(cell[2].split("/")[:2]) for cell in cells}
        assert all(f"](outputs/reference/{run}/" in line for run in runs), line[:80]
