"""Do data that the model draws anew look like the data? Predictive checks, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference.sampled import STATISTIC, STATISTICS

__all__ = ["Check", "check", "in_words"]

UNLIKE = 0.01
"""A statistic in the outer 1 % of its replications is not what the model expects."""


@dataclass(frozen=True)
class Check:
    """A statistic of the data beside its replications."""

    name: str
    observed: float
    replicated: Float[np.ndarray, " draw"]
    """Under the posterior."""
    before: Float[np.ndarray, " draw"]
    """Under the prior."""

    @property
    def p(self) -> float:
        """P(replicated > observed), equal ones counting half (Gelman, Meng & Stern 1996)."""
        return _above(self.observed, self.replicated)

    @property
    def prior_p(self) -> float:
        """The same under the prior."""
        return _above(self.observed, self.before)

    @property
    def unlike(self) -> bool:
        """Whether the observed value lies in the outer 1 % of the replicated ones."""
        return min(self.p, 1 - self.p) < UNLIKE / 2

    @property
    def distance(self) -> float:
        """How many standard deviations of the replications the observed value is from their mean."""
        spread = float(self.replicated.std())
        gap = abs(self.observed - float(self.replicated.mean()))
        return gap / spread if spread > 0 else float("inf") if gap > 1e-12 else 0.0

    def sentence(self) -> str:
        """Return what the check says."""
        low, high = np.quantile(self.replicated, (0.05, 0.95))
        ahead = self.p < 1 / 2
        tail = self.p if ahead else 1 - self.p
        n = len(self.replicated)
        how = f"{tail:.1%}" if tail * n >= 1 else f"none of {n}"
        return (
            f"{self.name} {self.observed:.3f}, replicated {self.replicated.mean():.3f} "
            f"({low:.3f} to {high:.3f}; {how} as {'high' if ahead else 'low'})"
        )


def check(data: Any) -> list[Check]:
    """Return the checks that a posterior file holds, in the order of its statistics.

    Parameters
    ----------
    data
        What `judgebayes.posterior.sample` returned, or `judgebayes posterior` wrote.

    Raises
    ------
    JudgeBayesError
        If it holds no statistics, as `to_arviz` of a fit does not.
    """
    if STATISTICS not in data["observed_data"].data_vars:
        raise JudgeBayesError(
            "This posterior holds no statistics of the data; right would be a file that "
            "`judgebayes posterior` wrote."
        )
    observed = data["observed_data"][STATISTICS]
    names = [str(name) for name in observed.coords[STATISTIC].to_numpy()]
    values = observed.to_numpy()
    after, before = (
        data[group][STATISTICS].to_numpy().reshape(-1, len(names))
        for group in ("posterior_predictive", "prior_predictive")
    )
    found = [
        Check(name, float(values[i]), after[:, i], before[:, i]) for i, name in enumerate(names)
    ]
    # A statistic that needs what the data do not have: votes that differ, say.
    return [
        each
        for each in found
        if np.isfinite(each.observed)
        and np.isfinite(each.replicated).all()
        and np.isfinite(each.before).all()
    ]


def in_words(checks: Sequence[Check], advice: str, shown: int = 3) -> list[Finding]:
    """Return what the checks say together: of the posterior, then of the prior."""
    odd = sorted((c for c in checks if c.unlike), key=lambda c: -c.distance)
    total = f"{len(checks)} statistics"
    if odd:
        worst = "; ".join(c.sentence() for c in odd[:shown])
        more = "" if len(odd) <= shown else f"; and {len(odd) - shown} more"
        after = Finding(
            "bad",
            f"{len(odd)} of {total} of the data {'is' if len(odd) == 1 else 'are'} not what the "
            f"fitted model expects (chance alone: about {UNLIKE * len(checks):.1g}): {worst}{more}. "
            f"Perhaps {advice}",
        )
    else:
        after = Finding(
            "good",
            f"Data drawn anew from the fitted model look like the data: all {total} lie within the "
            f"inner {1 - UNLIKE:.0%} of their replications.",
        )
    # What the fitted model misses it could not expect before, either.
    surprising = [c for c in checks if min(c.prior_p, 1 - c.prior_p) < UNLIKE / 2 and not c.unlike]
    if surprising:
        names = "; ".join(
            f"{c.name} {c.observed:.3f}, the prior "
            f"{np.quantile(c.before, 0.05):.3f} to {np.quantile(c.before, 0.95):.3f}"
            for c in surprising[:shown]
        )
        before = Finding(
            "note",
            f"Before any data, the priors hardly expect {len(surprising)} of {total} ({names}): "
            "with few labels they would pull the answers their way.",
        )
    else:
        where = "all that the fitted model reproduces" if odd else f"all {total}"
        before = Finding("good", f"The priors allow what was observed, in {where}.")
    return [after, before]


def _above(observed: float, replicated: Float[np.ndarray, " draw"]) -> float:
    more, same = (replicated > observed).mean(), np.isclose(replicated, observed).mean()
    more -= (np.isclose(replicated, observed) & (replicated > observed)).mean()
    return float(more + same / 2)
