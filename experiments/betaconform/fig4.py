"""P3 Fig 4: the error of a majority vote against the number of votes, from 100 labels.

Claim: the mixture follows the actual error at every k, while the Binomial's falls towards zero.
Command: judgebayes reproduce betaconform/fig4 --data DIR
Runtime: about 40 seconds.
Expected: the actual error is nearly flat in k; the Binomial is up to 20 points too low at k = 11; the
mixture and the model-free estimate are within 3 points.
"""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.betaconform.common import (
    PAPER,
    POINTS,
    all_data_sets,
    estimates,
    histograms,
    methods,
    orders,
    posterior,
)
from judgebayes.experiments.betaconform.fig3 import LABELS, PANELS
from judgebayes.experiments.betaconform.margins import claim
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.majority import Thinning
from judgebayes.measures.significance import normal_interval
from judgebayes.plots import curves

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
    """Return curves with the middle 90 % of the runs, and a graded row at the largest k."""
    records: list[dict[str, Any]] = []
    falls = []
    for data_set in all_data_sets(run):
        run.say(data_set.name)
        weights = histograms(data_set, [o[:LABELS] for o in orders(run, data_set)])
        truth = data_set.truth
        falls.append((truth[1] - truth[-1]) * POINTS)
        estimate_by_method = {
            name: estimates(methods()[name], data_set, weights) for name in METHODS
        }
        estimate_by_method["mixture-posterior"] = estimates(posterior(run), data_set, weights)
        estimate_by_method["thinning"] = estimates(Thinning(), data_set, weights)
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
                        "grade": "",
                    }
                )
        off = {
            name: np.abs(v[:, -1] - truth[-1]) * POINTS for name, v in estimate_by_method.items()
        }
        for own in ("em", "mixture-map", "thinning"):
            gain = normal_interval(off["binomial"] - off[own])
            text = f"binomial minus {own}"
            records.append(claim(data_set, text, "gain at the largest k", gain, len(weights)))
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
