import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.splits import random_splits


def test_parts_are_disjoint_and_cover_everything() -> None:
    parts = random_splits(100, splits=7, calibration=0.05, seed=3)
    assert parts.calibration.shape == (7, 5)
    for cal, ev in zip(parts.calibration, parts.evaluation, strict=True):
        assert sorted([*cal, *ev]) == list(range(100))


def test_the_seed_determines_the_splits() -> None:
    one, same, other = (random_splits(50, splits=3, seed=s).calibration for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_each_stratum_has_its_number_of_calibration_items() -> None:
    strata = np.arange(90) % 3
    parts = random_splits(90, splits=5, calibration=4, strata=strata, seed=0)
    for cal in parts.calibration:
        assert np.bincount(strata[cal]).tolist() == [4, 4, 4]


def test_groups_are_never_divided() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 25, 100)
    parts = random_splits(100, splits=20, calibration=20, groups=groups, seed=0)
    for cal, ev in zip(parts.calibration, parts.evaluation, strict=True):
        inside, outside = groups[cal[cal >= 0]], groups[ev[ev >= 0]]
        assert not set(inside) & set(outside)
        assert len(inside) + len(outside) == 100
        assert abs(len(inside) - 20) <= np.bincount(groups).max()


def test_smaller_calibration_sets_are_nested_and_the_evaluation_part_stays() -> None:
    parts = random_splits(60, splits=4, calibration=20, seed=0)
    small = parts.with_calibration(5)
    np.testing.assert_array_equal(small.calibration, parts.calibration[:, :5])
    np.testing.assert_array_equal(small.evaluation, parts.evaluation)


def test_nested_sets_of_strata_are_mixed() -> None:
    strata = np.repeat([0, 1], 50)
    parts = random_splits(100, splits=30, calibration=10, strata=strata, seed=0)
    first = strata[parts.with_calibration(5).calibration]
    assert 0.3 < first.mean() < 0.7


def test_only_items_in_among_are_split() -> None:
    chosen = np.arange(10, 30)
    parts = random_splits(100, splits=3, calibration=0.5, among=chosen)
    assert set(np.concatenate([parts.calibration, parts.evaluation], 1).ravel()) == set(chosen)


def test_every_item_is_equally_likely_in_calibration() -> None:
    parts = random_splits(40, splits=2000, calibration=10, seed=0)
    frequency = np.bincount(parts.calibration.ravel(), minlength=40) / 2000
    assert np.abs(frequency - 0.25).max() < 0.05


@pytest.mark.parametrize(("n", "calibration"), [(10, 0.01), (10, 10), (10, 0.99)])
def test_an_empty_part_is_refused(n: int, calibration: float) -> None:
    with pytest.raises(JudgeBayesError, match="part is empty"):
        random_splits(n, splits=2, calibration=calibration)


def test_more_calibration_items_than_there_are_is_refused() -> None:
    with pytest.raises(JudgeBayesError, match="30 calibration items"):
        random_splits(60, splits=2, calibration=20).with_calibration(30)
