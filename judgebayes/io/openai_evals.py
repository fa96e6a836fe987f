"""Record files of OpenAI evals: an event per line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files, short_names
from judgebayes.io.records import read_lines
from judgebayes.votes.classes import canonical

INVALID = "__invalid__"
"""The choice that evals records, and scores as wrong, where it could not read the grader's answer."""
VERDICTS = ("choice", "correct", "score", "accuracy")
"""Keys that contain the vote of an event, the most likely first."""


@dataclass(frozen=True)
class _Event:
    model: str
    sample: str
    judge: str
    data: dict[str, Any] | None
    kind: str


def read_openai_evals(given: Files) -> list[Row]:
    """Return the votes in record files of OpenAI evals.

    An item is one output (sample, and model where several were evaluated), the eval is the judge,
    and the vote is the choice of a model-graded eval, or whether the output matched. A choice of
    `__invalid__`, which evals scores as wrong, is a missing vote; events that contain no verdict
    (prompts, reports) are counted and left out.

    Raises
    ------
    JudgeBayesError
        If a line is not an event.
    """
    events = [event for file in given.files for event in _events(file)]
    verdicts = [event for event in events if event.data is not None]
    names = short_names([(e.model, e.sample) for e in verdicts], keep=1)
    rows = [_row(event, name) for event, name in zip(verdicts, names, strict=True)]
    rest = [Row("", "", dropped=f"event {e.kind}") for e in events if e.data is None]
    return [*rows, *rest]


def _events(file: Path) -> Iterator[_Event]:
    model, judge = file.stem, file.stem
    for number, record in read_lines(file):
        if isinstance(record.get("spec"), dict):
            spec = record["spec"]
            functions = spec.get("completion_fns")
            model = str(functions[0]) if isinstance(functions, list) and functions else model
            judge = str(spec.get("eval_name") or spec.get("base_eval") or judge)
            yield _Event(model, "", judge, None, "spec")
            continue
        if "final_report" in record:
            yield _Event(model, "", judge, None, "final_report")
            continue
        if "type" not in record or not isinstance(record.get("data"), dict):
            raise JudgeBayesError(
                f"Line {number} of {str(file)!r} is not an event of evals: an event is an object "
                "with sample_id, type and data."
            )
        kind, data = str(record["type"]), record["data"]
        sample = record.get("sample_id")
        votes = kind in ("match", "metrics") and any(name in data for name in VERDICTS)
        yield _Event(model, str(sample), judge, data if votes and sample else None, kind)


def _row(event: _Event, item: str) -> Row:
    data = event.data or {}
    value = next(data[name] for name in VERDICTS if name in data)
    score = data.get("score")
    number = isinstance(score, int | float) and not isinstance(score, bool)
    if value == INVALID:
        return Row(item, event.judge, None, f"choice {INVALID}")
    vote = canonical(value) if isinstance(value, str | bool | int | float) else None
    return Row(
        item,
        event.judge,
        vote,  # type: ignore[arg-type]
        "no verdict",
        score=float(score) if number and "choice" in data else None,  # type: ignore[arg-type]
    )
