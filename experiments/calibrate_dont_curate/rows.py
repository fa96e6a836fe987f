"""Rows of tables: numbers with intervals, claims with their outcomes, the paper's numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from judgebayes.experiments import core
from judgebayes.experiments.calibrate_dont_curate.answers import Answers
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.claims import Claim, Evidence, Kind, Source
from judgebayes.experiments.core import expected, source_of
from judgebayes.experiments.panels import Panel
from judgebayes.measures.significance import Interval
from judgebayes.panel.diagnostics import diagnose

METRICS = ("nll", "brier", "ece", "accuracy")


class Statement(NamedTuple):
    """A claim of a table, stated before its numbers; all its cells are graded together."""

    text: str
    kind: Kind
    margin: float
    within: bool = False
    """The claim is that a difference is within the margin; if False, that it is above 0."""


class Cell(NamedTuple):
    """A claim in one cell of a table, not graded yet."""

    statement: Statement
    evidence: Evidence


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


def interval_row(
    dataset: str, method: str, metric: str, interval: Interval, splits: int, **more: Any
) -> dict[str, Any]:
    """Return a row of a number with its interval; `more` fills other columns."""
    return {
        "dataset": dataset,
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": splits,
        **more,
    }


def value_row(
    panel: Panel, method: str, metric: str, interval: Interval, splits: int, **more: Any
) -> dict[str, Any]:
    """Return a row of a number of a panel, without a claim; `more` fills other columns."""
    judges = f"{len(panel.judges)} judges"
    return interval_row(
        panel.name,
        method,
        metric,
        interval,
        splits,
        **{"task": panel.orientation, "judge": judges, **more},
    )


def claim_row(
    panel: Panel,
    method: str,
    metric: str,
    evidence: Evidence,
    splits: int,
    statement: Statement,
    **more: Any,
) -> dict[str, Any]:
    """Return the row of a claim where the data can test it, else of the number alone.

    Constant labels cannot test a claim: every result on them is the same without any vote.
    """
    row = value_row(panel, method, metric, evidence.interval(), splits, **more)
    return row if degenerate(panel) else {**row, "claim": Cell(statement, evidence)}


def graded(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a table's records with their claims graded, the cells of each statement together.

    Their intervals then hold at once for all cells of the statement on real data, or on the twin.
    """
    result = [dict(record) for record in records]
    together: dict[tuple[Statement, Source], list[dict[str, Any]]] = {}
    for record in result:
        if isinstance(record.get("claim"), Cell):
            key = record["claim"].statement, source_of(record["dataset"])
            together.setdefault(key, []).append(record)
    for (statement, source), cells in together.items():
        outcomes = core.graded(
            [(record, record["claim"].evidence) for record in cells],
            kind=statement.kind,
            margin=statement.margin,
            within=statement.within,
            source=source,
        )
        for record, outcome in zip(cells, outcomes, strict=True):
            value, low, high = outcome["claim"].interval
            record |= {**outcome, "value": value, "low": low, "high": high}
    return result


def degenerate(panel: Panel) -> bool:
    """Return whether the program's diagnostic reports constant labels."""
    return any(
        f.topic == "labels" and f.severity == "bad" for f in diagnose(panel.votes, panel.labels)
    )


def paper_values(table: str) -> dict[tuple[str, str, str], float]:
    """Return the numbers of a table that the paper's text contains, by benchmark, method and metric."""
    table_rows = expected(PAPER, table)
    return {(r.task, r.method, r.metric): float(r.value) for r in table_rows.itertuples()}


def synthetic_row(
    statement: str, what: str, value: float, claim: Claim | Cell | None
) -> dict[str, Any]:
    """Return the row of a number about a statement; None for a number that does not test it."""
    row = {
        "dataset": "synthetic",
        "task": f"{statement}: {what}",
        "method": "exact",
        "metric": "value",
        "value": float(value),
        "low": np.nan,
        "high": np.nan,
    }
    return row if claim is None else {**row, "claim": claim}
