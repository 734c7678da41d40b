"""Explanations as other libraries return them, in the one format.

Each reader takes the rows that were explained, as `from_words` does, and what the library returned,
in the rows' order or by row_id. What the library explained must be the row's words (`tokens`). No
library is imported here; its objects are known by their attributes.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import TouchstoneError
from ..core.files import read_table
from .readers import from_words, paired_with_rows
from .tokens import Span, by_spans, from_tokens, joined, plain_array, spelt_text


def from_captum(
    rows: pd.DataFrame,
    attributions: Any,
    encoding: Any,
    method: str,
    texts: Sequence[str] | None = None,
    **about: Any,
) -> pd.DataFrame:
    """What captum's `attribute` returned, with the encoding of the tokenizer.

    Args:
        rows: the rows explained, see `from_words`, in the order of the batch.
        attributions: (batch, token) numbers, or (batch, token, hidden), which are summed; a list of
            such tensors of one row each will do.
        encoding: of the same batch, by a fast tokenizer of transformers.
        method: what the method is called.
        texts: what the tokenizer was given where each text was one string; without them each was
            the row's list of words (`is_split_into_words=True`).
        **about: what else `from_words` takes; `targets` are the classes that `attribute` was given.

    Raises:
        TouchstoneError: naming the row, for shapes and words that do not fit.
    """
    if not getattr(encoding, "is_fast", False):
        raise TouchstoneError(
            f"{type(encoding).__name__} does not tell which word a token comes from; hand in what "
            "a fast tokenizer returned"
        )
    n_rows, n_texts = len(encoding.encodings), len(rows) if texts is None else len(texts)
    if not n_rows == len(rows) == len(attributions) == n_texts:
        raise TouchstoneError(
            f"{method}: {len(rows)} rows, {n_rows} encodings, {len(attributions)} attributions and "
            f"{n_texts} texts; hand in one of each for a row"
        )
    spelt, numbers = [], []
    for i, words in enumerate(rows["sentence"]):
        read, values = encoding.encodings[i], plain_array(attributions[i])
        if values.shape[:1] == (1,) and len(read.offsets) > 1:  # a batch of one
            values = values[0]
        numbers.append(values.sum(-1) if values.ndim == 2 else values)
        spans = read.offsets if texts is not None else _in_joined(read, words)
        spelt.append((" ".join(words) if texts is None else texts[i], spans))
    return by_spans(rows, spelt, numbers, method, about)


def from_shap(
    rows: pd.DataFrame,
    explanation: Any,
    method: str = "SHAP",
    classes: Sequence[str] = (),
    **about: Any,
) -> pd.DataFrame:
    """A `shap.Explanation` of texts, as a `shap.Explainer` with a text masker returns it.

    Args:
        rows: the rows explained, see `from_words`, in the order of the explanation.
        explanation: of all outputs, or of one (`explanation[:, :, 1]`), which `targets` or
            `classes` then tell apart.
        method: what it is called.
        classes: the model's name of each class, by number; by default the outputs stand in the
            order of the classes.
        **about: what else `from_words` takes.

    Raises:
        TouchstoneError: naming the row, for another text or an output that is not there.
    """
    if not all(hasattr(explanation, name) for name in ("values", "data", "output_names")):
        raise TouchstoneError(f"{type(explanation).__name__} is no shap.Explanation; hand in one")
    explained, pieces = paired_with_rows(rows, list(explanation.data))
    outputs, numbers = explanation.output_names, []
    for i, row in enumerate(explained.itertuples()):
        name = classes[row.target] if classes else None
        values = plain_array(explanation.values[i])
        names = [outputs] if values.ndim == 1 else outputs if outputs is not None else ()
        names = [str(output) for output in names]
        place = row.target if name is None else names.index(name) if name in names else -1
        if values.ndim == 1 and name is None:
            numbers.append(values)
            continue
        values = values[:, None] if values.ndim == 1 else values
        if not 0 <= place < values.shape[1]:
            wanted = f"class {row.target}" if name is None else f"the class {name!r}"
            raise TouchstoneError(
                f"{method}: row {row.row_id} asks about {wanted}, and the explanation has "
                f"{', '.join(names) or values.shape[1]}; explain that output"
            )
        numbers.append(values[:, place])
    spelt = [joined([str(piece) for piece in of_row]) for of_row in pieces]
    return by_spans(explained, spelt, numbers, method, about)


def from_lime(
    rows: pd.DataFrame,
    explanations: Sequence[Any] | Mapping[str, Any],
    method: str = "LIME",
    **about: Any,
) -> pd.DataFrame:
    """Explanations of `lime.lime_text.LimeTextExplainer`.

    A word that is none of its features (`num_features`, or punctuation) has the score 0.

    Args:
        rows: the rows explained, see `from_words`.
        explanations: what `explain_instance` returned for each, with the row's class among its
            `labels`.
        method: what it is called.
        **about: what else `from_words` takes.

    Raises:
        TouchstoneError: naming the row, for another text, a class that was not explained, or one
            weight for two words (`bow=True`).
    """
    explained, given = paired_with_rows(rows, explanations)
    spelt, numbers = [], []
    for row, of_row in zip(explained.itertuples(), given, strict=True):
        text: Any = getattr(getattr(of_row, "domain_mapper", None), "indexed_string", None)
        if not hasattr(text, "as_list") or not isinstance(text.as_list, list | np.ndarray):
            raise TouchstoneError(
                f"{method}: row {row.row_id} has a {type(of_row).__name__}; hand in what "
                "LimeTextExplainer.explain_instance returns, with its words as features"
            )
        if row.target not in of_row.as_map():
            raise TouchstoneError(
                f"{method}: row {row.row_id} asks about class {row.target}, and explained are "
                f"{sorted(of_row.as_map())}; write labels=({row.target},) in explain_instance"
            )
        scores = np.zeros(len(text.as_list))
        for feature, weight in of_row.as_map()[row.target]:
            places = np.atleast_1d(text.positions[feature])
            if len(places) > 1:
                raise TouchstoneError(
                    f"{method}: row {row.row_id} has one weight for the {len(places)} places of "
                    f"{text.as_list[places[0]]!r}; write LimeTextExplainer(bow=False)"
                )
            scores[places] = weight
        spelt.append(joined([str(piece) for piece in text.as_list]))
        numbers.append(scores)
    return by_spans(explained, spelt, numbers, method, about)


def from_inseq(
    rows: pd.DataFrame,
    output: Any,
    method: str = "",
    continuations: Sequence[str] | None = None,
    **about: Any,
) -> pd.DataFrame:
    """What inseq's `model.attribute` returned for prompts of a decoder.

    A prompt's word gets the sum over the generated tokens.

    Args:
        rows: the rows explained, see `from_words`; their words are the prompts'.
        output: a `FeatureAttributionOutput` with one number for a pair of tokens: of gradients call
            its `aggregate()` before.
        method: what it is called; by default inseq's name of it.
        continuations: the text that each row is asked about; the generated tokens must spell it.
        **about: what else `from_words` takes.

    Raises:
        TouchstoneError: naming the row, for another prompt or continuation.
    """
    sequences = getattr(output, "sequence_attributions", None)
    if sequences is None:
        raise TouchstoneError(f"{type(output).__name__} is no output of inseq; hand in one")
    method = method or str(output.info["attribution_method"])
    explained, given = paired_with_rows(rows, sequences)
    asked = [None] * len(given) if continuations is None else list(continuations)
    tokens, numbers = [], []
    for row, sequence, wanted in zip(explained.itertuples(), given, asked, strict=True):
        where = f"{method}: row {row.row_id}"
        if sequence.target_attributions is None or sequence.source_attributions is not None:
            raise TouchstoneError(f"{where} is of an encoder; explain a decoder's prompt")
        values = plain_array(
            sequence.target_attributions
        )  # (prompt and generated, generated[, hidden])
        if values.ndim != 2:
            raise TouchstoneError(f"{where} has vectors for numbers; call the output's aggregate()")
        written = [token.token for token in sequence.target]
        first, last = sequence.attr_pos_start, sequence.attr_pos_end
        said = spelt_text(written[first:last])[0]
        if wanted is not None and said.split() != wanted.split():
            raise TouchstoneError(f"{where} explains {said.strip()!r}, and asked is {wanted!r}")
        tokens.append(written[:first])
        numbers.append(np.nan_to_num(values[:first]).sum(1))
    return from_tokens(explained, tokens, numbers, method, **about)


def _in_joined(encoding: Any, words: Sequence[str]) -> list[Span]:
    """Where the tokens of a list of words stand in the words joined by blanks.

    An encoding keeps no words, but their number, and by the tokens' offsets the length of each;
    where these are others than the row's there are no spans, and no word will have a token.
    """
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    lengths: dict[int, int] = {}
    for k, (_, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if k is not None:
            lengths[k] = max(end, lengths.get(k, 0))
    if lengths != dict(enumerate(map(len, words))):
        return [(0, 0)] * len(encoding.offsets)
    return [
        (0, 0) if k is None else (starts[k] + a, starts[k] + b)
        for k, (a, b) in zip(encoding.word_ids, encoding.offsets, strict=True)
    ]


def from_components(
    path: Path | str, rows: pd.DataFrame, method: str = "", together: bool = True, **about: Any
) -> pd.DataFrame:
    """A file of scores that heads or features of a model gave to tokens, folded to words.

    Args:
        path: Parquet; a line a row and component: row_id, component ("L3H5", "f1204"), tokens (as
            the tokenizer writes them) and scores (one a token).
        rows: the rows explained, see `from_words`; the file may leave some out.
        method: what the method is called; by default the file's name.
        together: whether a row's components are added up; otherwise each is a method of its own,
            "METHOD COMPONENT".
        **about: what else `from_words` takes.

    Raises:
        TouchstoneError: naming the file, and the row and component, for a missing column, one twice
            or tokens that do not spell the row's words.
    """
    path = Path(path)
    table = read_table(path)
    for name in ("row_id", "component", "tokens", "scores"):
        if name not in table:
            raise TouchstoneError(f"{path} has no column {name!r}; write it, a line a component")
    if (twice := table.duplicated(["row_id", "component"])).any():
        row = table[twice].iloc[0]
        raise TouchstoneError(
            f"{path} has two lines of row {row['row_id']}, {row['component']}; keep one of them"
        )
    name, parts = method or path.stem, []
    for component, part in table.groupby("component", sort=False):
        by_row = part.set_index("row_id")
        of_part = from_tokens(
            rows,
            by_row["tokens"].to_dict(),
            by_row["scores"].to_dict(),
            f"{name} {component}",
            **about,
        )
        parts.append(of_part)
    each = pd.concat(parts, ignore_index=True)
    if not together:
        return each
    summed = {
        row_id: np.sum(list(lists), axis=0) for row_id, lists in each.groupby("row_id")["scores"]
    }
    return from_words(rows, summed, name, **about)
