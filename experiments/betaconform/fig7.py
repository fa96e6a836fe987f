"""P3 Fig 7: labels used on different data sets under three thresholds.

Claim: the number of labels is nearly the same on all data sets: the rule is distribution-free.
Command: judgebayes reproduce betaconform/fig7 --data DIR
Runtime: about 2 minutes after fig6, for the split curve.
Expected: with eq 11's minimum the counts are only a few labels above it on every data set, since the
minimum determines them; as printed they vary about two-fold between data sets. A rule for the answer
itself, the width of the split curve's interval, takes fewer labels where the votes say more.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.betaconform.common import PAPER, all_data_sets, with_panels
from judgebayes.experiments.betaconform.stopping_rules import QuantileRule
from judgebayes.experiments.betaconform.stops import row, split_curve_stops, stops
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.plots import intervals

XIS = (0.06, 0.03, 0.01)
SPLITS = "split curve, width"
"""The method of the split curve's rule, whose `n` is the width of its interval."""
WIDTH = 0.2


@experiment(
    PAPER,
    "fig7",
    "Fig 7: labels used by data set and threshold",
    "the quantile rule takes nearly the same number of labels on every data set",
    needs=("p3_correct_counts",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return labels used by data set, with and without the minimum, and by the split curve."""
    records: list[dict[str, Any]] = []
    for data_set in all_data_sets(run):
        records.append(row(data_set, WIDTH, SPLITS, split_curve_stops(run, data_set, WIDTH)))
        for xi in run.few(list(XIS), 2):
            for name, rule in (
                ("with eq 11's minimum", QuantileRule(xi)),
                ("as printed", QuantileRule(xi, minimum=False)),
            ):
                records.append(row(data_set, xi, name, stops(run, data_set, rule)))
    table = rows(PAPER, "fig7", records)
    notes = []
    for name, own in table.groupby("method", sort=False):
        for xi, part in own.groupby("n"):
            value = part["value"].astype(float)
            threshold = xi if name == SPLITS else f"xi = {xi}"
            notes.append(
                f"{name}, {threshold}: {value.min():.1f} to {value.max():.1f} labels, coefficient of "
                f"variation over data sets {value.std(ddof=1) / np.maximum(value.mean(), 1):.2f}."
            )
    series = [
        f"{SPLITS} {r.n}" if r.method == SPLITS else f"xi = {r.n}" for r in table.itertuples()
    ]
    named = with_panels(table).assign(series=series)
    figure = intervals(
        named[named["method"] != "as printed"],
        label="name",
        series="series",
        panel="panel",
        xlabel="labels used, mean over runs (bars: 95 %)",
        title="Labels used by data set, with eq 11's minimum, and until the interval is narrow",
    )
    return Output(table, {"labels": figure}, notes)
