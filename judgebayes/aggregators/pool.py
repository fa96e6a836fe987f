"""A pool of methods, weighted by how well they predict labels that they have not seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.aggregators.base import Cost
from judgebayes.aggregators.davidson import Davidson
from judgebayes.aggregators.davidson import fit_with_held_out as davidson_fit
from judgebayes.aggregators.one_coin import ClassPrior
from judgebayes.aggregators.shared_difficulty import SharedDifficulty
from judgebayes.aggregators.shared_difficulty import fit_with_held_out as difficulty_fit
from judgebayes.aggregators.stacking import Stacking
from judgebayes.aggregators.stacking import fit_with_held_out as stacking_fit
from judgebayes.arrays import LogProbs
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.point import MAP
from judgebayes.inference.problem import Design, Problem
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import worst
from judgebayes.models.base import ProbsData
from judgebayes.models.opinion_pool import OpinionPoolModel, OpinionPoolPrior
from judgebayes.models.stacking import StackingPrior
from judgebayes.votes.array import Votes

LEAST_LOG_PROB = -700.0
"""Log-probabilities below it are equal in the pool, where they must be finite."""
METHODS = ("shared-difficulty", "stacking", "davidson")
"""The methods of the pool, in the order of their weights; pairs without ties have no third."""


@aggregator("pool", knows_judges=True, compared="panel", place=38)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pool(JaxMethod):
    r"""Pool `SharedDifficulty`, `Stacking` and `Davidson`, with weights learnt from held-out answers.

    .. math:: \log p(k) = a_1 \log p_\text{difficulty}(k) + a_2 \log p_\text{stacking}(k)
              + a_3 \log p_\text{Davidson}(k) + \text{const}

    a logarithmic opinion pool (`judgebayes.models.opinion_pool`). The first method is the better one
    where votes are missing or judges have few labels, because judges are pooled; the second where many
    judges vote on every item, because it learns which of them say the same; the third, which counts the
    votes of all judges alike, where labels are too few to tell judges apart. All predict each labelled
    item without its own label, from one fit each. The pool's weights are learnt on these answers, so
    that a method that is wrong for a panel loses its weight. Stacking's weights have a prior around zero
    here, because the first method knows their common direction. In pairs without ties there is no third
    method: the other two have few parameters there.

    Parameters
    ----------
    symmetric
        Whether swapping the responses must mirror the result exactly. Use it for pairs.
    class_prior
        `uniform`, or `labels`: the labels' frequencies, with a pseudo-count of 1 for each class.
    label_noise
        The known share of the labels that are wrong, any other class alike.
    prior
        The priors of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.Pool().fit(votes, labels)
    >>> print(np.exp(fit(votes))[:, 1].round(2))
    [0.72 0.79 0.28 0.35 0.72 0.28]
    """

    symmetric: bool = field(default=True, metadata={"static": True})
    class_prior: ClassPrior = field(default="uniform", metadata={"static": True})
    label_noise: float = 0.0
    prior: OpinionPoolPrior = field(default_factory=OpinionPoolPrior)
    labelled_only: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("symmetric",)
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weight": ("method",),
        "intercept": ("other_class",),
    }

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        votes, labels, weight, key = data
        difficulty = SharedDifficulty(
            symmetric=self.symmetric,
            class_prior=self.class_prior,
            label_noise=self.label_noise,
        )
        stacking = Stacking(
            symmetric=self.symmetric,
            label_noise=self.label_noise,
            prior=StackingPrior(kappa=0.0),
        )
        parts: dict[str, Fit] = {}
        parts["shared-difficulty"], of_first = difficulty_fit(difficulty, data)
        parts["stacking"], of_second = stacking_fit(stacking, data)
        answers = [of_first, of_second]
        if votes.n_classes > 2 or not self.symmetric:
            davidson = Davidson(
                MAP(starts=1), symmetric=self.symmetric, label_noise=self.label_noise
            )
            parts["davidson"], of_third = davidson_fit(davidson, data)
            answers.append(of_third)
        log_probs = jnp.maximum(jnp.stack(answers, axis=1), LEAST_LOG_PROB)
        problem = Problem(
            OpinionPoolModel(votes.n_classes, self.symmetric, self.prior, self.label_noise),
            ProbsData(log_probs, labels, weight),
            design=_design(log_probs, self.symmetric),
        )
        result = MAP(starts=1).solve(problem, key)
        status = worst(*(part.status for part in parts.values()), result.status)
        return Fit(self, result.draws, status, parts=parts)

    @jax.jit
    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the items' log-probabilities."""
        answers = [fit.parts[name](given) for name in METHODS if name in fit.parts]
        log_probs = jnp.maximum(jnp.stack(answers, axis=1), LEAST_LOG_PROB)
        data = ProbsData(log_probs, jnp.full(given.n_items, -1))
        return OpinionPoolModel(given.n_classes, self.symmetric).predict(fit.first, data)

    def words(self, fit: Fit) -> list[str]:
        """Return a sentence on the methods' weights."""
        weights = np.asarray(fit.first["weight"]).round(2)
        *others, last = (f"{n} by {w:g}" for n, w in zip(METHODS, weights, strict=False))
        return [
            f"The pool weighs {', '.join(others)} and {last}, by their answers on labels that they "
            "had not seen."
        ]

    def cost(self, items: int, votes: Votes) -> Cost:
        """Return the cost of the two fits with parameters of each judge."""
        first = SharedDifficulty(symmetric=self.symmetric).cost(items, votes)
        second = Stacking(symmetric=self.symmetric).cost(items, votes)
        return Cost(first.numbers + second.numbers, first.operations + second.operations)


def _design(log_probs: Float[Array, "item method class"], symmetric: bool) -> Design:
    """Return the coefficients of the intercepts, unless symmetric, and of the weights."""
    items, methods, classes = log_probs.shape
    one = jnp.ones(items)
    weights = [dict(enumerate(log_probs[:, m].T)) for m in range(methods)]
    return Design(
        [*([] if symmetric else [{k: one} for k in range(1, classes)]), *weights], classes
    )
