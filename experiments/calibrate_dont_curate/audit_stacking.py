"""Audit: stacking against the other methods at every label budget.

Claim: with 50 labels or more no other method is better than stacking. All are audits: stacking beats the
best other method at every budget (margin 0.01 nats), and also with labels of other subsets (margin 0.01
nats). What `auto` chooses is measured by `audit-auto`, and the pool by `audit-pool`.
Command: judgebayes reproduce calibrate-dont-curate/audit-stacking --data DIR
Runtime: about 10 minutes on a quiet core.
Expected: stacking is the best method at every budget, and the joint interval of its lead over the best
other method excludes zero in most cells; the others are on the reward models and RewardBench 2. With
labels of other subsets no interval of a lead excludes zero; on LLMBar stacking loses to the five
most accurate judges when no label is from Natural, but not when some are.
"""

from typing import Any

import numpy as np

from judgebayes import Beta, Calibrated, DawidSkene, Identity, OneCoin, Stacking
from judgebayes.evaluate.one_split import FitOn
from judgebayes.evaluate.splits import Splits
from judgebayes.experiments.calibrate_dont_curate.answers import Answers, advantage, answers_of
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import panels
from judgebayes.experiments.calibrate_dont_curate.parts import LARGE, Parts, by_subset, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.inference.fit import Method
from judgebayes.panel.judges import top_k

BUDGETS = (10, 25, 50, 100, 200)
SUBSET_BUDGETS = (50, 100)
FOLDS = 5
NO_FLOOR = 1e-300
NATURAL = "LLMBar/Natural"
COUNT, LARGE_COUNT = 40, 20
"""Numbers of splits; the second for panels of more than 200,000 votes, as folds add five fits each."""
STACKING = "stacking"
LEADS = Statement("stacking beats the best other method", "audit", MARGIN["nll"])
"""With labels of other subsets, where subsets are the units, the same claim is graded panel by panel:
LLMBar's few subsets would widen the intervals of all others."""


def arms(panel: Panel, *, smoke: bool) -> dict[str, tuple[Method, FitOn]]:
    """Return the methods as `judgebayes calibrate` builds them for pairs, by name.

    Dawid-Skene also learns from unlabelled votes, so it is fitted to all of them; on the reward models
    only to those of the labelled items, since it would otherwise take an hour.
    """

    def mapped(method: Method) -> Method:
        return Calibrated(method, Beta(symmetric=True, clip=NO_FLOOR), cross_fit=FOLDS)

    methods: dict[str, tuple[Method, FitOn]] = {
        STACKING: (Stacking(), "calibration"),
        "one-coin + beta": (mapped(OneCoin()), "calibration"),
    }
    if smoke:
        return methods
    sees: FitOn = "all" if count_of(panel) == COUNT else "calibration"
    methods["dawid-skene + beta"] = (mapped(DawidSkene()), sees)
    for k in (3, 5):
        methods[f"top-{k} + beta"] = (mapped(top_k(OneCoin(), k)), "calibration")
    return methods


def count_of(panel: Panel) -> int:
    """Return the number of splits for a panel."""
    return COUNT if len(panel.labels) * len(panel.judges) <= LARGE else LARGE_COUNT


def few_shapes(parts: Parts) -> Parts:
    """Return the splits with calibration parts of one width, which avoids recompilation."""
    calibration = parts.splits.calibration
    used = calibration[:, : max(int((calibration >= 0).sum(1).max()), 1)]
    extra = max(BUDGETS[-1] - used.shape[1], 0)
    wide = np.pad(used, ((0, 0), (0, extra)), constant_values=-1)
    return Parts(parts.name, Splits(wide, parts.splits.evaluation))


def by_nature(
    panel: Panel, parts: Parts, by_method: dict[str, Answers], size: int
) -> list[dict[str, Any]]:
    """Return methods' NLL on splits with and without labels from LLMBar's subset Natural.

    It is the only subset that is not adversarial.
    """
    natural = panel.subset[parts.splits.calibration] == panel.subsets.index(NATURAL)
    has_natural = (natural & (parts.splits.calibration >= 0)).any(1)
    records = []
    for title, which in (("with Natural", has_natural), ("without Natural", ~has_natural)):
        for name, one in by_method.items():
            if which.any():
                interval = bootstrap_interval(one.by_split("nll")[which])
                what = f"nll, labels {title}"
                records.append(value_row(panel, name, what, interval, int(which.sum()), n=size))
    return records


@experiment(
    PAPER,
    "audit-stacking",
    "Audit: the best method at every label budget",
    "with 50 labels or more no method is better than stacking",
    twins=True,
)
def main(run: Run) -> Output:
    """Return every method's NLL by budget, and stacking's lead over the best other."""
    records: list[dict[str, Any]] = []
    all_panels = panels(run)
    for panel in [one for one in all_panels if one.dataset != "twin"] or all_panels:
        half = halves(run, panel).splits.calibration.shape[1]
        sizes = [b for b in run.few(list(BUDGETS)) if b < half]
        for size in [*sizes, *([] if run.smoke else [half])]:
            run.say(f"{panel.name}: {size} labels")
            parts = halves(run, panel, labels=size, count=count_of(panel))
            records += compared(run, panel, few_shapes(parts), size, None)
        for size in () if run.smoke else SUBSET_BUDGETS:
            run.say(f"{panel.name}: {size} labels of other subsets")
            whole = by_subset(run, panel, labels=size)
            cal, ev = (part[: count_of(panel)] for part in vars(whole.splits).values())
            parts = few_shapes(Parts(whole.name, Splits(cal, ev)))
            records += compared(run, panel, parts, size, panel.subset)
    table = rows(PAPER, "audit-stacking", graded(records))
    notes = [
        "In this table n is the number of labels. Methods are those of the command line: all except "
        f"stacking have a symmetric beta map without a floor, learnt by {FOLDS}-fold "
        "cross-fitting.",
        "Leads are over the best *other* method at that budget. It is chosen on the same numbers, which "
        "favours the other method. Intervals account for sampling of items and of labels.",
        "Other subsets: labels come from half of the subsets and evaluation items from the rest; "
        "intervals are over subsets.",
    ]
    return Output(table, notes=notes)


def compared(
    run: Run, panel: Panel, parts: Parts, size: int, groups: np.ndarray | None
) -> list[dict[str, Any]]:
    """Return the result rows of one budget."""
    offered = arms(panel, smoke=run.smoke)
    plain = {"none": Identity()}
    by_method = {
        name: answers_of(run, panel, method, plain, parts, fit_on=fit_on)["none"]
        for name, (method, fit_on) in offered.items()
    }
    best = min(
        (name for name in by_method if name != STACKING),
        key=lambda name: float(by_method[name].by_split("nll").mean()),
    )
    suffix = "" if groups is None else ", other subsets"
    count = len(parts.splits)
    records = [
        value_row(panel, f"{name}{suffix}", "nll", one.interval(), count, n=size)
        for name, one in by_method.items()
    ]
    if groups is not None and NATURAL in panel.subsets:
        records += by_nature(
            panel, parts, {name: by_method[name] for name in (STACKING, best)}, size
        )
    lead = advantage(by_method[STACKING], by_method[best], groups=groups)
    claim = LEADS
    if groups is not None:
        claim = LEADS._replace(text=f"{LEADS.text}{suffix} of {panel.name}")
    title = f"best other minus stacking{suffix}"
    return [*records, claim_row(panel, title, "nll difference", lead, count, claim, n=size)]
