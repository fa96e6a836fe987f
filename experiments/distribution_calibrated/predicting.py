"""What the twins predict of the paper's numbers: weighted by fit, with an interval."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.evaluate.sweeps import methods_at_once
from judgebayes.experiments.claims import Evidence, claim_range, evidence, simultaneous
from judgebayes.experiments.core import FITTED, Run
from judgebayes.experiments.data import Cell
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    Answers,
    Printed,
    advantage,
    answers,
)
from judgebayes.experiments.distribution_calibrated.twins import FITTED_AT, twin_cells, twins
from judgebayes.measures.significance import Interval

TWIN_RESAMPLES = 400
NEW_VOTES = np.sqrt(2)
"""The paper's own votes are one more sample, so the error of a printed number counts twice."""


def twin_answers(
    run: Run, task: str, judge: str, n: int, name: str, *, count: int | None = None
) -> list[Answers]:
    """Return a method's answers on each twin of a cell, for `sc` by the twin's tie rule."""

    def of_twin(cell: Cell) -> Answers:
        return answers(run, cell, n, rule_of(cell) if name == "sc" else name, count=count)

    with ThreadPoolExecutor(methods_at_once()) as pool:
        return list(pool.map(of_twin, twin_cells(run, task, judge)))


def twin_weights(run: Run, task: str, judge: str) -> Float[np.ndarray, " twin"]:
    """Return the weights by fit of the twins of `twin_answers`; they sum to 1."""
    weights = np.array([twin.weight for twin in run.few(twins(task, judge), 2)])
    return np.asarray(weights / weights.sum())


def rule_of(cell: Cell) -> str:
    """Return the name of self-consistency with the tie rule to which a twin was fitted."""
    return {"middle": "sc", "outer": "sc-outer", "first": "sc-first"}[cell.variant.split()[-1]]


def predicted(
    of: Sequence[Evidence],
    weights: Float[np.ndarray, " twin"],
    *,
    reach: float | None = None,
    new_votes: bool = False,
) -> Interval:
    r"""Return the weighted median of the twins' numbers, and the interval of their prediction.

    The prediction is :math:`\sum_t w_t N(\hat\theta_t, \mathrm{SE}_t^2)`; the interval leaves
    :math:`1 - \Phi(\text{reach})` on each side.

    Parameters
    ----------
    of, weights
        Evidence on the number on each twin, and the twins' weights by fit.
    reach
        As from `simultaneous`; by default that of one interval alone.
    new_votes
        The prediction is of a number on other votes, as printed in the paper, not of its expectation.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    if reach is None:
        reach = float(simultaneous(of[:1])[0])
    centre = np.array([each.estimate for each in of])
    scale = np.array([each.error for each in of]) * (NEW_VOTES if new_votes else 1.0)
    scale = np.maximum(scale, 1e-12)

    def end(tail: float) -> float:
        edges = centre.min() - 40 * scale.max(), centre.max() + 40 * scale.max()
        return float(brentq(lambda x: weights @ ndtr((x - centre) / scale) - tail, *edges))

    order = np.argsort(centre)
    middle = int(np.searchsorted(np.cumsum(weights[order]), 0.5 - 1e-9))
    tail = float(ndtr(-reach))
    return Interval(float(centre[order][middle]), end(tail), end(1 - tail))


def twin_error(of: Answers, metric: str) -> Evidence:
    """Return evidence on a twin's score, for new votes on items with the same labels.

    The labels' counts are the paper's own, so only outcomes within a class vary: each class's mean is
    set to the overall one.
    """
    outcome = of.losses(metric) if metric == "mae" else 1.0 - of.losses(metric)
    labels = np.where(of.items >= 0, of.cell.labels[np.maximum(of.items, 0)], -1)
    overall = float(np.nanmean(outcome))
    for label in np.unique(of.cell.labels):
        here = labels == label
        outcome = np.where(here, outcome - np.nanmean(outcome[here]) + overall, outcome)
    seed = crc32(" ".join(of.cell.key).encode())
    return evidence(outcome, of.items, of.cell.votes.n_items, resamples=TWIN_RESAMPLES, seed=seed)


def twin_rows(
    run: Run,
    cells: Sequence[tuple[str, str]],
    names: tuple[str, ...],
    metric: str,
    printed: Printed,
) -> list[dict[str, Any]]:
    """Return what the twins of (task, judge) cells predict of each method's score.

    Rows of `sc` are what the twins were fitted to, and marked so; it uses the rule for tied votes to
    which each twin was fitted. The paper makes two claims of a cell, each graded over all cells
    together: its printed score of the method, which must lie in the predicted interval, and that the
    method is better than SC.
    """
    scores: list[_Prediction] = []
    gains: list[_Prediction] = []
    others: list[_Prediction] = []
    for task, judge in cells:
        run.say(f"twins of {judge}, {task}")
        weights = twin_weights(run, task, judge)
        for n in FITTED_AT:
            where = {"dataset": "twin", "task": task, "judge": judge, "n": n, "splits": run.splits}
            by_method = {name: twin_answers(run, task, judge, n, name) for name in names}
            values = {name: printed.get((task, judge, n, name)) for name in names}
            for name, by_twin in by_method.items():
                record = {**where, "method": name, "metric": metric, "paper_value": values[name]}
                with ThreadPoolExecutor(methods_at_once()) as pool:
                    of = list(pool.map(partial(twin_error, metric=metric), by_twin))
                graded = name == "davidson" and values[name] is not None
                mark = {"claim": FITTED} if name == "sc" else {}
                (scores if graded else others).append(_Prediction(record | mark, of, weights))
            if values["davidson"] is not None and values["sc"] is not None:
                pairs = zip(by_method["davidson"], by_method["sc"], strict=True)
                sign = 1 if metric == "mae" else -1
                record = {
                    **where,
                    "method": "sc minus davidson" if metric == "mae" else "davidson minus sc",
                    "metric": f"{metric} difference",
                    "paper_value": sign * (values["sc"] - values["davidson"]),
                }
                gain = [advantage(*pair, metric) for pair in pairs]
                gains.append(_Prediction(record, gain, weights))
    printed_gain = {_cell(gain.record): gain.record["paper_value"] for gain in gains}
    return [
        *(each.row(new_votes=True) for each in others),
        *(
            each.row(
                reach,
                margin=abs(printed_gain[_cell(each.record)]),
                value=each.record["paper_value"],
                new_votes=True,
            )
            for each, reach in zip(scores, _reach(scores), strict=True)
        ),
        *(
            each.row(reach, margin=MARGIN[metric])
            for each, reach in zip(gains, _reach(gains), strict=True)
        ),
    ]


class _Prediction(NamedTuple):
    """A row without its numbers, and the evidence on them on each twin."""

    record: dict[str, Any]
    of: list[Evidence]
    weights: Float[np.ndarray, " twin"]

    def row(
        self,
        reach: float | None = None,
        *,
        margin: float | None = None,
        value: float | None = None,
        new_votes: bool = False,
    ) -> dict[str, Any]:
        """Return the row with its prediction; with a margin, also the paper's claim."""
        middle, low, high = predicted(self.of, self.weights, reach=reach, new_votes=new_votes)
        numbers = {"value": middle, "low": low, "high": high}
        if margin is None:
            return self.record | numbers
        claim = claim_range(low, high, kind="paper", source="twin", margin=margin, value=value)
        return self.record | numbers | {"claim": claim}


def _reach(predictions: Sequence[_Prediction]) -> list[float]:
    """Return how many standard errors the cells' intervals reach, so that all hold at once."""
    heaviest = [each.of[int(each.weights.argmax())] for each in predictions]
    return list(simultaneous(heaviest)) if heaviest else []


def _cell(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["task"], record["judge"], record["n"]


def twin_note(table: pd.DataFrame) -> str:
    """Return how often the paper's score lies in the interval that the twins predict."""
    own = table[(table["dataset"] == "twin") & (table["grade"] != "")]
    own = own[~own["metric"].str.endswith("difference")]
    value = own["paper_value"].astype(float)
    counts = own["grade"].value_counts()
    outcomes = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (
        f"Twins: the printed score of the paper's own method lies in the interval that they predict in "
        f"{int(((value >= own['low']) & (value <= own['high'])).sum())} of {len(own)} cells, above it "
        f"in {int((value > own['high']).sum())} and below it in {int((value < own['low']).sum())} "
        f"({outcomes}). The interval (median width {float((own['high'] - own['low']).median()):.2f}) "
        "covers twins weighted by their fit to the published inputs, and the sampling of votes in the "
        "paper and in the twin; it informs where it is at most twice as wide as the printed gain over "
        f"SC. Rows of `sc` are what the twins were fitted to: they are marked `{FITTED}`."
    )
