r"""The recommended estimator: a judge either knows an item's label or votes by its impression.

Judge j, shown an item of generator i, *knows* with probability :math:`k_{ij}` whether it is valid.
Otherwise it votes by its *impression* of the generator's work, and calls the item valid with
probability :math:`q_{ij}`:

.. math::
    \mathrm{TPR}_{ij} &= k_{ij} + (1 - k_{ij}) q_{ij}, \qquad
    1 - \mathrm{TNR}_{ij} = (1 - k_{ij}) q_{ij} \\
    P_{ij} &= k_{ij} g_i + (1 - k_{ij}) q_{ij} \\
    \mathrm{logit}\,k_{ij} &= \kappa_j + u_i, \qquad
    \mathrm{logit}\,q_{ij} = a_j + \lambda \eta_i + d_i, \qquad \eta_i = \mathrm{logit}\,g_i

k is Youden's index. For judges who know (k near 1) this is Rogan and Gladen's correction. For judges who
know nothing and whose impressions follow quality (k = 0, lambda = 1) it is exactly a logit shift, with a
deviation :math:`d_i \sim N(0, \sigma_d^2)` of each generator. In between, the labels decide.

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
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Key, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.posterior import ByQuantile
from judgebayes.inference.status import Status
from judgebayes.inference.summary import summary

POINTS_D = 7
POINTS_U = 3
SPAN = 1.9
"""Half-width of the grids, in prior standard deviations of log sigma."""
STEPS = 16
CELL_ROUNDS = 3
BISECTIONS = 45


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
    >>> from judgebayes.generators import Impression, PrecisionCounts
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
    def fit(self, counts: PrecisionCounts) -> "FittedImpression":
        """Return the posterior of every generator's precision.

        Works under `jax.jit` and `jax.vmap`. Any pairs of generator and judge may be missing. A
        generator should be labelled in full, or nearly, or not at all. With few labels of many
        generators the intervals are too narrow; use `Stratified` instead.
        """
        return _fit(self, counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedImpression(ByQuantile):
    """The posterior: a mixture, over a grid of (sigma_d, sigma_u), of normals on the logit scale."""

    weight: Float[Array, "*batch point"]
    mean: Float[Array, "*batch point generator"]
    """Mean of eta, the logit of the precision of a generator's unlabelled items."""
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
        """Return a quantile of the precision of each generator's items, including the labelled items."""
        return _overall_precision(self, jax.nn.sigmoid(_quantile(self, level)))

    @in_float64
    def draws(self, n_draws: int = 4000, key: Key | None = None) -> Float[Array, "draw generator"]:
        """Return joint draws of the precisions; errors that generators share cancel in differences."""
        g = self.rate_draws(n_draws, key)
        return jax.vmap(lambda one: _overall_precision(self, one))(g)

    @in_float64
    def rate_draws(
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


def _overall_precision(fit: FittedImpression, g: Array) -> Array:
    """Return the share of valid items among all, from the labels and g for the unlabelled items."""
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
    """Empirical logits of shares, their sampling variances, and which cells have votes."""

    logit: Float[Array, "generator judge"]
    variance: Float[Array, "generator judge"]
    observed: Bool[Array, "generator judge"]


class _Spreads(NamedTuple):
    d: Scalar
    u: Scalar
    cell: Scalar


class _Parameters(NamedTuple):
    """The parameters that Gauss-Newton optimises at given spreads."""

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
    observed = n > 0
    return _Cells(logit(share), 1 / jnp.where(observed, n * share * (1 - share), 1.0), observed)


class _System:
    """The least-squares problem for given counts and prior: residuals and normal equations."""

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
        # 1 - t, 1 - f and 1 - p as products, to avoid cancellation.
        t1, f1, p1 = (1 - k) * (1 - q), (1 - q) + k * q, k * (1 - g) + (1 - k) * (1 - q)
        by_a = by_k = cross = gradient_a = gradient_k = jnp.zeros(q.shape)
        cell_chi = jnp.zeros(())
        for cells, value, rest, on_a, on_k in (
            (self.true, t, t1, q / t, k / t),
            (self.false, f, f1, (1 - q) / f1, -k / f1),
        ):
            weight = jnp.where(cells.observed, 1 / (cells.variance + spreads.cell**2), 0.0)
            error = jnp.where(cells.observed, cells.logit - (jnp.log(value) - jnp.log(rest)), 0.0)
            by_a, by_k = by_a + weight * on_a**2, by_k + weight * on_k**2
            cross = cross + weight * on_a * on_k
            gradient_a, gradient_k = (
                gradient_a + weight * on_a * error,
                gradient_k + weight * on_k * error,
            )
            cell_chi = cell_chi + (weight * error**2).sum()
        jacobian_a, jacobian_k = self._jacobians(at, slope)
        normal = (
            jacobian_a.T @ _two_way_normal_matrix(by_a) @ jacobian_a
            + jacobian_a.T @ _two_way_normal_matrix(cross) @ jacobian_k
            + jacobian_k.T @ _two_way_normal_matrix(cross) @ jacobian_a
            + jacobian_k.T @ _two_way_normal_matrix(by_k) @ jacobian_k
        )
        gradient = jacobian_a.T @ _margin_sums(gradient_a) + jacobian_k.T @ _margin_sums(gradient_k)
        # Unlabelled generators: the mean over judges of the logit shares.
        share = self.row.observed / jnp.maximum(self.row.observed.sum(1), 1)[:, None]
        some = self.row.observed.any(1)
        noise = (share**2 * (self.row.variance + spreads.cell**2)).sum(1)
        row_error = (share * (self.row.logit - (jnp.log(p) - jnp.log(p1)))).sum(1)
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
        normal, gradient = normal + rows.T @ rows, gradient + rows.T @ (width * row_error)
        # Labels.
        label_weight = jnp.where(self.label.observed, 1 / self.label.variance, 0.0)
        label_error = jnp.where(self.label.observed, self.label.logit - at.eta, 0.0)
        eta_slice = slice(2 * self.judges, 2 * self.judges + self.generators)
        normal = normal.at[eta_slice, eta_slice].add(jnp.diag(label_weight))
        gradient = gradient.at[eta_slice].add(label_weight * label_error)
        prior_rows, centre = self.precision_of_prior(spreads)
        prior_residual = prior_rows @ x - centre
        chi = (
            cell_chi
            + ((width * row_error) ** 2).sum()
            + (label_weight * label_error**2).sum()
            + prior_residual @ prior_residual
        )
        return (
            chi,
            gradient - prior_rows.T @ prior_residual,
            normal + prior_rows.T @ prior_rows,
            cell_chi,
        )

    def _jacobians(self, at: _Parameters, slope: Array) -> tuple[Array, Array]:
        """Return the Jacobians of the predictors' judge and generator parts in all parameters."""
        g, j = self.generators, self.judges
        one_g, one_j = jnp.eye(g), jnp.eye(j)
        none = jnp.zeros
        jacobian_a = jnp.concatenate(
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
        jacobian_k = jnp.concatenate(
            [
                jnp.concatenate([none((j, j)), one_j, none((j, 3 * g + 4))], 1),
                jnp.concatenate([none((g, 2 * j + 2 * g)), one_g, none((g, 4))], 1),
            ]
        )
        return jacobian_a, jacobian_k

    def log_spreads(self, spreads: _Spreads) -> Array:
        """Return the log scales of the normal densities, up to terms without the spreads."""
        total = self.generators * (jnp.log(spreads.d) + jnp.log(spreads.u))
        for cells in (self.true, self.false):
            each = 0.5 * jnp.log(cells.variance + spreads.cell**2)
            total = total + jnp.where(cells.observed, each, 0.0).sum()
        return total

    def solve(self, spreads: _Spreads, x: Array, steps: int) -> tuple[Array, Array, Array, Array]:
        """Return the mode, its Gauss-Newton matrix, chi-square, and the last step's length."""

        def step(state: _Search, _: None) -> tuple[_Search, Array]:
            x, damping, (chi, gradient, normal, cell) = state
            damped = normal + damping * jnp.diag(jnp.diag(normal))
            move = jax.scipy.linalg.solve(damped, gradient, assume_a="pos")
            trial = self.evaluate(x + move, spreads)
            better = trial[0] <= chi
            accepted = jax.tree.map(
                lambda new, old: jnp.where(better, new, old), trial, (chi, gradient, normal, cell)
            )
            at = jnp.where(better, x + move, x)
            return (at, jnp.where(better, damping * 0.1, damping * 10), accepted), jnp.abs(
                move
            ).max()

        initial = (x, jnp.asarray(1e-3), self.evaluate(x, spreads))
        (x, _, evaluation), moves = jax.lax.scan(step, initial, None, length=steps)
        return x, evaluation[2], evaluation[0], moves[-1]


def _two_way_normal_matrix(weight: Array) -> Array:
    """Return the normal matrix of a two-way layout, judges first, generators after."""
    return jnp.concatenate(
        [
            jnp.concatenate([jnp.diag(weight.sum(0)), weight.T], 1),
            jnp.concatenate([weight, jnp.diag(weight.sum(1))], 1),
        ]
    )


def _margin_sums(cells: Array) -> Array:
    return jnp.concatenate([cells.sum(0), cells.sum(1)])


@jax.jit
def _fit(method: Impression, counts: PrecisionCounts) -> FittedImpression:
    prior = method.prior
    system = _System(counts, prior)
    generators, judges = counts.accepted.shape
    labelled = system.true.observed.any(1).sum()
    n_observed = system.true.observed.sum() + system.false.observed.sum()
    degrees_of_freedom = jnp.maximum(n_observed - 2.0 * judges - 2.0 * labelled, 5.0)
    typical_spreads = jnp.exp(prior.log_sigma_d[0]), jnp.exp(prior.log_sigma_u[0])

    def refine(_: Int[Array, ""] | int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Scale the cell spread so that the cells' chi-square equals its degrees of freedom."""
        x, cell = state
        x = system.solve(_Spreads(typical_spreads[0], typical_spreads[1], cell), x, STEPS // 2)[0]
        chi = system.evaluate(x, _Spreads(typical_spreads[0], typical_spreads[1], cell))[3]
        rescaled = jnp.clip(cell * jnp.sqrt(chi / degrees_of_freedom), 0.02, 1.0)
        return x, jnp.where(n_observed > 0, rescaled, cell)

    x, cell = jax.lax.fori_loop(0, CELL_ROUNDS, refine, (system.start(), jnp.asarray(0.15)))
    z_d, z_u = (np.linspace(-SPAN, SPAN, n) for n in (POINTS_D, POINTS_U))
    z = np.stack([a.ravel() for a in np.meshgrid(z_d, z_u, indexing="ij")])
    d, u = (
        jnp.exp(location + scale * row)
        for (location, scale), row in zip((prior.log_sigma_d, prior.log_sigma_u), z, strict=True)
    )

    def at_point(d: Array, u: Array) -> tuple[Array, Array, Array, Array, Array]:
        spreads = _Spreads(d, u, cell)
        mode, normal, chi, move = system.solve(spreads, x, STEPS // 2)
        root = jnp.linalg.cholesky(normal)
        evidence = -0.5 * chi - system.log_spreads(spreads) - jnp.log(jnp.diag(root)).sum()
        inverse = jax.scipy.linalg.cho_solve((root, True), jnp.eye(len(mode)))
        eta_slice = slice(2 * judges, 2 * judges + generators)
        return mode[eta_slice], inverse[eta_slice, eta_slice], evidence, mode[-4], move

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
