"""P4 Figs 3 and 4: the spread of judges' predictions, and their TPR and TNR.

Claim: TPR is above 96 % and TNR below 25 % for most judges; predictions are skewed upwards. Graded: each
judge's rates are the released ones; margin 1e-12.
Command: judgebayes reproduce beyond-consensus/fig4 --data DIR
Runtime: seconds.
Expected: the pooled TPR and TNR equal the released ones at all four repair levels; by generator the mean
TNR varies about three-fold, so that neither rate is a property of the judge alone.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.beyond_consensus.common import (
    DATASET,
    LEVELS,
    PAPER,
    equal,
    levels,
    matrix,
)
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.plots import intervals


@experiment(
    PAPER,
    "fig4",
    "Figs 3 and 4: spread of predictions, TPR and TNR",
    "judges recognise valid items and miss invalid ones",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return pooled rates by judge, mean rates by generator, and the spread of predictions."""
    printed = expected(PAPER, "fig4").set_index(["task", "judge", "metric"])["value"]
    records: list[dict[str, Any]] = []
    figures = {}
    for level in levels(run):
        cell = matrix(run, level)
        rates = cell.counts.rates()
        for metric, values in (("tpr", rates.tpr), ("tnr", rates.tnr)):
            for judge, value in zip(cell.judges, np.asarray(values), strict=True):
                theirs = float(printed[level, judge, metric])
                records.append(
                    {
                        "dataset": DATASET,
                        "task": LEVELS[level],
                        "judge": judge,
                        "method": "pooled",
                        "metric": metric,
                        **equal(float(value), theirs, "released number"),
                    }
                )
        c = cell.counts
        for place, name in enumerate(cell.generators):
            share = np.asarray(c.matrix)[place]
            spread = {"value": share.mean(), "low": share.min(), "high": share.max()}
            records.append(
                {
                    "dataset": DATASET,
                    "task": LEVELS[level],
                    "judge": name,
                    "method": "as generator: mean, least and most over judges",
                    "metric": "predicted precision",
                    **spread,
                }
            )
            if place < len(cell.truth):
                tnr = 1 - np.asarray(c.false_accepted)[place] / np.asarray(c.invalid_judged)[place]
                records.append(
                    {
                        "dataset": DATASET,
                        "task": LEVELS[level],
                        "judge": name,
                        "method": "as generator: mean over judges",
                        "metric": "tnr",
                        "value": float(tnr.mean()),
                    }
                )
    table = rows(PAPER, "fig4", records)
    first = table[table["task"] == LEVELS[levels(run)[0]]]
    pooled_rows = first[first["method"] == "pooled"].assign(low=np.nan, high=np.nan)
    figures["rates"] = intervals(
        pooled_rows,
        label="judge",
        series="metric",
        xlabel="rate",
        title=f"TPR and TNR by judge, {LEVELS[levels(run)[0]]}",
    )
    figures["spread"] = intervals(
        first[first["metric"] == "predicted precision"].assign(series="over 14 judges"),
        label="judge",
        series="series",
        xlabel="share of items called valid: mean, least, most",
        title="Predicted precision by generator",
    )
    off = (table["value"] - table["paper_value"].astype(float)).abs().max()
    return Output(table, figures, [f"Largest difference from the released rates: {off:.1e}."])
