r"""P4's regression: its loss, minimised as published and minimised exactly.

.. math:: L = -\frac{1}{|G||V|} \sum_{ij} P_{ij} \log \hat P_{ij} + (1-P_{ij}) \log(1-\hat P_{ij})
          + \lambda_g \mathrm{rms}_H(\hat g - g) + \lambda_+ \mathrm{rms}(\hat v^+ - v^+)
          + \lambda_- \mathrm{rms}(\hat v^- - v^-)

with :math:`\hat P_{ij} = \hat g_i \hat v_j^+ + (1 - \hat g_i)(1 - \hat v_j^-)` (eqs 1-3). A root
mean square is a norm: it has a kink where all its terms are zero, and a minimum can be at a kink with a
nonzero gradient nearby. `as_published` is the released procedure, which stops before the kink;
`true_minimum` reaches it and returns a certificate of optimality.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference.newton import Newton, Point, State, Trial
from judgebayes.inference.optimise import minimise
from judgebayes.inference.status import Status

__all__ = [
    "WEIGHTS",
    "Regression",
    "Targets",
    "as_published",
    "loss",
    "starts",
    "targets",
    "true_minimum",
]

WEIGHTS = (2.0, 1.0, 10.0)
"""lambda_g, lambda_v+ and lambda_v- of P4's section 5.1."""
FLOOR = 1e-9
"""Lower bound of probabilities inside the logarithm, as in the released code."""
TOLERANCE = 1e-7
MAX_STEPS = 2000


class Targets(NamedTuple):
    """The targets of the loss: the matrix, and the precisions and rates from the labels."""

    matrix: Float[Array, "generator judge"]
    precision: Float[Array, " generator"]
    """Precision of the labelled generators; arbitrary values elsewhere."""
    labelled: Bool[Array, " generator"]
    tpr: Float[Array, " judge"]
    tnr: Float[Array, " judge"]


class Parameters(NamedTuple):
    """The parameters of the regression: precisions, TPRs and TNRs."""

    precision: Float[Array, "*batch generator"]
    tpr: Float[Array, "*batch judge"]
    tnr: Float[Array, "*batch judge"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Regression:
    """A fit of P4's loss.

    `certificate` is the distance of zero from the loss's subdifferential, within the box: exactly 0 at a
    first-order minimum of the kinked loss; NaN for the released procedure, which computes none.
    """

    precision: Float[Array, "*batch generator"]
    tpr: Float[Array, "*batch judge"]
    tnr: Float[Array, "*batch judge"]
    loss: Float[Array, "*batch"]
    certificate: Float[Array, "*batch"]
    status: Int[Array, "*batch"]


@in_float64
def targets(counts: PrecisionCounts) -> Targets:
    """Return the matrix, the labelled precisions and the pooled rates of counted votes.

    Raises
    ------
    JudgeBayesError
        If a pair of generator and judge was not run: P4's loss needs a dense matrix.
    """
    matrix = counts.matrix
    if not isinstance(matrix, jax.core.Tracer) and bool(jnp.isnan(matrix).any()):
        i, j = np.argwhere(np.isnan(np.asarray(matrix)))[0]
        raise JudgeBayesError(
            f"Judge {j} never voted on generator {i}; P4's regression needs every pair. The "
            "random-effects estimator (`Impression`) does not."
        )
    rates = counts.rates()
    return Targets(
        matrix,
        jnp.nan_to_num(counts.labelled_precision),
        counts.labelled,
        jnp.nan_to_num(rates.tpr),
        jnp.nan_to_num(rates.tnr),
    )


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


@in_float64
def starts(
    matrix: Float[AnyArray, "generator judge"],
    count: int,
    *,
    rate: float = 0.5,
    seed: int | np.random.RandomState = 42,
) -> list[Parameters]:
    """Return the released starts: row means, and TPR and TNR of `rate`; all but the first are jittered.

    The jitter is uniform, 0.001 wide for precisions and 0.01 for rates. The released code starts
    rates at 0.5; the paper's text says 1. It uses one random stream for all calibration sets of
    a size; pass a `RandomState` as the seed to continue such a stream.
    """
    rng = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    row = np.asarray(matrix).mean(1)
    judges = np.asarray(matrix).shape[1]
    centres = (row, np.full(judges, rate), np.full(judges, rate))
    points = []
    for i in range(count):
        jittered: tuple[np.ndarray, ...] = centres
        if i > 0:
            jittered = tuple(
                c + rng.uniform(-w / 2, w / 2, len(c))
                for c, w in zip(centres, (0.001, 0.01, 0.01), strict=True)
            )
        points.append(Parameters(*(jnp.asarray(np.clip(c, 0, 1)) for c in jittered)))
    return points


class _HostLoss:
    """P4's loss on the host, for many points at once, in the released order: TPR, TNR, precision."""

    STEP = 1e-8  # SciPy's for L-BFGS-B

    def __init__(self, aim: Targets, weights: tuple[float, float, float]) -> None:
        self.matrix = np.asarray(aim.matrix)
        self.labelled = np.asarray(aim.labelled)
        self.goals = (
            np.asarray(aim.precision)[self.labelled],
            np.asarray(aim.tpr),
            np.asarray(aim.tnr),
        )
        self.weights = weights if self.labelled.any() else (0.0, 0.0, 0.0)

    def parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        j = self.matrix.shape[1]
        return x[..., 2 * j :], x[..., :j], x[..., j : 2 * j]

    def fitted(self, x: np.ndarray) -> np.ndarray:
        p, t, n = (a[..., None, :] for a in self.parts(x))
        return p.swapaxes(-1, -2) * t + (1 - p.swapaxes(-1, -2)) * (1 - n)

    def value(self, x: np.ndarray) -> np.ndarray:
        fitted = self.fitted(x)
        total = -np.mean(
            self.matrix * np.log(np.clip(fitted, FLOOR, 1))
            + (1 - self.matrix) * np.log(np.clip(1 - fitted, FLOOR, 1)),
            axis=(-2, -1),
        )
        p, t, n = self.parts(x)
        if self.weights[0]:
            for weight, at, goal in zip(
                self.weights, (p[..., self.labelled], t, n), self.goals, strict=True
            ):
                total = total + weight * np.sqrt(np.mean((goal - at) ** 2, axis=-1))
        return np.asarray(total)

    def differences(self, x: np.ndarray) -> np.ndarray:
        """Return SciPy's forward differences, backward where a forward step leaves the box."""
        step = np.where(x + self.STEP > 1, -self.STEP, self.STEP)
        shifted = x + np.diag(step)
        actual_step = np.diagonal(shifted) - x
        return (self.value(shifted) - self.value(x)) / actual_step

    def gradient(self, x: np.ndarray) -> np.ndarray:
        p, t, n = self.parts(x)
        fitted = np.clip(self.fitted(x), FLOOR, 1 - FLOOR)
        back = -(self.matrix / fitted - (1 - self.matrix) / (1 - fitted)) / self.matrix.size
        gradients = [
            (back * (t + n - 1)).sum(1),
            (back * p[:, None]).sum(0),
            -(back * (1 - p)[:, None]).sum(0),
        ]
        if self.weights[0]:
            for block, where, at, goal, weight in zip(
                gradients,
                (self.labelled, slice(None), slice(None)),
                (p[self.labelled], t, n),
                self.goals,
                self.weights,
                strict=True,
            ):
                norm = np.sqrt(np.mean((at - goal) ** 2))
                if norm > 0:
                    block[where] += weight * (at - goal) / (len(goal) * norm)
        return np.concatenate([gradients[1], gradients[2], gradients[0]])


@in_float64
def as_published(
    aim: Targets,
    *,
    weights: tuple[float, float, float] = WEIGHTS,
    restarts: int = 10,
    rate: float = 0.5,
    seed: int | np.random.RandomState = 42,
    gradient: Literal["differences", "analytic"] = "differences",
) -> Regression:
    """Return the fit of the released procedure: SciPy's L-BFGS-B, the best of several starts.

    The objective is vectorised; the call, the starts, the restarts and the choice among them are as
    released. The derivatives are finite differences, so near the three kinks the procedure stops where
    no finite difference descends, and reports convergence.

    Parameters
    ----------
    aim
        The result of `targets`.
    weights
        lambda_g, lambda_v+ and lambda_v-.
    restarts
        The number of starts; 10 in the released code, 25 in the paper's text.
    rate
        The start value of TPR and TNR.
    seed
        Seed of the jitter of the starts, or a random stream.
    gradient
        "differences": SciPy's forward differences, for all coordinates at once (one by one in the
        released code); or the analytic gradient.
    """
    from scipy.optimize import minimize

    problem = _HostLoss(aim, weights)
    j = problem.matrix.shape[1]
    best = None
    for start in starts(problem.matrix, restarts, rate=rate, seed=seed):
        x = np.concatenate([np.asarray(a) for a in (start.tpr, start.tnr, start.precision)])
        fit = minimize(
            problem.value,
            x,
            jac=problem.gradient if gradient == "analytic" else problem.differences,
            bounds=[(0, 1)] * len(x),
            method="L-BFGS-B",
        )
        if best is None or fit.fun < best.fun:
            best = fit
    assert best is not None
    status = Status.CONVERGED if best.success else Status.STALLED
    return Regression(
        jnp.asarray(best.x[2 * j :]),
        jnp.asarray(best.x[:j]),
        jnp.asarray(best.x[j : 2 * j]),
        jnp.asarray(float(best.fun)),
        jnp.asarray(jnp.nan),
        jnp.asarray(int(status)),
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
        return Trial(jax.tree.map(lambda a, b: jnp.where(improves, a, b), refined, proximal))

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
