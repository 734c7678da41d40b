"""Language models at tiny sizes: shapes, causality, second implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiny_language_models import SENTENCES, VOCABULARY, tiny_lm
from torch import nn

from lib.core.errors import TouchstoneError
from lib.models.language_model import (
    ARCHITECTURES,
    FullSoftmax,
    LMConfig,
    build_vocabulary,
    load_lm,
    save_lm,
    student_of,
)
from lib.models.language_model_layers import (
    AdaptiveInput,
    QRNNLayer,
    WeightDropLSTM,
    locked_dropout,
    sinusoids,
)
from lib.models.probe import Probe


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("cutoffs", [(), (8, 20)])
def test_shapes_and_probabilities(architecture, cutoffs) -> None:
    model = tiny_lm(architecture, cutoffs=cutoffs)
    hidden = model.run(model.embed(torch.randint(len(VOCABULARY), (3, 5))))
    assert hidden.shape == (3, 5, 16)
    found = model.log_prob(hidden[:, -1])
    assert found.shape == (3, len(VOCABULARY))
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(3))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_future_words_change_nothing(architecture) -> None:
    model, ids = tiny_lm(architecture), torch.randint(len(VOCABULARY), (2, 7))
    changed = ids.clone()
    changed[:, 4:] = (changed[:, 4:] + 5) % len(VOCABULARY)
    before, after = model.run(model.embed(ids)), model.run(model.embed(changed))
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert (before[:, 4:] - after[:, 4:]).abs().max() > 1e-4


def test_qrnn_is_its_equations_step_by_step() -> None:
    layer, x = QRNNLayer(3, 4, window=2), torch.randn(2, 6, 3)
    weight, bias = layer.gates.weight.detach().numpy(), layer.gates.bias.detach().numpy()

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    for row in range(2):
        c, before = np.zeros(4), np.zeros(3)
        for t in range(6):
            now = x[row, t].numpy()
            gates = weight @ np.concatenate([before, now]) + bias
            z, f, o = np.tanh(gates[:4]), sigmoid(gates[4:8]), sigmoid(gates[8:])
            c, before = f * c + (1 - f) * z, now
            np.testing.assert_allclose(layer(x)[row, t].detach().numpy(), o * c, atol=1e-6)


def test_dropped_weights_are_dropped_in_training_only() -> None:
    layer, x = WeightDropLSTM(3, 4, weight_drop=0.5), torch.randn(2, 6, 3)
    torch.testing.assert_close(layer.eval()(x), layer.lstm(x)[0])
    layer.train()
    torch.manual_seed(0)
    first, second = layer(x), layer(x)
    assert (first - second).abs().max() > 1e-4
    torch.testing.assert_close(first[:, 0], second[:, 0])  # the first step has no history to drop
    first.sum().backward()
    assert layer.lstm.weight_hh_l0.grad.abs().sum() > 0


def test_variational_dropout_has_one_mask_for_all_positions() -> None:
    found = locked_dropout(torch.ones(4, 9, 50), 0.5, training=True)
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert (found == found[:, :1]).all() and (found[0] != found[1]).any()
    torch.testing.assert_close(locked_dropout(found, 0.5, training=False), found)


def test_adaptive_input_is_a_table_and_a_map_per_band() -> None:
    layer, ids = AdaptiveInput(10, 8, [3, 6], factor=2.0), torch.tensor([[0, 2, 3, 5, 6, 9]])
    assert [table.weight.shape for table in layer.tables] == [(3, 8), (3, 4), (4, 2)]
    for place, i in enumerate(ids[0].tolist()):
        band = sum(i >= edge for edge in (3, 6))
        by_hand = layer.maps[band](layer.tables[band].weight[i - (0, 3, 6)[band]])
        torch.testing.assert_close(layer(ids)[0, place], by_hand)


def test_adaptive_softmax_loss_is_that_of_torch_and_of_all_log_probabilities() -> None:
    model = tiny_lm("LSTM", cutoffs=(8, 20))
    hidden, targets = torch.randn(40, 16), torch.randint(len(VOCABULARY), (40,))
    theirs = nn.AdaptiveLogSoftmaxWithLoss(16, len(VOCABULARY), [8, 20], div_value=4.0)
    theirs.load_state_dict(model.output.state_dict())
    torch.testing.assert_close(model.loss(hidden, targets), theirs(hidden, targets).loss)
    torch.testing.assert_close(
        model.loss(hidden, targets), -model.log_prob(hidden)[range(40), targets].mean()
    )


def test_the_plain_softmax_shares_the_embedding_table() -> None:
    model = tiny_lm("QRNN")
    assert isinstance(model.output, FullSoftmax) and model.output.table is model.embedding.tables[0]


def test_positions_are_sines_and_cosines() -> None:
    found = sinusoids(5, 4)
    assert found[3].tolist() == pytest.approx(
        [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)], abs=1e-6
    )


def test_what_does_not_fit_is_refused(tmp_path) -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'LSTM'"):
        LMConfig("LSTMs", 1, 8, 8)
    with pytest.raises(TouchstoneError, match="3 heads"):
        LMConfig("Transformer", 1, 16, 8, n_heads=3)
    with pytest.raises(TouchstoneError, match="keeps the first and the last layer"):
        student_of(tiny_lm("LSTM", n_layers=3), [1, 2])
    with pytest.raises(TouchstoneError, match="choose from 0 to 1"):
        student_of(tiny_lm("QRNN"), [0, 5])
    with pytest.raises(TouchstoneError, match="hand in the vocabulary"):
        Probe(tiny_lm("LSTM"), build_vocabulary(SENTENCES[:2]), nn.Linear(16, 2), ("a", "b"))
    with pytest.raises(TouchstoneError, match="does not fit a"):
        Probe(tiny_lm("LSTM"), VOCABULARY, nn.Linear(8, 2), ("a", "b"))


def test_a_saved_model_is_the_same_and_a_broken_one_is_refused(tmp_path) -> None:
    model = tiny_lm("Transformer", cutoffs=(8,))
    save_lm(model, VOCABULARY, tmp_path / "m.safetensors")
    again, words = load_lm(tmp_path / "m.safetensors")
    ids = torch.randint(len(VOCABULARY), (2, 5))
    torch.testing.assert_close(again.run(again.embed(ids)), model.run(model.embed(ids)))
    assert words == VOCABULARY
    text = (tmp_path / "m.json").read_text().replace('"embedding": 16', '"embedding": 8')
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(TouchstoneError, match="do not fit"):
        load_lm(tmp_path / "m.safetensors")


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_lstm_keeps_what_its_gradient_needs_outside_of_training(device: str) -> None:
    """A GPU would refuse the way back otherwise; on the host the kernels stay as they were."""
    layer, seen = WeightDropLSTM(3, 4).eval().to(device), []
    layer.lstm.register_forward_pre_hook(lambda lstm, _: seen.append(lstm.training))
    words = torch.rand(2, 5, 3, device=device)
    layer(words)
    with torch.no_grad():
        layer(words)
    assert seen == [device != "cpu", False] and not layer.lstm.training
