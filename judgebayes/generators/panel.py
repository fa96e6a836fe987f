r"""The panel estimator: knowledge and impression, and no single cell that decides.

The story is that of `judgebayes.generators.pairs`: judge j knows with probability :math:`k_{ij}`
whether an item of generator i is valid, and otherwise calls it valid with probability :math:`q_{ij}`.
Three things differ.

**Cells.** The count of a cell (generator, judge, label) has its exact binomial likelihood, 0 and n
included, raised to the power

.. math:: \varphi = \Pr(\text{ordinary}) \, \frac{\nu + 1}{\nu + z^2} \,
          \frac{1}{1 + n p (1 - p) \sigma_c^2}, \qquad \nu = 4

where p is the model's rate, :math:`\sigma_c` the spread of ordinary cells on the logit scale, and
:math:`z^2` the scaled deviance. A judge's votes on a generator are odd with a prior probability of .03,
or more if the judge's votes on other generators are: then their rates are anything, with a Beta(.1, .1)
distribution, as those of a judge who says "valid" to every item. A saturated or odd judge so loses its
weight, and `PanelPosterior.odd` names it.

**Rows.** An unlabelled generator enters through the weighted mean over judges of its residuals, and
through the differences between its judges with weight :math:`\tau = .1 + .9 (1 - f)`, with
:math:`f = 1 / (1 + (J / .42)^6)` and J the mean Youden index of the judges, weighted by v (1 - v) with v
the share of items that a judge calls valid. Judges who know little follow the
generator's quality, and their differences show which judge prefers which style; judges who know much
are instruments, and their differences separate knowledge from impression.

**Slope and spreads.** The slope lambda of impressions in quality is Normal(1, .2) with probability
.97 f, else Normal(0, .2). With probability .2 the spreads of the generators' shifts are near that of the
cells. The posterior is a mixture over both, each point by Laplace's approximation.

The posterior of each generator's share of valid items, and grids of the spreads it depends on.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, logit, xlog1py, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from judgebayes.arrays import Key, Scalar
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
from judgebayes.inference.status import Status, summary, when, worst
from judgebayes.models.distributions import log_choose


class Posterior(ABC):
    """The posterior of each generator's share of valid items: of NumPy's or of JAX's arrays."""

    status: Any
    """The status of the fit, a `Status` as a number."""

    def quantile(self, level: float) -> Any:
        """Return a quantile of each generator's share: of its draws, if it has no form of its own."""
        return np.quantile(np.asarray(self.sample()), level, axis=0)

    @abstractmethod
    def sample(self, n_draws: int = 4000, key: Key | None = None) -> Any:
        """Return joint draws (draw, generator); errors that generators share cancel in differences."""

    def estimate(self) -> Any:
        """Return the posterior medians."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return the ends of the central intervals."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def overall_precision(of: Any, g: Array) -> Array:
    """Return the share of valid items among all, with the probability g for the unlabelled ones.

    `of` has the numbers `valid`, `invalid` and `unlabelled` of each generator; g is (..., generator).
    """
    total = of.valid + of.invalid + of.unlabelled
    share = (of.valid + of.unlabelled * g) / jnp.where(total > 0, total, 1.0)
    return jnp.where(total > 0, share, g)


def spread_grid(
    priors: Sequence[tuple[Scalar, Scalar]], points: Sequence[int], span: float
) -> tuple[list[Array], Array]:
    """Return spreads at the points of a grid, by normal priors of their logs, and the log-density there.

    The grid reaches `span` standard deviations to either side of each prior's location.
    """
    each = [np.linspace(-span, span, n) for n in points]
    z = np.stack([a.ravel() for a in np.meshgrid(*each, indexing="ij")])
    spreads = [
        jnp.exp(location + scale * row) for (location, scale), row in zip(priors, z, strict=True)
    ]
    return spreads, -0.5 * jnp.asarray((z**2).sum(0))


def grid_status(mean: Array, covariance: Array, unfinished: Array) -> Int[Array, ""]:
    """Return the status of a mixture of normals, each found by a search that may be unfinished."""
    finite = jnp.isfinite(mean).all() & jnp.isfinite(covariance).all()
    return worst(when(~finite, Status.NONFINITE), when(unfinished, Status.MAX_STEPS))


BISECTIONS = 45
STEPS = 30
"""Steps of the optimisation at each point of the grid."""
ROUND_STEPS = 10
"""Steps of the optimisation in each round of weights."""
ROUNDS = 6
"""Rounds of weights and spread of the cells."""
NU = 4.0
ODD = 0.03
"""Prior probability of an odd cell."""
SHAPE = 0.1
TYPICAL = 0.15
"""A typical spread of cells, to which that of few cells is drawn."""
PRIOR_FREEDOM = 4.0
PRIOR_CELLS = 2.0
"""How many cells the prior probability of odd ones counts as, for each judge."""
WIDE = 2.0
"""Spread of the logits of rates over judges, for the first weights."""
HALF_YOUDEN = 0.42
MOST_FOLLOW = 0.97
"""The largest prior probability that impressions follow quality: the votes of judges who know nothing
may also follow nothing, and only labels of other generators show it."""
LEFT = 0.02
"""A fit has converged if the next step would move no eta by more than this part of its posterior
standard deviation, in the mean over the grid."""
GRID_D = np.log(np.geomspace(0.04, 0.9, 7))
GRID_U = np.log(np.geomspace(0.06, 1.0, 4))


class PanelPrior(NamedTuple):
    """Normal priors as (location, scale); those of the sigmas are of their logarithms."""

    slope_scale: float = 0.2
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
    near_cells: float = 0.2
    """Probability that shifts of generators are about as large as the deviations of cells."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Panel:
    """Estimate generators' precision from counted votes and the labels of some generators.

    Parameters
    ----------
    prior
        The priors; the defaults suit judges from useless to excellent.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from judgebayes.generators import Panel, PrecisionCounts
    >>> votes = jnp.array([[0.0, 0.0], [70.0, 90.0], [80.0, 70.0]])
    >>> judged = jnp.array([[0.0, 0.0], [100.0, 100.0], [100.0, 100.0]])
    >>> first = [jnp.zeros((3, 2)).at[0].set(n) for n in (72.0, 80.0, 14.0, 20.0)]
    >>> items = [jnp.array(n) for n in ([80.0, 0, 0], [20.0, 0, 0], [0.0, 100, 100])]
    >>> counts = PrecisionCounts(votes, judged, *first, *items)
    >>> fit = Panel().fit(counts)
    >>> print(fit.estimate().round(2))
    [0.8  0.64 0.69]
    """

    prior: PanelPrior = field(default_factory=PanelPrior)

    @in_float64
    def fit(self, counts: PrecisionCounts) -> "PanelPosterior":
        """Return the posterior of every generator's precision.

        Works under `jax.jit` and `jax.vmap`. Any pairs of generator and judge may be missing. For
        generators labelled in part, `judgebayes.generators.own_labels.shares` uses votes by item.
        """
        return _fit(self, counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PanelPosterior(Posterior):
    """The posterior: a mixture, over slopes and spreads, of normals on the logit scale."""

    weight: Float[Array, "*batch point"]
    mean: Float[Array, "*batch point generator"]
    """Mean of eta, the logit of the precision of a generator's unlabelled items."""
    covariance: Float[Array, "*batch point generator generator"]
    valid: Float[Array, "*batch generator"]
    invalid: Float[Array, "*batch generator"]
    unlabelled: Float[Array, "*batch generator"]
    status: Int[Array, "*batch"]
    odd: Float[Array, "*batch 3 generator judge"] | None = None
    """The probability that a cell is not ordinary: votes on valid, invalid and unlabelled items."""

    __repr__ = summary

    @in_float64
    def quantile(self, level: float) -> Float[Array, " generator"]:
        """Return a quantile of the precision of each generator's items, including the labelled items."""
        return overall_precision(self, jax.nn.sigmoid(_quantile(self, level)))

    @in_float64
    def sample(self, n_draws: int = 4000, key: Key | None = None) -> Float[Array, "draw generator"]:
        """Return joint draws of the precisions; errors that generators share cancel in differences."""
        return overall_precision(self, self.sample_rates(n_draws, key))

    @in_float64
    def sample_rates(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[Array, "draw generator"]:
        """Return joint draws of g, the probability that an item is valid, labelled or not."""
        key = jax.random.key(0) if key is None else key
        point_key, normal_key = jax.random.split(key)
        point = jax.random.choice(point_key, self.weight.shape[0], (n_draws,), p=self.weight)
        z = jax.random.normal(normal_key, (n_draws, self.mean.shape[1]))
        root = jnp.linalg.cholesky(self.covariance)
        eta = self.mean[point] + jnp.einsum("dgh,dh->dg", root[point], z)
        return jax.nn.sigmoid(eta)


@jax.jit
def _quantile(fit: PanelPosterior, level: Scalar) -> Float[Array, " generator"]:
    deviation = jnp.sqrt(jnp.diagonal(fit.covariance, axis1=-2, axis2=-1))
    low = (fit.mean - 9 * deviation).min(0)
    high = (fit.mean + 9 * deviation).max(0)

    def halve(_: Int[Array, ""] | int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        below = (fit.weight[:, None] * norm.cdf((middle - fit.mean) / deviation)).sum(0) < level
        return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

    low, high = jax.lax.fori_loop(0, BISECTIONS, halve, (low, high))
    return (low + high) / 2


class _Cells(NamedTuple):
    """Votes for valid and all votes: on items labelled valid, labelled invalid, and unlabelled."""

    accepted: Float[Array, "3 generator judge"]
    n: Float[Array, "3 generator judge"]


class _Weights(NamedTuple):
    """The power of each cell's likelihood, the probability that it is odd, sigma_c, and f."""

    power: Float[Array, "3 generator judge"]
    odd: Float[Array, "3 generator judge"]
    sigma: Scalar
    follow: Scalar

    @property
    def contrasts(self) -> Scalar:
        """The weight tau of differences between the judges of an unlabelled generator."""
        return 0.1 + 0.9 * (1 - self.follow)


class _Spreads(NamedTuple):
    slope: Scalar
    d: Scalar
    u: Scalar


def _deviance(count: Array, n: Array, p: Array) -> Array:
    """Return twice the log-likelihood ratio of the observed rate and p."""
    share = count / jnp.where(n > 0, n, 1.0)
    own = xlogy(count, share) + xlog1py(n - count, -share)
    return 2 * jnp.maximum(own - xlogy(count, p) - xlog1py(n - count, -p), 0.0)


def _weigh(cells: _Cells, p: Array, sigma: Scalar) -> tuple[Array, Array]:
    """Return the power of each cell, and the probability that it is odd."""
    count, n = cells
    inflation = 1 + n * p * (1 - p) * sigma**2
    deviance = _deviance(count, n, p) / inflation
    share = count / jnp.where(n > 0, n, 1.0)
    choose = log_choose(n, count)
    own = choose + xlogy(count, share) + xlog1py(n - count, -share)
    ordinary = own - deviance / 2 - jnp.log(inflation) / 2
    anything = choose + betaln(count + SHAPE, n - count + SHAPE) - betaln(SHAPE, SHAPE)
    cast = n > 0
    evidence = jnp.where(cast, anything - ordinary, 0.0).sum(0)
    some = cast.any(0)

    def learn(_: Array | int, share: Array) -> Array:
        """Return the share of a judge's cells that are odd, with the prior's weight of two cells."""
        odd = jnp.where(some, jax.nn.sigmoid(evidence + logit(share)), 0.0)
        return (PRIOR_CELLS * ODD + odd.sum(0)) / (PRIOR_CELLS + some.sum(0))

    share_odd = jax.lax.fori_loop(0, ROUNDS, learn, jnp.full(n.shape[-1], ODD))
    odd = jnp.where(cast, jax.nn.sigmoid(evidence + logit(share_odd)), 0.0)
    return (1 - odd) * (NU + 1) / (NU + deviance) / inflation, odd


def _ordinary(odd: Array, n: Array) -> Float[Array, " judge"]:
    """Return the share of a judge's cells on labelled items that are ordinary."""
    cast = n[:2] > 0
    return ((1 - odd[:2]) * cast).sum((0, 1)) / jnp.maximum(cast.sum((0, 1)), 1)


class _System(Pairs):
    """The weighted likelihood of given counts and prior, its score and its information."""

    def __init__(self, counts: PrecisionCounts, prior: PanelPrior) -> None:
        super().__init__(counts, prior)
        self.cells = _Cells(self.accepted, self.judged)
        self.valid, self.labelled = counts.valid, counts.valid + counts.invalid

    def follow(self, odd: Array) -> Scalar:
        """Return f, from the mean Youden index of judges who vote both ways, weighted by how much."""
        rated = jnp.isfinite(self.youden)
        n = self.cells.n[:2].sum((0, 1))
        share = self.cells.accepted[:2].sum((0, 1)) / jnp.where(n > 0, n, 1.0)
        weight = jnp.where(rated, _ordinary(odd, self.cells.n) * share * (1 - share), 0.0)
        mean = (weight * jnp.where(rated, self.youden, 0.0)).sum() / jnp.maximum(weight.sum(), 1e-6)
        return 1 / (1 + (jnp.clip(mean, 0.0, 1.0) / HALF_YOUDEN) ** 6)

    def logits(self, x: Array) -> Array:
        return vote_logits(*self.inputs(x))

    def evaluate(self, x: Array, at: _Spreads, weights: _Weights) -> tuple[Array, Array, Array]:
        """Return minus twice the log posterior, half its negative gradient, and its information."""
        count, n = self.cells
        at_pairs = self.inputs(x)
        theta, slopes = vote_logits(*at_pairs), vote_slopes(*at_pairs)
        p = jax.nn.sigmoid(theta)
        information = weights.power * n * p * jax.nn.sigmoid(-theta)
        score = weights.power * (count - n * p)
        tau = weights.contrasts
        share = jnp.stack([jnp.ones_like(tau), jnp.ones_like(tau), tau])[:, None, None]
        chi = (share * weights.power * _deviance(count, n, p)).sum()
        by_pair = jnp.einsum("kcgj,cgj->kgj", slopes, share * score)
        weight = jnp.einsum("kcgj,lcgj,cgj->klgj", slopes, slopes, share * information)
        # Rows: the weighted mean over judges has the rest of the weight.
        total = information[2].sum(1)
        inverse = jnp.where(total > 0, (1 - tau) / jnp.where(total > 0, total, 1.0), 0.0)
        row_score = score[2].sum(1)
        chi = chi + (inverse * row_score**2).sum()
        along = slopes[:, 2] * information[2]
        by_pair = by_pair + (inverse * row_score)[:, None] * along
        row = row_margins(along) * jnp.sqrt(inverse)[:, None]
        gradient = self.lift(margins(by_pair), x)
        normal = self.lift(self.lift(margin_matrix(weight) + row.T @ row, x).T, x)
        # Labels.
        eta = self.eta
        g = jax.nn.sigmoid(x[eta])
        chi = chi + _deviance(self.valid, self.labelled, g).sum()
        gradient = gradient.at[eta].add(self.valid - self.labelled * g)
        normal = normal.at[eta, eta].add(jnp.diag(self.labelled * g * (1 - g)))
        rows, centre = self.prior_rows((at.slope, self.prior.slope_scale), at.d, at.u)
        residual = rows @ x - centre
        chi = chi + residual @ residual
        return chi, gradient - rows.T @ residual, normal + rows.T @ rows


@jax.jit
def _fit(method: Panel, counts: PrecisionCounts) -> PanelPosterior:
    prior = method.prior
    system = _System(counts, prior)
    typical = jnp.exp(prior.log_sigma_d[0]), jnp.exp(prior.log_sigma_u[0])
    labelled_cells = system.cells.n[:2] > 0
    labelled = labelled_cells.any((0, 2)).sum()

    def refine(_: Array | int, state: tuple[Array, _Weights]) -> tuple[Array, _Weights]:
        """Weigh the cells anew, with the spread at which their deviance is its expectation."""
        x, weights = state
        x = system.solve(x, ROUND_STEPS, _Spreads(weights.follow, *typical), weights)[0]
        p = jax.nn.sigmoid(system.logits(x))
        power, odd = _weigh(system.cells, p, weights.sigma)
        scaled = power[:2] * _deviance(*system.cells, p)[:2]
        cells = ((1 - odd[:2]) * labelled_cells).sum()
        fitted = 2 * _ordinary(odd, system.cells.n).sum() + 2.0 * labelled
        near = PRIOR_FREEDOM * (TYPICAL / weights.sigma) ** 2
        ratio = (scaled.sum() + near) / (jnp.maximum(cells - fitted, 5.0) + PRIOR_FREEDOM)
        sigma = jnp.clip(weights.sigma * jnp.sqrt(ratio), 0.02, 0.6)
        sigma = jnp.where(labelled_cells.any(), sigma, weights.sigma)
        power, odd = _weigh(system.cells, p, sigma)
        return x, _Weights(power, odd, sigma, system.follow(odd))

    x = system.start()
    sigma = jnp.asarray(TYPICAL)
    # At first a cell is judged by its distance from what a typical judge does.
    _, odd = _weigh(system.cells, jax.nn.sigmoid(system.logits(x)), jnp.asarray(WIDE))
    flat = (1 - odd) / (1 + system.cells.n * 0.25 * sigma**2)
    first = _Weights(flat, odd, sigma, system.follow(odd))
    x, weights = jax.lax.fori_loop(0, ROUNDS, refine, (x, first))
    slope, log_d, log_u = (
        jnp.asarray(axis.ravel()) for axis in np.meshgrid([0.0, 1.0], GRID_D, GRID_U, indexing="ij")
    )

    def at_point(slope: Array, log_d: Array, log_u: Array) -> tuple[Array, ...]:
        at = _Spreads(slope, jnp.exp(log_d), jnp.exp(log_u))
        mean, covariance, evidence, move = system.laplace(x, STEPS, at, weights)
        left = (move[system.eta] / jnp.sqrt(jnp.diag(covariance))).max()
        return mean, covariance, evidence - system.generators * (log_d + log_u), left

    mean, covariance, evidence, left = jax.vmap(at_point)(slope, log_d, log_u)
    spreads = _log_prior_of_spreads(prior, log_d, log_u, weights.sigma)
    following = MOST_FOLLOW * weights.follow
    of_slope = jnp.where(slope > 0.5, jnp.log(following), jnp.log1p(-following))
    weight = jax.nn.softmax(evidence + spreads + of_slope)
    status = grid_status(mean, covariance, (weight @ left) > LEFT)
    labels = counts.valid, counts.invalid, counts.unlabelled
    return PanelPosterior(weight, mean, covariance, *labels, status, weights.odd)


def _log_prior_of_spreads(prior: PanelPrior, log_d: Array, log_u: Array, sigma: Scalar) -> Array:
    """Return the log density of (log sigma_d, log sigma_u): a mixture of two pairs of normals."""
    free = norm.logpdf(log_d, *prior.log_sigma_d) + norm.logpdf(log_u, *prior.log_sigma_u)
    near = norm.logpdf(log_d, jnp.log(1.5 * sigma), 0.5) + norm.logpdf(
        log_u, jnp.log(2 * sigma), 0.5
    )
    return jnp.logaddexp(jnp.log1p(-prior.near_cells) + free, jnp.log(prior.near_cells) + near)
