"""Parts of a sweep kept in a folder as they are done, so that a run that was killed goes on.

A part is what a method answered on some splits. Its file is found again by all that its numbers come
from: the method and its settings, the votes, labels, splits and random keys, this package's source and
the versions of what computes. Files are plain arrays (`.npz`, nothing is executed), written beside
their place and moved into it, so that a file is whole or not there; one that cannot be read is made
anew. Several processes may use one folder: they would write the same bytes.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from judgebayes.errors import JudgeBayesError

__all__ = ["atomically", "clear_half_written", "digest_of", "kept_part", "locked", "source_digest"]

COMPUTES = ("jax", "jaxlib", "numpyro", "optax", "numpy", "scipy")
PART, HALF = ".npz", ".half-written"

Arrays = dict[str, np.ndarray]


def kept_part(folder: Path, name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays of a part: those kept under its name, else what `make` returns, now kept.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written to, or the disk is full; parts kept before stay.
    """
    path = folder / f"{name}{PART}"
    found = _read(path)
    if found is None:
        found = make()
        with atomically(path, new_folder=True) as beside, beside.open("wb") as file:
            np.savez(file, allow_pickle=False, **found)
    return found


def _read(path: Path) -> Arrays | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        return None  # not there, or not whole


@contextlib.contextmanager
def atomically(path: Path, *, new_folder: bool = False) -> Iterator[Path]:
    """Yield a path beside another, and move what was written there into its place.

    What is no file, a terminal say, is written to directly. `new_folder` makes the folder.

    Raises
    ------
    JudgeBayesError
        If it cannot be written; what stood there before stays, and nothing half written is left.
    """
    temporary = None
    try:
        path = path.resolve()  # a link stays one
        if path.exists() and not path.is_file():
            yield path
            return
        if new_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=HALF)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise JudgeBayesError(
            f"{str(path)!r} cannot be written: {error.strerror or error}. Nothing that was finished is "
            "lost: make room, or name another place, and run the same command again."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def clear_half_written(folder: Path) -> None:
    """Remove what writers that were killed have left; only where no other can be writing."""
    for left in folder.rglob(f".*{HALF}"):
        left.unlink(missing_ok=True)


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
            f"This sweep cannot be kept in a folder ({error}); functions and classes that a method is "
            "made of must stand at the top of a module."
        ) from error
    for leaf in leaves:
        keys = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if keys else leaf)
        if array.dtype == object:
            raise JudgeBayesError(
                f"This sweep cannot be kept in a folder: {leaf!r} is no array or number."
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
    # Models and experiments are links in a checkout.
    files = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(root, followlinks=True)
        for name in names
        if name.endswith((".py", ".csv"))
    )
    for path in files:
        found.update(f"{path.relative_to(root).as_posix()} ".encode() + path.read_bytes())
    return found.hexdigest()


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder for this process: another that asks for it meanwhile is refused.

    The lock ends with the process, however that ends.

    Raises
    ------
    JudgeBayesError
        If another process holds the folder, or it cannot be written to.
    """
    path = folder / "lock"
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise JudgeBayesError(
                f"{str(folder)!r} cannot be written: {error.strerror or error}."
            ) from error
        try:
            _lock(handle)
        except OSError as error:
            os.close(handle)
            raise JudgeBayesError(
                f"Another run is writing to {what}; wait for it, or name another folder."
            ) from error
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            break
        os.close(handle)  # the run that held it has just removed it
    try:
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
