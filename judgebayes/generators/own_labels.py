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

A label that may be wrong is evidence :math:`\lambda_n = \log p(\text{labels} \mid \text{valid}) -
\log p(\text{labels} \mid \text{invalid})`. Its factor of the likelihood is
:math:`p_n e^{\lambda_n} + 1 - p_n`, and the item is valid with probability
:math:`\mathrm{sigmoid}(\ell_n + \delta_i + \lambda_n)`. A certain label has
:math:`\lambda_n = \pm\infty`, and an unlabelled item 0. The score and the counts then use the expected
labels (`judgebayes.generators.own_labels`).

Labels of items that may be wrong, as evidence: the log-odds that they give for a valid item.

An item with evidence :math:`\lambda_n` and votes :math:`x_n` is valid with probability

.. math:: r_n = \mathrm{sigmoid}(\beta^\top x_n + \gamma_{i(n)} + \lambda_n)

with a logistic regression on the votes and the generator, fitted by EM: the labels are the missing data.
Without the votes and the generator, the expected labels would be too much alike: a wrong label would be
taken for an error of the judges, and each generator would be drawn to the mean of all.

Precision without iteration: raw means, Rogan-Gladen, and Youden indices.

Whether judges tell valid from invalid items is the posterior of their Youden indices.

The Youden index of a judge is :math:`J = \mathrm{TPR} + \mathrm{TNR} - 1`: 1 if it is always right, 0 if
its votes do not depend on validity, below 0 if they are reversed. From the votes on labelled items,

.. math:: \hat J \sim \mathrm{Normal}(J, s_1^2 + s_0^2), \qquad
          s_y^2 = \frac{\hat p_y (1 - \hat p_y)}{n_y + 2}
                + \bigl(\sigma \hat p_y (1 - \hat p_y)\bigr)^2 \sum_g \frac{n_{yg}^2}{n_y^2}

with :math:`\hat p_y = (k_y + 1/2) / (n_y + 1)` the rate of votes for valid on the :math:`n_y` items
with label y, the mean under Jeffreys' prior. The second term is for rates that differ between
generators, by a standard deviation of :math:`\sigma = 0.28` on the logit scale, as in the prior of
`Panel`. Reversed judges are rare: J is uniform on [0, 1] with probability .97, and on [-1, 0] with
probability .03.

The raw mean and Rogan and Gladen's correction take counts with the labels of some generators, and return
an estimate for every generator. That of a labelled generator comes from its votes by the same rule, not
from its labels.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import rankdata

from judgebayes.arrays import AnyArray, ItemFloats, ItemInts, Key
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.clusters import clustered, normal_draws, residuals
from judgebayes.generators.counts import PrecisionCounts, count_votes, expected_counts
from judgebayes.generators.item_posterior import (
    Items,
    information_share,
    quantiles,
    tail_probability,
)
from judgebayes.generators.panel import Panel, PanelPosterior, Posterior
from judgebayes.votes import Votes
from judgebayes.votes.columns import Evidence, certain

RIDGE = 0.5
"""The inverse of the ridge penalty of scores, whose votes are -1, 0 (missing) and 1."""
FEW = 10
"""Labelled items of either class below which votes get no score."""
STEPS, TOLERANCE = 50, 1e-3


def mean_votes(votes: Votes) -> Float[np.ndarray, "item judge"]:
    """Return the mean of each judge's votes on an item, valid 1 and invalid -1; 0 without votes."""
    cast = np.asarray(votes.index)
    some = (cast >= 0).sum(-1)
    return np.where(cast >= 0, 2.0 * cast - 1, 0.0).sum(-1) / np.maximum(some, 1)


def expected_validity(
    votes: Votes, labels: ItemInts, evidence: Evidence, generator: ItemInts
) -> ItemFloats:
    """Return the probability that an item is valid, given votes and labels; NaN where unlabelled.

    `labels` are the merged labels, -1 where there is none. With fewer than ten of either class, the
    votes and the generator are not used.
    """
    from sklearn.linear_model import LogisticRegression  # takes half a second to import

    middle = evidence.nodes[len(evidence.nodes) // 2]
    known = labels >= 0
    result = np.full(len(labels), np.nan)
    given = middle[known]
    count = np.bincount(labels[known], minlength=2)
    r = expit(given + logit((1 + count[1]) / (2 + count.sum())))
    if count.min() >= FEW:
        own = generator[known, None] == np.arange(generator.max() + 1)
        x = np.tile(np.hstack([mean_votes(votes)[known], own]), (2, 1))
        fit = LogisticRegression(C=RIDGE, max_iter=1000, warm_start=True)
        for _ in range(STEPS):
            fit.fit(x, *_both(r))
            new = expit(fit.decision_function(x[: len(r)]) + given)
            change, r = np.abs(new - r).max(), new
            if change < TOLERANCE:
                break
    result[known] = r
    return result


def _both(valid: ItemFloats) -> tuple[Int[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Return every item as an invalid and as a valid one, with the weights of both."""
    return np.repeat([0, 1], len(valid)), np.concatenate([1 - valid, valid])


TARGETS = ("these", "more")
"""What an interval is about: these items, or more items like these."""

FOLDS = 12
"""With more labelled generators, a generator's labels are hidden together with those of others."""


@dataclass(frozen=True)
class SharePosterior(Posterior):
    """The posterior of each generator's share of valid items, given as quantiles."""

    panel: PanelPosterior
    """The posterior from counts, with all labels: it gives the correlations of the draws."""
    ends: Float[np.ndarray, "generator point"]
    """Quantiles of each generator's share, at `levels`."""
    held_out: Float[np.ndarray, "generator point"]
    """Quantiles of the same without the generator's own labels; NaN for generators without labels."""
    levels: Float[np.ndarray, " point"]
    status: Int[Array, ""]
    correlation: float
    """The intraclass correlation of validity in groups of items; 0 without groups."""
    own_share: Float[np.ndarray, " generator"]
    """The share of the information on a generator that comes from its own labels."""
    in_common: Float[np.ndarray, "generator generator"]
    """The correlation of the generators' labels through their groups."""
    tail_probability: Float[np.ndarray, " generator"]
    """The probability, given the other generators, of labels as far out as a generator's own; NaN
    without labels of its own."""

    def quantile(self, level: float) -> Float[np.ndarray, " generator"]:
        """Return a quantile of the share of valid items of each generator."""
        return np.array([np.interp(level, self.levels, row) for row in self.ends])

    def sample(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        r"""Return joint draws, by a Gaussian copula of the shares' own distributions.

        With w the share of information from own labels, and normal scores z of the panel's draws and v
        with the correlation of the labels, the ranks are those of
        :math:`\sqrt{1 - w} z + \sqrt{w} v`.
        """
        key = jax.random.key(0) if key is None else key
        of_panel = np.asarray(self.panel.sample_rates(n_draws, key))
        z = ndtri((rankdata(of_panel, axis=0) - 0.5) / n_draws)
        if self.own_share.any():
            own = normal_draws(self.in_common, n_draws, jax.random.fold_in(key, 1))
            z = np.sqrt(1 - self.own_share) * z + np.sqrt(self.own_share) * own
        ranks = (rankdata(z, axis=0) - 0.5) / n_draws
        columns = zip(ranks.T, self.ends, strict=True)
        return np.stack([np.interp(rank, self.levels, row) for rank, row in columns], axis=1)


def item_scores(votes: Votes, labels: ItemInts, valid: ItemFloats | None = None) -> ItemFloats:
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
        fit.fit(np.tile(mean[known], (2, 1)), *_both(valid[known]))
    return np.asarray(fit.decision_function(mean))


@in_float64
def shares(
    votes: Votes,
    labels: ItemInts,
    generator: ItemInts,
    n_generators: int,
    *,
    target: str = "these",
    groups: ItemInts | None = None,
    evidence: Evidence | None = None,
) -> SharePosterior:
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
    target
        "these": the share among these items. "more": among more items like these (of new groups).
    groups
        The group of each item, such as its program or its question; by default items are independent.
    evidence
        The evidence of each item's labels, if they may be wrong; 0 where `labels` is -1.

    Raises
    ------
    JudgeBayesError
        If a label is not -1, 0 or 1, or the target is unknown.
    """
    if not np.isin(labels, (-1, 0, 1)).all():
        raise JudgeBayesError("Labels must be 1 (valid), 0 (invalid) or -1 (unknown).")
    if target not in TARGETS:
        raise JudgeBayesError(f"The target {target!r} is unknown; choose one of: these, more.")
    valid = None
    if evidence is None:
        counts, evidence = count_votes(votes, labels, generator, n_generators), certain(labels)
    else:
        evidence = evidence.rounded()
        valid = expected_validity(votes, labels, evidence, generator)
        counts = expected_counts(votes, valid, generator, n_generators)
    labelled = np.asarray(counts.labelled)
    fits = _fits(counts, labelled)
    scores = item_scores(votes, labels, valid)
    residual = residuals(scores, labels, generator, n_generators)
    clusters, in_common = clustered(residual, labels, generator, n_generators, groups)
    levels = ndtr(np.linspace(-5, 5, 501))
    ends, held_out = np.full((2, n_generators, len(levels)), np.nan)
    own_share, unexpected = np.zeros(n_generators), np.full(n_generators, np.nan)
    for place in range(n_generators):
        own = generator == place
        prior = fits[place]
        mixture = (prior.weight, prior.mean[:, place], prior.covariance[:, place, place] ** 0.5)
        items = Items(scores[own], evidence.take(own), clusters.take(own))
        ends[place] = quantiles(items, mixture, levels, target)
        if labelled[place]:
            held_out[place] = quantiles(items.hidden(), mixture, levels, "these")
            unexpected[place] = tail_probability(items, mixture)
            own_share[place] = 0.0 if groups is None else information_share(items, mixture)
    return SharePosterior(
        fits[-1],
        ends,
        held_out,
        levels,
        jnp.asarray(max(int(fit.status) for fit in fits)),
        clusters.correlation,
        own_share,
        in_common,
        unexpected,
    )


@jax.jit
def _fit_to(counts: PrecisionCounts, shown: Bool[Array, " generator"]) -> PanelPosterior:
    return Panel().fit(counts.reveal(shown))


def _fits(
    counts: PrecisionCounts, labelled: Bool[np.ndarray, " generator"]
) -> list[PanelPosterior]:
    """Return a fit for each generator, with its own labels hidden or with those of its fold.

    The last fit has all labels. They share one program, whatever the number of labelled generators.
    """
    own = np.flatnonzero(labelled)
    n_folds = min(len(own), FOLDS)
    fold = np.full(len(labelled), n_folds)
    fold[own] = np.arange(len(own)) % max(n_folds, 1)
    keep = fold != np.arange(n_folds + 1)[:, None]
    keep[-1] = True
    fits = [_fit_to(counts, jnp.asarray(shown)) for shown in keep]
    return [fits[i] for i in (*fold, n_folds)]


@in_float64
def mean_prediction(counts: PrecisionCounts) -> Float[Array, " generator"]:
    """Return the mean over judges of the share of items they call valid; needs no labels.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from judgebayes.generators import PrecisionCounts, mean_prediction
    >>> votes = jnp.array([[0.0, 0.0], [70.0, 90.0], [80.0, 70.0]])
    >>> judged = jnp.array([[0.0, 0.0], [100.0, 100.0], [100.0, 100.0]])
    >>> first = [jnp.zeros((3, 2)).at[0].set(n) for n in (72.0, 80.0, 14.0, 20.0)]
    >>> items = [jnp.array(n) for n in ([80.0, 0, 0], [20.0, 0, 0], [0.0, 100, 100])]
    >>> counts = PrecisionCounts(votes, judged, *first, *items)
    >>> print(np.asarray(mean_prediction(counts)).round(2))
    [0.86 0.8  0.75]
    """
    return jnp.nanmean(counts.matrix, axis=1)


@in_float64
def rogan_gladen(counts: PrecisionCounts) -> Float[Array, " generator"]:
    r"""Return the raw means corrected by the mean rates of the judges, clipped to [0, 1].

    .. math:: \hat g_i = \frac{m_i + \bar v^- - 1}{\bar v^+ + \bar v^- - 1}

    Rogan & Gladen (1978), with rates pooled over the labelled generators; the means are over the
    judges that were run on the generator. NaN if the labels give no rates (none is valid, or none is
    invalid), or if the judges accept valid and invalid items at the same rate.
    """
    rates = counts.rates()
    run = jnp.isfinite(counts.matrix)
    tpr, tnr = (
        jnp.nanmean(jnp.where(run, rate, jnp.nan), axis=1) for rate in (rates.tpr, rates.tnr)
    )
    return jnp.clip((mean_prediction(counts) + tnr - 1) / (tpr + tnr - 1), 0.0, 1.0)


LEAST = 0.05
"""A panel whose mean Youden index is below this is called uninformative."""
SHIFT = 0.28
"""Standard deviation of a rate between generators, on the logit scale."""
REVERSED = 0.03
"""Prior probability of a Youden index below 0."""


class YoudenIndex(NamedTuple):
    """Estimates of Youden indices with their standard deviations; NaN without labels of both classes."""

    estimate: Float[np.ndarray, "*judge"]
    deviation: Float[np.ndarray, "*judge"]

    def below(self, bound: float) -> Float[np.ndarray, "*judge"]:
        """Return the posterior probability that the index is below a bound; NaN where unknown.

        Examples
        --------
        >>> import numpy as np
        >>> from judgebayes.generators import YoudenIndex
        >>> print(YoudenIndex(np.array([0.4, 0.0, -0.4]), np.full(3, 0.1)).below(0.0).round(3))
        [0.    0.03  0.999]
        """
        to = (float(np.clip(bound, -1, 0)), float(np.clip(bound, 0, 1)))
        under = REVERSED * self._between(-1, to[0]) + (1 - REVERSED) * self._between(0, to[1])
        over = REVERSED * self._between(to[0], 0) + (1 - REVERSED) * self._between(to[1], 1)
        return np.asarray(under / (under + over))

    def _between(self, low: float, high: float) -> Float[np.ndarray, "*judge"]:
        """Return the likelihood's area over a part of the axis."""
        ends = [(end - self.estimate) / self.deviation for end in (low, high)]
        return np.asarray(ndtr(ends[1]) - ndtr(ends[0]))


def judge_youden(counts: PrecisionCounts) -> YoudenIndex:
    """Return every judge's Youden index on the labelled items of all generators.

    NaN for judges who voted on no item labelled valid, or on none labelled invalid.
    """
    rates, variances = zip(
        _rate(counts.true_accepted, counts.valid_judged),
        _rate(counts.false_accepted, counts.invalid_judged),
        strict=True,
    )
    return YoudenIndex(rates[0] - rates[1], np.sqrt(variances[0] + variances[1]))


def _rate(
    accepted: Float[AnyArray, "generator judge"], judged: Float[AnyArray, "generator judge"]
) -> tuple[Float[np.ndarray, " judge"], Float[np.ndarray, " judge"]]:
    """Return the rate of votes for valid with its variance, by judge."""
    cells = np.asarray(judged, float)
    k, n = np.asarray(accepted, float).sum(0), cells.sum(0)
    rate = np.where(n > 0, (k + 0.5) / (n + 1), np.nan)
    share = (cells**2).sum(0) / np.maximum(n, 1) ** 2
    spread = rate * (1 - rate)
    return rate, spread / (n + 2) + (SHIFT * spread) ** 2 * share


def panel_youden(counts: PrecisionCounts) -> YoudenIndex:
    """Return the mean Youden index of the judges; NaN if that of no judge is known.

    Judges err on the same items, so that their errors do not average out: the deviation of the mean is
    the mean of the judges' deviations, the largest that any correlation allows.
    """
    each = judge_youden(counts)
    known = np.isfinite(each.estimate)
    if not known.any():
        return YoudenIndex(np.asarray(np.nan), np.asarray(np.nan))
    return YoudenIndex(*(np.asarray(part[known].mean()) for part in each))
