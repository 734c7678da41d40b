"""Models that several studies start from: trained once, kept whole, found by their name."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
import torch

from lib.core.contents import locate
from lib.core.errors import TouchstoneError
from lib.core.paths import pretrained_dir
from lib.language.books import Book
from lib.models.hf import layer_stack
from lib.models.hf_lm import load_hf_lm
from lib.models.masked_lm import new_masked_lm, pretrained_masked_lm
from lib.models.weights import load_encoder_path
from lib.training import pretrain as trainer
from lib.training.pretrain import Recipe

WORDS = "the old man and a young woman walk to that small house by some quiet river".split()


def story(author: int) -> str:
    lines = (
        f"{WORDS[i % 15]} {WORDS[(i + author) % 15]} was near {WORDS[(3 * i) % 15]} ."
        for i in range(240)
    )
    return "\n".join(lines)


@pytest.fixture
def few_books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_OUTPUTS", str(tmp_path / "outputs"))
    books = []
    with zipfile.ZipFile(tmp_path / "books.zip", "w") as archive:
        for i in range(3):
            text = story(i)
            archive.writestr(f"Author {i}/x.md", text)
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            books.append(Book(f"Author {i}/x.md", 1440 + i, sha256))
    monkeypatch.setattr(trainer, "list_books", lambda: books)
    monkeypatch.setattr(trainer, "book_archive", lambda: tmp_path / "books.zip")
    recipes = {
        "gpt2": Recipe("causal", -1, 3, 0, 1e-2, n_valid=0, batch=256),
        "masked": Recipe("masked", 1, 3, 0, 1e-3, n_valid=60, batch=128),
        "upper": Recipe("upper", 1, 3, 0, 1e-3, n_valid=60, batch=128),
    }
    monkeypatch.setattr(trainer, "RECIPES", recipes)


def test_a_causal_model_is_trained_once_and_made_anew_where_it_is_damaged(
    few_books: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trainer.pretrain("gpt2")
    manifest = json.loads((folder / "manifest.json").read_text())
    curve = manifest["curve"]["perplexity"]
    assert len(curve) == len(set(curve)) and curve[-1] < curve[0]
    assert manifest["curve"]["epoch"][-1] == 1
    weights = folder / "model.safetensors"
    before, written = weights.read_bytes(), weights.stat().st_mtime_ns
    assert trainer.pretrain("gpt2") == folder and weights.stat().st_mtime_ns == written
    weights.write_bytes(before[:-4] + b"\0\0\0\1")
    assert trainer.pretrain("gpt2") == folder and weights.read_bytes() == before
    assert trainer.main([]) == 0
    said = capsys.readouterr().out
    assert "gpt2" in said and "whole" in said and "not trained" in said


def test_the_model_is_found_by_its_name(few_books: None) -> None:
    with pytest.raises(TouchstoneError, match="train it: touchstone pretrain gpt2"):
        load_encoder_path("pretrained/gpt2")
    trainer.pretrain("gpt2")
    model, words = load_hf_lm("pretrained/gpt2")
    assert model.config.embedding == 192 and len(words.encode(["The", "old", "man"])) >= 3
    assert locate("pretrained/gpt2") == pretrained_dir("gpt2")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["masked", "upper"])
def test_a_masked_model_goes_on_from_the_packaged_encoder(few_books: None, name: str) -> None:
    folder = trainer.pretrain(name)
    curve = json.loads((folder / "manifest.json").read_text())["curve"]
    assert 1 < len(curve["perplexity"]) <= 8 and curve["epoch"][-1] == 1
    model = pretrained_masked_lm(f"pretrained/{name}")
    assert model.log_prob(model.encode([["the", "old", "[MASK]"]])).shape == (1, 30522)
    layers, as_packaged = (
        layer_stack(m.module) for m in (model, new_masked_lm("all-MiniLM-L6-v2", 0))
    )
    kept = [
        all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
        for a, b in zip(layers, as_packaged, strict=True)
    ]
    assert kept == [name == "upper"] * 3 + [False] * 3


def test_a_sentence_that_the_model_cannot_read_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = new_masked_lm("all-MiniLM-L6-v2", 0)
    sentences = [["the", "old", "man"], ["old"] * model.max_length]
    assert [len(one.ids) for one in trainer._read(model, sentences)] == [5]
    assert "1 of 2 sentences" in capsys.readouterr().out


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(TouchstoneError, match="gpt3"):
        trainer.pretrain("gpt3")
