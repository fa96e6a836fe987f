r"""Precision from the votes on each item, by the item-level model.

The judges' agreement on single items shows how correlated their errors are: an item's leaning shifts
all of its judges (`judgebayes.models.item_validator`), so fourteen agreeing judges are not
fourteen independent witnesses. Items with the same votes, label and generator are one row with a
weight.

The model learns from how votes split. If judges share a preference that the model does not represent,
the estimate for an unlabelled generator can be far off (`experiments/beyond_consensus`, audit-items).
Then use `Impression`, which uses only mean votes, or `Stratified`, which relies on labels.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from judgebayes.arrays import ItemValues, Key, Labels, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.generator_validator import FittedGeneratorValidator
from judgebayes.generators.counts import unique_items
from judgebayes.inference.laplace import NormalAtMode
from judgebayes.inference.problem import Inference, Problem, Sites
from judgebayes.inference.sampled import with_source
from judgebayes.models import item_validator
from judgebayes.models.base import PanelData
from judgebayes.models.item_validator import ItemModel, ItemPrior
from judgebayes.votes.array import MISSING, Votes

NO_SCORE = (
    "The item-level model is fitted by its likelihood, to labelled and unlabelled items: use "
    "NormalAtMode(), MAP() or NUTS() without a score."
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ItemLevel:
    """Fit the item-level generator-validator model.

    Parameters
    ----------
    inference
        `NormalAtMode()`, draws from the normal approximation at the mode; `MAP()`, the mode only; or
        `NUTS()`.
    """

    inference: Inference = field(default_factory=NormalAtMode)
    independent: bool = field(default=False, metadata={"static": True})
    """Whether to leave the leanings out, so that judges err independently given the label, as in P4."""
    prior: ItemPrior = field(default_factory=ItemPrior, metadata={"static": True})

    @in_float64
    def fit(
        self,
        votes: Votes,
        labels: Labels,
        generators: Labels,
        n_generators: int,
        *,
        weight: Weights | None = None,
        key: Key | None = None,
    ) -> FittedGeneratorValidator:
        """Return the posterior of the precisions.

        Parameters
        ----------
        votes
            Binary votes, at most one of each judge on an item; 1 means valid.
        labels
            1 valid, 0 invalid, -1 unknown.
        generators
            The index of each item's generator, from 0.
        n_generators
            The number of generators.
        weight
            The number of items that each row represents; 1 by default.

        Raises
        ------
        JudgeBayesError
            If the votes are not binary, or a judge voted more than once on an item.
        """
        rows, _ = unique_items(votes, labels, generators, weight)
        key = jax.random.key(0) if key is None else key
        fit = _solve(self, rows, jnp.zeros(n_generators), key)
        return with_source(fit, votes, labels, generators, n_generators, weight)

    def problem(
        self,
        votes: Votes,
        labels: Labels,
        generators: Labels,
        n_generators: int,
        weight: ItemValues | None = None,
    ) -> Problem:
        """Return the model with these data, with a row for every item."""
        index = jnp.maximum(jnp.asarray(votes.index, int), MISSING)
        data = PanelData(index, jnp.asarray(labels), weight, generator=jnp.asarray(generators))
        return self._problem(data, n_generators)

    def _problem(self, data: PanelData, n_generators: int) -> Problem:
        points = 1 if self.independent else item_validator.POINTS
        program = ItemModel(n_generators, points, self.prior)
        size = None if data.weight is None else data.weight.sum()
        return Problem(program, data, size=size, no_score=NO_SCORE)


@jax.jit
def _solve(
    method: ItemLevel, rows: PanelData, zeros: Float[Array, " generator"], key: Key
) -> FittedGeneratorValidator:
    generators = zeros.shape[0]
    problem = method._problem(rows, generators)
    assert rows.weight is not None
    program = problem.model
    assert isinstance(program, ItemModel)

    def valid_probability(sites: Sites) -> ItemValues:
        return jnp.exp(program.predict(sites, rows)[:, 1])

    solve, noise = jax.random.split(key)
    result = method.inference.solve(problem, solve)
    member = (rows.generator[:, None] == jnp.arange(generators)) * rows.weight[:, None]
    total = jnp.maximum(member.sum(0), 1e-300)
    hidden = (rows.labels < 0)[:, None] * member
    valid = ((rows.labels == 1)[:, None] * member).sum(0)

    def precision(sites: Sites) -> tuple[Array, Array]:
        p = valid_probability(sites)
        return (valid + p @ hidden) / total, jnp.sqrt((p * (1 - p)) @ hidden) / total

    mean, chance = jax.lax.map(precision, result.draws)
    n_draws = mean.shape[0]
    drawn = mean + chance * jax.random.normal(noise, mean.shape) * (n_draws > 1)
    ends = valid / total, (valid + hidden.sum(0)) / total
    draws = {**result.draws, "precision": jnp.clip(drawn, *ends)}
    return FittedGeneratorValidator(
        method, draws, result.status, result.details, chains=result.chains
    )
