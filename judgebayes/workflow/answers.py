"""The answers for each item: class probabilities, the decision and its expected loss.

Abstention: items are sent to a person if every decision has a higher expected cost than asking.

An item is sent if the least expected loss of a decision is above the cost of asking, c. This is the
Bayes action under a loss matrix with one more row, c for every class (Chow 1970).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.aggregators.wrapped import DecidedBy
from judgebayes.arrays import ItemFloats, ItemInts, LogProbs
from judgebayes.compiled.float64 import inside
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.inference.fit import Fitted
from judgebayes.measures.scores import decide
from judgebayes.measures.significance import Interval, Spread, bounded_interval, held_out_spread
from judgebayes.sentence import with_interval
from judgebayes.show.page import Table
from judgebayes.votes import Votes
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.data import Study
from judgebayes.workflow.losses import PERSON, Losses
from judgebayes.workflow.results import Result, Written, first_rows

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
        cost = "the expected cost of asking" if self.cost is None else f"{self.cost:g}"
        share = (
            f"Items with an expected loss above {cost} go to a person: "
            f"{with_interval(self.share, '.1f', unit=' %')} of the held-out items"
        )
        if not np.isfinite(self.risk.mean):
            return f"{share}, so that no decision is left."
        return (
            f"{share}. The mean loss of the other decisions is {with_interval(self.risk)} "
            "(90 % intervals)."
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


def sent_of(evaluation: Evaluation, losses: Losses) -> Bool[np.ndarray, "split item"]:
    """Return which held-out items are sent to a person, given the method's probabilities."""
    probs = np.exp(np.asarray(evaluation.log_probs))
    return losses.sent(probs, (probs @ losses.matrix.T).min(-1))


_decide = inside(decide)


class Decisions(NamedTuple):
    """The decision on every item, its expected loss, and whether a person is asked instead."""

    of_item: ItemInts
    expected: ItemFloats
    to_person: Bool[np.ndarray, " item"]
    decider: str | None
    """The name of the rule that decided, if one did."""


def decisions_of(log_probs: LogProbs, losses: Losses, fitted: Fitted, votes: Votes) -> Decisions:
    """Return the decisions of least expected loss. The caller has 64-bit arithmetic.

    If the fit has a rule for these losses, it decides, and the expected loss of its decisions is that
    under `log_probs`.
    """
    probs, by, decider = np.exp(np.asarray(log_probs)), log_probs, None
    alone = losses.person is None
    if isinstance(fitted, DecidedBy) and alone and np.array_equal(fitted.loss, losses.matrix):
        by, decider = fitted.rule(votes), fitted.name
    decisions, expected = map(np.asarray, _decide(by, losses.matrix))
    if decider is not None:
        expected = np.einsum("ik,ik->i", probs, np.asarray(losses.matrix)[decisions])
    return Decisions(decisions, expected, losses.sent(probs, expected), decider)


@dataclass(frozen=True, repr=False)
class AnsweredItems(Result):
    """A result that answers every item: probabilities, a decision and its expected loss."""

    given: Study
    """The votes that are answered."""
    log_probs: LogProbs
    losses: Losses
    """The loss of each decision."""
    decisions: Decisions

    @property
    def in_sets(self) -> Bool[np.ndarray, "item class"] | None:
        """Whether each class is in an item's conformal set; None without sets."""
        return None

    @property
    def certain(self) -> bool:
        """Whether the answers are 0 or 1, as those of a rule, which do not measure its errors."""
        return bool(np.isin(np.exp(np.asarray(self.log_probs)), (0.0, 1.0)).all())

    @cached_property
    def answers(self) -> pd.DataFrame:
        """A row per item: probabilities, decision, expected loss, votes, and its conformal set.

        The decision is `PERSON` if asking a person costs less than every decision, in expectation.
        """
        coding, votes, decisions = self.given.coding, self.given.votes, self.decisions
        table = coding.decode(self.log_probs, decisions.of_item, decisions.expected)
        if self.losses.person is not None:
            table["decision"] = table["decision"].astype(object).mask(decisions.to_person, PERSON)
        table["votes"] = np.asarray(votes.pooled_counts()).sum(1)
        if self.in_sets is not None:
            names = np.array(coding.classes.names)
            table["set"] = [" | ".join(names[own]) or "(empty)" for own in self.in_sets]
        return table

    @property
    def answers_block(self) -> Table:
        """The answers of the first items."""
        return first_rows("The answers (--out FILE writes all)", self.answers)

    @property
    def files(self) -> dict[str, tuple[str, Written]]:
        """The answers."""
        return {"out": ("probabilities, decision and expected loss of every item", self.answers)}

    @property
    def decided_counts(self) -> dict[str, int]:
        """How often each class was decided, and under `PERSON` how often a person is asked."""
        names, sent = self.given.coding.classes.names, self.decisions.to_person
        counts = np.bincount(self.decisions.of_item[~sent], minlength=len(names))
        asked = {PERSON: int(sent.sum())} if sent.any() else {}
        return dict(zip(names, map(int, counts), strict=True)) | asked

    @property
    def decided_words(self) -> str:
        """How often each class was decided, and the mean expected loss of these decisions."""
        coding, losses, decisions = self.given.coding, self.losses, self.decisions
        names, kept, counts = coding.classes.names, ~decisions.to_person, self.decided_counts
        shares = ", ".join(f"{name}: {counts[name]}" for name in names)
        if losses.person is not None:
            shares += f"; sent to a person: {int((~kept).sum())}"
        if not kept.any() or self.certain:
            return f"Decisions: {shares}."
        mean = float(decisions.expected[kept].mean())
        if decisions.decider is not None:
            return (
                f"Decisions, by {decisions.decider}: {shares}. Their mean expected {losses.name} loss "
                f"under the probabilities ({losses.meaning}) is {mean:.3f}."
            )
        words = (
            f"Decisions: {shares}. Each decision minimises the expected {losses.name} loss "
            f"({losses.meaning}); the mean expected loss is {mean:.3f}."
        )
        logs = np.asarray(self.log_probs)
        own = np.take_along_axis(logs, decisions.of_item[:, None], axis=1)[:, 0]
        against = (logs.max(1) > own + 1e-9) & kept  # a class is clearly more probable
        if against.any():
            first = str(coding.items[int(np.argmax(against))])
            words += (
                f" {int(against.sum())} of them (the first is {first!r}) are not the most probable "
                f"class: under the {losses.name} loss, the decided class costs less in expectation."
            )
        return words
