"""P4 Fig 1: a model's Elo against its precision as a generator and its TNR as a judge.

Claim: even models of high Elo can have a poor TNR; Elo does not determine the best judge.
Command: judgebayes reproduce beyond-consensus/fig1 --data DIR
Runtime: seconds.
Expected: with six generators any rank correlation of Elo and precision is possible. With TNR over all
judges it is positive but not significant, and near zero without the two newest models, which stand out
in both. All other judges have a low TNR.
"""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.experiments.beyond_consensus.common import DATASET, LEVELS, PAPER, matrix, truth
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.plots import scatter

STANDOUT = 1390
"""The two newest models have at least this Elo."""
RESAMPLES = 2000


def correlation(
    x: Float[np.ndarray, " model"], y: Float[np.ndarray, " model"], seed: int
) -> tuple[float, float, float]:
    """Return Spearman's correlation with its 95 % bootstrap interval over models."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(seed)
    again = [rng.integers(0, len(x), len(x)) for _ in range(RESAMPLES)]
    resampled = [
        spearmanr(x[r], y[r]).statistic
        for r in again
        if len(np.unique(x[r])) > 1 and len(np.unique(y[r])) > 1
    ]
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(spearmanr(x, y).statistic), float(low), float(high)


@experiment(
    PAPER,
    "fig1",
    "Fig 1: Elo against precision and TNR",
    "even highly ranked models can have a poor TNR",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return each model's Elo, precision and TNR, and their correlations."""
    printed = expected(PAPER, "fig1")
    elo = printed[printed["metric"] == "elo"].set_index("judge")["value"].astype(float)
    cell = matrix(run, "noRepair")
    tnr = pd.Series(np.asarray(cell.counts.rates().tnr), cell.judges)
    records: list[dict[str, Any]] = []
    points = {}
    series = {
        "precision as a generator": truth(),
        "TNR as a judge": tnr,
        "TNR as a judge, without the two newest": tnr[elo.reindex(tnr.index) < STANDOUT],
    }
    for name, values in series.items():
        x = elo.reindex(values.index).to_numpy()
        y = values.to_numpy(float)
        value, low, high = correlation(x, y, run.seed)
        records.append(
            {
                "dataset": DATASET,
                "task": LEVELS["noRepair"],
                "n": len(x),
                "method": name,
                "metric": "rank correlation with Elo",
                "value": value,
                "low": low,
                "high": high,
            }
        )
        if "without" not in name:
            points[name] = np.column_stack([x, 100 * y])
            records += [
                {
                    "dataset": DATASET,
                    "task": LEVELS["noRepair"],
                    "judge": model,
                    "method": name,
                    "metric": "share",
                    "value": float(v),
                }
                for model, v in values.items()
            ]
    below = int((series["TNR as a judge, without the two newest"] < 0.25).sum())
    figure = scatter(points, xlabel="Elo", ylabel="%", title="Elo says little about a judge's TNR")
    return Output(
        rows(PAPER, "fig1", records),
        {"elo": figure},
        [f"{below} of the 12 judges below an Elo of {STANDOUT} have a TNR below 25 %."],
    )
