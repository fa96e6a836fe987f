"""What an experiment is, what it returns, and how its result is graded and written."""

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from judgebayes.compiled.checkpoint import kept_part
from judgebayes.compiled.digest import digest_of
from judgebayes.errors import JudgeBayesError
from judgebayes.measures.significance import Interval

__all__ = [
    "COLUMNS",
    "Experiment",
    "Grade",
    "Output",
    "Run",
    "expected",
    "experiment",
    "experiments",
    "find",
    "grade",
    "rows",
]

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
    "grade",
]
"""The columns of every result file; a cell is empty where it does not apply."""

Grade = Literal["reproduced", "replicated", "contradicted", "simulated", ""]

GRADES = frozenset(get_args(Grade))
SMOKE_SPLITS = 4


def _silent(text: str) -> None:
    """Say nothing."""


@dataclass
class Run:
    """One run of experiments: where the data are, how many splits, and what is remembered.

    `splits` and `seed` go into every random split. `remember` keeps what several tables share.
    """

    data: Path | None = None
    splits: int = 100
    smoke: bool = False
    seed: int = 0
    say: Callable[[str], None] = _silent
    batch_size: int | None = None
    """How many splits to fit at once; as memory allows if None."""
    checkpoint: Path | None = None
    """Where sweeps keep what is done."""
    _memory: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Shrink a smoke run."""
        if self.smoke:
            self.splits = min(self.splits, SMOKE_SPLITS)

    def remember(self, key: Any, make: Callable[[], T]) -> T:
        """Return what `make` returns, made once per key in this run."""
        if key not in self._memory:
            self._memory[key] = make()
        kept: T = self._memory[key]
        return kept

    def keep(
        self, key: tuple[Any, ...], made_from: Any, make: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays that `make` returns, made once per hashable key, in resumed runs too.

        They are kept in the checkpoint folder, if there is one; `made_from` holds the arrays that
        they are computed from, so that other data give other files.
        """

        def kept() -> dict[str, np.ndarray]:
            if self.checkpoint is None:
                return make()
            name = digest_of(made_from, key, self.splits, self.seed, self.smoke)
            return kept_part(self.checkpoint, name, make)

        return self.remember(key, kept)

    def has(self, dataset: str) -> bool:
        """Tell whether the data folder holds a data set."""
        return self.data is not None and (self.data / dataset).is_dir()

    def few(self, values: list[T], keep: int = 1) -> list[T]:
        """Return all values, or the first few in a smoke run."""
        return values[:keep] if self.smoke else values


@dataclass(frozen=True)
class Output:
    """A tidy table, the figures, and what a reader should know, in sentences."""

    table: pd.DataFrame
    figures: dict[str, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    undefined: Mapping[str, str] = field(default_factory=dict)
    """Methods whose value may be undefined (NaN, an empty cell of the CSV), and when it is."""

    def __post_init__(self) -> None:
        """Refuse a table that says nothing, or claims on twins what only data can show."""
        table = self.table
        if list(table.columns) != COLUMNS or table.empty:
            raise ValueError(f"A result has rows, in the columns {', '.join(COLUMNS)}.")
        value = table["value"].astype(float)
        undefined = value.isna() & table["method"].isin(self.undefined) & (table["grade"] == "")
        wrong = table[~np.isfinite(value) & ~undefined]
        if len(wrong):
            row = wrong.iloc[0]
            raise ValueError(
                f"The {row['metric']} of {row['method']} ({row['task']}, n = {row['n']}) is "
                f"{row['value']}: a value is a finite number, or undefined and said why."
            )
        strange = set(table["grade"]) - GRADES
        if strange or set(table.loc[table["dataset"] == "twin", "grade"]) - {"simulated"}:
            raise ValueError("A grade is none there is, or a twin's is not `simulated`.")


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper."""

    paper: str
    name: str
    title: str
    claim: str
    needs: tuple[str, ...]
    """Data sets that it reads."""
    twins: bool
    """Whether it also runs without data, on twins or on nothing but formulas."""
    run: Callable[[Run], Output]

    def __reduce__(self) -> tuple[Callable[[str, str], "Experiment"], tuple[str, str]]:
        """Pickle as a name: another process imports the module that it stands in."""
        module = sys.modules[self.run.__module__]
        name = next(name for name, value in vars(module).items() if value is self)
        return _imported, (module.__name__, name)

    def runnable(self, run: Run) -> bool:
        """Tell whether a run has what this needs."""
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
    """Return a decorator that makes an experiment of a function of a run."""
    return lambda function: Experiment(paper, name, title, claim, needs, twins, function)


def experiments() -> Iterator[Experiment]:
    """Yield every experiment, paper by paper."""
    root = Path(__file__).parent
    for folder in sorted(p for p in root.iterdir() if (p / "__init__.py").exists()):
        package = f"{__package__}.{folder.name}"
        for module in sorted(m.name for m in pkgutil.iter_modules([str(folder)])):
            found = getattr(importlib.import_module(f"{package}.{module}"), "main", None)
            if isinstance(found, Experiment):
                yield found


def find(wanted: list[str]) -> list[Experiment]:
    """Return the experiments named `paper` or `paper/table`, in order; all if none is named.

    Raises
    ------
    JudgeBayesError
        If there is no such experiment.
    """
    known = sorted(experiments(), key=lambda e: (e.paper, _natural(e.name)))
    if not wanted:
        return known
    chosen = []
    for name in wanted:
        paper, _, table = name.partition("/")
        matches = [e for e in known if e.paper == paper and (not table or e.name == table)]
        if not matches:
            papers = sorted({e.paper for e in known})
            tables = [e.name for e in known if e.paper == paper]
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
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return beside if beside.is_dir() else None


def data_folder() -> Path | None:
    """Return `default_data`, else the cache that `judgebayes data get` fills, if it holds any."""
    from judgebayes.public import SOURCES, cache_folder

    cache = cache_folder()
    cached = any((cache / source.folder).is_dir() for source in SOURCES.values())
    return default_data() or (cache if cached else None)


def expected(paper: str, table: str) -> pd.DataFrame:
    """Return a paper's printed numbers: task, judge, n, method, metric, value, splits, where."""
    path = Path(__file__).parent / "expected" / paper.replace("-", "_") / f"{table}.csv"
    return pd.read_csv(path, keep_default_na=False, na_values={"n": [""], "splits": [""]})


def rows(paper: str, table: str, records: list[dict[str, Any]]) -> pd.DataFrame:
    """Return records as a result table with all columns, in order."""
    frame = pd.DataFrame(records, columns=[c for c in COLUMNS if c not in ("paper", "table")])
    given = frame["grade"].astype(object).where(frame["grade"].notna(), "")
    # Whatever is seen on a twin is a prediction.
    frame["grade"] = given.mask((frame["dataset"] == "twin") & (given == ""), "simulated")
    frame.insert(0, "table", table)
    frame.insert(0, "paper", paper)
    return frame[COLUMNS]


def grade(advantage: Interval) -> Grade:
    """Return the grade of a claim on other real data, from the interval of its advantage.

    `replicated` if the whole interval is above zero, `contradicted` if it is below, and nothing
    where the data do not settle it.
    """
    if not np.isfinite(advantage.low):
        return ""
    return "replicated" if advantage.low > 0 else "contradicted" if advantage.high < 0 else ""
