"""P2 H.7 (Table 8b): the label budget for one aggregator and several calibrators.

Claim: beta's NLL collapses by an order of magnitude once its three parameters are identified; Platt
and temperature have no such transition, so that beta is ahead of both with half of the labels (margin
0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/table8b --data DIR
Runtime: about 35 seconds.
Expected: contradicted on all public panels: with half of the items beta is ahead of neither by the
margin. In the true orientation no map has a transition: all fall smoothly, and temperature, which
cannot favour a class, is nowhere worse. Under the correctness encoding beta and Platt are at their
floors as soon as the intercept is learnt, and temperature, which has none, keeps the numbers of the
true orientation: the transition is the constant label being learnt.
"""

from typing import Any

from judgebayes.experiments.calibrate_dont_curate.answers import advantage, answers
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.fig4 import budgets
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    log_scales,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.plots import curves

MAPS = ("beta", "platt", "temperature")
CLAIM = Statement("beta is ahead of simpler maps", "paper", MARGIN["nll"])


@experiment(
    PAPER,
    "table8b",
    "Table 8b (H.7): label budget by calibrator",
    "beta's NLL collapses at a few labels; Platt's and temperature's do not",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLL by budget and calibrator for the one-coin model of all judges."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        sizes = budgets(run, panel)
        for size in sizes:
            run.say(f"{panel.name}, {panel.orientation}: {size} labels")
            by_map = answers(run, panel, "one-coin", MAPS, parts=halves(run, panel, labels=size))
            for name, one in by_map.items():
                records.append(value_row(panel, name, "nll", one.interval(), run.splits, n=size))
            if size == sizes[-1]:
                for other in MAPS[1:]:
                    gain = advantage(by_map["beta"], by_map[other])
                    name = f"{other} minus beta"
                    records.append(
                        claim_row(panel, name, "nll difference", gain, run.splits, CLAIM, n=size)
                    )
    table = rows(PAPER, "table8b", graded(records))
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
        xlabel="labels",
        ylabel="NLL",
        title="Calibrators of the one-coin score of all judges",
        columns=2,
    )
    log_scales(figure, (20, 50, 100, 200, 500, 1500))
    return Output(table, {"curves": figure}, ["In this table n is the number of labels."])
