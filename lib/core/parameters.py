"""Parameters: declared by a notebook's `parameters` cell, set by a flat YAML file, checked."""

import argparse
import ast
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .errors import TouchstoneError, check_choice, did_you_mean
from .files import read_yaml
from .notebooks import code_cells

RANGES, ANYTHING, TOGETHER = "ranges.yaml", "anything", "together"
_NUMBER_AS_TEXT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")  # what YAML 1.1 reads as text
_LARGEST = 2**63 - 1  # of a whole number that arrays hold
_REMEDY = {
    "float": "write a number, such as 0.5",
    "int": "write a whole number",
    "bool": "write true or false",
    "str": "write text, in quotes if it looks like something else",
    "list": "write a list, [a, b]",
    "dict": "write a mapping, {a: 1}",
}


def at_least_one(text: str) -> int:
    """A count that stands on a command line.

    >>> at_least_one("2")
    2
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def notebook_parameters(py_path: Path | str) -> dict[str, Any]:
    """The parameters that a notebook declares, with their defaults: the lines `name = literal` of
    the one cell that is tagged `parameters`.

    Raises:
        TouchstoneError: the notebook has not one such cell, or the cell has another line.
    """
    _, cells = code_cells(py_path)
    if len(cells) != 1:
        raise TouchstoneError(
            f'{py_path} has {len(cells)} cells tagged "parameters"; it needs exactly one'
        )
    defaults = {}
    for node in ast.parse(cells[0]).body:
        try:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                raise ValueError
            defaults[node.targets[0].id] = ast.literal_eval(node.value)
        except ValueError:
            raise TouchstoneError(
                f"{py_path}: `{ast.get_source_segment(cells[0], node)}` among the "
                "parameters is not `name = literal`"
            ) from None
    return defaults


def study_parameters(py_paths: Iterable[Path]) -> dict[str, Any]:
    """The parameters of all of a study's notebooks, with their defaults.

    Raises:
        TouchstoneError: a name has another default, or a default of another type, in two of them.
    """
    union: dict[str, Any] = {}
    for py_path in py_paths:
        for name, default in notebook_parameters(py_path).items():
            known = union.setdefault(name, default)
            if (known, _kind(known)) != (default, _kind(default)):  # 1 == 1.0 == True
                raise TouchstoneError(
                    f"{py_path}: {name} = {default!r}, but an earlier notebook "
                    f"has {known!r}; a name means the same everywhere"
                )
    return union


def read_params(yaml_path: Path | str) -> dict[str, Any]:
    """The values of a flat YAML file of parameters, unchecked but for their form.

    Raises:
        TouchstoneError: there is no such file, it is no YAML, or it sets a name twice.
    """
    path = Path(yaml_path)
    if not path.is_file():
        near = ", ".join(p.stem for p in sorted(path.parent.glob("*.yaml"))) or "none"
        raise TouchstoneError(f"there is no parameter file {path}; scales that have one: {near}")
    values: dict[str, Any] = read_yaml(path)
    if not all(isinstance(name, str) for name in values):
        raise TouchstoneError(f"{path} must hold lines of the form `name: value`")
    return values


def read_ranges(study: str, root: Path) -> dict[str, Any]:
    """What each parameter of a study may be: its part of `params/ranges.yaml`, whose head says how
    it is written; nothing where a repository has no such file.

    Rules about several parameters are at the name `TOGETHER`, where a study has some.
    """
    path = root / "params" / RANGES
    parts = read_yaml(path) if path.is_file() else {}
    together = parts.get(TOGETHER, {}).get(study)
    ranges = parts.get("every study", {}) | parts.get(study, {})
    return ranges | ({TOGETHER: together} if together else {})


def check_params(
    values: Mapping[str, Any],
    defaults: Mapping[str, Any],
    source: Path | str,
    ranges: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The values, with whole numbers made fractions where the notebooks declare these.

    Args:
        values: by name, as `read_params` returns them.
        defaults: what the notebooks declare.
        source: where the values are from, for the error.
        ranges: what they may be, as `read_ranges` returns it.

    Raises:
        TouchstoneError: a name is unknown, a value of a wrong type or out of its range; it says
            what to write.
    """
    if unknown := [name for name in values if name not in defaults]:
        near = did_you_mean(unknown[0], defaults) or "; remove it"
        raise TouchstoneError(f"{source}: no notebook has a parameter {unknown[0]!r}{near}")
    fitted = {
        name: _fit(value, _kind(defaults[name]), f"{source}: {name}")
        for name, value in values.items()
    }
    for name, value in fitted.items():
        check_range(value, (ranges or {}).get(name, ANYTHING), f"{source}: {name}")
    return fitted


def check_together(values: Mapping[str, Any], ranges: Mapping[str, Any], source: str) -> None:
    """Refuse parameters that are right one by one, but do not fit together.

    Args:
        values: of all parameters of a study, or of one of its notebooks: a rule about others is
            left to them.
        ranges: as `read_ranges` returns it.
        source: where the values are from, for the error.

    Raises:
        TouchstoneError: it names the parameters, and what to write.
    """
    for rule in ranges.get(TOGETHER, ()):
        for name in (name for name in rule["of"] if name in values):
            for kind, fault_of in _TOGETHER.items():
                if kind in rule and (fault := fault_of(name, rule, values)):
                    raise TouchstoneError(f"{source}: {fault}")


def _lacks_key(name: str, rule: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    for other in rule["each of"]:
        for key in values.get(other, ()):
            if key not in values[name] and key not in rule.get("but", ()):
                return f"{name} has no value for {key!r} of {other}; add one, or remove {key!r}"
    return ""


def _is_no_key(name: str, rule: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    known = [*values.get(rule["one of"], [values[name]]), rule["or"]]
    is_known = values[name] in known
    return "" if is_known else f"{name} is {values[name]!r}; write one of {', '.join(known)}"


def _is_no_multiple(name: str, rule: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    size, n = values[name].get(rule["at"], 0), values.get(rule["multiple of"], 1)
    if size % n == 0:
        return ""
    return (
        f"{name}.{rule['at']} is {size}; write a multiple of {rule['multiple of']}, which is {n} "
        f"(the nearest is {max(n, round(size / n) * n)})"
    )


_TOGETHER = {"each of": _lacks_key, "one of": _is_no_key, "multiple of": _is_no_multiple}


def check_running_notebook(study: str, stage: str, root: Path) -> None:
    """Check the parameters of the notebook that runs in this process, if one does.

    Whoever runs it in JupyterLab or with papermill has not passed by the runner, which checks them
    before anything starts.

    Raises:
        TouchstoneError: as `check_params` and `check_together`.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    pattern = f"{study}/{stage}.py" if stage else f"*_{study}.py"
    source = next((root / "notebooks").glob(pattern), None)
    if shell is None or source is None or "TOUCHSTONE_RUNNER" in os.environ:
        return
    declared, ranges = notebook_parameters(source), read_ranges(study, root)
    given = {name: shell.user_ns[name] for name in declared if name in shell.user_ns}
    where = f"the parameters of {source.stem}"
    check_params(given, declared, where, ranges)
    check_together(declared | given, ranges, where)


def check_range(value: Any, rule: Any, where: str) -> None:
    """Refuse a value that its rule in `params/ranges.yaml` does not allow.

    Args:
        value: a parameter's value; of a list or mapping each part is checked.
        rule: a list of choices, an interval in words, or a mapping with rules for keys and parts.
        where: the parameter, for the error.

    Raises:
        TouchstoneError: it names the nearest value that is allowed.

    >>> check_range([0.5, 1.0], "above 0 to 1", "share")
    """
    if isinstance(rule, dict):
        if len(value) < rule.get("at least", 0):
            raise TouchstoneError(f"{where} is empty; write {rule['at least']} or more")
        for key in value if "keys" in rule else ():
            _check_choice(key, rule["keys"], f"a key of {where}")
        rule = rule["each"]
    if isinstance(value, list | dict):
        listed = value if isinstance(value, list) and isinstance(rule, list) else []
        if twice := [part for part in listed if listed.count(part) > 1]:
            raise TouchstoneError(f"{where} names {twice[0]!r} twice; name each of them once")
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in parts:
            check_range(
                part, rule, f"{where}.{name}" if isinstance(value, dict) else f"{where}[{name}]"
            )
    elif isinstance(rule, list):
        _check_choice(value, rule, where)
    elif rule == "a commit":
        if value and not re.fullmatch("[0-9a-f]{40}", value):
            raise TouchstoneError(
                f"{where} is {value!r}; write the 40 hexadecimal digits of a commit, or nothing"
            )
    elif rule != ANYTHING:
        _check_interval(value, rule, where)


def check_fields(settings: Any, rules: Mapping[str, Any]) -> None:
    """Refuse the settings of a dataclass whose fields are no numbers or out of range.

    Args:
        settings: the instance.
        rules: by field, as in `params/ranges.yaml`; a field whose default or type is a whole number
            must hold one.

    Raises:
        TouchstoneError: it names the setting and the nearest value that is allowed.
    """
    about = {part.name: part for part in fields(settings)}
    for name, rule in rules.items():
        value = getattr(settings, name)
        if isinstance(rule, str):
            kind = "int" if about[name].type in (int, "int") else "float"
            is_number = isinstance(value, int | np.integer) or (
                kind == "float" and isinstance(value, float | np.floating)
            )
            if not is_number or isinstance(value, bool):
                raise TouchstoneError(f"{name} is {value!r}; {_REMEDY[kind]}")
        check_range(value, rule, name)


def _check_choice(value: Any, choices: Iterable[Any], where: str) -> None:
    if not any("*" in str(c) and fnmatchcase(str(value), str(c)) for c in choices):
        check_choice(where, value, choices)


def _check_interval(value: float, rule: str, where: str) -> None:
    form = re.fullmatch(r"(above )?([\d.]+)(?: or more| to (below )?([\d.]+))", str(rule))
    if form is None:
        raise TouchstoneError(
            f"{where} has the rule {rule!r}; write one as the head of params/{RANGES} says"
        )
    low, high = float(form[2]), float(form[4] or math.inf)
    if not math.isfinite(value):
        raise TouchstoneError(f"{where} is {value}; write a number, {rule}")
    too_low = value <= low if form[1] else value < low
    too_high = value >= high if form[3] else value > high
    if too_low or too_high:
        near, is_open, side = (low, form[1], "above") if too_low else (high, form[3], "below")
        if is_open and isinstance(value, int):  # of whole numbers there is a next one
            near, is_open = near + (1 if too_low else -1), None
        nearest = f"just {side} {near:g}" if is_open else f"{near:.15g}"
        raise TouchstoneError(f"{where} is {value}; write {rule} (the nearest is {nearest})")


def _kind(value: Any) -> str:
    """The type of a default: "float", "list[str]", "dict[float]".

    >>> _kind({"C": 1, "CEf": 1e-4})
    'dict[float]'
    """
    if isinstance(value, list | dict):
        inner = {_kind(item) for item in (value.values() if isinstance(value, dict) else value)}
        # Whole numbers among fractions are fractions; other mixtures may hold anything.
        inner = {"float"} if inner == {"int", "float"} else inner
        return type(value).__name__ + (f"[{inner.pop()}]" if len(inner) == 1 else "")
    return "any" if value is None else type(value).__name__


def _fit(value: Any, kind: str, where: str) -> Any:
    outer, _, inner = kind.removesuffix("]").partition("[") if "[" in kind else (kind, "", "any")
    if isinstance(value, str) and kind != "str" and _NUMBER_AS_TEXT.fullmatch(value):
        mantissa, _, exponent = value.lower().partition("e")
        sign = "" if exponent[0] in "+-" else "+"
        right = f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}{exponent}"
        raise TouchstoneError(f"{where} is {value!r}, which YAML reads as text; write {right}")
    if outer == "float" and type(value) is int:  # True is an instance of int, but no number here
        return float(value)
    if outer != "any" and type(value).__name__ != outer:
        raise TouchstoneError(
            f"{where} is {value!r} ({type(value).__name__}), not {outer}; {_REMEDY[outer]}"
        )
    if outer == "int" and abs(value) > _LARGEST:
        raise TouchstoneError(f"{where} is {value}; write a whole number up to {_LARGEST}")
    if isinstance(value, list):
        return [_fit(item, inner, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _fit(item, inner, f"{where}.{key}") for key, item in value.items()}
    return value
