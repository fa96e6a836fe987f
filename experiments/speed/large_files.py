"""`python -m judgebayes.experiments.speed.large_files`: every command that reads votes, on millions.

Command: python -m judgebayes.experiments.speed.large_files
Runtime: about 20 minutes on two shared cores.
Expected: the table of docs/security.md; the memory carries over to other machines, the seconds do not.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import cyclopts
import numpy as np
from cyclopts import Parameter
from cyclopts.validators import Number

from judgebayes.show.console import say_plainly

JUDGES, LABELS, SYSTEMS = 10, 200, 5
COLUMNS = ("command", "s", "processor, s", "peak, MB", "ends with")


class Measured(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    """Seconds of all threads, which depend least on the load of other programs."""
    peak_mb: float
    said: str
    """The last line of an error; empty if there was none."""


def write_votes(folder: Path, items: int, seed: int = 0) -> None:
    """Write `votes.csv` (item, judge, vote), `systems.csv` (with the system) and `labels.csv`."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, items)
    right = rng.random((items, JUDGES)) < 0.7 + 0.02 * np.arange(JUDGES)
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    with (folder / "votes.csv").open("w") as plain, (folder / "systems.csv").open("w") as named:
        plain.write("item,judge,vote\n")
        named.write("item,system,judge,vote\n")
        for item, row in enumerate(votes.tolist()):
            system = f"s{item % SYSTEMS}"
            for judge, vote in enumerate(row):
                plain.write(f"i{item:06d},judge-{judge},{vote}\n")
                named.write(f"i{item:06d},{system},judge-{judge},{vote}\n")
    chosen = rng.choice(items, min(LABELS, items), replace=False)
    lines = [f"i{item:06d},{truth[item]}\n" for item in chosen]
    (folder / "labels.csv").write_text("item,label\n" + "".join(lines))


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands by name."""
    votes, labels = str(folder / "votes.csv"), ["--labels", str(folder / "labels.csv")]
    fit, generator = str(folder / "fit.json"), ["--set", "generator=system"]
    one_coin = ["calibrate", votes, *labels, "--splits", "10", "--method", "one-coin"]
    return {
        "check": ["check", votes, *labels],
        "diagnose": ["diagnose", votes, *labels],
        "ensemble": ["ensemble", votes, *labels],
        "precision": ["precision", str(folder / "systems.csv"), *labels, *generator],
        "calibrate --method one-coin --splits 10": [*one_coin, "--save", fit],
        "apply": ["apply", fit, votes],
        "posterior --model one-coin": ["posterior", votes, *labels, "--model", "one-coin"],
        "calibrate --splits 10": ["calibrate", votes, *labels, "--splits", "10"],
    }


def measured(command: list[str], folder: Path, most_mb: float) -> Measured:
    """Run a command; end it if it needs more memory."""
    began = time.monotonic()
    with (folder / "said.txt").open("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, cwd=folder)
        status, usage, ended, peak = 0, None, "", 0.0
        while usage is None:
            time.sleep(0.05)
            done, status, resources = os.wait4(process.pid, os.WNOHANG)
            if done:
                usage = resources
                break
            peak = max(peak, _peak_mb(process.pid))
            if not ended and peak > most_mb:
                ended = f"ended by this program, above {most_mb:,.0f} MB"
                process.kill()
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().strip().splitlines()
    failed = process.returncode != 0
    return Measured(
        time.monotonic() - began,
        usage.ru_utime + usage.ru_stime,
        peak or usage.ru_maxrss / 1024,
        ended or (" ".join(lines[-6:]) if failed else ""),
    )


def _peak_mb(process: int) -> float:
    """Return the peak of a process's memory so far, 0 where it is unknown.

    The peak that `wait4` returns is not below the memory of this program when it started the process.
    """
    try:
        status = Path(f"/proc/{process}/status").read_text()
        return float(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        return 0.0


def table_of(results: dict[str, Measured]) -> str:
    """Return the results as a table in Markdown."""
    rows = [
        f"| {name} | {r.seconds:.0f} | {r.processor:.0f} | {r.peak_mb:,.0f} | {r.said or 'an answer'} |"
        for name, r in results.items()
    ]
    return "\n".join([f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS), *rows])


def main(
    items: Annotated[
        int, Parameter(validator=Number(gte=100), help="Number of items, ten votes each.")
    ] = 500_000,
    most_mb: Annotated[float, Parameter(help="A command that needs more is ended.")] = 6000,
) -> None:
    """Measure every command, and print a row when it ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_votes(folder, items)
        for what, arguments in commands(folder).items():
            result = measured([sys.executable, "-m", "judgebayes", *arguments], folder, most_mb)
            say_plainly(table_of({what: result}).splitlines()[-1])


if __name__ == "__main__":
    cyclopts.run(main)
