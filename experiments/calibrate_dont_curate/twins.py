"""A twin of JudgeBench's panel: simulated judges whose votes agree with P2's Table 1.

JudgeBench's votes with the paper's added judges are not public. Its uncalibrated numbers are: the
scores of majority voting and of the one-coin posterior of all and of the top 3, 5 and 10 judges before
any calibration. A twin is a simulator fitted to these, and to no calibrated number, so the pipeline's
score on it is a prediction of the paper's result.

Judge j is right on item i with probability

    Phi(ability_j + difficulty_i + family_i,f(j))

where abilities vary between judges, difficulty is shared by all judges, and the family term by the
judges of one family. Errors must be correlated: otherwise 38 judges of 63 % accuracy would together be
more accurate than Table 1 says. A few judges are much better, as the top 3 are there.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from judgebayes.experiments.panels import Panel
from judgebayes.votes import Votes


class Twin(NamedTuple):
    """Parameters of the simulator."""

    items: int
    judges: int
    families: int
    ability: float
    spread: float
    """Standard deviation of the abilities."""
    difficulty: float
    """Standard deviation of the difficulty shared by all judges."""
    family: float
    """Standard deviation of the family term."""
    experts: int
    """Number of judges with a higher ability."""
    lead: float
    """How much higher their ability is."""


JUDGEBENCH = Twin(620, 38, 9, 0.503, 0.105, 0.783, 1.383, 6, 0.429)
"""Fitted by random search to Table 1's majority, one-coin and top-3, 5, 10 rows, uncalibrated."""


def twin_panel(seed: int = 0, *, twin: Twin = JUDGEBENCH, smoke: bool = False) -> Panel:
    """Return votes drawn from the twin, in the true orientation with random positions."""
    if smoke:
        twin = twin._replace(items=160, judges=12, families=4, experts=2)
    rng = np.random.default_rng(seed)
    family = np.arange(twin.judges) % twin.families
    ability = rng.normal(twin.ability, twin.spread, twin.judges)
    ability[np.argsort(-ability)[: twin.experts]] += twin.lead
    hard = rng.normal(0, twin.difficulty, (twin.items, 1))
    shared = rng.normal(0, twin.family, (twin.items, twin.families))[:, family]
    right = rng.normal(0, 1, (twin.items, twin.judges)) < ability + hard + shared
    labels = rng.permutation(np.arange(twin.items) % 2)
    index = np.where(right, labels[:, None], 1 - labels[:, None])
    votes = Votes(jnp.asarray(index[:, :, None], jnp.int8), None, None, None, 2)
    return Panel(
        "twin",
        votes,
        labels,
        rng.permutation(np.arange(twin.items) % 4),
        ("knowledge", "reasoning", "math", "coding"),
        tuple(f"judge-{j + 1}" for j in range(twin.judges)),
        tuple(f"family-{f + 1}" for f in family),
    )
