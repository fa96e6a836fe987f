"""The growing file of votes: a line per answer, so that no answer is paid for twice."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, get_args, get_type_hints

from judgebayes.collect.bookings import Bookings
from judgebayes.errors import JudgeBayesError
from judgebayes.io.appended import Appended, AppendedWords, excerpt

WORDS = AppendedWords(
    contents="answers",
    same="All votes in a file must have the same settings.",
    other="choose another file with -o",
)
MOST = 2**53
"""Numbers of samples and tokens are below this."""


OPTIONAL = ("order", "repairs")
"""Fields of an answer that are written only if they have a value."""


class Question(NamedTuple):
    """One request: a judge, an item, the number of the sample, and the order."""

    judge: str
    item: str
    sample: int
    order: str


@dataclass(frozen=True)
class Line:
    """One answer. Other commands read only `item` to `order`."""

    item: str
    judge: str
    vote: str | None
    """The vote with responses in the labels' order: votes in swapped order are already mapped back."""
    sample: int
    order: str | None
    """AB, or BA if the responses were shown swapped; None (no column) for a single response."""
    missing: str | None
    """The reason for a missing vote."""
    level: str | None
    """The level of the verdict parser that matched."""
    text: str
    """The raw answer."""
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    answered_by: str | None
    content: str
    """A digest of the item's fields."""
    repairs: str | None = None
    """What was malformed in the answer's JSON and was read all the same, separated by commas."""

    @property
    def question(self) -> Question:
        """The request that this line answers."""
        return Question(self.judge, self.item, self.sample, self.order or "AB")

    @property
    def tokens(self) -> int | None:
        """The number of tokens, None if the server did not count them."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class Ledger:
    """A file of answers, open for appending. Only one process may have it open.

    Parameters
    ----------
    path
        The JSONL file; it is created if it does not exist.
    settings
        Values by name that must not change between two runs into the same file, without secrets.

    Raises
    ------
    JudgeBayesError
        If another process has the file open, it is not a file of answers, or it was written with other
        settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self._file = Appended(path, settings, WORDS)
        self.torn = self._file.torn
        """Number of bytes removed with a cut last line."""
        try:
            self.lines = [_line(number, record, path) for number, record in self._file.records]
            self.bookings = Bookings(path, len(self.lines))
        except BaseException:
            self._file.close(quietly=True)
            raise

    def append(self, line: Line) -> None:
        """Write an answer.

        Raises
        ------
        JudgeBayesError
            If the line cannot be written (for example on a full disk), so that no answers are paid for
            and lost.
        """
        fields = {k: v for k, v in asdict(line).items() if k not in OPTIONAL or v is not None}
        self._file.append(fields)
        self.lines.append(line)

    def __enter__(self) -> "Ledger":
        """Return the ledger."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write everything to the disk, and release the files."""
        try:
            self._file.close(quietly=error is not None)
        finally:
            self.bookings.close(quietly=error is not None)


def _line(number: int, record: dict[str, Any], path: Path) -> Line:
    record = dict.fromkeys(OPTIONAL) | record
    names = Line.__dataclass_fields__.keys()
    if names - record.keys():
        raise JudgeBayesError(
            f"Line {number} of {str(path)!r} is not an answer of judgebayes collect: it has no "
            f"{min(names - record.keys())!r}. Choose another file with -o."
        )
    line = Line(**{name: record[name] for name in names})
    wrong = _wrong(line)
    if wrong is not None:
        raise JudgeBayesError(
            f"Line {number} of {str(path)!r} is not an answer of judgebayes collect: its {wrong} is "
            f"{excerpt(record[wrong])}. Choose another file with -o."
        )
    return line


def _wrong(line: Line) -> str | None:
    """Return the name of the first field of another type or range than declared; None if all are right.

    The types are exact: true is no number of a sample, and neither is 1.0.
    """
    for name, hint in get_type_hints(Line).items():
        value = getattr(line, name)
        if type(value) not in (get_args(hint) or (hint,)):
            return name
        if type(value) is int and not 0 <= value < MOST:
            return name
    return None if line.order in (None, "AB", "BA") else "order"
