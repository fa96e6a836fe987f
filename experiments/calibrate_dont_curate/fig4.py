"""P2 Fig 4 and Table 7: NLL against the number of labels, and a joint test over the budgets.

Claim: all judges beat the most accurate ones at every label budget, most clearly at small budgets
(margin 0.01 nats). Audit: so does stacking of all judges (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/fig4 --data DIR
Runtime: about 2 minutes.
Expected: in the true orientation the claim is contradicted at every budget on the reward models and at
the larger ones on RewardBench 2, and uninformative on LLMBar. Stacking of all judges is the best at
every budget on every panel, and its lead over the five most accurate judges is replicated on all public
panels. The paper's claim and its sharp drop appear under the correctness encoding only: the score of
many judges is larger, so the constant is learnt from fewer labels. With labels of other subsets
stacking loses to the five most accurate judges on LLMBar with the larger budget.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import Answers, advantage, answers
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import by_subset, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    log_scales,
    value_row,
)
from judgebayes.experiments.claims import simultaneous
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.plots import curves
from judgebayes.experiments.significance import max_t_test
from judgebayes.measures.significance import Interval

BUDGETS = (20, 50, 100, 200, 500)
METHODS = {"one-coin + beta": "one-coin", "top-5 + beta": "top-5"}
SUBSET_BUDGETS = (50, 100)
CLAIM = Statement("all judges beat the top 5 at every budget", "paper", MARGIN["nll"])
STACKING = Statement("stacking beats the top 5 at every budget", "audit", MARGIN["nll"])
OTHERS = {"one-coin + beta": CLAIM, "stacking": STACKING}


def budgets(run: Run, panel: Panel) -> list[int]:
    """Return the budgets up to half of a panel's items, and that half itself."""
    half = halves(run, panel).splits.calibration.shape[1]
    return [*(b for b in run.few(list(BUDGETS), 4) if b < half), half]


@experiment(
    PAPER,
    "fig4",
    "Fig 4 and Table 7: label budget",
    "all judges beat the most accurate ones at every label budget, most clearly at small budgets",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLL by budget and method, the joint test, and splits by subset."""
    records: list[dict[str, Any]] = []
    notes = [
        "In this table n is the number of labels. Budgets are nested: a split's 50 labels are among "
        "its 100.",
        "max-t: Gaussian multiplier bootstrap over splits (Appendix G) of NLL(top-5) minus NLL(all), "
        "one-sided, against its 95 % quantile. The paper's units are splits, which share items, so it "
        "grades nothing. max-t, items and splits: the same differences with items, or groups of items, "
        "and splits resampled, two-sided. Graded intervals hold at once for all budgets and panels.",
    ]
    for panel in both_orientations(run):
        by_arm: dict[tuple[str, int], Answers] = {}
        sizes = budgets(run, panel)
        for size in sizes:
            run.say(f"{panel.name}, {panel.orientation}: {size} labels")
            parts = halves(run, panel, labels=size)
            for name, method in METHODS.items():
                by_arm[name, size] = answers(run, panel, method, parts=parts)["beta"]
            if panel.orientation == "true" or size == sizes[-1]:
                stack = answers(run, panel, "stacking", ("none",), parts=parts)["none"]
                by_arm["stacking", size] = stack
        for (name, size), one in by_arm.items():
            for metric in ("nll", "accuracy"):
                row = value_row(panel, name, metric, one.interval(metric), len(one.items), n=size)
                records.append(row)
        records += _joint(run, panel, by_arm, sizes)
        for size in sizes:
            for other, statement in OTHERS.items():
                if (other, size) in by_arm:
                    gain = advantage(by_arm[other, size], by_arm["top-5 + beta", size])
                    row = claim_row(
                        panel,
                        f"top-5 + beta minus {other}",
                        "nll difference",
                        gain,
                        run.splits,
                        statement,
                        n=size,
                    )
                    records.append(row)
        if panel.orientation == "true":
            records += _across_subsets(run, panel)
    table = rows(PAPER, "fig4", graded(records))
    figure_rows = table[(table["metric"] == "nll")]
    figure_rows = figure_rows.assign(
        panel=[
            f"{d}\n{t} orientation"
            for d, t in zip(figure_rows["dataset"], figure_rows["task"], strict=True)
        ]
    )
    figure_rows = figure_rows[~figure_rows["method"].str.contains("subsets")]
    figure = curves(
        figure_rows,
        "n",
        panel="panel",
        metric="nll",
        xlabel="labels",
        ylabel="NLL",
        title="NLL against label budget",
        columns=2,
    )
    log_scales(figure, (20, 50, 100, 200, 500, 1500))
    return Output(table, {"curves": figure}, notes)


def _joint(
    run: Run, panel: Panel, by_arm: dict[tuple[str, int], Answers], sizes: list[int]
) -> list[dict[str, Any]]:
    """Return Table 7, by splits and by items: the largest t over budgets, and its critical value."""
    lost = np.stack(
        [
            by_arm["top-5 + beta", b].by_split("nll") - by_arm["one-coin + beta", b].by_split("nll")
            for b in sizes
        ],
        axis=1,
    )
    joint = max_t_test(lost, two_sided=False, seed=run.seed)
    of_items = [advantage(by_arm["one-coin + beta", b], by_arm["top-5 + beta", b]) for b in sizes]
    t = [e.estimate / e.error if e.error > 0 else 0.0 for e in of_items]
    two_way = {
        "largest t": max(t),
        "smallest t": min(t),
        "critical value": float(simultaneous(of_items).max()),
    }
    numbers = {
        "budgets": len(sizes),
        "largest t": joint.statistic,
        "smallest t": float(joint.t.min()),
        "critical value": joint.critical,
        "joint p": joint.p_value,
    }
    return [
        value_row(panel, name, metric, Interval(float(v), np.nan, np.nan), run.splits)
        for name, values in (("max-t", numbers), ("max-t, items and splits", two_way))
        for metric, v in values.items()
    ]


def _across_subsets(run: Run, panel: Panel) -> list[dict[str, Any]]:
    """Return the NLL when evaluation items and labels come from different subsets."""
    records = []
    for size in SUBSET_BUDGETS:
        parts = by_subset(run, panel, labels=size)
        for name, method in {**METHODS, "stacking": "stacking"}.items():
            which = "none" if name == "stacking" else "beta"
            one = answers(run, panel, method, (which,), parts=parts)[which]
            title = f"{name}, other subsets"
            records.append(value_row(panel, title, "nll", one.interval(), len(one.items), n=size))
    return records
