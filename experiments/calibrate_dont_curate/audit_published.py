"""Audit: judges of the printed accuracy cannot have the calibrated NLLs that the paper prints.

Claim: beta calibration takes NLL to 0.084 on JudgeBench and to 0.046 on RewardBench, from aggregates
that are right on 73.9 % and 93.6 % of the items, and from votes that are right on 70.4 % and 90.2 %.
Audit: the printed NLL is not below the least that calibrated answers of the printed accuracy can have
(margin 0.001, rounding).
Command: judgebayes reproduce calibrate-dont-curate/audit-published
Runtime: seconds.
Expected: contradicted by arithmetic: the printed NLLs are below the least one that calibrated answers
of the printed accuracy can have (`least_nll`).
"""

from typing import Any

import numpy as np

from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.rows import paper_values
from judgebayes.experiments.claims import claim_equal
from judgebayes.experiments.core import Output, Run, experiment, rows

CLAIMED = "one-coin + platt + beta"
METHODS = ("majority", "one-coin", "top-5")


def least_nll(accuracy: float) -> float:
    r"""Return the least NLL of calibrated binary answers with an accuracy A of at least one half.

    .. math:: \mathrm{NLL} = E\,h(q) \ge 2 (1 - A) \log 2, \qquad A = E\,q, \quad q \in [1/2, 1]

    where q is the confidence and h the entropy. h is concave, so it lies above the chord from
    (1/2, log 2) to (1, 0). Answers that are either certain or one half attain the bound.
    """
    return 2 * (1 - accuracy) * float(np.log(2))


def least_accuracy(nll: float) -> float:
    """Return the smallest accuracy that calibrated answers with a given NLL can have."""
    return 1 - nll / (2 * float(np.log(2)))


@experiment(
    PAPER,
    "audit-published",
    "Audit: NLL and accuracy as printed",
    "calibrated NLLs of 0.084 and 0.046 follow from votes of the printed accuracy",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the bounds that follow from the printed accuracies, with the printed NLLs."""
    before, after = paper_values("table1"), paper_values("table10")
    records: list[dict[str, Any]] = []
    notes = []
    for task in ("JudgeBench", "RewardBench"):
        printed = after[task, CLAIMED, "nll"]
        for method in METHODS:
            accuracy = before[task, method, "accuracy"]
            bound = least_nll(accuracy)
            shortfall = max(bound - printed, 0.0)
            claim = claim_equal(
                shortfall, 0.0, kind="audit", source="own", margin=MARGIN["printed"]
            )
            records.append(
                {
                    "dataset": "published",
                    "task": task,
                    "method": f"bound from the accuracy of {method}",
                    "metric": "nll",
                    "value": bound,
                    "low": np.nan,
                    "high": np.nan,
                    "paper_value": printed,
                    "claim": claim if method == "one-coin" else None,
                }
            )
        notes.append(
            f"{task}: an NLL of {printed:g} needs answers that are right on "
            f"{least_accuracy(printed):.1%} of the items; the calibrated one-coin answers are right on "
            f"{before[task, 'one-coin', 'accuracy']:.1%}."
        )
        ece, accuracy = before[task, "majority", "ece"], before[task, "majority", "accuracy"]
        notes.append(
            f"{task}: majority voting prints ECE {ece:g} with accuracy {accuracy:.1%}. If the label is "
            f"constant, ECE is 1 minus the mean share of correct votes, which then is {1 - ece:.1%}: "
            "the judges' mean accuracy."
        )
    notes.append(
        "A monotone map only changes the threshold. On pairs in an arbitrary order another threshold "
        "cannot raise the accuracy by twenty points; with a constant label, a threshold below every "
        "score raises it to 100 %."
    )
    return Output(rows(PAPER, "audit-published", records), notes=notes)
