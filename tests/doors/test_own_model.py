"""Somebody's own classifier: wrapped, explained, and bad input answered by one clear sentence."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers as tf
from small_models import SENTENCES, as_rows, build, tiny_tokenizer
from torch import nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    BertPreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import SequenceClassifierOutput

import lib.attribution
import lib.doors
from lib.attribution import METHODS, explain
from lib.attribution.table import validated
from lib.core.errors import TouchstoneError
from lib.doors import explain_texts, word_list, wrap
from lib.models.hf import HFClassifier


@pytest.fixture
def module() -> BertForSequenceClassification:
    return build("BERT").module


def test_five_lines_give_what_the_engine_gives(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["F", "M", "NB"])
    explanations = explain_texts(
        model, SENTENCES[:2], "Integrated Gradients", classes=["F", 1], settings={"n_steps": 5}
    )
    direct = explain(model, as_rows(SENTENCES[:2], [0, 1]), "Integrated Gradients", {"n_steps": 5})
    assert explanations["scores"].tolist() == direct["scores"].tolist()
    validated(explanations, "own")


def test_the_predicted_class_is_asked_about_unless_another_is_named(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer())
    explanations = explain_texts(model, [["he", "sings"], "she"], "Occlusion")
    assert (
        explanations["target"].tolist()
        == model.predict([["he", "sings"], ["she"]], 2).argmax(1).tolist()
    )
    assert explain_texts(model, ["he sings"], "Occlusion", "LABEL_2")["target"].tolist() == [2]


@pytest.mark.parametrize("method", ["Saliency", "Occlusion"])
def test_texts_that_the_tokenizer_does_not_know_are_refused_and_a_few_words_are_told(
    module: nn.Module, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.name_or_path = "models/mine"
    model = wrap(module, tokenizer)
    with pytest.raises(TouchstoneError) as raised:
        explain_texts(model, ["he singt schön", "Lieder sings zwölf zwölf"], method)
    assert str(raised.value) == (
        "models/mine: its tokenizer does not know 5 of the 7 words (71%: 'singt', 'schön', "
        "'Lieder'), so the model reads the same for all of these; take a model of the texts' "
        "language, with the tokenizer it was trained with"
    )
    assert capsys.readouterr().out == ""
    found = explain_texts(model, ["he zwölf", "sings zwölf"], method)  # half of them: not more
    assert len(found) == 2 and capsys.readouterr().out == (
        "models/mine: its tokenizer does not know 2 of the 4 words ('zwölf'); it cannot tell these "
        "from one another\n"
    )
    explain_texts(model, ["he sings", "she"], method)
    assert capsys.readouterr().out == ""


def test_word_scores_are_plain_data(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["F", "M", "NB"])
    explanations = explain_texts(model, ["he sings"], "Saliency", "M")
    plain = json.loads(json.dumps(word_list(explanations, model.classes)))
    assert plain == [
        {
            "text": "he sings",
            "class": "M",
            "method": "Saliency",
            "explained": "logit",
            "delta": None,
            "words": [
                [word, score]
                for word, score in zip(["he", "sings"], explanations["scores"][0], strict=True)
            ],
        }
    ]


def test_a_class_that_does_not_exist(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["female", "male", "neutral"])
    with pytest.raises(
        TouchstoneError,
        match="no class 'femal'; did you mean 'female'.*0 female, 1 male, 2 neutral",
    ):
        explain_texts(model, ["he"], "LIME", "femal")
    with pytest.raises(TouchstoneError, match="no class 3"):
        explain_texts(model, ["he"], "LIME", 3)
    with pytest.raises(TouchstoneError, match="2 classes are given for 1 texts"):
        explain_texts(model, ["he"], "LIME", [0, 1])


def test_an_over_long_and_an_empty_text(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer())
    with pytest.raises(
        TouchstoneError,
        match=r"sentence 0 \(he he he he he \.\.\.\) has 32 tokens and the model reads at most 24",
    ):
        explain_texts(model, ["he " * 30], "Saliency", 0)
    with pytest.raises(TouchstoneError, match="text 1 has no words"):
        explain_texts(model, ["he", "  "], "Saliency", 0)


class WithoutGradient(BertForSequenceClassification):
    @torch.no_grad()
    def forward(self, *args: object, **kwargs: object) -> object:
        return super().forward(*args, **kwargs)


def test_a_model_without_gradients_has_perturbation_methods_left(module: nn.Module) -> None:
    frozen = WithoutGradient(module.config).eval()
    frozen.load_state_dict(module.state_dict())
    model = wrap(frozen, tiny_tokenizer())
    for method in [name for name, method in METHODS.items() if method.family == "gradient"]:
        with pytest.raises(TouchstoneError, match="no gradient in its word embeddings.*Occlusion"):
            explain(model, as_rows(["he sings", "they"]), method)
    with pytest.raises(
        TouchstoneError,
        match="no gradient in its word embeddings.*take Occlusion, LIME or Kernel SHAP",
    ):
        explain_texts(model, ["he sings"], "Saliency", 0)
    same = explain_texts(wrap(module, tiny_tokenizer()), ["he sings"], "Occlusion", 0)
    np.testing.assert_allclose(
        explain_texts(model, ["he sings"], "Occlusion", 0)["scores"][0],
        same["scores"][0],
        atol=1e-6,
    )


def test_a_tokenizer_without_offsets(module: nn.Module) -> None:
    slow = SimpleNamespace(is_fast=False)
    with pytest.raises(
        TouchstoneError,
        match="does not tell which word a token comes from; load the fast tokenizer",
    ):
        wrap(module, slow)


@pytest.mark.parametrize("n_rows", [4, 600])
def test_a_tokenizer_of_another_model(n_rows: int) -> None:
    config = BertConfig(
        vocab_size=n_rows, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=3
    )
    with pytest.raises(TouchstoneError, match=f"embedding table {n_rows} rows"):
        wrap(BertForSequenceClassification(config), tiny_tokenizer())


def test_something_that_is_no_classifier(module: nn.Module) -> None:
    with pytest.raises(TouchstoneError, match="is no model of transformers"):
        wrap(nn.Linear(2, 2), tiny_tokenizer())
    bare = BertModel(
        BertConfig(
            vocab_size=len(tiny_tokenizer()),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=24,
        )
    )
    with pytest.raises(TouchstoneError, match="gives no row of class scores"):
        wrap(bare, tiny_tokenizer())
    with pytest.raises(TouchstoneError, match="has 3 outputs and 2 classes are named"):
        wrap(module, tiny_tokenizer(), ["F", "M"])
    assert isinstance(wrap(module, tiny_tokenizer()), HFClassifier)


class MeanHead(BertPreTrainedModel):
    """A head that reads the mean (or the maximum) over all tokens, as many models of the hub do."""

    pool = staticmethod(lambda hidden: hidden.mean(1))

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert, self.classifier = (
            BertModel(config, add_pooling_layer=False),
            nn.Linear(config.hidden_size, 3),
        )
        self.post_init()

    def forward(
        self, input_ids: object = None, attention_mask: object = None, inputs_embeds: object = None
    ) -> object:
        hidden = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds
        ).last_hidden_state
        return SequenceClassifierOutput(logits=self.classifier(self.pool(hidden)))


class MaxHead(MeanHead):
    pool = staticmethod(lambda hidden: hidden.amax(1))


class FromIdsOnly(MeanHead):
    """What it does to its token ids it does not do to embeddings."""

    def forward(
        self, input_ids: object = None, attention_mask: object = None, inputs_embeds: object = None
    ) -> object:
        output = super().forward(input_ids, attention_mask, inputs_embeds)
        return output if input_ids is None else SequenceClassifierOutput(logits=2 * output.logits)


@pytest.mark.parametrize("head", [MeanHead, MaxHead])
@pytest.mark.parametrize("framed", [True, False])
def test_a_head_that_reads_every_token_is_explained_rightly(
    module: nn.Module, head: type[MeanHead], framed: bool
) -> None:
    """Framed, the shortcut of the first token would be wrong; bare, that of the last one."""
    torch.manual_seed(0)
    classifier, tokenizer = head(module.config).eval(), tiny_tokenizer(framed)
    model = wrap(classifier, tokenizer)
    assert not model.one_token
    words = "he sings the song .".split()
    ids, of = (
        torch.tensor(tokenizer([" ".join(words)])["input_ids"]),
        model.encode([words])[0].word_ids,
    )
    with torch.no_grad():
        whole = classifier(ids).logits[0]
        without = [
            classifier(
                torch.tensor(
                    [[0 if word == i else t for t, word in zip(ids[0].tolist(), of, strict=True)]]
                )
            ).logits[0, 1]
            for i in range(len(words))
        ]
    scores = explain_texts(model, [words], "Occlusion", 1, {"explained": "logit"})["scores"][0]
    single = [
        i for i, word in enumerate(words) if word != "sings"
    ]  # that one has two tokens, taken away one by one
    np.testing.assert_allclose(
        [scores[i] for i in single], [(whole[1] - without[i]).item() for i in single], atol=1e-5
    )
    gap = explain_texts(model, [words], "Integrated Gradients", 1)
    assert abs(gap["delta"][0]) <= 0.01 * abs(sum(gap["scores"][0]) - gap["delta"][0]) + 1e-6
    with pytest.raises(TouchstoneError, match="nobody knows which token"):
        explain_texts(model, [words], "Attention rollout", 1)


def test_the_shortcut_stays_where_it_is_right(module: nn.Module) -> None:
    assert (
        wrap(module, tiny_tokenizer()).one_token
        and wrap(build("Llama").module, tiny_tokenizer(framed=False)).one_token
    )


def test_a_model_that_is_another_from_its_embeddings_is_refused(module: nn.Module) -> None:
    with pytest.raises(
        TouchstoneError, match="other class scores from its word embeddings than from its token ids"
    ):
        wrap(FromIdsOnly(module.config).eval(), tiny_tokenizer())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["BERT", "GPT-2", "Llama"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_short_checkpoint_is_explained(kind: str, dtype: torch.dtype) -> None:
    """transformers keeps a checkpoint's type: every method must take it, near what float32 says."""
    model = build(kind)
    exact = explain_texts(
        wrap(model.module, model.tokenizer), ["he sings the song ."], "Occlusion", 1
    )["scores"][0]
    short = wrap(model.module.to(dtype), model.tokenizer)
    for method in [name for name, method in METHODS.items() if method.family != "floor"]:
        explanations = explain_texts(
            short,
            ["he sings the song ."],
            method,
            1,
            {"n_samples": 12} if "sampl" in method or method == "LIME" else None,
        )
        assert np.isfinite(explanations["scores"][0]).all(), method
        if method == "Occlusion":
            np.testing.assert_allclose(explanations["scores"][0], exact, atol=0.05)
    assert short.predict([["he"]], 1).dtype == np.float32


def test_independent_classes_have_a_sigmoid_and_no_margin(module: nn.Module) -> None:
    module.config.problem_type = "multi_label_classification"
    model = wrap(module, tiny_tokenizer())
    ids = torch.tensor([model.encode([["he", "sings"]])[0].ids])
    with torch.no_grad():
        expected = module(ids).logits.sigmoid()[0]
        empty = module(model.reference_ids(ids)).logits.sigmoid()[0]
    np.testing.assert_allclose(model.predict([["he", "sings"]], 1)[0], expected, atol=1e-6)
    explanations = explain_texts(model, ["he sings"], "Exact Shapley", 2)
    assert sum(explanations["scores"][0]) == pytest.approx((expected - empty)[2].item(), abs=1e-5)
    log = explain_texts(model, ["he sings"], "Exact Shapley", 2, {"explained": "log_probability"})
    assert sum(log["scores"][0]) == pytest.approx(
        (expected.log() - empty.log())[2].item(), abs=1e-5
    )
    with pytest.raises(TouchstoneError, match="independent of each other, so there is no margin"):
        explain_texts(model, ["he sings"], "Occlusion", 2, {"explained": "margin"})


def test_a_single_output_has_no_probability(module: nn.Module) -> None:
    config = BertConfig(
        **{**module.config.to_dict(), "id2label": {0: "stars"}, "label2id": {"stars": 0}}
    )
    torch.manual_seed(0)
    model = wrap(BertForSequenceClassification(config), tiny_tokenizer())
    with pytest.raises(
        TouchstoneError, match="one output.*no probability; give the setting explained='logit'"
    ):
        explain_texts(model, ["he sings"], "Integrated Gradients")
    assert any(
        explain_texts(model, ["he sings"], "Integrated Gradients", settings={"explained": "logit"})[
            "scores"
        ][0]
    )
    config.problem_type = "multi_label_classification"  # a yes or no
    model = wrap(BertForSequenceClassification(config), tiny_tokenizer())
    assert 0 < model.predict([["he"]], 1)[0, 0] < 1
    assert any(explain_texts(model, ["he sings"], "Integrated Gradients")["scores"][0])


@pytest.mark.parametrize(
    "method", ["LIME", "Kernel SHAP", "Gradient SHAP", "SmoothGrad", "Shapley sampling"]
)
def test_neither_the_place_of_a_text_nor_a_repetition_changes_its_draws(
    module: nn.Module, method: str
) -> None:
    model, few = wrap(module, tiny_tokenizer()), {"n_samples": 6}
    one = explain_texts(
        model, ["he sings a song .", "they sing", "he sings a song ."], method, 1, few
    )["scores"]
    other = explain_texts(model, ["they sing", "he sings a song ."], method, 1, few)["scores"]
    for scores, same in ((one[2], one[0]), (other[1], one[0]), (other[0], one[1])):
        np.testing.assert_allclose(scores, same, rtol=1e-4, atol=1e-6)
    seeded = explain_texts(model, ["he sings a song ."], method, 1, few, seed=1)["scores"][0]
    assert np.abs(np.subtract(seeded, one[0])).max() > 1e-4


def test_small_mistakes_have_clear_answers(module: nn.Module) -> None:
    model = wrap(module, tiny_tokenizer(), ["F", "M", "NB"])
    for texts in ("he", []):
        with pytest.raises(TouchstoneError, match="hand in a list of texts, with at least one"):
            explain_texts(model, texts, "Saliency", 0)
    assert explain_texts(model, ["he", "they"], "Saliency", np.array([1, 2]))[
        "target"
    ].tolist() == [1, 2]
    assert explain_texts(model, ["he"], "Saliency", np.int64(1))["target"].tolist() == [1]
    for wrong in (True, 1.0, [True], [1.5]):
        with pytest.raises(TouchstoneError, match="there is no class"):
            explain_texts(model, ["he"], "Saliency", wrong)
    inner = tiny_tokenizer(framed=False).backend_tokenizer
    with pytest.raises(
        TouchstoneError, match="neither a padding nor an end token.*set tokenizer.pad_token"
    ):
        wrap(
            build("GPT-2").module,
            PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]"),
        )


@pytest.mark.parametrize("special", ["[MASK]", "[SEP]", "[CLS]"])
def test_a_special_token_that_was_typed_is_a_word(module: nn.Module, special: str) -> None:
    """It can be taken away like any other: Occlusion gives it what its embedding does."""
    model = wrap(module, tiny_tokenizer())
    words = ["he", special, "sings", "."]
    encoded = model.encode([words])[0]
    ids = torch.tensor([encoded.ids])
    at = encoded.word_ids.index(1)
    without = ids.clone()
    without[0, at] = model.tokenizer.pad_token_id
    with torch.no_grad():
        expected = (module(ids).logits.softmax(-1) - module(without).logits.softmax(-1))[
            0, 1
        ].item()
    score = explain_texts(model, [words], "Occlusion", 1)["scores"][0][1]
    assert score == pytest.approx(expected, abs=1e-6) and abs(score) > 1e-4


def test_integrated_gradients_stop_at_one_percent_unless_told_otherwise(module: nn.Module) -> None:
    model, texts = wrap(module, tiny_tokenizer()), ["he sings the old song .", "they sing"]
    explanations = explain_texts(model, texts, classes=1)
    change = explanations["scores"].map(sum) - explanations["delta"]
    assert (explanations["delta"].abs() <= 0.01 * change.abs() + 1e-6).all() and explanations[
        "steps"
    ].max() < 200
    assert json.loads(explanations["settings"][0])["tolerance"] == 0.01
    for chosen in ({"n_steps": 7}, {"tolerance": 0.2}, {"rule": "gausslegendre"}):
        settings = json.loads(
            explain_texts(model, texts, classes=1, settings=chosen)["settings"][0]
        )
        assert settings.get("tolerance") == chosen.get("tolerance") and "placing" not in settings
    plain = word_list(explanations)
    assert [one["delta"] for one in plain] == explanations["delta"].tolist()


@pytest.mark.parametrize("name", ["explain_texts", "word_list", "wrap"])
def test_the_old_place_of_a_door_still_opens_and_names_the_new_one(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"attribution\.{name} is now lib\.doors\.{name}"):
        assert getattr(lib.attribution, name) is getattr(lib.doors, name)
    with pytest.raises(ImportError, match="nonsense"):
        from lib.attribution import nonsense  # noqa: F401


def encoder_decoder(kind: str) -> nn.Module:
    """A tiny random T5 or BART with a head for three classes; [SEP] ends a text."""
    ends = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0, "num_labels": 3}
    torch.manual_seed(0)
    if kind == "T5":
        t5 = tf.T5Config(
            vocab_size=16, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, **ends
        )
        module = tf.T5ForSequenceClassification(t5)
    else:
        wide = {f"{part}_ffn_dim": 16 for part in ("encoder", "decoder")}
        heads = {f"{part}_attention_heads": 2 for part in ("encoder", "decoder")}
        layers = {f"{part}_layers": 1 for part in ("encoder", "decoder")}
        more = {"d_model": 16, "max_position_embeddings": 24, "init_std": 0.3}
        bart = tf.BartConfig(vocab_size=16, **more, **wide, **heads, **layers, **ends)
        module = tf.BartForSequenceClassification(bart)
    return module.eval()


@pytest.mark.parametrize("kind", ["T5", "BART"])
def test_encoder_decoders_have_the_methods_that_alter_texts(kind: str) -> None:
    module, tokenizer = encoder_decoder(kind), tiny_tokenizer()
    model, words = wrap(module, tokenizer), "he sings the song .".split()
    encoded = model.encode([words])[0]
    ids = torch.tensor([encoded.ids])
    at = encoded.word_ids.index(2)
    without = ids.clone()
    without[0, at] = 0
    with torch.no_grad():
        whole, less = (module(input_ids=t).logits.softmax(-1)[0, 1] for t in (ids, without))
        empty = module(input_ids=model.reference_ids(ids)).logits.softmax(-1)[0, 1]
    score = explain_texts(model, [words], "Occlusion", 1)["scores"][0][2]
    assert score == pytest.approx((whole - less).item(), abs=1e-6) and abs(score) > 1e-6
    exact = explain_texts(model, [words], "Exact Shapley", 1)["scores"][0]
    assert sum(exact) == pytest.approx((whole - empty).item(), abs=1e-5)
    for method in ("LIME", "Kernel SHAP", "Shapley sampling", "Partition SHAP"):
        assert np.isfinite(explain_texts(model, [words, "they"], method, 1)["scores"][0]).all()
    for method in ("Integrated Gradients", "AttnLRP", "SmoothGrad"):
        with pytest.raises(TouchstoneError, match="token ids alone.*take Occlusion, LIME, Ker"):
            explain_texts(model, [words], method, 1)
    with pytest.raises(TouchstoneError, match="nobody knows which token"):
        explain_texts(model, [words], "Attention rollout", 1)
    with pytest.raises(TouchstoneError, match="leave precision out"):
        explain_texts(model, [words], "Occlusion", 1, {"precision": "bfloat16"})
    with pytest.raises(TouchstoneError, match="sentence 0 has 2 end tokens"):
        explain_texts(model, ["he [SEP] sings"], "Occlusion", 1)
    with pytest.raises(TouchstoneError, match="sentence 0 has 0 end tokens"):
        wrap(module, tiny_tokenizer(framed=False))


@pytest.mark.parametrize("kind", ["T5", "BART"])
def test_a_study_that_explains_an_encoder_decoder_is_told_what_serves_it(kind: str) -> None:
    model, rows = wrap(encoder_decoder(kind), tiny_tokenizer()), as_rows(["they sing", "he"])
    for method in [name for name, method in METHODS.items() if method.family == "gradient"]:
        with pytest.raises(
            TouchstoneError, match="no gradient in its word embeddings.*take Occlusion, LIME"
        ):
            explain(model, rows, method)


@pytest.mark.parametrize(
    ("kind", "served"),
    [
        ("BertForMaskedLM", "PromptedMaskedLM of lib.models.zero_shot"),
        ("BertLMHeadModel", "explain_next_word of lib.attribution.next_word"),
        ("BertForTokenClassification", "lib.attribution.batch.TokenBatch"),
        ("BertForQuestionAnswering", "lib.attribution.batch.TokenBatch"),
        ("LlamaForCausalLM", "explain_next_word of lib.attribution.next_word"),
        ("BartForConditionalGeneration", "no method here explains that"),
    ],
)
def test_another_kind_of_model_is_told_what_serves_it(kind: str, served: str) -> None:
    small = {"vocab_size": 16, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    module_of = getattr(tf, kind)
    if kind.startswith("Bart"):
        module = module_of(encoder_decoder("BART").config)
    else:
        module = module_of(module_of.config_class(**small, num_attention_heads=2))
    with pytest.raises(TouchstoneError, match=f"{kind} .*{served}"):
        wrap(module, tiny_tokenizer())
