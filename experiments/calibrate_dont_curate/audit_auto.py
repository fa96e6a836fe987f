"""Audit: what `judgebayes calibrate --method auto` loses to the best single method.

Claim: (none of the paper) on panels as users have them, the method that `auto` takes is close to the
best of all methods that it compares, in its probabilities and in its decisions.
Command: judgebayes reproduce calibrate-dont-curate/audit-auto --data DIR
Runtime: about 11 minutes; 20 splits of 16 panels, with 20, 50 and 200 labels.
Expected: the mean difference in NLL is at most 0.01, and no interval over all cells at once lies above
0.02. Labels of other subsets cost most; there no method is best everywhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.one_split import Evaluation, measure
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_methods
from judgebayes.experiments.calibrate_dont_curate.audit_pool import masked
from judgebayes.experiments.calibrate_dont_curate.audit_raters import left_out, rater_panels
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import panels
from judgebayes.experiments.calibrate_dont_curate.rows import interval_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR, MTBENCH_PEOPLE, RB2, WMT23
from judgebayes.experiments.panels import REWARDBENCH, Panel
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import absolute_loss, zero_one_loss
from judgebayes.measures.significance import Interval, two_way_interval
from judgebayes.votes import Classes, Votes
from judgebayes.workflow.comparing import Compared, better_rule
from judgebayes.workflow.methods import FEW_LABELS, Choice, compared_methods, fit_on_of, suited

LABELS = (20, 50, 200)
COUNT = 20
DIVISIONS = 10
"""Divisions of a split's labels by which a method is chosen; the command line makes 100."""
FITTED = 0.8
MOST_ITEMS, EVALUATED = 900, 400
"""The largest number of items of a panel, drawn at random, and of held-out items of a split."""
KEPT = {LLMBAR: (0.2, 0.07), REWARDBENCH: (0.1, 0.03)}
"""The shares of votes that are kept, beside all."""
COPIED = 0.93
"""How often a copy votes as its original."""
AUTO = "auto"


class Cell(NamedTuple):
    """A panel with its labels."""

    dataset: str
    kind: str
    votes: Votes
    labels: Int[np.ndarray, " item"]
    classes: Classes
    subset: Int[np.ndarray, " item"] | None = None
    """If given, labels come from other subsets than held-out items."""


class Taken(NamedTuple):
    """What `auto` does on a split: the method of its probabilities and that of its decisions."""

    method: str
    decider: str


@experiment(
    PAPER,
    "audit-auto",
    "Audit: the choice of a method beside the best one",
    "auto is close to the best single method on panels of every kind",
    needs=(REWARDBENCH, RB2, LLMBAR, WMT23, MTBENCH_PEOPLE),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the NLL and the loss of every method and of auto, and what auto loses to the best."""
    compared: list[tuple[Cell, int, dict[str, Evaluation], list[Taken]]] = []
    for make in run.few(list(cells(run)), 1):
        cell = make()
        sizes = [n for n in LABELS if n <= most_labels(run, cell)]
        if run.smoke:
            sizes = [n for n in sizes if n >= FEW_LABELS][:1]
        for size in sizes:
            run.say(f"{cell.dataset}, {cell.kind}: {size} labels")
            compared.append((cell, size, *_replayed(run, cell, size)))
    level = 1 - 0.05 / len(compared)
    table = rows(PAPER, "audit-auto", [row for each in compared for row in _rows(*each, level)])
    return Output(table, notes=_notes(table))


def cells(run: Run) -> Iterator[Callable[[], Cell]]:
    """Yield functions that return the panels: missing votes, few judges, copies, people, subsets."""
    every = panels(run)
    for panel in [one for one in every if one.dataset != "twin"] or every:
        some = _some_items(panel, run.seed)
        yield partial(_cell, some, "all votes")
        for share in KEPT.get(panel.dataset, ()):
            yield partial(_cell, masked(some, share), f"{share:g} of the votes")
        if panel.dataset == RB2:
            yield partial(_cell, _three(some, run.seed), "three judges")
            yield partial(_cell, _turned(some), "a third below chance")
            yield partial(_cell, _copied(some, run.seed), "every judge copied")
        if panel.dataset in (RB2, LLMBAR, REWARDBENCH):
            yield partial(_cell, some, "labels of other subsets", subsets=True)
    if run.has(WMT23) and run.has(MTBENCH_PEOPLE) and not run.smoke:
        for name, votes in rater_panels(run).items():
            yield partial(_of_people, name, votes, run.seed)


def _cell(panel: Panel, kind: str, *, subsets: bool = False) -> Cell:
    classes = Classes(("B", "A"), pairwise=True)
    return Cell(
        panel.dataset, kind, panel.votes, panel.labels, classes, panel.subset if subsets else None
    )


def _some_items(panel: Panel, seed: int) -> Panel:
    order = np.random.default_rng(seed).permutation(len(panel.labels))
    return panel.among(np.sort(order[:MOST_ITEMS]), panel.variant)


def _three(panel: Panel, seed: int) -> Panel:
    chosen = np.random.default_rng(seed).choice(len(panel.judges), 3, replace=False)
    return panel.of(sorted(int(j) for j in chosen), "three judges")


def _turned(panel: Panel) -> Panel:
    """Return the panel with the votes of every third judge turned round."""
    index = np.array(panel.votes.index)
    index[:, ::3] = np.where(index[:, ::3] >= 0, 1 - index[:, ::3], -1)
    return replace(panel, votes=replace(panel.votes, index=jnp.asarray(index)))


def _copied(panel: Panel, seed: int) -> Panel:
    """Return the panel with a copy of every judge, which mostly votes as its original."""
    index = np.asarray(panel.votes.index)
    same = np.random.default_rng(seed).random(index.shape) < COPIED
    copies = np.where(same | (index < 0), index, 1 - index).astype(index.dtype)
    both = jnp.asarray(np.concatenate([index, copies], axis=1))
    names = (*panel.judges, *(f"{name}, copy" for name in panel.judges))
    return replace(panel, votes=replace(panel.votes, index=both), judges=names)


def _of_people(name: str, read: Callable[[], pd.DataFrame], seed: int) -> Cell:
    votes, labels = left_out(read())
    some = np.sort(np.random.default_rng(seed).permutation(len(labels))[:MOST_ITEMS])
    classes = Classes((-1, 0, 1), pairwise=True)
    return Cell(name, "people, three classes", votes.take(some), labels[some], classes)


def most_labels(run: Run, cell: Cell) -> int:
    """Return the number of labels that every split has."""
    return int((_halves(run, cell).calibration >= 0).sum(1).min())


def _halves(run: Run, cell: Cell) -> Splits:
    count = 2 if run.smoke else COUNT
    return random_splits(
        len(cell.labels), splits=count, calibration=0.5, groups=cell.subset, seed=run.seed
    )


def outer_splits(run: Run, cell: Cell, size: int) -> Splits:
    """Return splits into so many labelled items and held-out ones."""
    whole = _halves(run, cell)
    least = int((whole.evaluation >= 0).sum(1).min())
    rng = np.random.default_rng(run.seed)
    held_out = np.stack([rng.permutation(row[row >= 0])[:least] for row in whole.evaluation])
    return Splits(whole.with_calibration(size).calibration, held_out[:, :EVALUATED])


def divisions(outer: Splits, count: int, seed: int) -> Splits:
    """Return random divisions of the labelled items of each split, as splits of their own."""
    rng = np.random.default_rng(seed)
    width = outer.calibration.shape[1]
    fitted = round(FITTED * width)
    rows = np.stack([rng.permutation(row) for row in outer.calibration for _ in range(count)])
    return Splits(rows[:, :fitted], rows[:, fitted:])


@in_float64
def _replayed(run: Run, cell: Cell, size: int) -> tuple[dict[str, Evaluation], list[Taken]]:
    """Return each method's answers on held-out items, and what `auto` takes on each split."""
    methods = methods_of(cell)
    outer = outer_splits(run, cell, size)
    answers = _evaluated(methods, cell, outer)
    default = next(iter(methods))
    if size < FEW_LABELS:
        return answers, [Taken(default, default)] * len(outer)
    count = 2 if run.smoke else DIVISIONS
    inner = divisions(outer, count, run.seed)
    own = _evaluated(methods, cell, inner)
    return answers, [
        taken(cell, own, inner, slice(s * count, (s + 1) * count), list(methods))
        for s in range(len(outer))
    ]


def methods_of(cell: Cell) -> dict[str, Method]:
    """Return the methods and rules that `judgebayes calibrate` compares, its default first."""
    choices = [Choice(name) for name in suited(cell.votes)]
    return compared_methods(choices, cell.classes, cell.votes)


def loss_of(cell: Cell) -> Float[np.ndarray, "action class"]:
    """Return the loss of decisions: of a wrong class, or the distance of ordered ones."""
    n = cell.votes.n_classes
    return zero_one_loss(n) if n == 2 else absolute_loss(n)


def _evaluated(methods: dict[str, Method], cell: Cell, splits: Splits) -> dict[str, Evaluation]:
    return evaluate_methods(
        methods, cell.votes, cell.labels, splits, fit_on=fit_on_of(methods), loss=loss_of(cell)
    )


def taken(
    cell: Cell, own: dict[str, Evaluation], inner: Splits, some: slice, names: list[str]
) -> Taken:
    """Return what `judgebayes calibrate` takes, by its own rules, on some divisions of the labels."""
    parts = Splits(inner.calibration[some], inner.evaluation[some])
    evaluations = {
        name: jax.tree.map(lambda a: np.asarray(a)[some], each) for name, each in own.items()
    }
    means = {
        name: {"nll": float(measure(each, ("nll",))["nll"].mean())}
        for name, each in evaluations.items()
    }
    compared = Compared(parts, means, evaluations, len(cell.labels), None)
    offered = [Choice(name).name for name in suited(cell.votes)]
    method = compared.best(offered, names[0])
    rule = better_rule(compared.leads(method, loss_of(cell)))
    return Taken(method, rule or method)


def _rows(
    cell: Cell, size: int, answers: dict[str, Evaluation], choices: list[Taken], level: float
) -> list[dict[str, Any]]:
    """Return the result rows of one cell."""
    loss, items = loss_of(cell), np.asarray(next(iter(answers.values())).items)
    count = len(choices)

    def mean(values: Float[np.ndarray, "split item"], own: float = 0.95) -> Interval:
        return two_way_interval(values, items, len(cell.labels), fitted=size, level=own)

    def row(method: str, metric: str, interval: Interval) -> dict[str, Any]:
        judges = f"{cell.votes.n_judges} judges"
        return interval_row(
            cell.dataset, method, metric, interval, count, task=cell.kind, judge=judges, n=size
        )

    records = []
    for metric, values in (
        ("nll", {name: each.nll() for name, each in answers.items()}),
        ("loss", {name: each.losses(loss) for name, each in answers.items()}),
    ):
        finite = {name: v for name, v in values.items() if not np.isinf(v).any()}
        best = min(finite, key=lambda name: float(np.nanmean(finite[name])))
        which = [t.method if metric == "nll" else t.decider for t in choices]
        values[AUTO] = np.stack([values[name][s] for s, name in enumerate(which)])
        shown = {name: values[name] for name in (*finite, AUTO)}
        records += [row(name, metric, mean(each)) for name, each in shown.items()]
        excess = mean(values[AUTO] - values[best], level)
        records.append(row(f"auto minus {best}", f"{metric} difference", excess))
        for name in dict.fromkeys(which):
            share = Interval(which.count(name) / count, np.nan, np.nan)
            records.append(row(name, f"share taken, {metric}", share))
    return records


def _notes(table: pd.DataFrame) -> list[str]:
    notes = []
    for metric, bar in (("nll", 0.02), ("loss", 0.02)):
        excess = table[table["metric"] == f"{metric} difference"]
        worst = excess.sort_values("value", ascending=False).head(5)
        listed = "; ".join(
            f"{r.dataset}, {r.task}, {r.n} labels: {r.value:+.3f} [{r.low:+.3f}, {r.high:+.3f}] "
            f"({r.method})"
            for r in worst.itertuples()
        )
        notes += [
            f"{metric}: auto minus the best single method is {excess['value'].mean():+.4f} on average "
            f"over {len(excess)} cells; {int((excess['low'] > bar).sum())} intervals over all cells at "
            f"once lie above {bar:g}.",
            f"{metric}: the five largest: {listed}.",
        ]
    return [
        *notes,
        "The best method is chosen on the same numbers, which favours it. Rules that are certain have "
        "no finite NLL and are left out there.",
        f"Panels have at most {MOST_ITEMS} items, drawn at random. Below {FEW_LABELS} labels auto "
        f"takes its default. Above, it chooses by {DIVISIONS} divisions of the split's labels; the "
        "command line makes 100.",
    ]
