"""Experiments for tests of the runner: a file in a folder controls what each one does.

They run in processes that import this module. A file in the folder `PLANTED` names the folder of the
test at hand (`now`). There, `NAME.ran` counts runs, a letter each; `NAME.do` holds what an experiment
does before it answers: `raise`, `die`, `wait`, or `unwritable`.
"""

import errno
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.claims import Claim
from judgebayes.experiments.core import Experiment, Output, Run, experiment, rows
from judgebayes.measures.significance import Interval

PAPER = "distribution-calibrated"
CLAIM = Claim("paper", 0.01, Interval(0.3, 0.2, 0.4), "replicated")


def now() -> Path:
    """The file with the folder of the test at hand: a forked process keeps an older environment."""
    return Path(os.environ["PLANTED"]) / "now"


def answer(run: Run, name: str) -> Output:
    folder = Path(now().read_text())
    with (folder / f"{name}.ran").open("a") as file:
        file.write(".")
    run.say(f"working on {name}")
    do = folder / f"{name}.do"
    match do.read_text() if do.exists() else "":
        case "raise":
            sys.stderr.write("said before it failed\n")
            raise RuntimeError("planted")
        case "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "wait":
            time.sleep(60)
        case "unwritable":
            raise JudgeBayesError("no room") from OSError(errno.ENOSPC, "no room")
    part = run.keep((name,), np.arange(3), lambda: {"x": np.arange(3.0) + run.seed})
    figure = Figure()
    figure.subplots().plot(part["x"])
    records = [
        {"dataset": "d", "n": n, "method": "m", "metric": "mae", "value": value, "claim": graded}
        for n, value, graded in ((4, 0.1 + 0.2, CLAIM), (None, np.pi, None))
    ]
    return Output(rows(PAPER, name, records), {"f": figure}, ["A note."])


@experiment(PAPER, "one", "The first", "a claim", twins=True)
def one(run: Run) -> Output:
    return answer(run, "one")


@experiment(PAPER, "two", "The second", "a claim", twins=True)
def two(run: Run) -> Output:
    return answer(run, "two")


@experiment(PAPER, "three", "The third", "a claim", twins=True)
def three(run: Run) -> Output:
    return answer(run, "three")


ALL: list[Experiment] = [one, two, three]
