"""Rows of tables: numbers with intervals, claims with grades, the paper's numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from judgebayes.experiments.calibrate_dont_curate.answers import Answers
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.core import Grade, expected, grade
from judgebayes.experiments.panels import Panel
from judgebayes.measures.significance import Interval
from judgebayes.panel.diagnostics import diagnose

__all__ = [
    "METRICS",
    "claim_row",
    "degenerate",
    "log_scales",
    "metric_rows",
    "paper_values",
    "simulated_grade",
    "synthetic_row",
    "value_row",
]

METRICS = ("nll", "brier", "ece", "accuracy")


def metric_rows(
    answer_set: Answers, method: str, metrics: Sequence[str] = METRICS, **more: Any
) -> list[dict[str, Any]]:
    """Return a row per metric of a method's answers."""
    return [
        value_row(
            answer_set.panel, method, m, answer_set.interval(m), len(answer_set.items), **more
        )
        for m in metrics
    ]


def log_scales(figure: Figure, places: Sequence[float]) -> Figure:
    """Return the figure with logarithmic axes and plain numbers as tick labels."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for ax in figure.axes:
        low, high = ax.get_xlim()
        inside = [x for x in places if low <= x <= high]
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(inside, [f"{x:g}" for x in inside])
        ax.xaxis.set_minor_formatter(NullFormatter())
        bottom, top = ax.get_ylim()
        wide = top > 5 * bottom
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if wide else MaxNLocator(5))
        ax.yaxis.set_major_formatter(plain)
        ax.yaxis.set_minor_formatter(NullFormatter())
    return figure


def value_row(
    panel: Panel, method: str, metric: str, interval: Interval, splits: int, **more: Any
) -> dict[str, Any]:
    """Return a row of a number with its interval; `more` fills other columns.

    Every result on the twin is a prediction.
    """
    return {
        "dataset": panel.name,
        "task": panel.orientation,
        "judge": f"{len(panel.judges)} judges",
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": splits,
        "grade": "simulated" if panel.dataset == "twin" else "",
        **more,
    }


def claim_row(
    panel: Panel, method: str, metric: str, interval: Interval, splits: int, **more: Any
) -> dict[str, Any]:
    """Return the row of a claim that a gain is above zero, graded where the data can test it.

    Constant labels cannot test a claim: every result on them is the same without any vote.
    """
    row = value_row(panel, method, metric, interval, splits, **more)
    if degenerate(panel) or panel.dataset == "twin":
        return row
    return {**row, "grade": grade(interval)}


def degenerate(panel: Panel) -> bool:
    """Return whether the program's diagnostic reports constant labels."""
    return any(
        f.topic == "labels" and f.severity == "bad" for f in diagnose(panel.votes, panel.labels)
    )


def paper_values(table: str) -> dict[tuple[str, str, str], float]:
    """Return the numbers of a table that the paper's text contains, by benchmark, method and metric."""
    table_rows = expected(PAPER, table)
    return {(r.task, r.method, r.metric): float(r.value) for r in table_rows.itertuples()}


def simulated_grade(advantage: Interval) -> Grade:
    """Return the grade of a claim that the paper itself tests on simulated votes."""
    if not np.isfinite(advantage.low):
        return ""
    return "simulated" if advantage.low > 0 else "contradicted" if advantage.high < 0 else ""


def synthetic_row(
    statement: str, what: str, value: float, holds: bool | np.bool_ | None
) -> dict[str, Any]:
    """Return the row of a number about a statement, graded by whether the statement holds.

    `holds` is None for a number that does not test the statement.
    """
    graded: Grade = "" if holds is None else "simulated" if holds else "contradicted"
    return {
        "dataset": "synthetic",
        "task": f"{statement}: {what}",
        "method": "exact",
        "metric": "value",
        "value": float(value),
        "grade": graded,
    }
