"""Shared code of Tables 3 and 4: all methods on one judge, by MAE or accuracy."""

from typing import Any

from judgebayes.experiments.core import Output, Run, rows
from judgebayes.experiments.data import rb2, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Comparison,
    against,
    answers,
    cell_rows,
    graded,
    printed,
)
from judgebayes.experiments.distribution_calibrated.forests import forests
from judgebayes.experiments.distribution_calibrated.predicting import twin_note, twin_rows
from judgebayes.experiments.distribution_calibrated.twins import published_cells
from judgebayes.experiments.significance import top_cluster

JUDGE = "gpt-5.4"
PAPER_JUDGE = "gemini-2.5-flash"
PAPER_METHODS = (
    "davidson",
    "davidson-mae",
    "davidson-ml",
    "sc",
    "sc-outer",
    "sc-first",
    "soft-sc-min",
    "soft-sc-mean",
    "soft-sc-product",
    "ci-sc",
    "greedy-2",
)
AUDIT = ("margin-threshold", "best-constant")
CLAIMED = ["sc", "soft-sc-mean", "ci-sc"]
TWIN_METHODS = ("davidson", "sc", *AUDIT)


def method_table(run: Run, name: str, metric: str) -> Output:
    """Return one metric of every method, on real votes if available, and on the twins."""
    records: list[dict[str, Any]] = []
    notes = [
        "SC's rule for tied votes is not stated in the paper. `sc`: any tie for the most votes is "
        "a tie; `sc-outer`: tie against A gives A; `sc-first`: the tied class that was voted first.",
        "`davidson-mae` minimises the calibration MAE itself (eq 8), `davidson-ml` the negative "
        "log-likelihood; `greedy-2` takes two ordinary samples, since no greedy ones exist.",
        "`soft-sc` and `ci-sc` weight votes by a confidence that is made up here, from differences of "
        "scores: the paper's is a sequence probability. Claims against them are proxies.",
        "`margin-threshold` (a tie unless |c+ - c-| >= k, k calibrated) and `best-constant` are the "
        "audit's; the paper has neither.",
        "USC, GSA and few-shot ask a language model and cannot be rerun on recorded votes.",
    ]
    if run.has("rb2_k8_scores"):
        if metric == "mae":
            notes.append(
                "In the top cluster (1): the method is not told from the best one by a paired "
                "permutation within splits, pairs of one question flipped together."
            )
        records += _real(run, metric)
    own_twins = run.few([c for c in published_cells() if c[1] == PAPER_JUDGE], 2)
    records += twin_rows(run, own_twins, TWIN_METHODS, metric, printed(name))
    table = rows(PAPER, name, records)
    notes.append(twin_note(table))
    return Output(table, forests(table, metric), notes)


def _real(run: Run, metric: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    comparisons: list[Comparison] = []
    methods = (*run.few(list(PAPER_METHODS), 4), *AUDIT)
    for task in rb2_tasks(run):
        run.say(f"{JUDGE}, {task}: {len(methods)} methods")
        cell = rb2(run, JUDGE, task)
        for n in (4, 8):
            by_method = {m: answers(run, cell, n, m) for m in methods}
            for method, answer_set in by_method.items():
                records += cell_rows(cell, n, method, answer_set, metrics=(metric,))
            others = run.few(CLAIMED, 1) + list(AUDIT)
            comparisons += against(run, cell, n, others, metric=metric)
            if metric == "mae":
                best = top_cluster(
                    {m: answer_set.errors for m, answer_set in by_method.items()},
                    by_method["davidson"].items,
                    cell.groups,
                    seed=run.seed,
                )
                records += [
                    {
                        **{name: row[name] for name in ("dataset", "task", "judge", "n")},
                        "method": row["method"],
                        "metric": "in the top cluster",
                        "value": float(row["method"] in best),
                        "splits": row["splits"],
                    }
                    for row in records[-len(methods) :]
                ]
    return records + graded(comparisons, MARGIN[metric])
