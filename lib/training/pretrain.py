"""Models that several studies start from, trained once and kept below `outputs/pretrained/`.

    touchstone pretrain                  what there is to train
    touchstone pretrain minilm-books-1   train it, unless it is there and whole
    touchstone pretrain --pack FOLDER    archives of those that are there, with their sums

A folder `outputs/pretrained/<name>/` is a model of transformers with its tokenizer and, written
last, `manifest.json`: the recipe, the learning curve, versions, and the SHA-256 of every file.
Parameters name it `pretrained/<name>` (`encoder`, a key of `hf_models`); any stage 02 may read it.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Int
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    get_linear_schedule_with_warmup,
)

from ..core.errors import TouchstoneError, check_choice
from ..core.files import save_json, sha256_of
from ..core.paths import pretrained_dir
from ..core.progress import progress
from ..core.seeds import set_up
from ..core.stage import hold, package_versions, read_manifest
from ..language.books import authors_of, book_archive, book_sentences, list_books, split_authors
from ..models.masked_lm import MaskedLM, new_masked_lm
from ..models.text_model import Encoded, encode_words
from ..models.weights import quiet
from .loop import descend, products_in
from .masked_lm import MaskedSettings, fit_masked_lm
from .release import pack

_BEGIN, _N_PIECES = "<|endoftext|>", 6000
_BLOCK = 1024  # pieces, as GPT-2 reads; a causal model learns every position that it has
_CHECKS = 8  # how often held-out text is measured in one pass


@dataclass(frozen=True)
class Recipe:
    """What a model is made from and how.

    Attributes:
        kind: "masked" (the packaged encoder, further trained with its word table), "upper" (the
            same, of it only the head and the upper half of the layers) or "causal" (a GPT-2 shape,
            new).
        part: which of `n_parts` parts of the authors it reads; -1 for all but the first.
        n_words: of their books, about.
        n_valid: words of authors that it does not read, for the perplexity.
        precision: of the matrix products, see `products_in`.
    """

    kind: str
    part: int
    n_parts: int
    n_words: int
    lr: float
    n_valid: int = 60_000
    batch: int = 1024
    seed: int = 0
    precision: str = "bfloat16"


RECIPES = {
    **{  # from the sixth on: another draw from the same fifths, a sixth of it as before
        f"minilm-books-{i}": Recipe("masked", (i - 1) % 5, 5, 1_000_000, 5e-4, seed=i)
        for i in range(1, 9)
    },
    **{
        f"minilm-upper-{i}": Recipe("upper", i - 1, 5, 1_000_000, 2e-4, seed=i) for i in range(1, 6)
    },
    "gpt2-books": Recipe("causal", -1, 20, 10_000_000, 2e-3, precision="float32"),
}


def recipe_of(place: str) -> str | None:
    """The name in `RECIPES` of what parameters call `pretrained/<name>`; None for other places.

    >>> recipe_of("pretrained/gpt2-books"), recipe_of("pretrained/mine"), recipe_of("gpt2-books")
    ('gpt2-books', None, None)
    """
    folder, _, name = place.rpartition("/")
    return name if folder == "pretrained" and name in RECIPES else None


def pretrain(name: str) -> Path:
    """Train a model of `RECIPES` in one pass over its books, or read it where it is whole.

    Returns:
        Its folder.

    Raises:
        TouchstoneError: there is no such recipe, or the books cannot be had.
    """
    check_choice("the model", name, RECIPES)
    folder, recipe = pretrained_dir(name), RECIPES[name]
    with hold(folder.with_name(f".{name}.lock"), seconds=0):
        if is_whole(folder, recipe):
            return folder
        part = folder.with_name(f".{name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        set_up(recipe.seed)
        train, valid = texts_of(recipe)
        make = {"masked": _masked, "upper": _masked, "causal": _causal}[recipe.kind]
        curve = make(recipe, train, valid, part)
        manifest = {
            "parameters": asdict(recipe),
            "inputs": {},
            "externals": {},
            "curve": curve.to_dict("list"),
            "versions": package_versions(),
            "files": {path.name: sha256_of(path) for path in sorted(part.iterdir())},
        }
        save_json(manifest, part / "manifest.json")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(part, folder)
    return folder


def is_whole(folder: Path, recipe: Recipe) -> bool:
    """Whether a folder holds the model of this recipe, every file as it was written."""
    path = folder / "manifest.json"
    manifest = read_manifest(path) if path.is_file() else None
    if manifest is None:
        return False
    return manifest["parameters"] == asdict(recipe) and all(
        (folder / name).is_file() and sha256_of(folder / name) == sha256
        for name, sha256 in manifest["files"].items()
    )


def texts_of(recipe: Recipe) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences to train on, and sentences of other authors."""
    books, archive = list_books(), book_archive()
    parts = split_authors(books, recipe.n_parts)
    other = parts[(recipe.part + 1) % recipe.n_parts]
    read = parts[recipe.part] if recipe.part >= 0 else sum(parts[1:], [])
    train, valid = (
        list(book_sentences(archive, authors_of(books, authors), n_words, recipe.seed))
        for authors, n_words in ((read, recipe.n_words), (other, recipe.n_valid))
    )
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(recipe.seed))
    return [train[i] for i in order], valid


def _masked(
    recipe: Recipe, train: Sequence[Sequence[str]], valid: Sequence[Sequence[str]], folder: Path
) -> pd.DataFrame:
    model = new_masked_lm("all-MiniLM-L6-v2", recipe.seed)
    tuned = "upper" if recipe.kind == "upper" else "all"
    settings = MaskedSettings(
        1, recipe.lr, recipe.batch, tuned=tuned, checks=_CHECKS, precision=recipe.precision
    )
    curve = fit_masked_lm(model, _read(model, train), _read(model, valid), settings, recipe.seed)
    _save(model.module, model.tokenizer, folder)
    return curve


def _read(model: MaskedLM, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
    """Sentences as ids, without those that the model cannot read whole; it is said how many."""
    encoded = encode_words(model.tokenizer, sentences, max_length=sys.maxsize)
    kept = [one for one in encoded if len(one.ids) <= model.max_length]
    if n_long := len(encoded) - len(kept):
        print(f"{n_long} of {len(encoded)} sentences are longer than the model reads: left out")
    return kept


def _causal(
    recipe: Recipe, train: Sequence[Sequence[str]], valid: Sequence[Sequence[str]], folder: Path
) -> pd.DataFrame:
    tokenizer = train_tokenizer(train)
    begin = tokenizer.bos_token_id
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=_BLOCK,
        n_embd=192,
        n_layer=4,
        n_head=4,
        bos_token_id=begin,
        eos_token_id=begin,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config)
    blocks, held_out = (_blocks(tokenizer, text) for text in (train, valid))
    curve = fit_causal(model, blocks, held_out, recipe)
    _save(model, tokenizer, folder)
    return curve


def _save(module: Any, tokenizer: Any, folder: Path) -> None:
    with quiet():
        module.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def train_tokenizer(sentences: Sequence[Sequence[str]]) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of these sentences, as GPT-2 has one, in small letters."""
    bpe = ByteLevelBPETokenizer(lowercase=True)
    bpe.train_from_iterator(
        map(" ".join, sentences), _N_PIECES, show_progress=False, special_tokens=[_BEGIN]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token=_BEGIN, eos_token=_BEGIN, unk_token=_BEGIN
    )


def _blocks(
    tokenizer: PreTrainedTokenizerFast, sentences: Sequence[Sequence[str]]
) -> Int[Tensor, "batch token"]:
    """Sentences one after the other, each begun by the end-of-text piece, cut into blocks."""
    begin = tokenizer.bos_token_id
    encoded = tokenizer([" ".join(words) for words in sentences], add_special_tokens=False)
    ids = torch.tensor([i for row in encoded["input_ids"] for i in (begin, *row)])
    return ids[: len(ids) // _BLOCK * _BLOCK].view(-1, _BLOCK)


def fit_causal(
    model: GPT2LMHeadModel,
    blocks: Int[Tensor, "batch token"],
    held_out: Int[Tensor, "batch token"],
    recipe: Recipe,
) -> pd.DataFrame:
    """Train a causal model in place, one pass over blocks of text.

    Returns:
        The learning curve: epoch (part of the pass), train_loss (nats a piece), perplexity of
        `held_out` (of a piece).
    """
    at_once = max(1, recipe.batch // _BLOCK)
    order = torch.randperm(len(blocks), generator=torch.Generator().manual_seed(recipe.seed))
    batches: Iterator[Tensor] = iter(order.split(at_once))
    n_steps = -(-len(blocks) // at_once)
    per_check = -(-n_steps // _CHECKS)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=0.01, fused=True)

    @torch.no_grad()
    def validate() -> list[float]:
        model.eval()
        losses = [model(input_ids=part, labels=part).loss for part in held_out.split(8)]
        return [float(torch.stack(losses).mean().exp())]

    def losses(rows: Tensor) -> list[Tensor]:
        model.train()
        return [model(input_ids=blocks[rows], labels=blocks[rows]).loss]

    with products_in(recipe.precision):
        curve = descend(
            list(model.parameters()),
            optimiser,
            -(-n_steps // per_check),
            lambda: progress(list(islice(batches, per_check)), "batches"),
            losses,
            validate,
            get_linear_schedule_with_warmup(optimiser, n_steps // 20, n_steps),
            1.0,
        )
    model.eval()
    table = pd.DataFrame(curve, columns=["epoch", "train_loss", "perplexity"])
    return table.assign(epoch=(table["epoch"] * per_check / n_steps).clip(upper=1))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of `touchstone pretrain`; the exit status."""
    parser = argparse.ArgumentParser(prog="touchstone pretrain", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(RECIPES)}")
    parser.add_argument("--pack", type=Path, help="write archives for a release into this folder")
    chosen = parser.parse_args(arguments)
    names = chosen.names
    for name in names or RECIPES:
        if names:
            pretrain(name)
        recipe, folder = RECIPES.get(name), pretrained_dir(name)
        state = "whole" if recipe and is_whole(folder, recipe) else "not trained"
        print(f"{name:<16} {state:<12} {folder}")
    if chosen.pack:
        there = {name: pretrained_dir(name) for name in names or RECIPES}
        whole = [folder for name, folder in there.items() if is_whole(folder, RECIPES[name])]
        if not whole:
            raise TouchstoneError("there is no model to pack; train one: touchstone pretrain NAME")
        for archive in pack(whole, chosen.pack):
            print(f"packed and read again: {archive}")
    return 0
