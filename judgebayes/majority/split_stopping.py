r"""When to stop labelling: once the split curve's interval is narrow enough.

An interval that is checked after every label, and used at the first time that it is narrow, covers less
often than its level, since it tends to be narrow where few errors were drawn. Two corrections: the
interval has a stricter level,

.. math:: 1 - c\,(1 - \text{level}), \qquad c = 0.6

(.94 for .9), and it is checked at few numbers of labels, each a tenth larger than the last. The
experiment `betaconform/audit-stopping` measures the coverage at the time of stopping.
"""

import numpy as np

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError

FIRST_CHECK = 5
GROWTH = 1.1
STRICTER = 0.6


def stopping_level(level: float) -> float:
    """Return the level of the interval that is checked, for intervals that cover with `level`.

    >>> round(stopping_level(0.9), 3)
    0.94

    Raises
    ------
    JudgeBayesError
        If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise JudgeBayesError(f"The level is {level}; it must be a probability, such as 0.9.")
    return 1 - STRICTER * (1 - level)


def next_check(labels: int) -> int:
    """Return the next number of labels, after `labels`, at which the interval is checked.

    >>> [next_check(n) for n in (0, 5, 20, 100)]
    [5, 6, 22, 109]
    """
    check = FIRST_CHECK
    while check <= labels:
        check = max(check + 1, round(check * GROWTH))
    return check


def is_check(labels: int) -> bool:
    """Tell whether the interval is checked at this number of labels.

    >>> [n for n in range(40) if is_check(n)][-5:]
    [26, 29, 32, 35, 38]
    """
    return next_check(labels - 1) == labels


def labelling_order(items: int, seed: int) -> ItemInts:
    """Return the items in the random order in which they are labelled, fixed by the seed."""
    return np.random.default_rng(seed).permutation(items)
