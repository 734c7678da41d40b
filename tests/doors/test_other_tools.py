"""Objects of captum and lime as they are made today, of shap and inseq as they were stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from own_tokenizers import own_tokenizer
from small_models import as_rows, build, tiny_tokenizer

from lib.core.errors import TouchstoneError
from lib.doors import (
    from_captum,
    from_components,
    from_inseq,
    from_lime,
    from_shap,
    from_tokens,
)
from lib.doors.tokens import word_owners
from lib.models.hf_lm import Subwords

TEXTS = ["he sings the old song .", "they sing ."]
ROWS = as_rows(TEXTS).assign(target=[0, 2])


def stored(name: str) -> dict[str, Any]:
    return json.loads((Path(__file__).parent / f"{name}.json").read_text())


def refused(message: str) -> Any:
    return pytest.raises(TouchstoneError, match=re.escape(message))


def test_words_are_told_by_their_letters_whatever_blanks_there_are() -> None:
    spans = [(0, 3), (3, 6), (6, 7), (7, 8), (8, 9)]
    assert word_owners("didn't go", spans, ["did", "n't", "go"]) == [0, 1, 2, 2, 2]
    assert word_owners("no go ", [(0, 2), (2, 5), (5, 6)], ["no", "go"]) == [0, 1, None]
    with refused("does not have the row's word 'went' at place 1"):
        word_owners("she goes", [(0, 3), (4, 8)], ["she", "went"])
    with refused("goes on behind the row's words"):
        word_owners("she goes far", [(0, 3)], ["she", "goes"])
    with refused("does not have the row's word 'far' at place 2"):
        word_owners("she goes", [(0, 3), (4, 8)], ["she", "goes", "far"])
    with refused("the token 'goes.' covers the words 'goes' and '.'"):
        word_owners("she goes.", [(0, 3), (4, 9)], ["she", "goes", "."])
    with refused("no token is of the word '.' at place 2"):
        word_owners("she goes.", [(0, 3), (4, 8)], ["she", "goes", "."])


@pytest.mark.parametrize("kind", ["BERT", "GPT-2", "Llama", "RoBERTa"])
def test_tokens_of_each_kind_spell_the_words(kind: str) -> None:
    tokenizer = own_tokenizer(kind)
    text = "the singer sings" + (" é" if kind in ("GPT-2", "RoBERTa") else "")
    encoded = tokenizer(text)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    rows = as_rows([text])
    expected = np.bincount(Subwords(tokenizer, len(tokenizer)).owners(text.split()))
    made = from_tokens(rows, [tokens], [np.ones(len(tokens))], "ones")["scores"][0]
    assert made == expected.tolist() and max(made) > 1


def captum_scores(tokenizer: Any, as_words: bool) -> tuple[torch.Tensor, Any]:
    """What captum's LayerIntegratedGradients says of a tiny BERT, (batch, token, hidden)."""
    from captum.attr import LayerIntegratedGradients

    module = build("BERT").module
    sentences = [text.split() for text in TEXTS] if as_words else TEXTS
    encoding = tokenizer(sentences, is_split_into_words=as_words, padding=True, return_tensors="pt")
    method = LayerIntegratedGradients(
        lambda ids, mask: module(input_ids=ids, attention_mask=mask).logits,
        module.get_input_embeddings(),
    )
    found = method.attribute(
        encoding["input_ids"],
        target=torch.tensor([0, 2]),
        additional_forward_args=(encoding["attention_mask"],),
        n_steps=4,
    )
    return found, encoding


@pytest.mark.parametrize("as_words", [True, False], ids=["words", "texts"])
def test_captum_tensors_become_words(as_words: bool) -> None:
    found, encoding = captum_scores(tiny_tokenizer(), as_words)
    texts = None if as_words else TEXTS
    made = from_captum(ROWS, found, encoding, "IG", texts, targets=[0, 2], dataset="D_A")
    of_token = found.sum(-1)[0].tolist()  # [CLS] he sing ##s the old song . [SEP]
    expected = [of_token[1], of_token[2] + of_token[3], *of_token[4:8]]
    np.testing.assert_allclose(made["scores"][0], expected, rtol=1e-5)
    assert made["words"][1] == ["they", "sing", "."] and made["dataset"].eq("D_A").all()
    summed = from_captum(ROWS, list(found.sum(-1)), encoding, "IG", texts)
    np.testing.assert_allclose(summed["scores"][0], expected, rtol=1e-5)


def test_captum_tensors_that_do_not_fit_are_refused() -> None:
    found, encoding = captum_scores(tiny_tokenizer(), as_words=True)
    with refused("the explanation of row 1-M (own, IG) has target 1, and the row has 2"):
        from_captum(ROWS, found, encoding, "IG", targets=[0, 1])
    with refused("IG: 1 rows, 2 encodings, 2 attributions and 1 texts; hand in one of each"):
        from_captum(ROWS[:1], found, encoding, "IG")
    with refused("IG: row 0-F: 8 scores for 9 tokens; give one each"):
        from_captum(ROWS, found[:, 1:], encoding, "IG")
    other = ROWS.assign(sentence=[["they"] * 6, ["they", "sing", "."]])
    with refused("IG: row 0-F: no token is of the word 'they' at place 0"):
        from_captum(other, found, encoding, "IG")
    with refused("dict does not tell which word a token comes from"):
        from_captum(ROWS, found, {}, "IG")
    short = tiny_tokenizer()(
        [text.split() for text in TEXTS], is_split_into_words=True, truncation=True, max_length=6
    )
    with refused("IG: row 0-F: no token is of the word 'he' at place 0"):
        from_captum(ROWS, found[:, :6], short, "IG")


def shap_explanation(name: str) -> SimpleNamespace:
    about = stored("shap")[name]
    values = np.empty(len(TEXTS), dtype=object)
    values[:] = [np.array(of_text) for of_text in about["values"]]
    data = tuple(np.array(pieces, dtype=object) for pieces in about["data"])
    return SimpleNamespace(values=values, data=data, output_names=about["output_names"])


@pytest.mark.parametrize("name", ["pieces", "words"])
def test_shap_explanations_become_words(name: str) -> None:
    assert stored("shap")["version"].startswith("0.")
    explanation = shap_explanation(name)
    made = from_shap(ROWS, explanation)
    for i, target in enumerate(ROWS["target"]):
        # what shap gives to special tokens is no word's
        inside = [bool(piece) for piece in explanation.data[i]]
        assert sum(made["scores"][i]) == pytest.approx(explanation.values[i][inside, target].sum())
    named = from_shap(ROWS, explanation, classes=["NB", "M", "F"])
    assert named["scores"][0] == pytest.approx(
        from_shap(ROWS.assign(target=[2, 0]), explanation)["scores"][0]
    )
    one = SimpleNamespace(
        values=[values[:, 0] for values in explanation.values],
        data=explanation.data,
        output_names="F",
    )
    assert from_shap(ROWS[:1], SimpleNamespace(**{**vars(one), "data": one.data[:1]}))["scores"][
        0
    ] == pytest.approx(made["scores"][0])
    with refused("SHAP: row 1-M asks about the class 'NB', and the explanation has F"):
        from_shap(ROWS, one, classes=["F", "M", "NB"])


def test_shap_explanations_that_do_not_fit_are_refused() -> None:
    explanation = shap_explanation("words")
    with refused("SHAP: row 1-M asks about class 3, and the explanation has F, M, NB"):
        from_shap(ROWS.assign(target=[0, 3]), explanation)
    with refused("dict is no shap.Explanation"):
        from_shap(ROWS, {})
    with refused("SHAP: row 1-M: the text 'they sing .' does not have the row's word 'sang'"):
        from_shap(ROWS.assign(sentence=[TEXTS[0].split(), "they sang .".split()]), explanation)
    with refused("2 lists are given for 1 rows"):
        from_shap(ROWS[:1], explanation)


def lime_explanation(text: str, labels: tuple[int, ...], **settings: Any) -> Any:
    from lime.lime_text import LimeTextExplainer

    def answers(texts: list[str]) -> np.ndarray:
        first = np.array([0.9 if "old" in one.split() else 0.2 for one in texts])
        return np.stack([first, 1 - first], 1)

    explainer = LimeTextExplainer(random_state=0, **settings)
    return explainer.explain_instance(text, answers, labels=labels, num_samples=60)


def test_lime_explanations_become_words() -> None:
    found = lime_explanation(TEXTS[0], (0, 1), bow=False)
    rows = ROWS[:1]
    made = from_lime(rows, [found])["scores"][0]
    assert int(np.argmax(made)) == 3 and made[5] == 0  # old; the full stop is no feature
    weights = {found.domain_mapper.indexed_string.word(k): w for k, w in found.as_map()[0]}
    assert made[:5] == [pytest.approx(weights[word]) for word in TEXTS[0].split()[:5]]
    other = from_lime(rows.assign(target=1), {"0-F": found})["scores"][0]
    assert other == pytest.approx([-x for x in made])


def test_lime_explanations_that_do_not_fit_are_refused() -> None:
    found = lime_explanation(TEXTS[0], (1,))
    with refused("LIME: row 0-F asks about class 0, and explained are [1]; write labels=(0,)"):
        from_lime(ROWS[:1], [found])
    with refused("LIME: row 0-F has a str; hand in what LimeTextExplainer.explain_instance"):
        from_lime(ROWS[:1], ["he"])
    twice = as_rows(["the song the song"])
    with refused("LIME: row 0-F has one weight for the 2 places of"):
        from_lime(twice, [lime_explanation("the song the song", (0,))])
    with refused("LIME: row 1-M: the text 'he sings the old song .' does not have the row's"):
        from_lime(ROWS[1:].assign(target=1), [lime_explanation(TEXTS[0], (1,))])


PROMPTS = as_rows(["she sings the old", "they sing the"])


def as_tensor(values: list[list[Any]], is_vector: bool) -> torch.Tensor:
    """The stored numbers, NaN where there was none."""
    nothing = [float("nan")] * 16 if is_vector else float("nan")
    return torch.tensor([[nothing if x is None else x for x in row] for row in values])


def inseq_output(name: str, **changes: Any) -> SimpleNamespace:
    about = stored("inseq")
    sequences = [
        SimpleNamespace(
            **{
                **one,
                "target": [SimpleNamespace(token=token) for token in one["target"]],
                "target_attributions": as_tensor(one["target_attributions"], name == "vectors"),
                "source_attributions": None,
                **changes,
            }
        )
        for one in about[name]
    ]
    info = {"attribution_method": about["attribution_method"]}
    return SimpleNamespace(sequence_attributions=sequences, info=info)


def test_inseq_output_becomes_words() -> None:
    assert stored("inseq")["version"].startswith("0.")
    output = inseq_output("numbers")
    made = from_inseq(PROMPTS, output, continuations=["song", "song"])
    assert made["method"].tolist() == ["input_x_gradient"] * 2
    for scores, one in zip(made["scores"], output.sequence_attributions, strict=True):
        prompt = one.target_attributions[: one.attr_pos_start]
        assert sum(scores) == pytest.approx(float(prompt.nansum()), abs=1e-4)
    assert len(made["scores"][0]) == 4 and len(set(made["scores"][0])) == 4


def test_inseq_output_that_does_not_fit_is_refused() -> None:
    output = inseq_output("numbers")
    with refused("input_x_gradient: row 1-M explains 'song', and asked is 'singer'"):
        from_inseq(PROMPTS, output, continuations=["song", "singer"])
    with refused("row 0-F has vectors for numbers; call the output's aggregate()"):
        from_inseq(PROMPTS, inseq_output("vectors"))
    with refused("row 0-F is of an encoder; explain a decoder's prompt"):
        from_inseq(PROMPTS, inseq_output("numbers", source_attributions=torch.ones(2)))
    with refused("row 0-F: the text 'she sings the old' does not have the row's word 'sang'"):
        from_inseq(PROMPTS.assign(sentence=[["she", "sang"], ["they"]]), output)
    with refused("dict is no output of inseq"):
        from_inseq(PROMPTS, {})


def test_lists_by_row_id_may_leave_rows_out() -> None:
    tokens = {"1-M": ["they", "sing", "."]}
    made = from_tokens(ROWS, tokens, {"1-M": [1.0, 2.0, 3.0]}, "mine")
    assert made["row_id"].tolist() == ["1-M"] and made["scores"][0] == [1.0, 2.0, 3.0]
    with pytest.raises(TouchstoneError, match="there is no row 'x'"):
        from_tokens(ROWS, {"x": []}, {"x": []}, "mine")
    assert isinstance(made, pd.DataFrame)


def test_scores_of_components_are_folded_to_words(tmp_path: Path) -> None:
    tokens = ["[CLS]", "they", "sing", "[SEP]"]
    rows = as_rows(["they sing"])
    table = pd.DataFrame(
        {
            "row_id": "0-F",
            "component": ["L0H1", "L3H5"],
            "tokens": [tokens, tokens],
            "scores": [[9.0, 1.0, 2.0, 9.0], [9.0, -0.5, 1.0, 9.0]],
        }
    )
    path = tmp_path / "heads.parquet"
    table.to_parquet(path)
    made = from_components(path, rows)
    assert made["scores"].tolist() == [[0.5, 3.0]] and made["method"].tolist() == ["heads"]
    each = from_components(path, rows, "head", together=False)
    assert dict(zip(each["method"], each["scores"])) == {
        "head L0H1": [1.0, 2.0],
        "head L3H5": [-0.5, 1.0],
    }
    table.drop(columns="tokens").to_parquet(path)
    with refused(f"{path} has no column 'tokens'; write it"):
        from_components(path, rows)
    pd.concat([table, table]).to_parquet(path)
    with refused(f"{path} has two lines of row 0-F, L0H1; keep one of them"):
        from_components(path, rows)
    table.assign(row_id="7-F").to_parquet(path)
    with refused("there is no row '7-F' to be explained"):
        from_components(path, rows)
