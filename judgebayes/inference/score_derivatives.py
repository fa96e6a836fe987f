r"""Analytic value, gradient and Hessian of a proper score of a softmax of linear functions.

Item i has the class probabilities

.. math:: p_{ik} = \mathrm{softmax}_k(z_{i}), \qquad z_{ik} = \sum_a X_{ika} \theta_a .

Davidson's model and the calibration maps have this form. Automatic differentiation takes the second
derivatives one parameter at a time, in many passes over the items. The analytic form needs one pass,
is about ten times faster, and accounts for most of the time of this project's sweeps.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues, Scalar
from judgebayes.inference.margin import binary_score, symmetric
from judgebayes.inference.optimise import Derivatives, Differentiated, differentiated
from judgebayes.inference.score_arrays import ARRAY_SCORES, array_derivatives
from judgebayes.measures.scores import Score, drps
from judgebayes.models.label_noise import with_label_noise

Items = ItemValues
Column = Mapping[int, Items]
"""The coefficient of a parameter in the logit of each class; classes without it are left out."""

MOST_CLASSES, MOST_PARAMETERS = 6, 12
"""Above these, explicit sums over pairs are slow to compile: products of arrays replace them."""


class Design(NamedTuple):
    """The coefficients X of the linear functions, by parameter and class."""

    columns: Sequence[Column]
    n_classes: int

    def matrix(self) -> Float[Array, "item class parameter"]:
        """Return the coefficients of every item in one array."""
        zero = jnp.zeros_like(next(iter(self.columns[0].values())))
        classes = range(self.n_classes)
        return jnp.stack(
            [jnp.stack([x.get(k, zero) for k in classes], 1) for x in self.columns], -1
        )


class _ItemDerivatives(NamedTuple):
    """The score of every item, and its derivatives in the item's logits."""

    value: Items
    first: list[Items]
    second: list[list[Items]]
    """Second derivatives by class and class, the lower triangle only."""


def score_derivatives(
    score: Score,
    design: Design,
    labels: ItemCodes,
    weight: Items,
    noise: Scalar,
    factor: Scalar = 1.0,
) -> Differentiated:
    r"""Return :math:`\theta \mapsto f \sum_i w_i S(\tilde p_i, y_i)` with two derivatives.

    Noisy labels have the probabilities
    :math:`\tilde p_k = a p_k + b, b = \epsilon / (K - 1), a = 1 - K b`
    (`judgebayes.models.label_noise.with_label_noise`).

    Parameters
    ----------
    score
        DRPS and NLL have written derivatives (`judgebayes.inference.margin` for two classes, and
        `judgebayes.inference.score_arrays` for NLL and for many classes or parameters); other scores are
        differentiated automatically.
    design
        The linear functions.
    labels
        Class indices; items with label -1 or weight 0 are ignored and may hold NaN.
    noise
        The share of wrong labels.
    factor
        The factor f, such as 1 / (the number of items).
    """
    function = _sum_of_scores(score, design, labels, weight, noise)
    return lambda theta: Derivatives(*(factor * each for each in function(theta)))


def _sum_of_scores(
    score: Score, design: Design, labels: ItemCodes, weight: Items, noise: Scalar
) -> Differentiated:
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
        each = jax.vmap(score)(with_label_noise(log_probs, noise), jnp.maximum(labels, 0))
        return jnp.sum(weight * each)

    if score not in ARRAY_SCORES:
        return differentiated(total)
    flip_rate = jnp.asarray(noise, weight.dtype) / (design.n_classes - 1)
    if design.n_classes == 2:
        differences = [column.get(1, zero) - column.get(0, zero) for column in columns]
        return binary_score(score, differences, labels, weight, flip_rate)
    if score is not drps or design.n_classes > MOST_CLASSES or size > MOST_PARAMETERS:
        full = Design(columns, design.n_classes).matrix()
        return partial(array_derivatives, score, full, labels, weight, flip_rate)

    def derivatives(theta: Float[Array, " parameter"]) -> Derivatives:
        return _summed(columns, weight, _drps(_softmax(logits_at(theta)), labels, flip_rate))

    return derivatives


def _summed(columns: Sequence[Column], weight: Items, derivatives: _ItemDerivatives) -> Derivatives:
    """Return the weighted sums over the items, by the chain rule."""
    gradient = [_sum([x * derivatives.first[k] for k, x in column.items()]) for column in columns]
    hessian = [
        _sum(
            [
                x * derivatives.second[max(k, m)][min(k, m)] * y
                for k, x in columns[a].items()
                for m, y in columns[b].items()
            ]
        )
        for a in range(len(columns))
        for b in range(a + 1)
    ]
    totals = jnp.stack([(weight * each).sum() for each in (*gradient, *hessian)])
    return Derivatives(
        (weight * derivatives.value).sum(),
        totals[: len(gradient)],
        symmetric(totals[len(gradient) :], len(gradient)),
    )


def _sum(terms: Sequence[Items]) -> Items:
    return sum(terms[1:], start=terms[0])


def _softmax(logits: Sequence[Items]) -> list[Items]:
    top = logits[0]
    for z in logits[1:]:
        top = jnp.maximum(top, z)
    exponentials = [jnp.exp(z - top) for z in logits]
    total = _sum(exponentials)
    return [x * (1.0 / total) for x in exponentials]


def _drps(p: list[Items], labels: ItemCodes, flip_rate: Array) -> _ItemDerivatives:
    r"""Return the ranked probability score's derivatives.

    With :math:`F_j = \sum_{k \le j} p_k` and the indicator :math:`e_{kj} = 1\{k \le j\}`,
    :math:`\partial F_j / \partial z_k = p_k (e_{kj} - F_j)` and
    :math:`\partial^2 F_j / \partial z_k \partial z_l
    = p_k (\delta_{kl} - p_l)(e_{kj} - F_j) - p_k p_l (e_{lj} - F_j)`.
    """
    classes = range(len(p))
    scale = 1 - len(p) * flip_rate
    value = jnp.zeros_like(p[0])
    first = [jnp.zeros_like(p[0]) for _ in classes]
    second = [[jnp.zeros_like(p[0]) for _ in range(k + 1)] for k in classes]
    below = jnp.zeros_like(p[0])
    for j in classes[:-1]:
        below = below + p[j]
        gap = scale * below + (j + 1) * flip_rate - (labels <= j)
        value = value + gap * gap
        rest = _sum(p[j + 1 :])  # 1 - F_j without its rounding error
        deviation = [rest if k <= j else -below for k in classes]
        gradient = [p[k] * deviation[k] for k in classes]
        for k in classes:
            first[k] = first[k] + 2 * scale * gap * gradient[k]
            for m in range(k + 1):
                hessian = -p[m] * gradient[k] - p[k] * gradient[m]
                if k == m:
                    hessian = hessian + gradient[k]
                second[k][m] = second[k][m] + 2 * scale * (
                    scale * gradient[k] * gradient[m] + gap * hessian
                )
    return _ItemDerivatives(value, first, second)
