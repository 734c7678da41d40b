"""`paper.yaml` runs through all five stages, with a tiny random BERT and less of everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from lib.core.files import load_parquet
from lib.core.runner import main
from lib.models.weights import load_tokenizer

pytestmark = pytest.mark.more

# what makes the run small, and nothing else: the published data and the weights are not at hand
# everywhere
SMALLER = {
    "data_source": "bundled",
    "spacy_pipeline": "stored",
    "reuse_units": False,
    "encoder_revision": "",
    "n_seeds": 2,
    "n_seeds_ola": 2,
    "epochs": {"C": 2, "CE": 1, "CEf": 1, "CEfAf": 1, "OLA-CEA": 2},
    "n_base": 2,
    "n_base_ola": 2,
    "n_bootstrap": 20,
    # what the appendix and the long runs of stage 03 do at scale cpu with several trainings
    "converged_seeds": {"CEf": 1, "OLA-CEA": 2},
    "most_samples": 256,
    "truth_schemes": ["CEf", "OLA-CEA"],
    "truth_seeds": 2,
    "truth_forms": "one",
    "n_draws": {"CEf": 2, "OLA-CEA": 1},
    "random_rows": "shared",
    "random_parts": {"CEf": ["head", "layer 0"]},
}


@pytest.fixture
def tiny_bert(tmp_path: Path) -> str:
    """A masked LM of two small layers with random weights, and bert-base-uncased's word pieces."""
    folder = tmp_path / "tiny-bert"
    config = BertConfig(
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
    )
    torch.manual_seed(0)
    BertForMaskedLM(config).save_pretrained(folder)
    load_tokenizer("all-MiniLM-L6-v2").save_pretrained(folder)
    return str(folder)


def test_paper_yaml_runs_through_with_a_tiny_random_bert(
    paper_repository: Callable[..., Path],
    tiny_bert: str,
    small_outputs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = paper_repository("geco", SMALLER | {"encoder": tiny_bert})
    status = main(["geco", "--scale", "paper", "--root", str(root)])
    assert status == 0, capsys.readouterr().err
    stages = small_outputs / "geco/paper"
    explained = load_parquet(stages / "03_attribution/explanations.parquet")
    models = explained[explained["scheme"] != "-"]
    assert (
        models.groupby("method").size().nunique() == 1
    )  # each method explains the same rows of the same models
    n_models = 2 * (1 + 4 * 2 + 2)  # data sets x (ZS once, four schemes and OLA with two seeds)
    assert (
        len(models) == models["method"].nunique() * n_models * 2 * 3
    )  # 2 base sentences in 3 forms
    settings = models.drop_duplicates("method").set_index("method")["settings"].astype(str)
    assert (
        "gausslegendre" in settings["Integrated Gradients"]
        and "200" in settings["Integrated Gradients"]
    )
    claims = pd.read_csv(stages / "04_metrics/claims.csv").set_index("id")["verdict"]
    of_classifiers = set(
        pd.read_csv(stages / "05_figures/verdict_figure_4.csv")["id"]
    )  # judged on all test sentences
    decided = set(claims.index[claims.isin(["holds", "partly", "fails"])])
    assert decided - of_classifiers == {
        "tfidf_top_words"
    }  # it is about the data; two base sentences decide nothing else
    assert claims["accuracy_above_80"] != "holds"  # random models
    assert len(list((stages / "05_figures").glob("*.png"))) == 9
