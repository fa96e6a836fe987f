r"""Stacking by Laplace's approximation: the mode of a linear softmax model with a normal prior.

Predictors that are linear in parameters, most of which enter one predictor only.

.. math:: \eta_{ir} = \sum_a F_{ira} \, x_{\mathrm{place}(r, a)}

A design item x predictor x parameter would mostly be zeros: with K classes and J judges its
products take K^2 times as long. The blocks leave them out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import ItemCodes, ItemValues, Scalar
from judgebayes.inference.optimise import Newton, Point, State, Trial, positive_step
from judgebayes.measures.scores import labelled_weight
from judgebayes.models import stacking
from judgebayes.models.label_noise import noise_matrix
from judgebayes.models.stacking import Form, StackingData, StackingPrior, shares


class _Predictors(NamedTuple):
    """Blocks of predictors, in order."""

    blocks: tuple[
        tuple[Float[Array, "item predictor feature"], Int[np.ndarray, "predictor feature"]], ...
    ]
    """Predictors with equally many parameters each: features, and the parameter of each feature."""
    n_parameters: int

    def __matmul__(self, x: Float[Array, " parameter"]) -> Float[Array, "item predictor"]:
        """Return the predictors of every item."""
        parts = [jnp.einsum("ira,ra->ir", features, x[place]) for features, place in self.blocks]
        return jnp.concatenate(parts, axis=1)

    def transposed(self, by_item: Float[Array, "item predictor"]) -> Float[Array, " parameter"]:
        """Return the sum over items and predictors of the features, weighted by `by_item`."""
        total = jnp.zeros(self.n_parameters)
        for (features, place), own in zip(self.blocks, self._ranges(), strict=True):
            total = total.at[place].add(jnp.einsum("ir,ira->ra", by_item[:, own], features))
        return total

    def information(
        self, curvature: Float[Array, "item predictor predictor"]
    ) -> Float[Array, "parameter parameter"]:
        r"""Return :math:`\sum_i \Phi_i^T C_i \Phi_i`, with the items' symmetric curvatures."""
        ranges = self._ranges()

        def of_predictor(one: tuple[Array, Array]) -> Array:
            feature, curved = one  # (item, feature), (item, predictor)
            parts = [
                (curved[:, other, None] * features).reshape(len(feature), -1)
                for (features, _), other in zip(self.blocks, ranges, strict=True)
            ]
            return jnp.concatenate([feature.T @ part for part in parts], axis=1)

        rows = [
            _each(
                of_predictor, (jnp.moveaxis(features, 1, 0), jnp.moveaxis(curvature[:, own], 1, 0))
            )
            for (features, _), own in zip(self.blocks, ranges, strict=True)
        ]
        size = len(self._places())
        return self._in_place(jnp.concatenate([row.reshape(-1, size) for row in rows]))

    def spread(
        self, covariance: Float[Array, "parameter parameter"]
    ) -> Float[Array, "item predictor predictor"]:
        r"""Return :math:`\Phi_i M \Phi_i^T` of every item, with a symmetric matrix M."""

        def of_predictor(one: tuple[Array, Array]) -> Array:
            feature, own = one
            across = covariance[own]
            parts = [
                ((feature @ across[:, place.reshape(-1)]).reshape(features.shape) * features).sum(
                    -1
                )
                for features, place in self.blocks
            ]
            return jnp.concatenate(parts, axis=1)

        rows = [
            _each(of_predictor, (jnp.moveaxis(features, 1, 0), jnp.asarray(place)))
            for features, place in self.blocks
        ]
        return jnp.moveaxis(jnp.concatenate(rows), 1, 0)

    def _ranges(self) -> list[slice]:
        ends = np.cumsum([0, *(len(place) for _, place in self.blocks)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def _places(self) -> Int[np.ndarray, " feature"]:
        return np.concatenate([place.reshape(-1) for _, place in self.blocks])

    def _in_place(
        self, matrix: Float[Array, "feature feature"]
    ) -> Float[Array, "parameter parameter"]:
        """Return a matrix over the features of all predictors as one over the parameters."""
        places, n = self._places(), self.n_parameters
        if np.array_equal(places, np.arange(n)):
            return matrix
        if np.array_equal(np.sort(places), np.arange(n)):  # a gather is faster than a sum
            order = np.argsort(places)
            return matrix[order][:, order]
        return jnp.zeros((n, n)).at[places[:, None], places[None]].add(matrix)


def _each(one: Callable[[tuple[Array, Array]], Array], predictors: tuple[Array, Array]) -> Array:
    """Apply a function to every predictor, one at a time to save memory."""
    first, second = predictors
    if len(first) == 1:
        return one((first[0], second[0]))[None]
    return jax.lax.map(one, predictors)


TOLERANCE = 1e-8
"""Of the largest component of the gradient, which is a sum over items."""
TINY = 1e-300


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Laplace:
    """Compute the mode, and choose the scale of the prior from the same labels.

    Parameters
    ----------
    criterion
        What the scale maximises, besides its own prior: `loo`, the labels' leave-one-out
        log-probabilities, approximated from the one fit; or `evidence`, the Laplace approximation
        of the marginal likelihood, which relies more on the model.
    scales
        Number of prior scales on the grid; the maximum of the criterion is interpolated.
    """

    criterion: Literal["loo", "evidence"] = field(default="loo", metadata={"static": True})
    scales: int = field(default=8, metadata={"static": True})
    max_steps: int = field(default=100, metadata={"static": True})


class _SoftmaxProblem(NamedTuple):
    """Items whose logits are linear: read_out @ (design @ parameters)."""

    design: _Predictors
    read_out: Float[Array, "class predictor"]
    error: Float[Array, "class label"]
    """p(observed label | true label)."""
    labels: ItemCodes
    weight: ItemValues
    """0 where the label is unknown."""


class _Approximation(NamedTuple):
    """The mode, the precision matrix at the mode, and the log evidence up to a constant."""

    mode: Float[Array, " parameter"]
    precision: Float[Array, "parameter parameter"]
    log_evidence: Float[Array, ""]
    status: Int[Array, ""]


def approximate(
    problem: _SoftmaxProblem,
    prior_precision: Float[Array, "parameter parameter"],
    prior_log_det: Float[Array, ""],
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
    log_det = 2 * jnp.log(jnp.diagonal(jnp.linalg.cholesky(end.hessian))).sum()
    evidence = -end.value + 0.5 * (prior_log_det - log_det)
    return _Approximation(end.x, end.hessian, evidence, status)


def _likelihood(
    problem: _SoftmaxProblem, x: Float[Array, " parameter"]
) -> tuple[Float[Array, ""], Float[Array, " parameter"], Float[Array, "parameter parameter"]]:
    """Return the log-likelihood, its gradient and the Fisher information."""
    design, weight = problem.design, problem.weight
    each, gradient, curvature = _by_item(problem, design @ x)
    score = design.transposed(weight[:, None] * gradient)
    information = design.information(weight[:, None, None] * curvature)
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
    leverage = design.spread(covariance)
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
) -> tuple[Float[Array, "parameter parameter"], Float[Array, ""]]:
    """Return the inverse of the prior covariance given tau, and its log-determinant."""
    scale = {name: jnp.full(shape, tau) for name, shape in form.blocks().items()}
    for name in scale.keys() & {"offset", "level"}:
        scale[name] = jnp.full(scale[name].shape, getattr(prior, name))
    flat = join(scale, form)
    along = jnp.zeros(flat.shape[0]).at[: form.n_judges].set(direction)
    length = direction @ direction
    shrunk = prior.kappa / (1 + prior.kappa * length) * jnp.outer(along, along)
    precision = (jnp.eye(flat.shape[0]) - shrunk) / jnp.outer(flat, flat)
    return precision, -2 * jnp.log(flat).sum() - jnp.log1p(prior.kappa * length)


def predictors(index: Int[Array, "item judge sample"], form: Form) -> _Predictors:
    """Return the design, in which u and each eta are linear in the parameters, in two blocks."""
    vote, absent, share = shares(index, form)
    place = places(form)
    columns, at = [vote], [place["weight"]]
    one = jnp.ones((len(index), 1))
    if not form.symmetric:
        columns += [absent, one]
        at += [place["absent"], place["offset"][None]]
    blocks = [(jnp.concatenate(columns, axis=1)[:, None], np.concatenate(at)[None])]
    if form.levels:
        last = jnp.broadcast_to(one[:, None], (len(index), form.levels, 1))
        blocks.append(
            (
                jnp.concatenate([share, last], axis=2),
                np.concatenate([place["level_weight"], place["level"][:, None]], axis=1),
            )
        )
    return _Predictors(tuple(blocks), n_parameters(form))


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
    """The predictors without an item's own label, if the criterion needs them."""


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
    scales, size = inference.scales, problem.design.n_parameters
    grid = jnp.linspace(math.log(TAUS[0]), math.log(TAUS[1]), scales)
    by_label = inference.criterion == "loo"

    def fit_one(number: Int[Array, ""], search: _Search) -> _Search:
        last = number == scales
        best = jnp.argmax(search.values)
        log_tau = jnp.where(last, _peak(grid, search.values), grid[jnp.minimum(number, scales - 1)])
        start = jnp.where(last, search.modes[best], search.fit.mode)
        precision_and_log_det = prior_precision(jnp.exp(log_tau), data.direction, prior, form)
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
    none = _Approximation(jnp.zeros(size), jnp.zeros((size, size)), zero, jnp.asarray(0))
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
