r"""The share of valid items among more items like these, from any posterior of the share among these.

Given the share s among a generator's N items, the share among all items like them has the posterior

.. math:: g \mid s \sim \mathrm{Beta}(n s + 1/2,\; n (1 - s) + 1/2), \qquad n = N / \mathrm{deff}

Jeffreys' for n independent items, with Kish's design effect where items come in groups
(`judgebayes.generators.clusters`). Generators with the same groups have correlated shares. A generator
without labels of its own is unchanged: its posterior is about its rate, not about its items' labels.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.special import betaincinv, ndtr

from judgebayes.arrays import AnyArray, ItemInts, Key
from judgebayes.compiled.float64 import in_float64
from judgebayes.generators.clusters import (
    Clusters,
    correlation_between,
    correlation_within,
    normal_draws,
    residuals,
)
from judgebayes.generators.posterior import ByQuantile

DRAWS = 4000
"""Draws of the quantiles."""


@runtime_checkable
class _Drawn(Protocol):
    @property
    def status(self) -> Int[AnyArray, "*batch"]: ...

    def draws(
        self, n_draws: int = DRAWS, key: Key | None = None
    ) -> Float[AnyArray, "draw generator"]: ...


@dataclass(frozen=True)
class MoreItems(ByQuantile):
    """The posterior of the share of valid items among more items like these."""

    these: _Drawn
    """The posterior of the share among these items."""
    effective: Float[np.ndarray, " generator"]
    """The number of independent items of each generator; NaN without labels of its own."""
    in_common: Float[np.ndarray, "generator generator"]
    """The correlation of the generators' labels through their groups."""
    correlation: float
    """The intraclass correlation of validity in groups of items; 0 without groups."""

    @property
    def status(self) -> Int[AnyArray, "*batch"]:
        """The status of the fit."""
        return self.these.status

    @in_float64
    def draws(
        self, n_draws: int = DRAWS, key: Key | None = None
    ) -> Float[np.ndarray, "draw generator"]:
        """Return joint draws of the shares."""
        key = jax.random.key(0) if key is None else key
        share = np.array(self.these.draws(n_draws, key))
        own = np.isfinite(self.effective)
        # A sampler may have fewer draws than requested.
        rank = ndtr(normal_draws(self.in_common, len(share), key))[:, own]
        n = self.effective[own]
        share[:, own] = betaincinv(n * share[:, own] + 0.5, n * (1 - share[:, own]) + 0.5, rank)
        return share

    def quantile(self, level: float) -> Float[np.ndarray, " generator"]:
        """Return a quantile of each generator's share, from 4,000 draws."""
        return np.asarray(np.quantile(self.draws(), level, axis=0))


def for_more_items(
    these: _Drawn,
    labels: ItemInts,
    generator: ItemInts,
    n_generators: int,
    groups: ItemInts | None = None,
) -> MoreItems:
    """Return the posterior among more items, from that among these items with these labels.

    Parameters
    ----------
    these
        A fit whose draws are of the share among these items.
    labels
        1 valid, 0 invalid, -1 unknown.
    generator
        The index of each item's generator, from 0.
    n_generators
        The number of generators.
    groups
        The group of each item; by default items are independent.
    """
    items = np.bincount(generator, minlength=n_generators).astype(float)
    labelled = np.bincount(generator[labels >= 0], minlength=n_generators) > 0
    if groups is None:
        return MoreItems(these, np.where(labelled, items, np.nan), np.eye(n_generators), 0.0)
    residual = residuals(np.zeros(len(labels)), labels, generator, n_generators)
    clusters = Clusters(groups, correlation_within(residual, labels, generator, groups))
    effect = [clusters.design_effect(generator == place) for place in range(n_generators)]
    return MoreItems(
        these,
        np.where(labelled, items / np.array(effect), np.nan),
        correlation_between(residual, groups, generator, n_generators),
        clusters.correlation,
    )
