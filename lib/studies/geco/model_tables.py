"""Tables about trained models (what they use, how firm their explanations are), each kept as a
unit.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd
import torch

from ...attribution.registry import METHODS, Method
from ...attribution.swaps import SwapShapley, swap_shapley
from ...attribution.table import NO_MODEL
from ...core.stage import Stage
from ...core.units import Units
from .as_released import method_of
from .grid import Unit, mark
from .units import StageSources, choose_rows


@dataclass
class ModelTables:
    """The first-seed models of one data set, the explained rows that they are asked about, and
    the tables on them.

    Args:
        stage: the stage that asks.
        predictions: of stage 02, which tell what was trained.
        dataset, schemes: the models.
        explanations: of these models and of floors.
        test: the test split with all its forms.
        n_base: of how many base sentences the rows are taken (0: of all).
        reuse: whether published tables are taken, and finished ones published.
        seed: of the choice of rows.
    """

    stage: Stage
    predictions: pd.DataFrame
    dataset: str
    schemes: Sequence[str]
    explanations: pd.DataFrame
    test: pd.DataFrame
    n_base: int
    reuse: bool = False
    seed: int = 0
    _swaps: dict[str, SwapShapley] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        stage, about = self.stage, self.explanations
        self.sources = StageSources(stage, self.predictions, self.seed, torch.device("cpu"))
        self.store = Units(stage.study, stage.scale, stage.stage, self.reuse, digits=5)
        # seed 0 is a scheme's first, -1 that of floors
        about = about[(about["dataset"] == self.dataset) & (about["seed"] <= 0)]
        # chosen from the whole split: a part of every larger choice
        rows = choose_rows(self.test, self.n_base, self.seed)
        self.rows = rows[rows["row_id"].isin(set(about["row_id"]))].reset_index(drop=True)
        self.explanations = about[about["row_id"].isin(set(self.rows["row_id"]))]

    def of(self, scheme: str) -> pd.DataFrame:
        """The explanations of a scheme's model and of the floors."""
        return self.explanations[self.explanations["scheme"].isin([scheme, NO_MODEL])]

    def methods(self, scheme: str) -> list[tuple[Method, dict[str, Any]]]:
        """The registered methods that explained the scheme's model, each with the settings that
        it had then.
        """
        of_model = self.explanations[self.explanations["scheme"] == scheme]
        chosen = of_model.drop_duplicates("method").set_index("method")["settings"]
        asked = {name: json.loads(text) for name, text in chosen.items() if name in METHODS}
        return [(method_of(name, settings), settings) for name, settings in asked.items()]

    def one_form_each(self, n_base: int) -> pd.DataFrame:
        """One row of each of the first `n_base` base sentences, the forms taking turns; all rows
        of all where it is 0.
        """
        if not n_base:
            return self.rows
        forms = [part for _, part in self.rows.groupby("sentence_idx", sort=False)][:n_base]
        taken = [part.iloc[[i % len(part)]] for i, part in enumerate(forms)]
        return pd.concat(taken, ignore_index=True)

    def model(self, scheme: str) -> Any:
        """The scheme's model; one at a time is held in memory."""
        return self.sources.model_of(Unit(self.dataset, scheme, 0, "", {}, self.n_base))

    def swaps(self, scheme: str) -> SwapShapley:
        """The Shapley values of the scheme's model over word swaps (`lib.attribution.swaps`),
        found once.
        """
        if scheme not in self._swaps:
            self._swaps[scheme] = swap_shapley(
                self.model(scheme),
                self.test,
                only=set(self.rows["row_id"]),
                study=self.stage.study,
                dataset=self.dataset,
                scheme=scheme,
                seed=0,
            )
        return self._swaps[scheme]

    def table(
        self, name: str, scheme: str, make: Callable[[], pd.DataFrame], **settings: Any
    ) -> pd.DataFrame:
        """A table about a scheme's model, with the scheme in the column `model`: read where
        finished, made otherwise.

        It is found again where model, explanations, rows and `settings` are the same; the
        weights are then not needed.
        """
        unit = Unit(self.dataset, scheme, 0, name, settings, self.n_base)
        model = self.sources.mark_of(unit)
        key, before = (
            self.store.key(
                model=model, scores=self._scores_mark(scheme, digits), seed=self.seed, **settings
            )
            for digits in (17, 4)  # tables that were published before 0.2.0 are found by four
        )
        table = self.store.load(unit.name, before) if self.reuse else None
        if table is None:
            table = self.store.finished(unit.name, key, make)
        return table.assign(model=scheme)

    def _scores_mark(self, scheme: str, digits: int) -> str:
        """A mark of the explanations with so many digits of their scores."""
        scores = self.of(scheme)[["method", "row_id", "scores"]].sort_values(["method", "row_id"])
        scores["scores"] = [" ".join(f"{x:.{digits}g}" for x in row) for row in scores["scores"]]
        return mark(scores)

    def tables(
        self, name: str, make: Callable[[str], pd.DataFrame], **settings: Any
    ) -> pd.DataFrame:
        """The tables of all schemes, one after the other; `make` is called with a scheme's name."""
        return pd.concat(
            [self.table(name, s, partial(make, s), **settings) for s in self.schemes],
            ignore_index=True,
        )
