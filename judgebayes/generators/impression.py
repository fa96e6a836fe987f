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

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logit
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Key, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.posterior import Posterior, grid_status, overall_precision, spread_grid
from judgebayes.inference.status import summary
from judgebayes.models.cell_votes import impressions, vote_logits

POINTS = (7, 3)
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
    def fit(self, counts: PrecisionCounts) -> "ImpressionPosterior":
        """Return the posterior of every generator's precision.

        Works under `jax.jit` and `jax.vmap`. Any pairs of generator and judge may be missing. A
        generator should be labelled in full, or nearly, or not at all. With few labels of many
        generators the intervals are too narrow; use `Stratified` instead.
        """
        return _fit(self, counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ImpressionPosterior(Posterior):
    """The posterior: a mixture, over a grid of (sigma_d, sigma_u), of normals on the logit scale."""

    weight: Float[Array, "*batch point"]
    mean: Float[Array, "*batch point generator"]
    """Mean of eta, the logit of the precision of a generator's unlabelled items."""
    covariance: Float[Array, "*batch point generator generator"]
    valid: Float[Array, "*batch generator"]
    invalid: Float[Array, "*batch generator"]
    unlabelled: Float[Array, "*batch generator"]
    status: Int[Array, "*batch"]

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
def _quantile(fit: ImpressionPosterior, level: Scalar) -> Float[Array, " generator"]:
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

    logit: Float[Array, "*label generator judge"]
    variance: Float[Array, "*label generator judge"]
    observed: Bool[Array, "*label generator judge"]


class _Spreads(NamedTuple):
    d: Scalar
    u: Scalar
    cell: Scalar


_Search = tuple[Array, Array, Array, tuple[Array, Array, Array]]


def _cells(count: Array, n: Array) -> _Cells:
    share = (count + 0.5) / (n + 1.0)
    observed = n > 0
    return _Cells(logit(share), 1 / jnp.where(observed, n * share * (1 - share), 1.0), observed)


def vote_slopes(accept: Array, know: Array, eta: Array) -> Float[Array, "input 3 generator judge"]:
    """Return the derivatives of `vote_logits` in its three inputs."""
    along = jnp.broadcast_to(jnp.eye(3)[:, :, None, None], (3, 3, *accept.shape))
    return jax.vmap(lambda step: jax.jvp(vote_logits, (accept, know, eta), tuple(step))[1])(along)


def margins(pairs: Float[Array, "input generator judge"]) -> Float[Array, " margin"]:
    """Return sums by judge for accept and know, then by generator for accept, know and eta."""
    by_judge, by_generator = pairs[:2].sum(1), pairs.sum(2)
    return jnp.concatenate([by_judge.ravel(), by_generator.ravel()])


def row_margins(
    pairs: Float[Array, "input generator judge"],
) -> Float[Array, "generator margin"]:
    """Return the margins of each generator's row alone."""
    g = pairs.shape[1]
    own = [jnp.diag(total) for total in pairs.sum(2)]
    return jnp.concatenate([pairs[0], pairs[1], *own], axis=1).reshape(g, -1)


def margin_matrix(
    weight: Float[Array, "input input generator judge"],
) -> Float[Array, "margin margin"]:
    """Return the normal matrix of the margins, from the weights of each pair's inputs."""
    two, three = range(2), range(3)
    judges = [[jnp.diag(weight[a, b].sum(0)) for b in two] for a in two]
    mixed = [[weight[a, b].T for b in three] for a in two]
    generators = [[jnp.diag(weight[a, b].sum(1)) for b in three] for a in three]
    upper = [[*judges[a], *mixed[a]] for a in two]
    lower = [[mixed[0][a].T, mixed[1][a].T, *generators[a]] for a in three]
    return jnp.block([*upper, *lower])


class Pairs(ABC):
    """The parameters of generators and judges as a vector, their prior, and the search for the mode.

    In order: a and kappa of the judges; eta, d and u of the generators; lambda, and the means of a,
    kappa and eta.
    """

    def __init__(self, counts: PrecisionCounts, prior: Any) -> None:
        self.prior = prior
        self.generators, self.judges = counts.accepted.shape
        rates = counts.rates()
        self.youden = rates.tpr + rates.tnr - 1
        self.accepted = jnp.stack([counts.true_accepted, counts.false_accepted, counts.accepted])
        self.judged = jnp.stack([counts.valid_judged, counts.invalid_judged, counts.judged])
        self.eta = slice(2 * self.judges, 2 * self.judges + self.generators)

    @abstractmethod
    def evaluate(self, x: Array, *at: Any) -> tuple[Array, Array, Array]:
        """Return minus twice the log posterior, half its negative gradient, and its information."""

    def inputs(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the logits of accepting and of knowing, and eta, of every pair."""
        g, j = self.generators, self.judges
        a, kappa, eta, d, u, centres = jnp.split(x, np.cumsum([j, j, g, g, g]))
        return impressions(a, kappa, eta, centres[0] * eta + d, u)

    def lift(self, margins: Float[Array, "*rows margin"], x: Array) -> Array:
        """Return derivatives in the parameters from those in (a, kappa, lambda eta + d, u, eta)."""
        g, j = self.generators, self.judges
        centres, eta = x[-4:], x[self.eta]
        judges, shift, u, own = jnp.split(margins, np.cumsum([2 * j, g, g]), axis=-1)
        slope = (shift @ eta)[..., None]
        none = jnp.zeros((*margins.shape[:-1], 3))
        return jnp.concatenate([judges, own + centres[0] * shift, shift, u, slope, none], axis=-1)

    def start(self) -> Array:
        """Return where the search starts."""
        p, g, j = self.prior, self.generators, self.judges
        parts = [jnp.full(j, 0.3), jnp.full(j, p.knowledge[0]), jnp.full(g, p.quality[0])]
        centres = jnp.array([0.5, 0.3, p.knowledge[0], p.quality[0]])
        return jnp.concatenate([*parts, jnp.zeros(2 * g), centres])

    def prior_rows(self, slope: tuple[Scalar, Scalar], d: Scalar, u: Scalar) -> tuple[Array, Array]:
        """Return R and c of the standardised prior residuals R x - c."""
        p, g, j = self.prior, self.generators, self.judges
        size = 2 * j + 3 * g + 4
        means = [slope, p.impression, p.knowledge, p.quality]
        scale = jnp.concatenate(
            [
                jnp.full(2 * j, 1 / p.judge_spread),
                jnp.full(g, 1 / p.quality_spread),
                jnp.full(g, 1.0) / d,
                jnp.full(g, 1.0) / u,
                1 / jnp.array([m[1] for m in means]),
            ]
        )
        pull = np.zeros((size, size))
        pull[:j, size - 3] = pull[j : 2 * j, size - 2] = pull[self.eta, size - 1] = -1
        centre = jnp.zeros(size).at[-4:].set(jnp.stack([jnp.asarray(m[0]) for m in means]))
        return scale[:, None] * (jnp.eye(size) + pull), scale * centre

    def solve(self, x: Array, steps: int, *at: Any) -> tuple[Array, Array, Array, Array]:
        """Return the mode, its information, minus twice the log posterior, and the next step."""

        def step(state: _Search, _: None) -> tuple[_Search, Array]:
            x, move, damping, old = state
            new = self.evaluate(x + move, *at)
            better = new[0] <= old[0] + 1e-10 * jnp.abs(new[0])
            x = jnp.where(better, x + move, x)
            chi, gradient, normal = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
            damping = jnp.where(better, damping * 0.1, damping * 10)
            damped = normal + damping * jnp.diag(jnp.diag(normal))
            move = jax.scipy.linalg.solve(damped, gradient, assume_a="pos")
            return (x, move, damping, (chi, gradient, normal)), jnp.abs(move)

        size = len(x)
        none = jnp.asarray(jnp.inf), jnp.zeros(size), jnp.eye(size)
        first = (x, jnp.zeros(size), jnp.asarray(1e-2), none)
        (x, _, _, (chi, _, normal)), moves = jax.lax.scan(step, first, None, length=steps + 1)
        return x, normal, chi, moves[-1]

    def laplace(self, x: Array, steps: int, *at: Any) -> tuple[Array, Array, Array, Array]:
        """Return mean and covariance of eta, the log evidence given the spreads, and the next step."""
        mode, normal, chi, move = self.solve(x, steps, *at)
        root = jnp.linalg.cholesky(normal)
        evidence = -0.5 * chi - jnp.log(jnp.diag(root)).sum()
        inverse = jax.scipy.linalg.cho_solve((root, True), jnp.eye(len(mode)))
        return mode[self.eta], inverse[self.eta, self.eta], evidence, move


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
def _fit(method: Impression, counts: PrecisionCounts) -> ImpressionPosterior:
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
    return ImpressionPosterior(weight, mean, covariance, *labels, status)
