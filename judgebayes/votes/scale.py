"""The classes of the votes of a table, and each vote as a class index."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import MISSING, UNDECIDED
from judgebayes.votes.classes import Classes, canonical, given_classes, infer_classes, listing

SUSPICIOUS_VOTES = 20
"""A judge with this many votes, none of them the lowest of three classes, may be binary."""


def scale_of(
    column: pd.Series,
    classes: Sequence[object] | Classes | None,
    pairwise: bool | None,
    what: str,
    undecided: Sequence[object] = (),
) -> Classes:
    """Return the classes of a column of votes: the given ones, or those inferred from its values.

    `what` names the column in error messages; `undecided` are values of votes for no class.

    Raises
    ------
    JudgeBayesError
        If fewer than two different classes are given, or the classes cannot be inferred.
    """
    if isinstance(classes, Classes):
        return classes
    none = tuple(v for v in map(canonical, undecided) if v is not None)
    only = Classes((), pairwise=False, undecided=none)
    if classes is not None:
        scale = given_classes([v for v in classes if only.index(v) != UNDECIDED], pairwise)
    else:
        decided = [v for v in column.unique() if only.index(v) != UNDECIDED]
        scale = infer_classes(decided, what)
    symmetric = scale.pairwise if pairwise is None else pairwise
    return Classes(scale.values, symmetric, none)


def class_indices(column: pd.Series, classes: Classes, what: str) -> Int[np.ndarray, " row"]:
    """Return the class index of each value of a column, `MISSING` or `UNDECIDED`.

    Raises
    ------
    JudgeBayesError
        For a value that is not one of the classes.
    """
    code, values = pd.factorize(column, use_na_sentinel=True)
    indices = classes.indices(values)
    for position, index in enumerate(indices):
        if index is None:
            row = int(np.argmax(code == position))
            value = canonical(values[position])
            hint = (
                " The scale looks binary, but this value belongs to a ternary scale. If it is ternary, "
                "name the classes: classes=(-1, 0, 1), --classes=-1,0,1 at the command line."
                if classes.values == (0, 1) and value == -1
                else ""
            )
            if isinstance(value, str) and "," in value:
                hint = " Put a name that contains a comma in double quotes: --classes '\"a, b\",c'."
            raise JudgeBayesError(
                f"Row {column.index[row]} of {what} contains {value!r}, which is not one of the classes "
                f"{listing(classes.values)}.{hint}"
            )
    table = np.array([*(k for k in indices if k is not None), MISSING], dtype=np.int64)
    return table[code]


def refuse_mixed(
    index: Int[np.ndarray, " row"],
    judge_of: Int[np.ndarray, " row"],
    judges: pd.Index,
    scale: Classes,
) -> None:
    """Raise an error if an inferred scale is ternary but a judge with many votes gives only 0 and 1."""
    if scale.values != (-1, 0, 1) or len(judges) < 2:
        return
    for judge in range(len(judges)):
        cast = index[(judge_of == judge) & (index >= 0)]
        if len(cast) >= SUSPICIOUS_VOTES and set(cast.tolist()) == {1, 2}:
            raise JudgeBayesError(
                f"All {len(cast)} votes of judge {judges[judge]!r} are 0 or 1, but other judges also "
                "vote -1: binary and ternary votes may be mixed. If its votes are ternary, name the "
                "classes: classes=(-1, 0, 1), --classes=-1,0,1 at the command line."
            )
