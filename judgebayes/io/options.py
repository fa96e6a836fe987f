"""What a user may tell a reader."""

import csv
import io
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from judgebayes.errors import JudgeBayesError

if TYPE_CHECKING:
    from judgebayes.io.tables import Layout

__all__ = ["Options", "join_names", "option", "split_names"]

Verdicts = Literal["pair", "score", "valid"]
VotesFrom = Literal["score", "answer"]
Word = TypeVar("Word", bound=str)

VERDICTS: tuple[Verdicts, ...] = ("pair", "score", "valid")
VOTES_FROM: tuple[VotesFrom, ...] = ("score", "answer")


@dataclass(frozen=True)
class Options:
    """What a reader is told beyond the path; each format takes some of it.

    Columns are of tables; in logs, `label` names what a sample carries (its metadata or variables).
    """

    item: str | None = None
    judge: str | None = None
    vote: str | None = None
    sample: str | None = None
    order: str | None = None
    label: str | None = None
    text: str | None = None
    """The column of a judge's raw answer."""
    missing: str | None = None
    """Values that mean no vote, -1 or partial say, separated by commas."""
    verdicts: Verdicts | None = None
    """What raw answers are verdicts of; `pair` if not given."""
    votes_from: VotesFrom | None = None
    """Whether a log's votes are the scores that it gives to outputs (the scorer is the judge), or
    the answers of the evaluated model (that model is the judge, the target its label)."""
    ignore: str | None = None
    """Columns to leave out, separated by commas."""
    encoding: str | None = None
    """Of a text file that is not UTF-8."""
    skip_rows: int | None = None
    """Rows above the header."""

    def layout(self) -> "Layout":
        """Return how the tables stand in their files."""
        from judgebayes.io.tables import Layout

        return Layout(self.skip_rows, self.encoding, tuple(split_names(self.ignore or "")))

    def given(self) -> frozenset[str]:
        """Return the names of the options that were given."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) is not None)

    def choosing(self, verdicts: str | None, votes_from: str | None) -> "Options":
        """Return the options with two choices among known words.

        Raises
        ------
        JudgeBayesError
            For a word that is none of them.
        """
        return replace(
            self,
            verdicts=_one_of("verdicts", verdicts, VERDICTS),
            votes_from=_one_of("votes-from", votes_from, VOTES_FROM),
        )


def split_names(text: str) -> list[str]:
    """Return names that are separated by commas; one that holds a comma stands in double quotes.

    >>> split_names('poor, "fair, perhaps", good')
    ['poor', 'fair, perhaps', 'good']
    """
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise JudgeBayesError(f"{text!r} is no list of names: {error}.") from error


def join_names(names: Iterable[str]) -> str:
    """Return names as an option takes them: what `split_names` splits again.

    >>> join_names(["poor", "fair, perhaps"])
    'poor,"fair, perhaps"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def option(name: str, values: Iterable[object]) -> str:
    """Return an option with values as a shell takes it."""
    return f"--{name}={shlex.quote(join_names(map(str, values)))}"


def _one_of(option: str, word: str | None, known: tuple[Word, ...]) -> Word | None:
    for one in known:
        if one == word:
            return one
    if word is None:
        return None
    raise JudgeBayesError(f"--{option} {word!r} is unknown; right would be {', '.join(known)}.")
