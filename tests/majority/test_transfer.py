import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import MAP, Status
from judgebayes.majority import (
    BetaBinomial,
    Counts,
    PaperEM,
    PooledBetaBinomial,
    Sources,
    Thinning,
    TransferWeights,
    WidthRule,
    beta_conform,
    counts_of,
    limited,
    mean_embeddings,
    sentence_embeddings,
    swapped_components,
    tfidf_embeddings,
    transfer,
)

E = np.array([[1.0, 0.0, 1.0], [1.0, 0.2, 0.8], [0.0, 1.0, 0.1]])
R = np.array([10, 200, 1000])


def made(hard: float, items: int, seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    chance = np.where(rng.random(items) < hard, rng.beta(1, 3, items), rng.beta(9, 1, items))
    return counts_of(rng.binomial(7, chance), 7)


def test_the_weights_are_eq_14_written_out() -> None:
    found = TransferWeights(slope=4.0, threshold=0.3)(E, R)
    for place in range(3):
        cosine = E[0] @ E[place] / (np.linalg.norm(E[0]) * np.linalg.norm(E[place]))
        expected = np.log(R[place]) / (1 + np.exp(-4 * (cosine - 0.3)))
        assert found[place] == pytest.approx(expected, rel=1e-12)


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
    fits = [PaperEM().fit(made(h, n, s)) for h, n, s in ((0.3, 10, 0), (0.2, 100, 1))]
    both = transfer(fits, np.array([1.0, 3.0]))
    for name in ("share", "alpha", "beta"):
        one, other = (np.asarray(getattr(f.theta, name)) for f in fits)
        np.testing.assert_allclose(getattr(both.theta, name), (one + 3 * other) / 4, rtol=1e-9)
    with pytest.raises(JudgeBayesError, match="one weight per fit"):
        transfer(fits, np.ones(3))


def test_the_answer_depends_on_the_names_of_the_components() -> None:
    """The same distributions, their components named the other way round: another average."""
    fits = [PaperEM().fit(made(h, n, s)) for h, n, s in ((0.3, 10, 0), (0.2, 100, 1))]
    turned = swapped_components(fits[1])
    np.testing.assert_allclose(turned.estimate((7,)), fits[1].estimate((7,)), atol=1e-12)
    weights = np.array([1.0, 1.0])
    one = transfer(fits, weights).estimate((7,))
    other = transfer([fits[0], turned], weights).estimate((7,))
    assert abs(float(one[0] - other[0])) > 0.03


def test_algorithm_1_stops_by_itself_or_transfers() -> None:
    stream = made(0.25, 150, 5)
    fit, used = beta_conform(stream)
    assert 57 <= used < 80
    np.testing.assert_allclose(
        fit.estimate((7,)), PaperEM().fit(stream.take(np.arange(used))).estimate((7,))
    )
    few, _ = beta_conform(stream, rule=WidthRule(0.4), method=BetaBinomial(1, MAP(starts=1)))
    assert few.theta.mean.shape == (1, 1)
    ten = stream.take(np.arange(10))
    sources = Sources([PaperEM().fit(made(0.2, 200, 6))], np.array([200]), E[:2])
    moved, used = beta_conform(ten, sources=sources)
    assert used == 10
    by_hand = transfer(
        [PaperEM().fit(ten), *sources.fits], TransferWeights()(E[:2], np.array([10, 200]))
    )
    np.testing.assert_allclose(moved.estimate((7,)), by_hand.estimate((7,)))
    mixed = counts_of(np.array([3, 3]), np.array([3, 5]))
    with pytest.raises(JudgeBayesError, match="the same number for all"):
        beta_conform(mixed)


@pytest.fixture(scope="module")
def pool() -> list[Counts]:
    lucky = counts_of(np.array([7, 7, 7, 7, 7, 7, 7, 7, 6, 6]), 7)
    return [lucky, *(made(h, 300, s) for s, h in enumerate((0.2, 0.3, 0.25)))]


def test_pooling_moves_few_labels_and_leaves_many(pool: list[Counts]) -> None:
    fit = PooledBetaBinomial().fit(pool)
    assert int(fit.by_set.status) == Status.CONVERGED
    alone = [float(BetaBinomial(2).fit(c).estimate((7,))[0]) for c in pool]
    together = [float(fit.of(place).estimate((7,))[0]) for place in range(4)]
    rest = np.mean(alone[1:])
    assert alone[0] < 0.05 < 0.2 < rest
    assert abs(together[0] - rest) < 0.8 * abs(alone[0] - rest)
    np.testing.assert_allclose(together[1:], alone[1:], atol=0.03)


def test_pooling_obeys_the_laws(pool: list[Counts]) -> None:
    def answers(sets: list[Counts], **more: object) -> np.ndarray:
        fit = PooledBetaBinomial().fit(sets, **more)
        return np.array([fit.of(i).estimate((1, 7)) for i in range(len(sets))])

    plain = answers(pool)
    np.testing.assert_allclose(answers(pool[::-1])[::-1], plain, atol=1e-6)
    weight = [np.where(np.arange(len(c.correct)) < 5, 2.0, 1.0) for c in pool]
    weight[1][50:] = 0
    again = [
        c.take(np.repeat(np.arange(len(w)), w.astype(int)))
        for c, w in zip(pool, weight, strict=True)
    ]
    np.testing.assert_allclose(answers(pool, weight=weight), answers(again), atol=1e-6)
    with pytest.raises(JudgeBayesError, match="two data sets or more"):
        PooledBetaBinomial().fit(pool[:1])


@in_float64
def test_pooling_moves_an_answer_by_a_limited_way(pool: list[Counts]) -> None:
    own = BetaBinomial(2).fit(pool[0])
    together = PooledBetaBinomial().fit(pool).of(0)
    sizes = (1, 3, 5, 7)
    _, variance = Thinning().fit(pool[0]).moments(sizes)
    one, other = (np.asarray(fit.estimate(sizes)) for fit in (own, together))
    found = limited(own, together, pool[0])
    moved = np.asarray(found.estimate(sizes)) - one
    assert np.abs(moved).mean() == pytest.approx(0.25 * np.sqrt(variance).mean(), rel=1e-9)
    share = moved / (other - one)
    np.testing.assert_allclose(share, share[0], rtol=1e-9)  # a mixture of the two distributions
    both = (1 - share[0]) * own.pmf(7) + share[0] * together.pmf(7)
    np.testing.assert_allclose(found.pmf(7), both, atol=1e-12)
    for reach, same in ((0.0, one), (np.inf, other)):
        np.testing.assert_allclose(
            limited(own, together, pool[0], reach=reach).estimate(sizes), same, atol=1e-12
        )
    with pytest.raises(JudgeBayesError, match="a number from 0"):
        limited(own, together, pool[0], reach=-1.0)


def test_tfidf_tells_topics_apart() -> None:
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


def test_without_sentence_transformers_it_says_how_to_get_them() -> None:
    with pytest.raises(JudgeBayesError, match=r"pip install 'judgebayes\[embeddings\]'"):
        sentence_embeddings([["a"]], "any")
