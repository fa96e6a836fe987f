"""Intervals of claims, by which every experiment is graded: one by one, and a table at once.

The true advantage is 0. Splits share their items, and items their groups; a table's cells share items.
A table's trial is the intersection of its intervals, which contains 0 if all of them do: one minus its
coverage is the family-wise error.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from judgebayes.experiments.claims import Evidence, claims, evidence, evidence_of_units
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials

WORLDS = {
    "60 items, 20 splits": (60, 1, 20),
    "200 items, 20 splits": (200, 1, 20),
    "30 groups of 4 items, 20 splits": (30, 4, 20),
    "15 groups of 8 items, 20 splits": (15, 8, 20),
    "60 items, 100 splits": (60, 1, 100),
}
"""Groups, items of each, and splits."""
TABLES = {
    "8 cells that share 60 items": (8, 60, 1.0),
    "25 cells that share 200 items": (25, 200, 1.0),
    "25 independent cells of 200 items": (25, 200, 0.0),
    "12 cells that share items, of 200 or 12 items": (12, 200, 1.0),
}
"""Cells, items, and the standard deviation of what an item adds to all cells."""
FEW = 12
RESAMPLES = 500


def graded(setting: Setting) -> Iterator[Trials]:
    """Yield trials of a claim's interval alone, and of all intervals of a table."""
    for place, (name, (groups, size, splits)) in enumerate(WORLDS.items()):
        rng = setting.rng(9, place)
        ends: list[tuple[Ends, float]] = []
        for replay in range(setting.replays):
            values, items, of_group = simulated(rng, groups, size, splits)
            of = evidence(values, items, groups * size, of_group, resamples=RESAMPLES, seed=replay)
            ends.append(([of.interval(level)[1:] for level in LEVELS], 0.0))
        yield trials("a claim", f"simulated: {name}", ends)
    for place, (name, (cells, n_items, shared)) in enumerate(TABLES.items()):
        rng = setting.rng(10, place)
        ends = []
        for replay in range(setting.replays):
            values = rng.normal(size=(n_items, cells)) + shared * rng.normal(size=(n_items, 1))
            few = 2 if "12 items" in name else 0
            table = [
                evidence_of_units(
                    column[:FEW] if cell < few else column, resamples=RESAMPLES, seed=replay
                )
                for cell, column in enumerate(values.T)
            ]
            ends.append((_intersection(table), 0.0))
        yield trials("all claims of a table", f"simulated: {name}", ends)


def simulated(
    rng: np.random.Generator, groups: int, size: int, splits: int, effect: float = 0.0
) -> tuple[
    Float[np.ndarray, "split held_out"], Int[np.ndarray, "split held_out"], Int[np.ndarray, " item"]
]:
    """Return outcomes on random halves of the items, which items these are, and each item's group.

    An outcome is the effect plus normal noise of the group (0.6), the item (0.8), the split's fit (0.3)
    and the outcome itself (0.2).
    """
    n_items = groups * size
    of_group = np.arange(n_items) // size
    of_item = rng.normal(size=groups)[of_group] * 0.6 + rng.normal(size=n_items) * 0.8 + effect
    items = np.stack([rng.permutation(n_items)[: n_items // 2] for _ in range(splits)])
    noise = rng.normal(size=(splits, 1)) * 0.3 + rng.normal(size=items.shape) * 0.2
    return of_item[items] + noise, items, of_group


def _intersection(table: list[Evidence]) -> Ends:
    """Return the intersection of a table's intervals at every level; low is above high if empty."""
    ends = []
    for level in LEVELS:
        of_cells = claims(table, kind="paper", source="other", margin=1.0, level=level)
        ends.append(
            (
                max(each.interval.low for each in of_cells),
                min(each.interval.high for each in of_cells),
            )
        )
    return ends
