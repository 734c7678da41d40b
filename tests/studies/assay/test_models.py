"""Small models of the assay: built from a recipe, trained, kept and read back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lib.core.errors import TouchstoneError
from lib.models.text_model import encode_words
from lib.models.weights import load_tokenizer
from lib.studies.assay.explainers import count_passes
from lib.studies.assay.models import (
    build,
    ids_to_learn,
    log_odds,
    read_model,
    save_model,
    train,
)
from lib.training.classifier import Settings

ENCODER = "all-MiniLM-L6-v2"


def recipe(kind: str, **others: object) -> dict[str, object]:
    about = {"encoder": ENCODER, "revision": "", "n_layers": 1, "classes": ["0", "1"], "ids": []}
    return {"kind": kind, **about, "seed": 0, **others}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="classifier, pronoun, one layer"):
        build(recipe("tree"))


@pytest.mark.slow
def test_layers_that_there_are_not_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="has 6, so write 1 to 6"):
        build(recipe("classifier", n_layers=7))


@pytest.mark.slow
def test_the_word_table_stays_and_the_rest_learns() -> None:
    model, trained = build(recipe("pronoun", classes=["female", "male"]))
    table = model.module.get_input_embeddings().weight
    assert not table.requires_grad and all(p is not table for p in trained.values())
    assert len(model.module.base_model.encoder.layer) == 1
    f = log_odds(model, [["[MASK]", "sat", "."]] * 2, [1, 0])
    assert f[0] == pytest.approx(-f[1]) and f[0] != 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one layer", "recurrent"])
def test_a_model_from_scratch_learns_a_word_and_comes_back(kind: str, tmp_path: Path) -> None:
    texts = [["we", word, "here"] for word in ("sat", "ran") for _ in range(30)]
    rows = pd.DataFrame(
        {"sentence": texts, "target": [0] * 30 + [1] * 30, "sentence_idx": range(60)}
    )
    tokenizer = load_tokenizer(ENCODER)
    ids = sorted({i for row in encode_words(tokenizer, texts, 32) for i in row.ids})
    about = recipe(kind, ids=ids)
    model, trained, accuracy = train(about, rows, Settings(10, 0.01, 16))
    assert accuracy == 1 and (log_odds(model, texts, rows["target"]) > 0).all()
    save_model(tmp_path, "one", about, trained)
    files = tmp_path / "one.json", tmp_path / "one.safetensors"
    again = read_model(*files)
    assert np.allclose(
        log_odds(again, texts, rows["target"]), log_odds(model, texts, rows["target"])
    )
    files[1].write_bytes(files[1].read_bytes()[:-4])
    with pytest.raises(TouchstoneError, match="SHA-256"):
        read_model(*files)


@pytest.mark.slow
def test_only_a_model_of_one_layer_has_ids_to_learn() -> None:
    assert ids_to_learn(recipe("classifier"), [["mango"]]) == []
    few, more = (
        ids_to_learn(recipe("one layer"), [text]) for text in (["mango"], ["mango", "tea"])
    )
    assert few and set(few) < set(more)


@pytest.mark.slow
def test_passes_are_the_texts_that_the_model_reads() -> None:
    model, _ = build(recipe("classifier"))
    about = {"item_id": "i", "model": "m", "training": 0, "target": 1, "f": 0.0}
    rows = pd.DataFrame([{**about, "sentence": ["we", "sat", "here"], "text": "we sat here"}])
    asked = {"Saliency": {}, "Attention rollout": {}, "Integrated Gradients": {"n_steps": 5}}
    found = count_passes(model, rows, asked | {"Occlusion": {}}).set_index("explainer")["passes"]
    assert found[["Saliency", "Attention rollout"]].tolist() == [1, 1]
    assert 5 <= found["Integrated Gradients"] <= 7 and found["Occlusion"] >= 4
    norms = [layer for layer in model.module.modules() if isinstance(layer, torch.nn.LayerNorm)]
    assert not norms[-1]._forward_hooks, "the counter is taken off"
