"""Which explanations GECO's stage 03 makes: the settings of all methods, and the units of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...attribution.registry import METHODS, resolve_method
from ...attribution.table import NO_MODEL
from ...models.schemes import scheme_named
from .grid import Unit

_SEEDS_IN_FULL = 5  # of OLA; the later ones may explain with a few methods


def settings_by_method(
    explained: Mapping[str, str],
    aggregation: Mapping[str, str],
    normalise_special: bool,
    *more: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Every method's settings, from parameters that speak of many methods.

    Args:
        explained: the explained function, by method.
        aggregation: how a vector per token becomes a number, by method.
        normalise_special: for all methods that have this setting.
        *more: further settings, by method.

    Raises:
        TouchstoneError: for a misspelt method name, whose setting would otherwise be ignored
        without a word.
    """
    parts: list[Mapping[str, Mapping[str, Any]]] = [
        {name: {"explained": what} for name, what in explained.items()},
        {name: {"aggregation": how} for name, how in aggregation.items()},
    ]
    special = {name for name, method in METHODS.items() if "normalise_special" in method.defaults}
    settings: dict[str, dict[str, Any]] = {
        name: {"normalise_special": normalise_special} for name in special
    }
    for part in (*parts, *more):
        for name, values in part.items():
            resolve_method(name)
            settings[name] = settings.get(name, {}) | dict(values)
    return settings


def plan_units(
    models: pd.DataFrame,
    methods: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    n_base: int,
    n_base_ola: int,
    one_seed: Sequence[str] = (),
    every_seed_ola: Sequence[str] = (),
) -> list[Unit]:
    """The units of a run; floors are once per data set, on every row that any model explains.

    Args:
        models: dataset, scheme and seed of what was trained.
        methods: registered names, or "module:function".
        settings: by method.
        n_base: base sentences that encoders explain (0: all).
        n_base_ola: base sentences that OLA, which is cheap, explains (0: all).
        one_seed: costly methods, which take only the first seed of a scheme, but all seeds of OLA.
        every_seed_ola: where it names methods, OLA's sixth and later seeds explain with these only.

    Raises:
        TouchstoneError: for unknown names and settings, before anything runs.
    """
    for name in every_seed_ola:
        resolve_method(name)
    chosen = {name: resolve_method(name).settings(settings.get(name)) for name in methods}
    floors = [name for name in methods if resolve_method(name).family == "floor"]
    n_floor = 0 if 0 in (n_base, n_base_ola) else max(n_base, n_base_ola)
    units = [
        Unit(dataset, NO_MODEL, -1, name, chosen[name], n_floor)
        for dataset in models["dataset"].unique()
        for name in floors
    ]
    first = models.groupby(["dataset", "scheme"])["seed"].transform("min")
    for model, first_seed in zip(models.itertuples(), first, strict=True):
        is_ola = scheme_named(model.scheme).is_one_layer
        number, n = model.seed - first_seed, n_base_ola if is_ola else n_base
        left_out = set(floors)
        if is_ola and every_seed_ola and number >= _SEEDS_IN_FULL:
            left_out |= set(methods) - set(every_seed_ola)
        if not is_ola and number > 0:
            left_out |= set(one_seed)
        units += [
            Unit(model.dataset, model.scheme, int(model.seed), name, chosen[name], n)
            for name in methods
            if name not in left_out
        ]
    return units
