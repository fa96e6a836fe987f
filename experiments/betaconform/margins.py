"""Shared code of Tables 1 and 4: labels drawn under the stopping rule, and the errors of estimates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from judgebayes.experiments.betaconform.common import (
    MARGIN,
    PAPER,
    POINTS,
    RESAMPLES,
    DataSet,
    all_data_sets,
    estimates,
    histograms,
    mean_claims,
    methods,
    orders,
    resampled,
    split_curve_estimates,
    with_panels,
)
from judgebayes.experiments.betaconform.stopping_rules import QuantileRule, replay
from judgebayes.experiments.claims import Evidence, Kind
from judgebayes.experiments.core import Output, Run, expected, graded, rows
from judgebayes.experiments.plots import intervals
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import Thinning
from judgebayes.measures.significance import Interval

XIS = (0.03, 0.01)
EM = "em"
"""The paper's estimator, with gamma_j in eqs 6 and 7."""
OURS = "mixture-map"
"""Our estimator of the paper's mixture."""
SPLITS = "split curve"
"""Our estimator that also reads the votes of items without a label."""
FAST = ("binomial", "beta-binomial", EM)
"""Fast enough for a run on every resampled set of items; so is thinning."""


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
    names = [*methods(), "thinning", SPLITS]
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
            labelled = [o[:r] for o, r in zip(own, stop, strict=True)]
            parts.append(histograms(data_set, labelled))
            run.say(f"{data_set.name}, xi = {xi}: {SPLITS}")
            off = np.abs(split_curve_estimates(data_set, labelled) - data_set.truth)
            arrays[f"{place} {SPLITS}"] = off.mean(1) * POINTS
        weights, truth = np.concatenate(parts), [j.truth for j in group]
        actual = np.repeat(truth, [len(p) for p in parts], axis=0)
        ends = np.cumsum([len(p) for p in parts])[:-1]
        for name in (*methods(), "thinning"):
            run.say(f"{len(group)} data sets of {votes} votes, xi = {xi}: {name}")
            method = Thinning() if name == "thinning" else methods()[name]
            estimated = estimates(method, group[0], weights)
            of_sets = np.split(np.abs(estimated - actual).mean(1) * POINTS, ends)
            for place, margins in zip(places, of_sets, strict=True):
                arrays[f"{place} {name}"] = margins
    return arrays


def margins_by_item(run: Run, each: Margins, xi: float) -> dict[str, Evidence]:
    """Return evidence on the mean margins of the fast methods on one data set, over items and runs.

    The numbers of labels are those of the runs on the data set itself.
    """
    data_set = each.data_set
    parts = [o[:r] for o, r in zip(orders(run, data_set), each.labels, strict=True)]

    def off(drawn: DataSet, labels: Float[np.ndarray, "split count"]) -> dict[str, np.ndarray]:
        whole = histograms(drawn, [np.arange(len(drawn.correct))])
        actual = estimates(Thinning(), drawn, whole)
        by_method = {name: estimates(methods()[name], drawn, labels) for name in FAST}
        by_method["thinning"] = estimates(Thinning(), drawn, labels)
        return {n: np.abs(e - actual).mean(1) * POINTS for n, e in by_method.items()}

    return kept_evidence(
        run,
        ("margins by item", data_set.name, xi),
        (data_set.correct, data_set.votes, each.labels),
        lambda: resampled(run, data_set, parts, off),
    )


def kept_evidence(
    run: Run, key: tuple[Any, ...], made_from: Any, make: Callable[[], dict[str, Evidence]]
) -> dict[str, Evidence]:
    """Return evidence by name, computed once per run, also when resumed."""

    def arrays() -> dict[str, np.ndarray]:
        by_name = make()
        return {
            f"{part} {name}": np.asarray(getattr(of, part))
            for name, of in by_name.items()
            for part in ("estimate", "draws", "units")
        }

    kept = run.keep((PAPER, RESAMPLES, *key), made_from, arrays)
    names = [name.removeprefix("draws ") for name in kept if name.startswith("draws ")]
    return {
        n: Evidence(float(kept[f"estimate {n}"]), kept[f"draws {n}"], int(kept[f"units {n}"]))
        for n in names
    }


def kind_of(own: str, other: str) -> Kind:
    """Return `paper` for the paper's estimator against its baselines, and `audit` for any other."""
    return "paper" if own in (EM, "transfer") and other != "thinning" else "audit"


def margin_table(
    run: Run, table: str, others: tuple[str, ...], method_names: tuple[str, ...]
) -> Output:
    """Return a table of margins with claims on gains over `others`, of which the first is the paper's.

    A comparison belongs to one table only, so that no claim is counted twice.
    """
    baseline = others[0]
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
    for other in others:
        records += _by_data_set(run, other) + _over_data_sets(run, other)
    result = rows(PAPER, table, records)
    notes = [_average(run, xi, method_names) for xi in XIS]
    notes += [_verdict(result, other, own) for other in others for own in (OURS, EM)]
    shown_rows = result[(result["metric"] == "error margin") & result["method"].isin(method_names)]
    named = with_panels(shown_rows)
    figure = intervals(
        named[named["method"].isin([baseline, "em", OURS, "thinning", SPLITS])],
        label="name",
        series="method",
        panel="panel",
        xlabel="error margin in points, mean over runs (bars: 95 %)",
        title="Error of the estimated majority error, xi = 0.03",
    )
    return Output(result, {"margins": figure}, notes)


def _by_data_set(run: Run, other: str) -> list[dict[str, Any]]:
    """Return the claim that the EM's margin is below another's, on every data set and at every xi."""
    pairs = []
    for xi in XIS:
        for each in stopped_margins(run, xi):
            run.say(f"{each.data_set.name}, xi = {xi}: items resampled")
            by_method = margins_by_item(run, each, xi)
            record = each.data_set.columns() | _gain(other, EM, xi, len(each.labels))
            pairs.append((record, by_method[other].less(by_method[EM])))
    return graded(pairs, kind=kind_of(EM, other), margin=MARGIN["error margin"])


def _over_data_sets(run: Run, other: str) -> list[dict[str, Any]]:
    """Return the claim that a margin is below another's on average over data sets, for both methods."""
    records = []
    for own in (EM, OURS):
        cells = []
        for xi in XIS:
            every = stopped_margins(run, xi)
            gain = [(m.by_method[other] - m.by_method[own]).mean() for m in every]
            cells.append((_gain(other, own, xi, len(every)), np.array(gain)))
        sets = [m.data_set for m in every]
        kind = kind_of(own, other)
        records += mean_claims(sets, cells, kind=kind, margin=MARGIN["error margin"])
    return records


def _gain(other: str, own: str, xi: float, splits: int) -> dict[str, Any]:
    metric = "gain in error margin" + ("" if xi == XIS[0] else f" at xi = {xi}")
    return {"method": f"{other} minus {own}", "metric": metric, "splits": splits}


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
    margins = result[result["metric"] == "error margin"].set_index(["dataset", "task", "judge"])
    value = {n: margins.loc[margins["method"] == n, "value"].astype(float) for n in (other, own)}
    lower = int((value[own] < value[other]).sum())
    text = f"{own} against {other} (xi = 0.03): lower on {lower} of {len(value[own])} data sets"
    gains = result[(result["method"] == f"{other} minus {own}") & (result["grade"] != "")]
    gains = gains[gains["metric"] == "gain in error margin"]
    single = gains[gains["task"] != "all"]
    if len(single):
        better, worse = int((single["low"] > 0).sum()), int((single["high"] < 0).sum())
        text += (
            f", by intervals over items and runs that hold at once {better}, higher on {worse}, "
            f"not settled on {len(single) - better - worse}"
        )
    for row in gains[gains["task"] == "all"].itertuples():
        text += (
            f"; mean gain over data sets {row.value:+.2f} points [{row.low:+.2f}, {row.high:+.2f}]"
        )
    return text + "."
