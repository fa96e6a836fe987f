r"""P4's regression: its loss, minimised as published.

.. math:: L = -\frac{1}{|G||V|} \sum_{ij} P_{ij} \log \hat P_{ij} + (1-P_{ij}) \log(1-\hat P_{ij})
          + \lambda_g \mathrm{rms}_H(\hat g - g) + \lambda_+ \mathrm{rms}(\hat v^+ - v^+)
          + \lambda_- \mathrm{rms}(\hat v^- - v^-)

with :math:`\hat P_{ij} = \hat g_i \hat v_j^+ + (1 - \hat g_i)(1 - \hat v_j^-)` (eqs 1-3). A root
mean square is a norm: it has a kink where all its terms are zero, and a minimum can be at a kink with a
nonzero gradient nearby. `as_published` is the released procedure, which stops before the kink.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference.status import Status

WEIGHTS = (2.0, 1.0, 10.0)
"""lambda_g, lambda_v+ and lambda_v- of P4's section 5.1."""
FLOOR = 1e-9
"""Lower bound of probabilities inside the logarithm, as in the released code."""


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
    for start in starts(problem.matrix, restarts, seed=seed):
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
