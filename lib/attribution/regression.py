"""The regressions behind LIME and Kernel SHAP, in closed form, for many rows at once.

Both methods draw coalitions (who is present), score them, and fit a weighted linear model to the
scores.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..core.errors import TouchstoneError

_GROUPS = 8  # of the draws, for the jackknife
_FIRST = 128  # draws before the first look at the error; each look comes after twice as many
_A_PLAYER = 4  # draws a player before a row is done: with fewer the groups can agree by chance
_RANK = 1e-12  # relative eigenvalues below this count as zero, as in a pseudo-inverse
_Masks = Bool[Tensor, "batch step token"]


def weighted_ridge(
    masks: _Masks,
    values: Float[Tensor, "batch step"],
    weights: Float[Tensor, "batch step"],
    penalty: float,
) -> Float[Tensor, "batch token"]:
    """Coefficients of a weighted ridge regression with a free intercept.

    At penalty 0 of least norm. In float64, by the normal equations of the centred problem. A player
    who is present in every mask gets 0.
    """
    # The score is one more column, so that one product gives the matrix and the right side.
    data = torch.cat([masks.double(), values.double()[..., None]], -1)  # (batch, steps, tokens + 1)
    weighted = data * weights.double()[..., None]
    total = weights.double().sum(-1)[..., None, None]
    first, second = weighted.sum(-2), weighted.transpose(-1, -2) @ data
    # Centring takes the free intercept out of the problem: (batch, tokens + 1, tokens + 1).
    centred = second - first[..., :, None] * first[..., None, :] / total
    matrix, right = centred[..., :-1, :-1], centred[..., :-1, -1:]
    if penalty > 0:
        eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        return torch.linalg.solve(matrix + penalty * eye, right)[..., 0]
    # Fewer draws than players leave the matrix singular; `lstsq` on a GPU takes full rank only.
    sizes, vectors = torch.linalg.eigh(matrix)
    # Ascending order: the last eigenvalue is the largest.
    real = sizes > _RANK * sizes[..., -1:].clamp(min=1)
    inverse = torch.where(real, 1 / torch.where(real, sizes, 1), 0)
    return (vectors @ (inverse[..., None] * (vectors.transpose(-1, -2) @ right)))[..., 0]


def fit_all(
    masks: _Masks,
    weights: Float[Tensor, "batch step"],
    worth: Callable[[Tensor, int, int], Tensor],
    penalty: float,
    tolerance: float | None,
    anchors: int = 0,
) -> tuple[Float[Tensor, "batch token"], Float[Tensor, "batch"], Float[Tensor, "batch"]]:
    """The fit to scored coalitions: coefficients, and per row the draws used and the error.

    To all draws, or with a `tolerance` to as many as each row needs. `worth(rows, start, stop)`
    returns the scores of draws start to stop of chosen rows. A row is done when the jackknife error
    of its shares (score by sum of sizes), largest over the players, is at most `tolerance`, and it
    has four draws a player. The first `anchors` draws belong to every group of the jackknife; the
    others are taken two by two, so that no group divides a pair (see `in_pairs`).
    """
    if tolerance is not None and not 0 < tolerance < 1:
        raise TouchstoneError(
            f"the tolerance is {tolerance}; give the largest error of a share, between 0 and 1"
        )
    n_rows, n, _ = masks.shape
    values = torch.zeros(n_rows, n, dtype=torch.float64, device=masks.device)
    scores = torch.zeros(n_rows, masks.shape[2], dtype=torch.float64, device=masks.device)
    samples = torch.zeros(n_rows, device=masks.device)
    error = torch.ones(n_rows, device=masks.device)
    least = _A_PLAYER * (~masks.all(1)).sum(1)  # (batch,): who is always present is no player
    active, start = torch.arange(n_rows, device=masks.device), 0
    while len(active):
        # Doubling: the fits together cost at most twice the last one.
        stop = n if tolerance is None else min(n, max(_FIRST, 2 * start))
        values[active, start:stop] = worth(active, start, stop).double()
        fit = masks[active, :stop], values[active, :stop], weights[active, :stop]
        scores[active], samples[active] = weighted_ridge(*fit, penalty), float(stop)
        if tolerance is None:
            break
        error[active] = jackknife_error(*fit, penalty, anchors).to(error)
        is_done = (error[active] <= tolerance) & (least[active] <= stop)
        active = active[~is_done] if stop < n else active[:0]
        start = stop
    return scores, samples, error


def jackknife_error(
    masks: _Masks,
    values: Float[Tensor, "batch step"],
    weights: Float[Tensor, "batch step"],
    penalty: float,
    anchors: int = 0,
) -> Float[Tensor, "batch"]:
    """The standard error of the shares, largest over the players, by a jackknife of eighths.

    Delete-a-group jackknife: sqrt((G - 1) / G * sum over groups (share without the group - their
    mean)^2). The penalty is scaled down with the draws, or leaving some out would shrink all
    coefficients. A group has both draws of a pair.
    """
    group = (torch.arange(masks.shape[1], device=masks.device) - anchors) // 2 % _GROUPS
    # Left out, they would leave the regression without its fixed ends.
    group[:anchors] = -1
    without = []
    for left_out in range(_GROUPS):
        rest = group != left_out
        part = penalty * float(rest.double().mean())
        scores = weighted_ridge(masks[:, rest], values[:, rest], weights[:, rest], part)
        without.append(scores / scores.abs().sum(-1, keepdim=True).clamp(min=1e-300))
    shares = torch.stack(without)  # (groups, batch, tokens)
    spread = (shares - shares.mean(0)).pow(2).sum(0) * (_GROUPS - 1) / _GROUPS
    return spread.sqrt().amax(-1)


def in_pairs(
    masks: Bool[Tensor, "step token"], players: Bool[Tensor, "token"], anchors: int
) -> Bool[Tensor, "step token"]:
    """Draws with every second one replaced by the opposite of the one before it.

    What two opposite coalitions have in common says nothing about a single player. It cancels where
    both weigh the same, as in Kernel SHAP, and in part where they do not, as in LIME; so fewer
    draws are enough (Covert & Lee 2021). The first `anchors` draws stay, and so do columns that are
    no players. A draw without any player is repeated, for its opposite is an anchor.

    >>> in_pairs(torch.tensor([[1, 1], [1, 0], [1, 1]]) == 1, torch.ones(2) == 1, 1).int().tolist()
    [[1, 1], [1, 0], [0, 1]]
    """
    first, second = masks[anchors::2], masks[anchors + 1 :: 2]
    first = first[: len(second)]
    is_empty = ~(first & players).any(-1, keepdim=True)
    paired = masks.clone()
    paired[anchors + 1 :: 2] = torch.where(is_empty, first, ~first | ~players)
    return paired


def all_masks(n_players: int) -> Bool[Tensor, "step token"]:
    """Every coalition of n players, the empty one first.

    >>> all_masks(2).int().tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    numbers = torch.arange(2**n_players)
    return (numbers[:, None] >> torch.arange(n_players)) & 1 == 1


def shapley_values(
    worths: Float[Tensor, "step"], masks: Bool[Tensor, "step token"]
) -> Float[Tensor, "token"]:
    """Exact Shapley values (Shapley 1953, eq. 12) from the worth of every coalition.

    >>> shapley_values(torch.tensor([0.0, 1.0, 2.0, 5.0]), all_masks(2)).tolist()
    [2.0, 3.0]

    Args:
        worths: in the order of `masks`.
        masks: every coalition, as `all_masks` gives them.
    """
    d = masks.shape[1]
    if d == 0:
        return worths.new_zeros(0).double()
    size = masks.sum(1)
    # Logarithms: quotients of factorials without the factorials.
    log_fact = torch.lgamma(torch.arange(d + 1, dtype=torch.float64, device=masks.device) + 1)
    # (s - 1)! (d - s)! / d! for a present player, s! (d - s - 1)! / d! for an absent one.
    with_player = torch.exp(log_fact[(size - 1).clamp(min=0)] + log_fact[d - size] - log_fact[d])
    without = torch.exp(log_fact[size] + log_fact[(d - size - 1).clamp(min=0)] - log_fact[d])
    weight = torch.where(masks, with_player[:, None], -without[:, None])
    return (weight * worths.double()[:, None]).sum(0)
