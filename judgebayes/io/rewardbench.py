"""RewardBench's results per model: whether the chosen response was preferred to the rejected one."""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import read_records

OTHER = {"A": "B", "B": "A"}


def read_rewardbench(given: Files) -> Iterator[Row | str]:
    """Return the votes of reward models on pairs.

    The source records only whether the chosen response won. With it always first, the label would be the
    same on every item, and any calibrator would look perfect. A hash of the item's name therefore puts
    the chosen response first (A) or second (B), in votes and labels alike. A model that preferred
    neither response votes for a tie.

    Raises
    ------
    JudgeBayesError
        If a file does not have this form, or contains scores of more than two responses per item.
    """
    for file in given.files:
        yield from _rows(file, given.path)
    yield (
        "A hash of the item's name puts the chosen response first (A) or second (B): if it were always "
        "first, every label would be the same."
    )


def position_of_chosen(item: str) -> str:
    """Return the position of an item's chosen response, A or B, from a hash of the item's name."""
    return "AB"[hashlib.sha256(item.encode()).digest()[0] & 1]


def _rows(file: Path, root: Path) -> Iterator[Row]:
    records = _records(file)
    judge = _judge(records, file, root)
    for index, record in enumerate(records):
        subset = record.get("subset", record.get("subsets"))
        parts = [str(part) for part in (subset, record.get("id", index)) if part is not None]
        item = "/".join(parts)
        won, why = _won(record, f"Record {index} of {str(file)!r}")
        chosen = position_of_chosen(item)
        vote = (
            None if won is None else ("tie" if won == 0.5 else (chosen if won else OTHER[chosen]))
        )
        yield Row(item, judge, vote, why, label=chosen)


def _records(file: Path) -> list[dict[str, Any]]:
    """Return a file's records; the file contains either lists by name or objects."""
    content = read_records(file)
    if isinstance(content, list) and content and all(isinstance(r, dict) for r in content):
        return content
    columns = {}
    if isinstance(content, dict):
        columns = {name: values for name, values in content.items() if isinstance(values, list)}
    if "results" not in columns and not {"scores_chosen", "scores_rejected"} <= columns.keys():
        raise JudgeBayesError(
            f"{str(file)!r} contains no results of RewardBench: expected lists named results (or "
            "scores_chosen and scores_rejected), subset and id."
        )
    lengths = set(map(len, columns.values()))
    if len(lengths) != 1:
        raise JudgeBayesError(f"{str(file)!r} has columns of different lengths, {sorted(lengths)}.")
    rows = zip(*columns.values(), strict=True)
    model = {"model": content.get("model")}
    return [model | dict(zip(columns, row, strict=True)) for row in rows]


def _judge(records: list[dict[str, Any]], file: Path, root: Path) -> str:
    models = {model for record in records if isinstance(model := record.get("model"), str)}
    if len(models) == 1:
        return models.pop()
    inside = file.relative_to(root) if root.is_dir() else Path(file.name)
    return "/".join(inside.with_suffix("").parts[-2:])


def _won(record: dict[str, Any], where: str) -> tuple[float | None, str]:
    """Return 1 where the chosen response won, 0 where it lost, 0.5 where neither did."""
    if isinstance(record.get("scores"), list) and "scores_chosen" not in record:
        raise JudgeBayesError(
            f"{where} has scores of {len(record['scores'])} responses (RewardBench 2); only pairs "
            "(chosen and rejected) can be read."
        )
    result = _number(record.get("results"))
    if result is None:
        scores = _number(record.get("scores_chosen")), _number(record.get("scores_rejected"))
        if scores[0] is None or scores[1] is None:
            return None, "no result"
        return (0.5 if scores[0] == scores[1] else float(scores[0] > scores[1])), ""
    return (result, "") if result in (0, 0.5, 1) else (None, f"result {result:g}")


def _number(value: Any) -> float | None:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        return None
    return float(value)
