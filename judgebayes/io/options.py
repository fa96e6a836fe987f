"""The options of a reader.

Short names of items that several parts identify: a name contains only the parts that vary.
"""

import csv
import io
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from judgebayes.errors import JudgeBayesError


def short_names(names: Sequence[str | tuple[str, ...]], keep: int) -> list[str]:
    """Return a name for each tuple of parts: part `keep`, and the parts that vary, in order.

    Names that are text stay as they are.

    >>> short_names([("gpt", "7", "1"), ("claude", "7", "1"), "all"], keep=1)
    ['gpt|7', 'claude|7', 'all']
    """
    parts = [name for name in names if isinstance(name, tuple)]
    values = list(map(set, zip(*parts, strict=True)))
    kept = [p for p, each in enumerate(values) if p == keep % len(values) or len(each) > 1]
    return [n if isinstance(n, str) else "|".join(n[place] for place in kept) for n in names]


@dataclass(frozen=True)
class Layout:
    """The layout of a table in its file, where it cannot be detected."""

    skip_rows: int | None = None
    """Rows above the header of a CSV file; if None, rows with only a first cell are titles."""
    encoding: str | None = None
    """Encoding of a text file that is not UTF-8 and has no byte-order mark."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out."""
    all_ignored_exist: bool = True
    """Whether it is an error if a column to leave out does not exist."""
    as_text: bool = False
    """Whether every cell of a CSV file is text, which 0.50 and TRUE are then too."""


@dataclass(frozen=True)
class Options:
    """Options of a reader beyond the path; each format takes some of them.

    `vote` and `label` name questions, a metadata key or a variable of a sample.
    """

    vote: str | None = None
    sample: str | None = None
    label: str | None = None
    missing: str | None = None
    """Values that mean no vote (for example -1 or partial), separated by commas."""
    votes_from: str | None = None
    """Whether a log's votes are the scores that it gives to outputs (the scorer is the judge), or
    the answers of the evaluated model (that model is the judge, the target its label)."""
    items: Path | None = None
    """The table of the items that a judge was shown, for answers on several items."""

    def specified(self) -> frozenset[str]:
        """Return the names of the options that are not None."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) is not None)


@dataclass(frozen=True)
class Files:
    """The files to import votes from, and how to read them."""

    path: Path
    """What the user named: a file, or a folder of files."""
    files: list[Path]
    options: Options


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


def key_of(pair: str) -> str:
    """Return the key of a text such as `wide=true`."""
    return pair.partition("=")[0].strip().replace("-", "_")


def as_pair(name: str, value: object) -> str:
    """Return an option as `--set` takes it, such as `wide=true`."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def option(name: str, values: Iterable[object]) -> str:
    """Return a key of the study with its values, quoted for a shell.

    A sentence shows characters that cannot be printed as escapes, which a shell does not read: values
    with such characters are for Python.
    """
    text = join_names(map(str, values))
    if not text.isprintable():
        return f"{name}= in Python (it has characters that cannot be typed at a command line)"
    return f"--set {shlex.quote(f'{name}={text}')}"
