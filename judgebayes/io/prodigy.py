"""Annotations of Prodigy: JSONL as `db-out` writes it."""

from collections.abc import Iterator

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import an_object, answer_in, name_in, one_question, records_of

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
    return one_question(_rows(given), given)


def _rows(given: Files) -> Iterator[Row]:
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
        yield Row(item, (who, question), vote, reason, person=who)
