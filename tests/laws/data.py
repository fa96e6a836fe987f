"""The data for the laws, and their variants, all of the same shape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

ITEMS, ROOM = 32, 40
"""Number of items, and of rows; the remaining rows have arbitrary content and weight 0."""
JUDGES, SAMPLES, GROUPS = 4, 2, 3
SILENT = 3
"""The index of the item without votes."""
SOME = np.arange(8)
"""The items that get another weight, are repeated, or lose their votes."""
ACCURACY = (0.9, 0.75, 0.65, 0.55)
ORDER = (1, 3, 0, 2)
"""The order of permuted judges."""


@dataclass(frozen=True)
class Data:
    """All inputs of estimators; each uses the ones that it needs."""

    index: np.ndarray
    """Votes of shape (item, judge, sample); -1 where missing."""
    score: np.ndarray
    log_probs: np.ndarray
    """Class probabilities of another method, of shape (item, class)."""
    labels: np.ndarray
    weight: np.ndarray
    group: np.ndarray
    """The task or generator of each item."""
    hidden: np.ndarray
    """Items of the generator whose precision is estimated, for estimators with generators."""
    n_classes: int

    def take(self, rows: np.ndarray) -> "Data":
        """Return some items in the given order."""
        arrays = {k: v[rows] for k, v in vars(self).items() if k != "n_classes"}
        return replace(self, **arrays)

    def live(self) -> "Data":
        """Return the items with a weight above 0."""
        return self.take(np.flatnonzero(self.weight > 0))

    def of_judges(self, judges: Sequence[int]) -> "Data":
        """Return some judges' votes in the given order."""
        return replace(self, index=self.index[:, judges], score=self.score[:, judges])

    def without(self, missing: np.ndarray) -> "Data":
        """Return the votes with some more of them missing."""
        return replace(
            self,
            index=np.where(missing, -1, self.index).astype(np.int8),
            score=np.where(missing, np.nan, self.score),
        )

    def renamed(self, classes: Sequence[int]) -> "Data":
        """Return the data with class k renamed to `classes[k]`."""
        to = np.asarray(classes)
        return replace(
            self,
            index=np.where(self.index >= 0, to[self.index], -1).astype(np.int8),
            labels=np.where(self.labels >= 0, to[self.labels], -1),
            log_probs=self.log_probs[:, np.argsort(to)],
        )


def drawn(n_classes: int, rows: int = ROOM, judges: int = JUDGES, seed: int = 0) -> Data:
    """Return votes of judges with different abilities, a tenth of them missing, and labels."""
    rng = np.random.default_rng([seed, n_classes])
    truth = rng.integers(0, n_classes, rows)
    other = (truth[:, None, None] + rng.integers(1, n_classes, (rows, judges, SAMPLES))) % n_classes
    right = rng.random(other.shape) < np.resize(ACCURACY, judges)[:, None]
    index = np.where(right, truth[:, None, None], other).astype(np.int8)
    logits = 2.5 * (np.eye(n_classes)[truth] + 0.9 * rng.normal(size=(rows, n_classes)))
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    labels = np.where(rng.random(rows) < 0.85, truth, rng.integers(0, n_classes, rows))
    labels[6::7] = -1
    score = rng.uniform(0.1, 1, index.shape)
    group = np.arange(rows) % GROUPS
    hidden = group == GROUPS - 1
    every = Data(index, score, log_probs, labels, np.ones(rows), group, hidden, n_classes)
    missing_votes = rng.random(index.shape) < 0.1
    missing_votes[:1], missing_votes[SILENT : SILENT + 1] = False, True
    return every.without(missing_votes)


@dataclass(frozen=True)
class Variant:
    """The data to fit, and the data to answer."""

    fit: Data
    new: Data


def base(n_classes: int) -> Variant:
    """Return the unchanged data; the last rows have weight 0 and contain NaN."""
    data = drawn(n_classes)
    idle = np.arange(ROOM) >= ITEMS
    filled = replace(
        data,
        weight=np.where(idle, 0.0, 1.0),
        log_probs=np.where(idle[:, None], np.nan, data.log_probs),
    )
    return Variant(filled, drawn(n_classes, seed=1))


def lanes(n_classes: int) -> dict[str, Variant]:
    """Return the variants of the data by name, all of the same shape."""
    plain = base(n_classes)
    data, new = plain.fit, plain.new
    rng = np.random.default_rng(7)
    items = rng.permutation(ROOM)
    chance = np.random.default_rng(8).random((2, *data.index.shape))
    somewhere = np.isin(np.arange(ROOM), SOME)

    def weighed(weight: np.ndarray) -> Data:
        return replace(data, weight=np.where(np.arange(ROOM) < ITEMS, weight, 0.0))

    def both(change: Callable[[Data], Data]) -> Variant:
        return Variant(change(data), change(new))

    def missing(rate: float) -> Variant:
        return Variant(data.without(chance[0] < rate), new.without(chance[1] < rate))

    def voted(of: Data, index: np.ndarray) -> Data:
        index_everywhere = np.broadcast_to(index, of.index.shape)
        return replace(
            of, index=index_everywhere.astype(np.int8), score=np.full(of.score.shape, 0.5)
        )

    repeated = data.take(
        np.where(np.arange(ROOM) < ITEMS, np.arange(ROOM), np.arange(ROOM) - ITEMS)
    )
    all_but_first = np.arange(JUDGES)[None, :, None] > 0
    first = np.arange(JUDGES)[None, :, None] == 0
    truth = np.maximum(data.labels, 0)[:, None, None]
    next_group = (np.arange(GROUPS) + 1) % GROUPS
    variants = {
        "base": plain,
        "twice": Variant(weighed(np.where(somewhere, 2.0, 1.0)), new),
        "repeated": Variant(replace(repeated, weight=np.ones(ROOM)), new),
        "labelled": Variant(weighed(np.where(data.labels >= 0, 1.0, 0.0)), new),
        "items": Variant(data.take(items), new.take(items)),
        "judges": both(lambda x: x.of_judges(ORDER)),
        "mirrored": both(lambda x: x.renamed(np.arange(n_classes)[::-1])),
        "renamed": both(lambda x: x.renamed(np.roll(np.arange(n_classes), 1))),
        "groups": both(lambda x: replace(x, group=next_group[x.group])),
        "unseen": Variant(data.without(np.broadcast_to(first, data.index.shape)), new),
        "silenced": Variant(data.without(somewhere[:, None, None]), new),
        "left out": Variant(weighed(np.where(somewhere, 0.0, 1.0)), new),
        "one judge": both(lambda x: x.without(np.broadcast_to(all_but_first, x.index.shape))),
        "one item": Variant(weighed(np.arange(ROOM) == 1), new),
        "constant votes": both(lambda x: voted(x, np.zeros((1, 1, 1)))),
        "unanimous votes": Variant(voted(data, truth), voted(new, truth)),
        "constant labels": Variant(replace(data, labels=np.where(data.labels >= 0, 0, -1)), new),
        "no labels": Variant(replace(data, labels=np.full(ROOM, -1)), new),
    }
    return variants | {f"missing {rate:.0%}": missing(rate) for rate in (0.3, 0.6, 0.95)}
