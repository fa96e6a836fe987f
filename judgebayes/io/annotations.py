"""Annotations by people and models: Argilla, Label Studio and Prodigy."""

from collections.abc import Iterable, Iterator
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import an_object, answer_in, name_in, names_of, objects, records_of

ANSWERED = ("choices", "rating", "number", "pairwise")
"""Types of results that are answers to a question; others mark a region or write a text."""
ABOUT = (
    *("id", "annotation_id", "annotator", "created_at", "updated_at", "lead_time", "agreement"),
    *("cancelled_annotations", "total_annotations", "total_predictions", "project", "inner_id"),
)
"""Columns of a row per annotation that are no answers."""


def read_label_studio(given: Files) -> Iterable[Row]:
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
    return (_row_per_annotation if flat else _tasks)(records)


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
        for kind in ("annotations", "predictions"):
            for each in objects(record, kind, where):
                by = each.get("completed_by")
                by = by.get("email") or by.get("id") if isinstance(by, dict) else by
                person = (
                    "ground truth" if each.get("ground_truth") is True else str(by or "annotator")
                )
                model = str(each.get("model_version") or "prediction")
                who, human = (person, person) if kind == "annotations" else (model, None)
                skipped = each.get("was_cancelled") is True
                results = [] if skipped else objects(each, "result", where)
                answered = {str(result.get("from_name")): result.get("value") for result in results}
                for name in sorted(controls):
                    vote, reason = answer_in(answered.get(name))
                    why = "skipped" if skipped else reason
                    yield Row(item, who, vote, why, person=human, question=name)


def _row_per_annotation(records: list[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    for where, record in records:
        item, person = name_in(record, "id") or where, str(record.get("annotator"))
        for name in (name for name in record if name not in ABOUT):
            vote, reason = answer_in(record[name])
            yield Row(item, person, vote, reason, person=person, question=name)


UNSENT = ("draft", "discarded")
"""Of the status of a response."""


def read_argilla(given: Files) -> Iterator[Row]:
    """Return the votes in records of Argilla.

    A record is an item, each user who responded a person, each agent of suggestions a judge. Drafts,
    discarded responses, and several choices are missing. `vote` names the question, if several have
    answers that are no free texts (more than 12 different ones).

    The shapes are those of argilla-io/argilla, `argilla/src/argilla/records/_io/_generic.py`, nested and
    flat.

    Raises
    ------
    JudgeBayesError
        If a record is of another shape, or several questions were answered and none is named.
    """
    for place, (where, record) in enumerate(records_of(given)):
        item = name_in(record, "id") or str(place)
        for question, each, human in _answers_of_argilla(record, where):
            unsent = each.get("status") if each.get("status") in UNSENT else None
            vote, reason = answer_in(each.get("value"))
            agent = name_in(each, "agent") or "suggestion"
            person = name_in(each, "user_id") or "annotator" if human else None
            vote, judge = None if unsent else vote, person or agent
            yield Row(item, judge, vote, unsent or reason, person=person, question=question)


def _answers_of_argilla(
    record: dict[str, Any], where: str
) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield the question of each answer in a record, the answer, and whether it is a response."""
    responses = an_object(record, "responses", where)
    for question in responses:
        for each in objects(responses, question, where):
            yield question, each, True
    suggestions = an_object(record, "suggestions", where)
    for question in suggestions:
        yield question, an_object(suggestions, question, where), False
    for name, value in record.items():
        question, _, kind = name.rpartition(".")
        if kind == "suggestion" and value is not None:
            yield question, {"value": value, "agent": record.get(f"{name}.agent")}, False
        if kind == "responses" and isinstance(value, list):
            users, status = (record.get(f"{name}.{key}") or [] for key in ("users", "status"))
            for place, answer in enumerate(value):
                user = {"user_id": users[place] if place < len(users) else None}
                sent = {"status": status[place] if place < len(status) else None}
                yield question, {"value": answer, **user, **sent}, True


NOT_ACCEPTED = {"ignore": "ignored", "reject": "rejected"}


def read_prodigy(given: Files) -> Iterator[Row]:
    """Return the votes in annotations of Prodigy.

    A task is an item, named by its own `id`, or that of its `meta`, else by `_task_hash`; who answered
    is a person. Where a task offers choices the vote is the accepted one: several or none, and a task
    that is rejected or ignored, are missing. Else the vote is `accept` or `reject` of the proposed
    `label`, which is the question (`vote` names one of several), and `ignore` is missing.

    The shape is that of prodi.gy/docs/api-interfaces and of explosion/prodigy-recipes (`accept`,
    `answer`, `_annotator_id`).

    Raises
    ------
    JudgeBayesError
        If a record has no answer, or several questions were answered and none is named.
    """
    for where, record in records_of(given):
        answer = str(field_of(record, "answer", where))
        own = name_in(record, "id") or name_in(an_object(record, "meta", where), "id")
        item = own or name_in(record, "_task_hash", "_input_hash") or where
        who = name_in(record, "_annotator_id", "_session_id") or "annotator"
        question = name_in(record, "label") or "answer"
        vote: str | int | float | None = answer if answer in ("accept", "reject") else None
        reason = NOT_ACCEPTED.get(answer, "no answer")
        if "accept" in record or "options" in record:
            accepted, why = answer_in(record.get("accept"))
            vote, reason = (accepted, why) if answer == "accept" else (None, reason)
        yield Row(item, who, vote, reason, person=who, question=question)
