r"""The oracle of `audit-worlds`: the interval of one who is told the law of the judges.

It is told each judge's mean true positive and true negative rate (for weak judges as functions of the
generator's quality g, since their impressions follow it), the spreads of shifts between generators, and
how votes on the same item are correlated. It sees the shares P of an unlabelled generator's items that
the judges accept, and knows nothing else of its quality. Given g, the shares and the share
:math:`\pi` of valid items are about jointly normal:

.. math:: E[\pi] = g, \quad E[P] = m = g t + (1 - g) f, \quad
          \mathrm{Var}(\pi) = g (1 - g) / N, \quad \mathrm{Cov}(\pi, P_j) = g (1 - g) (t_j - f_j) / N

.. math:: \mathrm{Cov}(P) = S + [g W^+ + (1 - g) W^- + g (1 - g) (t - f) (t - f)^\top] / N

with S the covariance of the shifts and W the covariance of votes on items of one label; on the
diagonal, N is the number of votes of the judge. The posterior of g on a grid, uniform beforehand, and
that of :math:`\pi` given g and P give the interval: its quantiles are those of a mixture of normals.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, logsumexp, ndtr

from judgebayes.experiments.beyond_consensus.worlds import DIFFICULTY, FLATTER, Judges

QUALITIES = np.linspace(0.3, 0.995, 140)
JITTER = 1e-9
"""Added to variances, since copied judges have the same share."""
BISECTIONS = 40


class Law(NamedTuple):
    """Moments of the votes at each quality of the grid: on valid items and on invalid ones."""

    mean: Float[np.ndarray, "2 quality judge"]
    within: Float[np.ndarray, "2 quality judge judge"]
    """Covariance of votes on an item, given the generator's shifts."""
    between: Float[np.ndarray, "2 2 quality judge judge"]
    """Covariance of rates over the shifts of generators, also between the two labels."""


def _normal(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the standard normal's quadrature."""
    nodes, weights = hermegauss(points)
    return nodes, weights / weights.sum()


def law(panel: Judges) -> Law:
    """Return the moments of a panel's votes, by Gauss-Hermite quadrature."""
    setting = panel.setting
    (z, z_weight), (c, c_weight) = _normal(9), _normal(5 if setting.cell_spread else 1)
    s, s_weight = _normal(5 if any(setting.common_spread) else 1)
    shift = np.stack(np.meshgrid(s, s, indexing="ij")).reshape(2, -1)
    w_weight = np.outer(s_weight, s_weight).ravel()
    shift = shift * np.array(setting.common_spread)[:, None]
    shape = (2, len(QUALITIES), shift.shape[1])
    at = panel.logits(
        np.broadcast_to(QUALITIES[:, None], shape[1:]), np.broadcast_to(shift[:, None], shape)
    )
    at = at[..., None, :] + setting.cell_spread * c[:, None]  # label quality shift cell judge
    vote = expit(FLATTER * at[..., None, :, :] + DIFFICULTY * z[:, None, None])
    by_item = np.einsum("lqwzcj,c->lqwzj", vote, c_weight)
    rate = np.einsum("lqwzcj,z->lqwcj", vote, z_weight)
    mean = np.einsum("lqwcj,w,c->lqj", rate, w_weight, c_weight)
    by_shift = np.einsum("lqwcj,c->lqwj", rate, c_weight) - mean[:, :, None]
    moved = by_shift * np.sqrt(w_weight)[:, None]
    between = moved.swapaxes(-1, -2)[:, None] @ moved
    each = by_item * np.sqrt(w_weight[:, None] * z_weight)[..., None]
    each = each.reshape(2, len(QUALITIES), -1, by_item.shape[-1])
    product = each.swapaxes(-1, -2) @ each
    label = np.arange(2)
    within = product - mean[..., :, None] * mean[..., None, :] - between[label, label]
    # A judge's own rates, and those of its copies, share the shifts by cell and the vote itself.
    own = np.einsum("lqwcj,w,c->lqj", (rate - mean[:, :, None, None]) ** 2, w_weight, c_weight)
    voices = panel.voices
    same = voices[:, None] == voices
    mean, own = mean[..., voices], own[..., voices]
    within, between = (x[..., voices, :][..., voices] for x in (within, between))
    within = np.where(same, (mean * (1 - mean) - own)[..., None, :], within)
    between = between.copy()
    between[label, label] = np.where(same, own[..., None, :], between[label, label])
    return Law(mean, within, between)


def interval(
    shares: Float[np.ndarray, "generator judge"],
    judged: Float[np.ndarray, "generator judge"],
    items: int,
    known: Law,
    level: float = 0.9,
) -> tuple[Float[np.ndarray, " generator"], Float[np.ndarray, " generator"]]:
    """Return the oracle's interval of the share of valid items of each generator.

    Parameters
    ----------
    shares
        The share of a generator's items that each judge accepts.
    judged
        How many of them the judge votes on.
    items
        The number of items of a generator.
    known
        What the oracle is told, from `law`.
    """
    g = QUALITIES[:, None]
    gap = known.mean[0] - known.mean[1]
    mean = g * known.mean[0] + (1 - g) * known.mean[1]
    g = g[..., None]
    (on_valid, mixed), (_, on_invalid) = known.between
    spread = g**2 * on_valid + (1 - g) ** 2 * on_invalid
    spread = spread + g * (1 - g) * (mixed + mixed.swapaxes(-1, -2))
    sampling = g * known.within[0] + (1 - g) * known.within[1]
    sampling = sampling + g * (1 - g) * gap[:, :, None] * gap[:, None]
    diagonal = np.eye(shares.shape[1], dtype=bool)
    one = np.where(diagonal, 1 / judged[:, None, None, :], 1 / items)
    covariance = spread + sampling * one + JITTER * diagonal  # generator quality judge judge
    valid = QUALITIES * (1 - QUALITIES) / items
    with_valid = valid[:, None] * gap
    error = shares[:, None] - mean
    solved = np.linalg.solve(covariance, error[..., None])[..., 0]
    regression = np.linalg.solve(covariance, np.broadcast_to(with_valid, error.shape)[..., None])
    log_weight = -0.5 * ((error * solved).sum(-1) + np.linalg.slogdet(covariance)[1])
    weight = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    centre = QUALITIES + (with_valid * solved).sum(-1)
    deviation = np.sqrt(np.maximum(valid - (with_valid * regression[..., 0]).sum(-1), 1e-12))

    def quantile(at: float) -> np.ndarray:
        low, high = np.zeros(len(shares)), np.ones(len(shares))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            below = (weight * ndtr((middle[:, None] - centre) / deviation)).sum(1) < at
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    return quantile((1 - level) / 2), quantile((1 + level) / 2)
