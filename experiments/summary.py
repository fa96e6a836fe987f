"""All claims in one table: who makes each, how it came out, our number and the paper's."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from judgebayes.experiments.core import Experiment, Output
from judgebayes.experiments.matrix import headline
from judgebayes.experiments.writing import GRADES, KINDS


class ClaimSummary(NamedTuple):
    """The claims of one kind in one result."""

    result: str
    """Paper and table, `betaconform/table2`: the result's files have these names."""
    claim: str
    kind: str
    outcome: str
    """How often each grade was given."""
    ours: str
    paper: str
    of: str
    """Which method and metric these two numbers are of."""


def claim_summaries(results: Sequence[tuple[Experiment, Output]]) -> list[ClaimSummary]:
    """Return a row per result and kind of claim, in the order of the results.

    The number is of real data where the claim is graded on any, of twins otherwise.
    """
    summaries = []
    for experiment, output in results:
        graded = output.table[output.table["grade"] != ""]
        for kind in KINDS:
            own = graded[graded["claim"] == kind]
            if own.empty:
                continue
            counts = {name: int((own["grade"] == name).sum()) for name in GRADES}
            real = own[own["dataset"] != "twin"]
            number = headline(own if real.empty else real)
            summaries.append(
                ClaimSummary(
                    f"{experiment.paper}/{experiment.name}",
                    experiment.claim,
                    kind,
                    ", ".join(f"{name} {count}" for name, count in counts.items() if count),
                    number.ours,
                    number.paper,
                    number.of,
                )
            )
    return summaries


def claims_table(results: Sequence[tuple[Experiment, Output]]) -> pd.DataFrame:
    """Return every graded row of the results, with the claim in words as `statement`.

    Other columns are those of a result (`judgebayes.experiments.core.COLUMNS`).
    """
    parts = [
        output.table[output.table["grade"] != ""].assign(statement=experiment.claim)
        for experiment, output in results
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
