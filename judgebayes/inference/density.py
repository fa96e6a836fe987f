"""The log-density of a program, for inference that maximises or approximates it."""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float
from numpyro.infer import util

from judgebayes.inference.numpyro_lock import numpyro_lock


@numpyro_lock
def log_density(program: Callable[[], object], sites: Mapping[str, Array]) -> Float[Array, ""]:
    """Return the sum of the log-probabilities of a program's sites, with the latent ones at `sites`.

    It runs one thread at a time, because all threads share NumPyro's stack of handlers.
    """
    return jnp.asarray(util.log_density(program, (), {}, dict(sites))[0])
