"""The answers on every item: probabilities, the decision and its expected loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.measures.decide import absolute_loss, bayes_action, risk, zero_one_loss
from judgebayes.votes import Coding
from judgebayes.votes.sparse import AnyVotes, counts_by_item

__all__ = ["LOSSES", "LOSSES_IN_WORDS", "answer_table", "decide", "decided_words"]

LOSSES = {"absolute": absolute_loss, "zero-one": zero_one_loss}
LOSSES_IN_WORDS = {
    "absolute": ("class steps from the label", "its mean is the MAE"),
    "zero-one": ("1 if it is not the label", "its mean is 1 - accuracy"),
}
"""What the loss of a decision is, and how its mean is related to a metric of the comparison."""


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
) -> pd.DataFrame:
    """Return a row per item: probabilities, decision, expected loss, votes, and its conformal set."""
    table = coding.decode(log_probs, *decide(log_probs, LOSSES[loss](votes.n_classes)))
    table["votes"] = counts_by_item(votes).sum(1)
    if sets is not None:
        names = np.array(coding.classes.names)
        table["set"] = [" | ".join(names[inside]) for inside in sets]
    return table


@in_float64
def decided_words(coding: Coding, log_probs: Float[Array, "item class"], loss: str) -> str:
    """Return how often each class was decided, and the mean expected loss."""
    classes = coding.classes
    decisions, expected = decide(log_probs, LOSSES[loss](len(classes)))
    made = np.bincount(np.asarray(decisions), minlength=len(classes))
    shares = ", ".join(f"{n}: {c}" for n, c in zip(classes.names, made, strict=True))
    # A rule answers 0 or 1, which says nothing of how often it is wrong.
    if bool(np.isin(np.exp(np.asarray(log_probs)), (0.0, 1.0)).all()):
        return f"Decisions: {shares}."
    what = f"each of least expected {loss} loss ({LOSSES_IN_WORDS[loss][0]})"
    return f"Decisions: {shares}; {what}, {float(np.mean(np.asarray(expected))):.3f} on average."
