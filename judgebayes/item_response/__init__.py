"""Abilities of judges and difficulties of items: a 2PL item response model (P2, section 2.5).

It is a diagnostic of the panel, not an aggregator, because it uses the labels of its items. The joint
mode is found by damped Newton steps. This package may not import `panel` or any package after it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Labels, LogProbs, Scalar
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.optimise import Newton, Point, State, Trial, positive_step
from judgebayes.inference.problem import Problem, Sites, one_draw
from judgebayes.models.base import PanelData, noise_matrix
from judgebayes.models.irt import ItemResponseModel, ItemResponsePrior, Parameters, link
from judgebayes.votes.array import MISSING, Votes

MAX_STEPS = 500
TOLERANCE = 1e-6


def joint_mode(
    given: "ResponseEvidence", prior: ItemResponsePrior, begin: Parameters | None = None
) -> tuple[Parameters, Int[Array, ""]]:
    """Return the joint mode of all parameters, by damped Newton steps.

    If a step with the exact curvature does not descend, the expected curvature (Fisher information) is
    used, with which a sufficiently damped step always descends. With label noise, the curvature is
    that for fixed class probabilities, which is at least that of the objective (as in EM): steps
    descend, but more slowly the less the votes determine the true class.
    """

    def propose(state: State) -> Trial:
        step = given.step(state.at, prior, state.damping, 1.0 - state.failed)
        return jax.tree.map(jnp.add, state.at.x, step), -np.inf, 0.0

    newton = Newton(lambda p: given.visit(p, prior), propose, TOLERANCE, MAX_STEPS)
    start = given.begin(prior) if begin is None else begin
    end, status = newton.run(newton.resume(given.visit(start, prior)))
    mode: Parameters = end.x
    return mode, status


class ResponseEvidence(NamedTuple):
    """The votes of all judges on labelled items, possibly missing, by counts.

    In Newton's steps the items' 2 x 2 blocks are eliminated, so that a step solves a J x J system.
    """

    votes: Float[Array, "item judge class"]
    """How many votes of each judge are for each class."""
    log_error: LogProbs
    """log p(observed label | true class)."""
    weight: ItemValues
    """0 where the label is unknown."""

    def joint(self, logits: Float[Array, "item judge"]) -> LogProbs:
        """Return log p(votes, label | true class), up to a term that all classes share."""
        each = logits + np.log(self.votes.shape[-1] - 1)
        return self.log_error + jnp.einsum("ijk,ij->ik", self.votes, each)

    def log_likelihood(self, logits: Float[Array, "item judge"]) -> Float[Array, ""]:
        """Return the log-likelihood of votes and labels, true classes summed out, up to a constant."""
        shared = (self.votes.sum(2) * jnp.logaddexp(0.0, logits)).sum(1)
        each = jax.nn.logsumexp(self.joint(logits), axis=1) - shared
        return jnp.sum(self.weight * each)

    def begin(self, prior: ItemResponsePrior) -> Parameters:
        """Return a start: log-odds of the shares of right votes."""
        right, trials = self._right(jnp.zeros(self.votes.shape[:2])), self._trials()
        of_judges, of_items = (
            jax.scipy.special.logit((right.sum(axis) + 1) / (trials.sum(axis) + 2))
            for axis in (0, 1)
        )
        return Parameters(
            of_judges - of_judges.mean(),
            -of_items,
            jnp.full(of_items.shape, prior.log_discrimination[0]),
        )

    def visit(self, p: Parameters, prior: ItemResponsePrior) -> Point:
        """Return value and gradient, with its largest component as the gap."""

        def value(p: Parameters) -> Float[Array, ""]:
            return _negative_log_prior(p, prior) - self.log_likelihood(link(p))

        at, gradient = jax.value_and_grad(value)(p)
        return Point(p, at, jnp.stack([jnp.abs(g).max() for g in gradient]).max(), gradient)

    def step(
        self, at: Point, prior: ItemResponsePrior, damping: Scalar, exact: Scalar
    ) -> Parameters:
        """Return the damped Newton step, NaN where the curvature is not positive definite."""
        curvature = self.curvature(at.x, prior, exact)
        of_items = jnp.stack(at.gradient[1:], 1)
        ability, items = arrow_step(*curvature, at.gradient.ability, of_items, damping)
        return Parameters(ability, items[:, 0], items[:, 1])

    def _trials(self) -> Float[Array, "item judge"]:
        return self.weight[:, None] * self.votes.sum(2)

    def _right(self, logits: Float[Array, "item judge"]) -> Float[Array, "item judge"]:
        """Return the expected number of right votes over the possible true classes."""
        classes = self.weight[:, None] * jax.nn.softmax(self.joint(logits), axis=1)
        return jnp.einsum("ijk,ik->ij", self.votes, classes)

    def curvature(
        self, p: Parameters, prior: ItemResponsePrior, exact: Scalar
    ) -> tuple[
        Float[Array, " judge"], Float[Array, "item two judge"], Float[Array, "item two two"]
    ]:
        """Return the Hessian, or with exact = 0 its expectation, as `arrow_step` takes it."""
        a = jnp.exp(p.log_discrimination)[:, None]
        logits = link(p)
        trials = self._trials()
        chance = jax.nn.sigmoid(logits)
        error = exact * (trials * chance - self._right(logits))
        spread = trials * chance * (1 - chance)
        cross = spread * logits + error
        inner = jnp.stack(
            [
                (a**2 * spread).sum(1) + 1 / prior.difficulty[1] ** 2,
                -(a * cross).sum(1),
                (cross * logits).sum(1) + 1 / prior.log_discrimination[1] ** 2,
            ]
        )
        return (
            (a**2 * spread).sum(0) + 1,
            jnp.stack([-(a**2) * spread, a * cross], 1),
            jnp.stack([inner[:2], inner[1:]], 1).transpose(2, 0, 1),
        )


@jit_inline()
def evidence(
    votes: Int[Array, "item judge class"],
    labels: ItemCodes,
    weight: ItemValues,
    noise: Scalar = 0.0,
) -> ResponseEvidence:
    """Return counts of votes with labels, of which a known share is wrong."""
    error = jnp.log(noise_matrix(noise, votes.shape[-1]))[:, jnp.maximum(labels, 0)].T
    return ResponseEvidence(votes.astype(weight.dtype), error, jnp.where(labels >= 0, weight, 0.0))


def block_inverses(
    block: Float[Array, "block two two"], damping: Scalar
) -> Float[Array, "block two two"]:
    """Return the inverses of damped 2 x 2 blocks."""
    (a, b), (_, c) = jnp.moveaxis(block + damping * jnp.eye(2), 0, 2)
    return jnp.moveaxis(jnp.array([[c, -b], [-b, a]]) / (a * c - b**2), 2, 0)


def arrow_step(
    diagonal: Float[Array, " outer"],
    cross: Float[Array, "block two outer"],
    block: Float[Array, "block two two"],
    outer: Float[Array, " outer"],
    inner: Float[Array, "block two"],
    damping: Scalar,
) -> tuple[Float[Array, " outer"], Float[Array, "block two"]]:
    r"""Return the damped Newton step, from the two parts of the gradient, for an arrowhead curvature.

    .. math:: B = \begin{pmatrix} \mathrm{diag}(o) & C^T \\ C & \mathrm{blocks} \end{pmatrix}

    Its inner blocks are coupled through the outer parameters only. They are eliminated (Schur
    complement), which leaves a system in the outer parameters. The step is NaN where that is not
    positive definite.
    """
    inverse = block_inverses(block, damping)
    solved, scaled_gradient = inverse @ cross, inverse @ inner[..., None]
    flat = cross.reshape(-1, len(outer))
    reduced = jnp.diag(diagonal) - flat.T @ solved.reshape(flat.shape)
    step = positive_step(reduced, outer - flat.T @ scaled_gradient.reshape(-1), damping)
    return step, -(scaled_gradient[..., 0] + solved @ step)


def _negative_log_prior(p: Parameters, prior: ItemResponsePrior) -> Float[Array, ""]:
    """Return the negative log-density of the priors, up to a constant."""
    total = jnp.sum(p.ability**2)
    for values, (location, scale) in zip(p[1:], prior, strict=True):
        total += jnp.sum(((values - location) / scale) ** 2)
    return 0.5 * total


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ItemResponse(JaxMethod):
    """Fit the 2PL model to whether votes are right.

    Parameters
    ----------
    prior
        Priors of difficulties and log-discriminations.
    inference
        None for the joint mode of all parameters (fast at any size; difficulties of items with few
        votes are shrunk), or `NUTS()` for draws (small sets).
    label_noise
        The known share e of the labels that are wrong, any other class alike: the true class is
        summed out (`judgebayes.models.irt`). Without it, a wrong label looks like an item on which
        able judges do worst, and shrinks the differences between abilities.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.ItemResponse().fit(votes, labels)
    >>> print(fit.mean("ability").round(1))
    [ 0.8  0.3 -0.4]
    """

    prior: ItemResponsePrior = field(default_factory=ItemResponsePrior)
    inference: NUTS | None = None
    label_noise: float = 0.0

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        votes, labels, weight, key = data
        if self.inference is None:
            given = evidence(votes.counts(), labels, weight, self.label_noise)
            mode, status = joint_mode(given, self.prior)
            return Fit(self, one_draw(mode._asdict()), status)
        result = self.inference.solve(self.problem(votes, labels, weight), key)
        return Fit(self, result.draws, result.status, chains=result.chains)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for NUTS: the program with these data, and its likelihood by counts."""
        index = jnp.maximum(jnp.asarray(votes.index, int), MISSING)
        data = PanelData(index, jnp.asarray(labels), weight)
        given = evidence(
            votes.counts(),
            data.labels,
            jnp.ones(votes.n_items) if weight is None else weight,
            self.label_noise,
        )

        def likelihood(sites: Sites) -> Float[Array, ""]:
            return given.log_likelihood(link(Parameters(**sites)))

        program = ItemResponseModel(votes.n_classes, self.prior, self.label_noise)
        return Problem(program, data, log_likelihood=likelihood)


__all__ = ["ItemResponse"]
