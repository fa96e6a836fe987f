"""Bayesian logistic stacking: the aggregator for judges whose errors are correlated."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.aggregators.base import Cost
from judgebayes.arrays import LogProbs
from judgebayes.inference.fit import Fit, ModelMethod, Training
from judgebayes.inference.laplace import Laplace, join, n_parameters, predictors, select_tau, split
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Sites
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.significance import Interval
from judgebayes.models import stacking
from judgebayes.models.stacking import Form, StackingData, StackingModel, StackingPrior
from judgebayes.votes.array import Votes

STEPS = 5
"""The usual number of Newton steps at one tau."""


@aggregator("stacking", knows_judges=True, compared="panel", inferences=("nuts",), place=40)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stacking(ModelMethod):
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
    least_labels: ClassVar[int | None] = 1
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = StackingModel.dims

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        if not isinstance(self.inference, NUTS):
            return fit_with_held_out(self, data)[0]
        problem = self.problem(*data[:3])
        fit = self.solved(problem, data)
        assert isinstance(problem.model, StackingModel)
        quantities = problem.model.quantities
        return replace(fit, draws=jax.vmap(lambda at: quantities(at, problem.data))(fit.draws))

    def cost(self, items: int, votes: Votes) -> Cost:
        """Return the cost of a fit: Newton steps whose matrices have a row for each parameter."""
        form = self._form(votes)
        n, rows = n_parameters(form), items * (1 + form.levels)
        scales = self.inference.scales if isinstance(self.inference, Laplace) else 100
        of_step = 2.0 * items * n**2 + n**3 / 3
        return Cost(4.0 * rows * n + 8.0 * n**2, (scales + 1) * (STEPS + 1) * of_step)

    def _form(self, given: Votes) -> Form:
        return Form(given.n_judges, given.n_classes, self.symmetric)

    def program(self, given: Votes) -> StackingModel:
        """Return the program for such votes."""
        return StackingModel(self._form(given), self.prior, self.label_noise)

    def data(self, given: Votes, labels: Any, weight: Any) -> StackingData:
        """Return the votes and labels, with the direction that they give to the weights' prior."""
        weight = jnp.ones(given.n_items) if weight is None else weight
        direction = stacking.centre(given.index, labels, weight, self._form(given))
        return StackingData(given.index, direction, labels, weight)

    def predict(self, values: Sites, given: Votes) -> LogProbs:
        """Return the items' log-probabilities under one draw of the weights."""
        form = self._form(given)
        at = predictors(given.index, form) @ join(values, form)
        return jax.nn.log_softmax(at @ jnp.asarray(stacking.read_out(form)).T, axis=-1)

    def reliability(self, fit: Fit, level: float) -> Interval:
        """Return each judge's weight (log-odds per vote): posterior mean and central interval.

        A weight is the contribution of a judge given the others, not its accuracy. The prior shrinks
        weights towards a common direction: the intervals of weights far from it have less than
        nominal coverage.
        """
        weight = np.asarray(fit.draws["weight"])
        if "covariance" not in fit.details:
            return Interval.of_draws(weight, level=level)
        mean = weight[..., 0, :]
        variance = np.diagonal(np.asarray(fit.details["covariance"]), axis1=-2, axis2=-1)
        deviation = np.sqrt(variance[..., : mean.shape[-1]])
        return Interval.around(mean, deviation, level=level)


@jax.jit
def fit_with_held_out(method: Stacking, data: Training) -> tuple[Fit, LogProbs]:
    """Return the fit at the mode, and each item's log-probabilities without its own label.

    Without the item's label are only the weights: the direction of their prior, if it has one, knows it.
    """
    votes, labels, weight, _ = data
    inference = method.inference
    assert isinstance(inference, Laplace)
    given = method.data(votes, labels, weight)
    form = method._form(votes)
    search = select_tau(inference, given, method.prior, method.label_noise, form)
    approximation = search.fit
    fitted = Fit(
        method=method,
        draws={"tau": jnp.exp(search.log_tau)[None], **split(approximation.mode[None], form)},
        status=worst(approximation.status, degenerate_status(labels, weight, votes.n_classes, 1)),
        details={"covariance": jnp.linalg.inv(approximation.precision)},
    )
    read_out = jnp.asarray(stacking.read_out(form)).T
    return fitted, jax.nn.log_softmax(search.held_out @ read_out, axis=-1)
