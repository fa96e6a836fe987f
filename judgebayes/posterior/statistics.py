"""Statistics of votes, labels and counts that predictive checks compare, each named in words."""

import numpy as np
from jaxtyping import Int

__all__ = ["agreement", "of_correct", "of_labels", "of_right", "of_votes", "unanimous"]


def of_labels(
    labels: Int[np.ndarray, " item"],
    index: Int[np.ndarray, "item judge sample"],
    classes: tuple[str, ...],
    judges: tuple[str, ...],
) -> dict[str, float]:
    """Return shares of the labels, and how often they are what the votes say."""
    found = {f"labels: {name}": _mean(labels == k) for k, name in enumerate(classes)}
    if len(classes) == 2:
        del found[f"labels: {classes[0]}"]
    counts = _counts(index, len(classes))
    most = counts.max(1)
    clear = (counts == most[:, None]).sum(1) == 1
    same = clear & (most == counts.sum(1))
    hit = labels == counts.argmax(1)
    found["labels equal to the majority of the votes"] = _mean(hit[clear])
    if index.shape[1] * index.shape[2] > 1:
        found["... where all votes are the same"] = _mean(hit[same])
        found["... where votes differ"] = _mean(hit[clear & ~same])
    if len(judges) > 1:
        given = index >= 0
        for j, name in enumerate(judges):
            agree = (index[:, j] == labels[:, None])[given[:, j]]
            found[f"labels equal to the vote of {name}"] = _mean(agree)
    return found


def of_votes(
    index: Int[np.ndarray, "item judge sample"],
    labels: Int[np.ndarray, " item"],
    classes: tuple[str, ...],
    judges: tuple[str, ...],
) -> dict[str, float]:
    """Return how judges vote, how often they are right, and how often they agree."""
    known = labels >= 0
    found = {
        "two votes on an item agree": agreement(index, len(classes)),
        "items with votes all the same": _mean(unanimous(index, len(classes))),
    }
    right = np.where(index >= 0, index == labels[:, None, None], False) & known[:, None, None]
    cast = (index >= 0) & known[:, None, None]
    if known.any():
        found["correct votes"] = _share(right, cast)
        found["spread over items of the share correct"] = _spread(right[known], cast[known])
    shown = range(len(classes)) if len(classes) > 2 else [1]
    for j, name in enumerate(judges):
        given = index[:, j][index[:, j] >= 0]
        for k in shown:
            found[f"votes of {name}: {classes[k]}"] = _mean(given == k)
        if known.any():
            found[f"correct votes of {name}"] = _share(right[:, j], cast[:, j])
    return found


def of_right(
    right: Int[np.ndarray, "item judge sample"], judges: tuple[str, ...]
) -> dict[str, float]:
    """Return how often judges are right, and how that differs from item to item."""
    hit, cast = right == 1, right >= 0
    by_item, given = hit.sum((1, 2)), cast.sum((1, 2))
    found = {
        "correct votes": _share(hit, cast),
        "items with all votes correct": _mean((by_item == given)[given > 0]),
        "items with no vote correct": _mean((by_item == 0)[given > 0]),
        "spread over items of the share correct": _spread(hit, cast),
    }
    for j, name in enumerate(judges):
        found[f"correct votes of {name}"] = _share(hit[:, j], cast[:, j])
    return found


def of_correct(
    correct: Int[np.ndarray, " item"], given: Int[np.ndarray, " item"]
) -> dict[str, float]:
    """Return what numbers of correct votes say of single votes and of majorities."""
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
    """Return whether all votes are the same, of the items with two or more."""
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
    given = whole.sum((1, 2))
    return float(np.std((part.sum((1, 2)) / np.maximum(given, 1))[given > 0]))
