"""Diagnostics against naive twins, and planted faults that must be named."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.panel import diagnostics
from judgebayes.panel.diagnostics import (
    Thresholds,
    diagnose,
    effective_judges,
    judge_table,
    panel_curve,
    position_bias,
    residual_correlation,
)
from judgebayes.votes import Votes

ITEMS = 240
ACCURACY = (0.9, 0.8, 0.75, 0.7, 0.65, 0.6)


def as_votes(index: np.ndarray, n_classes: int = 2, order: np.ndarray | None = None) -> Votes:
    with jax.enable_x64(True):
        given = None if order is None else jnp.asarray(order)
        index = index if index.ndim == 3 else index[..., None]
        return Votes(jnp.asarray(index), None, given, None, n_classes)


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, ITEMS)


@pytest.fixture(scope="module")
def index(labels: np.ndarray) -> np.ndarray:
    """Six one-coin judges, a twentieth of their votes missing."""
    rng = np.random.default_rng(2)
    right = rng.random((ITEMS, len(ACCURACY))) < ACCURACY
    cast = np.where(right, labels[:, None], 1 - labels[:, None])
    return np.where(rng.random(cast.shape) < 0.05, -1, cast)


def topics(found: list[Finding], severity: str | None = None) -> set[str]:
    return {f.topic for f in found if severity in (None, f.severity)}


def about(found: list[Finding], topic: str) -> Finding:
    return next(f for f in found if f.topic == topic)


def with_judge(index: np.ndarray, votes: np.ndarray) -> np.ndarray:
    return np.concatenate([index, votes[:, None]], 1)


def test_the_table_counts_as_one_counts_by_hand(index: np.ndarray, labels: np.ndarray) -> None:
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


def test_repeating_a_vote_is_no_new_evidence(index: np.ndarray, labels: np.ndarray) -> None:
    once = judge_table(as_votes(index), labels)
    again = judge_table(as_votes(np.stack([index] * 3, -1)), labels)
    columns = [c for c in once if c not in ("votes", "judge")]
    np.testing.assert_allclose(once[columns], again[columns])


def test_copies_of_an_item_in_one_group_count_as_little_more_than_one(
    index: np.ndarray, labels: np.ndarray
) -> None:
    copied, of_copy = np.repeat(index, 4, axis=0), np.repeat(labels, 4)
    groups = np.repeat(np.arange(ITEMS), 4)
    once = judge_table(as_votes(index), labels)
    told = judge_table(as_votes(copied), of_copy, groups=groups)
    untold = judge_table(as_votes(copied), of_copy)
    np.testing.assert_allclose(told["accuracy"], once["accuracy"])
    items = once[
        "labelled"
    ]  # of 4 copies each: the standard error has items - 1 degrees of freedom
    quantiles = stats.t.ppf(0.95, 4 * items - 1) / stats.t.ppf(0.95, items - 1)
    n = (items - 1) * quantiles**2
    right = once["accuracy"] * n
    for end, q in (("low", 0.05), ("high", 0.95)):
        np.testing.assert_allclose(
            told[f"accuracy_{end}"], stats.beta.ppf(q, 1 + right, 1 + n - right)
        )
    narrow, wide = ((t["tnr_high"] - t["tnr_low"]) for t in (untold, told))
    np.testing.assert_allclose(narrow / wide, 0.5, atol=0.03)


def test_groups_of_judges_without_a_mistake_count_once(labels: np.ndarray) -> None:
    perfect = np.stack([labels, labels], 1)
    table = judge_table(as_votes(perfect), labels, groups=np.arange(ITEMS) // 8)
    low = stats.beta.ppf(0.05, 1 + ITEMS // 8, 1)
    np.testing.assert_allclose(table["accuracy_low"], low)
    assert (table["accuracy_high"] == 1).all()


def test_the_error_of_a_position_bias_knows_groups(index: np.ndarray) -> None:
    order = np.broadcast_to(np.array([0, 1]), (ITEMS, 6, 2))
    both = np.stack([index, np.roll(index, 1, axis=0)], -1)
    votes = as_votes(both, order=order)
    copied = as_votes(np.repeat(both, 3, axis=0), order=np.repeat(order, 3, axis=0))
    once = position_bias(votes)
    told = position_bias(copied, np.repeat(np.arange(ITEMS), 3))
    np.testing.assert_allclose(told, once)
    np.testing.assert_allclose(position_bias(votes, np.arange(ITEMS)), once)


def test_unlabelled_items_and_item_order_change_nothing(
    index: np.ndarray, labels: np.ndarray
) -> None:
    some = np.where(np.arange(ITEMS) % 3 == 0, -1, labels)
    known = np.flatnonzero(some >= 0)
    mixed = np.random.default_rng(0).permutation(known)
    a = residual_correlation(as_votes(index), some)
    b = residual_correlation(as_votes(index[mixed]), some[mixed])
    np.testing.assert_allclose(a, b)
    np.testing.assert_allclose(
        panel_curve(as_votes(index), some), panel_curve(as_votes(index[mixed]), some[mixed])
    )


def test_correlation_is_the_one_of_a_loop(index: np.ndarray, labels: np.ndarray) -> None:
    found = residual_correlation(as_votes(index), labels)
    right = (index == labels[:, None]).astype(float)
    for a, b in itertools.product(range(6), repeat=2):
        both = (index[:, a] >= 0) & (index[:, b] >= 0)
        x, y = right[both, a].copy(), right[both, b].copy()
        for label in (0, 1):
            here = labels[both] == label
            x[here] -= x[here].mean()
            y[here] -= y[here].mean()
        assert found[a, b] == pytest.approx((x @ y) / np.sqrt((x @ x) * (y @ y)))


def test_effective_judges_at_its_ends() -> None:
    assert effective_judges(np.eye(5)) == pytest.approx(5)
    assert effective_judges(np.ones((5, 5))) == pytest.approx(1)
    assert effective_judges(np.full((5, 5), 0.5) + 0.5 * np.eye(5)) == pytest.approx(5 / 3)
    never_varies = np.full((3, 3), np.nan)
    never_varies[:2, :2] = np.eye(2)
    assert effective_judges(never_varies) == pytest.approx(2)
    no_pair = np.where(np.eye(3, dtype=bool), 1.0, np.nan)
    assert np.isnan(effective_judges(no_pair))


def test_the_homogeneity_test_is_scipys(index: np.ndarray, labels: np.ndarray) -> None:
    right, seen = (index == labels[:, None]) & (index >= 0), index >= 0
    hits = np.stack([right[labels == k].sum(0) for k in (0, 1)]).astype(float)
    trials = np.stack([seen[labels == k].sum(0) for k in (0, 1)]).astype(float)
    found = diagnostics._homogeneity(hits, trials, 20)
    for j in range(6):
        square = np.stack([hits[:, j], trials[:, j] - hits[:, j]])
        expected = stats.chi2_contingency(square, correction=False).pvalue
        assert found[j] == pytest.approx(expected)


def test_scores_leave_their_own_item_out(index: np.ndarray, labels: np.ndarray) -> None:
    found = diagnostics._left_out(index[..., None], diagnostics._tally(as_votes(index), labels))
    for i in (0, 17, 100):
        rest = np.arange(ITEMS) != i
        for j in range(6):
            if index[i, j] < 0:
                assert found[i, j] == 0
                continue
            cast = rest & (index[:, j] >= 0)
            right = (index[cast, j] == labels[cast]).sum()
            odds = np.log((1 + right) / (1 + cast.sum() - right))
            assert found[i, j] == pytest.approx(odds if index[i, j] == 1 else -odds)


def test_the_platt_map_of_the_curve_is_at_scipys_minimum(
    index: np.ndarray, labels: np.ndarray
) -> None:
    score = diagnostics._left_out(index[..., None], diagnostics._tally(as_votes(index), labels))
    x = score.sum(1, keepdims=True)
    sign = 2 * labels - 1

    def loss(p: np.ndarray) -> float:
        z = p[0] * x[:, 0] / x.std() + p[1]
        return float(np.logaddexp(0, -sign * z).mean() + 0.5 * diagnostics.WEAK_PRIOR * p[0] ** 2)

    least = optimize.minimize(loss, [0.0, 0.0], tol=1e-12)
    mine = diagnostics._platt_nll(x, labels).mean()
    p = least.x
    theirs = np.logaddexp(0, -sign * (p[0] * x[:, 0] / x.std() + p[1])).mean()
    assert mine == pytest.approx(theirs, abs=1e-6)


def test_a_curve_falls_where_judges_are_independent(index: np.ndarray, labels: np.ndarray) -> None:
    curve = panel_curve(as_votes(index), labels)
    assert curve["judges"].tolist() == [1, 2, 3, 6]
    assert (np.diff(curve["nll"]) < 0).all()
    assert curve["saved"].iloc[-1] == 0
    np.testing.assert_allclose(curve["saved"], curve["nll"] - curve["nll"].iloc[-1])


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


def test_a_sound_panel_gets_a_clean_bill(index: np.ndarray, labels: np.ndarray) -> None:
    found = diagnose(as_votes(index), labels)
    assert [f.severity for f in found] == ["good"]


def test_constant_and_nearly_constant_labels(index: np.ndarray, labels: np.ndarray) -> None:
    constant = about(diagnose(as_votes(index), np.ones(ITEMS, int)), "labels")
    assert constant.severity == "bad"
    assert "All 240 labels are class 1. A calibrator learns that constant" in constant.sentence
    nearly = np.ones(ITEMS, int)
    nearly[:3] = 0
    assert (
        "98.8% of the labels are class 1"
        in about(diagnose(as_votes(index), nearly), "labels").sentence
    )
    assert "labels" not in topics(
        diagnose(as_votes(index), nearly, thresholds=Thresholds(constant=0.99))
    )
    assert "labels" not in topics(diagnose(as_votes(index), labels))
    unknown = diagnose(as_votes(index), np.full(ITEMS, -1))
    assert "No item has a label" in about(unknown, "labels").sentence


@pytest.mark.parametrize("wrong", [False, True])
def test_a_leak_is_named_and_left_out_of_the_rest(
    index: np.ndarray, labels: np.ndarray, wrong: bool
) -> None:
    judge = 1 - labels if wrong else labels
    found = diagnose(as_votes(with_judge(index, judge)), labels, [*"abcdef", "broken"])
    leak = about(found, "leak")
    assert leak.severity == "bad"
    assert leak.judges == ("broken",)
    assert ("wrong on all" if wrong else "right on all") in leak.sentence
    assert topics(found) == {"leak"}
    short = np.where(np.arange(ITEMS) < 49, judge, -1)
    few = diagnose(as_votes(with_judge(index, short)), labels)
    assert "leak" not in topics(few)


def test_unreadable_judges_are_reviewed_or_left_out(index: np.ndarray, labels: np.ndarray) -> None:
    cut = index.copy()
    cut[::5, 1] = -1
    cut[: ITEMS // 2, 4] = -1
    found = [
        f for f in diagnose(as_votes(cut), labels, list("abcdef")) if f.topic == "parseability"
    ]
    assert [(f.severity, f.judges) for f in found] == [("bad", ("e",)), ("note", ("b",))]


def test_judges_below_chance_are_named(index: np.ndarray, labels: np.ndarray) -> None:
    turned = index.copy()
    turned[:, 2] = np.where(index[:, 2] >= 0, 1 - index[:, 2], -1)
    found = diagnose(as_votes(turned), labels, list("abcdef"))
    assert about(found, "below-chance").judges == ("c",)


def test_a_judge_with_two_recalls_breaks_the_one_coin_model(
    index: np.ndarray, labels: np.ndarray
) -> None:
    rng = np.random.default_rng(3)
    right = rng.random(ITEMS) < np.where(labels == 1, 0.95, 0.6)
    two_coin = np.where(right, labels, 1 - labels)
    found = diagnose(as_votes(with_judge(index, two_coin)), labels, [*"abcdef", "two"])
    assert about(found, "one-coin").judges == ("two",)


def test_a_weight_of_the_wrong_sign_is_named() -> None:
    # Nine tenths of the labels are 1; the judge says 1 mostly, but more often where it is wrong.
    rng = np.random.default_rng(4)
    labels = (np.arange(400) % 10 > 0).astype(int)
    cast = (rng.random(400) < np.where(labels == 1, 0.75, 1.0)).astype(int)
    other = np.where(rng.random(400) < 0.8, labels, 1 - labels)
    found = diagnose(as_votes(np.stack([cast, other], 1)), labels, ["sly", "fair"])
    wrong = next(f for f in found if "wrong sign" in f.sentence)
    assert wrong.judges == ("sly",)
    assert wrong.severity == "bad"


def test_votes_missing_by_label_are_named(index: np.ndarray, labels: np.ndarray) -> None:
    cut = index.copy()
    cut[(labels == 1) & (np.arange(ITEMS) % 3 == 0), 3] = -1
    found = diagnose(as_votes(cut), labels, list("abcdef"))
    assert about(found, "missingness").judges == ("d",)


def test_copies_are_named_and_a_panel_of_copies_is_redundant(
    index: np.ndarray, labels: np.ndarray
) -> None:
    twin = diagnose(as_votes(with_judge(index, index[:, 1])), labels, [*"abcdef", "b again"])
    assert about(twin, "redundancy").judges == ("b", "b again")
    rng = np.random.default_rng(5)
    copies = np.where(rng.random((ITEMS, 12)) < 0.03, 1 - labels[:, None], index[:, [1] * 12])
    found = diagnose(as_votes(copies), labels)
    worth = [f for f in found if f.topic == "redundancy" and not f.judges]
    assert "12 judges are worth" in worth[0].sentence
    assert "saturation" in topics(found)


def test_position_bias_is_said(index: np.ndarray, labels: np.ndarray) -> None:
    order = np.broadcast_to(np.array([0, 1]), (ITEMS, 6, 2))
    both = np.stack([index, index], -1)
    both[:, 0] = 1 - order[:, 0]
    found = diagnose(as_votes(both, order=order), labels, list("abcdef"))
    assert about(found, "position-bias").judges == ("a",)
    table = judge_table(as_votes(both, order=order), labels)
    assert table["position_bias"][0] == 1
    assert (table["position_bias"][1:].abs() < 1e-12).all()


def test_three_classes_have_no_curve_but_all_the_rest() -> None:
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 3, 300)
    cast = np.where(rng.random((300, 4)) < 0.7, labels[:, None], rng.integers(0, 3, (300, 4)))
    cast[:, 3] = (labels + 1) % 3
    found = diagnose(as_votes(cast, 3), labels)
    assert topics(found, "bad") == {"leak"}
    assert "tpr" not in judge_table(as_votes(cast, 3), labels)
    with pytest.raises(JudgeBayesError, match="two classes"):
        panel_curve(as_votes(cast, 3), labels)


def test_judges_permuted_are_diagnosed_alike(index: np.ndarray, labels: np.ndarray) -> None:
    order = np.array([3, 0, 5, 1, 4, 2])
    names = np.array(list("abcdef"))
    a = judge_table(as_votes(index), labels, names.tolist()).iloc[order].reset_index(drop=True)
    b = judge_table(as_votes(index[:, order]), labels, names[order].tolist())
    assert a.equals(b)


def test_bad_requests_get_their_sentence(index: np.ndarray, labels: np.ndarray) -> None:
    with pytest.raises(JudgeBayesError, match=r"right would be \(240,\)"):
        diagnose(as_votes(index), labels[:10])
    with pytest.raises(JudgeBayesError, match="2 names were given for 6 judges"):
        judge_table(as_votes(index), labels, ["a", "b"])


def test_a_judge_without_labelled_votes_is_unknown_not_wrong(
    index: np.ndarray, labels: np.ndarray
) -> None:
    silent = as_votes(np.where(np.arange(6) == 2, -1, index))
    row = judge_table(silent, labels).iloc[2]
    assert np.isnan(row["accuracy"])
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx((0.05, 0.95))
    assert row["weight"] == 0
    assert "below-chance" not in topics(diagnose(silent, labels))
