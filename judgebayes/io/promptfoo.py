"""Results of promptfoo eval, as JSON or JSONL."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import an_object, at, name_in, names_of, objects, plain, records_in

PROVIDER_ERROR = 2
"""`failureReason` of a test without an output."""
NO_VERDICT = re.compile(
    r"\s*(Could not (extract JSON from llm-rubric response|parse)|llm-rubric produced malformed response"
    r"|No output|API (call )?error)"
)
"""Start of a grader's reason when it gave no verdict, which promptfoo counts as a failure."""
NAME = 60
PLACES = (
    "The tests have no names (a variable such as id), so that items are their places in the file, which "
    "count from 0: labels must do so too."
)


def read_promptfoo(given: Files) -> Iterator[Row | str]:
    """Return the votes in promptfoo's results.

    An item is one output (test, and provider and prompt where these differ). A test is named by a
    variable of its own such as `id`, if the tests have one, else by its place, from 0. Each assertion is
    a judge, named by its metric or by its type and value; the vote is `pass` or `fail`, with its score.
    A grader that failed or gave no readable verdict (which promptfoo counts as a failure) is a missing
    vote. A test without an output is left out. `label` names a variable of the tests, or a key of their
    metadata.

    Raises
    ------
    JudgeBayesError
        If a file contains no promptfoo results.
    """
    unnamed = False
    for file in given.files:
        variables: dict[str, dict[str, Any]] = {}
        outputs = list[tuple[str, dict[str, Any], str, Any]]()
        for where, record in _records(file):
            place = str(field_of(record, "testIdx", where))
            test = an_object(record, "testCase", where)
            own = an_object(record, "vars", where) or an_object(test, "vars", where)
            about = an_object(record, "metadata", where) | an_object(test, "metadata", where) | own
            variables[place] = own
            outputs.append((where, record, place, plain(about.get(str(given.options.label)))))
        names = dict(zip(variables, names_of([*variables.values()]) or (), strict=False))
        unnamed = unnamed or len(names) < len(variables)
        for where, record, place, label in outputs:
            provider = _name_of(record.get("provider")) or "provider"
            item = (provider, f"prompt {record.get('promptIdx', 0)}", names.get(place, place))
            yield from _rows(record, where, item, label)
    if unnamed:
        yield PLACES


def _records(file: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the results in a file: its records, or those in `results` or `results.results` of one."""
    records = list(records_in(file))
    if len(records) == 1 and "results" in records[0][1]:
        where, whole = records[0]
        whole = whole["results"] if isinstance(whole["results"], dict) else whole
        return [(where, record) for record in objects(whole, "results", where)]
    return records


def _rows(record: dict[str, Any], where: str, item: tuple[str, ...], label: Any) -> Iterator[Row]:
    grading = an_object(record, "gradingResult", where)
    parts = objects(grading, "componentResults", where)
    if record.get("failureReason") == PROVIDER_ERROR or (not grading and record.get("error")):
        yield Row(item, "test", dropped="no output to judge: the provider failed")
    elif not parts:
        yield Row(item, "test", dropped="test without assertions")
    else:
        for part in parts:
            passed, score, why = part.get("pass"), part.get("score"), "no pass or fail"
            if at(part, "metadata", "graderError"):
                passed, why = None, "grader failed"
            elif not passed and NO_VERDICT.match(str(part.get("reason"))):
                passed, why = None, "grader gave no readable verdict"
            vote = {True: "pass", False: "fail"}[passed] if isinstance(passed, bool) else None
            score = float(score) if vote and isinstance(score, int | float) else None
            judge = _judge(an_object(part, "assertion", where) or part)
            yield Row(item, judge, vote, why, score=score, label=label)


def _judge(assertion: dict[str, Any]) -> str:
    """Return the metric of an assertion, or its type and value; and its grader, if it is named."""
    about = " ".join((name_in(assertion, "value") or "").split())[:NAME]
    kind = name_in(assertion, "type") or "assertion"
    name = name_in(assertion, "metric") or ": ".join(filter(None, (kind, about)))
    provider = _name_of(assertion.get("provider"))
    return name if provider is None else f"{name} ({provider})"


def _name_of(provider: Any) -> str | None:
    return name_in(provider if isinstance(provider, dict) else {"id": provider}, "label", "id")
