"""The error of the votes that one has: of a named panel, of all judges, of one judge, of stacking."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.aggregators import Stacking
from judgebayes.majority import (
    Decision,
    ErrorCurve,
    SplitCurve,
    Splits,
    losses,
    mean_loss,
    splits_of,
)
from judgebayes.measures.decide import zero_one_loss
from judgebayes.progress import Progress
from judgebayes.votes import Votes
from judgebayes.workflow.comparing import compare

__all__ = ["PANEL_COLUMNS", "compared_panels"]

PANEL_COLUMNS = ("panel", "error", "low", "high")
LEAST_LABELS = 20
"""The least number of labels to compare stacking, which is fitted on four fifths of them."""
SPLITS = 20


def compared_panels(
    votes: Votes,
    splits: Splits,
    names: list[str],
    chosen: list[int],
    *,
    decision: Decision,
    breaker: Int[np.ndarray, " item"] | None,
    by_class: bool,
    noise: float,
    these: bool,
    groups: Int[np.ndarray, " item"] | None,
    effect: float,
    level: float,
    seed: int,
    progress: Progress | None,
) -> pd.DataFrame:
    """Return a row per panel: the error of all its votes on each item, and its interval.

    The best single judge of an item is chosen by the labels of the other items, and stacking is fitted
    on four fifths of the labels and evaluated on the rest, so that no row is evaluated on the labels
    that it was chosen on.

    Parameters
    ----------
    votes
        The votes of all judges.
    splits
        How all these votes split.
    names
        The names of the judges.
    chosen
        The positions of the judges of the named panel.
    decision, breaker
        How votes become a decision, as in `decision_probs`.
    by_class, noise, these, groups, effect, level, seed
        As in `SplitCurve` and `FittedSplitCurve.curve`; `these` for the target "these", and
        `effect` the design effect of the groups.
    progress
        Called with the progress of stacking.
    """
    rows, weight = [], np.full(len(splits.labels), 1 / effect)
    named = splits_of(votes, splits.labels, splits.label_classes, np.array(chosen))
    for name, panel in (
        (", ".join(names[j] for j in chosen), named),
        (f"all {len(names)} judges", splits),
    ):
        of_all = (
            SplitCurve(by_class=by_class, noise=noise)
            .fit(panel, weight=weight)
            .curve(
                panel,
                None,
                target="these" if these else "more",
                measure="wrong",
                decision=decision,
                breaker=breaker,
                groups=groups,
                design_effect=effect,
                level=level,
                seed=seed,
            )
        )
        rows.append((name, *(float(x[0]) for x in (of_all.error, of_all.low, of_all.high))))
    labelled = np.flatnonzero(splits.labels >= 0)
    population = len(splits.labels) / effect if these else None
    wrong, best = best_single(votes, splits)
    single = mean_loss((1,), wrong[None], weight=weight, level=level, population=population)
    rows.append((f"best single judge ({names[best]})", *_first(single)))
    if len(labelled) >= LEAST_LABELS and len(np.unique(splits.labels[labelled])) > 1:
        result = compare(
            {"stacking": Stacking(symmetric=not by_class)},
            votes,
            splits.labels,
            groups,
            np.asarray(zero_one_loss(votes.n_classes)),
            splits=SPLITS,
            seed=seed,
            unseen=1 - len(labelled) / len(splits.labels) if these else 1.0,
            progress=progress,
        )
        right = result.right("stacking", level=level)
        rows.append(
            (
                f"stacking, fitted on {result.held_in} labels",
                1 - right.mean,
                1 - right.high,
                1 - right.low,
            )
        )
    return pd.DataFrame(rows, columns=list(PANEL_COLUMNS))


def _first(curve: ErrorCurve) -> tuple[float, float, float]:
    return float(curve.error[0]), float(curve.low[0]), float(curve.high[0])


def best_single(votes: Votes, splits: Splits) -> tuple[Float[np.ndarray, " item"], int]:
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
