"""The options of `judgebayes reproduce`, `data` and `example`, with help and defaults."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from judgebayes.workflow.options import Option


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """Reproduce the papers' tables and figures, next to the published numbers and an audit.

    Each experiment runs in its own process. If one fails, the others still run; the failed ones are
    listed with their logs at the end, and the exit status is 1.
    """

    what: Annotated[
        list[str] | None,
        Option(
            "For example `distribution-calibrated` or `distribution-calibrated/table3`; by "
            "default all papers. With --merge, the folders of the shards.",
            metavar="[PAPER[/TABLE]]...",
            positional=True,
        ),
    ] = None
    data: Annotated[
        Path | None,
        "Folder of the public data sets. By default JUDGEBAYES_DATA, else ../shared/data "
        "beside the checkout, else the folder of `judgebayes data get`.",
    ] = None
    twins: Annotated[bool, "Use only the embedded twins (simulated data)."] = False
    splits: Annotated[int, Option("Number of random calibration/evaluation splits.", least=2)] = 100
    smoke: Annotated[bool, "Run a small version of everything, in minutes."] = False
    seed: Annotated[int, "Seed of the random splits."] = 0
    jobs: Annotated[int, Option("Experiments that run at a time.", least=1)] = 1
    shard: Annotated[
        str | None,
        Option(
            "Run one of N shards of about equal time, such as `1/8`, each with its own --out.",
            metavar="I/N",
        ),
    ] = None
    merge: Annotated[bool, "Merge the results of all shards: `reproduce --merge FOLDER...`."] = (
        False
    )
    out: Annotated[
        Path,
        "Folder of the results. An interrupted run resumes if it is started again with the same "
        "options.",
    ] = Path("results")
    listed: Annotated[
        bool, Option("Only list the experiments, with their usual time and memory.", ("--list",))
    ] = False
    costs: Annotated[
        Path | None,
        "Where to write the time, memory and compiled programs of each experiment: .csv.",
    ] = None


Cache = Annotated[Path | None, "Where to store the data sets; by default the user's cache folder."]


@dataclass(frozen=True, kw_only=True)
class DataListRequest:
    """List the data sets: what they are, which ones are downloaded, licence and source."""

    cache: Cache = None


@dataclass(frozen=True, kw_only=True)
class DataGetRequest:
    """Fetch data sets at their pinned commits, check every file, and convert them.

    Complete data sets are not fetched again; an interrupted download resumes.
    """

    names: Annotated[
        list[str],
        Option("Names from `judgebayes data list`, or `all`.", metavar="NAME...", positional=True),
    ]
    cache: Cache = None
    local: Annotated[
        Path | None,
        Option(
            "Read a clone of the data set's repository, or a folder with its files, instead of "
            "downloading.",
            ("--from",),
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ExampleRequest:
    """Write small simulated files of votes and labels, to try the other commands on."""

    folder: Annotated[Path, Option("Where to write votes.csv and labels.csv.", positional=True)] = (
        Path("example")
    )
    seed: Annotated[int, "Seed of the simulated votes."] = 0
