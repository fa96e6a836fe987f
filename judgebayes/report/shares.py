"""A judge's accuracies as text for tables."""

import numpy as np
import pandas as pd

SHARES = {"accuracy": "accuracy", "tpr": "TPR", "tnr": "TNR", "position_bias": "position bias"}
"""The columns of `judgebayes.panel.judges.judge_table` with intervals, and their titles."""


def percent_with_interval(row: pd.Series, name: str) -> str:
    """Return a share of a row of `judge_table` in per cent, with its interval; "-" if unknown."""
    if not np.isfinite(row[name]):
        return "-"
    sign = "+" if name == "position_bias" else ""
    value, low, high = (
        f"{100 * row[column]:{sign}.0f}" for column in (name, f"{name}_low", f"{name}_high")
    )
    return f"{value} [{low}, {high}]"


def percent_of(part: int, whole: int) -> str:
    """Return a share in per cent as text; a hyphen if the whole is 0."""
    return f"{part / whole:.1%}" if whole else "-"
