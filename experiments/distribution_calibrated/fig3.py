"""P1 Fig 3: calibrating on one task, deciding on another.

Claim: transfer within RewardBench 2 is mostly harmless, Factuality transfers badly, and the label
distribution alone does not predict which.
Command: judgebayes reproduce distribution-calibrated/fig3 --data DIR
Runtime: about 30 seconds with 100 splits.
Expected: with one judge, most of 20 pairs lose less than 0.01 MAE and several gain; all tasks pooled
are better than a task's own 5 %. The hierarchical model, fitted without labels of the target task, is as
good as the target's own calibration set.
"""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.aggregators import Aggregator, Davidson, HierarchicalDavidson
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.experiments.core import Output, Run, experiment, grade, rows
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    PAPER,
    Answers,
    answer_splits,
    interval_columns,
)
from judgebayes.measures.significance import normal_interval
from judgebayes.plots import heat_map

VOTES = 8
CALIBRATION = 50
JUDGES = 3


@experiment(
    PAPER,
    "fig3",
    "Fig 3: transfer between tasks",
    "parameters transfer between the RewardBench 2 tasks, except from Factuality",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return the change in MAE for each source and target, and for the hierarchical model."""
    records: list[dict[str, Any]] = []
    figures = {}
    tasks = rb2_tasks(run)
    for judge in rb2_judges(run)[:JUDGES]:
        run.say(f"{judge}: every source and target")
        cell = rb2(run, judge, None)
        errors = transfer_errors(run, cell, tasks)
        own = np.stack([errors[task, task] for task in tasks])
        change = np.full((len(tasks) + 2, len(tasks)), np.nan)
        sources = [*tasks, "the others, pooled", "the others, hierarchical"]
        for i, source in enumerate(sources):
            for j, target in enumerate(tasks):
                difference = errors[source, target] - own[j]
                interval = normal_interval(difference)
                change[i, j] = interval.mean
                records.append(
                    {
                        "dataset": cell.dataset,
                        "task": f"{source} -> {target}",
                        "judge": judge,
                        "n": VOTES,
                        "method": "davidson" if source in tasks else source.split(", ")[1],
                        "metric": "mae change",
                        **interval_columns(interval),
                        "splits": run.splits,
                    }
                )
        if len(tasks) > 2:
            records.append(_factuality(run, cell, judge, tasks, errors))
        figures[judge] = heat_map(
            change,
            sources,
            tasks,
            xlabel="decided on",
            ylabel=f"calibrated on ({CALIBRATION} items a task)",
            title=f"{judge}: MAE minus that of the target's own calibration set",
            colour_label="change in MAE",
        )
    table = rows(PAPER, "fig3", records)
    return Output(table, figures, _notes(table))


def _factuality(
    run: Run,
    cell: Cell,
    judge: str,
    tasks: list[str],
    errors: dict[tuple[str, str], Float[np.ndarray, " split"]],
) -> dict[str, Any]:
    """Return the graded row of the claim that Factuality is a worse source than the others."""
    targets = [t for t in tasks if t != "Factuality"]
    from_it = np.mean([errors["Factuality", t] for t in targets], axis=0)
    from_others = np.mean([errors[s, t] for t in targets for s in targets if s != t], axis=0)
    worse = normal_interval(from_it - from_others)
    return {
        "dataset": cell.dataset,
        "task": "Factuality -> the others",
        "judge": judge,
        "n": VOTES,
        "method": "Factuality minus other sources",
        "metric": "mae difference",
        **interval_columns(worse),
        "splits": run.splits,
        "grade": grade(worse),
    }


def _notes(table: pd.DataFrame) -> list[str]:
    parts = table["task"].str.split(" -> ", expand=True)
    away = table[(parts[0] != parts[1]) & (table["method"] == "davidson")]
    graded = table[table["metric"] == "mae difference"]
    by_source = away.groupby(parts[0])["value"].mean().sort_values()
    pooled = table[table["method"] == "pooled"]["value"]
    hierarchical = table[table["method"] == "hierarchical"]["value"]
    return [
        f"Of {len(away)} transfers, {int((away['value'] <= 0).sum())} are no worse than the "
        f"target's own {CALIBRATION} labels and {int((away['value'] > 0.02).sum())} lose more than "
        f"0.02. Mean change by source: "
        + ", ".join(f"{name} {value:+.3f}" for name, value in by_source.items())
        + ". Factuality is a significantly worse source than the others with "
        f"{int((graded['low'] > 0).sum())} of {len(graded)} judges.",
        f"Calibrating on the four other tasks together changes the target's MAE by "
        f"{pooled.mean():+.3f} on average (worst {pooled.max():+.3f}); the hierarchical model, with "
        f"no label of the target, by {hierarchical.mean():+.3f} (worst {hierarchical.max():+.3f}).",
        "A task's own calibration set of 50 is itself noisy: an apparent gain of transfer is mostly "
        "the gain of more labels. See audit-hierarchical.",
    ]


def transfer_errors(
    run: Run, cell: Cell, tasks: list[str]
) -> dict[tuple[str, str], Float[np.ndarray, " split"]]:
    """Return the MAE by split, for every source, on every target's evaluation items."""
    task = np.asarray(cell.votes.task)
    order = {name: k for k, name in enumerate(_names(cell))}
    parts = random_splits(
        cell.votes.n_items, splits=run.splits, calibration=CALIBRATION, strata=task, seed=run.seed
    )
    mae_by_source: dict[tuple[str, str], np.ndarray] = {}
    for source in tasks:
        answer_set = _decide(run, cell, Davidson(), parts, task == order[source])
        for target in tasks:
            mae_by_source[source, target] = _mae(answer_set, task == order[target])
    for target in tasks:
        others = np.isin(task, [order[t] for t in tasks if t != target])
        ways: dict[str, Aggregator] = {
            "pooled": Davidson(),
            "hierarchical": HierarchicalDavidson(),
        }
        for name, method in ways.items():
            answer_set = _decide(run, cell, method, parts, others)
            mae_by_source[f"the others, {name}", target] = _mae(answer_set, task == order[target])
    return mae_by_source


def _names(cell: Cell) -> list[str]:
    """Return the names of the tasks in the order of their indices."""
    first = np.unique(np.asarray(cell.votes.task), return_index=True)[1]
    return [cell.item_names[i].split("#")[0] for i in first]


def _decide(
    run: Run, cell: Cell, method: Aggregator, parts: Splits, used: Bool[np.ndarray, " item"]
) -> Answers:
    """Return the answers of a method fitted to the calibration items of some tasks only."""
    keep = (parts.calibration >= 0) & used[np.maximum(parts.calibration, 0)]
    calibration_items = parts.calibration[keep].reshape(len(parts), -1)
    return answer_splits(run, cell, VOTES, method, Splits(calibration_items, parts.evaluation))


def _mae(answer_set: Answers, target: Bool[np.ndarray, " item"]) -> Float[np.ndarray, " split"]:
    here = (answer_set.items >= 0) & target[np.maximum(answer_set.items, 0)]
    return np.nanmean(np.where(here, answer_set.errors, np.nan), axis=1)
