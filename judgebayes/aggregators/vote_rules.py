"""Rules that need no fit: the majority vote, and the verdict of one judge.

The rules have no parameters to fit. Each has an explicit rule for tied classes: the paper has none,
and with four votes it has a large effect.
"""

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array

from judgebayes.aggregators.base import Rule, certain
from judgebayes.arrays import ItemCodes, LogProbs
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.votes.array import Votes

TieRule = Literal["middle", "outer", "first", "drawn"]
"""The decision when several classes have the most support.

`middle`: the centre of the tied classes, with halves rounded towards the middle of the scale: votes of
2 : 2 between tie and A are a tie. `outer`: halves are rounded away from it (P1's rounded median). In
both cases, votes of 2 : 2 between A and B are a tie. `first`: the tied class that was voted first.
`drawn`: one of the tied classes at random, with a fixed seed, where the classes have no order.
"""

TIED = 1e-12


@in_files
@aggregator("sc", rule=True, compared="baseline", place=70)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MajorityVote(Rule):
    """The class with the most votes, all judges and samples together (self-consistency, SC).

    Wang et al. (2023b); P1 section 5.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> fit = jb.MajorityVote().fit(votes, labels)
    >>> jb.bayes_action(fit(votes), jb.absolute_loss(3)).tolist()
    [2, 1, 0, 1, 1, 0]
    """

    tie: TieRule = field(default="middle", metadata={"static": True})

    def apply(self, votes: Votes) -> LogProbs:
        """Return the class with the most votes."""
        return most_supported(votes.pooled_counts().astype(float), votes, self.tie)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Verdict(Rule):
    """The verdict of one judge, unchanged: an aggregation that was computed elsewhere.

    For aggregations by a language model (USC, GSA, few-shot): add their verdicts to the votes as
    another judge. An item without a verdict gets a uniform distribution.
    """

    judge: int = field(metadata={"static": True})

    def apply(self, votes: Votes) -> LogProbs:
        """Return the judge's first vote."""
        given = votes.index[:, self.judge, 0].astype(int)
        undecided = jnp.full((votes.n_items, votes.n_classes), -jnp.log(votes.n_classes))
        return jnp.where((given >= 0)[:, None], certain(given, votes.n_classes), undecided)


@jit_inline("tie")
def most_supported(support: LogProbs, votes: Votes, tie: TieRule) -> LogProbs:
    """Return the class with the most support, with certainty unless two classes remain tied.

    An item without votes has no majority: all its classes tie, and the result is the middle.
    """
    most = support.max(1, keepdims=True)
    tied = (support >= most - TIED * jnp.abs(most)) | jnp.isinf(most)
    if tie == "drawn":
        chance = jax.random.uniform(jax.random.key(0), tied.shape)
        return certain(jnp.argmax(jnp.where(tied, chance, -1.0), 1), votes.n_classes)
    if tie == "first":
        return certain(_first_voted(tied, votes), votes.n_classes)
    lowest = jnp.argmax(tied, 1)
    highest = votes.n_classes - 1 - jnp.argmax(tied[:, ::-1], 1)
    return at_centre(lowest + highest, votes.n_classes, tie)


@jit_inline("n_classes", "tie")
def at_centre(twice: ItemCodes, n_classes: int, tie: Literal["middle", "outer"]) -> LogProbs:
    """Return the class at `twice / 2`; a half is rounded to the middle or outwards, or is a tie."""
    middle = n_classes - 1
    below, above = twice // 2, (twice + 1) // 2
    towards = jnp.where(twice < middle, above, below)
    away = jnp.where(twice < middle, below, above)
    chosen = certain(towards if tie == "middle" else away, n_classes)
    half = jax.nn.logsumexp(
        jnp.stack([certain(below, n_classes), certain(above, n_classes)]), axis=0
    ) - jnp.log(2.0)
    return jnp.where((twice == middle)[:, None] & (below != above)[:, None], half, chosen)


def _first_voted(tied: Array, votes: Votes) -> ItemCodes:
    """Return the tied class of the earliest vote, samples before judges; the lowest if none."""
    given = jnp.swapaxes(votes.index, 1, 2).reshape(votes.n_items, -1).astype(int)
    voted = given[..., None] == jnp.arange(votes.n_classes)
    earliest = jnp.where(voted.any(1), voted.argmax(1), given.shape[1])
    return jnp.argmin(jnp.where(tied, earliest, given.shape[1] + 1), 1)
