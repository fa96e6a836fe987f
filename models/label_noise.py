"""Label noise: a known share of the labels is wrong, any other class alike.

An observed label z is the true class y with probability 1 - e and each other class with probability
e / (K - 1)::

    p(z) = sum_y p(y) p(z | y),   p(y | z) = p(y) p(z | y) / p(z)
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Scalar = float | Float[Array, ""]


def noise_matrix(noise: Scalar, n_classes: int) -> Float[Array, "class label"]:
    """Return p(observed label | true label): 1 - noise on the diagonal, equal elsewhere."""
    other = jnp.asarray(noise) / (n_classes - 1)
    return jnp.where(jnp.eye(n_classes, dtype=bool), 1 - noise, other)


@partial(jax.jit, inline=True)
def with_label_noise(
    log_probs: Float[Array, "item class"], noise: Scalar
) -> Float[Array, "item label"]:
    """Return the log-probabilities of the observed labels, given those of the true labels."""
    error = jnp.log(noise_matrix(noise, log_probs.shape[-1]))
    return jax.nn.logsumexp(log_probs[:, :, None] + error, axis=1)


def class_given_label(
    log_class: Float[Array, "item class"],
    labels: Int[Array, " item"],
    labelled: Bool[Array, " item"],
    noise: Scalar,
) -> Float[Array, "item class"]:
    """Return log p(y | z) of every item, and log p(y) where its label is unknown.

    For an impossible label, p(z) = 0, the posterior is undefined. log p(z | y) is returned instead,
    which is finite for some y, so that the item's log-probability is minus infinity and not NaN.
    """
    error = jnp.log(noise_matrix(noise, log_class.shape[-1]))[:, labels].T
    total = jax.nn.logsumexp(log_class + error, axis=1, keepdims=True)
    possible = jnp.isfinite(total)
    posterior = jnp.where(possible, log_class, 0.0) + error - jnp.where(possible, total, 0.0)
    return jnp.where(labelled[:, None], posterior, log_class)
