"""Models of the label given the votes: Davidson's, and logistic stacking.

The item response model: which votes are right, by judges' ability and items' difficulty.
"""

from collections.abc import Mapping

import numpy as np

from judgebayes.aggregators.davidson import Davidson
from judgebayes.aggregators.stacking import Stacking
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.point import MAP
from judgebayes.inference.sampled import Described
from judgebayes.item_response import ItemResponse
from judgebayes.models import davidson as davidson_model
from judgebayes.models import stacking as stacking_model
from judgebayes.models.davidson import level_of_class
from judgebayes.models.irt import ItemResponsePrior
from judgebayes.models.stacking import Form
from judgebayes.posteriors.story import coords_of, of_labels, of_right
from judgebayes.votes.array import MISSING, Data


def item_response(data: Data, prior: ItemResponsePrior) -> Described:
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
    labelled = data.labelled
    problem = ItemResponse(prior).problem(data.votes.take(labelled), data.labels[labelled])
    truth = data.labels[labelled][:, None, None]

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        votes = drawn["votes"]
        return of_right(np.where(votes >= 0, votes == truth, MISSING), data.judges)

    return Described(
        problem=problem,
        data=problem.data,
        statistics=statistics,
        dims=dict.fromkeys(("difficulty", "discrimination"), ("labelled_item",)),
        coords=coords_of(data),
        shown=("ability",),
        meanings={"ability": "a judge's ability, in standard deviations over judges"},
        words=("Difficulty and discrimination of every item are in the file.",),
        advice="judges or items differ in more than ability and difficulty.",
    )


def davidson(data: Data, prior: davidson_model.DavidsonPrior) -> Described:
    """Return Davidson's model of the labels (`judgebayes.models.davidson`)."""
    levels = _levels(data)
    offset = () if data.pairwise else ("delta",)
    return _of_labels(
        data,
        Davidson(MAP(), symmetric=data.pairwise, prior=prior),
        coords={"level": levels},
        shown=("beta", *offset, *(("eta0", "gamma") if levels else ())),
        meanings={
            "beta": "how strongly the label depends on the margin of the votes",
            "eta0": "how probable an inner class is without votes for it",
            "gamma": "how strongly the label depends on votes for an inner class",
            "delta": "the shift of the scale towards its upper end without votes",
        },
        words=(f"The votes of {len(data.judges)} judges are pooled.",)
        if len(data.judges) > 1
        else (),
        advice="some judges' votes deserve more weight than others': --model stacking."
        if len(data.judges) > 1
        else "something other than the votes decides labels.",
    )


def stacking(data: Data, prior: stacking_model.StackingPrior) -> Described:
    """Return logistic stacking of the vote vector (`judgebayes.models.stacking`)."""
    form = Form(data.votes.n_judges, data.votes.n_classes, data.pairwise)
    return _of_labels(
        data,
        Stacking(symmetric=data.pairwise, prior=prior),
        coords={"judge": list(data.judges), "level": _levels(data)},
        shown=("tau", *form.blocks()),
        meanings={
            "tau": "how much judges differ",
            "weight": "the log-odds that a judge's vote adds to the others'",
            "absent": "the log-odds that a judge's missing vote adds",
            "level_weight": "the log-odds that a judge's vote for an inner class adds to that class",
            "offset": "the log-odds without votes",
            "level": "how probable an inner class is without votes",
        },
        words=(
            "The prior of the weights is centred at weights from the judges' accuracies on the "
            "labels (empirical Bayes, so the labels are used twice); --variant uncentred "
            "avoids this.",
        )
        if prior.kappa
        else (),
        advice="something other than the votes decides labels.",
    )


def uncentred_stacking(data: Data, prior: stacking_model.StackingPrior) -> Described:
    """Return stacking whose weights have a prior centred at zero, not learnt from the labels."""
    return stacking(data, prior._replace(kappa=0.0))


def _levels(data: Data) -> list[str]:
    """Return the names of the levels of the inner classes."""
    of_class = level_of_class(data.votes.n_classes, data.pairwise)
    return [
        " | ".join(
            n for n, class_level in zip(data.classes, of_class, strict=True) if class_level == level
        )
        for level in range(max(of_class) + 1)
    ]


def _of_labels(
    data: Data,
    method: Davidson | Stacking,
    *,
    coords: dict[str, list[str]],
    shown: tuple[str, ...],
    meanings: dict[str, str],
    words: tuple[str, ...],
    advice: str,
) -> Described:
    labelled = data.labelled
    index = data.index[labelled]
    problem = method.problem(data.votes.take(labelled), data.labels[labelled])

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_labels(drawn["label"], index, data.classes, data.judges)

    return Described(
        problem=problem,
        data=problem.data,
        statistics=statistics,
        coords=coords | {"labelled_item": data.names(labelled)},
        shown=shown,
        meanings=meanings,
        words=words,
        advice=advice,
    )
