"""A planted shortcut: data in which one inserted word decides the class, and a model that is
shown to use it.

On such a model an explanation that puts its mass elsewhere is wrong, and no odd model can be
blamed for it.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import torch

from ..attribution.explain import explain_many
from ..attribution.table import KEY
from ..core.errors import TouchstoneError
from ..core.seeds import seed_for
from ..models.schemes import SCHEMES
from ..models.text_model import BATCH, TextModel
from ..models.weights import load_tokenizer
from ..training.classifier import Settings
from ..training.transfer import Trainer
from .scoring import score_explanations

# the share of predictions that must follow the token before a model counts as using it
_FOLLOWS = 0.95
_SCHEME = "OLA-CEA"


def free_words(tokenizer: Any, sentences: Sequence[Sequence[str]], n: int) -> list[str]:
    """The first n lower-case words of a vocabulary, by the alphabet, that are one token each and
    stand in no sentence.

    Raises TouchstoneError where the vocabulary has fewer.
    """
    used = {word.strip().lower() for words in sentences for word in words}
    candidates = sorted(
        word
        for word in set(tokenizer.get_vocab()) - used
        if word.isascii() and word.isalpha() and word.islower() and len(word) > 3
    )
    as_word = {"is_split_into_words": True, "add_special_tokens": False}
    one_token = (word for word in candidates if len(tokenizer([word], **as_word)["input_ids"]) == 1)
    words = list(islice(one_token, n))
    if len(words) < n:
        raise TouchstoneError(
            f"the tokenizer has {len(words)} words of one token that are not in the data, and {n} "
            "are asked for; name the tokens yourself"
        )
    return words


def plant(rows: pd.DataFrame, tokens: Mapping[int, str], seed: int = 0) -> pd.DataFrame:
    """The rows with a token of their class inserted at a random place.

    The classes of a base sentence are dealt out anew among its forms, so that its own words say
    nothing and the token alone tells the class. What a row gets depends on its row_id, its base
    sentence and `seed` alone.

    Args:
        rows: row_id, sentence_idx, target, sentence.
        tokens: class to token; rows of a class without one stay as they are.

    Returns:
        The rows with the token as ground_truth, and its place in a column planted (-1 without one).

    Raises:
        TouchstoneError: for a token that stands in the rows already.
    """
    words = {word.strip().lower() for sentence in rows["sentence"] for word in sentence}
    if known := [token for token in tokens.values() if token.lower() in words]:
        raise TouchstoneError(
            f"the token {known[0]!r} already stands in the rows; choose one that does not "
            "(`free_words`)"
        )
    targets = rows["target"].to_numpy().copy()
    for idx, forms in rows.groupby("sentence_idx").indices.items():
        # A stream for each base sentence: others may be left out without a change here.
        rng = np.random.default_rng(seed_for("labels", int(idx), seed))
        targets[forms] = rng.permutation(targets[forms])
    planted = rows.assign(target=targets)
    places, sentences, truth = [], [], []
    for row in planted.itertuples():
        sentence, place = list(row.sentence), -1
        if row.target in tokens:
            rng = np.random.default_rng(seed_for("plant", str(row.row_id), seed))
            place = int(rng.integers(len(sentence) + 1))
            sentence.insert(place, tokens[row.target])
        places.append(place)
        sentences.append(sentence)
        truth.append([int(i == place) for i in range(len(sentence))])
    return planted.assign(sentence=sentences, ground_truth=truth, planted=places)


def token_swaps(model: TextModel, rows: pd.DataFrame, tokens: Mapping[int, str]) -> pd.DataFrame:
    """What the model predicts when the token of planted rows is swapped for that of each class.

    Returns:
        A line per row and class that has a token: row_id, sentence_idx, target (of the row as
        planted), token_of (the class of the token that now stands there), predicted, follows
        (whether the two are the same), is_swapped (whether the token is another than the planted
        one).
    """
    part = rows[rows["planted"] >= 0]
    frames = []
    for token_class, token in tokens.items():
        texts = [
            [*words[:place], token, *words[place + 1 :]]
            for words, place in zip(part["sentence"], part["planted"])
        ]
        predicted = model.predict(texts, BATCH).argmax(1) if texts else np.zeros(0, int)
        frames.append(
            part[["row_id", "sentence_idx", "target"]].assign(
                token_of=token_class,
                predicted=predicted,
                follows=predicted == token_class,
                is_swapped=part["target"] != token_class,
            )
        )
    return pd.concat(frames, ignore_index=True)


def check_shortcut(swaps: pd.DataFrame, at_least: float = _FOLLOWS) -> float:
    """The share of predictions that follow a token that was swapped to another class's.

    Args:
        swaps: from `token_swaps`.

    Raises:
        TouchstoneError: below `at_least`, or where nothing could be swapped.
    """
    swapped = swaps[swaps["is_swapped"]]
    share = float(swapped["follows"].mean()) if len(swapped) else 0.0
    if share < at_least:
        raise TouchstoneError(
            f"{share:.1%} of {len(swapped)} predictions follow the planted token where it is "
            f"swapped to another class's, and {at_least:.0%} are asked for: the model does not "
            "rest on it; train longer, plant more rows, or deal the labels out at random"
        )
    return share


def train_shortcut(
    trainer: Trainer,
    train: pd.DataFrame,
    test: pd.DataFrame,
    classes: Sequence[str],
    settings: Settings,
    tokens: Mapping[int, str],
    seed: int = 0,
    scheme: str = _SCHEME,
) -> tuple[TextModel, pd.DataFrame, pd.DataFrame]:
    """Train a model on planted rows and verify on planted test rows that it uses the token.

    A model may answer one class wherever it sees no token; in rows of that class it does not need
    the token, and an explanation may rightly pass it over. Occlusion shows which rows these are.

    Args:
        tokens, seed: see `plant`.
        scheme: what learns (`lib.models.schemes`): one attention layer, or parts of the encoder.

    Returns:
        The model, the planted test rows, and what `token_swaps` found on them.

    Raises:
        TouchstoneError: where the model does not use the token (`check_shortcut`).
    """
    planted = plant(test, tokens, seed)
    model = trainer.train(
        scheme, seed, plant(train, tokens, seed), planted, classes, settings
    ).model
    swaps = token_swaps(model, planted, tokens)
    check_shortcut(swaps)
    return model, planted, swaps


def mass_on_token(explanations: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The share of absolute attribution on the token, per explanation of a planted row.

    Rows without a token are left out.

    Args:
        rows: from `plant`.

    Returns:
        dataset, scheme, seed, method, row_id, sentence_idx, target, mass, is_first (whether the
        token has the largest attribution; with ties the chance to), even (the mass that equal
        scores on all words have).
    """
    # Counts of tokens are those of the rows before the word came in.
    planted = rows[rows["planted"] >= 0].drop(columns="token_counts", errors="ignore")
    of_planted = explanations["row_id"].isin(planted["row_id"])
    scored = score_explanations(explanations[of_planted], planted)
    return scored[[*KEY, "sentence_idx", "target"]].assign(
        mass=scored["MA"], is_first=scored["top_k_precision"], even=scored["share"]
    )


def planted_mass(
    recipe: Mapping[str, Any],
    train: pd.DataFrame,
    test: pd.DataFrame,
    asked: Collection[str],
    methods: Sequence[str | tuple[str, Mapping[str, Any]]],
    epochs: int,
    seed: int = 0,
    scheme: str = _SCHEME,
    lr: float = 0.01,
    batch_size: int = 64,
) -> pd.DataFrame:
    """`mass_on_token` of methods on a model that was trained on a planted word per class.

    Args:
        recipe: encoder, revision and classes.
        train, test: rows as for `plant`.
        asked: the row_ids that are explained.
        methods: names, or (name, settings). A method with settings has them in its name ("LIME,
            n_samples 1000").
        epochs: passes over the train rows.
        seed: of the places of the words and of the training.
        scheme: what learns, one attention layer (OLA) or parts of the encoder.
        lr: the highest learning rate.
        batch_size: rows per step.

    Returns:
        The columns of `mass_on_token`, and follows: the share of predictions that follow a
        swapped word.

    Raises:
        TouchstoneError: where the model does not use the word.
    """
    tokenizer, classes = load_tokenizer(recipe["encoder"], recipe["revision"]), recipe["classes"]
    words = free_words(tokenizer, [*train["sentence"], *test["sentence"]], n=len(classes))
    trainer = Trainer(recipe["encoder"], recipe["revision"], torch.device("cpu"))
    how = Settings(epochs=epochs, lr=lr, batch_size=batch_size, eps=SCHEMES[scheme].adam_eps)
    model, planted, swaps = train_shortcut(
        trainer, train, test, classes, how, dict(enumerate(words)), seed, scheme
    )
    rows = planted[planted["row_id"].isin(set(asked))].reset_index(drop=True)
    pairs = [(method, {}) if isinstance(method, str) else method for method in methods]
    explained = pd.concat(
        explain_many(model, rows, [(name, settings)]).assign(
            method=", ".join([name, *(f"{key} {value}" for key, value in settings.items())])
        )
        for name, settings in pairs
    )
    return mass_on_token(explained, rows).assign(follows=check_shortcut(swaps))
