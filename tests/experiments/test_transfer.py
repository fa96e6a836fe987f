import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.betaconform.embeddings import (
    mean_embeddings,
    sentence_embeddings,
    tfidf_embeddings,
)
from judgebayes.experiments.betaconform.paper_em import PaperEM
from judgebayes.experiments.betaconform.pooling import PooledBetaBinomial, limited
from judgebayes.experiments.betaconform.transfer_weights import (
    TransferWeights,
    swapped_components,
    transfer,
)
from judgebayes.inference import Status
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


def test_the_ablations_of_table_5() -> None:
    plain = TransferWeights()(E, R)
    np.testing.assert_allclose(TransferWeights(size="count")(E, R) / R, plain / np.log(R))
    unsquashed = TransferWeights(sigmoid=False)(E, R) / np.log(R)
    assert unsquashed[0] == pytest.approx(1)
    distance = TransferWeights(similarity="reciprocal-distance", sigmoid=False)(E, R) / np.log(R)
    assert distance[1] == pytest.approx(1 / np.linalg.norm(E[1] - E[0]))
    assert distance[0] == pytest.approx(distance[1])
    with pytest.raises(JudgeBayesError, match="two labels or more each"):
        TransferWeights()(E, np.array([1, 5, 5]))


@in_float64
def test_transfer_averages_shares_alphas_and_betas() -> None:
    fits = [PaperEM().fit(simulate(h, n, s)) for h, n, s in ((0.3, 10, 0), (0.2, 100, 1))]
    both = transfer(fits, np.array([1.0, 3.0]))
    for name in ("share", "alpha", "beta"):
        one, other = (np.asarray(getattr(f.theta, name)) for f in fits)
        np.testing.assert_allclose(getattr(both.theta, name), (one + 3 * other) / 4, rtol=1e-9)
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


def test_pooling_changes_fits_of_few_labels_only(pool: list[Counts]) -> None:
    fit = PooledBetaBinomial().fit(pool)
    assert int(fit.by_set.status) == Status.CONVERGED
    separate = [float(BetaBinomial(2).fit(c).estimate((7,))[0]) for c in pool]
    pooled = [float(fit.of(index).estimate((7,))[0]) for index in range(4)]
    rest = np.mean(separate[1:])
    assert separate[0] < 0.05 < 0.2 < rest
    assert abs(pooled[0] - rest) < 0.8 * abs(separate[0] - rest)
    np.testing.assert_allclose(pooled[1:], separate[1:], atol=0.03)


def test_pooling_obeys_the_laws(pool: list[Counts]) -> None:
    def estimates(sets: list[Counts], **more: object) -> np.ndarray:
        fit = PooledBetaBinomial().fit(sets, **more)
        return np.array([fit.of(i).estimate((1, 7)) for i in range(len(sets))])

    plain = estimates(pool)
    np.testing.assert_allclose(estimates(pool[::-1])[::-1], plain, atol=1e-6)
    weight = [np.where(np.arange(len(c.correct)) < 5, 2.0, 1.0) for c in pool]
    weight[1][50:] = 0
    repeated = [
        c.take(np.repeat(np.arange(len(w)), w.astype(int)))
        for c, w in zip(pool, weight, strict=True)
    ]
    np.testing.assert_allclose(estimates(pool, weight=weight), estimates(repeated), atol=1e-6)
    with pytest.raises(JudgeBayesError, match="two data sets or more"):
        PooledBetaBinomial().fit(pool[:1])


@in_float64
def test_pooling_changes_an_estimate_by_a_limited_amount(pool: list[Counts]) -> None:
    own = BetaBinomial(2).fit(pool[0])
    pooled = PooledBetaBinomial().fit(pool).of(0)
    sizes = (1, 3, 5, 7)
    _, variance = Thinning().fit(pool[0]).moments(sizes)
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


def test_tfidf_separates_topics() -> None:
    cooking = ["boil the rice in water", "fry the rice with an egg"]
    sums = ["add two numbers and print them", "print the sum of numbers"]
    mean = mean_embeddings(tfidf_embeddings([cooking, sums, cooking[:1]]))
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    assert unit[0] @ unit[2] > 0.5 > unit[0] @ unit[1]
    with pytest.raises(JudgeBayesError, match="Data set 1 has no text"):
        tfidf_embeddings([cooking, []])
    with pytest.raises(JudgeBayesError, match="no word"):
        tfidf_embeddings([["!"]])
    with pytest.raises(JudgeBayesError, match="the same features"):
        mean_embeddings([np.zeros((2, 3)), np.zeros((2, 4))])


def test_missing_sentence_transformers_are_reported_with_the_install_command() -> None:
    with pytest.raises(JudgeBayesError, match=r"pip install 'judgebayes\[embeddings\]'"):
        sentence_embeddings([["a"]], "any")
