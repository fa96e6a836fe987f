"""P2 H.6: weighting against pruning by the spread of the judges' accuracies, on simulated panels.

Claim: log-odds weighting beats keeping the best half or third of the judges: most when the judges
have similar accuracies, and little when these differ much (margin: one point of accuracy; the units are
simulated panels).
Command: judgebayes reproduce calibrate-dont-curate/h6
Runtime: seconds.
Expected: as claimed against pruning followed by majority voting. The paper does not state the number of
judges, their mean accuracy and the spreads, so they are our choice. With the same log-odds weights in
both arms the lead is nearly the same for similar judges and shrinks faster. For similar judges the
plain majority of all judges has nearly the same lead over pruning, so there the lead is the cost of
pruning, not the gain by weighting.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.rows import Cell, Statement, graded
from judgebayes.experiments.claims import Evidence, evidence_of_units
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.plots import curves
from judgebayes.experiments.significance import normal_interval
from judgebayes.measures.significance import Interval

SPREADS = (0.01, 0.03, 0.05, 0.10, 0.15, 0.20)
PANELS = ((20, 0.65), (20, 0.75), (50, 0.60))
ITEMS, REPLICATES = 500, 100
SHARES = {"top half": 2, "top third": 3}
CLAIM = Statement("weighting beats pruning", "paper", MARGIN["simulated accuracy"])


def replicate(
    judges: int, mean: float, spread: float, rng: np.random.Generator
) -> dict[str, float]:
    """Return each rule's accuracy on new items, with weights and ranks learnt on as many items."""
    accuracy = np.clip(rng.normal(mean, spread, judges), 0.05, 0.98)
    right = rng.random((2 * ITEMS, judges)) < accuracy
    labelled, new = right[:ITEMS], right[ITEMS:]
    alpha, beta = 1 + labelled.sum(0), 1 + (~labelled).sum(0)
    weight = np.log(alpha / beta)
    by_rule = {
        "log-odds": _share_right(new, weight),
        "majority": _share_right(new, np.ones(judges)),
    }
    rank = np.argsort(np.argsort(-weight, kind="stable"))
    for name, share in SHARES.items():
        selected = rank < -(-judges // share)
        by_rule[f"{name}, majority"] = _share_right(new, selected.astype(float))
        by_rule[f"{name}, log-odds"] = _share_right(new, np.where(selected, weight, 0.0))
    return by_rule


def _share_right(
    right: Bool[np.ndarray, "item judge"], weight: Float[np.ndarray, " judge"]
) -> float:
    margin = (2.0 * right - 1) @ weight
    return float(((margin > 0) + 0.5 * (margin == 0)).mean())


@experiment(
    PAPER,
    "h6",
    "H.6: narrow-band ablation",
    "weighting beats pruning most where judges are similar, and little where they differ",
    twins=True,
)
def main(run: Run) -> Output:
    """Return accuracies by spread, and the lead of weighting over the best pruning rule."""
    records: list[dict[str, Any]] = []
    leads: dict[tuple[int, float, str], dict[float, Evidence]] = {}
    for judges, mean in run.few(list(PANELS)):
        for spread in SPREADS:
            rng = np.random.default_rng(run.seed)
            times = min(REPLICATES, run.splits)
            replicates = [replicate(judges, mean, spread, rng) for _ in range(times)]
            values = {name: np.array([d[name] for d in replicates]) for name in replicates[0]}
            task = f"{judges} judges around {mean:g}"
            for name, value in values.items():
                records.append(_row(task, spread, name, "accuracy", normal_interval(value)))
            for rule in ("majority", "log-odds"):
                best = max((values[f"{k}, {rule}"] for k in SHARES), key=np.mean)
                lead = evidence_of_units(values["log-odds"] - best, seed=run.seed)
                leads.setdefault((judges, mean, rule), {})[spread] = lead
                name = f"log-odds minus best pruning, {rule}"
                row = _row(task, spread, name, "accuracy difference", lead.interval())
                if rule == "majority":
                    row["claim"] = Cell(CLAIM, lead)
                records.append(row)
    table = rows(PAPER, "h6", graded(records))
    notes = ["In this table n is the standard deviation of the judges' accuracies."]
    for (judges, mean, rule), by_spread in leads.items():
        means_text = ", ".join(
            f"{100 * by_spread[s].estimate:+.2f} at {s:g}"
            for s in (SPREADS[0], SPREADS[2], SPREADS[-1])
        )
        notes.append(
            f"{judges} judges around {mean:g}: lead over the best pruning with {rule} in points of "
            f"accuracy, by spread: {means_text}."
        )
    figure = curves(
        table[table["metric"] == "accuracy"],
        "n",
        panel="task",
        metric="accuracy",
        xlabel="standard deviation of the judges' accuracies",
        ylabel="accuracy",
        title="Weighting and pruning on simulated panels (bands: 1.96 SE)",
    )
    return Output(table, {"curves": figure}, notes)


def _row(task: str, spread: float, method: str, metric: str, interval: Interval) -> dict[str, Any]:
    return {
        "dataset": "synthetic",
        "task": task,
        "n": spread,
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
    }
