"""P2 Tables 4 and 9: aggregators before and after beta calibration.

Claim: beta calibration brings every aggregator to a low NLL; one-coin and Dawid-Skene then beat vote
shares (margin 0.01 nats) and equal each other (within 0.01 nats). Audit: stacking, which the paper says
only memorises its calibration set, beats one-coin and the top 5 on new items (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/table4 --data DIR
Runtime: about 2 minutes.
Expected: in the true orientation, both steps on the whole half, beta does not bring every aggregator to
a low NLL. One-coin beats majority on the reward models and LLMBar (replicated) and loses to it on
RewardBench 2 (contradicted), where judges are near copies of each other. One-coin and Dawid-Skene are
equal (replicated). Stacking, which the paper calls degenerate, is the best on new items (replicated).
Beta on its own fitted answers makes it worse, out-of-fold beta less so. Under the correctness encoding
every method with beta is nearly perfect.
"""

from typing import Any

from judgebayes import Beta, Stacking
from judgebayes.experiments.calibrate_dont_curate.answers import (
    Answers,
    advantage,
    answers,
    answers_of,
)
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import LARGE, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
)
from judgebayes.experiments.core import Output, Run, experiment, rows

METHODS = (
    "majority",
    "accuracy-weighted",
    "log-odds",
    "dawid-skene",
    "one-coin",
    "top-3",
    "top-5",
    "top-10",
)
SHARED = ("majority", "one-coin", "dawid-skene", "stacking")
BEATS = Statement("methods that weigh judges beat vote shares", "paper", MARGIN["nll"])
EQUALS = Statement("one-coin and Dawid-Skene are equal", "paper", MARGIN["nll"], within=True)
STACKING = Statement("stacking is better on new items", "audit", MARGIN["nll"])
CLAIMS = (
    ("majority", "one-coin", BEATS),
    ("majority", "dawid-skene", BEATS),
    ("one-coin", "dawid-skene", EQUALS),
    ("one-coin", "stacking", STACKING),
    ("top-5", "stacking", STACKING),
)
NESTED = 0.7
FOLDS = 5
OUT_OF_FOLD = "stacking, out of fold + beta"


@experiment(
    PAPER,
    "table4",
    "Tables 4 and 9: aggregators, calibrated and not",
    "calibration matters more than aggregation; one-coin and Dawid-Skene beat vote shares",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLL and accuracy of every aggregator, nested (Table 4) and not (Table 9)."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        for share, protocol in ((NESTED, "nested"), (None, "shared")):
            by_arm: dict[str, Answers] = {}
            for method in METHODS if share else SHARED:
                by_calibrator = answers(run, panel, method, ("none", "beta"), share=share)
                by_arm[method] = by_calibrator["beta"]
                for name, one in by_calibrator.items():
                    title = f"{method} + beta" if name == "beta" else method
                    records += metric_rows(one, f"{title}, {protocol}", ("nll", "accuracy"))
            if share is None:
                by_arm["stacking"] = answers(run, panel, "stacking", ("none",))["none"]
                by_arm["top-5"] = answers(run, panel, "top-5")["beta"]
                if len(panel.labels) * len(panel.judges) <= LARGE and not run.smoke:
                    folds = answers_of(
                        run,
                        panel,
                        Stacking(),
                        {"beta": Beta(clip=FLOOR)},
                        halves(run, panel),
                        cross_fit=FOLDS,
                    )
                    records += metric_rows(folds["beta"], OUT_OF_FOLD, ("nll", "accuracy"))
                for worse, better, statement in CLAIMS:
                    gain = advantage(by_arm[better], by_arm[worse])
                    name = f"{worse} minus {better}"
                    records.append(
                        claim_row(panel, name, "nll difference", gain, run.splits, statement)
                    )
    notes = [
        "nested: the aggregator learns from 70 % of the calibration half, the calibrator from the "
        "rest (section 4.4). shared: both learn from all of it (Appendix H.9).",
        f"{OUT_OF_FOLD}: the paper's Stacking-CV, with beta learnt from out-of-fold answers ({FOLDS} "
        "folds); not run on the reward models, where it needs six fits of 148 weights per split.",
        "Differences are of the shared protocol: beta with all methods except stacking, which has no "
        "map. Stacking is scored on held-out items, where memorising would give a high NLL.",
    ]
    return Output(rows(PAPER, "table4", graded(records)), notes=notes)
