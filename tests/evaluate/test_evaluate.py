import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from panels import judged

from judgebayes import (
    DRPS,
    BaseRate,
    Calibrated,
    Davidson,
    MajorityVote,
    MarginThreshold,
    OneCoin,
    Status,
    Temperature,
)
from judgebayes.aggregators.base import cost_of
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.engine import (
    Cell,
    Engine,
    _Items,
    _Split,
    _training_data,
    evaluate,
    memory,
    splits_in_memory,
)
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits, sweep
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import absolute_loss, bayes_action
from judgebayes.votes import Votes

FEW = Davidson(DRPS(starts=1))


@pytest.fixture(scope="module")
def parts(labels: np.ndarray) -> Splits:
    return random_splits(60, splits=4, calibration=30, among=np.flatnonzero(labels >= 0))


def test_a_sweep_matches_a_loop_of_fits(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    methods = {"davidson": FEW, "sc": MajorityVote(), "threshold": MarginThreshold()}
    table = sweep(methods, votes, labels, parts, fit_on="calibration")
    assert list(table.columns) == ["method", "split", "metric", "value", "status"]
    assert len(table) == 3 * 4 * 2
    for name, method in methods.items():
        own = table[table["method"] == name]
        for split in range(4):
            cal, ev = parts.calibration[split], parts.evaluation[split]
            fit = method.fit(votes.take(cal), labels[cal])
            decisions = np.asarray(bayes_action(fit(votes.take(ev)), absolute_loss(3)))
            row = own[own["split"] == split].set_index("metric")["value"]
            assert row["mae"] == pytest.approx(np.abs(decisions - labels[ev]).mean())
            assert row["accuracy"] == pytest.approx((decisions == labels[ev]).mean())


def test_cells_in_one_call_have_the_answers_of_calls_of_their_own(
    votes: Votes, labels: np.ndarray, parts: Splits
) -> None:
    """Two cells of one shape, and one of another; also with a calibrator."""
    some = np.arange(20, 60)
    fewer = random_splits(40, splits=4, calibration=10, among=np.flatnonzero(labels[some] >= 0))
    cells = {
        "all": (votes, labels, parts),
        "first": (votes.first(2), labels, parts),
        "some": (votes.take(some), labels[some], fewer),
    }
    for methods, maps in (({"davidson": FEW}, None), ({"base": BaseRate()}, {"t": Temperature()})):
        by_name = ({name: cell[i] for name, cell in cells.items()} for i in range(3))
        together = sweep(methods, *by_name, fit_on="calibration", calibrators=maps)
        assert list(together.columns)[:2] == ["cell", "method"]
        for name, cell in cells.items():
            alone = sweep(methods, *cell, fit_on="calibration", calibrators=maps)
            own = together[together["cell"] == name].drop(columns="cell").reset_index(drop=True)
            pd.testing.assert_frame_equal(own, alone, check_exact=False, rtol=1e-9)


def test_cells_go_by_the_same_names(votes: Votes, labels: np.ndarray, parts: Splits) -> None:
    with pytest.raises(JudgeBayesError, match=r"names are \['a'\], \['b'\], \['a'\]"):
        sweep({"sc": MajorityVote()}, {"a": votes}, {"b": labels}, {"a": parts}, fit_on="all")


@pytest.mark.parametrize("calibration", [10, 40])
def test_answers_are_those_of_the_evaluation_items(
    votes: Votes, labels: np.ndarray, calibration: int
) -> None:
    """Most items are predicted together and then selected; few items are selected first."""
    labelled = np.flatnonzero(labels >= 0)
    splits = random_splits(60, splits=3, calibration=calibration, among=labelled)
    result = evaluate_splits(MajorityVote(), votes, labels, splits, fit_on="calibration")
    answers = np.asarray(MajorityVote().fit(votes, labels)(votes))
    size = splits.evaluation.shape[1]
    np.testing.assert_allclose(result.log_probs[:, :size], answers[splits.evaluation])


def test_fits_on_all_items_use_calibration_labels_only(
    votes: Votes, labels: np.ndarray, parts: Splits
) -> None:
    # These methods learn from labelled items only, so both choices must agree.
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


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"fit_on": "both"}, "choose one of: 'calibration', 'all'"),
        ({"splits": Splits(np.array([[0]]), np.array([[99]]))}, "contain item 99"),
        ({"metrics": ["maee"]}, "no metric 'maee'; choose one of: mae, accuracy"),
    ],
)
def test_impossible_requests_are_errors(
    votes: Votes, labels: np.ndarray, parts: Splits, change: dict[str, object], sentence: str
) -> None:
    arguments = {"splits": parts, "fit_on": "calibration"} | change
    if change.get("fit_on") == "both":
        # The run-time type checker of the tests raises before the library does.
        with pytest.raises(Exception, match="both"):
            sweep({"sc": MajorityVote()}, votes, labels, **arguments)
        return
    with pytest.raises(JudgeBayesError, match=sentence):
        sweep({"sc": MajorityVote()}, votes, labels, **arguments)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_all_items_equal_sums_over_the_parts(weighted: bool) -> None:
    """The one-coin model is fitted without copies of each split's votes; results must be equal.

    An item that occurs three times in a part counts three times.
    """
    panel, truth = judged(np.array([0.9, 0.7, 0.6]), 40, missing=0.2, seed=1)
    truth = np.where(np.arange(40) % 7 == 0, -1, truth)
    weight = np.linspace(0, 2, 40) if weighted else np.ones(40)
    calibration, evaluation = np.r_[np.arange(25), 3, 3, -1, -1], np.arange(20, 40)

    @in_float64
    def run() -> tuple[np.ndarray, np.ndarray]:
        items = _Items(panel, jnp.asarray(truth), jnp.asarray(weight))
        key = jax.random.key_data(jax.random.key(0))
        split = _Split(jnp.asarray(calibration), jnp.asarray(evaluation), key)
        method = OneCoin(class_prior="labels")
        votes, labels, weights = _training_data(items, split, "calibration", by_weight=False)
        expected = method.fit(votes, labels, weight=weights)(panel.take(evaluation))
        shared = (method, jnp.asarray(absolute_loss(2)))
        result = evaluate("calibration", None, shared, items, split)
        assert isinstance(result, Evaluation)
        return np.asarray(result.log_probs), np.asarray(expected)

    np.testing.assert_allclose(*run(), atol=1e-12)


@pytest.mark.parametrize("method", [OneCoin(), Calibrated(OneCoin(), Temperature(), None)])
def test_a_sweep_says_the_status_of_its_fits(method: Method) -> None:
    """Labels that are all the same teach nothing; the status of such a split says so."""
    panel, truth = judged(np.array([0.9, 0.7, 0.6]), 40, seed=1)
    splits = random_splits(40, splits=2, calibration=25, seed=0)
    for labels, status in ((np.zeros_like(truth), Status.DEGENERATE), (truth, Status.CONVERGED)):
        (by_map,) = Engine([Cell(panel, labels, splits)])(method, "calibration")
        assert np.unique(by_map[""].status).tolist() == [int(status)]


def test_sums_over_all_items_agree_with_a_calibrator_too() -> None:
    panel, truth = judged(np.array([0.9, 0.7, 0.6]), 40, missing=0.2, seed=1)
    splits = random_splits(40, splits=2, calibration=25, seed=0)
    method = Calibrated(OneCoin(), Temperature(), None)
    (by_map,) = Engine([Cell(panel, truth, splits)])({"t": method}, "calibration")
    summed = by_map["t"]
    for split, (inside, outside) in enumerate(
        zip(splits.calibration, splits.evaluation, strict=True)
    ):
        own = method.fit(panel.take(inside), truth[inside])(panel.take(outside))
        result = np.asarray(summed.log_probs)[split, : len(outside)]
        np.testing.assert_allclose(result, own, atol=1e-9)


@pytest.mark.parametrize(("items", "judges"), [(100, 5), (20_000, 50)])
def test_batches_grow_smaller_with_the_votes(items: int, judges: int) -> None:
    held = memory()
    assert held > 2**28
    expected = held * 0.25 / (items * (2 * judges + 2) * 8 * 6)
    one = Votes(jnp.zeros((1, judges, 1), jnp.int8), None, None, None, 2, 1)
    assert splits_in_memory(Davidson(), cost_of(Davidson(), items, one)) == int(expected)
