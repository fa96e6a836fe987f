"""What an experiment is, what it returns, and how its result is graded and written."""

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.claims import Claim, Evidence, Kind, Source, claims
from judgebayes.experiments.kept import kept
from judgebayes.measures.significance import Interval

T = TypeVar("T")

COLUMNS = [
    "paper",
    "table",
    "dataset",
    "task",
    "judge",
    "n",
    "method",
    "metric",
    "value",
    "low",
    "high",
    "splits",
    "paper_value",
    "claim",
    "margin",
    "grade",
]
"""The columns of every result file; a cell is empty where it does not apply."""

FITTED = "fitted"
"""In the column `claim`: the twins were fitted to this published number, so it can test nothing."""

OF_DATA = frozenset({"reproduced", "replicated", "contradicted"})
OF_TWINS = frozenset({"consistent", "inconsistent"})
"""Outcomes on real data and on twins; `uninformative` is possible on both."""
SMOKE_SPLITS = 4


def _silent(text: str) -> None:
    """Ignore a progress message."""


@dataclass
class Run:
    """One run of experiments: its data folder, number of splits, seed and cached values.

    `splits` and `seed` determine every random split. `remember` caches what several tables share.
    """

    data: Path | None = None
    splits: int = 100
    smoke: bool = False
    seed: int = 0
    say: Callable[[str], None] = _silent
    parts: Path | None = None
    """Folder of finished parts, which a killed run need not compute again."""
    _memory: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Shrink a smoke run."""
        if self.smoke:
            self.splits = min(self.splits, SMOKE_SPLITS)

    def remember(self, key: Any, make: Callable[[], T]) -> T:
        """Return what `make` returns, made once per key in this run."""
        if key not in self._memory:
            self._memory[key] = make()
        value: T = self._memory[key]
        return value

    def keep(
        self, key: tuple[Any, ...], made_from: Any, make: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays that `make` returns, computed once per hashable key, also when resumed.

        `made_from` is as for `resumed`.
        """
        return self.remember(key, lambda: self.resumed((key, made_from), make))

    def resumed(
        self, made_from: Any, make: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays that `make` returns, stored in the folder of parts, if there is one.

        `made_from` holds everything that they are computed from, so that other data give another file.
        """
        if self.parts is None:
            return make()
        return kept(self.parts, (made_from, self.splits, self.seed, self.smoke), make)

    def has(self, dataset: str) -> bool:
        """Return whether the data folder holds a data set."""
        return self.data is not None and (self.data / dataset).is_dir()

    def few(self, values: list[T], keep: int = 1) -> list[T]:
        """Return all values, or the first few in a smoke run."""
        return values[:keep] if self.smoke else values


@dataclass(frozen=True)
class Output:
    """A tidy table, the figures, and notes for the reader."""

    table: pd.DataFrame
    figures: Mapping[str, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    undefined: Mapping[str, str] = field(default_factory=dict)
    """Methods whose value may be undefined (NaN, an empty cell in the CSV), and when it is."""

    def __post_init__(self) -> None:
        """Raise ValueError for an empty or invalid table, or for a grade that twins cannot have."""
        table = self.table
        if list(table.columns) != COLUMNS or table.empty:
            raise ValueError(f"A result needs rows with the columns {', '.join(COLUMNS)}.")
        value = table["value"].astype(float)
        undefined = value.isna() & table["method"].isin(self.undefined) & (table["grade"] == "")
        wrong = table[~np.isfinite(value) & ~undefined]
        if len(wrong):
            row = wrong.iloc[0]
            raise ValueError(
                f"The {row['metric']} of {row['method']} ({row['task']}, n = {row['n']}) is "
                f"{row['value']}: a value must be finite, or its method listed in `undefined`."
            )
        graded = table[table["grade"] != ""]
        on_twin = graded["dataset"] == "twin"
        if (
            graded["grade"].isin(OF_TWINS) & ~on_twin | graded["grade"].isin(OF_DATA) & on_twin
        ).any():
            raise ValueError("A twin's grade stands on a row of real data, or the other way round.")


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper."""

    paper: str
    name: str
    title: str
    claim: str
    needs: tuple[str, ...]
    """Data sets that the experiment reads."""
    twins: bool
    """Whether it also runs without data: on twins, or on formulas only."""
    run: Callable[[Run], Output]

    def __reduce__(self) -> tuple[Callable[[str, str], "Experiment"], tuple[str, str]]:
        """Pickle by name: another process imports the module that defines the experiment."""
        module = sys.modules[self.run.__module__]
        name = next(name for name, value in vars(module).items() if value is self)
        return _imported, (module.__name__, name)

    def runnable(self, run: Run) -> bool:
        """Return whether a run has the data that the experiment needs."""
        return self.twins or all(run.has(name) for name in self.needs)


def _imported(module: str, name: str) -> Experiment:
    value: Experiment = getattr(importlib.import_module(module), name)
    return value


def experiment(
    paper: str,
    name: str,
    title: str,
    claim: str,
    *,
    needs: tuple[str, ...] = (),
    twins: bool = False,
) -> Callable[[Callable[[Run], Output]], Experiment]:
    """Return a decorator that turns a function of a run into an experiment."""
    return lambda function: Experiment(paper, name, title, claim, needs, twins, function)


def experiments() -> Iterator[Experiment]:
    """Yield every experiment, paper by paper."""
    root = Path(__file__).parent
    for folder in sorted(p for p in root.iterdir() if (p / "__init__.py").exists()):
        package = f"{__package__}.{folder.name}"
        for module in sorted(m.name for m in pkgutil.iter_modules([str(folder)])):
            main = getattr(importlib.import_module(f"{package}.{module}"), "main", None)
            if isinstance(main, Experiment):
                yield main


def find(names: list[str]) -> list[Experiment]:
    """Return the experiments named `paper` or `paper/table`, in order; without names, all.

    Raises
    ------
    JudgeBayesError
        If there is no such experiment.
    """
    available = sorted(experiments(), key=lambda e: (e.paper, _natural(e.name)))
    if not names:
        return available
    chosen = []
    for name in names:
        paper, _, table = name.partition("/")
        matches = [e for e in available if e.paper == paper and (not table or e.name == table)]
        if not matches:
            papers = sorted({e.paper for e in available})
            tables = [e.name for e in available if e.paper == paper]
            raise JudgeBayesError(
                f"There is no experiment {name!r}; "
                + (
                    f"{paper} has {', '.join(tables)}."
                    if tables
                    else f"there are {', '.join(papers)}."
                )
            )
        chosen += [e for e in matches if e not in chosen]
    return chosen


def _natural(name: str) -> tuple[str, int, str]:
    head = name.rstrip("0123456789")
    tail = name[len(head) :]
    return (head, int(tail) if tail else 0, name)


def default_data() -> Path | None:
    """Return the data folder: `JUDGEBAYES_DATA`, else `../shared/data` beside the checkout."""
    named = os.environ.get("JUDGEBAYES_DATA")
    if named:
        return Path(named)
    sibling = Path(__file__).resolve().parents[2] / "shared" / "data"
    return sibling if sibling.is_dir() else None


def data_folder() -> Path | None:
    """Return `default_data`, else the cache that `judgebayes data get` fills, unless it is empty."""
    from judgebayes.experiments.public import SOURCES, cache_folder

    cache = cache_folder()
    cached = any((cache / source.folder).is_dir() for source in SOURCES.values())
    return default_data() or (cache if cached else None)


def expected(paper: str, table: str) -> pd.DataFrame:
    """Return a paper's printed numbers: task, judge, n, method, metric, value, splits, where."""
    path = Path(__file__).parent / "expected" / paper.replace("-", "_") / f"{table}.csv"
    return pd.read_csv(path, keep_default_na=False, na_values={"n": [""], "splits": [""]})


def rows(paper: str, table: str, records: list[dict[str, Any]]) -> pd.DataFrame:
    """Return records as a result table with all columns, in order.

    A record whose `claim` is a `judgebayes.experiments.claims.Claim` gets the claim's kind, margin and
    grade, and its interval where the record has none and the number has an error. Grades have no other
    source.

    Raises
    ------
    ValueError
        If a record has a grade of its own.
    """
    if any("grade" in record or "margin" in record for record in records):
        raise ValueError("A grade comes from a claim: put a `Claim` under `claim`.")
    plain = [c for c in COLUMNS if c not in ("paper", "table", "margin", "grade")]
    frame = pd.DataFrame([_with_claim(record) for record in records])
    frame = frame.reindex(columns=[*plain, "margin", "grade"])
    for column in ("claim", "grade"):
        frame[column] = frame[column].astype(object).where(frame[column].notna(), "")
    frame.insert(0, "table", table)
    frame.insert(0, "paper", paper)
    return frame[COLUMNS]


def _with_claim(record: Mapping[str, Any]) -> dict[str, Any]:
    graded = record.get("claim")
    if not isinstance(graded, Claim):
        return {k: v for k, v in record.items() if k != "claim" or v == FITTED}
    _, low, high = graded.interval
    ends = {"low": low, "high": high} if low < high else {}
    cells = {"claim": graded.kind, "margin": graded.margin, "grade": graded.outcome}
    return {"value": graded.interval.mean, **ends, **record, **cells}


def graded(
    pairs: Sequence[tuple[Mapping[str, Any], Evidence]],
    *,
    kind: Kind,
    margin: float,
    within: bool = False,
    tolerance: float = 0.0,
    source: Source | None = None,
) -> list[dict[str, Any]]:
    """Return the records of one claim's cells, graded together, as `rows` takes them.

    Parameters
    ----------
    pairs
        Records without a grade and the evidence on each; all are of one source.
    kind, margin, within
        As for `judgebayes.experiments.claims.claims`.
    tolerance
        The claim is that the number is above minus the tolerance: "not worse" instead of "better".
    source
        Whose data these are; by default, what the data set's name says (`source_of`).
    """
    if not pairs:
        return []
    outcomes = claims(
        [of.plus(tolerance) for _, of in pairs],
        kind=kind,
        source=source or source_of(pairs[0][0]["dataset"]),
        margin=margin,
        within=within,
    )
    return [
        {**record, "claim": replace(one, interval=Interval(*(np.array(one.interval) - tolerance)))}
        for (record, _), one in zip(pairs, outcomes, strict=True)
    ]


def source_of(dataset: str) -> Source:
    """Return the source of a data set's claims.

    A twin; the paper's own protocol, where that simulates its data; or other data than the paper's.
    """
    sources: dict[str, Source] = {"twin": "twin", "synthetic": "own"}
    return sources.get(dataset, "other")
