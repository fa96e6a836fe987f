"""Mutators that damage tables and bytes."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from typing import Any

from fuzz.seeds import HOSTILE, Table

__all__ = ["damage_bytes", "damage_table", "to_file_bytes", "to_json_bytes"]


def to_json_bytes(value: Any, lines: bool) -> bytes:
    """Return a value as JSON, or a list as JSONL; nesting too deep for `json` is written directly."""
    try:
        text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    except RecursionError:
        text = "[" * 100_000 + "]" * 100_000
    return text.encode("utf-8", "surrogatepass")


def damage_table(table: Table, rng: random.Random) -> Table:
    """Change a table at one place."""
    header, rows = list(table.header), [list(row) for row in table.rows]
    row = rng.randrange(len(rows)) if rows else 0
    column = rng.randrange(len(header)) if header else 0
    kind = rng.choice(
        ("cell", "cell", "title", "short", "long", "twice", "drop", "swap", "shuffle", "column")
    )
    if kind == "title" and header:
        header[column] = rng.choice((*HOSTILE, *header))
    elif kind == "swap" and len(header) > 1:
        other = rng.randrange(len(header))
        header[column], header[other] = header[other], header[column]
    elif kind == "column":
        header.append(rng.choice(header))
        rows = [[*cells, rng.choice((*HOSTILE, *cells))] for cells in rows]
    elif kind == "shuffle":
        rng.shuffle(rows)
    elif not rows:
        pass
    elif kind == "cell" and column < len(rows[row]):
        rows[row][column] = rng.choice((*HOSTILE, "1", "0", "-1", "2", "1.0", "0.5"))
    elif kind == "short":
        del rows[row][-1:]
    elif kind == "long":
        rows[row].append("more")
    elif kind == "twice":
        rows.insert(rng.randrange(len(rows)), list(rows[row]))
    elif kind == "drop":
        del rows[row]
    return Table(header, rows)


def to_file_bytes(table: Table, suffix: str, rng: random.Random) -> bytes:
    """Return the bytes of a file with the table, in the format of a suffix."""
    if suffix.startswith(".jsonl"):
        records = [dict(zip(table.header, row)) for row in table.rows]  # noqa: B905
        return _compressed(to_json_bytes(records, True), suffix)
    if suffix == ".parquet":
        return _parquet(table, rng)
    separator = "\t" if suffix == ".tsv" else rng.choice((*",,,,,,", ";", "\t", "|"))
    text = io.StringIO()
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerows([table.header, *table.rows])
    encoding = rng.choice((*["utf-8"] * 9, "utf-8-sig", "utf-16", "latin-1"))
    return _compressed(text.getvalue().encode(encoding, "replace"), suffix)


def _compressed(content: bytes, suffix: str) -> bytes:
    return gzip.compress(content, 1) if suffix.endswith(".gz") else content


def _parquet(table: Table, rng: random.Random) -> bytes:
    import pandas as pd

    width = len(table.header)
    rows = [(row + [""] * width)[:width] for row in table.rows]
    plain = [[cell.encode("utf-8", "replace").decode() for cell in row] for row in rows]
    names = [name.encode("utf-8", "replace").decode() for name in table.header]
    frame = pd.DataFrame(plain, columns=names)
    for place in range(width):
        if rng.random() < 0.5:
            numbers = pd.to_numeric(frame.iloc[:, place], errors="coerce")
            if numbers.notna().any() and names.count(names[place]) == 1:
                frame[names[place]] = numbers
    if len(set(names)) < width:
        frame = frame.loc[:, ~frame.columns.duplicated()]
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def damage_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip, cut, repeat, or recode bytes."""
    data = bytearray(content)
    size = max(len(data), 1)
    start, length = rng.randrange(size), rng.randrange(1, 1 + min(size, 64))
    kind = rng.choice(
        ("flip", "cut", "delete", "repeat", "insert", "nul", "recode", "crlf", "lines")
    )
    if kind == "flip" and data:
        for _ in range(rng.choice((1, 1, 4, 32))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[start:]
    elif kind == "delete":
        del data[start : start + length]
    elif kind == "repeat":
        data[start:start] = data[start : start + length] * rng.choice((1, 2, 100))
    elif kind == "insert":
        data[start:start] = rng.choice((*HOSTILE, "[" * 3000, '"', "\n", "{", "1" * 5000)).encode(
            "utf-8", "surrogatepass"
        )
    elif kind == "nul":
        data[start:start] = b"\x00" * rng.choice((1, 16))
    elif kind == "recode":
        coding: Callable[[str], bytes] = rng.choice(
            (
                lambda t: b"\xef\xbb\xbf" + t.encode(),
                lambda t: t.encode("utf-16"),
                lambda t: t.encode("latin-1", "replace"),
            )
        )
        return coding(content.decode("utf-8", "replace"))
    elif kind == "crlf":
        return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\x0b")))
    elif kind == "lines":
        lines = content.split(b"\n")
        for _ in range(rng.choice((1, 3))):
            line = rng.randrange(len(lines))
            lines.insert(rng.randrange(len(lines) + 1), lines[line])
            del lines[rng.randrange(len(lines))]
        return b"\n".join(lines)
    return bytes(data)
