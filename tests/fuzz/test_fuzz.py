"""Damaged tables: read as a naive reader reads them, or refused in one sentence."""

import csv
import os
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rows import rows_of

from fuzz.mutators import damage_bytes, damage_table, to_file_bytes
from fuzz.naive import cells_of, counted, norm
from fuzz.seeds import random_table
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.sources import Opened

CASES = int(os.environ.get("FUZZ_CASES", "300"))
LONGEST = 4000
SUFFIXES = (*[".csv"] * 6, ".tsv", *[".jsonl"] * 3, ".csv.gz", ".jsonl.gz", ".parquet")


def check_sentence(text: str) -> None:
    """Check that a sentence is one line that a terminal can print, no longer than a screen."""
    assert text.isprintable(), f"not printable: {text[:200]!r}"
    assert 0 < len(text) <= LONGEST, f"{len(text)} characters: {text[:200]!r}"


def check_rows(read: Opened) -> pd.DataFrame:
    """Return the rows that were read, after checks of the notes and of the names."""
    for line in read.notes:
        check_sentence(line)
    rows = rows_of(read)
    if rows[["item", "judge"]].isna().to_numpy().any():
        raise JudgeBayesError("A row has no name.")  # which encoding refuses
    assert rows["item"].map(type).eq(str).all()
    assert rows["judge"].map(type).eq(str).all()
    return rows


def table_file(rng: random.Random, folder: Path, *, wide: bool) -> Path:
    """Write a table, perhaps damaged."""
    table = random_table(rng, wide=wide)
    how = rng.choice((*["whole"] * 3, *["table"] * 4, "bytes", "both"))
    if how in ("table", "both"):
        for _ in range(rng.choice((1, 1, 2, 3))):
            table = damage_table(table, rng)
    suffix = rng.choice(SUFFIXES)
    path = folder / f"votes{suffix}"
    try:
        data = to_file_bytes(table, suffix, rng)
    except (ValueError, csv.Error):  # the writer cannot write every damaged table
        data = b"item,vote\n1,1\n"
    path.write_bytes(damage_bytes(data, rng) if how in ("bytes", "both") else data)
    return path


def naive_cells(path: Path) -> tuple[list[str], list[dict[str, Any]]] | None:
    match = re.search(r"\.(csv|tsv|jsonl|parquet)(\.gz)?$", path.name)
    return cells_of(path) if match and path.is_file() else None


def tidy(rng: random.Random, folder: Path) -> None:
    path = table_file(rng, folder, wide=False)
    read = open_files(ReadRequest(votes=path, repeats=True))
    ours, naive, roles = check_rows(read), naive_cells(path), read.columns
    if naive is not None:
        copies = len(naive[1]) - len(ours)
        items, judges = ([row.get(roles[role]) for row in naive[1]] for role in ("item", "judge"))
        names = {str(name).strip() for name in judges}
        compare(ours, counted(once(naive[1], copies), roles), items, names)


def once(rows: list[dict[str, Any]], copies: int) -> list[dict[str, Any]]:
    """Return the records without the copies of earlier ones that a reader says there are."""
    if not copies:
        return rows
    keys: tuple[Callable[[Any], Any], ...] = (repr, norm, lambda cell: repr(_near(norm(cell))))
    for key in keys:
        first: dict[Any, dict[str, Any]] = {}
        for row in rows:
            first.setdefault(tuple(map(key, row.values())), row)
        if len(rows) - len(first) == copies:
            return list(first.values())
    raise AssertionError(f"{copies} copies are too many or too few")


def compare(
    votes: pd.DataFrame, expected: Counter[Any], items: list[Any], judges: set[str]
) -> None:
    """Compare votes with the naive reader's; only judges without any vote may be left out."""
    rows = zip(votes["item"], votes["judge"], votes["vote"], strict=True)
    ours = Counter((norm(i), norm(j), _near(norm(v))) for i, j, v in rows)
    expected_floats: Counter[Any] = Counter()
    for (item, judge, vote), n in expected.items():
        expected_floats[item, judge, _near(vote)] += n
    expected = expected_floats
    missing, extra = expected - ours, ours - expected
    judges_with_votes = {judge for _, judge, vote in expected if vote is not None}
    if len({name for _, name, _ in expected}) < len(judges):
        return  # 0e1 and 0e2 are two judges but one number
    assert not extra, f"made up: {list(extra.items())[:3]}"
    assert all(judge not in judges_with_votes for _, judge, _ in missing), (
        f"lost: {list(missing.items())[:3]}"
    )
    if not missing:
        names = {str(item).encode("utf-8", "replace").decode().strip() for item in items}
        distinct = {re.sub(r"^(-?\d+)\.0+$", r"\1", name) for name in names}
        assert len(distinct) <= votes["item"].nunique() <= len(names), (sorted(names)[:9], ours)


def _near(vote: Any) -> Any:
    return float(vote) if isinstance(vote, int) else vote  # scores are floats


def wide(rng: random.Random, folder: Path) -> None:
    path = table_file(rng, folder, wide=True)
    missing = rng.choice((None, None, None, "-1"))
    read = open_files(ReadRequest(votes=path, wide=True, missing=missing))
    ours, naive, roles = check_rows(read), naive_cells(path), read.columns
    if naive is None:
        return
    header, rows = naive
    judges = [name for name in header if name not in (roles["item"], roles["label"])]
    sizes = {len(rows) * len(judges)}
    if "" in judges and not any(row.get("") for row in rows):
        judges.remove("")  # in CSV a separator at the end of each line, in JSON a judge
        sizes.add(len(rows) * len(judges))
    assert len(ours) in sizes, (len(ours), len(rows), judges)
    if missing or "" in header or len(set(map(norm, judges))) < len(judges):
        return
    item = str(roles["item"])
    expected = Counter((norm(r.get(item)), norm(j), norm(r.get(j))) for r in rows for j in judges)
    compare(ours, expected, [row.get(item) for row in rows], set(judges))


def command(rng: random.Random, folder: Path) -> None:
    """The reading of `calibrate` and `diagnose`, without the fits."""
    is_wide = rng.random() < 0.25
    path = table_file(rng, folder, wide=is_wide)
    request = ReadRequest(
        votes=path,
        classes=rng.choice((*[None] * 9, "-1,0,1", "0,1", "a,b,c")),
        judge="none" if rng.random() < 0.1 else None,
        repeats=rng.random() < 0.2,
        votes_as=rng.choice((None, *["shown", "original"] * 3)),
        only_judge="j0" if rng.random() < 0.03 else None,
        wide=is_wide if rng.random() < 0.95 else not is_wide,
    )
    if rng.random() < 0.2:
        (folder / "gold").mkdir()
        request = replace(request, labels=table_file(rng, folder / "gold", wide=True))
    opened = open_files(request)
    classes = classes_of(opened)
    read = encoded(replace(opened, labels=None), classes)
    for line in read.words():
        check_sentence(line)
    if opened.labels is not None:
        labels = read.coding.labels(
            opened.labels.table,
            item=opened.labels.item,
            label=opened.labels.label,
            unknown_items=rng.choice(("error", "drop")),
            allow_degenerate=rng.random() < 0.9,
        )
        assert labels.shape == (len(read.coding.items),)
    naive = naive_cells(path)
    if naive is not None and not request.wide and request.only_judge is None:
        check_read(read, naive[1], dict(opened.columns))


def check_read(read: Study, rows: list[dict[str, Any]], roles: dict[str, str | None]) -> None:
    """Compare encoded votes with the naive rows: none is missing, none is added."""
    said = (re.match(r"(\d+) record\(s\) are identical", note) for note in read.opened.notes)
    rows = once(rows, next((int(match[1]) for match in said if match), 0))
    index, coding = np.asarray(read.votes.index), read.coding
    expected = counted(rows, roles)
    cast = sum(n for (_, _, vote), n in expected.items() if vote is not None)
    assert int((index >= 0).sum()) == cast, (int((index >= 0).sum()), cast)
    assert int(coding.missing.sum()) == len(rows) - cast
    if index.ndim == 3 and roles.get("order") is None:
        ours: Counter[Any] = Counter()
        for i, j, s in np.argwhere(index >= 0):
            vote = coding.classes.values[index[i, j, s]]
            ours[norm(coding.items[i]), norm(coding.judges[j]), norm(vote)] += 1
        assert ours == Counter({k: n for k, n in expected.items() if k[2] is not None})


@pytest.mark.parametrize("case", [tidy, wide, command], ids=lambda case: case.__name__)
def test_every_case_is_right_or_refused_in_a_sentence(
    case: Callable[[random.Random, Path], None], tmp_path: Path
) -> None:
    """`FUZZ_CASES=30000` runs more."""
    refused = 0
    for number in range(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                case(random.Random(f"1 {case.__name__} {number}"), folder)
            except JudgeBayesError as error:
                check_sentence(str(error))
                refused += 1
    assert 0 < refused < CASES
