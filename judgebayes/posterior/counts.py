"""The model of how many of an item's votes are correct: a Beta-Binomial, or a mixture of two."""

from collections.abc import Mapping

import numpy as np

from judgebayes.errors import JudgeBayesError
from judgebayes.majority.counts import correct_counts, counts_of
from judgebayes.majority.distribution import BetaBinomial
from judgebayes.models.beta_binomial import Prior, error_sizes
from judgebayes.posterior.statistics import of_correct
from judgebayes.posterior.story import ModelSpec
from judgebayes.votes.array import Data


def beta_binomial(data: Data, prior: Prior, *, components: int) -> ModelSpec:
    """Return one Beta-Binomial of all items, or a mixture of hard and easy ones."""
    pooled = correct_counts(data.votes, data.labels)
    labelled = np.flatnonzero(np.asarray(pooled.correct) >= 0)
    if len(labelled) == 0:
        raise JudgeBayesError("No item has both a vote and a label; label at least one.")
    correct, given = (np.asarray(x)[labelled] for x in (pooled.correct, pooled.given))
    most = int(given.max())
    problem = BetaBinomial(components, prior=prior).problem(counts_of(correct, given))

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_correct(drawn["correct"], given)

    largest_size = error_sizes(most)[-1]
    note = "" if largest_size <= most else f"; at {largest_size} votes it is extrapolated"
    return ModelSpec(
        problem=problem,
        data=problem.data,
        statistics=statistics,
        coords={"labelled_item": data.names(labelled)},
        shown=("majority_error", "mean", *(("share",) if components == 2 else ()), "dispersion"),
        # If both components are similar, their order differs between chains without harm.
        watched=("majority_error",),
        meanings={
            "majority_error": f"how often a majority of so many votes is wrong{note}",
            "mean": "how often a vote is correct on the items of this component",
            "share": "share of the items in this component",
            "dispersion": "how much the items of this component differ; 0 means not at all",
        },
        words=(
            "Chains must agree on the error of a majority; the labels often do not determine "
            "which items are hard.",
        )
        if components == 2
        else (),
        advice="there are more than two kinds of items; rely on the model-free figures of "
        "judgebayes ensemble.",
    )
