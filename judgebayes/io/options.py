"""The options of a reader.

Short names of items that several parts identify: a name contains only the parts that vary.

The result of a reader: votes, labels, and an account of every record.
"""

import csv
import io
import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.sentence import percent, sentences
from judgebayes.votes.classes import Usual, canonical, usual_classes
from judgebayes.votes.coding import partly_asked


def short_names(parts: Sequence[tuple[str, ...]], keep: int) -> list[str]:
    """Return a name for each tuple of parts: part `keep`, and the parts that vary, in order.

    >>> short_names([("gpt", "7", "1"), ("claude", "7", "1")], keep=1)
    ['gpt|7', 'claude|7']
    """
    varies = [
        place
        for place in range(len(parts[0]) if parts else 0)
        if place == keep or len({part[place] for part in parts}) > 1
    ]
    return ["|".join(part[place] for place in varies) for part in parts]


if TYPE_CHECKING:
    from judgebayes.io.tables import Layout

Verdicts = Literal["pair", "score", "valid"]
VotesFrom = Literal["score", "answer"]


@dataclass(frozen=True)
class Options:
    """Options of a reader beyond the path; each format takes some of them.

    `item` to `text` name columns of a table; in a log, `label` names a metadata key or a variable of a
    sample.
    """

    item: str | None = None
    judge: str | None = None
    vote: str | None = None
    sample: str | None = None
    order: str | None = None
    label: str | None = None
    text: str | None = None
    """The column of the judges' raw answers."""
    missing: str | None = None
    """Values that mean no vote (for example -1 or partial), separated by commas."""
    verdicts: Verdicts | None = None
    """What raw answers are verdicts on; None means `pair`."""
    votes_from: VotesFrom | None = None
    """Whether a log's votes are the scores that it gives to outputs (the scorer is the judge), or
    the answers of the evaluated model (that model is the judge, the target its label)."""
    ignore: str | None = None
    """Columns to leave out, separated by commas."""
    encoding: str | None = None
    """Encoding of a text file that is not UTF-8."""
    skip_rows: int | None = None
    """Number of rows above the header."""
    items: Path | None = None
    """The table of the items that a judge was shown, for answers on several items."""
    group: str | None = None
    """The column that says which items were shown together."""

    def layout(self) -> "Layout":
        """Return the layout of the tables in their files."""
        from judgebayes.io.tables import Layout

        return Layout(self.skip_rows, self.encoding, tuple(split_names(self.ignore or "")))

    def specified(self) -> frozenset[str]:
        """Return the names of the options that are not None."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) is not None)


def split_names(text: str) -> list[str]:
    """Split names at commas; a name that contains a comma is in double quotes.

    >>> split_names('poor, "fair, perhaps", good')
    ['poor', 'fair, perhaps', 'good']
    """
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise JudgeBayesError(f"{text!r} is not a list of names: {error}.") from error


def join_names(names: Iterable[str]) -> str:
    """Join names with commas, as an option takes them; the inverse of `split_names`.

    >>> join_names(["poor", "fair, perhaps"])
    'poor,"fair, perhaps"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def option(name: str, values: Iterable[object]) -> str:
    """Return an option with its values, quoted for a shell.

    A sentence shows characters that cannot be printed as escapes, which a shell does not read: values
    with such characters are for Python.
    """
    text = join_names(map(str, values))
    if not text.isprintable():
        return f"{name}= in Python (it has characters that cannot be typed at a command line)"
    return f"--{name}={shlex.quote(text)}"


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
