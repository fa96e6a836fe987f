"""Rows of an experiment of Braintrust: JSON or JSONL with scores, or CSV with a column for each."""

from collections.abc import Iterator

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import an_object, name_in, records_of, score_rows


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
        yield from score_rows(item, scores, given, missing)
