"""P1's sweep: Davidson by DRPS on 100 splits of 24 cells at two numbers of votes, five starts."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize as scipy_minimise

from judgebayes import Davidson
from judgebayes.aggregators.davidson import columns
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import sweep
from judgebayes.experiments.core import Run
from judgebayes.experiments.data import rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.speed.measure import Row, Side, race
from judgebayes.inference import DRPS
from judgebayes.inference.optimise import Differentiated, minimise_each
from judgebayes.inference.point import spread
from judgebayes.inference.problem import Design, score_derivatives
from judgebayes.measures.scores import drps
from judgebayes.models import davidson
from judgebayes.votes import Votes

CELLS, STARTS, CALIBRATION = 24, 5, 50
PASSES = 100
LOWER, UPPER = np.array([davidson.BOX[k] for k in ("beta", "eta0", "gamma")]).T


class Work(NamedTuple):
    """A cell of the sweep at a number of votes."""

    votes: Votes
    labels: Int[np.ndarray, " item"]
    splits: Splits


def sweep_of(run: Run) -> list[Work]:
    """Return the sweep: 24 cells of RewardBench 2, four and eight votes, 100 splits."""
    cells = [rb2(run, judge, task) for judge in rb2_judges(run) for task in rb2_tasks(run)][:CELLS]
    tasks = []
    for place, cell in enumerate(run.few(cells)):
        labelled = np.flatnonzero(cell.labels >= 0)
        parts = random_splits(
            cell.votes.n_items,
            splits=run.splits,
            calibration=CALIBRATION,
            among=labelled,
            seed=place,
        )
        tasks += [Work(cell.votes.first(n), cell.labels, parts) for n in (4, 8)]
    return tasks


def swept(works: Sequence[Work]) -> pd.DataFrame:
    """Return the errors of all splits of all cells, by one call."""
    votes, labels, splits = (
        {str(place): each for place, each in enumerate(field)} for field in zip(*works, strict=True)
    )
    method = {"davidson": Davidson(DRPS(starts=STARTS))}
    return sweep(method, votes, labels, splits, fit_on="calibration", devices=jax.devices())


def p1_sweep(run: Run, rounds: int, sample: int = 10) -> list[Row]:
    """Return the rows against SciPy's loop with both gradients, timed on `sample` splits."""
    works = sweep_of(run)

    def ours() -> np.ndarray:
        return swept(works)["value"].to_numpy()

    share = sample / (len(works) * run.splits)
    chosen = [(works[i % len(works)], i % run.splits) for i in range(sample)]
    # The peer's inputs are prepared before its timing; our time includes preparation and answers.
    problems = [(features_of(v), y) for v, y in (calibration_part(*each) for each in chosen)]

    def scipy(analytic: bool) -> Side:
        return Side(lambda: np.array([by_scipy(e, y, analytic) for e, y in problems]), share)

    sides = [Side(ours), scipy(True), scipy(False)]
    race(sides, rounds)
    best = np.array([our_minimum(w, s) for w, s in chosen])
    what = f"P1 sweep, {len(works) * run.splits * STARTS:,} fits"
    names = ("SciPy L-BFGS-B, analytic gradient", "SciPy L-BFGS-B, numerical gradient")
    return [
        Row(
            what,
            name,
            sides[0],
            side,
            bar,
            f"objective minus theirs {(best - side.answer).min():.1e} to "
            f"{(best - side.answer).max():.1e}",
        )
        for name, side, bar in zip(names, sides[1:], (40.0, 100.0), strict=True)
    ]


def calibration_part(work: Work, split: int) -> tuple[Votes, Int[np.ndarray, " item"]]:
    """Return the votes and labels of one fit."""
    items = work.splits.calibration[split]
    return work.votes.take(items), work.labels[items]


@in_float64
def our_minimum(work: Work, split: int) -> float:
    """Return the objective at the end of our fit."""
    votes, labels = calibration_part(work, split)
    return float(Davidson(DRPS(starts=STARTS)).fit(votes, labels).details["objective"])


@in_float64
def features_of(votes: Votes) -> Float[np.ndarray, "item 2"]:
    """Return margin and tie evidence as NumPy arrays."""
    table = davidson.features(votes.pooled_counts())
    return np.stack([np.asarray(table.margin), np.asarray(table.tie)[:, 0]], axis=1)


def begins() -> Float[np.ndarray, "start 3"]:
    """Return five starts: the centre of the priors, and points two standard deviations around it."""
    prior = davidson.DavidsonPrior()
    centre, scale = np.array([prior.beta, prior.eta0, prior.gamma]).T
    return np.clip(centre + 2 * scale * spread(STARTS, 3), LOWER, UPPER)


def by_scipy(
    evidence: Float[np.ndarray, "item 2"], labels: Int[np.ndarray, " item"], analytic: bool
) -> float:
    """Return the smallest DRPS of five starts by L-BFGS-B."""
    margin, tie = evidence.T
    below = (labels[:, None] <= np.arange(2)).astype(float)

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        u, eta = x[0] * margin, x[1] + x[2] * tie
        z = np.stack([-u, eta, u], axis=1)
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        gap = p.cumsum(1)[:, :2] - below
        by_p = np.stack([2 * gap.sum(1), 2 * gap[:, 1], np.zeros(len(p))], axis=1)
        by_z = p * (by_p - (p * by_p).sum(1, keepdims=True))
        slope = [margin @ (by_z[:, 2] - by_z[:, 0]), by_z[:, 1].sum(), tie @ by_z[:, 1]]
        return float((gap**2).sum() / len(p)), np.array(slope) / len(p)

    bounds = list(zip(LOWER, UPPER, strict=True))
    objective = value_and_slope if analytic else lambda x: value_and_slope(x)[0]
    return min(
        scipy_minimise(objective, x, jac=analytic or None, bounds=bounds, method="L-BFGS-B").fun
        for x in begins()
    )


@in_float64
def distance_to_the_limit(run: Run, rounds: int) -> str:
    """Return the time of 500 fits divided by the time of as many bare passes as the slowest split.

    A bare pass is one evaluation of objective, gradient and Hessian in a loop of nothing else.
    """
    work = sweep_of(run)[0]
    parts = [calibration_part(work, s) for s in range(run.splits)]
    evidence = jnp.asarray(np.stack([features_of(v) for v, _ in parts]))
    labels = jnp.asarray(np.stack([y for _, y in parts]))
    starts, low, high = jnp.asarray(begins()), jnp.asarray(LOWER), jnp.asarray(UPPER)

    def mean_score(evidence: Array, labels: Array) -> Differentiated:
        vote_features = davidson.Features(evidence[:, 0], evidence[:, 1:])
        items = len(labels)
        design = Design(columns(vote_features, n_classes=3), 3)
        return score_derivatives(drps, design, labels, jnp.ones(items), 0.0, factor=1 / items)

    @jax.jit
    def fits() -> Array:
        def one(e: Array, y: Array) -> Array:
            return minimise_each(mean_score(e, y), starts, low, high).steps

        return jax.vmap(one)(evidence, labels)

    @jax.jit
    def bare(x: Array, limit: Array) -> Array:
        def one(x: Array, e: Array, y: Array) -> Array:
            function = mean_score(e, y)

            def again(_: Array, x: Array) -> Array:
                value, gradient, hessian = function(x)
                # All three are needed and x stays constant, but the compiler cannot know this.
                return jnp.where(value + hessian.sum() > limit, gradient, x)

            return jax.lax.fori_loop(0, PASSES, again, x)

        return jax.vmap(one)(x, evidence, labels)

    at = jnp.broadcast_to(starts[0], (run.splits, 3))
    sides = [Side(fits), Side(lambda: bare(at, jnp.asarray(jnp.inf)), PASSES)]
    race(sides, max(rounds, 9))
    passes = np.asarray(sides[0].answer).sum(1) + STARTS  # each start is evaluated once first
    whole, one = (float(np.median(s.seconds)) for s in sides)
    return (
        f"{run.splits * STARTS} fits, the {STARTS} starts of a split one after the other, take "
        f"{whole * 1e3:.1f} ms; a bare pass of objective, gradient and Hessian over the "
        f"{run.splits} splits {one * 1e3:.3f} ms. The slowest split takes {passes.max()} passes, "
        f"the mean {passes.mean():.1f}: {whole / one / passes.max():.2f} times the limit of the "
        f"slowest (bar: 3), {whole / one / passes.mean():.2f} times that of the mean."
    )
