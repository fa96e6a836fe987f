"""Maps with a posterior: a calibrated probability with an interval."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import AnyProbs, LogProbs, Scalar
from judgebayes.calibrators.maps import SoftmaxMap, clipped
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import NO_POSTERIOR, Fit, Method, ModelMethod, Training
from judgebayes.inference.laplace import NormalAtMode
from judgebayes.inference.problem import Inference, require
from judgebayes.inference.registry import in_files
from judgebayes.models.base import ProbsData
from judgebayes.models.calibration_maps import CalibrationMapModel, CalibrationMapPrior

ITEMS_AT_ONCE = 1024
"""Items whose quantiles are computed at a time."""


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BayesianMap(ModelMethod):
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
        `NormalAtMode(weighted=True)`, draws around the mode, weighted by the posterior; `NUTS()`; or
        `MAP()`, the mode only, which has no interval. The plain
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

    calibrator: Method
    inference: Inference = field(default_factory=partial(NormalAtMode, weighted=True))
    prior: CalibrationMapPrior = field(default_factory=CalibrationMapPrior)
    saved: ClassVar[tuple[str, ...]] = ("calibrator",)
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "slope": ("slope_group",),
        "intercept": ("intercept_group",),
    }
    least_labels: ClassVar[int | None] = 1

    def _fitted(self, data: Training) -> Fit:
        """Return draws of the map's parameters.

        Raises
        ------
        JudgeBayesError
            If the map has no posterior, or a prior's standard deviation is not above 0.
        """
        if not isinstance(self.calibrator, SoftmaxMap):
            raise JudgeBayesError(NO_POSTERIOR.format(type(self.calibrator).__name__))
        for name, scale in self.prior._asdict().items():
            require(f"prior.{name}", scale, scale > 0, "a standard deviation above 0")
        return super()._fitted(data)

    def program(self, given: AnyProbs) -> CalibrationMapModel:
        """Return the program for such log-probabilities."""
        own = self._map
        return CalibrationMapModel(given.shape[1], own.form, self.prior, own.label_noise)

    def data(self, given: AnyProbs, labels: Any, weight: Any) -> ProbsData:
        """Return the log-probabilities, at least the map's `clip`, with the labels."""
        log_probs = clipped(jnp.asarray(given, float), self._map.clip)
        return ProbsData(log_probs, labels, weight)

    @property
    def _map(self) -> SoftmaxMap:
        assert isinstance(self.calibrator, SoftmaxMap)
        return self.calibrator

    @in_float64
    def interval(self, fit: Fit, log_probs: AnyProbs, level: float) -> tuple[LogProbs, LogProbs]:
        """Return the ends of the equal-tailed posterior interval of every calibrated probability.

        Raises
        ------
        JudgeBayesError
            If the level is not between 0 and 1, or the fit is a point estimate.
        """
        require("level", level, 0 < level < 1, "a number between 0 and 1")
        if fit.n_draws == 1:
            raise JudgeBayesError(
                "A point estimate has no interval; use NormalAtMode(weighted=True) or NUTS()."
            )
        return _interval(fit, jnp.asarray(log_probs, dtype=float), level)


@jax.jit
def _interval(fit: Fit, log_probs: LogProbs, level: Scalar) -> tuple[LogProbs, LogProbs]:
    tails = jnp.array([(1 - level) / 2, (1 + level) / 2])

    def one(item: Array) -> Float[Array, "end class"]:
        draws = fit.by_draw(item[None])
        return jnp.quantile(jnp.exp(draws[:, 0]), tails, axis=0)

    ends = jax.lax.map(one, log_probs, batch_size=ITEMS_AT_ONCE)
    return ends[:, 0], ends[:, 1]
