"""Exports of Label Studio: tasks with annotations (JSON), or a row per annotation (CSV)."""

from collections.abc import Iterator
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import MAX_CLASSES, Row
from judgebayes.io.options import Files
from judgebayes.io.tools import an_object, answer_in, name_in, names_of, objects, records_of
from judgebayes.votes.classes import listing

ANSWERED = ("choices", "rating", "number", "pairwise")
"""Types of results that are answers to a question; others mark a region or write a text."""
ABOUT = (
    *("id", "annotation_id", "annotator", "created_at", "updated_at", "lead_time", "agreement"),
    *("cancelled_annotations", "total_annotations", "total_predictions", "project", "inner_id"),
)
"""Columns of a row per annotation that are no answers."""


def read_label_studio(given: Files) -> Iterator[Row | str]:
    """Return the votes in an export of Label Studio.

    A task is an item, named by a value of its own data such as `id` where each has another one, else by
    the task's id. An annotation is by a person (those marked as ground truth by `ground truth`, for
    `--adjudicator`), a prediction by its model; each control of the interface is a question. A skipped
    annotation, one without an answer and one with several choices are missing. Regions and free texts
    are no answers. In a table with a row per annotation, the answer is the column with few
    different values, or `vote`.

    The shapes are those of HumanSignal/label-studio, `docs/source/guide/task_format.md`, and of
    HumanSignal/label-studio-converter, `tests/data/test_export_csv`.

    Raises
    ------
    JudgeBayesError
        If a record has neither annotations nor an annotator, or several columns may be the answer.
    """
    records = list(records_of(given))
    if records and "annotations" not in records[0][1]:
        yield from _row_per_annotation(given, records)
        return
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
                yield Row(item, name, vote, reason, person=person)
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


def _row_per_annotation(given: Files, records: list[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    names = dict.fromkeys(name for _, record in records for name in record if name not in ABOUT)
    counts = {n: len({str(answer_in(r.get(n))[0]) for _, r in records} - {"None"}) for n in names}
    few = [name for name, n in counts.items() if 1 < n <= min(MAX_CLASSES, len(records) / 2)]
    name = given.options.vote or (few[0] if len(few) == 1 else None)
    if name is None:
        raise JudgeBayesError(
            f"Which column of {str(given.path)!r} has the annotators' answers? It has "
            f"{listing(names, 20)}; use --vote NAME, or export the tasks as JSON."
        )
    for where, record in records:
        vote, reason = answer_in(record.get(name))
        item = name_in(record, "id") or where
        yield Row(item, name, vote, reason, person=str(record.get("annotator")))
