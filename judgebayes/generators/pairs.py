r"""Pairs of generator and judge: a judge either knows an item's label or votes by its impression.

Judge j, shown an item of generator i, *knows* with probability :math:`k_{ij}` whether it is valid.
Otherwise it votes by its *impression* of the generator's work, and calls the item valid with
probability :math:`q_{ij}`:

.. math::
    \mathrm{TPR}_{ij} &= k_{ij} + (1 - k_{ij}) q_{ij}, \qquad
    1 - \mathrm{TNR}_{ij} = (1 - k_{ij}) q_{ij} \\
    P_{ij} &= k_{ij} g_i + (1 - k_{ij}) q_{ij} \\
    \mathrm{logit}\,k_{ij} &= \kappa_j + u_i, \qquad
    \mathrm{logit}\,q_{ij} = a_j + \lambda \eta_i + d_i, \qquad \eta_i = \mathrm{logit}\,g_i

k is Youden's index. For judges who know (k near 1) this is Rogan and Gladen's correction. For judges who
know nothing and whose impressions follow quality (k = 0, lambda = 1) it is exactly a logit shift, with a
deviation :math:`d_i \sim N(0, \sigma_d^2)` of each generator. In between, the labels decide.

The deviations d and u belong to a generator and are common to all of its judges. Judges who read the
same items make correlated errors, about the items and about the generator's style; these deviations,
which do not average out over judges, represent both.
"""

from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.arrays import Scalar
from judgebayes.generators.counts import PrecisionCounts


def impressions(
    a: Float[Array, " judge"],
    kappa: Float[Array, " judge"],
    eta: Float[Array, " generator"],
    impression: Float[Array, " generator"],
    u: Float[Array, " generator"],
) -> tuple[Array, Array, Array]:
    """Return the logits of accepting by impression, of knowing, and of g, for every cell."""
    own = jnp.zeros((len(eta), len(a)))
    return own + a + impression[:, None], own + kappa + u[:, None], own + eta[:, None]


def vote_logits(
    accept: Float[Array, "generator judge"],
    know: Float[Array, "generator judge"],
    quality: Float[Array, "generator judge"],
) -> Float[Array, "3 generator judge"]:
    r"""Return the logits of accepting a valid item, an invalid item, and an item without a label.

    .. math::
        k + (1 - k) q, \qquad (1 - k) q, \qquad k g + (1 - k) q

    where `accept`, `know` and `quality` are the logits of q, k and g. All sums are of logarithms, so
    that no rate rounds to 0 or 1.
    """
    q, q1 = jax.nn.log_sigmoid(accept), jax.nn.log_sigmoid(-accept)
    k, k1 = jax.nn.log_sigmoid(know), jax.nn.log_sigmoid(-know)
    g, g1 = jax.nn.log_sigmoid(quality), jax.nn.log_sigmoid(-quality)
    on_valid = jnp.logaddexp(k, k1 + q) - (k1 + q1)
    on_invalid = (k1 + q) - jnp.logaddexp(k, k1 + q1)
    on_any = jnp.logaddexp(k + g, k1 + q) - jnp.logaddexp(k + g1, k1 + q1)
    return jnp.stack([on_valid, on_invalid, on_any])


_Search = tuple[Array, Array, Array, tuple[Array, Array, Array]]


def vote_slopes(accept: Array, know: Array, eta: Array) -> Float[Array, "input 3 generator judge"]:
    """Return the derivatives of `vote_logits` in its three inputs."""
    along = jnp.broadcast_to(jnp.eye(3)[:, :, None, None], (3, 3, *accept.shape))
    return jax.vmap(lambda step: jax.jvp(vote_logits, (accept, know, eta), tuple(step))[1])(along)


def margins(pairs: Float[Array, "input generator judge"]) -> Float[Array, " margin"]:
    """Return sums by judge for accept and know, then by generator for accept, know and eta."""
    by_judge, by_generator = pairs[:2].sum(1), pairs.sum(2)
    return jnp.concatenate([by_judge.ravel(), by_generator.ravel()])


def row_margins(
    pairs: Float[Array, "input generator judge"],
) -> Float[Array, "generator margin"]:
    """Return the margins of each generator's row alone."""
    g = pairs.shape[1]
    own = [jnp.diag(total) for total in pairs.sum(2)]
    return jnp.concatenate([pairs[0], pairs[1], *own], axis=1).reshape(g, -1)


def margin_matrix(
    weight: Float[Array, "input input generator judge"],
) -> Float[Array, "margin margin"]:
    """Return the normal matrix of the margins, from the weights of each pair's inputs."""
    two, three = range(2), range(3)
    judges = [[jnp.diag(weight[a, b].sum(0)) for b in two] for a in two]
    mixed = [[weight[a, b].T for b in three] for a in two]
    generators = [[jnp.diag(weight[a, b].sum(1)) for b in three] for a in three]
    upper = [[*judges[a], *mixed[a]] for a in two]
    lower = [[mixed[0][a].T, mixed[1][a].T, *generators[a]] for a in three]
    return jnp.block([*upper, *lower])


class Pairs(ABC):
    """The parameters of generators and judges as a vector, their prior, and the search for the mode.

    In order: a and kappa of the judges; eta, d and u of the generators; lambda, and the means of a,
    kappa and eta.
    """

    def __init__(self, counts: PrecisionCounts, prior: Any) -> None:
        self.prior = prior
        self.generators, self.judges = counts.accepted.shape
        rates = counts.rates()
        self.youden = rates.tpr + rates.tnr - 1
        self.accepted = jnp.stack([counts.true_accepted, counts.false_accepted, counts.accepted])
        self.judged = jnp.stack([counts.valid_judged, counts.invalid_judged, counts.judged])
        self.eta = slice(2 * self.judges, 2 * self.judges + self.generators)

    @abstractmethod
    def evaluate(self, x: Array, *at: Any) -> tuple[Array, Array, Array]:
        """Return minus twice the log posterior, half its negative gradient, and its information."""

    def inputs(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the logits of accepting and of knowing, and eta, of every pair."""
        g, j = self.generators, self.judges
        a, kappa, eta, d, u, centres = jnp.split(x, np.cumsum([j, j, g, g, g]))
        return impressions(a, kappa, eta, centres[0] * eta + d, u)

    def lift(self, margins: Float[Array, "*rows margin"], x: Array) -> Array:
        """Return derivatives in the parameters from those in (a, kappa, lambda eta + d, u, eta)."""
        g, j = self.generators, self.judges
        centres, eta = x[-4:], x[self.eta]
        judges, shift, u, own = jnp.split(margins, np.cumsum([2 * j, g, g]), axis=-1)
        slope = (shift @ eta)[..., None]
        none = jnp.zeros((*margins.shape[:-1], 3))
        return jnp.concatenate([judges, own + centres[0] * shift, shift, u, slope, none], axis=-1)

    def start(self) -> Array:
        """Return where the search starts."""
        p, g, j = self.prior, self.generators, self.judges
        parts = [jnp.full(j, 0.3), jnp.full(j, p.knowledge[0]), jnp.full(g, p.quality[0])]
        centres = jnp.array([0.5, 0.3, p.knowledge[0], p.quality[0]])
        return jnp.concatenate([*parts, jnp.zeros(2 * g), centres])

    def prior_rows(self, slope: tuple[Scalar, Scalar], d: Scalar, u: Scalar) -> tuple[Array, Array]:
        """Return R and c of the standardised prior residuals R x - c."""
        p, g, j = self.prior, self.generators, self.judges
        size = 2 * j + 3 * g + 4
        means = [slope, p.impression, p.knowledge, p.quality]
        scale = jnp.concatenate(
            [
                jnp.full(2 * j, 1 / p.judge_spread),
                jnp.full(g, 1 / p.quality_spread),
                jnp.full(g, 1.0) / d,
                jnp.full(g, 1.0) / u,
                1 / jnp.array([m[1] for m in means]),
            ]
        )
        pull = np.zeros((size, size))
        pull[:j, size - 3] = pull[j : 2 * j, size - 2] = pull[self.eta, size - 1] = -1
        centre = jnp.zeros(size).at[-4:].set(jnp.stack([jnp.asarray(m[0]) for m in means]))
        return scale[:, None] * (jnp.eye(size) + pull), scale * centre

    def solve(self, x: Array, steps: int, *at: Any) -> tuple[Array, Array, Array, Array]:
        """Return the mode, its information, minus twice the log posterior, and the next step."""

        def step(state: _Search, _: None) -> tuple[_Search, Array]:
            x, move, damping, old = state
            new = self.evaluate(x + move, *at)
            better = new[0] <= old[0] + 1e-10 * jnp.abs(new[0])
            x = jnp.where(better, x + move, x)
            chi, gradient, normal = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)
            damping = jnp.where(better, damping * 0.1, damping * 10)
            damped = normal + damping * jnp.diag(jnp.diag(normal))
            move = jax.scipy.linalg.solve(damped, gradient, assume_a="pos")
            return (x, move, damping, (chi, gradient, normal)), jnp.abs(move)

        size = len(x)
        none = jnp.asarray(jnp.inf), jnp.zeros(size), jnp.eye(size)
        first = (x, jnp.zeros(size), jnp.asarray(1e-2), none)
        (x, _, _, (chi, _, normal)), moves = jax.lax.scan(step, first, None, length=steps + 1)
        return x, normal, chi, moves[-1]

    def laplace(self, x: Array, steps: int, *at: Any) -> tuple[Array, Array, Array, Array]:
        """Return mean and covariance of eta, the log evidence given the spreads, and the next step."""
        mode, normal, chi, move = self.solve(x, steps, *at)
        root = jnp.linalg.cholesky(normal)
        evidence = -0.5 * chi - jnp.log(jnp.diag(root)).sum()
        inverse = jax.scipy.linalg.cho_solve((root, True), jnp.eye(len(mode)))
        return mode[self.eta], inverse[self.eta, self.eta], evidence, move
