"""Sentences of `ensemble` about the labelled items."""

import numpy as np

from judgebayes.majority import Splits
from judgebayes.workflow.ensemble_estimates import chosen_words


def splits(rng: np.random.Generator) -> Splits:
    ones = rng.binomial(7, rng.beta(4, 1, 200))
    return Splits(np.stack([ones, 7 - ones], axis=1), np.full(200, -1), (0, 1))


def with_labels(every: Splits, items: np.ndarray) -> Splits:
    labels = np.full(len(every.labels), -1)
    labels[items] = 0
    return every.with_labels(labels)


def test_labels_of_chosen_items_are_noticed_and_random_ones_are_not() -> None:
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(200):
        every = splits(rng)
        margin = np.abs(every.given[:, 0] - every.given[:, 1]) / 7
        alarms += bool(chosen_words(with_labels(every, rng.permutation(200)[:20])))
        (closest,) = chosen_words(with_labels(every, np.argsort(margin)[:20]))
        assert "are closer than on all items" in closest
    assert alarms <= 4  # 3 standard errors: 0.3 % of 200
    (clearest,) = chosen_words(with_labels(every, np.argsort(-margin)[:60]))
    assert f"mean margin {np.sort(margin)[-60:].mean():.2f} and {margin.mean():.2f}" in clearest
    assert chosen_words(with_labels(every, np.arange(200))) == []
    assert chosen_words(with_labels(every, np.argsort(margin)[:4])) == []
