"""Scores by programs and people: Braintrust, DeepEval, Langfuse, LangSmith and Ragas."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from judgebayes.io.columns import ROLES, like_a_person
from judgebayes.io.formats import RAGAS
from judgebayes.io.gathering import Name, Row
from judgebayes.io.options import Files, split_names
from judgebayes.io.records import field_of
from judgebayes.io.tools import an_object, answer_in, name_in, names_of, objects, records_of
from judgebayes.votes.classes import listing


def read_braintrust(given: Files) -> Iterator[Row]:
    """Return the votes in rows of an experiment of Braintrust.

    A row is an item and each of its scores a judge; a score whose name says so (`human_review`) is by a
    person, and others that people gave are named with `label`. A null score is missing. Spans within a
    row, which have no scores, are counted and left out.

    The shape is that of braintrustdata/braintrust-openapi, `openapi/spec.json` (ExperimentEvent).

    Raises
    ------
    JudgeBayesError
        If the scores of a row are not an object.
    """
    for where, record in records_of(given):
        flat = {name: value for name, value in record.items() if name.startswith("scores.")}
        scores = flat or an_object(record, "scores", where)
        item = name_in(record, "id") or where
        if not scores or record.get("is_root") is False:
            yield Row(item, "row", dropped="a span within a row, or without scores")
            continue
        missing = "the run failed" if name_in(record, "error") else "no score"
        yield from _score_rows(item, scores, given, missing)


def read_deepeval(given: Files) -> Iterator[Row | str]:
    """Return the votes in a test run of DeepEval.

    A test case is an item, named by its name, or by its place from 0 if names are missing or repeated. A
    metric is a judge, named with its model where several were used, and its score is the vote, not
    whether it is above the threshold. A metric with an error or without a score is missing.

    The shape is that of confident-ai/deepeval, `deepeval/test_run/api.py` (LLMApiTestCase, MetricData);
    keys may be written `metricsData` or `metrics_data`.

    Raises
    ------
    JudgeBayesError
        If a test case is not an object, or its metrics are not.
    """
    records = list(records_of(given))
    names = names_of([record for _, record in records], ["name"])
    for place, (where, record) in enumerate(records):
        item = names[place] if names else str(place)
        key = "metricsData" if "metricsData" in record else "metrics_data"
        metrics = objects(record, key, where)
        if not metrics:
            yield Row(item, "test", dropped="test case without metrics")
        for metric in metrics:
            model = metric.get("evaluationModel") or metric.get("evaluation_model")
            judge = (str(metric.get("name") or "metric"), str(model or ""))
            vote, _ = answer_in(metric.get("score"))
            failed = bool(metric.get("error"))
            reason = "the metric failed" if failed else "no score"
            yield Row(item, judge, None if failed else vote, reason)


OF_LANGFUSE = ("traceid", "sessionid", "datasetrunid")
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
    records = [(where, _plain_keys(record)) for where, record in records_of(given)]
    observed: dict[Any, set[str]] = {}
    for _, record in records:
        if of := name_in(record, "observationid"):
            observed.setdefault(str(record.get("traceid")), set()).add(of)
    several = any(len(each) > 1 for each in observed.values())
    unnamed = 0
    for where, record in records:
        name, source = str(field_of(record, "name", where)), str(record.get("source")).upper()
        keys = ("observationid", *OF_LANGFUSE) if several else OF_LANGFUSE
        item = name_in(record, *keys)
        kind = str(record.get("datatype")).upper()
        text = record.get("stringvalue") if kind == "CATEGORICAL" else None
        vote, reason = answer_in(record.get("value") if text is None else text)
        human = source == "ANNOTATION" or (source == "API" and _is_by_a_person(name, given))
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


OF_LANGSMITH = ("example_id", "reference_example_id", "run_id", "id")
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
        item = name_in(record, *OF_LANGSMITH) or str(place)
        failed = record.get("status") == "error" or name_in(record, "error")
        missing = "the run failed" if failed else "no score"
        if "key" in record:
            source = an_object(record, "feedback_source", where)
            name, score = str(record["key"]), record.get("score")
            vote, reason = answer_in(record.get("value") if score is None else score)
            origin = source.get("type")
            human = origin == "app" or (origin in ("api", None) and _is_by_a_person(name, given))
            person = name_in(source, "user_id") or "annotator" if human else None
            yield Row(item, name, vote, reason, person=person)
        elif "feedback_stats" in record:
            stats = an_object(record, "feedback_stats", where)
            of = {name: an_object(stats, name, where) for name in stats}
            single = {n: each.get("avg") if each.get("n") == 1 else None for n, each in of.items()}
            yield from _score_rows(item, single, given, "the mean of several, or no score")
        else:
            scores = {name: value for name, value in record.items() if name.startswith("feedback.")}
            yield from _score_rows(item, scores, given, missing)


QUESTIONS = ("user_input", "question")
FIELDS = (
    *("response", "answer", "retrieved_contexts", "contexts", "reference", "reference_contexts"),
    *("ground_truth", "ground_truths", "multi_responses", "rubrics"),
)
"""What is judged, beside the questions; no metrics."""


def read_ragas(given: Files) -> Iterator[Row | str]:
    """Return the votes in results of Ragas.

    A row is an item, named by a usual column of items such as `id`, else by its question, if these are
    different, else by its place from 0. A metric of Ragas, and another column of numbers from 0 to 1,
    is a judge; a column whose name says that a person filled it (`human_ok`), and the one that `label`
    names, is the label. A metric without a value failed, and is missing.

    The shape is that of explodinggradients/ragas, `src/ragas/dataset_schema.py` (EvaluationResult's
    `to_pandas`), and of its field names since 0.2 and before.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a record is not an object.
    """
    records = [record for _, record in records_of(given)]
    names = names_of(records, (*ROLES["item"], *QUESTIONS))
    scores, others = list[str](), list[str]()
    for name in dict.fromkeys(n for record in records for n in record):
        if name in (*QUESTIONS, *FIELDS):
            continue
        answers = [answer_in(record.get(name))[0] for record in records]
        values = [value for value in answers if value is not None]
        shares = all(not isinstance(value, str) and 0 <= value <= 1 for value in values)
        if RAGAS.fullmatch(name) or _is_by_a_person(name, given) or (values and shares):
            scores.append(name)
        elif values and not any(isinstance(value, str) for value in values):
            others.append(name)
    for place, record in enumerate(records):
        item = names[place] if names else str(place)
        yield from _score_rows(item, {name: record.get(name) for name in scores}, given)
    if others:
        yield f"Columns of numbers that are no metric are left out: {listing(others)}."


def _is_by_a_person(name: str, given: Files) -> bool:
    """Tell whether a score is by a person: by the words of its name, or because it is the label."""
    return like_a_person(name) or name in split_names(given.options.label or "")


def _score_rows(
    item: Name, scores: Mapping[str, Any], given: Files, missing: str = "no score"
) -> Iterator[Row]:
    """Yield a record for each score of an item, by a judge or a person of this name."""
    for name, value in scores.items():
        vote, reason = answer_in(value)
        person = name if _is_by_a_person(name, given) else None
        yield Row(item, name, vote, missing if reason == "no answer" else reason, person=person)


def _plain_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its keys in lower case, without spaces, hyphens and underscores."""
    return {re.sub(r"[\s_-]", "", name).lower(): value for name, value in record.items()}
