r"""The win rate of A over B, from pairwise votes and the labels of some items.

An item's outcome y is 1 if A wins, 1/2 for a tie and 0 if B wins. The win rate of "these items" is

.. math:: \theta = \frac{1}{N} \Bigl(\sum_{n\ \mathrm{labelled}} y_n + \sum_{n\ \mathrm{unlabelled}} y_n
          \Bigr)

of which the second sum is predicted. An item is decided with probability :math:`d_n`, and then won with
probability :math:`w_n`, each by `judgebayes.generators.logit_mixture` from scores of its votes: from
the consensus or the weighted score for :math:`w_n`, from the share of ties or the distance of the
consensus from 0 for :math:`d_n`, or from no score at all. The votes
of unlabelled items enter through their scores. If the votes say nothing, the intervals are those of the
labels alone (`win_rates` without scores), with Jeffreys' prior.

The consensus itself is a second column of the scores of :math:`d_n`. Without it, the mean of
:math:`d_n (w_n - 1/2)` is biased, with any number of labels, where items with votes for A are decided
more often than items with votes for B.

The assumption is that the labelled items are a random sample of the items. With groups, it is that the
labelled groups are a random sample of the groups: the likelihood has the power 1 / deff, and the
variance of the unlabelled outcomes is that of independent ones times their deff
(`judgebayes.generators.clusters`). One more observation is lost to the fitted score: the power is also
times (G - 1) / G, with G labelled groups or items.

The target "more items like these" is the mean of :math:`d_n (w_n - 1/2) + 1/2` over new items, whose
spread around the mean over these items is the cluster-robust one.

With several pairs of systems, the logit of :math:`w_n` has the intercept
:math:`\beta_a - \beta_b + \gamma_{ab}`, :math:`\beta \sim N(0, 1)` and :math:`\gamma \sim N(0, 0.5^2)`:
Bradley and Terry's strengths with a deviation of each pair. Slopes are common to all pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit, ndtr, ndtri, softmax

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.clusters import Clusters, correlation_within
from judgebayes.generators.logit_mixture import (
    Design,
    Drawn,
    Verdicts,
    consensus,
    draw_logits,
    standardised,
    weighted_score,
)
from judgebayes.majority.counts import distinct_rows
from judgebayes.measures.significance import clustered_mean

TIES = ("half", "excluded", "separate")
"""Ties count as half a win; or are left out; or are a third outcome."""
NODES = ndtri((np.arange(16) + 0.5) / 16)
"""The middle of equally probable parts of a normal distribution."""
STRENGTH, DEVIATION, COMMON = 1.0, 0.5, 1.5
"""Prior standard deviations of systems' strengths, of pairs' deviations, and of the ties' logit."""
NEGLIGIBLE = 1e-3
"""Components of a smaller weight are left out."""


class WinScores(NamedTuple):
    """What the votes say of each item: scores of who wins, and of whether it is a tie."""

    win: list[ItemFloats]
    tie: list[Float[np.ndarray, "item ..."]]
    """The second column is the consensus, if it varies."""


@dataclass(frozen=True)
class WinRates:
    """Weighted draws of each pair's rates: of wins, ties and losses of its first system."""

    centre: Float[np.ndarray, "draw pair rate"]
    """Mean of win rate, and of the shares of wins, ties and losses, given the parameters."""
    spread: Float[np.ndarray, "draw pair rate"]
    """Their standard deviation given the parameters: chance of the unlabelled or of new items."""
    weight: Float[np.ndarray, " draw"]
    least: Float[np.ndarray, "pair rate"]
    """The smallest and (`most`) largest values that the labels allow."""
    most: Float[np.ndarray, "pair rate"]
    from_votes: float
    """The posterior probability that a score of the votes says who wins."""

    def quantiles(self, levels: Sequence[float], rate: int = 0) -> Float[np.ndarray, "level pair"]:
        """Return quantiles of each pair's win rate, or of its share of wins, ties or losses."""
        ends = []
        for pair in range(self.centre.shape[1]):
            value = self.centre[:, pair, rate, None] + self.spread[:, pair, rate, None] * NODES
            ends.append(_quantiles(value.ravel(), np.repeat(self.weight, len(NODES)), levels))
        return np.clip(np.array(ends).T, self.least[:, rate], self.most[:, rate])

    def better(self, ties: str = "half") -> Float[np.ndarray, " pair"]:
        """Return the probability that the first system wins more items than it loses."""
        if ties == "separate":  # a win rate of wins alone may be below 1/2
            centre = self.centre[:, :, 1] - self.centre[:, :, 3]
            spread = np.sqrt(self.spread[:, :, 1] ** 2 + self.spread[:, :, 3] ** 2)
        else:
            centre, spread = self.centre[:, :, 0] - 0.5, self.spread[:, :, 0]
        above = ndtr(centre / np.where(spread > 0, spread, 1.0))
        certain = np.where(centre == 0, 0.5, (centre > 0).astype(float))
        return np.asarray(self.weight @ np.where(spread > 0, above, certain))

    def draws(self, n_draws: int = 4000, seed: int = 0) -> Float[np.ndarray, "draw pair"]:
        """Return joint draws of the win rates of all pairs."""
        rng = np.random.default_rng(seed)
        point = rng.choice(len(self.weight), n_draws, p=self.weight)
        shape = (n_draws, self.centre.shape[1])
        value = self.centre[point, :, 0] + self.spread[point, :, 0] * rng.standard_normal(shape)
        return np.asarray(np.clip(value, self.least[:, 0], self.most[:, 0]))


def win_scores(verdicts: Verdicts, outcome: ItemFloats) -> WinScores:
    """Return the scores of the votes, for `win_rates`.

    Parameters
    ----------
    verdicts
        The votes as numbers, by `win_scores.verdicts`.
    outcome
        1 where A wins, 0.5 a tie, 0 where B wins, NaN unknown.
    """
    common = consensus(verdicts.mean)
    own = weighted_score(verdicts.mean, outcome)
    win = [standardised(common), None if own is None else standardised(own)]
    tie = [standardised(verdicts.tie_shares()), standardised(np.abs(common))]
    signed = [] if win[0] is None else [win[0]]
    return WinScores(
        [s for s in win if s is not None],
        [np.column_stack([s, *signed]) for s in tie if s is not None],
    )


def win_rates(
    scores: WinScores,
    outcome: ItemFloats,
    *,
    ties: str = "half",
    target: str = "these",
    groups: ItemInts | None = None,
    pairs: Sequence[tuple[int, int]] = ((0, 1),),
    pair: ItemInts | None = None,
    can_tie: bool | None = None,
) -> WinRates:
    """Return the posterior of the win rate of the first system of each pair over the second.

    Parameters
    ----------
    scores
        What `win_scores` returns: with the sign of the pair's first system. `WinScores([], [])` gives
        the win rate from the labels alone.
    outcome
        1 where the first system wins, 0.5 a tie, 0 where the second wins, NaN unknown.
    ties
        "half": a tie is half a win. "excluded": wins among decided items. "separate": wins among all
        items; the shares of ties and losses are further rates.
    target
        "these": the items given. "more": more items like these (of new groups).
    groups
        The group of each item; by default items are independent.
    pairs, pair
        The systems of each pair, and the pair of each item; by default there is one pair.
    can_tie
        Whether an item can be a tie; by default if a label is one.

    Raises
    ------
    JudgeBayesError
        If no item is labelled, an outcome is not 0, 0.5 or 1, or an option is unknown.
    """
    known = np.isfinite(outcome)
    if not known.any():
        raise JudgeBayesError("No item is labelled; a win rate needs some labels.")
    if not np.isin(outcome[known], (0.0, 0.5, 1.0)).all():
        raise JudgeBayesError(
            "Outcomes must be 1 (A wins), 0.5 (a tie), 0 (B wins) or NaN (unknown)."
        )
    if ties not in TIES:
        raise JudgeBayesError(f"ties={ties!r} is unknown; choose one of: {', '.join(TIES)}.")
    if target not in ("these", "more"):
        raise JudgeBayesError(f"The target {target!r} is unknown; choose one of: these, more.")
    tied = bool((outcome[known] == 0.5).any()) if can_tie is None else can_tie
    pair = np.zeros(len(outcome), int) if pair is None else np.asarray(pair)
    model = _Model(scores, np.asarray(outcome, float), known, pair, list(pairs), tied)
    if groups is None:
        return _answer(model, model.fit(1.0), ties, target, np.arange(len(outcome)), 0.0)
    group = np.unique(groups, return_inverse=True)[1]
    correlation = _correlation(model, model.fit(1.0), group)
    deff = Clusters(group, correlation).design_effect(known)
    fit = model.fit(1 / deff, len(np.unique(group[known])))
    return _answer(model, fit, ties, target, group, correlation)


class _Fit(NamedTuple):
    """Draws of the components for decided and for won, and which of them are used together."""

    decided: list[Drawn | None]
    won: list[Drawn]
    joint: list[tuple[int, int]]
    weight: Float[np.ndarray, "component draw"]


@dataclass(frozen=True)
class _Model:
    scores: WinScores
    outcome: ItemFloats
    known: Bool[np.ndarray, " item"]
    pair: ItemInts
    pairs: list[tuple[int, int]]
    tied: bool

    def design(self, *, win: bool) -> Design:
        """Return columns of systems and pairs; with a single pair, an intercept."""
        if len(self.pairs) == 1:
            return Design(np.ones((len(self.pair), 1)), np.full(1, np.inf))
        each = np.eye(len(self.pairs))
        deviation = np.full(len(self.pairs), DEVIATION)
        if win:
            n = max(max(two) for two in self.pairs) + 1
            strength = np.array([np.eye(n)[a] - np.eye(n)[b] for a, b in self.pairs])
            columns, scale = np.hstack([strength, each]), np.r_[np.full(n, STRENGTH), deviation]
        else:
            columns = np.column_stack([np.ones(len(each)), each])
            scale = np.r_[COMMON, deviation]
        return Design(columns[self.pair], scale)

    def fit(self, power: float, n_groups: int | None = None) -> _Fit:
        """Return the draws, with the likelihood raised to a power."""
        decided = self.known & (self.outcome != 0.5)
        won = self._draws(self.outcome, decided, self.scores.win, power, n_groups, win=True)
        which: list[Drawn | None] = [None]
        if self.tied:
            settled = (self.outcome != 0.5).astype(float)
            which = [*self._draws(settled, self.known, self.scores.tie, power, n_groups, win=False)]
        joint = [(t, w) for t in range(len(which)) for w in range(len(won))]
        rows = []
        for t, w in joint:
            tie = which[t]
            rows.append(won[w].log_weight + (0.0 if tie is None else tie.log_weight))
        weight = softmax(np.array(rows))
        use = weight.sum(1) > NEGLIGIBLE
        weight = weight[use] / weight[use].sum()
        return _Fit(which, won, [two for two, keep in zip(joint, use, strict=True) if keep], weight)

    def _draws(
        self,
        y: ItemFloats,
        use: Bool[np.ndarray, " item"],
        scores: Sequence[Float[np.ndarray, "item ..."]],
        power: float,
        n_groups: int | None,
        *,
        win: bool,
    ) -> list[Drawn]:
        n = max(int(use.sum()) if n_groups is None else min(n_groups, int(use.sum())), 1)
        if scores:  # one observation is lost to the score
            power *= max(n - 1, 0.5) / n
        design = self.design(win=win)
        own = Design(design.columns[use], design.scale)
        return draw_logits([score[use] for score in scores], y[use], power, own, mirrored=win)

    def probabilities(
        self, fit: _Fit, component: int, items: Int[np.ndarray, " some"]
    ) -> tuple[Float[np.ndarray, "draw some"], Float[np.ndarray, "draw some"]]:
        """Return the probabilities of being decided and of being won, of some items."""
        t, w = fit.joint[component]
        tie = fit.decided[t]
        won = _sigmoid(fit.won[w], self.design(win=True).columns[items], self.scores.win, items)
        if tie is None:
            return np.ones_like(won), won
        return _sigmoid(tie, self.design(win=False).columns[items], self.scores.tie, items), won

    def kinds(
        self, fit: _Fit, component: int, rows: Int[np.ndarray, " some"]
    ) -> tuple[Int[np.ndarray, " kind"], Int[np.ndarray, " some"]]:
        """Return one item of each kind that a component tells apart, and the kind of each item."""
        t, w = fit.joint[component]
        tie, win = fit.decided[t], fit.won[w].score
        used = [self.pair.astype(float)]
        if win is not None:
            used.append(self.scores.win[win])
        if tie is not None and tie.score is not None:
            used.append(self.scores.tie[tie.score])
        # Scores are whole hundredths.
        codes = np.round(100 * np.column_stack(used)[rows]).astype(np.int64)
        _, first, kind = distinct_rows(codes)
        return rows[first], kind


def _sigmoid(
    drawn: Drawn,
    columns: Float[np.ndarray, "some column"],
    scores: Sequence[Float[np.ndarray, "item ..."]],
    items: Int[np.ndarray, " some"],
) -> Float[np.ndarray, "draw some"]:
    x = columns
    if drawn.score is not None:
        x = np.column_stack([columns, scores[drawn.score][items]])
    return np.asarray(expit(drawn.coefficients @ x.T))


def _expected(model: _Model, fit: _Fit) -> Float[np.ndarray, "item rate"]:
    """Return each item's expected outcome, and its probabilities of a win, a tie and a loss."""
    total = np.zeros((len(model.pair), 2))
    for component, weight in enumerate(fit.weight):
        first, kind = model.kinds(fit, component, np.arange(len(model.pair)))
        decided, won = model.probabilities(fit, component, first)
        total += np.stack([weight @ (decided * won), weight @ decided], 1)[kind]
    win, decided = total.T
    return np.stack([win + (1 - decided) / 2, win, 1 - decided, decided - win], 1)


def _correlation(model: _Model, fit: _Fit, group: ItemInts) -> float:
    """Return the intraclass correlation of the labelled items' residuals, between 0 and 1."""
    residual = np.where(model.known, model.outcome - _expected(model, fit)[:, 0], 0.0)
    spread = np.sqrt(float((residual[model.known] ** 2).mean()))
    labels = model.known.astype(int) - 1
    return correlation_within(residual / max(spread, 1e-6), labels, np.zeros_like(group), group)


def _answer(
    model: _Model, fit: _Fit, ties: str, target: str, group: ItemInts, correlation: float
) -> WinRates:
    these = target == "these"
    items = np.flatnonzero(~model.known) if these else np.arange(len(model.pair))
    n_pairs = len(model.pairs)
    sums = _sums(model, fit, items, n_pairs)
    fixed = _labelled(model) if these else np.zeros((n_pairs, 2))
    size = np.bincount(model.pair, minlength=n_pairs).astype(float)
    inflation = np.ones(n_pairs)
    if these:
        touched = np.isin(group, group[model.known])
        for place in range(n_pairs):
            use = (model.pair == place) & ~model.known
            apart = Clusters(group, correlation).design_effect(use & ~touched)
            share = float((use & ~touched).sum()) / max(float(use.sum()), 1.0)
            inflation[place] = share * apart + 1 - share
    centre, variance = _rates(sums, fixed, size, ties)
    spread = np.sqrt(variance * inflation[:, None])
    if not these:
        spread = np.broadcast_to(_between(model, fit, group, ties), centre.shape)
    left = np.bincount(model.pair[items], minlength=n_pairs)
    least, most = _bounds(fixed, left, size, ties)
    weight = fit.weight.ravel()
    score = np.array([fit.won[w].score is not None for _, w in fit.joint])
    return WinRates(
        centre,
        np.asarray(spread),
        weight,
        least,
        most,
        float(fit.weight[score].sum()),
    )


def _labelled(model: _Model) -> Float[np.ndarray, "pair two"]:
    """Return the numbers of wins and of ties among each pair's labels."""
    each = [model.known & (model.outcome == y) for y in (1.0, 0.5)]
    return np.stack([np.bincount(model.pair, of, len(model.pairs)) for of in each], 1)


def _sums(
    model: _Model, fit: _Fit, items: Int[np.ndarray, " some"], n_pairs: int
) -> Float[np.ndarray, "draw pair five"]:
    """Return sums over items of P(win), P(tie), their squares, and their product, given the draws."""
    n_draws = fit.weight.shape[1]
    if not len(items):
        return np.zeros((fit.weight.size, n_pairs, 5))
    rows = np.empty((len(fit.joint), n_draws, n_pairs, 5))
    for component in range(len(fit.joint)):
        first, kind = model.kinds(fit, component, items)
        into = np.zeros((len(first), n_pairs))
        into[np.arange(len(first)), model.pair[first]] = np.bincount(kind)
        decided, won = model.probabilities(fit, component, first)
        win, tie = decided * won, 1 - decided
        for place, each in enumerate((win, tie, win**2, tie**2, win * tie)):
            rows[component, :, :, place] = each @ into
    return rows.reshape(-1, n_pairs, 5)


def _rates(
    sums: Float[np.ndarray, "draw pair five"],
    fixed: Float[np.ndarray, "pair two"],
    size: Float[np.ndarray, " pair"],
    ties: str,
) -> tuple[Float[np.ndarray, "draw pair rate"], Float[np.ndarray, "draw pair rate"]]:
    """Return mean and variance of the four rates, given sums of probabilities of unknown outcomes."""
    win, tie, win_squared, tie_squared, both = np.moveaxis(sums, -1, 0)
    n = np.maximum(size, 1.0)
    wins, tied = win + fixed[:, 0], tie + fixed[:, 1]
    of_win, of_tie = win - win_squared, tie - tie_squared

    def variance(share: float | np.ndarray) -> np.ndarray:
        """Return the variance of wins and a share of ties."""
        return np.asarray(of_win + share**2 * of_tie - 2 * share * both)

    centre = [(wins + tied / 2) / n, wins / n, tied / n, (n - wins - tied) / n]
    spread = [variance(0.5) / n**2, variance(0.0) / n**2, of_tie / n**2, variance(1.0) / n**2]
    if ties == "separate":
        centre[0], spread[0] = centre[1], spread[1]
    elif ties == "excluded":  # by first order: Var(win - r decided) = Var(win + r tie)
        decided = np.maximum(n - tied, 1e-9)
        centre[0] = wins / decided
        spread[0] = variance(centre[0]) / decided**2
    return np.stack(centre, -1), np.maximum(np.stack(spread, -1), 0.0)


def _between(
    model: _Model, fit: _Fit, group: ItemInts, ties: str
) -> Float[np.ndarray, "pair rate"]:
    """Return the standard error of the mean over items of their expected outcomes, by pair.

    In a group, labels that are better than expected may go with votes that are: the covariance of the
    two sums over the labelled groups is added, if it is positive.
    """
    expected = _expected(model, fit)
    win, tie = (np.where(model.known, model.outcome == y, 0.0) for y in (1.0, 0.5))
    observed = np.stack([win + tie / 2, win, tie, 1 - win - tie], 1)
    errors = np.zeros((len(model.pairs), 4))
    for place in range(len(model.pairs)):
        own = model.pair == place
        known = model.known & own
        mean = expected[own].mean(0) if own.any() else np.ones(4)
        several = len(np.unique(group[own])) > 1
        n = max(int(own.sum()) * int(known.sum()), 1)
        for rate in range(4 if own.sum() > 1 else 0):
            value, seen = (_linear(each, mean, ties, rate) for each in (expected, observed))
            error = clustered_mean(value[own], group[own] if several else None)[1]
            votes = np.bincount(group[own], value[own] - value[own].mean(), group.max() + 1)
            labels = np.bincount(group[known], (seen - value)[known], group.max() + 1)
            common = 2 * float(votes @ labels) / n if several else 0.0
            errors[place, rate] = np.sqrt(error**2 + max(common, 0.0))
    return errors


def _linear(
    outcomes: Float[np.ndarray, "item rate"], mean: Float[np.ndarray, " rate"], ties: str, rate: int
) -> ItemFloats:
    """Return the values whose mean is a rate, to first order."""
    if rate or ties == "half":
        return np.asarray(outcomes[:, rate])
    if ties == "separate":
        return np.asarray(outcomes[:, 1])
    decided = max(float(1 - mean[2]), 1e-9)
    return np.asarray((outcomes[:, 1] - mean[1] / decided * (1 - outcomes[:, 2])) / decided)


def _bounds(
    fixed: Float[np.ndarray, "pair two"],
    left: Int[np.ndarray, " pair"],
    size: Float[np.ndarray, " pair"],
    ties: str,
) -> tuple[Float[np.ndarray, "pair rate"], Float[np.ndarray, "pair rate"]]:
    """Return the smallest and the largest rates that the labels allow."""
    win, tie = fixed.T
    n = np.maximum(size, 1.0)
    loss = n - left - win - tie
    low = np.stack([win + tie / 2, win, tie, loss], 1) / n[:, None]
    high = low + (left / n)[:, None]
    if ties == "separate":
        low[:, 0], high[:, 0] = low[:, 1], high[:, 1]
    elif ties == "excluded":
        most = np.maximum(n - tie, 1e-9)
        low[:, 0], high[:, 0] = win / most, (win + left) / most
        none = n - tie <= 0
        low[none, 0], high[none, 0] = np.nan, np.nan
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _quantiles(
    value: Float[np.ndarray, " point"],
    weight: Float[np.ndarray, " point"],
    levels: Sequence[float],
) -> Float[np.ndarray, " level"]:
    """Return quantiles of weighted points."""
    order = np.argsort(value)
    ranks = np.cumsum(weight[order]) - weight[order] / 2
    return np.asarray(np.interp(levels, ranks / weight.sum(), value[order]))
