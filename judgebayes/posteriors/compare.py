"""Compare posteriors by how well they predict each item from all others (PSIS-LOO), in sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference.posterior import K_LIMIT, leave_one_out, unreliable
from judgebayes.posteriors.story import TARGETS

SMALL = 4.0
"""Differences below this are small, and their standard error is unreliable (Sivula, Magnusson,
Matamoros & Vehtari 2020)."""
FEW_ITEMS = 100
CLEAR = 2.0
"""A difference of at least this many standard errors is clear."""


@dataclass(frozen=True)
class ComparedScores:
    """The leave-one-out log scores of several posteriors on the same items, the best first."""

    target: str
    scores: Mapping[str, pd.DataFrame]
    """Of each posterior what `leave_one_out` returns."""
    n_items: int
    only_common: bool
    """Whether some posterior predicts further items, which are left out."""

    def behind(self, name: str) -> tuple[float, float]:
        """Return the best posterior's total log score minus this one's, and its standard error."""
        gap = next(iter(self.scores.values()))["elpd"] - self.scores[name]["elpd"]
        return float(gap.sum()), float(np.sqrt(len(gap)) * gap.std(ddof=1))

    def words(self) -> list[Finding]:
        """Return the comparison in sentences."""
        what = TARGETS[self.target]
        findings = []
        best, *others = self.scores
        for name in others:
            gap, error = self.behind(name)
            figures = f"{gap:.1f} in total log score (standard error {error:.1f})"
            ratio = np.exp(gap / self.n_items)
            if gap == 0:
                sentence = f"{best} and {name} predict {what} equally well."
            elif gap < SMALL:
                sentence = (
                    f"{best} and {name} predict {what} about equally well: {best} is ahead "
                    f"by {figures}, and a difference below {SMALL:.0f} is small, whatever its "
                    "standard error."
                )
            elif gap < CLEAR * error:
                sentence = (
                    f"It is unclear which is better at predicting {what}: {best} is ahead of "
                    f"{name} by {figures}, less than {CLEAR:.0f} standard errors."
                )
            else:
                sentence = (
                    f"{best} is better than {name} at predicting {what}: by {figures}. Its probability "
                    f"of the observed outcome is {ratio:.3g} times as high, in the geometric mean "
                    f"over {self.n_items} items."
                )
            findings.append(Finding("note", sentence))
        if self.n_items < FEW_ITEMS:
            findings.append(
                Finding(
                    "bad",
                    f"With only {self.n_items} items, the standard errors are too small: a difference "
                    "that seems clear is only likely.",
                )
            )
        for name, loo in self.scores.items():
            findings += _pareto(name, loo)
        return findings


def targets(data: Any) -> list[str]:
    """Return the targets that a posterior predicts, labels before votes."""
    try:
        group = data["log_likelihood"]
    except KeyError:
        return []
    return [name for name in TARGETS if name in group.data_vars]


def one_left_out(data: Any, target: str) -> list[Finding]:
    """Return findings on how well a posterior predicts each item from the others."""
    loo = leave_one_out(data, target)
    mean = float(loo["elpd"].mean())
    error = float(loo["elpd"].sem())
    sentence = (
        f"Predicting {TARGETS[target]}, from all other items: a mean log score of {mean:.3f} "
        f"(standard error {error:.3f}) on {len(loo)} items"
    )
    sentence += f", the probability {np.exp(mean):.2f}." if target == "label" else "."
    return [Finding("note", sentence), *_pareto("", loo)]


def _pareto(name: str, loo: pd.DataFrame) -> list[Finding]:
    """Return a finding on the items whose scores are unreliable, if there are any."""
    doubtful = unreliable(loo)
    if not doubtful:
        return []
    of = f" of {name}" if name else ""
    listed = ", ".join(doubtful[:5]) + (
        "" if len(doubtful) <= 5 else f" and {len(doubtful) - 5} more"
    )
    return [
        Finding(
            "bad",
            f"The score{of} on {len(doubtful)} of {len(loo)} items is unreliable (Pareto k up "
            f"to {loo['k'].max():.2f}, above {K_LIMIT}: {listed}): without these items, the "
            "posterior would be very different. Compare on held-out labels instead (judgebayes "
            "calibrate).",
        )
    ]


def compare(files: Mapping[str, Any], target: str | None = None) -> list[ComparedScores]:
    """Return the comparison of posteriors for every target that all of them have.

    Parameters
    ----------
    files
        Two or more posteriors by name: files of `judgebayes posterior`, or `to_arviz` of fits of votes
        and labels.
    target
        One of `TARGETS`; by default all that the posteriors share.

    Raises
    ------
    JudgeBayesError
        If the posteriors are of different data, or share no target or no item.
    """
    for (one, first), (other, second) in combinations(files.items(), 2):
        _check_same_data(one, first, other, second)
    if none := [name for name, data in files.items() if not targets(data)]:
        raise JudgeBayesError(
            f"{none[0]} has no predictions to compare; use a file that `judgebayes posterior` wrote."
        )
    shared = [t for t in TARGETS if all(t in targets(data) for data in files.values())]
    chosen = shared if target is None else [t for t in shared if t == target]
    if not chosen:
        listed = "; ".join(f"{name} {' and '.join(targets(data))}" for name, data in files.items())
        raise JudgeBayesError(
            f"These posteriors do not all predict {target or 'the same'}, so their scores "
            f"cannot be compared: {listed}."
        )
    return [_compare(files, name) for name in chosen]


def _check_same_data(one: str, first: Any, other: str, second: Any) -> None:
    for name, data in ((one, first), (other, second)):
        if not all(isinstance(data.attrs.get(key), str) for key in ("data", "data_checksum")):
            raise JudgeBayesError(
                f"{name} does not record its data; use a file that "
                "`judgebayes posterior` wrote, or to_arviz() of a fit of votes and labels."
            )
    if first.attrs["data_checksum"] != second.attrs["data_checksum"]:
        sizes = " and ".join(f"{d.attrs['data']} ({n})" for n, d in ((one, first), (other, second)))
        raise JudgeBayesError(
            f"{one} and {other} are posteriors of different data, so their scores cannot be compared: "
            f"{sizes}. Sample both models on the same votes and labels."
        )


def _compare(files: Mapping[str, Any], target: str) -> ComparedScores:
    loo_of = {name: leave_one_out(data, target) for name, data in files.items()}
    common = set.intersection(*(set(loo.index) for loo in loo_of.values()))
    largest = max(len(loo) for loo in loo_of.values())
    items = [item for item in next(iter(loo_of.values())).index if item in common]
    if not items:
        raise JudgeBayesError(
            f"{' and '.join(files)} predict no item in common, so their scores cannot be compared. "
            "Sample the models on the same votes and labels."
        )
    restricted = {name: loo.loc[items] for name, loo in loo_of.items()}
    ranked = sorted(restricted.items(), key=lambda each: -float(each[1]["elpd"].sum()))
    return ComparedScores(target, dict(ranked), len(items), largest > len(items))
