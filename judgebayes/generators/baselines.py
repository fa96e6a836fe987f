r"""Estimators of precision that need no iteration: raw mean, logit shift, Rogan-Gladen.

Each takes counts with the labels of some generators, and returns an estimate for every generator. The
estimate of a labelled generator comes from its votes by the same rule, not from its labels.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.counts import PrecisionCounts


@in_float64
def mean_prediction(counts: PrecisionCounts) -> Float[Array, " generator"]:
    """Return the mean over judges of the share of items they call valid; needs no labels.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from judgebayes.generators import PrecisionCounts, mean_prediction
    >>> votes = jnp.array([[0.0, 0.0], [70.0, 90.0], [80.0, 70.0]])
    >>> judged = jnp.array([[0.0, 0.0], [100.0, 100.0], [100.0, 100.0]])
    >>> first = [jnp.zeros((3, 2)).at[0].set(n) for n in (72.0, 80.0, 14.0, 20.0)]
    >>> items = [jnp.array(n) for n in ([80.0, 0, 0], [20.0, 0, 0], [0.0, 100, 100])]
    >>> counts = PrecisionCounts(votes, judged, *first, *items)
    >>> print(np.asarray(mean_prediction(counts)).round(2))
    [0.86 0.8  0.75]
    """
    return jnp.nanmean(counts.matrix, axis=1)


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
    >>> from judgebayes.generators import PrecisionCounts, logit_shift
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


@in_float64
def rogan_gladen(counts: PrecisionCounts) -> Float[Array, " generator"]:
    r"""Return the raw means corrected by the mean rates of the judges, clipped to [0, 1].

    .. math:: \hat g_i = \frac{m_i + \bar v^- - 1}{\bar v^+ + \bar v^- - 1}

    Rogan & Gladen (1978), with rates pooled over the labelled generators; the means are over the
    judges that were run on the generator. NaN if the labels give no rates (none is valid, or none is
    invalid), or if the judges accept valid and invalid items at the same rate.
    """
    rates = counts.rates()
    run = jnp.isfinite(counts.matrix)
    tpr, tnr = (
        jnp.nanmean(jnp.where(run, rate, jnp.nan), axis=1) for rate in (rates.tpr, rates.tnr)
    )
    return jnp.clip((mean_prediction(counts) + tnr - 1) / (tpr + tnr - 1), 0.0, 1.0)
