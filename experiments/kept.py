"""Arrays that a killed run of `judgebayes reproduce` need not compute again."""

import functools
import hashlib
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from judgebayes.compiled.store import atomically

NUMERICAL = ("jax", "jaxlib", "numpyro", "optax", "numpy", "scipy")

Arrays = dict[str, np.ndarray]


def kept(folder: Path, made_from: Any, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that `make` returns: from their file, or else made and stored in a folder.

    The file is named by a digest of `made_from`, pickled, and of the source, which has all classes and
    functions that are pickled by name.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written to; files that were stored before remain.
    """
    digest = hashlib.sha256(source_digest().encode() + pickle.dumps(made_from))
    path = folder / f"{digest.hexdigest()[:40]}.npz"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):  # none, or a damaged one
        arrays = make()
    with atomically(path, new_folder=True) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return arrays


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
