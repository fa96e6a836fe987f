"""P2 on real panels: the measured claims, in both orientations."""

import pytest

from judgebayes.experiments.calibrate_dont_curate import answers as module
from judgebayes.experiments.calibrate_dont_curate.answers import answers
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.table1 import as_printed
from judgebayes.experiments.core import Run
from judgebayes.experiments.panels import BROKEN, llmbar_panel, rewardbench_panel
from judgebayes.panel.diagnostics import diagnose


def mean(run: Run, panel: object, method: str, calibrator: str = "beta", **parts: object) -> tuple:
    where = halves(run, panel, **parts)
    answer_set = answers(run, panel, method, (calibrator,), parts=where)[calibrator]
    return float(answer_set.by_split("nll").mean()), float(answer_set.by_split("accuracy").mean())


def test_llmbar_in_both_orientations(real: Run) -> None:
    nll, accuracy = mean(real, llmbar_panel(real), "one-coin")
    assert nll == pytest.approx(0.35, abs=0.02)
    assert accuracy == pytest.approx(0.869, abs=0.01)
    constant = llmbar_panel(real).oriented("correctness")
    for method in ("one-coin", "majority"):
        nll, accuracy = mean(real, constant, method)
        assert nll < 0.03
        assert accuracy == 1.0
    findings = diagnose(constant.votes, constant.labels, constant.judges)
    assert [f.severity for f in findings if f.topic == "labels"] == ["bad"]


@pytest.mark.parametrize(
    ("method", "nll"),
    [("one-coin", 0.265), ("top-3", 0.135), ("top-5", 0.130), ("top-10", 0.146)],
)
def test_rewardbench_in_the_true_orientation(real: Run, method: str, nll: float) -> None:
    assert mean(real, rewardbench_panel(real), method)[0] == pytest.approx(nll, abs=0.01)


def test_papers_top_k_rows_come_from_the_constant_label(real: Run) -> None:
    """Table 1's RewardBench rows of the top 3, 5 and 10, whose votes are public."""
    constant = rewardbench_panel(real).oriented("correctness")
    for method, nll, accuracy in (
        ("top-3", 0.200, 0.957),
        ("top-5", 0.214, 0.959),
        ("top-10", 0.257, 0.958),
    ):
        ours = mean(real, constant, method, "none")
        assert ours == pytest.approx((nll, accuracy), abs=0.004)


def test_another_floor_loses_table_1(real: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    constant = rewardbench_panel(real).oriented("correctness")
    for floor, outcome in ((module.CLIP, "reproduced"), (1e-4, "contradicted")):
        monkeypatch.setattr(module, "CLIP", floor)
        for method, nll in (("top-3", 0.200), ("top-5", 0.214), ("top-10", 0.257)):
            ours = mean(real, constant, method, "none")[0]
            row = {"metric": "nll", "value": ours, "paper_value": nll}
            claim = as_printed(constant, method, row)
            assert claim is not None
            assert claim.outcome == outcome


def test_the_broken_judge_is_named(real: Run) -> None:
    panel = rewardbench_panel(real, broken=True)
    findings = diagnose(panel.votes, panel.labels, panel.judges)
    leaks = [f for f in findings if f.topic == "leak"]
    assert any(BROKEN in name for f in leaks for name in f.judges)
    clean = rewardbench_panel(real)
    assert not [f for f in diagnose(clean.votes, clean.labels, clean.judges) if f.topic == "leak"]
