"""Sample a model with data, into ArviZ's container with everything that checks need."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.nuts import NUTS, Sampling
from judgebayes.inference.sampled import container, draws_alone
from judgebayes.posterior.story import ModelSpec


@in_float64
def sample(
    spec: ModelSpec,
    nuts: NUTS,
    seed: int,
    *,
    on_progress: Callable[[Sampling], object] | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return the posterior as ArviZ's container, with the spec's statistics of data and replications.

    The attributes `draws_asked` and `draws_kept` contain the number of draws per chain. An interrupted
    run keeps the draws that it has (`NUTS.draw`), without predictions and priors: they take seconds.

    Parameters
    ----------
    spec
        The model with its data.
    nuts
        The sampler.
    seed
        The seed of all random draws.
    on_progress
        Called with the progress of the sampler.
    attributes
        Attributes to store in the container.

    Raises
    ------
    KeyboardInterrupt
        If the run is interrupted before there are draws to keep.
    """
    keys = jax.random.split(jax.random.key(seed), 5)
    chains = nuts.draw(spec.problem, keys[0], on_progress)
    counts = {"draws_asked": nuts.draws, "draws_kept": chains.diverging.shape[1]}
    attributes = {**counts, **(attributes or {})}
    if counts["draws_kept"] < nuts.draws:
        return draws_alone(spec, chains, attributes)
    return container(spec, chains, keys[1:], attributes=attributes)
