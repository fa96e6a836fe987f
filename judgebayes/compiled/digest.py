"""Names for what is kept: digests of all that it comes from."""

import functools
import hashlib
import os
import pickle
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from judgebayes.errors import JudgeBayesError

__all__ = ["digest_of", "source_digest"]

COMPUTES = ("jax", "jaxlib", "numpyro", "optax", "numpy", "scipy")


def digest_of(tree: Any, *settings: Any) -> str:
    """Return a name for what is computed from a tree of arrays under some settings.

    Classes and functions count by their names, and so by the source of this package; a method of
    your own that changes under its name needs a folder of its own.

    Raises
    ------
    JudgeBayesError
        If a setting has no name that a later process would give it too, as a lambda has none.
    """
    import jax
    import jax.numpy as jnp

    leaves, form = jax.tree.flatten(tree)
    told = hashlib.sha256(f"{source_digest()} {jax.default_backend()}".encode())
    try:
        blank = jax.tree.unflatten(form, [0] * len(leaves))
        told.update(pickle.dumps((blank, settings), protocol=4))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise JudgeBayesError(
            f"This computation cannot be kept in a folder ({error}); functions and classes that a "
            "method is made of must stand at the top of a module."
        ) from error
    for leaf in leaves:
        keys = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if keys else leaf)
        if array.dtype == object:
            raise JudgeBayesError(
                f"This computation cannot be kept in a folder: {leaf!r} is no array or number."
            )
        told.update(f"{array.dtype} {array.shape} ".encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()[:40]


@functools.cache
def source_digest() -> str:
    """Return a digest of this package's source, and of the versions of what computes."""
    versions = [version(name) for name in COMPUTES]
    found = hashlib.sha256(f"{sys.version} {versions}".encode())
    root = Path(__file__).parents[1]
    folders = os.walk(root, followlinks=True)  # models and experiments are links in a checkout
    for path in sorted(Path(folder, name) for folder, _, names in folders for name in names):
        if path.suffix in {".py", ".csv"}:
            found.update(f"{path.relative_to(root).as_posix()} ".encode() + path.read_bytes())
    return found.hexdigest()
