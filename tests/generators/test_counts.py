import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.beyond_consensus.common import counts_from_matrix
from judgebayes.generators import PrecisionCounts, count_votes
from judgebayes.votes import Votes


def test_counts_match_loops(item_votes: Votes, drawn: tuple) -> None:
    vote, label, generator = drawn
    visible_labels = np.where(np.arange(len(label)) % 3 == 0, -1, label)
    counts = count_votes(item_votes, visible_labels, generator, 5)
    for g in range(5):
        for j in range(6):
            own = [
                (v, y)
                for v, y, i in zip(vote[:, j], visible_labels, generator, strict=True)
                if i == g
            ]
            assert counts.accepted[g, j] == sum(v == 1 and y == -1 for v, y in own)
            assert counts.judged[g, j] == sum(v >= 0 and y == -1 for v, y in own)
            assert counts.true_accepted[g, j] == sum(v == 1 and y == 1 for v, y in own)
            assert counts.valid_judged[g, j] == sum(v >= 0 and y == 1 for v, y in own)
            assert counts.false_accepted[g, j] == sum(v == 1 and y == 0 for v, y in own)
            assert counts.invalid_judged[g, j] == sum(v >= 0 and y == 0 for v, y in own)
        assert counts.unlabelled[g] == sum(visible_labels[generator == g] == -1)


def test_hidden_labels_give_the_counts_without_them(
    item_votes: Votes, drawn: tuple, tallied: PrecisionCounts
) -> None:
    _, label, generator = drawn
    shown = np.array([True, False, True, False, False])
    expected = count_votes(item_votes, np.where(shown[generator], label, -1), generator, 5)
    hidden = tallied.reveal(shown)
    for name in vars(expected):
        np.testing.assert_array_equal(getattr(hidden, name), getattr(expected, name))
    np.testing.assert_allclose(hidden.matrix, tallied.matrix)


def test_counts_from_a_matrix_match_counted_votes(tallied: PrecisionCounts) -> None:
    shown = np.array([True, True, False, False, False])
    revealed = tallied.reveal(shown)
    tp, fp = np.asarray(revealed.true_accepted), np.asarray(revealed.false_accepted)
    confusion = [
        np.asarray(revealed.invalid_judged) - fp,
        fp,
        np.asarray(revealed.valid_judged) - tp,
        tp,
    ]
    judged = tallied.valid_judged + tallied.invalid_judged
    from_matrix = counts_from_matrix(
        np.asarray(tallied.matrix),
        np.asarray(judged),
        confusion,
        np.asarray(revealed.labelled_precision),
    )
    # Items that no judge voted on are not in a matrix: votes and shares are, not numbers of items.
    votes = [name for name, value in vars(revealed).items() if value.ndim == 2]
    for name in (*votes, "labelled", "labelled_precision"):
        np.testing.assert_allclose(getattr(from_matrix, name), getattr(revealed, name), atol=1e-9)
    assert (from_matrix.unlabelled[2:] == judged[2:].max(1)).all()


def test_other_than_binary_votes_are_reported(votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match="precision needs two"):
        count_votes(votes, np.zeros(60, int), np.zeros(60, int), 1)
