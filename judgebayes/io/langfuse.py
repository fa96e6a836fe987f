"""Scores of Langfuse: JSON or JSONL from its API, CSV or JSON from its table of scores."""

from collections.abc import Iterator
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import answer_in, is_by_a_person, name_in, plain_keys, records_of

ITEMS = ("traceid", "sessionid", "datasetrunid")
"""What a score may be of, besides an observation of a trace."""
FREE = ("TEXT", "CORRECTION")
"""Types of scores that are texts of people, and no answers."""


def read_langfuse(given: Files) -> Iterator[Row | str]:
    """Return the votes in scores of Langfuse.

    An item is a trace (an observation, if several of a trace were scored), a judge the name of a score.
    A score of the source ANNOTATION is by a person, and so is one of the source API whose name says so
    (`user_feedback`); other scores of API and those of EVAL are votes. The vote of a categorical score
    is its text, of another its number; free texts are left out.

    The shapes are those of langfuse/langfuse, `packages/shared/src/domain/scores.ts` and
    `worker/src/features/database-read-stream/getDatabaseReadStream.ts`; the keys may be written
    `traceId`, `trace_id` or `Trace ID`.

    Raises
    ------
    JudgeBayesError
        If a record is no score.
    """
    records = [(where, plain_keys(record)) for where, record in records_of(given)]
    observed: dict[Any, set[str]] = {}
    for _, record in records:
        if of := name_in(record, "observationid"):
            observed.setdefault(str(record.get("traceid")), set()).add(of)
    several = any(len(each) > 1 for each in observed.values())
    unnamed = 0
    for where, record in records:
        name, source = str(field_of(record, "name", where)), str(record.get("source")).upper()
        keys = ("observationid", *ITEMS) if several else ITEMS
        item = name_in(record, *keys)
        kind = str(record.get("datatype")).upper()
        text = record.get("stringvalue") if kind == "CATEGORICAL" else None
        vote, reason = answer_in(record.get("value") if text is None else text)
        human = source == "ANNOTATION" or (source == "API" and is_by_a_person(name, given))
        unnamed += source == "API" and not human
        author = name_in(record, "authoruserid", "authorusername", "author") or "annotator"
        dropped = None if item else "score of no trace or session"
        dropped = "a free text" if kind in FREE else dropped
        person = author if human else None
        yield Row(item or "", name, vote, reason, dropped=dropped, person=person)
    if unnamed:
        yield (
            f"{unnamed} scores were sent by API, and their names do not say that people gave them: they "
            "are read as votes. If one of them is by people, name it with --label NAME."
        )
