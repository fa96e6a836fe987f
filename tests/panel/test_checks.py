"""The test of equal shares against SciPy's, and planted faults that must be reported."""

import numpy as np
import pytest
from diagnosed import ITEMS, about, as_votes, topics, with_judge
from scipy import stats

from judgebayes.panel import checks
from judgebayes.panel.checks import Thresholds
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table


def test_the_homogeneity_test_matches_scipys(index: np.ndarray, labels: np.ndarray) -> None:
    right, voted = (index == labels[:, None]) & (index >= 0), index >= 0
    hits = np.stack([right[labels == k].sum(0) for k in (0, 1)]).astype(float)
    trials = np.stack([voted[labels == k].sum(0) for k in (0, 1)]).astype(float)
    p_values = checks._homogeneity(hits, trials, 20)
    for j in range(6):
        square = np.stack([hits[:, j], trials[:, j] - hits[:, j]])
        expected = stats.chi2_contingency(square, correction=False).pvalue
        assert p_values[j] == pytest.approx(expected)


def test_constant_and_nearly_constant_labels(index: np.ndarray, labels: np.ndarray) -> None:
    constant = about(diagnose(as_votes(index), np.ones(ITEMS, int)), "labels")
    assert constant.severity == "bad"
    assert "All 240 labels are class 1. A calibrator learns that constant" in constant.sentence
    nearly = np.ones(ITEMS, int)
    nearly[:3] = 0
    assert (
        "98.8 % of the labels are class 1"
        in about(diagnose(as_votes(index), nearly), "labels").sentence
    )
    assert "labels" not in topics(
        diagnose(as_votes(index), nearly, thresholds=Thresholds(constant=0.99))
    )
    assert "labels" not in topics(diagnose(as_votes(index), labels))
    unknown = diagnose(as_votes(index), np.full(ITEMS, -1))
    assert "No item has a label" in about(unknown, "labels").sentence


@pytest.mark.parametrize("wrong", [False, True])
def test_a_leak_is_reported_and_excluded_from_other_checks(
    index: np.ndarray, labels: np.ndarray, wrong: bool
) -> None:
    judge = 1 - labels if wrong else labels
    findings = diagnose(as_votes(with_judge(index, judge)), labels, [*"abcdef", "broken"])
    leak = about(findings, "leak")
    assert leak.severity == "bad"
    assert leak.judges == ("broken",)
    assert ("wrong on all" if wrong else "right on all") in leak.sentence
    assert topics(findings) == {"leak"}
    short = np.where(np.arange(ITEMS) < 49, judge, -1)
    few = diagnose(as_votes(with_judge(index, short)), labels)
    assert "leak" not in topics(few)


def test_unreadable_judges_are_reviewed_or_left_out(index: np.ndarray, labels: np.ndarray) -> None:
    cut = index.copy()
    cut[::5, 1] = -1
    cut[: ITEMS // 2, 4] = -1
    findings = [
        f for f in diagnose(as_votes(cut), labels, list("abcdef")) if f.topic == "parseability"
    ]
    assert [(f.severity, f.judges) for f in findings] == [("bad", ("e",)), ("note", ("b",))]


def test_judges_below_chance_are_reported(index: np.ndarray, labels: np.ndarray) -> None:
    flipped = index.copy()
    flipped[:, 2] = np.where(index[:, 2] >= 0, 1 - index[:, 2], -1)
    findings = diagnose(as_votes(flipped), labels, list("abcdef"))
    assert about(findings, "below-chance").judges == ("c",)


def test_a_judge_with_two_recalls_breaks_the_one_coin_model(
    index: np.ndarray, labels: np.ndarray
) -> None:
    rng = np.random.default_rng(3)
    right = rng.random(ITEMS) < np.where(labels == 1, 0.95, 0.6)
    two_coin = np.where(right, labels, 1 - labels)
    findings = diagnose(as_votes(with_judge(index, two_coin)), labels, [*"abcdef", "two"])
    assert about(findings, "one-coin").judges == ("two",)


def test_a_weight_of_the_wrong_sign_is_reported() -> None:
    # Nine tenths of the labels are 1; the judge mostly votes 1, and more often on items labelled 0.
    rng = np.random.default_rng(4)
    labels = (np.arange(400) % 10 > 0).astype(int)
    cast = (rng.random(400) < np.where(labels == 1, 0.75, 1.0)).astype(int)
    other = np.where(rng.random(400) < 0.8, labels, 1 - labels)
    findings = diagnose(as_votes(np.stack([cast, other], 1)), labels, ["sly", "fair"])
    wrong = next(f for f in findings if "wrong sign" in f.sentence)
    assert wrong.judges == ("sly",)
    assert wrong.severity == "bad"


def test_votes_missing_by_label_are_reported(index: np.ndarray, labels: np.ndarray) -> None:
    cut = index.copy()
    cut[(labels == 1) & (np.arange(ITEMS) % 3 == 0), 3] = -1
    findings = diagnose(as_votes(cut), labels, list("abcdef"))
    assert about(findings, "missingness").judges == ("d",)


def test_copies_are_reported_and_a_panel_of_copies_is_redundant(
    index: np.ndarray, labels: np.ndarray
) -> None:
    twin = diagnose(as_votes(with_judge(index, index[:, 1])), labels, [*"abcdef", "b again"])
    assert about(twin, "redundancy").judges == ("b", "b again")
    rng = np.random.default_rng(5)
    copies = np.where(rng.random((ITEMS, 12)) < 0.03, 1 - labels[:, None], index[:, [1] * 12])
    findings = diagnose(as_votes(copies), labels)
    worth = [f for f in findings if f.topic == "redundancy" and not f.judges]
    assert "12 judges are worth" in worth[0].sentence
    assert "saturation" in topics(findings)


def test_position_bias_is_reported(index: np.ndarray, labels: np.ndarray) -> None:
    order = np.broadcast_to(np.array([0, 1]), (ITEMS, 6, 2))
    both = np.stack([index, index], -1)
    both[:, 0] = 1 - order[:, 0]
    findings = diagnose(as_votes(both, order=order), labels, list("abcdef"))
    assert about(findings, "position-bias").judges == ("a",)
    table = judge_table(as_votes(both, order=order), labels)
    assert table["position_bias"][0] == 1
    assert (table["position_bias"][1:].abs() < 1e-12).all()
