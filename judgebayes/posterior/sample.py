"""From a model with data to draws in ArviZ's container, with everything that checks need."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.nuts import NUTS, Sampling
from judgebayes.inference.sampled import container
from judgebayes.posterior.story import Story

__all__ = ["sample"]


@in_float64
def sample(
    story: Story,
    nuts: NUTS,
    seed: int,
    *,
    told: Callable[[Sampling], object] | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return the posterior as ArviZ's container, with what the story's statistics make of the data.

    An interrupted run keeps the draws that it has (`NUTS.draw`); the attributes `draws_asked` and
    `draws_kept` say how many of each chain.

    Parameters
    ----------
    story
        The model with its data.
    nuts
        How to sample.
    seed
        Of everything that is drawn.
    told
        Called with how far the sampler is.
    attributes
        What the container should know of itself.

    Raises
    ------
    KeyboardInterrupt
        If the run is interrupted before there are draws to keep.
    """
    keys = jax.random.split(jax.random.key(seed), 5)
    chains = nuts.draw(story.problem, keys[0], told)
    counts = {"draws_asked": nuts.draws, "draws_kept": chains.diverging.shape[1]}
    return container(story, chains, keys[1:], attributes={**counts, **(attributes or {})})
