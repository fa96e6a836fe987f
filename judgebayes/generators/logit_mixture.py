r"""A logistic regression with one score at most, averaged over which score and how steep.

Item n has the outcome 1 with probability :math:`\mathrm{sigmoid}(a + b^T s_n)`, with one of several
standardised scores s, of one column or two, or none. The prior of a is Jeffreys' for a share (half an
outcome of either kind at s = 0), those of b are Normal(0, 1.5) or Normal(0, 6), with the same
probability; no score has the probability .2, and the scores share the rest. With a design of further
columns (pairs of systems), these have Normal priors of their own and replace a.

The posterior is a list of weighted draws: from a t distribution around the mode, weighted by importance;
beyond `MOST_WEIGHED` parameters from the Gaussian approximation at the mode, weighted by its evidence.
The draws come from one fixed sequence with its mirror image, so that the same data give the same answer,
and exchanging the outcomes mirrors it. If a score has two columns, turning the sign of the second one
does.
"""

from collections.abc import Sequence
from functools import cache
from math import lgamma, log, pi
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, ndtri
from scipy.stats import chi2, qmc

from judgebayes.arrays import ItemFloats

SLOPES = (1.5, 6.0)
"""Prior standard deviations of the slope of a standardised score."""
NO_SCORE = 0.2
"""The prior probability that no score says anything."""
DRAWS = 256
"""Draws of each component, and as many mirrored ones."""
FREEDOM = 6.0
"""Degrees of freedom of the t distribution of the draws."""
SPREAD = 1.15
"""How much wider than the Gaussian approximation it is."""
MOST_WEIGHED = 4
STEPS, TOLERANCE, LONGEST = 50, 1e-8, 3.0
DECIMALS = 2
"""Standardised scores are rounded, so that few different ones are left."""


class Design(NamedTuple):
    """Columns of a regression in place of its intercept, with the prior standard deviation of each."""

    columns: Float[np.ndarray, "item column"]
    scale: Float[np.ndarray, " column"]


class Drawn(NamedTuple):
    """Draws of the coefficients with one score, or without."""

    score: int | None
    """The place of the score among the scores."""
    coefficients: Float[np.ndarray, "draw coefficient"]
    """Of the design, and of the score."""
    log_weight: Float[np.ndarray, " draw"]


def standardised(score: ItemFloats) -> ItemFloats | None:
    """Return a score with mean 0 and variance 1, rounded; None if it does not vary."""
    spread = score.std()
    if spread < 1e-9:
        return None
    return np.asarray(np.round((score - score.mean()) / spread, DECIMALS))


def draw_logits(
    scores: Sequence[Float[np.ndarray, "item ..."]],
    outcome: ItemFloats,
    power: float,
    design: Design | None = None,
    *,
    mirrored: bool = True,
) -> list[Drawn]:
    """Return draws from the posterior, with every score and without one.

    Parameters
    ----------
    scores
        Standardised scores of the items with a known outcome, of one column or two each.
    outcome
        0 or 1.
    power
        The power of the likelihood, below 1 if items say less than independent ones.
    design
        Columns in place of the intercept; by default the intercept alone.
    mirrored
        Whether exchanging the outcomes mirrors the draws. If not, they are independent of the mirrored
        ones, and their second half mirrors the second column of a score, or repeats the first half.
    """
    n = len(outcome)
    base = np.ones((n, 1)) if design is None else design.columns
    precision = np.zeros(1) if design is None else design.scale**-2.0
    pseudo = design is None
    prior = _Prior(pseudo, log(NO_SCORE), mirrored, 0 if mirrored else None)
    drawn = [_component(base, outcome, power, precision, prior, None)]
    share = log((1 - NO_SCORE) / max(len(scores) * len(SLOPES), 1))
    for place, score in enumerate(scores):
        for scale in SLOPES:
            x = np.column_stack([base, score])
            added = x.shape[1] - base.shape[1]
            own = np.append(precision, np.full(added, scale**-2.0))
            turned = x.shape[1] - 1 if added > 1 and not mirrored else prior.turned
            with_score = prior._replace(log_share=share, turned=turned)
            drawn.append(_component(x, outcome, power, own, with_score, place))
    return drawn


class _Prior(NamedTuple):
    pseudo: bool
    """Whether the intercept has Jeffreys' prior."""
    log_share: float
    """The log-probability of the component."""
    mirrored: bool
    turned: int | None
    """The coefficient whose sign the second half of the draws turns."""


def _component(
    x: Float[np.ndarray, "item coefficient"],
    y: ItemFloats,
    power: float,
    precision: Float[np.ndarray, " coefficient"],
    prior: _Prior,
    score: int | None,
) -> Drawn:
    d = x.shape[1]
    x, kind = np.unique(x, axis=0, return_inverse=True)
    n, ones = (power * np.bincount(kind.ravel(), each, len(x)) for each in (None, y))
    if prior.pseudo:  # half an outcome of either kind
        x = np.vstack([x, np.eye(1, d)])
        n, ones = np.append(n, 1.0), np.append(ones, 0.5)
    mode, hessian = mode_of(x, ones, n, precision)
    weighed = d <= MOST_WEIGHED
    factor = np.linalg.cholesky(np.linalg.inv(hessian)) * (SPREAD if weighed else 1.0)
    free = _free(d, heavy=weighed, mirrored=prior.mirrored, turned=prior.turned)
    draws = mode + free @ factor.T
    constant = prior.log_share + 0.5 * np.log(precision[precision > 0] / (2 * pi)).sum()

    def log_posterior(at: np.ndarray) -> np.ndarray:
        eta = at @ x.T
        fits = eta @ ones + log_expit(-eta) @ n
        return np.asarray(fits - 0.5 * (at**2 @ precision) + constant)

    log_scale = np.log(np.diag(factor)).sum()
    if not weighed:
        evidence = log_posterior(mode[None])[0] + 0.5 * d * log(2 * pi) + log_scale
        return Drawn(score, draws, np.full(len(draws), evidence - log(len(draws))))
    proposal = (
        lgamma((FREEDOM + d) / 2)
        - lgamma(FREEDOM / 2)
        - 0.5 * d * log(FREEDOM * pi)
        - log_scale
        - 0.5 * (FREEDOM + d) * np.log1p((free**2).sum(1) / FREEDOM)
    )
    return Drawn(score, draws, log_posterior(draws) - proposal - log(len(draws)))


def mode_of(
    x: Float[np.ndarray, "item coefficient"],
    ones: ItemFloats,
    n: ItemFloats,
    precision: Float[np.ndarray, " coefficient"],
) -> tuple[Float[np.ndarray, " coefficient"], Float[np.ndarray, "coefficient coefficient"]]:
    """Return the mode of a penalised logistic regression, and the negative Hessian there.

    By Newton's method with bounded steps. `n` are the weights of the rows, `ones` of their outcomes 1.
    """
    at = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = expit(x @ at)
        hessian = (x.T * (n * p * (1 - p))) @ x + np.diag(precision)
        step = np.linalg.solve(hessian, x.T @ (ones - n * p) - precision * at)
        longest = float(np.abs(x @ step).max(initial=0.0))
        at = at + step * min(1.0, LONGEST / max(longest, TOLERANCE))
        if longest < TOLERANCE:
            break
    p = expit(x @ at)
    return at, (x.T * (n * p * (1 - p))) @ x + np.diag(precision)


@cache
def _free(
    d: int, *, heavy: bool, mirrored: bool, turned: int | None
) -> Float[np.ndarray, "draw coefficient"]:
    """Return draws of a t or normal distribution twice, with the sign of one coefficient turned."""
    u = np.clip(qmc.Sobol(d + 1, seed=int(mirrored)).random(DRAWS), 1e-9, 1 - 1e-9)
    t = ndtri(u[:, :d])
    if heavy:
        t = t * np.sqrt(FREEDOM / chi2.ppf(u[:, d], FREEDOM))[:, None]
    return np.concatenate([t, np.where(np.arange(d) == turned, -t, t)])
