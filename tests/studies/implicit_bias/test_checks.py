"""No number of a training below the gate is shown; word lists of no use to a test are refused."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from lib.core.errors import TouchstoneError
from lib.core.parameters import read_params
from lib.core.paths import ROOT, material
from lib.studies.implicit_bias.arms import ARMS
from lib.studies.implicit_bias.gate import share_right
from lib.studies.implicit_bias.kept_models import may_be_shown, passes_gate
from lib.studies.implicit_bias.weat import check_lists


def test_no_row_of_a_training_below_the_gate_is_shown() -> None:
    models = pd.DataFrame(
        {
            "model": ["base", "placebo", "placebo", "augmented"],
            "base": 0,
            "seed": [-1, 0, 1, 0],
            "right_first": [0.92, 0.9, 0.88, 0.96],
            "perplexity": [71.0, 73.0, 73.0, 900.0],
            "unigram": 736.0,
        }
    )
    models["passes"] = passes_gate(models, 0.9)
    assert models["passes"].tolist() == [
        True,
        True,
        False,
        False,
    ]  # exactly .9 is enough; a model worse than word frequencies is not
    rows = pd.DataFrame(
        {
            "model": ["base", "placebo", "placebo", "augmented"],
            "base": 0,
            "seed": [-1, 0, 1, 0],
            "bias": 0.5,
        }
    )
    assert may_be_shown(rows, models)[["model", "base", "seed"]].to_numpy().tolist() == [
        ["base", 0, -1],
        ["placebo", 0, 0],
    ]
    with pytest.raises(
        TouchstoneError, match="augmented, base 0, seed 0, was never put through the gate"
    ):
        may_be_shown(rows, models.iloc[:2])


@pytest.mark.parametrize("scale", ["small", "cpu"])
def test_the_committed_tables_hold_no_model_of_the_hub_below_the_gate(scale: str) -> None:
    stage = ROOT / "outputs/reference/implicit_bias" / scale / "04_metrics"
    tested = pd.read_csv(stage / "shown.csv")
    passed = tested[tested["passes"] | tested["model"].isin(["base", *ARMS])]
    least = read_params(ROOT / "params/implicit_bias" / f"{scale}.yaml")["gate"]
    assert (tested.loc[tested["passes"], "right_first"] >= least).all()
    assert ((tested["scores"] == "shown") == tested["passes"]).all()
    for name in ("distribution", "histogram"):
        rows = pd.read_csv(stage / f"{name}.csv")
        key = [
            "model",
            "base" if "base" in rows else "seed",
        ]  # tables of before there were several base models name the seed
        shown = rows[key].drop_duplicates()
        assert set(shown.itertuples(index=False, name=None)) <= set(
            passed[key].itertuples(index=False, name=None)
        ), name
    arms = pd.read_csv(stage / "arms.csv")
    assert set(arms.loc[arms["estimate"].notna(), "model"]) <= set(passed["model"])


def test_the_gate_s_interval_is_over_nouns() -> None:
    found = share_right([True] * 4 + [False] * 4, ["duke"] * 4 + ["monk"] * 4)
    assert found == {"right_first": 0.5, "right_low": 0.0, "right_high": 1.0}
    by_itself = share_right([True] * 4 + [False] * 4, list("abcdefgh"))
    assert by_itself["right_first"] == 0.5 and 0 < by_itself["right_low"] < 0.3


def test_every_training_at_small_passes_the_gate() -> None:
    """The tolerances of the arms' tables rest on it: no cell of them is empty."""
    stage = ROOT / "outputs/reference/implicit_bias/small/04_metrics"
    tested = pd.read_csv(stage / "shown.csv")
    assert tested["passes"].all() and set(tested["model"]) == {
        "base",
        "placebo",
        "even placebo",
        "augmented",
    }
    assert (
        pd.read_csv(stage / "arms.csv")["estimate"].notna().all()
        and pd.read_csv(stage / "power.csv")["detectable"].gt(0).all()
    )


def test_unusable_lists_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="the word list A is empty"):
        check_lists({"X": ["a"], "Y": ["b"], "A": []})
    with pytest.raises(TouchstoneError, match="X and Y have 1 and 2 words"):
        check_lists({"X": ["a"], "Y": ["b", "c"]})


def test_bundled_lists_and_phrases() -> None:
    lists = yaml.safe_load((material("implicit_bias") / "weat.yaml").read_text())
    for about in lists.values():
        check_lists({name: about[name] for name in "XYAB"}, [("X", "Y"), ("A", "B")])
        assert all(len(set(about[name])) == 8 for name in "XYAB")
    phrases = yaml.safe_load((material("implicit_bias") / "phrases.yaml").read_text())
    assert (
        len(phrases["male"]) == len(phrases["female"])
        and len(phrases["male"]) + len(phrases["female"]) >= 32
    )
