"""Results of a run that was interrupted: what is finished is not run again.

While `judgebayes reproduce` runs, its folder holds a folder `.unfinished`: what every result came to,
and the answers of the sweeps behind it (`judgebayes.compiled.checkpoint`). A result counts as
finished if it was made from the same data, source, splits and seed, and its files are as they were
written. When all results are there, `.unfinished` is removed: a run that ended is never taken up again.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.compiled.digest import source_digest
from judgebayes.compiled.store import atomically
from judgebayes.experiments.core import Experiment, Output, Run
from judgebayes.experiments.matrix import drawn, result_section
from judgebayes.experiments.writing import write
from judgebayes.report import Section

__all__ = ["UNFINISHED", "Finished", "finish", "finished"]

UNFINISHED = ".unfinished"


@dataclass(frozen=True)
class Finished:
    """A result that stands in its files."""

    experiment: Experiment
    page: Path
    output: Output
    """Without figures: they are drawn in the section."""
    section: Section


def finish(experiment: Experiment, run: Run, out: Path) -> None:
    """Run an experiment, write its files, and note them for `finished`.

    Raises
    ------
    JudgeBayesError
        If a file cannot be written; earlier results stay.
    """
    output = experiment.run(run)
    files = write(experiment, output, out)
    note = {
        "files": {f.relative_to(out).as_posix(): _digest(f) for f in files},
        "columns": list(output.table.columns),
        "rows": [[_plain(cell) for cell in row] for row in output.table.to_numpy(object)],
        "notes": list(output.notes),
        "undefined": dict(output.undefined),
        "pictures": drawn(experiment, output),
    }
    with atomically(_note(experiment, run, out), new_folder=True) as beside:
        beside.write_text(json.dumps(note), encoding="utf-8")


def finished(experiment: Experiment, run: Run, out: Path) -> Finished | None:
    """Return the result that `finish` wrote for the same data, source and settings; else None."""
    kept = _read(_note(experiment, run, out), out)
    if kept is None:
        return None
    table = pd.DataFrame(kept["rows"], columns=kept["columns"])
    output = Output(table, notes=kept["notes"], undefined=kept["undefined"])
    page = out / experiment.paper / f"{experiment.name}.md"
    section = result_section(experiment, output, kept["pictures"])
    return Finished(experiment, page, output, section)


def _note(experiment: Experiment, run: Run, out: Path) -> Path:
    name = f"{experiment.paper}-{experiment.name}-{_made_from(experiment, run)}.json"
    return out / UNFINISHED / "results" / name


def _made_from(experiment: Experiment, run: Run) -> str:
    """Return a digest of what a result is made from: source, settings, and the data by their dates."""
    data = run.data
    files = (
        []
        if data is None
        else sorted(
            (f.relative_to(data).as_posix(), f.stat().st_size, f.stat().st_mtime_ns)
            for name in experiment.needs
            for f in (data / name).rglob("*")
            if f.is_file()
        )
    )
    told = (source_digest(), run.splits, run.smoke, run.seed, run.batch_size, str(data), files)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _read(path: Path, out: Path) -> Any:
    """Return what is kept of a result; None where its files are not those that were written."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        whole = all(_digest(out / name) == digest for name, digest in kept["files"].items())
    except (OSError, ValueError, KeyError):
        return None
    return kept if whole else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _plain(cell: Any) -> Any:
    """Return a cell as JSON can say it."""
    if hasattr(cell, "item"):
        cell = cell.item()
    return cell if isinstance(cell, str | bool | int | float) else None
