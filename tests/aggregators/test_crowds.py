"""Dawid-Skene without labels on simulated crowds, beside the majority and crowd-kit."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgebayes.aggregators import DawidSkene
from judgebayes.votes import SparseVotes

BALANCED: dict[str, Any] = {"items": 500, "workers": 60, "classes": 2, "per_item": 5}
RARE = BALANCED | {"shares": (0.92, 0.08)}
UNEQUAL: dict[str, Any] = {"items": 600, "workers": 80, "activity": (3, 300)}
WORLDS: dict[str, dict[str, Any]] = {
    "balanced": BALANCED,
    "92 % one class": RARE,
    "92 %, ten votes an item": RARE | {"per_item": 10, "workers": 30},
    "workers of 3 to 300 votes": BALANCED | UNEQUAL,
    "92 %, 3 to 300 votes": RARE | UNEQUAL,
    "spammers": BALANCED | {"spam": 0.3},
    "four classes": BALANCED | {"classes": 4, "items": 600},
    "four classes, spammers": BALANCED | UNEQUAL | {"classes": 4, "spam": 0.3},
    "92 %, spammers": RARE | {"spam": 0.3},
    "three votes an item": BALANCED | {"per_item": 3, "workers": 100, "items": 400},
}


def crowd(
    seed: int,
    items: int,
    workers: int,
    classes: int,
    per_item: int,
    shares: tuple[float, ...] | None = None,
    spam: float = 0.0,
    activity: tuple[int, int] = (1, 1),
) -> tuple[SparseVotes, np.ndarray]:
    """Return votes and the truth; a spammer's votes do not depend on the class."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, items, p=shares)
    right = np.clip(
        rng.beta(6, 2, workers)[:, None] + rng.normal(0, 0.08, (workers, classes)), 0.05, 0.98
    )
    rows = np.repeat((1 - right)[..., None] / (classes - 1), classes, axis=2)
    rows[:, np.arange(classes), np.arange(classes)] = right
    for j in np.flatnonzero(rng.random(workers) < spam):
        rows[j] = rng.dirichlet(np.full(classes, 0.5)) if rng.random() < 0.5 else 1 / classes
    often = np.geomspace(*activity, workers)
    votes = [
        (i, j, rng.choice(classes, p=rows[j, truth[i]]))
        for i in range(items)
        for j in np.sort(rng.choice(workers, per_item, replace=False, p=often / often.sum()))
    ]
    item, judge, index = np.array(votes).T
    return SparseVotes(item, judge, index, items, workers, classes), truth


def measured(p: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return accuracy, where a tie counts as a share, and NLL with probabilities of 1e-6 or more."""
    best = p >= p.max(1, keepdims=True) - 1e-12
    own = p[np.arange(len(truth)), truth]
    right = best[np.arange(len(truth)), truth] / best.sum(1)
    return float(right.mean()), float(-np.log(np.maximum(own, 1e-6)).mean())


def results(name: str, seed: int, *, peer: bool = False) -> dict[str, tuple[float, float]]:
    votes, truth = crowd(seed, **WORLDS[name])
    counts = np.asarray(votes.pooled_counts(), float)
    fit = DawidSkene().fit(votes, np.full(votes.n_items, -1))
    out = {
        "majority": measured(counts / counts.sum(1, keepdims=True), truth),
        "pooled": measured(np.exp(np.asarray(fit(votes))), truth),
    }
    if not peer:
        return out
    try:
        from crowdkit.aggregation import DawidSkene as Theirs
    except ImportError:
        return out
    table = pd.DataFrame({"task": votes.item, "worker": votes.judge, "label": votes.index})
    theirs = Theirs(n_iter=500).fit(table).probas_
    p = theirs.reindex(index=range(votes.n_items), columns=range(votes.n_classes)).fillna(0)
    return out | {"crowd-kit": measured(p.to_numpy(), truth)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*")  # crowd-kit's calls of pandas
def test_it_is_not_below_the_majority_nor_crowd_kit_on_simulated_crowds() -> None:
    all_results = {name: results(name, seed, peer=True) for seed, name in enumerate(WORLDS)}
    assert all(r["pooled"][0] >= r["majority"][0] - 0.01 for r in all_results.values())
    if "crowd-kit" not in all_results["balanced"]:
        pytest.skip("crowd-kit is not installed: pip install crowd-kit")
    not_worse = [
        r["pooled"][0] >= r["crowd-kit"][0] and r["pooled"][1] <= r["crowd-kit"][1]
        for r in all_results.values()
    ]
    assert sum(not_worse) >= 9


def test_a_small_crowd_is_answered_at_least_as_well_as_by_the_majority() -> None:
    one = results("92 %, spammers", 0)
    assert one["pooled"][0] > one["majority"][0]
    assert one["pooled"][1] < one["majority"][1]
