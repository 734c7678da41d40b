"""Training masked language models, with a second loss where one is wanted; perplexities."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from ..core.parameters import check_fields
from ..core.progress import progress
from ..core.seeds import to_device
from ..models.masked_lm import MaskedLM
from ..models.shortcuts import parameters_fixed
from ..models.text_model import (
    Encoded,
    device_of,
    length_buckets,
    lengths_of,
    pad,
    special_ids,
)
from .loop import PRECISIONS, descend, products_in

IGNORED = -100  # cross-entropy's mark for a position that is not asked about


_RULES = {
    "epochs": "1 or more",
    "lr": "0 or more",
    "batch_tokens": "2 or more",
    "masked": "above 0 to below 1",
    "tuned": ["head", "upper", "encoder", "all"],
    "watched_share": "0 to 1",
    "warm_up": "0 to 1",
    "max_norm": "above 0 or more",
    "weight_decay": "0 or more",
    "precision": PRECISIONS,
}


@dataclass(frozen=True)
class MaskedSettings:
    """How a masked LM is trained: AdamW with a warm-up, then linearly to zero.

    `batch_tokens`: tokens in a step, counted with padding; `masked`: the share of tokens that is to
    be predicted (of held-out text always 15 %, so that curves can be compared); `tuned`: see
    `MaskedLM.trained_parameters`. `watched`: token ids that are to be predicted with the share
    `watched_share` instead, for a model whose answers on these words are what is studied. `checks`:
    how often held-out text is measured in an epoch; the curve has a line for each. `precision`: of
    the matrix products, see `products_in`; with another than float32 the steps are fused, too.
    """

    epochs: int
    lr: float
    batch_tokens: int = 1024
    masked: float = 0.15
    tuned: str = "encoder"
    watched: tuple[int, ...] = ()
    watched_share: float = 0.5
    warm_up: float = 0.1
    max_norm: float = 1.0
    weight_decay: float = 0.0
    checks: int = 1
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Refuse what no training can run with."""
        check_fields(self, _RULES)


@dataclass(frozen=True)
class Batch:
    """What a second loss may look at.

    The rows' numbers, the masked input, its padding mask, and the hidden states.
    """

    rows: list[int]
    ids: Int[Tensor, "batch token"]
    mask: Int[Tensor, "batch token"]
    hidden: Float[Tensor, "batch token hidden"]


@dataclass(frozen=True)
class SecondLoss:
    """A loss that is added to that of the masked words, and its own parameters.

    A head behind a gradient reversal (CausaLM, Feder et al. 2021) is one: the reversal lies inside
    `loss`.
    """

    loss: Callable[[Batch], Float[Tensor, ""]]
    parameters: Sequence[nn.Parameter] = field(default_factory=tuple)


def mask_tokens(
    ids: Int[Tensor, "batch token"],
    special: Sequence[int],
    mask_id: int,
    n_vocab: int,
    share: float,
    generator: torch.Generator,
    watched: Sequence[int] = (),
    watched_share: float = 0.5,
) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch token"]]:
    """Inputs and targets of masked-LM training: 80 % masked, 10 % another word, 10 % unchanged.

    Devlin et al. 2019.

    A position that is not asked about has the target -100; each row has at least one that is. Of
    the `watched` ids `watched_share` are asked about, of the others `share`.
    """
    # (batch, token). Three draws whatever is chosen: the stream does not depend on the words.
    draw = torch.rand(ids.shape, generator=generator)
    is_watched = torch.isin(ids, torch.tensor(watched, dtype=torch.long))
    # Scaled by the ratio, so that one threshold serves both shares.
    draw = torch.where(is_watched, draw * (share / watched_share), draw)
    draw[torch.isin(ids, torch.tensor(list(special)))] = 2.0  # above every share: never chosen
    # the smallest draw of a row is chosen in any case, so that no row is without a question
    chosen = (draw < share) | ((draw == draw.amin(1, keepdim=True)) & (draw < 2))
    targets = torch.where(chosen, ids, IGNORED)
    kind = torch.rand(ids.shape, generator=generator)
    words = torch.randint(n_vocab, ids.shape, generator=generator)
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    return torch.where(chosen & (kind >= 0.9), words, inputs), targets


def fit_masked_lm(
    model: MaskedLM,
    train: Sequence[Encoded],
    valid: Sequence[Encoded],
    settings: MaskedSettings,
    seed: int,
    second: SecondLoss | None = None,
) -> pd.DataFrame:
    """Train a masked LM in place.

    Dropout stays off, so that a seed gives the same numbers with and without a second loss. A head
    whose bias is still zero begins at the log of the words' frequencies in `train`, which spares it
    the first epochs.

    Returns:
        The learning curve: epoch, train_loss, second_loss, perplexity (of `valid`).
    """
    generator = torch.Generator().manual_seed(seed)
    _begin_at_frequencies(model, train)
    lengths, n_tokens = lengths_of(train), settings.batch_tokens
    n_batches = len(length_buckets(lengths, n_tokens=n_tokens))
    n_steps, checks = settings.epochs * n_batches, min(settings.checks, n_batches)
    parts = _parts(lengths, n_tokens, checks, generator)
    is_short = settings.precision != "float32"
    with parameters_fixed(model.module), products_in(settings.precision):
        tuned = model.trained_parameters(settings.tuned).values()
        for parameter in tuned:
            parameter.requires_grad_(True)
        learning = [*tuned, *(second.parameters if second else ())]
        optimiser = torch.optim.AdamW(
            learning, settings.lr, weight_decay=settings.weight_decay, fused=is_short or None
        )
        curve = descend(
            learning,
            optimiser,
            settings.epochs * checks,
            lambda: progress(next(parts), "batches"),
            lambda rows: _losses(model, train, rows, settings, generator, second),
            lambda: [masked_perplexity(model, valid)],
            get_linear_schedule_with_warmup(optimiser, round(settings.warm_up * n_steps), n_steps),
            settings.max_norm,
        )
    table = pd.DataFrame(curve, columns=["epoch", "train_loss", "second_loss", "perplexity"])
    return table.assign(epoch=table["epoch"] / checks) if checks > 1 else table


def _parts(
    lengths: Sequence[int], n_tokens: int, checks: int, generator: torch.Generator
) -> Iterator[list[list[int]]]:
    """The batches up to the next check, each epoch in an order of its own."""
    while True:
        buckets = length_buckets(lengths, n_tokens=n_tokens, generator=generator)
        ends = [len(buckets) * i // checks for i in range(checks + 1)]
        yield from (buckets[a:b] for a, b in zip(ends, ends[1:]))


def _losses(
    model: MaskedLM,
    train: Sequence[Encoded],
    rows: list[int],
    settings: MaskedSettings,
    generator: torch.Generator,
    second: SecondLoss | None,
) -> tuple[Tensor, Tensor]:
    # drawn on the CPU, so that every device gets the same words
    ids, mask = pad([train[i] for i in rows], model.pad_id)  # (batch, token)
    inputs, targets = mask_tokens(
        ids,
        special_ids(model.tokenizer),
        model.tokenizer.mask_token_id,
        model.module.config.vocab_size,
        settings.masked,
        generator,
        settings.watched,
        settings.watched_share,
    )
    device, places = device_of(model.module), _asked(targets)
    inputs, mask = to_device(inputs, device), to_device(mask, device)
    hidden = model.hidden(model.embed(inputs), mask)  # (batch, token, hidden)
    asked = hidden.flatten(0, 1)[to_device(places, device)]
    loss = F.cross_entropy(model.scores(asked), to_device(targets.flatten()[places], device))
    if second is None:
        return loss, torch.zeros((), device=device)
    return loss, second.loss(Batch(list(rows), inputs, mask, hidden))


def _asked(targets: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
    """Which positions of the flattened batch are asked about; told on the host, without waiting."""
    return (targets != IGNORED).flatten().nonzero()[:, 0]


@torch.no_grad()
def _begin_at_frequencies(model: MaskedLM, train: Sequence[Encoded]) -> None:
    """Set a head's bias, where it is still zero, to the log of the words' frequencies."""
    for name, p in model.trained_parameters("head").items():
        if name.endswith("bias") and p.shape == (model.module.config.vocab_size,) and not p.any():
            p.copy_(unigram(train, len(p), special_ids(model.tokenizer)).log())


def unigram(
    encoded: Sequence[Encoded], n_vocab: int, special: Sequence[int]
) -> Float[Tensor, "vocab"]:
    """Add-one unigram probabilities of the entries of a vocabulary.

    Special tokens are not counted.
    """
    counts = torch.ones(n_vocab)
    ids = torch.tensor([i for row in encoded for i in row.ids])
    counts += torch.bincount(ids[~torch.isin(ids, torch.tensor(list(special)))], minlength=n_vocab)
    return counts / counts.sum()


def asked_positions(
    model: MaskedLM,
    encoded: Sequence[Encoded],
    share: float,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches (inputs, mask, targets) for measuring.

    A fixed choice of tokens, all of them replaced by the mask token.
    """
    generator = torch.Generator().manual_seed(0)
    special, mask_id = special_ids(model.tokenizer), model.tokenizer.mask_token_id
    n_vocab = model.module.config.vocab_size
    for rows in length_buckets(lengths_of(encoded), n_tokens=4096):
        ids, mask = pad([encoded[i] for i in rows], model.pad_id)
        _, targets = mask_tokens(ids, special, mask_id, n_vocab, share, generator)
        # All of them masked: 10 % left in place would be read off, and flatter the model.
        yield torch.where(targets != IGNORED, mask_id, ids), mask, targets


@torch.no_grad()
def masked_perplexity(model: MaskedLM, encoded: Sequence[Encoded], share: float = 0.15) -> float:
    """exp of the mean negative log-probability of masked tokens, the same at every call.

    NaN without text.
    """
    total, n, device = 0.0, 0, device_of(model.module)
    for inputs, mask, targets in asked_positions(model, encoded, share):
        hidden = model.hidden(model.embed(to_device(inputs, device)), to_device(mask, device))
        places = _asked(targets)
        scores = model.scores(hidden.flatten(0, 1)[to_device(places, device)]).cpu()
        total += F.cross_entropy(scores, targets.flatten()[places], reduction="sum").item()
        n += len(places)
    return math.exp(total / n) if n else math.nan


def unigram_perplexity(
    model: MaskedLM, train: Sequence[Encoded], encoded: Sequence[Encoded], share: float = 0.15
) -> float:
    """The same quantity for add-one word frequencies of the training text, at the same tokens.

    The floor to beat.
    """
    log_p = unigram(train, model.module.config.vocab_size, special_ids(model.tokenizer)).log()
    targets = torch.cat(
        [targets[targets != IGNORED] for _, _, targets in asked_positions(model, encoded, share)]
    )
    return math.exp(-float(log_p[targets].double().mean()))
