"""Read and write tables: CSV, TSV, JSONL and Parquet files."""

import codecs
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
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pandas.api.types import is_list_like, is_numeric_dtype, is_object_dtype

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.cell_lengths import check_cells
from judgebayes.io.in_memory import InMemory
from judgebayes.io.json_lines import Columns, columns_of_lines, json_text
from judgebayes.io.lengths import BLOCK, MAX_TEXT, check_cells_before, short_lines
from judgebayes.io.lines import Spans, count_lines, multiline_cells, reconcile_lines
from judgebayes.io.parquet import check_parquet
from judgebayes.io.read_once import remembered
from judgebayes.io.records import (
    MAX_GZIP_RATIO,
    MAX_UNPACKED_BYTES,
    check_unpacked_size,
    encoding_of,
    open_unpacked,
)
from judgebayes.sentence import sentence
from judgebayes.votes.classes import listing

__all__ = ["Layout", "check_ignored", "check_writable", "notes_of", "read_table", "write_table"]

SEPARATORS = (",", ";", "\t")
MAX_SPARSE_CELLS, MAX_CELL_RATIO = 2**24, 20
"""Records that make a table with more cells are refused above this ratio of cells to values."""
MAX_COLUMNS = 10_000
"""Columns of a table: most steps take time for each column, however short it is."""
MAX_TITLES = 20
"""A header is searched in at most this many rows."""
BLANK_LINE = re.compile(rb"\n[ \t]*\r?\n|\r[ \t]*\r")
NOT_PLAIN = r"^[+\s]|\s$|^-?0\d|^-?\.|\.\d*0$|\.$|\d{16}|[^-.\d]|^-0$"
"""The text of a number that is not the one that the number is written as."""
PADDED = re.compile(rb"[\s,;\"](?:\+[0-9]|-?0[0-9]|-0[\s,;\"])")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""First characters of a cell that a spreadsheet may take for a formula."""
SUFFIXES = ".csv, .tsv, .txt, .jsonl (or .ndjson) or .parquet; text formats also as .gz"


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


def read_table(path: Path | str | InMemory, layout: Layout = Layout()) -> pd.DataFrame:
    """Return the table in a file or in memory; the suffix of a file determines its format.

    Cells that are not numbers keep their text, so that class names such as "NA" are not lost;
    `judgebayes.votes.encode` decides what is a missing vote. CSV files may be separated by commas,
    semicolons or tabs, start with a byte-order mark and title rows, and have empty rows, as spreadsheets
    write them.

    Returns
    -------
    pandas.DataFrame
        Its index is the row number in the file, as in a spreadsheet: the header of a CSV file without a
        title is row 1. In JSONL and Parquet files, row 1 is the first record. `notes_of` describes
        what was left out.

    Raises
    ------
    JudgeBayesError
        If the file does not exist, has an unknown suffix or encoding, has no rows, lacks a column that
        is to be left out, or cannot be read in the format of its suffix.
    """
    if isinstance(path, InMemory):
        frame = path.table
    else:
        file = Path(path)
        key = (file, layout.skip_rows, layout.encoding, layout.ignore, layout.as_text)
        frame = remembered(key, lambda: _read_file(file, layout))
    if len(frame) == 0:
        raise JudgeBayesError(f"{str(path)!r} has no rows.")
    frame = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)
    duplicates = frame.columns[frame.columns.duplicated()]
    if len(duplicates):
        raise JudgeBayesError(f"{str(path)!r} has two columns named {duplicates[0]!r}.")
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
        check_unpacked_size(path)
        if kind == "parquet":
            table = _read_parquet(path)
        elif kind == "jsonl":
            table = _read_jsonl(path, layout.encoding)
        else:
            table = _read_csv(path, ("\t",) if kind == "tsv" else SEPARATORS, layout)
        if _may_be_long(path):
            check_cells(table, repr(str(path)))
        if layout.encoding is not None:
            table.attrs["notes"] = (*notes_of(table), *_encoding_notes(path, kind, layout.encoding))
        return table
    except JudgeBayesError:
        raise
    except UnicodeDecodeError as error:
        raise JudgeBayesError(
            f"{str(path)!r} is not {error.encoding.upper()} text (byte {error.start}). Spreadsheets "
            "also write cp1252 (Western Europe) and cp1250 (Central Europe): use --encoding cp1252, "
            "or save it as 'CSV UTF-8'."
        ) from error
    except (ValueError, OSError, EOFError, OverflowError, csv.Error, zlib.error) as error:
        if isinstance(error, pd.errors.EmptyDataError):
            raise JudgeBayesError(
                f"{str(path)!r} is empty; the first line of a table has the names of its columns."
            ) from error
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, csv.Error) and "field limit" in reason:
            reason = (
                f"a cell near its beginning has more than {csv.field_size_limit():,} characters, so no "
                "row can be the header"
            )
        raise JudgeBayesError(f"{str(path)!r} cannot be read as {kind}: {reason}.") from error


def _encoding_notes(path: Path, kind: str, given: str) -> list[str]:
    """Return a sentence if a file is not read in the given encoding, and this makes a difference."""
    if kind == "parquet":
        return [f"--encoding {given}: {path.name} is no text file."]
    used = encoding_of(path, given)
    name = used.removesuffix("-sig")
    if codecs.lookup(name).name == codecs.lookup(given.lower().removesuffix("-sig")).name:
        return []
    with open_unpacked(path) as file:
        plain = "a".encode(given) == b"a" and all(
            block.isascii() for block in iter(lambda: file.read(2**20), b"")
        )
    note = f"--encoding {given}: {path.name} is {name.upper()} and is read as such."
    return [] if plain else [note]


def check_ignored(frame: pd.DataFrame, names: Iterable[str], path: Path | InMemory) -> None:
    """Check that a table has the columns that are to be left out.

    Raises
    ------
    JudgeBayesError
        If one of them does not exist.
    """
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise JudgeBayesError(
            f"There is no column {unknown[0]!r} to ignore in {str(path)!r}; it has "
            f"{listing(frame.columns, 20)}."
        )


def notes_of(frame: pd.DataFrame) -> list[str]:
    """Return sentences about the parts of the file that are not in a table from `read_table`."""
    return list(frame.attrs.get("notes", ()))


def check_writable(path: Path | None, *, table: bool = True) -> None:
    """Check, before the work starts, that a path can be written to.

    Raises
    ------
    JudgeBayesError
        If its folder does not exist, the path is itself a folder, or, for a table, the suffix is
        unknown.
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
    """Write a table in the format of the path's suffix.

    In CSV and TSV files, cells and column names that a spreadsheet would run as a formula (they start
    with ``= + - @``, their full-width forms, a tab or a line break, and are not numbers) get an
    apostrophe in front, so they differ when they are read again. JSONL and Parquet files keep every
    text.

    Raises
    ------
    JudgeBayesError
        If the suffix is unknown or the folder cannot be written to; an existing file is then unchanged.
    """
    path = Path(path)
    kind = _kind(path)
    check_writable(path)
    compression: Literal["gzip"] | None = "gzip" if path.suffix.lower() == ".gz" else None
    with atomically(path) as beside:
        if kind == "parquet":
            frame.to_parquet(beside, index=False)
        elif kind == "jsonl":
            frame.to_json(
                beside, orient="records", lines=True, double_precision=15, compression=compression
            )
        else:
            texts = {text for _, column in frame.items() for text in _texts(column)}
            safe = all(_escape_formula(text) is text for text in texts)
            # Some spreadsheets take a semicolon or a tab for the separator, whatever it is.
            split = any(set(";\t") & set(text) for text in texts)
            escaped = (frame if safe else frame.map(_escape_formula)).rename(
                columns=_escape_formula
            )
            # pandas quotes a carriage return only if it is part of the line terminator.
            line_end = "\r\n" if any(_has_return(c) for _, c in escaped.items()) else "\n"
            separator = "\t" if kind == "tsv" else ","
            escaped.to_csv(
                beside,
                index=False,
                sep=separator,
                lineterminator=line_end,
                compression=compression,
                quoting=csv.QUOTE_NONNUMERIC if split else csv.QUOTE_MINIMAL,
            )


def _kind(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    last = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    )
    kinds = {
        ".csv": "csv",
        ".tsv": "tsv",
        ".txt": "csv",  # Excel's "Unicode text", with tabs
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".parquet": "parquet",
    }
    if last in SPREADSHEETS:
        raise JudgeBayesError(
            f"{str(path)!r} is a workbook, which is neither read nor written; use .csv, and save a "
            "sheet of votes as 'CSV UTF-8' in the spreadsheet program."
        )
    if last not in kinds:
        raise JudgeBayesError(
            f"{str(path)!r} has no known suffix; choose one of: {SUFFIXES} (a spreadsheet can be "
            "saved as CSV)."
        )
    return kinds[last]


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow.parquet as pq

    try:
        check_parquet(path, MAX_UNPACKED_BYTES)
        _check_width(len(pq.read_schema(path).names), path)
        # With missing values, whole numbers would become floats, and large ones the same float.
        frame = pq.read_table(path).to_pandas(integer_object_nulls=True)
    except JudgeBayesError:
        raise
    except Exception as error:  # the reader raises many kinds of errors for damaged files
        reason = sentence(str(error).strip()) or type(error).__name__
        raise JudgeBayesError(f"{str(path)!r} cannot be read as parquet: {reason}.") from error
    for name in frame.columns:
        filled = frame[name].dropna()
        if is_object_dtype(filled) and len(filled) and isinstance(filled.iloc[0], Decimal):
            frame[name] = frame[name].map(str, na_action="ignore")
        if is_object_dtype(filled) and filled.map(is_list_like).any():
            frame[name] = [json_text(v) if is_list_like(v) else v for v in frame[name]]
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


@dataclass(frozen=True)
class _Header:
    """The position and the separator of the header of a CSV file."""

    separator: str
    above: int
    """Rows above the header, including empty ones."""
    cells: tuple[str, ...] = ()
    titles: tuple[tuple[int, str], ...] = ()
    """The rows above the header that are not empty, with their numbers."""
    lines: int = 1
    """Lines of the file down to the header, inclusive."""


def _may_be_long(path: Path) -> bool:
    """Tell whether a file is large enough for a cell that is too long; packed files are."""
    packed = path.suffix.lower() in (".gz", ".parquet")
    return path.stat().st_size * (MAX_GZIP_RATIO if packed else 1) > MAX_TEXT


def _check_width(columns: int, path: Path) -> None:
    """Refuse a table with so many columns that every step on each of them takes minutes."""
    if columns > MAX_COLUMNS:
        raise JudgeBayesError(
            f"{str(path)!r} has {columns:,} columns; a table may have at most {MAX_COLUMNS:,}. Save the "
            "votes of more judges with a row per vote (columns item, judge, vote)."
        )


@contextmanager
def _text_of(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with open_unpacked(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def _header(lines: Iterable[str], separators: tuple[str, ...], skip: int | None) -> _Header:
    """Return the header: the first row with more than one filled cell, or the row after `skip` rows."""
    copies = itertools.tee(lines, len(separators))
    readers = [csv.reader(copy, delimiter=s) for copy, s in zip(copies, separators, strict=True)]
    endless: list[csv.Error] = []
    records = zip(*(_short_records(reader, endless) for reader in readers), strict=False)
    above: list[tuple[int, str]] = []
    first_row: _Header | None = None
    for number, record in enumerate(itertools.islice(records, (skip or 0) + MAX_TITLES)):
        cells, separator = max(zip(record, separators, strict=True), key=lambda pair: len(pair[0]))
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            continue
        down_to = readers[separators.index(separator)].line_num
        header = _Header(separator, number, tuple(cells), tuple(above), down_to)
        if (skip is None and any(cells[1:])) or (skip is not None and number >= skip):
            return header
        if skip is None and not cells[0]:
            return header
        first_row = first_row or header
        above.append((number + 1, " ".join(cell for cell in cells if cell)))
    if len(endless) == len(separators):
        raise endless[0]
    return first_row or _Header(separators[0], skip or 0)


def _short_records(reader: Iterator[list[str]], endless: list[csv.Error]) -> Iterator[list[str]]:
    """Yield the records of a reader, and records without cells after a cell without end.

    A long header is such a cell for all separators but its own.
    """
    try:
        yield from reader
    except csv.Error as error:
        if "field limit" not in str(error):
            raise
        endless.append(error)
        yield from itertools.repeat([])


def _read_csv(path: Path, separators: tuple[str, ...], layout: Layout) -> pd.DataFrame:
    encoding = encoding_of(path, layout.encoding)
    with _text_of(path, encoding) as text:
        header = _header(short_lines(text, repr(str(path))), separators, layout.skip_rows)
    if _may_be_long(path):
        with open_unpacked(path) as file:
            blocks = iter(lambda: file.read(BLOCK), b"")
            check_cells_before(blocks, header.separator, repr(str(path)))
    _check_width(len(header.cells), path)
    # pandas would rename the second of two columns with the same name.
    if any("\0" in cell for cell in header.cells):
        raise JudgeBayesError(
            f"The header of {str(path)!r} contains NUL characters, as UTF-16 without a byte-order mark "
            "does: use --encoding utf-16-le, or save it as 'CSV UTF-8'."
        )
    header_cells = pd.Series([cell for cell in header.cells if cell], dtype=object)
    if header_cells.duplicated().any():
        duplicate = header_cells[header_cells.duplicated()].iloc[0]
        raise JudgeBayesError(f"{str(path)!r} has two columns named {duplicate!r}.")
    options = {
        "sep": header.separator,
        "encoding": encoding,
        "skiprows": header.above,
        "index_col": False,
        "keep_default_na": False,
        "na_values": [""],
    }
    with warnings.catch_warnings():
        # Otherwise pandas makes an index of a row longer than the header, or cuts it with a warning.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table = pd.read_csv(path, **options)
        except pd.errors.ParserWarning as error:
            raise JudgeBayesError(
                f"A row of {str(path)!r} has more cells than the header (row {header.above + 1}) "
                "has columns. Quote cells that contain the separator. If the header is below N "
                "other rows, use --skip-rows N."
            ) from error
    table = _as_written(table, path, options, every=layout.as_text)
    table = table.set_axis(_row_numbers(path, encoding, header, len(table)))
    spans, line_notes = _check_lines(table, path, encoding, header, layout.ignore)
    empty = table.isna()
    unnamed = [n for n in table.columns if str(n).startswith("Unnamed: ") or not str(n).strip()]
    empty_unnamed = [n for n in unnamed if empty[n].all()]
    blank = empty.all(axis=1)
    table = (table[~blank] if blank.any() else table).drop(columns=empty_unnamed)
    table.attrs["notes"] = tuple(
        f"Row {number} of {path.name}, {title!r}, is above the header and is left out."
        for number, title in header.titles
    ) + tuple(line_notes)
    if spans.lines:  # pandas copies attributes with every column
        table.attrs["spans"] = spans
    return table


def _check_lines(
    table: pd.DataFrame, path: Path, encoding: str, header: _Header, ignored: tuple[str, ...]
) -> tuple[Spans, list[str]]:
    """Check that no line of a file was lost; return the result of `reconcile_lines`."""
    is_plain_utf8 = encoding == "utf-8-sig" and path.suffix.lower() != ".gz"
    if is_plain_utf8 and count_lines(path) == header.lines + len(table):
        return Spans({}), []
    with _text_of(path, encoding) as text:
        return reconcile_lines(
            table,
            multiline_cells(table),
            text,
            header_lines=header.lines,
            separator=header.separator,
            ignored=ignored,
            name=path.name,
        )


def _row_numbers(path: Path, encoding: str, header: _Header, rows: int) -> pd.Index:
    """Return the row number in the file, from 1, of each row of its table."""
    start = header.above + 2
    is_plain_utf8 = encoding == "utf-8-sig" and path.suffix.lower() != ".gz"
    if not is_plain_utf8 or _has(path, BLANK_LINE):
        try:
            with _text_of(path, encoding) as text:
                numbered = enumerate(csv.reader(text, delimiter=header.separator), start=1)
                numbers = [n for n, cells in numbered if len(cells) > 1 or "".join(cells).strip()]
        except csv.Error:  # a cell longer than the csv module's limit
            numbers = []
        numbers = [number for number in numbers if number >= start]
        if len(numbers) == rows:
            return pd.Index(numbers)
    return pd.RangeIndex(start, start + rows)


def _as_written(
    table: pd.DataFrame, path: Path, options: dict[str, Any], *, every: bool
) -> pd.DataFrame:
    """Replace numbers by their text in columns where a text is not that of its number, or in every one.

    2.1 and 2.10 may be two questions, 007 and 7 two people. Votes are not affected: their text is
    parsed as a number later.
    """
    # Integer columns need the check only if a spelling such as 007, +7 or -0 occurs.
    is_plain_utf8 = options["encoding"] == "utf-8-sig" and path.suffix.lower() != ".gz"
    kinds = "iuf" if not is_plain_utf8 or _has(path, PADDED) else "f"
    kinds = "iufb" if every else kinds
    places = [place for place, kind in enumerate(table.dtypes) if kind.kind in kinds]
    if not places:
        return table
    texts = pd.read_csv(path, usecols=places, dtype=str, **options)
    text_columns = {name: texts[name] for name in texts.columns if every or not _plain(texts[name])}
    return table.assign(**text_columns) if text_columns else table


def _plain(texts: pd.Series) -> bool:
    """Tell whether the texts are those of the numbers that pandas makes of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pa.array(texts.dropna(), pa.string())
    fractions = pc.match_substring(cells, ".")
    mixed = pc.any(fractions).as_py() and not pc.all(fractions).as_py()  # 7 would become 7.0
    return not mixed and not pc.any(pc.match_substring_regex(cells, NOT_PLAIN)).as_py()


def _has(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Tell whether a pattern matches anywhere in a file."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return pattern.search(content) is not None


def _read_jsonl(path: Path, encoding: str | None) -> pd.DataFrame:
    columns = Columns()
    for columns in columns_of_lines(path, encoding):
        _check_width(columns.fields, path)
        _check_not_sparse(columns, path)
    if not columns.rows:
        return pd.DataFrame()
    frame = columns.table()
    blank = columns.last_line - columns.rows  # blank lines at the end are no records of anybody
    if blank:
        frame.attrs["notes"] = (f"{blank} blank line(s) of {path.name} are left out.",)
    return frame


def _check_not_sparse(columns: Columns, path: Path) -> None:
    """Refuse records whose table would be much larger than they are, because their fields differ."""
    n_fields, rows = columns.fields, columns.rows
    cells = n_fields * rows
    if cells > MAX_SPARSE_CELLS and cells > MAX_CELL_RATIO * columns.values:
        raise JudgeBayesError(
            f"{str(path)!r} has {n_fields:,} different fields in {rows:,} lines, "
            f"{columns.values / rows:.3g} in a line on average: no table of votes is so sparse. Use "
            "the same fields in every line."
        )


def _has_return(column: pd.Series) -> bool:
    """Tell whether a cell contains a carriage return."""
    return any("\r" in text for text in _texts(column))


def _texts(column: pd.Series) -> set[str]:
    """Return the different texts of a column."""
    if is_numeric_dtype(column.dtype):
        return set()
    try:
        cells = column.unique()
    except TypeError:  # lists and the like
        cells = column
    return {cell for cell in cells if isinstance(cell, str)}


def _escape_formula(value: object) -> object:
    if isinstance(value, str) and value[:1] in FORMULA:
        try:
            float(value)
        except ValueError:
            return "'" + value
    return value
