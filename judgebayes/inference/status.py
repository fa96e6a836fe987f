"""How a fit ended: a value inside compiled code, a sentence outside.

The repr of a fitted value: fields, small arrays, shapes of large arrays, and status.
"""

from dataclasses import fields
from enum import IntEnum
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
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
    return reduce(jnp.maximum, statuses)


def when(condition: Bool[Array, "*batch"], status: Status) -> Int[Array, "*batch"]:
    """Return `status` where the condition holds and CONVERGED elsewhere."""
    return jnp.where(condition, int(status), int(Status.CONVERGED))


def ended(finite: Bool[Array, "*batch"], converged: Bool[Array, "*batch"]) -> Int[Array, "*batch"]:
    """Return the status of a search that stops where it has converged, or after its last step."""
    return jnp.select(
        [~finite, converged],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )


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


MAX_SHOWN = 6
"""Arrays of up to this many numbers are shown, larger ones by type and shape."""


def summary(value: Any) -> str:
    """Return a dataclass as text; fields that are None or have no repr are left out.

    Inside a transformation, where arrays have no values, only their shapes are shown.
    """
    fields_of = {
        field.name: getattr(value, field.name, None) for field in fields(value) if field.repr
    }
    shown = [
        f"{name}={status_text(x) if name == 'status' else shortened(x)}"
        for name, x in fields_of.items()
        if x is not None
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


def shortened(value: Any) -> str:
    """Return up to `MAX_SHOWN` numbers of an array; of larger ones, and of tracers, type and shape."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shortened, value))})"
    if not hasattr(value, "dtype"):
        return repr(value)
    if isinstance(value, jax.core.Tracer) or value.size > MAX_SHOWN:
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    return "".join(np.array2string(np.asarray(value), precision=3).splitlines())


def status_text(status: Any) -> str:
    """Return the status of a fit, or the counts by status of a batch."""
    try:
        each = np.asarray(status).astype(int).ravel()
    except Exception:  # a tracer, which only JAX can name, or a placeholder inside a transformation
        return "?"
    if np.ndim(status) == 0:
        return Status(int(each[0])).name.lower()
    kinds, counts = np.unique(each, return_counts=True)
    pairs = zip(kinds, counts, strict=True)
    return ", ".join(f"{Status(int(k)).name.lower()} {n}" for k, n in pairs) or "none"
