r"""Which outputs to label next, and an estimate that holds for labels chosen so.

The outputs of every generator are sorted into strata by their votes: the share of judges who call
an output valid, or any other score. In stratum h of generator g an output is valid with probability

.. math::
    \mathrm{logit}\,p_{gh} = \alpha + \beta x_h + \nu_h + \lambda (\bar x_g - \bar x) + \delta_g
                            + \gamma_g x_h + \epsilon_{gh}

with :math:`x_h` the stratum's place among all outputs and :math:`\bar x_g` the mean place of a
generator's outputs: where judges think better of a generator, an output with the same votes is more
often valid. All terms are normal; the spreads of :math:`\delta` (generators differ) and
:math:`\epsilon` (a generator's strata differ as nobody else's do) are integrated over. The
precision of a generator is what is known of its labelled outputs plus the expected validity of the
others.

Labels may be chosen by votes and earlier labels in any way, as long as they are drawn at random
within a cell (a stratum of a generator): given the cells, the choice says nothing about validity,
so that the likelihood of the labels is that of a random sample in each cell (ignorability, Rubin
1976). `Impression` has no such protection, and wants generators that are labelled in full.

The next label goes to the cell where it is expected to lower the sum of the generators' variances
most. To first order the variance of a precision is :math:`c^T \Sigma c`, with c its slopes in the
cells' logits, and one more label in cell k, whose information is :math:`q = p (1 - p)`, takes off

.. math:: \frac{q\,(c^T \Sigma_{\cdot k})^2}{1 + q \Sigma_{kk}} + \frac{q}{N_g^2},

what it teaches about all cells, and the output's own uncertainty (a c-optimal design, found one
label after the other).
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.status import Status
from judgebayes.inference.summary import summary
from judgebayes.votes.array import Votes

__all__ = [
    "FittedStratified",
    "Labelling",
    "Strata",
    "Stratified",
    "StratumCounts",
    "StratumPrior",
    "count_strata",
    "stratify",
    "valid_share",
]

POINTS = (5, 4)
SPAN = 2.0
"""How many prior standard deviations of log sigma the grids reach to each side."""
STEPS = 12
LONGEST_STEP = 2.0
SETTLED = 1e-6
JITTER = 1e-10


class Strata(NamedTuple):
    """Outputs sorted by their score."""

    of_item: Int[np.ndarray, " item"]
    position: Float[np.ndarray, " stratum"]
    """The normal quantile of the middle rank of a stratum: no matter how scores are scaled."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StratumCounts:
    """Outputs counted by generator, stratum and label."""

    valid: Float[Array, "*batch generator stratum"]
    invalid: Float[Array, "*batch generator stratum"]
    unlabelled: Float[Array, "*batch generator stratum"]
    position: Float[Array, "*batch stratum"]


class StratumPrior(NamedTuple):
    """Normal priors: (location, scale), or a scale; the last two are of log spreads."""

    level: tuple[float, float] = (1.5, 1.5)
    """alpha: more outputs are valid than not, but anything is possible."""
    slope: tuple[float, float] = (0.7, 0.7)
    """beta: by how much validity rises with the place on the normal scale of ranks."""
    bend: float = 0.4
    """The spread of nu: by how much a stratum departs from the line, for all generators."""
    tilt: float = 0.25
    """The spread of gamma: by how much a generator's slope departs from the others'."""
    between: tuple[float, float] = (1.0, 1.0)
    """lambda: by how much more validity differs between generators than votes alone say."""
    log_shift: tuple[float, float] = (float(np.log(0.4)), 0.7)
    log_cell: tuple[float, float] = (float(np.log(0.3)), 0.6)


def valid_share(votes: Votes) -> Float[np.ndarray, " item"]:
    """Return the share of an output's votes that call it valid; the mean share without votes.

    Raises
    ------
    JudgeBayesError
        If the votes are not binary, or there are none.
    """
    if votes.n_classes != 2:
        raise JudgeBayesError(
            f"The votes have {votes.n_classes} classes; a share of valid votes needs two: invalid "
            "(0) and valid (1)."
        )
    counts = np.asarray(votes.counts(), float).sum(1)
    cast = counts.sum(1)
    if not cast.any():
        raise JudgeBayesError("There is no vote at all; outputs cannot be sorted by their votes.")
    share = counts[:, 1] / np.maximum(cast, 1)
    return np.where(cast > 0, share, share[cast > 0].mean())


def stratify(scores: Float[np.ndarray, " item"], n_strata: int = 6) -> Strata:
    """Return at most `n_strata` strata of outputs with near scores, the lowest first.

    The cumulative square root rule (Dalenius & Hodges 1959) on the distinct scores, to two
    digits: a large group of outputs with one score, such as those all judges accept, stays
    together and the rest are told apart.

    Raises
    ------
    JudgeBayesError
        If a score is missing.
    """
    scores = np.asarray(scores, float)
    if not np.isfinite(scores).all():
        raise JudgeBayesError(
            f"Item {int(np.argmax(~np.isfinite(scores)))} has no score; every output needs one to "
            "be sorted by."
        )
    from scipy.special import ndtri

    unit = max(float(np.ptp(scores)), 1e-12)
    _, which, count = np.unique(
        np.round((scores - scores.min()) / unit, 2), return_inverse=True, return_counts=True
    )
    root = np.sqrt(count)
    middle = (np.cumsum(root) - root / 2) / root.sum()
    of_item = np.unique((n_strata * middle).astype(int)[which], return_inverse=True)[1]
    size = np.bincount(of_item)
    return Strata(of_item, ndtri((np.cumsum(size) - size / 2) / size.sum()))


@in_float64
def count_strata(
    strata: Strata,
    labels: Int[AnyArray, " item"],
    generators: Int[AnyArray, " item"],
    n_generators: int,
) -> StratumCounts:
    """Return outputs counted by generator, stratum and label (1, 0, or -1 if unknown)."""
    labels, generators = np.asarray(labels), np.asarray(generators)
    shape = (n_generators, len(strata.position))
    cell = generators * shape[1] + strata.of_item
    valid, invalid, unlabelled = (
        jnp.asarray(
            np.bincount(cell[labels == y], minlength=shape[0] * shape[1]).reshape(shape), float
        )
        for y in (1, 0, -1)
    )
    return StratumCounts(valid, invalid, unlabelled, jnp.asarray(strata.position))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stratified:
    """Estimate generators' precision from outputs that were labelled by stratum.

    Intervals of generators with labels cover what they say, whatever the judges. A generator without
    any takes from the others how votes go with validity: where few are labelled and they differ
    much, its interval is too narrow (see `experiments/coverage`).
    """

    prior: StratumPrior = field(default_factory=StratumPrior)

    @in_float64
    def fit(self, counts: StratumCounts) -> "FittedStratified":
        """Return the posterior of every cell's validity. Works under `jax.jit` and `jax.vmap`."""
        return _fit(self.prior, counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedStratified:
    """The posterior: a mixture, over a grid of both spreads, of normals of the cells' logits."""

    weight: Float[Array, "*batch point"]
    mean: Float[Array, "*batch point cell"]
    covariance: Float[Array, "*batch point cell cell"]
    counts: StratumCounts
    status: Int[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def draws(
        self, n_draws: int = 2000, key: PRNGKeyArray | None = None
    ) -> Float[Array, "draw generator"]:
        """Return joint draws of the precisions of all outputs, the labelled ones being known."""
        key = jax.random.key(0) if key is None else key
        return _draws(self, jax.random.normal(key, (n_draws, self._size())))

    def _size(self) -> int:
        generators, strata = self.counts.valid.shape[-2:]
        return generators * strata + generators

    @in_float64
    def quantiles(
        self, levels: tuple[float, ...], n_draws: int = 2000
    ) -> Float[Array, "level generator"]:
        """Return quantiles of the precisions over draws, the same ones every time."""
        return jnp.quantile(self.draws(n_draws), jnp.asarray(levels), axis=0)

    def estimate(self) -> Float[Array, " generator"]:
        """Return the posterior medians."""
        return self.quantiles((0.5,))[0]

    def interval(
        self, level: float = 0.9
    ) -> tuple[Float[Array, " generator"], Float[Array, " generator"]]:
        """Return the ends of the central intervals."""
        ends = self.quantiles(((1 - level) / 2, (1 + level) / 2))
        return ends[0], ends[1]

    @in_float64
    def validity(self) -> Float[Array, "generator stratum"]:
        """Return the probability that an unlabelled output of a cell is valid."""
        deviation = jnp.diagonal(self.covariance, axis1=-2, axis2=-1)
        # The mean of a logistic normal, to the accuracy of MacKay's (1992) factor.
        each = jax.nn.sigmoid(self.mean / jnp.sqrt(1 + jnp.pi * deviation / 8))
        return (self.weight @ each).reshape(self.counts.valid.shape)

    @in_float64
    def next_labels(
        self, n: int, targets: Bool[AnyArray, " generator"] | None = None
    ) -> Float[Array, "generator stratum"]:
        """Return how many of the next n labels each cell should get.

        `targets` are the generators whose variances are to fall, all by default; labels go to any
        generator where they help.
        """
        generators = self.counts.valid.shape[0]
        wanted = jnp.ones(generators) if targets is None else jnp.asarray(targets, float)
        return _greedy(self, wanted, jnp.asarray(n))


@dataclass(frozen=True)
class Labelling:
    """Labels as they come in: which outputs to label next, and what is known so far.

    Parameters
    ----------
    strata
        From `stratify`, once: they depend on the votes alone, so that they never change.
    generators
        Which generator each output comes from, from 0.
    labels
        1 valid, 0 invalid, -1 unknown.
    n_generators
        How many generators there are.
    """

    strata: Strata
    generators: Int[np.ndarray, " item"]
    labels: Int[np.ndarray, " item"]
    n_generators: int
    method: Stratified = field(default_factory=Stratified)

    def counts(self) -> StratumCounts:
        """Return the outputs counted by generator, stratum and label."""
        return count_strata(self.strata, self.labels, self.generators, self.n_generators)

    def fit(self) -> FittedStratified:
        """Return the posterior given the labels so far."""
        return self.method.fit(self.counts())

    def propose(
        self, n: int, targets: Bool[AnyArray, " generator"] | None = None, *, seed: int = 0
    ) -> Int[np.ndarray, " chosen"]:
        """Return the next n outputs to label, or all that are left; drawn at random in a cell.

        Raises
        ------
        JudgeBayesError
            If n is not positive, or every output is labelled.
        """
        if n < 1:
            raise JudgeBayesError(f"{n} outputs cannot be labelled next; right would be 1 or more.")
        left = np.flatnonzero(self.labels < 0)
        if len(left) == 0:
            raise JudgeBayesError("Every output is labelled; there is none to label next.")
        wanted = np.asarray(self.fit().next_labels(min(n, len(left)), targets)).astype(int)
        rng = np.random.default_rng((seed, int((self.labels >= 0).sum())))
        found = [
            rng.choice(
                left[(self.generators[left] == g) & (self.strata.of_item[left] == h)],
                wanted[g, h],
                replace=False,
            )
            for g, h in np.argwhere(wanted > 0)
        ]
        return np.concatenate(found)

    def update(
        self, items: Int[np.ndarray, " chosen"], labels: Int[np.ndarray, " chosen"]
    ) -> "Labelling":
        """Return the state after some outputs were labelled."""
        known = self.labels.copy()
        known[np.asarray(items)] = np.asarray(labels)
        return replace(self, labels=known)


def _prior(
    prior: StratumPrior, counts: StratumCounts, shift: Array, cell: Array
) -> tuple[Float[Array, " cell"], Float[Array, "cell cell"]]:
    """Return mean and covariance of the cells' logits at given spreads."""
    generators, strata = counts.valid.shape
    x = jnp.tile(counts.position, generators)
    total = counts.valid + counts.invalid + counts.unlabelled
    own = total @ counts.position / jnp.maximum(total.sum(1), 1.0)
    mean = (total @ counts.position).sum() / jnp.maximum(total.sum(), 1.0)
    apart = jnp.repeat(own - mean, strata)
    same_generator = jnp.kron(jnp.eye(generators), jnp.ones((strata, strata)))
    same_stratum = jnp.kron(jnp.ones((generators, generators)), jnp.eye(strata))
    line = x[:, None] * x
    covariance = (
        prior.level[1] ** 2
        + prior.slope[1] ** 2 * line
        + prior.bend**2 * same_stratum
        + (shift**2 + prior.tilt**2 * line) * same_generator
        + prior.between[1] ** 2 * apart[:, None] * apart
        + cell**2 * jnp.eye(len(x))
    )
    return prior.level[0] + prior.slope[0] * x + prior.between[0] * apart, covariance


def _grid() -> Float[np.ndarray, "point 2"]:
    """Return the points of the grid over both log spreads, in prior standard deviations."""
    each = [np.linspace(-SPAN, SPAN, n) for n in POINTS]
    return np.stack([a.ravel() for a in np.meshgrid(*each, indexing="ij")], 1)


class _Mode(NamedTuple):
    mean: Float[Array, " cell"]
    covariance: Float[Array, "cell cell"]
    evidence: Float[Array, ""]
    move: Float[Array, ""]


def _laplace(centre: Array, spread: Array, valid: Array, n: Array) -> _Mode:
    """Return the Laplace approximation of logits with a normal prior and binomial labels.

    Newton's method in the form of Rasmussen & Williams (2006), algorithm 3.1, which never inverts
    the prior's covariance.
    """
    one = jnp.eye(len(centre))

    def root(f: Array) -> tuple[Array, Array, Array]:
        p = jax.nn.sigmoid(f)
        information = n * p * (1 - p)
        s = jnp.sqrt(information)
        return p, s, jnp.linalg.cholesky(one + s[:, None] * spread * s)

    def step(f: Array, _: None) -> tuple[Array, Array]:
        p, s, factor = root(f)
        b = s**2 * (f - centre) + valid - n * p
        a = b - s * jax.scipy.linalg.cho_solve((factor, True), s * (spread @ b))
        move = jnp.clip(centre + spread @ a - f, -LONGEST_STEP, LONGEST_STEP)
        return f + move, jnp.abs(move).max()

    f, moves = jax.lax.scan(step, centre, None, length=STEPS)
    p, s, factor = root(f)
    half = jax.scipy.linalg.solve_triangular(factor, s[:, None] * spread, lower=True)
    fits = (valid * jax.nn.log_sigmoid(f) + (n - valid) * jax.nn.log_sigmoid(-f)).sum()
    # At the mode K^-1 (f - m) is the slope of the log-likelihood.
    evidence = fits - 0.5 * (f - centre) @ (valid - n * p) - jnp.log(jnp.diag(factor)).sum()
    return _Mode(f, spread - half.T @ half, evidence, moves[-1])


@jax.jit
def _fit(prior: StratumPrior, counts: StratumCounts) -> FittedStratified:
    valid, n = counts.valid.ravel(), (counts.valid + counts.invalid).ravel()
    grid = _grid()

    def at_point(at: Array) -> _Mode:
        shift, cell = (
            jnp.exp(location + scale * height)
            for (location, scale), height in zip((prior.log_shift, prior.log_cell), at, strict=True)
        )
        return _laplace(*_prior(prior, counts, shift, cell), valid, n)

    found = jax.vmap(at_point)(jnp.asarray(grid))
    weight = jax.nn.softmax(found.evidence - 0.5 * jnp.asarray((grid**2).sum(1)))
    finite = jnp.isfinite(found.mean).all() & jnp.isfinite(found.covariance).all()
    status = jnp.select(
        [~finite, weight @ found.move > SETTLED], [int(Status.NONFINITE), int(Status.MAX_STEPS)], 0
    )
    return FittedStratified(weight, found.mean, found.covariance, counts, status)


@jax.jit
def _draws(
    fit: FittedStratified, noise: Float[Array, "draw size"]
) -> Float[Array, "draw generator"]:
    counts = fit.counts
    generators, strata = counts.valid.shape
    cells = generators * strata
    n_draws = noise.shape[0]
    # Each grid point gets its share of the draws, up to rounding: less noise than drawing points.
    place = (jnp.arange(n_draws) + 0.5) / n_draws
    point = jnp.minimum(jnp.searchsorted(jnp.cumsum(fit.weight), place), len(fit.weight) - 1)
    root = jnp.linalg.cholesky(fit.covariance + JITTER * jnp.eye(cells))
    logit = fit.mean[point] + jnp.einsum("dab,db->da", root[point], noise[:, :cells])
    p = jax.nn.sigmoid(logit).reshape(n_draws, generators, strata)
    rest = counts.unlabelled
    total = jnp.maximum((counts.valid + counts.invalid + rest).sum(1), 1.0)
    least = counts.valid.sum(1) / total
    chance = jnp.sqrt((rest * p * (1 - p)).sum(-1)) / total
    drawn = least + (rest * p).sum(-1) / total + chance * noise[:, cells:]
    return jnp.clip(drawn, least, least + rest.sum(1) / total)


@jax.jit
def _greedy(
    fit: FittedStratified, targets: Float[Array, " generator"], n: Int[Array, ""]
) -> Float[Array, "generator stratum"]:
    counts = fit.counts
    generators, strata = counts.valid.shape
    member = jnp.repeat(jnp.eye(generators), strata, axis=1)
    total = jnp.maximum((counts.valid + counts.invalid + counts.unlabelled).sum(1), 1.0)[:, None]
    p = jax.nn.sigmoid(fit.mean)
    information = p * (1 - p)

    def gain(q: Array, spread: Array, left: Array) -> Float[Array, " cell"]:
        reach = (member * left * q / total) @ spread
        taught = reach**2 * q / (1 + q * jnp.diag(spread))
        return targets @ (taught + member * q / total**2)

    def add(
        _: Int[Array, ""] | int, state: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        spread, left, chosen = state
        worth = fit.weight @ jax.vmap(gain, in_axes=(0, 0, None))(information, spread, left)
        k = jnp.argmax(jnp.where(left > 0, worth, -1.0))
        q, column = information[:, k], spread[:, :, k]
        fall = q / (1 + q * column[:, k])
        spread = spread - fall[:, None, None] * column[:, :, None] * column[:, None, :]
        return spread, left.at[k].add(-1.0), chosen.at[k].add(1.0)

    left = counts.unlabelled.ravel()
    begin = (fit.covariance, left, jnp.zeros_like(left))
    some = jnp.minimum(n, left.sum().astype(n.dtype))
    return jax.lax.fori_loop(0, some, add, begin)[2].reshape(generators, strata)
