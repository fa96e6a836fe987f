import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import judgebayes as jb
from judgebayes.evaluate.sklearn import SklearnCalibrator


@pytest.mark.slow  # compiles for every shape of the checks' data: 40 s
@parametrize_with_checks([SklearnCalibrator(jb.Beta(), scale="logit", column=0)])
def test_scikit_learns_estimator_checks_pass(estimator: SklearnCalibrator, check: object) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def answers() -> tuple[np.ndarray, np.ndarray]:
    """Overconfident probabilities and labels."""
    rng = np.random.default_rng(3)
    logit = rng.normal(size=120)
    p = 1 / (1 + np.exp(-3 * logit))
    return p, (rng.random(120) < 1 / (1 + np.exp(-logit))).astype(int)


def test_it_equals_the_map(answers: tuple[np.ndarray, np.ndarray]) -> None:
    p, y = answers
    log_probs = np.log(np.stack([1 - p, p], 1))
    expected = np.exp(np.asarray(jb.Platt().fit(log_probs, y)(log_probs)))
    fit = SklearnCalibrator(jb.Platt()).fit(p, y)
    np.testing.assert_allclose(fit.predict_proba(p), expected, atol=1e-6)
    table = pd.DataFrame({"b": 1 - p, "a": p})
    np.testing.assert_allclose(fit.fit(table, y).predict_proba(table), expected, atol=1e-6)
    logit = SklearnCalibrator(jb.Platt(), scale="logit").fit(np.log(p / (1 - p)), y)
    np.testing.assert_allclose(logit.predict_proba(np.log(p / (1 - p))), expected, atol=1e-6)


def test_class_names_and_columns_are_kept() -> None:
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(3), 90)
    y = np.array(["bad", "fair", "good"])[[rng.choice(3, p=row) for row in p]]
    fit = SklearnCalibrator(jb.Temperature()).fit(p, y)
    assert fit.classes_.tolist() == ["bad", "fair", "good"]
    assert set(fit.predict(p)) <= set(fit.classes_)
    assert fit.predict_proba(p).shape == (90, 3)


def test_parameters_round_trip_and_clones_are_equal() -> None:
    one = SklearnCalibrator(jb.Beta(penalty=0.5))
    assert clone(one).get_params() == one.get_params()
    assert one.set_params(calibrator=jb.Platt()).get_params()["calibrator"] == jb.Platt()


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([0.1, 1.5, 0.3, 0.4], "Row 1, column 0 of X is 1.5, which is not a probability"),
        ([[0.1, 0.4], [0.5, 0.5], [0.5, 0.5], [1, 0]], "Row 0 of X sums to 0.5"),
    ],
)
def test_invalid_probabilities_are_reported(X: list[object], sentence: str) -> None:  # noqa: N803
    with pytest.raises(ValueError, match=sentence):
        SklearnCalibrator().fit(X, [0, 1, 0, 1])
