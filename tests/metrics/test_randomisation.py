"""Cascading randomisation on a tiny BERT: from 1 to about 0, and a floor that never looks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from small_models import PIECES, build

from lib.core.errors import TouchstoneError
from lib.core.seeds import seed_for
from lib.metrics import randomisation
from lib.metrics.randomisation import (
    TRAINED,
    cascading_randomisation,
    randomisation_steps,
    randomise,
)

WORDS = [
    piece for piece in PIECES if piece.isalpha()
]  # one piece each, so that no word is longer than another


def sentences(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "row_id": [f"{i}-F" for i in range(n)],
            "sentence_idx": range(n),
            "target": 0,
            "sentence": [list(rng.permutation(WORDS)) for _ in range(n)],
        }
    )


def test_the_order_is_from_the_head_down_and_holds_every_parameter():
    for kind, expected in {
        "BERT": ["head", "pooler", "layer 1", "layer 0", "embeddings"],
        "GPT-2": ["head", "ln_f", "layer 1", "layer 0", "embeddings"],
        "OLA": ["head", "value", "key", "query", "embeddings"],
    }.items():
        model = build(kind)
        steps = randomisation_steps(model)
        assert [name for name, _ in steps] == expected
        names = [name for _, parameters in steps for name in parameters]
        assert sorted(names) == sorted(name for name, _ in model.module.named_parameters())


def test_the_layers_are_the_list_with_the_most_parameters():
    """Three gates with a parameter each, two layers with two each: more entries, less in them."""

    class Gated(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = torch.nn.ModuleList(
                torch.nn.ModuleDict({"router": torch.nn.Linear(1, 1, bias=False)}) for _ in range(3)
            )
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))
            self.head = torch.nn.Linear(4, 2)

    module = Gated()
    named = dict(module.named_parameters())
    encoder = {name: p for name, p in named.items() if not name.startswith("head")}
    parts = {"embeddings": {}, "encoder": encoder, "head": {"head.weight": module.head.weight}}
    model = SimpleNamespace(module=module, parts=lambda: parts)
    assert [name for name, _ in randomisation_steps(model)] == (
        ["head", "layer 1", "layer 0", "router"]
    )


def test_five_cascades_are_drawn_each_step_from_a_seed_of_its_own(monkeypatch):
    seeds = []
    monkeypatch.setattr(randomisation, "randomise", lambda module, part, seed: seeds.append(seed))
    found = cascading_randomisation(build("OLA"), sentences(1), ["First pronoun"])
    assert found["draw"].nunique() == 5 and found.index.tolist() == list(range(5 * 6))
    parts = ["head", "value", "key", "query", "embeddings"]
    assert seeds == [seed_for("randomise", part, k, 0) for k in range(5) for part in parts]


@pytest.mark.slow
def test_explanations_fall_from_one_to_about_zero():
    model, rows = build("BERT"), sentences(2)
    before = {name: p.clone() for name, p in model.module.named_parameters()}
    found = cascading_randomisation(model, rows, ["InputXGradient", "Occlusion"], n_draws=16)
    assert all((before[name] == p).all() for name, p in model.module.named_parameters())
    means = found.groupby(["method", "step"])[["rank_size", "rank_signed"]].mean()
    assert means.xs(0, level="step").to_numpy() == pytest.approx(1)
    assert found.loc[found["step"] == 0, "part"].eq(TRAINED).all() and found["draw"].nunique() == 16
    last = means.xs(
        5, level="step"
    )  # a draw's mean has a spread of about 1 / sqrt(number of words - 1) = .38
    assert (last.abs() < 0.3).all().all()
    assert means.loc[("Occlusion", 1)].max() < 0.9


def test_rows_are_explained_after_the_shown_parts_alone_and_the_cascade_stays():
    model, rows = build("BERT"), sentences(2)
    asked = (model, rows, ["Saliency"], 1, 3)
    whole = cascading_randomisation(*asked)
    some = cascading_randomisation(*asked, shown=["head", "layer 0"])
    assert some["part"].unique().tolist() == [TRAINED, "head", "layer 0"]
    assert some["step"].unique().tolist() == [0, 1, 4]
    kept = whole[whole["part"].isin(some["part"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, some)
    with pytest.raises(TouchstoneError, match="'layer 7'; write one of head, pooler"):
        cascading_randomisation(*asked, shown=["layer 7"])


def test_random_models_may_share_the_base_sentences():
    model, rows = build("BERT"), pd.concat([sentences(5)] * 2, ignore_index=True)
    rows["row_id"] = [f"{row}-{i // 5}" for i, row in enumerate(rows["row_id"])]
    asked = {"n_draws": 2, "seed": 3, "shown": ["head"]}
    whole = cascading_randomisation(model, rows, ["Saliency", "InputXGradient"], **asked)
    found = cascading_randomisation(
        model, rows, ["Saliency", "InputXGradient"], **asked, shared=True
    )
    of_draw = found.groupby("draw")["sentence_idx"].unique().map(sorted).to_dict()
    assert of_draw == {0: [0, 2, 4], 1: [1, 3]}
    keys = ["method", "row_id", "step", "draw"]
    both = found.merge(whole, on=keys, suffixes=("", "_whole"))
    assert len(both) == len(found) == len(whole) / 2
    assert np.allclose(both["rank_signed"], both["rank_signed_whole"])


def test_a_rule_that_sees_no_model_never_changes():
    found = cascading_randomisation(build("OLA"), sentences(5), ["First pronoun"], n_draws=1)
    assert found["rank_size"].dropna().eq(1).all() and found["step"].max() == 5


@pytest.mark.parametrize("kind", ["BERT", "OLA"])
def test_a_seed_gives_the_same_draws_and_trained_values_are_gone(kind):
    model = build(kind)
    name, parameters = randomisation_steps(model)[0]
    drawn = []
    for _ in range(2):
        with torch.no_grad():
            [p.fill_(7.0) for p in parameters.values()]
        randomise(model.module, parameters, seed=3)
        drawn.append(torch.cat([p.flatten() for p in parameters.values()]).detach())
    assert (drawn[0] == drawn[1]).all() and (drawn[0] != 7).all() and name == "head"


def test_a_model_without_parts_is_refused():
    with pytest.raises(TouchstoneError, match="does not tell its parts"):
        cascading_randomisation(object(), sentences(1), ["Saliency"])
