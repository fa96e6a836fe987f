"""Collect records into a table of votes, and account for all of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import plain_column, without
from judgebayes.io.options import Options, short_names, split_names
from judgebayes.sentence import sentences
from judgebayes.votes.classes import canonical, listing, mapped
from judgebayes.votes.columns import VotesAs

if TYPE_CHECKING:
    from judgebayes.io.formats import Format

MAX_NAMED_JUDGES = 5
"""At most this many judges that lack votes are named."""
MAX_NAME_LENGTH = 60
"""Longer names are cut in sentences."""
MAX_CLASSES = 12
"""Votes with more distinct numbers than this are scores, not classes."""


Name = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One record: a vote, a missing vote with its reason, or a reason to leave the record out."""

    item: Name
    """Its name, or the parts of its name: the last part, and those that differ among the rows."""
    judge: Name
    """Likewise; of parts, the first one is always in the name."""
    vote: str | int | float | None = None
    missing: str = "no vote"
    """Why `vote` is None."""
    dropped: str | None = None
    """Why the record is neither a vote nor a missing vote."""
    sample: str | int | float | None = None
    order: str | None = None
    score: float | None = None
    label: str | int | float | None = None
    model_a: str | None = None
    model_b: str | None = None
    """The systems that the item compares."""
    person: str | None = None
    """Who voted, if it was a person: then `judge` is the question that the person answered."""
    question: str | None = None
    """The question, where judges and people answered several, of which one is read."""


@dataclass(frozen=True)
class Imported:
    """Votes as a tidy table, the labels of the source, and an account of every record.

    Each of the `read` records is either a row of `votes` or counted in `dropped`. A row whose vote is
    None is a missing vote; `missing` counts the reasons.
    """

    votes: pd.DataFrame
    """Columns item, judge, vote; then sample, order and score if the source has them."""
    labels: pd.DataFrame | None
    """Columns item, label; annotator where several people labelled. None if the source has no labels."""
    read: int
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    votes_as: VotesAs | None = None
    """With an order: whether votes name the responses as shown, or were mapped back already."""
    classes: tuple[str, ...] | None = None
    """The classes from lowest to highest, if they cannot be inferred."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """The classes by the letters in which the tool writes labels."""
    notes: tuple[str, ...] = ()

    def coverage(self) -> pd.Series:
        """Return the share of each judge's rows that contain a vote, the lowest first.

        An item on which a judge has no row was never shown to it, and does not count.
        """
        share = self.votes["vote"].notna().groupby(self.votes["judge"], sort=False).mean()
        return share.sort_values(kind="stable").rename("coverage")

    def words(self) -> list[str]:
        """Return sentences about the votes read, those missing and those left out, with reasons.

        What every command says of votes, for instance by which judge they are missing, is not repeated.
        """
        votes = self.votes
        n_items, cast = votes["item"].nunique(), int(votes["vote"].notna().sum())
        lines = [
            f"Read {self.read} records: {cast} votes of {votes['judge'].nunique()} judge(s) on "
            f"{n_items} items ({reasons(votes['vote'].value_counts())})."
        ]
        if self.missing:
            lines.append(f"Missing votes: {sum(self.missing.values())} ({reasons(self.missing)}).")
        if self.dropped:
            lines.append(f"Left out: {sum(self.dropped.values())} ({reasons(self.dropped)}).")
        if self.labels is not None:
            shown = reasons(self.labels["label"].value_counts())
            lines.append(f"Labels of {self.labels['item'].nunique()} items ({shown}).")
        return sentences([*lines, *self.notes])


def reasons(counts: "Counter[str] | pd.Series") -> str:
    """Return the most frequent names with their counts, for a sentence."""
    pairs = list(counts.most_common() if isinstance(counts, Counter) else counts.items())
    shown = ", ".join(f"{_short(name)} {count}" for name, count in pairs[:12])
    return shown + (f" and {len(pairs) - 12} more" if len(pairs) > 12 else "")


def _short(name: object) -> str:
    """Return a name for a message: whole numbers without a decimal point, long texts cut."""
    text = " ".join(str(canonical(name)).split())
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 3] + "..."


def gather(parts: Iterable[Row | str], what: str, form: "Format", options: Options) -> Imported:
    """Collect records into tables, and account for all of them.

    Where people and programs voted, what people said is labels. A judge's repeated votes on an item
    (in one order) are numbered as samples. A judge without a single vote is left out, and counted in
    `dropped`.

    Parameters
    ----------
    parts
        Records in the order of the source, and sentences for the user.
    what
        The name of the source, for messages.
    form
        The format of the source.
    options
        `missing`, and `label`: which of several questions that people answered is the label.

    Raises
    ------
    JudgeBayesError
        If there is no vote at all, if an item has two labels, or if it is unknown which of the questions
        that people answered is the label.
    """
    every = list(parts)
    notes = [part for part in every if isinstance(part, str)]
    missing = options.missing
    records = _of_one_question(_records_of(every), what, options)
    kept, emptied = without(records, ("vote", "label"), missing)
    if emptied:
        no_vote = records["vote"].notna() & kept["vote"].isna()
        reason = mapped(records["vote"], lambda value: f"vote {str(value)!r}")
        records = kept.assign(missing=records["missing"].mask(no_vote, reason))
    records, people, said = _people(records, what, options.label)
    notes += said
    here = records["dropped"].isna()
    kept = records if here.all() else records[here]
    voters = kept["judge"][kept["vote"].notna()].unique()
    dropped = Counter(records["dropped"].dropna())
    if len(voters) == 0:
        why = reasons(Counter(kept["missing"]) + dropped) if len(records) else "it has no records"
        raise JudgeBayesError(f"There are no votes in {what}: {why}.")
    if len(voters) < kept["judge"].nunique():
        votes = kept["judge"].isin(voters)
        dropped.update(f"{judge} has no vote at all" for judge in kept["judge"][~votes])
        kept = kept[votes]
    kept.index = pd.RangeIndex(len(kept))  # before pandas 3, reset_index copies all columns
    table, repeated = _table(kept)
    if missing and not emptied:
        notes.append(f"missing has no effect: no vote is {listing(split_names(missing))}.")
    if repeated:
        notes.append(
            f"{repeated} votes repeat a judge's vote on an item: the column sample numbers them."
        )
    values = table["vote"].dropna().unique()
    inner = slice(None) if form.always else slice(1, -1)
    if "order" in table.columns and table["order"].isna().any():
        notes.append("Some votes have no presentation order: the column 'order' is left out.")
        table = table.drop(columns="order")
    return Imported(
        table,
        _labels(kept, what) if people is None else people,
        len(records),
        Counter(kept.loc[kept["vote"].isna(), "missing"]),
        dropped,
        form.votes_as if "order" in table.columns else None,
        form.classes if {*values} & {*form.classes[inner]} else None,
        form.letters,
        tuple(dict.fromkeys(notes)),
    )


def _records_of(parts: list[Row | str]) -> pd.DataFrame:
    """Return the records as a table with a column for every field of `Row`."""
    names = [each.name for each in fields(Row)]
    rows = [part for part in parts if isinstance(part, Row)]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    columns["item"] = short_names(columns["item"], keep=-1)
    columns["judge"] = short_names(columns["judge"], keep=0)
    return pd.DataFrame(columns, dtype=object)


def _of_one_question(records: pd.DataFrame, what: str, options: Options) -> pd.DataFrame:
    """Return the records without answers to other questions than the named one.

    By default it is the only one whose answers are no free texts. A person's `judge` is the question.
    """
    question, votes = records["question"], records["vote"]
    if question.isna().all():
        return records
    answers = votes[votes.notna()].groupby(question, sort=False).unique()
    texts = answers.map(lambda given: any(isinstance(each, str) for each in given)).astype(bool)
    few = answers.index[~texts | (answers.map(len) <= MAX_CLASSES)]
    label = None if options.label == "none" else options.label
    named = options.vote or label or (few[0] if len(few) == 1 else None)
    if len(answers) and named not in answers:
        raise JudgeBayesError(
            f"{what!r} has answers to the questions {listing(answers.index, 20)}: name the one "
            "to read with --vote NAME."
        )
    other = ("an answer to another question, " + question).mask(question == named)
    dropped = records["dropped"].where(records["dropped"].notna(), other)
    return records.assign(
        dropped=dropped, judge=question.where(records["person"].notna(), records["judge"])
    )


def _people(
    records: pd.DataFrame, what: str, label: str | None
) -> tuple[pd.DataFrame, pd.DataFrame | None, list[str]]:
    """Return the records of judges, the labels by people, and what is said of people.

    Where only people voted, they are the judges.
    """
    person, question, cast = records["person"], records["judge"], records["vote"].notna()
    by_people = person.notna() & records["dropped"].isna()
    if not by_people.any():
        return records, None, []
    names = listing(person[by_people].unique(), MAX_NAMED_JUDGES)
    if not (cast & person.isna()).any():
        judge = person if question[by_people].nunique() == 1 else person + " / " + question
        said = f"All votes are by people ({names}), of whom each is read as a judge."
        return records.assign(judge=judge.where(by_people, question)), None, [said]
    counts = Counter(question[by_people & cast])
    chosen = set(counts) if label is None else {*split_names(label)} - {"none"}
    unknown = sorted(chosen - set(counts)) if label is not None else []
    if unknown or (label is None and len(counts) > 1):
        wrong = f"nobody answered {unknown[0]!r}" if unknown else "more than one can be the label"
        raise JudgeBayesError(
            f"In {what}, people answered {reasons(counts)}, and {wrong}: name it with --label NAME, or "
            "use --label none."
        )
    labels = records[by_people & cast & question.isin(chosen)]
    table = pd.DataFrame({"item": list(labels["item"]), "label": plain_column(labels["vote"])})
    if labels["person"].nunique() > 1:
        table["annotator"] = list(labels["person"])
    table = table.drop_duplicates(ignore_index=True)
    reason = pd.Series("by a person: " + records["missing"], dtype=object)
    reason = reason.mask(cast, "by a person: not the label")
    reason[labels.index] = "by a person: a label, not a vote"
    said = (
        f"What people said ({reasons(counts)}; by {names}) is read as labels, not as votes; "
        "--label none leaves it out."
    )
    dropped = records["dropped"].mask(by_people, reason)
    return records.assign(dropped=dropped), None if table.empty else table, [said]


def _table(kept: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the records as a table, and the number of votes that repeat an earlier one."""
    table = pd.DataFrame({name: kept[name].infer_objects() for name in ("item", "judge")})
    table["vote"] = plain_column(kept["vote"])
    sample = kept["sample"]
    if sample.notna().any():
        number = table.groupby(["item", "judge"], sort=False).cumcount() + 1
        table["sample"] = plain_column(sample.where(sample.notna(), number))
    for name in ("order", "score", "model_a", "model_b"):
        if kept[name].notna().any():
            table[name] = plain_column(kept[name])
    place = [name for name in ("item", "judge", "order") if name in table]
    repeated = int(table.duplicated([*place, *(["sample"] if "sample" in table else [])]).sum())
    if repeated:
        table["sample"] = table.groupby(place, dropna=False, sort=False).cumcount() + 1
    order = ["item", "judge", "vote", "sample", "order", "score", "model_a", "model_b"]
    return table[[name for name in order if name in table]], repeated


def _labels(kept: pd.DataFrame, what: str) -> pd.DataFrame | None:
    pairs = kept.loc[kept["label"].notna(), ["item", "label"]].drop_duplicates(ignore_index=True)
    clash = pairs["item"].duplicated()
    if clash.any():
        item, other = pairs.loc[clash.idxmax()]
        first = pairs["label"][pairs["item"] == item].iloc[0]
        raise JudgeBayesError(
            f"Item {item!r} of {what} has two labels, {first!r} and {other!r}; an item must have one "
            "label."
        )
    return None if pairs.empty else pairs.assign(label=plain_column(pairs["label"]))
