"""The growing file of votes: a line per answer, so that no answer is paid for twice.

The calls of a file of votes, each written down before its request leaves.

A budget must hold over all runs, also where a run is killed while its requests are under way. So a call
is booked in a file beside the votes first, and then sent. A request that the server refused is taken
back; one whose answer was lost stays booked, because it may have been charged for.

What the calls of a file of votes have cost, and whether the budget allows another one.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, get_args, get_type_hints

from judgebayes.errors import JudgeBayesError
from judgebayes.io.appended import Appended, excerpt


def bookings_path(path: Path) -> Path:
    """Return the path of the bookings of a file of votes."""
    return path.with_name(path.name + ".calls.jsonl")


def _change(record: dict[str, Any], path: Path) -> int:
    calls = record.get("calls")
    if type(calls) is not int or not -1 <= calls < 2**53:
        raise JudgeBayesError(
            f"{str(path)!r} has a line that is not a booking of judgebayes collect; restore the file, "
            "or choose another file of votes with -o."
        )
    return calls


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
    """A file of answers, and that of their bookings, open for appending by one process only.

    Parameters
    ----------
    path
        The JSONL file; it is created if it does not exist.
    settings
        Values by name that must not change between two runs into the same file, without secrets.

    Raises
    ------
    JudgeBayesError
        If a file cannot be written, another process has it open, it is not a file of answers or of
        bookings, or it was written with other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        with ExitStack() as opened:
            self._answers = opened.enter_context(Appended(path, settings))
            self.torn = self._answers.torn
            """Number of bytes removed with a cut last line."""
            self.lines = [_line(number, record, path) for number, record in self._answers.records]
            self._bookings = opened.enter_context(Appended(bookings_path(path), None))
            changes = self._bookings.records
            self.calls = sum(_change(record, self._bookings.path) for _, record in changes)
            """Number of booked calls, each answer one of them."""
            changes.clear()  # there may be millions
            if self.calls < len(self.lines):  # an earlier version wrote no bookings
                self.book(len(self.lines) - self.calls, "answers of earlier runs")
            self._opened = opened.pop_all()

    def append(self, line: Line) -> None:
        """Write an answer.

        Raises
        ------
        JudgeBayesError
            If the line cannot be written (for example on a full disk), so that no answers are paid for
            and lost.
        """
        fields = {k: v for k, v in asdict(line).items() if k not in OPTIONAL or v is not None}
        self._answers.append(fields)
        self.lines.append(line)

    def book(self, calls: int, what: str) -> None:
        """Write down a call, 1, before it is sent, or that it was refused, -1.

        Raises
        ------
        JudgeBayesError
            If it cannot be written.
        """
        self._bookings.append({"calls": calls, "what": what})
        self.calls += calls

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
        self._opened.__exit__(kind, error, trace)


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


@dataclass(frozen=True)
class Budget:
    """The budget of one file of votes, over all runs; None for no limit.

    A call is an answer, or a request that may have been answered and charged for: it was sent and not
    refused. Tokens are those that the servers count, of prompts and answers; a call without a count is
    assumed to have cost as many as the most costly answer.
    """

    calls: int | None = None
    tokens: int | None = None


@dataclass
class Spending:
    """The spending on a file so far, and bounds for pending answers."""

    budget: Budget
    ledger: Ledger
    tokens: int
    """Tokens of all answers with a count."""
    counted: int
    """The number of these answers."""
    largest: int
    """The largest number of tokens of an answer so far, 0 if unknown."""
    longest: int
    """The tokens that a lost answer is assumed to have cost while `largest` is unknown."""
    under_way: int = 0
    """The number of booked calls that are neither answered nor failed."""

    @classmethod
    def of(cls, budget: Budget, ledger: Ledger, longest: object) -> "Spending":
        """Return the spending on a file, whose answers have at most `longest` tokens, if a number."""
        counted = [line.tokens for line in ledger.lines if line.tokens is not None]
        limit = longest if isinstance(longest, int) else 0
        return cls(budget, ledger, sum(counted), len(counted), max(counted, default=0), limit)

    def short_of(self) -> str | None:
        """Return the budget that another call might exceed, or None."""
        calls = self.ledger.calls
        if self.budget.calls is not None and calls >= self.budget.calls:
            return "calls"
        if self.budget.tokens is None:
            return None
        if self.largest == 0 and self.under_way > 0:
            return "tokens"  # nothing is known yet: wait for the first answer
        uncounted = calls - self.counted - self.under_way
        after = self.tokens + uncounted * (self.largest or self.longest)
        after += (self.under_way + 1) * self.largest
        return "tokens" if after > self.budget.tokens else None

    def book(self, what: str) -> bool:
        """Book an attempt, before it is sent; False if the budget does not allow it.

        Raises
        ------
        JudgeBayesError
            If the booking cannot be written.
        """
        if self.short_of() is not None:
            return False
        self.ledger.book(1, what)
        self.under_way += 1
        return True

    def failed(self, what: str, *, charged: bool) -> None:
        """Note a failed attempt; one that was not charged for is taken back."""
        self.under_way -= 1
        if not charged:
            self.ledger.book(-1, f"{what} was refused")

    def answered(self, tokens: int | None) -> None:
        """Count an answer."""
        self.under_way -= 1
        if tokens is not None:
            self.tokens += tokens
            self.counted += 1
            self.largest = max(self.largest, tokens)
