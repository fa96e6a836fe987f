"""Compare tables of the experiments' smoke runs: `python tests/golden/tables.py RESULTS...`.

`judgebayes reproduce PAPER --smoke --twins --out RESULTS` writes what is compared; CI runs it from
the wheel in an empty environment. With `--write`, the tables are kept as the new answers.
"""

import math
import shutil
import sys
from pathlib import Path

import pandas as pd

KEPT = Path(__file__).parent / "tables"
WITHIN = 2e-6
"""Results are written with six digits."""


def _same(old: str, new: str) -> bool:
    if old == new:
        return True
    try:
        return math.isclose(float(old), float(new), rel_tol=WITHIN, abs_tol=WITHIN)
    except ValueError:
        return False


def differences(kept: Path, now: Path) -> list[str]:
    """Return the cells of two tables that differ, row by row."""
    old, new = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (kept, now))
    if list(old.columns) != list(new.columns) or len(old) != len(new):
        return [f"{kept.stem}: {old.shape} was the table, now {new.shape}"]
    return [
        f"{kept.parent.name}/{kept.stem}, row {i}, {column}: {a} was the answer, now {b}"
        for column in old.columns
        for i, (a, b) in enumerate(zip(old[column], new[column], strict=True))
        if not _same(a, b)
    ]


def main(words: list[str]) -> int:
    """Compare, or write, the tables of some folders of results."""
    write, folders = "--write" in words, [Path(word) for word in words if word != "--write"]
    changes, seen = [], 0
    for now in sorted(path for folder in folders for path in folder.glob("*/*.csv")):
        kept = KEPT / now.parent.name / now.name
        seen += 1
        if write:
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(now, kept)
        elif kept.exists():
            changes += differences(kept, now)
        else:
            changes.append(f"{kept.relative_to(KEPT)} is no kept table")
    print("\n".join(changes[:40] or [f"{seen} tables: nothing changed"]))  # noqa: T201
    return 1 if changes or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
