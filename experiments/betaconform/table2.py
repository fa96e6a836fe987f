"""P3 Table 2: error margins from ten labels, with and without transfer from other data sets.

Claim: transferring the parameters of other data sets of the domain lowers the error margin.
Command: judgebayes reproduce betaconform/table2 --data DIR
Runtime: about 2 minutes after fig5, 7 minutes alone, with data.
Expected: the paper's transfer helps where the data sets of a domain are similar and does much harm
where they are not (LLMBar's natural subset from its adversarial ones): the mean margin is 13.8 points,
against 6.3 without. Pooling has 5.7 and harms a target unlike its sources by up to 3.4 points; limited
pooling has 5.8 and harms none by more than the interval of its margin.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.margins import claim
from judgebayes.experiments.betaconform.transfers import (
    FEW_LABELS,
    LIMITED,
    REACHES,
    Target,
    limit,
    margins,
    targets,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.measures.significance import Interval, normal_interval
from judgebayes.plots import intervals

Margins = tuple[Target, dict[str, Float[np.ndarray, " split"]]]
"""A target and the margins of every method over runs."""

ELSEWHERE = "pooled, limit chosen on the other sources"
SHOWN = ("em", "mixture-map", "thinning", "transfer", "transfer-map", "pooled", LIMITED)
DRAWN = ("mixture-map", "transfer", "pooled", LIMITED)
CLAIMS = (
    ("em", "transfer"),
    ("mixture-map", "pooled"),
    ("mixture-map", LIMITED),
    ("em", LIMITED),
    ("transfer", LIMITED),
)


@experiment(
    PAPER,
    "table2",
    "Table 2: error margin from ten labels, with and without transfer",
    "transfer from the other data sets of the domain lowers the error margin",
    needs=("p3_correct_counts", "llmbar_evaluators", "rewardbench_rm149"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return margins by target, and graded rows for transfer and for pooling."""
    records: list[dict[str, Any]] = []
    by_target: list[Margins] = []
    for target in targets(run):
        run.say(target.data_set.name)
        by_method = margins(run, target)
        by_target.append((target, by_method))
        records += [
            margin_row(target, name, by_method[name]) for name in SHOWN if name in by_method
        ]
        for one, other in CLAIMS:
            if other in by_method and one in by_method:
                gain = normal_interval(by_method[one] - by_method[other])
                text = f"{one} minus {other}"
                runs = len(by_method[one])
                records.append(claim(target.data_set, text, "gain in error margin", gain, runs))
    harms = [harm(by_target, name) for name in (*map(limit, REACHES), "pooled")]
    if len({target.data_set.dataset for target, _ in by_target}) > 1:
        harms.append(harm(reach_from_elsewhere(by_target), ELSEWHERE))
    table = rows(PAPER, "table2", records + [row for each in harms for row in each.rows()])
    notes = [_means(by_target, text) for text in (True, False)]
    notes = [note for note in notes if note] + _verdicts(table)
    notes += [each.sentence() for each in harms] + [CHANCE]
    margin_rows = table[table["metric"] == "error margin"]
    figures = {
        f"margins-{dataset}": intervals(
            part[part["method"].isin(DRAWN)],
            label="task",
            series="method",
            panel="judge",
            log=True,
            xlabel=f"error margin in points from {FEW_LABELS} labels (bars: 95 % over runs)",
            title=f"{dataset}: ten labels, with and without other data sets",
        )
        for dataset, part in margin_rows.groupby("dataset", sort=False)
    }
    return Output(table, figures, notes)


CHANCE = (
    "Clearly worse means that the 95 % interval of the paired difference over runs is above zero. "
    "These intervals shrink with the limit, so a smaller limit bounds the size of the harm and not "
    "how often it is detected: by chance alone one target in forty would be called clearly worse."
)


@dataclass(frozen=True)
class Harm:
    """The mean margin of a method and its harm on the targets where it is worse than no transfer."""

    method: str
    targets: int
    mean: float
    """Mean margin in points."""
    clearly: int
    """Number of targets where the interval of the paired difference to no transfer is above zero."""
    beyond: int
    """Number of targets where the rise exceeds half the interval of the margin without transfer."""
    largest: float
    """The largest rise, in points."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a result row of each number."""
        common = {
            "dataset": "all",
            "task": "all",
            "judge": "",
            "n": FEW_LABELS,
            "method": self.method,
        }
        numbers = {
            "mean error margin": self.mean,
            "targets clearly worse": float(self.clearly),
            "targets worse by more than the interval": float(self.beyond),
            "largest rise in error margin": self.largest,
        }
        return [
            {**common, "metric": metric, "value": value, "splits": self.targets, "grade": ""}
            for metric, value in numbers.items()
        ]

    def sentence(self) -> str:
        """Return the numbers in words."""
        return (
            f"{self.method}: mean margin {self.mean:.2f}; worse than no transfer by more than the 95 % "
            f"interval of the margin without on {self.beyond} of {self.targets} targets; clearly worse "
            f"on {self.clearly}; at most by {self.largest:.2f} points."
        )


def reach_from_elsewhere(by_target: list[Margins]) -> list[Margins]:
    """Return each target with the reach chosen on the other data sources.

    This is the largest reach at which none of their targets is worse by more than its interval, a
    choice that is possible for a new data source.
    """
    answer: list[Margins] = []
    for source in dict.fromkeys(target.data_set.dataset for target, _ in by_target):
        others = [each for each in by_target if each[0].data_set.dataset != source]
        harmless = [reach for reach in REACHES if not harm(others, limit(reach)).beyond]
        reach = max(harmless, default=min(REACHES))
        answer += [
            (target, by_method | {ELSEWHERE: by_method[limit(reach)]})
            for target, by_method in by_target
            if target.data_set.dataset == source
        ]
    return answer


def harm(by_target: list[Margins], method: str) -> Harm:
    """Return the harm of a method, compared with the mixture fitted to the target's own labels."""
    rise = [
        normal_interval(by_method[method] - by_method["mixture-map"]) for _, by_method in by_target
    ]
    own = [normal_interval(by_method["mixture-map"]) for _, by_method in by_target]
    return Harm(
        method,
        len(by_target),
        float(np.mean([by_method[method].mean() for _, by_method in by_target])),
        sum(r.low > 0 for r in rise),
        sum(r.mean > o.high - o.mean for r, o in zip(rise, own, strict=True)),
        max(r.mean for r in rise),
    )


def margin_row(target: Target, name: str, values: Float[np.ndarray, " split"]) -> dict[str, Any]:
    """Return the row of one method's margins on a target."""
    interval: Interval = normal_interval(values)
    return {
        **target.data_set.columns(),
        "method": name,
        "metric": "error margin",
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": len(values),
        "grade": "",
    }


def _means(by_target: list[Margins], text: bool) -> str:
    own = [by_method for target, by_method in by_target if (target.embeddings is not None) == text]
    if not own:
        return ""
    names = [name for name in SHOWN if name in own[0]]
    means = ", ".join(
        f"{n} {np.mean([by_method[n].mean() for by_method in own]):.2f}" for n in names
    )
    kind = "with text" if text else "without text (RewardBench 2)"
    return f"Mean margin over {len(own)} targets {kind}, in points: {means}."


def _verdicts(table: pd.DataFrame) -> list[str]:
    notes = []
    for one, other in CLAIMS:
        gains = table[table["method"] == f"{one} minus {other}"]
        if len(gains):
            better, worse = int((gains["low"] > 0).sum()), int((gains["high"] < 0).sum())
            worst = gains.loc[gains["value"].astype(float).idxmin()]
            notes.append(
                f"{other} against {one}: better on {better} of {len(gains)} targets, worse on "
                f"{worse}; mean gain {gains['value'].mean():+.2f} points, at worst "
                f"{worst['value']:+.2f} ({worst['task']}, {worst['judge']})."
            )
    return notes
