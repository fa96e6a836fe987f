"""Precision by one shift of the logits of raw means."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.generators import PrecisionCounts, mean_prediction


@in_float64
def logit_shift(counts: PrecisionCounts) -> Float[Array, " generator"]:
    r"""Return the raw means, shifted on the logit scale by the mean error on the labelled generators.

    .. math:: \mathrm{logit}\,\hat g_i = \mathrm{logit}\,m_i
              + \frac{1}{|H|} \sum_{h \in H} (\mathrm{logit}\,g_h - \mathrm{logit}\,m_h)

    Without labels, returns the raw means. A share of 0 or 1, whose logit is infinite, is moved by half a
    vote, or half an item.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
    >>> from judgebayes.generators import PrecisionCounts
    >>> votes = jnp.array([[0.0, 0.0], [70.0, 90.0], [80.0, 70.0]])
    >>> judged = jnp.array([[0.0, 0.0], [100.0, 100.0], [100.0, 100.0]])
    >>> first = [jnp.zeros((3, 2)).at[0].set(n) for n in (72.0, 80.0, 14.0, 20.0)]
    >>> items = [jnp.array(n) for n in ([80.0, 0, 0], [20.0, 0, 0], [0.0, 100, 100])]
    >>> counts = PrecisionCounts(votes, judged, *first, *items)
    >>> print(logit_shift(counts).round(2))
    [0.8  0.72 0.66]
    """
    raw = mean_prediction(counts)
    cast = (counts.judged + counts.valid_judged + counts.invalid_judged).sum(1)
    m = _logit(raw, cast)
    g = _logit(counts.labelled_precision, counts.valid + counts.invalid)
    both = counts.labelled & jnp.isfinite(m)
    shift = jnp.where(both, g - m, 0.0).sum() / jnp.maximum(both.sum(), 1)
    return jnp.where(both.any(), jax.nn.sigmoid(m + shift), raw)


def _logit(share: Array, n: Array) -> Array:
    """Return the logit of a share of n, with shares of 0 and 1 moved by half of one."""
    half = 0.5 / jnp.maximum(n, 1.0)
    inside = jnp.where(share <= 0, half, jnp.where(share >= 1, 1 - half, share))
    return jax.scipy.special.logit(inside)
