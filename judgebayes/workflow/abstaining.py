"""Abstention: items are sent to a person if every decision has a higher expected cost than asking.

An item is sent if the least expected loss of a decision is above the cost of asking, c. This is the
Bayes action under a loss matrix with one more row, c for every class (Chow 1970).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.evaluate.one_split import Evaluation
from judgebayes.measures.decide import TIE_TOLERANCE
from judgebayes.measures.held_out import Spread, bounded_interval, held_out_spread
from judgebayes.measures.significance import Interval
from judgebayes.sentence import percent
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.losses import Losses

LEVEL = 0.9


class Abstention(NamedTuple):
    """Share of items sent to a person and risk of the others, on held-out labels."""

    cost: float | None
    """Cost of asking a person; None if it depends on the class."""
    share: Interval
    """Share of the items that are sent to a person."""
    risk: Interval
    """Mean loss of the decisions on the others; not finite if all are sent."""

    @property
    def sentence(self) -> str:
        """The share of items sent, and the mean loss of the others."""
        low, high = self.share.low, self.share.high
        cost = "the expected cost of asking" if self.cost is None else f"{self.cost:g}"
        share = (
            f"Items with an expected loss above {cost} go to a person: {percent(self.share.mean, 1)} "
            f"[{percent(low, 1)}, {percent(high, 1)}] of the held-out items"
        )
        if not np.isfinite(self.risk.mean):
            return f"{share}, so that no decision is left."
        return (
            f"{share}. The mean loss of the other decisions is {self.risk.mean:z.3f} "
            f"[{self.risk.low:z.3f}, {self.risk.high:z.3f}] (90 % intervals)."
        )


def abstention(
    compared: Compared,
    name: str,
    losses: Losses,
    *,
    level: float = LEVEL,
) -> Abstention:
    """Return the share of held-out items that a method sends to a person, and its risk on the others.

    The risk is a ratio: the loss of the decisions that are kept over their number; its variance is that
    of the ratio's linearised residuals. Both intervals are `bounded_interval`s, whose width is positive
    if no item is sent, or no decision has a loss. They include that other labels would change the fits
    and so which items are sent (`held_out_spread`).
    """
    own = compared.evaluations[name]
    items, labels = np.asarray(own.items), np.asarray(own.labels)
    sent = sent_of(own, losses)

    def spread(values: Float[np.ndarray, "split item"]) -> Spread:
        return held_out_spread(
            values,
            items,
            compared.n_items,
            compared.groups,
            fitted=compared.fitted,
            unseen=compared.unseen,
        )

    kept = np.where(labels >= 0, ~sent, np.nan)
    kept_share = float(np.nanmean(kept))
    share = bounded_interval(1 - kept_share, spread(1 - kept), level=level)
    if kept_share == 0:
        return Abstention(losses.cost, share, Interval(np.nan, np.nan, np.nan))
    lost = np.where(sent, 0.0, own.losses(losses.matrix))
    risk = float(np.nansum(lost) / np.nansum(kept))
    residuals = spread((lost - risk * kept) / kept_share)
    most = float(losses.matrix.max())
    return Abstention(
        losses.cost,
        share,
        bounded_interval(risk, residuals, most=most, counted=kept_share, level=level),
    )


def risk_curve(compared: Compared, name: str, losses: Losses) -> pd.DataFrame:
    """Return the mean loss of the most certain decisions on held-out items, by the share decided.

    Columns: `decided`, `cost` (the cost of asking at which this share is decided) and `risk`. Items
    with equal expected loss are decided together.
    """
    own = compared.evaluations[name]
    here = np.asarray(own.labels) >= 0
    expected = _expected(own, losses.matrix)[here]
    order = np.argsort(expected, kind="stable")
    expected, lost = expected[order], own.losses(losses.matrix)[here][order]
    last = np.flatnonzero(np.append(np.diff(expected) > TIE_TOLERANCE, True))
    decided = last + 1
    return pd.DataFrame(
        {
            "decided": decided / len(lost),
            "cost": expected[last],
            "risk": lost.cumsum()[last] / decided,
        }
    )


def sent_of(evaluation: Evaluation, losses: Losses) -> Bool[np.ndarray, "split item"]:
    """Return which held-out items are sent to a person, given the method's probabilities."""
    probs = np.exp(np.asarray(evaluation.log_probs))
    return losses.sent(probs, _expected(evaluation, losses.matrix))


def _expected(
    evaluation: Evaluation, loss: Float[np.ndarray, "action class"]
) -> Float[np.ndarray, "split item"]:
    """Return the expected loss of the decision on each held-out item."""
    risks = np.exp(np.asarray(evaluation.log_probs)) @ np.asarray(loss).T
    return np.take_along_axis(risks, np.asarray(evaluation.decisions)[..., None], -1)[..., 0]
