"""A naive reader of the same files, with the standard library: the reference for the real readers."""

import csv
import gzip
import io
import json
import re
import sys
import unicodedata
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["cells_of", "counted", "norm"]

MISSING = {"", "nan", "none", "null", "na", "n/a", "<na>", "missing", "unparsed"}
SPACE = "".join(c for c in map(chr, range(sys.maxunicode)) if c.isspace()) + "\u200b\u2060\ufeff"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def norm(value: Any) -> Any:
    """Return the value of a cell: None, a number or text."""
    if isinstance(value, bool):
        return int(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    text = str(value).encode("utf-8", "replace").decode().strip(SPACE)
    text = unicodedata.normalize("NFC", text)
    if text.casefold() in MISSING:
        return None
    if text.casefold() in ("true", "false"):
        return int(text.casefold() == "true")
    if text.casefold().lstrip("+-") in ("inf", "infinity"):
        return float(text)
    if NUMBER.fullmatch(text.replace(",", ".")):  # a decimal comma counts as a point
        number = Decimal(text.replace(",", "."))
        whole = number.adjusted() < 40 and number == number.to_integral_value()
        return int(number) if whole else round(float(number), 9)
    return text.casefold()


def text_of(content: bytes) -> str:
    """Return the text of a file, decoded by its byte-order mark."""
    marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return content.decode("utf-16" if marked else "utf-8-sig")


def cells_of(path: Path) -> tuple[list[str], list[dict[str, Any]]] | None:
    """Return the header and rows of a table; None if its separator is ambiguous."""
    if path.name.endswith(".parquet"):
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
        return [name.strip() for name in rows[0]], [
            {k.strip(): v for k, v in row.items()} for row in rows
        ]
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = text_of(content).lstrip("\ufeff")
    if ".jsonl" in path.name:
        rows = [json.loads(line) for line in re.split("\r\n|\n|\r", text) if line.strip()]
        names = list(dict.fromkeys(name.strip() for row in rows for name in row))
        return names, [{k.strip(): v for k, v in row.items()} for row in rows]
    separator = "\t"
    if ".tsv" not in path.name:
        first = re.split("[\r\n]", text.lstrip("\r\n"))[0]
        separators = [s for s in (",", ";", "\t") if s in first]
        if len(separators) > 1 or '"' in first:
            return None
        separator = separators[0] if separators else ","
    csv.field_size_limit(2**30)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    lines = [r for r in rows if any(cell.strip() for cell in r)]
    if not lines or not any(cell.strip() for cell in lines[0][1:]):
        return None  # a title, or a table of one column
    header = [name.strip() for name in lines[0]]
    again = lines[0] if all(lines[0]) else None  # the header, where files were joined
    return header, [dict(zip(header, row)) for row in lines[1:] if row != again]  # noqa: B905


def counted(rows: list[dict[str, Any]], roles: dict[str, str | None]) -> Counter[Any]:
    """Count the rows by item, judge and vote."""
    names = [roles[role] for role in ("item", "judge", "vote")]
    return Counter(
        tuple("judge" if name is None else norm(row.get(name)) for name in names) for row in rows
    )
