r"""P3's estimation procedure (its eqs 6 and 7), as printed and as probably intended.

Given r items with S_i of k votes correct, and p_i = S_i / k,

.. math::
    \gamma_1^i &= \frac{w\,\mathrm{Beta}(p_i | \alpha_1, \beta_1)}
    {w\,\mathrm{Beta}(p_i | \alpha_1, \beta_1) + (1 - w)\,\mathrm{Beta}(p_i | \alpha_2, \beta_2)} \\
    \alpha_j' &= \sum_i \gamma_j^i S_i, \quad
    \beta_j' = \sum_i \gamma_j^i (k - S_i), \quad w' = \tfrac{1}{r} \sum_i \gamma_1^i .

Equation 7 is printed with gamma_1 for both j, which gives both components the same parameters. The
mixture is then a single Beta-Binomial with alpha + beta about w r k, in effect a Binomial
(`"printed"`). With gamma_j the procedure clusters the items into two Binomials (`"intended"`).
Neither is EM for eq 4: the responsibilities use the density of p_i instead of the probability of S_i,
and alpha and beta are sums of counts, so they grow with r instead of converging.

Our choices, which the paper leaves open: the Beta density is 0 or infinite at p = 0 and 1, so p is
clipped to [e, 1 - e], e = `edge` / k. The start puts every item with a wrong majority into component 1
(as printed: half of every item, and w keeps its start value). A component without correct (or wrong)
votes has `floor` as alpha (or beta), since its density would otherwise not exist. The iteration ends
when no parameter changes by more than 1e-8 of its value.
"""

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln
from jaxtyping import Array, Float

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.inference.status import Status, when, worst
from judgebayes.majority.counts import Counts, labelled_weight, prepare
from judgebayes.majority.distribution import BetaBinomial, FittedDistribution
from judgebayes.models.beta_binomial import Parameters

State = tuple[Float[Array, ""], Float[Array, " component"], Float[Array, " component"]]
TOLERANCE = 1e-8


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PaperEM:
    """Fit the mixture by equations 6 and 7 of P3.

    Parameters
    ----------
    variant
        `"intended"` uses gamma_j for component j, `"printed"` gamma_1 for both.
    edge
        The least distance of p = S / k from 0 and 1, in votes.
    floor
        The lower bound of alpha and beta.
    max_steps
        The maximal number of iterations.
    """

    variant: Literal["intended", "printed"] = field(default="intended", metadata={"static": True})
    edge: float = 0.5
    floor: float = 1e-3
    max_steps: int = field(default=500, metadata={"static": True})

    @in_float64
    def fit(
        self,
        counts: Counts,
        *,
        weight: Float[AnyArray, " item"] | None = None,
    ) -> FittedDistribution:
        """Return the mixture to which the iteration converges; hard items first."""
        return _fit(self, *prepare(counts, weight))


Distribution = Binomial | BetaBinomial | PaperEM
"""The estimators of the distribution of correct votes."""


@jax.jit
def _fit(method: PaperEM, counts: Counts, weight: Float[Array, " item"]) -> FittedDistribution:
    item_weight = labelled_weight(counts, weight)
    given = jnp.maximum(counts.given, 1).astype(item_weight.dtype)
    s = jnp.clip(counts.correct, 0, counts.given).astype(item_weight.dtype)
    edge = method.edge / given
    p = jnp.clip(s / given, edge, 1 - edge)
    total = jnp.maximum(item_weight.sum(), 1e-300)

    def update(gamma: Float[Array, " item"]) -> State:
        first, second = item_weight * gamma, item_weight * (1 - gamma)
        both = jnp.stack([first, first if method.variant == "printed" else second])
        alpha, beta = both @ s, both @ (given - s)
        return (
            first.sum() / total,
            jnp.maximum(alpha, method.floor),
            jnp.maximum(beta, method.floor),
        )

    def responsibility(state: State) -> Float[Array, " item"]:
        w, alpha, beta = state
        density = (
            (alpha - 1) * jnp.log(p)[:, None]
            + (beta - 1) * jnp.log1p(-p)[:, None]
            - betaln(alpha, beta)
        )
        return jax.nn.softmax(density + jnp.log(jnp.stack([w, 1 - w])), axis=-1)[:, 0]

    def not_converged(loop: tuple[State, Array, Array]) -> Array:
        _, step, change = loop
        return (step < method.max_steps) & (change > TOLERANCE)

    def advance(loop: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, step, _ = loop
        new = update(responsibility(state))
        changes = [
            jnp.max(jnp.abs(a - b) / (jnp.abs(b) + 1e-12)) for a, b in zip(new, state, strict=True)
        ]
        return new, step + 1, jnp.stack(changes).max()

    hard = jnp.where(2 * s < given, 1.0, 0.0)
    start = update(0.5 * jnp.ones_like(hard) if method.variant == "printed" else hard)
    (w, alpha, beta), _, change = jax.lax.while_loop(
        not_converged, advance, (start, jnp.asarray(0), jnp.asarray(jnp.inf, item_weight.dtype))
    )
    theta = Parameters(jnp.stack([w, 1 - w]), alpha / (alpha + beta), 1 / (alpha + beta))
    order = jnp.argsort(theta.mean)
    status = worst(
        when(change > TOLERANCE, Status.MAX_STEPS), when(item_weight.sum() == 0, Status.DEGENERATE)
    )
    draws = {name: x[order][None] for name, x in theta._asdict().items()}
    return FittedDistribution(method, draws, status, most=counts.most)
