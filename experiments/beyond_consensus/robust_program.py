r"""The hierarchical program of generators and judges in which no single cell decides.

The story is that of `CountProgram` (`generator_counts`), with judges who are partially pooled: judge j
knows with probability k_ij whether an item of generator i is valid, and otherwise accepts it with
probability q_ij, by its impression of the generator::

    logit k_ij = kappa_j + u_i,   logit q_ij = a_j + lambda eta_i + d_i,   eta_i = logit g_i
    u_i ~ Normal(0, sigma_u), d_i ~ Normal(0, sigma_d), eta_i ~ Normal(mu_g, 1.5)

Four things differ from a program with normal deviations of cells and one slope.

Each of the three counts of a cell (votes on items labelled valid, labelled invalid, and without a
label) has a deviation of its own, with heavy tails, on the logit scale::

    e_ijk ~ sigma_cell t_4

A judge's votes on a generator are odd with probability s_j. Then they say nothing about either, and
each of the three rates has a Beta(.1, .1) distribution, as those of a judge who accepts everything::

    odd_ij ~ Bernoulli(s_j),   logit s_j ~ Normal(-7, 3)

Impressions follow quality where judges know little, and do not where they know much. With J the mean
over judges of logit^-1 kappa_j::

    lambda ~ f Normal(1, .2) + (1 - f) Normal(0, .2),   f = 1 / (1 + (J / .42)^6)

The generators' shifts are free, or with probability .2 about as large as the deviations of cells::

    (log sigma_d, log sigma_u) ~ .8 Normal((log .28, log .4), .5)
                               + .2 Normal((log 1.5 sigma_cell, log 2 sigma_cell), .5)

Deviations and odd cells are summed out. `judgebayes.generators.Panel` is a fast approximation: it
raises a cell's likelihood to a power where this program has a distribution.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.experiments.beyond_consensus.cell_votes import student_deviations
from judgebayes.experiments.beyond_consensus.generator_counts import Counted, CountProgram
from judgebayes.generators.pairs import impressions, vote_logits
from judgebayes.models.base import Scalar, Sites
from judgebayes.models.item_validator import Pair, normals

FREEDOM = 4.0
"""Degrees of freedom of the deviations of cells."""


class RobustPrior(NamedTuple):
    """Normal priors, (location, scale), of the means, and spreads of judges and generators."""

    follow: Pair = (1.0, 0.2)
    """lambda of impressions that follow quality."""
    fixed: Pair = (0.0, 0.2)
    """lambda of impressions that do not."""
    half_knowledge: Scalar = 0.42
    """The mean knowledge J at which both are as probable."""
    impression: Pair = (0.0, 1.0)
    """The mean over judges of a_j."""
    knowledge: Pair = (-0.5, 1.5)
    """The mean over judges of kappa_j."""
    quality: Pair = (1.5, 1.5)
    """The mean over generators of eta_i."""
    judge_spread: Scalar = 0.7
    """The standard deviation of a_j and of kappa_j over judges."""
    quality_spread: Scalar = 1.5
    """The standard deviation of eta_i over generators."""
    log_sigma_d: Pair = (math.log(0.28), 0.5)
    log_sigma_u: Pair = (math.log(0.4), 0.5)
    log_sigma_cell: Pair = (math.log(0.15), 0.5)
    near_cells: Scalar = 0.2
    """The probability that the generators' shifts are about as large as the deviations of cells."""
    log_odds: Pair = (-7.0, 3.0)
    """The logit of a judge's share of odd cells: the share has a mean of .03."""


@dataclass(frozen=True)
class RobustModel(CountProgram):
    """The program with heavy-tailed cells, odd cells, and a mixture of slopes.

    Sites: `centre` (means of a, kappa, eta), `a`, `kappa` (judge), `slope`, `log_sigma_cell`,
    `log_sigma` (d, u); `log_odds` (judge, standardised logits of the shares of odd cells), `eta`
    (generator), `impression` (generator, lambda eta + d), `u` (generator, in units of its spread);
    `valid` (generator) and `accepted_by_label` (generator, judge, label).
    """

    prior: RobustPrior = RobustPrior()  # noqa: RUF009
    dims: ClassVar[dict[str, tuple[str, ...]]] = {**CountProgram.dims, "odd_share": ("judge",)}
    coords: ClassVar[dict[str, list[str]]] = {
        "mean_of": ["a", "kappa", "eta"],
        "shift_of": ["d", "u"],
        "of_label": ["valid", "invalid", "none"],
    }

    def __call__(self, data: Counted) -> None:
        """Sample judges, generators and their shifts, then the counts."""
        prior, (generators, judges) = self.prior, data.judged.shape
        centre = normals("centre", "mean_of", prior.impression, prior.knowledge, prior.quality)
        with numpyro.plate("judge", judges):
            a = numpyro.sample("a", dist.Normal(centre[0], prior.judge_spread))
            kappa = numpyro.sample("kappa", dist.Normal(centre[1], prior.judge_spread))
        slope = numpyro.sample("slope", self._slope(kappa))
        log_cell = numpyro.sample("log_sigma_cell", dist.Normal(*prior.log_sigma_cell))
        spreads = self._spreads(log_cell)
        sigma = jnp.exp(numpyro.sample("log_sigma", spreads, infer={"event_dims": ("shift_of",)}))
        with numpyro.plate("judge", judges):
            odds = numpyro.sample("log_odds", dist.Normal())
        log_odds = prior.log_odds[0] + prior.log_odds[1] * odds
        with numpyro.plate("generator", generators):
            eta = numpyro.sample("eta", dist.Normal(centre[2], prior.quality_spread))
            impression = numpyro.sample("impression", dist.Normal(slope * eta, sigma[0]))
            u = sigma[1] * numpyro.sample("u", dist.Normal())
        logits = vote_logits(*impressions(a, kappa, eta, impression, u))
        deviations = student_deviations(FREEDOM)
        self.observe_cells(data, eta, logits, jnp.exp(log_cell), deviations, log_odds)

    def _slope(self, kappa: Float[Array, " judge"]) -> dist.Distribution:
        """Return the distribution of lambda given the judges' knowledge."""
        prior = self.prior
        ratio = jax.nn.sigmoid(kappa).mean() / prior.half_knowledge
        log_follow = -jnp.log1p(ratio**6)
        weights = dist.Categorical(logits=jnp.stack([log_follow, 6 * jnp.log(ratio) + log_follow]))
        location, scale = (
            jnp.stack([*pair]) for pair in zip(prior.follow, prior.fixed, strict=True)
        )
        return dist.MixtureSameFamily(weights, dist.Normal(location, scale))

    def _spreads(self, log_cell: Array) -> dist.Distribution:
        """Return the distribution of (log sigma_d, log sigma_u) given log sigma_cell."""
        prior = self.prior
        free, scale = zip(prior.log_sigma_d, prior.log_sigma_u, strict=True)
        near = log_cell + jnp.log(jnp.array([1.5, 2.0]))
        location = jnp.stack([jnp.array(free), near])
        each = dist.Normal(location, jnp.array(scale)).to_event(1)
        weights = jnp.stack([1 - prior.near_cells, jnp.asarray(prior.near_cells)])
        return dist.MixtureSameFamily(dist.Categorical(probs=weights), each)

    def quantities(self, sites: Sites, data: Counted) -> dict[str, Array]:  # noqa: ARG002
        """Return g, each judge's share of odd cells, and the sites."""
        location, scale = self.prior.log_odds
        share = jax.nn.sigmoid(location + scale * sites["log_odds"])
        return {"g": jax.nn.sigmoid(sites["eta"]), "odd_share": share, **sites}
