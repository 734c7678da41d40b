"""Methods by name, and a user's own by module:function."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_models import as_rows

from lib.attribution import METHODS, Method, explain, resolve_method
from lib.core.errors import TouchstoneError
from lib.models.text_model import TextModel

OWN = '''
from lib.attribution import Method, TokenScores

def length(model, rows, power=1.0):
    """The longer the word, the more it matters."""
    return [[len(word) ** power for word in row.words] for row in rows]

def anything(model, rows, **settings):
    return [[settings["level"]] * len(row.words) for row in rows]

def ones(batch):
    return TokenScores(batch.is_word.float())

DEFAULTS = {"explained": "logit", "normalise_special": False}
COUNT = Method("Count pieces", ones, "own", "token", DEFAULTS)
NUMBER = 3
'''


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_explainers.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def test_an_own_function_joins_by_its_name(bert: TextModel) -> None:
    found = explain(bert, as_rows(["he sings"]), "my_explainers:length", {"power": 2})
    assert found.scores[0] == [4, 25] and found.method[0] == "my_explainers:length"
    assert found.settings[0] == '{"power": 2}'
    assert explain(bert, as_rows(["he sings"]), "my_explainers:anything", {"level": 5}).scores[
        0
    ] == [5, 5]


def test_an_own_token_method_joins_as_a_method(bert: TextModel) -> None:
    found = explain(bert, as_rows(["he sings"]), "my_explainers:COUNT")
    assert found.scores[0] == [1, 2] and found.method[0] == "Count pieces"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("saliency", "no method 'saliency'; did you mean 'Saliency'"),
        (
            "no_such_module:f",
            "No module named 'no_such_module'; put the module's folder on PYTHONPATH",
        ),
        ("my_explainers:lenght", "my_explainers has no 'lenght'"),
        ("my_explainers:NUMBER", "is int, not a function"),
    ],
)
def test_what_cannot_be_resolved_is_named(name: str, message: str) -> None:
    with pytest.raises(TouchstoneError, match=message):
        resolve_method(name)


def test_every_setting_of_a_method_has_a_default() -> None:
    for method in METHODS.values():
        assert method.settings() == dict(method.defaults)
        if method.level == "token":
            assert {"explained", "normalise_special"} <= set(method.defaults)


def test_the_settings_that_keys_of_finished_units_are_made_of() -> None:
    """A default that changes, or an option that creeps in, would make all units of geco anew."""
    token = {"normalise_special": False}
    logit, probability = {"explained": "logit", **token}, {"explained": "probability", **token}
    assert {
        name: METHODS[name].settings()
        for name in (
            "Saliency",
            "InputXGradient",
            "Guided Backprop",
            "DeepLift",
            "Gradient SHAP",
            "Integrated Gradients",
            "Kernel SHAP",
            "LIME",
            "Uniform random",
            "Pattern Variant",
            "First pronoun",
        )
    } == {
        "Saliency": {**logit, "aggregation": "l1"},
        "InputXGradient": {**logit, "aggregation": "sum"},
        "Guided Backprop": {**logit, "aggregation": "l2"},
        "DeepLift": {**logit, "aggregation": "sum"},
        "Gradient SHAP": {**logit, "aggregation": "sum", "n_samples": 5},
        "Integrated Gradients": {
            **probability,
            "aggregation": "sum",
            "n_steps": 50,
            "rule": "riemann_middle",
        },
        "Kernel SHAP": {**probability, "n_samples": 25},
        "LIME": {"explained": "probability", "n_samples": 100},
        "Uniform random": {},
        "Pattern Variant": {},
        "First pronoun": {},
    }


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("IG", "Integrated Gradients"),
        ("Int Grad", "Integrated Gradients"),
        ("GBP", "Guided Backprop"),
        ("KS", "Kernel SHAP"),
        ("SHAP", "Kernel SHAP"),
        ("grad-shap", "Gradient SHAP"),
        ("IxG", "InputXGradient"),
        ("DL", "DeepLift"),
        ("LRP", "AttnLRP"),
        ("lime", "LIME"),
    ],
)
def test_the_usual_abbreviation_of_a_method_is_understood(short: str, name: str) -> None:
    with pytest.raises(TouchstoneError, match=f"no method '{short}'; did you mean '{name}'"):
        resolve_method(short)


def test_options_left_at_their_defaults_are_not_settings() -> None:
    method = METHODS["Integrated Gradients"]
    assert method.settings({"tolerance": None, "precision": "float32"}) == method.settings()
    assert method.settings({"tolerance": 0.01})["tolerance"] == 0.01
    assert set(method.options) == {"tolerance", "placing", "min_steps", "max_steps", "precision"}


def test_a_method_without_the_common_settings_says_what_is_missing() -> None:
    with pytest.raises(TouchstoneError, match="'mine' of level token needs 'explained'"):
        Method("mine", lambda batch: None, "gradient", "token", {"normalise_special": False})


def test_a_gap_of_one_percent_is_a_method_of_its_own(bert: TextModel) -> None:
    """Named by its module, so that a study can have it beside the one with fixed points."""
    name = "lib.attribution.to_one_percent:METHOD"
    rows = as_rows(["he sings the old song .", "they sing ."], [1, 2])
    found = explain(bert, rows, name)
    asked = {"tolerance": 0.01, "placing": "panels"}
    expected = explain(bert, rows, "Integrated Gradients", asked)
    assert set(found["method"]) == {"Integrated Gradients to 1 %"}
    assert found["scores"].tolist() == expected["scores"].tolist()
    assert found["steps"].tolist() == expected["steps"].tolist()
    with pytest.raises(TouchstoneError, match="has no setting 'n_steps'"):
        resolve_method(name).settings({"n_steps": 9})
