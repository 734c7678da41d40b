"""The measurement of the demo: the arms find the same, the sums are sums, and a setting that one
arm lacks is refused. Nothing is timed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from small_models import as_rows

from lib.attribution import METHODS
from lib.core.errors import TouchstoneError
from lib.core.paths import ROOT
from lib.core.units import Units
from lib.models.text_model import RunsFromEmbeddings
from lib.studies.geco.grid import Unit


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "tools" / "benchmarks")
    import demo

    return demo


def unit(method: str, **own: object) -> Unit:
    return Unit("D_A", "C", 0, method, METHODS[method].settings(own), 0)


def test_both_arms_explain_every_row_and_agree(
    demo: object, bert: RunsFromEmbeddings, small_outputs: Path
) -> None:
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2])
    sources = SimpleNamespace(
        rows_of=lambda unit: rows, model_of=lambda unit: bert, mark_of=lambda unit: "this model"
    )
    asked = [
        unit("Saliency"),
        unit("DeepLift"),
        unit("Integrated Gradients", n_steps=5),
        unit("Gradient SHAP", n_samples=3),
        unit("Kernel SHAP", n_samples=12),
        unit("LIME", n_samples=12),
    ]
    scratch = small_outputs / "benchmarks" / "demo" / "scratch"
    found = demo.measure(asked, sources, Units("benchmarks", "demo", "scratch"), scratch)
    assert (
        found["difference"].item() < 2e-4
        and found["rows"].item() == 2
        and found["engine_s"].item() > 0
    )
    # the engine's arm keeps its units, as stage 03 does
    assert len(list(scratch.rglob("*.parquet"))) == len(asked)


def test_a_setting_that_the_other_arm_lacks_is_refused(demo: object) -> None:
    assert demo.sizes_of(unit("Integrated Gradients", n_steps=5)) == {
        "n_steps": 5,
        "rule": "riemann_middle",
    }
    with pytest.raises(
        TouchstoneError, match="Saliency has aggregation = 'l2', and the other arm knows 'l1'"
    ):
        demo.sizes_of(
            replace(
                unit("Saliency"), settings={**METHODS["Saliency"].settings(), "aggregation": "l2"}
            )
        )


def test_the_sums_by_hand(demo: object) -> None:
    stages = pd.DataFrame({"part": ["02", "03"], "engine_s": [10.0, 6.0], "beside_s": [12.0, 8.0]})
    models = pd.DataFrame(
        {
            "part": ["one", "two"],
            "rows": [3, 3],
            "engine_s": [1.0, 3.0],
            "original_s": [2.0, 10.0],
            "difference": [1e-6, 2e-6],
        }
    )
    table = demo.summary(stages, models).set_index("part")
    assert table.loc[
        "explaining, all models", ["engine_s", "original_s", "ratio", "rows"]
    ].tolist() == [4, 12, 3, 6]
    whole = table.loc["make demo"]
    assert whole["engine_s"] == 16 and whole["original_s"] == 16 - 4 + 12 and whole["ratio"] == 1.5
    assert whole["beside_s"] == 20 and whole["ratio_beside"] == 1.25
    assert "beside_s" not in demo.summary(stages.assign(beside_s=float("nan")), models)
    assert demo.summary(None, models)["part"].tolist() == ["one", "two", "explaining, all models"]
