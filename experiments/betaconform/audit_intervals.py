"""Audit: coverage of the intervals of the majority error, and of the bound of eq 12.

Claim: eq 12 bounds the estimate under adaptive sampling to within min(xi, tau / sqrt r) of the truth, so
it contains the truth in at least 85 % of the runs where 90 % are nominal, on average over data sets;
margin 0.05.
Command: judgebayes reproduce betaconform/audit-intervals --data DIR
Runtime: about 3 minutes with data; 200 replays on each of 35 data sets.
Expected: intervals with the finite-population correction cover near their level, without a model on
every data set and under the mixture on nearly every one; eq 12's bound seldom contains the truth.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from judgebayes.experiments.betaconform.common import (
    MARGIN,
    PAPER,
    DataSet,
    all_data_sets,
    estimates,
    histograms,
    mean_claims,
    orders,
    pmfs,
    posterior,
)
from judgebayes.experiments.betaconform.paper_em import PaperEM
from judgebayes.experiments.betaconform.stopping_rules import QuantileRule, minimum_labels
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.majority import ErrorCurve, Thinning, counts_of
from judgebayes.majority.distribution import in_population
from judgebayes.majority.thinning import Thinned, item_thinning
from judgebayes.measures.significance import Interval

REPLAYS = 200
LABELS = 57
LEVEL = 0.9
RESAMPLES = 2000
HONEST = (0.85, 0.95)
ENDS = (0.05, 0.95)


@experiment(
    PAPER,
    "audit-intervals",
    "Audit: coverage of the intervals and of eq 12",
    "the estimated error of the majority is within min(xi, tau / sqrt r) of the truth, relatively",
    needs=("p3_correct_counts",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return coverage by data set, mean over the odd k, and at the largest k."""
    records: list[dict[str, Any]] = []
    bounds: dict[str, list[float]] = {}
    for data_set in all_data_sets(run):
        run.say(data_set.name)
        for name, covered in _covered(run, data_set).items():
            for metric, values in (
                ("coverage", covered.mean(1)),
                ("coverage at the largest k", covered[:, -1]),
            ):
                records.append(_row(data_set, name, metric, values))
                if name == "eq 12":
                    bounds.setdefault(metric, []).append(float(values.mean()))
    margin = MARGIN["coverage"]
    cells = [
        ({"method": "eq 12", "metric": f"{metric}, above {LEVEL - margin:g}"}, np.array(values))
        for metric, values in bounds.items()
    ]
    cells = [(record, values - (LEVEL - margin)) for record, values in cells]
    records += mean_claims(all_data_sets(run), cells, kind="paper", margin=margin)
    table = rows(PAPER, "audit-intervals", records)
    return Output(table, notes=[_note(table, name) for name in _names(table)])


def _names(table: Any) -> list[str]:
    return list(dict.fromkeys(table["method"]))


def bootstrapped(fit: Thinned, sizes: tuple[int, ...], population: int | None) -> ErrorCurve:
    """Return percentiles over resampled items, scaled by sqrt(1 - n / N) in a population of N."""
    cells, weight = fit.counts.tallied(np.asarray(fit.weight))
    total = max(round(float(weight.sum())), 1)
    times = np.random.default_rng(0).multinomial(total, weight / weight.sum(), RESAMPLES)
    h = np.asarray(item_thinning(cells, sizes)).T
    use = np.isfinite(h)
    resampled = times @ np.where(use, h, 0.0) / np.maximum(times @ use, 1)
    resampled = np.where(use.any(0), resampled, np.nan)
    plain = fit.curve(sizes)
    if population is not None:
        rest = np.maximum(1 - total / np.maximum(population, 1), 0.0)
        resampled = plain.error + np.sqrt(rest) * (resampled - plain.error)
    low, high = np.quantile(resampled, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return replace(plain, low=low, high=high)


def _covered(run: Run, data_set: DataSet) -> dict[str, Bool[np.ndarray, "split size"]]:
    parts = [order[:LABELS] for order in orders(run, data_set, REPLAYS)]
    weights = histograms(data_set, parts)
    truth, sizes, every = data_set.truth, data_set.sizes, len(data_set.correct)
    hits: dict[str, list[np.ndarray]] = {"model-free": [], "bootstrap": [], "no correction": []}
    for part in parts:
        fit = Thinning().fit(counts_of(data_set.correct[part], data_set.votes))
        for name, curve in (
            ("model-free", fit.curve(sizes, level=LEVEL, population=every)),
            ("bootstrap", bootstrapped(fit, sizes, every)),
            ("no correction", fit.curve(sizes, level=LEVEL)),
        ):
            hits[name].append((curve.low <= truth) & (truth <= curve.high))
    covered = {name: np.stack(each) for name, each in hits.items()}
    fixed = []
    for place, pmf in enumerate(pmfs(posterior(run), data_set.votes, weights, REPLAYS // 2)):
        own = counts_of(data_set.correct[parts[place]], data_set.votes)
        drawn = in_population(pmf, own, sizes, population=every, seed=place)
        fixed.append(np.quantile(drawn, ENDS, axis=0))
    low, high = np.stack(fixed, axis=1)
    covered["mixture-posterior"] = (low <= truth) & (truth <= high)
    middle = estimates(PaperEM(), data_set, weights)
    reach = min(QuantileRule().xi, QuantileRule().tau / np.sqrt(minimum_labels(0.03)))
    covered["eq 12"] = (middle * (1 - reach) < truth) & (truth < middle * (1 + reach))
    return covered


def _row(
    data_set: DataSet, method: str, metric: str, values: Shaped[np.ndarray, " split"]
) -> dict[str, Any]:
    mean = float(values.mean())
    half = 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))
    interval = Interval(mean, mean - half, mean + half)
    return {
        **data_set.columns(),
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": len(values),
    }


def _note(table: Any, name: str) -> str:
    own = table[(table["method"] == name) & (table["metric"] == "coverage")]["value"].astype(float)
    honest = int(((own >= HONEST[0]) & (own <= HONEST[1])).sum())
    return (
        f"{name}: coverage {own.min():.3f} to {own.max():.3f}, mean {own.mean():.3f}; between 0.85 "
        f"and 0.95 on {honest} of {len(own)} data sets."
    )
