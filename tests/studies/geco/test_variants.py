"""Methods that are one function, baselines by hand, and how a choice moves the order of words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_models import CLASSES, as_rows, build

from lib.attribution import explain
from lib.core.errors import TouchstoneError
from lib.studies.geco.variants import (
    SAME,
    identities,
    ranking_moves,
    summarise_moves,
    with_reference,
)


@pytest.mark.parametrize("kind", ["BERT", "GPT-2", "Llama", "OLA"])
def test_guided_backprop_is_the_gradient_where_no_module_is_a_relu(kind: str) -> None:
    found = identities(build(kind), ["she", "he", "."], architecture=kind).set_index(
        ["left", "right"]
    )
    assert found.loc[("Guided Backprop", "length of the gradient"), "same"]
    same = found.loc[("DeepLift (captum)", "gradient x (input - reference)"), "same"]
    assert same == (kind in ("GPT-2", "Llama"))  # the others have a tanh module


def test_input_x_gradient_is_minus_the_gradient_along_position_and_type_in_bert_alone() -> None:
    pair = ("InputXGradient", "minus gradient along position and type")
    of = {
        kind: identities(build(kind), ["she", "he", "."]).set_index(["left", "right"]).loc[pair]
        for kind in ("BERT", "GPT-2", "OLA")
    }
    assert of["BERT"]["same"] and of["BERT"]["difference"] < SAME
    assert not of["GPT-2"]["same"] and not of["OLA"]["same"] and np.isnan(of["OLA"]["r"])


def test_the_baselines_are_what_their_names_say() -> None:
    model, words = build("BERT"), ["she", "he"]
    ids = torch.tensor([model.encode([words])[0].ids])
    assert with_reference(model, "pad").reference_ids(ids).tolist() == [[2, 0, 0, 3]]
    mask_id = model.tokenizer.mask_token_id
    assert with_reference(model, "mask").reference_ids(ids).tolist() == [[2, mask_id, mask_id, 3]]
    zero = with_reference(model, "zero")
    torch.nn.init.ones_(model.module.get_input_embeddings().weight)
    assert zero.embed(zero.reference_ids(ids)).abs().sum(-1)[0].tolist() == [16, 0, 0, 16]
    assert (
        model.embed(zero.reference_ids(ids)).abs().sum(-1)[0].tolist() == [16] * 4
    )  # the model itself is as it was


def test_unknown_baselines_are_refused() -> None:
    with pytest.raises(TouchstoneError, match="no baseline 'padd'; did you mean 'pad'"):
        with_reference(build("BERT"), "padd")
    with pytest.raises(TouchstoneError, match="has no mask token"):
        with_reference(build("GPT-2"), "mask")


def test_choices_are_compared_with_the_usual_explanation() -> None:
    model, rows = build("BERT"), as_rows(["she he sings .", "he sings she she"])
    moves = ranking_moves(model, rows, [("Saliency", {}), ("Occlusion", {})])
    own = moves.query("method == 'Saliency' and choice == 'baseline'")
    assert (own["rank_signed"] > 1 - 1e-9).all() and (
        own["first"] == 1
    ).all()  # it looks at no baseline
    usual, asked = (
        explain(model, rows, "Occlusion", {"explained": how}).scores[0]
        for how in ("logit", "margin")
    )
    found = moves.query(
        "method == 'Occlusion' and value == 'margin' and row_id == @rows.row_id[0]"
    )["rank_signed"].item()
    order = [np.argsort(np.argsort(x)) for x in (usual, asked)]
    assert np.isclose(found, np.corrcoef(*order)[0, 1])


def test_the_predicted_class_is_compared_on_wrong_rows_only() -> None:
    model, rows = build("BERT"), as_rows(["she he sings .", "he sings she she"])
    predicted = model.predict(rows["sentence"], 2).argmax(1)
    right = rows.assign(target=predicted)
    assert "class" not in set(ranking_moves(model, right, [("Saliency", {})])["choice"])
    one = right.assign(target=[(predicted[0] + 1) % len(CLASSES), predicted[1]])
    table = summarise_moves(ranking_moves(model, one, [("Saliency", {})]))
    assert table.query("choice == 'class'")["rows"].tolist() == [1]
