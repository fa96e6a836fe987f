"""The counts and the claims in the third paper's experiments."""

import numpy as np
import pytest

from judgebayes.experiments.betaconform import audit_published, common, margins
from judgebayes.experiments.betaconform.common import (
    MARGIN,
    DataSet,
    mean_claims,
    simulated,
)
from judgebayes.experiments.betaconform.fig5 import correlation
from judgebayes.experiments.betaconform.margins import EM, Margins, margins_by_item
from judgebayes.experiments.betaconform.table2 import ELSEWHERE, harm, reach_from_elsewhere
from judgebayes.experiments.betaconform.transfers import REACHES, Target, limit
from judgebayes.experiments.claims import claims
from judgebayes.experiments.core import Run
from judgebayes.majority import Binomial

RUNS = 30


def target(source: str, harmful_from: float) -> tuple[Target, dict[str, np.ndarray]]:
    """Return margins of about 5 points: 4 higher from a reach on, 1 lower below it."""
    noise = np.random.default_rng(0).normal(size=RUNS)
    by_method = {"mixture-map": 5 + noise}
    for reach in REACHES:
        by_method[limit(reach)] = 5 + noise + (4.0 if reach >= harmful_from else -1.0)
    data_set = DataSet(source, "all", "judge", np.arange(4), 3)
    return Target(data_set, "", [], None), by_method


def test_harm_counts_targets_beyond_the_interval_of_their_margin() -> None:
    by_target = [target("one", 0.5), target("one", 9.0), target("two", 0.25)]
    assert (harm(by_target, limit(0.1)).beyond, harm(by_target, limit(0.1)).clearly) == (0, 0)
    assert harm(by_target, limit(0.25)).beyond == 1
    half = harm(by_target, limit(0.5))
    assert (half.beyond, half.clearly, half.targets) == (2, 2, 3)
    assert half.largest == pytest.approx(4)
    assert half.mean == pytest.approx(
        5 + (4 - 1 + 4) / 3 + by_target[0][1]["mixture-map"].mean() - 5
    )


def test_a_source_gets_the_largest_reach_that_harms_none_of_the_others() -> None:
    by_target = [target("one", 0.5), target("one", 9.0), target("two", 0.25)]
    chosen = reach_from_elsewhere(by_target)
    assert [each.data_set.dataset for each, _ in chosen] == ["one", "one", "two"]
    # "two" is harmed from 0.25 on, so "one" gets 0.1; "one" from 0.5 on, so "two" gets 0.25.
    for (_, by_method), reach in zip(chosen, (0.1, 0.1, 0.25), strict=True):
        np.testing.assert_array_equal(by_method[ELSEWHERE], by_method[limit(reach)])
    assert harm(chosen, ELSEWHERE).beyond == 1


def test_where_every_reach_harms_the_smallest_is_taken() -> None:
    chosen = reach_from_elsewhere([target("one", 0.0), target("two", 9.0)])
    np.testing.assert_array_equal(chosen[1][1][ELSEWHERE], chosen[1][1][limit(min(REACHES))])


def gain_of_the_em(run: Run) -> str:
    """Return the outcome of Table 1's claim on the simulated judge with two peaks."""
    data_set = simulated()[0]
    each = Margins(data_set, np.full(RUNS, 57), {})
    by_method = margins_by_item(run, each, 0.03)
    (one,) = claims(
        [by_method["binomial"].less(by_method[EM])],
        kind="paper",
        source="twin",
        margin=MARGIN["error margin"],
    )
    return one.outcome


def test_the_claim_holds_for_the_em_and_is_lost_by_a_binomial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common, "RESAMPLES", 60)
    assert gain_of_the_em(Run()) == "consistent"
    wrong = common.methods() | {EM: Binomial()}
    monkeypatch.setattr(margins, "methods", lambda: wrong)
    assert gain_of_the_em(Run()) == "inconsistent"


def crossed(tasks: int = 6, judges: int = 5) -> list[DataSet]:
    """Return data sets of judges that share tasks."""
    return [
        DataSet("rb2", f"task {t}", f"judge {j}", np.arange(4), 3)
        for t in range(tasks)
        for j in range(judges)
    ]


@pytest.mark.parametrize(
    ("mean", "outcome"), [(4.0, "replicated"), (-7.5, "contradicted"), (0.6, "uninformative")]
)
def test_every_outcome_over_data_sets_is_in_reach(mean: float, outcome: str) -> None:
    rng = np.random.default_rng(3)
    sets = crossed()
    task = np.repeat(rng.normal(size=6), 5)
    values = mean + task - task.mean() + 0.2 * rng.normal(size=len(sets))
    (row,) = mean_claims(sets, [({"method": "gain"}, values)], kind="paper", margin=0.5)
    assert row["claim"].outcome == outcome


def test_data_sets_that_share_a_task_are_no_independent_units() -> None:
    sets = crossed()
    values = np.repeat([1.0, 3.0, -2.0, 0.5, 2.0, 4.0], 5)  # the same for every judge of a task
    (row,) = mean_claims(sets, [({}, values)], kind="paper", margin=0.5)
    low, high = row["claim"].interval[1:]
    naive = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    assert high - low > 2 * 2 * naive


def test_claims_over_data_sets_need_three_units() -> None:
    sets = crossed(tasks=2)
    assert mean_claims(sets, [({}, np.ones(10))], kind="paper", margin=0.5) == []
    assert mean_claims(simulated(), [({}, np.ones(3))], kind="paper", margin=0.5) == []


def test_similarity_of_few_texts_is_no_evidence_of_many_targets() -> None:
    rng = np.random.default_rng(0)
    similarity = np.repeat([0.1, 0.2, 0.3, 0.4, 0.5], 6)
    gain = np.repeat([0.0, 3.0, 1.0, 2.0, 4.0], 6) + 0.1 * rng.normal(size=30)
    places = [(f"judge {j}", f"subset {s}") for s in range(5) for j in range(6)]
    of = correlation(np.column_stack([similarity, gain]), places, seed=0)
    assert of.units == 5
    low, _ = of.interval()[1:]
    assert of.estimate > 0.6
    assert low < 0


def test_a_sentence_is_contradicted_by_its_table() -> None:
    graded = [
        audit_published.row("t", "", "", "sentence", *values)["claim"].outcome
        for values in ((24.8, 32.4), (54.14, 54.1))
    ]
    assert graded == ["contradicted", "reproduced"]
