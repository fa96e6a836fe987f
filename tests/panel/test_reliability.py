"""Agreement beyond chance: scikit-learn, published examples, a naive twin and a law of coverage."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from diagnosed import as_votes
from sklearn.metrics import cohen_kappa_score

from judgebayes.measures.scores import krippendorff_alpha
from judgebayes.panel.reliability import PANEL, reliability_table


def table_of(
    index: np.ndarray, labels: np.ndarray, k: int, groups: np.ndarray | None = None
) -> pd.DataFrame:
    """Return the table by its raters, of votes with one sample each."""
    votes = as_votes(index, k)
    names = [f"j{n}" for n in range(index.shape[1])]
    return reliability_table(votes, labels, names, ordered=True, groups=groups).set_index("raters")


def world(seed: int, n: int = 60, j: int = 4, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return votes of judges that are right more often than not, with holes, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    right = rng.random((n, j)) < 0.6
    index = np.where(right, labels[:, None], rng.integers(0, k, (n, j)))
    index[rng.random((n, j)) < 0.2] = -1
    labels[rng.random(n) < 0.3] = -1
    return index, labels


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    index, labels = world(seed)
    table = table_of(index, labels, 3)
    pairs = []
    for a, b in combinations(range(4), 2):
        both = (index[:, a] >= 0) & (index[:, b] >= 0)
        pairs.append(cohen_kappa_score(index[both, a], index[both, b]))
    assert table["kappa"][PANEL] == pytest.approx(np.mean(pairs))
    for j in range(4):
        both = (index[:, j] >= 0) & (labels >= 0)
        own = table.loc[f"j{j} with labels"]
        assert own["items"] == both.sum()
        assert own["kappa"] == pytest.approx(cohen_kappa_score(index[both, j], labels[both]))


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_all_pairs_of_ratings(seed: int) -> None:
    index, labels = world(seed)
    counts = np.stack([(index == c).sum(1) for c in range(3)], axis=1)
    table = table_of(index, labels, 3)
    assert table["alpha"][PANEL] == pytest.approx(krippendorff_alpha(counts))
    # The ordinal one, by its definition: distances between ranks in the pooled ratings.
    use = counts[counts.sum(1) > 1]
    n = use.sum(0)
    rank = np.cumsum(n) - n / 2
    units = [np.repeat(rank, row) for row in use]
    observed = sum(((u[:, None] - u[None, :]) ** 2).sum() / (len(u) - 1) for u in units)
    pooled = np.repeat(rank, n)
    expected = ((pooled[:, None] - pooled[None, :]) ** 2).sum() / (len(pooled) - 1)
    assert table["alpha_ordinal"][PANEL] == pytest.approx(1 - observed / expected)


def test_published_examples() -> None:
    # Krippendorff 2011, example C: four observers, twelve units, nominal .743 and ordinal .815.
    none = -1
    rows = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, none, none, none],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, none, 3],
        [none, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, none],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, none],
    ]
    index = np.array(rows).T
    index = np.where(index > 0, index - 1, -1)
    table = table_of(index, np.full(12, -1), 5)
    assert table["alpha"][PANEL] == pytest.approx(0.743, abs=5e-4)
    assert table["alpha_ordinal"][PANEL] == pytest.approx(0.815, abs=5e-4)
    # Gwet 2008, table 1: 125 items, of which 118 are positive for both raters; kappa is below 0.
    pairs = [(1, 1)] * 118 + [(1, 0)] * 5 + [(0, 1)] * 2
    one, other = np.array(pairs).T
    own = table_of(one[:, None], other, 2).loc["j0 with labels"]
    assert own["agreement"] == pytest.approx(118 / 125)
    assert own["kappa"] == pytest.approx(-0.0234, abs=5e-4)
    assert own["ac1"] == pytest.approx(0.9408, abs=5e-4)


def test_repeated_votes_of_a_judge_do_not_agree_with_themselves() -> None:
    rng = np.random.default_rng(0)
    index = rng.integers(0, 2, (2000, 2))
    votes = as_votes(np.repeat(index[:, :, None], 5, axis=2))
    table = reliability_table(votes, np.full(2000, -1), ["a", "b"], ordered=True)
    assert abs(table["alpha"][0]) < 0.06
    assert list(table["raters"]) == [PANEL]


def test_what_is_not_defined_is_nan() -> None:
    same = table_of(np.zeros((20, 2), int), np.zeros(20, int), 2)
    assert same["kappa"].isna().all()
    assert same["alpha"].isna().all()
    assert (same["agreement"] == 1).all()
    assert (same["ac1"] == 1).all()
    # Equal ratings of 20 items do not show that all are equal.
    assert same[["agreement_low", "agreement_high", "ac1_low"]].isna().all(axis=None)


def test_intervals_of_raters_who_nearly_always_agree() -> None:
    rng = np.random.default_rng(3)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = (rng.random(n) < 0.5).astype(int)
        return np.where(rng.random(n) < 0.95, labels, 1 - labels)[:, None], labels

    true = table_of(*draw(200_000), 2).iloc[0]
    names, hits = ("kappa", "ac1", "alpha"), []
    while len(hits) < 200:
        own = table_of(*draw(60), 2).iloc[0]
        if own["agreement"] < 1:
            hits.append([own[f"{n}_low"] <= true[n] <= own[f"{n}_high"] for n in names])
    # Of 90 %; a symmetric interval contains it in 78 to 85 %.
    assert (np.mean(hits, axis=0) >= 0.88).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_contain_the_value_of_many_more_items(grouped: bool) -> None:
    rng = np.random.default_rng(1)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        groups = np.arange(n) // 4 if grouped else np.arange(n)
        labels = (rng.random(groups.max() + 1) < 0.7).astype(int)[groups]
        hard = (rng.random(groups.max() + 1) < 0.3)[groups]
        right = rng.random((n, 3)) < np.where(hard, 0.6, 0.9)[:, None]
        return np.where(right, labels[:, None], 1 - labels[:, None]), labels, groups

    index, labels, _ = draw(80_000)
    true = table_of(index, labels, 2)
    hits = np.zeros((len(true), 4))
    runs = 200
    for _ in range(runs):
        index, labels, groups = draw(160)
        own = table_of(index, labels, 2, groups)
        for place, name in enumerate(("agreement", "kappa", "ac1", "alpha")):
            low, high = own[f"{name}_low"], own[f"{name}_high"]
            hits[:, place] += (low <= true[name]) & (true[name] <= high)
    # Of 90 %; 200 runs have a standard error of 2.1 points.
    assert (hits / runs >= 0.83).all()
    assert (hits / runs <= 0.97).all()
