"""Classifiers of reviews: trained, and read for the explainers (`reading.Reading`).

Stars come from a fine-tuned encoder or a BiLSTM, aspects from frozen embeddings.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_matrix, hstack
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from ...core.errors import TouchstoneError, check_choice
from ...core.seeds import seed_for
from ...models.bilstm import BiLSTM
from ...models.hf import HFClassifier, layer_stack
from ...models.load import save_trained
from ...models.masked_lm import MaskedLM
from ...models.schemes import apply_scheme, scheme_named, set_modes
from ...models.shortcuts import ids_in_use, rows_in_use
from ...models.text_model import (
    BATCH,
    Encoded,
    Forward,
    RunsFromEmbeddings,
    check_known,
    device_of,
    in_buckets,
    length_buckets,
    lengths_of,
    pad,
)
from ...models.weights import load_classifier
from ...training.classifier import Settings, Split, fit, token_forward
from .questions import Head, Vectors
from .reading import Reading
from .reviews import ASPECTS, VALUES
from .upper_layers import States, from_states, lower_states, upper_parameters

_WHOLE = "CEfAf"  # the transfer scheme in which everything learns


def file_of(dataset: str, kind: str, number: int) -> str:
    """The name of a model, without blanks, which its files have.

    >>> file_of("cebab", "frozen encoder", 0)
    'cebab-frozen_encoder-seed0'
    """
    return f"{dataset}-{kind.replace(' ', '_')}-seed{number}"


@dataclass(frozen=True)
class Reviewer:
    """One model of a study and how it is trained.

    Args:
        dataset: the data set that it is trained on.
        kind: "encoder" or "BiLSTM".
        number: the seed.
        encoder: the pre-trained language model, by name, folder or hub id.
        revision: the commit of a hub id.
        n_classes: classes of stars.
        settings: of the training.
        n_frozen: so many of an encoder's lowest layers, and its word table, stay as they are; what
            they make of the texts is computed once.
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
        """The model's name, without blanks, which is also that of its file."""
        return file_of(self.dataset, self.kind, self.number)

    def read(
        self,
        train: pd.DataFrame,
        dev: pd.DataFrame,
        test: pd.DataFrame,
        device: torch.device,
        keep: str = "best",
        weights: Path | None = None,
        more: pd.DataFrame | None = None,
    ) -> Reading:
        """Train a network on the train texts and read train and test texts, in this order.

        Args:
            train: text and label (the class, counted from 0).
            dev: the same; these texts choose the epoch.
            test: the same; its labels are not looked at.
            device: where the network runs.
            keep: the "best" epoch on dev, or the "last".
            weights: the folder where an encoder's tensors are kept, as `name`.
            more: texts that are read last, by themselves: no other answer depends on them.
        """
        if self.settings is None:
            raise TouchstoneError(
                f"{self.kind} has no settings; name it in the parameters epochs, lr and batch_size"
            )
        seed = seed_for("model", self.kind, self.number)
        model = build_reviewer(self.kind, self.encoder, self.revision, self.n_classes, seed)
        model.module.to(device)
        texts, n_train, n_known = pd.concat([train, dev, test]), len(train), len(train) + len(dev)
        words = words_of(list(texts["text"]))
        encoded = model.encode(words)
        if told := check_known(model.tokenizer, words, encoded, self.encoder):
            print(told)
        states = None
        if self.n_frozen and isinstance(model, HFClassifier):
            states = lower_states(model, encoded, self.n_frozen)
        train_reviewer(
            model,
            encoded[:n_known],
            texts["label"].to_numpy()[:n_known],
            n_train,
            self.settings,
            self.number,
            keep,
            states,
        )
        if weights is not None and isinstance(model, HFClassifier):
            self._save(weights, model, encoded[:n_known])
        # Dev has done its work; its texts are read once more where they are among the last.
        rows = [*range(n_train), *range(n_known, len(texts))]
        found = read_texts(model, [encoded[i] for i in rows], states and states.take(rows))
        if more is None:
            return found
        encoded = model.encode(words_of(list(more["text"])))
        last = read_texts(model, encoded, states and lower_states(model, encoded, states.n_layers))
        return found.followed_by(last)

    def _save(self, folder: Path, model: HFClassifier, encoded: Sequence[Encoded]) -> None:
        recipe = {
            "encoder": self.encoder,
            "revision": self.revision,
            "classes": list(model.classes),
            "scheme": _WHOLE,
            "seed": self.number,
        }
        save_trained(
            folder,
            self.name,
            recipe,
            model,
            dict(model.module.named_parameters()),
            ids_in_use(encoded),
        )


def words_of(texts: Sequence[str]) -> list[list[str]]:
    """Texts as lists of words, for the tokenizers; split at white space."""
    return [text.split() for text in texts]


def build_reviewer(
    kind: str, encoder: str, revision: str, n_classes: int, seed: int
) -> RunsFromEmbeddings:
    """An untrained classifier of stars: the pre-trained encoder with a new head, or a BiLSTM.

    The BiLSTM reads the encoder's word vectors; `seed` is that of its other parameters.
    """
    check_choice("the network to train", kind, ("encoder", "BiLSTM"))
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
    states: States | None = None,
) -> pd.DataFrame:
    """Train a classifier of texts, in place.

    Of an encoder everything learns (of the word table only the rows in use), or what lies above the
    layers that made the `states`. A BiLSTM keeps its word vectors.

    Args:
        model: the classifier.
        encoded: the texts.
        labels: their classes.
        n_train: so many texts, the first, are trained on; the others choose the epoch.
        settings: of the training.
        seed: of the training.
        keep: the "best" epoch, or the "last".
        states: what those layers of an encoder make of the texts that stay as they are.

    Returns:
        The curve of `fit`.
    """
    if isinstance(model, HFClassifier):
        scheme = scheme_named(_WHOLE)
        apply_scheme(model, scheme, seed_for("head", seed))
        set_modes(model, scheme, settings.dropout)
    with _in_training(model, encoded, states) as forward:
        curve = fit(
            forward,
            {name: p for name, p in model.module.named_parameters() if p.requires_grad},
            torch.tensor(labels, device=device_of(model.module)),
            torch.tensor(lengths_of(encoded)),
            Split(torch.arange(n_train), torch.arange(n_train, len(encoded))),
            settings,
            seed_for("fit", seed),
            keep,
        )
    model.module.eval()
    return curve


@contextmanager
def _in_training(
    model: RunsFromEmbeddings, encoded: Sequence[Encoded], states: States | None
) -> Iterator[Forward]:
    """Within, the classifier holds no more than its training needs; its class scores."""
    if not isinstance(model, HFClassifier):
        yield token_forward(model, encoded)
    elif states is not None:
        upper_parameters(model, len(layer_stack(model.module)) - states.n_layers)
        with from_states(model, states) as forward:
            yield forward
    else:
        with rows_in_use(model.module, ids_in_use(encoded)) as row_of:
            yield token_forward(model, encoded, row_of)


@torch.no_grad()
def read_texts(
    model: RunsFromEmbeddings, encoded: Sequence[Encoded], states: States | None = None
) -> Reading:
    """Run a classifier over texts and keep what its last linear layer reads.

    Args:
        model: the classifier.
        encoded: the texts.
        states: what an encoder's lower layers made of the texts, where these are not run again.

    Raises:
        TouchstoneError: softmax(layer(vectors)) are not the model's probabilities; then explainers
            would explain another model.
    """
    layer, caught = last_layer(model), []
    catching = layer.register_forward_pre_hook(
        lambda module, inputs: caught.append(inputs[0].reshape(-1, layer.in_features))
    )
    running = from_states(model, states) if states else nullcontext(token_forward(model, encoded))
    buckets = length_buckets(lengths_of(encoded), BATCH)
    with catching, running as forward:
        scores = [forward(torch.tensor(bucket)) for bucket in buckets]
    order = np.argsort([i for bucket in buckets for i in bucket])
    vectors, logits = (torch.cat(parts).cpu().double().numpy()[order] for parts in (caught, scores))
    # The layer of a decoder has no bias.
    bias = torch.zeros(layer.out_features) if layer.bias is None else layer.bias
    head = Head(*(part.detach().cpu().double().numpy() for part in (layer.weight, bias)))
    probabilities = softmax(logits, axis=1)
    if not np.allclose(head.probabilities(vectors), probabilities, atol=1e-4):
        raise TouchstoneError(
            f"the last layer of {type(model.module).__name__} does not make its answers from one "
            "vector a text; hand in predictions alone"
        )
    return Reading(probabilities, vectors, head)


def last_layer(model: RunsFromEmbeddings) -> nn.Linear:
    """The linear layer that gives the class scores: the last with an output for each class."""
    fitting = [
        layer
        for layer in model.module.modules()
        if isinstance(layer, nn.Linear) and layer.out_features == len(model.classes)
    ]
    if not fitting:
        raise TouchstoneError(
            f"{type(model.module).__name__} ends in no linear layer; hand in predictions alone"
        )
    return fitting[-1]


def sentence_vectors(encoder: HFClassifier | MaskedLM, texts: Sequence[str]) -> Vectors:
    """The frozen encoder's mean over tokens, of length one: what all-MiniLM learnt to compare."""

    def run(batch: Sequence[Encoded]) -> Float[Tensor, "batch hidden"]:
        ids, mask = pad(batch, encoder.tokenizer.pad_token_id, device=device_of(encoder.module))
        states = encoder.module.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        return nn.functional.normalize(states.mean(1), dim=-1).cpu()

    return in_buckets(run, encoder.encode(words_of(texts))).numpy()


def predict_aspects(
    train: pd.DataFrame,
    train_vectors: Vectors,
    texts: pd.DataFrame,
    vectors: Vectors,
    weights: Float[np.ndarray, "batch"] | None = None,
) -> pd.DataFrame:
    """The value of each aspect in texts, by a logistic regression on TF-IDF and frozen vectors.

    One classifier per aspect, fitted on the train texts whose label is a value (not "no majority",
    not empty).

    Args:
        train: text and the labels of the aspects.
        train_vectors: of the train texts, of length one.
        texts: text_id and text.
        vectors: of these texts.
        weights: how much each train text counts; by default all alike.

    Returns:
        text_id and ASPECTS.
    """
    predicted = texts[["text_id"]].reset_index(drop=True)
    counts = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit(train["text"])
    # vectors of length one would hardly be heard beside a penalty of 1
    scale = np.sqrt(vectors.shape[1]) / 4
    learnt, asked = (
        hstack([counts.transform(part["text"]), csr_matrix(scale * v)]).tocsr()
        for part, v in ((train, train_vectors), (texts, vectors))
    )
    for aspect in ASPECTS:
        known = train[aspect].isin(VALUES).to_numpy()
        classifier = LogisticRegression(max_iter=2000)
        counted = None if weights is None else weights[known]
        classifier.fit(learnt[known], train.loc[known, aspect], sample_weight=counted)
        predicted[aspect] = classifier.predict(asked)
    return predicted
