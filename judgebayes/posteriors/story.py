"""Statistics of votes, labels and counts for predictive checks, each with a name in words."""

import numpy as np
from jaxtyping import Int

from judgebayes.arrays import ItemInts
from judgebayes.votes.array import MISSING, Data


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
    shares = of_agreement(index, len(classes))
    right = np.where(index >= 0, index == labels[:, None, None], MISSING)[labels >= 0]
    of_labelled = of_right(right, judges) if len(right) else {}
    shown = range(len(classes)) if len(classes) > 2 else [1]
    for j, name in enumerate(judges):
        judge_votes = index[:, j][index[:, j] >= 0]
        for k in shown:
            shares[f"votes of {name}: {classes[k]}"] = _mean(judge_votes == k)
    return shares | of_labelled


def of_right(
    right: Int[np.ndarray, "item judge sample"], judges: tuple[str, ...]
) -> dict[str, float]:
    """Return how often judges are right, and how this varies over items."""
    shares = _of_counts((right == 1).sum((1, 2)), (right >= 0).sum((1, 2)))
    of_judge = {
        f"correct votes of {name}": _mean(right[:, j][right[:, j] >= 0])
        for j, name in enumerate(judges)
    }
    return shares | of_judge


def of_correct(correct: ItemInts, given: ItemInts) -> dict[str, float]:
    """Return statistics of single votes and of majorities, from the numbers of correct votes."""
    wrong = _mean((2 * correct < given)[given > 0])
    return _of_counts(correct, given) | {"items whose majority is wrong": wrong}


def _of_counts(correct: ItemInts, given: ItemInts) -> dict[str, float]:
    """Return how many of the votes on items are correct, and how this varies over items with votes."""
    correct, given = correct[given > 0], given[given > 0]
    return {
        "correct votes": float(correct.sum() / given.sum()) if len(given) else float("nan"),
        "spread over items of the share correct": float(np.std(correct / given)),
        "items with all votes correct": _mean(correct == given),
        "items with no vote correct": _mean(correct == 0),
    }


def of_agreement(index: Int[np.ndarray, "item judge sample"], n_classes: int) -> dict[str, float]:
    """Return the share of pairs of votes on one item that agree, and of items where all do."""
    counts = _counts(index, n_classes)
    counts = counts[counts.sum(1) > 1]
    n = counts.sum(1)
    same, pairs = ((each * (each - 1)).sum() for each in (counts, n))
    return {
        "two votes on an item agree": float(same / pairs) if pairs else float("nan"),
        "items with votes all the same": _mean(counts.max(1) == n),
    }


def _counts(index: Int[np.ndarray, "item judge sample"], n_classes: int) -> np.ndarray:
    return np.stack([(index == k).sum((1, 2)) for k in range(n_classes)], 1)


def _mean(of: np.ndarray) -> float:
    return float(of.mean()) if len(of) else float("nan")


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
