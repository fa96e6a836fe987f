"""P3 Fig 3: the distribution of the number of correct votes, actual and estimated from 100 labels.

Claim: the mixture (the paper's EM) is closer to the actual distribution than the Binomial, on every data
set and on average over them; margin 0.05 of total variation.
Command: judgebayes reproduce betaconform/fig3 --data DIR
Runtime: about a minute.
Expected: the mixture is much closer to the actual distribution than the Binomial on every data set, and
its posterior mode is as close as the histogram of the hundred labels itself.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from judgebayes.experiments.betaconform.common import (
    MARGIN,
    PAPER,
    POINTS,
    DataSet,
    all_data_sets,
    histograms,
    mean_claims,
    methods,
    orders,
    pmfs,
    resampled,
    wrong_majorities,
)
from judgebayes.experiments.betaconform.margins import EM, OURS, kept_evidence, kind_of
from judgebayes.experiments.claims import Evidence
from judgebayes.experiments.core import Output, Run, experiment, graded, rows
from judgebayes.experiments.plots import distributions
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import Thinning

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
    pairs = []
    gains: dict[str, list[float]] = {EM: [], OURS: []}
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
        for own, each in gains.items():
            each.append(float((distance["binomial"] - distance[own]).mean()))
        of = by_item(run, data_set)
        record = data_set.columns() | _gain(EM, len(weights))
        pairs.append((record, of["distance binomial"].less(of[f"distance {EM}"])))
        if data_set.name in PANELS or data_set.dataset == "twin":
            panels[data_set.name] = {"actual": actual} | {
                name: p.mean(0) for name, p in pmf_by_method.items() if name in METHODS
            }
    margin = MARGIN["distance"]
    records += graded(pairs, kind="paper", margin=margin)
    every = all_data_sets(run)
    for own, values in gains.items():
        cells = [(_gain(own, len(every)), np.array(values))]
        records += mean_claims(every, cells, kind=kind_of(own, "binomial"), margin=margin)
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


def by_item(run: Run, data_set: DataSet) -> dict[str, Evidence]:
    """Return evidence from a hundred labels over items and runs, of the fast methods.

    Names are `distance` (total variation) or `error` (of the majority of the largest odd size, in
    points off the actual one) and the method.
    """
    parts = [o[:LABELS] for o in orders(run, data_set)]

    def off(drawn: DataSet, labels: Float[np.ndarray, "split count"]) -> dict[str, np.ndarray]:
        actual = histograms(drawn, [np.arange(len(drawn.correct))])[0] / len(drawn.correct)
        largest = wrong_majorities(drawn.votes)[-1]
        numbers = {}
        for name in ("binomial", EM, "thinning"):
            method = Thinning() if name == "thinning" else methods()[name]
            gap = pmfs(method, drawn.votes, labels)[:, 0] - actual
            numbers[f"distance {name}"] = np.abs(gap).sum(1) / 2
            numbers[f"error {name}"] = np.abs(gap @ largest) * POINTS
        return numbers

    return kept_evidence(
        run,
        ("a hundred labels by item", data_set.name),
        (data_set.correct, data_set.votes, parts),
        lambda: resampled(run, data_set, parts, off),
    )


def _gain(own: str, splits: int) -> dict[str, Any]:
    return {"method": f"binomial minus {own}", "metric": "gain in distance", "splits": splits}


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
    }
