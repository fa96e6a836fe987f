"""Audit: the split curve beside estimates from labelled items alone, with 10, 20 and 50 labels.

Claim: (none of the paper) with the votes of items without a label, 20 labels do what 50 do without.
Command: judgebayes reproduce betaconform/audit-splits --data DIR
Runtime: about 25 minutes with data; 200 replays on each of 38 data sets.
Expected: the error of the split curve is smaller than thinning's and the mixture's on RewardBench and
RewardBench 2, its intervals are narrower, and they cover at their level. On LLMBar, where the split says
little about the label, it gains little.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from judgebayes.experiments.betaconform.common import PAPER, pmfs, posterior
from judgebayes.experiments.betaconform.vote_splits import SplitSet, split_sets
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.majority import (
    ErrorCurve,
    MeanLoss,
    Measure,
    SplitCurve,
    Thinning,
    counts_of,
    losses,
    mean_loss,
    odd_sizes,
)
from judgebayes.majority.distribution import in_population

REPLAYS = 200
LABELS = (10, 20, 50)
LEVEL = 0.9
MEASURES: dict[str, Measure] = {"P(S < k/2)": "paper", "plurality": "wrong"}
METRICS = ("error", "width", "coverage")
COVER = 0.88
"""Coverage below which a data set falls short, of 90 % intervals."""


@experiment(
    PAPER,
    "audit-splits",
    "Audit: a majority's error from labelled and unlabelled items",
    "the votes of items without a label make the error of a majority more certain",
    needs=("p3_correct_counts", "llmbar_evaluators", "rb2_k8_scores"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return error, width and coverage by data set, method and number of labels."""
    records: list[dict[str, Any]] = []
    replays = 3 if run.smoke else REPLAYS
    for one in split_sets(run):
        run.say(one.name)
        for n in run.few(list(LABELS), 1):
            for (quantity, method), values in _replayed(run, one, n, replays).items():
                for metric, column in zip(METRICS, values.T, strict=True):
                    records.append(_row(one, n, method, f"{metric}, {quantity}", column))
    table = rows(PAPER, "audit-splits", records)
    cells = table["metric"].str.startswith("coverage").sum()
    z = float(norm.ppf(1 - 0.05 / (2 * max(cells, 1))))
    wide = (table["high"] - table["value"]) * z / 1.96
    short = table["metric"].str.startswith("coverage") & (table["value"] + wide < COVER)
    notes = []
    for quantity in MEASURES:
        for n in sorted(set(table["n"])):
            own = table[(table["n"] == n) & table["metric"].str.endswith(quantity)]
            means = own.pivot_table(index="method", columns="metric", values="value")
            for method, row in means.iterrows():
                error, width, cover = (row[f"{m}, {quantity}"] for m in METRICS)
                count = int(
                    (short & (table["method"] == method) & table.index.isin(own.index)).sum()
                )
                notes.append(
                    f"{quantity}, {n} labels, {method}: error {100 * error:.2f}, width "
                    f"{100 * width:.1f} points, coverage {cover:.3f}; below {COVER} on {count} sets "
                    "by an interval over all cells at once."
                )
    return Output(table, notes=notes)


def _replayed(
    run: Run, one: SplitSet, n: int, replays: int
) -> dict[tuple[str, str], Float[np.ndarray, "replay metric"]]:
    """Return error, width and coverage of each quantity and method in each replay."""
    whole = one.splits
    items, sizes = len(whole.labels), odd_sizes(whole.most)
    truths = {
        quantity: np.array([losses(whole, size, measure)[:, 0].mean() for size in sizes])
        for quantity, measure in MEASURES.items()
    }
    known = np.stack([losses(whole, size, "wrong")[:, 0] for size in sizes])
    rng = np.random.default_rng([run.seed, items, n])
    parts = [rng.choice(items, min(n, items), replace=False) for _ in range(replays)]
    results: dict[tuple[str, str], list[list[float]]] = {}

    def add(quantity: str, method: str, curve: ErrorCurve) -> None:
        truth = truths[quantity]
        covered = (curve.low <= truth + 1e-9) & (truth <= curve.high + 1e-9)
        of_replay = [np.abs(curve.error - truth), curve.high - curve.low, covered]
        results.setdefault((quantity, method), []).append([float(x.mean()) for x in of_replay])

    for replay, part in enumerate(parts):
        labels = np.full(items, -1)
        labels[part] = 0
        splits = whole.with_labels(labels)
        fit = SplitCurve(by_class=False).fit(splits)
        for quantity, measure in MEASURES.items():
            curve = fit.curve(splits, sizes, MeanLoss("these", measure, level=LEVEL), seed=replay)
            add(quantity, "split curve", curve)
        counts = counts_of(whole.given[part, 0], whole.total[part])
        free = Thinning().fit(counts).curve(sizes, level=LEVEL, population=items)
        add("P(S < k/2)", "model-free", free)
        add(
            "plurality",
            "model-free",
            mean_loss(sizes, known[:, part], level=LEVEL, population=items),
        )
    _mixture(run, one, parts, sizes, add)
    return {key: np.array(values) for key, values in results.items()}


def _mixture(run: Run, one: SplitSet, parts: list[np.ndarray], sizes: Any, add: Any) -> None:
    """Add the posterior of the mixture, which describes P(S < k/2) only."""
    whole = one.splits
    weights = [np.bincount(whole.given[p, 0], minlength=whole.most + 1) for p in parts]
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    for replay, pmf in enumerate(pmfs(posterior(run), whole.most, np.array(weights, float))):
        counts = counts_of(whole.given[parts[replay], 0], whole.most)
        drawn = in_population(pmf, counts, sizes, population=len(whole.labels), seed=replay)
        low, high = np.quantile(drawn, ends, axis=0)
        none = np.zeros(len(sizes), bool)
        add("P(S < k/2)", "mixture", ErrorCurve(np.asarray(sizes), drawn.mean(0), low, high, none))


def _row(
    one: SplitSet, n: int, method: str, metric: str, values: Float[np.ndarray, " replay"]
) -> dict[str, Any]:
    mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))
    return {
        **one.columns(),
        "n": n,
        "method": method,
        "metric": metric,
        "value": mean,
        "low": mean - half,
        "high": mean + half,
        "splits": len(values),
    }
