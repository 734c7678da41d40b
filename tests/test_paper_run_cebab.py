"""`paper.yaml` of cebab runs through, with tiny random models in the place of RoBERTa and GPT-2 and
less of everything.

The explained encoder is a GPT-2, whose concepts are unlearnt by a RoBERTa, beside a BiLSTM; from
stage 3 on a model from outside joins: the GPT-2 again, as CSV, Parquet and arrays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as tf
from tiny_models import byte_pairs

from lib.core.files import load_parquet
from lib.core.paths import ROOT, material
from lib.core.runner import main
from lib.metrics.concept_effects import icace
from lib.studies.cebab.reading import load_reading
from lib.studies.cebab.registry import EXPLAINERS
from lib.studies.cebab.reviews import ASPECTS
from lib.studies.cebab.worlds import read_wordings, wordings_by_split

pytestmark = pytest.mark.more

# what makes the run small, and nothing else: the published data and the weights are not at hand
# everywhere
SMALLER = {
    "data_source": "bundled",
    "n_originals": {"train": 80, "dev": 6, "test": 16},
    "n_edits": 3,
    "encoder_revision": "",
    "n_seeds": 1,
    "n_bootstrap": 20,
    "epochs": {"encoder": 6, "BiLSTM": 15},
    "lr": {"encoder": 0.01, "BiLSTM": 0.02, "masked LM": 0.01, "unlearning": 0.01},
    "batch_size": {"encoder": 8, "BiLSTM": 8},
    "masked_lm": {"layers": 2, "epochs": 1, "batch_tokens": 4096},
    "unlearning": {"epochs": 1, "batch_tokens": 4096},
    "proxy": {"layers": 2, "epochs": 1, "batch_size": 128, "questions": 1},
}
PLACES = 160  # the most tokens of a text


def saved(folder: Path, family: str) -> str:
    """A random model of two small layers with its tokenizer, as one would find it on a hub."""
    words = wordings_by_split(read_wordings(material("cebab") / "wordings.yaml"))["train"]
    tokenizer = byte_pairs(family == "roberta", tuple(words * 3), n_vocab=700, places=PLACES)
    torch.manual_seed(0)
    if family == "roberta":
        config = tf.RobertaConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=PLACES + 2,
            pad_token_id=1,
            initializer_range=0.3,
        )
        tf.RobertaForMaskedLM(config).save_pretrained(folder / family)
    else:
        config = tf.GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=PLACES,
            initializer_range=0.3,
            bos_token_id=0,
            eos_token_id=0,
        )
        tf.GPT2LMHeadModel(config).save_pretrained(folder / family)
    tokenizer.save_pretrained(folder / family)
    return str(folder / family)


@pytest.fixture
def paper_root(paper_repository: Callable[..., Path], tmp_path: Path) -> Path:
    """A repository whose paper.yaml is ours but for `SMALLER` and the encoders."""
    return paper_repository(
        "cebab",
        SMALLER
        | {"encoder": saved(tmp_path, "gpt2"), "masked_encoder": saved(tmp_path, "roberta")},
    )


def outside_files(stage: Path, folder: Path) -> dict[str, str]:
    """What stage 2 found of one model, as files from outside: a CSV, a Parquet and arrays; the
    parameters that name them.
    """
    folder.mkdir()
    told = load_parquet(stage / "predictions.parquet").query(
        "dataset == 'confounded' and model == 'encoder' and seed == 0"
    )
    told[["text_id", *(f"p_{k + 1}" for k in range(5))]].iloc[::-1].to_csv(
        folder / "predictions.csv", index=False
    )
    load_parquet(stage / "aspects.parquet").query("dataset == 'confounded'")[
        ["text_id", *ASPECTS]
    ].to_parquet(folder / "aspects.parquet")
    ids, reading = load_reading(stage / "vectors/confounded-encoder-seed0.npz")
    np.savez(
        folder / "vectors.npz",
        text_id=ids.astype(str),
        vectors=reading.vectors,
        weight=reading.head.weight,
        bias=reading.head.bias,
    )
    return {
        f"outside_{name.partition('.')[0]}": str(folder / name)
        for name in ("predictions.csv", "aspects.parquet", "vectors.npz")
    }


def run(root: Path, stages: tuple[str, ...], **values: Any) -> None:
    """Some stages of the study, headless, as a user would run them."""
    given = [part for name, value in values.items() for part in ("-p", name, json.dumps(value))]
    for stage in stages:
        assert (
            main(["cebab", "--scale", "paper", "--root", str(root), "--stage", stage, *given]) == 0
        )


def test_paper_yaml_runs_through_with_tiny_models_and_one_from_outside(
    paper_root: Path, tmp_path: Path, small_outputs: Path
) -> None:
    stages = small_outputs / "cebab/paper"
    run(paper_root, ("01", "02"))
    outside = outside_files(stages / "02_training", tmp_path / "outside")
    pairs = load_parquet(stages / "01_data_generation/pairs.parquet")
    silence = tmp_path / "silence.csv"
    estimated_elsewhere(pairs.query("dataset == 'confounded'"), silence, (0,))
    run(paper_root, ("03", "04", "05"), estimate_files=[str(silence)], **outside)
    found = load_parquet(stages / "03_attribution/estimates.parquet")
    units = found.groupby(["model", "dataset", "seed"])["explainer"].agg(set)
    able = {name for name, entry in EXPLAINERS.items() if entry.needs in ("", "weights", "layers")}
    assert (
        units["encoder"].tolist() == [set(EXPLAINERS)] * 2
        and units["BiLSTM"].tolist() == [set(EXPLAINERS) - {"Causal Proxy Model"}] * 2
    )
    assert units["outside"].tolist() == [able | {"silence"}]
    keys, columns = ["explainer", "base_id", "counterfactual_id"], [f"e_{k + 1}" for k in range(5)]
    inside, other = (
        found.query(f"dataset == 'confounded' and seed == 0 and model == '{model}'")
        .set_index(keys)[columns]
        .sort_index()
        for model in ("encoder", "outside")
    )
    for name in (
        "CONEXP",
        "Approx (mean)",
        "S-Learner (soft)",
        "Concept LIME",
        "LEACE",
        "LEACE (towards c')",
    ):  # nothing is drawn in these
        assert np.allclose(inside.loc[name], other.loc[name], atol=1e-4), name
    errors = pd.read_csv(stages / "04_metrics/errors.csv").set_index(
        ["dataset", "model", "explainer", "metric"]
    )["error"]
    assert np.isfinite(errors).all()
    mean = errors["confounded", "outside", "Zero", "L2"]
    effect = icace(
        pairs.query("dataset == 'confounded' and split == 'test'"),
        pd.read_csv(outside["outside_predictions"], dtype={"text_id": str}),
    )
    assert mean == pytest.approx(
        np.linalg.norm(effect, axis=1).mean(), abs=1e-4
    )  # what is scored is the model from outside
    assert set(pd.read_csv(stages / "04_metrics/claims.csv")["verdict"]) == {
        "not run"
    }  # they are about the published data
    assert len(list((stages / "05_figures").glob("*.png"))) == 3
    for name in ("05_figures/leaderboard", "05_figures/heat_map", "04_metrics/controls"):
        ours, theirs = (
            set(pd.read_csv(stages / f"{name}{end}.csv")["explainer"]) for end in ("", "_outside")
        )
        assert ours == set(EXPLAINERS) and theirs == able | {"silence"}, name


def examples() -> list[str]:
    """The Python of the study's README: how to hand in a model, and an explainer."""
    readme = (ROOT / "notebooks/cebab/README.md").read_text()
    return re.findall(r"```python\n(.*?)```", readme, flags=re.S)


def hand_in_two_trainings(texts: pd.DataFrame, folder: Path) -> None:
    """Two BERTs with random weights, by the README's function."""
    scope: dict[str, Any] = {}
    exec(examples()[0], scope)
    words = wordings_by_split(read_wordings(material("cebab") / "wordings.yaml"))["train"]
    tokenizer = byte_pairs(True, tuple(words * 3), n_vocab=700, places=PLACES)
    config = tf.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=PLACES + 2,
        num_labels=5,
        initializer_range=0.7,
    )
    for seed in (4, 7):
        torch.manual_seed(seed)
        model = tf.BertForSequenceClassification(config).eval()
        scope["hand_in"](model, tokenizer, texts, folder, seed)


def estimated_elsewhere(pairs: pd.DataFrame, path: Path, seeds: tuple[int, ...]) -> None:
    """Somebody's table about the model from outside: nothing ever changes."""
    zeros = {f"e_{k + 1}": 0.0 for k in range(5)}
    tables = [pairs[["base_id", "counterfactual_id", "old"]].assign(seed=s) for s in seeds]
    about = {"explainer": "silence", "dataset": "confounded", "model": "outside"}
    both = pd.concat(tables).assign(**about, **zeros)
    both.iloc[::-1].to_csv(path, index=False)


def test_two_trainings_and_two_explainers_from_outside_need_no_model_of_ours(
    paper_root: Path, tmp_path: Path, small_outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = small_outputs / "cebab/paper"
    run(paper_root, ("01", "02"), models=[])
    assert not list((stages / "02_training").glob("vectors/*seed*")), "no network was trained"
    texts, pairs = (
        load_parquet(stages / f"01_data_generation/{name}.parquet").query(
            "dataset == 'confounded' and split in ('train', 'test')"
        )
        for name in ("texts", "pairs")
    )
    hand_in_two_trainings(texts, tmp_path)
    (tmp_path / "my_explainer.py").write_text(examples()[1])
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.syspath_prepend(tmp_path)
    estimated_elsewhere(pairs, tmp_path / "silence.csv", (4, 7))
    mine = "my_explainer:by_words"
    ours = ["Zero", "No concept", "Approx (mean)", "TCAV", "INLP", "CausaLM"]  # without CONEXP
    run(
        paper_root,
        ("03", "04", "05"),
        explainers=[*ours, mine],
        estimate_files=[str(tmp_path / "silence.csv")],
        outside_predictions=str(tmp_path / "predictions-{seed}.csv"),
        outside_vectors=str(tmp_path / "vectors-{seed}.npz"),
        outside_seeds=[4, 7],
    )
    found = load_parquet(stages / "03_attribution/estimates.parquet")
    assert (
        found.groupby("seed")["explainer"].agg(set).tolist()
        == [{*ours, mine, "silence"} - {"CausaLM"}] * 2
    )
    assert (found["model"] == "outside").all()
    errors = pd.read_csv(stages / "04_metrics/errors.csv")
    assert (errors["n_seeds"] == 2).all() and np.isfinite(
        errors[["error", "low", "high"]].to_numpy()
    ).all()
    by_name = errors.set_index(["explainer", "metric"])
    assert np.isclose(by_name["error"]["silence", "L2"], by_name["error"]["Zero", "L2"])
    assert set(by_name["family"][["silence", mine]]) == {"outside"}
    scored = pd.read_csv(stages / "04_metrics/comparisons.csv")
    assert {mine, "silence"} <= set(scored["left"]) | set(scored["right"])
    claims = pd.read_csv(stages / "04_metrics/claims.csv")["id"]
    of_texts = {"edits_reach_their_goal", "edits_leave_other_aspects_alone"}  # no model is in them
    assert claims.str.endswith(" (outside)").sum() == (len(claims) - len(of_texts)) / 2
    assert of_texts <= set(claims)
    board = pd.read_csv(stages / "05_figures/leaderboard.csv")
    assert {mine, "silence"} <= set(board["explainer"])
    assert {mine, "silence"} <= set(pd.read_csv(stages / "05_figures/heat_map.csv")["explainer"])


def test_the_two_class_task_is_explained(paper_root: Path, small_outputs: Path) -> None:
    names = [
        "Random",
        "Zero",
        "No concept",
        "CONEXP",
        "Approx (mean)",
        "S-Learner",
        "TCAV (as released)",
        "ConceptSHAP (as released)",
        "INLP",
        "CausaLM",
    ]
    run(paper_root, ("01", "02", "03"), n_classes=2, models=["frozen encoder"], explainers=names)
    stages = small_outputs / "cebab/paper"
    texts, answers = (
        load_parquet(stages / "01_data_generation/texts.parquet"),
        load_parquet(stages / "02_training/predictions.parquet"),
    )
    assert not set(answers["text_id"] + answers["dataset"]) & set(
        (texts["text_id"] + texts["dataset"])[texts["rating"] == 3]
    )  # three stars: no class
    found = load_parquet(stages / "03_attribution/estimates.parquet")
    assert [name for name in found if name.startswith("e_")] == ["e_1", "e_2"] and set(
        found["explainer"]
    ) == set(names)
    sums = found.groupby("explainer")[["e_1", "e_2"]].sum().sum(axis=1).abs()
    assert (
        sums.drop("TCAV (as released)") < 1e-6
    ).all()  # with two classes even the released ConceptSHAP sums to zero: 1 - 2/2
