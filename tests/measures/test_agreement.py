"""Krippendorff's alpha."""

from itertools import permutations

import numpy as np
import pytest

from judgebayes.measures.scores import krippendorff_alpha

PUBLISHED = ["*****34121133*3", "1*213343*******", "**21344*21133*4"]
"""The labels of three annotators on 15 items (Krippendorff 2011); nominal alpha is .691."""


def counts(rows: list[list[int]]) -> np.ndarray:
    """Return labels by item and class; rows are items, -1 means no label."""
    table = np.array(rows)
    return np.stack([(table == k).sum(1) for k in range(table.max() + 1)], axis=1)


def by_pairs(rows: list[list[int]]) -> float:
    """Return alpha from all ordered pairs of labels, in one item and in all."""
    items = [[label for label in row if label >= 0] for row in rows]
    items = [item for item in items if len(item) > 1]
    everything = [label for item in items for label in item]
    observed = sum(
        (a != b) / (len(item) - 1) for item in items for a, b in permutations(item, 2)
    ) / len(everything)
    expected = np.mean([a != b for a, b in permutations(everything, 2)])
    return float(1 - observed / expected)


def test_the_published_example() -> None:
    rows = [[-1 if c == "*" else int(c) for c in line] for line in PUBLISHED]
    assert krippendorff_alpha(counts(np.array(rows).T.tolist())) == pytest.approx(0.691, abs=5e-4)


def test_it_equals_a_loop_over_pairs() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 3, (30, 4)).tolist()
    assert krippendorff_alpha(counts(rows)) == pytest.approx(by_pairs(rows), abs=1e-12)


def test_perfect_agreement_and_nothing_to_compare() -> None:
    assert krippendorff_alpha(np.array([[2, 0], [0, 3]])) == 1
    assert np.isnan(krippendorff_alpha(np.array([[1, 0], [0, 1]])))
    assert np.isnan(krippendorff_alpha(np.array([[2, 0], [3, 0]])))
