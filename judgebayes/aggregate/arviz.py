"""Posteriors of labels, ready for ArviZ: draws, pointwise log-likelihood and predictions."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.float64 import in_float64
from judgebayes.inference import posterior
from judgebayes.inference.problem import Chains
from judgebayes.votes.array import Votes

__all__ = ["to_arviz"]


@runtime_checkable
class Sampled(Protocol):
    """A fit that may hold draws of several chains."""

    @property
    def chains(self) -> Chains | None:
        """The chains, if the fit was sampled."""
        ...

    def by_draw(self, votes: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        ...


@in_float64
def to_arviz(
    fitted: Sampled,
    votes: Votes,
    labels: Int[AnyArray, " item"],
    *,
    items: Sequence[Any] | None = None,
    seed: int = 0,
) -> Any:
    """Return a sampled fit as ArviZ's container, for its plots, PSIS-LOO and comparisons.

    Groups: posterior, sample_stats, and of the labelled items log_likelihood (each item's
    log p(label)), posterior_predictive (a label drawn from each draw) and observed_data.

    Parameters
    ----------
    fitted
        A fit with `inference=NUTS(...)`.
    votes, labels
        What it was fitted to; items without a label are left out.
    items
        Names of the items, for the item axis.
    seed
        Seed of the predicted labels.

    Raises
    ------
    JudgeBayesError
        If the fit is a point estimate: it has no posterior.
    """
    if fitted.chains is None:
        raise JudgeBayesError(
            "This fit is a point estimate and has no posterior: fit with inference=NUTS()."
        )
    labels = np.asarray(labels)
    known = np.flatnonzero(labels >= 0)
    shape = fitted.chains.diverging.shape
    log_probs = fitted.by_draw(votes.take(known))
    observed = jnp.asarray(labels[known])
    likelihood = jnp.take_along_axis(log_probs, observed[None, :, None], axis=2)[..., 0]
    predicted = jax.random.categorical(jax.random.key(seed), log_probs)
    names = known.tolist() if items is None else [items[int(i)] for i in known]
    return posterior.to_arviz(
        fitted.chains,
        log_likelihood={"label": np.asarray(likelihood).reshape(*shape, -1)},
        posterior_predictive={"label": np.asarray(predicted).reshape(*shape, -1)},
        observed={"label": labels[known]},
        coords={"item": names},
        dims={"label": ["item"]},
    )
