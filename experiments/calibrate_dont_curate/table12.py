"""P2 Table 12 (H.14): selective prediction.

Claim: calibrated methods have a nearly perfect area under the accuracy-coverage curve, for any
aggregator; at high confidence majority voting answers 15 % of the items, with beta 99.9 % at 100 %
accuracy.
Command: judgebayes reproduce calibrate-dont-curate/table12 --data DIR
Runtime: about 20 seconds.
Expected: in the true orientation calibration lowers the area a little (by 0.004 to 0.045): a map with
an intercept ranks saturated answers for one response above those for the other. Stacking raises it.
Under the correctness encoding every calibrated method keeps 100 % of the items at 100 % accuracy, also
on LLMBar, where majority voting is right on 55 %.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.calibrate_dont_curate.answers import Answers, answers
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.data import benchmark, both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import claim_row, paper_values, value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.measures.selective import (
    AccuracyCurve,
    accuracy_at_coverage,
    auac,
    kept_at_confidence,
)
from judgebayes.measures.significance import bootstrap_interval, normal_interval
from judgebayes.plots import accuracy_coverage

METHODS = ("majority", "one-coin")
MAPS = ("none", "platt", "beta")
CONFIDENCE = 0.9
GRID = np.linspace(0.05, 1, 39)


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
        gain = normal_interval(scored["one-coin + beta"]["auac"] - scored["one-coin"]["auac"])
        records.append(claim_row(panel, "beta minus none", "auac difference", gain, run.splits))
    figure = accuracy_coverage(curves, title="Accuracy on the most confident items", columns=4)
    notes = [
        f"kept: share of items answered with a confidence of {CONFIDENCE} or more; the paper's "
        "threshold is blank in the text. A split without such items has accuracy one half.",
        "The difference of areas has an interval over splits.",
    ]
    return Output(rows(PAPER, "table12", records), {"curves": figure}, notes)


def selective(answer_set: Answers) -> dict[str, np.ndarray]:
    """Return by split the area, the accuracy at full coverage, and the items kept."""
    area, full, retained, right = (
        np.asarray(v) for v in _scored(answer_set.log_probs, answer_set.labels)
    )
    right = np.where(np.isfinite(right), right, 0.5)
    return {"auac": area, "accuracy": full, "kept": retained, "accuracy of kept": right}


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
