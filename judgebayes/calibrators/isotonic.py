"""Isotonic regression: the best non-decreasing map."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyProbs, ItemCodes, ItemValues, LogProbs
from judgebayes.calibrators.maps import clipped
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.problem import Sites, one_draw
from judgebayes.inference.registry import calibrator
from judgebayes.inference.status import degenerate_status

FLOOR = 1e-6
"""The least calibrated probability: a frequency of 0 that is wrong costs 13.8 nats."""
DECIMALS = 12
"""Probabilities are rounded to this many decimals, so that rounding errors do not order them."""


@calibrator("isotonic")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Isotonic(JaxMethod):
    r"""Fit the label's frequency as a non-decreasing function of the probability.

    .. math:: \min_g \sum_i w_i (1\{y_i = k\} - g(p_{ik}))^2, \qquad g \text{ non-decreasing}

    Zadrozny & Elkan (2002): pool adjacent violators, linear between the data points and constant
    outside them, as scikit-learn's IsotonicRegression. With more than two classes, each class is fitted
    against the rest, and the result is normalised. Frequencies of 0 and 1 are clipped, because one
    error would otherwise have an infinite loss.

    Parameters
    ----------
    symmetric
        Whether swapping the responses must mirror the result: every item is used in both
        orientations, which gives the least-squares fit among the maps with g(1 - p) = 1 - g(p).
    clip
        The least calibrated probability.
    label_noise
        The known share e of the labels that are wrong, any other class alike. The observed label is
        then k with the frequency :math:`e' + (1 - e - e')\, g`, :math:`e' = e / (K - 1)`, and the
        least-squares g between 0 and 1 is the isotonic fit, transformed back and clipped.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> print(np.exp(jb.Isotonic().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.  0.  0.5 0.5 0.5 0.5 1.  1. ]
    """

    symmetric: bool = field(default=False, metadata={"static": True})
    clip: float = FLOOR
    label_noise: float = 0.0
    saved: ClassVar[tuple[str, ...]] = ("clip",)
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "knot": ("class", "point"),
        "level": ("class", "point"),
    }

    def _fitted(self, data: Training) -> Fit:
        """Return a piecewise linear map for each class: `level` at the probability `knot`."""
        n_classes = data.given.shape[1]
        status = degenerate_status(data.labels, data.weight, n_classes, 1)
        if self.symmetric:
            data = data._replace(
                given=jnp.concatenate([data.given, data.given[:, ::-1]]),
                labels=jnp.concatenate([data.labels, n_classes - 1 - data.labels]),
                weight=jnp.concatenate([data.weight, data.weight]),
            )
        knot, level = _fit(data)
        flip_rate = self.label_noise / (n_classes - 1)
        without_noise = jnp.clip((level - flip_rate) / (1 - self.label_noise - flip_rate), 0.0, 1.0)
        level = jnp.where(data.weight.sum() > 0, without_noise, level)
        return Fit(self, one_draw({"knot": knot, "level": level}), status)

    def predict(self, values: Sites, given: AnyProbs) -> LogProbs:
        """Return the calibrated log-probabilities of each item."""
        probs = jnp.exp(jnp.asarray(given, dtype=float)).round(DECIMALS)
        at = (probs, values["knot"], values["level"])
        level = jax.vmap(jnp.interp, in_axes=(1, 0, 0), out_axes=1)(*at)
        level = jnp.maximum(level, 0.0)  # rounding on a steep segment may fall below 0
        # Where every class has level 0, the result is uniform.
        level = jnp.where(level.sum(1, keepdims=True) > 0, level, 1.0)
        return clipped(jnp.log(level / level.sum(1, keepdims=True)), self.clip)


@jax.jit
def _fit(
    data: Training,
) -> tuple[Float[Array, "class item"], Float[Array, "class item"]]:
    probs = jnp.exp(data.given).round(DECIMALS)
    n_classes = probs.shape[1]

    def one(k: Int[Array, ""]) -> tuple[ItemValues, ItemValues]:
        return _pool_adjacent_violators(probs[:, k], (data.labels == k).astype(float), data.weight)

    if n_classes > 2:
        return jax.vmap(one)(jnp.arange(n_classes))
    # With two classes, the fit of the first is the mirrored fit of the second.
    knot, level = one(jnp.asarray(1))
    return jnp.stack([1 - knot[::-1], knot]), jnp.stack([1 - level[::-1], level])


class _Blocks(NamedTuple):
    """A stack of blocks of points, the last at `top`, and the number of points used so far."""

    total: ItemValues
    weight: ItemValues
    end: ItemCodes
    top: Int[Array, ""]
    n_used: Int[Array, ""]


def _pool_adjacent_violators(
    x: ItemValues, y: ItemValues, weight: ItemValues
) -> tuple[ItemValues, ItemValues]:
    """Return the distinct x with positive weight, padded by repeating the last, and the fit there.

    Pool adjacent violators. Every step either adds the next point or merges the last two blocks, so
    2n steps suffice, and all lanes of a `vmap` take the same number of steps.
    """
    n = x.shape[0]
    order = jnp.argsort(jnp.where(weight > 0, x, jnp.inf))
    x, y, weight = x[order], y[order], weight[order]
    counts = weight > 0
    first = counts & jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])
    point = jnp.where(counts, first.cumsum() - 1, n)  # n: out of bounds, dropped
    zeros = jnp.zeros(n)
    total = zeros.at[point].add(weight * y, mode="drop")
    mass = zeros.at[point].add(weight, mode="drop")
    knot = zeros.at[point].set(x, mode="drop")
    n_points = first.sum()

    def step(_: Int[Array, ""] | int, at: _Blocks) -> _Blocks:
        last, before = jnp.maximum(at.top, 0), jnp.maximum(at.top - 1, 0)
        violated = at.total[before] * at.weight[last] >= at.total[last] * at.weight[before]
        merge = (at.top > 0) & violated
        add = ~merge & (at.n_used < n_points)
        target = jnp.where(merge, before, jnp.where(add, at.top + 1, n))
        new = jnp.minimum(at.n_used, n - 1)

        def put(stack: Array, points: Array) -> Array:
            return stack.at[target].set(
                jnp.where(merge, stack[before] + stack[last], points[new]), mode="drop"
            )

        return _Blocks(
            total=put(at.total, total),
            weight=put(at.weight, mass),
            end=at.end.at[target].set(jnp.where(merge, at.end[last], at.n_used + 1), mode="drop"),
            top=at.top - merge + add,
            n_used=at.n_used + add,
        )

    begin = _Blocks(zeros, zeros, jnp.full(n, n), jnp.asarray(-1), jnp.asarray(0))
    blocks = jax.lax.fori_loop(0, 2 * n, step, begin)
    ends = jnp.where(jnp.arange(n) <= blocks.top, blocks.end, n + 1)
    block = jnp.searchsorted(ends, jnp.arange(n), side="right")
    mean = blocks.total / jnp.where(blocks.weight > 0, blocks.weight, 1.0)
    fill = jnp.minimum(jnp.arange(n), jnp.maximum(n_points - 1, 0))
    identity = jnp.linspace(0.0, 1.0, n)  # the fit without labels
    return (
        jnp.where(n_points > 0, knot[fill], identity),
        jnp.where(n_points > 0, mean[jnp.minimum(block, n - 1)][fill], identity),
    )
