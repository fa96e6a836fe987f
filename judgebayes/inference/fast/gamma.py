"""The logarithm of the gamma function and its derivative, together: several times faster than apart.

Both are needed where rows of Dirichlet distributions are learnt from counts. JAX's own functions also
serve negative arguments, and do not share their logarithms.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

SHIFT = 8
"""Stirling's series is used from here, and Gamma(x + 1) = x Gamma(x) below."""
SERIES = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
)
"""The coefficients of 1 / z, 1 / z^3, ... in log Gamma(z) (Abramowitz & Stegun, 6.1.40 and 6.1.41)."""


def log_gamma_and_digamma(
    x: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Return log Gamma(x) and its derivative for x > 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> log_gamma, digamma = log_gamma_and_digamma(jnp.asarray(3.0))
    >>> print(f"{log_gamma:.4f} {digamma:.4f}")
    0.6931 0.9228
    """
    product, slope = x, jnp.ones_like(x)
    for i in range(1, SHIFT):
        product, slope = product * (x + i), slope * (x + i) + product
    z = x + SHIFT
    log_z, inverse = jnp.log(z), 1 / z
    square = inverse * inverse
    value, derivative = jnp.zeros_like(x), jnp.zeros_like(x)
    for i, coefficient in reversed(list(enumerate(SERIES))):
        value = value * square + coefficient
        derivative = derivative * square - (2 * i + 1) * coefficient
    stirling = (z - 0.5) * log_z - z + 0.5 * math.log(2 * math.pi) + value * inverse
    stirlings_slope = log_z - 0.5 * inverse + derivative * square
    return stirling - jnp.log(product), stirlings_slope - slope / product
