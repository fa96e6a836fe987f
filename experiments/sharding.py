"""A run of experiments divided between machines: shards of about equal expected time, and their merge.

Each shard is a run with a folder of its own. The records of its results stay there, with `shard.json`,
which is written when the shard ends. A merge needs only these folders: no data, and no computation.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.core import Experiment, find
from judgebayes.experiments.costs import expected_seconds
from judgebayes.experiments.resuming import UNFINISHED, Finished, copied
from judgebayes.experiments.runner import Failure
from judgebayes.experiments.writing import write_text

RECORD = Path(UNFINISHED) / "shard.json"


class Part(NamedTuple):
    """Which part of a run a shard is: one of `of`, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        """Return for example `2/8`."""
        return f"{self.number}/{self.of}"


def part_named(text: str) -> Part:
    """Return the part that a text such as `2/8` names.

    Raises
    ------
    JudgeBayesError
        If it names none.
    """
    number, _, of = text.partition("/")
    if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
        return Part(int(number), int(of))
    raise JudgeBayesError(f"There is no shard {text!r}; the first of two is `--shard 1/2`.")


def divided(experiments: Sequence[Experiment], of: int, *, twins: bool) -> dict[Experiment, Part]:
    """Return the part of each experiment, the same on every machine.

    The longest experiment comes first, and each goes to the part with the least expected time so far.
    """
    seconds = expected_seconds(experiments, twins=twins)
    expected = dict.fromkeys((Part(number, of) for number in range(1, of + 1)), 0.0)
    parts = {}
    for experiment in sorted(experiments, key=lambda e: -seconds[e]):
        parts[experiment] = min(expected, key=lambda part: expected[part])
        expected[parts[experiment]] += seconds[experiment]
    return parts


@dataclass(frozen=True)
class Shard:
    """What the folder of a shard says of itself: plain values, as JSON has them."""

    part: tuple[int, int]
    settings: dict[str, Any]
    """What all shards of a run have in common, by name."""
    facts: list[tuple[str, str]]
    """The facts of the shard's page."""
    skipped: list[str]
    """Experiments without data."""
    results: dict[str, str]
    """The names of the records of results, by experiment."""

    def write(self, out: Path) -> None:
        """Write it to a folder of results.

        Raises
        ------
        JudgeBayesError
            If it cannot be written.
        """
        write_text(out / RECORD, json.dumps(vars(self)))


def shard_in(folder: Path) -> Shard:
    """Return the shard whose results a folder holds.

    Raises
    ------
    JudgeBayesError
        If none has ended there.
    """
    try:
        return Shard(**json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise JudgeBayesError(
            f"{str(folder)!r} holds no results of a shard that has ended; run its command again."
        ) from error


class Results(NamedTuple):
    """What came of the chosen experiments, in a run or in all its shards."""

    chosen: list[Experiment]
    done: list[Finished]
    skipped: list[Experiment]
    """Experiments without data."""
    failed: dict[Experiment, Failure]
    """Experiments without a result, also those of shards that are missing."""
    facts: list[tuple[str, str]]
    """Command, data, splits, seed and versions."""


def merged(folders: Sequence[Path], out: Path) -> Results:
    """Copy the results of shards into one folder, and return them in the order of one run.

    Raises
    ------
    JudgeBayesError
        If a folder holds no shard that has ended, the shards are of different runs, two are the same
        part of one, `out` is one of the folders, or a file cannot be written.
    """
    if out.resolve() in {folder.resolve() for folder in folders}:
        raise JudgeBayesError(f"{str(out)!r} is a shard; merge into another folder (--out).")
    shards = {folder: shard_in(folder) for folder in folders}
    first = shards[folders[0]]
    for folder, shard in shards.items():
        other = [
            name for name, value in first.settings.items() if shard.settings.get(name) != value
        ]
        if other:
            raise JudgeBayesError(
                f"{str(folder)!r} is of another run than {str(folders[0])!r}: {', '.join(other)}."
            )
    chosen = find(first.settings["what"])
    parts = divided(chosen, first.settings["shards"], twins=first.settings["twins"])
    folder_of: dict[Part, Path] = {}
    for folder, shard in shards.items():
        same = folder_of.setdefault(Part(*shard.part), folder)
        if same != folder:
            named = f"{str(folder)!r} is the same shard as {str(same)!r}"
            raise JudgeBayesError(f"{named}: {Part(*shard.part)}.")
    part_of = {
        name: part
        for part, folder in folder_of.items()
        for name in (*shards[folder].results, *shards[folder].skipped)
    }
    done, skipped, failed = [], [], {}
    for experiment in chosen:
        name = f"{experiment.paper}/{experiment.name}"
        part = part_of.get(name, parts[experiment])  # another machine may divide them otherwise
        home = folder_of.get(part)
        if home is None:
            failed[experiment] = Failure(f"shard {part} is missing", None)
        elif name in shards[home].skipped:
            skipped.append(experiment)
        elif result := copied(experiment, shards[home].results.get(name, ""), home, out):
            done.append(result)
        else:
            failed[experiment] = Failure(f"shard {part} has no result of it", home)
    facts = [
        (same[0][0], "; ".join(dict.fromkeys(value for _, value in same)))
        for same in zip(*(shard.facts for shard in shards.values()), strict=True)
    ]
    return Results(chosen, done, skipped, failed, facts)
