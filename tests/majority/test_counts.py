import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.majority import correct_counts, counts_of
from judgebayes.votes import Votes


@in_float64
def test_counts_are_those_of_a_loop(votes: Votes, labels: np.ndarray) -> None:
    found = correct_counts(votes, labels)
    index = np.asarray(votes.index)
    for item, label in enumerate(labels):
        cast = index[item][index[item] >= 0]
        assert int(found.given[item]) == len(cast)
        known = label >= 0 and len(cast)
        assert int(found.correct[item]) == ((cast == label).sum() if known else -1)
    assert found.most == 4


def test_a_missing_vote_is_not_a_wrong_one() -> None:
    index = np.array([[[1, 1, -1]], [[0, -1, -1]], [[-1, -1, -1]]], np.int8)
    found = correct_counts(Votes(jnp.asarray(index), None, None, None, 2), np.array([1, 1, 1]))
    assert np.asarray(found.correct).tolist() == [2, 0, -1]
    assert np.asarray(found.given).tolist() == [2, 1, 0]


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
        ([], [], "an item at least"),
        ([-2], [3], "or -1 where the label is unknown"),
    ],
)
def test_impossible_counts_are_refused(correct: list, given: list, sentence: str) -> None:
    with pytest.raises(JudgeBayesError, match=sentence):
        counts_of(np.array(correct, int), np.array(given, int))


def test_labels_of_another_length_are_refused(votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match=r"right would be \(60,\)"):
        correct_counts(votes, np.zeros(5, int))
