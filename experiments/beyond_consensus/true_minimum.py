r"""P4's regression, minimised exactly (its loss: `judgebayes.experiments.beyond_consensus.regression`).

`true_minimum` reaches the kinks of the loss and returns a certificate of optimality.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from judgebayes.arrays import Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.regression import (
    FLOOR,
    WEIGHTS,
    Parameters,
    Regression,
    Targets,
)
from judgebayes.experiments.minimising import minimise
from judgebayes.inference.optimise import Newton, Point, State, Trial

TOLERANCE = 1e-7
MAX_STEPS = 2000


def prediction_loss(at: Parameters, matrix: Array) -> Float[Array, ""]:
    """Return eq 2, the mean cross-entropy of the matrix."""
    g = at.precision[:, None]
    fitted = g * at.tpr + (1 - g) * (1 - at.tnr)
    each = matrix * jnp.log(jnp.clip(fitted, FLOOR, 1)) + (1 - matrix) * jnp.log(
        jnp.clip(1 - fitted, FLOOR, 1)
    )
    return -each.mean()


def _scales(aim: Targets, weights: tuple[Scalar, Scalar, Scalar]) -> tuple[Array, Array, Array]:
    """Return the weight of each Euclidean norm: lambda / sqrt(size), 0 without labels."""
    labels = aim.labelled.sum()
    some = labels > 0
    judges = aim.tpr.shape[0]
    on = jnp.where(some, 1.0, 0.0)
    return (
        on * weights[0] / jnp.sqrt(jnp.maximum(labels, 1)),
        on * weights[1] / jnp.sqrt(judges),
        on * weights[2] / jnp.sqrt(judges),
    )


def loss(
    at: Parameters, aim: Targets, weights: tuple[Scalar, Scalar, Scalar] = WEIGHTS
) -> Float[Array, ""]:
    """Return P4's loss, eq 2 plus eq 3; without a labelled generator only eq 2."""
    return prediction_loss(at, aim.matrix) + _norms(at, aim, weights)


def _norms(
    at: Parameters, aim: Targets, weights: tuple[Scalar, Scalar, Scalar]
) -> Float[Array, ""]:
    """Return eq 3."""
    each = zip(_scales(aim, weights), _gaps(at, aim), strict=True)
    return jnp.stack([scale * jnp.sqrt((gap**2).sum()) for scale, gap in each]).sum()


def _gaps(at: Parameters, aim: Targets) -> tuple[Array, Array, Array]:
    return (
        jnp.where(aim.labelled, at.precision - aim.precision, 0.0),
        at.tpr - aim.tpr,
        at.tnr - aim.tnr,
    )


def certificate(
    at: Parameters, gradient: Parameters, aim: Targets, weights: tuple[Scalar, Scalar, Scalar]
) -> Array:
    r"""Return the distance of zero from the subdifferential of the kinked loss, within the box.

    A block of parameters at its target (the kink of its norm) is optimal if the norm of the smooth
    part's gradient is at most :math:`\lambda / \sqrt n`. Elsewhere the gradient exists, and its
    component that does not point out of the box must vanish. `gradient` is that of the smooth part.
    """
    scales = _scales(aim, weights)
    gaps = _gaps(at, aim)
    none_free = jnp.asarray(False)
    is_unpenalised = (~aim.labelled, none_free, none_free)
    distance = jnp.zeros(())
    for x, smooth_gradient, scale, gap, unpenalised in zip(
        at, gradient, scales, gaps, is_unpenalised, strict=True
    ):
        penalised_gradient = jnp.where(unpenalised, 0.0, smooth_gradient)
        norm = jnp.sqrt((gap**2).sum())
        kinked = (norm == 0) & (scale > 0)
        norm_gradient = scale * gap / jnp.where(norm > 0, norm, 1.0)
        gradient_sum = smooth_gradient + norm_gradient
        projected_step = jnp.abs(x - jnp.clip(x - gradient_sum, 0.0, 1.0))
        excess = jnp.maximum(jnp.sqrt((penalised_gradient**2).sum()) - scale, 0.0)
        block_distance = jnp.where(
            kinked, excess, jnp.where(unpenalised, 0.0, projected_step).max()
        )
        distance = jnp.maximum(
            distance, jnp.maximum(block_distance, jnp.where(unpenalised, projected_step, 0.0).max())
        )
    return distance


def _proximal_map(z: Array, goal: Array, amount: Array, penalised: Array | bool) -> Array:
    """Return the proximal map of amount * |z - goal| over the penalised entries, and z elsewhere."""
    gap = jnp.where(penalised, z - goal, 0.0)
    norm = jnp.sqrt((gap**2).sum())
    factor = jnp.maximum(1 - amount / jnp.where(norm > 0, norm, 1.0), 0.0)
    return jnp.where(penalised, goal + factor * gap, z)


def _one_minimum(
    aim: Targets, start: Parameters, weights: tuple[Scalar, Scalar, Scalar]
) -> Regression:
    """Return the minimum that proximal steps reach from one start; use `jax.vmap` for many."""
    scales = _scales(aim, weights)
    always = jnp.asarray(True)
    smooth = jax.value_and_grad(prediction_loss)

    def newton_precision(at: Parameters) -> Array:
        """Return the precisions after a separate Newton step of each (the loss is convex in it)."""
        g = at.precision[:, None]
        youden = at.tpr + at.tnr - 1
        fitted = jnp.clip(g * at.tpr + (1 - g) * (1 - at.tnr), FLOOR, 1 - FLOOR)
        first = -(youden * (aim.matrix / fitted - (1 - aim.matrix) / (1 - fitted))).sum(1)
        second = (youden**2 * (aim.matrix / fitted**2 + (1 - aim.matrix) / (1 - fitted) ** 2)).sum(
            1
        )
        step = jnp.clip(first / jnp.maximum(second, 1e-12), -0.2, 0.2)
        return jnp.clip(at.precision - step, 0.0, 1.0)

    def visit(x: Parameters) -> Point:
        value, gradient = smooth(x, aim.matrix)
        value = value + _norms(x, aim, weights)
        return Point(x, value, certificate(x, gradient, aim, weights), gradient)

    def propose(state: State) -> Trial:
        at, step = state.at.x, 1 / state.damping
        proximal = Parameters(
            *(
                jnp.clip(_proximal_map(x - step * d, goal, step * scale, penalised), 0.0, 1.0)
                for x, d, goal, scale, penalised in zip(
                    at,
                    state.at.gradient,
                    (aim.precision, aim.tpr, aim.tnr),
                    scales,
                    (aim.labelled, always, always),
                    strict=True,
                )
            )
        )
        newton_step = newton_precision(proximal._replace(precision=at.precision))
        refined = proximal._replace(
            precision=jnp.where(aim.labelled, proximal.precision, newton_step)
        )
        improves = loss(refined, aim, weights) <= loss(proximal, aim, weights)
        x = jax.tree.map(lambda a, b: jnp.where(improves, a, b), refined, proximal)
        return x, -np.inf, 0.0

    newton = Newton(visit, propose, TOLERANCE, MAX_STEPS, first=5.0, fall=1 / 1.3, rise=2.0)
    end, status = newton.run(newton.resume(visit(start)))
    at: Parameters = end.x
    return Regression(*at, end.value, end.gap, status)


def _minimum_without_labels(
    aim: Targets, start: Parameters, weights: tuple[Scalar, Scalar, Scalar]
) -> Regression:
    """Return a minimum of the prediction loss alone, which is smooth and has a flat valley.

    Proximal steps come first, because Newton steps from the released start go to a corner of the box.
    Newton steps follow, because proximal steps are slow in the valley.
    """
    proximal = _one_minimum(aim, start, weights)
    flat_start, unravel = ravel_pytree(Parameters(proximal.precision, proximal.tpr, proximal.tnr))
    fit = minimise(
        lambda x: prediction_loss(unravel(x), aim.matrix),
        flat_start,
        jnp.zeros_like(flat_start),
        jnp.ones_like(flat_start),
        tolerance=TOLERANCE,
    )
    at: Parameters = unravel(fit.x)
    return Regression(*at, fit.value, fit.projected_gradient, fit.status)


@partial(jax.jit, static_argnums=0)
def _minimum_from_starts(
    one: Callable[[Targets, Parameters, tuple[Scalar, Scalar, Scalar]], Regression],
    aims: Targets,
    begin: Parameters,
    weights: tuple[Scalar, Scalar, Scalar],
) -> Regression:
    """Return the minima for all targets from all starts."""

    def of_aim(aim: Targets) -> Regression:
        return jax.vmap(lambda start: one(aim, start, weights))(begin)

    return jax.vmap(of_aim)(aims)


@in_float64
def true_minimum(
    aims: Targets,
    begin: list[Parameters],
    *,
    weights: tuple[float, float, float] = WEIGHTS,
) -> Regression:
    r"""Return the minimum of P4's loss from every start, with its certificate.

    A proximal step is a gradient step on the smooth part, then for each norm its proximal map, which
    shrinks a block towards its target and sets it exactly there if it is close enough. The precisions of
    unlabelled generators, in each of which the loss is convex, take Newton steps. Without a labelled
    generator there is no kink and no unique minimum: the rates can compensate any affine change of the
    precisions.

    Parameters
    ----------
    aims
        The result of `targets`, single or in a batch (a leading axis: calibration sets).
    begin
        Starts, from `starts`.

    Returns
    -------
    Regression
        With the axes (aim, start), or (start,) for a single aim.
    """
    # Stacked on the host, because eager operations would take longer than small fits.
    single = aims.matrix.ndim == 2
    arrays = jax.tree.map(np.asarray, (aims, begin))
    batch: Targets = jax.tree.map(lambda a: a[None], arrays[0]) if single else arrays[0]
    all_starts: Parameters = jax.tree.map(lambda *a: np.stack(a), *arrays[1])
    kinked = batch.labelled.any(axis=1)
    parts, indices = [], []
    for minimise_one, is_kind in ((_one_minimum, kinked), (_minimum_without_labels, ~kinked)):
        if is_kind.any():
            chosen = jax.tree.map(lambda a, i=is_kind: a[i], batch)
            parts.append(
                jax.tree.map(
                    np.asarray, _minimum_from_starts(minimise_one, chosen, all_starts, weights)
                )
            )
            indices.append(np.flatnonzero(is_kind))
    order = 0 if single else np.argsort(np.concatenate(indices))
    stacked: Regression = jax.tree.map(lambda *a: jnp.asarray(np.concatenate(a)[order]), *parts)
    return stacked
