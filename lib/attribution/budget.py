"""How much goes through a model at once: a number of tokens, halved whenever memory runs out."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import torch

from ..core.errors import TouchstoneError
from ..models.text_model import length_buckets

_Made = TypeVar("_Made")
# A CPU core is at nine tenths of its peak from 16 sentences of 22 tokens on; more costs memory.
TOKENS = 2048
TOKENS_GPU = 65_536
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class NotEnoughMemory(TouchstoneError, MemoryError):
    """A single sequence was too much; within a larger batch, the batch's graph may be at fault."""


@dataclass
class TokenBudget:
    """The most tokens in one batch; it learns about the memory, so share one over a whole run."""

    tokens: int = TOKENS

    @classmethod
    def for_device(cls, device: torch.device) -> Self:
        """A budget that keeps a device busy."""
        return cls(TOKENS if device.type == "cpu" else TOKENS_GPU)

    def rows(self, length: int) -> int:
        """How many sequences of a length fit.

        >>> TokenBudget(100).rows(30), TokenBudget(100).rows(400)
        (3, 1)
        """
        return max(1, self.tokens // max(length, 1))

    def run(
        self, lengths: Sequence[int], work: Callable[[list[int]], _Made]
    ) -> Iterator[tuple[list[int], _Made]]:
        """The results of `work` on indices of sequences of one length, as many at a time as fit.

        When memory runs out the budget is halved and the same indices are tried again. Raises
        TouchstoneError where a single sequence is too much. Such an error of a run inside `work`
        counts as memory that ran out: one budget may be used at two levels, and the outer batch is
        halved where the inner one cannot be.
        """
        for left in length_buckets(lengths):  # a bucket for each length
            while left:
                part = left[: self.rows(lengths[left[0]])]
                made = self._try(work, part, lengths[left[0]])
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


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)
    )
