"""P2 Table 12 (H.14): selective prediction.

Claim: calibrated methods have a nearly perfect area under the accuracy-coverage curve, for any
aggregator, so beta raises the area (margin 0.01); at high confidence majority voting answers 15 % of the
items, with beta 99.9 % at 100 % accuracy.
Command: judgebayes reproduce calibrate-dont-curate/table12 --data DIR
Runtime: about a minute.
Expected: contradicted. In the true orientation calibration lowers the area a little: a map with an
intercept ranks saturated answers for one response above those for the other. Stacking raises it. Under
the correctness encoding every calibrated method keeps all items and is right on all, also on LLMBar,
where majority voting is right on little more than half.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.calibrate_dont_curate.answers import Answers, answers, seed_of
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import benchmark, both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    paper_values,
    value_row,
)
from judgebayes.experiments.calibrate_dont_curate.selective import (
    AccuracyCurve,
    accuracy_at_coverage,
    auac,
    kept_at_confidence,
)
from judgebayes.experiments.claims import Evidence, evidence_of
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.plots import accuracy_coverage
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.measures.scores import SAME

METHODS = ("majority", "one-coin")
MAPS = ("none", "platt", "beta")
CONFIDENCE = 0.9
GRID = np.linspace(0.05, 1, 39)
CLAIM = Statement("calibration raises the area", "paper", MARGIN["auac"])


@experiment(
    PAPER,
    "table12",
    "Table 12 (H.14): selective prediction",
    "calibration makes abstention work: nearly all items are kept at nearly full accuracy",
    twins=True,
)
def main(run: Run) -> Output:
    """Return AUAC, accuracy, the items kept by a confidence threshold, and the curves."""
    records: list[dict[str, Any]] = []
    curves: dict[str, dict[str, AccuracyCurve]] = {}
    printed = paper_values("table12")
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        panel_curves = curves.setdefault(f"{panel.dataset}\n{panel.orientation}", {})
        by_method = {
            method if name == "none" else f"{method} + {name}": one
            for method in METHODS
            for name, one in answers(run, panel, method, MAPS).items()
        }
        by_method["stacking"] = answers(run, panel, "stacking", ("none",))["none"]
        scored = {name: selective(one) for name, one in by_method.items()}
        for name, metrics in scored.items():
            for metric, values in metrics.items():
                row = value_row(panel, name, metric, bootstrap_interval(values), run.splits)
                row["paper_value"] = printed.get((benchmark(panel), name, metric))
                records.append(row)
            if "platt" not in name:
                panel_curves[name] = curve(by_method[name])
        gain = area_gain(by_method["one-coin + beta"], by_method["one-coin"])
        title = "beta minus none"
        records.append(claim_row(panel, title, "auac difference", gain, run.splits, CLAIM))
    figure = accuracy_coverage(curves, title="Accuracy on the most confident items", columns=4)
    notes = [
        f"kept: share of items answered with a confidence of {CONFIDENCE} or more; the paper's "
        "threshold is blank in the text. A split without such items has accuracy one half.",
        "The difference of areas has an interval for new items and new splits.",
    ]
    return Output(rows(PAPER, "table12", graded(records)), {"curves": figure}, notes)


def selective(answer_set: Answers) -> dict[str, np.ndarray]:
    """Return by split the area, the accuracy at full coverage, and the items kept."""
    area, full, retained, right = (
        np.asarray(v) for v in _scored(answer_set.log_probs, answer_set.labels)
    )
    right = np.where(np.isfinite(right), right, 0.5)
    return {"auac": area, "accuracy": full, "kept": retained, "accuracy of kept": right}


def area_gain(method: Answers, other: Answers) -> Evidence:
    """Return evidence on how much larger a method's area under the accuracy-coverage curve is."""
    panel, areas, other_areas = method.panel, weighted_areas(method), weighted_areas(other)

    def gain(of_splits: np.ndarray, of_items: np.ndarray) -> float:
        difference = areas(of_items) - other_areas(of_items)
        return float(of_splits @ difference / of_splits.sum())

    size = len(panel.labels)
    return evidence_of(gain, len(method.items), size, panel.group, seed=seed_of(panel))


def weighted_areas(
    answer_set: Answers,
) -> Callable[[Float[np.ndarray, " all_items"]], Float[np.ndarray, " split"]]:
    """Return a function from a weight for each item to each split's `auac`.

    Items are sorted and ties found once, since resampling needs hundreds of weights.
    """
    probs = np.exp(answer_set.log_probs)
    confidence = np.where(answer_set.inside, probs.max(-1), 0.0)
    tied = probs >= confidence[..., None] - SAME
    hit = np.take_along_axis(tied, np.maximum(answer_set.labels, 0)[..., None], 2)[..., 0]
    order = np.argsort(-confidence, axis=1, kind="stable")

    def ranked(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, order, 1)

    items, inside = ranked(np.maximum(answer_set.items, 0)), ranked(answer_set.inside)
    right = inside * ranked(hit / np.maximum(tied.sum(-1), 1))
    doubt, rows = -ranked(confidence), np.arange(len(order))[:, None]
    begin = np.array([np.searchsorted(d, d - SAME, side="left") for d in doubt])
    end = np.array([np.searchsorted(d, d + SAME, side="right") for d in doubt])

    def sums(values: Float[np.ndarray, "split item"]) -> Float[np.ndarray, "split step"]:
        return np.pad(values.cumsum(1), ((0, 0), (1, 0)))

    def areas(weight: Float[np.ndarray, " all_items"]) -> Float[np.ndarray, " split"]:
        own = weight[items] * inside
        mass, hits = sums(own), sums(own * right)
        block = mass[rows, end] - mass[rows, begin]
        rate = (hits[rows, end] - hits[rows, begin]) / np.where(block > 0, block, 1.0)
        whole = mass[:, -1:]
        width, before = own / whole, mass[:, :-1] / whole
        gained = sums(own * rate)[:, :-1] / whole - rate * before
        inner = (own > 0) & (before > 0)
        growth = np.log1p(np.where(inner, width, 0.0) / np.where(inner, before, 1.0))
        return np.asarray((rate * width + gained * growth).sum(1))

    return areas


@in_float64
def _scored(log_probs: np.ndarray, labels: np.ndarray) -> tuple[jax.Array, ...]:
    return _scored_splits(jnp.asarray(log_probs), jnp.asarray(labels))


@jax.jit
def _scored_splits(log_probs: jax.Array, labels: jax.Array) -> tuple[jax.Array, ...]:
    def one(p: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        bar = kept_at_confidence(p, y, CONFIDENCE)
        return auac(p, y), accuracy_at_coverage(p, y, 1.0), bar.share, bar.accuracy

    scores: tuple[jax.Array, ...] = jax.lax.map(lambda split: one(*split), (log_probs, labels))
    return scores


@in_float64
def curve(answer_set: Answers) -> AccuracyCurve:
    """Return the mean accuracy over splits at each coverage."""
    by_split = _curves(jnp.asarray(answer_set.log_probs), jnp.asarray(answer_set.labels))
    return AccuracyCurve(jnp.asarray(GRID), by_split.mean(0))


@jax.jit
def _curves(log_probs: jax.Array, labels: jax.Array) -> jax.Array:
    def one(split: tuple[jax.Array, jax.Array]) -> jax.Array:
        def at(coverage: jax.Array) -> jax.Array:
            return accuracy_at_coverage(*split, coverage)

        return jax.vmap(at)(jnp.asarray(GRID))

    by_split: jax.Array = jax.lax.map(one, (log_probs, labels))
    return by_split
