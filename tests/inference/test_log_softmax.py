import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.log_softmax import log_softmax


@pytest.mark.parametrize("n_classes", [2, 3])
@in_float64
def test_equals_jax_with_two_derivatives_also_at_equal_logits(n_classes: int) -> None:
    logits = np.random.default_rng(1).normal(scale=5, size=(50, n_classes))
    logits[0] = 0.0
    weight = jnp.arange(1.0, 1.0 + n_classes)

    def summed(function, x):
        return (function(x) * weight).sum(-1) ** 2

    @jax.jit
    def both(logits):
        return [
            [
                jax.vmap(derived(lambda x, f=f: summed(f, x)))(logits)
                for f in (log_softmax, jax.nn.log_softmax)
            ]
            for derived in (lambda f: f, jax.grad, jax.hessian)
        ]

    for ours, theirs in both(jnp.asarray(logits)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@in_float64
def test_the_impossible_stays_impossible() -> None:
    logits = jnp.array([[-jnp.inf, 0.0], [3.0, -jnp.inf], [800.0, -800.0]])
    right = [[-np.inf, 0.0], [0.0, -np.inf], [0.0, -1600.0]]
    np.testing.assert_array_equal(log_softmax(logits), right)
