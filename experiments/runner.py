"""Run experiments in child processes, one after the other.

If a process dies or an experiment raises, only that result is lost: its log is kept and the other
experiments run. Starting a process takes seconds, so small experiments share one. A process ends once
it has compiled `MOST_PROGRAMS` programs or holds `MOST_MEMORY` bytes. (Python 3.11 with JAX 0.9.2 once
died in libgcc's unwinder after thousands of programs in one process.)

Experiments share no state in memory, so sharing a process changes no number. What several of them use
is stored in the run's folder of parts.
"""

import contextlib
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.core import Experiment, Run
from judgebayes.experiments.folders import clear_half_written

MOST_PROGRAMS = 400
MOST_MEMORY = 3 * 2**30
COMPILED = "/jax/core/compile/backend_compile_duration"
"""The event that JAX records for each program that it compiles or reads from its cache."""


class Cost(NamedTuple):
    """Time, memory and compiled programs of one experiment."""

    seconds: float
    """Wall time."""
    peak_bytes: int
    """The largest resident memory while it ran; 0 where the system does not report it."""
    programs: int
    """Programs compiled, or read from the cache of compiled programs."""


class Failure(NamedTuple):
    """Why an experiment has no result."""

    reason: str
    log: Path | None
    """Its log, or the folder where it should be; None where a shard is missing."""


class Runner:
    """Runs experiments one at a time in a child process, replaced when it grows too large or dies.

    Use it as a context manager: the child ends with the block, also after an interrupt, and with
    its parent, however the parent ends. No other process may write into the folder of results.
    """

    def __init__(self, run: Run, out: Path, logs: Path) -> None:
        self.run, self.out, self.logs = run, out, logs
        self._child: BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> "Runner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(kill=kind is not None)
        if kind is not None:
            clear_half_written(self.out)

    def __call__(self, experiment: Experiment, say: Callable[[str], None]) -> Cost | Failure:
        """Run one experiment, which writes its result; return its cost, or why it failed.

        Raises
        ------
        JudgeBayesError
            If results cannot be written, since the next experiment could not write its own either.
        """
        log = self.logs / f"{experiment.paper}-{experiment.name}.log"
        child, pipe = self._ready()
        try:
            pipe.send((experiment, log))
            while True:
                wait([pipe, child.sentinel])
                kind, value = pipe.recv()
                if kind == "say":
                    say(value)
                elif kind == "failed":
                    return Failure(value, log)
                elif kind == "unwritable":
                    raise JudgeBayesError(value)
                else:
                    cost, programs, memory = value
                    if programs > MOST_PROGRAMS or memory > MOST_MEMORY:
                        self._end()
                    return Cost(*cost)
        except (EOFError, OSError):
            child.join()
            reason = _death(child.exitcode)
            self._end()
            return Failure(reason, log)

    def _ready(self) -> tuple[BaseProcess, Connection]:
        """Return a child process that waits for a job: the current one if it lives, or a new one."""
        if self._child is None or self._pipe is None or not self._child.is_alive():
            self._end()
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._child = context.Process(target=work, args=(theirs, self.run, self.out))
            with _without_interrupts():
                self._child.start()
            theirs.close()
        return self._child, self._pipe

    def _end(self, kill: bool = False) -> None:
        if self._pipe is not None:
            self._pipe.close()  # a child that waits for a job ends
        if self._child is not None:
            if kill:
                self._child.kill()
            self._child.join()
        self._child = self._pipe = None


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start children that Ctrl-C never reaches, not even while they import: their parent ends them."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # it starts with the first child otherwise, and unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child inherits this
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(code: int | None) -> str:
    """Return a sentence part that says how a process ended."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit status {code}"


def work(pipe: Connection, run: Run, out: Path) -> None:
    """Run the experiments that arrive through a pipe until it closes: the child's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows, where no signal can be blocked
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.set_threshold(100_000, 20, 100)  # as `judgebayes.cli.main` does
    programs = _counter()
    run.say = lambda text: pipe.send(("say", text))
    while True:
        try:
            experiment, log = pipe.recv()
        except EOFError:
            return
        _log_to(log)
        pipe.send(_answer(experiment, run, out, programs))


def _answer(experiment: Experiment, run: Run, out: Path, programs: list[int]) -> tuple[str, Any]:
    """Run one experiment; return its cost, or its error."""
    from judgebayes.experiments.resuming import finish

    before, start = programs[0], time.monotonic()
    _forget_peak()
    try:
        finish(experiment, run, out)
    except JudgeBayesError as error:
        traceback.print_exc()
        return ("unwritable" if isinstance(error.__cause__, OSError) else "failed", str(error))
    except Exception as error:
        traceback.print_exc()
        return "failed", "".join(traceback.format_exception_only(error)).strip()
    cost = Cost(time.monotonic() - start, _memory("VmHWM"), programs[0] - before)
    return "done", (tuple(cost), programs[0], _memory("VmRSS"))


def _counter() -> list[int]:
    """Return a list with one number: how many programs this process has compiled."""
    import jax

    count = [0]

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        count[0] += event == COMPILED

    jax.monitoring.register_event_duration_secs_listener(listen)
    return count


def _log_to(path: Path) -> None:
    """Redirect everything that this process prints, and the traceback of a fault, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _forget_peak() -> None:
    """Reset the peak of resident memory that the system records (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _memory(which: str) -> int:
    """Return a line of `/proc/self/status` in bytes; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(which)), 0)
