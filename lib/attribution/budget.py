"""How much goes through a model at once: a number of tokens, halved whenever memory runs out."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import torch
from torch import nn

from ..core.errors import TouchstoneError
from ..models.text_model import device_of, length_buckets, merged_buckets, padded_buckets

_Made = TypeVar("_Made")
# A CPU core is at nine tenths of its peak from 16 sentences of 22 tokens on; more costs memory.
TOKENS = 2048
_FREE_SHARE = 0.6  # of a GPU's free memory; the rest is for weights of copies, and for fragments
# What a layer keeps of a token for the way back, in numbers a hidden unit (Korthikanti et al. 2022,
# section 4.1: 34 bytes at 2 bytes each); attention's maps are those of fused kernels, not kept.
_KEPT = 17
_BASE = 12, 768  # layers and hidden units of BERT-base, where a model does not tell its own
_PADDING = 0.1  # of the real tokens of a batch
# What a pass costs beside its tokens, in tokens: measured on a CPU core, where passes with one row
# of 22 tokens and with many reach 920 and 2,100 tokens a second. On a GPU it is far more.
_PER_PASS = 26
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class NotEnoughMemory(TouchstoneError, MemoryError):
    """A single sequence was too much; within a larger batch, the batch's graph may be at fault."""


@dataclass
class TokenBudget:
    """The most tokens in one batch; it learns about the memory, so share one over a whole run."""

    tokens: int = TOKENS

    @classmethod
    def for_module(cls, module: nn.Module) -> Self:
        """A budget that keeps a module's device busy; on a GPU, what its free memory allows."""
        device = device_of(module)
        free = free_memory(device)
        if free is None:
            return cls(TOKENS)
        config = getattr(module, "config", None)
        layers, hidden = (
            getattr(config, name, None) or usual
            for name, usual in zip(("num_hidden_layers", "hidden_size"), _BASE, strict=True)
        )
        per_token = 4 * _KEPT * layers * hidden  # bytes, in float32
        return cls(max(TOKENS, int(_FREE_SHARE * free / per_token)))

    def rows(self, length: int) -> int:
        """How many sequences of a length fit.

        >>> TokenBudget(100).rows(30), TokenBudget(100).rows(400)
        (3, 1)
        """
        return max(1, self.tokens // max(length, 1))

    def run(
        self,
        lengths: Sequence[int],
        work: Callable[[list[int]], _Made],
        padded: bool = False,
        freely: bool = False,
    ) -> Iterator[tuple[list[int], _Made]]:
        """The results of `work` on indices of sequences of one length, as many at a time as fit.

        Where padding is allowed (`padded`), of similar length, the longest last: a tenth of the
        tokens may be padding, as far as that saves passes; or as many as cost less than the passes
        that they save (`freely`).

        When memory runs out the budget is halved and the same indices are tried again. Raises
        TouchstoneError where a single sequence is too much. Such an error of a run inside `work`
        counts as memory that ran out: one budget may be used at two levels, and the outer batch is
        halved where the inner one cannot be.
        """
        buckets = length_buckets(lengths)  # one for each length
        if freely:
            buckets = merged_buckets(lengths, self.tokens, _PER_PASS)
        elif padded:
            buckets = padded_buckets(lengths, self.tokens, _PADDING, _PER_PASS)
        for left in buckets:
            while left:
                # In a bucket with padding, too, its longest row tells how many fit.
                part = left[: self.rows(lengths[left[-1]])]
                made = self._try(work, part, lengths[left[-1]])
                if made:
                    yield part, made[0]
                    left = left[len(part) :]

    def _try(
        self, work: Callable[[list[int]], _Made], part: list[int], length: int
    ) -> tuple[_Made] | None:
        try:
            return (work(part),)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            reason = str(error).splitlines()[0][:90] if str(error) else type(error).__name__
        # Outside of the except block, whose traceback would keep the failed batch alive.
        if len(part) == 1:
            raise NotEnoughMemory(
                f"one sequence of {length} tokens needs more memory than there is ({reason}); "
                "leave it out, or take a smaller model"
            )
        self.tokens = max(length, len(part) * length // 2)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None


def free_memory(device: torch.device) -> int | None:
    """The bytes that are free on a GPU; None for the CPU, where the budget is one of speed."""
    if device.type == "cuda":
        # PyTorch keeps what it has freed, and gives it out again.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)
    )
