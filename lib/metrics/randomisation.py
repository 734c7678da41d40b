"""Does an explanation look at the model? Parameters are made random, from the head down, and the
explanations compared.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pandas as pd
import torch
from torch import nn

from ..attribution.explain import explain_many
from ..attribution.registry import Method
from ..core.errors import TouchstoneError, check_choice
from ..core.seeds import seed_for
from ..models.hf import redraw
from .agreement import rank_likeness

TRAINED = "trained"  # the name of step 0, where nothing is random yet


def randomisation_steps(model: Any) -> list[tuple[str, dict[str, nn.Parameter]]]:
    """The parameters in the order in which they are made random: head, what follows the layers, the
    layers from the last to the first, embeddings. Every parameter is in exactly one step.

    `model.parts()` gives the parameters by part (embeddings, encoder, head) and name. A layer is
    an entry of the encoder's longest module list; encoder modules outside of it form steps of
    their own.
    """
    parts = model.parts()
    lists = {
        name: part for name, part in model.module.named_modules() if isinstance(part, nn.ModuleList)
    }
    # By parameters, not by entries: a model may hold other module lists (heads, experts).
    stack = max(lists, key=lambda name: len(list(lists[name].parameters())), default=None)
    groups: dict[str, dict[str, nn.Parameter]] = {}
    for name, parameter in parts["encoder"].items():
        groups.setdefault(_group(name, stack), {})[name] = parameter
    steps = [
        ("head", parts["head"]),
        *reversed(groups.items()),
        ("embeddings", parts["embeddings"]),
    ]
    return [(name, parameters) for name, parameters in steps if parameters]


def _group(name: str, stack: str | None) -> str:
    """The layer, or the module outside of the layers, that a parameter belongs to."""
    if stack and name.startswith(f"{stack}."):
        return f"layer {name[len(stack) + 1 :].split('.')[0]}"
    # "dense" and "linear" name no part by themselves; what they stand in does.
    return next(part for part in reversed(name.split(".")[:-1]) if part not in ("dense", "linear"))


@torch.no_grad()
def randomise(module: nn.Module, parameters: Mapping[str, nn.Parameter], seed: int) -> None:
    """Draw parameters anew as if they had never been trained: `lib.models.hf.redraw` for
    transformers, otherwise every module draws as PyTorch does for a new one. Layer norms go back to
    scale 1 and shift 0.
    """
    if has_config := hasattr(module, "config"):
        redraw(module, parameters, seed)
    # `reset_parameters` draws from the global stream, which belongs to the caller.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for owner in dict.fromkeys(name.rpartition(".")[0] for name in parameters):
            if not has_config or isinstance(module.get_submodule(owner), nn.LayerNorm):
                module.get_submodule(owner).reset_parameters()


@contextmanager
def _parameters_kept(module: nn.Module) -> Iterator[None]:
    """Within, parameters may be overwritten; afterwards they are what they were."""
    before = deepcopy(module.state_dict())
    try:
        yield
    finally:
        module.load_state_dict(before)


def cascading_randomisation(
    model: Any,
    rows: pd.DataFrame,
    methods: Sequence[str | tuple[str | Method, Mapping[str, Any]]],
    n_draws: int = 5,
    seed: int = 0,
    shown: Collection[str] = (),
    shared: bool = False,
) -> pd.DataFrame:
    """Cascading parameter randomisation (Adebayo et al. 2018, section 4.1): explanations before
    and after each step.

    Step k explains the rows with the model whose first k groups of parameters
    (`randomisation_steps`) are random, always for the row's own class. A method that explains
    the model falls to about 0; what stays is what it owes to the sentence alone, to the lengths
    of words in pieces, say. One random model likes some words better than others in all rows at
    once, so more rows do not make up for one draw: `n_draws` models are drawn, each with its own
    cascade, and intervals belong over draws. The model is left as it was.

    Args:
        model: which tells its parts.
        rows: to be explained.
        methods: names or methods, with settings where they are not the defaults.
        n_draws: random models.
        seed: of the random models.
        shown: the parts after which the rows are explained; none: after each. The cascade makes
            the parts between random all the same.
        shared: whether each random model explains a share of its own of the base sentences; so many
            are drawn at the price of one.

    Returns:
        method, row_id, sentence_idx, step, part (`TRAINED`, "head", "layer 5", ...,
        "embeddings"), draw, rank_signed
        and rank_size: Spearman over the words between this explanation and that of the trained
        model, with and without signs (NaN for one word or equal scores).

    Raises:
        TouchstoneError: for a model that does not tell its parts, and for a part in `shown` that it
            does not have.
    """
    if not hasattr(model, "parts"):
        raise TouchstoneError(
            f"{type(model).__name__} does not tell its parts, so there is no order in which to "
            "make it random; give it a method `parts`, as lib.models.hf.HFClassifier has"
        )
    steps = randomisation_steps(model)
    known = [part for part, _ in steps]
    for part in shown:
        check_choice("the part in `shown`", part, known)
    first, number = explain_many(model, rows, methods), pd.factorize(rows["sentence_idx"])[0]
    shares = [rows[number % n_draws == draw] if shared else rows for draw in range(n_draws)]
    firsts = [first[first["row_id"].isin(set(share["row_id"]))] for share in shares]
    found = [_compared(before, before, 0, TRAINED, draw) for draw, before in enumerate(firsts)]
    for draw in range(n_draws):
        share = shares[draw].reset_index(drop=True)
        with _parameters_kept(model.module):
            for step, (part, parameters) in enumerate(steps, start=1):
                randomise(model.module, parameters, seed_for("randomise", part, draw, seed))
                if shown and part not in shown:
                    continue
                now = explain_many(model, share, methods)
                found.append(_compared(firsts[draw], now, step, part, draw))
    return pd.concat(found, ignore_index=True)


def _compared(
    first: pd.DataFrame, now: pd.DataFrame, step: int, part: str, draw: int
) -> pd.DataFrame:
    return first[["method", "row_id", "sentence_idx"]].assign(
        step=step, part=part, draw=draw, **rank_likeness(first["scores"], now["scores"])
    )
