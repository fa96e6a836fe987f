"""Audit: whether as many labels as are advised make the interval as narrow as was asked.

Claim: (none of the paper) with the labels that a forecast from 20 labels advises at 90 % assurance, the
interval is half as wide in about 90 % of the cases; with the typical number in about half.
Command: judgebayes reproduce betaconform/audit-assurance --data DIR
Runtime: about 10 minutes with data; 3 replays on each of 38 data sets and 11 simulated worlds.
Expected: near 90 % on average; less often where judges are wrong far more often than the prior expects.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.curve_worlds import WORLDS
from judgebayes.experiments.betaconform.vote_splits import split_sets
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import MeanLoss, SplitCurve, Splits, label_forecast, odd_sizes

REPLAYS = 3
LABELS, ITEMS = 20, 300
ASSURANCES = {"typical": 0.5, "assured": 0.9}


@experiment(
    PAPER,
    "audit-assurance",
    "Audit: the advised number of labels",
    "as many labels as are advised make the interval as narrow as was asked",
    needs=("p3_correct_counts", "llmbar_evaluators", "rb2_k8_scores"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return how often the target width is met, and the number of labels bought."""
    sets = [(s.family, s.name, s.splits, False) for s in run.few(split_sets(run), 1)]
    sets += [
        ("simulated", w.name, w.sample([run.seed, i], ITEMS), True)
        for i, w in enumerate(run.few(list(WORLDS), 1))
    ]
    records: list[dict[str, Any]] = []
    for family, name, whole, by_class in sets:
        run.say(f"{family} {name}")
        each = [
            _bought(whole, by_class, np.random.default_rng([run.seed, replay, len(whole.labels)]))
            for replay in range(2 if run.smoke else REPLAYS)
        ]
        for metric in each[0]:
            values = np.array([one[metric] for one in each])
            values = values[np.isfinite(values)]
            if len(values) == 0:
                continue
            interval = normal_interval(values)
            kind, _, method = metric.partition(", ")
            records.append(
                {
                    "dataset": family,
                    "task": "",
                    "judge": name,
                    "n": LABELS,
                    "method": method,
                    "metric": kind,
                    "value": interval.mean,
                    "low": interval.low,
                    "high": interval.high,
                    "splits": len(values),
                }
            )
    table = rows(PAPER, "audit-assurance", records)
    met = table[table["metric"] == "met"]
    notes = []
    for method, own in met.groupby("method"):
        share = (own["value"] * own["splits"]).sum() / own["splits"].sum()
        half = 1.96 * np.sqrt(share * (1 - share) / own["splits"].sum())
        families = ", ".join(
            f"{family} {(part['value'] * part['splits']).sum() / part['splits'].sum():.3f}"
            for family, part in own.groupby("dataset")
        )
        notes.append(
            f"{method} number of labels ({ASSURANCES[method]:.0%}): the target is met in {share:.3f} "
            f"of {own['splits'].sum():.0f} replays (simulation error {half:.3f}; {families})."
        )
    return Output(table, notes=notes)


def _bought(whole: Splits, by_class: bool, rng: np.random.Generator) -> dict[str, float]:
    """Return whether the target is met with the advised labels, and their number."""
    order, size = rng.permutation(len(whole.labels)), odd_sizes(int(whole.total.max()))[-1]
    method = SplitCurve(by_class=by_class)

    def labelled(n: int) -> Splits:
        labels = np.full(len(order), -1)
        labels[order[:n]] = whole.labels[order[:n]]
        return whole.with_labels(labels)

    def width(n: int) -> float:
        splits = labelled(n)
        curve = method.fit(splits).curve(splits, (size,), MeanLoss("these", "wrong"), seed=n)
        return float(curve.high[0] - curve.low[0])

    now = labelled(LABELS)
    goal = width(LABELS) / 2
    forecast = label_forecast(
        method.fit(now), now, size, goal, MeanLoss("these", "wrong"), seed=int(order[0])
    )
    result = {}
    for name, assurance in ASSURANCES.items():
        n = forecast.needed(assurance)
        # A forecast that no number of labels is enough says nothing that could be met.
        result[f"met, {name}"] = np.nan if n is None else float(width(max(n, LABELS)) <= goal)
        result[f"labels, {name}"] = np.nan if n is None else float(max(n, LABELS))
    return result
