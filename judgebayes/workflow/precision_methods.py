"""The methods of `judgebayes precision`, in one table: each returns a fit, and sentences about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import ndtri

from judgebayes.arrays import AnyArray, ItemInts, Key
from judgebayes.errors import JudgeBayesError
from judgebayes.generators import (
    Labelling,
    PrecisionCounts,
    SharePosterior,
    for_more_items,
    mean_prediction,
    rogan_gladen,
    shares,
    valid_share,
)
from judgebayes.generators.clusters import normal_draws
from judgebayes.generators.panel import Posterior
from judgebayes.generators.systems import (
    Rate,
    covariance,
    enough_of_both,
    has_youden_index,
    labels_only,
    prediction_powered,
    stable_power,
)
from judgebayes.inference.status import Status
from judgebayes.votes.classes import listing
from judgebayes.workflow.data import Study

MOST_GENERATORS = 30
"""With more generators, `auto` is `strata`, because `panel` takes minutes."""
CONVERGED = jnp.asarray(int(Status.CONVERGED))
NOT_IDENTIFIED = (
    "Rogan and Gladen's correction is not identified: it divides by the judges' mean Youden index "
    "(TPR + TNR - 1), whose 90 % interval has values below 0.05 or is unknown. It has no estimate here."
)
CORRECTED = "Estimate: corrected for the judges' errors."
BY_RULE = "Estimate: by the same rule from the votes on every generator, labelled or not."
OWN_LABELS = "Estimate: from the generator's own labels."
AT_RANDOM = "This method takes a generator's labelled items as drawn at random."
TAKEN_AS_RIGHT = (
    "This method takes the merged labels as right: its intervals do not count wrong labels. "
    "--method panel counts them."
)
IN_GROUPS = "The intervals of this method about these items do not use --group."
NO_INTERVALS = (
    "This method has no intervals: --target and --group, which are about intervals, change none of its "
    "numbers."
)
ONLY_MORE = "Its intervals are about more items like these, whatever the --target."


@dataclass(frozen=True)
class Points:
    """Point estimates without intervals."""

    values: Float[np.ndarray, " generator"]
    status: Int[Array, ""]
    raw: bool = False
    """Whether they are the mean votes, without any correction."""

    def estimate(self) -> Float[np.ndarray, " generator"]:
        """Return the values."""
        return self.values


@dataclass(frozen=True)
class Normal(Points, Posterior):
    """Normal estimates, each from its generator's own items; NaN where a generator has none."""

    covariance: Float[np.ndarray, "generator generator"] = field(kw_only=True)
    """NaN where a generator has no interval; not 0 between generators with the same groups of items."""

    def quantile(self, level: float) -> Float[np.ndarray, " generator"]:
        """Return a normal quantile of each value, which is not clipped to [0, 1]."""
        return self.values + float(ndtri(level)) * np.sqrt(np.diag(self.covariance))

    def sample(
        self, n_draws: int = 4000, key: Key | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        """Return joint draws; NaN where a generator has no interval."""
        key = jax.random.key(0) if key is None else key
        known = np.flatnonzero(np.isfinite(np.diag(self.covariance)))
        draws = np.full((n_draws, len(self.values)), np.nan)
        draws[:, known] = self.values[known] + normal_draws(
            self.covariance[np.ix_(known, known)], n_draws, key
        )
        return draws


PrecisionFit = Points | Posterior
"""An estimate of each generator's share of valid items, NaN where the method has none; with intervals
and joint draws if it is a posterior."""


@dataclass(frozen=True)
class Given:
    """What the methods learn from."""

    data: Study
    generator: ItemInts
    names: list[str]
    """The names of the generators."""
    counts: PrecisionCounts
    labelling: Labelling
    target: str
    """What the intervals are about: "these" items, or "more" items like these."""

    @property
    def judges(self) -> list[str]:
        """The names of the judges."""
        return [str(judge) for judge in self.data.coding.judges]


class Answer(NamedTuple):
    """A fit, and sentences that say what it chose or could not do."""

    fit: PrecisionFit
    sentences: list[str]
    legend: str = CORRECTED
    """What the estimates are."""
    target: str = ""
    """What the intervals are about: "these" items, or "more" items; empty if there are none."""


def answer(method: str, given: Given) -> Answer:
    """Return the estimates of a method; of `auto`, those of the method that it stands for.

    Raises
    ------
    JudgeBayesError
        If the method lacks labels or votes that it needs.
    """
    labelled = bool(given.counts.labelled.any())
    if method == "auto" and not labelled:
        return _raw_mean(given)
    if method in NEED_LABELS and not labelled:
        raise JudgeBayesError(
            f"No item is labelled, and --method {method} learns from labels. Label some items (run "
            "without --method and with --next 50, which proposes the first), or leave out --method."
        )
    if method == "auto":  # a method whose time grows less with the number of generators
        method = "panel" if len(given.names) <= MOST_GENERATORS else "strata"
    result = METHODS[method](given)
    fit, said, target = result.fit, list(result.sentences), given.target
    if given.data.evidence is not None and not isinstance(fit, SharePosterior):
        said.append(TAKEN_AS_RIGHT)
    if not isinstance(fit, Posterior):
        said += [NO_INTERVALS] if target == "these" or given.data.groups is not None else []
        target = ""
    elif result.target:
        target = result.target
    elif target == "these" and not isinstance(fit, SharePosterior):
        said += [] if given.data.groups is None else [IN_GROUPS]
    elif not isinstance(fit, SharePosterior):
        labels, of, n = given.data.labels, given.generator, len(given.names)
        fit = for_more_items(fit, labels, of, n, given.data.groups)
    return Answer(fit, said, result.legend, target)


def _panel(given: Given) -> Answer:
    fit = shares(
        given.data.votes,
        given.data.labels,
        given.generator,
        len(given.names),
        target=given.target,
        groups=given.data.groups,
        evidence=given.data.evidence,
    )
    return Answer(fit, [])


def _raw_mean(given: Given) -> Answer:
    said = [
        "No item is labelled: the raw mean is the share of votes for valid, not corrected for the "
        "judges' errors, so that it has no interval and no order is settled. Label some items: "
        "--next 50 proposes the first. (--method panel corrects by priors alone.)"
    ]
    raw = np.asarray(mean_prediction(given.counts))
    return Answer(Points(raw, CONVERGED, raw=True), said, "")


def _points(values: Float[AnyArray, " generator"], *said: str) -> Answer:
    return Answer(Points(np.asarray(values, float), CONVERGED), list(said), BY_RULE)


def _rogan_gladen(given: Given) -> Answer:
    if has_youden_index(given.counts):
        return _points(rogan_gladen(given.counts))
    return _points(np.full(len(given.names), np.nan), NOT_IDENTIFIED)


def _by_generator(given: Given, *, powered: bool) -> Answer:
    """Return each generator's estimate from its own labels; NaN where it has none."""
    scores = valid_share(given.data.votes)
    values = np.full(len(given.names), np.nan)
    clipped, few, lone = [], [], []
    rates: list[tuple[int, Rate, Int[np.ndarray, " _"] | None]] = []
    for place, name in enumerate(given.names):
        own = given.generator == place
        labels = given.data.labels[own]
        if not (labels >= 0).any():
            continue
        rest = int((labels < 0).sum())
        power, inside = stable_power(scores[own], labels)
        used = powered and rest > 1
        rate = prediction_powered(scores[own], labels, power) if used else labels_only(labels)
        values[place] = rate.value
        if used and not inside:
            clipped.append(name)
        groups = None if given.data.groups is None else given.data.groups[own]
        if not enough_of_both(labels):
            few.append(name)
        elif groups is not None and _parts_of_one_group(groups, labels):
            lone.append(name)
        else:
            rates.append((place, rate, groups))
    said = [AT_RANDOM, *([] if given.target == "more" else [ONLY_MORE])]
    none = [name for name, value in zip(given.names, values, strict=True) if np.isnan(value)]
    reasons = (
        (none, "no label, so no estimate: this method uses own labels only"),
        (few, "no interval, because a normal one needs at least 5 valid and 5 invalid labels"),
        (clipped, "the tuned weight of the votes is outside [0, 1], and is set to the nearer end"),
        (lone, "no interval, because the labelled or the unlabelled items are in one group"),
    )
    said += [f"Of {listing(names, 3)}: {why}." for names, why in reasons if names]
    spread = np.full((len(values), len(values)), np.nan)
    if rates:
        places = [place for place, _, _ in rates]
        grouped = None if given.data.groups is None else [groups for _, _, groups in rates]
        spread[np.ix_(places, places)] = covariance([rate for _, rate, _ in rates], grouped)
    return Answer(Normal(values, CONVERGED, covariance=spread), said, OWN_LABELS, "more")


def _parts_of_one_group(groups: ItemInts, labels: ItemInts) -> bool:
    """Return whether all labelled or all unlabelled items are in one group."""
    parts = groups[labels >= 0], groups[labels < 0]
    return any(len(part) > 0 and len(np.unique(part)) == 1 for part in parts)


METHODS: dict[str, Callable[[Given], Answer]] = {
    "panel": _panel,
    "strata": lambda given: Answer(given.labelling.fit(), []),
    "rogan-gladen": _rogan_gladen,
    "ppi": partial(_by_generator, powered=True),
    "labels-only": partial(_by_generator, powered=False),
}
NEED_LABELS = ("rogan-gladen", "ppi", "labels-only")
