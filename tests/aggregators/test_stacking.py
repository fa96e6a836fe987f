import jax
import jax.numpy as jnp
import numpy as np
import pytest
from panels import judged

from judgebayes import Laplace, OneCoin, Stacking, Status
from judgebayes.measures.scores import mean_score, nll
from judgebayes.votes import Votes


@pytest.fixture(scope="module")
def copied() -> tuple[Votes, np.ndarray]:
    """Two good judges and six copies of a poor one: strongly dependent errors."""
    votes, labels = judged(np.array([0.85, 0.8, 0.6]), 600, seed=0)
    index = np.asarray(votes.index)[:, [0, 1] + [2] * 6]
    with jax.enable_x64(True):
        return Votes(jnp.asarray(index), None, None, None, 2), labels


def test_copies_are_not_counted_again(copied: tuple[Votes, np.ndarray]) -> None:
    votes, labels = copied
    some = np.where(np.arange(600) < 200, labels, -1)
    rest = np.arange(200, 600)

    def score(method: OneCoin | Stacking) -> float:
        log_probs = method.fit(votes, some)(votes.take(rest))
        return float(mean_score(nll, log_probs, labels[rest]))

    assert score(Stacking()) < score(OneCoin()) - 0.02


def test_it_converges_and_tau_is_that_of_a_finer_search(copied: tuple[Votes, np.ndarray]) -> None:
    fit = Stacking().fit(*copied)
    assert int(fit.status) == Status.CONVERGED
    finer = Stacking(Laplace(scales=40)).fit(*copied)
    ratio = float(fit.draws["tau"][0] / finer.draws["tau"][0])
    assert abs(np.log(ratio)) < 0.3  # half a step of the coarser search
    np.testing.assert_allclose(np.exp(fit(copied[0])), np.exp(finer(copied[0])), atol=0.01)
    assert "weight" in repr(fit)


def test_known_label_noise_undoes_the_shrinking_of_weights() -> None:
    votes, labels = judged(np.array([0.9, 0.9, 0.9]), 4000, seed=5)
    noisy_labels = np.where(np.random.default_rng(0).random(4000) < 0.2, 1 - labels, labels)
    clean = Stacking().fit(votes, labels).reliability()
    with_noise = Stacking(label_noise=0.2).fit(votes, noisy_labels).reliability(0.999)
    ignorant = Stacking().fit(votes, noisy_labels).reliability()
    assert ((with_noise.low < clean.mean) & (clean.mean < with_noise.high)).all()
    assert (ignorant.mean < 0.8 * clean.mean).all()
