"""Models of the votes given the label: the one-coin model, and Dawid and Skene's model.

The model of how many of an item's votes are correct: a Beta-Binomial, or a mixture of two.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.aggregators.dawid_skene import DawidSkene, unique_items
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.dawid_skene_em import by_counts
from judgebayes.inference.fit import Training
from judgebayes.inference.problem import Problem
from judgebayes.inference.sampled import Described
from judgebayes.majority.counts import correct_counts, counts_of
from judgebayes.majority.distribution import BetaBinomial
from judgebayes.models import dawid_skene as dawid_skene_model
from judgebayes.models import one_coin as one_coin_model
from judgebayes.models.base import PanelData
from judgebayes.models.beta_binomial import BetaBinomialPrior, error_sizes
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.posteriors.story import coords_of, of_correct, of_votes
from judgebayes.votes.array import Data


def beta_binomial(data: Data, prior: BetaBinomialPrior, *, components: int) -> Described:
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
    return Described(
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


ADVICE = (
    "judges' errors are correlated, or items differ in difficulty: --model stacking predicts labels "
    "without assuming independent errors, --model irt and beta-binomial let items differ."
)


def one_coin(data: Data, prior: one_coin_model.OneCoinPrior) -> Described:
    """Return the one-coin model of the votes on labelled items (`judgebayes.models.one_coin`)."""
    labelled, n_classes = data.labelled, data.votes.n_classes
    panel = PanelData(jnp.asarray(data.index[labelled], int), jnp.asarray(data.labels[labelled]))

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_votes(drawn["votes"], data.labels[labelled], data.classes, data.judges)

    return Described(
        problem=Problem(OneCoinModel(n_classes, prior), panel),
        data=panel,
        statistics=statistics,
        coords=coords_of(data),
        shown=("accuracy",),
        meanings={"accuracy": "how often a judge's vote equals the label"},
        words=("The prior probabilities of the classes are equal.",),
        advice=ADVICE,
    )


def dawid_skene(data: Data, prior: dawid_skene_model.DawidSkenePrior) -> Described:
    """Return Dawid and Skene's model of all votes (`judgebayes.models.dawid_skene`)."""
    labelled, labels = data.labelled, jnp.asarray(data.labels)
    # The sampler visits items thousands of times, so items with equal votes and label are merged.
    whole = Training(data.votes, labels, jnp.ones(len(labels)), jax.random.key(0))
    votes, labels_of_votes, weight, _ = unique_items(whole)
    distinct = DawidSkene(prior=prior).problem(votes, labels_of_votes, weight)
    mode = DawidSkene(prior=prior).fit(data.votes, labels)

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_votes(drawn["votes"], data.labels, data.classes, data.judges)

    return Described(
        problem=by_counts(distinct, mode.first),
        data=PanelData(jnp.asarray(data.index, int), labels),
        statistics=statistics,
        coords={**coords_of(data), "class": list(data.classes), "vote": list(data.classes)},
        shown=("pi", "accuracy", "confusion"),
        meanings={
            "pi": "share of each class",
            "accuracy": "how often a judge's vote equals the label, with equal weight of the classes",
            "confusion": "how often a judge votes for the second class on items of the first",
        },
        words=(
            f"{len(data.labels) - len(labelled)} items without a label also count, through their votes.",
        )
        if len(labelled) < len(data.labels)
        else (),
        advice=ADVICE,
    )
