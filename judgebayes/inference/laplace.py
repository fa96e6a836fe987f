r"""Laplace's approximation: the normal at the posterior's mode, its draws, and that of stacking.

Stacking is a linear softmax model with a normal prior, with predictors that are linear in parameters,
most of which enter one predictor only.

.. math:: \eta_{ir} = \sum_a F_{ira} \, x_{\mathrm{place}(r, a)}

A design item x predictor x parameter would mostly be zeros: with K classes and J judges its
products take K^2 times as long. The blocks leave them out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Key, Scalar
from judgebayes.inference.optimise import Newton, Point, State, Trial, positive_step
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Problem, Result, log_density, numpyro_lock
from judgebayes.inference.status import Status, when
from judgebayes.measures.scores import labelled_weight
from judgebayes.models import stacking
from judgebayes.models.base import noise_matrix
from judgebayes.models.stacking import Form, StackingData, StackingPrior, shares

LEAST_ESS = 100.0


def systematic(weight: Float[Array, " draw"], kept: int) -> Int[Array, " kept"]:
    """Return indices of draws in proportion to their weights, by systematic resampling."""
    steps = (jnp.arange(kept) + 0.5) / kept
    return jnp.searchsorted(jnp.cumsum(weight), steps).clip(0, weight.shape[0] - 1)


LEAST_CURVATURE = 1e-10
FREEDOM = 5.0
"""Degrees of freedom of weighted draws."""
AT_ONCE = 128
"""Draws whose density is computed side by side: more would not fit into a cache."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NormalAtMode:
    r"""Draw from the Laplace approximation of the posterior.

    .. math:: \theta \sim \mathrm{Normal}(\hat\theta, H^{-1}), \qquad
              H = -\nabla^2 \log \pi(\hat\theta | \text{data})

    For models whose parameters are unbounded and whose posterior is nearly normal: thousands of times
    faster than `NUTS`, with which the approximation can be checked. `status` is that of the mode, and
    DEGENERATE where the density is not concave there.

    Where few data leave the posterior skewed, or at the boundary of its support, use `weighted`: the
    proposals come from Student's t with 5 degrees of freedom at the mode, which is wider than the
    normal; they are weighted by the ratio of the posterior density to theirs (0 outside the support) and
    resampled systematically. `status` is then UNMIXED where the effective sample size is below 100.
    """

    draws: int = field(default=1000, metadata={"static": True})
    starts: int = field(default=1, metadata={"static": True})
    max_steps: int = field(default=200, metadata={"static": True})
    weighted: bool = field(default=False, metadata={"static": True})

    @numpyro_lock
    def solve(self, problem: Problem, key: Key) -> Result:
        """Return draws around the mode."""
        mode = MAP(starts=self.starts, max_steps=self.max_steps).solve(problem, key)
        low, high, _, _, unravel = problem.box()
        centre = ravel_pytree(jax.tree.map(lambda a: a[0], mode.draws))[0]

        def density(x: Float[Array, " parameter"]) -> Float[Array, ""]:
            return log_density(problem.joint, unravel(x))

        curvature, axes = jnp.linalg.eigh(-jax.hessian(density)(centre))
        # The symmetric root: it does not depend on the signs and the order of the eigenvectors.
        spread = axes / jnp.sqrt(jnp.maximum(curvature, LEAST_CURVATURE)) @ axes.T
        status = jnp.maximum(mode.status, when(curvature[0] <= 0, Status.DEGENERATE))
        size, freedom = (self.draws, len(centre)), FREEDOM / 2
        if not self.weighted:
            samples = centre + jax.random.normal(key, size) @ spread
            return Result(jax.vmap(unravel)(samples), status, mode.details)
        normal, gamma = jax.random.split(key)
        squared = 2 * jax.random.gamma(gamma, freedom, size[:1]) / FREEDOM
        t = jax.random.normal(normal, size) / jnp.sqrt(squared)[:, None]
        proposed = centre + t @ spread
        inside = ((proposed >= low) & (proposed <= high)).all(1)
        log_proposal = -(freedom + len(centre) / 2) * jnp.log1p((t**2).sum(1) / FREEDOM)
        log_weight = jax.lax.map(density, proposed, batch_size=AT_ONCE) - log_proposal
        weight = jax.nn.softmax(jnp.where(inside & jnp.isfinite(log_weight), log_weight, -jnp.inf))
        status = jnp.maximum(status, when(1 / (weight**2).sum() < LEAST_ESS, Status.UNMIXED))
        samples = proposed[systematic(weight, self.draws)]
        return Result(jax.vmap(unravel)(samples), status, mode.details)


TOLERANCE = 1e-8
"""Of the largest component of the gradient, which is a sum over items."""
TINY = 1e-300


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Laplace:
    """Compute the mode, and choose the scale of the prior from the same labels.

    The scale maximises the labels' leave-one-out log-probabilities, approximated from the one fit,
    times its own prior.

    Parameters
    ----------
    scales
        Number of prior scales on the grid; the maximum of the criterion is interpolated.
    """

    scales: int = field(default=8, metadata={"static": True})
    max_steps: int = field(default=100, metadata={"static": True})


Design = Float[Array, "item predictor parameter"]
"""The coefficients of the parameters in each predictor of every item."""


class _SoftmaxProblem(NamedTuple):
    """Items whose logits are linear: read_out @ (design @ parameters)."""

    design: Design
    read_out: Float[Array, "class predictor"]
    error: Float[Array, "class label"]
    """p(observed label | true label)."""
    labels: ItemCodes
    weight: ItemValues
    """0 where the label is unknown."""


class _Approximation(NamedTuple):
    """The mode, and the precision matrix there."""

    mode: Float[Array, " parameter"]
    precision: Float[Array, "parameter parameter"]
    status: Int[Array, ""]


def approximate(
    problem: _SoftmaxProblem,
    prior_precision: Float[Array, "parameter parameter"],
    start: Float[Array, " parameter"],
    max_steps: int = 100,
) -> _Approximation:
    r"""Return the mode of the posterior under a centred normal prior, by Fisher scoring.

    .. math:: F = \sum_i w_i \Phi_i^T J_i^T \mathrm{diag}(1 / \tilde p_i) J_i \Phi_i + P

    with the prior precision P, the design :math:`\Phi_i`, the observed labels' probabilities
    :math:`\tilde p_i` and their Jacobian J. Without label noise this is Newton's method on a
    convex function. A step that does not descend is halved until it does; the loop, its stopping
    rule and its failure modes are those of `judgebayes.inference.optimise`.
    """

    def visit(x: Float[Array, " parameter"]) -> Point:
        log_likelihood, score, information = _likelihood(problem, x)
        pull = prior_precision @ x
        gradient = pull - score
        value, gap = 0.5 * x @ pull - log_likelihood, jnp.max(jnp.abs(gradient))
        return Point(x, value, gap, gradient, information + prior_precision)

    def propose(state: State) -> Trial:
        step = positive_step(state.at.hessian, state.at.gradient, 0.0)
        return state.at.x + step / state.damping, -np.inf, 0.0

    # With label noise and a wide prior there are several modes and long valleys. A damping added to
    # the information ends elsewhere there and no better: of 432 hard fits it lost 9 and won 7.
    newton = Newton(visit, propose, TOLERANCE, max_steps, first=1.0, fall=0.0, rise=2.0, floor=1.0)
    end, status = newton.run(newton.begin(start, prior_precision))
    return _Approximation(end.x, end.hessian, status)


def _likelihood(
    problem: _SoftmaxProblem, x: Float[Array, " parameter"]
) -> tuple[Float[Array, ""], Float[Array, " parameter"], Float[Array, "parameter parameter"]]:
    """Return the log-likelihood, its gradient and the Fisher information."""
    design, weight = problem.design, problem.weight
    each, gradient, curvature = _by_item(problem, design @ x)
    score = jnp.einsum("ir,irp->p", weight[:, None] * gradient, design)
    curved = (weight[:, None, None] * curvature) @ design
    size = len(x)
    information = design.reshape(-1, size).T @ curved.reshape(-1, size)
    return _total(weight, each), score, information


def _by_item(
    problem: _SoftmaxProblem, at: Float[Array, "item predictor"]
) -> tuple[
    ItemValues,
    Float[Array, "item predictor"],
    Float[Array, "item predictor predictor"],
]:
    """Return each item's log p(observed label), its gradient and its Fisher information."""
    _, read_out, error, labels, _ = problem
    log_probs = jax.nn.log_softmax(at @ read_out.T, axis=-1)
    at_label = log_probs + jnp.log(error)[:, jnp.maximum(labels, 0)].T
    each = jax.nn.logsumexp(at_label, axis=1)
    p = jnp.exp(log_probs)
    true = jnp.exp(at_label - each[:, None])  # p(true class | observed label)
    spread = p[:, :, None] * (jnp.eye(p.shape[1]) - p[:, None, :])
    jacobian = jnp.einsum("ks,ikl,lp->isp", error, spread, read_out)
    label_prob = jnp.maximum(p @ error, TINY)
    curvature = jnp.einsum("isp,is,isr->ipr", jacobian, 1 / label_prob, jacobian)
    return each, (true - p) @ read_out, curvature


def log_likelihood(
    problem: _SoftmaxProblem, at: Float[Array, "item predictor"]
) -> Float[Array, ""]:
    """Return the weighted sum of log p(observed label) at the items' predictors."""
    return _total(problem.weight, _by_item(problem, at)[0])


def _total(weight: ItemValues, each: ItemValues) -> Float[Array, ""]:
    return jnp.sum(jnp.where(weight > 0, weight * each, 0.0))


def leave_one_out_predictors(
    problem: _SoftmaxProblem, fit: _Approximation
) -> Float[Array, "item predictor"]:
    r"""Return each item's predictors without its own label, from the fit to all labels.

    .. math:: f_{-i} \approx f_i - (I - V_i W_i)^{-1} V_i g_i, \qquad
              V_i = \Phi_i F^{-1} \Phi_i^T

    with the gradient g_i and the information W_i of one copy of the item: a Newton step from the
    mode without it. An item of weight 2 is two copies, left out one at a time.
    """
    design, weight = problem.design, problem.weight
    at = design @ fit.mode
    _, gradient, curvature = _by_item(problem, at)
    factor = jnp.linalg.cholesky(fit.precision)
    covariance = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(factor)))
    leverage = jnp.einsum("irp,isp->irs", design @ covariance, design)
    # A padding row has no part in the fit, so its leave-one-out value is undefined.
    leverage = jnp.where((weight > 0)[:, None, None], leverage, 0.0)
    shrink = jnp.eye(at.shape[1]) - leverage @ curvature
    correction = jnp.einsum("ipr,ir->ip", leverage, gradient)
    if at.shape[1] == 1:  # two classes: LAPACK would be called for every item
        return at - correction / shrink[..., 0]
    return at - jnp.linalg.solve(shrink, correction[..., None])[..., 0]


def places(form: Form) -> dict[str, Int[np.ndarray, "..."]]:
    """Return the positions of the parameters in one vector, by name, in the order of `form.blocks`."""
    shapes = form.blocks()
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    every = np.split(np.arange(ends[-1]), ends[:-1])
    return {
        name: at.reshape(shape) for (name, shape), at in zip(shapes.items(), every, strict=True)
    }


def n_parameters(form: Form) -> int:
    """Return the number of parameters."""
    return sum(math.prod(shape) for shape in form.blocks().values())


def split(flat: Float[Array, "*draw parameter"], form: Form) -> dict[str, Array]:
    """Return the parameters by name from their vector."""
    return {name: flat[..., place] for name, place in places(form).items()}


def join(named: Mapping[str, Array], form: Form) -> Float[Array, " parameter"]:
    """Return the vector of one draw of the named parameters."""
    return jnp.concatenate([named[name].reshape(-1) for name in form.blocks()])


def prior_precision(
    tau: Scalar, direction: Float[Array, " judge"], prior: StackingPrior, form: Form
) -> Float[Array, "parameter parameter"]:
    """Return the inverse of the prior covariance given tau."""
    scale = {name: jnp.full(shape, tau) for name, shape in form.blocks().items()}
    for name in scale.keys() & {"offset", "level"}:
        scale[name] = jnp.full(scale[name].shape, getattr(prior, name))
    flat = join(scale, form)
    along = jnp.zeros(flat.shape[0]).at[: form.n_judges].set(direction)
    length = direction @ direction
    shrunk = prior.kappa / (1 + prior.kappa * length) * jnp.outer(along, along)
    return (jnp.eye(flat.shape[0]) - shrunk) / jnp.outer(flat, flat)


def predictors(index: Int[Array, "item judge sample"], form: Form) -> Design:
    """Return the design, in which u and each eta are linear in the parameters."""
    vote, absent, share = shares(index, form)
    place, size = places(form), n_parameters(form)
    one = jnp.ones((len(index), 1))

    def row(of: dict[str, Float[Array, "item feature"]], level: int | None = None) -> Array:
        at = [np.atleast_1d(place[name] if level is None else place[name][level]) for name in of]
        features = jnp.concatenate(list(of.values()), axis=1)
        return jnp.zeros((len(index), size)).at[:, np.concatenate(at)].set(features)

    free = {} if form.symmetric else {"absent": absent, "offset": one}
    rows = [row({"weight": vote, **free})]
    rows += [row({"level_weight": share[:, m], "level": one}, m) for m in range(form.levels)]
    return jnp.stack(rows, axis=1)


TAUS = (0.03, 2.0)
"""Least and largest tau of the grid."""


class _Search(NamedTuple):
    """The scales tried so far, and the fit at the last one."""

    modes: Float[Array, "tau parameter"]
    values: Float[Array, " tau"]
    """The criterion."""
    log_tau: Float[Array, ""]
    fit: _Approximation
    held_out: Float[Array, "item predictor"]
    """The predictors without an item's own label."""


def select_tau(
    inference: Laplace,
    data: StackingData,
    prior: StackingPrior,
    noise: Scalar,
    form: Form,
) -> _Search:
    """Return the search that ends with the fit at the tau of the largest criterion.

    The grid runs from strong shrinkage to weak, and each mode is the start of the next. The last fit is
    at the maximum of the parabola through the best tau and its neighbours, by the same compiled code.
    """
    weight = labelled_weight(data.labels, data.weight)
    problem = _SoftmaxProblem(
        predictors(data.votes, form),
        jnp.asarray(stacking.read_out(form)),
        noise_matrix(noise, form.n_classes),
        data.labels,
        weight,
    )
    location, scale = prior.log_tau
    scales, size = inference.scales, problem.design.shape[2]
    grid = jnp.linspace(math.log(TAUS[0]), math.log(TAUS[1]), scales)

    def fit_one(number: Int[Array, ""], search: _Search) -> _Search:
        last = number == scales
        best = jnp.argmax(search.values)
        log_tau = jnp.where(last, _peak(grid, search.values), grid[jnp.minimum(number, scales - 1)])
        start = jnp.where(last, search.modes[best], search.fit.mode)
        precision = prior_precision(jnp.exp(log_tau), data.direction, prior, form)
        fit = approximate(problem, precision, start, inference.max_steps)
        log_prior = -0.5 * ((log_tau - location) / scale) ** 2
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
    none = _Approximation(jnp.zeros(size), jnp.zeros((size, size)), jnp.asarray(0))
    items = len(problem.labels), problem.read_out.shape[1]
    begin = _Search(
        jnp.zeros((scales, size)), jnp.full(scales, -jnp.inf), zero, none, jnp.zeros(items)
    )
    return jax.lax.fori_loop(0, scales + 1, fit_one, begin)


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
