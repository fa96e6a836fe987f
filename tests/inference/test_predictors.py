"""Predictors in blocks are the products of the dense design."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.laplace import _Predictors, n_parameters, predictors
from judgebayes.models.stacking import Form


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("classes", [2, 3, 5])
@in_float64
def test_blocks_give_the_products_of_the_dense_design(classes: int, symmetric: bool) -> None:
    rng = np.random.default_rng(classes)
    index = jnp.asarray(rng.integers(-1, classes, (12, 4, 2)))
    form = Form(4, classes, symmetric)
    blocks, size = predictors(index, form), n_parameters(form)
    design = np.stack([np.asarray(blocks @ column) for column in jnp.eye(size)], axis=2)
    x, g = rng.normal(size=size), rng.normal(size=design.shape[:2])
    half = rng.normal(size=(12, design.shape[1], design.shape[1]))
    curvature, own = half + half.swapaxes(1, 2), rng.normal(size=(size, size))
    covariance = own @ own.T
    place = np.broadcast_to(np.arange(size), design.shape[1:])
    both = blocks, _Predictors(((jnp.asarray(design), place),), size)

    @jax.jit
    def products(*given: jax.Array) -> list[tuple[jax.Array, ...]]:
        x, g, curvature, covariance = given
        return [
            (one @ x, one.transposed(g), one.information(curvature), one.spread(covariance))
            for one in both
        ]

    for product, transposed, information, spread in products(x, g, curvature, covariance):
        np.testing.assert_allclose(product, design @ x, atol=1e-12)
        np.testing.assert_allclose(transposed, np.einsum("ip,ipa->a", g, design), atol=1e-12)
        np.testing.assert_allclose(
            information, np.einsum("ipa,ipr,irb->ab", design, curvature, design), atol=1e-11
        )
        np.testing.assert_allclose(
            spread, np.einsum("ipa,ab,irb->ipr", design, covariance, design), atol=1e-10
        )
