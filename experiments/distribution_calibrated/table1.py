"""P1 Table 1: position bias, (first - second) / (first + second).

Claim: allowing a tie reduces position bias (gemini-2.5-flash 14.5 % to 3.1 %); tested is only that
the printed biases follow from the printed counts, margin 0.001.
Command: judgebayes reproduce distribution-calibrated/table1 --data DIR
Runtime: seconds.
Expected: no public data have the same judge with and without the tie option, so the comparison cannot
be tested. The bias of judges that may tie can be, and the paper's own arithmetic: its formula does not
give the bias that is printed for gemini with ties.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.claims import claim_equal
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.data import llmbar_orders, mtbench_orders
from judgebayes.experiments.distribution_calibrated.common import MARGIN, PAPER
from judgebayes.experiments.plots import intervals
from judgebayes.experiments.significance import clustered_interval
from judgebayes.measures.significance import Interval
from judgebayes.votes import Coding, Votes

NEVER = 0.005
"""A judge with a lower tie rate is assumed to be forced to choose."""


@experiment(
    PAPER,
    "table1",
    "Table 1: position bias",
    "the printed position biases follow from the printed counts (that ties reduce them: not testable)",
    needs=("mtbench_repetition_9judges", "llmbar_evaluators"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the bias of every judge whose votes have an order, and the paper's, recomputed."""
    records: list[dict[str, Any]] = []
    if run.has("mtbench_repetition_9judges"):
        votes, coding = mtbench_orders(run)
        records += _biases(votes, coding, "mtbench_repetition_9judges")
    if run.has("llmbar_evaluators"):
        votes, coding, _ = llmbar_orders(run)
        records += _biases(votes, coding, "llmbar_evaluators")
    printed = expected(PAPER, "table1").set_index(["judge", "method", "metric"])["value"]
    for judge, method in dict.fromkeys((j, m) for j, m, _ in printed.index):
        first, second = printed[judge, method, "first"], printed[judge, method, "second"]
        ours, theirs = (first - second) / (first + second), printed[judge, method, "bias"]
        records.append(
            {
                "dataset": "the paper's own counts",
                "task": "wmt-zh-en",
                "judge": judge,
                "method": method,
                "metric": "bias",
                "value": ours,
                "paper_value": theirs,
                "claim": claim_equal(
                    ours, theirs, kind="paper", source="own", margin=MARGIN["printed"]
                ),
            }
        )
    table = rows(PAPER, "table1", sorted(records, key=lambda r: (r["dataset"], r["judge"])))
    real = table[table["dataset"] == "mtbench_repetition_9judges"]
    figures = {}
    if len(real):
        figures["bias"] = intervals(
            real,
            label="judge",
            series="metric",
            xlabel="position bias: votes for the response shown first, minus second",
            title="MT-Bench, ties allowed: bias by judge, 95 % intervals by question",
            zero=True,
        )
    biased = int(((real["low"] > 0) | (real["high"] < 0)).sum())
    notes = [
        "No public data have one judge both forced to choose and allowed to tie, so the paper's "
        "comparison itself is not tested here.",
        f"MT-Bench judges that may tie: {biased} of {len(real)} have a bias whose interval excludes "
        "zero, so a tie option alone does not remove it."
        if len(real)
        else "Real judges: not run, their data are missing.",
        "LLMBar's evaluators differ in more than the tie option: those that must choose compare two "
        "responses in one prompt, those that tie (Rating) score each alone and cannot be biased.",
        "The paper's formula gives 5.0 % for gemini-2.5-flash with ties allowed (220 against 199); "
        "it prints 3.1 %, which is 21 of all 672 votes.",
    ]
    return Output(table, figures, notes)


def _biases(votes: Votes, coding: Coding, dataset: str) -> list[dict[str, Any]]:
    vote_index, swapped = np.asarray(votes.index), np.asarray(votes.order)
    # A vote for A (index 2) names the first response in order AB, the second in order BA.
    side = np.where(
        vote_index < 0, np.nan, np.where(swapped == 1, 1 - vote_index, vote_index - 1.0)
    )
    records = []
    for place, judge in enumerate(coding.judges):
        own = side[:, place].ravel()
        item = np.repeat(np.arange(len(side)), side.shape[2])
        decided = np.isfinite(own) & (own != 0)
        if decided.sum() < 20:
            continue
        interval: Interval = clustered_interval(np.where(decided, own, np.nan), item)
        records.append(
            {
                "dataset": dataset,
                "task": f"tie rate {np.nanmean(own == 0):.0%}",
                "judge": judge,
                "method": "forced" if np.nanmean(own == 0) < NEVER else "tie-allowed",
                "metric": "bias",
                "value": interval.mean,
                "low": interval.low,
                "high": interval.high,
            }
        )
    return records
