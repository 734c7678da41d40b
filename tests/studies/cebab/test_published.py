"""The units that are published of cebab's stages 2 and 3 (scale cpu) give its published errors."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lib.core.files import load_parquet, read_yaml, save_parquet
from lib.core.parameters import notebook_parameters
from lib.core.paths import ROOT, reference_dir
from lib.core.stage import open_stage
from lib.core.units import Units
from lib.metrics.concept_effects import DISTANCES, score_estimates
from lib.studies.cebab.asking import ABOUT
from lib.studies.cebab.pairs import edit_pairs, rated_pairs
from lib.studies.cebab.trainings import Trainings

UNITS = reference_dir("cebab", "cpu") / "units"
STAGES = ("01_data_generation", "02_training")
STEPS = 10_000  # of a published estimate


@pytest.mark.parametrize(("model", "number"), [("encoder", 0), ("BiLSTM", 4)])
def test_published_units_have_the_published_errors(
    cebab: pd.DataFrame, small_outputs: Path, model: str, number: int
) -> None:
    texts = cebab.assign(dataset="cebab")
    given = read_yaml(ROOT / "params/cebab/cpu.yaml", dict)
    first, second = (open_stage("cebab", "cpu", name) for name in STAGES)
    defaults, values = (
        notebook_parameters(ROOT / f"notebooks/cebab/{name}.py") | given for name in STAGES
    )
    save_parquet(texts, first.path("texts.parquet"))
    first.close(defaults)
    made = Trainings(second, Units("cebab", "cpu", "02_training"), values)
    parts = made.read("cebab")
    about = pd.concat([rows.assign(split=split) for split, rows in parts.items()])
    answers = pd.read_parquet(UNITS / "02_training" / f"cebab-{model}-seed{number}.parquet")
    assert len(answers) == len(about)
    told = answers.astype(float).assign(
        text_id=about["text_id"].to_numpy(),
        group=about["group"].to_numpy(),
        dataset="cebab",
        model=model,
        seed=number,
    )
    test = texts[texts["split"] == "test"]
    pairs = rated_pairs(edit_pairs(test).assign(dataset="cebab", split="test"), texts, 5)
    published = pd.read_csv(reference_dir("cebab", "cpu") / "04_metrics/errors.csv")
    for name in ("Zero", "Approx (mean)", "S-Learner"):
        file = "".join(letter if letter.isalnum() else "_" for letter in name)
        unit = load_parquet(UNITS / "03_attribution" / f"cebab-{model}-seed{number}-{file}.parquet")
        said = unit.drop(columns="scale") / STEPS
        labels = {"explainer": name, "dataset": "cebab", "model": model, "seed": number}
        rows = pairs[ABOUT].reset_index(drop=True).assign(**labels)
        scored = score_estimates(rows.join(said), told)
        mine = published[(published["model"] == model) & (published["explainer"] == name)]
        mine = mine.set_index("metric")["error"]
        for metric in DISTANCES:  # of one run; the table has the mean of five
            assert scored[metric].mean() == pytest.approx(mine[metric], abs=0.04), (name, metric)
