"""The item response model: which votes are right, by judges' ability and items' difficulty."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.irt import problem
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, Prior
from judgebayes.posterior.statistics import of_right
from judgebayes.posterior.story import ModelSpec, coords_of
from judgebayes.votes.array import MISSING, Data


def item_response(data: Data, prior: Prior) -> ModelSpec:
    """Return the two-parameter logistic model of right votes (`judgebayes.models.irt`).

    The log-likelihood of an item integrates out its difficulty and discrimination, which are fitted to
    the same votes that leave-one-out should predict.

    Raises
    ------
    JudgeBayesError
        If there is only one judge.
    """
    if len(data.judges) < 2:
        raise JudgeBayesError(
            "An item response model compares judges, and there is only one; use "
            "--model davidson or beta-binomial."
        )
    labelled, n_classes = data.labelled, data.votes.n_classes
    panel = PanelData(jnp.asarray(data.index[labelled], int), jnp.asarray(data.labels[labelled]))
    truth = data.labels[labelled][:, None, None]

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        votes = drawn["votes"]
        return of_right(np.where(votes >= 0, votes == truth, MISSING), data.judges)

    return ModelSpec(
        problem=problem(ItemResponseModel(n_classes, prior), panel),
        data=panel,
        statistics=statistics,
        dims=dict.fromkeys(("difficulty", "discrimination"), ("labelled_item",)),
        coords=coords_of(data),
        shown=("ability",),
        meanings={"ability": "a judge's ability, in standard deviations over judges"},
        words=("Difficulty and discrimination of every item are in the file.",),
        advice="judges or items differ in more than ability and difficulty.",
    )
