"""Reliability: how often events happen, by bins of their predicted probability."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyProbs, ItemValues, Labels
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.measures.scores import TINY, labelled_weight
from judgebayes.measures.significance import share_interval

SAME = 1e-12
"""Confidences within this distance count as equal."""


class Reliability(NamedTuple):
    """A reliability diagram: the mass of each bin, and its mean probability and frequency."""

    mass: Float[Array, " bin"]
    predicted: Float[Array, " bin"]
    observed: Float[Array, " bin"]


def answers(log_probs: AnyProbs, labels: Labels) -> tuple[ItemValues, ItemValues]:
    """Return the confidence of each prediction and whether it is right, a share where classes tie."""
    probs = jnp.exp(jnp.asarray(log_probs))
    confidence = probs.max(-1)
    tied: Bool[Array, "item class"] = probs >= confidence[:, None] - SAME
    hit = jnp.take_along_axis(tied, jnp.maximum(jnp.asarray(labels), 0)[:, None], 1)[:, 0]
    return confidence, hit / tied.sum(-1)


@in_float64
@jit_inline("bins", "of")
def reliability(
    log_probs: AnyProbs,
    labels: Labels,
    *,
    bins: int = 15,
    of: int | None = None,
) -> Reliability:
    """Return mean probability and frequency by equal-width bins (low, high] (P2 App. H.15).

    For the probability of the most probable class, and how often it is the label; with `of`, for that
    class instead. Both are 0 in an empty bin.
    """
    w = labelled_weight(labels, None)
    if of is None:
        probability, happened = answers(log_probs, labels)
    else:
        probability = jnp.exp(jnp.asarray(log_probs)[:, of])
        happened = (jnp.asarray(labels) == of).astype(float)
    which = jnp.clip(jnp.ceil(probability * bins - SAME).astype(int) - 1, 0, bins - 1)
    member = jax.nn.one_hot(which, bins, dtype=float) * w[:, None]
    mass = member.sum(0)
    share = jnp.maximum(mass, TINY)
    return Reliability(mass, (probability @ member) / share, (happened @ member) / share)


def confidence_bins(
    log_probs: Float[np.ndarray, "answer class"],
    labels: Int[np.ndarray, " answer"],
    items: Int[np.ndarray, " answer"],
    groups: Int[np.ndarray, " all_items"] | None = None,
    *,
    bins: int = 10,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return how often the most probable class is right, by bins of its probability, lowest first.

    Bins without a prediction are left out. `items` is the item of each prediction: in the interval, an
    item, or a group of items, counts once however often it occurs.

    Returns
    -------
    A row for each bin: `place` (of n bins, it spans place / n to (place + 1) / n), the number of its
    distinct `items`, its `share` of all predictions, their mean probability (`predicted`), and the share
    of right ones (`right`) with its interval (`low`, `high`).
    """
    confidence = np.exp(log_probs).max(1)
    each = pd.DataFrame(
        {
            "place": np.clip(np.ceil(confidence * bins - SAME).astype(int) - 1, 0, bins - 1),
            "item": items,
            "unit": items if groups is None else groups[items],
            "predicted": confidence,
            "right": log_probs.argmax(1) == labels,
        }
    )
    table = each.groupby("place", as_index=False).agg(
        items=("item", "nunique"),
        units=("unit", "nunique"),
        share=("item", lambda own: len(own) / len(each)),
        predicted=("predicted", "mean"),
        right=("right", "mean"),
    )
    right, units = (table[name].to_numpy(float) for name in ("right", "units"))
    low, high = share_interval(right * units, units, level=level)
    return table.drop(columns="units").assign(low=low, high=high)
