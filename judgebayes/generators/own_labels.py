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

A label that may be wrong is evidence :math:`\lambda_n = \log p(\text{labels} \mid \text{valid}) -
\log p(\text{labels} \mid \text{invalid})`. Its factor of the likelihood is
:math:`p_n e^{\lambda_n} + 1 - p_n`, and the item is valid with probability
:math:`\mathrm{sigmoid}(\ell_n + \delta_i + \lambda_n)`. A certain label has
:math:`\lambda_n = \pm\infty`, and an unlabelled item 0. The score and the counts then use the expected
labels (`judgebayes.generators.uncertain`).
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from scipy.special import expit, logit, ndtr
from scipy.stats import norm, rankdata

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import PrecisionCounts, count_votes, expected_counts
from judgebayes.generators.panel import FittedPanel, Panel
from judgebayes.generators.uncertain import FEW, RIDGE, expected_validity, mean_votes
from judgebayes.votes import Votes
from judgebayes.votes.evidence import Evidence, certain

__all__ = ["FittedShares", "item_scores", "shares"]

OFFSETS = np.linspace(-8.0, 8.0, 801)
LOGITS = np.linspace(-12.0, 12.0, 2401)
FOLDS = 12
"""With more labelled generators, a generator's labels are hidden together with those of others."""
BINS = 400


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
        """Return joint draws: the shares' own distributions, with the ranks of the panel's draws."""
        none = jnp.zeros_like(self.panel.valid)
        # Without labels, so that generators with all labels have ranks too: these may be wrong.
        panel = replace(self.panel, valid=none, invalid=none, unlabelled=none + 1)
        common = np.asarray(panel.draws(n_draws, key))
        ranks = (rankdata(common, axis=0) - 0.5) / n_draws
        columns = zip(ranks.T, self.ends, strict=True)
        return np.stack([np.interp(rank, self.levels, row) for rank, row in columns], axis=1)


def item_scores(
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    valid: Float[np.ndarray, " item"] | None = None,
) -> Float[np.ndarray, " item"]:
    """Return the logistic score of every item's votes, fitted to the labelled items; 0 if few labels.

    `valid` is the probability that an item is valid, for labels that may be wrong.
    """
    from sklearn.linear_model import LogisticRegression  # takes half a second to import

    mean, known = mean_votes(votes), labels >= 0
    if min((labels == 0).sum(), (labels == 1).sum()) < FEW:
        return np.zeros(len(labels))
    fit = LogisticRegression(C=RIDGE, max_iter=1000)
    if valid is None:
        fit.fit(mean[known], labels[known])
    else:
        p = valid[known]
        both = np.repeat([0, 1], len(p))
        fit.fit(np.tile(mean[known], (2, 1)), both, np.concatenate([1 - p, p]))
    return np.asarray(fit.decision_function(mean))


@in_float64
def shares(
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    generator: Int[np.ndarray, " item"],
    n_generators: int,
    method: Panel | None = None,
    evidence: Evidence | None = None,
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
    evidence
        The evidence of each item's labels, if they may be wrong; 0 where `labels` is -1.

    Raises
    ------
    JudgeBayesError
        If a label is not -1, 0 or 1.
    """
    if not np.isin(labels, (-1, 0, 1)).all():
        raise JudgeBayesError("Labels must be 1 (valid), 0 (invalid) or -1 (unknown).")
    method = Panel() if method is None else method
    valid = None
    if evidence is None:
        counts, evidence = count_votes(votes, labels, generator, n_generators), certain(labels)
    else:
        evidence = evidence.rounded()
        valid = expected_validity(votes, labels, evidence, generator)
        counts = expected_counts(votes, valid, generator, n_generators)
    labelled = np.asarray(counts.labelled)
    fits = _fits(method, counts, labelled)
    scores = item_scores(votes, labels, valid)
    levels = ndtr(np.linspace(-5, 5, 501))
    ends, held_out = np.full((2, n_generators, len(levels)), np.nan)
    for place in range(n_generators):
        own = generator == place
        prior = jax.tree.map(lambda leaf, at=place: leaf[at], fits)
        mixture = (prior.weight, prior.mean[:, place], prior.covariance[:, place, place] ** 0.5)
        ends[place] = _quantiles(scores[own], evidence.take(own), mixture, levels)
        if labelled[place]:
            hidden = certain(np.full(own.sum(), -1))
            held_out[place] = _quantiles(scores[own], hidden, mixture, levels)
    whole = jax.tree.map(lambda leaf: leaf[-1], fits)
    return FittedShares(whole, ends, held_out, levels, fits.status.max())


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


def _quantiles(
    scores: Float[np.ndarray, " item"],
    evidence: Evidence,
    mixture: tuple[Array, Array, Array],
    levels: Float[np.ndarray, " point"],
) -> Float[np.ndarray, " point"]:
    """Return quantiles of the share of valid items of one generator."""
    n, valid, unknown = len(scores), evidence.valid, evidence.unknown
    weight, centre, spread = (np.asarray(part)[:, None] for part in mixture)
    if n == 0:
        cdf = (weight * ndtr((LOGITS - centre) / spread)).sum(0)
        return np.interp(levels, cdf, expit(LOGITS))
    if unknown == 0:
        return np.full(len(levels), valid / n)
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS)))
    group = np.searchsorted(edges, scores)
    size = np.bincount(group)
    logits = np.bincount(group, scores) / np.maximum(size, 1) + OFFSETS[:, None]
    log_valid, log_invalid = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    eta = logit(np.clip(np.exp(log_valid) @ size / n, 1e-12, 1 - 1e-12))
    density = (weight * norm.pdf(eta, centre, spread)).sum(0) * np.gradient(eta, OFFSETS)
    at = (valid + unknown * expit(LOGITS)) / n
    cdf = np.zeros(len(LOGITS))
    for node, share in zip(evidence.nodes, evidence.weights, strict=True):
        log_posterior = np.log(density + 1e-300)
        middle, variance = np.full(len(OFFSETS), valid / n), np.zeros(len(OFFSETS))
        for value in np.unique(node):
            of_value = np.bincount(group[node == value], minlength=len(size))
            if value != 0:
                gain = np.logaddexp(log_valid + min(value, 0), log_invalid - max(value, 0))
                log_posterior += gain @ of_value
            if np.isfinite(value):
                p = expit(logits + value)
                middle += p @ of_value / n
                variance += (p * (1 - p)) @ of_value / n**2
        posterior = np.exp(log_posterior - log_posterior.max())
        posterior /= posterior.sum()
        cdf += share * (ndtr((at[:, None] - middle) / np.sqrt(variance)) @ posterior)
    return np.interp(levels, np.maximum.accumulate(cdf), at)
