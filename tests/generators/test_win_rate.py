"""The win rate: against Beta posteriors and enumeration, its laws, and a simulation."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float, Int
from scipy.special import expit
from scipy.stats import beta, norm

from judgebayes.errors import JudgeBayesError
from judgebayes.generators.logit_mixture import (
    NO_SCORE,
    SLOPES,
    Design,
    consensus,
    draw_logits,
    standardised,
    verdicts,
    weighted_score,
)
from judgebayes.generators.win_rate import WinRates, WinScores, win_rates, win_scores
from judgebayes.votes import MISSING, UNDECIDED, Votes


def votes_of(index: Int[np.ndarray, "item judge sample"], n_classes: int = 2) -> Votes:
    return Votes(jnp.asarray(index), None, None, None, n_classes)


def world(
    seed: int, n_items: int = 200, judges: int = 4, *, ties: bool = False
) -> tuple[Votes, Float[np.ndarray, " item"]]:
    """Return votes of judges who are right three times in four, and the outcomes."""
    rng = np.random.default_rng(seed)
    n_classes = 3 if ties else 2
    truth = rng.integers(0, n_classes, n_items)
    other = rng.integers(0, n_classes, (n_items, judges, 2))
    index = np.where(rng.random(other.shape) < 0.6, truth[:, None, None], other)
    return votes_of(index, n_classes), truth / (n_classes - 1)


def shown(outcome: Float[np.ndarray, " item"], n: int) -> Float[np.ndarray, " item"]:
    return np.where(np.arange(len(outcome)) < n, outcome, np.nan)


def answer(votes: Votes, outcome: Float[np.ndarray, " item"], **options: object) -> WinRates:
    return win_rates(win_scores(verdicts(votes), outcome), outcome, **options)  # type: ignore[arg-type]


def ends(fit: WinRates, rate: int = 0) -> np.ndarray:
    return fit.quantiles([0.05, 0.5, 0.95], rate)[:, 0]


@pytest.mark.parametrize(("won", "n"), [(8, 20), (0, 20), (20, 20), (3, 5), (45, 50), (1, 1)])
def test_labels_alone_have_the_beta_posterior_of_a_share(won: int, n: int) -> None:
    outcome = np.full(100_000, np.nan)
    outcome[:n] = np.arange(n) < won
    expected = beta.ppf([0.05, 0.5, 0.95], won + 0.5, n - won + 0.5)
    for target in ("these", "more"):
        fit = win_rates(WinScores([], []), outcome, target=target)
        np.testing.assert_allclose(ends(fit), expected, atol=0.012)
        assert fit.from_votes == 0


def test_the_posterior_is_that_of_a_grid() -> None:
    rng = np.random.default_rng(3)
    score = standardised(rng.standard_normal(25))
    assert score is not None
    y = (rng.random(25) < expit(1.5 * score)).astype(float)
    drawn = draw_logits([score], y, 1.0, Design(np.ones((len(y), 1)), np.full(1, np.inf)))
    a, b = np.meshgrid(np.linspace(-8, 8, 321), np.linspace(-8, 12, 401), indexing="ij")
    step = (16 / 320) * (20 / 400)
    fits = (y * np.log(expit(a[..., None] + b[..., None] * score))).sum(-1)
    fits += ((1 - y) * np.log(expit(-a[..., None] - b[..., None] * score))).sum(-1)
    jeffreys = 0.5 * np.log(expit(a)) + 0.5 * np.log(expit(-a))
    for one, scale in zip(drawn[1:], SLOPES, strict=True):
        density = np.exp(fits + jeffreys) * norm.pdf(b, scale=scale)
        evidence = density.sum() * step * (1 - NO_SCORE) / len(SLOPES)
        weight = np.exp(one.log_weight)
        assert weight.sum() == pytest.approx(evidence, rel=0.03)
        for place, axis in enumerate((a, b)):
            mean = (density * axis).sum() / density.sum()
            ours = weight @ one.coefficients[:, place] / weight.sum()
            assert ours == pytest.approx(mean, abs=0.05 * (1 + abs(mean)))


@pytest.mark.parametrize("ties", ["half", "excluded", "separate"])
def test_rates_are_those_of_enumerated_outcomes(ties: str) -> None:
    # With one parameter vector, the rates have the mean and the variance of all possible outcomes.
    votes, outcome = world(5, 40, ties=True)
    fit = answer(votes, shown(outcome, 35), ties=ties, can_tie=True)
    assert ((fit.least <= ends(fit)[0]) & (ends(fit)[2] <= fit.most))[0, 0]
    n, known = 40, outcome[:35]
    possible = []
    for rest in product((0.0, 0.5, 1.0), repeat=5):
        whole = np.r_[known, rest]
        win, tie = (whole == 1).mean(), (whole == 0.5).mean()
        possible.append({"half": win + tie / 2, "separate": win, "excluded": win / (1 - tie)}[ties])
    assert min(possible) <= ends(fit)[0] <= ends(fit)[2] <= max(possible)
    for rate, kind in ((1, 1.0), (2, 0.5), (3, 0.0)):
        count = (known == kind).sum()
        low, _, high = ends(fit, rate)
        assert count / n <= low <= high <= (count + 5) / n
    assert ends(fit, 1)[1] + ends(fit, 2)[1] + ends(fit, 3)[1] == pytest.approx(1, abs=0.02)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.integers(8, 60), st.booleans(), st.sampled_from(["these", "more"]))
def test_swapping_the_responses_mirrors_the_answer(
    seed: int, n: int, ties: bool, target: str
) -> None:
    votes, outcome = world(seed, ties=ties)
    index = np.asarray(votes.index)
    turned = votes_of(votes.n_classes - 1 - index, votes.n_classes)
    one = answer(votes, shown(outcome, n), target=target)
    other = answer(turned, 1 - shown(outcome, n), target=target)
    np.testing.assert_allclose(ends(other), 1 - ends(one)[::-1], atol=1e-6)
    np.testing.assert_allclose(other.better(), 1 - one.better(), atol=1e-6)


@pytest.mark.parametrize("target", ["these", "more"])
def test_the_order_of_judges_and_names_of_groups_do_not_matter(target: str) -> None:
    votes, outcome = world(2)
    groups = np.arange(200) // 4
    one = answer(votes, shown(outcome, 60), target=target, groups=groups)
    other = answer(
        votes_of(np.asarray(votes.index)[:, ::-1]),
        shown(outcome, 60),
        target=target,
        groups=1000 - 3 * groups,
    )
    np.testing.assert_allclose(ends(one), ends(other), atol=1e-6)


def test_intervals_cover_where_the_naive_rate_is_wrong() -> None:
    # Judges who favour A: the rate of the votes is far off, the intervals are not.
    covered, replays = 0, 60
    for seed in range(replays):
        rng = np.random.default_rng(seed)
        outcome = (rng.random(300) < 0.4).astype(float)
        for_a = np.where(outcome == 1, 0.95, 0.5)[:, None, None]
        votes = votes_of((rng.random((300, 3, 1)) < for_a).astype(int))
        low, _, high = ends(answer(votes, shown(outcome, 40)))
        covered += low <= outcome.mean() <= high
        assert verdicts(votes).rate("half") > outcome.mean() + 0.15
    assert covered >= 47  # 90 % of 60 are 54; P(46 or fewer) is 0.001


def test_pairs_of_systems() -> None:
    rng = np.random.default_rng(0)
    strength, pairs = np.array([1.2, 0.0, -1.2]), [(0, 1), (0, 2), (1, 2)]
    pair = np.arange(600) % 3
    gap = np.array([strength[a] - strength[b] for a, b in pairs])
    outcome = (rng.random(600) < expit(gap[pair])).astype(float)
    index = np.where(
        rng.random((600, 3, 1)) < 0.8, outcome[:, None, None], 1 - outcome[:, None, None]
    )
    votes = votes_of(index.astype(int))
    fit = answer(votes, shown(outcome, 90), pairs=pairs, pair=pair)
    truth = np.array([outcome[pair == place].mean() for place in range(3)])
    low, middle, high = fit.quantiles([0.005, 0.5, 0.995])
    assert ((low <= truth) & (truth <= high)).all()
    draws = fit.draws(2000)
    assert draws.shape == (2000, 3)
    np.testing.assert_allclose(np.quantile(draws, 0.5, axis=0), middle, atol=0.02)
    assert (fit.better() > 0.9).all()


def test_verdicts_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    index = rng.integers(-2, 3, (30, 4, 3))
    ours = verdicts(votes_of(index, 3))
    for item, judge in product(range(30), range(4)):
        cast = [v for v in index[item, judge] if v != MISSING]
        values = [0.0 if v == UNDECIDED else v - 1.0 for v in cast]
        expected = np.mean(values) if values else np.nan
        np.testing.assert_allclose(ours.mean[item, judge], expected)
    for item in range(30):
        flat = index[item].ravel()
        three = [(flat == 2).sum(), np.isin(flat, (1, UNDECIDED)).sum(), (flat == 0).sum()]
        np.testing.assert_array_equal(ours.counts[item], three)
    twice = ours.swapped(np.ones(30, bool)).swapped(np.ones(30, bool))
    np.testing.assert_array_equal(twice.counts, ours.counts)
    win, tie, loss = ours.counts.sum(0)
    assert ours.rate("half") == pytest.approx((win + tie / 2) / (win + tie + loss))
    assert ours.rate("excluded") == pytest.approx(win / (win + loss))
    assert ours.rate("separate") == pytest.approx(win / (win + tie + loss))


def test_the_weighted_score_is_cross_fitted_and_silent_with_few_labels() -> None:
    votes, outcome = world(0)
    mean = verdicts(votes).mean
    assert weighted_score(mean, shown(outcome, 3)) is None
    assert weighted_score(mean[:, :1], shown(outcome, 50)) is None
    score = weighted_score(mean, shown(outcome, 50))
    changed = shown(outcome, 50)
    changed[0] = 1 - changed[0]
    other = weighted_score(mean, changed)
    assert score is not None
    assert other is not None
    # The score of a labelled item comes from the labels of the others.
    assert other[0] == pytest.approx(score[0])
    assert other[1] != pytest.approx(score[1])
    assert np.corrcoef(score, consensus(mean))[0, 1] > 0.9


@pytest.mark.parametrize(
    ("outcome", "options", "message"),
    [
        ([np.nan], {}, "No item is labelled"),
        ([0.3], {}, "Outcomes must be"),
        ([1.0], {"ties": "third"}, "ties='third' is unknown"),
        ([1.0], {"target": "all"}, "target 'all' is unknown"),
    ],
)
def test_bad_input(outcome: list[float], options: dict[str, str], message: str) -> None:
    with pytest.raises(JudgeBayesError, match=message):
        win_rates(WinScores([], []), np.array(outcome), **options)  # type: ignore[arg-type]
