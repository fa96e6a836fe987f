"""Audit: equations 6 and 7, as printed and as intended, on simulated sets with known truth.

Claim: the paper's EM estimates the mixture of eq 4.
Command: judgebayes reproduce betaconform/audit-em
Runtime: about 2 minutes; no data.
Expected: with two peaks, both components of the printed equations coincide, and the margin is the
Binomial's at any number of labels; with gamma_j it is far lower. The posterior mode of eq 4 and the
model-free estimate are better still, most clearly with many labels.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.betaconform.common import (
    PAPER,
    POINTS,
    DataSet,
    estimates,
    histograms,
    methods,
    simulated,
)
from judgebayes.experiments.betaconform.paper_em import Distribution
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import Thinning

SIZES = (56, 100, 400)
RUNS = 200
NAMES = ("binomial", "em-printed", "em", "beta-binomial", "mixture-map")


@experiment(
    PAPER,
    "audit-em",
    "Audit: eqs 6 and 7 on simulated judges",
    "the paper's EM estimates the mixture of eq 4",
    twins=True,
)
def main(run: Run) -> Output:
    """Return error margins at three numbers of labels on each simulated judge."""
    records: list[dict[str, Any]] = []
    for data_set in simulated():
        rng = np.random.default_rng(run.seed)
        for labels in run.few(list(SIZES), 2):
            count = 4 if run.smoke else RUNS
            parts = [rng.choice(len(data_set.correct), labels, replace=False) for _ in range(count)]
            weights = histograms(data_set, parts)
            for name in (*NAMES, "thinning"):
                method: Distribution | Thinning = (
                    Thinning() if name == "thinning" else methods()[name]
                )
                off = np.abs(estimates(method, data_set, weights) - data_set.truth).mean(1) * POINTS
                interval = normal_interval(off)
                records.append(
                    {
                        "dataset": "twin",
                        "task": data_set.task,
                        "judge": "",
                        "n": labels,
                        "method": name,
                        "metric": "error margin",
                        "value": interval.mean,
                        "low": interval.low,
                        "high": interval.high,
                        "splits": count,
                    }
                )
    table = rows(PAPER, "audit-em", records)
    peaks = table[table["task"] == "two peaks"]
    means = peaks.pivot_table(index="method", columns="n", values="value", sort=False)
    last = means.columns[-1]
    note = (
        f"Two peaks, {last:g} labels: "
        + ", ".join(f"{name} {value:.1f}" for name, value in means[last].items())
        + " points. The error that remains with many labels is an estimator's bias."
    )
    return Output(table, notes=[note, _shares(simulated()[0])])


def _shares(data_set: DataSet) -> str:
    weights = histograms(data_set, [np.arange(len(data_set.correct))])[0]
    return (
        f"{data_set.task}: {weights[0] / weights.sum():.0%} of the items have no correct vote and "
        f"{weights[-1] / weights.sum():.0%} have only correct votes; for both, eq 6's Beta density does "
        "not exist."
    )
