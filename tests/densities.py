"""Log-densities of programs in compiled code: without it, each operation is compiled by itself."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
from numpyro.infer.util import log_density

from judgebayes.models.base import Model

__all__ = ["density_at"]


def density_at(program: Model, data: Any, sites: Mapping[str, jax.Array]) -> float:
    """Return the log-density of a program at the values of its sites."""
    return float(_density(program, data, dict(sites)))


@partial(jax.jit, static_argnums=0)
def _density(program: Model, data: Any, sites: dict[str, jax.Array]) -> jax.Array:
    return log_density(program, (data,), {}, sites)[0]
