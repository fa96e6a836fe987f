"""The answers on every item: probabilities, the decision and its expected loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.measures.decide import (
    TIE_TOLERANCE,
    absolute_loss,
    bayes_action,
    risk,
    zero_one_loss,
)
from judgebayes.votes import Coding
from judgebayes.votes.sparse import AnyVotes, counts_by_item

__all__ = [
    "LOSSES",
    "LOSSES_IN_WORDS",
    "PERSON",
    "answer_table",
    "decide",
    "decided_words",
    "sent",
]

LOSSES = {"absolute": absolute_loss, "zero-one": zero_one_loss}
LOSSES_IN_WORDS = {
    "absolute": ("class steps from the label", "its mean is the MAE"),
    "zero-one": ("1 if it is not the label", "its mean is 1 - accuracy"),
}
"""What the loss of a decision is, and how its mean is related to a metric of the comparison."""


PERSON = "person"
"""The decision on an item that is sent to a person."""


def sent(expected: Float[np.ndarray, "*item"], cost: float) -> Bool[np.ndarray, "*item"]:
    """Return which items are sent to a person, from the expected loss of the best decision on each.

    The Bayes action under a loss with one more row, the price of asking for every class (Chow 1970).
    """
    return expected > cost + TIE_TOLERANCE


@jax.jit
def decide(
    log_probs: Float[Array, "item class"], loss: Float[AnyArray, "action class"]
) -> tuple[Int[Array, " item"], Float[Array, " item"]]:
    """Return the decisions and their expected losses."""
    decisions = bayes_action(log_probs, loss)
    return decisions, risk(log_probs, loss)[jnp.arange(len(log_probs)), decisions]


@in_float64
def answer_table(
    coding: Coding,
    votes: AnyVotes,
    log_probs: Float[Array, "item class"],
    loss: str,
    sets: Bool[np.ndarray, "item class"] | None = None,
    abstain_cost: float | None = None,
) -> pd.DataFrame:
    """Return a row per item: probabilities, decision, expected loss, votes, and its conformal set.

    With the price of asking a person, the decision on items whose expected loss is higher is `PERSON`.
    """
    table = coding.decode(log_probs, *decide(log_probs, LOSSES[loss](votes.n_classes)))
    if abstain_cost is not None:
        gone = sent(table["expected_loss"].to_numpy(), abstain_cost)
        table["decision"] = table["decision"].astype(object).mask(gone, PERSON)
    table["votes"] = counts_by_item(votes).sum(1)
    if sets is not None:
        names = np.array(coding.classes.names)
        table["set"] = [" | ".join(names[inside]) for inside in sets]
    return table


@in_float64
def decided_words(
    coding: Coding,
    log_probs: Float[Array, "item class"],
    loss: str,
    abstain_cost: float | None = None,
) -> str:
    """Return how often each class was decided, and the mean expected loss of these decisions."""
    classes = coding.classes
    decisions, expected = map(np.asarray, decide(log_probs, LOSSES[loss](len(classes))))
    kept = ~sent(expected, np.inf if abstain_cost is None else abstain_cost)
    made = np.bincount(decisions[kept], minlength=len(classes))
    shares = ", ".join(f"{n}: {c}" for n, c in zip(classes.names, made, strict=True))
    if abstain_cost is not None:
        shares += f"; sent to a person: {int((~kept).sum())}"
    # A rule answers 0 or 1, which says nothing of how often it is wrong.
    if not kept.any() or bool(np.isin(np.exp(np.asarray(log_probs)), (0.0, 1.0)).all()):
        return f"Decisions: {shares}."
    what = f"each of least expected {loss} loss ({LOSSES_IN_WORDS[loss][0]})"
    return f"Decisions: {shares}; {what}, {float(expected[kept].mean()):.3f} on average."
