"""P2 H.5: shares of the variance of the logits, by a 2PL item response model.

Claim: differences between judges dominate differences between items on every data set, and
abilities rank judges in the same order as accuracies. Graded: the share of judges is above that of items
(margin 0.1 of the variance), with the stated priors and with learnt ones.
Command: judgebayes reproduce calibrate-dont-curate/h5 --data DIR
Runtime: about 3 minutes (200 fits per panel).
Expected: with judges resampled, too, uninformative on the reward models; contradicted on RewardBench 2
and LLMBar, where items vary more, as they do on the twin (inconsistent); under either prior. Abilities
rank judges nearly as accuracies do on all panels.
"""

from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from jaxtyping import Float

from judgebayes.experiments.calibrate_dont_curate.answers import seed_of
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import panels
from judgebayes.experiments.calibrate_dont_curate.item_response import (
    LearntResponse,
    rank_correlation,
    variance_shares,
)
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    value_row,
)
from judgebayes.experiments.claims import Evidence, evidence_of
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.inference.fit import Fit
from judgebayes.item_response import ItemResponse
from judgebayes.measures.significance import Interval

RESAMPLES, FEW = 100, 5
"""Fits to resampled items; the second in a smoke run."""

CLAIM = Statement("judges vary more than items", "paper", MARGIN["variance share"])


PRIORS: dict[str, ItemResponse | LearntResponse] = {
    "2pl": ItemResponse(),
    "2pl, learnt priors": LearntResponse(),
}
"""The priors that are stated, and priors whose locations and scales are estimated."""


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
        for name, method in PRIORS.items():
            run.say(f"{panel.name}: {name}")
            fit = method.fit(panel.votes, panel.labels)
            by_share, lead = resampled(method, panel, run)
            for metric, of in by_share.items():
                records.append(value_row(panel, name, metric, of.interval(), len(of.draws)))
            count = len(lead.draws)
            title = name.replace("2pl", "judge minus item")
            records.append(claim_row(panel, title, "share difference", lead, count, CLAIM))
            rank = Interval(rank_correlation(fit, panel.votes, panel.labels), np.nan, np.nan)
            records.append(value_row(panel, name, "rank correlation with accuracy", rank, 1))
    notes = [
        "The paper's numbers and its formula (eq 7) are blank in the text. Shares are of the variance "
        "of a (theta - b) over judges and items; `judge share of two` is Var(theta) / (Var(theta) + "
        "Var(b)), without discriminations.",
        f"Joint posterior mode; intervals resample judges and items ({RESAMPLES} times).",
        "The paper states no priors: ours are given, or learnt from the votes.",
        "Which votes are right does not depend on the orientation: there is one row per panel.",
    ]
    return Output(rows(PAPER, "h5", graded(records)), notes=notes)


def resampled(
    method: ItemResponse | LearntResponse, panel: Panel, run: Run
) -> tuple[dict[str, Evidence], Evidence]:
    """Return evidence on each share, and on judges minus items, from fits to resampled judges and items.

    Resampled counts are weights of items. Items drawn twice count twice and are shrunk less, which
    shifts all resampled shares equally and has no effect on their spread. A judge who is drawn twice
    votes twice.
    """
    fits: dict[bytes, dict[str, float]] = {}
    n_judges, n_items = panel.votes.n_judges, len(panel.labels)

    def shares(
        of_judges: Float[np.ndarray, " judge"], weight: Float[np.ndarray, " item"]
    ) -> dict[str, float]:
        key = of_judges.tobytes() + weight.tobytes()
        if key not in fits:
            judges = np.repeat(np.arange(n_judges), of_judges.astype(int))
            fit = method.fit(panel.votes.of_judges(list(judges)), panel.labels, weight=weight)
            items = np.repeat(np.arange(n_items), weight.astype(int))
            fits[key] = _weighted(fit, items)
        return fits[key]

    def of(number: Callable[[dict[str, float]], float]) -> Evidence:
        both = evidence_of(
            lambda judges, weight: number(shares(judges, weight)),
            n_judges,
            n_items,
            panel.group,
            resamples=FEW if run.smoke else RESAMPLES,
            seed=seed_of(panel),
        )
        return replace(both, units=min(both.units, n_judges))

    names = {
        "judge share": "judge",
        "item share": "item",
        "interaction share": "interaction",
        "judge share of two": "judge_of_two",
    }
    by_share = {title: of(itemgetter(name)) for title, name in names.items()}
    return by_share, of(lambda shares: shares["judge"] - shares["item"])


def _weighted(fit: Fit, items: np.ndarray) -> dict[str, float]:
    ability = fit.mean("ability")
    return variance_shares(
        ability, fit.mean("difficulty")[items], fit.mean("log_discrimination")[items]
    )
