"""Results of promptfoo eval, as JSON or JSONL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import at, names_of, records_in

PROVIDER_ERROR = 2
"""`failureReason` of a test without an output."""
NO_VERDICT = (
    "Could not extract JSON from llm-rubric response",
    "Could not parse",
    "llm-rubric produced malformed response",
    "No output",
    "API error",
    "API call error",
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
    places = False
    for file in given.files:
        records = _records(file)
        names = _names_of_tests(records)
        for index, record in enumerate(records):
            test = record.get("testIdx")
            place = str(index if test is None else test)
            described = at(record, "testCase", "description") if test is None else None
            named = names.get(place, described)
            places = places or named is None
            name = place if named is None else str(named)
            provider = str(_label_of(record.get("provider")) or "provider")
            item = (provider, f"prompt {record.get('promptIdx', 0)}", name)
            yield from _rows(record, item, _label(record, given.options.label))
    if places:
        yield PLACES


def _records(file: Path) -> list[dict[str, Any]]:
    records: Any = [record for _, record in records_in(file)]
    while len(records) == 1 and "results" in records[0]:
        within = records[0]["results"]
        records = within if isinstance(within, list) else [within]
        if not all(isinstance(record, dict) for record in records):
            records = [{}]
    if not all("success" in record or "gradingResult" in record for record in records):
        raise JudgeBayesError(
            f"{str(file)!r} contains no results of promptfoo: expected results.results, a list of "
            "objects with success and gradingResult."
        )
    return list(records)


def _label_of(provider: Any) -> Any:
    return (provider.get("label") or provider.get("id")) if isinstance(provider, dict) else provider


def _names_of_tests(records: list[dict[str, Any]]) -> dict[str, str]:
    """Return the name of each test by its place, from a variable with another value for each of them."""
    variables: dict[str, dict[str, Any]] = {}
    for index, record in enumerate(records):
        place, own = record.get("testIdx"), record.get("vars") or at(record, "testCase", "vars")
        variables[str(index if place is None else place)] = own if isinstance(own, dict) else {}
    return dict(zip(variables, names_of(list(variables.values())) or (), strict=False))


def _rows(record: dict[str, Any], item: tuple[str, ...], label: Any) -> Iterator[Row]:
    grading, parts = record.get("gradingResult"), at(record, "gradingResult", "componentResults")
    if record.get("failureReason") == PROVIDER_ERROR or (grading is None and record.get("error")):
        yield Row(item, "test", dropped="no output to judge: the provider failed")
    elif not isinstance(parts, list) or not parts:
        yield Row(item, "test", dropped="test without assertions")
    else:
        for part in parts:
            if not isinstance(part, dict):
                yield Row(item, "assertion", dropped="result of an assertion that is no object")
                continue
            passed, score, why = part.get("pass"), part.get("score"), "no pass or fail"
            if at(part, "metadata", "graderError"):
                passed, why = None, "grader failed"
            elif not passed and str(part.get("reason") or "").strip().startswith(NO_VERDICT):
                passed, why = None, "grader gave no readable verdict"
            vote = {True: "pass", False: "fail"}[passed] if isinstance(passed, bool) else None
            score = float(score) if vote and isinstance(score, int | float) else None
            yield Row(item, _judge(part), vote, why, score=score, label=label)


def _judge(part: dict[str, Any]) -> str:
    assertion = part.get("assertion")
    if not isinstance(assertion, dict):
        return str(part.get("metric") or part.get("type") or "assertion")
    value, name = assertion.get("value"), str(assertion.get("metric") or "")
    if not name:
        name = str(assertion.get("type", "assertion"))
        about = " ".join(str(value).split())[:NAME] if isinstance(value, str | int | float) else ""
        name = ": ".join(filter(None, (name, about)))
    provider = _label_of(assertion.get("provider"))
    return f"{name} ({provider})" if isinstance(provider, str) else name


def _label(record: dict[str, Any], label: str | None) -> Any:
    places = (("vars",), ("testCase", "metadata"), ("metadata",))
    values = (at(record, *place, label) for place in places if label is not None)
    return next((value for value in values if isinstance(value, str | int | float)), None)
