"""Samples of lm-evaluation-harness: samples_TASK_DATE.jsonl, a file per model and task."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import COPY
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files, short_names
from judgebayes.io.records import field_of, read_lines
from judgebayes.votes.classes import canonical

INVALID = "[invalid]"
"""What the harness's filters write where they find no answer, which its metrics count as wrong."""
FIELDS = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task_name", "group", "version"),
    }
)
"""Fields that are not metrics."""


@dataclass(frozen=True)
class _Sample:
    model: str
    task: str
    document: str
    filter: str
    record: dict[str, Any]
    where: str
    copy: bool
    """Whether its line has the same content as an earlier one of the file."""


def read_lm_eval(given: Files) -> Iterator[Row]:
    """Return the votes in the harness's samples.

    `votes_from="answer"`, the default: the model is the judge (named by the folder of its files), its
    filtered response is the vote, and the target is the label. In a multiple-choice task the vote is
    the index of the most likely choice. A task with several filters has a line per filter and
    document: each filter is a separate judge. A response of "[invalid]", which the harness counts as
    wrong, is a missing vote.

    `votes_from="score"`: an item is one output, each metric is a judge, and its value is the vote.

    Raises
    ------
    JudgeBayesError
        If a line is not a sample.
    """
    samples = [sample for file in given.files for sample in _samples(file)]
    if not samples:
        raise JudgeBayesError(f"{str(given.path)!r} contains no samples.")
    return _scores(samples) if given.options.votes_from == "score" else _answers(samples)


def _samples(file: Path) -> Iterator[_Sample]:
    name_match = re.match(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?\.jsonl", file.name)
    task = name_match.group(1) if name_match else file.name.split(".")[0]
    model = file.absolute().parent.name.replace("__", "/")
    seen: set[bytes] = set()
    for number, record in read_lines(file):
        digest = blake2b(json.dumps(record, sort_keys=True).encode(), digest_size=16).digest()
        copy = digest in seen
        seen.add(digest)
        where = f"Line {number} of {str(file)!r}"
        document = str(field_of(record, "doc_id", where))
        yield _Sample(model, task, document, str(record.get("filter", "none")), record, where, copy)


def _answers(samples: list[_Sample]) -> Iterator[Row]:
    names = short_names([(s.task, s.document) for s in samples], keep=1)
    judges = short_names([(s.model, s.filter) for s in samples], keep=0)
    for sample, item, judge in zip(samples, names, judges, strict=True):
        if sample.copy:
            yield Row(item, judge, dropped=COPY)
            continue
        filtered = field_of(sample.record, "filtered_resps", sample.where)
        label = canonical(sample.record.get("target"))
        gold = label if isinstance(label, str | int | float) else None
        if isinstance(sample.record.get("target"), list | dict):
            gold = None  # several answers, or none that a vote could equal
        responses = _responses(filtered)
        for number, response in enumerate(responses, start=1):
            vote = canonical(response) if isinstance(response, str | int | float) else None
            unread = vote is None or vote == INVALID
            yield Row(
                item,
                judge,
                None if unread else vote,  # type: ignore[arg-type]
                f"filtered response {INVALID}" if vote == INVALID else "no response",
                sample=number if len(responses) > 1 else None,
                label=gold,
            )


def _responses(value: Any) -> list[Any]:
    """Return the responses to a document: one, several repeats, or the most likely choice's index."""
    if not isinstance(value, list):
        return [value]
    if len(value) == 1 and isinstance(value[0], list) and not _is_likelihood(value[0]):
        value = value[0]
    if value and all(_is_likelihood(response) for response in value):
        log_likelihoods = [float(response[0]) for response in value]
        return [log_likelihoods.index(max(log_likelihoods))] if len(log_likelihoods) > 1 else [None]
    return value or [None]


def _is_likelihood(response: Any) -> bool:
    """Tell whether a response is a pair (log-likelihood, whether greedy decoding gives the choice)."""
    if not isinstance(response, list) or len(response) != 2:
        return False
    try:
        float(response[0])
    except (TypeError, ValueError):
        return False
    return str(response[1]) in ("True", "False")


def _scores(samples: list[_Sample]) -> Iterator[Row]:
    names = short_names([(s.model, s.task, s.document) for s in samples], keep=2)
    filters = {sample.filter for sample in samples}
    for sample, item in zip(samples, names, strict=True):
        if sample.copy:
            yield Row(item, "metric", dropped=COPY)
            continue
        metric_names = sample.record.get("metrics")
        metrics = (
            metric_names if isinstance(metric_names, list) else sorted(set(sample.record) - FIELDS)
        )
        values = [(str(metric), sample.record.get(str(metric))) for metric in metrics]
        numbers = [(m, v) for m, v in values if v is None or isinstance(v, bool | int | float)]
        if not numbers:
            yield Row(item, "metric", dropped="sample without a metric")
        elif isinstance(metric_names, list):
            for _ in range(len(values) - len(numbers)):
                yield Row(item, "metric", dropped="metric that is no number")
        for metric, value in numbers:
            judge = f"{metric}|{sample.filter}" if len(filters) > 1 else metric
            vote = canonical(value)
            yield Row(item, judge, vote, "metric is empty")  # type: ignore[arg-type]
