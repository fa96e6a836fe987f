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

Scores of pairwise votes, from which the win rate learns: without labels, and fitted to labels.

With :math:`x_{nj}` in [-1, 1] judge j's mean vote on item n (1 is a vote for A, -1 for B, 0 a tie) less
the judge's mean over items, the *consensus* of an item is the mean of :math:`x_{nj}` over the judges who
voted on it. The *weighted* score is the linear predictor of a logistic regression of decided labels on
the consensus and all :math:`x_{nj}`, with a ridge penalty; that of a labelled item comes from a
regression without it (cross-fitting), so that the score does not contain the item's own label.

A judge who always votes for A has the scores 0. Swapping A and B turns the sign of every score.
"""

from collections.abc import Sequence
from functools import cache
from math import log, pi
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, log_expit, ndtri
from scipy.stats import chi2, multivariate_t, qmc

from judgebayes.arrays import ItemFloats
from judgebayes.votes import MISSING, UNDECIDED, Votes

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
    """Columns of a regression, with the prior standard deviation of each; infinite of an intercept."""

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
    design: Design,
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
        The columns beside the score.
    mirrored
        Whether exchanging the outcomes mirrors the draws. If not, they are independent of the mirrored
        ones, and their second half mirrors the second column of a score, or repeats the first half.
    """
    base, precision = design.columns, design.scale**-2.0
    prior = _Prior(not precision.all(), log(NO_SCORE), mirrored, 0 if mirrored else None)
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

    if not weighed:
        log_scale = np.log(np.diag(factor)).sum()
        evidence = log_posterior(mode[None])[0] + 0.5 * d * log(2 * pi) + log_scale
        return Drawn(score, draws, np.full(len(draws), evidence - log(len(draws))))
    proposal = multivariate_t.logpdf(draws, mode, factor @ factor.T, FREEDOM)
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


FOLDS = 10
CENTRE = 10.0
"""How many votes the common mean counts as in the mean of a judge who has few votes."""
COMMON_PENALTY, JUDGE_PENALTY = 0.1, 1.0
"""Penalties of the weight of the standardised consensus, and of each judge's own weight."""
FEWEST = 3
"""Decided labels of either side below which there is no weighted score."""
MOST_JUDGES = 200
"""Of more judges, those with the most votes on labelled items have own weights."""
TOLERANCE = 1e-6


class Verdicts(NamedTuple):
    """Pairwise votes as numbers: 1 for A, -1 for B, 0 for a tie, and what is between them."""

    mean: Float[np.ndarray, "item judge"]
    """The mean of each judge's votes on each item; NaN without votes."""
    counts: Float[np.ndarray, "item three"]
    """The votes on each item: for A, for a tie, for B."""

    def swapped(self, where: Bool[np.ndarray, " item"]) -> "Verdicts":
        """Return the verdicts with A and B exchanged on some items."""
        turned = np.asarray(where)[:, None]
        return Verdicts(
            np.where(turned, -self.mean, self.mean),
            np.where(turned, self.counts[:, ::-1], self.counts),
        )

    def rate(self, ties: str) -> float:
        """Return the naive win rate of A, the share of all votes; NaN without votes.

        A tie is half a vote for A (`ties="half"`), left out ("excluded"), or a vote ("separate").
        """
        win, tie, loss = self.counts.sum(0)
        among = win + loss + (0 if ties == "excluded" else tie)
        return float((win + (tie / 2 if ties == "half" else 0)) / among) if among else float("nan")

    def tie_shares(self) -> ItemFloats:
        """Return the share of ties among each item's votes; 0 without votes."""
        return np.asarray(self.counts[:, 1] / np.maximum(self.counts.sum(1), 1))


def verdicts(votes: Votes) -> Verdicts:
    """Return the votes as numbers.

    The lowest class is a win of B, the highest one of A; an undecided vote is a tie.
    """
    middle = (votes.n_classes - 1) / 2
    value = (np.arange(votes.n_classes) - middle) / middle
    sides = [value > 0, value == 0, value < 0]
    index = np.asarray(votes.index)
    cast, undecided = index != MISSING, index == UNDECIDED
    given = np.where(index >= 0, value[np.maximum(index, 0)], 0.0)
    n = cast.sum(-1)
    mean = np.where(n > 0, given.sum(-1) / np.maximum(n, 1), np.nan)
    decided = (index >= 0)[..., None] & np.stack(sides, -1)[np.maximum(index, 0)]
    decided[..., 1] |= undecided
    return Verdicts(mean, decided.sum((1, 2)).astype(float))


def _centred(mean: Float[np.ndarray, "item judge"]) -> Float[np.ndarray, "item judge"]:
    """Return each judge's votes less its mean; 0 without votes."""
    cast = np.isfinite(mean)
    total, n = np.where(cast, mean, 0.0).sum(0), cast.sum(0)
    common = total.sum() / max(n.sum(), 1)
    centre = np.where(
        n >= CENTRE, total / np.maximum(n, 1), (total + CENTRE * common) / (n + CENTRE)
    )
    return np.where(cast, mean - centre, 0.0)


def consensus(mean: Float[np.ndarray, "item judge"]) -> ItemFloats:
    """Return the mean over its judges of each item's centred votes; 0 without votes."""
    return np.asarray(_centred(mean).sum(1) / np.maximum(np.isfinite(mean).sum(1), 1))


def weighted_score(mean: Float[np.ndarray, "item judge"], outcome: ItemFloats) -> ItemFloats | None:
    """Return the score of each item from all judges, cross-fitted on labelled items.

    `outcome` is 1 where A wins, 0.5 a tie, 0 where B wins, NaN unknown. None with fewer than three
    decided labels of either side, or with a single judge, whose score is the consensus.
    """
    decided = np.flatnonzero((outcome == 0) | (outcome == 1))
    won = outcome[decided]
    if min((won == 0).sum(), (won == 1).sum()) < FEWEST or mean.shape[1] < 2:
        return None
    common = consensus(mean)
    scale = common.std()
    if scale < TOLERANCE:
        return None
    voted = np.isfinite(mean[decided]).sum(0)
    used = np.sort(np.argsort(-voted, kind="stable")[:MOST_JUDGES])
    x = np.column_stack([np.ones(len(common)), common / scale, _centred(mean[:, used])])
    penalty = np.r_[0.05, COMMON_PENALTY, np.full(len(used), JUDGE_PENALTY)]
    one = np.ones(len(outcome))
    score = x[:, 1:] @ mode_of(x[decided], won, one[decided], penalty)[0][1:]
    known = np.flatnonzero(np.isfinite(outcome))
    fold = np.full(len(outcome), -1)
    fold[known] = np.arange(len(known)) % FOLDS
    for place in range(FOLDS):
        out, rest = known[fold[known] == place], decided[fold[decided] != place]
        if len(out):
            score[out] = x[out, 1:] @ mode_of(x[rest], outcome[rest], one[rest], penalty)[0][1:]
    return np.asarray(score)
