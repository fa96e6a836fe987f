"""P1 Table 2: the rate of tie votes by judge and prompt.

Claim: the tie rate depends on the prompt's wording (a proxy here: equal scores stand in for tie votes);
margin 0.02. That it depends on the judge is shown, not graded.
Command: judgebayes reproduce distribution-calibrated/table2 --data DIR
Runtime: seconds.
Expected: with votes derived from pointwise scores, tie rates differ more by judge than by prompt, which
changes those of half of the judges, and only a little. They vary much less than the paper's.
"""

from typing import Any

import numpy as np

from judgebayes.experiments.claims import Evidence, evidence_of_units
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import Cell, rb2, rb2_judges
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Comparison,
    comparison,
    graded,
    interval_columns,
    seed_of,
)
from judgebayes.experiments.significance import clustered_interval

PROMPTS = ("base", "criteria")
NO_CRITERIA = ("gpt-5.4-nano",)


@experiment(
    PAPER,
    "table2",
    "Table 2: tie rates by judge and prompt",
    "tie rates on the same items differ much between judges and between prompts",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return tie rates with intervals by question, and the prompt's effect on each judge."""
    records: list[dict[str, Any]] = []
    effects: list[Comparison] = []
    for judge in rb2_judges(run):
        cells = {
            prompt: rb2(run, judge, None, prompt=prompt)
            for prompt in PROMPTS
            if prompt == "base" or judge not in NO_CRITERIA
        }
        by_question: dict[str, dict[str, float]] = {}
        for prompt, cell in cells.items():
            counts = np.asarray(cell.votes.pooled_counts())
            share = counts[:, 1] / counts.sum(1)
            interval = clustered_interval(share, cell.groups)
            by_question[prompt] = dict(zip(cell.item_names, share, strict=True))
            records.append(
                {
                    "dataset": cell.dataset,
                    "task": "all",
                    "judge": judge,
                    "method": prompt,
                    "metric": "tie_rate",
                    **interval_columns(interval),
                }
            )
        if len(cells) == 2:
            effects.append(_effect(cells["base"], by_question))
    table = rows(PAPER, "table2", records + graded(effects, MARGIN["tie rate"]))
    rates = table[table["metric"] == "tie_rate"]["value"]
    note = (
        f"Tie rates run from {rates.min():.1%} to {rates.max():.1%}; the paper's from 12.4 % to "
        "37.6 %. These votes are signs of score differences: a prompt that scores one response at "
        "a time offers no tie option."
    )
    return Output(table, notes=[note])


def _effect(base: Cell, by_question: dict[str, dict[str, float]]) -> Comparison:
    """Return the claim that the prompt changes a judge's tie rate, in either direction."""
    both = sorted(by_question["base"].keys() & by_question["criteria"].keys())
    change = np.array([by_question["criteria"][k] - by_question["base"][k] for k in both])
    questions = np.unique([k.split("|")[0] for k in both], return_inverse=True)[1]
    of = evidence_of_units(change, questions, seed=seed_of(base))
    sign = 1.0 if of.estimate >= 0 else -1.0  # the interval is two-sided, so the sign may be chosen
    size = Evidence(sign * of.estimate, sign * of.draws, of.units)
    direction = "criteria minus base" if sign > 0 else "base minus criteria"
    method = f"{direction} (equal scores as ties)"
    return comparison(base, None, method, "tie_rate change", size, 1, "proxy")
