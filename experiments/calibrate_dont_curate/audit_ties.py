"""Audit: ties in votes where labels have none.

Claim: (none of the paper) a vote for neither response, where labels are never ties, costs nothing but
the vote: the NLL is within 0.005 of the same votes with the ties taken out.
Command: judgebayes reproduce calibrate-dont-curate/audit-ties --data DIR
Runtime: about 3 minutes, mostly compilation; 20 splits of LLMBar and of a simulated panel, 100 labels.
Expected: no difference where ties are undecided votes, and a large one where they are a third class.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes import Beta, Calibrated, OneCoin, Pool
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.panel_worlds import World
from judgebayes.experiments.calibrate_dont_curate.rows import interval_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR
from judgebayes.experiments.panels import llmbar_panel
from judgebayes.inference.fit import Method
from judgebayes.measures.significance import two_way_interval
from judgebayes.votes import MISSING, UNDECIDED, Votes

LABELS, COUNT, FOLDS = 100, 20, 5
SHARE = 0.2
"""The share of the votes that become ties."""
ITEMS, JUDGES = 400, 20
"""The simulated panel."""
COIN = Calibrated(OneCoin(), Beta(symmetric=True), cross_fit=FOLDS)
METHODS: dict[str, Method] = {"pool": Pool(), "one-coin + beta": COIN}
OUT, NEITHER, THIRD = "taken out", "undecided", "a class"


@experiment(
    PAPER,
    "audit-ties",
    "Audit: ties in votes where labels have none",
    "undecided votes cost nothing but the vote",
    needs=(LLMBAR,),
)
def main(run: Run) -> Output:
    """Return the NLL with ties taken out, undecided, and as a class, and the differences."""
    records: list[dict[str, Any]] = []
    for name, votes, labels in _panels(run):
        count = 2 if run.smoke else COUNT
        splits = random_splits(len(labels), splits=count, calibration=LABELS, seed=run.seed)
        planted = np.random.default_rng(run.seed).random(votes.index.shape) < SHARE
        planted &= np.asarray(votes.index) >= 0
        for method in METHODS if not run.smoke else ["one-coin + beta"]:
            run.say(f"{name}: {method}")
            nll = {
                how: _nll(METHODS[method], *_with_ties(votes, labels, planted, how), splits)
                for how in ((OUT, NEITHER, THIRD) if method != "pool" else (OUT, NEITHER))
            }
            items = splits.evaluation
            for how, each in nll.items():
                interval = two_way_interval(each, items, len(labels), fitted=LABELS)
                records.append(
                    interval_row(name, f"{method}, ties {how}", "nll", interval, count, n=LABELS)
                )
            for how in nll.keys() - {OUT}:
                gap = two_way_interval(nll[how] - nll[OUT], items, len(labels), fitted=LABELS)
                title = f"{method}, ties {how} minus {OUT}"
                records.append(interval_row(name, title, "nll difference", gap, count, n=LABELS))
    table = rows(PAPER, "audit-ties", sorted(records, key=lambda r: (r["dataset"], r["method"])))
    return Output(table, notes=[f"Ties are planted in {SHARE:.0%} of the votes."])


def _panels(run: Run) -> Iterator[tuple[str, Votes, Int[np.ndarray, " item"]]]:
    """Yield panels of two classes by name."""
    world = World("difficulty", True, JUDGES, 1.0)
    yield ("simulated", *world.sample(np.random.default_rng(run.seed), ITEMS))
    if not run.smoke:
        panel = llmbar_panel(run)
        yield panel.name, panel.votes, panel.labels


def _with_ties(
    votes: Votes, labels: Int[np.ndarray, " item"], planted: np.ndarray, how: str
) -> tuple[Votes, Int[np.ndarray, " item"]]:
    """Return the votes with the planted ties as they are treated; as a class, it is the middle one."""
    index = np.asarray(votes.index)
    if how == THIRD:
        index = np.where(planted, 1, np.where(index == 1, 2, index))
        changed = replace(votes, index=jnp.asarray(index, jnp.int8), n_classes=3)
        return changed, np.where(labels == 1, 2, labels)
    index = np.where(planted, UNDECIDED if how == NEITHER else MISSING, index)
    return replace(votes, index=jnp.asarray(index, jnp.int8)), labels


def _nll(
    method: Method, votes: Votes, labels: Int[np.ndarray, " item"], splits: Splits
) -> Float[np.ndarray, "split evaluation"]:
    nll = evaluate_splits(method, votes, labels, splits, fit_on="calibration").nll()
    return nll[:, : splits.evaluation.shape[1]]  # without padding
