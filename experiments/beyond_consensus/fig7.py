"""P4 Figs 7 and 8: how many judges are right about an item, and how many votes are missing.

Claim: about 60 % of the valid items are recognised by all 14 judges, 2 % of the invalid ones, and
28 % of these by none, even after repair; margin 1 point. 9.4 % of 193,000 votes are missing, 3.2 % after
repair; margin 0.3 points, since the paper counts in thousands.
Command: judgebayes reproduce beyond-consensus/fig7 --data DIR
Runtime: seconds.
Expected: the shares of items and of missing votes agree with the text but for one: by the released item
votes fewer invalid items are missed by all judges.
"""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.beyond_consensus.common import (
    DATASET,
    LEVELS,
    PAPER,
    cells,
    equal,
    item_votes,
    levels,
)
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.plots import curves, intervals


@experiment(
    PAPER,
    "fig7",
    "Figs 7 and 8: judges who are right about an item, missing votes",
    "28 % of the invalid items are missed by every judge, even after repair",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return the cumulative share of items by number of right judges, and missing votes by judge."""
    printed = expected(PAPER, "fig7").set_index(["task", "method", "metric"])["value"]
    records: list[dict[str, Any]] = []
    for level in levels(run, items=True):
        cell = item_votes(run, level)
        index = np.asarray(cell.votes.index)[..., 0]
        right = (index == cell.labels[:, None]).sum(1)
        for label, name in ((1, "valid items"), (0, "invalid items")):
            own = right[cell.labels == label]
            records += [
                {
                    "dataset": DATASET,
                    "task": LEVELS[level],
                    "n": n,
                    "method": name,
                    "metric": "share with at most n judges right",
                    "value": float((own <= n).mean()),
                }
                for n in range(len(cell.judges) + 1)
            ]
            for metric, value in (
                ("all judges right", (own == len(cell.judges)).mean()),
                ("no judge right", (own == 0).mean()),
            ):
                row: dict[str, Any] = {
                    "dataset": DATASET,
                    "task": LEVELS[level],
                    "method": name,
                    "metric": metric,
                    "value": float(value),
                }
                theirs = printed.get((level, name, metric))
                if theirs is not None:
                    row |= equal(float(value), float(theirs), "share of items")
                records.append(row)
    records += _missing(run, printed)
    table = rows(PAPER, "fig7", records)
    figure_rows = table[table["metric"] == "share with at most n judges right"]
    figures = {
        "right": curves(
            figure_rows.assign(
                value=100 * figure_rows["value"].astype(float), low=np.nan, high=np.nan
            ),
            "n",
            panel="task",
            metric="share with at most n judges right",
            xlabel="judges who are right, at most",
            ylabel="items, %",
            title="How many of 14 judges are right about an item",
        ),
        "missing": intervals(
            table[(table["metric"] == "missing votes") & (table["judge"] != "all")].assign(
                value=lambda t: 100 * t["value"].astype(float), low=np.nan, high=np.nan
            ),
            label="judge",
            series="task",
            xlabel="missing votes, %",
            title="Missing votes by judge and repair",
        ),
    }
    return Output(table, figures)


def _missing(run: Run, printed: pd.Series) -> list[dict[str, Any]]:
    """Return the share of missing votes by judge, on the items of all 14 generators.

    A vote is missing where an item matches no entry of the judge's answer (`merge_failed_fids`: on
    the six annotated generators these are exactly the votes that are not released). The number of a
    generator's items comes from the judge with the fewest unmatched entries, after all repairs.
    """
    last = cells(run, "fcnhp")
    size = (last["total_fids"] + last["merge_failed_fids"]).groupby(last["generator"]).min()
    records: list[dict[str, Any]] = []
    for level in levels(run):
        own = cells(run, level)
        by_judge = own.groupby("validator", sort=False)["merge_failed_fids"].sum()
        shares = {str(j): float(n / size.sum()) for j, n in by_judge.items()}
        shares["all"] = float(np.mean(list(shares.values())))
        for judge, share in shares.items():
            row: dict[str, Any] = {
                "dataset": DATASET,
                "task": LEVELS[level],
                "judge": judge,
                "method": "votes",
                "metric": "missing votes",
                "value": share,
            }
            theirs = printed.get((level, "votes", "missing votes"))
            if judge == "all" and theirs is not None:
                row |= equal(share, float(theirs), "missing votes")
            records.append(row)
    return records
