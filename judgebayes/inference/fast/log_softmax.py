"""Log-softmax with a fast case for two classes, and the log of mean probabilities."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import LogProbs
from judgebayes.compiled.jit_inline import jit_inline


def log_softmax(logits: Float[Array, "*shape class"]) -> Float[Array, "*shape class"]:
    """Return the logarithm of the softmax over the last axis: `jax.nn.log_softmax`, faster for two."""
    if logits.shape[-1] != 2:
        return jax.nn.log_softmax(logits, axis=-1)
    return jnp.stack(_of_two(logits[..., 0], logits[..., 1]), axis=-1)


def log_softmax_by_class(logits: Sequence[Float[Array, "*shape"]]) -> list[Float[Array, "*shape"]]:
    """Return `log_softmax` for logits given class by class.

    An array whose last axis is short is slow to read and to write, so stack the classes last.
    """
    if len(logits) == 2:
        return list(_of_two(*logits))
    return list(jnp.moveaxis(jax.nn.log_softmax(jnp.stack(logits, axis=-1), axis=-1), -1, 0))


@jax.custom_jvp
def _of_two(
    first: Float[Array, "*shape"], second: Float[Array, "*shape"]
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Return the log-softmax of two logits from their difference, with one exponential."""
    difference = second - first
    rest = jnp.log1p(jnp.exp(-jnp.abs(difference)))
    return -(jnp.maximum(difference, 0) + rest), -(jnp.maximum(-difference, 0) + rest)


@_of_two.defjvp
def _of_two_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    # Automatic differentiation of |x| and max is wrong to second order where both logits are equal.
    log_probs = _of_two(*primals)
    mean = sum(jnp.exp(own) * change for own, change in zip(log_probs, tangents, strict=True))
    return log_probs, (tangents[0] - mean, tangents[1] - mean)


@jit_inline()
def log_mean_exp(log_probs: Float[Array, "draw item class"]) -> LogProbs:
    """Return the log of the mean probability over draws."""
    return jax.nn.logsumexp(log_probs, axis=0) - jnp.log(log_probs.shape[0])
