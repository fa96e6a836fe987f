"""P1 Figs 12 to 15: confusion matrices and predicted label distributions.

Claim: the method's predicted distribution follows the labels' on tasks with many and with few ties;
self-consistency predicts too few ties on the former and too many on the latter: the method's distance
from the labels' distribution is smaller, margin 0.05; on the twins of WMT ZH-EN the printed tie share of
the method (33 %) is predicted, margin 0.16, the printed change from self-consistency's 49 %.
Command: judgebayes reproduce distribution-calibrated/figs12to15 --data DIR
Runtime: about 30 seconds.
Expected: on Factuality SC decides far fewer ties than there are labels, and Davidson decides more than
SC; WMT votes are from twins, and their grades are over all twins of the cell.
"""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from judgebayes.experiments.claims import Evidence, claim_range, evidence, evidence_of
from judgebayes.experiments.core import FITTED, Output, Run, expected, experiment, rows
from judgebayes.experiments.data import Cell, rb2
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    answers,
    comparison,
    graded,
    seed_of,
)
from judgebayes.experiments.distribution_calibrated.predicting import (
    predicted,
    rule_of,
    twin_answers,
    twin_weights,
)
from judgebayes.experiments.distribution_calibrated.twins import (
    RULES_PATH,
    TWIN_VOTES,
    tie_shares,
    twin_cells,
)
from judgebayes.experiments.plots import bars, confusion_matrices, curves
from judgebayes.sentence import percent

SPLITS = 20
CLASSES = ("B", "tie", "A")
METHODS = ("davidson", "sc", "margin-threshold")
TWIN_JUDGE = "gemini-2.5-flash"
LARGEST_MISFIT = 0.01
"""A tie rule can have a share of ties if its best twin misses SC's MAE and accuracy by no more."""


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
    comparisons: list[Comparison] = []
    if run.has("rb2_k8_scores"):
        cells += [
            (rb2(run, judge, "Factuality"), 8) for judge in run.few(["gpt-5.4", "gpt-5.4-nano"])
        ]
    for task in ("RB2-Factuality", "WMT ZH-EN"):
        heaviest = int(twin_weights(run, task, TWIN_JUDGE).argmax())
        cells.append((twin_cells(run, task, TWIN_JUDGE)[heaviest], 12))
    records: list[dict[str, Any]] = []
    matrices: dict[str, dict[str, np.ndarray]] = {}
    share_bars: dict[str, dict[str, list[float]]] = {}
    printed = expected(PAPER, "figs12to15").set_index(["task", "method"])["value"]
    for cell, n in cells:
        twin = cell.dataset == "twin"
        by_method = {
            m: answers(run, cell, n, rule_of(cell) if twin and m == "sc" else m, count=SPLITS)
            for m in METHODS
        }
        true = np.bincount(cell.labels, minlength=3) / len(cell.labels)
        name = f"{cell.task}, {'twin of ' if twin else ''}{cell.judge}"
        share_bars[name] = {"labels": list(true)}
        matrices[name] = {}
        for method, answer_set in by_method.items():
            counts = _confusions(answer_set)
            matrices[name][method] = counts.mean(0)
            shares = counts.sum(1) / counts.sum((1, 2))[:, None]
            share_bars[name][method] = list(shares.mean(0))
            records += [
                {
                    **_where(cell, n, method),
                    "metric": f"share decided {label}",
                    "value": float(shares[:, place].mean()),
                    "splits": len(shares),
                    "paper_value": printed.get((cell.task, method)) if place == 1 else None,
                }
                for place, label in enumerate(CLASSES)
            ]
        if twin:
            records += _twin_claims(run, cell, n, printed.get((cell.task, "davidson")))
        else:
            closer = _closer(by_method["davidson"], by_method["sc"])
            metric = "distance from the labels' distribution"
            made = comparison(cell, n, "sc minus davidson", metric, closer, SPLITS)
            comparisons.append(made)
    records += graded(comparisons, MARGIN["label distribution"])
    rule_records, rule_figure, rule_notes = _tie_rules()
    records += rule_records
    table = rows(PAPER, "figs12to15", records)
    figures: dict[str, Figure] = {
        f"confusion-{place + 1}": confusion_matrices(
            own, CLASSES, title=f"{name}: mean over {SPLITS} splits"
        )
        for place, (name, own) in enumerate(matrices.items())
    }
    figures["labels"] = bars(share_bars, CLASSES, ylabel="share", title="Labels and decisions")
    figures["tie-rules"] = rule_figure
    return Output(
        table,
        figures,
        [
            "Distance: half the sum of absolute differences between decided and true label shares.",
            "Twins are weighted by their fit; pictures and shares by class are of the heaviest one.",
            *rule_notes,
        ],
    )


def _where(cell: Cell, n: int, method: str) -> dict[str, Any]:
    return {
        "dataset": cell.dataset,
        "task": cell.task,
        "judge": cell.judge,
        "n": n,
        "method": method,
    }


def _twin_claims(run: Run, cell: Cell, n: int, printed: float | None) -> list[dict[str, Any]]:
    """Return the claims on a cell's twins, over the range of what all of them predict."""
    by_method = {
        method: twin_answers(run, cell.task, cell.judge, n, method, count=SPLITS)
        for method in ("davidson", "sc")
    }
    closer = [_closer(*both) for both in zip(*by_method.values(), strict=True)]
    weights = twin_weights(run, cell.task, cell.judge)
    middle, low, high = predicted(closer, weights)
    records = [
        {
            **_where(cell, n, "sc minus davidson, all twins"),
            "metric": "distance from the labels' distribution",
            "value": middle,
            "splits": SPLITS,
            "claim": claim_range(
                low, high, kind="paper", source="twin", margin=MARGIN["label distribution"]
            ),
        }
    ]
    ties = [_tie_share(each) for each in by_method["sc"]]
    middle, low, high = predicted(ties, weights, new_votes=True)
    records.append(
        {
            **_where(cell, n, "sc, all twins"),
            "metric": "share decided tie",
            "value": middle,
            "low": low,
            "high": high,
            "splits": SPLITS,
            "paper_value": tie_shares()[cell.task, cell.judge],
            "claim": FITTED,
        }
    )
    if printed is not None:
        ties = [_tie_share(each) for each in by_method["davidson"]]
        middle, low, high = predicted(ties, weights, new_votes=True)
        records.append(
            {
                **_where(cell, n, "davidson, all twins"),
                "metric": "share decided tie",
                "value": middle,
                "splits": SPLITS,
                "paper_value": printed,
                "claim": claim_range(
                    low,
                    high,
                    kind="paper",
                    source="twin",
                    margin=MARGIN["tie decisions"],
                    value=printed,
                ),
            }
        )
    return records


def _tie_rules() -> tuple[list[dict[str, Any]], Figure, list[str]]:
    """Return which shares of tie decisions each tie rule can have, given SC's MAE and accuracy.

    A row's low and high are the ends of the possible shares (empty if there are none), its value is
    the rule's misfit to MAE and accuracy at the printed share.
    """
    profile = pd.read_csv(RULES_PATH)
    records, notes = [], []
    for (task, judge), share in tie_shares().items():
        own = profile[(profile["task"] == task) & (profile["judge"] == judge)]
        ranges = []
        for tie, part in own.groupby("tie", sort=False):
            possible = part.loc[part["misfit"] <= LARGEST_MISFIT, "share"]
            known = part.dropna(subset="misfit")
            at = float(np.interp(share, known["share"], known["misfit"]))
            low, high = (possible.min(), possible.max()) if len(possible) else (np.nan, np.nan)
            ranges.append(
                f"`{tie}` {percent(low)} to {percent(high)}" if len(possible) else f"`{tie}` none"
            )
            where = {"dataset": "twin", "task": task, "judge": judge, "n": TWIN_VOTES}
            records.append(
                {
                    **where,
                    "method": f"sc, ties {tie}",
                    "metric": "misfit at the printed share of ties",
                    "value": at,
                    "paper_value": share,
                }
            )
            for end, value in (("smallest", low), ("largest", high)):
                if np.isfinite(value):
                    records.append(
                        {
                            **where,
                            "method": f"sc, ties {tie}",
                            "metric": f"{end} possible share of ties",
                            "value": float(value),
                            "paper_value": share,
                        }
                    )
        notes.append(
            f"{task}: SC is printed to decide about {percent(share)} ties. With its printed MAE and "
            f"accuracy (within {LARGEST_MISFIT:g}) the rules for tied votes allow: {', '.join(ranges)}."
        )
    figure = curves(
        profile.rename(columns={"tie": "method", "misfit": "value"}).assign(
            metric="misfit", low=np.nan, high=np.nan
        ),
        "share",
        panel="task",
        metric="misfit",
        xlabel="share of items that SC decides as ties",
        ylabel="largest misfit",
        title="Misfit of the best twin to SC's MAE and accuracy, by rule for tied votes",
        columns=2,
    )
    for ax, share in zip(figure.axes, tie_shares().values(), strict=True):
        ax.axvline(share, color="black", linewidth=0.8, linestyle=":")
        ax.axhline(LARGEST_MISFIT, color="black", linewidth=0.8)
    return records, figure, notes


def _closer(method: Answers, other: Answers) -> Evidence:
    """Return evidence on how much further the other's decisions are from the labels' distribution.

    The distance is half the sum of absolute differences of shares, in each split.
    """
    cell = method.cell
    use = _on_items(method, np.ones_like(method.decisions))[:, 1]
    one = np.eye(3)[cell.labels].T
    labels = use[:, None] * one[None]
    excess = {
        "method": _on_items(method, method.decisions) - labels,
        "other": _on_items(other, other.decisions) - labels,
    }

    def further(of_splits: np.ndarray, of_items: np.ndarray) -> float:
        size = use @ of_items
        distance = {name: np.abs(shares @ of_items).sum(1) / 2 for name, shares in excess.items()}
        gain = (distance["other"] - distance["method"]) / size
        return float(of_splits @ gain / of_splits.sum())

    return evidence_of(further, len(use), cell.votes.n_items, cell.groups, seed=seed_of(cell))


def _tie_share(of: Answers) -> Evidence:
    ties = (of.decisions == 1).astype(float)
    values = np.where(of.items >= 0, ties, np.nan)
    cell = of.cell
    return evidence(values, of.items, cell.votes.n_items, cell.groups, seed=seed_of(cell))


def _on_items(
    of: Answers, decisions: Int[np.ndarray, "split item"]
) -> Float[np.ndarray, "split decision all_items"]:
    """Return for each split and decision which of all items got it."""
    got = np.zeros((len(of.items), 3, of.cell.votes.n_items))
    split, place = np.nonzero(of.items >= 0)
    got[split, decisions[split, place], of.items[split, place]] = 1.0
    return got


def _confusions(answer_set: Answers) -> Float[np.ndarray, "split label decision"]:
    labels = answer_set.cell.labels[np.maximum(answer_set.items, 0)]
    counts = np.zeros((len(answer_set.items), 3, 3))
    for split, (items, truth, decisions) in enumerate(
        zip(answer_set.items, labels, answer_set.decisions, strict=True)
    ):
        use = items >= 0
        np.add.at(counts[split], (truth[use], decisions[use]), 1)
    return counts
