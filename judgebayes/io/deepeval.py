"""Test runs of DeepEval: JSON with the metrics of each test case."""

from collections.abc import Iterator

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import answer_in, names_of, objects, records_of


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
