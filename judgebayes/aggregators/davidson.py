"""Davidson's model, fitted to a small labelled part of the items (P1, section 4).

Davidson's model over several tasks, with partial pooling of its parameters.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues, LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fit, ModelMethod, Training
from judgebayes.inference.optimise import differentiated
from judgebayes.inference.point import DRPS, MAP, mode_objective
from judgebayes.inference.problem import Design, Inference, Problem, Sites
from judgebayes.inference.registry import aggregator
from judgebayes.measures.scores import drps, labelled_weight, nll
from judgebayes.models import davidson, hierarchical_davidson
from judgebayes.models.base import with_label_noise
from judgebayes.models.davidson import (
    DavidsonData,
    DavidsonModel,
    DavidsonPrior,
    Features,
    level_of_class,
    positions,
)
from judgebayes.models.hierarchical_davidson import HierarchicalDavidsonModel, HierarchicalPrior
from judgebayes.votes.array import Votes

AT_ONCE = 256
"""Items whose Hessians are in memory at a time."""


def columns(
    evidence: Features, *, n_classes: int, symmetric: bool = True
) -> list[dict[int, ItemValues]]:
    """Return the coefficients of each parameter in the logit of each class.

    The logits of `link` are linear in the parameters. The parameters are in the order of their
    names: beta, delta (free form only), eta0 by level, gamma by level.
    """
    x = positions(n_classes)
    levels = level_of_class(n_classes, symmetric)
    members = [[k for k in range(n_classes) if levels[k] == m] for m in range(max(levels) + 1)]
    one = jnp.ones_like(evidence.margin)
    leaning = [k for k in range(n_classes) if x[k]]
    beta = {k: x[k] * evidence.margin for k in leaning}
    delta = {k: x[k] * one for k in leaning}
    eta0 = [dict.fromkeys(inside, one) for inside in members]
    gamma = [dict.fromkeys(inside, evidence.tie[:, m]) for m, inside in enumerate(members)]
    return [beta, *([] if symmetric else [delta]), *eta0, *gamma]


@aggregator("davidson", compared="always", inferences=("drps", "ml", "map", "nuts"), place=10)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Davidson(ModelMethod):
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
        `MAP()` or `NUTS()`.
    alpha, kappa
        Smoothing of the margin and of the tie evidence (eqs 2, 3).
    symmetric
        Whether swapping the responses must mirror the result. Use it for pairs; for a scale with
        different ends (valid or not, one to five stars) use `symmetric=False`.
    prior
        Location and scale of the priors inside the box of Appendix E. `MAP` and `NUTS` use it. Scores
        do not, and raise a JudgeBayesError for any prior but the default.
    label_noise
        The known share of the labels that are wrong, any other class alike.

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

    saved: ClassVar[tuple[str, ...]] = ("alpha", "kappa", "symmetric")
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "eta0": ("level",),
        "gamma": ("level",),
    }

    def program(self, given: Votes) -> DavidsonModel:
        """Return the program for such votes."""
        return DavidsonModel(given.n_classes, self.symmetric, self.prior, self.label_noise)

    def data(self, given: Votes, labels: Any, weight: Any) -> DavidsonData:
        """Return the evidence of the votes, with the labels."""
        evidence = davidson.features(
            given.pooled_counts(), self.alpha, self.kappa, symmetric=self.symmetric
        )
        return DavidsonData(evidence, labels, weight)

    def problem(self, given: Votes, labels: Any, weight: Any = None) -> Problem:
        """Return the program with these data; its logits are linear in the parameters."""
        whole = super().problem(given, labels, weight)
        of_sites = columns(whole.data.evidence, n_classes=given.n_classes, symmetric=self.symmetric)
        return replace(whole, design=Design(of_sites, given.n_classes))

    def estimates(self, fit: Fit) -> dict[str, float]:
        """Return the mean of each parameter, with a suffix for the level where there are several."""
        mean: dict[str, float] = {}
        for name in fit.draws:
            by_level = fit.mean(name).reshape(-1)
            for level, value in enumerate(by_level.tolist()):
                mean[name + (f"[{level}]" if len(by_level) > 1 else "")] = value
        return mean

    def words(self, fit: Fit) -> list[str]:
        """Return sentences on the parameters, and on those at a bound of the box."""
        est = self.estimates(fit)
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
def fit_with_held_out(method: Davidson, data: Training) -> tuple[Fit, LogProbs]:
    r"""Return the fit at the mode, and each item's log-probabilities without its own label.

    The parameters without the label of item i are one Newton step from the mode:

    .. math:: \theta_{-i} = \theta + (H - H_i)^{-1} g_i

    with H the Hessian of minus the log posterior, and :math:`g_i` and :math:`H_i` the gradient and the
    Hessian of the part of one copy of the item: an item of weight 2 is two copies, left out one at a
    time. Parameters at a bound of the box stay there, and no step leaves the box.
    """
    votes, labels, weight, _ = data
    problem = method.problem(votes, labels, weight)
    fitted = method.solved(problem, data)
    theta, _ = ravel_pytree(fitted.first)
    lower, upper, *_ = problem.box()
    free = (theta > lower) & (theta < upper)
    _, _, whole = mode_objective(problem)(theta)
    assert problem.design is not None
    designs = problem.design.matrix()
    used = labelled_weight(labels, weight) > 0

    def without(item: tuple[Array, Array, Array]) -> Float[Array, " class"]:
        design, label, counts = item

        def loss(theta: Float[Array, " parameter"]) -> Float[Array, ""]:
            log_probs = with_label_noise(
                jax.nn.log_softmax(design @ theta)[None], method.label_noise
            )
            return nll(log_probs[0], label)

        gradient, own = (jnp.where(counts, each, 0.0) for each in differentiated(loss)(theta)[1:])
        rest = jnp.where(free[:, None] & free, whole - own, jnp.eye(len(theta)))
        step = jnp.linalg.solve(rest, jnp.where(free, gradient, 0.0))
        return jax.nn.log_softmax(design @ jnp.clip(theta + step, lower, upper))

    return fitted, jax.lax.map(without, (designs, jnp.maximum(labels, 0), used), batch_size=AT_ONCE)


DRPS_TEMPERATURE = 0.5


def _penalised_drps() -> MAP:
    # The posterior has one mode: five starts gave the same one in every split that was tried.
    return MAP(temperature=DRPS_TEMPERATURE, score=drps, starts=1)


@aggregator("hierarchical", compared="tasks", needs_tasks=True, place=60)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HierarchicalDavidson(ModelMethod):
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
        The known share of the labels that are wrong, any other class alike.
    """

    inference: Inference = field(default_factory=_penalised_drps)
    alpha: float = 1.0
    kappa: float = 1.0
    symmetric: bool = field(default=True, metadata={"static": True})
    prior: HierarchicalPrior = field(default_factory=HierarchicalPrior)
    label_noise: float = 0.0

    saved: ClassVar[tuple[str, ...]] = ("alpha", "kappa", "symmetric")
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "tie": ("level",),
        "gamma": ("level",),
        "log_beta_by_task": ("task",),
        "tie_by_task": ("level", "task"),
        "gamma_by_task": ("level", "task"),
        "delta_by_task": ("task",),
    }

    def program(self, given: Votes) -> HierarchicalDavidsonModel:
        """Return the program for such votes."""
        return HierarchicalDavidsonModel(
            given.n_tasks, given.n_classes, self.symmetric, self.prior, self.label_noise
        )

    def data(self, given: Votes, labels: Any, weight: Any) -> DavidsonData:
        """Return the evidence of the votes and the tasks, with the labels.

        An item of task -1, which is not among the fitted tasks, is predicted from the centre.
        """
        evidence = davidson.features(
            given.pooled_counts(), self.alpha, self.kappa, symmetric=self.symmetric
        )
        return DavidsonData(evidence, labels, weight, tasks_of(given))

    @in_float64
    def by_task(self, fit: Fit) -> dict[str, Float[np.ndarray, "task *level"]]:  # noqa: F821
        """Return the posterior mean of beta, eta0 and gamma of every task."""
        n_tasks = fit.draws["log_beta_by_task"].shape[-1]

        def one(sites: Sites) -> davidson.Parameters:
            return hierarchical_davidson.task_parameters(sites, jnp.arange(n_tasks))

        mean = jax.tree.map(lambda x: np.asarray(x.mean(0)), jax.vmap(one)(fit.draws))
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
