"""The classes of votes and labels that a user's files contain.

The order of classes that are words, by their meaning.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.options import option, split_names
from judgebayes.votes import infer_classes
from judgebayes.votes.classes import (
    Classes,
    canonical,
    counted,
    decided,
    distinct,
    inferred,
    listing,
    scale_of,
    usual_classes,
)
from judgebayes.votes.encoding import SUSPICIOUS_VOTES
from judgebayes.workflow.sources import Opened

MOST_RATINGS = 12
"""More different values than this are probably not classes."""

SCALES = (
    "strongly disagree, disagree, neutral, agree, strongly agree",
    "terrible, awful, very bad, bad, very poor, poor, fair, ok, okay, average, acceptable, good, "
    "very good, great, excellent, perfect",
    "none, very low, low, medium, moderate, high, very high",
    "never, rarely, sometimes, often, always",
    "no, mostly no, partially, partly, partial, somewhat, mostly, mostly yes, yes",
    "incorrect, mostly incorrect, partially correct, partial, mostly correct, correct",
    "wrong, partially right, partial, right",
    "fail, partial, borderline, pass",
    "false, unclear, true",
    "unsafe, borderline, safe",
    "reject, weak reject, borderline, weak accept, accept",
    "negative, neutral, mixed, positive",
    "irrelevant, partially relevant, relevant, highly relevant",
    "nein, teilweise, ja",
    "sehr schlecht, schlecht, mittel, befriedigend, gut, sehr gut",
    "falsch, teilweise richtig, richtig",
    "non, oui",
    "not helpful, somewhat helpful, helpful, very helpful",
    "b>>a, b>a, a=b, a>b, a>>b",
)
"""Words in ascending order, in lower case and with spaces for hyphens and underscores."""


def are_scores(values: list[object]) -> bool:
    """Tell whether values are scores: more different numbers than `MAX_CLASSES`, and nothing else."""
    plain = distinct(values)
    return len(plain) > MAX_CLASSES and all(isinstance(value, int | float) for value in plain)


def in_order(values: Sequence[Hashable]) -> tuple[list[Hashable], bool]:
    """Return classes from the lowest to the highest, and whether their order is known.

    Numbers are in order, and so are words of one scale. Others are in alphabetical order, not known.

    >>> in_order(["good", "poor", "fair"])
    (['poor', 'fair', 'good'], True)
    >>> in_order(["red", "blue"])
    (['blue', 'red'], False)
    """
    if all(isinstance(value, int | float) for value in values):
        numbers: list[Any] = list(values)
        return sorted(numbers), True
    plain = {
        value: " ".join(str(value).casefold().replace("_", " ").replace("-", " ").split())
        for value in values
    }
    for scale in (words.split(", ") for words in SCALES):
        if set(plain.values()) <= set(scale):
            return sorted(values, key=lambda value: scale.index(plain[value])), True
    return sorted(values, key=lambda value: (isinstance(value, str), str(value))), False


def of_words(values: Iterable[object]) -> Classes | None:
    """Return the classes of values that are words: nominal, unless they are those of one scale.

    None if there is only one, or too many to be classes, or a number among them. The first spelling
    of words that differ in case counts.
    """
    plain = distinct(values)
    if not all(isinstance(value, str) for value in plain):
        return None
    words = {str(value).casefold(): value for value in reversed(plain)}
    if not 2 <= len(words) <= MOST_RATINGS:
        return None
    ordered, known = in_order(list(words.values()))
    return Classes(tuple(ordered), pairwise=False, ordered=known)


def no_order(classes: Classes) -> list[str]:
    """Return a sentence on classes without an order, if it would matter."""
    if classes.ordered or len(classes) < 3:
        return []
    return [
        "The classes are read as having no order: each wrong decision costs the same. If they have one, "
        "name them from the lowest to the highest with --set classes=LOW,...,HIGH."
    ]


LEAST_DECIDED = 20
"""So many labelled items, none of them in the middle of three classes, make that vote undecided."""


def classes_of(opened: Opened, *, detect: bool = False) -> Classes:
    """Return the classes that the user named, or those of the votes and labels.

    With `detect`, the middle of three classes that no label has is a vote for no class (`undecided`).

    Raises
    ------
    JudgeBayesError
        If the classes cannot be inferred, or votes and labels are of different kinds.
    """
    request, none = opened.request, undecided_of(opened)
    votes = counted(opened.votes)
    for value in none:
        if len(decided(votes, (value,))) == len(votes):
            raise JudgeBayesError(
                f"undecided={value}: no vote is {value!r}; the votes are "
                f"{listing(sorted(votes, key=str))}."
            )
    names = opened.classes if request.classes is None else split_names(request.classes)
    if names is not None:
        return scale_of(votes, names, request.pairwise, "", none)
    classes = replace(_of_votes_and_labels(opened, none), undecided=none)
    if detect and request.undecided is None:
        classes = _without_middle(opened, classes)
    return classes if request.pairwise is None else replace(classes, pairwise=request.pairwise)


def undecided_of(opened: Opened) -> tuple[Hashable, ...]:
    """Return the values of votes that the user calls undecided."""
    named = opened.request.undecided
    if named is None or named.strip().casefold() == "none":
        return ()
    return tuple(distinct(split_names(named)))


def _without_middle(opened: Opened, votes: Classes) -> Classes:
    """Return two classes and the undecided votes between them, if many labels are never between."""
    gold = opened.labels
    if gold is None or not votes.pairwise or len(votes) != 3:
        return votes
    index = np.array(votes.indices(gold.table[gold.label]), float)
    n_labels = gold.table[gold.item][index >= 0].nunique()
    if {*index[index >= 0]} != {0, 2} or n_labels < LEAST_DECIDED:
        return votes
    low, middle, high = votes.values
    return replace(votes, values=(low, high), undecided=(middle,))


def _of_votes_and_labels(opened: Opened, none: tuple[Hashable, ...]) -> Classes:
    """Return the classes of the votes and labels, without undecided votes."""
    counts, gold = cast_votes(opened), opened.labels
    words = of_words(counts) if usual_classes(counts)[0] is None else None
    few = words is not None and 2 * len(words) <= counts.total()
    votes = words if words and few else infer_classes(counts, opened.request.votes.name)
    column = pd.Series(dtype=object) if gold is None else gold.table[gold.label]
    given = decided(column.dropna().unique(), none)
    labels = {*distinct(given)}
    if gold is None or not labels:
        return votes
    binary_votes = votes.values == (0, 1) and -1 in labels
    many = int(column.count()) >= SUSPICIOUS_VOTES
    if binary_votes or (votes.values == (-1, 0, 1) and labels == {0, 1} and many):
        kinds = ("binary", "ternary") if binary_votes else ("ternary", "binary")
        raise JudgeBayesError(
            f"The votes look {kinds[0]} ({', '.join(votes.names)}), but the labels look "
            f"{kinds[1]}. Votes and labels must have the same classes. If one scale contains all of "
            "them, name its classes from lowest to highest: --set classes=-1,0,1 or --set classes=0,1."
        )
    every = [*counts, *given]
    together = of_words(every) if votes == of_words(votes.values) else None
    if together is None or together.ordered != votes.ordered:
        together = inferred(every)
    if together is not None:
        return together
    odd = next(value for value in given if votes.index(value) is None)
    hit = column == odd
    raise JudgeBayesError(
        f"Row {hit.idxmax()} of the label column {gold.label!r} contains {canonical(odd)!r}, but the "
        f"votes are {', '.join(votes.names)}. Labels and votes must have the same classes: write the "
        f"labels as the votes are written, {listing(votes.values)}; if it means no label, use "
        f"{option('missing', [odd])}."
    )


def cast_votes(opened: Opened) -> Counter[Hashable]:
    """Return how often each value is a vote, without those that the user calls undecided."""
    counts = counted(opened.votes)
    return Counter({value: counts[value] for value in decided(counts, undecided_of(opened))})
