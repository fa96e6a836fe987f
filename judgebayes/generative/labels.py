"""Models of the label given the votes: Davidson's, and logistic stacking."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from judgebayes.generative.data import Data
from judgebayes.generative.statistics import of_labels
from judgebayes.generative.story import Story
from judgebayes.inference.problem import Problem, Sites
from judgebayes.models import davidson as davidson_model
from judgebayes.models import stacking as stacking_model
from judgebayes.models.davidson import DavidsonData, DavidsonModel, level_of_class
from judgebayes.models.stacking import Form, StackingData, StackingModel

__all__ = ["davidson", "stacking", "uncentred_stacking"]


def davidson(data: Data, prior: davidson_model.Prior) -> Story:
    """Return Davidson's model of the labels (`judgebayes.models.davidson`)."""
    known, n_classes, symmetric = data.labelled, data.votes.n_classes, data.pairwise
    evidence = davidson_model.features(data.votes.take(known).pooled_counts(), symmetric=symmetric)

    labels = jnp.asarray(data.labels[known])
    problem = Problem(DavidsonModel(n_classes, symmetric, prior), DavidsonData(evidence, labels))
    levels = _levels(data)
    offset = () if symmetric else ("delta",)
    return _of_labels(
        data,
        problem,
        constrained=lambda sites, key: dict(sites),  # noqa: ARG005
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
    known, symmetric = data.labelled, data.pairwise
    form = Form(data.votes.n_judges, data.votes.n_classes, symmetric)
    index = data.votes.take(known).index
    truth = jnp.asarray(data.labels[known])
    design = stacking_model.features(index, form)
    direction = stacking_model.centre(index, truth, jnp.ones(len(known)), form)

    problem = Problem(StackingModel(form, prior), StackingData(design, direction, truth))

    def constrained(sites: Sites, key: PRNGKeyArray) -> Sites:  # noqa: ARG001
        return {"tau": sites["tau"]} | stacking_model.parameters(sites, direction, prior, form)

    return _of_labels(
        data,
        problem,
        constrained=constrained,
        dims={
            "weight": ("judge",),
            "absent": ("judge",),
            "level_weight": ("level", "judge"),
        },
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
    problem: Problem,
    *,
    constrained: Callable[[Sites, PRNGKeyArray], Sites],
    coords: dict[str, list[str]],
    shown: tuple[str, ...],
    meanings: dict[str, str],
    words: tuple[str, ...],
    advice: str,
    dims: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Story:
    known = data.labelled
    index = data.index[known]

    def statistics(drawn: Mapping[str, np.ndarray]) -> dict[str, float]:
        return of_labels(drawn["label"], index, data.classes, data.judges)

    return Story(
        problem=problem,
        data=problem.data,
        constrained=constrained,
        statistics=statistics,
        dims=dict(dims),
        coords=coords | {"labelled_item": data.names(known)},
        shown=shown,
        meanings=meanings,
        words=words,
        advice=advice,
    )
