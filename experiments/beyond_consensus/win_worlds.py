"""Simulated pairwise votes of many kinds of judges, with outcomes: the worlds of `audit-win-rate`."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes.votes import Votes

INDEPENDENT = "five independent judges"
"""Judges whose Youden index is .6."""
GROUP = 5
"""Items of a group, in the world with groups."""
TIED = 0.3

Panel = Float[np.ndarray, "item judge"]


class World(NamedTuple):
    """Votes and outcomes of all items, the groups of items, and the rate in the population."""

    votes: Votes
    outcome: Float[np.ndarray, " item"]
    groups: Int[np.ndarray, " item"] | None
    rate: float


def _voting(
    rng: np.random.Generator, side: np.ndarray, when_a: float, when_b: float
) -> Float[np.ndarray, " item"]:
    """Return the votes of a judge, right with one probability where A wins and another where B does.

    On a tie (side 0) the judge votes for A with probability `when_a`, taken from 1/2 by half.
    """
    for_a = np.select([side > 0, side < 0], [when_a, 1 - when_b], (when_a + 1 - when_b) / 2)
    return np.where(rng.random(len(side)) < for_a, 1.0, -1.0)


def _alike(rng: np.random.Generator, side: np.ndarray, n: int, a: float, b: float) -> Panel:
    return np.stack([_voting(rng, side, a, b) for _ in range(n)], 1)


def _independent(rng: np.random.Generator, side: np.ndarray) -> Panel:
    return _alike(rng, side, 5, 0.8, 0.8)


def _one(rng: np.random.Generator, side: np.ndarray) -> Panel:
    return _alike(rng, side, 1, 0.8, 0.8)


def _biased(rng: np.random.Generator, side: np.ndarray) -> Panel:
    return _alike(rng, side, 5, 0.95, 0.55)


def _position(rng: np.random.Generator, side: np.ndarray) -> Panel:
    """Return judges who on two items of five follow the position, the same for all of them."""
    first = np.where(rng.random(len(side)) < 0.5, 1.0, -1.0)[:, None]
    votes = _alike(rng, side, 5, 0.8, 0.8)
    return np.where(rng.random(votes.shape) < 0.4, first, votes)


def _saturated(rng: np.random.Generator, side: np.ndarray) -> Panel:
    always = np.ones((len(side), 2))
    nearly = _alike(rng, side, 1, 0.99, 0.03)
    return np.hstack([always, nearly, _alike(rng, side, 1, 0.8, 0.7)])


def _copied(rng: np.random.Generator, side: np.ndarray) -> Panel:
    one = _alike(rng, side, 1, 0.75, 0.75)
    return np.hstack([np.repeat(one, 6, 1), _alike(rng, side, 1, 0.8, 0.8)])


def _useless(rng: np.random.Generator, side: np.ndarray) -> Panel:
    return _alike(rng, side, 5, 0.5, 0.5)


def _reversed(rng: np.random.Generator, side: np.ndarray) -> Panel:
    return np.hstack([_alike(rng, side, 1, 0.25, 0.25), _alike(rng, side, 2, 0.75, 0.75)])


def _many(rng: np.random.Generator, side: np.ndarray) -> Panel:
    """Return 30 unequal judges who find the same items hard."""
    hard = rng.standard_normal(len(side))[:, None]
    own = rng.standard_normal((len(side), 30)) + hard + np.linspace(-0.4, 0.6, 30) + 0.8
    right = np.where(side == 0, rng.choice([-1.0, 1.0], len(side)), side)[:, None]
    return np.where(own > 0, right, -right)


def _undecided(rng: np.random.Generator, side: np.ndarray) -> Panel:
    """Return three judges who call a tie, two times in three where it is one, one in five otherwise."""
    votes = _alike(rng, side, 3, 0.8, 0.8)
    tie = rng.random(votes.shape) < np.where(side == 0, 0.65, 0.2)[:, None]
    return np.where(tie, 0.0, votes)


WORLDS: dict[str, tuple[Callable[[np.random.Generator, np.ndarray], Panel], float, bool]] = {
    INDEPENDENT: (_independent, 0.6, False),
    "one judge": (_one, 0.6, False),
    "biased": (_biased, 0.6, False),
    "position-biased": (_position, 0.6, False),
    "saturated": (_saturated, 0.6, False),
    "copied": (_copied, 0.6, False),
    "useless": (_useless, 0.6, False),
    "one reversed": (_reversed, 0.6, False),
    "many, hard items in common": (_many, 0.6, False),
    "rare losses": (_independent, 0.9, False),
    "ties": (_undecided, 0.6, True),
}
"""How the judges vote, the share of decided items that A wins, and whether there are ties."""


def draw_world(
    name: str, rng: np.random.Generator, n_items: int, *, grouped: bool = False
) -> World:
    """Return a world of this name; with groups, items of a group tend to have the same winner."""
    voting, rate, ties = WORLDS[name]
    if grouped:  # a Beta rate of each group, with an intraclass correlation of .3
        shared = rng.beta(rate * 7 / 3, (1 - rate) * 7 / 3, -(-n_items // GROUP))
        groups = np.arange(n_items) // GROUP
        won = rng.random(n_items) < shared[groups]
    else:
        groups, won = None, rng.random(n_items) < rate
    tied = ties & (rng.random(n_items) < TIED)
    side = np.where(tied, 0.0, np.where(won, 1.0, -1.0))
    votes = voting(rng, side)
    n_classes = 3 if ties else 2
    index = np.round((votes + 1) * (n_classes - 1) / 2).astype(np.int8)
    cast = Votes(jnp.asarray(index[..., None]), None, None, None, n_classes)
    whole = rate * (1 - TIED) + TIED / 2 if ties else rate
    return World(cast, (side + 1) / 2, groups, whole)
