"""What the tables of P2 share."""

from typing import Any

import numpy as np

from judgebayes.experiments.core import Grade
from judgebayes.significance import Interval

__all__ = ["PAPER", "simulated_grade", "synthetic_row"]

PAPER = "calibrate-dont-curate"


def simulated_grade(advantage: Interval) -> Grade:
    """Return the grade of a claim that the paper itself tests on simulated votes."""
    if not np.isfinite(advantage.low):
        return ""
    return "simulated" if advantage.low > 0 else "contradicted" if advantage.high < 0 else ""


def synthetic_row(statement: str, what: str, value: float, holds: bool | None) -> dict[str, Any]:
    """Return the row of a number that a statement says something about, graded by whether it holds.

    `holds` is None for a number that is shown for its own sake.
    """
    graded: Grade = "" if holds is None else "simulated" if holds else "contradicted"
    return {
        "dataset": "synthetic",
        "task": f"{statement}: {what}",
        "method": "exact",
        "metric": "value",
        "value": float(value),
        "grade": graded,
    }
