"""JudgeBench's outputs: a file per judge, a pair of responses per line, judged in both orders."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of, read_lines

VOTES = {"A>B": "A", "B>A": "B", "A=B": "tie", "B=A": "tie"}
SWAPPED = {"A": "B", "B": "A", "tie": "tie"}


def read_judgebench(given: Files) -> Iterator[Row]:
    """Return the votes of JudgeBench's judges, mapped back to the pairs as labelled.

    The second judgment of a pair was made with the responses swapped and names them as shown, so it is
    swapped back here. `A=B` is a tie. A decision of null, or a failed judgment, is a missing vote.

    Raises
    ------
    JudgeBayesError
        If a line is not a judged pair.
    """
    for file in given.files:
        yield from _rows(file)


def _rows(file: Path) -> Iterator[Row]:
    name_fields = dict(re.findall(r"(judge_name|judge_model)=([^,]+?)(?=,|\.jsonl$)", file.name))
    for number, record in read_lines(file):
        where = f"Line {number} of {str(file)!r}"
        item = str(field_of(record, "pair_id", where))
        label = VOTES.get(str(record.get("label")))
        judgments = field_of(record, "judgments", where)
        if not isinstance(judgments, list) or not 1 <= len(judgments) <= 2:
            raise JudgeBayesError(
                f"{where} needs a list of one or two judgments (original order, then swapped)."
            )
        if label not in ("A", "B"):
            raise JudgeBayesError(
                f"{where} has the label {record.get('label')!r}; it must be A>B or B>A."
            )
        judge = _judge(name_fields, record, file)
        for judgment, order in zip(judgments, ("AB", "BA"), strict=False):
            vote, why = _vote(judgment)
            if vote is not None and order == "BA":
                vote = SWAPPED[vote]
            yield Row(item, judge, vote, why, order=order, label=label)


def _judge(name_fields: dict[str, str], record: dict[str, Any], file: Path) -> str:
    name = name_fields.get("judge_name") or record.get("judge_name")
    model = name_fields.get("judge_model")
    if model in (None, "None"):
        return str(name or file.stem)
    return f"{name}/{model}"


def _vote(judgment: Any) -> tuple[str | None, str]:
    if not isinstance(judgment, dict):
        return None, "judgment failed"
    decision = judgment.get("decision")
    if decision is None:
        return None, "no decision"
    normalised = str(decision).replace(" ", "").replace(">>", ">").upper()
    return VOTES.get(normalised), f"decision {str(decision)[:20]!r}"
