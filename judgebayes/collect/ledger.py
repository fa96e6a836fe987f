"""The ledger of a file of votes: every call and every reply, in a SQLite database beside the file.

A budget must hold over all runs, also where a run is killed while its requests are under way. So a call
is committed before its request leaves, and its reply before anything reads it. A call that the server
refused is taken back; one whose reply was lost stays, because it may have been charged for.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judgebayes.collect.replies import Answer
from judgebayes.errors import JudgeBayesError

OTHER = "choose another file with -o"
OPENING = (
    "PRAGMA locking_mode = EXCLUSIVE",  # only one run at a time
    "PRAGMA journal_mode = WAL",
    "BEGIN EXCLUSIVE",
    "CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, question TEXT NOT NULL, reply TEXT)",
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
"""Questions, replies and values are JSON: its escapes hold any text, also half of a surrogate pair."""


def ledger_path(path: Path) -> Path:
    """Return the path of the ledger of a file of votes."""
    return path.with_name(path.name + ".sqlite")


class Question(NamedTuple):
    """One request: a judge, an item, the number of the sample, and the order."""

    judge: str
    item: str
    sample: int
    order: str
    """AB, or BA if the responses are shown swapped."""
    content: str
    """A digest of the item's fields."""


@dataclass(frozen=True)
class Budget:
    """The budget of one file of votes, over all runs; None for no limit.

    A call is an answer, or a request that may have been answered and charged for: it was sent and not
    refused. Tokens are those that the servers count, of prompts and answers; a call without a count is
    assumed to have cost as many as the most costly answer.
    """

    calls: int | None = None
    tokens: int | None = None
    longest: int = 0
    """The tokens that a lost answer is assumed to have cost while no answer was counted."""


class Ledger:
    """The calls of a file of votes so far, their replies, and what they cost."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        rows = database.execute("SELECT question, reply FROM calls ORDER BY id").fetchall()
        try:
            self.replies = {
                Question(**json.loads(question)): Answer(**json.loads(reply))
                for question, reply in rows
                if reply is not None
            }
        except (TypeError, ValueError) as error:
            raise sqlite3.DatabaseError("a row is not a call of this command") from error
        self.calls = len(rows)
        """Number of calls: those with a reply, those that were lost, and those under way."""
        self.under_way: set[int] = set()
        """The calls that are neither answered nor failed."""
        counted = [reply.tokens for reply in self.replies.values() if reply.tokens is not None]
        self.counted, self.tokens, self.largest = (
            len(counted),
            sum(counted),
            max(counted, default=0),
        )
        """Answers with a count of tokens, their tokens, and those of the most costly one."""

    def check(self, settings: Mapping[str, Any], path: Path) -> None:
        """Check that settings equal those of the earlier runs, and keep new ones.

        Raises
        ------
        JudgeBayesError
            If a setting is another.
        """
        if not self.replies:
            self._database.execute("DELETE FROM settings")
        before = dict(self._database.execute("SELECT name, value FROM settings").fetchall())
        for name, value in settings.items():
            now = json.dumps(value, sort_keys=True)
            was = before.setdefault(name, now)  # a new judge has no earlier settings
            if was != now:
                raise JudgeBayesError(
                    f"{str(path)!r} was started with another {name}: {_excerpt(was)}, now "
                    f"{_excerpt(now)}. All votes in a file must have the same settings. Use the earlier "
                    f"{name}, or {OTHER}."
                )
        self._database.executemany("REPLACE INTO settings VALUES (?, ?)", before.items())

    def short_of(self, budget: Budget) -> str | None:
        """Return the budget that another call might exceed, or None."""
        if budget.calls is not None and self.calls >= budget.calls:
            return "calls"
        if budget.tokens is None:
            return None
        waiting = len(self.under_way)
        if self.largest == 0 and waiting > 0:
            return "tokens"  # nothing is known yet: wait for the first answer
        uncounted = self.calls - self.counted - waiting
        after = self.tokens + uncounted * (self.largest or budget.longest)
        return "tokens" if after + (waiting + 1) * self.largest > budget.tokens else None

    def book(self, question: Question) -> int:
        """Write down a call before it is sent; return its number."""
        content = json.dumps(question._asdict())
        row = self._database.execute("INSERT INTO calls (question) VALUES (?)", (content,))
        call = row.lastrowid or 0
        self.calls += 1
        self.under_way.add(call)
        return call

    def refused(self, call: int) -> None:
        """Take back a call that the server refused."""
        self._database.execute("DELETE FROM calls WHERE id = ?", (call,))
        self.calls -= 1

    def answered(self, call: int, question: Question, answer: Answer) -> None:
        """Keep the reply to a call."""
        content = json.dumps(asdict(answer))
        self._database.execute("UPDATE calls SET reply = ? WHERE id = ?", (content, call))
        self.replies[question] = answer
        if answer.tokens is not None:
            self.counted += 1
            self.tokens += answer.tokens
            self.largest = max(self.largest, answer.tokens)


@contextmanager
def open_ledger(path: Path, settings: Mapping[str, Any]) -> Iterator[Ledger]:
    """Open the ledger of a file of votes, for one run at a time; it is created if it does not exist.

    Parameters
    ----------
    path
        The file of votes.
    settings
        Values by name that must not change between two runs into the same file, without secrets.

    Raises
    ------
    JudgeBayesError
        If the ledger cannot be read or written, also later, another run has it open, it was written
        with other settings, or the file of votes has none.
    """
    place = ledger_path(path)
    if path.exists() and not place.exists():
        raise JudgeBayesError(
            f"{str(path)!r} has no ledger {place.name!r} beside it, so this command cannot continue it; "
            f"the file stays as it is. Restore the ledger, or {OTHER}."
        )
    try:
        with closing(sqlite3.connect(place, timeout=0, isolation_level=None)) as database:
            for statement in OPENING:
                database.execute(statement)
            ledger = Ledger(database)
            ledger.check(settings, path)
            database.execute("COMMIT")
            yield ledger
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise JudgeBayesError(
                f"Another run is writing to {str(path)!r}; wait until it ends, or {OTHER}."
            ) from error
        raise JudgeBayesError(
            f"The ledger {str(place)!r} cannot be read or written: {error}. Earlier answers are kept."
        ) from error


def _excerpt(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:40]}... of {len(text)} characters"
