"""Exports of LangSmith: tables of experiments, feedback, and runs with their statistics."""

from collections.abc import Iterator

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import (
    an_object,
    answer_in,
    is_by_a_person,
    name_in,
    records_of,
    score_rows,
)

ITEMS = ("example_id", "reference_example_id", "run_id", "id")
"""Keys of what is judged, the most general first."""


def read_langsmith(given: Files) -> Iterator[Row]:
    """Return the votes in an export of LangSmith.

    Each key of feedback is a judge. An item is an example of an experiment (a run, where there are no
    examples). Feedback is by a person if its source is `app`, where people annotate, or if its key says
    so (`user_score`). A table of an experiment does not name the source: what people gave under another
    key is named with `label`. A run that failed has missing votes; the mean of several feedbacks, in the
    statistics of a run, is no vote.

    The shapes are those of langchain-ai/langsmith-sdk, `python/langsmith/schemas.py` (Feedback, Run),
    and `python/langsmith/evaluation/_runner.py` (the table of an experiment); see also
    docs.langchain.com/langsmith/feedback-data-format.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a record is not an object.
    """
    for place, (where, record) in enumerate(records_of(given)):
        item = name_in(record, *ITEMS) or str(place)
        failed = record.get("status") == "error" or name_in(record, "error")
        missing = "the run failed" if failed else "no score"
        if "key" in record:
            source = an_object(record, "feedback_source", where)
            name, score = str(record["key"]), record.get("score")
            vote, reason = answer_in(record.get("value") if score is None else score)
            origin = source.get("type")
            human = origin == "app" or (origin in ("api", None) and is_by_a_person(name, given))
            person = name_in(source, "user_id") or "annotator" if human else None
            yield Row(item, name, vote, reason, person=person)
        elif "feedback_stats" in record:
            stats = an_object(record, "feedback_stats", where)
            of = {name: an_object(stats, name, where) for name in stats}
            single = {n: each.get("avg") if each.get("n") == 1 else None for n, each in of.items()}
            yield from score_rows(item, single, given, "the mean of several, or no score")
        else:
            scores = {name: value for name, value in record.items() if name.startswith("feedback.")}
            yield from score_rows(item, scores, given, missing)
