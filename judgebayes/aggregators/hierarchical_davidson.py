"""Davidson's model over several tasks, with partial pooling of its parameters."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import summarised, training
from judgebayes.aggregators.davidson import davidson_evidence
from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import (
    Chains,
    Inference,
    Problem,
    Sites,
    UsesPrior,
)
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.scores import drps
from judgebayes.models import davidson, hierarchical_davidson
from judgebayes.models.hierarchical_davidson import (
    HierarchicalData,
    HierarchicalDavidsonModel,
    HierarchicalPrior,
)
from judgebayes.votes.array import Votes

__all__ = ["FittedHierarchicalDavidson", "HierarchicalDavidson"]

DRPS_TEMPERATURE = 0.5


def _penalised_drps() -> MAP:
    # The posterior has one mode: five starts gave the same one in every split that was tried.
    return MAP(temperature=DRPS_TEMPERATURE, score=drps, starts=1)


@aggregator("hierarchical", compared="tasks", needs_tasks=True, place=60)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HierarchicalDavidson(UsesPrior):
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

    @in_float64
    def fit(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedHierarchicalDavidson":
        """Return the model fitted to the labelled items of all tasks.

        Raises
        ------
        JudgeBayesError
            If the votes have no tasks, lengths differ, or a weight is negative.
        """
        data = training(votes, labels, weight, key, labelled_only=True)
        tasks_of(data.votes)
        return with_source(_fit(self, *data), self, votes, labels, weight)

    def problem(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        weight: Float[Array, " item"] | None = None,
    ) -> Problem:
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
@dataclass(frozen=True)
class FittedHierarchicalDavidson(Sampled):
    """The centres and the tasks' deviations: one draw for a point estimate, or many."""

    draws: Sites
    status: Int[Array, "*batch"]
    objective: Float[Array, "*batch"]
    projected_gradient: Float[Array, "*batch"]
    chains: Chains | None
    alpha: float
    kappa: float
    n_classes: int = field(metadata={"static": True})
    symmetric: bool = field(default=True, metadata={"static": True})

    @in_float64
    def __call__(self, votes: Votes) -> Float[Array, "item class"]:
        """Return the items' log-probabilities, averaged over the draws.

        An item of task -1, which is not among the fitted tasks, is predicted from the centre.
        """
        return log_mean_exp(_by_draw(self, votes))

    @in_float64
    def by_draw(self, votes: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        return _by_draw(self, votes)

    def __repr__(self) -> str:
        """Return a short summary."""
        return summarised(self)

    @in_float64
    def by_task(self) -> dict[str, Float[np.ndarray, "task *level"]]:  # noqa: F821
        """Return the posterior mean of beta, eta0 and gamma of every task."""
        n_tasks = self.draws["log_beta_by_task"].shape[-1]

        def one(sites: Sites) -> davidson.Parameters:
            return hierarchical_davidson.task_parameters(sites, jnp.arange(n_tasks))

        mean = jax.tree.map(lambda x: np.asarray(x.mean(0)), jax.vmap(one)(self.draws))
        return dict(mean._asdict())


@jax.jit
def _fit(
    method: HierarchicalDavidson,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    key: PRNGKeyArray,
) -> FittedHierarchicalDavidson:
    result = method.inference.solve(method.problem(votes, labels, weight), key)
    centres = sum(x[0].size for name, x in result.draws.items() if not name.endswith("_by_task"))
    return FittedHierarchicalDavidson(
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


@jax.jit
def _by_draw(fitted: FittedHierarchicalDavidson, votes: Votes) -> Float[Array, "draw item class"]:
    evidence = davidson_evidence(votes, fitted.alpha, fitted.kappa, fitted.symmetric)
    task = tasks_of(votes)

    def one(sites: Sites) -> Float[Array, "item class"]:
        parameters = hierarchical_davidson.task_parameters(sites, task)
        return davidson.link(
            parameters, evidence, n_classes=fitted.n_classes, symmetric=fitted.symmetric
        )

    return jax.vmap(one)(fitted.draws)


def tasks_of(votes: Votes) -> Int[Array, " item"]:
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
