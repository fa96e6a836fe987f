"""The answers for each item: class probabilities, the decision and its expected loss."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool

from judgebayes.arrays import ItemFloats, ItemInts, LogProbs
from judgebayes.compiled.float64 import inside
from judgebayes.measures.decide import decide
from judgebayes.votes import Coding, Votes
from judgebayes.workflow.losses import PERSON, Losses

_decide = inside(decide)


class Decisions(NamedTuple):
    """The decision on every item, its expected loss, and whether a person is asked instead."""

    of_item: ItemInts
    expected: ItemFloats
    to_person: Bool[np.ndarray, " item"]


def decisions_of(log_probs: LogProbs, losses: Losses, rule: LogProbs | None = None) -> Decisions:
    """Return the decisions of least expected loss. The caller has 64-bit arithmetic.

    With the log-probabilities of a `rule`, it decides, and the expected loss of its decisions is that
    under `log_probs`.
    """
    decisions, expected = map(
        np.asarray, _decide(log_probs if rule is None else rule, losses.matrix)
    )
    if rule is not None:
        probs = np.exp(np.asarray(log_probs))
        expected = np.einsum("ik,ik->i", probs, np.asarray(losses.matrix)[decisions])
    return Decisions(decisions, expected, losses.sent(np.exp(np.asarray(log_probs)), expected))


def answer_table(
    coding: Coding,
    votes: Votes,
    log_probs: LogProbs,
    losses: Losses,
    decisions: Decisions,
    sets: Bool[np.ndarray, "item class"] | None = None,
) -> pd.DataFrame:
    """Return a row per item: probabilities, decision, expected loss, votes, and its conformal set.

    The decision is `PERSON` if asking a person costs less than every decision, in expectation.
    """
    table = coding.decode(log_probs, decisions.of_item, decisions.expected)
    if losses.person is not None:
        table["decision"] = table["decision"].astype(object).mask(decisions.to_person, PERSON)
    table["votes"] = np.asarray(votes.pooled_counts()).sum(1)
    if sets is not None:
        table["set"] = [set_name(inside, coding.classes.names) for inside in sets]
    return table


def set_name(inside: Bool[np.ndarray, " class"], names: Sequence[str]) -> str:
    """Return the classes of a conformal set as text, `(empty)` if there are none."""
    return " | ".join(np.array(names)[inside]) if inside.any() else "(empty)"


def decided_counts(names: Sequence[str], decisions: Decisions) -> dict[str, int]:
    """Return how often each class was decided, and under `PERSON` how often a person is asked."""
    sent = decisions.to_person
    counts = np.bincount(decisions.of_item[~sent], minlength=len(names))
    asked = {PERSON: int(sent.sum())} if sent.any() else {}
    return dict(zip(names, map(int, counts), strict=True)) | asked


def decided_words(
    coding: Coding,
    log_probs: LogProbs,
    losses: Losses,
    decisions: Decisions,
    rule: str | None = None,
) -> str:
    """Return how often each class was decided, and the mean expected loss of these decisions.

    `rule` is the name of the rule that decided, if one did.
    """
    names, kept = coding.classes.names, ~decisions.to_person
    counts = decided_counts(names, decisions)
    shares = ", ".join(f"{name}: {counts[name]}" for name in names)
    if losses.person is not None:
        shares += f"; sent to a person: {int((~kept).sum())}"
    # The answers of a rule are 0 or 1, which do not measure its errors.
    certain = bool(np.isin(np.exp(np.asarray(log_probs)), (0.0, 1.0)).all())
    if not kept.any() or certain:
        return f"Decisions: {shares}."
    mean = float(decisions.expected[kept].mean())
    if rule is not None:
        return (
            f"Decisions, by {rule}: {shares}. Their mean expected {losses.name} loss under the "
            f"probabilities ({losses.meaning}) is {mean:.3f}."
        )
    words = (
        f"Decisions: {shares}. Each decision minimises the expected {losses.name} loss "
        f"({losses.meaning}); the mean expected loss is {mean:.3f}."
    )
    logs = np.asarray(log_probs)
    own = np.take_along_axis(logs, decisions.of_item[:, None], axis=1)[:, 0]
    against = (logs.max(1) > own + 1e-9) & kept  # a class is clearly more probable
    if against.any():
        first = str(coding.items[int(np.argmax(against))])
        words += (
            f" {int(against.sum())} of them (the first is {first!r}) are not the most probable "
            f"class: under the {losses.name} loss, the decided class costs less in expectation."
        )
    return words
