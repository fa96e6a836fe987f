"""Ensembles of judges by counting votes, with or without resilience to missing votes (P4 section 4).

`valid` voting calls an item valid if at least m judges do: a majority (m = 8 of 14) or a
super-majority. A missing vote then counts against the item. `veto` voting calls an item invalid if at
least n judges do, so a missing vote has no effect. This is why many missing votes, with few invalid
items, harm `valid` voting and not `veto` voting.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import check_one_vote
from judgebayes.votes.array import Votes

Kind = Literal["valid", "veto"]
KINDS: tuple[Kind, ...] = ("valid", "veto")


class Choice(NamedTuple):
    """A threshold and its maximum error on the calibration generators."""

    kind: Kind
    threshold: int
    error: float


def ensembles(votes: Votes, kind: Kind) -> Bool[np.ndarray, "judge item"]:
    """Return which items are called valid, for every threshold from 1 to the number of judges.

    Raises
    ------
    JudgeBayesError
        If the votes are not binary, or a judge voted more than once on an item.
    """
    check_one_vote(votes, "Voting at a threshold counts")
    index = np.asarray(votes.index)[..., 0]
    threshold = np.arange(1, votes.n_judges + 1)[:, None]
    if kind == "valid":
        return (index == 1).sum(1) >= threshold
    return ~((index == 0).sum(1) >= threshold)


def ensemble_precision(
    called: Bool[np.ndarray, "judge item"], generators: ItemInts, n_generators: int
) -> Float[np.ndarray, "judge generator"]:
    """Return the share of each generator's items that is called valid, by threshold."""
    member = np.asarray(generators)[:, None] == np.arange(n_generators)
    return (called.astype(float) @ member) / member.sum(0)


def choose_threshold(
    precision: dict[Kind, Float[np.ndarray, "judge generator"]],
    truth: Float[np.ndarray, " generator"],
    calibration: Bool[np.ndarray, " generator"],
) -> Choice:
    """Return the kind and threshold with the least maximum error on the calibration generators.

    P4 chooses on the generators that are then predicted, which is impossible for a user who needs the
    prediction. Ties go to the smaller mean error, then to the first.

    Raises
    ------
    JudgeBayesError
        If no generator is in the calibration part.
    """
    if not np.asarray(calibration).any():
        raise JudgeBayesError(
            "No generator is labelled; the threshold is chosen on labelled generators."
        )
    options = []
    for kind, by_threshold in precision.items():
        errors = np.abs(by_threshold - truth)[:, calibration]
        options += [
            (float(e.max()), float(e.mean()), index, kind) for index, e in enumerate(errors)
        ]
    max_error, _, index, kind = min(options, key=lambda o: o[:2])
    return Choice(kind, index + 1, max_error)
