"""`judgebayes reproduce`: run experiments into a folder of results, with progress."""

import shlex
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

import pandas as pd
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.core import SMOKE_SPLITS, Experiment, Output, Run, data_folder, find
from judgebayes.experiments.costs import TimeLeft, duration, known_costs, write_costs
from judgebayes.experiments.folders import clear_half_written, locked
from judgebayes.experiments.kept import source_digest
from judgebayes.experiments.matrix import index_page
from judgebayes.experiments.public import SOURCES
from judgebayes.experiments.request import ReproduceRequest
from judgebayes.experiments.resuming import UNFINISHED, data_files, finished
from judgebayes.experiments.runner import Cost, Failure, Runner
from judgebayes.experiments.sharding import RECORD, Results, Shard, divided, merged, part_named
from judgebayes.experiments.summary import ClaimSummary, claim_summaries, claims_table
from judgebayes.experiments.writing import grades, write_index, write_text
from judgebayes.show.console import Console, say, say_plainly, show_rows
from judgebayes.show.page import render
from judgebayes.show.versions import versions
from judgebayes.workflow.machine import NOT_ALL_HOLDS, CommandResult

NO_CLAIM = "no claim to grade"
PRINTED = ("result", "kind", "outcome", "ours", "paper")
"""The printed columns of the summary of claims; its file and the page have all."""


def reproduce(request: ReproduceRequest, words: Sequence[str]) -> CommandResult:
    """Run experiments, list them, or merge the results of shards."""
    if request.listed:
        return list_experiments(request.what or [])
    if request.merge:
        return merge_shards([Path(folder) for folder in request.what or []], request.out)
    return reproduce_papers(request, words)


def reproduce_papers(request: ReproduceRequest, command: Sequence[str]) -> CommandResult:
    """Run the named experiments, or all; the exit code is 1 unless all that could run have results.

    Each result is written as soon as it is done, together with the index in Markdown and HTML. At the
    end one table has all claims; `claims.csv` has every graded row. A run that was interrupted, or in
    which experiments failed, resumes. `--costs` writes the time and memory of each experiment.

    Raises
    ------
    JudgeBayesError
        If the data folder or an experiment does not exist, another run is writing to the folder, or
        the results cannot be written. Finished results are kept.
    """
    start = time.monotonic()
    what, data, out = request.what or [], request.data, request.out
    if data is not None and not data.is_dir():
        raise JudgeBayesError(f"There is no folder {str(data)!r}.")
    folder = None if request.twins else (data or data_folder())
    chosen = find(what)
    part = part_named(request.shard) if request.shard else None
    if part:
        parts = divided(chosen, part.of, twins=folder is None)
        chosen = [e for e in chosen if parts[e] == part]
    where = "embedded twins only" if folder is None else f"data in {folder}"
    used = min(request.splits, SMOKE_SPLITS) if request.smoke else request.splits
    shard = "" if part is None else f" of shard {part}"
    say_plainly(f"{len(chosen)} results{shard}, {where}, {used} splits, seed {request.seed}")
    facts = [
        ("command", shlex.join(command)),
        ("data", where),
        ("splits", str(used)),
        ("seed", str(request.seed)),
        *versions(),
    ]
    with locked(out / UNFINISHED, repr(str(out))):
        clear_half_written(out)
        (out / RECORD).unlink(missing_ok=True)
        run = Run(
            folder,
            request.splits,
            request.smoke,
            request.seed,
            parts=out / UNFINISHED / "parts",
        )
        results = Results(chosen, [], [e for e in chosen if not e.runnable(run)], {}, facts)
        costs = _Reproduction(results, run, out).run_all(request.jobs)
        _write_all(results, out)
        if request.costs is not None:
            write_costs(request.costs, costs, twins=folder is None)
        if part:
            settings = {
                "what": what,
                "shards": part.of,
                "twins": folder is None,
                "smoke": request.smoke,
                "splits": used,
                "seed": request.seed,
                "source": source_digest(),
                "data": [[name, size] for name, size, _ in data_files(folder, find(what))],
            }
            skipped = [_named(e) for e in results.skipped]
            records = {_named(d.experiment): d.record for d in results.done}
            Shard(part, settings, facts, skipped, records).write(out)
        if not results.failed:
            rest = out / UNFINISHED
            # A shard's records stay for the merge.
            shutil.rmtree(rest if part is None else rest / "parts", ignore_errors=True)
    return _said(results, out, start, "Run the same command again to repeat only these.")


def merge_shards(folders: Sequence[Path], out: Path) -> CommandResult:
    """Merge the folders of shards into one folder of results, as one run would have written it.

    The exit code is 1 if a shard or a result is missing; what is there is merged.

    Raises
    ------
    JudgeBayesError
        If no folder is named, one of them holds no shard that has ended, the shards are of different
        runs or two are the same part of one, or the results cannot be written.
    """
    if not folders:
        raise JudgeBayesError("Name the folders of the shards: `reproduce --merge FOLDER...`.")
    start = time.monotonic()
    with locked(out / UNFINISHED, repr(str(out))):
        clear_half_written(out)
        results = merged(folders, out)
        _write_all(results, out)
        if [each.name for each in (out / UNFINISHED).iterdir()] == ["lock"]:  # no unfinished run
            shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    return _said(results, out, start, "Run their shards, then merge again.")


def _write_all(results: Results, out: Path) -> None:
    """Write both indexes, every graded row, and their summary by result and kind of claim."""
    write_index([(d.experiment, d.page, d.output) for d in results.done], results.skipped, out)
    _write_page(results, out)
    pairs = _pairs(results)
    summary = pd.DataFrame(claim_summaries(pairs), columns=ClaimSummary._fields)
    for name, table in (("claims.csv", claims_table(pairs)), ("summary.csv", summary)):
        with atomically(out / name) as path:
            table.to_csv(path, index=False, lineterminator="\n", float_format="%.6g")


def _said(results: Results, out: Path, start: float, again: str) -> CommandResult:
    """Print and return how a run or a merge ended; `again` says how to get results that are missing."""
    chosen, done, skipped, failed, _ = results
    for each in skipped:
        needs = f"{', '.join(each.needs)} ({where_from(each.needs)})"
        say(f"{each.title}: needs {needs}", mark="[yellow]not run[/]")
    claims = [row._asdict() for row in claim_summaries(_pairs(results))]
    if claims:
        cells = [[row[name] for name in PRINTED] for row in claims]
        show_rows("Claims", PRINTED, cells, range(3))
        say_plainly("")
    took = f"All of it took {duration(time.monotonic() - start)}."
    where = f"{len(done)} results in {out}; start at {out / 'index.html'}"
    say_plainly(took, where)
    for experiment, failure in failed.items():
        log = "" if failure.log is None else f"; log: {failure.log}"
        say(f"{experiment.title}: {failure.reason}{log}", mark="[red]failed[/]")
    if failed:
        say(f"{len(failed)} of {len(chosen)} experiments failed. {again}")
    return CommandResult(
        {
            "folder": out,
            "experiments": len(chosen),
            "done": len(done),
            "failed": len(failed),
            "not_run": len(skipped),
            "tables": {
                "claims": claims,
                "failed": [
                    {"experiment": _named(e), "reason": f.reason, "log": f.log}
                    for e, f in failed.items()
                ],
                "not run": [{"experiment": _named(e), "needs": list(e.needs)} for e in skipped],
            },
        },
        exit_code=NOT_ALL_HOLDS if failed else 0,
    )


def _named(experiment: Experiment) -> str:
    return f"{experiment.paper}/{experiment.name}"


def _pairs(results: Results) -> list[tuple[Experiment, Output]]:
    return [(d.experiment, d.output) for d in results.done]


class _Reproduction:
    """The state of a run: the results so far, costs, and whether it has ended."""

    def __init__(self, results: Results, run: Run, out: Path) -> None:
        self.results, self.run, self.out = results, run, out
        self.waiting = [e for e in results.chosen if e not in results.skipped]
        self.remaining = TimeLeft(self.waiting, twins=run.data is None)
        self.costs: dict[Experiment, Cost] = {}
        self.turn, self.ended = Lock(), False
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(),
            transient=True,
        )
        done, total = len(results.skipped), len(results.chosen)
        self.bar = self.progress.add_task("starting", total=total, completed=done, left="")

    def run_all(self, jobs: int) -> dict[Experiment, Cost]:
        """Run the experiments that can run and are not finished; print each outcome, return costs.

        Each of the `jobs` threads has a process that runs one experiment at a time.
        """
        logs = self.out / UNFINISHED / "logs"
        free: SimpleQueue[Runner] = SimpleQueue()
        pool = ThreadPoolExecutor(jobs)
        with self.progress, ExitStack() as runners:
            for _ in range(jobs):
                free.put(runners.enter_context(Runner(self.run, self.out, logs)))

            def one(experiment: Experiment) -> None:
                runner = free.get()
                try:
                    if not self.ended:
                        self._one(experiment, runner)
                except BaseException:  # before this thread takes the next one
                    self.ended = True
                    raise
                finally:
                    free.put(runner)

            try:
                for _ in pool.map(one, self.waiting):
                    pass
            except BaseException:  # what runs is ended with its process, and nothing else begins
                self.ended = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return self.costs

    def _one(self, experiment: Experiment, runner: Runner) -> None:
        """Run an experiment unless it is finished, and print its outcome."""
        result, how = finished(experiment, self.run, self.out), " (finished in an earlier run)"
        if result is None:
            self._say(experiment.title)
            cost = runner(experiment, self._say)
            if isinstance(cost, Cost):
                result, how = (
                    finished(experiment, self.run, self.out),
                    f" ({duration(cost.seconds)})",
                )
                if result is None:
                    changed = "its files were changed while it ran"
                    cost = Failure(changed, self.out / experiment.paper)
            if isinstance(cost, Cost):
                self.costs[experiment] = cost
                self.remaining.took(experiment, cost.seconds)
            else:
                self.results.failed[experiment] = cost
                how = f": [red]failed[/], {escape(cost.reason)}"
        if experiment not in self.costs:
            self.remaining.skip(experiment)
        with self.turn:
            if self.ended:
                return
            chosen, done = self.results.chosen, self.results.done
            if result is not None:
                done.append(result)
                graded = grades(result.output)
                how = f": {NO_CLAIM if graded == '-' else escape(graded)}{how}"
                done.sort(key=lambda each: chosen.index(each.experiment))
                _write_page(self.results, self.out)
            left, number = self.remaining.text(), chosen.index(experiment) + 1
            self.progress.console.print(
                f"  {number:2d}/{len(chosen)} {experiment.title}{how}"
                + (f"; {left}" if left and number < len(chosen) else ""),
                soft_wrap=True,
            )
            self.progress.update(self.bar, left=left, advance=1)

    def _say(self, text: str) -> None:
        self.progress.update(self.bar, description=text)
        if not self.progress.console.is_terminal:  # without a progress bar, a log needs lines
            self.progress.console.print(f"  {text}", soft_wrap=True, markup=False)


def list_experiments(what: list[str]) -> CommandResult:
    """Print and return the named experiments, or all, with their estimated time and memory.

    Raises
    ------
    JudgeBayesError
        If there is no such experiment.
    """
    on_data, on_twins = known_costs(twins=False), known_costs(twins=True)
    rows: list[dict[str, Any]] = []
    cells = []
    for e in find(what):
        name = _named(e)
        cost, twin = on_data.get(name), on_twins.get(name)
        row = {
            "experiment": name,
            "seconds": None if cost is None else cost.seconds,
            "seconds_on_twins": None if twin is None else twin.seconds,
            "peak_bytes": None if cost is None else cost.peak_bytes,
            "title": e.title,
        }
        rows.append(row)
        times = ["-" if each is None else duration(each.seconds) for each in (cost, twin)]
        memory = "-" if cost is None else f"{cost.peak_bytes / 1e9:.1f} GB"
        cells.append((name, e.title, *times, memory))
    head = ("experiment", "result", "time", "on twins", "memory")
    show_rows("Experiments", head, cells, range(2))
    data, twins = (
        duration(sum(row[key] or 0 for row in rows)) for key in ("seconds", "seconds_on_twins")
    )
    say_plainly(
        f"All of these: about {data} on data, {twins} on twins.",
        "Measured with 100 splits on two cores, two papers at a time; memory is the peak of the "
        "process.",
    )
    return CommandResult({"experiments": len(rows), "tables": {"experiments": rows}})


def where_from(needs: Sequence[str]) -> str:
    """Return how to get data sets: a command that fetches them all, or the option for a folder."""
    names = {source.folder: source.name for source in SOURCES.values()}
    if all(name in names for name in needs):
        return f"judgebayes data get {' '.join(names[name] for name in needs)}"
    return "--data DIR"


def _write_page(results: Results, out: Path) -> None:
    done = [(d.experiment, d.output, d.section) for d in results.done]
    summaries = claim_summaries(_pairs(results))
    page = index_page(done, results.skipped, results.facts, summaries)
    write_text(out / "index.html", render(page))
