"""Records of Argilla: fields with responses by people and suggestions by models, JSON or JSONL."""

from collections.abc import Iterator
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import an_object, answer_in, name_in, objects, one_question, records_of

UNSENT = ("draft", "discarded")
"""Of the status of a response."""


def read_argilla(given: Files) -> Iterator[Row]:
    """Return the votes in records of Argilla.

    A record is an item, each user who responded a person, each agent of suggestions a judge. Drafts,
    discarded responses, and several choices are missing. `vote` names the question, if several have
    answers that are no free texts (more than 12 different ones).

    The shapes are those of argilla-io/argilla, `argilla/src/argilla/records/_io/_generic.py`, nested and
    flat, and of the lists of responses and suggestions before 2.0.

    Raises
    ------
    JudgeBayesError
        If a record is of another shape, or several questions were answered and none is named.
    """
    return one_question(_rows(given), given)


def _rows(given: Files) -> Iterator[Row]:
    for place, (where, record) in enumerate(records_of(given)):
        item = name_in(record, "id") or str(place)
        for question, each, human in _answers(record, where):
            unsent = each.get("status") if each.get("status") in UNSENT else None
            vote, reason = answer_in(each.get("value"))
            agent = name_in(each, "agent") or "suggestion"
            person = name_in(each, "user_id") or "annotator" if human else None
            judge, vote = (person or agent, question), None if unsent else vote
            yield Row(item, judge, vote, unsent or reason, person=person)


def _answers(record: dict[str, Any], where: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield the question of each answer in a record, the answer, and whether it is a response."""
    if isinstance(record.get("responses"), list):  # before version 2
        for response in objects(record, "responses", where):
            for question in (values := an_object(response, "values", where)):
                yield question, {**response, **an_object(values, question, where)}, True
        for each in objects(record, "suggestions", where):
            yield str(each.get("question_name")), each, False
        return
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
