import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes import MajorityVote
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated.confidence_votes import (
    ConfidenceVote,
    RoundedMedian,
    SoftVote,
)
from judgebayes.inference.fit import JaxMethod
from judgebayes.measures.scores import absolute_loss, bayes_action
from judgebayes.votes import Votes, from_counts


def decide(rule: JaxMethod, votes: Votes) -> list[int]:
    log_probs = rule.fit(votes, np.full(votes.n_items, -1))(votes)
    assert np.exp(np.asarray(log_probs)).sum(1) == pytest.approx(1)
    return np.asarray(bayes_action(log_probs, absolute_loss(votes.n_classes))).tolist()


def of(rows: list[list[int]], scores: list[list[float]] | None = None, k: int = 3) -> Votes:
    given = None if scores is None else jnp.asarray(scores)[:, None, :]
    return Votes(jnp.asarray(rows, jnp.int8)[:, None, :], given, None, None, k)


@pytest.mark.parametrize(
    ("counts", "middle", "outer"),
    [
        ((1, 0, 3), 2, 2),
        ((0, 2, 2), 1, 2),
        ((2, 2, 0), 1, 0),
        ((2, 0, 2), 1, 1),
        ((1, 1, 1), 1, 1),
        ((0, 0, 0), 1, 1),
        ((3, 1, 0), 0, 0),
    ],
)
def test_majority_and_its_ties(counts: tuple[int, int, int], middle: int, outer: int) -> None:
    votes = from_counts(np.array([counts]))
    assert decide(MajorityVote("middle"), votes) == [middle]
    assert decide(MajorityVote("outer"), votes) == [outer]


def test_the_first_voted_of_the_tied_classes_is_chosen() -> None:
    votes = of([[2, 1, 1, 2], [1, 2, 2, 1], [0, 2, 2, 1], [-1, 0, 2, -1], [-1, -1, -1, -1]])
    assert decide(MajorityVote("first"), votes) == [2, 1, 2, 0, 0]


def test_a_binary_tie_is_left_open() -> None:
    votes = from_counts(np.array([[2, 2], [1, 3]]))
    probs = np.exp(MajorityVote().fit(votes, np.array([-1, -1]))(votes))
    np.testing.assert_allclose(probs, [[0.5, 0.5], [0, 1]])


@pytest.mark.parametrize(
    ("row", "median"), [([1, 2], 2), ([0, 1], 0), ([0, 2], 1), ([2, 2], 2), ([1, -1], 1)]
)
def test_rounded_median_of_two(row: list[int], median: int) -> None:
    assert decide(RoundedMedian(), of([row])) == [median]


def test_soft_votes_reduce_the_confidences_of_each_class() -> None:
    votes = of([[0, 0, 2, 1]], [[0.9, 0.3, 0.5, 0.4]])
    # min: .3 .4 .5; mean: .6 .4 .5; product: .27 .4 .5
    assert decide(SoftVote("min"), votes) == [2]
    assert decide(SoftVote("mean"), votes) == [0]
    assert decide(SoftVote("product"), votes) == [2]


def test_confidence_votes_add_up() -> None:
    votes = of([[0, 0, 2, 1], [0, 0, 2, -1]], [[0.9, 0.3, 0.5, 0.4], [0.2, 0.2, 0.9, np.nan]])
    assert decide(ConfidenceVote(), votes) == [0, 2]


def test_a_class_without_votes_has_no_support_however_low_the_confidences() -> None:
    votes = of([[0, 0, 0, 0]], [[0.0, 0.0, 0.0, 0.0]])
    for reduce in ("min", "mean", "product"):
        assert decide(SoftVote(reduce), votes) == [0]


@pytest.mark.parametrize("rule", [SoftVote(), ConfidenceVote()])
def test_rules_of_confidence_need_scores(rule: JaxMethod) -> None:
    with pytest.raises(JudgeBayesError, match=r"encode\(score=...\)"):
        decide(rule, of([[0, 1]]))
