"""`python -m judgebayes.experiments.speed.crowds`: crowds with many classes, and crowds without labels.

Command: python -m judgebayes.experiments.speed.crowds --data DIR
Runtime: about ten minutes on two quiet cores.
Expected: the table of README.md; the memory carries over to other machines, the seconds do not.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import cyclopts
import numpy as np
import pandas as pd
from cyclopts import Parameter

from judgebayes import DawidSkene, priors
from judgebayes.experiments.core import Run, default_data
from judgebayes.experiments.data import crowd_list
from judgebayes.experiments.speed.large_files import Measured, measured
from judgebayes.show.console import say_plainly
from judgebayes.votes import SparseVotes

MOST_MB = 6000
RELEVANCE = "s4_Relevance"
"""The real crowd with most workers."""
LARGE_SPLITS = ["--splits", "10"]


class Crowd(NamedTuple):
    """The size of a simulated crowd."""

    items: int
    workers: int
    classes: int
    votes: int
    labels: int
    options: list[str]
    """More options of `calibrate`."""


CROWDS = {
    "calibrate, 700 x 44, 10 classes, 2,945 votes": Crowd(700, 44, 10, 2945, 700, []),
    "calibrate --splits 10, 20,000 x 1,000, 20 classes, 100,000 votes": Crowd(
        20_000, 1000, 20, 100_000, 2000, LARGE_SPLITS
    ),
}


def write_crowd(folder: Path, crowd: Crowd, seed: int = 0) -> list[str]:
    """Write the crowd's votes and labels; return the arguments that calibrate them.

    Workers are right with a Beta(6, 3) probability, and the most active one votes thirty times as often
    as the least.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, crowd.classes, crowd.items)
    right = rng.beta(6, 3, crowd.workers)
    often = np.geomspace(1, 30, crowd.workers)
    item = np.concatenate([np.arange(crowd.items), rng.integers(0, crowd.items, 3 * crowd.votes)])
    judge = rng.choice(crowd.workers, len(item), p=often / often.sum())
    votes = pd.DataFrame({"item": item, "judge": judge}).drop_duplicates().iloc[: crowd.votes]
    other = (truth[votes["item"]] + rng.integers(1, crowd.classes, len(votes))) % crowd.classes
    hit = rng.random(len(votes)) < right[votes["judge"]]
    names = np.array([f"c{k}" for k in range(crowd.classes)])
    votes["vote"] = names[np.where(hit, truth[votes["item"]], other)]
    votes.to_csv(folder / "votes.csv", index=False)
    labels = pd.DataFrame({"item": range(crowd.labels), "label": names[truth[: crowd.labels]]})
    labels.to_csv(folder / "labels.csv", index=False)
    files = [str(folder / "votes.csv"), "--labels", str(folder / "labels.csv")]
    return ["calibrate", *files, "--set", f"classes={','.join(names)}", *crowd.options]


def main(
    rows: Annotated[
        list[str] | None,
        Parameter(help="Only rows whose name contains one of these words."),
    ] = None,
    data: Annotated[Path | None, Parameter(help="Folder of the public data sets.")] = None,
) -> None:
    """Measure every row, and print it when it ends."""

    def wanted(name: str) -> bool:
        return not rows or any(word in name for word in rows)

    for name in filter(wanted, CROWDS):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder / "cache")
            command = [sys.executable, "-m", "judgebayes", *write_crowd(folder, CROWDS[name])]
            _show(f"{name}, cold", measured(command, folder, MOST_MB))
    run = Run(data=data or default_data())
    if run.data is not None:
        votes, _ = crowd_list(run)[RELEVANCE]()
        name = f"Dawid-Skene without labels, {len(votes):,} votes of {votes.n_judges}"
        for prior, words in ((None, "pooled judges"), (priors.DawidSkene(), "fixed prior")):
            if wanted(f"{name}, {words}"):
                _fitted(f"{name}, {words}", DawidSkene(prior=prior), votes)


def _fitted(name: str, method: DawidSkene, votes: SparseVotes) -> None:
    """Show the first fit and the fastest of three more."""
    unknown, results = np.full(votes.n_items, -1), []
    for _ in range(4):
        began, processor = time.perf_counter(), time.process_time()
        np.asarray(method.fit(votes, unknown)(votes))
        seconds = time.perf_counter() - began
        results.append(Measured(seconds, time.process_time() - processor, np.nan, ""))
    _show(f"{name}, cold", results[0])
    _show(f"{name}, warm", min(results[1:], key=lambda each: each.processor))


def _show(name: str, result: Measured) -> None:
    peak = "" if np.isnan(result.peak_mb) else f"{result.peak_mb:,.0f}"
    cells = (name, f"{result.seconds:.1f}", f"{result.processor:.1f}", peak, result.said)
    say_plainly(f"| {' | '.join(cells)} | load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    cyclopts.run(main)
