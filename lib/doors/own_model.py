"""Explanations for somebody's own Hugging Face classifier: wrap it, hand in texts, get word scores.

With a model and a tokenizer of `transformers` (here a random one that knows two words):

>>> from tokenizers import Tokenizer, models, pre_tokenizers
>>> from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
>>> vocabulary = {"[PAD]": 0, "[UNK]": 1, "she": 2, "sings": 3}
>>> by_word = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
>>> by_word.pre_tokenizer = pre_tokenizers.Whitespace()
>>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=by_word, pad_token="[PAD]")
>>> config = BertConfig(vocab_size=4, hidden_size=12, num_hidden_layers=1, intermediate_size=8)

>>> model = wrap(BertForSequenceClassification(config), tokenizer, ["dull", "fine"])
>>> explanations = explain_texts(model, ["she sings"], "Occlusion", classes="fine")
>>> [word for word, score in word_list(explanations)[0]["words"]]
['she', 'sings']
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from ..attribution.explain import explain
from ..attribution.path_integrals import TO_ONE_PERCENT
from ..attribution.registry import resolve_method
from ..core.errors import TouchstoneError, did_you_mean
from ..language.visible import HALF, is_visible
from ..models.from_ids import FromIds, takes_embeddings
from ..models.hf import HFClassifier, check_vocabulary
from ..models.shortcuts import check_reading
from ..models.text_model import BATCH, TextModel, check_known, device_of

_BY_HAND = (
    "hand a function of (embeddings, mask) that gives the number to be explained to "
    "lib.attribution.batch.TokenBatch, and that to a method: METHODS[name].function(batch)"
)
# What serves the models of transformers that are no sequence classifiers, by their names' ends.
_SERVED_BY = {
    "ForMaskedLM": "predicts masked words; PromptedMaskedLM of lib.models.zero_shot makes a "
    "classifier of it, which explain_texts takes",
    "ForCausalLM": "predicts next words; hand it to explain_next_word of lib.attribution.next_word",
    "LMHeadModel": "predicts next words; hand it to explain_next_word of lib.attribution.next_word",
    "ForTokenClassification": f"tags each token; {_BY_HAND}",
    "ForQuestionAnswering": f"marks an answer's begin and end; {_BY_HAND}",
    "ForConditionalGeneration": "writes a text from another; no method here explains that, hand in "
    "a model for sequence classification",
}


def wrap(module: Any, tokenizer: Any, classes: Sequence[str] = ()) -> HFClassifier:
    """A sequence classifier of `transformers` with its tokenizer, as a model to be explained.

    Any head will do: whether it reads one token or more is tried on two texts. A classifier that
    runs from token ids alone (T5's, BART's) has the methods that alter texts. A checkpoint in
    bfloat16 or float16 is explained as it is; load it with dtype="float32" for more digits.

    Args:
        module: what `AutoModelForSequenceClassification.from_pretrained` returns.
        tokenizer: the fast tokenizer that the module was trained with.
        classes: the names of the outputs, by default those of the configuration (`id2label`).

    Returns:
        The model that `explain_texts` and `lib.attribution.explain` take; `module` itself is in it
        and is set to evaluation.

    Raises:
        TouchstoneError: the module has no word embeddings or no class scores, or gives other scores
            from embeddings than from token ids; the tokenizer does not fit the embedding table,
            cannot tell which word a token belongs to, or has no token for padding; or `classes` are
            not as many as the outputs.
    """
    kind = type(module).__name__
    needed = ("config", "get_input_embeddings")
    if not isinstance(module, nn.Module) or not all(hasattr(module, name) for name in needed):
        raise TouchstoneError(
            f"{kind} is no model of transformers with word embeddings; hand in what "
            "AutoModelForSequenceClassification.from_pretrained returns"
        )
    for ending, served in _SERVED_BY.items():
        if kind.endswith(ending):
            raise TouchstoneError(f"{kind} {served}")
    if not getattr(tokenizer, "is_fast", False):
        raise TouchstoneError(
            f"{type(tokenizer).__name__} does not tell which word a token comes from; load the "
            "fast tokenizer (AutoTokenizer.from_pretrained(name, use_fast=True))"
        )
    table = module.get_input_embeddings()
    check_vocabulary(tokenizer, getattr(table, "num_embeddings", None), kind)
    id2label = module.config.id2label
    names = tuple(classes) or tuple(id2label[i] for i in sorted(id2label))
    model = HFClassifier(module, tokenizer, names)
    if module.config.is_encoder_decoder and not takes_embeddings(model):
        model = FromIds(model)
    ids = torch.tensor([model.encode([["a"]])[0].ids], device=device_of(module))
    with torch.no_grad():
        scores = getattr(module(input_ids=ids), "logits", None)  # (1, classes)
    if scores is None or scores.ndim != 2:
        raise TouchstoneError(
            f"{kind} gives no row of class scores; hand in a model for sequence classification"
        )
    if scores.shape[1] != len(names):
        raise TouchstoneError(
            f"{kind} has {scores.shape[1]} outputs and {len(names)} classes are named; "
            "name each output once"
        )
    if not isinstance(model, FromIds):
        check_reading(model)
    return model


def explain_texts(
    model: TextModel,
    texts: Sequence[str | Sequence[str]],
    method: str = "Integrated Gradients",
    classes: str | int | Sequence[str | int] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Word scores of texts, by one method.

    The model reads the words with single spaces between them, through its own tokenizer; how many
    of them this does not know is printed. Gradients explain the logit by default, the other methods
    the probability (column `explained`).

    Args:
        model: what `wrap` returns, or another model of `lib.models`.
        texts: each a string, which is split at white space, or a list of words.
        method: a name of `lib.attribution.METHODS`.
        classes: the class that is asked about, by name or number: one for all texts, or one for
            each; by default the one that the model predicts.
        settings: the method's settings in place of its defaults. Integrated Gradients takes as many
            points as a completeness gap of 1 % needs, unless these say otherwise.
        seed: methods that draw are seeded by it, their name and the text's words: neither the order
            of the texts nor a repetition changes a score.

    Returns:
        A line for each text in the format of `lib.attribution.SCHEMA`: among others `words`,
        `scores` (one a word), `target` (the number of the class) and `delta` (completeness gap).

    Raises:
        TouchstoneError: the model does not have a class; a gradient method is asked for and the
            model has no gradients; a text is empty or longer than the model reads; the tokenizer
            does not know most words; or method or settings are unknown.
    """
    sentences = _split(texts)
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise TouchstoneError(f"seed is {seed!r}; write a whole number")
    name = getattr(model.tokenizer, "name_or_path", "") or type(model.module).__name__
    if told := check_known(model.tokenizer, sentences, model.encode(sentences), name):
        print(told)
    _check_gradient(model, method)
    rows = pd.DataFrame(
        {
            "row_id": [f"text {i}" for i in range(len(sentences))],
            "sentence_idx": range(len(sentences)),
            "target": _targets(model, sentences, classes),
            "sentence": sentences,
            "drawn_by": [" ".join(words) for words in sentences],
        }
    )
    if not isinstance(settings or {}, Mapping):
        raise TouchstoneError(f"settings is {settings!r}; write {{name: value}}")
    settings = dict(settings or {})
    if method == "Integrated Gradients" and not {"n_steps", "rule", "tolerance"} & set(settings):
        settings = TO_ONE_PERCENT | settings
    return explain(model, rows, method, settings, study="own", seed=seed)


def _split(texts: Sequence[str | Sequence[str]]) -> list[list[str]]:
    """The words of each text; no text may lack them, and no word may be unseen or two in one."""
    if isinstance(texts, str) or not isinstance(texts, Iterable) or not (given := list(texts)):
        raise TouchstoneError(
            f"texts is {texts!r}; hand in a list of texts, with at least one in it"
        )
    sentences = []
    for i, text in enumerate(given):
        if not isinstance(text, str | Sequence | np.ndarray):
            raise TouchstoneError(f"text {i} is {text!r}; write a string, or a list of words")
        words = text.split() if isinstance(text, str) else list(text)
        if not words:
            raise TouchstoneError(f"text {i} has no words; leave it out")
        for k, word in enumerate(words):
            if not isinstance(word, str) or HALF.search(word) or len(word.split()) != 1:
                raise TouchstoneError(
                    f"text {i}, word {k} is {word!r}; write one whole word, without blanks"
                )
            if not is_visible(word):
                raise TouchstoneError(f"text {i}, word {k} ({word!r}) has no width; leave it out")
        sentences.append([str(word) for word in words])
    return sentences


def word_list(explanations: pd.DataFrame, classes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Explanations as plain data, which `json.dumps` takes.

    Args:
        explanations: what `explain_texts` returns.
        classes: the names of the classes (`model.classes`); without them a class is a number.

    Returns:
        For each text: `text`, `class`, `method`, `explained`, `delta` and `words`, the list of
        [word, score]. `delta` is the completeness gap, by how much the scores miss the change that
        they explain, and None for a method that has none.

    >>> about = {"target": 1, "method": "LIME", "explained": "logit", "delta": None}
    >>> explanations = pd.DataFrame([about | {"words": ["she", "sings"], "scores": [2.0, 0.5]}])
    >>> word_list(explanations, ["F", "M"])[0]["words"]
    [['she', 2.0], ['sings', 0.5]]
    """
    return [
        {
            "text": " ".join(row["words"]),
            "class": classes[row["target"]] if classes else int(row["target"]),
            "method": row["method"],
            "explained": row["explained"],
            "delta": None if pd.isna(row["delta"]) else float(row["delta"]),
            "words": [
                [word, float(score)]
                for word, score in zip(row["words"], row["scores"], strict=True)
            ],
        }
        for row in explanations.to_dict("records")
    ]


def _check_gradient(model: TextModel, method: str) -> None:
    """Refuse a gradient method where one word shows that the embeddings have no gradient."""
    if resolve_method(method).family != "gradient":
        return
    ids = torch.tensor([model.encode([["a"]])[0].ids], device=device_of(model.module))
    with torch.enable_grad():
        embeddings = model.embed(ids).detach()  # (1, tokens, hidden)
        # Asking whole numbers for a gradient would be an error of its own.
        if embeddings.is_floating_point():
            scores = model.logits(embeddings.requires_grad_(), torch.ones_like(ids))
            if scores.requires_grad:
                return
    raise TouchstoneError(
        f"{type(model.module).__name__} has no gradient in its word embeddings (integer "
        "weights, a forward pass without gradients, or one from token ids alone), which "
        f"{method} needs; take Occlusion, LIME or Kernel SHAP"
    )


def _targets(model: TextModel, sentences: Sequence[Sequence[str]], classes: Any) -> list[int]:
    """The number of the class that each text is asked about."""
    if classes is None:
        return list(model.predict(sentences, BATCH).argmax(1).tolist())
    wanted = (
        [classes] * len(sentences)
        if isinstance(classes, str) or not isinstance(classes, Iterable)
        else list(classes)
    )
    if len(wanted) != len(sentences):
        raise TouchstoneError(
            f"{len(wanted)} classes are given for {len(sentences)} texts; give one, "
            "or one for each text"
        )
    return [_class_number(model, name) for name in wanted]


def _class_number(model: TextModel, wanted: str | int) -> int:
    """The number of a class that is given by name or number."""
    if isinstance(wanted, str) and wanted in model.classes:
        return model.classes.index(wanted)
    is_number = isinstance(wanted, Integral) and not isinstance(wanted, bool)
    if is_number and 0 <= int(wanted) < len(model.classes):
        return int(wanted)
    names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
    hint = did_you_mean(wanted, model.classes) if isinstance(wanted, str) else ""
    raise TouchstoneError(f"there is no class {wanted!r}{hint}; the model knows {names}")
