"""Audit: Dawid-Skene without labels on simulated and real crowds, beside the majority and crowd-kit.

Claim: (none of the paper) where no item has a label, Dawid-Skene with pooled judges decides about as
well as the majority or better in every kind of crowd, and its probabilities are better than those of
Dawid-Skene with a fixed prior and of crowd-kit.
Command: judgebayes reproduce calibrate-dont-curate/audit-crowds --data DIR
Runtime: about 3 minutes on two cores; 12 replays in each of ten simulated crowds, and nine real
sets with labels. crowd-kit is compared if it is installed (`pip install --group oracles`).
Expected: pooled judges gain most where most items have one class; of the simulated crowds, three votes
an item is the hardest. Of the real sets, the majority decides better on two, where workers make common
errors, and pooled judges on the others.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import t

from judgebayes import DawidSkene, priors
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.crowd_worlds import WORLDS
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import CROWDS, crowd_list
from judgebayes.experiments.plots import intervals
from judgebayes.votes import SparseVotes

REPLAYS = 12
FLOOR = 1e-6
"""The least probability that is scored: crowd-kit gives zeros."""
POOLED, PLAIN, MAJORITY, PEER = "pooled", "fixed prior", "majority", "crowd-kit"
Probabilities = Float[np.ndarray, "item class"]


@experiment(
    PAPER,
    "audit-crowds",
    "Audit: crowds without labels",
    "Dawid-Skene with pooled judges is not below the majority, and not worse than crowd-kit",
    twins=True,
)
def main(run: Run) -> Output:
    """Return accuracy and NLL of every method by crowd, and the differences from pooled judges'."""
    records: list[dict[str, Any]] = []
    replays = 2 if run.smoke else REPLAYS
    quantile = float(t.ppf(0.975, replays - 1))
    for name in run.few(list(WORLDS)):
        run.say(f"simulated: {name}")
        drawn = [WORLDS[name].draw(run.seed * 1000 + replay) for replay in range(replays)]
        scores = [_scored(votes, truth) for votes, truth in drawn]
        by_method = {
            method: np.array([one[method].mean(0) for one in scores]) for method in scores[0]
        }
        records += _rows("simulated", name, by_method, quantile)
    if run.has(CROWDS) and not run.smoke:
        for name in crowd_list(run):
            run.say(f"real: {name}")
            records += _rows(CROWDS, name, _scored(*crowd_list(run)[name]()), 1.96)
    table = rows(PAPER, "audit-crowds", records)
    shown = table[table["metric"] == "accuracy difference"]
    figure = intervals(
        shown.assign(panel=shown["dataset"]),
        label="task",
        series="method",
        panel="panel",
        xlabel="accuracy difference",
        title="Accuracy of pooled judges minus that of others",
        zero=True,
    )
    notes = [
        f"Simulated: {replays} replays, intervals over replays. Real: intervals over items, as if they "
        "were independent.",
        f"Probabilities below {FLOOR:g} are scored as {FLOOR:g}. A tie of the majority counts as a "
        "share, and its probabilities are the shares of the votes.",
    ]
    return Output(table, {"differences": figure}, notes)


def answers() -> dict[str, Callable[[SparseVotes], Probabilities]]:
    """Return the methods by name: functions from votes to the probabilities of the items' classes."""
    methods: dict[str, Callable[[SparseVotes], Probabilities]] = {
        POOLED: lambda votes: _dawid_skene(DawidSkene(), votes),
        PLAIN: lambda votes: _dawid_skene(DawidSkene(prior=priors.DawidSkene()), votes),
        MAJORITY: _majority,
    }
    return methods | ({PEER: _crowd_kit} if find_spec("crowdkit") else {})


def measured(p: Probabilities, truth: Int[np.ndarray, " item"]) -> Float[np.ndarray, "item 2"]:
    """Return whether each item's decision is right, where a tie counts as a share, and its NLL."""
    best = p >= p.max(1, keepdims=True) - 1e-12
    item = np.arange(len(truth))
    nll = -np.log(np.maximum(p[item, truth], FLOOR))
    return np.stack([best[item, truth] / best.sum(1), nll], axis=1)


def _scored(
    votes: SparseVotes, truth: Int[np.ndarray, " item"]
) -> dict[str, Float[np.ndarray, "item 2"]]:
    return {name: measured(method(votes), truth) for name, method in answers().items()}


def _dawid_skene(method: DawidSkene, votes: SparseVotes) -> Probabilities:
    fit = method.fit(votes, np.full(votes.n_items, -1))
    return np.exp(np.asarray(fit(votes)))


def _majority(votes: SparseVotes) -> Probabilities:
    counts = np.asarray(votes.pooled_counts(), float)
    return counts / counts.sum(1, keepdims=True)


def _crowd_kit(votes: SparseVotes) -> Probabilities:
    from crowdkit.aggregation import DawidSkene as Theirs

    table = pd.DataFrame({"task": votes.item, "worker": votes.judge, "label": votes.index})
    p = Theirs(n_iter=500).fit(table).probas_
    full = p.reindex(index=range(votes.n_items), columns=range(votes.n_classes))
    return full.fillna(0).to_numpy()


def _rows(
    dataset: str, name: str, by_method: dict[str, Float[np.ndarray, "unit 2"]], quantile: float
) -> list[dict[str, Any]]:
    """Return the rows of one crowd: means over replays or items, and differences from pooled judges'."""
    records = []
    for method, scores in by_method.items():
        gains = by_method[POOLED] - scores
        for m, metric in enumerate(("accuracy", "nll")):
            values = {metric: scores[:, m]}
            if method != POOLED:
                values[f"{metric} difference"] = gains[:, m]
            for measure, each in values.items():
                mean = float(each.mean())
                half = quantile * float(each.std(ddof=1)) / np.sqrt(len(each))
                records.append(
                    {
                        "dataset": dataset,
                        "task": name,
                        "method": method,
                        "metric": measure,
                        "n": len(each),
                        "value": mean,
                        "low": mean - half,
                        "high": mean + half,
                    }
                )
    return records
