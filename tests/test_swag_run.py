"""SWAG's own table through the filter, and `paper.yaml` through all stages.

Of each of the hub's families a tiny random model takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from masked_families import FAMILIES, hub_folder

from lib.core.files import load_parquet
from lib.core.parameters import read_params
from lib.core.paths import ROOT, material
from lib.core.runner import main

pytestmark = pytest.mark.slow

SWAG = ROOT / "tests/swag_head.csv"  # SWAG's header and kinds of rows; the sentences are ours
SMALLER = {
    "data_source": "bundled",
    "spacy_pipeline": "stored",
    "n_text": 20,
    "n_frames": 40,
    "epochs": 1,
    "mixtures": [[1e-4, 0.0]],
    "n_bases": 1,
    "n_seeds": 1,
    "transfer": "",
    "methods": ["InputXGradient", "Occlusion"],
    "n_explained": 2,
    "n_bootstrap": 5,
}


def test_swags_csv_as_it_is_through_the_filter(
    small_outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eleven rows, one of them a copy: four pass, the others' step and reason are known by hand."""
    status = main(
        ["implicit_bias", "--scale", "small", "--stage", "01", "-p", "sentence_file", str(SWAG)]
    )
    assert status == 0, capsys.readouterr().err
    stage = small_outputs / "implicit_bias/small/01_data_generation"
    assert pd.read_csv(stage / "steps.csv")["sentences"].tolist() == [10, 9, 7, 4, 4]
    passed = load_parquet(stage / "sentences.parquet")
    assert passed[["sentence_id", "antecedent", "gender"]].to_numpy().tolist() == [
        ["r2", "pharmacist", "M"],
        ["r4", "sculptor", "M"],
        ["r5", "survivor", "F"],
        ["r6", "librarian", "F"],
    ]
    assert passed["masked"].map(" ".join)[1] == "The sculptor cut [MASK] on the wire ."
    options = pd.read_csv(stage / "options.csv").set_index("option")["sentences"]
    assert (
        options["nobody is excluded"] == 5
        and options["names count"] == 5
        and options["without step 3"] == 7
    )


@pytest.mark.more
def test_paper_yaml_with_the_hubs_families(
    paper_repository: Callable[..., Path],
    tmp_path: Path,
    small_outputs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every family gets through; a random model fails the gate, so no table has a score of it."""
    assert len(read_params(ROOT / "params/implicit_bias/paper.yaml")["hub_models"]) == len(FAMILIES)
    hub = {hub_folder(tmp_path / "hub", name): "" for name in FAMILIES}
    few = pd.read_csv(material("implicit_bias") / "sentences.csv").head(80).assign(label=0)
    few.to_csv(tmp_path / "train.csv", index=False)
    values = {
        "hub_models": hub,
        "judged_model": next(iter(hub)),
        "sentence_file": str(tmp_path / "train.csv"),
    }
    root = paper_repository("implicit_bias", SMALLER | values)
    status = main(["implicit_bias", "--scale", "paper", "--root", str(root)])
    assert status == 0, capsys.readouterr().err
    stages = small_outputs / "implicit_bias/paper"
    filled = load_parquet(stages / "03_attribution/probabilities.parquet")
    assert (
        set(hub) < set(filled["model"])
        and filled.groupby("model")["sentence_id"].nunique().nunique() == 1
    )
    assert filled[["p_F", "p_M"]].gt(0).all().all()
    tested = pd.read_csv(stages / "04_metrics/shown.csv").set_index("model")
    assert (
        not tested.loc[list(hub), "passes"].any()
        and tested.loc[list(hub), "scores"].str.startswith("not shown: gate 0.").all()
    )
    started = {"base", "placebo", "even placebo", "augmented"}
    assert set(tested.index[~tested["passes"]]) > set(hub)
    shown = set(tested.index[tested["passes"]]) | started
    for name in ("distribution", "intervals", "arms", "histogram"):
        table = pd.read_csv(stages / f"04_metrics/{name}.csv")
        filled = table.dropna(subset=["estimate"]) if name == "arms" else table
        assert set(filled["model"]) <= shown, name
    claims = pd.read_csv(stages / "04_metrics/claims.csv").set_index("id")
    assert (
        claims.loc["biased_to_male", "verdict"] == "not run"
        and "did not pass the gate" in claims.loc["biased_to_male", "why"]
    )
