"""The seam: what a score promises, and what is refused."""

from __future__ import annotations

import pytest
import torch
from small_models import build

from lib.attribution.seam import Score, class_score, score_from
from lib.core.errors import TouchstoneError


def test_the_margin_is_the_logit_minus_the_best_other() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.5], [0.0, 4.0, 1.0]])
    assert class_score(build("BERT"), [0, 2], "margin").of_logits(logits).tolist() == [0.5, -3.0]


def test_an_object_with_rows_of_its_own_must_be_a_score() -> None:
    class Rowwise:
        def __call__(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return embeddings.sum((1, 2))

        def for_rows(self, rows: torch.Tensor) -> Rowwise:
            return self

    with pytest.raises(TouchstoneError, match="Rowwise has for_rows, but is no Score"):
        score_from(Rowwise())


def test_rows_are_alike_unless_a_score_says_otherwise() -> None:
    class OfRows(Score):
        def for_rows(self, rows: torch.Tensor) -> OfRows:
            return self

    assert Score(torch.add).rows_alike and score_from(lambda embeddings, mask: mask).rows_alike
    assert not OfRows(torch.add).rows_alike  # its logits may differ from row to row
    assert class_score(build("BERT"), [0]).rows_alike  # class scores are the same for all
