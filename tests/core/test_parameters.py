"""A parameter file is refused for its first mistake, with its name and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import IPython
import pytest

from lib.core.errors import TouchstoneError
from lib.core.parameters import (
    check_fields,
    check_params,
    check_range,
    check_running_notebook,
    check_together,
    notebook_parameters,
    read_params,
    read_ranges,
    study_parameters,
)

CELL = """
# %% [markdown]
# # A title

# %% tags=["parameters"]
scale = "small"  # which parameters; the folder below outputs/
seed = 0  # seed of everything random
lr = 1e-3  # step size, the paper's eta
epochs = {"C": 3, "CEf": 2}  # passes over the data
rates = {"C": 1, "CEf": 1e-4}  # one whole number among fractions
methods = ["LIME"]  # names
explanation_files = []  # paths
frozen = True  # yes or no
shape = {
    "a": 1,  # inside
}  # at the end

# %%
later = 1
"""


@pytest.fixture
def parameters(tmp_path: Path) -> dict[str, object]:
    (tmp_path / "01_a.py").write_text(CELL)
    return notebook_parameters(tmp_path / "01_a.py")


def test_the_parameters_cell_is_read_without_comments(parameters: dict[str, object]) -> None:
    assert parameters == {
        "scale": "small",
        "seed": 0,
        "lr": 0.001,
        "epochs": {"C": 3, "CEf": 2},
        "rates": {"C": 1, "CEf": 1e-4},
        "methods": ["LIME"],
        "explanation_files": [],
        "frozen": True,
        "shape": {"a": 1},
    }


@pytest.mark.parametrize(
    "cell, says",
    [
        ("seed = 1 + 1", "`seed = 1 \\+ 1` among the parameters is not `name = literal`"),
        ("import os", "not `name = literal`"),
    ],
)
def test_only_literals_are_parameters(tmp_path: Path, cell: str, says: str) -> None:
    (tmp_path / "01_a.py").write_text(f'# %% tags=["parameters"]\n{cell}\n')
    with pytest.raises(TouchstoneError, match=says):
        notebook_parameters(tmp_path / "01_a.py")


def test_a_notebook_has_one_parameters_cell(tmp_path: Path) -> None:
    (tmp_path / "01_a.py").write_text("# %%\nseed = 0\n")
    with pytest.raises(TouchstoneError, match='01_a.py has 0 cells tagged "parameters"'):
        notebook_parameters(tmp_path / "01_a.py")


def test_a_name_means_the_same_in_all_notebooks(tmp_path: Path) -> None:
    for name, value in (("01_a.py", "1"), ("02_b.py", "1.0")):  # equal, but not of one kind
        (tmp_path / name).write_text(f'# %% tags=["parameters"]\nalpha = {value}\n')
    with pytest.raises(
        TouchstoneError, match="02_b.py: alpha = 1.0, but an earlier notebook has 1"
    ):
        study_parameters(sorted(tmp_path.glob("*.py")))


@pytest.mark.parametrize(
    "text, says",
    [
        ("sed: 1", "x.yaml: no notebook has a parameter 'sed'; did you mean 'seed'\\?"),
        ("lr: 1e-3", "x.yaml: lr is '1e-3', which YAML reads as text; write 1.0e-3$"),
        ("lr: 2E5", "write 2.0e\\+5$"),
        ("lr: 1.5e3", "write 1.5e\\+3$"),
        ("rates: {CEf: 1e-4}", "rates.CEf is '1e-4'.*write 1.0e-4$"),
        ("explanation_files: [1e-4]", r"explanation_files\[0\] is '1e-4'"),
        ("methods: [LIME, 3]", r"methods\[1\] is 3 \(int\), not str"),
        ("methods: LIME", r"methods is 'LIME' \(str\), not list; write a list"),
        ("epochs: {C: 1.5}", r"epochs.C is 1.5 \(float\), not int"),
        ("seed: true", r"seed is True \(bool\), not int"),
        ("frozen: 1", r"frozen is 1 \(int\), not bool; write true or false"),
        ("scale: yes", r"scale is True \(bool\), not str; write text, in quotes"),
        ("scale: 2026-11-21", r"\(date\), not str"),
        ("scale:", r"scale is None \(NoneType\), not str"),
    ],
)
def test_a_mistake_is_refused_with_its_remedy(
    parameters: dict[str, object], tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(TouchstoneError, match=says):
        check_params(read_params(tmp_path / "x.yaml"), parameters, "x.yaml")


def test_what_is_right_passes_with_its_declared_type(
    parameters: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "x.yaml").write_text(
        "lr: 1\nrates: {C: 2, own: 1.0e-3}\nscale: 1e-3\nmethods: []\n"
    )
    values = check_params(read_params(tmp_path / "x.yaml"), parameters, "x.yaml")
    assert values == {"lr": 1.0, "rates": {"C": 2.0, "own": 0.001}, "scale": "1e-3", "methods": []}
    assert isinstance(values["lr"], float) and isinstance(values["rates"]["C"], float)


@pytest.mark.parametrize(
    "text, says",
    [
        ("seed: 1\nseed: 2", "'seed' is set twice"),
        ("rates: {C: 1, C: 2}", "'C' is set twice"),
        ("- seed", "must hold lines of the form `name: value`"),
        ("", "must hold lines of the form"),
        ("a: [1", "x.yaml is not readable as YAML"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(TouchstoneError, match=says):
        read_params(tmp_path / "x.yaml")


def test_a_missing_file_names_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text("seed: 1")
    with pytest.raises(
        TouchstoneError, match="no parameter file .*smal.yaml; scales that have one: small"
    ):
        read_params(tmp_path / "smal.yaml")


@pytest.mark.parametrize(
    "rule, value",
    [
        ("0 or more", 0),
        ("above 0 or more", 1e-9),
        ("0 to 1", [0.0, 1.0]),
        ("above 0 to below 1", {"a": 0.5}),
        (["a", "b"], ["b", "a"]),
        (["a", "*:*"], "mine:by_length"),
        ("a commit", ""),
        ("a commit", "1dbc166cf8765166998eff31ade2eb64c8a40076"),
        ("anything", {"a": [{"b": None}]}),
        ({"keys": ["C"], "each": "1 or more"}, {"C": 2}),
        ({"each": "above 0 or more", "at least": 1}, [[1e-4, 3.0]]),
    ],
)
def test_what_lies_in_its_range_passes(rule: object, value: object) -> None:
    check_range(value, rule, "x")


@pytest.mark.parametrize(
    "rule, value, says",
    [
        ("1 or more", -3, "^x is -3; write 1 or more \\(the nearest is 1\\)$"),
        ("0 to below 1", 7.0, "^x is 7.0; write 0 to below 1 \\(the nearest is just below 1\\)$"),
        ("above 0 to below 1", 0.0, "the nearest is just above 0"),
        ("above 0 or more", 0, "the nearest is 1\\)$"),  # a whole number
        ("0 to 1", {"C": 0.5, "CEf": 1.5}, r"^x.CEf is 1.5; write 0 to 1 \(the nearest is 1\)$"),
        ("0 or more", [1.0, float("nan")], r"^x\[1\] is nan; write a number, 0 or more$"),
        ("0 or more", float("inf"), "^x is inf; write a number"),
        (["auto", "cpu", "cuda"], "tpu", "write one of auto, cpu, cuda; did you mean 'cpu'"),
        (["png", "svg"], ["png", "exe"], r"^x\[1\] is 'exe'; write one of png, svg"),
        ("a commit", "main", "^x is 'main'; write the 40 hexadecimal digits of a commit"),
        ({"keys": ["C", "CEf"], "each": "1 or more"}, {"CEX": 2}, "a key of x is 'CEX'.*'CEf'"),
        ({"each": ["a"], "at least": 1}, [], "^x is empty; write 1 or more"),
        ("much", 1, "^x has the rule 'much'; write one as the head of params/ranges.yaml says"),
    ],
)
def test_what_lies_outside_is_refused_with_the_nearest_value(
    rule: object, value: object, says: str
) -> None:
    with pytest.raises(TouchstoneError, match=says):
        check_range(value, rule, "x")


def test_a_file_is_checked_against_the_ranges_of_its_study(tmp_path: Path) -> None:
    (tmp_path / "params").mkdir()
    assert read_ranges("toy", tmp_path) == {}
    text = "every study: {seed: 0 or more, lr: 0 to 1}\ntoy: {lr: above 0 to 1}\n"
    (tmp_path / "params/ranges.yaml").write_text(text)
    ranges = read_ranges("toy", tmp_path)
    assert ranges == {"seed": "0 or more", "lr": "above 0 to 1"}
    with pytest.raises(TouchstoneError, match="^x.yaml: lr is 0.0; write above 0 to 1"):
        check_params({"lr": 0}, {"lr": 0.5}, "x.yaml", ranges)


@pytest.mark.parametrize("number", ["010", "1:30", "-007"])
def test_a_number_that_yaml_reads_as_another_is_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / "x.yaml").write_text(f"a: 1\nseed: {number}")
    with pytest.raises(TouchstoneError, match=f"x.yaml .*line 2: {number} is another number"):
        read_params(tmp_path / "x.yaml")


TOGETHER = {
    "together": [
        {"of": ["epochs", "lr"], "each of": ["schemes", "others"], "but": ["ZS"]},
        {"of": ["judged"], "one of": "models", "or": "base"},
        {"of": ["size"], "at": "T", "multiple of": "heads"},
    ]
}


@pytest.mark.parametrize(
    "values",
    [
        {"epochs": {"C": 1}, "lr": {"C": 1.0, "D": 2.0}, "schemes": ["ZS", "C"], "others": []},
        {"epochs": {"C": 1}},  # the lists stand in another notebook
        {"judged": "base", "models": {}},
        {"judged": "mine", "models": {"mine": ""}},
        {"judged": "mine"},
        {"size": {"T": 64, "L": 7}, "heads": 4},
        {"size": {"L": 7}, "heads": 4},
    ],
)
def test_parameters_that_fit_together_pass(values: dict[str, object]) -> None:
    check_together(values, TOGETHER, "x.yaml")


@pytest.mark.parametrize(
    "values, says",
    [
        (
            {"epochs": {"C": 1}, "lr": {"C": 1.0}, "schemes": ["C"], "others": ["D"]},
            "x.yaml: epochs has no value for 'D' of others; add one, or remove 'D'",
        ),
        (
            {"epochs": {"C": 1}, "lr": {}, "schemes": ["C"], "others": []},
            "x.yaml: lr has no value for 'C' of schemes",
        ),
        ({"judged": "yours", "models": {"mine": ""}}, "judged is 'yours'; write one of mine, base"),
        (
            {"size": {"T": 6}, "heads": 4},
            "size.T is 6; write a multiple of heads, which is 4 .the nearest is 8",
        ),
        ({"size": {"T": 1}, "heads": 4}, "the nearest is 4"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(
    values: dict[str, object], says: str
) -> None:
    with pytest.raises(TouchstoneError, match=says):
        check_together(values, TOGETHER, "x.yaml")


@pytest.mark.parametrize(
    "lr, says",
    [
        (2.0, "^the parameters of 01_a: lr is 2.0; write above 0 to 1 .the nearest is 1"),
        ("1e-3", "lr is '1e-3'.*write 1.0e-3"),
        (0.5, ""),
    ],
)
def test_a_notebook_that_runs_by_hand_has_its_parameters_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lr: object, says: str
) -> None:
    (tmp_path / "notebooks/toy").mkdir(parents=True)
    (tmp_path / "notebooks/toy/01_a.py").write_text('# %% tags=["parameters"]\nlr = 0.1\n')
    (tmp_path / "params").mkdir()
    (tmp_path / "params/ranges.yaml").write_text("toy: {lr: above 0 to 1}\n")
    shell = SimpleNamespace(user_ns={"lr": lr, "other": 1})
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.delenv("TOUCHSTONE_RUNNER", raising=False)
    if says:
        with pytest.raises(TouchstoneError, match=says):
            check_running_notebook("toy", "01_a", tmp_path)
    else:
        check_running_notebook("toy", "01_a", tmp_path)
    monkeypatch.setenv("TOUCHSTONE_RUNNER", "1")  # which has checked them itself
    check_running_notebook("toy", "01_a", tmp_path)


def test_the_fields_of_a_dataclass_are_numbers_in_their_range() -> None:
    @dataclass
    class Some:
        n: int = 1
        share: float = 0.5

    rules = {"n": "1 or more", "share": "0 to below 1"}
    check_fields(Some(), rules)
    check_fields(Some(share=0), rules)
    for wrong, says in (
        ({"n": 1.5}, "n is 1.5; write a whole number"),
        ({"n": True}, "n is True; write a whole number"),
        ({"n": 0}, "n is 0; write 1 or more"),
        ({"share": "1e-3"}, "share is '1e-3'; write a number"),
        ({"share": float("nan")}, "share is nan; write a number, 0 to below 1"),
    ):
        with pytest.raises(TouchstoneError, match=says):
            check_fields(Some(**wrong), rules)


def test_a_choice_is_named_once() -> None:
    with pytest.raises(TouchstoneError, match="x names 'a' twice; name each of them once"):
        check_range(["a", "a"], ["a", "b"], "x")


def test_a_whole_number_that_no_array_holds_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="write a whole number up to 9223372036854775807"):
        check_params({"n": 10**30}, {"n": 1}, "x.yaml")
