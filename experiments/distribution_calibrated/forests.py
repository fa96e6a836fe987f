"""Forest plots of the paired differences of P1's Tables 3, 4, 6 and 7."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from judgebayes.experiments.plots import intervals


def forests(table: pd.DataFrame, metric: str) -> dict[str, Figure]:
    """Return the figures of a result's differences: on real data, and predicted by the twins.

    Above 0 the paper's method is better. Intervals are those of the claims: they hold at once for all
    cells of a kind.
    """
    shown = table[(table["metric"] == f"{metric} difference") & (table["grade"] != "")]
    real, twins = shown[shown["dataset"] != "twin"], shown[shown["dataset"] == "twin"]
    xlabel = f"{metric.upper() if metric == 'mae' else metric} gained by the method"
    figures: dict[str, Figure] = {}
    if len(real):
        one_judge = real["judge"].nunique() == 1
        figures["differences"] = intervals(
            real.assign(
                panel=real["task" if one_judge else "judge"].astype(str)
                + ", "
                + real["n"].astype(str)
                + " votes",
                row=real["method"].map(_other) if one_judge else real["task"],
                series=real["claim"] if one_judge else real["method"].map(_other),
            ),
            label="row",
            series="series",
            panel="panel",
            xlabel=xlabel,
            title="The method against others on RewardBench 2, simultaneous 95 % intervals",
            zero=True,
        )
    if len(twins):
        predicted = twins.assign(series="predicted by the twins")
        printed = twins.assign(
            series="printed in the paper", value=twins["paper_value"], low=np.nan, high=np.nan
        )
        figures["differences-of-twins"] = intervals(
            pd.concat([predicted, printed]).assign(
                row=lambda t: t["task"] + " (" + t["judge"] + ")",
                panel=lambda t: t["n"].astype(str) + " votes",
            ),
            label="row",
            series="series",
            panel="panel",
            xlabel=xlabel,
            title="SC against the paper's method on twins, simultaneous 95 % intervals",
            zero=True,
        )
    return figures


def _other(method: str) -> str:
    """Return what the paper's method is compared with: "sc" of "sc minus davidson"."""
    return method.removesuffix(" minus davidson").removeprefix("davidson minus ")
