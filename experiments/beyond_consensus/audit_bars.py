"""Audit: significance of the recommended estimator's lead or lag, on six generators.

Claim: none in the paper, which compares maxima over different numbers of generators.
Command: judgebayes reproduce beyond-consensus/audit-bars --data DIR
Runtime: about 20 seconds (the released procedure, once per set).
Expected: no difference from the logit shift, the raw mean or the released procedure is significant. This
includes the two cases where another rule has the lower error: the logit shift's largest errors with
three and four labelled generators on repaired data, and the released procedure's mean error on original
data. Rogan and Gladen's correction is worse for all six generators, and significantly so.

Calibration sets share generators, so the independent units are the six generators, not the 15 or 20
sets. A generator's error is its mean over the sets that do not label it. Differences of two methods'
errors are paired by generator, with an exact sign-flip test (64 flips, so that the smallest two-sided
p-value is 1/32) and Student's 90 % interval (five degrees of freedom). Maxima belong to sets, not
generators; the interval of their difference is a jackknife over generators, in which a set counts
only if it labels the left-out generator. The released results give the mean error of a set, which at
s = 5 is its generator's error; for smaller s, our run of the released procedure replaces them.
"""

from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from judgebayes.experiments.beyond_consensus.audit_weights import published
from judgebayes.experiments.beyond_consensus.common import (
    DATASET,
    LEVELS,
    PAPER,
    calibration_masks,
    calibration_sets,
    expected_errors,
    levels,
    matrix,
)
from judgebayes.experiments.beyond_consensus.fig6 import estimates
from judgebayes.experiments.beyond_consensus.regression import WEIGHTS
from judgebayes.experiments.core import Output, Run, experiment, rows

T90 = 2.015048
"""Student's 95 % quantile with five degrees of freedom."""
OTHERS = ("logit-shift", "rogan-gladen", "mean-prediction", "as-published")


def by_generator(
    gap: Float[np.ndarray, "set generator"], hidden: Bool[np.ndarray, "set generator"]
) -> Float[np.ndarray, " generator"]:
    """Return each generator's mean error over the sets that do not label it."""
    return np.where(hidden, gap, 0.0).sum(0) / hidden.sum(0)


def sign_flip(difference: Float[np.ndarray, " generator"]) -> float:
    """Return the two-sided p-value of all flips of the generators' differences."""
    flips = np.array(list(product((-1, 1), repeat=len(difference))))
    means = np.abs((flips * difference).mean(1))
    return float((means >= abs(difference.mean()) - 1e-15).mean())


def jackknife(values: Float[np.ndarray, " generator"], whole: float) -> tuple[float, float]:
    """Return the jackknife 90 % interval of a statistic from its values without each generator."""
    n = len(values)
    half = T90 * float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))
    return whole - half, whole + half


@experiment(
    PAPER,
    "audit-bars",
    "Audit: differences between methods, by generator",
    "the recommended estimator's errors are at most the others'",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return paired differences of mean and maximum errors with intervals and p-values."""
    records: list[dict[str, Any]] = []
    sets = calibration_sets(range(2, 6))
    if run.smoke:
        sets = [(0, 1, 2), (3, 4, 5), (0, 1, 3)]
    size = np.array([len(s) for s in sets])
    present = sorted(set(size.tolist()))
    for level in run.few([x for x in levels(run) if x in ("noRepair", "fcnhp")], 1):
        cell = matrix(run, level)
        masks = calibration_masks(sets, len(cell.generators))
        run.say(f"{LEVELS[level]}: all rules")
        estimate_by_rule = estimates(cell, masks)
        if not run.smoke:
            run.say(f"{LEVELS[level]}: as published")
            estimate_by_rule["as-published"] = published(cell, sets, WEIGHTS)
        hidden = ~masks[:, :6]
        gaps = {
            name: np.abs(estimate_by_rule[name][:, :6] - cell.truth)
            for name in ("impression", *OTHERS)
            if name in estimate_by_rule
        }
        for other in [name for name in OTHERS if name in gaps]:
            for s in (*present, None):
                rows_of = np.isin(size, present if s is None else (s,))
                base = {
                    "dataset": DATASET,
                    "task": LEVELS[level],
                    "judge": "s = 2..5" if s is None else f"s = {s}",
                    "method": f"impression - {other}",
                }
                own, theirs = (
                    np.mean(
                        [
                            by_generator(gaps[n][(size == k)], hidden[size == k])
                            for k in sorted(set(size[rows_of].tolist()))
                        ],
                        axis=0,
                    )
                    for n in ("impression", other)
                )
                difference = own - theirs
                half = T90 * difference.std(ddof=1) / np.sqrt(6)
                mean = float(difference.mean())
                records.append(
                    base
                    | {"metric": "mean error", "value": mean, "low": mean - half}
                    | {"high": mean + half, "splits": 6}
                )
                records.append(
                    base | {"metric": "p, sign flips", "value": sign_flip(difference), "splits": 6}
                )
                if s is not None and s < 5:
                    worst = np.where(hidden, gaps["impression"], 0).max(1)
                    worst = worst - np.where(hidden, gaps[other], 0).max(1)
                    without = np.array([worst[rows_of & ~hidden[:, i]].mean() for i in range(6)])
                    whole = float(worst[rows_of].mean())
                    low, high = jackknife(without, whole)
                    records.append(
                        base
                        | {"metric": "max error", "value": whole, "low": low, "high": high}
                        | {"splits": int(rows_of.sum())}
                    )
        if 5 in present:
            records += _released(level, gaps["impression"], hidden, size)
    table = rows(PAPER, "audit-bars", records)
    return Output(table)


def _released(
    level: str,
    gap: Float[np.ndarray, "set generator"],
    hidden: Bool[np.ndarray, "set generator"],
    size: np.ndarray,
) -> list[dict[str, Any]]:
    """Return the difference to the released errors at s = 5, where a set holds out one generator."""
    theirs = expected_errors(level, 5)
    last = size == 5
    place = hidden[last].argmax(1)
    difference = gap[last, place] - theirs[place]
    half = T90 * difference.std(ddof=1) / np.sqrt(6)
    mean = float(difference.mean())
    base = {"dataset": DATASET, "task": LEVELS[level], "judge": "s = 5", "splits": 6}
    base |= {"method": "impression - released numbers"}
    return [
        base | {"metric": "mean error", "value": mean, "low": mean - half, "high": mean + half},
        base | {"metric": "p, sign flips", "value": sign_flip(difference)},
    ]
