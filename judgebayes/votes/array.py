"""Votes as an array: class indices by item, judge and sample, with holes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.compiled.jit_inline import fused
from judgebayes.errors import JudgeBayesError

__all__ = ["MISSING", "Votes", "from_counts"]

MISSING = -1
"""The index of a vote that was not given or could not be read: a state of its own."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Votes:
    """Votes of judges on items, each repeated up to `sample` times.

    `index` holds class indices 0 .. n_classes - 1, in the order of the classes, or `MISSING`.
    Samples stand in the order of the sample column and, within it, of the presentation order, so
    that the first n samples are balanced over orders wherever the votes are.
    """

    index: Int[Array, "*batch item judge sample"]
    score: Float[Array, "*batch item judge sample"] | None
    """A number that came with each vote, its confidence say; NaN where the vote is missing."""
    order: Int[Array, "*batch item judge sample"] | None
    """0 where the vote was given in the labels' order, 1 where the responses were swapped."""
    task: Int[Array, "*batch item"] | None
    """The task that each item belongs to."""
    n_classes: int = field(metadata={"static": True})
    n_tasks: int = field(default=0, metadata={"static": True})

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return self.index.shape[-3]

    @property
    def n_judges(self) -> int:
        """How many judges there are."""
        return self.index.shape[-2]

    @property
    def n_samples(self) -> int:
        """How many votes a judge gave an item at most."""
        return self.index.shape[-1]

    def __repr__(self) -> str:
        """Summarise."""
        try:
            cast = f"{int((self.index >= 0).sum())} votes"
        except (TypeError, AttributeError):  # a tracer, or a placeholder inside a transformation
            cast = "votes"
        shape = " x ".join(str(n) for n in getattr(self.index, "shape", ()))
        return f"Votes({cast}, item x judge x sample = {shape}, {self.n_classes} classes)"

    @fused()
    def counts(self) -> Int[Array, "*batch item judge class"]:
        """Return how often each judge gave each item each class; missing votes count nowhere."""
        return (self.index[..., None] == jnp.arange(self.n_classes)).sum(-2, dtype=jnp.int32)

    @fused()
    def pooled_counts(self) -> Int[Array, "*batch item class"]:
        """Return the votes of all judges together, by item and class."""
        return self.counts().sum(-2)

    @fused()
    def take(self, items: Int[AnyArray, " part"]) -> "Votes":
        """Return the votes on some items, in the given order."""
        return replace(
            self,
            index=self.index[items],
            score=None if self.score is None else self.score[items],
            order=None if self.order is None else self.order[items],
            task=None if self.task is None else self.task[items],
        )

    def padded(self, n_items: int) -> "Votes":
        """Return the votes with items without votes added at the end, `n_items` in all.

        Not for compiled code: the arrays are NumPy's, to be put where they are needed.
        """

        def pad(array: Array | None, fill: float) -> Any:
            if array is None:
                return None
            # A third of the time of `np.pad`, which looks at one axis after the other.
            wide = np.full((n_items, *array.shape[1:]), fill, array.dtype)
            wide[: len(array)] = array
            return wide

        return replace(
            self,
            index=pad(self.index, MISSING),
            score=pad(self.score, jnp.nan),
            order=pad(self.order, MISSING),
            task=pad(self.task, 0),
        )

    def first(self, samples: int) -> "Votes":
        """Return the first samples of every judge on every item; the later ones become missing.

        The shape stays, so that fits at several numbers of votes are compiled once.
        """
        if not 0 < samples <= self.n_samples:
            raise JudgeBayesError(
                f"The first {samples} samples were asked for; judges voted up to {self.n_samples} "
                "times on an item."
            )
        early = jnp.arange(self.n_samples) < samples
        return replace(self, index=jnp.where(early, self.index, MISSING))

    def of_judges(self, judges: Sequence[int]) -> "Votes":
        """Return the votes of some judges, by their positions."""
        where = np.asarray(judges)
        return replace(
            self,
            index=self.index[..., where, :],
            score=None if self.score is None else self.score[..., where, :],
            order=None if self.order is None else self.order[..., where, :],
        )

    def seated(self, places: Int[AnyArray, " judge"], n_judges: int) -> "Votes":
        """Return the votes with judge j at `places[j]` of `n_judges`; judges at -1 are left out.

        A place that no judge takes has missing votes: for fits that know judges by position.
        """
        kept = np.flatnonzero(np.asarray(places) >= 0)
        seat = np.asarray(places)[kept]

        def move(array: Array | None, fill: float) -> Array | None:
            if array is None:
                return None
            shape = (*array.shape[:-2], n_judges, array.shape[-1])
            return jnp.full(shape, fill, array.dtype).at[..., seat, :].set(array[..., kept, :])

        index = move(self.index, MISSING)
        assert index is not None
        return replace(
            self, index=index, score=move(self.score, jnp.nan), order=move(self.order, MISSING)
        )

    def in_order(self, order: int) -> "Votes":
        """Return the votes given in one presentation order; the others become missing."""
        if self.order is None:
            raise JudgeBayesError("These votes carry no presentation order: encode(order=...).")
        return replace(self, index=jnp.where(self.order == order, self.index, MISSING))

    def swapped(self) -> "Votes":
        """Return the votes as if the two responses of every item had changed places."""
        mirrored = jnp.where(self.index >= 0, self.n_classes - 1 - self.index, MISSING)
        return replace(self, index=mirrored.astype(self.index.dtype))


def from_counts(counts: np.ndarray) -> Votes:
    """Return the votes of one judge from how often it gave each item each class.

    Raises
    ------
    JudgeBayesError
        If a count is negative or not a whole number.

    Examples
    --------
    >>> import numpy as np
    >>> from_counts(np.array([[0, 1, 7], [6, 2, 0]])).pooled_counts().tolist()
    [[0, 1, 7], [6, 2, 0]]
    """
    counts = np.asarray(counts)  # item x class
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise JudgeBayesError(
            f"Counts have the shape {counts.shape}; right would be (item, class) with two or more "
            "classes."
        )
    bad = ~((counts >= 0) & (counts == np.floor(counts)))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise JudgeBayesError(
            f"Row {row}, class {column} holds the count {counts[row, column]}; counts are whole "
            "numbers from 0."
        )
    counts = counts.astype(np.int64)
    total = counts.sum(1)
    ends = counts.cumsum(1)
    sample = np.arange(max(int(total.max(initial=0)), 1))
    index = (sample[None, :, None] >= ends[:, None, :]).sum(-1)
    index = np.where(sample[None, :] < total[:, None], index, MISSING)
    return Votes(jnp.asarray(index[:, None, :], jnp.int8), None, None, None, counts.shape[1])
