r"""The problem that an inference method solves: the log-density of a program, or a proper score.

Models run under a lock, because all threads share NumPyro's one stack of handlers.

**Written derivatives**: value, gradient and Hessian of a proper score of a softmax of linear functions.

Item i has the class probabilities

.. math:: p_{ik} = \mathrm{softmax}_k(z_{i}), \qquad z_{ik} = \sum_a X_{ika} \theta_a .

Davidson's model and the calibration maps have this form. Automatic differentiation takes the second
derivatives one parameter at a time, in many passes over the items; the analytic form needs one pass.

DRPS of few classes and parameters has it, as in Davidson's sweeps.
"""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int
from numpyro.distributions import constraints
from numpyro.infer import util
from numpyro.infer.initialization import init_to_mean

from judgebayes.arrays import ItemCodes, ItemValues, Key, LogProbs, Scalar
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.optimise import Derivatives, Differentiated, Vector, differentiated
from judgebayes.measures.scores import Score, drps, labelled_weight
from judgebayes.models.base import Model, Predictor, with_label_noise


def symmetric(below: Float[Array, " pair"], size: int) -> Float[Array, "parameter parameter"]:
    """Return the symmetric matrix with this lower triangle, given row by row."""
    lower = np.tril_indices(size)
    place = np.empty((size, size), int)
    place[lower] = place[lower[::-1]] = np.arange(len(lower[0]))
    # No indexed update: under `vmap` that would be a scatter.
    return jnp.stack([below[k] for k in place.ravel().tolist()]).reshape(size, size)


Curve = tuple[ItemValues, list[ItemValues], list[list[ItemValues]]]
"""The score of every item, its gradient in the logits, and the lower triangle of its Hessian."""

Column = Mapping[int, ItemValues]
"""The coefficient of a parameter in the logit of each class; classes without it are left out."""

MOST_CLASSES, MOST_PARAMETERS = 6, 12
"""Above these, explicit sums over pairs are slow to compile."""


class Design(NamedTuple):
    """The coefficients X of the linear functions, by parameter and class."""

    columns: Sequence[Column]
    n_classes: int

    def matrix(self) -> Float[Array, "item class parameter"]:
        """Return the coefficients of every item in one array."""
        zero = jnp.zeros_like(next(iter(self.columns[0].values())))
        classes = range(self.n_classes)
        return jnp.stack(
            [jnp.stack([x.get(k, zero) for k in classes], 1) for x in self.columns], -1
        )


def score_derivatives(
    score: Score,
    design: Design,
    labels: ItemCodes,
    weight: ItemValues,
    noise: Scalar,
    factor: Scalar = 1.0,
) -> Differentiated:
    r"""Return :math:`\theta \mapsto f \sum_i w_i S(\tilde p_i, y_i)` with two derivatives.

    Noisy labels have the probabilities
    :math:`\tilde p_k = a p_k + b, b = \epsilon / (K - 1), a = 1 - K b`
    (`judgebayes.models.label_noise.with_label_noise`).

    Parameters
    ----------
    score
        DRPS of a few classes has written derivatives; other scores are differentiated automatically.
    design
        The linear functions.
    labels
        Class indices; items with label -1 or weight 0 are ignored and may hold NaN.
    noise
        The share of wrong labels.
    factor
        The factor f, such as 1 / (the number of items).
    """
    function = _sum_of_scores(score, design, labels, weight, noise)
    return lambda theta: jax.tree.map(lambda each: factor * each, function(theta))


def _sum_of_scores(
    score: Score, design: Design, labels: ItemCodes, weight: ItemValues, noise: Scalar
) -> Differentiated:
    used = (labels >= 0) & (weight > 0)
    weight = jnp.where(used, weight, 0.0)
    columns = [{k: jnp.where(used, x, 0.0) for k, x in column.items()} for column in design.columns]
    size, zero = len(columns), jnp.zeros_like(weight)

    flip_rate = jnp.asarray(noise, weight.dtype) / (design.n_classes - 1)
    if score is not drps or design.n_classes > MOST_CLASSES or size > MOST_PARAMETERS:
        matrix, known = Design(columns, design.n_classes).matrix(), jnp.maximum(labels, 0)
        right = jnp.log1p(-design.n_classes * flip_rate)

        def total(theta: Float[Array, " parameter"]) -> Float[Array, ""]:
            # As `with_label_noise`, without a sum over all pairs of classes.
            observed = jnp.logaddexp(jax.nn.log_softmax(matrix @ theta) + right, jnp.log(flip_rate))
            return weight @ jax.vmap(score)(observed, known)

        return differentiated(total)

    def derivatives(theta: Float[Array, " parameter"]) -> Derivatives:
        logits = [zero] * design.n_classes
        for a, column in enumerate(columns):
            for k, x in column.items():
                logits[k] = logits[k] + x * theta[a]
        value, first, second = _drps(logits, labels, flip_rate)
        gradient = [_sum([x * first[k] for k, x in column.items()]) for column in columns]
        hessian = [
            _sum(
                [
                    x * second[max(k, m)][min(k, m)] * y
                    for k, x in columns[a].items()
                    for m, y in columns[b].items()
                ]
            )
            for a in range(size)
            for b in range(a + 1)
        ]
        totals = jnp.stack([(weight * each).sum() for each in (*gradient, *hessian)])
        return (weight * value).sum(), totals[:size], symmetric(totals[size:], size)

    return derivatives


def _sum(terms: Sequence[ItemValues]) -> ItemValues:
    return sum(terms[1:], start=terms[0])


def _softmax(logits: Sequence[ItemValues]) -> list[ItemValues]:
    """Return the probabilities, by class."""
    top = logits[0]
    for z in logits[1:]:
        top = jnp.maximum(top, z)
    exponentials = [jnp.exp(z - top) for z in logits]
    total = _sum(exponentials)
    return [x * (1.0 / total) for x in exponentials]


def _drps(logits: Sequence[ItemValues], labels: ItemCodes, flip_rate: Array) -> Curve:
    r"""Return the ranked probability score of every item, and its derivatives in the item's logits.

    With :math:`F_j = \sum_{k \le j} p_k` and the indicator :math:`e_{kj} = 1\{k \le j\}`,
    :math:`\partial F_j / \partial z_k = p_k (e_{kj} - F_j)` and
    :math:`\partial^2 F_j / \partial z_k \partial z_l
    = p_k (\delta_{kl} - p_l)(e_{kj} - F_j) - p_k p_l (e_{lj} - F_j)`.
    """
    p = _softmax(logits)
    classes = range(len(p))
    scale = 1 - len(p) * flip_rate
    value = jnp.zeros_like(p[0])
    first = [jnp.zeros_like(p[0]) for _ in classes]
    second = [[jnp.zeros_like(p[0]) for _ in range(k + 1)] for k in classes]
    below = jnp.zeros_like(p[0])
    for j in classes[:-1]:
        below = below + p[j]
        gap = scale * below + (j + 1) * flip_rate - (labels <= j)
        value = value + gap * gap
        rest = _sum(p[j + 1 :])  # 1 - F_j without its rounding error
        deviation = [rest if k <= j else -below for k in classes]
        gradient = [p[k] * deviation[k] for k in classes]
        for k in classes:
            first[k] = first[k] + 2 * scale * gap * gradient[k]
            for m in range(k + 1):
                hessian = -p[m] * gradient[k] - p[k] * gradient[m]
                if k == m:
                    hessian = hessian + gradient[k]
                second[k][m] = second[k][m] + 2 * scale * (
                    scale * gradient[k] * gradient[m] + gap * hessian
                )
    return value, first, second


P = ParamSpec("P")
R = TypeVar("R")

HANDLERS = threading.RLock()
"""The lock itself, for a block of code."""


def numpyro_lock(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that runs models, so that only one thread at a time is inside such a function.

    The lock covers what Python runs while a program is traced; compiled programs still run in parallel.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with HANDLERS:
            return function(*args, **kwargs)

    return wrapped


@numpyro_lock
def log_density(program: Callable[[], object], sites: Mapping[str, Array]) -> Float[Array, ""]:
    """Return the sum of the log-probabilities of a program's sites, with the latent ones at `sites`.

    It runs one thread at a time, because all threads share NumPyro's stack of handlers.
    """
    return jnp.asarray(util.log_density(program, (), {}, dict(sites))[0])


Sites = dict[str, Array]
"""Parameter values by the name of their NumPyro site."""


def one_draw(values: Mapping[str, Array]) -> Sites:
    """Return the values of a point estimate as draws: with a leading axis of length 1."""
    return {name: x[None] for name, x in values.items()}


USE_PRIOR = ("MAP", "NUTS", "NormalAtMode")
"""The inferences whose answers depend on the prior."""


@dataclass(frozen=True)
class Problem:
    """A program with its data, whose parameters are to be estimated.

    Everything that an inference needs is derived from the program: `joint` runs it on the data, `prior`
    runs its parameters only, and `predict` returns the log-probabilities that scores are computed from.
    """

    model: Model
    data: Any
    """The argument of the program; with `labels` and `weight` where items have them."""
    start: Sites | None = None
    """Where chains start; spread over the prior if None."""
    design: Design | None = None
    """Given where the logits of `predict` are linear in the sites, flattened in the order of their
    names: scores then have analytic derivatives (`inference.score_derivatives`)."""
    convergence_targets: Callable[[Sites], Float[Array, " quantity"]] | None = None
    """The quantities on which chains must agree; all parameters if None. Where the data leave some
    parameters undetermined that predictions do not need, the predictions."""
    log_likelihood: Callable[[Sites], Float[Array, ""]] | None = None
    """A faster implementation of the log-likelihood of all observed sites, up to a constant; the
    program's own if None. A sampler of the program's own form for samplers does not use it."""
    size: Float[Array, ""] | None = None
    """The number of items that the objective is a mean over; the labelled ones if None."""
    in_turns: bool = False
    """Whether a sampler's chains make their steps one after the other: trajectories of very different
    lengths, of a program whose gradient takes long."""
    no_score: str = ""
    """Where no score can be used, a sentence that says why."""

    @property
    def targets(self) -> tuple[ItemCodes, ItemValues, Array | float]:
        """What scores are computed on: labels or counts, their weights, and the share of wrong labels.

        Labels are -1 where unknown; weights are 1 where the data have none.

        Raises
        ------
        JudgeBayesError
            If scores are not defined for this problem.
        """
        self._refuse_without_score()
        labels = getattr(self.data, "labels" if hasattr(self.data, "labels") else "correct")
        given = self.data.weight
        weight = jnp.ones(labels.shape) if given is None else given
        return labels, weight, getattr(self.model, "noise", 0.0)

    @property
    def scale(self) -> Float[Array, ""]:
        """The number of items that the objective is a mean over, at least 1."""
        size = self.size
        if size is None:
            labels, weight, _ = self.targets
            size = labelled_weight(labels, weight).sum()
        return jnp.maximum(size, 1.0)

    def predict(self, sites: Sites) -> LogProbs:
        """Return the items' log-probabilities under one draw.

        Raises
        ------
        JudgeBayesError
            If scores are not defined for this problem.
        """
        self._refuse_without_score()
        assert isinstance(self.model, Predictor)
        return self.model.predict(sites, self.data)

    def _refuse_without_score(self) -> None:
        if self.no_score:
            raise JudgeBayesError(self.no_score)

    def joint(self) -> None:
        """Run the program on the data, or its parameters with the faster log-likelihood."""
        if self.log_likelihood is None:
            self.model(self.data)
        else:
            self._prior_times("log_likelihood", self.log_likelihood)

    def prior(self) -> None:
        """Run the program for its parameters only."""
        with numpyro.handlers.block(hide=list(self.model.traits.sites)):
            self.model(self.data)

    def posterior(self, score: Score | None, temperature: Array | float) -> Callable[[], None]:
        """Return the model whose density is the posterior under the likelihood, or under a score."""
        return self.joint if score is None else self.generalised(score, temperature)

    def loss(self, score: Score, sites: Sites) -> Float[Array, ""]:
        """Return the weighted sum of a proper score over the items whose label is known."""
        labels, weight, noise = self.targets
        predicted = with_label_noise(self.predict(sites), noise)
        each = jax.vmap(score)(predicted, jnp.maximum(labels, 0))
        weight = labelled_weight(labels, weight)
        return jnp.sum(jnp.where(weight > 0, each, 0.0) * weight)

    def generalised(self, score: Score, temperature: Array | float) -> Callable[[], None]:
        r"""Return the NumPyro model of the generalised-Bayes posterior of a score.

        .. math:: \pi(\theta) \exp\{-\tfrac{1}{T} \sum_i w_i S(p_\theta(\cdot | x_i), y_i)\}

        Bissiri, Holmes & Walker (2016). The temperature T is a choice that sets the spread; with
        the NLL and T = 1 it is the ordinary posterior.
        """
        return lambda: self._prior_times("score", lambda at: -self.loss(score, at) / temperature)

    def _prior_times(self, name: str, log_factor: Callable[[Sites], Float[Array, ""]]) -> None:
        with numpyro.handlers.trace() as trace:
            self.prior()
        sites = {name: site["value"] for name, site in trace.items() if _is_latent(site)}
        numpyro.factor(name, log_factor(sites))

    @numpyro_lock
    def draw_prior(self, key: Key) -> Sites:
        """Return one draw of the parameters from their prior."""
        trace = numpyro.handlers.trace(numpyro.handlers.seed(self.prior, key)).get_trace()
        return {name: trace[name]["value"] for name in self.latent}

    @numpyro_lock
    def log_prior(self, sites: Sites) -> dict[str, Float[Array, ""]]:
        """Return the log-density of each parameter under its prior given the other parameters."""
        trace = numpyro.handlers.trace(
            numpyro.handlers.substitute(self.prior, data=sites)
        ).get_trace()
        return {name: trace[name]["fn"].log_prob(x).sum() for name, x in sites.items()}

    # Not cached: under `jit` the values are tracers, which must not outlive the program.
    @property
    @numpyro_lock
    def latent(self) -> dict[str, dict[str, Any]]:
        """Return the latent sites of the model, each at the mean of its prior given the others."""
        at_mean = numpyro.handlers.substitute(self.prior, substitute_fn=init_to_mean)
        trace: dict[str, dict[str, Any]] = numpyro.handlers.trace(
            numpyro.handlers.seed(at_mean, 0)
        ).get_trace()
        return {name: site for name, site in trace.items() if _is_latent(site)}

    def box(self) -> tuple[Vector, Vector, Vector, Vector, Callable[[Vector], Sites]]:
        """Return the ends of each parameter's support, and its prior's mean and standard deviation.

        They are vectors of the sites' values, in the order of their names; the last value is the
        function from such a vector to the sites.
        """
        each: list[Sites] = [{}, {}, {}, {}]
        for name, site in self.latent.items():
            mean, deviation = jnp.asarray(site["value"]), jnp.sqrt(site["fn"].variance)
            for of_sites, x in zip(
                each, (*_interval(site["fn"].support), mean, deviation), strict=True
            ):
                of_sites[name] = jnp.broadcast_to(jnp.asarray(x, float), mean.shape)
        low, high, middle, spread = (ravel_pytree(of_sites)[0] for of_sites in each)
        return low, high, middle, spread, ravel_pytree(each[0])[1]


def _is_latent(site: dict[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


def _interval(support: Any) -> tuple[Any, Any]:
    """Return the ends of a box-shaped support."""
    base = getattr(support, "base_constraint", support)
    if base is constraints.real or base is constraints.real_vector:
        return -jnp.inf, jnp.inf
    low, high = getattr(base, "lower_bound", None), getattr(base, "upper_bound", None)
    if low is None and high is None:
        raise TypeError(
            f"The support {base} is not an interval, so a box minimiser cannot be used."
        )
    return (-jnp.inf if low is None else low), (jnp.inf if high is None else high)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chains:
    """Draws of several Markov chains, and what the sampler recorded of each draw."""

    draws: Sites
    """Values by site, with shape (chain, draw, ...)."""
    diverging: Array
    energy: Array
    tree_depth: Array
    acceptance: Array
    source: tuple[Any, ...] | None = field(default=None, repr=False)
    """The data as the user gave them, every item in order, with which `to_arviz` builds the program
    again (`method.problem(*source)`); None for fits inside compiled code and batches of fits. Fit files
    store neither these nor the chains, so that they contain no votes."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Result:
    """Estimated parameters, as a `Fit` holds them."""

    draws: Sites
    """With a leading axis of draws, of length 1 for a point estimate."""
    status: Int[Array, "*batch"]
    details: dict[str, Array] = field(default_factory=dict)
    """What else is known of the fit. Of a minimum or a mode, the value of the `objective` there and its
    `projected_gradient`, the largest component of x - project(x - gradient). Of Dawid and Skene's EM,
    the `log_posterior`, the `steps`, the numbers of `votes_by_class` and `pseudo_votes` that make a
    judge's interval, and the shares of items that are decided against the majority (`off_majority`) or
    by the other start otherwise (`off_other_start`). Draws by NUTS have none."""
    chains: Chains | None = None


@runtime_checkable
class Inference(Protocol):
    """An estimation method for parameters. One that ignores the prior has `uses_prior = False`."""

    def solve(self, problem: Problem, key: Key) -> Result:
        """Return the parameters estimated from the data of the problem."""
        ...


def require(name: str, value: Any, holds: bool | Bool[Array, "..."], requirement: str) -> None:
    """Check a hyper-parameter that is a plain number, outside compiled code.

    Raises
    ------
    JudgeBayesError
        If the condition `holds` is false; the message states the `requirement`.
    """
    if isinstance(value, (int, float)) and not holds:
        raise JudgeBayesError(f"{name}={value}; it must be {requirement}.")


def check_prior(method: Any) -> None:
    """Refuse a method's non-default prior together with an inference that would ignore it.

    Inside compiled code, where values are unknown, nothing is checked: traced methods were checked
    when they were made.

    Raises
    ------
    JudgeBayesError
        If the prior would be ignored; the message names the inferences that use it.
    """
    prior: Any = getattr(method, "prior", None)
    inference = getattr(method, "inference", None)
    if getattr(inference, "uses_prior", True) or not hasattr(prior, "_fields"):
        return
    given, usual = jax.tree.leaves(prior), jax.tree.leaves(type(prior)())
    concrete = all(
        isinstance(x, (float, int, np.number, np.ndarray, jax.Array))
        and not isinstance(x, jax.core.Tracer)
        for x in given
    )
    # Trees of `vmap` axes and of placeholders contain zeros only; no prior has a scale of 0.
    if not concrete or not any(np.any(x) for x in given):
        return
    if not all(np.allclose(x, y, rtol=1e-5) for x, y in zip(given, usual, strict=True)):
        raise JudgeBayesError(
            f"{type(inference).__name__} does not use the prior of {type(method).__name__}; choose an "
            f"inference that does ({', '.join(USE_PRIOR)}), or leave `prior` at its default."
        )
