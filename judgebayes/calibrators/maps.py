r"""The softmax family of maps, with temperature scaling, Platt's map and beta calibration as members.

.. math:: \log q_k = \sigma_k \log p_k + c_k - \log Z

with a slope and an intercept per class; the first class has no intercept. For two classes,

.. math:: \mathrm{logit}\, q = a \log p - b \log(1 - p) + c,
          \qquad a = \sigma_1,\; b = \sigma_0,\; c = c_1,

which is beta calibration (Kull et al. 2017; P2 eq 4); a = b makes it Platt's map on the log-odds
(P2 eq 2), and c = 0 too makes it temperature scaling. For more classes it is vector scaling of the
log-probabilities (Guo et al. 2017), Dirichlet calibration with a diagonal matrix (Kull et al.
2019). The negative log-likelihood is convex in slopes and intercepts, so one start suffices.

The symmetric form ties each class to its mirror image, so that swapping the two responses of a
pair mirrors the result exactly: for two classes a = b and c = 0.

Temperature scaling has one slope for the log-probabilities. Platt's map is P2's residual bias
correction, and beta calibration with an elastic net towards the identity its distribution calibration.
The identity is the baseline for all other maps.

Probabilities are clipped to the least one that enters a map. `BayesianMap` has a posterior: a calibrated
probability with an interval.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import optimization_barrier
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyProbs, ItemValues, LogProbs, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_softmax_by_class
from judgebayes.inference.fit import NO_POSTERIOR, Fit, JaxMethod, Method, ModelMethod, Training
from judgebayes.inference.laplace import NormalAtMode
from judgebayes.inference.optimise import Derivatives, Differentiated, minimise_each
from judgebayes.inference.problem import (
    Design,
    Inference,
    Sites,
    one_draw,
    require,
    score_derivatives,
)
from judgebayes.inference.registry import calibrator, in_files
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.scores import nll
from judgebayes.models.base import ProbsData
from judgebayes.models.calibration_maps import (
    CalibrationMapModel,
    CalibrationMapPrior,
    Form,
    members,
)

CLIP = 1e-300
"""The least probability that enters a map: no floor in practice, but the logarithm of 0 becomes finite.

A larger value makes extreme answers equal, and models of independent judges give extreme answers: 1e-6
costs a fifth of the NLL on panels of 20 to 150 judges (P2, table11)."""


def clipped(log_probs: LogProbs, clip: Scalar) -> LogProbs:
    r"""Return log-probabilities with every probability at least `clip`, renormalised.

    For two classes, this is clipping to [clip, 1 - clip]. Infinite log-probabilities become finite, and
    probabilities within the limits are unchanged.
    """
    return jnp.stack(clipped_by_class(log_probs, clip), axis=1)


@jit_inline()
def clipped_by_class(log_probs: LogProbs, clip: Scalar) -> list[ItemValues]:
    """Return `clipped` class by class (see `log_softmax.log_softmax_by_class`)."""
    log_prob_of_class = list(log_probs.T)
    if len(log_prob_of_class) == 2:  # no exponential, which compilers would recompute for each use
        return [jnp.clip(own, jnp.log(clip), jnp.log1p(-clip)) for own in log_prob_of_class]
    raised = [jnp.maximum(own, jnp.log(clip)) for own in log_prob_of_class]
    is_raised = [r > own for r, own in zip(raised, log_prob_of_class, strict=True)]
    changed = jnp.stack(is_raised).any(0)
    normalised = log_softmax_by_class(raised)
    return [
        jnp.where(changed, new, own) for new, own in zip(normalised, log_prob_of_class, strict=True)
    ]


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Identity(JaxMethod):
    """Return the log-probabilities unchanged, including infinite ones."""

    def predict(self, values: Sites, given: AnyProbs) -> LogProbs:  # noqa: ARG002
        """Return the log-probabilities."""
        return jnp.asarray(given, dtype=float)


UNSURE = 0.25
"""The least log-odds for the initial slope, where predictions are no better than chance."""
TINY = 1e-300


class SoftmaxMap(JaxMethod):
    """A map of the family; its fits have the values `slopes` and `intercepts`, each (1, class)."""

    clip: float
    label_noise: float
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "slopes": ("term", "class"),
        "intercepts": ("term", "class"),
    }

    @property
    @abstractmethod
    def form(self) -> Form:
        """The member of the family of maps."""

    def _fitted(self, data: Training) -> Fit:
        return Fit(self, *_fit_softmax(data, self.clip, self.form, None, 0.0, self.label_noise))

    def predict(self, values: Sites, given: Any) -> LogProbs:
        """Return the calibrated log-probabilities."""
        own = clipped_by_class(jnp.asarray(given, dtype=float), self.clip)
        slopes, intercepts = values["slopes"][0], values["intercepts"][0]
        logits = [slopes[k] * x + intercepts[k] for k, x in enumerate(own)]
        return jnp.stack(log_softmax_by_class(logits), axis=1)


@partial(jax.jit, static_argnames="form")
def _fit_softmax(
    data: Training,
    clip: Scalar,
    form: Form,
    penalty: Scalar | None,
    l1_share: Scalar,
    label_noise: Scalar,
) -> tuple[Sites, Int[Array, ""], dict[str, Array]]:
    r"""Return values, status and details of the map with the minimum penalised log-likelihood loss.

    .. math:: -\frac{\sum_i w_i \log q_{y_i}}{\sum_i w_i}
              + \lambda \Bigl(\rho \lVert\delta\rVert_1
              + \frac{1 - \rho}{2} \lVert\delta\rVert_2^2\Bigr)

    with the parameters' distance delta from the identity; with label noise, q is the probability of
    the observed label. The positive and negative parts of the distance are separate variables with the
    lower bound 0: the penalty is then smooth, and the box minimiser returns exact zeros.

    Parameters
    ----------
    data
        The training data.
    clip
        The least probability.
    form
        The member of the family.
    penalty, l1_share
        lambda and rho; no penalty if None.
    label_noise
        The known share of the labels that are wrong, any other class alike.
    """
    # The barrier keeps compilers from recomputing logarithms and exponentials for each use.
    log_probs = optimization_barrier(clipped_by_class(data.given, clip))
    n_classes = len(log_probs)
    slope_of, intercept_of = members(form, n_classes)
    columns = [{k: log_probs[k] for k in np.flatnonzero(of).tolist()} for of in slope_of]
    one = jnp.ones(len(data.labels))
    columns += [dict.fromkeys(np.flatnonzero(of).tolist(), one) for of in intercept_of]
    design = Design(columns, n_classes)
    total = data.weight.sum()
    share = jnp.where(total > 0, 1 / total, 0.0)
    loss = score_derivatives(nll, design, data.labels, data.weight, label_noise, factor=share)

    size, n_slopes = len(columns), len(slope_of)
    identity = (jnp.arange(size) < n_slopes).astype(float)
    lower = jnp.where(identity > 0, 0.0, -jnp.inf) if form.monotone else None
    # Where predictions are far too confident, the likelihood is nearly linear at the identity and
    # Newton's steps fail, so start at a matching slope. The loss is convex: the minimum is the same.
    start = initial_slope(log_probs, data) * identity
    if penalty is None:
        ends = minimise_each(loss, start[None], lower)
        theta = ends.x[0]
    else:
        infinite = jnp.full(size, jnp.inf)
        ends = minimise_each(
            _penalised(loss, identity, penalty * l1_share, penalty * (1 - l1_share)),
            jnp.concatenate([jnp.zeros(size), identity - start])[None],
            jnp.zeros(2 * size),
            jnp.concatenate([infinite, infinite if lower is None else identity - lower]),
        )
        theta = identity + ends.x[0, :size] - ends.x[0, size:]
    solution = jax.tree.map(lambda a: a[0], ends)
    slopes, intercepts = theta[:n_slopes] @ slope_of, theta[n_slopes:] @ intercept_of
    values = {"slopes": slopes[None], "intercepts": intercepts[None]}
    status = worst(solution.status, degenerate_status(data.labels, data.weight, n_classes, size))
    details = {"objective": solution.value, "projected_gradient": solution.projected_gradient}
    return one_draw(values), status, details


def initial_slope(log_probs: Sequence[ItemValues], data: Training) -> Float[Array, ""]:
    """Return the slope, at most 1, at which the mean confidence matches the accuracy.

    They match if the mean difference between the logits of the best and the worst class is the
    log-odds of a right prediction; if all predictions are equally confident, this slope is optimal.
    """
    n_classes, total = len(log_probs), data.weight.sum()
    each = jnp.stack(log_probs)
    best = each.max(0)
    difference = optimization_barrier(data.weight * (best - each.min(0))).sum()
    hits = [(data.labels == k) & (own == best) for k, own in enumerate(log_probs)]
    right = optimization_barrier(data.weight * jnp.stack(hits).any(0)).sum()
    odds = (n_classes - 1) * (right + 1) / (total - right + 1)
    target = total * jnp.maximum(jnp.log(odds), UNSURE)
    return jnp.where(difference > target, target / jnp.maximum(difference, TINY), 1.0)


def _penalised(
    loss: Differentiated, identity: Float[Array, " parameter"], l1: Scalar, l2: Scalar
) -> Differentiated:
    """Return the penalised loss as a function of the parts above and below the identity."""

    def at(parts: Float[Array, " part"]) -> Derivatives:
        above, below = jnp.split(parts, 2)
        value, gradient, hessian = loss(identity + above - below)
        both = jnp.block([[hessian, -hessian], [-hessian, hessian]])
        return (
            value + l1 * parts.sum() + l2 / 2 * (parts**2).sum(),
            jnp.concatenate([gradient, -gradient]) + l1 + l2 * parts,
            both + l2 * jnp.eye(len(parts)),
        )

    return at


@calibrator("temperature")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Temperature(SoftmaxMap):
    r"""Divide the log-probabilities by the temperature with the minimum negative log-likelihood.

    .. math:: q_k \propto p_k^{1 / T}

    Guo et al. (2017). The fitted `slopes` are all 1 / T, at least 0 (T infinite, uniform result).
    For any number of classes; swapping classes mirrors the result, and their order is preserved.

    Parameters
    ----------
    clip
        Lower probabilities are raised to this value. By default there is no floor: only 0 is raised.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> print(np.exp(jb.Temperature().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.09 0.15 0.25 0.34 0.58 0.66 0.85 0.91]
    """

    clip: float = CLIP
    label_noise: float = 0.0
    saved: ClassVar[tuple[str, ...]] = ("clip",)

    @property
    def form(self) -> Form:
        """The member of the family of maps."""
        return Form(tied=True, intercepts=False, symmetric=True, monotone=True)


@calibrator("platt")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Platt(SoftmaxMap):
    r"""Fit a logistic regression of the label on the log-odds (P2 eqs 2, 3).

    .. math:: \mathrm{logit}\, q = c + b\, \mathrm{logit}\, p

    Platt (1999), without his smoothing of the labels. For more than two classes,
    :math:`\log q_k = b \log p_k + c_k - \log Z` with c of the first class 0 (bias-corrected
    temperature scaling, Alexandari et al. 2020). The slope is free: a negative slope reverses an
    aggregator that is wrong more often than right.

    If the classes are separated, no finite slope is optimal: the fit stops where the objective is
    flat, and its probabilities are nearly 0 and 1.

    Parameters
    ----------
    symmetric
        Whether swapping the responses must mirror the result: for pairs whose orientation is
        arbitrary. For two classes only the slope remains.
    clip
        Lower probabilities are raised to this value. By default there is no floor: only 0 is raised.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> print(np.exp(jb.Platt().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.09 0.16 0.27 0.37 0.61 0.7  0.87 0.93]
    """

    symmetric: bool = field(default=False, metadata={"static": True})
    clip: float = CLIP
    label_noise: float = 0.0
    saved: ClassVar[tuple[str, ...]] = ("symmetric", "clip")

    @property
    def form(self) -> Form:
        """The member of the family of maps."""
        return Form(tied=True, intercepts=True, symmetric=self.symmetric, monotone=False)


@calibrator("beta")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Beta(SoftmaxMap):
    r"""Fit the beta map, with separate slopes near 0 and near 1 (Kull et al. 2017; P2 eq 4).

    .. math:: \mathrm{logit}\, q = a \log p - b \log(1 - p) + c

    by minimising the mean negative log-likelihood plus
    :math:`\lambda (\rho \lVert\delta\rVert_1 + \frac{1 - \rho}{2} \lVert\delta\rVert_2^2)` with
    :math:`\delta = (a - 1, b - 1, c)`, the distance from the identity. For two classes 0 and 1,
    a is `slopes[0, 1]`, b is `slopes[0, 0]` and c is `intercepts[0, 1]` of the fit's `first` values.
    More classes: :math:`\log q_k = a_k \log p_k + c_k - \log Z` (`judgebayes.calibrators.maps`).

    P2 uses a light elastic net; its strength is not legible in our copy of the text, so the default is
    our choice. Without a penalty it is Kull's map.

    Parameters
    ----------
    penalty
        lambda, on the scale of the mean negative log-likelihood. None means no penalty: the same result
        as 0, but faster.
    l1_share
        rho, from 0 (ridge) to 1 (lasso).
    free_slopes
        Whether a and b may be negative. By default they are at least 0, and the map is monotone.
        (The `betacal` package instead drops a log-probability whose slope is negative.)
    symmetric
        Whether swapping the responses must mirror the result: a = b and c = 0 for two classes.
    clip
        Lower probabilities are raised to this value. By default there is no floor: only 0 is raised.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> print(np.exp(jb.Beta().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.11 0.17 0.27 0.35 0.59 0.68 0.88 0.94]
    """

    penalty: float | None = 1e-3
    l1_share: float = 0.5
    free_slopes: bool = field(default=False, metadata={"static": True})
    symmetric: bool = field(default=False, metadata={"static": True})
    clip: float = CLIP
    label_noise: float = 0.0
    saved: ClassVar[tuple[str, ...]] = ("free_slopes", "symmetric", "clip")

    @property
    def form(self) -> Form:
        """The member of the family of maps."""
        return Form(
            tied=False,
            intercepts=True,
            symmetric=self.symmetric,
            monotone=not self.free_slopes,
        )

    def _fitted(self, data: Training) -> Fit:
        rho = self.l1_share
        if self.penalty is not None:
            require("penalty", self.penalty, self.penalty >= 0, "a number of 0 or more, or None")
        require("l1_share", rho, (rho >= 0) & (rho <= 1), "from 0 to 1")
        of_fit = _fit_softmax(data, self.clip, self.form, self.penalty, rho, self.label_noise)
        return Fit(self, *of_fit)


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
