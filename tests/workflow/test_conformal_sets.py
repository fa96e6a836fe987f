"""Conformal sets by stratum: the table, thresholds of their own, and sets that are never empty."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.workflow.conformal_sets import agreement_strata, leave_one_out_sets, strata_rows


def answers(n: int, seed: int = 0, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (n, classes)).round(1)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.array([rng.choice(classes, p=row) for row in p])
    return np.log(p), labels


def test_leave_one_out_is_split_conformal_without_the_item() -> None:
    log_probs, labels = answers(25)
    groups = np.arange(25) % 2
    sets = leave_one_out_sets(log_probs, labels, groups, 0.8)
    for i in range(25):
        others = np.arange(25) != i
        fit = jb.SplitConformal(0.8, n_groups=2).fit(
            log_probs[others], labels[others], groups=groups[others]
        )
        np.testing.assert_array_equal(
            sets[i], np.asarray(fit(log_probs[i : i + 1], groups=groups[i : i + 1]))[0]
        )


def test_too_few_items_give_sets_of_all_classes() -> None:
    log_probs, labels = answers(9)
    assert leave_one_out_sets(log_probs, labels, np.zeros(9, int), 0.9).all()


def test_agreement_strata_are_thirds_in_order_and_keep_ties_together() -> None:
    counts = np.array([[3, 2], [4, 1], [5, 0]] * 10 + [[2, 3]] * 3)
    strata = agreement_strata(counts)
    share = counts.max(1) / 5
    assert [len(np.unique(share[strata.of_item == k])) for k in range(3)] == [1, 1, 1]
    assert np.all(np.diff(strata.of_item[np.argsort(share)]) >= 0)
    assert strata.names == ["at most 60 %", "above 60 % to 80 %", "above 80 %"]
    assert agreement_strata(np.array([[1, 0], [0, 1]])).names == ["all"]


def panel(n: int = 240) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return votes of five judges on easy and hard items, named by a column, and labels."""
    rng = np.random.default_rng(5)
    truth, hard = rng.integers(0, 2, n), rng.random(n) < 0.5
    right = rng.random((n, 5)) < np.where(hard, 0.6, 0.95)[:, None]
    wide = pd.DataFrame(np.where(right, truth[:, None], 1 - truth[:, None]), columns=list("abcde"))
    votes = wide.rename_axis("item").reset_index().melt("item", var_name="judge", value_name="vote")
    kind = np.where(hard, "hard", "easy")
    return votes, pd.DataFrame({"item": np.arange(n), "label": truth, "kind": kind})


def test_strata_of_a_column_have_thresholds_of_their_own() -> None:
    votes, labels = panel()
    options = {"method": "one-coin", "calibrator": "none", "splits": 4, "conformal": 0.9}
    one = jb.calibrate(votes, labels=labels, **options)  # type: ignore[arg-type]
    own = jb.calibrate(
        votes,
        labels=labels,
        conformal_by="kind",
        no_empty_sets=True,
        **options,  # type: ignore[arg-type]
    )
    plain, by_kind = one.tables["conformal"], own.tables["conformal"].set_index("stratum")
    assert set(plain["by"]) == {"all", "agreement"}
    assert plain.loc[0, "labels"] == 240
    within = plain["coverage"].between(plain["coverage_low"], plain["coverage_high"])
    assert within.all()
    assert (plain["coverage_filled"] >= plain["coverage"]).all()
    assert (plain["size_filled"] >= plain["size"]).all()
    assert by_kind.loc["hard", "coverage"] > 0.84
    assert by_kind.loc["hard", "size"] > by_kind.loc["easy", "size"]
    assert (by_kind["empty"] == 0).all()
    assert own.sets is not None
    assert own.sets.inside.any(1).all()
    assert any("a threshold per stratum" in line for line in own.sentences)
    head, rows = strata_rows(own.tables["conformal"])
    assert all(len(row) == len(head) for row in rows)


def test_options_of_sets_need_sets() -> None:
    votes, labels = panel(40)
    with pytest.raises(jb.JudgeBayesError, match="add --conformal"):
        jb.calibrate(votes, labels=labels, no_empty_sets=True)
    with pytest.raises(jb.JudgeBayesError, match="no column 'sort'"):
        jb.calibrate(votes, labels=labels, method="one-coin", conformal=0.9, conformal_by="sort")
