"""A folder of traced programs, so that a later process need not trace them again.

JAX's persistent cache stores compiled code, but a program must be traced and lowered before it is
looked up there: a second or two of Python for a method over splits, in every run of a command. This
module stores the lowered program (`jax.export`). Its key is the source of this package, the versions of
the numerical libraries, JAX's settings, and the structure and shapes of the arguments, but not their
values. A program with a function or class from elsewhere is not stored, because nothing tells whether it
or anything that it uses has changed. The
structure of the result is stored as JSON in the same file, after a digest of its content: a damaged
file is made again. Files are data: nothing is executed except the program itself. The size of the folder
is limited: programs of other versions of the source are removed first, then those used longest ago.

Nothing is stored unless the environment variable `JUDGEBAYES_PROGRAMS` names a folder, as the command
line does.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from judgebayes.compiled.digest import digest_of, is_own, source_digest
from judgebayes.compiled.store import atomically, clear_half_written, prune, read_or_none
from judgebayes.errors import JudgeBayesError

__all__ = ["FOLDER", "cached_export"]

FOLDER = "JUDGEBAYES_PROGRAMS"
"""The environment variable that names the folder."""
MOST_FILES = 1000
MOST_BYTES = 512 * 2**20
SUFFIX = ".program"
ABANDONED_AFTER = 24 * 3600
"""Seconds after which a half-written file is treated as abandoned."""

R = TypeVar("R")


def cached_export(function: Callable[..., R], *args: Any, **static: Any) -> R:
    """Return `function(*args, **static)`, traced at most once across processes.

    Where a function or class from outside this package occurs, the program is not stored.

    Parameters
    ----------
    function
        A compiled function (`jax.jit`) from trees of arrays to a tree, identified by its name.
    args
        Trees of arrays and numbers. Their classes must pickle, as those of all methods do.
    static
        Its static arguments.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return function(*args, **static)
    leaves, tree = jax.tree.flatten(args)
    if not is_own(function.__module__, _blank(tree), static):
        return function(*args, **static)
    is_key = [
        isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in leaves
    ]
    # Exported programs take plain arrays, so random keys are passed as their data.
    plain = [
        jax.random.key_data(x) if key else np.asarray(x)
        for x, key in zip(leaves, is_key, strict=True)
    ]
    shapes = [(x.shape, str(x.dtype)) for x in plain]
    name = f"{function.__module__}.{function.__qualname__}"
    digest = digest_of(None, _jax_settings(), name, _blank(tree), shapes, static)
    path = Path(folder) / f"{name}{_source_tag()}{digest}{SUFFIX}"
    program = LOADED.get(path)
    if program is not None:
        return program.result(plain)

    def flat(*plain: jax.Array) -> list[jax.Array]:
        leaves_with_keys = [
            jax.random.wrap_key_data(x) if key else x for x, key in zip(plain, is_key, strict=True)
        ]
        leaves, structure = jax.tree.flatten(
            function(*jax.tree.unflatten(tree, leaves_with_keys), **static)
        )
        structures.append(_blank(structure))
        return leaves

    structures: list[Any] = []
    # Other threads wait until the program is compiled, which the first call does.
    with FIRST_CALLS.setdefault(path, threading.Lock()):
        program = LOADED.get(path) or read_or_none(path, _program)
        if program is None:
            exported = export.export(jax.jit(flat))(*plain)
            _write(path, structures[-1], exported)
            # Compiling the exported program here shares the compilation cache with later processes.
            program = _Program(structures[-1], jax.jit(exported.call))
        result: R = program.result(plain)
        LOADED[path] = program
    return result


def _jax_settings() -> str:
    """Return JAX's settings in this thread, but for those of its own cache."""
    names = [name for name in sorted(jax.config.values) if "cache" not in name]
    return repr([(name, getattr(jax.config, name, jax.config.values[name])) for name in names])


class Leaf:
    """Placeholder for an array in a tree of which only the structure is stored."""


class _Program(NamedTuple):
    structure: Any
    """The tree that the program returns, with `Leaf` for arrays."""
    call: Callable[..., list[jax.Array]]

    def result(self, plain: Sequence[Any]) -> Any:
        return jax.tree.unflatten(jax.tree.structure(self.structure), self.call(*plain))


LOADED: dict[Path, _Program] = {}
"""The programs that this process has called."""
FIRST_CALLS: dict[Path, threading.Lock] = {}
"""Held while a program is called for the first time."""


def _blank(form: jax.tree_util.PyTreeDef) -> Any:
    return jax.tree.unflatten(form, [Leaf] * form.num_leaves)


def to_json(structure: Any) -> Any:
    """Return the structure of a result as JSON values, the inverse of `from_json`.

    Raises
    ------
    TypeError
        If it contains anything but dataclasses, tuples, lists, dicts, and plain static values.
    """
    if structure is Leaf:
        return {"leaf": True}
    if structure is None or isinstance(structure, (bool, int, float, str)):
        return {"value": structure}
    if isinstance(structure, (list, tuple)) and not hasattr(structure, "_fields"):
        return {type(structure).__name__: [to_json(each) for each in structure]}
    if isinstance(structure, dict):
        return {"dict": [[to_json(key), to_json(each)] for key, each in structure.items()]}
    names = getattr(structure, "_fields", None) or [
        each.name for each in dataclasses.fields(structure)
    ]
    cls = type(structure)
    return {
        "class": [cls.__module__, cls.__qualname__],
        "fields": {name: to_json(getattr(structure, name)) for name in names},
    }


def from_json(encoded: Any) -> Any:
    """Return the structure encoded by `to_json`. Classes are loaded dataclasses and named tuples."""
    if "leaf" in encoded:
        return Leaf
    if "value" in encoded:
        return encoded["value"]
    for kind in (list, tuple):
        if kind.__name__ in encoded:
            return kind(from_json(each) for each in encoded[kind.__name__])
    if "dict" in encoded:
        return {from_json(key): from_json(each) for key, each in encoded["dict"]}
    module, name = encoded["class"]
    cls = getattr(sys.modules[module], name)
    if not dataclasses.is_dataclass(cls) and not hasattr(cls, "_fields"):
        raise TypeError(f"{name} is neither a dataclass nor a named tuple")
    return cls(**{key: from_json(each) for key, each in encoded["fields"].items()})


def _program(file: BinaryIO) -> _Program:
    """Return the program in a file, whose first line is the digest of the rest.

    Raises
    ------
    ValueError
        If the file was changed after it was written.
    """
    digest, content = file.readline().strip(), file.read()
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ValueError("the file was changed")
    header, _, body = content.partition(b"\n")
    structure = from_json(json.loads(header))
    program = _Program(structure, jax.jit(export.deserialize(bytearray(body)).call))
    _load_lapack()
    return program


@functools.cache
def _load_lapack() -> None:
    """Make JAX load LAPACK, which happens when a call is lowered but not when a program is read.

    Otherwise a process that only reads programs would call a null pointer.
    """
    one = jax.ShapeDtypeStruct((1, 1), jnp.float32)
    jax.jit(jnp.linalg.eigh).trace(one).lower(lowering_platforms=("cpu",))


def _write(path: Path, structure: Any, program: export.Exported) -> None:
    """Store a program, unless its structure has no JSON form or the folder cannot be written to."""
    with contextlib.suppress(TypeError, JudgeBayesError, OSError):
        content = json.dumps(to_json(structure)).encode() + b"\n" + program.serialize()
        with atomically(path, new_folder=True) as temporary:
            temporary.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        clear_half_written(path.parent, before=time.time() - ABANDONED_AFTER)
        prune(path.parent, SUFFIX, _source_tag(), files=MOST_FILES, size=MOST_BYTES)


def _source_tag() -> str:
    """Return the common part of the file names of this source's programs."""
    return f"-{source_digest()[:12]}-"
