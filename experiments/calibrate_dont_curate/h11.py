"""P2 H.11: random labels, and calibrated NLL by the judges' agreement.

Claim: with random labels NLL is that of a coin (within 0.02 nats), so the calibrator extracts nothing
from noise; on items where judges disagree calibration removes 98.9 % of the NLL. Audit: the same with
shuffled votes (within 0.02 nats).
Command: judgebayes reproduce calibrate-dont-curate/h11 --data DIR
Runtime: about 15 seconds.
Expected: random labels give the NLL of a coin on the reward models and RewardBench 2 (replicated;
uninformative on LLMBar and the twin), in either orientation, so this check cannot detect a constant
label. Shuffled votes can: without any information they are nearly perfect under the correctness
encoding. In the true orientation shuffled votes are worse than a coin (contradicted on the reward
models and LLMBar, uninformative on RewardBench 2), because the map and the judges' accuracies are
fitted to the same labels. Calibration removes about half of the NLL on the public panels' items where
judges disagree most, and more elsewhere on the reward models and LLMBar. On the items of RewardBench 2
where nearly all judges agree it raises the NLL. Conformal sets with one threshold cover less than their
level where judges disagree and more where they agree; a threshold per stratum has the level in each.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from judgebayes.experiments.calibrate_dont_curate.answers import Answers, answers, evidence_on
from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
    paper_values,
    value_row,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import bootstrap_interval, normal_interval
from judgebayes.workflow.conformal_sets import leave_one_out_sets

STRATA = ("hard", "middle", "easy")
LEVEL = 0.9
"""The level of the conformal sets."""
NOISE = {
    "random labels": Statement("random labels give a coin", "paper", MARGIN["coin"], within=True),
    "shuffled votes": Statement("shuffled votes give a coin", "audit", MARGIN["coin"], within=True),
}


@experiment(
    PAPER,
    "h11",
    "H.11: random labels, shuffled votes, strata of agreement",
    "noise gives the NLL of a coin; calibration gains most where judges disagree",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLL and accuracy under noise, and NLL by tercile of agreement."""
    records: list[dict[str, Any]] = []
    printed = paper_values("h11")
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        for name, noisy in (
            ("random labels", random_labels(panel, run.seed)),
            ("shuffled votes", shuffled_votes(panel, run.seed)),
        ):
            noisy_answers = answers(run, noisy, "one-coin")["beta"]
            rows_of = metric_rows(noisy_answers, name, ("nll", "accuracy"))
            records += [{**row, "dataset": panel.name} for row in rows_of]
            excess = evidence_on(panel, noisy_answers.each("nll") - np.log(2), noisy_answers.items)
            metric = "nll minus log 2"
            records.append(claim_row(panel, name, metric, excess, run.splits, NOISE[name]))
        strata = agreement_strata(panel)
        both = answers(run, panel, "one-coin", ("none", "beta"))
        for place, stratum in enumerate(STRATA):
            if not (strata == place).any():
                continue  # where judges agree on most items, the middle third is empty
            values = {k: _within(one, strata == place) for k, one in both.items()}
            for title, key in (("one-coin", "none"), ("one-coin + beta", "beta")):
                row = value_row(
                    panel, f"{title}, {stratum}", "nll", bootstrap_interval(values[key]), run.splits
                )
                if panel.dataset == "twin":
                    row["paper_value"] = printed.get((f"JudgeBench {stratum}", title, "nll"))
                records.append(row)
            gain = normal_interval(1 - values["beta"] / values["none"])
            records.append(value_row(panel, stratum, "nll fall", gain, run.splits))
        records += conformal_rows(run, panel, both["beta"], strata)
    notes = [
        "random labels: labels are coin flips. shuffled votes: every judge's votes are permuted over "
        "items, so that votes carry no information; labels are unchanged.",
        "Strata are thirds of the items by the share of the majority's votes; ties share a stratum.",
        f"Conformal sets at {LEVEL:.0%} of one-coin + beta on the evaluation half: each set has the "
        "threshold of the other items of the half, or of those in its stratum.",
    ]
    return Output(rows(PAPER, "h11", graded(records)), notes=notes)


def conformal_rows(
    run: Run, panel: Panel, one: Answers, strata: np.ndarray
) -> list[dict[str, Any]]:
    """Return coverage and size of conformal sets by stratum, with one threshold and one per stratum."""
    within = np.where(one.inside, strata[np.maximum(one.items, 0)], -1)
    records = []
    for title, own in (("one threshold", np.zeros_like(within)), ("threshold per stratum", within)):
        covered, size = (np.full(within.shape, np.nan) for _ in range(2))
        for split, here in enumerate(one.inside):
            labels = one.labels[split, here]
            sets = leave_one_out_sets(one.log_probs[split, here], labels, own[split, here], LEVEL)
            covered[split, here] = sets[np.arange(len(labels)), labels]
            size[split, here] = sets.sum(1)
        for place, stratum in ((-1, "all"), *enumerate(STRATA)):
            chosen = within >= 0 if place < 0 else within == place
            if not chosen.any():
                continue
            for metric, values in (("coverage", covered), ("set size", size)):
                by_split = np.nanmean(np.where(chosen, values, np.nan), axis=1)
                records.append(
                    value_row(
                        panel,
                        f"{title}, {stratum}",
                        metric,
                        bootstrap_interval(by_split),
                        run.splits,
                    )
                )
    return records


def random_labels(panel: Panel, seed: int) -> Panel:
    """Return the panel with random labels."""
    labels = np.random.default_rng(seed).integers(0, 2, len(panel.labels))
    return replace(panel, labels=labels, variant=f"{panel.variant}, random labels")


def shuffled_votes(panel: Panel, seed: int) -> Panel:
    """Return the panel with uninformative votes: each judge's votes permuted over items."""
    rng = np.random.default_rng(seed)
    index = rng.permuted(np.asarray(panel.votes.index), axis=0)
    votes = replace(panel.votes, index=jnp.asarray(index))
    return replace(panel, votes=votes, variant=f"{panel.variant}, shuffled votes")


def agreement(panel: Panel) -> np.ndarray:
    """Return the share of each item's votes for the majority class; needs no label."""
    counts = np.asarray(panel.votes.pooled_counts())
    return counts.max(1) / np.maximum(counts.sum(1), 1)


def agreement_strata(panel: Panel) -> np.ndarray:
    """Return 0, 1 or 2: the third of the items to which each agreement belongs."""
    share = agreement(panel)
    return np.digitize(share, np.quantile(share, [1 / 3, 2 / 3]))


def _within(answer_set: Answers, items: np.ndarray) -> np.ndarray:
    """Return each split's NLL on some of the items."""
    here = answer_set.inside & items[np.maximum(answer_set.items, 0)]
    return np.nanmean(np.where(here, answer_set.each("nll"), np.nan), axis=1)
