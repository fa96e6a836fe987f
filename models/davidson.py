"""Davidson's model of a label, given repeated votes of one judge on the item.

Source: *Distribution-calibrated inference-time compute for thinking LLM-as-a-judge* (P1).

The story. A judge is asked about item i several times and answers with one of K ordered classes
(K = 3: response 2 is better, tie, response 1 is better). The votes enter through their counts
only, as two kinds of smoothed evidence (eqs 2 and 3)::

    s = 1/2 log((C+ + alpha) / (C- + alpha))      the margin among votes off the middle
    t = log((c0 + kappa) / (n + kappa))           the evidence for a tie

and the label is drawn from a softmax with a margin u and a tie logit eta (eqs 4 and 5)::

    u = beta s,   eta = eta0 + gamma t
    p(+1) = e^u / Z,  p(0) = e^eta / Z,  p(-1) = e^-u / Z,  Z = e^u + e^eta + e^-u

K ordered classes. Place them at x_1 = -1 < ... < x_K = +1, equally spaced. Then (Agresti's
adjacent-categories form, which is Davidson's at K = 3)::

    log p(k) = x_k u + eta_k - log Z
    C+ = sum_k max(x_k, 0) c_k,   C- = sum_k max(-x_k, 0) c_k

with eta_k = 0 at both ends. An inner class has a *level* l with its own eta0_l and gamma_l and the
evidence t_l of the votes for that level. Symmetric form: k and its mirror image share a level, so
that swapping the two responses of a pair mirrors the result exactly. Free form, for scales whose
ends mean different things (valid or not, one to five stars): each inner class is its own level, and
the margin has an offset, u = delta + beta s. With K = 2 there is no level, and the free form is
logistic regression on the smoothed log-odds of the votes.

Priors. The box of the paper's Appendix E is the support; inside it the priors are weakly
informative and truncated to the box::

    beta   ~ Normal(1.5, 1.5)   on [0.001, 5]
    eta0_l ~ Normal(1, 3)       on [log 0.0001, log 1000]
    gamma_l ~ Normal(1, 1.5)    on [-10, 10]
    delta  ~ Normal(0, 1.5)     on [-10, 10]      (free form only)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, Num

from judgebayes.models.base import Scalar, Traits, observe_label

BOX: dict[str, tuple[float, float]] = {
    "beta": (1e-3, 5.0),
    "eta0": (float(np.log(1e-4)), float(np.log(1e3))),
    "gamma": (-10.0, 10.0),
    "delta": (-10.0, 10.0),
}
"""Bounds of each parameter: Appendix E's for beta, nu = exp(eta0) and gamma; ours for delta."""


class Features(NamedTuple):
    """The statistics of an item's votes: the margin s and the tie evidence t (eqs 2, 3)."""

    margin: Float[Array, "*item"]
    tie: Float[Array, "*item level"]


class Parameters(NamedTuple):
    """The parameters theta of eq 5; `delta` stays 0 in the symmetric form."""

    beta: Float[Array, "*draw"]
    eta0: Float[Array, "*draw level"]
    gamma: Float[Array, "*draw level"]
    delta: Float[Array, "*draw"]


class DavidsonPrior(NamedTuple):
    """Location and scale of the normal prior of each parameter, before truncation to the box."""

    beta: tuple[float, float] = (1.5, 1.5)
    eta0: tuple[float, float] = (1.0, 3.0)
    gamma: tuple[float, float] = (1.0, 1.5)
    delta: tuple[float, float] = (0.0, 1.5)


def positions(n_classes: int) -> np.ndarray:
    """Return x_1 .. x_K, equally spaced from -1 to +1."""
    return np.linspace(-1.0, 1.0, n_classes)


def level_of_class(n_classes: int, symmetric: bool) -> tuple[int, ...]:
    """Return the level of each class, -1 for the two ends, which are the reference.

    >>> level_of_class(3, symmetric=True)
    (-1, 0, -1)
    >>> level_of_class(6, symmetric=True)
    (-1, 0, 1, 1, 0, -1)
    >>> level_of_class(5, symmetric=False)
    (-1, 0, 1, 2, -1)
    """
    inner = range(1, n_classes - 1)
    levels = {k: (min(k, n_classes - 1 - k) if symmetric else k) - 1 for k in inner}
    return tuple(levels.get(k, -1) for k in range(n_classes))


def n_levels(n_classes: int, symmetric: bool) -> int:
    """Return the number of levels of the inner classes: 1 for three classes."""
    return max(level_of_class(n_classes, symmetric)) + 1


@partial(jax.jit, static_argnames="symmetric", inline=True)
def features(
    counts: Num[Array, "*item class"],
    alpha: Scalar = 1.0,
    kappa: Scalar = 1.0,
    *,
    symmetric: bool = True,
) -> Features:
    """Return margin and tie evidence of vote counts (eqs 2 and 3).

    An item without votes has s = 0 and t = 0: log(kappa / kappa).
    """
    n_classes = counts.shape[-1]
    x = jnp.asarray(positions(n_classes), dtype=float)
    counts = counts.astype(x.dtype)
    plus, minus = counts @ jnp.maximum(x, 0), counts @ jnp.maximum(-x, 0)
    margin = 0.5 * (jnp.log(plus + alpha) - jnp.log(minus + alpha))
    levels = level_of_class(n_classes, symmetric)
    member = np.array([[lv == m for m in range(max(levels) + 1)] for lv in levels], dtype=float)
    in_level = counts @ jnp.asarray(member.reshape(n_classes, -1), dtype=x.dtype)
    total = counts.sum(-1, keepdims=True)
    return Features(margin, jnp.log(in_level + kappa) - jnp.log(total + kappa))


@partial(jax.jit, static_argnames=("n_classes", "symmetric"), inline=True)
def link(
    parameters: Parameters, evidence: Features, *, n_classes: int, symmetric: bool = True
) -> Float[Array, "*item class"]:
    """Return log p(k) of every item (eqs 4 and 5) for one draw of the parameters."""
    x = jnp.asarray(positions(n_classes), dtype=evidence.margin.dtype)
    u = parameters.delta + parameters.beta * evidence.margin
    eta = parameters.eta0 + parameters.gamma * evidence.tie
    ends = jnp.zeros((*eta.shape[:-1], 1), eta.dtype)
    by_level = jnp.concatenate([eta, ends], axis=-1)  # level -1 is the reference, 0
    levels = np.asarray(level_of_class(n_classes, symmetric))
    return jax.nn.log_softmax(x * u[..., None] + by_level[..., levels], axis=-1)


def _boxed(name: str, location: Scalar, scale: Scalar) -> dist.Distribution:
    low, high = BOX[name]
    return dist.TruncatedNormal(location, scale, low=low, high=high)


class DavidsonData(NamedTuple):
    """The evidence of the votes, which is given, and the labels, which are generated."""

    evidence: Features
    labels: Int[Array, " item"] = None  # type: ignore[assignment]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""
    task: Int[Array, " item"] = None  # type: ignore[assignment]
    """The task of each item, for programs of tasks; given."""


@dataclass(frozen=True)
class DavidsonModel:
    """The program: parameters, then the label of each labelled item given its votes.

    Sites: `beta`, `eta0` and `gamma` (level), `delta` in the free form; `label` (item).
    """

    n_classes: int
    symmetric: bool = True
    prior: DavidsonPrior = DavidsonPrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong, any other class alike."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items")

    def __call__(self, data: DavidsonData) -> None:
        """Sample the parameters from their priors, then each item's label from the link."""
        prior, levels = self.prior, n_levels(self.n_classes, self.symmetric)
        sites = {"beta": numpyro.sample("beta", _boxed("beta", *prior.beta))}
        if levels:
            with numpyro.plate("level", levels):
                sites["eta0"] = numpyro.sample("eta0", _boxed("eta0", *prior.eta0))
                sites["gamma"] = numpyro.sample("gamma", _boxed("gamma", *prior.gamma))
        if not self.symmetric:
            sites["delta"] = numpyro.sample("delta", _boxed("delta", *prior.delta))
        observe_label(self.predict(sites, data), data.labels, data.weight, self.noise)

    def predict(self, sites: Mapping[str, Array], data: DavidsonData) -> Float[Array, "item class"]:
        """Return log p(k) of every item (eqs 4 and 5)."""
        return link(
            parameters(sites), data.evidence, n_classes=self.n_classes, symmetric=self.symmetric
        )


def parameters(sites: Mapping[str, Array]) -> Parameters:
    """Return one draw as parameters; levels and offset are absent where the form has none."""
    beta = sites["beta"]
    none = jnp.zeros((0,), beta.dtype)
    return Parameters(
        beta, sites.get("eta0", none), sites.get("gamma", none), sites.get("delta", 0.0 * beta)
    )
