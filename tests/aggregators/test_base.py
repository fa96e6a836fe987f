import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.aggregators.base import certain
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.fit import training
from judgebayes.votes import Votes


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"labels": np.zeros(7, int)}, r"labels have the shape \(7,\); there are 60 items"),
        ({"labels": np.zeros(60)}, "must be class indices"),
        ({"weight": np.ones(3)}, r"weights have the shape \(3,\)"),
        ({"weight": np.full(60, -1.0)}, "negative or NaN"),
        ({"weight": np.full(60, np.nan)}, "negative or NaN"),
        ({"labels": np.full(60, 3)}, "A label is 3; with 3 classes the highest index is 2"),
    ],
)
def test_bad_labels_and_weights_raise_errors(
    votes: Votes, labels: np.ndarray, change: dict[str, np.ndarray], sentence: str
) -> None:
    given = {"labels": labels, "weight": None} | change
    with pytest.raises(JudgeBayesError, match=sentence):
        training(votes, given["labels"], given["weight"])


def test_certain_is_a_point_mass() -> None:
    np.testing.assert_array_equal(np.exp(certain(jnp.array([2, 0]), 3)), [[0, 0, 1], [1, 0, 0]])


def test_log_mean_exp_averages_probabilities() -> None:
    p = jnp.array([[[0.2, 0.8]], [[0.6, 0.4]]])
    np.testing.assert_allclose(np.exp(log_mean_exp(jnp.log(p))), [[0.4, 0.6]], rtol=1e-6)
