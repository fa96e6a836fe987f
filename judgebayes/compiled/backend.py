"""Which kind of device programs are compiled for."""

import jax

ACCELERATOR: bool | None = None
"""What `on_accelerator` returns; None asks JAX. A test sets it, and clears JAX's caches."""


def on_accelerator() -> bool:
    """Tell whether the default device is no CPU: many lanes cost little, a trip of a loop much."""
    return jax.default_backend() != "cpu" if ACCELERATOR is None else ACCELERATOR
