"""P3 Fig 3: the distribution of the number of correct votes, actual and estimated from 100 labels.

Claim: the mixture is consistently closer to the actual distribution than the Binomial.
Command: judgebayes reproduce betaconform/fig3 --data DIR
Runtime: about 20 seconds.
Expected: total variation distances of 0.22 to 0.75 for the Binomial (mean 0.49), 0.03 to 0.18 for the
mixture (0.07), which is about that of the histogram of the hundred labels itself (0.08).
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from judgebayes.experiments.betaconform.common import (
    PAPER,
    DataSet,
    all_data_sets,
    histograms,
    methods,
    orders,
    pmfs,
)
from judgebayes.experiments.betaconform.margins import claim
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.majority import Thinning
from judgebayes.measures.significance import normal_interval
from judgebayes.plots import distributions

LABELS = 100
METHODS = ("binomial", "beta-binomial", "em", "mixture-map")
PANELS = ("llmbar GPT-4", "rb2 Factuality gpt-5.4", "rewardbench rm-panel0", "llmbar PaLM2")


@experiment(
    PAPER,
    "fig3",
    "Fig 3: distribution of the number of correct votes",
    "the mixture is closer to the actual distribution than the Binomial",
    needs=("p3_correct_counts",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return distances of estimated distributions from the actual ones, and the figure."""
    records: list[dict[str, Any]] = []
    panels: dict[str, dict[str, np.ndarray]] = {}
    for data_set in all_data_sets(run):
        run.say(data_set.name)
        actual = histograms(data_set, [np.arange(len(data_set.correct))])[0] / len(data_set.correct)
        weights = histograms(data_set, [o[:LABELS] for o in orders(run, data_set)])
        pmf_by_method = {
            name: pmfs(methods()[name], data_set.votes, weights)[:, 0] for name in METHODS
        }
        pmf_by_method["histogram of the labels"] = pmfs(Thinning(), data_set.votes, weights)[:, 0]
        distance = {name: np.abs(p - actual).sum(1) / 2 for name, p in pmf_by_method.items()}
        for name, values in distance.items():
            records.append(_row(data_set, name, values))
        for own in ("em", "mixture-map"):
            gain = normal_interval(distance["binomial"] - distance[own])
            records.append(
                claim(data_set, f"binomial minus {own}", "gain in distance", gain, len(weights))
            )
        if data_set.name in PANELS or data_set.dataset == "twin":
            panels[data_set.name] = {"actual": actual} | {
                name: p.mean(0) for name, p in pmf_by_method.items() if name in METHODS
            }
    table = rows(PAPER, "fig3", records)
    figures: dict[str, Figure] = {}
    if panels:
        figures["distributions"] = distributions(
            panels,
            xlabel="correct votes",
            title=f"Correct votes per item: actual, and estimated from {LABELS} labels (mean of runs)",
        )
    means = table[table["metric"] == "distance"].groupby("method", sort=False)["value"].mean()
    note = "Mean total variation distance: " + ", ".join(f"{n} {v:.3f}" for n, v in means.items())
    return Output(table, figures, [note + "."])


def _row(data_set: DataSet, name: str, values: np.ndarray) -> dict[str, Any]:
    interval = normal_interval(values)
    return {
        **data_set.columns(),
        "method": name,
        "metric": "distance",
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": len(values),
        "grade": "",
    }
