"""Resume an interrupted run: finished results are not computed again.

While `judgebayes reproduce` runs, its output folder contains `.unfinished`, with every finished result
and the stored parts of the sweeps behind it (`judgebayes.experiments.kept`). A result counts as
finished if it was made from the same data, source, splits and seed, and its files are unchanged. When
all results exist, `.unfinished` is removed: a completed run is never resumed. A shard keeps its records
for the merge (`judgebayes.experiments.sharding`).
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.compiled.store import atomically
from judgebayes.experiments.core import Experiment, Output, Run
from judgebayes.experiments.kept import source_digest
from judgebayes.experiments.matrix import figure_markup, result_section
from judgebayes.experiments.writing import write
from judgebayes.show.page import Section

UNFINISHED = ".unfinished"


@dataclass(frozen=True)
class Finished:
    """A result whose files are written."""

    experiment: Experiment
    page: Path
    record: str
    """The name of the file from which it is read again."""
    output: Output
    """The output without its figures, which the section contains."""
    section: Section


def finish(experiment: Experiment, run: Run, out: Path) -> None:
    """Run an experiment, write its files, and record them for `finished`.

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
        "pictures": figure_markup(experiment, output),
    }
    text = json.dumps(note)
    with atomically(_note(experiment, run, out), new_folder=True) as temporary:
        digest = hashlib.sha256(text.encode()).hexdigest()
        temporary.write_text(f"{digest}\n{text}", encoding="utf-8")


def finished(experiment: Experiment, run: Run, out: Path) -> Finished | None:
    """Return the result that `finish` wrote for the same data, source and settings, or None."""
    return _restored(experiment, _note(experiment, run, out), out)


def copied(experiment: Experiment, record: str, folder: Path, out: Path) -> Finished | None:
    """Copy the result with this record from one folder to another; None unless it is there and whole.

    Raises
    ------
    JudgeBayesError
        If a file cannot be written.
    """
    path = folder / UNFINISHED / "results" / record
    saved = _read(path, folder)
    if saved is None:
        return None
    for name in saved["files"]:
        with atomically(out / experiment.paper / Path(name).name, new_folder=True) as temporary:
            shutil.copyfile(folder / name, temporary)
    return _restored(experiment, path, out)


def _restored(experiment: Experiment, path: Path, out: Path) -> Finished | None:
    """Return the result with this record whose files lie in `out`, or None."""
    saved = _read(path, out)
    if saved is None:
        return None
    table = pd.DataFrame(saved["rows"], columns=saved["columns"])
    output = Output(table, notes=saved["notes"], undefined=saved["undefined"])
    page = out / experiment.paper / f"{experiment.name}.md"
    section = result_section(experiment, output, saved["pictures"])
    return Finished(experiment, page, path.name, output, section)


def _note(experiment: Experiment, run: Run, out: Path) -> Path:
    name = f"{experiment.paper}-{experiment.name}-{_made_from(experiment, run)}.json"
    return out / UNFINISHED / "results" / name


def data_files(data: Path | None, experiments: Sequence[Experiment]) -> list[tuple[str, int, int]]:
    """Return name, size and date of each file of the data sets that experiments need, in order."""
    if data is None:
        return []
    return sorted(
        (f.relative_to(data).as_posix(), f.stat().st_size, f.stat().st_mtime_ns)
        for name in {name for experiment in experiments for name in experiment.needs}
        for f in (data / name).rglob("*")
        if f.is_file()
    )


def _made_from(experiment: Experiment, run: Run) -> str:
    """Return a digest of a result's inputs: source, settings, and the data files with their dates."""
    files = data_files(run.data, [experiment])
    inputs = (source_digest(), run.splits, run.smoke, run.seed, str(run.data), files)
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]


def _read(path: Path, out: Path) -> Any:
    """Return the saved record of a result, or None if it or its files have changed since.

    The first line is the digest of the rest.
    """
    try:
        first, _, text = path.read_text(encoding="utf-8").partition("\n")
        if hashlib.sha256(text.encode()).hexdigest() != first:
            return None
        saved = json.loads(text)
        whole = all(_digest(out / name) == digest for name, digest in saved["files"].items())
    except (OSError, UnicodeError):
        return None
    return saved if whole else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _plain(cell: Any) -> Any:
    """Return a cell as a value that JSON can represent."""
    if hasattr(cell, "item"):
        cell = cell.item()
    return cell if isinstance(cell, str | bool | int | float) else None
