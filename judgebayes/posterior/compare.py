"""Which of two posteriors foretells an item better from all the others: PSIS-LOO, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference.posterior import K_LIMIT, LeaveOneOut, leave_one_out
from judgebayes.posterior.story import TARGETS

__all__ = ["Compared", "compare", "one_left_out", "targets"]

SMALL = 4.0
"""Differences below it are small, and their standard error is not to be relied on (Sivula, Magnusson,
Matamoros & Vehtari 2020)."""
FEW_ITEMS = 100
CLEAR = 2.0
"""Standard errors from zero at which a difference is clear."""


@dataclass(frozen=True)
class Compared:
    """The leave-one-out log scores of several posteriors on the same items, the best first."""

    target: str
    names: tuple[str, ...]
    each: tuple[LeaveOneOut, ...]
    n_items: int
    only_common: bool
    """Whether some posterior foretells further items, which are left out."""

    def total(self, place: int) -> float:
        """Return the sum of a posterior's log scores."""
        return float(self.each[place].elpd.sum())

    def behind(self, place: int) -> tuple[float, float]:
        """Return by how much a posterior is behind the best, and the standard error of that."""
        gap = self.each[0].elpd - self.each[place].elpd
        return float(gap.sum()), float(np.sqrt(len(gap)) * gap.std(ddof=1))

    def words(self) -> list[Finding]:
        """Return what the comparison says."""
        what = TARGETS[self.target]
        found = []
        best = self.names[0]
        for place in range(1, len(self.names)):
            name = self.names[place]
            gap, error = self.behind(place)
            figures = f"{gap:.1f} in total log score (standard error {error:.1f})"
            ratio = np.exp(gap / self.n_items)
            if gap == 0:
                sentence = f"{best} and {name} are alike at foretelling {what}."
            elif gap < SMALL:
                sentence = (
                    f"{best} and {name} are about equally good at foretelling {what}: {best} is ahead "
                    f"by {figures}, and a difference below {SMALL:.0f} is small whatever its error."
                )
            elif gap < CLEAR * error:
                sentence = (
                    f"It is not settled which is better at foretelling {what}: {best} is ahead of "
                    f"{name} by {figures}, less than {CLEAR:.0f} standard errors."
                )
            else:
                sentence = (
                    f"{best} is better than {name} at foretelling {what}: by {figures}. It gives what "
                    f"came {ratio:.3g} times the probability, in the geometric mean over "
                    f"{self.n_items} items."
                )
            found.append(Finding("note", sentence))
        if self.n_items < FEW_ITEMS:
            found.append(
                Finding(
                    "bad",
                    f"With {self.n_items} items the standard errors are too small: take a clear "
                    "difference for a likely one.",
                )
            )
        for name, own in zip(self.names, self.each, strict=True):
            found += _pareto(name, own)
        return found


def targets(data: Any) -> list[str]:
    """Return what a posterior foretells of an item, labels before votes."""
    group = data["log_likelihood"]
    return [name for name in TARGETS if name in group.data_vars]


def one_left_out(data: Any, target: str) -> list[Finding]:
    """Return how well a posterior foretells every item from the others, in words."""
    own = leave_one_out(data, target)
    mean = float(own.elpd.mean())
    error = float(own.elpd.std(ddof=1) / np.sqrt(len(own.elpd))) if len(own.elpd) > 1 else np.nan
    sentence = (
        f"Foretelling {TARGETS[target]}, from all other items: a mean log score of {mean:.3f} "
        f"(standard error {error:.3f}) on {len(own.elpd)} items"
    )
    sentence += f", the probability {np.exp(mean):.2f}." if target == "label" else "."
    return [Finding("note", sentence), *_pareto("", own)]


def _pareto(name: str, own: LeaveOneOut) -> list[Finding]:
    """Return which items' scores cannot be trusted, if there are any."""
    bad = own.unreliable
    if not bad:
        return []
    of = f" of {name}" if name else ""
    listed = ", ".join(bad[:5]) + ("" if len(bad) <= 5 else f" and {len(bad) - 5} more")
    return [
        Finding(
            "bad",
            f"The score{of} on {len(bad)} of {len(own.items)} items cannot be trusted (Pareto k up "
            f"to {np.nanmax(own.k):.2f}, above {K_LIMIT}: {listed}): the posterior without them would "
            "be another one. Compare on held-out labels instead (judgebayes calibrate).",
        )
    ]


def compare(files: Mapping[str, Any], target: str | None = None) -> list[Compared]:
    """Return the comparison of posteriors for every target that all of them have.

    Parameters
    ----------
    files
        Two or more posteriors by name: what `judgebayes posterior` wrote, or `to_arviz` of fits of
        votes and labels.
    target
        One of `TARGETS`; all that they share by default.

    Raises
    ------
    JudgeBayesError
        If they are not of the same data, or foretell nothing in common.
    """
    for (one, first), (other, second) in combinations(files.items(), 2):
        _refuse_other_data(one, first, other, second)
    shared = [t for t in TARGETS if all(t in targets(data) for data in files.values())]
    wanted = shared if target is None else [t for t in shared if t == target]
    if not wanted:
        told = "; ".join(f"{name} {' and '.join(targets(data))}" for name, data in files.items())
        raise JudgeBayesError(
            f"These posteriors do not all foretell {target or 'the same'}, so that their scores "
            f"cannot be compared: {told}."
        )
    return [_compare(files, name) for name in wanted]


def _refuse_other_data(one: str, first: Any, other: str, second: Any) -> None:
    for name, data in ((one, first), (other, second)):
        if "data_checksum" not in data.attrs:
            raise JudgeBayesError(
                f"{name} does not say what data it is of; right would be a file that "
                "`judgebayes posterior` wrote, or to_arviz() of a fit of votes and labels."
            )
    if first.attrs["data_checksum"] != second.attrs["data_checksum"]:
        sizes = " and ".join(f"{d.attrs['data']} ({n})" for n, d in ((one, first), (other, second)))
        raise JudgeBayesError(
            f"{one} and {other} are posteriors of different data, whose scores cannot be compared: "
            f"{sizes}; sample both models on the same votes and labels."
        )


def _compare(files: Mapping[str, Any], target: str) -> Compared:
    found = {name: leave_one_out(data, target) for name, data in files.items()}
    common = set.intersection(*(set(own.items) for own in found.values()))
    largest = max(len(own.items) for own in found.values())
    items = [item for item in next(iter(found.values())).items if item in common]
    same = {name: _on(own, items) for name, own in found.items()}
    order: Sequence[str] = sorted(same, key=lambda name: -float(same[name].elpd.sum()))
    return Compared(
        target,
        tuple(order),
        tuple(same[name] for name in order),
        len(items),
        largest > len(items),
    )


def _on(own: LeaveOneOut, items: Sequence[str]) -> LeaveOneOut:
    place = {name: i for i, name in enumerate(own.items)}
    where = np.array([place[name] for name in items])
    elpd: Float[np.ndarray, " item"] = own.elpd[where]
    return LeaveOneOut(tuple(items), elpd, own.k[where], own.p)
