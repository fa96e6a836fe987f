r"""Predictors that are linear in parameters, most of which enter one predictor only.

.. math:: \eta_{ir} = \sum_a F_{ira} \, x_{\mathrm{place}(r, a)}

A design item x predictor x parameter would mostly be zeros: with K classes and J judges its
products take K^2 times as long. The blocks leave them out.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Block(NamedTuple):
    """Predictors with equally many parameters each."""

    features: Float[Array, "item predictor feature"]
    place: Int[np.ndarray, "predictor feature"]
    """The parameter of each feature."""


class Predictors(NamedTuple):
    """Blocks of predictors, in order."""

    blocks: tuple[Block, ...]
    n_parameters: int

    def __matmul__(self, x: Float[Array, " parameter"]) -> Float[Array, "item predictor"]:
        """Return the predictors of every item."""
        parts = [jnp.einsum("ira,ra->ir", features, x[place]) for features, place in self.blocks]
        return jnp.concatenate(parts, axis=1)

    def transposed(self, by_item: Float[Array, "item predictor"]) -> Float[Array, " parameter"]:
        """Return the sum over items and predictors of the features, weighted by `by_item`."""
        total = jnp.zeros(self.n_parameters)
        for (features, place), own in zip(self.blocks, self._ranges(), strict=True):
            total = total.at[place].add(jnp.einsum("ir,ira->ra", by_item[:, own], features))
        return total

    def information(
        self, curvature: Float[Array, "item predictor predictor"]
    ) -> Float[Array, "parameter parameter"]:
        r"""Return :math:`\sum_i \Phi_i^T C_i \Phi_i`, with the items' symmetric curvatures."""
        ranges = self._ranges()

        def of_predictor(one: tuple[Array, Array]) -> Array:
            feature, curved = one  # (item, feature), (item, predictor)
            parts = [
                (curved[:, other, None] * features).reshape(len(feature), -1)
                for (features, _), other in zip(self.blocks, ranges, strict=True)
            ]
            return jnp.concatenate([feature.T @ part for part in parts], axis=1)

        rows = [
            _each(
                of_predictor, (jnp.moveaxis(features, 1, 0), jnp.moveaxis(curvature[:, own], 1, 0))
            )
            for (features, _), own in zip(self.blocks, ranges, strict=True)
        ]
        size = len(self._places())
        return self._in_place(jnp.concatenate([row.reshape(-1, size) for row in rows]))

    def spread(
        self, covariance: Float[Array, "parameter parameter"]
    ) -> Float[Array, "item predictor predictor"]:
        r"""Return :math:`\Phi_i M \Phi_i^T` of every item, with a symmetric matrix M."""

        def of_predictor(one: tuple[Array, Array]) -> Array:
            feature, own = one
            across = covariance[own]
            parts = [
                ((feature @ across[:, place.reshape(-1)]).reshape(features.shape) * features).sum(
                    -1
                )
                for features, place in self.blocks
            ]
            return jnp.concatenate(parts, axis=1)

        rows = [
            _each(of_predictor, (jnp.moveaxis(features, 1, 0), jnp.asarray(place)))
            for features, place in self.blocks
        ]
        return jnp.moveaxis(jnp.concatenate(rows), 1, 0)

    def _ranges(self) -> list[slice]:
        ends = np.cumsum([0, *(len(place) for _, place in self.blocks)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def _places(self) -> Int[np.ndarray, " feature"]:
        return np.concatenate([place.reshape(-1) for _, place in self.blocks])

    def _in_place(
        self, matrix: Float[Array, "feature feature"]
    ) -> Float[Array, "parameter parameter"]:
        """Return a matrix over the features of all predictors as one over the parameters."""
        places, n = self._places(), self.n_parameters
        if np.array_equal(places, np.arange(n)):
            return matrix
        if np.array_equal(np.sort(places), np.arange(n)):  # a gather is faster than a sum
            order = np.argsort(places)
            return matrix[order][:, order]
        return jnp.zeros((n, n)).at[places[:, None], places[None]].add(matrix)


def dense_predictors(design: Float[Array, "item predictor parameter"]) -> Predictors:
    """Return the predictors of a design in which all parameters enter all predictors."""
    _, n_predictors, n_parameters = design.shape
    place = np.broadcast_to(np.arange(n_parameters), (n_predictors, n_parameters))
    return Predictors((Block(design, place),), n_parameters)


def _each(one: Callable[[tuple[Array, Array]], Array], predictors: tuple[Array, Array]) -> Array:
    """Apply a function to every predictor, one at a time to save memory."""
    first, second = predictors
    if len(first) == 1:
        return one((first[0], second[0]))[None]
    return jax.lax.map(one, predictors)
