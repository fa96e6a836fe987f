"""Logistic stacking of the whole vote vector: a model for judges with correlated errors.

The audit's alternative to *Calibrate, don't curate* (P2), which weights judges as if they erred
independently. The story, for pairs and K = 2. Judge j's vote on item i is x_ij in {-1, +1}, or 0
for a missing vote or a tie (the mean of its votes if there are several), and ::

    log p(1) / p(0) = u,   u = sum_j w_j x_ij

without an intercept: swapping the two responses changes the sign of x, hence of u, exactly. The model
makes no assumption on the votes given the label, so that judges may copy one another.

K ordered classes, as in Davidson's model (`judgebayes.models.davidson`), at x_1 = -1 < ... <
x_K = +1: a vote has the value of its class, and an inner class has a level l with its own logit, which
depends on the shares t_ijl of the judges' votes for that level ::

    log p(k) = x_k u / 2 + eta_k + const,   eta_l = eta0_l + sum_j v_jl t_ijl,   0 at both ends

Free form, for scales whose ends mean different things: u has an offset delta and a weight m_j for
each judge without a vote, and each inner class is its own level.

Priors. The spread tau of the weights is estimated; the weights may also share a direction, the one-coin
log-odds l_j = log((1 + right_j) / (1 + wrong_j)) of votes and labels off the middle, scaled to
length 1: an empirical-Bayes centre, kappa = 1 ::

    w = tau (z + sqrt(kappa) c l / |l|),   z_j, c ~ Normal(0, 1)
    v_jl, m_j ~ Normal(0, tau),   log tau ~ Normal(log 0.3, 1)
    eta0_l ~ Normal(0, 3),   delta ~ Normal(0, 1.5)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.base import Scalar, Traits, observe_label
from judgebayes.models.davidson import level_of_class, n_levels, positions


class StackingPrior(NamedTuple):
    """The spread and common direction of the weights, and the scales of the other parameters."""

    kappa: Scalar = 1.0
    """The weight of the common direction, 0 or more; 0 for none."""
    log_tau: tuple[Scalar, Scalar] = (math.log(0.3), 1.0)
    """Location and scale of a normal prior."""
    level: Scalar = 3.0
    """Scale of the normal prior of each eta0 around 0."""
    offset: Scalar = 1.5
    """Scale of the normal prior of delta around 0 (free form only)."""


class Form(NamedTuple):
    """Sizes of the model."""

    n_judges: int
    n_classes: int
    symmetric: bool

    @property
    def levels(self) -> int:
        """The number of levels of the inner classes."""
        return n_levels(self.n_classes, self.symmetric)

    def blocks(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name."""
        blocks: dict[str, tuple[int, ...]] = {"weight": (self.n_judges,)}
        if not self.symmetric:
            blocks |= {"absent": (self.n_judges,)}
        if self.levels:
            blocks |= {"level_weight": (self.levels, self.n_judges)}
        if not self.symmetric:
            blocks |= {"offset": ()}
        if self.levels:
            blocks |= {"level": (self.levels,)}
        return blocks


def read_out(form: Form) -> np.ndarray:
    """Return M (class, predictor): the logits of the classes are M (u, eta_1, eta_2, ...)."""
    levels = level_of_class(form.n_classes, form.symmetric)
    member = [[level == m for m in range(form.levels)] for level in levels]
    return np.hstack([positions(form.n_classes)[:, None] / 2, np.array(member, float)])


def shares(
    index: Int[Array, "item judge sample"], form: Form
) -> tuple[
    Float[Array, "item judge"], Float[Array, "item judge"], Float[Array, "item level judge"]
]:
    """Return x, whether a judge has no vote, and t: what the logits are linear in."""
    present = index >= 0
    cast = present.sum(-1)
    share = 1 / jnp.maximum(cast, 1)
    at = jnp.asarray(positions(form.n_classes))[jnp.maximum(index, 0)]
    level = jnp.asarray(level_of_class(form.n_classes, form.symmetric))[jnp.maximum(index, 0)]
    of_level = present & (level == jnp.arange(form.levels)[:, None, None, None])
    vote = jnp.where(present, at, 0.0).sum(-1) * share
    return vote, (cast == 0).astype(vote.dtype), jnp.moveaxis(of_level.sum(-1) * share, 0, 1)


def centre(
    index: Int[Array, "item judge sample"],
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    form: Form,
) -> Float[Array, " judge"]:
    """Return the judges' one-coin log-odds scaled to length 1, or 0 without labels."""
    side = jnp.sign(jnp.asarray(positions(form.n_classes)))
    truth = side[jnp.maximum(labels, 0)][:, None, None]
    agree = jnp.where(index >= 0, side[jnp.maximum(index, 0)] * truth, 0.0)
    used = jnp.where(labels >= 0, weight, 0.0)[:, None, None]
    right = jnp.where(agree > 0, used, 0.0).sum((0, 2))
    wrong = jnp.where(agree < 0, used, 0.0).sum((0, 2))
    log_odds = jnp.log1p(right) - jnp.log1p(wrong)
    length = jnp.sqrt(log_odds @ log_odds)
    return log_odds / jnp.where(length > 0, length, 1.0)


def parameters(
    sites: Mapping[str, Array], direction: Float[Array, " judge"], prior: StackingPrior, form: Form
) -> dict[str, Array]:
    """Return the parameters by name from one draw of the model's sites."""
    tau = sites["tau"]
    own = sites["z_weight"] + jnp.sqrt(prior.kappa) * sites["common"] * direction
    named = {"weight": tau * own}
    for name in form.blocks():
        if name in ("absent", "level_weight"):
            named[name] = tau * sites[f"z_{name}"]
        elif name == "offset":
            named[name] = sites[name]
        elif name == "level":
            named[name] = sites["eta0"]
    return named


class StackingData(NamedTuple):
    """The votes and the direction of the weights, which are given, and the labels."""

    votes: Int[Array, "item judge sample"]
    """Class indices, -1 where a vote is missing."""
    direction: Float[Array, " judge"]
    """The direction of the weights' prior, of length 1 or 0: `centre` of votes and labels."""
    labels: Int[Array, " item"] = None  # type: ignore[assignment]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


@dataclass(frozen=True)
class StackingModel:
    """The program: tau and the weights, then the label of each labelled item given its votes.

    Sites: `tau`, `common`, `z_weight` (judge) and, where the form has them, `z_absent` (judge),
    `z_level_weight` (level, judge), `offset`, `eta0` (level); `label` (item).
    """

    form: Form
    prior: StackingPrior = StackingPrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "weight": ("judge",),
        "absent": ("judge",),
        "level_weight": ("level", "judge"),
        "level": ("level",),
    }

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.form.n_classes

    def __call__(self, data: StackingData) -> None:
        """Sample tau and the weights, then each item's label from the link."""
        sites = {
            "tau": numpyro.sample("tau", dist.LogNormal(*self.prior.log_tau)),
            "common": numpyro.sample("common", dist.Normal()),
        }
        form = self.form
        with numpyro.plate("judge", form.n_judges):
            sites["z_weight"] = numpyro.sample("z_weight", dist.Normal())
            if not form.symmetric:
                sites["z_absent"] = numpyro.sample("z_absent", dist.Normal())
            if form.levels:
                with numpyro.plate("level", form.levels):
                    sites["z_level_weight"] = numpyro.sample("z_level_weight", dist.Normal())
        if not form.symmetric:
            sites["offset"] = numpyro.sample("offset", dist.Normal(0, self.prior.offset))
        if form.levels:
            with numpyro.plate("level", form.levels):
                sites["eta0"] = numpyro.sample("eta0", dist.Normal(0, self.prior.level))
        observe_label(self.predict(sites, data), data.labels, data.weight, self.noise)

    def quantities(self, sites: Mapping[str, Array], data: StackingData) -> dict[str, Array]:
        """Return tau and the weights, in log-odds."""
        return {"tau": sites["tau"]} | parameters(sites, data.direction, self.prior, self.form)

    def predict(self, sites: Mapping[str, Array], data: StackingData) -> Float[Array, "item class"]:
        """Return log p(k) of every item."""
        named = parameters(sites, data.direction, self.prior, self.form)
        vote, absent, share = shares(data.votes, self.form)
        u = vote @ named["weight"]
        if not self.form.symmetric:
            u += absent @ named["absent"] + named["offset"]
        each = u[:, None]
        if self.form.levels:
            eta = named["level"] + jnp.einsum("ilj,lj->il", share, named["level_weight"])
            each = jnp.concatenate([each, eta], axis=1)
        return jax.nn.log_softmax(each @ jnp.asarray(read_out(self.form)).T, axis=-1)
