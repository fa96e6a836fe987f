"""P1 Table 10: votes in one presentation order against as many votes balanced over both orders.

Claim: balancing 6 + 6 votes over the orders has a lower MAE than 12 votes in either order; margin 0.005.
A proxy here: LLMBar's six votes are six prompts of one LLM, MT-Bench's labels the other judges'
consensus.
Command: judgebayes reproduce distribution-calibrated/table10 --data DIR
Runtime: about 20 seconds.
Expected: on LLMBar, where judges are strongly biased, balancing wins clearly in hardly any comparison
and loses clearly in none; on MT-Bench it does neither. The intervals are too wide for the margin.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd

from judgebayes import Davidson
from judgebayes.evaluate.splits import random_splits
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR, MTBENCH, Cell, llmbar_prompts, mtbench_orders
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    advantage,
    answer_splits,
    cell_rows,
    comparison,
    graded,
)
from judgebayes.experiments.plots import intervals
from judgebayes.votes import Votes

ORDERS = {"first-order": (1.0, 0.0), "second-order": (0.0, 1.0), "balanced": (0.5, 0.5)}


@experiment(
    PAPER,
    "table10",
    "Table 10: balancing the presentation order",
    "votes balanced over both orders have a lower error than as many in one order",
    needs=("llmbar_evaluators", "mtbench_repetition_9judges"),
)
def main(run: Run) -> Output:
    """Return MAE by order, and a graded row for balanced against each single order."""
    records: list[dict[str, Any]] = []
    comparisons: list[Comparison] = []
    for cell, votes in _cells(run):
        run.say(f"{cell.dataset}, {cell.judge}")
        parts = random_splits(
            cell.votes.n_items, splits=run.splits, calibration=_labels(cell), seed=run.seed
        )
        by_order: dict[str, Answers] = {}
        for name, shares in ORDERS.items():
            chosen = replace(cell, votes=_choose(cell.votes, votes, shares), variant=name)
            answer_set = answer_splits(run, chosen, cell.votes.n_samples, Davidson(), parts)
            by_order[name] = answer_set
            records += cell_rows(chosen, votes, name, answer_set, metrics=("mae",))
        for name in ("first-order", "second-order"):
            lead = advantage(by_order["balanced"], by_order[name])
            method = f"{name} minus balanced"
            comparisons.append(
                comparison(cell, votes, method, "mae difference", lead, run.splits, "proxy")
            )
    table = rows(PAPER, "table10", records + graded(comparisons, MARGIN["orders"]))
    figure = intervals(
        table[table["metric"] == "mae"],
        label="judge",
        series="method",
        panel="dataset",
        xlabel="MAE (lower is better)",
        title="Davidson on votes of one order and of both",
    )
    return Output(table, {"orders": figure}, [_note(table)])


def _cells(run: Run) -> list[tuple[Cell, int]]:
    cells: list[tuple[Cell, int]] = []
    if run.has("llmbar_evaluators"):
        votes, coding, labels = llmbar_prompts(run)
        items = np.arange(votes.n_items)
        for place, judge in enumerate(run.few(list(coding.judges))):
            judge_votes = votes.of_judges([place])
            name = "LLMBar, six prompts as votes"
            cells.append((Cell(LLMBAR, name, judge, judge_votes, labels, items), 6))
    if run.has("mtbench_repetition_9judges"):
        votes, coding = mtbench_orders(run)
        questions = np.unique([item.split("|")[0] for item in coding.items], return_inverse=True)[1]
        counts = np.asarray(votes.counts())
        for place, judge in enumerate(run.few(list(coding.judges))):
            consensus = (counts.sum(1) - counts[:, place]).argmax(1)
            judge_votes = votes.of_judges([place])
            name = "MT-Bench, consensus of 8"
            cells.append((Cell(MTBENCH, name, judge, judge_votes, consensus, questions), 2))
    return cells


def _labels(cell: Cell) -> int:
    return 42 if cell.dataset.startswith("llmbar") else 32


def _choose(votes: Votes, n: int, shares: tuple[float, float]) -> Votes:
    """Return the votes with the first n * share of each order; the rest are missing."""
    assert votes.order is not None
    index, order = np.asarray(votes.index), np.asarray(votes.order)
    keep = np.zeros(index.shape, bool)
    for which, share in enumerate(shares):
        own = (order == which) & (index >= 0)
        keep |= own & (own.cumsum(-1) <= round(n * share))
    return replace(votes, index=jnp.asarray(np.where(keep, index, -1), jnp.int8))


def _note(table: pd.DataFrame) -> str:
    claims = table[table["metric"] == "mae difference"]
    parts = []
    for dataset, own in claims.groupby("dataset", sort=False):
        wins = int((own["low"].astype(float) > 0).sum())
        losses = int((own["high"].astype(float) < 0).sum())
        parts.append(
            f"{dataset}: balanced is significantly better in {wins} of {len(own)} comparisons, "
            f"worse in {losses}, {own['value'].astype(float).mean():+.3f} on average"
        )
    return "; ".join(parts) + ". LLMBar's votes are one LLM's under six different prompts."
