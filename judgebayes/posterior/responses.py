"""The model of which votes are right: able judges and hard items."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.irt import problem
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, Prior
from judgebayes.posterior.statistics import of_right
from judgebayes.posterior.story import Story
from judgebayes.votes.array import MISSING
from judgebayes.votes.data import Data

__all__ = ["item_response"]


def item_response(data: Data, prior: Prior) -> Story:
    """Return the two-parameter logistic model of right votes (`judgebayes.models.irt`).

    The log-likelihood of an item has its own difficulty and discrimination integrated out: they
    would be fitted to the very votes that leaving the item out should foretell.

    Raises
    ------
    JudgeBayesError
        If there is one judge only.
    """
    if len(data.judges) < 2:
        raise JudgeBayesError(
            "An item response model compares judges, and there is one only; right would be "
            "--model davidson or beta-binomial."
        )
    known, n_classes = data.labelled, data.votes.n_classes
    panel = PanelData(jnp.asarray(data.index[known], int), jnp.asarray(data.labels[known]))
    truth = data.labels[known][:, None, None]

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        votes = drawn["votes"]
        return of_right(np.where(votes >= 0, votes == truth, MISSING), data.judges)

    return Story(
        problem=problem(ItemResponseModel(n_classes, prior), panel),
        data=panel,
        statistics=statistics,
        dims=dict.fromkeys(("difficulty", "discrimination"), ("labelled_item",)),
        coords={
            "judge": list(data.judges),
            "labelled_item": data.names(known),
            "repeat": [str(s + 1) for s in range(data.votes.n_samples)],
        },
        shown=("ability",),
        meanings={"ability": "how able a judge is, in standard deviations of judges"},
        words=("Difficulty and discrimination of every item are in the file.",),
        advice="judges or items differ in more than ability and difficulty.",
    )
