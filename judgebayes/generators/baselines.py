r"""Precision without iteration: raw means, Rogan-Gladen, and Youden indices.

Whether judges tell valid from invalid items is the posterior of their Youden indices.

The Youden index of a judge is :math:`J = \mathrm{TPR} + \mathrm{TNR} - 1`: 1 if it is always right, 0 if
its votes do not depend on validity, below 0 if they are reversed. From the votes on labelled items,

.. math:: \hat J \sim \mathrm{Normal}(J, s_1^2 + s_0^2), \qquad
          s_y^2 = \frac{\hat p_y (1 - \hat p_y)}{n_y + 2}
                + \bigl(\sigma \hat p_y (1 - \hat p_y)\bigr)^2 \sum_g \frac{n_{yg}^2}{n_y^2}

with :math:`\hat p_y = (k_y + 1/2) / (n_y + 1)` the rate of votes for valid on the :math:`n_y` items
with label y, the mean under Jeffreys' prior. The second term is for rates that differ between
generators, by a standard deviation of :math:`\sigma = 0.28` on the logit scale, as in the prior of
`Panel`. Reversed judges are rare: J is uniform on [0, 1] with probability .97, and on [-1, 0] with
probability .03.

The raw mean and Rogan and Gladen's correction take counts with the labels of some generators, and return
an estimate for every generator. That of a labelled generator comes from its votes by the same rule, not
from its labels.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtr

from judgebayes.arrays import AnyArray
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


LEAST = 0.05
"""A panel whose mean Youden index is below this is called uninformative."""
SHIFT = 0.28
"""Standard deviation of a rate between generators, on the logit scale."""
REVERSED = 0.03
"""Prior probability of a Youden index below 0."""


class YoudenIndex(NamedTuple):
    """Estimates of Youden indices with their standard deviations; NaN without labels of both classes."""

    estimate: Float[np.ndarray, "*judge"]
    deviation: Float[np.ndarray, "*judge"]

    def below(self, bound: float) -> Float[np.ndarray, "*judge"]:
        """Return the posterior probability that the index is below a bound; NaN where unknown.

        Examples
        --------
        >>> import numpy as np
        >>> from judgebayes.generators import YoudenIndex
        >>> print(YoudenIndex(np.array([0.4, 0.0, -0.4]), np.full(3, 0.1)).below(0.0).round(3))
        [0.    0.03  0.999]
        """
        to = (float(np.clip(bound, -1, 0)), float(np.clip(bound, 0, 1)))
        under = REVERSED * self._between(-1, to[0]) + (1 - REVERSED) * self._between(0, to[1])
        over = REVERSED * self._between(to[0], 0) + (1 - REVERSED) * self._between(to[1], 1)
        return np.asarray(under / (under + over))

    def _between(self, low: float, high: float) -> Float[np.ndarray, "*judge"]:
        """Return the likelihood's area over a part of the axis."""
        ends = [(end - self.estimate) / self.deviation for end in (low, high)]
        return np.asarray(ndtr(ends[1]) - ndtr(ends[0]))


def judge_youden(counts: PrecisionCounts) -> YoudenIndex:
    """Return every judge's Youden index on the labelled items of all generators.

    NaN for judges who voted on no item labelled valid, or on none labelled invalid.
    """
    rates, variances = zip(
        _rate(counts.true_accepted, counts.valid_judged),
        _rate(counts.false_accepted, counts.invalid_judged),
        strict=True,
    )
    return YoudenIndex(rates[0] - rates[1], np.sqrt(variances[0] + variances[1]))


def _rate(
    accepted: Float[AnyArray, "generator judge"], judged: Float[AnyArray, "generator judge"]
) -> tuple[Float[np.ndarray, " judge"], Float[np.ndarray, " judge"]]:
    """Return the rate of votes for valid with its variance, by judge."""
    cells = np.asarray(judged, float)
    k, n = np.asarray(accepted, float).sum(0), cells.sum(0)
    rate = np.where(n > 0, (k + 0.5) / (n + 1), np.nan)
    share = (cells**2).sum(0) / np.maximum(n, 1) ** 2
    spread = rate * (1 - rate)
    return rate, spread / (n + 2) + (SHIFT * spread) ** 2 * share


def panel_youden(counts: PrecisionCounts) -> YoudenIndex:
    """Return the mean Youden index of the judges; NaN if that of no judge is known.

    Judges err on the same items, so that their errors do not average out: the deviation of the mean is
    the mean of the judges' deviations, the largest that any correlation allows.
    """
    each = judge_youden(counts)
    known = np.isfinite(each.estimate)
    if not known.any():
        return YoudenIndex(np.asarray(np.nan), np.asarray(np.nan))
    return YoudenIndex(*(np.asarray(part[known].mean()) for part in each))
