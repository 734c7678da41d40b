"""What a language model of stage 02 is made from, and when one pass over the text is not enough."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from ...models.language_model import LMConfig
from ...training.language_model import LMSettings
from .naming import GRAMMAR


def model_name(architecture: str, size: str, training: int) -> str:
    """What a model's unit and its files are called.

    >>> model_name("LSTM", "full", 0), model_name("LSTM", "full", 2)
    ('LSTM-full', 'LSTM-full-2')
    """
    return f"{architecture}-{size}" + (f"-{training}" if training else "")


def shown_trainings(models: Iterable[tuple[str, str, int]]) -> dict[str, int]:
    """The training of each architecture whose explanations are shown: the first one that has a
    student beside it; where none has, the first of all.

    Args:
        models: architecture, size, training.

    >>> with_one = [("LSTM+grammar", "full", 0), ("LSTM+grammar", "full", 1)]
    >>> shown_trainings(with_one), shown_trainings([*with_one, ("LSTM+grammar", "student", 1)])
    ({'LSTM+grammar': 0}, {'LSTM+grammar': 1})
    """
    found: dict[str, tuple[bool, int]] = {}
    for architecture, size, training in models:
        last = found.setdefault(architecture, (True, training))
        found[architecture] = min(last, (size != "student", training))
    return {architecture: training for architecture, (_, training) in found.items()}


def needs_second_pass(curve: pd.DataFrame, bar: float, gain: float) -> bool:
    """Whether one pass was not enough: the bar was missed, and the text still taught something.

    Args:
        curve: of the pass, with the perplexity at every check.
        bar: the perplexity that a model should reach; 0 asks for nothing.
        gain: what the last check must gain, a share of the perplexity before it.

    >>> curve = pd.DataFrame({"perplexity": [200.0, 150.0, 140.0]})
    >>> needs_second_pass(curve, 120, 0.02), needs_second_pass(curve, 145, 0.02)
    (True, False)
    >>> needs_second_pass(curve, 120, 0.1)
    False
    """
    values = curve["perplexity"].tolist()
    if not bar or min(values) <= bar or len(values) < 2:
        return False
    return 1 - values[-1] / values[-2] > gain


@dataclass(frozen=True)
class Plan:
    """How one language model is made.

    Attributes:
        architecture: its family, or the name of a published model.
        size: "full", "student", or the label of a configuration of the sweep.
        config: what it is built from; None for a published model.
        settings: how it is trained.
        share: of the corpus that it reads.
        layers: those of its teacher that a student starts from.
        training: counted from 0; each starts from weights of its own.
        source: of a published model, its hub id or folder, and the commit.
        is_check: whether it is explained for gender alone, by two probes: one that learns from as
            many *she* as *he*, and one from the examples as they are. Stage 04's table `two_probes`
            has it (and `intervals`, some of its shares), and `controls` its probes; no other result
            rests on it.
    """

    architecture: str
    size: str
    config: LMConfig | None = None
    settings: LMSettings | None = None
    share: float = 1.0
    layers: tuple[int, ...] = ()
    training: int = 0
    source: tuple[str, str] = ("", "")
    is_check: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """Architecture, size and training."""
        return self.architecture, self.size, self.training

    @property
    def name(self) -> str:
        """The name of its unit, and of its files."""
        return model_name(*self.key)

    @property
    def is_swept(self) -> bool:
        """Whether it belongs to the sweep."""
        return self.size not in ("full", "student")

    @property
    def reads_grammar(self) -> bool:
        """Whether sentences of the grammar are mixed into what it reads."""
        return self.architecture.endswith(GRAMMAR)
