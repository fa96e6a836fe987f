r"""The recommended estimator: judges who know the label, or else go by their impression.

Judge j, shown an item of generator i, *knows* with probability :math:`k_{ij}` whether it is valid;
otherwise it goes by its *impression* of the generator's work and calls it valid with probability
:math:`q_{ij}`:

.. math::
    \mathrm{TPR}_{ij} &= k_{ij} + (1 - k_{ij}) q_{ij}, \qquad
    1 - \mathrm{TNR}_{ij} = (1 - k_{ij}) q_{ij} \\
    P_{ij} &= k_{ij} g_i + (1 - k_{ij}) q_{ij} \\
    \mathrm{logit}\,k_{ij} &= \kappa_j + u_i, \qquad
    \mathrm{logit}\,q_{ij} = a_j + \lambda \eta_i + d_i, \qquad \eta_i = \mathrm{logit}\,g_i

k is Youden's index. Where judges know (k near 1) this is Rogan and Gladen's correction; where they
know nothing and impressions follow quality (k = 0, lambda = 1) it is exactly a logit shift, with a
deviation :math:`d_i \sim N(0, \sigma_d^2)` of each generator's own. In between, labels decide.

What makes the intervals honest: the deviations d and u belong to a generator and are common to all
of its judges. Judges who read the same items err together, on the items and on what the generator's
work looks like; a deviation that no number of judges averages away stands for both. And an
unlabelled generator enters through the *mean* over judges of its logit shares only: how its judges
differ from one another would, in this model, tell knowledge from impression, and on real votes it
tells mainly who likes whose style.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logit
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.arrays import Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference.status import Status
from judgebayes.inference.summary import summary

__all__ = ["FittedImpression", "Impression", "ImpressionPrior"]

POINTS_D = 7
POINTS_U = 3
SPAN = 1.9
"""How many prior standard deviations of log sigma the grids reach to each side."""
STEPS = 16
CELL_ROUNDS = 3
SETTLED = 1e-6
BISECTIONS = 45


class ImpressionPrior(NamedTuple):
    """Normal priors as (location, scale); the sigmas' are of their logarithms."""

    slope: tuple[float, float] = (1.0, 0.3)
    """lambda of judges who know nothing. Judges who know much leave few items to impressions, and
    there is less reason for those to follow quality: the location is multiplied by (1 - J^2)^3, J
    being the judges' mean Youden index on the labelled items."""
    impression: tuple[float, float] = (0.0, 1.0)
    """The mean over judges of a_j, and 0.7 for their spread."""
    knowledge: tuple[float, float] = (-0.5, 1.5)
    """The mean over judges of kappa_j, and 0.7 for their spread."""
    quality: tuple[float, float] = (1.5, 1.5)
    """The mean over generators of eta_i."""
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
        Priors; their defaults suit judges from useless to excellent.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from judgebayes.generators import Impression, counts_from_matrix
    >>> seen = jnp.array([[0.86, 0.86], [0.7, 0.9], [0.8, 0.7]])
    >>> confusion = [jnp.zeros((3, 2)).at[0].set(n) for n in (6, 14, 8, 72)]
    >>> counts = counts_from_matrix(seen, 100 + 0 * seen, confusion=confusion)
    >>> fit = Impression().fit(counts)
    >>> print(fit.estimate().round(2))
    [0.8  0.77 0.69]
    """

    prior: ImpressionPrior = field(default_factory=ImpressionPrior)

    @in_float64
    def fit(self, counts: PrecisionCounts) -> "FittedImpression":
        """Return the posterior of every generator's precision.

        Works under `jax.jit` and `jax.vmap`. Any pairs of generator and judge may be missing. A
        generator should be labelled in full, or nearly, or not at all: with few labels of many
        generators the intervals are too narrow, and `Stratified` is the estimator to take.
        """
        return _fit(self, counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedImpression:
    """The posterior: a mixture, over a grid of (sigma_d, sigma_u), of normals on the logit scale."""

    weight: Float[Array, "*batch point"]
    mean: Float[Array, "*batch point generator"]
    """Of eta, the logit of the precision of a generator's unlabelled items."""
    covariance: Float[Array, "*batch point generator generator"]
    valid: Float[Array, "*batch generator"]
    invalid: Float[Array, "*batch generator"]
    unlabelled: Float[Array, "*batch generator"]
    sigma_cell: Float[Array, "*batch"]
    sigma_d: Float[Array, "*batch"]
    """Posterior mean of the spread of the generators' impression shifts."""
    slope: Float[Array, "*batch"]
    """Posterior mean of lambda."""
    status: Int[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def quantile(self, level: float) -> Float[Array, " generator"]:
        """Return a quantile of the precision of each generator's items, labelled ones included."""
        return _realised(self, jax.nn.sigmoid(_quantile(self, level)))

    def estimate(self) -> Float[Array, " generator"]:
        """Return the posterior medians."""
        return self.quantile(0.5)

    def interval(
        self, level: float = 0.9
    ) -> tuple[Float[Array, " generator"], Float[Array, " generator"]]:
        """Return the ends of the central intervals."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    @in_float64
    def draws(
        self, n_draws: int = 4000, key: PRNGKeyArray | None = None
    ) -> Float[Array, "draw generator"]:
        """Return joint draws of the precisions: what generators share cancels in differences."""
        key = jax.random.key(0) if key is None else key
        which, noise = jax.random.split(key)
        point = jax.random.choice(which, self.weight.shape[0], (n_draws,), p=self.weight)
        z = jax.random.normal(noise, (n_draws, self.mean.shape[1]))
        root = jnp.linalg.cholesky(self.covariance)
        eta = self.mean[point] + jnp.einsum("dgh,dh->dg", root[point], z)
        return jax.vmap(lambda g: _realised(self, g))(jax.nn.sigmoid(eta))


def _realised(fit: FittedImpression, g: Array) -> Array:
    """Return the share of valid items among all, the labelled ones being known."""
    total = fit.valid + fit.invalid + fit.unlabelled
    return jnp.where(
        total > 0, (fit.valid + fit.unlabelled * g) / jnp.where(total > 0, total, 1.0), g
    )


@jax.jit
def _quantile(fit: FittedImpression, level: Scalar) -> Float[Array, " generator"]:
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
    """Empirical logits of shares, their sampling variances, and which cells there are."""

    logit: Float[Array, "generator judge"]
    variance: Float[Array, "generator judge"]
    seen: Bool[Array, "generator judge"]


class _Spreads(NamedTuple):
    d: Scalar
    u: Scalar
    cell: Scalar


class _Parameters(NamedTuple):
    """What is found by Gauss-Newton at given spreads."""

    a: Float[Array, " judge"]
    kappa: Float[Array, " judge"]
    eta: Float[Array, " generator"]
    d: Float[Array, " generator"]
    u: Float[Array, " generator"]
    centres: Float[Array, " 4"]
    """lambda, and the means of a, kappa and eta."""


_Search = tuple[Array, Array, tuple[Array, Array, Array, Array]]


def _cells(count: Array, n: Array) -> _Cells:
    share = (count + 0.5) / (n + 1.0)
    seen = n > 0
    return _Cells(logit(share), 1 / jnp.where(seen, n * share * (1 - share), 1.0), seen)


class _System:
    """The least-squares problem at given counts and prior: residuals, normal equations."""

    def __init__(self, counts: PrecisionCounts, prior: ImpressionPrior) -> None:
        self.prior = prior
        self.true = _cells(counts.true_accepted, counts.valid_judged)
        self.false = _cells(counts.false_accepted, counts.invalid_judged)
        self.row = _cells(counts.accepted, counts.judged)
        self.label = _cells(counts.valid, counts.valid + counts.invalid)
        self.generators, self.judges = counts.accepted.shape
        rates = counts.rates()
        youden = rates.tpr + rates.tnr - 1
        rated = jnp.isfinite(youden)
        mean = jnp.where(rated, youden, 0.0).sum() / jnp.maximum(rated.sum(), 1)
        location, scale = prior.slope
        fade = (1 - jnp.clip(mean, 0.0, 1.0) ** 2) ** 3
        self.means = [
            (location * fade, scale),
            prior.impression,
            prior.knowledge,
            prior.quality,
        ]

    def split(self, x: Array) -> _Parameters:
        g, j = self.generators, self.judges
        ends = np.cumsum([j, j, g, g, g])
        return _Parameters(*jnp.split(x, ends))

    def start(self) -> Array:
        p = self.prior
        g, j = self.generators, self.judges
        return jnp.concatenate(
            [
                jnp.full(j, 0.3),
                jnp.full(j, p.knowledge[0]),
                jnp.full(g, p.quality[0]),
                jnp.zeros(2 * g),
                jnp.array([0.5, 0.3, p.knowledge[0], p.quality[0]]),
            ]
        )

    def precision_of_prior(self, spreads: _Spreads) -> tuple[Array, Array]:
        """Return the rows of the standardised prior residuals, R x - c."""
        p, g, j = self.prior, self.generators, self.judges
        size = 2 * j + 3 * g + 4
        scale = jnp.concatenate(
            [
                jnp.full(2 * j, 1 / p.judge_spread),
                jnp.full(g, 1 / p.quality_spread),
                jnp.full(g, 1.0) / spreads.d,
                jnp.full(g, 1.0) / spreads.u,
                1 / jnp.array([m[1] for m in self.means]),
            ]
        )
        pull = np.zeros((size, size))
        pull[:j, size - 3] = pull[j : 2 * j, size - 2] = pull[2 * j : 2 * j + g, size - 1] = -1
        rows = scale[:, None] * (jnp.eye(size) + pull)
        centre = jnp.zeros(size).at[-4:].set(jnp.array([m[0] for m in self.means]))
        return rows, scale * centre

    def evaluate(self, x: Array, spreads: _Spreads) -> tuple[Array, Array, Array, Array]:
        """Return chi-square, its half gradient, Gauss-Newton matrix, and the cells' chi-square."""
        at = self.split(x)
        slope = at.centres[0]
        q = jax.nn.sigmoid(at.a + (slope * at.eta + at.d)[:, None])
        k = jax.nn.sigmoid(at.kappa + at.u[:, None])
        g = jax.nn.sigmoid(at.eta)[:, None]
        t, f, p = k + (1 - k) * q, (1 - k) * q, k * g + (1 - k) * q
        # 1 - t, 1 - f and 1 - p in products, so that none of them is a difference of near equals.
        t1, f1, p1 = (1 - k) * (1 - q), (1 - q) + k * q, k * (1 - g) + (1 - k) * (1 - q)
        by_a = by_k = cross = on_right_a = on_right_k = jnp.zeros(q.shape)
        cell_chi = jnp.zeros(())
        for cells, value, rest, on_a, on_k in (
            (self.true, t, t1, q / t, k / t),
            (self.false, f, f1, (1 - q) / f1, -k / f1),
        ):
            weight = jnp.where(cells.seen, 1 / (cells.variance + spreads.cell**2), 0.0)
            gap = jnp.where(cells.seen, cells.logit - (jnp.log(value) - jnp.log(rest)), 0.0)
            by_a, by_k = by_a + weight * on_a**2, by_k + weight * on_k**2
            cross = cross + weight * on_a * on_k
            on_right_a, on_right_k = (
                on_right_a + weight * on_a * gap,
                on_right_k + weight * on_k * gap,
            )
            cell_chi = cell_chi + (weight * gap**2).sum()
        to_a, to_k = self._maps(at, slope)
        normal = (
            to_a.T @ _base(by_a) @ to_a
            + to_a.T @ _base(cross) @ to_k
            + to_k.T @ _base(cross) @ to_a
            + to_k.T @ _base(by_k) @ to_k
        )
        gradient = to_a.T @ _sums(on_right_a) + to_k.T @ _sums(on_right_k)
        # Unlabelled generators: the mean over judges of the logit shares.
        share = self.row.seen / jnp.maximum(self.row.seen.sum(1), 1)[:, None]
        some = self.row.seen.any(1)
        noise = (share**2 * (self.row.variance + spreads.cell**2)).sum(1)
        off = (share * (self.row.logit - (jnp.log(p) - jnp.log(p1)))).sum(1)
        width = jnp.where(some, 1 / jnp.sqrt(jnp.where(some, noise, 1.0)), 0.0)
        on_a = share * (1 - k) * q * (1 - q) / (p * p1)
        on_k = share * (g - q) * k * (1 - k) / (p * p1)
        on_eta = (share * k * g * (1 - g) / (p * p1)).sum(1)
        one = jnp.eye(self.generators)
        rows = width[:, None] * jnp.concatenate(
            [
                on_a,
                on_k,
                one * (slope * on_a.sum(1) + on_eta)[:, None],
                one * on_a.sum(1)[:, None],
                one * on_k.sum(1)[:, None],
                (at.eta * on_a.sum(1))[:, None],
                jnp.zeros((self.generators, 3)),
            ],
            axis=1,
        )
        normal, gradient = normal + rows.T @ rows, gradient + rows.T @ (width * off)
        # Labels.
        known = jnp.where(self.label.seen, 1 / self.label.variance, 0.0)
        miss = jnp.where(self.label.seen, self.label.logit - at.eta, 0.0)
        where = slice(2 * self.judges, 2 * self.judges + self.generators)
        normal = normal.at[where, where].add(jnp.diag(known))
        gradient = gradient.at[where].add(known * miss)
        prior_rows, centre = self.precision_of_prior(spreads)
        excess = prior_rows @ x - centre
        chi = cell_chi + ((width * off) ** 2).sum() + (known * miss**2).sum() + excess @ excess
        return chi, gradient - prior_rows.T @ excess, normal + prior_rows.T @ prior_rows, cell_chi

    def _maps(self, at: _Parameters, slope: Array) -> tuple[Array, Array]:
        """Return how the predictors' judge and generator parts depend on all parameters."""
        g, j = self.generators, self.judges
        one_g, one_j = jnp.eye(g), jnp.eye(j)
        none = jnp.zeros
        to_a = jnp.concatenate(
            [
                jnp.concatenate([one_j, none((j, j + 3 * g + 4))], 1),
                jnp.concatenate(
                    [
                        none((g, 2 * j)),
                        slope * one_g,
                        one_g,
                        none((g, g)),
                        at.eta[:, None],
                        none((g, 3)),
                    ],
                    1,
                ),
            ]
        )
        to_k = jnp.concatenate(
            [
                jnp.concatenate([none((j, j)), one_j, none((j, 3 * g + 4))], 1),
                jnp.concatenate([none((g, 2 * j + 2 * g)), one_g, none((g, 4))], 1),
            ]
        )
        return to_a, to_k

    def log_spreads(self, spreads: _Spreads) -> Array:
        """Return the log of the normal densities' scales, as far as they depend on the spreads."""
        total = self.generators * (jnp.log(spreads.d) + jnp.log(spreads.u))
        for cells in (self.true, self.false):
            each = 0.5 * jnp.log(cells.variance + spreads.cell**2)
            total = total + jnp.where(cells.seen, each, 0.0).sum()
        return total

    def solve(self, spreads: _Spreads, x: Array, steps: int) -> tuple[Array, Array, Array, Array]:
        """Return the mode, its Gauss-Newton matrix, chi-square, and the last step's length."""

        def step(state: _Search, _: None) -> tuple[_Search, Array]:
            x, damping, (chi, gradient, normal, cell) = state
            damped = normal + damping * jnp.diag(jnp.diag(normal))
            move = jax.scipy.linalg.solve(damped, gradient, assume_a="pos")
            there = self.evaluate(x + move, spreads)
            better = there[0] <= chi
            kept = jax.tree.map(
                lambda new, old: jnp.where(better, new, old), there, (chi, gradient, normal, cell)
            )
            at = jnp.where(better, x + move, x)
            return (at, jnp.where(better, damping * 0.1, damping * 10), kept), jnp.abs(move).max()

        begin = (x, jnp.asarray(1e-3), self.evaluate(x, spreads))
        (x, _, found), moves = jax.lax.scan(step, begin, None, length=steps)
        return x, found[2], found[0], moves[-1]


def _base(weight: Array) -> Array:
    """Return the normal matrix of a two-way layout, judges first, generators after."""
    return jnp.concatenate(
        [
            jnp.concatenate([jnp.diag(weight.sum(0)), weight.T], 1),
            jnp.concatenate([weight, jnp.diag(weight.sum(1))], 1),
        ]
    )


def _sums(cells: Array) -> Array:
    return jnp.concatenate([cells.sum(0), cells.sum(1)])


@jax.jit
def _fit(method: Impression, counts: PrecisionCounts) -> FittedImpression:
    prior = method.prior
    system = _System(counts, prior)
    generators, judges = counts.accepted.shape
    labelled = system.true.seen.any(1).sum()
    seen = system.true.seen.sum() + system.false.seen.sum()
    freedom = jnp.maximum(seen - 2.0 * judges - 2.0 * labelled, 5.0)
    typical = jnp.exp(prior.log_sigma_d[0]), jnp.exp(prior.log_sigma_u[0])

    def refine(_: Int[Array, ""] | int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Scale the cell spread until the cells' chi-square is its degrees of freedom."""
        x, cell = state
        x = system.solve(_Spreads(typical[0], typical[1], cell), x, STEPS // 2)[0]
        chi = system.evaluate(x, _Spreads(typical[0], typical[1], cell))[3]
        grown = jnp.clip(cell * jnp.sqrt(chi / freedom), 0.02, 1.0)
        return x, jnp.where(seen > 0, grown, cell)

    x, cell = jax.lax.fori_loop(0, CELL_ROUNDS, refine, (system.start(), jnp.asarray(0.15)))
    z_d, z_u = (np.linspace(-SPAN, SPAN, n) for n in (POINTS_D, POINTS_U))
    z = np.stack([a.ravel() for a in np.meshgrid(z_d, z_u, indexing="ij")])
    d, u = (
        jnp.exp(location + scale * row)
        for (location, scale), row in zip((prior.log_sigma_d, prior.log_sigma_u), z, strict=True)
    )

    def at_point(d: Array, u: Array) -> tuple[Array, Array, Array, Array, Array]:
        spreads = _Spreads(d, u, cell)
        found, normal, chi, move = system.solve(spreads, x, STEPS // 2)
        root = jnp.linalg.cholesky(normal)
        evidence = -0.5 * chi - system.log_spreads(spreads) - jnp.log(jnp.diag(root)).sum()
        inverse = jax.scipy.linalg.cho_solve((root, True), jnp.eye(len(found)))
        where = slice(2 * judges, 2 * judges + generators)
        return found[where], inverse[where, where], evidence, found[-4], move

    mean, covariance, evidence, slope, move = jax.vmap(at_point)(d, u)
    weight = jax.nn.softmax(evidence - 0.5 * jnp.asarray((z**2).sum(0)))
    finite = jnp.isfinite(mean).all() & jnp.isfinite(covariance).all()
    status = jnp.select(
        [~finite, (weight @ move) > 1e-3], [int(Status.NONFINITE), int(Status.MAX_STEPS)], 0
    )
    return FittedImpression(
        weight,
        mean,
        covariance,
        counts.valid,
        counts.invalid,
        counts.unlabelled,
        cell,
        weight @ d,
        weight @ slope,
        status,
    )
