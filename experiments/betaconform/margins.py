"""Shared code of Tables 1 and 4: labels drawn under the stopping rule, and the errors of estimates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from judgebayes.experiments.betaconform.common import (
    PAPER,
    POINTS,
    DataSet,
    all_data_sets,
    estimates,
    histograms,
    methods,
    orders,
    with_panels,
)
from judgebayes.experiments.core import Grade, Output, Run, expected, grade, rows
from judgebayes.majority import QuantileRule, Thinning, replay
from judgebayes.measures.significance import Interval, normal_interval
from judgebayes.plots import intervals

__all__ = ["Margins", "claim", "margin_table", "stopped_margins"]

XIS = (0.03, 0.01)
OURS = "mixture-map"


@dataclass(frozen=True)
class Margins:
    """Error margins of every method on one data set, in points, and the number of labels used."""

    data_set: DataSet
    labels: Int[np.ndarray, " split"]
    by_method: dict[str, Float[np.ndarray, " split"]]


def stopped_margins(run: Run, xi: float) -> list[Margins]:
    """Return the margins on every data set with the labels that the stopping rule takes at `xi`.

    The rule is the paper's with eq 11's minimum, tau = 25, and our epsilon = 0.1 and running mean
    for E[S]. The margin of a run is the mean of |estimate - actual| over the odd k.
    """
    every = all_data_sets(run)
    counts = [(data_set.correct, data_set.votes) for data_set in every]
    arrays = run.keep((PAPER, "margins", xi), counts, lambda: _stopped_margins(run, every, xi))
    names = [*methods(), "thinning"]
    return [
        Margins(
            data_set, arrays[f"{place} labels"], {name: arrays[f"{place} {name}"] for name in names}
        )
        for place, data_set in enumerate(every)
    ]


def _stopped_margins(run: Run, every: Sequence[DataSet], xi: float) -> dict[str, np.ndarray]:
    """Return labels used and margins by method, named by the data set's index and the method."""
    rule = QuantileRule(xi)
    arrays: dict[str, np.ndarray] = {}
    for votes in sorted({j.votes for j in every}):
        places = [k for k, data_set in enumerate(every) if data_set.votes == votes]
        group = [every[k] for k in places]
        parts = []
        for place, data_set in zip(places, group, strict=True):
            own = orders(run, data_set)
            stop = replay(rule, data_set.correct, votes, own)
            arrays[f"{place} labels"] = np.asarray(stop)
            parts.append(histograms(data_set, [o[:r] for o, r in zip(own, stop, strict=True)]))
        weights, truth = np.concatenate(parts), [j.truth for j in group]
        actual = np.repeat(truth, [len(p) for p in parts], axis=0)
        ends = np.cumsum([len(p) for p in parts])[:-1]
        for name in (*methods(), "thinning"):
            run.say(f"{len(group)} data sets of {votes} votes, xi = {xi}: {name}")
            method = Thinning() if name == "thinning" else methods()[name]
            estimated = estimates(method, group[0], weights)
            off = np.split(np.abs(estimated - actual).mean(1) * POINTS, ends)
            for place, margins in zip(places, off, strict=True):
                arrays[f"{place} {name}"] = margins
    return arrays


def claim(
    data_set: DataSet, method: str, metric: str, interval: Interval, runs: int
) -> dict[str, Any]:
    """Return the row of a claim that a gain is above zero, graded by its interval over runs."""
    own_grade: Grade = grade(interval)
    return {
        **data_set.columns(),
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": runs,
        "grade": "simulated" if data_set.dataset == "twin" else own_grade,
    }


def margin_table(run: Run, table: str, baseline: str, method_names: tuple[str, ...]) -> Output:
    """Return a table of margins with a baseline, the model-free estimate and graded claims."""
    printed = {
        (row.task, row.judge, row.method): float(row.value)
        for row in expected(PAPER, table).itertuples()
        if row.metric == "error margin"
    }
    records: list[dict[str, Any]] = []
    for xi in XIS:
        metric = "error margin" + ("" if xi == XIS[0] else f" at xi = {xi}")
        for each in stopped_margins(run, xi):
            data_set, runs = each.data_set, len(each.labels)
            for name in method_names:
                place = (data_set.dataset.replace("llmbar", "LLMBar"), data_set.judge)
                value = {
                    baseline: printed.get((*place, baseline)),
                    OURS: printed.get((*place, "ours")),
                }
                records.append(
                    _row(data_set, name, metric, normal_interval(each.by_method[name]), runs)
                    | {"paper_value": value.get(name)}
                )
            records.append(
                _row(data_set, "rule", f"labels{metric[12:]}", normal_interval(each.labels), runs)
            )
            for other in (baseline, "thinning"):
                for own in (OURS, "em"):
                    gain = normal_interval(each.by_method[other] - each.by_method[own])
                    text = f"{other} minus {own}"
                    records.append(claim(data_set, text, f"gain in {metric}", gain, runs))
    result = rows(PAPER, table, records)
    notes = [_average(run, xi, method_names) for xi in XIS]
    notes += [_verdict(result, baseline, own) for own in (OURS, "em")]
    notes += [_verdict(result, "thinning", own) for own in (OURS, "em")]
    shown_rows = result[(result["metric"] == "error margin") & result["method"].isin(method_names)]
    named = with_panels(shown_rows)
    figure = intervals(
        named[named["method"].isin([baseline, "em", OURS, "thinning"])],
        label="name",
        series="method",
        panel="panel",
        xlabel="error margin in points, mean over runs (bars: 95 %)",
        title="Error of the estimated majority error, xi = 0.03",
    )
    return Output(result, {"margins": figure}, notes)


def _row(
    data_set: DataSet, method: str, metric: str, interval: Interval, runs: int
) -> dict[str, Any]:
    return {
        **data_set.columns(),
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": runs,
        "grade": "",
    }


def _average(run: Run, xi: float, method_names: tuple[str, ...]) -> str:
    every = stopped_margins(run, xi)
    means = ", ".join(
        f"{name} {np.mean([m.by_method[name].mean() for m in every]):.2f}" for name in method_names
    )
    labels = [m.labels.mean() for m in every]
    return (
        f"xi = {xi}: mean margin over {len(every)} data sets, in points: {means}. Labels used: "
        f"{np.min(labels):.1f} to {np.max(labels):.1f}, mean {np.mean(labels):.1f}."
    )


def _verdict(result: Any, other: str, own: str) -> str:
    text = f"{other} minus {own}"
    gains = result[(result["method"] == text) & (result["metric"] == "gain in error margin")]
    better, worse = int((gains["low"] > 0).sum()), int((gains["high"] < 0).sum())
    return (
        f"{own} against {other} (xi = 0.03): better on {better} of {len(gains)} data sets, worse on "
        f"{worse}, not significant on {len(gains) - better - worse}; mean gain "
        f"{gains['value'].mean():+.2f} points."
    )
