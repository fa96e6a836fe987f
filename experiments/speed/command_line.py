"""How long the command line takes to answer: help, and `calibrate` on 2,000 x 20 votes."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.experiments.speed.panels import dense_panel

__all__ = ["command_line"]


def command_line(rounds: int) -> str:
    """Return a table of wall times of whole commands."""
    lines = ["| command | cold, s | warm, s | bar cold | bar warm |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        votes, labels = dense_panel(2000, 20, missing=0.0)
        item, judge = np.indices(votes.shape)
        table = {"item": item.ravel(), "judge": judge.ravel(), "vote": votes.ravel()}
        pd.DataFrame(table | {"label": labels[item.ravel()]}).to_csv(
            Path(folder) / "votes.csv", index=False
        )
        cache = {**os.environ, "JAX_COMPILATION_CACHE_DIR": f"{folder}/cache"}
        commands = {
            "judgebayes --help": (["--help"], "", "0.4"),
            "judgebayes calibrate, 2,000 x 20": (["calibrate", f"{folder}/votes.csv"], "20", "5"),
            "the same, --method one-coin": (
                ["calibrate", f"{folder}/votes.csv", "--method", "one-coin"],
                "",
                "",
            ),
        }
        for name, (arguments, cold, warm) in commands.items():
            seconds = []
            for _ in range(rounds + 1):
                started = time.perf_counter()
                command = [sys.executable, "-m", "judgebayes", *arguments]
                subprocess.run(command, env=cache, check=True, capture_output=True)
                seconds.append(time.perf_counter() - started)
            lines.append(
                f"| {name} | {seconds[0]:.2f} | {np.median(seconds[1:]):.2f} | {cold} | {warm} |"
            )
    return "\n".join(lines)
