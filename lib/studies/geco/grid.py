"""A grid of explanations, unit by unit: a data set, a scheme, a seed, a method.

Each unit is kept as it is finished, so a stopped run goes on where it was.
"""

import hashlib
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ...attribution.explain import explain, explain_many
from ...attribution.registry import Method
from ...attribution.table import ABOUT, NO_MODEL, in_format
from ...core.contents import by_content
from ...core.progress import progress
from ...core.units import Units
from ...models.schemes import scheme_named
from .as_released import method_of

# What a unit may take: half an hour of a core with bert-base.
MOST_PASSES = 20_000


@dataclass(frozen=True)
class Unit:
    """One entry of a grid: explain `n_base` base sentences (0: all) of a data set with a method.

    Floors, which see no model, have scheme "-" and seed -1. `note` tells units apart that differ in
    settings alone.
    """

    dataset: str
    scheme: str
    seed: int
    method: str
    settings: Mapping[str, Any]
    n_base: int
    note: str = ""

    @property
    def name(self) -> str:
        """A name that may be a file's.

        >>> Unit("reviews", "head only", 0, "Kernel SHAP", {}, n_base=8).name
        'reviews_head-only_seed0_Kernel-SHAP'
        """
        return re.sub(
            r"[^\w.-]",
            "-",
            f"{self.dataset}_{self.scheme}_seed{self.seed}_{self.method}{self.note}",
        )

    @property
    def explainer(self) -> Method:
        """The method, in the variant that the settings name."""
        return method_of(self.method, self.settings)

    @property
    def sees_model(self) -> bool:
        """Whether a model is explained; floors see none."""
        return self.scheme != NO_MODEL


class Sources(Protocol):
    """Where units get what they need."""

    def rows_of(self, unit: Unit) -> pd.DataFrame:
        """The rows to explain."""

    def model_of(self, unit: Unit) -> Any:
        """The model, or what a floor was fitted to."""

    def mark_of(self, unit: Unit) -> str:
        """A mark that changes when the model does, found without loading it."""


@dataclass(frozen=True)
class Part:
    """Where one part of a long unit gets what it needs: some of the rows, the rest from `whole`."""

    unit: Unit
    whole: Sources
    number: int
    n_parts: int

    @property
    def units(self) -> list[Unit]:
        """The part as a unit of its own."""
        note = f"{self.unit.note}_part{self.number + 1}of{self.n_parts}"
        return [replace(self.unit, note=note)]

    def rows_of(self, unit: Unit) -> pd.DataFrame:
        """Its rows: whole base sentences, nearly as many as in the other parts."""
        rows = self.whole.rows_of(unit)
        known = rows["sentence_idx"].unique()
        chosen = np.array_split(known, self.n_parts)[self.number]
        return rows[rows["sentence_idx"].isin(chosen)].reset_index(drop=True)

    def model_of(self, unit: Unit) -> Any:
        """The model of the whole unit."""
        return self.whole.model_of(unit)

    def mark_of(self, unit: Unit) -> str:
        """The mark of the whole unit's model."""
        return self.whole.mark_of(unit)


def passes(unit: Unit) -> float:
    """How many passes forward and back a row takes with a unit's method, roughly.

    >>> passes(Unit("D_A", "CEf", 0, "Integrated Gradients", {"n_steps": 50}, 8))
    50.0
    """
    n_forward = unit.settings.get("n_samples", 0)
    return float(unit.settings.get("n_steps", 0)) or max(1.0, n_forward / 3)


def parts_of(unit: Unit, sources: Sources) -> list[Part]:
    """The parts of a unit that takes more than `MOST_PASSES`; none of one that does not.

    The rows and the method decide, so that every machine has the same parts.
    """
    n = math.ceil(len(sources.rows_of(unit)) * passes(unit) / MOST_PASSES)
    if n < 2 or isinstance(sources, Part) or not unit.sees_model:
        return []
    if scheme_named(unit.scheme).is_one_layer:  # its passes cost next to nothing
        return []
    return [Part(unit, sources, number, n) for number in range(n)]


def run_units(plan: Sequence[Unit], sources: Sources, store: Units) -> pd.DataFrame:
    """Explain unit by unit, keep each as it is finished, and return all in the explanation format.

    Methods that take one pass each explain a model's rows together: they share that pass.
    """
    tables: dict[str, pd.DataFrame] = {}
    n_stepped = 0
    for group in progress(groups_of(plan), "explanations"):
        made, n = explain_group(group, sources, store)
        tables |= zip([unit.name for unit in group], made, strict=True)
        n_stepped += n
    if n_stepped:
        print(
            f"{n_stepped} of {len(plan)} units were published with scores in 999 steps, which "
            "moves measures of rank; delete them to have them made anew"
        )
    return pd.concat([tables[unit.name] for unit in plan], ignore_index=True)


def groups_of(plan: Sequence[Unit]) -> list[list[Unit]]:
    """The units of a plan, together where they share a pass over one model's rows."""
    groups: dict[tuple[Any, ...], list[Unit]] = {}
    for unit in plan:
        alone = unit.name if not unit.explainer.shares else ""
        groups.setdefault(
            (unit.dataset, unit.scheme, unit.seed, unit.n_base, unit.note, alone), []
        ).append(unit)
    return list(groups.values())


def explain_group(
    units: Sequence[Unit], sources: Sources, store: Units
) -> tuple[list[pd.DataFrame], int]:
    """The explanations of units that share a pass, claimed: read where finished, else made.

    A long unit is made in parts, each a unit of its own, so that several processes may do it.
    Also returns how many were kept in steps.
    """
    unit = units[0]
    with store.claim(unit.name):
        parts = parts_of(unit, sources)
        key = _unit_key(unit, sources, store) if parts else ""
        if parts and store.load(unit.name, key) is None:
            own = replace(store, publish=False)  # the whole is published, and not its parts
            made = [explain_group(part.units, part, own)[0][0] for part in parts]
            table = _packed(pd.concat(made, ignore_index=True))
            store.save(unit.name, key, table, exact=True)
        return _explain_units(units, sources, store)


def explain_part(part: Part, store: Units) -> None:
    """Make one part of a long unit, unless the whole is finished; the last part makes the whole."""
    if store.load(part.unit.name, _unit_key(part.unit, part.whole, store)) is not None:
        return
    own = replace(store, publish=False)
    explain_group(part.units, part, own)
    keys = {
        unit.name: _unit_key(unit, other, own)
        for other in parts_of(part.unit, part.whole)
        for unit in other.units
    }
    if all(own.load(name, key) is not None for name, key in keys.items()):
        explain_group([part.unit], part.whole, store)


def explain_unit(unit: Unit, sources: Sources, store: Units) -> pd.DataFrame:
    """The explanations of one unit: read where it is finished, made and kept otherwise.

    Both ways give the same numbers, for what was made is taken from what was kept.
    """
    return explain_group([unit], sources, store)[0][0]


def _explain_units(
    units: Sequence[Unit], sources: Sources, store: Units
) -> tuple[list[pd.DataFrame], int]:
    """`explain_unit` for units of one model and the same rows, the unfinished ones together.

    Also returns how many were kept in steps.
    """
    rows, keys = sources.rows_of(units[0]), [_unit_key(unit, sources, store) for unit in units]
    kept = {unit.name: store.load(unit.name, key) for unit, key in zip(units, keys, strict=True)}
    missing = [pair for pair in zip(units, keys, strict=True) if kept[pair[0].name] is None]
    if missing:
        methods = [(unit.explainer, unit.settings) for unit, _ in missing]
        made = explain_many(sources.model_of(missing[0][0]), rows, methods, seed=units[0].seed)
        for i, (unit, key) in enumerate(missing):
            of_unit = made.iloc[i * len(rows) : (i + 1) * len(rows)]
            kept[unit.name] = store.save(unit.name, key, _packed(of_unit), exact=True)
    tables = [_unpacked(unit, kept[unit.name], rows, store.study) for unit in units]
    return tables, sum(map(_is_stepped, kept.values()))


def _unpacked(unit: Unit, kept: pd.DataFrame, rows: pd.DataFrame, study: str) -> pd.DataFrame:
    by_row = kept.set_index("row_id").loc[rows["row_id"]]
    scores = by_row["scores"]
    if _is_stepped(kept):
        scores = [np.multiply(*pair) for pair in zip(scores, by_row["scale"], strict=True)]
    return in_format(
        rows,
        list(scores),
        by_row["delta"].tolist(),
        unit.explainer.name,
        unit.settings,
        {name: by_row[name].tolist() for name in ABOUT if name in by_row},
        study=study,
        dataset=unit.dataset,
        scheme=unit.scheme,
        seed=unit.seed,
    )


def _unit_key(unit: Unit, sources: Sources, store: Units) -> str:
    """The key of all that a unit's numbers depend on: method and settings, rows, model."""
    return store.key(
        method=unit.method,
        settings=dict(unit.settings),
        seed=unit.seed,
        model=sources.mark_of(unit),
        rows=mark(sources.rows_of(unit)[["row_id", "sentence", "target"]]),
        **by_content(unit.method),
    )


def mark(frame: pd.DataFrame) -> str:
    """A short mark of a table's content; numbers count with four digits."""
    return hashlib.sha256(frame.to_csv(index=False, float_format="%.4g").encode()).hexdigest()[:16]


def _packed(of_unit: pd.DataFrame) -> pd.DataFrame:
    """`packed` without what other methods report beside their scores."""
    blank = [name for name in ABOUT if name in of_unit and of_unit[name].isna().all()]
    return packed(of_unit.drop(columns=blank))


def packed(explanations: pd.DataFrame) -> pd.DataFrame:
    """Explanations without their words: row_id, delta, scores, and what a method reports beside
    them (`table.ABOUT`).

    Scores are of four bytes each where this leaves the order of every row as it is, signed and by
    size, with its ties and zeros: all that depends on the order is then as in full precision.
    """
    full = [np.asarray(scores, dtype=float) for scores in explanations["scores"]]
    with np.errstate(over="ignore"):  # a size that four bytes do not reach is infinite there
        short = [scores.astype(np.float32) for scores in full]
    kept = short if all(map(_is_ordered_alike, full, short)) else full
    about = ["row_id", "delta", *(name for name in ABOUT if name in explanations)]
    return explanations[about].assign(scores=kept)


def _is_ordered_alike(full: np.ndarray, short: np.ndarray) -> bool:
    """Whether rounded scores have the order of the full ones, by size and with signs."""
    # Rounding never swaps two numbers; it may make them equal, or zero.
    n_sizes = [len(np.unique(np.abs(scores))) for scores in (full, short)]
    is_same = n_sizes[0] == n_sizes[1] and np.array_equal(np.sign(full), np.sign(short))
    return is_same and bool(np.isfinite(short).all())


def _is_stepped(kept: pd.DataFrame) -> bool:
    """Whether a unit is of before version 0.2.0: whole numbers up to 999, to be times `scale`."""
    return "scale" in kept


def predicted_seconds(
    plan: Sequence[Unit], sources: Sources, store: Units, n_rows: int = 3
) -> pd.DataFrame:
    """How long the unfinished units will take here: a line per kind of model and method.

    Columns: scheme, method, units, rows, seconds. A sample is a few rows of the first unit of its
    line.
    """
    unfinished: dict[tuple[str, str, str], list[Unit]] = {}
    for unit in plan:
        if store.load(unit.name, _unit_key(unit, sources, store)) is None:
            unfinished.setdefault((unit.scheme, unit.method, unit.note), []).append(unit)
    lines = []
    for (scheme, method, note), units in unfinished.items():
        n = sum(len(sources.rows_of(unit)) for unit in units)
        seconds = n * _seconds_per_row(units[0], sources, n_rows)
        lines.append((scheme, method + note, len(units), n, seconds))
    return pd.DataFrame(lines, columns=["scheme", "method", "units", "rows", "seconds"])


def _seconds_per_row(unit: Unit, sources: Sources, n_rows: int) -> float:
    rows, model = sources.rows_of(unit), sources.model_of(unit)
    few = rows.iloc[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(int)]
    explain(
        model, few.iloc[:1], unit.explainer, unit.settings
    )  # the first call loads what it needs
    start = time.perf_counter()
    explain(model, few, unit.explainer, unit.settings)
    return (time.perf_counter() - start) / len(few)
