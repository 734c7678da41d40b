"""What every text model here looks like from outside, and the batching that all of them share."""

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..core.errors import TouchstoneError
from ..core.seeds import to_device

Forward = Callable[  # class scores of rows, which are named by their index
    [Int[Tensor, "batch"]], Float[Tensor, "batch class"]
]


BATCH = 64  # rows that are computed together where no result depends on how many these are


@dataclass(frozen=True)
class Encoded:
    """A sentence as a model reads it: token ids, and for each the index of its word.

    The index is None for a token that belongs to no word: a special token, or one of a prompt.
    """

    ids: list[int]
    word_ids: list[int | None]


@runtime_checkable
class TextModel(Protocol):
    """A classifier that can be run from word embeddings; explanations need nothing else of it.

    What stands here serves any tokenizer with a word table; a model may do it in its own way.
    """

    classes: tuple[str, ...]
    module: nn.Module
    tokenizer: Any
    max_length: int

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """Token ids and word ids of sentences that are given as lists of words."""
        return encode_words(self.tokenizer, sentences, self.max_length)

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token hidden"]:
        """The word embeddings alone: no positions, no LayerNorm."""
        return widened(self.module.get_input_embeddings()(ids))

    @abstractmethod
    def logits(
        self, embeddings: Float[Tensor, "batch token hidden"], mask: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The class scores from the word embeddings; mask is 1 for tokens and 0 for padding."""

    def reference_ids(self, ids: Int[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
        """The same sequences with nothing in them: special tokens kept, all others padding."""
        special = torch.tensor(special_ids(self.tokenizer), device=ids.device)
        return torch.where(torch.isin(ids, special), ids, self.tokenizer.pad_token_id)

    def predict(self, sentences: Sequence[Sequence[str]], batch_size: int) -> np.ndarray:
        """Class probabilities, one row a sentence."""


def encode_words(
    tokenizer: Any, sentences: Sequence[Sequence[str]], max_length: int
) -> list[Encoded]:
    """Encode sentences as their own tokenizer reads the running text.

    Words joined by single spaces, blank ones left out.

    A fast tokenizer tells where in the text each token stands, and so to which word it belongs; the
    space before a word is that word's. (Given one by one, words without a space before them would
    be glued together by GPT-2's kind of tokenizer.)

    Raises TouchstoneError where a sentence is longer than the model reads, since cutting it would
    silently lose words, and where one token covers two words.
    """
    if len(sentences) == 0:
        return []
    # verbose: transformers would warn of what `check_length` refuses with the sentence's number
    encodings = tokenizer(
        [" ".join(word for word in words if word.strip()) for words in sentences], verbose=False
    ).encodings
    encoded = []
    for i, (encoding, words) in enumerate(zip(encodings, sentences, strict=True)):
        encoded.append(Encoded(list(encoding.ids), _word_ids(encoding, words)))
        check_length(i, words, len(encoding.ids), max_length)
    return encoded


def _word_ids(encoding: Any, words: Sequence[str]) -> list[int | None]:
    """The word of each token, from where it stands in the text; None for a special token."""
    numbers = [i for i, word in enumerate(words) if word.strip()]
    ends = np.cumsum([len(words[i]) + 1 for i in numbers]) - 1  # in the text of all words
    word_ids: list[int | None] = []
    for part, (start, end) in zip(encoding.sequence_ids, encoding.offsets, strict=True):
        if part is None or not numbers:
            word_ids.append(None)
            continue
        # a token that begins at a word's end begins with the blank before the next word
        k = bisect_right(ends, start, hi=len(ends) - 1)
        if k + 1 < len(ends) and end > ends[k] + 1:
            raise TouchstoneError(
                f"the tokenizer makes one token of {words[numbers[k]]!r} and "
                f"{words[numbers[k + 1]]!r}, so neither has a score of its own; hand them in as "
                "one word"
            )
        word_ids.append(numbers[k])
    return word_ids


def check_length(index: int, words: Sequence[str], n_tokens: int, max_length: int) -> None:
    """Refuse a sentence that has more tokens than the model has positions."""
    if n_tokens > max_length:
        raise TouchstoneError(
            f"sentence {index} ({' '.join(words[:5])} ...) has {n_tokens} tokens and the model "
            f"reads at most {max_length}; shorten it, leave it out or choose a model that reads "
            "more"
        )


def check_known(
    tokenizer: Any, sentences: Sequence[Sequence[str]], encoded: Sequence[Encoded], source: str
) -> str:
    """What to say of words that a tokenizer does not know; empty where it knows them all.

    They are one and the same token to the model, which cannot tell them apart.

    Args:
        tokenizer: whose unknown token is looked for; one without such a token knows all.
        sentences: lists of words.
        encoded: what the model makes of them.
        source: the model's name.

    Raises:
        TouchstoneError: more than half of the words are unknown.
    """
    unk = getattr(tokenizer, "unk_token_id", None)
    unknown = []
    for words, one in zip(sentences, encoded, strict=True):
        pairs = zip(one.word_ids, one.ids, strict=True)
        # A word counts once, however many of its tokens are unknown.
        at = {word for word, token in pairs if word is not None and token == unk}
        unknown += [words[i] for i in sorted(at)]
    n_words = sum(map(len, sentences))
    if not unknown:
        return ""
    few = ", ".join(repr(word) for word in list(dict.fromkeys(unknown))[:3])
    about = f"{source}: its tokenizer does not know {len(unknown)} of the {n_words} words"
    if 2 * len(unknown) > n_words:
        raise TouchstoneError(
            f"{about} ({len(unknown) / n_words:.0%}: {few}), so the model reads the same for all "
            "of these; take a model of the texts' language, with the tokenizer it was trained with"
        )
    return f"{about} ({few}); it cannot tell these from one another"


def lengths_of(encoded: Sequence[Encoded]) -> list[int]:
    """The number of tokens of each sentence."""
    return [len(row.ids) for row in encoded]


def pad(
    encoded: Sequence[Encoded],
    pad_id: int,
    length: int | None = None,
    device: torch.device | str = "cpu",
) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch token"]]:
    """Ids and mask of a batch, filled up on the right to its longest row (or to `length`).

    >>> ids, mask = pad([Encoded([5, 6], [0, 1]), Encoded([7], [0])], pad_id=0)
    >>> ids.tolist(), mask.tolist()
    ([[5, 6], [7, 0]], [[1, 1], [1, 0]])
    """
    lengths = torch.tensor(lengths_of(encoded))
    is_token = torch.arange(max(*lengths.tolist(), length or 0)) < lengths[:, None]
    ids = torch.full(is_token.shape, pad_id, dtype=torch.long)
    ids[is_token] = torch.tensor([i for row in encoded for i in row.ids], dtype=torch.long)
    return to_device(ids, device), to_device(is_token.long(), device)


def length_buckets(
    lengths: Sequence[int],
    n_rows: int | None = None,
    n_tokens: int | None = None,
    exact: bool | None = None,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Indices in batches of rows of similar length, the short ones first.

    >>> length_buckets([3, 5, 3, 3], n_rows=2)
    [[0, 2], [3], [1]]
    >>> length_buckets([3, 5, 3, 3], n_tokens=10)
    [[0, 2, 3], [1]]

    Args:
        n_rows: the most rows of a batch.
        n_tokens: the most tokens of a batch, counted with padding (a longer row stands alone).
        exact: whether the rows of a batch are equally long, so that it holds no padding; without
            a word that is so where the number of tokens is free.
        generator: draws the order of rows of one length and the order of the batches.
    """
    exact = n_tokens is None if exact is None else exact
    draws = [0.0] * len(lengths)  # equal draws: rows of one length stay in their order
    if generator is not None:
        draws = torch.rand(len(lengths), generator=generator).tolist()
    buckets: list[list[int]] = []
    # By length, then by the draw: without a generator the sort is stable.
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], draws[i])):
        size = len(buckets[-1]) + 1 if buckets else 0
        if (
            not buckets
            or (n_rows is not None and size > n_rows)
            or (n_tokens is not None and size * lengths[i] > n_tokens)
            or (exact and lengths[i] != lengths[buckets[-1][0]])
        ):
            buckets.append([])
        buckets[-1].append(i)
    if generator is None:
        return buckets
    return [buckets[turn] for turn in torch.randperm(len(buckets), generator=generator).tolist()]


def padded_buckets(
    lengths: Sequence[int], n_tokens: int, padding: float, per_pass: int
) -> list[list[int]]:
    """Indices in the batches that cost least in all, the short ones first.

    >>> padded_buckets([20, 9, 21, 10, 22], n_tokens=100, padding=0.1, per_pass=26)
    [[1, 3], [0, 2, 4]]

    Args:
        lengths: tokens by row.
        n_tokens: the most tokens of a batch, counted with padding (a longer row stands alone).
        padding: the most padding of a batch, as a share of its real tokens.
        per_pass: as many tokens as a pass costs beside its tokens.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    # The cheapest way to batch the first n rows: what it costs, and where its last batch begins.
    cost, start = [0.0], [0]
    for end, last in enumerate(order, start=1):
        best, begin, n_real = math.inf, end - 1, 0
        for first in range(end - 1, -1, -1):
            n_real += lengths[order[first]]
            n_padded = (end - first) * lengths[last]
            is_alone = first == end - 1
            if not is_alone and (n_padded > n_tokens or n_padded > (1 + padding) * n_real):
                break  # shorter rows would only add more padding
            if cost[first] + per_pass + n_padded < best:
                best, begin = cost[first] + per_pass + n_padded, first
        cost.append(best)
        start.append(begin)
    buckets, end = list[list[int]](), len(order)
    while end:
        buckets.append(order[start[end] : end])
        end = start[end]
    return buckets[::-1]


def merged_buckets(lengths: Sequence[int], n_tokens: int, per_pass: int) -> list[list[int]]:
    """Indices in batches of one length or of neighbouring ones, whichever costs least in all; the
    short ones first. For many rows it is quick, for it only weighs lengths.

    >>> merged_buckets([20, 9, 21, 10, 22, 400], n_tokens=100, per_pass=26)
    [[1, 3], [0, 2, 4], [5]]

    Args:
        lengths: tokens by row.
        n_tokens: the most tokens of a pass, counted with padding; a larger batch takes several.
        per_pass: as many tokens as a pass costs beside its tokens.
    """
    of_length: dict[int, list[int]] = {}
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        of_length.setdefault(lengths[i], []).append(i)
    groups = list(of_length.items())
    # The cheapest way to batch the first n lengths: what it costs, and where its last batch begins.
    cost, start = [0.0], [0]
    for end, (last, _) in enumerate(groups, start=1):
        best, begin, n_rows = math.inf, end - 1, 0
        for first in range(end - 1, -1, -1):
            n_rows += len(groups[first][1])
            n_passes = math.ceil(n_rows / max(1, n_tokens // max(last, 1)))
            if (here := cost[first] + n_passes * per_pass + n_rows * last) < best:
                best, begin = here, first
        cost.append(best)
        start.append(begin)
    buckets, end = list[list[int]](), len(groups)
    while end:
        buckets.append([i for _, rows in groups[start[end] : end] for i in rows])
        end = start[end]
    return buckets[::-1]


@torch.no_grad()
def in_buckets(
    run: Callable[[Sequence[Encoded]], Float[Tensor, "batch ..."]],
    encoded: Sequence[Encoded],
    n_rows: int = BATCH,
    exact: bool = True,
) -> Float[Tensor, "batch ..."]:
    """A function of a batch over all rows, in batches of similar length; rows in their order."""
    results = torch.empty(0)
    for bucket in length_buckets(lengths_of(encoded), n_rows, exact=exact):
        rows = run([encoded[i] for i in bucket])
        if not len(results):
            # The first batch tells the width and the type.
            results = rows.new_empty(len(encoded), *rows.shape[1:])
        results[bucket] = rows
    return results


def widened(numbers: Tensor) -> Tensor:
    """Numbers of at least 32 bits.

    Those of a model that was saved in bfloat16 or float16 become float32.
    """
    return (
        numbers.float() if numbers.is_floating_point() and numbers.element_size() < 4 else numbers
    )


def exact_type(device: torch.device) -> torch.dtype:
    """The longest numbers of a device: Apple's has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def device_of(module: nn.Module) -> torch.device:
    """The device that a module's parameters lie on."""
    return next(module.parameters()).device


class RunsFromEmbeddings(TextModel):
    """What the kinds of model share.

    A kind adds `logits`, and where it must, its own `encode`, `reference_ids`, `position_read`.
    """

    keeps_typed = False  # does a special token among the words (a mask) stay in the reference?
    pads_alike = False  # are all sentences padded to the longest, whatever their batch?

    @property
    def independent(self) -> bool:
        """Whether each class has its own yes or no (sigmoid), not a share (softmax)."""
        return False

    def position_read(self, mask: Int[Tensor, "batch token"]) -> Int[Tensor, "batch"]:
        """The one token of each row from which the class scores are read.

        Raises:
            TouchstoneError: for a kind of model that reads several, or does not say which.
        """
        raise TouchstoneError(
            f"nobody knows which token {type(self).__name__} reads its answer from; choose another "
            "method"
        )

    def share_read(self, mask: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token"]:
        """The share of each token's output in what the class scores are read from."""
        return torch.nn.functional.one_hot(self.position_read(mask), mask.shape[1]).float()

    def predict(self, sentences: Sequence[Sequence[str]], batch_size: int) -> np.ndarray:
        """Class probabilities, one row a sentence.

        Batches hold no padding, so no row depends on its neighbours.
        """
        return self.probabilities(self.encode(sentences), batch_size)

    def probabilities(self, encoded: Sequence[Encoded], batch_size: int) -> np.ndarray:
        """Class probabilities of sentences that are encoded already."""

        longest = max(lengths_of(encoded)) if self.pads_alike else None

        def scores(batch: Sequence[Encoded]) -> Float[Tensor, "batch class"]:
            device = device_of(self.module)
            ids, mask = pad(batch, self.tokenizer.pad_token_id, longest, device)
            return self.logits(self.embed(ids), mask).cpu()

        logits = in_buckets(scores, encoded, batch_size)
        return (logits.sigmoid() if self.independent else logits.softmax(-1)).numpy()


def special_ids(tokenizer: Any) -> list[int]:
    """The ids that frame a sentence.

    Class, separator, begin, end, mask and padding, but not "unknown word".
    """
    # Not `all_special_ids`: it holds the unknown word, which stands for a word.
    names = ("cls", "sep", "bos", "eos", "mask", "pad")
    ids = {getattr(tokenizer, f"{name}_token_id", None) for name in names}
    return sorted(i for i in ids if i is not None)
