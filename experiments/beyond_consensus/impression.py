r"""The estimator that came before `Panel`: labels of whole generators, and mean votes of the others.

The story is that of `judgebayes.generators.pairs`.

Two choices keep the intervals wide enough. First, the deviations d and u belong to a generator and are
common to all of its judges. Judges who read the same items make correlated errors, about the items and
about the generator's style; these deviations, which do not average out over judges, represent both.
Second, an unlabelled generator enters only through the *mean* over judges of its logit shares. In this
model the differences between its judges would separate knowledge from impression, but on real votes
they show mainly which judge prefers which style.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logit
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.pairs import (
    Pairs,
    margin_matrix,
    margins,
    row_margins,
    vote_logits,
    vote_slopes,
)
from judgebayes.generators.panel import PanelPosterior, grid_status, spread_grid

POINTS = (7, 3)
SPAN = 1.9
"""Half-width of the grids, in prior standard deviations of log sigma."""
STEPS = 16
CELL_ROUNDS = 3


class ImpressionPrior(NamedTuple):
    """Normal priors as (location, scale); those of the sigmas are of their logarithms."""

    slope: tuple[float, float] = (1.0, 0.3)
    """lambda of judges who know nothing. Judges who know much leave few items to impressions, which then
    have less reason to follow quality: the location is multiplied by (1 - J^2)^3, where J is the
    judges' mean Youden index on the labelled items."""
    impression: tuple[float, float] = (0.0, 1.0)
    """Prior of the mean over judges of a_j, whose spread is `judge_spread`."""
    knowledge: tuple[float, float] = (-0.5, 1.5)
    """Prior of the mean over judges of kappa_j, whose spread is `judge_spread`."""
    quality: tuple[float, float] = (1.5, 1.5)
    """Prior of the mean over generators of eta_i, whose spread is `quality_spread`."""
    quality_spread: float = 1.5
    judge_spread: float = 0.7
    log_sigma_d: tuple[float, float] = (float(np.log(0.28)), 0.5)
    log_sigma_u: tuple[float, float] = (float(np.log(0.4)), 0.5)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Impression:
    """Estimate generators' precision from counted votes and the labels of some generators.

    Parameters
    ----------
    prior
        The priors; the defaults suit judges from useless to excellent.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from judgebayes.experiments.beyond_consensus.impression import Impression
    >>> from judgebayes.generators import PrecisionCounts
    >>> votes = jnp.array([[0.0, 0.0], [70.0, 90.0], [80.0, 70.0]])
    >>> judged = jnp.array([[0.0, 0.0], [100.0, 100.0], [100.0, 100.0]])
    >>> first = [jnp.zeros((3, 2)).at[0].set(n) for n in (72.0, 80.0, 14.0, 20.0)]
    >>> items = [jnp.array(n) for n in ([80.0, 0, 0], [20.0, 0, 0], [0.0, 100, 100])]
    >>> counts = PrecisionCounts(votes, judged, *first, *items)
    >>> fit = Impression().fit(counts)
    >>> print(fit.estimate().round(2))
    [0.8  0.77 0.69]
    """

    prior: ImpressionPrior = field(default_factory=ImpressionPrior)

    @in_float64
    def fit(self, counts: PrecisionCounts) -> "PanelPosterior":
        """Return the posterior of every generator's precision.

        Works under `jax.jit` and `jax.vmap`. Any pairs of generator and judge may be missing. A
        generator should be labelled in full, or nearly, or not at all. With few labels of many
        generators the intervals are too narrow; use `Stratified` instead.
        """
        return _fit(self, counts)


class _Cells(NamedTuple):
    """Empirical logits of shares, their sampling variances, and which cells have votes."""

    logit: Float[Array, "*label generator judge"]
    variance: Float[Array, "*label generator judge"]
    observed: Bool[Array, "*label generator judge"]


class _Spreads(NamedTuple):
    d: Scalar
    u: Scalar
    cell: Scalar


def _cells(count: Array, n: Array) -> _Cells:
    share = (count + 0.5) / (n + 1.0)
    observed = n > 0
    return _Cells(logit(share), 1 / jnp.where(observed, n * share * (1 - share), 1.0), observed)


class _System(Pairs):
    """The least-squares problem for given counts and prior."""

    def __init__(self, counts: PrecisionCounts, prior: ImpressionPrior) -> None:
        super().__init__(counts, prior)
        self.cells = _cells(self.accepted, self.judged)
        self.label = _cells(counts.valid, counts.valid + counts.invalid)
        rated = jnp.isfinite(self.youden)
        mean = jnp.where(rated, self.youden, 0.0).sum() / jnp.maximum(rated.sum(), 1)
        location, scale = prior.slope
        self.slope = location * (1 - jnp.clip(mean, 0.0, 1.0) ** 2) ** 3, scale

    def errors(self, x: Array, spreads: _Spreads) -> tuple[Array, Array]:
        """Return the errors of all cells, and the precisions of those on labelled items."""
        logits, variance, observed = self.cells
        weight = jnp.where(observed[:2], 1 / (variance[:2] + spreads.cell**2), 0.0)
        return jnp.where(observed, logits - vote_logits(*self.inputs(x)), 0.0), weight

    def cell_chi(self, x: Array, spreads: _Spreads) -> Scalar:
        """Return the chi-square of the cells on labelled items."""
        error, weight = self.errors(x, spreads)
        return (weight * error[:2] ** 2).sum()

    def evaluate(self, x: Array, spreads: _Spreads) -> tuple[Array, Array, Array]:
        """Return chi-square, its half negative gradient, and the Gauss-Newton matrix."""
        error, weight = self.errors(x, spreads)
        slopes = vote_slopes(*self.inputs(x))
        by_pair = jnp.einsum("kcgj,cgj->kgj", slopes[:, :2], weight * error[:2])
        squares = jnp.einsum("kcgj,lcgj,cgj->klgj", slopes[:, :2], slopes[:, :2], weight)
        # Unlabelled generators: the mean over judges of the logit shares.
        voted = self.cells.observed[2]
        share = voted / jnp.maximum(voted.sum(1), 1)[:, None]
        noise = (share**2 * (self.cells.variance[2] + spreads.cell**2)).sum(1)
        some = voted.any(1)
        width = jnp.where(some, 1 / jnp.sqrt(jnp.where(some, noise, 1.0)), 0.0)
        row_error = width * (share * error[2]).sum(1)
        rows = width[:, None] * row_margins(share * slopes[:, 2])
        gradient = self.lift(margins(by_pair) + rows.T @ row_error, x)
        normal = self.lift(self.lift(margin_matrix(squares) + rows.T @ rows, x).T, x)
        # Labels.
        label_weight = jnp.where(self.label.observed, 1 / self.label.variance, 0.0)
        label_error = jnp.where(self.label.observed, self.label.logit - x[self.eta], 0.0)
        normal = normal.at[self.eta, self.eta].add(jnp.diag(label_weight))
        gradient = gradient.at[self.eta].add(label_weight * label_error)
        prior_rows, centre = self.prior_rows(self.slope, spreads.d, spreads.u)
        residual = prior_rows @ x - centre
        chi = (weight * error[:2] ** 2).sum() + (row_error**2).sum()
        chi = chi + (label_weight * label_error**2).sum() + residual @ residual
        return chi, gradient - prior_rows.T @ residual, normal + prior_rows.T @ prior_rows

    def log_spreads(self, spreads: _Spreads) -> Array:
        """Return the log scales of the normal densities, up to terms without the spreads."""
        each = 0.5 * jnp.log(self.cells.variance[:2] + spreads.cell**2)
        of_cells = jnp.where(self.cells.observed[:2], each, 0.0).sum()
        return self.generators * (jnp.log(spreads.d) + jnp.log(spreads.u)) + of_cells


@jax.jit
def _fit(method: Impression, counts: PrecisionCounts) -> PanelPosterior:
    prior = method.prior
    system = _System(counts, prior)
    on_labels = system.cells.observed[:2]
    labelled, n_observed = on_labels[0].any(1).sum(), on_labels.sum()
    degrees_of_freedom = jnp.maximum(n_observed - 2.0 * system.judges - 2.0 * labelled, 5.0)
    typical_spreads = jnp.exp(prior.log_sigma_d[0]), jnp.exp(prior.log_sigma_u[0])

    def refine(_: Int[Array, ""] | int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Scale the cell spread so that the cells' chi-square equals its degrees of freedom."""
        x, cell = state
        spreads = _Spreads(*typical_spreads, cell)
        x = system.solve(x, STEPS // 2, spreads)[0]
        chi = system.cell_chi(x, spreads)
        rescaled = jnp.clip(cell * jnp.sqrt(chi / degrees_of_freedom), 0.02, 1.0)
        return x, jnp.where(n_observed > 0, rescaled, cell)

    x, cell = jax.lax.fori_loop(0, CELL_ROUNDS, refine, (system.start(), jnp.asarray(0.15)))
    (d, u), log_density = spread_grid((prior.log_sigma_d, prior.log_sigma_u), POINTS, SPAN)

    def at_point(d: Array, u: Array) -> tuple[Array, Array, Array, Array]:
        spreads = _Spreads(d, u, cell)
        mean, covariance, evidence, move = system.laplace(x, STEPS // 2, spreads)
        return mean, covariance, evidence - system.log_spreads(spreads), move.max()

    mean, covariance, evidence, move = jax.vmap(at_point)(d, u)
    weight = jax.nn.softmax(evidence + log_density)
    status = grid_status(mean, covariance, (weight @ move) > 1e-3)
    labels = counts.valid, counts.invalid, counts.unlabelled
    return PanelPosterior(weight, mean, covariance, *labels, status)
