"""Transfer schemes: each trains what it says, in every family, and nothing else."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from tiny_models import CLASSES, FAMILIES, SENTENCES, tiny
from torch import nn

from lib.core.errors import TouchstoneError
from lib.models.ola import OneLayerAttention
from lib.models.schemes import PARTS, SCHEMES, Scheme, apply_scheme, scheme_named, set_modes
from lib.models.text_model import pad

PAPER_TABLE_3 = {
    "ZS": ("fixed", "fixed", "fixed"),
    "C": ("fixed", "fixed", "re-initialised"),
    "CE": ("re-initialised", "fixed", "re-initialised"),
    "CEf": ("fine-tuned", "fixed", "re-initialised"),
    "CEfAf": ("fine-tuned", "fine-tuned", "re-initialised"),
    "OLA-CEA": ("re-initialised",) * 3,
}


def step(model, trained):
    """One training step on the sentences; returns the names of the parameters that moved."""
    before = {name: p.detach().clone() for name, p in model.module.named_parameters()}
    ids, mask = pad(model.encode(SENTENCES), model.tokenizer.pad_token_id)
    optimiser = torch.optim.Adam(trained.values(), lr=0.1)
    F.cross_entropy(model.logits(model.embed(ids), mask), torch.tensor([0, 1, 2, 2, 1])).backward()
    optimiser.step()
    return {name for name, p in model.module.named_parameters() if not torch.equal(p, before[name])}


def test_the_schemes_are_those_of_table_3():
    assert {name: (s.embeddings, s.encoder, s.head) for name, s in SCHEMES.items()} == PAPER_TABLE_3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scheme", ["C", "CE", "CEf", "CEfAf"])
def test_a_step_moves_the_trained_parts_and_no_other(family, scheme):
    model = tiny(family)
    trained = apply_scheme(model, SCHEMES[scheme], seed=1)
    parts = model.parts()
    allowed = {name for part in SCHEMES[scheme].trained() for name in parts[part]}
    moved = step(model, trained)
    assert set(trained) == allowed and moved <= allowed
    for part in SCHEMES[scheme].trained():
        assert moved & set(parts[part]), f"{part} did not learn"
    assert {name for name, p in model.module.named_parameters() if p.requires_grad} == allowed


@pytest.mark.parametrize("family", FAMILIES)
def test_re_initialised_tables_are_xavier_uniform_and_the_norm_stays(family):
    model = tiny(family)
    before = {name: p.detach().clone() for name, p in model.parts()["embeddings"].items()}
    apply_scheme(model, SCHEMES["CE"], seed=1)
    tables = 0
    for name, p in model.parts()["embeddings"].items():
        if p.ndim == 1:
            assert torch.equal(p, before[name])
            continue
        bound = math.sqrt(6 / sum(p.shape))
        assert p.abs().max() <= bound and p.detach().std().item() == pytest.approx(
            bound / math.sqrt(3), rel=0.2
        )
        tables += 1
    assert tables >= 1


def test_fine_tuned_parts_begin_where_they_were_and_heads_begin_anew():
    model = tiny("bert")
    before = {name: p.detach().clone() for name, p in model.module.named_parameters()}
    model.module.classifier.bias.data.fill_(3.0)
    apply_scheme(model, SCHEMES["CEfAf"], seed=1)
    changed = {
        name for name, p in model.module.named_parameters() if not torch.equal(p, before[name])
    }
    assert changed == {"classifier.weight"} and torch.equal(
        model.module.classifier.bias, torch.zeros(3)
    )


def test_the_seed_alone_decides_what_is_drawn():
    drawn = []
    for seed in (1, 1, 2):
        model = tiny("roberta")
        torch.rand(7)  # what was drawn before must not matter
        apply_scheme(model, SCHEMES["CE"], seed)
        drawn.append(torch.cat([p.detach().flatten() for p in model.module.parameters()]))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_zero_shot_trains_nothing():
    model = tiny("bert")
    assert apply_scheme(model, SCHEMES["ZS"], 0) == {} and not any(
        p.requires_grad for p in model.module.parameters()
    )


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(
        TouchstoneError,
        match="no transfer scheme 'CEfA'; choose from ZS, C, CE, CEf, CEfAf, OLA-CEA",
    ):
        scheme_named("CEfA")


def test_a_part_that_should_learn_but_matches_nothing_is_refused():
    model = tiny("bert")
    parts = model.parts()
    model.parts = lambda: parts | {"encoder": parts["encoder"] | parts["head"], "head": {}}
    with pytest.raises(
        TouchstoneError,
        match="scheme C trains the head, but BertForSequenceClassification has none",
    ):
        apply_scheme(model, SCHEMES["C"], 0)
    model.parts = lambda: parts | {"head": {}}
    with pytest.raises(TouchstoneError, match="do not cover its parameters exactly once"):
        apply_scheme(model, SCHEMES["C"], 0)


def test_ola_parts_cover_it_and_all_learn():
    model = OneLayerAttention(tiny("bert").tokenizer, range(60), CLASSES, seed=0)
    trained = apply_scheme(model, SCHEMES["OLA-CEA"], seed=0)
    moved = step(model, trained)
    assert {name.split(".")[0] for name in model.parts()["encoder"]} == {"query", "key", "value"}
    assert moved | {"key.bias"} == set(
        trained
    )  # it adds one number to all scores of a row, which softmax does not see


@pytest.mark.parametrize(
    ("scheme", "learning"), [("C", {"head"}), ("CE", {"embeddings", "head"}), ("CEfAf", set(PARTS))]
)
def test_only_parts_that_learn_leave_evaluation_mode(scheme, learning):
    model = tiny("bert")
    set_modes(model, SCHEMES[scheme], dropout=0.3)
    bert = model.module.bert
    drops = {
        "embeddings": [bert.embeddings.dropout],
        "head": [model.module.dropout],
        "encoder": [m for m in bert.encoder.modules() if isinstance(m, nn.Dropout)],
    }
    for part, found in drops.items():
        assert all(d.training == (part in learning) for d in found) and found
        assert part not in learning or all(d.p == 0.3 for d in found)
    set_modes(model, SCHEMES[scheme], dropout=0.0)
    assert not any(m.training for m in model.module.modules())


def test_a_scheme_is_data_and_can_be_anything():
    odd = Scheme("head kept", "fixed", "re-initialised", "fixed")
    model = tiny("gpt2")
    trained = apply_scheme(model, odd, 0)
    assert set(trained) == set(model.parts()["encoder"])
    assert step(model, trained) <= set(trained)
