"""Tables as people keep them: CSV, TSV, JSONL and Parquet files."""

import csv
import io
import itertools
import mmap
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.in_memory import InMemory
from judgebayes.io.lines import Spans, broken_cells, line_ends, reconciled
from judgebayes.io.records import check_unpacked, encoding_of, read_lines, unpacked
from judgebayes.sentence import sentence
from judgebayes.votes.classes import listing

__all__ = ["Layout", "check_ignored", "check_writable", "notes_of", "read_table", "write_table"]

SEPARATORS = (",", ";", "\t")
MOST_TITLES = 20
"""No header stands further down."""
BLANK_LINE = re.compile(rb"\n[ \t]*\r?\n|\r[ \t]*\r")
PADDED = re.compile(rb"[\s,;\"](?:\+[0-9]|-?0[0-9]|-0[\s,;\"])")
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""How a cell begins that a spreadsheet may take for a formula."""
SUFFIXES = ".csv, .tsv, .txt, .jsonl (or .ndjson) or .parquet, the text ones also with .gz"


@dataclass(frozen=True)
class Layout:
    """How a table stands in its file, where the file itself does not tell."""

    skip_rows: int | None = None
    """Rows above the header of a CSV file; if None, rows with a first cell only are titles."""
    encoding: str | None = None
    """Of a text file that is not UTF-8 and has no byte-order mark."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out."""
    all_ignored_exist: bool = True
    """Whether a column to leave out that is not there is an error."""


def read_table(path: Path | str | InMemory, layout: Layout = Layout()) -> pd.DataFrame:
    """Return the table in a file, or that of a caller; the suffix of a file tells its format.

    Cells keep their text where they are not numbers, so that class names such as "NA" are not
    lost: what counts as a missing vote is decided by `judgebayes.votes.encode`. CSV files may be
    separated by commas, semicolons or tabs, start with a byte-order mark and a title, and have empty
    rows, as spreadsheets write them.

    Returns
    -------
    pandas.DataFrame
        Its index is the row of the file, as a spreadsheet numbers them: the header of a CSV file
        without a title is row 1. In JSONL and Parquet files, row 1 is the first record. What was
        left out, `notes_of` says.

    Raises
    ------
    JudgeBayesError
        If the file does not exist, has an unknown suffix or encoding, no rows, lacks a column that is
        to be left out, or cannot be read as what its suffix says.
    """
    frame = path.table if isinstance(path, InMemory) else _read_file(Path(path), layout)
    if len(frame) == 0:
        raise JudgeBayesError(f"{str(path)!r} has no rows.")
    frame = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise JudgeBayesError(f"{str(path)!r} has two columns named {twice[0]!r}.")
    if layout.all_ignored_exist:
        check_ignored(frame, layout.ignore, Path(path) if isinstance(path, str) else path)
    return frame.drop(columns=list(layout.ignore), errors="ignore")


def _read_file(path: Path, layout: Layout) -> pd.DataFrame:
    if path.is_dir():
        raise JudgeBayesError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.is_file():
        raise JudgeBayesError(f"There is no file {str(path)!r}.")
    kind = _kind(path)
    try:
        check_unpacked(path)
        if kind == "parquet":
            return _read_parquet(path)
        if kind == "jsonl":
            return _read_jsonl(path, layout.encoding)
        return _read_csv(path, ("\t",) if kind == "tsv" else SEPARATORS, layout)
    except JudgeBayesError:
        raise
    except UnicodeDecodeError as error:
        raise JudgeBayesError(
            f"{str(path)!r} is not {error.encoding.upper()} text (byte {error.start}). Spreadsheets "
            "also write cp1252 (Western Europe) and cp1250 (Central Europe): say --encoding cp1252, "
            "or save it as 'CSV UTF-8'."
        ) from error
    except (ValueError, OSError, EOFError, OverflowError, csv.Error, zlib.error) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise JudgeBayesError(f"{str(path)!r} cannot be read as {kind}: {reason}.") from error


def check_ignored(frame: pd.DataFrame, names: Iterable[str], path: Path | InMemory) -> None:
    """Check that a table has the columns that are to be left out.

    Raises
    ------
    JudgeBayesError
        If one of them is not there.
    """
    strange = [name for name in names if name not in frame.columns]
    if strange:
        raise JudgeBayesError(
            f"There is no column {strange[0]!r} to ignore in {str(path)!r}; it has "
            f"{listing(frame.columns, 20)}."
        )


def notes_of(frame: pd.DataFrame) -> list[str]:
    """Return in sentences what of its file is not in a table that `read_table` read."""
    return list(frame.attrs.get("notes", ()))


def check_writable(path: Path | None, *, table: bool = True) -> None:
    """Raise now what writing to a path would raise after the work.

    Raises
    ------
    JudgeBayesError
        If its folder does not exist, it is a folder itself, or, for a table, the suffix is unknown.
    """
    if path is None:
        return
    if table:
        _kind(path)
    if path.is_dir():
        raise JudgeBayesError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.absolute().parent.is_dir():
        raise JudgeBayesError(f"There is no folder {str(path.parent)!r} to write {path.name!r} to.")


def write_table(frame: pd.DataFrame, path: Path | str) -> None:
    """Write a table in the format that the suffix tells.

    In CSV and TSV files a text that a spreadsheet would run as a formula (it starts with
    ``= + - @``, their full-width forms, a tab or a line's end, and is no number) gets an apostrophe
    before it, titles of columns too: a name that begins so is another one when it is read again.
    JSONL and Parquet files, which no spreadsheet runs, keep every name.

    Raises
    ------
    JudgeBayesError
        If the suffix is unknown or the folder cannot be written to; a table that stood there stays.
    """
    path = Path(path)
    kind = _kind(path)
    check_writable(path)
    packed: Literal["gzip"] | None = "gzip" if path.suffix.lower() == ".gz" else None
    with atomically(path) as beside:
        if kind == "parquet":
            frame.to_parquet(beside, index=False)
        elif kind == "jsonl":
            frame.to_json(
                beside, orient="records", lines=True, double_precision=15, compression=packed
            )
        else:
            harmless = frame.map(_harmless).rename(columns=_harmless)
            # Only what may end a line is put in quotes: a carriage return must be such a thing.
            ends = "\r\n" if harmless.map(_has_return).to_numpy().any() else "\n"
            separator = "\t" if kind == "tsv" else ","
            harmless.to_csv(
                beside, index=False, sep=separator, lineterminator=ends, compression=packed
            )


def _kind(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    last = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    )
    kinds = {
        ".csv": "csv",
        ".tsv": "tsv",
        ".txt": "csv",  # what Excel calls Unicode text, with tabs
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".parquet": "parquet",
    }
    if last not in kinds:
        raise JudgeBayesError(
            f"{str(path)!r} has no known suffix; right would be {SUFFIXES} (a spreadsheet can be "
            "saved as CSV)."
        )
    return kinds[last]


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except Exception as error:  # of damaged files, its reader raises whatever it stumbles over
        reason = sentence(str(error).strip()) or type(error).__name__
        raise JudgeBayesError(f"{str(path)!r} cannot be read as parquet: {reason}.") from error
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


@dataclass(frozen=True)
class _Header:
    """Where the header of a CSV file stands, and how its cells are separated."""

    separator: str
    above: int
    """Rows above it, empty ones among them."""
    cells: tuple[str, ...] = ()
    titles: tuple[tuple[int, str], ...] = ()
    """The rows above it that are not empty, by number."""
    lines: int = 1
    """Lines of the file down to it, itself included."""


@contextmanager
def _text_of(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with unpacked(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def _header(lines: Iterable[str], separators: tuple[str, ...], skip: int | None) -> _Header:
    """Return the header: the first row with more than a first cell, or that after `skip` rows."""
    copies = itertools.tee(lines, len(separators))
    readers = [csv.reader(copy, delimiter=s) for copy, s in zip(copies, separators, strict=True)]
    records = zip(*readers, strict=False)
    above: list[tuple[int, str]] = []
    first: _Header | None = None
    for number, record in enumerate(itertools.islice(records, (skip or 0) + MOST_TITLES)):
        cells, separator = max(zip(record, separators, strict=True), key=lambda pair: len(pair[0]))
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            continue
        down_to = readers[separators.index(separator)].line_num
        found = _Header(separator, number, tuple(cells), tuple(above), down_to)
        if (skip is None and any(cells[1:])) or (skip is not None and number >= skip):
            return found
        if skip is None and not cells[0]:
            return found
        first = first or found
        above.append((number + 1, " ".join(cell for cell in cells if cell)))
    return first or _Header(separators[0], skip or 0)


def _read_csv(path: Path, separators: tuple[str, ...], layout: Layout) -> pd.DataFrame:
    encoding = encoding_of(path, layout.encoding)
    with _text_of(path, encoding) as text:
        header = _header(text, separators, layout.skip_rows)
    # pandas would rename the second of two columns that have one name.
    written = pd.Series([cell for cell in header.cells if cell], dtype=object)
    if written.duplicated().any():
        twice = written[written.duplicated()].iloc[0]
        raise JudgeBayesError(f"{str(path)!r} has two columns named {twice!r}.")
    options = {
        "sep": header.separator,
        "encoding": encoding,
        "skiprows": header.above,
        "index_col": False,
        "keep_default_na": False,
        "na_values": [""],
    }
    with warnings.catch_warnings():
        # A row longer than the header would become an index, or lose its end with a warning.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table = pd.read_csv(path, **options)
        except pd.errors.ParserWarning as error:
            raise JudgeBayesError(
                f"A row of {str(path)!r} has more cells than the header, row {header.above + 1}, has "
                "columns; quote cells that contain the separator, or say --skip-rows N if the header "
                "stands below N other rows."
            ) from error
    table = _told_apart(table, path, options)
    table = table.set_axis(_row_numbers(path, encoding, header, len(table)))
    spans, said = _against_lines(table, path, encoding, header, layout.ignore)
    empty = table.isna()
    blank = [n for n in table.columns if str(n).startswith("Unnamed: ") or not str(n).strip()]
    nameless = [n for n in blank if empty[n].all()]
    table = table[~empty.all(axis=1)].drop(columns=nameless)
    table.attrs["notes"] = tuple(
        f"Row {number} of {path.name}, {title!r}, stands above the header and is left out."
        for number, title in header.titles
    ) + tuple(said)
    if spans.lines:  # pandas copies attributes with every column
        table.attrs["spans"] = spans
    return table


def _against_lines(
    table: pd.DataFrame, path: Path, encoding: str, header: _Header, ignored: tuple[str, ...]
) -> tuple[Spans, list[str]]:
    """Check that no line of a file was lost; return `lines.reconciled`'s answer."""
    plain = encoding == "utf-8-sig" and path.suffix.lower() != ".gz"
    if plain and line_ends(path) == header.lines + len(table):
        return Spans({}), []
    with _text_of(path, encoding) as text:
        return reconciled(
            table,
            broken_cells(table),
            text,
            header_lines=header.lines,
            separator=header.separator,
            ignored=ignored,
            name=path.name,
        )


def _row_numbers(path: Path, encoding: str, header: _Header, rows: int) -> pd.Index:
    """Return the row of the file that each row of its table is, the first row being 1."""
    start = header.above + 2
    plain = encoding == "utf-8-sig" and path.suffix.lower() != ".gz"
    if not plain or _has(path, BLANK_LINE):
        try:
            with _text_of(path, encoding) as text:
                numbered = enumerate(csv.reader(text, delimiter=header.separator), start=1)
                found = [n for n, cells in numbered if len(cells) > 1 or "".join(cells).strip()]
        except csv.Error:  # a cell too long for it
            found = []
        found = [number for number in found if number >= start]
        if len(found) == rows:
            return pd.Index(found)
    return pd.RangeIndex(start, start + rows)


def _told_apart(table: pd.DataFrame, path: Path, options: dict[str, Any]) -> pd.DataFrame:
    """Return the table with the text of columns whose numbers are not one for each text.

    2.1 and 2.10 may be two questions, 007 and 7 two people. Votes lose nothing: their text is
    understood as a number later.
    """
    # A number may be a whole one in an unusual spelling: 007, +7, -0.
    plain = options["encoding"] == "utf-8-sig" and path.suffix.lower() != ".gz"
    kinds = "iuf" if not plain or _has(path, PADDED) else "f"
    places = [place for place, kind in enumerate(table.dtypes) if kind.kind in kinds]
    if not places:
        return table
    texts = pd.read_csv(path, usecols=places, dtype=str, **options)
    merged = {
        name: texts[name]
        for name in texts.columns
        if texts[name].str.strip().nunique() > table[name].nunique() or _inexact(table[name])
    }
    return table.assign(**merged) if merged else table


def _inexact(column: pd.Series) -> bool:
    """Tell whether whole numbers were too large to be read exactly."""
    return column.dtype.kind == "f" and bool((column.abs() >= 2**53).any())


def _has(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Tell whether a pattern stands somewhere in a file."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return pattern.search(content) is not None


def _read_jsonl(path: Path, encoding: str | None) -> pd.DataFrame:
    lines = list(read_lines(path, encoding))
    frame = pd.DataFrame.from_records([record for _, record in lines])
    return frame.set_axis([number for number, _ in lines]) if lines else frame


def _has_return(value: object) -> bool:
    return isinstance(value, str) and "\r" in value


def _harmless(value: object) -> object:
    if isinstance(value, str) and value[:1] in FORMULA:
        try:
            float(value)
        except ValueError:
            return "'" + value
    return value
