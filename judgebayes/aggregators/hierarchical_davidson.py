"""Davidson's model over several tasks, with partial pooling of its parameters."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from judgebayes.aggregators.base import Training, VoteMethod
from judgebayes.aggregators.davidson import FittedByLink, davidson_evidence, fit_link
from judgebayes.arrays import ItemCodes, ItemValues, Labels
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import (
    Inference,
    Problem,
    Sites,
    UsesPrior,
)
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.measures.scores import drps
from judgebayes.models import davidson, hierarchical_davidson
from judgebayes.models.hierarchical_davidson import (
    HierarchicalData,
    HierarchicalDavidsonModel,
    HierarchicalPrior,
)
from judgebayes.votes.array import Votes

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
