"""A generative model with data, and the descriptions that go into a posterior file."""

from dataclasses import dataclass

from judgebayes.inference.sampled import Described
from judgebayes.votes.array import Data

TARGETS = {
    "label": "the label of an item, given its votes",
    "votes": "the votes on an item, given its label where it has one",
    "correct": "how many of an item's votes are correct",
}
"""The targets of log-likelihoods. A variable name means the same in every file."""


def coords_of(data: Data) -> dict[str, list[str]]:
    """Return the names along the axes that models of votes and labels may have.

    A judge's votes on an item are a "repeat": "sample" has another meaning in ArviZ.
    """
    return {
        "judge": list(data.judges),
        "item": list(data.items),
        "labelled_item": data.names(data.labelled),
        "repeat": [str(s + 1) for s in range(data.votes.n_samples)],
    }


@dataclass(frozen=True, kw_only=True)
class ModelSpec(Described):
    """A model with data, and its descriptions for users."""

    shown: tuple[str, ...]
    """The variables that summary and forest plot show."""
    watched: tuple[str, ...] | None = None
    """The variables on which chains must agree (all if None), as in `Problem.watched`."""
    advice: str = ""
    """What to try if the replications differ from the data."""
    words: tuple[str, ...] = ()
    """Notes for the user about this model and data."""
