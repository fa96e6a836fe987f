r"""Scores of pairwise votes, from which the win rate learns: without labels, and fitted to labels.

With :math:`x_{nj}` in [-1, 1] judge j's mean vote on item n (1 is a vote for A, -1 for B, 0 a tie) less
the judge's mean over items, the *consensus* of an item is the mean of :math:`x_{nj}` over the judges who
voted on it. The *weighted* score is the linear predictor of a logistic regression of decided labels on
the consensus and all :math:`x_{nj}`, with a ridge penalty; that of a labelled item comes from a
regression without it (cross-fitting), so that the score does not contain the item's own label.

A judge who always votes for A has the scores 0. Swapping A and B turns the sign of every score.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from judgebayes.arrays import ItemFloats
from judgebayes.generators.logit_mixture import mode_of
from judgebayes.votes import MISSING, UNDECIDED, Votes

FOLDS = 10
CENTRE = 10.0
"""How many votes the common mean counts as in the mean of a judge who has few votes."""
COMMON_PENALTY, JUDGE_PENALTY = 0.1, 1.0
"""Penalties of the weight of the standardised consensus, and of each judge's own weight."""
FEWEST = 3
"""Decided labels of either side below which there is no weighted score."""
MOST_JUDGES = 200
"""Of more judges, those with the most votes on labelled items have own weights."""
TOLERANCE = 1e-6


class Verdicts(NamedTuple):
    """Pairwise votes as numbers: 1 for A, -1 for B, 0 for a tie, and what is between them."""

    mean: Float[np.ndarray, "item judge"]
    """The mean of each judge's votes on each item; NaN without votes."""
    counts: Float[np.ndarray, "item three"]
    """The votes on each item: for A, for a tie, for B."""

    def swapped(self, where: Bool[np.ndarray, " item"]) -> "Verdicts":
        """Return the verdicts with A and B exchanged on some items."""
        turned = np.asarray(where)[:, None]
        return Verdicts(
            np.where(turned, -self.mean, self.mean),
            np.where(turned, self.counts[:, ::-1], self.counts),
        )

    def rate(self, ties: str) -> float:
        """Return the naive win rate of A, the share of all votes; NaN without votes.

        A tie is half a vote for A (`ties="half"`), left out ("excluded"), or a vote ("separate").
        """
        win, tie, loss = self.counts.sum(0)
        among = win + loss + (0 if ties == "excluded" else tie)
        return float((win + (tie / 2 if ties == "half" else 0)) / among) if among else float("nan")

    def tie_shares(self) -> ItemFloats:
        """Return the share of ties among each item's votes; 0 without votes."""
        return np.asarray(self.counts[:, 1] / np.maximum(self.counts.sum(1), 1))


def verdicts(votes: Votes) -> Verdicts:
    """Return the votes as numbers.

    The lowest class is a win of B, the highest one of A; an undecided vote is a tie.
    """
    middle = (votes.n_classes - 1) / 2
    value = (np.arange(votes.n_classes) - middle) / middle
    sides = [value > 0, value == 0, value < 0]
    index = np.asarray(votes.index)
    cast, undecided = index != MISSING, index == UNDECIDED
    given = np.where(index >= 0, value[np.maximum(index, 0)], 0.0)
    n = cast.sum(-1)
    mean = np.where(n > 0, given.sum(-1) / np.maximum(n, 1), np.nan)
    decided = (index >= 0)[..., None] & np.stack(sides, -1)[np.maximum(index, 0)]
    decided[..., 1] |= undecided
    return Verdicts(mean, decided.sum((1, 2)).astype(float))


def _centred(mean: Float[np.ndarray, "item judge"]) -> Float[np.ndarray, "item judge"]:
    """Return each judge's votes less its mean; 0 without votes."""
    cast = np.isfinite(mean)
    total, n = np.where(cast, mean, 0.0).sum(0), cast.sum(0)
    common = total.sum() / max(n.sum(), 1)
    centre = np.where(
        n >= CENTRE, total / np.maximum(n, 1), (total + CENTRE * common) / (n + CENTRE)
    )
    return np.where(cast, mean - centre, 0.0)


def consensus(mean: Float[np.ndarray, "item judge"]) -> ItemFloats:
    """Return the mean over its judges of each item's centred votes; 0 without votes."""
    return np.asarray(_centred(mean).sum(1) / np.maximum(np.isfinite(mean).sum(1), 1))


def weighted_score(mean: Float[np.ndarray, "item judge"], outcome: ItemFloats) -> ItemFloats | None:
    """Return the score of each item from all judges, cross-fitted on labelled items.

    `outcome` is 1 where A wins, 0.5 a tie, 0 where B wins, NaN unknown. None with fewer than three
    decided labels of either side, or with a single judge, whose score is the consensus.
    """
    decided = np.flatnonzero((outcome == 0) | (outcome == 1))
    won = outcome[decided]
    if min((won == 0).sum(), (won == 1).sum()) < FEWEST or mean.shape[1] < 2:
        return None
    common = consensus(mean)
    scale = common.std()
    if scale < TOLERANCE:
        return None
    voted = np.isfinite(mean[decided]).sum(0)
    used = np.sort(np.argsort(-voted, kind="stable")[:MOST_JUDGES])
    x = np.column_stack([np.ones(len(common)), common / scale, _centred(mean[:, used])])
    penalty = np.r_[0.05, COMMON_PENALTY, np.full(len(used), JUDGE_PENALTY)]
    one = np.ones(len(outcome))
    score = x[:, 1:] @ mode_of(x[decided], won, one[decided], penalty)[0][1:]
    known = np.flatnonzero(np.isfinite(outcome))
    fold = np.full(len(outcome), -1)
    fold[known] = np.arange(len(known)) % FOLDS
    for place in range(FOLDS):
        out, rest = known[fold[known] == place], decided[fold[decided] != place]
        if len(out):
            score[out] = x[out, 1:] @ mode_of(x[rest], outcome[rest], one[rest], penalty)[0][1:]
    return np.asarray(score)
