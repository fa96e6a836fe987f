"""The longest text that a cell may have, found before memory is taken for it where possible.

An answer of a judge or a prompt may be long. A file in which one cell has hundreds of megabytes is
damaged, or made to fill the memory.
"""

import io
import itertools
from collections.abc import Iterable, Iterator

from judgebayes.errors import JudgeBayesError

__all__ = ["BLOCK", "MAX_LINE", "MAX_TEXT", "check_cells_before", "short_lines"]

MAX_TEXT = 10_000_000
"""Characters of a cell: more than a prompt of a million tokens."""
MAX_LINE = 4 * MAX_TEXT
"""Characters of a line of JSONL, which may contain several such cells."""
BLOCK = 2**20


def short_lines(file: io.TextIOWrapper, what: str) -> Iterator[str]:
    """Yield the lines of a text file; none is longer than `MAX_LINE`.

    Raises
    ------
    JudgeBayesError
        If a line is longer.
    """
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise JudgeBayesError(
                f"Line {number} of {what} has more than {MAX_LINE:,} characters: no record is so long. "
                "The file is damaged, or not a file of votes."
            )
        yield line


def check_cells_before(blocks: Iterable[bytes], separator: str, what: str) -> None:
    """Refuse a CSV file with a cell that is too long, without its content in memory.

    A cell ends at a separator or a line end, and between quotation marks only at the next one. A file
    that is built around the limits of blocks may pass; `cell_lengths.check_cells` finds its cell.

    Raises
    ------
    JudgeBayesError
        If a cell is longer than `MAX_TEXT`.
    """
    ends, quote = [separator.encode(), b"\n", b"\r", b'"'], [b'"']
    quoted, length, held = False, 0, b""
    for block in itertools.chain(blocks, [b""]):
        plain = (held + block).replace(b'""', b"")  # a quotation mark inside a cell
        held = b'"' if block and plain.endswith(b'"') else b""  # half of one, perhaps
        plain = plain.removesuffix(held)
        marks = quote if quoted else ends
        first = min((at for at in map(plain.find, marks) if at >= 0), default=-1)
        if first < 0:
            length += len(plain)
        else:
            if length + first > MAX_TEXT:
                raise _too_long(what)
            quoted ^= plain.count(b'"') % 2 == 1
            last = max(map(plain.rfind, quote if quoted else ends))  # at least the quotation mark
            length = len(plain) - 1 - last
        if length > MAX_TEXT:
            raise _too_long(what)


def _too_long(what: str) -> JudgeBayesError:
    return JudgeBayesError(
        f"{what} has a cell of more than {MAX_TEXT:,} characters: no text of votes is so long. Look for "
        "an unpaired quotation mark."
    )
