"""Values of which mean and spread are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def simulated() -> Callable[..., pd.DataFrame]:
    """Draws a table: three forms of each sentence, with effects of sentences and of seeds."""
    return draw


def draw(
    rng: np.random.Generator,
    n_sentences: int = 40,
    n_seeds: int = 1,
    seed_sd: float = 0.0,
    mean: float = 0.0,
    sentence_sd: float = 0.1,
) -> pd.DataFrame:
    value = (
        mean
        + rng.normal(0, sentence_sd, (n_sentences, 1, 1))
        + rng.normal(0, seed_sd, (1, n_seeds, 1))
        + rng.normal(0, 0.03, (n_sentences, n_seeds, 3))
    )
    i, s, f = (x.ravel() for x in np.indices(value.shape))
    return pd.DataFrame(
        {
            "sentence_idx": i,
            "seed": s,
            "row_id": [f"{a}-{b}" for a, b in zip(i, f)],
            "form": f,
            "value": value.ravel(),
        }
    )
