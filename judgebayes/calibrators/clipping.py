"""The least probability that enters a map, and the clipping of probabilities to it."""

import jax.numpy as jnp

from judgebayes.arrays import ItemValues, LogProbs, Scalar
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.inference.fast.log_softmax import log_softmax_by_class

CLIP = 1e-300
"""The least probability that enters a map: no floor in practice, but the logarithm of 0 becomes finite.

A larger value makes extreme answers equal, and models of independent judges give extreme answers: 1e-6
costs a fifth of the NLL on panels of 20 to 150 judges (P2, table11)."""


def clipped(log_probs: LogProbs, clip: Scalar) -> LogProbs:
    r"""Return log-probabilities with every probability at least `clip`, renormalised.

    For two classes, this is clipping to [clip, 1 - clip]. Infinite log-probabilities become finite, and
    probabilities within the limits are unchanged.
    """
    return jnp.stack(clipped_by_class(log_probs, clip), axis=1)


@jit_inline()
def clipped_by_class(log_probs: LogProbs, clip: Scalar) -> list[ItemValues]:
    """Return `clipped` class by class (see `log_softmax.log_softmax_by_class`)."""
    log_prob_of_class = list(log_probs.T)
    if len(log_prob_of_class) == 2:  # no exponential, which compilers would recompute for each use
        return [jnp.clip(own, jnp.log(clip), jnp.log1p(-clip)) for own in log_prob_of_class]
    raised = [jnp.maximum(own, jnp.log(clip)) for own in log_prob_of_class]
    is_raised = [r > own for r, own in zip(raised, log_prob_of_class, strict=True)]
    changed = jnp.stack(is_raised).any(0)
    normalised = log_softmax_by_class(raised)
    return [
        jnp.where(changed, new, own) for new, own in zip(normalised, log_prob_of_class, strict=True)
    ]
