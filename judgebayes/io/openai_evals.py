"""Record files of OpenAI evals: an event per line."""

from collections.abc import Iterator
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import at, plain, records_in

INVALID = "__invalid__"
"""The choice that evals records, and scores as wrong, where it could not read the grader's answer."""
VERDICTS = ("choice", "correct", "score", "accuracy")
"""Keys that contain the vote of an event, the most likely first."""


def read_openai_evals(given: Files) -> Iterator[Row]:
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
    for file in given.files:
        model, judge = file.stem, file.stem
        for where, record in records_in(file):
            spec, kind = record.get("spec"), str(record.get("type"))
            if isinstance(spec, dict):
                kind = "spec"
                functions = spec.get("completion_fns")
                model = str(functions[0]) if isinstance(functions, list) and functions else model
                judge = str(spec.get("eval_name") or spec.get("base_eval") or judge)
            elif "final_report" in record:
                kind = "final_report"
            elif "type" not in record or not isinstance(record.get("data"), dict):
                raise JudgeBayesError(
                    f"{where} is not an event of evals: an event is an object with sample_id, type "
                    "and data."
                )
            yield _row(record, kind, model, judge)


def _row(record: dict[str, Any], kind: str, model: str, judge: str) -> Row:
    data, sample = record.get("data"), record.get("sample_id")
    verdicts = [data[name] for name in VERDICTS if name in data] if isinstance(data, dict) else []
    if kind not in ("match", "metrics") or not verdicts or not sample:
        return Row("", "", dropped=f"event {kind}")
    item, value = (model, str(sample)), verdicts[0]
    if value == INVALID:
        return Row(item, judge, None, f"choice {INVALID}")
    score = at(data, "score")
    scored = "choice" in record["data"] and type(score) in (int, float)
    return Row(item, judge, plain(value), "no verdict", score=float(score) if scored else None)
