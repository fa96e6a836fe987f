"""A generative model with data in it: all that a posterior file says about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from judgebayes.generative import derived
from judgebayes.inference.problem import Problem, Sites

__all__ = ["TARGETS", "Statistics", "Story"]

Statistics = Callable[[Mapping[str, np.ndarray]], dict[str, float]]
"""Numbers that a user understands, of one set of data, observed or replicated."""

TARGETS = {
    "label": "the label of an item, given its votes",
    "votes": "the votes on an item, given its label where it has one",
    "correct": "how many of an item's votes are correct",
}
"""What log-likelihoods are of. A variable of one name means the same in every file."""


@dataclass(frozen=True)
class Story:
    """A program with data: what is sampled, and what a user sees of it.

    The functions take the sites of one draw, and run inside compiled code.
    """

    problem: Problem
    """What is sampled; its data may hold each different item once, with a weight."""
    data: Any
    """The data with every item."""
    constrained: Callable[[Sites, PRNGKeyArray], Sites]
    """The draw as a user wants it named: on the scale of the story, with names for its axes."""
    statistics: Statistics
    """Of data by the names of their sites, observed or drawn anew."""
    coords: dict[str, list[str]]
    shown: tuple[str, ...]
    """The variables that summary and forest plot show."""
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the axes of what `constrained` adds to the program's sites."""
    watched: tuple[str, ...] | None = None
    """The variables on which chains must agree, all if None: see `Problem.watched`."""
    meanings: dict[str, str] = field(default_factory=dict)
    """What each shown variable is, in words."""
    advice: str = ""
    """What to try where the replications do not look like the data."""
    words: tuple[str, ...] = ()
    """What the user should know of this model and data."""
    given: tuple[str, ...] = ()
    """Sites that keep their observed values where data are drawn anew."""

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The names of all axes; a label's, and those of items that count if labelled, say so."""
        model = self.problem.model
        only_labelled = model.traits.enters in ("labelled items", "items with a count")

        def named(site: str, dims: tuple[str, ...]) -> tuple[str, ...]:
            item = "labelled_item" if only_labelled or site == "label" else "item"
            return tuple(item if name == "item" else name for name in dims)

        return {site: named(site, dims) for site, dims in model.dims.items()} | self.dims

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The data by the names of their sites, without what is given."""
        names = [n for n in self.problem.model.traits.sites if n not in self.given]
        arrays = {n: np.asarray(getattr(self.data, derived.FIELDS.get(n, n))) for n in names}
        return {n: x.astype(np.int32 if n == "correct" else np.int8) for n, x in arrays.items()}

    def pointwise(self, sites: Sites) -> dict[str, Float[Array, " item"]]:
        """Return the log-likelihood of every item by target (`TARGETS`); of labels, the known ones."""
        each = derived.pointwise(self.problem.model, self.data, sites)
        if "label" in each:
            known = np.flatnonzero(np.asarray(self.data.labels) >= 0)
            label = each.pop("label")
            each |= {"label": label[known]} if len(known) else {}
        return each

    def replicate(self, key: PRNGKeyArray, sites: Sites) -> Sites:
        """Return data drawn anew, of the shape of `observed`."""
        fresh = derived.replicated(self.problem.model, self.data, key, sites, self.given)
        return {n: fresh[n].astype(x.dtype) for n, x in self.observed.items()}
