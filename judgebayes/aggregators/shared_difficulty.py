"""Judges who share an item's difficulty: the aggregator for panels with missing votes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.aggregators.base import Cost
from judgebayes.aggregators.one_coin import ClassPrior, class_log_prior
from judgebayes.arrays import LogProbs
from judgebayes.inference.fast.shared_difficulty_grid import (
    EASES,
    LOG_SCALES,
    judges_mode,
    log_class_given,
    scale_points,
)
from judgebayes.inference.fit import Fit, ModelMethod, Training
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.point import EM
from judgebayes.inference.problem import Sites
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.scores import labelled_weight
from judgebayes.measures.significance import Interval
from judgebayes.models.base import PanelData
from judgebayes.models.shared_difficulty import (
    NODES,
    SharedDifficultyModel,
    SharedDifficultyPrior,
    n_biases,
)
from judgebayes.votes.array import Votes

TYPICAL_STEPS = 40
"""The usual number of steps, for the cost of a fit."""
POINTS = len(LOG_SCALES) * len(EASES)


@aggregator("shared-difficulty", knows_judges=True, inferences=("nuts",), place=35)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SharedDifficulty(ModelMethod):
    r"""Weigh judges by partially pooled reliabilities, with an item difficulty that they share.

    .. math:: p(y \mid \text{votes}) \propto \pi_y\, \mathrm{E}_h \prod_j p(v_j \mid y, h), \qquad
              p(v = y \mid h) = \mathrm{sigmoid}(k\, l_j + s h) \text{ for two classes}

    (`judgebayes.models.shared_difficulty` has the form for K classes, and biases for classes that mean
    something.) A judge with few labels is shrunk to the others, and one without labels has their mean:
    use it where many votes are missing. With the common effect h, many votes for one class are less
    evidence than as many independent ones. The scale k, which is learnt from the labels given the votes,
    allows for what else the judges have in common.

    Parameters
    ----------
    inference
        `EM(1e-5, 500)`, the default, or `NUTS()` for the posterior of the program of votes given labels,
        without the scale k: its answers are too sure where judges have more in common than an item's
        ease.
    symmetric
        Whether swapping the responses must mirror the result exactly. Use it for pairs; otherwise each
        judge has a bias towards each class.
    prior
        The prior of the program of votes given labels.
    class_prior
        `uniform`, or `labels`: the labels' frequencies, with a pseudo-count of 1 for each class.
    label_noise
        The known share of the labels that are wrong, any other class alike.
    scaled
        Whether EM adds the scale of reliabilities, learnt from the labels given votes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.SharedDifficulty().fit(votes, labels)
    >>> print(np.exp(fit(votes))[:, 1].round(2))
    [0.73 0.82 0.27 0.33 0.73 0.27]
    """

    inference: EM | NUTS = field(default_factory=partial(EM, 1e-5, 500))
    symmetric: bool = field(default=True, metadata={"static": True})
    prior: SharedDifficultyPrior = field(default_factory=SharedDifficultyPrior)
    class_prior: ClassPrior = field(default="uniform", metadata={"static": True})
    label_noise: float = 0.0
    scaled: bool = field(default=True, metadata={"static": True})
    saved: ClassVar[tuple[str, ...]] = ("symmetric",)
    least_labels: ClassVar[int | None] = 1
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "reliability": ("judge",),
        "bias": ("judge", "bias"),
        "ease": (),
        "log_mass": (),
        "log_class": ("class",),
        "mode": ("judge",),
        "deviation": ("judge",),
    }
    """Of weighted points, or of draws; the reliability is multiplied by its scale."""

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        if not isinstance(self.inference, NUTS):
            return fit_with_held_out(self, data)[0]
        fit = super()._fitted(data)
        parameters = jax.vmap(self.program(data.given).parameters)(fit.draws)
        draws = {
            "reliability": parameters[..., 0],
            "bias": parameters[..., 1:],
            "ease": fit.draws["ease"],
            "log_mass": jnp.full(len(parameters), -jnp.log(len(parameters))),
        }
        return replace(fit, draws=draws, details={"log_class": _log_class(self, data)})

    def cost(self, items: int, votes: Votes) -> Cost:
        """Return the cost of a fit: tables of votes at every value of the ease, and counts of votes."""
        parameters = 1 + n_biases(votes.n_classes, self.symmetric)
        cells = items * votes.n_judges * (votes.n_classes + parameters)
        table = votes.n_judges * votes.n_classes**2 * NODES
        at_nodes = items * votes.n_classes * NODES
        per_node = 4.0 * TYPICAL_STEPS * votes.n_classes + 2.0 * POINTS * (
            votes.n_classes + parameters
        )
        of_tables = 4.0 * (TYPICAL_STEPS + POINTS) * table * parameters
        operations = at_nodes * votes.n_judges * per_node + of_tables
        return Cost(3 * cells + 8 * table + 4 * at_nodes, operations)

    def program(self, given: Votes) -> SharedDifficultyModel:
        """Return the program for such votes."""
        return SharedDifficultyModel(given.n_classes, self.symmetric, self.prior, self.label_noise)

    def data(self, given: Votes, labels: Any, weight: Any) -> PanelData:
        """Return the votes with the labels."""
        return PanelData(jnp.asarray(given.index, int), labels, weight)

    @jax.jit
    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the log of the weighted mean, one draw after the other: memory does not grow with them.

        An item without votes has the classes' prior.
        """
        count = given.counts().astype(float)

        def add(total: Array, draw: Sites) -> tuple[Array, None]:
            return jnp.logaddexp(total, draw["log_mass"] + self._one(fit, count, draw)), None

        start = jnp.full((given.n_items, given.n_classes), -jnp.inf)
        total, _ = jax.lax.scan(add, start, fit.draws)
        return jax.nn.log_softmax(total, axis=-1)

    @jax.jit
    def by_draw(self, fit: Fit, given: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        count = given.counts().astype(float)
        return jax.lax.map(lambda draw: self._one(fit, count, draw), fit.draws)

    def _one(self, fit: Fit, count: Float[Array, "item judge vote"], draw: Sites) -> LogProbs:
        parameters = jnp.concatenate([draw["reliability"][:, None], draw["bias"]], axis=1)
        log_class = fit.details["log_class"]
        return log_class_given(count, parameters, draw["ease"], log_class, symmetric=self.symmetric)

    def reliability(self, fit: Fit, level: float) -> Interval:
        """Return each judge's reliability in log-odds: posterior mean and central interval.

        With two classes and no bias it is the logit of the accuracy on an item of mean ease. Draws give
        quantiles; at a mode the intervals are normal, given the variances.
        """
        if "mode" not in fit.details:
            return Interval.of_draws(np.asarray(fit.draws["reliability"]), level=level)
        mean, deviation = (np.asarray(fit.details[name]) for name in ("mode", "deviation"))
        return Interval.around(mean, deviation, level=level)


@jax.jit
def fit_with_held_out(method: SharedDifficulty, data: Training) -> tuple[Fit, LogProbs]:
    """Return the fit by empirical Bayes, and each item's log-probabilities without its own label.

    Of each judge, `mode` is that of the reliability before scaling, with its standard `deviation`.
    """
    votes, labels, weight, _ = data
    inference = method.inference
    assert isinstance(inference, EM)
    used = labelled_weight(labels, weight)
    log_class = _log_class(method, data)
    count = votes.counts().astype(float)
    judges = judges_mode(
        count,
        labels,
        used,
        log_class,
        method.label_noise,
        method.prior,
        symmetric=method.symmetric,
        tolerance=inference.tolerance,
        max_steps=inference.max_steps,
    )
    scale, ease, log_mass, held_out = scale_points(
        count,
        labels,
        used,
        log_class,
        method.label_noise,
        judges,
        symmetric=method.symmetric,
    )
    if not method.scaled:
        scale, ease, log_mass = jnp.ones(1), judges.at.ease[None], jnp.zeros(1)
    bias = judges.at.parameters[:, 1:]
    fitted = Fit(
        method=method,
        draws={
            "reliability": scale[:, None] * judges.at.parameters[:, 0],
            "bias": jnp.broadcast_to(bias, (len(scale), *bias.shape)),
            "ease": ease,
            "log_mass": log_mass,
        },
        status=worst(judges.status, degenerate_status(labels, weight, votes.n_classes, 1)),
        details={
            "log_class": log_class,
            "mode": judges.at.parameters[:, 0],
            "deviation": jnp.sqrt(judges.at.covariance[:, 0, 0]),
        },
    )
    return fitted, held_out


def _log_class(method: SharedDifficulty, data: Training) -> Float[Array, " class"]:
    votes, labels, weight, _ = data
    return class_log_prior(
        labels, weight, method.class_prior, method.label_noise, n_classes=votes.n_classes
    )
