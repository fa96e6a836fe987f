"""The families of estimators: how they take the data, and the named axes of their answers."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from laws.data import GROUPS, SAMPLES, Data

from judgebayes.experiments.beyond_consensus.regression import targets
from judgebayes.generators import count_votes
from judgebayes.generators.labelling import Strata, StratumCounts, count_strata
from judgebayes.majority import Counts
from judgebayes.majority.counts import correct_counts
from judgebayes.votes import UNDECIDED, Votes

Answers = dict[str, Any]
"""Arrays by name; the family defines their axes."""


def votes_of(data: Data, samples: int = SAMPLES) -> Votes:
    """Return the votes as an array, with scores and tasks."""
    index, score = (jnp.asarray(x[..., :samples]) for x in (data.index, data.score))
    group = jnp.asarray(data.group, jnp.int32)
    return Votes(index, score, None, group, data.n_classes, GROUPS)


def undecided_votes_of(data: Data) -> Votes:
    """Return the votes, of which a judge's second is for no class where it differs from the first."""
    first, second = data.index[..., 0], data.index[..., 1]
    changed = np.where((second >= 0) & (second != first), UNDECIDED, second)
    return votes_of(replace(data, index=np.stack([first, changed], axis=-1)))


@dataclass(frozen=True)
class Family:
    """A family of estimators.

    `takes` returns the inputs of a fit, on the host. `fit` and `answer` work in compiled code,
    unless `lacks` has a reason why the law "vmap = loop" does not apply.
    """

    name: str
    axes: dict[str, tuple[str, ...]]
    takes: Callable[[Data], Any]
    fit: Callable[[Any, Any], Any]
    answer: Callable[[Any, Any], Answers]
    classes: tuple[int, ...] = (3, 2, 4, 5)
    """The possible numbers of classes, the usual one first."""
    probabilities: bool = True
    """Whether the answers are between 0 and 1, and sum to 1 over the axis of classes."""
    lacks: dict[str, str] = field(default_factory=dict)
    """Laws that do not apply to these estimators, and why."""

    @property
    def compiled(self) -> bool:
        """Whether a fit can be compiled."""
        return "vmap = loop" not in self.lacks


def _aggregator(take: Callable[[Data], Any], name: str, **more: Any) -> Family:
    return Family(
        name,
        {"probabilities": ("item", "class")},
        lambda data: (take(data), data.labels, data.weight),
        lambda method, inputs: method.fit(inputs[0], inputs[1], weight=inputs[2]),
        lambda fitted, inputs: {"probabilities": jnp.exp(fitted(inputs[0]))},
        **more,
    )


NO_VOTES = "takes probabilities, not votes"
NO_WEIGHT = "takes counts, without weights of items"
NO_ITEMS = "answers about generators, not items"

AGGREGATOR = _aggregator(votes_of, "aggregator")
UNDECIDED_VOTES = _aggregator(undecided_votes_of, "aggregator of undecided votes")
WITHOUT_VOTES = dict.fromkeys(
    (
        "permuting judges",
        "unseen judge",
        "item without votes",
        "one judge",
        "constant votes",
        "unanimous votes",
        "missing 0 to 95 %",
    ),
    NO_VOTES,
)
NOT_SAVED = {"save and apply": "fit files contain aggregators only"}
CALIBRATOR = Family(
    "calibrator",
    {"probabilities": ("item", "class")},
    lambda data: (data.log_probs, data.labels, data.weight),
    lambda method, inputs: method.fit(inputs[0], inputs[1], weight=inputs[2]),
    lambda fitted, inputs: {"probabilities": jnp.exp(fitted(inputs[0]))},
    lacks=WITHOUT_VOTES | NOT_SAVED | {"permuting groups": "does not use tasks"},
)
CONFORMAL = Family(
    "conformal",
    {"sets": ("item", "class_in_set"), "threshold": ("group",)},
    lambda data: (data.log_probs, data.labels, data.weight, data.group),
    lambda method, inputs: method.fit(inputs[0], inputs[1], weight=inputs[2], groups=inputs[3]),
    lambda fitted, inputs: {
        "sets": fitted(inputs[0], groups=inputs[3]).astype(float),
        # A threshold whose sets contain every class is infinite, so the sets are compared.
        "threshold": jnp.minimum(fitted.threshold, 1.0),
    },
    lacks=WITHOUT_VOTES | NOT_SAVED,
)
SIZES = (1, 3, 7, 11)


def _counts(data: Data) -> tuple[Counts, np.ndarray]:
    counts = correct_counts(votes_of(data), data.labels)
    most = data.index.shape[1] * SAMPLES
    return Counts(np.asarray(counts.correct), np.asarray(counts.given), most), data.weight


COUNTS_KNOW_NO = {
    "permuting judges": "counts of correct votes have no judges",
    "swapping responses": "counts of correct votes have no classes",
    "renaming classes": "counts of correct votes have no classes",
    "unseen judge": "counts of correct votes have no judges",
    "2 to 5 classes": "counts of correct votes have no classes",
}
DISTRIBUTION = Family(
    "distribution of correct votes",
    {"error": ("size",)},
    _counts,
    lambda method, inputs: method.fit(inputs[0], weight=inputs[1]),
    lambda fitted, _: {"error": fitted.estimate(SIZES[:3])},
    lacks=COUNTS_KNOW_NO | NOT_SAVED | {"permuting groups": "does not use tasks"},
)


def _sets(data: Data) -> tuple[list[Counts], list[np.ndarray]]:
    counts, weight = _counts(data)
    return [counts] * GROUPS, [np.where(data.group == g, weight, 0.0) for g in range(GROUPS)]


POOL = Family(
    "data sets pooled",
    {"error": ("group", "size")},
    _sets,
    lambda method, inputs: method.fit(inputs[0], weight=inputs[1]),
    lambda fitted, _: {"error": jnp.stack([fitted.of(g).estimate(SIZES) for g in range(GROUPS)])},
    lacks=COUNTS_KNOW_NO | NOT_SAVED,
)


def _hidden(data: Data) -> np.ndarray:
    """Return the labels of two generators only: the third is estimated."""
    return np.where(data.hidden, -1, data.labels)


def _precision_counts(data: Data) -> Any:
    data = data.live()
    return count_votes(votes_of(data), _hidden(data), data.group, GROUPS)


def _strata(data: Data) -> StratumCounts:
    data = data.live()
    # Strata do not depend on labels: their number is the same for all variants.
    stratum = np.digitize(np.exp(data.log_probs[:, -1]), (0.1, 0.4, 0.8))
    strata = Strata(stratum, np.array([-1.2, -0.4, 0.4, 1.2]))
    return count_strata(strata, _hidden(data), data.group, GROUPS)


OF_GENERATORS: dict[str, Any] = {
    "axes": {"precision": ("generator",)},
    "classes": (2,),
}
PRECISION_LACKS = NOT_SAVED | {
    "weight 0 = dropped row": NO_WEIGHT,
    "weight 2 = row twice": NO_WEIGHT,
    "unlabelled rows": "the answer depends on the votes on unlabelled outputs",
    "permuting items": "takes counts, without an order of items",
    "item without votes": NO_ITEMS,
    "renaming classes": "valid and invalid are not interchangeable",
    "swapping responses": "valid and invalid are not interchangeable",
    "2 to 5 classes": "an output is either valid or invalid",
}
PRECISION = Family(
    "precision from counts",
    takes=_precision_counts,
    fit=lambda method, inputs: method.fit(inputs),
    answer=lambda fitted, _: {"precision": fitted.estimate()},
    lacks=PRECISION_LACKS,
    **OF_GENERATORS,
)
FORMULA = Family(
    "precision by a formula",
    takes=_precision_counts,
    fit=lambda function, inputs: function(inputs),
    answer=lambda result, _: {"precision": result},
    lacks=PRECISION_LACKS,
    **OF_GENERATORS,
)
DENSE = "needs the votes of every judge on every generator, and raises an error"
LOSS = Family(
    "precision by P4's loss",
    takes=lambda data: targets(_precision_counts(data)),
    fit=lambda function, inputs: function(inputs),
    answer=lambda result, _: {"precision": jnp.atleast_2d(result.precision)[0]},
    lacks=PRECISION_LACKS
    | {"vmap = loop": "runs on the host"}
    | dict.fromkeys(
        ("unseen judge", "one judge", "one item", "one item of one judge", "missing 0 to 95 %"),
        DENSE,
    ),
    **OF_GENERATORS,
)
STRATIFIED = Family(
    "precision from strata",
    {"validity": ("generator", "stratum")},  # medians are over draws, which depend on positions
    takes=_strata,
    fit=lambda method, inputs: method.fit(inputs),
    answer=lambda fitted, _: {"validity": fitted.validity()},
    classes=(2,),
    lacks=PRECISION_LACKS | WITHOUT_VOTES,
)
ITEMS_OF_GENERATORS = Family(
    "precision from items",
    takes=lambda data: (votes_of(data, 1), _hidden(data), data.group, data.weight),
    fit=lambda method, inputs: method.fit(*inputs[:3], GROUPS, weight=inputs[3]),
    answer=lambda fitted, _: {"precision": fitted.estimate()},
    lacks={k: v for k, v in PRECISION_LACKS.items() if "row" not in k and k != "permuting items"}
    | {
        "unlabelled rows": PRECISION_LACKS["unlabelled rows"],
        "vmap = loop": "finds distinct items on the host",
    },
    **OF_GENERATORS,
)


def _of_judges_and_items(fitted: Any, _: Any) -> Answers:
    draws = fitted.draws
    return {
        "ability": draws["ability"][0],
        "difficulty": draws["difficulty"][0],
        "discrimination": draws["log_discrimination"][0],
    }


RESPONSE = Family(
    "item response",
    {"ability": ("judge",), "difficulty": ("item",), "discrimination": ("item",)},
    lambda data: (votes_of(data), data.labels, data.weight),
    lambda method, inputs: method.fit(inputs[0], inputs[1], weight=inputs[2]),
    _of_judges_and_items,
    classes=(2, 3, 4, 5),
    probabilities=False,
    lacks=NOT_SAVED
    | {
        "unseen judge": "covers only the judges and items of the fit",
        "permuting groups": "does not use tasks",
    },
)
