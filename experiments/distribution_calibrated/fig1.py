"""P1 Fig 1: the decision from 20 votes, by self-consistency and by the method.

Claim: calibration changes the decision boundary of a majority vote.
Command: judgebayes reproduce distribution-calibrated/fig1
Runtime: seconds; no data.
Expected: at the parameters of WMT ZH-EN (Table 9) Davidson's tie region is narrower than SC's for
counts with many tie votes; at those of RB2-Math nearly all counts except unanimity are ties.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from judgebayes import Davidson, MajorityVote
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.core import Output, Run, expected, experiment, rows
from judgebayes.experiments.distribution_calibrated.common import PAPER
from judgebayes.experiments.plots import decision_regions
from judgebayes.inference.fit import Fit, Fitted
from judgebayes.inference.status import Status
from judgebayes.measures.scores import absolute_loss, bayes_action
from judgebayes.votes import from_counts

VOTES = 20
SHOWN = ("WMT ZH-EN", "RB2-Math")


@in_float64
def davidson_at(beta: float, nu: float, gamma: float) -> Fit:
    """Return Davidson's model at given parameters."""
    draws = {
        "beta": jnp.array([beta]),
        "eta0": jnp.log(jnp.array([[nu]])),
        "gamma": jnp.array([[gamma]]),
    }
    return Fit(Davidson(), draws, jnp.asarray(int(Status.CONVERGED)))


@experiment(
    PAPER,
    "fig1",
    "Fig 1: decision regions with 20 votes",
    "calibration changes a majority vote's boundary between tie and preference",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the regions and the share of vote counts for which each rule decides a tie."""
    printed = expected(PAPER, "table9").pivot_table(index="task", columns="metric", values="value")

    def davidson(task: str) -> Fit:
        mean = printed.loc[task]
        return davidson_at(mean["beta_mean"], mean["nu_mean"], mean["gamma_mean"])

    fitted: dict[str, Fitted] = {
        "SC": MajorityVote().fit(from_counts(np.eye(3, dtype=int)), np.arange(3)),
        **{f"Davidson, {task}'s parameters": davidson(task) for task in SHOWN},
    }

    def ruled(
        name: str,
    ) -> Callable[[Int[np.ndarray, "state class"]], Int[np.ndarray, " state"]]:
        def rule(counts: Int[np.ndarray, "state class"]) -> Int[np.ndarray, " state"]:
            log_probs = fitted[name](from_counts(counts))
            return np.asarray(bayes_action(log_probs, absolute_loss(3)))

        return rule

    def threshold(counts: Int[np.ndarray, "state class"]) -> Int[np.ndarray, " state"]:
        margin = counts[:, 2] - counts[:, 0]
        return np.where(np.abs(margin) >= VOTES // 2, 1 + np.sign(margin), 1)

    rules = {name: ruled(name) for name in fitted}
    rules["margin threshold, k = 10"] = threshold
    every = np.array(
        [(b, VOTES - a - b, a) for a in range(VOTES + 1) for b in range(VOTES + 1 - a)]
    )
    table = rows(
        PAPER,
        "fig1",
        [
            {
                "dataset": "all counts of 20 votes",
                "task": "",
                "n": VOTES,
                "method": name,
                "metric": "share called a tie",
                "value": float((rule(every) == 1).mean()),
            }
            for name, rule in rules.items()
        ],
    )
    picture = decision_regions(rules, VOTES, title="Decisions on every count of 20 votes")
    return Output(
        table,
        {"regions": picture},
        ["The paper does not give its two parameter settings; these are two rows of its Table 9."],
    )
