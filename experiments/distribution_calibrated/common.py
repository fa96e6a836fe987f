"""Shared code of P1's tables: the methods, the cells, and comparisons of two methods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.aggregators import (
    Aggregator,
    BaseRate,
    ConfidenceVote,
    Davidson,
    MajorityVote,
    MarginThreshold,
    RoundedMedian,
    SoftVote,
)
from judgebayes.compiled.checkpoint import kept_part
from judgebayes.compiled.digest import digest_of
from judgebayes.evaluate.one_split import measure
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.core import Grade, Run, expected, grade
from judgebayes.experiments.data import Cell
from judgebayes.experiments.distribution_calibrated.twins import twin_cells
from judgebayes.inference import MinimumLoss, MinimumScore
from judgebayes.measures.scores import nll
from judgebayes.measures.significance import Interval, item_means, normal_interval, two_way_interval

__all__ = [
    "PAPER",
    "Answers",
    "advantage",
    "against",
    "answer_splits",
    "answers",
    "cell_rows",
    "claim_row",
    "methods",
    "printed",
    "splits",
    "twin_note",
    "twin_rows",
]

PAPER = "distribution-calibrated"
CALIBRATION = 0.05
SCORES = ("mae", "accuracy", "drps", "nll", "ece")

Printed = dict[tuple[str, str, int, str], float]


def methods() -> dict[str, Aggregator]:
    """Return the methods of P1 and of the audit, by their name in tables."""
    return {
        "davidson": Davidson(),
        "davidson-mae": Davidson(MinimumLoss()),
        "davidson-ml": Davidson(MinimumScore(nll)),
        "sc": MajorityVote(),
        "sc-outer": MajorityVote("outer"),
        "sc-first": MajorityVote("first"),
        "soft-sc-min": SoftVote("min"),
        "soft-sc-mean": SoftVote("mean"),
        "soft-sc-product": SoftVote("product"),
        "ci-sc": ConfidenceVote(),
        "greedy-2": RoundedMedian(),
        "margin-threshold": MarginThreshold(),
        "best-constant": BaseRate(),
    }


def splits(
    run: Run,
    cell: Cell,
    *,
    calibration: float | int = CALIBRATION,
    grouped: bool = False,
    count: int | None = None,
) -> Splits:
    """Return the random splits of a cell, by item or by group."""
    return random_splits(
        cell.votes.n_items,
        splits=min(run.splits, count or run.splits),
        calibration=calibration,
        groups=cell.groups if grouped else None,
        seed=run.seed,
    )


@dataclass(frozen=True)
class Answers:
    """One method's decisions on the evaluation items of every split of a cell."""

    cell: Cell
    items: Int[np.ndarray, "split item"]
    decisions: Int[np.ndarray, "split item"]
    scores: dict[str, Float[np.ndarray, " split"]]
    """Metrics by split: mae, accuracy, drps, nll, ece."""

    @property
    def errors(self) -> Float[np.ndarray, "split item"]:
        """Absolute errors, NaN where shorter parts are padded."""
        wrong = np.abs(self.decisions - self.cell.labels[np.maximum(self.items, 0)])
        return np.where(self.items >= 0, wrong, np.nan)

    @property
    def by_item(self) -> Float[np.ndarray, " item"]:
        """Each item's mean error over the splits that evaluate it."""
        return item_means(self.errors, self.items, self.cell.votes.n_items)

    def interval(self, metric: str) -> Interval:
        """Return the mean over splits with the paper's 1.96 SE interval."""
        return normal_interval(self.scores[metric])


def answers(
    run: Run, cell: Cell, n: int, name: str, *, grouped: bool = False, count: int | None = None
) -> Answers:
    """Return the answers of a method of `methods` on a cell with n votes, computed once per run."""

    def make() -> Answers:
        parts = splits(run, cell, grouped=grouped, count=count)
        return answer_splits(run, cell, n, methods()[name], parts)

    return run.remember((cell.key, n, name, grouped, count), make)


def answer_splits(run: Run, cell: Cell, n: int, method: Aggregator, parts: Splits) -> Answers:
    """Return a method's answers on the given splits of a cell with n votes."""
    votes = cell.votes.first(n)

    def make() -> dict[str, np.ndarray]:
        evaluation = evaluate_splits(
            method,
            votes,
            cell.labels,
            parts,
            fit_on="calibration",
            seed=run.seed,
            batch_size=run.batch_size,
        )
        wide = np.asarray(evaluation.items)
        width = int((wide >= 0).sum(1).max())
        return {
            "items": wide[:, :width].astype(np.int32),
            "decisions": np.asarray(evaluation.decisions)[:, :width].astype(np.int8),
            **measure(evaluation, SCORES),
        }

    if run.checkpoint is None:
        arrays = make()
    else:  # decisions and scores take a tenth of the space of all answers
        made_of = (method, votes, cell.labels, parts.calibration, parts.evaluation)
        name = digest_of(made_of, PAPER, SCORES, run.seed, run.batch_size)
        arrays = kept_part(run.checkpoint, name, make)
    scores = {name: arrays[name] for name in SCORES}
    return Answers(cell, arrays["items"], arrays["decisions"], scores)


def advantage(method: Answers, other: Answers) -> Interval:
    """Return how much lower the method's MAE is than the other's, on the same splits.

    The interval accounts for sampling of items (those that share a question are dependent) and of
    calibration sets.
    """
    cell = method.cell
    return two_way_interval(
        other.errors - method.errors, method.items, cell.votes.n_items, cell.groups
    )


def cell_rows(
    cell: Cell,
    n: int | None,
    method: str,
    answer_set: Answers,
    *,
    paper_value: float | None = None,
    graded: Grade = "",
    metrics: tuple[str, ...] = ("mae", "accuracy"),
) -> list[dict[str, Any]]:
    """Return the result rows of one method on one cell."""
    return [
        {
            "dataset": cell.dataset,
            "task": cell.task,
            "judge": cell.judge,
            "n": n,
            "method": method,
            "metric": metric,
            **interval_columns(answer_set.interval(metric)),
            "splits": len(answer_set.items),
            "paper_value": paper_value,
            "grade": graded,
        }
        for metric in metrics
    ]


def interval_columns(interval: Interval) -> dict[str, float]:
    """Return an interval as the columns value, low and high."""
    return {"value": interval.mean, "low": interval.low, "high": interval.high}


def claim_row(
    cell: Cell, n: int | None, method: str, metric: str, interval: Interval, n_splits: int
) -> dict[str, Any]:
    """Return the row of a claim that a value is above zero, graded by its interval."""
    return {
        "dataset": cell.dataset,
        "task": cell.task,
        "judge": cell.judge,
        "n": n,
        "method": method,
        "metric": metric,
        **interval_columns(interval),
        "splits": n_splits,
        "grade": grade(interval),
    }


def against(
    run: Run, cell: Cell, n: int, others: Sequence[str], *, method: str = "davidson"
) -> list[dict[str, Any]]:
    """Return a graded row for each claim that the method's MAE is lower than another's on a cell."""
    own = answers(run, cell, n, method)
    return [
        claim_row(
            cell,
            n,
            f"{other} minus {method}",
            "mae difference",
            advantage(own, answers(run, cell, n, other)),
            len(own.items),
        )
        for other in others
    ]


def twin_rows(
    run: Run, task: str, judge: str, n: int, names: tuple[str, ...], metric: str, printed: Printed
) -> list[dict[str, Any]]:
    """Return the median and range of each method's score over a cell's twins.

    `sc` uses the rule for tied votes to which each twin was fitted.
    """
    records = []
    cells = twin_cells(run, task, judge)
    for name in names:
        scored = [
            float(
                answers(run, cell, n, rule_of(cell) if name == "sc" else name).scores[metric].mean()
            )
            for cell in cells
        ]
        if scored:
            records.append(
                {
                    "dataset": "twin",
                    "task": task,
                    "judge": judge,
                    "n": n,
                    "method": name,
                    "metric": metric,
                    "value": float(np.median(scored)),
                    "low": min(scored),
                    "high": max(scored),
                    "splits": run.splits,
                    "paper_value": printed.get((task, judge, n, name)),
                    "grade": "simulated",
                }
            )
    return records


def rule_of(cell: Cell) -> str:
    """Return the name of self-consistency with the tie rule to which a twin was fitted."""
    return {"middle": "sc", "outer": "sc-outer", "first": "sc-first"}[cell.variant.split()[-1]]


def printed(*tables: str) -> Printed:
    """Return the paper's values by (task, judge, n, method); if tables differ, the first one's."""
    values: Printed = {}
    for table in tables:
        for row in expected(PAPER, table).itertuples():
            values.setdefault((row.task, row.judge, int(row.n), row.method), float(row.value))
    return values


def twin_note(table: pd.DataFrame) -> str:
    """Return how often the paper's value lies within the twins' range."""
    own = table[(table["dataset"] == "twin") & (table["method"] == "davidson")]
    own = own.dropna(subset=["paper_value"])
    value = own["paper_value"].astype(float)
    inside = (value >= own["low"]) & (value <= own["high"])
    above, below = int((value > own["high"]).sum()), int((value < own["low"]).sum())
    return (
        f"Twins: the paper's own method prints a value within the twins' range in "
        f"{int(inside.sum())} of {len(own)} cells, above it in {above} and below it in {below}. The "
        f"ranges are wide (median width {float((own['high'] - own['low']).median()):.2f}): majority "
        "voting's error and accuracy at two numbers of votes say little about how well a "
        "calibrated rule can do."
    )
