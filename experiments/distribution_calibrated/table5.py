"""P1 Table 5: the judge against each human rater, leaving one out.

Claim: with enough votes the calibrated judge agrees with the other raters' majority better than
most raters do (7 of 8 at 12 votes). Not graded: the judge's votes are simulated.
Command: judgebayes reproduce distribution-calibrated/table5 --data DIR
Runtime: about 30 seconds.
Expected: public WMT23 data have three ratings per item, so two remain without one rater; if they
disagree, the item is dropped (stated below). LLM votes are not public: votes are drawn from the twins
of gemini-2.5-flash given the remaining raters' label, so the judge's rows are simulated.
"""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes import Davidson
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import Cell, wmt23
from judgebayes.experiments.distribution_calibrated.common import PAPER, answer_splits, splits
from judgebayes.experiments.distribution_calibrated.twins import TWIN_VOTES, twins
from judgebayes.experiments.distribution_calibrated.vote_twins import draw_votes
from judgebayes.experiments.significance import clustered_interval

VOTES = (2, 4, 8, 12)
TASK, JUDGE = "WMT ZH-EN", "gemini-2.5-flash"


@experiment(
    PAPER,
    "table5",
    "Table 5: the judge against each human rater",
    "the calibrated judge agrees with the other raters better than most raters do",
    needs=("wmt23_sxs_mqm",),
)
def main(run: Run) -> Output:
    """Return each rater's accuracy against the others, and the twin judge's on the same items."""
    ratings = wmt23(run, "zhen")
    wide = ratings.pivot_table(index="item", columns="rater", values="vote")
    records: list[dict[str, Any]] = []
    raters_beaten = dict.fromkeys(VOTES, 0)
    kept_share, raters_at = [], []
    for rater in run.few(sorted(wide.columns, key=lambda name: int(name[5:])), 2):
        own, label, items = _leave_out(wide, rater)
        kept_share.append(len(items) / int(wide[rater].notna().sum()))
        documents = np.unique([item.split("|")[1] for item in items], return_inverse=True)[1]
        human = clustered_interval((own == label).astype(float), documents)
        raters_at.append(human.mean)
        records.append(_row(rater, "human", None, human.mean, human.low, human.high))
        for n in VOTES:
            scored = [
                _judge(run, rater, label, documents, place, n)
                for place in range(len(run.few(twins(TASK, JUDGE), 2)))
            ]
            middle = float(np.median(scored))
            raters_beaten[n] += middle > human.mean
            records.append(_row(rater, JUDGE, n, middle, min(scored), max(scored)))
    table = rows(PAPER, "table5", records)
    raters = len(kept_share)
    notes = [
        "Three ratings per item: without one rater two remain. Items whose two others disagree "
        f"have no majority and are dropped ({1 - np.mean(kept_share):.0%} of a rater's items); the "
        "paper had six ratings per item.",
        "Votes are drawn from the nine twins of gemini-2.5-flash given the others' label: value is "
        "the median, low and high the range. No row is graded: people's ratings are real, the judge's "
        "votes are not. A twin's errors are independent of people's, so this "
        "only shows the protocol's result for a judge of that accuracy.",
        "Raters beaten: "
        + ", ".join(f"{raters_beaten[n]} of {raters} at {n} votes" for n in VOTES)
        + " (paper: 4, 5, 6, 7 of 8).",
        f"On the items where the other two agree, raters' accuracies run from {min(raters_at):.2f} to "
        f"{max(raters_at):.2f}; the paper's, against five others, from 0.50 to 0.61.",
    ]
    return Output(table, notes=notes)


def _leave_out(wide: pd.DataFrame, rater: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return a rater's classes, the label on which the other two agree, and the items."""
    rated = wide[wide[rater].notna()]
    others = rated.drop(columns=rater)
    agree = (others.min(axis=1) == others.max(axis=1)) & (others.notna().sum(axis=1) == 2)
    rated, others = rated[agree], others[agree]
    return rated[rater].to_numpy(int) + 1, others.max(axis=1).to_numpy(int) + 1, list(rated.index)


def _judge(
    run: Run, rater: str, label: np.ndarray, documents: np.ndarray, place: int, n: int
) -> float:
    """Return the accuracy of one twin's calibrated votes on a rater's items."""
    votes = run.remember(
        ("table5", rater, place),
        lambda: draw_votes(twins(TASK, JUDGE)[place], label, TWIN_VOTES, run.seed + place),
    )
    cell = Cell("wmt23_sxs_mqm", rater, JUDGE, votes, label, documents, (), str(place))
    answer_set = answer_splits(run, cell, n, Davidson(), splits(run, cell, count=20))
    return float(answer_set.scores["accuracy"].mean())


def _row(
    rater: str, judge: str, n: int | None, value: float, low: float, high: float
) -> dict[str, Any]:
    return {
        "dataset": "wmt23_sxs_mqm",
        "task": f"{TASK} {rater}",
        "judge": judge,
        "n": n,
        "method": "rater" if judge == "human" else "davidson",
        "metric": "accuracy",
        "value": value,
        "low": low,
        "high": high,
    }
