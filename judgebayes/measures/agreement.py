"""Agreement of several annotators."""

import numpy as np
from jaxtyping import Int

from judgebayes.arrays import AnyArray, AnyProbs


def krippendorff_alpha(counts: Int[AnyArray, "item class"] | AnyProbs) -> float:
    r"""Return Krippendorff's alpha of nominal labels, from the number of labels by item and class.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}, \qquad
              D_o = \frac1n \sum_i \frac{m_i^2 - \sum_k n_{ik}^2}{m_i - 1}, \qquad
              D_e = \frac{n^2 - \sum_k n_k^2}{n (n - 1)}

    with :math:`n_{ik}` annotators who give item i the class k, :math:`m_i = \sum_k n_{ik}` and n the
    labels of items with at least two. It is 1 if all agree and about 0 if they agree by chance; NaN if
    no item has two labels, or if all labels are the same (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability").

    Examples
    --------
    >>> import numpy as np
    >>> from judgebayes.measures.agreement import krippendorff_alpha
    >>> counts = np.array([[2, 0], [2, 0], [0, 2], [1, 1]])
    >>> print(round(krippendorff_alpha(counts), 2))
    0.53
    """
    counts = np.asarray(counts, float)
    size = counts.sum(1)
    counts, size = counts[size > 1], size[size > 1]
    n = size.sum()
    expected = (n**2 - (counts.sum(0) ** 2).sum()) / (n * (n - 1)) if n else 0.0
    if expected == 0:
        return float("nan")
    observed = ((size**2 - (counts**2).sum(1)) / (size - 1)).sum() / n
    return float(1 - observed / expected)
