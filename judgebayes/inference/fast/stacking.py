"""The normal prior of stacking's parameters given tau, as its Laplace approximation uses it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.models.stacking import Form, Prior

__all__ = ["prior_precision"]

Scalar = float | Float[Array, ""]


def prior_precision(
    tau: Scalar, direction: Float[Array, " judge"], prior: Prior, form: Form
) -> tuple[Float[Array, "parameter parameter"], Float[Array, ""]]:
    """Return the inverse of the prior covariance given tau, and its log-determinant."""
    scale = {name: jnp.full(shape, tau) for name, shape in form.blocks().items()}
    for name in scale.keys() & {"offset", "level"}:
        scale[name] = jnp.full(scale[name].shape, getattr(prior, name))
    flat = form.join(scale)
    along = jnp.zeros(flat.shape[0]).at[: form.n_judges].set(direction)
    length = direction @ direction
    shrunk = prior.kappa / (1 + prior.kappa * length) * jnp.outer(along, along)
    precision = (jnp.eye(flat.shape[0]) - shrunk) / jnp.outer(flat, flat)
    return precision, -2 * jnp.log(flat).sum() - jnp.log1p(prior.kappa * length)
