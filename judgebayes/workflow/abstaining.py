"""Items sent to a person: where every decision costs more, on average, than asking somebody.

An item is sent where the least expected loss of a decision is above the price of asking, c. That is the
Bayes action under a loss matrix with one more row, c for every class (Chow 1970).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.evaluate.one_split import Evaluation
from judgebayes.measures.decide import TIE_TOLERANCE
from judgebayes.measures.significance import Interval, two_way_interval
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.losses import Losses

__all__ = ["Abstention", "abstention", "risk_curve", "sent_of"]

LEVEL = 0.9


class Abstention(NamedTuple):
    """What came of it on held-out labels."""

    price: float | None
    """Of asking a person; None where it depends on the class."""
    share: Interval
    """Of the items that are sent to a person."""
    risk: Interval
    """Mean loss of the decisions on the others; not finite where all are sent."""

    @property
    def sentence(self) -> str:
        """How many items are sent, and what the others cost."""
        low, high = self.share.low, self.share.high
        price = "the expected price of asking" if self.price is None else f"{self.price:g}"
        said = (
            f"An item whose expected loss is above {price} goes to a person. Held out, these are "
            f"{self.share.mean:.1%} [{low:.1%}, {high:.1%}] of the items"
        )
        if not np.isfinite(self.risk.mean):
            return f"{said}: no decision is left."
        return (
            f"{said}; the mean loss of the other decisions is {self.risk.mean:z.3f} "
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

    The risk is a ratio, lost by the decisions that are kept over how many are kept. Its interval is the
    hull of two: that of the ratio's linearised residuals, which knows that splits are a sample too, and
    that of the share of decisions that lose anything (`Compared.mean_loss`), which has a width where
    none of a few does.
    """
    own = compared.evaluations[name]
    items, labels = np.asarray(own.items), np.asarray(own.labels)
    gone = sent_of(own, losses)
    share = compared.share(name, np.where(labels >= 0, gone, np.nan), level=level)
    kept = np.where(labels >= 0, ~gone, np.nan)
    lost = np.where(gone, 0.0, own.losses(losses.matrix))
    total = np.nansum(kept)
    if total == 0:
        return Abstention(losses.price, share, Interval(np.nan, np.nan, np.nan))
    risk = float(np.nansum(lost) / total)
    part = float(np.nanmean(kept))
    around = two_way_interval(
        (lost - risk * kept) / part, items, compared.n_items, compared.groups, level=level
    )
    wrong = np.where(kept == 1, lost > 0, np.nan)
    often = float(np.nansum(wrong) / total)
    each = risk / often if often > 0 else float(losses.matrix.max())
    low, high = compared.ends_over_items(name, wrong, often, level=level)
    low = min(risk - around.mean + around.low, low * each)
    high = max(risk - around.mean + around.high, high * each)
    return Abstention(losses.price, share, Interval(risk, max(low, 0.0), high))


def risk_curve(compared: Compared, name: str, losses: Losses) -> pd.DataFrame:
    """Return the mean loss of the surest decisions on held-out items, by the share decided.

    Columns: `decided`, `cost` (the price of asking at which so many are decided) and `risk`. Items of
    one expected loss are decided together.
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
    """Return which held-out items are sent, by the method's own probabilities."""
    probs = np.exp(np.asarray(evaluation.log_probs))
    return losses.sent(probs, _expected(evaluation, losses.matrix))


def _expected(
    evaluation: Evaluation, loss: Float[np.ndarray, "action class"]
) -> Float[np.ndarray, "split item"]:
    """Return the expected loss of the decision on each held-out item."""
    risks = np.exp(np.asarray(evaluation.log_probs)) @ np.asarray(loss).T
    return np.take_along_axis(risks, np.asarray(evaluation.decisions)[..., None], -1)[..., 0]
