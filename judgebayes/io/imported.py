"""The result of a reader: votes, labels, and an account of every record."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import casefolded, missing_values
from judgebayes.io.options import option
from judgebayes.sentence import percent, sentences
from judgebayes.votes.classes import Usual, canonical, usual_classes
from judgebayes.votes.coding import partly_asked

__all__ = ["MAX_CLASSES", "Imported", "Row", "gather", "set_missing"]

MAX_NAMED_JUDGES = 5
"""At most this many judges that lack votes are named."""
MAX_NAME_LENGTH = 60
"""Longer names are cut in sentences."""
INT64_LIMIT = 2**63
"""Whole numbers from here on do not fit into 64 bits."""
MAX_CLASSES = 12
"""Votes with more distinct numbers than this are scores, not classes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record: a vote, a missing vote with its reason, or a reason to leave the record out."""

    item: str
    judge: str
    vote: str | int | float | None = None
    missing: str = "no vote"
    """Why `vote` is None."""
    dropped: str | None = None
    """Why the record is neither a vote nor a missing vote."""
    sample: int | str | None = None
    order: Literal["AB", "BA"] | str | None = None
    score: float | None = None
    label: str | int | float | None = None


@dataclass(frozen=True)
class Imported:
    """Votes as a tidy table, the labels of the source, and an account of every record.

    Each of the `read` records is either a row of `votes` or counted in `dropped`. A row whose vote is
    None is a missing vote; `missing` counts the reasons.
    """

    votes: pd.DataFrame
    """Columns item, judge, vote; then sample, order and score if the source has them."""
    labels: pd.DataFrame | None
    """Columns item, label; None if the source has no labels."""
    read: int
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    """Votes per level of the verdict parser, if it was used."""
    votes_as: Literal["shown", "original"] | None = None
    """With an order: whether votes name the responses as shown, or were mapped back already."""
    classes: tuple[str, ...] | None = None
    """The classes from lowest to highest, if they cannot be inferred."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that every record is accounted for."""
        included, left_out = len(self.votes), sum(self.dropped.values())
        assert self.read == included + left_out, (self.read, included, left_out)
        assert int(self.votes["vote"].isna().sum()) == sum(self.missing.values())

    def coverage(self) -> pd.Series:
        """Return the share of each judge's rows that contain a vote, the lowest first.

        An item on which a judge has no row was never shown to it, and does not count.
        """
        share = self.votes["vote"].notna().groupby(self.votes["judge"], sort=False).mean()
        return share.sort_values(kind="stable").rename("coverage")

    def words(self) -> list[str]:
        """Return sentences about the votes read, those missing and those left out, with reasons."""
        votes = self.votes
        cast = int(votes["vote"].notna().sum())
        lines = [
            f"Read {self.read} records: {cast} votes of {votes['judge'].nunique()} judge(s) on "
            f"{votes['item'].nunique()} items ({_counts(votes['vote'].value_counts())})."
        ]
        if self.missing:
            lines.append(f"Missing votes: {sum(self.missing.values())} ({_counts(self.missing)}).")
            coverage = self.coverage()
            coverage = coverage[coverage < 1]
            named = ", ".join(
                f"{judge} {percent(share, 1)}"
                for judge, share in coverage.head(MAX_NAMED_JUDGES).items()
            )
            rest = (
                f" and {len(coverage) - MAX_NAMED_JUDGES} more judges"
                if len(coverage) > MAX_NAMED_JUDGES
                else ""
            )
            lines.append(f"Coverage: {named}{rest}.")
        lines += partly_asked(votes.groupby("judge")["item"].nunique(), votes["item"].nunique())
        usual = self.usual()
        if usual is not None:
            names = ", ".join(usual.classes.names)
            lines.append(
                f"{sum(usual.odd.values())} votes are not one of {names}: {_counts(usual.odd)}. To read "
                f"them as missing votes, use {option('missing', usual.odd)}."
            )
        if self.levels:
            lines.append(f"Verdicts by level of the parser: {_counts(self.levels)}.")
        if self.dropped:
            lines.append(f"Left out: {sum(self.dropped.values())} ({_counts(self.dropped)}).")
        if self.labels is not None:
            shown = _counts(self.labels["label"].value_counts())
            lines.append(f"Labels of {len(self.labels)} items ({shown}).")
        return sentences([*lines, *self.notes])

    def usual(self) -> Usual | None:
        """Return the classes of most votes, and the votes outside them; None if no vote is outside."""
        if self.classes is not None:
            return None
        return usual_classes(Counter(map(canonical, self.votes["vote"].dropna())))


def set_missing(rows: Iterable[Row], missing: str | None) -> list[Row]:
    """Return the rows, with votes and labels that mean "missing" set to None."""
    no_vote = missing_values(missing)
    if not no_vote:
        return list(rows)
    updated = []
    for row in rows:
        if row.vote is not None and casefolded(row.vote) in no_vote:
            row = replace(row, vote=None, missing=f"vote {str(row.vote)!r}")
        if row.label is not None and casefolded(row.label) in no_vote:
            row = replace(row, label=None)
        updated.append(row)
    return updated


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
    """Collect rows into tables, and account for all of them.

    A judge's repeated votes on an item (in one order) are numbered as samples. A judge without a
    single vote is left out, and counted in `dropped`.

    Parameters
    ----------
    rows
        In the order of the source.
    what
        The name of the source, for messages.
    missing
        Values that mean no vote, separated by commas.
    votes_as, classes, levels, notes
        As in `Imported`.

    Raises
    ------
    JudgeBayesError
        If there is no vote at all, or if an item has two labels.
    """
    rows = set_missing(rows, missing)
    dropped = Counter(row.dropped for row in rows if row.dropped is not None)
    included = [row for row in rows if row.dropped is None]
    judges = {row.judge for row in included if row.vote is not None}
    without_votes = Counter(row.judge for row in included if row.judge not in judges)
    if not judges:
        why = Counter(row.missing for row in included)
        reasons = _counts(why + dropped) if rows else "no record"
        raise JudgeBayesError(f"There are no votes in {what}: {reasons}.")
    for judge, count in without_votes.items():
        dropped[f"{judge} has no vote at all"] += count
    included = [row for row in included if row.judge in judges]
    table, repeated = _table(included)
    all_notes = list(notes)
    if repeated:
        all_notes.append(
            f"{repeated} votes repeat a judge's vote on an item: the column sample numbers them."
        )
    values = table["vote"].dropna().unique()
    if len(values) > MAX_CLASSES and pd.api.types.is_numeric_dtype(table["vote"].dtype):
        all_notes.append(
            f"The votes take {len(values)} different values: these are scores; the other commands group "
            "them into classes with --bins."
        )
    has_order = "order" in table.columns
    if has_order and table["order"].isna().any():
        all_notes.append("Some votes have no presentation order: the column 'order' is left out.")
        table, has_order = table.drop(columns="order"), False
    return Imported(
        table,
        _labels(included, what),
        len(rows),
        Counter(row.missing for row in included if row.vote is None),
        dropped,
        levels or Counter(),
        votes_as if has_order else None,
        classes,
        tuple(all_notes),
    )


def _table(rows: list[Row]) -> tuple[pd.DataFrame, int]:
    """Return the rows as a table, and the number of votes that repeat an earlier one."""
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
        sample_number = table.groupby(["item", "judge"], sort=False).cumcount() + 1
        samples = [row.sample for row in rows]
        table["sample"] = _column(
            [f if g is None else g for g, f in zip(samples, sample_number, strict=True)]
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
    """Return values as one column: numbers if all are numbers, else text; None where missing."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present):
        return pd.Series([None if v is None else _text(v) for v in values], dtype=object)
    if len(present) == len(values) and all(abs(value) < INT64_LIMIT for value in present):
        return pd.Series(values)
    return pd.Series(values, dtype=float)


def _text(value: object) -> str:
    """Return a value as text, a whole number without a decimal point."""
    return str(canonical(value)) if isinstance(value, int | float) else str(value)


def _labels(rows: list[Row], what: str) -> pd.DataFrame | None:
    label_of: dict[str, str | int | float] = {}
    for row in rows:
        if row.label is None:
            continue
        if label_of.setdefault(row.item, row.label) != row.label:
            raise JudgeBayesError(
                f"Item {row.item!r} of {what} has two labels, {label_of[row.item]!r} and "
                f"{row.label!r}; an item must have one label."
            )
    if not label_of:
        return None
    return pd.DataFrame({"item": list(label_of), "label": _column(list(label_of.values()))})


def _counts(counts: "Counter[str] | pd.Series") -> str:
    pairs = list(counts.most_common() if isinstance(counts, Counter) else counts.items())
    shown = ", ".join(f"{_short(name)} {count}" for name, count in pairs[:12])
    return shown + (f" and {len(pairs) - 12} more" if len(pairs) > 12 else "")


def _short(name: object) -> str:
    """Return a name for a message: whole numbers without a decimal point, long texts cut."""
    text = " ".join(str(canonical(name)).split())
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 3] + "..."
