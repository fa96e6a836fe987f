"""The error of the votes that one has: of a named panel, of all judges, of one judge, of stacking."""

from dataclasses import replace

import numpy as np
import pandas as pd

from judgebayes.aggregators import Stacking
from judgebayes.arrays import ItemFloats
from judgebayes.majority import SplitCurve, Splits, losses, mean_loss, splits_of
from judgebayes.measures.decide import zero_one_loss
from judgebayes.progress import Progress
from judgebayes.votes import Votes
from judgebayes.workflow.comparing import compare
from judgebayes.workflow.data import Study
from judgebayes.workflow.ensemble_estimates import Estimates, first_of

LEAST_LABELS = 20
"""The least number of labels to compare stacking, which is fitted on four fifths of them."""
SPLITS = 20


def compared_panels(estimates: Estimates, data: Study, progress: Progress | None) -> pd.DataFrame:
    """Return a row per panel: the error of all its votes on each item, and its interval.

    If judges are named, their panel is compared with all judges, the best single one and stacking. The
    best single judge of an item is chosen by the labels of the other items, and stacking is fitted on
    four fifths of the labels and evaluated on the rest, so that no row is evaluated on the labels that
    it was chosen on.

    Parameters
    ----------
    estimates
        The panel.
    data
        The votes of all judges.
    progress
        Called with the progress of stacking.
    """
    chosen, head = estimates.panel.chosen, ["panel", "error", "low", "high"]
    if chosen is None:
        return pd.DataFrame([("all votes of each item", *estimates.all_votes())], columns=head)
    panel, level, these = estimates.panel, estimates.request.level, estimates.these
    votes, label_classes = data.votes, panel.splits.label_classes
    names = [str(name) for name in data.coding.judges]
    splits = Splits(np.asarray(votes.pooled_counts()), data.labels, label_classes)
    rows, weight = [], estimates.weight
    named = splits_of(votes, splits.labels, label_classes, np.array(chosen))
    for name, votes_of in (
        (", ".join(names[j] for j in chosen), named),
        (f"all {len(names)} judges", splits),
    ):
        curve = SplitCurve(by_class=panel.by_class, noise=data.label_noise)
        own = curve.fit(votes_of, weight=weight), votes_of
        rows.append((name, *first_of(estimates.curve(None, "wrong", of=own))))
    labelled = np.flatnonzero(splits.labels >= 0)
    population = len(splits.labels) / estimates.effect if these else None
    wrong, best = best_single(votes, splits)
    single = mean_loss((1,), wrong[None], weight=weight, level=level, population=population)
    rows.append((f"best single judge ({names[best]})", *first_of(single)))
    if len(labelled) >= LEAST_LABELS and len(np.unique(splits.labels[labelled])) > 1:
        result = compare(
            {"stacking": Stacking(symmetric=not panel.by_class)},
            votes,
            splits.labels,
            estimates.groups,
            np.asarray(zero_one_loss(votes.n_classes)),
            splits=SPLITS,
            seed=estimates.request.seed,
            unseen=1 - len(labelled) / len(splits.labels) if these else 1.0,
            progress=progress,
        )
        right = replace(result, level=level).right("stacking")
        name = f"stacking, fitted on {result.held_in} labels"
        rows.append((name, 1 - right.mean, 1 - right.high, 1 - right.low))
    return pd.DataFrame(rows, columns=head)


def best_single(votes: Votes, splits: Splits) -> tuple[ItemFloats, int]:
    """Return the error on each item of the judge that is best on the other items, and the best judge.

    NaN where the item has no label, or no vote of that judge.
    """
    errors = np.full((votes.n_judges, len(splits.labels)), np.nan)
    for judge in range(votes.n_judges):
        own = splits_of(votes, splits.labels, splits.label_classes, np.array([judge]))
        for size in np.unique(own.total[own.labelled]):
            items = np.flatnonzero(own.labelled & (own.total == size))
            table = losses(own.take(items), int(size), "wrong")
            errors[judge, items] = table[np.arange(len(items)), own.positions()[items]]
    known = np.isfinite(errors)
    total, count = np.nan_to_num(errors).sum(1, keepdims=True), known.sum(1, keepdims=True)
    # One item is added at an error of one half: a judge with two right votes is not the best of all.
    others = (total - np.nan_to_num(errors) + 0.5) / (count - known + 1)
    choice = others.argmin(0)
    item = np.arange(errors.shape[1])
    return errors[choice, item], int(((total + 0.5) / (count + 1))[:, 0].argmin())
