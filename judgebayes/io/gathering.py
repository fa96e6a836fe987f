"""Collect records into a table of votes, and account for all of them; by column, not by row."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import Coded, casefolded, coded_values, missing_values, stacked
from judgebayes.io.options import MAX_CLASSES, Imported, Row, reasons, split_names
from judgebayes.votes.classes import listing


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
