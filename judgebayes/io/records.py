"""JSON and JSONL files, and the files of a folder.

JSON objects whose fields have different names: of two with one name, it is unknown which counts.
"""

import codecs
import gzip
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, reduce
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from its fields, for `json.loads(text, object_pairs_hook=unique_fields)`.

    Raises
    ------
    ValueError
        If two fields have the same name.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"an object with two fields named {twice!r}")
    return fields


BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks of encodings other than UTF-8, the longer ones first."""
NOT_TEXT = ("\0", "\x1b")
"""Characters that are valid UTF-8 but never occur in text: the file has another encoding."""

SURROGATE_ESCAPE = "\\ud"
"""The start of a surrogate escape in JSON; a text cut inside a pair ends with a lone surrogate."""
MAX_UNPACKED_BYTES = 8 * 2**30
"""A compressed file that unpacks to more than this is refused."""
MAX_GZIP_RATIO = 1032
"""The largest ratio of unpacked to packed size in gzip."""
SMALL_BYTES = 64 * 2**20
MAX_RATIO = 100
"""A file that unpacks to more than `SMALL_BYTES` is refused above this ratio."""
MAX_JSON_BYTES = 512 * 2**20
"""A JSON file with more is refused, like a member of an archive."""
MAX_CELLS = 20_000_000
"""A workbook with more places up to its last cells is refused."""
PLACE = re.compile(rb"""\br=["']([A-Z]{1,3})(\d{1,7})["']""")
"""The place of a cell in the XML of a sheet."""
LINES = (".jsonl", ".ndjson")
"""Suffixes of files with an object per line."""
MAX_DEPTH = 100
"""Maximal levels of nesting: Python cannot even print a value of many more."""
MAX_DIGITS = 300
"""Whole numbers with more digits are read as floats."""


def suffix_of(path: Path) -> str:
    """Return the suffix of a file in lower case, without that of its compression."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def find_files(path: Path, patterns: tuple[str, ...], form: str) -> list[Path]:
    """Return the file, or the files at any depth of a folder whose names match a pattern.

    Raises
    ------
    JudgeBayesError
        If there is no such file or folder, or no file in it matches.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise JudgeBayesError(f"There is no file or folder {str(path)!r}.")
    files = sorted({file for p in patterns for file in path.rglob(p) if file.is_file()})
    if not files:
        raise JudgeBayesError(
            f"The folder {str(path)!r} contains no files of the format {form}: no file is named "
            f"{' or '.join(patterns)}."
        )
    return files


def check_unpacked_size(path: Path) -> None:
    """Refuse a compressed file that is too large when unpacked, before it fills the memory.

    Raises
    ------
    JudgeBayesError
        If the file is too large or damaged.
    """
    if path.suffix.lower() != ".gz":
        return
    packed = path.stat().st_size
    most = min(MAX_UNPACKED_BYTES, max(SMALL_BYTES, packed * MAX_RATIO))
    if packed * MAX_GZIP_RATIO <= most:
        return
    try:
        with gzip.open(path) as content:
            too_large = content.seek(most + 1) > most
    except (OSError, EOFError, zlib.error) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be unpacked: {_reason(error)}.") from error
    if too_large:
        raise JudgeBayesError(
            f"{str(path)!r} is more than {MAX_RATIO} times as large when unpacked, or has more than "
            f"{MAX_UNPACKED_BYTES / 2**30:,.0f} GiB when unpacked: see what it contains, and save it as "
            "Parquet or in parts."
        )


def check_members(members: Sequence[tuple[str, int]], path: Path) -> None:
    """Refuse an archive by the names and sizes of its members: too large, or two with one name.

    Raises
    ------
    JudgeBayesError
        If it is too large, or two members have the same name.
    """
    for name, size, most in (
        *((f"{name!r} in ", size, MAX_JSON_BYTES) for name, size in members),
        ("", sum(size for _, size in members), MAX_UNPACKED_BYTES),
    ):
        if size > most:
            raise JudgeBayesError(
                f"{name}{str(path)!r} has {size / 2**20:,.0f} MiB when unpacked; the limit is "
                f"{most / 2**20:,.0f} MiB."
            )
    twice = [name for name, n in Counter(name for name, _ in members).items() if n > 1]
    if twice:
        raise JudgeBayesError(f"{str(path)!r} has two members named {twice[0]!r}.")


def check_workbook(path: Path) -> None:
    """Refuse a workbook whose sheets need too much memory, by the size of its parts and the last cells.

    A reader makes a cell for every place up to the last row and column, however few of them are filled.

    Raises
    ------
    JudgeBayesError
        If it is too large.
    zipfile.BadZipFile
        If it is no workbook.
    """
    with zipfile.ZipFile(path) as archive:
        check_members([(m.filename, m.file_size) for m in archive.infolist()], path)
        cells = 0
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                columns, height = {b"A"}, 1
                for place in PLACE.finditer(archive.read(name)):
                    columns.add(place[1])
                    height = max(height, int(place[2]))
                last = max(columns, key=lambda letters: (len(letters), letters))
                cells += height * reduce(lambda n, letter: 26 * n + letter - 64, last, 0)
    if cells > MAX_CELLS:
        raise JudgeBayesError(
            f"{str(path)!r} is too large for a workbook of votes ({cells:,} cells up to the last ones); "
            "save the sheet as 'CSV UTF-8'."
        )


def open_unpacked(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for its bytes; a .gz file is unpacked."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Open a file for its text, with line breaks as they are; a .gz file is unpacked."""
    with open_unpacked(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def encoding_of(path: Path, given: str | None = None) -> str:
    """Return the encoding of a text file: by its byte-order mark, else UTF-8 if valid, else `given`.

    Raises
    ------
    JudgeBayesError
        If the given encoding is unknown.
    """
    if given is not None:
        try:
            b"a".decode(given)
        except UnicodeError:
            pass  # an encoding with several bytes per character
        except (LookupError, ValueError) as error:
            raise JudgeBayesError(
                f"encoding={given!r} is unknown; use cp1252 (Western spreadsheets), "
                "cp1250, utf-16, shift_jis or another of Python's encodings."
            ) from error
    with open_unpacked(path) as file:
        first = file.read(4)
    mark = next((BOMS[mark] for mark in BOMS if first.startswith(mark)), None)
    if mark is not None or given is None:
        return mark or "utf-8-sig"
    try:
        with open_text(path, "utf-8") as text:
            while block := text.read(2**20):
                if any(character in block for character in NOT_TEXT):
                    return given
    except UnicodeDecodeError:
        return given
    return "utf-8-sig"


def read_lines(
    path: Path, encoding: str | None = None, floats: Callable[[str], Any] = float
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSONL file with their line numbers; empty lines are skipped.

    A file that is not UTF-8 and has no byte-order mark is read in the given encoding. `floats` makes a
    value of the text of a number that is not whole.

    Raises
    ------
    JudgeBayesError
        If a line is not a JSON object, or the file is not text.
    """
    check_unpacked_size(path)
    what = repr(str(path))
    try:
        with open_text(path, encoding_of(path, encoding)) as lines:
            for number, line in enumerate(lines, start=1):
                if text := line.strip():
                    where = f"Line {number} of {what}"
                    record = parse_json(text, where, "one object per line", floats)
                    if not isinstance(record, dict):
                        raise JudgeBayesError(
                            f"{where} is not an object but {type(record).__name__}; a JSONL file has "
                            'one object per line, {"item": ..., "vote": ...}.'
                        )
                    yield number, record
    except (UnicodeError, OSError, EOFError, zlib.error) as error:
        raise JudgeBayesError(f"{what} cannot be read as JSONL: {_reason(error)}.") from error


def read_json(path: Path, floats: Callable[[str], Any] = float) -> Any:
    """Return the value in a JSON file; `floats` is as for `read_lines`.

    Raises
    ------
    JudgeBayesError
        If the file is not JSON.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise JudgeBayesError(
                f"{str(path)!r} has {path.stat().st_size / 2**20:,.0f} MiB; a JSON file may have at "
                f"most {MAX_JSON_BYTES / 2**20:,.0f} MiB. Save it in parts."
            )
        text = path.read_text(encoding=encoding_of(path))
    except (UnicodeError, OSError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be read as JSON: {_reason(error)}.") from error
    return parse_json(text, repr(str(path)), floats=floats)


def field_of(record: object, name: str, where: str) -> Any:
    """Return a field of a record.

    Raises
    ------
    JudgeBayesError
        If the record is not an object or lacks the field.
    """
    if not isinstance(record, dict):
        raise JudgeBayesError(f"{where} is not an object but {type(record).__name__}.")
    if name not in record:
        raise JudgeBayesError(
            f"{where} has no field {name!r}; it has {', '.join(map(repr, list(record)[:12]))}."
        )
    return record[name]


def parse_json(
    text: str, what: str, expected: str = "one value", floats: Callable[[str], Any] = float
) -> Any:
    """Return the value of a JSON text; `floats` is as for `read_lines`.

    Raises
    ------
    JudgeBayesError
        If the text is not JSON.
    """
    try:
        value = _decoder(floats).decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
            raise JudgeBayesError(f"{what} is nested too deeply to be read.")
        if SURROGATE_ESCAPE in text.lower():  # a lone one becomes "?", so that it can be written
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        return value
    except json.JSONDecodeError as error:
        raise JudgeBayesError(
            f"{what} is not JSON ({error.msg}, line {error.lineno}); expected {expected}."
        ) from error
    except ValueError as error:
        raise JudgeBayesError(f"{what} has {error}; it is unknown which counts.") from error
    except RecursionError as error:
        raise JudgeBayesError(f"{what} is nested too deeply to be read.") from error


@cache
def _decoder(floats: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(parse_int=_integer, parse_float=floats, object_pairs_hook=unique_fields)


def _is_too_deep(value: Any) -> bool:
    """Tell whether a value has more than `MAX_DEPTH` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        parts = [part for part in level if isinstance(part, list | dict)]
        level = [x for part in parts for x in (part if isinstance(part, list) else part.values())]
    return any(isinstance(part, list | dict) for part in level)


def _integer(digits: str) -> int | float:
    """Return a whole number, or a (perhaps infinite) float if it has more than `MAX_DIGITS` digits."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not {error.encoding.upper()} text (byte {error.start})"
    return str(getattr(error, "strerror", None) or error)
