r"""The share of each generator's items that is valid, from no label of the generator to all.

The other generators give a prior for a generator's share: the posterior of `Panel` with the generator's
labels hidden. Its own labels enter item by item. Item n of generator i is valid with probability

.. math:: p_n(\delta_i) = \mathrm{sigmoid}(\ell_n + \delta_i)

where :math:`\ell_n` is a ridge-penalised logistic score of its votes, fitted to all labelled items, and
:math:`\delta_i` the generator's offset. The offset has the prior under which the mean of :math:`p_n`
over the generator's items has the prior of its share. The posterior of the share of these items is that
of

.. math:: \frac{1}{N_i} \Bigl(\sum_{n\ \mathrm{labelled}} y_n + \sum_{n\ \mathrm{unlabelled}} z_n\Bigr),
          \qquad z_n \sim \mathrm{Bernoulli}(p_n(\delta_i))

Without a label of the generator it is the prior, with the chance of its items around it; with all labels
it is known. A label can only add to the likelihood, so that the interval does not jump between methods.
For a generator without items it is the prior.

That is the target "these items". The target "more items like these" is the share among new items, the
mean of :math:`p_n(\delta_i)` over new :math:`\ell_n`: it is never known, and its spread around the mean
over these items is the cluster-robust one.

With groups of items (`judgebayes.generators.clusters`), the likelihood of the labels is raised to the
power 1 / deff, and the chance of the unlabelled items is that of independent ones times deff.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import norm, rankdata

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.clusters import (
    OFFSETS,
    Clusters,
    correlation_between,
    correlation_within,
    normal_draws,
    residuals,
)
from judgebayes.generators.counts import PrecisionCounts, count_votes
from judgebayes.generators.panel import FittedPanel, Panel
from judgebayes.votes import Votes

__all__ = ["TARGETS", "FittedShares", "item_scores", "shares"]

TARGETS = ("these", "more")
"""What an interval is about: these items, or more items like these."""

COARSE = 20
"""Every 20th offset is one at which the spread of new items is computed."""
LOGITS = np.linspace(-12.0, 12.0, 2401)
RIDGE = 0.5
"""The inverse of the ridge penalty of the score, whose votes are -1, 0 (missing) and 1."""
FOLDS = 12
"""With more labelled generators, a generator's labels are hidden together with those of others."""
BINS = 400
FEW = 10
"""Labelled items of either class below which votes get no score: items then differ by offset only."""


@dataclass(frozen=True)
class FittedShares:
    """The posterior of each generator's share of valid items, given as quantiles."""

    panel: FittedPanel
    """The posterior from counts, with all labels: it gives the correlations of the draws."""
    ends: Float[np.ndarray, "generator point"]
    """Quantiles of each generator's share, at `levels`."""
    held_out: Float[np.ndarray, "generator point"]
    """Quantiles of the same without the generator's own labels; NaN for generators without labels."""
    levels: Float[np.ndarray, " point"]
    status: Int[Array, ""]
    target: str
    correlation: float
    """The intraclass correlation of validity in groups of items; 0 without groups."""
    own_share: Float[np.ndarray, " generator"]
    """The share of the information on a generator that comes from its own labels."""
    in_common: Float[np.ndarray, "generator generator"]
    """The correlation of the generators' labels through their groups."""

    def quantile(self, level: float) -> Float[np.ndarray, " generator"]:
        """Return a quantile of the share of valid items of each generator."""
        return np.array([np.interp(level, self.levels, row) for row in self.ends])

    def estimate(self) -> Float[np.ndarray, " generator"]:
        """Return the posterior medians."""
        return self.quantile(0.5)

    def interval(
        self, level: float = 0.9
    ) -> tuple[Float[np.ndarray, " generator"], Float[np.ndarray, " generator"]]:
        """Return the ends of the central intervals."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def draws(
        self, n_draws: int = 4000, key: PRNGKeyArray | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        r"""Return joint draws, by a Gaussian copula of the shares' own distributions.

        With w the share of information from own labels, and normal scores z of the panel's draws and v
        with the correlation of the labels, the ranks are those of
        :math:`\sqrt{1 - w} z + \sqrt{w} v`.
        """
        key = jax.random.key(0) if key is None else key
        of_panel = np.asarray(self.panel.rate_draws(n_draws, key))
        z = ndtri((rankdata(of_panel, axis=0) - 0.5) / n_draws)
        if self.own_share.any():
            own = normal_draws(self.in_common, n_draws, jax.random.fold_in(key, 1))
            z = np.sqrt(1 - self.own_share) * z + np.sqrt(self.own_share) * own
        ranks = (rankdata(z, axis=0) - 0.5) / n_draws
        columns = zip(ranks.T, self.ends, strict=True)
        return np.stack([np.interp(rank, self.levels, row) for rank, row in columns], axis=1)


def item_scores(votes: Votes, labels: Int[np.ndarray, " item"]) -> Float[np.ndarray, " item"]:
    """Return the logistic score of every item's votes, fitted to the labelled items; 0 if few labels."""
    from sklearn.linear_model import LogisticRegression  # takes half a second to import

    cast = np.asarray(votes.index)
    some = (cast >= 0).sum(-1)
    mean = np.where(cast >= 0, 2.0 * cast - 1, 0.0).sum(-1) / np.maximum(some, 1)
    known = labels >= 0
    if min((labels == 0).sum(), (labels == 1).sum()) < FEW:
        return np.zeros(len(labels))
    fit = LogisticRegression(C=RIDGE, max_iter=1000).fit(mean[known], labels[known])
    return np.asarray(fit.decision_function(mean))


@in_float64
def shares(
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    generator: Int[np.ndarray, " item"],
    n_generators: int,
    method: Panel | None = None,
    *,
    target: str = "these",
    groups: Int[np.ndarray, " item"] | None = None,
) -> FittedShares:
    """Return the posterior of each generator's share of valid items.

    Parameters
    ----------
    votes
        Binary votes; 1 means valid.
    labels
        1 valid, 0 invalid, -1 unknown.
    generator
        The index of each item's generator, from 0.
    n_generators
        The number of generators.
    method
        The estimator of the prior from counts; `Panel()` by default.
    target
        "these": the share among these items. "more": among more items like these (of new groups).
    groups
        The group of each item, such as its program or its question; by default items are independent.

    Raises
    ------
    JudgeBayesError
        If a label is not -1, 0 or 1, or the target is unknown.
    """
    if not np.isin(labels, (-1, 0, 1)).all():
        raise JudgeBayesError("Labels must be 1 (valid), 0 (invalid) or -1 (unknown).")
    if target not in TARGETS:
        raise JudgeBayesError(f"The target {target!r} is unknown; choose one of: these, more.")
    method = Panel() if method is None else method
    counts = count_votes(votes, labels, generator, n_generators)
    labelled = np.asarray(counts.labelled)
    fits = _fits(method, counts, labelled)
    scores = item_scores(votes, labels)
    residual = residuals(scores, labels, generator, n_generators)
    if groups is None:
        group, correlation, in_common = np.arange(len(labels)), 0.0, np.eye(n_generators)
    else:
        group = np.asarray(groups)
        correlation = correlation_within(residual, labels, generator, group)
        in_common = correlation_between(residual, group, generator, n_generators)
    levels = ndtr(np.linspace(-5, 5, 501))
    ends, held_out = np.full((2, n_generators, len(levels)), np.nan)
    own_share = np.zeros(n_generators)
    for place in range(n_generators):
        own = generator == place
        prior = jax.tree.map(lambda leaf, at=place: leaf[at], fits)
        mixture = (prior.weight, prior.mean[:, place], prior.covariance[:, place, place] ** 0.5)
        items = _Items(scores[own], labels[own], Clusters(group[own], correlation))
        ends[place] = _quantiles(items, mixture, levels, target)
        if labelled[place]:
            hidden = items._replace(labels=np.full(own.sum(), -1))
            held_out[place] = _quantiles(hidden, mixture, levels, "these")
            own_share[place] = 0.0 if groups is None else _learnt(items, mixture, levels)
    whole = jax.tree.map(lambda leaf: leaf[-1], fits)
    return FittedShares(
        whole,
        ends,
        held_out,
        levels,
        fits.status.max(),
        target,
        correlation,
        own_share,
        in_common,
    )


def _learnt(
    items: "_Items", mixture: tuple[Array, Array, Array], levels: Float[np.ndarray, " point"]
) -> float:
    """Return the share of the precision of a generator's logit that its own labels add to the prior."""
    hidden = items._replace(labels=np.full(len(items.labels), -1))
    spread = [
        float(np.subtract(*np.interp((0.84, 0.16), levels, logit(np.clip(ends, 1e-9, 1 - 1e-9)))))
        for ends in (_quantiles(each, mixture, levels, "more") for each in (items, hidden))
    ]
    return float(np.clip(1 - (spread[0] / spread[1]) ** 2, 0.0, 1.0))


@jax.jit
def _each(
    method: Panel, counts: PrecisionCounts, keep: Bool[Array, "fit generator"]
) -> FittedPanel:
    return jax.lax.map(lambda shown: method.fit(counts.reveal(shown)), keep)


def _fits(
    method: Panel, counts: PrecisionCounts, labelled: Bool[np.ndarray, " generator"]
) -> FittedPanel:
    """Return a fit for each generator, with its own labels hidden or with those of its fold."""
    own = np.flatnonzero(labelled)
    n_folds = min(len(own), FOLDS)
    fold = np.full(len(labelled), n_folds)
    fold[own] = np.arange(len(own)) % max(n_folds, 1)
    keep = fold != np.arange(n_folds + 1)[:, None]
    keep[-1] = True
    fits = _each(method, counts, jnp.asarray(keep))
    where = np.append(fold, n_folds)
    return jax.tree.map(lambda leaf: leaf[where], fits)


class _Items(NamedTuple):
    """The items of one generator."""

    scores: Float[np.ndarray, " item"]
    labels: Int[np.ndarray, " item"]
    clusters: Clusters


def _quantiles(
    items: _Items,
    mixture: tuple[Array, Array, Array],
    levels: Float[np.ndarray, " point"],
    target: str,
) -> Float[np.ndarray, " point"]:
    """Return quantiles of the share of valid items of one generator."""
    scores, labels, clusters = items
    n, valid, unknown = len(labels), (labels == 1).sum(), (labels < 0).sum()
    weight, centre, spread = (np.asarray(part)[:, None] for part in mixture)
    if n == 0:
        cdf = (weight * ndtr((LOGITS - centre) / spread)).sum(0)
        return np.interp(levels, cdf, expit(LOGITS))
    if unknown == 0 and target == "these":
        return np.full(len(levels), valid / n)
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS)))
    group = np.searchsorted(edges, scores)
    score = np.bincount(group, scores) / np.maximum(np.bincount(group), 1)
    size = {y: np.bincount(group[labels == y], minlength=len(score)) for y in (-1, 0, 1)}
    log_valid = -np.logaddexp(0, -(score + OFFSETS[:, None]))
    log_invalid = -np.logaddexp(0, score + OFFSETS[:, None])
    p = np.exp(log_valid)
    mean = p @ (size[-1] + size[0] + size[1]) / n
    eta = logit(np.clip(mean, 1e-12, 1 - 1e-12))
    density = (weight * norm.pdf(eta, centre, spread)).sum(0) * np.gradient(eta, OFFSETS)
    likelihood = log_valid @ size[1] + log_invalid @ size[0]
    likelihood /= clusters.design_effect(labels >= 0)
    log_posterior = np.log(density + 1e-300) + likelihood
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    if target == "more":
        # The spread of the mean over new scores, on the logit scale.
        some = slice(None, None, COARSE)
        error = [clusters.error_of_mean(expit(scores + offset)) for offset in OFFSETS[some]]
        chance = np.interp(OFFSETS, OFFSETS[some], error) / (mean * (1 - mean))
        low, high, middle, at = 0.0, 1.0, eta, LOGITS
    else:
        middle = (valid + p @ size[-1]) / n
        inflation = clusters.design_effect(labels < 0)
        chance = np.sqrt(inflation * ((p * (1 - p)) @ size[-1])) / n
        low, high = valid / n, (valid + unknown) / n
        at = low + (high - low) * expit(LOGITS)
    cdf = ndtr((at[:, None] - middle) / np.maximum(chance, 1e-9)) @ posterior
    share = low + (high - low) * expit(LOGITS)
    return np.interp(levels, np.maximum.accumulate(cdf), share)
