r"""A majority vote's error from the votes of all items and the labels of some: the split curve.

When to stop labelling: once the split curve's interval is narrow enough.

An interval that is checked after every label, and used at the first time that it is narrow, covers less
often than its level, since it tends to be narrow where few errors were drawn. Two corrections: the
interval has a stricter level,

.. math:: 1 - c\,(1 - \text{level}), \qquad c = 0.6

(.94 for .9), and it is checked at few numbers of labels, each a tenth larger than the last. The
experiment `betaconform/audit-stopping` measures the coverage at the time of stopping.
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import ItemInts, Key, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NormalAtMode
from judgebayes.inference.fit import checked
from judgebayes.inference.problem import Inference, Problem, Sites, check_prior
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, when, worst
from judgebayes.majority.counts import ErrorCurve, distinct_rows, padded, wrong_majority
from judgebayes.majority.plurality import (
    Decision,
    Splits,
    decision_probs,
    item_data,
    labelled_data,
)
from judgebayes.models.base import noise_matrix
from judgebayes.models.split_curve import SplitCurveModel, SplitCurvePrior, SplitData, split_data

FIRST_CHECK = 5
GROWTH = 1.1
STRICTER = 0.6


def stopping_level(level: float) -> float:
    """Return the level of the interval that is checked, for intervals that cover with `level`.

    >>> round(stopping_level(0.9), 3)
    0.94

    Raises
    ------
    JudgeBayesError
        If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise JudgeBayesError(f"The level is {level}; it must be a probability, such as 0.9.")
    return 1 - STRICTER * (1 - level)


def next_check(labels: int) -> int:
    """Return the next number of labels, after `labels`, at which the interval is checked.

    >>> [next_check(n) for n in (0, 5, 20, 100)]
    [5, 6, 22, 109]
    """
    check = FIRST_CHECK
    while check <= labels:
        check = max(check + 1, round(check * GROWTH))
    return check


def is_check(labels: int) -> bool:
    """Tell whether the interval is checked at this number of labels.

    >>> [n for n in range(40) if is_check(n)][-5:]
    [26, 29, 32, 35, 38]
    """
    return next_check(labels - 1) == labels


def labelling_order(items: int, seed: int) -> ItemInts:
    """Return the items in the random order in which they are labelled, fixed by the seed."""
    return np.random.default_rng(seed).permutation(items)


Measure = Literal["paper", "wrong", "absolute"]
"""What is averaged over items: P(S < k/2), the paper's error of a majority; P(decision is wrong); or the
expected distance of the decision from the label, in classes."""
Target = Literal["these", "more"]
"""These items, or more items like these."""


@dataclass(frozen=True)
class MeanLoss:
    """A mean loss over items, of which a curve is asked for."""

    target: Target = "more"
    """The mean over "these" items; or over "more" items like these, whose votes and labels have a
    Dirichlet distribution around those of these items (the Bayesian bootstrap), with the weight of one
    item for the curve."""
    measure: Measure = "paper"
    decision: Decision = "random"
    """As in `decision_probs`. Not used with the measure "paper"."""
    groups: ItemInts | None = None
    """With "more", groups of related items, which have one weight each."""
    design_effect: float = 1.0
    """With "these", the variance of a mean over unlabelled items, relative to independent ones."""
    level: float = 0.9
    """The probability of the interval."""


PRIOR_ITEMS = 1.0
"""The weight of the curve in the distribution of new items, as a number of items."""


def losses(
    splits: Splits,
    size: int,
    measure: Measure = "paper",
    decision: Decision = "random",
) -> Float[np.ndarray, "item label"]:
    """Return the expected loss of a decision by k random votes of the item, for each possible label.

    Parameters
    ----------
    splits
        The items' votes.
    size
        k, the number of votes. Items with fewer votes have NaN.
    measure
        What is averaged over items.
    decision
        As in `decision_probs`. Not used with the measure "paper".
    """
    possible = list(splits.label_classes)
    if measure == "paper":
        return wrong_majority(splits.given, splits.total[:, None], size)[:, possible]
    chances = decision_probs(splits.given, size, decision, splits.label_classes)
    if measure == "absolute":
        distance = np.abs(np.arange(splits.given.shape[1])[:, None] - np.array(possible))
        return chances @ distance
    return chances.sum(1, keepdims=True) - chances[:, possible]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SplitCurve:
    """Learn from labels how probably each class is right given how the votes split.

    The error of a majority vote on an item is a known function of its votes and its label, and votes are
    known for every item. `FittedSplitCurve.curve` therefore takes labelled items exactly and draws
    the labels of the others.

    Parameters
    ----------
    by_class
        Whether each class has its own offset, partially pooled. False for pairs whose order is
        arbitrary.
    inference
        `NormalAtMode(weighted=True)`, `NUTS()`, or `MAP()` for a curve without intervals.
    prior
        The prior (`judgebayes.models.split_curve`).
    noise
        The known share of the labels that are wrong. Then no label is known: those of labelled items are
        drawn, too, given their votes and the observed label.

    Examples
    --------
    >>> import numpy as np
    >>> from judgebayes.majority import Splits, SplitCurve
    >>> given = np.array([[5, 0], [4, 1], [3, 2], [1, 4], [0, 5]] * 8)
    >>> labels = np.array([0, 0, 0, 1, 1] * 4 + [-1] * 20)
    >>> splits = Splits(given, labels, (0, 1))
    >>> print(SplitCurve(by_class=False).fit(splits).curve(splits, (1, 3, 5)).error.round(2))
    [0.17 0.08 0.03]
    """

    by_class: bool = field(default=True, metadata={"static": True})
    inference: Inference = field(default_factory=lambda: NormalAtMode(draws=2000, weighted=True))
    prior: SplitCurvePrior = field(default_factory=SplitCurvePrior)
    noise: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a prior that the inference would ignore (`check_prior`)."""
        check_prior(self)

    @in_float64
    def fit(
        self, splits: Splits, *, weight: Weights | None = None, key: Key | None = None
    ) -> "FittedSplitCurve":
        """Return the curve given the labelled items.

        Parameters
        ----------
        splits
            Votes and labels; without labels, the curve is that of the prior.
        weight
            Non-negative item weights; 0 equals a dropped label.
        key
            Random key of the draws; a fixed one by default.

        Raises
        ------
        JudgeBayesError
            If the weights' length differs from the items', or one is negative or NaN.
        """
        weights = np.asarray(checked(splits.labels, weight, *splits.given.shape)[1])
        data = labelled_data(splits, weights)
        fit = _fit(self, data, jax.random.key(0) if key is None else key)
        return fit if fit.chains is None else with_source(fit, item_data(splits), weights)

    def problem(self, data: SplitData, weight: Weights | None = None) -> Problem:
        """Return the model with these data, the problem that every inference solves."""
        data = data if weight is None else data._replace(weight=jnp.asarray(weight))
        model = SplitCurveModel(data.share.shape[1], self.by_class, self.prior, self.noise)
        margins = jnp.linspace(0.0, 1.0, 5)

        def clear(sites: Sites) -> Float[Array, " margin"]:
            share = jnp.stack([(1 + margins) / 2, (1 - margins) / 2], axis=1)
            share = jnp.pad(share, ((0, 0), (0, data.share.shape[1] - 2)))
            some = split_data(share, jnp.zeros(5, int))
            return model.predict(sites, some)[:, 0]

        return Problem(model, data, convergence_targets=clear)


@jax.tree_util.register_dataclass
class FittedSplitCurve(Sampled):
    """Draws of the curve: one for a point estimate."""

    method: SplitCurve

    @in_float64
    def probs(self, splits: Splits) -> Float[np.ndarray, "draw item label"]:
        """Return P(label | votes) of each item and possible label under every draw."""
        each, where = self.split_probs(splits)
        return each[:, where]

    @in_float64
    def split_probs(self, splits: Splits) -> tuple[Float[np.ndarray, "draw split label"], ItemInts]:
        """Return P(label | votes) of each different split under every draw, and each item's split.

        Few splits are different: draws for each of 500,000 items would need many gigabytes.
        """
        rows, _, where = splits.kinds
        whole = np.zeros((padded(len(rows)), rows.shape[1]))
        whole[: len(rows)] = rows
        each = _predicted(self.method, self.draws, jnp.asarray(whole), splits.label_classes)
        return np.exp(np.asarray(each))[:, : len(rows)], where

    def check_posterior(self, what: str) -> None:
        """Raise JudgeBayesError if the fit is a point estimate, and so no posterior."""
        if self.n_draws == 1:
            raise JudgeBayesError(
                f"{what} needs a posterior: fit the curve with NormalAtMode or NUTS."
            )

    def mean_probs(self, splits: Splits) -> Float[np.ndarray, "item label"]:
        """Return P(label | votes) of each item, the mean over draws."""
        each, where = self.split_probs(splits)
        return each.mean(0)[where]

    def curve(
        self,
        splits: Splits,
        sizes: tuple[int, ...] | None,
        of: MeanLoss = MeanLoss(),
        *,
        seed: int = 0,
    ) -> ErrorCurve:
        """Return the mean loss at each number of votes with its interval, NaN for a point estimate.

        Parameters
        ----------
        splits
            The items: labelled ones are known (without noise), the labels of the others are drawn.
        sizes
            Numbers of votes. Items with fewer votes do not count; NaN if no item has as many. None: one
            loss, of a decision by all votes that each item has.
        of
            The loss, its mean over which items, and the interval.
        seed
            Seed of labels and weights.
        """
        cells = _cells(splits, of)
        if sizes is None:
            sizes, table = (0,), _by_all_votes(cells, of)[None]
        else:
            table = np.stack([losses(cells.splits, k, of.measure, of.decision) for k in sizes])
        draws = self._means(cells, table, of, seed)
        return _interval(draws, sizes, of.level, _one_sided(cells, table))

    @in_float64
    def _means(
        self,
        cells: "_Cells",
        table: Float[np.ndarray, "size cell label"],
        of: MeanLoss,
        seed: int,
    ) -> Float[np.ndarray, "draw size"]:
        """Return the mean of a loss over items under every draw."""
        known, unknown = cells.known, cells.unknown
        share = (known.sum(1) + unknown) / max(known.sum() + unknown.sum(), 1)
        probs = self.probs(cells.splits)
        probs /= probs.sum(-1, keepdims=True)
        doubtful: list[tuple[np.ndarray, np.ndarray]] = [(unknown, probs)]
        if float(self.method.noise) > 0:
            # The labels of labelled items are drawn, too, given what was observed.
            noise = np.asarray(noise_matrix(self.method.noise, probs.shape[-1]))
            for observed, column in enumerate(noise.T):
                given_label = probs * column
                given_label /= given_label.sum(-1, keepdims=True)
                doubtful.append((known[:, observed].astype(int), given_label))
            known = np.zeros_like(known)
        expected = sum(count[:, None] * chance for count, chance in doubtful)
        if self.n_draws == 1:
            return _mean(known + expected, table)
        rng = np.random.default_rng(seed)
        drawn = sum(
            rng.multinomial(np.broadcast_to(count, chance.shape[:2]), chance)
            for count, chance in doubtful
        )
        if of.target == "these":
            return _mean(known + expected + np.sqrt(of.design_effect) * (drawn - expected), table)
        counts = known + drawn
        prior = PRIOR_ITEMS * share[:, None] * probs
        if cells.group is None:
            return _mean(rng.standard_gamma(counts + prior), table)
        weight = rng.standard_exponential((self.n_draws, int(cells.group.max()) + 1))
        return _mean(counts * weight[:, cells.group, None] + prior, table)


class _Cells(NamedTuple):
    """Items with the same votes (and group), together."""

    splits: Splits
    """The votes of one item of each cell."""
    group: Int[np.ndarray, " cell"] | None
    known: Float[np.ndarray, "cell label"]
    """The number of items with each label."""
    unknown: Int[np.ndarray, " cell"]
    """The number of items without a label."""


def _cells(splits: Splits, of: MeanLoss) -> _Cells:
    groups, of_cell = of.groups if of.target == "more" else None, None
    _, first, where = splits.kinds
    if groups is not None:
        _, first, where = distinct_rows(np.column_stack([splits.given, groups]))
        of_cell = np.unique(groups, return_inverse=True)[1].ravel()[first]
    labelled = splits.labelled
    known = np.zeros((len(first), len(splits.label_classes)))
    np.add.at(known, (where[labelled], splits.positions()[labelled]), 1.0)
    unknown = np.bincount(where[~labelled], minlength=len(first))
    return _Cells(splits.take(first), of_cell, known, unknown)


def _by_all_votes(cells: _Cells, of: MeanLoss) -> Float[np.ndarray, "cell label"]:
    """Return the losses of decisions by all votes of each item; NaN without votes."""
    total = cells.splits.total
    table = np.full((len(total), len(cells.splits.label_classes)), np.nan)
    for size in np.unique(total[total > 0]):
        part = np.flatnonzero(total == size)
        table[part] = losses(cells.splits.take(part), int(size), of.measure, of.decision)
    return table


def _mean(
    counts: Float[np.ndarray, "draw cell label"], table: Float[np.ndarray, "size cell label"]
) -> Float[np.ndarray, "draw size"]:
    """Return the mean of each loss with these weights, over the cells where it is defined."""
    means = []
    for loss in table:
        used = np.isfinite(loss).all(1)
        total = counts[:, used].sum((1, 2))
        weighted = np.einsum("dcl,cl->d", counts[:, used], loss[used])
        means.append(np.where(total > 0, weighted / np.where(total > 0, total, 1.0), np.nan))
    return np.stack(means, axis=1)


class _OneSided(NamedTuple):
    """Whether the labels show no loss that could be less, or none that could be more."""

    least: Bool[np.ndarray, " size"]
    most: Bool[np.ndarray, " size"]


def _one_sided(cells: _Cells, table: Float[np.ndarray, "size cell label"]) -> _OneSided:
    """Return, by size, whether every labelled item has the label of least loss, or of most."""
    loss = np.where(np.isfinite(table).all(-1, keepdims=True), table, 0.0)
    above = (cells.known * (loss - loss.min(-1, keepdims=True))).sum((1, 2))
    below = (cells.known * (loss.max(-1, keepdims=True) - loss)).sum((1, 2))
    some = above + below > 0
    return _OneSided(some & (above <= 0), some & (below <= 0))


def _interval(
    draws: Float[np.ndarray, "draw size"],
    sizes: tuple[int, ...],
    level: float,
    one_sided: _OneSided,
) -> ErrorCurve:
    """Return the mean with the equal-tailed interval, which reaches an end that the labels allow.

    Where no labelled item shows an error, the truth may be at the end of what is possible, which the
    equal-tailed interval leaves out at any level. Its low end is then that of the shortest interval;
    likewise its high end where all show one (the modified Jeffreys interval of Brown, Cai and DasGupta
    2001, section 4.1.1, for a posterior by draws).
    """
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    if len(draws) == 1:
        low = high = np.full(len(sizes), np.nan)
    else:
        shortest = _shortest(draws, level)
        low = np.where(one_sided.least, np.minimum(low, shortest[0]), low)
        high = np.where(one_sided.most, np.maximum(high, shortest[1]), high)
    error = draws.mean(0)
    return ErrorCurve(np.asarray(sizes), error, low, high, ~np.isfinite(error))


def _shortest(
    draws: Float[np.ndarray, "draw size"], level: float
) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
    """Return the ends of the shortest interval with this share of the draws, by size."""
    ordered = np.sort(draws, axis=0)
    inside = min(math.ceil(level * len(draws)), len(draws) - 1)
    first = (ordered[inside:] - ordered[:-inside]).argmin(0)
    size = np.arange(draws.shape[1])
    return ordered[first, size], ordered[first + inside, size]


@jax.jit
def _fit(method: SplitCurve, data: SplitData, key: Key) -> FittedSplitCurve:
    result = method.inference.solve(method.problem(data), key)
    assert data.weight is not None
    status = worst(result.status, when(data.weight.sum() == 0, Status.DEGENERATE))
    return FittedSplitCurve(method, result.draws, status, result.details, chains=result.chains)


@partial(jax.jit, static_argnames="label_classes")
def _predicted(
    method: SplitCurve,
    draws: Sites,
    given: Float[Array, "cell class"],
    label_classes: tuple[int, ...],
) -> Float[Array, "draw cell label"]:
    data = split_data(given, jnp.full(given.shape[0], -1), None, label_classes)
    model = method.problem(data).model
    return jax.vmap(lambda sites: model.predict(sites, data))(draws)  # type: ignore[attr-defined]
