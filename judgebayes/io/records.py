"""JSON and JSONL files, and the files of a folder."""

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.json_objects import SameNameError, unique_fields
from judgebayes.io.lengths import short_lines

__all__ = [
    "check_unpacked_size",
    "encoding_of",
    "field_of",
    "find_files",
    "open_unpacked",
    "parse_json",
    "read_batches",
    "read_json",
    "read_lines",
]

BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks of encodings other than UTF-8, the longer ones first."""
NOT_TEXT = (0, 0x1B)
"""Bytes that are valid UTF-8 but never occur in text: the file has another encoding."""

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
VALUE_BYTES = 80
MAX_VALUE_BYTES = 4 * 2**30
"""JSON whose values need more memory is refused; a value needs about `VALUE_BYTES` besides its text."""
PIECE = 2**20
"""Characters of JSON that are counted at a time."""
BATCH_LINES, BATCH_TEXT = 10_000, 4_000_000
"""Lines of JSONL that are parsed together, and their characters."""
LONG_DIGITS = re.compile(r"[0-9]{301}")
MAX_DEPTH = 100
"""Maximal levels of nesting: Python cannot even print a value of many more."""
MAX_DIGITS = 300
"""Whole numbers with more digits are read as floats."""


def find_files(path: Path, patterns: tuple[str, ...], what: str) -> list[Path]:
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
            f"The folder {str(path)!r} contains no {what}: no file is named "
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
    packed, size = path.stat().st_size, 0
    most = min(MAX_UNPACKED_BYTES, max(SMALL_BYTES, packed * MAX_RATIO))
    if packed * MAX_GZIP_RATIO <= most:
        return
    try:
        with gzip.open(path) as content:
            while block := content.read(2**24):
                size += len(block)
                if size > most:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be unpacked: {_reason(error)}.") from error
    if size > MAX_UNPACKED_BYTES:
        raise JudgeBayesError(
            f"{str(path)!r} is more than {MAX_UNPACKED_BYTES / 2**30:,.0f} GiB when unpacked; save it "
            "as Parquet, or in parts."
        )
    if size > most:
        raise JudgeBayesError(
            f"{str(path)!r} is more than {MAX_RATIO} times as large when unpacked: no table of votes "
            "is. Unpack it to see what it contains."
        )


def open_unpacked(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for its bytes; a .gz file is unpacked."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


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
                f"--encoding {given!r} is unknown; use cp1252 (Western spreadsheets), "
                "cp1250, utf-16, shift_jis or another of Python's encodings."
            ) from error
    with open_unpacked(path) as file:
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

    A file that is not UTF-8 and has no byte-order mark is read in the given encoding.

    Raises
    ------
    JudgeBayesError
        If a line is not a JSON object, or the file is not text.
    """
    for numbers, records in read_batches(path, encoding):
        yield from zip(numbers, records, strict=True)


def read_batches(
    path: Path, encoding: str | None = None, floats: Callable[[str], Any] = float
) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """Yield what `read_lines` does, for many lines at a time: their numbers and their objects.

    `floats` makes a value of the text of a number that is not whole.

    Raises
    ------
    JudgeBayesError
        As `read_lines` does.
    """
    check_unpacked_size(path)
    what, size = repr(str(path)), 0
    try:
        with (
            open_unpacked(path) as file,
            io.TextIOWrapper(file, encoding=encoding_of(path, encoding)) as lines,
        ):
            filled = (
                (number, text)
                for number, line in enumerate(short_lines(lines, what), start=1)
                if (text := line.strip())
            )
            for batch in _batches(filled):
                numbers, texts = [number for number, _ in batch], [text for _, text in batch]
                joined = ",\n".join(texts)
                size += _memory_of(joined)
                if size > MAX_VALUE_BYTES:
                    raise _too_large(what)
                records = _parse_together(texts, joined, floats)
                if records is None:
                    records = [_parse_line(text, number, what, floats) for number, text in batch]
                yield numbers, records
    except (UnicodeError, OSError, EOFError, zlib.error) as error:
        raise JudgeBayesError(f"{what} cannot be read as JSONL: {_reason(error)}.") from error


def _batches(lines: Iterator[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield lines in lists of at most `BATCH_LINES` lines and about `BATCH_TEXT` characters."""
    batch: list[tuple[int, str]] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line[1])
        if len(batch) == BATCH_LINES or size > BATCH_TEXT:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse_together(
    texts: list[str], joined: str, floats: Callable[[str], Any]
) -> list[dict[str, Any]] | None:
    """Return the objects of several lines at once, None if one by one may give something else.

    No text goes on in the next line, because JSON has no line ends in texts; no list does, because there
    is none; and no object does, because the next line begins with a bracket and not with a name.
    """
    if "[" in joined or "\\" in joined:
        return None
    if max(map(len, texts)) > MAX_DIGITS and LONG_DIGITS.search(joined):
        return None
    if not all(text[0] == "{" and text[-1] == "}" for text in texts):
        return None
    if joined.count("{") > len(texts):  # the last line would refuse it, after reading it in vain
        return None
    try:
        records: list[dict[str, Any]] = json.loads(f"[{joined}]", parse_float=floats)
    except (ValueError, RecursionError):
        return None
    if len(records) != len(texts):
        return None
    # Of two fields with one name the last one is left, so that there are fewer texts than in the file.
    names = sum(map(len, records))
    values = sum(type(value) is str for record in records for value in record.values())
    return records if joined.count('"') == 2 * (names + values) else None


def _parse_line(text: str, number: int, what: str, floats: Callable[[str], Any]) -> dict[str, Any]:
    record = _parse(text, f"Line {number} of {what}", "one object per line", floats)
    if not isinstance(record, dict):
        raise JudgeBayesError(
            f"Line {number} of {what} is not an object but {type(record).__name__}; a JSONL file has "
            'one object per line, {"item": ..., "vote": ...}.'
        )
    return record


def read_json(path: Path) -> Any:
    """Return the value in a JSON file.

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
        with path.open(encoding=encoding_of(path)) as file:
            size = 0
            for piece in iter(lambda: file.read(PIECE), ""):  # before memory is taken for all of it
                size += _memory_of(piece)
                if size > MAX_VALUE_BYTES:
                    raise _too_large(repr(str(path)))
            file.seek(0)
            text = file.read()
    except (UnicodeError, OSError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be read as JSON: {_reason(error)}.") from error
    return _parse(text, repr(str(path)), "one value")


def parse_json(content: bytes, what: str) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises
    ------
    JudgeBayesError
        If the text is not JSON.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JudgeBayesError(f"{what} is not UTF-8 text (byte {error.start}).") from error
    return _parse(text, what, "one value")


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


def _parse(text: str, what: str, expected: str, floats: Callable[[str], Any] = float) -> Any:
    if _memory_of(text) > MAX_VALUE_BYTES:
        raise _too_large(what)
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=floats, object_pairs_hook=unique_fields
        )
        if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
            raise JudgeBayesError(f"{what} is nested too deeply to be read.")
        return _replace_surrogates(value) if SURROGATE_ESCAPE in text.lower() else value
    except json.JSONDecodeError as error:
        raise JudgeBayesError(
            f"{what} is not JSON ({error.msg}, line {error.lineno}); expected {expected}."
        ) from error
    except SameNameError as error:
        raise JudgeBayesError(
            f"{what} has an object with two fields named {error.args[0]!r}; it is unknown which counts."
        ) from error
    except RecursionError as error:
        raise JudgeBayesError(f"{what} is nested too deeply to be read.") from error


def _memory_of(text: str) -> int:
    """Return about how many bytes the values of a JSON text need in memory."""
    return len(text) + VALUE_BYTES * sum(map(text.count, ",[{"))


def _too_large(what: str) -> JudgeBayesError:
    return JudgeBayesError(
        f"{what} would need more than {MAX_VALUE_BYTES / 2**30:,.0f} GiB of memory as JSON; save it as "
        "CSV or Parquet, or in parts."
    )


def _is_too_deep(value: Any) -> bool:
    """Tell whether a value has more than `MAX_DEPTH` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        parts = [part for part in level if isinstance(part, list | dict)]
        level = [x for part in parts for x in (part if isinstance(part, list) else part.values())]
    return any(isinstance(part, list | dict) for part in level)


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates by "?", so that the text can be written to a file."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_replace_surrogates(part) for part in value]
    if isinstance(value, dict):
        return {
            _replace_surrogates(name): _replace_surrogates(part) for name, part in value.items()
        }
    return value


def _integer(digits: str) -> int | float:
    """Return a whole number, or a (perhaps infinite) float if it has more than `MAX_DIGITS` digits."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not {error.encoding.upper()} text (byte {error.start})"
    return str(getattr(error, "strerror", None) or error)
