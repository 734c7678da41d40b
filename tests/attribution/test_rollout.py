"""Attention rollout.

By hand, by its definition as a product of matrices, and what it must ignore.
"""

from __future__ import annotations

import pytest
import torch
from small_models import LinearText, as_rows, build

from lib.attribution import explain
from lib.attribution.batch import TokenBatch
from lib.attribution.explain import token_batch
from lib.attribution.seam import Row
from lib.attribution.single_pass import attention_rollout, rollout
from lib.core.errors import TouchstoneError
from lib.models.hf import attention_maps
from lib.models.text_model import RunsFromEmbeddings
from lib.models.zero_shot import LabelSimilarity


def batch_of(model: RunsFromEmbeddings, sentence: str = "he sings the song .") -> TokenBatch:
    words = sentence.split()
    return token_batch(model, [Row("1-F", 1, 0, words, seed=3)], model.encode([words]), "logit")


def test_rollout_is_the_product_of_matrices() -> None:
    maps = torch.rand(3, 2, 4, 5, 5).softmax(-1)
    whole = torch.eye(5).expand(2, 5, 5)
    for layer in maps.mean(2):
        whole = (layer + torch.eye(5)) / 2 @ whole
    found = rollout(maps, torch.nn.functional.one_hot(torch.tensor([0, 3]), 5).float())
    torch.testing.assert_close(found, torch.stack([whole[0, 0], whole[1, 3]]))


def test_shares_of_all_tokens_sum_to_one(family: RunsFromEmbeddings) -> None:
    found = attention_rollout(batch_of(family)).scores
    assert found.sum().item() == pytest.approx(1, abs=1e-5) and (found >= 0).all()


def test_the_maps_are_the_models(bert: RunsFromEmbeddings) -> None:
    """The first layer's attention of BERT, from its queries and keys."""
    batch = batch_of(bert)
    maps = attention_maps(bert, batch.embeddings, batch.mask)
    hidden = bert.module.bert.embeddings(inputs_embeds=batch.embeddings)
    layer = bert.module.bert.encoder.layer[0].attention.self
    query, key = (
        part(hidden).view(1, -1, 2, 8).transpose(1, 2) for part in (layer.query, layer.key)
    )
    torch.testing.assert_close(maps[0], (query @ key.transpose(-1, -2) / 8**0.5).softmax(-1))
    assert maps.shape[:3] == (2, 1, 2)


def test_two_layers_of_bert_by_hand(bert: RunsFromEmbeddings) -> None:
    """From what each layer's query and key say.

    (mean over heads + identity) / 2, the second times the first, the row of CLS.
    """
    batch, said, layers = batch_of(bert), [], bert.module.bert.encoder.layer
    hooks = [
        part.register_forward_hook(lambda m, args, out: said.append(out.detach()[0]))
        for layer in layers
        for part in (layer.attention.self.query, layer.attention.self.key)
    ]
    with torch.no_grad():
        bert.logits(batch.embeddings, batch.mask)
    for hook in hooks:
        hook.remove()
    steps = []
    for query, key in (said[:2], said[2:]):
        heads = [
            (query[:, at] @ key[:, at].T / 8**0.5).softmax(-1) for at in (slice(0, 8), slice(8, 16))
        ]
        steps.append(((heads[0] + heads[1]) / 2 + torch.eye(len(query))) / 2)
    torch.testing.assert_close(attention_rollout(batch).scores[0], (steps[1] @ steps[0])[0])


def test_the_model_attends_as_before_afterwards(bert: RunsFromEmbeddings) -> None:
    before = bert.module.config._attn_implementation
    attention_rollout(batch_of(bert))
    assert bert.module.config._attn_implementation == before == "sdpa"


@pytest.mark.parametrize("kind", ["BERT", "GPT-2", "Llama"])
def test_padding_is_not_looked_at(kind: str) -> None:
    model = build(kind)
    batch = batch_of(model)
    pads = torch.nn.functional.pad(batch.embeddings, (0, 0, 0, 2))
    mask = torch.nn.functional.pad(batch.mask, (0, 2))
    found = rollout(attention_maps(model, pads, mask), model.share_read(mask))
    torch.testing.assert_close(found[:, :-2], attention_rollout(batch).scores, rtol=1e-4, atol=1e-6)
    assert found[:, -2:].abs().max() < 1e-6


def test_the_class_does_not_matter(bert: RunsFromEmbeddings) -> None:
    rows = as_rows(["he sings .", "he sings ."], [0, 1])
    one, other = explain(bert, rows, "Attention rollout").scores
    assert one == other


def test_prompted_models_are_read_at_their_cue_and_similarity_everywhere(
    zero_shot: RunsFromEmbeddings,
) -> None:
    batch = batch_of(zero_shot)
    assert attention_rollout(batch).scores.sum().item() == pytest.approx(1, abs=1e-5)
    weights = zero_shot.share_read(batch.mask)
    one = not isinstance(zero_shot, LabelSimilarity)
    assert weights.max().item() == pytest.approx(1 if one else 1 / batch.mask.shape[1])


def test_what_has_no_attention_is_refused(linear: LinearText) -> None:
    with pytest.raises(TouchstoneError, match="LinearText has no attention layers"):
        explain(linear, as_rows(["she sings"], [0]), "Attention rollout")
    x = torch.ones(1, 2, 1)
    plain = TokenBatch(
        lambda e, m: e.sum((1, 2)), x, torch.ones(1, 2), x, torch.ones(1, 2) > 0, (0,)
    )
    with pytest.raises(TouchstoneError, match="needs a classifier's score"):
        attention_rollout(plain)
