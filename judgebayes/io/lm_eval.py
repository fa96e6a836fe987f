"""Samples of lm-evaluation-harness: samples_TASK_DATE.jsonl, a file per model and task."""

import json
import re
from collections.abc import Iterator
from typing import Any

from judgebayes.io.columns import COPY
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import plain, records_in

INVALID = "[invalid]"
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
            for number, response in enumerate(responses, start=1):
                vote = plain(response)
                yield Row(
                    item,
                    judge,
                    None if vote == INVALID else vote,
                    f"filtered response {INVALID}" if vote == INVALID else "no response",
                    sample=number if len(responses) > 1 else None,
                    # A list has several answers, or none that a vote could equal.
                    label=plain(record.get("target")),
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
