"""Panel selection against naive loops over panels, and properties of a curated fit."""

import itertools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.calibrate_dont_curate.curators import OnePerFamily, families_of
from judgebayes.experiments.calibrate_dont_curate.searches import (
    BackwardElimination,
    Beam,
    Exhaustive,
    greedy_forward,
)
from judgebayes.experiments.calibrate_dont_curate.sparse_logistic import sparse_weights
from judgebayes.inference.fit import Method, Training
from judgebayes.panel.judges import Curated, Curator, TopAccuracy, masked
from judgebayes.votes import Votes

ITEMS, JUDGES = 90, 6


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Coin:
    """A minimal one-coin model (eq 1), to test the selection only."""

    def fit(
        self,
        votes: Votes,
        labels: Any,
        *,
        weight: Any = None,
        key: Any = None,  # noqa: ARG002
    ) -> "FittedCoin":
        labels, cast_index = jnp.asarray(labels), votes.index[..., 0]
        used = jnp.where(labels >= 0, 1.0 if weight is None else weight, 0.0)[:, None]
        right = jnp.where(cast_index == labels[:, None], used, 0.0).sum(0)
        cast = jnp.where(cast_index >= 0, used, 0.0).sum(0)
        return FittedCoin(jnp.log(1 + right) - jnp.log(1 + cast - right), jnp.asarray(0))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedCoin:
    log_odds: Any
    status: Any

    def __call__(self, votes: Votes) -> Any:
        cast_index = votes.index[..., 0]
        z = jnp.where(cast_index < 0, 0, 2 * cast_index - 1) @ self.log_odds
        return jnp.stack([jax.nn.log_sigmoid(-z), jax.nn.log_sigmoid(z)], 1)


LIGHT = Coin()


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    array = np.random.default_rng(1).integers(0, 2, ITEMS).astype(np.int32)
    array[::9] = -1
    return array


@pytest.fixture(scope="module")
def votes(labels: np.ndarray) -> Votes:
    """Six judges: the second copies the first, and one votes at random."""
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
    curator: Curator, votes: Votes, labels: np.ndarray, aggregator: Method = LIGHT
) -> set[int]:
    fit = Curated(aggregator, curator).fit(votes, labels)
    return set(np.flatnonzero(np.asarray(fit.first["panel"])).tolist())


def loss_of(panel: tuple[int, ...], votes: Votes, labels: np.ndarray) -> float:
    """The in-sample NLL of a panel, in NumPy, without the other judges in the array."""
    cast_index = np.asarray(votes.index)[labels >= 0][:, list(panel), 0]
    y = labels[labels >= 0]
    right, cast = (cast_index == y[:, None]).sum(0), (cast_index >= 0).sum(0)
    side = np.where(cast_index < 0, 0, np.where(cast_index == 1, 1.0, -1.0))
    z = side @ np.log((1 + right) / (1 + cast - right))
    return float(np.logaddexp(0, -np.where(y == 1, z, -z)).mean())


@in_float64
def test_a_masked_panel_equals_the_panel_without_the_other_judges(
    votes: Votes, labels: np.ndarray
) -> None:
    mask = np.array([True, False, True, True, False, False])
    from_mask = LIGHT.fit(masked(votes, mask), labels)(masked(votes, mask))
    from_subset = LIGHT.fit(votes.of_judges([0, 2, 3]), labels)(votes.of_judges([0, 2, 3]))
    np.testing.assert_allclose(from_mask, from_subset, atol=1e-9)


def test_top_accuracy_matches_hand_counts(votes: Votes, labels: np.ndarray) -> None:
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
    expected = {max((2 * f, 2 * f + 1), key=lambda j: mean[j]) for f in range(3)}
    assert panel_of(OnePerFamily(families), votes, labels) == expected


def test_greedy_forward_matches_a_loop(votes: Votes, labels: np.ndarray) -> None:
    chosen: tuple[int, ...] = ()
    for k in (1, 2, 3):
        rest = [j for j in range(JUDGES) if j not in chosen]
        chosen += (min(rest, key=lambda j: loss_of((*chosen, j), votes, labels)),)
        assert panel_of(greedy_forward(k), votes, labels) == set(chosen)


def test_beam_search_matches_a_loop(votes: Votes, labels: np.ndarray) -> None:
    beams: list[frozenset[int]] = [frozenset()]
    value_of: dict[frozenset[int], float] = {}
    for _ in range(3):
        candidates = {b | {j} for b in beams for j in range(JUDGES) if j not in b}
        values = {p: loss_of(tuple(sorted(p)), votes, labels) for p in candidates}
        value_of |= values
        beams = sorted(values, key=lambda p: values[p])[:2]
    assert panel_of(Beam(3, width=2), votes, labels) == set(
        min(value_of, key=lambda p: value_of[p])
    )
    of_three = {p: v for p, v in value_of.items() if len(p) == 3}
    best = set(min(of_three, key=lambda p: of_three[p]))
    assert panel_of(Beam(3, width=2, exact=True), votes, labels) == best


def test_backward_elimination_matches_a_loop(votes: Votes, labels: np.ndarray) -> None:
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
            observed = true * (1 - noise) + (1 - true) * noise
            return float(-np.log(observed).mean() + penalty * p[:-1].sum())

        bounds = [(0, None)] * (2 * JUDGES) + [(None, None)]
        least = min(
            optimize.minimize(objective, start, bounds=bounds, options={"ftol": 1e-14}).fun
            for start in starts
        )
        value = objective(np.concatenate([np.maximum(w, 0), np.maximum(-w, 0), [c]]))
        assert value <= least + 1e-7


def test_families_come_from_names_or_a_mapping() -> None:
    names = ["gpt-5.4", "gpt-5.4-mini", "Claude 3", "GPT-4/CoT", "gpt-4/Swap", "7b", "llama3"]
    assert families_of(names) == (0, 0, 1, 2, 2, 3, 4)
    assert families_of(["a", "b", "c"], {"a": "x", "b": "y", "c": "x"}) == (0, 1, 0)
    with pytest.raises(JudgeBayesError, match="do not name the judge 'b'"):
        families_of(["a", "b"], {"a": "x"})
