"""The model of how many of an item's votes are correct: a Beta-Binomial, or a mixture of two."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from judgebayes.ensemble.counts import correct_counts
from judgebayes.ensemble.curve import largest_odd
from judgebayes.errors import JudgeBayesError
from judgebayes.generative.data import Data
from judgebayes.generative.statistics import of_correct
from judgebayes.generative.story import Story
from judgebayes.inference.problem import Problem, Sites
from judgebayes.models import beta_binomial
from judgebayes.models.beta_binomial import BetaBinomialModel, CountData, Prior

__all__ = ["mixture", "single"]

FAR = 3
"""Chains must agree on the error of so many times the observed votes, too."""


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
    counts = CountData(jnp.asarray(correct), jnp.asarray(given))

    sizes = list(dict.fromkeys((1, largest_odd(most), largest_odd(FAR * most))))

    def constrained(sites: Sites, key: PRNGKeyArray) -> Sites:  # noqa: ARG001
        theta = beta_binomial.parameters(sites)
        errors = jnp.stack([beta_binomial.majority_error(theta, k) for k in sizes])
        return {"majority_error": errors, **theta._asdict()}

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_correct(drawn["correct"], given)

    far = "" if sizes[-1] <= most else f"; at {sizes[-1]} votes it is extrapolated"
    return Story(
        problem=Problem(BetaBinomialModel(most, components, prior), counts),
        data=counts,
        constrained=constrained,
        statistics=statistics,
        dims={
            "majority_error": ("votes",),
            "share": ("component",),
            "mean": ("component",),
            "dispersion": ("component",),
        },
        coords={
            "votes": [str(size) for size in sizes],
            "component": ["hard items", "easy items"] if components == 2 else ["all items"],
            "labelled_item": data.names(known),
        },
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
