r"""The votes of one judge on the items of one generator, by label, with a deviation summed out.

A *cell* is a pair of a generator and a judge. Its votes have three numbers of accepted items: of those
labelled valid, of those labelled invalid, and of those without a label. On the logit scale the rates
deviate from what the judge and the generator explain:

.. math::
    \mathrm{accepted}_{ijk} \sim \mathrm{Binomial}(n_{ijk}, \mathrm{logit}^{-1}(b_{ijk} + e_{ijk})),
    \qquad e_{ijk} \sim N(0, \sigma^2) \text{ or } \sigma t_\nu

The deviation is either one for all three numbers of a cell, or one for each. Student's t is a mixture
of normals, so every integral is that of a normal times binomials. It has one maximum, around which
Gauss-Hermite quadrature has an error below 1e-7. It is up to 2e-6 in the log-likelihood of a
saturated cell, and 5e-4 with heavy tails.

With a probability :math:`s_j` all rates of a cell are *odd*: each has a Beta(.1, .1) distribution of its
own, such as those of a judge who calls every item valid.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import betaln
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro.distributions import Distribution, constraints

from judgebayes.models.distributions import log_choose

POINTS = 9
"""Nodes of the quadrature over a normal deviation."""
MORE_POINTS = 15
"""Nodes of the quadrature over the normals of heavy tails, of which some are wide."""
NEWTON = 5
"""Steps to the maximum of the integrand, from that of a normal approximation."""
LARGEST_STEP = 2.0
"""In logits."""
ODD_SHAPE = 0.1
"""The shape of the Beta distribution of odd rates."""


class Deviations(NamedTuple):
    """The distribution of deviations: a mixture of normals around 0, in units of sigma.

    Tuples, because it is a static part of the distribution in compiled code.
    """

    scale: tuple[float, ...]
    weight: tuple[float, ...]
    each: bool
    """Whether each number of a cell has its own deviation."""
    points: int
    """The number of nodes of the quadrature."""


def normal_deviations() -> Deviations:
    """Return normal deviations, one for all numbers of a cell."""
    return Deviations((1.0,), (1.0,), each=False, points=POINTS)


def student_deviations(freedom: float, components: int = 7) -> Deviations:
    """Return deviations with Student's t distribution, one for each number of a cell.

    The t distribution is that of a normal whose precision is Gamma(nu / 2, nu / 2). The components are
    those of the trapezoidal rule in the logarithm of the precision.
    """
    log_precision = np.linspace(-4.6, 1.8, components)
    log_weight = freedom / 2 * (log_precision - np.exp(log_precision))
    weight = np.exp(log_weight - log_weight.max())
    scale = tuple(np.exp(-log_precision / 2).tolist())
    return Deviations(scale, tuple((weight / weight.sum()).tolist()), each=True, points=MORE_POINTS)


class CellVotes(Distribution):  # type: ignore[misc]
    """The numbers of accepted items of each cell. Batch (generator, judge), event (label).

    Parameters
    ----------
    total
        The numbers of items that the judge voted on, by label: valid, invalid, none.
    logits
        The logits b of accepting them.
    sigma
        The spread of the deviations, not 0.
    deviations
        Their distribution in units of sigma.
    log_odds
        The logit of each judge's share of odd cells; no cell is odd if None.
    """

    support = constraints.independent(constraints.nonnegative, 1)
    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "total": constraints.nonnegative,
        "logits": constraints.real_vector,
        "sigma": constraints.positive,
    }
    pytree_data_fields = ("total", "logits", "sigma", "log_odds")
    pytree_aux_fields = ("deviations",)

    def __init__(
        self,
        total: Float[Array, "generator judge label"],
        logits: Float[Array, "generator judge label"],
        sigma: Float[Array, ""],
        deviations: Deviations,
        log_odds: Float[Array, " judge"] | None = None,
    ) -> None:
        self.total, self.logits, self.sigma = total, logits, sigma
        self.deviations, self.log_odds = deviations, log_odds
        super().__init__(batch_shape=logits.shape[:-1], event_shape=logits.shape[-1:])

    def log_prob(self, value: Array) -> Float[Array, "*draw generator judge"]:
        """Return the log-likelihood of each cell."""
        n = self.total.astype(self.logits.dtype)
        count = jnp.clip(value.astype(n.dtype), 0, n)
        ordinary = self._ordinary(*jnp.broadcast_arrays(count, n, self.logits))
        if self.log_odds is not None:
            log_beta = betaln(count + ODD_SHAPE, n - count + ODD_SHAPE)
            odd = (log_beta - betaln(ODD_SHAPE, ODD_SHAPE)).sum(-1)
            ordinary = jnp.logaddexp(
                jax.nn.log_sigmoid(-self.log_odds) + ordinary,
                jax.nn.log_sigmoid(self.log_odds) + odd,
            )
        return ordinary + log_choose(n, count).sum(-1)

    def _ordinary(self, count: Array, n: Array, logits: Array) -> Array:
        """Return the log-likelihood of cells that are not odd, without binomial coefficients."""
        scale, weight, each, points = self.deviations
        if each:
            count, n, logits = (x[..., None] for x in (count, n, logits))

        def at_scale(scale: Array) -> Array:
            return _log_integral(count, n, logits, self.sigma * scale, points)

        by_scale = jax.vmap(at_scale)(jnp.asarray(scale))
        log_weight = jnp.asarray(np.log(weight)).reshape(-1, *[1] * (by_scale.ndim - 1))
        mixed = jax.nn.logsumexp(by_scale + log_weight, axis=0)
        return mixed.sum(-1) if each else mixed

    def sample(
        self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()
    ) -> Int[Array, "*draw generator judge label"]:
        """Draw each cell's deviations and whether it is odd, then the counts."""
        scale, weight, each, _ = self.deviations
        shape = (*sample_shape, *self.logits.shape)
        own = shape if each else (*shape[:-1], 1)
        of_scale, of_normal, of_odd, of_rate, of_count = jax.random.split(key, 5)
        which = jax.random.categorical(of_scale, jnp.log(jnp.asarray(weight)), shape=own)
        normal = jax.random.normal(of_normal, own)
        rate = jax.nn.sigmoid(self.logits + self.sigma * jnp.asarray(scale)[which] * normal)
        if self.log_odds is not None:
            chance = jax.nn.sigmoid(self.log_odds)
            odd = jax.random.bernoulli(of_odd, chance, shape[:-1])[..., None]
            rate = jnp.where(odd, jax.random.beta(of_rate, ODD_SHAPE, ODD_SHAPE, shape), rate)
        counts: Array = dist.Binomial(self.total.astype(int), rate).sample(of_count)
        return counts.astype(int)


def _log_integral(
    count: Float[Array, "*cell number"],
    n: Float[Array, "*cell number"],
    logit: Float[Array, "*cell number"],
    sigma: Float[Array, ""],
    points: int,
) -> Float[Array, "*cell"]:
    """Return the log of the integral of binomials over a deviation sigma z, z ~ Normal(0, 1).

    The nodes are around the maximum of the integrand. Where they are does not change the integral, so
    that they count as constants in derivatives.
    """
    centre, width = _maximum(*jax.lax.stop_gradient((count, n, logit, sigma)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    z = centre[..., None] + width[..., None] * jnp.asarray(nodes)
    at = logit[..., None, :] + sigma * z[..., None]
    # Terms of one sign: at logits of 1e20 a difference would have rounding errors of 1e4.
    for_valid, for_invalid = count[..., None, :], (n - count)[..., None, :]
    both = (for_valid + for_invalid) * jnp.log1p(jnp.exp(-jnp.abs(at)))
    each = -(for_valid * jnp.maximum(-at, 0) + for_invalid * jnp.maximum(at, 0) + both).sum(-1)
    log_weight = jnp.asarray(np.log(weights / weights.sum()) + nodes**2 / 2)
    return jnp.log(width) + jax.nn.logsumexp(each - z**2 / 2 + log_weight, axis=-1)


def _maximum(count: Array, n: Array, logit: Array, sigma: Array) -> tuple[Array, Array]:
    """Return the maximum of the integrand over z, and the standard deviation of a normal there."""
    share = (count + 0.5) / (n + 1)
    weight = n * share * (1 - share)
    pull = (weight * (jnp.log(share) - jnp.log1p(-share) - logit)).sum(-1)
    z = sigma * pull / (1 + sigma**2 * weight.sum(-1))

    def derivatives(z: Array) -> tuple[Array, Array]:
        p = jax.nn.sigmoid(logit + sigma * z[..., None])
        return sigma * (count - n * p).sum(-1) - z, 1 + sigma**2 * (n * p * (1 - p)).sum(-1)

    for _ in range(NEWTON):
        slope, curvature = derivatives(z)
        z = z + jnp.clip(slope / curvature, -LARGEST_STEP / sigma, LARGEST_STEP / sigma)
    return z, 1 / jnp.sqrt(derivatives(z)[1])
