"""Intervals of a majority vote's error: `ensemble`'s two columns, and a labelling session's."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform import stopping_rules
from judgebayes.experiments.betaconform.common import (
    COUNTS,
    TWINS,
    DataSet,
    all_data_sets,
    pmfs,
    posterior,
    simulated,
    wrong_majorities,
)
from judgebayes.experiments.betaconform.paper_em import Distribution
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials
from judgebayes.majority import Counts, Thinning, counts_of
from judgebayes.majority.distribution import in_population
from judgebayes.workflow.ensembling import MAX_REPORTED_WIDTH

LABELS = 57
WIDTH = 0.2
STOPPED = 4
HARD = "two peaks"
HARD_LABELS, HARD_VOTES = 100, 11


def majority(setting: Setting) -> Iterator[Trials]:
    """Yield trials from 57 labels; each uses the next data set and the next number of votes."""
    sources = [("simulated: Beta-Binomials", simulated())]
    if setting.run.has(COUNTS):
        sources.append(("counts of correct votes", all_data_sets(setting.run)))
    for place, (name, data_sets) in enumerate(sources):
        for these in (False, True):
            yield from _curves(setting, name, data_sets, these, place)
        yield _stopped(setting, name, data_sets, place)


def _curves(
    setting: Setting, name: str, data_sets: list[DataSet], these: bool, place: int
) -> Iterator[Trials]:
    """Yield trials of both columns, for more items like these or these items (`--target these`)."""
    rng = setting.rng(9, place, int(these))
    own = [data_sets[replay % len(data_sets)] for replay in range(setting.replays)]
    parts = [
        rng.permutation(len(one.correct))[:LABELS]
        if these
        else rng.integers(0, len(one.correct), LABELS)
        for one in own
    ]
    size = [(replay // len(data_sets)) % len(one.sizes) for replay, one in enumerate(own)]
    free: list[tuple[Ends, float]] = []
    for one, part, at in zip(own, parts, size, strict=True):
        fit = Thinning().fit(counts_of(one.correct[part], one.votes))
        population = len(one.correct) if these else None
        curves = [fit.curve(one.sizes, level=level, population=population) for level in LEVELS]
        free.append(([(c.low[at], c.high[at]) for c in curves], float(one.truth[at])))
    target = "these items" if these else "items like these"
    yield trials(f"majority's error, model-free, {target}", name, free)
    mixed: list[tuple[Ends, float]] = []
    for replay, pmf in enumerate(_posteriors(setting, own, parts)):
        one, part, at = own[replay], parts[replay], size[replay]
        if these:
            errors = in_population(
                pmf,
                counts_of(one.correct[part], one.votes),
                one.sizes,
                population=len(one.correct),
                seed=replay,
            )
        else:
            errors = pmf @ wrong_majorities(one.votes).T
        mixed.append((_central(errors[:, at]), float(one.truth[at])))
    yield trials(f"majority's error, mixture, {target}", name, mixed)


def _posteriors(
    setting: Setting, own: list[DataSet], parts: list[np.ndarray]
) -> list[Float[np.ndarray, "draw count"]]:
    """Return P(S = s) under draws of the mixture's posterior, for each data set."""
    posterior_pmfs: list[np.ndarray] = [np.empty(0)] * len(own)
    for votes in {one.votes for one in own}:
        which = [i for i, one in enumerate(own) if one.votes == votes]
        weights = np.stack(
            [np.bincount(own[i].correct[parts[i]], minlength=votes + 1) for i in which]
        )
        each = pmfs(posterior(setting.run), votes, weights.astype(float))
        for i, pmf in zip(which, each, strict=True):
            posterior_pmfs[i] = pmf
    return posterior_pmfs


def _central(draws: Float[np.ndarray, " draw"]) -> Ends:
    return [tuple(np.quantile(draws, ((1 - q) / 2, (1 + q) / 2))) for q in LEVELS]


def _stopped(setting: Setting, name: str, data_sets: list[DataSet], place: int) -> Trials:
    """Return trials of the interval at which a session stops because the interval is narrow."""
    rng = setting.rng(10, place)
    intervals: list[tuple[Ends, float]] = []
    rule = stopping_rules.WidthRule(WIDTH)
    for replay in range(setting.fewer(STOPPED)):
        one = data_sets[replay % len(data_sets)]
        order = rng.integers(0, len(one.correct), 400)
        (stop,) = stopping_rules.replay(rule, one.correct, one.votes, order[None])
        fit = Thinning().fit(counts_of(one.correct[order[:stop]], one.votes))
        top = one.sizes[-1:]
        curves = [fit.curve(top, level=level) for level in LEVELS]
        intervals.append(([(c.low[0], c.high[0]) for c in curves], float(one.truth[-1])))
    return trials("majority's error when a session stops (Python)", name, intervals)


def hard_items(setting: Setting) -> Iterator[Trials]:
    """Yield trials of the share of hard items and of a vote's accuracy, where they are printed."""
    components = TWINS[HARD]
    share, alpha, beta = (np.array(x) for x in zip(*components, strict=True))
    rng = setting.rng(11)
    weights = []
    for _ in range(setting.replays):
        which = rng.choice(len(share), HARD_LABELS, p=share)
        correct = rng.binomial(HARD_VOTES, rng.beta(alpha[which], beta[which]))
        weights.append(np.bincount(correct, minlength=HARD_VOTES + 1))
    method = posterior(setting.run)
    drawn_share, drawn_mean = _parameters(method, np.stack(weights).astype(float))
    low, high = np.quantile(drawn_share[..., 0], (0.05, 0.95), axis=1)
    settled = high - low <= MAX_REPORTED_WIDTH
    nothing: Ends = [(np.nan, np.nan)] * len(LEVELS)
    mean = alpha / (alpha + beta)
    for name, values, truth in (
        ("share of hard items", drawn_share[..., 0], share[0]),
        ("accuracy of a vote on hard items", drawn_mean[..., 0], mean[0]),
        ("accuracy of a vote on the others", drawn_mean[..., 1], mean[1]),
    ):
        intervals = [
            (_central(row) if is_printed else nothing, float(truth))
            for row, is_printed in zip(values, settled, strict=True)
        ]
        yield trials(name, f"simulated: {HARD}", intervals)


@in_float64
def _parameters(
    method: Distribution, weights: Float[np.ndarray, "replay count"]
) -> tuple[Float[np.ndarray, "replay draw component"], Float[np.ndarray, "replay draw component"]]:
    every = jnp.arange(HARD_VOTES + 1)
    cells = Counts(every, jnp.full_like(every, HARD_VOTES), HARD_VOTES)
    share, mean = jax.lax.map(
        jax.jit(partial(_one, method, cells)), jnp.asarray(weights), batch_size=20
    )
    return np.asarray(share), np.asarray(mean)


def _one(
    method: Distribution, cells: Counts, weight: Float[Array, " count"]
) -> tuple[Float[Array, "draw component"], Float[Array, "draw component"]]:
    theta = method.fit(cells, weight=weight).theta
    return theta.share, theta.mean
