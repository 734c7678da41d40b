"""A batch that does not fit is halved and tried again; results do not depend on it."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from small_models import as_rows

import lib.attribution.budget as budgets
from lib.attribution import METHODS, explain
from lib.attribution.budget import TokenBudget, is_out_of_memory
from lib.core.errors import TouchstoneError
from lib.models.text_model import RunsFromEmbeddings

CPU = (
    "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 9 bytes."
)
FEW = {
    "Integrated Gradients": {"n_steps": 5},
    "LIME": {"n_samples": 30},
    "SmoothGrad": {"n_samples": 3},
}


def test_every_index_is_worked_on_once_in_batches_of_one_length() -> None:
    lengths, budget = [3, 5, 3, 3, 5, 3], TokenBudget(9)
    parts = [part for part, _ in budget.run(lengths, lambda part: None)]
    assert parts == [[0, 2, 3], [5], [1], [4]]
    assert sorted(i for part in parts for i in part) == list(range(6))


def test_a_gpu_gets_what_its_free_memory_allows(
    monkeypatch: pytest.MonkeyPatch, bert: RunsFromEmbeddings
) -> None:
    """Twice the memory, twice the tokens; a larger model gets fewer; and never below the CPU's."""
    assert TokenBudget.for_module(bert.module).tokens == 2048  # on the CPU a matter of speed

    def tokens(free: float, module: torch.nn.Module) -> int:
        monkeypatch.setattr(budgets, "free_memory", lambda device: int(free))
        return TokenBudget.for_module(module).tokens

    one, two = tokens(1e9, bert.module), tokens(2e9, bert.module)
    assert two == pytest.approx(2 * one, abs=2)
    # 17 numbers of 4 bytes for each of 2 layers and 16 hidden units.
    assert one == pytest.approx(0.6e9 / (4 * 17 * 2 * 16), rel=1e-3)
    assert tokens(80e9, torch.nn.Linear(2, 2)) == pytest.approx(
        80e9 * 0.6 / (68 * 12 * 768), rel=1e-3
    )
    assert tokens(1.0, bert.module) == 2048


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [RuntimeError(CPU), torch.OutOfMemoryError("CUDA out of memory. Tried to"), MemoryError()],
)
def test_out_of_memory_halves_the_batch_and_loses_nothing(error: Exception) -> None:
    sizes, budget = [], TokenBudget(80)

    def work(part: list[int]) -> int:
        sizes.append(len(part))
        if len(part) > 3:
            raise error
        return sum(part)

    made = list(budget.run([10] * 8, work))
    assert sizes == [8, 4, 2, 2, 2, 2] and budget.tokens == 20
    assert sum(total for _, total in made) == sum(range(8))
    assert [i for part, _ in made for i in part] == list(range(8))


def test_one_sequence_too_many_is_an_error_with_a_remedy() -> None:
    def work(part: list[int]) -> None:
        raise RuntimeError(CPU)

    with pytest.raises(
        TouchstoneError, match="one sequence of 7 tokens needs more memory.*leave it out"
    ):
        list(TokenBudget(70).run([7, 7], work))


def test_other_errors_come_through() -> None:
    def work(part: list[int]) -> None:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        list(TokenBudget(70).run([7, 7], work))
    assert not is_out_of_memory(ValueError("out of memory"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [name for name, method in METHODS.items() if method.family not in ("floor", "attention")],
)  # attention passes by the logits
def test_a_small_memory_gives_the_same_explanations(bert: RunsFromEmbeddings, method: str) -> None:
    """A model that refuses more than 12 tokens at once, as a full GPU does.

    A pair of sequences it must take.
    """
    rows = as_rows(
        ["they sing a song .", "he", "she sings .", "they sing a song .", "they sing a song ."]
    )
    expected, refused, logits = explain(bert, rows, method, FEW.get(method)).scores, [], bert.logits

    def small(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if len(mask) > 2 and mask.numel() > 12:
            refused.append(mask.numel())
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return logits(embeddings, mask)

    bert.logits = small
    found = explain(bert, rows, method, FEW.get(method)).scores
    assert refused
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        ("Integrated Gradients", {"n_steps": 5}),
        ("Integrated Gradients", {"tolerance": 0.01, "placing": "panels"}),
    ],
)
def test_where_a_step_does_not_fit_beside_the_graph_of_its_batch_the_batch_is_halved(
    bert: RunsFromEmbeddings, method: str, chosen: dict[str, object]
) -> None:
    """Room for 30 tokens, and a graph counts twice.

    Two rows of six (24) leave none for a step of a single one (12); one row does.
    """
    rows = as_rows(["he sings ."] * 4, [0, 1, 2, 0])
    expected, logits, held, refused = (
        explain(bert, rows, method, chosen).scores,
        bert.logits,
        [0],
        [],
    )

    def small(embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        n = mask.numel() * (2 if embeddings.requires_grad else 1)
        if held[0] + n > 30:
            refused.append((held[0], n))
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        found = logits(embeddings, mask)
        if found.requires_grad:
            held[0] += n
            weakref.finalize(found, lambda: held.__setitem__(0, held[0] - n))
        return found

    bert.logits = small
    found = explain(bert, rows, method, chosen).scores
    assert (24, 12) in refused
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
