"""Simulated items in programs: generators whose outputs for one program tend to be valid together.

The judges are those of `audit_regimes`: weak ones, whose impressions follow a generator's quality, or
strong ones, whose rates the generators shift. A program has an effect on the validity of every output
for it, a part of which all generators share. A generator's share on new programs is the mean over
programs, which quadrature gives.
"""

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, logit

from judgebayes.votes import Votes

GENERATORS, JUDGES = 6, 8
EFFECT = 1.5
"""Standard deviation of a program's effect on the logit of validity."""
SHARED = 0.5
"""The part of that variance that all generators share."""
MORE_OUTPUTS = 1.7
"""A generator has one output for a program, and a Poisson number of this mean more."""
DIFFICULTY = 1.0
FLATTER = float(np.sqrt(1 + 0.346 * DIFFICULTY**2))
"""Makes a rate's mean over difficulties about the rate itself."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)

Kind = Literal["weak", "strong"]


@dataclass(frozen=True)
class Items:
    """Votes on the outputs of several generators, with all labels, in programs."""

    votes: Votes
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    program: Int[np.ndarray, " item"]
    truth: Float[np.ndarray, " generator"]
    """The share of valid outputs among new programs; that of the population that was resampled."""

    @property
    def these(self) -> Float[np.ndarray, " generator"]:
        """The share of valid outputs among these."""
        return np.bincount(self.generator, weights=self.labels) / np.bincount(self.generator)


def simulated(kind: Kind, seed: int, programs: int) -> Items:
    """Return the outputs of one simulated world."""
    rng = np.random.default_rng((seed, kind == "weak", programs))
    g = expit(rng.normal(2.6, 0.35, GENERATORS)) if kind == "weak" else rng.uniform(0.6, 0.9, 6)
    eta = _logit_of_mean(g)
    outputs = 1 + rng.poisson(MORE_OUTPUTS, (GENERATORS, programs))
    generator = np.repeat(np.arange(GENERATORS), outputs.sum(1))
    program = np.concatenate([np.repeat(np.arange(programs), row) for row in outputs])
    shared, own = rng.normal(0, 1, programs), rng.normal(0, 1, (GENERATORS, programs))
    effect = EFFECT * (np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * own)
    valid = rng.random(len(generator)) < expit(eta[generator] + effect[generator, program])
    on_valid, on_invalid = _rates(kind, g, rng)
    at = np.where(valid[:, None], on_valid[generator], on_invalid[generator])
    difficulty = rng.normal(0, DIFFICULTY, (len(generator), 1))
    accepted = rng.random(at.shape) < expit(FLATTER * at + difficulty)
    return Items(as_votes(accepted), valid.astype(int), generator, program, g)


def resampled(items: Items, programs: Int[np.ndarray, " drawn"]) -> Items:
    """Return the outputs for these programs; one that is drawn twice counts as two programs."""
    by_program = [np.flatnonzero(items.program == p) for p in range(items.program.max() + 1)]
    at = np.concatenate([by_program[p] for p in programs])
    new = np.repeat(np.arange(len(programs)), [len(by_program[p]) for p in programs])
    votes = items.votes.take(at)
    return Items(votes, items.labels[at], items.generator[at], new, items.truth)


def as_votes(accepted: np.ndarray) -> Votes:
    """Return votes from what each judge (column) says of each item (row)."""
    return Votes(jnp.asarray(accepted.astype(np.int8)[..., None]), None, None, None, 2)


def _rates(
    kind: Kind, g: Float[np.ndarray, " generator"], rng: np.random.Generator
) -> Float[np.ndarray, "2 generator judge"]:
    """Return the logits of accepting valid and invalid outputs."""
    cell = rng.normal(0, 0.1, (2, GENERATORS, JUDGES))
    if kind == "strong":
        youden = rng.uniform(0.5, 0.8, JUDGES)
        false = np.minimum(rng.uniform(0.05, 0.2, JUDGES), 0.97 - youden)
        shift = rng.normal(0, 0.2, (2, GENERATORS, 1))
        return np.stack([logit(youden + false), logit(false)])[:, None] + shift + cell
    know = expit(logit(rng.uniform(0.05, 0.35, JUDGES)) + rng.normal(0, 0.4, (GENERATORS, 1)))
    follow = logit(g) + rng.normal(0, 0.2, GENERATORS)
    accept = expit(rng.normal(0.4, 0.4, JUDGES) + follow[:, None])
    return logit(np.stack([know + (1 - know) * accept, (1 - know) * accept])) + cell


def _logit_of_mean(g: Float[np.ndarray, " generator"]) -> Float[np.ndarray, " generator"]:
    """Return the logits whose mean probabilities over programs are these."""
    at = np.linspace(-8, 12, 2001)
    mean = expit(at[:, None] + EFFECT * NODES) @ (WEIGHTS / WEIGHTS.sum())
    return np.interp(g, mean, at)
