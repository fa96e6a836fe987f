"""Small files that stand for a lot of memory: what refusing each of them takes.

python tests/bombs.py        # the table of docs/security.md

Every bomb is read in a process of its own, which has read a small table before.
Linux only.
"""

import gzip
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.options import Options

HEADER = b"item,judge,vote\n"
GIB = 2**30


def endless_gzip(path: Path) -> None:
    """200 MB of blank lines."""
    path.write_bytes(gzip.compress(HEADER + b"x,j,1\n" + b"\n" * 200_000_000, 1))


def equal_cells(path: Path) -> None:
    """90 million cells of one text."""
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["x"])
    table = pa.table({"item": cells, "judge": cells, "vote": cells})
    with pq.ParquetWriter(path, table.schema) as file:
        for _ in range(30):
            file.write_table(table)


def many_classes(path: Path) -> None:
    """100,000 votes, each another word."""
    path.write_bytes(HEADER + b"".join(b"i%d,j,c%d\n" % (n, n) for n in range(100_000)))


def many_columns(path: Path) -> None:
    """A table of 100,000 columns and 5 rows."""
    names = b",".join(b"j%d" % n for n in range(100_000))
    path.write_bytes(b"item," + names + b"\n" + (b"i," + b"1," * 99_999 + b"1\n") * 5)


def archive(path: Path) -> None:
    """An .eval archive with a member of 1 GiB of spaces."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("header.json", "w", force_zip64=True) as member,
    ):
        for _ in range(64):
            member.write(b" " * (GIB // 64))


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "gzip of blank lines, 200 MB": ("a.csv.gz", endless_gzip),
    "Parquet, 90 million equal cells": ("a.parquet", equal_cells),
    "100,000 columns, 5 rows": ("a.csv", many_columns),
    "100,000 classes": ("a.csv", many_classes),
    "`.eval` archive, a member of 1 GiB": ("a.eval", archive),
}


def read(path: Path) -> str:
    """Read a file as a command would; return the sentence that refuses it, or "read"."""
    try:
        if path.suffix == ".eval":
            import_votes("inspect", path, Options())
        else:
            jb.read(path)
    except JudgeBayesError as error:
        return str(error)
    return "read"


def memory_mb(field: str) -> float:
    """Return VmRSS, or VmHWM (the largest so far), of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def alone(path: Path) -> None:
    """Print the seconds, the memory above idle in MB and the sentence of one file."""
    small = path.with_name("small.csv")
    small.write_bytes(HEADER + b"a,j,1\nb,j,0\n")
    read(small)
    Path("/proc/self/clear_refs").write_text("5")  # the largest so far starts anew
    before, began = memory_mb("VmRSS"), time.process_time()
    said = read(path).replace(str(path.parent) + "/", "")
    seconds, more = time.process_time() - began, memory_mb("VmHWM") - before
    print(f"{seconds:.1f} | {more:.0f} | {said[:100]}")  # noqa: T201


def main() -> None:
    """Print the table."""
    print("| bomb | file, KB | s | MB above idle | ends with |\n|---|---|---|---|---|")  # noqa: T201
    for name, (file, make) in BOMBS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / file
            make(path)
            command = [sys.executable, __file__, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            said = done.stdout.strip() or f"exit {done.returncode}: {done.stderr[-200:]}"
            print(f"| {name} | {path.stat().st_size / 1000:.0f} | {said} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    alone(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
