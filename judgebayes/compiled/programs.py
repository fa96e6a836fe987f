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
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from judgebayes.compiled.digest import digest_of, source_digest
from judgebayes.compiled.store import atomically, clear_half_written, prune, read_or_none
from judgebayes.errors import JudgeBayesError

__all__ = ["FOLDER", "kept"]

FOLDER = "JUDGEBAYES_PROGRAMS"
"""The environment variable that names the folder."""
MOST_FILES = 1000
MOST_BYTES = 512 * 2**20
KEPT = ".program"
PLAIN = (tuple, list, dict, type(None))
ABANDONED = 24 * 3600
"""After so many seconds a file that is half written has no writer any more."""

R = TypeVar("R")


def _elsewhere(tree: Any) -> set[str]:
    """Return the modules of a tree's classes that are neither of this package nor Python's own."""
    node = tree.node_data()
    found = set() if node is None or node[0] in PLAIN else {node[0].__module__}
    found = {name for name in found if name.partition(".")[0] != "judgebayes"}
    return found.union(*map(_elsewhere, tree.children()))


def _sources(modules: Iterable[str]) -> list[str] | None:
    """Return digests of the files of some modules; None where one has no file."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules)]
    if not all(files):
        return None
    return [hashlib.sha256(Path(str(file)).read_bytes()).hexdigest() for file in files]


def kept(function: Callable[..., R], *args: Any, **static: Any) -> R:
    """Return `function(*args, **static)`, traced at most once for all processes.

    Programs of classes from elsewhere are kept under the content of their files, too, and not at all
    where a class was typed into a session.

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
    sources = _sources(_elsewhere(tree))
    if sources is None:
        return function(*args, **static)
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
    real = str(jax.dtypes.canonicalize_dtype(float))  # 64 bits or 32
    digest = digest_of(None, real, name, _blank(tree), shapes, static, *sources)
    path = Path(folder) / f"{name}{_own()}{digest}{KEPT}"
    found = LOADED.get(path) or read_or_none(path, _program)
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
        _write(path, answer[-1], program)
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


def _program(file: BinaryIO) -> _Program:
    """Return the program that a file holds."""
    answer = _formed(json.loads(file.readline()))
    found = _Program(answer, jax.jit(export.deserialize(bytearray(file.read())).call))
    _load_lapack()
    return found


@functools.cache
def _load_lapack() -> None:
    """Let JAX find LAPACK, which it does when it lowers a call of it, and not when it reads one.

    A process that only reads its programs would call nothing, at address zero.
    """
    one = jax.ShapeDtypeStruct((1, 1), jnp.float32)
    jax.jit(jnp.linalg.eigh).trace(one).lower(lowering_platforms=("cpu",))


def _write(path: Path, answer: Any, program: export.Exported) -> None:
    """Keep a program, unless JSON cannot say its answer or nothing can be written: later ones trace."""
    with contextlib.suppress(TypeError, JudgeBayesError, OSError):
        told = json.dumps(_told(answer)).encode()
        with atomically(path, new_folder=True) as beside:
            beside.write_bytes(told + b"\n" + program.serialize())
        clear_half_written(path.parent, before=time.time() - ABANDONED)
        prune(path.parent, KEPT, _own(), files=MOST_FILES, size=MOST_BYTES)


def _own() -> str:
    """Return what the names of this source's programs have in common."""
    return f"-{source_digest()[:12]}-"
