"""Training the rows in use gives the numbers of training the whole table."""

from __future__ import annotations

import pytest
import torch
from tiny_models import FAMILIES, SENTENCES, tiny

from lib.models.schemes import SCHEMES, apply_scheme
from lib.models.shortcuts import ids_in_use, rows_in_use
from lib.models.text_model import pad
from lib.training.classifier import Settings, Split, fit, token_forward

TARGETS = torch.tensor([0, 1, 2, 2, 1])
SPLIT = Split(torch.tensor([0, 1, 2, 3]), torch.tensor([4]))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_numbers_as_with_the_whole_table(family):
    curves, tables = [], []
    for reduced in (False, True):
        model = tiny(family)
        trained = apply_scheme(model, SCHEMES["CEf"], seed=1)
        encoded = model.encode(SENTENCES)
        lengths = torch.tensor([len(one.ids) for one in encoded])
        settings = Settings(epochs=3, lr=0.01, batch_size=2)
        if reduced:
            with rows_in_use(model.module, ids_in_use(encoded)) as row_of:
                found = dict(model.module.named_parameters())
                curves.append(
                    fit(
                        token_forward(model, encoded, row_of),
                        {n: found[n] for n in trained},
                        TARGETS,
                        lengths,
                        SPLIT,
                        settings,
                        seed=0,
                    )
                )
        else:
            curves.append(
                fit(
                    token_forward(model, encoded),
                    trained,
                    TARGETS,
                    lengths,
                    SPLIT,
                    settings,
                    seed=0,
                )
            )
        tables.append(model.module.get_input_embeddings().weight.detach().clone())
    assert curves[0].to_numpy() == pytest.approx(curves[1].to_numpy(), abs=1e-6)
    torch.testing.assert_close(tables[0], tables[1], rtol=0, atol=1e-6)


def test_inside_the_table_is_small_and_outside_it_is_whole_again():
    model = tiny("bert")
    table = model.module.get_input_embeddings()
    before = table.weight.detach().clone()
    encoded = model.encode(SENTENCES[:2])
    ids, mask = pad(encoded, model.tokenizer.pad_token_id)
    outside = model.logits(model.embed(ids), mask)
    with rows_in_use(model.module, ids_in_use(encoded)) as row_of:
        small = model.module.get_input_embeddings()
        assert small is not table and small.num_embeddings == len(ids_in_use(encoded))
        torch.testing.assert_close(
            model.logits(model.embed(row_of[ids].clamp(min=0)), mask), outside
        )
        small.weight.data += 1
    assert model.module.get_input_embeddings() is table
    used = ids_in_use(encoded)
    torch.testing.assert_close(table.weight[used], before[used] + 1)
    rest = [i for i in range(table.num_embeddings) if i not in used]
    assert torch.equal(table.weight[rest], before[rest])


def test_an_error_inside_gives_the_table_back():
    model = tiny("gpt2")
    table = model.module.get_input_embeddings()
    with pytest.raises(RuntimeError, match="stop"), rows_in_use(model.module, [1, 2]):
        raise RuntimeError("stop")
    assert model.module.get_input_embeddings() is table
