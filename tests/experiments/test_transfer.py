import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.betaconform.paper_em import PaperEM
from judgebayes.experiments.betaconform.pooling import PooledBetaBinomial, limited
from judgebayes.experiments.betaconform.transfer_weights import (
    TransferWeights,
    swapped_components,
    transfer,
)
from judgebayes.majority import BetaBinomial, Counts, Thinning, counts_of

E = np.array([[1.0, 0.0, 1.0], [1.0, 0.2, 0.8], [0.0, 1.0, 0.1]])
R = np.array([10, 200, 1000])


def simulate(hard: float, items: int, seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    chance = np.where(rng.random(items) < hard, rng.beta(1, 3, items), rng.beta(9, 1, items))
    return counts_of(rng.binomial(7, chance), 7)


def test_the_weights_match_eq_14() -> None:
    weights = TransferWeights(slope=4.0, threshold=0.3)(E, R)
    for index in range(3):
        cosine = E[0] @ E[index] / (np.linalg.norm(E[0]) * np.linalg.norm(E[index]))
        expected = np.log(R[index]) / (1 + np.exp(-4 * (cosine - 0.3)))
        assert weights[index] == pytest.approx(expected, rel=1e-12)


@in_float64
def test_transfer_averages_shares_alphas_and_betas() -> None:
    fits = [PaperEM().fit(simulate(h, n, s)) for h, n, s in ((0.3, 10, 0), (0.2, 100, 1))]
    both = transfer(fits, np.array([1.0, 3.0]))
    for name, of in {
        "share": lambda theta: theta.share,
        "alpha": lambda theta: theta.mean / theta.dispersion,
        "beta": lambda theta: (1 - theta.mean) / theta.dispersion,
    }.items():
        one, other = (np.asarray(of(f.theta)) for f in fits)
        np.testing.assert_allclose(of(both.theta), (one + 3 * other) / 4, rtol=1e-9, err_msg=name)
    with pytest.raises(JudgeBayesError, match="one weight per fit"):
        transfer(fits, np.ones(3))


def test_the_result_depends_on_the_order_of_the_components() -> None:
    """The same distributions with components in the other order have another average."""
    fits = [PaperEM().fit(simulate(h, n, s)) for h, n, s in ((0.3, 10, 0), (0.2, 100, 1))]
    swapped = swapped_components(fits[1])
    np.testing.assert_allclose(swapped.estimate((7,)), fits[1].estimate((7,)), atol=1e-12)
    weights = np.array([1.0, 1.0])
    one = transfer(fits, weights).estimate((7,))
    other = transfer([fits[0], swapped], weights).estimate((7,))
    assert abs(float(one[0] - other[0])) > 0.03


@pytest.fixture(scope="module")
def pool() -> list[Counts]:
    lucky = counts_of(np.array([7, 7, 7, 7, 7, 7, 7, 7, 6, 6]), 7)
    return [lucky, *(simulate(h, 300, s) for s, h in enumerate((0.2, 0.3, 0.25)))]


@in_float64
def test_pooling_changes_an_estimate_by_a_limited_amount(pool: list[Counts]) -> None:
    own = BetaBinomial(2).fit(pool[0])
    pooled = PooledBetaBinomial().fit(pool).of(0)
    sizes = (1, 3, 5, 7)
    variance = Thinning().fit(pool[0]).posterior(sizes).variance
    one, other = (np.asarray(fit.estimate(sizes)) for fit in (own, pooled))
    mixture = limited(own, pooled, pool[0])
    change = np.asarray(mixture.estimate(sizes)) - one
    assert np.abs(change).mean() == pytest.approx(0.25 * np.sqrt(variance).mean(), rel=1e-9)
    share = change / (other - one)
    np.testing.assert_allclose(share, share[0], rtol=1e-9)  # a mixture of the two distributions
    both = (1 - share[0]) * own.pmf(7) + share[0] * pooled.pmf(7)
    np.testing.assert_allclose(mixture.pmf(7), both, atol=1e-12)
    for reach, same in ((0.0, one), (np.inf, other)):
        np.testing.assert_allclose(
            limited(own, pooled, pool[0], reach=reach).estimate(sizes), same, atol=1e-12
        )
    with pytest.raises(JudgeBayesError, match="a reach of 0 or more"):
        limited(own, pooled, pool[0], reach=-1.0)
