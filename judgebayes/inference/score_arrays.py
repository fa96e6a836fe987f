r"""Derivatives of a proper score of a softmax of linear functions, as products of arrays.

They serve NLL of three classes and more, and DRPS with many classes or parameters; for few of them,
`judgebayes.inference.score_derivatives` writes DRPS's sums over pairs out, which is fastest.
The programs of products do not grow with their number. With the coefficients :math:`X_i` (class,
parameter), and the score's gradient :math:`g_i` and Hessian :math:`H_i` in the item's logits,

.. math:: \nabla = \sum_i w_i X_i^T g_i, \qquad \nabla^2 = \sum_i w_i X_i^T H_i X_i .
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues, LogProbs, Scalar
from judgebayes.inference.optimise import Derivatives
from judgebayes.measures.scores import Score, drps, nll

Labels = ItemCodes


class _Scored(NamedTuple):
    """The score of every item, with its derivatives in the item's logits."""

    value: ItemValues
    first: LogProbs
    second: Float[Array, "item class class"]


def array_derivatives(
    score: Score,
    design: Float[Array, "item class parameter"],
    labels: Labels,
    weight: ItemValues,
    flip_rate: Scalar,
    theta: Float[Array, " parameter"],
) -> Derivatives:
    """Return the weighted sum of the scores, its gradient and its Hessian.

    `flip_rate` is the share of the labels that are another given class. Items of weight 0 must be
    finite.
    """
    value, first, second = ARRAY_SCORES[score](design @ theta, jnp.maximum(labels, 0), flip_rate)
    own = weight[:, None, None] * design
    flat = design.reshape(-1, design.shape[-1])
    return Derivatives(
        (weight * value).sum(),
        jnp.einsum("ika,ik->a", own, first),
        (second @ own).reshape(flat.shape).T @ flat,
    )


def _drps(logits: LogProbs, labels: Labels, flip_rate: Scalar) -> _Scored:
    r"""Return the ranked probability score.

    With :math:`F_j = \sum_{k \le j} p_k`, the distance :math:`d_j` of the observed label's from its
    indicator, the share a of labels that are not noise, :math:`G_{kj} = p_k (1\{k \le j\} - F_j)` and
    :math:`h = G d`: the gradient is :math:`2 a h` and the Hessian
    :math:`2 a (a G G^T + \mathrm{diag}(h) - h p^T - p h^T)`.
    """
    n_classes = logits.shape[1]
    p = jax.nn.softmax(logits)
    scale, place = 1 - n_classes * flip_rate, jnp.arange(n_classes)
    ends = place[:-1]
    inside = place[:, None] <= ends  # class, threshold
    below, above = p @ inside, p @ ~inside  # each without the rounding error of 1 minus the other
    distance = scale * below + (ends + 1) * flip_rate - (labels[:, None] <= ends)
    slope = p[:, :, None] * jnp.where(inside, above[:, None], -below[:, None])
    pull = (slope @ distance[..., None])[..., 0]
    cross = pull[:, :, None] * p[:, None]
    curved = scale * slope @ jnp.swapaxes(slope, 1, 2) + pull[:, :, None] * jnp.eye(n_classes)
    return _Scored(
        (distance**2).sum(1),
        2 * scale * pull,
        2 * scale * (curved - cross - jnp.swapaxes(cross, 1, 2)),
    )


def _nll(logits: LogProbs, labels: Labels, flip_rate: Scalar) -> _Scored:
    r"""Return the negative log-likelihood.

    With the share s of the observed label's probability that is not noise and :math:`d = e_y - p`, the
    gradient is :math:`-s d` and the Hessian :math:`s (\mathrm{diag}(p) - p p^T) - s (1 - s) d d^T`.
    """
    n_classes = logits.shape[1]
    log_p = jax.nn.log_softmax(logits)
    p, member = jnp.exp(log_p), labels[:, None] == jnp.arange(n_classes)
    right = jnp.take_along_axis(log_p, labels[:, None], 1)[:, 0] + jnp.log1p(-n_classes * flip_rate)
    log_prob = jnp.logaddexp(right, jnp.log(flip_rate))
    share = jnp.exp(right - log_prob)[:, None]
    off = member - p
    spread = p[:, :, None] * (jnp.eye(n_classes) - p[:, None])
    noise = (share * (1 - share))[..., None] * off[:, :, None] * off[:, None]
    return _Scored(-log_prob, -share * off, share[..., None] * spread - noise)


ARRAY_SCORES: dict[Score, Callable[[LogProbs, Labels, Scalar], _Scored]] = {
    drps: _drps,
    nll: _nll,
}
"""The scores with written derivatives."""
