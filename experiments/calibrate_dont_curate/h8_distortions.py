"""P2 H.8: distorted scores, calibrated again.

Claim: calibrated methods stay calibrated under seven distortions of the raw score; monotone
distortions have no effect (Proposition 3).
Command: judgebayes reproduce calibrate-dont-curate/h8-distortions --data DIR
Runtime: about 40 seconds.
Expected: no grade (the strengths of the distortions are ours). In the true orientation beta and Platt
hardly lose to square and root of p and, on the public panels, to noise; they lose much to reversed
answers, and a shuffled score has the NLL of a coin. So the claim holds for beta and Platt, not quite
for isotonic: it loses to square and root on the reward models and RewardBench 2, since a squeezed score
has ties at the floor, and with an inverted score it is a coin. Undistorted, isotonic is ahead of beta
on the reward models and RewardBench 2 and behind on the twin. Under the correctness encoding all are
nearly perfect, the shuffled score too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes import Beta, Isotonic, OneCoin, Platt
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.calibrate_dont_curate.answers import CLIP
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.inference.fit import Method

Distortion = Callable[[np.ndarray, np.random.Generator], np.ndarray]
FINITE = 1e-9

DISTORTIONS: dict[str, Distortion] = {
    "none": lambda z, _: z,
    "square of p": lambda z, _: _logit(_p(z) ** 2),
    "root of p": lambda z, _: _logit(_p(z) ** 0.5),
    "noise 1": lambda z, rng: z + rng.normal(0, 1, z.shape),
    "noise 5": lambda z, rng: z + rng.normal(0, 5, z.shape),
    "binary noise": lambda z, rng: np.where(rng.random(z.shape) < 0.2, -z, z),
    "inversion": lambda z, _: -z,
    "shuffle": lambda z, rng: rng.permuted(z, axis=1),
}
"""H.8's seven distortions, of the one-coin log-odds z; their strengths are blank in the text."""

MAPS: dict[str, Method] = {
    "beta": Beta(free_slopes=True, clip=FLOOR),
    "platt": Platt(clip=FLOOR),
    "isotonic": Isotonic(),
}
SPLITS = 50


@experiment(
    PAPER,
    "h8-distortions",
    "H.8: distortions of the score",
    "calibration corrects distortions, monotone ones without loss",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the calibrated NLL of every distorted score."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        parts = halves(run, panel, count=SPLITS).splits
        scores, labels = _scores(panel, parts.calibration, parts.evaluation)
        n = parts.calibration.shape[1]
        for name, distort in DISTORTIONS.items():
            distorted = distort(scores, np.random.default_rng(run.seed))
            for map_name, values in _recalibrated(distorted, labels, n).items():
                interval = bootstrap_interval(values)
                records.append(value_row(panel, map_name, f"nll, {name}", interval, len(values)))
    notes = [
        "Scores are the one-coin log-odds of all judges. beta has free slopes here, so that it can "
        "reverse an inverted score; isotonic calibration cannot.",
    ]
    return Output(rows(PAPER, "h8-distortions", records), notes=notes)


@in_float64
def _scores(
    panel: Panel, calibration: np.ndarray, evaluation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-odds and labels, split by item, calibration items first."""
    labels = jnp.asarray(panel.labels)

    def one(cal: jax.Array, items: jax.Array) -> jax.Array:
        log_probs = OneCoin().fit(panel.votes.take(cal), labels[cal])(panel.votes.take(items))
        return log_probs[:, 1] - log_probs[:, 0]

    items = np.concatenate([calibration, evaluation], axis=1)
    scores = jax.lax.map(lambda pair: one(*pair), (jnp.asarray(calibration), jnp.asarray(items)))
    return np.asarray(scores), panel.labels[items]


@in_float64
def _recalibrated(scores: np.ndarray, labels: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Return each split's NLL with each map, fitted to the first n items."""
    log_probs = jnp.stack([-jnp.logaddexp(0, scores), -jnp.logaddexp(0, -scores)], -1)
    nll_by_map = _recalibrated_splits(log_probs, jnp.asarray(labels), n)
    return {name: np.asarray(values) for name, values in nll_by_map.items()}


@partial(jax.jit, static_argnames="n")
def _recalibrated_splits(log_probs: jax.Array, labels: jax.Array, n: int) -> dict[str, jax.Array]:
    def one(split: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
        x, y = split
        nll_by_map = {}
        for name, calibrator in MAPS.items():
            p = jnp.exp(calibrator.fit(x[:n], y[:n])(x[n:])[:, 1])
            p = jnp.clip(p, CLIP, 1 - CLIP)
            nll_by_map[name] = -jnp.log(jnp.where(y[n:] == 1, p, 1 - p)).mean()
        return nll_by_map

    by_split: dict[str, jax.Array] = jax.lax.map(one, (log_probs, labels))
    return by_split


def _p(z: np.ndarray) -> np.ndarray:
    return np.clip(1 / (1 + np.exp(-z)), FINITE, 1 - FINITE)


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, FINITE, 1 - FINITE)
    return np.log(p) - np.log1p(-p)
