"""A twin of JudgeBench's panel: judges whose votes agree with what P2's Table 1 says of them.

JudgeBench's votes with the paper's added judges are not public. Its uncalibrated numbers are: how
majority voting, accuracy-weighted voting and the one-coin posterior fared before any calibration. A
twin is a simulator that agrees with these, and knows nothing of any calibrated number: what the
pipeline scores on it is a prediction of what the paper should have found.

Judge j is right on item i with probability

    Phi(ability_j + difficulty_i + family_i,f(j))

where abilities vary between judges, difficulty is shared by all judges, and the family term by the
judges of one family: errors are correlated, or 38 judges of 63 % accuracy would not be as wrong
together as Table 1 says they are.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from judgebayes.experiments.panels import Panel
from judgebayes.votes import Votes

__all__ = ["JUDGEBENCH", "Twin", "twin_panel"]


class Twin(NamedTuple):
    """Parameters of the simulator."""

    items: int
    judges: int
    families: int
    ability: float
    spread: float
    """Standard deviation of the abilities."""
    difficulty: float
    """Standard deviation of what all judges find hard."""
    family: float
    """Standard deviation of what a family finds hard."""


JUDGEBENCH = Twin(620, 38, 9, 0.5, 0.4, 1.0, 1.0)


def twin_panel(seed: int = 0, *, twin: Twin = JUDGEBENCH, smoke: bool = False) -> Panel:
    """Return votes drawn from the twin, in the true orientation with random positions."""
    if smoke:
        twin = twin._replace(items=160, judges=12, families=4)
    rng = np.random.default_rng(seed)
    family = np.arange(twin.judges) % twin.families
    ability = rng.normal(twin.ability, twin.spread, twin.judges)
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
