r"""Value, gradient and Hessian of a proper score of a softmax of linear functions, by hand.

Item i has the class probabilities

.. math:: p_{ik} = \mathrm{softmax}_k(z_{i}), \qquad z_{ik} = \sum_a X_{ika} \theta_a .

Davidson's model and the calibration maps are of this form. Automatic differentiation takes the
second derivatives one parameter at a time and in many passes over the items; written out they are
one pass, some ten times cheaper, and the sweeps of this project consist of little else.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.inference.margin import over_margins, symmetric
from judgebayes.inference.optimise import Derivatives, Differentiated, differentiated
from judgebayes.measures.scores import Score, drps, nll
from judgebayes.models.label_noise import log_seen

__all__ = ["Column", "Design", "scaled", "score_derivatives"]

Items = Float[Array, " item"]
Column = Mapping[int, Items]
"""What a parameter is multiplied with in the logit of each class; classes without it left out."""

MOST_CLASSES, MOST_PARAMETERS = 6, 12
"""Above these the written-out sums over pairs grow long, and slow to compile."""


class Design(NamedTuple):
    """The linear functions: X by parameter and class."""

    columns: Sequence[Column]
    n_classes: int


class _Slopes(NamedTuple):
    """The score of every item, and its derivatives in the item's logits."""

    value: Items
    first: list[Items]
    second: list[list[Items]]
    """Second derivatives by class and class, the lower triangle only."""


def score_derivatives(
    score: Score, design: Design, labels: Int[Array, " item"], weight: Items, noise: Scalar
) -> Differentiated:
    r"""Return :math:`\theta \mapsto \sum_i w_i S(\tilde p_i, y_i)` with two derivatives.

    Labels of which a share is wrong have the probabilities
    :math:`\tilde p_k = a p_k + b, b = \epsilon / (K - 1), a = 1 - K b`
    (`judgebayes.models.label_noise.log_seen`).

    Parameters
    ----------
    score
        DRPS and NLL are written out; other scores, and designs of many classes or parameters, are
        differentiated automatically.
    design
        The linear functions.
    labels
        Class indices; -1 counts for nothing, and so does a weight of 0: such items may hold NaN.
    noise
        The share of wrong labels.
    """
    used = (labels >= 0) & (weight > 0)
    weight = jnp.where(used, weight, 0.0)
    columns = [{k: jnp.where(used, x, 0.0) for k, x in column.items()} for column in design.columns]
    size, zero = len(columns), jnp.zeros_like(weight)

    def logits_at(theta: Float[Array, " parameter"]) -> list[Items]:
        logits = [zero] * design.n_classes
        for a, column in enumerate(columns):
            for k, x in column.items():
                logits[k] = logits[k] + x * theta[a]
        return logits

    def total(theta: Float[Array, " parameter"]) -> Float[Array, ""]:
        log_probs = jax.nn.log_softmax(jnp.stack(logits_at(theta), axis=1))
        each = jax.vmap(score)(log_seen(log_probs, noise), jnp.maximum(labels, 0))
        return jnp.sum(weight * each)

    if score not in _SLOPES or design.n_classes > MOST_CLASSES or size > MOST_PARAMETERS:
        return differentiated(total)
    slip = jnp.asarray(noise, weight.dtype) / (design.n_classes - 1)
    if design.n_classes == 2:
        gains = [column.get(1, zero) - column.get(0, zero) for column in columns]
        return over_margins(score, gains, labels, weight, slip)

    def with_slip(slip: Array | None, theta: Float[Array, " parameter"]) -> Derivatives:
        return _summed(columns, weight, _SLOPES[score](_softmax(logits_at(theta)), labels, slip))

    if score is drps:  # polynomials: right labels are no cheaper
        return partial(with_slip, slip)
    return lambda theta: jax.lax.cond(
        slip == 0, partial(with_slip, None), partial(with_slip, slip), theta
    )


def _summed(columns: Sequence[Column], weight: Items, found: _Slopes) -> Derivatives:
    """Return the sums over the items, by the chain rule."""
    slopes = [_sum([x * found.first[k] for k, x in column.items()]) for column in columns]
    bends = [
        _sum(
            [
                x * found.second[max(k, m)][min(k, m)] * y
                for k, x in columns[a].items()
                for m, y in columns[b].items()
            ]
        )
        for a in range(len(columns))
        for b in range(a + 1)
    ]
    totals = jnp.stack([(weight * each).sum() for each in (*slopes, *bends)])
    return Derivatives(
        (weight * found.value).sum(),
        totals[: len(slopes)],
        symmetric(totals[len(slopes) :], len(slopes)),
    )


def scaled(function: Differentiated, factor: Float[Array, ""]) -> Differentiated:
    """Return a multiple of a function."""
    return lambda x: Derivatives(*(factor * each for each in function(x)))


def _sum(terms: Sequence[Items]) -> Items:
    return sum(terms[1:], start=terms[0])


class _Forecast(NamedTuple):
    """Probabilities of the classes, and the normaliser for those too small for a float."""

    p: list[Items]
    logits: Sequence[Items]
    log_norm: Items


def _softmax(logits: Sequence[Items]) -> _Forecast:
    top = logits[0]
    for z in logits[1:]:
        top = jnp.maximum(top, z)
    raised = [jnp.exp(z - top) for z in logits]
    total = _sum(raised)
    return _Forecast([x * (1.0 / total) for x in raised], logits, top + jnp.log(total))


def _drps(forecast: _Forecast, labels: Int[Array, " item"], slip: Array | None) -> _Slopes:
    r"""Return the ranked probability score's derivatives.

    With :math:`F_j = \sum_{k \le j} p_k` and the indicator :math:`e_{kj} = 1\{k \le j\}`,
    :math:`\partial F_j / \partial z_k = p_k (e_{kj} - F_j)` and
    :math:`\partial^2 F_j / \partial z_k \partial z_l
    = p_k (\delta_{kl} - p_l)(e_{kj} - F_j) - p_k p_l (e_{lj} - F_j)`.
    """
    p = forecast.p
    classes = range(len(p))
    slip = jnp.zeros(()) if slip is None else slip
    scale = 1 - len(p) * slip
    value = jnp.zeros_like(p[0])
    first = [jnp.zeros_like(p[0]) for _ in classes]
    second = [[jnp.zeros_like(p[0]) for _ in range(k + 1)] for k in classes]
    below = jnp.zeros_like(p[0])
    for j in classes[:-1]:
        below = below + p[j]
        gap = scale * below + (j + 1) * slip - (labels <= j)
        value = value + gap * gap
        rest = _sum(p[j + 1 :])  # 1 - F_j without its rounding error
        away = [rest if k <= j else -below for k in classes]
        slope = [p[k] * away[k] for k in classes]
        for k in classes:
            first[k] = first[k] + 2 * scale * gap * slope[k]
            for m in range(k + 1):
                bend = -p[m] * slope[k] - p[k] * slope[m]
                if k == m:
                    bend = bend + slope[k]
                second[k][m] = second[k][m] + 2 * scale * (scale * slope[k] * slope[m] + gap * bend)
    return _Slopes(value, first, second)


def _nll(forecast: _Forecast, labels: Int[Array, " item"], slip: Array | None) -> _Slopes:
    r"""Return the negative log-likelihood's derivatives.

    With :math:`s = a p_y / (a p_y + b)`, which is 1 without noise, and
    :math:`d_k = 1\{k = y\} - p_k`: the gradient is :math:`-s d_k` and the Hessian
    :math:`s p_k (\delta_{kl} - p_l) - s (1 - s) d_k d_l`.
    """
    p = forecast.p
    classes = range(len(p))
    own = forecast.logits[0]
    for k in classes[1:]:
        own = jnp.where(labels == k, forecast.logits[k], own)
    right = own - forecast.log_norm
    away = [(labels == k) - p[k] for k in classes]
    first = [-d for d in away]
    second = [[p[k] * ((1.0 if k == m else 0.0) - p[m]) for m in range(k + 1)] for k in classes]
    if slip is None:
        return _Slopes(-right, first, second)
    right = right + jnp.log1p(-len(p) * slip)
    seen = jnp.logaddexp(right, jnp.log(slip))
    share = jnp.exp(right - seen)
    return _Slopes(
        -seen,
        [share * x for x in first],
        [
            [share * second[k][m] - share * (1 - share) * away[k] * away[m] for m in range(k + 1)]
            for k in classes
        ],
    )


_SLOPES = {drps: _drps, nll: _nll}
