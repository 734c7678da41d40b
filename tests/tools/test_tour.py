"""The tour draws the committed figures from committed tables, and says what it drew."""

from __future__ import annotations

from pathlib import Path

import pytest
import tour

from lib.core.errors import TouchstoneError
from lib.core.paths import reference_dir


@pytest.mark.more
def test_a_study_is_drawn_from_its_tables(small_outputs: Path, capsys) -> None:
    assert tour.main(["cebab"]) == 0
    committed = {path.name for path in (reference_dir("cebab", "cpu") / "05_figures").glob("*.png")}
    drawn = small_outputs / "tour" / "cebab" / "cpu" / "05_figures"
    assert {path.name for path in drawn.glob("*.png")} == committed
    printed = capsys.readouterr().out
    assert all(f"drawn   cebab/cpu/05_figures/{name}" in printed for name in committed)
    assert "drawn   cebab/cpu/04_metrics/errors.png" in printed and "copied" not in printed
    n_all = len(list(reference_dir("cebab", "cpu").glob("0*/*.png")))
    assert f"{n_all} figures drawn in " in printed


def test_a_figure_that_was_not_drawn_is_named() -> None:
    assert "05_figures/figure_2b.png" in tour.missing("geco", {})


def test_a_study_without_a_published_run_is_refused(small_outputs: Path) -> None:
    with pytest.raises(TouchstoneError, match="gecko has no published run; write "):
        tour.main(["gecko"])
