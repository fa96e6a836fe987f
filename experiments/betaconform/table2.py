"""P3 Table 2: error margins from ten labels, with and without transfer from other data sets.

Claim: transferring the parameters of other data sets of the domain lowers the error margin, on average
over targets; margin 0.5 points. The targets of a domain are each other's sources, so the units are the
domains (LLMBar, the categories of RewardBench, and without text RewardBench 2).
Command: judgebayes reproduce betaconform/table2 --data DIR
Runtime: about 2 minutes after fig5, 7 minutes alone, with data.
Expected: the paper's transfer helps where the data sets of a domain are similar and does much harm
where they are not (LLMBar's natural subset from its adversarial ones), so the mean margin is higher with
it than without. Pooling is better on average and harms targets unlike their sources; limited pooling
keeps most of the gain and harms no target by more than the interval of its margin.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.experiments.betaconform.common import MARGIN, PAPER, mean_claims
from judgebayes.experiments.betaconform.margins import kind_of
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
from judgebayes.experiments.plots import intervals
from judgebayes.experiments.significance import normal_interval
from judgebayes.measures.significance import Interval

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
    """Return margins by target, and the claims on transfer and on pooling."""
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
        records += gain_over_targets(by_target, one, other)
    harms = [harm(by_target, name) for name in (*map(limit, REACHES), "pooled")]
    if len({target.data_set.dataset for target, _ in by_target}) > 1:
        harms.append(harm(reach_from_elsewhere(by_target), ELSEWHERE))
    table = rows(PAPER, "table2", records + [row for each in harms for row in each.rows()])
    notes = [_means(by_target, text) for text in (True, False)]
    notes = [note for note in notes if note] + _verdicts(by_target, table)
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
    "Clearly worse means that the 95 % interval of the paired difference over runs is above zero; the "
    "runs share the target's items, so this describes these data and is no claim. "
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
            {**common, "metric": metric, "value": value, "splits": self.targets}
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
    }


def gain_over_targets(by_target: list[Margins], one: str, other: str) -> list[dict[str, Any]]:
    """Return the claim that `other` has a lower margin than `one`, on average over targets."""
    own = [each for each in by_target if one in each[1] and other in each[1]]
    if not own:
        return []
    gain = np.array([(by_method[one] - by_method[other]).mean() for _, by_method in own])
    row = {"method": f"{one} minus {other}", "metric": "gain in error margin"}
    return mean_claims(
        [target.data_set for target, _ in own],
        [(row, gain)],
        groups=[f"{target.data_set.dataset} {target.domain}" for target, _ in own],
        kind=kind_of(other, one),
        margin=MARGIN["error margin"],
    )


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


def _verdicts(by_target: list[Margins], table: pd.DataFrame) -> list[str]:
    notes = []
    for one, other in CLAIMS:
        gains = {
            f"{target.data_set.task}, {target.data_set.judge}": float(
                (by_method[one] - by_method[other]).mean()
            )
            for target, by_method in by_target
            if one in by_method and other in by_method
        }
        if not gains:
            continue
        lower = sum(gain > 0 for gain in gains.values())
        text = f"{other} against {one}: lower mean on {lower} of {len(gains)} targets"
        for row in table[table["method"] == f"{one} minus {other}"].itertuples():
            text += f"; mean gain {row.value:+.2f} points [{row.low:+.2f}, {row.high:+.2f}]"
        worst = min(gains, key=lambda name: gains[name])
        notes.append(f"{text}, at worst {gains[worst]:+.2f} ({worst}).")
    return notes
