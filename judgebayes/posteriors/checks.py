"""Predictive checks: statistics of the data against those of replicated data, in sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference.sampled import STATISTIC, STATISTICS
from judgebayes.sentence import percent

MISFIT_LEVEL = 0.01
"""A statistic in the outer 1 % of its replications is reported as a misfit."""


def check(data: Any) -> pd.DataFrame:
    """Return the checks in a posterior file, in the order of its statistics, as `replications` does.

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
    after, before = (
        data[group][STATISTICS].to_numpy().reshape(-1, len(names))
        for group in ("posterior_predictive", "prior_predictive")
    )
    return replications(names, observed.to_numpy(), after, before)


def replications(
    names: Sequence[str],
    observed: Float[np.ndarray, " statistic"],
    after: Float[np.ndarray, "draw statistic"],
    before: Float[np.ndarray, "draw statistic"],
) -> pd.DataFrame:
    """Return a row per statistic of the data: its value, and its replications.

    Columns: `statistic`; `observed`; `replicated`, the mean under the posterior (`after`), `low` and
    `high`, the central 90 %, and `p`, P(replicated > observed) with ties counted half (Gelman, Meng &
    Stern 1996); `prior_low`, `prior_high` and `prior_p`, the same under the prior (`before`);
    `distance`, that of the observed value from the mean, in standard deviations; and their `number`.
    Statistics that are undefined for such data, for example without differing votes, are left out.
    """
    gap, spread = np.abs(observed - after.mean(0)), after.std(0)
    distance = np.divide(gap, spread, out=np.full_like(gap, np.inf), where=spread > 0)
    columns = {"statistic": names, "observed": observed, "replicated": after.mean(0)}
    for prefix, drawn in (("", after), ("prior_", before)):
        low, high = np.quantile(drawn, (0.05, 0.95), axis=0)
        same = np.isclose(drawn, observed)
        above = ((drawn > observed) & ~same).mean(0) + same.mean(0) / 2
        columns |= {f"{prefix}low": low, f"{prefix}high": high, f"{prefix}p": above}
    columns |= {"distance": np.where(gap > 1e-12, distance, 0.0), "number": len(after)}
    finite = np.isfinite(observed) & np.isfinite(after).all(0) & np.isfinite(before).all(0)
    return pd.DataFrame(columns)[finite].reset_index(drop=True)


def in_words(checks: pd.DataFrame, advice: str, shown: int = 3) -> list[Finding]:
    """Return two findings from all checks: on the posterior, then on the prior."""
    unlike, prior_unlike = (
        np.minimum(checks[p], 1 - checks[p]) < MISFIT_LEVEL / 2 for p in ("p", "prior_p")
    )
    misfits = checks[unlike].sort_values("distance", ascending=False, kind="stable")
    total = f"{len(checks)} statistics"
    if len(misfits):
        worst = "; ".join(map(_sentence, misfits.head(shown).itertuples()))
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
    unexpected = checks[prior_unlike & ~unlike]
    if len(unexpected):
        names = "; ".join(
            f"{row.statistic} {row.observed:.3f}, the prior {row.prior_low:.3f} to {row.prior_high:.3f}"
            for row in unexpected.head(shown).itertuples()
        )
        before = Finding(
            "note",
            f"The priors make {len(unexpected)} of {total} improbable ({names}): "
            "with few labels, the priors bias the results.",
        )
    else:
        where = (
            "all statistics that the fitted model reproduces" if len(misfits) else f"all {total}"
        )
        before = Finding("good", f"The observed values are plausible under the priors ({where}).")
    return [after, before]


def _sentence(row: Any) -> str:
    """Return a check as a sentence."""
    ahead = row.p < 1 / 2
    tail = row.p if ahead else 1 - row.p
    n = row.number
    how = f"{percent(tail, 1)} of the {n} are" if tail * n >= 1 else f"none of {n} is"
    return (
        f"{row.statistic} {row.observed:.3f}, replicated {row.replicated:.3f} "
        f"({row.low:.3f} to {row.high:.3f}; {how} as {'high' if ahead else 'low'})"
    )
