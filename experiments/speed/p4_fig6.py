"""P4's Fig 6 to the true optimum: 64 calibration sets and 25 starts, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import (
    calibration_masks,
    calibration_sets,
    levels,
    matrix,
)
from judgebayes.experiments.beyond_consensus.regression import (
    FLOOR,
    WEIGHTS,
    Targets,
    as_published,
    starts,
    targets,
)
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.experiments.core import Run
from judgebayes.experiments.speed.measure import Row, Side, race

STARTS = 25


@in_float64
def p4_fig6(run: Run, rounds: int, sample: int = 4, released: bool = False) -> list[Row]:
    """Return the rows; peers are timed on `sample` sets, the released loop on one start."""
    cell = matrix(run, levels(run)[0])
    sets = calibration_sets(range(7))
    masks = jnp.asarray(calibration_masks(sets, len(cell.generators)))
    aims = jax.vmap(lambda mask: targets(cell.counts.reveal(mask)))(masks)
    begin = starts(np.asarray(cell.counts.matrix), STARTS)
    some = np.linspace(1, len(sets) - 1, sample).astype(int)
    single = [jax.tree.map(lambda a, i=i: a[i], aims) for i in some]

    def scipy() -> np.ndarray:
        fits = [as_published(a, restarts=STARTS, gradient="analytic") for a in single]
        return np.array([float(f.loss) for f in fits])

    ours = Side(lambda: true_minimum(aims, begin).loss)
    sides = [ours, Side(scipy, sample / len(sets))]
    names = [("vectorised SciPy, analytic gradient", 7.0)]
    race(sides, rounds)
    if released:
        peer = Side(lambda: by_loops(single[-1], begin[0]), 1 / (len(sets) * STARTS))
        race([peer], 0)
        peer.seconds = [peer.cold] * rounds
        sides.append(peer)
        names.append(("the released procedure: two loops, gradient by differences", 1000.0))
    best = np.asarray(ours.answer).min(1)
    rows = []
    for (name, bar), side in zip(names, sides[1:], strict=True):
        where = some if side.share * len(sets) >= 1 else some[-1:]
        gap = best[where] - side.answer
        same = f"our loss minus theirs {gap.min():.4f} to {gap.max():.4f} (they stop at the kinks)"
        what = f"P4 Fig 6, {len(sets)} sets x {STARTS} starts, true optimum"
        rows.append(Row(what, name, ours, side, bar, same))
    return rows


def by_loops(aim: Targets, start: object) -> float:
    """Return the end point of one start, with the loss in two loops and a numerical gradient."""
    data = np.asarray(aim.matrix)
    labelled, goal = np.asarray(aim.labelled), np.asarray(aim.precision)
    rates = np.asarray(aim.tpr), np.asarray(aim.tnr)
    generators, judges = data.shape

    def loss(x: np.ndarray) -> float:
        tpr, tnr, g = x[:judges], x[judges : 2 * judges], x[2 * judges :]
        total = 0.0
        for i in range(generators):
            for j in range(judges):
                fitted = g[i] * tpr[j] + (1 - g[i]) * (1 - tnr[j])
                total += data[i, j] * np.log(np.clip(fitted, FLOOR, 1))
                total += (1 - data[i, j]) * np.log(np.clip(1 - fitted, FLOOR, 1))
        gaps = ((g - goal)[labelled], tpr - rates[0], tnr - rates[1])
        terms = (w * np.sqrt((gap**2).mean()) for w, gap in zip(WEIGHTS, gaps, strict=True))
        return -total / data.size + sum(terms)

    at = np.concatenate([np.asarray(getattr(start, n)) for n in ("tpr", "tnr", "precision")])
    return float(minimize(loss, at, bounds=[(0, 1)] * len(at), method="L-BFGS-B").fun)
