"""Davidson's model, fitted to a small labelled part of the items (P1, section 4).

Davidson's model over several tasks, with partial pooling of its parameters.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from judgebayes.aggregators.base import Training, VoteMethod, summarised
from judgebayes.arrays import ItemCodes, ItemValues, Labels, LogProbs, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.davidson_counts import columns
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.point import DRPS, MAP, mode_objective
from judgebayes.inference.problem import Chains, Inference, Problem, Sites, UsesPrior
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.sampled import Sampled
from judgebayes.inference.score_derivatives import ARRAY_SCORES, Design
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.scores import drps, labelled_weight, nll
from judgebayes.models import davidson, hierarchical_davidson
from judgebayes.models.davidson import DavidsonData, DavidsonModel, DavidsonPrior
from judgebayes.models.hierarchical_davidson import (
    HierarchicalData,
    HierarchicalDavidsonModel,
    HierarchicalPrior,
)
from judgebayes.votes.array import Votes

K = TypeVar("K", bound="FittedByLink")

AT_ONCE = 256
"""Items whose Hessians are in memory at a time."""


@aggregator("davidson", compared="always", inferences=("drps", "ml", "map", "nuts"), place=10)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Davidson(UsesPrior, VoteMethod["FittedDavidson"]):
    r"""Aggregate repeated votes by Davidson's model, fitted to labelled items.

    .. math::
        p(\pm 1) \propto e^{\pm \beta s}, \qquad p(0) \propto e^{\eta_0 + \gamma t}

    with the smoothed margin s and tie evidence t of an item's votes (P1 eqs 2-5, and
    `judgebayes.models.davidson` for K ordered classes and the priors). The votes of all judges
    are pooled.

    Parameters
    ----------
    inference
        The estimation method: `DRPS()` (P1 eq 12), `MinimumScore(score)` for another proper score,
        `MAP()`, `NUTS()`, or `MinimumLoss()` (P1 eq 8).
    alpha, kappa
        Smoothing of the margin and of the tie evidence (eqs 2, 3).
    symmetric
        Whether swapping the responses must mirror the result. Use it for pairs; for a scale with
        different ends (valid or not, one to five stars) use `symmetric=False`.
    prior
        Location and scale of the priors inside the box of Appendix E. `MAP` and `NUTS` use it. Scores
        and `MinimumLoss` do not, and raise a JudgeBayesError for any prior but the default.
    label_noise
        The known share of the labels that are wrong, any other class alike. `MinimumLoss` does not
        use it.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> counts = [[0, 1, 7], [1, 6, 1], [6, 2, 0], [1, 4, 3], [2, 6, 0], [8, 0, 0]]
    >>> votes = jb.from_counts(np.array(counts))
    >>> labels = np.array([2, 1, 0, 1, 1, 0])
    >>> fit = jb.Davidson().fit(votes, labels)
    >>> new = jb.from_counts(np.array([[0, 0, 8], [2, 4, 2]]))
    >>> print(np.exp(fit(new)).round(2))
    [[0.   0.   1.  ]
     [0.01 0.97 0.01]]
    """

    inference: Inference = field(default_factory=DRPS)
    alpha: float = 1.0
    kappa: float = 1.0
    symmetric: bool = field(default=True, metadata={"static": True})
    prior: DavidsonPrior = field(default_factory=DavidsonPrior)
    label_noise: float = 0.0

    def _fitted(self, data: Training) -> "FittedDavidson":
        return fit_link(FittedDavidson, self, data)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for the inference: the program with these data."""
        shape: dict[str, Any] = {"n_classes": votes.n_classes, "symmetric": self.symmetric}
        evidence = davidson_evidence(votes, self.alpha, self.kappa, self.symmetric)
        return Problem(
            DavidsonModel(prior=self.prior, noise=self.label_noise, **shape),
            DavidsonData(evidence, jnp.asarray(labels), weight),
            design=Design(columns(evidence, **shape), votes.n_classes),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedByLink(Sampled, ABC):
    """What fits of Davidson's link have in common, with the same parameters for all items or by task."""

    draws: Sites
    status: Int[Array, "*batch"]
    objective: Float[Array, "*batch"]
    projected_gradient: Float[Array, "*batch"]
    chains: Chains | None
    alpha: float
    kappa: float
    n_classes: int = field(metadata={"static": True})
    symmetric: bool = field(default=True, metadata={"static": True})

    __repr__ = summarised

    @in_float64
    def __call__(self, votes: Votes) -> LogProbs:
        """Return the items' log-probabilities, averaged over the draws (the predictive)."""
        return log_mean_exp(self.by_draw(votes))

    @in_float64
    @jax.jit
    def by_draw(self, votes: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        evidence = davidson_evidence(votes, self.alpha, self.kappa, self.symmetric)

        def one(sites: Sites) -> LogProbs:
            return davidson.link(
                self.parameters(sites, votes),
                evidence,
                n_classes=self.n_classes,
                symmetric=self.symmetric,
            )

        return jax.vmap(one)(self.draws)

    @abstractmethod
    def parameters(self, sites: Sites, votes: Votes) -> davidson.Parameters:
        """Return the parameters of each item under one draw."""


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class FittedDavidson(FittedByLink):
    """Fitted Davidson model: one draw for a point estimate, or many of a posterior.

    The draws are of `beta`, `eta0` and `gamma` (level); of `delta` if not symmetric.
    """

    def parameters(self, sites: Sites, votes: Votes) -> davidson.Parameters:  # noqa: ARG002
        """Return the parameters, which are those of every item."""
        return davidson.parameters(sites)

    def estimates(self) -> dict[str, float]:
        """Return the mean of each parameter, with a suffix for the level where there are several."""
        mean: dict[str, float] = {}
        for name, draws in self.draws.items():
            by_level = np.asarray(draws).mean(0).reshape(-1)
            for level, value in enumerate(by_level.tolist()):
                mean[name + (f"[{level}]" if len(by_level) > 1 else "")] = value
        return mean

    def words(self) -> list[str]:
        """Return sentences on the parameters, and on those at a bound of the box."""
        est = self.estimates()
        lines = [
            "Davidson: "
            + ", ".join(f"{name} {value:.3g}" for name, value in est.items())
            + (f" (nu = exp(eta0) = {math.exp(est['eta0']):.3g})" if "eta0" in est else "")
            + "."
        ]
        for name, value in est.items():
            low, high = davidson.BOX[name.split("[")[0]]
            if value <= low or value >= high:
                lines.append(
                    f"{name} is at its {'lower' if value <= low else 'upper'} bound, "
                    f"{low if value <= low else high:.4g}: the labelled items do not determine it."
                )
        if est["beta"] <= davidson.BOX["beta"][0]:
            lines.append("The margin of the votes carries no signal about the labels.")
        return lines


@jax.jit
def fit_with_held_out(method: Davidson, data: Training) -> tuple[FittedDavidson, LogProbs]:
    r"""Return the fit at the mode, and each item's log-probabilities without its own label.

    The parameters without the label of item i are one Newton step from the mode:

    .. math:: \theta_{-i} = \theta + (H - H_i)^{-1} g_i

    with H the Hessian of minus the log posterior, and :math:`g_i` and :math:`H_i` the gradient and the
    Hessian of the part of one copy of the item: an item of weight 2 is two copies, left out one at a
    time. Parameters at a bound of the box stay there, and no step leaves the box.
    """
    votes, labels, weight, _ = data
    fitted = fit_link(FittedDavidson, method, data)
    problem = method.problem(votes, labels, weight)
    theta, _ = ravel_pytree({name: x[0] for name, x in fitted.draws.items()})
    box = problem.box()
    lower, upper = ravel_pytree(box.lower)[0], ravel_pytree(box.upper)[0]
    free = (theta > lower) & (theta < upper)
    whole = mode_objective(problem)(theta).hessian
    assert problem.design is not None
    designs = problem.design.matrix()
    flip_rate = jnp.asarray(method.label_noise) / (votes.n_classes - 1)
    _, first, second = ARRAY_SCORES[nll](designs @ theta, jnp.maximum(labels, 0), flip_rate)
    used = labelled_weight(labels, weight) > 0

    def without(item: tuple[Array, Array, Array, Array]) -> Float[Array, " class"]:
        design, slope, curvature, counts = item
        gradient, own = (
            jnp.where(counts, each, 0.0) for each in (slope @ design, design.T @ curvature @ design)
        )
        rest = jnp.where(free[:, None] & free, whole - own, jnp.eye(len(theta)))
        step = jnp.linalg.solve(rest, jnp.where(free, gradient, 0.0))
        return jax.nn.log_softmax(design @ jnp.clip(theta + step, lower, upper))

    return fitted, jax.lax.map(without, (designs, first, second, used), batch_size=AT_ONCE)


def davidson_evidence(
    votes: Votes, alpha: Scalar, kappa: Scalar, symmetric: bool
) -> davidson.Features:
    """Return the features of each item's counts of votes by which Davidson's model sees them."""
    return davidson.features(votes.pooled_counts(), alpha, kappa, symmetric=symmetric)


@partial(jax.jit, static_argnames="kind")
def fit_link(kind: type[K], method: Any, data: Training) -> K:
    """Return the fit of `Davidson` or `HierarchicalDavidson`; deviations of tasks are no parameters."""
    votes, labels, weight, key = data
    result = method.inference.solve(method.problem(votes, labels, weight), key)
    centres = sum(x[0].size for name, x in result.draws.items() if not name.endswith("_by_task"))
    return kind(
        draws=result.draws,
        status=worst(result.status, degenerate_status(labels, weight, votes.n_classes, centres)),
        objective=result.objective,
        projected_gradient=result.projected_gradient,
        chains=result.chains,
        alpha=method.alpha,
        kappa=method.kappa,
        n_classes=votes.n_classes,
        symmetric=method.symmetric,
    )


DRPS_TEMPERATURE = 0.5


def _penalised_drps() -> MAP:
    # The posterior has one mode: five starts gave the same one in every split that was tried.
    return MAP(temperature=DRPS_TEMPERATURE, score=drps, starts=1)


@aggregator("hierarchical", compared="tasks", needs_tasks=True, place=60)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HierarchicalDavidson(UsesPrior, VoteMethod["FittedHierarchicalDavidson"]):
    """Aggregate repeated votes by Davidson's model, fitted to several tasks at once.

    Tasks with few labels borrow strength from the others, tasks with many labels rely on their own; the
    amount of pooling is estimated (`judgebayes.models.hierarchical_davidson`). The votes must have
    tasks.

    Parameters
    ----------
    inference
        `MAP(temperature=0.5, score=drps)` by default: P1's score, penalised by the prior. A
        generalised-Bayes mode whose temperature is a choice. `MAP()` and `NUTS()` use the
        likelihood.
    alpha, kappa, symmetric
        As in `Davidson`.
    prior
        The priors of the centres and of the differences between tasks; `HierarchicalPrior(differ=...)`.
        Any but the default raises a JudgeBayesError if the inference does not use it, as in
        `Davidson`.
    label_noise
        The known share of the labels that are wrong, any other class alike. `MinimumLoss` does not
        use it.
    """

    inference: Inference = field(default_factory=_penalised_drps)
    alpha: float = 1.0
    kappa: float = 1.0
    symmetric: bool = field(default=True, metadata={"static": True})
    prior: HierarchicalPrior = field(default_factory=HierarchicalPrior)
    label_noise: float = 0.0

    def _fitted(self, data: Training) -> "FittedHierarchicalDavidson":
        tasks_of(data.votes)
        return fit_link(FittedHierarchicalDavidson, self, data)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for the inference: the program with these data."""
        evidence = davidson_evidence(votes, self.alpha, self.kappa, self.symmetric)
        return Problem(
            HierarchicalDavidsonModel(
                votes.n_tasks, votes.n_classes, self.symmetric, self.prior, self.label_noise
            ),
            HierarchicalData(evidence, tasks_of(votes), jnp.asarray(labels), weight),
        )


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class FittedHierarchicalDavidson(FittedByLink):
    """The centres and the tasks' deviations: one draw for a point estimate, or many.

    An item of task -1, which is not among the fitted tasks, is predicted from the centre.
    """

    def parameters(self, sites: Sites, votes: Votes) -> davidson.Parameters:
        """Return the parameters of each item's task."""
        return hierarchical_davidson.task_parameters(sites, tasks_of(votes))

    @in_float64
    def by_task(self) -> dict[str, Float[np.ndarray, "task *level"]]:  # noqa: F821
        """Return the posterior mean of beta, eta0 and gamma of every task."""
        n_tasks = self.draws["log_beta_by_task"].shape[-1]

        def one(sites: Sites) -> davidson.Parameters:
            return hierarchical_davidson.task_parameters(sites, jnp.arange(n_tasks))

        mean = jax.tree.map(lambda x: np.asarray(x.mean(0)), jax.vmap(one)(self.draws))
        return dict(mean._asdict())


def tasks_of(votes: Votes) -> ItemCodes:
    """Return the tasks of the items.

    Raises
    ------
    JudgeBayesError
        If the votes have no tasks.
    """
    if votes.task is None:
        raise JudgeBayesError(
            "These votes have no tasks; name the column of the tasks with encode(task=...)."
        )
    return votes.task
