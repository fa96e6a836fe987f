"""Conformal sets by stratum: the table, thresholds of their own, and sets that are never empty."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.workflow.conformal_sets import (
    AGREEMENT,
    Strata,
    agreement_strata,
    leave_one_out_sets,
    set_words,
    sets_by_stratum,
    strata_block,
    strata_by,
    strata_table,
)


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


def test_the_table_is_what_a_loop_gives() -> None:
    rng = np.random.default_rng(3)
    log_probs, labels = answers(40, classes=3)
    own, shown = Strata(np.arange(40) % 2, ["even", "odd"]), Strata(np.arange(40) // 20, ["a", "b"])
    items = np.array([np.append(rng.permutation(40)[:28], [-1, -1]) for _ in range(5)])
    noisy = log_probs[items] + rng.normal(0, 0.3, (5, 30, 3))
    noisy -= np.log(np.exp(noisy).sum(-1, keepdims=True))
    padded = np.where(items < 0, -1, labels[items])
    evaluation = Evaluation(items, padded, noisy, padded * 0, np.zeros(5, int))
    for no_empty in (False, True):
        covered: dict[int, list[float]] = {}
        sizes: dict[int, list[float]] = {}
        for split in range(5):
            for place in range(28):
                i = items[split, place]
                others = [p for p in range(28) if p != place and items[split, p] % 2 == i % 2]
                own_scores = 1 - np.exp(noisy[split, others, labels[items[split, others]]])
                rank = int(np.ceil((len(others) + 1) * 0.7))
                inside = 1 - np.exp(noisy[split, place]) <= np.sort(own_scores)[rank - 1]
                if no_empty and not inside.any():
                    inside[noisy[split, place].argmax()] = True
                covered.setdefault(i, []).append(inside[labels[i]])
                sizes.setdefault(i, []).append(inside.sum())
        table = strata_table(
            evaluation, 0.7, own, {"half": shown, "own": own}, no_empty=no_empty
        ).set_index("stratum")
        for name, here in (("all", range(40)), ("b", range(20, 40)), ("odd", range(1, 40, 2))):
            known = [i for i in here if i in covered]
            for column, values in (("coverage", covered), ("size", sizes)):
                expected = np.mean([np.mean(values[i]) for i in known])
                np.testing.assert_allclose(table.loc[name, column], expected)
            assert table.loc[name, "labels"] == len(known)


def test_every_stratum_has_the_threshold_of_its_own_labels() -> None:
    log_probs, labels = answers(200)
    strata = Strata(np.arange(200) % 3 // 2, ["two thirds", "one third"])
    held = np.arange(0, 200, 3)[:30]
    held = np.concatenate([held, np.arange(2, 20, 3)])  # 30 of the first stratum, 6 of the second
    sets, pooled = sets_by_stratum(log_probs, labels, held, 0.9, strata, no_empty=False)
    assert pooled == [1]
    first, whole = held[:30], held
    for stratum, of in ((0, first), (1, whole)):
        here = strata.of_item == stratum
        fit = jb.SplitConformal(0.9).fit(log_probs[of], labels[of])
        np.testing.assert_array_equal(sets[here], np.asarray(fit(log_probs[here])))
    few = {"fitted_on": 10, "few": ["one third"]}
    words = set_words(sets, labels, held, 0.9, strata, pooled=pooled, **few)
    assert "one threshold together, that of all 36" in words[1]


def test_strata_with_too_few_labels_are_fewer_or_together() -> None:
    counts = np.array([[3, 2], [4, 1], [5, 0]] * 60)
    labelled = np.arange(180)
    strata = {AGREEMENT: agreement_strata(counts)}
    assert len(strata_by(AGREEMENT, strata, counts, labelled, 0.9)[0].names) == 3
    shares = np.random.default_rng(0).permutation(180)
    various = np.stack([1000 + shares, 1000 - shares], axis=1)
    own = {AGREEMENT: agreement_strata(various)}
    for labels, parts in ((180, 3), (70, 2), (20, 1)):
        some, _ = strata_by(AGREEMENT, own, various, labelled[:labels], 0.9)
        assert len(some.names) == parts
    code = np.repeat([0, 1, 2, 3], [90, 60, 20, 10])
    kinds = {"kind": Strata(code, ["a", "b", "c", "d"])}
    some, few = strata_by("kind", kinds, counts, labelled, 0.9)
    assert (some.names, few) == (["a", "b", "the others"], ["c", "d"])
    assert np.bincount(some.of_item).tolist() == [90, 60, 30]
    assert strata_by("kind", kinds, counts, labelled[:5], 0.9)[0].names == ["the others"]


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
    one = jb.calibrate(votes, labels=labels, empty_sets=True, **options)  # type: ignore[arg-type]
    own = jb.calibrate(
        votes,
        labels=labels,
        conformal_by="kind",
        **options,  # type: ignore[arg-type]
    )
    plain, by_kind = one.tables["conformal"], own.tables["conformal"].set_index("stratum")
    assert set(plain["by"]) == {"all", "agreement"}
    assert 150 < plain.loc[0, "labels"] <= 240
    for table in (plain, by_kind):
        assert table["coverage"].between(table["coverage_low"], table["coverage_high"]).all()
    assert (plain["coverage_otherwise"] >= plain["coverage"]).all()
    assert (plain["size_otherwise"] >= plain["size"]).all()
    assert (by_kind["coverage_otherwise"] <= by_kind["coverage"]).all()
    assert by_kind.loc["hard", "coverage"] > 0.84
    assert by_kind.loc["hard", "size"] > by_kind.loc["easy", "size"]
    assert own.numbers["conformal"]["coverage"]["estimate"] == by_kind.loc["all", "coverage"]
    assert own.sets is not None
    assert own.sets.inside.any(1).all()
    assert any("a threshold per stratum" in line for line in own.sentences)
    table = strata_block(own.tables["conformal"], no_empty=True)
    assert all(len(row) == len(table.head) for row in table.rows)


def test_options_of_sets_need_sets() -> None:
    votes, labels = panel(40)
    with pytest.raises(jb.JudgeBayesError, match="add --conformal"):
        jb.calibrate(votes, labels=labels, empty_sets=True)
    with pytest.raises(jb.JudgeBayesError, match="no column 'sort'"):
        jb.calibrate(votes, labels=labels, method="one-coin", conformal=0.9, conformal_by="sort")
    with pytest.raises(jb.JudgeBayesError, match="the column of the labels"):
        jb.calibrate(votes, labels=labels, method="one-coin", conformal=0.9, conformal_by="label")
    alone = votes[votes["judge"] == "a"]
    with pytest.raises(jb.JudgeBayesError, match="needs several votes"):
        jb.calibrate(
            alone, labels=labels, method="one-coin", conformal=0.9, conformal_by="agreement"
        )
