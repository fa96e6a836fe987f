r"""P3's own estimation procedure (its eqs 6 and 7), as printed and as evidently meant.

Given r items with S_i of k votes correct, and p_i = S_i / k,

.. math::
    \gamma_1^i &= \frac{w\,\mathrm{Beta}(p_i | \alpha_1, \beta_1)}
    {w\,\mathrm{Beta}(p_i | \alpha_1, \beta_1) + (1 - w)\,\mathrm{Beta}(p_i | \alpha_2, \beta_2)} \\
    \alpha_j' &= \sum_i \gamma_j^i S_i, \quad
    \beta_j' = \sum_i \gamma_j^i (k - S_i), \quad w' = \tfrac{1}{r} \sum_i \gamma_1^i .

Equation 7 is printed with gamma_1 for both j, which gives both components the same parameters:
the mixture is then a single Beta-Binomial with alpha + beta about w r k, a Binomial in effect
(`"printed"`). With gamma_j it is a clustering of the items into two Binomials (`"intended"`).
Neither is EM for eq 4: the responsibilities use the density of p_i and not the probability of S_i,
and alpha, beta are sums of counts, so that they grow with r instead of settling.

What the paper leaves open, and our choices: the Beta density is 0 or infinite at p = 0 and 1, so p
is moved into [e, 1 - e], e = `edge` / k; the start puts every item with a wrong majority into
component 1 (as printed, half of every item: there w stays where it starts); a component that no vote
supports keeps `floor` as alpha or beta, as its density would otherwise not exist (all S = k, say);
iteration ends when no parameter moves by more than 1e-8 of itself.
"""

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln
from jaxtyping import Array, Float, PRNGKeyArray

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.status import Status, when, worst
from judgebayes.majority.counts import Counts, labelled, prepared
from judgebayes.majority.distribution import FittedDistribution
from judgebayes.models.beta_binomial import Parameters

__all__ = ["PaperEM"]

State = tuple[Float[Array, ""], Float[Array, " component"], Float[Array, " component"]]
SETTLED = 1e-8


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PaperEM:
    """Fit the mixture by equations 6 and 7 of P3.

    Parameters
    ----------
    variant
        `"intended"` uses gamma_j for component j, `"printed"` gamma_1 for both.
    edge
        How far p = S / k stays from 0 and 1, in votes.
    floor
        The least alpha and beta.
    max_steps
        The most iterations.
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
        key: PRNGKeyArray | None = None,
    ) -> FittedDistribution:
        """Return the mixture that the iteration settles on; hard items first.

        `objective` is NaN: the iteration minimises nothing.
        """
        counts, weights, _ = prepared(counts, weight, key)
        return _fit(self, counts, weights)


@jax.jit
def _fit(method: PaperEM, counts: Counts, weight: Float[Array, " item"]) -> FittedDistribution:
    own = labelled(counts, weight)
    given = jnp.maximum(counts.given, 1).astype(own.dtype)
    s = jnp.clip(counts.correct, 0, counts.given).astype(own.dtype)
    edge = method.edge / given
    p = jnp.clip(s / given, edge, 1 - edge)
    total = jnp.maximum(own.sum(), 1e-300)

    def update(gamma: Float[Array, " item"]) -> State:
        first, second = own * gamma, own * (1 - gamma)
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

    def moving(loop: tuple[State, Array, Array]) -> Array:
        _, step, change = loop
        return (step < method.max_steps) & (change > SETTLED)

    def advance(loop: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, step, _ = loop
        new = update(responsibility(state))
        moved = [
            jnp.max(jnp.abs(a - b) / (jnp.abs(b) + 1e-12)) for a, b in zip(new, state, strict=True)
        ]
        return new, step + 1, jnp.stack(moved).max()

    hard = jnp.where(2 * s < given, 1.0, 0.0)
    start = update(0.5 * jnp.ones_like(hard) if method.variant == "printed" else hard)
    (w, alpha, beta), _, change = jax.lax.while_loop(
        moving, advance, (start, jnp.asarray(0), jnp.asarray(jnp.inf, own.dtype))
    )
    theta = Parameters(jnp.stack([w, 1 - w]), alpha / (alpha + beta), 1 / (alpha + beta))
    order = jnp.argsort(theta.mean)
    status = worst(
        when(change > SETTLED, Status.MAX_STEPS), when(own.sum() == 0, Status.DEGENERATE)
    )
    none = jnp.asarray(jnp.nan)
    draw = jax.tree.map(lambda x: x[order][None], theta)
    return FittedDistribution(draw, status, none, none, None, counts.most)
