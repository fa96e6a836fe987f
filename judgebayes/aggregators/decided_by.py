"""A fitted method whose decisions come from a simple rule that decides better on held-out labels."""

from dataclasses import dataclass, field

from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import FittedAggregator
from judgebayes.arrays import LogProbs
from judgebayes.inference.registry import in_files
from judgebayes.inference.summary import summary
from judgebayes.votes.array import Votes


@in_files
@dataclass(frozen=True)
class DecidedBy:
    """The probabilities of one fitted method, and the decisions of a rule, for one loss."""

    probabilities: FittedAggregator
    rule: FittedAggregator
    """Its most probable class, or the action of least loss under its shares, is the decision."""
    name: str = field(metadata={"static": True})
    """The rule's name."""
    loss: Float[Array, "action class"]
    """The loss for which the rule decides better; for another, the probabilities decide."""

    __repr__ = summary

    @property
    def status(self) -> Int[Array, ""]:
        """The status of the method of the probabilities."""
        return self.probabilities.status

    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' log-probabilities."""
        return self.probabilities(votes)
