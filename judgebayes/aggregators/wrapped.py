"""Methods around other methods: with a map, with undecided votes, with decisions by a simpler rule.

Undecided votes are evidence: how often each judge is undecided on items of each class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, xlogy
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Key, LogProbs, Scalar
from judgebayes.inference.fit import Fit, Fitted, JaxMethod, Method, Training, status_of
from judgebayes.inference.problem import one_draw, require
from judgebayes.inference.registry import in_files
from judgebayes.inference.status import summary, worst
from judgebayes.measures.scores import labelled_weight
from judgebayes.measures.significance import Interval
from judgebayes.votes.array import MISSING, UNDECIDED, Votes

STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""The grid of m: how many items a judge's common rate counts as, beside those of a class."""
ALIKE = 0.5
"""The prior probability that a judge's rate is the same for every class."""


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WithUndecided(JaxMethod):
    r"""Add to an aggregator what undecided votes say about the label.

    .. math:: \log p(y = k \mid \text{votes}) = \log p_0(k \mid \text{decided votes}) + \sum_j \bigl[
              u_j \log \rho_{jk} + (g_j - u_j) \log(1 - \rho_{jk}) \bigr] + \text{const}

    where judge j gave votes on the item (:math:`g_j` = 1, else 0), of which a share :math:`u_j` is
    undecided, and :math:`\rho_{jk}` is its rate of undecided votes on items of class k. With
    :math:`U_{jk}` undecided votes on :math:`N_{jk}` items and the judge's rate
    :math:`\rho_j = (U_j + 1/2) / (N_j + 1)`,

    .. math:: \rho_{jk} \sim (1 - a)\, \mathrm{Beta}(m \rho_j, m (1 - \rho_j)) + a\, \delta(\rho_j)

    and its posterior mean, averaged over m (one for all judges, 3 to 1,000), is used. The shares of m
    and a = 1/2 follow the labels: where the rates hardly differ between classes, so do the
    probabilities. A judge without an undecided vote on a labelled item adds nothing.

    The decided votes and the undecided ones are taken as independent given the label. For two
    responses that could be swapped, an undecided vote is for neither, and this factor is not needed.
    Stacking needs none either: its free form has a weight for each judge without a vote.

    Parameters
    ----------
    aggregator
        The aggregator of the decided votes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> vote = ["no", "no", "unsure", "yes", "yes", "yes"]
    >>> table = pd.DataFrame({"item": range(6), "judge": "ann", "vote": vote})
    >>> votes, _ = jb.encode(table, undecided=["unsure"])
    >>> labels = np.array([0, 0, 0, 1, 1, 1])
    >>> method = jb.WithUndecided(jb.OneCoin())
    >>> print(np.exp(method.fit(votes, labels)(votes))[:, 1].round(2))
    [0.15 0.15 0.48 0.86 0.86 0.86]
    """

    aggregator: Method
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "log_undecided": ("judge", "class"),
        "log_decided": ("judge", "class"),
    }

    def _fitted(self, data: Training) -> Fit:
        """Return the fit, whose values are log rho and log(1 - rho), 0 where a rate is not known."""
        votes, labels, weight, key = data
        fitted = self.aggregator.fit(votes, labels, weight=weight, key=key)
        undecided, decided = _rates(votes, labels, weight)
        draws = one_draw({"log_undecided": undecided, "log_decided": decided})
        return Fit(self, draws, status_of(fitted), parts={"aggregator": fitted})

    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the items' log-probabilities."""
        values = fit.first
        log_probs = fit.parts["aggregator"](given)
        return _with_evidence(
            log_probs, given.index, values["log_undecided"], values["log_decided"]
        )

    def reliability(self, fit: Fit, level: float) -> Interval:
        """Return the reliability of each judge's decided votes, as the aggregator does."""
        of_judges: Interval = fit.parts["aggregator"].reliability(level)
        return of_judges


def _shares(
    index: Int[Array, "item judge sample"],
) -> tuple[Float[Array, "item judge"], Float[Array, "item judge"]]:
    """Return the share of undecided votes, and whether there is a vote at all."""
    none = (index == UNDECIDED).sum(-1)
    given = none + (index >= 0).sum(-1)
    return none.astype(float) / jnp.maximum(given, 1), (given > 0).astype(float)


@jax.jit
def _rates(
    votes: Votes, labels: ItemCodes, weight: ItemValues
) -> tuple[Float[Array, "judge class"], Float[Array, "judge class"]]:
    """Return log rho and log(1 - rho) of every judge and class."""
    share, given = _shares(votes.index)
    used = jnp.where(labels >= 0, weight, 0.0)
    of_class = used[:, None] * (labels[:, None] == jnp.arange(votes.n_classes))
    undecided, total = share.T @ of_class, given.T @ of_class
    common = (undecided.sum(1) + 0.5) / (total.sum(1) + 1.0)
    known = (undecided.sum(1) > 0)[:, None]
    rate = _posterior_mean(undecided, total, common, known)
    none = jnp.where(known, jnp.log(rate), 0.0)
    return none, jnp.where(known, jnp.log1p(-rate), 0.0)


def _posterior_mean(
    undecided: Float[Array, "judge class"],
    total: Float[Array, "judge class"],
    common: Float[Array, " judge"],
    known: Any,
) -> Float[Array, "judge class"]:
    """Return the posterior mean of each rate, averaged over the strength m."""
    m = jnp.asarray(STRENGTHS)[:, None, None]
    a, b = m * common[:, None], m * (1 - common[:, None])
    decided = total - undecided
    apart = betaln(a + undecided, b + decided) - betaln(a, b)
    alike = xlogy(undecided, common[:, None]) + xlogy(decided, 1 - common[:, None])
    log_weight = jnp.append(
        jnp.where(known, apart, 0.0).sum((1, 2)) + np.log((1 - ALIKE) / len(STRENGTHS)),
        jnp.where(known, alike, 0.0).sum() + np.log(ALIKE),
    )
    weight = jax.nn.softmax(log_weight)
    own = (a + undecided) / (a + b + total)
    return jnp.tensordot(weight[:-1], own, 1) + weight[-1] * common[:, None]


@jax.jit
def _with_evidence(
    log_probs: LogProbs,
    index: Int[Array, "item judge sample"],
    log_undecided: Float[Array, "judge class"],
    log_decided: Float[Array, "judge class"],
) -> LogProbs:
    share, given = _shares(index)
    evidence = share @ log_undecided + (given - share) @ log_decided
    return jax.nn.log_softmax(log_probs + evidence, axis=-1)


@in_files
@dataclass(frozen=True)
class DecidedBy:
    """The probabilities of one fitted method, and the decisions of a rule, for one loss."""

    probabilities: Fitted
    rule: Fitted
    """Its most probable class, or the action of least loss under its shares, is the decision."""
    name: str = field(metadata={"static": True})
    """The rule's name."""
    loss: Float[Array, "action class"]
    """The loss for which the rule decides better; for another, the probabilities decide."""

    __repr__ = summary

    @property
    def status(self) -> Int[Array, ""]:
        """The status of the method of the probabilities."""
        return status_of(self.probabilities)

    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' log-probabilities."""
        return self.probabilities(votes)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Calibrated(JaxMethod):
    """Aggregate, then calibrate: both steps are fitted to the labelled items.

    A map should be fitted to items that the aggregator was not fitted to; otherwise it trusts
    predictions that were fitted to their own labels. Three protocols:

    - `share=0.7`: the aggregator is fitted to 70 % of the labelled items, the calibrator to the
      other 30 %. P2's nested protocol (section 4.4 and Appendix H.10).
    - `share=None`: both are fitted to all labelled items. P2's Table 11 ("uses the full calibration
      half for both steps", H.10). Reliable only if the aggregator has few parameters.
    - `cross_fit=5`: the aggregator is fitted five times, each time without a fifth of the labelled
      items, and predicts these; the calibrator is fitted to all of these predictions and applied to
      an aggregator that is fitted to all labelled items. Not in the paper. It uses every label in
      both steps.

    The division of the labelled items is random and determined by the key; it does not depend on items
    without a label or with weight 0. Items held out from the aggregator are treated like unlabelled
    items: they are dropped, or, if there are unlabelled items, used without their label.

    Parameters
    ----------
    aggregator, calibrator
        The aggregator, and the map that is fitted to its predictions.
    share
        The aggregator's share of the labelled items; None to use all of them for both.
    cross_fit
        The number of folds; `share` is then ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 1, 0, -1])
    >>> method = jb.Calibrated(jb.OneCoin(), jb.Temperature(), share=None)
    >>> print(np.exp(method.fit(votes, labels)(votes))[:, 1].round(2))
    [0.79 0.69 0.21 0.69 0.79 0.21]
    """

    aggregator: Method
    calibrator: Method
    share: float | None = 0.7
    cross_fit: int | None = field(default=None, metadata={"static": True})

    def _fitted(self, data: Training) -> Fit:
        first, log_probs, weight = first_stage(self.aggregator, data, self.share, self.cross_fit)
        fitted = self.calibrator.fit(log_probs, data.labels, weight=weight)
        parts = {"aggregator": first, "calibrator": fitted}
        return Fit(self, {}, worst(status_of(first), status_of(fitted)), parts=parts)

    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the calibrated log-probabilities of the items."""
        log_probs: LogProbs = fit.parts["calibrator"](fit.parts["aggregator"](given))
        return log_probs


def first_stage(
    aggregator: Method, data: Training, share: Scalar | None, cross_fit: int | None
) -> tuple[Fitted, LogProbs, ItemValues]:
    """Return the fitted aggregator, its predictions, and the items' weights for the calibrator.

    Raises
    ------
    JudgeBayesError
        If the share or the number of folds is invalid.
    """
    if cross_fit is not None:
        return _cross_fitted(aggregator, data, cross_fit)
    if share is None:
        fitted = aggregator.fit(data.given, data.labels, weight=data.weight, key=data.key)
        return fitted, fitted(data.given), data.weight
    within = (share > 0) & (share < 1)
    require("share", share, within, "between 0 and 1, or None for all items to both steps")
    division_key, key = jax.random.split(data.key)
    used = labelled_weight(data.labels, data.weight) > 0
    held_out = used & (random_places(used, division_key) >= jnp.round(share * used.sum()))
    fitted = _fit_without(aggregator, data, held_out, key)
    return fitted, fitted(data.given), jnp.where(held_out, data.weight, 0.0)


def _cross_fitted(
    aggregator: Method, data: Training, folds: int
) -> tuple[Fitted, LogProbs, ItemValues]:
    require("cross_fit", folds, folds >= 2, "2 folds or more")
    division_key, last, *keys = jax.random.split(data.key, 2 + folds)
    used = labelled_weight(data.labels, data.weight) > 0
    fold = random_places(used, division_key) % folds

    def fit_and_predict(which: Int[Array, ""], key: Key) -> tuple[LogProbs, Fitted]:
        fitted = _fit_without(aggregator, data, used & (fold == which), key)
        return fitted(data.given), fitted

    # The last fold is empty: the same program fits the aggregator to all items.
    by_fold, fits = jax.vmap(fit_and_predict)(jnp.arange(folds + 1), jnp.stack([*keys, last]))
    fitted = jax.tree.map(lambda x: x[folds], fits)
    return fitted, by_fold[fold, jnp.arange(len(fold))], data.weight


def _fit_without(
    aggregator: Method, data: Training, held_out: Bool[Array, " item"], key: Key
) -> Fitted:
    """Return the aggregator fitted without the labels of some items."""
    unlabelled = jnp.any((data.labels < 0) & (data.weight > 0))
    return aggregator.fit(
        data.given,
        jnp.where(held_out, MISSING, data.labels),
        weight=jnp.where(held_out & ~unlabelled, 0.0, data.weight),
        key=key,
    )


def random_places(used: Bool[Array, " item"], key: Key) -> ItemCodes:
    """Return each used item's rank in a random order that depends only on the used items."""
    place = used.cumsum() - 1
    draws = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i)))(place)
    return jnp.argsort(jnp.argsort(jnp.where(used, draws, jnp.inf)))
