"""`judgebayes example`: small simulated files to try the other commands on."""

from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say_plainly
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated.twins import published_labels, twins
from judgebayes.experiments.distribution_calibrated.vote_twins import draw_votes
from judgebayes.io.tables import write_table
from judgebayes.workflow.machine import CommandResult

TASK, JUDGE = "RB2-Precise IF", "gemini-2.5-flash"
ITEMS = 600
SAMPLES = 8
LABELLED = 100


def write_example(folder: Path, seed: int) -> CommandResult:
    """Write `votes.csv` and `labels.csv`, print what they contain, and return their paths.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written, or contains such files.
    """
    votes, labels = example_tables(seed)
    paths = folder / "votes.csv", folder / "labels.csv"
    for path in paths:
        if path.exists():
            raise JudgeBayesError(f"{str(path)!r} exists already; choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JudgeBayesError(f"{str(folder)!r} cannot be written: {error.strerror}.") from error
    for table, path in zip((votes, labels), paths, strict=True):
        write_table(table, path)
    say_plainly(
        Console(),
        f"{paths[0]}: {SAMPLES} simulated votes on each of {ITEMS} pairs, modelled on {JUDGE}",
        f"{paths[1]}: labels of {LABELLED} of these pairs",
        f"Try: judgebayes calibrate {paths[0]} --labels {paths[1]}",
    )
    return CommandResult(
        {"votes": paths[0], "labels": paths[1], "items": ITEMS, "labelled": len(labels)}
    )


def example_tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return simulated votes, one per row, and the labels of some items."""
    rng = np.random.default_rng(seed)
    share = published_labels(TASK)
    labels = rng.choice(3, ITEMS, p=share / share.sum())
    votes = draw_votes(twins(TASK, JUDGE)[0], labels, SAMPLES, seed)
    index = np.asarray(votes.index)[:, 0]
    names = np.array([f"pair-{i:03d}" for i in range(ITEMS)])
    item, sample = (a.ravel() for a in np.indices(index.shape))
    long = pd.DataFrame(
        {"item": names[item], "judge": JUDGE, "sample": sample + 1, "vote": index.ravel() - 1}
    )
    labelled = np.sort(rng.choice(ITEMS, LABELLED, replace=False))
    return long, pd.DataFrame({"item": names[labelled], "label": labels[labelled] - 1})
