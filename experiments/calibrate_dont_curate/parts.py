"""Splits of the items: halves, subsets, fewer labels, and batches of splits."""

from typing import NamedTuple

import numpy as np

from judgebayes.evaluate.one_split import FitOn
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.experiments.core import Run
from judgebayes.experiments.panels import Panel

HALF = 0.5

LARGE, FEW_SPLITS = 200_000, 20
"""On a panel with more votes than `LARGE`, stacking is fitted to the first 20 splits only, since it
fits a weight per judge in every split."""

VOTES_AT_ONCE = 25_000_000
"""The largest number of votes in one batch of splits, which limits the memory."""


class Parts(NamedTuple):
    """Splits with a name, which is the key of cached answers."""

    name: str
    splits: Splits


def halves(
    run: Run,
    panel: Panel,
    *,
    labels: int | None = None,
    count: int | None = None,
    share: float = HALF,
) -> Parts:
    """Return random splits, half for calibration.

    With `labels`, calibration parts have only that many items, nested in larger budgets; with `count`,
    only that many splits are returned.
    """

    def make() -> Splits:
        return random_splits(len(panel.labels), splits=run.splits, calibration=share, seed=run.seed)

    splits = run.remember((panel.dataset, len(panel.labels), share, "splits"), make)
    name = f"{share:g}"
    if labels is not None and labels < splits.calibration.shape[1]:
        name = f"{name}, {labels} labels"
        splits = _fewer_labels(splits, labels, wide=votes_of_labels(panel) <= LARGE)
    if count is not None and count < len(splits):
        name, splits = f"{name}, {count} splits", some_splits(splits, np.arange(count))
    return Parts(name, splits)


def _fewer_labels(splits: Splits, labels: int, *, wide: bool) -> Splits:
    """Return the splits with fewer labels; `wide` keeps the shape, which avoids recompilation."""
    fewer = splits.with_calibration(labels)
    if not wide:
        return fewer
    extra = splits.calibration.shape[1] - labels
    filled = np.pad(fewer.calibration, ((0, 0), (0, extra)), constant_values=-1)
    return Splits(filled, fewer.evaluation)


def votes_of_labels(panel: Panel) -> int:
    """Return the number of votes of a panel, one per item and judge."""
    return len(panel.labels) * len(panel.judges)


def some_splits(splits: Splits, which: np.ndarray) -> Splits:
    """Return some of the splits, by index."""
    return Splits(splits.calibration[which], splits.evaluation[which])


def by_subset(run: Run, panel: Panel, *, labels: int | None = None) -> Parts:
    """Return splits by subset: calibration and evaluation items come from different subsets."""
    splits = random_splits(
        len(panel.labels),
        splits=run.splits,
        calibration=HALF,
        groups=panel.subset,
        seed=run.seed,
    )
    if labels is not None and labels < splits.calibration.shape[1]:
        splits = splits.with_calibration(labels)
    return Parts(f"by subset, {labels} labels", splits)


def split_batches(panel: Panel, splits: Splits, fit_on: FitOn) -> list[Splits]:
    """Yield the splits in batches, small enough for the votes that their fits use."""
    fitted_items = len(panel.labels) if fit_on == "all" else splits.calibration.shape[1]
    parts = min(len(splits), -(-len(splits) * fitted_items * len(panel.judges) // VOTES_AT_ONCE))
    return [some_splits(splits, some) for some in np.array_split(np.arange(len(splits)), parts)]
