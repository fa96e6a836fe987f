"""The generator-validator model fitted by any inference method: its mode, or draws by NUTS."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import Key, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Inference, Problem, Sites
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, when, worst
from judgebayes.models.generator_counts import Counted, CountProgram
from judgebayes.models.robust_validator import RobustModel

NO_SCORE = (
    "The generator-validator model is fitted to counts, which have no items to score: use "
    "MAP() or NUTS() without a score."
)


TARGET = 0.97
"""The acceptance of the default sampler."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeneratorValidator:
    """Fit a program of counted votes (`judgebayes.models.generator_counts`).

    Parameters
    ----------
    program
        The program with its prior: `RobustModel()` (`judgebayes.models.robust_validator`), which `Panel`
        approximates and in which no single cell decides; or another of the same counts.
    inference
        `NUTS()`, by default with short steps, because spreads near 0 make the posterior narrow; or
        `MAP()` for a program without spreads. The mode of the robust one, which includes its spreads,
        is far from the posterior's mass.
    """

    program: CountProgram = field(default_factory=RobustModel, metadata={"static": True})
    inference: Inference = field(default_factory=lambda: NUTS(target_accept=TARGET))

    @in_float64
    def fit(self, counts: PrecisionCounts, *, key: Key | None = None) -> "FittedGeneratorValidator":
        """Return the posterior of the precisions and rates.

        Raises
        ------
        JudgeBayesError
            If the inference minimises a score: counts have no items to score.
        """
        key = jax.random.key(0) if key is None else key
        return with_source(_fit(self, counts, key), counts)

    def problem(self, counts: PrecisionCounts) -> Problem:
        """Return the model with these data, the problem that every inference solves."""
        labelled = counts.valid + counts.invalid
        data = Counted(
            *(counts.accepted, counts.judged, counts.true_accepted, counts.valid_judged),
            *(counts.false_accepted, counts.invalid_judged, counts.valid, labelled),
        )
        total = jnp.stack([a.sum() for a in data]).sum()
        in_turns = self.program.in_turns
        return Problem(self.program, data, size=total, in_turns=in_turns, no_score=NO_SCORE)


class Posterior(ABC):
    """The posterior of each generator's share of valid items: of NumPy's or of JAX's arrays."""

    status: Any
    """The status of the fit, a `Status` as a number."""

    def quantile(self, level: float) -> Any:
        """Return a quantile of each generator's share: of its draws, if it has no form of its own."""
        return np.quantile(np.asarray(self.sample()), level, axis=0)

    @abstractmethod
    def sample(self, n_draws: int = 4000, key: Key | None = None) -> Any:
        """Return joint draws (draw, generator); errors that generators share cancel in differences."""

    def estimate(self) -> Any:
        """Return the posterior medians."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return the ends of the central intervals."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def overall_precision(of: Any, g: Array) -> Array:
    """Return the share of valid items among all, with the probability g for the unlabelled ones.

    `of` has the numbers `valid`, `invalid` and `unlabelled` of each generator; g is (..., generator).
    """
    total = of.valid + of.invalid + of.unlabelled
    share = (of.valid + of.unlabelled * g) / jnp.where(total > 0, total, 1.0)
    return jnp.where(total > 0, share, g)


def spread_grid(
    priors: Sequence[tuple[Scalar, Scalar]], points: Sequence[int], span: float
) -> tuple[list[Array], Array]:
    """Return spreads at the points of a grid, by normal priors of their logs, and the log-density there.

    The grid reaches `span` standard deviations to either side of each prior's location.
    """
    each = [np.linspace(-span, span, n) for n in points]
    z = np.stack([a.ravel() for a in np.meshgrid(*each, indexing="ij")])
    spreads = [
        jnp.exp(location + scale * row) for (location, scale), row in zip(priors, z, strict=True)
    ]
    return spreads, -0.5 * jnp.asarray((z**2).sum(0))


def grid_status(mean: Array, covariance: Array, unfinished: Array) -> Int[Array, ""]:
    """Return the status of a mixture of normals, each found by a search that may be unfinished."""
    finite = jnp.isfinite(mean).all() & jnp.isfinite(covariance).all()
    return worst(when(~finite, Status.NONFINITE), when(unfinished, Status.MAX_STEPS))


@jax.tree_util.register_dataclass
class FittedGeneratorValidator(Sampled, Posterior):
    """Draws of the generator-validator model; one draw if it is a mode.

    Beside the program's sites, `draws` has the `precision` of the generators' items (draw, generator);
    the labelled items count with their labels.
    """

    def _more_quantities(self) -> Sites:
        return {"precision": self.draws["precision"]}

    @in_float64
    def quantile(self, level: float) -> Float[Array, " generator"]:
        """Return a quantile of each generator's precision."""
        return jnp.quantile(self.draws["precision"], level, axis=0)

    def sample(self, n_draws: int = 4000, key: Key | None = None) -> Float[Array, "draw generator"]:
        """Return the sampler's draws, or some of them at equal distances; `key` is not needed."""
        del key
        places = jnp.linspace(0, self.n_draws - 1, min(n_draws, self.n_draws))
        return self.draws["precision"][places.astype(int)]


@jax.jit
def _fit(method: GeneratorValidator, counts: PrecisionCounts, key: Key) -> FittedGeneratorValidator:
    problem = method.problem(counts)
    result = method.inference.solve(problem, key)
    sites = result.draws
    g = sites["g"] if "g" in sites else jax.nn.sigmoid(sites["eta"])
    draws = {**sites, "precision": overall_precision(counts, g)}
    return FittedGeneratorValidator(
        method, draws, result.status, result.details, chains=result.chains
    )
