"""Audit: forecasts of what more labels gain, replayed on real sets.

Claim: (none of the paper) the 80 % intervals on the page of `calibrate` contain the expected NLL with
more labels in 74 to 90 % of replays, on every real set.
Command: judgebayes reproduce calibrate-dont-curate/audit-forecast --data DIR
Runtime: about 30 minutes of processor time; 200 replays of five sets, two methods and three forecasts.
Expected: coverage near 80 %; widths that shrink with the present number of labels.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes import Beta, Calibrated, OneCoin, Stacking
from judgebayes.evaluate.learning_curve import Forecast
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.calibrate_dont_curate.audit_raters import left_out, rater_panels
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR, MTBENCH_PEOPLE, RB2, WMT23
from judgebayes.experiments.panels import (
    REWARDBENCH,
    Panel,
    llmbar_panel,
    rb2_panel,
    rewardbench_panel,
)
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import absolute_loss
from judgebayes.measures.significance import Interval, share_interval
from judgebayes.votes import Votes
from judgebayes.workflow.comparing import compare
from judgebayes.workflow.next_steps import SPLITS, grow, more_labels

LEAST, MOST = 0.74, 0.9
"""The bounds that the coverage must keep: 200 replays have a standard error of .028."""
REPLAYS = 200
TRUE_SPLITS = 100
"""The number of splits from which the expected NLL is computed."""
NUMBERS = ((50, 100), (50, 200), (100, 200))
"""The present number of labels, and that of the forecast."""
METHODS: dict[str, Method] = {
    "one-coin + beta": Calibrated(OneCoin(class_prior="labels"), Beta(), cross_fit=5),
    "stacking": Stacking(),
}
NLL, GAIN = "NLL", "gain"


class Cell(NamedTuple):
    """One set, method and pair of label numbers, with the true values and the forecasts."""

    dataset: str
    method: str
    now: int
    later: int
    truth: dict[str, float]
    forecasts: list[Forecast]


@experiment(
    PAPER,
    "audit-forecast",
    "Audit: forecasts of what more labels gain",
    "80 % intervals of the NLL with more labels contain it in 74 to 90 % of replays",
    needs=(LLMBAR, REWARDBENCH, RB2, WMT23, MTBENCH_PEOPLE),
)
def main(run: Run) -> Output:
    """Return coverage, mean forecast and true value by set, method and numbers of labels."""
    records: list[dict[str, Any]] = []
    sets = real_sets(run)
    for dataset in run.few(list(sets)):
        votes, labels = sets[dataset]()
        run.say(f"{dataset}: {len(labels)} items")
        for name, method in METHODS.items():
            for cell in replayed(dataset, name, method, votes, labels, run):
                records += _records(cell)
    table = rows(PAPER, "audit-forecast", records)
    return Output(table, notes=_notes(table))


def real_sets(run: Run) -> dict[str, Callable[[], tuple[Votes, Int[np.ndarray, " item"]]]]:
    """Return functions that read the votes and labels of each set, by name."""
    panels: dict[str, Callable[[Run], Panel]] = {
        LLMBAR: llmbar_panel,
        REWARDBENCH: rewardbench_panel,
        RB2: rb2_panel,
    }
    raters = rater_panels(run)
    people = (f"{WMT23}, en-de", MTBENCH_PEOPLE)

    def pairs(name: str) -> Callable[[], tuple[Votes, Int[np.ndarray, " item"]]]:
        return lambda: (panels[name](run).votes, panels[name](run).labels)

    def rated(name: str) -> Callable[[], tuple[Votes, Int[np.ndarray, " item"]]]:
        return lambda: left_out(raters[name]())

    return {name: pairs(name) for name in panels} | {name: rated(name) for name in people}


def replayed(
    dataset: str,
    name: str,
    method: Method,
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    run: Run,
) -> Iterator[Cell]:
    """Yield the cells of one set and method: each replay sees the labels of other random items."""
    replays, splits = (2, 2) if run.smoke else (REPLAYS, TRUE_SPLITS)
    whole = random_splits(len(labels), splits=splits, calibration=0.5, seed=run.seed)
    loss = {
        size: _expected(method, votes, labels, whole.with_calibration(size))
        for size in sorted({size for pair in NUMBERS for size in pair})
    }
    for now, later in run.few(list(NUMBERS)):
        forecasts = []
        for replay in range(replays):
            rng = np.random.default_rng([run.seed, now, replay])
            known = np.sort(rng.choice(len(labels), now, replace=False))
            forecast = _forecast(method, votes.take(known), labels[known], later - now, replay)
            if forecast is not None:
                forecasts.append(forecast)
        truth = {NLL: loss[later], GAIN: loss[now] - loss[later]}
        yield Cell(dataset, name, now, later, truth, forecasts)


def _expected(
    method: Method, votes: Votes, labels: Int[np.ndarray, " item"], parts: Splits
) -> float:
    """Return the mean NLL on the other half of the items."""
    used = Splits(parts.calibration[:, (parts.calibration >= 0).any(0)], parts.evaluation)
    held_out = evaluate_splits(method, votes, labels, used, fit_on="calibration")
    return float(np.nanmean(held_out.nll()))


def _forecast(
    method: Method, votes: Votes, labels: Int[np.ndarray, " item"], more: int, seed: int
) -> Forecast | None:
    """Return the forecast that the page of `calibrate` gives for these labels, None if it gives none."""
    name = "method"
    compared = compare(
        {name: method},
        votes,
        labels,
        None,
        absolute_loss(votes.n_classes),
        splits=SPLITS,
        seed=seed,
    )
    growth, now = grow(compared, name), int((labels >= 0).sum())
    return more_labels(compared, name, growth, now, more, seed=seed)


def _records(cell: Cell) -> Iterator[dict[str, Any]]:
    """Yield the rows of a cell."""
    common = {
        "dataset": cell.dataset,
        "task": f"{cell.later} labels",
        "n": cell.now,
        "method": cell.method,
        "splits": len(cell.forecasts),
    }
    for name, truth in cell.truth.items():
        said = [each.loss if name == NLL else each.gain for each in cell.forecasts]
        hits = sum(each.low <= truth <= each.high for each in said)
        low, high = share_interval(np.asarray(float(hits)), np.asarray(float(len(said))))
        values = [
            (f"coverage of the {name}", Interval(hits / len(said), float(low), float(high))),
            (f"forecast of the {name}", _mean([each.mean for each in said])),
            (f"width of the {name}", _mean([each.high - each.low for each in said])),
            (f"true {name}", Interval(truth, np.nan, np.nan)),
        ]
        for metric, (mean, least, most) in values:
            yield {**common, "metric": metric, "value": mean, "low": least, "high": most}


def _mean(values: list[float]) -> Interval:
    """Return a mean over replays with its 95 % interval."""
    each: Float[np.ndarray, " replay"] = np.asarray(values)
    half = 1.96 * float(each.std(ddof=1)) / np.sqrt(len(each))
    return Interval(float(each.mean()), float(each.mean()) - half, float(each.mean()) + half)


def _notes(table: pd.DataFrame) -> list[str]:
    """Return sentences with the range of the coverage."""
    lines = [
        "n is the present number of labels, task that of the forecast. The true NLL is that of fits to "
        f"{TRUE_SPLITS} random draws of this number of labels, on the other half of the items."
    ]
    for name in (NLL, GAIN):
        own = table[table["metric"] == f"coverage of the {name}"]
        within = own["value"].between(LEAST, MOST).sum()
        lines.append(
            f"Coverage of the {name} from {own['value'].min():.3f} to {own['value'].max():.3f}, within "
            f"{LEAST:.0%} to {MOST:.0%} in {within} of {len(own)} cells."
        )
    return lines
