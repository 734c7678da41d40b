"""Sentences with words deleted: what becomes of the score of the row's class, by a deletion
operator that is named.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float

from ..attribution.perturbed_texts import Ids, sequence_logits
from ..attribution.regression import all_masks
from ..attribution.seam import class_score
from ..core.errors import TouchstoneError, did_you_mean
from ..models.text_model import TextModel

_DELETIONS = ("pad", "mask", "remove")
Kept = Bool[np.ndarray, "token"]  # which words are left


class DeletedWords:
    """The score of each row's class when only some of its words are left; special tokens and
    prompts always stay.

    Args:
        sentences, targets: the words and the class of each row.
        deletion: "pad" and "mask" replace each piece of a deleted word by the padding or the
            mask token (the length stays, and the model attends to it); "remove" takes the pieces
            out.
        explained: the score: logit, probability, ... (`lib.attribution.seam.class_score`).

    Raises:
        TouchstoneError: for an unknown deletion, and for "mask" with a tokenizer that has no
            mask token.
    """

    def __init__(
        self,
        model: TextModel,
        sentences: Sequence[Sequence[str]],
        targets: Sequence[int],
        deletion: str = "remove",
        explained: str = "probability",
    ) -> None:
        if deletion not in _DELETIONS:
            raise TouchstoneError(
                f"there is no deletion {deletion!r}{did_you_mean(deletion, _DELETIONS)}"
            )
        token = {"pad": "pad_token_id", "mask": "mask_token_id"}.get(deletion)
        self._filler = getattr(model.tokenizer, token, None) if token else None
        if token and self._filler is None:
            raise TouchstoneError(
                "the tokenizer of this model has no mask token; delete by pad or by remove"
            )
        self.model, self.explained, self.targets = model, explained, list(targets)
        self.lengths = [len(words) for words in sentences]
        self._encoded = model.encode(sentences)
        self._logits: dict[Ids, torch.Tensor] = {}

    def scores(self, rows: Sequence[int], kept: Sequence[Kept]) -> Float[np.ndarray, "step"]:
        """The score of the row's class for each question: the number of a row, and which of its
        words are left.
        """
        if not len(rows):
            return np.zeros(0)
        asked = [self._ids(row, mask) for row, mask in zip(rows, kept, strict=True)]
        if new := [ids for ids in dict.fromkeys(asked) if ids not in self._logits]:
            self._logits |= dict(zip(new, sequence_logits(self.model, new), strict=True))
        logits = torch.stack([self._logits[ids] for ids in asked])
        targets = [self.targets[row] for row in rows]
        pick = class_score(self.model, targets, self.explained, logits.device)
        return pick.of_logits(logits).double().numpy()

    def _ids(self, row: int, kept: Kept) -> Ids:
        encoded, filler = self._encoded[row], self._filler
        pairs = zip(encoded.ids, encoded.word_ids, strict=True)
        if filler is None:
            return tuple(i for i, word in pairs if word is None or kept[word])
        return tuple(i if word is None or kept[word] else filler for i, word in pairs)


def steps_of(order: Sequence[int]) -> Bool[np.ndarray, "step token"]:
    """Who is left after the first 0, 1, ..., all words of an order were deleted.

    >>> steps_of([1, 0]).astype(int).tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    # The inverse of an order says at which step each word goes.
    return np.argsort(order)[None, :] >= np.arange(len(order) + 1)[:, None]


def aopc(curve: Float[np.ndarray, "step"]) -> float:
    """Area over the perturbation curve: mean fall of the score over the deletions of 1, 2, ...,
    all words.

    Samek et al. 2017, eq. 12, a word at a time, without the step at which nothing is deleted
    yet. `curve`: the scores after 0, 1, ... deletions.

    >>> float(aopc(np.array([1.0, 0.5, 0.0])))
    0.75
    """
    return float(np.mean(curve[0] - curve[1:]))


def aopc_limits(
    deleted: DeletedWords, n_exact: int = 256, n_beam: int = 5
) -> list[tuple[float, float, str]]:
    """The lowest and the highest AOPC of any order of deletion, row by row, and how it was found
    (Edin et al. 2024).

    Returns:
        (lowest, highest, "exact") where a row has at most `n_exact` subsets of words: the best
        way to each of them is kept. Otherwise (lowest, highest, "beam"): the `n_beam` best partial
        orders are kept, so the true limits lie on or outside of those given.
    """
    rows, n_subsets = range(len(deleted.lengths)), [2**d for d in deleted.lengths]
    is_few = [n <= n_exact for n in n_subsets]
    for row in np.flatnonzero(is_few):
        # All subsets in one call, which is faster than one call for each number of words.
        masks = all_masks(deleted.lengths[row]).numpy()
        deleted.scores([row] * len(masks), list(masks))
    whole = deleted.scores(rows, [np.ones(d, bool) for d in deleted.lengths])
    widths = [n if few else n_beam for n, few in zip(n_subsets, is_few, strict=True)]
    lowest, highest = (_best_sums(deleted, widths, sign) for sign in (1, -1))
    return [
        (score - highest[row] / d, score - lowest[row] / d, "exact" if is_few[row] else "beam")
        for row, d, score in zip(rows, deleted.lengths, whole, strict=True)
    ]


def _best_sums(deleted: DeletedWords, widths: Sequence[int], sign: int) -> list[float]:
    """The sum of the scores on each row's way to the empty sentence: the smallest (sign 1) or
    largest (-1) that was found, where so many of the best partial ways are kept.
    """
    states = [{(True,) * d: 0.0} for d in deleted.lengths]
    for _ in range(max(deleted.lengths, default=0)):
        grown: dict[tuple[int, tuple[bool, ...]], float] = {}
        for row, state in enumerate(states):
            for kept, total in state.items():
                for i in np.flatnonzero(kept):
                    key = row, (*kept[:i], False, *kept[i + 1 :])
                    # Two ways to one set: the better one so far is kept.
                    grown[key] = sign * min(sign * total, sign * grown.get(key, total))
        worth = deleted.scores([row for row, _ in grown], [np.array(kept) for _, kept in grown])
        totals: dict[int, dict[tuple[bool, ...], float]] = {}
        for ((row, kept), total), score in zip(grown.items(), worth, strict=True):
            totals.setdefault(row, {})[kept] = total + score
        for row, part in totals.items():
            states[row] = dict(sorted(part.items(), key=lambda item: sign * item[1])[: widths[row]])
    return [state[(False,) * d] for d, state in zip(deleted.lengths, states, strict=True)]
