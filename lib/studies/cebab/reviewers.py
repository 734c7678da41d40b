"""Classifiers of reviews: stars from a fine-tuned encoder or a BiLSTM, aspects from frozen embeddings, and what explainers
read of them: the vectors in front of the last linear layer, and that layer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from lib.core.errors import TouchstoneError
from lib.core.files import atomic_path
from lib.core.seeds import seed_for
from lib.models.hf import HFClassifier
from lib.models.load import save_trained
from lib.models.masked_lm import MaskedLM
from lib.models.schemes import apply_scheme, scheme_named, set_modes
from lib.models.text_model import Encoded, RunsFromEmbeddings, device_of, length_buckets, pad
from lib.models.weights import load_classifier
from lib.models.word_table import ids_in_use, rows_in_use
from lib.studies.cebab.lstm import BiLSTM
from lib.studies.cebab.questions import Head
from lib.studies.cebab.reviews import ASPECTS, VALUES
from lib.studies.cebab.upper_layers import (
    States,
    layer_stack,
    layers_between,
    lower_states,
    state_forward,
    upper_parameters,
)
from lib.training.classifier import Settings, Split, fit, token_forward

KINDS = (
    "frozen encoder",
    "encoder",
    "BiLSTM",
)  # the first learns its head alone, on the mean over tokens
WHOLE = "CEfAf"  # the transfer scheme in which everything learns
BATCH = 64  # texts that are read together; no result depends on it


@dataclass(frozen=True)
class Reading:
    """What a classifier says of texts: probabilities, and the vectors that its last layer `head` makes them from."""

    probabilities: Float[np.ndarray, "batch class"]
    vectors: Float[np.ndarray, "batch hidden"]
    head: Head

    def save(self, path: Path, key: str, ids: Sequence[str]) -> None:
        """Keep it as one .npz with the texts' ids, and the key of all that it depends on."""
        with atomic_path(path) as part, part.open("wb") as file:
            np.savez(
                file,
                key=np.array(key),
                ids=np.array(ids, dtype=str),
                probabilities=self.probabilities.astype(np.float32),
                vectors=self.vectors.astype(np.float32),
                weight=self.head.weight,
                bias=self.head.bias,
            )


def load_reading(path: Path, key: str = "") -> tuple[np.ndarray, Reading] | None:
    """The ids and the reading that `save` kept; None where there is none, or where it has another key."""
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as kept:
        if key and str(kept["key"]) != key:
            return None
        head = Head(kept["weight"], kept["bias"])
        vectors = kept["vectors"].astype(float)
        return kept["ids"].astype(object), Reading(head.probabilities(vectors), vectors, head)


def save_vectors(
    path: Path,
    key: str,
    ids: Sequence[str],
    vectors: np.ndarray,
    about: Mapping[str, float] | None = None,
) -> None:
    """Keep vectors of texts as one .npz, with the texts' ids, the key of all that they depend on, and numbers about them."""
    with atomic_path(path) as part, part.open("wb") as file:
        np.savez(
            file,
            key=np.array(key),
            ids=np.array(ids, dtype=str),
            vectors=vectors.astype(np.float32),
            about=np.array(json.dumps(about or {})),
        )


def load_vectors(
    path: Path, key: str = ""
) -> tuple[np.ndarray, np.ndarray, dict[str, float]] | None:
    """The ids, vectors and numbers that `save_vectors` kept; None where there are none, or where they have another key."""
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as kept:
        if key and str(kept["key"]) != key:
            return None
        return (
            kept["ids"].astype(object),
            kept["vectors"].astype(float),
            json.loads(str(kept["about"])),
        )


@dataclass(frozen=True)
class Reviewer:
    """One model of a study and how it is trained; `name` is also the name of its file.

    `n_frozen`: so many of an encoder's lowest layers, and its word table, stay as they are; what they make of the texts is
    computed once.
    """

    dataset: str
    kind: str
    number: int
    encoder: str
    revision: str
    n_classes: int
    settings: Settings | None
    n_frozen: int = 0

    @property
    def name(self) -> str:
        """The model's name, without blanks."""
        return f"{self.dataset}-{self.kind.replace(' ', '_')}-seed{self.number}"

    def read(
        self,
        train: pd.DataFrame,
        dev: pd.DataFrame,
        test: pd.DataFrame,
        device: torch.device,
        keep: str = "best",
        weights: Path | None = None,
    ) -> Reading:
        """Train a network on the train texts and read train and test texts, in this order.

        `keep`: the "best" epoch on dev, or the "last". `weights`: the folder where an encoder's tensors are kept, as `name`.
        """
        if self.settings is None:
            raise TouchstoneError(
                f"{self.kind} has no settings; name it in the parameters epochs, lr and batch_size"
            )
        model = build_reviewer(
            self.kind,
            self.encoder,
            self.revision,
            self.n_classes,
            seed_for("model", self.kind, self.number),
        )
        model.module.to(device)
        whole = pd.concat([train, dev, test])
        encoded, labels, n_read = (
            model.encode(words_of(list(whole["text"]))),
            whole["label"].to_numpy(),
            len(train) + len(dev),
        )
        frozen = self.n_frozen if isinstance(model, HFClassifier) else 0
        states = lower_states(model, encoded, frozen) if frozen else None
        train_reviewer(
            model,
            encoded[:n_read],
            labels[:n_read],
            len(train),
            self.settings,
            self.number,
            keep,
            frozen,
            states,
        )
        if weights is not None and isinstance(model, HFClassifier):
            recipe = {
                "encoder": self.encoder,
                "revision": self.revision,
                "classes": list(model.classes),
                "scheme": WHOLE,
                "seed": self.number,
            }
            save_trained(
                weights,
                self.name,
                recipe,
                model,
                dict(model.module.named_parameters()),
                ids_in_use(encoded[:n_read]),
            )
        read = [*range(len(train)), *range(n_read, len(whole))]
        return read_texts(
            model,
            [encoded[i] for i in read],
            frozen,
            None if states is None else [states[i] for i in read],
        )


def words_of(texts: Sequence[str]) -> list[list[str]]:
    """Texts as lists of words, for the tokenizers; split at white space."""
    return [text.split() for text in texts]


def build_reviewer(
    kind: str, encoder: str, revision: str, n_classes: int, seed: int
) -> RunsFromEmbeddings:
    """An untrained classifier of stars: the pre-trained encoder with a new head, or a BiLSTM over its word vectors."""
    if kind not in KINDS[1:]:
        raise TouchstoneError(
            f"there is no network {kind!r} to train; choose from {', '.join(KINDS[1:])}"
        )
    classifier = load_classifier(encoder, revision, [str(k + 1) for k in range(n_classes)])
    return classifier if kind == "encoder" else BiLSTM(classifier, classifier.classes, seed)


def train_reviewer(
    model: RunsFromEmbeddings,
    encoded: Sequence[Encoded],
    labels: Int[np.ndarray, "batch"],
    n_train: int,
    settings: Settings,
    seed: int,
    keep: str = "best",
    n_frozen: int = 0,
    states: States | None = None,
) -> pd.DataFrame:
    """Train a classifier on the first `n_train` texts; the others choose the epoch, if `keep` says so. Returns the curve.

    Of an encoder everything learns (of the word table only the rows in use), or what lies above the `n_frozen` lowest layers,
    whose `states` are handed in. A BiLSTM keeps its word vectors.
    """
    targets = torch.tensor(labels, device=device_of(model.module))
    lengths = torch.tensor([len(one.ids) for one in encoded])
    how = (
        targets,
        lengths,
        Split(torch.arange(n_train), torch.arange(n_train, len(encoded))),
        settings,
        seed_for("fit", seed),
        keep,
    )
    if not isinstance(model, HFClassifier):
        trained = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        curve = fit(token_forward(model, encoded), trained, *how)
    else:
        scheme = scheme_named(WHOLE)
        learns = set(apply_scheme(model, scheme, seed_for("head", seed)))
        set_modes(model, scheme, settings.dropout)
        if states is not None:
            depth = len(layer_stack(model.module))
            trained = upper_parameters(model, depth - n_frozen)
            with layers_between(model.module, n_frozen, depth):
                curve = fit(state_forward(model, states), trained, *how)
        else:
            with rows_in_use(model.module, ids_in_use(encoded)) as row_of:
                trained = {name: p for name, p in model.module.named_parameters() if name in learns}
                curve = fit(token_forward(model, encoded, row_of), trained, *how)
    model.module.eval()
    return curve


def fit_head(
    vectors: Float[np.ndarray, "batch hidden"],
    labels: Int[np.ndarray, "batch"],
    n_classes: int,
    penalty: float = 0.1,
) -> Head:
    """A linear classifier on frozen vectors of length one: logistic regression, `penalty` the inverse of scikit-learn's C.

    A class that no label has gets a bias of -30, which is a probability of nothing.
    """
    fitted = LogisticRegression(C=1 / penalty, max_iter=2000).fit(vectors, labels)
    weight, bias = np.zeros((n_classes, vectors.shape[1])), np.full(n_classes, -30.0)
    if len(fitted.classes_) == 2:  # scikit-learn keeps one row for two classes
        weight[fitted.classes_[1]], bias[fitted.classes_] = (
            fitted.coef_[0],
            (0.0, fitted.intercept_[0]),
        )
    else:
        weight[fitted.classes_], bias[fitted.classes_] = fitted.coef_, fitted.intercept_
    return Head(weight, bias)


@torch.no_grad()
def read_texts(
    model: RunsFromEmbeddings,
    encoded: Sequence[Encoded],
    n_frozen: int = 0,
    states: States | None = None,
) -> Reading:
    """Run a classifier over texts and keep what its last linear layer reads; from the `states` of the frozen layers if there are any.

    Raises TouchstoneError where softmax(layer(vectors)) are not the model's probabilities: then explainers would explain
    another model.
    """
    layer, caught = last_layer(model), []
    hook = layer.register_forward_pre_hook(
        lambda module, inputs: caught.append(inputs[0].reshape(-1, layer.in_features))
    )
    buckets = length_buckets([len(one.ids) for one in encoded], BATCH)
    forward = token_forward(model, encoded)
    above = nullcontext()
    if isinstance(model, HFClassifier) and states is not None:
        forward, above = (
            state_forward(model, states),
            layers_between(model.module, n_frozen, len(layer_stack(model.module))),
        )
    try:
        with above:
            scores = [forward(torch.tensor(bucket)) for bucket in buckets]
    finally:
        hook.remove()
    order = np.argsort([i for bucket in buckets for i in bucket])
    vectors, logits = (torch.cat(parts).double().cpu().numpy()[order] for parts in (caught, scores))
    bias = torch.zeros(layer.out_features) if layer.bias is None else layer.bias
    head = Head(layer.weight.detach().double().cpu().numpy(), bias.detach().double().cpu().numpy())
    probabilities = torch.tensor(logits).softmax(1).numpy()
    if not np.allclose(head.probabilities(vectors), probabilities, atol=1e-4):
        raise TouchstoneError(
            f"the last layer of {type(model.module).__name__} does not make its answers from one vector a text; "
            "hand in predictions alone"
        )
    return Reading(probabilities, vectors, head)


def last_layer(model: RunsFromEmbeddings) -> nn.Linear:
    """The linear layer that gives the class scores: the last one with as many outputs as there are classes."""
    found = [
        m
        for m in model.module.modules()
        if isinstance(m, nn.Linear) and m.out_features == len(model.classes)
    ]
    if not found:
        raise TouchstoneError(
            f"{type(model.module).__name__} ends in no linear layer; hand in predictions alone"
        )
    return found[-1]


@torch.no_grad()
def sentence_vectors(
    encoder: HFClassifier | MaskedLM, texts: Sequence[str]
) -> Float[np.ndarray, "batch hidden"]:
    """The frozen encoder's mean over tokens, of length one: what all-MiniLM was trained to compare."""
    encoded = encoder.encode(words_of(texts))
    buckets, parts = length_buckets([len(one.ids) for one in encoded], BATCH), []
    for bucket in buckets:
        ids, mask = (
            t.to(device_of(encoder.module))
            for t in pad([encoded[i] for i in bucket], encoder.tokenizer.pad_token_id)
        )
        states: Tensor = encoder.module.base_model(
            input_ids=ids, attention_mask=mask
        ).last_hidden_state
        parts.append(nn.functional.normalize(states.mean(1), dim=-1))
    order = np.argsort([i for bucket in buckets for i in bucket])
    return torch.cat(parts).cpu().numpy()[order]


def predict_aspects(
    train: pd.DataFrame,
    train_vectors: Float[np.ndarray, "batch hidden"],
    texts: pd.DataFrame,
    vectors: Float[np.ndarray, "batch hidden"],
) -> pd.DataFrame:
    """The value of each aspect in texts, by a logistic regression on TF-IDF and frozen vectors; text_id and ASPECTS.

    One classifier per aspect, fitted on the train texts whose label is a value (not "no majority", not empty).
    """
    found = texts[["text_id"]].reset_index(drop=True)
    counts = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit(train["text"])
    scale = (
        np.sqrt(vectors.shape[1]) / 4
    )  # vectors of length one would hardly be heard beside a penalty of 1
    ours, theirs = (
        hstack([counts.transform(part["text"]), csr_matrix(scale * v)]).tocsr()
        for part, v in ((train, train_vectors), (texts, vectors))
    )
    for aspect in ASPECTS:
        known = train[aspect].isin(VALUES).to_numpy()
        found[aspect] = (
            LogisticRegression(max_iter=2000)
            .fit(ours[known], train.loc[known, aspect])
            .predict(theirs)
        )
    return found
