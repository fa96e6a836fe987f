"""P3 Fig 4: the error of a majority vote against the number of votes, from 100 labels.

Claim: the mixture (the paper's EM) follows the actual error, while the Binomial's falls towards zero:
at the largest k it is less far off, on every data set and on average over them; margin 0.5 points.
Command: judgebayes reproduce betaconform/fig4 --data DIR
Runtime: about 2 minutes.
Expected: the actual error is nearly flat in k, the Binomial is far too low at the largest k where
judges are mostly right, and the mixture and the model-free estimate are close to the actual error.
"""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.betaconform.common import (
    MARGIN,
    PAPER,
    POINTS,
    all_data_sets,
    estimates,
    histograms,
    mean_claims,
    methods,
    orders,
    posterior,
    split_curve_estimates,
)
from judgebayes.experiments.betaconform.fig3 import LABELS, PANELS, by_item
from judgebayes.experiments.betaconform.margins import EM, OURS, SPLITS, kind_of
from judgebayes.experiments.claims import Evidence
from judgebayes.experiments.core import Output, Run, experiment, graded, rows
from judgebayes.experiments.plots import curves
from judgebayes.majority import Thinning

METHODS = ("binomial", "beta-binomial", "em", "mixture-map")


@experiment(
    PAPER,
    "fig4",
    "Fig 4: error of the majority against the number of votes",
    "the mixture follows the actual error at every number of votes, the Binomial does not",
    needs=("p3_correct_counts",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return curves with the middle 90 % of the runs, and claims at the largest k."""
    records: list[dict[str, Any]] = []
    pairs: dict[str, list[tuple[dict[str, Any], Evidence]]] = {EM: [], "thinning": []}
    gains: dict[str, list[float]] = {EM: [], OURS: [], "thinning": []}
    falls = []
    for data_set in all_data_sets(run):
        run.say(data_set.name)
        labelled = [o[:LABELS] for o in orders(run, data_set)]
        weights = histograms(data_set, labelled)
        truth = data_set.truth
        falls.append((truth[1] - truth[-1]) * POINTS)
        estimate_by_method = {
            name: estimates(methods()[name], data_set, weights) for name in METHODS
        }
        estimate_by_method["mixture-posterior"] = estimates(posterior(run), data_set, weights)
        estimate_by_method["thinning"] = estimates(Thinning(), data_set, weights)
        estimate_by_method[SPLITS] = split_curve_estimates(data_set, labelled)
        estimate_by_method["actual"] = np.repeat(truth[None], len(weights), axis=0)
        for name, values in estimate_by_method.items():
            low, high = np.quantile(values, (0.05, 0.95), axis=0)
            for i, size in enumerate(data_set.sizes):
                records.append(
                    {
                        **data_set.columns(),
                        "n": size,
                        "method": name,
                        "metric": "error of the majority",
                        "value": float(values[:, i].mean()),
                        "low": float(low[i]),
                        "high": float(high[i]),
                        "splits": len(weights),
                    }
                )
        off = {
            name: np.abs(v[:, -1] - truth[-1]) * POINTS for name, v in estimate_by_method.items()
        }
        for own, each in gains.items():
            each.append(float((off["binomial"] - off[own]).mean()))
        of = by_item(run, data_set)
        for own, own_pairs in pairs.items():
            record = data_set.columns() | _gain(own, len(weights))
            own_pairs.append((record, of["error binomial"].less(of[f"error {own}"])))
    margin = MARGIN["error margin"]
    every = all_data_sets(run)
    for own, means in gains.items():
        kind = kind_of(own, "binomial")
        records += graded(pairs.get(own, []), kind=kind, margin=margin)
        cells = [(_gain(own, len(every)), np.array(means))]
        records += mean_claims(every, cells, kind=kind, margin=margin)
    table = rows(PAPER, "fig4", records)
    curve_table = _panels(table)
    figure = curves(
        curve_table,
        "n",
        panel="name",
        metric="error of the majority",
        xlabel="votes",
        ylabel="error of the majority",
        title=f"Estimated from {LABELS} labels (bands: the middle 90 % of the runs)",
        columns=2,
        banded=("binomial", "mixture-map"),
    )
    note = (
        f"From 3 votes to the largest k the actual error falls by {np.mean(falls):.1f} points on "
        f"average ({np.min(falls):+.1f} to {np.max(falls):+.1f}): more votes of the same judges help "
        "little."
    )
    return Output(table, {"curves": figure}, [note, _mean_from_mode(table)])


def _gain(own: str, splits: int) -> dict[str, Any]:
    return {"method": f"binomial minus {own}", "metric": "gain at the largest k", "splits": splits}


def _mean_from_mode(table: pd.DataFrame) -> str:
    errors = table[table["metric"] == "error of the majority"]
    wide = errors.pivot_table(
        index=["dataset", "task", "judge", "n"], columns="method", values="value"
    ).dropna(subset=["mixture-posterior"])
    apart = POINTS * (wide["mixture-posterior"] - wide["mixture-map"]).abs()
    return (
        f"The mixture's posterior mean is within {apart.max():.1f} points of its mode at every k on "
        f"{len(wide.groupby(level=[0, 1, 2]))} data sets."
    )


def _panels(table: pd.DataFrame) -> pd.DataFrame:
    names = table["dataset"] + " " + table["task"] + " " + table["judge"]
    named = table.assign(name=names.str.replace("  ", " ").str.strip())
    return named[named["name"].isin(PANELS) | (named["dataset"] == "twin")]
