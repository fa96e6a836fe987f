r"""When to stop asking: optimal stopping of repeated votes under a fitted Davidson model.

Source: the audit of *Distribution-calibrated inference-time compute for thinking LLM-as-a-judge*
(P1), which spends the same n votes on every item. Most items are settled long before.

The model. An item has shares theta of votes, drawn once; its votes are independent given them; its
label depends on the N votes that it would have in the end, as the fit says::

    theta ~ Dirichlet(a)        votes | theta ~ Categorical(theta)
    label | c_N ~ Davidson(c_N)

so that after m < N votes with the counts c

.. math:: q(y \mid c) = \sum_{|d| = N - m} \mathrm{DM}(d \mid a + c)\, p_\text{Davidson}(y \mid c + d)

with DM the Dirichlet-multinomial predictive of the votes still to come. This is a posterior: it is its
own expectation over the next vote, so no vote can look worth more, or less, than it is. (Davidson's
formula put to the m votes there are is none: its margin grows with their number.)

The rule. A vote costs `price`, a wrong decision its loss. The least that an item with counts c can
still cost is, from the last vote backwards,

.. math:: V(c) = \min\Bigl\{ \min_a \sum_y L(a, y)\, q(y \mid c),\;
          \text{price} \cdot b + \mathrm{E}\bigl[V(c + \text{the next } b \text{ votes})\bigr] \Bigr\}

and an item is settled once the first term is the smaller. The recursion looks ahead to the end, not one
vote: where one more vote cannot change the decision, but two could, it asks on. b = 2 asks in pairs, a
vote in each order.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.aggregators.davidson import FittedDavidson
from judgebayes.errors import JudgeBayesError
from judgebayes.measures.decide import absolute_loss
from judgebayes.votes.array import from_counts
from judgebayes.workflow.fit_file import VoteProfile

__all__ = ["Forecast", "StoppingRule", "price_within", "share_prior", "stopping_rule"]

STATES = 300_000
"""Most numbers of votes by class that a rule looks at."""
LEAST_CORRELATION, MOST_CORRELATION = 1e-3, 1 - 1e-3
"""Of two votes on an item: a Dirichlet has neither 0 nor 1."""
LEAST_SHARE = 1e-3
PRICES = (1e-7, 1.0)
"""Between these, in units of the loss, is every price worth asking for."""
HALVINGS = 30
EQUAL = 1e-12
"""Rounding must not ask for a vote."""


def share_prior(profile: VoteProfile, *, symmetric: bool) -> Float[np.ndarray, " class"]:
    r"""Return the Dirichlet prior of an item's vote shares that matches observed shares' moments.

    With n votes an item and mean shares m, the shares f of items spread by

    .. math:: \sum_k \mathrm{Var}(f_k) = \Bigl(1 - \sum_k m_k^2\Bigr)
              \Bigl(\frac{1}{n} + \Bigl(1 - \frac{1}{n}\Bigr) \rho\Bigr), \qquad a = m\,(1 / \rho - 1)

    where rho is the correlation of two votes on an item. No labels are needed.

    Parameters
    ----------
    profile
        What votes look like, `judgebayes.workflow.fit_file.profile` of them.
    symmetric
        Whether the classes could be mirrored, as for pairs of responses: the prior then is.

    Raises
    ------
    JudgeBayesError
        If the items have fewer than two votes: one vote says nothing of how votes repeat.
    """
    n = profile.votes_per_item
    if n < 2:
        raise JudgeBayesError(
            f"The fit was made on {n:g} votes per item; how votes repeat takes two or more."
        )
    mean = np.asarray(profile.mean_share, float)
    if symmetric:
        mean = (mean + mean[::-1]) / 2
    shift = mean - np.asarray(profile.mean_share, float)
    spread = float(np.trace(np.asarray(profile.covariance, float)) + shift @ shift)
    whole = 1 - float(mean @ mean)
    correlation = (spread / whole - 1 / n) / (1 - 1 / n) if whole > 0 else 0.0
    correlation = min(max(correlation, LEAST_CORRELATION), MOST_CORRELATION)
    return np.maximum(mean, LEAST_SHARE) * (1 / correlation - 1)


@dataclass(frozen=True)
class Forecast:
    """What a rule is expected to do to an item that nobody has voted on."""

    votes: float
    """Votes until it is settled."""
    loss: float
    """Loss of the decision then taken."""
    full_loss: float
    """Loss of the decision after all N votes, whatever they say."""


@dataclass(frozen=True)
class _Grid:
    """Every way to divide 0, 1, .., N votes among the classes, and which follows which."""

    most: int
    n_classes: int

    @cached_property
    def counts(self) -> list[Int[np.ndarray, "state class"]]:
        """Counts by number of votes."""
        levels = [np.zeros((1, self.n_classes), np.int64)]
        for _ in range(self.most):
            more = levels[-1][:, None, :] + np.eye(self.n_classes, dtype=np.int64)
            flat = more.reshape(-1, self.n_classes)
            _, first = np.unique(self.key(flat), return_index=True)
            levels.append(flat[first])
        return levels

    @cached_property
    def after(self) -> list[Int[np.ndarray, "state class"]]:
        """Place of the counts after one more vote for each class, by number of votes before it."""
        step = np.eye(self.n_classes, dtype=np.int64)
        return [
            np.searchsorted(self.key(later), self.key(counts[:, None, :] + step))
            for counts, later in zip(self.counts, self.counts[1:], strict=False)
        ]

    def key(self, counts: Int[np.ndarray, "*state class"]) -> Int[np.ndarray, "*state"]:
        """Return a number that tells counts apart."""
        return counts @ (self.most + 1) ** np.arange(self.n_classes, dtype=np.int64)

    def place(
        self, counts: Int[np.ndarray, "state class"], votes: int
    ) -> Int[np.ndarray, " state"]:
        """Return where counts of so many votes stand."""
        return np.searchsorted(self.key(self.counts[votes]), self.key(counts))


@dataclass(frozen=True)
class StoppingRule:
    """Whether an item is settled, and what is known about it then, from its votes by class."""

    price: float
    forecast: Forecast
    _grid: _Grid
    _belief: list[Float[np.ndarray, "state class"]]
    _settled: list[Bool[np.ndarray, " state"]]

    @property
    def most(self) -> int:
        """N: with so many votes every item is settled."""
        return self._grid.most

    def settled(self, counts: Int[np.ndarray, "item class"]) -> Bool[np.ndarray, " item"]:
        """Tell which items need no further vote.

        Raises
        ------
        JudgeBayesError
            If an item has more votes than the rule knows of.
        """
        found = np.zeros(len(counts), bool)
        for votes, here, place in self._levels(counts):
            found[here] = self._settled[votes][place]
        return found

    def log_probs(self, counts: Int[np.ndarray, "item class"]) -> Float[np.ndarray, "item class"]:
        """Return log q(y | c) of items with any number of votes up to N.

        Raises
        ------
        JudgeBayesError
            If an item has more votes than the rule knows of.
        """
        found = np.zeros(np.shape(counts))
        for votes, here, place in self._levels(counts):
            found[here] = self._belief[votes][place]
        with np.errstate(divide="ignore"):
            return np.log(found)

    def _levels(
        self, counts: Int[np.ndarray, "item class"]
    ) -> list[tuple[int, Int[np.ndarray, " some"], Int[np.ndarray, " some"]]]:
        counts = np.asarray(counts, np.int64)
        votes = counts.sum(1)
        if votes.max(initial=0) > self.most:
            raise JudgeBayesError(
                f"An item has {votes.max()} votes; this rule stops at {self.most}."
            )
        places = [(int(m), np.flatnonzero(votes == m)) for m in np.unique(votes)]
        return [(m, here, self._grid.place(counts[here], m)) for m, here in places]


@dataclass(frozen=True)
class _Plan:
    """Everything about a fit, a prior and a loss that does not depend on the price."""

    grid: _Grid
    prior: Float[np.ndarray, " class"]
    belief: list[Float[np.ndarray, "state class"]]
    risk: list[Float[np.ndarray, " state"]]
    """Least expected loss of a decision, by number of votes."""
    batch: int
    fewest: int


def stopping_rule(
    fitted: FittedDavidson,
    prior: Float[np.ndarray, " class"],
    votes: int,
    price: float,
    *,
    loss: Float[np.ndarray, "action class"] | None = None,
    batch: int = 1,
    fewest: int = 1,
) -> StoppingRule:
    """Return the rule of least expected cost for items of up to `votes` votes.

    Parameters
    ----------
    fitted
        Davidson's model, fitted to items with `votes` votes each.
    prior
        Of an item's vote shares: `share_prior`.
    votes
        N, the number of votes at which the fit decides.
    price
        Of a vote, in units of the loss.
    loss
        Of an action, by class; the absolute loss by default.
    batch
        Votes that are asked for at once; 2 for a vote in each order.
    fewest
        Votes before which no item is settled.

    Raises
    ------
    JudgeBayesError
        If a number is out of its range, or there are too many classes for so many votes.
    """
    if not (math.isfinite(price) and price >= 0):
        raise JudgeBayesError(f"The price of a vote is {price}; right would be a number from 0.")
    return _rule(_planned(fitted, prior, votes, loss, batch, fewest), price)


def price_within(
    fitted: FittedDavidson,
    prior: Float[np.ndarray, " class"],
    votes: int,
    tolerance: float,
    *,
    loss: Float[np.ndarray, "action class"] | None = None,
    batch: int = 1,
    fewest: int = 1,
) -> StoppingRule:
    """Return the rule that asks least while it loses no more than `tolerance` by it.

    The price is the highest at which the loss expected by the model exceeds that of all N votes by
    at most `tolerance`. It needs no item but those that fit and prior were learnt on.

    Parameters
    ----------
    fitted, prior, votes, loss, batch, fewest
        As in `stopping_rule`.
    tolerance
        The loss that may be given up, on average over items.

    Raises
    ------
    JudgeBayesError
        As `stopping_rule`, or if the tolerance is negative.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise JudgeBayesError(f"The loss to give up is {tolerance}; right would be 0.002, say.")
    plan = _planned(fitted, prior, votes, loss, batch, fewest)

    def given_up(price: float) -> float:
        found = _rule(plan, price).forecast
        return found.loss - found.full_loss

    low, high = PRICES
    if given_up(high) <= tolerance:
        return _rule(plan, high)
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if given_up(middle) <= tolerance else (low, middle)
    return _rule(plan, low)


def _planned(
    fitted: FittedDavidson,
    prior: Float[np.ndarray, " class"],
    votes: int,
    loss: Float[np.ndarray, "action class"] | None,
    batch: int,
    fewest: int,
) -> _Plan:
    n_classes = fitted.n_classes
    if not 1 <= batch <= votes or not 0 <= fewest <= votes:
        raise JudgeBayesError(
            f"Of {votes} votes at most, {batch} at once and {fewest} at least cannot be asked for."
        )
    if math.comb(votes + n_classes, n_classes) > STATES:
        raise JudgeBayesError(
            f"{votes} votes of {n_classes} classes can fall in too many ways to look ahead; ask for "
            "fewer votes per item."
        )
    loss = absolute_loss(n_classes) if loss is None else loss
    grid = _Grid(votes, n_classes)
    belief = [np.exp(np.asarray(fitted(from_counts(grid.counts[votes])), float))]
    for before in range(votes - 1, -1, -1):
        belief.insert(0, _expected(grid, prior, before, belief[0]))
    risk = [(q @ np.asarray(loss, float).T).min(1) for q in belief]
    return _Plan(grid, prior, belief, risk, batch, fewest)


def _expected(
    grid: _Grid,
    prior: Float[np.ndarray, " class"],
    votes: int,
    later: Float[np.ndarray, "after column"],
) -> Float[np.ndarray, "state column"]:
    """Return the expectation, over the next vote, of what is known after it."""
    chance = (prior + grid.counts[votes]) / (prior.sum() + votes)
    return np.einsum("sk,skc->sc", chance, later[grid.after[votes]])


def _rule(plan: _Plan, price: float) -> StoppingRule:
    """Return the rule at a price, by backward induction."""
    most = plan.grid.most
    # Columns: cost from here on, loss of the decision in the end, votes in the end, loss after all N.
    last = plan.risk[most]
    value = {most: np.stack([last, last, np.full(len(last), float(most)), last], 1)}
    settled = [np.ones(len(last), bool)]
    for votes in range(most - 1, -1, -1):
        batch = min(plan.batch, most - votes)
        ahead = value[votes + batch]
        for before in range(votes + batch - 1, votes - 1, -1):
            ahead = _expected(plan.grid, plan.prior, before, ahead)
        risk = plan.risk[votes]
        ahead[:, 0] += price * batch
        stop = (risk <= ahead[:, 0] + EQUAL) & (votes >= plan.fewest)
        here = np.stack([risk, risk, np.full(len(risk), float(votes)), ahead[:, 3]], 1)
        value[votes] = np.where(stop[:, None], here, ahead)
        settled.insert(0, stop)
    _, loss, votes_used, full = value[0][0]
    forecast = Forecast(float(votes_used), float(loss), float(full))
    return StoppingRule(price, forecast, plan.grid, plan.belief, settled)
