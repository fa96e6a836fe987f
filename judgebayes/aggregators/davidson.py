"""Davidson's model, fitted to a small labelled part of the items (P1, section 4)."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import summarised, training
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.davidson import columns
from judgebayes.inference.fast.log_softmax import log_mean_exp
from judgebayes.inference.point import DRPS, mode_objective
from judgebayes.inference.problem import (
    Chains,
    Inference,
    Problem,
    Sites,
    UsesPrior,
)
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.score_arrays import ARRAY_SCORES
from judgebayes.inference.score_derivatives import Design
from judgebayes.inference.status import degenerate_status, worst
from judgebayes.measures.scores import labelled_weight, nll
from judgebayes.models import davidson
from judgebayes.models.davidson import DavidsonData, DavidsonModel, Prior
from judgebayes.votes.array import Votes

__all__ = ["Davidson", "FittedDavidson", "fit_with_held_out"]

AT_ONCE = 256
"""Items whose Hessians are in memory at a time."""


@aggregator("davidson", compared="always", inferences=("drps", "ml", "map", "nuts"), place=10)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Davidson(UsesPrior):
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
    prior: Prior = field(default_factory=Prior)
    label_noise: float = 0.0

    @in_float64
    def fit(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedDavidson":
        """Return the model fitted to the labelled items.

        Parameters
        ----------
        votes
            The votes on labelled and unlabelled items; only labelled ones are used.
        labels
            Class indices, -1 where unknown.
        weight
            Non-negative item weights; 0 equals a dropped item.
        key
            Random key of the restarts or draws; a fixed one by default.

        Raises
        ------
        JudgeBayesError
            If lengths differ, or a weight is negative.
        """
        data = training(votes, labels, weight, key, labelled_only=True)
        return with_source(_fit(self, *data), self, votes, labels, weight)

    def problem(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        weight: Float[Array, " item"] | None = None,
    ) -> Problem:
        """Return the problem for the inference: the program with these data."""
        shape: dict[str, Any] = {"n_classes": votes.n_classes, "symmetric": self.symmetric}
        evidence = davidson_evidence(votes, self.alpha, self.kappa, self.symmetric)
        return Problem(
            DavidsonModel(prior=self.prior, noise=self.label_noise, **shape),
            DavidsonData(evidence, jnp.asarray(labels), weight),
            design=Design(columns(evidence, **shape), votes.n_classes),
        )


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedDavidson(Sampled):
    """Fitted Davidson model: one draw for a point estimate, or many of a posterior."""

    draws: Sites
    """`beta` (draw), `eta0` and `gamma` (draw, level); `delta` (draw) if not symmetric."""
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
        """Return the items' log-probabilities, averaged over the draws (the predictive)."""
        return log_mean_exp(_by_draw(self, votes))

    @in_float64
    def by_draw(self, votes: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        return _by_draw(self, votes)

    def __repr__(self) -> str:
        """Return a short summary."""
        return summarised(self)

    @in_float64
    def plug_in(self) -> "FittedDavidson":
        """Return the model at the mean of its parameters, as one draw."""
        mean = {name: x.mean(0, keepdims=True) for name, x in self.draws.items()}
        return replace(self, draws=mean, chains=None)

    def estimates(self) -> dict[str, float]:
        """Return the mean of each parameter, with a suffix for the level where there are several."""
        mean: dict[str, float] = {}
        for name, draws in self.draws.items():
            values = np.asarray(draws)
            if values.ndim == 1:
                mean[name] = float(values.mean(0))
            else:
                levels = values.shape[1]
                for level in range(levels):
                    suffix = "" if levels == 1 else f"[{level}]"
                    mean[name + suffix] = float(values[:, level].mean(0))
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
def fit_with_held_out(
    method: Davidson,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    key: PRNGKeyArray,
) -> tuple[FittedDavidson, Float[Array, "item class"]]:
    r"""Return the fit at the mode, and each item's log-probabilities without its own label.

    The parameters without the label of item i are one Newton step from the mode:

    .. math:: \theta_{-i} = \theta + (H - H_i)^{-1} g_i

    with H the Hessian of minus the log posterior, and :math:`g_i` and :math:`H_i` the gradient and the
    Hessian of the part of one copy of the item: an item of weight 2 is two copies, left out one at a
    time. Parameters at a bound of the box stay there, and no step leaves the box.
    """
    fitted = _fit(method, votes, labels, weight, key)
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
    return davidson.features(votes.pooled_counts(), alpha, kappa, symmetric=symmetric)


@jax.jit
def _fit(
    method: Davidson,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    key: PRNGKeyArray,
) -> FittedDavidson:
    result = method.inference.solve(method.problem(votes, labels, weight), key)
    n_parameters = sum(x[0].size for x in result.draws.values())
    return FittedDavidson(
        draws=result.draws,
        status=worst(
            result.status, degenerate_status(labels, weight, votes.n_classes, n_parameters)
        ),
        objective=result.objective,
        projected_gradient=result.projected_gradient,
        chains=result.chains,
        alpha=method.alpha,
        kappa=method.kappa,
        n_classes=votes.n_classes,
        symmetric=method.symmetric,
    )


@jax.jit
def _by_draw(fitted: FittedDavidson, votes: Votes) -> Float[Array, "draw item class"]:
    evidence = davidson_evidence(votes, fitted.alpha, fitted.kappa, fitted.symmetric)

    def one(sites: Sites) -> Float[Array, "item class"]:
        return davidson.link(
            davidson.parameters(sites),
            evidence,
            n_classes=fitted.n_classes,
            symmetric=fitted.symmetric,
        )

    return jax.vmap(one)(fitted.draws)
