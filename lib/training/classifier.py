"""Fitting a classifier: cross-entropy, Adam with a warm-up, the best epoch."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from sklearn.model_selection import GroupShuffleSplit
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from transformers import get_linear_schedule_with_warmup

from ..core.errors import TouchstoneError
from ..core.parameters import check_fields, check_range
from ..core.seeds import to_device
from ..models.text_model import Encoded, Forward, TextModel, device_of, lengths_of, pad
from .loop import Parts, descend

CURVE = ["epoch", "train_loss", "validation_loss", "validation_accuracy"]
POOL = 8  # batches that are sorted by length together: little padding, and still a shuffled order


_RULES = {
    "epochs": "1 or more",
    "lr": "0 or more",
    "batch_size": "1 or more",
    "weight_decay": "0 or more",
    "dropout": "0 to below 1",
    "eps": "0 or more",
    "warm_up": "0 to 1",
    "max_norm": "above 0 or more",
    "gradients": ["zeroed", "accumulated"],
}


@dataclass(frozen=True)
class Settings:
    """How a model is trained (paper, Table 5).

    `gradients`: "zeroed" before each step, or "accumulated" over the whole run and clipped after
    the step, as the released code does for OLA. `grouped`: batches of similar length. `eps` is
    Adam's, `warm_up` a share of all steps.
    """

    epochs: int
    lr: float
    batch_size: int
    weight_decay: float = 0.0
    dropout: float = 0.0
    eps: float = 1e-8
    warm_up: float = 0.1
    max_norm: float = 1.0
    gradients: str = "zeroed"
    grouped: bool = True

    def __post_init__(self) -> None:
        """Refuse what no training can run with."""
        check_fields(self, _RULES)


@dataclass(frozen=True)
class Split:
    """The rows to learn from and the rows that choose the epoch."""

    train: Int[Tensor, "batch"]
    validation: Int[Tensor, "batch"]


def validation_split(sentence_idx: Sequence[int], share: float, seed: int) -> Split:
    """Set aside a share of the base sentences: all variants of a sentence fall on the same side.

    >>> split = validation_split([1, 1, 2, 2, 3, 3], share=1 / 3, seed=0)
    >>> len(split.train), len(split.validation)
    (4, 2)
    """
    groups = np.asarray(sentence_idx)
    check_range(share, "above 0 to below 1", "the share of validation rows")
    check_range(seed, "0 to 4294967295", "the seed of the split")
    if len(np.unique(groups)) < 2:
        raise TouchstoneError(
            f"there are {len(np.unique(groups))} base sentences to divide into rows to learn from "
            "and rows that choose the epoch; hand in two or more"
        )
    cut = GroupShuffleSplit(n_splits=1, test_size=share, random_state=seed)
    train, validation = next(cut.split(groups, groups=groups))
    return Split(torch.from_numpy(train), torch.from_numpy(validation))


def batches(
    rows: Int[Tensor, "batch"],
    lengths: Int[Tensor, "batch"],
    settings: Settings,
    generator: torch.Generator,
) -> Iterator[Int[Tensor, "batch"]]:
    """One epoch's batches in random order; grouped ones hold rows of similar length."""
    # Two draws an epoch: the order of the rows, below that of the batches.
    rows = rows[torch.randperm(len(rows), generator=generator)]
    if not settings.grouped:
        yield from rows.split(settings.batch_size)
        return
    ordered: list[Int[Tensor, "batch"]] = []
    for pool in rows.split(POOL * settings.batch_size):
        ordered += pool[lengths[pool].argsort(stable=True)].split(settings.batch_size)
    yield from (ordered[i] for i in torch.randperm(len(ordered), generator=generator).tolist())


def token_forward(
    model: TextModel,
    encoded: Sequence[Encoded],
    row_of: Int[Tensor, "vocab"] | None = None,
    whole_width: bool = False,
) -> Forward:
    """The class scores of rows by their index, as a function.

    Each batch is padded to its own longest row, or to the longest of all (`whole_width`).

    `row_of` maps token ids to the rows of a reduced word table.
    """
    device = device_of(model.module)
    lengths = torch.tensor(lengths_of(encoded))
    ids, mask = pad(encoded, model.tokenizer.pad_token_id, device=device)
    if row_of is not None:
        ids = row_of[ids].clamp(min=0)  # padding may have no row: any will do

    def forward(index: Int[Tensor, "batch"]) -> Float[Tensor, "batch class"]:
        # The index is the host's, so the width is known without waiting for the device.
        width = ids.shape[1] if whole_width else int(lengths[index].max())
        there = to_device(index, device)
        return model.logits(model.embed(ids[there, :width]), mask[there, :width])

    return forward


def fit(
    forward: Forward,
    trained: Mapping[str, nn.Parameter],
    targets: Int[Tensor, "batch"],
    lengths: Int[Tensor, "batch"],
    split: Split,
    settings: Settings,
    seed: int,
    keep: str = "best",
    parts: Parts | None = None,
) -> pd.DataFrame:
    """Train parameters by the cross-entropy of a forward pass.

    Args:
        forward: the class scores of rows, which are named by their index.
        trained: the parameters that learn, by name; they are changed in place.
        targets: classes, or a probability of each class, by row.
        lengths: the number of tokens by row; grouped batches hold rows of similar length.
        keep: "best" leaves the parameters at the epoch of lowest validation loss, "last" at the
            last one.
        parts: see `descend`; it may raise `PartEnded`.

    Returns:
        The learning curve: epoch, train_loss (while learning), validation_loss,
        validation_accuracy.
    """
    if keep not in ("best", "last"):
        raise TouchstoneError(f"the epoch that is kept is {keep!r}; write best or last")
    # The global stream is dropout's; the order of the batches has one of its own.
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    parameters = list(trained.values())
    optimiser, schedule = adam(parameters, settings, len(split.train))
    curve = descend(
        parameters,
        optimiser,
        settings.epochs,
        lambda: batches(split.train, lengths, settings, generator),
        # The mean over the batch; `by_rows` weighs it by its length in the curve.
        lambda rows: [F.cross_entropy(forward(rows), targets[rows.to(targets.device)])],
        lambda: evaluate(forward, targets, lengths, split.validation, settings.batch_size),
        schedule,
        settings.max_norm,
        accumulate=settings.gradients == "accumulated",
        by_rows=True,
        keep_best=keep == "best",
        parts=parts,
        generators=[generator],
    )
    return pd.DataFrame(curve, columns=CURVE)


def adam(
    parameters: Iterable[Tensor], settings: Settings, n_train: int
) -> tuple[torch.optim.Optimizer, LRScheduler]:
    """Adam, and its learning rate: a warm-up, then linearly to zero."""
    optimiser = torch.optim.Adam(
        parameters, lr=settings.lr, weight_decay=settings.weight_decay, eps=settings.eps, fused=True
    )
    n_steps = settings.epochs * math.ceil(n_train / settings.batch_size)
    return optimiser, get_linear_schedule_with_warmup(
        optimiser, round(settings.warm_up * n_steps), n_steps
    )


@torch.no_grad()
def evaluate(
    forward: Forward,
    targets: Int[Tensor, "batch"],
    lengths: Int[Tensor, "batch"],
    rows: Int[Tensor, "batch"],
    batch_size: int,
) -> tuple[float, float]:
    """Mean cross-entropy and accuracy over rows; targets may be classes or probabilities."""
    in_order = rows[lengths[rows].argsort(stable=True)]  # little padding
    scores = torch.cat([forward(batch) for batch in in_order.split(batch_size)])  # (batch, class)
    wanted = targets[in_order.to(targets.device)]
    classes = wanted if wanted.ndim == 1 else wanted.argmax(1)
    n_right = (scores.argmax(1) == classes).sum()
    return F.cross_entropy(scores, wanted).item(), n_right.item() / len(wanted)
