"""Harnesses that run graders: lm-evaluation-harness, OpenAI evals and promptfoo."""

import json
import re
from collections.abc import Iterator
from typing import Any

from judgebayes.io.columns import COPY
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import an_object, at, name_in, names_of, plain, records_in

NO_RESPONSE = "[invalid]"
"""What the harness's filters write where they find no answer, which its metrics count as wrong."""


def read_lm_eval(given: Files) -> Iterator[Row]:
    """Return the votes in the harness's samples.

    The model is the judge (named by the folder of its files), its filtered response is the vote, and the
    target is the label. In a multiple-choice task the vote is the index of the most likely choice. A
    task with several filters has a line per filter and document: each filter is a separate judge. A
    response of "[invalid]", which the harness counts as wrong, is a missing vote.

    Raises
    ------
    JudgeBayesError
        If a line is not a sample.
    """
    for file in given.files:
        name_match = re.match(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?\.jsonl", file.name)
        task = name_match.group(1) if name_match else file.name.split(".")[0]
        model = file.absolute().parent.name.replace("__", "/")
        seen = set[int]()
        for where, record in records_in(file):
            item = (task, str(field_of(record, "doc_id", where)))
            judge = (model, str(record.get("filter", "none")))
            responses = _responses(field_of(record, "filtered_resps", where))
            copy = hash(json.dumps(record, sort_keys=True))
            if copy in seen:
                yield Row(item, judge, dropped=COPY)
                continue
            seen.add(copy)
            # A list of targets has several answers, or none that a vote could equal.
            label = plain(record.get("target"))
            for number, response in enumerate(responses, start=1):
                vote, why = plain(response), "no response"
                if vote == NO_RESPONSE:
                    vote, why = None, f"filtered response {NO_RESPONSE}"
                sample = number if len(responses) > 1 else None
                yield Row(item, judge, vote, why, sample=sample, label=label)


def _responses(value: Any) -> list[Any]:
    """Return the responses to a document: one, several repeats, or the most likely choice's index."""
    values = value if isinstance(value, list) else [value]
    if len(values) == 1 and isinstance(values[0], list) and not _likelihoods(values):
        values = values[0]
    chances = _likelihoods(values)
    if chances:
        return [chances.index(max(chances))] if len(chances) > 1 else [None]
    return values or [None]


def _likelihoods(choices: list[Any]) -> list[float]:
    """Return the log-likelihood in each pair of one and whether it is the greedy answer, else none."""
    pairs = [c for c in choices if isinstance(c, list) and len(c) == 2]
    pairs = [pair for pair in pairs if str(pair[1]) in ("True", "False")]
    try:
        return [float(pair[0]) for pair in pairs] if len(pairs) == len(choices) else []
    except (TypeError, ValueError):
        return []


NO_CHOICE = "__invalid__"
"""The choice that evals records, and scores as wrong, where it could not read the grader's answer."""
VERDICTS = ("choice", "correct", "score", "accuracy")
"""Keys that contain the vote of an event, the most likely first."""


def read_openai_evals(given: Files) -> Iterator[Row]:
    """Return the votes in record files of OpenAI evals.

    An item is one output (sample, and model where several were evaluated), the eval is the judge,
    and the vote is the choice of a model-graded eval, or whether the output matched. A choice of
    `__invalid__`, which evals scores as wrong, is a missing vote; events that contain no verdict
    (prompts, reports) are counted and left out.

    Raises
    ------
    JudgeBayesError
        If a line is not an event.
    """
    for file in given.files:
        model, judge = file.stem, file.stem
        for where, record in records_in(file):
            if spec := an_object(record, "spec", where):
                functions = spec.get("completion_fns")
                model = str(functions[0]) if isinstance(functions, list) and functions else model
                judge = name_in(spec, "eval_name", "base_eval") or judge
            apart = [name for name in ("spec", "final_report") if name in record]
            kind = apart[0] if apart else str(field_of(record, "type", where))
            data, sample = an_object(record, "data", where), name_in(record, "sample_id")
            verdicts = [data[name] for name in VERDICTS if name in data]
            if kind not in ("match", "metrics") or not verdicts or sample is None:
                yield Row("", "", dropped=f"event {kind}")
                continue
            vote, why = plain(verdicts[0]), "no verdict"
            if vote == NO_CHOICE:
                vote, why = None, f"choice {NO_CHOICE}"
            yield Row((model, sample), judge, vote, why)


PROVIDER_ERROR = 2
"""`failureReason` of a test without an output."""
NO_VERDICT = re.compile(
    r"\s*(Could not (extract JSON from llm-rubric response|parse)|llm-rubric produced malformed response"
    r"|No output|API (call )?error)"
)
"""Start of a grader's reason when it gave no verdict, which promptfoo counts as a failure."""
LONGEST_NAME = 60
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
        for where, record in records_in(file):
            place = str(field_of(record, "testIdx", where))
            test = an_object(record, "testCase", where)
            own = an_object(record, "vars", where) or an_object(test, "vars", where)
            about = an_object(record, "metadata", where) | an_object(test, "metadata", where) | own
            variables[place] = own
            outputs.append((where, record, place, plain(about.get(str(given.options.label)))))
        names = dict(zip(variables, names_of([*variables.values()]) or (), strict=False))
        unnamed = unnamed or len(names) < len(variables)
        for where, record, place, label in outputs:
            provider = _provider(record.get("provider")) or "provider"
            item = (provider, f"prompt {record.get('promptIdx', 0)}", names.get(place, place))
            yield from _parts(record, where, item, label)
    if unnamed:
        yield PLACES


def _parts(record: dict[str, Any], where: str, item: tuple[str, ...], label: Any) -> Iterator[Row]:
    grading = an_object(record, "gradingResult", where)
    results = grading.get("componentResults")
    # The place of an assertion that compares outputs may be empty.
    parts = (
        [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []
    )
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
            judge = _grader(an_object(part, "assertion", where) or part)
            yield Row(item, judge, vote, why, score=score, label=label)


def _grader(assertion: dict[str, Any]) -> str:
    """Return the metric of an assertion, or its type and value; and its grader, if it is named."""
    about = " ".join((name_in(assertion, "value") or "").split())[:LONGEST_NAME]
    kind = name_in(assertion, "type") or "assertion"
    name = name_in(assertion, "metric") or ": ".join(filter(None, (kind, about)))
    provider = _provider(assertion.get("provider"))
    return name if provider is None else f"{name} ({provider})"


def _provider(provider: Any) -> str | None:
    return name_in(provider if isinstance(provider, dict) else {"id": provider}, "label", "id")
