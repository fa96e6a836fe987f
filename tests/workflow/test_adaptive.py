"""The stopping rule against a brute-force twin and simulated items, and its laws."""

import itertools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import judgebayes as jb
from judgebayes import Davidson
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.getting import example_tables
from judgebayes.inference.fit import Fit
from judgebayes.measures.scores import absolute_loss
from judgebayes.votes import from_counts
from judgebayes.workflow.adaptive import share_prior, stopping_plan
from judgebayes.workflow.fit_file import VoteProfile, load_fit

N = 6
PRIOR = np.array([0.5, 0.3, 0.5])
BETA, ETA0, GAMMA = 2.0, 1.25, 1.125  # exact in 32 bits
LOSS = absolute_loss(3)


@pytest.fixture(scope="module")
def fitted() -> Fit:
    draws = {
        "beta": jnp.array([BETA]),
        "eta0": jnp.array([[ETA0]]),
        "gamma": jnp.array([[GAMMA]]),
    }
    done = jnp.array(0)
    return Fit(Davidson(), draws, done)


def davidson(low: int, tie: int, high: int) -> np.ndarray:
    """P1 eqs 2 to 5."""
    margin = 0.5 * np.log((high + 1) / (low + 1))
    evidence = np.log((tie + 1) / (low + tie + high + 1))
    p = np.exp([-BETA * margin, ETA0 + GAMMA * evidence, BETA * margin])
    return p / p.sum()


class Twin:
    """The docstring's formulas, by recursion over single votes, without tables."""

    def __init__(self, price: float, batch: int) -> None:
        self.price, self.batch = price, batch
        self.cache: dict[tuple[int, ...], tuple[float, float, float, bool]] = {}

    def chances(self, counts: tuple[int, ...], ahead: int) -> dict[tuple[int, ...], float]:
        chances: dict[tuple[int, ...], float] = {}
        for order in itertools.product(range(3), repeat=ahead):
            now, chance = list(counts), 1.0
            for vote in order:
                chance *= (PRIOR[vote] + now[vote]) / (PRIOR.sum() + sum(now))
                now[vote] += 1
            chances[tuple(now)] = chances.get(tuple(now), 0.0) + chance
        return chances

    def responsibilities(self, counts: tuple[int, ...]) -> np.ndarray:
        later = self.chances(counts, N - sum(counts))
        return sum((p * davidson(*then) for then, p in later.items()), np.zeros(3))

    def value(self, counts: tuple[int, ...]) -> tuple[float, float, float, bool]:
        """Return expected cost, final loss and votes, and whether the item is settled."""
        if counts not in self.cache:
            risk, votes = float((LOSS @ self.responsibilities(counts)).min()), sum(counts)
            value = (risk, risk, float(votes), True)
            if votes < N:
                ahead = min(self.batch, N - votes)
                later = [(p, self.value(then)) for then, p in self.chances(counts, ahead).items()]
                cost = self.price * ahead + sum(p * v[0] for p, v in later)
                if risk > cost + 1e-12 or votes < self.batch:
                    loss, used = (sum(p * v[k] for p, v in later) for k in (1, 2))
                    value = (cost, loss, used, False)
            self.cache[counts] = value
        return self.cache[counts]


def states(most: int = N) -> np.ndarray:
    every = itertools.product(range(most + 1), repeat=3)
    return np.array([counts for counts in every if sum(counts) <= most])


@pytest.mark.parametrize(("price", "batch"), [(0.02, 1), (0.005, 2), (0.05, 4)])
def test_the_rule_is_that_of_the_recursion(fitted: Fit, price: float, batch: int) -> None:
    rule = stopping_plan(fitted, PRIOR, N, batch=batch).rule(price)
    twin = Twin(price, batch)
    every = states()
    np.testing.assert_allclose(
        np.exp(rule.plan.log_probs(every)),
        [twin.responsibilities(tuple(c)) for c in every.tolist()],
        rtol=0,
        atol=1e-12,
    )
    expected = [twin.value(tuple(c))[3] for c in every.tolist()]
    assert rule.settled(every).tolist() == expected
    assert 0 < sum(expected) < len(expected)
    _, loss, votes, _ = twin.value((0, 0, 0))
    assert rule.loss == pytest.approx(loss, abs=1e-12)
    assert rule.votes == pytest.approx(votes, abs=1e-12)
    full = sum(p * (LOSS @ davidson(*then)).min() for then, p in twin.chances((0, 0, 0), N).items())
    assert rule.full_loss == pytest.approx(full, abs=1e-12)


def test_dearer_votes_are_fewer_and_the_tolerance_is_kept(fitted: Fit) -> None:
    plan = stopping_plan(fitted, PRIOR, N)
    rules = [plan.rule(price) for price in (0.0, 0.001, 0.01, 0.1, 1.0)]
    assert rules[0].loss == pytest.approx(rules[0].full_loss, abs=1e-12)
    assert all(
        a.votes >= b.votes and a.loss <= b.loss + 1e-12 for a, b in itertools.pairwise(rules)
    )
    assert rules[-1].votes == pytest.approx(1)
    for tolerance in (0.001, 0.004):
        rule = plan.within(tolerance)
        assert 0 <= rule.loss - rule.full_loss <= tolerance
        dearer = plan.rule(rule.price * 1.001)
        assert dearer.loss - dearer.full_loss > tolerance
    assert plan.within(5.0).price == 1.0


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_prior_of_the_shares_is_estimated_from_their_moments(symmetric: bool) -> None:
    rng = np.random.default_rng(5)
    truth = np.array([0.6, 0.4, 0.6 if symmetric else 1.4])
    shares = rng.dirichlet(truth, 40_000)
    counts = np.stack([rng.multinomial(8, p) for p in shares]) / 8
    if symmetric:
        counts = np.concatenate([counts[:20_000], counts[20_000:, ::-1]])
    votes = VoteProfile(len(counts), counts.mean(0).tolist(), np.cov(counts.T).tolist(), 8.0)
    np.testing.assert_allclose(share_prior(votes, symmetric=symmetric), truth, rtol=0.05)


def test_invalid_arguments_are_refused(fitted: Fit) -> None:
    once = VoteProfile(10, [0.5, 0.0, 0.5], np.eye(3).tolist(), 1.0)
    with pytest.raises(JudgeBayesError, match="needs two or more"):
        share_prior(once, symmetric=True)
    plan = stopping_plan(fitted, PRIOR, N)
    with pytest.raises(JudgeBayesError, match="accepted increase of the loss"):
        plan.within(-1.0)
    with pytest.raises(JudgeBayesError, match="too many possible counts"):
        stopping_plan(fitted, PRIOR, 500)
    with pytest.raises(JudgeBayesError, match="allows at most 6"):
        plan.rule(0.1).settled(np.array([[7, 0, 0]]))
    # Votes that all agree, or are like coins, still have a prior.
    for spread in (np.zeros((3, 3)), np.diag([0.25, 0, 0.25])):
        prior = share_prior(VoteProfile(9, [0.5, 0.0, 0.5], spread.tolist(), 4.0), symmetric=True)
        assert (prior > 0).all()


def test_a_fit_to_items_with_different_numbers_of_votes_expects_no_others(tmp_path: Path) -> None:
    votes, gold = example_tables(0)
    uneven = votes.drop(index=votes.index[0])
    jb.save(jb.calibrate(uneven, gold, method="davidson", splits=2), tmp_path / "fit.json")
    assert load_fit(tmp_path / "fit.json").notes["votes_of_each"] == 0
    applied = jb.apply(tmp_path / "fit.json", votes[votes["sample"] <= 5])
    assert not any("votes that the fit was made on" in line for line in applied.sentences)


def test_items_with_fewer_votes_get_the_expectation_over_the_others(tmp_path: Path) -> None:
    """Davidson's formula at 8 votes, averaged over the votes that an item lacks; not that at 5 votes."""
    votes, gold = example_tables(0)
    jb.save(jb.calibrate(votes, gold, method="davidson", splits=2), tmp_path / "fit.json")
    whole = jb.apply(tmp_path / "fit.json", votes)
    fewer = jb.apply(tmp_path / "fit.json", votes[votes["sample"] <= 5])
    assert any("600 item(s) have fewer than the 8 votes" in line for line in fewer.sentences)
    assert not any("(median)" in line for line in [*fewer.sentences, *whole.sentences])
    saved = load_fit(tmp_path / "fit.json")
    fit = getattr(saved.fitted, "probabilities", saved.fitted)  # of a rule that decides
    prior = share_prior(saved.profile, symmetric=True)
    counts = np.asarray(fewer.given.votes.pooled_counts()).astype(int)
    rest = np.array([c for c in np.ndindex(4, 4, 4) if sum(c) == 3])
    for item in (0, 1, 17):
        probs = np.exp(np.asarray(fit(from_counts(counts[item] + rest))))
        chance = stats.dirichlet_multinomial.pmf(rest, prior + counts[item], 3)
        np.testing.assert_allclose(
            np.exp(np.asarray(fewer.log_probs[item])), chance @ probs, atol=1e-6
        )
