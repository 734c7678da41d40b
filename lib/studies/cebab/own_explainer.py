"""Explainers of yours: a function or a class by name, or a table of the effects that it estimated.

CEBaB, section 3: an explainer E of a model N is given a text x in which a concept C has the value
c, and another value c'. It estimates how N's answer would change if C were c', a vector of K
numbers. So a function of yours is

    def explain(text: str, concept: str, old: str, new: str, model: ExplainedModel) -> K numbers

It sees one text at a time, without its id; of other texts only those of train. A class of yours
that extends `lib.studies.cebab.explainer.Explainer` may be named as well. It is fitted once and
then asked all questions about one text together.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...core.arrays import real_numbers
from ...core.errors import TouchstoneError, check_choice
from ...core.named import function_named
from ...models.hf import HFClassifier
from ...models.text_model import BATCH
from .explainer import Explainer
from .questions import AnyHead, Effects, Questions, Texts
from .reading import class_columns, read_rows
from .reviews import ASPECTS

FAMILY = "outside"  # in the column family
ABOUT = ["base_id", "counterfactual_id", "group", "aspect", "old", "new"]
_RUN = ["dataset", "model", "seed"]
_BY_PAIR, _BY_QUESTION = ["base_id", "counterfactual_id"], ["base_id", "aspect", "new"]


@dataclass(frozen=True)
class ExplainedModel:
    """What an explainer of yours may know of the model and of the text that it is asked about.

    Args:
        train: the train texts, with `words`, `gold` labels and `predicted` values of the aspects
            (batch, 4), the model's answers `probabilities` (batch, K), and `embeddings` or None.
        asked: the same of the one text; its gold labels are empty.
        head: what makes the answers from the embeddings, or None.
        seed: of all that is random.
        network: the model itself, where it can be run.
    """

    train: Texts
    asked: Texts
    head: AnyHead | None
    seed: int
    network: HFClassifier | None = None

    def predict(self, texts: Sequence[str]) -> Effects:
        """The model's answers to texts, (batch, K).

        Any texts, where the model can be run; otherwise those of train and the one that is asked
        about, whose answers are known.

        Raises:
            TouchstoneError: the model cannot be run, and a text is another one.
        """
        if self.network is not None:
            return self.network.predict([text.split() for text in texts], BATCH)
        known = self._answers | dict(zip(_words(self.asked), self.asked.probabilities))
        if strange := [text for text in texts if text not in known]:
            raise TouchstoneError(
                f"only answers of this model are known, and none to {strange[0][:60]!r}; ask about "
                "train texts and the given one, or explain a model whose network is kept (encoder)"
            )
        return np.array([known[text] for text in texts])

    @cached_property
    def _answers(self) -> dict[str, np.ndarray]:
        return dict(zip(_words(self.train), self.train.probabilities))


class OwnExplainer(Explainer):
    """An explainer of yours, named as module:function, asked about one text at a time.

    Args:
        name: "module:function", or "module:Class" of an `Explainer` that needs no arguments.
        network: the explained model, where it can be run.

    Raises:
        TouchstoneError: there is no such function; or, from `effects`, it answers with anything
            but K finite numbers from -1 to 1.
    """

    def __init__(self, name: str, network: HFClassifier | None = None) -> None:
        self.name, self.network = name, network
        self.chosen: Callable[..., Any] = function_named(name, "explainer")

    def learn(self) -> None:
        """A class is fitted; a function gets the train texts with every question."""
        self.fitted = None
        if isclass(self.chosen):
            if not issubclass(self.chosen, Explainer):
                raise TouchstoneError(
                    f"explainer {self.name!r} is a class, and no Explainer; extend "
                    "lib.studies.cebab.explainer.Explainer, or name a function"
                )
            self.fitted = self.chosen().fit(self.train, self.head, self.seed)

    def effects(self, questions: Questions) -> Effects:
        """Text by text, so that nobody sees a counterfactual beside its base text."""
        effects = np.empty_like(questions.texts.probabilities)
        texts, text_of = np.unique(questions.texts.ids.astype(str), return_inverse=True)
        for number, name in enumerate(texts.tolist()):
            rows = np.flatnonzero(text_of == number)
            known = replace(questions.texts.take(rows), ids=np.full(len(rows), "", dtype=object))
            asked = Questions(
                known, questions.aspect[rows], questions.old[rows], questions.new[rows]
            )
            answers = self._ask_class(asked) if self.fitted else self._ask_function(asked)
            for row, answer, change in zip(rows, answers, _changes(asked), strict=True):
                where = f"explainer {self.name!r}, text {name!r} ({change})"
                effects[row] = checked_effect(answer, effects.shape[1], where)
        return effects

    def _ask_class(self, asked: Questions) -> Sequence[Any]:
        assert self.fitted is not None
        answers = self.fitted.effects(asked)
        if not hasattr(answers, "__len__") or len(answers) != len(asked):
            raise TouchstoneError(
                f"explainer {self.name!r} answers {len(asked)} questions with "
                f"{np.shape(answers)}; return a row for each"
            )
        return answers

    def _ask_function(self, asked: Questions) -> list[Any]:
        words = _words(asked.texts)
        one = ExplainedModel(
            self.train, asked.texts.take(np.array([0])), self.head, self.seed, self.network
        )
        changes = zip(words, asked.aspect, asked.old, asked.new, strict=True)
        return [self.chosen(text, ASPECTS[a], old, new, one) for text, a, old, new in changes]


def checked_effect(answer: Any, n_classes: int, where: str) -> Effects:
    """One estimate, if it is K finite numbers from -1 to 1: a change of probabilities.

    Args:
        answer: what came back.
        n_classes: K.
        where: the explainer and the question, for the error.

    >>> checked_effect([0.5, -0.5], 2, "mine").tolist()
    [0.5, -0.5]
    """
    try:
        numbers = np.array(answer)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TouchstoneError(f"{where}: no numbers ({error}); return {n_classes}") from None
    numbers = real_numbers(numbers, f"{where}: the answer")
    if numbers.shape != (n_classes,):
        raise TouchstoneError(
            f"{where}: the answer has the shape {numbers.shape}; return {n_classes} numbers, the "
            "change of each class's probability"
        )
    if not (np.isfinite(numbers).all() and (np.abs(numbers) <= 1).all()):
        raise TouchstoneError(
            f"{where}: the answer is {numbers.round(4).tolist()}; a change of a probability is a "
            "number from -1 to 1"
        )
    return numbers


def read_estimates(path: Path | str, asked: pd.DataFrame, n_classes: int) -> pd.DataFrame:
    """Effects that were estimated elsewhere, of models that are explained here.

    Args:
        path: Parquet or CSV. e_1 ... e_K are the estimates. A row is about a pair (base_id,
            counterfactual_id) or, without the second column, about a question (base_id, aspect,
            new). aspect, old and new are compared with the pair's where they stand. dataset, model
            and seed may be missing where there is one; explainer, too, which is the file's name
            then. Rows of other texts are left out.
        asked: every pair of every explained model: dataset, model, seed, and `ABOUT`.
        n_classes: K.

    Returns:
        The columns of `asked`, explainer, and e_1 ... e_K; a row for each pair of each model that
        the file names.

    Raises:
        TouchstoneError: naming the file and the pair, where one is missing or asked about twice,
            has another direction, or has no finite number from -1 to 1.
    """
    path = Path(path)
    table = read_rows(path, "base_id")
    columns = class_columns(table, str(path), "e_", "the estimated change of each class")
    if len(columns) != n_classes:
        raise TouchstoneError(
            f"{path} has {len(columns)} classes, and this run has {n_classes}; write e_1 to "
            f"e_{n_classes}"
        )
    table = table.assign(
        **dict(zip(columns, real_numbers(table[columns].to_numpy(), str(path)).T, strict=True))
    )
    table = _with_run(table, asked, path)
    if "explainer" not in table:
        table["explainer"] = path.stem
    key = _BY_PAIR if "counterfactual_id" in table else _BY_QUESTION
    if missing := [name for name in key if name not in table]:
        raise TouchstoneError(
            f"{path} has no column {missing[0]!r}; write {' and '.join(_BY_PAIR)}, or "
            f"{', '.join(_BY_QUESTION)}"
        )
    parts = [
        _answers_of(part, asked, key, f"{path}, {name}").assign(explainer=name)
        for (name, *_), part in table.groupby(["explainer", *_RUN])
    ]
    if not parts:
        raise TouchstoneError(f"{path} has no row; write an estimate for every test pair")
    return pd.concat(parts, ignore_index=True)[[*_RUN, *ABOUT, "explainer", *columns]]


def refuse_known_names(names: Collection[str], known: Collection[str], source: str) -> None:
    """An explainer from elsewhere has a name of its own."""
    if both := sorted(set(names) & set(known)):
        raise TouchstoneError(
            f"{source} names its explainer {both[0]!r}, as one of this run is called; give it "
            "another name in the column explainer"
        )


def _with_run(table: pd.DataFrame, asked: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table with dataset, model and seed, which are filled in where there is one of them."""
    runs = asked[_RUN].drop_duplicates()
    if "seed" in table:
        seeds = real_numbers(table["seed"].to_numpy(), f"{path}: seed")
        table = table.assign(seed=seeds)
    for name in _RUN:
        there = runs[name].unique().tolist()
        if name not in table and len(there) > 1:
            raise TouchstoneError(
                f"{path} has no column {name!r}, and explained are {', '.join(map(str, there))}; "
                "write which of them a row is about"
            )
        table = table if name in table else table.assign(**{name: there[0]})
        for value in table[name].unique():
            check_choice(f"{path}: {name}", value if name != "seed" else f"{value:g}", there)
    return table.assign(seed=table["seed"].astype(int))


def _answers_of(
    part: pd.DataFrame, asked: pd.DataFrame, key: list[str], where: str
) -> pd.DataFrame:
    """One explainer's estimates of one model in the order of the model's pairs."""
    run = part[_RUN].iloc[0]
    pairs = asked[(asked[_RUN] == run).all(axis=1)]
    if pairs.empty:
        raise TouchstoneError(
            f"{where}: {run['model']} with seed {run['seed']} is not explained on "
            f"{run['dataset']}; write a model and seed of this run"
        )
    rows = pd.MultiIndex.from_frame(part[key].astype(str))
    if twice := rows[rows.duplicated()].tolist():
        raise TouchstoneError(f"{where}: {_named(key, twice[0])} stands there twice; keep one row")
    found = rows.get_indexer(pd.MultiIndex.from_frame(pairs[key].astype(str)))
    if (found < 0).any():
        lost = pairs[found < 0].iloc[0]
        raise TouchstoneError(
            f"{where}: pair {_pair(lost)} and {(found < 0).sum() - 1} others have no estimate; "
            "write one for every test pair"
        )
    columns = [name for name in part if str(name).startswith("e_")]
    given = part.iloc[found].reset_index(drop=True)
    pairs = pairs.reset_index(drop=True)
    for name in {"aspect", "old", "new"} & set(part):
        if (wrong := (given[name] != pairs[name]).to_numpy()).any():
            row = int(wrong.argmax())
            raise TouchstoneError(
                f"{where}: pair {_pair(pairs.loc[row])} has {name} {given[name][row]!r} in the "
                "file; the change goes from the base text to the counterfactual"
            )
    numbers = given[columns].to_numpy()
    for row in np.flatnonzero(~(np.abs(numbers) <= 1).all(1))[:1]:
        checked_effect(numbers[row], len(columns), f"{where}: pair {_pair(pairs.loc[row])}")
    return pairs.assign(**dict(zip(columns, numbers.T, strict=True)))


def _pair(row: Mapping[str, Any] | pd.Series) -> str:
    change = f"{row['aspect']}, {row['old']} to {row['new']}"
    return f"{row['base_id']} > {row['counterfactual_id']} ({change})"


def _named(key: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(key, values, strict=True))


def _changes(asked: Questions) -> list[str]:
    return [
        f"{ASPECTS[aspect]} from {old} to {new}"
        for aspect, old, new in zip(asked.aspect, asked.old, asked.new, strict=True)
    ]


def _words(texts: Texts) -> list[str]:
    if texts.words is None:
        raise TouchstoneError("an explainer of yours reads texts; hand in `words`")
    return texts.words.tolist()
