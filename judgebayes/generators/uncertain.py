r"""Labels of items that may be wrong, as evidence: the log-odds that they give for a valid item.

An item with evidence :math:`\lambda_n` and votes :math:`x_n` is valid with probability

.. math:: r_n = \mathrm{sigmoid}(\beta^\top x_n + \gamma_{i(n)} + \lambda_n)

with a logistic regression on the votes and the generator, fitted by EM: the labels are the missing data.
Without the votes and the generator, the expected labels would be too much alike: a wrong label would be
taken for an error of the judges, and each generator would be drawn to the mean of all.
"""

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.votes import Votes
from judgebayes.votes.evidence import Evidence

RIDGE = 0.5
"""The inverse of the ridge penalty of scores, whose votes are -1, 0 (missing) and 1."""
FEW = 10
"""Labelled items of either class below which votes get no score."""
STEPS, TOLERANCE = 50, 1e-3


def mean_votes(votes: Votes) -> Float[np.ndarray, "item judge"]:
    """Return the mean of each judge's votes on an item, valid 1 and invalid -1; 0 without votes."""
    cast = np.asarray(votes.index)
    some = (cast >= 0).sum(-1)
    return np.where(cast >= 0, 2.0 * cast - 1, 0.0).sum(-1) / np.maximum(some, 1)


def expected_validity(
    votes: Votes, labels: ItemInts, evidence: Evidence, generator: ItemInts
) -> ItemFloats:
    """Return the probability that an item is valid, given votes and labels; NaN where unlabelled.

    `labels` are the merged labels, -1 where there is none. With fewer than ten of either class, the
    votes and the generator are not used.
    """
    from sklearn.linear_model import LogisticRegression  # takes half a second to import

    middle = evidence.nodes[len(evidence.nodes) // 2]
    known = labels >= 0
    result = np.full(len(labels), np.nan)
    given = middle[known]
    count = np.bincount(labels[known], minlength=2)
    r = expit(given + logit((1 + count[1]) / (2 + count.sum())))
    if count.min() >= FEW:
        own = generator[known, None] == np.arange(generator.max() + 1)
        x = np.tile(np.hstack([mean_votes(votes)[known], own]), (2, 1))
        fit = LogisticRegression(C=RIDGE, max_iter=1000, warm_start=True)
        for _ in range(STEPS):
            fit.fit(x, np.repeat([0, 1], len(r)), np.concatenate([1 - r, r]))
            new = expit(fit.decision_function(x[: len(r)]) + given)
            change, r = np.abs(new - r).max(), new
            if change < TOLERANCE:
                break
    result[known] = r
    return result
