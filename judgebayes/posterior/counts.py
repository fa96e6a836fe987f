"""The model of how many of an item's votes are correct: a Beta-Binomial, or a mixture of two."""

from collections.abc import Mapping

import numpy as np

from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import correct_counts, counts_of
from judgebayes.majority.distribution import BetaBinomial
from judgebayes.models.beta_binomial import Prior, error_sizes
from judgebayes.posterior.statistics import of_correct
from judgebayes.posterior.story import Story
from judgebayes.votes.data import Data

__all__ = ["mixture", "single"]


def mixture(data: Data, prior: Prior) -> Story:
    """Return the mixture of hard and easy items (`judgebayes.models.beta_binomial`)."""
    return _beta_binomial(data, prior, 2)


def single(data: Data, prior: Prior) -> Story:
    """Return one Beta-Binomial for all items."""
    return _beta_binomial(data, prior, 1)


def _beta_binomial(data: Data, prior: Prior, components: int) -> Story:
    pooled = correct_counts(data.votes, data.labels)
    known = np.flatnonzero(np.asarray(pooled.correct) >= 0)
    if len(known) == 0:
        raise JudgeBayesError("No item has both a vote and a label: label one at least.")
    correct, given = (np.asarray(x)[known] for x in (pooled.correct, pooled.given))
    most = int(given.max())
    problem = BetaBinomial(components, prior=prior).problem(counts_of(correct, given))

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_correct(drawn["correct"], given)

    farthest = error_sizes(most)[-1]
    far = "" if farthest <= most else f"; at {farthest} votes it is extrapolated"
    return Story(
        problem=problem,
        data=problem.data,
        statistics=statistics,
        coords={"labelled_item": data.names(known)},
        shown=("majority_error", "mean", *(("share",) if components == 2 else ()), "dispersion"),
        # A mixture of two that are nearly alike is as good whichever is the broader one.
        watched=("majority_error",),
        meanings={
            "majority_error": f"how often a majority of so many votes is wrong{far}",
            "mean": "how often a vote is correct on these items",
            "share": "how many of the items are such",
            "dispersion": "how much such items differ; 0 is not at all",
        },
        words=(
            "Chains must agree on the errors of a majority; which items are hard labels often do "
            "not settle.",
        )
        if components == 2
        else (),
        advice="items differ in more ways than two kinds; believe the model-free figures of "
        "judgebayes ensemble.",
    )
