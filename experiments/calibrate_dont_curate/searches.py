"""Searches over panels: beam search, backward elimination, all panels of a small pool."""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.calibrate_dont_curate.criteria import Criterion, InSample
from judgebayes.experiments.calibrate_dont_curate.curators import OnePerFamily
from judgebayes.inference.fit import Method, Training
from judgebayes.panel.judges import TopAccuracy, check_size

MAX_EXHAUSTIVE = 14


def _scores(
    criterion: Criterion,
    aggregator: Method,
    data: Training,
    panels: Bool[Array, "panel judge"],
) -> Float[Array, " panel"]:
    """Return the criterion of many panels, computed sequentially; NaN counts as infinite.

    In a batch, all panels would wait for the slowest fit: batches of 64 take 2.2 to 3 times as long
    (65 to 148 judges, 50 to 1,492 labels, 1 to 20 splits, which are batched anyway).
    """

    def one(panel: Bool[Array, " judge"]) -> Float[Array, ""]:
        value = criterion(aggregator, data, panel)
        return jnp.where(jnp.isnan(value), jnp.inf, value)

    return jax.lax.map(one, panels)


class _Beams(NamedTuple):
    panels: Bool[Array, "beam judge"]
    best: Bool[Array, " judge"]
    value: Float[Array, ""]
    """The criterion of the best panel."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Beam:
    """Add one judge at a time, keeping the `width` best panels (P2 Table 3: width 3).

    Parameters
    ----------
    additions
        The maximal number of judges to add.
    width
        The number of panels kept after each addition; 1 is greedy forward selection.
    exact
        Return the best panel of exactly `additions` judges; otherwise the best of any size reached.
    criterion
        `InSample()`, as in the paper.
    """

    additions: int = field(metadata={"static": True})
    width: int = field(default=3, metadata={"static": True})
    exact: bool = field(default=False, metadata={"static": True})
    criterion: Criterion = field(default_factory=InSample)

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:
        """Return the panel."""
        n_judges = data.given.n_judges
        check_size(self.additions, n_judges)
        code = _codes(n_judges)

        def add(_: Int[Array, ""] | int, beams: _Beams) -> _Beams:
            extended = beams.panels[:, None, :] | jnp.eye(n_judges, dtype=bool)
            panels, parents = extended.reshape(-1, n_judges), beams.panels
            value = _scores(self.criterion, aggregator, data, panels)
            is_new = (panels.sum(1) > jnp.repeat(parents.sum(1), n_judges)) & _is_first_copy(
                panels @ code
            )
            value = jnp.where(is_new, value, jnp.inf)
            best_places = jnp.argsort(value, stable=True)[: self.width]
            better = (value[best_places[0]] < beams.value) | self.exact
            return _Beams(
                panels[best_places],
                jnp.where(better, panels[best_places[0]], beams.best),
                jnp.where(better, value[best_places[0]], beams.value),
            )

        # All beams begin empty; copies of a panel count once, so they differ after the first step.
        empty = jnp.zeros((self.width, n_judges), bool)
        initial = _Beams(empty, empty[0], jnp.asarray(jnp.inf))
        return jax.lax.fori_loop(0, self.additions, add, initial).best


def greedy_forward(k: int, criterion: Criterion | None = None) -> Beam:
    """Return greedy forward selection of k judges (P2, section 4.3)."""
    return Beam(k, width=1, exact=True, criterion=InSample() if criterion is None else criterion)


def _codes(n_judges: int) -> Float[Array, " judge"]:
    """Return random numbers whose sums identify panels."""
    return jnp.asarray(np.random.default_rng(0).random(n_judges))


def _is_first_copy(code: Float[Array, " panel"]) -> Bool[Array, " panel"]:
    """Return which panels have no equal panel before them."""
    same = jnp.abs(code[:, None] - code[None, :]) < 1e-12
    return ~jnp.tril(same, -1).any(1)


class _Elimination(NamedTuple):
    panel: Bool[Array, " judge"]
    value: Float[Array, ""]
    improving: Bool[Array, ""]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BackwardElimination:
    """Drop one judge at a time, as long as this lowers the criterion (P2 Table 3)."""

    criterion: Criterion = field(default_factory=InSample)

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:
        """Return the panel."""
        n_judges = data.given.n_judges

        def can_improve(at: _Elimination) -> Bool[Array, ""]:
            return at.improving & (at.panel.sum() > 1)

        def drop(at: _Elimination) -> _Elimination:
            fewer = at.panel & ~jnp.eye(n_judges, dtype=bool)
            values = _scores(self.criterion, aggregator, data, fewer)
            values = jnp.where(at.panel, values, jnp.inf)
            dropped = jnp.argmin(values)
            better = values[dropped] < at.value
            return _Elimination(
                jnp.where(better, fewer[dropped], at.panel),
                jnp.minimum(values[dropped], at.value),
                better,
            )

        all_judges = jnp.ones((1, n_judges), bool)
        value = _scores(self.criterion, aggregator, data, all_judges)[0]
        initial = _Elimination(all_judges[0], value, jnp.asarray(True))
        return jax.lax.while_loop(can_improve, drop, initial).panel


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Exhaustive:
    """Every panel from a small pool of judges: one of each family, or the most accurate.

    P2 Table 3 uses the nine families of JudgeBench: 511 panels.
    """

    pool: TopAccuracy | OnePerFamily
    criterion: Criterion = field(default_factory=InSample)

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If the pool is larger than 14 judges: 16,383 panels.
        """
        n_judges = data.given.n_judges
        size = self.pool.size(n_judges)
        if size > MAX_EXHAUSTIVE:
            raise JudgeBayesError(
                f"A pool of {size} judges has {2**size - 1} panels; use Exhaustive for at most "
                f"{MAX_EXHAUSTIVE} judges, and Beam for more."
            )
        where = jnp.nonzero(self.pool.choose(aggregator, data), size=size)[0]
        subsets = (np.arange(1, 2**size)[:, None] >> np.arange(size)) & 1
        panels = jnp.zeros((len(subsets), n_judges), bool).at[:, where].set(subsets.astype(bool))
        return panels[jnp.argmin(_scores(self.criterion, aggregator, data, panels))]
