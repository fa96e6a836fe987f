"""P4's released data: exact equality where numbers are released, and the measured claims."""

import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus import fig5, fig6
from judgebayes.experiments.beyond_consensus.common import (
    calibration_masks,
    calibration_sets,
    equal,
    errors,
    matrix,
)
from judgebayes.experiments.beyond_consensus.regression import as_published, starts, targets
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.experiments.beyond_consensus.voting import ensembles
from judgebayes.experiments.core import Run
from judgebayes.votes import Votes


def test_every_released_voting_number_is_met_exactly(real: Run) -> None:
    table = fig5.main.run(real).table
    table = table[table["paper_value"].notna()]
    assert len(table) == 28 * 3 * 4
    off = np.abs(table["value"].astype(float) - table["paper_value"].astype(float))
    assert off.max() < 1e-12


@in_float64
def test_the_published_fit_is_not_at_the_minimum_of_its_loss(real: Run) -> None:
    cell = matrix(real, "noRepair")
    mask = np.arange(len(cell.generators)) == 0
    aim = targets(cell.counts.reveal(mask))
    published = as_published(aim, restarts=1)
    least = true_minimum(aim, starts(aim.matrix, 3))
    assert (np.asarray(least.status) == 0).all()
    assert float(least.loss.min()) == pytest.approx(0.177874, abs=1e-6)
    assert float(published.loss) > float(least.loss.min()) + 0.005
    worst = errors(np.asarray(least.precision[0]), cell.truth, (0,))["max error"]
    assert worst == pytest.approx(0.607, abs=0.002)


# FINDINGS: mean MaxAE of the logit shift and of the true minimum, original data, s = 1..5.
SHIFT = {1: 2.79, 2: 2.11, 3: 1.87, 4: 1.63, 5: 1.39}
MINIMUM = {1: 19.3, 2: 15.1, 3: 12.4, 4: 9.6, 5: 6.6}


def test_the_measured_leads_are_met(real: Run) -> None:
    cell = matrix(real, "noRepair")
    sets = calibration_sets(range(1, 6))
    masks = calibration_masks(sets, len(cell.generators))
    estimate_by_rule = fig6.estimates(cell, masks)
    estimate_by_rule["true-minimum"] = fig6._minimum(cell, masks)[0]
    for name, leads in (("logit-shift", SHIFT), ("true-minimum", MINIMUM)):
        for size, lead in leads.items():
            each = [
                errors(estimate_by_rule[name][r], cell.truth, s)["max error"]
                for r, s in enumerate(sets)
                if len(s) == size
            ]
            assert 100 * np.mean(each) == pytest.approx(lead, abs=0.06)
    for size in (2, 3, 4, 5):
        rows = [r for r, s in enumerate(sets) if len(s) == size]
        for metric in ("max error", "mean error"):
            ours, shift = (
                np.mean([errors(estimate_by_rule[n][r], cell.truth, sets[r])[metric] for r in rows])
                for n in ("impression", "logit-shift")
            )
            assert ours <= shift


def test_a_wrong_ensemble_loses_the_released_numbers(
    real: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(votes: Votes, kind: str) -> np.ndarray:
        return ensembles(votes, "valid" if kind == "veto" else "veto")

    monkeypatch.setattr(fig5, "ensembles", swapped)
    table = fig5.main.run(Run(data=real.data, smoke=True)).table
    graded = table[table["grade"] != ""]
    assert set(graded["claim"]) == {"paper"}
    assert (graded["grade"] == "contradicted").mean() > 0.9


@in_float64
def test_a_wrong_regression_loses_the_released_errors(real: Run) -> None:
    """The proven minimum of the loss in the place of the point where the released procedure stops."""
    cell = matrix(real, "noRepair")
    sets = [s for s in calibration_sets(range(1, 6)) if len(s) in (1, 5)]
    precision = fig6._minimum(cell, calibration_masks(sets, len(cell.generators)))[0]
    for size, released in ((1, 0.0251), (5, 0.0115)):
        rows = [r for r, s in enumerate(sets) if len(s) == size]
        ours = np.mean([errors(precision[r], cell.truth, sets[r])["max error"] for r in rows])
        assert equal(float(ours), released, "released procedure")["claim"].outcome == "contradicted"
