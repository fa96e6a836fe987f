"""Twins: simulators of repeated ternary votes that agree with published results of a paper.

A paper that does not release its votes still reports the results of self-consistency (majority voting).
A twin is a distribution of votes given the label whose majority vote has the published error and
accuracy at the published numbers of votes. It does not depend on the paper's own method, so the score of
the method on the twin predicts the score in the paper. Several families of twins fit the same numbers;
the prediction is the range over them.

All families treat the two responses symmetrically: votes given label -1 mirror those given +1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.vote_rules import TieRule
from judgebayes.arrays import Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.minimising import minimise
from judgebayes.inference.point import spread
from judgebayes.votes.array import Votes, from_counts

NODES = 40
PRECISION = 0.002
"""The scale of the misfit to a published MAE or accuracy, which is rounded to 0.001."""
SHARE_PRECISION = 0.01
"""The scale of the misfit to a published share of ties, which is a whole per cent."""
FIT_ERROR = 0.005
"""Standard error of an MAE or accuracy in a twin's weight; the four numbers share their items."""
FLOOR = 1e-9
"""Added to vote probabilities, so that their logarithms are differentiable."""


@dataclass(frozen=True)
class Family:
    """A parametric family of vote distributions given the label.

    `vote_probs(parameters, z)` returns the probabilities of the votes (-1, 0, +1) of items with
    label +1 and of items with label 0, at the standard normal (or Dirichlet) randomness that
    `state_probs` integrates out and `draw` samples.
    """

    name: str
    parameters: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    """Mean and spread of the maximum-likelihood parameters of five public judges on five tasks."""
    state_probs: Callable[[Array, Int[np.ndarray, "state class"]], Float[Array, "2 state"]]
    """Probabilities of vote counts given label +1 and given label 0."""
    draw: Callable[
        [Float[np.ndarray, " parameter"], int, int, np.random.Generator],
        Float[np.ndarray, "item class"],
    ]
    """Vote probabilities of many items of one label (+1 or 0)."""


@dataclass(frozen=True)
class Target:
    """Published numbers about the votes: label shares, and the results of majority voting."""

    label_counts: tuple[float, float, float]
    """Numbers of the labels -1, 0, +1."""
    results: Mapping[int, tuple[float, float]]
    """The MAE and accuracy of majority voting, by number of votes."""
    tie_share: Mapping[int, float] = field(default_factory=dict)
    """The share of items on which majority voting decides "tie", for some numbers of votes."""


@dataclass(frozen=True)
class Twin:
    """A fitted simulator, with the rule for tied votes of its fit."""

    family: Family
    parameters: tuple[float, ...]
    tie: TieRule
    misfit: float
    """The largest difference between a published MAE or accuracy and the twin's."""
    tie_misfit: float = 0.0
    """The largest difference between a published share of ties and the twin's."""
    weight: float = 1.0
    """Weight by fit among the twins of a target; the weights sum to 1."""


def states(n: int) -> Int[np.ndarray, "state class"]:
    """Return all counts of n votes over three classes."""
    return np.array([(a, b, n - a - b) for a, b in product(range(n + 1), repeat=2) if a + b <= n])


def _multinomial(
    probs: Float[Array, "*node class"], counts: Int[np.ndarray, "state class"]
) -> Float[Array, "*node state"]:
    n = int(counts[0].sum())
    ways = jnp.asarray(
        [
            float(np.exp(_log_factorial(n) - sum(map(_log_factorial, row.tolist()))))
            for row in counts
        ]
    )
    log_probs = jnp.log((probs + FLOOR) / (1 + 3 * FLOOR))
    return ways * jnp.exp(log_probs @ jnp.asarray(counts.T, float))


def _log_factorial(n: int) -> float:
    return float(np.log(np.arange(1, n + 1)).sum())


# Dirichlet: each item has its own vote probabilities, drawn around the label's mean.


def _dirichlet_means(p: Array) -> tuple[Array, Array, Array, Array]:
    wrong, tie, log_size, tie0, log_size0 = p
    better = jnp.stack([wrong * (1 - tie), tie, (1 - wrong) * (1 - tie)])
    level = jnp.stack([(1 - tie0) / 2, tie0, (1 - tie0) / 2])
    return better, jnp.exp(log_size), level, jnp.exp(log_size0)


def _dirichlet_states(p: Array, counts: Int[np.ndarray, "state class"]) -> Array:
    better, size, level, size0 = _dirichlet_means(p)

    def compound(mean: Array, size: Array) -> Array:
        a, c = mean * size, jnp.asarray(counts, float)
        n = c[0].sum()
        each = gammaln(c + a) - gammaln(a) - gammaln(c + 1)
        return jnp.exp(each.sum(-1) + gammaln(n + 1) + gammaln(size) - gammaln(n + size))

    return jnp.stack([compound(better, size), compound(level, size0)])


def _dirichlet_draw(p: np.ndarray, label: int, items: int, rng: np.random.Generator) -> np.ndarray:
    better, size, level, size0 = (np.asarray(x) for x in _dirichlet_means(jnp.asarray(p)))
    return rng.dirichlet(better * size if label else level * size0, items)


# Margin: a latent quality difference, observed with unit noise, is a tie within +-delta.


def _margin_probs(p: Array, label: int, z: Array) -> Array:
    mean, spread1, spread0, delta = p
    m = mean + spread1 * z if label else spread0 * z
    cdf = jax.scipy.stats.norm.cdf
    return jnp.stack([cdf(-delta - m), cdf(delta - m) - cdf(-delta - m), cdf(m - delta)], -1)


# Softmax: a latent margin and a tie logit per label.


def _softmax_probs(p: Array, label: int, z: Array) -> Array:
    mean, spread1, spread0, tie1, tie0 = p
    u = mean + spread1 * z if label else spread0 * z
    tie = jnp.full_like(u, 1.0) * (tie1 if label else tie0)
    return jax.nn.softmax(jnp.stack([-u, tie, u], -1), axis=-1)


def _normal_states(
    probs: Callable[[Array, int, Array], Array], p: Array, counts: Int[np.ndarray, "state class"]
) -> Array:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    z, w = jnp.asarray(nodes), jnp.asarray(weights / weights.sum())
    return jnp.stack([w @ _multinomial(probs(p, label, z), counts) for label in (1, 0)])


DRAW_BATCH = 512
"""The number of items whose probabilities are computed in one call."""


def _normal_draw(
    probs: Callable[[Array, int, Array], Array],
    p: np.ndarray,
    label: int,
    items: int,
    rng: np.random.Generator,
) -> np.ndarray:
    z = rng.normal(size=items)
    # Padding gives few lengths, because every length is compiled.
    padded = np.pad(z, (0, -items % DRAW_BATCH))
    probabilities = np.asarray(probs(jnp.asarray(p), label, jnp.asarray(padded)))[:items]
    return probabilities / probabilities.sum(-1, keepdims=True)


FAMILIES: dict[str, Family] = {
    "dirichlet": Family(
        "dirichlet",
        ("wrong", "tie", "log_size", "tie0", "log_size0"),
        (0.005, 0.005, -1.5, 0.005, -1.5),
        (0.7, 0.95, 4.0, 0.98, 4.0),
        (0.12, 0.16, 0.2, 0.34, 0.3),
        (0.1, 0.1, 0.6, 0.1, 0.7),
        _dirichlet_states,
        _dirichlet_draw,
    ),
    "margin": Family(
        "margin",
        ("mean", "spread", "spread0", "delta"),
        (0.0, 0.01, 0.01, 0.005),
        (6.0, 5.0, 5.0, 4.0),
        (3.0, 2.1, 1.7, 0.75),
        (1.7, 0.8, 0.6, 0.3),
        partial(_normal_states, _margin_probs),
        partial(_normal_draw, _margin_probs),
    ),
    "softmax": Family(
        "softmax",
        ("mean", "spread", "spread0", "tie", "tie0"),
        (0.0, 0.01, 0.01, -6.0, -6.0),
        (6.0, 5.0, 5.0, 5.0, 5.0),
        (4.0, 3.0, 2.6, 0.6, 0.9),
        (2.1, 1.1, 1.2, 0.6, 0.8),
        partial(_normal_states, _softmax_probs),
        partial(_normal_draw, _softmax_probs),
    ),
}


def majority_decision(n: int, tie: TieRule) -> Float[np.ndarray, "state class"]:
    """Return the probability of each decision of the majority vote at every vote count.

    Votes are exchangeable, so under `first` each tied class is equally likely to be the first.
    """
    decision = np.zeros((len(states(n)), 3))
    for row, counts in zip(decision, states(n), strict=True):
        tied = np.flatnonzero(counts == counts.max())
        if tie == "first":
            row[tied] = 1 / len(tied)
        else:
            centre = (tied[0] + tied[-1]) / 2
            outwards = 2.0 if centre > 1 else 0.0
            row[int(centre if centre.is_integer() else 1 if tie == "middle" else outwards)] = 1
    return decision


def majority_outcome(
    family: Family, parameters: Array, label_share: Array, n: int, decision: Array
) -> Float[Array, " 3"]:
    """Return the expected MAE, accuracy and share of ties of a majority vote of n votes."""
    decision_probs = family.state_probs(parameters, states(n)) @ decision
    better, level = decision_probs[0], decision_probs[1]
    error = jnp.stack([better @ jnp.array([2.0, 1.0, 0.0]), level @ jnp.array([1.0, 0.0, 1.0])])
    correct = jnp.stack([better[2], level[1]])
    share = jnp.stack([label_share[0] + label_share[2], label_share[1]])
    ties = decision_probs[:, 1]
    return jnp.stack([share @ error, share @ correct, share @ ties])


@partial(jax.jit, static_argnames=("family", "n"))
def _fit(
    family: Family,
    n: tuple[int, ...],
    shares: Float[Array, "cell 3"],
    published: Float[Array, "cell n 3"],
    decisions: tuple[Float[Array, "_ class"], ...],
    starts: Float[Array, "start parameter"],
    plausibility: Scalar,
) -> tuple[
    Float[Array, "cell start parameter"],
    Float[Array, "cell start"],
    Float[Array, "cell start n 3"],
]:
    """Return parameters, objective values, and differences to what is published (0 for NaN)."""
    low, high = jnp.asarray(family.lower), jnp.asarray(family.upper)

    def expected_results(x: Array, share: Array) -> Array:
        return jnp.stack(
            [majority_outcome(family, x, share, k, d) for k, d in zip(n, decisions, strict=True)]
        )

    centre, scale = jnp.asarray(family.centre), jnp.asarray(family.scale)

    precision = jnp.array([PRECISION, PRECISION, SHARE_PRECISION])

    def one(share: Array, target: Array, start: Array) -> tuple[Array, Array, Array]:
        def differences(x: Array) -> Array:
            known = jnp.isfinite(target)
            return jnp.where(known, expected_results(x, share) - jnp.where(known, target, 0.0), 0.0)

        def objective(x: Array) -> Array:
            log_prior = jnp.sum(((x - centre) / scale) ** 2)
            misfit = jnp.sum((differences(x) / precision) ** 2)
            return (misfit + plausibility * log_prior) * PRECISION**2

        optimum = minimise(objective, start, low, high, tolerance=1e-8)
        return optimum.x, optimum.value, differences(optimum.x)

    by_start = jax.vmap(one, in_axes=(None, None, 0))
    return jax.vmap(by_start, in_axes=(0, 0, None))(shares, published, starts)


@in_float64
def fit_twins(
    targets: Mapping[str, Target],
    *,
    ties: tuple[TieRule, ...] = ("middle", "outer", "first"),
    families: tuple[str, ...] = tuple(FAMILIES),
    starts: int = 8,
    tolerance: float = 0.01,
    plausibility: float = 1.0,
) -> dict[str, list[Twin]]:
    r"""Return the twins that fit every target: the best of each family and tie rule.

    A twin's weight among those of its target is proportional to :math:`\exp(-\tfrac12 \sum_k
    (d_k / s_k)^2)`, with d the differences to the published numbers and s their standard errors:
    `FIT_ERROR` for MAE and accuracy, and for a share of ties p of N labels
    :math:`\sqrt{p (1 - p) / N + 0.005^2}`, which includes rounding to a per cent.

    Parameters
    ----------
    targets
        The published numbers, by name; all at the same numbers of votes.
    ties
        The possible rules for tied votes of the published majority voting.
    families
        Names from `FAMILIES`.
    starts
        The number of starts of each fit.
    tolerance
        The largest accepted difference from a published MAE or accuracy. A published number is itself
        the mean over about a thousand items, with a standard error of about 0.02. A share of ties
        rejects no twin: it is in the weights.
    plausibility
        The weight of a log prior around the family's centre. There are fewer published numbers than
        parameters, so many twins fit equally well: with 1, the result is the one nearest to a plausible
        judge; with 0, it depends on the starts.

    Raises
    ------
    JudgeBayesError
        If the targets have different numbers of votes.
    """
    names = list(targets)
    n = tuple(sorted(targets[names[0]].results))
    for name in names:
        if tuple(sorted(targets[name].results)) != n:
            raise JudgeBayesError(f"The target {name!r} is not published at {n} votes.")
    shares = jnp.asarray([targets[name].label_counts for name in names], float)
    shares = shares / shares.sum(1, keepdims=True)
    published = jnp.asarray(
        [
            [(*targets[name].results[k], targets[name].tie_share.get(k, np.nan)) for k in n]
            for name in names
        ]
    )
    variance = jnp.where(
        jnp.arange(3) < 2,
        FIT_ERROR**2,
        published * (1 - published) / _sizes(targets)[:, None, None] + 0.005**2,
    )
    fits: dict[str, list[tuple[Twin, float]]] = {name: [] for name in names}
    for family, tie in product((FAMILIES[f] for f in families), ties):
        low, high = np.asarray(family.lower), np.asarray(family.upper)
        cube = (spread(starts, len(low)) + 1) / 2
        decisions = tuple(jnp.asarray(majority_decision(k, tie)) for k in n)
        start_points = jnp.asarray(low + (high - low) * cube)
        x, value, differences = _fit(
            family, n, shares, published, decisions, start_points, plausibility
        )
        for cell, name in enumerate(names):
            best = int(jnp.argmin(value[cell]))
            difference = differences[cell, best]
            misfit = jnp.abs(difference).max(0)
            if float(misfit[:2].max()) <= tolerance:
                parameters = tuple(float(v) for v in x[cell, best])
                largest = float(misfit[:2].max()), float(misfit[2])
                log_likelihood = -0.5 * float(jnp.nansum(difference**2 / variance[cell]))
                fits[name].append((Twin(family, parameters, tie, *largest), log_likelihood))
    return {name: _weighted(candidates) for name, candidates in fits.items()}


def _sizes(targets: Mapping[str, Target]) -> Float[Array, " cell"]:
    return jnp.asarray([sum(target.label_counts) for target in targets.values()], float)


def _weighted(candidates: list[tuple[Twin, float]]) -> list[Twin]:
    weights = jax.nn.softmax(jnp.array([log_likelihood for _, log_likelihood in candidates]))
    return [
        replace(twin, weight=float(weight))
        for (twin, _), weight in zip(candidates, weights, strict=True)
    ]


@in_float64
def most_likely(
    family: Family, observed: Float[np.ndarray, "2 state"], votes: int
) -> Float[np.ndarray, " parameter"]:
    """Return the family's maximum-likelihood parameters.

    `observed` contains the number of items with label +1 (row 0; mirrored, label -1 too) and with
    label 0 (row 1) for each of the vote counts in `states`.
    """
    counts = states(votes)

    def objective(x: Array) -> Array:
        likely = jnp.log(family.state_probs(x, counts) + FLOOR)
        return -jnp.sum(jnp.asarray(observed) * likely) / observed.sum()

    low, high = jnp.asarray(family.lower), jnp.asarray(family.upper)
    return np.asarray(
        jax.jit(lambda x: minimise(objective, x, low, high).x)(jnp.asarray(family.centre))
    )


@in_float64
def draw_votes(twin: Twin, labels: Int[np.ndarray, " item"], samples: int, seed: int) -> Votes:
    """Return `samples` votes of one judge on items with known labels (class indices)."""
    rng = np.random.default_rng(seed)
    parameters = np.asarray(twin.parameters)
    probs = np.zeros((len(labels), 3))
    for label, of_label in ((1, labels != 1), (0, labels == 1)):
        probs[of_label] = twin.family.draw(parameters, label, int(of_label.sum()), rng)
    probs[labels == 0] = probs[labels == 0, ::-1]
    counts = rng.multinomial(samples, probs)
    votes = from_counts(counts)
    shuffled = rng.permuted(np.asarray(votes.index), axis=-1)  # from_counts sorts the samples
    return Votes(jnp.asarray(shuffled), None, None, None, 3)
