"""The figures of the published runs, for print: what is drawn from committed tables, and how."""

from __future__ import annotations

from pathlib import Path

import paper_figures
import pytest
import redraw

from lib.core.errors import TouchstoneError
from lib.core.paths import reference_dir

NOTEBOOK = """# %% tags=["parameters"]
scale = "small"

# %%
import math
from heavy import train

WIDE = 3
model = train()

# %%
scores = model.scores()
stage.table("scores", scores)

# %%
drawn = scores[scores["x"] > WIDE]
unused = model.other()
figure, ax = plt.subplots()
ax.plot(drawn["x"], math.sqrt(2))
_ = ax.set_title("scores")
for name in drawn:
    ax.text(0, 0, name)
stage.figure("scores", figure)
stage.table("after", drawn)
"""


def test_only_what_a_figure_needs_is_run(tmp_path: Path) -> None:
    source = tmp_path / "01_toy.py"
    source.write_text(NOTEBOOK)
    kept = [redraw.ast.unparse(node) for node in redraw.needed(source, "scores", {"scores", "plt"})]
    assert [line.split("\n")[0] for line in kept] == [
        "import math",
        "WIDE = 3",
        "drawn = scores[scores['x'] > WIDE]",
        "figure, ax = plt.subplots()",
        "ax.plot(drawn['x'], math.sqrt(2))",
        "_ = ax.set_title('scores')",
        "for name in drawn:",
        "stage.figure('scores', figure)",
    ]


@pytest.mark.more
def test_all_figures_of_a_study_are_written(tmp_path: Path, capsys) -> None:
    assert paper_figures.main(["implicit_bias", "--into", str(tmp_path)]) == 0
    committed = {
        path.relative_to(reference_dir("implicit_bias", "cpu")).with_suffix("")
        for path in reference_dir("implicit_bias", "cpu").glob("0*/*.png")
    }
    written = tmp_path / "implicit_bias"
    for kind in ("pdf", "svg", "txt"):
        found = {path.relative_to(written).with_suffix("") for path in written.rglob(f"*.{kind}")}
        assert found == committed
    assert all(len(path.read_text().split()) > 8 for path in written.rglob("*.txt"))
    printed = capsys.readouterr().out
    assert "not drawn" not in printed and f"{len(committed)} figures in " in printed


def test_a_study_without_a_published_run_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="gecko has no published run; write "):
        paper_figures.main(["gecko"])
