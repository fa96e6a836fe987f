"""Shared code of P1's tables: the methods, the cells, the margins, and how claims are graded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from jaxtyping import Float, Int

from judgebayes import BaseRate, Davidson, MajorityVote, MarginThreshold
from judgebayes.evaluate.one_split import measure
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments import core
from judgebayes.experiments.claims import Evidence, Kind, evidence
from judgebayes.experiments.core import Run, expected
from judgebayes.experiments.data import Cell
from judgebayes.experiments.distribution_calibrated.confidence_votes import (
    ConfidenceVote,
    RoundedMedian,
    SoftVote,
)
from judgebayes.experiments.distribution_calibrated.minimum_loss import MinimumLoss
from judgebayes.experiments.significance import normal_interval
from judgebayes.inference import MinimumScore
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import nll
from judgebayes.measures.significance import Interval, item_means

PAPER = "distribution-calibrated"
CALIBRATION = 0.05
SCORES = ("mae", "accuracy", "drps", "nll")

MARGIN = {
    # A third of the smallest gain over SC that the paper prints: 0.030 in Table 3, 0.016 in Table 4.
    "mae": 0.01,
    "accuracy": 0.005,
    # The paper's own word: beyond 100 labels, changes are below 0.002 (section 5).
    "labels": 0.002,
    # Just below the smallest gain of balanced orders that Table 10 prints, 0.0056.
    "orders": 0.005,
    # Less than half of the mean loss at T = 0.1 against T = 0.5 in Table 11, 0.013.
    "temperature": 0.005,
    # A third of the smaller gain in Appendix D: ties of WMT ZH-EN, 49 % by SC, 33 % by the method.
    "label distribution": 0.05,
    # That change itself: a prediction not known to within it cannot tell the method from SC.
    "tie decisions": 0.16,
    # About half of the smallest range over prompts in Table 2: deepseek, 28.9 to 32.6 %.
    "tie rate": 0.02,
    # "About half": a twentieth; the paper's five tasks lie within 0.034 of one half (Table 8).
    "label share": 0.05,
    # One unit of the last printed decimal, since Table 1 truncates (14.58 % is printed as 14.5 %).
    "printed": 0.001,
    # Our own criteria, printed to a percent of the votes and to a thousandth of MAE.
    "votes saved": 0.01,
    "mae lost": 0.001,
    # Rounding of the numbers that the paper prints to three decimals.
    "rounding": 0.0005,
}
"""The smallest difference that matters, by what is claimed; fixed from what the paper prints.

A twin's margin is the gain over SC that the paper prints for the cell: a prediction that is not known
to within it cannot tell the method from SC.
"""

STAND_INS = dict.fromkeys(
    ("soft-sc-min", "soft-sc-mean", "soft-sc-product", "ci-sc"), "made-up confidence"
)
"""Methods with a stand-in for an input. The votes have no sequence probabilities (`rb2`)."""
OURS = ("margin-threshold", "best-constant")
"""Methods that the paper does not have."""

Printed = dict[tuple[str, str, int, str], float]


def methods() -> dict[str, Method]:
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
    """Metrics by split: mae, accuracy, drps, nll."""

    @property
    def errors(self) -> Float[np.ndarray, "split item"]:
        """Absolute errors, NaN where shorter parts are padded."""
        wrong = np.abs(self.decisions - self.cell.labels[np.maximum(self.items, 0)])
        return np.where(self.items >= 0, wrong, np.nan)

    @property
    def by_item(self) -> Float[np.ndarray, " item"]:
        """Each item's mean error over the splits that evaluate it."""
        return item_means(self.errors, self.items, self.cell.votes.n_items)

    def losses(self, metric: str) -> Float[np.ndarray, "split item"]:
        """Return absolute errors for `mae`, and wrong decisions for `accuracy`."""
        return np.minimum(self.errors, 1.0) if metric == "accuracy" else self.errors

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


def answer_splits(run: Run, cell: Cell, n: int, method: Method, parts: Splits) -> Answers:
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
        )
        wide = np.asarray(evaluation.items)
        width = int((wide >= 0).sum(1).max())
        return {
            "items": wide[:, :width].astype(np.int32),
            "decisions": np.asarray(evaluation.decisions)[:, :width].astype(np.int8),
            **measure(evaluation, SCORES),
        }

    # Decisions and scores take a tenth of the space of all answers.
    arrays = run.resumed((PAPER, SCORES, method, votes, cell.labels, parts), make)
    scores = {name: arrays[name] for name in SCORES}
    return Answers(cell, arrays["items"], arrays["decisions"], scores)


@dataclass(frozen=True)
class Comparison:
    """A row of a table without its grade, and the evidence on it."""

    record: dict[str, Any]
    evidence: Evidence
    kind: Kind


def seed_of(cell: Cell) -> int:
    """Return the seed of evidence on a cell's items, the same for all judges and numbers of votes."""
    return crc32(f"{cell.dataset} {cell.task}".encode())


def advantage(method: Answers, other: Answers, metric: str = "mae") -> Evidence:
    """Return evidence on how much lower the method's loss is than the other's, on the same splits.

    Items (those that share a question together) and splits are resampled.
    """
    cell = method.cell
    gain = other.losses(metric) - method.losses(metric)
    return evidence(gain, method.items, cell.votes.n_items, cell.groups, seed=seed_of(cell))


def cell_rows(
    cell: Cell,
    n: int | None,
    method: str,
    answer_set: Answers,
    *,
    paper_value: float | None = None,
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
        }
        for metric in metrics
    ]


def interval_columns(interval: Interval) -> dict[str, float]:
    """Return an interval as the columns value, low and high."""
    return {"value": interval.mean, "low": interval.low, "high": interval.high}


def comparison(
    cell: Cell,
    n: int | None,
    method: str,
    metric: str,
    of: Evidence,
    n_splits: int,
    kind: Kind = "paper",
) -> Comparison:
    """Return a claim that a number of a cell is above 0, which `graded` grades."""
    record = {
        "dataset": cell.dataset,
        "task": cell.task,
        "judge": cell.judge,
        "n": n,
        "method": method,
        "metric": metric,
        "splits": n_splits,
    }
    return Comparison(record, of, kind)


def graded(
    comparisons: Sequence[Comparison],
    margin: float,
    *,
    within: bool = False,
    tolerance: float = 0.0,
) -> list[dict[str, Any]]:
    """Return the rows of one claim over a table, those of each kind graded together.

    All cells are twins, or none is. Other parameters: `judgebayes.experiments.core.graded`.
    """
    records = []
    for kind in dict.fromkeys(each.kind for each in comparisons):
        pairs = [(each.record, each.evidence) for each in comparisons if each.kind == kind]
        records += core.graded(pairs, kind=kind, margin=margin, within=within, tolerance=tolerance)
    return records


def against(
    run: Run,
    cell: Cell,
    n: int,
    others: Sequence[str],
    *,
    method: str = "davidson",
    metric: str = "mae",
) -> list[Comparison]:
    """Return the claims that a method is better than others on a cell."""
    own = answers(run, cell, n, method)
    comparisons = []
    for other in others:
        of = advantage(own, answers(run, cell, n, other), metric)
        kind: Kind = "audit" if other in OURS else "proxy" if other in STAND_INS else "paper"
        name = f"{other} ({STAND_INS[other]})" if other in STAND_INS else other
        difference = f"{name} minus {method}" if metric == "mae" else f"{method} minus {name}"
        comparisons.append(
            comparison(cell, n, difference, f"{metric} difference", of, len(own.items), kind)
        )
    return comparisons


def printed(*tables: str) -> Printed:
    """Return the paper's values by (task, judge, n, method); if tables differ, the first one's."""
    values: Printed = {}
    for table in tables:
        for row in expected(PAPER, table).itertuples():
            values.setdefault((row.task, row.judge, int(row.n), row.method), float(row.value))
    return values
