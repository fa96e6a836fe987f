"""Pairs of systems, and each system's mean win rate over its pairs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.systems import mean_win_rates
from judgebayes.io.columns import most_likely
from judgebayes.io.options import split_names
from judgebayes.workflow.data import Study, by_item

EVERY = "all items"
"""The name of the only generator where no column names generators."""


@dataclass(frozen=True)
class Matches:
    """The two systems that each item compares, in alphabetical order."""

    systems: list[str]
    pairs: list[tuple[int, int]]
    of_item: ItemInts
    flipped: ItemInts
    """1 where the file has the pair in the reverse order."""

    @property
    def names(self) -> list[str]:
        """Names of the pairs, `A over B`."""
        return [f"{self.systems[a]} over {self.systems[b]}" for a, b in self.pairs]


def read_matches(data: Study, named: str) -> Matches:
    """Return the pair of systems of every item, from two columns of the votes or the labels.

    Raises
    ------
    JudgeBayesError
        If the columns are not two or are missing, or an item compares no
        pair or several.
    """
    columns = split_names(named)
    if len(columns) != 2:
        raise JudgeBayesError(
            f"systems needs two columns, one for each of the compared systems; {named!r} has "
            f"{len(columns)}."
        )
    compared = by_item(
        data,
        columns,
        "compares more than one pair of systems, or one pair in both orders; an item must have one "
        "pair, in one order",
    )
    if compared.isna().to_numpy().any():
        missing = compared.index[compared.isna().any(axis=1)][0]
        raise JudgeBayesError(f"Item {missing!r} has no systems in these columns.")
    both = compared.to_numpy(str)
    if (both[:, 0] == both[:, 1]).any():
        same = compared.index[both[:, 0] == both[:, 1]][0]
        raise JudgeBayesError(f"Item {same!r} compares a system with itself.")
    ordered = np.sort(both, axis=1)
    systems = sorted(set(both.ravel()))
    place = {name: i for i, name in enumerate(systems)}
    code, keys = pd.factorize(pd.MultiIndex.from_arrays(ordered.T), sort=True)
    pairs = [(place[a], place[b]) for a, b in keys]
    return Matches(systems, pairs, code, (both[:, 0] != ordered[:, 0]).astype(int))


def system_table(
    matches: Matches, draws: Float[np.ndarray, "draw pair"], level: float
) -> pd.DataFrame:
    """Return a row per system, the best first: its mean win rate over its pairs, and P(best).

    It uses joint draws of the pairs' win rates: the uncertainty about the judges, which pairs share,
    widens the intervals and cancels in the order.
    """
    to_systems = mean_win_rates(matches.pairs, len(matches.systems))
    drawn = 0.5 + (draws - 0.5) @ to_systems.T
    middle = np.median(drawn, axis=0)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    order = np.argsort(-middle, kind="stable")
    best = (drawn == drawn.max(1, keepdims=True)).astype(float)
    best /= best.sum(1, keepdims=True)
    above = [float((drawn[:, a] > drawn[:, b]).mean()) for a, b in pairwise(order)]
    return pd.DataFrame(
        {
            "system": [matches.systems[i] for i in order],
            "mean win rate": middle[order],
            "low": low[order],
            "high": high[order],
            "P(better than next)": [*above, np.nan],
            "P(best)": best.mean(0)[order],
        }
    )


def generators_of(data: Study, named: str | None) -> tuple[list[str], ItemInts]:
    """Return the generators' names, and each item's generator.

    Parameters
    ----------
    data
        The votes; either of their tables may have the column.
    named
        The column of the generator, if the user named it.

    Raises
    ------
    JudgeBayesError
        If there is no such column, or an item has no generator or several.
    """
    column, used = named, (data.opened.judge, data.opened.columns["item"])
    for table, _ in data.opened.tables if named is None else ():
        free = [str(name) for name in table.columns if name not in used]
        column = column or most_likely(free, "generator")
    if column is None:
        return [EVERY], np.zeros(len(data.coding.items), int)
    if column in [item for table, item in data.opened.tables if column in table.columns]:
        raise JudgeBayesError(
            f"Column {column!r} is the item; a generator makes several items. Name another column "
            "with --set generator=COLUMN."
        )
    wrong = f"has more than one value of {column!r}; an item must have one generator"
    generator = by_item(data, [column], wrong)[column]
    if generator.isna().any():
        raise JudgeBayesError(
            f"Item {generator.index[generator.isna()][0]!r} has no value of {column!r}: every item "
            "needs a generator. If only the labels have this column, add it to the votes."
        )
    code, names = pd.factorize(generator.to_numpy())
    return [str(n) for n in names], code
