"""Statistics of votes, labels and counts for predictive checks, each with a name in words."""

import numpy as np
from jaxtyping import Int

from judgebayes.arrays import ItemInts
from judgebayes.votes.array import Data


def of_labels(
    labels: ItemInts,
    index: Int[np.ndarray, "item judge sample"],
    classes: tuple[str, ...],
    judges: tuple[str, ...],
) -> dict[str, float]:
    """Return shares of the labels, and how often they agree with the votes."""
    shares = {f"labels: {name}": _mean(labels == k) for k, name in enumerate(classes)}
    if len(classes) == 2:
        del shares[f"labels: {classes[0]}"]
    counts = _counts(index, len(classes))
    most = counts.max(1)
    has_majority = (counts == most[:, None]).sum(1) == 1
    unanimous_items = has_majority & (most == counts.sum(1))
    equals_majority = labels == counts.argmax(1)
    shares["labels equal to the majority of the votes"] = _mean(equals_majority[has_majority])
    if index.shape[1] * index.shape[2] > 1:
        shares["... where all votes are the same"] = _mean(equals_majority[unanimous_items])
        shares["... where votes differ"] = _mean(equals_majority[has_majority & ~unanimous_items])
    if len(judges) > 1:
        has_vote = index >= 0
        for j, name in enumerate(judges):
            agree = (index[:, j] == labels[:, None])[has_vote[:, j]]
            shares[f"labels equal to the vote of {name}"] = _mean(agree)
    return shares


def of_votes(
    index: Int[np.ndarray, "item judge sample"],
    labels: ItemInts,
    classes: tuple[str, ...],
    judges: tuple[str, ...],
) -> dict[str, float]:
    """Return how judges vote, how often they are right, and how often they agree."""
    labelled = labels >= 0
    shares = {
        "two votes on an item agree": agreement(index, len(classes)),
        "items with votes all the same": _mean(unanimous(index, len(classes))),
    }
    correct = np.where(index >= 0, index == labels[:, None, None], False) & labelled[:, None, None]
    cast = (index >= 0) & labelled[:, None, None]
    if labelled.any():
        shares["correct votes"] = _share(correct, cast)
        shares["spread over items of the share correct"] = _spread(
            correct[labelled], cast[labelled]
        )
    shown = range(len(classes)) if len(classes) > 2 else [1]
    for j, name in enumerate(judges):
        judge_votes = index[:, j][index[:, j] >= 0]
        for k in shown:
            shares[f"votes of {name}: {classes[k]}"] = _mean(judge_votes == k)
        if labelled.any():
            shares[f"correct votes of {name}"] = _share(correct[:, j], cast[:, j])
    return shares


def of_right(
    right: Int[np.ndarray, "item judge sample"], judges: tuple[str, ...]
) -> dict[str, float]:
    """Return how often judges are right, and how this varies over items."""
    correct, cast = right == 1, right >= 0
    n_correct, n_votes = correct.sum((1, 2)), cast.sum((1, 2))
    shares = {
        "correct votes": _share(correct, cast),
        "items with all votes correct": _mean((n_correct == n_votes)[n_votes > 0]),
        "items with no vote correct": _mean((n_correct == 0)[n_votes > 0]),
        "spread over items of the share correct": _spread(correct, cast),
    }
    for j, name in enumerate(judges):
        shares[f"correct votes of {name}"] = _share(correct[:, j], cast[:, j])
    return shares


def of_correct(correct: ItemInts, given: ItemInts) -> dict[str, float]:
    """Return statistics of single votes and of majorities, from the numbers of correct votes."""
    return {
        "correct votes": float(correct.sum() / max(given.sum(), 1)),
        "spread over items of the share correct": float(np.std(correct / np.maximum(given, 1))),
        "items with all votes correct": _mean(correct == given),
        "items with no vote correct": _mean(correct == 0),
        "items whose majority is wrong": _mean(2 * correct < given),
    }


def agreement(index: Int[np.ndarray, "item judge sample"], n_classes: int) -> float:
    """Return the share of pairs of votes on one item that are the same, over items with a pair."""
    counts = _counts(index, n_classes)
    n = counts.sum(1)
    pairs = (n * (n - 1)).sum()
    return float((counts * (counts - 1)).sum() / pairs) if pairs else float("nan")


def unanimous(index: Int[np.ndarray, "item judge sample"], n_classes: int) -> np.ndarray:
    """Return whether all votes are the same, for the items with two or more votes."""
    counts = _counts(index, n_classes)
    several = counts.sum(1) > 1
    return (counts.max(1) == counts.sum(1))[several]


def _counts(index: Int[np.ndarray, "item judge sample"], n_classes: int) -> np.ndarray:
    return np.stack([(index == k).sum((1, 2)) for k in range(n_classes)], 1)


def _mean(of: np.ndarray) -> float:
    return float(of.mean()) if len(of) else float("nan")


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else float("nan")


def _spread(part: np.ndarray, whole: np.ndarray) -> float:
    n_votes = whole.sum((1, 2))
    return float(np.std((part.sum((1, 2)) / np.maximum(n_votes, 1))[n_votes > 0]))


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
