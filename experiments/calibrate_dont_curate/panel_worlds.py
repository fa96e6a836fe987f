"""Simulated panels: independent judges, shared difficulty, copies, biases; few judges, missing votes."""

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int
from scipy.special import expit

from judgebayes.votes import Votes

Kind = Literal["independent", "difficulty", "copies", "biased"]
KINDS: tuple[Kind, ...] = ("independent", "difficulty", "copies", "biased")
DIFFICULTY = 1.2
"""The standard deviation of the items' common effect on all judges, in log-odds."""
RELIABILITY = (1.0, 0.8)
"""Mean and standard deviation of the judges' log-odds of a right vote on an item of mean difficulty."""
BIAS = 1.5
"""The standard deviation of the judges' biases towards class 1: shares of that class from .1 to .9."""
COPIED = 0.93
"""How often a copy votes as its original."""
POSITIVE = 0.35
"""The share of class 1 where classes mean something; in pairs it is one half."""


@dataclass(frozen=True)
class World:
    """A kind of panel with its size, and whether the classes are two responses in random order."""

    kind: Kind
    pairs: bool
    judges: int
    share: float
    """The share of the votes that are not missing."""

    @property
    def name(self) -> str:
        """The kind, the classes, and the share of votes."""
        missing = "" if self.share == 1 else f", {self.share:g} of the votes"
        return f"{self.kind}, {'pairs' if self.pairs else 'classes'}{missing}"

    def sample(
        self, rng: np.random.Generator, items: int
    ) -> tuple[Votes, Int[np.ndarray, " item"]]:
        """Return votes and labels."""
        labels = (rng.random(items) < (0.5 if self.pairs else POSITIVE)).astype(int)
        copied = self.kind == "copies"
        originals = (self.judges + 1) // 2 if copied else self.judges
        reliability = rng.normal(*RELIABILITY, originals)
        effect = 0.0 if self.kind == "independent" else DIFFICULTY
        bias = rng.normal(0, BIAS, originals) if self.kind == "biased" else np.zeros(originals)
        ease = effect * rng.normal(size=(items, 1))
        logits = (2 * labels[:, None] - 1) * (reliability + ease) + bias
        votes = (rng.random(logits.shape) < expit(logits)).astype(int)
        if copied:
            same = rng.random(votes.shape) < COPIED
            votes = np.concatenate([votes, np.where(same, votes, 1 - votes)], axis=1)
            votes = votes[:, : self.judges]
        votes = np.where(rng.random(votes.shape) < self.share, votes, -1)
        return Votes(jnp.asarray(votes[:, :, None], jnp.int8), None, None, None, 2), labels


def worlds() -> list[World]:
    """Return all worlds; three judges vote on every item, and pairs have no biased judges."""
    return [
        World(kind, pairs, judges, share)
        for pairs in (True, False)
        for kind in KINDS
        if not (pairs and kind == "biased")
        for judges, shares in ((3, (1.0,)), (6, (1.0, 0.3)), (20, (1.0, 0.3)))
        for share in shares
    ]
