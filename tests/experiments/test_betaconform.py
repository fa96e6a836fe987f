"""The counts and the claims in the third paper's experiments."""

import numpy as np
import pytest

from judgebayes.experiments.betaconform import common, margins
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.experiments.betaconform.common import MARGIN, DataSet, mean_claims, simulated
from judgebayes.experiments.betaconform.margins import EM, Margins, margins_by_item
from judgebayes.experiments.claims import claims
from judgebayes.experiments.core import Run

RUNS = 30


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
