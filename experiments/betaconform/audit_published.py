"""Audit: the paper's printed numbers against its own sentences.

Claim: the text's statements about the tables agree with the tables; margin 0.061 (one printed decimal).
Audit: printed averages are the means of their columns; margin 0.0101 (two decimals).
Command: judgebayes reproduce betaconform/audit-published
Runtime: less than a second; no data.
Expected: the improvement over the Binomial starts lower than the text says; GPT-4's average in Table 1
is not the mean of its column; transfer is worse in some cells and on GPT-3.5's average; eq 11 asks for
more labels than the text says. The other numbers agree.
"""

from typing import Any

import pandas as pd

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.stopping_rules import minimum_labels
from judgebayes.experiments.claims import Kind, claim_equal
from judgebayes.experiments.core import Output, Run, expected, experiment, rows

ROUNDING = {"average": 0.0101, "sentence": 0.061}
"""The largest difference that rounding explains: averages have two decimals, sentences one."""


@experiment(
    PAPER,
    "audit-published",
    "Audit: the published numbers themselves",
    "the text's statements about the tables agree with the tables",
    twins=True,
)
def main(run: Run) -> Output:
    """Return every printed average with its column's mean, and a check of every sentence."""
    records = [*_averages("table1"), *_averages("table2"), *_averages("table4"), *_sentences()]
    table = rows(PAPER, "audit-published", records)
    averages = table[table["metric"].str.startswith("average")]
    wrong = averages[averages["grade"] == "contradicted"]
    notes = [
        f"{len(wrong)} of {len(averages)} printed averages are not the mean of their column: "
        + "; ".join(
            f"{r.task}, {r.judge}, {r.method}: {r.value:.2f}, printed {r.paper_value:.2f}"
            for r in wrong.itertuples()
        )
        + "."
    ]
    notes += [
        f"{r.task}: the tables give {r.value:.2f}, the text says {r.paper_value:.2f}."
        for r in table[table["metric"] == "sentence"].itertuples()
    ]
    return Output(table, notes=notes)


def row(
    task: str, judge: str, method: str, metric: str, value: float, paper_value: float
) -> dict[str, Any]:
    """Return the row of a number of the text beside the number that its table gives."""
    margin = ROUNDING[metric.split()[0]]
    kind: Kind = "audit" if metric.startswith("average") else "paper"
    return {
        "dataset": "the paper",
        "task": task,
        "judge": judge,
        "n": None,
        "method": method,
        "metric": metric,
        "paper_value": paper_value,
        "claim": claim_equal(value, paper_value, kind=kind, source="own", margin=margin),
    }


def _averages(name: str) -> list[dict[str, Any]]:
    printed = expected(PAPER, name)
    records = []
    for (judge, method, metric), own in printed.groupby(["judge", "method", "metric"], sort=False):
        mean = float(own.loc[own["task"] != "Average", "value"].mean())
        paper_average = float(own.loc[own["task"] == "Average", "value"].iloc[0])
        metric = "average margin" if metric == "error margin" else "average labels"
        records.append(row(name, str(judge), str(method), metric, mean, paper_average))
    return records


def _sentences() -> list[dict[str, Any]]:
    statements = expected(PAPER, "statements").set_index(["task", "n"])["value"].to_dict()
    statements = {task: value for (task, _), value in statements.items()} | {
        f"minimum labels {n:g}": v for (t, n), v in statements.items() if t == "minimum labels"
    }
    one, two = (_by_method(expected(PAPER, name)) for name in ("table1", "table2"))
    average = one.loc["Average"]
    gain = 100 * (1 - average["ours"] / average["binomial"])
    average_row = two.loc["Average"]
    transferred = 100 * (1 - average_row["transfer"] / average_row["no transfer"])
    cells = two.drop(index="Average", level="task")
    labels = expected(PAPER, "table1").query("metric == 'labels' and task == 'Average'")["value"]
    away = (56 - labels).abs()
    third = expected(PAPER, "table3").pivot_table(
        index=["task", "n"], columns="method", values="value"
    )
    saved = 100 * (1 - third["quantile"] / third["variance"])
    checks = {
        "improvement over Binomial, least": gain.min(),
        "improvement over Binomial, most": gain.max(),
        "labels away from 56, least": away.min(),
        "labels away from 56, most": away.max(),
        "improvement by transfer, least": transferred.min(),
        "improvement by transfer, most": transferred.max(),
        "fewer labels by quantile stopping, most": saved.max(),
        "minimum labels 0.03": float(minimum_labels(0.03)),
        "minimum labels 0.01": float(minimum_labels(0.01)),
    }
    records = [
        row(name, "", "", "sentence", float(v), float(statements[name]))
        for name, v in checks.items()
    ]
    worse = int((cells["transfer"] > cells["no transfer"]).sum())
    records.append(
        row(f"cells of {len(cells)} where transfer is worse", "", "", "sentence", float(worse), 0.0)
    )
    return records


def _by_method(printed: pd.DataFrame) -> pd.DataFrame:
    margins = printed[printed["metric"] == "error margin"]
    return margins.pivot_table(index=["task", "judge"], columns="method", values="value")
