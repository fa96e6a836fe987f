"""Strata of the items that have conformal thresholds of their own: by agreement, or by a column."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from judgebayes.arrays import ItemInts
from judgebayes.calibrators.conformal import ROUNDING
from judgebayes.sentence import percent

AGREEMENT = "agreement"
"""The value of --conformal-by that means the agreement of the votes."""
STRATA = 3
"""The number of strata of agreement, if there are enough labels."""
FITTED_SHARE = 2 / 3
"""The share of the labels that the method is fitted to; the others give the thresholds."""
OTHERS = "the others"
"""The name of the stratum that the values with too few labels share."""


class Strata(NamedTuple):
    """The stratum of each item, and the names of the strata."""

    of_item: ItemInts
    names: list[str]


def enough_for(level: float) -> int:
    """Return the least number of labels whose threshold leaves out any class: n >= (n + 1) level.

    >>> enough_for(0.9), enough_for(0.5)
    (9, 1)
    """
    return max(int(np.ceil(level / (1 - level) - ROUNDING)), 1)


def agreement_strata(counts: Int[np.ndarray, "item class"], strata: int = STRATA) -> Strata:
    """Return parts of the items by the share of their votes that the leading class has, equally large.

    Items with the same share are in one stratum, so that there may be fewer. An item without a vote has
    the share 0.
    """
    total = counts.sum(1)
    share = counts.max(1) / np.maximum(total, 1)
    cuts = np.unique(np.quantile(share, np.arange(1, strata) / strata, method="inverted_cdf"))
    cuts = cuts[cuts < share.max()]
    code = np.searchsorted(cuts, share, side="left")
    edges = _distinct_percents(cuts)
    names = [f"at most {edge}" for edge in edges[:1]]
    names += [f"above {a} to {b}" for a, b in pairwise(edges)]
    return Strata(code, [*names, f"above {edges[-1]}"] if edges else ["all"])


def _distinct_percents(shares: Float[np.ndarray, " share"]) -> list[str]:
    """Return shares in per cent, with as many digits as tell them apart."""
    for digits in range(6):
        texts = [percent(share, digits) for share in shares]
        if len(set(texts)) == len(texts):
            break
    return texts


def threshold_labels(labels: Int[np.ndarray, " stratum"]) -> Int[np.ndarray, " stratum"]:
    """Return how many of the labels are for the thresholds, the others being for the fit.

    >>> threshold_labels(np.array([30, 100])).tolist()
    [10, 33]
    """
    return labels - np.round(FITTED_SHARE * labels).astype(int)


def with_enough(
    strata: Strata, labelled: Int[np.ndarray, " some"], least: int
) -> tuple[Strata, list[str]]:
    """Return strata in which those with fewer than `least` threshold labels are one, and their names.

    This stratum of the others comes last. It is returned also if it has fewer labels.
    """
    labels = np.bincount(strata.of_item[labelled], minlength=len(strata.names))
    enough = threshold_labels(labels) >= least
    few, kept = np.flatnonzero(~enough), np.flatnonzero(enough)
    if not len(few):
        return strata, []
    code = np.full(len(strata.names), len(kept))
    code[kept] = np.arange(len(kept))
    names = [strata.names[k] for k in few]
    together = OTHERS if len(few) > 1 else names[0]
    return Strata(code[strata.of_item], [*(strata.names[k] for k in kept), together]), names


def strata_by(
    by: str | None,
    strata: Mapping[str, Strata],
    counts: Int[np.ndarray, "item class"],
    labelled: Int[np.ndarray, " some"],
    level: float,
) -> tuple[Strata, list[str]]:
    """Return the strata with thresholds of their own, and the names of those with too few labels.

    Of agreement there are as many as have enough labels each, at most three. Of a column, those with too
    few are together in the last one.
    """
    if by is None:
        return Strata(np.zeros(len(counts), int), ["all"]), []
    least = enough_for(level) + 1  # one more, so that a threshold can be had without an item
    division = strata[by]
    for parts in range(STRATA, 1, -1) if by == AGREEMENT else ():
        division = agreement_strata(counts, parts)
        if not with_enough(division, labelled, least)[1]:
            break
    return with_enough(division, labelled, least)
