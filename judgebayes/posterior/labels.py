"""Models of the label given the votes: Davidson's, and logistic stacking."""

from collections.abc import Mapping

import numpy as np

from judgebayes.aggregators.davidson import Davidson
from judgebayes.aggregators.stacking import Stacking
from judgebayes.inference.point import MAP
from judgebayes.models import davidson as davidson_model
from judgebayes.models import stacking as stacking_model
from judgebayes.models.davidson import level_of_class
from judgebayes.models.stacking import Form
from judgebayes.posterior.statistics import of_labels
from judgebayes.posterior.story import Story
from judgebayes.votes.data import Data

__all__ = ["davidson", "stacking", "uncentred_stacking"]


def davidson(data: Data, prior: davidson_model.Prior) -> Story:
    """Return Davidson's model of the labels (`judgebayes.models.davidson`)."""
    levels = _levels(data)
    offset = () if data.pairwise else ("delta",)
    return _of_labels(
        data,
        Davidson(MAP(), symmetric=data.pairwise, prior=prior),
        coords={"level": levels},
        shown=("beta", *offset, *(("eta0", "gamma") if levels else ())),
        meanings={
            "beta": "how much the margin of the votes says of the label",
            "eta0": "how likely an inner class is without votes for it",
            "gamma": "how much votes for an inner class say of the label",
            "delta": "how far the scale leans to its upper end without votes",
        },
        words=(f"The votes of {len(data.judges)} judges are pooled.",)
        if len(data.judges) > 1
        else (),
        advice="the votes of some judges deserve more weight than others': --model stacking."
        if len(data.judges) > 1
        else "something other than the votes decides labels.",
    )


def stacking(data: Data, prior: stacking_model.Prior) -> Story:
    """Return logistic stacking of the vote vector (`judgebayes.models.stacking`)."""
    form = Form(data.votes.n_judges, data.votes.n_classes, data.pairwise)
    return _of_labels(
        data,
        Stacking(symmetric=data.pairwise, prior=prior),
        coords={"judge": list(data.judges), "level": _levels(data)},
        shown=("tau", *form.blocks()),
        meanings={
            "tau": "how much judges differ",
            "weight": "what a judge's vote adds to the log-odds, beside the others'",
            "absent": "what a judge's silence adds",
            "level_weight": "what a judge's vote for an inner class adds to it",
            "offset": "the log-odds without votes",
            "level": "how likely an inner class is without votes",
        },
        words=(
            "The prior of the weights points where the judges' accuracies on the labels do: an "
            "empirical-Bayes centre, which each label helps to place (--variant uncentred does "
            "without).",
        )
        if prior.kappa
        else (),
        advice="something other than the votes decides labels.",
    )


def uncentred_stacking(data: Data, prior: stacking_model.Prior) -> Story:
    """Return stacking whose weights have their prior around zero: nothing of it is learnt."""
    return stacking(data, prior._replace(kappa=0.0))


def _levels(data: Data) -> list[str]:
    """Return the names of the levels of the inner classes."""
    of_class = level_of_class(data.votes.n_classes, data.pairwise)
    return [
        " | ".join(n for n, own in zip(data.classes, of_class, strict=True) if own == level)
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
) -> Story:
    known = data.labelled
    index = data.index[known]
    problem = method.problem(data.votes.take(known), data.labels[known])

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_labels(drawn["label"], index, data.classes, data.judges)

    return Story(
        problem=problem,
        data=problem.data,
        statistics=statistics,
        coords=coords | {"labelled_item": data.names(known)},
        shown=shown,
        meanings=meanings,
        words=words,
        advice=advice,
    )
