"""Which method `auto` chooses, given made-up held-out answers."""

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import judgebayes as jb
from judgebayes import BaseRate, MajorityVote
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import Splits
from judgebayes.measures.scores import absolute_loss, zero_one_loss
from judgebayes.measures.significance import two_way_interval
from judgebayes.votes import Classes, Votes
from judgebayes.workflow.comparing import (
    Compared,
    compare,
    comparison_block,
    comparison_table,
    comparison_words,
)
from judgebayes.workflow.losses import losses_of

ITEMS = 60
TERNARY = Classes((-1, 0, 1), pairwise=True)
PARTS = Splits(np.tile(np.arange(40), (2, 1)), np.tile(np.arange(ITEMS), (2, 1)))


def answered(p_label: np.ndarray) -> Evaluation:
    """Two splits that hold out the same items, all of label 1, answered with these probabilities."""
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.stack([1 - p_label, p_label], 1))
    return Evaluation(
        items=np.tile(np.arange(ITEMS), (2, 1)),
        labels=np.ones((2, ITEMS), int),
        log_probs=np.tile(log_probs, (2, 1, 1)),
        decisions=np.ones((2, ITEMS), int),
        status=np.zeros(2, int),
    )


def compared(label_noise: float = 0.0, **p_label: np.ndarray) -> Compared:
    evaluations = {name: answered(p) for name, p in p_label.items()}
    one = Compared(PARTS, {}, evaluations, ITEMS, None, label_noise)
    assert all(one.nll(name).dtype == np.float64 for name in evaluations)
    means = {name: {"nll": float(np.nanmean(one.nll(name)))} for name in evaluations}
    return Compared(PARTS, means, evaluations, ITEMS, None, label_noise)


def test_the_default_stays_unless_another_is_clearly_ahead() -> None:
    rng = np.random.default_rng(0)
    own = rng.uniform(0.5, 0.9, ITEMS)
    swing = rng.normal(0, 0.1, ITEMS)
    luck = np.exp(np.minimum(np.log(own) + swing - swing.mean() + 0.005, -0.01))
    comparison = compared(own=own, lucky=luck, better=own + 0.05, worse=own - 0.2)
    assert comparison.means["lucky"]["nll"] < comparison.means["own"]["nll"]
    assert comparison.best(["own", "lucky", "worse"], "own") == "own"
    assert comparison.best(["own", "lucky", "better", "worse"], "own") == "better"
    assert comparison.best(["own", "worse"], "worse") == "own"


def test_a_method_that_was_never_wrong_must_survive_one_error() -> None:
    """60 items, p = 0.9 against 0.97 or 1 - 1e-12: only the second loses its lead by an error."""
    own, bold, certain = (np.full(ITEMS, p) for p in (0.9, 0.97, 1 - 1e-12))
    swing = np.where(np.arange(ITEMS) % 2 == 0, 1e-3, -1e-3)
    comparison = compared(own=own + swing, bold=bold, certain=certain)
    lead = -np.log(0.9)
    assert ITEMS * (lead + np.log(0.97)) - np.log(0.1 / 0.03) > 0
    assert ITEMS * lead - np.log(0.1 / 1e-12) < 0
    assert comparison.clearly_less("bold", "own")
    assert not comparison.clearly_less("certain", "own")
    assert comparison.best(["own", "bold", "certain"], "own") == "bold"
    assert not comparison.clearly_less("own", "certain")


def test_decisions_that_are_all_right_are_not_certain_to_be() -> None:
    accuracy = compared(own=np.full(ITEMS, 0.9)).right("own")
    assert (accuracy.mean, accuracy.high) == (1.0, 1.0)
    assert accuracy.low == pytest.approx(beta(1 + ITEMS, 1).ppf(0.025))  # however many splits


def test_an_accuracy_is_the_hull_of_both_intervals_within_its_bounds() -> None:
    one = compared(own=np.full(ITEMS, 0.9))
    own = one.evaluations["own"]
    sides = {}
    for wrong in (2, 30):  # the normal interval reaches beyond 1, and does not
        own.decisions[:, :wrong] = 0
        hits = (own.decisions == 1).astype(float)
        normal = two_way_interval(hits, own.items, ITEMS, fitted=one.fitted)
        low, high = beta(1 + ITEMS - wrong, 1 + wrong).ppf([0.025, 0.975])
        accuracy = one.right("own")
        assert accuracy.mean == pytest.approx(1 - wrong / ITEMS)
        assert accuracy.low == pytest.approx(min(low, normal.low))
        assert accuracy.high == pytest.approx(min(max(high, normal.high), 1.0))
        sides[wrong] = normal.high > 1
    assert sides == {2: True, 30: False}
    groups = np.arange(ITEMS) // 10
    own.decisions[:] = 1
    grouped = Compared(PARTS, {}, one.evaluations, ITEMS, groups).right("own")
    assert grouped.low == pytest.approx(beta(1 + 6, 1).ppf(0.025))  # six sources, not sixty items


def test_an_interval_about_these_items_narrows_with_their_labels() -> None:
    one = compared(own=np.full(ITEMS, 0.9))
    one.evaluations["own"].decisions[:, :6] = 0

    def accuracy(unseen: float) -> float:
        of = Compared(PARTS, {}, one.evaluations, ITEMS, None, unseen=unseen)
        right = of.right("own")
        assert right.mean == pytest.approx(0.9)
        assert ("these items" in of.title) == (unseen < 1)
        return right.high - right.low

    # Of N items, n with a label: the finite-population correction 1 - n / N of the variance.
    half, all_of_them = accuracy(0.5), accuracy(0.0)
    assert 0.6 < half / accuracy(1.0) < 0.8
    assert all_of_them == 0  # both splits hold out the same items


def test_a_mean_loss_has_the_uncertainty_of_the_share_of_errors() -> None:
    comparison = compared(own=np.full(ITEMS, 0.9))
    labels = comparison.evaluations["own"].labels
    errors = np.zeros(labels.shape)
    none = comparison.mean_loss("own", errors, 2.0)
    assert none[:2] == (0.0, 0.0)
    assert none.high == pytest.approx(2 * beta(1, 1 + ITEMS).ppf(0.975))
    # Zero-one loss is what accuracy leaves; steps of one or two lie between that and its double.
    errors[:, :3] = 1.0
    few, right = comparison.mean_loss("own", errors, 1.0), comparison.share("own", 1 - errors)
    np.testing.assert_allclose(few, [1 - right.mean, 1 - right.high, 1 - right.low], atol=1e-12)
    errors[:, 0] = 2.0
    steps = comparison.mean_loss("own", errors, 2.0)
    assert few.high < steps.high < 2 * few.high


@pytest.fixture(scope="module")
def comparison(votes: Votes, labels: np.ndarray) -> Compared:
    methods = {"sc": MajorityVote(), "best-constant": BaseRate()}
    with jax.enable_x64(True):
        return compare(methods, votes, labels, None, absolute_loss(3), splits=7, seed=5)


@pytest.mark.parametrize(
    ("loss", "matrix", "metric", "sign"),
    [("absolute", absolute_loss, "mae", 1), ("zero-one", zero_one_loss, "accuracy", -1)],
)
def test_extra_loss_is_the_difference_of_the_metric_that_its_explanation_names(
    comparison: Compared, loss: str, matrix: Callable[[int], np.ndarray], metric: str, sign: int
) -> None:
    leads = comparison.leads("sc", matrix(3))
    own, other = (comparison.means[name][metric] for name in ("sc", "best-constant"))
    assert leads["best-constant"].mean == pytest.approx(sign * (other - own), abs=1e-9)
    assert leads["best-constant"].low < leads["best-constant"].mean < leads["best-constant"].high
    words = comparison_words(comparison, leads, losses_of(loss, TERNARY), hide_nll=False)
    assert {"mae": "its mean is the MAE", "accuracy": "its mean is 1 - accuracy"}[metric] in words[
        0
    ]
    assert "minus that of sc" in words[0]
    assert "with 10 held-out labels per split" in words[1]  # 50 labels, a fifth held out
    assert (
        "best-constant: the same answer for all items, the best one on the fitted labels."
        in words[2]
    )
    assert "margin-threshold" not in words[2]
    row = comparison_block("", comparison_table(comparison, leads, hide_nll=False)).rows[1]
    assert row[0] == "best-constant"
    assert str(row[-1]).startswith(f"{leads['best-constant'].mean:+.3f} [")


def test_the_best_constant_is_fitted_without_held_out_labels(
    comparison: Compared, labels: np.ndarray
) -> None:
    for part, answers in zip(
        comparison.parts.calibration, comparison.evaluations["best-constant"].log_probs, strict=True
    ):
        share = np.bincount(labels[part[part >= 0]], minlength=3) / (part >= 0).sum()
        np.testing.assert_allclose(np.exp(answers), np.tile(share, (len(answers), 1)), atol=1e-9)


def test_where_a_rule_decides_clearly_better_decisions_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constant probabilities decide one class everywhere; the votes are nearly always right."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 120)
    votes = np.where(rng.random((120, 3)) < 0.95, labels[:, None], 1 - labels[:, None])
    names = np.array(["no", "yes"])
    table = pd.DataFrame(names[votes], columns=["ann", "ben", "cy"])
    table.insert(0, "item", [f"i{i}" for i in range(120)])
    long = table.melt("item", var_name="judge", value_name="vote")
    long.to_csv(tmp_path / "votes.csv", index=False)
    known = pd.DataFrame({"item": table["item"], "label": names[labels]})[:80]
    known.to_csv(tmp_path / "labels.csv", index=False)
    monkeypatch.setattr("judgebayes.workflow.calibrating.suited", lambda votes: ["best-constant"])
    result = jb.calibrate(tmp_path / "votes.csv", tmp_path / "labels.csv", splits=5)
    said = " ".join(result.chosen)
    assert "Decisions are those of sc, which decides clearly better than best-constant" in said
    majority = (votes.sum(1) > 1).astype(int)
    np.testing.assert_array_equal(result.decisions.of_item, majority)
    assert "Decisions, by sc:" in result.decided_words
    # A saved fit decides in the same way.
    jb.save(result, tmp_path / "fit.json")
    applied = jb.apply(tmp_path / "fit.json", tmp_path / "votes.csv")
    assert list(applied.answers["decision"]) == list(result.answers["decision"])
    np.testing.assert_allclose(applied.answers["p(yes)"], result.answers["p(yes)"])
