"""Tables in the formats of explanations and predictions, made by hand or drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd


def explanations(scores: list[float], **about: object) -> pd.DataFrame:
    base = {
        "dataset": "D_A",
        "scheme": "C",
        "seed": 0,
        "method": "LIME",
        "row_id": "0-F",
        "sentence_idx": 0,
        "target": 0,
    }
    return pd.DataFrame([{**base, **about, "scores": scores}])


def predictions() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = []
    for dataset, n_classes in (("D_A", 3), ("D_A_binary", 2)):
        for seed in (0, 1):
            for i in range(30):
                for target in range(n_classes):
                    p = rng.dirichlet(np.ones(n_classes) + 3 * np.eye(n_classes)[target])
                    rows.append(
                        {
                            "dataset": dataset,
                            "scheme": "C",
                            "seed": seed,
                            "row_id": f"{i}-{target}",
                            "sentence_idx": i,
                            "target": target,
                            "predicted": int(p.argmax()),
                            **dict(zip(("p_F", "p_M", "p_NB"), [*p, np.nan])),
                        }
                    )
    return pd.DataFrame(rows)
