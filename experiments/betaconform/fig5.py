"""P3 Fig 5: the gain by transfer against the similarity of the texts.

Claim: where texts are similar transfer helps, and where they are not it does no harm: the correlation of
similarity and gain is above 0; margin 0.2. Similarity belongs to the texts, so the units are subsets.
Command: judgebayes reproduce betaconform/fig5 --data DIR
Runtime: about 5 minutes; a second after table2.
Expected: it is open whether the similarity of the texts predicts the gain by transfer: the intervals of
both correlations include zero. The natural and adversarial subsets of LLMBar have similar texts and
opposite difficulty.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.experiments.betaconform.common import MARGIN, PAPER
from judgebayes.experiments.betaconform.transfers import margins, targets
from judgebayes.experiments.claims import Evidence, evidence_of
from judgebayes.experiments.core import Output, Run, experiment, graded, rows
from judgebayes.experiments.plots import scatter

RESAMPLES = 2000
LEAST_SUBSETS = 3


@experiment(
    PAPER,
    "fig5",
    "Fig 5: gain by transfer against the similarity of the texts",
    "the more similar the texts of target and sources are, the more transfer gains",
    needs=("p3_correct_counts", "llmbar_evaluators", "rewardbench_rm149"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return each target's similarity and gain, and the correlation of the two as a claim."""
    records: list[dict[str, Any]] = []
    points: dict[str, list[tuple[float, float]]] = {}
    places: dict[str, list[tuple[str, str]]] = {}
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
                }
            )
        places.setdefault(target.data_set.dataset, []).append(
            (target.data_set.judge, target.data_set.task)
        )
    records += graded(
        [
            (_row(name, len(pairs)), correlation(np.array(pairs), places[name], run.seed))
            for name, pairs in points.items()
            if len({task for _, task in places[name]}) >= LEAST_SUBSETS
        ],
        kind="paper",
        margin=MARGIN["correlation"],
    )
    table = rows(PAPER, "fig5", records)
    figure = scatter(
        {name: np.array(pairs) for name, pairs in points.items()},
        xlabel="mean cosine similarity of the target's texts to its sources'",
        ylabel="gain in error margin, points",
        title="Gain by the paper's transfer, by the similarity of the texts",
    )
    correlations = table[table["metric"] == "correlation"]
    if len(correlations) == 0:
        return Output(table, {"gain": figure}, ["Too few subsets for a correlation."])
    note = "Correlation of similarity and gain: " + ", ".join(
        f"{r.dataset} {r.value:+.2f} [{r.low:+.2f}, {r.high:+.2f}]"
        for r in correlations.itertuples()
    )
    return Output(table, {"gain": figure}, [note + "."])


def _row(dataset: str, targets: int) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "task": "all",
        "judge": "",
        "method": "likeness and gain",
        "metric": "correlation",
        "splits": targets,
    }


def correlation(
    pairs: Float[np.ndarray, "target 2"], places: list[tuple[str, str]], seed: int
) -> Evidence:
    """Return evidence on the correlation over targets, each in the place of its judge and subset.

    Targets of one subset share their texts and items, those of one judge its votes: both are
    resampled.
    """
    judges, subsets = (
        np.unique(names, return_inverse=True)[1] for names in zip(*places, strict=True)
    )

    def pearson(of_judges: np.ndarray, of_subsets: np.ndarray) -> float:
        weight = of_judges[judges] * of_subsets[subsets]
        if weight.sum() == 0:
            return float("nan")
        x, y = (pairs - np.average(pairs, axis=0, weights=weight)).T
        scale = np.sqrt((weight @ x**2) * (weight @ y**2))
        return float(weight @ (x * y) / scale) if scale > 0 else float("nan")

    return evidence_of(
        pearson, int(judges.max()) + 1, int(subsets.max()) + 1, resamples=RESAMPLES, seed=seed
    )
