"""Exports of Label Studio: tasks with annotations (JSON), or a row per annotation (CSV)."""

from collections.abc import Iterator
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import (
    an_object,
    answer_in,
    name_in,
    names_of,
    objects,
    one_question,
    records_of,
)

ANSWERED = ("choices", "rating", "number", "pairwise")
"""Types of results that are answers to a question; others mark a region or write a text."""
ABOUT = (
    *("id", "annotation_id", "annotator", "created_at", "updated_at", "lead_time", "agreement"),
    *("cancelled_annotations", "total_annotations", "total_predictions", "project", "inner_id"),
)
"""Columns of a row per annotation that are no answers."""


def read_label_studio(given: Files) -> Iterator[Row]:
    """Return the votes in an export of Label Studio.

    A task is an item, named by a value of its own data such as `id` where each has another one, else by
    the task's id. An annotation is by a person (those marked as ground truth by `ground truth`, for
    `adjudicator`), a prediction by its model; each control of the interface is a question. A skipped
    annotation, one without an answer and one with several choices are missing. Regions and free texts
    are no answers. In a table with a row per annotation, every other column is a question; a column of
    the task's data is told from it by its many different texts. `vote` names the question, if several
    were answered.

    The shapes are those of HumanSignal/label-studio, `docs/source/guide/task_format.md`, and of
    HumanSignal/label-studio-converter, `tests/data/test_export_csv`.

    Raises
    ------
    JudgeBayesError
        If a record is of another shape, or several questions were answered and none is named.
    """
    records = list(records_of(given))
    flat = bool(records) and "annotations" not in records[0][1]
    return one_question((_row_per_annotation if flat else _tasks)(records), given)


def _tasks(records: list[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    names = names_of([an_object(record, "data", where) for where, record in records])
    controls = {
        str(result.get("from_name"))
        for where, record in records
        for each in (*objects(record, "annotations", where), *objects(record, "predictions", where))
        for result in objects(each, "result", where)
        if result.get("type") in ANSWERED
    }
    for place, (where, record) in enumerate(records):
        item = names[place] if names else name_in(record, "id") or str(place)
        for each in objects(record, "annotations", where):
            by = each.get("completed_by")
            by = by.get("email") or by.get("id") if isinstance(by, dict) else by
            person = "ground truth" if each.get("ground_truth") is True else str(by or "annotator")
            for name, vote, reason in _answers(each, controls, where):
                yield Row(item, (person, name), vote, reason, person=person)
        for each in objects(record, "predictions", where):
            model = str(each.get("model_version") or "prediction")
            for name, vote, reason in _answers(each, controls, where):
                yield Row(item, (model, name), vote, reason)


def _answers(
    each: dict[str, Any], controls: set[str], where: str
) -> Iterator[tuple[str, str | int | float | None, str]]:
    """Yield the answer to each question of an annotation or a prediction, and why there is none."""
    skipped = each.get("was_cancelled") is True
    results = [] if skipped else objects(each, "result", where)
    answered = {str(result.get("from_name")): result.get("value") for result in results}
    for name in sorted(controls):
        vote, reason = answer_in(answered.get(name))
        yield name, vote, "skipped" if skipped else reason


def _row_per_annotation(records: list[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    for where, record in records:
        item, person = name_in(record, "id") or where, str(record.get("annotator"))
        for name in (name for name in record if name not in ABOUT):
            vote, reason = answer_in(record[name])
            yield Row(item, (person, name), vote, reason, person=person)
