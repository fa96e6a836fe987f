"""A number of a page, computed from the CSV files of a run.

A query is `RESULT: STATISTIC COLUMN; CONDITION; ...`, for example

    betaconform/table1: mean value; metric=error margin; method=em

The statistic is `only` (of exactly one row), `mean`, `median`, `min`, `max`, `sum`, `count` (of rows,
without a column) or `distinct` (how many different values). A condition compares a column: `method=em`,
`n!=3`, `low>0`, `high<=0.1`, or `metric~sc minus`, which asks whether the text is contained. Two queries
may be joined by ` minus ` or ` over `.
"""

import operator
import re
from collections.abc import Callable

import pandas as pd

from judgebayes.errors import JudgeBayesError

SIGN = re.compile(r"\s*(!=|<=|>=|=|<|>|~)\s*")
NUMERIC = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


def evaluate(query: str, read: Callable[[str], pd.DataFrame]) -> float:
    """Compute a query; `read` returns the rows of a result such as "betaconform/table1", as text.

    Raises
    ------
    JudgeBayesError
        If no row meets the conditions of a statistic, or not exactly one under `only`.
    """
    for joint, apply in ((" minus ", operator.sub), (" over ", operator.truediv)):
        first, _, second = query.rpartition(joint)
        if ": " in second and first:
            return float(apply(evaluate(first, read), evaluate(second, read)))
    result, _, rest = query.partition(": ")
    statistic, *conditions = rest.split("; ")
    name, _, column = statistic.partition(" ")
    rows = read(result)
    for condition in conditions:
        rows = rows[_met(rows, condition)]
    if name == "count":
        return float(len(rows))
    if name == "distinct":
        return float(rows[column].nunique())
    if rows.empty or (name == "only" and len(rows) > 1):
        raise JudgeBayesError(f"{query!r}: {len(rows)} rows meet the conditions.")
    return float(pd.to_numeric(rows[column]).agg("mean" if name == "only" else name))


def _met(rows: pd.DataFrame, condition: str) -> pd.Series:
    column, sign, value = SIGN.split(condition, maxsplit=1)
    if sign == "~":
        return rows[column].str.contains(value, regex=False)
    if sign in ("=", "!="):
        return (rows[column] == value) == (sign == "=")
    return NUMERIC[sign](pd.to_numeric(rows[column]), float(value))
