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
from .units import StageSources, choose_rows, one_form_each


@dataclass
class ModelTables:
    """The models of one data set, the explained rows that they are asked about, and the tables on
    them.

    Args:
        stage: the stage that asks.
        predictions: of stage 02, which tell what was trained.
        dataset, schemes: the models.
        explanations: of these models and of floors.
        test: the test split with all its forms.
        n_base: of how many base sentences the rows are taken (0: of all).
        reuse: whether published tables are taken, and finished ones published.
        seed: of the choice of rows.
        n_trainings: how many trainings of each scheme are asked, from the first on.
        one_form: whether one form of each base sentence is asked about, the forms taking turns.
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
    n_trainings: int = 1
    one_form: bool = False
    _swaps: dict[tuple[str, int], SwapShapley] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        stage, about = self.stage, self.explanations
        self.sources = StageSources(stage, self.predictions, self.seed, torch.device("cpu"))
        self.store = Units(stage.study, stage.scale, stage.stage, self.reuse, digits=5)
        # the seeds of a scheme count from 0, -1 is that of floors
        of_models = about["seed"] < self.n_trainings
        about = about[(about["dataset"] == self.dataset) & of_models]
        # chosen from the whole split: a part of every larger choice
        rows = choose_rows(self.test, self.n_base, self.seed)
        rows = rows[rows["row_id"].isin(set(about["row_id"]))].reset_index(drop=True)
        self.rows = one_form_each(rows) if self.one_form else rows
        self.explanations = about[about["row_id"].isin(set(self.rows["row_id"]))]

    def trainings(self, scheme: str) -> list[int]:
        """The trainings of a scheme that are asked: those that were explained."""
        found = self.explanations.loc[self.explanations["scheme"] == scheme, "seed"]
        return sorted(int(seed) for seed in found.unique())

    def of(self, scheme: str, training: int = 0) -> pd.DataFrame:
        """The explanations of a model and of the floors."""
        about = self.explanations
        is_model = (about["scheme"] == scheme) & (about["seed"] == training)
        return about[is_model | (about["scheme"] == NO_MODEL)]

    def methods(self, scheme: str) -> list[tuple[Method, dict[str, Any]]]:
        """The registered methods that explained the scheme's models, each with the settings that
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
        return one_form_each(self.rows, n_base) if n_base else self.rows

    def model(self, scheme: str, training: int = 0) -> Any:
        """A model; one at a time is held in memory."""
        return self.sources.model_of(Unit(self.dataset, scheme, training, "", {}, self.n_base))

    def swaps(self, scheme: str, training: int = 0) -> SwapShapley:
        """The Shapley values of a model over word swaps (`lib.attribution.swaps`), found once."""
        place = (scheme, training)
        if place not in self._swaps:
            self._swaps[place] = swap_shapley(
                self.model(*place),
                self.test,
                only=set(self.rows["row_id"]),
                study=self.stage.study,
                dataset=self.dataset,
                scheme=scheme,
                seed=training,
            )
        return self._swaps[place]

    def table(
        self,
        name: str,
        scheme: str,
        make: Callable[[], pd.DataFrame],
        training: int = 0,
        **settings: Any,
    ) -> pd.DataFrame:
        """A table about a model, with its scheme in the column `model`: read where finished, made
        otherwise.

        It is found again where model, explanations, rows and `settings` are the same; the
        weights are then not needed.
        """
        unit = Unit(self.dataset, scheme, training, name, settings, self.n_base)
        model = self.sources.mark_of(unit)
        key, before = (
            self.store.key(
                model=model,
                scores=self._scores_mark(scheme, training, digits),
                seed=self.seed,
                **settings,
            )
            for digits in (17, 4)  # tables that were published before 0.2.0 are found by four
        )
        table = self.store.load(unit.name, before) if self.reuse else None
        if table is None:
            table = self.store.finished(unit.name, key, make)
        return table.assign(model=scheme)

    def _scores_mark(self, scheme: str, training: int, digits: int) -> str:
        """A mark of the explanations with so many digits of their scores."""
        scores = self.of(scheme, training)[["method", "row_id", "scores"]]
        scores = scores.sort_values(["method", "row_id"])
        scores["scores"] = [" ".join(f"{x:.{digits}g}" for x in row) for row in scores["scores"]]
        return mark(scores)

    def tables(
        self,
        name: str,
        make: Callable[[str, int], pd.DataFrame],
        schemes: Sequence[str] = (),
        **settings: Any,
    ) -> pd.DataFrame:
        """The tables of all models, one after the other; `make` is called with a scheme's name and
        the number of the training, which stands in the column `seed`, also of floors: what they
        reach depends on the model that is asked.

        Args:
            schemes: which models; none: all.
        """
        places = [(s, k) for s in schemes or self.schemes for k in self.trainings(s)]
        return pd.concat(
            [
                self.table(name, s, partial(make, s, k), k, **settings).assign(seed=k)
                for s, k in places
            ],
            ignore_index=True,
        )
