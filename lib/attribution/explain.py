"""Explain rows with one method or with many, and return them in the one explanation format."""

import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int

from ..core.errors import TouchstoneError
from ..core.progress import progress
from ..core.seeds import seed_for, to_device
from ..models.shortcuts import (
    first_token_only,
    ignores_padding,
    in_precision,
    parameters_fixed,
    without_padding,
)
from ..models.text_model import Encoded, TextModel, device_of, lengths_of, pad, special_ids
from .batch import TokenBatch
from .budget import TokenBudget
from .perturbed_texts import sequence_logits
from .registry import Method, resolve_method
from .seam import Row, TokenScores, WordScores, class_score, word_scores
from .table import in_format

# Settings that are dealt with here, and not by the token methods.
COMMON = ("explained", "normalise_special", "precision")


@dataclass
class _Task:
    """A method with its settings, the rows with its seeds, and what it finds: a row each."""

    method: Method
    settings: dict[str, Any]
    rows: list[Row]
    scores: list[Float[np.ndarray, "token"]]
    deltas: list[float | None]
    about: dict[str, list[float]] = field(default_factory=dict)


def explain(
    model: Any,
    rows: pd.DataFrame,
    method: str | Method,
    settings: Mapping[str, Any] | None = None,
    *,
    study: str = "-",
    dataset: str = "-",
    scheme: str = "-",
    seed: int = -1,
) -> pd.DataFrame:
    """Every row's own class explained: one line per row in the explanation format (`table.SCHEMA`).

    >>> rows = pd.DataFrame({"row_id": ["1-F"], "sentence_idx": [1], "target": [0],
    ...                      "sentence": [["she", "sings"]]})
    >>> explain(None, rows, "First pronoun")["scores"].tolist()
    [[1.0, 0.0]]

    Args:
        model: a TextModel; floors take None, or what they were fitted to.
        rows: row_id, sentence_idx, target (a class number) and sentence (a list of words).
        method: a registered name, "module:function", or a `Method`.
        settings: what differs from the method's defaults.
        study: what goes into the columns study, dataset and scheme.
        dataset: see study.
        scheme: see study; "-" where no model is seen.
        seed: the seed of the model's training. With the method's name and the row's `drawn_by`
            (where the table has no such column: its row_id) it seeds the draws, so a row's
            explanation depends neither on its neighbours nor on their order.

    Raises:
        TouchstoneError: naming row and method, for a class that the model lacks, a sentence longer
            than it reads, a score that is not finite, or a number of scores that is not the number
            of words.
    """
    asked = [(method, settings or {})]
    return explain_many(model, rows, asked, study=study, dataset=dataset, scheme=scheme, seed=seed)


def explain_many(
    model: Any,
    rows: pd.DataFrame,
    methods: Sequence[str | tuple[str | Method, Mapping[str, Any]]],
    *,
    study: str = "-",
    dataset: str = "-",
    scheme: str = "-",
    seed: int = -1,
) -> pd.DataFrame:
    """The rows explained with several methods at once; the lines of the first method come first.

    A method is a name, or (name, settings); all else is as in `explain`. The numbers are those of
    `explain`, method by method; what the methods have in common (encoding, embeddings, the forward
    pass, the gradient, the score of the baselines) is made once.
    """
    pairs = [(method, {}) if isinstance(method, str) else method for method in methods]
    tasks = [_task(rows, method, settings, seed) for method, settings in pairs]
    by_precision: dict[str, list[_Task]] = {}
    for task in tasks:
        if task.method.family == "floor":
            task.scores = task.method.function(model, task.rows, **task.settings)
        else:
            by_precision.setdefault(task.settings.get("precision", "float32"), []).append(task)
    for precision, some in by_precision.items():
        _explain_model(model, precision, some)
    labels = {"study": study, "dataset": dataset, "scheme": scheme, "seed": seed}
    tables = [_checked(task, rows, labels) for task in tasks]
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def _task(
    rows: pd.DataFrame, method: str | Method, settings: Mapping[str, Any], seed: int
) -> _Task:
    for row_id, words in zip(rows["row_id"], rows["sentence"], strict=True):
        if isinstance(words, str) or len(words) == 0:
            raise TouchstoneError(
                f"row {row_id}: the sentence is {words!r}; write a list of words, one or more"
            )
    chosen = resolve_method(method) if isinstance(method, str) else method
    drawn_by = rows["drawn_by" if "drawn_by" in rows else "row_id"].astype(str)
    seeded = [
        Row(
            str(row.row_id),
            int(row.sentence_idx),
            int(row.target),
            list(row.sentence),
            seed_for(chosen.name, drawn, seed),
        )
        for row, drawn in zip(rows.itertuples(), drawn_by, strict=True)
    ]
    return _Task(
        chosen, chosen.settings(settings), seeded, [np.empty(0)] * len(rows), [None] * len(rows)
    )


def _explain_model(model: TextModel, precision: str, tasks: Sequence[_Task]) -> None:
    model.module.eval()  # dropout would make every explanation a draw of its own
    encoded = _encode(model, tasks[0].rows, tasks[0].method.name)
    sequences = [tuple(row.ids) for row in encoded] if precision != "float32" else []
    exact = sequence_logits(model, sequences)
    with (
        in_precision(model, precision) as model,
        parameters_fixed(model.module),
        first_token_only(model),
    ):
        for task in tasks:
            if task.method.level == "word":
                _explain_words(model, task)
        if by_token := [task for task in tasks if task.method.level == "token"]:
            _explain_tokens(model, by_token, encoded)
        if sequences:
            deviations = (sequence_logits(model, sequences) - exact).abs().amax(1).tolist()
            for task in tasks:
                task.about["deviation"] = deviations


def _explain_words(model: TextModel, task: _Task) -> None:
    settings = {name: value for name, value in task.settings.items() if name != "precision"}
    if task.method.family == "own":
        answer = _own_answer(model, task, settings)
    else:
        answer = task.method.function(model, list(task.rows), **settings)
    scores = answer if isinstance(answer, WordScores) else WordScores(answer)
    task.scores, task.about = list(scores.scores), dict(scores.about)


def _own_answer(model: TextModel, task: _Task, settings: Mapping[str, Any]) -> Any:
    """What somebody's own method answers; its errors and odd answers get the method's name."""
    name = task.method.name
    try:
        answer = task.method.function(model, list(task.rows), **settings)
    except TouchstoneError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise TouchstoneError(
            f"{name} failed ({type(error).__name__}: {error}) in {frame.filename}, line "
            f"{frame.lineno}; correct the function (it is called with the model and a list of rows)"
        ) from error
    if isinstance(answer, WordScores):
        return answer
    try:
        return [np.asarray(of_row).astype(float, casting="safe").tolist() for of_row in answer]
    except (TypeError, ValueError) as error:
        raise TouchstoneError(
            f"{name} returned {type(answer).__name__}, not real numbers ({error}); return a list "
            "of scores a row, one score per word"
        ) from None


def _explain_tokens(model: TextModel, tasks: Sequence[_Task], encoded: Sequence[Encoded]) -> None:
    """Explain rows of one length at a time with all methods; the answers go into the tasks.

    Methods of a single pass take rows of similar length, where the model ignores padding.
    """
    # One budget for all parts: what it learnt about the memory holds for the next.
    budget, lengths = TokenBudget.for_module(model.module), lengths_of(encoded)
    # One pass over a few rows of one length is no full batch; many points of each row are.
    single = [task for task in tasks if task.method.shares]
    if len(set(lengths)) == 1 or not single or not ignores_padding(model):
        single = []
    others = [task for task in tasks if not single or not task.method.shares]
    for some, padded in ((single, True), (others, False)):
        if not some:
            continue
        work = partial(_explain_part, model, some, encoded, budget)
        parts = budget.run(lengths, work, padded)
        for part, answers in progress(parts, ", ".join(task.method.name for task in some)):
            for task, answer in zip(some, answers, strict=True):
                _put(task, part, answer, encoded)


def _explain_part(
    model: TextModel,
    tasks: Sequence[_Task],
    encoded: Sequence[Encoded],
    budget: TokenBudget,
    part: Sequence[int],
) -> list[TokenScores]:
    rows = [tasks[0].rows[i] for i in part]
    first = token_batch(model, rows, [encoded[i] for i in part], tasks[0].settings["explained"])
    # The score's `explained` is the first task's; only its logits are shared, which are the same
    # for all.
    shared = first.one_pass()
    is_even = len({len(encoded[i].ids) for i in part}) == 1
    answers = []
    for task in tasks:
        batch = replace(
            first,
            score=class_score(model, [row.target for row in rows], task.settings["explained"]),
            seeds=tuple(task.rows[i].seed for i in part),
            budget=budget,
            shared=shared,
        )
        settings = {name: value for name, value in task.settings.items() if name not in COMMON}
        with without_padding(model) if is_even else nullcontext():
            answers.append(task.method.function(batch, **settings))
    return answers


def _put(task: _Task, part: Sequence[int], answer: TokenScores, encoded: Sequence[Encoded]) -> None:
    special = task.settings["normalise_special"]
    # One transfer a field, not one a row.
    about = {name: numbers.tolist() for name, numbers in answer.about.items()}
    deltas = [None] * len(part) if answer.delta is None else answer.delta.tolist()
    for at, (i, tokens) in enumerate(zip(part, answer.scores.detach().cpu().numpy(), strict=True)):
        own = tokens[: len(encoded[i].ids)]  # without padding
        task.scores[i] = word_scores(own, encoded[i].word_ids, len(task.rows[i].words), special)
        task.deltas[i] = deltas[at]
        for name, numbers in about.items():
            task.about.setdefault(name, [float("nan")] * len(encoded))[i] = float(numbers[at])


def token_batch(
    model: TextModel, rows: Sequence[Row], encoded: Sequence[Encoded], explained: str
) -> TokenBatch:
    """Rows at the seam: embeddings, score, baselines (words made padding).

    Args:
        model: the explained model.
        rows: what is explained, a class each.
        encoded: the rows' tokens (`model.encode`); shorter ones are padded.
        explained: the function of the class scores, see `seam.class_score`.
    """
    device = device_of(model.module)
    ids, mask = pad(encoded, model.tokenizer.pad_token_id)  # (batch, tokens), on the host
    owners = [[*row.word_ids, *[None] * (ids.shape[1] - len(row.ids))] for row in encoded]
    is_word = torch.tensor([[owner is not None for owner in of_row] for of_row in owners])
    empty = model.reference_ids(_untyped(model, ids, is_word))
    baseline_ids = torch.where(is_word, empty, ids)  # a prompt is not the sentence's
    with torch.no_grad():  # (batch, tokens, d)
        embeddings, baselines = (
            model.embed(to_device(some, device)) for some in (ids, baseline_ids)
        )
    return TokenBatch(
        class_score(model, [row.target for row in rows], explained),
        embeddings,
        to_device(mask, device),
        baselines,
        to_device(is_word, device),
        tuple(row.seed for row in rows),
        baseline_of=_firsts(baseline_ids, mask),
    )


def _firsts(
    ids: Int[torch.Tensor, "batch token"], mask: Int[torch.Tensor, "batch token"]
) -> tuple[int, ...]:
    """For each row the number of the first row that is equal to it."""
    seen: dict[tuple[int, ...], int] = {}
    rows = torch.cat([ids, mask], 1).tolist()
    return tuple(seen.setdefault(tuple(row), i) for i, row in enumerate(rows))


def _untyped(
    model: TextModel,
    ids: Int[torch.Tensor, "batch token"],
    is_word: Bool[torch.Tensor, "batch token"],
) -> Int[torch.Tensor, "batch token"]:
    """The ids without special tokens that were typed as words, which a baseline would keep."""
    if getattr(model, "keeps_typed", False):
        return ids
    special, pad_id = special_ids(model.tokenizer), model.tokenizer.pad_token_id
    other = getattr(model.tokenizer, "unk_token_id", None)
    is_special = torch.isin(ids, torch.tensor(special, device=ids.device))
    return torch.where(is_word & is_special, pad_id if other in (None, *special) else other, ids)


def _encode(model: TextModel, rows: Sequence[Row], method: str) -> list[Encoded]:
    """The rows' tokens; the model's own complaint about a sentence gets the row's name."""
    for row in rows:
        if not 0 <= row.target < len(model.classes):
            names = ", ".join(f"{i} {name}" for i, name in enumerate(model.classes))
            raise TouchstoneError(
                f"row {row.row_id} asks {method} about class {row.target}; the model knows {names}"
            )
    # All at once first: one by one is slow, and complaints are rare.
    try:
        return model.encode([row.words for row in rows])
    except TouchstoneError:
        for row in rows:
            try:
                model.encode([row.words])
            except TouchstoneError as error:
                raise TouchstoneError(
                    f"row {row.row_id} cannot be explained by {method}: {error}"
                ) from None
        raise


def _checked(task: _Task, rows: pd.DataFrame, labels: Mapping[str, Any]) -> pd.DataFrame:
    """What a method found in the one format; what is not a finite score per word is refused."""
    method, scores = task.method.name, task.scores
    if len(scores) != len(rows):
        raise TouchstoneError(
            f"{method} explained {len(scores)} of {len(rows)} rows; return a list of scores a row"
        )
    for row, of_row in zip(task.rows, scores, strict=True):
        if np.ndim(of_row) != 1 or len(of_row) != len(row.words):
            raise TouchstoneError(
                f"{method} gave {np.size(of_row)} scores for the {len(row.words)} words of row "
                f"{row.row_id}; return one score per word"
            )
        if not np.isfinite(np.asarray(of_row, dtype=float)).all():
            raise TouchstoneError(
                f"{method} gave a score that is not finite for row {row.row_id}; "
                "look at the model's output for that row, or leave it out"
            )
    return in_format(rows, scores, task.deltas, method, task.settings, task.about, **labels)
