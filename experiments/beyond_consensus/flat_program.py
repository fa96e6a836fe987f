"""The share of a generator's items that are valid, where judges have the same rates on all generators.

The story is that of `CountProgram` (`generator_counts`), and the rates are the judge's, TPR_ij = TPR_j,
as in P4.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.experiments.beyond_consensus.generator_counts import Counted, CountProgram, cells
from judgebayes.models.base import Traits
from judgebayes.models.item_validator import Pair


class FlatPrior(NamedTuple):
    """The Beta priors, (a, b), of shares and rates."""

    g: Pair = (1.0, 1.0)
    """The share of a generator's items that are valid."""
    tpr: Pair = (2.0, 1.0)
    fpr: Pair = (1.0, 1.0)


def link(
    g: Float[Array, " generator"],
    tpr: Float[Array, "*generator judge"],
    fpr: Float[Array, "*generator judge"],
) -> Float[Array, "generator judge"]:
    """Return P_ij = g_i TPR_ij + (1 - g_i) FPR_ij (P4 eq 1)."""
    return g[:, None] * tpr + (1 - g[:, None]) * fpr


@dataclass(frozen=True)
class FlatModel(CountProgram):
    """The program whose judges have the same rates on all generators.

    g ~ Beta(1, 1), TPR ~ Beta(2, 1) and FPR ~ Beta(1, 1) by default. Sites: `g` (generator), `tpr`
    and `fpr` (judge); `valid` (generator), `true_accepted`, `false_accepted`, `accepted` (generator,
    judge).
    """

    prior: FlatPrior = FlatPrior()
    traits: ClassVar[Traits] = Traits(
        ("valid", "true_accepted", "false_accepted", "accepted"),
        "all cells",
        ("valid_judged",),
    )
    in_turns: ClassVar[bool] = False

    def __call__(self, data: Counted) -> None:
        """Sample g, TPR and FPR, then the counts."""
        generators, judges = data.judged.shape
        with numpyro.plate("generator", generators):
            g = numpyro.sample("g", dist.Beta(*self.prior.g))
        with numpyro.plate("judge", judges):
            tpr = numpyro.sample("tpr", dist.Beta(*self.prior.tpr))
            fpr = numpyro.sample("fpr", dist.Beta(*self.prior.fpr))
        wide = jnp.zeros((generators, 1))
        valid_judged, invalid_judged = self.observe_labels(data, g)
        with cells(data):
            self.observe_count("true_accepted", data.true_accepted, valid_judged, wide + tpr)
            self.observe_count("false_accepted", data.false_accepted, invalid_judged, wide + fpr)
            self.observe_count("accepted", data.accepted, data.judged, link(g, tpr, fpr))
