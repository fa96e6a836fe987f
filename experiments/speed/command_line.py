"""The time of commands: help, and `calibrate` on 2,000 x 20 votes."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.experiments.speed.panels import dense_panel

COLUMNS = (
    "command",
    "cold, s",
    "warm, s",
    "bar cold",
    "bar warm",
    "processor cold, s",
    "processor warm, s",
)


def command_line(rounds: int, items: int = 2000) -> str:
    """Return a table of wall and processor times of whole commands.

    Cold is the first call, with an empty cache folder; warm is the median of the calls after it.
    Processor time includes all threads, and depends least on the load of other programs.
    """
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        votes, labels = dense_panel(items, 20, missing=0.05)
        item, judge = np.nonzero(votes >= 0)
        table = pd.DataFrame({"item": item, "judge": judge, "vote": votes[item, judge]})
        table.to_csv(folder / "votes.csv", index=False)
        gold = pd.DataFrame({"item": np.arange(items), "label": labels})
        gold.to_csv(folder / "all.csv", index=False)
        gold.iloc[: items // 10].to_csv(folder / "labels.csv", index=False)
        # The other benchmarks disable the cache; these commands need it.
        cache = {
            **os.environ,
            "JAX_ENABLE_COMPILATION_CACHE": "true",
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        }
        calibrate = ["calibrate", str(folder / "votes.csv"), "--labels"]
        tenth, every = str(folder / "labels.csv"), str(folder / "all.csv")
        size = f"{items:,} x 20"
        commands = {
            "judgebayes --help": (["--help"], "", "0.4"),
            f"judgebayes calibrate, {size}, {items // 10:,} labels": (
                [*calibrate, tenth],
                "20",
                "5",
            ),
            "the same, --method one-coin": ([*calibrate, tenth, "--method", "one-coin"], "", ""),
            f"judgebayes calibrate, {size}, {items:,} labels": ([*calibrate, every], "", ""),
        }
        for what, (arguments, cold, warm) in commands.items():
            wall, processor = [], []
            for _ in range(rounds + 1):
                started, children_before = time.perf_counter(), _children()
                command = [sys.executable, "-m", "judgebayes", *arguments]
                subprocess.run(command, env=cache, check=True, capture_output=True)
                wall.append(time.perf_counter() - started)
                processor.append(_children() - children_before)
            cells = (
                what,
                f"{wall[0]:.2f}",
                f"{np.median(wall[1:]):.2f}",
                cold,
                warm,
                f"{processor[0]:.2f}",
                f"{np.median(processor[1:]):.2f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    one, five, _ = os.getloadavg()
    return "\n".join(
        [
            *lines,
            "",
            f"{os.cpu_count()} cores, load {one:.1f} (last minute) and {five:.1f} (last five).",
        ]
    )


def _children() -> float:
    """Return the processor time of ended child processes in seconds."""
    times = os.times()
    return times.children_user + times.children_system
