"""Names for stored results: digests of all their inputs."""

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

NUMERICAL = ("jax", "jaxlib", "numpyro", "optax", "numpy", "scipy")


def digest_of(tree: Any, *settings: Any) -> str:
    """Return a digest that names the result of a computation on a tree of arrays with some settings.

    Classes and functions enter by name, together with the source of this package. If you change a
    method of your own without renaming it, use a new folder.

    Raises
    ------
    JudgeBayesError
        If a setting cannot be pickled by name, such as a lambda.
    """
    import jax
    import jax.numpy as jnp

    leaves, form = jax.tree.flatten(tree)
    digest = hashlib.sha256(f"{source_digest()} {jax.default_backend()}".encode())
    try:
        structure = jax.tree.unflatten(form, [0] * len(leaves))
        digest.update(pickle.dumps((structure, settings), protocol=4))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise JudgeBayesError(
            f"This computation cannot be stored in a folder ({error}); define the functions and "
            "classes of a method at the top level of a module."
        ) from error
    for leaf in leaves:
        keys = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if keys else leaf)
        if array.dtype == object:
            raise JudgeBayesError(
                f"This computation cannot be stored in a folder: {leaf!r} is not an array or a number."
            )
        digest.update(f"{array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:40]


@functools.cache
def source_digest() -> str:
    """Return a digest of this package's source and of the versions of the numerical libraries."""
    versions = [version(name) for name in NUMERICAL]
    digest = hashlib.sha256(f"{sys.version} {versions}".encode())
    root = Path(__file__).parents[1]
    folders = os.walk(root, followlinks=True)  # models and experiments are links in a checkout
    for path in sorted(Path(folder, name) for folder, _, names in folders for name in names):
        if path.suffix in {".py", ".csv"}:
            digest.update(f"{path.relative_to(root).as_posix()} ".encode() + path.read_bytes())
    return digest.hexdigest()
