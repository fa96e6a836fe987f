r"""P4's regression: its loss, minimised as published and minimised in truth.

.. math:: L = -\frac{1}{|G||V|} \sum_{ij} P_{ij} \log \hat P_{ij} + (1-P_{ij}) \log(1-\hat P_{ij})
          + \lambda_g \mathrm{rms}_H(\hat g - g) + \lambda_+ \mathrm{rms}(\hat v^+ - v^+)
          + \lambda_- \mathrm{rms}(\hat v^- - v^-)

with :math:`\hat P_{ij} = \hat g_i \hat v_j^+ + (1 - \hat g_i)(1 - \hat v_j^-)` (eqs 1-3). A root
mean square is a norm: it has a kink where all its terms are zero, and there a minimum can sit with
a gradient that does not vanish. `as_published` is the released procedure, which stops before the
kink; `true_minimum` goes to it and proves that it has arrived.
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
"""Probabilities are kept this far from 0 inside the logarithm, as in the released code."""
TOLERANCE = 1e-7
MAX_STEPS = 2000


class Targets(NamedTuple):
    """What the loss is measured against: the matrix, and what labels say."""

    matrix: Float[Array, "generator judge"]
    precision: Float[Array, " generator"]
    """Precision of the labelled generators; anything elsewhere."""
    labelled: Bool[Array, " generator"]
    tpr: Float[Array, " judge"]
    tnr: Float[Array, " judge"]


class Parameters(NamedTuple):
    """Precisions, TPRs and TNRs: what the regression estimates."""

    precision: Float[Array, "*batch generator"]
    tpr: Float[Array, "*batch judge"]
    tnr: Float[Array, "*batch judge"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Regression:
    """A fit of P4's loss.

    `certificate` is the distance of zero from the loss's subdifferential, within the box: 0 exactly
    at a minimum of the kinked loss to first order; NaN for the released procedure, which has none.
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
    """Return P4's whole loss, eq 2 plus eq 3; without a labelled generator eq 2 alone."""
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
    """Return the released starts: row means, and TPR and TNR of `rate`; all but the first jittered.

    The jitter is uniform, 0.001 wide for precisions and 0.01 for rates. The released code starts
    rates at 0.5; the paper's text says 1. It draws from one seeded stream for all calibration sets
    of a size, which a `RandomState` given as the seed continues.
    """
    rng = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    row = np.asarray(matrix).mean(1)
    judges = np.asarray(matrix).shape[1]
    centres = (row, np.full(judges, rate), np.full(judges, rate))
    found = []
    for i in range(count):
        moved: tuple[np.ndarray, ...] = centres
        if i > 0:
            moved = tuple(
                c + rng.uniform(-w / 2, w / 2, len(c))
                for c, w in zip(centres, (0.001, 0.01, 0.01), strict=True)
            )
        found.append(Parameters(*(jnp.asarray(np.clip(c, 0, 1)) for c in moved)))
    return found


class _HostLoss:
    """P4's loss on the host, of many points at once, in the released order: TPR, TNR, precision."""

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
        there = x + np.diag(step)
        moved = np.diagonal(there) - x
        return (self.value(there) - self.value(x)) / moved

    def slope(self, x: np.ndarray) -> np.ndarray:
        p, t, n = self.parts(x)
        fitted = np.clip(self.fitted(x), FLOOR, 1 - FLOOR)
        back = -(self.matrix / fitted - (1 - self.matrix) / (1 - fitted)) / self.matrix.size
        slopes = [
            (back * (t + n - 1)).sum(1),
            (back * p[:, None]).sum(0),
            -(back * (1 - p)[:, None]).sum(0),
        ]
        if self.weights[0]:
            for slope, where, at, goal, weight in zip(
                slopes,
                (self.labelled, slice(None), slice(None)),
                (p[self.labelled], t, n),
                self.goals,
                self.weights,
                strict=True,
            ):
                norm = np.sqrt(np.mean((at - goal) ** 2))
                if norm > 0:
                    slope[where] += weight * (at - goal) / (len(goal) * norm)
        return np.concatenate([slopes[1], slopes[2], slopes[0]])


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
    """Return the released procedure's answer: SciPy's L-BFGS-B, lowest training loss of restarts.

    The objective is vectorised; the call, the start, the restarts and the choice among them are the
    released ones. Its derivatives are finite differences, so that near the three kinks it stops
    where no such difference descends, and reports convergence.

    Parameters
    ----------
    aim
        What `targets` returned.
    weights
        lambda_g, lambda_v+ and lambda_v-.
    restarts
        How many starts; 10 in the released code, 25 in the text.
    rate
        Where TPR and TNR start.
    seed
        Seed of the jitter of the starts, or the stream itself.
    gradient
        SciPy's own forward differences, all coordinates at once, as the released code has them one
        by one; or the analytic gradient.
    """
    from scipy.optimize import minimize

    problem = _HostLoss(aim, weights)
    j = problem.matrix.shape[1]
    best = None
    for start in starts(problem.matrix, restarts, rate=rate, seed=seed):
        x = np.concatenate([np.asarray(a) for a in (start.tpr, start.tnr, start.precision)])
        found = minimize(
            problem.value,
            x,
            jac=problem.slope if gradient == "analytic" else problem.differences,
            bounds=[(0, 1)] * len(x),
            method="L-BFGS-B",
        )
        if best is None or found.fun < best.fun:
            best = found
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
    r"""Return how far zero is from the subdifferential of the kinked loss, within the box.

    A block of parameters that sits on its target (the kink of its norm) is optimal where the
    smooth part's gradient is at most :math:`\lambda / \sqrt n` long; elsewhere the gradient exists,
    and its component that does not point out of the box must vanish. `gradient` is the smooth part's.
    """
    scales = _scales(aim, weights)
    gaps = _gaps(at, aim)
    never = jnp.asarray(False)
    free = (~aim.labelled, never, never)
    worst = jnp.zeros(())
    for x, slope, scale, gap, loose in zip(at, gradient, scales, gaps, free, strict=True):
        held = jnp.where(loose, 0.0, slope)
        norm = jnp.sqrt((gap**2).sum())
        kinked = (norm == 0) & (scale > 0)
        along = scale * gap / jnp.where(norm > 0, norm, 1.0)
        total = slope + along
        moved = jnp.abs(x - jnp.clip(x - total, 0.0, 1.0))
        excess = jnp.maximum(jnp.sqrt((held**2).sum()) - scale, 0.0)
        inside = jnp.where(kinked, excess, jnp.where(loose, 0.0, moved).max())
        worst = jnp.maximum(worst, jnp.maximum(inside, jnp.where(loose, moved, 0.0).max()))
    return worst


def _shrunk(z: Array, goal: Array, amount: Array, held: Array | bool) -> Array:
    """Return the proximal map of amount * |z - goal| over the held entries, and z elsewhere."""
    gap = jnp.where(held, z - goal, 0.0)
    norm = jnp.sqrt((gap**2).sum())
    kept = jnp.maximum(1 - amount / jnp.where(norm > 0, norm, 1.0), 0.0)
    return jnp.where(held, goal + kept * gap, z)


def _one_minimum(
    aim: Targets, start: Parameters, weights: tuple[Scalar, Scalar, Scalar]
) -> Regression:
    """Return the minimum that proximal steps reach from one start; `jax.vmap` gives many."""
    scales = _scales(aim, weights)
    always = jnp.asarray(True)
    smooth = jax.value_and_grad(prediction_loss)

    def alone(at: Parameters) -> Array:
        """Return the precisions after a Newton step of each one alone (the loss is convex in it)."""
        g = at.precision[:, None]
        reach = at.tpr + at.tnr - 1
        fitted = jnp.clip(g * at.tpr + (1 - g) * (1 - at.tnr), FLOOR, 1 - FLOOR)
        first = -(reach * (aim.matrix / fitted - (1 - aim.matrix) / (1 - fitted))).sum(1)
        second = (reach**2 * (aim.matrix / fitted**2 + (1 - aim.matrix) / (1 - fitted) ** 2)).sum(1)
        step = jnp.clip(first / jnp.maximum(second, 1e-12), -0.2, 0.2)
        return jnp.clip(at.precision - step, 0.0, 1.0)

    def visit(x: Parameters) -> Point:
        value, gradient = smooth(x, aim.matrix)
        value = value + _norms(x, aim, weights)
        return Point(x, value, certificate(x, gradient, aim, weights), gradient)

    def propose(state: State) -> Trial:
        at, step = state.at.x, 1 / state.damping
        tried = Parameters(
            *(
                jnp.clip(_shrunk(x - step * d, goal, step * scale, held), 0.0, 1.0)
                for x, d, goal, scale, held in zip(
                    at,
                    state.at.gradient,
                    (aim.precision, aim.tpr, aim.tnr),
                    scales,
                    (aim.labelled, always, always),
                    strict=True,
                )
            )
        )
        own = alone(tried._replace(precision=at.precision))
        sharper = tried._replace(precision=jnp.where(aim.labelled, tried.precision, own))
        sharp = loss(sharper, aim, weights) <= loss(tried, aim, weights)
        return Trial(jax.tree.map(lambda a, b: jnp.where(sharp, a, b), sharper, tried))

    newton = Newton(visit, propose, TOLERANCE, MAX_STEPS, first=5.0, fall=1 / 1.3, rise=2.0)
    end, status = newton.run(newton.resume(visit(start)))
    at: Parameters = end.x
    return Regression(*at, end.value, end.gap, status)


def _uncalibrated(
    aim: Targets, start: Parameters, weights: tuple[Scalar, Scalar, Scalar]
) -> Regression:
    """Return a minimum of the prediction loss alone, which is smooth and has a flat valley.

    Proximal steps first, since from the released start Newton's go to a corner of the box; then
    Newton's, since in the valley the others crawl.
    """
    end = _one_minimum(aim, start, weights)
    near, parts = ravel_pytree(Parameters(end.precision, end.tpr, end.tnr))
    found = minimise(
        lambda x: prediction_loss(parts(x), aim.matrix),
        near,
        jnp.zeros_like(near),
        jnp.ones_like(near),
        tolerance=TOLERANCE,
    )
    at: Parameters = parts(found.x)
    return Regression(*at, found.value, found.projected_gradient, found.status)


@partial(jax.jit, static_argnums=0)
def _each(
    one: Callable[[Targets, Parameters, tuple[Scalar, Scalar, Scalar]], Regression],
    aims: Targets,
    begin: Parameters,
    weights: tuple[Scalar, Scalar, Scalar],
) -> Regression:
    """Return the minima of every aim from every start."""

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

    Proximal steps: a gradient step on the smooth part, then for each norm the map that shrinks a
    block towards its target and puts it there exactly when it is close enough; the precisions of
    unlabelled generators, each of which the loss is convex in, take Newton steps. Without a
    labelled generator there is no kink, and no unique minimum: any affine change of the precisions
    can be made good by the rates.

    Parameters
    ----------
    aims
        What `targets` returned, one or a batch of them (a leading axis: calibration sets).
    begin
        Starts, from `starts`.

    Returns
    -------
    Regression
        With the axes (aim, start), or (start,) for a single aim.
    """
    # Put together on the host: eager operations would take longer than small fits.
    single = aims.matrix.ndim == 2
    host = jax.tree.map(np.asarray, (aims, begin))
    batch: Targets = jax.tree.map(lambda a: a[None], host[0]) if single else host[0]
    many: Parameters = jax.tree.map(lambda *a: np.stack(a), *host[1])
    kinked = batch.labelled.any(axis=1)
    parts, places = [], []
    for one, here in ((_one_minimum, kinked), (_uncalibrated, ~kinked)):
        if here.any():
            chosen = jax.tree.map(lambda a, i=here: a[i], batch)
            parts.append(jax.tree.map(np.asarray, _each(one, chosen, many, weights)))
            places.append(np.flatnonzero(here))
    order = 0 if single else np.argsort(np.concatenate(places))
    whole: Regression = jax.tree.map(lambda *a: jnp.asarray(np.concatenate(a)[order]), *parts)
    return whole
