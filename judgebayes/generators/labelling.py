r"""Choose the outputs to label next, and estimate precision from labels chosen in this way.

The outputs of every generator are divided into strata by their votes: the share of judges who call an
output valid, or any other score. In stratum h of generator g an output is valid with probability

.. math::
    \mathrm{logit}\,p_{gh} = \alpha + \beta x_h + \nu_h + \lambda (\bar x_g - \bar x) + \delta_g
                            + \gamma_g x_h + \epsilon_{gh}

with :math:`x_h` the stratum's position among all outputs and :math:`\bar x_g` the mean position of a
generator's outputs: if judges rate a generator higher, an output with the same votes is more often
valid. All terms are normal; the spreads of :math:`\delta` (differences between generators) and
:math:`\epsilon` (deviations of single cells) are integrated out. The precision of a generator
combines the labels of its labelled outputs and the expected validity of the others.

Votes and earlier labels may determine in any way which cells (a stratum of a generator) get labels, if
the outputs within a cell are drawn at random. Given the cells, the choice is then independent of
validity, so the likelihood of the labels is that of a random sample in each cell (ignorability, Rubin
1976). Estimators from counts have no such protection: they need generators labelled in full.

The next label goes to the cell with the largest expected decrease of the variances that matter
(`judgebayes.generators.labelling`).

Which outputs to label next: the greedy c-optimal design of `judgebayes.generators.labelling`.

What the labels are for is a set of contrasts of the generators' shares: each generator's own share, or
the difference of two, which decides which of them is better. To first order the variance of a contrast
is :math:`c^T \Sigma c`, with c its gradient in the cells' logits. One more label in cell k, whose
information is :math:`q = p (1 - p)`, lowers it by

.. math:: \frac{q\,(c^T \Sigma_{\cdot k})^2}{1 + q \Sigma_{kk}} + \frac{q\, w_g^2}{N_g^2},

the information about all cells, and the uncertainty of the output itself, with w_g the contrast's weight
of the output's generator. Among more items like these, the second term is 0, and c does not decrease as
outputs are labelled.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import ItemCodes, ItemFloats, ItemInts, Key, Labels
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import check_binary
from judgebayes.generators.panel import Posterior, grid_status, spread_grid
from judgebayes.inference.status import summary
from judgebayes.votes.array import Votes


class Design(NamedTuple):
    """A posterior of the cells' logits, a mixture of normals, and what the labels are for."""

    weight: Float[Array, " point"]
    mean: Float[Array, "point cell"]
    covariance: Float[Array, "point cell cell"]
    remaining: Float[Array, " cell"]
    """Unlabelled outputs."""
    size: Float[Array, " cell"]
    """All outputs."""
    member: Float[Array, "generator cell"]
    """1 for the cells of a generator."""
    contrasts: Float[Array, "contrast generator"]
    more: Bool[Array, ""]
    """Whether the contrasts are of more items like these."""


def _gains(design: Design) -> Float[Array, " cell"]:
    """Return the decrease of the contrasts' variances by one label in each cell."""
    total = jnp.maximum(design.member @ design.size, 1.0)[:, None]
    counted = jnp.where(design.more, design.size, design.remaining)
    own = jnp.where(design.more, 0.0, (design.contrasts**2).sum(0)) @ (design.member / total**2)

    def gain(mean: Array, covariance: Array) -> Float[Array, " cell"]:
        p = jax.nn.sigmoid(mean)
        q = p * (1 - p)
        gradient = design.contrasts @ (design.member * counted * q / total)
        reach = gradient @ covariance
        return (reach**2).sum(0) * q / (1 + q * jnp.diag(covariance)) + own * q

    return design.weight @ jax.vmap(gain)(design.mean, design.covariance)


def _labelled(design: Design, cell: Int[Array, ""]) -> Design:
    """Return the design with one more label in a cell."""
    p = jax.nn.sigmoid(design.mean[:, cell])
    q, column = p * (1 - p), design.covariance[:, :, cell]
    scale = q / (1 + q * column[:, cell])
    spread = design.covariance - scale[:, None, None] * column[:, :, None] * column[:, None, :]
    return design._replace(covariance=spread, remaining=design.remaining.at[cell].add(-1.0))


@jax.jit
def labels_by_cell(design: Design, n: Int[Array, ""]) -> Float[Array, " cell"]:
    """Return the number of the next n labels that each cell should get."""

    def add(_: Int[Array, ""] | int, design: Design) -> Design:
        gain = jnp.where(design.remaining > 0, _gains(design), -1.0)
        return _labelled(design, jnp.argmax(gain))

    n_labels = jnp.minimum(n, design.remaining.sum().astype(n.dtype))
    return design.remaining - jax.lax.fori_loop(0, n_labels, add, design).remaining


@jax.jit
def _label_all(design: Design, cells: ItemCodes) -> tuple[Design, Float[Array, " cell"]]:
    """Return the design with labels in these cells (-1 is padding), and the gains of the next."""

    def add(design: Design, cell: Int[Array, ""]) -> tuple[Design, None]:
        new = _labelled(design, cell)
        return jax.tree.map(lambda a, b: jnp.where(cell >= 0, a, b), new, design), None

    design = jax.lax.scan(add, design, cells)[0]
    return design, _gains(design)


def whole_groups(
    design: Design, cell: ItemInts, group: ItemInts, n: int
) -> Int[np.ndarray, " chosen"]:
    """Return the unlabelled items of whole groups, chosen one after the other until n are reached.

    The next group is that with the largest mean gain of its items.

    Parameters
    ----------
    design
        The posterior, and what the labels are for.
    cell
        The cell of each unlabelled item.
    group
        The group of each unlabelled item.
    n
        The number of items; the last group may exceed it.
    """
    names, which = np.unique(group, return_inverse=True)
    size = np.bincount(which)
    longest, open_groups = int(size.max(initial=1)), np.ones(len(names), bool)
    gains = _label_all(design, jnp.full(longest, -1))[1]
    chosen: list[np.ndarray] = []
    while open_groups.any() and sum(map(len, chosen)) < n:
        mean = np.bincount(which, weights=np.asarray(gains)[cell]) / size
        best = int(np.argmax(np.where(open_groups, mean, -1.0)))
        items = np.flatnonzero(which == best)
        padded = np.append(cell[items], np.full(longest - len(items), -1))
        design, gains = _label_all(design, jnp.asarray(padded))
        open_groups[best] = False
        chosen.append(items)
    return np.concatenate(chosen) if chosen else np.array([], int)


POINTS = (5, 4)
SPAN = 2.0
"""Half-width of the grids, in prior standard deviations of log sigma."""
STEPS = 12
MAX_STEP = 2.0
TOLERANCE = 1e-6
JITTER = 1e-10


class Strata(NamedTuple):
    """Outputs divided into strata by their score."""

    of_item: ItemInts
    position: Float[np.ndarray, " stratum"]
    """The normal quantile of the middle rank of a stratum, invariant to the scale of scores."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StratumCounts:
    """Counts of outputs by generator, stratum and label."""

    valid: Float[Array, "*batch generator stratum"]
    invalid: Float[Array, "*batch generator stratum"]
    unlabelled: Float[Array, "*batch generator stratum"]
    position: Float[Array, "*batch stratum"]


class StratumPrior(NamedTuple):
    """Normal priors: (location, scale), or a scale; the last two are of log spreads."""

    level: tuple[float, float] = (1.5, 1.5)
    """alpha: more outputs are valid than not, but anything is possible."""
    slope: tuple[float, float] = (0.7, 0.7)
    """beta: the slope of validity in the position (a normal quantile)."""
    bend: float = 0.4
    """The spread of nu: the deviation of a stratum from the line, for all generators."""
    tilt: float = 0.25
    """The spread of gamma: the deviation of a generator's slope from the others'."""
    between: tuple[float, float] = (1.0, 1.0)
    """lambda: the slope of validity in a generator's mean position, beyond that in the output's."""
    log_shift: tuple[float, float] = (float(np.log(0.4)), 0.7)
    log_cell: tuple[float, float] = (float(np.log(0.3)), 0.6)


def valid_share(votes: Votes) -> ItemFloats:
    """Return the share of an output's votes that call it valid; without votes, the mean share.

    Raises
    ------
    JudgeBayesError
        If the votes are not binary, or there are none.
    """
    check_binary(votes, "a share of valid votes")
    counts = np.asarray(votes.counts(), float).sum(1)
    cast = counts.sum(1)
    if not cast.any():
        raise JudgeBayesError("There are no votes, so items cannot be sorted by their votes.")
    share = counts[:, 1] / np.maximum(cast, 1)
    return np.where(cast > 0, share, share[cast > 0].mean())


def stratify(scores: ItemFloats, n_strata: int = 6) -> Strata:
    """Return at most `n_strata` strata of outputs with similar scores, the lowest first.

    The cumulative square root rule (Dalenius & Hodges 1959) on the distinct scores, rounded to two
    digits. A large group of outputs with the same score, such as those that all judges accept, is one
    stratum, and the others are divided.

    Raises
    ------
    JudgeBayesError
        If a score is missing.
    """
    scores = np.asarray(scores, float)
    if not np.isfinite(scores).all():
        raise JudgeBayesError(
            f"Item {int(np.argmax(~np.isfinite(scores)))} has no score; every item needs one."
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
    strata: Strata, labels: Labels, generators: Labels, n_generators: int
) -> StratumCounts:
    """Count the outputs by generator, stratum and label (1, 0, or -1 if unknown)."""
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

    Intervals of generators with labels have their nominal coverage, whatever the judges. For a generator
    without labels, the relation of votes and validity comes from the other generators: if few of these
    are labelled and they differ much, its interval is too narrow (see `experiments/coverage`).
    """

    prior: StratumPrior = field(default_factory=StratumPrior)

    @in_float64
    def fit(self, counts: StratumCounts) -> "StratumPosterior":
        """Return the posterior of every cell's validity. Works under `jax.jit` and `jax.vmap`."""
        return _fit(self.prior, counts)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class StratumPosterior(Posterior):
    """The posterior: a mixture, over a grid of both spreads, of normals on the cells' logits."""

    weight: Float[Array, "*batch point"]
    mean: Float[Array, "*batch point cell"]
    covariance: Float[Array, "*batch point cell cell"]
    counts: StratumCounts
    status: Int[Array, "*batch"]

    __repr__ = summary

    @in_float64
    def sample(self, n_draws: int = 2000, key: Key | None = None) -> Float[Array, "draw generator"]:
        """Return joint draws of the precisions of all outputs, the labelled ones included."""
        key = jax.random.key(0) if key is None else key
        generators, strata = self.counts.valid.shape[-2:]
        return _draws(self, jax.random.normal(key, (n_draws, generators * (strata + 1))))

    @in_float64
    def quantile(self, level: float) -> Float[Array, " generator"]:
        """Return a quantile of each precision, over draws with a fixed key."""
        return jnp.quantile(self.sample(), level, axis=0)

    @in_float64
    def validity(self) -> Float[Array, "generator stratum"]:
        """Return the probability that an unlabelled output of a cell is valid."""
        deviation = jnp.diagonal(self.covariance, axis1=-2, axis2=-1)
        # The mean of a logistic normal, to the accuracy of MacKay's (1992) factor.
        each = jax.nn.sigmoid(self.mean / jnp.sqrt(1 + jnp.pi * deviation / 8))
        return (self.weight @ each).reshape(self.counts.valid.shape)

    def design(
        self,
        *,
        between: tuple[int, int] | None = None,
        more: bool = False,
    ) -> Design:
        """Return the posterior with what the next labels are for.

        Parameters
        ----------
        between
            Two generators: the variance of the difference of their shares counts, not that of each.
        more
            Whether the shares are those among more items like these, and not among these.
        """
        counts = self.counts
        generators, strata = counts.valid.shape
        if between is None:
            contrasts = jnp.eye(generators)
        else:
            one, other = between
            contrasts = jnp.zeros((1, generators)).at[0, one].set(1.0).at[0, other].set(-1.0)
        return Design(
            self.weight,
            self.mean,
            self.covariance,
            counts.unlabelled.ravel(),
            (counts.valid + counts.invalid + counts.unlabelled).ravel(),
            jnp.repeat(jnp.eye(generators), strata, axis=1),
            contrasts,
            jnp.asarray(more),
        )


@dataclass(frozen=True)
class Labelling:
    """Sequential labelling: the labels so far, and the outputs to label next.

    Parameters
    ----------
    strata
        The result of `stratify`, which depends only on the votes and does not change.
    generators
        The index of each output's generator, from 0.
    labels
        1 valid, 0 invalid, -1 unknown.
    n_generators
        The number of generators.
    """

    strata: Strata
    generators: ItemInts
    labels: ItemInts
    n_generators: int
    method: Stratified = field(default_factory=Stratified)

    def counts(self) -> StratumCounts:
        """Return the counts of outputs by generator, stratum and label."""
        return count_strata(self.strata, self.labels, self.generators, self.n_generators)

    def fit(self) -> StratumPosterior:
        """Return the posterior given the labels so far."""
        return self.method.fit(self.counts())

    def propose(
        self,
        n: int,
        *,
        between: tuple[int, int] | None = None,
        more: bool = False,
        groups: ItemInts | None = None,
        seed: int = 0,
    ) -> Int[np.ndarray, " chosen"]:
        """Return the next n outputs to label, or all unlabelled ones; random within a cell.

        Parameters
        ----------
        n
            The number of outputs.
        between, more
            What the labels are for, as in `StratumPosterior.design`.
        groups
            The group of each output: whole groups are chosen, until n outputs are reached.
        seed
            Seed of the choice within a cell.

        Raises
        ------
        JudgeBayesError
            If n is not positive, or every output is labelled.
        """
        if n < 1:
            raise JudgeBayesError(
                f"The number of items to label next is {n}; it must be 1 or more."
            )
        unlabelled = np.flatnonzero(self.labels < 0)
        if len(unlabelled) == 0:
            raise JudgeBayesError("All items are already labelled.")
        design = self.fit().design(between=between, more=more)
        cell = (self.generators * len(self.strata.position) + self.strata.of_item)[unlabelled]
        if groups is not None:
            return unlabelled[whole_groups(design, cell, groups[unlabelled], n)]
        n_labels = labels_by_cell(design, jnp.asarray(min(n, len(unlabelled))))
        by_cell = np.asarray(n_labels).astype(int)
        rng = np.random.default_rng((seed, int((self.labels >= 0).sum())))
        chosen = [
            rng.choice(unlabelled[cell == c], by_cell[c], replace=False)
            for c in np.flatnonzero(by_cell)
        ]
        return np.concatenate(chosen)


def _prior(
    prior: StratumPrior, counts: StratumCounts, shift: Array, cell: Array
) -> tuple[Float[Array, " cell"], Float[Array, "cell cell"]]:
    """Return the prior mean and covariance of the cells' logits at given spreads."""
    generators, strata = counts.valid.shape
    x = jnp.tile(counts.position, generators)
    total = counts.valid + counts.invalid + counts.unlabelled
    generator_position = total @ counts.position / jnp.maximum(total.sum(1), 1.0)
    mean = (total @ counts.position).sum() / jnp.maximum(total.sum(), 1.0)
    mean_difference = jnp.repeat(generator_position - mean, strata)
    same_generator = jnp.kron(jnp.eye(generators), jnp.ones((strata, strata)))
    same_stratum = jnp.kron(jnp.ones((generators, generators)), jnp.eye(strata))
    line = x[:, None] * x
    covariance = (
        prior.level[1] ** 2
        + prior.slope[1] ** 2 * line
        + prior.bend**2 * same_stratum
        + (shift**2 + prior.tilt**2 * line) * same_generator
        + prior.between[1] ** 2 * mean_difference[:, None] * mean_difference
        + cell**2 * jnp.eye(len(x))
    )
    return prior.level[0] + prior.slope[0] * x + prior.between[0] * mean_difference, covariance


class _Mode(NamedTuple):
    mean: Float[Array, " cell"]
    covariance: Float[Array, "cell cell"]
    evidence: Float[Array, ""]
    move: Float[Array, ""]


def _laplace(centre: Array, spread: Array, valid: Array, n: Array) -> _Mode:
    """Return the Laplace approximation of logits with a normal prior and binomial labels.

    Newton's method as in Rasmussen & Williams (2006), algorithm 3.1, which does not invert the prior's
    covariance.
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
        move = jnp.clip(centre + spread @ a - f, -MAX_STEP, MAX_STEP)
        return f + move, jnp.abs(move).max()

    f, moves = jax.lax.scan(step, centre, None, length=STEPS)
    p, s, factor = root(f)
    half = jax.scipy.linalg.solve_triangular(factor, s[:, None] * spread, lower=True)
    fits = (valid * jax.nn.log_sigmoid(f) + (n - valid) * jax.nn.log_sigmoid(-f)).sum()
    # At the mode K^-1 (f - m) is the gradient of the log-likelihood.
    evidence = fits - 0.5 * (f - centre) @ (valid - n * p) - jnp.log(jnp.diag(factor)).sum()
    return _Mode(f, spread - half.T @ half, evidence, moves[-1])


@jax.jit
def _fit(prior: StratumPrior, counts: StratumCounts) -> StratumPosterior:
    valid, n = counts.valid.ravel(), (counts.valid + counts.invalid).ravel()
    spreads, log_density = spread_grid((prior.log_shift, prior.log_cell), POINTS, SPAN)

    def at_point(shift: Array, cell: Array) -> _Mode:
        return _laplace(*_prior(prior, counts, shift, cell), valid, n)

    modes = jax.vmap(at_point)(*spreads)
    weight = jax.nn.softmax(modes.evidence + log_density)
    status = grid_status(modes.mean, modes.covariance, weight @ modes.move > TOLERANCE)
    return StratumPosterior(weight, modes.mean, modes.covariance, counts, status)


@jax.jit
def _draws(
    fit: StratumPosterior, noise: Float[Array, "draw size"]
) -> Float[Array, "draw generator"]:
    counts = fit.counts
    generators, strata = counts.valid.shape
    cells = generators * strata
    n_draws = noise.shape[0]
    # Each grid point gets its share of the draws, which has less noise than drawing points.
    quantile = (jnp.arange(n_draws) + 0.5) / n_draws
    point = jnp.minimum(jnp.searchsorted(jnp.cumsum(fit.weight), quantile), len(fit.weight) - 1)
    root = jnp.linalg.cholesky(fit.covariance + JITTER * jnp.eye(cells))
    logit = fit.mean[point] + jnp.einsum("dab,db->da", root[point], noise[:, :cells])
    p = jax.nn.sigmoid(logit).reshape(n_draws, generators, strata)
    rest = counts.unlabelled
    total = jnp.maximum((counts.valid + counts.invalid + rest).sum(1), 1.0)
    labelled_share = counts.valid.sum(1) / total
    chance = jnp.sqrt((rest * p * (1 - p)).sum(-1)) / total
    drawn = labelled_share + (rest * p).sum(-1) / total + chance * noise[:, cells:]
    return jnp.clip(drawn, labelled_share, labelled_share + rest.sum(1) / total)
