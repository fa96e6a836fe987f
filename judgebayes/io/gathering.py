"""Collect records into a table of votes, and account for all of them; by column, not by row."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import Coded, casefolded, coded_values, missing_values, stacked
from judgebayes.io.options import option, split_names
from judgebayes.sentence import percent, sentences
from judgebayes.votes.classes import Usual, canonical, listing, usual_classes
from judgebayes.votes.coding import partly_asked

MAX_NAMED_JUDGES = 5
"""At most this many judges that lack votes are named."""
MAX_NAME_LENGTH = 60
"""Longer names are cut in sentences."""
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
    repairs: Counter[str] = field(default_factory=Counter)
    """What was malformed in answers and was read all the same."""
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
            f"{votes['item'].nunique()} items ({reasons(votes['vote'].value_counts())})."
        ]
        if self.missing:
            lines.append(f"Missing votes: {sum(self.missing.values())} ({reasons(self.missing)}).")
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
                f"{sum(usual.odd.values())} votes are not one of {names}: {reasons(usual.odd)}. To read "
                f"them as missing votes, use {option('missing', usual.odd)}."
            )
        if self.levels:
            lines.append(f"Verdicts by level of the parser: {reasons(self.levels)}.")
        if self.repairs:
            lines.append(f"Repaired: {reasons(self.repairs)}.")
        if self.dropped:
            lines.append(f"Left out: {sum(self.dropped.values())} ({reasons(self.dropped)}).")
        if self.labels is not None:
            shown = reasons(self.labels["label"].value_counts())
            lines.append(f"Labels of {len(self.labels)} items ({shown}).")
        return sentences([*lines, *self.notes])

    def usual(self) -> Usual | None:
        """Return the classes of most votes, and the votes outside them; None if no vote is outside."""
        if self.classes is not None:
            return None
        counts: Counter[Hashable] = Counter()
        for value, count in self.votes["vote"].value_counts(sort=False).items():
            counts[canonical(value)] += count
        return usual_classes(counts)


def reasons(counts: "Counter[str] | pd.Series") -> str:
    """Return the most frequent names with their counts, for a sentence."""
    pairs = list(counts.most_common() if isinstance(counts, Counter) else counts.items())
    shown = ", ".join(f"{_short(name)} {count}" for name, count in pairs[:12])
    return shown + (f" and {len(pairs) - 12} more" if len(pairs) > 12 else "")


def _short(name: object) -> str:
    """Return a name for a message: whole numbers without a decimal point, long texts cut."""
    text = " ".join(str(canonical(name)).split())
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 3] + "..."


@dataclass(frozen=True)
class Records:
    """The columns of many records, each as in `Row`."""

    item: Coded
    judge: Coded
    vote: Coded
    missing: Coded
    """Why the vote is None, where it is."""
    dropped: Coded
    sample: Coded
    order: Coded
    score: Coded
    label: Coded

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.item)

    def where(self, rows: Bool[np.ndarray, " row"]) -> "Records":
        """Return some of the records."""
        return Records(**{f.name: getattr(self, f.name).where(rows) for f in fields(self)})


def stacked_records(parts: Sequence[Records]) -> Records:
    """Return the records of several parts, in order."""
    return Records(
        **{f.name: stacked([getattr(p, f.name) for p in parts]) for f in fields(Records)}
    )


def columns_of(rows: Iterable[Row]) -> Records:
    """Return the columns of rows."""
    listed = list(rows)
    return Records(
        **{f.name: coded_values([getattr(r, f.name) for r in listed]) for f in fields(Records)}
    )


def gather(
    records: Records | Iterable[Row],
    what: str,
    *,
    missing: str | None = None,
    votes_as: Literal["shown", "original"] | None = None,
    classes: tuple[str, ...] | None = None,
    levels: Counter[str] | None = None,
    repairs: Counter[str] | None = None,
    notes: Sequence[str] = (),
) -> Imported:
    """Collect records, given as rows or by column, into tables, and account for all of them.

    A judge's repeated votes on an item (in one order) are numbered as samples. A judge without a
    single vote is left out, and counted in `dropped`.

    Parameters
    ----------
    records
        In the order of the source.
    what
        The name of the source, for messages.
    missing
        Values that mean no vote, separated by commas.
    votes_as, classes, levels, repairs, notes
        As in `Imported`.

    Raises
    ------
    JudgeBayesError
        If there is no vote at all, or if an item has two labels.
    """
    records = records if isinstance(records, Records) else columns_of(records)
    given, columns = records, _without(records, missing)
    dropped = columns.dropped.counts()
    kept = columns.where(~columns.dropped.present())
    voted = np.bincount(kept.judge.code[kept.vote.present()], minlength=len(kept.judge.values)) > 0
    if not voted.any():
        why = reasons(kept.missing.counts() + dropped) if len(records) else "no record"
        raise JudgeBayesError(f"There are no votes in {what}: {why}.")
    of_voters = voted[kept.judge.code]
    for judge, count in kept.judge.where(~of_voters).counts().items():
        dropped[f"{judge} has no vote at all"] += count
    kept = kept.where(of_voters)
    table, repeated = _table(kept)
    all_notes = list(notes)
    no_vote = missing_values(missing)
    if no_vote and not any(
        casefolded(v) in no_vote for v in (*given.vote.values, *given.label.values)
    ):
        all_notes.append(
            f"--missing has no effect: no vote is {listing(split_names(missing or ''))}."
        )
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
        _labels(kept, what),
        len(records),
        kept.missing.where(~kept.vote.present()).counts(),
        dropped,
        levels or Counter(),
        repairs or Counter(),
        votes_as if has_order else None,
        classes,
        tuple(all_notes),
    )


def _without(records: Records, missing: str | None) -> Records:
    """Return the records, with votes and labels that mean "missing" set to None."""
    no_vote = missing_values(missing)
    if not no_vote:
        return records
    why = records.vote.changed(lambda v: f"vote {str(v)!r}" if casefolded(v) in no_vote else None)
    emptied = why.present()
    both = stacked([records.missing, why])
    n = len(records)
    reason = Coded(np.where(emptied, both.code[n:], both.code[:n]), both.values)
    label = records.label.changed(lambda v: None if casefolded(v) in no_vote else v)
    columns = {f.name: getattr(records, f.name) for f in fields(records)}
    return Records(
        **columns | {"vote": records.vote.emptied(emptied), "missing": reason, "label": label},
    )


def _table(kept: Records) -> tuple[pd.DataFrame, int]:
    """Return the records as a table, and the number of votes that repeat an earlier one."""
    place = {"item": kept.item.code, "judge": kept.judge.code}
    keys = pd.DataFrame(place)
    columns = {
        "item": kept.item.names(),
        "judge": kept.judge.names(),
        "vote": kept.vote.column(),
    }
    sample = kept.sample
    if sample.present().any():
        columns["sample"] = keys["sample"] = _numbered(sample, keys).column()
    for name, column in (("order", kept.order), ("score", kept.score)):
        if column.present().any():
            columns[name] = column.column()
    if "order" in columns:
        keys["order"] = columns["order"]
    repeated = int(keys.duplicated().sum())
    if repeated:
        of_judge = keys.drop(columns="sample", errors="ignore")
        groups = of_judge.groupby(list(of_judge.columns), dropna=False, sort=False)
        columns["sample"] = groups.cumcount() + 1
    order = ["item", "judge", "vote", "sample", "order", "score"]
    return pd.DataFrame({name: columns[name] for name in order if name in columns}), repeated


def _numbered(sample: Coded, keys: pd.DataFrame) -> Coded:
    """Return the samples; one that is missing is the number of the judge's record on the item."""
    given = sample.present()
    if given.all():
        return sample
    number = keys.groupby(["item", "judge"], sort=False).cumcount().to_numpy() + 1
    numbers = coded_values(number.tolist())
    both = stacked([sample, numbers])
    n = len(sample)
    return Coded(np.where(given, both.code[:n], both.code[n:]), both.values)


def _labels(kept: Records, what: str) -> pd.DataFrame | None:
    labelled = kept.label.present()
    if not labelled.any():
        return None
    label = kept.label.where(labelled)
    item, items = pd.factorize(kept.item.code[labelled])
    names = [kept.item.values[at] for at in items.tolist()]
    same = _by_equality(label)
    first = np.unique(item, return_index=True)[1]
    clash = same[first][item] != same
    if clash.any():
        row = int(np.argmax(clash))
        earlier = first[item[row]]
        raise JudgeBayesError(
            f"Item {names[item[row]]!r} of {what} has two labels, "
            f"{label.values[label.code[earlier]]!r} and {label.values[label.code[row]]!r}; an item must "
            "have one label."
        )
    of_item = Coded(label.code[first], label.values)
    return pd.DataFrame({"item": names, "label": of_item.column()})


def _by_equality(column: Coded) -> Int[np.ndarray, " row"]:
    """Return codes that are the same for equal values, such as 1 and 1.0."""
    code_of: dict[object, int] = {}
    return np.array([code_of.setdefault(v, len(code_of)) for v in column.values])[column.code]
