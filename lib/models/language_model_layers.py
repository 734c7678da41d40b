"""The layers of the three architectures.

LSTM with dropped weights, QRNN, Transformer, adaptive input; all in plain PyTorch.

Every layer is causal: what it says at a position depends on that position and the ones before it.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

Sequences = Float[Tensor, "batch token hidden"]


def locked_dropout(x: Sequences, p: float, training: bool) -> Sequences:
    """Dropout with one mask for all positions of a sequence (Gal & Ghahramani 2016; AWD-LSTM).

    The same components of every position are dropped, the others scaled by 1 / (1 - p).
    """
    return x * F.dropout(torch.ones_like(x[:, :1]), p) if training and p else x


@contextmanager
def kept_for_gradients(lstm: nn.LSTM) -> Iterator[None]:
    """Within, an LSTM on a device keeps what its gradient needs, also outside of training.

    cuDNN keeps it in training mode alone; in a layer without dropout nothing else depends on it. On
    the host the mode chooses another kernel, and nothing is kept from it.
    """
    before, is_on_host = lstm.training, lstm.weight_ih_l0.device.type == "cpu"
    lstm.train(before or (torch.is_grad_enabled() and not is_on_host))
    try:
        yield
    finally:
        lstm.train(before)


class WeightDropLSTM(nn.Module):
    """An LSTM layer whose recurrent weights are dropped once per batch.

    DropConnect; Merity et al. 2018.
    """

    def __init__(self, n_in: int, n_out: int, weight_drop: float = 0.0) -> None:
        super().__init__()
        self.lstm = nn.LSTM(n_in, n_out, batch_first=True)
        self.weight_drop = weight_drop

    def forward(self, x: Sequences) -> Sequences:
        """The hidden states; outside of training no weight is dropped."""
        if not self.training or not self.weight_drop:
            with kept_for_gradients(self.lstm):
                return self.lstm(x)[0]
        dropped = F.dropout(self.lstm.weight_hh_l0, self.weight_drop)
        return functional_call(self.lstm, {"weight_hh_l0": dropped}, (x,))[0]


class QRNNLayer(nn.Module):
    """A quasi-recurrent layer with fo-pooling, without any kernel of its own.

    Bradbury et al. 2017, equations 1 to 4.

    Gates come from a convolution over `window` words: z = tanh(.), f = sigmoid(.), o = sigmoid(.);
    then c_t = f_t * c_{t-1} + (1 - f_t) * z_t and h_t = o_t * c_t, component by component.
    """

    def __init__(self, n_in: int, n_out: int, window: int = 1) -> None:
        super().__init__()
        self.window = window
        self.gates = nn.Linear(window * n_in, 3 * n_out)

    def forward(self, x: Sequences) -> Sequences:
        """The hidden states; before the first word lie zeros."""
        padded = F.pad(x, (0, 0, self.window - 1, 0))  # (batch, window - 1 + token, hidden)
        stacked = torch.cat([padded[:, i : i + x.shape[1]] for i in range(self.window)], dim=-1)
        z, f, o = self.gates(stacked).chunk(3, dim=-1)  # each (batch, token, hidden)
        return torch.sigmoid(o) * pooled(torch.tanh(z), torch.sigmoid(f))


def pooled(z: Sequences, f: Sequences) -> Sequences:
    """c_t = f_t * c_{t-1} + (1 - f_t) * z_t, from c = 0.

    The one recurrence of a QRNN, cheap since nothing is multiplied by a matrix in it.
    """
    c, states = torch.zeros_like(z[:, 0]), []
    for z_t, f_t in zip(z.unbind(1), f.unbind(1), strict=True):
        c = f_t * c + (1 - f_t) * z_t
        states.append(c)
    return torch.stack(states, dim=1)


class RecurrentStack(nn.Module):
    """Layers of an LSTM or a QRNN with variational dropout between them.

    The last one has the embedding's width.
    """

    def __init__(self, layers: Sequence[nn.Module], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = dropout

    def forward(self, x: Sequences) -> Sequences:
        """The last layer's hidden states."""
        for layer in self.layers:
            x = layer(locked_dropout(x, self.dropout, self.training))
        return locked_dropout(x, self.dropout, self.training)


class _TransformerLayer(nn.Module):
    """Causal self-attention and a feed-forward layer, LayerNorm before each.

    Baevski & Auli 2019.
    """

    def __init__(self, size: int, width: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads, self.dropout = n_heads, dropout
        self.attention_norm, self.feed_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.feed = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, size))

    def forward(self, x: Sequences) -> Sequences:
        """Each position looks at itself and at what is before it."""
        attended = self._attend(self.attention_norm(x))
        x = x + F.dropout(attended, self.dropout, self.training)
        return x + F.dropout(self.feed(self.feed_norm(x)), self.dropout, self.training)

    def _attend(self, x: Sequences) -> Sequences:
        heads = self.query_key_value(x).unflatten(-1, (3, self.n_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (batch, head, token, hidden / head)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(attended.transpose(1, 2).flatten(-2))  # (batch, token, hidden)


class TransformerStack(nn.Module):
    """Sinusoidal positions, Transformer layers, and a last LayerNorm."""

    def __init__(self, size: int, width: int, n_heads: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _TransformerLayer(size, width, n_heads, dropout) for _ in range(n_layers)
        )
        self.norm, self.dropout, self.size = nn.LayerNorm(size), dropout, size

    def forward(self, x: Sequences) -> Sequences:
        """Hidden states of embeddings scaled by the root of their size."""
        positions = sinusoids(x.shape[1], self.size).to(x)
        x = F.dropout(x * math.sqrt(self.size) + positions, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def sinusoids(n_positions: int, size: int) -> Float[Tensor, "token hidden"]:
    """Positions as sines and cosines of falling frequency (Vaswani et al. 2017, section 3.5)."""
    frequency = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
    angle = torch.arange(n_positions)[:, None] * frequency[None]  # (token, hidden / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[:, :size]


class AdaptiveInput(nn.Module):
    """Embeddings that are narrower for rare words, each band projected to one size.

    Baevski & Auli 2019, section 3.1.

    `cutoffs`: the first id of every band after the first; each band is `factor` times narrower than
    the one before.
    """

    def __init__(
        self, n_words: int, size: int, cutoffs: Sequence[int] = (), factor: float = 4.0
    ) -> None:
        super().__init__()
        self.edges = [0, *cutoffs, n_words]
        self.size = size
        widths = [max(1, int(size / factor**i)) for i in range(len(self.edges) - 1)]
        bands = zip(self.edges, self.edges[1:], widths)
        self.tables = nn.ModuleList(nn.Embedding(end - start, width) for start, end, width in bands)
        self.maps = nn.ModuleList(
            nn.Identity() if width == size else nn.Linear(width, size, bias=False)
            for width in widths
        )
        for table in self.tables:
            nn.init.normal_(table.weight, std=size**-0.5)

    def forward(self, ids: Int[Tensor, "batch token"]) -> Sequences:
        """The embedding of each id, all of the same size."""
        if len(self.tables) == 1:
            return self.tables[0](ids)
        embeddings = self.tables[0].weight.new_zeros(*ids.shape, self.size)
        for start, end, table, project in zip(self.edges, self.edges[1:], self.tables, self.maps):
            inside = (ids >= start) & (ids < end)  # (batch, token)
            embeddings[inside] = project(table(ids[inside] - start))
        return embeddings
