"""`judgebayes data`: list the public data sets; fetch, check and convert them.

`judgebayes example`: small simulated files to try the other commands on.
"""

import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated.twins import published_labels, twins
from judgebayes.experiments.distribution_calibrated.vote_twins import draw_votes
from judgebayes.experiments.folders import make_folder
from judgebayes.experiments.public import SOURCES, Source, cache_folder, get, is_whole
from judgebayes.experiments.request import DataGetRequest, DataListRequest, ExampleRequest
from judgebayes.io.tables import write_table
from judgebayes.progress import shown
from judgebayes.show.console import say_plainly, show_rows
from judgebayes.workflow.machine import CommandResult

TASK, JUDGE = "RB2-Precise IF", "gemini-2.5-flash"
ITEMS = 600
SAMPLES = 8
LABELLED = 100


def write_example(request: ExampleRequest) -> CommandResult:
    """Write `votes.csv` and `labels.csv`, print what they contain, and return their paths.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written, or contains such files.
    """
    folder = request.folder
    votes, labels = example_tables(request.seed)
    paths = folder / "votes.csv", folder / "labels.csv"
    for path in paths:
        if path.exists():
            raise JudgeBayesError(f"{str(path)!r} exists already; choose another folder.")
    make_folder(folder)
    for table, path in zip((votes, labels), paths, strict=True):
        write_table(table, path)
    say_plainly(
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


ALL = "all"


def list_data(request: DataListRequest) -> CommandResult:
    """Print and return a table of the data sets, and the folder they are stored in."""
    cache_path = request.cache or cache_folder()
    rows = [
        {
            "name": each.name,
            "content": each.says,
            "download": each.size,
            "stored": is_whole(each, cache_path),
            "licence": each.licence,
        }
        for each in SOURCES.values()
    ]
    printed = [row | {"stored": "yes" if row["stored"] else "no"} for row in rows]
    cells = [[str(cell) for cell in row.values()] for row in printed]
    show_rows("Data sets", list(rows[0]), cells, range(len(rows[0])))
    say_plainly(f"Folder: {cache_path}")
    return CommandResult({"folder": cache_path, "tables": {"data sets": rows}})


def get_data(request: DataGetRequest) -> CommandResult:
    """Get data sets one by one; print licence, citation and how to use them in `reproduce`.

    The folder of each is returned.

    Raises
    ------
    JudgeBayesError
        If a data set does not exist or cannot be fetched, or one folder is given for several.
    """
    names, local = request.names, request.local
    wanted = list(SOURCES) if ALL in names else list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in SOURCES]
    if unknown:
        raise JudgeBayesError(
            f"There is no data set {unknown[0]!r}; choose one of: {', '.join(SOURCES)}, {ALL}."
        )
    if local is not None and len(wanted) > 1:
        raise JudgeBayesError("--from reads one repository; use it with one data set only.")
    cache_path = request.cache or cache_folder()
    for name in wanted:
        _get(SOURCES[name], cache_path, local)
    say_plainly(f"judgebayes reproduce --data {shlex.quote(str(cache_path))}")
    rows = [
        {
            "name": name,
            "folder": cache_path / SOURCES[name].folder,
            "commit": SOURCES[name].commit,
            "licence": SOURCES[name].licence,
        }
        for name in wanted
    ]
    return CommandResult({"folder": cache_path, "tables": {"data sets": rows}})


def _get(source: Source, cache_path: Path, local: Path | None) -> None:
    if is_whole(source, cache_path):
        say_plainly(f"{source.name}: already complete in {cache_path / source.folder}.")
    else:
        with shown() as progress:
            report = progress or (lambda *_: None)
            by_file = partial(report, f"{source.name} ({source.size}), files")
            home = get(source, cache_path, local=local, progress=by_file)
        say_plainly(
            f"{source.name}: {len(source.checksums())} files of {source.url} at commit "
            f"{source.commit[:12]} checked, converted into {home}."
        )
    say_plainly(f"  Licence: {source.licence}", f"  Cite: {source.citation}")
    if source.drawn:
        say_plainly(
            f"  Not in the source, and therefore drawn at random from the names: {source.drawn}."
        )
