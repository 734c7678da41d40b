"""Training only the rows of a word table that the texts use.

The same numbers, much less to carry.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from .text_model import Encoded


def ids_in_use(*encoded: Sequence[Encoded]) -> list[int]:
    """The token ids that occur in sentences, sorted.

    >>> ids_in_use([Encoded([7, 3], [0, 1])], [Encoded([3], [0])])
    [3, 7]
    """
    return sorted({i for rows in encoded for row in rows for i in row.ids})


@contextmanager
def rows_in_use(module: PreTrainedModel, ids: Iterable[int]) -> Iterator[Int[Tensor, "vocab"]]:
    """Within the block the word table has only the rows of `ids`.

    Afterwards they are back in the whole table.

    Yields the map from token id to row (-1: not in use). Exact for Adam without weight decay: a row
    that no sentence uses has gradient 0 at every step, and Adam never moves it.
    """
    table: nn.Embedding = module.get_input_embeddings()
    chosen = torch.tensor(sorted(set(ids)), device=table.weight.device)
    row_of = torch.full((table.num_embeddings,), -1, device=table.weight.device)
    row_of[chosen] = torch.arange(len(chosen), device=chosen.device)
    padding = None if table.padding_idx is None else int(row_of[table.padding_idx])
    rows = table.weight.detach()[chosen].clone()  # (row, hidden)
    small = nn.Embedding.from_pretrained(
        rows, freeze=not table.weight.requires_grad, padding_idx=None if padding == -1 else padding
    )
    module.set_input_embeddings(small)
    try:
        yield row_of
    finally:
        with torch.no_grad():
            # In place, so that the whole table's parameter stays the object that others hold.
            table.weight[chosen] = small.weight
        module.set_input_embeddings(table)
