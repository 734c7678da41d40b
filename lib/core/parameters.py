"""Parameters: declared by a notebook's `parameters` cell, set by a flat YAML file, checked."""

import ast
import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .errors import TouchstoneError, did_you_mean
from .notebooks import read_notebook

_NUMBER_AS_TEXT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")  # what YAML 1.1 reads as text
_REMEDY = {
    "float": "write a number, such as 0.5",
    "int": "write a whole number",
    "bool": "write true or false",
    "str": "write text, in quotes if it looks like something else",
    "list": "write a list, [a, b]",
    "dict": "write a mapping, {a: 1}",
}


def notebook_parameters(py_path: Path | str) -> dict[str, Any]:
    """The parameters that a notebook declares, with their defaults: the lines `name = literal` of
    the one cell that is tagged `parameters`.

    Raises:
        TouchstoneError: the notebook has not one such cell, or the cell has another line.
    """
    cells = [c for c in read_notebook(py_path).cells if "parameters" in c.metadata.get("tags", [])]
    if len(cells) != 1:
        raise TouchstoneError(
            f'{py_path} has {len(cells)} cells tagged "parameters"; it needs exactly one'
        )
    defaults = {}
    for node in ast.parse(cells[0].source).body:
        try:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                raise ValueError
            defaults[node.targets[0].id] = ast.literal_eval(node.value)
        except ValueError:
            raise TouchstoneError(
                f"{py_path}: `{ast.get_source_segment(cells[0].source, node)}` among the "
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
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise TouchstoneError(
            f"{path} is not readable as YAML: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise TouchstoneError(f"{path} must hold lines of the form `name: value`")
    return values


def check_params(
    values: Mapping[str, Any], defaults: Mapping[str, Any], source: Path | str
) -> dict[str, Any]:
    """The values, with whole numbers made fractions where the notebooks declare these.

    Args:
        values: by name, as `read_params` returns them.
        defaults: what the notebooks declare.
        source: where the values are from, for the error.

    Raises:
        TouchstoneError: a name is unknown or a value of a wrong type; it says what to write.
    """
    if unknown := [name for name in values if name not in defaults]:
        near = did_you_mean(unknown[0], defaults) or "; remove it"
        raise TouchstoneError(f"{source}: no notebook has a parameter {unknown[0]!r}{near}")
    return {
        name: _fit(value, _kind(defaults[name]), f"{source}: {name}")
        for name, value in values.items()
    }


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
    if isinstance(value, list):
        return [_fit(item, inner, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _fit(item, inner, f"{where}.{key}") for key, item in value.items()}
    return value


class _StrictLoader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word; this one refuses the second."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping from its node, as PyYAML does, unless a key occurs twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.YAMLError(f"{twice[0]!r} is set twice")
        return super().construct_mapping(node, deep)
