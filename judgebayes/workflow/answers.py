"""The answers for each item: class probabilities, the decision and its expected loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.measures.decide import bayes_action, risk
from judgebayes.votes import Coding
from judgebayes.votes.sparse import AnyVotes, counts_by_item
from judgebayes.workflow.losses import PERSON, Losses

__all__ = [
    "answer_table",
    "decide",
    "decided_words",
]


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
    losses: Losses,
    sets: Bool[np.ndarray, "item class"] | None = None,
) -> pd.DataFrame:
    """Return a row per item: probabilities, decision, expected loss, votes, and its conformal set.

    The decision is `PERSON` if asking a person costs less than every decision, in expectation.
    """
    decisions, expected = decide(log_probs, losses.matrix)
    table = coding.decode(log_probs, decisions, expected)
    if losses.person is not None:
        to_person = losses.sent(np.exp(log_probs), np.asarray(expected))
        table["decision"] = table["decision"].astype(object).mask(to_person, PERSON)
    table["votes"] = counts_by_item(votes).sum(1)
    if sets is not None:
        names = np.array(coding.classes.names)
        table["set"] = [" | ".join(names[inside]) for inside in sets]
    return table


@in_float64
def decided_words(
    coding: Coding,
    log_probs: Float[Array, "item class"],
    losses: Losses,
) -> str:
    """Return how often each class was decided, and the mean expected loss of these decisions."""
    classes = coding.classes
    decisions, expected = map(np.asarray, decide(log_probs, losses.matrix))
    probs = np.exp(np.asarray(log_probs))
    kept = ~losses.sent(probs, expected)
    counts = np.bincount(decisions[kept], minlength=len(classes))
    shares = ", ".join(f"{n}: {c}" for n, c in zip(classes.names, counts, strict=True))
    if losses.person is not None:
        shares += f"; sent to a person: {int((~kept).sum())}"
    # The answers of a rule are 0 or 1, which do not measure its errors.
    if not kept.any() or bool(np.isin(probs, (0.0, 1.0)).all()):
        return f"Decisions: {shares}."
    mean = float(expected[kept].mean())
    return (
        f"Decisions: {shares}. Each has the least expected {losses.name} loss ({losses.meaning}); the "
        f"mean is {mean:.3f}."
    )
