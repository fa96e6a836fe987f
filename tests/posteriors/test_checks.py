"""Predictive checks and comparisons on constructed numbers."""

import numpy as np
import pandas as pd
import pytest

from judgebayes.posteriors import story as of
from judgebayes.posteriors.checks import in_words, replications
from judgebayes.posteriors.compare import ComparedScores


def make_checks(*observed: float, spread: float = 1.0, before: float = 10.0) -> pd.DataFrame:
    grid = np.linspace(-3, 3, 601)[:, None] * np.ones(len(observed))
    names = ["share"] * len(observed)
    return replications(names, np.array(observed), grid * spread, grid * before)


def test_p_is_the_share_above_with_ties_half() -> None:
    drawn = np.array([0.0, 1.0, 1.0, 2.0])[:, None]
    result = replications(["x"], np.array([1.0]), drawn, drawn + 1)
    assert result.loc[0, ["p", "prior_p", "distance"]].tolist() == [0.5, 0.875, 0.0]


def test_misfits_are_reported_and_other_statistics_are_not() -> None:
    after, before = in_words(make_checks(2.9999, 0.1), "look elsewhere.")
    assert after.severity == "bad"
    assert after.sentence.startswith(
        "1 of 2 statistics of the data differs from what the fitted model predicts"
    )
    assert "share 3.000, replicated" in after.sentence
    assert after.sentence.endswith("Perhaps look elsewhere.")
    assert (
        before.sentence
        == "The observed values are plausible under the priors (all statistics that the "
        "fitted model reproduces)."
    )
    far = in_words(make_checks(7.0), "")[0].sentence
    assert "share 7.000, replicated" in far
    assert "none of 601 is as high" in far


def test_an_improbable_prior_is_reported_only_where_the_posterior_fits() -> None:
    after, before = in_words(make_checks(0.5, spread=1.0, before=0.1), "")
    assert after.severity == "good"
    assert "The priors make 1 of 1 statistics improbable (share 0.500" in before.sentence


def loo_scores(shift: float, noise: float, n: int = 200, k: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    each = np.full(n, -1.0 - shift) + noise * rng.normal(size=n)
    return pd.DataFrame({"elpd": each, "k": k}, [f"i{i}" for i in range(n)])


@pytest.mark.parametrize(
    ("shift", "noise", "sentence"),
    [
        (0.1, 0.1, "a is better than b at predicting the label"),
        (0.1, 2.0, "It is unclear which is better"),
        (0.01, 0.001, "about equally well"),
    ],
)
def test_a_difference_is_described(shift: float, noise: float, sentence: str) -> None:
    compared = ComparedScores(
        "label", {"a": loo_scores(0, 0), "b": loo_scores(shift, noise)}, 200, False
    )
    gap, error = compared.behind("b")
    values = compared.scores["a"].elpd - compared.scores["b"].elpd
    np.testing.assert_allclose((gap, error), (values.sum(), np.sqrt(200 * values.var(ddof=1))))
    (finding,) = compared.words()
    assert sentence in finding.sentence
    assert f"{gap:.1f} in total log score (standard error {error:.1f})" in finding.sentence


def test_unreliable_scores_and_few_items_are_reported() -> None:
    loo = loo_scores(0, 0, 12, 0.9)
    sentences = [
        f.sentence for f in ComparedScores("votes", {"a": loo, "b": loo}, 12, False).words()
    ]
    assert "equally well" in sentences[0]
    assert sentences[1].startswith("With only 12 items, the standard errors are too small")
    assert "of a on 12 of 12 items is unreliable (Pareto k up to 0.90" in sentences[2]
    assert "i0, i1, i2, i3, i4 and 7 more" in sentences[2]


VOTES = np.array([[[1], [1], [-1]], [[1], [0], [0]], [[0], [0], [0]], [[1], [-1], [-1]]])
LABELS = np.array([1, 1, 0, -1])


def test_statistics_of_votes_match_hand_counts() -> None:
    shares = of.of_votes(VOTES, LABELS, ("no", "yes"), ("A", "B", "C"))
    assert shares["two votes on an item agree"] == (1 + 1 + 3) / 7
    assert shares["items with votes all the same"] == 2 / 3
    assert shares["correct votes"] == (2 + 1 + 3) / 8
    np.testing.assert_allclose(
        shares["spread over items of the share correct"], np.std([1, 1 / 3, 1])
    )
    assert shares["votes of A: yes"] == 3 / 4
    assert shares["correct votes of B"] == 2 / 3


def test_statistics_of_labels_and_counts_match_hand_counts() -> None:
    shares = of.of_labels(LABELS[:3], VOTES[:3], ("no", "yes"), ("A", "B", "C"))
    assert shares["labels: yes"] == 2 / 3
    assert shares["labels equal to the majority of the votes"] == 2 / 3
    assert shares["... where all votes are the same"] == 1
    assert shares["... where votes differ"] == 0
    assert shares["labels equal to the vote of C"] == 1 / 2
    counted = of.of_correct(np.array([3, 0, 1]), np.array([3, 3, 2]))
    assert counted["correct votes"] == 1 / 2
    assert counted["items whose majority is wrong"] == 1 / 3
    right = of.of_right(np.array([[[1], [1]], [[0], [-1]]]), ("A", "B"))
    assert (right["items with all votes correct"], right["items with no vote correct"]) == (
        0.5,
        0.5,
    )
    assert (right["correct votes of A"], right["correct votes of B"]) == (0.5, 1)
