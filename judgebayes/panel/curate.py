"""Curation: select a panel of judges, then run the same aggregator on its votes (P2, H.4).

A panel is a mask over the judges. The votes of judges outside it become missing, so shapes do not change
between panels. The same aggregator is refitted for every candidate panel, with its calibration map if it
has one (`Calibrated`). `Curated` does this inside `fit`, on the labelled items only, and is itself an
aggregator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from judgebayes.arrays import AnyArray, LogProbs
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.one_coin_counts import agreement
from judgebayes.inference.fit import Fit, JaxMethod, Method, Training, status_of
from judgebayes.inference.problem import one_draw
from judgebayes.inference.registry import in_files
from judgebayes.votes.array import MISSING, Votes


def masked(votes: Votes, panel: Bool[AnyArray, " judge"]) -> Votes:
    """Return the votes with those of judges outside the panel set to missing; shapes do not change."""
    inside = jnp.asarray(panel)[:, None]
    return replace(
        votes,
        index=jnp.where(inside, votes.index, MISSING),
        score=None if votes.score is None else jnp.where(inside, votes.score, jnp.nan),
    )


@runtime_checkable
class Curator(Protocol):
    """A rule that selects a panel from labelled items; works inside compiled code."""

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:
        """Return the mask of the panel over the judges."""


def check_size(k: int, n_judges: int) -> None:
    """Check that a panel of k judges can be selected from `n_judges`.

    Raises
    ------
    JudgeBayesError
        If k is below 1 or above the number of judges.
    """
    if not 0 < k <= n_judges:
        raise JudgeBayesError(
            f"A panel of {k} judges was requested, but there are only {n_judges} judges."
        )


def largest(values: Float[Array, " judge"], k: int) -> Bool[Array, " judge"]:
    """Return the mask of the k largest values; ties go to the first."""
    best = jnp.argsort(-values, stable=True)[:k]
    return jnp.zeros(values.shape, bool).at[best].set(True)


def posterior_accuracy(data: Training) -> Float[Array, " judge"]:
    """Return each judge's posterior mean accuracy under Beta(1 + right, 1 + wrong) (P2, section 2.1)."""
    right, wrong = agreement(data.given, data.labels, data.weight)
    return (1 + right) / (2 + right + wrong)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TopAccuracy:
    """The k judges with the highest posterior mean accuracy on the labelled items (P2, section 2.1)."""

    k: int = field(metadata={"static": True})

    def size(self, n_judges: int) -> int:
        """Return the size of the panel."""
        check_size(self.k, n_judges)
        return self.k

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        return largest(posterior_accuracy(data), self.size(data.given.n_judges))


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Curated(JaxMethod):
    """Select a panel on the labelled items, then fit the aggregator to its votes only.

    `Curated(Calibrated(OneCoin(), Beta()), TopAccuracy(5))` is P2's top-5 arm: it selects on all
    labelled items. `Calibrated(Curated(OneCoin(), TopAccuracy(5)), Beta())` selects on the
    aggregator's share of them.
    """

    aggregator: Method
    curator: Curator
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"panel": ("judge",)}

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        votes, labels, weight, key = data
        curator_key, fit_key = jax.random.split(key)
        panel = self.curator.choose(self.aggregator, Training(votes, labels, weight, curator_key))
        fitted = self.aggregator.fit(masked(votes, panel), labels, weight=weight, key=fit_key)
        parts = {"aggregator": fitted}
        return Fit(self, one_draw({"panel": panel}), status_of(fitted), parts=parts)

    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the log-probabilities of the items, from the panel's votes only."""
        log_probs: LogProbs = fit.parts["aggregator"](masked(given, fit.first["panel"]))
        return log_probs


def top_k(aggregator: Method, k: int) -> Curated:
    """Return the aggregator on the k most accurate judges on the labelled items (P2's top-k).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.top_k(jb.OneCoin(), 2).fit(votes, labels)
    >>> fit.first["panel"].tolist()
    [True, True, False]
    """
    return Curated(aggregator, TopAccuracy(k))
