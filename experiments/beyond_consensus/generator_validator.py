"""The generator-validator model of counts fitted by any inference method: its mode, or draws by NUTS."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import Key
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.generator_counts import Counted, CountProgram
from judgebayes.experiments.beyond_consensus.robust_program import RobustModel
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.panel import Posterior, overall_precision
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Inference, Problem, Sites
from judgebayes.inference.sampled import Sampled, with_source

NO_SCORE = (
    "The generator-validator model is fitted to counts, which have no items to score: use "
    "MAP() or NUTS() without a score."
)


TARGET = 0.97
"""The acceptance of the default sampler."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GeneratorValidator:
    """Fit a program of counted votes (`judgebayes.experiments.beyond_consensus.generator_counts`).

    Parameters
    ----------
    program
        The program with its prior: `RobustModel()`, which `Panel` approximates and in which no single
        cell decides; or another of the same counts.
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
