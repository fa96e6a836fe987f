"""The share of a generator's items that are valid, where generators shift their judges' rates.

The story is that of `CountProgram` (`generator_counts`). Every generator shifts its judges' rates on the
logit scale::

    logit k_ij = kappa_j + u_i,   logit q_ij = a_j + lambda eta_i + d_i,   eta_i = logit g_i
    TPR_ij = k_ij + (1 - k_ij) q_ij,   1 - TNR_ij = (1 - k_ij) q_ij

where k is the probability that the judge *knows* whether the item is valid, and q the probability that
it otherwise accepts, by its impression of the generator. The shifts u_i and d_i are common to all
judges of a generator, so that the errors of judges on the same items are correlated. Each cell also has
its own deviation e_ij of the logits of TPR_ij, 1 - TNR_ij and P_ij (one judge's preference for one
generator's style), which is summed out (`judgebayes.experiments.beyond_consensus.cell_votes`)::

    u_i ~ Normal(0, sigma_u), d_i ~ Normal(0, sigma_d), e_ij ~ Normal(0, sigma_cell)
    eta_i ~ Normal(mu_g, 1.5)

`judgebayes.experiments.beyond_consensus.robust_program` is the form in which no single cell decides.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.experiments.beyond_consensus.cell_votes import normal_deviations
from judgebayes.experiments.beyond_consensus.generator_counts import Counted, CountProgram
from judgebayes.generators.pairs import impressions, vote_logits
from judgebayes.models.base import Scalar, Sites
from judgebayes.models.item_validator import Pair, normals


class HierarchicalPrior(NamedTuple):
    """Normal priors, (location, scale), of the means, and spreads of judges and generators."""

    slope: Pair = (0.9, 0.3)
    """lambda."""
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


@dataclass(frozen=True)
class HierarchicalModel(CountProgram):
    """The program whose judges and generators are partially pooled; cells' deviations are summed out.

    Sites: `a`, `kappa` (judge), `eta` (generator), `impression` (generator, lambda eta + d), `u`
    (generator, in units of its spread); `slope`, `centre` (means of a, kappa, eta); `log_sigma` (d, u,
    cell); `valid` (generator) and `accepted_by_label` (generator, judge, label).
    """

    prior: HierarchicalPrior = HierarchicalPrior()
    coords: ClassVar[dict[str, list[str]]] = {
        "mean_of": ["a", "kappa", "eta"],
        "spread_of": ["d", "u", "cell"],
        "of_label": ["valid", "invalid", "none"],
    }

    def __call__(self, data: Counted) -> None:
        """Sample judges, generators and their shifts, then the counts."""
        prior, (generators, judges) = self.prior, data.judged.shape
        slope = numpyro.sample("slope", dist.Normal(*prior.slope))
        centre = normals("centre", "mean_of", prior.impression, prior.knowledge, prior.quality)
        spreads = prior.log_sigma_d, prior.log_sigma_u, prior.log_sigma_cell
        sigma = jnp.exp(normals("log_sigma", "spread_of", *spreads))
        with numpyro.plate("judge", judges):
            a = numpyro.sample("a", dist.Normal(centre[0], prior.judge_spread))
            kappa = numpyro.sample("kappa", dist.Normal(centre[1], prior.judge_spread))
        with numpyro.plate("generator", generators):
            eta, impression, u = self._of_generators(data, slope, centre[2], sigma)
        logits = vote_logits(*impressions(a, kappa, eta, impression, u))
        self.observe_cells(data, eta, logits, sigma[2], normal_deviations())

    def _of_generators(
        self,
        data: Counted,  # noqa: ARG002
        slope: Array,
        mean: Array,
        sigma: Array,
    ) -> tuple[Array, Array, Array]:
        """Sample eta, lambda eta + d, and u of each generator."""
        eta = numpyro.sample("eta", dist.Normal(mean, self.prior.quality_spread))
        # The votes determine each sum of both, and not the shift d by itself.
        impression = numpyro.sample("impression", dist.Normal(slope * eta, sigma[0]))
        return eta, impression, sigma[1] * numpyro.sample("u", dist.Normal())

    def for_sampler(
        self, data: Counted
    ) -> tuple["HierarchicalModel", Callable[[dict[str, Array]], dict[str, Array]]]:
        """Return the program in parameters that are less dependent, and the map back to these sites."""
        labelled, spread = jnp.asarray(data.labelled) > 0, self.prior.quality_spread

        def back(sites: dict[str, Array]) -> dict[str, Array]:
            sigma = jnp.exp(sites["log_sigma"])
            slope, mean, impression = sites["slope"], sites["centre"][2], sites["impression"]
            location, scale = quality_given(impression, slope, mean, sigma[0], spread)
            eta = jnp.where(labelled, sites["eta"], location + scale * sites["eta"])
            return {**sites, "eta": eta, "u": sites["u"] / sigma[1]}

        return _Sampled(self.prior, self.most_labelled), back

    def quantities(self, sites: Sites, data: Counted) -> dict[str, Array]:  # noqa: ARG002
        """Return g, and the sites."""
        return {"g": jax.nn.sigmoid(sites["eta"]), **sites}


@dataclass(frozen=True)
class _Sampled(HierarchicalModel):
    """The program with `u` in logits, and `eta` standardised given the impression where it has no label.

    Without labels, the votes determine a generator's impression better than its quality.
    """

    def _of_generators(
        self, data: Counted, slope: Array, mean: Array, sigma: Array
    ) -> tuple[Array, Array, Array]:
        spread, labelled = self.prior.quality_spread, data.labelled > 0
        own = dist.Normal(jnp.where(labelled, mean, 0.0), jnp.where(labelled, spread, 1.0))
        sampled = numpyro.sample("eta", own)
        total = jnp.sqrt((slope * spread) ** 2 + sigma[0] ** 2)
        around_quality = dist.Normal(
            slope * jnp.where(labelled, sampled, mean), jnp.where(labelled, sigma[0], total)
        )
        impression = numpyro.sample("impression", around_quality)
        location, scale = quality_given(impression, slope, mean, sigma[0], spread)
        eta = jnp.where(labelled, sampled, location + scale * sampled)
        return eta, impression, numpyro.sample("u", dist.Normal(0.0, sigma[1]))


def quality_given(
    impression: Float[Array, " generator"], slope: Array, mean: Array, sigma: Array, spread: Scalar
) -> tuple[Float[Array, " generator"], Float[Array, ""]]:
    r"""Return the mean and standard deviation of eta given :math:`\lambda \eta + d`.

    They are those of a regression, with eta ~ Normal(mean, spread) and d ~ Normal(0, sigma).
    """
    total = (slope * spread) ** 2 + sigma**2
    location = mean + slope * spread**2 / total * (impression - slope * mean)
    return location, spread * sigma / jnp.sqrt(total)
