"""P3 Fig 5: the gain by transfer against the similarity of the texts.

Claim: where texts are similar transfer helps, and where they are not it does no harm.
Command: judgebayes reproduce betaconform/fig5 --data DIR
Runtime: about 5 minutes; a second after table2.
Expected: the similarity of the texts does not predict the gain by transfer: the natural and
adversarial subsets of LLMBar have similar texts and opposite difficulty.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.transfers import margins, targets
from judgebayes.experiments.core import Grade, Output, Run, experiment, grade, rows
from judgebayes.measures.significance import Interval
from judgebayes.plots import scatter

RESAMPLES = 2000


@experiment(
    PAPER,
    "fig5",
    "Fig 5: gain by transfer against the similarity of the texts",
    "the more similar the texts of target and sources are, the more transfer gains",
    needs=("p3_correct_counts", "llmbar_evaluators", "rewardbench_rm149"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return each target's similarity and gain, and the graded correlation of the two."""
    records: list[dict[str, Any]] = []
    points: dict[str, list[tuple[float, float]]] = {}
    for target in targets(run):
        if target.embeddings is None:
            continue
        margin_by_method = margins(run, target)
        own = target.embeddings / np.linalg.norm(target.embeddings, axis=1, keepdims=True)
        alike, gain = (
            float((own[1:] @ own[0]).mean()),
            float((margin_by_method["em"] - margin_by_method["transfer"]).mean()),
        )
        points.setdefault(target.data_set.dataset, []).append((alike, gain))
        for metric, value in (("cosine similarity", alike), ("gain in error margin", gain)):
            records.append(
                {
                    **target.data_set.columns(),
                    "method": "transfer",
                    "metric": metric,
                    "value": value,
                    "grade": "simulated" if target.data_set.dataset == "twin" else "",
                }
            )
    for dataset, pairs in points.items():
        records.append(_correlation(dataset, np.array(pairs), run.seed))
    table = rows(PAPER, "fig5", records)
    figure = scatter(
        {name: np.array(pairs) for name, pairs in points.items()},
        xlabel="mean cosine similarity of the target's texts to its sources'",
        ylabel="gain in error margin, points",
        title="Gain by the paper's transfer, by the similarity of the texts",
    )
    correlations = table[table["metric"] == "correlation"]
    note = "Correlation of similarity and gain: " + ", ".join(
        f"{r.dataset} {r.value:+.2f} [{r.low:+.2f}, {r.high:+.2f}]"
        for r in correlations.itertuples()
    )
    return Output(table, {"gain": figure}, [note + "."])


def _correlation(dataset: str, pairs: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the correlation with its bootstrap interval over targets."""
    rng = np.random.default_rng(seed)
    draws = [_pearson(pairs[rng.integers(0, len(pairs), len(pairs))]) for _ in range(RESAMPLES)]
    low, high = np.quantile(draws, (0.025, 0.975))
    interval = Interval(_pearson(pairs), float(low), float(high))
    own_grade: Grade = "simulated" if dataset == "twin" else grade(interval)
    return {
        "dataset": dataset,
        "task": "all",
        "judge": "",
        "method": "likeness and gain",
        "metric": "correlation",
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": len(pairs),
        "grade": own_grade if len(pairs) > 2 or dataset == "twin" else "",
    }


def _pearson(pairs: np.ndarray) -> float:
    x, y = (pairs - pairs.mean(0)).T
    scale = np.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / scale) if scale > 0 else 0.0
