"""How a fit ended: a value inside compiled code, a sentence outside."""

from enum import IntEnum

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from judgebayes.arrays import ItemCodes, ItemValues
from judgebayes.compiled.jit_inline import jit_inline


class Status(IntEnum):
    """How a fit ended, from best to worst."""

    CONVERGED = 0
    UNMIXED = 1
    STALLED = 2
    MAX_STEPS = 3
    DEGENERATE = 4
    SWITCHED = 5
    NONFINITE = 6

    @property
    def sentence(self) -> str:
        """A sentence on the outcome and what to do about it."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.CONVERGED: "The fit converged.",
    Status.UNMIXED: (
        "The draws are not reliable: the chains do not agree (split R-hat above 1.01), some draws "
        "diverged, or too few draws have a noticeable weight. Take more draws, or raise target_accept."
    ),
    Status.STALLED: (
        "No step lowers the objective any further at working precision, but the projected gradient "
        "is above the tolerance: floating-point precision limits the fit, and it is not proven optimal."
    ),
    Status.MAX_STEPS: "The fit reached the maximum number of steps: raise max_steps, or scale the data.",
    Status.DEGENERATE: (
        "The labels cannot identify the parameters: they are constant, or fewer than the "
        "parameters. Label more items, of more than one class."
    ),
    Status.SWITCHED: (
        "The classes seem to be switched: most judges are right less often than chance, and no "
        "labelled item confirms this. Label a few items, or start from better judges."
    ),
    Status.NONFINITE: "The objective is not finite at the start: check for infinite or NaN scores.",
}


def worst(*statuses: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
    """Return the worst of several statuses, element by element."""
    result = statuses[0]
    for status in statuses[1:]:
        result = jnp.maximum(result, status)
    return result


def when(condition: Bool[Array, "*batch"], status: Status) -> Int[Array, "*batch"]:
    """Return `status` where the condition holds and CONVERGED elsewhere."""
    return jnp.where(condition, int(status), int(Status.CONVERGED))


@jit_inline("n_classes", "n_parameters")
def degenerate_status(
    labels: ItemCodes, weight: ItemValues, n_classes: int, n_parameters: int
) -> Int[Array, ""]:
    """Return DEGENERATE where the labels are constant or fewer than the parameters."""
    used = (labels >= 0) & (weight > 0)
    # A product with a one-hot matrix: under `vmap` over weights, one matrix product. Single precision
    # is enough: small counts are exact, and rounding of large ones changes no comparison.
    one_hot = (labels[:, None] == jnp.arange(n_classes)).astype(jnp.float32)
    labels_by_class = used.astype(jnp.float32) @ one_hot
    too_few = ((labels_by_class > 0).sum() < 2) | (labels_by_class.sum() < n_parameters)
    return when(too_few, Status.DEGENERATE)
