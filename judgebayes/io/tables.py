"""Read and write tables: CSV, TSV, JSONL and Parquet files; read workbooks."""

import codecs
import csv
import io
import itertools
import math
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like, is_numeric_dtype, is_object_dtype

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.in_memory import InMemory
from judgebayes.io.json_lines import (
    Written,
    check_parquet,
    json_text,
    plain_frame,
    refuse_merged_rows,
    table_of_records,
)
from judgebayes.io.options import Layout
from judgebayes.io.records import (
    check_unpacked_size,
    check_workbook,
    encoding_of,
    open_text,
    open_unpacked,
    read_json,
    read_lines,
    suffix_of,
)
from judgebayes.sentence import sentence
from judgebayes.votes.classes import listing

SEPARATORS = (",", ";", "\t")
MAX_COLUMNS = 10_000
"""Columns of a table: most steps take time for each column, however short it is."""
MAX_TITLES = 20
"""A header is searched in at most this many rows."""
FORMS = {
    r"^\s*(?:0|-?[1-9][0-9]{0,14})\s*$": "int64",
    r"^-?(?:0|[1-9][0-9]{0,14})\.[0-9]{0,14}[1-9]$": "float64",
    "^(?:True|TRUE|true|False|FALSE|false)$": "bool",
}
"""How the values of a column are written, and their type; other texts stay texts."""
SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
"""Workbooks that are not read; `.xlsx` and `.xlsm` are."""
KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "csv",  # Excel's "Unicode text", with tabs
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".xlsx": "workbook",
    ".xlsm": "workbook",
    ".json": "json",
}
"""The format by the suffix."""
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""First characters of a cell that a spreadsheet may take for a formula."""
SUFFIXES = ".csv, .tsv, .txt, .jsonl (or .ndjson) or .parquet; text formats also as .gz"
ALSO_READ = "; .json and .xlsx are read, too"


TOTAL = re.compile(
    r"(?:grand )?totals?|sum|average|mean|gesamt|summe|mittelwert|durchschnitt|moyenne|promedio",
    re.IGNORECASE,
)
"""Names of rows below a table that sum the others."""
TYPES = re.compile(
    r"\W?(?:text|string|str|int|integer|float|double|number|numeric|bool|boolean|category|object|varchar)"
    r"\d*\W?",
    re.IGNORECASE,
)
"""Cells of a row that has the types of the columns."""


def read_table(path: Path | str | InMemory, layout: Layout = Layout()) -> pd.DataFrame:  # noqa: B008
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
    source = Path(path) if isinstance(path, str) else path
    frame = (
        plain_frame(source.table) if isinstance(source, InMemory) else _read_file(source, layout)
    )
    if len(frame) == 0:
        raise JudgeBayesError(f"{str(path)!r} has no rows.")
    frame = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)
    _check_names(frame.columns, source)
    if layout.all_ignored_exist:
        check_ignored(frame, layout.ignore, source)
    frame = _without_total(frame)
    return frame.drop(columns=list(layout.ignore), errors="ignore")


def _check_names(names: Collection[str], path: Path | InMemory) -> None:
    """Refuse two columns of the same name, or so many that every step on each of them takes minutes."""
    if len(names) > MAX_COLUMNS:
        raise JudgeBayesError(
            f"{str(path)!r} has {len(names):,} columns; a table may have at most {MAX_COLUMNS:,}. Save "
            "the votes of more judges with a row per vote (columns item, judge, vote)."
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise JudgeBayesError(f"{str(path)!r} has two columns named {twice[0]!r}.")


def _has_new_cell(frame: pd.DataFrame) -> bool:
    """Tell whether a cell of the last row is no cell of its column above: a sum, and no vote."""
    plain = [c for _, c in frame.items() if pd.api.types.is_scalar(c.iloc[-1])]
    return any(pd.notna(c.iloc[-1]) and c.iloc[-1] not in c.iloc[:-1].tolist() for c in plain)


def _without_total(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without a last row that sums the others, and a first one of types: "(text)"."""
    if frame.shape[1] == 0 or len(frame) < 3:
        return frame
    last, cells = frame.iloc[-1, 0], frame.iloc[0].dropna()
    keep, notes = np.ones(len(frame), bool), []
    named = isinstance(last, str) and TOTAL.fullmatch(last.strip()) is not None
    if named and (frame.iloc[:, 0] == last).sum() == 1 and _has_new_cell(frame.iloc[:, 1:]):
        keep[-1] = False
        notes.append(f"Row {frame.index[-1]} is left out: it is named {last!r}, and is no item.")
    types = [isinstance(cell, str) and TYPES.fullmatch(cell.strip()) for cell in cells]
    if len(types) > 2 and all(types):
        keep[0] = False
        notes.append(
            f"Row {frame.index[0]} is left out: it has the types of columns, {cells.iloc[0]!r}."
        )
    return frame if keep.all() else noted(frame[keep].infer_objects(), *notes)


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
            table = _read_records(read_lines(path, layout.encoding, floats=Written), path)
        elif kind == "json":
            table = _read_records(enumerate(_objects(path), start=1), path)
        elif kind == "workbook":
            table = _read_workbook(path, layout)
        else:
            table = _read_csv(path, ("\t",) if kind == "tsv" else SEPARATORS, layout)
        unused = () if layout.encoding is None else _encoding_notes(path, kind, layout.encoding)
        return noted(table, *unused)
    except JudgeBayesError:
        raise
    except UnicodeDecodeError as error:
        raise JudgeBayesError(
            f"{str(path)!r} is not {error.encoding.upper()} text (byte {error.start}). Spreadsheets "
            "also write cp1252 (Western Europe) and cp1250 (Central Europe): use --set encoding=cp1252, "
            "or save it as 'CSV UTF-8'."
        ) from error
    except pd.errors.EmptyDataError as error:
        raise JudgeBayesError(
            f"{str(path)!r} is empty; the first line of a table has the names of its columns."
        ) from error
    except Exception as error:  # readers raise many kinds of errors for damaged files
        reason = sentence(str(error).strip()) or type(error).__name__
        form = "a workbook" if kind == "workbook" else kind
        raise JudgeBayesError(f"{str(path)!r} cannot be read as {form}: {reason}.") from error


def _encoding_notes(path: Path, kind: str, given: str) -> list[str]:
    """Return a sentence if a file is not read in the given encoding, and this makes a difference."""
    if kind in ("parquet", "workbook", "json"):
        return [f"encoding={given}: {path.name} is no text file."]
    used = encoding_of(path, given).removesuffix("-sig")
    if codecs.lookup(used).name == codecs.lookup(given.lower().removesuffix("-sig")).name:
        return []
    with open_unpacked(path) as file:
        blocks = iter(lambda: file.read(2**20), b"")
        plain = "a".encode(given) == b"a" and all(block.isascii() for block in blocks)
    note = f"encoding={given}: {path.name} is {used.upper()} and is read as such."
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


def noted(frame: pd.DataFrame, *notes: str) -> pd.DataFrame:
    """Return a table with more notes."""
    frame.attrs["notes"] = (*notes_of(frame), *notes)
    return frame


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
        _kind(path, writing=True)
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
    kind = _kind(path, writing=True)
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
            words = [name for name in frame if not is_numeric_dtype(frame[name].dtype)]
            escaped = frame.assign(**{name: frame[name].map(_escape_formula) for name in words})
            texts = {cell for name in words for cell in frame[name] if isinstance(cell, str)}
            # Some spreadsheets take a semicolon or a tab for the separator, whatever it is, and pandas
            # does not quote a carriage return.
            split = any(set(";\t\r") & set(text) for text in texts)
            escaped.rename(columns=_escape_formula).to_csv(
                beside,
                index=False,
                sep="\t" if kind == "tsv" else ",",
                compression=compression,
                quoting=csv.QUOTE_NONNUMERIC if split else csv.QUOTE_MINIMAL,
            )


def _kind(path: Path, *, writing: bool = False) -> str:
    suffix = suffix_of(path)
    kind = KINDS.get(suffix)
    if suffix == ".zip":
        raise JudgeBayesError(f"{str(path)!r} is an archive: unpack it, and name a file in it.")
    if suffix in SPREADSHEETS or (writing and kind == "workbook"):
        raise JudgeBayesError(
            f"{str(path)!r} is a workbook; .xlsx is read, and none is written: use .csv, or save it as "
            "'Excel workbook (.xlsx)' or 'CSV UTF-8' in the spreadsheet program."
        )
    if kind is None or (writing and kind == "json"):
        raise JudgeBayesError(
            f"{str(path)!r} has no known suffix; choose one of: {SUFFIXES}"
            f"{'' if writing else ALSO_READ}."
        )
    return kind


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow.parquet as pq

    check_parquet(path)
    _check_names(pq.read_schema(path).names, path)
    # With missing values, whole numbers would become floats, and large ones the same float.
    frame = pq.read_table(path).to_pandas(integer_object_nulls=True)
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
    rows: int = 1
    """Rows of the header, whose cells are joined."""


def _header(lines: Iterable[str], separators: tuple[str, ...], skip: int | None) -> _Header:
    """Return the header: the first row with more than one filled cell, or the row after `skip` rows."""
    rows = (skip or 0) + MAX_TITLES
    copies = itertools.tee(lines, len(separators))
    parsed = map(_first_records, copies, separators, itertools.repeat(rows))
    records = itertools.zip_longest(*parsed, fillvalue=list[str]())
    above: list[tuple[int, str]] = []
    first_row: _Header | None = None
    for number, record in enumerate(records):
        cells, separator = max(zip(record, separators, strict=True), key=lambda pair: len(pair[0]))
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            continue
        header = _Header(separator, number, tuple(cells), tuple(above))
        below_titles = any(cells[1:]) or not cells[0] if skip is None else number >= skip
        if below_titles:
            place = separators.index(separator)
            return _joined(header, [row[place] for row in records])
        first_row = first_row or header
        above.append((number + 1, " ".join(cell for cell in cells if cell)))
    return first_row or _Header(separators[0], skip or 0)


def _joined(header: _Header, following: list[list[str]]) -> _Header:
    """Return a header whose names are repeated, or merged cells, joined with the words below them.

    The row below has no item: its first cell is empty, or names the first column; or all of its cells
    are filled, and none is there again below. A third row with only a first cell, which pandas writes,
    names it too.
    """
    names, second = list(header.cells), [cell.strip() for cell in [*following, []][0]]
    second += [""] * (len(names) - len(second))
    several = {name for name in names if name and names.count(name) > 1}
    merged = any(word and not name for name, word in zip(names[1:], second[1:], strict=False))
    if (
        not (several or merged)
        or len(second) > len(names)
        or (second[0] and names[0] not in ("", second[0]) and not _all_new(second, following[1:]))
        or not any(second[1:])
        or any(re.fullmatch(r"[-+]?[\d.,]+", word) for word in second)
    ):
        return header
    for place in range(1, len(names)):
        names[place] = names[place] or (names[place - 1] if second[place] else "")
    cells = [
        " / ".join(dict.fromkeys(filter(None, pair))) for pair in zip(names, second, strict=True)
    ]
    third = [cell.strip() for cell in [*following, [], []][1]]
    named = bool(third) and bool(third[0]) and not any(third[1:]) and not cells[0]
    if named:
        cells[0] = third[0]
    return replace(header, cells=tuple(cells), rows=3 if named else 2)


def _all_new(cells: list[str], below: list[list[str]]) -> bool:
    """Tell whether all cells are filled, and none is one of those below it, of which some are alike."""
    columns = [*itertools.zip_longest(*below, fillvalue="")]
    if len(columns) < len(cells) or not all(cells) or len(set(cells)) < len(cells):
        return False
    again = any(len(set(filter(None, column))) < len(below) / 2 for column in columns)
    return again and all(a not in column for a, column in zip(cells, columns, strict=False))


def header_of(path: Path) -> list[str]:
    """Return the names of the columns of a table, none if it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        kind = _kind(path)
        if kind == "parquet":
            return list(pq.read_schema(path).names)
        if kind == "workbook":
            return []
        with open_text(path, encoding_of(path)) as text:
            return list(_header(text, ("\t",) if kind == "tsv" else SEPARATORS, None).cells)
    except (JudgeBayesError, OSError, EOFError, ValueError, zlib.error, pa.ArrowException):
        return []


def _first_records(lines: Iterable[str], separator: str, rows: int) -> list[list[str]]:
    """Return the first records with this separator.

    A long header is a cell that the module `csv` refuses, for all separators but its own.
    """
    records: list[list[str]] = []
    with suppress(csv.Error):
        records.extend(itertools.islice(csv.reader(lines, delimiter=separator), rows))
    return records


def _read_csv(
    path: Path, separators: tuple[str, ...], layout: Layout, sheet: str | None = None
) -> pd.DataFrame:
    """Return the table in a text file, or in the text of a workbook's sheet."""
    encoding = "utf-8" if sheet is not None else encoding_of(path, layout.encoding)
    with open_text(path, encoding) if sheet is None else io.StringIO(sheet) as text:
        header = _header(text, separators, layout.skip_rows)
    if any("\0" in cell for cell in header.cells):
        raise JudgeBayesError(
            f"The header of {str(path)!r} contains NUL characters, as UTF-16 without a byte-order mark "
            "does: use --set encoding=utf-16-le, or save it as 'CSV UTF-8'."
        )
    names = [cell or f"Unnamed: {n}" for n, cell in enumerate(header.cells)]
    _check_names(names, path)  # pandas would rename the second of two columns with the same name
    joined = header.rows > 1
    with warnings.catch_warnings():
        # Otherwise pandas makes an index of a row longer than the header, or cuts it with a warning.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            texts = pd.read_csv(
                path if sheet is None else io.StringIO(sheet),
                sep=header.separator,
                encoding=encoding,
                skiprows=header.above + (header.rows if joined else 0),
                header=None if joined else 0,
                names=names if joined else None,
                index_col=False,
                dtype=str,
                keep_default_na=False,
                na_values=[""],
                skip_blank_lines=False,
            )
        except pd.errors.ParserWarning as error:
            raise JudgeBayesError(
                f"A row of {str(path)!r} has more cells than the header (row {header.above + 1}) "
                "has columns. Quote cells that contain the separator. If the header is below N "
                "other rows, use --set skip_rows=N."
            ) from error
    texts.index += header.above + header.rows + 1
    alone = texts.iloc[:, 0][texts.iloc[:, 1:].isna().all(axis=1)].fillna("").str.strip()
    again = texts.index[texts.iloc[:, 0] == texts.columns[0]]  # the header, where files were joined
    unnamed = np.array([not n.strip() or n.startswith("Unnamed: ") for n in map(str, texts)])
    again = again[((texts.loc[again] == texts.columns) | unnamed).all(axis=1)]
    texts = texts.drop([*alone.index[alone == ""], *again])
    texts = texts.drop(columns=[n for n in texts.columns[unnamed] if texts[n].isna().all()])
    if sheet is None:
        refuse_merged_rows(texts, header.separator, layout.ignore, path.name)
    table = texts if layout.as_text else texts.apply(_as_numbers)
    truths = [name for name in table if table[name].dtype == bool]
    words = table.drop(columns=truths).isin(["True", "TRUE", "true", "False", "FALSE", "false"])
    if truths and words.to_numpy().any():  # beside TRUE, FALSE and UNSURE, they are words, too
        table[truths] = texts[truths]
    notes = [
        f"Row {number} of {path.name}, {title!r}, is above the header and is left out."
        for number, title in header.titles
    ]
    if len(again):
        notes.append(f"{len(again)} row(s) of {path.name} repeat the header and are left out.")
    if joined:
        notes.append(f"{header.rows} header rows of {path.name} are joined: {listing(names, 20)}.")
    return noted(table, *notes)


def _read_workbook(path: Path, layout: Layout) -> pd.DataFrame:
    """Return the first sheet of a workbook that is a table; cells are texts, as in CSV."""
    check_workbook(path)
    sheets = pd.read_excel(
        path, sheet_name=None, header=None, dtype=object, na_filter=False, engine="calamine"
    )
    filled = [name for name, cells in sheets.items() if min(cells.shape) > 1]
    if not filled:
        raise JudgeBayesError(f"{str(path)!r} has no sheet with a table.")
    text = io.StringIO()
    csv.writer(text).writerows(sheets[filled[0]].map(_cell_text).to_numpy().tolist())
    table = _read_csv(path, (",",), layout, text.getvalue())
    note = (
        f"Sheet {filled[0]!r} of {path.name} is read; {listing(filled[1:])} is not: to read another "
        "sheet, move it to the front."
    )
    return noted(table, note) if filled[1:] else table


def _cell_text(cell: object) -> str:
    """Return a cell of a workbook as text: a number as it was typed, a date without an empty time."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return "" if math.isnan(cell) else str(int(cell) if cell.is_integer() else cell)
    return str(cell).removesuffix(" 00:00:00") if isinstance(cell, datetime) else str(cell)


def _as_numbers(texts: pd.Series) -> pd.Series:
    """Return a column as numbers, or as true and false, if each text is the one of its value.

    2.1 and 2.10 may be two questions, 007 and 7 two people. Votes are not affected: their text is
    parsed as a number later.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pa.array(texts, pa.string(), from_pandas=True)
    if cells.null_count == len(cells):
        return texts.astype(float)
    first = cells.drop_null()[0].as_py()
    for form, kind in FORMS.items():
        if re.search(form, first) and pc.all(pc.match_substring_regex(cells, form)).as_py():
            values = pc.utf8_trim_whitespace(cells).cast(kind)
            return pd.Series(values.to_pandas().to_numpy(), texts.index)
    return texts


def _objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a JSON file: a list of them, or columns and data."""
    records = read_json(path, floats=Written)
    if isinstance(records, dict) and records.keys() == {"columns", "data"}:  # pandas' split form
        with suppress(TypeError, ValueError):
            names = [*map(str, records["columns"])]
            records = [dict(zip(names, row, strict=True)) for row in records["data"]]
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise JudgeBayesError(
            f"{str(path)!r} is no list of objects, and no known tool writes it: save the votes as a "
            'list of objects, [{"item": ..., "vote": ...}, ...], or as CSV.'
        )
    return records


def _read_records(records: Iterable[tuple[int, dict[str, Any]]], path: Path) -> pd.DataFrame:
    """Return the table of records with their numbers."""
    frame = table_of_records(records)
    # Blank lines at the end are nobody's records.
    blank = max(frame.index, default=0) - frame.index.nunique()
    note = f"{blank} blank line(s) of {path.name} are left out."
    return noted(frame, note) if blank else frame


def _escape_formula(value: object) -> object:
    if isinstance(value, str) and value[:1] in FORMULA:
        with suppress(ValueError):
            float(value)
            return value
        return "'" + value
    return value
