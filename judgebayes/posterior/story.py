"""A generative model with data in it: all that a posterior file says about it."""

from dataclasses import dataclass

from judgebayes.inference.sampled import Described

__all__ = ["TARGETS", "Story"]

TARGETS = {
    "label": "the label of an item, given its votes",
    "votes": "the votes on an item, given its label where it has one",
    "correct": "how many of an item's votes are correct",
}
"""What log-likelihoods are of. A variable of one name means the same in every file."""


@dataclass(frozen=True, kw_only=True)
class Story(Described):
    """A program with data, and what a user sees of it."""

    shown: tuple[str, ...]
    """The variables that summary and forest plot show."""
    watched: tuple[str, ...] | None = None
    """The variables on which chains must agree, all if None: see `Problem.watched`."""
    advice: str = ""
    """What to try where the replications do not look like the data."""
    words: tuple[str, ...] = ()
    """What the user should know of this model and data."""
