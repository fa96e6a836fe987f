"""Evidence and claims: against the formulas, in simulation, and every outcome in reach."""

from typing import Any

import numpy as np
import pytest

from judgebayes.experiments.claims import (
    Evidence,
    claim,
    claim_equal,
    claim_range,
    claims,
    evidence,
    evidence_of,
    evidence_of_units,
    simultaneous,
)
from judgebayes.experiments.significance import clustered_interval


def simulated(
    rng: np.random.Generator,
    *,
    groups: int = 40,
    size: int = 1,
    splits: int = 20,
    effect: float = 0.0,
) -> tuple[Any, Any, Any]:
    """Outcomes with an effect of the item's group, of the item, and of the split's own fit."""
    n = groups * size
    of_group = np.arange(n) // size
    truth = rng.normal(size=groups)[of_group] * 0.6 + rng.normal(size=n) * 0.8 + effect
    half = n // 2
    items = np.stack([rng.permutation(n)[:half] for _ in range(splits)])
    values = truth[items] + rng.normal(size=(splits, 1)) * 0.3 + rng.normal(size=items.shape) * 0.2
    return values, items, of_group


def test_the_estimate_is_the_mean_and_the_error_that_of_items_where_splits_agree() -> None:
    rng = np.random.default_rng(0)
    each = rng.normal(size=60)
    items = np.tile(np.arange(60), (5, 1))
    of = evidence(each[items], items, 60, resamples=20_000)
    assert of.estimate == pytest.approx(each.mean())
    naive = clustered_interval(each)
    error = (naive.high - naive.mean) / 1.959964
    assert of.error == pytest.approx(error, rel=0.03)
    low, high = of.interval()[1:]
    assert high - low > naive.high - naive.low  # Student's t


def test_groups_move_together() -> None:
    rng = np.random.default_rng(1)
    each = np.repeat(rng.normal(size=12), 10)
    groups = np.repeat(np.arange(12), 10)
    alone = evidence_of_units(each).error
    together = evidence_of_units(each, groups, resamples=20_000).error
    assert together == pytest.approx(np.std(each[::10], ddof=1) / np.sqrt(12), rel=0.03)
    assert together > 2.5 * alone


def test_a_number_that_is_no_mean_agrees_with_the_mean_where_it_is_one() -> None:
    values, items, groups = simulated(np.random.default_rng(2), groups=15, size=4)

    def mean(of_splits: np.ndarray, of_items: np.ndarray) -> float:
        weight = of_splits[:, None] * of_items[items]
        return float((weight * values).sum() / weight.sum())

    direct = evidence(values, items, 60, groups, resamples=300, seed=3)
    general = evidence_of(mean, 20, 60, groups, resamples=300, seed=3)
    assert general.estimate == pytest.approx(direct.estimate)
    np.testing.assert_allclose(general.draws, direct.draws)
    assert general.units == direct.units == 15


OUTCOMES = [  # estimate, error, margin, value, outcome on the paper's own data, other data, a twin
    (0.10, 0.02, 0.05, None, ("reproduced", "replicated", "consistent")),
    (0.10, 0.08, 0.05, None, ("uninformative",) * 3),
    (0.00, 0.01, 0.05, None, ("contradicted", "contradicted", "inconsistent")),
    (-0.2, 0.02, 0.05, None, ("contradicted", "contradicted", "inconsistent")),
    (0.81, 0.01, 0.05, 0.80, ("reproduced", "replicated", "consistent")),
    (0.81, 0.10, 0.05, 0.80, ("uninformative",) * 3),
    (0.90, 0.01, 0.05, 0.80, ("contradicted", "contradicted", "inconsistent")),
    (0.84, 0.01, 0.05, 0.80, ("uninformative",) * 3),
]


@pytest.mark.parametrize(("estimate", "error", "margin", "value", "outcomes"), OUTCOMES)
def test_every_outcome_is_in_reach(
    estimate: float, error: float, margin: float, value: float | None, outcomes: tuple[str, ...]
) -> None:
    draws = estimate + error * np.random.default_rng(5).standard_normal(4000)
    of = Evidence(estimate, draws, 400)
    graded = [
        claim(of, kind="paper", source=source, margin=margin, value=value).outcome
        for source in ("own", "other", "twin")
    ]
    assert graded == list(outcomes)
    (joint,) = claims([of], kind="audit", source="other", margin=margin, values=[value])
    assert joint.outcome == outcomes[1]
    assert joint.kind == "audit"


@pytest.mark.parametrize(
    ("estimate", "error", "outcome"),
    [(0.0, 0.01, "replicated"), (0.0, 0.05, "uninformative"), (-0.2, 0.01, "contradicted")],
)
def test_a_claim_of_no_difference_needs_a_narrow_interval(
    estimate: float, error: float, outcome: str
) -> None:
    draws = estimate + error * np.random.default_rng(5).standard_normal(4000)
    of = Evidence(estimate, draws, 400)
    graded = claim(of, kind="paper", source="other", margin=0.05, within=True)
    assert graded.outcome == outcome


def test_a_number_without_error_is_equal_or_not() -> None:
    same = claim_equal(0.4051, 0.405, kind="paper", source="own", margin=0.0005)
    other = claim_equal(0.412, 0.405, kind="paper", source="own", margin=0.0005)
    assert (same.outcome, other.outcome) == ("reproduced", "contradicted")


RANGES = [  # low, high, value, outcome on a twin, with a margin of 0.05
    (0.02, 0.30, None, "consistent"),
    (-0.02, 0.04, None, "inconsistent"),
    (-0.02, 0.06, None, "uninformative"),
    (0.35, 0.44, 0.40, "consistent"),
    (0.35, 0.44, 0.45, "inconsistent"),
    (0.30, 0.45, 0.40, "uninformative"),
    (0.30, 0.45, 0.29, "inconsistent"),
    (0.40, 0.40, 0.40, "consistent"),
]


@pytest.mark.parametrize(("low", "high", "value", "outcome"), RANGES)
def test_a_predicted_range_reaches_every_outcome(
    low: float, high: float, value: float | None, outcome: str
) -> None:
    graded = claim_range(low, high, value=value, kind="paper", source="twin", margin=0.05)
    assert graded.outcome == outcome
    assert graded.interval[1:] == (low, high)


@pytest.mark.parametrize(("groups", "size"), [(60, 1), (30, 4)])
def test_intervals_cover_where_splits_share_items_and_items_share_groups(
    groups: int, size: int
) -> None:
    rng = np.random.default_rng(6)
    held = 0
    replays = 200
    for replay in range(replays):
        values, items, of_group = simulated(rng, groups=groups, size=size)
        _, low, high = evidence(
            values, items, groups * size, of_group, resamples=400, seed=replay
        ).interval()
        held += low <= 0 <= high
    assert 0.91 <= held / replays <= 0.995


def test_a_table_under_the_null_makes_few_false_claims_and_alone_many() -> None:
    rng = np.random.default_rng(8)
    jointly = singly = 0
    replays = 150
    for replay in range(replays):
        of_item = rng.normal(size=(60, 8)) + rng.normal(size=(60, 1))
        table = [evidence_of_units(column, resamples=400, seed=replay) for column in of_item.T]
        graded = claims(table, kind="paper", source="other", margin=1.0)
        jointly += any(each.interval.low > 0 or each.interval.high < 0 for each in graded)
        one_by_one = [each.interval() for each in table]
        singly += any(low > 0 or high < 0 for _, low, high in one_by_one)
    assert jointly / replays <= 0.1
    assert singly > jointly
    assert simultaneous(table)[0] > simultaneous(table[:1])[0]
