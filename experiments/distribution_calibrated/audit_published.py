"""Audit: the paper's printed numbers against each other, and against the best constant answer.

Claim: the tables agree with each other, margin 0.0005 (rounding), and the method beats a constant answer
on the paper's own sample, margin 0.0005.
Command: judgebayes reproduce distribution-calibrated/audit-published
Runtime: a second; no data.
Expected: some cells are printed with two or three values. Always answering "tie" beats the paper's
method on Factuality with few votes, and self-consistency on three of the eight tasks (Factuality,
Precise IF, Ties; by judge and number of votes).
"""

from typing import Any

import pandas as pd

from judgebayes.experiments.claims import claim_equal, claim_range
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.distribution_calibrated.common import MARGIN, PAPER
from judgebayes.experiments.distribution_calibrated.twins import published_labels

JUDGE = "gemini-2.5-flash"
AT_HALF = " T=0.5"
WMT_PROMPT_1 = " prompt 1"


@experiment(
    PAPER,
    "audit-published",
    "Audit: the published numbers themselves",
    "the paper's tables agree with each other, and its methods beat a constant answer",
    twins=True,
)
def main(run: Run) -> Output:
    """Return every cell printed more than once, and every method against the best constant."""
    records = _twice() + _against_constant()
    table = rows(PAPER, "audit-published", records)
    apart = table[table["metric"] == "difference between tables"]
    constant = table[table["metric"] == "mae minus best constant"]
    lost = constant[constant["value"] >= 0]
    notes = [
        f"{int((apart['value'] > 0.0005).sum())} of {len(apart)} cells that are printed in more "
        f"than one table differ, by up to {apart['value'].max():.3f}. A contradiction is a "
        "difference of more than 0.0005: both tables state the same judge, n and 100 splits, or "
        "(Table 11) 20 of them.",
        f"The best constant, from Table 8's label counts, is at least as good in {len(lost)} of "
        f"{len(constant)} printed cells: "
        + ", ".join(f"{method} {int(n)}" for method, n in lost["method"].value_counts().items())
        + ".",
    ]
    return Output(table, notes=notes)


def _twice() -> list[dict[str, Any]]:
    parts = []
    for name in ("table3", "table6", "table11", "table12"):
        part = expected(PAPER, name).query("judge == @JUDGE").assign(where=name)
        if name == "table11":
            part = part[part["method"].str.endswith(AT_HALF)]
            part = part.assign(method=part["method"].str.removesuffix(AT_HALF))
        if name == "table12":
            part = part[part["task"].str.endswith(WMT_PROMPT_1)]
            part = part.assign(task=part["task"].str.removesuffix(WMT_PROMPT_1))
        parts.append(part)
    printed = pd.concat(parts)
    records = []
    for (task, n, method), same in printed.groupby(["task", "n", "method"], sort=False):
        if len(same) > 1:
            apart = float(same["value"].max() - same["value"].min())
            values = ", ".join(
                f"{v:.3f} ({w})" for v, w in zip(same["value"], same["where"], strict=True)
            )
            records.append(
                {
                    "dataset": "the paper",
                    "task": f"{task}: {values}",
                    "judge": JUDGE,
                    "n": n,
                    "method": method,
                    "metric": "difference between tables",
                    "value": apart,
                    "paper_value": 0.0,
                    "claim": claim_equal(
                        apart, 0.0, kind="audit", source="own", margin=MARGIN["rounding"]
                    ),
                }
            )
    return records


def _against_constant() -> list[dict[str, Any]]:
    records = []
    printed = pd.concat([expected(PAPER, "table3"), expected(PAPER, "table6")])
    printed = printed.drop_duplicates(["task", "judge", "n", "method"])
    for row in printed.itertuples():
        labels = published_labels(row.task)
        share = labels / labels.sum()
        best = min(sum(share[y] * abs(a - y) for y in range(3)) for a in range(3))
        lead = best - row.value
        records.append(
            {
                "dataset": "the paper",
                "task": row.task,
                "judge": row.judge,
                "n": row.n,
                "method": row.method,
                "metric": "mae minus best constant",
                "value": row.value - best,
                "paper_value": row.value,
                "claim": claim_range(
                    lead, lead, kind="audit", source="own", margin=MARGIN["rounding"]
                )
                if row.method == "davidson"
                else None,
            }
        )
    return records
