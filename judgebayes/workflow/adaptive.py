r"""When to stop asking: optimal stopping of repeated votes under a fitted Davidson model.

Source: the audit of *Distribution-calibrated inference-time compute for thinking LLM-as-a-judge*
(P1), which spends the same n votes on every item, although most items need fewer.

The model. An item has vote shares theta; its votes are independent given theta; its label depends on
the N votes that it would have at the end, through the fit::

    theta ~ Dirichlet(a)        votes | theta ~ Categorical(theta)
    label | c_N ~ Davidson(c_N)

After m < N votes with the counts c,

.. math:: q(y \mid c) = \sum_{|d| = N - m} \mathrm{DM}(d \mid a + c)\, p_\text{Davidson}(y \mid c + d)

where DM is the Dirichlet-multinomial predictive distribution of the remaining votes. This is a
posterior: its expectation over the next vote is itself, so the value of a vote is not biased.
(Davidson's formula applied to the m votes so far is not a posterior: its margin grows with m.)

The rule. A vote costs `price`, a wrong decision its absolute loss. The least expected cost of an item
with counts c is, by backward induction from the last vote,

.. math:: V(c) = \min\Bigl\{ \min_a \sum_y L(a, y)\, q(y \mid c),\;
          \text{price} \cdot b + \mathrm{E}\bigl[V(c + \text{the next } b \text{ votes})\bigr] \Bigr\}

and an item is settled once the first term is the smaller. The recursion looks ahead to the last vote,
not only to the next: if one more vote cannot change the decision but two could, it may continue. b = 2
requests pairs, one vote in each order. Every item has b votes or more.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from judgebayes.aggregators.davidson import Davidson
from judgebayes.aggregators.wrapped import DecidedBy
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fitted
from judgebayes.measures.scores import absolute_loss
from judgebayes.votes.array import from_counts
from judgebayes.workflow.fit_file import SavedFit, VoteProfile

STATES = 300_000
"""Largest number of states (vote counts by class) of a rule."""
LEAST_CORRELATION, MOST_CORRELATION = 1e-3, 1 - 1e-3
"""Bounds of the correlation of two votes on an item: a Dirichlet distribution has neither 0 nor 1."""
LEAST_SHARE = 1e-3
PRICES = (1e-7, 1.0)
"""The range of prices to search, in units of the loss."""
HALVINGS = 30
EQUAL = 1e-12
"""Tolerance for rounding: equal costs stop."""


def share_prior(profile: VoteProfile, *, symmetric: bool) -> Float[np.ndarray, " class"]:
    r"""Return the Dirichlet prior of vote shares, by the method of moments.

    With n votes per item and mean shares m, the observed shares f of the items have

    .. math:: \sum_k \mathrm{Var}(f_k) = \Bigl(1 - \sum_k m_k^2\Bigr)
              \Bigl(\frac{1}{n} + \Bigl(1 - \frac{1}{n}\Bigr) \rho\Bigr), \qquad a = m\,(1 / \rho - 1)

    where rho is the correlation of two votes on an item. No labels are needed.

    Parameters
    ----------
    profile
        Summary of the votes: `judgebayes.workflow.fit_file.profile`.
    symmetric
        Whether to make the prior symmetric in the classes, as for pairs of responses.

    Raises
    ------
    JudgeBayesError
        If the items have fewer than two votes, which do not identify the correlation.
    """
    n = profile.votes_per_item
    if n < 2:
        raise JudgeBayesError(
            f"The fit was made on {n:g} votes per item; the correlation of votes needs two or more."
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
class _States:
    """All votes by class that an item may have, fewer votes first, and what the next vote may be."""

    counts: Int[np.ndarray, "state class"]
    prior: Float[np.ndarray, " class"]

    @cached_property
    def votes(self) -> Int[np.ndarray, " state"]:
        """The number of votes."""
        return self.counts.sum(1)

    @cached_property
    def after(self) -> Int[np.ndarray, "state class"]:
        """The state after one more vote for each class, of states with fewer than all votes."""
        fewer = self.counts[self.votes < self.votes[-1]]
        return self.place(fewer[:, None, :] + np.eye(len(self.prior), dtype=np.int64))

    def place(self, counts: Int[np.ndarray, "*item class"]) -> Int[np.ndarray, "*item"]:
        """Return the states of items.

        Raises
        ------
        JudgeBayesError
            If an item has more than N votes.
        """
        counts, allowed = np.asarray(counts, np.int64), self.votes[-1]
        if (most := counts.sum(-1).max(initial=0)) > allowed:
            raise JudgeBayesError(f"An item has {most} votes; this rule allows at most {allowed}.")
        # A number that is different for different counts, and larger for more votes.
        powers = (allowed + 1) ** np.arange(len(self.prior), -1, -1, dtype=np.int64)
        return np.searchsorted(*(each @ (powers[0] + powers[1:]) for each in (self.counts, counts)))

    def expected(self, later: Float[np.ndarray, "state column"], votes: int) -> None:
        """Replace the values of states with so many votes by their expectations over the next vote."""
        here = np.flatnonzero(self.votes == votes)
        chance = (self.prior + self.counts[here]) / (self.prior.sum() + votes)
        later[here] = np.einsum("sk,skc->sc", chance, later[self.after[here]])


@dataclass(frozen=True)
class StoppingPlan:
    """What follows from a fit and a prior, whatever the price of a vote."""

    states: _States
    responsibilities: Float[np.ndarray, "state class"]
    """q(y | c), the class probabilities given the counts."""
    risk: Float[np.ndarray, " state"]
    """Least expected absolute loss of a decision."""
    batch: int

    def log_probs(self, counts: Int[np.ndarray, "item class"]) -> Float[np.ndarray, "item class"]:
        """Return log q(y | c) of items with any number of votes up to N.

        Raises
        ------
        JudgeBayesError
            If an item has more than N votes.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.responsibilities[self.states.place(counts)])

    def rule(self, price: float) -> "StoppingRule":
        """Return the rule of least expected cost at a price of a vote, by backward induction."""
        states, most = self.states, int(self.states.votes[-1])
        # Columns: remaining cost, final loss, final number of votes, loss after all N votes.
        value = np.stack([self.risk, self.risk, states.votes.astype(float), self.risk], 1)
        settled = np.ones(len(value), bool)
        for votes in range(most - 1, -1, -1):
            batch = min(self.batch, most - votes)
            ahead, here = value.copy(), states.votes == votes
            for before in range(votes + batch - 1, votes - 1, -1):
                states.expected(ahead, before)
            ahead[here, 0] += price * batch
            settled[here] = (self.risk[here] <= ahead[here, 0] + EQUAL) & (votes >= self.batch)
            value[here, 3] = ahead[here, 3]
            goes_on = here & ~settled
            value[goes_on] = ahead[goes_on]
        _, loss, votes_used, full = value[0].tolist()
        return StoppingRule(price, loss, votes_used, full, self, settled)

    def within(self, tolerance: float) -> "StoppingRule":
        """Return the rule with the fewest votes whose expected extra loss is at most `tolerance`.

        The price is the highest at which the expected loss exceeds that of all N votes by at most
        `tolerance`. It follows from the fit and the prior, without further items.

        Raises
        ------
        JudgeBayesError
            If the tolerance is negative.
        """
        if not (math.isfinite(tolerance) and tolerance >= 0):
            raise JudgeBayesError(
                f"The accepted increase of the loss is {tolerance}; it must be 0 or more, such as "
                "0.002."
            )

        def extra_loss(price: float) -> float:
            rule = self.rule(price)
            return rule.loss - rule.full_loss

        low, high = PRICES
        if extra_loss(high) <= tolerance:
            return self.rule(high)
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if extra_loss(middle) <= tolerance else (low, middle)
        return self.rule(low)


@dataclass(frozen=True)
class StoppingRule:
    """Whether an item is settled, given its votes by class."""

    price: float
    loss: float
    """Expected loss of the decision about an item without votes, when it is settled."""
    votes: float
    """Expected votes until then."""
    full_loss: float
    """Expected loss of the decision after all N votes."""
    plan: StoppingPlan
    of_state: Bool[np.ndarray, " state"]
    """Whether an item in a state is settled."""

    def settled(self, counts: Int[np.ndarray, "item class"]) -> Bool[np.ndarray, " item"]:
        """Return which items need no further vote.

        Raises
        ------
        JudgeBayesError
            If an item has more than N votes, the number at which every item is settled.
        """
        return self.of_state[self.plan.states.place(counts)]


def stopping_plan(
    fitted: Fitted, prior: Float[np.ndarray, " class"], votes: int, *, batch: int = 1
) -> StoppingPlan:
    """Return what the rules for items of up to `votes` votes have in common, whatever the price.

    Parameters
    ----------
    fitted
        Davidson's model, fitted to items with `votes` votes each.
    prior
        Dirichlet prior of an item's vote shares: `share_prior`.
    votes
        N, the number of votes at which the fit decides.
    batch
        Votes that are requested together, and the least of each item; 2 for a vote in each order.

    Raises
    ------
    JudgeBayesError
        If there are too many classes for so many votes.
    """
    n_classes = len(prior)
    if math.comb(votes + n_classes, n_classes) > STATES:
        raise JudgeBayesError(
            f"{votes} votes of {n_classes} classes have too many possible counts to look ahead; use "
            "fewer votes per item."
        )
    levels, loss = [np.zeros((1, n_classes), np.int64)], absolute_loss(n_classes)
    for _ in range(votes):
        more = levels[-1][:, None, :] + np.eye(n_classes, dtype=np.int64)
        levels.append(np.unique(more.reshape(-1, n_classes), axis=0))
    states = _States(np.concatenate(levels), prior)
    probs = np.zeros(states.counts.shape)
    probs[-len(levels[-1]) :] = np.exp(np.asarray(fitted(from_counts(levels[-1])), float))
    for before in range(votes - 1, -1, -1):
        states.expected(probs, before)
    return StoppingPlan(states, probs, (probs @ loss.T).min(1), batch)


def plan_of(saved: SavedFit, votes: int, *, batch: int = 1) -> StoppingPlan | None:
    """Return the `stopping_plan` of a saved fit; None if it is not one of Davidson's model.

    Raises
    ------
    JudgeBayesError
        As `stopping_plan` and `share_prior`.
    """
    own = saved.fitted
    fitted = own.probabilities if isinstance(own, DecidedBy) else own
    method = getattr(fitted, "method", None)
    if not isinstance(method, Davidson):
        return None
    prior = share_prior(saved.profile, symmetric=method.symmetric)
    return stopping_plan(fitted, prior, votes, batch=batch)
