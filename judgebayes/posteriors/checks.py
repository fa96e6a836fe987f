"""Predictive checks: statistics of the data against those of replicated data, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference.sampled import STATISTIC, STATISTICS
from judgebayes.sentence import percent

MISFIT_LEVEL = 0.01
"""A statistic in the outer 1 % of its replications is reported as a misfit."""


@dataclass(frozen=True)
class PredictiveCheck:
    """A statistic of the data and its replications."""

    name: str
    observed: float
    replicated: Float[np.ndarray, " draw"]
    """Replications under the posterior."""
    before: Float[np.ndarray, " draw"]
    """Replications under the prior."""

    @property
    def p(self) -> float:
        """P(replicated > observed), with ties counted half (Gelman, Meng & Stern 1996)."""
        return _above(self.observed, self.replicated)

    @property
    def prior_p(self) -> float:
        """P(replicated > observed) under the prior."""
        return _above(self.observed, self.before)

    @property
    def unlike(self) -> bool:
        """Whether the observed value lies in the outer 1 % of the replicated ones."""
        return min(self.p, 1 - self.p) < MISFIT_LEVEL / 2

    @property
    def distance(self) -> float:
        """Distance of the observed value from the replications' mean, in standard deviations."""
        spread = float(self.replicated.std())
        gap = abs(self.observed - float(self.replicated.mean()))
        return gap / spread if spread > 0 else float("inf") if gap > 1e-12 else 0.0

    def sentence(self) -> str:
        """Return the check as a sentence."""
        low, high = np.quantile(self.replicated, (0.05, 0.95))
        ahead = self.p < 1 / 2
        tail = self.p if ahead else 1 - self.p
        n = len(self.replicated)
        how = f"{percent(tail, 1)} of the {n} are" if tail * n >= 1 else f"none of {n} is"
        return (
            f"{self.name} {self.observed:.3f}, replicated {self.replicated.mean():.3f} "
            f"({low:.3f} to {high:.3f}; {how} as {'high' if ahead else 'low'})"
        )


def check(data: Any) -> list[PredictiveCheck]:
    """Return the checks in a posterior file, in the order of its statistics.

    Parameters
    ----------
    data
        The result of `judgebayes.posteriors.models`, or a file of `judgebayes posterior`.

    Raises
    ------
    JudgeBayesError
        If it contains no statistics; the result of `to_arviz` of a fit does not.
    """
    if STATISTICS not in data["observed_data"].data_vars:
        raise JudgeBayesError(
            "This posterior contains no statistics of the data; use a file that `judgebayes "
            "posterior` wrote."
        )
    observed = data["observed_data"][STATISTICS]
    names = [str(name) for name in observed.coords[STATISTIC].to_numpy()]
    values = observed.to_numpy()
    after, before = (
        data[group][STATISTICS].to_numpy().reshape(-1, len(names))
        for group in ("posterior_predictive", "prior_predictive")
    )
    checks = [
        PredictiveCheck(name, float(values[i]), after[:, i], before[:, i])
        for i, name in enumerate(names)
    ]
    # Leave out statistics that are undefined for these data, for example without differing votes.
    return [
        each
        for each in checks
        if np.isfinite(each.observed)
        and np.isfinite(each.replicated).all()
        and np.isfinite(each.before).all()
    ]


def in_words(checks: Sequence[PredictiveCheck], advice: str, shown: int = 3) -> list[Finding]:
    """Return two findings from all checks: on the posterior, then on the prior."""
    misfits = sorted((c for c in checks if c.unlike), key=lambda c: -c.distance)
    total = f"{len(checks)} statistics"
    if misfits:
        worst = "; ".join(c.sentence() for c in misfits[:shown])
        others = "" if len(misfits) <= shown else f"; and {len(misfits) - shown} more"
        after = Finding(
            "bad",
            f"{len(misfits)} of {total} of the data {'differs' if len(misfits) == 1 else 'differ'} from "
            f"what the fitted model predicts (by chance alone: about "
            f"{MISFIT_LEVEL * len(checks):.1g}): {worst}{others}. Perhaps {advice}",
        )
    else:
        after = Finding(
            "good",
            f"Data simulated from the fitted model look like the data: all {total} lie within the "
            f"central {percent(1 - MISFIT_LEVEL)} of their replications.",
        )
    # A statistic that the fitted model misses is not reported a second time for the prior.
    unexpected = [
        c for c in checks if min(c.prior_p, 1 - c.prior_p) < MISFIT_LEVEL / 2 and not c.unlike
    ]
    if unexpected:
        names = "; ".join(
            f"{c.name} {c.observed:.3f}, the prior "
            f"{np.quantile(c.before, 0.05):.3f} to {np.quantile(c.before, 0.95):.3f}"
            for c in unexpected[:shown]
        )
        before = Finding(
            "note",
            f"The priors make {len(unexpected)} of {total} improbable ({names}): "
            "with few labels, the priors bias the results.",
        )
    else:
        where = "all statistics that the fitted model reproduces" if misfits else f"all {total}"
        before = Finding("good", f"The observed values are plausible under the priors ({where}).")
    return [after, before]


def _above(observed: float, replicated: Float[np.ndarray, " draw"]) -> float:
    more, same = (replicated > observed).mean(), np.isclose(replicated, observed).mean()
    more -= (np.isclose(replicated, observed) & (replicated > observed)).mean()
    return float(more + same / 2)
