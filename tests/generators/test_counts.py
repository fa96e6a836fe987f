import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.generators import PrecisionCounts, count_votes, counts_from_matrix
from judgebayes.votes import Votes


def test_counting_is_what_loops_count(item_votes: Votes, drawn: tuple) -> None:
    vote, label, generator = drawn
    known = np.where(np.arange(len(label)) % 3 == 0, -1, label)
    found = count_votes(item_votes, known, generator, 5)
    for g in range(5):
        for j in range(6):
            own = [(v, y) for v, y, i in zip(vote[:, j], known, generator, strict=True) if i == g]
            assert found.accepted[g, j] == sum(v == 1 and y == -1 for v, y in own)
            assert found.judged[g, j] == sum(v >= 0 and y == -1 for v, y in own)
            assert found.true_accepted[g, j] == sum(v == 1 and y == 1 for v, y in own)
            assert found.valid_judged[g, j] == sum(v >= 0 and y == 1 for v, y in own)
            assert found.false_accepted[g, j] == sum(v == 1 and y == 0 for v, y in own)
            assert found.invalid_judged[g, j] == sum(v >= 0 and y == 0 for v, y in own)
        assert found.unlabelled[g] == sum(known[generator == g] == -1)


def test_hiding_labels_is_never_having_had_them(
    item_votes: Votes, drawn: tuple, tallied: PrecisionCounts
) -> None:
    _, label, generator = drawn
    shown = np.array([True, False, True, False, False])
    again = count_votes(item_votes, np.where(shown[generator], label, -1), generator, 5)
    hidden = tallied.reveal(shown)
    for name in vars(again):
        np.testing.assert_array_equal(getattr(hidden, name), getattr(again, name))
    np.testing.assert_allclose(hidden.matrix, tallied.matrix)


def test_a_matrix_given_directly_means_the_same(tallied: PrecisionCounts) -> None:
    shown = np.array([True, True, False, False, False])
    known = tallied.reveal(shown)
    tp, fp = np.asarray(known.true_accepted), np.asarray(known.false_accepted)
    confusion = [
        np.asarray(known.invalid_judged) - fp,
        fp,
        np.asarray(known.valid_judged) - tp,
        tp,
    ]
    judged = tallied.valid_judged + tallied.invalid_judged
    again = counts_from_matrix(
        tallied.matrix,
        judged,
        confusion=confusion,
        precision=np.asarray(known.labelled_precision),
        items=np.full(5, 300.0),
    )
    for name in vars(again):
        np.testing.assert_allclose(getattr(again, name), getattr(known, name), atol=1e-9)


def test_bad_shares_and_votes_are_named(votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match=r"generator 0 and judge 1 is 1\.2"):
        counts_from_matrix(np.array([[0.5, 1.2]]), np.ones((1, 2)))
    with pytest.raises(JudgeBayesError, match="precision needs two"):
        count_votes(votes, np.zeros(60, int), np.zeros(60, int), 1)
    with pytest.raises(JudgeBayesError, match="no confusion counts"):
        counts_from_matrix(np.full((1, 2), 0.5), np.ones((1, 2)), precision=np.array([0.9]))
