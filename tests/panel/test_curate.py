"""Panel selection against naive loops over panels, and the laws that a curated fit obeys."""

import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from judgebayes.aggregators import Aggregator, Calibrated, OneCoin
from judgebayes.aggregators.base import Training
from judgebayes.calibrators import Platt
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.panel.criteria import CrossValidated, InSample, folds_of, masked
from judgebayes.panel.curate import Curated, top_k
from judgebayes.panel.curators import (
    Curator,
    OnePerFamily,
    OracleTop,
    RandomPanel,
    TopAccuracy,
    families_of,
)
from judgebayes.panel.searches import BackwardElimination, Beam, Exhaustive, greedy_forward
from judgebayes.panel.sparse_logistic import L1Logistic, sparse_weights
from judgebayes.votes import Votes

ITEMS, JUDGES = 90, 6


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Coin:
    """The one-coin model of eq 1, as small as it gets: what is tested here is the selection."""

    def fit(
        self,
        votes: Votes,
        labels: Any,
        *,
        weight: Any = None,
        key: Any = None,  # noqa: ARG002
    ) -> "FittedCoin":
        labels, given = jnp.asarray(labels), votes.index[..., 0]
        used = jnp.where(labels >= 0, 1.0 if weight is None else weight, 0.0)[:, None]
        right = jnp.where(given == labels[:, None], used, 0.0).sum(0)
        cast = jnp.where(given >= 0, used, 0.0).sum(0)
        return FittedCoin(jnp.log(1 + right) - jnp.log(1 + cast - right), jnp.asarray(0))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedCoin:
    log_odds: Any
    status: Any

    def __call__(self, votes: Votes) -> Any:
        given = votes.index[..., 0]
        z = jnp.where(given < 0, 0, 2 * given - 1) @ self.log_odds
        return jnp.stack([jax.nn.log_sigmoid(-z), jax.nn.log_sigmoid(z)], 1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Known:
    """Answers 0.99 for given classes, whatever it is fitted to."""

    truth: Any
    status: Any = 0

    def fit(
        self,
        votes: Votes,  # noqa: ARG002
        labels: Any,  # noqa: ARG002
        *,
        weight: Any = None,  # noqa: ARG002
        key: Any = None,  # noqa: ARG002
    ) -> "Known":
        return self

    def __call__(self, votes: Votes) -> Any:  # noqa: ARG002
        return jnp.log(0.01 + 0.98 * jax.nn.one_hot(self.truth, 2))


LIGHT = Coin()
CURATORS: dict[str, Curator] = {
    "top": TopAccuracy(2),
    "family": OnePerFamily((0, 0, 1, 1, 2, 2)),
    "greedy": greedy_forward(2),
    "beam": Beam(3, width=2),
    "backward": BackwardElimination(),
    "exhaustive": Exhaustive(TopAccuracy(3)),
    "l1": L1Logistic(0.05),
    "random": RandomPanel(2),
    "folds": Beam(2, width=1, criterion=CrossValidated(3)),
}
curators = pytest.mark.parametrize("name", list(CURATORS))


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    found = np.random.default_rng(1).integers(0, 2, ITEMS).astype(np.int32)
    found[::9] = -1
    return found


@pytest.fixture(scope="module")
def votes(labels: np.ndarray) -> Votes:
    """Six judges of which the second copies the first, and one knows nothing."""
    rng = np.random.default_rng(2)
    truth = np.where(labels >= 0, labels, 0)
    right = rng.random((ITEMS, JUDGES)) < (0.85, 0.85, 0.8, 0.7, 0.5, 0.3)
    cast = np.where(right, truth[:, None], 1 - truth[:, None])
    cast[:, 1] = np.where(rng.random(ITEMS) < 0.9, cast[:, 0], cast[:, 1])
    cast = np.where(rng.random(cast.shape) < 0.1, -1, cast).astype(np.int32)
    with jax.enable_x64(True):
        return Votes(jnp.asarray(cast[..., None]), None, None, None, 2)


@in_float64
def panel_of(
    curator: Curator, votes: Votes, labels: np.ndarray, aggregator: Aggregator = LIGHT
) -> set[int]:
    fit = Curated(aggregator, curator).fit(votes, labels)
    return set(np.flatnonzero(np.asarray(fit.panel)).tolist())


def loss_of(panel: tuple[int, ...], votes: Votes, labels: np.ndarray) -> float:
    """The in-sample NLL of a panel, in NumPy, with the other judges taken out of the array."""
    given = np.asarray(votes.index)[labels >= 0][:, list(panel), 0]
    y = labels[labels >= 0]
    right, cast = (given == y[:, None]).sum(0), (given >= 0).sum(0)
    side = np.where(given < 0, 0, np.where(given == 1, 1.0, -1.0))
    z = side @ np.log((1 + right) / (1 + cast - right))
    return float(np.logaddexp(0, -np.where(y == 1, z, -z)).mean())


@in_float64
def test_a_masked_panel_answers_as_if_the_others_were_not_there(
    votes: Votes, labels: np.ndarray
) -> None:
    mask = np.array([True, False, True, True, False, False])
    inside = LIGHT.fit(masked(votes, mask), labels)(masked(votes, mask))
    alone = LIGHT.fit(votes.of_judges([0, 2, 3]), labels)(votes.of_judges([0, 2, 3]))
    np.testing.assert_allclose(inside, alone, atol=1e-9)


def test_top_accuracy_counts_as_one_counts_by_hand(votes: Votes, labels: np.ndarray) -> None:
    index = np.asarray(votes.index)[..., 0]
    mean = []
    for j in range(JUDGES):
        own = [(v, y) for v, y in zip(index[:, j], labels, strict=True) if v >= 0 and y >= 0]
        right = sum(v == y for v, y in own)
        mean.append((1 + right) / (2 + len(own)))
    for k in range(1, JUDGES + 1):
        best = set(np.argsort(mean)[::-1][:k].tolist())
        assert panel_of(TopAccuracy(k), votes, labels) == best
    families = (0, 0, 1, 1, 2, 2)
    by_hand = {max((2 * f, 2 * f + 1), key=lambda j: mean[j]) for f in range(3)}
    assert panel_of(OnePerFamily(families), votes, labels) == by_hand


def test_greedy_forward_is_the_loop(votes: Votes, labels: np.ndarray) -> None:
    chosen: tuple[int, ...] = ()
    for k in (1, 2, 3):
        rest = [j for j in range(JUDGES) if j not in chosen]
        chosen += (min(rest, key=lambda j: loss_of((*chosen, j), votes, labels)),)
        assert panel_of(greedy_forward(k), votes, labels) == set(chosen)


def test_beam_search_is_the_loop(votes: Votes, labels: np.ndarray) -> None:
    beams: list[frozenset[int]] = [frozenset()]
    seen: dict[frozenset[int], float] = {}
    for _ in range(3):
        grown = {b | {j} for b in beams for j in range(JUDGES) if j not in b}
        values = {p: loss_of(tuple(sorted(p)), votes, labels) for p in grown}
        seen |= values
        beams = sorted(values, key=lambda p: values[p])[:2]
    assert panel_of(Beam(3, width=2), votes, labels) == set(min(seen, key=lambda p: seen[p]))
    last = {p: v for p, v in seen.items() if len(p) == 3}
    best = set(min(last, key=lambda p: last[p]))
    assert panel_of(Beam(3, width=2, exact=True), votes, labels) == best


def test_a_beam_as_wide_as_all_panels_finds_the_best_one(votes: Votes, labels: np.ndarray) -> None:
    wide = panel_of(Beam(JUDGES, width=40), votes, labels)
    assert wide == panel_of(Exhaustive(TopAccuracy(JUDGES)), votes, labels)


def test_backward_elimination_is_the_loop(votes: Votes, labels: np.ndarray) -> None:
    panel = tuple(range(JUDGES))
    value = loss_of(panel, votes, labels)
    while len(panel) > 1:
        fewer = {tuple(i for i in panel if i != j): j for j in panel}
        best = min(fewer, key=lambda p: loss_of(p, votes, labels))
        if loss_of(best, votes, labels) >= value:
            break
        panel, value = best, loss_of(best, votes, labels)
    assert panel_of(BackwardElimination(), votes, labels) == set(panel)
    assert len(panel) < JUDGES


def test_exhaustive_search_tries_every_panel_of_its_pool(votes: Votes, labels: np.ndarray) -> None:
    for pool in (TopAccuracy(4), OnePerFamily((0, 0, 1, 1, 2, 3))):
        inside = sorted(panel_of(pool, votes, labels))
        every = [p for n in range(1, len(inside) + 1) for p in itertools.combinations(inside, n)]
        best = set(min(every, key=lambda p: loss_of(p, votes, labels)))
        assert panel_of(Exhaustive(pool), votes, labels) == best


@in_float64
def test_cross_validation_fits_without_the_fold(votes: Votes, labels: np.ndarray) -> None:
    key = jax.random.key(3)
    data = Training(votes, jnp.asarray(labels), jnp.ones(ITEMS), key)
    mask = jnp.asarray([True, True, True, False, True, False])
    found = CrossValidated(4)(LIGHT, data, mask)
    fold = np.asarray(folds_of(jnp.asarray(labels >= 0), key, 4))
    assert set(np.bincount(fold[labels >= 0]).tolist()) == {20}
    assert (fold[labels < 0] == -1).all()
    own, each = votes.of_judges([0, 1, 2, 4]), []
    for f in range(4):
        held = np.flatnonzero(fold == f)
        rest = np.flatnonzero((labels >= 0) & (fold != f))
        answers = np.asarray(LIGHT.fit(own.take(rest), labels[rest])(own.take(held)))
        each += (-answers[np.arange(len(held)), labels[held]]).tolist()
    assert float(found) == pytest.approx(np.mean(each))


@in_float64
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_the_sparse_regression_is_at_the_minimum(
    noise: float, votes: Votes, labels: np.ndarray
) -> None:
    data = Training(votes, jnp.asarray(labels), jnp.ones(ITEMS), jax.random.key(0))
    index = np.asarray(votes.index)[..., 0]
    x = np.where(index == 1, 1.0, np.where(index == 0, -1.0, 0.0))[labels >= 0]
    sign = 2.0 * labels[labels >= 0] - 1
    starts = [np.zeros(2 * JUDGES + 1)]
    starts += list(np.random.default_rng(0).uniform(0, 2, (4, 2 * JUDGES + 1)))
    for penalty in (0.002, 0.05):
        w, c = (np.asarray(a) for a in sparse_weights(data, penalty, noise))

        def objective(p: np.ndarray, penalty: float = penalty) -> float:
            z = x @ (p[:JUDGES] - p[JUDGES : 2 * JUDGES]) + p[-1]
            true = 1 / (1 + np.exp(-sign * z))
            seen = true * (1 - noise) + (1 - true) * noise
            return float(-np.log(seen).mean() + penalty * p[:-1].sum())

        bounds = [(0, None)] * (2 * JUDGES) + [(None, None)]
        least = min(
            optimize.minimize(objective, start, bounds=bounds, options={"ftol": 1e-14}).fun
            for start in starts
        )
        mine = objective(np.concatenate([np.maximum(w, 0), np.maximum(-w, 0), [c]]))
        assert mine <= least + 1e-7


def test_the_penalty_decides_how_many_judges_are_left(votes: Votes, labels: np.ndarray) -> None:
    assert 0 < len(panel_of(L1Logistic(0.05), votes, labels)) < JUDGES
    assert len(panel_of(L1Logistic(0.0), votes, labels)) == JUDGES
    assert panel_of(L1Logistic(9.0), votes, labels) == panel_of(TopAccuracy(1), votes, labels)
    several, _, seen = noisy(300, 0.2)
    unaware, told = (panel_of(L1Logistic(0.05, label_noise=e), several, seen) for e in (0.0, 0.2))
    assert told < unaware  # the same penalty weighs more


def noisy(items: int, noise: float) -> tuple[Votes, np.ndarray, np.ndarray]:
    """Votes of six independent judges, their true labels, and labels of which a share is wrong."""
    rng = np.random.default_rng(5)
    true = rng.integers(0, 2, items).astype(np.int32)
    right = rng.random((items, JUDGES)) < (0.9, 0.85, 0.8, 0.7, 0.5, 0.3)
    cast = np.where(right, true[:, None], 1 - true[:, None]).astype(np.int32)
    seen = np.where(rng.random(items) < noise, 1 - true, true).astype(np.int32)
    with jax.enable_x64(True):
        return Votes(jnp.asarray(cast[..., None]), None, None, None, 2), true, seen


@in_float64
def test_a_sparse_regression_told_of_label_noise_has_the_weights_of_the_true_labels() -> None:
    votes, true, seen = noisy(60_000, 0.2)

    def weights(labels: np.ndarray, noise: float) -> np.ndarray:
        data = Training(votes, jnp.asarray(labels), jnp.ones(len(true)), jax.random.key(0))
        return np.asarray(sparse_weights(data, 1e-5, noise)[0])

    best = weights(true, 0.0)
    far = {noise: np.abs(weights(seen, noise) - best).max() for noise in (0.0, 0.2)}
    assert far[0.2] < 0.15
    assert far[0.0] > 1.0


@pytest.mark.parametrize("kind", [InSample, CrossValidated])
@in_float64
def test_a_criterion_told_of_label_noise_scores_the_seen_labels(
    kind: type[InSample] | type[CrossValidated],
) -> None:
    votes, true, seen = noisy(400, 0.2)
    answers = np.asarray(Known(true)(votes))
    own = np.exp(answers)[np.arange(400), seen]
    data = Training(votes, jnp.asarray(seen), jnp.ones(400), jax.random.key(0))
    everyone = jnp.ones(JUDGES, bool)
    for noise in (0.0, 0.2):
        by_hand = -np.log(own * (1 - noise) + (1 - own) * noise).mean()
        found = kind(label_noise=noise)(Known(true), data, everyone)
        assert float(found) == pytest.approx(by_hand)


def test_the_oracle_ranks_by_the_labels_that_the_fit_does_not_see(
    votes: Votes, labels: np.ndarray
) -> None:
    hidden = np.where(np.arange(ITEMS) < 40, labels, -1)
    rest = np.flatnonzero(np.arange(ITEMS) >= 40)
    expected = panel_of(TopAccuracy(2), votes.take(rest), labels[rest])
    assert panel_of(OracleTop(labels, 2), votes, hidden) == expected
    with pytest.raises(JudgeBayesError, match="fit_on='all'"):
        Curated(LIGHT, OracleTop(labels, 2)).fit(votes.take(rest), labels[rest])


def test_random_panels_follow_the_key(votes: Votes, labels: np.ndarray) -> None:
    drawn = {
        tuple(
            np.flatnonzero(
                Curated(LIGHT, RandomPanel(2)).fit(votes, labels, key=jax.random.key(seed)).panel
            ).tolist()
        )
        for seed in range(12)
    }
    assert all(len(panel) == 2 for panel in drawn)
    assert len(drawn) > 3


def test_families_are_read_from_names_or_told() -> None:
    names = ["gpt-5.4", "gpt-5.4-mini", "Claude 3", "GPT-4/CoT", "gpt-4/Swap", "7b", "llama3"]
    assert families_of(names) == (0, 0, 1, 2, 2, 3, 4)
    assert families_of(["a", "b", "c"], {"a": "x", "b": "y", "c": "x"}) == (0, 1, 0)
    with pytest.raises(JudgeBayesError, match="do not name the judge 'b'"):
        families_of(["a", "b"], {"a": "x"})


@in_float64
def test_either_nesting_is_an_aggregator(votes: Votes, labels: np.ndarray) -> None:
    inner = Calibrated(top_k(OneCoin(), 2), Platt(), share=None).fit(votes, labels)
    outer = top_k(Calibrated(OneCoin(), Platt(), share=None), 2).fit(votes, labels)
    np.testing.assert_allclose(inner(votes), outer(votes), atol=1e-9)
    assert int(outer.status) == int(outer.aggregator.status)


def test_bad_requests_get_their_sentence(votes: Votes, labels: np.ndarray) -> None:
    for curator, sentence in (
        (TopAccuracy(7), "A panel of 7 was asked for; there are 6 judges"),
        (OnePerFamily((0, 1)), "2 families were given for 6 judges"),
        (Beam(0), "A panel of 0"),
    ):
        with pytest.raises(JudgeBayesError, match=sentence):
            Curated(LIGHT, curator).fit(votes, labels)
    with jax.enable_x64(True):
        index = jnp.zeros((4, 20, 1), jnp.int32)
        wide = Votes(index, None, None, None, 2)
        three = Votes(index, None, None, None, 3)
    four = np.array([0, 1, 0, 1])
    with pytest.raises(JudgeBayesError, match="at most 14 judges"):
        Curated(LIGHT, Exhaustive(TopAccuracy(15))).fit(wide, four)
    with pytest.raises(JudgeBayesError, match="two classes"):
        Curated(LIGHT, L1Logistic()).fit(three, four)


def test_in_sample_search_never_does_worse_in_sample_than_all_judges(
    votes: Votes, labels: np.ndarray
) -> None:
    everyone = loss_of(tuple(range(JUDGES)), votes, labels)
    for curator in (BackwardElimination(InSample()), Exhaustive(TopAccuracy(JUDGES), InSample())):
        chosen = tuple(sorted(panel_of(curator, votes, labels)))
        assert loss_of(chosen, votes, labels) <= everyone
