"""P4 Fig 6 and D.1: precision of unlabelled generators from s labelled ones, for all methods.

Claim: the released procedure's errors are the released ones, by s; margin 0.4 points. At s = 5 the
regression's error (1.4 %) is lower than the best ensemble's (2.8 %, a veto of four judges), by the
released errors of the six generators that are left out in turn; margin 0.7 points, half the gain.
Command: judgebayes reproduce beyond-consensus/fig6 --data DIR
Runtime: about 9 minutes, most of it SciPy's and `Panel`'s; --smoke a minute.
Expected: the released procedure's errors are near the released ones in nearly every cell. On six
generators its lead over the ensemble is not settled. Its loss is above the true minimum of the same loss
at every calibration set with labels, and at that minimum the error is several times as large. MaxAE is a
maximum over 6 - s generators and falls with s for any method, so mean errors are reported too, for all
methods on the same held-out generators, with 90 % intervals over generators, which are the only
independent units.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import (
    DATASET,
    LEVELS,
    MARGIN,
    PAPER,
    Matrix,
    calibration_masks,
    calibration_sets,
    equal,
    errors,
    expected_errors,
    item_votes,
    levels,
    matrix,
    spread_over_generators,
)
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_validator import GeneratorValidator
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.experiments.beyond_consensus.regression import as_published, starts, targets
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.experiments.beyond_consensus.voting import (
    choose_threshold,
    ensemble_precision,
    ensembles,
)
from judgebayes.experiments.claims import evidence_of_units
from judgebayes.experiments.core import Output, Run, expected, experiment, graded, rows
from judgebayes.experiments.plots import curves
from judgebayes.generators import Panel, PrecisionCounts, mean_prediction, rogan_gladen
from judgebayes.inference import MAP

VETO = 4
"""Votes of the paper's best ensemble, chosen by the paper on the generators that it then predicts."""


@in_float64
def best_judge(counts: PrecisionCounts) -> Float[Array, " generator"]:
    """Return the shares of the judge with the least maximum error on the labelled generators.

    A judge that was not run on a labelled generator is not considered; without labels, NaN.
    """
    error = jnp.abs(counts.matrix - counts.labelled_precision[:, None])
    max_error = jnp.where(counts.labelled[:, None], error, 0.0).max(0)
    max_error = jnp.where(jnp.isnan(max_error), jnp.inf, max_error)
    chosen = counts.matrix[:, jnp.argmin(max_error)]
    return jnp.where(counts.labelled.any() & jnp.isfinite(max_error.min()), chosen, jnp.nan)


RULES = {
    "logit-shift": logit_shift,
    "mean-prediction": mean_prediction,
    "best-judge": best_judge,
    "rogan-gladen": rogan_gladen,
}
METRICS = ("max error", "mean error")
FLAT = "flat, MAP"
CHOSEN_VETO = "veto, threshold chosen on the labelled"
FAR = ("true-minimum", "rogan-gladen", FLAT)
"""Methods that are not drawn, because their errors are several times as large."""
INTERVALS = {"impression": ("low", "high"), "panel": ("panel low", "panel high")}
"""The names of the interval ends of each method that has intervals."""
UNDEFINED = {
    "rogan-gladen": "where no generator is labelled: no judge's TPR and TNR are known",
    "best-judge": "where no generator is labelled: no judge's error is known",
    CHOSEN_VETO: "where no generator is labelled: no threshold can be chosen",
}


@in_float64
def estimates(
    cell: Matrix, masks: Bool[np.ndarray, "set generator"]
) -> dict[str, Float[np.ndarray, "set ..."]]:
    """Return every fast method's estimates, and the recommended one's intervals."""
    estimate_by_rule = _all_sets(cell.counts, jnp.asarray(masks))
    return {name: np.asarray(x) for name, x in estimate_by_rule.items()}


@jax.jit
def _all_sets(
    counts: PrecisionCounts, masks: Bool[jax.Array, "set generator"]
) -> dict[str, jax.Array]:
    def one(mask: jax.Array) -> dict[str, jax.Array]:
        partial_counts = counts.reveal(mask)
        fit = Impression().fit(partial_counts)
        low, high = fit.interval(0.9)
        estimate_by_rule = {name: rule(partial_counts) for name, rule in RULES.items()}
        return {**estimate_by_rule, "impression": fit.estimate(), "low": low, "high": high}

    return jax.vmap(one)(masks)


@in_float64
def panel_estimates(
    cell: Matrix, masks: Bool[np.ndarray, "set generator"]
) -> dict[str, Float[np.ndarray, "set generator"]]:
    """Return the estimates and intervals of `Panel`, set by set: it takes a second for each."""
    columns = zip(
        ("panel", *INTERVALS["panel"]), _panels(cell.counts, jnp.asarray(masks)), strict=True
    )
    return {name: np.asarray(x) for name, x in columns}


@jax.jit
def _panels(
    counts: PrecisionCounts, masks: Bool[jax.Array, "set generator"]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    def one(mask: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        fit = Panel().fit(counts.reveal(mask))
        return fit.estimate(), *fit.interval(0.9)

    return jax.lax.map(one, masks)


@in_float64
def flat_modes(
    cell: Matrix, masks: Bool[np.ndarray, "set generator"]
) -> Float[np.ndarray, "set generator"]:
    """Return the modes of the flat program; `audit-nuts` has draws, and the hierarchical program."""
    return np.asarray(_flat_modes(cell.counts, jnp.asarray(masks)))


@jax.jit
def _flat_modes(counts: PrecisionCounts, masks: Bool[jax.Array, "set generator"]) -> jax.Array:
    flat = GeneratorValidator(FlatModel(), MAP())
    return jax.lax.map(lambda mask: flat.fit(counts.reveal(mask)).estimate(), masks)


def chosen_veto(
    by_threshold: Float[np.ndarray, "judge annotated"],
    precision: Float[np.ndarray, " annotated"],
    sets: list[tuple[int, ...]],
) -> Float[np.ndarray, "set annotated"]:
    """Return the shares by the veto whose threshold has the least largest error on each set.

    NaN for the empty set.
    """
    shares = np.full((len(sets), len(precision)), np.nan)
    for row, mask in zip(shares, calibration_masks(sets, len(precision)), strict=True):
        if mask.any():
            choice = choose_threshold({"veto": by_threshold}, precision, mask)
            row[:] = by_threshold[choice.threshold - 1]
    return shares


@experiment(
    PAPER,
    "fig6",
    "Fig 6: error against the number of labelled generators",
    "the regression's error falls with s, to half of the best ensemble's at s = 5",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return errors by s, method and repair level; loss gaps; coverage by generator."""
    printed = (
        expected(PAPER, "fig6").set_index(["task", "n", "judge", "metric"])["value"].sort_index()
    )
    sets = calibration_sets(range(6))
    sets = [s for s in sets if not run.smoke or s in ((0,), (0, 1, 2), (0, 1, 2, 3, 4))]
    sizes = np.array([len(s) for s in sets])
    records: list[dict[str, Any]] = []
    notes = []
    for level in levels(run):
        cell = matrix(run, level)
        masks = calibration_masks(sets, len(cell.generators))
        run.say(f"{LEVELS[level]}: impression and rules")
        estimate_by_rule = estimates(cell, masks)
        run.say(f"{LEVELS[level]}: panel")
        estimate_by_rule |= panel_estimates(cell, masks)
        estimate_by_rule[FLAT] = flat_modes(cell, masks)
        if level in levels(run, items=True):
            of_level = chosen_veto(_by_threshold(run, level), cell.truth, sets)
            estimate_by_rule[CHOSEN_VETO] = of_level
        least = _minimum(cell, masks)
        estimate_by_rule["true-minimum"] = least[0]
        fits = []
        streams = {size: np.random.RandomState(42) for size in range(6)}
        for chosen, mask in zip(sets, masks, strict=True):
            run.say(f"{LEVELS[level]}: as published, {len(chosen)} labelled")
            fits.append(
                as_published(
                    targets(cell.counts.reveal(mask)),
                    restarts=1 if run.smoke else 10,
                    seed=streams[len(chosen)],
                )
            )
        estimate_by_rule["as-published"] = np.stack([np.asarray(f.precision) for f in fits])
        gaps = np.array([float(f.loss) for f in fits]) - least[1]
        for chosen, gap in zip(sets, gaps, strict=True):
            records.append(
                {
                    "dataset": DATASET,
                    "task": LEVELS[level],
                    "judge": "+".join(cell.generators[i] for i in chosen),
                    "n": len(chosen),
                    "method": "as-published",
                    "metric": "loss above the minimum",
                    "value": gap,
                }
            )
        for size in sorted(set(sizes)):
            rows_of = np.flatnonzero(sizes == size)
            own = (
                "as-published",
                "impression",
                "panel",
                "true-minimum",
                FLAT,
                *RULES,
                CHOSEN_VETO,
            )
            for name in (name for name in own if name in estimate_by_rule):
                if size == 0 and name in UNDEFINED:
                    records += [
                        {
                            "dataset": DATASET,
                            "task": LEVELS[level],
                            "n": 0,
                            "method": name,
                            "metric": metric,
                            "value": np.nan,
                            "splits": len(rows_of),
                        }
                        for metric in METRICS
                    ]
                    continue
                each = [errors(estimate_by_rule[name][r], cell.truth, sets[r]) for r in rows_of]
                half = spread_over_generators(
                    estimate_by_rule[name][rows_of], cell.truth, [sets[r] for r in rows_of]
                )
                for metric in METRICS:
                    value = float(np.mean([e[metric] for e in each]))
                    row: dict[str, Any] = {
                        "dataset": DATASET,
                        "task": LEVELS[level],
                        "n": int(size),
                        "method": name,
                        "metric": metric,
                        "value": value,
                        "splits": len(each),
                    }
                    if metric == "mean error":
                        row |= {"low": value - half, "high": value + half}
                    if name == "as-published" and not run.smoke:
                        theirs = float(np.mean(printed[level, size].xs(metric, level="metric")))
                        row |= equal(value, theirs, "released procedure")
                    records.append(row)
        for name in INTERVALS:
            records += _coverage(cell, level, sets, name, estimate_by_rule)
        labelled = gaps[sizes > 0]
        notes.append(
            f"{LEVELS[level]}: the released procedure stops {labelled.min():.4f} to "
            f"{labelled.max():.4f} above the minimum of its own loss (losses near 0.18)."
        )
    run.say("the best ensemble")
    records += leads(
        {
            LEVELS[level]: (_veto(run, level), expected_errors(level, 5))
            for level in levels(run, items=True)
        }
    )
    table = rows(PAPER, "fig6", records)
    figures = {}
    for metric in METRICS:
        figure_rows = table[(table["metric"] == metric) & (table["n"] > 0)]
        far = 100 * figure_rows.loc[figure_rows["method"].isin(FAR[1:]), "value"].astype(float)
        figure_rows = figure_rows[~figure_rows["method"].isin(FAR)]
        figures[metric.replace(" ", "-")] = curves(
            figure_rows.assign(
                **{c: 100 * figure_rows[c].astype(float) for c in ("value", "low", "high")}
            ),
            "n",
            panel="task",
            metric=metric,
            xlabel="labelled generators, s",
            ylabel=f"{metric}, points",
            title=f"Held-out generators: {metric}\n"
            f"({' and '.join(FAR[1:])} are not drawn: {far.min():.0f} to {far.max():.0f} points;\n"
            f"undefined at s = 0: {', '.join(UNDEFINED)})",
            columns=2,
        )
    return Output(table, figures, notes, UNDEFINED)


def _veto(run: Run, level: str) -> Float[np.ndarray, " annotated"]:
    """Return the error of the paper's best ensemble on each annotated generator."""
    return np.abs(_by_threshold(run, level)[VETO - 1] - item_votes(run, level).truth)


def _by_threshold(run: Run, level: str) -> Float[np.ndarray, "judge annotated"]:
    """Return the share of each annotated generator's items that no veto of n judges rejects, by n."""
    cell = item_votes(run, level)
    return ensemble_precision(ensembles(cell.votes, "veto"), cell.generator, len(cell.generators))


def leads(
    pairs: dict[str, tuple[Float[np.ndarray, " annotated"], Float[np.ndarray, " annotated"]]],
) -> list[dict[str, Any]]:
    """Return the claim that the regression's error is below the ensemble's, by repair level.

    The pairs are the errors of the ensemble and of the regression on each generator, which are the
    units: the regression's is that of the calibration set without this generator. The levels share
    the generators, so they are graded together.
    """
    cells = [
        (
            {
                "dataset": DATASET,
                "task": task,
                "judge": "",
                "n": 5,
                "method": f"veto of {VETO} minus as-published",
                "metric": "gain in error",
                "splits": len(ensemble),
            },
            evidence_of_units(ensemble - regression),
        )
        for task, (ensemble, regression) in pairs.items()
    ]
    return graded(cells, kind="paper", source="own", margin=MARGIN["gain in error"])


@in_float64
def _minimum(
    cell: Matrix, masks: Bool[np.ndarray, "set generator"]
) -> tuple[Float[np.ndarray, "set generator"], Float[np.ndarray, " set"]]:
    """Return the precisions and the loss at the lowest proven minimum of each calibration set."""
    aims = jax.vmap(lambda mask: targets(cell.counts.reveal(mask)))(jnp.asarray(masks))
    fit = true_minimum(aims, starts(np.asarray(cell.counts.matrix), 25))
    value = np.where(np.asarray(fit.status) == 0, np.asarray(fit.loss), np.inf)
    best = value.argmin(1)
    at = np.arange(len(masks))
    return np.asarray(fit.precision)[at, best], value[at, best]


def _coverage(
    cell: Matrix,
    level: str,
    sets: list[tuple[int, ...]],
    method: str,
    estimate_by_rule: dict[str, np.ndarray],
) -> list[dict[str, Any]]:
    """Return how often each generator's interval contains its precision, and the mean width."""
    lows, highs = (estimate_by_rule[end] for end in INTERVALS[method])
    records = []
    for place, name in enumerate(cell.generators[: len(cell.truth)]):
        held_out = [r for r, s in enumerate(sets) if place not in s and s]
        if not held_out:  # in a smoke run
            continue
        low, high = lows[held_out, place], highs[held_out, place]
        inside = (low <= cell.truth[place]) & (cell.truth[place] <= high)
        for metric, value in (("coverage", inside.mean()), ("width", (high - low).mean())):
            records.append(
                {
                    "dataset": DATASET,
                    "task": LEVELS[level],
                    "judge": name,
                    "method": method,
                    "metric": metric,
                    "value": float(value),
                    "splits": len(held_out),
                }
            )
    for size in sorted({len(s) for s in sets}):
        spans = [
            (highs - lows)[r, i]
            for r, s in enumerate(sets)
            if len(s) == size
            for i in range(len(cell.truth))
            if i not in s
        ]
        records.append(
            {
                "dataset": DATASET,
                "task": LEVELS[level],
                "n": size,
                "method": method,
                "metric": "width",
                "value": float(np.mean(spans)),
            }
        )
    return records
