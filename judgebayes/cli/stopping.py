"""Ctrl-C and SIGTERM end a command within two seconds, also while compiled code runs.

Python calls a signal handler between two of its instructions, so a compilation, a sampler or a loop in
one compiled program delays it. A thread reads the signals from a socket, which Python's C handler writes
to at once. It gives the main thread a second, then says what was kept and ends the process. Files are
renamed into place when they are complete, so that this loses none.
"""

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from judgebayes.compiled.stopping import kept, saving_now
from judgebayes.compiled.store import clear_active
from judgebayes.sentence import sentence

__all__ = ["CODES", "Stopper", "stopper"]

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""The exit code after each signal."""
WORDS = {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Ended by SIGTERM."}
PATIENCE = 0.9
"""Seconds that the main thread has to end by itself."""
REPORTING = 0.3
"""Seconds more if it is about to end."""
INTERVAL = 0.05


class Stopper:
    """Ends the process after a signal if the main thread does not."""

    def __init__(self) -> None:
        self.number: signal.Signals | None = None
        """The first signal; None if there was none."""
        self.report: Callable[[int, str], None] = _nothing
        """Called before the process ends, with the exit code and what was printed."""
        self._one = threading.Lock()
        self._signals: socket.socket | None = None

    def start(self) -> None:
        """Watch for signals. It is called once, by the main thread."""
        self._signals, wakeup = socket.socketpair()
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.detach(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, _end)
        sys.unraisablehook = _unless_it_ends
        threading.Thread(target=self._watch, daemon=True, name="signals").start()

    def finish(self) -> None:
        """Ignore signals from now on: the command has ended, and its code must not become the signal's.

        Python restores the system's handlers while it ends, which takes a moment with JAX.
        """
        for number in CODES:
            signal.signal(number, signal.SIG_IGN)

    def leave(self, code: object) -> None:
        """End the process at once after a signal; Python would destroy all its objects first.

        The code tells of a signal too: the main thread may be here before the thread that watches.
        """
        if self.number is not None or code in CODES.values():
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            _exit(code if isinstance(code, int) else int(code is not None))

    def words(self, number: signal.Signals) -> str:
        """Return the sentences that are printed at the end."""
        return sentence(f"{WORDS[number]} {kept()}")

    def claim(self) -> None:
        """Let only the thread that calls this first report the end; another one waits for it."""
        if not self._one.acquire(blocking=False):
            threading.Event().wait()

    def _watch(self) -> None:
        assert self._signals is not None
        while (number := self._next(None)) not in CODES:
            pass
        self.number = number
        end, kept = time.monotonic() + PATIENCE, None
        while (now := time.monotonic()) < end:
            if self._next(INTERVAL) in CODES:
                end = min(end, now + PATIENCE)  # the second one is for a command that saves
                kept = kept or ""
            elif kept is None and (kept := saving_now()) is not None:
                _print(kept)
                end = now + 10**9
        self._end()

    def _next(self, seconds: float | None) -> signal.Signals | None:
        assert self._signals is not None
        self._signals.settimeout(seconds)
        try:
            byte = self._signals.recv(1)
        except TimeoutError:
            return None
        return signal.Signals(byte[0]) if byte and byte[0] in CODES else None

    def _end(self) -> None:
        assert self.number is not None
        if self._one.acquire(blocking=False):
            words = self.words(self.number)
            _print(words)
            with contextlib.suppress(Exception):
                self.report(CODES[self.number], words)
        else:
            time.sleep(REPORTING)
        _exit(CODES[self.number])


def _exit(code: int) -> NoReturn:
    """End the process without waiting for anything."""
    clear_active()
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(code)


def _print(words: str) -> None:
    """Write a line to standard error without its locks, and show the cursor that a bar has hidden."""
    show = b"\r\x1b[2K\x1b[?25h" if sys.__stderr__ is not None and os.isatty(2) else b""
    with contextlib.suppress(OSError):
        os.write(2, show + words.encode("utf-8", "replace") + b"\n")


def _nothing(_: int, __: str) -> None:
    """Report the end to nobody."""


def _end(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
    raise SystemExit(CODES[signal.Signals(number)])


def _unless_it_ends(unraisable: Any) -> None:
    """Print an error that nobody can catch, but not the end of the command.

    A signal can arrive in a callback of the garbage collector, which ignores what is raised there.
    """
    if not isinstance(unraisable.exc_value, KeyboardInterrupt | SystemExit):
        sys.__unraisablehook__(unraisable)


stopper = Stopper()
"""That of this process."""
