from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from panels import judged

from judgebayes.aggregators import (
    BaseRate,
    Calibrated,
    Davidson,
    MajorityVote,
    MarginThreshold,
    OneCoin,
)
from judgebayes.calibrators import Temperature
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate import batches
from judgebayes.evaluate.one_split import Evaluation, _shown, evaluate, measure
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_calibrators, evaluate_splits, sweep
from judgebayes.inference import DRPS
from judgebayes.measures.decide import absolute_loss, bayes_action, zero_one_loss
from judgebayes.votes import Votes

FEW = Davidson(DRPS(starts=1))


@pytest.fixture(scope="module")
def parts(labels: np.ndarray) -> Splits:
    return random_splits(60, splits=4, calibration=30, among=np.flatnonzero(labels >= 0))


def test_a_sweep_is_a_loop_of_fits(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    methods = {"davidson": FEW, "sc": MajorityVote(), "threshold": MarginThreshold()}
    table = sweep(methods, votes, labels, parts, fit_on="calibration")
    assert list(table.columns) == ["method", "split", "metric", "value", "status"]
    assert len(table) == 3 * 4 * 2
    for name, method in methods.items():
        own = table[table["method"] == name]
        for split in range(4):
            cal, ev = parts.calibration[split], parts.evaluation[split]
            fit = method.fit(votes.take(cal), labels[cal])
            made = np.asarray(bayes_action(fit(votes.take(ev)), absolute_loss(3)))
            row = own[own["split"] == split].set_index("metric")["value"]
            assert row["mae"] == pytest.approx(np.abs(made - labels[ev]).mean())
            assert row["accuracy"] == pytest.approx((made == labels[ev]).mean())


@pytest.mark.parametrize("calibration", [10, 40])
def test_answers_are_those_of_the_evaluation_items(
    votes: Votes, labels: np.ndarray, calibration: int
) -> None:
    """Most items are answered at once and then chosen, few are chosen first."""
    known = np.flatnonzero(labels >= 0)
    splits = random_splits(60, splits=3, calibration=calibration, among=known)
    found = evaluate_splits(MajorityVote(), votes, labels, splits, fit_on="calibration")
    answers = np.asarray(MajorityVote().fit(votes, labels)(votes))
    size = splits.evaluation.shape[1]
    np.testing.assert_allclose(found.log_probs[:, :size], answers[splits.evaluation])


def test_splits_side_by_side_or_a_few_at_a_time_answer_alike(
    votes: Votes, labels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven splits of 60 items, padded to 64: two at a time, so that one fills up."""
    splits = random_splits(60, splits=7, calibration=30, among=np.flatnonzero(labels >= 0))

    def answers() -> dict[str, Evaluation]:
        return evaluate_calibrators(
            OneCoin(), {"t": Temperature()}, votes, labels, splits, fit_on="all"
        )

    together = answers()["t"]
    monkeypatch.setattr(batches, "NUMBERS_AT_ONCE", 2 * 64)
    apart = answers()["t"]
    assert len(apart.status) == 7
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10), together, apart)


def test_fits_on_all_items_see_calibration_labels_only(
    votes: Votes, labels: np.ndarray, parts: Splits
) -> None:
    # These methods learn from labelled items alone, so both choices must agree.
    one, other = (
        sweep({"d": FEW, "b": BaseRate()}, votes, labels, parts, fit_on=fit_on, metrics=["drps"])
        for fit_on in ("calibration", "all")
    )
    np.testing.assert_allclose(one["value"], other["value"], atol=1e-8)


def test_the_evaluation_labels_do_not_leak(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    other = labels.copy()
    cal, ev = parts.calibration[0], parts.evaluation[0]
    other[ev] = (labels[ev] + 1) % 3
    one_split = Splits(cal[None], ev[None])
    for fit_on in ("calibration", "all"):
        answers = [
            evaluate_splits(FEW, votes, y, one_split, fit_on=fit_on).log_probs
            for y in (labels, other)
        ]
        np.testing.assert_array_equal(*answers)


def test_filled_parts_count_for_nothing(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    fill = -np.ones((4, 3), int)
    wide = Splits(
        np.concatenate([parts.calibration, fill], 1), np.concatenate([parts.evaluation, fill], 1)
    )
    one, other = (
        sweep({"d": FEW}, votes, labels, p, fit_on="calibration")["value"] for p in (parts, wide)
    )
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_the_loss_of_the_decisions_can_be_chosen(
    votes: Votes, labels: np.ndarray, parts: Splits
) -> None:
    rates = {"b": BaseRate()}
    mode = sweep(rates, votes, labels, parts, fit_on="calibration", loss=zero_one_loss(3))
    median = sweep(rates, votes, labels, parts, fit_on="calibration")
    acc = {
        n: t.query("metric == 'accuracy'")["value"].mean()
        for n, t in {"mode": mode, "median": median}.items()
    }
    assert acc["mode"] >= acc["median"]


def test_losses_are_nan_where_there_is_no_label(votes: Votes, labels: np.ndarray) -> None:
    parts = Splits(np.flatnonzero(labels >= 0)[None, :30], np.array([[0, 1, 2]]))
    found = evaluate_splits(MajorityVote(), votes, labels, parts, fit_on="calibration")
    assert np.isnan(found.losses(absolute_loss(3))[0, 0])  # item 0 is unlabelled
    assert np.isfinite(found.losses(absolute_loss(3))[0, 1:3]).all()


def test_own_metrics_can_be_passed(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    def ties(e: Evaluation) -> jax.Array:
        return (e.decisions == 1).mean(where=e.labels >= 0)

    found = evaluate_splits(MajorityVote(), votes, labels, parts, fit_on="calibration")
    assert measure(found, {"ties": ties})["ties"].shape == (4,)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"fit_on": "both"}, "right would be 'calibration' or 'all'"),
        ({"splits": Splits(np.array([[0]]), np.array([[99]]))}, "speak of item 99"),
        ({"metrics": ["maee"]}, "no metric 'maee'; there are mae, accuracy"),
    ],
)
def test_impossible_requests_get_a_sentence(
    votes: Votes, labels: np.ndarray, parts: Splits, change: dict[str, object], sentence: str
) -> None:
    given = {"splits": parts, "fit_on": "calibration"} | change
    if change.get("fit_on") == "both":
        # The type checker of the tests would answer before the library does.
        with pytest.raises(Exception, match="both"):
            sweep({"sc": MajorityVote()}, votes, labels, **given)
        return
    with pytest.raises(JudgeBayesError, match=sentence):
        sweep({"sc": MajorityVote()}, votes, labels, **given)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_all_items_are_those_over_the_parts(weighted: bool) -> None:
    """The one-coin model is not given a copy of each split's votes; the answers must not know.

    An item that a part names three times counts three times.
    """
    panel, truth = judged(np.array([0.9, 0.7, 0.6]), 40, missing=0.2, seed=1)
    truth = np.where(np.arange(40) % 7 == 0, -1, truth)
    weight = np.linspace(0, 2, 40) if weighted else None
    calibration, evaluation = np.r_[np.arange(25), 3, 3, -1, -1], np.arange(20, 40)

    @in_float64
    def run() -> tuple[np.ndarray, np.ndarray]:
        shown = _shown(panel, jnp.asarray(truth), jnp.asarray(calibration), "calibration", weight)
        expected = OneCoin(class_prior="labels").fit(**shown)(panel.take(evaluation))
        found = evaluate(
            OneCoin(class_prior="labels"),
            panel,
            jnp.asarray(truth),
            jnp.asarray(calibration),
            jnp.asarray(evaluation),
            jnp.asarray(absolute_loss(2)),
            jax.random.key(0),
            "calibration",
            weight,
        )
        return np.asarray(found.log_probs), np.asarray(expected)

    np.testing.assert_allclose(*run(), atol=1e-12)


def test_so_they_are_with_a_map_behind() -> None:
    panel, truth = judged(np.array([0.9, 0.7, 0.6]), 40, missing=0.2, seed=1)
    splits = random_splits(40, splits=2, calibration=25, seed=0)
    method = Calibrated(OneCoin(), Temperature(), None)
    summed = evaluate_calibrators(
        OneCoin(), {"t": Temperature()}, panel, truth, splits, fit_on="calibration", share=None
    )["t"]
    for split, (inside, outside) in enumerate(
        zip(splits.calibration, splits.evaluation, strict=True)
    ):
        own = method.fit(panel.take(inside), truth[inside])(panel.take(outside))
        found = np.asarray(summed.log_probs)[split, : len(outside)]
        np.testing.assert_allclose(found, own, atol=1e-9)
