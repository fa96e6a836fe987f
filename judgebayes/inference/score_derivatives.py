r"""Analytic value, gradient and Hessian of a proper score of a softmax of linear functions.

Item i has the class probabilities

.. math:: p_{ik} = \mathrm{softmax}_k(z_{i}), \qquad z_{ik} = \sum_a X_{ika} \theta_a .

Davidson's model and the calibration maps have this form. Automatic differentiation takes the second
derivatives one parameter at a time, in many passes over the items; the analytic form needs one pass.

DRPS of few classes and parameters has it, as in Davidson's sweeps.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues, Scalar
from judgebayes.inference.optimise import Derivatives, Differentiated, differentiated
from judgebayes.measures.scores import Score, drps


def symmetric(below: Float[Array, " pair"], size: int) -> Float[Array, "parameter parameter"]:
    """Return the symmetric matrix with this lower triangle, given row by row."""
    lower = np.tril_indices(size)
    place = np.empty((size, size), int)
    place[lower] = place[lower[::-1]] = np.arange(len(lower[0]))
    # No indexed update: under `vmap` that would be a scatter.
    return jnp.stack([below[k] for k in place.ravel().tolist()]).reshape(size, size)


Curve = tuple[ItemValues, list[ItemValues], list[list[ItemValues]]]
"""The score of every item, its gradient in the logits, and the lower triangle of its Hessian."""

Column = Mapping[int, ItemValues]
"""The coefficient of a parameter in the logit of each class; classes without it are left out."""

MOST_CLASSES, MOST_PARAMETERS = 6, 12
"""Above these, explicit sums over pairs are slow to compile."""


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


def score_derivatives(
    score: Score,
    design: Design,
    labels: ItemCodes,
    weight: ItemValues,
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
        DRPS of a few classes has written derivatives; other scores are differentiated automatically.
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
    return lambda theta: jax.tree.map(lambda each: factor * each, function(theta))


def _sum_of_scores(
    score: Score, design: Design, labels: ItemCodes, weight: ItemValues, noise: Scalar
) -> Differentiated:
    used = (labels >= 0) & (weight > 0)
    weight = jnp.where(used, weight, 0.0)
    columns = [{k: jnp.where(used, x, 0.0) for k, x in column.items()} for column in design.columns]
    size, zero = len(columns), jnp.zeros_like(weight)

    flip_rate = jnp.asarray(noise, weight.dtype) / (design.n_classes - 1)
    if score is not drps or design.n_classes > MOST_CLASSES or size > MOST_PARAMETERS:
        matrix, known = Design(columns, design.n_classes).matrix(), jnp.maximum(labels, 0)
        right = jnp.log1p(-design.n_classes * flip_rate)

        def total(theta: Float[Array, " parameter"]) -> Float[Array, ""]:
            # As `with_label_noise`, without a sum over all pairs of classes.
            observed = jnp.logaddexp(jax.nn.log_softmax(matrix @ theta) + right, jnp.log(flip_rate))
            return weight @ jax.vmap(score)(observed, known)

        return differentiated(total)

    def derivatives(theta: Float[Array, " parameter"]) -> Derivatives:
        logits = [zero] * design.n_classes
        for a, column in enumerate(columns):
            for k, x in column.items():
                logits[k] = logits[k] + x * theta[a]
        value, first, second = _drps(logits, labels, flip_rate)
        gradient = [_sum([x * first[k] for k, x in column.items()]) for column in columns]
        hessian = [
            _sum(
                [
                    x * second[max(k, m)][min(k, m)] * y
                    for k, x in columns[a].items()
                    for m, y in columns[b].items()
                ]
            )
            for a in range(size)
            for b in range(a + 1)
        ]
        totals = jnp.stack([(weight * each).sum() for each in (*gradient, *hessian)])
        return (weight * value).sum(), totals[:size], symmetric(totals[size:], size)

    return derivatives


def _sum(terms: Sequence[ItemValues]) -> ItemValues:
    return sum(terms[1:], start=terms[0])


def _softmax(logits: Sequence[ItemValues]) -> list[ItemValues]:
    """Return the probabilities, by class."""
    top = logits[0]
    for z in logits[1:]:
        top = jnp.maximum(top, z)
    exponentials = [jnp.exp(z - top) for z in logits]
    total = _sum(exponentials)
    return [x * (1.0 / total) for x in exponentials]


def _drps(logits: Sequence[ItemValues], labels: ItemCodes, flip_rate: Array) -> Curve:
    r"""Return the ranked probability score of every item, and its derivatives in the item's logits.

    With :math:`F_j = \sum_{k \le j} p_k` and the indicator :math:`e_{kj} = 1\{k \le j\}`,
    :math:`\partial F_j / \partial z_k = p_k (e_{kj} - F_j)` and
    :math:`\partial^2 F_j / \partial z_k \partial z_l
    = p_k (\delta_{kl} - p_l)(e_{kj} - F_j) - p_k p_l (e_{lj} - F_j)`.
    """
    p = _softmax(logits)
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
    return value, first, second
