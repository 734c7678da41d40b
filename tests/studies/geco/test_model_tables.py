"""Tables about models that are asked once more: made once, found without weights, made anew
where something changed.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from lib.attribution import METHODS
from lib.core.stage import Stage
from lib.studies.geco.as_released import AS_RELEASED
from lib.studies.geco.grid import mark
from lib.studies.geco.model_tables import ModelTables

TEST = pd.DataFrame(
    [
        (f"{i}-{name}", i, target, ["she", "sings"])
        for i in range(4)
        for target, name in enumerate("FM")
    ],
    columns=["row_id", "sentence_idx", "target", "sentence"],
)


def explained(shift: float = 0.0) -> pd.DataFrame:
    rows = pd.concat(
        [
            TEST.assign(dataset=dataset, scheme=scheme, seed=seed, method=method)
            for dataset, scheme, seed, method in (
                ("D_A", "C", 0, "LIME"),
                ("D_A", "C", 1, "LIME"),
                ("D_S", "C", 0, "LIME"),
                ("D_A", "CE", 0, "LIME"),
                ("D_A", "-", -1, "Uniform random"),
            )
        ]
    )
    return rows.assign(scores=[[0.1 + shift, 0.2]] * len(rows))


def ask(small_outputs: Path, **changed: object) -> ModelTables:
    stage = Stage("geco", "small", "04_metrics", small_outputs / "geco" / "small" / "04_metrics")
    settings = {"explanations": explained(), "n_base": 2, "predictions": pd.DataFrame()} | changed
    asked = ModelTables(stage, dataset="D_A", schemes=["C", "CE"], test=TEST, **settings)
    asked.sources = SimpleNamespace(mark_of=lambda unit: f"mark of {unit.scheme}")
    return asked


def test_the_first_seed_of_one_data_set_and_whole_base_sentences_are_asked(
    small_outputs: Path,
) -> None:
    asked = ask(small_outputs)
    assert len(asked.rows) == 4 and asked.rows["sentence_idx"].nunique() == 2
    assert len(asked.explanations) == 12 and set(asked.of("C")["scheme"]) == {"C", "-"}
    assert len(ask(small_outputs, n_base=0).rows) == 8


def test_several_trainings_are_asked_one_after_the_other(small_outputs: Path) -> None:
    asked = ask(small_outputs, n_trainings=2)
    assert asked.trainings("C") == [0, 1] and asked.trainings("CE") == [0]
    of_second = asked.of("C", 1)
    assert set(of_second["seed"]) == {1, -1} and len(of_second) == 8
    made = []

    def faith(scheme: str, k: int) -> pd.DataFrame:
        made.append((scheme, k))
        return pd.DataFrame({"method": ["LIME", "Uniform random"], "seed": [k, -1]})

    found = asked.tables("faith", faith)
    assert made == [("C", 0), ("C", 1), ("CE", 0)]
    # a floor, too, is asked about a model, and counts once for each
    assert found["seed"].tolist() == [0, 0, 1, 1, 0, 0]
    assert found["model"].tolist() == ["C"] * 4 + ["CE"] * 2
    assert asked.tables("faith", faith, schemes=["CE"])["model"].tolist() == ["CE", "CE"]
    units = asked.stage.path("units")
    names = {path.stem for path in units.glob("*.csv")}
    assert names == {"D_A_C_seed0_faith", "D_A_C_seed1_faith", "D_A_CE_seed0_faith"}


def test_one_form_each_may_be_all_that_is_asked(small_outputs: Path) -> None:
    asked = ask(small_outputs, n_base=0, one_form=True)
    assert asked.rows["row_id"].tolist() == ["0-F", "1-M", "2-F", "3-M"]
    assert set(asked.explanations["row_id"]) == set(asked.rows["row_id"])
    assert asked.one_form_each(2)["row_id"].tolist() == ["0-F", "1-M"]


def test_methods_come_with_the_settings_that_they_had_and_floors_do_not(
    small_outputs: Path,
) -> None:
    lime = explained().assign(settings='{"n_samples": 7}')
    asked = ask(
        small_outputs,
        explanations=pd.concat([lime, lime.query("scheme == 'C'").assign(method="mine:own")]),
    )
    assert asked.methods("C") == [(METHODS["LIME"], {"n_samples": 7})] == asked.methods("CE")
    released = explained().assign(settings='{"variant": "as_released"}')
    ((method, _),) = ask(small_outputs, explanations=released).methods("C")
    assert method is AS_RELEASED["LIME"]


def test_one_form_of_each_base_sentence_the_forms_taking_turns(small_outputs: Path) -> None:
    asked = ask(small_outputs, n_base=0)
    assert asked.one_form_each(3)["row_id"].tolist() == ["0-F", "1-M", "2-F"]
    assert asked.one_form_each(0).equals(asked.rows)


def test_a_table_is_made_once_and_found_without_the_model(small_outputs: Path) -> None:
    made = pd.DataFrame({"row_id": ["0-F"], "value": [0.123456789]})
    asked = ask(small_outputs)
    first = asked.tables("faith", lambda scheme, k: made.assign(value=len(scheme)), deletion="pad")
    assert first["model"].tolist() == ["C", "CE"] and first["value"].tolist() == [1, 2]
    nothing = lambda scheme, k: pytest.fail("made again")  # noqa: E731
    pd.testing.assert_frame_equal(
        ask(small_outputs).tables("faith", nothing, deletion="pad"), first
    )


def test_published_tables_of_before_are_found_by_four_digits_and_new_ones_by_all(
    small_outputs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lib.core.units.reference_dir", lambda study, scale: tmp_path / "reference")
    steps = explained(0.01234)
    asked = ask(small_outputs, explanations=steps, reuse=True)
    scores = steps[steps["row_id"].isin(asked.rows["row_id"]) & (steps["dataset"] == "D_A")]
    scores = scores[scores["scheme"].isin(["C", "-"]) & (scores["seed"] <= 0)]
    scores = scores[["method", "row_id"]].assign(scores="0.1123 0.2")
    key = asked.store.key(
        model="mark of C", scores=mark(scores.sort_values(["method", "row_id"])), seed=0, what=1
    )
    asked.store.save("D_A_C_seed0_faith", key, pd.DataFrame({"value": [0.5]}))
    nothing = lambda: pytest.fail("made again")  # noqa: E731
    assert asked.table("faith", "C", nothing, what=1)["value"].tolist() == [0.5]
    # what differs in the fifth digit only is another explanation, and is asked for anew
    made = []
    for shift in (0.1, 0.1000001):
        asked = ask(small_outputs, explanations=explained(shift))
        asked.table("faith", "C", lambda: made.append(1) or pd.DataFrame({"value": [1]}))
    assert len(made) == 2


@pytest.mark.parametrize("changed", [{"explanations": explained(0.5)}, {"n_base": 3}, {"seed": 7}])
def test_other_explanations_rows_or_settings_make_it_anew(
    small_outputs: Path, changed: dict
) -> None:
    made = []
    ask(small_outputs).table("faith", "C", lambda: pd.DataFrame({"value": [1]}), deletion="pad")
    ask(small_outputs, **changed).table(
        "faith", "C", lambda: made.append(1) or pd.DataFrame({"value": [2]}), deletion="pad"
    )
    ask(small_outputs).table(
        "faith", "C", lambda: made.append(1) or pd.DataFrame({"value": [3]}), deletion="mask"
    )
    assert len(made) == 2
