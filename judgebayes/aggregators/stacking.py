"""Bayesian logistic stacking: the aggregator for judges whose errors are correlated."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Cost, Size, Training, VoteMethod
from judgebayes.arrays import ItemValues, Labels, LogProbs
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.fast.stacking_blocks import (
    join,
    n_parameters,
    predictors,
    prior_precision,
    split,
)
from judgebayes.inference.fit import Answering, Fit, Reliability
from judgebayes.inference.laplace import (
    Approximation,
    Laplace,
    SoftmaxProblem,
    approximate,
    leave_one_out_predictors,
    log_likelihood,
)
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Problem, Result, Sites
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.scores import labelled_weight
from judgebayes.models import stacking
from judgebayes.models.label_noise import noise_matrix
from judgebayes.models.stacking import Form, StackingData, StackingModel, StackingPrior
from judgebayes.votes.array import Votes

STEPS = 5
"""The usual number of Newton steps at one tau."""
TAUS = (0.03, 2.0)
"""Least and largest tau of the grid."""


@aggregator("stacking", knows_judges=True, compared="panel", inferences=("nuts",), place=40)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stacking(Answering, VoteMethod):
    r"""Regress the labels on the whole vote vector; the spread of the judges' weights is estimated.

    .. math:: \log \frac{p(1)}{p(0)} = \sum_j w_j x_j, \qquad
              w = \tau \bigl(z + \sqrt{\kappa}\, c\, \hat l\bigr), \quad z_j, c \sim N(0, 1)

    with votes :math:`x_j \in \{-1, +1\}`, 0 where missing, and the direction :math:`\hat l` of
    the one-coin log-odds (`judgebayes.models.stacking`, which has the form for K ordered classes).
    Judges that copy one another share a weight instead of being counted twice, so weak judges may
    stay in the panel. With binary labels, encode a judge's "tie" as a missing vote.

    For several human labels of one item, repeat the item once for each, with weights that sum to one.

    Parameters
    ----------
    inference
        `Laplace()`: the mode, at the tau that maximises the leave-one-out log-probability of the
        labels. The evidence would prefer a tau that is too large where the model is wrong, for example
        with many similar judges. `NUTS()` samples all parameters, including tau.
    symmetric
        Whether swapping the responses must mirror the result exactly. Use it for pairs; otherwise
        there is an offset, and a weight for each judge's missing votes.
    prior
        `StackingPrior(kappa=...)`: the weight of the direction of the one-coin log-odds, 0 for none.
        With kappa = 0 weights shrink to zero, which suits many similar judges; a small panel of unequal
        judges gains from the direction. It also has the priors of log tau (`Laplace` searches tau
        between 0.03 and 2) and of the parameters that do not depend on votes.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.Stacking().fit(votes, labels)
    >>> print(np.exp(fit(votes))[:, 1].round(2))
    [0.79 0.81 0.21 0.33 0.79 0.21]
    """

    inference: Laplace | NUTS = field(default_factory=Laplace)
    symmetric: bool = field(default=True, metadata={"static": True})
    prior: StackingPrior = field(default_factory=StackingPrior)
    label_noise: float = 0.0
    saved: ClassVar[tuple[str, ...]] = ("symmetric",)
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = StackingModel.dims

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        votes, labels, weight, key = data
        if isinstance(self.inference, NUTS):
            problem = self.problem(votes, labels, weight)
            degenerate = degenerate_status(labels, weight, votes.n_classes, 1)
            return _sampled(self, problem, self.inference.solve(problem, key), degenerate)
        return fit_with_held_out(self, data)[0]

    def cost(self, size: Size) -> Cost:
        """Return the cost of a fit: Newton steps whose matrices have a row for each parameter."""
        n = n_parameters(Form(size.judges, size.classes, self.symmetric))
        scales = self.inference.scales if isinstance(self.inference, Laplace) else 100
        of_step = 2.0 * size.items * n**2 + n**3 / 3
        return Cost(4.0 * size.items * n + 8.0 * n**2, (scales + 1) * (STEPS + 1) * of_step)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for NUTS: the program with these data."""
        form = Form(votes.n_judges, votes.n_classes, self.symmetric)
        weight = jnp.ones(votes.n_items) if weight is None else weight
        direction = stacking.centre(votes.index, jnp.asarray(labels), weight, form)
        return Problem(
            StackingModel(form, self.prior, self.label_noise),
            StackingData(votes.index, direction, jnp.asarray(labels), weight),
        )

    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the items' log-probabilities: of the mean probability over the draws."""
        return log_mean_exp(self.by_draw(fit, given))

    @jax.jit
    def by_draw(self, fit: Fit, given: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw, from one design of the votes."""
        form = Form(given.n_judges, given.n_classes, self.symmetric)
        design, read_out = predictors(given.index, form), jnp.asarray(stacking.read_out(form)).T

        def of_draw(named: Sites) -> LogProbs:
            return jax.nn.log_softmax((design @ join(named, form)) @ read_out, axis=-1)

        return jax.vmap(of_draw)({name: fit.draws[name] for name in form.blocks()})

    def reliability(self, fit: Fit, level: float) -> Reliability:
        """Return each judge's weight (log-odds per vote): posterior mean and central interval.

        A weight is the contribution of a judge given the others, not its accuracy. The prior shrinks
        weights towards a common direction: the intervals of weights far from it have less than
        nominal coverage.
        """
        weight = np.asarray(fit.draws["weight"])
        tails = (1 - level) / 2, (1 + level) / 2
        if "covariance" not in fit.details:
            low, high = np.quantile(weight, tails, axis=0)
            return Reliability(weight.mean(0), low, high)
        from scipy.special import ndtri

        mean = weight[..., 0, :]
        variance = np.diagonal(np.asarray(fit.details["covariance"]), axis1=-2, axis2=-1)
        deviation = np.sqrt(variance[..., : mean.shape[-1]])
        return Reliability(mean, *(mean + ndtri(tail) * deviation for tail in tails))


@jax.jit
def fit_with_held_out(method: Stacking, data: Training) -> tuple[Fit, LogProbs]:
    """Return the fit at the mode, and each item's log-probabilities without its own label.

    Without the item's label are only the weights: the direction of their prior, if it has one, knows it.
    """
    votes, labels, weight, _ = data
    inference = method.inference
    assert isinstance(inference, Laplace)
    form = Form(votes.n_judges, votes.n_classes, method.symmetric)
    direction = stacking.centre(votes.index, labels, weight, form)
    read_out = jnp.asarray(stacking.read_out(form))
    problem = SoftmaxProblem(
        predictors(votes.index, form),
        read_out,
        noise_matrix(method.label_noise, votes.n_classes),
        labels,
        labelled_weight(labels, weight),
    )
    search = _select_tau(inference, problem, direction, method.prior, form)
    approximation = search.fit
    fitted = Fit(
        method=method,
        draws={"tau": jnp.exp(search.log_tau)[None], **split(approximation.mode[None], form)},
        status=worst(approximation.status, degenerate_status(labels, weight, votes.n_classes, 1)),
        details={
            "covariance": jnp.linalg.inv(approximation.precision),
            "log_evidence": approximation.log_evidence,
        },
    )
    return fitted, jax.nn.log_softmax(search.held_out @ read_out.T, axis=-1)


class _Search(NamedTuple):
    """The scales tried so far, and the fit at the last one."""

    modes: Float[Array, "tau parameter"]
    values: Float[Array, " tau"]
    """The criterion."""
    log_tau: Float[Array, ""]
    fit: Approximation
    held_out: Float[Array, "item predictor"]
    """The predictors without an item's own label, if the criterion needs them."""


def _select_tau(
    inference: Laplace,
    problem: SoftmaxProblem,
    direction: Float[Array, " judge"],
    prior: StackingPrior,
    form: Form,
) -> _Search:
    """Return the search that ends with the fit at the tau of the largest criterion.

    The grid runs from strong shrinkage to weak, and each mode is the start of the next. The last fit is
    at the maximum of the parabola through the best tau and its neighbours, by the same compiled code.
    """
    location, scale = prior.log_tau
    scales, size = inference.scales, problem.design.n_parameters
    grid = jnp.linspace(math.log(TAUS[0]), math.log(TAUS[1]), scales)
    by_label = inference.criterion == "loo"

    def fit_one(number: Int[Array, ""], search: _Search) -> _Search:
        last = number == scales
        best = jnp.argmax(search.values)
        log_tau = jnp.where(last, _peak(grid, search.values), grid[jnp.minimum(number, scales - 1)])
        start = jnp.where(last, search.modes[best], search.fit.mode)
        precision_and_log_det = prior_precision(jnp.exp(log_tau), direction, prior, form)
        fit = approximate(problem, *precision_and_log_det, start, inference.max_steps)
        log_prior = -0.5 * ((log_tau - location) / scale) ** 2
        fit = fit._replace(log_evidence=fit.log_evidence + log_prior)
        held_out, value = search.held_out, fit.log_evidence
        if by_label:
            held_out = leave_one_out_predictors(problem, fit)
            value = log_likelihood(problem, held_out) + log_prior
        return _Search(
            search.modes.at[number].set(fit.mode, mode="drop"),
            search.values.at[number].set(value, mode="drop"),
            log_tau,
            fit,
            held_out,
        )

    zero = jnp.zeros(())
    none = Approximation(jnp.zeros(size), jnp.zeros((size, size)), zero, zero, jnp.asarray(0))
    items = len(problem.labels), problem.read_out.shape[1]
    begin = _Search(
        jnp.zeros((scales, size)), jnp.full(scales, -jnp.inf), zero, none, jnp.zeros(items)
    )
    end = jax.lax.fori_loop(0, scales + 1, fit_one, begin)
    return end if by_label else end._replace(held_out=leave_one_out_predictors(problem, end.fit))


def _peak(grid: Float[Array, " tau"], values: Float[Array, " tau"]) -> Float[Array, ""]:
    """Return the maximum of the parabola through the largest value and its neighbours."""
    best = jnp.argmax(values)
    inner = jnp.clip(best, 1, len(grid) - 2)
    before, middle, after = values[inner - 1], values[inner], values[inner + 1]
    curvature = before - 2 * middle + after
    shift = jnp.where(
        curvature < 0, 0.5 * (before - after) / jnp.where(curvature < 0, curvature, 1.0), 0.0
    )
    peak = grid[inner] + jnp.clip(shift, -1, 1) * (grid[1] - grid[0])
    return jnp.where(best == inner, peak, grid[best])


def _sampled(method: Stacking, problem: Problem, result: Result, degenerate: Int[Array, ""]) -> Fit:
    assert isinstance(problem.model, StackingModel)
    model = problem.model
    return Fit(
        method=method,
        draws=jax.vmap(lambda sites: model.quantities(sites, problem.data))(result.draws),
        status=worst(result.status, degenerate),
        chains=result.chains,
    )
