"""The rules of P1's tables besides the majority vote: votes weighted by confidence, greedy decoding."""

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.aggregators.vote_rules import TieRule, at_centre, most_supported
from judgebayes.arrays import LogProbs
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import JaxMethod
from judgebayes.inference.problem import Sites
from judgebayes.votes.array import Votes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SoftVote(JaxMethod):
    """The class whose votes have the highest least, mean or product of confidences (Soft-SC).

    Wang et al. (2024); P1 section 5. The confidence is the votes' `score`. A class without votes
    has no support.
    """

    reduce: Literal["min", "mean", "product"] = field(default="mean", metadata={"static": True})
    tie: TieRule = field(default="middle", metadata={"static": True})

    def predict(self, values: Sites, given: Votes) -> LogProbs:  # noqa: ARG002
        """Return the class with the best confidence."""
        member, confidence = _members(given)
        if self.reduce == "min":
            support = jnp.where(member, confidence, jnp.inf).min(1)
        elif self.reduce == "mean":
            support = jnp.where(member, confidence, 0.0).sum(1) / jnp.maximum(member.sum(1), 1)
        else:
            support = jnp.where(member, confidence, 1.0).prod(1)
        return most_supported(jnp.where(member.any(1), support, -jnp.inf), given, self.tie)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConfidenceVote(JaxMethod):
    """The class with the largest sum of confidences (CI-SC).

    Taubenfeld et al. (2025); P1 section 5. The confidence is the votes' `score`.
    """

    tie: TieRule = field(default="middle", metadata={"static": True})

    def predict(self, values: Sites, given: Votes) -> LogProbs:  # noqa: ARG002
        """Return the class with the most confidence."""
        member, confidence = _members(given)
        support = jnp.where(member, confidence, 0.0).sum(1)
        return most_supported(support, given, self.tie)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RoundedMedian(JaxMethod):
    """The median of the first votes, halves rounded away from the middle (P1's greedy decoding).

    The paper draws two votes at temperature 0, one in each order: a pair of tie and A gives A, a
    pair of A and B a tie.
    """

    samples: int = field(default=2, metadata={"static": True})

    def predict(self, values: Sites, given: Votes) -> LogProbs:  # noqa: ARG002
        """Return the rounded median."""
        first = given.first(self.samples)
        votes = first.index.reshape(first.n_items, -1).astype(float)
        median = jnp.nanmedian(jnp.where(votes >= 0, votes, jnp.nan), axis=1)
        twice = jnp.where(jnp.isnan(median), given.n_classes - 1, 2 * median)
        return at_centre(jnp.round(twice).astype(int), given.n_classes, "outer")


def _members(
    votes: Votes,
) -> tuple[Array, Float[Array, "item vote 1"]]:
    """Return which votes are for which class (item, vote, class), and their confidences."""
    if votes.score is None:
        raise JudgeBayesError(
            "This rule weights votes by their confidence, but these votes have no score; name its "
            "column with encode(score=...)."
        )
    given = votes.index.reshape(votes.n_items, -1)
    member = given[..., None] == jnp.arange(votes.n_classes)
    return member, votes.score.reshape(votes.n_items, -1, 1)
