r"""The posterior of one generator's share, given its items' votes and labels and a prior of the share.

The formulas are those of `judgebayes.generators.own_labels`.

The share of valid items among more items like these, from any posterior of the share among these.

Given the share s among a generator's N items, the share among all items like them has the posterior

.. math:: g \mid s \sim \mathrm{Beta}(n s + 1/2,\; n (1 - s) + 1/2), \qquad n = N / \mathrm{deff}

Jeffreys' for n independent items, with Kish's design effect where items come in groups
(`judgebayes.generators.clusters`). Generators with the same groups have correlated shares. A generator
without labels of its own is unchanged: its posterior is about its rate, not about its items' labels.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.special import betainc, betaincinv, expit, logit, ndtr, softmax
from scipy.stats import norm

from judgebayes.arrays import AnyArray, ItemFloats, ItemInts, Key
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.clusters import OFFSETS, Clusters, clustered, normal_draws, residuals
from judgebayes.generators.panel import Posterior
from judgebayes.votes.columns import Evidence, certain


@dataclass(frozen=True)
class MoreItems(Posterior):
    """The posterior of the share of valid items among more items like these."""

    these: Posterior
    """The posterior of the share among these items."""
    status: Int[AnyArray, "*batch"]
    effective: Float[np.ndarray, " generator"]
    """The number of independent items of each generator; NaN without labels of its own."""
    in_common: Float[np.ndarray, "generator generator"]
    """The correlation of the generators' labels through their groups."""
    correlation: float
    """The intraclass correlation of validity in groups of items; 0 without groups."""

    @in_float64
    def sample(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        """Return joint draws of the shares."""
        key = jax.random.key(0) if key is None else key
        share = np.array(self.these.sample(n_draws, key))
        own = np.isfinite(self.effective)
        # A sampler may have fewer draws than requested.
        rank = ndtr(normal_draws(self.in_common, len(share), key))[:, own]
        n = self.effective[own]
        share[:, own] = betaincinv(n * share[:, own] + 0.5, n * (1 - share[:, own]) + 0.5, rank)
        return share


def for_more_items(
    these: Posterior,
    labels: ItemInts,
    generator: ItemInts,
    n_generators: int,
    groups: ItemInts | None = None,
) -> MoreItems:
    """Return the posterior among more items, from that among these items with these labels.

    Parameters
    ----------
    these
        A fit whose draws are of the share among these items.
    labels
        1 valid, 0 invalid, -1 unknown.
    generator
        The index of each item's generator, from 0.
    n_generators
        The number of generators.
    groups
        The group of each item; by default items are independent.
    """
    items = np.bincount(generator, minlength=n_generators).astype(float)
    labelled = np.bincount(generator[labels >= 0], minlength=n_generators) > 0
    residual = residuals(np.zeros(len(labels)), labels, generator, n_generators)
    clusters, in_common = clustered(residual, labels, generator, n_generators, groups)
    effect = [clusters.design_effect(generator == place) for place in range(n_generators)]
    return MoreItems(
        these,
        these.status,
        np.where(labelled, items / np.array(effect), np.nan),
        in_common,
        clusters.correlation,
    )


LOGITS = np.linspace(-12.0, 12.0, 2401)
COARSE = 20
"""Every 20th offset is one at which the spread of new items is computed."""
BINS = 400
ONE_DEVIATION = (0.84, 0.16)
LEAST = 1e-9
NEGLIGIBLE = 1e-12
"""Offsets with a smaller probability are left out."""

Mixture = tuple[
    Float[AnyArray, " part"],
    Float[AnyArray, " part"],
    Float[AnyArray, " part"],
]
"""A mixture of normals on the logit scale: weights, means and standard deviations."""


class Items(NamedTuple):
    """The items of one generator."""

    scores: ItemFloats
    evidence: Evidence
    clusters: Clusters

    def hidden(self) -> "Items":
        """Return the items without their labels."""
        return self._replace(evidence=certain(np.full(len(self.scores), -1)))


def quantiles(
    items: Items, prior: Mixture, levels: Float[np.ndarray, " point"], target: str
) -> Float[np.ndarray, " point"]:
    """Return quantiles of the share of valid items, among "these" items or "more" like them."""
    scores, evidence, clusters = items
    n, valid, unknown = len(scores), evidence.valid, evidence.unknown
    weight, centre, spread = (np.asarray(part)[:, None] for part in prior)
    if n == 0:
        cdf = (weight * ndtr((LOGITS - centre) / spread)).sum(0)
        return np.interp(levels, cdf, expit(LOGITS))
    if unknown == 0 and target == "these":
        return np.full(len(levels), valid / n)
    group, size, logits = _binned(scores)
    log_valid, log_invalid = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    mean = np.exp(log_valid) @ size / n
    eta, density = _prior_of_offsets(mean, prior)
    more = target == "more"
    if more:
        share, of_new = expit(LOGITS), _spread_of_new(items) / (mean * (1 - mean))
    else:
        share = (valid + unknown * expit(LOGITS)) / n
    labelled, uncertain = evidence.nodes[0] != 0, np.isfinite(evidence.nodes[0])
    effect, of_rest = clusters.design_effect(labelled), clusters.design_effect(uncertain)
    cdf = np.zeros(len(LOGITS))
    for node, probability in zip(evidence.nodes, evidence.weights, strict=True):
        likelihood, middle, variance = np.zeros((3, len(OFFSETS)))
        middle += valid / n
        for value in np.unique(node):
            of_value = np.bincount(group[node == value], minlength=len(size))
            if value != 0:
                gain = np.logaddexp(log_valid + min(value, 0), log_invalid - max(value, 0))
                likelihood += gain @ of_value
            if np.isfinite(value):
                p = expit(logits + value)
                middle += p @ of_value / n
                variance += (p * (1 - p)) @ of_value / n**2
        posterior = softmax(np.log(density + 1e-300) + likelihood / effect)
        some = posterior > NEGLIGIBLE  # a tenth of the offsets, and of the time
        if more:
            distance = (LOGITS[:, None] - eta[some]) / np.maximum(of_new[some], LEAST)
        else:
            error = np.sqrt(np.maximum(of_rest * variance[some], LEAST**2))
            distance = (share[:, None] - middle[some]) / error
        cdf += probability * (ndtr(distance) @ posterior[some])
    return np.interp(levels, np.maximum.accumulate(cdf), share)


def _binned(
    scores: ItemFloats,
) -> tuple[ItemInts, Int[np.ndarray, " bin"], Float[np.ndarray, "offset bin"]]:
    """Return the bin of each score, the sizes of the bins, and their logits at each offset."""
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, BINS)))
    group = np.searchsorted(edges, scores)
    size = np.bincount(group)
    return group, size, np.bincount(group, scores) / np.maximum(size, 1) + OFFSETS[:, None]


def _prior_of_offsets(
    mean: Float[np.ndarray, " offset"], prior: Mixture
) -> tuple[Float[np.ndarray, " offset"], Float[np.ndarray, " offset"]]:
    """Return the logit of the mean probability at each offset, and the density of the offset."""
    weight, centre, spread = (np.asarray(part)[:, None] for part in prior)
    eta = logit(np.clip(mean, 1e-12, 1 - 1e-12))
    density = (weight * norm.pdf(eta, centre, spread)).sum(0) * np.gradient(eta, OFFSETS)
    return eta, density


def tail_probability(items: Items, prior: Mixture) -> float:
    r"""Return the prior probability of a number of valid labels as far out as the observed one.

    The two-sided mid-p value of the number s of valid ones among n certain labels,

    .. math:: 2 \min(m, 1 - m), \qquad m = \mathrm{E}\,[P(S < s) + P(S = s) / 2]

    with S binomial given the offset, at the mean probability of the labelled items, and n and s divided
    by the design effect; the mean is over the prior of the offset. NaN without a certain label.
    """
    known = np.isinf(items.evidence.nodes[0])
    if not known.any():
        return float("nan")
    group, size, logits = _binned(items.scores)
    probability = expit(logits)
    density = _prior_of_offsets(probability @ size / len(items.scores), prior)[1]
    p = probability @ np.bincount(group[known], minlength=len(size)) / known.sum()
    effect = items.clusters.design_effect(known)
    n, valid = known.sum() / effect, items.evidence.valid / effect
    invalid = n - valid
    none = np.zeros_like(p)
    below = betainc(invalid + 1, valid, 1 - p) if valid > 0 else none
    up_to = betainc(invalid, valid + 1, 1 - p) if invalid > 0 else none + 1
    middle = (below + up_to) / 2 @ density / density.sum()
    return float(2 * min(middle, 1 - middle))


def _spread_of_new(items: Items) -> Float[np.ndarray, " offset"]:
    """Return the standard error of the mean probability over new items, at each offset."""
    some = OFFSETS[::COARSE]
    error = [items.clusters.error_of_mean(expit(items.scores + offset)) for offset in some]
    return np.interp(OFFSETS, some, error)


def information_share(items: Items, prior: Mixture) -> float:
    """Return the share of the information on a generator's logit that comes from its own labels."""
    spread = [
        float(
            np.subtract(*logit(np.clip(quantiles(each, prior, levels, "more"), LEAST, 1 - LEAST)))
        )
        for each, levels in ((each, np.array(ONE_DEVIATION)) for each in (items, items.hidden()))
    ]
    return float(np.clip(1 - (spread[0] / spread[1]) ** 2, 0.0, 1.0))
