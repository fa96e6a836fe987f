"""Audit: precision from item votes, when judges make correlated errors on an item.

Claim: none in the paper, whose model assumes that judges are independent given the label.
Command: judgebayes reproduce beyond-consensus/audit-items --data DIR
Runtime: about 50 seconds.
Expected: in simulations, intervals with item effects have about their nominal coverage, and those with
independent judges far less, with larger errors. On real votes the interval of an unlabelled generator
seldom contains its precision, and in two cases the estimate is far too low: agreement among judges does
not show whether they are right or lenient.

`ItemLevel` on P4's item votes, fully repaired: each generator in turn has no labels, and the five others
are fully labelled. Simulated worlds follow the same model, with an item effect shared by all judges
(standard deviation 1.5 on the logit scale): coverage of its intervals, and of the intervals of the
same model without item effects.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import DATASET, LEVELS, PAPER, item_votes
from judgebayes.experiments.beyond_consensus.item_level import ItemLevel
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.inference import NormalAtMode
from judgebayes.votes import Votes

GENERATORS, JUDGES, ITEMS = 4, 5, 150
WORLDS = 40
LEANING = 1.5
DRAWS = 300


def world(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return votes, labels and generators of a simulated world."""
    generator = np.repeat(np.arange(GENERATORS), ITEMS)
    eta = rng.normal(1.5, 0.6, GENERATORS)
    alpha, gap = rng.normal(2.0, 0.6, JUDGES), rng.normal(1.8, 0.6, JUDGES)
    shift = rng.normal(0, 0.25, (2, GENERATORS)) + 0.4 * (eta - 1.5)
    label = (rng.random(len(generator)) < 1 / (1 + np.exp(-eta[generator]))).astype(int)
    lean = LEANING * rng.normal(size=(len(generator), 1))
    logit = alpha - np.where(label[:, None] == 1, 0, gap) + lean + shift[label, generator][:, None]
    vote = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(int)
    vote[rng.random(vote.shape) < 0.03] = -1
    return vote, label, generator


@in_float64
def simulated(seed: int, *, independent: bool) -> dict[str, float]:
    """Return coverage, width and error of the two unlabelled generators of a world."""
    vote, label, generator = world(np.random.default_rng(seed))
    votes = Votes(jnp.asarray(vote)[:, :, None], None, None, None, 2)
    partial_labels = np.where(generator < GENERATORS // 2, label, -1)
    method = ItemLevel(NormalAtMode(DRAWS), independent=independent)
    fit = method.fit(votes, partial_labels, generator, GENERATORS)
    truth = np.bincount(generator, weights=label) / ITEMS
    unlabelled = slice(GENERATORS // 2, None)
    low, high = (np.asarray(a)[unlabelled] for a in fit.interval())
    return {
        "coverage": float(((low <= truth[unlabelled]) & (truth[unlabelled] <= high)).mean()),
        "width": float((high - low).mean()),
        "mean error": float(np.abs(np.asarray(fit.estimate()) - truth)[unlabelled].mean()),
        "share converged": float(int(fit.status) == 0),
    }


@experiment(
    PAPER,
    "audit-items",
    "Audit: item-level model, correlated errors of judges",
    "intervals hold when judges make correlated errors on an item",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return intervals of each generator on real votes, and coverage in simulated worlds."""
    records: list[dict[str, Any]] = []
    ways = {"leanings": False, "judges independent": True}
    for name, independent in ways.items():
        run.say(f"simulated, {name}")
        each = [
            simulated(run.seed + i, independent=independent) for i in range(min(WORLDS, run.splits))
        ]
        for metric in each[0]:
            values = np.array([e[metric] for e in each])
            half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
            records.append(
                {
                    "dataset": "twin",
                    "task": f"leanings of spread {LEANING}",
                    "method": name,
                    "metric": metric,
                    "value": float(values.mean()),
                    "low": float(values.mean() - half),
                    "high": float(values.mean() + half),
                    "splits": len(each),
                }
            )
    if not run.smoke:
        records += _real(run, ways)
    return Output(rows(PAPER, "audit-items", records))


@in_float64
def _real(run: Run, ways: dict[str, bool]) -> list[dict[str, Any]]:
    cell = item_votes(run, "fcnhp")
    records: list[dict[str, Any]] = []
    for name, independent in ways.items():
        for place, model in enumerate(cell.generators):
            run.say(f"{model}, {name}")
            partial_labels = np.where(cell.generator == place, -1, cell.labels)
            fit = ItemLevel(NormalAtMode(DRAWS), independent=independent).fit(
                cell.votes, partial_labels, cell.generator, len(cell.generators)
            )
            low, high = (float(a[place]) for a in fit.interval())
            truth = float(cell.labels[cell.generator == place].mean())
            base = {"dataset": DATASET, "task": LEVELS["fcnhp"], "judge": model, "method": name}
            estimate = float(fit.estimate()[place])
            records += [
                base | {"metric": "precision", "value": estimate, "low": low, "high": high},
                base | {"metric": "error", "value": abs(estimate - truth)},
                base | {"metric": "covered", "value": float(low <= truth <= high)},
            ]
    return records
