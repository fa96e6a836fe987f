"""The subjects of the fuzzer: each makes a case from random numbers, runs it and checks the result."""

import ast
import csv
import io
import json
import random
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fuzz.kept import ledger, posterior_file, reply, reviews
from fuzz.mutators import (
    damage_bytes,
    damage_path,
    damage_table,
    damage_value,
    to_file_bytes,
    to_json_bytes,
)
from fuzz.naive import cells_of, counted, norm, records_in, text_of
from fuzz.seeds import HOSTILE, OPTIONS, VALID, random_table, with_more_records
from judgebayes.io.formats import import_votes
from judgebayes.io.imported import Imported
from judgebayes.io.options import Options
from judgebayes.io.repair import Shown, repair_verdicts
from judgebayes.io.tables import read_table, write_table
from judgebayes.io.verdict import parse_verdict
from judgebayes.votes import encode
from judgebayes.workflow.fit_file import load_fit
from judgebayes.workflow.options import Columns, ReadingOptions
from judgebayes.workflow.reading import Reading, open_source, read_votes
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.sources import Source

__all__ = ["SUBJECTS", "check_sentence"]

LONGEST = 4000
SUFFIXES = (*[".csv"] * 6, ".tsv", *[".jsonl"] * 3, ".csv.gz", ".jsonl.gz", ".parquet")


def check_sentence(text: str) -> None:
    """Check that a sentence is one line that a terminal can print, no longer than a screen."""
    assert text.isprintable(), f"not printable: {text[:200]!r}"
    assert 0 < len(text) <= LONGEST, f"{len(text)} characters: {text[:200]!r}"


def check_imported(imported: Imported, rng: random.Random, folder: Path) -> None:
    for line in imported.words():
        check_sentence(line)
    assert imported.read == len(imported.votes) + sum(imported.dropped.values())
    assert imported.votes["item"].map(type).eq(str).all()
    assert imported.votes["judge"].map(type).eq(str).all()
    if rng.random() < 0.1:
        check_written(
            imported.votes, folder / f"out{rng.choice(('.csv', '.tsv', '.jsonl', '.parquet'))}"
        )


def check_written(votes: pd.DataFrame, path: Path) -> None:
    """Check that a written table contains no formula and reads back with every row."""
    write_table(votes, path)
    if path.suffix in (".csv", ".tsv"):
        text = io.StringIO(path.read_bytes().decode(), newline="")
        csv.field_size_limit(2**30)
        for row in csv.reader(text, delimiter="\t" if path.suffix == ".tsv" else ","):
            for cell in row:
                assert not re.match(r"[=@+\-\t\r\n＝＋－＠]", cell) or norm(cell) != cell.casefold()
    reread = read_table(path)
    assert len(reread) == len(votes)
    assert reread["item"].nunique() == votes["item"].nunique()


def _loaded(text: str) -> Any:
    return json.loads(text, parse_int=lambda digits: float(digits))


def by_format(form: str) -> Callable[[random.Random, Path], None]:
    name, whole = VALID[form]

    def case(rng: random.Random, folder: Path) -> None:
        content = with_more_records(whole, rng)
        lines = name.endswith(".jsonl")
        how = rng.choice(("value", "value", "value", "bytes", "path", "both"))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            if how in ("value", "both"):
                content = damage_value(content, rng)
        lines = lines and isinstance(content, list)
        data = to_json_bytes(content, lines)
        if how in ("bytes", "both"):
            data = damage_bytes(data, rng)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if how == "path":
            path = damage_path(path, rng)
        options = rng.choice(OPTIONS.get(form, (Options(),)))
        imported = import_votes(form, path, options)
        check_imported(imported, rng, folder)
        if path.is_file() and path.suffix == Path(name).suffix:
            text = re.sub("\r\n?", "\n", text_of(path.read_bytes()))
            plain = [line for line in text.split("\n") if line.strip()]
            jsonl = path.suffix == ".jsonl"
            least, exact = records_in(form, [*map(_loaded, plain)] if jsonl else _loaded(text))
            assert imported.read == least if exact else imported.read >= least, (
                imported.read,
                least,
            )

    return case


def archive(rng: random.Random, folder: Path) -> None:
    """An .eval archive with damaged members, sizes and bytes; no file may be written elsewhere."""
    log = with_more_records(VALID["inspect"][1], rng)
    samples = log.pop("samples")
    path = folder / "inside" / "log.eval"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as file:
        header = damage_value(log, rng) if rng.random() < 0.2 else log
        file.writestr("header.json", to_json_bytes(header, False))
        for number, sample in enumerate(samples):
            name = f"samples/{number}_epoch_1.json"
            if rng.random() < 0.1:
                name = rng.choice(
                    ("../../x.json", "/x.json", "samples/../../x.json", "C:\\x", name)
                )
            if rng.random() < 0.1:
                sample = damage_value(sample, rng)
            if name not in file.namelist():
                file.writestr(name, to_json_bytes(sample, False))
        if rng.random() < 0.1:
            file.writestr("~" + rng.choice(HOSTILE[:30]).replace("\x00", ""), b"0" * 1000)
    if rng.random() < 0.6:
        path.write_bytes(damage_bytes(path.read_bytes(), rng))
    before = sorted(folder.rglob("*"))
    try:
        check_imported(import_votes("inspect", path, rng.choice(OPTIONS["inspect"])), rng, folder)
    finally:
        remaining = [f for f in folder.rglob("*") if not f.name.startswith("out.")]
        assert sorted(remaining) == before


def table_file(rng: random.Random, folder: Path, *, wide: bool, text: bool = False) -> Path:
    """Write a table, perhaps damaged, and return the path to read."""
    table = random_table(rng, wide=wide, text=text)
    how = rng.choice((*["whole"] * 3, *["table"] * 4, "bytes", "both", "path"))
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
    return damage_path(path, rng) if how == "path" else path


def naive_cells(path: Path) -> tuple[list[str], list[dict[str, Any]]] | None:
    match = re.search(r"\.(csv|tsv|jsonl|parquet)(\.gz)?$", path.name)
    return cells_of(path) if match and path.is_file() else None


def roles_of(imported: Imported) -> dict[str, str | None] | None:
    """Return the columns that the reader reports to have used."""
    note = next((n for n in imported.notes if n.startswith("Columns: ")), "")
    matches = re.findall(
        r"\b(item|judge|vote|label) = ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", note
    )
    roles: dict[str, str | None] = dict.fromkeys(("item", "judge", "vote", "label"))
    for role, name in matches:
        if roles.get(role) is not None:
            return None  # a name that looks like a column in the note
        roles[role] = ast.literal_eval(name)
    return roles


def tidy(rng: random.Random, folder: Path) -> None:
    path = table_file(rng, folder, wide=False)
    imported = import_votes("tidy", path)
    check_imported(imported, rng, folder)
    naive, roles = naive_cells(path), roles_of(imported)
    if naive is not None and roles is not None:
        assert imported.read == len(naive[1]), (imported.read, len(naive[1]))
        items, judges = ([row.get(roles[role]) for row in naive[1]] for role in ("item", "judge"))
        names = {str(name).strip() for name in judges}
        copies = imported.dropped["identical to an earlier record"]
        compare(imported, counted(once(naive[1], copies), roles), items, names)


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


def compare(imported: Imported, expected: Counter[Any], items: list[Any], judges: set[str]) -> None:
    """Compare votes with the naive reader's; only judges without any vote may be left out."""
    votes = imported.votes
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
    options = Options(missing=rng.choice((None, None, None, "-1")))
    imported = import_votes("wide", path, options)
    check_imported(imported, rng, folder)
    naive, roles = naive_cells(path), roles_of(imported)
    if naive is None or roles is None:
        return
    header, rows = naive
    judges = [name for name in header if name not in (roles["item"], roles["label"])]
    sizes = {len(rows) * len(judges)}
    if "" in judges and not any(row.get("") for row in rows):
        judges.remove("")  # in CSV a separator at the end of each line, in JSON a judge
        sizes.add(len(rows) * len(judges))
    assert imported.read in sizes, (imported.read, len(rows), judges)
    if options.missing or "" in header or len(set(map(norm, judges))) < len(judges):
        return
    item = str(roles["item"])
    expected = Counter((norm(r.get(item)), norm(j), norm(r.get(j))) for r in rows for j in judges)
    compare(imported, expected, [row.get(item) for row in rows], set(judges))


def judge_text(rng: random.Random, folder: Path) -> None:
    path = table_file(rng, folder, wide=False, text=True)
    imported = import_votes("text", path, Options(verdicts=rng.choice(("pair", "score", "valid"))))
    check_imported(imported, rng, folder)
    naive = naive_cells(path)
    assert naive is None or imported.read == len(naive[1])


def command(rng: random.Random, folder: Path) -> None:
    """The reading of `calibrate` and `diagnose`, without the fits."""
    is_wide = rng.random() < 0.25
    path = table_file(rng, folder, wide=is_wide)
    columns = Columns(
        judge="none" if rng.random() < 0.1 else None,
        repeats=rng.random() < 0.2,
        votes_as=rng.choice((None, *["shown", "original"] * 3)),
    )
    reading = ReadingOptions(
        only_judge="j0" if rng.random() < 0.03 else None,
        wide=is_wide if rng.random() < 0.95 else not is_wide,
    )
    source = Source(path, columns, reading)
    gold = None
    if rng.random() < 0.2:
        (folder / "gold").mkdir()
        gold = table_file(rng, folder / "gold", wide=True)
    opened = open_source(source, gold)
    classes = classes_of(opened, rng.choice((*[None] * 9, "-1,0,1", "0,1", "a,b,c")), None)
    read = read_votes(opened, classes)
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
    if naive is not None and not reading.wide and reading.only_judge is None:
        check_read(read, naive[1], dict(opened.columns))


def check_read(read: Reading, rows: list[dict[str, Any]], roles: dict[str, str | None]) -> None:
    """Compare encoded votes with the naive rows: none is missing, none is added."""
    said = (re.match(r"(\d+) record\(s\) are identical", note) for note in read.notes)
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


CELLS: tuple[Any, ...] = (
    *(text for text in HOSTILE if text != "\ud83d"),
    *(0, 1, -1, 0.0, 1.0, 2, True, None, float("nan"), float("inf"), 1e300, 2**53 + 1, 2**53),
    *(
        10**30,
        [1],
        {"a": 1},
        pd.NA,
        pd.NaT,
        np.int8(1),
        np.float32(0.5),
        pd.Timestamp("2020-01-01"),
    ),
    *(b"x", ("t",), 1 + 2j, object),
)


def frame(rng: random.Random, folder: Path) -> None:
    """`encode` on a table in memory with arbitrary cells."""
    n = rng.randint(0, 12)
    scale = rng.choice(((0, 1), (-1, 0, 1), ("B", "tie", "A"), (True, False), (0.0, 1.0, None)))
    columns: dict[str, list[Any]] = {
        "item": [rng.randrange(8) for _ in range(n)],
        "judge": [rng.choice("abc") for _ in range(n)],
        "vote": [rng.choice(scale) for _ in range(n)],
        "sample": list(range(n)),
    }
    for _ in range(rng.choice((0, 1, 1, 2, 4)) if n else 0):
        columns[rng.choice(list(columns))][rng.randrange(n)] = rng.choice(CELLS)
    table = pd.DataFrame(columns)
    if rng.random() < 0.2:
        name = rng.choice(list(columns))
        if all(isinstance(cell, str) and cell.isprintable() for cell in columns[name]):
            table[name] = table[name].astype("category")
    options: dict[str, Any] = {"sample": "sample"} if rng.random() < 0.8 else {}
    if rng.random() < 0.1:
        options["task"] = "judge"
    votes, coding = encode(table, **options)
    for line in coding.words(votes):
        check_sentence(line)
    index = np.asarray(votes.index)
    expected = sum(
        norm(v) is not None and v is not pd.NA and v is not pd.NaT for v in table["vote"]
    )
    assert int((index >= 0).sum()) == expected
    assert int(coding.missing.sum()) == len(table) - expected
    assert index.shape[:2] == (len(coding.items), len(coding.judges))
    names = {str(norm(v)) if isinstance(v, float) else str(v) for v in columns["item"]}
    assert len(coding.items) == len(names), (list(coding.items), columns["item"])


ENDINGS = (
    *(
        "[[A]]",
        "[[B]]",
        "**A**",
        "Output A is better.",
        "My verdict is B",
        '{"verdict": "A"}',
        "7/10",
    ),
    *(
        "Score: 7",
        "valid",
        "Verdict: invalid",
        "</think>",
        "<think>",
        "tie",
        "A",
        "[[C]]",
        "(a)",
        "{",
    ),
)
FRAGMENTS = (
    *ENDINGS,
    *HOSTILE,
    "is",
    "not",
    "than",
    "because",
    "Assistant",
    "\n",
    "```json",
    "```",
    "*" * 9,
)
VALUES: dict[str, frozenset[Any]] = {
    "pair": frozenset(("A", "B", "tie", None)),
    "valid": frozenset(("valid", "invalid", None)),
}


def verdict(rng: random.Random, folder: Path) -> None:
    """The verdict parser and the repair of lists of verdicts: no text raises an exception."""
    size = rng.choice((0, 1, 3, 10, 30, 300))
    text: Any = rng.choice((" ", "", "\n")).join(rng.choice(FRAGMENTS) for _ in range(size))
    kind = rng.choice(("pair", "score", "valid"))
    if rng.random() < 0.01:
        text = rng.choice(FRAGMENTS) * 200_000
    if rng.random() < 0.02:
        text = rng.choice(CELLS)
    parsed = parse_verdict(text, kind)
    if kind == "score":
        assert parsed.value is None or np.isfinite(parsed.value)
    else:
        assert parsed.value in VALUES[kind]
    assert parsed == parse_verdict(text, kind)
    prefix = "Reasons are given. " * rng.randrange(9)
    side = rng.choice("AB")
    assert parse_verdict(f"{prefix}[[{side}]]").value == side
    shown = [Shown("1", "one text"), Shown("2", "another")]
    answer = [
        {"line": 1, "text": "one text", "label": "valid"},
        {"line": 2, "text": "a", "label": 0},
    ]
    damaged = damage_value(answer, rng)
    response: Any = (
        damaged if rng.random() < 0.3 else damage_bytes(to_json_bytes(damaged, False), rng)
    )
    repaired = repair_verdicts(response, shown)
    assert len(repaired.votes) == 2
    assert set(repaired.votes) <= {-1, 0, 1}


FIT = {
    "format": "judgebayes fit",
    "version": 1,
    "method": "sc",
    "classes": [-1, 0, 1],
    "pairwise": True,
    "undecided": [],
    "ordered": True,
    "tasks": [],
    "judges": ["a"],
    "profile": {
        "items": 3,
        "mean_share": [0.2, 0.3, 0.5],
        "covariance": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        "votes_per_item": 2.0,
    },
    "fitted": {
        "type": "FittedBaseRate",
        "log_rates": {"array": [0.1, 0.2, 0.7], "dtype": "float64"},
        "status": {"array": 0, "dtype": "int32"},
    },
    "notes": {},
}


def fit_file(rng: random.Random, folder: Path) -> None:
    """A damaged fit file."""
    content = damage_value(FIT, rng) if rng.random() < 0.8 else FIT
    data = to_json_bytes(content, False)
    path = folder / "fit.json"
    path.write_bytes(damage_bytes(data, rng) if rng.random() < 0.4 else data)
    load_fit(damage_path(path, rng) if rng.random() < 0.05 else path)


SUBJECTS: dict[str, tuple[float, Callable[[random.Random, Path], None]]] = {
    "tidy": (3, tidy),
    "wide": (2, wide),
    "text": (1, judge_text),
    **{form: (1, by_format(form)) for form in VALID},
    ".eval archives": (1, archive),
    "calibrate, diagnose": (3, command),
    "encode": (2, frame),
    "verdict parser": (2, verdict),
    "fit files": (1, fit_file),
    "reviews": (1, reviews),
    "posteriors": (0.2, posterior_file),
    "ledgers": (1, ledger),
    "server replies": (1, reply),
}
"""By name: the share of all cases, and the function that runs a case."""
