"""Models of the votes given the label: the one-coin model, and Dawid and Skene's."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.aggregators.base import Training
from judgebayes.aggregators.dawid_skene import DawidSkene
from judgebayes.aggregators.unique_items import unique_items
from judgebayes.inference.fast.dawid_skene import problem
from judgebayes.inference.problem import Problem
from judgebayes.models import dawid_skene as dawid_skene_model
from judgebayes.models import one_coin as one_coin_model
from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.posterior.statistics import of_votes
from judgebayes.posterior.story import Story
from judgebayes.votes.array import Votes
from judgebayes.votes.data import Data

__all__ = ["dawid_skene", "one_coin"]

TOGETHER = (
    "judges err together, or items differ in difficulty: --model stacking foretells labels without "
    "assuming that judges err independently, --model irt and beta-binomial let items differ."
)


def one_coin(data: Data, prior: one_coin_model.Prior) -> Story:
    """Return the one-coin model of the votes on labelled items (`judgebayes.models.one_coin`)."""
    known, n_classes = data.labelled, data.votes.n_classes
    panel = PanelData(jnp.asarray(data.index[known], int), jnp.asarray(data.labels[known]))

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_votes(drawn["votes"], data.labels[known], data.classes, data.judges)

    return Story(
        problem=Problem(OneCoinModel(n_classes, prior), panel),
        data=panel,
        statistics=statistics,
        coords={
            "judge": list(data.judges),
            "labelled_item": data.names(known),
            "repeat": _repeats(data.votes),
        },
        shown=("accuracy",),
        meanings={"accuracy": "how often a judge's vote is the label"},
        words=("Before their votes are seen, the classes count as equally likely.",),
        advice=TOGETHER,
    )


def dawid_skene(data: Data, prior: dawid_skene_model.Prior) -> Story:
    """Return Dawid and Skene's model of all votes (`judgebayes.models.dawid_skene`)."""
    votes, n_classes = data.votes, data.votes.n_classes
    known = data.labelled
    panel = PanelData(jnp.asarray(data.index, int), jnp.asarray(data.labels))
    # Thousands of passes over the items: those with the same votes and label are one.
    few = unique_items(Training(votes, panel.labels, jnp.ones(len(data.labels)), jax.random.key(0)))
    distinct = PanelData(few.votes.index, few.labels, few.weight)

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_votes(drawn["votes"], data.labels, data.classes, data.judges)

    mode = DawidSkene(prior=prior).fit(votes, panel.labels)
    inside = {
        name: 0.99 * x[0] + 0.01 / n_classes for name, x in mode.draws.items()
    }  # as far from the edge as chains need
    return Story(
        problem=problem(DawidSkeneModel(n_classes, prior), distinct, inside),
        data=panel,
        statistics=statistics,
        coords={
            "judge": list(data.judges),
            "class": list(data.classes),
            "vote": list(data.classes),
            "item": list(data.items),
            "labelled_item": data.names(known),
            "repeat": _repeats(votes),
        },
        shown=("pi", "accuracy", "confusion"),
        meanings={
            "pi": "share of each class",
            "accuracy": "how often a judge's vote is the label, classes counting alike",
            "confusion": "how often, on items of the class named first, a judge's vote is the second",
        },
        words=(
            f"{len(data.labels) - len(known)} items without a label count too, through their votes.",
        )
        if len(known) < len(data.labels)
        else (),
        advice=TOGETHER,
    )


def _repeats(votes: Votes) -> list[str]:
    """Return the names of a judge's votes on an item; ArviZ has another use for "sample"."""
    return [str(s + 1) for s in range(votes.n_samples)]
