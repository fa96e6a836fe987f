"""Audit: which correction is right depends on the judges: simulated weak and strong judges.

Claim: none in the paper, which uses one data set with weak judges.
Command: judgebayes reproduce beyond-consensus/audit-regimes
Runtime: about 4 minutes with 100 splits (40 simulated worlds), most of it `Panel`; no data.
Expected: with weak judges the impression estimator is as good as the logit shift, and Rogan-Gladen
fails. With strong judges it is as good as Rogan-Gladen where that is exactly right (rates depend on
the judge only; the intervals of the paired differences include zero) and better where rates also depend
on the generator. Where these shifts follow quality, the logit shift is better. Intervals cover near
their level or more. `Panel` has lower errors and narrower intervals with strong judges, and about the
same with weak ones; its intervals cover least where weak judges' impressions follow quality less.

A world has ten generators with 600 items each and eight judges. All votes on an item share its
difficulty (normal, standard deviation 1 on the logit scale), and cells deviate with standard deviation
0.1. Worlds with strong judges are drawn from their own equations, not from the estimator's.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import PAPER
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.generators import Panel, PrecisionCounts, rogan_gladen

GENERATORS, JUDGES, ITEMS = 10, 8, 600
HELD_OUT = slice(5, 10)
SIZES = (2, 3, 4, 5)
WORLDS = 40
INTERVALS = {"impression": ("low", "high"), "panel": ("panel low", "panel high")}
DIFFICULTY = 1.0
REGIMES = {
    "strong, rates of the judge alone": (0.0, 0.0),
    "strong, generators shift rates by 0.2": (0.2, 0.0),
    "strong, shifts follow quality": (0.15, 0.5),
    "weak, impressions follow quality": (0.2, 1.0),
    "weak, impressions follow less": (0.2, 0.6),
}


def _logit(p: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(p) - np.log1p(-p))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def item_world(
    regime: str, seed: int
) -> tuple[Bool[np.ndarray, "generator item judge"], Bool[np.ndarray, "generator item"]]:
    """Return whether each judge accepts each item of one simulated world, and whether it is valid."""
    rng = np.random.default_rng((seed, list(REGIMES).index(regime)))
    spread, follow = REGIMES[regime]
    if regime.startswith("strong"):  # Youden 0.5 to 0.8, 10 to 40 % invalid
        g = rng.uniform(0.6, 0.9, GENERATORS)
        youden = rng.uniform(0.5, 0.8, JUDGES)
        fpr = np.minimum(rng.uniform(0.05, 0.2, JUDGES), 0.97 - youden)
        common_shift = follow * (_logit(g) - _logit(np.array(0.75)))[:, None]
        shift = rng.normal(0, 1, (2, GENERATORS, 1)) * spread + common_shift
        on_valid, on_invalid = _logit(youden + fpr) + shift[0], _logit(fpr) + shift[1]
    else:  # Youden 0.05 to 0.35, about 7 % invalid
        eta = rng.normal(2.6, 0.35, GENERATORS)
        g = _sigmoid(eta)
        know = _logit(rng.uniform(0.05, 0.35, JUDGES)) + rng.normal(0, 0.4, (GENERATORS, 1))
        base = rng.normal(0.4, 0.4, JUDGES) + (1 - follow) * 2.6
        accept = _sigmoid(base + (follow * eta + rng.normal(0, spread, GENERATORS))[:, None])
        know = _sigmoid(know)
        on_valid = _logit(know + (1 - know) * accept)
        on_invalid = _logit((1 - know) * accept)
    cell = rng.normal(0, 0.1, (2, GENERATORS, JUDGES))
    label = rng.random((GENERATORS, ITEMS)) < g[:, None]
    difficulty = rng.normal(0, DIFFICULTY, (GENERATORS, ITEMS, 1))
    flatter = np.sqrt(1 + 0.346 * DIFFICULTY**2)  # makes the mean over items about the rate
    at = np.where(label[..., None], (on_valid + cell[0])[:, None], (on_invalid + cell[1])[:, None])
    return rng.random((GENERATORS, ITEMS, JUDGES)) < _sigmoid(flatter * at + difficulty), label


def world(regime: str, seed: int) -> PrecisionCounts:
    """Return the counts of one simulated world, every item labelled."""
    vote, label = item_world(regime, seed)
    valid = np.broadcast_to(label[..., None], vote.shape)
    none = np.zeros((GENERATORS, JUDGES))
    parts = (
        none,
        none,
        *((a.sum(1)) for a in (vote & valid, valid, vote & ~valid, ~valid)),
        label.sum(1),
        (~label).sum(1),
        np.zeros(GENERATORS),
    )
    return PrecisionCounts(*(jnp.asarray(a, float) for a in parts))


@jax.jit
def _every(
    counts: PrecisionCounts, masks: Bool[jax.Array, "set generator"]
) -> dict[str, Float[jax.Array, "set generator"]]:
    """Return estimates and interval ends in one world."""

    def one(mask: jax.Array) -> dict[str, jax.Array]:
        partial_counts = counts.reveal(mask)
        fit = Impression().fit(partial_counts)
        low, high = fit.interval(0.9)
        return {
            "impression": fit.estimate(),
            "logit-shift": logit_shift(partial_counts),
            "rogan-gladen": rogan_gladen(partial_counts),
            "low": low,
            "high": high,
        }

    def panel(mask: jax.Array) -> dict[str, jax.Array]:
        fit = Panel().fit(counts.reveal(mask))
        low, high = fit.interval(0.9)
        return {"panel": fit.estimate(), "panel low": low, "panel high": high}

    return {**jax.vmap(one)(masks), **jax.lax.map(panel, masks)}


@in_float64
def outcomes(
    worlds: list[PrecisionCounts], masks: Bool[np.ndarray, "set generator"]
) -> dict[str, Float[np.ndarray, "world set generator"]]:
    """Return estimates and interval ends in every world at every number of labelled generators."""
    results = [_every(world, jnp.asarray(masks)) for world in worlds]
    return {name: np.stack([np.asarray(f[name]) for f in results]) for name in results[0]}


@experiment(
    PAPER,
    "audit-regimes",
    "Audit: weak and strong judges, simulated",
    "one correction is right for weak and for strong judges",
    twins=True,
)
def main(run: Run) -> Output:
    """Return mean and maximum errors, coverage and width, by regime and number of labels."""
    records: list[dict[str, Any]] = []
    masks = np.arange(GENERATORS) < np.array(SIZES)[:, None]
    for regime in run.few(list(REGIMES), 2):
        run.say(regime)
        with jax.enable_x64(True):
            worlds = [
                world(regime, run.seed + i)
                for i in range(2 if run.smoke else min(WORLDS, run.splits))
            ]
        estimate_by_rule = outcomes(worlds, masks)
        truth = np.stack([np.asarray(w.labelled_precision) for w in worlds])[:, None, HELD_OUT]
        values: dict[tuple[str, str], np.ndarray] = {}
        for name in ("impression", "panel", "logit-shift", "rogan-gladen"):
            gap = np.abs(estimate_by_rule[name][..., HELD_OUT] - truth)
            values[name, "mean error"], values[name, "max error"] = gap.mean(2), gap.max(2)
        for name, ends in INTERVALS.items():
            low, high = (estimate_by_rule[end][..., HELD_OUT] for end in ends)
            values[name, "coverage"] = ((low <= truth) & (truth <= high)).mean(2)
            values[name, "width"] = (high - low).mean(2)
        for other in ("logit-shift", "rogan-gladen"):
            values[f"impression - {other}", "difference of mean errors"] = (
                values["impression", "mean error"] - values[other, "mean error"]
            )
        for (name, metric), each in values.items():
            mean, error = each.mean(0), each.std(0, ddof=1) / np.sqrt(len(each))
            records += [
                {
                    "dataset": "twin",
                    "task": regime,
                    "n": size,
                    "method": name,
                    "metric": metric,
                    "value": float(m),
                    "low": float(m - 1.96 * e),
                    "high": float(m + 1.96 * e),
                    "splits": len(worlds),
                }
                for size, m, e in zip(SIZES, mean, error, strict=True)
            ]
    table = rows(PAPER, "audit-regimes", records)
    return Output(table)
