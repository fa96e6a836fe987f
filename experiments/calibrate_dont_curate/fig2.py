"""P2 Figs 2, 6 and 7: NLL against the number of judges kept, in both orientations.

Claim: before calibration small panels win; after it, NLL falls as more judges are kept: all judges
have a lower NLL than five (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/fig2 --data DIR
Runtime: about 95 seconds.
Expected: contradicted in the true orientation on the reward models and RewardBench 2: the calibrated
one-coin curve falls to five judges and rises again to the full panel. On LLMBar the difference is
uninformative, on the twin inconsistent. The *stacking* curve falls up to the full panel on every panel,
which is the shape that the paper claims. Uncalibrated one-coin NLL rises from two judges on (on the
twin from five), as the paper says, except for its last step on LLMBar. Under the correctness encoding
the calibrated curves are flat.
"""

from typing import Any

from judgebayes import Identity, Stacking
from judgebayes.experiments.calibrate_dont_curate.answers import (
    Answers,
    advantage,
    answers,
    answers_of,
)
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import FEW_SPLITS, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    log_scales,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.plots import curves
from judgebayes.panel.judges import top_k

SIZES = (1, 2, 3, 5, 10, 20, 40, 80)
STACKED = (3, 10, 40)
CLAIM = Statement("calibrated NLL falls as more judges are kept", "paper", MARGIN["nll"])


@experiment(
    PAPER,
    "fig2",
    "Figs 2, 6, 7: NLL against panel size",
    "calibration reverses the ranking: NLL then falls as more judges are kept",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the curves before and after calibration, and stacking's."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        by_arm: dict[tuple[str, int], Answers] = {}
        everyone = len(panel.judges)
        for k in [k for k in run.few(list(SIZES), 3) if k < everyone] + [everyone]:
            run.say(f"{panel.name}, {panel.orientation}: {k} judges")
            method = "one-coin" if k == everyone else f"top-{k}"
            by_calibrator = answers(run, panel, method, ("none", "beta"))
            by_arm["one-coin, uncalibrated", k] = by_calibrator["none"]
            by_arm["one-coin + beta", k] = by_calibrator["beta"]
            stacked = k in STACKED and panel.orientation == "true" and not run.smoke
            if k == everyone or stacked:
                by_arm["stacking", k] = _stacked(run, panel, k)
        for (method, k), one in by_arm.items():
            row = value_row(panel, method, "nll", one.interval(), len(one.items), n=k)
            records.append({**row, "judge": ""})
        few = by_arm["one-coin + beta", 5 if ("one-coin + beta", 5) in by_arm else 3]
        many = by_arm["one-coin + beta", everyone]
        gain = advantage(many, few)
        title = "few minus all judges"
        records.append(claim_row(panel, title, "nll difference", gain, run.splits, CLAIM))
    table = rows(PAPER, "fig2", graded(records))
    figure_rows = table[table["metric"] == "nll"]
    figure_rows = figure_rows.assign(
        panel=[
            f"{d}\n{t} orientation"
            for d, t in zip(figure_rows["dataset"], figure_rows["task"], strict=True)
        ]
    )
    figure = curves(
        figure_rows,
        "n",
        panel="panel",
        metric="nll",
        xlabel="judges kept, the most accurate first",
        ylabel="NLL",
        title="NLL against panel size: with positions, and with correctness as the label",
        columns=2,
    )
    log_scales(figure, (1, 3, 10, 30, 100))
    notes = [
        "In this table n is the number of judges kept. Both scales are logarithmic.",
        f"Stacking needs no calibration map and has none. Its points below the full panel are means "
        f"of {FEW_SPLITS} splits.",
    ]
    return Output(table, {"curves": figure}, notes)


def _stacked(run: Run, panel: Panel, k: int) -> Answers:
    """Return the answers of stacking of the k most accurate judges."""
    if k == len(panel.judges):
        return answers(run, panel, "stacking", ("none",))["none"]
    maps = {"none": Identity()}
    return answers_of(run, panel, top_k(Stacking(), k), maps, halves(run, panel, count=FEW_SPLITS))[
        "none"
    ]
