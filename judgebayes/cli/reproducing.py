"""`judgebayes reproduce`: experiments, with progress, into a folder of results."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from judgebayes.checkpoint import clear_half_written, locked
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.core import SMOKE_SPLITS, Experiment, Run, data_folder, find
from judgebayes.experiments.matrix import HEAD, index_page, matrix_rows, ordered
from judgebayes.experiments.resuming import UNFINISHED, Finished, finish
from judgebayes.experiments.writing import grades, write_index, write_text
from judgebayes.public import SOURCES
from judgebayes.report import render
from judgebayes.report.versions import versions

__all__ = ["reproduce_papers", "where_from"]

SHORT_AUDIT = 100
WIDE_ENOUGH = 140
"""Columns of a console that shows what each number is of, and what the audit says."""


def reproduce_papers(
    what: list[str],
    data: Path | None,
    twins: bool,
    splits: int,
    smoke: bool,
    seed: int,
    out: Path,
    batch_size: int | None,
    command: Sequence[str],
) -> None:
    """Run the experiments that were named, or all; write each as soon as it is done.

    The index, in Markdown and as a page, is written anew after each. If none was named, the matrix
    of all results is printed too. A run that was interrupted goes on where it was.

    Raises
    ------
    JudgeBayesError
        If the data folder or an experiment does not exist, another run is writing to the folder, or
        the results cannot be written: what is finished stays.
    """
    console = Console()
    if data is not None and not data.is_dir():
        raise JudgeBayesError(f"There is no folder {str(data)!r}.")
    folder = None if twins else (data or data_folder())
    chosen = find(what)
    where = "embedded twins only" if folder is None else f"data in {folder}"
    used = min(splits, SMOKE_SPLITS) if smoke else splits
    console.print(f"{len(chosen)} results, {where}, {used} splits, seed {seed}", soft_wrap=True)
    facts = [
        ("command", shlex.join(command)),
        ("data", where),
        ("splits", str(used)),
        ("seed", str(seed)),
        *versions(),
    ]
    with locked(out / UNFINISHED, repr(str(out))):
        clear_half_written(out)
        run = Run(
            folder,
            splits,
            smoke,
            seed,
            batch_size=batch_size,
            checkpoint=out / UNFINISHED / "splits",
        )
        done, skipped = _finish_all(console, chosen, run, facts, out)
        write_index([(d.experiment, d.page, d.output) for d in done], skipped, out)
        index = _write_page(done, skipped, facts, out)
        shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    for experiment in skipped:
        console.print(
            f"[yellow]not run[/]  {experiment.title}: needs {', '.join(experiment.needs)} "
            f"({where_from(experiment.needs)})",
            soft_wrap=True,
        )
    if not what:
        _print_matrix(console, done)
    console.print(f"{len(done)} results in {index.parent}; start at {index}", soft_wrap=True)


def _finish_all(
    console: Console, chosen: list[Experiment], run: Run, facts: list[tuple[str, str]], out: Path
) -> tuple[list[Finished], list[Experiment]]:
    """Run what can be run, and say how each came out; return it, and what was skipped."""
    done: list[Finished] = []
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        bar = progress.add_task("starting", total=len(chosen))

        def say(text: str) -> None:
            progress.update(bar, description=text)
            if not console.is_terminal:  # no bar is drawn there, and hours of silence are no log
                progress.console.print(f"  {text}", soft_wrap=True, markup=False)

        run.say = say
        skipped = [e for e in chosen if not e.runnable(run)]
        for number, experiment in enumerate(chosen, start=1):
            if experiment not in skipped:
                run.say(experiment.title)
                found = finish(experiment, run, out)
                done.append(found)
                _write_page(done, skipped, facts, out)
                came_out = grades(found.output)
                if came_out == "-":
                    came_out = "no claim to grade"
                before = " (finished by the run before)" if found.resumed else ""
                progress.console.print(
                    f"  {number:2d}/{len(chosen)} {experiment.title}: {escape(came_out)}{before}",
                    soft_wrap=True,
                )
            progress.advance(bar)
    return done, skipped


def where_from(needs: Sequence[str]) -> str:
    """Return how to come by data sets: the command that gets them all, or the option for a folder."""
    names = {source.folder: source.name for source in SOURCES.values()}
    if all(name in names for name in needs):
        return f"judgebayes data get {' '.join(names[name] for name in needs)}"
    return "--data DIR"


def _write_page(
    done: list[Finished], skipped: list[Experiment], facts: list[tuple[str, str]], out: Path
) -> Path:
    results = [(d.experiment, d.output, d.section) for d in done]
    index = out / "index.html"
    write_text(index, render(index_page(results, skipped, facts)))
    return index


def _print_matrix(console: Console, done: list[Finished]) -> None:
    """Print a table per paper; a narrow console does without what the page says at length."""
    wide = console.width >= WIDE_ENOUGH
    kept = [k for k, name in enumerate(HEAD) if wide or name not in ("of", "audit")]
    results = [(d.experiment, d.output) for d in done]
    for paper, places in ordered(results).items():
        table = Table(title=paper, title_justify="left", box=None, pad_edge=False)
        for k in kept:
            number = HEAD[k] in ("ours", "paper")
            table.add_column(
                HEAD[k],
                justify="right" if number else "left",
                no_wrap=number,
                overflow="fold",
                ratio=2 if HEAD[k] == "audit" else None,
            )
        for row in matrix_rows([results[place] for place in places], SHORT_AUDIT):
            table.add_row(*(escape(row[k]) for k in kept))
        console.print(table, highlight=False)
        console.print()
