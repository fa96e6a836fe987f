"""The table of judges and their position bias against counts by hand."""

import numpy as np
import pytest
from diagnosed import ITEMS, as_votes, topics
from scipy import stats

from judgebayes.errors import JudgeBayesError
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table, position_bias


def test_the_table_matches_hand_counts(index: np.ndarray, labels: np.ndarray) -> None:
    table = judge_table(as_votes(index), labels, list("abcdef"))
    assert table["judge"].tolist() == list("abcdef")
    for j, row in table.iterrows():
        mine = [(v, y) for v, y in zip(index[:, j], labels, strict=True) if v >= 0]
        right = sum(v == y for v, y in mine)
        assert row["votes"] == row["labelled"] == len(mine)
        assert row["missing"] == pytest.approx(1 - len(mine) / ITEMS)
        assert row["accuracy"] == pytest.approx(right / len(mine))
        interval = stats.beta(1 + right, 1 + len(mine) - right).interval(0.9)
        assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(interval)
        assert row["weight"] == pytest.approx(np.log((1 + right) / (1 + len(mine) - right)))
        for name, label in (("tpr", 1), ("tnr", 0)):
            own = [v == y for v, y in mine if y == label]
            assert row[name] == pytest.approx(np.mean(own))
            interval = stats.beta(1 + sum(own), 1 + len(own) - sum(own)).interval(0.9)
            assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(interval)


def test_repeated_votes_are_not_new_evidence(index: np.ndarray, labels: np.ndarray) -> None:
    once = judge_table(as_votes(index), labels)
    repeated = judge_table(as_votes(np.stack([index] * 3, -1)), labels)
    columns = [c for c in once if c not in ("votes", "judge")]
    np.testing.assert_allclose(once[columns], repeated[columns])


def test_copies_of_an_item_in_one_group_count_as_little_more_than_one(
    index: np.ndarray, labels: np.ndarray
) -> None:
    copied, of_copy = np.repeat(index, 4, axis=0), np.repeat(labels, 4)
    groups = np.repeat(np.arange(ITEMS), 4)
    once = judge_table(as_votes(index), labels)
    grouped = judge_table(as_votes(copied), of_copy, groups=groups)
    ungrouped = judge_table(as_votes(copied), of_copy)
    np.testing.assert_allclose(grouped["accuracy"], once["accuracy"])
    items = once[
        "labelled"
    ]  # of 4 copies each: the standard error has items - 1 degrees of freedom
    quantiles = stats.t.ppf(0.95, 4 * items - 1) / stats.t.ppf(0.95, items - 1)
    n = (items - 1) * quantiles**2
    right = once["accuracy"] * n
    for end, q in (("low", 0.05), ("high", 0.95)):
        np.testing.assert_allclose(
            grouped[f"accuracy_{end}"], stats.beta.ppf(q, 1 + right, 1 + n - right)
        )
    narrow, wide = ((t["tnr_high"] - t["tnr_low"]) for t in (ungrouped, grouped))
    np.testing.assert_allclose(narrow / wide, 0.5, atol=0.03)


def test_position_bias_by_hand() -> None:
    # Judge 0 always names the response shown first; judge 1 always A; judge 2 saw one order only.
    order = np.tile(np.array([0, 1])[None, None, :], (10, 3, 1))
    cast = np.stack([1 - order[:, 0], np.ones((10, 2), int), np.ones((10, 2), int)], 1)
    cast[:, 2, 1] = -1
    bias, error = position_bias(as_votes(cast, order=order))
    assert bias[:2] == pytest.approx([1, 0])
    assert np.isnan(bias[2])
    assert error[:2] == pytest.approx([0, 0])
    with pytest.raises(JudgeBayesError, match="no presentation order"):
        position_bias(as_votes(cast))


def test_a_judge_without_labelled_votes_has_no_accuracy(
    index: np.ndarray, labels: np.ndarray
) -> None:
    silent = as_votes(np.where(np.arange(6) == 2, -1, index))
    row = judge_table(silent, labels).iloc[2]
    assert row[["accuracy", "accuracy_low", "accuracy_high"]].isna().all()
    assert row["weight"] == 0
    assert "below-chance" not in topics(diagnose(silent, labels))
