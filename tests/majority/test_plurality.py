"""What k random votes decide: against enumeration of all panels, and laws."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebayes.majority import Splits, counts_of, decision_probs, losses
from judgebayes.majority.counts import wrong_majority
from judgebayes.majority.thinning import thin


def enumerated(
    votes: list[int], n_classes: int, size: int, decision: str, candidates: list[int]
) -> np.ndarray:
    """Return P(decision = c) by all panels of k votes."""
    total, panels = np.zeros(n_classes), list(combinations(votes, size))
    for panel in panels:
        if decision == "median":
            ordered = sorted(panel)
            total[ordered[(size - 1) // 2]] += 0.5
            total[ordered[size // 2]] += 0.5
            continue
        counts = np.array([panel.count(c) for c in candidates])
        first = [c for c, n in zip(candidates, counts, strict=True) if n == counts.max()]
        if len(first) == 1 or decision == "random":
            total[first] += 1 / len(first)
    return total / len(panels)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_panel_of_k_votes_is_counted(data: st.DataObject) -> None:
    n_classes = data.draw(st.integers(2, 4))
    votes = data.draw(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=7))
    size = data.draw(st.integers(1, len(votes)))
    decision = data.draw(st.sampled_from(["random", "abstain", "median"]))
    counts = np.bincount(votes, minlength=n_classes)[None]
    candidates = list(range(n_classes))
    if decision != "median":
        candidates = sorted(
            data.draw(st.sets(st.integers(0, n_classes - 1), min_size=2, max_size=n_classes))
        )
    ours = decision_probs(counts, size, decision, tuple(candidates))[0]
    naive = enumerated(votes, n_classes, size, decision, candidates)
    np.testing.assert_allclose(ours, naive, atol=1e-12)


def test_two_classes_give_the_papers_error_in_every_form() -> None:
    rng = np.random.default_rng(0)
    right = rng.integers(0, 12, 40)
    votes = np.column_stack([right, 11 - right])
    for size in (1, 3, 7, 11):
        thinned = thin(counts_of(right, 11), size)
        np.testing.assert_allclose(1 - decision_probs(votes, size)[:, 0], thinned, atol=1e-12)


def test_the_papers_figure_is_not_the_error_of_the_plurality_of_three_classes() -> None:
    votes = np.array([[2, 2, 1]])
    splits = Splits(votes, np.array([0]), (0, 1, 2))
    assert losses(splits, 5)[0, 0] == 1.0  # 2 of 5 are less than half
    assert losses(splits, 5, "wrong")[0, 0] == pytest.approx(0.5)  # a tie, broken at random


def test_items_with_fewer_votes_are_undefined() -> None:
    votes = np.array([[2, 1], [3, 2]])
    for result in (decision_probs(votes, 4), wrong_majority(votes, np.array([[3], [5]]), 4)):
        assert np.isnan(result[0]).all()
        assert np.isfinite(result[1]).all()


def test_the_absolute_loss_is_the_distance_of_the_median() -> None:
    splits = Splits(np.array([[1, 0, 2]]), np.array([0]), (0, 1, 2))
    np.testing.assert_allclose(losses(splits, 3, "absolute", "median"), [[2, 1, 0]])
    np.testing.assert_allclose(losses(splits, 1, "absolute", "median"), [[4 / 3, 1, 2 / 3]])
