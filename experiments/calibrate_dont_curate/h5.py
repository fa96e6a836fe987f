"""P2 H.5: shares of the variance of the logits, by a 2PL item response model.

Claim: differences between judges dominate differences between items on every data set, and
abilities rank judges in the same order as accuracies.
Command: judgebayes reproduce calibrate-dont-curate/h5 --data DIR
Runtime: about 25 seconds.
Expected: judges minus items is 0.128 [0.099, 0.155] on the reward models (0.456 [0.442, 0.472] and
0.328 [0.299, 0.355]; replicated), -0.765 [-0.808, -0.720] on RewardBench 2 (0.116 and 0.881) and
-0.176 [-0.283, -0.051] on LLMBar (0.357 [0.214, 0.460] and 0.533 [0.441, 0.605]), where items vary
more (both contradicted). Abilities rank judges as accuracies do: 0.938, 0.918, 0.993.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import panels
from judgebayes.experiments.calibrate_dont_curate.rows import claim_row, value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.item_response import FittedItemResponse, ItemResponse, Shares, variance_shares
from judgebayes.measures.significance import Interval

RESAMPLES = 20


@experiment(
    PAPER,
    "h5",
    "H.5: 2PL variance shares",
    "judges differ more than items, and abilities rank judges as accuracies do",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the shares, with intervals over resampled judges and items, and rank correlations."""
    records: list[dict[str, Any]] = []
    for panel in panels(run):
        run.say(panel.name)
        fit = ItemResponse().fit(panel.votes, panel.labels)
        shares = fit.shares()
        resamples = resampled(panel, run)
        for metric, value, values in zip(
            Shares._fields, shares, np.array(resamples).T, strict=True
        ):
            low, high = _around(value, values)
            name = f"{metric} share" if metric != "judge_of_two" else "judge share of two"
            interval = Interval(value, low, high)
            records.append(value_row(panel, "2pl", name, interval, len(resamples)))
        judge, item = (np.array(resamples)[:, i] for i in (0, 1))
        difference = shares.judge - shares.item
        lead = Interval(difference, *_around(difference, judge - item))
        records.append(
            claim_row(panel, "judge minus item", "share difference", lead, len(resamples))
        )
        rank = Interval(fit.rank_correlation(panel.votes, panel.labels), np.nan, np.nan)
        records.append(value_row(panel, "2pl", "rank correlation with accuracy", rank, 1))
    notes = [
        "The paper's numbers and its formula (eq 7) are blank in the text. Shares are of the variance "
        "of a (theta - b) over judges and items; `judge share of two` is Var(theta) / (Var(theta) + "
        "Var(b)), without discriminations.",
        f"Joint posterior mode; intervals resample items ({RESAMPLES} times).",
        "Which votes are right does not depend on the orientation: there is one row per panel.",
    ]
    return Output(rows(PAPER, "h5", records), notes=notes)


def resampled(panel: Panel, run: Run) -> list[Shares]:
    """Return the shares for resampled items, with the resampled counts as weights."""
    rng = np.random.default_rng(run.seed)
    n = len(panel.labels)
    shares = []
    for _ in range(3 if run.smoke else RESAMPLES):
        weight = np.bincount(rng.integers(0, n, n), minlength=n).astype(float)
        fit = ItemResponse().fit(panel.votes, panel.labels, weight=weight)
        used = weight > 0
        shares.append(_weighted(fit, np.repeat(np.flatnonzero(used), weight[used].astype(int))))
    return shares


def _around(value: float, resamples: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of resampled values, centred at the value of the data.

    Items drawn twice count twice and are shrunk less, which shifts all resampled shares equally.
    """
    low, high = np.quantile(resamples - resamples.mean(), [0.025, 0.975])
    return float(value + low), float(value + high)


def _weighted(fit: FittedItemResponse, items: np.ndarray) -> Shares:
    ability = fit.mean("ability")
    return variance_shares(
        ability, fit.mean("difficulty")[items], fit.mean("log_discrimination")[items]
    )
