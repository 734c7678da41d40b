"""A bidirectional LSTM with attention over frozen word vectors.

CEBaB's model without pre-trained layers (appendix C), and the assay's second kind of classifier.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .hf import HFClassifier
from .language_model_layers import kept_for_gradients
from .text_model import RunsFromEmbeddings


class _BiLSTMNet(nn.Module):
    """One LSTM layer in both directions, attention over tokens, a linear classifier.

    The outputs of both directions are summed.
    """

    def __init__(
        self, word_vectors: Float[Tensor, "vocab hidden"], n_classes: int, hidden: int
    ) -> None:
        super().__init__()
        self.embeddings = nn.Embedding.from_pretrained(word_vectors, freeze=True)
        self.lstm = nn.LSTM(word_vectors.shape[1], hidden, batch_first=True, bidirectional=True)
        self.attention = nn.Linear(hidden, 1)
        self.classifier = nn.Linear(hidden, n_classes)

    def forward(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """Class scores; padding is neither read nor attended."""
        packed = pack_padded_sequence(
            embeddings, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        with kept_for_gradients(self.lstm):
            states_of_words = self.lstm(packed)[0]
        read, _ = pad_packed_sequence(states_of_words, batch_first=True, total_length=mask.shape[1])
        states = sum(read.chunk(2, dim=-1))
        scores = self.attention(torch.tanh(states)).squeeze(-1).masked_fill(mask == 0, -math.inf)
        return self.classifier(torch.einsum("bt,bth->bh", scores.softmax(-1), states))


class BiLSTM(RunsFromEmbeddings):
    """The network with the tokenizer and the frozen word table of a pre-trained classifier.

    The paper's has frozen fastText vectors read through BERT's tokenizer; the word table of the
    encoder stands in for them.
    """

    def __init__(
        self, source: HFClassifier, classes: Sequence[str], seed: int, hidden: int = 64
    ) -> None:
        self.tokenizer, self.classes, self.max_length = (
            source.tokenizer,
            tuple(classes),
            source.max_length,
        )
        # A stream of its own: drawing the network moves no other random number.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            vectors = source.module.get_input_embeddings().weight.detach().clone()
            self.module = _BiLSTMNet(vectors, len(self.classes), hidden).eval()

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings."""
        return self.module.embeddings(ids)

    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores, computed from the word embeddings.

        Mask is 1 for tokens and 0 for padding.
        """
        return self.module(embeddings, mask)
