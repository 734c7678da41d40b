"""Training language models over words, alone or from a teacher: one loop for all architectures."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cosine_similarity

from ..core.parameters import check_fields
from ..core.progress import progress
from ..core.seeds import to_device
from ..models.language_model import END, PAD, LanguageModel
from ..models.probe import WordTable
from ..models.text_model import Encoded, length_buckets, lengths_of, pad
from .loop import descend

TokenBatch = tuple[Int[Tensor, "batch token"], Int[Tensor, "batch token"]]  # ids and mask


_RULES = {
    "epochs": "1 or more",
    "lr": "0 or more",
    "batch_words": "2 or more",
    "longest": "1 or more",
    "warm_up": "0 to 1",
    "max_norm": "above 0 or more",
    "checks": "1 or more",
}


@dataclass(frozen=True)
class LMSettings:
    """How a language model is trained: Adam with a warm-up and a cosine to zero.

    `batch_words`: words in a step, counted with padding; `longest`: words of a piece, longer lines
    are cut; `checks`: how often a pass is measured on held-out text; with more than one the model
    is left at its best check.
    """

    epochs: int
    lr: float
    batch_words: int = 1024
    longest: int = 64
    warm_up: float = 0.05
    max_norm: float = 0.25
    checks: int = 1

    def __post_init__(self) -> None:
        """Refuse what no training can run with."""
        check_fields(self, _RULES)


@dataclass(frozen=True)
class Distillation:
    """DistilBERT's loss (Sanh et al. 2019; as in Ding & Koehn 2021): three terms, see `batch_loss`.

    `every`: the soft cross-entropy, the dearest of the three, is taken at every such word of a
    batch (1: at all of them).
    """

    teacher: LanguageModel
    every: int = 1


def pieces(
    sentences: Sequence[Sequence[str]], vocabulary: WordTable, longest: int
) -> list[Encoded]:
    """Sentences as ids, begun and ended by the end-of-sentence word.

    What is longer is cut into pieces.
    """
    end, encoded = vocabulary.ids[END], []
    for words in sentences:
        ids = [*vocabulary.encode(words), end]
        encoded += [Encoded([end, *ids[i : i + longest]], []) for i in range(0, len(ids), longest)]
    return encoded


def word_batches(
    encoded: Sequence[Encoded], batch_words: int, padding: int, generator: torch.Generator | None
) -> Iterator[TokenBatch]:
    """Batches of pieces of similar length, about `batch_words` words each, in random order."""
    for bucket in length_buckets(lengths_of(encoded), n_tokens=batch_words, generator=generator):
        yield pad([encoded[i] for i in bucket], padding)


def fit_lm(
    model: LanguageModel,
    train: Sequence[Encoded],
    valid: Sequence[Encoded],
    vocabulary: WordTable,
    settings: LMSettings,
    seed: int,
    distil: Distillation | None = None,
) -> pd.DataFrame:
    """Train a language model in place.

    Returns:
        The learning curve: epoch (a fraction, where a pass is measured several times), train_loss
        (nats a word; with a teacher the whole loss), perplexity (of `valid`).
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    padding, device = vocabulary.ids[PAD], next(model.parameters()).device

    ahead: list[list[TokenBatch]] = []  # the parts of a pass between two checks

    def batches() -> Iterable[TokenBatch]:
        model.train()  # `perplexity` leaves it in evaluation mode
        if not ahead:
            of_pass = list(word_batches(train, settings.batch_words, padding, generator))
            cuts = [len(of_pass) * i // settings.checks for i in range(settings.checks + 1)]
            ahead.extend(of_pass[start:stop] for start, stop in zip(cuts, cuts[1:]))
        return progress(ahead.pop(0), "batches")

    def losses(batch: TokenBatch) -> list[Tensor]:
        ids, mask = (to_device(part, device) for part in batch)
        return [batch_loss(model, ids, mask, distil)]

    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, betas=(0.9, 0.98))
    n_steps = settings.epochs * len(
        length_buckets(lengths_of(train), n_tokens=settings.batch_words, generator=generator)
    )
    warm_up = max(1, round(settings.warm_up * n_steps))  # then a cosine to zero
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(
            (step + 1) / warm_up, 0.5 * (1 + math.cos(math.pi * min(1.0, step / n_steps)))
        ),
    )
    curve = descend(
        list(model.parameters()),
        optimiser,
        settings.epochs * settings.checks,
        batches,
        losses,
        lambda: [perplexity(model, valid, vocabulary, settings.batch_words)],
        schedule,
        settings.max_norm,
        keep_best=settings.checks > 1,
    )
    table = pd.DataFrame(curve, columns=["epoch", "train_loss", "perplexity"])
    return table if settings.checks == 1 else table.assign(epoch=table["epoch"] / settings.checks)


def batch_loss(
    model: LanguageModel,
    ids: Int[Tensor, "batch token"],
    mask: Int[Tensor, "batch token"],
    distil: Distillation | None = None,
) -> Float[Tensor, ""]:
    """The loss of a batch: each word but the first is predicted from those before it.

    Padding does not count.
    """
    real = mask[:, 1:].bool()  # (batch, token - 1)
    targets = ids[:, 1:][real]  # (word)
    hidden = model.run(model.embed(ids[:, :-1]))[real]  # (word, hidden)
    if distil is None:
        return model.loss(hidden, targets)
    with torch.no_grad():
        teacher = distil.teacher.eval()
        teacher_hidden = teacher.run(teacher.embed(ids[:, :-1]))[real]  # (word, hidden)
        teacher_log_prob = teacher.log_prob(teacher_hidden[:: distil.every])  # (word, vocab)
    log_prob = model.log_prob(hidden[:: distil.every])
    soft = -(teacher_log_prob.exp() * log_prob).sum(-1).mean()
    if distil.every == 1:
        hard = -log_prob.gather(1, targets[:, None]).mean()
    else:
        hard = model.loss(hidden, targets)
    cosine = 1 - cosine_similarity(hidden, teacher_hidden, dim=-1).mean()
    return soft + hard + 3.0 * cosine  # the weights of Ding & Koehn


def minutes_ahead(
    model: LanguageModel,
    train: Sequence[Encoded],
    vocabulary: WordTable,
    settings: LMSettings,
    distil: Distillation | None = None,
    n_timed: int = 4,
) -> float:
    """How many minutes `fit_lm` will take on this machine, from a few of its batches.

    The model does not move.
    """
    batches = list(
        word_batches(
            train, settings.batch_words, vocabulary.ids[PAD], torch.Generator().manual_seed(0)
        )
    )
    device, timed = next(model.parameters()).device, []
    for ids, mask in batches[: n_timed + 1]:
        start = time.perf_counter()
        batch_loss(model, to_device(ids, device), to_device(mask, device), distil).backward()
        timed.append((time.perf_counter() - start) / ids.numel())
    model.zero_grad()
    n_words = settings.epochs * sum(ids.numel() for ids, _ in batches)
    return sorted(timed)[len(timed) // 2] * n_words / 60  # the median leaves the slow first out


@torch.no_grad()
def perplexity(
    model: LanguageModel,
    encoded: Sequence[Encoded],
    vocabulary: WordTable,
    batch_words: int = 4096,
) -> float:
    """exp of the mean negative log-probability of a word; the end of a sentence is a word."""
    model.eval()
    device = next(model.parameters()).device
    batches = list(word_batches(encoded, batch_words, vocabulary.ids[PAD], None))
    sizes = [int(mask[:, 1:].sum()) for _, mask in batches]
    losses = [
        batch_loss(model, to_device(ids, device), to_device(mask, device)) for ids, mask in batches
    ]
    # Read together: to read a number is to wait for the device.
    read = torch.stack(losses).tolist()
    return math.exp(sum(loss * n for loss, n in zip(read, sizes, strict=True)) / sum(sizes))
