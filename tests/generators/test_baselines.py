import numpy as np
import pytest

from judgebayes.experiments.beyond_consensus.fig6 import best_judge
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.generators import PrecisionCounts, mean_prediction, rogan_gladen

LABELLED = np.array([True, True, True, False, False])


def test_each_rule_matches_its_formula(tallied: PrecisionCounts) -> None:
    partly_labelled = tallied.reveal(LABELLED)
    matrix = np.asarray(tallied.matrix)
    m, g = matrix.mean(1), np.asarray(tallied.labelled_precision)
    np.testing.assert_allclose(mean_prediction(partly_labelled), m)
    logit = lambda p: np.log(p / (1 - p))  # noqa: E731
    off = (logit(g) - logit(m))[LABELLED].mean()
    np.testing.assert_allclose(logit_shift(partly_labelled), 1 / (1 + np.exp(-logit(m) - off)))
    tpr = np.asarray(tallied.true_accepted)[:3].sum(0) / np.asarray(tallied.valid_judged)[:3].sum(0)
    fpr = np.asarray(tallied.false_accepted)[:3].sum(0) / np.asarray(tallied.invalid_judged)[
        :3
    ].sum(0)
    pooled = (m - fpr.mean()) / (tpr.mean() - fpr.mean())
    np.testing.assert_allclose(rogan_gladen(partly_labelled), np.clip(pooled, 0, 1))
    best = np.abs(matrix - g[:, None])[:3].max(0).argmin()
    np.testing.assert_allclose(best_judge(partly_labelled), matrix[:, best])


def test_a_perfect_judge_needs_no_correction() -> None:
    valid, invalid = np.array([80.0, 60.0]), np.array([20.0, 40.0])
    zero = np.zeros((2, 1))
    perfect = PrecisionCounts(
        zero,
        zero,
        valid[:, None],
        valid[:, None],
        zero,
        invalid[:, None],
        valid,
        invalid,
        zero[:, 0],
    )
    hidden = perfect.reveal(np.array([True, False]))
    for rule in (mean_prediction, best_judge, logit_shift, rogan_gladen):
        np.testing.assert_allclose(rule(hidden), [0.8, 0.6])


@pytest.mark.parametrize("rule", [mean_prediction, logit_shift])
def test_without_labels_the_estimate_is_the_raw_mean(
    rule: object, tallied: PrecisionCounts
) -> None:
    bare = tallied.reveal(np.zeros(5, bool))
    np.testing.assert_allclose(rule(bare), np.asarray(tallied.matrix).mean(1))
    assert np.isnan(best_judge(bare)).all()
