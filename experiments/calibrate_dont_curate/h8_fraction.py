"""P2 H.8: the share of items used for calibration, and the rank correlation before and after it.

Claim: with 30 % of the items or more NLL falls by 93 % and accuracy is above 99 %; below 20 % accuracy
does not change; calibration does not change the order of the answers.
Command: judgebayes reproduce calibrate-dont-curate/h8-fraction --data DIR
Runtime: about 2 minutes.
Expected: in the true orientation accuracy hardly changes (a monotone map cannot change it by much) and
NLL falls much less than in the paper. Under the correctness encoding all answers are right and NLL
falls nearly to zero at nearly any share: the threshold is then below every score. The rank correlation
is below one where the map's floor makes saturated answers equal.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import answers
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import value_row
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.measures.significance import Interval

FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
SPLITS = 50


@experiment(
    PAPER,
    "h8-fraction",
    "H.8: calibration fraction and rank correlation",
    "with 30 % of the items NLL falls by 93 % and accuracy passes 99 %",
    twins=True,
)
def main(run: Run) -> Output:
    """Return accuracy, NLL and its fall by calibration share, and the rank correlation."""
    printed = {r.metric: float(r.value) for r in expected(PAPER, "h8").itertuples()}
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        for fraction in run.few(list(FRACTIONS), 2):
            run.say(f"{panel.name}, {panel.orientation}: {fraction:.0%}")
            parts = halves(run, panel, share=fraction, count=SPLITS)
            by_calibrator = answers(run, panel, "one-coin", ("none", "beta"), parts=parts)
            raw, calibrated = by_calibrator["none"], by_calibrator["beta"]
            fall = bootstrap_interval(1 - calibrated.by_split("nll") / raw.by_split("nll"))
            for method, metric, interval in (
                ("one-coin", "accuracy", raw.interval("accuracy")),
                ("one-coin + beta", "accuracy", calibrated.interval("accuracy")),
                ("one-coin + beta", "nll", calibrated.interval()),
                ("one-coin + beta", "nll fall", fall),
            ):
                row = value_row(panel, method, metric, interval, len(raw.items), n=fraction)
                if fraction == 0.3 and method == "one-coin + beta":
                    row["paper_value"] = printed.get(metric)
                records.append(row)
            same = Interval(_rank_correlation(raw.log_probs, calibrated.log_probs), np.nan, np.nan)
            row = value_row(panel, "raw and calibrated", "rank correlation", same, 1, n=fraction)
            records.append(row)
    notes = [
        "In this table n is the share of the items used for calibration.",
        "The rank correlation (Spearman, of the log-odds) would be 1 by construction without the "
        "calibrator's floor of 1e-6, which makes saturated answers equal; it says nothing about the "
        "threshold.",
    ]
    return Output(rows(PAPER, "h8-fraction", records), notes=notes)


def _rank_correlation(raw: np.ndarray, calibrated: np.ndarray) -> float:
    """Return the mean over splits of Spearman's correlation of the log-odds."""
    from scipy.stats import spearmanr

    each = [
        spearmanr(_log_odds(a), _log_odds(b)).statistic
        for a, b in zip(raw, calibrated, strict=True)
    ]
    return float(np.nanmean(each))


def _log_odds(log_probs: np.ndarray) -> np.ndarray:
    """Return log-odds to nine digits, so that answers equal but for rounding are tied."""
    return np.asarray(np.round(log_probs[:, 1] - log_probs[:, 0], 9))
