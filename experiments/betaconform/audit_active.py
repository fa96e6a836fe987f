"""Audit: labels of chosen items beside labels of random ones, for the split curve.

Claim: (none of the paper) items that are chosen by what their label would tell about the error of a
majority make the interval as narrow as more random ones, and the interval covers.
Command: judgebayes reproduce betaconform/audit-active --data DIR
Runtime: about 6 minutes with data; 10 replays on each of 38 data sets.
Expected: chosen items save about a tenth of the labels where judges are often wrong, and none where they
are rarely wrong; intervals cover at their level. If the curve were known, the best shares of labels
would save a little more than a tenth.
"""

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.vote_splits import SplitSet, split_sets
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.significance import normal_interval
from judgebayes.majority import FittedSplitCurve, SplitCurve, Splits, losses, next_labels, odd_sizes
from judgebayes.majority.split_curve import MeanLoss

REPLAYS = 10
LABELS = (10, 20, 50)
GRID = (6, 8, 10, 13, 16, 20, 32, 50, 80, 125)
"""Numbers of random labels."""
LEAST = "best shares, curve known"
FIRST, BATCH = 5, 5
"""Random labels before the first choice, and labels between fits."""


@experiment(
    PAPER,
    "audit-active",
    "Audit: which items to label for the error of a majority",
    "chosen items make the interval as narrow as more random ones, and it covers",
    needs=("p3_correct_counts", "llmbar_evaluators", "rb2_k8_scores"),
    twins=True,
)
def main(run: Run) -> Output:
    """Return error, width and coverage by number of labels, and the labels that choice saves."""
    records: list[dict[str, Any]] = []
    for one in split_sets(run):
        run.say(one.name)
        records += _rows(run, one, 2 if run.smoke else REPLAYS)
    table = rows(PAPER, "audit-active", records)
    saved = table[table["metric"] == "labels over random"]
    least = saved.loc[saved["method"] == LEAST, "value"].mean()
    notes = [f"Best shares of labels, if the curve were known: {least:.2f} of the random ones."]
    for n, own in table[table["method"] == "chosen"].groupby("n"):
        mean = own.groupby("metric")["value"].mean()
        ratio = normal_interval(
            own.loc[own["metric"] == "labels over random", "value"].to_numpy(float)
        )
        worst = own.loc[own["metric"] == "coverage", "value"].min()
        notes.append(
            f"{n} chosen labels: {ratio.mean:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] of the random "
            f"ones for the same width; error {100 * mean['error']:.2f}, width "
            f"{100 * mean['width']:.1f} points, coverage {mean['coverage']:.3f}, on one set {worst:.2f}."
        )
    return Output(table, notes=notes)


def _rows(run: Run, one: SplitSet, replays: int) -> list[dict[str, Any]]:
    items, sizes = len(one.splits.labels), odd_sizes(one.splits.most)
    results: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for replay in range(replays):
        rng = np.random.default_rng([run.seed, replay, items])
        whole, order = _turned(one.splits, rng), rng.permutation(items)
        truth = _truth(whole, sizes)
        for n in (n for n in GRID if n <= items):
            fit, splits = _fitted(whole, order[:n])
            results.setdefault(("random", n), []).append(_scores(fit, splits, sizes, truth, n))
        known = order[:FIRST]
        while len(known) < max(LABELS):
            fit, splits = _fitted(whole, known)
            chosen = next_labels(fit, splits, BATCH, sizes, MeanLoss("these"), seed=replay)
            known = np.concatenate([known, chosen])
            if len(known) in LABELS:
                fit, splits = _fitted(whole, known)
                scores = _scores(fit, splits, sizes, truth, len(known))
                results.setdefault(("chosen", len(known)), []).append(scores)
    records = []
    counts = sorted(n for method, n in results if method == "random")
    widths = np.array([[score[1] for score in results["random", n]] for n in counts])
    for (method, n), values in results.items():
        columns = dict(zip(("error", "width", "coverage"), np.array(values).T, strict=True))
        if method == "chosen":
            ratio = n / _as_narrow(counts, widths.mean(1), columns["width"].mean())
            # The width varies from replay to replay, and the ratio of means is no mean of ratios.
            without = np.array(
                [
                    n
                    / _as_narrow(
                        counts,
                        np.delete(widths, one, axis=1).mean(1),
                        np.delete(columns["width"], one).mean(),
                    )
                    for one in range(replays)
                ]
            )
            # The jackknife: the spread of these values is that of the ratio.
            columns["labels over random"] = ratio + (replays - 1) * (without.mean() - without)
        for metric, each in columns.items():
            interval = normal_interval(each)
            records.append(
                {
                    **one.columns(),
                    "n": n,
                    "method": method,
                    "metric": metric,
                    "value": interval.mean,
                    "low": interval.low,
                    "high": interval.high,
                    "splits": len(each),
                }
            )
    least = {"method": LEAST, "metric": "labels over random", "value": _least(one.splits, sizes)}
    return [*records, {**one.columns(), **least}]


def _least(whole: Splits, sizes: tuple[int, ...]) -> float:
    """Return the least labels for a variance, relative to random ones, if the curve is known.

    Labels in proportion to the standard deviation of an item's loss (Neyman 1934) have the variance
    (mean deviation)^2 / n; random ones that are sorted by their votes afterwards, mean variance / n.
    The curve is the one from all labels.
    """
    probs = np.asarray(SplitCurve(by_class=False).fit(whole).probs(whole)).mean(0)
    probs /= probs.sum(-1, keepdims=True)
    loss = np.nanmean(np.stack([losses(whole, size, "paper") for size in sizes]), axis=0)
    variance = np.maximum((probs * loss**2).sum(-1) - (probs * loss).sum(-1) ** 2, 0.0)
    return float(np.sqrt(variance).mean() ** 2 / variance.mean())


def _as_narrow(counts: list[int], widths: np.ndarray, width: float) -> float:
    """Return the number of random labels with this mean width, between those that were tried."""
    falling = isotonic_regression(np.log(widths), increasing=False).x
    return float(np.exp(np.interp(-np.log(width), -falling, np.log(counts))))


def _turned(whole: Splits, rng: np.random.Generator) -> Splits:
    """Return the items with their sides in random order, so that the order does not tell the label."""
    turn = rng.random(len(whole.labels)) < 0.5
    given = np.where(turn[:, None], whole.given[:, ::-1], whole.given)
    first, last = whole.label_classes[0], whole.label_classes[-1]
    return Splits(given, np.where(turn, last, first), whole.label_classes)


def _truth(whole: Splits, sizes: tuple[int, ...]) -> np.ndarray:
    at = np.arange(len(whole.labels)), whole.positions()
    return np.array([losses(whole, size, "paper")[at].mean() for size in sizes])


def _fitted(whole: Splits, known: np.ndarray) -> tuple[FittedSplitCurve, Splits]:
    labels = np.full(len(whole.labels), -1)
    labels[known] = whole.labels[known]
    splits = whole.with_labels(labels)
    return SplitCurve(by_class=False).fit(splits), splits


def _scores(
    fit: FittedSplitCurve, splits: Splits, sizes: tuple[int, ...], truth: np.ndarray, seed: int
) -> tuple[float, float, float]:
    """Return error, width and coverage, means over the numbers of votes."""
    curve = fit.curve(splits, sizes, MeanLoss("these"), seed=seed)
    covered = (curve.low <= truth + 1e-9) & (truth <= curve.high + 1e-9)
    each = np.abs(curve.error - truth), curve.high - curve.low, covered
    error, width, cover = (float(x.mean()) for x in each)
    return error, width, cover
