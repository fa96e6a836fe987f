"""Audit: prior predictive distributions, and the effect of the priors after 50 labels.

Claim: none in the paper, which has no priors; MAP and NUTS fits need this check.
Command: judgebayes reproduce distribution-calibrated/audit-priors --data DIR
Runtime: about 45 seconds.
Expected: before any label every class of every item is possible. After the labels of one calibration
set, priors half or twice as wide change probabilities little, and few decisions or none.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import Predictive

from judgebayes.aggregators import Davidson
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import rb2, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import PAPER, splits
from judgebayes.experiments.plots import densities
from judgebayes.inference import MAP, NUTS
from judgebayes.inference.problem import Inference
from judgebayes.measures.decide import absolute_loss, bayes_action
from judgebayes.models.davidson import DavidsonData, DavidsonModel, Prior, features

COUNTS = {
    "4 : 0 : 0 for B": (4, 0, 0),
    "all ties": (0, 4, 0),
    "2 : 2, no tie vote": (2, 0, 2),
    "3 : 1 for A": (1, 0, 3),
    "4 : 0 : 0 for A": (0, 0, 4),
}
DRAWS = 4000
WIDTHS = {"as stated": 1.0, "half as wide": 0.5, "twice as wide": 2.0}
CLASSES = ("B", "tie", "A")


@experiment(
    PAPER,
    "audit-priors",
    "Audit: priors before and after the labels",
    "the priors allow every answer, and 50 labels outweigh them",
    needs=("rb2_k8_scores",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return prior-predictive shares, and changes under wider and narrower priors."""
    prior_draws = prior_predictive(run.seed)
    records: list[dict[str, Any]] = [
        {
            "dataset": "prior",
            "task": name,
            "n": 4,
            "method": f"p({label})",
            "metric": "prior predictive",
            "value": float(probs[:, k].mean()),
            "low": float(np.quantile(probs[:, k], 0.05)),
            "high": float(np.quantile(probs[:, k], 0.95)),
        }
        for name, probs in prior_draws.items()
        for k, label in enumerate(CLASSES)
    ]
    figures = {
        "prior-predictive": densities(
            {
                n: {f"p({c})": p[:, k] for k, c in enumerate(CLASSES)}
                for n, p in prior_draws.items()
            },
            xlabel="probability of the class",
            title="Davidson's priors: class probabilities at five vote counts, before any label",
            limits=(0, 1),
        )
    }
    notes = ["Prior predictive: mean and 90 % interval of each class's probability."]
    if run.has("rb2_k8_scores"):
        records += sensitivity(run, notes)
    return Output(rows(PAPER, "audit-priors", records), figures, notes)


@in_float64
def prior_predictive(seed: int) -> dict[str, np.ndarray]:
    """Return draws of the class probabilities at each of the vote counts."""
    evidence = features(jnp.asarray(list(COUNTS.values())))
    model, data = DavidsonModel(3), DavidsonData(evidence, jnp.zeros(len(COUNTS), int))
    sites = Predictive(model, num_samples=DRAWS)(jax.random.key(seed), data, observed=())
    log_probs = jax.vmap(lambda one: model.predict(one, data))(sites)
    return {name: np.exp(log_probs[:, k]) for k, name in enumerate(COUNTS)}


@in_float64
def sensitivity(run: Run, notes: list[str]) -> list[dict[str, Any]]:
    """Return the changes of probabilities and decisions when the priors' scales change."""
    records: list[dict[str, Any]] = []
    methods: dict[str, Inference] = {"map": MAP(), "nuts": NUTS(draws=500, warmup=500)}
    for task in rb2_tasks(run)[:2]:
        cell = rb2(run, "gpt-5.4", task)
        votes = cell.votes.first(4)
        calibration = splits(run, cell, calibration=50, count=1).calibration[0]
        labels = np.full(votes.n_items, -1)
        labels[calibration] = cell.labels[calibration]
        for how, inference in run.few(list(methods.items())):
            fits = {
                name: Davidson(inference, prior=Prior().widened(width)).fit(votes, labels)(votes)
                for name, width in WIDTHS.items()
            }
            base = fits["as stated"]
            for name, log_probs in list(fits.items())[1:]:
                mean_change = float(jnp.abs(jnp.exp(log_probs) - jnp.exp(base)).max(1).mean())
                changed = float(_decided(log_probs, base))
                records += [
                    {
                        "dataset": cell.dataset,
                        "task": f"{task}, priors {name}",
                        "judge": cell.judge,
                        "n": 4,
                        "method": how,
                        "metric": metric,
                        "value": value,
                    }
                    for metric, value in (
                        ("mean change of a probability", mean_change),
                        ("share of decisions changed", changed),
                    )
                ]
    notes.append("Sensitivity: 50 labels, priors with half and twice the stated scales.")
    return records


def _decided(one: jax.Array, other: jax.Array) -> jax.Array:
    loss = absolute_loss(3)
    return (bayes_action(one, loss) != bayes_action(other, loss)).mean()
