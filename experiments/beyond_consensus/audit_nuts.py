"""Audit: the flat and the hierarchical program, sampled by NUTS, on P4's matrix.

Claim: none in the paper, whose model has no posterior.
Command: judgebayes reproduce beyond-consensus/audit-nuts --data DIR
Runtime: about half an hour of one core, most of it with one label or none; --smoke one minute.
Expected: the chains of the hierarchical program agree wherever a generator is labelled; few draws
diverge. Without a label they do not agree within the draws that it gets, and the intervals say nothing.
The flat program does not describe these data: its errors are several times as large, and with one label
or none its chains disagree.

The original level, with the first s generators labelled in the order of the release; and, as the last
points of Fig 6, every set that leaves out one generator, with errors averaged over sets. R-hat is the
largest and the effective sample size (ESS) the smallest of all parameters; minutes are those of one
core, with compilation for the first set of each program.
"""

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpyro.diagnostics import effective_sample_size

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import (
    DATASET,
    LEVELS,
    PAPER,
    Matrix,
    calibration_masks,
    calibration_sets,
    errors,
    matrix,
    spread_over_generators,
)
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_validator import (
    FittedGeneratorValidator,
    GeneratorValidator,
)
from judgebayes.experiments.beyond_consensus.hierarchical_program import HierarchicalModel
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.generators import Panel, PrecisionCounts
from judgebayes.inference import MAP, NUTS
from judgebayes.inference.nuts import split_rhat

LEVEL = "noRepair"
ANNOTATED = 6
ACCEPT = 0.8
"""Pilots with three and five labelled generators had more effective draws per step than at 0.9."""
SAMPLERS = {
    "hierarchical, NUTS": GeneratorValidator(
        HierarchicalModel(), NUTS(draws=2500, warmup=200, target_accept=ACCEPT)
    ),
    "flat, NUTS": GeneratorValidator(FlatModel(), NUTS()),
}
UNLABELLED = NUTS(draws=300, warmup=200, target_accept=ACCEPT)
"""For the hierarchical program without a label, whose trajectories are of the greatest length."""
SMOKE = NUTS(draws=50, warmup=100, chains=2, target_accept=ACCEPT)
FAST = ("impression", "panel", "flat, MAP", "hierarchical, MAP", "logit-shift")
RELEASED = "as-published"


@in_float64
def sampled(method: GeneratorValidator, counts: PrecisionCounts) -> dict[str, np.ndarray]:
    """Return the estimates, the ends of the 90 % intervals, and how the sampling went."""
    began = time.process_time()
    fit = jax.block_until_ready(method.fit(counts))
    minutes = (time.process_time() - began) / 60
    low, high = fit.interval(0.9)
    return {
        "estimate": np.asarray(fit.estimate()),
        "low": np.asarray(low),
        "high": np.asarray(high),
        "minutes": np.asarray(minutes),
        **agreement(fit),
    }


def agreement(fit: FittedGeneratorValidator) -> dict[str, np.ndarray]:
    """Return the largest R-hat and the smallest ESS of all parameters, and the divergent draws."""
    assert fit.chains is not None
    draws = [np.asarray(x) for x in fit.chains.draws.values()]
    flat = np.concatenate([x.reshape(*x.shape[:2], -1) for x in draws], axis=2)
    return {
        "R-hat": np.asarray(split_rhat(jnp.asarray(flat)).max()),
        "ESS": np.asarray(effective_sample_size(flat).min()),
        "divergences": np.asarray(fit.chains.diverging.sum()),
        "steps": np.asarray((2.0**fit.chains.tree_depth - 1).mean()),
    }


@in_float64
def fast(counts: PrecisionCounts) -> dict[str, np.ndarray]:
    """Return the estimates of the fast routes: a row for each of `FAST`."""
    return {"estimate": np.stack([np.asarray(x) for x in _fast(counts)])}


@jax.jit
def _fast(counts: PrecisionCounts) -> tuple[jax.Array, ...]:
    modes = (GeneratorValidator(FlatModel(), MAP()), GeneratorValidator(HierarchicalModel(), MAP()))
    methods = (Impression(), Panel(), *modes)
    return (*(method.fit(counts).estimate() for method in methods), logit_shift(counts))


@experiment(
    PAPER,
    "audit-nuts",
    "Audit: the programs sampled by NUTS, beside the fast routes",
    "how well samplers of both programs mix on the paper's matrix, beside the fast routes",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return R-hat, ESS, divergences, minutes, errors and widths by method and labelled generators."""
    cell = matrix(run, LEVEL)
    records: list[dict[str, Any]] = []
    for size in [3] if run.smoke else (*range(1, ANNOTATED), 0):
        chosen = tuple(range(size))
        mask = calibration_masks([chosen], len(cell.generators))[0]
        counts = cell.counts.reveal(jnp.asarray(mask))
        made_from = (np.asarray(counts.accepted), mask)
        run.say(f"fast routes, {size} labelled")
        estimates = run.keep(("fast", size), made_from, partial(fast, counts))["estimate"]
        by_name = dict(zip(FAST, estimates, strict=True))
        for name, method in SAMPLERS.items():
            own = GeneratorValidator(method.program, SMOKE) if run.smoke else method
            if not size and isinstance(method.program, HierarchicalModel):
                own = GeneratorValidator(method.program, UNLABELLED)
            run.say(f"{name}, {size} labelled")
            fit = run.keep((name, size), made_from, partial(sampled, own, counts))
            records += _of_sampler(name, chosen, cell, fit, by_name["impression"])
            by_name[name] = fit["estimate"]
        for name, estimate in by_name.items():
            for metric, value in errors(estimate, cell.truth, chosen).items():
                records.append(_row(name, size, metric, value))
            for i in range(size, ANNOTATED):
                value = float(estimate[i])
                records.append(_row(name, size, "estimate", value, cell.generators[i]))
        records += _released(size, [cell.generators[i] for i in chosen])
    if not run.smoke:
        records += _sets_of_five(run, cell)
    return Output(rows(PAPER, "audit-nuts", records))


def _sets_of_five(run: Run, cell: Matrix) -> list[dict[str, Any]]:
    """Return mean errors over the sets of five labelled generators, as in Fig 6.

    The flat program is not sampled again: the first sets show that its chains stay at its mode's errors.
    """
    name_of_sampler, sampler = next(iter(SAMPLERS.items()))
    sets = calibration_sets(range(ANNOTATED - 1, ANNOTATED))
    estimates: dict[str, list[Float[np.ndarray, " generator"]]] = {}
    rhat: list[float] = []
    for chosen, mask in zip(sets, calibration_masks(sets, len(cell.generators)), strict=True):
        counts = cell.counts.reveal(jnp.asarray(mask))
        made_from = (np.asarray(counts.accepted), mask)
        out = cell.generators[next(i for i in range(ANNOTATED) if i not in chosen)]
        run.say(f"all but {out} labelled")
        fast_ones = run.keep(("fast", *chosen), made_from, partial(fast, counts))["estimate"]
        for name, estimate in zip(FAST, fast_ones, strict=True):
            estimates.setdefault(name, []).append(estimate)
        fit = run.keep((name_of_sampler, *chosen), made_from, partial(sampled, sampler, counts))
        estimates.setdefault(name_of_sampler, []).append(fit["estimate"])
        rhat.append(float(fit["R-hat"]))
    records = []
    for name, each in estimates.items():
        value = float(
            np.mean(
                [errors(e, cell.truth, s)["mean error"] for e, s in zip(each, sets, strict=True)]
            )
        )
        half = spread_over_generators(np.stack(each), cell.truth, sets)
        row = _row(name, ANNOTATED - 1, "mean error, all sets", value)
        records.append(row | {"splits": len(sets), "low": value - half, "high": value + half})
    records.append(_row(name_of_sampler, ANNOTATED - 1, "largest R-hat, all sets", max(rhat)))
    return records


def _released(size: int, labelled: list[str]) -> list[dict[str, Any]]:
    """Return the released errors of the paper's regression for these labelled generators."""
    printed = expected(PAPER, "fig6")
    own = printed[(printed["task"] == LEVEL) & (printed["n"] == size)]
    own = own[own["judge"] == "+".join(labelled)].drop_duplicates("metric")
    return [
        _row(RELEASED, size, metric, float(value))
        for metric, value in zip(own["metric"], own["value"], strict=True)
    ]


def _of_sampler(
    name: str,
    chosen: tuple[int, ...],
    cell: Matrix,
    fit: dict[str, np.ndarray],
    other: Float[np.ndarray, " generator"],
) -> list[dict[str, Any]]:
    """Return the rows of one sampled fit; distances are from the fast route's estimates."""
    size = len(chosen)
    out = [i for i in range(ANNOTATED) if i not in chosen]
    low, high, estimate = fit["low"][out], fit["high"][out], fit["estimate"][out]
    inside = (low <= cell.truth[out]) & (cell.truth[out] <= high)
    values = {
        **{n: float(fit[n]) for n in ("R-hat", "ESS", "divergences", "steps", "minutes")},
        "width": float((high - low).mean()),
        "covered": float(inside.mean()),
        "mean distance from impression": float(np.abs(estimate - other[out]).mean()),
        "largest distance from impression": float(np.abs(estimate - other[out]).max()),
    }
    return [_row(name, size, metric, value) for metric, value in values.items()]


def _row(method: str, size: int, metric: str, value: float, generator: str = "") -> dict[str, Any]:
    """Return a row of the table; a generator's own row has its name under `judge`."""
    place = {"dataset": DATASET, "task": LEVELS[LEVEL], "judge": generator, "n": size}
    return place | {"method": method, "metric": metric, "value": value}
