"""Audit: stacking at every label budget against all others, and what `auto` takes.

Claim: with 50 labels or more no other method is better than stacking, and the method that
cross-validation on the labels takes (`judgebayes calibrate --method auto`) is never clearly worse
than the best.
Command: judgebayes reproduce calibrate-dont-curate/audit-stacking --data DIR
Runtime: about 25 minutes.
Expected: to be measured.
"""

from typing import Any

import numpy as np

from judgebayes.aggregate import Aggregator, DawidSkene, OneCoin, Stacking
from judgebayes.calibrate import Beta, Calibrated, Identity
from judgebayes.curate import top_k
from judgebayes.decide import zero_one_loss
from judgebayes.evaluate import FitOn, evaluate_splits, measure
from judgebayes.experiments.calibrate_dont_curate.common import (
    PAPER,
    Answers,
    Parts,
    advantage,
    answers_of,
    by_subset,
    claim_row,
    halves,
    log_scales,
    panels,
    split_batches,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.plots import curves
from judgebayes.significance import Interval
from judgebayes.splits import Splits

BUDGETS = (10, 25, 50, 100, 200, 500)
SUBSET_BUDGETS = (50, 100, 200)
FOLDS = 5
COUNT = 40
"""Splits: cross-validation fits every method five times more on each."""
STACKING = "stacking"


def arms(panel: Panel, *, smoke: bool) -> dict[str, tuple[Aggregator, FitOn]]:
    """Return the methods as `judgebayes calibrate` builds them for pairs, by name.

    Dawid-Skene learns from votes without labels too, so it sees all of them.
    """

    def mapped(method: Aggregator) -> Aggregator:
        return Calibrated(method, Beta(symmetric=True), cross_fit=FOLDS)

    found: dict[str, tuple[Aggregator, FitOn]] = {
        STACKING: (Stacking(), "calibration"),
        "one-coin + beta": (mapped(OneCoin()), "calibration"),
        "dawid-skene + beta": (mapped(DawidSkene()), "all"),
    }
    for k in (3,) if smoke else (3, 5, 10):
        found[f"top-{k} + beta"] = (mapped(top_k(OneCoin(), k)), "calibration")
    return found


def folds(parts: Parts, groups: np.ndarray | None, seed: int) -> Splits:
    """Return five folds of each split's labelled items, as splits of their own.

    With `groups` these are held out whole; labels that all come from one are divided at random.
    """
    rng = np.random.default_rng(seed)
    fitted, held = np.full((2, len(parts.splits), FOLDS, parts.splits.calibration.shape[1]), -1)
    for s, row in enumerate(parts.splits.calibration):
        own = row[row >= 0]
        kind = np.arange(len(own))
        if groups is not None and len(np.unique(groups[own])) > 1:
            kind = np.unique(groups[own], return_inverse=True)[1]
        fold = (rng.permutation(kind.max() + 1) % FOLDS)[kind]
        for f in range(FOLDS):
            for place, which in ((fitted, fold != f), (held, fold == f)):
                place[s, f, : which.sum()] = own[which]
    widest = int((held >= 0).sum(2).max())
    return Splits(fitted.reshape(-1, fitted.shape[-1]), held[..., :widest].reshape(-1, widest))


def held_out(panel: Panel, method: Aggregator, fit_on: FitOn, inner: Splits) -> np.ndarray:
    """Return each split's cross-validated NLL of a method, over the folds of its labels."""
    found = []
    for some in split_batches(panel, inner, fit_on):
        answered = evaluate_splits(
            method, panel.votes, panel.labels, some, fit_on=fit_on, loss=zero_one_loss(2)
        )
        found.append(measure(answered, ("nll",))["nll"])
    nll = np.where((inner.evaluation >= 0).any(1), np.concatenate(found), np.nan)
    return np.nanmean(nll.reshape(-1, FOLDS), axis=1)


def chosen(found: dict[str, Answers], judged: dict[str, np.ndarray]) -> tuple[Answers, np.ndarray]:
    """Return the answers of the method that each split's own labels prefer, and its place."""
    best = np.argmin(np.stack(list(judged.values())), axis=0)
    answered = np.stack([one.log_probs for one in found.values()])
    first = next(iter(found.values()))
    taken = answered[best, np.arange(len(best))]
    return Answers(first.panel, taken, first.items), best


@experiment(
    PAPER,
    "audit-stacking",
    "Audit: the best method at every label budget",
    "from 50 labels up no method is better than stacking, and auto finds what is best",
    twins=True,
)
def main(run: Run) -> Output:
    """Return every method's NLL by budget, stacking's lead over the best other, and auto's."""
    records: list[dict[str, Any]] = []
    for panel in panels(run):
        half = halves(run, panel).splits.calibration.shape[1]
        sizes = [b for b in run.few(list(BUDGETS), 2) if b < half]
        for size in [*sizes, *([] if run.smoke else [half])]:
            run.say(f"{panel.name}: {size} labels")
            parts = halves(run, panel, labels=size, count=COUNT)
            records += compared(run, panel, parts, size, None)
        for size in run.few(list(SUBSET_BUDGETS)):
            run.say(f"{panel.name}: {size} labels of other subsets")
            whole = by_subset(run, panel, labels=size)
            splits = Splits(whole.splits.calibration[:COUNT], whole.splits.evaluation[:COUNT])
            records += compared(run, panel, Parts(whole.name, splits), size, panel.subset)
    table = rows(PAPER, "audit-stacking", records)
    shown = table[(table["metric"] == "nll") & ~table["method"].str.contains("subsets")]
    figure = curves(
        shown.assign(panel=shown["dataset"]),
        "n",
        panel="panel",
        metric="nll",
        xlabel="labels",
        ylabel="NLL",
        title="NLL against label budget, positions known; auto takes the best of the others",
        columns=2,
    )
    log_scales(figure, (10, 25, 50, 100, 200, 500, 1500))
    notes = [
        "In this table n is the number of labels. Methods are those of the command line: a "
        f"symmetric beta map behind all but stacking, learnt by {FOLDS}-fold cross-fitting.",
        f"auto takes, split by split, the method of least NLL in {FOLDS} folds of the split's own "
        "labels. The command line compares on 100 random divisions, so this is its noisier relative.",
        "Leads are over the best *other* method at that budget, chosen by the same numbers: an "
        "advantage for the other. Intervals allow for other items and other labels.",
        "Other subsets: labels come from half of the subsets, evaluation items from the rest, folds "
        "keep subsets whole, and intervals are over subsets.",
    ]
    return Output(table, {"curves": figure}, notes)


def compared(
    run: Run, panel: Panel, parts: Parts, size: int, groups: np.ndarray | None
) -> list[dict[str, Any]]:
    """Return the rows of one budget."""
    inner = folds(parts, groups, run.seed)
    found: dict[str, Answers] = {}
    judged: dict[str, np.ndarray] = {}
    for name, (method, fit_on) in arms(panel, smoke=run.smoke).items():
        plain = {"none": Identity()}
        found[name] = answers_of(run, panel, method, plain, parts, fit_on=fit_on)["none"]
        judged[name] = held_out(panel, method, fit_on, inner)
    auto, taken = chosen(found, judged)
    suffix = "" if groups is None else ", other subsets"
    count = len(auto.items)
    records = [
        value_row(panel, f"{name}{suffix}", "nll", one.interval(), count, n=size)
        for name, one in {**found, "auto": auto}.items()
    ]
    for place, name in enumerate(found):
        share = Interval(float((taken == place).mean()), np.nan, np.nan)
        records.append(
            value_row(panel, f"{name}{suffix}", "share taken by auto", share, count, n=size)
        )
    ranked = sorted(found, key=lambda name: float(found[name].by_split("nll").mean()))
    other = next(name for name in ranked if name != STACKING)
    for mine, rival in ((STACKING, other), ("auto", ranked[0])):
        lead = advantage({**found, "auto": auto}[mine], found[rival], groups=groups)
        row = claim_row(
            panel, f"{rival} minus {mine}{suffix}", "nll difference", lead, count, n=size
        )
        records.append(row)
    return records
