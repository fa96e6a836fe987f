"""Maps with a posterior: a calibrated probability with an interval."""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyProbs, Key, Labels, LogProbs, Scalar, Weights
from judgebayes.calibrators.calibrator import (
    NO_POSTERIOR,
    CalibrationData,
    Calibrator,
    calibration_data,
    clipped,
    require,
)
from judgebayes.calibrators.maps import Beta, Platt, Temperature
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.normal import NormalAtMode
from judgebayes.inference.problem import Chains, Inference, Problem, Sites, UsesPrior
from judgebayes.inference.registry import in_files
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import degenerate_status, summary, worst
from judgebayes.models.calibration_maps import (
    CalibrationMapModel,
    CalibrationMapPrior,
    Form,
    MapData,
)

ITEMS_AT_ONCE = 1024
"""Items whose quantiles are computed at a time."""


class ProbabilityInterval(NamedTuple):
    """Ends of the interval of every calibrated probability, from 0 to 1."""

    low: LogProbs
    high: LogProbs


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BayesianMap(UsesPrior):
    r"""Compute the posterior of a map's parameters, so that its probabilities have intervals.

    .. math:: \pi(\theta \mid y) \propto \pi(\theta) \prod_i q_\theta(y_i \mid p_i)^{w_i}

    with the map :math:`q_\theta` of `Temperature`, `Platt` or `Beta` and its settings (`symmetric`,
    `free_slopes`, `clip`, `label_noise`), and weakly informative priors centred on the identity
    (`judgebayes.models.calibration_maps`). The prior replaces the penalty of `Beta`. The calibrated
    probability is the average over the posterior.

    The interval is for the map: for the frequency of a class among items with the same predicted
    probability, assuming that the map's family contains the true map. It does not include the
    aggregator's own uncertainty, and treats labelled items as independent.

    Parameters
    ----------
    calibrator
        `Temperature()`, `Platt()` or `Beta()`. Isotonic regression has no parameters, and no
        posterior here.
    inference
        `NormalAtMode(weighted=True)`, draws around the mode, weighted by the posterior; `NUTS()`;
        `PriorImportance()`; or `MAP()`, the mode only, which has no interval. The plain
        `NormalAtMode()` ignores bounds and skewness: with few labels its intervals are too low or too
        high near 0 and 1.
    prior
        Standard deviations of the priors. Any but the default raises a JudgeBayesError together with a
        minimum score, which does not use it.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> fit = jb.BayesianMap(jb.Platt()).fit(log_probs, labels)
    >>> low, high = fit.interval(log_probs)
    >>> print(np.stack([low[:, 1], np.exp(fit(log_probs))[:, 1], high[:, 1]], axis=1)[[0, 4]].round(1))
    [[0.  0.1 0.4]
     [0.3 0.6 0.9]]
    """

    calibrator: Calibrator
    inference: Inference = field(default_factory=partial(NormalAtMode, weighted=True))
    prior: CalibrationMapPrior = field(default_factory=CalibrationMapPrior)

    @in_float64
    def fit(
        self,
        log_probs: AnyProbs,
        labels: Labels,
        *,
        weight: Weights | None = None,
        key: Key | None = None,
    ) -> "FittedBayesianMap":
        """Return draws of the map's parameters.

        Parameters
        ----------
        log_probs, labels, weight
            As in the `fit` of the map.
        key
            Random key of the draws; a fixed one by default.

        Raises
        ------
        JudgeBayesError
            If the map has no posterior, a prior's standard deviation is not
            above 0, lengths differ, a label is not a class index, or a value is NaN.
        """
        own = self.calibrator
        if not isinstance(own, Temperature | Platt | Beta):
            raise JudgeBayesError(NO_POSTERIOR.format(type(own).__name__))
        for name, scale in self.prior._asdict().items():
            require(f"prior.{name}", scale, scale > 0, "a standard deviation above 0")
        data = calibration_data(log_probs, labels, weight)
        key = jax.random.key(0) if key is None else key
        return with_source(_fit(self, own.form, data, key), self, data)

    def problem(self, data: CalibrationData) -> Problem:
        """Return the problem for the inference: the program with these data."""
        own = self.calibrator
        assert isinstance(own, Temperature | Platt | Beta)
        log_probs = clipped(data.log_probs, own.clip)
        return Problem(
            CalibrationMapModel(log_probs.shape[1], own.form, self.prior, own.label_noise),
            MapData(log_probs, data.labels, data.weight),
        )


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedBayesianMap(Sampled):
    """A fitted map, with several draws of its parameters or one point estimate."""

    draws: Sites
    """By site of the program (`judgebayes.models.calibration_maps`), each with a leading draw axis."""
    status: Int[Array, "*batch"]
    objective: Float[Array, "*batch"]
    projected_gradient: Float[Array, "*batch"]
    chains: Chains | None
    clip: Scalar
    form: Form = field(metadata={"static": True})

    __repr__ = summary

    @in_float64
    def __call__(self, log_probs: AnyProbs) -> LogProbs:
        """Return the logarithms of the probabilities averaged over the draws."""
        return log_mean_exp(self.by_draw(log_probs))

    @in_float64
    def by_draw(self, log_probs: AnyProbs) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        return _by_draw(self, jnp.asarray(log_probs, dtype=float))

    @in_float64
    def interval(self, log_probs: AnyProbs, *, level: float = 0.9) -> ProbabilityInterval:
        """Return the equal-tailed posterior interval of every calibrated probability.

        Raises
        ------
        JudgeBayesError
            If the level is not between 0 and 1, the fit is a point estimate, or the number of features
            is not that of the fit.
        """
        require("level", level, 0 < level < 1, "a number between 0 and 1")
        if next(iter(self.draws.values())).shape[0] == 1:
            raise JudgeBayesError(
                "A point estimate has no interval; use NormalAtMode(weighted=True) or NUTS()."
            )
        return _interval(self, jnp.asarray(log_probs, dtype=float), level)


@partial(jax.jit, static_argnames="form")
def _fit(method: BayesianMap, form: Form, data: CalibrationData, key: Key) -> FittedBayesianMap:
    result = method.inference.solve(method.problem(data), key)
    degenerate = degenerate_status(data.labels, data.weight, data.log_probs.shape[1], 1)
    return FittedBayesianMap(
        draws=result.draws,
        status=worst(result.status, degenerate),
        objective=result.objective,
        projected_gradient=result.projected_gradient,
        chains=result.chains,
        clip=vars(method.calibrator)["clip"],
        form=form,
    )


@jax.jit
def _by_draw(fitted: FittedBayesianMap, log_probs: LogProbs) -> Float[Array, "draw item class"]:
    form = Form(*fitted.form)  # a fit file stores a plain tuple
    model, labels = CalibrationMapModel(log_probs.shape[1], form), jnp.zeros(len(log_probs), int)
    data = MapData(clipped(log_probs, fitted.clip), labels)
    return jax.vmap(lambda sites: model.predict(sites, data))(fitted.draws)


@jax.jit
def _interval(fitted: FittedBayesianMap, log_probs: LogProbs, level: Scalar) -> ProbabilityInterval:
    tails = jnp.array([(1 - level) / 2, (1 + level) / 2])

    def one(item: Array) -> Float[Array, "end class"]:
        draws = _by_draw(fitted, item[None])
        return jnp.quantile(jnp.exp(draws[:, 0]), tails, axis=0)

    ends = jax.lax.map(one, log_probs, batch_size=ITEMS_AT_ONCE)
    return ProbabilityInterval(ends[:, 0], ends[:, 1])
