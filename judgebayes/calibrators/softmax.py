r"""The family of maps with temperature scaling, Platt's map and beta calibration as members.

.. math:: \log q_k = \sigma_k \log p_k + c_k - \log Z

with a slope and an intercept per class; the first class has no intercept. For two classes,

.. math:: \mathrm{logit}\, q = a \log p - b \log(1 - p) + c,
          \qquad a = \sigma_1,\; b = \sigma_0,\; c = c_1,

which is beta calibration (Kull et al. 2017; P2 eq 4); a = b makes it Platt's map on the log-odds
(P2 eq 2), and c = 0 too makes it temperature scaling. For more classes it is vector scaling of the
log-probabilities (Guo et al. 2017), Dirichlet calibration with a diagonal matrix (Kull et al.
2019). The negative log-likelihood is convex in slopes and intercepts, so one start suffices.

The symmetric form ties each class to its mirror image, so that swapping the two responses of a
pair mirrors the result exactly: for two classes a = b and c = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import optimization_barrier
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray, AnyProbs, ItemValues, LogProbs, Scalar
from judgebayes.calibrators.base import CalibrationData, clipped_by_class
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_softmax_by_class
from judgebayes.inference.optimise import Derivatives, Differentiated, minimise_each
from judgebayes.inference.registry import in_files
from judgebayes.inference.score_derivatives import Design, score_derivatives
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.inference.summary import summary
from judgebayes.measures.scores import nll
from judgebayes.models.calibration_maps import Form, members

UNSURE = 0.25
"""The least log-odds for the initial slope, where predictions are no better than chance."""
TINY = 1e-300


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedSoftmax:
    """A fitted map of the family.

    Row 0 of `slopes` and `intercepts` is the constant term, the others belong to the item features
    (Platt's map only): the slope of class k on an item with features x is
    `slopes[0, k] + x @ slopes[1:, k]`, and likewise its intercept.
    """

    slopes: Float[Array, "*batch term class"]
    intercepts: Float[Array, "*batch term class"]
    clip: Scalar
    status: Int[Array, "*batch"]
    objective: Float[Array, "*batch"]
    projected_gradient: Float[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def __call__(
        self, log_probs: AnyProbs, features: Float[AnyArray, "item feature"] | None = None
    ) -> LogProbs:
        """Return the calibrated log-probabilities of each item.

        Raises
        ------
        JudgeBayesError
            If the number of features is not that of the fit.
        """
        terms = with_constant(features, len(log_probs))
        if terms.shape[1] != self.slopes.shape[-2]:
            raise JudgeBayesError(
                f"This map was fitted with {self.slopes.shape[-2] - 1} item feature(s), but "
                f"{terms.shape[1] - 1} were passed."
            )
        return _apply(
            clipped_by_class(jnp.asarray(log_probs, dtype=float), self.clip),
            terms,
            self.slopes,
            self.intercepts,
        )


def with_constant(
    features: Float[AnyArray, "item feature"] | None, n_items: int
) -> Float[Array, "item term"]:
    """Return a column of ones followed by the features.

    Raises
    ------
    JudgeBayesError
        If the features have another number of items.
    """
    constant = jnp.ones((n_items, 1))
    if features is None:
        return constant
    if len(features) != n_items:
        raise JudgeBayesError(
            f"The features have {len(features)} items, but there are {n_items} items."
        )
    return jnp.concatenate([constant, jnp.asarray(features, dtype=float)], axis=1)


def _apply(
    log_probs: Sequence[ItemValues],
    terms: Float[Array, "item term"],
    slopes: Float[Array, "term class"],
    intercepts: Float[Array, "term class"],
) -> LogProbs:
    logits = [
        (terms @ slopes[:, k]) * own + terms @ intercepts[:, k] for k, own in enumerate(log_probs)
    ]
    return jnp.stack(log_softmax_by_class(logits), axis=1)


@partial(jax.jit, static_argnames="form")
def fit_softmax(
    data: CalibrationData,
    terms: Float[Array, "item term"],
    clip: Scalar,
    form: Form,
    penalty: Scalar | None = None,
    l1_share: Scalar = 0.0,
    label_noise: Scalar = 0.0,
) -> FittedSoftmax:
    r"""Return the map with the minimum penalised negative log-likelihood.

    .. math:: -\frac{\sum_i w_i \log q_{y_i}}{\sum_i w_i}
              + \lambda \Bigl(\rho \lVert\delta\rVert_1
              + \frac{1 - \rho}{2} \lVert\delta\rVert_2^2\Bigr)

    with the parameters' distance delta from the identity; with label noise, q is the probability of
    the observed label. The positive and negative parts of the distance are separate variables with the
    lower bound 0: the penalty is then smooth, and the box minimiser returns exact zeros.

    Parameters
    ----------
    data
        The training data.
    terms
        A column of ones, followed by the item features. They act on the intercepts and, in the
        symmetric form, where intercepts would break the symmetry, on the slopes.
    clip
        The least probability.
    form
        The member of the family.
    penalty, l1_share
        lambda and rho; no penalty if None.
    label_noise
        The known share of the labels that are wrong, any other class alike.
    """
    # The barrier keeps compilers from recomputing logarithms and exponentials for each use.
    log_probs = optimization_barrier(clipped_by_class(data.log_probs, clip))
    n_classes, n_terms = len(log_probs), terms.shape[1]
    slope_of, intercept_of = members(form, n_classes)
    slope_terms = n_terms if form.symmetric else 1
    n_slopes = slope_terms * len(slope_of)

    def unpacked(
        theta: Float[Array, " parameter"],
    ) -> tuple[Float[Array, "term class"], Float[Array, "term class"]]:
        slopes = theta[:n_slopes].reshape(slope_terms, -1) @ slope_of
        slopes = jnp.pad(slopes, ((0, n_terms - slope_terms), (0, 0)))
        return slopes, theta[n_slopes:].reshape(n_terms, -1) @ intercept_of

    columns = [
        {k: terms[:, t] * log_probs[k] for k in np.flatnonzero(members).tolist()}
        for t in range(slope_terms)
        for members in slope_of
    ] + [
        dict.fromkeys(np.flatnonzero(members).tolist(), terms[:, t])
        for t in range(n_terms)
        for members in intercept_of
    ]
    design = Design(columns, n_classes)
    total = data.weight.sum()
    share = jnp.where(total > 0, 1 / total, 0.0)
    loss = score_derivatives(nll, design, data.labels, data.weight, label_noise, factor=share)

    size = n_slopes + n_terms * len(intercept_of)
    identity = (jnp.arange(size) < len(slope_of)).astype(float)  # slopes of the constant term
    lower = jnp.where(identity > 0, 0.0, -jnp.inf) if form.monotone else None
    # Where predictions are far too confident, the likelihood is nearly linear at the identity and
    # Newton's steps fail, so start at a matching slope. The loss is convex: the minimum is the same.
    start = initial_slope(log_probs, data) * identity
    if penalty is None:
        ends = minimise_each(loss, start[None], lower)
        theta = ends.x[0]
    else:
        infinite = jnp.full(size, jnp.inf)
        ends = minimise_each(
            _penalised(loss, identity, penalty * l1_share, penalty * (1 - l1_share)),
            jnp.concatenate([jnp.zeros(size), identity - start])[None],
            jnp.zeros(2 * size),
            jnp.concatenate([infinite, infinite if lower is None else identity - lower]),
        )
        theta = identity + ends.x[0, :size] - ends.x[0, size:]
    solution = jax.tree.map(lambda a: a[0], ends)
    slopes, intercepts = unpacked(theta)
    return FittedSoftmax(
        slopes=slopes,
        intercepts=intercepts,
        clip=clip,
        status=worst(solution.status, degenerate_status(data.labels, data.weight, n_classes, size)),
        objective=solution.value,
        projected_gradient=solution.projected_gradient,
    )


def initial_slope(log_probs: Sequence[ItemValues], data: CalibrationData) -> Float[Array, ""]:
    """Return the slope, at most 1, at which the mean confidence matches the accuracy.

    They match if the mean difference between the logits of the best and the worst class is the
    log-odds of a right prediction; if all predictions are equally confident, this slope is optimal.
    """
    n_classes, total = len(log_probs), data.weight.sum()
    each = jnp.stack(log_probs)
    best = each.max(0)
    difference = optimization_barrier(data.weight * (best - each.min(0))).sum()
    hits = [(data.labels == k) & (own == best) for k, own in enumerate(log_probs)]
    right = optimization_barrier(data.weight * jnp.stack(hits).any(0)).sum()
    odds = (n_classes - 1) * (right + 1) / (total - right + 1)
    target = total * jnp.maximum(jnp.log(odds), UNSURE)
    return jnp.where(difference > target, target / jnp.maximum(difference, TINY), 1.0)


def _penalised(
    loss: Differentiated, identity: Float[Array, " parameter"], l1: Scalar, l2: Scalar
) -> Differentiated:
    """Return the penalised loss as a function of the parts above and below the identity."""

    def at(parts: Float[Array, " part"]) -> Derivatives:
        above, below = jnp.split(parts, 2)
        value, gradient, hessian = loss(identity + above - below)
        return Derivatives(
            value + l1 * parts.sum() + l2 / 2 * (parts**2).sum(),
            jnp.concatenate([gradient, -gradient]) + l1 + l2 * parts,
            jnp.block([[hessian, -hessian], [-hessian, hessian]]) + l2 * jnp.eye(len(parts)),
        )

    return at
