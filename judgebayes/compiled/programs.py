"""Traced programs kept in a folder, so that a later process need not trace them again.

JAX's persistent cache keeps what was compiled, but to ask for it a program must be traced and
lowered first: a second or two of Python for a method over splits, each time a command is run. Here
the lowered program is kept (`jax.export`). It is found again by the source of this package, the
versions of what traces it, the structure of its arguments and their shapes; values play no part. What
its answer looks like is kept as JSON beside it: files are data, of which nothing is executed but the
program itself. What the folder holds is limited: the programs used longest ago are removed first, those
of other versions of the source before all.

Nothing is kept unless the environment variable `JUDGEBAYES_PROGRAMS` names a folder, as the command
line does.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pickle
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

__all__ = ["FOLDER", "kept"]

FOLDER = "JUDGEBAYES_PROGRAMS"
"""The environment variable that names the folder."""
TRACERS = ("jax", "jaxlib", "numpyro", "optax")
MOST_FILES = 1000
MOST_BYTES = 512 * 2**20
KEPT, HALF_WRITTEN = ".program", ".part"
ABANDONED = 24 * 3600
"""After so many seconds a file that is half written has no writer any more."""

R = TypeVar("R")


def kept(function: Callable[..., R], *args: Any, **static: Any) -> R:
    """Return `function(*args, **static)`, traced at most once for all processes.

    Parameters
    ----------
    function
        A compiled function (`jax.jit`) of trees of arrays, returning one. It is told by its name.
    args
        Trees of arrays and numbers. Their classes must pickle, as those of all methods do.
    static
        Its static arguments.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return function(*args, **static)
    leaves, tree = jax.tree.flatten(args)
    is_key = [
        isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in leaves
    ]
    # Exported programs take plain arrays; a key is its numbers.
    plain = [
        jax.random.key_data(x) if key else np.asarray(x)
        for x, key in zip(leaves, is_key, strict=True)
    ]
    shapes = [(x.shape, str(x.dtype)) for x in plain]
    name = f"{function.__module__}.{function.__qualname__}"
    digest = _digest(name, _blank(tree), shapes, static)
    path = Path(folder) / f"{name}-{_source()}-{digest}{KEPT}"
    found = LOADED.get(path) or _read(path)
    if found is None:
        answer: list[Any] = []

        def flat(*plain: jax.Array) -> list[jax.Array]:
            whole = [
                jax.random.wrap_key_data(x) if key else x
                for x, key in zip(plain, is_key, strict=True)
            ]
            leaves, form = jax.tree.flatten(function(*jax.tree.unflatten(tree, whole), **static))
            answer.append(_blank(form))
            return leaves

        program = export.export(jax.jit(flat))(*plain)
        told = _told_or_none(answer[-1])
        if told is not None:
            _write(path, json.dumps(told).encode() + b"\n" + program.serialize())
        # The process that traced it compiles what later ones read: one compilation for all.
        found = _Program(answer[-1], jax.jit(program.call))
    LOADED[path] = found
    form = jax.tree.structure(found.answer)
    return jax.tree.unflatten(form, found.call(*plain))


class Leaf:
    """Stands where an array stood in a tree of which only the form is kept."""


class _Program(NamedTuple):
    answer: Any
    """What the program returns, without the arrays."""
    call: Callable[..., list[jax.Array]]


LOADED: dict[Path, _Program] = {}
"""The programs that this process has read or written."""


def _blank(form: jax.tree_util.PyTreeDef) -> Any:
    return jax.tree.unflatten(form, [Leaf] * form.num_leaves)


def _told(form: Any) -> Any:
    """Return the form of an answer as JSON can say it: `_formed` makes it again.

    Raises
    ------
    TypeError
        If it holds something else than dataclasses, tuples, lists, dicts, and plain static values.
    """
    if form is Leaf:
        return {"leaf": True}
    if form is None or isinstance(form, (bool, int, float, str)):
        return {"value": form}
    if isinstance(form, (list, tuple)) and not hasattr(form, "_fields"):
        return {type(form).__name__: [_told(each) for each in form]}
    if isinstance(form, dict):
        return {"dict": [[_told(key), _told(each)] for key, each in form.items()]}
    names = getattr(form, "_fields", None) or [each.name for each in dataclasses.fields(form)]
    cls = type(form)
    return {
        "class": [cls.__module__, cls.__qualname__],
        "fields": {name: _told(getattr(form, name)) for name in names},
    }


def _told_or_none(form: Any) -> Any:
    """Return what `_told` does; None for what JSON cannot say, which is traced by every process."""
    try:
        return _told(form)
    except TypeError:
        return None


def _formed(told: Any) -> Any:
    """Return the form that JSON told of. Classes are dataclasses and named tuples in use already."""
    if "leaf" in told:
        return Leaf
    if "value" in told:
        return told["value"]
    for kind in (list, tuple):
        if kind.__name__ in told:
            return kind(_formed(each) for each in told[kind.__name__])
    if "dict" in told:
        return {_formed(key): _formed(each) for key, each in told["dict"]}
    module, name = told["class"]
    cls = getattr(sys.modules[module], name)
    if not dataclasses.is_dataclass(cls) and not hasattr(cls, "_fields"):
        raise TypeError(f"{name} is neither a dataclass nor a named tuple")
    return cls(**{key: _formed(each) for key, each in told["fields"].items()})


def _digest(*what: Any) -> str:
    """Return the name of a program: a function of all that its trace depends on."""
    real = str(jax.dtypes.canonicalize_dtype(float))  # 64 bits or 32
    told = (_surroundings(), jax.default_backend(), real, *what)
    return hashlib.sha256(pickle.dumps(told)).hexdigest()[:40]


@functools.cache
def _surroundings() -> str:
    """Return a digest of this package's source and of the versions of what traces it."""
    found = hashlib.sha256(f"{sys.version} {[version(name) for name in TRACERS]}".encode())
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root)} ".encode() + path.read_bytes())
    for path in sorted((root / "models").glob("*.py")):  # a link in a checkout, not walked above
        found.update(path.read_bytes())
    return found.hexdigest()


def _source() -> str:
    """Return what the names of this source's programs have in common."""
    return _surroundings()[:12]


def _read(path: Path) -> _Program | None:
    """Return the kept program; None where there is none that can be read."""
    try:
        told, program = path.read_bytes().split(b"\n", 1)
        with contextlib.suppress(OSError):  # a folder that is only read
            os.utime(path)  # the time of its last use, which file systems do not note reliably
        found = _Program(
            _formed(json.loads(told)), jax.jit(export.deserialize(bytearray(program)).call)
        )
    except Exception:  # whatever is wrong with the file, it is made anew
        return None
    _load_lapack()
    return found


@functools.cache
def _load_lapack() -> None:
    """Let JAX find LAPACK, which it does when it lowers a call of it, and not when it reads one.

    A process that only reads its programs would call nothing, at address zero.
    """
    one = jax.ShapeDtypeStruct((1, 1), jnp.float32)
    jax.jit(jnp.linalg.eigh).trace(one).lower(lowering_platforms=("cpu",))


def _write(path: Path, program: bytes) -> None:
    """Write at once or not at all: other processes read the folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, suffix=HALF_WRITTEN, delete=False
        ) as file:
            file.write(program)
        Path(file.name).replace(path)
        _prune(path.parent)
    except OSError:
        pass  # the folder cannot be written: the next process traces again


class _File(NamedTuple):
    """A kept program, in the order of how much it is worth."""

    own: bool
    """Whether this source made it."""
    used: int
    """When it was read or written last."""
    name: str
    size: int


def _prune(folder: Path) -> None:
    """Remove what is worth least until the limits hold.

    Other processes may prune, read and write meanwhile: all put the files in the same order, a file
    already removed is no error, one that is open stays readable, and one that is gone is made anew.
    """
    room = MOST_BYTES
    for place, file in enumerate(sorted(_files(folder), reverse=True)):
        room -= file.size
        if place >= MOST_FILES or room < 0:
            (folder / file.name).unlink(missing_ok=True)


def _files(folder: Path) -> list[_File]:
    """Return the kept programs of a folder; remove what writers that died have left."""
    found = []
    for entry in os.scandir(folder):
        try:
            about = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(about.st_mode):
            continue
        if entry.name.endswith(KEPT):
            own = f"-{_source()}-" in entry.name
            found.append(_File(own, about.st_mtime_ns, entry.name, about.st_size))
        elif entry.name.endswith(HALF_WRITTEN) and about.st_mtime < time.time() - ABANDONED:
            Path(entry.path).unlink(missing_ok=True)
    return found
