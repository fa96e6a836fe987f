"""P1 Figs 12 to 15: confusion matrices and predicted label distributions.

Claim: the method's predicted distribution follows the labels' on tasks with many and with few ties;
self-consistency predicts too few ties on the former and too many on the latter.
Command: judgebayes reproduce distribution-calibrated/figs12to15 --data DIR
Runtime: about 30 seconds.
Expected: on RewardBench 2 Factuality SC decides far fewer ties than there are labels, and Davidson
more; WMT votes are from twins.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.experiments.core import Output, Run, expected, experiment, grade, rows
from judgebayes.experiments.data import Cell, rb2
from judgebayes.experiments.distribution_calibrated.common import PAPER, Answers, answers
from judgebayes.experiments.distribution_calibrated.twins import twin_cells
from judgebayes.measures.significance import normal_interval
from judgebayes.plots import bars, confusion_matrices

SPLITS = 20
CLASSES = ("B", "tie", "A")
TWIN = "plausible softmax, ties middle"
METHODS = ("davidson", "sc", "margin-threshold")


@experiment(
    PAPER,
    "figs12to15",
    "Figs 12-15: confusion matrices and predicted labels",
    "the method's predicted label distribution follows the true one, self-consistency's does not",
    needs=("rb2_k8_scores",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return by task and method the predicted shares and their distance from the labels' shares."""
    cells: list[tuple[Cell, int]] = []
    if run.has("rb2_k8_scores"):
        cells += [
            (rb2(run, judge, "Factuality"), 8) for judge in run.few(["gpt-5.4", "gpt-5.4-nano"])
        ]
    for task in ("RB2-Factuality", "WMT ZH-EN"):
        likely = {c.variant: c for c in twin_cells(run, task, "gemini-2.5-flash")}
        cells.append((likely.get(TWIN, next(iter(likely.values()))), 12))
    records: list[dict[str, Any]] = []
    matrices: dict[str, dict[str, np.ndarray]] = {}
    share_bars: dict[str, dict[str, list[float]]] = {}
    printed = expected(PAPER, "figs12to15").set_index(["task", "method"])["value"]
    for cell, n in cells:
        by_method = {m: answers(run, cell, n, m, count=SPLITS) for m in METHODS}
        true = np.bincount(cell.labels, minlength=3) / len(cell.labels)
        name = f"{cell.task}, {'twin of ' if cell.dataset == 'twin' else ''}{cell.judge}"
        share_bars[name] = {"labels": list(true)}
        matrices[name] = {}
        distance = {}
        for method, answer_set in by_method.items():
            counts = _confusions(answer_set)
            matrices[name][method] = counts.mean(0)
            shares = counts.sum(1) / counts.sum((1, 2))[:, None]
            share_bars[name][method] = list(shares.mean(0))
            distance[method] = np.abs(shares - true).sum(1) / 2
            records += [
                {
                    **_where(cell, n, method),
                    "metric": f"share decided {label}",
                    "value": float(shares[:, place].mean()),
                    "splits": len(shares),
                    "paper_value": printed.get((cell.task, method)) if place == 1 else None,
                    "grade": "simulated" if cell.dataset == "twin" else "",
                }
                for place, label in enumerate(CLASSES)
            ]
        closer = normal_interval(distance["sc"] - distance["davidson"])
        records.append(
            {
                **_where(cell, n, "sc minus davidson"),
                "metric": "distance from the labels' distribution",
                "value": closer.mean,
                "low": closer.low,
                "high": closer.high,
                "splits": SPLITS,
                "grade": "simulated" if cell.dataset == "twin" else grade(closer),
            }
        )
    table = rows(PAPER, "figs12to15", records)
    figures = {
        f"confusion-{place + 1}": confusion_matrices(
            own, CLASSES, title=f"{name}: mean over {SPLITS} splits"
        )
        for place, (name, own) in enumerate(matrices.items())
    }
    figures["labels"] = bars(share_bars, CLASSES, ylabel="share", title="Labels and decisions")
    return Output(
        table,
        figures,
        ["Distance: half the sum of absolute differences between decided and true label shares."],
    )


def _where(cell: Cell, n: int, method: str) -> dict[str, Any]:
    return {
        "dataset": cell.dataset,
        "task": cell.task,
        "judge": cell.judge,
        "n": n,
        "method": method,
    }


def _confusions(answer_set: Answers) -> Float[np.ndarray, "split label decision"]:
    labels = answer_set.cell.labels[np.maximum(answer_set.items, 0)]
    counts = np.zeros((len(answer_set.items), 3, 3))
    for split, (items, truth, decisions) in enumerate(
        zip(answer_set.items, labels, answer_set.decisions, strict=True)
    ):
        use = items >= 0
        np.add.at(counts[split], (truth[use], decisions[use]), 1)
    return counts
