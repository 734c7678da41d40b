"""Training the output layer of a probe over a language model that never moves."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from ..core.parameters import check_fields
from ..models.probe import CausalLM, Probe, WordTable, features
from ..models.text_model import device_of
from .classifier import CURVE
from .loop import descend


@dataclass(frozen=True)
class ProbeSettings:
    """How a probe learns (Ding & Koehn 2021, section 5.1).

    Adam; its rate is halved where the validation loss no longer falls.
    """

    epochs: int = 10
    lr: float = 0.001
    batch_size: int = 10

    def __post_init__(self) -> None:
        """Refuse what no training can run with."""
        check_fields(self, {"epochs": "1 or more", "lr": "0 or more", "batch_size": "1 or more"})


def fit_probe(
    lm: CausalLM,
    vocabulary: WordTable,
    classes: tuple[str, ...],
    table: pd.DataFrame,
    settings: ProbeSettings,
    seed: int,
) -> tuple[Probe, pd.DataFrame]:
    """A probe at its epoch of lowest validation loss, and its learning curve.

    The language model never moves, so its states are computed once. The layer learns on the host:
    its steps are too small to be worth a device's time.

    Args:
        table: examples with the columns split (train or valid), prefix and tag (a class's index).

    Returns:
        The probe, and a table: epoch, train_loss, validation_loss, validation_accuracy.

    Raises:
        TouchstoneError: for a split without examples.
    """
    states, tags = _examples(lm, vocabulary, classes, table, "train")
    valid_states, valid_tags = _examples(lm, vocabulary, classes, table, "valid")
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(lm.config.embedding, len(classes))
    with torch.no_grad():
        start = torch.randn(layer.weight.shape, generator=generator)
        layer.weight.copy_(start * lm.config.embedding**-0.5)
        layer.bias.zero_()
    optimiser = torch.optim.Adam(layer.parameters(), lr=settings.lr)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=0)

    def losses(rows: Tensor) -> Sequence[Tensor]:
        return [F.cross_entropy(layer(states[rows]), tags[rows])]

    @torch.no_grad()
    def validate() -> Sequence[float]:
        scores = layer(valid_states)
        loss = F.cross_entropy(scores, valid_tags).item()
        schedule.step(loss)
        return loss, (scores.argmax(1) == valid_tags).sum().item() / len(valid_tags)

    curve = descend(
        list(layer.parameters()),
        optimiser,
        settings.epochs,
        lambda: torch.randperm(len(tags), generator=generator).split(settings.batch_size),
        losses,
        validate,
        by_rows=True,
        keep_best=True,
    )
    return Probe(lm, vocabulary, layer.to(device_of(lm)), classes), pd.DataFrame(
        curve, columns=CURVE
    )


def _examples(
    lm: CausalLM,
    vocabulary: WordTable,
    classes: tuple[str, ...],
    table: pd.DataFrame,
    split: str,
) -> tuple[Tensor, Tensor]:
    """The states of a split's prefixes (example, hidden), and their tags, on the host."""
    part = table[table["split"] == split]
    if part.empty:
        raise TouchstoneError(
            f"the probe of {' or '.join(classes)} has no examples in the split {split}; "
            "give it some"
        )
    states = features(lm.eval(), vocabulary, [text.split() for text in part["prefix"]])
    return states.cpu(), torch.tensor(part["tag"].to_numpy())
