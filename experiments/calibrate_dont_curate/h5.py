"""P2 H.5: shares of the variance of the logits, by a 2PL item response model.

Claim: differences between judges dominate differences between items on every data set, and
abilities rank judges in the same order as accuracies. Graded: the share of judges is above that of items
(margin 0.1 of the variance).
Command: judgebayes reproduce calibrate-dont-curate/h5 --data DIR
Runtime: about 2 minutes (100 fits per panel).
Expected: replicated on the reward models; contradicted on RewardBench 2 and LLMBar, where items vary
more, as they do on the twin (inconsistent). Abilities rank judges nearly as accuracies do on all
panels.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.experiments.calibrate_dont_curate.answers import seed_of
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import panels
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.item_response import FittedItemResponse, ItemResponse, Shares, variance_shares
from judgebayes.measures.claims import Evidence, evidence_of
from judgebayes.measures.significance import Interval

RESAMPLES, FEW = 100, 5
"""Fits to resampled items; the second in a smoke run."""

CLAIM = Statement("judges vary more than items", "paper", MARGIN["variance share"])


@experiment(
    PAPER,
    "h5",
    "H.5: 2PL variance shares",
    "judges differ more than items, and abilities rank judges as accuracies do",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the shares, with intervals over resampled judges and items, and rank correlations."""
    records: list[dict[str, Any]] = []
    for panel in panels(run):
        run.say(panel.name)
        fit = ItemResponse().fit(panel.votes, panel.labels)
        by_share, lead = resampled(panel, run)
        for metric, of in by_share.items():
            records.append(value_row(panel, "2pl", metric, of.interval(), len(of.draws)))
        name, count = "judge minus item", len(lead.draws)
        records.append(claim_row(panel, name, "share difference", lead, count, CLAIM))
        rank = Interval(fit.rank_correlation(panel.votes, panel.labels), np.nan, np.nan)
        records.append(value_row(panel, "2pl", "rank correlation with accuracy", rank, 1))
    notes = [
        "The paper's numbers and its formula (eq 7) are blank in the text. Shares are of the variance "
        "of a (theta - b) over judges and items; `judge share of two` is Var(theta) / (Var(theta) + "
        "Var(b)), without discriminations.",
        f"Joint posterior mode; intervals resample items ({RESAMPLES} times).",
        "Which votes are right does not depend on the orientation: there is one row per panel.",
    ]
    return Output(rows(PAPER, "h5", graded(records)), notes=notes)


def resampled(panel: Panel, run: Run) -> tuple[dict[str, Evidence], Evidence]:
    """Return evidence on each share, and on judges minus items, from fits to resampled items.

    Resampled counts are weights. Items drawn twice count twice and are shrunk less, which shifts all
    resampled shares equally and has no effect on their spread.
    """
    fits: dict[bytes, Shares] = {}

    def shares(weight: Float[np.ndarray, " item"]) -> Shares:
        key = weight.tobytes()
        if key not in fits:
            fit = ItemResponse().fit(panel.votes, panel.labels, weight=weight)
            items = np.repeat(np.arange(len(weight)), weight.astype(int))
            fits[key] = _weighted(fit, items)
        return fits[key]

    def of(number: Callable[[Shares], float]) -> Evidence:
        return evidence_of(
            lambda _, weight: number(shares(weight)),
            1,
            len(panel.labels),
            panel.group,
            resamples=FEW if run.smoke else RESAMPLES,
            seed=seed_of(panel),
        )

    names = {
        f"{name} share" if name != "judge_of_two" else "judge share of two": name
        for name in Shares._fields
    }
    by_share = {title: of(attrgetter(name)) for title, name in names.items()}
    return by_share, of(lambda all_shares: all_shares.judge - all_shares.item)


def _weighted(fit: FittedItemResponse, items: np.ndarray) -> Shares:
    ability = fit.mean("ability")
    return variance_shares(
        ability, fit.mean("difficulty")[items], fit.mean("log_discrimination")[items]
    )
