"""Records in JSON and JSONL files, and the files of a folder."""

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError

__all__ = [
    "check_unpacked",
    "encoding_of",
    "field_of",
    "find_files",
    "parse_json",
    "read_json",
    "read_lines",
    "unpacked",
]

BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""What files in other encodings than UTF-8 begin with; the longer marks first."""
NOT_TEXT = (0, 0x1B)
"""Bytes that UTF-8 allows and no text has: another encoding is meant."""

HALF = "\\ud"
"""How JSON escapes the halves of a character; cut texts end with one that has no other half."""
UNPACKED_BYTES = 8 * 2**30
"""No table is so large in a compressed file."""
MOST_GROWTH = 1032
"""What gzip can make of a byte."""
DEEPEST = 100
"""Levels of nesting. Of a value of many more, Python cannot even write down what it is."""
DIGITS = 300
"""Whole numbers of more digits do not fit into a float."""


def find_files(path: Path, patterns: tuple[str, ...], what: str) -> list[Path]:
    """Return a file, or the files of a folder, at any depth, whose names match a pattern.

    Raises
    ------
    JudgeBayesError
        If nothing is there.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise JudgeBayesError(f"There is no file or folder {str(path)!r}.")
    found = sorted({file for p in patterns for file in path.rglob(p) if file.is_file()})
    if not found:
        raise JudgeBayesError(
            f"The folder {str(path)!r} holds no {what}: no file is named {' or '.join(patterns)}."
        )
    return found


def check_unpacked(path: Path) -> None:
    """Refuse a compressed file that is too large when unpacked, before it fills the memory.

    Raises
    ------
    JudgeBayesError
        If it is, or if it is damaged.
    """
    # No file grows more than so many times.
    if path.suffix.lower() != ".gz" or path.stat().st_size * MOST_GROWTH <= UNPACKED_BYTES:
        return
    size = 0
    try:
        with gzip.open(path) as content:
            while block := content.read(2**24):
                size += len(block)
                if size > UNPACKED_BYTES:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be unpacked: {_reason(error)}.") from error
    if size > UNPACKED_BYTES:
        raise JudgeBayesError(
            f"{str(path)!r} is more than {UNPACKED_BYTES / 2**30:,.0f} GiB large when unpacked; save it "
            "as Parquet, or in parts."
        )


def unpacked(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file, or what is packed in a .gz file, for its bytes."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def encoding_of(path: Path, given: str | None = None) -> str:
    """Return the encoding of a text file: that of its mark, UTF-8 if it is, else the given one.

    Raises
    ------
    JudgeBayesError
        If the given one is unknown.
    """
    if given is not None:
        try:
            b"a".decode(given)
        except UnicodeError:
            pass  # an encoding of several bytes
        except (LookupError, ValueError) as error:
            raise JudgeBayesError(
                f"--encoding {given!r} is unknown; right would be cp1252 (Western spreadsheets), "
                "cp1250, utf-16, shift_jis or another that Python knows."
            ) from error
    with unpacked(path) as file:
        first = file.read(4)
        mark = next((BOMS[mark] for mark in BOMS if first.startswith(mark)), None)
        if mark is not None or given is None:
            return mark or "utf-8-sig"
        decoder, block = codecs.getincrementaldecoder("utf-8")(), first
        try:
            while block:
                if any(byte in block for byte in NOT_TEXT):
                    return given
                decoder.decode(block)
                block = file.read(2**20)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return given
    return "utf-8-sig"


def read_lines(path: Path, encoding: str | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSONL file with their line numbers; empty lines are skipped.

    A file that is not UTF-8 and has no mark of its own is read in the encoding that is given.

    Raises
    ------
    JudgeBayesError
        If a line is not a JSON object, or the file is not text.
    """
    check_unpacked(path)
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding=encoding_of(path, encoding)) as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                record = _parsed(line, f"Line {number} of {str(path)!r}", "one object a line")
                if not isinstance(record, dict):
                    raise JudgeBayesError(
                        f"Line {number} of {str(path)!r} is no object but {type(record).__name__}; a "
                        'JSONL file has one object a line, {"item": ..., "vote": ...}.'
                    )
                yield number, record
    except (UnicodeError, OSError, EOFError, zlib.error) as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be read as JSONL: {_reason(error)}."
        ) from error


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises
    ------
    JudgeBayesError
        If it is not JSON.
    """
    try:
        text = path.read_text(encoding=encoding_of(path))
    except (UnicodeError, OSError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be read as JSON: {_reason(error)}.") from error
    return _parsed(text, repr(str(path)), "one value")


def parse_json(content: bytes, what: str) -> Any:
    """Return what JSON text in UTF-8 says.

    Raises
    ------
    JudgeBayesError
        If it is not JSON.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JudgeBayesError(f"{what} is not UTF-8 text (byte {error.start}).") from error
    return _parsed(text, what, "one value")


def field_of(record: object, name: str, where: str) -> Any:
    """Return a field of a record.

    Raises
    ------
    JudgeBayesError
        If the record is no object or lacks the field.
    """
    if not isinstance(record, dict):
        raise JudgeBayesError(f"{where} is no object but {type(record).__name__}.")
    if name not in record:
        raise JudgeBayesError(
            f"{where} has no field {name!r}; it has {', '.join(map(repr, list(record)[:12]))}."
        )
    return record[name]


def _parsed(text: str, what: str, right: str) -> Any:
    try:
        value = json.loads(text, parse_int=_integer)
        if text.count("[") + text.count("{") > DEEPEST and _deep(value):
            raise JudgeBayesError(f"{what} is nested too deeply to be read.")
        return _mended(value) if HALF in text.lower() else value
    except json.JSONDecodeError as error:
        raise JudgeBayesError(
            f"{what} is not JSON ({error.msg}, line {error.lineno}); right would be {right}."
        ) from error
    except RecursionError as error:
        raise JudgeBayesError(f"{what} is nested too deeply to be read.") from error


def _deep(value: Any) -> bool:
    """Tell whether a value has more levels than are read."""
    level = [value]
    for _ in range(DEEPEST):
        parts = [part for part in level if isinstance(part, list | dict)]
        level = [x for part in parts for x in (part if isinstance(part, list) else part.values())]
    return any(isinstance(part, list | dict) for part in level)


def _mended(value: Any) -> Any:
    """Return a JSON value whose texts can be written again: half a character becomes "?"."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_mended(part) for part in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(part) for name, part in value.items()}
    return value


def _integer(digits: str) -> int | float:
    """Return a whole number; one beyond every float is infinite, as a float would be."""
    return int(digits) if len(digits) <= DIGITS else float(digits)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not {error.encoding.upper()} text (byte {error.start})"
    return str(getattr(error, "strerror", None) or error)
