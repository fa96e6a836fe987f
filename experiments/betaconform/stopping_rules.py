"""Stopping rules for labelling: P3's quantile rule, the variance rule, and the interval width.

A rule is a frozen record that decides from the counts of correct votes so far, in the order of
labelling. `replay` passes it the items of a labelled data set.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import counts_of, odd_sizes
from judgebayes.majority.thinning import Thinned, Thinning, beta_quantile

Unreachable = Literal["largest", "wait"]
SLACK = 1e-12


@runtime_checkable
class Rule(Protocol):
    """A stopping rule, evaluated after every label."""

    def enough(self, correct: Int[np.ndarray, " item"], votes: int) -> bool:
        """Tell whether these counts of correct votes, each out of `votes`, are enough."""
        ...


def minimum_labels(xi: float, tau: float = 25.0) -> int:
    r"""Return the least number of labels r that P3's Proposition 5.1 allows.

    .. math:: \tau \left(\tfrac{1}{\sqrt{r - 1}} - \tfrac{1}{\sqrt r}\right) \le \xi \quad (11)

    >>> minimum_labels(0.03), minimum_labels(0.01)
    (57, 117)

    Raises
    ------
    JudgeBayesError
        If xi or tau is not positive.
    """
    if not (xi > 0 and tau > 0):
        raise JudgeBayesError(f"xi is {xi} and tau {tau}; both must be positive.")
    r = 2
    while tau * (1 / math.sqrt(r - 1) - 1 / math.sqrt(r)) > xi:
        r += 1
    return r


@dataclass(frozen=True)
class QuantileRule:
    r"""Stop when the conformal quantile of the scores no longer changes (P3 eqs 8-10).

    .. math:: s_i = |S_i - E[S]|, \quad q^r = s_{(\lceil (1 - \epsilon)(r + 1) \rceil)}, \quad
              \text{stop when } |q^r - q^{r-1}| \le \xi

    The paper states only xi and tau. The other fields are our choices.

    Parameters
    ----------
    xi
        The threshold; S and the scores are counts of votes, as printed.
    epsilon
        One minus the confidence of the quantile; not given in the paper.
    expected
        E[S], a number; or None for the mean of the labelled items so far (r for q^r, and r - 1 for
        q^(r-1)).
    unreachable
        The value of q^r while the rank is above r: `"largest"` uses the largest score, `"wait"` uses
        infinity, so the rule does not stop.
    minimum
        Whether eq 11's least r is also required (`minimum_labels(xi, tau)`).
    tau
        The scale of eq 11.
    """

    xi: float = 0.03
    epsilon: float = 0.1
    expected: float | None = None
    unreachable: Unreachable = "wait"
    minimum: bool = True
    tau: float = 25.0

    def enough(self, correct: Int[np.ndarray, " item"], votes: int) -> bool:  # noqa: ARG002
        """Tell whether the last label changed the quantile by at most xi."""
        r = len(correct)
        if r < 2 or (self.minimum and r < minimum_labels(self.xi, self.tau)):
            return False
        now, before = self.quantile(correct), self.quantile(correct[:-1])
        return bool(np.isfinite(now) and abs(now - before) <= self.xi + SLACK)

    def quantile(self, correct: Int[np.ndarray, " item"]) -> float:
        """Return q^r (eq 9), infinite if it does not exist yet and `unreachable` is "wait"."""
        r = len(correct)
        rank = math.ceil((1 - self.epsilon) * (r + 1) - SLACK)
        if rank > r and self.unreachable == "wait":
            return math.inf
        centre = float(np.mean(correct)) if self.expected is None else self.expected
        return float(np.sort(np.abs(correct - centre))[min(rank, r) - 1])


@dataclass(frozen=True)
class VarianceRule:
    r"""Stop when the variance of a Beta posterior is small (P3 eq 16).

    .. math:: \frac{\alpha_r \beta_r}{(\alpha_r + \beta_r)^2 (\alpha_r + \beta_r + 1)} \le \xi

    With alpha the number of items whose majority is correct and beta = r - alpha, the variance is at
    most 1 / (4 (r + 1)): at xi = 0.03 the rule never needs more than eight labels. The paper's Table 3
    reports 74 to 82.

    Parameters
    ----------
    xi
        The threshold.
    deviation
        Compare the standard deviation instead of the variance (another reading of the paper).
    """

    xi: float = 0.03
    deviation: bool = False

    def enough(self, correct: Int[np.ndarray, " item"], votes: int) -> bool:
        """Tell whether the variance is small enough."""
        r = len(correct)
        n_correct = int((2 * np.asarray(correct) > votes).sum())
        variance = n_correct * (r - n_correct) / (r**2 * (r + 1))
        # Until both outcomes have occurred the formula is 0, which carries no information.
        both_outcomes = 0 < n_correct < r
        return both_outcomes and (math.sqrt(variance) if self.deviation else variance) <= self.xi


@dataclass(frozen=True)
class WidthRule:
    """Stop when the interval of the majority vote's error is narrow enough.

    The interval is that of the model-free estimate (`Thinned.moments`), which needs no model of
    the votes.

    Parameters
    ----------
    width
        The distance from the lower to the upper end; 0.05 means five percentage points.
    size
        The number of votes in the majority; by default the largest odd number of votes.
    level
        Probability of the interval.
    population
        The total number of items, if the target is the error on these items.
    least
        The least number of labels.
    """

    width: float = 0.1
    size: int | None = None
    level: float = 0.9
    population: int | None = None
    least: int = 10

    def enough(self, correct: Int[np.ndarray, " item"], votes: int) -> bool:
        """Tell whether the interval is narrow enough."""
        if len(correct) < self.least:
            return False
        return self.reach(Thinning().fit(counts_of(np.asarray(correct), votes))) <= self.width

    def reach(self, fitted: Thinned) -> float:
        """Return the current width of the interval."""
        most = fitted.counts.most
        size = odd_sizes(most)[-1] if self.size is None else self.size
        _, mean, variance = fitted.posterior((size,), population=self.population)
        ends = ((1 - self.level) / 2, (1 + self.level) / 2)
        low, high = (beta_quantile(q, mean, variance) for q in ends)
        return float(high[0] - low[0])


def replay(
    rule: Rule,
    correct: Int[np.ndarray, " item"],
    votes: int,
    orders: Int[np.ndarray, "split labelled"],
) -> Int[np.ndarray, " split"]:
    """Return the number of labels at which the rule stops, for each order of labelling.

    If it never stops, this is the number of items.
    """
    return np.array([_stopping_time(rule, correct[order], votes) for order in orders])


def _stopping_time(rule: Rule, correct: Int[np.ndarray, " item"], votes: int) -> int:
    def sufficient_sizes() -> Iterator[int]:
        yield from (r for r in range(1, len(correct) + 1) if rule.enough(correct[:r], votes))

    return next(sufficient_sizes(), len(correct))
