"""Results of promptfoo eval, as JSON or JSONL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import read_records
from judgebayes.io.tools import names_of

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
            provider, test = _label_of(record.get("provider")), record.get("testIdx")
            case = record.get("testCase")
            described = case.get("description") if isinstance(case, dict) else None
            place = str(index if test is None else test)
            named = names.get(place, described if test is None else None)
            places = places or named is None
            name = place if named is None else str(named)
            item = (str(provider or "provider"), f"prompt {record.get('promptIdx', 0)}", name)
            yield from _rows(record, item, given.options.label)
    if places:
        yield PLACES


def _records(file: Path) -> list[dict[str, Any]]:
    records = read_records(file)
    while isinstance(records, dict) and "results" in records:
        records = records["results"]
    all_objects = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    if not all_objects or not all("success" in r or "gradingResult" in r for r in records):
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
        place, case = record.get("testIdx"), record.get("testCase")
        own = record.get("vars") or (case.get("vars") if isinstance(case, dict) else None)
        variables[str(index if place is None else place)] = own if isinstance(own, dict) else {}
    return dict(zip(variables, names_of(list(variables.values())) or (), strict=False))


def _rows(record: dict[str, Any], item: tuple[str, ...], label: str | None) -> Iterator[Row]:
    grading = record.get("gradingResult")
    if record.get("failureReason") == PROVIDER_ERROR or (grading is None and record.get("error")):
        yield Row(item, "test", dropped="no output to judge: the provider failed")
        return
    parts = grading.get("componentResults") if isinstance(grading, dict) else None
    every = parts if isinstance(parts, list) else []
    parts = [part for part in every if isinstance(part, dict)]
    for _ in range(len(every) - len(parts)):
        yield Row(item, "assertion", dropped="result of an assertion that is no object")
    if not every:
        yield Row(item, "test", dropped="test without assertions")
        return
    label_value = _label(record, label)
    for part in parts:
        passed = part.get("pass")
        failure = _failed(part)
        score = part.get("score")
        is_verdict = isinstance(passed, bool) and failure is None
        yield Row(
            item,
            _judge(part),
            ("pass" if passed else "fail") if is_verdict else None,
            failure or "no pass or fail",
            score=float(score) if is_verdict and isinstance(score, int | float) else None,
            label=label_value,
        )


def _failed(part: dict[str, Any]) -> str | None:
    """Return why an assertion's result is not a verdict, or None."""
    metadata = part.get("metadata")
    if isinstance(metadata, dict) and metadata.get("graderError"):
        return "grader failed"
    reason = str(part.get("reason") or "").strip()
    if not part.get("pass") and reason.startswith(NO_VERDICT):
        return "grader gave no readable verdict"
    return None


def _judge(part: dict[str, Any]) -> str:
    assertion = part.get("assertion")
    if not isinstance(assertion, dict):
        return str(part.get("metric") or part.get("type") or "assertion")
    if assertion.get("metric"):
        name = str(assertion["metric"])
    else:
        value = assertion.get("value")
        short_value = (
            " ".join(str(value).split())[:NAME] if isinstance(value, str | int | float) else ""
        )
        name = ": ".join(
            word for word in (str(assertion.get("type", "assertion")), short_value) if word
        )
    provider = _label_of(assertion.get("provider"))
    return f"{name} ({provider})" if isinstance(provider, str) else name


def _label(record: dict[str, Any], label: str | None) -> str | int | float | None:
    if label is None:
        return None
    case = record.get("testCase")
    metadata = case.get("metadata") if isinstance(case, dict) else None
    for place in (record.get("vars"), metadata, record.get("metadata")):
        if isinstance(place, dict) and isinstance(place.get(label), str | int | float):
            value: str | int | float = place[label]
            return value
    return None
