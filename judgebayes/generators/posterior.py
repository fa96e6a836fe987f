"""The generator-validator model fitted by any inference method: its mode, or draws by NUTS."""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Chains, Inference, Problem, Sites
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.summary import summary
from judgebayes.models.base import Model
from judgebayes.models.generator_validator import (
    Counted,
    FlatModel,
    FlatPrior,
    HierarchicalModel,
    HierarchicalPrior,
)

__all__ = ["FittedGeneratorValidator", "GeneratorValidator", "counted"]


NO_SCORE = (
    "The generator-validator model is fitted to counts, which have no items to score: right would be "
    "MAP() or NUTS() without a score."
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeneratorValidator:
    """Fit the binomial model of counted votes (`judgebayes.models.generator_validator`).

    Parameters
    ----------
    form
        "flat", the paper's own model with its likelihood; "hierarchical", with shifts of each
        generator's and deviations of each cell.
    inference
        `NUTS()`, or `MAP()`: the mode is of use for the flat form, whereas the hierarchical one's,
        with its spreads in it, is not where the posterior's mass is.
    prior
        A `FlatPrior` or a `HierarchicalPrior`, as the form is; the default one if None.
    """

    form: Literal["flat", "hierarchical"] = field(default="hierarchical", metadata={"static": True})
    inference: Inference = field(default_factory=NUTS)
    prior: FlatPrior | HierarchicalPrior | None = field(default=None, metadata={"static": True})

    @in_float64
    def fit(
        self, counts: PrecisionCounts, *, key: PRNGKeyArray | None = None
    ) -> "FittedGeneratorValidator":
        """Return the posterior of the precisions and rates.

        Raises
        ------
        JudgeBayesError
            If the inference minimises a score: counts have no items to score. Or if the prior is
            that of the other form.
        """
        key = jax.random.key(0) if key is None else key
        return with_source(_fit(self, counts, key, whole=_whole(counts)), self, counts)

    def problem(self, counts: PrecisionCounts, *, whole: bool | None = None) -> Problem:
        """Return the program with these data, what every inference solves.

        `whole` says whether counts are whole numbers, which inside compiled code none can tell.
        """
        data, whole = counted(counts), _whole(counts) if whole is None else whole
        wanted = HierarchicalPrior if self.form == "hierarchical" else FlatPrior
        prior = self.prior or wanted()
        if not isinstance(prior, wanted):
            raise JudgeBayesError(
                f"A {type(prior).__name__} is no prior of the form {self.form!r}; right would be a "
                f"{wanted.__name__}."
            )
        program: Model = (
            FlatModel(prior, whole)
            if isinstance(prior, FlatPrior)
            else HierarchicalModel(prior, whole)
        )
        total = jnp.stack([a.sum() for a in data]).sum()
        return Problem(program, data, size=total, no_score=NO_SCORE)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedGeneratorValidator(Sampled):
    """Draws of the generator-validator model; one draw if it is a mode."""

    sites: Sites
    precision: Float[Array, "draw generator"]
    """Of the generators' items, the labelled ones being known."""
    status: Int[Array, "*batch"]
    chains: Chains | None

    __repr__ = summary

    def _more_quantities(self) -> dict[str, Float[Array, "draw generator"]]:
        return {"precision": self.precision}

    @in_float64
    def estimate(self) -> Float[Array, " generator"]:
        """Return the medians over draws."""
        return jnp.median(self.precision, axis=0)

    @in_float64
    def interval(
        self, level: float = 0.9
    ) -> tuple[Float[Array, " generator"], Float[Array, " generator"]]:
        """Return the ends of the central intervals over draws."""
        ends = jnp.array([(1 - level) / 2, (1 + level) / 2])
        low, high = jnp.quantile(self.precision, ends, axis=0)
        return low, high


def counted(counts: PrecisionCounts) -> Counted:
    """Return the counts as the model takes them."""
    return Counted(
        counts.accepted,
        counts.judged,
        counts.true_accepted,
        counts.valid_judged,
        counts.false_accepted,
        counts.invalid_judged,
        counts.valid,
        counts.valid + counts.invalid,
    )


def _whole(counts: PrecisionCounts) -> bool:
    """Tell whether counts are whole numbers; inside compiled code, where none can tell, that not."""
    leaves = jax.tree.leaves(counts)
    if any(isinstance(x, jax.core.Tracer) for x in leaves):
        return False
    return all(bool((np.asarray(x) == np.round(x)).all()) for x in leaves)


@partial(jax.jit, static_argnames="whole")
def _fit(
    method: GeneratorValidator, counts: PrecisionCounts, key: PRNGKeyArray, *, whole: bool
) -> FittedGeneratorValidator:
    problem = method.problem(counts, whole=whole)
    found = method.inference.solve(problem, key)
    sites = found.draws
    if isinstance(problem.model, HierarchicalModel):
        prior = problem.model.prior
        g = jax.nn.sigmoid(sites["centre"][:, 2, None] + prior.quality_spread * sites["eta"])
    else:
        g = sites["g"]
    items = counts.valid + counts.invalid + counts.unlabelled
    known = (counts.valid + counts.unlabelled * g) / jnp.where(items > 0, items, 1.0)
    return FittedGeneratorValidator(
        sites, jnp.where(items > 0, known, g), found.status, found.chains
    )
