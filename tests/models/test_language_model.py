"""Language models at tiny sizes: shapes, causality, second implementations, and that they learn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lib.core.errors import TouchstoneError
from lib.models.language_model import (
    ARCHITECTURES,
    FullSoftmax,
    LMConfig,
    build_lm,
    load_lm,
    save_lm,
    student_of,
)
from lib.models.language_model_layers import (
    AdaptiveInput,
    QRNNLayer,
    VariationalDropout,
    WeightDropLSTM,
    sinusoids,
)
from lib.models.probe import Probe, ProbeSettings, features, fit_probe, load_probe, save_probe
from lib.models.text_model import TextModel
from lib.models.word_vocabulary import END, build_vocabulary
from lib.training.language_model import (
    Distillation,
    LMSettings,
    batch_loss,
    fit_lm,
    perplexity,
    pieces,
    word_batches,
)

SENTENCES = [
    line.split()
    for line in (
        "the dog barks .",
        "the dogs bark .",
        "a cat sleeps now .",
        "cats sleep now .",
        "the old man reads a book .",
        "old men read books .",
        "she sees the cat .",
        "they see a dog .",
        "nobody knows the answer .",
        "ten birds sing .",
    )
]
VOCABULARY = build_vocabulary(SENTENCES)


def tiny(
    architecture: str, n_layers: int = 2, cutoffs: tuple[int, ...] = (), seed: int = 0, **more
):
    return build_lm(
        LMConfig(architecture, n_layers, 16, 24, cutoffs=list(cutoffs), **more),
        len(VOCABULARY),
        seed,
    ).eval()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("cutoffs", [(), (8, 20)])
def test_shapes_and_probabilities(architecture, cutoffs) -> None:
    model = tiny(architecture, cutoffs=cutoffs)
    hidden = model.run(model.embed(torch.randint(len(VOCABULARY), (3, 5))))
    assert hidden.shape == (3, 5, 16)
    found = model.log_prob(hidden[:, -1])
    assert found.shape == (3, len(VOCABULARY))
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(3))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_future_words_change_nothing(architecture) -> None:
    model, ids = tiny(architecture), torch.randint(len(VOCABULARY), (2, 7))
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
    layer = VariationalDropout(0.5).train()
    found = layer(torch.ones(4, 9, 50))
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert (found == found[:, :1]).all() and (found[0] != found[1]).any()
    torch.testing.assert_close(layer.eval()(found), found)


def test_adaptive_input_is_a_table_and_a_map_per_band() -> None:
    layer, ids = AdaptiveInput(10, 8, [3, 6], factor=2.0), torch.tensor([[0, 2, 3, 5, 6, 9]])
    assert [table.weight.shape for table in layer.tables] == [(3, 8), (3, 4), (4, 2)]
    for place, i in enumerate(ids[0].tolist()):
        band = sum(i >= edge for edge in (3, 6))
        by_hand = layer.maps[band](layer.tables[band].weight[i - (0, 3, 6)[band]])
        torch.testing.assert_close(layer(ids)[0, place], by_hand)


def test_adaptive_softmax_loss_is_that_of_torch_and_of_all_log_probabilities() -> None:
    model = tiny("LSTM", cutoffs=(8, 20))
    hidden, targets = torch.randn(40, 16), torch.randint(len(VOCABULARY), (40,))
    theirs = nn.AdaptiveLogSoftmaxWithLoss(16, len(VOCABULARY), [8, 20], div_value=4.0)
    theirs.load_state_dict(model.output.state_dict())
    torch.testing.assert_close(model.loss(hidden, targets), theirs(hidden, targets).loss)
    torch.testing.assert_close(
        model.loss(hidden, targets), -model.log_prob(hidden)[range(40), targets].mean()
    )


def test_the_plain_softmax_shares_the_embedding_table() -> None:
    model = tiny("QRNN")
    assert isinstance(model.output, FullSoftmax) and model.output.table is model.embedding.tables[0]


def test_positions_are_sines_and_cosines() -> None:
    found = sinusoids(5, 4)
    assert found[3].tolist() == pytest.approx(
        [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)], abs=1e-6
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ten_sentences_are_learnt_by_heart(architecture) -> None:
    model, encoded = tiny(architecture), pieces(SENTENCES, VOCABULARY, 64)
    before = perplexity(model, encoded, VOCABULARY)
    curve = fit_lm(
        model,
        encoded,
        encoded,
        VOCABULARY,
        LMSettings(epochs=100, lr=0.02, batch_words=200),
        seed=0,
    )
    assert (
        before > 15 and curve["perplexity"].iloc[-1] < 2.5
    )  # first words are drawn among ten sentences


def test_perplexity_by_hand() -> None:
    model, encoded = tiny("LSTM"), pieces(SENTENCES[:3], VOCABULARY, 64)
    total, n = 0.0, 0
    for one in encoded:
        ids = torch.tensor([one.ids])
        found = model.log_prob(model.run(model.embed(ids[:, :-1]))[0])
        total -= found[range(len(one.ids) - 1), ids[0, 1:]].sum().item()
        n += len(one.ids) - 1
    assert perplexity(model, encoded, VOCABULARY) == pytest.approx(math.exp(total / n), rel=1e-4)


def test_long_lines_are_cut_and_no_word_is_lost() -> None:
    found = pieces([["the"] * 10], VOCABULARY, 4)
    assert [len(one.ids) for one in found] == [5, 5, 4] and all(
        one.ids[0] == VOCABULARY.ids[END] for one in found
    )
    batches = list(word_batches(found, 10, 0, torch.Generator().manual_seed(0)))
    assert (
        sum(int(mask.sum()) for _, mask in batches) == 14
        and max(ids.numel() for ids, _ in batches) <= 10
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_begins_as_its_teacher_and_learns_from_it(architecture) -> None:
    teacher, encoded = tiny(architecture, n_layers=3), pieces(SENTENCES, VOCABULARY, 64)
    student = student_of(teacher, [0, 2])
    assert student.config.n_layers == 2
    torch.testing.assert_close(
        student.embedding.tables[0].weight, teacher.embedding.tables[0].weight
    )
    same = [
        torch.equal(a, b)
        for a, b in zip(student.stack.layers[1].parameters(), teacher.stack.layers[2].parameters())
    ]
    assert all(same)
    ids, mask = next(word_batches(encoded, 500, 0, None))
    before = batch_loss(student.eval(), ids, mask, Distillation(teacher)).item()
    fit_lm(
        student,
        encoded,
        encoded,
        VOCABULARY,
        LMSettings(epochs=30, lr=0.01, batch_words=200),
        0,
        Distillation(teacher),
    )
    assert batch_loss(student.eval(), ids, mask, Distillation(teacher)).item() < before


def test_distilling_a_model_into_itself_leaves_entropy_and_lm_loss() -> None:
    model, encoded = tiny("Transformer"), pieces(SENTENCES, VOCABULARY, 64)
    ids, mask = next(word_batches(encoded, 500, 0, None))
    hidden = model.run(model.embed(ids[:, :-1]))[mask[:, 1:].bool()]
    found = model.log_prob(hidden)
    entropy = -(found.exp() * found).sum(-1).mean()
    expected = entropy + batch_loss(model, ids, mask)
    torch.testing.assert_close(batch_loss(model, ids, mask, Distillation(model)), expected)


def test_what_does_not_fit_is_refused(tmp_path) -> None:
    with pytest.raises(TouchstoneError, match="did you mean 'LSTM'"):
        LMConfig("LSTMs", 1, 8, 8)
    with pytest.raises(TouchstoneError, match="3 heads"):
        LMConfig("Transformer", 1, 16, 8, n_heads=3)
    with pytest.raises(TouchstoneError, match="keeps the first and the last layer"):
        student_of(tiny("LSTM", n_layers=3), [1, 2])
    with pytest.raises(TouchstoneError, match="choose from 0 to 1"):
        student_of(tiny("QRNN"), [0, 5])
    with pytest.raises(TouchstoneError, match="hand in the vocabulary"):
        Probe(tiny("LSTM"), build_vocabulary(SENTENCES[:2]), nn.Linear(16, 2), ("a", "b"))
    with pytest.raises(TouchstoneError, match="does not fit a"):
        Probe(tiny("LSTM"), VOCABULARY, nn.Linear(8, 2), ("a", "b"))


def test_a_saved_model_is_the_same_and_a_broken_one_is_refused(tmp_path) -> None:
    model = tiny("Transformer", cutoffs=(8,))
    save_lm(model, VOCABULARY, tmp_path / "m.safetensors")
    again, words = load_lm(tmp_path / "m.safetensors")
    ids = torch.randint(len(VOCABULARY), (2, 5))
    torch.testing.assert_close(again.run(again.embed(ids)), model.run(model.embed(ids)))
    assert words == VOCABULARY
    text = (tmp_path / "m.json").read_text().replace('"embedding": 16', '"embedding": 8')
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(TouchstoneError, match="do not fit"):
        load_lm(tmp_path / "m.safetensors")


def examples() -> pd.DataFrame:
    rows = [
        ("the dog", 0),
        ("the dogs", 1),
        ("a cat", 0),
        ("cats", 1),
        ("the old man", 0),
        ("old men", 1),
    ] * 10
    return pd.DataFrame(
        [(split, *row) for split in ("train", "valid") for row in rows],
        columns=["split", "prefix", "tag"],
    )


def test_a_probe_learns_and_the_model_stays_as_it_was() -> None:
    model = tiny("Transformer")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    probe, curve = fit_probe(
        model, VOCABULARY, "number", examples(), ProbeSettings(epochs=30, lr=0.03), seed=0
    )
    assert curve["validation_accuracy"].iloc[-1] == 1.0
    assert isinstance(probe, TextModel) and all(
        torch.equal(before[k], v) for k, v in model.state_dict().items()
    )
    assert probe.predict([["the", "dogs"], ["a", "cat"]]).argmax(1).tolist() == [1, 0]
    with pytest.raises(TouchstoneError, match="no examples in the split valid"):
        fit_probe(
            model, VOCABULARY, "number", examples().query("split == 'train'"), ProbeSettings(), 0
        )
    with pytest.raises(TouchstoneError, match="choose number or gender"):
        fit_probe(model, VOCABULARY, "tense", examples(), ProbeSettings(), 0)


def test_states_do_not_depend_on_the_rows_beside_them() -> None:
    model = tiny("Transformer")
    together = features(model, VOCABULARY, [["the"], "the old man reads".split()])
    torch.testing.assert_close(together[0], features(model, VOCABULARY, [["the"]])[0])


def test_a_saved_probe_answers_the_same(tmp_path) -> None:
    probe = Probe(tiny("QRNN"), VOCABULARY, nn.Linear(16, 2), ("singular", "plural"))
    save_lm(probe.lm, VOCABULARY, tmp_path / "lm.safetensors")
    save_probe(probe, tmp_path / "probe.safetensors")
    again = load_probe(tmp_path / "lm.safetensors", tmp_path / "probe.safetensors", "number")
    np.testing.assert_allclose(
        again.predict(SENTENCES[:3]), probe.predict(SENTENCES[:3]), rtol=1e-6
    )


def test_a_probe_of_another_model_or_task_is_refused_though_its_size_fits(tmp_path) -> None:
    mine, other = tiny("QRNN"), tiny("LSTM")
    assert mine.config.embedding == other.config.embedding
    for name, model in (("mine", mine), ("other", other)):
        save_lm(model, VOCABULARY, tmp_path / f"{name}.safetensors")
    save_probe(
        Probe(mine, VOCABULARY, nn.Linear(16, 2), ("singular", "plural")),
        tmp_path / "probe.safetensors",
    )
    with pytest.raises(
        TouchstoneError, match="is a probe of another model .*not of other.safetensors"
    ):
        load_probe(tmp_path / "other.safetensors", tmp_path / "probe.safetensors", "number")
    with pytest.raises(
        TouchstoneError,
        match="is a probe of another task .singular plural., not of mine.safetensors for gender",
    ):
        load_probe(tmp_path / "mine.safetensors", tmp_path / "probe.safetensors", "gender")
