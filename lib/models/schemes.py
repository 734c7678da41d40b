"""Transfer schemes as data.

Which part of a model stays, goes on learning, or starts anew (paper, Table 3).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torch import nn

from ..core.errors import TouchstoneError

if TYPE_CHECKING:  # who asks for the schemes alone need not load transformers
    from .hf import HFClassifier
    from .ola import OneLayerAttention

Treatment = Literal["fixed", "fine-tuned", "re-initialised"]
PARTS = ("embeddings", "encoder", "head")


@dataclass(frozen=True)
class Scheme:
    """What happens to each part of a model.

    The paper calls the encoder Attention and the head Classification.
    """

    name: str
    embeddings: Treatment
    encoder: Treatment
    head: Treatment
    is_one_layer: bool = False  # a network of its own (lib.models.ola) in place of the encoder
    adam_eps: float = 1e-8

    def trained(self) -> tuple[str, ...]:
        """The parts that learn.

        >>> SCHEMES["CE"].trained()
        ('embeddings', 'head')
        """
        return tuple(part for part in PARTS if getattr(self, part) != "fixed")


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("ZS", "fixed", "fixed", "fixed"),
        Scheme("C", "fixed", "fixed", "re-initialised"),
        Scheme("CE", "re-initialised", "fixed", "re-initialised"),
        Scheme("CEf", "fine-tuned", "fixed", "re-initialised"),
        Scheme("CEfAf", "fine-tuned", "fine-tuned", "re-initialised"),
        Scheme(
            "OLA-CEA",
            "re-initialised",
            "re-initialised",
            "re-initialised",
            is_one_layer=True,
            adam_eps=1e-5,  # as released; the others have PyTorch's default
        ),
    )
}


def scheme_named(name: str) -> Scheme:
    """The scheme of a name; an unknown one is refused with the names there are."""
    if name not in SCHEMES:
        raise TouchstoneError(
            f"there is no transfer scheme {name!r}; choose from {', '.join(SCHEMES)}"
        )
    return SCHEMES[name]


def apply_scheme(
    model: "HFClassifier | OneLayerAttention", scheme: Scheme, seed: int
) -> dict[str, nn.Parameter]:
    """Re-draw what starts anew, freeze what stays, and return the parameters that learn, by name.

    Raises TouchstoneError where the parts do not cover the model, or a part that should learn has
    no parameters: a name that matches nothing would otherwise freeze it without a word.
    """
    parts = model.parts()
    ids = [id(p) for part in parts.values() for p in part.values()]
    if len(ids) != len(set(ids)) or set(ids) != {id(p) for p in model.module.parameters()}:
        raise TouchstoneError(
            f"the parts of {type(model.module).__name__} do not cover its parameters exactly once"
        )
    trained: dict[str, nn.Parameter] = {}
    for part in PARTS:
        treatment = getattr(scheme, part)
        if treatment != "fixed" and not parts[part]:
            raise TouchstoneError(
                f"scheme {scheme.name} trains the {part}, but {type(model.module).__name__} has "
                "none"
            )
        if treatment == "re-initialised":
            model.redraw(part, seed)
        for name, parameter in parts[part].items():
            parameter.requires_grad_(treatment != "fixed")
            if treatment != "fixed":
                trained[name] = parameter
    return trained


def set_modes(model: "HFClassifier | OneLayerAttention", scheme: Scheme, dropout: float) -> None:
    """Put everything into evaluation mode.

    With dropout, the parts that learn (and only they) into training mode.
    """
    model.module.eval()
    if dropout == 0:
        return
    learns = {id(p) for part in scheme.trained() for p in model.parts()[part].values()}
    for module in model.module.modules():
        inside = {id(p) for p in module.parameters()}
        if inside and inside <= learns:
            _train_with(module, dropout)
    for child in model.module.children():  # a head's dropout may stand alone beside it
        if isinstance(child, nn.Dropout) and "head" in scheme.trained():
            _train_with(child, dropout)


def _train_with(module: nn.Module, dropout: float) -> None:
    module.train()
    for inner in module.modules():
        if isinstance(inner, nn.Dropout):
            inner.p = dropout
