"""The logarithm of the gamma function and its derivative, against SciPy."""

import jax.numpy as jnp
import numpy as np
from scipy.special import digamma, gammaln

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.pooled_dawid_skene import log_gamma_and_digamma


@in_float64
def test_both_are_scipys_from_tiny_to_large_arguments() -> None:
    x = np.concatenate([np.geomspace(1e-7, 1e6, 3001), np.arange(1, 20), [0.5, 1.4616321449683623]])
    log_gamma, derivative = log_gamma_and_digamma(jnp.asarray(x))
    np.testing.assert_allclose(log_gamma, gammaln(x), rtol=1e-13, atol=2e-13)
    np.testing.assert_allclose(derivative, digamma(x), rtol=1e-13, atol=2e-13)
