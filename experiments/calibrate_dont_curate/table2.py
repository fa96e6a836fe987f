"""P2 Table 2: all judges against the most accurate ones, with the same beta calibrator.

Claim: after calibration, all judges beat the top 3, 5 and 10 by accuracy, and one judge per family
(margin 0.01 nats), except the top 10 of LLMBar, which they tie within 0.01 nats. Audit: so does
stacking of all judges (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/table2 --data DIR
Runtime: about 20 seconds.
Expected: contradicted on the reward models and on RewardBench 2, uninformative on LLMBar, and on the
twin inconsistent except for the top three. With stacking instead of the one-coin model all judges win
on all public panels, with the same numbers in both orientations. Under the correctness encoding every
arm is nearly perfect, whatever the votes are.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import (
    Answers,
    advantage,
    answers,
    split_p_values,
)
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.measures.significance import Interval

ARMS = ("top-3", "top-5", "top-10", "one-per-family")
CLAIM = Statement("all judges beat the most accurate ones", "paper", MARGIN["nll"])
EXCEPTION = "top-10", LLMBAR
TIE = Statement("all judges tie with the top 10 of LLMBar", "paper", MARGIN["nll"], within=True)
STACKING = Statement("stacking of all judges beats the selected ones", "audit", MARGIN["nll"])


@experiment(
    PAPER,
    "table2",
    "Table 2: inclusion against selection, calibrated",
    "with the same calibrator, all judges beat the most accurate ones",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLLs, the paper's effect sizes and tests, and intervals for new items."""
    records: list[dict[str, Any]] = []
    notes = [
        "Delta is NLL(selected) minus NLL(all), per item, median over splits, with the bootstrap "
        "interval over splits (Appendix F). t and p are medians over splits of the paired t "
        "statistic and of the permutation test with 10,000 sign flips. The graded rows have "
        "intervals for new items and new calibration sets, which hold for all of them at once; splits "
        "share items, which an interval over splits ignores.",
        "Rows with constant labels have no grade.",
    ]
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        everyone = answers(run, panel, "one-coin")["beta"]
        stack = answers(run, panel, "stacking", ("none",))["none"]
        records += metric_rows(everyone, "one-coin", ("nll", "accuracy"))
        records += metric_rows(stack, "stacking", ("nll", "accuracy"))
        for arm in run.few(list(ARMS), 2):
            arm_answers = answers(run, panel, arm)["beta"]
            records += metric_rows(arm_answers, arm, ("nll", "accuracy"))
            records += _tests(run, everyone, arm_answers, arm)
            claim = TIE if (arm, panel.dataset) == EXCEPTION else CLAIM
            for name, one, statement in (
                ("one-coin", everyone, claim),
                ("stacking", stack, STACKING),
            ):
                gain = advantage(one, arm_answers)
                title = f"{arm} minus {name}"
                records.append(
                    claim_row(panel, title, "nll difference", gain, run.splits, statement)
                )
    return Output(rows(PAPER, "table2", graded(records)), notes=notes)


def _tests(run: Run, everyone: Answers, arm_answers: Answers, arm: str) -> list[dict[str, Any]]:
    """Return the paper's own statistics of one comparison."""
    difference = arm_answers.each("nll") - everyone.each("nll")
    by_split = np.nanmean(difference, axis=1)
    over_splits = bootstrap_interval(by_split)
    error = np.nanstd(difference, axis=1, ddof=1) / np.sqrt(everyone.inside.sum(1))
    t = by_split / np.maximum(error, 1e-300)
    p = split_p_values(difference, seed=run.seed)
    delta = Interval(float(np.median(by_split)), over_splits.low, over_splits.high)
    point = [("median t", float(np.median(t))), ("median p", float(np.median(p)))]
    return [
        value_row(everyone.panel, arm, "Delta", delta, run.splits),
        *(
            value_row(everyone.panel, arm, metric, Interval(v, np.nan, np.nan), run.splits)
            for metric, v in point
        ),
    ]
