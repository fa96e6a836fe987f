"""Predictive checks and comparisons on numbers made by hand."""

import numpy as np
import pytest

from judgebayes.inference.posterior import LeaveOneOut
from judgebayes.posterior import Check, Compared, in_words
from judgebayes.posterior import statistics as of


def checked(observed: float, spread: float = 1.0, before: float = 10.0) -> Check:
    grid = np.linspace(-3, 3, 601)
    return Check("share", observed, grid * spread, grid * before)


def test_p_is_the_share_above_with_ties_half() -> None:
    drawn = np.array([0.0, 1.0, 1.0, 2.0])
    found = Check("x", 1.0, drawn, drawn + 1)
    assert (found.p, found.prior_p) == (0.5, 0.875)
    assert not found.unlike
    assert found.distance == 0


def test_what_the_model_misses_is_named_and_the_rest_is_not() -> None:
    after, before = in_words([checked(2.9999), checked(0.1)], "look elsewhere.")
    assert after.severity == "bad"
    assert after.sentence.startswith("1 of 2 statistics of the data is not")
    assert "share 3.000, replicated" in after.sentence
    assert after.sentence.endswith("Perhaps look elsewhere.")
    assert (
        before.sentence
        == "The priors allow what was observed, in all that the fitted model reproduces."
    )
    far = in_words([checked(7.0)], "")[0].sentence
    assert "share 7.000, replicated" in far
    assert "none of 601 as high" in far


def test_a_prior_that_data_surprise_is_named_only_where_the_model_can_do_better() -> None:
    tight = checked(0.5, spread=1.0, before=0.1)
    assert not tight.unlike
    after, before = in_words([tight], "")
    assert after.severity == "good"
    assert "the priors hardly expect 1 of 1 statistics (share 0.500" in before.sentence


def left_out(shift: float, noise: float, n: int = 200, k: float = 0.1) -> LeaveOneOut:
    rng = np.random.default_rng(0)
    each = np.full(n, -1.0 - shift) + noise * rng.normal(size=n)
    return LeaveOneOut(tuple(f"i{i}" for i in range(n)), each, np.full(n, k), 3.0)


@pytest.mark.parametrize(
    ("shift", "noise", "sentence"),
    [
        (0.1, 0.1, "a is better than b at foretelling the label"),
        (0.1, 2.0, "It is not settled which is better"),
        (0.01, 0.001, "about equally good"),
    ],
)
def test_a_difference_is_put_in_words(shift: float, noise: float, sentence: str) -> None:
    found = Compared("label", ("a", "b"), (left_out(0, 0), left_out(shift, noise)), 200, False)
    gap, error = found.behind(1)
    values = found.each[0].elpd - found.each[1].elpd
    np.testing.assert_allclose((gap, error), (values.sum(), np.sqrt(200 * values.var(ddof=1))))
    (said,) = found.words()
    assert sentence in said.sentence
    assert f"{gap:.1f} in total log score (standard error {error:.1f})" in said.sentence


def test_scores_that_cannot_be_trusted_and_few_items_are_told() -> None:
    own = left_out(0, 0, 12, 0.9)
    said = [f.sentence for f in Compared("votes", ("a", "b"), (own, own), 12, False).words()]
    assert "alike" in said[0]
    assert said[1].startswith("With 12 items the standard errors are too small")
    assert "of a on 12 of 12 items cannot be trusted (Pareto k up to 0.90" in said[2]
    assert "i0, i1, i2, i3, i4 and 7 more" in said[2]


VOTES = np.array([[[1], [1], [-1]], [[1], [0], [0]], [[0], [0], [0]], [[1], [-1], [-1]]])
LABELS = np.array([1, 1, 0, -1])


def test_statistics_of_votes_are_those_counted_by_hand() -> None:
    found = of.of_votes(VOTES, LABELS, ("no", "yes"), ("A", "B", "C"))
    assert found["two votes on an item agree"] == (1 + 1 + 3) / 7
    assert found["items with votes all the same"] == 2 / 3
    assert found["correct votes"] == (2 + 1 + 3) / 8
    np.testing.assert_allclose(
        found["spread over items of the share correct"], np.std([1, 1 / 3, 1])
    )
    assert found["votes of A: yes"] == 3 / 4
    assert found["correct votes of B"] == 2 / 3


def test_statistics_of_labels_and_of_counts_are_those_counted_by_hand() -> None:
    found = of.of_labels(LABELS[:3], VOTES[:3], ("no", "yes"), ("A", "B", "C"))
    assert found["labels: yes"] == 2 / 3
    assert found["labels equal to the majority of the votes"] == 2 / 3
    assert found["... where all votes are the same"] == 1
    assert found["... where votes differ"] == 0
    assert found["labels equal to the vote of C"] == 1 / 2
    counted = of.of_correct(np.array([3, 0, 1]), np.array([3, 3, 2]))
    assert counted["correct votes"] == 1 / 2
    assert counted["items whose majority is wrong"] == 1 / 3
    right = of.of_right(np.array([[[1], [1]], [[0], [-1]]]), ("A", "B"))
    assert (right["items with all votes correct"], right["items with no vote correct"]) == (
        0.5,
        0.5,
    )
    assert (right["correct votes of A"], right["correct votes of B"]) == (0.5, 1)
