r"""Variational EM for the pooled model of Dawid and Skene (`judgebayes.models.pooled_dawid_skene`).

The items' classes on the one side, and the judges' skills and confusion matrices on the other, have
independent approximate posteriors. Given the expected votes N_jkl, the posterior of a judge is exact: a
skill z has the weight

.. math:: r_j(z) \propto N(z; 0, 1) \prod_k \mathrm{DirichletMultinomial}(N_{jk}; c_k m_k(z))

and the rows given z are Dirichlet(c_k m_k(z) + N_jk). The skill is integrated on a grid of LEVELS. A
step maximises the lower bound of the log marginal likelihood in turn over the classes, over the judges,
and over the shares and what describes the crowd. The last is one minorise-maximise step: given the
numbers of tables T_kl(z) (Minka, "Estimating a Dirichlet distribution", 2000, equation 1, before its
fixed point), the errors, the concentrations and the abilities maximise separate functions, the last a
logistic regression. So the bound never falls. It is exact where every label is known: then it is the
log marginal density.

Variational EM for pooled judges from two starts, with an extrapolation after every two steps.

The logarithm of the gamma function and its derivative, together: several times faster than apart.

Both are needed where rows of Dirichlet distributions are learnt from counts. JAX's own functions also
serve negative arguments, and do not share their logarithms.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.inference.fast.accelerated_em import accelerated, line
from judgebayes.inference.fast.dawid_skene_em import Counts, TwoStarts
from judgebayes.inference.point import EM
from judgebayes.inference.problem import Result
from judgebayes.models.pooled_dawid_skene import PooledPrior, mean_rows, off_diagonal

SHIFT = 8
"""Stirling's series is used from here, and Gamma(x + 1) = x Gamma(x) below."""
SERIES = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
)
"""The coefficients of 1 / z, 1 / z^3, ... in log Gamma(z) (Abramowitz & Stegun, 6.1.40 and 6.1.41)."""


def log_gamma_and_digamma(
    x: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Return log Gamma(x) and its derivative for x > 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> log_gamma, digamma = log_gamma_and_digamma(jnp.asarray(3.0))
    >>> print(f"{log_gamma:.4f} {digamma:.4f}")
    0.6931 0.9228
    """
    product, slope = x, jnp.ones_like(x)
    for i in range(1, SHIFT):
        product, slope = product * (x + i), slope * (x + i) + product
    z = x + SHIFT
    log_z, inverse = jnp.log(z), 1 / z
    square = inverse * inverse
    value, derivative = jnp.zeros_like(x), jnp.zeros_like(x)
    for i, coefficient in reversed(list(enumerate(SERIES))):
        value = value * square + coefficient
        derivative = derivative * square - (2 * i + 1) * coefficient
    stirling = (z - 0.5) * log_z - z + 0.5 * math.log(2 * math.pi) + value * inverse
    stirlings_slope = log_z - 0.5 * inverse + derivative * square
    return stirling - jnp.log(product), stirlings_slope - slope / product


LEVELS = 15
"""Points of the grid of skills, from -FARTHEST to FARTHEST standard deviations."""
FARTHEST = 3.0
NEWTON = 4
"""Newton steps to the maximum of a minorising function, each with a line search where needed."""
STEP_SIZES = (1.0, 0.5, 0.2, 0.05)


class _Crowd(NamedTuple):
    """The classes' shares, and how judges vary."""

    log_pi: Float[Array, " class"]
    mean_ability: Float[Array, ""]
    log_spread: Float[Array, ""]
    shift: Float[Array, " class"]
    log_concentration: Float[Array, " class"]
    errors: Float[Array, "class vote"]
    """With zeros on the diagonal; rows sum to one."""


class _Judges(NamedTuple):
    """The approximate posterior of the judges, given expected votes."""

    expected_log: Float[Array, "judge class vote"]
    """The expected logarithm of the confusion matrices."""
    confusion: Float[Array, "judge class vote"]
    """The expected confusion matrices."""
    divergence: Float[Array, ""]
    """The Kullback-Leibler divergence from the prior given the crowd, summed over judges."""
    tables: Float[Array, "level class vote"]
    """The expected numbers of tables, summed over judges."""
    slope: Float[Array, " class"]
    """The sum over judges of digamma(c_k + N_jk) - digamma(c_k)."""


def begin(log_pi: Float[Array, " class"], prior: PooledPrior) -> _Crowd:
    """Return the crowd at the modes of its priors, with the given class shares."""
    n_classes = len(log_pi)
    even = jnp.where(jnp.eye(n_classes, dtype=bool), 0.0, 1 / (n_classes - 1))
    log_c = jnp.full(n_classes, prior.log_concentration[0])
    mean, log_spread = (jnp.asarray(x[0], float) for x in (prior.ability, prior.log_spread))
    return _Crowd(log_pi, mean, log_spread, jnp.zeros(n_classes), log_c, even)


def given_votes(crowd: _Crowd, votes: Float[Array, "judge class vote"]) -> _Judges:
    """Return the posterior of the judges given their expected votes by class."""
    alpha, log_weight = _levels(crowd)
    c = jnp.exp(crowd.log_concentration)
    total = votes.sum(-1)
    counted = alpha[:, None] + votes  # level, judge, class, vote
    (
        (log_gamma, logs),
        (prior_log_gamma, prior_logs),
        (norm_log_gamma, norm),
        (prior_norm_log_gamma, prior_norm),
    ) = _log_gammas_and_digammas(counted, alpha, total + c, c)
    log_each = log_gamma.sum((-2, -1)) - prior_log_gamma.sum((-2, -1))[:, None]
    log_each += log_weight[:, None] - (norm_log_gamma - prior_norm_log_gamma).sum(-1)
    log_norm = logsumexp(log_each, axis=0)
    share = jnp.exp(log_each - log_norm)[..., None, None]
    expected_log = (share * logs).sum(0) - norm[..., None]
    spread = jnp.where(votes > 0, logs - prior_logs[:, None], 0.0)
    return _Judges(
        expected_log,
        (share * counted).sum(0) / (total + c)[..., None],
        (votes * expected_log).sum() - log_norm.sum(),
        alpha * (share * spread).sum(1),
        (norm - prior_norm).sum(0),
    )


def _log_gammas_and_digammas(*arrays: Array) -> list[tuple[Array, Array]]:
    """Return the logarithm of the gamma function of each array, and its derivative.

    They are computed together, which takes a quarter of the time that compiling them apart takes.
    """
    flat = jnp.concatenate([x.ravel() for x in arrays])
    ends = np.cumsum([x.size for x in arrays])[:-1]
    both = (jnp.split(x, ends) for x in log_gamma_and_digamma(flat))
    return [(a.reshape(x.shape), b.reshape(x.shape)) for x, a, b in zip(arrays, *both, strict=True)]


def improved(
    crowd: _Crowd, judges: _Judges, share: Float[Array, " class"], prior: PooledPrior
) -> _Crowd:
    """Return a crowd with a higher bound, given its judges and the expected number of items by class."""
    n_classes = len(share)
    classes = share + prior.classes
    off = ~jnp.eye(n_classes, dtype=bool)
    wrong = jnp.where(off, judges.tables.sum(0) + jnp.asarray(prior.wrong) / (n_classes - 1), 0.0)
    log_c = _concentrations(crowd.log_concentration, judges, prior)
    mean, log_spread, shift = _abilities(crowd, judges.tables, prior)
    return _Crowd(
        jnp.log(jnp.maximum(classes / classes.sum(), 1e-300)),
        mean,
        log_spread,
        shift,
        log_c,
        wrong / wrong.sum(-1, keepdims=True),
    )


def extrapolated(
    first: tuple[_Crowd, Array], second: tuple[_Crowd, Array], third: tuple[_Crowd, Array]
) -> tuple[_Crowd, Float[Array, "judge class vote"]]:
    """Return crowd and expected votes extrapolated from three points in a row.

    The length is that of the crowd, along which the bound is flat.
    """
    points = [(_free(crowd), votes) for crowd, votes in (first, second, third)]
    crowd, votes = line(points[0], points[1], points[2], lambda point: point[0])
    off = ~jnp.eye(len(crowd.shift), dtype=bool)
    errors = jax.nn.softmax(jnp.where(off, crowd.errors, -jnp.inf), axis=-1)
    log_pi = jax.nn.log_softmax(crowd.log_pi)
    return crowd._replace(log_pi=log_pi, errors=errors), jnp.maximum(votes, 0.0)


def moved(before: _Crowd, after: _Crowd) -> Float[Array, ""]:
    """Return the largest change of a parameter of the crowd, on the scale of the extrapolation."""
    changes = jax.tree.map(lambda a, b: jnp.abs(b - a).max(), _free(before), _free(after))
    return jnp.stack(list(changes)).max()


def _free(crowd: _Crowd) -> _Crowd:
    """Return the crowd with the logarithm of its errors."""
    off = ~jnp.eye(len(crowd.shift), dtype=bool)
    log_errors = jnp.log(jnp.maximum(jnp.where(off, crowd.errors, 1.0), 1e-300))
    return crowd._replace(errors=log_errors)


def bound(
    crowd: _Crowd, judges: _Judges, likelihood: Float[Array, ""], prior: PooledPrior
) -> Float[Array, ""]:
    """Return the lower bound of the log marginal density, up to the priors' constants.

    `likelihood` is the weighted sum over items of log sum_k pi_k exp(E log p(votes, label | k)).
    """
    off = ~jnp.eye(len(crowd.shift), dtype=bool)
    log_errors = jnp.log(jnp.where(off, jnp.maximum(crowd.errors, 1e-300), 1.0)).sum()
    log_prior = log_errors * prior.wrong / (len(off) - 1) + (prior.classes * crowd.log_pi).sum()
    for value, (location, scale) in (
        (crowd.mean_ability, prior.ability),
        (crowd.log_spread, prior.log_spread),
        (crowd.shift, (0.0, prior.shift)),
        (crowd.log_concentration, prior.log_concentration),
    ):
        log_prior -= 0.5 * (((value - location) / scale) ** 2).sum()
    return likelihood - judges.divergence + log_prior


def crowd_sites(crowd: _Crowd) -> dict[str, Array]:
    """Return what describes the crowd under the names of the program's sites, without `pi`."""
    sites = {
        name: getattr(crowd, name)
        for name in ("mean_ability", "log_spread", "shift", "log_concentration")
    }
    return sites | ({"errors": off_diagonal(crowd.errors)} if len(crowd.shift) > 2 else {})


def pseudo_votes(crowd: _Crowd) -> Float[Array, " class"]:
    """Return the number of votes of each class that the prior of a judge's accuracy is worth.

    It is that of the Beta distribution with the same mean and variance.
    """
    alpha, log_weight = _levels(crowd)
    c, weight = jnp.exp(crowd.log_concentration), jnp.exp(log_weight)[:, None]
    right = jnp.diagonal(alpha, axis1=-2, axis2=-1) / c
    mean = (weight * right).sum(0)
    variance = (weight * ((right - mean) ** 2 + right * (1 - right) / (c + 1))).sum(0)
    return mean * (1 - mean) / variance - 1


def _levels(crowd: _Crowd) -> tuple[Float[Array, "level class vote"], Float[Array, " level"]]:
    """Return the parameters of the rows' prior at each level of skill, and the levels' log weights."""
    skill = jnp.asarray(np.linspace(-FARTHEST, FARTHEST, LEVELS))
    log_weight = -0.5 * skill**2
    right = jax.nn.sigmoid(
        crowd.mean_ability + jnp.exp(crowd.log_spread) * skill[:, None] + crowd.shift
    )
    alpha = jnp.exp(crowd.log_concentration)[:, None] * mean_rows(right, crowd.errors)
    return alpha, log_weight - logsumexp(log_weight)


def _concentrations(
    log_c: Float[Array, " class"], judges: _Judges, prior: PooledPrior
) -> Float[Array, " class"]:
    """Return the maximum of T log c - c slope + log prior, which is concave in log c."""
    location, scale = prior.log_concentration
    total = judges.tables.sum((0, -1))

    def newton(_: Array, x: Array) -> Array:
        gradient = total - jnp.exp(x) * judges.slope - (x - location) / scale**2
        curvature = jnp.exp(x) * judges.slope + 1 / scale**2
        return x + jnp.clip(gradient / curvature, -1.0, 1.0)

    return jax.lax.fori_loop(0, 2 * NEWTON, newton, log_c)


def _abilities(
    crowd: _Crowd, tables: Float[Array, "level class vote"], prior: PooledPrior
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " class"]]:
    """Return mean and log spread of the abilities, and shifts: a logistic regression on the skills."""
    n_classes = tables.shape[-1]
    skill = jnp.asarray(np.linspace(-FARTHEST, FARTHEST, LEVELS))
    right = jnp.diagonal(tables, axis1=-2, axis2=-1)
    wrong = tables.sum(-1) - right
    location = jnp.asarray([prior.ability[0], prior.log_spread[0], *[0.0] * n_classes])
    scale = jnp.asarray([prior.ability[1], prior.log_spread[1], *[prior.shift] * n_classes])

    def logits(x: Array) -> Array:
        return x[0] + jnp.exp(x[1]) * skill[:, None] + x[2:]

    def value(x: Array) -> Array:
        fit = right * jax.nn.log_sigmoid(logits(x)) + wrong * jax.nn.log_sigmoid(-logits(x))
        return fit.sum() - 0.5 * (((x - location) / scale) ** 2).sum()

    def newton(_: Array, x: Array) -> Array:
        each = jax.jacfwd(logits)(x)  # level, class, parameter
        p = jax.nn.sigmoid(logits(x))
        information = jnp.einsum("tk,tka,tkb->ab", (right + wrong) * p * (1 - p), each, each)
        step = jnp.linalg.solve(information + jnp.diag(1 / scale**2), jax.grad(value)(x))
        tried = x + jnp.asarray(STEP_SIZES)[:, None] * step
        best, at = value(x), x
        for new, gained in zip(tried, jax.vmap(value)(tried), strict=True):
            best, at = jnp.maximum(best, gained), jnp.where(gained > best, new, at)
        return at

    start = jnp.concatenate([jnp.stack([crowd.mean_ability, crowd.log_spread]), crowd.shift])
    x = jax.lax.fori_loop(0, NEWTON, newton, start)
    return x[0], x[1], x[2:]


Scalar = float | Float[Array, ""]

Point = tuple[_Crowd, Float[Array, "start judge class vote"]]
"""A crowd and the expected votes."""


def maximise_pooled(
    inference: EM,
    count: Counts,
    labels: ItemCodes,
    weight: ItemValues,
    prior: PooledPrior,
    noise: Scalar,
    n_classes: int,
) -> Result:
    """Run variational EM from both starts; every step raises the lower bound."""
    em = TwoStarts(count, labels, weight, noise, n_classes)
    bounds = jax.vmap(bound, (0, 0, 0, None))
    judges_given = jax.vmap(given_votes)
    all_improved = jax.vmap(improved, (0, 0, 0, None))
    all_moved = jax.vmap(moved)

    def step(crowd: _Crowd, expected: Float[Array, "column item"]) -> Point:
        votes = em.tally(expected)
        judges = judges_given(crowd, votes)
        return all_improved(crowd, judges, em.share(expected), prior), votes

    def advance(point: Point) -> tuple[Point, Float[Array, " start"]]:
        judges = judges_given(*point)
        likelihood, expected = em.expect(point[0].log_pi, judges.expected_log)
        return step(point[0], expected), bounds(point[0], judges, likelihood, prior)

    log_pi, log_confusion = em.begin()
    _, expected = em.expect(log_pi, log_confusion)
    crowd = jax.vmap(lambda x: begin(x, prior))(log_pi)
    (crowds, votes), converged, steps = accelerated(
        advance,
        jax.vmap(extrapolated),
        step(crowd, expected),
        least_gain=inference.tolerance * jnp.maximum(weight.sum(), 1.0),
        max_steps=inference.max_steps,
        moved=lambda before, after: all_moved(before[0], after[0]),
        least_move=inference.tolerance**0.5 / 100,
    )
    judges = judges_given(crowds, votes)
    likelihood, expected = em.expect(crowds.log_pi, judges.expected_log)
    value = bounds(crowds, judges, likelihood, prior)
    values = {"pi": jnp.exp(crowds.log_pi), "confusion": judges.confusion}
    values |= jax.vmap(crowd_sites)(crowds)
    pseudo = jax.vmap(pseudo_votes)(crowds)
    return em.higher(values, pseudo, value, expected, converged, steps)
