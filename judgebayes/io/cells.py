"""Cells of votes and labels: decimal commas, and words that mean no vote."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable

import pandas as pd

from judgebayes.io.options import split_names
from judgebayes.votes.classes import canonical, listing

__all__ = ["folded", "meaning_none", "with_points", "without"]

COMMA = re.compile(r"[+-]?\d*,\d+")
NUMBER = re.compile(r"[+-]?\d+(?:,\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


def with_points(table: pd.DataFrame, columns: Iterable[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with the decimal commas of some columns as points, and what to say of it.

    A column has decimal commas if all of its cells are whole numbers or such with a comma, at least
    one of them with a comma that does not part thousands.
    """
    turned: dict[str, str] = {}
    for name in columns:
        if pd.api.types.is_numeric_dtype(table[name].dtype):
            continue
        values = [v for v in table[name].unique() if isinstance(v, str)]
        written = [v for v in map(str.strip, values) if canonical(v) is not None]
        commas = [v for v in written if COMMA.fullmatch(v) and not THOUSANDS.fullmatch(v)]
        if commas and all(COMMA.fullmatch(v) or NUMBER.fullmatch(v) for v in written):
            plain = {value: value.replace(",", ".") for value in values}
            table = table.assign(**{name: table[name].astype(object).replace(plain)})
            turned[name] = commas[0]
    if not turned:
        return table, []
    first = next(iter(turned.values()))
    return table, [
        f"Column {listing(turned, 20)}: decimal commas, {first!r} is read as "
        f"{canonical(first.replace(',', '.'))}."
    ]


def folded(value: object) -> Hashable | None:
    """Return what a cell says, whatever its case."""
    plain = canonical(value)
    return plain.casefold() if isinstance(plain, str) else plain


def meaning_none(missing: str | None) -> frozenset[Hashable | None]:
    """Return the values that mean no vote, from an option: names separated by commas."""
    return frozenset(map(folded, split_names(missing))) if missing else frozenset()


def without(
    table: pd.DataFrame, columns: Iterable[str], missing: str | None
) -> tuple[pd.DataFrame, Counter[Hashable]]:
    """Return the table with the values that mean no vote emptied, and how many of each there were."""
    nothing = meaning_none(missing)
    counts: Counter[Hashable] = Counter()
    for name in columns if nothing else ():
        hit = {value for value in table[name].dropna().unique() if folded(value) in nothing}
        if hit:
            column = table[name].astype(object)
            counts.update(map(canonical, column[column.isin(hit)]))
            table = table.assign(**{name: column.mask(column.isin(hit), None)})
    return table, counts
