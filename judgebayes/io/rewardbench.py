"""RewardBench's results per model: whether the chosen response was preferred to the rejected one."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import OTHER, name_in, plain, records_in


def read_rewardbench(given: Files) -> Iterator[Row | str]:
    """Return the votes of reward models on pairs.

    The source records only whether the chosen response won. With it always first, the label would be the
    same on every item, and any calibrator would look perfect. A hash of the item's name therefore puts
    the chosen response first (A) or second (B), in votes and labels alike. A model that preferred
    neither response votes for a tie. A file without the name of its model is named by its path.

    Raises
    ------
    JudgeBayesError
        If a file does not have this form, or contains scores of more than two responses per item.
    """
    for file in given.files:
        inside = file.relative_to(given.path) if given.path.is_dir() else Path(file.name)
        path = "/".join(inside.with_suffix("").parts[-2:])
        for index, (where, record) in enumerate(_records(file)):
            subset = record.get("subset", record.get("subsets"))
            parts = [str(part) for part in (subset, record.get("id", index)) if part is not None]
            item = "/".join(parts)
            chosen = position_of_chosen(item)
            votes: dict[Any, str] = {1: chosen, 0: OTHER[chosen], 0.5: "tie"}
            vote = votes.get(_won(record, where))
            yield Row(item, name_in(record, "model") or path, vote, "no result", label=chosen)
    yield (
        "A hash of the item's name puts the chosen response first (A) or second (B): if it were always "
        "first, every label would be the same."
    )


def position_of_chosen(item: str) -> str:
    """Return the position of an item's chosen response, A or B, from a hash of the item's name."""
    return "AB"[hashlib.sha256(item.encode()).digest()[0] & 1]


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a file's records; the file contains either objects, or lists by name."""
    for where, record in records_in(file):
        if not isinstance(record.get("id", record.get("results")), list):
            yield where, record
            continue
        columns = {name: values for name, values in record.items() if isinstance(values, list)}
        lengths = set(map(len, columns.values()))
        if len(lengths) != 1:
            raise JudgeBayesError(f"{where} has columns of different lengths, {sorted(lengths)}.")
        for row in zip(*columns.values(), strict=True):
            yield where, record | dict(zip(columns, row, strict=True))


def _won(record: dict[str, Any], where: str) -> float | None:
    """Return 1 where the chosen response won, 0 where it lost, 0.5 where neither did."""
    if isinstance(record.get("scores"), list) and "scores_chosen" not in record:
        raise JudgeBayesError(
            f"{where} has scores of {len(record['scores'])} responses (RewardBench 2); only pairs "
            "(chosen and rejected) can be read."
        )
    if "scores_chosen" not in record:
        field_of(record, "results", where)
    names = ("results", "scores_chosen", "scores_rejected")
    won, chosen, rejected = (_number(record.get(name)) for name in names)
    if won is None and chosen is not None and rejected is not None:
        won = 0.5 if chosen == rejected else float(chosen > rejected)
    return won


def _number(value: Any) -> float | None:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    number = plain(value)
    return float(number) if isinstance(number, int | float) else None
