"""The calls of a file of votes, each written down before its request leaves.

A budget must hold over all runs, also where a run is killed while its requests are under way. So a call
is booked in a file beside the votes first, and then sent. A request that the server refused is taken
back; one whose answer was lost stays booked, because it may have been charged for.
"""

import json
from pathlib import Path

from judgebayes.errors import JudgeBayesError
from judgebayes.io.growing import GrowingFile, lines_of


def bookings_path(path: Path) -> Path:
    """Return the path of the bookings of a file of votes."""
    return path.with_name(path.name + ".calls.jsonl")


class Bookings:
    """The number of booked calls of a file of votes, kept in a file.

    Parameters
    ----------
    path
        The file of votes.
    answers
        The number of answers in it, each of which was a call.

    Raises
    ------
    JudgeBayesError
        If the file of bookings cannot be read or written.
    """

    def __init__(self, path: Path, answers: int) -> None:
        self.path = bookings_path(path)
        self._file = GrowingFile(self.path, "answers")
        try:
            self.calls = sum(_change(line, self.path) for line in lines_of(self.path))
            if self.calls < answers:  # an earlier version wrote no bookings
                self._add(answers - self.calls, "answers of earlier runs")
        except BaseException:
            self._file.close(quietly=True)
            raise

    def book(self, judge: str, item: str) -> None:
        """Write down a call, before it is sent."""
        self._add(1, f"{judge} on {item}")

    def take_back(self, judge: str, item: str) -> None:
        """Write down that a call was refused."""
        self._add(-1, f"{judge} on {item} was refused")

    def _add(self, calls: int, what: str) -> None:
        self._file.append(json.dumps({"calls": calls, "what": what}))
        self.calls += calls

    def close(self, *, quietly: bool = False) -> None:
        """Write everything to the disk, and release the file; `quietly` as in `GrowingFile`."""
        self._file.close(quietly=quietly)


def _change(line: bytes, path: Path) -> int:
    try:
        record = json.loads(line)
        calls = record["calls"]
    except (ValueError, LookupError, TypeError, RecursionError):
        calls = None
    if type(calls) is not int or not -1 <= calls < 2**53:
        raise JudgeBayesError(
            f"{str(path)!r} has a line that is not a booking of judgebayes collect; restore the file, "
            "or choose another file of votes with -o."
        )
    return calls
