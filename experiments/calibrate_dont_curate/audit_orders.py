"""Audit: the effect of how LLMBar's two presentation orders make a judge's vote.

Claim (audit): the result does not depend on how the votes in two orders become one vote: stacking beats
one-coin + beta in every encoding (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/audit-orders --data DIR
Runtime: about 50 seconds.
Expected: replicated with all five encodings. With the one-coin model the five most accurate judges are
ahead of all judges in every encoding, but they are worse than stacking in all.
"""

from typing import Any

from judgebayes.experiments.calibrate_dont_curate.answers import advantage, answers
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR
from judgebayes.experiments.panels import Orders, llmbar_panel

CLAIM = Statement("stacking beats one-coin in every encoding", "audit", MARGIN["nll"])
ENCODINGS: tuple[Orders, ...] = ("random", "AB", "BA", "agreeing", "both")


@experiment(
    PAPER,
    "audit-orders",
    "Audit: LLMBar's presentation orders",
    "the result does not depend on how the votes in two orders become one vote",
    needs=(LLMBAR,),
)
def main(run: Run) -> Output:
    """Return the main numbers for each way to use the two orders."""
    records: list[dict[str, Any]] = []
    for orders in run.few(list(ENCODINGS)):
        run.say(orders)
        panel = llmbar_panel(run, orders)
        if run.smoke:
            panel = panel.of(list(range(0, 60, 5)), "small")
        by_method = {
            m: answers(run, panel, m)["beta"] for m in ("one-coin", "top-3", "top-5", "top-10")
        }
        for method, one in by_method.items():
            records += metric_rows(one, f"{method} + beta", ("nll", "accuracy"))
        stack = answers(run, panel, "stacking", ("none",))["none"]
        records += metric_rows(stack, "stacking", ("nll", "accuracy"))
        gain = advantage(stack, by_method["one-coin"])
        title = "one-coin minus stacking"
        records.append(claim_row(panel, title, "nll difference", gain, run.splits, CLAIM))
    notes = [
        "random: one order per item, drawn by the item's name; the main panel. agreeing: where both "
        "orders agree, else missing. both: the orders as 130 judges."
    ]
    return Output(rows(PAPER, "audit-orders", graded(records)), notes=notes)
