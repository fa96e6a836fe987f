"""P1 Fig 3: calibrating on one task, deciding on another.

Claim: transfer within RewardBench 2 is mostly harmless, but Factuality is a worse source than the other
tasks; only this is graded, margin 0.01 MAE.
Command: judgebayes reproduce distribution-calibrated/fig3 --data DIR
Runtime: about 30 seconds with 100 splits.
Expected: many transfers gain; with two of three judges Precise IF is a worse source than Factuality.
All other tasks pooled are on average better than a task's own calibration set. So is the hierarchical
model, fitted without labels of the target task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from judgebayes import Davidson, HierarchicalDavidson
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.experiments.claims import Evidence, evidence, simultaneous
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    answer_splits,
    comparison,
    graded,
    interval_columns,
    seed_of,
)
from judgebayes.experiments.plots import heat_map
from judgebayes.inference.fit import Method
from judgebayes.measures.significance import Interval

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
    comparisons: list[Comparison] = []
    figures = {}
    tasks = rb2_tasks(run)
    for judge in rb2_judges(run)[:JUDGES]:
        run.say(f"{judge}: every source and target")
        cell = rb2(run, judge, None)
        by_source = {task: _from_task(run, cell, task) for task in tasks}
        sources = [*tasks, "the others, pooled", "the others, hierarchical"]
        changes = transfer_changes(cell, by_source, _from_others(run, cell, tasks))
        reach = dict(zip(changes, simultaneous(list(changes.values())), strict=True))
        change = np.full((len(sources), len(tasks)), np.nan)
        marked = np.zeros(change.shape, bool)
        for i, source in enumerate(sources):
            for j, target in enumerate(tasks):
                of = changes.get((source, target))
                interval = Interval(0.0, 0.0, 0.0) if of is None else of.interval()
                change[i, j] = interval.mean
                if of is not None:
                    marked[i, j] = abs(of.estimate) > reach[source, target] * of.error
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
            comparisons.append(_factuality(cell, by_source))
        figures[judge] = heat_map(
            change,
            sources,
            tasks,
            xlabel="decided on",
            ylabel=f"calibrated on ({CALIBRATION} items a task)",
            title=f"{judge}: MAE minus that of the target's own calibration set\n"
            "(*: the interval that holds for the whole map excludes 0)",
            colour_label="change in MAE",
            marked=marked,
        )
    table = rows(PAPER, "fig3", records + graded(comparisons, MARGIN["mae"]))
    return Output(table, figures, _notes(table))


def _factuality(cell: Cell, by_source: dict[str, Answers]) -> Comparison:
    """Return the claim that Factuality is a worse source than the others, for items of other tasks."""
    own = by_source["Factuality"]
    task = np.asarray(cell.votes.task)[np.maximum(own.items, 0)]
    order = {name: k for k, name in enumerate(_names(cell))}
    target_of = {source: (own.items >= 0) & (task == order[source]) for source in by_source}
    others = [source for source in by_source if source != "Factuality"]
    total = np.zeros(own.items.shape)
    for source in others:
        total += np.where(target_of[source], 0.0, by_source[source].errors)
    from_others = total / (len(others) - 1)  # every item has a source less: its own task
    worse = np.where(target_of["Factuality"], np.nan, own.errors - from_others)
    of = evidence(worse, own.items, cell.votes.n_items, cell.groups, seed=seed_of(cell))
    method = "Factuality minus other sources"
    made = comparison(cell, VOTES, method, "mae difference", of, len(own.items))
    return replace(made, record={**made.record, "task": "Factuality -> the others"})


def _notes(table: pd.DataFrame) -> list[str]:
    parts = table["task"].str.split(" -> ", expand=True)
    away = table[(parts[0] != parts[1]) & (table["method"] == "davidson")]
    worse = table[table["metric"] == "mae difference"]
    by_source = away.groupby(parts[0])["value"].mean().sort_values()
    pooled = table[table["method"] == "pooled"]["value"]
    hierarchical = table[table["method"] == "hierarchical"]["value"]
    return [
        f"Of {len(away)} transfers, {int((away['value'] <= 0).sum())} are no worse than the "
        f"target's own {CALIBRATION} labels and {int((away['value'] > 0.02).sum())} lose more than "
        f"0.02. Mean change by source: "
        + ", ".join(f"{name} {value:+.3f}" for name, value in by_source.items())
        + ". Factuality is a significantly worse source than the others with "
        f"{int((worse['low'] > 0).sum())} of {len(worse)} judges. The intervals of single transfers are "
        "over items and splits, each alone; the map marks those that hold for all of it at once.",
        f"Calibrating on the four other tasks together changes the target's MAE by "
        f"{pooled.mean():+.3f} on average (worst {pooled.max():+.3f}); the hierarchical model, with "
        f"no label of the target, by {hierarchical.mean():+.3f} (worst {hierarchical.max():+.3f}).",
        "A task's own calibration set of 50 is itself noisy: an apparent gain of transfer is mostly "
        "the gain of more labels. See audit-hierarchical.",
    ]


def transfer_changes(
    cell: Cell,
    by_source: Mapping[str, Answers],
    from_others: Mapping[tuple[str, str], Answers],
) -> dict[tuple[str, str], Evidence]:
    """Return evidence on the change in MAE from each source to each target, on the same splits.

    The change is against the target's own calibration set. Items (those that share a question together)
    and splits are resampled, jointly for all cells of the map.
    """
    order = {name: k for k, name in enumerate(_names(cell))}
    task = np.asarray(cell.votes.task)
    pairs = {(s, t): of for s, of in by_source.items() for t in by_source if t != s}
    changes = {}
    for (source, target), answer_set in {**pairs, **from_others}.items():
        own = by_source[target]
        here = (own.items >= 0) & (task[np.maximum(own.items, 0)] == order[target])
        worse = np.where(here, answer_set.errors - own.errors, np.nan)
        seed = seed_of(cell)
        changes[source, target] = evidence(
            worse, own.items, cell.votes.n_items, cell.groups, seed=seed
        )
    return changes


def _from_others(run: Run, cell: Cell, tasks: Sequence[str]) -> dict[tuple[str, str], Answers]:
    """Return the answers on each target of models fitted to the calibration items of all others."""
    task = np.asarray(cell.votes.task)
    order = {name: k for k, name in enumerate(_names(cell))}
    ways: dict[str, Method] = {"pooled": Davidson(), "hierarchical": HierarchicalDavidson()}
    return {
        (f"the others, {name}", target): _decide(
            run, cell, method, np.isin(task, [order[t] for t in tasks if t != target])
        )
        for target in tasks
        for name, method in ways.items()
    }


def _names(cell: Cell) -> list[str]:
    """Return the names of the tasks in the order of their indices."""
    first = np.unique(np.asarray(cell.votes.task), return_index=True)[1]
    return [cell.item_names[i].split("#")[0] for i in first]


def _from_task(run: Run, cell: Cell, source: str) -> Answers:
    """Return Davidson's answers on all tasks, fitted to the calibration items of one."""
    return _decide(run, cell, Davidson(), np.asarray(cell.votes.task) == _names(cell).index(source))


def _decide(run: Run, cell: Cell, method: Method, used: Bool[np.ndarray, " item"]) -> Answers:
    """Return the answers of a method fitted to the calibration items of some tasks only."""
    parts = random_splits(
        cell.votes.n_items,
        splits=run.splits,
        calibration=CALIBRATION,
        strata=np.asarray(cell.votes.task),
        seed=run.seed,
    )
    keep = (parts.calibration >= 0) & used[np.maximum(parts.calibration, 0)]
    calibration_items = parts.calibration[keep].reshape(len(parts), -1)
    return answer_splits(run, cell, VOTES, method, Splits(calibration_items, parts.evaluation))
