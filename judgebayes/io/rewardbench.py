"""RewardBench's results per model: whether the chosen response was preferred to the rejected one."""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import OTHER, records_in

SCORES = frozenset({"scores_chosen", "scores_rejected"})


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
        records = _records(file)
        judge = _judge(records, file, given.path)
        for index, record in enumerate(records):
            subset = record.get("subset", record.get("subsets"))
            parts = [str(part) for part in (subset, record.get("id", index)) if part is not None]
            item = "/".join(parts)
            won, why = _won(record, f"Record {index} of {str(file)!r}")
            chosen = position_of_chosen(item)
            vote = {1: chosen, 0: OTHER[chosen], 0.5: "tie", None: None}[won]
            yield Row(item, judge, vote, why, label=chosen)
    yield (
        "A hash of the item's name puts the chosen response first (A) or second (B): if it were always "
        "first, every label would be the same."
    )


def position_of_chosen(item: str) -> str:
    """Return the position of an item's chosen response, A or B, from a hash of the item's name."""
    return "AB"[hashlib.sha256(item.encode()).digest()[0] & 1]


def _records(file: Path) -> list[dict[str, Any]]:
    """Return a file's records; the file contains either lists by name or objects."""
    records = [record for _, record in records_in(file)]
    first = records[0] if len(records) == 1 else {}
    columns = {name: values for name, values in first.items() if isinstance(values, list)}
    if not any("results" in record or record.keys() >= SCORES for record in records):
        raise JudgeBayesError(
            f"{str(file)!r} contains no results of RewardBench: expected lists named results (or "
            "scores_chosen and scores_rejected), subset and id."
        )
    if "results" not in columns and (
        not columns.keys() >= SCORES or "id" in first.keys() - columns
    ):
        return records
    lengths = set(map(len, columns.values()))
    if len(lengths) != 1:
        raise JudgeBayesError(f"{str(file)!r} has columns of different lengths, {sorted(lengths)}.")
    rows = zip(*columns.values(), strict=True)
    return [{"model": first.get("model")} | dict(zip(columns, row, strict=True)) for row in rows]


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
        chosen, rejected = (
            _number(record.get(f"scores_{each}")) for each in ("chosen", "rejected")
        )
        if chosen is None or rejected is None:
            return None, "no result"
        return (0.5 if chosen == rejected else float(chosen > rejected)), ""
    return (result, "") if result in (0, 0.5, 1) else (None, f"result {result:g}")


def _number(value: Any) -> float | None:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        return None
    return float(value)
