"""How soon each long command ends after Ctrl-C and SIGTERM, at random times during its work.

python tests/stopping.py --kills 20 --seed 1         # the table of tests/fuzz/README.md

Every command runs once without a signal. Then it is started again and again, each time with new files
and an empty cache of programs, and gets the signal at a random time. A stop is right if the command ends
with code 130 or 143, a line says what was kept, and no half-written file is left.
"""

import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

HALF = ".half-written"
LIMIT = 2.0
"""Seconds in which a command must end."""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
KEPT = re.compile(r"^(Error: )?(Interrupted|Ended by SIGTERM)[.:;]? .*", re.MULTILINE)
START = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell has it ignored\n"
    "from judgebayes.cli import main\n"
    "main()"
)


@dataclass(frozen=True)
class Stopped:
    """How a command ended after a signal."""

    seconds: float
    code: int
    said: str
    finished: bool
    """Whether it had ended before the signal."""
    halves: tuple[str, ...]

    def right(self, number: signal.Signals) -> bool:
        """Return whether it ended as it should, or by itself at about the same time."""
        if self.code == 0:
            return not self.halves
        stated = KEPT.search(self.said) is not None and "Traceback" not in self.said
        return self.code == CODES[number] and stated and not self.halves


def start(words: Sequence[object], folder: Path, cache: Path) -> subprocess.Popen[str]:
    """Start a command in a folder, with its own cache of compiled programs."""
    return subprocess.Popen(
        [sys.executable, "-c", START, *map(str, words)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache)},
    )


def stop(process: subprocess.Popen[str], number: signal.Signals, folder: Path) -> Stopped:
    """Send a signal to a process, and return how it ended."""
    finished = process.poll() is not None
    began = time.monotonic()
    process.send_signal(number)
    said = process.communicate()[1]
    seconds = time.monotonic() - began
    halves = tuple(str(path) for path in folder.rglob(f"*{HALF}"))
    return Stopped(seconds, process.returncode, said, finished, halves)


def put_votes(folder: Path) -> None:
    """Write votes of six judges on 400 items, most of them labelled, and of two generators."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 400)
    right = rng.random((400, 6)) < np.linspace(0.6, 0.9, 6)
    item, judge = (x.ravel() for x in np.indices(right.shape))
    vote = np.where(right.ravel(), label[item], 1 - label[item])
    generator = np.array(["g", "h"])[item % 2]
    table = {"item": item, "judge": judge, "vote": vote, "generator": generator}
    pd.DataFrame(table).to_csv(folder / "v.csv", index=False)
    gold = pd.DataFrame({"item": np.arange(400), "label": label})
    gold.head(200).to_csv(folder / "l.csv", index=False)


LABELLED = ("v.csv", "--labels", "l.csv")
COMMANDS: dict[str, tuple[object, ...]] = {
    "calibrate": ("calibrate", *LABELLED, "--out", "answers.csv"),
    "report": ("report", *LABELLED),
    "diagnose": ("diagnose", *LABELLED),
    "ensemble": ("ensemble", *LABELLED),
    "precision": ("precision", *LABELLED),
    "posterior": ("posterior", *LABELLED, "--model", "irt", "-o", "p.npz"),
    "reproduce": ("reproduce", "distribution-calibrated/table3", "--twins", "--smoke"),
}
"""The long commands by name."""


def measure(
    words: Sequence[object], kills: int, rng: random.Random, say: Callable[[str], None]
) -> list[Stopped]:
    """Return how a command ended, each time after a signal at a random time of its run."""
    stops: list[Stopped] = []
    with tempfile.TemporaryDirectory() as home:
        longest = _lasts(words, Path(home) / "whole")
        for number in [signal.SIGINT, signal.SIGTERM] * (kills // 2):
            folder = Path(home) / "run"
            folder.mkdir()
            put_votes(folder)
            process = start(words, folder, Path(home) / "cache")
            time.sleep(rng.uniform(0.5, max(longest, 0.6)))
            stopped = stop(process, number, folder)
            if not stopped.right(number) or stopped.seconds > LIMIT:
                say(f"{words[0]}: {stopped}")
            stops.append(stopped)
            shutil.rmtree(folder)
            shutil.rmtree(Path(home) / "cache", ignore_errors=True)
    return stops


def _lasts(words: Sequence[object], folder: Path) -> float:
    folder.mkdir()
    put_votes(folder)
    began = time.monotonic()
    process = start(words, folder, folder / "cache")
    said = process.communicate()[1]
    assert process.returncode in (0, 1), said
    return time.monotonic() - began


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=COMMANDS, action="append")
    args = parser.parse_args()
    print("| command | during work | right | median, s | largest, s |", flush=True)
    print("|---" * 5 + "|")
    worst = 0.0
    for name in args.only or COMMANDS:
        stops = measure(COMMANDS[name], args.kills, random.Random(args.seed), print)
        during = [each for each in stops if not each.finished]
        times = [each.seconds for each in during]
        right = sum(
            each.right(number)
            for each, number in zip(
                stops, [signal.SIGINT, signal.SIGTERM] * args.kills, strict=False
            )
        )
        worst = max(worst, *times)
        cells = [len(during), right, f"{statistics.median(times):.2f}", f"{max(times):.2f}"]
        print(f"| `{name}` | " + " | ".join(map(str, cells)) + " |", flush=True)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
