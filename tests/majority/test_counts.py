import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.majority import correct_counts, counts_of
from judgebayes.votes import Votes


@in_float64
def test_counts_match_a_loop(votes: Votes, labels: np.ndarray) -> None:
    counts = correct_counts(votes, labels)
    index = np.asarray(votes.index)
    for item, label in enumerate(labels):
        cast = index[item][index[item] >= 0]
        assert int(counts.given[item]) == len(cast)
        has_label = label >= 0 and len(cast)
        assert int(counts.correct[item]) == ((cast == label).sum() if has_label else -1)
    assert counts.most == 4


def test_a_missing_vote_is_not_a_wrong_vote() -> None:
    index = np.array([[[1, 1, -1]], [[0, -1, -1]], [[-1, -1, -1]]], np.int8)
    counts = correct_counts(Votes(jnp.asarray(index), None, None, None, 2), np.array([1, 1, 1]))
    assert np.asarray(counts.correct).tolist() == [2, 0, -1]
    assert np.asarray(counts.given).tolist() == [2, 1, 0]


def test_tallies_hold_every_labelled_item_once() -> None:
    counts = counts_of(np.array([3, 3, 0, -1, 3]), np.array([3, 3, 3, 3, 4]))
    cells, weight = counts.tallied(np.array([1.0, 2.0, 1.0, 1.0, 0.5]))
    table = sorted(
        zip(*(np.asarray(x).tolist() for x in (cells.given, cells.correct, weight)), strict=True)
    )
    assert table == [(3, 0, 1.0), (3, 3, 3.0), (4, 3, 0.5)]


@pytest.mark.parametrize(
    ("correct", "given", "sentence"),
    [
        ([4], [3], "Item 0 has 4 correct votes of 3"),
        ([1, 2], [3], "one number of each per item"),
        ([], [], "at least one item"),
        ([-2], [3], "or -1 if the label is unknown"),
    ],
)
def test_impossible_counts_are_refused(correct: list, given: list, sentence: str) -> None:
    with pytest.raises(JudgeBayesError, match=sentence):
        counts_of(np.array(correct, int), np.array(given, int))


def test_labels_of_another_length_are_refused(votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match=r"the shape must be \(60,\)"):
        correct_counts(votes, np.zeros(5, int))
