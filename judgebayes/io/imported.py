"""What a reader found: votes, labels, and an account of every record."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import folded, meaning_none
from judgebayes.io.options import option
from judgebayes.sentence import sentence
from judgebayes.votes.classes import Usual, canonical, usual_classes
from judgebayes.votes.coding import partly_asked

__all__ = ["SCORES", "Imported", "Row", "emptied", "gather"]

FEW = 5
"""Judges that are named one by one where several lack votes."""
LONG = 60
"""A name of more characters is cut in sentences."""
WIDE = 2**63
"""From here on, whole numbers are no 64-bit integers."""
SCORES = 12
"""Votes of more different numbers than this are scores, not classes."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one record says: a vote, no vote and why, or a reason to leave the record out."""

    item: str
    judge: str
    vote: str | int | float | None = None
    missing: str = "no vote"
    """Why `vote` is None."""
    dropped: str | None = None
    """Why the record is no vote at all, not even a missing one."""
    sample: int | str | None = None
    order: Literal["AB", "BA"] | str | None = None
    score: float | None = None
    label: str | int | float | None = None


@dataclass(frozen=True)
class Imported:
    """Votes as a tidy table, the labels that the source has, and what became of every record.

    `read` records give as many rows of `votes` and entries of `dropped`; a row whose vote is None
    is a missing vote, and `missing` says why.
    """

    votes: pd.DataFrame
    """Columns item, judge, vote; then sample, order and score where the source has them."""
    labels: pd.DataFrame | None
    """Columns item, label; None where the source has no labels."""
    read: int
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    """Which level of the verdict parser read how many votes, where it was used."""
    votes_as: Literal["shown", "original"] | None = None
    """With an order: whether votes name what was shown, or were mapped back already."""
    classes: tuple[str, ...] | None = None
    """The classes from lowest to highest, where they cannot be inferred."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that every record is accounted for."""
        kept, left_out = len(self.votes), sum(self.dropped.values())
        assert self.read == kept + left_out, (self.read, kept, left_out)
        assert int(self.votes["vote"].isna().sum()) == sum(self.missing.values())

    def coverage(self) -> pd.Series:
        """Return the share of each judge's rows that hold a vote, the lowest first.

        An item on which a judge has no row was never put to it, and counts for nothing here.
        """
        share = self.votes["vote"].notna().groupby(self.votes["judge"], sort=False).mean()
        return share.sort_values(kind="stable").rename("coverage")

    def words(self) -> list[str]:
        """Return what was read, what is missing, what was left out and why, in sentences."""
        votes = self.votes
        cast = int(votes["vote"].notna().sum())
        lines = [
            f"Read {self.read} records: {cast} votes of {votes['judge'].nunique()} judge(s) on "
            f"{votes['item'].nunique()} items ({_counts(votes['vote'].value_counts())})."
        ]
        if self.missing:
            lines.append(f"Missing votes: {sum(self.missing.values())} ({_counts(self.missing)}).")
            low = self.coverage()
            low = low[low < 1]
            named = ", ".join(f"{judge} {share:.1%}" for judge, share in low.head(FEW).items())
            rest = f" and {len(low) - FEW} more judges" if len(low) > FEW else ""
            lines.append(f"Coverage: {named}{rest}.")
        lines += partly_asked(votes.groupby("judge")["item"].nunique(), votes["item"].nunique())
        usual = self.usual()
        if usual is not None:
            names = ", ".join(usual.classes.names)
            lines.append(
                f"{sum(usual.odd.values())} votes are none of {names}: {_counts(usual.odd)}. To read "
                f"them as missing votes, say {option('missing', usual.odd)}."
            )
        if self.levels:
            lines.append(f"Verdicts by level of the parser: {_counts(self.levels)}.")
        if self.dropped:
            lines.append(f"Left out: {sum(self.dropped.values())} ({_counts(self.dropped)}).")
        if self.labels is not None:
            shown = _counts(self.labels["label"].value_counts())
            lines.append(f"Labels of {len(self.labels)} items ({shown}).")
        return [sentence(line) for line in (*lines, *self.notes)]

    def usual(self) -> Usual | None:
        """Return the classes of most votes, and the votes that are none of them; None if all are."""
        if self.classes is not None:
            return None
        return usual_classes(Counter(map(canonical, self.votes["vote"].dropna())))


def emptied(rows: Iterable[Row], missing: str | None) -> list[Row]:
    """Return the rows without the votes and labels that mean none."""
    nothing = meaning_none(missing)
    if not nothing:
        return list(rows)
    found = []
    for row in rows:
        if row.vote is not None and folded(row.vote) in nothing:
            row = replace(row, vote=None, missing=f"vote {str(row.vote)!r}")
        if row.label is not None and folded(row.label) in nothing:
            row = replace(row, label=None)
        found.append(row)
    return found


def gather(
    rows: Iterable[Row],
    what: str,
    *,
    missing: str | None = None,
    votes_as: Literal["shown", "original"] | None = None,
    classes: tuple[str, ...] | None = None,
    levels: Counter[str] | None = None,
    notes: Sequence[str] = (),
) -> Imported:
    """Turn rows into tables, and account for all of them.

    A judge's repeated votes on an item (in one order) are numbered as samples. A judge without a
    single vote is left out, and said.

    Parameters
    ----------
    rows
        In the order of the source.
    what
        The source, for sentences.
    missing
        Values that mean no vote, separated by commas.
    votes_as, classes, levels, notes
        As in `Imported`.

    Raises
    ------
    JudgeBayesError
        If there is no vote at all, or an item has two labels.
    """
    rows = emptied(rows, missing)
    dropped = Counter(row.dropped for row in rows if row.dropped is not None)
    kept = [row for row in rows if row.dropped is None]
    voting = {row.judge for row in kept if row.vote is not None}
    silent = Counter(row.judge for row in kept if row.judge not in voting)
    if not voting:
        why = Counter(row.missing for row in kept)
        found = _counts(why + dropped) if rows else "no record"
        raise JudgeBayesError(f"There is no vote in {what}: {found}.")
    for judge, count in silent.items():
        dropped[f"{judge} has no vote at all"] += count
    kept = [row for row in kept if row.judge in voting]
    table, repeated = _table(kept)
    told = list(notes)
    if repeated:
        told.append(
            f"{repeated} votes repeat a judge's vote on an item: the column sample numbers them."
        )
    values = table["vote"].dropna().unique()
    if len(values) > SCORES and pd.api.types.is_numeric_dtype(table["vote"].dtype):
        told.append(
            f"The votes take {len(values)} different values: these are scores; make classes of them."
        )
    has_order = "order" in table.columns
    if has_order and table["order"].isna().any():
        told.append("Some votes have no presentation order: the column order is left out.")
        table, has_order = table.drop(columns="order"), False
    return Imported(
        table,
        _labels(kept, what),
        len(rows),
        Counter(row.missing for row in kept if row.vote is None),
        dropped,
        levels or Counter(),
        votes_as if has_order else None,
        classes,
        tuple(told),
    )


def _table(rows: list[Row]) -> tuple[pd.DataFrame, int]:
    """Return the rows as a table, and how many votes repeat an earlier one."""
    table = pd.DataFrame(
        {
            "item": [row.item for row in rows],
            "judge": [row.judge for row in rows],
            "vote": _column([row.vote for row in rows]),
        }
    )
    for name in ("sample", "order", "score"):
        values = [getattr(row, name) for row in rows]
        if any(value is not None for value in values):
            table[name] = _column(values)
    if "sample" in table.columns and table["sample"].isna().any():
        first = table.groupby(["item", "judge"], sort=False).cumcount() + 1
        given = [row.sample for row in rows]
        table["sample"] = _column(
            [f if g is None else g for g, f in zip(given, first, strict=True)]
        )
    keys = ["item", "judge", *(name for name in ("sample", "order") if name in table.columns)]
    repeated = table.groupby(keys, dropna=False, sort=False).cumcount()
    count = int((repeated > 0).sum())
    if count:
        keys = [key for key in keys if key != "sample"]
        table["sample"] = table.groupby(keys, dropna=False, sort=False).cumcount() + 1
    order = ["item", "judge", "vote", "sample", "order", "score"]
    return table[[name for name in order if name in table.columns]], count


def _column(values: list[Any]) -> pd.Series:
    """Return values as one column: numbers if all are, else text; None where there is none."""
    known = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in known):
        return pd.Series([None if v is None else _text(v) for v in values], dtype=object)
    if len(known) == len(values) and all(abs(value) < WIDE for value in known):
        return pd.Series(values)
    return pd.Series(values, dtype=float)


def _text(value: object) -> str:
    """Return a value as text, a whole number without its point."""
    return str(canonical(value)) if isinstance(value, int | float) else str(value)


def _labels(rows: list[Row], what: str) -> pd.DataFrame | None:
    known: dict[str, str | int | float] = {}
    for row in rows:
        if row.label is None:
            continue
        if known.setdefault(row.item, row.label) != row.label:
            raise JudgeBayesError(
                f"Item {row.item!r} of {what} has two labels, {known[row.item]!r} and {row.label!r}; "
                "an item has one label."
            )
    if not known:
        return None
    return pd.DataFrame({"item": list(known), "label": _column(list(known.values()))})


def _counts(counts: "Counter[str] | pd.Series") -> str:
    pairs = list(counts.most_common() if isinstance(counts, Counter) else counts.items())
    shown = ", ".join(f"{_short(name)} {count}" for name, count in pairs[:12])
    return shown + (f" and {len(pairs) - 12} more" if len(pairs) > 12 else "")


def _short(name: object) -> str:
    """Return a name for a sentence: whole numbers without their point, long texts cut."""
    text = " ".join(str(canonical(name)).split())
    return text if len(text) <= LONG else text[: LONG - 3] + "..."
