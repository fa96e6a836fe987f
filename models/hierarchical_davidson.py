"""Davidson's model for several tasks: each task has its own parameters, near a common centre.

Our answer to P1's question of transfer (its section 5 and Fig 3 carry one task's parameters over
to another, all or nothing). The story: the parameters of task g are those of the population plus a
deviation of the task, ::

    log beta_g = log_beta + a_g
    tie_g      = tie + b_g          the tie logit at t = -1, about one vote in three a tie
    gamma_g    = gamma + c_g,       eta0_g = tie_g + gamma_g
    delta_g    = delta + d_g        (free form only)

eta0 and gamma of eq 5 are strongly correlated, since t is never far from -1; `tie` and `gamma` are
not. The spread of the tasks is estimated: the deviations of one parameter are Normal(0, tau^2) with
tau^2 ~ InverseGamma(df / 2, df scale^2 / 2), and tau is integrated out analytically, which gives a
multivariate Student t over the tasks::

    (a_1 .. a_G) ~ MultivariateStudentT(df, 0, scale I)

so that the posterior has a mode (with tau as a parameter, it has none) and no funnel. The penalty of a
large deviation, if many labels support it, grows only with its logarithm.

Centres: log_beta ~ Normal(log 1.5, 0.75), tie ~ Normal(0, 2), gamma ~ Normal(1, 1),
delta ~ Normal(0, 1.5). Scales: 0.1 for log beta, gamma and delta, 0.2 for tie; df = 4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.base import Sites, Traits, observe_label
from judgebayes.models.davidson import DavidsonData, Parameters, link, n_levels

TIE_EVIDENCE_AT_CENTRE = -1.0


class HierarchicalPrior(NamedTuple):
    """Normal priors of the centres (location, scale), and how much tasks may differ."""

    log_beta: tuple[float, float] = (math.log(1.5), 0.75)
    tie: tuple[float, float] = (0.0, 2.0)
    gamma: tuple[float, float] = (1.0, 1.0)
    delta: tuple[float, float] = (0.0, 1.5)
    differ: float = 1.0
    """Multiplies the scales of the deviations below."""
    df: float = 4.0


SCALES: dict[str, float] = {"log_beta": 0.1, "tie": 0.2, "gamma": 0.1, "delta": 0.1}


@dataclass(frozen=True)
class HierarchicalDavidsonModel:
    """The program: centres and deviations, then the label of each labelled item given its votes.

    Sites: `log_beta`, `tie` (level), `gamma` (level), `delta` in the free form, and of each the
    deviations `..._by_task` with the tasks as the last axis; `label` (item).
    """

    n_tasks: int
    n_classes: int
    symmetric: bool = True
    prior: HierarchicalPrior = HierarchicalPrior()
    noise: float | Float[Array, ""] = 0.0
    """The known share of the labels that are wrong, any other class alike."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "beta_of_task": ("task",),
        "eta0_of_task": ("task", "level"),
        "gamma_of_task": ("task", "level"),
        "delta_of_task": ("task",),
    }

    def __call__(self, data: DavidsonData) -> None:
        """Sample centres and deviations, then each item's label from the link of its task."""
        sites: dict[str, Array] = {}
        levels = n_levels(self.n_classes, self.symmetric)

        def sample(name: str) -> None:
            sites[name] = numpyro.sample(name, dist.Normal(*getattr(self.prior, name)))
            spread = self.prior.differ * SCALES[name] * jnp.eye(self.n_tasks)
            deviations = dist.MultivariateStudentT(self.prior.df, jnp.zeros(self.n_tasks), spread)
            by_task = f"{name}_by_task"
            sites[by_task] = numpyro.sample(by_task, deviations, infer={"event_dims": ("task",)})

        sample("log_beta")
        if levels:
            with numpyro.plate("level", levels):
                sample("tie")
                sample("gamma")
        if not self.symmetric:
            sample("delta")
        observe_label(self.predict(sites, data), data.labels, data.weight, self.noise)

    def predict(self, sites: Mapping[str, Array], data: DavidsonData) -> Float[Array, "item class"]:
        """Return log p(k) of every item, by its task's parameters."""
        return link(
            task_parameters(sites, data.task),
            data.evidence,
            n_classes=self.n_classes,
            symmetric=self.symmetric,
        )

    def quantities(self, sites: Sites, data: DavidsonData) -> dict[str, Array]:  # noqa: ARG002
        """Return the sites, and beta, eta0, gamma and delta of every task, as in `davidson`."""
        theta = task_parameters(sites, jnp.arange(self.n_tasks))
        own = {f"{n}_of_task": x for n, x in theta._asdict().items() if x.size}
        if self.symmetric:
            del own["delta_of_task"]
        return {**sites, **own}


def task_parameters(sites: Mapping[str, Array], task: Int[Array, " item"]) -> Parameters:
    """Return each item's parameters from one draw of the sites; task -1 is at the centre."""

    def of(name: str) -> Array:
        deviation = jnp.moveaxis(sites[f"{name}_by_task"], -1, 0)[task]
        is_fitted = (task >= 0).reshape(-1, *[1] * (deviation.ndim - 1))
        return sites[name] + jnp.where(is_fitted, deviation, 0.0)

    log_beta = of("log_beta")
    none = jnp.zeros((task.shape[0], 0), log_beta.dtype)
    tie, gamma = (of("tie"), of("gamma")) if "tie" in sites else (none, none)
    delta = of("delta") if "delta" in sites else jnp.zeros_like(log_beta)
    return Parameters(jnp.exp(log_beta), tie - TIE_EVIDENCE_AT_CENTRE * gamma, gamma, delta)
